//! Tests that `wrote trace` exits immediately if the kernel refuses tracing, with one line about
//! the cause and without running the program.

use super::{installed, is_one_line, own, traced};
use crate::support::wrote;
use fixtures::{finish, folder, or_skip};
use std::fs;
use std::process::{Command, Stdio};

/// A program that executes a command for which `ptrace(2)` fails with `EPERM`.
const REFUSES: &str = "\
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter filter[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_ptrace},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 1},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog program = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
    execvp(words[1], words + 1);
    return 8;
}
";

#[test]
fn a_trace_under_seccomp_that_refuses_ptrace_names_it_and_runs_nothing() {
    or_skip!(installed("cc"));
    let place = folder();
    fs::write(place.path().join("refuses.c"), REFUSES).unwrap();
    let mut compile = Command::new("cc");
    let compiled = finish(compile.args(["-o", "refuses", "refuses.c"]).current_dir(&place));
    assert_eq!(compiled.code(), Some(0), "{compiled:?}");
    let mut command = Command::new(place.path().join("refuses"));
    command.args([env!("CARGO_BIN_EXE_wrote"), "trace", "touch", "ran"]).current_dir(&place);
    let why = "wrote: touch was not run: the kernel does not permit it: seccomp";
    is_one_line(&finish(command.stderr(Stdio::piped())), 125, why);
    assert!(!place.path().join("ran").exists());
}

#[test]
fn a_trace_under_another_tracer_names_its_process_and_runs_nothing() {
    let place = folder();
    let why = "wrote: touch was not run: the kernel does not permit it: ";
    let (trace, finished) = traced(place.path(), &format!("{} trace touch ran", own()), &[]);
    assert_eq!((finished.code(), trace.end.code), (Some(125), Some(125)), "{finished:?}");
    let line = finished.stderr.lines().next().unwrap();
    let tracer = line.strip_prefix(&format!("{why}wrote (PID "));
    assert!(tracer.is_some_and(|rest| rest.ends_with(") is already tracing it")), "{finished:?}");
    let words = ["-f", "-o", "calls", env!("CARGO_BIN_EXE_wrote"), "trace", "touch", "ran"];
    or_skip!(installed("strace"));
    let mut command = Command::new("strace");
    command.args(words).current_dir(&place).stderr(Stdio::piped());
    is_one_line(&finish(&mut command), 125, &format!("{why}strace (PID "));
    assert!(!place.path().join("ran").exists());
}

#[test]
fn a_process_that_is_traced_already_is_named_with_its_tracer() {
    let place = folder();
    let script = format!("{} trace -p $$", own());
    let (trace, finished) = traced(place.path(), &script, &[]);
    assert_eq!((finished.code(), trace.end.code), (Some(125), Some(125)), "{finished:?}");
    assert!(finished.stderr.contains(": wrote (PID "), "{finished:?}");
    is_one_line(&finish(&mut wrote(&["trace", "-p", "2147483647"])), 2, "no such process");
}
