//! Findings on the limits of the device, and on writes that the program did not request.

use crate::scene::{Disk, MIB, alone, jobs, of, run, said};
use crate::support::{bench, document};
use fixtures::{Group, finish, or_skip};
use std::path::Path;
use std::process::{Command, Stdio};
use wrote_result::document::Document;

/// Creates a group whose processes may write to the device `number` (`MAJOR:MINOR`) with at most
/// `bytes_per_s`. The error is a reason to skip the test.
fn throttled(number: &str, bytes_per_s: u64) -> Result<Group, String> {
    let root = Path::new("/sys/fs/cgroup");
    let (parent, file, text) = if root.join("blkio/cgroup.procs").exists() {
        let text = format!("{number} {bytes_per_s}");
        (root.join("blkio"), "blkio.throttle.write_bps_device", text)
    } else {
        (root.to_owned(), "io.max", format!("{number} wbps={bytes_per_s}"))
    };
    let name = format!("wrote-test-{}-{bytes_per_s}", std::process::id());
    let group = Group::make(parent.join(name))?;
    group.write(file, &text)?;
    Ok(group)
}

/// Returns a command that joins the group, and then becomes `command`.
fn held(group: &Group, command: &Command) -> Command {
    let mut held = Command::new("sh");
    held.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(group.path());
    held.arg(command.get_program()).args(command.get_args());
    held.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    held
}

const DIRECT: &str = "[direct]\nrw=write\nbs=64k\nsize=6m\ndirect=1\n";

/// Returns the result of a direct stream of 6 MiB to a disk limited to `bytes_per_s`.
fn held_to(bytes_per_s: u64) -> Result<Document, String> {
    let disk = Disk::ext4(64 * MIB)?;
    let group = throttled(&disk.number(), bytes_per_s)?;
    Ok(document(&finish(&mut held(&group, &jobs(disk.path(), DIRECT, "")))))
}

#[test]
#[ignore = "nightly"]
fn throttled_is_said_of_a_control_group_whose_limit_was_met() {
    alone(|| {
        // The run takes six seconds; the finding tolerates nearly one second without writes.
        let document = or_skip!(held_to(1_000_000));
        let limit = document.target.limits.iter().find(|limit| limit.of == "write_bytes_per_s");
        assert_eq!(limit.map(|limit| limit.most), Some(1e6), "{:?}", document.target.limits);
        of(&document, "throttled");
    });
}

/// Returns the result of one stream of the ladder to a disk of 1 GiB, from a control group with a
/// limit of `bytes_per_s`.
fn streamed_at(bytes_per_s: u64) -> Result<Document, String> {
    let disk = Disk::ext4(1024 * MIB)?;
    let group = throttled(&disk.number(), bytes_per_s)?;
    let arguments = "--only stream/direct-io_uring-fdatasync-at-end --format json";
    Ok(document(&finish(&mut held(&group, &bench(disk.path(), arguments)))))
}

#[test]
#[ignore = "nightly"]
fn burst_is_said_of_a_control_group_whose_limit_was_met_and_the_rate_is_the_limit() {
    alone(|| {
        let document = or_skip!(streamed_at(20_000_000));
        of(&document, "burst");
        let row = &document.scenarios[0].rows[0];
        let share = row.throughput_bytes_per_s.median / 20e6;
        assert!((0.95..=1.05).contains(&share), "{share}: {:?}", row.runs);
    });
}

#[test]
fn write_amplification_is_said_of_small_appends_that_each_commit_the_journal() {
    // The disk is so large that mkfs.ext4 chooses blocks of 4 KiB. Each write consists of one
    // block, and some blocks of the journal.
    let disk = or_skip!(Disk::ext4(768 * MIB));
    let appends = "[appends]\nrw=write\nbs=4k\nsize=3m\nsync=dsync\n";
    let document = run(disk.path(), appends, "");
    said(&document, "write-amplification", &["appends"]);
}
