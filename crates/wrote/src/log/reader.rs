//! `LogReader`, which reads a log by sequence, even while the log is being written.

mod cursor;
mod following;
mod stream;
#[cfg(test)]
mod tests;

use super::driver::LogDriver;
use super::input::{LogFiles, ReadBy};
use super::names;
use super::watch::Bell;

use crate::engine::Folder;
use crate::error::Tried;
use crate::{Action, Disk, Error};
use cursor::Cursor;
use following::{Following, Look};
use futures_core::Stream;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stream::LogStream;

/// One record of a log. It either owns its bytes or borrows them from a reader
/// ([`LogReader::next_lent`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<B = Vec<u8>> {
    /// The sequence of the record. The first record of a log has the sequence 0.
    pub sequence: u64,
    /// The appended bytes.
    pub bytes: B,
    /// The time when the log passed this record's batch to the disk, by the writer's clock. The
    /// records of a batch share one time. `None` if a repair has rewritten the record.
    pub written_at: Option<SystemTime>,
}

/// A reader that returns the records of a log in order.
///
/// A reader sees every record that any process has passed to the kernel. Such a record may not be
/// durable yet, and could be lost if the kernel crashes. A reader takes no lock. It reads ahead,
/// and bypasses the page cache if the file system supports that.
///
/// A reader holds the folder open, and continues in it after a rename or a change of the process's
/// working directory.
///
/// A following reader sleeps at the end of the log until the kernel reports a change in the log's
/// folder (`inotify(7)`) by any process on the same machine. It also checks once a second. It
/// checks every 20 ms instead while the folder does not exist, if the user has no inotify instances
/// left (`fs.inotify.max_user_instances`), and on a network file system, which does not report
/// changes by other machines. A full disk that blocks the writer does not stop the reader. A lost
/// durable record makes the reader fail, within a few seconds after it has reached that record.
///
/// If retention removes segments before they are read, the reader continues with the first
/// remaining record and counts the skipped ones ([`LogReader::passed_over`]).
pub struct LogReader {
    files: LogFiles,
    /// The sequence of the next record to read.
    from: u64,
    /// The state of a reader that waits at the end of the log; `None` if the reader stops there.
    following: Option<Following>,
    /// The log, if this process has it open. A following reader finishes once this log is closed,
    /// and fails once it has failed.
    pub(super) own: Option<Arc<LogDriver>>,
    /// The number of records that were removed before the reader reached them.
    passed_over: u64,
    /// Whether the folder may be missing, because the log does not exist yet.
    is_expected: bool,
    cursor: Option<Box<Cursor>>,
    failed: Option<Error>,
    is_reported: bool,
}

// SAFETY: the fields that are not `Send` are reference-counted pointers among the engine, its pool
// and the buffers leased by the cursor's input. All of them are within the reader and none is
// handed out, so they move together. The engine is created for use by callers on any thread.
unsafe impl Send for LogReader {}

impl LogReader {
    /// Opens the log in `folder` for reading, from record `from` to its current end. Takes no lock:
    /// another process may have the log open for writing. If retention has removed that record,
    /// starts at the first remaining one. Fails with [`Error::Refused`] if the folder has no log.
    pub fn open(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        LogReader::in_folder(None, &Folder::open(folder.as_ref())?, from)
    }

    /// Opens a log that may not exist yet, and otherwise works like [`LogReader::open`]. Until a
    /// process creates the log, it is empty. The folder and its parents may be missing. Fails if
    /// they exist but can't be read.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wrote::{Log, LogReader};
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// let mut reader = LogReader::expect(&folder, 0)?.following()?; // there is nothing yet
    /// let log = Log::open(&folder)?; // here, or in another process
    /// log.append(b"hello")?.wait()?;
    /// let record = reader.next_within(Duration::from_secs(10))?.expect("it was written");
    /// assert_eq!((record.sequence, record.bytes), (0, b"hello".to_vec()));
    /// # log.close()
    /// # }
    /// ```
    pub fn expect(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        // The path must refer to the same folder even after a change of the working directory.
        let folder =
            std::path::absolute(folder.as_ref()).tried(folder.as_ref(), Action::Examine)?;
        LogReader::new(LogFiles::open_in(None, &Folder::named(&folder))?, from, true)
    }

    /// Works like [`LogReader::open`], but on the given disk. On a simulated disk, an empty folder
    /// is an empty log.
    pub fn open_on(disk: &Disk, folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        let folder = Disk::system_of(Some(disk)).hold(folder.as_ref(), || Ok(()))?;
        LogReader::in_folder(Some(disk), &folder, from)
    }

    /// Makes the reader wait at the end of the log for more records, which any process may write.
    ///
    /// A reader from [`Log::reader`](super::Log::reader) ends after the last record once its log is
    /// closed, by [`Log::close`](super::Log::close) or by dropping its last clone. If the log
    /// fails, the reader ends with the log's error:
    ///
    /// ```
    /// use wrote::Log;
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// let log = Log::open(&folder)?;
    /// let tail = log.reader(0)?.following()?;
    /// let reading = std::thread::spawn(move || tail.collect::<Result<Vec<_>, _>>());
    /// log.append(b"hello")?.wait()?;
    /// log.close()?;
    /// assert_eq!(reading.join().unwrap()?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn following(mut self) -> Result<LogReader, Error> {
        let mut following = Following::new();
        following.enter(&self.files.folder);
        self.following = Some(following);
        let bell = self.bell()?;
        if let Some((own, bell)) = self.own.as_ref().zip(bell) {
            own.state.ring_when_over(&bell);
        }
        Ok(self)
    }

    /// Converts the reader into a stream of its records, for any async runtime. The stream of a
    /// following reader waits for more records without a time limit, but ends when an open log of
    /// this process is closed. Any other stream ends at the end of the log.
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// use wrote::Log;
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// let log = Log::open(&folder)?;
    /// let mut stream = log.reader(0)?.following()?.into_stream()?;
    /// log.append(b"hello")?.wait()?;
    /// log.close()?; // the stream ends after the last record
    /// # struct Unparker(std::thread::Thread);
    /// # impl std::task::Wake for Unparker {
    /// #     fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
    /// # }
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let waker = std::sync::Arc::new(Unparker(std::thread::current())).into();
    /// #     loop {
    /// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
    /// #             std::task::Poll::Ready(done) => return done,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// block_on(async {
    ///     while let Some(record) = stream.next().await {
    ///         println!("{}", String::from_utf8_lossy(&record?.bytes));
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// A record that the stream yields has been passed to the kernel: it survives a crash of the
    /// process, but may not survive one of the kernel. [`crate::Log::durable_sequence`] shows what
    /// is durable.
    ///
    /// # Errors
    ///
    /// The call fails if a thread or an `eventfd(2)` can't be created. Every other error is the
    /// last item of the stream: a failed read, [`Error::Damaged`] for a record that the disk has
    /// lost, or the failure of the open log, after all records written before it. While the disk is
    /// full, the stream waits, and continues when the log does.
    ///
    /// # Cost
    ///
    /// A separate thread reads for the stream, so a poll never waits for the disk. The thread reads
    /// ahead of the consumer, up to three batches of 256 KiB, or three records if they are longer.
    /// Then it sleeps until the consumer takes a batch (W8). It also uses the buffers of a
    /// [`LogReader`], at most 6.5 MiB. If a log has many consumers, they should share a stream.
    /// After the stream is dropped, the thread exits when its current read has completed.
    pub fn into_stream(
        self,
    ) -> Result<impl Stream<Item = Result<Record, Error>> + Send + Unpin + use<>, Error> {
        LogStream::of(self)
    }

    pub(super) fn in_folder(
        disk: Option<&Disk>,
        folder: &Folder,
        from: u64,
    ) -> Result<LogReader, Error> {
        let reader = LogReader::new(LogFiles::open_in(disk, folder)?, from, false)?;
        if reader.cursor.is_none() && folder.is_held() {
            // A log that has no segment yet has a lock file.
            names::check_log(&reader.files)?;
        }
        Ok(reader)
    }

    fn new(files: LogFiles, from: u64, is_expected: bool) -> Result<LogReader, Error> {
        let mut reader = LogReader {
            files,
            from,
            following: None,
            own: None,
            passed_over: 0,
            is_expected,
            cursor: None,
            failed: None,
            is_reported: false,
        };
        reader.find()?;
        Ok(reader)
    }

    /// Returns the next record, or `None` if none arrives within `timeout`. A reader that does not
    /// follow the log does not wait. Fails with [`Error::Damaged`] if durable records are lost.
    /// Every call after an error returns the same error.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>, Error> {
        let sequence = self.find_next(Some(timeout))?;
        Ok(sequence.map(|sequence| self.owned(sequence)))
    }

    /// Returns the next record without copying it: its bytes are those read from the disk, and are
    /// valid until the next call. Returns `None` at the end of the log; a following reader waits
    /// there instead, until its own log, if any, is closed. Fails like [`LogReader::next_within`].
    ///
    /// ```
    /// use wrote::{Log, LogReader};
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// # let log = Log::open(&folder)?;
    /// # log.append(b"hello")?.wait()?;
    /// # log.close()?;
    /// let (mut reader, mut bytes) = (LogReader::open(&folder, 0)?, 0);
    /// while let Some(record) = reader.next_lent()? {
    ///     bytes += record.bytes.len();
    /// }
    /// # assert_eq!(bytes, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_lent(&mut self) -> Result<Option<Record<&[u8]>>, Error> {
        let sequence = self.find_next(None)?;
        let written_at = self.written_at();
        Ok(sequence.map(|sequence| Record { sequence, bytes: self.record(), written_at }))
    }

    /// Returns the sequence from which the reader continues. The next record has this sequence, or
    /// a later one if the record is missing. At the end of the log, it is the sequence of a future
    /// record.
    pub fn next_sequence(&self) -> u64 {
        self.from
    }

    /// Returns the number of records that the reader has skipped since it was opened, because
    /// retention, a trim or a repair had removed them. They are counted when the reader returns the
    /// first record after them.
    ///
    /// ```
    /// use wrote::{Log, LogReader};
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// # let log = Log::options().segment_bytes(1).buffer_bytes(4096).open(&folder)?;
    /// # for _ in 0..12 {
    /// #     log.append(&[7; 3000])?.wait()?;
    /// # }
    /// let first = log.trim_before(10)?; // or retention, while the reader was away
    /// let mut reader = LogReader::open(&folder, 0)?;
    /// while let Some(_record) = reader.next_lent()? {}
    /// assert_eq!(reader.passed_over(), first);
    /// # assert!(first > 0);
    /// # log.close()
    /// # }
    /// ```
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Returns whether the reader's path still refers to the folder in which it reads. If that
    /// folder has been removed or renamed, the reader does not see the records of a new log at the
    /// path, and another reader must be opened. Returns true while the log that
    /// [`LogReader::expect`] waits for does not exist yet.
    pub fn is_at_its_path(&self) -> Result<bool, Error> {
        let folder = &self.files.folder;
        folder.is_at_its_path().tried(folder.path(), Action::Examine)
    }

    /// Moves the reader to record `from`, forwards or backwards, or to the first later one if that
    /// record is missing. Fails like [`LogReader::next_within`].
    ///
    /// Once a reader has been moved, it reads through the page cache, and remembers positions as it
    /// reads: one per 16 KiB, and at most 65,536. So it finds a record near an earlier position by
    /// reading a few kilobytes, and any other record by searching in steps. In a segment that a
    /// repair has rewritten, it reads from the start of the file.
    pub fn seek(&mut self, from: u64) -> Result<(), Error> {
        self.unless_failed(|reader| {
            reader.is_reported = false;
            reader.move_to(from)
        })
    }

    /// Moves the reader to the first record whose batch was written at or after `time`
    /// ([`Record::written_at`]), or after the last record if there is none. Fails like
    /// [`LogReader::next_within`].
    ///
    /// The search proceeds in steps, by the times in the log, which come from the writer's clock.
    /// If the clock stepped back ([`LogReader::clock_steps`]), the position found may be followed
    /// by some records written before `time`, but never preceded by one written later. A record
    /// that a repair has rewritten is taken to have been written when its segment was started.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use wrote::{Log, LogReader};
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path().join("events");
    /// # let log = Log::open(&folder)?;
    /// # log.append(b"hello")?.wait()?;
    /// # log.close()?;
    /// let mut reader = LogReader::open(&folder, 0)?;
    /// reader.seek_time(SystemTime::now() - Duration::from_secs(3600))?;
    /// let record = reader.next_lent()?.expect("a record of the last hour");
    /// assert!(record.written_at.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek_time(&mut self, time: SystemTime) -> Result<(), Error> {
        let at = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.unless_failed(|reader| {
            reader.is_reported = false;
            let from = match &mut reader.cursor {
                Some(cursor) => cursor.find_time(at_ns)?,
                // There is no record yet, so all records will be later.
                None => reader.from,
            };
            reader.move_to(from)
        })
    }

    /// Returns the ranges of records whose times ([`Record::written_at`]) overlap because the
    /// writer's clock stepped back between them. A range up to the end of the log ends with
    /// [`u64::MAX`]. Outside these ranges, times never decrease as the sequence increases. Fails
    /// like [`LogReader::next_within`].
    pub fn clock_steps(&mut self) -> Result<Vec<Range<u64>>, Error> {
        self.unless_failed(|LogReader { cursor, .. }| match cursor {
            Some(cursor) => cursor.with_segments(cursor::clock_steps),
            None => Ok(Vec::new()),
        })
    }

    fn move_to(&mut self, from: u64) -> Result<(), Error> {
        self.from = from;
        if let Some(following) = &mut self.following {
            following.found();
        }
        let is_there = match &mut self.cursor {
            Some(cursor) => cursor.seek(from)?,
            None => false,
        };
        if !is_there {
            self.find()?;
        }
        Ok(())
    }

    /// Moves to the next record and returns its sequence. A following reader waits for the record,
    /// for at most `timeout` if given.
    pub(super) fn find_next(&mut self, timeout: Option<Duration>) -> Result<Option<u64>, Error> {
        self.unless_failed(|reader| reader.read_next(timeout))
    }

    /// Calls `work`, and records its error, which every later call returns. A cut is not recorded:
    /// each call detects it again, until the reader is moved.
    fn unless_failed<T>(
        &mut self,
        work: impl FnOnce(&mut LogReader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.files.process.check()?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        work(self).inspect_err(|error| {
            if !matches!(error, Error::Truncated { .. }) {
                self.failed = Some(error.clone());
            }
        })
    }

    /// Returns the bytes of the record that was found last.
    pub(super) fn record(&self) -> &[u8] {
        self.cursor.as_ref().map(|cursor| cursor.record()).unwrap_or_default()
    }

    /// Returns the time when the record that was found last was written.
    pub(super) fn written_at(&self) -> Option<SystemTime> {
        let at_ns = self.cursor.as_ref().map_or(0, |cursor| cursor.written_at_ns);
        (at_ns > 0).then(|| UNIX_EPOCH + Duration::from_nanos(at_ns))
    }

    fn owned(&self, sequence: u64) -> Record {
        Record { sequence, bytes: self.record().to_vec(), written_at: self.written_at() }
    }

    fn read_next(&mut self, timeout: Option<Duration>) -> Result<Option<u64>, Error> {
        let is_at_end = self.following.as_ref().is_some_and(Following::is_at_end);
        if !is_at_end && let Some(sequence) = self.advance()? {
            if let Some(following) = &mut self.following {
                following.found();
            }
            return Ok(Some(sequence));
        }
        let Some(mut following) = self.following.take() else { return self.check() };
        let found = self.wait(&mut following, timeout);
        self.following = Some(following);
        found
    }

    /// Waits at the end of the log for the next record. Returns `None` if none arrives within
    /// `timeout`, if the reader's own log is closed, or if the bell rings. Fails if that log has
    /// failed.
    fn wait(
        &mut self,
        following: &mut Following,
        timeout: Option<Duration>,
    ) -> Result<Option<u64>, Error> {
        // A time that can't be represented means no time limit.
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut has_slept = false;
        following.begin();
        loop {
            // Whether the log is over is checked before its files are, so that the files then
            // contain the last record.
            let over = self.own.as_ref().filter(|own| own.state.is_over()).cloned();
            following.has_changed |= over.is_some();
            let look = following.due(has_slept);
            let found = match look {
                None => None,
                Some(Look::ForMore) => self.look_again()?,
                Some(Look::ForLost) => self.check()?,
            };
            if found.is_some() {
                following.found();
                return Ok(found);
            }
            if let Some(own) = over {
                return own.state.check().map(|()| None);
            }
            if look.is_some() {
                following.found_nothing();
            }
            self.files.interrupt.check()?;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(Duration::MAX);
            if left.is_zero() {
                return Ok(None);
            }
            let is_rung = following.sleep(left, self.files.interrupt.has_flag());
            if is_rung && !self.own.as_ref().is_some_and(|own| own.state.is_over()) {
                return Ok(None);
            }
            has_slept = true;
        }
    }

    /// Returns the bell that ends a wait without a record; `None` if the reader does not follow the
    /// log.
    fn bell(&mut self) -> Result<Option<Bell>, Error> {
        self.files.process.check()?;
        self.following.as_mut().map(|following| following.watch.bell()).transpose()
    }

    /// Moves to the next record that the last check of the files has found.
    pub(super) fn advance(&mut self) -> Result<Option<u64>, Error> {
        loop {
            if self.cursor.is_none() && !self.find()? {
                return Ok(None);
            }
            let LogReader { from, cursor, own, .. } = self;
            let Some(cursor) = cursor else { return Ok(None) };
            if let Some(sequence) = cursor.next(*from)? {
                // The record may belong to a log that was opened in the same folder later.
                let has_ended = |own: &Arc<LogDriver>| own.state.has_ended_before(sequence);
                if own.as_ref().is_some_and(has_ended) {
                    return Ok(None);
                }
                self.passed_over += sequence - *from;
                self.from = sequence + 1;
                return Ok(Some(sequence));
            }
            if !cursor.turn()? {
                return Ok(None);
            }
        }
    }

    /// Checks the files again, and moves to the next record if it has arrived.
    fn look_again(&mut self) -> Result<Option<u64>, Error> {
        if let Some(cursor) = &mut self.cursor {
            cursor.look_again()?;
        }
        self.advance()
    }

    /// Checks the files again, and moves to the next record if it has arrived. Fails if the next
    /// record was durable and is lost.
    fn check(&mut self) -> Result<Option<u64>, Error> {
        if let Some(sequence) = self.look_again()? {
            return Ok(Some(sequence));
        }
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let lost = cursor.lost()?;
        self.unless_arrived(lost)
    }

    /// Checks once more before reporting `lost`, because the next record may have arrived between
    /// the last check and the proof that it was durable. A reader that wants only later records may
    /// pass it without returning it, which also shows that it is not lost.
    fn unless_arrived(&mut self, lost: Option<Error>) -> Result<Option<u64>, Error> {
        let place = |reader: &LogReader| reader.cursor.as_ref().map(|cursor| cursor.place());
        let before = place(self);
        match (lost, self.look_again()?) {
            (Some(lost), None) if place(self) == before => Err(lost),
            (_, found) => Ok(found),
        }
    }

    /// Enters the folder of an expected log, and returns whether it exists. Until the log has a
    /// segment, another folder may replace this one.
    fn enter_expected(&mut self) -> Result<bool, Error> {
        let folder = match Folder::open(self.files.folder.path()) {
            Err(error) if error.errno() == libc::ENOENT => return Ok(false),
            folder => folder?,
        };
        self.following.iter_mut().for_each(|following| following.enter(&folder));
        self.files.enter(folder);
        Ok(true)
    }

    fn find(&mut self) -> Result<bool, Error> {
        if self.is_expected && self.cursor.is_none() && !self.enter_expected()? {
            return Ok(false);
        }
        let LogReader { files, from, .. } = self;
        let find = || cursor::find(files, *from, ReadBy::Order).map(Some);
        self.cursor = names::unless_removed(find)?.map(Box::new);
        Ok(self.cursor.is_some())
    }
}

impl Iterator for LogReader {
    type Item = Result<Record, Error>;

    /// Returns the next record. A following reader waits for it without a time limit, but only
    /// until its own log, if any, is closed. After an error, there are no more items.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_reported {
            return None;
        }
        let result = self.find_next(None);
        self.is_reported = result.is_err();
        result.map(|sequence| sequence.map(|sequence| self.owned(sequence))).transpose()
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("folder", &self.files.path())
            .field("from", &self.from)
            .field("follows", &self.following.is_some())
            .finish_non_exhaustive()
    }
}
