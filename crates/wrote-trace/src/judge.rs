//! Finds calls of a program that risk losing data, or waste time.

pub mod kinds;

use crate::account::{Account, Accounts};
use crate::call::{Act, Call, FileId, How, Language, Name, PlaceId, Point};
use crate::disk::{By, Disk, Node, Promise};
use crate::is_under;
use itertools::Itertools;
use kinds::Kind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use wrote::Survives;
use wrote_result::document::Finding;
use wrote_result::trace::Moment;
use wrote_result::units;

/// The minimum number of writes to a file for a finding about their size.
const MANY_WRITES: u64 = 1000;
/// The size in bytes below which a write call costs more than copying its bytes.
const SMALL_WRITE_BYTES: u64 = 512;
/// The minimum number of flushes of a file for a finding about them.
const MANY_FLUSHES: u64 = 100;
/// The number of bytes that a flush can write at no extra cost.
const SMALL_FLUSH_BYTES: u64 = 4096;
const EVIDENCE_MAX: usize = 20;
/// The number of pending `told_early` files above which a folded file is judged immediately instead
/// of at its first flush.
const EARLY_MAX: usize = 1 << 13;
/// The size that represents content that was removed together with its file.
const REMOVED: u64 = 0;
/// The maximum number of removed names that are remembered.
const UNLINKS_MAX: usize = 1 << 13;
const NAMES_MAX: usize = 3;
/// The maximum size of a lock file, which may contain a process ID and a path.
const LOCK_BYTES_MAX: u64 = 100;

/// Returns the language of the program that made a call, and the call's source line.
pub type Source<'a> = &'a mut dyn FnMut(PlaceId) -> (Language, Option<String>);

/// Examines each call before the disk processes it.
#[derive(Debug, Default)]
pub struct Judge {
    /// The folders whose files are judged; all if empty.
    pub under: Vec<PathBuf>,
    /// The findings, by index of their kind.
    found: BTreeMap<usize, Found>,
    /// The state of some files: most files need none.
    files: HashMap<FileId, Facts>,
    /// When each removed name was removed, until a file takes the name again.
    unlinked: HashMap<PathBuf, Point>,
    /// Files that were given a removed name by a hard link, each with the name and its removal.
    relinked: HashMap<FileId, (Name, Point)>,
    /// Rollback journals that were removed or cut and may come back, until the next answer.
    journals: Vec<(Name, Point)>,
    /// Files that were not durable when the program communicated with the outside, each with the
    /// first such communication, and whether another file was made durable for the same answer. If
    /// so, the file belongs to the answer only if it is ever flushed.
    told_early: HashMap<FileId, (Point, bool)>,
    /// Whether a file has become durable since the last answer.
    has_saved: bool,
    /// Whether any file ever became durable. In that case, zeros alone only allocate space.
    saves: bool,
}

#[derive(Debug, Default)]
struct Found {
    places: Vec<Place>,
    count: u64,
    /// The part of `count` for files that are not in `places`.
    others: u64,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Figures for the sentence; may be empty.
    more: String,
    calls: Vec<(String, Point)>,
}

/// Per-file state beyond the account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Facts {
    /// Where and when durable content was truncated, and its size or [`REMOVED`]; kept until the
    /// next write.
    emptied: Option<(Point, u64)>,
    /// The point of a failed flush.
    failed: Option<Point>,
    short: Option<Short>,
}

/// A write that the kernel performed only in part.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Short {
    from: u64,
    end: u64,
    missing_bytes: u64,
}

impl Judge {
    /// Examines a call that the accounts have already processed, but `disk` has not.
    pub fn see(&mut self, disk: &Disk, accounts: &Accounts, call: &Call) {
        let at = call.point();
        if let Act::Resize { file, to_bytes: 0, .. } = &call.act
            && let Some(name) = disk.latest_name(*file)
        {
            self.end_journal(disk, accounts, *file, &name, at);
        }
        match &call.act {
            Act::Made { file, name } => {
                self.files.remove(file);
                // The new file's content replaces the removed file's.
                let removed = name.as_ref().and_then(|name| self.unlinked.remove(&name.path));
                // A flushed removal was not part of a replacement.
                let is_one = name.as_ref().is_some_and(|name| disk.may_return(name));
                if let Some(removed) = removed.filter(|_| is_one) {
                    let emptied = Some((removed, REMOVED));
                    self.set(*file, Facts { emptied, ..Facts::default() });
                }
            }
            Act::MadeLink { name, .. } => self.take_name(name, at, "symlink"),
            Act::Empty { file, size_bytes }
            | Act::Erase { file, bytes: Range { end: size_bytes, .. }, empties: true } => {
                let was_durable = disk.has_durable(*file);
                let emptied = was_durable.then_some((at, *size_bytes));
                self.set(*file, Facts { emptied, short: None, ..self.facts(*file) });
            }
            // The written part is cut off, so that the write is abandoned.
            Act::Resize { file, to_bytes, .. }
                if self.facts(*file).short.is_some_and(|short| *to_bytes < short.end) =>
            {
                self.set(*file, Facts { short: None, ..self.facts(*file) });
            }
            Act::Write { file, bytes, asked_bytes, is_race, .. } => {
                if *is_race {
                    let more = format!("at byte {}", bytes.start);
                    let calls = [("write", at)];
                    self.add(&kinds::APPEND_RACES, disk.path(*file), more, &calls);
                }
                self.write(disk, *file, at, bytes, *asked_bytes);
            }
            Act::Flush { file, failed, .. } => self.flush(disk, *file, at, failed.is_some()),
            Act::Rename { file, to, replaced, .. } => {
                let replaces = replaced.is_some_and(|replaced| replaced != *file);
                // Content that never was durable cannot be lost.
                if replaces && disk.may_have_content(to) {
                    self.replace(disk, accounts, *file, to, at);
                }
                self.take_name(to, at, "rename");
            }
            // A hard link may be a copy under another name, like dpkg's backup of `status`.
            Act::Link { file, name } => {
                if let Some(unlinked) = self.unlinked.remove(&name.path) {
                    self.relinked.insert(*file, (name.clone(), unlinked));
                }
            }
            Act::Unlink { file, name } => {
                // A link followed by the removal of the other name amounts to a rename.
                if let Some((to, unlinked)) = self.relinked.remove(file)
                    && to.path != name.path
                {
                    self.unlinked.insert(to.path.clone(), unlinked);
                    self.take_name(&to, at, "unlink of its other name");
                }
                if disk.has_durable(*file) && self.unlinked.len() < UNLINKS_MAX {
                    self.unlinked.insert(name.path.clone(), at);
                    self.end_journal(disk, accounts, *file, name, at);
                }
            }
            Act::Tell => self.tell(disk, accounts, at, call.task),
            _ => {}
        }
    }

    /// Reports the files that were acknowledged too early and that `call`, a flush or a durable
    /// write, has made durable only now.
    pub fn after(&mut self, disk: &Disk, call: &Call) {
        let saver = match call.act {
            Act::Flush { failed: None, .. } | Act::FlushRange { .. } | Act::FlushAll { .. } => {
                "flush"
            }
            Act::Write { how: How { is_durable: true, .. }, .. } => "write",
            _ => return,
        };
        (self.has_saved, self.saves) = (true, true);
        let is_saved = |file: FileId| {
            disk.file(file).is_some()
                && disk.survives(file, Promise::Seen) >= disk.most(file.device)
        };
        let saved = self.told_early.extract_if(|file, _| is_saved(*file));
        for (file, (told_at, _)) in saved.collect::<Vec<_>>() {
            let later = units::nanoseconds(call.at_ns.saturating_sub(told_at.at_ns));
            let calls = [("answer", told_at), (saver, call.point())];
            let more = format!("durable only {later} after the answer");
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
        let missing_bytes = asked_bytes.saturating_sub(bytes.end - bytes.start);
        let rest = Short { from: bytes.start, end: bytes.end, missing_bytes };
        // A write before the missing bytes, perhaps of a header, does not show whether they are
        // ignored.
        let undecided = short.filter(|short| bytes.end <= short.from);
        let is_begun_anew = |of: &Short| bytes.start <= of.from && bytes.end > of.from;
        let ignored = short.filter(|of| bytes.start != of.end && !is_begun_anew(of));
        let ignored = ignored.filter(|_| undecided.is_none());
        let short = (missing_bytes > 0).then_some(rest).or(undecided);
        self.set(file, Facts { emptied: None, failed, short });
        if let Some((emptied_at, size_bytes)) = emptied {
            let (call, more) = match size_bytes {
                REMOVED => ("unlink", "replaced by a new file".into()),
                _ => ("truncation", format!("{} before", units::bytes(size_bytes))),
            };
            let calls = [(call, emptied_at), ("write", at)];
            self.add(&kinds::ONLY_COPY_OVERWRITTEN, disk.path(file), more, &calls);
        }
        let content = disk.file(file).map(|known| &known.content);
        let ignores = content.is_some_and(|of| of.has_lost() && !of.repeats_lost(bytes));
        if let Some(failed) = failed.filter(|_| ignores) {
            let calls = [("failed flush", failed), ("write", at)];
            self.add(&kinds::FLUSH_ERROR_IGNORED, disk.path(file), String::new(), &calls);
        }
        if let Some(Short { end, missing_bytes, .. }) = ignored {
            let more = format!("{} at byte {end}", units::bytes(missing_bytes));
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
        // A size change on its own reaches the disk before the name does.
        let dirty_bytes = disk.file(file).map_or(0, |known| known.content.dirty_bytes());
        if dirty_bytes > 0 && !is_in_memory(disk, file) {
            let last = accounts.of(file).map_or(Point::default(), |account| account.last_write);
            let name =
                disk.path(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let more = format!("{} of {name} not flushed", units::bytes(dirty_bytes));
            let calls = [("write", last), ("rename", at)];
            self.add(&kinds::RENAME_BEFORE_FLUSH, to.path.clone(), more, &calls);
        }
    }

    /// Handles a call that creates a name for a file or link.
    fn take_name(&mut self, name: &Name, at: Point, call: &str) {
        if let Some(unlinked) = self.unlinked.remove(&name.path) {
            let calls = [("unlink", unlinked), (call, at)];
            self.add(&kinds::UNLINK_BEFORE_NAME, name.path.clone(), String::new(), &calls);
        }
    }

    fn tell(&mut self, disk: &Disk, accounts: &Accounts, at: Point, task: u32) {
        self.tell_journals(disk, Some(("answer", at)));
        let early = (at, std::mem::take(&mut self.has_saved));
        let saves = self.saves;
        for file in disk.unsafe_files().filter(|file| has_content(disk, accounts, *file, saves)) {
            // If threads take turns flushing a file, another thread may already be writing the next
            // record.
            let is_next = |account: &Account| {
                account.changed_by != task && account.flushes + account.durable_writes > 0
            };
            let is_own = !saves || !accounts.of(file).is_some_and(is_next);
            if is_own && !self.has(&kinds::JOURNAL_MAY_RETURN, &disk.path(file)) {
                self.told_early.entry(file).or_insert(early);
            }
        }
    }

    /// Remembers a rollback journal whose removal or cut commits a transaction.
    fn end_journal(
        &mut self,
        disk: &Disk,
        accounts: &Accounts,
        journal: FileId,
        name: &Name,
        at: Point,
    ) {
        if is_of_commit(disk, accounts, journal, name) {
            self.journals.retain(|(of, _)| of != name && journal_may_return(disk, of));
            self.journals.push((name.clone(), at));
        }
    }

    /// Handles an answer or the end of the program: a journal that was removed or cut must not
    /// return after it.
    fn tell_journals(&mut self, disk: &Disk, told: Option<(&str, Point)>) {
        for (name, at) in std::mem::take(&mut self.journals) {
            if journal_may_return(disk, &name) {
                let calls: Vec<_> = [("commit", at)].into_iter().chain(told).collect();
                self.add(&kinds::JOURNAL_MAY_RETURN, name.path, String::new(), &calls);
            }
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

    /// Keeps the findings of a file that is about to be folded. Returns the number, counted from 1,
    /// of the finding that a later flush resolves, or 0.
    pub fn fold(&mut self, disk: &Disk, accounts: &Accounts, file: FileId) -> u8 {
        const LASTING: [&Kind; 3] =
            [&kinds::UNBUFFERED, &kinds::FLUSH_EACH_SMALL, &kinds::ACKNOWLEDGED_EARLY];
        let (Some(known), Some(account)) = (disk.file(file), accounts.of(file)) else { return 0 };
        let path = disk.path(file);
        let mut alone = Judge::default();
        // The file's first flush shows whether it is part of the answer.
        let waits = |(_, is_beside): &(Point, bool)| *is_beside && account.flushes_in_all() == 0;
        if self.told_early.len() > EARLY_MAX || !self.told_early.get(&file).is_some_and(waits) {
            alone.told_early.extend(self.told_early.remove_entry(&file));
        }
        // Only the next write shows whether emptying the file was a mistake.
        if self.facts(file).emptied.is_none() {
            self.files.remove(&file);
        }
        alone.at_end(disk, file, known, &path, account, Path::new(""));
        let mut ended = 0;
        for (number, found) in alone.found {
            let kind = kinds::KINDS[number];
            if LASTING.contains(&kind) {
                let place = found.places.into_iter().next_back();
                place.into_iter().for_each(|place| self.put(kind, place));
            } else if !(known.content.is_dirty() && self.has_said(&path)) {
                ended = number as u8 + 1;
            }
        }
        ended
    }

    /// Forgets a removed file.
    pub fn forget(&mut self, file: FileId) {
        self.files.remove(&file);
        self.told_early.remove(&file);
    }

    /// Returns the findings on files for which `is_meant` holds, after the program has ended, each
    /// with the languages of its calls. Paths are shown relative to `folder`, and calls with the
    /// lines that `source` returns.
    pub fn findings(
        mut self,
        disk: &Disk,
        accounts: &Accounts,
        is_meant: &dyn Fn(&Path) -> bool,
        folder: &Path,
        source: Source,
    ) -> Vec<(Finding, BTreeSet<Language>)> {
        let mut files: Vec<_> = disk.files().map(|of| (disk.path(of.0), of)).collect();
        files.retain(|(path, _)| is_meant(path));
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let untouched = Account::default();
        self.tell_journals(disk, None);
        for (path, (file, known)) in files {
            let account = accounts.of(file).unwrap_or(&untouched);
            self.at_end(disk, file, known, &path, account, folder);
        }
        for (path, at) in disk.removals().filter(|(path, _)| is_meant(path)).sorted() {
            if !self.has(&kinds::JOURNAL_MAY_RETURN, &path) {
                self.add(&kinds::UNLINK_NOT_FLUSHED, path, String::new(), &[("unlink", at)]);
            }
        }
        disk.rests(|count, _, kind| {
            if let Some(kind) = usize::from(kind).checked_sub(1) {
                let found = self.found.entry(kind).or_default();
                found.count += count;
                found.others += count;
            }
        });
        let found = self.found.into_iter();
        found.map(|(kind, found)| found.finding(kinds::KINDS[kind], folder, source)).collect()
    }

    fn at_end(
        &mut self,
        disk: &Disk,
        file: FileId,
        known: &Node,
        at: &Path,
        account: &Account,
        folder: &Path,
    ) {
        let path = || at.to_owned();
        let content = &known.content;
        let last_write = [("last write", account.last_write)];
        let last_call = [("last call", account.last_call)];
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
                "{flushes} flushes, each for {}; threads waited {} for them, within {}",
                units::bytes(flush_bytes),
                units::nanoseconds(account.flush_ns),
                units::nanoseconds(account.span_ns)
            );
            let last_flush = [("last flush", account.last_flush)];
            self.add(&kinds::FLUSH_EACH_SMALL, path(), more, &last_flush);
        }
        let early = self.told_early.remove(&file);
        if let Some((at, _)) = early.filter(|(_, is_beside)| flushes > 0 || !is_beside) {
            let calls = [("answer", at)];
            self.add(&kinds::ACKNOWLEDGED_EARLY, path(), "never durable".into(), &calls);
        }
        let dirty = units::bytes(content.dirty_bytes());
        if content.is_dirty() && self.has_said(at) {
            return;
        }
        let is_unflushed = content.dirty_bytes() > 0;
        let is_direct = account.writes > 0 && account.direct_writes == account.writes;
        if is_unflushed && is_direct {
            self.add(&kinds::DIRECT_ALONE, path(), dirty, &last_write);
        } else if is_unflushed && is_lock(at, content.dirty_bytes()) {
            self.add(&kinds::LOCK_NOT_FLUSHED, path(), String::new(), &last_call);
        } else if is_unflushed && !content.has_only_zeros() {
            let more = if account.flushes == 0 { dirty } else { format!("{dirty} at its end") };
            self.add(&kinds::NEVER_FLUSHED, path(), more, &last_write);
        } else if content.is_cut() {
            self.add(&kinds::CUT_NOT_FLUSHED, path(), String::new(), &last_call);
        } else if disk.names_of(known).any(|(_, named)| disk.may_lose(named)) {
            for (name, _) in disk.names_of(known).filter(|(_, named)| disk.may_lose(named)) {
                self.add(&kinds::FOLDER_NOT_FLUSHED, name, String::new(), &last_call);
            }
        } else if content.is_dirty() {
            self.add(&kinds::SIZE_NOT_FLUSHED, path(), String::new(), &last_call);
        } else if account.writes > 0 {
            let kept =
                disk.names_of(known).filter(|(_, named)| disk.is_durable(named, Promise::Seen));
            for (name, named) in kept {
                let unflushed = disk.unflushed_folders(named);
                let shown = |path: &PathBuf| format!("`{}`", shown(path, folder));
                let folders: Vec<String> = unflushed.iter().rev().map(shown).collect();
                if !folders.is_empty() {
                    let more = format!("flush {}", folders.join(", "));
                    self.add(&kinds::NAME_NOT_FLUSHED, name, more, &last_call);
                }
            }
        } else if account.is_new && disk.survives(file, Promise::Seen) < Survives::OsCrash {
            self.add(&kinds::LOCK_NOT_FLUSHED, path(), String::new(), &last_call);
        }
    }

    /// Returns whether another finding already explains why a file was not flushed.
    fn has_said(&self, path: &Path) -> bool {
        let said = [
            &kinds::RENAME_BEFORE_FLUSH,
            &kinds::FLUSH_ERROR_IGNORED,
            &kinds::FLUSH_RETRIED,
            &kinds::JOURNAL_MAY_RETURN,
        ];
        said.iter().any(|kind| self.has(kind, path))
    }

    /// Returns whether a file already has a finding of this kind.
    fn has(&self, kind: &Kind, path: &Path) -> bool {
        let found = self.found.get(&place_of(kind));
        found.is_some_and(|found| found.places.iter().any(|place| place.path == path))
    }

    fn add(&mut self, kind: &'static Kind, path: PathBuf, more: String, calls: &[(&str, Point)]) {
        let calls = calls.iter().map(|(call, at)| ((*call).to_owned(), *at)).collect();
        self.put(kind, Place { path, more, calls });
    }

    fn put(&mut self, kind: &'static Kind, place: Place) {
        if !is_under(&self.under, &place.path) {
            return;
        }
        let found = self.found.entry(place_of(kind)).or_default();
        found.count += 1;
        if found.places.len() < EVIDENCE_MAX {
            found.places.push(place);
        } else {
            found.others += u64::from(found.places.iter().all(|of| of.path != place.path));
        }
    }
}

impl Found {
    fn finding(self, kind: &Kind, folder: &Path, source: Source) -> (Finding, BTreeSet<Language>) {
        let mut languages = BTreeSet::new();
        let mut moments = |place: &Place| -> Vec<Moment> {
            let calls = place.calls.iter();
            let moment = |(call, at): &(String, Point)| {
                let (language, place) = at.place.map(&mut *source).unwrap_or_default();
                languages.insert(language);
                Moment { place, ..Moment::new(call, at.at_ns) }
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
        // If a file occurs several times, its last occurrence represents it.
        let files = self.places.iter().zip(&calls).rev().unique_by(|(place, _)| &place.path);
        let mut names: Vec<String> = files.map(named).collect();
        names.reverse();
        // Files that are not in `places` have no text, and are only counted.
        let more = names.len().saturating_sub(NAMES_MAX) as u64 + self.others;
        names.truncate(NAMES_MAX);
        let more = match more {
            0 => String::new(),
            more if names.is_empty() => units::counted(more, "file"),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "{}{more}: {}. Fix: {}.",
            names.join(", "),
            kind.says,
            kinds::fix(kind, &languages)
        );
        let places: Vec<_> = self
            .places
            .iter()
            .zip(&calls)
            .map(|(place, calls)| serde_json::json!({ "path": place.path, "calls": calls }))
            .collect();
        let finding = Finding::new(kind.id, kind.severity, text);
        (finding.with("count", self.count).with("places", places), languages)
    }
}

/// Returns a path as the report shows it, relative to the program's working directory.
fn shown(path: &Path, folder: &Path) -> String {
    match path.strip_prefix(folder).unwrap_or(path).to_string_lossy() {
        below if below.is_empty() && path == folder => ".".into(),
        path if path.is_empty() => "a file without a name".into(),
        path => path.into_owned(),
    }
}

/// Returns whether a file that is not durable may contain an acknowledged record. Zeros alone do
/// not count if the program `saves` what it acknowledges.
fn has_content(disk: &Disk, accounts: &Accounts, file: FileId, saves: bool) -> bool {
    let Some(node) = disk.file(file).filter(|_| !is_in_memory(disk, file)) else { return false };
    let content = &node.content;
    if saves && content.has_only_zeros() {
        return false;
    }
    let bytes = content.dirty_bytes();
    let is_written = bytes > 0 || content.is_cut() || content.unseen.is_some();
    let is_named = disk.names_of(node).any(|(_, named)| {
        // The name of a new file counts only once the file has been written.
        let is_empty = named.by == By::Made && accounts.of(file).is_none_or(|of| of.writes == 0);
        !is_empty && !disk.is_durable(named, Promise::Seen)
    });
    (is_written || is_named) && !is_lock(&disk.path(file), bytes)
}

/// Returns whether a file, judged by its name and size, only indicates that a program is running,
/// or which one.
fn is_lock(path: &Path, bytes: u64) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    // SQLite's and LMDB's tables of readers are mapped, and rebuilt after a crash.
    let is_table = name.ends_with("-shm") || name == "lock.mdb";
    let is_small = bytes <= LOCK_BYTES_MAX;
    is_table || is_small && ["lock", "lck", "pid"].iter().any(|end| name.ends_with(end))
}

/// Returns whether a crash may restore a journal that was removed or cut.
fn journal_may_return(disk: &Disk, name: &Name) -> bool {
    let cut = disk.named(name).and_then(|file| disk.file(file));
    disk.may_return(name) || cut.is_some_and(|cut| cut.content.is_cut())
}

/// Returns whether the removal or cut of this file commits a transaction. `NAME-journal` contains
/// the earlier content of `NAME` (<https://sqlite.org/fileformat.html#the_rollback_journal>).
fn is_of_commit(disk: &Disk, accounts: &Accounts, journal: FileId, name: &Name) -> bool {
    let of = name.path.to_str().and_then(|path| path.strip_suffix("-journal"));
    let of = of.and_then(|of| disk.named(&Name { path: of.into(), ..name.clone() }));
    let [of, journal] = [of, Some(journal)].map(|file| file.and_then(|file| accounts.of(file)));
    let since = journal.and_then(|journal| journal.first_write_ns);
    since.zip(of).is_some_and(|(since, of)| of.writes > 0 && of.last_write.at_ns > since)
}

fn place_of(kind: &Kind) -> usize {
    kinds::KINDS.iter().position(|known| *known == kind).expect("every kind is in the list")
}

fn is_in_memory(disk: &Disk, file: FileId) -> bool {
    disk.storage(file.device).is_in_memory
}

#[cfg(test)]
mod tests;
