//! `lab damage`: trials of damaged logs, one per seed. It prints each that breaks a rule of
//! `lab/src/damage/judge.rs`, with the fewest edits that still break it.

#![forbid(unsafe_code)]

use super::{Trouble, least, none_broken, without_each};
use crate::damage::{Edit, Original, Trial, written};
use crate::fixtures::words_of_panic;
use crate::runs::seeds;
use arbitrary::{Arbitrary, Unstructured};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::panic::{self, catch_unwind};
use std::path::{Path, PathBuf};

/// One in this number of seeds has edits with forged checksums: of such a log little can be said.
const FORGED_EVERY: u64 = 8;

/// Damages logs and reads them.
#[derive(clap::Args)]
pub struct Arguments {
    /// A folder for the logs.
    #[arg(long)]
    folder: PathBuf,
    #[command(flatten)]
    seeds: seeds::Arguments,
}

/// Damages all logs; fails if one broke a rule.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    // A panic is printed with its seed.
    panic::set_hook(Box::new(|_| ()));
    let written = written(&arguments.folder)?;
    let place = || Ok::<_, Trouble>(tempfile::tempdir_in(&arguments.folder)?);
    let broken = arguments.seeds.seeds().try_all("damaged logs", place, |folder, seed| {
        let broken = |trial: &Trial| tried(trial, folder.path(), &written).err();
        let trial = draw(seed)?;
        let Some(because) = broken(&trial) else { return Ok(None) };
        let is_broken = |trial: &Trial| Ok::<_, Trouble>(broken(trial).is_some());
        let least = least(trial, fewer_edits, is_broken)?;
        let why = broken(&least).unwrap_or_default();
        Ok(Some(format!("{because}\n  {least:?}: {why}")))
    })?;
    none_broken(broken)
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

/// Leaves out each edit of a trial.
fn fewer_edits(trial: &Trial) -> Vec<Trial> {
    let with = |edits| {
        let mut fewer = trial.clone();
        fewer.edits = edits;
        fewer
    };
    without_each(&trial.edits).map(with).collect()
}

/// Runs a trial, and returns the broken rule. A panic counts as one.
fn tried(trial: &Trial, folder: &Path, written: &[Original]) -> Result<(), String> {
    // The folder of a log holds nothing else.
    let folder = folder.join("log");
    catch_unwind(panic::AssertUnwindSafe(|| trial.run(&folder, written)))
        .unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}
