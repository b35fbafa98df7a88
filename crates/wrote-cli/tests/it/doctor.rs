//! `wrote doctor` on good devices and file systems, and on ones with bad settings. It writes
//! nothing. Most tests need root.

use crate::support::{printed, run_through, without_rights, wrote};
use fixtures::{Group, Loop, Mounted, Setting, finish, folder, names, or_skip, run, skip_here};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
fn each_setting_of_a_queue_that_holds_back_is_named_and_is_not_once_it_is_undone() {
    let disk = or_skip!(Loop::attach(16 * MIB));
    let name = disk.node().file_name().unwrap().to_str().unwrap().to_owned();
    let settings = [
        ("scheduler", "scheduler", "mq-deadline", "none"),
        ("merges", "nomerges", "2", "0"),
        ("write-throttling", "wbt_lat_usec", "500", "0"),
        ("completion-cpu", "rq_affinity", "0", "1"),
        ("read-ahead", "read_ahead_kb", "4", "128"),
        ("statistics", "iostats", "0", "1"),
        ("transfer-size", "max_sectors_kb", "64", "1280"),
        ("queue-depth", "nr_requests", "4", "128"),
    ];
    let mut tried = 0;
    for (id, file, bad, good) in settings {
        let usual = check(&doctor(disk.node()), id).state;
        let Ok(setting) = set(&disk, file, bad) else { continue };
        let found = doctor(disk.node());
        assert_eq!(state(&found, id), State::Advice, "{file}: {found:?}");
        assert_eq!(command(&found, id), format!("echo {good} > /sys/block/{name}/queue/{file}"));
        assert_eq!(check(&found, id).device.as_deref(), Some(name.as_str()));
        drop(setting);
        assert_eq!(state(&doctor(disk.node()), id), usual, "{file}");
        tried += 1;
    }
    assert!(tried >= 4, "the kernel took only {tried} of the settings");
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
fn a_partition_is_named_where_it_begins_inside_a_block() {
    for (start_bytes, wanted) in [(63 * 512, State::Advice), (MIB, State::Fine)] {
        let mut disk = or_skip!(Loop::attach(16 * MIB));
        let node = or_skip!(disk.partition(start_bytes, 8 * MIB));
        let found = doctor(&node);
        let alignment = check(&found, "alignment");
        assert_eq!(alignment.state, wanted, "{alignment:?}");
        assert!(alignment.text.contains(&format!("byte {start_bytes}")), "{alignment:?}");
    }
}

#[test]
fn options_of_a_mount_that_cost_or_endanger_are_named() {
    let bad = "sync,discard,strictatime,commit=1,nodelalloc,barrier=0";
    let mounted = or_skip!(Mounted::image_with("ext4", 64 * MIB, bad));
    let found = doctor(mounted.path());
    for id in ["mount-sync", "mount-discard", "mount-atime", "mount-commit", "mount-allocation"] {
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
fn what_btrfs_does_to_writes_is_named() {
    for (options, wanted) in
        [("compress=zstd", State::Advice), ("nodatacow", State::Risk), ("relatime", State::Fine)]
    {
        let mounted = Mounted::image_with("btrfs", 256 * MIB, options);
        let mounted = or_skip!(mounted);
        assert_eq!(state(&doctor(mounted.path()), "mount-copy-on-write"), wanted, "{options}");
    }
}

#[test]
fn a_read_only_file_system_and_one_in_memory_are_risks() {
    let mounted = or_skip!(Mounted::image("ext4", 64 * MIB));
    assert_eq!(state(&doctor(mounted.path()), "read-only"), State::Fine);
    mounted.make_read_only().unwrap();
    assert_eq!(state(&doctor(mounted.path()), "read-only"), State::Risk);
    let memory = or_skip!(Mounted::tmpfs(MIB));
    assert_eq!(state(&doctor(memory.path()), "in-memory"), State::Risk);
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
fn a_limit_on_the_disk_is_named_inside_its_group_and_nowhere_else() {
    let disk = or_skip!(Loop::attach(16 * MIB));
    let number = disk.node().metadata().unwrap().rdev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let group = or_skip!(Group::throttled(&number, 5_000_000));
    let found = examination(&mut group.hold(&examine(disk.node())));
    let limited = check(&found, "disk-limit");
    assert_eq!(limited.state, State::Advice, "{limited:?}");
    assert!(limited.text.contains("5.00 MB/s"), "{limited:?}");
    assert_eq!(state(&doctor(disk.node()), "disk-limit"), State::Fine);
}

/// Returns the names, times and sizes in a tree of one level: a write changes one of them.
fn seen(folder: &Path) -> Vec<String> {
    let of = |path: &Path| {
        let metadata = path.symlink_metadata().unwrap();
        let times = [metadata.atime_nsec(), metadata.mtime_nsec(), metadata.ctime_nsec()];
        format!("{} {} {} {times:?}", path.display(), metadata.len(), metadata.blocks())
    };
    let entries = names(folder).into_iter().map(|name| of(&folder.join(name)));
    entries.chain([of(folder)]).collect()
}

#[test]
fn nothing_that_can_be_seen_changes_where_it_looked() {
    let folder = folder();
    fs::write(folder.path().join("file"), "content").unwrap();
    let before = seen(folder.path());
    doctor(folder.path());
    doctor(&folder.path().join("file"));
    assert_eq!(seen(folder.path()), before);
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
fn the_judge_of_system_calls_tells_writing_from_reading() {
    for line in [
        "12 openat(AT_FDCWD, \"/x\", O_WRONLY|O_CREAT, 0666) = 3",
        "12 write(3, \"x\", 1) = 1",
        "12 unlinkat(AT_FDCWD, \"/x\", 0) = 0",
        "12 pwrite64(3, \"x\", 1, 0) = 1",
    ] {
        assert!(writes(line), "{line}");
    }
    for line in [
        "12 openat(AT_FDCWD, \"/x\", O_RDONLY|O_CLOEXEC) = 3",
        "12 write(1, \"x\", 1) = 1",
        "12 statx(AT_FDCWD, \"/x\", 0, 0, 0) = 0",
    ] {
        assert!(!writes(line), "{line}");
    }
}

#[test]
fn a_user_who_may_write_nothing_gets_an_answer_and_is_told_of_little_memory_to_lock() {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut words = vec!["prlimit".to_owned(), "--memlock=8388608".to_owned()];
    words.extend(or_skip!(without_rights()));
    let mut command = wrote(&["doctor", "--format", "json"]);
    command.arg(folder.path());
    let output = match run_through(&words, command).output() {
        Ok(output) if output.status.success() => output,
        other => return skip_here!(&format!("setpriv and prlimit: {other:?}")),
    };
    let found: Examination = serde_json::from_slice(&output.stdout).unwrap();
    let memory = check(&found, "locked-memory");
    assert_eq!(memory.state, State::Advice, "{memory:?}");
    assert!(memory.text.contains("8 MiB"), "{memory:?}");
    assert!(names(folder.path()).is_empty());
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
