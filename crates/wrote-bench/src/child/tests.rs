//! Tests with well-behaved and misbehaving children.

use super::*;
use rustix::process::test_kill_process;
use std::path::Path;

/// A time limit that no terminating child of these tests reaches, even on the busiest machine.
const LONG: Duration = Duration::from_secs(100);
/// The time limit of children that never terminate by themselves.
const SHORT: Duration = Duration::from_millis(200);

fn limits(timeout: Duration) -> Limits {
    Limits { timeout, stdout_bytes_max: 1000, stderr_bytes_max: 100, is_kept: true }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn run(script: &str, timeout: Duration) -> Outcome {
    supervise(&mut shell(script), limits(timeout), &Stop::new(), &mut |_| ()).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn succeeded(outcome: &Outcome) -> bool {
    outcome.status.failure().is_none()
}

/// Waits until the process is gone, or is a zombie that another process must wait for.
fn wait_until_gone(pid: &str) {
    let started = Instant::now();
    let id = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    while test_kill_process(id).is_ok() && !is_zombie(pid.trim()) {
        assert!(started.elapsed() < LONG, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn is_zombie(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn both_outputs_and_the_exit_code_are_told() {
    let outcome = run("echo out; echo err >&2; exit 7", LONG);
    assert_eq!(text(&outcome.stdout), "out\n");
    assert_eq!(outcome.stdout_total_bytes, 4);
    assert_eq!(text(&outcome.stderr), "err\n");
    assert!(matches!(outcome.status, End::Exited(status) if status.code() == Some(7)));
    assert_eq!(outcome.status.failure().unwrap(), "ended with exit code 7");
    assert!(!succeeded(&outcome));
    assert!(outcome.elapsed_s > 0.0);
    let outcome = run("true", LONG);
    assert!(succeeded(&outcome));
    assert_eq!(outcome.status.failure(), None);
}

#[test]
fn a_signal_is_told() {
    let outcome = run("kill -SEGV $$", LONG);
    assert!(matches!(outcome.status, End::Exited(status) if status.signal() == Some(11)));
    assert_eq!(outcome.status.failure().unwrap(), "was ended by SIGSEGV");
    assert_eq!(End::Exited(ExitStatus::from_raw(40)).failure().unwrap(), "was ended by signal 40");
    for (signal, name) in [(6, "SIGABRT"), (14, "SIGALRM"), (15, "SIGTERM"), (25, "SIGXFSZ")] {
        let ended = End::Exited(ExitStatus::from_raw(signal)).failure().unwrap();
        assert_eq!(ended, format!("was ended by {name}"));
    }
}

#[test]
fn standard_input_is_empty() {
    assert_eq!(text(&run("cat; echo end", LONG).stdout), "end\n");
}

#[test]
fn output_larger_than_the_pipe_blocks_nobody_and_its_first_bytes_are_kept() {
    let outcome = run("printf start; head -c 3000000 /dev/zero; printf end", LONG);
    assert!(succeeded(&outcome));
    assert_eq!(outcome.stdout.len(), 1000);
    assert!(outcome.stdout.starts_with(b"start\0"));
    assert_eq!(outcome.stdout_total_bytes, 3_000_008);
}

#[test]
fn the_last_bytes_of_standard_error_are_kept() {
    let outcome = run("{ head -c 3000000 /dev/zero; printf end; } >&2", LONG);
    assert!(succeeded(&outcome));
    assert_eq!(outcome.stderr.len(), 100);
    assert!(outcome.stderr.ends_with(b"\0end"));
}

#[test]
fn endless_output_ends_by_the_limit_and_fills_no_memory() {
    for to in ["1", "2"] {
        let outcome = run(&format!("exec cat /dev/zero >&{to}"), SHORT);
        assert_eq!(outcome.status, End::TimedOut);
        assert!(outcome.stdout.len() <= 1000 && outcome.stderr.len() <= 100);
    }
}

#[test]
fn a_child_that_hangs_and_ignores_sigterm_is_ended() {
    let mut pid = 0;
    let mut command = shell("trap '' TERM INT HUP; while :; do sleep 1000; done");
    let outcome = supervise(&mut command, limits(SHORT), &Stop::new(), &mut |id| pid = id).unwrap();
    assert_eq!(outcome.status, End::TimedOut);
    wait_until_gone(&pid.to_string());
}

#[test]
fn a_child_that_closed_its_outputs_is_watched_to_its_end() {
    let outcome = run("exec >&- 2>&-; sleep 0.1; exit 3", LONG);
    assert!(matches!(outcome.status, End::Exited(status) if status.code() == Some(3)));
    assert_eq!(run("exec >&- 2>&-; exec sleep 1000", SHORT).status, End::TimedOut);
}

#[test]
fn a_grandchild_that_holds_the_output_is_ended_with_the_child() {
    let outcome = run("sleep 1000 & echo $!", LONG);
    assert!(succeeded(&outcome));
    wait_until_gone(text(&outcome.stdout));
}

#[test]
fn a_grandchild_is_ended_at_the_limit_too() {
    let outcome = run("sleep 1000 & echo $!; wait", SHORT);
    // Without the output of `echo`, there is no process to look for.
    assert_eq!(outcome.status, End::TimedOut);
    if !outcome.stdout.is_empty() {
        wait_until_gone(text(&outcome.stdout));
    }
}

#[test]
fn a_grandchild_in_a_session_of_its_own_is_not_waited_for() {
    // The grandchild exits when its folder is removed, so that the test leaves no process behind.
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sh -c 'while test -d \"$0\"; do echo; sleep 0.1; done' \"$0\" & \
                  until set -- $(cat /proc/$!/stat) && [ \"$6\" = $! ]; do :; done; echo gone on";
    let mut command = shell(script);
    command.arg(folder.path());
    let outcome = supervise(&mut command, limits(LONG), &Stop::new(), &mut |_| ()).unwrap();
    assert!(succeeded(&outcome));
    assert!(text(&outcome.stdout).contains("gone on"));
}

#[test]
fn a_raised_stop_ends_the_child_and_what_it_started() {
    let stop = Stop::new();
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("pid");
    let mut command = shell("sleep 1000 & echo $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait");
    command.arg(&said);
    let mut child = 0;
    let result = supervise(&mut command, limits(LONG), &stop, &mut |pid| {
        child = pid;
        if said.exists() {
            stop.request();
        }
    });
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    wait_until_gone(&child.to_string());
    wait_until_gone(&std::fs::read_to_string(&said).unwrap());
}

#[test]
fn nothing_is_started_once_stop_is_raised() {
    let stop = Stop::new();
    stop.request();
    let mut looks = 0;
    let result = supervise(&mut shell("true"), limits(LONG), &stop, &mut |_| looks += 1);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(looks, 0);
}

#[test]
fn a_panic_of_the_one_who_looks_ends_the_child() {
    let mut pid = 0;
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut look = |id| {
            pid = id;
            panic!("seen enough");
        };
        let _ = supervise(&mut shell("exec sleep 1000"), limits(LONG), &Stop::new(), &mut look);
    }));
    assert!(looked.is_err());
    wait_until_gone(&pid.to_string());
}

#[test]
fn the_child_is_looked_at_while_it_runs() {
    let mut names = Vec::new();
    let mut look = |pid: u32| names.push(std::fs::read_to_string(format!("/proc/{pid}/comm")));
    let mut command = shell("exec sleep 0.2");
    supervise(&mut command, limits(LONG), &Stop::new(), &mut look).unwrap();
    assert!(!names.is_empty());
    assert!(names.into_iter().flatten().any(|name| ["sh\n", "sleep\n"].contains(&name.as_str())));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let mut command = Command::new("/no/such/program");
    let error = supervise(&mut command, limits(LONG), &Stop::new(), &mut |_| ()).unwrap_err();
    assert!(matches!(error, Error::Failed(_)));
    assert!(error.to_string().starts_with("cannot start /no/such/program: "), "{error}");
}

fn told(stderr: &str) -> String {
    complaint(stderr.as_bytes()).unwrap()
}

#[test]
fn the_line_that_names_the_error_is_found_in_what_each_language_prints() {
    let java = "Exception in thread \"main\" java.io.IOException: No space left on device\n\
                \tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n\
                \tat Main.main(Main.java:9)\n";
    assert!(told(java).ends_with("No space left on device"));
    let node = "node:fs:441\n    return binding.open(\n\nError: ENOENT: no such file, open \
                'x'\n    \
                at Object.openSync (node:fs:561:18) {\n  errno: -2\n}\n\nNode.js v22.1.0\n";
    assert_eq!(told(node), "Error: ENOENT: no such file, open 'x'");
    let python = "Traceback (most recent call last):\n  File \"m.py\", line 3\nOSError: no\n";
    assert_eq!(told(python), "OSError: no");
    let go = "panic: open x: permission denied\n\ngoroutine 1 [running]:\nmain.main()\n";
    assert_eq!(told(go), "panic: open x: permission denied");
    assert_eq!(told("cannot open x\n\n"), "cannot open x");
    assert_eq!(complaint(b" \n"), None);
}

#[test]
fn a_long_line_is_cut_and_no_control_character_is_left() {
    assert_eq!(shown("\u{1b}[2Jabc\u{7}d", 100), "[2Jabc d");
    assert_eq!(shown("äöü", 3), "äöü");
    assert_eq!(shown("äöüx", 3), "äöü..");
    assert!(complaint(&[b'x'; 100_000]).unwrap().len() < 210);
    assert_eq!(complaint(b"\xff\xfe bad\n").unwrap(), "\u{fffd}\u{fffd} bad");
}
