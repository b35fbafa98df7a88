//! Tests of reads of whole files, from the page cache and directly.

use fixtures::folder;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MIB: usize = 1 << 20;

fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![len as u8; len];
    for (number, sector) in bytes.chunks_exact_mut(512).enumerate() {
        sector[..8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    bytes
}

/// Drops the file from the page cache.
fn forget(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

#[test]
fn a_file_is_read_whole_whether_it_is_cached_or_not() {
    let folder = folder();
    let path = folder.path().join("file");
    for len in [0, 1, 4095, MIB, 4 * MIB - 1, 4 * MIB, 4 * MIB + 777, 20 * MIB, 20 * MIB + 4096] {
        let content = content(len);
        fs::write(&path, &content).unwrap();
        assert!(wrote::read(&path).unwrap() == content, "{len} bytes, not flushed");
        forget(&path);
        assert!(wrote::read(&path).unwrap() == content, "{len} bytes, not cached");
        fs::read(&path).unwrap();
        assert!(wrote::read(&path).unwrap() == content, "{len} bytes, cached");
    }
}

#[test]
fn bytes_only_in_the_cache_are_read_beside_bytes_only_on_the_disk() {
    use std::os::unix::fs::FileExt;
    let folder = folder();
    let path = folder.path().join("file");
    let mut content = content(8 * MIB);
    fs::write(&path, &content).unwrap();
    forget(&path);
    let file = File::options().write(true).open(&path).unwrap();
    for start in [0, 3 * MIB + 5, 8 * MIB - 100] {
        content[start..start + 100].fill(b'x');
        file.write_all_at(&[b'x'; 100], start as u64).unwrap();
    }
    assert!(wrote::read(&path).unwrap() == content);
}

#[test]
fn a_file_that_grows_and_shrinks_meanwhile_is_read_up_to_an_end_that_it_had() {
    const LENS: [u64; 3] = [6 * MIB as u64, 5 * MIB as u64 + 1, 9 * MIB as u64 + 3000];
    let folder = folder();
    let path = folder.path().join("file");
    let file = File::create(&path).unwrap();
    file.set_len(LENS[0]).unwrap();
    let done = AtomicBool::new(false);
    let found: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                LENS.iter().for_each(|&len| file.set_len(len).unwrap());
            }
        });
        let found = (0..30).map(|_| wrote::read(&path)).collect();
        done.store(true, Ordering::Relaxed);
        found
    });
    for bytes in found {
        let bytes = bytes.unwrap();
        // The file consists of holes, so a byte other than zero was never in it.
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert!(bytes.len() as u64 >= LENS[1] && bytes.len() as u64 <= LENS[2], "{}", bytes.len());
    }
}

#[test]
fn a_file_that_tells_no_length_is_read_to_its_end() {
    assert_eq!(fs::metadata("/proc/version").unwrap().len(), 0);
    assert_eq!(wrote::read("/proc/version").unwrap(), fs::read("/proc/version").unwrap());
    assert_eq!(wrote::read("/dev/null").unwrap(), b"");
    let (pipe, mut other_end) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut other_end, b"by a pipe").unwrap();
    drop(other_end);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    assert_eq!(wrote::read(path).unwrap(), b"by a pipe");
}

#[test]
fn a_path_that_cannot_be_read_is_an_error_that_says_so() {
    let folder = folder();
    let path = folder.path().join("no");
    let words = wrote::read(&path).unwrap_err().to_string();
    assert_eq!(words, format!("{}: open: No such file or directory (os error 2)", path.display()));
    assert_eq!(wrote::read(folder.path()).unwrap_err().errno(), libc::EISDIR);
}
