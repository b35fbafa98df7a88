//! The subjects that write until a power loss: their trait and their names.

use crate::verbs::power_cut::copies::Copies;
use crate::verbs::power_cut::lines;
use crate::verbs::power_cut::logs::{Logs, Safety};
use crate::verbs::power_cut::pages::Pages;
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::saves::{Saves, Way};
use crate::verbs::power_cut::streams::Streams;
use clap::ValueEnum;
use std::convert::Infallible;
use std::fs::File;
use std::path::Path;
use std::{io, thread};
use wrote::{Action, Error};

/// Reports a promise from any thread. The report has been written when the call returns.
pub type Reporter<'a> = &'a (dyn Fn(&Line) -> Result<(), Error> + Sync);

/// A subject that writes until the power is lost, and knows which files must remain.
pub trait Subject {
    /// Creates and syncs the files that must exist before the start.
    fn prepare(&self) -> io::Result<()>;

    /// Prepares everything else before the clock starts. This makes no promise yet.
    fn get_ready(&mut self, _seed: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Writes until the first error, and reports each promise as soon as it has been made.
    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error>;

    /// Compares the remaining files with the promises, and returns a description of each broken
    /// one. Fails if the files cannot be read.
    fn check(&self, said: &Report) -> io::Result<Vec<String>>;

    /// Returns the maximum number of promises that may be made after the power loss, because they
    /// depend on flushes that were in flight.
    fn late_max(&self) -> usize {
        1
    }

    /// Reopens the written files once, and reports what they durably contain; `None` if opening
    /// does not change the subject's files.
    fn reopen(&self, _say: Reporter) -> Option<Result<(), Error>> {
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
    /// As `save`, by the standard library: write, fsync, rename, fsync of the folder.
    ByHand,
    /// As `by-hand` without the last step. Its promise is false.
    UnsyncedFolder,
    /// `std::fs::write` over one file. Its promise is false.
    Unsynced,
    /// Pages, each overwritten by one durable write with `RWF_ATOMIC`.
    Pages,
    /// The same without `RWF_ATOMIC`. Its promise that none is torn is false.
    PlainPages,
}

impl Name {
    /// Returns the subject's name as used in arguments, file names and lines.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Creates the subject, with a new folder below `folder`.
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
            Name::Pages => Box::new(Pages::new(&folder, true)),
            Name::PlainPages => Box::new(Pages::new(&folder, false)),
            Name::LogServed => Box::new(Logs::new(&folder, Safety::Served)),
        }
    }
}

/// Creates a folder, and makes it durable.
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

/// Returns the error for a promise that could not be reported.
pub fn unsaid(trouble: &dyn ToString) -> Error {
    let error = io::Error::other(trouble.to_string());
    Error::file(Path::new("standard output"), Action::Write, None, &error)
}

/// Runs threads until each has had an error, and returns the first thread's error.
pub fn until_refused(
    threads: u32,
    work: impl Fn(u32) -> Result<Infallible, Error> + Sync,
) -> Error {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(Err(error)) => error,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Vec<_>>().swap_remove(0)
    })
}
