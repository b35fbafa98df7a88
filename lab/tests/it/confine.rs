//! Tests of what a confined command is refused.

use std::process::{Command, Output};

/// A Python program that asks the kernel for a ring of 8 entries, and prints the error number or 0.
const PROBE: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(425, 8, ctypes.create_string_buffer(120))
print(0 if fd >= 0 else ctypes.get_errno())
";

fn confine(arguments: &[&str], command: &[&str]) -> Output {
    Command::new(lab::fixtures::program("lab"))
        .arg("confine")
        .args(arguments)
        .arg("--")
        .args(command)
        .output()
        .expect("confine starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn io_uring_is_refused_as_a_container_refuses_it() {
    let output = confine(&["--io-uring", "eperm"], &["python3", "-c", PROBE]);
    assert_eq!(stdout(&output), "1");
}

#[test]
fn io_uring_is_refused_as_an_old_kernel_refuses_it() {
    let output = confine(&["--io-uring", "enosys"], &["python3", "-c", PROBE]);
    assert_eq!(stdout(&output), "38");
}

#[test]
fn lockable_memory_is_limited_and_the_capability_that_lifts_the_limit_is_gone() {
    let script = "ulimit -l; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status";
    let output = confine(&["--memlock-bytes", "65536"], &["sh", "-c", script]);
    let text = stdout(&output);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("64"), "ulimit -l counts KiB");
    let mut sets = 0;
    for line in lines {
        let mask = line.split_whitespace().last().expect("a mask");
        let mask = u64::from_str_radix(mask, 16).expect("hexadecimal");
        // CAP_IPC_LOCK is number 14 (linux/capability.h).
        assert_eq!(mask & (1 << 14), 0, "{line}");
        sets += 1;
    }
    assert_eq!(sets, 4);
}

#[test]
fn a_command_ends_with_its_own_exit_code() {
    let output = confine(&[], &["sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let output = confine(&[], &["no-such-command"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(message, "lab: no-such-command: No such file or directory (os error 2)\n");
}
