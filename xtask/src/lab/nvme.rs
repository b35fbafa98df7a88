//! Runs the engine's tests in a guest with poll queues: two NVMe disks and `null_blk`.

mod cache;
mod guest;
mod initramfs;
mod kernel;
mod programs;
mod results;

use crate::failure::{Failure, Tried};
use crate::packages::{self, GUEST};
use crate::report::{Outcome, Report};
use crate::repository::target;
use guest::Guest;
use programs::Program;
use results::{Results, Test};

const NAME: &str = "lab nvme: the engine's tests";

/// Builds the tests, boots the guest, and reports each test's end.
///
/// A missing part of the guest is a failure; without `install` the lab is skipped.
pub fn lab(report: &mut Report, install: bool) -> Result<(), Failure> {
    if let Some(because) = impossible(install) {
        return report.step("lab nvme", || Ok(Outcome::Skipped(because)));
    }
    let mut cached = None;
    report.step("lab nvme: kernel and shell of the guest", || {
        packages::require(GUEST)?;
        cached = Some(cache::fetch()?);
        Ok(Outcome::Passed)
    })?;
    let mut built = None;
    report.step("lab nvme: build", || {
        built = Some(programs::build()?);
        Ok(Outcome::Passed)
    })?;
    match (cached, built) {
        (Some(cached), Some(programs)) => report.step(NAME, || run(&cached, &programs)),
        // The report has the reason.
        _ => Ok(()),
    }
}

/// Returns the reason to skip the lab.
fn impossible(install: bool) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the guest's programs are built for x86_64".into());
    }
    if install {
        return None;
    }
    let missing = packages::missing(GUEST);
    if !missing.is_empty() {
        return Some(packages::describe(&missing));
    }
    // A defect of the cache is reported when it is used.
    let nothing = matches!(cache::find(), Ok(None));
    nothing.then(|| "the guest's kernel was not downloaded yet".to_owned())
}

fn run(cached: &cache::Cached, programs: &[Program]) -> Result<Outcome, Failure> {
    let logs = std::path::absolute(target().join("lab-nvme")).tried("the target folder")?;
    std::fs::create_dir_all(&logs).tried(logs.display())?;
    let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
    let kernel = kernel::Kernel::unpack(&cached.kernel, folder.path())?;
    let initramfs = initramfs::make(folder.path(), cached, &kernel, programs)?;
    let guest =
        Guest { kernel: &kernel.image, initramfs: &initramfs, folder: folder.path(), logs: &logs };
    let mut shown = 0;
    let results = guest.run(|results| {
        shown = show(results, shown);
    })?;
    let planned = programs.iter().map(|program| program.tests.len()).sum();
    let counts = results.counts(planned);
    let trouble = (!results.done).then(|| "the guest ended before the last test".to_owned());
    Ok(Outcome::Tests(counts, trouble))
}

/// Prints the tests that have ended after the first `shown`; returns the number of printed tests.
fn show(results: &Results, shown: usize) -> usize {
    let ended = results.ended();
    for test in &ended[shown..] {
        eprintln!("{} ... {}", test.name, test.word());
        show_said(test);
    }
    ended.len()
}

/// Prints the output of a failed test, or the facts of one that passed.
fn show_said(test: &Test) {
    if test.passed() {
        test.facts().for_each(|fact| eprintln!("  {fact}"));
    } else {
        eprint!("{}", test.said);
    }
}
