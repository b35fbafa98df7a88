//! `lab damage`: logs with damaged files, one per seed. It prints each that breaks a rule of
//! `lab/src/damage.rs`, with the fewest edits that still break it.

#![forbid(unsafe_code)]

mod edit;
mod written;

use super::{Trouble, none_broken};
use crate::damage;
use crate::fixtures::{Seeds, words_of_panic};
use edit::Edit;
use std::panic::{self, catch_unwind};
use std::path::{Path, PathBuf};
use written::{Damaged, Written};

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
    let logs = written::logs(&arguments.folder)?;
    let place = || Ok::<_, Trouble>(tempfile::tempdir_in(&arguments.folder)?);
    let broken =
        Seeds { from, count, failures }.try_all("damaged logs", place, |folder, seed| {
            let (log, edits) = edit::draw(seed, logs.len());
            let Err(because) = one(folder.path(), &logs, log, &edits) else { return Ok(None) };
            let edits = fewest(folder.path(), &logs, log, edits);
            let least = one(folder.path(), &logs, log, &edits).err().unwrap_or_default();
            Ok(Some(format!("{because}\n  {}: {edits:?}: {least}", logs[log].name)))
        })?;
    none_broken(broken)
}

/// Damages one log, and returns the broken rule. A panic counts as one.
fn one(folder: &Path, logs: &[Written], log: usize, edits: &[Edit]) -> Result<(), String> {
    let mut files = logs[log].files.clone();
    let other = &logs[log ^ 1];
    edits.iter().for_each(|edit| edit.apply(&mut files, &logs[log], other));
    catch_unwind(|| check(folder, &Damaged { log: &logs[log], files: &files }))
        .unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

/// Checks the rules of reading and the next append, and of a repair and the append after it.
fn check(folder: &Path, damaged: &Damaged) -> Result<(), String> {
    let files = damaged.files;
    damage::put(folder, files)?;
    let before = damage::reading(folder, damaged, files)?;
    damage::append(folder, damaged, files, &before)?;
    damage::put(folder, files)?;
    damage::repair(folder, damaged, files, &before)?;
    let repaired = damage::files(folder).map_err(|error| error.to_string())?;
    if repaired == *files {
        return Ok(());
    }
    let after = damage::read(folder, 0)?;
    damage::append(folder, damaged, &repaired, &after)
        .map_err(|because| format!("repaired, and {because}"))
}

/// Removes edits while a rule is still broken.
fn fewest(folder: &Path, logs: &[Written], log: usize, mut edits: Vec<Edit>) -> Vec<Edit> {
    let mut at = 0;
    while at < edits.len() {
        let mut fewer = edits.clone();
        fewer.remove(at);
        if one(folder, logs, log, &fewer).is_err() {
            edits = fewer;
        } else {
            at += 1;
        }
    }
    edits
}
