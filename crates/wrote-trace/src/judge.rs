//! Finds calls of a program that risk losing data, or waste time.

pub mod kinds;

use crate::account::{Account, Accounts};
use crate::call::{Act, Call, FileId, How, Name, PlaceId, Point};
use crate::disk::{Disk, Node, Promise};
use itertools::Itertools;
use kinds::Kind;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use wrote::Survives;
use wrote_result::document::Finding;
use wrote_result::trace::Moment;
use wrote_result::units::{self, some_of};

/// The number of writes to a file from which their size matters.
const MANY_WRITES: u64 = 1000;
/// Below this size the call costs more than the bytes.
const SMALL_WRITE_BYTES: u64 = 512;
/// The number of flushes of a file from which it matters.
const MANY_FLUSHES: u64 = 100;
/// Bytes that a flush can carry at no extra cost.
const SMALL_FLUSH_BYTES: u64 = 4096;
const EVIDENCE_MAX: usize = 20;
/// The most removed names that are remembered.
const UNLINKS_MAX: usize = 1 << 16;
const NAMES_MAX: usize = 3;

/// Examines each call before the disk processes it.
#[derive(Debug, Default)]
pub struct Judge {
    /// The places found, by index of their kind.
    found: BTreeMap<usize, Found>,
    /// Few: most files have none.
    files: HashMap<FileId, Facts>,
    /// When each removed name was removed, until a file gets the name again.
    unlinked: HashMap<PathBuf, Point>,
    /// Files that were not durable when the program communicated with the outside, with the first
    /// such time.
    told_early: HashMap<FileId, Point>,
}

#[derive(Debug, Default)]
struct Found {
    places: Vec<Place>,
    count: u64,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Figures for the sentence, if any.
    more: String,
    calls: Vec<(String, Point)>,
}

/// Per-file state beyond the account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Facts {
    /// When durable content was truncated and its size, until the next write.
    emptied: Option<(Point, u64)>,
    /// When a flush failed.
    failed: Option<Point>,
    /// The end of a short write, and the missing bytes.
    short: Option<(u64, u64)>,
}

impl Judge {
    /// Examines a call that the accounts have processed, but not `disk`.
    pub fn see(&mut self, disk: &Disk, accounts: &Accounts, call: &Call) {
        let at = call.point();
        match &call.act {
            Act::Made { file, name } => {
                self.files.remove(file);
                if let Some(name) = name {
                    self.unlinked.remove(&name.path);
                }
            }
            Act::MadeLink { name, .. } => {
                self.unlinked.remove(&name.path);
            }
            Act::Empty { file, size_bytes }
            | Act::Erase { file, bytes: Range { end: size_bytes, .. }, empties: true } => {
                let was_durable = disk.has_durable(*file);
                let emptied = was_durable.then_some((at, *size_bytes));
                self.set(*file, Facts { emptied, ..self.facts(*file) });
            }
            Act::Read { file, bytes }
                if disk.file(*file).is_some_and(|known| known.content.is_dirty_in(bytes)) =>
            {
                let more = format!("{} read", units::bytes(bytes.end - bytes.start));
                let calls = [("read", at)];
                self.add(&kinds::READS_WHAT_IT_WROTE, disk.path(*file), more, &calls);
            }
            Act::Write { file, bytes, asked_bytes, is_race, .. } => {
                if *is_race {
                    let more = format!("at byte {}", bytes.start);
                    let calls = [("write", at)];
                    self.add(&kinds::APPEND_RACES, disk.path(*file), more, &calls);
                }
                self.write(disk, *file, at, bytes, *asked_bytes);
            }
            Act::Flush { file, failed } => self.flush(disk, *file, at, failed.is_some()),
            Act::Rename { file, to, replaced, .. } => {
                let replaces = replaced.is_some_and(|replaced| replaced != *file);
                if replaces {
                    self.replace(disk, accounts, *file, to, at);
                }
                self.take_name(to, at);
            }
            Act::Unlink { file, name }
                if disk.has_durable(*file) && self.unlinked.len() < UNLINKS_MAX =>
            {
                self.unlinked.insert(name.path.clone(), at);
            }
            Act::Tell => self.tell(disk, at),
            _ => {}
        }
    }

    /// Examines what the latest flush or durable write made durable.
    pub fn after(&mut self, disk: &Disk, call: &Call) {
        let saver = match call.act {
            Act::Flush { .. } | Act::FlushAll { .. } => "flush",
            Act::Write { how: How { is_durable: true, .. }, .. } => "write",
            _ => return,
        };
        let is_saved = |file: &FileId| disk.survives(*file, Promise::Seen);
        let saved = self.told_early.extract_if(|file, _| is_saved(file) == Survives::PowerLoss);
        for (file, told_at) in saved.collect::<Vec<_>>() {
            let later = units::nanoseconds(call.at_ns.saturating_sub(told_at.at_ns));
            let calls = [("answer", told_at), (saver, call.point())];
            let more = format!("durable {later} later");
            self.add(&kinds::ACKNOWLEDGED_EARLY, disk.path(file), more, &calls);
        }
    }

    fn write(
        &mut self,
        disk: &Disk,
        file: FileId,
        at: Point,
        bytes: &Range<u64>,
        asked_bytes: u64,
    ) {
        let Facts { emptied, failed, short } = self.facts(file);
        let left = asked_bytes.saturating_sub(bytes.end - bytes.start);
        let rest = (left > 0).then_some((bytes.end, left));
        self.set(file, Facts { emptied: None, failed, short: rest });
        if let Some((emptied_at, size_bytes)) = emptied {
            let more = format!("{} before", units::bytes(size_bytes));
            let calls = [("truncation", emptied_at), ("write", at)];
            self.add(&kinds::ONLY_COPY_OVERWRITTEN, disk.path(file), more, &calls);
        }
        let content = disk.file(file).map(|known| &known.content);
        let ignores = content.is_some_and(|of| of.has_lost() && !of.repeats_lost(bytes));
        if let Some(failed) = failed.filter(|_| ignores) {
            let calls = [("failed flush", failed), ("write", at)];
            self.add(&kinds::FLUSH_ERROR_IGNORED, disk.path(file), String::new(), &calls);
        }
        if let Some((end, left)) = short.filter(|(end, _)| *end != bytes.start) {
            let more = format!("{} at byte {end}", units::bytes(left));
            let calls = [("next write", at)];
            self.add(&kinds::SHORT_WRITE_IGNORED, disk.path(file), more, &calls);
        }
    }

    fn flush(&mut self, disk: &Disk, file: FileId, at: Point, has_failed: bool) {
        let facts = self.facts(file);
        let has_lost = disk.file(file).is_some_and(|known| known.content.has_lost());
        if let Some(failed) = facts.failed.filter(|_| has_lost) {
            let calls = [("failed flush", failed), ("flush", at)];
            self.add(&kinds::FLUSH_RETRIED, disk.path(file), String::new(), &calls);
        } else {
            self.set(file, Facts { failed: has_failed.then_some(at), ..facts });
        }
    }

    fn replace(&mut self, disk: &Disk, accounts: &Accounts, file: FileId, to: &Name, at: Point) {
        // A change of size alone reaches the disk before the name.
        let dirty_bytes = disk.file(file).map_or(0, |known| known.content.dirty_bytes());
        if dirty_bytes > 0 && !is_in_memory(disk, file) {
            let last = accounts.of(file).map_or(Point::default(), |account| account.last_write);
            let more = format!("{} not flushed", units::bytes(dirty_bytes));
            let calls = [("write", last), ("rename", at)];
            self.add(&kinds::RENAME_BEFORE_FLUSH, to.path.clone(), more, &calls);
        }
    }

    /// Handles a name that a rename gives to a file.
    fn take_name(&mut self, name: &Name, at: Point) {
        if let Some(unlinked) = self.unlinked.remove(&name.path) {
            let calls = [("unlink", unlinked), ("rename", at)];
            self.add(&kinds::UNLINK_BEFORE_NAME, name.path.clone(), String::new(), &calls);
        }
    }

    fn tell(&mut self, disk: &Disk, at: Point) {
        for file in disk.unsafe_files().filter(|file| !is_in_memory(disk, *file)) {
            self.told_early.entry(file).or_insert(at);
        }
    }

    fn facts(&self, file: FileId) -> Facts {
        self.files.get(&file).copied().unwrap_or_default()
    }

    fn set(&mut self, file: FileId, facts: Facts) {
        match facts == Facts::default() {
            true => self.files.remove(&file),
            false => self.files.insert(file, facts),
        };
    }

    /// Forgets a removed file.
    pub fn forget(&mut self, file: FileId) {
        self.files.remove(&file);
        self.told_early.remove(&file);
    }

    /// Returns the findings on files for which `is_meant` holds, after the program has ended. Paths
    /// are shown relative to `folder`, and calls by their lines in the `source`.
    pub fn findings(
        mut self,
        disk: &Disk,
        accounts: &Accounts,
        is_meant: &dyn Fn(&Path) -> bool,
        folder: &Path,
        source: &mut dyn FnMut(PlaceId) -> Option<String>,
    ) -> Vec<Finding> {
        let mut files: Vec<_> = disk.files().map(|of| (disk.path(of.0), of)).collect();
        files.retain(|(path, _)| is_meant(path));
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let untouched = Account::default();
        for found in self.found.values_mut() {
            found.places.retain(|place| is_meant(&place.path));
        }
        for (path, (file, known)) in files {
            self.at_end(disk, file, known, &path, accounts.of(file).unwrap_or(&untouched));
        }
        for (path, at) in disk.removals().filter(|(path, _)| is_meant(path)).sorted() {
            self.add(&kinds::UNLINK_NOT_FLUSHED, path, String::new(), &[("unlink", at)]);
        }
        let found = self.found.into_iter().filter(|(_, found)| !found.places.is_empty());
        found.map(|(kind, found)| found.finding(kinds::KINDS[kind], folder, source)).collect()
    }

    fn at_end(&mut self, disk: &Disk, file: FileId, known: &Node, at: &Path, account: &Account) {
        let path = || at.to_owned();
        let content = &known.content;
        let last_write = [("last write", account.last_write)];
        let average = |bytes: u64, count: u64| bytes / count.max(1);
        let write_bytes = average(account.bytes, account.writes);
        if account.writes >= MANY_WRITES && write_bytes < SMALL_WRITE_BYTES {
            let more = format!("{} writes of {}", account.writes, units::bytes(write_bytes));
            self.add(&kinds::UNBUFFERED, path(), more, &last_write);
        }
        if is_in_memory(disk, file) || known.is_removed {
            return;
        }
        let flushes = account.flushes_in_all();
        let flush_bytes = average(account.bytes, flushes);
        if flushes >= MANY_FLUSHES && account.bytes > 0 && flush_bytes < SMALL_FLUSH_BYTES {
            let more = format!(
                "{flushes} flushes, each for {}; they took {} of {}",
                units::bytes(flush_bytes),
                units::nanoseconds(account.flush_ns),
                units::nanoseconds(account.span_ns)
            );
            let last_flush = [("last flush", account.last_flush)];
            self.add(&kinds::FLUSH_EACH_SMALL, path(), more, &last_flush);
        }
        if let Some(told_at) = self.told_early.remove(&file) {
            let calls = [("answer", told_at)];
            self.add(&kinds::ACKNOWLEDGED_EARLY, path(), "never durable".into(), &calls);
        }
        let dirty = units::bytes(content.dirty_bytes());
        let said =
            [&kinds::RENAME_BEFORE_FLUSH, &kinds::FLUSH_ERROR_IGNORED, &kinds::FLUSH_RETRIED];
        if content.is_dirty() && said.iter().any(|kind| self.has(kind, at)) {
            return;
        }
        let is_unflushed = content.dirty_bytes() > 0;
        if is_unflushed && account.direct_writes == account.writes {
            self.add(&kinds::DIRECT_ALONE, path(), dirty, &last_write);
        } else if is_unflushed {
            let more = if account.flushes == 0 { dirty } else { format!("{dirty} at its end") };
            self.add(&kinds::NEVER_FLUSHED, path(), more, &last_write);
        } else if content.is_cut() {
            self.add(&kinds::CUT_NOT_FLUSHED, path(), String::new(), &[]);
        } else if disk.names_of(known).any(|(_, named)| disk.may_lose(named)) {
            for (name, _) in disk.names_of(known).filter(|(_, named)| disk.may_lose(named)) {
                self.add(&kinds::FOLDER_NOT_FLUSHED, name, String::new(), &[]);
            }
        } else if account.writes > 0
            && !content.is_dirty()
            && disk.survives(file, Promise::Posix) < Survives::PowerLoss
        {
            self.add(&kinds::NAME_NOT_FLUSHED, path(), String::new(), &[]);
        }
    }

    /// Returns whether this was already found for a file.
    fn has(&self, kind: &Kind, path: &Path) -> bool {
        let found = self.found.get(&place_of(kind));
        found.is_some_and(|found| found.places.iter().any(|place| place.path == path))
    }

    fn add(&mut self, kind: &'static Kind, path: PathBuf, more: String, calls: &[(&str, Point)]) {
        let found = self.found.entry(place_of(kind)).or_default();
        found.count += 1;
        if found.places.len() < EVIDENCE_MAX {
            let calls = calls.iter().map(|(call, at)| ((*call).to_owned(), *at)).collect();
            found.places.push(Place { path, more, calls });
        }
    }
}

impl Found {
    fn finding(
        self,
        kind: &Kind,
        folder: &Path,
        source: &mut dyn FnMut(PlaceId) -> Option<String>,
    ) -> Finding {
        let mut moments = |place: &Place| -> Vec<Moment> {
            let calls = place.calls.iter();
            let moment = |(call, at): &(String, Point)| Moment {
                place: at.place.and_then(&mut *source),
                ..Moment::new(call, at.at_ns)
            };
            calls.map(moment).collect()
        };
        let calls: Vec<Vec<Moment>> = self.places.iter().map(&mut moments).collect();
        let named = |(place, calls): (&Place, &Vec<Moment>)| {
            let line = calls.iter().rev().find_map(|call| call.place.clone());
            let more: Vec<String> = Some(place.more.clone())
                .filter(|more| !more.is_empty())
                .into_iter()
                .chain(line)
                .collect();
            match more.is_empty() {
                true => shown(&place.path, folder),
                false => format!("{} ({})", shown(&place.path, folder), more.join(", ")),
            }
        };
        // The last of several places in a file represents it.
        let files = self.places.iter().zip(&calls).rev().unique_by(|(place, _)| &place.path);
        let mut names: Vec<String> = files.map(named).collect();
        names.reverse();
        let more = self.count.saturating_sub(self.places.len() as u64) as usize;
        names.extend(std::iter::repeat_n(String::new(), more));
        let text = format!("{}: {}. Do: {}.", some_of(&names, NAMES_MAX), kind.says, kind.remedy);
        let places: Vec<_> = self
            .places
            .iter()
            .zip(&calls)
            .map(|(place, calls)| serde_json::json!({ "path": place.path, "calls": calls }))
            .collect();
        Finding::new(kind.id, kind.severity, text).with("count", self.count).with("places", places)
    }
}

/// Shows a path relative to the program's working directory.
fn shown(path: &Path, folder: &Path) -> String {
    match path.strip_prefix(folder).unwrap_or(path).to_string_lossy() {
        path if path.is_empty() => "a file without a name".into(),
        path => path.into_owned(),
    }
}

fn place_of(kind: &Kind) -> usize {
    kinds::KINDS.iter().position(|known| *known == kind).expect("every kind is in the list")
}

fn is_in_memory(disk: &Disk, file: FileId) -> bool {
    disk.storage(file.device).is_in_memory
}

#[cfg(test)]
mod tests;
