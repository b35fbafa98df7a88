//! The program `trial`: does one piece of writing work by one method, and measures it. It prints
//! its figures as one line of JSON.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use trial::append::{self, Messages, Work as Append};
use trial::outcome::{self, Outcome};
use trial::{Result, bytes, clock, lines, load, log, many, reader, save, stream};

/// Does one piece of writing work by one method, and prints its figures as a line of JSON.
#[derive(Parser)]
#[command(name = "trial")]
struct Arguments {
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// Write random data in pieces of 64 KiB, durable with its name; then remove the file.
    Stream {
        #[arg(long)]
        by: stream::By,
        /// Bytes of the file.
        #[arg(long, value_name = "N")]
        bytes: u64,
        /// The file, which must not exist.
        file: PathBuf,
    },
    /// Write the values 0 to 255 in turn, one byte at a time, without a sync; then remove the file.
    Bytes {
        #[arg(long)]
        by: bytes::By,
        /// Bytes of the file.
        #[arg(long, value_name = "N")]
        bytes: u64,
        /// The file, which must not exist.
        file: PathBuf,
    },
    /// Replace a file of 1000 bytes repeatedly, atomically and durably; then remove it.
    Save {
        #[arg(long)]
        by: save::By,
        /// The number of saves.
        #[arg(long, value_name = "N")]
        saves: u64,
        /// The file, which must not exist.
        file: PathBuf,
    },
    /// Append messages from several producers at once; then remove the file or the log.
    Append {
        #[arg(long)]
        by: append::By,
        #[command(flatten)]
        work: Append,
        /// The file or folder, which must not exist.
        place: PathBuf,
    },
    /// Make a log of random records, which stays.
    LogMake {
        #[command(flatten)]
        shape: log::Shape,
        /// The folder of the log.
        place: PathBuf,
    },
    /// Read every record of a log.
    LogRead {
        /// The folder of the log.
        place: PathBuf,
    },
    /// Open a log for writing, and close it.
    LogOpen {
        /// How many times.
        #[arg(long, value_name = "N", default_value_t = 1)]
        times: u32,
        /// The folder of the log.
        place: PathBuf,
    },
    /// Read a file from start to end.
    Read {
        #[arg(long)]
        by: reader::By,
        /// The parts that the caller takes.
        #[arg(long)]
        takes: reader::Takes,
        /// The file.
        file: PathBuf,
    },
    /// Write many files of one folder, durable.
    ManyFiles {
        #[arg(long)]
        by: many::By,
        /// The number of files.
        #[arg(long, value_name = "N")]
        files: u64,
        /// Bytes of each file.
        #[arg(long, value_name = "N")]
        bytes: u64,
        /// The folder, which must not exist.
        place: PathBuf,
    },
    /// Send lines of 500 bytes to a server that does not answer, until it has read them all.
    Lines {
        /// Connections at once.
        #[arg(long, value_name = "N")]
        connections: u64,
        /// Bytes of all lines.
        #[arg(long, value_name = "N")]
        bytes: u64,
        /// The port on this machine.
        port: u16,
    },
    /// Send lines of 500 bytes to a server for a time, and wait until it has read them all.
    Load(load::Work),
    /// Run a command, and print its output and then its figures, including its children's. The
    /// memory is the largest process's.
    Run {
        /// The command and its arguments.
        #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    outcome::print("trial", work(Arguments::parse().work))
}

fn work(work: Work) -> Result<Outcome> {
    match work {
        Work::Stream { by, bytes, file } => stream::stream(by, bytes, &file),
        Work::Bytes { by, bytes, file } => bytes::bytes(by, bytes, &file),
        Work::Save { by, saves, file } => save::save(by, saves, &file),
        Work::Append { by, work, place } => append::append(by, &Messages::new(&work)?, &place),
        Work::LogMake { shape, place } => log::make(&shape, &place),
        Work::LogRead { place } => log::read(&place),
        Work::LogOpen { times, place } => log::open(times, &place),
        Work::Read { by, takes, file } => reader::read(by, takes, &file),
        Work::Lines { connections, bytes, port } => lines::lines(connections, bytes, port),
        Work::Load(work) => load::load(&work),
        Work::ManyFiles { by, files, bytes, place } => many::many(by, files, bytes, &place),
        Work::Run { command } => clock::run(&command),
    }
}
