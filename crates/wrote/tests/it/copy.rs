//! Tests of copies on the real kernel: their bytes, holes and metadata, and the state after an
//! interruption.

use fixtures::{Mounted, folder, names, or_skip};
use libc::{EIO, ENOSPC};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wrote::engine::{Fault, Options};
use wrote::{CopyOptions, Disk, Error, Ioengine, Method, Sim};

const BLOCK: u64 = 64 << 10;
/// Options with pieces so small that even a small file has many.
const PIECES: CopyOptions<'static> = CopyOptions::new()
    .reflink(Some(false))
    .replace(false)
    .durable(false)
    .verify(false)
    .bs_bytes(64 << 10)
    .iodepth(4);

fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Creates a file that is not in the page cache: it is written, flushed, and dropped from the
/// cache.
fn cold_file(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
fn files_of_any_length_arrive_byte_for_byte_from_the_cache_and_from_the_disk() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let disk = Disk::open(&Options::new(Ioengine::IoUring, 4, 64 << 10)).unwrap();
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let edges = [0, 1, 511, 512, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_144];
    let others: Vec<usize> = (0..25).map(|_| chance.random_range(0..3 << 20)).collect();
    for (number, len) in edges.into_iter().chain(others).enumerate() {
        let bytes = random(len, number as u64);
        let (from, to) = (place(&format!("{number}")), place(&format!("{number}-copy")));
        if number % 2 == 0 {
            cold_file(&from, &bytes)
        } else {
            fs::write(&from, &bytes).unwrap()
        }
        let verify = number % 3 == 0;
        let mut told = (0, Some(0));
        let copied = PIECES
            .verify(verify)
            .watch(&mut |done, total| {
                told = (done, total);
                ControlFlow::Continue(())
            })
            .on(&disk)
            .copy(&from, &to)
            .unwrap();
        assert!(fs::read(&to).unwrap() == bytes, "{len} bytes");
        assert_eq!(copied.bytes, len as u64);
        assert!(matches!(copied.method, Method::Direct | Method::Cached));
        assert_eq!(Some(told.0), told.1);
        let checksum = verify.then(|| xxhash_rust::xxh3::xxh3_128(&bytes));
        assert_eq!(copied.checksum, checksum);
    }
    assert_eq!(names(folder.path()).len(), 2 * (11 + 25), "nothing else is left");
}

#[test]
fn holes_stay_holes_wherever_they_are() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let cases: [(u64, &[u64]); 5] = [
        (40 * BLOCK, &[]),
        (40 * BLOCK + 5, &[0, 20 * BLOCK]),
        (40 * BLOCK, &[3 * BLOCK, 4 * BLOCK, 39 * BLOCK]),
        (40 * BLOCK + 4095, &[39 * BLOCK, 40 * BLOCK]),
        (3 * BLOCK, &[0, BLOCK, 2 * BLOCK]),
    ];
    for (number, (len, data)) in cases.into_iter().enumerate() {
        let (from, to) = (place(&format!("{number}")), place(&format!("{number}-copy")));
        let file = File::create_new(&from).unwrap();
        file.set_len(len).unwrap();
        for &at in data {
            let bytes = random(BLOCK.min(len - at) as usize, at);
            file.write_all_at(&bytes, at).unwrap();
        }
        file.sync_all().unwrap();
        let options = PIECES.verify(true).durable(true);
        let copied = options.copy(&from, &to).unwrap();
        let expected = fs::read(&from).unwrap();
        assert!(fs::read(&to).unwrap() == expected, "{number}");
        assert_eq!(copied.checksum, Some(xxhash_rust::xxh3::xxh3_128(&expected)));
        let blocks = |path: &Path| fs::metadata(path).unwrap().blocks();
        assert_eq!(blocks(&to), blocks(&from), "{number}");
    }
}

#[test]
fn permissions_times_and_attributes_come_along() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    cold_file(&from, &random(200_000, 1));
    let file = File::options().write(true).open(&from).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    let attribute = rustix::fs::fsetxattr(&file, c"user.colour", b"red", flags);
    let time = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 7 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::futimens(&file, &times).unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o640)).unwrap();
    let mut modes = Vec::new();
    let options = PIECES.verify(true);
    options
        .watch(&mut |_, _| {
            modes.push(fs::metadata(temporary(folder.path())).unwrap().mode() & 0o777);
            ControlFlow::Continue(())
        })
        .copy(&from, &to)
        .unwrap();
    assert!(modes.iter().all(|&mode| mode == 0o600), "nobody else reads it before: {modes:?}");
    let copied = fs::metadata(&to).unwrap();
    assert_eq!(copied.mode() & 0o7777, 0o640);
    assert_eq!((copied.mtime(), copied.mtime_nsec()), (1_000_000_000, 7));
    assert_eq!((copied.atime(), copied.atime_nsec()), (1_000_000_000, 7));
    if attribute.is_ok() {
        let mut value = [0; 8];
        let len = rustix::fs::getxattr(&to, c"user.colour", &mut value[..]).unwrap();
        assert_eq!(&value[..len], b"red");
    }
}

#[test]
fn the_same_file_by_another_name_is_refused() {
    // W7
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("file"), b"precious").unwrap();
    fs::hard_link(place("file"), place("hard")).unwrap();
    std::os::unix::fs::symlink("file", place("symbolic")).unwrap();
    for (from, to) in
        [("file", "file"), ("file", "hard"), ("symbolic", "file"), ("file", "symbolic")]
    {
        let error = PIECES.replace(true).copy(place(from), place(to)).unwrap_err();
        let told =
            format!("{}: is the same file as {}", place(to).display(), place(from).display());
        assert_eq!(error.to_string(), told);
    }
    assert_eq!(fs::read(place("file")).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["file", "hard", "symbolic"]);
}

#[test]
fn a_path_that_cannot_be_copied_or_written_is_reported_in_a_line_and_nothing_changes() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("file"), b"new").unwrap();
    fs::write(place("old"), b"old").unwrap();
    fs::create_dir(place("folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let device = PathBuf::from("/dev/null");
    let cases = [
        (place("none"), place("to"), "open: No such file or directory"),
        (place("folder"), place("to"), "is a folder"),
        (place("pipe"), place("to"), "is neither a file nor a block device"),
        (device.clone(), place("to"), "is neither a file nor a block device"),
        (place("file"), place("folder"), "is a folder"),
        (place("file"), place("pipe"), "is a device, a pipe or a socket"),
        (place("file"), device, "is a device, a pipe or a socket"),
        (place("file"), place("none/"), "names a folder that does not exist"),
        (place("file"), place("none/to"), "open: No such file or directory"),
        (place("file"), place("old"), "open: File exists"),
    ];
    for (from, to, words) in cases {
        let error = PIECES.copy(&from, &to).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
        assert!(!error.contains(".wrote-"), "{error}");
    }
    assert_eq!(fs::read(place("old")).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["file", "folder", "old", "pipe"]);
}

#[test]
fn a_replaced_file_keeps_its_owner_and_permissions_unless_the_sources_are_wanted() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let root = rustix::process::geteuid().is_root();
    let attribute = |path: &Path| {
        let mut value = [0; 8];
        let len = rustix::fs::getxattr(path, c"user.colour", &mut value[..]).ok()?;
        Some(value[..len].to_vec())
    };
    let seen = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777, attribute(path))
    };
    for (name, mode, colour) in [("from", 0o644, b"red"), ("secret", 0o600, b"ink")] {
        fs::write(place(name), name).unwrap();
        fs::set_permissions(place(name), fs::Permissions::from_mode(mode)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        // If the file system does not support attributes, there is nothing to compare.
        let _ = rustix::fs::setxattr(place(name), c"user.colour", colour, flags);
    }
    if root {
        std::os::unix::fs::chown(place("secret"), Some(1500), Some(1501)).unwrap();
        std::os::unix::fs::chown(place("from"), Some(1600), Some(1601)).unwrap();
    }
    std::os::unix::fs::symlink("secret", place("link")).unwrap();
    let old = seen(&place("secret"));
    let options = || PIECES.replace(true);
    for to in ["secret", "link"] {
        options().copy(place("from"), place(to)).unwrap();
        assert_eq!(seen(&place("secret")), old, "{to}");
        assert_eq!(fs::read(place("secret")).unwrap(), b"from");
    }
    fs::write(place("secret"), b"old").unwrap();
    options().copy_in(File::open(place("from")).unwrap(), place("secret")).unwrap();
    assert_eq!(seen(&place("secret")), old);
    options().preserve(true).copy(place("from"), place("secret")).unwrap();
    assert_eq!(seen(&place("secret")), seen(&place("from")));
    options().copy(place("from"), place("new")).unwrap();
    assert_eq!(fs::metadata(place("new")).unwrap().uid(), rustix::process::geteuid().as_raw());
}

#[test]
fn files_that_the_kernel_generates_are_read_to_their_end() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    // Files in `/proc` have a reported length of 0, and files in `/sys` of one page.
    let generated =
        ["/proc/version", "/sys/kernel/notes", "/sys/kernel/mm/transparent_hugepage/enabled"];
    for from in generated.into_iter().filter(|path| Path::new(path).exists()) {
        let wanted = fs::read(from).unwrap();
        assert!(!wanted.is_empty());
        let copied = PIECES.verify(true).replace(true).copy(from, place("to")).unwrap();
        assert_eq!(copied.bytes, wanted.len() as u64, "{from}");
        assert_eq!(fs::read(place("to")).unwrap(), wanted, "{from}");
        let out = File::create(place("out")).unwrap();
        PIECES.copy_out(from, &out).unwrap();
        assert_eq!(fs::read(place("out")).unwrap(), wanted, "{from}");
    }
    // A file with a hole of one page looks the same.
    File::create(place("hole")).unwrap().set_len(4096).unwrap();
    assert_eq!(PIECES.copy(place("hole"), place("holes")).unwrap().bytes, 4096);
    assert_eq!(fs::read(place("holes")).unwrap(), [0; 4096]);
}

#[test]
fn a_block_device_is_copied_to_an_image() {
    let device = or_skip!(fixtures::Loop::attach(3 << 20));
    let folder = folder();
    let bytes = random(3 << 20, 5);
    fs::write(device.node(), &bytes).unwrap();
    for verify in [false, true] {
        let options = PIECES.verify(verify).replace(true);
        let copied = options.copy(device.node(), folder.path().join("image")).unwrap();
        assert_eq!(copied.bytes, 3 << 20);
        assert!(fs::read(folder.path().join("image")).unwrap() == bytes);
    }
    // Block devices are never written.
    let error = PIECES.replace(true).copy(folder.path().join("image"), device.node()).unwrap_err();
    assert!(error.to_string().contains("a copy must be a file"), "{error}");
}

#[test]
fn a_copy_that_is_stopped_leaves_nothing() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::write(&from, random(3 << 20, 1)).unwrap();
    for verify in [false, true] {
        let options = PIECES.verify(verify).replace(true);
        let mut calls = 0;
        let error = options
            .watch(&mut |bytes_done, bytes_total| {
                calls += 1;
                let half = bytes_total.unwrap() / 2;
                // With `verify`, the second half of the progress is the reading back of the copy.
                if bytes_done > half { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .copy(&from, &to)
            .unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert!(calls > 10, "{calls} calls");
        assert_eq!(names(folder.path()), ["from"]);
    }
}

#[test]
fn a_watcher_that_panics_leaves_nothing() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("from"), random(3 << 20, 1)).unwrap();
    let panics = |copy: &dyn Fn(CopyOptions)| {
        let mut calls = 0;
        let mut watch = |_, _| {
            calls += 1;
            assert!(calls < 4, "the watcher's own");
            ControlFlow::Continue(())
        };
        let copied = std::panic::AssertUnwindSafe(|| copy(PIECES.watch(&mut watch)));
        let panic = std::panic::catch_unwind(copied).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the watcher's own"));
        assert_eq!(names(folder.path()), ["from"]);
    };
    panics(&|options| _ = options.copy(place("from"), place("to")));
    panics(&|options| _ = options.copy_in(File::open(place("from")).unwrap(), place("to")));
}

#[test]
fn a_copy_of_many_extents_can_be_stopped_while_they_are_allocated() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let source = File::create_new(&from).unwrap();
    for number in 0..200 {
        source.write_all_at(&random(4096, number), number * (64 << 10)).unwrap();
    }
    let mut calls = 0;
    let mut watch = |bytes_done, _| {
        calls += u32::from(bytes_done == 0);
        if calls == 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = PIECES.watch(&mut watch).copy(&from, &to);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(names(folder.path()), ["from"]);
}

#[test]
fn a_source_that_becomes_shorter_meanwhile_is_an_error_and_one_that_grows_is_not() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let bytes = random(3 << 20, 1);
    fs::write(&from, &bytes).unwrap();
    let source = File::options().append(true).open(&from).unwrap();
    let error = PIECES
        .watch(&mut |_, _| {
            source.set_len(1 << 20).unwrap();
            ControlFlow::Continue(())
        })
        .copy(&from, &to)
        .unwrap_err();
    let told = format!("{}: became shorter while it was copied", from.display());
    assert_eq!(error.to_string(), told);
    assert_eq!(names(folder.path()), ["from"]);

    fs::write(&from, &bytes).unwrap();
    let mut more = true;
    PIECES
        .watch(&mut |_, _| {
            if std::mem::take(&mut more) {
                std::io::Write::write_all(&mut &source, &bytes).unwrap();
            }
            ControlFlow::Continue(())
        })
        .copy(&from, &to)
        .unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
    assert_eq!(fs::metadata(&from).unwrap().len(), 2 * bytes.len() as u64);
}

fn temporary(folder: &Path) -> PathBuf {
    let name = names(folder).into_iter().find(|name| name.starts_with(".to.wrote-"));
    folder.join(name.expect("the copy is on its way"))
}

#[test]
fn blocks_are_shared_where_the_file_system_can() {
    for fs_name in ["xfs", "btrfs"] {
        let mounted = or_skip!(Mounted::image(fs_name, 400 << 20));
        let place = |name: &str| mounted.path().join(name);
        let bytes = random((2 << 20) + 77, 1);
        fs::write(place("from"), &bytes).unwrap();
        for (reflink, method) in
            [(None, Method::Reflink), (Some(true), Method::Reflink), (Some(false), Method::Direct)]
        {
            for verify in [false, true] {
                let options = PIECES.reflink(reflink).verify(verify).replace(true);
                let copied = options.copy(place("from"), place("to")).unwrap();
                assert_eq!(copied.method, method, "{fs_name}");
                assert_eq!(copied.checksum.is_some(), verify);
                assert!(fs::read(place("to")).unwrap() == bytes, "{fs_name} {reflink:?}");
            }
        }
    }
}

#[test]
fn blocks_that_can_not_be_shared_are_copied_or_an_error_as_was_asked() {
    let mounted = or_skip!(Mounted::image("ext4", 64 << 20));
    let (from, to) = (mounted.path().join("from"), mounted.path().join("to"));
    fs::write(&from, b"bytes").unwrap();
    let options = PIECES.reflink(Some(true));
    let error = options.copy(&from, &to).unwrap_err();
    let told = "ext4 does not share blocks between these files: FICLONE: Operation not supported";
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(names(mounted.path()), ["from", "lost+found"]);
    let copied = PIECES.reflink(None).copy(&from, &to).unwrap();
    assert_eq!(copied.method, Method::Cached, "a short file");
    assert!(copied.effective.fallbacks.iter().any(|step| step.wanted == "reflink"), "W6");
    assert_eq!(fs::read(&to).unwrap(), b"bytes");
}

#[test]
fn files_go_from_one_file_system_to_another_and_back() {
    let mounted = [
        Mounted::tmpfs(64 << 20),
        Mounted::image("ext4", 64 << 20),
        Mounted::image("xfs", 300 << 20),
        Mounted::image("btrfs", 200 << 20),
    ];
    let mounted: Vec<Mounted> = or_skip!(mounted.into_iter().collect());
    let bytes = random((3 << 20) + 1, 1);
    for from in &mounted {
        let from = from.path().join("from");
        cold_file(&from, &bytes);
        for to in &mounted {
            let to = to.path().join("to");
            for verify in [false, true] {
                let options = PIECES.verify(verify).durable(true).replace(true);
                options.copy(&from, &to).unwrap();
                let (from, to) = (from.display(), to.display());
                assert!(fs::read(to.to_string()).unwrap() == bytes, "{from} to {to}");
            }
        }
    }
}

/// Returns a pipe that delivers these bytes.
fn pipe_of(bytes: Vec<u8>) -> io::PipeReader {
    let (reader, mut writer) = io::pipe().unwrap();
    std::thread::spawn(move || {
        // If the copy fails, the reader no longer exists.
        let _ = writer.write_all(&bytes);
    });
    reader
}

#[test]
fn a_stream_leaves_all_or_nothing_whatever_fails() {
    let content: Vec<u8> = (0..5 * 4096 + 700).map(|place| (place / 7 + 1) as u8).collect();
    let to = Path::new("/sim/to");
    for fault in [Fault::Once(EIO), Fault::Forever(EIO), Fault::Forever(ENOSPC), Fault::Short(512)]
    {
        for number in 0.. {
            let sim = Sim::new(number);
            sim.fault(number, fault);
            let disk = sim.disk();
            let options = PIECES.durable(true).verify(true).bs_bytes(4096).iodepth(3);
            let pipe = pipe_of(content.clone());
            let copied = options.on(&disk).copy_in(pipe.as_fd(), to);
            assert_eq!(disk.outstanding(), 0, "W5");
            match &copied {
                Ok(_) => {
                    assert_eq!(sim.after_power_loss(to), Some(content.clone()), "{fault:?}");
                    assert_eq!(sim.names(), [to]);
                }
                // The last step, flushing the folder, comes after the file has its name.
                Err(_) if sim.names() == [to] => {
                    assert_eq!(sim.contents(to), Some(content.clone()))
                }
                // A disk that fails forever does not allow the temporary file to be removed.
                Err(error) => {
                    assert!(sim.contents(to).is_none(), "{fault:?} {number}");
                    assert!(!error.to_string().contains(".wrote-"), "{error}");
                    assert!(fault != Fault::Once(EIO) || sim.names().is_empty(), "{number}");
                }
            }
            if sim.operations() <= number {
                assert!(copied.is_ok() && number > 10, "{fault:?}: {number}");
                break;
            }
        }
    }
}
