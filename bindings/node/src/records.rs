//! `Records`: the records of a log for an asynchronous iterator.

use crate::log::{path, size};
use crate::{Bell, Work, raise, work};
use futures_core::Stream;
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, BufferSlice, Function, Object, Unknown};
use napi_derive::napi;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};
use wrote::Record;
use wrote_bindings::{log_reader, unix_ns};

/// The maximum number of bytes and of records that one call returns, so that other events get their
/// turn.
const BATCH_BYTES: usize = 64 << 10;
const BATCH_RECORDS: usize = 256;

type RecordStream = Pin<Box<dyn Stream<Item = Result<Record, wrote::Error>> + Send>>;

/// The records that a thread of the library reads ahead.
#[napi]
pub struct Records {
    /// The stream of further records; `None` after its end.
    stream: Mutex<Option<RecordStream>>,
    bell: Bell,
}

/// The records that one call returns.
#[napi(object, object_from_js = false)]
pub struct Batch<'env> {
    /// The `sequence`, `data` and `writtenAtMs` of each record.
    pub records: Vec<Object<'env>>,
    /// The error that follows the records, if there is one.
    pub error: Option<napi::Error>,
    /// Whether there will be no more records.
    pub is_over: bool,
}

/// Opens the log in a folder for reading, from record `start` on, or from the first record written
/// at `since_ms` or later. The event loop calls `arrived` when records have arrived.
#[napi]
pub fn open_records(
    folder: BufferSlice<'_>,
    start: f64,
    since_ms: Option<f64>,
    follow: bool,
    arrived: Function<'_, (), Unknown<'static>>,
) -> napi::Result<AsyncTask<Work<Records>>> {
    let (folder, start, bell) = (path(&folder), size("start", start)?, Bell::new(arrived)?);
    // The time is rounded down, as `given` rounds a record's time, so that a record's own time
    // finds the record.
    let since = since_ms.map(|time| Duration::from_micros((time * 1e3) as u64));
    Ok(work(move || {
        let mut reader = log_reader(&folder, start, follow)?;
        if let Some(since) = since {
            reader.seek_time(UNIX_EPOCH + since)?;
        }
        Ok(Records::new(reader.into_stream()?, bell))
    }))
}

impl Records {
    pub(crate) fn new(
        stream: impl Stream<Item = Result<Record, wrote::Error>> + Send + 'static,
        bell: Bell,
    ) -> Records {
        Records { stream: Mutex::new(Some(Box::pin(stream))), bell }
    }
}

#[napi]
impl Records {
    /// Returns the next records. If there are none, the bell will ring when there are.
    #[napi(catch_unwind)]
    pub fn take<'env>(&self, env: &'env Env) -> napi::Result<Batch<'env>> {
        self.bell.clear();
        let waker = self.bell.waker();
        let context = &mut Context::from_waker(&waker);
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut records, mut bytes, mut error) = (Vec::new(), 0, None);
        while bytes < BATCH_BYTES && records.len() < BATCH_RECORDS {
            let Some(open) = &mut *stream else { break };
            match open.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(record))) => {
                    bytes += record.bytes.len();
                    records.push(given(env, &record)?);
                }
                Poll::Ready(Some(Err(failed))) => error = Some(raise(env, &failed)),
                Poll::Ready(None) => *stream = None,
                Poll::Pending => break,
            }
        }
        let is_over = stream.is_none();
        self.bell.hold(env, !is_over && records.is_empty())?;
        Ok(Batch { records, error, is_over })
    }

    /// Stops reading.
    #[napi(catch_unwind)]
    pub fn close(&self, env: &Env) -> napi::Result<()> {
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.bell.hold(env, false)
    }
}

fn given<'env>(env: &'env Env, record: &Record) -> napi::Result<Object<'env>> {
    let mut given = Object::new(env)?;
    given.set("sequence", record.sequence as f64)?;
    given.set("data", &BufferSlice::copy_from(env, &record.bytes)?)?;
    let time_us = record.written_at.map(|time| unix_ns(time) / 1000);
    given.set("writtenAtMs", time_us.map(|time_us| time_us as f64 / 1e3))?;
    Ok(given)
}
