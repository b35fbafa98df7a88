//! What is asked of a log.

use super::lock::{LOCK, Lock};
use super::{Format, Log, open};
use crate::engine::folder_of;
use crate::{Durable, Engine, Error, Ioengine, Options, Sim, Sync};
use std::path::Path;
use std::time::Duration;

/// How the space of a segment is made ready before records come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prepare {
    /// Allocated (`fallocate(2)`). The first flush after each write into it must record in the file
    /// system's journal that the blocks are written now.
    Allocate,
    /// Written, with zeros: each byte of the log then costs two on the device, and a durable record one
    /// write over blocks that are there, which needs no journal.
    Write,
}

/// What is asked of a [`Log`]; [`LogOptions::open`] opens it.
#[derive(Clone, Debug)]
pub struct LogOptions {
    pub(super) sync: Sync,
    pub(super) format: Format,
    pub(super) segment_bytes: u64,
    pub(super) segment_age: Option<Duration>,
    pub(super) retain_bytes: Option<u64>,
    pub(super) retain_age: Option<Duration>,
    pub(super) buffers: u32,
    pub(super) buffer_bytes: usize,
    pub(super) prepare: Option<Prepare>,
    pub(super) durable: Option<Durable>,
}

impl LogOptions {
    /// The defaults: [`Sync::Always`], framed, segments of 64 MiB, nothing removed.
    pub(super) fn new() -> LogOptions {
        LogOptions {
            sync: Sync::Always,
            format: Format::Framed,
            segment_bytes: 64 << 20,
            segment_age: None,
            retain_bytes: None,
            retain_age: None,
            buffers: 8,
            buffer_bytes: 1 << 20,
            prepare: None,
            durable: None,
        }
    }

    /// When records are made durable: what a [`super::Ticket`] waits for. [`Sync::Always`] by default.
    pub fn sync(mut self, sync: Sync) -> LogOptions {
        self.sync = sync;
        self
    }

    /// How records stand in the files; [`Format::Framed`] by default. A log keeps the format in which it
    /// was begun.
    pub fn format(mut self, format: Format) -> LogOptions {
        self.format = format;
        self
    }

    /// About how long a segment gets before the next is begun, in bytes; 64 MiB by default, and at least
    /// two buffers.
    pub fn segment_bytes(mut self, bytes: u64) -> LogOptions {
        self.segment_bytes = bytes;
        self
    }

    /// How old a segment gets before the next is begun; by default as old as it takes to fill it.
    pub fn segment_age(mut self, age: Duration) -> LogOptions {
        self.segment_age = Some(age);
        self
    }

    /// The most bytes that the log takes on the disk: of what is more, the oldest segments are removed.
    /// The one that is written to never is, so that it may take one segment more. By default nothing is
    /// removed.
    pub fn retain_bytes(mut self, bytes: u64) -> LogOptions {
        self.retain_bytes = Some(bytes);
        self
    }

    /// How long records are kept at least: a segment whose last record is older is removed, when the next
    /// is begun. By default nothing is removed.
    pub fn retain_age(mut self, age: Duration) -> LogOptions {
        self.retain_age = Some(age);
        self
    }

    /// Buffers that records are gathered in and written from: at least 2, 8 by default.
    pub fn buffers(mut self, buffers: u32) -> LogOptions {
        self.buffers = buffers;
        self
    }

    /// Bytes of each buffer: 1 MiB by default, 4 KiB at least, 64 MiB at most. A record must fit into one,
    /// with less than 200 bytes beside it.
    pub fn buffer_bytes(mut self, bytes: usize) -> LogOptions {
        self.buffer_bytes = bytes;
        self
    }

    /// How the space of segments is made ready: by default written with [`Sync::Always`], else allocated.
    /// Lines grow their file as they come.
    pub fn prepare(mut self, prepare: Prepare) -> LogOptions {
        self.prepare = Some(prepare);
        self
    }

    /// How writes are made durable: by default what is faster here, measured in a few milliseconds when
    /// the log is opened with [`Sync::Always`].
    pub fn durable(mut self, durable: Durable) -> LogOptions {
        self.durable = Some(durable);
        self
    }

    /// Opens the log in `folder`, which is made where it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when another process, or this one, has the log open for writing, or when it is of
    /// the other format; [`Error::Damaged`] when records that were durable can't be read; else with the
    /// kernel's words.
    pub fn open(&self, folder: impl AsRef<Path>) -> Result<Log, Error> {
        let folder = folder.as_ref();
        make_folder(folder)?;
        let lock = Lock::take(folder)?;
        let shared = open::open(self, folder)?;
        Log::start(shared, self.segment_age, lock)
    }

    /// The same on a simulated disk. No thread is started: whoever waits does what a thread would do, so
    /// that a run with the same seed does the same operations in the same order.
    ///
    /// # Errors
    ///
    /// As [`LogOptions::open`].
    pub fn open_simulated(&self, sim: &Sim, folder: impl AsRef<Path>) -> Result<Log, Error> {
        let shared = open::open_simulated(self, sim, folder.as_ref())?;
        Ok(Log::without_thread(shared, sim))
    }
}

/// Makes the folder, and its name durable, unless a log was opened in it before: one that is there may have
/// been made a moment ago.
fn make_folder(folder: &Path) -> Result<(), Error> {
    if folder.join(LOCK).exists() {
        return Ok(());
    }
    let mut engine = Engine::open(&Options::new(Ioengine::Psync, 1, 4096))?;
    engine.make_folder(folder)?;
    engine.sync_folder(folder_of(folder))
}
