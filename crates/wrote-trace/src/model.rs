//! Models the files as they would be after a crash at each moment.
//!
//! Data and names are tracked separately, as in file systems: `fdatasync` of a file makes its data
//! durable, and a flush of its folder makes its name durable. Some file systems keep more than
//! POSIX promises, so there are two answers: see [`Promise`].

use crate::call::{Act, Call, FileId, How, Name, Storage};
use rangemap::RangeSet;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use wrote::Survives;

/// The guarantees that a level relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// POSIX: a name is durable once its folder has been flushed.
    Posix,
    /// ext4, XFS and Btrfs as observed in this project's crash tests (`docs/durability.md`):
    /// flushing a new file also makes its name durable; flushing a renamed file does not.
    Seen,
}

/// The removed files that are known at least: they may be open, or get a name again.
const REMOVED_MIN: usize = 1 << 13;

/// All files that a program has used.
#[derive(Debug, Default)]
pub struct Model {
    files: HashMap<FileId, File>,
    /// Removed files, the latest last. Some may have come back.
    removed: Vec<FileId>,
    /// The files that may not be durable.
    changed: HashSet<FileId>,
    /// Files with a name in a folder that was not flushed since.
    unflushed_names: HashMap<FileId, BTreeSet<FileId>>,
    storages: HashMap<u64, Storage>,
}

/// A file or folder.
#[derive(Debug, Default)]
pub struct File {
    /// Its current or last name; `None` if it never had one.
    pub name: Option<Name>,
    /// Whether its last name was removed.
    pub is_removed: bool,
    /// Whether it has a writable mapping, whose writes are not observed.
    pub is_mapped: bool,
    /// Whether it is a folder created by the program.
    is_folder: bool,
    /// How it got its name, unless that is durable.
    naming: Naming,
    /// Written bytes that are not durable.
    dirty: RangeSet<u64>,
    /// Bytes of `dirty` whose flush failed; no later flush saves them (W2).
    lost: RangeSet<u64>,
    /// Bytes of `dirty` written directly over durable bytes.
    in_place: RangeSet<u64>,
    /// Durable bytes with allocated blocks on disk.
    settled: RangeSet<u64>,
    /// Whether a size change is not durable.
    is_resized: bool,
    /// Whether one of those has cut durable bytes.
    is_cut: bool,
}

/// How a file got a name that is not durable yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Naming {
    #[default]
    Durable,
    Made,
    /// Created or linked, and flushed since.
    MadeAndFlushed,
    Renamed,
}

impl File {
    /// Returns whether data or size have unflushed changes.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_resized
    }

    /// Returns whether data, size or name have changes that a power cut may undo.
    fn is_changed(&self) -> bool {
        self.is_dirty() || !self.has_durable_name(Promise::Seen)
    }

    /// Returns whether durable bytes were cut, and no flush has made that durable.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether some of these bytes were written and not flushed.
    pub fn is_dirty_in(&self, bytes: &Range<u64>) -> bool {
        self.dirty.overlaps(bytes)
    }

    /// Returns the number of unflushed bytes.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns whether the flush of some bytes failed that were not rewritten since.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns whether a write repeats bytes whose flush failed.
    pub fn repeats_lost(&self, bytes: &Range<u64>) -> bool {
        self.lost.overlaps(bytes)
    }

    /// Returns whether the file was renamed and its folder not flushed since.
    pub fn is_renamed(&self) -> bool {
        self.naming == Naming::Renamed
    }

    /// Returns its path, empty if it never had a name.
    pub fn path(&self) -> &Path {
        self.name.as_ref().map_or(Path::new(""), |name| &name.path)
    }

    fn has_durable_name(&self, promise: Promise) -> bool {
        match self.naming {
            Naming::Durable => !self.is_removed,
            Naming::MadeAndFlushed => promise == Promise::Seen,
            Naming::Made | Naming::Renamed => false,
        }
    }

    fn write(&mut self, bytes: Range<u64>, how: How) {
        if bytes.is_empty() {
            return;
        }
        self.lost.remove(bytes.clone());
        if how.is_durable {
            self.dirty.remove(bytes.clone());
            self.in_place.remove(bytes.clone());
            self.settled.insert(bytes);
        } else if how.is_direct && self.settled.gaps(&bytes).next().is_none() {
            self.dirty.insert(bytes.clone());
            self.in_place.insert(bytes);
        } else {
            self.in_place.remove(bytes.clone());
            self.dirty.insert(bytes);
        }
    }

    fn resize(&mut self, from_bytes: u64, to_bytes: u64) {
        self.is_resized = true;
        if to_bytes < from_bytes {
            self.erase(to_bytes..u64::MAX);
        }
    }

    fn erase(&mut self, bytes: Range<u64>) {
        self.is_resized = true;
        self.is_cut |= self.settled.overlaps(&bytes);
        self.ranges().into_iter().for_each(|ranges| ranges.remove(bytes.clone()));
    }

    fn shift(&mut self, at_byte: u64, from_bytes: u64, to_bytes: u64) {
        self.is_resized = true;
        let cut_end = at_byte + from_bytes.saturating_sub(to_bytes);
        if cut_end > at_byte {
            self.erase(at_byte..cut_end);
        }
        for ranges in self.ranges() {
            let later: Vec<_> = ranges.overlapping(&(cut_end..u64::MAX)).cloned().collect();
            ranges.remove(cut_end..u64::MAX);
            let moved = |byte: u64| (byte.max(cut_end) + to_bytes).saturating_sub(from_bytes);
            ranges.extend(later.into_iter().map(|range| moved(range.start)..moved(range.end)));
        }
    }

    fn ranges(&mut self) -> [&mut RangeSet<u64>; 4] {
        [&mut self.dirty, &mut self.lost, &mut self.in_place, &mut self.settled]
    }

    fn flush(&mut self) {
        self.settled.extend(self.dirty.iter().cloned());
        for range in self.lost.iter() {
            self.settled.remove(range.clone());
        }
        self.dirty.clone_from(&self.lost);
        self.in_place.clear();
        self.is_resized = false;
        self.is_cut = false;
    }
}

impl Model {
    /// Returns a device's storage; if unknown, a disk without special guarantees.
    pub fn storage(&self, device: u64) -> Storage {
        let unknown = Storage { flushes_reach_device: true, ..Storage::default() };
        self.storages.get(&device).copied().unwrap_or(unknown)
    }

    /// Returns a file that appeared in a call.
    pub fn file(&self, file: FileId) -> Option<&File> {
        self.files.get(&file)
    }

    /// Returns all files in arbitrary order.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &File)> {
        self.files.iter().map(|(id, file)| (*id, file))
    }

    /// Returns the files that the program has changed and not made durable.
    pub fn unsafe_files(&self) -> impl Iterator<Item = FileId> {
        let is_unsafe = |file: &FileId| self.survives(*file, Promise::Seen) < Survives::PowerLoss;
        self.changed.iter().copied().filter(is_unsafe)
    }

    /// Forgets the files that were removed first, where there are many. Returns them.
    pub fn forget_removed(&mut self) -> Vec<FileId> {
        if self.removed.len() < 2 * REMOVED_MIN {
            return Vec::new();
        }
        let mut oldest: Vec<FileId> = self.removed.drain(..REMOVED_MIN).collect();
        oldest.retain(|file| self.files.get(file).is_some_and(|known| known.is_removed));
        for file in &oldest {
            self.files.remove(file);
            self.changed.remove(file);
        }
        oldest
    }

    /// Returns the files whose names a flush of this folder makes durable.
    pub fn unflushed_names(&self, folder: FileId) -> impl Iterator<Item = FileId> {
        self.unflushed_names.get(&folder).into_iter().flatten().copied()
    }

    /// Returns the worst event that a file's writes survive, under these guarantees.
    pub fn survives(&self, file: FileId, promise: Promise) -> Survives {
        let storage = self.storage(file.device);
        let Some(known) = self.files.get(&file) else { return Survives::PowerLoss };
        let bytes = if !known.is_dirty() {
            Survives::PowerLoss
        } else if storage.writes_in_place
            && !known.is_resized
            && known.dirty.iter().all(|range| known.in_place.gaps(range).next().is_none())
        {
            Survives::OsCrash
        } else {
            Survives::ProcessCrash
        };
        let is_found = known.has_durable_name(promise) && self.has_durable_folders(known, promise);
        let name = if is_found { Survives::PowerLoss } else { Survives::ProcessCrash };
        let most = match storage {
            Storage { is_in_memory: true, .. } => Survives::ProcessCrash,
            Storage { flushes_reach_device: false, .. } => Survives::OsCrash,
            _ => Survives::PowerLoss,
        };
        bytes.min(name).min(most)
    }

    /// Returns whether the parent folders created by the program have durable names. No crash test
    /// covers this; the behaviour observed for new files is assumed to extend to their folders.
    fn has_durable_folders(&self, file: &File, promise: Promise) -> bool {
        let mut above = file.name.as_ref().and_then(|name| self.files.get(&name.folder));
        while let Some(folder) = above.filter(|_| promise == Promise::Posix) {
            if !folder.has_durable_name(promise) {
                return false;
            }
            above = folder.name.as_ref().and_then(|name| self.files.get(&name.folder));
        }
        true
    }

    /// Processes a call.
    pub fn see(&mut self, call: &Call) {
        match &call.act {
            Act::Storage { device, storage } => {
                self.storages.insert(*device, *storage);
            }
            Act::Found { file, name, size_bytes } => {
                let is_removed = name.is_none();
                let mut found = File { name: name.clone(), is_removed, ..File::default() };
                if *size_bytes > 0 {
                    found.settled.insert(0..*size_bytes);
                }
                self.files.entry(*file).or_insert(found);
            }
            Act::Made { file, name } => self.make(*file, name.clone()),
            Act::MadeLink { file, name, .. } => self.make(*file, Some(name.clone())),
            Act::MadeFolder { file, name } => {
                self.make(*file, Some(name.clone()));
                self.known(*file).is_folder = true;
            }
            Act::Write { file, bytes, how, .. } => {
                self.changed(*file).write(bytes.clone(), *how);
                if how.is_durable {
                    self.keep_name(*file);
                }
            }
            Act::Empty { file, size_bytes } => self.changed(*file).resize(*size_bytes, 0),
            Act::Resize { file, from_bytes, to_bytes } => {
                self.changed(*file).resize(*from_bytes, *to_bytes);
            }
            Act::Erase { file, bytes, .. } => self.changed(*file).erase(bytes.clone()),
            Act::Shift { file, at_byte, from_bytes, to_bytes } => {
                self.changed(*file).shift(*at_byte, *from_bytes, *to_bytes);
            }
            Act::Map { file } => self.changed(*file).is_mapped = true,
            Act::Flush { file, failed: None } => {
                self.known(*file).flush();
                self.keep_name(*file);
                for named in self.unflushed_names.remove(file).unwrap_or_default() {
                    self.known(named).naming = Naming::Durable;
                    self.settle(named);
                }
            }
            Act::FlushAll { device } => {
                let is_meant = |file: &FileId| device.is_none_or(|device| device == file.device);
                for (_, file) in self.files.iter_mut().filter(|(id, _)| is_meant(id)) {
                    file.flush();
                    file.naming = Naming::Durable;
                }
                self.unflushed_names.retain(|folder, _| !is_meant(folder));
                let Model { files, changed, .. } = self;
                changed.retain(|file| files.get(file).is_some_and(File::is_changed));
            }
            Act::Rename { file, from, to, replaced } => {
                if self.known(*file).is_folder {
                    self.move_names(&from.path, &to.path);
                }
                if let Some(replaced) = replaced.filter(|replaced| replaced != file) {
                    self.remove(replaced);
                }
                self.name(*file, to.clone(), Naming::Renamed);
            }
            Act::Exchange { one: (one, of_one), other: (other, of_other) } => {
                self.name(*one, of_other.clone(), Naming::Renamed);
                self.name(*other, of_one.clone(), Naming::Renamed);
            }
            Act::Link { file, name } => {
                // If a name is durable it identifies the file; otherwise the latest name does.
                let known = self.known(*file);
                if known.naming != Naming::Durable || known.is_removed {
                    self.name(*file, name.clone(), Naming::Made);
                }
            }
            Act::Unlink { file, name } => {
                if self.known(*file).name.as_ref().is_some_and(|known| known.path == name.path) {
                    self.remove(*file);
                }
            }
            Act::Flush { file, failed: Some(_) } => {
                let known = self.known(*file);
                known.lost.clone_from(&known.dirty);
            }
            Act::Tell | Act::Read { .. } => {}
        }
    }

    fn known(&mut self, file: FileId) -> &mut File {
        self.files.entry(file).or_default()
    }

    /// A file that a call changes. It is a forgotten one if it is unknown: all others were found or
    /// made before.
    fn changed(&mut self, file: FileId) -> &mut File {
        let forgotten = || File { is_removed: true, ..File::default() };
        let known = self.files.entry(file).or_insert_with(forgotten);
        if !known.is_removed {
            self.changed.insert(file);
        }
        known
    }

    /// Handles the flush of a file: if it is new, its name is kept, with the new folders above it.
    fn keep_name(&mut self, file: FileId) {
        let mut kept = Some(file);
        while let Some(known) = kept.and_then(|file| self.files.get_mut(&file)) {
            let is_made = known.naming == Naming::Made;
            let folder = known.name.as_ref().map(|name| name.folder);
            if is_made {
                known.naming = Naming::MadeAndFlushed;
            }
            kept.into_iter().for_each(|file| self.settle(file));
            kept = folder.filter(|_| is_made);
        }
    }

    /// Handles a flush of a file or of its name.
    fn settle(&mut self, file: FileId) {
        if self.files.get(&file).is_none_or(|known| !known.is_changed()) {
            self.changed.remove(&file);
        }
    }

    /// Adds a new file. An earlier file with this inode is gone.
    fn make(&mut self, file: FileId, name: Option<Name>) {
        self.forget_name(file);
        // A file without a name counts as removed.
        let made = File { is_removed: name.is_none(), ..File::default() };
        self.files.insert(file, made);
        if let Some(name) = name {
            self.name(file, name, Naming::Made);
        }
    }

    fn name(&mut self, file: FileId, name: Name, naming: Naming) {
        self.forget_name(file);
        self.unflushed_names.entry(name.folder).or_default().insert(file);
        self.changed.insert(file);
        let known = self.known(file);
        known.naming = naming;
        known.name = Some(name);
        known.is_removed = false;
    }

    /// Updates the names below a renamed folder.
    fn move_names(&mut self, from: &Path, to: &Path) {
        for name in self.files.values_mut().filter_map(|file| file.name.as_mut()) {
            if let Ok(below) = name.path.strip_prefix(from) {
                name.path = to.join(below);
            }
        }
    }

    fn remove(&mut self, file: FileId) {
        self.forget_name(file);
        self.changed.remove(&file);
        self.known(file).is_removed = true;
        self.removed.push(file);
    }

    fn forget_name(&mut self, file: FileId) {
        let folder = self.files.get(&file).and_then(|known| Some(known.name.as_ref()?.folder));
        if let Some(files) = folder.and_then(|folder| self.unflushed_names.get_mut(&folder)) {
            files.remove(&file);
        }
    }
}

#[cfg(test)]
mod tests;
