//! Reduces files to a few bytes each if a program uses many files.
//!
//! Safe files are folded first, then the oldest; the newest stay complete. A file that a call
//! refers to again is restored with the changes that a crash may undo; its earlier bytes and counts
//! are lost. Neighbouring inodes with the same [`Rest`] share one range.

use super::{By, Disk, Id, Kind, Named, Node, Promise};
use crate::call::{FileId, Name};
use crate::content::{Content, STORES};
use crate::names::Place;
use rangemap::RangeMap;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::ops::Range;
use wrote::Survives;
use wrote_result::trace::{MoreFiles, Verdict};

/// The maximum number of complete files. Folding leaves at least half as many. Twice as many
/// folders are kept.
const WHOLE_MAX: usize = 1 << 13;
/// The number that represents an unknown file; no file has it.
const UNKNOWN: Id = 0;
/// The maximum number of ranges of folded files, of about 50 bytes each.
const RANGES_MAX: usize = 1 << 20;

/// The information kept about a folded file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The folder with the unflushed names of the file; 0 if they are in several folders.
    folder: Id,
    /// The batch in which the file was folded, if it has an unflushed name or a finding. A later
    /// flush of its folder settles both.
    batch: u16,
    /// The number, counted from 1, of the finding that applies if the program ends now.
    kind: u8,
    bits: u8,
}

impl Rest {
    const DIRTY: u8 = 1;
    const LOST: u8 = 2;
    const UNSEEN: u8 = 4;
    const MADE: u8 = 8;
    const RENAMED: u8 = 16;
    /// The file had several names.
    const SEVERAL: u8 = 32;
    /// The program created the file.
    const NEW: u8 = 64;
    /// A report counts the file.
    const LISTED: u8 = 128;

    fn has(self, bits: u8) -> bool {
        self.bits & bits != 0
    }

    /// Returns the rest after a flush of the whole device.
    fn flushed(self) -> Rest {
        match self.has(Rest::LOST) {
            true => Rest { bits: self.bits & !(Rest::MADE | Rest::RENAMED), ..self },
            false => {
                let bits = self.bits & !(Rest::DIRTY | Rest::MADE | Rest::RENAMED);
                Rest { bits, batch: 0, kind: 0, ..self }
            }
        }
    }
}

/// The information about a file that the report has but [`Disk`] lacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The number, counted from 1, of the finding that applies if the program ends now.
    pub kind: u8,
    pub is_new: bool,
    pub is_listed: bool,
}

/// The folded files, which are only counted, each with its [`Rest`].
#[derive(Debug)]
pub struct Folded {
    /// The rests by device and range of inodes.
    files: HashMap<u64, RangeMap<u64, Rest>>,
    /// The number of the current batch, counted from 1.
    pub batch: u16,
    /// When the last call before this batch ended.
    batch_ns: u64,
    /// The counts of files that exceeded [`RANGES_MAX`], whose rests were dropped.
    beyond: MoreFiles,
    /// The devices of folders that were dropped before a flush.
    lost: BTreeSet<u64>,
    /// The maximum number of complete files.
    whole_max: usize,
    /// The number of files and folders at which the next batch is to be folded.
    due: usize,
}

impl Default for Folded {
    fn default() -> Self {
        Folded {
            files: HashMap::new(),
            batch: 1,
            batch_ns: 0,
            beyond: MoreFiles::default(),
            lost: BTreeSet::new(),
            whole_max: WHOLE_MAX,
            due: 0,
        }
    }
}

fn range(inode: u64) -> Range<u64> {
    let at = inode.min(u64::MAX - 1);
    at..at + 1
}

impl Folded {
    fn get(&self, file: FileId) -> Option<Rest> {
        self.files.get(&file.device)?.get(&range(file.inode).start).copied()
    }

    /// Removes and returns the rest of a file; `None` if the file is not folded.
    pub fn take(&mut self, file: FileId) -> Option<Rest> {
        let rest = self.get(file)?;
        self.files.get_mut(&file.device)?.remove(range(file.inode));
        Some(rest)
    }

    /// Returns the number of the first batch that a flush begun at `began_ns` does not cover.
    pub fn batch_before(&self, began_ns: u64) -> u16 {
        self.batch - u16::from(began_ns < self.batch_ns)
    }

    /// Handles a flush of all files on the devices for which `is_meant` holds.
    pub fn flush_all(&mut self, is_meant: impl Fn(u64) -> bool) {
        self.lost.retain(|device| !is_meant(*device));
        for (_, files) in self.files.iter_mut().filter(|(device, _)| is_meant(**device)) {
            if files.iter().any(|(_, rest)| *rest != rest.flushed()) {
                let before = std::mem::take(files);
                files.extend(before.into_iter().map(|(inodes, rest)| (inodes, rest.flushed())));
            }
        }
    }
}

impl Disk {
    /// Returns whether a file is folded and was created by the program.
    pub fn was_new(&self, file: FileId) -> bool {
        self.folded.get(file).is_some_and(|rest| rest.has(Rest::NEW))
    }

    /// Returns the files that should be folded; `None` if there are few files and folders. Files
    /// for which `is_busy` holds come last.
    pub fn surplus(&self, is_busy: impl Fn(FileId) -> bool) -> Option<Vec<FileId>> {
        let whole_max = self.folded.whole_max;
        if self.nodes.len() < self.folded.due.max(whole_max) {
            return None;
        }
        // A call on the newest files may be in progress.
        let oldest = self.next_id.saturating_sub(whole_max as Id / 4);
        let files = self.ids.iter().filter_map(|(file, id)| {
            let node = self.nodes.get(id).filter(|of| of.kind == Kind::File && !of.is_removed)?;
            Some((*id > oldest, !self.is_safe(node), is_busy(*file), *id, *file))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        files.truncate(files.len().saturating_sub(whole_max / 2));
        Some(files.into_iter().filter(|(is_recent, ..)| !is_recent).map(|of| of.4).collect())
    }

    fn is_safe(&self, node: &Node) -> bool {
        let is_seen = node.content.unseen.is_none();
        is_seen && self.survives(node.file, Promise::Seen) == Survives::PowerLoss
    }

    /// Folds a file.
    pub fn fold(&mut self, file: FileId, mark: Mark) {
        let Some(id) = self.ids.remove(&file) else { return };
        let Some(node) = self.nodes.remove(&id) else { return };
        let is_open = |named: &&Named| !self.names.is_durable(&named.place);
        let open: Vec<&Named> = node.names.iter().filter(is_open).collect();
        // A flush of the file does not always make a link durable.
        let is_made = |named: &&Named| named.by == By::Made;
        let (content, is_several) = (&node.content, node.has_other_names());
        let bits = [
            (Rest::DIRTY, content.is_dirty()),
            (Rest::LOST, content.has_lost()),
            (Rest::UNSEEN, content.unseen.is_some()),
            (Rest::MADE, open.iter().any(is_made)),
            (Rest::RENAMED, !open.iter().all(is_made)),
            (Rest::SEVERAL, is_several),
            (Rest::NEW, mark.is_new),
            (Rest::LISTED, mark.is_listed || node.is_partial),
        ];
        let bits = bits.into_iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum();
        let folder = node.names.last().map_or(0, |named| named.place.0);
        let folder = open.first().map_or(folder, |named| named.place.0);
        let is_one = open.iter().all(|named| named.place.0 == folder);
        let batch = if open.is_empty() && mark.kind == 0 { 0 } else { self.folded.batch };
        let folder = if is_one { folder } else { 0 };
        let rest = Rest { folder, batch, kind: mark.kind, bits };
        self.folded.files.entry(file.device).or_default().insert(range(file.inode), rest);
        self.drop(&node, id);
    }

    /// Forgets everything known about a file or folder.
    fn drop(&mut self, node: &Node, id: Id) {
        node.names.iter().for_each(|named| self.names.drop(&named.place));
        self.dirty.remove(&id);
        self.take_made(id, false, u64::MAX);
    }

    /// Restores a folded file that a call refers to again by a name, or that a call in progress
    /// uses.
    pub(super) fn restore(
        &mut self,
        file: FileId,
        rest: Rest,
        name: Option<&Name>,
        size_bytes: u64,
    ) -> Id {
        let given = name.map(|name| self.place(name));
        let id = self.node_of(file, Kind::File);
        self.ids.insert(file, id);
        let by = match self.is_flushed(rest) {
            false if rest.has(Rest::RENAMED) => By::Renamed,
            false if rest.has(Rest::MADE) => By::Made,
            _ => By::Found,
        };
        let is_known = given.is_some() && !rest.has(Rest::SEVERAL);
        let other = || (rest.folder, OsString::from(format!("inode {}", file.inode)).into());
        let other: Option<Place> = (!is_known).then(other);
        for place in given.into_iter().chain(other) {
            if by == By::Found {
                self.names.find(place.clone(), id);
            } else {
                // Which file had the name before is unknown.
                if !self.names.knows(&place) {
                    self.names.find(place.clone(), UNKNOWN);
                }
                self.now += 1;
                self.made.extend((by == By::Made).then_some((id, self.now, false)));
                self.names.change(self.now, 0, &[(place.clone(), Some(id))], None);
            }
            self.node(id).names.push(Named { place, by });
        }
        let node = self.node(id);
        node.is_partial = rest.has(Rest::LISTED);
        node.content = match rest.has(Rest::DIRTY) {
            true => Content::spoilt(size_bytes, rest.has(Rest::LOST)),
            false => Content::found(size_bytes),
        };
        node.content.unseen = rest.has(Rest::UNSEEN).then_some(STORES);
        if rest.has(Rest::DIRTY) {
            self.dirty.insert(id);
        }
        id
    }

    /// Returns whether the folder of a file was flushed after the file was folded.
    fn is_flushed(&self, rest: Rest) -> bool {
        self.nodes.get(&rest.folder).is_some_and(|folder| folder.flushed > rest.batch)
    }

    /// Ends a batch of folded files, and begins the next one.
    pub fn end_batch(&mut self) {
        self.drop_folders();
        self.folded.batch = self.folded.batch.saturating_add(1);
        self.folded.batch_ns = self.ended_ns;
        self.folded.due = self.nodes.len() + self.folded.whole_max / 2;
        if self.folded.files.values().map(RangeMap::len).sum::<usize>() > RANGES_MAX {
            let mut more = self.folded.beyond;
            // Later flushes of the dropped files would be missed.
            self.rests(|count, verdict, _| more.add(verdict.min(Verdict::Unknown), count));
            self.folded.beyond = more;
            self.folded.files.clear();
        }
    }

    /// If there are many folders, drops folders that contain no known name at any depth: first the
    /// safe ones, then, if there are still too many, all of them.
    fn drop_folders(&mut self) {
        for is_any in [false, true] {
            let folders =
                self.nodes.iter().filter(|(_, of)| of.kind != Kind::File && !of.is_removed);
            let folders: Vec<Id> = folders.map(|(id, _)| *id).collect();
            if folders.len() <= 2 * self.folded.whole_max {
                return;
            }
            let mut next: Vec<Id> = self.names.folders().collect();
            let mut needed: HashSet<Id> = next.iter().copied().collect();
            while let Some(id) = next.pop() {
                let above = self.nodes.get(&id).and_then(|node| node.above().0);
                next.extend(above.filter(|above| needed.insert(*above)));
            }
            for id in folders.into_iter().filter(|id| !needed.contains(id)) {
                let is_durable = |named| self.is_durable(named, Promise::Seen);
                let is_safe = self.nodes[&id].names.iter().all(is_durable);
                if let (true, Some(node)) = (is_safe || is_any, self.nodes.remove(&id)) {
                    if self.ids.get(&node.file) == Some(&id) {
                        self.ids.remove(&node.file);
                    }
                    if !is_safe {
                        self.folded.lost.insert(node.file.device);
                    }
                    self.drop(&node, id);
                }
            }
        }
    }

    /// Calls `each` for groups of folded files with their count, verdict and finding.
    pub fn rests(&self, mut each: impl FnMut(u64, Verdict, u8)) {
        let has_moved = self.nodes.values().any(|node| {
            let is_moved = |of: &Named| of.by == By::Renamed && !self.names.is_durable(&of.place);
            node.kind != Kind::File && node.names.iter().any(is_moved)
        });
        for (device, files) in &self.folded.files {
            let (most, doubt) = (self.most(*device), &self.storage(*device).doubt);
            for (inodes, rest) in files.iter().filter(|(_, rest)| rest.has(Rest::LISTED)) {
                let (folder, is_flushed) = (self.nodes.get(&rest.folder), self.is_flushed(*rest));
                let is_named = is_flushed || !rest.has(Rest::MADE | Rest::RENAMED);
                let place = (rest.folder, OsString::new().into());
                let is_above = self.is_durable(&Named { place, by: By::Found }, Promise::Seen);
                let is_lost = rest.has(Rest::DIRTY) || !is_above || !is_named && folder.is_some();
                let is_left = has_moved || self.folded.lost.contains(device);
                let is_unknown = rest.has(Rest::UNSEEN) || !is_named || is_left && folder.is_none();
                let is_unknown = is_unknown || doubt.is_some();
                let verdict = match () {
                    () if is_lost || most < Survives::PowerLoss => Verdict::Lost,
                    () if is_unknown => Verdict::Unknown,
                    () => Verdict::Survives,
                };
                let holds = rest.has(Rest::DIRTY) || !is_flushed;
                each(inodes.end - inodes.start, verdict, if holds { rest.kind } else { 0 });
            }
        }
    }

    /// Sets the maximum number of complete files.
    #[cfg(test)]
    pub fn keep_whole(&mut self, whole_max: usize) {
        self.folded.whole_max = whole_max;
    }

    /// Returns the counts of the files whose rests were dropped.
    pub fn beyond(&self) -> MoreFiles {
        self.folded.beyond
    }
}
