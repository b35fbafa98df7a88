//! Tests of a traced program's names, threads, answers and signals.

use super::{file, ids, installed, python, traced};
use fixtures::{finish, folder, or_skip};
use std::fs;
use std::process::{Command, Stdio};
use wrote_result::document::Survives;

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
        trace.unseen.iter().any(|note| note.starts_with("the sign of --ack was not seen"))
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

/// Zeros that follow a durable record, and that the next record overwrites.
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

/// A server with a log that often changes its segments, and their allocated space.
#[cfg(feature = "serve")]
const SERVED: &str = "\
[logs.a]
folder = 'log'
listen = ['resp://127.0.0.1:0']
segment_bytes = '1MiB'
buffer_bytes = '256KiB'
retain_bytes = '2MiB'
[limits]
message_bytes = '64KiB'
";

#[cfg(feature = "serve")]
#[test]
fn a_server_that_flushes_before_it_answers_has_no_warning_while_it_prepares_its_space() {
    use fixtures::Running;
    use rustix::process::Signal;
    use std::io::{BufRead, BufReader, Write};
    const RECORDS: u64 = 800;
    let place = folder();
    fs::write(place.path().join("wrote.toml"), SERVED).unwrap();
    let script = format!("exec {} serve --config wrote.toml 2> said", super::own());
    let mut command =
        crate::support::wrote(&["trace", "--on-disk", "--ack", "socket", "--format", "json", "-o"]);
    command.args(["trace.json", "sh", "-c", &script]).current_dir(place.path());
    let mut run = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let said = || fs::read_to_string(place.path().join("said")).unwrap_or_default();
    let address = run.until("an address", || {
        let said = said();
        let (_, address) = said.split_once("resp://")?;
        Some(address.split_once(char::is_whitespace)?.0.to_owned())
    });
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let message = "m".repeat(3000);
    for number in 0..RECORDS {
        let text = format!(
            "*5\r\n$4\r\nXADD\r\n$1\r\na\r\n$1\r\n*\r\n$7\r\nmessage\r\n$3000\r\n{message}\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
        assert_eq!(answers.next().unwrap().unwrap().chars().next(), Some('$'));
        assert_eq!(answers.next().unwrap().unwrap(), format!("{number}-1"));
        if number % 50 == 0 {
            stream.write_all(b"PING\r\n").unwrap();
            assert_eq!(answers.next().unwrap().unwrap(), "+PONG");
        }
    }
    run.send(Signal::TERM);
    let finished = run.finish();
    let trace = super::document(&place.path().join("trace.json"));
    let told: u64 = trace.timeline.answers.iter().map(|calls| calls.count).sum();
    assert!(told >= RECORDS, "{finished:?}: {trace:?}");
    let found = trace.findings.iter().filter(|found| !found.text.starts_with("said "));
    let found: Vec<_> = found.map(|found| found.id.as_str()).collect();
    assert_eq!(found, ["lock-not-flushed"], "{trace:?}");
}

#[test]
fn an_early_answer_is_found_whatever_call_or_thread_changed_the_file_before_its_first_flush() {
    or_skip!(installed("python3"));
    let begin = "import os, threading\n\
        def put(path, text):\n    fd = os.open(path, os.O_CREAT | os.O_WRONLY)\n    \
        os.write(fd, text)\n    return fd\n\
        os.fsync(put('other', b'x'))\nfd = os.open('a', os.O_RDWR)\n";
    for (change, file) in [
        ("os.ftruncate(fd, 0)", "a"),
        ("os.rename('other', 'b'); os.rename('a', 'other')", "other"),
        ("t = threading.Thread(target=put, args=('rec', b'y')); t.start(); t.join()", "rec"),
    ] {
        let place = folder();
        fs::write(place.path().join("a"), "old").unwrap();
        fs::write(
            place.path().join("p.py"),
            format!("{begin}{change}\nos.write(1, b'saved')\nos.sync()\n"),
        )
        .unwrap();
        let (trace, _) = traced(place.path(), "exec python3 p.py", &["--ack", "stdout"]);
        let early = trace.findings.iter().find(|finding| finding.id == "acknowledged-early");
        let places = early.map(|finding| finding.evidence["places"].to_string());
        assert!(places.is_some_and(|places| places.contains(file)), "{change}: {trace:?}");
    }
}

#[test]
fn a_file_that_threads_create_at_once_keeps_what_each_of_them_wrote() {
    or_skip!(installed("python3"));
    let program = "import os, threading\n\
        gate = threading.Barrier(16)\n\
        def save(name):\n    \
        gate.wait()\n    \
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n    \
        os.write(fd, b'x' * 100)\n    os.close(fd)\n\
        for number in range(20):\n    \
        tasks = [threading.Thread(target=save, args=(f'f{number}',)) for _ in range(16)]\n    \
        [task.start() for task in tasks]\n    [task.join() for task in tasks]\n\
        os.fsync(os.open('.', os.O_RDONLY))\n";
    let trace = python(program, &[]);
    assert_eq!(trace.files.len(), 20, "{trace:?}");
    for file in &trace.files {
        let told = (file.writes, file.bytes, file.survives);
        assert_eq!(told, (16, 1600, Survives::ProcessCrash), "{file:?}");
    }
}
