//! A language's compiler or interpreter: whether it is there, and what it says of itself.

mod search;

use super::child::{Limits, supervise};
use super::manifest::{Manifest, Toolchain};
use super::said::complaint;
pub(super) use search::Search;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use wrote_result::{Error, Stop};

/// How long a toolchain may take to say its version: a JVM on a busy machine takes seconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of a version is shown, in characters.
const VERSION_CHARS: usize = 80;
/// How much of either output is looked at.
const OUTPUT_BYTES: usize = 16 << 10;

/// A toolchain that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tools {
    /// What it says of itself, one line.
    pub version: String,
    /// The command that builds, its program as a path; still with `{source}` and `{build}`. Empty where
    /// nothing is built.
    pub build: Vec<String>,
    /// The command that runs.
    pub run: Vec<String>,
}

/// The first toolchain of the manifest that is there, else why none is, one line. Programs are looked for
/// in `PATH` and then in `~/.local/bin`, which many shells leave out. Without `wrote`, the toolchains that
/// are `wrote` itself are not there.
///
/// # Errors
///
/// [`Error::Interrupted`] when `stop` is raised while a toolchain is asked for its version.
pub(super) fn find(
    manifest: &Manifest,
    wrote: Option<&Path>,
    stop: &Stop,
) -> Result<Result<Tools, String>, Error> {
    find_within(manifest, wrote, &Search::of_environment(), VERSION_TIMEOUT, stop)
}

/// Whether the manifest's program is `wrote` itself.
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
            Err(why) if because.contains(&why) => {}
            Err(why) => because.push(why),
        }
    }
    Ok(Err(because.join("; ")))
}

/// The toolchain with its programs' paths, if all are there and it says its version.
fn look_for(
    toolchain: &Toolchain,
    wrote: Option<&Path>,
    search: &Search,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<Tools, String>, Error> {
    let wrote = wrote.map(|path| path.to_str().ok_or("the path of wrote is not UTF-8"));
    let wrote = match wrote {
        Some(Err(because)) => return Ok(Err(because.into())),
        None if needs_wrote(toolchain) => return Ok(Err("wrote itself is not at hand".into())),
        Some(Ok(path)) => path,
        None => "",
    };
    let commands = toolchain.commands().map(|words| {
        let words = words.iter().map(|word| word.replace("{wrote}", wrote));
        with_path(words.collect(), search)
    });
    let missing = missing(toolchain, &commands, search);
    let [Ok(version), Ok(build), Ok(run)] = commands else {
        return Ok(Err(search::not_found(&missing)));
    };
    if !missing.is_empty() {
        return Ok(Err(search::not_found(&missing)));
    }
    let asked = toolchain.version.join(" ");
    Ok(ask_version(&asked, &version, timeout, stop)?.map(|version| Tools { version, build, run }))
}

fn needs_wrote(toolchain: &Toolchain) -> bool {
    toolchain.commands().into_iter().flatten().any(|word| word.contains("{wrote}"))
}

/// The command with its program as a path; the program's name where it is not there.
fn with_path(mut words: Vec<String>, search: &Search) -> Result<Vec<String>, String> {
    let Some(program) = words.first_mut() else {
        return Ok(words);
    };
    // What is built, or comes with the source, is there when it is run.
    if program.starts_with('{') {
        return Ok(words);
    }
    match search.find(program) {
        Some(path) => {
            *program = path;
            Ok(words)
        }
        None => Err(program.clone()),
    }
}

/// The programs that were not found, each once.
fn missing(
    toolchain: &Toolchain,
    commands: &[Result<Vec<String>, String>; 3],
    search: &Search,
) -> Vec<String> {
    let needed = toolchain.needs.iter().filter(|name| search.find(name).is_none());
    let mut missing: Vec<String> = Vec::new();
    for name in commands.iter().filter_map(|command| command.as_ref().err()).chain(needed) {
        if !missing.contains(name) {
            missing.push(name.clone());
        }
    }
    missing
}

/// What `command` prints of its version. `asked` is how it is named where it does not.
fn ask_version(
    asked: &str,
    command: &[String],
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<String, String>, Error> {
    let limits = Limits { timeout, stdout_bytes_max: OUTPUT_BYTES, stderr_bytes_max: OUTPUT_BYTES };
    let ended = supervise(&mut neutral(command), limits, stop, &mut |_| ());
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => return Ok(Err(error.to_string())),
    };
    if outcome.timed_out() {
        return Ok(Err(format!("{asked}: did not answer within {} s", timeout.as_secs_f64())));
    }
    if let Some(failure) = outcome.status.failure() {
        let words = complaint(&outcome.stderr).or_else(|| complaint(&outcome.stdout));
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        return Ok(Err(format!("{asked}: {failure}{words}")));
    }
    // `java -version` answers on standard error.
    let version = version_line(&outcome.stdout).or_else(|| version_line(&outcome.stderr));
    Ok(version.ok_or_else(|| format!("{asked}: says nothing")))
}

/// A command of a toolchain's: in English, and in a folder where nothing makes it another toolchain (rustup,
/// pyenv and go look for files of the working folder that choose a version).
pub(super) fn neutral(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/").env("LC_ALL", "C.UTF-8");
    command
}

/// The first line of the version, which Kotlin calls an information.
fn version_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().filter(|line| !is_aside(line));
    lines.find_map(|line| shown(line.strip_prefix("info: ").unwrap_or(line), VERSION_CHARS))
}

/// Whether it is none of the version's: a JVM says first what it took from the environment, and warns of what
/// the program does that runs in it.
fn is_aside(line: &str) -> bool {
    line.starts_with("Picked up ") || line.to_ascii_lowercase().starts_with("warning:")
}

/// The line as it can be shown: trimmed, without control characters, not longer than `chars_max`. None where
/// nothing is left of it.
pub(super) fn shown(line: &str, chars_max: usize) -> Option<String> {
    let spaced = line.replace('\t', " ");
    let clean: String = spaced.chars().filter(|character| !character.is_control()).collect();
    let clean = clean.trim();
    if clean.is_empty() {
        return None;
    }
    if clean.chars().count() <= chars_max {
        return Some(clean.to_owned());
    }
    let cut: String = clean.chars().take(chars_max - 1).collect();
    Some(format!("{}…", cut.trim_end()))
}

#[cfg(test)]
mod tests;
