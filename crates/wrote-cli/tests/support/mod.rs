//! The program as it is run: `wrote` in a process of its own that never outlives its test.

#![allow(dead_code, reason = "each file of tests uses a part of this")]

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote_result::document::{Document, Row};

/// No run here takes a tenth of this on any disk; one that does hangs.
const LIMIT: Duration = Duration::from_secs(120);
/// How often something that will happen is looked for.
const TICK: Duration = Duration::from_millis(5);

/// What a run of the program came to.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The exit code; `None` where a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that killed it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// The result, of a run by `--format json`.
    pub fn document(&self) -> Document {
        assert_eq!(self.code(), Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The one line about what went wrong.
    pub fn complaint(&self) -> &str {
        assert_eq!(self.stdout, "", "{self:?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(matches!(lines[..], [line] if line.starts_with("wrote: ")), "{self:?}");
        lines[0]
    }
}

/// The program with these arguments, and with the environment of a script.
pub fn wrote<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wrote"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command
}

/// `wrote bench FOLDER` with more arguments, a word each.
pub fn bench(folder: &Path, more: &str) -> Command {
    let mut command = wrote(&["bench"]);
    command.arg(folder).args(more.split_whitespace());
    command
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Finished {
    Running::start(command).finish()
}

/// The program while it runs: killed when dropped.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    deadline: Instant,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().map(read);
        let stderr = child.stderr.take().map(read);
        Running { child, stdout, stderr, deadline: Instant::now() + LIMIT }
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// Waits until `there` gives something.
    pub fn until<T>(&mut self, what: &str, mut there: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = there() {
                return found;
            }
            assert!(Instant::now() < self.deadline, "{what}: waited in vain");
            assert!(!self.is_over(), "{what}: the run was over before");
            std::thread::sleep(TICK);
        }
    }

    /// Waits until a run's folder is below `parent` and holds a file that is being written.
    pub fn until_it_writes(&mut self, parent: &Path) -> PathBuf {
        let is_written = |path: &PathBuf| !job_files(path).is_empty();
        self.until("a job's file", || run_folders(parent).into_iter().find(is_written))
    }

    /// Does something again and again until the run is over.
    pub fn while_it_runs(&mut self, mut again: impl FnMut()) {
        while !self.is_over() {
            assert!(Instant::now() < self.deadline, "the program does not end");
            again();
            std::thread::sleep(TICK);
        }
    }

    /// Sends a signal, unless it is over.
    pub fn send(&mut self, signal: Signal) {
        // Not waited for, so the number is still its own, even where it has ended meanwhile.
        if !self.is_over() {
            kill_process(Pid::from_child(&self.child), signal).expect("a signal can be sent");
        }
    }

    pub fn finish(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                break status;
            }
            assert!(Instant::now() < self.deadline, "the program hangs");
            std::thread::sleep(TICK);
        };
        let text = |reader: &mut Option<JoinHandle<String>>| {
            reader.take().map(|reader| reader.join().expect("it is text")).unwrap_or_default()
        };
        Finished { status, stdout: text(&mut self.stdout), stderr: text(&mut self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).expect("the program says text");
        text
    })
}

/// A new folder beside what the build makes: on a disk where the build is on a disk.
pub fn folder() -> TempDir {
    TempDir::with_prefix_in("wrote-test-", env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The folders that runs made below `parent`.
pub fn run_folders(parent: &Path) -> Vec<PathBuf> {
    let names = names(parent).into_iter().filter(|name| name.starts_with(".wrote-"));
    names.map(|name| parent.join(name)).collect()
}

/// The files that a run is writing, or wrote.
pub fn job_files(folder: &Path) -> Vec<PathBuf> {
    let names = names(folder).into_iter().filter(|name| name.ends_with(".data"));
    names.map(|name| folder.join(name)).collect()
}

/// The row of this name.
pub fn row<'a>(document: &'a Document, name: &str) -> &'a Row {
    let mut rows = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    rows.find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}: {document:?}"))
}

/// The ids of the findings.
pub fn findings(document: &Document) -> Vec<&str> {
    document.findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// What a row of writes survives.
pub fn survived(row: &Row) -> &str {
    row.survives.as_deref().unwrap_or_else(|| panic!("{row:?}"))
}

/// How much a word of `survives` promises: 0 for `nothing`, 3 for `power-loss`.
pub fn strength(survives: &str) -> usize {
    let words = ["nothing", "process-crash", "os-crash", "power-loss"];
    words.iter().position(|word| *word == survives).unwrap_or_else(|| panic!("{survives:?}"))
}
