//! The distinction between bytes that were written to a file and bytes that merely read as zeros.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Returns the first bytes of `range` that were never written: a hole, blocks that were only
/// allocated, or bytes after the end of the file.
///
/// Reads the file system's map (`FS_IOC_FIEMAP`) or, if there is none, uses `SEEK_DATA` and
/// `SEEK_HOLE` (`lseek(2)`). The latter method treats allocated blocks as written once they have
/// been read, because their zeros are then in the page cache. If a file system supports neither
/// method, everything is taken to be written. Flush the file first: only some file systems report
/// unflushed data in new blocks as written.
pub fn first_unwritten(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let len_bytes = file.metadata()?.len();
    let found = match first_unmapped(file, range.start..range.end.min(len_bytes)) {
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => return first_hole(file, range),
        found => found?,
    };
    let behind = range.start.max(len_bytes)..range.end;
    Ok(found.or((!behind.is_empty()).then_some(behind)))
}

/// The number of extents requested at a time.
const EXTENTS: usize = 64;
const LAST: u32 = 1;
/// The flag of an extent that is allocated and reads as zeros.
const UNWRITTEN: u32 = 0x800;

/// `struct fiemap` from `linux/fiemap.h`, without the extents that follow it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MapHead {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent` from `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Map {
    head: MapHead,
    extents: [MapExtent; EXTENTS],
}

fn first_unmapped(file: &File, range: Range<u64>) -> Result<Option<Range<u64>>, Errno> {
    const FIEMAP: ioctl::Opcode = ioctl::opcode::read_write::<MapHead>(b'f', 11);
    let mut from = range.start;
    while from < range.end {
        let (start, length, extent_count) = (from, range.end - from, EXTENTS as u32);
        let head = MapHead { start, length, extent_count, ..MapHead::default() };
        let mut map = Map { head, extents: [MapExtent::default(); EXTENTS] };
        // SAFETY: the kernel reads the head, and writes at most `extent_count` extents after it.
        unsafe { ioctl::ioctl(file, ioctl::Updater::<FIEMAP, Map>::new(&mut map))? };
        let extents = &map.extents[..(map.head.mapped_extents as usize).min(EXTENTS)];
        for extent in extents {
            let end = extent.logical.saturating_add(extent.length).min(range.end);
            if extent.logical > from {
                return Ok(Some(from..extent.logical.min(range.end)));
            }
            if extent.flags & UNWRITTEN != 0 && end > from {
                return Ok(Some(from..end));
            }
            from = end.max(from);
        }
        if from < range.end && extents.last().is_none_or(|extent| extent.flags & LAST != 0) {
            return Ok(Some(from..range.end));
        }
    }
    Ok(None)
}

fn first_hole(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let len_bytes = file.metadata()?.len();
    let mut from = range.start;
    while from < range.end {
        if from >= len_bytes {
            return Ok(Some(from..range.end));
        }
        let data = match seek(file, SeekFrom::Data(from)) {
            Ok(data) => data,
            // There is no data from here to the end of the file.
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
            let allocated = || {
                let mut bytes = 0;
                while let Some(found) = first(BLOCK + bytes..4 * BLOCK) {
                    assert_eq!(found.start, BLOCK + bytes);
                    bytes += found.end - found.start;
                }
                bytes
            };
            assert_eq!(allocated(), 3 * BLOCK, "allocated is not written");
            // Nor does reading a block make it written, although its zeros are then in the page
            // cache.
            file.read_exact_at(&mut [0; BLOCK as usize], 2 * BLOCK).unwrap();
            assert_eq!(allocated(), 3 * BLOCK, "read is not written");
        }
    }
}
