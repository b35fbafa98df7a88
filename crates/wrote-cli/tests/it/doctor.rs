//! `wrote doctor` on good devices and file systems, and on ones with bad settings. It writes
//! nothing. Most tests need root.

use crate::support::{printed, wrote};
use fixtures::{Loop, Mounted, Setting, finish, folder, or_skip, run, skip_here};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use wrote_result::doctor::{Check, Examination, State};

const MIB: u64 = 1 << 20;

fn doctor(path: &Path) -> Examination {
    examination(&mut examine(path))
}

fn examine(path: &Path) -> Command {
    let mut command = wrote(&["doctor", "--format", "json"]);
    command.arg(path);
    command
}

fn examination(command: &mut Command) -> Examination {
    let finished = finish(command);
    assert_eq!(finished.stderr, "", "{finished:?}");
    printed(&finished)
}

/// Returns the one check of this name.
fn check<'a>(examination: &'a Examination, id: &str) -> &'a Check {
    let mut of = examination.checks.iter().filter(|check| check.id == id);
    let check = of.next().unwrap_or_else(|| panic!("no {id}: {examination:?}"));
    assert!(of.next().is_none(), "{id} twice: {examination:?}");
    check
}

fn state(examination: &Examination, id: &str) -> State {
    check(examination, id).state
}

/// Returns the first command that remedies the finding of a check.
fn command<'a>(examination: &'a Examination, id: &str) -> &'a str {
    let change = check(examination, id).change.as_ref();
    let command = change.and_then(|change| change.commands.first());
    command.unwrap_or_else(|| panic!("no command for {id}: {examination:?}"))
}

/// Changes `queue/FILE` of a disk until the setting is dropped.
fn set(disk: &Loop, file: &str, value: &str) -> Result<Setting, String> {
    let name = disk.node().file_name().expect("a device has a name");
    Setting::set(Path::new("/sys/block").join(name).join("queue").join(file), value)
}

#[test]
fn flushes_that_the_kernel_no_longer_sends_are_a_risk() {
    let disk = or_skip!(Loop::attach(16 * MIB));
    assert_eq!(state(&doctor(disk.node()), "write-cache"), State::Fine);
    let _setting = or_skip!(set(&disk, "write_cache", "write through"));
    let found = doctor(disk.node());
    assert_eq!(found.checks[0].id, "write-cache", "the worst comes first: {found:?}");
    assert_eq!(found.checks[0].state, State::Risk);
    assert!(command(&found, "write-cache").starts_with("echo \"write back\" > /sys/block/loop"));
}

#[test]
fn a_loop_device_is_named_until_it_writes_past_the_page_cache() {
    let disk = or_skip!(Loop::attach(16 * MIB));
    let found = doctor(disk.node());
    assert_eq!(state(&found, "loop-device"), State::Advice);
    let node = disk.node().to_str().unwrap();
    assert_eq!(command(&found, "loop-device"), format!("losetup --direct-io=on {node}"));
    // The named command works unchanged.
    or_skip!(run("losetup", &["--direct-io=on", node]));
    assert_eq!(state(&doctor(disk.node()), "loop-device"), State::Fine);
}

#[test]
fn options_of_a_mount_that_cost_or_endanger_are_named() {
    let bad = "sync,discard,strictatime,commit=1,barrier=0";
    let mounted = or_skip!(Mounted::image_with("ext4", 64 * MIB, bad));
    let found = doctor(mounted.path());
    for id in ["mount-sync", "mount-discard", "mount-atime", "mount-commit"] {
        assert_eq!(state(&found, id), State::Advice, "{id}: {found:?}");
    }
    assert_eq!(state(&found, "mount-barrier"), State::Risk, "{found:?}");
    // The command works although the mount point has a space in its name.
    let mounted_anew = run("sh", &["-c", command(&found, "mount-discard")]);
    assert!(mounted_anew.is_ok(), "{mounted_anew:?}");
    assert_eq!(state(&doctor(mounted.path()), "mount-discard"), State::Fine);

    let usual = or_skip!(Mounted::image("ext4", 64 * MIB));
    let found = doctor(usual.path());
    let of_mount = found.checks.iter().filter(|check| check.id.starts_with("mount-"));
    for check in of_mount {
        assert_eq!(check.state, State::Fine, "{check:?}");
    }
}

#[test]
fn space_that_was_set_aside_and_a_synchronous_file_are_named() {
    let mounted = or_skip!(Mounted::image("ext4", 64 * MIB));
    let path = mounted.path().join("a file");
    let file = File::create_new(&path).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 8 * MIB).unwrap();
    let found = doctor(&path);
    assert_eq!(state(&found, "file-extents"), State::Advice, "{found:?}");
    assert_eq!(state(&found, "file-attributes"), State::Fine, "{found:?}");
    fs::write(&path, vec![1; 8 * MIB as usize]).unwrap();
    file.sync_all().unwrap();
    or_skip!(run("chattr", &["+S".as_ref(), path.as_os_str()]));
    let found = doctor(&path);
    assert_eq!(state(&found, "file-extents"), State::Fine, "{found:?}");
    assert_eq!(state(&found, "file-attributes"), State::Advice, "{found:?}");
    assert!(run("sh", &["-c", command(&found, "file-attributes")]).is_ok());
    assert_eq!(state(&doctor(&path), "file-attributes"), State::Fine);
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

#[test]
fn the_examination_goes_to_a_file_that_was_not_there() {
    let folder = folder();
    let path = folder.path().join("doctor.md");
    let write = |more: &[&str]| {
        let mut command = wrote(&["doctor", "--format", "markdown", "-o"]);
        finish(command.arg(&path).args(more).arg(folder.path())).code()
    };
    assert_eq!(write(&[]), Some(0));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("## wrote doctor ") && text.contains("### Fine"), "{text}");
    assert_eq!(write(&[]), Some(2), "W7");
    assert_eq!(write(&["--force"]), Some(0));
}
