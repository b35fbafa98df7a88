//! `Log`, the handle for appending, waiting, reading and closing, and `LogOptions`, which opens it.

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
/// All clones share one log. An append returns the record's sequence at once, with a [`Ticket`] on
/// which to wait, either by blocking or in any async runtime. Records that arrive while a write is
/// in flight share the next write and flush. So the more producers wait, the more records each
/// flush makes durable.
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
/// If no caller waits for a record, the log still writes it within about 10 ms. It flushes full
/// segments in the background. [`Log::survives`] reports what any record survives at any moment.
///
/// With `Always`, records bypass the page cache and go into space that was written before. With
/// every other policy they go through the page cache, so that a burst is as fast as memory, as far
/// as the kernel allows (`vm.dirty_ratio`).
/// [`LogStats::flushed_bytes`](super::LogStats::flushed_bytes) shows how far the disk is behind.
/// [`Log::close`], [`Log::sync`], [`Ticket::until_durable`], and opening the log after a kill take
/// as long as the disk needs for all of this data.
///
/// With `EverySec` and `Interval`, a flush begins in each interval, and a power loss destroys the
/// records appended after the start of the last completed flush. If a flush is in flight and the
/// oldest record that is not durable is older than two intervals, producers wait for the flush, so
/// that a slow disk slows them down.
///
/// # Errors
///
/// After a failed write or flush, the log writes nothing more. Every ticket of a record that was
/// not safe by then, and every later call, returns the same error (W2). Acknowledged records stay
/// safe, and the log can be reopened; it then continues after them.
///
/// The log holds its folder open, and continues in it after a rename. If the folder or the file of
/// the current segment has been removed, the next flush fails with
/// [`std::io::ErrorKind::NotFound`], because records in a file without a name would not survive.
///
/// A full disk (`ENOSPC`, `EDQUOT`) does not fail a log, because space is prepared before records
/// are written ([`LogOptions::zeros`]). Other temporary errors at the start of a segment do not
/// fail it either: a lack of file descriptors (`EMFILE`, `ENFILE`) or of memory (`ENOMEM`), or a
/// file size limit (`EFBIG`). Calls that wait for a record without space return [`Error::NotYet`].
/// The records stay in memory, in order, and may still be written, so don't append them again; wait
/// for them again ([`Log::ticket`]). Each later call retries, and so does the log's thread once a
/// second. If [`Log::close`] returns that error, it can be called again, too. Once the buffers are
/// full, an append fails with [`Error::File`], and its record is not accepted.
///
/// Dropping the last clone closes the log like [`Log::close`], but can only log an error (with the
/// crate `log`, at level error).
///
/// # Cost
///
/// Memory: [`LogOptions::buffers`] buffers of [`LogOptions::buffer_bytes`] each, however many
/// records there are (W8). Disk: in addition to the records, until the log is closed, up to three
/// times the number of bytes appended since it was opened, but at least 64 KiB and at most two
/// segments. By default, [`crate::SyncPolicy::Always`] writes zeros to this space
/// ([`LogOptions::zeros`]). Each batch starts at a block of 4 KiB, so a record with its own flush
/// takes up at least one block. Threads: one, which sleeps while no producer appends; with every
/// policy but `Always`, two more, which flush and allocate.
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

    /// Returns a builder with the default options of a log.
    pub fn options() -> LogOptions {
        LogOptions::default()
    }

    /// Appends a record: copies its bytes and assigns its sequence, but does not wait until it is
    /// written. Waits while all buffers are in flight.
    ///
    /// Fails with [`Error::TooLong`] if the record does not fit into a buffer, and with
    /// [`Error::Refused`] after [`Log::close`].
    pub fn append(&self, bytes: &[u8]) -> Result<Ticket<'_>, Error> {
        append::append(&self.0, bytes, true).map(waited)
    }

    /// Appends records without waiting; several records are appended atomically, as with
    /// [`Log::append_all`]. Returns the ticket of the last record. While all buffers are in flight,
    /// appends nothing and returns `None`; tasks then await [`Log::room`] and try again. Fails like
    /// [`Log::append`] and [`Log::append_all`].
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

    /// Appends consecutive records atomically: after a crash, either all or none of them exist.
    /// Returns their sequences, and one ticket for all. Waits while all buffers are in flight.
    ///
    /// The records are written in one batch, which is valid only if every record in it is valid;
    /// otherwise, opening the log and readers ignore it. So a reader that follows the log also sees
    /// either all of them or none. If a disk later damages a durable record, only that record is
    /// lost: a repair keeps the others.
    ///
    /// Fails with [`Error::TooLong`] if the records don't fit into one buffer
    /// ([`LogOptions::buffer_bytes`]). Fails with [`Error::Refused`] for no records, for more than
    /// 1,048,576 records, and after [`Log::close`].
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

    /// Removes the segments whose records are all before `sequence`, and returns the sequence of
    /// the first remaining record. The removal is durable when this function returns.
    ///
    /// Only whole segments are removed, so some records before `sequence` may remain, but record
    /// `sequence` and later ones are never removed. The current segment is kept, and so is one
    /// sealed segment until a record after it is durable. If full segments are to be removed, the
    /// call waits until they are durable. Readers in a removed segment read to its end, as with
    /// [`LogOptions::retain_bytes`].
    ///
    /// After an error, some of the segments may have been removed, the oldest first, and the log
    /// continues. Fails with [`Error::Refused`] after [`Log::close`].
    pub fn trim_before(&self, sequence: u64) -> Result<u64, Error> {
        let driver = &self.0;
        driver.visit(|flusher| flusher.trim(&driver.state, sequence))
    }

    /// Removes record `sequence` and all later records from the log. The next record gets that
    /// sequence. The cut is durable when this function returns. If a crash occurs before that,
    /// either all records exist or only those before the cut.
    ///
    /// A concurrent append comes either before the cut, so that its record is removed, or after it.
    /// A wait for a removed record succeeds as if the cut had come later, because the record became
    /// durable before it was removed. A cut after the last record does nothing.
    ///
    /// A reader that was opened before the cut may still return removed records that it has read
    /// ahead, until it is moved by [`LogReader::seek`] or reaches the end of these records. If it
    /// has passed the cut by then, it fails with [`Error::Truncated`], and continues after a seek;
    /// otherwise it continues with the new records. A [stream](LogReader::into_stream) ends with
    /// that error.
    ///
    /// The cut copies at most the records of one batch, and frees the space in whole blocks. Fails
    /// with [`Error::Refused`] if the records before the cut have been removed already, and after
    /// [`Log::close`]. After an error in the middle of a cut, the log fails (W2), and the next open
    /// finds the log either with or without the cut.
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

    /// Waits until a buffer accepts records, or the log refuses them, so that the next
    /// [`Log::try_append`] probably does not return `None`. Another producer may have taken the
    /// room by then. Does not block the thread. Fails like [`Log::append`] on a full disk and after
    /// an error.
    pub async fn room(&self) -> Result<(), Error> {
        let driver = &self.0;
        let end = driver.state.freed.done() + 1;
        Awaited::new(driver, Aim { goal: Goal::Room, end, cuts: None, gate: 0 }).await
    }

    /// Waits until record `sequence` is written, even if it has not been appended yet, as a
    /// follower of the log requires. Does not cause a write, and does not block the thread. Fails
    /// like [`Ticket::wait`], including with the error of a full disk. Fails with
    /// [`Error::Refused`] if the log is closed before it reaches that record.
    pub async fn written(&self, sequence: u64) -> Result<(), Error> {
        let (goal, end) = (Goal::Written, sequence.saturating_add(1));
        Awaited::new(&self.0, Aim { goal, end, cuts: None, gate: 0 }).await
    }

    /// Returns a ticket for a record that any caller has appended.
    pub fn ticket(&self, sequence: u64) -> Ticket<'_> {
        let driver = &self.0;
        Ticket::new(driver, sequence, driver.state.common_gate())
    }

    /// Returns what record `sequence` survives now.
    pub fn survives(&self, sequence: u64) -> Survives {
        self.0.state.survives(sequence)
    }

    /// Makes every record appended so far durable, whatever the [`crate::SyncPolicy`].
    pub fn sync(&self) -> Result<(), Error> {
        let state = &self.0.state;
        state.check()?;
        let (goal, cuts, gate) = (Goal::Durable, Some(state.cuts()), state.common_gate());
        self.0.wait(&Aim { goal, end: state.next_sequence(), cuts, gate })
    }

    /// Returns the sequence of the next record, provided that no other thread appends first; 0 in a
    /// child process.
    pub fn next_sequence(&self) -> u64 {
        let state = &self.0.state;
        if state.process.is_this() { state.next_sequence() } else { 0 }
    }

    /// Returns the sequence before which all records have been passed to the kernel. Costs one
    /// load.
    pub fn written_sequence(&self) -> u64 {
        self.0.state.written.done()
    }

    /// Returns the sequence before which all records are durable. Costs one load.
    pub fn durable_sequence(&self) -> u64 {
        self.0.state.durable.done()
    }

    /// Returns a reader of the records from `from` on, as far as they have been passed to the
    /// kernel. The reader does not keep the log open. Fails like [`LogReader::open`].
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

    /// Fails with the error that keeps the log from writing records: a failed write or flush, which
    /// is permanent (W2), or [`Error::NotYet`] on a full disk ([`Log::is_waiting_for_room`]).
    pub fn check(&self) -> Result<(), Error> {
        let state = &self.0.state;
        state.check()?;
        state.lack().map_or(Ok(()), Err)
    }

    /// Returns whether the log keeps records in memory because the disk is full, or because there
    /// is no file descriptor or memory for the next segment. The log continues once an attempt
    /// finds room. It makes at least one attempt per second.
    pub fn is_waiting_for_room(&self) -> bool {
        let state = &self.0.state;
        !state.has_failed() && state.lacks_room()
    }

    /// Returns what opening the log found, and its figures so far; empty figures in a child
    /// process.
    pub fn stats(&self) -> LogStats {
        self.0.state.stats()
    }

    /// Returns the options in effect and every fallback; the default value in a child process.
    pub fn effective(&self) -> Effective {
        self.0.effective()
    }

    /// Closes the log: writes all records, makes them durable, and marks the log as closed. Later
    /// appends by any clone are refused; the log can be reopened. If the log has failed since it
    /// was opened, returns that error.
    pub fn close(&self) -> Result<(), Error> {
        self.0.close()
    }
}

/// Returns the ticket of an append that waits for room, and so always has one.
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

/// The options of a [`Log`], which [`LogOptions::open`] opens. The defaults are
/// [`SyncPolicy::Always`], segments of 64 MiB, and no retention.
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
    /// Sets when records become durable, and so what a [`Ticket`] waits for. The default is
    /// [`SyncPolicy::Always`].
    pub fn sync(self, sync: SyncPolicy) -> LogOptions {
        LogOptions(Settings { sync, ..self.0 })
    }

    /// Sets the approximate length of a segment in bytes; the default is 64 MiB, the minimum two
    /// buffers. With [zeros](LogOptions::zeros), a log starts with shorter segments when it is
    /// opened: the first has 1/64 of that length, and each of the following ones is twice as long
    /// as the previous one.
    pub fn segment_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { segment_bytes: bytes, ..self.0 })
    }

    /// Sets the age of a segment at which the next one is started. By default, a segment ends only
    /// when it is full.
    pub fn segment_age(self, age: Duration) -> LogOptions {
        LogOptions(Settings { segment_age: Some(age), ..self.0 })
    }

    /// Sets the maximum number of bytes that the log may use on disk. Beyond it, the log removes
    /// its oldest segments. The current segment is never removed, so the log can exceed the limit
    /// by one segment, and by another while the next segment is being prepared. By default, no
    /// segment is removed.
    ///
    /// With [zeros](LogOptions::zeros), an open log keeps the file of one removed segment, under a
    /// temporary name, for a later segment. Bytes of removed records remain in the file until the
    /// later segment is full. The log reuses a file only if the log has written it since it was
    /// opened, if the file has no second name, and if no program on this system has it open
    /// (`fcntl(2)`, F_SETLEASE). So a reader in a removed segment reads to its end, and a copy by
    /// hard links is unaffected. A program that opens a segment at the very moment of its removal
    /// may find other bytes, which readers recognize as invalid.
    pub fn retain_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { retain_bytes: Some(bytes), ..self.0 })
    }

    /// Sets the minimum time for which the log keeps records. When the log starts a segment, it
    /// removes all segments whose last record is older. By default, no segment is removed.
    pub fn retain_age(self, age: Duration) -> LogOptions {
        LogOptions(Settings { retain_age: Some(age), ..self.0 })
    }

    /// Sets the number of buffers that collect records; the default is 8, the minimum 2.
    pub fn buffers(self, buffers: u32) -> LogOptions {
        LogOptions(Settings { buffers, ..self.0 })
    }

    /// Sets the size of each buffer in bytes; the default is 1 MiB, the range 4 KiB to 64 MiB. A
    /// record with its headers, which are shorter than 200 bytes, must fit into one buffer.
    pub fn buffer_bytes(self, bytes: usize) -> LogOptions {
        LogOptions(Settings { buffer_bytes: bytes, ..self.0 })
    }

    /// Sets whether zeros are written into the space of a segment before its first record. The
    /// default is yes with [`SyncPolicy::Always`], and no otherwise. With zeros, each byte of the
    /// log costs two bytes on the device, but a durable record is a single write over existing
    /// blocks, which needs no journal. If a log removes its oldest segments
    /// ([`LogOptions::retain_bytes`], [`Log::trim_before`]), it reuses their files for later
    /// segments instead, and writes each byte once.
    ///
    /// Without zeros, the space is only allocated (`fallocate(2)`), and the first flush after each
    /// write must record in the file system's journal that the blocks have been written. On
    /// copy-on-write file systems (Btrfs, ZFS, bcachefs), the space is only allocated by default: a
    /// write over zeros goes to other blocks, so the zeros would reserve nothing.
    ///
    /// By default, the next segment also gets no zeros if a flush in the last one covered more than
    /// 64 KiB of records on average, because zeros would then take longer than they save. With
    /// `true`, every segment is filled with zeros.
    pub fn zeros(self, zeros: bool) -> LogOptions {
        LogOptions(Settings { zeros: Some(zeros), ..self.0 })
    }

    /// Sets the number of bytes of space that are prepared before [`LogOptions::open`] returns, at
    /// most a segment. The default is 64 KiB for a new log, and none for an existing one. Until
    /// half of this space is used, no zeros compete with records for the disk. So a new log whose
    /// records are awaited one by one starts as fast as a log that reuses the files of removed
    /// segments. Opening takes as long as the disk needs for these bytes: half a second for 64 MiB
    /// at 125 MB/s.
    pub fn prepared_bytes(self, bytes: u64) -> LogOptions {
        LogOptions(Settings { prepared_bytes: bytes, ..self.0 })
    }

    /// Sets how writes are made durable: by a single call with `RWF_DSYNC`, or by a write and
    /// `fdatasync(2)`. By default, opening a log with [`SyncPolicy::Always`] measures for a few
    /// milliseconds which method is faster ([`calibrate`](crate::file::calibrate)).
    pub fn dsync(self, dsync: bool) -> LogOptions {
        LogOptions(Settings { dsync: Some(dsync), ..self.0 })
    }

    /// Sets the permissions of the files of a new log (`open(2)`), to which the umask applies; the
    /// default is 0o666. If the folder is created, it gets the same permissions, plus search
    /// permission wherever read permission is granted. 0o600 makes a log private to its owner.
    ///
    /// A log keeps its original permissions: every later file, even one rewritten by a repair, gets
    /// the permissions of the file `lock`. To change the permissions, change all files.
    pub fn mode(self, mode: u32) -> LogOptions {
        LogOptions(Settings { mode: Some(mode), ..self.0 })
    }

    /// Sets the disk. The log writes by the method of the disk's engine, or, if the disk is
    /// simulated, to that disk. The log still has an engine and buffers of its own.
    ///
    /// On a simulated disk ([`Disk::simulated`]), the log has no thread. Waiting callers do the
    /// work of the thread, so runs with the same seed perform the same operations in the same
    /// order.
    pub fn on(self, disk: &Disk) -> LogOptions {
        LogOptions(Settings { disk: Some(disk.clone()), ..self.0 })
    }

    /// Opens the log in `folder`, and creates the folder if it is missing.
    ///
    /// Fails with [`Error::Refused`] if this or another process has the log open for writing, or if
    /// the folder has other files but no log. Fails with [`Error::Damaged`] if durable records
    /// can't be read.
    pub fn open(&self, folder: impl AsRef<Path>) -> Result<Log, Error> {
        open::open(&self.0, folder.as_ref()).map(Log)
    }
}
