//! `Log`, the handle to append, wait, read and close, and `LogOptions`, which open it.

use super::append;
use super::driver::LogDriver;
use super::input::LogFiles;
use super::open::{self, Settings};
use super::promises::{Aim, Promises};
use super::reader::LogReader;
use super::state::{Goal, LogStats};
use super::ticket::{Awaited, Ticket};
use crate::{Disk, Effective, Error, Survives, SyncPolicy};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An append-only log in a folder, for any number of threads and tasks.
///
/// All clones share one log. An append returns the record's sequence at once, with a [`Ticket`] to
/// wait for: blocking, or in any async runtime. Records that arrive while a write is in flight
/// share the next write and flush. So the more producers wait, the more records each flush makes
/// durable.
///
/// ```
/// use wrote::{Log, SyncPolicy};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// let log = Log::options().sync(SyncPolicy::Always).open(&folder)?;
/// let append = |producer| {
///     let ticket = log.append(format!("hello from {producer}").as_bytes())?;
///     ticket.wait() // survives a power loss now
/// };
/// std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || append(number))).collect();
///     threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
/// })?;
/// for record in log.reader(0)? {
///     let record = record?;
///     println!("{}: {}", record.sequence, String::from_utf8_lossy(&record.bytes));
/// }
/// log.close()
/// # }
/// ```
///
/// # What survives
///
/// | [`crate::SyncPolicy`] | a waited-for record survives | every record survives a power loss |
/// |---|---|---|
/// | `Always` | a power loss, and so does every record before it (W9) | |
/// | `EverySec`, `Interval` | a crash of the process | after that interval, or [`Log::sync`] |
/// | `No` | a crash of the process | after [`Log::sync`], or [`Log::close`] |
///
/// The log writes a record without a waiting caller within about 10 ms, and flushes full segments
/// in the background. [`Log::survives`] reports on any record at any moment.
///
/// With `Always`, records bypass the page cache, into space that was written before. With every
/// other policy they go through it, so that a burst is as fast as memory, as far as the kernel
/// allows (`vm.dirty_ratio`). [`LogStats::flushed_bytes`](super::LogStats::flushed_bytes) shows how
/// far the disk is behind. [`Log::close`], [`Log::sync`] and [`Ticket::until_durable`], and the
/// next open after a kill, take as long as the disk needs for all of it.
///
/// With `EverySec` and `Interval` a flush begins in each interval, and a power loss loses what was
/// appended since the last completed flush began. Producers wait while a flush runs and the oldest
/// record that it may lose is older than two intervals, so that a slow disk slows them down.
///
/// # Errors
///
/// After a failed write or flush the log writes nothing more. Every ticket of a record that was not
/// safe by then, and every later call, returns that error (W2). Acknowledged records stay safe, and
/// the log can be reopened after them.
///
/// The log holds its folder open, and continues in it after a rename. If the folder or the current
/// segment's file was removed, the next flush fails with
/// [`std::io::ErrorKind::NotFound`]: no record is called durable that is in no folder.
///
/// A full disk (`ENOSPC`, `EDQUOT`) does not fail a log, because space is prepared before
/// records are written ([`LogOptions::zeros`]). Nor do other temporary
/// errors at a new segment: no descriptor (`EMFILE`, `ENFILE`), no memory (`ENOMEM`), a file size
/// limit (`EFBIG`). Calls that wait for a record without space return [`Error::NotYet`]. The
/// records stay in memory, in order, and may still be written: wait again ([`Log::ticket`])
/// instead of appending them again. Each later call, and the log's thread once a second, retries.
/// [`Log::close`] can then be called again too. Once the buffers are full, an append fails with
/// [`Error::File`], and its record was not accepted.
///
/// Dropping the last clone does the same as [`Log::close`], but can only log an error (crate `log`,
/// level error).
///
/// # Cost
///
/// Memory: [`LogOptions::buffers`] of
/// [`LogOptions::buffer_bytes`], for any amount of records (W8).
/// Disk: besides the records, up to three times the bytes appended since opening, until the log is
/// closed: at least 64 KiB, at most two segments. By default [`crate::SyncPolicy::Always`] writes
/// zeros there ([`LogOptions::zeros`]). Each batch starts at a block of 4
/// KiB, so a record with its own flush takes that much. One thread, which sleeps while no producer
/// appends; with every policy but `Always`, two more, which flush and allocate.
pub struct Log(Arc<LogDriver>);

impl Clone for Log {
    fn clone(&self) -> Log {
        self.0.add_handle();
        Log(Arc::clone(&self.0))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.drop_handle();
    }
}

impl Log {
    /// Opens the log in `folder` with the defaults of [`Log::options`], or creates it. Fails like
    /// [`LogOptions::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Log, Error> {
        Log::options().open(folder)
    }

    /// Returns the options of a log, as a builder.
    pub fn options() -> LogOptions {
        LogOptions::default()
    }

    /// Appends a record: copies its bytes and gives it its sequence. It is not written yet. Waits
    /// while all buffers are in flight.
    ///
    /// Fails with [`Error::TooLong`] for a record that does not fit into a buffer, and with
    /// [`Error::Refused`] after [`Log::close`].
    pub fn append(&self, bytes: &[u8]) -> Result<Ticket<'_>, Error> {
        append::append(&self.0, bytes, true).map(waited)
    }

    /// Appends records without waiting, atomically like [`Log::append_all`] if they are several.
    /// Returns the ticket of the last, or `None` while all buffers are in flight: nothing is
    /// appended then. Tasks await [`Log::room`] and try again. Fails like [`Log::append`] and
    /// [`Log::append_all`].
    ///
    /// ```
    /// use wrote::{Error, Log};
    ///
    /// async fn save(log: &Log, record: &[u8]) -> Result<(), Error> {
    ///     loop {
    ///         if let Some(ticket) = log.try_append(&[record])? {
    ///             return ticket.await;
    ///         }
    ///         log.room().await?;
    ///     }
    /// }
    /// ```
    pub fn try_append(&self, records: &[impl AsRef<[u8]>]) -> Result<Option<Ticket<'_>>, Error> {
        append::append_group(&self.0, records, false)
    }

    /// Appends consecutive records atomically: after a crash all or none exist. Returns their
    /// sequences, and one ticket for all. Waits while all buffers are in flight.
    ///
    /// They are written in one batch. Such a batch is valid only if every record in it is;
    /// otherwise it is ignored on open and by readers. So a following reader also sees all of them
    /// or none. If a disk later damages a durable record, only that record is lost: a repair keeps
    /// the others.
    ///
    /// Fails with [`Error::TooLong`] for more bytes than fit into one buffer
    /// ([`LogOptions::buffer_bytes`]), and with [`Error::Refused`] for no records, for more than
    /// 1,048,576, and after [`Log::close`].
    ///
    /// ```
    /// use wrote::Log;
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// let log = Log::open(&folder)?;
    /// let (sequences, ticket) = log.append_all(&["debit 5 from 1", "credit 5 to 2"])?;
    /// ticket.wait()?;
    /// assert_eq!(sequences, 0..2);
    /// # log.close()
    /// # }
    /// ```
    pub fn append_all(
        &self,
        records: &[impl AsRef<[u8]>],
    ) -> Result<(Range<u64>, Ticket<'_>), Error> {
        let ticket = append::append_group(&self.0, records, true).map(waited)?;
        let end = ticket.sequence() + 1;
        Ok((end - records.len() as u64..end, ticket))
    }

    /// Removes segments whose records are all before `sequence`, and returns the first remaining
    /// sequence. The removal is durable when this returns.
    ///
    /// It removes whole segments, so it may keep earlier records, but never removes later ones. It
    /// keeps the current segment, and one sealed segment until a record after it is durable. It
    /// waits until full segments to be removed are durable. Readers in a removed segment read to
    /// its end, as with [`LogOptions::retain_bytes`].
    ///
    /// After an error some segments may be gone, oldest first, and the log continues. Fails with
    /// [`Error::Refused`] after [`Log::close`].
    pub fn trim_before(&self, sequence: u64) -> Result<u64, Error> {
        let driver = &self.0;
        driver.visit(|flusher| flusher.trim(&driver.state, sequence))
    }

    /// Removes record `sequence` and all later ones from the log. The next record gets that
    /// sequence. The cut is durable when this returns; after an earlier crash, either all records
    /// exist or only those before the cut.
    ///
    /// Concurrent appends come before the cut, and are removed, or after it. A ticket of a removed
    /// record is answered as if the cut came later: its record was durable. A cut after the last
    /// record does nothing.
    ///
    /// A reader opened before may return removed records that it has read ahead, until it is moved
    /// by [`LogReader::seek`] or reaches their end. Then it fails with [`Error::Truncated`] if it
    /// has passed the cut, and continues after a seek; otherwise it continues with the new records.
    /// A [stream](LogReader::into_stream) ends with that error.
    ///
    /// It copies at most the records of one batch, and frees the space in whole blocks. Fails with
    /// [`Error::Refused`] if the records before the cut were removed already; and after
    /// [`Log::close`]. After an error in the middle
    /// of a cut the log fails (W2): the next open finds one state or the other.
    ///
    /// ```
    /// use wrote::Log;
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// let log = Log::open(&folder)?;
    /// for text in ["one", "two", "three"] {
    ///     log.append(text.as_bytes())?.wait()?;
    /// }
    /// log.truncate_from(1)?;
    /// assert_eq!(log.append(b"another two")?.sequence(), 1);
    /// # log.close()
    /// # }
    /// ```
    pub fn truncate_from(&self, sequence: u64) -> Result<(), Error> {
        let driver = &self.0;
        driver.state.process.check()?;
        let files = LogFiles::open_in(driver.disk.as_ref(), &driver.state.terms.folder)?;
        driver.visit(|flusher| flusher.cut(&driver.state, &files, sequence))
    }

    /// Waits until a buffer accepts records, or refuses them, so that the next [`Log::try_append`]
    /// probably does not return `None`. Another producer may have taken the room by then. Blocks no
    /// thread. Fails like [`Log::append`] on a full disk and after an error.
    pub async fn room(&self) -> Result<(), Error> {
        let driver = &self.0;
        let end = driver.state.freed.done() + 1;
        Awaited::new(driver, Aim { goal: Goal::Room, end, cuts: None, gate: 0 }).await
    }

    /// Waits until record `sequence` is written, even if it is not appended yet, as for a follower.
    /// Does not make the log work, and blocks no thread. Fails like [`Ticket::wait`], including
    /// with the error of a full disk, and with [`Error::Refused`] if the log is closed before that
    /// record.
    pub async fn written(&self, sequence: u64) -> Result<(), Error> {
        let (goal, end) = (Goal::Written, sequence.saturating_add(1));
        Awaited::new(&self.0, Aim { goal, end, cuts: None, gate: 0 }).await
    }

    /// Returns the ticket of a record, appended by any caller.
    pub fn ticket(&self, sequence: u64) -> Ticket<'_> {
        let driver = &self.0;
        Ticket::new(driver, sequence, driver.state.common_gate())
    }

    /// Returns what a record survives now.
    pub fn survives(&self, sequence: u64) -> Survives {
        self.0.state.survives(sequence)
    }

    /// Makes every record appended so far durable, with any [`crate::SyncPolicy`].
    pub fn sync(&self) -> Result<(), Error> {
        let state = &self.0.state;
        state.check()?;
        let (goal, cuts, gate) = (Goal::Durable, Some(state.cuts()), state.common_gate());
        self.0.wait(&Aim { goal, end: state.next_sequence(), cuts, gate })
    }

    /// Returns the sequence of the next record, unless another thread appends before; 0 in a child
    /// process.
    pub fn next_sequence(&self) -> u64 {
        let state = &self.0.state;
        if state.process.is_this() { state.next_sequence() } else { 0 }
    }

    /// Returns the sequence before which all records were passed to the kernel. Costs one load.
    pub fn written_sequence(&self) -> u64 {
        self.0.state.written.done()
    }

    /// Returns the sequence before which all records are durable. Costs one load.
    pub fn durable_sequence(&self) -> u64 {
        self.0.state.durable.done()
    }

    /// Reads records from `from` on, as far as they were passed to the kernel. The reader does not
    /// keep the log open. Fails like [`LogReader::open`].
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        let driver = &self.0;
        driver.state.process.check()?;
        let folder = &driver.state.terms.folder;
        let mut reader = LogReader::in_folder(driver.disk.as_ref(), folder, from)?;
        reader.own = Some(Arc::clone(driver));
        Ok(reader)
    }

    #[cfg(test)]
    pub(super) fn driver(&self) -> &Arc<LogDriver> {
        &self.0
    }

    /// Returns the error that keeps the log from writing records: a failed write or flush,
    /// permanently (W2), or [`Error::NotYet`] on a full disk ([`Log::is_waiting_for_room`]).
    pub fn check(&self) -> Result<(), Error> {
        let state = &self.0.state;
        state.check()?;
        state.lack().map_or(Ok(()), Err)
    }

    /// Returns whether the log keeps records in memory because the disk is full, or there is no
    /// descriptor or memory for the next segment. It continues by itself once an attempt, at least
    /// one per second, finds room.
    pub fn is_waiting_for_room(&self) -> bool {
        let state = &self.0.state;
        !state.has_failed() && state.lacks_room()
    }

    /// Returns the findings of the opening, and the log's figures so far; no figures in a child
    /// process.
    pub fn stats(&self) -> LogStats {
        self.0.state.stats()
    }

    /// Returns the options in effect, and every fallback; nothing in a child process.
    pub fn effective(&self) -> Effective {
        self.0.effective()
    }

    /// Ends the log: writes all records, makes them durable, and marks the log as closed. Later
    /// appends by any clone are refused; the log can be reopened. Returns any error since opening.
    pub fn close(&self) -> Result<(), Error> {
        self.0.close()
    }
}

/// Unwraps the ticket of an append that waits for room.
fn waited(ticket: Option<Ticket<'_>>) -> Ticket<'_> {
    ticket.expect("an append that waits ends with a place")
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = &self.0.state;
        f.debug_struct("Log")
            .field("folder", &state.terms.folder.path())
            .field("sync", &state.terms.sync)
            .finish_non_exhaustive()
    }
}

/// Options of a [`Log`], which [`LogOptions::open`] opens: by default with [`SyncPolicy::Always`],
/// segments of 64 MiB, and no retention.
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
#[derive(Clone, Debug, Default)]
pub struct LogOptions(Settings);

impl LogOptions {
    /// Sets when records become durable, and so what a [`Ticket`] waits for;
    /// [`SyncPolicy::Always`] by default.
    pub fn sync(self, sync: SyncPolicy) -> LogOptions {
        LogOptions(Settings { sync, ..self.0 })
    }

    /// Sets the approximate length of a segment in bytes: 64 MiB by default, at least two buffers.
    /// With [zeros](LogOptions::zeros) an opened log starts with shorter segments, from 1/64 on,
    /// each twice as long as the previous.
    pub fn segment_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { segment_bytes: bytes, ..self.0 })
    }

    /// Sets the age at which the next segment is started; by default a segment ends only when full.
    pub fn segment_age(self, age: Duration) -> LogOptions {
        LogOptions(Settings { segment_age: Some(age), ..self.0 })
    }

    /// Sets the maximum number of bytes that the log uses on disk; beyond them it removes its
    /// oldest segments. It never removes the current segment, so the log can exceed the limit by
    /// one segment, and by the next while that is prepared. By default it removes none.
    ///
    /// With [zeros](LogOptions::zeros) an open log keeps the file of one removed segment, under a
    /// temporary name, for a later segment. Until that one is full, the bytes of removed records
    /// remain in it. The log reuses only a file that it has written since opening, that has no
    /// second name, and that no program on this system has open (`fcntl(2)`, F_SETLEASE). So a
    /// reader in a removed segment reads to its end, and a copy by hard links is unaffected. A
    /// program that opens a segment at the very moment of its removal may find other bytes, which
    /// readers recognize as invalid.
    pub fn retain_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { retain_bytes: Some(bytes), ..self.0 })
    }

    /// Sets the minimum time for which the log keeps records. When it starts a segment, it removes
    /// all segments whose last record is older. By default it removes none.
    pub fn retain_age(self, age: Duration) -> LogOptions {
        LogOptions(Settings { retain_age: Some(age), ..self.0 })
    }

    /// Sets the number of buffers that collect records: 8 by default, at least 2.
    pub fn buffers(self, buffers: u32) -> LogOptions {
        LogOptions(Settings { buffers, ..self.0 })
    }

    /// Sets the size of each buffer: 1 MiB by default, between 4 KiB and 64 MiB. A record, with
    /// less than 200 bytes of headers, must fit into one.
    pub fn buffer_bytes(self, bytes: usize) -> LogOptions {
        LogOptions(Settings { buffer_bytes: bytes, ..self.0 })
    }

    /// Sets whether zeros are written into the space of a segment before its first record; by
    /// default with [`SyncPolicy::Always`]. Each byte of the log then costs two on the device, but
    /// a durable record is one write over existing blocks, which needs no journal. A log that
    /// removes its oldest segments ([`LogOptions::retain_bytes`],
    /// [`Log::trim_before`]) reuses their files for later ones instead,
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
        LogOptions(Settings { zeros: Some(zeros), ..self.0 })
    }

    /// Sets the space prepared before opening returns, at most a segment; by default 64 KiB for a
    /// new log, and none for an existing one. No zeros compete with records for the disk until half
    /// of it is used. A new log whose records are awaited one by one thus starts as fast as one
    /// that reuses files of removed segments. Opening takes as long as the disk needs for these
    /// bytes: half a second for 64 MiB at 125 MB/s.
    pub fn prepared_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { prepared_bytes: bytes, ..self.0 })
    }

    /// Sets how writes are made durable: by one call with `RWF_DSYNC`, or else by a write and
    /// `fdatasync(2)`. By default, opening a log with [`SyncPolicy::Always`] measures for a few
    /// milliseconds which is faster ([`calibrate`](crate::file::calibrate)).
    pub fn dsync(self, dsync: bool) -> LogOptions {
        LogOptions(Settings { dsync: Some(dsync), ..self.0 })
    }

    /// Sets the permissions of the files of a new log (`open(2)`), minus the umask; 0o666 by
    /// default. A created folder gets the same, plus search permission wherever read is allowed:
    /// 0o600 makes a log private to its owner.
    ///
    /// A log keeps its original permissions: every later file, even one rewritten by a repair, gets
    /// the permissions of the file `lock`. To change them, change all files.
    pub fn mode(self, mode: u32) -> LogOptions {
        LogOptions(Settings { mode: Some(mode), ..self.0 })
    }

    /// Writes by the method of a disk's engine, or to its simulated disk. The engine and the
    /// buffers are the log's own.
    ///
    /// On a simulated disk ([`Disk::simulated`]) the log has no thread: waiting callers do that
    /// work, so a run with the same seed performs the same operations in the same order.
    pub fn on(self, disk: &Disk) -> LogOptions {
        LogOptions(Settings { disk: Some(disk.clone()), ..self.0 })
    }

    /// Opens the log in `folder`, which is created if missing.
    ///
    /// Fails with [`Error::Refused`] if this or another process has the log open for writing, or if
    /// the folder has other files and no log; with [`Error::Damaged`] if durable records can't be
    /// read.
    pub fn open(&self, folder: impl AsRef<Path>) -> Result<Log, Error> {
        open::open(&self.0, folder.as_ref()).map(Log)
    }
}
