//! `lab power-cut`: writes with wrote until the power is lost, and reports each promise. Later
//! checks the remaining files. `cargo xtask lab power-cut` runs it and simulates the power loss.

#![deny(unsafe_code)]

mod content;
mod copies;
mod lines;
mod logs;
// One system call has no safe wrapper.
#[allow(unsafe_code)]
mod marks;
mod pages;
mod said;
mod saves;
mod streams;
mod subject;

use super::Trouble;
use crate::runs::power_cut::subject::Seen;
use clap::ValueEnum;
pub use marks::Marks;
use said::{Line, Report, promises};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use subject::{Name, Subject, unsaid};
use wrote::Error;

/// Write until the power is cut, or check the files that are left.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// Write until the first error, with a line for each promise on standard output.
    Write {
        /// The subject that writes.
        subject: Name,
        /// The folder on the file system that loses its power; the subject makes its own folder in
        /// it.
        folder: PathBuf,
        /// The seed of lengths, pauses and choices.
        #[arg(long)]
        seed: u64,
        /// Also mark each line in the log of this `log-writes` device below /dev/mapper, or in this
        /// file of `lab strange-fs`.
        #[arg(long, value_name = "NAME")]
        marks: Option<String>,
    },
    /// Open the written files again and again until the first error, with a line for each time.
    Reopen {
        subject: Name,
        /// The folder of the `write`.
        folder: PathBuf,
    },
    /// Compare the remaining files with the promises, and print what was seen of each subject.
    Check {
        /// The folder of the `write`.
        folder: PathBuf,
        /// The folder of the subjects' reports: a file each, by their names.
        said: PathBuf,
    },
}

/// Runs one of the verbs.
pub fn run(verb: Verb) -> Result<(), Trouble> {
    match verb {
        Verb::Write { subject, folder, seed, marks } => {
            write(subject, &folder, seed, marks.as_deref())
        }
        Verb::Reopen { subject, folder } => reopen(subject, &folder),
        Verb::Check { folder, said } => check(&folder, &said),
    }
}

/// Writes until the first error, which shows the power loss.
fn write(name: Name, folder: &Path, seed: u64, marks: Option<&str>) -> Result<(), Trouble> {
    let marks = marks.map(|device| Marks::open(device, &name.word())).transpose()?;
    let say = |line: &Line| {
        say(line)?;
        let mark = |marks: &Marks| marks.mark(&serde_json::to_string(line)?);
        marks.as_ref().map_or(Ok(()), mark).map_err(|error| unsaid(&error))
    };
    let mut subject = name.in_folder(folder);
    subject.prepare()?;
    subject.get_ready(seed)?;
    say(&Line::Ready)?;
    let Err(error) = subject.write(seed, &say);
    refused(&error)
}

/// Reopens the written files repeatedly until the next power loss.
fn reopen(name: Name, folder: &Path) -> Result<(), Trouble> {
    let subject = name.in_folder(folder);
    say(&Line::Ready)?;
    loop {
        match subject.reopen(&say) {
            Some(Ok(())) => {}
            Some(Err(error)) => return refused(&error),
            None => return Err(format!("{} is not opened again", name.word()).into()),
        }
    }
}

/// Reports the error that stopped the writing.
fn refused(error: &Error) -> Result<(), Trouble> {
    // The kernel's message helps a person who reads the log.
    eprintln!("{error}");
    Ok(say(&Line::refused(error))?)
}

/// Prints a line with a single write, so that it is reported completely or not at all.
fn say(line: &Line) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    let text = serde_json::to_string(line).map_err(|error| unsaid(&error))?;
    let said = stdout.write_all((text + "\n").as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|error| unsaid(&error))
}

fn check(folder: &Path, said: &Path) -> Result<(), Trouble> {
    let mut seen = BTreeMap::new();
    for name in Name::value_variants() {
        let word = name.word();
        // A subject may not have written anything yet.
        let Ok(text) = std::fs::read_to_string(said.join(&word)) else { continue };
        let said = said::parse(&text)?;
        let subject = name.in_folder(folder);
        let mut faults = subject.check(&said)?;
        faults.extend(late(subject.as_ref(), &said));
        let reopened = said.all().iter().filter(|line| matches!(line, Line::Reopened(_))).count();
        let promises = promises(said.all()) - reopened;
        let refused = match said.all().last() {
            Some(Line::Refused { action, errno }) => (action.clone(), *errno),
            _ => Default::default(),
        };
        seen.insert(word, Seen { promises, late: said.late(), refused, reopened, faults });
    }
    println!("{}", serde_json::to_string(&seen)?);
    Ok(())
}

/// Returns a fault if more promises were made after the power loss than are allowed; otherwise
/// `None`.
fn late(subject: &dyn Subject, said: &Report) -> Option<String> {
    let (late, late_max) = (said.late(), subject.late_max());
    (late > late_max).then(|| {
        format!("{late} promises were made when the power was gone, where {late_max} may be")
    })
}
