//! A job while its section is read: what was said so far, and on which lines.

use super::engine::Engine;
use super::ini::{Entry, Section};
use super::keys::{self, Key};
use super::note::quoted;
use super::value::{KbBase, Size, Value};
use super::{Notes, ParseError};
use crate::rate::Process;
use crate::spec::{BlockSizes, Data, Fallocate, Rw, SyncEach};
use std::collections::BTreeMap;
use std::time::Duration;

/// What sections say, with fio's defaults for what they do not.
#[derive(Clone)]
pub(super) struct Draft {
    /// The section's own name, which names its files.
    pub section: String,
    pub section_line: Option<usize>,
    /// The name in reports, where it is another.
    pub name: Option<String>,
    pub kb_base: KbBase,
    pub rw: Rw,
    pub rwmixread_percent: u32,
    pub engine: Engine,
    pub iodepth: u32,
    pub iodepth_batch: u32,
    pub iodepth_batch_complete_min: u32,
    /// `bs` of reads and writes; what it is without a word is 4 KiB.
    pub bs: [Option<BlockSizes>; 2],
    /// `bsrange`, which counts more than `bs` wherever it stands, as in fio.
    pub bsrange: [Option<BlockSizes>; 2],
    /// `bssplit`, which counts more than both.
    pub bssplit: [Option<BlockSizes>; 2],
    pub blockalign: Option<u64>,
    pub directories: Vec<String>,
    pub filenames: Vec<String>,
    pub filename_format: Option<String>,
    pub nrfiles: u32,
    pub size: Option<u64>,
    pub io_size: Option<Size>,
    pub filesize: Option<u64>,
    pub offset: u64,
    pub offset_increment: u64,
    pub loops: u32,
    pub numjobs: u32,
    pub direct: bool,
    pub sync: SyncEach,
    pub fsync: Option<u32>,
    pub fdatasync: Option<u32>,
    pub end_fsync: bool,
    pub runtime: Option<Duration>,
    pub time_based: bool,
    pub ramp_time: Duration,
    pub startdelay: Duration,
    pub rate: [Option<u64>; 2],
    pub rate_iops: [Option<u64>; 2],
    pub rate_process: Process,
    /// `gtod_reduce`, which stands for the three others.
    pub gtod_reduce: bool,
    pub disable_lat: bool,
    pub disable_clat: bool,
    pub disable_bw: bool,
    pub norandommap: bool,
    pub randrepeat: bool,
    pub allrandrepeat: bool,
    pub randseed: Option<u64>,
    pub verify: bool,
    pub do_verify: bool,
    pub zero_buffers: bool,
    pub compress_percent: Option<u32>,
    pub fallocate: Fallocate,
    pub invalidate: bool,
    pub hipri: bool,
    pub fixedbufs: bool,
    pub registerfiles: bool,
    pub sqthread_poll: bool,
    pub sqthread_poll_cpu: Option<u32>,
    pub percentiles: Vec<f64>,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    /// Each key that was said, under its usual name: its line and value.
    said: BTreeMap<&'static str, Said>,
    /// Counts the keys, so that reports have them in their order.
    count: usize,
}

#[derive(Clone)]
struct Said {
    order: usize,
    line: Option<usize>,
    value: Option<String>,
    /// By the section that is being read.
    own: bool,
}

/// The percentiles of a report where `percentile_list` says nothing: fio's.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            section: String::new(),
            section_line: None,
            name: None,
            kb_base: KbBase::default(),
            rw: Rw { read: true, write: false, random: false },
            rwmixread_percent: 50,
            engine: Engine::default(),
            iodepth: 1,
            iodepth_batch: 0,
            iodepth_batch_complete_min: 1,
            bs: [None, None],
            bsrange: [None, None],
            bssplit: [None, None],
            blockalign: None,
            directories: Vec::new(),
            filenames: Vec::new(),
            filename_format: None,
            nrfiles: 1,
            size: None,
            io_size: None,
            filesize: None,
            offset: 0,
            offset_increment: 0,
            loops: 1,
            numjobs: 1,
            direct: false,
            sync: SyncEach::No,
            fsync: None,
            fdatasync: None,
            end_fsync: false,
            runtime: None,
            time_based: false,
            ramp_time: Duration::ZERO,
            startdelay: Duration::ZERO,
            rate: [None, None],
            rate_iops: [None, None],
            rate_process: Process::Linear,
            gtod_reduce: false,
            disable_lat: false,
            disable_clat: false,
            disable_bw: false,
            norandommap: false,
            randrepeat: true,
            allrandrepeat: false,
            randseed: None,
            verify: false,
            do_verify: true,
            zero_buffers: false,
            compress_percent: None,
            fallocate: Fallocate::Native,
            invalidate: true,
            hipri: false,
            fixedbufs: false,
            registerfiles: false,
            sqthread_poll: false,
            sqthread_poll_cpu: None,
            percentiles: PERCENTILES.to_vec(),
            stonewall: false,
            new_group: false,
            group_reporting: false,
            said: BTreeMap::new(),
            count: 0,
        }
    }
}

impl Draft {
    /// What a job begins with: all that the `[global]` sections above it said.
    pub fn of_job(&self, section: &Section) -> Draft {
        let mut draft = self.clone();
        draft.section = section.name.clone();
        draft.section_line = Some(section.line);
        draft.name = None;
        draft
    }

    /// Takes what a section says, line by line; the last word counts. `kb_base` comes first, since
    /// it says how the others are read.
    pub fn take(&mut self, entries: &[Entry], notes: &mut Notes) -> Result<(), ParseError> {
        let kb_base = |entry: &&Entry| entry.key == "kb_base";
        let (first, rest): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(kb_base);
        self.said.values_mut().for_each(|said| said.own = false);
        for entry in first.into_iter().chain(rest) {
            let told = |problem: String| {
                let quoted = quoted(&entry.key, entry.value.as_deref());
                ParseError::new(entry.line, format!("{quoted}: {problem}"))
            };
            let key = keys::find(&entry.key).map_err(told)?;
            self.take_one(key, entry, notes).map_err(told)?;
        }
        Ok(())
    }

    fn take_one(&mut self, key: &Key, entry: &Entry, notes: &mut Notes) -> Result<(), String> {
        let mut value =
            Value { text: entry.value.as_deref(), line: entry.line, kb_base: self.kb_base, notes };
        key.take(self, &mut value)?;
        let said = Said {
            order: self.said.get(key.name).map_or(self.count, |said| said.order),
            line: entry.line,
            value: entry.value.clone(),
            own: true,
        };
        self.said.insert(key.name, said);
        self.count += 1;
        Ok(())
    }

    /// Whether the section that is being read said this key before.
    pub fn said_here(&self, key: &str) -> bool {
        self.said.get(key).is_some_and(|said| said.own)
    }

    /// Whether anyone said this key.
    pub fn said(&self, key: &str) -> bool {
        self.said.contains_key(key)
    }

    /// The line of a key; of one that was not said, the section's.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.said.get(key).map_or(self.section_line, |said| said.line)
    }

    /// An error about a key that was said, with its line and what it said.
    pub fn wrong(&self, key: &str, problem: impl AsRef<str>) -> ParseError {
        let problem = problem.as_ref();
        let text = match self.said.get(key) {
            Some(said) => format!("{}: {problem}", quoted(key, said.value.as_deref())),
            None => format!("{}: {problem}", quoted(&format!("[{}]", self.section), None)),
        };
        ParseError::new(self.line(key), text)
    }

    /// A note about a key, with its line and what it said.
    pub fn note(&self, key: &str, text: impl AsRef<str>, notes: &mut Notes) {
        let value = self.said.get(key).and_then(|said| said.value.as_deref());
        notes.add(self.line(key), format!("{}: {}", quoted(key, value), text.as_ref()));
    }

    /// All keys and values under their usual names, in the order in which they were first said.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut said: Vec<_> = self.said.iter().collect();
        said.sort_by_key(|(_, said)| said.order);
        let value = |said: &Said| said.value.clone().unwrap_or_else(|| "1".into());
        said.into_iter().map(|(name, said)| (name.to_string(), value(said))).collect()
    }

    /// Whether anyone wants each operation's latency: without `lat` there is still `clat`.
    pub fn takes_latencies(&self) -> bool {
        !(self.gtod_reduce || self.disable_lat && self.disable_clat)
    }

    /// What is written.
    pub fn data(&self) -> Data {
        match (self.zero_buffers, self.compress_percent) {
            (true, _) => Data::Zeros,
            (false, None | Some(0)) => Data::Random,
            (false, Some(percent)) => Data::Compressible(percent),
        }
    }
}
