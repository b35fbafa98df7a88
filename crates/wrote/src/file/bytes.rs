//! The blocks to read for a byte range, and the bytes read, in the leased buffers that received
//! them.

use super::buffer::DiskBuffer;
use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

/// Bytes read, in one or several buffers of the engine's pool, which are returned on drop.
///
/// A read of up to a buffer's length, minus alignment on both sides, is in one buffer, and then
/// [`ReadBytes::as_bytes`] is free.
///
/// ```
/// # use wrote::engine::Options;
/// # use wrote::{Disk, FileOptions, Ioengine, Sim};
/// # let disk = Disk::simulated(&Sim::new(1), &Options::new(Ioengine::IoUring, 4, 4096))?;
/// # let options = FileOptions::new().create_new(true).write(true);
/// # let file = disk.open_file("/data", &options)?;
/// # let mut buffer = disk.lease()?;
/// # buffer.fill(1);
/// # file.write(buffer, 0)?;
/// let bytes = file.read(10, 100)?;
/// assert_eq!(bytes.len(), 100);
/// let sum: usize = bytes.as_bytes().iter().map(|&byte| usize::from(byte)).sum();
/// # assert_eq!(sum, 100);
/// # Ok::<(), wrote::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ReadBytes {
    pub(super) pieces: Vec<ReadPiece>,
}

/// The part of [`ReadBytes`] in one buffer; never empty.
#[derive(Debug)]
pub(super) struct ReadPiece {
    pub(super) buffer: DiskBuffer,
    pub(super) range: Range<usize>,
}

impl Deref for ReadPiece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl AsRef<[u8]> for ReadPiece {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl ReadBytes {
    /// Returns the number of bytes: all that were requested, fewer only if the file ended.
    pub fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// Returns whether the file ended before the first byte, or none was requested.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the bytes in order, one non-empty slice per buffer.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// Splits the bytes by buffer, in order. A piece can be an owner for `Bytes::from_owner` of the
    /// `bytes` crate, and similar types.
    pub fn into_pieces(
        self,
    ) -> impl Iterator<Item = impl AsRef<[u8]> + Send + Sync + fmt::Debug + 'static> {
        self.pieces.into_iter()
    }

    /// Returns the bytes as one slice: borrowed from one buffer, copied from several.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        match &self.pieces[..] {
            [] => Cow::Borrowed(&[]),
            [piece] => Cow::Borrowed(piece),
            _ => Cow::Owned(self.to_vec()),
        }
    }

    /// Copies the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// Copies the bytes to the start of `target`. Panics if `target` is shorter than
    /// [`ReadBytes::len`].
    pub fn copy_to(&self, target: &mut [u8]) {
        let mut start = 0;
        for piece in self.iter() {
            target[start..start + piece.len()].copy_from_slice(piece);
            start += piece.len();
        }
    }
}

impl PartialEq<[u8]> for ReadBytes {
    fn eq(&self, other: &[u8]) -> bool {
        self.len() == other.len() && self.iter().flatten().eq(other)
    }
}

impl PartialEq<&[u8]> for ReadBytes {
    fn eq(&self, other: &&[u8]) -> bool {
        *self == **other
    }
}

/// The aligned range around the requested bytes, divided into pieces that fit into buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first byte read: a multiple of the alignment.
    start: u64,
    end: u64,
    /// Bytes read before the requested ones.
    skip: u64,
    len: u64,
    /// The length of a whole piece: the aligned bytes that fit into a buffer.
    piece_bytes: u64,
}

impl Span {
    /// Returns the span around `len` bytes from `offset`, limited to the maximum file offset.
    pub(super) fn around(offset: u64, len: usize, align_bytes: u32, buffer_bytes: usize) -> Span {
        let align = u64::from(align_bytes.max(1));
        // The kernel's offsets are signed.
        let last = i64::MAX as u64 / align * align;
        let asked_end = offset.saturating_add(len as u64).min(last);
        let start = offset.min(last) / align * align;
        Span {
            start,
            end: asked_end.next_multiple_of(align),
            skip: offset.min(last) - start,
            len: asked_end.saturating_sub(offset),
            piece_bytes: buffer_bytes as u64 / align * align,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of pieces and buffers; `None` if a buffer is smaller than a block.
    pub(super) fn pieces(&self) -> Option<u64> {
        match (self.len, self.piece_bytes) {
            (0, _) => Some(0),
            (_, 0) => None,
            (_, piece_bytes) => Some((self.end - self.start).div_ceil(piece_bytes)),
        }
    }

    /// Returns the maximum read at this offset with `buffers` buffers.
    pub(super) fn len_max(&self, buffers: u32) -> u64 {
        (self.piece_bytes * u64::from(buffers)).saturating_sub(self.skip)
    }

    /// Returns a piece's file offset and length.
    pub(super) fn piece(&self, number: u64) -> (u64, usize) {
        let start = self.start + number * self.piece_bytes;
        (start, (self.end - start).min(self.piece_bytes) as usize)
    }

    /// Returns the requested bytes, given the pieces and the bytes found in each. The first short
    /// piece is the end of the file. Buffers without a requested byte return to their pool.
    pub(super) fn cut(&self, found: impl IntoIterator<Item = (DiskBuffer, usize)>) -> ReadBytes {
        let mut pieces = Vec::new();
        let (mut skip, mut left) = (self.skip as usize, self.len as usize);
        for (number, (buffer, found_bytes)) in found.into_iter().enumerate() {
            let whole = found_bytes == self.piece(number as u64).1;
            let end = found_bytes.min(skip.saturating_add(left));
            if end > skip {
                left -= end - skip;
                pieces.push(ReadPiece { buffer, range: skip..end });
            }
            skip = 0;
            if !whole {
                break;
            }
        }
        ReadBytes { pieces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;
    use proptest::prelude::*;

    fn in_pieces(pool: &Pool, pieces: &[&[u8]]) -> ReadBytes {
        let piece = |bytes: &&[u8]| {
            let mut buffer = pool.lease().unwrap();
            buffer[1..=bytes.len()].copy_from_slice(bytes);
            let buffer = DiskBuffer::alone(buffer);
            ReadPiece { buffer, range: 1..bytes.len() + 1 }
        };
        ReadBytes { pieces: pieces.iter().map(piece).collect() }
    }

    #[test]
    fn bytes_of_one_buffer_are_borrowed_and_of_several_copied() {
        let pool = Pool::shared(4, 512).unwrap();
        let one = in_pieces(&pool, &[b"abc"]);
        assert!(matches!(one.as_bytes(), Cow::Borrowed(b"abc")));
        let two = in_pieces(&pool, &[b"abc", b"de"]);
        assert!(matches!(two.as_bytes(), Cow::Owned(bytes) if bytes == b"abcde"));
        assert!(matches!(ReadBytes::default().as_bytes(), Cow::Borrowed(b"")));
    }

    #[test]
    fn pieces_are_one_sequence_of_bytes() {
        let pool = Pool::shared(4, 512).unwrap();
        let bytes = in_pieces(&pool, &[b"ab", b"c", b"def"]);
        assert_eq!(bytes.len(), 6);
        assert_eq!(bytes.iter().collect::<Vec<_>>(), [&b"ab"[..], b"c", b"def"]);
        let mut target = [0; 8];
        bytes.copy_to(&mut target);
        assert_eq!(&target, b"abcdef\0\0");
        assert_eq!(bytes, b"abcdef"[..]);
        for other in [&b"abcde"[..], b"abcdefg", b"abXdef", b""] {
            assert!(bytes != other);
        }
    }

    #[test]
    fn a_piece_owns_its_buffer_and_gives_it_back() {
        let pool = Pool::shared(4, 512).unwrap();
        let mut pieces = in_pieces(&pool, &[b"ab", b"c"]).into_pieces();
        let first = pieces.next().unwrap();
        assert_eq!((first.as_ref(), pool.free()), (&b"ab"[..], 2));
        assert_eq!(pieces.next().unwrap().as_ref(), b"c");
        assert_eq!(pool.free(), 3);
        drop(first);
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn dropping_the_bytes_gives_their_buffers_back() {
        let pool = Pool::shared(2, 512).unwrap();
        let bytes = in_pieces(&pool, &[b"a", b"b"]);
        assert_eq!(pool.free(), 0);
        drop(bytes);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn an_aligned_read_reads_nothing_more() {
        let span = Span::around(8192, 4096, 4096, 65536);
        assert_eq!((span.pieces(), span.piece(0)), (Some(1), (8192, 4096)));
    }

    #[test]
    fn a_byte_takes_its_block_and_two_take_two_where_they_meet() {
        let span = Span::around(4095, 1, 512, 4096);
        assert_eq!((span.pieces(), span.piece(0)), (Some(1), (3584, 512)));
        let span = Span::around(4095, 2, 512, 4096);
        assert_eq!((span.pieces(), span.piece(0)), (Some(1), (3584, 1024)));
    }

    #[test]
    fn nothing_is_read_beyond_the_kernels_offsets() {
        let last = i64::MAX as u64;
        for align in [1, 512, 4096] {
            for offset in [u64::MAX, u64::MAX - 1, last + 1, last, last / 4096 * 4096] {
                assert!(Span::around(offset, 100, align, 4096).is_empty() || offset < last);
            }
            let span = Span::around(last - 10_000, usize::MAX, align, 65536);
            let (start, len) = span.piece(0);
            assert!(start + len as u64 <= last && len > 0);
        }
    }

    #[test]
    fn a_buffer_smaller_than_a_block_holds_nothing() {
        let span = Span::around(0, 1, 4096, 512);
        assert_eq!((span.pieces(), span.len_max(8)), (None, 0));
    }

    proptest! {
        #[test]
        fn any_range_of_any_file_is_handed_out_exactly(
            file_len in 0_usize..40_000,
            offset in 0_usize..50_000,
            len in 0_usize..50_000,
            align in prop::sample::select(vec![1_u32, 512, 4096]),
            buffer_bytes in 4096_usize..20_000,
        ) {
            let file: Vec<u8> = (0..file_len).map(|place| (place % 251) as u8).collect();
            let span = Span::around(offset as u64, len, align, buffer_bytes);
            let count = span.pieces().unwrap();
            let pool = Pool::shared(count as u32, buffer_bytes).unwrap();
            let pieces = (0..count).map(|number| {
                let (start, len) = span.piece(number);
                assert!(start.is_multiple_of(align.into()));
                assert!(len.is_multiple_of(align as usize));
                let mut buffer = pool.lease().unwrap();
                let there = file.get(start as usize..).unwrap_or_default();
                let found = there.len().min(len);
                buffer[..found].copy_from_slice(&there[..found]);
                (DiskBuffer::alone(buffer), found)
            });
            let bytes = span.cut(pieces);
            let end = (offset + len).min(file_len);
            prop_assert_eq!(bytes.to_vec(), file.get(offset..end).unwrap_or_default());
            prop_assert!(len <= span.len_max(count as u32) as usize || len == 0);
            drop(bytes);
            prop_assert_eq!(pool.free(), pool.count() as usize);
        }
    }
}
