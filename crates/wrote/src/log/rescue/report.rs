//! Reports of a verification and of a repair, and their progress.

use super::super::damage::{Damage, Garbage};
use super::summary::LogSummary;
use crate::Error;
use crate::progress::{Progress, Watch, report};
use std::collections::HashSet;
use std::path::PathBuf;

/// The result of reading every byte of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// The log's segments and its end.
    pub summary: LogSummary,
    /// Whole records.
    pub records: u64,
    /// Bytes of these records.
    pub record_bytes: u64,
    /// Bytes behind the last whole record that are not zero: a write that a crash interrupted. The
    /// next opening for writing keeps them aside.
    pub torn_bytes: u64,
    /// The damage; empty if every record is whole.
    pub damage: Vec<Damage>,
    /// Garbage behind sealed segments, which is no damage.
    pub garbage: Vec<Garbage>,
}

/// The result of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// The damage that was repaired.
    pub damage: Vec<Damage>,
    /// The garbage that was removed.
    pub garbage: Vec<Garbage>,
    /// Copies of the damaged files, beside the log.
    pub kept_aside: Vec<PathBuf>,
    /// Records in the log now.
    pub records: u64,
}

impl Repaired {
    /// Returns the files to write anew.
    pub(super) fn paths(&self) -> HashSet<PathBuf> {
        let damaged = self.damage.iter().map(|damage| &damage.path);
        damaged.chain(self.garbage.iter().map(|garbage| &garbage.path)).cloned().collect()
    }
}

/// Bytes between two reports of progress.
const STEP_BYTES: u64 = 1 << 20;

pub(super) struct VerifyProgress<'a> {
    watch: Watch<'a>,
    /// Bytes of the files that are read to their end.
    before: u64,
    reported: u64,
    all_bytes: u64,
}

impl<'a> VerifyProgress<'a> {
    pub(super) fn new(all_bytes: u64, watch: Watch<'a>) -> VerifyProgress<'a> {
        VerifyProgress { watch, before: 0, reported: 0, all_bytes }
    }

    /// Notes that the file is read up to this byte.
    pub(super) fn at(&mut self, offset: u64) -> Result<(), Error> {
        let read = self.before + offset;
        if read < self.reported + STEP_BYTES { Ok(()) } else { self.report(read) }
    }

    /// Notes that a file of this length is read to its end.
    pub(super) fn finish_file(&mut self, file_bytes: u64) -> Result<(), Error> {
        self.before += file_bytes;
        self.report(self.before)
    }

    fn report(&mut self, read: u64) -> Result<(), Error> {
        self.reported = read;
        let progress = Progress::new(read.min(self.all_bytes), Some(self.all_bytes));
        report(self.watch, progress)
    }
}
