//! The source of a `Reader`'s bytes: single reads, one after another, or a read-ahead with several
//! in flight.

use super::ReaderOptions;
use super::ahead::Ahead;
use super::plain::Plain;
use crate::buffer::Buffer;
use crate::file::cached::cached_bytes_at;
use crate::fork::Process;
use crate::{Effective, Error, Ioengine};
use std::io::SeekFrom;

/// The size of the first read, in bytes, as with a `BufReader`. Each consecutive read is four times
/// as long as the previous one.
const FIRST_READ_BYTES: usize = 8 << 10;
/// The maximum size of a read through the page cache, in bytes. It fits into the processor's cache.
const READ_BYTES_MAX: usize = 128 << 10;
/// The alignment of the buffer in memory: a cache line. `malloc(3)` returns memory 16 bytes after
/// the start of a cache line, and the kernel took three times as long to copy to such an address.
const BUFFER_ALIGN_BYTES: usize = 64;
/// The number of bytes read in order after which the file may be read directly.
const IN_ORDER_BYTES_MIN: u64 = 128 << 10;

/// The buffer from which the caller reads.
#[derive(Debug)]
enum Current {
    /// `bytes`, the buffer of plain reads.
    Plain,
    /// A piece that was read ahead.
    Piece(Buffer),
}

/// A file, the buffer that the caller reads from, and the data read ahead.
#[derive(Debug)]
pub(super) struct Source {
    plain: Plain,
    bytes: Vec<u8>,
    current: Current,
    /// The part of the current buffer that contains bytes of the file: offset and length.
    part: (usize, usize),
    /// The file offset of the first byte after the current buffer.
    end: u64,
    /// The sizes of the next plain read, and of the longest one, in bytes.
    read_bytes: usize,
    read_bytes_max: usize,
    /// The read-ahead; created when it is first needed, and kept for reuse.
    ahead: Option<Ahead>,
    is_ahead: bool,
    /// Whether direct reads are wanted and have not been refused.
    may_be_direct: bool,
    /// The offset at which to check whether the page cache has the bytes that follow.
    examine_at: u64,
    options: ReaderOptions,
    effective: Effective,
    process: Process,
}

impl Source {
    pub(super) fn new(plain: Plain, options: ReaderOptions, place: u64) -> Source {
        let read_bytes_max = READ_BYTES_MAX.min(options.bs_bytes);
        let effective = Effective { ioengine: Ioengine::Psync, iodepth: 1, ..Effective::default() };
        let mut source = Source {
            may_be_direct: options.direct && plain.is_at(),
            plain,
            bytes: Vec::new(),
            current: Current::Plain,
            part: (0, 0),
            end: place,
            read_bytes: 0,
            read_bytes_max,
            ahead: None,
            is_ahead: false,
            examine_at: 0,
            options,
            effective,
            process: Process::this(),
        };
        source.begin_small();
        source
    }

    pub(super) fn effective(&self) -> &Effective {
        self.ahead.as_ref().map_or(&self.effective, Ahead::effective)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.is_ahead
    }

    pub(super) fn len(&self) -> Result<u64, Error> {
        self.plain.len()
    }

    /// Returns the file offset of the first byte after the buffer, and the length of the buffer's
    /// content.
    pub(super) fn place(&self) -> (u64, usize) {
        (self.end, self.part.1)
    }

    /// Returns the file's bytes in the current buffer.
    pub(super) fn buffered(&self) -> &[u8] {
        let (start, len) = self.part;
        match &self.current {
            Current::Plain => &self.bytes[start..start + len],
            Current::Piece(piece) => &piece[start..start + len],
        }
    }

    /// Replaces the buffer's content with the bytes that follow it. The buffer is empty at the end
    /// of the file, and after an error, which applies to the offset where the buffer ended.
    pub(super) fn refill(&mut self) -> Result<(), Error> {
        self.process.check()?;
        self.part = (0, 0);
        // Returns the piece to the pool before the next read needs a buffer.
        self.current = Current::Plain;
        if self.next_piece() {
            return Ok(());
        }
        let room_bytes = self.read_bytes + BUFFER_ALIGN_BYTES;
        if self.bytes.len() < room_bytes {
            // The old buffer is freed first, so that the two never exist at once.
            self.bytes = Vec::new();
            self.bytes = vec![0; room_bytes];
        }
        let start = self.bytes.as_ptr().align_offset(BUFFER_ALIGN_BYTES).min(BUFFER_ALIGN_BYTES);
        let room = &mut self.bytes[start..start + self.read_bytes];
        let len = self.plain.read(room, self.end)?;
        self.part = (start, len);
        self.went_on(len);
        Ok(())
    }

    /// Reads the bytes that follow the buffer, which must be empty, into the caller's memory.
    /// Returns `None` if the buffer should be used instead, because the read is short or bytes have
    /// been read ahead.
    pub(super) fn read_past(&mut self, into: &mut [u8]) -> Option<Result<usize, Error>> {
        if into.len() < self.read_bytes || self.is_ahead || self.is_to_be_examined() {
            return None;
        }
        if let Err(error) = self.process.check() {
            return Some(Err(error));
        }
        self.part = (0, 0);
        let read = self.plain.read(into, self.end);
        Some(read.inspect(|&len| self.went_on(len)))
    }

    fn went_on(&mut self, len: usize) {
        self.end += len as u64;
        if len > 0 {
            self.read_bytes = (self.read_bytes * 4).min(self.read_bytes_max);
        }
    }

    /// Moves to an offset outside the buffer.
    pub(super) fn seek(&mut self, place: u64) -> Result<(), Error> {
        self.process.check()?;
        if !self.plain.is_at() {
            self.plain.seek(SeekFrom::Start(place))?;
        }
        let is_read_ahead = self.is_ahead
            && self.ahead.as_ref().is_some_and(|ahead| ahead.has(place) && place >= self.end);
        self.part = (0, 0);
        self.current = Current::Plain;
        self.end = place;
        if !is_read_ahead {
            self.is_ahead = false;
            self.begin_small();
        }
        Ok(())
    }

    /// Returns the offset that is `by` bytes after the end of the file.
    pub(super) fn place_from_end(&mut self, by: i64) -> Result<Option<u64>, Error> {
        if self.plain.is_at() {
            return Ok(self.plain.len()?.checked_add_signed(by));
        }
        let place = self.plain.seek(SeekFrom::End(by))?;
        Ok(Some(place))
    }

    /// Begins with short reads after a jump, because the next read may be elsewhere.
    fn begin_small(&mut self) {
        self.read_bytes = FIRST_READ_BYTES.min(self.read_bytes_max);
        let in_order_bytes = IN_ORDER_BYTES_MIN.min(self.options.bs_bytes as u64);
        self.examine_at = self.end.saturating_add(in_order_bytes);
    }

    fn is_to_be_examined(&self) -> bool {
        self.may_be_direct && self.end >= self.examine_at
    }

    /// Returns the number of bytes for which a single check determines whether they are cached.
    fn span_bytes(&self) -> u64 {
        self.options.bs_bytes as u64 * u64::from(self.options.iodepth)
    }

    /// Returns whether direct reads are better for `from..len`. If the kernel does not report how
    /// much is cached, the read goes through the cache: a cached read is never much slower than a
    /// direct one, but the reverse is not true.
    fn is_cold(&self, from: u64, len: u64) -> bool {
        let span = self.span_bytes().min(len.saturating_sub(from));
        match self.plain.descriptor() {
            Some(file) => cached_bytes_at(file, from, span).is_some_and(|cached| cached < span / 2),
            None => true,
        }
    }

    /// Makes the next piece that was read ahead the current buffer. Returns `false` if a plain read
    /// has to follow: at the end of the file, after an error, or if the file is cached.
    fn next_piece(&mut self) -> bool {
        self.is_ahead = self.is_ahead || self.is_to_be_examined() && self.begin_ahead();
        if !self.is_ahead {
            return false;
        }
        let found = self.find_piece();
        if !found {
            self.is_ahead = false;
            self.read_bytes = self.read_bytes_max;
            self.examine_at = self.end.saturating_add(self.span_bytes());
        }
        found
    }

    /// Starts direct read-ahead if that promises to be faster than the cache.
    fn begin_ahead(&mut self) -> bool {
        self.examine_at = self.end.saturating_add(self.span_bytes());
        let Ok(len) = self.plain.len() else { return false };
        // A short remainder is not worth the cost of an engine.
        if len.saturating_sub(self.end) < self.span_bytes() / 2 || !self.is_cold(self.end, len) {
            return false;
        }
        // The buffer of plain reads is not current, so its memory is freed.
        self.bytes = Vec::new();
        if self.ahead.is_none() {
            match Ahead::open(&self.plain, &self.options, &self.effective.fallbacks) {
                Ok(ahead) => self.ahead = Some(ahead),
                Err(error) => {
                    self.may_be_direct = false;
                    let because = error.to_string();
                    self.effective.fell_back("direct reads", "page cache", because);
                    return false;
                }
            }
        }
        let ahead = self.ahead.as_mut().expect("it was opened");
        self.may_be_direct = ahead.is_direct();
        self.is_ahead = self.may_be_direct;
        if self.is_ahead {
            let span = self.options.bs_bytes as u64 * u64::from(self.options.iodepth);
            ahead.begin_at(self.end, len, self.end.saturating_add(span));
        }
        self.is_ahead
    }

    fn find_piece(&mut self) -> bool {
        let mut ahead = self.ahead.take().expect("it was opened");
        let found = self.find_piece_in(&mut ahead);
        self.ahead = Some(ahead);
        found
    }

    fn find_piece_in(&mut self, ahead: &mut Ahead) -> bool {
        loop {
            if let Some(from) = ahead.is_at_end_of_span() {
                // The file may have grown.
                let len = self.plain.len().unwrap_or(0);
                let span = if self.is_cold(from, len) { self.span_bytes() } else { 0 };
                ahead.go_on(len, span);
            }
            if ahead.is_done() {
                return false;
            }
            let from = ahead.offset();
            // If there is an error at this offset, the plain read encounters and reports it, too.
            let Ok(piece) = ahead.next() else { return false };
            if !ahead.is_direct() {
                self.may_be_direct = false;
                return false;
            }
            let is_last = piece.len() < ahead.piece_bytes();
            let skipped = self.end.saturating_sub(from);
            if skipped < piece.len() as u64 {
                let skipped = skipped as usize;
                self.part = (skipped, piece.len() - skipped);
                self.end = from + piece.len() as u64;
                self.current = Current::Piece(piece);
                if is_last {
                    // Any pieces after a short one were read after the file had grown, so they do
                    // not follow it.
                    ahead.stop();
                }
                return true;
            }
            if is_last {
                return false;
            }
        }
    }
}
