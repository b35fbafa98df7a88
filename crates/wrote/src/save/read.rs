//! Reads entire files: from the page cache if it contains them, otherwise bypassing it.

use crate::engine::Options;
use crate::error::Tried;
use crate::file::cached::cached_bytes;
use crate::read_ahead::ReadAhead;
use crate::{Action, Engine, Error, FileId, FileOptions, Ioengine};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The minimum length of a file that is read or written bypassing the page cache. For shorter
/// files, a ring and its buffers cost more than they save.
pub(super) const DIRECT_BYTES_MIN: usize = 4 << 20;

/// The minimum size of memory for which huge pages are requested. The allocator often has smaller
/// pieces at hand, for which huge pages gain nothing. (glibc maps memory afresh for each piece of
/// 32 MiB or more: `mallopt(3)`, M_MMAP_THRESHOLD.)
const HUGE_BYTES_MIN: usize = 32 << 20;

/// Reads a whole file like `std::fs::read`, but reads large files faster.
///
/// If the page cache has less than half of an ordinary file of 4 MiB or more (`cachestat(2)`, Linux
/// 6.5), the file is read bypassing the cache. Several reads are then in flight, and the file is
/// not cached afterwards. Everything else is read like `std::fs::read`: cached files, small files,
/// files without a length (`/proc`), and pipes.
///
/// The bytes returned are those last written, durable or not: a direct read also sees pages that
/// are only in the cache (`open(2)`, O_DIRECT). If the file's length changes during the read, the
/// file is read to its new end. From 32 MiB on, the content is in huge pages, if available. A
/// direct read uses another 8 MiB for buffers.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// wrote::write(&path, [1, 2, 3])?;
/// assert_eq!(wrote::read(&path)?, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with the kernel's message. A failed direct read is retried once through the
/// cache, and the error of that attempt is returned. `ENOMEM` if there is no memory for the
/// content.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    let mut file = File::open(path).tried(path, Action::Open)?;
    let metadata = file.metadata().tried(path, Action::Examine)?;
    if metadata.is_file()
        && is_better_direct(&file, metadata.len())
        && let Some(bytes) = read_direct(path)
    {
        return Ok(bytes);
    }
    let room = with_room(metadata.len()).ok_or(Errno::NOMEM);
    let mut bytes = room.tried(path, Action::Read)?;
    file.read_to_end(&mut bytes).tried(path, Action::Read)?;
    Ok(bytes)
}

/// Returns whether to read the file directly. If the kernel does not report how much is cached, the
/// read goes through the cache: a cached read is never much slower than a direct one, but the
/// reverse is not true.
fn is_better_direct(file: &File, len: u64) -> bool {
    len >= DIRECT_BYTES_MIN as u64
        && cached_bytes(file.as_fd(), len).is_some_and(|cached_bytes| cached_bytes < len / 2)
}

/// Reads the file directly; returns `None` if that is not possible.
fn read_direct(path: &Path) -> Option<Vec<u8>> {
    let mut engine = direct_engine().ok()?;
    let direct = FileOptions::new().direct(true);
    let file = engine.open_file(path, &direct).ok()?;
    if !engine.is_direct(file) {
        return None;
    }
    let len = engine.file_len(file).ok()?;
    let mut bytes = with_room(len)?;
    read_pieces(&mut engine, file, len, &mut bytes).ok()?;
    Some(bytes)
}

/// Reads the file to its end; `len_expected` only limits how many pieces are read ahead.
fn read_pieces(
    engine: &mut Engine,
    file: FileId,
    len_expected: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), Error> {
    let piece_bytes = engine.pool().buffer_bytes();
    let mut pieces = ReadAhead::new(file, piece_bytes);
    loop {
        // If the length is as expected, the piece at that offset is empty, which marks the end.
        let piece = pieces.next(engine, len_expected + 1)?;
        bytes.extend_from_slice(&piece);
        if piece.len() < piece_bytes {
            return Ok(());
        }
    }
}

/// Opens an engine for large files, with up to 8 transfers of 1 MiB in flight.
pub(super) fn direct_engine() -> Result<Engine, Error> {
    Engine::open(&Options::new(Ioengine::IoUring, 8, 1 << 20))
}

/// Returns an empty vector with room for `len` bytes; `None` if there is not enough memory.
fn with_room(len: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(len).ok()?).ok()?;
    if bytes.capacity() >= HUGE_BYTES_MIN {
        in_huge_pages(&mut bytes);
    }
    Some(bytes)
}

/// Requests huge pages (`madvise(2)`, MADV_HUGEPAGE). The first access to a page of 4 KiB costs
/// more than reading its bytes from the page cache.
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
    use crate::engine::{Fault, Options};
    use crate::{Ioengine, Sim};

    const PIECE_BYTES: usize = 4096;

    /// Returns a file of `len` bytes on a simulated disk, and its content.
    fn file(sim: &Sim, len: usize) -> (Engine, FileId, Vec<u8>) {
        let options = Options::new(Ioengine::IoUring, 4, PIECE_BYTES);
        let mut engine = Engine::simulated(sim, &options).unwrap();
        let path = Path::new("/sim/file");
        let content: Vec<u8> = (0..len).map(|place| (place / 3 + place / 4096) as u8).collect();
        sim.disk().write_unflushed(path, &content).unwrap();
        let direct = FileOptions::new().direct(true);
        let file = engine.open_file(path, &direct).unwrap();
        (engine, file, content)
    }

    #[test]
    fn every_byte_is_read_whatever_length_was_expected() {
        // The file may have grown or shrunk since its length was read.
        let lens = [0, 1, 511, 512, 4095, 4096, 4097, 8192, 40_000, 40_960, 65_536];
        for len in lens {
            for expected in lens {
                let sim = Sim::new((len * 7 + expected) as u64);
                let (mut engine, file, content) = file(&sim, len);
                let mut found = Vec::new();
                read_pieces(&mut engine, file, expected as u64, &mut found).unwrap();
                assert!(found == content, "{len} bytes, {expected} expected: {}", found.len());
            }
        }
    }

    #[test]
    fn a_short_or_interrupted_read_is_made_whole_and_a_failed_one_is_an_error() {
        // W4
        const LEN: usize = 40_000;
        let reads = LEN.div_ceil(PIECE_BYTES) as u64;
        for operation in 0..reads {
            let read = |fault| {
                let sim = Sim::new(operation);
                let (mut engine, file, content) = file(&sim, LEN);
                sim.fault(sim.operations() + operation, fault);
                let mut found = Vec::new();
                read_pieces(&mut engine, file, LEN as u64, &mut found)
                    .map(|()| assert!(found == content))
            };
            for fault in [Fault::Short(512), Fault::Short(1024), Fault::Once(libc::EINTR)] {
                read(fault).unwrap();
            }
            for fault in [Fault::Once(libc::EIO), Fault::Forever(libc::EIO)] {
                assert_eq!(read(fault).unwrap_err().errno(), libc::EIO);
            }
        }
    }

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
