//! Runs the engine's tests in a guest with poll queues: two NVMe disks and `null_blk`.

use super::guest::{self, Base, Disk, Guest, Module, Planned, checksum, module};
use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, NVME};
use crate::tools::programs::Program;
use crate::tools::report::{Outcome, Report};
use crate::tools::run::HANG;

const NAME: &str = "lab nvme: the engine's tests";
/// The library's test program, and its modules that test real devices.
const PROGRAM: &str = "it";
const MODULES_OF_TESTS: [&str; 2] = ["engine::", "polled::"];
const SCRIPT: &str = include_str!("../../guest/nvme.sh");

/// The file systems, each on its own controller, and their sizes: XFS needs 300 MiB.
const DISKS: &[(&str, u64, &[&str])] = &[
    // Initialised at once, because a test would count the kernel's later transfers.
    ("ext4", 320 << 20, &["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
    ("xfs", 320 << 20, &["-f"]),
];

const MODULES: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    checksum("crc64_rocksoft_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("nvme", "poll_queues=2"),
    // Its blocks are in memory, so that written blocks can be read.
    module("null_blk", "poll_queues=2 nr_devices=1 gb=1 memory_backed=1"),
];

/// Builds the tests, boots the guest, and reports each test's end.
///
/// A missing part of the guest is a failure; without `install` the lab is skipped.
pub fn lab(report: &mut Report, install: bool) -> Result<(), Failure> {
    if let Err(failure) = guest::check_possible(install, NVME) {
        return report.step("lab nvme", || Err::<(), _>(failure));
    }
    let fetch = || packages::require(NVME, Failure::Failed).and_then(|()| Base::fetch());
    let base = report.make("lab nvme: kernel and shell of the guest", fetch)?;
    let tests = || guest::library_tests(PROGRAM, &MODULES_OF_TESTS);
    let built = report.make("lab nvme: build", tests)?;
    match (base, built) {
        (Some(base), Some((program, plan))) => report.step(NAME, || run(&base, &program, &plan)),
        // The report has the reason.
        _ => Ok(()),
    }
}

fn run(base: &Base, program: &Program, plan: &[Planned]) -> Result<Outcome, Failure> {
    let logs = guest::logs("nvme")?;
    let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
    let mut disks = Vec::new();
    for (fs, size_bytes, options) in DISKS {
        let image = folder.path().join(format!("{fs}.image"));
        packages::image(&image, *size_bytes, fs, options)?;
        disks.push(Disk { serial: (*fs).to_owned(), image });
    }
    let guest = Guest {
        script: SCRIPT.to_owned(),
        modules: MODULES,
        programs: &[(PROGRAM, &program.file)],
        tools: &[],
        plan,
        disks: &disks,
        parameters: "nvme.poll_queues=2 null_blk.poll_queues=2",
        limit: HANG,
    };
    let results = guest.run(base, folder.path(), &logs)?;
    Ok(Outcome::Tests(results.counts(plan.len())))
}
