//! A job while it is being parsed: the values so far, and their lines.

use super::ini::{Entry, Section};
use super::note::quoted;
use super::value::{KbBase, Size, Value};
use super::{Notes, ParseError};
use crate::spec::{BlockSizes, JobSpec, READ};
use std::collections::BTreeMap;
use std::time::Duration;
use wrote::Ioengine;

/// The values that sections have set, with fio's defaults for the rest.
#[derive(Clone, Default)]
pub(super) struct Draft {
    /// The values that are copied to the job unchanged.
    pub job: JobSpec,
    /// The name of the section, from which the names of its files are derived.
    pub section: String,
    pub section_line: Option<usize>,
    pub kb_base: KbBase,
    /// See [`Surroundings`](super::Surroundings).
    pub as_fio: bool,
    /// The `bs` of reads and writes; 4 KiB by default.
    pub bs: [Option<BlockSizes>; 2],
    /// The `bsrange`, which takes precedence over `bs`, whatever the order of the lines, as in fio.
    pub bsrange: [Option<BlockSizes>; 2],
    /// The `bssplit`, which takes precedence over `bs` and `bsrange`.
    pub bssplit: [Option<BlockSizes>; 2],
    pub blockalign: Option<u64>,
    pub directories: Vec<String>,
    pub filenames: Vec<String>,
    pub filename_format: Option<String>,
    pub nrfiles: u32,
    pub size: Option<u64>,
    pub size_percent: Option<u32>,
    pub io_size: Option<Size>,
    pub filesize: Option<u64>,
    pub offset: Size,
    pub offset_increment: Size,
    pub numjobs: u32,
    pub rate: [Option<u64>; 2],
    pub rate_iops: [Option<u64>; 2],
    pub thinktime: Duration,
    pub thinktime_spin: Duration,
    pub thinktime_blocks: u32,
    pub randseed: Option<u64>,
    pub zero_buffers: bool,
    pub compress_percent: Option<u32>,
    pub buffer_pattern: Option<Vec<u8>>,
    pub log_avg_msec: u32,
    pub steady_duration: Duration,
    pub steady_ramp: Duration,
    pub stonewall: bool,
    /// The keys set so far, under their canonical names, each with its line and value.
    said: BTreeMap<&'static str, KeyLine>,
    /// The number of lines recorded so far. It orders the keys in reports.
    count: usize,
}

#[derive(Clone)]
struct KeyLine {
    order: usize,
    line: Option<usize>,
    value: Option<String>,
    /// Whether the current section has set the key.
    own: bool,
}

/// fio's default percentiles, for reports without `percentile_list`.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Draft {
    pub fn new() -> Draft {
        Draft {
            job: JobSpec::default().with(|job| {
                (job.order.rw, job.order.rwmixread_percent) = (READ, 50);
                (job.io.iodepth, job.io.iodepth_batch_complete_min) = (1, 1);
                job.io.ioengine = Ioengine::Psync;
                (job.files.invalidate, job.pace.loops) = (true, 1);
                job.percentiles = PERCENTILES.into();
            }),
            nrfiles: 1,
            numjobs: 1,
            thinktime_blocks: 1,
            ..Draft::default()
        }
    }

    /// Returns the draft of a job, which begins with the values of the `[global]` sections above
    /// it.
    pub fn of_job(&self, section: &Section) -> Draft {
        let mut draft = self.clone();
        draft.section = section.name.clone();
        draft.section_line = section.line;
        draft.job.name = section.name.clone();
        draft
    }

    pub fn begin_section(&mut self) {
        self.said.values_mut().for_each(|said| said.own = false);
    }

    /// Records a key of the current section. If the key is repeated, its last line applies.
    pub fn record(&mut self, name: &'static str, entry: &Entry) {
        let said = KeyLine {
            order: self.said.get(name).map_or(self.count, |said| said.order),
            line: entry.line,
            value: entry.value.clone(),
            own: true,
        };
        self.said.insert(name, said);
        self.count += 1;
    }

    /// Returns whether the current section has already set this key.
    pub fn said_here(&self, key: &str) -> bool {
        self.said.get(key).is_some_and(|said| said.own)
    }

    pub fn said(&self, key: &str) -> bool {
        self.said.contains_key(key)
    }

    /// Returns the line of a key, or the section's line if the key is not set; `None` if that is
    /// not in a file.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.said.get(key).map_or(self.section_line, |said| said.line)
    }

    /// Returns the engine's name as written in the job file; `psync` by default.
    pub fn engine(&self) -> &str {
        self.said.get("ioengine").and_then(|said| said.value.as_deref()).unwrap_or("psync")
    }

    /// Creates an error about a key, with its line and value.
    pub fn wrong(&self, key: &str, problem: impl AsRef<str>) -> ParseError {
        let problem = problem.as_ref();
        let text = match self.said.get(key) {
            Some(said) => format!("{}: {problem}", quoted(key, said.value.as_deref())),
            None => format!("{}: {problem}", quoted(&format!("[{}]", self.section), None)),
        };
        ParseError::new(self.line(key), text)
    }

    /// Adds a note about a key, with its line and value.
    pub fn note(&self, key: &str, text: impl AsRef<str>, notes: &mut Notes) {
        let value = self.said.get(key).and_then(|said| said.value.as_deref());
        notes.add(self.line(key), format!("{}: {}", quoted(key, value), text.as_ref()));
    }

    /// Returns the keys that a file has set, under their canonical names, with their lines.
    pub fn lines(&self) -> Vec<(&'static str, usize)> {
        self.said.iter().filter_map(|(name, said)| Some((*name, said.line?))).collect()
    }

    /// Returns all keys and values under their canonical names, in the order of their first lines.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut said: Vec<_> = self.said.iter().collect();
        said.sort_by_key(|(_, said)| said.order);
        let value = |said: &KeyLine| said.value.clone().unwrap_or_else(|| "1".into());
        said.into_iter().map(|(name, said)| (name.to_string(), value(said))).collect()
    }
}

/// All accepted engines, by fio's names. fio's `posixaio` uses the C library, which implements it
/// with threads on Linux (aio(7)).
pub(super) const ENGINES: &[(&str, Ioengine)] = &[
    ("psync", Ioengine::Psync),
    ("io_uring", Ioengine::IoUring),
    ("mmap", Ioengine::Mmap),
    ("sync", Ioengine::Psync),
    ("vsync", Ioengine::Psync),
    ("pvsync", Ioengine::Psync),
    ("pvsync2", Ioengine::Psync),
    ("libaio", Ioengine::IoUring),
    ("posixaio", Ioengine::Threads),
];

pub(super) fn engine(value: &mut Value<'_>) -> Result<Ioengine, String> {
    let text = value.text()?.to_owned();
    let Some((_, ioengine)) = ENGINES.iter().find(|(name, _)| *name == text) else {
        let names: Vec<&str> = ENGINES.iter().map(|(name, _)| *name).collect();
        return Err(format!("no such engine here; the engines are {}", names.join(", ")));
    };
    let means = ioengine.as_str();
    if text != means {
        value.note(format!("ioengine={text}: {means} is used"));
    }
    Ok(*ioengine)
}
