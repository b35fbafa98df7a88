//! `Log`: records with promises, each fulfilled when its record is safe; and options as JavaScript
//! passes them.

use crate::records::Records;
use crate::{Bell, Work, invalid, raise, work};
use napi::bindgen_prelude::{AsyncTask, BufferSlice, Function, Unknown};
use napi::{Either, Env};
use napi_derive::napi;
use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use wrote::{Error, SyncPolicy};
use wrote_bindings::{Options, Waits};

/// An open log, with the promises of one event loop. Each promise is identified by a number that
/// JavaScript assigns.
#[napi]
pub struct Log(Arc<Shared>);

/// The parts of a log that it shares with its appender.
struct Shared {
    log: wrote::Log,
    bell: Bell,
    waits: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    tickets: Waits<u32>,
    /// A wait until a buffer accepts records, if an append found no room.
    room: Option<Room>,
}

type Room = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// The promises that are settled.
#[napi(object, object_from_js = false)]
pub struct Answers {
    /// The numbers of the promises whose records are safe.
    pub ready: Vec<u32>,
    /// The numbers of the promises that failed.
    pub failed: Vec<u32>,
    /// The errors of the failed promises, in the same order.
    pub errors: Vec<napi::Error>,
    /// Whether appends that found no room can be repeated.
    pub has_room: bool,
    /// The error of the first append that found no room, if there will never be room for it.
    pub no_room: Option<napi::Error>,
}

/// Figures of a log, named as in the library.
#[napi(object, object_from_js = false)]
pub struct Stats {
    pub found_records: f64,
    pub found_closed: bool,
    pub torn_bytes: f64,
    pub first_sequence: f64,
    pub next_sequence: f64,
    pub written_sequence: f64,
    pub durable_sequence: f64,
    pub batches: f64,
    pub flushes: f64,
    pub flush_time: f64,
    pub written_bytes: f64,
    pub flushed_bytes: f64,
    pub segments: f64,
    pub removed: f64,
}

/// Opens a log. The event loop calls `answered` when `Log.answers` has results.
#[napi]
pub fn open_log(
    folder: BufferSlice<'_>,
    options: LogOptions,
    answered: Function<'_, (), Unknown<'static>>,
) -> napi::Result<AsyncTask<Work<Log>>> {
    let (folder, options, bell) = (path(&folder), options.read()?, Bell::new(answered)?);
    Ok(work(move || {
        let (log, waits) = (options.open(folder)?, Mutex::default());
        Ok(Log(Arc::new(Shared { log, bell, waits })))
    }))
}

#[napi]
impl Log {
    /// Returns a function that appends a record for a promise, and returns the record's sequence.
    /// If there is no room, the function returns null, and `answers` sets `has_room` once there is.
    ///
    /// The function is called for each record. It does not use `this`, because checking `this`
    /// would take as long as the append.
    #[napi(catch_unwind)]
    pub fn appender<'env>(&self, env: &'env Env) -> napi::Result<Function<'env, (), Option<f64>>> {
        let shared = Arc::clone(&self.0);
        env.create_function_from_closure("append", move |call| {
            let (record, promise) = (call.get::<BufferSlice<'_>>(0)?, call.get(1)?);
            let appended = shared.log.try_append(&[&record]);
            let appended = appended.map_err(|error| raise(call.env, &error))?;
            shared.wait_for_appended(call.env, appended, promise)
        })
    }

    /// Appends consecutive records as a group, and returns the sequence of the last record.
    #[napi(catch_unwind)]
    pub fn append_all(
        &self,
        env: &Env,
        records: Vec<BufferSlice<'_>>,
        promise: u32,
    ) -> napi::Result<Option<f64>> {
        let appended = self.0.log.try_append(&records).map_err(|error| raise(env, &error))?;
        self.0.wait_for_appended(env, appended, promise)
    }

    /// Waits for a record that has been appended; if `durable`, until it survives a power loss.
    #[napi(catch_unwind)]
    pub fn wait(&self, env: &Env, sequence: f64, durable: bool, promise: u32) -> napi::Result<()> {
        let ticket = self.0.log.ticket(size("sequence", sequence)?);
        let ticket = if durable { ticket.until_durable() } else { ticket };
        self.0.wait_for(env, ticket, durable, promise)
    }

    /// Returns the promises that are settled. Must be called when the bell has rung.
    #[napi(catch_unwind)]
    pub fn answers(&self, env: &Env) -> napi::Result<Answers> {
        self.0.bell.clear();
        let (waker, mut waiting) = (self.0.bell.waker(), self.0.waiting());
        let Waiting { tickets, room } = &mut *waiting;
        let context = &mut Context::from_waker(&waker);
        let polled = room.as_mut().map_or(Poll::Pending, |room| room.as_mut().poll(context));
        let (has_room, no_room) = match polled {
            Poll::Pending => (false, None),
            Poll::Ready(result) => (true, result.err().map(|error| raise(env, &error))),
        };
        if has_room {
            *room = None;
        }
        let (mut ready, mut failed, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for answer in tickets.answers(&waker) {
            match answer.result {
                Ok(()) => ready.push(answer.waiter),
                Err(error) => {
                    failed.push(answer.waiter);
                    errors.push(raise(env, &error));
                }
            }
        }
        self.0.bell.hold(env, !tickets.is_empty() || room.is_some())?;
        Ok(Answers { ready, failed, errors, has_room, no_room })
    }

    /// Makes every record appended so far durable.
    #[napi]
    pub fn sync(&self) -> AsyncTask<Work<()>> {
        let log = self.0.log.clone();
        work(move || log.sync())
    }

    /// Makes every record durable, on the calling thread. After that, there is room.
    #[napi(catch_unwind)]
    pub fn drain_sync(&self, env: &Env) -> napi::Result<()> {
        self.0.log.sync().map_err(|error| raise(env, &error))
    }

    /// Removes the segments whose records are all before `sequence`. Returns the sequence of the
    /// first remaining record.
    #[napi]
    pub fn trim_before(&self, sequence: f64) -> napi::Result<AsyncTask<Work<f64>>> {
        let (log, sequence) = (self.0.log.clone(), size("sequence", sequence)?);
        Ok(work(move || log.trim_before(sequence).map(|first| first as f64)))
    }

    /// Removes record `sequence` and all later ones.
    #[napi]
    pub fn truncate_from(&self, sequence: f64) -> napi::Result<AsyncTask<Work<()>>> {
        let (log, sequence) = (self.0.log.clone(), size("sequence", sequence)?);
        Ok(work(move || log.truncate_from(sequence)))
    }

    /// Returns the worst event that a record currently survives.
    #[napi(catch_unwind)]
    pub fn survives(&self, sequence: f64) -> napi::Result<&'static str> {
        Ok(self.0.log.survives(size("sequence", sequence)?).as_str())
    }

    /// Returns the log's figures.
    #[napi(catch_unwind)]
    pub fn stats(&self) -> Stats {
        let stats = self.0.log.stats();
        Stats {
            found_records: stats.found_records as f64,
            found_closed: stats.found_closed,
            torn_bytes: stats.torn_bytes as f64,
            first_sequence: stats.first_sequence as f64,
            next_sequence: stats.next_sequence as f64,
            written_sequence: stats.written_sequence as f64,
            durable_sequence: stats.durable_sequence as f64,
            batches: stats.batches as f64,
            flushes: stats.flushes as f64,
            flush_time: stats.flush_time.as_secs_f64() * 1e3,
            written_bytes: stats.written_bytes as f64,
            flushed_bytes: stats.flushed_bytes as f64,
            segments: stats.segments as f64,
            removed: stats.removed as f64,
        }
    }

    /// Reads from record `start` on; with `follow`, until the log is closed. The event loop calls
    /// `arrived` when records have arrived.
    #[napi]
    pub fn reader(
        &self,
        start: f64,
        follow: bool,
        arrived: Function<'_, (), Unknown<'static>>,
    ) -> napi::Result<AsyncTask<Work<Records>>> {
        let (log, start, bell) = (self.0.log.clone(), size("start", start)?, Bell::new(arrived)?);
        Ok(work(move || {
            let reader = log.reader(start)?;
            let reader = if follow { reader.following()? } else { reader };
            Ok(Records::new(reader.into_stream()?, bell))
        }))
    }

    /// Ends the log.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let log = self.0.log.clone();
        work(move || log.close())
    }

    /// Closes the log, on the calling thread.
    #[napi(catch_unwind)]
    pub fn close_sync(&self, env: &Env) -> napi::Result<()> {
        self.0.log.close().map_err(|error| raise(env, &error))
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_appended(
        &self,
        env: &Env,
        ticket: Option<wrote::Ticket<'_>>,
        promise: u32,
    ) -> napi::Result<Option<f64>> {
        let Some(ticket) = ticket else {
            let log = self.log.clone();
            let room = self.waiting().room.replace(Box::pin(async move { log.room().await }));
            if room.is_none() {
                self.bell.waker().wake();
            }
            return self.bell.hold(env, true).map(|()| None);
        };
        let sequence = ticket.sequence() as f64;
        self.wait_for(env, ticket, false, promise).map(|()| Some(sequence))
    }

    fn wait_for(
        &self,
        env: &Env,
        ticket: wrote::Ticket<'_>,
        durable: bool,
        promise: u32,
    ) -> napi::Result<()> {
        self.waiting().tickets.add(ticket.into_owned(), durable, promise, self.bell.waker());
        self.bell.hold(env, true)
    }
}

/// Returns the path that consists of these bytes.
pub fn path(bytes: &BufferSlice<'_>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Returns a size, sequence or count.
pub fn size(name: &str, number: f64) -> napi::Result<u64> {
    let size = number as u64;
    match size as f64 == number {
        true => Ok(size),
        false => Err(invalid(format!("{name}={number}: not a whole number"))),
    }
}

/// Returns an option that is a length in bytes.
pub fn length(name: &str, bytes: Option<f64>) -> napi::Result<Option<u64>> {
    bytes.map(|bytes| size(name, bytes)).transpose()
}

/// Returns a time that is passed in milliseconds.
pub fn time(name: &str, milliseconds: f64) -> napi::Result<Duration> {
    wrote_bindings::interval(name, milliseconds / 1e3).map_err(invalid)
}

/// Returns a policy, given by name or in milliseconds.
pub fn policy(sync: Option<Either<String, f64>>) -> napi::Result<Option<SyncPolicy>> {
    Ok(match sync {
        Some(Either::A(word)) => Some(wrote_bindings::sync(&word).map_err(invalid)?),
        Some(Either::B(milliseconds)) => Some(SyncPolicy::Interval(time("sync", milliseconds)?)),
        None => None,
    })
}

/// Options of a writer.
#[napi(object, object_to_js = false)]
pub struct WriterOptions {
    /// The permissions of a new file.
    pub mode: Option<u32>,
    /// When writes become durable automatically.
    pub sync: Option<Either<String, f64>>,
    /// The expected length, in bytes.
    pub size_hint: Option<f64>,
    /// Whether an existing name is an error.
    pub exclusive: Option<bool>,
    /// Whether the page cache may be bypassed.
    pub direct: Option<bool>,
}

impl WriterOptions {
    /// Returns the library's options for `purpose`, and their policy.
    pub fn read(self, purpose: &str) -> napi::Result<(wrote::WriterOptions, SyncPolicy)> {
        let sync = policy(self.sync)?.unwrap_or_default();
        let options = wrote::Writer::options()
            .sync(sync)
            .create_new(self.exclusive.unwrap_or(false))
            .direct(self.direct.unwrap_or(true))
            .replace(purpose == "replace")
            .append(purpose == "append")
            .abandon_on_drop(true)
            .set(wrote::WriterOptions::size_hint, length("sizeHint", self.size_hint)?)
            .set(wrote::WriterOptions::mode, self.mode);
        Ok((options, sync))
    }
}

/// Options of a log.
#[napi(object, object_to_js = false)]
pub struct LogOptions {
    /// The policy, which decides what a record's promise means.
    pub sync: Option<Either<String, f64>>,
    /// The length of a segment, in bytes.
    pub segment_bytes: Option<f64>,
    /// The maximum length of all segments, in bytes, beyond which the oldest are removed.
    pub retain_bytes: Option<f64>,
    /// The age at which segments are removed, in milliseconds.
    pub retain_age: Option<f64>,
    /// The number of buffers.
    pub buffers: Option<u32>,
    /// The size of each buffer, in bytes.
    pub buffer_bytes: Option<f64>,
    /// The permissions of new files.
    pub mode: Option<u32>,
}

impl LogOptions {
    /// Returns the library's options.
    pub fn read(self) -> napi::Result<wrote::LogOptions> {
        let retain_age = self.retain_age.map(|age| time("retainAge", age)).transpose()?;
        let buffer_bytes = length("bufferBytes", self.buffer_bytes)?;
        Ok(wrote::Log::options()
            .set(wrote::LogOptions::sync, policy(self.sync)?)
            .set(wrote::LogOptions::segment_bytes, length("segmentBytes", self.segment_bytes)?)
            .set(wrote::LogOptions::retain_bytes, length("retainBytes", self.retain_bytes)?)
            .set(wrote::LogOptions::retain_age, retain_age)
            .set(wrote::LogOptions::buffers, self.buffers)
            .set(wrote::LogOptions::buffer_bytes, buffer_bytes.map(|bytes| bytes as usize))
            .set(wrote::LogOptions::mode, self.mode))
    }
}
