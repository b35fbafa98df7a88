//! Tests of `Writer` on the real kernel: the resulting file on each file system and rung.

use crate::folder;
use fixtures::{Mounted, skip};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wrote::{Effective, Error, SyncPolicy, Writer, WriterOptions};

/// Returns `len` bytes that do not repeat within a page or a buffer.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 7 + place / 4093) as u8).collect()
}

/// Returns options with small buffers, which fill up often.
fn small() -> WriterOptions {
    Writer::options().bs(16 << 10).iodepth(3)
}

/// Writes the bytes in pieces of many lengths, including single bytes and empty pieces.
fn write_in_pieces(writer: &mut impl Write, bytes: &[u8]) {
    let lengths = [1, 0, 1, 4095, 17, 16 << 10, 3, 40_000, 1, 511];
    let mut left = bytes;
    for len in lengths.into_iter().cycle() {
        if left.is_empty() {
            break;
        }
        let (now, later) = left.split_at(len.min(left.len()));
        writer.write_all(now).unwrap();
        left = later;
    }
}

#[test]
fn the_file_holds_what_was_written_and_ends_where_it_should() {
    let (_folder, path) = folder();
    for len in [0, 1, 511, 512, 4096, 16 << 10, (16 << 10) + 1, 1_000_001] {
        for direct in [false, true] {
            let bytes = content(len);
            let mut writer = small().direct(direct).open(&path).unwrap();
            write_in_pieces(&mut writer, &bytes);
            let written = writer.finish().unwrap();
            assert_eq!(written.bytes, len as u64);
            assert!(written.durable);
            assert!(std::fs::read(&path).unwrap() == bytes, "{len} bytes, direct: {direct}");
        }
    }
}

#[test]
fn a_long_file_goes_out_behind_the_caller_whatever_length_was_expected() {
    let (_folder, path) = folder();
    let bytes = content(50_000_001);
    for (options, end_durable) in [
        (Writer::options(), true),
        (Writer::options(), false),
        (Writer::options().size_hint(90_000_000), true),
        (Writer::options().direct(false), false),
    ] {
        let mut writer = options.open(&path).unwrap();
        write_in_pieces(&mut writer, &bytes);
        let len = std::fs::metadata(&path).unwrap().len();
        assert!((1..=bytes.len() as u64).contains(&len), "{len}");
        let written = if end_durable { writer.finish() } else { writer.close() }.unwrap();
        assert_eq!((written.bytes, written.durable), (bytes.len() as u64, end_durable));
        assert!(std::fs::read(&path).unwrap() == bytes);
        let Effective { registered_buffers, fallbacks, .. } = &written.effective;
        assert!(*registered_buffers || !fallbacks.is_empty(), "W6: {:?}", written.effective);
    }
}

#[test]
fn space_that_was_expected_and_is_not_used_is_given_back() {
    on_each_file_system(|folder| {
        let path = folder.join("file");
        let mut writer = Writer::options().size_hint(60 << 20).open(&path).unwrap();
        writer.write_all(b"text").unwrap();
        let is_reserved = std::fs::metadata(&path).unwrap().blocks() * 512 >= 60 << 20;
        assert!(is_reserved, "{}", folder.display());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        writer.finish().unwrap();
        assert!(std::fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
    });
}

#[test]
fn other_programs_find_the_first_bytes_of_what_was_written_at_any_time() {
    on_each_file_system(|folder| {
        let (path, bytes) = (folder.join("file"), content(30_000_001));
        for options in [
            Writer::options(),
            small(),
            Writer::options().direct(false),
            Writer::options().append(true).bs(64 << 10),
            Writer::options().size_hint(bytes.len() as u64),
        ] {
            std::fs::write(&path, b"").unwrap();
            let mut writer = options.open(&path).unwrap();
            let ended = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let file = std::fs::File::open(&path).unwrap();
                    let (mut known, mut read) = (0, vec![0; 1 << 20]);
                    loop {
                        let has_ended = ended.load(Ordering::Acquire);
                        match file.read_at(&mut read, known as u64).unwrap() {
                            0 if has_ended => break,
                            len => {
                                let is_ours = read[..len] == bytes[known..known + len];
                                assert!(is_ours, "from {known} on, on {}", folder.display());
                                known += len;
                            }
                        }
                    }
                });
                for (number, piece) in bytes.chunks(777_777).enumerate() {
                    write_in_pieces(&mut writer, piece);
                    if number % 3 == 0 {
                        writer.flush().unwrap();
                        let len = std::fs::metadata(&path).unwrap().len();
                        assert_eq!(len, (number * 777_777 + piece.len()) as u64);
                    }
                }
                writer.close().unwrap();
                ended.store(true, Ordering::Release);
            });
            assert!(std::fs::read(&path).unwrap() == bytes);
        }
    });
}

#[test]
fn a_writer_that_is_abandoned_leaves_no_file_that_it_made_and_nothing_more_of_another() {
    let (_folder, path) = folder();
    let abandoned: [fn(Writer); 2] = [Writer::abandon, drop];
    for abandon in abandoned {
        let options = small().abandon_on_drop(true);
        let mut writer = options.open(&path).unwrap();
        writer.write_all(&content(100_000)).unwrap();
        abandon(writer);
        assert!(!path.exists());

        std::fs::write(&path, b"old").unwrap();
        let mut writer = small().abandon_on_drop(true).append(true).open(&path).unwrap();
        writer.write_all(b" and new").unwrap();
        writer.flush().unwrap();
        writer.write_all(b" and more").unwrap();
        abandon(writer);
        assert_eq!(std::fs::read(&path).unwrap(), b"old and new");
        std::fs::remove_file(&path).unwrap();

        // In this case, another file has the name in the end.
        let mut writer = small().abandon_on_drop(true).open(&path).unwrap();
        writer.write_all(b"ours").unwrap();
        std::fs::rename(&path, path.with_extension("1")).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        abandon(writer);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn each_policy_syncs_by_itself() {
    let (_folder, path) = folder();
    for sync in [SyncPolicy::Always, SyncPolicy::Interval(std::time::Duration::ZERO)] {
        let mut writer = small().sync(sync).open(&path).unwrap();
        for number in 0..20u8 {
            writer.write_all(&[number; 100]).unwrap();
            // Synced bytes are in the file; later bytes may still be in memory.
            let len = std::fs::metadata(&path).unwrap().len();
            assert_eq!(len, (u64::from(number) + 1) * 100, "{sync:?}");
        }
        writer.close().unwrap();
    }
}

#[test]
fn a_header_can_be_filled_in_at_the_end() {
    let (_folder, path) = folder();
    let mut bytes = content(100_000);
    for direct in [false, true] {
        let mut writer = small().direct(direct).open(&path).unwrap();
        writer.write_all(&bytes).unwrap();
        for place in [0, 5_000, 99_990] {
            writer.seek(SeekFrom::Start(place)).unwrap();
            writer.write_all(b"HEADER").unwrap();
            bytes[place as usize..][..6].copy_from_slice(b"HEADER");
        }
        assert_eq!(writer.seek(SeekFrom::End(0)).unwrap(), 100_000);
        assert_eq!(writer.seek(SeekFrom::Current(-10)).unwrap(), 99_990);
        assert!(writer.seek(SeekFrom::Current(-100_000)).is_err());
        writer.rewind().unwrap();
        writer.write_all(b"*").unwrap();
        bytes[0] = b'*';
        assert_eq!(writer.finish().unwrap().bytes, 100_000);
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

#[test]
fn a_writer_goes_to_another_thread_and_outlives_the_one_that_used_it() {
    // Cached writes run on workers of the calling thread, which exits before they complete.
    let (_folder, path) = folder();
    let bytes = content(3_000_000);
    for direct in [false, true] {
        let mut writer = small().direct(direct).open(&path).unwrap();
        for piece in bytes.chunks(700_000) {
            let piece = piece.to_vec();
            writer = std::thread::spawn(move || {
                writer.write_all(&piece).unwrap();
                writer
            })
            .join()
            .unwrap();
        }
        let boxed: Box<dyn Write + Send> = Box::new(writer);
        drop(boxed);
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

/// A logger that keeps messages.
struct MessageStore(std::sync::Mutex<Vec<String>>);

static KEPT: MessageStore = MessageStore(std::sync::Mutex::new(Vec::new()));

impl log::Log for MessageStore {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

#[test]
fn a_drop_logs_what_went_wrong_and_what_was_never_finished() {
    log::set_logger(&KEPT).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let sim = wrote::Sim::new(1);
    sim.set_capacity(10_000);
    let mut writer = small().on(&sim.disk()).open("/sim/dropped").unwrap();
    writer.write_all(&content(15_000)).unwrap();
    drop(writer);
    let mut writer = small().replace(true).on(&sim.disk()).open("/sim/replaced").unwrap();
    writer.write_all(b"new").unwrap();
    drop(writer);
    let kept = KEPT.0.lock().unwrap();
    let line = |path| kept.iter().find(|line| line.contains(path)).unwrap();
    let dropped = line("/sim/dropped");
    assert!(dropped.starts_with("ERROR: ") && dropped.contains("No space left"), "{dropped}");
    assert_eq!(
        line("/sim/replaced"),
        "WARN: /sim/replaced: not replaced: its Writer was dropped without finish"
    );
}

#[test]
fn an_existing_file_is_replaced_kept_or_refused_as_was_said() {
    // W7
    let (folder, path) = folder();
    let link = folder.path().join("link");
    std::fs::write(&path, b"old").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    let error = Writer::options().create_new(true).open(&path).unwrap_err();
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::AlreadyExists);
    let mut writer = Writer::options().append(true).open(&link).unwrap();
    writer.write_all(b" and new").unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old and new");
    let mut writer = Writer::create(&link).unwrap();
    writer.write_all(b"new").unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(Writer::create(folder.path()).unwrap_err().to_string().contains("Is a directory"));
    assert!(matches!(Writer::create("/dev/null"), Err(Error::Refused { .. })));
    assert!(
        Writer::create(folder.path().join("no/file")).unwrap_err().to_string().contains("No such")
    );
}

#[test]
fn a_file_that_is_appended_to_has_one_writer_at_a_time() {
    // W7
    let (_folder, path) = folder();
    std::fs::write(&path, b"old").unwrap();
    let mut first = Writer::options().append(true).open(&path).unwrap();
    first.write_all(b" and new").unwrap();
    let second = Writer::options().append(true).open(&path).unwrap_err();
    assert!(second.to_string().contains("has it locked"), "{second}");
    first.finish().unwrap();
    for _ in 0..50 {
        // A writer releases its lock when it finishes.
        let mut next = Writer::options().append(true).open(&path).unwrap();
        next.write_all(b".").unwrap();
        next.finish().unwrap();
    }
    for _ in 0..50 {
        let mut next = Writer::options().append(true).open(&path).unwrap();
        next.write_all(b"never written").unwrap();
        next.abandon();
    }
    assert_eq!(std::fs::read(&path).unwrap(), [b"old and new", &[b'.'; 50][..]].concat());
}

#[test]
fn bytes_that_another_program_appends_are_neither_cut_off_nor_written_over() {
    // W7
    let append = |path: &Path, bytes: &[u8]| {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    };
    for direct in [true, false] {
        for (before, after) in [(0, 9), (9, 0), (9, 9), (100_000, 9), (100_000, 400_000)] {
            let (_folder, path) = folder();
            std::fs::write(&path, b"old").unwrap();
            let options = small().append(true).direct(direct);
            let mut writer = options.open(&path).unwrap();
            writer.write_all(&content(before)).unwrap();
            writer.flush().unwrap();
            append(&path, b"theirs");
            let written = writer.write_all(&content(after));
            let ended = written.and_then(|()| writer.finish().map(drop).map_err(From::from));
            let bytes = std::fs::read(&path).unwrap();
            match ended {
                // Everything was written before the other program wrote.
                Ok(()) => {
                    assert_eq!(after, 0);
                    assert_eq!(bytes, [b"old", &content(before)[..], b"theirs"].concat());
                }
                Err(error) => assert_eq!(Error::errno_in(&error), Some(libc::ESTALE), "{error}"),
            }
            assert!(bytes.starts_with(b"old"));
            let theirs = bytes.windows(6).filter(|bytes| bytes == b"theirs").count();
            assert_eq!(theirs, 1, "direct {direct}, {before} and {after} bytes");
        }
    }
}

#[test]
fn a_file_that_another_program_cuts_is_not_written_on() {
    let (_folder, path) = folder();
    std::fs::write(&path, b"old").unwrap();
    let mut writer = small().append(true).open(&path).unwrap();
    writer.write_all(b"new").unwrap();
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(writer.finish(), Err(Error::Interfered { len: 0, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

fn on_each_file_system(test: impl Fn(&Path)) {
    let made = [
        ("ext4", Mounted::image("ext4", 128 << 20)),
        ("xfs", Mounted::image("xfs", 320 << 20)),
        ("btrfs", Mounted::image("btrfs", 256 << 20)),
        ("tmpfs", Mounted::tmpfs(128 << 20)),
    ];
    for (name, mounted) in made {
        match mounted {
            Ok(mounted) => test(mounted.path()),
            Err(because) => skip(&format!("a Writer on {name}"), &because),
        }
    }
}

#[test]
fn every_file_system_gets_what_was_written() {
    on_each_file_system(|folder| {
        let path = folder.join("file");
        let bytes = content(20_000_003);
        let mut writer = Writer::create(&path).unwrap();
        write_in_pieces(&mut writer, &bytes[..15_000_000]);
        writer.sync_data().unwrap();
        write_in_pieces(&mut writer, &bytes[15_000_000..]);
        writer.seek(SeekFrom::Start(1_000_001)).unwrap();
        writer.write_all(&bytes[1_000_001..1_100_000]).unwrap();
        assert_eq!(writer.finish().unwrap().bytes, bytes.len() as u64);
        assert!(std::fs::read(&path).unwrap() == bytes, "{}", folder.display());
    });
}

#[test]
fn a_disk_that_becomes_full_is_an_error_for_ever_and_what_was_written_stays() {
    // W2
    on_each_file_system(|folder| {
        let path = folder.join("file");
        let bytes = content(1_000_003);
        let mut writer = Writer::options().bs(64 << 10).iodepth(4).open(&path).unwrap();
        let first = loop {
            if let Err(error) = writer.write_all(&bytes) {
                break error;
            }
        };
        assert_eq!(first.kind(), std::io::ErrorKind::StorageFull, "{first}");
        assert_eq!(writer.write_all(b"more").unwrap_err().to_string(), first.to_string());
        assert_eq!(writer.sync_data().unwrap_err().to_string(), first.to_string());
        assert_eq!(writer.finish().unwrap_err().to_string(), first.to_string());
        let mut left = Vec::new();
        std::fs::File::open(&path).unwrap().read_to_end(&mut left).unwrap();
        assert!(left.len() > 50_000_000, "{} bytes on {}", left.len(), folder.display());
        for (number, piece) in left.chunks(bytes.len()).enumerate() {
            assert!(piece == &bytes[..piece.len()], "piece {number} on {}", folder.display());
        }
    });
}

#[test]
fn a_file_within_the_limit_on_sizes_is_not_ended_by_space_that_is_set_aside() {
    const PATH: &str = "WROTE_TEST_PATH";
    if let Some(path) = std::env::var_os(PATH) {
        // Beyond the limit, the process gets SIGXFSZ, but an io_uring worker blocks the signal.
        // Only the thread engine shows the difference.
        let limit = Rlimit { current: Some(14 << 20), maximum: Some(14 << 20) };
        setrlimit(Resource::Fsize, limit).unwrap();
        for size_hint_bytes in [0, 20 << 20] {
            let mut writer = Writer::options().size_hint(size_hint_bytes).open(&path).unwrap();
            for _ in 0..12 {
                writer.write_all(&content(1 << 20)).unwrap();
            }
            assert_eq!(writer.finish().unwrap().bytes, 12 << 20);
        }
        return;
    }
    let (_folder, path) = folder();
    let test = "a_file_within_the_limit_on_sizes_is_not_ended_by_space_that_is_set_aside";
    fixtures::again(module_path!(), test, PATH, &path);
}

#[test]
fn a_seek_to_where_no_file_reaches_is_refused_and_harms_nothing() {
    let (_folder, path) = folder();
    let mut writer = small().open(&path).unwrap();
    writer.write_all(b"text").unwrap();
    for to in [SeekFrom::Start(u64::MAX - 5), SeekFrom::Start(1 << 63), SeekFrom::End(-5)] {
        assert_eq!(writer.seek(to).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
    writer.write_all(b" and more").unwrap();
    assert_eq!(writer.finish().unwrap().bytes, 13);
    assert_eq!(std::fs::read(&path).unwrap(), b"text and more");
}

#[test]
fn the_name_is_synced_where_it_was_made_whatever_the_processs_folder_is_later() {
    const PATH: &str = "WROTE_TEST_FOLDER";
    if let Some(path) = std::env::var_os(PATH) {
        std::env::set_current_dir(path).unwrap();
        std::fs::create_dir("folder").unwrap();
        let mut writer = small().open("folder/file").unwrap();
        writer.write_all(b"text").unwrap();
        std::env::set_current_dir("/").unwrap();
        writer.finish().unwrap();
        return;
    }
    let (folder, _) = folder();
    let test = "the_name_is_synced_where_it_was_made_whatever_the_processs_folder_is_later";
    // All threads of a process share its working directory, so the test runs in another process.
    fixtures::again(module_path!(), test, PATH, folder.path());
}

#[test]
fn a_file_whose_writer_was_killed_is_appended_to_at_once() {
    const FILE: &str = "WROTE_TEST_APPENDED";
    let test = "a_file_whose_writer_was_killed_is_appended_to_at_once";
    let append = |path: &Path| Writer::options().append(true).open(path).unwrap();
    if let Some(path) = std::env::var_os(FILE) {
        let mut writer = append(Path::new(&path));
        loop {
            writer.write_all(&[b'x'; 64 << 10]).unwrap();
        }
    }
    let (_folder, path) = folder();
    std::fs::write(&path, b"").unwrap();
    for _ in 0..5 {
        let before = path.metadata().unwrap().len();
        let mut writing = std::process::Command::new(std::env::current_exe().unwrap())
            .args(fixtures::alone(module_path!(), test))
            .env(FILE, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The test is better the more often the process is killed with writes in flight.
        while path.metadata().unwrap().len() < before + (1 << 20) {
            thread::yield_now();
        }
        writing.kill().unwrap();
        writing.wait().unwrap();
        append(&path).finish().unwrap();
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == b'x'), "no zeros are between");
}
