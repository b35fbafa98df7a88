//! The options of a log.

use super::format::Format;
use crate::{Disk, Durable, SyncPolicy};
use std::time::Duration;

/// How a log prepares the space of a segment before its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prepare {
    /// Allocates it (`fallocate(2)`). The first flush after each write must then record in the file
    /// system's journal that the blocks are written.
    Allocate,
    /// Writes zeros into it. Each byte of the log then costs two on the device. A durable record
    /// costs one write over existing blocks, which needs no journal. A log that removes its oldest
    /// segments ([`LogOptions::retain_bytes`], [`Log::trim_before`](super::Log::trim_before)) gives
    /// their files to later ones instead, and writes each byte once.
    Write,
}

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
    pub(super) format: Format,
    pub(super) segment_bytes: u64,
    pub(super) segment_age: Option<Duration>,
    pub(super) retain_bytes: Option<u64>,
    pub(super) retain_age: Option<Duration>,
    pub(super) hold: bool,
    pub(super) buffers: u32,
    pub(super) buffer_bytes: usize,
    pub(super) prepare: Option<Prepare>,
    pub(super) prepared_bytes: u64,
    pub(super) durable: Option<Durable>,
    pub(super) mode: Option<u32>,
    pub(super) disk: Option<Disk>,
}

impl LogOptions {
    /// Returns the defaults: [`SyncPolicy::Always`], framed, segments of 64 MiB, no retention.
    pub(super) fn new() -> LogOptions {
        LogOptions {
            sync: SyncPolicy::Always,
            format: Format::Framed,
            segment_bytes: 64 << 20,
            segment_age: None,
            retain_bytes: None,
            retain_age: None,
            hold: false,
            buffers: 8,
            buffer_bytes: 1 << 20,
            prepare: None,
            prepared_bytes: 0,
            durable: None,
            mode: None,
            disk: None,
        }
    }

    /// Sets when records become durable, and so what a [`Ticket`](super::Ticket) waits for;
    /// [`SyncPolicy::Always`] by default.
    pub fn sync(self, sync: SyncPolicy) -> LogOptions {
        LogOptions { sync, ..self }
    }

    /// Sets the format of the files; [`Format::Framed`] by default. A log keeps its first format.
    pub fn format(self, format: Format) -> LogOptions {
        LogOptions { format, ..self }
    }

    /// Sets the approximate length of a segment in bytes: 64 MiB by default, at least two buffers.
    /// With [`Prepare::Write`] an opened log begins with shorter segments: of a 64th, then each
    /// twice as long as the one before.
    pub fn segment_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { segment_bytes: bytes, ..self }
    }

    /// Sets the age at which a segment is followed by the next; by default it ends only when full.
    pub fn segment_age(self, age: Duration) -> LogOptions {
        LogOptions { segment_age: Some(age), ..self }
    }

    /// Sets the most bytes that the log takes on the disk; beyond them it removes its oldest
    /// segments. It never removes the segment that is written, so the log can exceed the limit by
    /// one segment, and by the next while that is prepared. By default it removes none.
    ///
    /// With [`Prepare::Write`] a log that is open keeps the file of one removed segment, under a
    /// temporary name, for a later segment. Until that one is full, the bytes of removed records
    /// are there. The log takes only a file that it has written since it was opened, that has no
    /// second name, and that no program of this system has open (`fcntl(2)`, F_SETLEASE). So a
    /// reader in a removed segment reads on to its end, and a copy by hard links stays as it is. A
    /// program that opens a segment in the very moment of its removal may find other bytes, which
    /// are not valid to a reader.
    pub fn retain_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { retain_bytes: Some(bytes), ..self }
    }

    /// Sets the least time for which the log keeps records. When it begins a segment, it removes
    /// every segment whose last record is older. By default it removes none.
    pub fn retain_age(self, age: Duration) -> LogOptions {
        LogOptions { retain_age: Some(age), ..self }
    }

    /// Sets whether the log holds its segments: retention then removes a segment only once
    /// [`Log::release`](super::Log::release) has released all its records, however many and old
    /// they are. For programs that keep segments elsewhere:
    /// [`SealedSegments`](super::SealedSegments).
    pub fn hold(self, hold: bool) -> LogOptions {
        LogOptions { hold, ..self }
    }

    /// Sets the number of buffers that gather records: 8 by default, at least 2.
    pub fn buffers(self, buffers: u32) -> LogOptions {
        LogOptions { buffers, ..self }
    }

    /// Sets the bytes of each buffer: 1 MiB by default, 4 KiB at least, 64 MiB at most. A record,
    /// with less than 200 bytes of headers, must fit into one.
    pub fn buffer_bytes(self, bytes: usize) -> LogOptions {
        LogOptions { buffer_bytes: bytes, ..self }
    }

    /// Sets how the space of segments is prepared: by default written with [`SyncPolicy::Always`],
    /// else allocated. It is allocated by default, too, where the file system copies on write
    /// (Btrfs, ZFS, bcachefs): a write over zeros goes to another place there, so they keep no room
    /// for it. Files of lines are not prepared.
    ///
    /// By default zeros are left out, too, while records become durable about as fast without them:
    /// the log measures both where zeros take a large part of the time, as on a disk whose bytes
    /// are the limit. With [`Prepare::Write`] every segment is written as a whole.
    pub fn prepare(self, prepare: Prepare) -> LogOptions {
        LogOptions { prepare: Some(prepare), ..self }
    }

    /// Sets the space that the opening prepares before it returns, a segment at most; by default
    /// 64 KiB of a new log, and none of one that exists. Records share the disk with no zeros until
    /// half of it is used. A new log whose records are waited for one by one thus begins as fast as
    /// one that reuses the files of removed segments. The opening takes as long as the disk does
    /// for so many bytes: half a second for 64 MiB at 125 MB/s.
    pub fn prepared_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { prepared_bytes: bytes, ..self }
    }

    /// Sets how writes are made durable. By default, opening a log with [`SyncPolicy::Always`]
    /// measures for a few milliseconds which way is faster here.
    pub fn durable(self, durable: Durable) -> LogOptions {
        LogOptions { durable: Some(durable), ..self }
    }

    /// Sets the permissions of the files of a log that this begins (`open(2)`), less the umask;
    /// 0o666 by default. A folder that this makes gets the same, with the right to enter it where
    /// there is the right to read: 0o600 for a log that its owner alone may see.
    ///
    /// A log keeps the permissions that it began with: every later file, also one that a repair
    /// writes anew, gets those of the file `lock`. To change them, change those of all files.
    pub fn mode(self, mode: u32) -> LogOptions {
        LogOptions { mode: Some(mode), ..self }
    }

    /// Shares the engine and the memory of a disk, in place of a ring and buffers of the log's own:
    /// [`LogOptions::buffers`] and two more of [`LogOptions::buffer_bytes`]. Opening fails with
    /// [`Error::Refused`](crate::Error::Refused) where they do not fit ([`Disk::set_memory`]). The
    /// log's readers have engines of their own.
    ///
    /// On a simulated disk ([`Disk::simulated`]) the log has no thread: waiting callers do that
    /// work. So a run with the same seed does the same operations in the same order.
    pub fn on(self, disk: &Disk) -> LogOptions {
        LogOptions { disk: Some(disk.clone()), ..self }
    }
}
