//! Copies on the server of a network file system.

use super::extents::Extents;
use rustix::fs::copy_file_range;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// The bytes of one call, which can't be interrupted while the server works.
const CALL_BYTES_MAX: u64 = 64 << 20;

/// Returns whether a server copies between two files, by the types of their file systems. A local
/// file system would copy in the page cache, which is slower than the engine.
pub(super) fn copies_on_server(source: &str, target: &str) -> bool {
    source == target && matches!(source, "nfs4" | "cifs" | "smb3" | "ceph")
}

/// Why a server did not copy everything.
#[derive(Debug)]
pub(super) enum RangeError<E> {
    /// It refused before copying anything.
    AtOnce(Errno),
    /// It failed at this offset.
    Midway(u64, Errno),
    /// The source ended before its length.
    Short,
    /// The progress callback asked to stop.
    Interrupted(E),
}

/// Copies the data of the first `len` bytes (`copy_file_range(2)`), and reports the length of each
/// part and hole to `done`.
pub(super) fn copy_ranges<E>(
    source: BorrowedFd,
    target: BorrowedFd,
    len: u64,
    mut done: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), RangeError<E>> {
    let mut extents = Extents::new(len, rustix::param::page_size() as u64);
    let mut end = 0;
    let mut tried = false;
    while let Some(extent) = extents.next(Some(source)).map_err(|errno| stopped(tried, 0, errno))? {
        done(extent.start - end).map_err(RangeError::Interrupted)?;
        end = extent.end;
        let (mut from, mut to) = (extent.start, extent.start);
        while from < extent.end {
            let bytes = (extent.end - from).min(CALL_BYTES_MAX) as usize;
            match copy_file_range(source, Some(&mut from), target, Some(&mut to), bytes) {
                Ok(0) => return Err(RangeError::Short),
                Ok(moved) => done(moved as u64).map_err(RangeError::Interrupted)?,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(stopped(tried, from, errno)),
            }
            tried = true;
        }
    }
    done(len - end).map_err(RangeError::Interrupted)
}

fn stopped<E>(tried: bool, offset: u64, errno: Errno) -> RangeError<E> {
    if tried { RangeError::Midway(offset, errno) } else { RangeError::AtOnce(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    /// In the build folder, which is usually on a disk.
    fn file() -> File {
        let program = std::env::current_exe().unwrap();
        tempfile::tempfile_in(program.parent().unwrap()).unwrap()
    }

    fn contents(file: &File, len: usize) -> Vec<u8> {
        let mut bytes = vec![1; len];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn only_a_server_that_has_both_files_copies_by_itself() {
        for name in ["nfs4", "cifs", "smb3", "ceph"] {
            assert!(copies_on_server(name, name));
            assert!(!copies_on_server(name, "ext4") && !copies_on_server("ext4", name));
        }
        for name in ["ext4", "xfs", "btrfs", "tmpfs", "nfs", "fuse.sshfs"] {
            assert!(!copies_on_server(name, name));
        }
    }

    #[test]
    fn ranges_arrive_at_their_places_and_every_byte_is_told_of() {
        let (source, target) = (file(), file());
        let len = 5_000_001;
        source.set_len(len).unwrap();
        source.write_all_at(&[7; 9_000], 0).unwrap();
        source.write_all_at(b"in the middle", 3_000_000).unwrap();
        target.set_len(len).unwrap();
        let mut told = 0;
        copy_ranges(source.as_fd(), target.as_fd(), len, |bytes| {
            told += bytes;
            Ok::<(), Infallible>(())
        })
        .unwrap();
        assert_eq!(told, len);
        assert!(contents(&target, len as usize) == contents(&source, len as usize));
    }

    #[test]
    fn a_source_that_ends_early_is_noticed() {
        let (source, target) = (file(), file());
        source.write_all_at(&[7; 10_000], 0).unwrap();
        let copied =
            copy_ranges(source.as_fd(), target.as_fd(), 20_000, |_| Ok::<(), Infallible>(()));
        assert!(matches!(copied, Err(RangeError::Short)), "{copied:?}");
    }

    #[test]
    fn who_is_told_of_a_part_can_stop() {
        let (source, target) = (file(), file());
        source.write_all_at(&[7; 10_000], 0).unwrap();
        let copied = copy_ranges(source.as_fd(), target.as_fd(), 10_000, |_| Err("stop"));
        assert!(matches!(copied, Err(RangeError::Interrupted("stop"))));
    }
}
