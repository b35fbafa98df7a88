//! The bytes of a read, in the leased buffers that received them.

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

/// Does not copy if the bytes are in one buffer, which returns to the disk with the last clone;
/// bytes in several buffers are copied.
#[cfg(feature = "bytes")]
impl From<ReadBytes> for bytes::Bytes {
    fn from(mut read: ReadBytes) -> bytes::Bytes {
        match read.pieces.len() {
            0 => bytes::Bytes::new(),
            1 => bytes::Bytes::from_owner(read.pieces.remove(0)),
            _ => read.to_vec().into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;

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

    #[cfg(feature = "bytes")]
    #[test]
    fn bytes_of_one_buffer_become_shared_ones_without_a_copy() {
        let pool = Pool::shared(4, 512).unwrap();
        let one = in_pieces(&pool, &[b"abc"]);
        let address = one.as_bytes().as_ptr();
        let shared = bytes::Bytes::from(one);
        let clone = shared.clone();
        assert_eq!((clone.as_ptr(), &clone[..]), (address, &b"abc"[..]));
        drop(shared);
        assert_eq!(pool.free(), 3);
        drop(clone);
        assert_eq!(pool.free(), 4);
        assert_eq!(bytes::Bytes::from(in_pieces(&pool, &[b"ab", b"c"])), &b"abc"[..]);
        assert!(bytes::Bytes::from(ReadBytes::default()).is_empty());
    }

    #[test]
    fn dropping_the_bytes_gives_their_buffers_back() {
        let pool = Pool::shared(2, 512).unwrap();
        let bytes = in_pieces(&pool, &[b"a", b"b"]);
        assert_eq!(pool.free(), 0);
        drop(bytes);
        assert_eq!(pool.free(), 2);
    }
}
