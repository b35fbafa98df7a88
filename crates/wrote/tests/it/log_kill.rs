//! A test that a log whose process is killed at random moments keeps every acknowledged record, and
//! contains no records that were not appended.
//!
//! `WROTE_KILLS` is the number of kills (20 by default). With the same `WROTE_SEED`, the moments
//! are the same.

use fixtures::{record, sender};
use rand::rngs::SysRng;
use rand::{RngExt, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use wrote::{Log, LogOptions, SyncPolicy};

const KILLS: u64 = 20;
/// The number of processes that append to one log before the test starts a new log.
const GENERATIONS: u64 = 7;
const PRODUCERS: u64 = 3;
/// The number of records that a producer appends before it waits for them.
const WINDOW: u64 = 5;
/// The maximum time from the start of a process to its kill. From 1 ms on, each doubling of the
/// time is equally likely.
const LATEST_MS: f64 = 200.0;

/// The environment variables of the process to be killed: the log's folder, the file of
/// acknowledgements, the index of its options, and the number of its first producer.
const CHILD: [&str; 4] =
    ["WROTE_TEST_FOLDER", "WROTE_TEST_SAID", "WROTE_TEST_WAY", "WROTE_TEST_PRODUCER"];

/// Returns the options of the tested logs. Their segments are small, so that there are many.
fn ways() -> [LogOptions; 2] {
    let small = Log::options().segment_bytes(512 << 10).buffer_bytes(32 << 10);
    [small.clone(), small.sync(SyncPolicy::No)]
}

/// Appends until the process is killed.
fn append_for_ever([folder, said, way, producer]: [OsString; 4]) {
    let number = |text: OsString| text.into_string().unwrap().parse::<u64>().unwrap();
    let (way, first) = (number(way), number(producer));
    let log = ways()[way as usize].open(folder).unwrap();
    let said = OpenOptions::new().append(true).open(said).unwrap();
    thread::scope(|scope| {
        for producer in first..first + PRODUCERS {
            let (log, said) = (&log, &said);
            scope.spawn(move || append(log, producer, said));
        }
    });
}

fn append(log: &Log, producer: u64, mut said: &File) {
    for begin in (0..).step_by(WINDOW as usize) {
        let numbers = begin..begin + WINDOW;
        let append = |number| log.append(&record(producer, number)).unwrap();
        let tickets: Vec<_> = numbers.clone().map(append).collect();
        for (number, ticket) in numbers.zip(tickets) {
            let sequence = ticket.sequence();
            ticket.wait().unwrap();
            // This is a single write, so a line is either complete or missing.
            said.write_all(format!("{sequence} {producer} {number}\n").as_bytes()).unwrap();
        }
    }
}

/// One log and the processes that append to it.
struct KilledLog {
    way: usize,
    folder: PathBuf,
    said: PathBuf,
    /// The number of records that the test's own process has appended between the other processes.
    own: u64,
}

/// The producer number of the test's own process.
const OWN: u64 = u64::MAX;

impl KilledLog {
    fn new(way: usize, folder: &Path) -> KilledLog {
        let said = folder.join("said");
        File::create(&said).unwrap();
        KilledLog { way, folder: folder.join("log"), said, own: 0 }
    }

    /// Starts a process that appends, and kills it.
    fn kill(&self, generation: u64, delay: Duration) {
        let values = [
            self.folder.clone().into_os_string(),
            self.said.clone().into_os_string(),
            self.way.to_string().into(),
            (generation * PRODUCERS).to_string().into(),
        ];
        let test = "a_killed_process_has_kept_every_promise";
        let mut child: Child = Command::new(std::env::current_exe().unwrap())
            .args(fixtures::alone(module_path!(), test))
            .arg("--nocapture")
            .envs(CHILD.into_iter().zip(values))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(delay);
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Returns the acknowledged records: the producer and the number, by sequence.
    fn acknowledged(&self) -> BTreeMap<u64, (u64, u64)> {
        let said = fs::read_to_string(&self.said).unwrap();
        let line = |line: &str| {
            let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            (words[0], (words[1], words[2]))
        };
        said.lines().map(line).collect()
    }

    /// Opens the log, compares it with the acknowledgements, and appends to it.
    fn check(&mut self, close: bool) {
        let log = ways()[self.way].open(&self.folder).unwrap();
        let records = log.reader(0).unwrap().map(|record| record.unwrap());
        let found: Vec<(u64, u64)> = (0..)
            .zip(records)
            .map(|(sequence, record)| {
                assert_eq!(record.sequence, sequence);
                let (producer, number) = sender(&record.bytes).expect("who sent it");
                assert!(record.bytes == self::record(producer, number), "record {sequence}");
                (producer, number)
            })
            .collect();
        let acknowledged = self.acknowledged();
        for (sequence, place) in &acknowledged {
            let there = found.get(usize::try_from(*sequence).unwrap());
            assert_eq!(there, Some(place), "record {sequence} was acknowledged");
        }
        self.all_in_order(&found, &acknowledged);
        let ticket = log.append(&record(OWN, self.own)).unwrap();
        assert_eq!(ticket.sequence(), found.len() as u64);
        let line = format!("{} {OWN} {}\n", ticket.sequence(), self.own);
        ticket.wait().unwrap();
        OpenOptions::new()
            .append(true)
            .open(&self.said)
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        self.own += 1;
        if close {
            log.close().unwrap();
        }
    }

    /// Asserts W9, and that no producer has more records than it has sent.
    fn all_in_order(&self, found: &[(u64, u64)], acknowledged: &BTreeMap<u64, (u64, u64)>) {
        let mut next = BTreeMap::new();
        for (producer, number) in found {
            let expected = next.entry(*producer).or_insert(0);
            assert_eq!(number, expected, "the order of producer {producer}");
            *expected += 1;
        }
        for (producer, count) in next {
            let of_it =
                acknowledged.values().filter(|(other, _)| *other == producer).count() as u64;
            let under_way = if producer == OWN { 0 } else { WINDOW };
            assert!(count <= of_it + under_way, "{count} of producer {producer}, {of_it} promised");
        }
    }
}

fn number_from(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

#[test]
fn a_killed_process_has_kept_every_promise() {
    let child = CHILD.map(std::env::var_os);
    if let [Some(folder), Some(said), Some(way), Some(producer)] = child {
        return append_for_ever([folder, said, way, producer]);
    }
    let kills = number_from("WROTE_KILLS").unwrap_or(KILLS);
    let seed =
        number_from("WROTE_SEED").unwrap_or_else(|| SysRng.try_next_u32().map_or(1, u64::from));
    println!("WROTE_SEED={seed} draws the same moments");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut log: Option<(tempfile::TempDir, KilledLog)> = None;
    let mut promises = 0;
    for number in 0..kills {
        let generation = number % GENERATIONS;
        if generation == 0 {
            let folder = fixtures::folder();
            let way = (number / GENERATIONS) as usize % ways().len();
            let killed = KilledLog::new(way, folder.path());
            log = Some((folder, killed));
        }
        let (_, killed) = log.as_mut().expect("a log");
        let delay_ms = LATEST_MS.powf(random.random_range(0.0..1.0));
        println!("kill {number}, way {}: after {delay_ms:.1} ms", killed.way);
        let before = killed.acknowledged().len();
        killed.kill(generation, Duration::from_secs_f64(delay_ms / 1e3));
        promises += killed.acknowledged().len() - before;
        killed.check(random.random_bool(0.5));
    }
    println!("{promises} promises in {kills} kills");
    assert!(promises > 0 || kills < GENERATIONS, "nobody was promised anything: it came too early");
}
