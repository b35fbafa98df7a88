//! The bytes of a file that were never written: reading them measures no device.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;

/// The first bytes of `range` that were never written: a hole, blocks that were only allocated, or
/// what lies behind the file's end. By `SEEK_DATA` and `SEEK_HOLE` (`lseek(2)`); a file system that
/// does not know them takes everything for written. The file is to be flushed first: what is still
/// on its way to new blocks looks written on one file system and not on another.
pub fn first_unwritten(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let len_bytes = file.metadata()?.len();
    let mut from = range.start;
    while from < range.end {
        if from >= len_bytes {
            return Ok(Some(from..range.end));
        }
        let data = match seek(file, SeekFrom::Data(from)) {
            Ok(data) => data,
            // No data from here to the end of the file.
            Err(Errno::NXIO) => return Ok(Some(from..range.end)),
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if data > from {
            return Ok(Some(from..data.min(range.end)));
        }
        from = seek(file, SeekFrom::Hole(from))?;
    }
    Ok(None)
}

pub fn unwritten_bytes(file: &File, range: Range<u64>) -> io::Result<u64> {
    let (mut from, mut bytes) = (range.start, 0);
    while let Some(unwritten) = first_unwritten(file, from..range.end)? {
        bytes += unwritten.end - unwritten.start;
        from = unwritten.end;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BLOCK: u64 = 65536;

    #[test]
    fn holes_allocated_blocks_and_what_lies_behind_the_end_are_unwritten() {
        let file = fixtures::file().into_file();
        file.write_all_at(&[1; BLOCK as usize], 0).unwrap();
        file.write_all_at(&[1; BLOCK as usize], 4 * BLOCK).unwrap();
        file.sync_all().unwrap();
        let first = |range| first_unwritten(&file, range).unwrap();
        if first(0..BLOCK * 5).is_none() {
            return fixtures::skip(
                "holes_are_unwritten",
                "this file system does not tell of holes",
            );
        }
        assert_eq!(first(0..BLOCK), None);
        assert_eq!(first(0..BLOCK * 5), Some(BLOCK..4 * BLOCK));
        assert_eq!(first(2 * BLOCK..3 * BLOCK), Some(2 * BLOCK..3 * BLOCK));
        assert_eq!(first(4 * BLOCK..7 * BLOCK), Some(5 * BLOCK..7 * BLOCK));
        assert_eq!(first(9 * BLOCK..9 * BLOCK), None);
        assert_eq!(unwritten_bytes(&file, 0..7 * BLOCK).unwrap(), 5 * BLOCK);
        let flags = rustix::fs::FallocateFlags::empty();
        if rustix::fs::fallocate(&file, flags, 0, 4 * BLOCK).is_ok() {
            file.sync_all().unwrap();
            assert_eq!(first(0..BLOCK * 5), Some(BLOCK..4 * BLOCK), "allocated is not written");
        }
    }
}
