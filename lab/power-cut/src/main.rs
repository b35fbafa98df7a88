//! Writes with wrote until the power is cut, says what it was promised, and afterwards looks what is
//! left. `cargo xtask lab power-cut` runs it and cuts the power.

#![forbid(unsafe_code)]

mod content;
mod copies;
mod found;
mod said;
mod saves;
mod streams;
mod subject;

use clap::{Parser, ValueEnum};
use said::{Line, Said};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use subject::{Name, Trouble};

/// Writes until the power is cut, or looks what is left.
#[derive(Parser)]
#[command(name = "power-cut")]
enum Verb {
    /// Write until the first error, with a line for each promise on standard output.
    Write {
        /// What is to write.
        subject: Name,
        /// The folder on the file system that loses its power; in it the subject makes its own.
        folder: PathBuf,
        /// What the lengths of writes and such are drawn from.
        #[arg(long)]
        seed: u64,
    },
    /// Compare what is left with what was promised, and print a line for each thing found.
    Check {
        /// The folder that was written in.
        folder: PathBuf,
        /// The folder of what the subjects said: a file each, by their names.
        said: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Write { subject, folder, seed } => write(subject, &folder, seed),
        Verb::Check { folder, said } => check(&folder, &said),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("power-cut: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Writes until the first error, which is what the power cut looks like from here.
fn write(name: Name, folder: &Path, seed: u64) -> Result<(), Trouble> {
    let mut subject = name.in_folder(folder);
    subject.prepare()?;
    say(&Line::Ready)?;
    let Err(error) = subject.write(seed, &mut say);
    // Not only its number: whoever reads the log may want the kernel's words.
    eprintln!("{error}");
    say(&Line::refused(&error))
}

/// Prints one line in one write, so that it is either said or not.
fn say(line: &Line) -> Result<(), Trouble> {
    let mut stdout = std::io::stdout().lock();
    Ok(stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush())?)
}

fn check(folder: &Path, said: &Path) -> Result<(), Trouble> {
    for name in Name::value_variants() {
        let word = name.word();
        // Not all of them need have written.
        let Ok(text) = std::fs::read_to_string(said.join(&word)) else { continue };
        let said = said::parse(&text)?;
        let found = name.in_folder(folder).check(&said)?;
        println!("{word} in-flight {}", found.in_flight);
        println!("{word} temporary {}", found.temporary_files);
        println!("{word} late {}", said.late());
        for fault in found.faults.into_iter().chain(late(&said)) {
            println!("{word} fault {fault}");
        }
    }
    Ok(())
}

/// What is wrong with the promises made when the power was gone.
fn late(said: &Said) -> Option<String> {
    let late = said.late();
    (late > 1).then(|| format!("{late} promises were made when the power was gone"))
}
