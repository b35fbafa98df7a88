//! The background half of a `Writer`: full buffers, the tail, the file's true length.

use super::Written;
use super::target::{Replacement, Target};
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

/// The number of the operation that extends the file. Writes have their offset as number.
const ALLOCATION: u64 = u64::MAX;
/// The growth since the last sync from which the file is extended ahead of the writes.
const AHEAD_FROM_BYTES: u64 = 8 << 20;
/// The longest extension; the growth since the last sync is its usual length.
const AHEAD_BYTES_MAX: u64 = 256 << 20;

/// A file and the buffer that is being filled for it.
///
/// The buffer begins at a whole block of the file. The bytes before it were handed to the engine. A
/// sync may already have written some bytes of the buffer.
#[derive(Debug)]
pub(super) struct Stream {
    engine: Engine,
    file: FileId,
    path: PathBuf,
    /// The folder that holds its name, if it has one.
    folder: Option<PathBuf>,
    /// The way to its place, if it is not there yet.
    replacement: Option<Replacement>,
    /// The file that the caller opened, which keeps its locks.
    given: Option<File>,
    /// Offset and length of a transfer must be multiples of this.
    align_bytes: u64,
    /// The buffer; `None` only during a wait for another, and after an error.
    buffer: Option<Buffer>,
    /// The place of the buffer in the file.
    base: u64,
    filled: usize,
    /// The bytes of the buffer that the file has already.
    clean: usize,
    /// The file's true length, without bytes of the buffer that were not written.
    len: u64,
    /// The file's length in the kernel: it includes padding of the last block, and extensions.
    len_in_kernel: u64,
    extends_ahead: bool,
    since_sync_bytes: u64,
    synced_at: Instant,
    /// Whether there were writes since the last sync.
    is_dirty: bool,
    /// Whether the file's name is known to be on stable storage.
    is_name_durable: bool,
    sync: SyncPolicy,
    /// Whether other programs may append to the file, too: then its length is examined before each
    /// change, and the file is locked.
    appends: bool,
    /// Writes queued since the last submission, and the number that triggers one. A device gets
    /// each write at once; a worker serves the page cache, and is woken for several.
    queued: u32,
    queued_max: u32,
    /// Whether every byte followed the one before.
    is_sequential: bool,
    /// The lowest place at which a write failed: the beginning of its block, which may hold older
    /// bytes.
    failed_at: Option<u64>,
    /// The file's length when nothing was in flight last: a later error takes nothing of it away.
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
        direct: bool,
        sync: SyncPolicy,
        appends: bool,
        opened_at: Instant,
    ) -> Result<Stream, Error> {
        let Target { file, path, folder, begin, replacement, given } = target;
        // A lock of the caller's own would refuse this one.
        if appends && given.is_none() {
            lock(&engine, file, &path)?;
        }
        let len = engine.file_len(file)?;
        let begin = begin.unwrap_or(len);
        let align_bytes = u64::from(engine.align_bytes(file));
        let mut stream = Stream {
            align_bytes,
            buffer: None,
            base: 0,
            filled: 0,
            clean: 0,
            len,
            len_in_kernel: len,
            extends_ahead: true,
            since_sync_bytes: 0,
            synced_at: opened_at,
            is_dirty: true,
            is_name_durable: folder.is_none(),
            sync,
            appends,
            queued: 0,
            queued_max: if direct { 1 } else { engine.effective().iodepth.div_ceil(2) },
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
        if bytes <= self.len.max(AHEAD_FROM_BYTES) {
            return Ok(());
        }
        match self.try_allocate(self.len, bytes - self.len) {
            // A lack of room, or a quota, fails now rather than at the end of the file.
            Err(error) if matches!(error.errno(), libc::ENOSPC | libc::EDQUOT) => {
                // Some file systems (ext4) have allocated all that they have: the disk would stay
                // full.
                let _ = self.cut();
                Err(error)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    /// Whether its end is to be made: it was not, and this process may.
    pub(super) fn is_open(&self) -> bool {
        self.is_open && self.engine.check_process().is_ok()
    }

    /// Whether the file takes its place at its end alone.
    pub(super) fn is_replacement(&self) -> bool {
        self.replacement.is_some()
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.engine.descriptor(self.file)
    }

    pub(super) fn position(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// The length of the file with all writes.
    pub(super) fn len(&self) -> u64 {
        if self.filled > self.clean { self.len.max(self.position()) } else { self.len }
    }

    /// Returns the places of the buffer's next byte and of its last one, for the fast path. They
    /// are equal where every write must come by here.
    pub(super) fn free_room(&mut self) -> (*mut u8, *mut u8) {
        let watched = self.sync != SyncPolicy::No || self.failed.is_some();
        let capacity = self.capacity();
        let Some(buffer) = &mut self.buffer else {
            return (std::ptr::null_mut(), std::ptr::null_mut());
        };
        let room = &mut buffer[self.filled..capacity];
        let next = room.as_mut_ptr();
        let last = if watched { 0 } else { room.len().saturating_sub(1) };
        // A second reference into the buffer would end `next` (Stacked Borrows).
        (next, next.wrapping_add(last))
    }

    /// Learns that the fast path has filled the buffer up to `next`.
    pub(super) fn set_next(&mut self, next: *mut u8) {
        if let Some(buffer) = &self.buffer {
            self.filled = next as usize - buffer.as_ptr() as usize;
        }
    }

    /// The buffer's bytes that are used: whole blocks.
    fn capacity(&self) -> usize {
        let bytes = self.buffer.as_ref().map_or(0, Buffer::capacity);
        bytes - bytes % self.align_bytes as usize
    }

    /// Returns the free part of the buffer; never empty.
    pub(super) fn room(&mut self) -> Result<&mut [u8], Error> {
        self.check()?;
        let capacity = self.capacity();
        let buffer = self.buffer.as_mut().expect("there is a buffer while nothing failed");
        Ok(&mut buffer[self.filled..capacity])
    }

    pub(super) fn fill(&mut self, len: usize) -> Result<(), Error> {
        self.advance(len)?;
        self.sync_by_itself()
    }

    /// Moves on by `len` bytes, and hands a full buffer over.
    fn advance(&mut self, len: usize) -> Result<(), Error> {
        self.filled += len;
        if self.filled == self.capacity() { self.hand_over() } else { Ok(()) }
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

    /// Writes all slices, as if they were one.
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

    /// The buffer's bytes that are whole blocks.
    fn whole(&self) -> usize {
        self.filled - self.filled % self.align_bytes as usize
    }

    /// Hands over whole blocks, without waiting.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        if self.whole() > self.clean {
            self.hand_over()?;
        }
        self.submit()
    }

    pub(super) fn sync_data(&mut self) -> Result<(), Error> {
        self.check()?;
        self.settle()?;
        if self.is_dirty {
            // The length first: an earlier flush would not cover it.
            self.cut()?;
            let flushed = self.engine.flush(self.file);
            self.note(flushed)?;
            self.is_dirty = false;
        }
        if let (Some(folder), false) = (&self.folder, self.is_name_durable) {
            let synced = self.engine.sync_folder(folder);
            self.note(synced)?;
            self.is_name_durable = true;
        }
        self.since_sync_bytes = 0;
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

    /// Writes the rest, sets the true length, flushes if `durable`, and closes the file. One that
    /// replaces another takes its place, or is removed after an error.
    pub(super) fn end(&mut self, durable: bool) -> Result<Written, Error> {
        if let Err(error) = self.engine.check_process() {
            // Locks, and a file on its way to its place, are the parent's.
            self.is_open = false;
            return Err(error);
        }
        let ended = if durable && !self.is_replacement() {
            self.sync_data()
        } else {
            self.check().and_then(|()| self.settle()).and_then(|()| self.cut())
        };
        self.is_open = false;
        let direct = self.engine.is_direct(self.file);
        if let Some(descriptor) = self.engine.descriptor(self.file).filter(|_| self.appends) {
            // Closing would do it, but a ring may let go of the file later.
            let _ = flock(descriptor, FlockOperation::Unlock);
        }
        self.buffer = None;
        let closed = match self.replacement.take() {
            None => ended.and(self.engine.close_file(self.file)),
            Some(replacement) => self.replace(replacement, ended, durable),
        };
        self.given = None;
        closed?;
        Ok(Written {
            bytes: self.len,
            elapsed: self.opened_at.elapsed(),
            direct,
            durable,
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

    /// Gives up a file that is not at its place yet: it is removed.
    pub(super) fn discard(&mut self) {
        self.is_open = false;
        self.buffer = None;
        if let Some(replacement) = self.replacement.take() {
            replacement.discard(&mut self.engine);
        }
    }

    /// Begins a buffer at `place`, with nothing in flight. Reads the bytes of its block before the
    /// place.
    fn begin_at(&mut self, place: u64) -> Result<(), Error> {
        let before = place % self.align_bytes;
        self.base = place - before;
        self.buffer = None;
        let mut buffer = self.engine.lease()?;
        if before > 0 {
            buffer = self.read_block(buffer, self.base)?;
            buffer.set_len(buffer.capacity());
        }
        self.buffer = Some(buffer);
        self.filled = before as usize;
        self.clean = self.filled;
        Ok(())
    }

    /// Reads the block at `offset`, with zeros after the file's end.
    fn read_block(&mut self, mut buffer: Buffer, offset: u64) -> Result<Buffer, Error> {
        let block = self.align_bytes as usize;
        buffer.set_len(block);
        self.engine.queue(offset, Op::Read { file: self.file, offset, buffer });
        let mut completions = Vec::new();
        self.engine.reap(1, &mut completions)?;
        let read = completions.pop().expect("one was queued and nothing else was in flight");
        let len = read.result?;
        let mut buffer = read.buffer.expect("a read gives its buffer back");
        // An earlier padding is no part of the file.
        let known = self.len.saturating_sub(offset).min(len as u64) as usize;
        buffer[known..].fill(0);
        Ok(buffer)
    }

    /// Hands the buffer's whole blocks to the engine, and moves the rest to another buffer.
    fn hand_over(&mut self) -> Result<(), Error> {
        self.extend_ahead()?;
        self.check_others()?;
        self.engine.grow();
        let whole = self.whole();
        let mut full = self.buffer.take().expect("there is a buffer while nothing failed");
        let leased = self.engine.lease();
        let mut next = self.note(leased)?;
        let rest = self.filled - whole;
        next[..rest].copy_from_slice(&full[whole..self.filled]);
        self.buffer = Some(next);
        full.set_len(whole);
        self.queue_up_to(self.base, full, self.base + whole as u64);
        self.base += whole as u64;
        self.filled = rest;
        self.clean = 0;
        self.engine.register_buffers();
        self.queued += 1;
        if self.queued < self.queued_max {
            return Ok(());
        }
        self.submit()
    }

    /// Submits the queue, and handles completions.
    fn submit(&mut self) -> Result<(), Error> {
        self.queued = 0;
        self.reap(0)
    }

    /// Hands over everything, the last block padded, and waits. A partial block stays in the
    /// buffer, too: it is written again with later bytes.
    fn settle(&mut self) -> Result<(), Error> {
        if self.filled > self.clean {
            self.write_buffer()?;
        }
        self.reap(usize::MAX)?;
        self.settled_len = self.len;
        Ok(())
    }

    /// Writes the buffer, and keeps the partial block.
    fn write_buffer(&mut self) -> Result<(), Error> {
        self.check_others()?;
        let end = self.position();
        let padded = self.filled.next_multiple_of(self.align_bytes as usize);
        let mut buffer = self.buffer.take().expect("there is a buffer while nothing failed");
        let whole = self.whole();
        if padded > self.filled {
            buffer[self.filled..padded].fill(0);
            if end < self.len {
                self.reap(usize::MAX)?;
                // The rest of the block comes from the file.
                let leased = self.engine.lease();
                let other = self.note(leased)?;
                let read = self.read_block(other, self.base + whole as u64);
                let known = self.note(read)?;
                buffer[self.filled..padded].copy_from_slice(&known[self.filled - whole..]);
            }
        }
        let leased = self.engine.lease();
        let mut next = self.note(leased)?;
        let rest = self.filled - whole;
        next[..rest].copy_from_slice(&buffer[whole..self.filled]);
        buffer.set_len(padded);
        let base = self.base;
        self.buffer = Some(next);
        self.base += whole as u64;
        (self.filled, self.clean) = (rest, rest);
        self.queue_up_to(base, buffer, end);
        Ok(())
    }

    /// Queues a write whose bytes up to `end` count.
    fn queue_up_to(&mut self, offset: u64, buffer: Buffer, end: u64) {
        self.len_in_kernel = self.len_in_kernel.max(offset + buffer.len() as u64);
        self.len = self.len.max(end);
        self.since_sync_bytes += buffer.len() as u64;
        self.is_dirty = true;
        self.engine.queue(offset, Op::Write { file: self.file, offset, buffer, durable: false });
    }

    /// Extends a growing file ahead of the writes. A direct write that extends its file waits for
    /// all others, and they for it (ext4). Bytes that another program appends meanwhile lie behind
    /// the extension, and are found there.
    fn extend_ahead(&mut self) -> Result<(), Error> {
        let grown = self.since_sync_bytes;
        let pays = grown >= AHEAD_FROM_BYTES && self.engine.is_direct(self.file);
        let is_behind = self.position() > self.len_in_kernel;
        if !(self.extends_ahead && is_behind && (pays || self.appends)) {
            return Ok(());
        }
        self.reap(usize::MAX)?;
        // Without it the writes extend the file.
        self.extends_ahead = {
            let len = grown.min(AHEAD_BYTES_MAX).max(self.filled as u64);
            self.try_allocate(self.base, len).is_ok()
        };
        self.check()
    }

    /// Allocates, and extends the file; nothing is in flight.
    ///
    /// Never beyond RLIMIT_FSIZE: an optimisation must not end the process (SIGXFSZ,
    /// `setrlimit(2)`).
    fn try_allocate(&mut self, offset: u64, len: u64) -> Result<(), Error> {
        let most = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if offset.saturating_add(len) > most {
            let errno = Errno::FBIG.into();
            return Err(Error::file(&self.path, Action::Fallocate, Some(offset), &errno));
        }
        self.find_others()?;
        self.engine.queue(ALLOCATION, Op::Fallocate { file: self.file, offset, len });
        let mut completions = Vec::new();
        self.engine.reap(1, &mut completions)?;
        let result = completions.pop().expect("one was queued, nothing else in flight").result;
        // A failed allocation may have extended the file, too.
        self.len_in_kernel = self.engine.file_len(self.file)?;
        result.map(drop)
    }

    fn cut(&mut self) -> Result<(), Error> {
        if self.len_in_kernel > self.len {
            self.check_others()?;
            let cut = self.engine.truncate(self.file, self.len);
            self.note(cut)?;
            self.len_in_kernel = self.len;
        }
        Ok(())
    }

    /// Fails for good where another program changed the length of a file that this one appends to.
    fn check_others(&mut self) -> Result<(), Error> {
        let found = self.find_others();
        self.note(found)
    }

    fn find_others(&self) -> Result<(), Error> {
        if !self.appends {
            return Ok(());
        }
        let len = self.engine.file_len(self.file)?;
        // Writes in flight may have extended the file or not.
        let len_known = (self.settled_len, self.len_in_kernel);
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

    /// Returns the first error again.
    fn check(&self) -> Result<(), Error> {
        self.engine.check_process()?;
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Records the first error for good (W2).
    fn note<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let (Err(error), None) = (&result, &self.failed) {
            self.failed = Some(error.clone());
            self.leave_what_is_whole();
        }
        result
    }

    /// After an error, leaves the bytes written until then, without zeros behind them.
    fn leave_what_is_whole(&mut self) {
        self.buffer = None;
        let mut completions = Vec::new();
        // The first error is the one to report.
        let _ = self.engine.reap(usize::MAX, &mut completions);
        let failed = completions.iter().filter(|completion| completion.result.is_err());
        let failed_at = failed.map(|completion| completion.user_data).chain(self.failed_at).min();
        let len = match failed_at {
            Some(place) if self.is_sequential => self.len.min(place).max(self.settled_len),
            _ => self.len,
        };
        if self.len_in_kernel > len && self.find_others().is_ok() {
            let _ = self.engine.truncate(self.file, len);
        }
    }
}

/// Locks a file that is appended to (`flock(2)`), against another `Writer`. A file system without
/// locks is no error: the length is examined there, too.
fn lock(engine: &Engine, file: FileId, path: &Path) -> Result<(), Error> {
    let Some(descriptor) = engine.descriptor(file) else { return Ok(()) };
    match flock(descriptor, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            let because =
                "another program has it locked, perhaps another Writer that appends to it";
            Err(Error::refused(path, because))
        }
        _ => Ok(()),
    }
}
