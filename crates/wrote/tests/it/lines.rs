//! Tests of `Lines`: complete lines from many producers, torn ends after crashes, and other
//! programs that rename, remove, shorten and append to the file.

use crate::{folder, path};
use fixtures::{Mounted, leave_room_for, or_skip};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::Future;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use wrote::engine::Fault;
use wrote::{Error, Lines, Sim, SyncPolicy};

/// The maximum wait for an event in the background.
const PATIENCE: Duration = Duration::from_secs(120);

fn append(lines: &Lines, text: &str) {
    lines.append(text.as_bytes()).unwrap().wait().unwrap();
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Returns the path of the file in which opening a line file has kept a torn end.
fn torn(path: &Path, number: u32) -> PathBuf {
    PathBuf::from(format!("{}.torn-{number}", path.display()))
}

#[test]
fn lines_of_many_producers_are_there_once_and_in_each_producers_order() {
    // W9
    const PRODUCERS: usize = 8;
    const LINES: usize = 500;
    for sync in [
        SyncPolicy::Always,
        SyncPolicy::EverySec,
        SyncPolicy::Interval(Duration::from_millis(1)),
        SyncPolicy::No,
    ] {
        let (_folder, path) = folder();
        let lines = Lines::options().sync(sync).buffer_bytes(4096).open(&path).unwrap();
        thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let lines = &lines;
                scope.spawn(move || {
                    for number in 0..LINES {
                        let ticket = lines.append(format!("{producer} {number}").as_bytes());
                        if number % 50 == producer {
                            ticket.unwrap().wait().unwrap();
                        }
                    }
                });
            }
        });
        lines.close().unwrap();
        let mut next = [0; PRODUCERS];
        for line in text(&path).lines() {
            let (producer, number) = line.split_once(' ').unwrap();
            let next = &mut next[producer.parse::<usize>().unwrap()];
            assert_eq!(number.parse(), Ok(*next), "{sync:?}");
            *next += 1;
        }
        assert_eq!(next, [LINES; PRODUCERS], "{sync:?}");
        let error = lines.append(b"more").unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
    }
}

#[test]
fn bytes_that_are_no_line_are_refused_and_harm_nothing() {
    let (_folder, path) = folder();
    let lines = Lines::options().buffer_bytes(4096).open(&path).unwrap();
    append(&lines, "before");
    for bytes in [&b"two\nlines"[..], b"\n", b"a\0b", &[b'x'; 4096]] {
        let error = lines.append(bytes).unwrap_err();
        let errno = if bytes.len() == 4096 { libc::EMSGSIZE } else { libc::EINVAL };
        assert_eq!(error.errno(), errno, "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    lines.append_all(&["", "after"]).unwrap().wait().unwrap();
    append(&lines, &"y".repeat(4095));
    lines.close().unwrap();
    assert_eq!(text(&path), format!("before\n\nafter\n{}\n", "y".repeat(4095)));
}

#[test]
fn an_opening_moves_a_torn_end_aside_and_never_over_another() {
    let zeros = |count: usize| "\0".repeat(count);
    for (left, whole, moved) in [
        ("one\ntwo\n".to_owned(), "one\ntwo\n", None),
        (String::new(), "", None),
        ("one\ntw".to_owned(), "one\n", Some("tw".to_owned())),
        ("one".to_owned(), "", Some("one".to_owned())),
        (format!("one\n{}", zeros(5)), "one\n", Some(zeros(5))),
        (format!("one\n{}", zeros(3 << 20)), "one\n", Some(zeros(3 << 20))),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &left).unwrap();
        fs::write(torn(&path, 0), "earlier").unwrap();
        let lines = Lines::open(&path).unwrap();
        assert_eq!(lines.torn(), moved.as_ref().map(|_| torn(&path, 1)));
        assert_eq!(text(&path), whole);
        append(&lines, "more");
        lines.close().unwrap();
        assert_eq!(text(&path), format!("{whole}more\n"));
        assert_eq!(text(&torn(&path, 0)), "earlier");
        assert!(moved.is_none_or(|moved| text(&torn(&path, 1)) == moved));
    }
}

#[test]
fn nuls_of_other_programs_stay_with_the_lines_behind_them() {
    let (_folder, path) = folder();
    let file = File::create(&path).unwrap();
    file.write_all_at(b"one\nt\0o\nthree\n", 0).unwrap();
    // There is a hole before this line.
    file.write_all_at(b"after\ntorn", 1 << 20).unwrap();
    let before = fs::read(&path).unwrap();
    let lines = Lines::open(&path).unwrap();
    assert_eq!(lines.torn(), Some(torn(&path, 0)));
    assert_eq!(fs::read(&path).unwrap(), before[..before.len() - 4]);
    assert_eq!(text(&torn(&path, 0)), "torn");
}

#[test]
fn a_file_that_holds_no_lines_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    let database = b"Database 3\0\x10\n\x01more";
    fs::write(&path, database).unwrap();
    let error = Lines::open(&path).unwrap_err();
    assert!(error.to_string().contains("does not hold lines"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), database);
    File::create(&path).unwrap().set_len(300 << 20).unwrap();
    let error = Lines::open(&path).unwrap_err();
    assert!(error.to_string().contains("does not hold lines"), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 300 << 20);
    assert!(!torn(&path, 0).exists());
}

#[test]
fn a_second_writer_is_refused_or_waits() {
    let (_folder, path) = folder();
    let first = Lines::open(&path).unwrap();
    let error = Lines::open(&path).unwrap_err();
    assert!(error.to_string().contains("another writer has it open"), "{error}");
    thread::scope(|scope| {
        let second = scope.spawn(|| Lines::options().waits(true).open(&path).unwrap());
        append(&first, "first");
        first.close().unwrap();
        append(&second.join().unwrap(), "second");
    });
    assert_eq!(text(&path), "first\nsecond\n");
}

#[test]
fn what_is_no_file_is_refused() {
    let (_folder, path) = folder();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    assert!(Lines::open(&path).unwrap_err().to_string().contains("ordinary file"));
    let folder = Lines::open(path.parent().unwrap()).unwrap_err();
    assert!(matches!(folder, Error::Refused { errno: libc::EISDIR, .. }), "{folder}");
}

#[test]
fn a_renamed_or_removed_file_gets_no_acknowledged_line_and_its_path_is_opened_anew() {
    // W1
    for (sync, is_removed) in [
        (SyncPolicy::Always, false),
        (SyncPolicy::Always, true),
        (SyncPolicy::No, false),
        (SyncPolicy::No, true),
    ] {
        let (_folder, path) = folder();
        let rotated = path.with_extension("1");
        let lines = Lines::options().sync(sync).open(&path).unwrap();
        append(&lines, "before");
        lines.flush().unwrap();
        match is_removed {
            true => fs::remove_file(&path).unwrap(),
            false => fs::rename(&path, &rotated).unwrap(),
        }
        append(&lines, "after");
        assert_eq!(text(&path), "after\n");
        if !is_removed {
            assert_eq!(text(&rotated), "before\n");
        }
        lines.flush().unwrap();
    }
}

#[test]
fn logrotate_with_create_loses_no_line_of_producers_that_go_on() {
    // W1
    for reopens in [false, true] {
        let (folder, path) = folder();
        let lines = Lines::open(&path).unwrap();
        let acknowledged = AtomicU32::new(0);
        thread::scope(|scope| {
            for producer in 0..2 {
                let (lines, acknowledged) = (&lines, &acknowledged);
                scope.spawn(move || {
                    for number in 0..1000 {
                        append(lines, &format!("{producer} {number}"));
                        acknowledged.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            for rotated in 0..20 {
                while acknowledged.load(Ordering::SeqCst) < rotated * 80 + 80 {
                    thread::sleep(Duration::from_millis(1));
                }
                fs::rename(&path, folder.path().join(format!("rotated-{rotated}"))).unwrap();
                // This is what logrotate does. A reopening may create the file at the same time.
                let _ = File::options().write(true).create_new(true).open(&path);
                if reopens {
                    lines.reopen().unwrap();
                }
            }
        });
        lines.close().unwrap();
        let mut times = BTreeMap::<String, u32>::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            for line in text(&entry.unwrap().path()).lines() {
                *times.entry(line.to_owned()).or_default() += 1;
            }
        }
        // A line in flight during a rotation may be in both files.
        assert_eq!(times.len(), 2000);
    }
}

#[test]
fn a_shortened_file_goes_on_at_its_new_end() {
    // W1
    for sync in [SyncPolicy::Always, SyncPolicy::No] {
        for len in [0, 4] {
            let (_folder, path) = folder();
            let lines = Lines::options().sync(sync).open(&path).unwrap();
            append(&lines, "one");
            append(&lines, "two");
            lines.flush().unwrap();
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            append(&lines, "three");
            assert_eq!(text(&path), format!("{}three\n", &"one\n"[..len as usize]));
        }
    }
}

#[test]
fn lines_that_were_cut_off_before_their_flush_are_told_to_those_who_wait_for_it() {
    // W1
    let (_folder, path) = folder();
    let lines = Lines::options().sync(SyncPolicy::No).open(&path).unwrap();
    append(&lines, "flushed");
    lines.flush().unwrap();
    let ticket = lines.append(b"cut off").unwrap();
    lines.append(b"cut off, too").unwrap().wait().unwrap();
    File::options().write(true).open(&path).unwrap().set_len(8).unwrap();
    let error = ticket.until_durable().wait().unwrap_err();
    assert!(error.to_string().contains("these lines are lost"), "{error}");
    lines.append(b"more").unwrap().until_durable().wait().unwrap();
    lines.close().unwrap();
    assert_eq!(text(&path), "flushed\nmore\n");
}

#[test]
fn a_reopening_after_the_closing_is_refused() {
    let (_folder, path) = folder();
    let lines = Lines::open(&path).unwrap();
    lines.close().unwrap();
    let error = lines.reopen().unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}

#[test]
fn a_torn_end_at_the_next_file_of_the_path_is_told() {
    let (_folder, path) = folder();
    let lines = Lines::open(&path).unwrap();
    fs::rename(&path, path.with_extension("1")).unwrap();
    fs::write(&path, "half a line").unwrap();
    append(&lines, "whole");
    assert_eq!(lines.torn(), Some(torn(&path, 0)));
    assert_eq!((text(&path), text(&torn(&path, 0))), ("whole\n".into(), "half a line".into()));
}

#[test]
fn lines_behind_a_symbolic_link_are_repaired_and_appended() {
    let (folder, path) = folder();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "one\ntw").unwrap();
    std::os::unix::fs::symlink(real.join("file"), &path).unwrap();
    let lines = Lines::open(&path).unwrap();
    append(&lines, "three");
    assert_eq!(text(&real.join("file")), "one\nthree\n");
    assert_eq!(text(&torn(&path, 0)), "tw");
}

#[test]
fn lost_lines_that_no_ticket_told_of_fail_one_flush_or_the_closing() {
    for closes in [false, true] {
        let (_folder, path) = folder();
        let lines = Lines::options().sync(SyncPolicy::No).open(&path).unwrap();
        append(&lines, "cut off");
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        append(&lines, "after");
        let outcome = if closes { lines.close() } else { lines.flush() };
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("these lines are lost"), "{error}");
        assert_eq!(text(&path), "after\n");
        lines.close().unwrap();
    }
}

#[test]
fn a_line_is_not_joined_to_the_half_of_another_program() {
    // This holds even if the end of the file was cut off within a line.
    let (_folder, path) = folder();
    let lines = Lines::open(&path).unwrap();
    append(&lines, "one");
    append(&lines, "two");
    File::options().write(true).open(&path).unwrap().set_len(6).unwrap();
    append(&lines, "three");
    assert_eq!(text(&path), "one\ntw\nthree\n");
}

#[test]
fn lines_of_two_programs_are_each_whole() {
    let (_folder, path) = folder();
    let lines = Lines::options().sync(SyncPolicy::No).open(&path).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = File::options().append(true).open(&path).unwrap();
            for number in 0..500 {
                other.write_all(format!("other {number:050}\n").as_bytes()).unwrap();
            }
        });
        (0..500).for_each(|number| append(&lines, &format!("own {number:050}")));
    });
    // An incomplete line of the other program does not absorb one of ours.
    File::options().append(true).open(&path).unwrap().write_all(b"half a line").unwrap();
    append(&lines, "whole");
    lines.close().unwrap();
    let text = text(&path);
    let own = text.lines().filter(|line| line.starts_with("own ") && line.len() == 54);
    let other = text.lines().filter(|line| line.starts_with("other ") && line.len() == 56);
    assert_eq!((own.count(), other.count()), (500, 500));
    assert!(text.ends_with("half a line\nwhole\n"));
}

#[test]
fn a_full_disk_is_told_and_with_room_each_line_is_there_once() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("lines");
    let ballast = leave_room_for(mounted.path(), 1 << 20);
    let lines = Lines::options().buffer_bytes(64 << 10).open(&path).unwrap();
    let line = |number: u64| format!("{number} {}", "x".repeat(997));
    let mut number = 0;
    let error = loop {
        match lines.append(line(number).as_bytes()).and_then(|ticket| ticket.wait()) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::NotYet { .. }) && error.errno() == libc::ENOSPC, "{error}");
    assert_eq!(text(&path).lines().count() as u64, number);
    assert!(matches!(lines.close(), Err(Error::NotYet { .. })));
    fs::remove_file(ballast).unwrap();
    let patience = Instant::now() + PATIENCE;
    while let Err(error) = lines.flush() {
        assert!(error.errno() == libc::ENOSPC && Instant::now() < patience, "{error}");
    }
    append(&lines, &line(number + 1));
    lines.close().unwrap();
    let expected: String = (0..number + 2).map(|number| line(number) + "\n").collect();
    assert!(text(&path) == expected);
}

#[test]
fn lines_in_memory_are_bounded_however_often_a_full_disk_is_tried_again() {
    let sim = Sim::new(1);
    sim.set_capacity(4096);
    let lines = Lines::options().buffer_bytes(4096).on(&sim.disk()).open(path()).unwrap();
    // One batch of four lines fits on the disk. Another batch waits for room, and a third one is
    // being collected.
    let appended = (0..40).filter(|_| lines.append(&[b'x'; 999]).is_ok()).count();
    assert_eq!((appended, lines.written()), (12, 4));
    sim.set_capacity(1 << 20);
    lines.close().unwrap();
    assert_eq!(sim.contents(path()).unwrap().len(), 12_000);
}

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn tickets_are_awaited_without_a_thread_and_lines_that_nobody_waits_for_are_written() {
    let (_folder, path) = folder();
    let lines = Lines::open(&path).unwrap();
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    for number in 0..100 {
        let mut ticket = pin!(lines.append(format!("{number}").as_bytes()).unwrap());
        while ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }
    drop(lines.append(b"alone").unwrap());
    let patience = Instant::now() + PATIENCE;
    while !text(&path).ends_with("alone\n") {
        assert!(Instant::now() < patience);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Appends on a simulated disk until an error. Returns all lines, and the total length of the
/// durable lines in bytes.
fn append_on(sim: &Sim, first: u64) -> (Vec<u8>, usize) {
    let (mut all, mut durable) = (Vec::new(), 0);
    let options = Lines::options().buffer_bytes(4096);
    let Ok(lines) = options.on(&sim.disk()).open(path()) else { return (all, durable) };
    for number in first..first + 8 {
        let line = format!("{number} {}", "x".repeat((number * 1009 % 3000) as usize));
        all.extend(line.bytes().chain(*b"\n"));
        let Ok(ticket) = lines.append(line.as_bytes()) else { break };
        // Some lines share a flush.
        if number % 3 > 0 {
            if ticket.wait().is_err() {
                break;
            }
            durable = all.len();
        }
    }
    (all, durable)
}

#[test]
fn after_a_power_loss_at_any_operation_every_acknowledged_line_is_there_once() {
    // W1, W9
    let mut torn = 0;
    for seed in 0..20 {
        let undisturbed = Sim::new(seed);
        append_on(&undisturbed, 0);
        for operation in 0..undisturbed.operations() {
            let sim = Sim::new(seed * 1000 + operation);
            sim.fault(operation, Fault::PowerLoss);
            let (all, durable) = append_on(&sim, 0);
            sim.restart();
            let lines = Lines::options().on(&sim.disk()).open(path()).unwrap();
            torn += u32::from(lines.torn().is_some());
            drop(lines);
            let found = sim.contents(path()).unwrap();
            let case = format!("seed {seed}, operation {operation}");
            assert!(found.starts_with(&all[..durable]), "{case}");
            // A line that was not acknowledged is complete, or contains a NUL.
            let whole: Vec<_> = all.split_inclusive(|&byte| byte == b'\n').collect();
            let mut lines = found.split_inclusive(|&byte| byte == b'\n');
            assert!(lines.all(|line| line.contains(&0) || whole.contains(&line)), "{case}");
            assert!(found.is_empty() || found.ends_with(b"\n"), "{case}");
            // The file continues after the last line.
            let (more, durable) = append_on(&sim, 100);
            assert!(durable > 0 && sim.contents(path()).unwrap() == [found, more].concat());
        }
    }
    assert!(torn > 0, "no end was torn");
}
