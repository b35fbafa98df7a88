//! Models which changes of names a crash would leave.
//!
//! Each name durably refers to a file or to nothing, and has later changes. A crash keeps the
//! changes made up to some call, and the changes that a flush covers.

use crate::call::Point;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;

/// Identifies a file, folder or link. Unlike an inode, the number is never reused.
pub type Id = u32;

/// An entry of a folder. There may be many entries, each in several lists that share its text.
pub type Place = (Id, Arc<OsStr>);

/// Returns the range of the entries of one folder.
fn all_in(folder: Id) -> Range<Place> {
    let first: Arc<OsStr> = OsStr::new("").into();
    (folder, Arc::clone(&first))..(folder + 1, first)
}

/// The minimum number of changes that are remembered.
const CHANGES_MIN: usize = 1 << 14;

/// The names in all folders.
#[derive(Debug, Default)]
pub struct Names {
    entries: BTreeMap<Place, Entry>,
    /// The changes that a crash may undo, by the number of their call.
    changes: BTreeMap<u64, Change>,
    /// The names changed after their folder's last flush, each with the time at which its last
    /// change ended.
    unflushed: BTreeMap<Place, u64>,
    /// The number of changes above which superseded changes are forgotten.
    changes_max: usize,
    /// The end times of the changes that a kernel queue completed before the current call.
    pub after: Vec<u64>,
}

/// The file that a name refers to: durably, and by later changes.
#[derive(Debug, Default)]
struct Entry {
    durable: Option<Id>,
    /// The changes of the name that a crash may undo, by the number of their call.
    open: Vec<(u64, Option<Id>)>,
}

impl Entry {
    fn now(&self) -> Option<Id> {
        self.at(u64::MAX)
    }

    fn at(&self, until: u64) -> Option<Id> {
        let kept = self.open.iter().rfind(|(at, _)| *at <= until);
        kept.map_or(self.durable, |(_, file)| *file)
    }
}

/// A change of names that a crash keeps or undoes as a whole.
#[derive(Debug)]
struct Change {
    names: Vec<Place>,
    /// The two folders; a flush of either makes the change durable.
    folders: [Id; 2],
    /// When the call ended. A flush that began earlier may miss the change.
    ended_ns: u64,
    /// Where and when the change removed the name of a complete file, if it does nothing else.
    removal: Option<Point>,
}

/// Returns whether a change had ended when a flush began.
fn is_before(after: &[u64], ended_ns: u64, began_ns: u64) -> bool {
    ended_ns <= began_ns || after.contains(&ended_ns)
}

impl Names {
    /// Returns the file that currently has a name; `None` if no known file does.
    pub fn now(&self, place: &Place) -> Option<Id> {
        self.entries.get(place).and_then(Entry::now)
    }

    /// Returns the file that has a name after a crash that keeps no change; `None` if no known file
    /// does.
    pub fn durable(&self, place: &Place) -> Option<Id> {
        self.entries.get(place)?.durable
    }

    /// Returns whether a durable name was removed and a crash may restore it.
    pub fn may_return(&self, place: &Place) -> bool {
        let entry = self.entries.get(place);
        entry.is_some_and(|entry| entry.durable.is_some() && entry.now().is_none())
    }

    /// Returns whether a name is or was known.
    pub fn knows(&self, place: &Place) -> bool {
        self.entries.contains_key(place)
    }

    /// Returns whether a crash can't change what a name refers to.
    pub fn is_durable(&self, place: &Place) -> bool {
        self.entries.get(place).is_none_or(|entry| entry.open.is_empty())
    }

    /// Returns whether the folder of a name has been flushed since the name's last change.
    pub fn is_flushed(&self, place: &Place) -> bool {
        !self.unflushed.contains_key(place)
    }

    /// Returns the files whose names in this folder a flush of the folder makes durable.
    pub fn unflushed(&self, folder: Id) -> impl Iterator<Item = Id> {
        self.unflushed.range(all_in(folder)).filter_map(|(place, _)| self.now(place))
    }

    /// Adds a name that existed before its first call.
    pub fn find(&mut self, place: Place, file: Id) {
        self.entries.entry(place).or_default().durable = Some(file);
    }

    /// Returns whether a crash may undo the change of a call.
    pub fn is_open(&self, at: u64) -> bool {
        self.changes.contains_key(&at)
    }

    /// Returns whether the change of a call had ended when a flush began.
    pub fn has_ended(&self, at: u64, began_ns: u64) -> bool {
        self.changes.get(&at).is_none_or(|change| is_before(&self.after, change.ended_ns, began_ns))
    }

    /// Returns the calls whose changes a crash may undo.
    pub fn open_calls(&self) -> impl ExactSizeIterator<Item = u64> {
        self.changes.keys().copied()
    }

    /// Returns the files with a name that a crash may change.
    pub fn open_files(&self) -> impl Iterator<Item = Id> {
        let names = self.changes.values().flat_map(|change| &change.names);
        names.filter_map(|place| self.now(place))
    }

    /// Returns the durable names that were removed and may come back, each with the point of its
    /// removal.
    pub fn removals(&self) -> impl Iterator<Item = (&Place, Point)> {
        self.changes.values().filter_map(|change| {
            let (place, removal) = (change.names.first()?, change.removal?);
            self.may_return(place).then_some((place, removal))
        })
    }

    /// Returns the entries of a folder after a crash that keeps the changes up to a call.
    pub fn entries(&self, folder: Id, until: u64) -> impl Iterator<Item = (&OsStr, Id)> {
        let below = self.entries.range(all_in(folder));
        below.filter_map(move |((_, name), entry)| Some((&**name, entry.at(until)?)))
    }

    /// Changes the files that names refer to, by call number `at`, which ended at `ended_ns`.
    pub fn change(
        &mut self,
        at: u64,
        ended_ns: u64,
        names: &[(Place, Option<Id>)],
        removal: Option<Point>,
    ) {
        for (place, file) in names {
            let open = &mut self.entries.entry(place.clone()).or_default().open;
            // Most names change once, and there may be many names.
            open.reserve_exact(usize::from(open.is_empty()));
            open.push((at, *file));
            self.unflushed.insert(place.clone(), ended_ns);
        }
        // A flush of a folder that only loses a name by a rename does not make the rename durable.
        let meant = names.iter().filter(|(_, file)| names.len() == 1 || file.is_some());
        let mut folders = meant.map(|((folder, _), _)| *folder);
        let Some(first) = folders.next() else { return };
        let folders = [first, folders.next().unwrap_or(first)];
        let names = names.iter().map(|(place, _)| place.clone()).collect();
        self.changes.insert(at, Change { names, folders, ended_ns, removal });
    }

    /// Handles a flush of a folder that began at `began_ns`: earlier changes of its names become
    /// durable.
    pub fn flush(&mut self, folder: Id, began_ns: u64) {
        let places: Vec<(Place, u64)> =
            self.unflushed.range(all_in(folder)).map(|(place, at)| (place.clone(), *at)).collect();
        for (place, ended_ns) in places {
            if is_before(&self.after, ended_ns, began_ns) {
                self.unflushed.remove(&place);
            }
            let Some(entry) = self.entries.get(&place) else { continue };
            // Later changes may have superseded all other names of this change.
            let is_kept = |change: &Change| {
                let is_here = change.folders.contains(&folder) || change.names.len() == 1;
                is_here && is_before(&self.after, change.ended_ns, began_ns)
            };
            let calls = entry.open.iter().map(|(at, _)| *at);
            let kept = calls.filter(|at| self.changes.get(at).is_some_and(is_kept));
            let kept: Vec<u64> = kept.collect();
            for at in kept {
                self.keep(at);
            }
        }
    }

    /// Handles a flush, begun at `began_ns`, of all folders for which `is_meant` holds.
    pub fn flush_all(&mut self, began_ns: u64, is_meant: impl Fn(Id) -> bool) {
        let is_before = |ended_ns: u64| ended_ns <= began_ns;
        self.unflushed.retain(|(folder, _), at| !(is_meant(*folder) && is_before(*at)));
        let kept = self
            .changes
            .iter()
            .filter(|(_, change)| is_meant(change.folders[0]) && is_before(change.ended_ns));
        let kept: Vec<u64> = kept.map(|(at, _)| *at).collect();
        for at in kept {
            self.keep(at);
        }
    }

    /// Makes a change durable, and drops earlier changes of its names, which no longer matter.
    /// Returns its folder; `None` if the change was already durable.
    pub fn keep(&mut self, at: u64) -> Option<Id> {
        let change = self.changes.remove(&at)?;
        for place in change.names {
            let Some(entry) = self.entries.get_mut(&place) else { continue };
            let Some(index) = entry.open.iter().position(|(of, _)| *of == at) else { continue };
            entry.durable = entry.open[index].1;
            let earlier: Vec<_> = entry.open.drain(..=index).collect();
            if entry.durable.is_none() && entry.open.is_empty() {
                self.entries.remove(&place);
                self.unflushed.remove(&place);
            }
            earlier.into_iter().for_each(|(at, _)| self.supersede(at, &place));
        }
        Some(change.folders[0])
    }

    /// Returns the folders of all known names, once for each name.
    pub fn folders(&self) -> impl Iterator<Item = Id> {
        self.entries.keys().map(|(folder, _)| *folder)
    }

    /// Forgets a name.
    pub fn drop(&mut self, place: &Place) {
        self.unflushed.remove(place);
        let open = self.entries.remove(place).map_or(Vec::new(), |entry| entry.open);
        open.into_iter().for_each(|(at, _)| self.supersede(at, place));
    }

    /// Removes a name from a change.
    fn supersede(&mut self, at: u64, place: &Place) {
        if let Some(change) = self.changes.get_mut(&at) {
            change.names.retain(|of| of != place);
            if change.names.is_empty() {
                self.changes.remove(&at);
            }
        }
    }

    /// If there are many changes, forgets superseded changes and removed names. Returns whether it
    /// did. After that, some states can no longer be derived, but statements about existing names
    /// remain true.
    pub fn forget(&mut self) -> bool {
        if self.changes.len() < self.changes_max.max(CHANGES_MIN) {
            return false;
        }
        let mut room = CHANGES_MIN / 2;
        self.entries.retain(|_, entry| {
            entry.open.drain(..entry.open.len().saturating_sub(1));
            let is_there = entry.now().is_some();
            // Of the removed names that may come back, only as many are kept as a report shows.
            let may_return = !is_there && entry.durable.is_some() && room > 0;
            room -= usize::from(may_return);
            is_there || may_return
        });
        let Names { entries, changes, unflushed, .. } = self;
        unflushed.retain(|place, _| entries.contains_key(place));
        changes.retain(|at, change| {
            let is_open = |entry: &Entry| entry.open.iter().any(|(of, _)| of == at);
            change.names.retain(|place| entries.get(place).is_some_and(is_open));
            !change.names.is_empty()
        });
        self.changes_max = 2 * self.changes.len();
        true
    }
}
