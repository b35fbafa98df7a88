//! The options of a log.

use super::handle::Log;
use super::open;
use crate::{Disk, Error, SyncPolicy};
use std::path::Path;
use std::time::Duration;

/// Options of a [`Log`](super::Log); [`LogOptions::open`] opens it.
///
/// ```
/// use std::time::Duration;
/// use wrote::{Log, SyncPolicy};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// let log = Log::options()
///     .sync(SyncPolicy::EverySec) // a waited-for record survives a crash of the process
///     .retain_bytes(10_000_000_000) // then the oldest segments go
///     .retain_age(Duration::from_secs(30 * 24 * 3600))
///     .buffer_bytes(256 << 10) // 8 of them: 2 MiB of memory
///     .open(&folder)?;
/// # log.close()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LogOptions {
    pub(super) sync: SyncPolicy,
    pub(super) segment_bytes: u64,
    pub(super) segment_age: Option<Duration>,
    pub(super) retain_bytes: Option<u64>,
    pub(super) retain_age: Option<Duration>,
    pub(super) hold: bool,
    pub(super) buffers: u32,
    pub(super) buffer_bytes: usize,
    pub(super) zeros: Option<bool>,
    pub(super) prepared_bytes: u64,
    pub(super) dsync: Option<bool>,
    pub(super) mode: Option<u32>,
    pub(super) disk: Option<Disk>,
}

impl LogOptions {
    /// Returns the defaults: [`SyncPolicy::Always`], segments of 64 MiB, no retention.
    pub(super) fn new() -> LogOptions {
        LogOptions {
            sync: SyncPolicy::Always,
            segment_bytes: 64 << 20,
            segment_age: None,
            retain_bytes: None,
            retain_age: None,
            hold: false,
            buffers: 8,
            buffer_bytes: 1 << 20,
            zeros: None,
            prepared_bytes: 0,
            dsync: None,
            mode: None,
            disk: None,
        }
    }

    /// Sets when records become durable, and so what a [`Ticket`](super::Ticket) waits for;
    /// [`SyncPolicy::Always`] by default.
    pub fn sync(self, sync: SyncPolicy) -> LogOptions {
        LogOptions { sync, ..self }
    }

    /// Sets the approximate length of a segment in bytes: 64 MiB by default, at least two buffers.
    /// With [zeros](LogOptions::zeros) an opened log starts with shorter segments, from 1/64 on,
    /// each twice as long as the previous.
    pub fn segment_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { segment_bytes: bytes, ..self }
    }

    /// Sets the age at which the next segment is started; by default a segment ends only when full.
    pub fn segment_age(self, age: Duration) -> LogOptions {
        LogOptions { segment_age: Some(age), ..self }
    }

    /// Sets the most bytes that the log uses on disk; beyond them it removes its oldest segments.
    /// It never removes the current segment, so the log can exceed the limit by one segment, and by
    /// the next while that is prepared. By default it removes none.
    ///
    /// With [zeros](LogOptions::zeros) an open log keeps the file of one removed segment, under a
    /// temporary name, for a later segment. Until that one is full, the bytes of removed records
    /// remain in it. The log reuses only a file that it has written since opening, that has no
    /// second name, and that no program on this system has open (`fcntl(2)`, F_SETLEASE). So a
    /// reader in a removed segment reads to its end, and a copy by hard links is unaffected. A
    /// program that opens a segment at the very moment of its removal may find other bytes, which
    /// readers recognize as invalid.
    pub fn retain_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { retain_bytes: Some(bytes), ..self }
    }

    /// Sets the minimum time for which the log keeps records. When it starts a segment, it removes
    /// all segments whose last record is older. By default it removes none.
    pub fn retain_age(self, age: Duration) -> LogOptions {
        LogOptions { retain_age: Some(age), ..self }
    }

    /// Sets whether the log holds its segments: retention then removes a segment only once
    /// [`Log::release`](super::Log::release) has released all its records, regardless of size and
    /// age. For programs that keep segments elsewhere: [`Segment::sealed`](super::Segment::sealed).
    pub fn hold(self, hold: bool) -> LogOptions {
        LogOptions { hold, ..self }
    }

    /// Sets the number of buffers that collect records: 8 by default, at least 2.
    pub fn buffers(self, buffers: u32) -> LogOptions {
        LogOptions { buffers, ..self }
    }

    /// Sets the size of each buffer: 1 MiB by default, between 4 KiB and 64 MiB. A record, with
    /// less than 200 bytes of headers, must fit into one.
    pub fn buffer_bytes(self, bytes: usize) -> LogOptions {
        LogOptions { buffer_bytes: bytes, ..self }
    }

    /// Sets whether zeros are written into the space of a segment before its first record; by
    /// default with [`SyncPolicy::Always`]. Each byte of the log then costs two on the device, but
    /// a durable record is one write over existing blocks, which needs no journal. A log that
    /// removes its oldest segments ([`LogOptions::retain_bytes`],
    /// [`Log::trim_before`](super::Log::trim_before)) reuses their files for later ones instead,
    /// and writes each byte once.
    ///
    /// Without zeros the space is allocated (`fallocate(2)`), and the first flush after each write
    /// must record in the file system's journal that the blocks are written. It is also only
    /// allocated by default on copy-on-write file systems (Btrfs, ZFS, bcachefs), where a write
    /// over zeros goes elsewhere, so they reserve no space for it.
    ///
    /// By default zeros are also left out of the next segment where a flush had more than 64 KiB of
    /// records on average in the last one: they would then take longer than they save. With `true`
    /// every segment is written completely.
    pub fn zeros(self, zeros: bool) -> LogOptions {
        LogOptions { zeros: Some(zeros), ..self }
    }

    /// Sets the space prepared before opening returns, at most a segment; by default 64 KiB for a
    /// new log, and none for an existing one. No zeros compete with records for the disk until half
    /// of it is used. A new log whose records are awaited one by one thus starts as fast as one
    /// that reuses files of removed segments. Opening takes as long as the disk needs for these
    /// bytes: half a second for 64 MiB at 125 MB/s.
    pub fn prepared_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { prepared_bytes: bytes, ..self }
    }

    /// Sets how writes are made durable: by one call with `RWF_DSYNC`, or else by a write and
    /// `fdatasync(2)`. By default, opening a log with [`SyncPolicy::Always`] measures for a few
    /// milliseconds which is faster ([`calibrate`](crate::file::calibrate)).
    pub fn dsync(self, dsync: bool) -> LogOptions {
        LogOptions { dsync: Some(dsync), ..self }
    }

    /// Sets the permissions of the files of a new log (`open(2)`), minus the umask; 0o666 by
    /// default. A created folder gets the same, plus search permission wherever read is allowed:
    /// 0o600 makes a log private to its owner.
    ///
    /// A log keeps its original permissions: every later file, even one rewritten by a repair, gets
    /// the permissions of the file `lock`. To change them, change all files.
    pub fn mode(self, mode: u32) -> LogOptions {
        LogOptions { mode: Some(mode), ..self }
    }

    /// Writes by the method of a disk's engine, or to its simulated disk. The engine and the
    /// buffers are the log's own.
    ///
    /// On a simulated disk ([`Disk::simulated`]) the log has no thread: waiting callers do that
    /// work, so a run with the same seed performs the same operations in the same order.
    pub fn on(self, disk: &Disk) -> LogOptions {
        LogOptions { disk: Some(disk.clone()), ..self }
    }

    /// Opens the log in `folder`, which is created if missing.
    ///
    /// Fails with [`Error::Refused`] if this or another process has the log open for writing; with
    /// [`Error::Damaged`] if durable records can't be read.
    pub fn open(&self, folder: impl AsRef<Path>) -> Result<Log, Error> {
        open::open(self, folder.as_ref())
    }
}
