//! The rows and the number of files.

use super::{FILE_BYTES, Meta, NAME, WAYS, Way};
use crate::rounds::RUNS;
use crate::scenario::Call;
use std::path::PathBuf;
use std::time::Duration;

/// The time of a run of the slowest operation.
const RUN_S: f64 = 0.3;
/// The files of a run that was not asked for a number.
const FILES_MAX: u32 = 10_000;
const FILES_MIN: u32 = 50;
/// Files of the first look.
pub(super) const LOOK_FILES: u32 = 50;
/// The blocks of a file and what its name takes.
pub(super) const FILE_SPACE_BYTES: u64 = 8 << 10;

#[derive(Debug)]
pub(super) struct Plan {
    pub ways: Vec<Way>,
    pub runs: u32,
    asked: Option<u32>,
    /// Files of a run; the most until the first look.
    pub files: u32,
    /// The time of a file: made, used and removed.
    pub file_time: Duration,
    /// Folders that the plan made.
    pub folders: Vec<PathBuf>,
}

impl Plan {
    /// Plans the rows that the call names; `None` where it names none.
    pub fn new(asked: &Meta, call: &Call) -> Option<Plan> {
        let ways: Vec<Way> =
            WAYS.into_iter().filter(|way| call.names(NAME, way.name)).collect();
        let files = asked.meta_files.unwrap_or(FILES_MAX);
        let runs = call.common.runs.unwrap_or(RUNS);
        let file_time = Duration::from_micros(100);
        let folders = Vec::new();
        let asked = asked.meta_files;
        (!ways.is_empty()).then_some(Plan { ways, runs, asked, files, file_time, folders })
    }

    /// Chooses the files of a run by the files a second of the first look.
    pub fn choose(&mut self, files_per_s: f64) {
        let fit = (files_per_s * RUN_S) as u32;
        self.files = self.asked.unwrap_or(fit.clamp(FILES_MIN, FILES_MAX));
        self.file_time = Duration::from_secs_f64(1.0 / files_per_s.max(1e-3));
    }

    pub fn run_bytes(&self) -> u64 {
        u64::from(self.files) * FILE_BYTES
    }
}
