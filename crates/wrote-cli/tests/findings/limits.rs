//! Findings on what holds the device back from outside, and on what it writes beyond what it is given.

use crate::scene::{Disk, MIB, alone, jobs, of, or_skip, run, said, silent};
use crate::support::finish;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wrote_result::document::Document;

/// A control group of the test's own, removed when it is dropped. Version 1 holds a device back in the
/// group's `blkio.throttle.*`, version 2 in its `io.max`.
#[derive(Debug)]
struct Group {
    path: PathBuf,
}

impl Group {
    /// One in which the device of this number is written at `bytes_per_s` at most.
    fn throttled(number: &str, bytes_per_s: u64) -> Result<Group, String> {
        let root = Path::new("/sys/fs/cgroup");
        let (parent, file, text) = if root.join("blkio/cgroup.procs").exists() {
            let text = format!("{number} {bytes_per_s}");
            (root.join("blkio"), "blkio.throttle.write_bps_device", text)
        } else {
            (root.to_owned(), "io.max", format!("{number} wbps={bytes_per_s}"))
        };
        let path = parent.join(format!("wrote-test-{}-{bytes_per_s}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Group { path };
        // Not there where the controller is not given to groups below.
        fs::write(group.path.join(file), text)
            .map_err(|error| format!("{}/{file}: {error}", group.path.display()))?;
        Ok(group)
    }

    /// The same command, which enters the group before it begins.
    fn hold(&self, command: &Command) -> Command {
        let mut held = Command::new("sh");
        held.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.path);
        held.arg(command.get_program()).args(command.get_args());
        held.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        held
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is busy for a moment after its last process has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{} is left", self.path.display());
    }
}

const DIRECT: &str = "[direct]\nrw=write\nbs=64k\nsize=6m\ndirect=1\n";

/// A direct stream of 6 MiB to a disk that is held to so much.
fn held_to(bytes_per_s: u64) -> Result<Document, String> {
    let disk = Disk::ext4(64 * MIB)?;
    let group = Group::throttled(&disk.number(), bytes_per_s)?;
    Ok(finish(&mut group.hold(&jobs(disk.path(), DIRECT, ""))).document())
}

#[test]
fn throttled_is_said_of_a_control_group_whose_limit_was_met() {
    let _alone = alone();
    // For six seconds, of which the finding forgives nearly one in which nothing was written.
    let document = or_skip!(held_to(1_000_000));
    let limit = document.target.limits.iter().find(|limit| limit.of == "write_bytes_per_s");
    assert_eq!(limit.map(|limit| limit.most), Some(1e6), "{:?}", document.target.limits);
    of(&document, "throttled");
}

#[test]
fn throttled_is_not_said_of_a_limit_that_is_far_off_or_of_none() {
    silent(&or_skip!(held_to(1_000_000_000_000)), "throttled");
    let disk = or_skip!(Disk::ext4(64 * MIB));
    silent(&run(disk.path(), DIRECT, ""), "throttled");
}

#[test]
fn write_amplification_is_said_of_small_appends_that_each_commit_the_journal() {
    // Large enough that mkfs.ext4 makes blocks of 4 KiB: each write is one of them, and some of the
    // journal.
    let disk = or_skip!(Disk::ext4(768 * MIB));
    let appends = "[appends]\nrw=write\nbs=4k\nsize=3m\nsync=dsync\n";
    let document = run(disk.path(), appends, "");
    said(&document, "write-amplification", &["appends"]);
}

#[test]
fn write_amplification_is_not_said_of_large_writes_in_place() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let in_place = "[global]\nbs=1m\nsize=16m\nfilename=file\ndirect=1\n[first]\nrw=write\n\
                    [again]\nstonewall\nrw=write\nend_fsync=1\n";
    silent(&run(disk.path(), in_place, ""), "write-amplification");
}
