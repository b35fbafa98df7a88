//! Trials of damaged logs. Each consists of a log, edits of its files, and the next step.
//!
//! The tests `drawn_damage` draw trials from seeds. They edit files with `edit.rs` and judge with
//! `judge.rs`.

mod edit;
mod judge;
mod original;

pub use edit::Edit;
pub use original::{Original, written};

use arbitrary::Arbitrary;
use judge::Truth;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files of a log, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The maximum number of edits to one log.
const EDITS_MAX: usize = 16;

/// A log, its damage, and the step that follows reading it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Trial {
    /// The index of the log, modulo the number of logs.
    log: u8,
    then: NextStep,
    /// The edits that damage the log, in order.
    pub edits: Vec<Edit>,
}

/// The action on a damaged log after reading it.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    Nothing,
    Append,
    Repair,
    RepairAndAppend,
}

impl Trial {
    /// Damages the log, puts its files into `folder`, and checks the rules. `written` are the logs
    /// that [`written`] returns.
    ///
    /// # Errors
    ///
    /// If a rule is broken, or the folder cannot be written.
    pub fn run(&self, folder: &Path, written: &[Original]) -> Result<(), String> {
        let original = &written[usize::from(self.log) % written.len()];
        let mut files = original.files.clone();
        self.edits.iter().take(EDITS_MAX).for_each(|edit| edit.apply(&mut files, original));
        put(folder, &files)?;
        let is_forged = self.edits.iter().any(Edit::is_forged);
        if is_forged {
            return judge::forged(folder, self.then == NextStep::Append);
        }
        let truth = Truth::new(original, &files);
        let before = judge::reading(folder, &truth, &files)?;
        match self.then {
            NextStep::Nothing => Ok(()),
            NextStep::Append => judge::append(folder, &truth, &files, &before),
            NextStep::Repair => judge::repair(folder, &truth, &files, &before),
            NextStep::RepairAndAppend => {
                judge::repair(folder, &truth, &files, &before)?;
                let repaired = self::files(folder).map_err(|error| error.to_string())?;
                let after = judge::read(folder, 0)?;
                judge::append(folder, &truth, &repaired, &after)
                    .map_err(|because| format!("repaired, and {because}"))
            }
        }
    }
}

/// Replaces the content of the folder with `files`.
fn put(folder: &Path, files: &Files) -> Result<(), String> {
    let trouble = |error: std::io::Error| error.to_string();
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(trouble)?;
    }
    fs::create_dir(folder).map_err(trouble)?;
    files.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes)).map_err(trouble)
}

/// Reads the files of a log, except for its lock and temporary files.
fn files(folder: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "lock" && !name.starts_with('.') {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}
