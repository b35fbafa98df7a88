//! The extents of a file that hold data. Between them are holes, which read as zeros.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// The data extents of a file's first `len` bytes.
///
/// They are found one by one, because a list of all would be unbounded (W8). They are extended to
/// whole blocks, up to the file's end, and never overlap.
#[derive(Debug)]
pub(crate) struct Extents {
    len: u64,
    block_bytes: u64,
    /// Where the next search starts. Everything before it was returned or is a hole.
    next: u64,
}

impl Extents {
    pub(crate) fn new(len: u64, block_bytes: u64) -> Extents {
        Extents { len, block_bytes, next: 0 }
    }

    /// Returns the next extent. It is the whole rest if holes are unknown: without a descriptor, or
    /// on a file system without `SEEK_DATA` (`lseek(2)`, EINVAL).
    pub(crate) fn next(&mut self, file: Option<BorrowedFd>) -> Result<Option<Range<u64>>, Errno> {
        let found = match file {
            _ if self.next >= self.len => None,
            Some(file) => self.seek(file)?,
            None => Some(self.next..self.len),
        };
        self.next = found.as_ref().map_or(self.len, |extent| extent.end);
        Ok(found)
    }

    fn seek(&self, file: BorrowedFd) -> Result<Option<Range<u64>>, Errno> {
        let data = match seek(file, SeekFrom::Data(self.next)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(self.next..self.len)),
            Err(errno) => return Err(errno),
        };
        let start = (data - data % self.block_bytes).max(self.next);
        if start >= self.len {
            return Ok(None);
        }
        let hole = match seek(file, SeekFrom::Hole(data)) {
            Ok(hole) => hole,
            // The file was shortened between the two calls, which a read will notice.
            Err(Errno::NXIO) => self.len,
            Err(errno) => return Err(errno),
        };
        let end = hole.checked_next_multiple_of(self.block_bytes).unwrap_or(self.len);
        Ok(Some(start..end.min(self.len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const BLOCK_BYTES: u64 = 64 << 10;

    fn all(file: Option<&File>, len: u64) -> Vec<Range<u64>> {
        let mut extents = Extents::new(len, BLOCK_BYTES);
        std::iter::from_fn(|| extents.next(file.map(AsFd::as_fd)).unwrap()).collect()
    }

    /// Creates a file with a few bytes at each of these offsets.
    fn file_with_data_at(places: &[u64], len: u64) -> File {
        // In the build folder, which is usually on a disk.
        let program = std::env::current_exe().unwrap();
        let file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        file.set_len(len).unwrap();
        places.iter().for_each(|&place| file.write_all_at(b"data", place).unwrap());
        file
    }

    #[test]
    fn extents_hold_all_data_in_order_in_whole_blocks_and_do_not_overlap() {
        let len = 64 * BLOCK_BYTES + 77;
        let places = [5, BLOCK_BYTES - 2, 9 * BLOCK_BYTES + 9000, 40 * BLOCK_BYTES, len - 4];
        let file = file_with_data_at(&places, len);
        let extents = all(Some(&file), len);
        let holds = |place: u64| extents.iter().any(|extent| extent.contains(&place));
        assert!(places.iter().all(|&place| holds(place) && holds(place + 3)), "{extents:?}");
        assert!(extents.windows(2).all(|two| two[0].end <= two[1].start), "{extents:?}");
        let whole = |at: u64| at.is_multiple_of(BLOCK_BYTES) || at == len;
        assert!(extents.iter().all(|extent| whole(extent.start) && whole(extent.end)));
    }

    #[test]
    fn a_file_of_a_hole_has_no_extent_where_the_file_system_knows_holes() {
        let file = file_with_data_at(&[], 10 * BLOCK_BYTES);
        if seek(&file, SeekFrom::Data(0)) != Err(Errno::NXIO) {
            return fixtures::skip("a_file_of_a_hole_has_no_extent", "no SEEK_DATA here");
        }
        assert_eq!(all(Some(&file), 10 * BLOCK_BYTES), []);
    }

    #[test]
    fn without_a_descriptor_everything_is_data() {
        assert!(matches!(&all(None, 1000)[..], [Range { start: 0, end: 1000 }]));
        assert_eq!(all(None, 0), []);
    }

    #[test]
    fn what_was_added_after_the_beginning_is_left_out() {
        let file = file_with_data_at(&[0, 5 * BLOCK_BYTES], 6 * BLOCK_BYTES);
        let extents = all(Some(&file), 1000);
        assert!(matches!(&extents[..], [Range { start: 0, end: 1000 }]), "{extents:?}");
    }
}
