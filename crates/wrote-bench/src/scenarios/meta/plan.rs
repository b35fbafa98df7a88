//! The rows, the number of files, and the time.

use super::{Create, FILE_BYTES, Kind, Meta, NAME, Open, Read, Rename, Stat, Unlink, WAYS, Way};
use crate::plan::{Call, Plan, RUNS, RowSpec, Within};
use std::path::PathBuf;
use std::time::Duration;
use wrote_result::document::{Row, View};

const QUESTION: &str = "How many files does this place create, find, read, rename and remove per \
    second, with a folder for each rank and with one that all share?";

/// The length of a run, unless its files are too few or too many.
pub(super) const RUN_S: f64 = 0.3;
/// The time to create and remove the files that stay for all rounds.
const STAYING_S: f64 = 3.0;
/// The most files of a run by default. On ext4 without a journal, each removed file slows creations
/// for some minutes, also in the next benchmark.
pub(super) const FILES_MAX: u32 = 2_000;
const FILES_MIN: u32 = 50;
/// The fewest and the most files of the trial, and the time for them.
pub(super) const LOOK_FILES: u32 = 50;
pub(super) const LOOK_FILES_MAX: u32 = 1000;
pub(super) const LOOK_TIME: Duration = Duration::from_millis(100);
/// The blocks of a file and its directory entry.
const FILE_SPACE_BYTES: u64 = 8 << 10;
/// The space of an empty file: inode and directory entry.
const EMPTY_SPACE_BYTES: u64 = 512;
/// The time from the first run to the end: enough for all runs on most disks.
const WITHIN: Duration = Duration::from_secs(100);

/// The time per file, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub made_s: f64,
    pub found_s: f64,
    pub read_s: f64,
    pub renamed_s: f64,
    pub removed_s: f64,
}

impl Pace {
    fn of(&self, kind: Kind) -> f64 {
        match kind {
            Stat | Open => self.found_s,
            Read => self.read_s,
            Create => self.made_s,
            Rename => self.renamed_s,
            Unlink => self.removed_s,
        }
    }
}

#[derive(Debug)]
pub(super) struct Files {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub asked: Option<u32>,
    /// Whether the time is limited: not if the request specifies an amount.
    is_limited: bool,
    /// The time per file, once known.
    pub pace: Option<Pace>,
    /// The most files that a rank created in any folder.
    pub files_made: u32,
    /// Folders that the plan created or found.
    pub folders: Vec<PathBuf>,
    /// The folders whose files have their content.
    pub filled: Vec<PathBuf>,
}

impl Files {
    /// Plans the requested rows; `None` if there are none.
    pub fn new(asked: &Meta, call: &Call) -> Option<Files> {
        let ways: Vec<Way> = WAYS.into_iter().filter(|way| call.names(NAME, way.name)).collect();
        let files = Files {
            runs: call.common.runs.unwrap_or(RUNS),
            asked: asked.meta_files,
            is_limited: call.common.runs.is_none() && asked.meta_files.is_none(),
            pace: None,
            files_made: 0,
            folders: Vec::new(),
            filled: Vec::new(),
            ways,
        };
        (!files.ways.is_empty()).then_some(files)
    }

    /// Returns the plan of the rows.
    pub fn plan(self) -> Plan<'static> {
        let within = Within { from_first_run: true, ..Within::new(WITHIN, Duration::ZERO, true) };
        let spec = |way: &Way| RowSpec {
            row: way.composed(),
            time: Duration::from_secs_f64(RUN_S),
            is_last: way.kind == Unlink,
            ..RowSpec::default()
        };
        let rows = self.ways.iter().map(spec).collect();
        Plan {
            runs: self.runs,
            within: self.is_limited.then_some(within),
            space_bytes: self.space_bytes(),
            prepared_bytes: self.written_bytes() + u64::from(LOOK_FILES_MAX) * FILE_BYTES,
            ..Plan::new(NAME, QUESTION, rows, self)
        }
    }

    /// Returns the files per run: the files of its slice at the known pace, and the most before.
    pub fn files(&self, kind: Kind) -> u32 {
        let Some(pace) = self.pace else { return self.asked.unwrap_or(FILES_MAX) };
        let Pace { made_s, removed_s, .. } = pace;
        let of_run = RUN_S / pace.of(kind).max(1e-9);
        let fit = match is_of_round(kind) {
            true => of_run,
            false => of_run.min(STAYING_S / (made_s + removed_s).max(1e-9)),
        };
        let usual = fit.min(f64::from(FILES_MAX));
        self.asked.unwrap_or((usual as u32).max(FILES_MIN))
    }

    /// Returns the files of a persistent folder: enough for each row that uses them.
    pub fn files_staying(&self) -> u32 {
        let kinds = self.ways.iter().map(|way| way.kind).filter(|kind| !is_of_round(*kind));
        kinds.map(|kind| self.files(kind)).max().unwrap_or(0)
    }

    /// Counts folders of all rounds, or of a single round.
    fn folders_of(&self, is_of_round: fn(Kind) -> bool) -> u64 {
        let has = |is_shared| {
            self.ways.iter().any(|way| way.is_shared == is_shared && is_of_round(way.kind))
        };
        [true, false].into_iter().filter(|is_shared| has(*is_shared)).count() as u64
    }

    /// Returns the most bytes in the folder at any time: only one round's folder has content at a
    /// time.
    pub fn space_bytes(&self) -> u64 {
        let staying = self.folders_of(|kind| !is_of_round(kind)) * u64::from(self.files_staying());
        let last = self.folders_of(|kind| kind == Unlink).min(1) * u64::from(self.files(Unlink));
        let empty = self.folders_of(is_of_round) * u64::from(self.runs);
        let of_round = u64::from(self.files(Create).max(self.files(Unlink)));
        (staying + last) * FILE_SPACE_BYTES + empty * of_round * EMPTY_SPACE_BYTES
    }

    /// Returns the total bytes written: once in persistent folders, and in each round for `unlink`.
    pub fn written_bytes(&self) -> u64 {
        let staying = self.folders_of(|kind| !is_of_round(kind)) * u64::from(self.files_staying());
        let removed = self.folders_of(|kind| kind == Unlink) * u64::from(self.files(Unlink));
        (staying + removed * u64::from(self.runs)) * FILE_BYTES
    }
}

/// Returns whether each round has its own files: `create` makes them, and `unlink` removes them.
pub(super) fn is_of_round(kind: Kind) -> bool {
    matches!(kind, Create | Unlink)
}

impl Way {
    /// Composes the row.
    fn composed(&self) -> Row {
        Row {
            name: self.name.into(),
            workload: self.workload.into(),
            way: self.words.into(),
            view: Some(View::Metadata),
            direction: self.kind.direction(),
            survives: self.kind.survives(),
            ..Row::default()
        }
    }
}
