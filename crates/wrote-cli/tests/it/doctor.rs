//! Tests of `wrote doctor` on a good and a bad mount, and that it writes nothing.

use crate::support::{printed, wrote};
use fixtures::{Mounted, finish, folder, or_skip, run, skip_here};
use std::fs;
use std::path::Path;
use std::process::Command;
use wrote_result::doctor::{Check, Examination, State};

fn doctor(path: &Path) -> Examination {
    let finished = finish(wrote(&["doctor", "--format", "json"]).arg(path));
    assert_eq!(finished.stderr, "", "{finished:?}");
    printed(&finished)
}

/// Returns the only check with this id.
fn check<'a>(examination: &'a Examination, id: &str) -> &'a Check {
    let mut of = examination.checks.iter().filter(|check| check.id == id);
    let check = of.next().unwrap_or_else(|| panic!("no {id}: {examination:?}"));
    assert!(of.next().is_none(), "{id} twice: {examination:?}");
    check
}

fn state(examination: &Examination, id: &str) -> State {
    check(examination, id).state
}

/// Returns the first command that fixes what a check has found.
fn command<'a>(examination: &'a Examination, id: &str) -> &'a str {
    let change = check(examination, id).change.as_ref();
    let command = change.and_then(|change| change.commands.first());
    command.unwrap_or_else(|| panic!("no command for {id}: {examination:?}"))
}

#[test]
fn options_of_a_mount_that_cost_or_endanger_are_named() {
    let bad = "sync,discard,strictatime,commit=1,barrier=0";
    let mounted = or_skip!(Mounted::image_with("ext4", 64 << 20, bad));
    let found = doctor(mounted.path());
    for id in ["mount-sync", "mount-discard", "mount-atime", "mount-commit"] {
        assert_eq!(state(&found, id), State::Advice, "{id}: {found:?}");
    }
    assert_eq!(state(&found, "mount-barrier"), State::Risk, "{found:?}");
    // The command works even though the mount point has a space in its name.
    let mounted_anew = run("sh", &["-c", command(&found, "mount-discard")]);
    assert!(mounted_anew.is_ok(), "{mounted_anew:?}");
    assert_eq!(state(&doctor(mounted.path()), "mount-discard"), State::Fine);

    let usual = or_skip!(Mounted::image("ext4", 64 << 20));
    let found = doctor(usual.path());
    let of_mount = found.checks.iter().filter(|check| check.id.starts_with("mount-"));
    for check in of_mount {
        assert_eq!(check.state, State::Fine, "{check:?}");
    }
}

#[test]
fn no_system_call_that_writes_is_made() {
    let folder = folder();
    fs::write(folder.path().join("file"), "content").unwrap();
    let trace = folder.path().join("trace");
    for path in [folder.path().join("file"), folder.path().to_owned()] {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-e", "trace=%file,%desc", "-o"]).arg(&trace);
        traced.arg(env!("CARGO_BIN_EXE_wrote")).arg("doctor").arg(&path);
        match traced.output() {
            Ok(output) if output.status.success() => {}
            other => return skip_here!(&format!("strace: {other:?}")),
        }
        let trace = fs::read_to_string(&trace).unwrap();
        assert!(trace.contains("/proc/self/mountinfo"), "the trace holds nothing: {trace}");
        for line in trace.lines() {
            assert!(!writes(line), "{line}");
        }
    }
}

/// Returns whether a line of strace shows a call that changes a file other than standard output.
fn writes(line: &str) -> bool {
    let call = line.split_once(' ').map_or(line, |(_, call)| call).trim_start();
    let name = call.split('(').next().unwrap_or_default();
    let changes = [
        "mkdir",
        "unlink",
        "rename",
        "link",
        "symlink",
        "truncate",
        "ftruncate",
        "fallocate",
        "creat",
        "mknod",
        "chmod",
        "fchmod",
        "chown",
        "fchown",
        "utime",
        "setxattr",
        "fsetxattr",
        "fsync",
        "fdatasync",
        "sync",
        "pwrite",
        "copy_file_range",
        "mount",
    ];
    let opens_to_write = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];
    let opened = name.starts_with("open") && opens_to_write.iter().any(|flag| call.contains(flag));
    let written = name.starts_with("write") && !call.starts_with("write(1,");
    opened || written || changes.iter().any(|known| name.starts_with(known))
}

#[test]
fn advice_is_no_failure_and_a_path_that_is_not_there_is_wrong_usage() {
    let table = finish(wrote(&["doctor"]).arg("/dev/shm"));
    assert_eq!(table.code(), Some(0), "{table:?}");
    assert!(table.stdout.lines().all(|line| line.len() <= 80 || line.starts_with("    command")));
    let missing = finish(&mut wrote(&["doctor", "/does/not/exist"]));
    assert_eq!(missing.code(), Some(2));
    assert_eq!(missing.complaint(), "wrote: /does/not/exist: does not exist");
    assert_eq!(finish(&mut wrote(&["doctor", "--force"])).code(), Some(2));
    assert_eq!(finish(&mut wrote(&["doctor", "--format", "csv"])).code(), Some(2));
}
