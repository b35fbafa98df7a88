//! Executes operations one at a time, by copying to and from a mapping of the file.

use super::backend::Queue;
use super::op::{OpKind, Reply, Request};
use super::open_file::raw;
use super::slots::Requests;
use super::threads::perform;
use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl, fstat, fsync, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use rustix::param::page_size;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// The minimum length of a mapping, so that a growing file is not remapped for each write.
const MAPPED_BYTES_MIN: u64 = 64 << 20;
/// The number of bytes allocated at once. This size keeps the number of calls low, and wastes
/// little space in a file with holes.
const ALLOCATED_BYTES: u64 = 1 << 20;

/// Executes each request when it is pushed.
///
/// If another process truncates a mapped file, SIGBUS kills this process (`mmap(2)`). A full disk
/// does not cause that if the file system writes in place and supports `fallocate(2)`, because the
/// space for every write is allocated first. A copy-on-write file system may still lack space for
/// the copy.
#[derive(Default)]
pub(super) struct Mmap {
    mappings: Vec<Option<FileMapping>>,
    done: Vec<Reply>,
}

/// A mapped file. The part beyond the file's end must not be touched.
struct FileMapping {
    start: *mut u8,
    mapped_bytes: u64,
    /// The allocated blocks: for each piece of `ALLOCATED_BYTES`, the offset up to which it is
    /// allocated.
    allocated: BTreeMap<u64, u64>,
    writable: bool,
}

impl FileMapping {
    fn new(file: BorrowedFd, mapped_bytes: u64) -> Result<FileMapping, Errno> {
        let writable = fcntl_getfl(file)?.contains(OFlags::RDWR);
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, writable);
        let len = usize::try_from(mapped_bytes).map_err(|_| Errno::NOMEM)?;
        // SAFETY: the kernel chooses the place of a new mapping, which no other code uses.
        let start =
            unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
        Ok(FileMapping { start: start.cast(), mapped_bytes, allocated: BTreeMap::new(), writable })
    }

    /// Allocates blocks for a write. Without that, writing to a page beyond the file's end, or when
    /// the disk is full, would kill the process (SIGBUS).
    fn allocate(&mut self, file: BorrowedFd, start: u64, end: u64) -> Result<(), Errno> {
        for piece in start / ALLOCATED_BYTES..end.div_ceil(ALLOCATED_BYTES) {
            let piece_start = piece * ALLOCATED_BYTES;
            let piece_end = piece_start + ALLOCATED_BYTES;
            let known = self.allocated.entry(piece).or_insert(piece_start);
            if *known < end.min(piece_end) {
                let to = end.max(fstat(file)?.st_size as u64).min(piece_end);
                match fallocate(file, FallocateFlags::empty(), piece_start, to - piece_start) {
                    Ok(()) => {}
                    // If `fallocate` is not supported, only the length can be set.
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                        if (fstat(file)?.st_size as u64) < to {
                            ftruncate(file, to)?;
                        }
                    }
                    Err(errno) => return Err(errno),
                }
                *known = to;
            }
        }
        Ok(())
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nothing else keeps a pointer into it.
        let _ = unsafe { munmap(self.start.cast(), self.mapped_bytes as usize) };
    }
}

impl Mmap {
    fn mapping(
        &mut self,
        slot: u32,
        file: BorrowedFd,
        end_bytes: u64,
    ) -> Result<&mut FileMapping, Errno> {
        let slot = slot as usize;
        if self.mappings.len() <= slot {
            self.mappings.resize_with(slot + 1, || None);
        }
        let place = &mut self.mappings[slot];
        if place.as_ref().is_none_or(|mapping| mapping.mapped_bytes < end_bytes) {
            let grown = end_bytes.checked_mul(2).ok_or(Errno::FBIG)?.max(MAPPED_BYTES_MIN);
            *place = Some(FileMapping::new(file, grown)?);
        }
        Ok(place.as_mut().expect("mapped above"))
    }

    fn read(&mut self, request: &Request, file: BorrowedFd) -> Result<usize, Errno> {
        let file_bytes = fstat(file)?.st_size as u64;
        let len = file_bytes.saturating_sub(request.offset).min(request.len);
        if len == 0 {
            // A read beyond the end of the file needs no mapping.
            return Ok(0);
        }
        let mapping = self.mapping(request.slot, file, request.offset + len)?;
        // SAFETY: the source is mapped and inside the file; the target is the request's (W5).
        unsafe {
            let source = mapping.start.add(request.offset as usize);
            std::ptr::copy_nonoverlapping(source, request.address, len as usize);
        }
        Ok(len as usize)
    }

    fn write(&mut self, request: &Request, file: BorrowedFd) -> Result<usize, Errno> {
        let end = request.offset + request.len;
        let mapping = self.mapping(request.slot, file, end)?;
        if !mapping.writable {
            return Err(Errno::BADF);
        }
        mapping.allocate(file, request.offset, end)?;
        // SAFETY: the target is mapped and, once allocated, inside the file; the source is the
        // request's (W5).
        unsafe {
            let target = mapping.start.add(request.offset as usize);
            std::ptr::copy_nonoverlapping(request.address, target, request.len as usize);
            if request.kind == OpKind::DurableWrite && request.rw_flags & libc::RWF_SYNC != 0 {
                fsync(file)?;
            } else if request.kind == OpKind::DurableWrite {
                let before = request.offset as usize % page_size();
                let len = request.len as usize + before;
                msync(target.sub(before).cast(), len, MsyncFlags::SYNC)?;
            }
        }
        Ok(request.len as usize)
    }

    fn carry_out(&mut self, request: &Request, file: RawFd) -> Reply {
        // SAFETY: the engine keeps the file open until the request is done.
        let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
        let moved = match request.kind {
            // A mapping does not support flags for single transfers.
            _ if request.rw_flags & (libc::RWF_ATOMIC | libc::RWF_DONTCACHE) != 0 => {
                Err(Errno::OPNOTSUPP)
            }
            OpKind::Read => self.read(request, borrowed),
            OpKind::Write | OpKind::DurableWrite => self.write(request, borrowed),
            // The flushes also cover writes through a mapping (`msync(2)`, NOTES).
            OpKind::Fdatasync | OpKind::Fsync | OpKind::Fallocate | OpKind::Reserve => {
                // SAFETY: as in `Psync`; none of these has an address.
                return unsafe { perform(request, file) };
            }
        };
        Reply::new(request.token, moved)
    }
}

impl Queue for Mmap {
    fn truncated(&mut self, slot: u32) {
        // The mapping may extend beyond the new end.
        self.closing(slot);
    }

    fn closing(&mut self, slot: u32) {
        if let Some(mapping) = self.mappings.get_mut(slot as usize) {
            *mapping = None;
        }
    }

    fn push(&mut self, requests: Requests) {
        let files = requests.files;
        for request in requests {
            let file = raw(files, request.slot);
            let reply = self.carry_out(request, file);
            self.done.push(reply);
        }
    }

    fn wait(&mut self, _min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}
