//! The subjects that write during a power cut: their trait and names.

use crate::process::Process;
use crate::verbs::power_cut::content::CheckResult;
use crate::verbs::power_cut::copies::Copies;
use crate::verbs::power_cut::lines;
use crate::verbs::power_cut::logs::{Logs, Safety};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::saves::{Saves, Way};
use crate::verbs::power_cut::streams::Streams;
use crate::verbs::power_cut::wal::Wal;
use clap::ValueEnum;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use wrote::{Action, Error};

/// Reports a promise from any thread; it is written when the call returns.
pub type Reporter<'a> = &'a (dyn Fn(&Line) -> Result<(), Error> + Sync);

/// A subject that writes until the power is cut, and knows which files must remain.
pub trait Subject {
    /// Creates and syncs the files that must exist before the start.
    fn prepare(&self) -> io::Result<()>;

    /// Prepares the rest before the clock starts; its result is not a promise yet.
    fn get_ready(&mut self, _seed: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Writes until the first error, and reports each promise as soon as it is made.
    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error>;

    /// Compares the remaining files with the promises. Fails if it cannot read them.
    fn check(&self, said: &Report) -> io::Result<CheckResult>;

    /// The most promises that may be made after the power is gone: promises that rest on flushes in
    /// flight at the cut.
    fn late_max(&self) -> usize {
        1
    }

    /// Reopens the written files repeatedly, and reports each time which exist permanently; `None`
    /// for a subject whose files do not change by opening. Ends with the first error.
    fn reopen(&self, _say: Reporter) -> Option<Error> {
        None
    }
}

/// The subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// `wrote::write` over one file, repeatedly.
    Save,
    /// `wrote::Writer::replace` and `commit` over one file, repeatedly.
    Replace,
    /// A `wrote::Writer`, synced now and then, file after file.
    Writer,
    /// `wrote::copy` to new names.
    Copy,
    /// A `wrote::Log`, with a wait for each record until it is durable.
    Log,
    /// A `wrote::Log` with a sync now and then, and without its oldest segments.
    LogSync,
    /// A log behind `wrote_serve::Server`, with an answer to each record once it is durable.
    LogServed,
    /// A `wrote::Lines`, with a wait for each line until it is durable.
    Lines,
    /// A `wrote::Log` as a write-ahead log: groups, trims and cuts.
    Wal,
    /// As `save`, by the standard library: write, fsync, rename, fsync of the folder.
    ByHand,
    /// As `by-hand` without the last step. Its promise is false.
    UnsyncedFolder,
    /// `std::fs::write` over one file. Its promise is false.
    Unsynced,
    /// As `save`, by the Python package.
    SavePython,
    /// As `save`, by the npm package.
    SaveNode,
    /// As `log`, by tasks of the Python package.
    LogPython,
    /// As `log`, by promises of the npm package.
    LogNode,
}

impl Name {
    /// Returns its name in arguments, file names and lines.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Makes the subject, in a new folder below `folder`.
    pub fn in_folder(self, folder: &Path) -> Box<dyn Subject> {
        let folder = folder.join(self.word());
        match self {
            Name::Save => Box::new(Saves::new(&folder, Way::Wrote)),
            Name::Replace => Box::new(Saves::new(&folder, Way::Replace)),
            Name::ByHand => Box::new(Saves::new(&folder, Way::ByHand)),
            Name::UnsyncedFolder => Box::new(Saves::new(&folder, Way::UnsyncedFolder)),
            Name::Unsynced => Box::new(Saves::new(&folder, Way::Unsynced)),
            Name::Writer => Box::new(Streams::new(&folder)),
            Name::Copy => Box::new(Copies::new(&folder)),
            Name::Log => Box::new(Logs::new(&folder, Safety::Record)),
            Name::LogSync => Box::new(Logs::new(&folder, Safety::Sync)),
            Name::Lines => Box::new(lines::File::new(&folder)),
            Name::Wal => Box::new(Wal::new(&folder)),
            Name::LogServed => Box::new(Logs::new(&folder, Safety::Served)),
            Name::SavePython => Box::new(Saves::new(&folder, Way::Foreign(Language::Python))),
            Name::SaveNode => Box::new(Saves::new(&folder, Way::Foreign(Language::Node))),
            Name::LogPython => Box::new(Logs::new(&folder, Safety::Foreign(Language::Python))),
            Name::LogNode => Box::new(Logs::new(&folder, Safety::Foreign(Language::Node))),
        }
    }
}

/// Creates a durable folder.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file(path, Action::Remove, None, &error))
        }
        _ => Ok(()),
    }
}

/// Makes the error of a promise that could not be reported.
pub fn unsaid(trouble: &dyn ToString) -> Error {
    let error = io::Error::other(trouble.to_string());
    Error::file(Path::new("standard output"), Action::Write, None, &error)
}

/// The language of a program. The interpreter finds the package by its own variable: `PYTHONPATH`,
/// `NODE_PATH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
}

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub struct Program {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Process,
}

impl Program {
    /// Starts the program for `work`, `save` or `log`, at `path`, and waits until it is ready.
    pub fn start(language: Language, work: &str, path: &Path) -> io::Result<Program> {
        let mut command = match language {
            Language::Python => Command::new("python3"),
            Language::Node => Command::new("node"),
        };
        match language {
            Language::Python => command.args(["-c", include_str!("foreign/subject.py")]),
            Language::Node => command.args(["-e", include_str!("foreign/subject.js"), "--"]),
        };
        command.arg(work).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let child = process.child();
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let answers = BufReader::new(answers);
        let mut program = Program { requests, answers, _process: process };
        program.answer().map(|_| program)
    }

    /// Sends a content, for which [`Program::answer`] waits.
    pub fn request(&mut self, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        match self.requests.write_all(&[&length.to_le_bytes(), content].concat()) {
            // The program has ended, and its last answer is the reason.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Returns the answer to the oldest request: it is durable, at this sequence of a log.
    pub fn answer(&mut self) -> io::Result<u64> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let number: i64 =
            line.trim_end().parse().map_err(|_| io::Error::other(format!("an answer {line:?}")))?;
        u64::try_from(number)
            .map_err(|_| io::Error::from_raw_os_error(i32::try_from(-number).unwrap_or(libc::EIO)))
    }
}
