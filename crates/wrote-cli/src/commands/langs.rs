//! `wrote langs`: measures the cost of I/O in each language.

use crate::args::LangsArgs;
use crate::output::{self, ResultFiles};
use crate::progress::Reporter;
use crate::terminal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wrote_bench::langs::{self, catalogue};
use wrote_report::{Content, write_languages};
use wrote_result::document::{Document, Language};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &LangsArgs, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    if arguments.list {
        let languages = languages(arguments, stop)?;
        return output::to_stdout(|out| {
            write_languages(&languages, terminal::stdout_screen(), out)
        });
    }
    // The files are checked before the measurement, so that an hour's work does not end with
    // "exists already".
    let files = ResultFiles::of(&arguments.to)?;
    let document = measure(arguments, stop, command)?;
    files.deliver("langs.json", Content::Result(Box::new(document)), arguments.format)?;
    // The runs before the interruption have been shown.
    stop.check()
}

/// Returns the result of the measurement, after removing the bar from the screen, and the cache if
/// it is temporary.
fn measure(arguments: &LangsArgs, stop: &Stop, command: Vec<String>) -> Result<Document, Error> {
    let cache = Cache::of_user()?;
    let request = arguments.request(cache.path().to_owned(), command);
    langs::langs(&request, stop, &mut Reporter::default())
}

fn languages(arguments: &LangsArgs, stop: &Stop) -> Result<Vec<Language>, Error> {
    let wrote = std::env::current_exe().ok();
    catalogue(&arguments.add)?.find(&arguments.only, wrote.as_deref(), stop)
}

/// The folder in which programs are built.
#[derive(Debug)]
enum Cache {
    /// A folder that is kept for later runs.
    Kept(PathBuf),
    /// A folder that is removed when this is dropped.
    ForThisRun(TempDir),
}

impl Cache {
    /// Returns `$XDG_CACHE_HOME/wrote` or `~/.cache/wrote` (XDG Base Directory Specification, 0.8).
    /// Without a home directory, creates a new folder. In a folder that everyone can write to,
    /// another user could leave a program with a known name for this user to run.
    fn of_user() -> Result<Cache, Error> {
        let variable = |name| std::env::var_os(name);
        if let Some(path) = kept(variable("XDG_CACHE_HOME"), variable("HOME")) {
            return Ok(Cache::Kept(path));
        }
        let made = tempfile::Builder::new().prefix("wrote-").tempdir();
        made.map(Cache::ForThisRun).map_err(|error| {
            let temporary = std::env::temp_dir();
            Error::Failed(format!(
                "no folder to build programs in: {}: {error}",
                temporary.display()
            ))
        })
    }

    fn path(&self) -> &Path {
        match self {
            Cache::Kept(path) => path,
            Cache::ForThisRun(folder) => folder.path(),
        }
    }
}

/// Returns the folder according to the two variables; `None` if both are unusable. A relative path
/// is ignored: the specification demands this for `XDG_CACHE_HOME`, and a relative home directory
/// would depend on the working directory.
fn kept(cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(cache_home).or_else(|| Some(absolute(home)?.join(".cache")))?;
    Some(folder.join("wrote"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_specification_has_it() {
        let at = |cache_home: Option<&str>, home: Option<&str>| {
            kept(cache_home.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(at(Some("/c"), Some("/home/me")), Some("/c/wrote".into()));
        assert_eq!(at(None, Some("/home/me")), Some("/home/me/.cache/wrote".into()));
        for ignored in ["", "relative", "./c"] {
            assert_eq!(at(Some(ignored), Some("/me")), Some("/me/.cache/wrote".into()));
            assert_eq!(at(Some(ignored), Some(ignored)), None);
        }
        assert_eq!(at(None, None), None);
    }
}
