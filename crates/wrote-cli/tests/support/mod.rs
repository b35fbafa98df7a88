//! Functions that run the program `wrote` in tests, and read its results.

#![allow(dead_code, reason = "each program of tests uses a part of this")]

use fixtures::{Finished, Running, names};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wrote_result::document::{Document, Row, Survives};

/// Returns the command `wrote` with these arguments, in an environment like a script's.
pub fn wrote<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wrote"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command
}

/// Returns the command as an argument of the command `through`; the command itself if that is
/// empty.
pub fn run_through<S: AsRef<OsStr>>(through: &[S], command: Command) -> Command {
    let [program, arguments @ ..] = through else { return command };
    let mut whole = Command::new(program);
    whole.args(arguments).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    whole.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    whole
}

/// Returns the words that remove root's rights when placed before a command; empty for any other
/// user. The error is a reason to skip the test.
pub fn without_rights() -> Result<Vec<String>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Vec::new());
    }
    // Other users may not have access to the build, which may be below a private folder.
    let owner = fs::metadata(env!("CARGO_MANIFEST_DIR")).map_err(|error| error.to_string())?.uid();
    let user = format!("--reuid={owner}");
    let words = ["setpriv", &user, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
    let mut reaches = Command::new("test");
    reaches.args(["-x", env!("CARGO_BIN_EXE_wrote")]);
    match run_through(&words, reaches).output() {
        Ok(output) if output.status.success() => Ok(words.map(str::to_owned).into()),
        other => Err(format!("without root's rights the program cannot be run: {other:?}")),
    }
}

/// Returns the command `wrote bench FOLDER`. Each word of `more` is a further argument.
pub fn bench(folder: &Path, more: &str) -> Command {
    let mut command = wrote(&["bench"]);
    command.arg(folder).args(more.split_whitespace());
    command
}

/// Returns the result that a run printed with `--format json`; the run must have succeeded.
pub fn printed<T: DeserializeOwned>(finished: &Finished) -> T {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Returns the result of `wrote bench` or `wrote run`.
pub fn document(finished: &Finished) -> Document {
    printed(finished)
}

/// Returns a new terminal: the screen, and the end for a program. Once no process has that end
/// open, reading the screen fails (EIO).
pub fn terminal() -> rustix::io::Result<(File, File)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, Vec::new())?;
    let name = OsStr::from_bytes(name.to_bytes());
    let end = File::options().read(true).write(true).open(name).expect("the terminal's other end");
    Ok((screen.into(), end))
}

/// Waits until a run's folder below `parent` contains a file that is being written, and returns
/// that folder.
pub fn until_it_writes(run: &mut Running, parent: &Path) -> PathBuf {
    let is_written = |path: &PathBuf| !job_files(path).is_empty();
    run.until("a job's file", || run_folders(parent).into_iter().find(is_written))
}

/// Returns the folders that runs have created below `parent`.
pub fn run_folders(parent: &Path) -> Vec<PathBuf> {
    let names = names(parent).into_iter().filter(|name| name.starts_with(".wrote-"));
    names.map(|name| parent.join(name)).collect()
}

/// Returns the files that a run has written or is writing.
pub fn job_files(folder: &Path) -> Vec<PathBuf> {
    // The run may remove its folder at any moment.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension() == Some(OsStr::new("data"))).collect()
}

/// Returns the row with this name.
pub fn row<'a>(document: &'a Document, name: &str) -> &'a Row {
    let mut rows = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    rows.find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}: {document:?}"))
}

/// Returns the ids of the findings.
pub fn findings(document: &Document) -> Vec<&str> {
    document.findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// Returns the worst event that the writes of a row survive, which must be known.
pub fn survived(row: &Row) -> Survives {
    row.survives.unwrap_or_else(|| panic!("{row:?}"))
}

/// Compares a text with the file `tests/golden/NAME`. `WROTE_UPDATE_GOLDEN=1` rewrites the file;
/// read the difference before you commit it.
pub fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("WROTE_UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("the golden file can be written");
    }
    let golden = fs::read_to_string(&path).expect("the golden file is there");
    assert!(text == golden, "{name} differs from the text of now:\n{text}");
}
