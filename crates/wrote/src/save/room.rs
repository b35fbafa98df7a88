//! Memory for the content of a whole file.

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// The least memory that is requested in huge pages. Smaller pieces are often in the allocator
/// already (glibc maps memory anew for each piece from 32 MiB on: `mallopt(3)`, M_MMAP_THRESHOLD),
/// and gain nothing.
const HUGE_BYTES_MIN: usize = 32 << 20;

/// Returns an empty vector with room for `len` bytes; `None` where there is no such memory.
pub(super) fn with_room(len: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(len).ok()?).ok()?;
    if bytes.capacity() >= HUGE_BYTES_MIN {
        in_huge_pages(&mut bytes);
    }
    Some(bytes)
}

/// Requests huge pages (`madvise(2)`, MADV_HUGEPAGE). The first touch of a page of 4 KiB costs more
/// than reading its bytes from the page cache.
fn in_huge_pages(bytes: &mut Vec<u8>) {
    let room = bytes.spare_capacity_mut();
    let before_first_page = room.as_ptr().align_offset(page_size());
    let Some(room) = room.get_mut(before_first_page..) else { return };
    let len = room.len() / page_size() * page_size();
    // A kernel without huge pages refuses, which costs only speed.
    // SAFETY: the range is whole pages inside the vector's own memory, and the advice changes no
    // contents.
    let _ = unsafe { madvise(room.as_mut_ptr().cast(), len, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_what_was_asked_and_none_where_there_is_no_memory() {
        for len in [0, 1, HUGE_BYTES_MIN - 1, HUGE_BYTES_MIN, HUGE_BYTES_MIN + 4097] {
            let mut bytes = with_room(len as u64).unwrap();
            assert!(bytes.is_empty() && bytes.capacity() >= len);
            bytes.resize(len, 7);
            assert!(bytes.iter().all(|&byte| byte == 7));
        }
        assert!(with_room(u64::MAX).is_none());
        assert!(with_room(i64::MAX as u64).is_none());
    }
}
