//! Tests of the rescue of logs that are damaged at random positions.

use crate::small_log::{SYNCS, folder, record, segments, small};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs;
use std::path::{Path, PathBuf};
use wrote::log::{repair, verify};
use wrote::{LogReader, SyncPolicy};

const RECORDS: u64 = 700;

/// Creates a log with several segments. If it is not closed, it looks like a log after a kill.
fn make(path: &Path, sync: SyncPolicy, is_closed: bool) {
    let log = small().sync(sync).open(path).unwrap();
    (0..RECORDS).for_each(|number| drop(log.append(&record(number)).unwrap()));
    log.ticket(RECORDS - 1).wait().unwrap();
    if is_closed {
        log.close().unwrap();
        return;
    }
    let copy = path.with_extension("copy");
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(path).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    drop(log);
    fs::remove_dir_all(path).unwrap();
    fs::rename(&copy, path).unwrap();
}

/// Damages one file at random, and returns a description of the damage.
fn damage(files: &[PathBuf], random: &mut Xoshiro256PlusPlus) -> String {
    let place = random.random_range(0..files.len());
    let file = &files[place];
    let Ok(mut bytes) = fs::read(file) else { return "nothing more".to_owned() };
    let len = bytes.len();
    let at = if len == 0 { 0 } else { random.random_range(0..len) };
    let way = random.random_range(0..9);
    match way {
        0 => bytes.clear(),
        1 => bytes.fill(0),
        2 => {
            fs::remove_file(file).unwrap();
            return format!("segment {place} removed");
        }
        3 => bytes.truncate(at),
        4 if len > 0 => bytes[at] ^= 1 << random.random_range(0..8),
        5 => {
            let block = at / 4096 * 4096;
            bytes[block..(block + 4096).min(len)].fill(0);
        }
        6 => {
            let end = (at + random.random_range(1..70_000)).min(len);
            bytes.truncate(len.max(end));
            random.fill(&mut bytes[at..end]);
        }
        _ => {
            // A block is written to another offset, or over another block.
            let (from, to) = (at / 4096 * 4096, random.random_range(0..len.max(1)) / 4096 * 4096);
            let block = bytes[from..(from + 4096).min(len)].to_vec();
            let end = (to + block.len()).min(len);
            let old = bytes[to..end].to_vec();
            bytes[to..end].copy_from_slice(&block[..end - to]);
            if way == 8 && from.abs_diff(to) >= 4096 {
                bytes[from..from + old.len().min(block.len())]
                    .copy_from_slice(&old[..old.len().min(block.len())]);
            }
        }
    }
    fs::write(file, bytes).unwrap();
    format!("segment {place} of {len} bytes: way {way} at {at}")
}

/// Damages a log and repairs it. The log must then be intact, contain only records that were
/// written, and accept new ones.
fn rescue(seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sync = SYNCS[random.random_range(0..SYNCS.len())];
    let (_folder, path) = folder();
    let is_closed = random.random_bool(0.5);
    make(&path, sync, is_closed);
    let files = segments(&path);
    let damages = random.random_range(1..=3);
    let damages: Vec<_> = (0..damages).map(|_| damage(&files, &mut random)).collect();
    let context = format!("seed {seed}, {sync:?}, closed {is_closed}: {}", damages.join("; "));
    let before = verify(&path, None);
    let repaired = repair(&path);
    let (before, repaired) = match (before, repaired) {
        (Ok(before), Ok(repaired)) => (before, repaired),
        (before, repaired) => {
            // Nothing is left of the log.
            let is_gone = segments(&path).is_empty();
            assert!(is_gone, "{context}: {before:?}, {repaired:?}");
            return;
        }
    };
    assert!(repaired.records >= before.records, "{context}: {before:?}, {repaired:?}");
    let after = verify(&path, None).unwrap();
    assert!(after.damage.is_empty() && after.garbage.is_empty(), "{context}: {after:?}");
    let sequences = |path: &Path| -> Vec<u64> {
        let found = LogReader::open(path, 0).unwrap().map(|found| {
            let found = found.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(found.bytes == record(found.sequence), "{context}: record {}", found.sequence);
            found.sequence
        });
        found.collect()
    };
    let kept = sequences(&path);
    assert_eq!(kept.len() as u64, repaired.records, "{context}: {repaired:?}");
    for _ in 0..2 {
        let log = small().open(&path).unwrap_or_else(|error| panic!("{context}: {error}"));
        let sequence = log.stats().next_sequence;
        assert_eq!(log.append(&record(sequence)).unwrap().sequence(), sequence, "{context}");
        log.close().unwrap();
    }
    let now = sequences(&path);
    assert!(now.len() >= kept.len() + 2 && now.starts_with(&kept), "{context}");
    assert!(verify(&path, None).unwrap().damage.is_empty(), "{context}");
}

#[test]
fn after_a_repair_a_log_is_whole_and_takes_records_whatever_was_damaged() {
    let seeds = std::env::var("WROTE_SEEDS").map_or(40, |seeds| seeds.parse().unwrap());
    let first = std::env::var("WROTE_FROM_SEED").map_or(0, |seed| seed.parse().unwrap());
    (first..first + seeds).for_each(rescue);
}
