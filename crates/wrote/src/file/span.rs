//! The blocks to read for a range of bytes, and how to find the requested bytes in them.

use super::buffer::DiskBuffer;

/// The aligned range around the requested bytes, divided into pieces that fit into buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The offset of the first byte read, a multiple of the alignment.
    start: u64,
    end: u64,
    /// The number of bytes read before the requested ones.
    skip: u64,
    len: u64,
    /// The length of a full piece: the aligned bytes that fit into a buffer.
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

    /// Returns the number of pieces, each of which requires a buffer; `None` if a buffer is smaller
    /// than a block.
    pub(super) fn pieces(&self) -> Option<u64> {
        match (self.len, self.piece_bytes) {
            (0, _) => Some(0),
            (_, 0) => None,
            (_, piece_bytes) => Some((self.end - self.start).div_ceil(piece_bytes)),
        }
    }

    /// Returns the maximum length of a read at this offset with `buffers` buffers.
    pub(super) fn len_max(&self, buffers: u32) -> u64 {
        (self.piece_bytes * u64::from(buffers)).saturating_sub(self.skip)
    }

    /// Returns a piece's file offset and length.
    pub(super) fn piece(&self, number: u64) -> (u64, usize) {
        let start = self.start + number * self.piece_bytes;
        (start, (self.end - start).min(self.piece_bytes) as usize)
    }

    /// Returns the requested bytes, given the pieces and the number of bytes found in each. The
    /// first short piece marks the end of the file. Buffers without a requested byte return to
    /// their pool.
    pub(super) fn cut(&self, found: impl IntoIterator<Item = (DiskBuffer, usize)>) -> DiskBuffer {
        let mut pieces: Vec<DiskBuffer> = Vec::new();
        let (mut skip, mut left) = (self.skip as usize, self.len as usize);
        for (number, (mut buffer, found_bytes)) in found.into_iter().enumerate() {
            let whole = found_bytes == self.piece(number as u64).1;
            let end = found_bytes.min(skip.saturating_add(left));
            if end > skip {
                left -= end - skip;
                buffer.cut(skip..end);
                pieces.push(buffer);
            }
            skip = 0;
            if !whole {
                break;
            }
        }
        if pieces.len() == 1 {
            return pieces.remove(0);
        }
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        DiskBuffer::copied(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;
    use proptest::prelude::*;

    /// Returns the requested bytes of a read that found `pieces`, each in a separate buffer.
    fn read(pool: &Pool, pieces: &[&[u8]]) -> DiskBuffer {
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let span = Span { skip: 1, len: len as u64, ..Span::around(0, len + 1, 1, 512) };
        let whole = |number| span.piece(number).1;
        let piece = |(number, bytes): (usize, &&[u8])| {
            let mut buffer = pool.lease().unwrap();
            let start = usize::from(number == 0);
            buffer[start..start + bytes.len()].copy_from_slice(bytes);
            (DiskBuffer::alone(buffer), whole(number as u64))
        };
        span.cut(pieces.iter().enumerate().map(piece))
    }

    #[test]
    fn the_bytes_of_one_buffer_are_lent_and_of_several_copied() {
        let pool = Pool::shared(4, 512).unwrap();
        let one = read(&pool, &[b"abc"]);
        assert_eq!((&one[..], pool.free()), (&b"abc"[..], 3));
        let two = read(&pool, &[&[7; 511], b"de"]);
        assert_eq!((two[..].to_vec(), pool.free()), ([&[7; 511], &b"de"[..]].concat(), 3));
        drop(one);
        assert_eq!(pool.free(), 4, "a drop gives the buffer back");
        assert!(Span::around(0, 0, 1, 512).cut([]).is_empty());
    }

    #[test]
    fn bytes_that_were_read_are_written_from_their_start() {
        let pool = Pool::shared(1, 512).unwrap();
        let buffer = read(&pool, &[b"abc"]).into_inner().unwrap();
        assert_eq!(&buffer[..], b"abc");
        drop(buffer);
        let bytes = [7; 600];
        assert!(DiskBuffer::copied(bytes.to_vec()).into_inner().is_none());
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
            prop_assert_eq!(&bytes[..], file.get(offset..end).unwrap_or_default());
            prop_assert!(len <= span.len_max(count as u32) as usize || len == 0);
            drop(bytes);
            prop_assert_eq!(pool.free(), pool.count() as usize);
        }
    }
}
