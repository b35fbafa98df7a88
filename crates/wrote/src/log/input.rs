//! One file of a log, read through an engine at any offset, with sequential read-ahead. A flag can
//! interrupt the reading.

use crate::buffer::Buffer;
use crate::engine::{Folder, Found, Op, Options};
use crate::file::cached::cached_bytes_at;
use crate::fork::Process;
use crate::{Action, Completion, Disk, Engine, Error, FileId, FileOptions, Ioengine};
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The size of a sequential read in bytes, and the maximum number of such reads in flight.
const READ_BYTES: usize = 512 << 10;
const READS: u32 = 8;
/// The number of buffers for pieces that have arrived together, in addition to those for reads in
/// flight and to [`OTHER_BUFFERS`]. A reader of a few records uses only the first buffer, which has
/// small pages.
const ARRIVED_BUFFERS: u32 = 2;
/// The number of buffers for other purposes: the current piece, a second file, and a copy.
const OTHER_BUFFERS: u32 = 3;
/// The size of the first read at a new offset, in bytes. Each read that continues from there is
/// twice as large as the previous one.
const PIECE_BYTES_MIN: u64 = 16 << 10;
/// The size of a read from the page cache in bytes. It is small enough for the bytes to stay in the
/// CPU cache until they are used.
const CACHED_PIECE_BYTES: u64 = 128 << 10;
/// The number and size of the samples that show whether the page cache holds a file. Checking every
/// page of a 1 GB file would take 4 ms.
const SAMPLES: u64 = 16;
const SAMPLE_BYTES: u64 = 512 << 10;
/// The number of reads that may return nothing before the end of the file. More of these reads are
/// an error.
const FRUITLESS_READS_MAX: u32 = 10;

/// The order in which a reader accesses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBy {
    /// Sequential access, from front to back.
    Order,
    /// Random access. Reads use the page cache, which keeps what may be read again.
    Place,
}

/// The engine that a log's open files share, and the log's folder.
#[derive(Clone, Debug)]
pub(crate) struct LogFiles {
    engine: Rc<RefCell<Engine>>,
    /// The log's folder. Paths below it are resolved relative to it, even after it is renamed.
    pub folder: Folder,
    pub(super) interrupt: Interrupt,
    pub process: Process,
}

impl LogFiles {
    pub(super) fn new(mut engine: Engine, folder: Folder) -> LogFiles {
        engine.enter(folder.clone());
        let (engine, interrupt) = (Rc::new(RefCell::new(engine)), Interrupt::of_thread());
        LogFiles { engine, folder, interrupt, process: Process::this() }
    }

    /// Creates an engine for the files of the log in a folder, by the method of `disk` if given.
    pub(crate) fn open_in(disk: Option<&Disk>, folder: &Folder) -> Result<LogFiles, Error> {
        let options = Options::new(Ioengine::IoUring, READS, READ_BYTES)
            .buffers(READS + ARRIVED_BUFFERS + OTHER_BUFFERS)
            .registered_buffers(false);
        Ok(LogFiles::new(Disk::engine_of(disk, &options)?, folder.clone()))
    }

    /// Enters the folder, which was known only by its path so far.
    pub(super) fn enter(&mut self, folder: Folder) {
        self.engine().enter(folder.clone());
        self.folder = folder;
    }

    /// Returns the path of the log's folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Borrows the engine. The same statement must not borrow it a second time, nor open or close a
    /// file.
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    /// Returns the engine. All files must be closed.
    pub(super) fn into_engine(self) -> Engine {
        Rc::into_inner(self.engine).expect("no file is open").into_inner()
    }
}

/// A file, and the part of it that is in memory. Dropping the value closes the file.
///
/// The part in memory is the last piece read, plus the bytes of one request that spans several
/// pieces. So the memory in use is limited by the length of that request and the engine's buffers
/// (W8). Reads stay in flight between requests. [`Input::pause`] waits for them, and must be called
/// before the engine is used for anything else.
#[derive(Debug)]
pub(crate) struct Input {
    pub path: PathBuf,
    pub file: FileId,
    pub files: LogFiles,
    /// The length of the file when it was opened, or at the last [`Input::look_again`].
    pub len_bytes: u64,
    /// Whether reads use the page cache, which they no longer do after [`Input::look_again`].
    is_cached: bool,
    /// The size of the next read, and of the first read at a new offset, in bytes.
    piece_bytes: u64,
    first_bytes: u64,
    /// The offset at which read-ahead stops.
    expected_end: u64,
    /// The offset and the bytes of the current piece, which is the last one that was read.
    current_start: u64,
    current: Option<Buffer>,
    /// The offset and the bytes of a request that spans several pieces. `current` holds the bytes
    /// that follow in the file.
    joined_start: u64,
    joined: Vec<u8>,
    /// The pieces after `current` that are in flight or have arrived, in order and without gaps.
    ahead: VecDeque<ReadPiece>,
}

#[derive(Debug)]
struct ReadPiece {
    offset: u64,
    len: u64,
    arrived: Option<Buffer>,
}

impl Input {
    /// Opens a file. With `direct`, reads bypass the page cache, so they see the direct writes of
    /// another process.
    pub(crate) fn open(
        files: &LogFiles,
        path: &Path,
        direct: bool,
        write: bool,
    ) -> Result<Input, Error> {
        let mut engine = files.engine();
        // Reading a pipe that has a segment's name could block forever.
        if !matches!(engine.locate(path)?.found, Found::File | Found::Nothing) {
            let because = "is not an ordinary file, so it can't be a segment of a log";
            return Err(Error::refused(path, because));
        }
        let options = FileOptions::new().direct(direct).write(write);
        let file = engine.open_file(path, &options)?;
        Ok(Input {
            path: path.to_owned(),
            file,
            files: files.clone(),
            len_bytes: engine.file_len(file)?,
            is_cached: false,
            piece_bytes: PIECE_BYTES_MIN,
            first_bytes: PIECE_BYTES_MIN,
            expected_end: u64::MAX,
            current_start: 0,
            current: None,
            joined_start: 0,
            joined: Vec::new(),
            ahead: VecDeque::new(),
        })
    }

    /// Opens a file to read records that another process may have written. Reads go through the
    /// page cache if it holds nearly all of the file, or for random access; otherwise they bypass
    /// it. After [`Input::look_again`] they always bypass it.
    pub(super) fn open_to_read(files: &LogFiles, path: &Path, by: ReadBy) -> Result<Input, Error> {
        let mut input = Input::open(files, path, true, false)?;
        let mut engine = files.engine();
        let is_held = by == ReadBy::Place
            || (engine.descriptor(input.file))
                .is_some_and(|file| is_nearly_held(file, input.len_bytes));
        input.is_cached = is_held && engine.is_direct(input.file);
        if input.is_cached {
            engine.set_direct(input.file, false)?;
        }
        drop(engine);
        Ok(input)
    }

    /// Returns the `len` bytes at `offset`, or fewer at the end of the file.
    #[inline]
    pub(crate) fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], Error> {
        let from = offset.wrapping_sub(self.current_start) as usize;
        let current_bytes = self.current.as_ref().map_or(0, |current| current.len());
        if from >= current_bytes || len > current_bytes - from {
            self.read(offset, len)?;
        }
        Ok(self.held(offset, len))
    }

    /// Returns the `len` bytes at `offset`, as far as the last request has read them.
    #[inline]
    pub(super) fn held(&self, offset: u64, len: usize) -> &[u8] {
        let current = self.current.as_deref().unwrap_or_default();
        let from = offset.wrapping_sub(self.current_start) as usize;
        if let Some(bytes) = current.get(from..).and_then(|rest| rest.get(..len)) {
            return bytes;
        }
        // The current piece reaches further than the joined bytes, which end within it.
        let (start, part) = match (self.current_start..self.current_end()).contains(&offset) {
            true => (self.current_start, current),
            false => (self.joined_start, &self.joined[..]),
        };
        let rest = offset.checked_sub(start).and_then(|from| part.get(from as usize..));
        let rest = rest.unwrap_or_default();
        &rest[..len.min(rest.len())]
    }

    /// Makes the following reads as large as possible. No read-ahead starts at or after `end`;
    /// bytes there are read only on request. [`Input::pause`] ends this mode.
    pub(super) fn expect_up_to(&mut self, end: u64) {
        self.first_bytes = u64::MAX / 2;
        self.piece_bytes = self.first_bytes;
        self.expected_end = end;
    }

    /// Returns the first offset from `offset` on that is not in a hole, or the end of the file if
    /// there is none. File systems without `SEEK_DATA` report no holes, and neither does a
    /// simulated disk.
    pub(super) fn data_from(&self, offset: u64) -> Result<u64, Error> {
        self.files.interrupt.check()?;
        let engine = self.files.engine();
        let Some(descriptor) = engine.descriptor(self.file) else { return Ok(offset) };
        match seek(descriptor, SeekFrom::Data(offset)) {
            Ok(data) => Ok(data),
            Err(Errno::NXIO) => Ok(self.len_bytes.max(offset)),
            Err(_) => Ok(offset),
        }
    }

    /// Drops the bytes in memory and queries the file's length again, because another process may
    /// have written to the file.
    pub(super) fn look_again(&mut self) -> Result<(), Error> {
        self.pause()?;
        let mut engine = self.files.engine();
        if std::mem::take(&mut self.is_cached) {
            engine.set_direct(self.file, true)?;
        }
        self.len_bytes = engine.file_len(self.file)?;
        Ok(())
    }

    /// Returns whether the file is shorter than `len_bytes`, or has lost its name because it was
    /// removed or is kept for a later segment.
    pub(super) fn is_shorter(&self) -> Result<bool, Error> {
        let engine = self.files.engine();
        let is_named = engine.is_named(self.file, &self.path)?;
        Ok(!is_named || engine.file_len(self.file)? < self.len_bytes)
    }

    /// Flushes the file, and drops its clean pages from the page cache, so that later reads come
    /// from the disk.
    ///
    /// The last process that wrote the log may have left its writes only in memory. After a failed
    /// flush, the kernel marks pages clean although the disk never got them, and a later flush
    /// succeeds (`fsync(2)`). So reads from the cache prove nothing. The kernel drops only clean
    /// pages (`posix_fadvise(2)`).
    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut engine = self.files.engine();
        engine.flush(self.file)?;
        engine.drop_clean_pages(self.file);
        Ok(())
    }

    fn joined_end(&self) -> u64 {
        self.joined_start + self.joined.len() as u64
    }

    fn current_end(&self) -> u64 {
        self.current_start + self.current.as_ref().map_or(0, |current| current.len() as u64)
    }

    /// Reads the range into memory as far as the file reaches, and drops the bytes before it.
    #[cold]
    fn read(&mut self, offset: u64, len: usize) -> Result<(), Error> {
        let left = self.len_bytes.saturating_sub(offset);
        let end = offset + left.min(len as u64);
        let is_joined = offset >= self.joined_start && end <= self.joined_end();
        if offset == end || is_joined || offset >= self.current_start && end <= self.current_end() {
            return Ok(());
        }
        self.files.interrupt.check()?;
        let align = u64::from(self.files.engine().align_bytes(self.file));
        self.begin(offset, align)?;
        let mut fruitless = 0;
        while self.current_end() < end {
            self.join(offset, self.current_end());
            let before = self.current_end();
            if self.take_piece(align)? {
                continue;
            }
            // Either the file ends there, because another process has truncated it, or the read was
            // short, which does not mean that the log ends.
            self.len_bytes = self.files.engine().file_len(self.file)?.min(self.len_bytes);
            if self.current_end() >= self.len_bytes {
                break;
            }
            // A direct read can only continue from the end of a whole block.
            let part = self.current_end() % align;
            if let Some(current) = &mut self.current {
                current.set_len(current.len() - part as usize);
            }
            if self.current_end() <= before {
                fruitless += 1;
            }
            if fruitless > FRUITLESS_READS_MAX {
                let error = std::io::Error::from_raw_os_error(libc::EIO);
                return Err(Error::file(&self.path, Action::Read, Some(before), &error));
            }
        }
        if offset < self.current_start {
            self.join(offset, end.min(self.current_end()));
        } else {
            self.joined.clear();
        }
        Ok(())
    }

    /// Prepares for reading on from `offset`: keeps the bytes from there on if they are in memory,
    /// and drops everything otherwise.
    fn begin(&mut self, offset: u64, align: u64) -> Result<(), Error> {
        let is_in = |start: u64, end: u64| (start..=end).contains(&offset);
        let is_aligned = self.current_end().is_multiple_of(align);
        if !self.joined.is_empty() && is_in(self.joined_start, self.joined_end()) && is_aligned {
            self.joined.drain(..(offset - self.joined_start) as usize);
            self.joined_start = offset;
            return Ok(());
        }
        self.joined.clear();
        if self.current.is_none() || !is_in(self.current_start, self.current_end()) || !is_aligned {
            self.drop_bytes()?;
            self.current_start = offset - offset % align;
        }
        Ok(())
    }

    /// Appends the bytes from `offset` to `end` to the joined bytes, unless they are already among
    /// them.
    fn join(&mut self, offset: u64, end: u64) {
        if self.joined.is_empty() {
            self.joined_start = offset;
        }
        let from = self.joined_end().max(self.current_start);
        if let Some(current) = &self.current
            && from < end
        {
            let range = (from - self.current_start) as usize..(end - self.current_start) as usize;
            self.joined.extend_from_slice(&current[range]);
        }
    }

    /// Makes the next piece the current one, and returns whether it is complete.
    fn take_piece(&mut self, align: u64) -> Result<bool, Error> {
        let offset = self.current_end();
        self.current = None;
        self.current_start = offset;
        self.ask_ahead(align)?;
        while self.ahead.front().is_some_and(|piece| piece.arrived.is_none()) {
            let mut completions = Vec::new();
            self.files.engine().reap(1, &mut completions)?;
            completions.into_iter().try_for_each(|completion| self.arrive(completion))?;
            // Reads in flight together often arrive together. The next reads are started before the
            // caller uses the ones that have arrived.
            self.ask_ahead(align)?;
        }
        let piece = self.ahead.pop_front().expect("one was requested");
        debug_assert_eq!(piece.offset, offset, "pieces follow each other");
        let mut bytes = piece.arrived.expect("it has arrived");
        let is_whole = bytes.len() as u64 == piece.len;
        // The file may have grown since its length was queried.
        let left = self.len_bytes.saturating_sub(offset);
        bytes.set_len(bytes.len().min(left.try_into().unwrap_or(usize::MAX)));
        if !is_whole {
            // The file ends here, so the pieces after this one would not be contiguous with it.
            self.end_reads()?;
        }
        self.current = Some(bytes);
        Ok(is_whole)
    }

    /// Requests pieces: a single one at first, and as many as may be in flight once a piece has
    /// grown to the size of a buffer.
    fn ask_ahead(&mut self, align: u64) -> Result<(), Error> {
        let mut engine = self.files.engine();
        let buffer_bytes = engine.pool().buffer_bytes() as u64;
        let (buffer_bytes, pieces_max) = match self.is_cached {
            true => (buffer_bytes.min(CACHED_PIECE_BYTES), 1),
            // The current piece uses one of the buffers.
            false => (buffer_bytes, engine.pool().count().saturating_sub(OTHER_BUFFERS).max(1)),
        };
        let largest = (buffer_bytes - buffer_bytes % align).max(align);
        let is_grown = self.piece_bytes >= largest;
        let wanted = if is_grown { pieces_max as usize } else { 1 };
        let mut has_asked = false;
        loop {
            let last = self.ahead.back().map(|piece| piece.offset + piece.len);
            let offset = last.unwrap_or(self.current_start);
            let end = self.len_bytes.min(self.expected_end);
            let is_enough = offset >= end || engine.is_full();
            if self.ahead.len() >= wanted || !self.ahead.is_empty() && is_enough {
                break;
            }
            let len = self.piece_bytes.min(largest).next_multiple_of(align).min(largest);
            let mut buffer = engine.lease()?;
            buffer.set_len(len as usize);
            engine.queue(offset, Op::Read { file: self.file, offset, buffer });
            self.ahead.push_back(ReadPiece { offset, len, arrived: None });
            self.piece_bytes = self.piece_bytes.saturating_mul(2).min(largest);
            has_asked = true;
        }
        // Submit now, so that the device reads while the caller uses a piece that has arrived.
        if has_asked { engine.submit() } else { Ok(()) }
    }

    fn arrive(&mut self, completion: Completion) -> Result<(), Error> {
        let read = completion.result?;
        let mut buffer = completion.buffer.expect("a read gives its buffer back");
        buffer.set_len(read);
        let piece = self.ahead.iter_mut().find(|piece| piece.offset == completion.user_data);
        piece.expect("nothing else is in flight").arrived = Some(buffer);
        Ok(())
    }

    /// Waits for the reads in flight and drops all bytes in memory, so that the engine can be used
    /// for other purposes.
    pub(crate) fn pause(&mut self) -> Result<(), Error> {
        (self.first_bytes, self.expected_end) = (PIECE_BYTES_MIN, u64::MAX);
        self.drop_bytes()
    }

    fn drop_bytes(&mut self) -> Result<(), Error> {
        self.current = None;
        self.joined.clear();
        self.end_reads()
    }

    fn end_reads(&mut self) -> Result<(), Error> {
        self.piece_bytes = self.first_bytes;
        let is_in_flight = self.ahead.iter().any(|piece| piece.arrived.is_none());
        self.ahead.clear();
        if is_in_flight {
            let mut completions = Vec::new();
            self.files.engine().reap(usize::MAX, &mut completions)?;
        }
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // Errors of reading and writing have already been reported.
        let _ = self.pause();
        let _ = self.files.engine().close_file(self.file);
    }
}

/// Returns whether the page cache holds nearly all of a file, judging by samples.
fn is_nearly_held(file: BorrowedFd<'_>, len_bytes: u64) -> bool {
    let (part_bytes, rest_bytes) = (len_bytes / SAMPLES, len_bytes % SAMPLES);
    let sample_bytes = (part_bytes + rest_bytes).min(SAMPLE_BYTES);
    let held_bytes: Option<u64> =
        (0..SAMPLES).map(|part| cached_bytes_at(file, part * part_bytes, sample_bytes)).sum();
    held_bytes.is_some_and(|held_bytes| held_bytes > SAMPLES * sample_bytes / 8 * 7)
}

pub(crate) fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let numbers = |file| fstat(file).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    numbers(one).is_some_and(|one| numbers(other) == Some(one))
}

thread_local! {
    /// The stop flag of the [`until`] call that this thread is in.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Calls `work`, and makes it interruptible. Once `stop` is set, by any thread or a signal handler,
/// every read of a log within `work` fails with [`Error::Interrupted`]. This applies to readers,
/// summaries, verification, repair, and recovery when a log is opened.
///
/// The flag is checked before each disk request, which reads at most a few megabytes. A reader
/// opened within `work` keeps the flag. An interrupted repair or recovery leaves the log as a crash
/// would; the next one completes the work.
pub fn until<T>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<AtomicBool>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STOP.set(self.0.take());
        }
    }
    let _before = Restore(STOP.replace(Some(stop.clone())));
    work()
}

/// The stop flag that was in force when files were opened, if any.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Option<Arc<AtomicBool>>);

impl Interrupt {
    pub(super) fn of_thread() -> Interrupt {
        Interrupt(STOP.with_borrow(Clone::clone))
    }

    /// Returns whether there is a flag that could be set.
    pub(super) fn has_flag(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_set = self.0.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_set { Err(Error::Interrupted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::{disk, engine, files_of, folder, two_segments};
    use crate::log::{Log, LogReader, repair, summary, verify};
    use rustix::fd::AsFd;
    use rustix::fs::{Advice, fadvise};
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn requests_in_any_order_and_of_any_length_get_the_bytes_of_the_file() {
        let path = folder().join("file");
        let file: Vec<u8> = (0..70_001_u32).map(|number| (number * 31 % 251) as u8).collect();
        let sim = disk(1, &[(path.clone(), file.clone())]);
        for direct in [true, false] {
            let mut input = Input::open(&files_of(&sim), &path, direct, false).unwrap();
            let mut offset = 0;
            for step in 0..4000_usize {
                let len = [8, 100, 700, 2100, 5000, 64 << 10][step * step % 6];
                let expected = &file[offset.min(file.len())..(offset + len).min(file.len())];
                let found = input.bytes(offset as u64, len).unwrap();
                assert!(found == expected, "{len} bytes at {offset}, step {step}");
                assert!(input.held(offset as u64, len) == expected, "{len} bytes at {offset}");
                // The offset mostly moves a little further, and now and then it jumps.
                offset = match step % 9 {
                    8 => step * 7919 % (file.len() + 10),
                    _ if offset < file.len() => offset + step % 3 * len.min(900) / 2,
                    _ => 0,
                };
                if step % 50 == 49 {
                    input.pause().unwrap();
                }
            }
        }
    }

    #[test]
    fn a_file_is_nearly_held_while_nearly_all_of_its_parts_are_in_the_page_cache() {
        let test = "a_file_is_nearly_held_while_nearly_all_of_its_parts_are_in_the_page_cache";
        // The file is created in the build folder, which is usually on a disk.
        let program = std::env::current_exe().unwrap();
        for len_bytes in [100, 100_000, SAMPLES * SAMPLE_BYTES * 3 + 1] {
            let mut file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
            file.write_all(&vec![7; len_bytes as usize]).unwrap();
            if cached_bytes_at(file.as_fd(), 0, len_bytes).is_none() {
                return fixtures::skip(test, "the kernel does not say what is cached");
            }
            assert!(is_nearly_held(file.as_fd(), len_bytes), "{len_bytes} bytes");
            file.sync_all().unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            if cached_bytes_at(file.as_fd(), 0, len_bytes) != Some(0) {
                return fixtures::skip(test, "the file's pages stay in the cache here");
            }
            assert!(!is_nearly_held(file.as_fd(), len_bytes), "{len_bytes} bytes");
            // The first half is not enough to be nearly all of the file. The kernel must not read
            // the rest ahead.
            fadvise(&file, 0, None, Advice::Random).unwrap();
            file.read_exact_at(&mut vec![0; len_bytes as usize / 2], 0).unwrap();
            assert!(len_bytes == 100 || !is_nearly_held(file.as_fd(), len_bytes), "{len_bytes}");
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_while_it_is_read_ends_there() {
        for cut in [1000, 2048, 3000, 5000] {
            let path = folder().join("file");
            let sim = disk(1, &[(path.clone(), vec![7; 64 << 10])]);
            let mut input = Input::open(&files_of(&sim), &path, true, false).unwrap();
            let mut other = engine(&sim);
            let options = FileOptions::new().write(true);
            let file = other.open_file(&path, &options).unwrap();
            other.truncate(file, cut).unwrap();
            let bytes = input.bytes(0, 20_000).unwrap();
            assert_eq!(bytes, vec![7; cut as usize], "cut at {cut}");
            assert!(input.bytes(cut, 100).unwrap().is_empty(), "cut at {cut}");
        }
    }

    #[test]
    fn a_flag_that_is_set_ends_every_read_of_a_log_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in two_segments().files(folder.path()) {
            std::fs::write(path, bytes).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(true));
        let path = folder.path();
        type Call<'a> = &'a dyn Fn() -> Result<(), Error>;
        let calls: [(&str, Call); 6] = [
            ("read", &|| LogReader::open(path, 0)?.try_for_each(|record| record.map(drop))),
            ("follow", &|| {
                LogReader::open(path, 9)?.following()?.try_for_each(|record| record.map(drop))
            }),
            ("summary", &|| summary(path).map(drop)),
            ("verify", &|| verify(path, None).map(drop)),
            ("repair", &|| repair(path).map(drop)),
            ("open", &|| Log::options().open(path).map(drop)),
        ];
        for (name, call) in calls {
            let ended = until(&stop, call);
            assert!(matches!(ended, Err(Error::Interrupted)), "{name}: {ended:?}");
        }
        assert_eq!(verify(path, None).unwrap().records, 10);
    }

    #[test]
    fn a_reader_keeps_the_flag_under_which_it_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in two_segments().files(folder.path()) {
            std::fs::write(path, bytes).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut follower =
            until(&stop, || LogReader::open(folder.path(), 0).and_then(LogReader::following))
                .unwrap();
        assert_eq!(follower.next().unwrap().unwrap().sequence, 0);
        std::thread::scope(|scope| {
            let rest = scope.spawn(|| follower.last());
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(rest.join().unwrap(), Some(Err(Error::Interrupted))));
        });
    }
}
