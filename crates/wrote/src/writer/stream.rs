//! The background half of a `Writer`: full buffers, the tail of the file, and reserved blocks.

use super::target::{Replacement, Target};
use super::{Method, Written};
use crate::buffer::Buffer;
use crate::engine::Op;
use crate::{Action, Completion, Effective, Engine, Error, FileId, SyncPolicy};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The unit of buffer sizes: whole pages, which every file accepts in a direct transfer.
pub(super) const BS_UNIT_BYTES: usize = 4096;
/// The `user_data` of the operation that reserves blocks. A write's `user_data` is its offset.
const RESERVATION: u64 = u64::MAX;
/// The minimum length of a file, in bytes, for which blocks are reserved.
const RESERVE_FROM_BYTES: u64 = 8 << 20;
/// The maximum number of bytes at the end of the buffer that go through the page cache even if they
/// contain whole blocks.
const TAIL_BYTES_MAX: usize = 64 << 10;
/// The maximum wait for the lock of a file that is appended to, and the interval between attempts.
const LOCKED_MAX: Duration = Duration::from_secs(1);
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// A file and the buffer that is being filled for it.
///
/// The buffer begins at a block boundary of the file. All earlier bytes have been passed to the
/// engine. A sync may already have written some of the buffer's bytes.
#[derive(Debug)]
pub(super) struct Stream {
    engine: Engine,
    file: FileId,
    path: PathBuf,
    /// The folder that contains the file's name, if the file has a name.
    folder: Option<PathBuf>,
    /// The staged file, if it does not have its final name yet.
    replacement: Option<Replacement>,
    /// The file that the caller opened; it holds the caller's locks.
    given: Option<File>,
    /// Whether this stream created the file.
    is_new: bool,
    /// The alignment of the offset and length of a direct write: whole blocks and whole pages.
    align_bytes: u64,
    /// The buffer; `None` only while waiting for another one, and after an error.
    buffer: Option<Buffer>,
    /// The offset of the buffer in the file.
    base: u64,
    /// The addresses of the buffer's next byte and of its last one. The last byte is left to the
    /// slow path, which submits a full buffer. The two are equal if every write takes the slow
    /// path: after an error, and when writes sync automatically.
    next: *mut u8,
    last: *mut u8,
    /// The number of bytes at the start of the buffer that the file already has.
    clean: usize,
    /// The file's length including writes in flight, but not bytes that are only in the buffer.
    len: u64,
    /// Whether blocks after the file's end are reserved for it.
    has_reserved: bool,
    synced_at: Instant,
    /// Whether anything has been written since the last sync.
    is_dirty: bool,
    /// Whether the file's name is known to be on stable storage.
    is_name_durable: bool,
    sync: SyncPolicy,
    /// Whether the stream appends to an existing file. Other programs may append to it, too, so it
    /// is locked, and its length is checked before each change.
    appends: bool,
    /// Whether every byte written so far directly followed the previous one.
    is_sequential: bool,
    /// The lowest offset of a failed write: the start of its block, which may contain older bytes.
    failed_at: Option<u64>,
    /// The file's length at the last time when nothing was in flight. After an error, the file is
    /// not truncated below this length.
    settled_len: u64,
    failed: Option<Error>,
    is_open: bool,
    opened_at: Instant,
    completions: Vec<Completion>,
}

impl Stream {
    pub(super) fn open(
        engine: Engine,
        target: Target,
        sync: SyncPolicy,
        appends: bool,
        opened_at: Instant,
    ) -> Result<Stream, Error> {
        let Target { file, path, folder, begin, replacement, given, is_new } = target;
        // If the caller opened the file, the caller may hold a lock that would conflict with this
        // one.
        if appends && given.is_none() {
            lock(&engine, file, &path)?;
        }
        let len = engine.file_len(file)?;
        let begin = begin.unwrap_or(len);
        let align_bytes = match engine.align_bytes(file) {
            1 => 1,
            block => u64::from(block).max(BS_UNIT_BYTES as u64),
        };
        let mut stream = Stream {
            align_bytes,
            buffer: None,
            base: 0,
            next: std::ptr::dangling_mut(),
            last: std::ptr::dangling_mut(),
            clean: 0,
            len,
            has_reserved: false,
            synced_at: opened_at,
            is_dirty: true,
            is_name_durable: folder.is_none(),
            sync,
            appends,
            is_sequential: begin == len,
            failed_at: None,
            settled_len: len,
            failed: None,
            is_open: true,
            opened_at,
            completions: Vec::new(),
            path,
            folder,
            replacement,
            given,
            is_new,
            engine,
            file,
        };
        if let Err(error) = stream.begin_at(begin) {
            stream.discard();
            return Err(error);
        }
        Ok(stream)
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.len.max(RESERVE_FROM_BYTES) {
            return Ok(());
        }
        match self.reserve(self.len, bytes - self.len) {
            // A lack of space or an exceeded quota should be reported now, not when the file is
            // nearly written.
            Err(error) if matches!(error.errno(), libc::ENOSPC | libc::EDQUOT) => {
                // Some file systems (ext4) allocate as much as they can before they fail, which
                // would leave the disk full.
                let _ = self.give_back();
                Err(error)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    /// Returns whether the file has not been finished yet, and this process may finish it.
    pub(super) fn is_open(&self) -> bool {
        self.is_open && self.engine.check_process().is_ok()
    }

    /// Returns whether the file gets its final name only when it is finished.
    pub(super) fn is_replacement(&self) -> bool {
        self.replacement.is_some()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.engine.descriptor(self.file)
    }

    pub(super) fn position(&self) -> u64 {
        self.base + self.filled() as u64
    }

    /// Returns the file's length including all writes so far.
    pub(super) fn len(&self) -> u64 {
        if self.filled() > self.clean { self.len.max(self.position()) } else { self.len }
    }

    /// Returns how many bytes [`Stream::put`] can accept.
    #[inline]
    pub(super) fn room_bytes(&self) -> usize {
        self.last as usize - self.next as usize
    }

    /// Copies bytes into the buffer.
    ///
    /// # Safety
    ///
    /// The length of `bytes` must be at most [`Stream::room_bytes`].
    #[inline]
    pub(super) unsafe fn put(&mut self, bytes: &[u8]) {
        // SAFETY: from `next` to `last` there is room for these bytes. Both lie in the leased
        // buffer, and between two calls no other code has a reference to it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, bytes.len());
            self.next = self.next.add(bytes.len());
        }
    }

    /// Returns the number of bytes in the buffer.
    fn filled(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| self.next as usize - buffer.address() as usize)
    }

    fn set_filled(&mut self, filled: usize) {
        let is_watched = self.sync != SyncPolicy::No || self.failed.is_some();
        let room_bytes = if is_watched { 0 } else { (self.capacity() - filled).saturating_sub(1) };
        let buffer = self.buffer.as_ref().expect("there is a buffer while nothing failed");
        // The pointers are not derived from a reference, because they would become invalid when the
        // reference is no longer used (Stacked Borrows).
        self.next = buffer.address().wrapping_add(filled);
        self.last = self.next.wrapping_add(room_bytes);
    }

    fn drop_buffer(&mut self) {
        self.buffer = None;
        (self.next, self.last) = (std::ptr::dangling_mut(), std::ptr::dangling_mut());
    }

    /// Returns the number of the buffer's bytes that are used, in whole blocks. It is a single
    /// block if the page cache already has part of that block.
    fn capacity(&self) -> usize {
        if self.clean > 0 {
            return self.align_bytes as usize;
        }
        let bytes = self.buffer.as_ref().map_or(0, Buffer::capacity);
        bytes - bytes % self.align_bytes as usize
    }

    /// Returns the free part of the buffer; never empty.
    pub(super) fn room(&mut self) -> Result<&mut [u8], Error> {
        self.check()?;
        let (filled, capacity) = (self.filled(), self.capacity());
        let buffer = self.buffer.as_mut().expect("there is a buffer while nothing failed");
        Ok(&mut buffer[filled..capacity])
    }

    pub(super) fn fill(&mut self, len: usize) -> Result<(), Error> {
        self.advance(len)?;
        self.sync_by_itself()
    }

    /// Adds `len` bytes to the filled part of the buffer, and submits a full buffer.
    fn advance(&mut self, len: usize) -> Result<(), Error> {
        self.set_filled(self.filled() + len);
        if self.filled() < self.capacity() {
            Ok(())
        } else if self.clean > 0 {
            // If the write were direct, a reader would, once the file has become longer, briefly
            // see the old page, with zeros at its end.
            self.write_tail()
        } else {
            self.hand_over()
        }
    }

    fn sync_by_itself(&mut self) -> Result<(), Error> {
        match self.sync {
            SyncPolicy::No => Ok(()),
            SyncPolicy::Always => self.sync_data(),
            SyncPolicy::EverySec => self.sync_after(Duration::from_secs(1)),
            SyncPolicy::Interval(interval) => self.sync_after(interval),
        }
    }

    fn sync_after(&mut self, interval: Duration) -> Result<(), Error> {
        if self.synced_at.elapsed() >= interval { self.sync_data() } else { Ok(()) }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        self.take(bytes)?;
        self.sync_by_itself()
    }

    /// Writes all slices as if they were one.
    pub(super) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<(), Error> {
        self.check()?;
        slices.iter().try_for_each(|slice| self.take(slice))?;
        self.sync_by_itself()
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let room = self.room()?;
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            bytes = later;
            self.advance(now.len())?;
        }
        Ok(())
    }

    /// Returns the number of bytes in the buffer that make up whole blocks.
    fn whole(&self) -> usize {
        self.filled() - self.filled() % self.align_bytes as usize
    }

    /// Writes everything to the file, where other programs can read it.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        self.settle()
    }

    pub(super) fn sync_data(&mut self) -> Result<(), Error> {
        self.check()?;
        self.settle()?;
        if self.is_dirty {
            let flushed = self.engine.flush(self.file);
            self.note(flushed)?;
            self.is_dirty = false;
        }
        if let (Some(folder), false) = (&self.folder, self.is_name_durable) {
            let synced = self.engine.sync_folder(folder);
            self.note(synced)?;
            self.is_name_durable = true;
        }
        self.synced_at = Instant::now();
        Ok(())
    }

    pub(super) fn seek(&mut self, place: u64) -> Result<(), Error> {
        self.check()?;
        if place == self.position() {
            return Ok(());
        }
        self.is_sequential = false;
        self.settle()?;
        let begun = self.begin_at(place);
        self.note(begun)
    }

    /// Writes the rest, releases the reserved blocks, flushes if `durable`, and closes the file. A
    /// replacement then gets its final name, or is removed after an error.
    pub(super) fn end(&mut self, durable: bool) -> Result<Written, Error> {
        if let Err(error) = self.engine.check_process() {
            // Locks, and a file without its final name, belong to the parent.
            self.is_open = false;
            return Err(error);
        }
        let settled = self.check().and_then(|()| self.settle());
        let ended = settled.and_then(|()| self.give_back()).and_then(|()| {
            if durable && !self.is_replacement() { self.sync_data() } else { Ok(()) }
        });
        self.is_open = false;
        let method = Method::of(&self.engine, self.file);
        self.unlock();
        self.drop_buffer();
        let closed = match self.replacement.take() {
            None => ended.and(self.engine.close_file(self.file)),
            Some(replacement) => self.replace(replacement, ended, durable),
        };
        self.given = None;
        closed?;
        Ok(Written {
            bytes: self.len,
            elapsed: self.opened_at.elapsed(),
            method,
            durable,
            checksum: None,
            effective: self.engine.effective().clone(),
        })
    }

    fn replace(
        &mut self,
        replacement: Replacement,
        written: Result<(), Error>,
        durable: bool,
    ) -> Result<(), Error> {
        let engine = &mut self.engine;
        match written.and_then(|()| replacement.complete(engine, durable)) {
            Ok(()) => replacement.put(engine, durable).map_err(|error| error.about(&self.path)),
            Err(error) => {
                replacement.discard(engine);
                Err(error)
            }
        }
    }

    /// Drops the buffered bytes, and removes a file that does not have its final name yet.
    pub(super) fn discard(&mut self) {
        self.is_open = false;
        self.drop_buffer();
        if let Some(replacement) = self.replacement.take() {
            replacement.discard(&mut self.engine);
        }
    }

    /// Closes the file without writing the rest and without a flush, and removes it if this stream
    /// created it.
    pub(super) fn abandon(&mut self) {
        self.leave_what_is_whole();
        self.unlock();
        self.discard();
        if self.is_new && self.engine.is_named(self.file, &self.path).unwrap_or(false) {
            // There is no caller to report an error to.
            let _ = self.engine.remove(&self.path);
        }
    }

    fn unlock(&self) {
        if let Some(descriptor) = self.engine.descriptor(self.file).filter(|_| self.appends) {
            // Closing the file would also release the lock, but a ring may close it later.
            let _ = flock(descriptor, FlockOperation::Unlock);
        }
    }

    /// Begins a buffer at `place`. Nothing may be in flight. Reads the bytes that precede `place`
    /// in its block.
    fn begin_at(&mut self, place: u64) -> Result<(), Error> {
        let before = place % self.align_bytes;
        self.base = place - before;
        self.drop_buffer();
        let mut buffer = self.engine.lease()?;
        if before > 0 {
            buffer = self.read_block(buffer, self.base)?;
            buffer.set_len(buffer.capacity());
        }
        self.buffer = Some(buffer);
        self.clean = before as usize;
        self.set_filled(self.clean);
        Ok(())
    }

    /// Reads the block at `offset` into `buffer`, and fills the rest of the block after the file's
    /// end with zeros.
    fn read_block(&mut self, mut buffer: Buffer, offset: u64) -> Result<Buffer, Error> {
        let block = self.align_bytes as usize;
        buffer.set_len(block);
        self.engine.queue(offset, Op::Read { file: self.file, offset, buffer });
        let mut completions = Vec::new();
        self.engine.reap(1, &mut completions)?;
        let read = completions.pop().expect("one was queued and nothing else was in flight");
        let len = read.result?;
        let mut buffer = read.buffer.expect("a read gives its buffer back");
        // Bytes that another program appended must not be written again.
        let known = self.len.saturating_sub(offset).min(len as u64) as usize;
        buffer[known..].fill(0);
        Ok(buffer)
    }

    /// Submits the buffer's whole blocks to the engine.
    fn hand_over(&mut self) -> Result<(), Error> {
        let whole = self.whole();
        if self.base + whole as u64 > self.len {
            // If two writes after the file's end were in flight, the later one might complete first
            // and leave a gap of zeros before it. Waiting costs nothing, because a direct write
            // that extends its file waits for other writes anyway.
            self.reap(usize::MAX)?;
        }
        self.queue_buffer(whole)?;
        self.engine.register_buffers();
        self.reap(0)
    }

    /// Writes everything, and waits. The buffer keeps a partial block, because the block is written
    /// again with later bytes.
    fn settle(&mut self) -> Result<(), Error> {
        if self.whole() > TAIL_BYTES_MAX {
            self.hand_over()?;
        }
        if self.filled() > self.clean {
            self.write_tail()?;
        } else {
            self.reap(usize::MAX)?;
        }
        self.settled_len = self.len;
        Ok(())
    }

    /// Writes the buffer up to its last byte, and waits for all writes. The bytes go through the
    /// page cache, because a direct write would have to end with a whole block. The buffer keeps
    /// the partial block.
    fn write_tail(&mut self) -> Result<(), Error> {
        self.reap(usize::MAX)?;
        let is_direct = self.engine.is_direct(self.file);
        if is_direct {
            let left = self.engine.set_direct(self.file, false);
            self.note(left)?;
        }
        self.queue_buffer(self.filled())?;
        self.reap(usize::MAX)?;
        if is_direct {
            let back = self.engine.set_direct(self.file, true);
            self.note(back)?;
        }
        Ok(())
    }

    /// Queues a write of the buffer's first `len` bytes, and moves the bytes after its last whole
    /// block into another buffer.
    fn queue_buffer(&mut self, len: usize) -> Result<(), Error> {
        self.check_others()?;
        let (filled, whole) = (self.filled(), self.whole());
        let mut buffer = self.buffer.take().expect("there is a buffer while nothing failed");
        let leased = self.engine.lease();
        let mut next = self.note(leased)?;
        let rest = filled - whole;
        next[..rest].copy_from_slice(&buffer[whole..filled]);
        self.buffer = Some(next);
        buffer.set_len(len);
        let (file, offset) = (self.file, self.base);
        self.len = self.len.max(offset + len as u64);
        self.is_dirty = true;
        self.engine.queue(offset, Op::Write { file, offset, buffer, durable: false });
        self.base += whole as u64;
        self.clean = if len > whole { rest } else { 0 };
        self.set_filled(rest);
        Ok(())
    }

    /// Reserves blocks after the file's end. Nothing may be in flight.
    ///
    /// Does not reserve beyond `RLIMIT_FSIZE`: an optimization must not kill the process (SIGXFSZ,
    /// `setrlimit(2)`).
    fn reserve(&mut self, offset: u64, len: u64) -> Result<(), Error> {
        let most = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if offset.saturating_add(len) > most {
            let errno = Errno::FBIG.into();
            return Err(Error::file(&self.path, Action::Fallocate, Some(offset), &errno));
        }
        self.find_others()?;
        self.has_reserved = true;
        self.engine.queue(RESERVATION, Op::Reserve { file: self.file, offset, len });
        let mut completions = Vec::new();
        self.engine.reap(1, &mut completions)?;
        completions.pop().expect("one was queued, nothing else in flight").result.map(drop)
    }

    /// Releases the reserved blocks after the file's end.
    fn give_back(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.has_reserved) {
            self.check_others()?;
            let cut = self.engine.truncate(self.file, self.len);
            self.note(cut)?;
        }
        Ok(())
    }

    /// Fails permanently if another program changed the length of a file that this stream appends
    /// to.
    fn check_others(&mut self) -> Result<(), Error> {
        let found = self.find_others();
        self.note(found)
    }

    fn find_others(&self) -> Result<(), Error> {
        if !self.appends {
            return Ok(());
        }
        let len = self.engine.file_len(self.file)?;
        // Writes in flight may or may not have extended the file yet.
        let len_known = (self.settled_len, self.len);
        if (len_known.0..=len_known.1).contains(&len) {
            return Ok(());
        }
        Err(Error::Interfered { path: self.path.clone(), len, len_known })
    }

    /// Waits for at least `min` completions, and handles them.
    fn reap(&mut self, min: usize) -> Result<(), Error> {
        let mut completions = std::mem::take(&mut self.completions);
        let reaped = self.engine.reap(min, &mut completions);
        let mut result = reaped;
        for Completion { user_data: offset, result: written, .. } in completions.drain(..) {
            if let Err(error) = written {
                self.failed_at = Some(self.failed_at.map_or(offset, |known| known.min(offset)));
                result = result.and(Err(error));
            }
        }
        self.completions = completions;
        self.note(result)
    }

    /// Returns the first error again, if there was one.
    fn check(&self) -> Result<(), Error> {
        self.engine.check_process()?;
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Records the first error permanently (W2).
    fn note<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let (Err(error), None) = (&result, &self.failed) {
            self.failed = Some(error.clone());
            self.leave_what_is_whole();
        }
        result
    }

    /// Truncates the file to the bytes that have been written, so that no reserved blocks and no
    /// gap of zeros are left. For use after an error, or to abandon the file.
    fn leave_what_is_whole(&mut self) {
        self.drop_buffer();
        let mut completions = Vec::new();
        // The first error is the one to report.
        let _ = self.engine.reap(usize::MAX, &mut completions);
        let failed = completions.iter().filter(|completion| completion.result.is_err());
        let failed_at = failed.map(|completion| completion.user_data).chain(self.failed_at).min();
        let len = match failed_at {
            Some(place) if self.is_sequential => self.len.min(place).max(self.settled_len),
            _ => self.len,
        };
        let is_longer = self.len > len || self.has_reserved;
        if is_longer && self.find_others().is_ok() {
            let _ = self.engine.truncate(self.file, len);
        }
    }
}

/// Locks a file that is appended to (`flock(2)`) against another `Writer`. If the file system does
/// not support locks, that is not an error, because the length is checked as well.
///
/// A killed process's file stays locked until the kernel has dismantled the process's ring, some
/// time after the process has exited, because a write may still be in flight.
fn lock(engine: &Engine, file: FileId, path: &Path) -> Result<(), Error> {
    let Some(descriptor) = engine.descriptor(file) else { return Ok(()) };
    let begin = Instant::now();
    while flock(descriptor, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        if begin.elapsed() > LOCKED_MAX {
            let because =
                "another program has it locked, perhaps another Writer that appends to it";
            return Err(Error::refused_as(libc::EBUSY, path, because));
        }
        std::thread::sleep(LOCK_AGAIN_AFTER);
    }
    Ok(())
}
