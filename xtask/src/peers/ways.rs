//! The ways to write: each of ours in turn with what a program would use otherwise.

pub mod best;
mod bytes;
pub mod contest;
mod copy;
mod memory;
pub mod peak;
mod save;
mod stream;
pub mod table;

pub use memory::{HEAD as MEMORY_HEAD, MemoryLine};
#[cfg(test)]
pub use table::Unit;
pub use table::{HEAD, Line};

use super::job::Job;
use super::programs::Programs;
use super::rows::Row;
use super::size::Size;
use super::trial::Trials;
use crate::failure::Failure;
use std::path::Path;

/// What all of them use.
#[derive(Clone, Copy, Debug)]
pub struct Ways<'a> {
    /// The programs that do one piece of work.
    pub trials: &'a Trials,
    /// wrote and fio.
    pub programs: &'a Programs,
    /// The folder to write in.
    pub folder: &'a Path,
    /// How long the long files are.
    pub size: &'a Size,
    /// How many rounds.
    pub rounds: u32,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Lines of the table.
    pub lines: Vec<Line>,
    /// Those of the table of memory.
    pub memory: Vec<MemoryLine>,
    /// The commands as one would type them.
    pub commands: Vec<String>,
    /// The job files that some of them run.
    pub jobs: Vec<Job>,
}

/// Whether a row is one of these.
pub fn is_way(row: Row) -> bool {
    matches!(
        row,
        Row::WriterDurable
            | Row::WriterPeak
            | Row::WriterBytes
            | Row::CopyDurable
            | Row::CopyMemory
            | Row::Save
    )
}

impl Ways<'_> {
    /// Measures a row; one that is another's gives nothing.
    pub fn measure(&self, row: Row) -> Result<Measured, Failure> {
        match row {
            Row::WriterDurable => stream::contest(self).measure(self.rounds),
            Row::WriterPeak => peak::measure(self),
            Row::WriterBytes => bytes::contest(self).measure(self.rounds),
            Row::CopyDurable => copy::measure(self),
            Row::CopyMemory => memory::measure(self),
            Row::Save => save::contest(self).measure(self.rounds),
            _ => Ok(Measured::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::fake;
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_contender_of_a_row_is_given_the_same_work() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = Programs { wrote: "wrote".into(), fio: "fio".into() };
        let trials = fake::trials(folder.path(), 1000, 1.0);
        let (folder, size) = (folder.path(), "512k".parse().expect("a size"));
        let ways = Ways { trials: &trials, programs: &programs, folder, size: &size, rounds: 1 };
        for (row, expected) in [
            (
                Row::WriterDurable,
                "stream --by writer --bytes 524288 file\n\
                 stream --by buf-writer --bytes 524288 file\n\
                 stream --by buf-writer-mib --bytes 524288 file\n\
                 stream --by file --bytes 524288 file\n",
            ),
            (
                Row::WriterBytes,
                "bytes --by writer --bytes 256000000 file\n\
                 bytes --by buf-writer --bytes 256000000 file\n\
                 file 256000000\n",
            ),
            (Row::Save, "save --by wrote --saves 500 file\nsave --by hand --saves 500 file\n"),
        ] {
            ways.measure(row).expect("scripts");
            let calls = folder.join("calls");
            assert_eq!(std::fs::read_to_string(&calls).expect("called"), expected);
            std::fs::remove_file(&calls).expect("there");
        }
    }

    #[test]
    fn rows_of_others_are_none_of_these() {
        let all = Row::value_variants().iter();
        assert_eq!(all.filter(|&&row| is_way(row)).count(), 6);
        assert!(!is_way(Row::PeakWrite) && is_way(Row::Save));
    }
}
