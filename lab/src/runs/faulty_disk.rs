//! Runs the library's tests of disks that fail in a guest, whose kernel has device-mapper.

use super::guest::{self, Base, Guest, Module, Planned, checksum, module};
use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, DEVICE_MAPPER};
use crate::tools::programs::Program;
use crate::tools::report::{Outcome, Report};
use crate::tools::repository::release;
use crate::tools::run::HANG;
use std::path::PathBuf;

const NAME: &str = "lab faulty-disk";
const SCRIPT: &str = include_str!("../../guest/faulty-disk.sh");
/// The library's test program, and its module for such disks.
const PROGRAM: &str = "it";
const MODULES_OF_TESTS: [&str; 1] = ["faulty::"];
/// The tests in which the library chooses the rung.
const CHOSEN: &str = "::chosen::";

const MODULES: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("loop", ""),
    module("dm-mod", ""),
    module("dm-flakey", ""),
    module("dm-delay", ""),
];

/// Builds the tests, boots the guest, and reports each test's end, with io_uring and where it is
/// refused.
///
/// A missing part of the guest is a failure; without `install` the lab is skipped.
pub fn lab(report: &mut Report, install: bool) -> Result<(), Failure> {
    if let Err(failure) = guest::check_possible(install, DEVICE_MAPPER) {
        return report.step(NAME, || Err::<(), _>(failure));
    }
    let fetch = || packages::require(DEVICE_MAPPER, Failure::Failed).and_then(|()| Base::fetch());
    let base = report.make("lab faulty-disk: kernel and shell of the guest", fetch)?;
    let built = report.make("lab faulty-disk: build", || {
        Ok((guest::library_tests(PROGRAM, &MODULES_OF_TESTS)?, release("lab")?))
    })?;
    match (base, built) {
        (Some(base), Some(((program, plan), lab))) => {
            report.step("lab faulty-disk: tests", || run_tests(&base, &program, &plan, lab))
        }
        // The report has the reason.
        _ => Ok(()),
    }
}

fn run_tests(
    base: &Base,
    program: &Program,
    plan: &[Planned],
    lab: PathBuf,
) -> Result<Outcome, Failure> {
    let logs = guest::logs("faulty-disk")?;
    let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
    let mut tools = packages::files(&["dmsetup", "losetup", "mkfs.ext4", "mkfs.xfs"])?;
    tools.push(lab);
    let plan: Vec<Planned> =
        plan.iter().cloned().chain(plan.iter().filter_map(without_io_uring)).collect();
    let guest = Guest {
        script: SCRIPT.to_owned(),
        modules: MODULES,
        programs: &[(PROGRAM, &program.file)],
        tools: &tools,
        plan: &plan,
        disks: &[],
        parameters: "",
        limit: 2 * HANG,
    };
    let results = guest.run(base, folder.path(), &logs)?;
    Ok(Outcome::Tests(results.counts(plan.len())))
}

/// Returns the same test on the next rung of the engine, threads; `None` where the test names the
/// rungs.
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
