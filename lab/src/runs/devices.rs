//! The labs `nvme` and `faulty-disk`: run the library's tests in a guest with devices that the host
//! lacks, such as disks with poll queues and disks that fail.

use super::guest::{self, Disk, Guest, Module, Planned, checksum, module};
use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, DEVICE_MAPPER, NVME};
use crate::tools::report::{Outcome, Report};
use crate::tools::repository::release;
use crate::tools::run::HANG;
use std::path::{Path, PathBuf};

/// The library's test program.
const PROGRAM: &str = "it";

/// The file systems on disks with poll queues, each on its own controller, with their sizes. XFS
/// needs 300 MiB.
const DISKS: &[(&str, u64, &[&str])] = &[
    // Everything is initialised immediately, because a test would otherwise count transfers that
    // the kernel makes later.
    ("ext4", 320 << 20, &["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
    ("xfs", 320 << 20, &["-f"]),
];

const POLLED: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    checksum("crc64_rocksoft_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("nvme", "poll_queues=2"),
    // The device keeps its blocks in memory, so that written blocks can be read.
    module("null_blk", "poll_queues=2 nr_devices=1 gb=1 memory_backed=1"),
];

const FAULTY: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("loop", ""),
    module("dm-mod", ""),
    module("dm-flakey", ""),
    module("dm-delay", ""),
];

/// A lab that tests devices in a guest.
struct Lab {
    name: &'static str,
    /// The programs that the guest needs.
    programs: &'static [&'static str],
    /// The modules of the library's tests to run.
    tests: &'static [&'static str],
    script: &'static str,
    modules: &'static [Module],
    parameters: &'static str,
}

/// Runs the engine's tests on two NVMe disks and on `null_blk`, which all have poll queues.
///
/// If a part of the guest is missing, the lab fails if `install` is set, and is skipped otherwise.
pub fn nvme(report: &mut Report, install: bool) -> Result<(), Failure> {
    let lab = Lab {
        name: "nvme",
        programs: NVME,
        tests: &["engine::", "polled::"],
        script: include_str!("../../guest/nvme.sh"),
        modules: POLLED,
        parameters: "nvme.poll_queues=2 null_blk.poll_queues=2",
    };
    in_guest(report, &lab, install, |folder, _| {
        let disk = |&(fs, size_bytes, options): &(&str, u64, &[&str])| {
            let image = folder.join(format!("{fs}.image"));
            packages::image(&image, size_bytes, fs, options)?;
            Ok(Disk { serial: fs.to_owned(), image })
        };
        Ok((Vec::new(), DISKS.iter().map(disk).collect::<Result<_, Failure>>()?))
    })
}

/// Runs the tests of failing disks, both with io_uring and with io_uring refused.
///
/// If a part of the guest is missing, the lab fails if `install` is set, and is skipped otherwise.
pub fn faulty_disk(report: &mut Report, install: bool) -> Result<(), Failure> {
    let lab = Lab {
        name: "faulty-disk",
        programs: DEVICE_MAPPER,
        tests: &["faulty::"],
        script: include_str!("../../guest/faulty-disk.sh"),
        modules: FAULTY,
        parameters: "",
    };
    in_guest(report, &lab, install, |_, plan| {
        let mut tools = packages::files(&["dmsetup", "losetup", "mkfs.ext4", "mkfs.xfs"])?;
        tools.push(release("lab")?);
        plan.extend(plan.iter().filter_map(without_io_uring).collect::<Vec<_>>());
        Ok((tools, Vec::new()))
    })
}

/// Builds the tests of a lab, and runs them in its guest. `prepare` creates tools and disks in a
/// folder, and may extend the plan.
fn in_guest(
    report: &mut Report,
    lab: &Lab,
    install: bool,
    prepare: impl FnOnce(&Path, &mut Vec<Planned>) -> Result<(Vec<PathBuf>, Vec<Disk>), Failure>,
) -> Result<(), Failure> {
    let name = format!("lab {}", lab.name);
    // The report says why the guest is not available.
    let Some(base) = guest::base(report, &name, lab.programs, install)? else { return Ok(()) };
    let tests = || guest::library_tests(PROGRAM, lab.tests);
    let built = report.make(&format!("{name}: build"), tests)?;
    let Some((program, mut plan)) = built else { return Ok(()) };
    report.step(&format!("{name}: tests"), || {
        let logs = guest::logs(lab.name)?;
        let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
        let (tools, disks) = prepare(folder.path(), &mut plan)?;
        let guest = Guest {
            script: lab.script.to_owned(),
            modules: lab.modules,
            programs: &[(PROGRAM, &program.file)],
            tools: &tools,
            plan: &plan,
            disks: &disks,
            parameters: lab.parameters,
            limit: 2 * HANG,
        };
        let results = guest.run(&base, folder.path(), &logs)?;
        Ok(Outcome::Tests(results.counts(plan.len())))
    })
}

/// The module of the tests in which the library itself chooses the rung.
const CHOSEN: &str = "::chosen::";

/// Returns the same test for the engine's next rung, threads; `None` if the test names the rungs
/// itself.
fn without_io_uring(Planned { name, command }: &Planned) -> Option<Planned> {
    name.contains(CHOSEN).then(|| Planned {
        name: format!("{name}, without io_uring"),
        command: format!("lab confine --io-uring eperm -- /lab/{command}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_leaves_the_rung_to_the_library_is_confined() {
        let planned = |test| Planned {
            name: format!("it: faulty::{test}"),
            command: format!("it --exact faulty::{test}"),
        };
        let confined = without_io_uring(&planned("chosen::a")).expect("it is confined");
        assert_eq!(confined.name, "it: faulty::chosen::a, without io_uring");
        let expected = "lab confine --io-uring eperm -- /lab/it --exact faulty::chosen::a";
        assert_eq!(confined.command, expected);
        assert_eq!(without_io_uring(&planned("named::a")), None);
    }
}
