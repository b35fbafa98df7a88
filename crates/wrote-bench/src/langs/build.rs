//! Builds programs into the cache folder, once for each version of the source and of the compiler.

mod shelf;

use super::catalogue::Candidate;
use super::toolchain::run_tool;
use crate::child::{Outcome, shown};
use crate::progress::Ticker;
pub(super) use shelf::Shelf;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote_result::document::{Language, State};
use wrote_result::{Error, Stop};
use xxhash_rust::xxh3::Xxh3;

/// The source folder in the folder of a build.
const SOURCE: &str = "source";
const BUILD: &str = "build";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BuiltProgram {
    /// The command with its placeholders filled in. The workload's arguments follow it.
    pub run: Vec<String>,
    /// The arguments that follow the workload's arguments.
    pub arguments: Vec<String>,
    /// The folder of the build.
    pub folder: PathBuf,
}

/// Builds the programs, and returns them with the open shelf. A language whose build fails has no
/// program. While the shelf is open, no other process removes the programs.
///
/// # Errors
///
/// Like [`build`].
pub(super) fn build_all(
    chosen: &[Candidate],
    cache: &Path,
    languages: &mut [Language],
    stop: &Stop,
    ticker: &mut Ticker,
) -> Result<(Shelf, Vec<Option<BuiltProgram>>), Error> {
    let shelf = open(chosen, cache)?;
    let mut all = Vec::new();
    for of in chosen {
        stop.check()?;
        ticker.within(&format!("building {}", of.variant.name), 0.0);
        let built = build(of, &shelf, stop)?;
        if let Err(because) = &built {
            ticker.note(&format!("{} could not be built: {because}", of.variant.name));
            if let Some(language) = languages.iter_mut().find(|known| known.id == of.variant.id) {
                (language.state, language.because) = (State::BuildFailed, Some(because.clone()));
            }
        }
        all.push(built.ok());
    }
    Ok((shelf, all))
}

/// Opens the shelf for these programs.
fn open(chosen: &[Candidate], cache: &Path) -> Result<Shelf, Error> {
    let wanted: Vec<(&str, u64)> =
        chosen.iter().map(|of| (of.entry.id.as_str(), hash(of))).collect();
    Shelf::open(cache, &wanted)
}

/// Builds the program on the shelf, or reuses an earlier build of the same source by the same
/// toolchain. `Ok(Err(..))` is the compiler's failure, in one line.
///
/// A build that is killed leaves only a draft, which later runs ignore.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` is raised, [`Error::Failed`] if the shelf is not writable.
fn build(
    chosen: &Candidate,
    shelf: &Shelf,
    stop: &Stop,
) -> Result<Result<BuiltProgram, String>, Error> {
    let (id, hash) = (chosen.entry.id.as_str(), hash(chosen));
    if let Some(folder) = shelf.take(id, hash) {
        return Ok(Ok(built(chosen, folder)?));
    }
    let draft = shelf.draft()?;
    unpack(chosen, draft.path()).map_err(|error| {
        let folder = draft.path().display();
        Error::Failed(format!("{folder}: the program's files can't be written: {error}"))
    })?;
    if !chosen.tools.build.is_empty() {
        let command = filled(&chosen.tools.build, draft.path())?;
        if let Err(because) = compile(&command, &draft.path().join(BUILD), COMPILER_TIMEOUT, stop)?
        {
            // The output contains the draft's path, which no longer exists when the user reads it.
            let source = format!("{}/", utf8(&draft.path().join(SOURCE))?);
            return Ok(Err(because.replace(&source, "")));
        }
    }
    Ok(Ok(built(chosen, shelf.put(draft, id, hash)?)?))
}

fn built(chosen: &Candidate, folder: PathBuf) -> Result<BuiltProgram, Error> {
    let (run, arguments) = (filled(&chosen.tools.run, &folder)?, chosen.variant.arguments.clone());
    Ok(BuiltProgram { run, arguments, folder })
}

/// Hashes all inputs of a build: the names and contents of the files (including the manifest), the
/// command with the compiler's path, and the compiler's version.
fn hash(chosen: &Candidate) -> u64 {
    let mut hash = Xxh3::new();
    // The length of each part distinguishes adjacent parts from each other.
    let mut take = |part: &[u8]| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    take(&(chosen.entry.files.len() as u64).to_le_bytes());
    for (path, text) in &chosen.entry.files {
        take(path.as_os_str().as_encoded_bytes());
        take(text);
    }
    chosen.tools.build.iter().for_each(|word| take(word.as_bytes()));
    take(chosen.tools.version.as_bytes());
    hash.digest()
}

/// Writes the program's files into `{source}`, and creates the empty folder `{build}`.
fn unpack(chosen: &Candidate, draft: &Path) -> io::Result<()> {
    let source = draft.join(SOURCE);
    fs::create_dir(draft.join(BUILD))?;
    fs::create_dir(&source)?;
    for (path, text) in &chosen.entry.files {
        let path = source.join(path);
        fs::create_dir_all(path.parent().expect("a file in the folder"))?;
        // Embedded files have no permissions. Scripts begin with `#!`.
        let mode = if text.starts_with(b"#!") { 0o700 } else { 0o600 };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(text)?;
    }
    Ok(())
}

/// Replaces the placeholders in a command with subfolders of `folder`.
fn filled(words: &[String], folder: &Path) -> Result<Vec<String>, Error> {
    let source = utf8(&folder.join(SOURCE))?;
    let build = utf8(&folder.join(BUILD))?;
    let fill = |word: &String| word.replace("{source}", &source).replace("{build}", &build);
    Ok(words.iter().map(fill).collect())
}

fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::Failed(format!("{}: is not a UTF-8 path", path.display())))
}

/// The time limit of a build, sufficient for a program of a hundred lines on the slowest machine.
const COMPILER_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const WORDS_CHARS: usize = 200;

/// Runs a compiler in `folder`. `Ok(Err(..))` is the compiler's failure, in one line.
fn compile(
    command: &[String],
    folder: &Path,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<(), String>, Error> {
    let outcome = match run_tool(command, folder, timeout, stop)? {
        Ok(outcome) => outcome,
        Err(because) => return Ok(Err(because)),
    };
    let program = Path::new(&command[0]).file_name().unwrap_or_default().to_string_lossy();
    if outcome.timed_out() {
        let seconds = timeout.as_secs_f64();
        return Ok(Err(format!("{program} took longer than {seconds} s to build and was ended")));
    }
    let Some(failure) = outcome.status.failure() else {
        return Ok(Ok(()));
    };
    let words = meaningful_line(&outcome).map(|words| format!(": {words}")).unwrap_or_default();
    Ok(Err(format!("{program} {failure}{words}")))
}

/// Returns the first line that reports an error, because later errors are often consequences of the
/// first; without such a line, the last line.
fn meaningful_line(outcome: &Outcome) -> Option<String> {
    let texts = [&outcome.stderr, &outcome.stdout].map(|output| String::from_utf8_lossy(output));
    let cut = |text| str::lines(text).map(|line| shown(line, WORDS_CHARS));
    let lines = || texts.iter().map(|text| cut(text).filter(|line| !line.is_empty()));
    let names_error = |line: &String| line.to_ascii_lowercase().contains("error");
    let last = || lines().find_map(Iterator::last);
    lines().flatten().find(names_error).or_else(last)
}

#[cfg(test)]
mod tests;
