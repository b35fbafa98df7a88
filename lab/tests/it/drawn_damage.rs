//! Damaged logs: trials of `damage.rs` that are drawn from seeds. A failure contains each trial
//! that breaks a rule of `damage/judge.rs`, with the fewest edits that still break it.

use crate::damage::{Edit, Original, Trial, written};
use crate::drawn;
use arbitrary::{Arbitrary, Unstructured};
use lab::verbs::{Trouble, least, without_each};
use lab::words_of_panic;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tempfile::{TempDir, tempdir_in};

/// Only a seed that is a multiple of this number may have edits with forged checksums, after which
/// few rules hold.
const FORGED_EVERY: u64 = 8;
/// The folder of a file system in memory (`tmpfs(5)`).
const MEMORY: &str = "/dev/shm";
/// The number of logs in memory for each additional log on a disk. Each log needs about twenty
/// flushes and a hundred requests, and the rules do not depend on the disk.
const ON_DISK: u32 = 10;

/// Damages, reads and repairs this number of logs.
fn judge(logs: u32) {
    match tempdir_in(MEMORY) {
        Ok(memory) => {
            judge_in(&memory, logs);
            judge_in(&lab::folder(), logs / ON_DISK);
        }
        Err(_) => judge_in(&lab::folder(), logs),
    }
}

fn judge_in(folder: &TempDir, logs: u32) {
    let written = written(folder.path()).expect("logs");
    let place = || Ok::<_, Trouble>(tempdir_in(folder.path())?);
    let broken = drawn(logs).try_all("damaged logs", place, |folder, seed| {
        let broken = |trial: &Trial| tried(trial, folder.path(), &written).err();
        let trial = draw(seed)?;
        let Some(because) = broken(&trial) else { return Ok(None) };
        let is_broken = |trial: &Trial| Ok::<_, Trouble>(broken(trial).is_some());
        let least = least(trial, fewer_edits, is_broken)?;
        let why = broken(&least).unwrap_or_default();
        Ok(Some(format!("{because}\n  {least:?}: {why}")))
    });
    assert_eq!(broken.expect("every log is tried"), 0, "WROTE_FROM_SEED=SEED tries it again");
}

/// Draws a trial with one to three edits.
fn draw(seed: u64) -> Result<Trial, Trouble> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bytes = [0; 512];
    random.fill_bytes(&mut bytes);
    let mut bytes = Unstructured::new(&bytes);
    let mut trial = Trial::arbitrary(&mut bytes)?;
    trial.edits.clear();
    let count = random.random_range(1..4);
    while trial.edits.len() < count {
        let edit = Edit::arbitrary(&mut bytes)?;
        if seed.is_multiple_of(FORGED_EVERY) || !edit.is_forged() {
            trial.edits.push(edit);
        }
    }
    Ok(trial)
}

/// Returns versions of a trial, each of which lacks one edit.
fn fewer_edits(trial: &Trial) -> Vec<Trial> {
    let with = |edits| {
        let mut fewer = trial.clone();
        fewer.edits = edits;
        fewer
    };
    without_each(&trial.edits).map(with).collect()
}

/// Runs a trial, and returns the broken rule. A panic is treated as a broken rule.
fn tried(trial: &Trial, folder: &Path, written: &[Original]) -> Result<(), String> {
    // The folder of a log must contain nothing else.
    let folder = folder.join("log");
    catch_unwind(AssertUnwindSafe(|| trial.run(&folder, written)))
        .unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

#[test]
fn drawn_damage_keeps_the_rules() {
    judge(600);
}

#[test]
#[ignore = "nightly"]
fn much_drawn_damage_keeps_the_rules() {
    judge(6_000);
}
