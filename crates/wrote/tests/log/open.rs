//! Tests of `Log` on the real kernel: opening, closing, retention, and each file system.

use crate::small_log::{FOLDER, PATIENCE, SEGMENT_BYTES, folder, read, record, segments, small};
use fixtures::{Mounted, or_skip};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};
use wrote::engine::Options;
use wrote::{Disk, Error, Ioengine, Log, LogReader, Survives, SyncPolicy};

#[test]
fn a_second_opener_is_refused_in_one_line_and_readers_are_not() {
    let test = "a_second_opener_is_refused_in_one_line_and_readers_are_not";
    let refused = |folder: &Path| {
        let error = small().open(folder).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(error.errno(), libc::EBUSY, "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    };
    if let Some(folder) = std::env::var_os(FOLDER) {
        refused(Path::new(&folder));
        assert_eq!(read(Path::new(&folder)), [(0, b"first".to_vec())]);
        return;
    }
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    log.append(b"first").unwrap().wait().unwrap();
    refused(&folder);
    fixtures::again(module_path!(), test, FOLDER, &folder);
    assert_eq!(read(&folder), [(0, b"first".to_vec())]);
    let clone = log.clone();
    drop(log);
    // The clone keeps the log open.
    refused(&folder);
    clone.append(b"second").unwrap().wait().unwrap();
    clone.close().unwrap();
    drop(clone);
    let log = small().open(&folder).unwrap();
    assert_eq!(log.stats().next_sequence, 2);
}

#[test]
fn what_is_no_folder_and_a_folder_of_other_files_do_not_become_a_log() {
    let (_folder, folder) = folder();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("cat.jpeg"), "precious").unwrap();
    for (path, because) in [
        (folder.clone(), "has other files (such as \"cat.jpeg\") and no log: name a new folder"),
        (folder.join("cat.jpeg"), "is not a folder, so it can't be a log"),
        (PathBuf::from("/dev/null"), "is not a folder, so it can't be a log"),
    ] {
        let error = small().open(&path).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains(because), "{error}");
    }
    assert_eq!(fixtures::names(&folder), ["cat.jpeg"]);
    // A copy of a log may lack the lock file.
    let log = folder.join("log");
    small().open(&log).unwrap().append(b"first").unwrap().wait().unwrap();
    fs::remove_file(log.join("lock")).unwrap();
    fs::write(log.join("notes"), "theirs").unwrap();
    drop(small().open(&log).unwrap());
}

#[test]
fn an_opening_of_a_log_that_exists_writes_into_none_of_its_segments_and_adds_no_file() {
    let (_folder, folder) = folder();
    let options = Log::options();
    let log = options.open(&folder).unwrap();
    log.append(b"an event").unwrap().wait().unwrap();
    log.close().unwrap();
    drop(log);
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for path in segments(&folder) {
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    // The number of bytes that the process has written is not suitable for this comparison, because
    // it counts a block of the file system again whenever another process flushes it.
    let state = || -> Vec<_> {
        let names = fixtures::names(&folder).into_iter().filter(|name| name != "lock");
        let found = names.map(|name| (fs::metadata(folder.join(&name)).unwrap(), name));
        found.map(|(found, name)| (name, found.modified().unwrap(), found.blocks())).collect()
    };
    let before = state();
    let log = options.open(&folder).unwrap();
    log.sync().unwrap();
    // This gives the log's own thread time to write. If the thread is late, the test passes anyway.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(state(), before);
    log.close().unwrap();
}

/// Returns the permissions of each file of a log, and of its folder.
fn modes(folder: &Path) -> Vec<u32> {
    let names = fixtures::names(folder).into_iter().map(|name| folder.join(name));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    names.chain([folder.to_owned()]).map(mode).collect()
}

#[test]
fn every_file_of_a_log_gets_the_permissions_that_it_began_with() {
    let (_folder, folder) = folder();
    for mode in [Some(0o600), None, Some(0o666)] {
        let options = small().retain_bytes(SEGMENT_BYTES);
        let options = mode.map_or(options.clone(), |mode| options.mode(mode));
        let log = options.open(&folder).unwrap();
        (0..500).for_each(|number| drop(log.append(&record(number)).unwrap()));
        log.close().unwrap();
        assert!(log.stats().removed > 0);
        let modes = modes(&folder);
        let (last, files) = modes.split_last().unwrap();
        assert_eq!(*last, 0o700);
        assert!(files.len() > 1 && files.iter().all(|mode| *mode == 0o600), "{modes:?}");
    }
}

#[test]
fn a_repair_makes_nothing_of_a_log_more_readable() {
    let (_folder, folder) = folder();
    let log = small().sync(SyncPolicy::Always).open(&folder).unwrap();
    (0..400).for_each(|number| drop(log.append(&record(number)).unwrap()));
    log.close().unwrap();
    let files = segments(&folder);
    // The permissions of the lock file do not matter: an owner may lock other users out by the
    // segments' permissions alone.
    files.iter().for_each(|path| fs::set_permissions(path, private()).unwrap());
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[8192..16384].fill(0);
    fs::write(&files[0], bytes).unwrap();
    let repaired = wrote::log::repair(&folder).unwrap();
    assert_eq!((repaired.damage.len(), repaired.kept_aside.len()), (1, 1), "{repaired:?}");
    for path in segments(&folder).iter().chain(&repaired.kept_aside) {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
    }
}

fn private() -> fs::Permissions {
    fs::Permissions::from_mode(0o600)
}

#[test]
fn a_folder_of_lines_is_refused_to_writers_and_readers_and_untouched() {
    let (_folder, folder) = folder();
    fs::create_dir(&folder).unwrap();
    let path = folder.join("00000000000000000000.log");
    fs::write(&path, b"first\n").unwrap();
    let errors = [
        small().open(&folder).map(drop),
        LogReader::open(&folder, 0).map(drop),
        wrote::log::verify(&folder, None).map(drop),
        wrote::log::repair(&folder).map(drop),
        wrote::log::summary(&folder).map(drop),
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains("a log of lines"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    assert_eq!(fs::read(&path).unwrap(), b"first\n");
}

#[test]
fn after_it_was_closed_a_log_takes_nothing_and_opened_again_it_goes_on() {
    let (_folder, folder) = folder();
    for opening in 0..4 {
        let log = small().open(&folder).unwrap();
        assert_eq!(log.stats().next_sequence, opening * 50);
        assert_eq!(log.stats().found_records, opening * 50);
        assert_eq!(log.stats().torn_bytes, 0);
        for number in opening * 50..(opening + 1) * 50 {
            assert_eq!(log.append(&record(number)).unwrap().sequence(), number);
        }
        let clone = log.clone();
        log.close().unwrap();
        for log in [&log, &clone] {
            let error = log.append(b"too late").unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{error}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
        assert!(read(&folder).len() as u64 == (opening + 1) * 50);
    }
}

#[test]
fn retention_removes_the_oldest_segments_and_never_the_one_that_is_written() {
    const RETAIN_BYTES: u64 = 1 << 20;
    let (_folder, folder) = folder();
    let log = small().retain_bytes(RETAIN_BYTES).open(&folder).unwrap();
    for number in 0..4000 {
        let ticket = log.append(&record(number)).unwrap();
        if number % 200 == 199 {
            ticket.wait().unwrap();
            let last = log.reader(number).unwrap().next().unwrap().unwrap();
            assert_eq!((last.sequence, last.bytes), (number, record(number)));
        }
    }
    log.close().unwrap();
    let stats = log.stats();
    assert!(stats.removed > 0 && stats.first_sequence > 0, "{stats:?}");
    let paths = segments(&folder);
    let bytes: u64 = paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    // The limit may be exceeded by the current segment and a prepared one.
    assert!(bytes <= RETAIN_BYTES + 2 * SEGMENT_BYTES, "{bytes} bytes");
    let expected: Vec<_> =
        (stats.first_sequence..4000).map(|number| (number, record(number))).collect();
    assert!(read(&folder) == expected);
    // This holds even if retention keeps nothing.
    drop(log);
    let log = small().retain_bytes(0).open(&folder).unwrap();
    for number in 4000..5000 {
        log.append(&record(number)).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    assert_eq!(read(&folder).last(), Some(&(4999, record(4999))));
}

#[test]
fn a_segment_that_is_old_enough_is_followed_by_the_next() {
    let (_folder, folder) = folder();
    let log = small().segment_age(Duration::from_millis(1)).open(&folder).unwrap();
    let patience = Instant::now() + PATIENCE;
    let mut number = 0;
    while log.stats().segments < 3 {
        log.append(b"a line").unwrap().wait().unwrap();
        number += 1;
        assert!(Instant::now() < patience, "{:?}", log.stats());
        thread::sleep(Duration::from_millis(1));
    }
    log.close().unwrap();
    assert_eq!(read(&folder).len(), number);
}

#[test]
fn a_log_is_whole_on_every_file_system_and_says_what_its_records_survive_there() {
    // A flush does not make memory durable, but a loop device flushes its cache.
    for (fs, synced) in [
        ("ext4", Survives::PowerLoss),
        ("xfs", Survives::PowerLoss),
        ("btrfs", Survives::PowerLoss),
        ("tmpfs", Survives::ProcessCrash),
    ] {
        let mounted = match fs {
            "tmpfs" => Mounted::tmpfs(64 << 20),
            _ => Mounted::image(fs, 320 << 20),
        };
        let mounted = or_skip!(mounted.map_err(|reason| format!("{fs}: {reason}")));
        let folder = mounted.path().join("log");
        let log = small().sync(SyncPolicy::Always).open(&folder).unwrap();
        for number in 0..300 {
            let ticket = log.append(&record(number)).unwrap();
            if number % 3 == 2 {
                ticket.wait().unwrap();
                assert_eq!(log.survives(number), synced, "{fs}");
            }
        }
        log.close().unwrap();
        let expected: Vec<_> = (0..300).map(|number| (number, record(number))).collect();
        assert!(read(&folder) == expected, "{fs}");
    }
}

#[test]
fn a_pipe_with_a_segments_name_is_refused_and_not_waited_for() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    log.append(b"first").unwrap().wait().unwrap();
    log.close().unwrap();
    let pipe = "00000000000000000002.segment";
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join(pipe), rustix::fs::Mode::RWXU).unwrap();
    let error = LogReader::open(&folder, 0)
        .and_then(|mut reader| reader.try_for_each(|record| record.map(drop)));
    assert!(error.unwrap_err().to_string().contains("ordinary file"));
    assert!(small().open(&folder).is_err());
}

#[test]
fn a_segment_of_another_log_or_place_is_named_and_nothing_is_changed() {
    // W7
    let (folder, path) = folder();
    let other = folder.path().join("other");
    for folder in [&path, &other] {
        let log = small().open(folder).unwrap();
        (0..600).for_each(|number| drop(log.append(&record(number)).unwrap()));
        log.close().unwrap();
    }
    let (own, others) = (segments(&path), segments(&other));
    assert!(own.len() >= 3 && own.len() == others.len());
    let everything = || -> Vec<_> {
        let mut paths: Vec<_> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect()
    };
    let last = own.len() - 1;
    for (place, from) in [(0, &others[0]), (1, &others[1]), (last, &others[last]), (1, &own[0])] {
        let saved = fs::read(&own[place]).unwrap();
        fs::write(&own[place], fs::read(from).unwrap()).unwrap();
        let before = everything();
        let named = |error: Error, by: &str| {
            assert!(matches!(error, Error::Foreign { .. }), "{by}: {error}");
            assert_eq!(error.to_string().lines().count(), 1);
            // The message names both logs, or both segment numbers.
            let names = if from == &own[0] { "name of segment" } else { ", but " };
            assert!(error.to_string().contains(names), "{by}: {error}");
        };
        named(small().open(&path).unwrap_err(), "open");
        named(wrote::log::verify(&path, None).unwrap_err(), "verify");
        named(wrote::log::repair(&path).unwrap_err(), "repair");
        named(wrote::log::summary(&path).unwrap_err(), "summary");
        let read = LogReader::open(&path, 0);
        let read = read.and_then(|mut reader| reader.try_for_each(|record| record.map(drop)));
        named(read.unwrap_err(), "read");
        assert!(everything() == before, "place {place}");
        fs::write(&own[place], saved).unwrap();
    }
    assert_eq!(read(&path).len(), 600);
}

/// Appends records with these numbers, waits for each of them, and returns the first error.
fn append_durably(log: &Log, numbers: std::ops::Range<u64>) -> Result<(), Error> {
    numbers.into_iter().try_for_each(|number| log.append(&record(number))?.wait())
}

fn expected(records: u64) -> Vec<(u64, Vec<u8>)> {
    (0..records).map(|number| (number, record(number))).collect()
}

#[test]
fn two_logs_whose_folders_swap_names_each_go_on_in_their_own() {
    // W1
    let folder = fixtures::folder();
    let [one, other, between] = ["one", "other", "between"].map(|it| folder.path().join(it));
    let options = small().sync(SyncPolicy::Always).retain_bytes(8 << 20);
    let logs = [&one, &other].map(|path| options.open(path).unwrap());
    append_durably(&logs[0], 0..10).unwrap();
    append_durably(&logs[1], 0..20).unwrap();
    let mut follower = LogReader::open(&one, 0).unwrap().following().unwrap();
    fs::rename(&one, &between).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&between, &other).unwrap();
    append_durably(&logs[0], 10..500).unwrap();
    append_durably(&logs[1], 20..400).unwrap();
    for (number, bytes) in expected(500) {
        let read = follower.next_within(PATIENCE).unwrap().unwrap();
        assert_eq!((read.sequence, read.bytes), (number, bytes));
    }
    assert_eq!(logs[0].reader(0).unwrap().count(), 500);
    assert_eq!(logs[1].reader(0).unwrap().count(), 400);
    logs[0].trim_before(300).unwrap();
    logs[0].truncate_from(450).unwrap();
    let kept = logs[0].stats().next_sequence;
    logs.into_iter().for_each(|log| log.close().unwrap());
    assert_eq!(read(&one), expected(400));
    assert_eq!(read(&other).last().unwrap(), &(kept - 1, record(kept - 1)));
    assert!(read(&other)[0].0 > 0);
    for path in [&one, &other] {
        assert_eq!(options.open(path).unwrap().stats().torn_bytes, 0);
    }
}

#[test]
fn a_log_whose_folder_or_segment_was_removed_acknowledges_nothing_more() {
    // W1
    for whole in [true, false] {
        let (_folder, path) = folder();
        let log = small().sync(SyncPolicy::Always).open(&path).unwrap();
        append_durably(&log, 0..10).unwrap();
        if whole {
            fs::remove_dir_all(&path).unwrap();
        } else {
            segments(&path).iter().for_each(|path| fs::remove_file(path).unwrap());
        }
        let error = append_durably(&log, 10..11).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        // W2
        assert_eq!(log.append(b"more").unwrap_err().to_string(), error.to_string());
        assert!(log.close().is_err());
    }
}

#[test]
fn a_reader_reads_its_folder_to_the_end_after_the_working_directory_was_changed() {
    let test = "a_reader_reads_its_folder_to_the_end_after_the_working_directory_was_changed";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        std::env::set_current_dir(folder).unwrap();
        let mut readers = [
            LogReader::open("log", 0),
            LogReader::open("log", 0).and_then(LogReader::following),
            LogReader::expect("log", 0).and_then(LogReader::following),
        ]
        .map(Result::unwrap);
        let mut later = LogReader::expect("later", 0).unwrap().following().unwrap();
        std::env::set_current_dir(folder.join("elsewhere")).unwrap();
        for reader in &mut readers {
            for number in 0..500 {
                let read = reader.next_within(PATIENCE).unwrap().unwrap();
                assert_eq!((read.sequence, read.bytes), (number, record(number)));
            }
        }
        let log = small().open(folder.join("later")).unwrap();
        append_durably(&log, 0..1).unwrap();
        assert!(later.next_within(PATIENCE).unwrap().is_some());
        return;
    }
    let (outer, path) = folder();
    let log = small().open(&path).unwrap();
    append_durably(&log, 0..500).unwrap();
    log.close().unwrap();
    fs::create_dir(outer.path().join("elsewhere")).unwrap();
    fixtures::again(module_path!(), test, FOLDER, outer.path());
}

#[test]
fn logs_on_one_disk_are_found_again() {
    // W1
    let folder = fixtures::folder();
    let disk = Disk::open(&Options::new(Ioengine::IoUring, 4, 4096)).unwrap();
    let place = |number: u64| folder.path().join(format!("{number}"));
    for round in 0..2 {
        let open = |number| small().sync(SyncPolicy::Always).on(&disk).open(place(number)).unwrap();
        let logs: Vec<Log> = (0..4).map(open).collect();
        thread::scope(|scope| {
            for log in &logs {
                scope.spawn(move || {
                    for number in 100 * round..100 * (round + 1) {
                        let ticket = log.append(&record(number)).unwrap();
                        assert_eq!(ticket.sequence(), number);
                        ticket.wait().unwrap();
                    }
                });
            }
        });
        logs.into_iter().for_each(|log| log.close().unwrap());
    }
    for number in 0..4 {
        let reader = LogReader::open_on(&disk, place(number), 0).unwrap();
        let found: Vec<Vec<u8>> = reader.map(|record| record.unwrap().bytes).collect();
        assert_eq!(found, (0..200).map(record).collect::<Vec<_>>());
    }
}
