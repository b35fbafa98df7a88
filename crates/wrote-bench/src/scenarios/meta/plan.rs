//! The rows, the number of files, and the time.

use super::{Create, FILE_BYTES, Kind, Meta, NAME, Read, Unlink, WAYS, Way};
use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, Plan, RUNS, RowSpec};
use std::path::PathBuf;
use std::time::Duration;

const QUESTION: &str = "How many files can be created, found, read, renamed and removed here per \
                        second, with a folder for each rank and with one that all share?";

/// The time after which a run stops, once it has used the minimum number of files. A run has as
/// many files as the disk creates, writes out and removes in this time.
pub(super) const RUN: Duration = Duration::from_millis(300);
/// The default maximum number of files of a run. On ext4 without a journal, each removed file slows
/// down the creation of files for some minutes, even in the next benchmark.
pub(super) const FILES_MAX: u32 = 2_000;
pub(super) const FILES_MIN: u32 = 50;
/// The space of a file's blocks and of its directory entry.
const FILE_SPACE_BYTES: u64 = 8 << 10;
/// The space of an empty file: its inode and its directory entry.
const EMPTY_SPACE_BYTES: u64 = 512;

#[derive(Debug)]
pub(super) struct Files {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub asked: Option<u32>,
    /// The maximum number of files of a run.
    pub count: u32,
    /// The folders that the plan created or found.
    pub folders: Vec<PathBuf>,
    /// The folders whose files have been written with their content.
    pub filled: Vec<PathBuf>,
}

impl Files {
    /// Plans the requested rows; `None` if there are none.
    pub fn new(asked: &Meta, call: &Call) -> Option<Files> {
        let ways: Vec<Way> = WAYS.into_iter().filter(|way| call.names(NAME, way.name)).collect();
        let files = Files {
            runs: call.common.runs.unwrap_or(RUNS),
            asked: asked.meta_files,
            count: asked.meta_files.unwrap_or(call.speed.map_or(FILES_MAX, fit)),
            folders: Vec::new(),
            filled: Vec::new(),
            ways,
        };
        (!files.ways.is_empty()).then_some(files)
    }

    /// Returns the plan of the rows.
    pub fn plan(self, speed: Option<&Calibration>) -> Plan<'static> {
        let file = speed.unwrap_or(&Calibration::UNKNOWN).file;
        let [made, written, removed] = file.map(|time| time * self.count);
        let spec = |way: &Way| {
            let (time, beside) = match way.kind {
                // The files are read from the device, which takes about as long as writing them.
                Read => (written, Duration::ZERO),
                Unlink => (removed, made + written),
                _ => (made, Duration::ZERO),
            };
            let (row, is_last) = (way.composed(), way.kind == Unlink);
            RowSpec { row, time: time.min(RUN), beside, is_last, ..RowSpec::default() }
        };
        let rows = self.ways.iter().map(spec).collect();
        Plan {
            runs: self.runs,
            prepare: (made + written) * self.staying() as u32 + removed * self.emptied() as u32,
            is_whole: self.asked.is_some(),
            space_bytes: self.space_bytes(),
            prepared_bytes: self.written_bytes(),
            wants: Wanted::Files,
            ..Plan::new(NAME, QUESTION, rows, self)
        }
    }

    /// Returns the number of folders for the kinds that `is_of_round` selects.
    fn folders_of(&self, is_of_round: fn(Kind) -> bool) -> u64 {
        let has = |is_shared| {
            self.ways.iter().any(|way| way.is_shared == is_shared && is_of_round(way.kind))
        };
        [true, false].into_iter().filter(|is_shared| has(*is_shared)).count() as u64
    }

    /// Returns the maximum number of bytes in the folder at any time. A run of `unlink` that stops
    /// early leaves its remaining files until the end.
    pub fn space_bytes(&self) -> u64 {
        let last = self.removed();
        let empty = self.folders_of(is_of_round) * u64::from(self.runs);
        let each = (self.staying() + last) * FILE_SPACE_BYTES + empty * EMPTY_SPACE_BYTES;
        each * u64::from(self.count)
    }

    /// Returns the maximum number of bytes written: once in persistent folders, and in each round
    /// for `unlink`.
    pub fn written_bytes(&self) -> u64 {
        (self.staying() + self.removed()) * u64::from(self.count) * FILE_BYTES
    }

    /// Returns the number of folders whose files are removed.
    fn removed(&self) -> u64 {
        self.folders_of(|kind| kind == Unlink) * u64::from(self.runs)
    }

    /// Returns the number of folders that are emptied at the end.
    fn emptied(&self) -> u64 {
        self.staying() + self.folders_of(is_of_round) * u64::from(self.runs) - self.removed()
    }

    /// Returns the number of persistent folders.
    fn staying(&self) -> u64 {
        self.folders_of(|kind| !is_of_round(kind))
    }
}

/// Returns the number of files that a disk of this speed creates, writes and removes in the time of
/// a run.
fn fit(speed: &Calibration) -> u32 {
    let each: Duration = speed.file.iter().sum();
    (RUN.div_duration_f64(each) as u32).clamp(FILES_MIN, FILES_MAX)
}

/// Returns whether each round has separate files, as for `create` and `unlink`, which create and
/// remove them.
pub(super) fn is_of_round(kind: Kind) -> bool {
    matches!(kind, Create | Unlink)
}
