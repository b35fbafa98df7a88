//! fio and `wrote run` on the same job file, and what each of them took.

use super::cpu::children_cpu_s;
use super::fio_json::{self, Output};
use super::job::Job;
use super::measured::Measured;
use super::ratio::Figures;
use super::wrote::check_fallbacks;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run as run_command};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10 * 60);
/// How often the start-up is measured.
const START_UPS: usize = 5;

/// Who runs a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `wrote run`.
    Wrote,
    /// fio.
    Fio,
}

/// Both programs.
#[derive(Debug)]
pub struct Programs {
    /// The command `wrote`, where it is whatever the current folder.
    pub wrote: PathBuf,
    /// fio, likewise or by its name.
    pub fio: PathBuf,
}

/// Where and how a program runs.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The current folder: job files are written there, and relative names are below it.
    pub folder: &'a Path,
    /// A command that runs the program, such as `taskset -c 1`; may be empty.
    pub under: &'a [String],
}

/// One run of a job file.
#[derive(Debug)]
pub struct Ran {
    /// What the program says of it.
    pub output: Output,
    /// CPU seconds of the whole process with its kernel threads, start-up included.
    pub cpu_s: f64,
    /// All that it wrote to stdout, and what runs it besides.
    pub stdout: String,
    /// All that it wrote to stderr.
    pub stderr: String,
}

impl Side {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Side::Wrote => "wrote",
            Side::Fio => "fio",
        }
    }

    /// The arguments with which the program runs the job file `file` and prints fio's JSON.
    fn arguments(self, file: &str) -> Vec<&str> {
        match self {
            Side::Wrote => wrote_arguments(file, "fio-json"),
            Side::Fio => vec!["--output-format=json", "--eta=never", file],
        }
    }

    /// The command as one would type it.
    pub fn describe(self, job: &Job, under: &[String]) -> String {
        let file = job.file_name();
        let mut words: Vec<&str> = under.iter().map(String::as_str).collect();
        words.push(self.name());
        words.extend(self.arguments(&file));
        words.join(" ")
    }
}

/// The one place that knows how `wrote` runs a job file. `--overwrite` is for what the other side
/// left behind.
fn wrote_arguments<'a>(file: &'a str, format: &'a str) -> Vec<&'a str> {
    vec!["run", file, "--format", format, "--overwrite"]
}

impl Programs {
    /// Runs `job` once.
    pub fn run(&self, side: Side, job: &Job, setting: Setting) -> Result<Ran, Failure> {
        let file = write(job, setting.folder)?;
        let program = match side {
            Side::Wrote => &self.wrote,
            Side::Fio => &self.fio,
        };
        let mut command = setting.command(program);
        command.args(side.arguments(&file));
        let cpu_before_s = children_cpu_s()?;
        let finished = run_command(&mut command, LIMIT, Show::Quiet)?;
        let cpu_s = children_cpu_s()? - cpu_before_s;
        let finished = finished.success(&format!("{} {file}", side.name()))?;
        let output = fio_json::parse(&finished.stdout, side.name())?;
        Ok(Ran { output, cpu_s, stdout: finished.stdout, stderr: finished.stderr })
    }

    /// Fails where wrote falls back from what `job` says: then it would do something else than fio.
    /// A single operation shows it, in wrote's own result: fio's layout has no place for it.
    pub fn check_fallbacks(
        &self,
        job: &Job,
        operation_bytes: u64,
        setting: Setting,
    ) -> Result<(), Failure> {
        let file = write(&job.for_bytes(operation_bytes), setting.folder)?;
        let mut command = setting.command(&self.wrote);
        command.args(wrote_arguments(&file, "json"));
        let finished = run_command(&mut command, LIMIT, Show::Quiet)?;
        let finished = finished.success(&format!("wrote {file}"))?;
        check_fallbacks(&finished.stdout, &file)
    }

    /// CPU seconds of the same job with a single operation of `operation_bytes`: what the program
    /// takes to start, to make its buffers and to print. `prepare` comes before each run.
    pub fn start_up_cpu_s(
        &self,
        side: Side,
        job: &Job,
        operation_bytes: u64,
        setting: Setting,
        prepare: impl Fn() -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let job = job.for_bytes(operation_bytes);
        let mut cpu_s = Vec::with_capacity(START_UPS);
        for _ in 0..START_UPS {
            prepare()?;
            cpu_s.push(self.run(side, &job, setting)?.cpu_s);
        }
        Ok(Figures::new(cpu_s).median())
    }
}

/// Writes the job file into `folder` and gives its name.
fn write(job: &Job, folder: &Path) -> Result<String, Failure> {
    let file = job.file_name();
    let path = folder.join(&file);
    std::fs::write(&path, job.text()).tried(path.display())?;
    Ok(file)
}

impl Setting<'_> {
    fn command(&self, program: &Path) -> Command {
        let mut command = match self.under {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command.current_dir(self.folder);
        command
    }
}

impl Ran {
    /// The work itself: CPU time without the start-up's. fio's own account leaves out the kernel's
    /// threads (it is of one thread, `RUSAGE_THREAD`), so both sides are judged by the process's.
    pub fn measured(&self, start_up_cpu_s: f64) -> Measured {
        let Output { bytes, elapsed_s, .. } = self.output;
        Measured { bytes, elapsed_s, cpu_s: (self.cpu_s - start_up_cpu_s).max(0.0) }
    }

    /// Fails unless all operations were of `operation_bytes` each.
    pub fn check_operations(&self, side: Side, operation_bytes: u64) -> Result<(), Failure> {
        let Output { bytes, operations, .. } = self.output;
        if operations.checked_mul(operation_bytes) == Some(bytes) {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{}: {operations} operations of {operation_bytes} bytes are not {bytes} bytes",
            side.name()
        )))
    }
}

/// Programs that print a fixed result, for the tests of what calls them.
#[cfg(test)]
pub mod fake {
    use super::Programs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Two scripts in `folder`: each adds its arguments to the file `calls` in the current folder
    /// and prints a job of so many operations of so many bytes, wrote in half of fio's second. In
    /// wrote's own format the job did all that it was told to do.
    pub fn programs(folder: &Path, operations: u64, operation_bytes: u64) -> Programs {
        let script = |name: &str, runtime_ms: u32| {
            let path = folder.join(name);
            let bytes = operations * operation_bytes;
            let text = format!(
                "#!/bin/sh\necho \"{name} $*\" >> calls\n\
                 case \"$*\" in *'--format json'*)\n\
                 echo '{{\"scenarios\": [{{\"rows\": [{{\"settings\": {{\"fallbacks\": []}}}}]}}]}}'\n\
                 exit;; esac\ncat <<END\n\
                 {{\"jobs\": [{{\"error\": 0, \"job_runtime\": {runtime_ms}, \"usr_cpu\": 1.0, \
                 \"sys_cpu\": 1.0, \"write\": {{\"io_bytes\": {bytes}, \"runtime\": {runtime_ms}, \
                 \"total_ios\": {operations}}}}}]}}\nEND\n"
            );
            std::fs::write(&path, text).expect("room");
            let permissions = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, permissions).expect("our own file");
            path
        };
        Programs { wrote: script("wrote", 500), fio: script("fio", 1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::random_read;
    use super::*;

    fn setting(folder: &Path) -> Setting<'_> {
        Setting { folder, under: &[] }
    }

    #[test]
    fn both_run_the_same_file_and_are_read_alike() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 10, 4096);
        let job = random_read("random-read", "testfile", "1m");
        for (side, elapsed_s) in [(Side::Wrote, 0.5), (Side::Fio, 1.0)] {
            let ran = programs.run(side, &job, setting(folder.path())).expect("a script");
            assert_eq!((ran.output.bytes, ran.output.elapsed_s), (40_960, elapsed_s));
            ran.check_operations(side, 4096).expect("ten of them");
            let message = ran.check_operations(side, 512).expect_err("too few").to_string();
            assert!(message.ends_with("10 operations of 512 bytes are not 40960 bytes"));
        }
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
        assert_eq!(
            calls,
            "wrote run random-read.fio --format fio-json --overwrite\n\
             fio --output-format=json --eta=never random-read.fio\n"
        );
        let written = std::fs::read_to_string(folder.path().join("random-read.fio"));
        assert_eq!(written.expect("the job file"), job.text());
    }

    #[test]
    fn a_program_may_be_run_by_another() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 1, 4096);
        let job = random_read("random-read", "testfile", "1m");
        let under = ["env".to_owned(), "-u".to_owned(), "HOME".to_owned()];
        let setting = Setting { folder: folder.path(), under: &under };
        assert_eq!(programs.run(Side::Fio, &job, setting).expect("env").output.operations, 1);
        assert_eq!(
            Side::Fio.describe(&job, &under),
            "env -u HOME fio --output-format=json --eta=never random-read.fio"
        );
    }

    #[test]
    fn wrotes_own_result_says_whether_it_did_what_the_job_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 1, 4096);
        let job = random_read("random-read", "testfile", "1m").for_seconds(3);
        programs.check_fallbacks(&job, 4096, setting(folder.path())).expect("no fallback");
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
        assert_eq!(calls, "wrote run random-read.fio --format json --overwrite\n");
        let written = std::fs::read_to_string(folder.path().join("random-read.fio"));
        assert_eq!(written.expect("the job file"), job.for_bytes(4096).text());
    }

    #[test]
    fn the_start_up_does_not_count_as_work() {
        let output = Output { bytes: 1000, operations: 1, elapsed_s: 2.0, cpu_s: 0.1 };
        let ran = Ran { output, cpu_s: 0.75, stdout: String::new(), stderr: String::new() };
        let measured = ran.measured(0.25);
        assert_eq!(measured, Measured { bytes: 1000, elapsed_s: 2.0, cpu_s: 0.5 });
        assert_eq!(ran.measured(1.0).cpu_s, 0.0);
    }
}
