//! A job while its sections are read: its values so far, and their lines.

use super::engine::Engine;
use super::ini::{Entry, Section};
use super::note::quoted;
use super::value::{KbBase, Size};
use super::{Notes, ParseError};
use crate::spec::{BlockSizes, Data, Fallocate, Rw, SyncEach};
use std::collections::BTreeMap;
use std::time::Duration;
use wrote_result::document::Process;

/// The values of sections, with fio's defaults for the rest.
#[derive(Clone)]
pub(super) struct Draft {
    /// The section's own name, from which its files are named.
    pub section: String,
    pub section_line: Option<usize>,
    /// The name in reports, where it differs.
    pub name: Option<String>,
    pub kb_base: KbBase,
    pub rw: Rw,
    pub rwmixread_percent: u32,
    pub engine: Engine,
    pub iodepth: u32,
    pub iodepth_batch: u32,
    pub iodepth_batch_complete_min: u32,
    /// `bs` of reads and writes; 4 KiB by default.
    pub bs: [Option<BlockSizes>; 2],
    /// `bsrange`, which precedes `bs` in any order of lines, as in fio.
    pub bsrange: [Option<BlockSizes>; 2],
    /// `bssplit`, which precedes both.
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
    /// `gtod_reduce`, which implies the three others.
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
    /// Each key so far, under its canonical name: its line and value.
    said: BTreeMap<&'static str, KeyLine>,
    /// Counts the keys, for reports in their order.
    count: usize,
}

#[derive(Clone)]
struct KeyLine {
    order: usize,
    line: Option<usize>,
    value: Option<String>,
    /// Whether the present section has it.
    own: bool,
}

/// fio's percentiles of a report without `percentile_list`.
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
    /// Begins a job with the values of the `[global]` sections above it.
    pub fn of_job(&self, section: &Section) -> Draft {
        let mut draft = self.clone();
        draft.section = section.name.clone();
        draft.section_line = Some(section.line);
        draft.name = None;
        draft
    }

    /// Begins a section, which has no keys yet.
    pub fn begin_section(&mut self) {
        self.said.values_mut().for_each(|said| said.own = false);
    }

    /// Records a key of the present section; its last line counts.
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

    /// Returns whether the present section had this key before.
    pub fn said_here(&self, key: &str) -> bool {
        self.said.get(key).is_some_and(|said| said.own)
    }

    /// Returns whether any section had this key.
    pub fn said(&self, key: &str) -> bool {
        self.said.contains_key(key)
    }

    /// Returns the line of a key, or the section's line.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.said.get(key).map_or(self.section_line, |said| said.line)
    }

    /// Makes an error about a key, with its line and value.
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

    /// Returns all keys and values under their canonical names, in the order of their first lines.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut said: Vec<_> = self.said.iter().collect();
        said.sort_by_key(|(_, said)| said.order);
        let value = |said: &KeyLine| said.value.clone().unwrap_or_else(|| "1".into());
        said.into_iter().map(|(name, said)| (name.to_string(), value(said))).collect()
    }

    /// Returns whether each operation's latency is wanted: without `lat` there is still `clat`.
    pub fn takes_latencies(&self) -> bool {
        !(self.gtod_reduce || self.disable_lat && self.disable_clat)
    }

    /// Returns the data to write.
    pub fn data(&self) -> Data {
        match (self.zero_buffers, self.compress_percent) {
            (true, _) => Data::Zeros,
            (false, None | Some(0)) => Data::Random,
            (false, Some(percent)) => Data::Compressible(percent),
        }
    }
}
