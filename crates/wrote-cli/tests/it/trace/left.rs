//! Tests that a traced program exits, handles signals, and stops at a terminal as it does without
//! tracing.

use super::{document, file, installed, own, traced};
use crate::support::{terminal, wrote};
use fixtures::{Running, finish, folder, or_skip};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use wrote_result::trace::Trace;

/// A daemon that waits for the file `go`, writes, renames and flushes, and then reports success.
const DAEMON: &str = "setsid -f sh -ec 'until [ -e go ]; do sleep 0.05; done; echo one > t; \
    sync t; echo two >> t; mv t b; sync .; : > done' >/dev/null 2>&1";

/// Returns the number in a document's note about the process that must stay alive for the calls of
/// processes left behind.
fn keeper(trace: &Trace) -> String {
    let note = trace.unseen.iter().find_map(|note| note.split_once(" unwatched; wrote (PID "));
    let (_, rest) = note.unwrap_or_else(|| panic!("no note: {trace:?}"));
    rest.split(')').next().unwrap().to_owned()
}

/// Waits until `is_so`, for as long as the tests of this crate wait for a run.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut waits = Running::start(Command::new("sleep").arg("120"));
    waits.until(what, || is_so().then_some(()));
}

fn exists(process: &str) -> bool {
    // A process that its parent has not reaped yet has already exited.
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn a_daemon_does_not_hold_up_the_report_and_can_still_write_after_it() {
    or_skip!(installed("setsid"));
    let place = folder();
    let (trace, finished) = traced(place.path(), &format!("{DAEMON}; exit 3"), &[]);
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    let keeper = keeper(&trace);
    assert!(exists(&keeper), "{trace:?}");
    fs::write(place.path().join("go"), "").unwrap();
    until("the daemon's last file", || place.path().join("done").exists());
    assert_eq!(fs::read_to_string(place.path().join("b")).unwrap(), "one\ntwo\n");
    assert!(!trace.files.iter().any(|file| file.path.ends_with("/b")), "{trace:?}");
    // The process exits together with the daemon.
    until("the end of the process that traced", || !exists(&keeper));
}

#[test]
fn a_daemon_is_watched_to_its_end_where_that_is_asked() {
    or_skip!(installed("setsid"));
    let place = folder();
    let script = format!("{DAEMON}; : > go");
    let (trace, _) = traced(place.path(), &script, &["--daemons"]);
    assert_eq!(file(&trace, "b").bytes, 8, "{trace:?}");
    assert_eq!(trace.unseen, [""; 0], "{trace:?}");
}

/// Starts `wrote trace` with a script. The document is written to `trace.json`, and the messages to
/// `said`.
fn running(place: &Path, script: &str) -> Running {
    let mut command = wrote(&["trace", "--format", "json", "-o", "trace.json", "sh", "-c", script]);
    command.current_dir(place).stderr(File::create(place.join("said")).unwrap());
    Running::start(&mut command)
}

#[test]
fn jobs_that_a_program_leaves_are_watched_until_a_signal_and_run_on() {
    let place = folder();
    let path = |name: &str| place.path().join(name);
    let job = "(until [ -e go ]; do sleep 0.05; done; echo late > late; sync late; : > done) \
        >/dev/null 2>&1 & echo now > now; exit 3";
    let mut run = running(place.path(), job);
    let said = || fs::read_to_string(path("said")).unwrap();
    run.until("a line about the job", || said().contains("still watching sh (PID ").then_some(()));
    assert_eq!(said().lines().count(), 1, "{}", said());
    run.send(Signal::TERM);
    let finished = run.finish();
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    let trace = document(&path("trace.json"));
    assert_eq!(file(&trace, "now").bytes, 4, "{trace:?}");
    assert!(!path("late").exists());
    let keeper = keeper(&trace);
    fs::write(path("go"), "").unwrap();
    until("the job's last file", || path("done").exists());
    assert_eq!(fs::read_to_string(path("late")).unwrap(), "late\n");
    until("the end of the process that traced", || !exists(&keeper));
}

#[test]
fn each_signal_reaches_the_program_which_decides_its_end() {
    let place = folder();
    let path = |name: &str| place.path().join(name);
    let script = "trap 'test -e once && exit 5; : > once' TERM; : > ready; \
        while :; do sleep 0.05; done";
    let mut run = running(place.path(), script);
    for mark in ["ready", "once"] {
        run.until(mark, || path(mark).exists().then_some(()));
        run.send(Signal::TERM);
    }
    let finished = run.finish();
    assert_eq!(finished.code(), Some(5), "{finished:?}");
    assert_eq!(document(&path("trace.json")).end.code, Some(5));
    // The signal ends a program without a handler.
    let place = folder();
    let mut run = running(place.path(), ": > ready; exec sleep 1000");
    run.until("the program", || place.path().join("ready").exists().then_some(()));
    run.send(Signal::TERM);
    assert_eq!(run.finish().signal(), Some(15));
}

#[test]
fn a_signal_that_killed_the_program_kills_its_front_and_its_number_as_an_exit_code_does_not() {
    // One signal dumps core, one cannot be caught, and one has no name.
    for signal in [6, 9, 40] {
        let place = folder();
        let (trace, finished) = traced(place.path(), &format!("kill -{signal} $$"), &[]);
        assert_eq!(finished.signal(), Some(signal), "{finished:?}");
        assert_eq!(trace.end.signal, Some(signal), "{trace:?}");
        let (_, finished) = traced(place.path(), &format!("exit {}", 128 + signal), &[]);
        assert_eq!(finished.code(), Some(128 + signal), "{finished:?}");
    }
}

#[test]
fn nothing_is_left_of_a_program_whose_front_or_tracer_is_killed() {
    for of_front in [true, false] {
        let place = folder();
        let path = |name: &str| place.path().join(name);
        let mut run = running(place.path(), "echo $PPID $$ > t; mv t ready; exec sleep 1000");
        let numbers = run.until("the program", || fs::read_to_string(path("ready")).ok());
        let (tracer, program) = numbers.trim().split_once(' ').unwrap();
        if of_front {
            run.send(Signal::KILL);
        } else {
            assert!(Command::new("kill").args(["-9", tracer]).status().unwrap().success());
        }
        let finished = run.finish();
        match of_front {
            true => assert_eq!(finished.signal(), Some(9), "{finished:?}"),
            false => assert_eq!(finished.code(), Some(128 + 9), "{finished:?}"),
        }
        for process in [tracer, program] {
            until("the end of both", || !exists(process));
        }
    }
}

#[test]
fn a_program_that_is_stopped_at_a_terminal_is_a_job_that_continues() {
    or_skip!(installed("setsid").and(installed("python3")));
    let place = folder();
    let path = |name: &str| place.path().join(name);
    // Like an editor, the program tidies up before it stops.
    let program = "import os, signal, sys, time\n\
        def tidy(number, frame):\n\
        \x20   open('tidied', 'w').close()\n\
        \x20   signal.signal(number, signal.SIG_DFL)\n\
        \x20   os.kill(os.getpid(), number)\n\
        signal.signal(signal.SIGTSTP, tidy)\n\
        open('ready', 'w').close()\n\
        while not os.path.exists('go'):\n\
        \x20   time.sleep(0.05)\n\
        sys.exit(7)\n";
    fs::write(path("program"), program).unwrap();
    let (mut screen, end) = terminal().expect("a terminal");
    let mut command = Command::new("setsid");
    command.args(["-c", "sh", "-i"]).env("ENV", "").env("PS1", "").current_dir(&place);
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let mut run = Running::start(&mut command);
    drop(command);
    let mut shown = screen.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // Once no process has the other end open, reading fails (EIO).
        let _ = shown.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let own = own();
    writeln!(screen, "{own} trace -o report python3 -SE program; : > back").unwrap();
    run.until("the program", || path("ready").exists().then_some(()));
    // This is Ctrl-Z.
    screen.write_all(b"\x1a").unwrap();
    run.until("the shell's next command", || path("back").exists().then_some(()));
    assert!(path("tidied").exists());
    writeln!(screen, ": > go; fg; echo $? > code; exit").unwrap();
    let _ = run.finish();
    let text = reader.join().unwrap();
    assert_eq!(fs::read_to_string(path("code")).unwrap(), "7\n", "{text}");
    assert!(fs::read_to_string(path("report")).unwrap().contains("exit code 7"), "{text}");
}

#[test]
fn a_program_that_ends_before_its_front_looks_ends_the_trace() {
    for _ in 0..20 {
        let finished = finish(&mut wrote(&["trace", "true"]));
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    }
}
