//! A ring of io_uring: its memory, which this process maps too, and the entries in it.
//!
//! The structures are defined in the kernel's `linux/io_uring.h`. A file from `pidfd_getfd(2)`
//! gives access to the program's memory of the ring.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{null_mut, read_volatile};
use std::sync::atomic::{AtomicU32, Ordering};

/// The size of `struct io_uring_params`.
pub const PARAMS_BYTES: usize = 120;
/// The offset of the flags in `struct io_uring_params`.
pub const FLAGS_AT: u64 = 8;
const ENTRIES_AT: u64 = 0x1000_0000;
const ENTRY_BYTES: usize = 64;
const COMPLETION_BYTES: usize = 16;

/// The flag of a ring whose entries a kernel thread takes without a call.
pub const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_CQE32: u32 = 1 << 11;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
/// The flags of rings that can be followed: all up to Linux 6.17, except for a kernel thread and
/// memory provided by the program.
const SETUP_FOLLOWED: u32 = ((1 << 18) - 1) & !(SETUP_SQPOLL | 1 << 14 | 1 << 15);
const FEATURE_SINGLE_MMAP: u32 = 1;

pub const FIXED_FILE: u8 = 1;
pub const DRAIN: u8 = 2;
/// `IOSQE_IO_LINK` and `IOSQE_IO_HARDLINK`.
pub const LINK: u8 = 4 | 8;
pub const SKIP_SUCCESS: u8 = 64;
const COMPLETION_MORE: u32 = 2;

/// A completion, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The key that the program gave the operation (`user_data`).
    pub key: u64,
    /// The result, or a negative error number.
    pub result: i64,
    /// Whether more completions of the operation follow.
    pub is_partial: bool,
}

/// An operation as the program describes it: `struct io_uring_sqe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub operation: u8,
    pub flags: u8,
    pub file: i32,
    /// The field `off` or `addr2`.
    pub offset: u64,
    /// The field `addr` or `splice_off_in`.
    pub address: u64,
    pub length: u32,
    /// The field `rw_flags`, `fsync_flags`, `open_flags` and so on.
    pub more: u32,
    pub key: u64,
    /// The field `file_index` or `splice_fd_in`.
    pub file_index: u32,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a part of the structure")
}

/// Returns the 32-bit number at an offset of a structure.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(number(bytes, at))
}

/// Returns the 64-bit number at an offset of a structure.
pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(number(bytes, at))
}

impl Entry {
    fn of(bytes: &[u8; ENTRY_BYTES]) -> Entry {
        Entry {
            operation: bytes[0],
            flags: bytes[1],
            file: word(bytes, 4) as i32,
            offset: long(bytes, 8),
            address: long(bytes, 16),
            length: word(bytes, 24),
            more: word(bytes, 28),
            key: long(bytes, 32),
            file_index: word(bytes, 44),
        }
    }
}

/// Memory that the program and the kernel write to.
#[derive(Debug)]
struct Memory {
    at: *mut c_void,
    count: usize,
}

// SAFETY: it is only read, and belongs to no thread.
unsafe impl Send for Memory {}

impl Memory {
    fn map(ring: &File, count: usize, offset: u64) -> io::Result<Memory> {
        // SAFETY: the kernel chooses the address, so that no other memory is touched.
        let at =
            unsafe { mmap(null_mut(), count, ProtFlags::READ, MapFlags::SHARED, ring, offset) };
        Ok(Memory { at: at?, count })
    }

    fn word(&self, at: usize) -> u32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.count);
        // SAFETY: the word lies in the mapping, which is as long as this, and is aligned.
        unsafe { AtomicU32::from_ptr(self.at.byte_add(at).cast()) }.load(Ordering::Acquire)
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.count);
        // SAFETY: the bytes lie in the mapping, which is as long as this.
        unsafe { read_volatile(self.at.byte_add(at).cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { munmap(self.at, self.count) };
    }
}

/// A ring that a program has created.
#[derive(Debug)]
pub struct Ring {
    rings: Memory,
    entries: Memory,
    flags: u32,
    entry_count: u32,
    completion_count: u32,
    /// The offset of each part in `rings`.
    head_at: usize,
    tail_at: usize,
    array_at: usize,
    completion_tail_at: usize,
    completions_at: usize,
    /// The number of entries and of completions read so far.
    read: u32,
    seen: u32,
}

impl Ring {
    /// Returns the error to report for rings that can't be followed: the error of a kernel without
    /// them. Returns `None` if they can be followed.
    pub fn refusal(flags: u32) -> Option<i32> {
        match flags {
            // The error of kernels before Linux 5.11 if the permission is missing.
            _ if flags & SETUP_SQPOLL != 0 => Some(libc::EPERM),
            _ if flags & !SETUP_FOLLOWED != 0 => Some(libc::EINVAL),
            _ => None,
        }
    }

    /// Maps a ring with the parameters that the kernel returned.
    ///
    /// # Errors
    ///
    /// The errors of `mmap(2)`, and an error for a kernel before 5.4.
    pub fn map(ring: &File, params: &[u8; PARAMS_BYTES]) -> io::Result<Ring> {
        let at = |place: usize| word(params, place) as usize;
        let flags = word(params, FLAGS_AT as usize);
        if word(params, 20) & FEATURE_SINGLE_MMAP == 0 || Ring::refusal(flags).is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let [entry_count, completion_count] = [at(0), at(4)];
        let (array_at, completions_at) = (at(64), at(100));
        let array_bytes = if flags & SETUP_NO_SQARRAY == 0 { 4 * entry_count } else { 0 };
        let completion_bytes = completion_bytes(flags);
        let count =
            (array_at + array_bytes).max(completions_at + completion_count * completion_bytes);
        Ok(Ring {
            rings: Memory::map(ring, count, 0)?,
            entries: Memory::map(ring, entry_count * entry_bytes(flags), ENTRIES_AT)?,
            flags,
            entry_count: entry_count as u32,
            completion_count: completion_count as u32,
            head_at: at(40),
            tail_at: at(44),
            array_at,
            completion_tail_at: at(84),
            completions_at,
            read: 0,
            seen: 0,
        })
    }

    /// Returns the number of entries that the kernel has not taken yet.
    pub fn waiting(&self) -> u32 {
        self.rings.word(self.tail_at).wrapping_sub(self.rings.word(self.head_at))
    }

    /// Returns the number of entries that this process has read but the kernel has not taken.
    pub fn untaken(&self) -> u32 {
        self.read.wrapping_sub(self.rings.word(self.head_at))
    }

    /// Returns the entries that the program has added since the last call; `None` if it has
    /// withdrawn some.
    pub fn added(&mut self) -> Option<Vec<Entry>> {
        let count = self.rings.word(self.tail_at).wrapping_sub(self.read);
        if count > self.entry_count {
            return None;
        }
        let entry = |number: u32| {
            let place = self.read.wrapping_add(number) & (self.entry_count - 1);
            let index = match self.flags & SETUP_NO_SQARRAY {
                0 => self.rings.word(self.array_at + 4 * place as usize),
                _ => place,
            };
            // The kernel drops entries with other indices.
            (index < self.entry_count)
                .then(|| Entry::of(&self.entries.bytes(index as usize * entry_bytes(self.flags))))
        };
        let entries = (0..count).filter_map(entry).collect();
        self.read = self.read.wrapping_add(count);
        Some(entries)
    }

    /// Skips all completions so far.
    pub fn skip_completions(&mut self) {
        self.seen = self.rings.word(self.completion_tail_at);
    }

    /// Adds the new completions to `to`; returns `false` if some were overwritten.
    pub fn complete(&mut self, to: &mut impl Extend<Completion>) -> bool {
        let tail = self.rings.word(self.completion_tail_at);
        let count = tail.wrapping_sub(self.seen);
        let completion = |number: u32| {
            let place = self.seen.wrapping_add(number) & (self.completion_count - 1);
            let at = self.completions_at + place as usize * completion_bytes(self.flags);
            let bytes: [u8; COMPLETION_BYTES] = self.rings.bytes(at);
            Completion {
                key: long(&bytes, 0),
                result: i64::from(word(&bytes, 8) as i32),
                is_partial: word(&bytes, 12) & COMPLETION_MORE != 0,
            }
        };
        let is_whole = count <= self.completion_count;
        to.extend((0..if is_whole { count } else { 0 }).map(completion));
        self.seen = tail;
        is_whole
    }
}

fn entry_bytes(flags: u32) -> usize {
    if flags & SETUP_SQE128 == 0 { ENTRY_BYTES } else { 2 * ENTRY_BYTES }
}

fn completion_bytes(flags: u32) -> usize {
    if flags & SETUP_CQE32 == 0 { COMPLETION_BYTES } else { 2 * COMPLETION_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const TAIL_AT: u64 = 4;
    const COMPLETION_TAIL_AT: u64 = 12;
    const ARRAY_AT: u64 = 64;
    const COMPLETIONS_AT: u64 = 128;

    /// Returns a ring with 4 submission entries and 8 completion entries, and the file that backs
    /// it.
    fn made(flags: u32) -> (File, Ring) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(ENTRIES_AT + 4096).unwrap();
        let mut params = [0; PARAMS_BYTES];
        let places = [
            (0, 4),
            (4, 8),
            (8, flags),
            (20, FEATURE_SINGLE_MMAP),
            (44, TAIL_AT as u32),
            (64, ARRAY_AT as u32),
            (84, COMPLETION_TAIL_AT as u32),
            (100, COMPLETIONS_AT as u32),
        ];
        for (at, value) in places {
            params[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        let ring = Ring::map(&file, &params).unwrap();
        (file, ring)
    }

    fn put(file: &File, at: u64, value: u32) {
        file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }

    #[test]
    fn entries_are_read_in_the_order_of_the_array_and_around_the_end() {
        for flags in [0, SETUP_SQE128, SETUP_NO_SQARRAY] {
            let (file, mut ring) = made(flags);
            for index in 0..4 {
                let at = ENTRIES_AT + index * entry_bytes(flags) as u64;
                file.write_all_at(&[index as u8, DRAIN], at).unwrap();
                put(&file, at + 4, 7);
                put(&file, at + 24, 4096);
                put(&file, at + 32, index as u32);
                put(&file, ARRAY_AT + 4 * index, 3 - index as u32);
            }
            let order = if flags & SETUP_NO_SQARRAY == 0 { [3, 2, 1, 0] } else { [0, 1, 2, 3] };
            let mut read = |tail: u32| {
                put(&file, TAIL_AT, tail);
                let entries = ring.added()?;
                let is_read = |of: &Entry| (of.flags, of.file, of.length) == (DRAIN, 7, 4096);
                assert!(entries.iter().all(is_read), "{entries:?}");
                Some(entries.iter().map(|of| (of.operation, of.key)).collect::<Vec<_>>())
            };
            let entries = |places: &[usize]| {
                let places = places.iter().map(|at| order[*at]);
                Some(places.map(|index| (index, u64::from(index))).collect::<Vec<_>>())
            };
            assert_eq!(read(3), entries(&[0, 1, 2]));
            assert_eq!(read(3), entries(&[]));
            assert_eq!(read(6), entries(&[3, 0, 1]));
            assert_eq!(read(4), None, "two were taken back");
        }
    }

    #[test]
    fn completions_are_read_once_and_overwritten_ones_are_noticed() {
        for flags in [0, SETUP_CQE32] {
            let (file, mut ring) = made(flags);
            for index in 0..8 {
                let at = COMPLETIONS_AT + index * completion_bytes(flags) as u64;
                put(&file, at, index as u32);
                put(&file, at + 8, -(index as i32) as u32);
                put(&file, at + 12, COMPLETION_MORE * u32::from(index == 1));
            }
            let mut read = |tail: u32| {
                put(&file, COMPLETION_TAIL_AT, tail);
                let mut all = Vec::new();
                let is_whole = ring.complete(&mut all);
                assert!(all.iter().all(|of| of.result == -(of.key as i64)), "{all:?}");
                assert!(all.iter().all(|of| of.is_partial == (of.key == 1)), "{all:?}");
                is_whole.then(|| all.into_iter().map(|of| of.key).collect::<Vec<_>>())
            };
            assert_eq!(read(6), Some(vec![0, 1, 2, 3, 4, 5]));
            assert_eq!(read(6), Some(vec![]));
            assert_eq!(read(10), Some(vec![6, 7, 0, 1]));
            assert_eq!(read(19), None);
            assert_eq!(read(20), Some(vec![3]));
        }
    }

    #[test]
    fn a_ring_that_needs_no_call_or_has_memory_of_its_own_is_refused() {
        assert_eq!(Ring::refusal(SETUP_NO_SQARRAY | SETUP_CQE32 | 1), None);
        assert_eq!(Ring::refusal(SETUP_SQPOLL | 1), Some(libc::EPERM));
        assert_eq!(Ring::refusal(1 << 14), Some(libc::EINVAL));
        assert_eq!(Ring::refusal(1 << 20), Some(libc::EINVAL));
    }
}
