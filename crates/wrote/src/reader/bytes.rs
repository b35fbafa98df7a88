//! The bytes of a `Reader`, one by one.

use super::Reader;
use std::fmt;
use std::io;

/// An iterator over the bytes of a [`Reader`], which [`Reader::bytes`] returns.
///
/// It keeps the positions of the next byte and the buffer's end itself. Code that fills the buffer
/// never sees them, so a loop keeps them in registers: a byte costs half of that with the iterator
/// of [`io::Read::bytes`].
pub(super) struct ReaderBytes {
    next: *const u8,
    end: *const u8,
    /// Boxed, so that the iterator's address is unknown to code that fills the buffer.
    reader: Box<Reader>,
}

// SAFETY: the pointers lead into the buffer of `reader`, which is inside and `Send`.
unsafe impl Send for ReaderBytes {}

impl ReaderBytes {
    pub(super) fn new(reader: Reader) -> ReaderBytes {
        ReaderBytes { next: reader.next, end: reader.end, reader: Box::new(reader) }
    }
}

impl From<ReaderBytes> for Reader {
    fn from(bytes: ReaderBytes) -> Reader {
        let mut reader = bytes.reader;
        reader.next = bytes.next;
        *reader
    }
}

impl Iterator for ReaderBytes {
    type Item = io::Result<u8>;

    #[inline]
    fn next(&mut self) -> Option<io::Result<u8>> {
        if self.next == self.end {
            match refill(&mut self.reader) {
                Ok((next, end)) => (self.next, self.end) = (next, end),
                Err(error) => {
                    // The buffer is empty after an error.
                    (self.next, self.end) = (self.reader.next, self.reader.end);
                    return Some(Err(error));
                }
            }
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: between `next` and `end` there are bytes of the reader's buffer, which changes
        // only in `refill`.
        let byte = unsafe { *self.next };
        self.next = self.next.wrapping_add(1);
        Some(Ok(byte))
    }
}

/// Fills the buffer, and returns its ends.
#[cold]
#[inline(never)]
fn refill(reader: &mut Reader) -> io::Result<(*const u8, *const u8)> {
    reader.next = reader.end;
    reader.refill()?;
    Ok((reader.next, reader.end))
}

impl fmt::Debug for ReaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderBytes").field("reader", &self.reader).finish_non_exhaustive()
    }
}
