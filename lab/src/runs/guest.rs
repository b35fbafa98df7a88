//! The guest of a lab: Debian's kernel and its modules in qemu, with the lab's programs and a plan
//! of commands.
//!
//! `lab/guest/init.sh` is the guest's first process. It defines the form of its input and its
//! report.

mod cache;
mod initramfs;
mod machine;
mod results;

pub use initramfs::{Module, checksum, module};
pub use results::Results;

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages;
use crate::tools::programs::{self, Program};
use crate::tools::report::Report;
use crate::tools::repository::{cargo, target};
use crate::tools::run::output;
use cache::Cached;
use initramfs::Kernel;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The target of static programs, because a guest has no libraries.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Strips debug information, which makes up half of a program, because the guest keeps programs in
/// memory.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C strip=debuginfo";

/// A guest that has not been booted.
pub struct Guest<'a> {
    /// The lab's own script, which makes its disks usable before the plan begins.
    pub script: String,
    /// The modules that the guest loads, in order.
    pub modules: &'a [Module],
    /// Static programs by their names in the guest's folder `/lab`.
    pub programs: &'a [(&'a str, &'a Path)],
    /// Programs of the host that are also put into the folder `/lab`, with the libraries that they
    /// need.
    pub tools: &'a [PathBuf],
    /// The commands to run, in order.
    pub plan: &'a [Planned],
    /// The guest's disks, in order.
    pub disks: &'a [Disk],
    /// Additional kernel parameters.
    pub parameters: &'a str,
    /// The time limit, after which the machine is stopped.
    pub limit: Duration,
}

/// A command in a guest's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The name of the command in the report.
    pub name: String,
    /// The command line for the guest's shell, which has `/lab` in its `PATH`.
    pub command: String,
}

/// A disk of a guest, which appears there as an NVMe disk with a volatile cache.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The serial number of the disk's controller. The guest uses it to find the disk.
    pub serial: String,
    /// The image file. A relative path is in the lab's temporary folder.
    pub image: PathBuf,
}

/// A downloaded kernel and shell.
pub struct Base(Cached);

/// Returns the kernel and the shell for the guest of `lab`, which needs `programs`. Returns `None`
/// if that is not possible, and reports the reason. Without `install`, nothing is downloaded.
pub fn base(
    report: &mut Report,
    lab: &str,
    programs: &[&'static str],
    install: bool,
) -> Result<Option<Base>, Failure> {
    let fetch = || {
        check_possible(install, programs)?;
        packages::require(programs, Failure::Failed)?;
        cache::fetch().map(Base)
    };
    report.make(&format!("{lab}: kernel and shell of the guest"), fetch)
}

/// Fails with the reason to skip a guest that needs `programs`. Without `install`, nothing may be
/// downloaded.
fn check_possible(install: bool, programs: &[&'static str]) -> Result<(), Failure> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Failure::Skipped("the guest's programs are built for x86_64".into()));
    }
    if install {
        return Ok(());
    }
    packages::require(programs, Failure::Skipped)?;
    match cache::find() {
        Ok(None) => Err(Failure::Skipped("the guest's kernel was not downloaded yet".to_owned())),
        // A defect of the cache is reported when the cache is used.
        _ => Ok(()),
    }
}

/// Creates the folder `target/lab-NAME`, which keeps the guest's last output.
pub fn logs(name: &str) -> Result<PathBuf, Failure> {
    let logs = target().join(format!("lab-{name}"));
    std::fs::create_dir_all(&logs).tried(logs.display())?;
    Ok(logs)
}

impl Guest<'_> {
    /// Boots the guest, runs the plan, and prints how each command ended. Large files are put into
    /// `folder`, the guest's output into `logs`.
    ///
    /// Fails if the guest does not boot. A failed command is only part of the results.
    pub fn run(&self, base: &Base, folder: &Path, logs: &Path) -> Result<Results, Failure> {
        let kernel = Kernel::unpack(&base.0.kernel, self.modules, folder)?;
        let initramfs = initramfs::make(folder, &base.0, &kernel, self)?;
        let mut shown = 0;
        let said = |results: &Results| shown = show(results, shown);
        machine::run(self, &kernel.image, &initramfs, (folder, logs), said)
    }
}

/// Prints the commands that have ended after the first `shown` ones, with their facts, or with
/// their output if they failed. Returns the number of commands printed so far.
fn show(results: &Results, shown: usize) -> usize {
    let ended = results.ended();
    for test in &ended[shown..] {
        eprintln!("{} ... {}", test.name, test.word());
        if test.passed() {
            test.facts().for_each(|fact| eprintln!("  {fact}"));
        } else {
            eprint!("{}", test.said);
        }
    }
    ended.len()
}

/// Builds the library's test program `name` for guests, and plans its tests in `modules`.
///
/// All labs request the same build, so that cargo performs it only once.
pub fn library_tests(name: &str, modules: &[&str]) -> Result<(Program, Vec<Planned>), Failure> {
    let mut command = cargo(&["test", "-p", "wrote", "--no-run"]);
    // Since the target is given explicitly, the flags do not apply to macros, which run on the
    // host.
    command.args(["--target", TARGET]).env("RUSTFLAGS", RUSTFLAGS);
    // The tests are optimised, because the emulated processor is slow.
    command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    let built = programs::built(command.args(["--test", name]))?.into_iter().next();
    let program = built.ok_or_else(|| Failure::Failed(format!("cargo built no tests {name}")))?;
    let mut list = Command::new(&program.file);
    let list = output(list.args(["--list", "--format", "terse"]), name)?;
    let is_meant = |test: &&str| modules.iter().any(|module| test.starts_with(module));
    let planned = |test| Planned {
        name: format!("{name}: {test}"),
        command: format!("{name} --exact {test}"),
    };
    let plan = names(&list).filter(is_meant).map(planned).collect();
    Ok((program, plan))
}

/// Returns the names of the tests in the harness's list.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.strip_suffix(": test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_are_taken_from_the_list() {
        let listed: Vec<_> = names("a_test: test\na_bench: benchmark\n\nb::c: test\n").collect();
        assert_eq!(listed, ["a_test", "b::c"]);
    }
}
