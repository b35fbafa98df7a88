//! The names, threads, answers and signals of a traced program.

use super::{file, ids, traced};
use fixtures::{finish, folder, or_skip};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn a_file_that_is_opened_by_its_descriptor_or_a_link_has_its_own_name() {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    for open in ["exec 3>>a; echo x > /proc/self/fd/3", "ln -sf a l; echo x >> l"] {
        let (trace, _) = traced(place.path(), open, &[]);
        assert_eq!(file(&trace, "a").writes, 1, "{trace:?}");
        assert_eq!(trace.files.iter().filter(|file| file.writes > 0).count(), 1, "{trace:?}");
    }
}

#[test]
fn a_child_that_executes_programs_is_counted_once() {
    let place = folder();
    let (trace, _) = traced(place.path(), "exec sh -c 'exec true'", &[]);
    assert_eq!(trace.watching.tasks, 1, "{trace:?}");
    let (trace, _) = traced(place.path(), "sh -c 'exec true'; true", &[]);
    assert_eq!(trace.watching.tasks, 2, "{trace:?}");
}

#[test]
fn a_sign_that_never_came_is_told() {
    let place = folder();
    let is_told = |sign: &str| {
        let (trace, _) = traced(place.path(), "echo saved; printf x > b; sync b", &["--ack", sign]);
        trace.unseen.iter().any(|note| note.starts_with("no answer was seen (--ack)"))
    };
    assert!(is_told("/svaed/") && is_told("socket"));
    assert!(!is_told("/saved/") && !is_told("stdout") && !is_told("exit"));
}

#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let place = folder();
    let own = super::own();
    let script = format!("trap '' QUIT; {own} trace -o report grep SigIgn /proc/self/status");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(&place).stdout(Stdio::piped());
    let finished = finish(&mut command);
    let mask = finished.stdout.split_whitespace().last().unwrap_or_default();
    let mask = u64::from_str_radix(mask, 16).unwrap_or_else(|_| panic!("{finished:?}"));
    assert_eq!(mask >> (signal_hook::consts::SIGQUIT - 1) & 1, 1, "{finished:?}");
}

/// Zeros behind a durable record, which the next record is written over.
const PREPARED: &str = "\
import os
head = os.open('.', os.O_RDONLY)
file = os.open('wal', os.O_RDWR | os.O_CREAT)
log = os.open('wal', os.O_RDWR | os.O_DSYNC)
os.fsync(head)
os.pwrite(log, b'a' * 512, 0)
for at in range(512, 4096, 512):
    os.pwrite(file, bytes(1024), at)
    os.pwrite(log, b'a' * 512, at)
    os.write(1, b'saved')
";

#[test]
fn a_log_that_prepares_its_space_by_zeros_has_no_warning() {
    or_skip!(super::installed("python3"));
    let place = folder();
    fs::write(place.path().join("log.py"), PREPARED).unwrap();
    let (trace, _) = traced(place.path(), "python3 -SE log.py", &["--ack", "stdout"]);
    assert_eq!(ids(&trace), ["size-not-flushed"], "{trace:?}");
}
