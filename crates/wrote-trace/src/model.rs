//! The files as they would be after a crash at each moment: calls go in, levels come out.
//!
//! Bytes and names are held apart, as file systems do: `fdatasync` of a file makes its bytes
//! durable, and a flush of its folder makes its name durable. Where file systems keep more than
//! POSIX promises, both answers are kept: see [`Promise`].

use crate::call::{Act, Call, FileId, How, Name, Storage};
use rangemap::RangeSet;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use wrote::Survives;

/// Whose promises a level rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// POSIX: a name is durable once its folder was flushed.
    Posix,
    /// ext4, XFS and Btrfs as this project's crashes found them (`docs/durability.md`): the flush
    /// of a new file makes its name durable, too; that of a renamed file does not.
    Seen,
}

/// All files that a program has touched.
#[derive(Debug, Default)]
pub struct Model {
    files: HashMap<FileId, File>,
    /// The files with a name in a folder that was not flushed since.
    unflushed_names: HashMap<FileId, BTreeSet<FileId>>,
    storages: HashMap<u64, Storage>,
}

/// A file or folder.
#[derive(Debug, Default)]
pub struct File {
    /// Its name, which it keeps when it is removed; `None` where it never had one.
    pub name: Option<Name>,
    /// Whether it has no name any more.
    pub is_removed: bool,
    /// Whether the program made it.
    pub is_new: bool,
    /// Whether it is written through a mapping, which is not seen.
    pub is_mapped: bool,
    /// Whether it is a folder that the program made.
    is_folder: bool,
    /// How the name came about.
    naming: Naming,
    /// Bytes that were written and are not durable.
    dirty: RangeSet<u64>,
    /// Those of them of which a flush has failed: none later saves them (W2).
    lost: RangeSet<u64>,
    /// Those of them that were written directly over durable bytes.
    in_place: RangeSet<u64>,
    /// Bytes that are durable, and that blocks are on the disk for.
    settled: RangeSet<u64>,
    /// Whether a change of its size is not durable.
    is_resized: bool,
}

/// How a file came by its name, if that is not durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Naming {
    #[default]
    Durable,
    /// It was made with it, or a link to it was.
    Made,
    /// The same, and the file was flushed since.
    MadeAndFlushed,
    /// It was renamed to it.
    Renamed,
}

impl File {
    /// Whether bytes or the size were changed and not flushed.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_resized
    }

    /// Whether some of these bytes were written and not flushed.
    pub fn is_dirty_in(&self, bytes: &Range<u64>) -> bool {
        self.dirty.overlaps(bytes)
    }

    /// The number of bytes that were written and not flushed.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether a flush of bytes has failed that were not written again since.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether a write repeats some of the bytes of which a flush has failed.
    pub fn repeats_lost(&self, bytes: &Range<u64>) -> bool {
        self.lost.overlaps(bytes)
    }

    /// Whether a rename gave the file its name, and its folder was not flushed since.
    pub fn is_renamed(&self) -> bool {
        self.naming == Naming::Renamed
    }

    /// Its path; empty where it never had a name.
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
            let all = [&mut self.dirty, &mut self.lost, &mut self.in_place, &mut self.settled];
            for ranges in all {
                ranges.remove(to_bytes..u64::MAX);
            }
        }
    }

    fn flush(&mut self) {
        self.settled.extend(self.dirty.iter().cloned());
        for range in self.lost.iter() {
            self.settled.remove(range.clone());
        }
        self.dirty.clone_from(&self.lost);
        self.in_place.clear();
        self.is_resized = false;
        if self.naming == Naming::Made {
            self.naming = Naming::MadeAndFlushed;
        }
    }
}

impl Model {
    /// The kind of a device: a disk of no known behaviour where nothing was said.
    pub fn storage(&self, device: u64) -> Storage {
        let unknown = Storage { flushes_reach_device: true, ..Storage::default() };
        self.storages.get(&device).copied().unwrap_or(unknown)
    }

    /// A file that a call was about.
    pub fn file(&self, file: FileId) -> Option<&File> {
        self.files.get(&file)
    }

    /// All files, in no order.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &File)> {
        self.files.iter().map(|(id, file)| (*id, file))
    }

    /// The worst event that what was written to a file survives, by these promises.
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

    /// Whether the folders above, as far as the program made them, have durable names. That no
    /// crash tried: what was seen of a new file is taken to hold for the folders that it needs.
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

    /// Takes a call.
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
            Act::MadeFolder { file, name } => {
                self.make(*file, Some(name.clone()));
                self.known(*file).is_folder = true;
            }
            Act::Write { file, bytes, how, .. } => {
                self.known(*file).write(bytes.clone(), *how);
                if how.is_durable && self.known(*file).naming == Naming::Made {
                    self.known(*file).naming = Naming::MadeAndFlushed;
                }
            }
            Act::Empty { file, size_bytes } => self.known(*file).resize(*size_bytes, 0),
            Act::Resize { file, from_bytes, to_bytes } => {
                self.known(*file).resize(*from_bytes, *to_bytes);
            }
            Act::Map { file } => self.known(*file).is_mapped = true,
            Act::Flush { file, failed: None } => {
                self.known(*file).flush();
                for named in self.unflushed_names.remove(file).unwrap_or_default() {
                    self.known(named).naming = Naming::Durable;
                }
            }
            Act::FlushAll { device } => {
                let is_meant = |file: &FileId| device.is_none_or(|device| device == file.device);
                for (_, file) in self.files.iter_mut().filter(|(id, _)| is_meant(id)) {
                    file.flush();
                    file.naming = Naming::Durable;
                }
                self.unflushed_names.retain(|folder, _| !is_meant(folder));
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
                // A file that has a durable name is found by it; a new one by the latest.
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

    /// A file with this inode is new: an earlier one has gone.
    fn make(&mut self, file: FileId, name: Option<Name>) {
        self.forget_name(file);
        // Without a name it is as good as removed.
        let made = File { is_new: true, is_removed: name.is_none(), ..File::default() };
        self.files.insert(file, made);
        if let Some(name) = name {
            self.name(file, name, Naming::Made);
        }
    }

    fn name(&mut self, file: FileId, name: Name, naming: Naming) {
        self.forget_name(file);
        self.unflushed_names.entry(name.folder).or_default().insert(file);
        let known = self.known(file);
        known.naming = naming;
        known.name = Some(name);
        known.is_removed = false;
    }

    /// The names below a folder that was renamed.
    fn move_names(&mut self, from: &Path, to: &Path) {
        for name in self.files.values_mut().filter_map(|file| file.name.as_mut()) {
            if let Ok(below) = name.path.strip_prefix(from) {
                name.path = to.join(below);
            }
        }
    }

    fn remove(&mut self, file: FileId) {
        self.forget_name(file);
        self.known(file).is_removed = true;
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
