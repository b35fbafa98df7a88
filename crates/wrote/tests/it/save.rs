//! Tests of saves on the real kernel: content, names, permissions, links and attributes.

use fixtures::{names, skip_here};
use rustix::fs::{XattrFlags, getxattr, mkfifoat, setxattr};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wrote::engine::Options;
use wrote::{Disk, Error, Ioengine, write, write_new, write_unflushed};

/// Lengths below and above the length from which on a save bypasses the page cache.
const LENS: [usize; 8] = [0, 1, 511, 4096, 131_073, 1_000_000, 4 << 20, (4 << 20) + 777];

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place / 7 + place / 4096) as u8).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn any_length_is_saved_whole_by_any_engine_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let [path, new, theirs] = ["file", "new", "theirs"].map(|name| folder.path().join(name));
    fs::write(&theirs, b"x").unwrap();
    let saved = |path: &Path, len: usize| {
        assert!(fs::read(path).unwrap() == content(len), "{len} bytes");
        assert_eq!(mode(path), mode(&theirs), "the permissions of any new file");
    };
    for len in LENS {
        for save in [write, write_unflushed] {
            save(&path, content(len)).unwrap();
            saved(&path, len);
        }
        write_new(&new, content(len)).unwrap();
        saved(&new, len);
        fs::remove_file(&new).unwrap();
    }
    for ioengine in [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring, Ioengine::Mmap] {
        let disk = Disk::open(&Options::new(ioengine, 4, 100_000)).unwrap();
        for len in LENS {
            disk.write(&path, content(len)).unwrap();
            saved(&path, len);
            disk.write_new(&new, content(len)).unwrap();
            saved(&new, len);
            fs::remove_file(&new).unwrap();
        }
    }
    assert_eq!(names(folder.path()), ["file", "theirs"]);
}

#[test]
fn permissions_and_attributes_of_the_old_file_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"old").unwrap();
    for bits in [0o600, 0o640, 0o755, 0o666, 0o4711] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), bits);
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode, "another file took its place");
    }
    if let Err(errno) = setxattr(&path, c"user.colour", b"red", XattrFlags::empty()) {
        return skip_here!(&format!("no extended attributes here: {errno}"));
    }
    write(&path, b"newer").unwrap();
    let mut value = [0; 8];
    let len = getxattr(&path, c"user.colour", &mut value[..]).unwrap();
    assert_eq!(&value[..len], b"red");
    assert_eq!(fs::read(&path).unwrap(), b"newer");
}

#[test]
fn symbolic_links_are_followed_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::create_dir(place("below")).unwrap();
    fs::write(place("below/file"), b"old").unwrap();
    symlink("below/file", place("link")).unwrap();
    symlink("link", place("link-to-link")).unwrap();
    symlink("below/nothing", place("dangling")).unwrap();
    symlink("circle", place("circle")).unwrap();

    write(place("link-to-link"), b"new").unwrap();
    assert_eq!(fs::read(place("below/file")).unwrap(), b"new");
    write(place("dangling"), b"made").unwrap();
    assert_eq!(fs::read(place("below/nothing")).unwrap(), b"made");
    assert_eq!(write(place("circle"), b"x").unwrap_err().errno(), libc::ELOOP);
    for link in ["link", "link-to-link", "dangling", "circle"] {
        assert!(fs::symlink_metadata(place(link)).unwrap().is_symlink(), "{link}");
    }
    assert_eq!(names(&place("below")), ["file", "nothing"]);
    assert_eq!(names(folder.path()), ["below", "circle", "dangling", "link", "link-to-link"]);
}

#[test]
fn a_name_of_the_greatest_length_can_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n".repeat(255));
    write(&path, b"x").unwrap();
    write(&path, b"y").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"y");
    let longer = folder.path().join("n".repeat(256));
    assert_eq!(write(&longer, b"x").unwrap_err().errno(), libc::ENAMETOOLONG);
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn a_target_that_is_no_ordinary_file_is_refused_in_one_line_and_stays() {
    // W7: a device must never become a file.
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let link = folder.path().join("link");
    symlink("/dev/null", &link).unwrap();
    let before = fs::metadata("/dev/null").unwrap().rdev();
    for path in [folder.path(), &fifo, &link, Path::new("/dev/null"), Path::new("/")] {
        let error = write(path, b"x").unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let errno = if path.is_dir() { libc::EISDIR } else { libc::EINVAL };
        assert_eq!(error.errno(), errno, "{error}");
        let words = error.to_string();
        assert!(words.starts_with(&format!("{}: is ", path.display())), "{words}");
        assert!(!words.contains('\n'), "{words}");
    }
    assert_eq!(fs::metadata("/dev/null").unwrap().rdev(), before);
    assert_eq!(names(folder.path()), ["fifo", "link"]);
}

#[test]
fn readers_find_the_old_or_the_new_whole_while_a_writer_replaces_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let contents: Vec<Vec<u8>> =
        (1..=6).map(|number| vec![number; number as usize * 3000]).collect();
    write_unflushed(&path, &contents[0]).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let found = fs::read(&path).unwrap();
                    assert!(contents.contains(&found), "{} bytes", found.len());
                }
            });
        }
        let written = (0..600).try_for_each(|round| {
            let save = if round % 20 == 0 { write } else { write_unflushed };
            save(&path, &contents[round % contents.len()])
        });
        // This comes before any assertion, because the readers wait for it.
        done.store(true, Ordering::Relaxed);
        written.unwrap();
    });
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_name_that_exists_is_never_saved_as_a_new_one_and_stays_as_it_was() {
    // W7
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("file"), b"old").unwrap();
    fs::create_dir(place("folder")).unwrap();
    mkfifoat(rustix::fs::CWD, place("pipe"), 0o600.into()).unwrap();
    symlink("file", place("link")).unwrap();
    symlink("nothing", place("dangling")).unwrap();
    let before = names(folder.path());
    for name in ["file", "folder", "pipe", "link", "dangling"] {
        for len in [1, 5 << 20] {
            let error = write_new(place(name), content(len)).unwrap_err();
            let expected = format!("{}: open: File exists", place(name).display());
            assert!(error.to_string().starts_with(&expected), "{error}");
            let error = std::io::Error::from(error);
            assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        }
    }
    assert_eq!(fs::read(place("file")).unwrap(), b"old");
    assert!(fs::symlink_metadata(place("dangling")).unwrap().is_symlink());
    assert_eq!(names(folder.path()), before);
    let error = write_new(place("no/file"), b"x").unwrap_err();
    assert_eq!(error.errno(), libc::ENOENT);
}

#[test]
fn of_several_threads_that_save_one_new_file_one_succeeds_and_the_others_learn_that_it_exists() {
    // W7: the name may be taken between the initial check and the last step.
    let folder = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = folder.path().join(round.to_string());
        let results: Vec<(usize, Result<(), Error>)> = thread::scope(|scope| {
            let save = |number: usize| {
                let path = &path;
                scope.spawn(move || (number, write_new(path, content(5000 + number))))
            };
            let threads: Vec<_> = (0..4).map(save).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut winners = results.iter().filter(|(_, result)| result.is_ok());
        let (winner, _) = winners.next().expect("one succeeds");
        assert!(winners.next().is_none(), "{results:?}");
        assert!(fs::read(&path).unwrap() == content(5000 + winner));
        for error in results.iter().filter_map(|(_, result)| result.as_ref().err()) {
            assert_eq!(error.errno(), libc::EEXIST, "{error}");
        }
    }
    assert_eq!(names(folder.path()).len(), 50);
}
