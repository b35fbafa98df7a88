//! Findings on drives that tests do not have: hot or badly connected drives, and drives with wrong
//! reports or unusual block sizes. A test mounts its files over the kernel's, visible only to the
//! program (mount_namespaces(7)).

use crate::scene::{Disk, MIB, alone, jobs, of, said};
use crate::support::document;
use fixtures::{finish, is_installed, or_skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use wrote_result::document::Document;

/// Returns the result of a run on a loop device. In `/sys`, these files are in a folder above the
/// device, as they would be for a drive on a bus.
fn seen_below(files: &[(&str, &str)]) -> Result<Document, String> {
    seen_of(&Disk::ext4(64 * MIB)?, "[job]\nrw=write\nsize=1m\ndirect=1\n", files)
}

/// Like [`seen_below`], but for these jobs on this disk.
fn seen_of(disk: &Disk, text: &str, files: &[(&str, &str)]) -> Result<Document, String> {
    is_installed("unshare")?;
    let upper = fixtures::folder();
    for (name, text) in files {
        let path = upper.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        fs::write(path, format!("{text}\n")).expect("a file");
    }
    let command = jobs(disk.path(), text, "");
    let finished = finish(&mut laid_over(upper.path(), &command));
    if finished.stderr.contains("unshare: ") || finished.stderr.contains("mount: ") {
        return Err(finished.stderr);
    }
    Ok(document(&finished))
}

/// Returns the same command in a mount namespace where the files of `upper` are among the kernel's.
fn laid_over(upper: &Path, command: &Command) -> Command {
    let script = "mount -t overlay -o \"lowerdir=$0:$1\" overlay \"$1\" && shift && exec \"$@\"";
    let mut over = Command::new("unshare");
    over.args(["--mount", "--propagation", "private", "sh", "-c", script]);
    over.arg(upper).arg("/sys/devices/virtual/block");
    over.arg(command.get_program()).args(command.get_args());
    over.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    over
}

/// Returns the result of a run on a drive at this temperature, in thousandths of a degree. The
/// drive's limit is 80 degrees (`Documentation/hwmon/sysfs-interface.rst`).
fn at(temperature: &str) -> Result<Document, String> {
    seen_below(&[
        ("hwmon0/name", "nvme"),
        ("hwmon0/temp1_label", "Composite"),
        ("hwmon0/temp1_input", temperature),
        ("hwmon0/temp1_max", "80000"),
        ("hwmon0/temp1_crit", "85000"),
    ])
}

#[test]
fn too_hot_is_said_of_a_drive_above_its_limit() {
    of(&or_skip!(at("84850")), "too-hot");
}

/// Returns the result of a run on a drive whose PCI Express link has this speed and width
/// (`Documentation/ABI/testing/sysfs-bus-pci`).
fn linked(speed: &str, width: &str) -> Result<Document, String> {
    seen_below(&[
        ("current_link_speed", speed),
        ("current_link_width", width),
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "4"),
    ])
}

#[test]
fn link_downgraded_is_said_of_a_link_that_is_slower_or_narrower_than_it_could_be() {
    of(&or_skip!(linked("8.0 GT/s PCIe", "4")), "link-downgraded");
    of(&or_skip!(linked("16.0 GT/s PCIe", "2")), "link-downgraded");
}

/// Returns the result of jobs on a disk whose queue reports `value` as its `setting`.
fn reported(disk: &Disk, text: &str, setting: &str, value: &str) -> Result<Document, String> {
    let file = format!("{}/queue/{setting}", disk.name());
    seen_of(disk, text, &[(&file, value)])
}

const SMALL: &str = "[small]\nrw=write\nbs=4k\nsize=1m\ndirect=1\n";

#[test]
fn preferred_larger_is_said_of_blocks_below_those_of_the_device() {
    let disk = or_skip!(Disk::ext4(64 * MIB));
    let document = or_skip!(reported(&disk, SMALL, "physical_block_size", "16384"));
    let finding = said(&document, "preferred-larger", &["small"]);
    assert_eq!(finding.evidence["preferred_bytes"], 16384);
}

/// Durable overwrites in place, which commit no journal.
const DURABLE: &str = "[global]\nfilename=file\nbs=4k\nsize=2m\ndirect=1\n[first]\nrw=write\n\
                       end_fsync=1\n[durable]\nstonewall\nrw=write\nsync=dsync\n";

#[test]
#[ignore = "nightly"]
fn implausible_flush_is_said_of_a_device_that_reports_a_cache_and_flushes_nothing() {
    alone(|| {
        let disk = or_skip!(Disk::ext4(64 * MIB).and_then(Disk::without_flushes));
        let document = or_skip!(reported(&disk, DURABLE, "write_cache", "write back"));
        said(&document, "implausible-flush", &["durable"]);
    });
}

/// Returns the result of a direct read on a disk whose file system the kernel lists as `listed`.
fn read_from_zfs(listed: &str) -> Result<Document, String> {
    is_installed("unshare")?;
    let disk = Disk::ext4(64 * MIB)?;
    fs::write(disk.path().join("file"), vec![7; MIB as usize]).expect("room");
    let command = jobs(disk.path(), "[read]\nrw=read\nsize=1m\nfilename=file\ndirect=1\n", "");
    let list = fixtures::folder();
    // This replaces the process's own list; `exec` does not change the process's number.
    let script = "sed \"s/ - ext4 / - $0 /\" /proc/$$/mountinfo > \"$1/list\" && \
                  mount --bind \"$1/list\" /proc/$$/mountinfo && shift && exec \"$@\"";
    let mut listing = Command::new("unshare");
    listing.args(["--mount", "--propagation", "private", "sh", "-c", script, listed]);
    listing.arg(list.path()).arg(command.get_program()).args(command.get_args());
    listing.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = finish(&mut listing);
    match finished.stderr.contains("unshare: ") || finished.stderr.contains("mount: ") {
        true => Err(finished.stderr),
        false => Ok(document(&finished)),
    }
}

#[test]
fn zfs_cache_is_said_of_a_small_direct_read() {
    said(&or_skip!(read_from_zfs("zfs")), "zfs-cache", &["read"]);
}
