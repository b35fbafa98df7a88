//! The names on a simulated disk: as the running system sees them, on stable storage, and the
//! changes between the two.

use super::Chance;
use crate::engine::names::{NameChange, folder_of};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The number of the file that each name refers to.
type Table = BTreeMap<PathBuf, usize>;

#[derive(Default)]
pub(super) struct Names {
    /// The names as the running system sees them.
    seen: Table,
    /// The names after a power loss.
    stable: Table,
    /// The changes from `stable` to `seen`, in order.
    since: Vec<Change>,
}

/// An atomic change of one or two names.
#[derive(Clone)]
enum Change {
    Add(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Change {
    fn apply(&self, table: &mut Table) {
        match self {
            Change::Add(path, file) => drop(table.insert(path.clone(), *file)),
            Change::Remove(path) => drop(table.remove(path)),
            Change::Rename(from, to) => {
                if let Some(file) = table.remove(from) {
                    table.insert(to.clone(), file);
                }
            }
        }
    }

    fn touches(&self, folder: &Path) -> bool {
        let is_in = |path: &PathBuf| folder_of(path) == folder;
        match self {
            Change::Add(path, _) | Change::Remove(path) => is_in(path),
            Change::Rename(from, to) => is_in(from) || is_in(to),
        }
    }
}

impl Names {
    pub(super) fn file(&self, path: &Path) -> Option<usize> {
        self.seen.get(path).copied()
    }

    pub(super) fn stable_file(&self, path: &Path) -> Option<usize> {
        self.stable.get(path).copied()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = usize> {
        self.seen.values().copied()
    }

    pub(super) fn all(&self) -> Vec<PathBuf> {
        self.seen.keys().cloned().collect()
    }

    pub(super) fn add(&mut self, path: &Path, file: usize) {
        self.note(Change::Add(path.to_owned(), file));
    }

    pub(super) fn change(&mut self, change: NameChange) -> Result<(), Errno> {
        let is_there = |path: &Path| self.seen.contains_key(path);
        match change {
            NameChange::Rename { from, .. } if !is_there(from) => return Err(Errno::NOENT),
            NameChange::Rename { to, replace: false, .. } if is_there(to) => {
                return Err(Errno::EXIST);
            }
            NameChange::Rename { from, to, .. } => {
                self.note(Change::Rename(from.to_owned(), to.to_owned()));
            }
            NameChange::Remove(path) if !is_there(path) => return Err(Errno::NOENT),
            NameChange::Remove(path) => self.note(Change::Remove(path.to_owned())),
            NameChange::SyncFolder(folder) => {
                let stable = &mut self.stable;
                self.since.retain(|change| {
                    let touches = change.touches(folder);
                    if touches {
                        change.apply(stable);
                    }
                    !touches
                });
            }
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) {
        self.stable.clone_from(&self.seen);
        self.since.clear();
    }

    pub(super) fn restart(&mut self) {
        self.seen.clone_from(&self.stable);
        self.since.clear();
    }

    pub(super) fn lose_power(&mut self, chance: &mut Chance) {
        let kept = chance.below(self.since.len() + 1);
        for change in self.since.drain(..).take(kept) {
            change.apply(&mut self.stable);
        }
    }

    fn note(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.since.push(change);
    }
}
