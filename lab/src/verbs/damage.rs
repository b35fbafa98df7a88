//! `lab damage`: trials of damaged logs, one per seed. It prints each that breaks a rule of
//! `lab/src/damage/judge.rs`, with the fewest edits that still break it.

#![forbid(unsafe_code)]

use super::{Trouble, none_broken};
use crate::damage::{Edit, Original, Trial, written};
use crate::fixtures::{Seeds, words_of_panic};
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
    /// How many logs to damage.
    #[arg(long, default_value_t = 1000)]
    logs: u64,
    /// The seed of the first; each other has the next.
    #[arg(long, default_value_t = 0)]
    from_seed: u64,
    /// Stop after this many broken rules.
    #[arg(long, default_value_t = 3)]
    failures: usize,
}

/// Damages all logs; fails if one broke a rule.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    // A panic is printed with its seed.
    panic::set_hook(Box::new(|_| ()));
    let &Arguments { logs: count, from_seed: from, failures, .. } = arguments;
    let written = written(&arguments.folder)?;
    let place = || Ok::<_, Trouble>(tempfile::tempdir_in(&arguments.folder)?);
    let broken =
        Seeds { from, count, failures }.try_all("damaged logs", place, |folder, seed| {
            let broken = |trial: &Trial| tried(trial, folder.path(), &written).err();
            let mut trial = draw(seed)?;
            let Some(because) = broken(&trial) else { return Ok(None) };
            trial.shorten(|fewer| broken(fewer).is_some());
            let least = broken(&trial).unwrap_or_default();
            Ok(Some(format!("{because}\n  {trial:?}: {least}")))
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

/// Runs a trial, and returns the broken rule. A panic counts as one.
fn tried(trial: &Trial, folder: &Path, written: &[Original]) -> Result<(), String> {
    // The folder of a log holds nothing else.
    let folder = folder.join("log");
    catch_unwind(panic::AssertUnwindSafe(|| trial.run(&folder, written)))
        .unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}
