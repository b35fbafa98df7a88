//! A language's compiler or interpreter: whether it is installed, and its version.

use super::manifest::{Manifest, Toolchain};
use crate::child::{Limits, Outcome, complaint, shown, supervise};
use itertools::Itertools;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wrote_result::{Error, Stop};

/// The time limit for printing a version. A JVM on a busy machine takes seconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
const VERSION_CHARS: usize = 80;
/// The maximum number of bytes of each output to keep. A compiler's first error may be far from the
/// end of its output.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tools {
    /// The toolchain's version, in one line.
    pub version: String,
    /// The build command, with the compiler's path and the placeholders `{source}` and `{build}`;
    /// empty if there is no build.
    pub build: Vec<String>,
    /// The command that runs the program.
    pub run: Vec<String>,
}

/// Returns the first installed toolchain of the manifest, or the reason why there is none, in one
/// line. Programs are searched for in `PATH` and then in `~/.local/bin`, which many shells omit. If
/// `wrote` is `None`, toolchains that consist of `wrote` itself are missing.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` is raised while a toolchain prints its version.
pub(super) fn find(
    manifest: &Manifest,
    wrote: Option<&Path>,
    stop: &Stop,
) -> Result<Result<Tools, String>, Error> {
    find_within(manifest, wrote, &Search::of_environment(), VERSION_TIMEOUT, stop)
}

/// Returns whether the manifest's program is `wrote` itself.
pub(super) fn is_wrote(manifest: &Manifest) -> bool {
    manifest.toolchains.iter().all(needs_wrote)
}

fn find_within(
    manifest: &Manifest,
    wrote: Option<&Path>,
    search: &Search,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<Tools, String>, Error> {
    let mut because: Vec<String> = Vec::new();
    for toolchain in &manifest.toolchains {
        match look_for(toolchain, wrote, search, timeout, stop)? {
            Ok(tools) => return Ok(Ok(tools)),
            Err(why) => because.push(why),
        }
    }
    Ok(Err(because.iter().unique().join("; ")))
}

/// Returns the toolchain with the paths of its programs, if all of them exist and the toolchain
/// prints its version.
fn look_for(
    toolchain: &Toolchain,
    wrote: Option<&Path>,
    search: &Search,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<Tools, String>, Error> {
    let wrote = match wrote.map(Path::to_str) {
        Some(None) => return Ok(Err("the path of wrote is not UTF-8".into())),
        None if needs_wrote(toolchain) => return Ok(Err("wrote itself was not found".into())),
        path => path.flatten().unwrap_or_default(),
    };
    let mut commands = toolchain.commands().map(|words| {
        let words = words.iter().map(|word| word.replace("{wrote}", wrote));
        words.collect::<Vec<String>>()
    });
    let mut missing = Vec::new();
    // A program in the folder of the source or of the build exists only when the toolchain is used.
    let programs = commands.iter_mut().filter_map(|words| words.first_mut());
    for program in programs.filter(|program| !program.starts_with('{')) {
        match search.find(program) {
            Some(path) => *program = path,
            None => missing.push(program.clone()),
        }
    }
    missing.extend(toolchain.needs.iter().filter(|name| search.find(name).is_none()).cloned());
    if !missing.is_empty() {
        let names = missing.iter().unique().join(", ");
        return Ok(Err(format!("{names}: not found in PATH nor in ~/.local/bin")));
    }
    let [version, build, run] = commands;
    let asked = toolchain.version.join(" ");
    Ok(ask_version(&asked, &version, timeout, stop)?.map(|version| Tools { version, build, run }))
}

fn needs_wrote(toolchain: &Toolchain) -> bool {
    toolchain.commands().into_iter().flatten().any(|word| word.contains("{wrote}"))
}

/// Returns the version that `command` prints. Errors refer to the command as `asked`.
fn ask_version(
    asked: &str,
    command: &[String],
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<String, String>, Error> {
    // In the root folder, no file selects another version (as files do for rustup, pyenv and go).
    let outcome = match run_tool(command, Path::new("/"), timeout, stop)? {
        Ok(outcome) => outcome,
        Err(because) => return Ok(Err(because)),
    };
    if outcome.timed_out() {
        return Ok(Err(format!("{asked}: did not answer within {} s", timeout.as_secs_f64())));
    }
    if let Some(failure) = outcome.status.failure() {
        let words = complaint(&outcome.stderr).or_else(|| complaint(&outcome.stdout));
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        return Ok(Err(format!("{asked}: {failure}{words}")));
    }
    // `java -version` prints to standard error.
    let version = version_line(&outcome.stdout).or_else(|| version_line(&outcome.stderr));
    Ok(version.ok_or_else(|| format!("{asked}: printed nothing")))
}

/// Runs a command of a toolchain until it terminates, with messages in English. `Ok(Err(..))`
/// explains why it can't be started.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` is raised.
pub(super) fn run_tool(
    words: &[String],
    folder: &Path,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<Outcome, String>, Error> {
    let limits = Limits {
        timeout,
        stdout_bytes_max: OUTPUT_BYTES_MAX,
        stderr_bytes_max: OUTPUT_BYTES_MAX,
        is_kept: true,
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(folder).env("LC_ALL", "C.UTF-8");
    match supervise(&mut command, limits, stop, &mut |_| ()) {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        ended => Ok(ended.map_err(|error| error.to_string())),
    }
}

/// Returns the first line that states a version, without the prefix that Kotlin prints.
fn version_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !is_aside(line));
    let mut shown =
        lines.map(|line| shown(line.strip_prefix("info: ").unwrap_or(line), VERSION_CHARS));
    shown.find(|line| !line.is_empty())
}

/// Returns whether a line does not belong to the version. A JVM first prints warnings and the
/// options that it found in the environment.
fn is_aside(line: &str) -> bool {
    line.starts_with("Picked up ") || line.to_ascii_lowercase().starts_with("warning:")
}

/// The folders in which programs are searched for, in order.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    folders: Vec<PathBuf>,
}

impl Search {
    /// Returns the folders of `PATH`, followed by `~/.local/bin`, where pip and many installers put
    /// programs. Omits relative folders, in which the program found depends on the working folder.
    pub(super) fn of_environment() -> Search {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let folders = std::env::split_paths(&path).chain(home.map(|home| home.join(".local/bin")));
        Search::of(folders.collect())
    }

    pub(super) fn of(mut folders: Vec<PathBuf>) -> Search {
        folders.retain(|folder| folder.is_absolute());
        Search { folders }
    }

    /// Returns the program's path, or `name` itself if it is a path; `None` if there is no such
    /// program or its path is not UTF-8.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        let paths = self.folders.iter().map(|folder| folder.join(name));
        let alone = name.contains('/').then(|| PathBuf::from(name));
        let mut paths = alone.iter().cloned().chain(paths.filter(|_| alone.is_none()));
        paths.find(|path| is_program(path))?.into_os_string().into_string().ok()
    }
}

/// Returns whether a path is a file that this process may execute.
fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests;
