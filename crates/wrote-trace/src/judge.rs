//! Finds calls of a program that risk losing data, or waste time.

pub mod kinds;

use crate::account::{Account, Accounts};
use crate::call::{Act, Call, FileId, Name, PlaceId, Point};
use crate::model::{File, Model, Promise};
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

/// Examines each call before the model processes it.
#[derive(Debug, Default)]
pub struct Judge {
    /// The places found, by index of their kind.
    found: BTreeMap<usize, Found>,
    files: HashMap<FileId, Facts>,
    /// When each removed name was removed, until a file gets the name again.
    unlinked: HashMap<PathBuf, Point>,
    /// Durable files removed from a folder that was not flushed since, with times.
    unflushed_unlinks: HashMap<FileId, HashMap<PathBuf, Point>>,
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
#[derive(Debug, Default)]
struct Facts {
    /// When durable content was truncated and its size, until the next write.
    emptied: Option<(Point, u64)>,
    /// When a flush failed.
    failed: Option<Point>,
    /// The end of a short write, and the missing bytes.
    short: Option<(u64, u64)>,
}

impl Judge {
    /// Examines a call that the accounts have processed, but not `model`.
    pub fn see(&mut self, model: &Model, accounts: &Accounts, call: &Call) {
        let at = call.point();
        match &call.act {
            Act::Made { file, name } => {
                self.files.insert(*file, Facts::default());
                if let Some(name) = name {
                    self.forget_unlink(name);
                }
            }
            Act::MadeLink { name, .. } => drop(self.forget_unlink(name)),
            Act::Empty { file, size_bytes }
            | Act::Erase { file, bytes: Range { end: size_bytes, .. }, empties: true } => {
                let was_durable = model.survives(*file, Promise::Seen) == Survives::PowerLoss;
                let facts = self.files.entry(*file).or_default();
                facts.emptied = Some((at, *size_bytes)).filter(|_| was_durable);
            }
            Act::Read { file, bytes }
                if model.file(*file).is_some_and(|known| known.is_dirty_in(bytes)) =>
            {
                let more = format!("{} read", units::bytes(bytes.end - bytes.start));
                let calls = [("read", at)];
                self.add(&kinds::READS_WHAT_IT_WROTE, path_of(model, *file), more, &calls);
            }
            Act::Write { file, bytes, asked_bytes, is_race, .. } => {
                if *is_race {
                    let more = format!("at byte {}", bytes.start);
                    let calls = [("write", at)];
                    self.add(&kinds::APPEND_RACES, path_of(model, *file), more, &calls);
                }
                self.write(model, *file, at, bytes, *asked_bytes);
            }
            Act::FlushAll { .. } => self.unflushed_unlinks.clear(),
            Act::Flush { file, failed } => self.flush(model, *file, at, failed.is_some()),
            Act::Rename { file, to, replaced, .. } => {
                let replaces = replaced.is_some_and(|replaced| replaced != *file);
                if replaces {
                    self.replace(model, accounts, *file, to, at);
                }
                self.take_name(to, at);
            }
            Act::Unlink { file, name } => {
                // The names of a removed folder come back with the folder alone.
                self.unflushed_unlinks.remove(file);
                let was_durable = model.survives(*file, Promise::Seen) == Survives::PowerLoss;
                if was_durable && self.unlinked.len() < UNLINKS_MAX {
                    self.unlinked.insert(name.path.clone(), at);
                }
                let unlinks = self.unflushed_unlinks.entry(name.folder).or_default();
                if was_durable && unlinks.len() < UNLINKS_MAX {
                    unlinks.insert(name.path.clone(), at);
                }
            }
            Act::Tell => self.tell(model, at),
            _ => {}
        }
    }

    /// Examines what the latest flush or name change made durable.
    pub fn after(&mut self, model: &Model, call: &Call) {
        let may_save = matches!(call.act, Act::Flush { .. } | Act::FlushAll { .. });
        if may_save && !self.told_early.is_empty() {
            let is_saved = |file: &FileId| model.survives(*file, Promise::Seen);
            let saved = self.told_early.extract_if(|file, _| is_saved(file) == Survives::PowerLoss);
            for (file, told_at) in saved.collect::<Vec<_>>() {
                let later = units::nanoseconds(call.at_ns.saturating_sub(told_at.at_ns));
                let calls = [("answer", told_at), ("flush", call.point())];
                let more = format!("durable {later} later");
                self.add(&kinds::ACKNOWLEDGED_EARLY, path_of(model, file), more, &calls);
            }
        }
    }

    fn write(
        &mut self,
        model: &Model,
        file: FileId,
        at: Point,
        bytes: &Range<u64>,
        asked_bytes: u64,
    ) {
        let facts = self.files.entry(file).or_default();
        let left = asked_bytes.saturating_sub(bytes.end - bytes.start);
        let rest = Some((bytes.end, left)).filter(|(_, left)| *left > 0);
        let short = std::mem::replace(&mut facts.short, rest);
        let failed = facts.failed;
        let emptied = facts.emptied.take();
        if let Some((emptied_at, size_bytes)) = emptied {
            let more = format!("{} before", units::bytes(size_bytes));
            let calls = [("truncation", emptied_at), ("write", at)];
            self.add(&kinds::ONLY_COPY_OVERWRITTEN, path_of(model, file), more, &calls);
        }
        let known = model.file(file);
        let ignores = known.is_some_and(|of| of.has_lost() && !of.repeats_lost(bytes));
        if let Some(failed) = failed.filter(|_| ignores) {
            let calls = [("failed flush", failed), ("write", at)];
            self.add(&kinds::FLUSH_ERROR_IGNORED, path_of(model, file), String::new(), &calls);
        }
        if let Some((end, left)) = short.filter(|(end, _)| *end != bytes.start) {
            let more = format!("{} at byte {end}", units::bytes(left));
            let calls = [("next write", at)];
            self.add(&kinds::SHORT_WRITE_IGNORED, path_of(model, file), more, &calls);
        }
    }

    fn flush(&mut self, model: &Model, file: FileId, at: Point, has_failed: bool) {
        if !has_failed {
            self.unflushed_unlinks.remove(&file);
        }
        let facts = self.files.entry(file).or_default();
        let has_lost = model.file(file).is_some_and(File::has_lost);
        if let Some(failed) = facts.failed.filter(|_| has_lost) {
            let calls = [("failed flush", failed), ("flush", at)];
            self.add(&kinds::FLUSH_RETRIED, path_of(model, file), String::new(), &calls);
        } else {
            facts.failed = has_failed.then_some(at);
        }
    }

    fn replace(&mut self, model: &Model, accounts: &Accounts, file: FileId, to: &Name, at: Point) {
        // A change of size alone reaches the disk before the name.
        let dirty = model.file(file).filter(|known| known.dirty_bytes() > 0);
        if let Some(dirty) = dirty.filter(|_| !is_in_memory(model, file)) {
            let last = accounts.of(file).map_or(Point::default(), |account| account.last_write);
            let more = format!("{} not flushed", units::bytes(dirty.dirty_bytes()));
            let calls = [("write", last), ("rename", at)];
            self.add(&kinds::RENAME_BEFORE_FLUSH, to.path.clone(), more, &calls);
        }
    }

    /// Handles a name that now refers to another file, so its old file is not missing. Returns when
    /// the name was removed.
    fn forget_unlink(&mut self, name: &Name) -> Option<Point> {
        if let Some(unlinks) = self.unflushed_unlinks.get_mut(&name.folder) {
            unlinks.remove(&name.path);
        }
        self.unlinked.remove(&name.path)
    }

    fn take_name(&mut self, name: &Name, at: Point) {
        if let Some(unlinked) = self.forget_unlink(name) {
            let calls = [("unlink", unlinked), ("rename", at)];
            self.add(&kinds::UNLINK_BEFORE_NAME, name.path.clone(), String::new(), &calls);
        }
    }

    fn tell(&mut self, model: &Model, at: Point) {
        for file in model.unsafe_files().filter(|file| !is_in_memory(model, *file)) {
            self.told_early.entry(file).or_insert(at);
        }
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
        model: &Model,
        accounts: &Accounts,
        is_meant: &dyn Fn(&Path) -> bool,
        folder: &Path,
        source: &mut dyn FnMut(PlaceId) -> Option<String>,
    ) -> Vec<Finding> {
        let mut files: Vec<_> = model.files().collect();
        files.sort_by_key(|(_, known)| known.path());
        let untouched = Account::default();
        for found in self.found.values_mut() {
            found.places.retain(|place| is_meant(&place.path));
        }
        for (file, known) in files.into_iter().filter(|(_, known)| is_meant(known.path())) {
            self.at_end(model, file, known, accounts.of(file).unwrap_or(&untouched));
        }
        let unlinks = std::mem::take(&mut self.unflushed_unlinks).into_values().flatten();
        for (path, at) in unlinks.sorted().filter(|(path, _)| is_meant(path)) {
            self.add(&kinds::UNLINK_NOT_FLUSHED, path, String::new(), &[("unlink", at)]);
        }
        let found = self.found.into_iter().filter(|(_, found)| !found.places.is_empty());
        found.map(|(kind, found)| found.finding(kinds::KINDS[kind], folder, source)).collect()
    }

    fn at_end(&mut self, model: &Model, file: FileId, known: &File, account: &Account) {
        let path = || known.path().to_owned();
        let last_write = [("last write", account.last_write)];
        let average = |bytes: u64, count: u64| bytes / count.max(1);
        let write_bytes = average(account.bytes, account.writes);
        if account.writes >= MANY_WRITES && write_bytes < SMALL_WRITE_BYTES {
            let more = format!("{} writes of {}", account.writes, units::bytes(write_bytes));
            self.add(&kinds::UNBUFFERED, path(), more, &last_write);
        }
        if is_in_memory(model, file) || known.is_removed {
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
        let dirty = units::bytes(known.dirty_bytes());
        let said =
            [&kinds::RENAME_BEFORE_FLUSH, &kinds::FLUSH_ERROR_IGNORED, &kinds::FLUSH_RETRIED];
        if known.is_dirty() && said.iter().any(|kind| self.has(kind, known.path())) {
            return;
        }
        let is_unflushed = known.dirty_bytes() > 0;
        if is_unflushed && account.direct_writes == account.writes {
            self.add(&kinds::DIRECT_ALONE, path(), dirty, &last_write);
        } else if is_unflushed {
            let more = if account.flushes == 0 { dirty } else { format!("{dirty} at its end") };
            self.add(&kinds::NEVER_FLUSHED, path(), more, &last_write);
        } else if known.is_cut() {
            self.add(&kinds::CUT_NOT_FLUSHED, path(), String::new(), &[]);
        } else if known.is_renamed() {
            self.add(&kinds::FOLDER_NOT_FLUSHED, path(), String::new(), &[]);
        } else if account.writes > 0
            && !known.is_dirty()
            && model.survives(file, Promise::Posix) < Survives::PowerLoss
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

fn is_in_memory(model: &Model, file: FileId) -> bool {
    model.storage(file.device).is_in_memory
}

fn path_of(model: &Model, file: FileId) -> PathBuf {
    model.file(file).map_or(PathBuf::new(), |known| known.path().to_owned())
}

#[cfg(test)]
mod tests;
