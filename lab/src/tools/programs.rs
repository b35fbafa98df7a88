//! Test programs, which are built by one command and run directly, two at a time.

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, MPI};
use crate::tools::report::{Counts, Outcome};
use crate::tools::repository::{cargo, target};
use crate::tools::run::{Finished, HANG, Show, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

const AT_ONCE: usize = 2;
/// The programs that take the longest. They are started first, so that none of them runs alone at
/// the end.
const FIRST: [(&str, &str); 4] =
    [("wrote-cli", "findings"), ("wrote-cli", "it"), ("wrote", "it"), ("wrote", "log")];

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the package.
    pub package: String,
    /// The name of the target: the library, a command, or a file in `tests`.
    pub target: String,
    /// The program itself.
    pub file: PathBuf,
    /// The package's folder.
    pub folder: PathBuf,
}

impl Program {
    /// Returns whether the program tests a package of the product, rather than a tool of this
    /// repository.
    pub fn ships(&self) -> bool {
        self.folder.parent().is_some_and(|parent| parent.ends_with("crates"))
    }

    /// Returns a job that runs this program by `command` with `arguments`.
    pub fn job(&self, mut command: Command, arguments: &[&str]) -> Job {
        // cargo sets the same variable and folder.
        command.args(arguments).env("CARGO_MANIFEST_DIR", &self.folder).current_dir(&self.folder);
        let own = (&*self.package, &*self.target);
        let place = FIRST.iter().position(|first| *first == own).unwrap_or(FIRST.len());
        Job { name: format!("{}: {}", self.package, self.target), command, place }
    }
}

/// Returns the features of all debug builds, as an argument for cargo: all features that are off by
/// default, but MPI only if its bindings can be built. Since all builds use the same features,
/// everything is built only once.
pub fn features() -> &'static str {
    static FEATURES: LazyLock<String> = LazyLock::new(|| {
        let mpi = if packages::are_there(MPI) { ",wrote-cli/mpi" } else { "" };
        format!("--features=wrote/tokio,wrote-cli/serve,wrote-cli/store,lab/verbs{mpi}")
    });
    &FEATURES
}

/// Builds all programs of the workspace, and all test programs except xtask's.
pub fn build() -> Result<Vec<Program>, Failure> {
    let words = ["build", "--workspace", "--exclude", "xtask"];
    built(cargo(&words).args(["--all-targets", features()]))
}

/// Returns a program of the debug build.
pub fn debug(program: &str) -> Result<PathBuf, Failure> {
    build()?;
    Ok(target().join("debug").join(program))
}

/// Runs the build `command`, and returns its test programs.
pub fn built(command: &mut Command) -> Result<Vec<Program>, Failure> {
    command.args(["--message-format", "json-render-diagnostics"]);
    let finished = run(command, HANG, Show::Errors)?.success("the build of the tests")?;
    Ok(named(&finished.stdout))
}

fn named(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Program {
            package: folder.file_name()?.to_string_lossy().into_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            file: message["executable"].as_str()?.into(),
            folder: folder.to_owned(),
        })
    };
    messages.filter(|message| message["profile"]["test"] == true).filter_map(program).collect()
}

/// One run of a test program.
pub struct Job {
    name: String,
    command: Command,
    /// The position of the program in the order of starting.
    place: usize,
}

/// The result of a [`Job`].
pub struct Ran {
    /// The names of the package and the target.
    pub name: String,
    /// How long the program ran.
    pub elapsed: Duration,
    counts: Counts,
}

impl Job {
    fn run(mut self) -> Result<Ran, Failure> {
        let begin = Instant::now();
        let (finished, mut counts) = counted(&mut self.command, Show::Quiet)?;
        let elapsed = begin.elapsed();
        for failure in &mut counts.failures {
            failure.insert_str(0, &format!("{}: ", self.name));
        }
        let (passed, seconds) = (counts.passed, elapsed.as_secs_f64());
        if counts.failed > 0 {
            eprint!("{}{}", finished.stdout, finished.stderr);
        }
        eprintln!("{}: {passed} passed, {} failed ({seconds:.1} s)", self.name, counts.failed);
        Ok(Ran { name: self.name, elapsed, counts })
    }
}

/// Runs all `jobs`, a few of them at once.
pub fn run_all(mut jobs: Vec<Job>) -> Result<Vec<Ran>, Failure> {
    jobs.sort_by_key(|job| job.place);
    let queue = Mutex::new(jobs.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).map(Job::run).collect::<Vec<_>>();
    let ran = thread::scope(|scope| {
        let workers = [(); AT_ONCE].map(|()| scope.spawn(work));
        workers.map(|worker| worker.join().expect("a worker does not panic"))
    });
    ran.into_iter().flatten().collect()
}

/// Runs the tests of a single cargo `command`.
pub fn cargo_tests(command: &mut Command) -> Result<Outcome, Failure> {
    counted(command, Show::Live).map(|(_, counts)| Outcome::Tests(counts))
}

/// Runs `command` and counts its tests. If a test skips itself, it appends the reason to a file.
fn counted(command: &mut Command, show: Show) -> Result<(Finished, Counts), Failure> {
    let skips = NamedTempFile::new().tried("a temporary file")?;
    let finished = run(command.env("WROTE_SKIPS_FILE", skips.path()), HANG, show)?;
    let skipped = std::fs::read_to_string(skips.path()).tried(skips.path().display())?;
    let counts = Counts::read(&finished, &skipped);
    Ok((finished, counts))
}

/// Returns the sum of the results.
pub fn sum(ran: &[Ran]) -> Counts {
    let mut sum = Counts::default();
    for Ran { counts, .. } in ran {
        sum.add(counts);
    }
    sum
}

#[cfg(test)]
mod tests;
