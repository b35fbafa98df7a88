//! What writes while the power is cut: what all of them have in common, and their names.

use crate::copies::Copies;
use crate::found::Found;
use crate::logs::{Logs, Safe};
use crate::said::{Line, Said};
use crate::saves::{Saves, Way};
use crate::streams::Streams;
use clap::ValueEnum;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::Path;
use wrote::{Action, Error};

/// Why a program of the lab failed; what it says is for a person.
pub type Trouble = Box<dyn std::error::Error>;
/// Takes a promise, at once and for good, from any thread.
pub type Say<'a> = &'a (dyn Fn(&Line) -> Result<(), Trouble> + Sync);

/// Something that writes until the power is cut, and knows what must be left.
pub trait Subject {
    /// Makes and syncs what has to be there before.
    fn prepare(&self) -> io::Result<()>;

    /// Does what else is to be done before the clock starts; what it comes to is no promise yet.
    fn get_ready(&mut self, _seed: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Writes on and on, and says each promise as soon as it was made. Ends with the first error.
    fn write(&mut self, seed: u64, say: Say) -> Result<Infallible, Error>;

    /// What is there, against what was said. An error where nobody can tell.
    fn check(&self, said: &Said) -> io::Result<Found>;

    /// How many promises may be made when the power is gone: those that the flushes under way at the cut
    /// are waited for by.
    fn late_max(&self) -> usize {
        1
    }

    /// Opens what it wrote again and again, and says each time what is there for good; `None` of a
    /// subject for which opening changes nothing. Ends with the first error.
    fn reopen(&self, _say: Say) -> Option<Error> {
        None
    }
}

/// The subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// `wrote::write` over one file, again and again.
    Save,
    /// A `wrote::Writer`, synced now and then, file after file.
    Writer,
    /// `wrote::copy` to one new name after the other.
    Copy,
    /// A `wrote::Log`, every record waited for until it is durable.
    Log,
    /// A `wrote::Log` that is synced now and then, its oldest segments removed.
    LogSync,
    /// A `wrote::Log` of lines, every one waited for until it is durable.
    LogLines,
    /// As `save`, by the standard library: write, fsync, rename, fsync of the folder.
    ByHand,
    /// The same without the last step. What it takes for a promise is none.
    UnsyncedFolder,
    /// `std::fs::write` over one file. What it takes for a promise is none.
    Unsynced,
}

impl Name {
    /// As it is called in arguments, file names and lines.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The subject, in a folder of its own below `folder`.
    pub fn in_folder(self, folder: &Path) -> Box<dyn Subject> {
        let folder = folder.join(self.word());
        match self {
            Name::Save => Box::new(Saves::new(&folder, Way::Wrote)),
            Name::ByHand => Box::new(Saves::new(&folder, Way::ByHand)),
            Name::UnsyncedFolder => Box::new(Saves::new(&folder, Way::UnsyncedFolder)),
            Name::Unsynced => Box::new(Saves::new(&folder, Way::Unsynced)),
            Name::Writer => Box::new(Streams::new(&folder)),
            Name::Copy => Box::new(Copies::new(&folder)),
            Name::Log => Box::new(Logs::new(&folder, Safe::Record)),
            Name::LogSync => Box::new(Logs::new(&folder, Safe::Sync)),
            Name::LogLines => Box::new(Logs::new(&folder, Safe::Line)),
        }
    }
}

/// Makes a folder that is there after a power cut.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

/// Makes the names in a folder survive a power cut.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a file that is there or was never made.
pub fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file(path, Action::Remove, None, &error))
        }
        _ => Ok(()),
    }
}

/// The error that a promise could not be told to anyone.
pub fn unsaid(trouble: &Trouble) -> Error {
    let error = io::Error::other(trouble.to_string());
    Error::file(Path::new("standard output"), Action::Write, None, &error)
}
