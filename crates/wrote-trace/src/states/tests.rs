//! Checks the states against the model and the findings: each warning of a loss is shown by some
//! state, and everything reported as safe is in all states.

use super::*;
use crate::account::Accounts;
use crate::call::{How, Storage};
use crate::disk::Promise;
use crate::judge::Judge;
use crate::record::Before;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use wrote::Survives;
use wrote_result::document::{Finding, Severity};

const ROOT: FileId = FileId { device: 1, inode: 1 };
/// The names of files. Names in a folder can be used while the folder exists. The first three files
/// exist before the program runs.
const NAMES: [&str; 8] = ["a", "b", "d/a", "new", "t", "e/a", "e/d/a", "a-journal"];
const FOUND: usize = 3;
const FOLDERS: [&str; 4] = ["", "d", "e", "e/d"];
const PAGE: u64 = PAGE_BYTES as u64;
const SIZE: u64 = 5000;

fn file(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

/// A program under construction, with its current names.
struct Script {
    calls: Vec<Call>,
    names: BTreeMap<String, u64>,
    sizes: BTreeMap<u64, u64>,
    /// Files whose first page contains zeros.
    erased: HashSet<u64>,
    inodes: u64,
    stamp: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Append(usize, bool),
    Prepare(usize),
    Change(usize, bool),
    Rewrite(usize),
    Erase(usize),
    Collapse(usize),
    Grow(usize),
    Flush(usize, bool),
    FlushFolder(usize),
    Rename(usize, usize),
    Exchange(usize, usize),
    Link(usize, usize),
    Unlink(usize),
    MakeFolder(usize),
    RenameFolder(usize, usize),
    RemoveFolder(usize),
    Tell,
    FlushAll,
    /// A flush of a file, a folder or everything, during which the last calls ended.
    FlushDuring(usize, u64),
    /// A flush of some pages of a file, during which the last calls ended.
    FlushPages(usize, Range<u64>, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (any, two) = (0..NAMES.len(), (0..NAMES.len(), 0..NAMES.len()));
    let (folder, folders) = (0..FOLDERS.len(), (1..FOLDERS.len(), 1..FOLDERS.len()));
    let rarely = || prop::bool::weighted(0.2);
    prop_oneof![
        3 => any.clone().prop_map(Step::Make),
        2 => (any.clone(), rarely()).prop_map(|(at, is)| Step::Append(at, is)),
        1 => any.clone().prop_map(Step::Prepare),
        1 => (any.clone(), rarely()).prop_map(|(at, is)| Step::Change(at, is)),
        1 => any.clone().prop_map(Step::Rewrite),
        1 => any.clone().prop_map(Step::Erase),
        1 => any.clone().prop_map(Step::Collapse),
        1 => any.clone().prop_map(Step::Grow),
        3 => (any.clone(), rarely()).prop_map(|(at, is)| Step::Flush(at, is)),
        2 => folder.clone().prop_map(Step::FlushFolder),
        2 => two.clone().prop_map(|(from, to)| Step::Rename(from, to)),
        1 => two.clone().prop_map(|(one, other)| Step::Exchange(one, other)),
        1 => two.prop_map(|(from, to)| Step::Link(from, to)),
        1 => any.prop_map(Step::Unlink),
        2 => folder.clone().prop_map(Step::MakeFolder),
        1 => folders.prop_map(|(from, to)| Step::RenameFolder(from, to)),
        1 => folder.prop_map(Step::RemoveFolder),
        1 => Just(Step::Tell),
        1 => Just(Step::FlushAll),
        2 => (0..=NAMES.len() + FOLDERS.len(), 1..6_u64)
            .prop_map(|(of, calls)| Step::FlushDuring(of, calls)),
        2 => (0..NAMES.len(), 0..3_u64, 1..3_u64, 0..3_u64)
            .prop_map(|(at, from, count, calls)| Step::FlushPages(at, from..from + count, calls)),
    ]
}

impl Script {
    fn new() -> Script {
        let names = [("", 1), ("d", 2), ("a", 10), ("b", 11), ("d/a", 12)];
        let mut script = Script {
            calls: Vec::new(),
            names: names.map(|(name, inode)| (name.to_owned(), inode)).into(),
            sizes: BTreeMap::from([(10, SIZE), (11, SIZE), (12, SIZE)]),
            erased: HashSet::new(),
            inodes: 12,
            stamp: 1,
        };
        let storage =
            Storage { writes_in_place: true, flushes_reach_device: true, ..Storage::default() };
        script.call(Act::Storage { device: 1, storage });
        for name in &NAMES[..FOUND] {
            let (file, name) = (file(script.names[*name]), script.name(name));
            script.call(Act::Found { file, name, size_bytes: SIZE });
        }
        script
    }

    /// Returns a name; `None` if its folder does not exist.
    fn name(&self, path: &str) -> Option<Name> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = file(*self.names.get(folder)?);
        Some(Name { folder, path: Path::new("/data").join(path) })
    }

    fn call(&mut self, act: Act) {
        self.calls.push(Call::new(self.calls.len() as u64 * 1000, act));
    }

    fn write(&mut self, inode: u64, from: u64, is_durable: bool) {
        self.stamp += 1;
        let size = self.sizes.entry(inode).or_default();
        *size = (*size).max(from + SIZE);
        if from == 0 {
            self.erased.remove(&inode);
        }
        let (bytes, how) =
            (from..from + SIZE, How { is_direct: false, is_durable, is_atomic: false });
        let write = Act::Write {
            file: file(inode),
            bytes,
            asked_bytes: SIZE,
            how,
            is_race: false,
            is_zeros: false,
        };
        self.call(write);
        self.calls.last_mut().unwrap().data = vec![self.stamp; SIZE as usize];
    }

    /// Moves the start of the last call back, so that the calls before it end while it runs.
    fn began_before(&mut self, calls: u64) -> Option<()> {
        let flush = self.calls.last_mut()?;
        let took_ns = (calls * 1000 + 1).min(flush.at_ns);
        flush.at_ns -= took_ns;
        flush.took_ns = took_ns;
        Some(())
    }

    /// Performs a step, unless its names make it impossible.
    fn step(&mut self, step: &Step) {
        let _ = self.taken(step);
    }

    fn taken(&mut self, step: &Step) -> Option<()> {
        let known = |at: &usize| self.names.get(NAMES[*at]).copied();
        match step {
            Step::Make(at) => {
                let name = self.name(NAMES[*at]).filter(|_| known(at).is_none())?;
                self.inodes += 1;
                let inode = self.inodes;
                self.names.insert(NAMES[*at].into(), inode);
                self.call(Act::Made { file: file(inode), name: Some(name) });
                self.write(inode, 0, false);
            }
            Step::Prepare(at) => {
                let inode = known(at)?;
                self.write(inode, self.sizes[&inode], false);
                let call = self.calls.last_mut()?;
                call.data.fill(0);
                if let Act::Write { is_zeros, .. } = &mut call.act {
                    *is_zeros = true;
                }
            }
            Step::Append(at, is_durable) => {
                let inode = known(at)?;
                self.write(inode, self.sizes[&inode], *is_durable);
            }
            Step::Change(at, is_durable) => {
                let inode = known(at)?;
                self.write(inode, 0, *is_durable);
            }
            Step::Rewrite(at) => {
                let inode = known(at)?;
                let (file, size_bytes) = (file(inode), self.sizes[&inode]);
                if inode % 2 == 0 {
                    self.sizes.insert(inode, 0);
                    self.call(Act::Empty { file, size_bytes });
                } else {
                    self.call(Act::Erase { file, bytes: 0..size_bytes, empties: true });
                }
                self.write(inode, 0, false);
            }
            Step::Erase(at) => {
                let inode = known(at)?;
                if self.erased.insert(inode) {
                    let file = file(inode);
                    self.call(Act::Erase { file, bytes: 0..PAGE, empties: false });
                }
            }
            Step::Collapse(at) => {
                let inode = known(at)?;
                let from_bytes = self.sizes[&inode];
                if from_bytes > PAGE {
                    let (file, to_bytes) = (file(inode), from_bytes - PAGE);
                    self.sizes.insert(inode, to_bytes);
                    self.erased.remove(&inode);
                    self.call(Act::Shift { file, at_byte: 0, from_bytes, to_bytes });
                }
            }
            Step::Grow(at) => {
                let inode = known(at)?;
                let from_bytes = self.sizes[&inode];
                let to_bytes = from_bytes + PAGE;
                self.sizes.insert(inode, to_bytes);
                self.call(Act::Resize { file: file(inode), from_bytes, to_bytes });
            }
            Step::Flush(at, fails) => {
                let inode = known(at)?;
                if *fails {
                    self.write(inode, 0, false);
                }
                let failed = fails.then_some(5);
                self.call(Act::Flush { file: file(inode), failed, is_data: false });
            }
            Step::FlushFolder(at) => {
                let file = file(*self.names.get(FOLDERS[*at])?);
                self.call(Act::Flush { file, failed: None, is_data: false });
            }
            Step::FlushAll => self.call(Act::FlushAll { device: None }),
            Step::FlushDuring(of, calls) => {
                let path = NAMES.iter().chain(&FOLDERS).nth(*of);
                let act = match path {
                    None => Act::FlushAll { device: None },
                    Some(path) => {
                        let file = file(*self.names.get(*path)?);
                        Act::Flush { file, failed: None, is_data: calls % 2 == 0 }
                    }
                };
                self.call(act);
                self.began_before(*calls)?;
            }
            Step::FlushPages(at, pages, calls) => {
                let (file, bytes) = (file(known(at)?), pages.start * PAGE..pages.end * PAGE);
                self.call(Act::FlushRange { file, bytes });
                self.began_before(*calls)?;
            }
            Step::Tell => self.call(Act::Tell),
            Step::Rename(from, to) => {
                let inode = known(from)?;
                let [from, to] = [NAMES[*from], NAMES[*to]];
                let [of_from, of_to] = [self.name(from)?, self.name(to)?];
                let replaced = self.names.get(to).copied();
                if replaced != Some(inode) {
                    self.names.remove(from);
                    self.names.insert(to.into(), inode);
                }
                let (file, replaced) = (file(inode), replaced.map(file));
                self.call(Act::Rename { file, from: of_from, to: of_to, replaced });
            }
            Step::Exchange(one, other) => {
                let inodes = [known(one)?, known(other)?];
                let [one, other] = [NAMES[*one], NAMES[*other]];
                let [of_one, of_other] = [self.name(one)?, self.name(other)?];
                if inodes[0] != inodes[1] {
                    self.names.insert(one.into(), inodes[1]);
                    self.names.insert(other.into(), inodes[0]);
                    let [one, other] = inodes.map(file);
                    self.call(Act::Exchange { one: (one, of_one), other: (other, of_other) });
                }
            }
            Step::Link(from, to) => {
                let inode = known(from)?;
                let name = self.name(NAMES[*to]).filter(|_| known(to).is_none())?;
                self.names.insert(NAMES[*to].into(), inode);
                self.call(Act::Link { file: file(inode), name });
            }
            Step::Unlink(at) => {
                let (inode, name) = (known(at)?, self.name(NAMES[*at])?);
                self.names.remove(NAMES[*at]);
                self.call(Act::Unlink { file: file(inode), name });
            }
            Step::MakeFolder(at) => {
                let path = FOLDERS[*at];
                let name = self.name(path).filter(|_| !self.names.contains_key(path))?;
                self.inodes += 1;
                self.names.insert(path.into(), self.inodes);
                self.call(Act::MadeFolder { file: file(self.inodes), name });
            }
            Step::RenameFolder(from, to) => {
                let [from, to] = [FOLDERS[*from], FOLDERS[*to]];
                let is_free = !self.names.contains_key(to) && !to.starts_with(from);
                let inode = self.names.get(from).copied().filter(|_| is_free)?;
                let [of_from, of_to] = [self.name(from)?, self.name(to)?];
                let moved = |name: String| match name.strip_prefix(from) {
                    Some(below) if below.is_empty() || below.starts_with('/') => {
                        format!("{to}{below}")
                    }
                    _ => name,
                };
                let names = std::mem::take(&mut self.names);
                self.names = names.into_iter().map(|(name, inode)| (moved(name), inode)).collect();
                let file = file(inode);
                self.call(Act::Rename { file, from: of_from, to: of_to, replaced: None });
            }
            Step::RemoveFolder(at) => {
                let path = FOLDERS[*at];
                let below = format!("{path}/");
                let is_empty =
                    !path.is_empty() && !self.names.keys().any(|name| name.starts_with(&below));
                let (name, inode) = (self.name(path)?, *self.names.get(path)?);
                if is_empty {
                    self.names.remove(path);
                    self.call(Act::Unlink { file: file(inode), name });
                }
            }
        }
        Some(())
    }

    fn record(self) -> Record {
        let at_first = Script { calls: Vec::new(), ..Script::new() };
        let before =
            |path: &str, what| Before { name: at_first.name(path).unwrap(), mode: 0o644, what };
        let found = |at: usize| {
            let inode = at_first.names[NAMES[at]];
            before(
                NAMES[at],
                What::File { file: file(inode), bytes: vec![at as u8 + 200; SIZE as usize].into() },
            )
        };
        let folder = before("d", What::Folder(file(2)));
        Record {
            root: ROOT,
            path: "/data".into(),
            before: [folder].into_iter().chain((0..FOUND).map(found)).collect(),
            calls: self.calls,
            places: HashMap::from([(1, "a.py:7".into())]),
        }
    }
}

/// Returns the record of some steps.
fn recorded(steps: &[Step]) -> Record {
    let mut script = Script::new();
    steps.iter().for_each(|step| script.step(step));
    script.record()
}

/// Returns the findings and the disk of a program, as in a trace.
fn judged(record: &Record) -> (Disk, Vec<Finding>) {
    let (mut disk, mut accounts, mut judge) =
        (Disk::default(), Accounts::default(), Judge::default());
    for call in &record.calls {
        accounts.see(&disk, call);
        judge.see(&disk, &accounts, call);
        disk.see(call);
        judge.after(&disk, call);
    }
    let nowhere = &mut |_| ("", None);
    let findings = judge.findings(&disk, &accounts, &|_| true, Path::new("/data"), nowhere);
    (disk, findings.into_iter().map(|(finding, _)| finding).collect())
}

/// Replays the first `count` calls.
fn after(record: &Record, count: usize) -> Replay<'_> {
    let mut replay = Replay::before(record);
    record.calls.iter().take(count).for_each(|call| replay.see(call));
    replay
}

/// Returns the folders that a power loss may leave after the replayed calls, with every possible
/// number of surviving names, because random cuts may miss one.
fn cuts(replay: &Replay) -> Vec<Tree> {
    let calls = replay.disk.names.open_calls().chain([0]);
    let names = calls.map(|until| Cut { until, bytes: Left::All });
    let rounds = (0..ROUNDS).map(|round| Cut::of(round, 1, &replay.disk));
    names.chain(rounds).map(|cut| replay.tree(cut)).collect()
}

fn entry<'a>(tree: &'a Tree, path: &Path) -> Option<&'a Entry> {
    tree.0.get(path).map(|(entry, _)| entry)
}

/// Returns whether some state after a finding's calls shows the loss.
fn is_shown(record: &Record, finding: &Finding, place: &serde_json::Value) -> bool {
    let path = Path::new(place["path"].as_str().unwrap());
    let path = path.strip_prefix("/data").unwrap();
    let calls = place["calls"].as_array().unwrap();
    let number = |call: &serde_json::Value| {
        (call["at_s"].as_f64().unwrap() * 1e9).round() as usize / 1000 + 1
    };
    let end = record.calls.len();
    let last = calls.last().map_or(end, number);
    let seen = |count: usize| entry(&after(record, count).tree(Cut::NO), path).cloned();
    let differs = |count: usize| {
        let told = seen(count);
        cuts(&after(record, count)).iter().any(|left| entry(left, path) != told.as_ref())
    };
    match finding.id.as_str() {
        // The content is neither the old nor the new one.
        "rename-before-flush" | "only-copy-overwritten" => {
            let is_rename = finding.id == "rename-before-flush";
            let first = if is_rename { last } else { number(&calls[0]) };
            let views: Vec<_> = [first - 1, last].into_iter().filter_map(seen).collect();
            let is_torn = |left: &Tree| match entry(left, path) {
                Some(Entry::File(bytes)) if bytes.iter().all(|byte| *byte == 0) => true,
                Some(left) => !views.contains(left),
                None => true,
            };
            cuts(&after(record, last)).iter().any(is_torn)
        }
        "unlink-before-durable-name" => {
            cuts(&after(record, last)).iter().any(|left| entry(left, path).is_none())
        }
        // The program communicates in the first of these calls. The file may have had another name
        // at that time.
        "acknowledged-early" => {
            let replay = after(record, number(&calls[0]));
            let told = replay.tree(Cut::NO);
            cuts(&replay).iter().any(|left| *left != told)
        }
        "flush-error-ignored" | "flush-retried" => (last..=end).any(differs),
        "journal-may-return" => {
            cuts(&after(record, last)).iter().any(|left| entry(left, path).is_some())
        }
        "never-flushed" | "direct-taken-for-durable" | "folder-not-flushed" => differs(end),
        other => panic!("{other}: no state can show it"),
    }
}

proptest! {
    #[test]
    fn a_warning_has_a_state_that_shows_it(steps in prop::collection::vec(step(), 1..25)) {
        // Holes also read as zeros, so that a loss of zeros would not be visible.
        let is_seen = |step: &Step| !matches!(step, Step::Prepare(_));
        let record = recorded(&steps.into_iter().filter(is_seen).collect::<Vec<_>>());
        for finding in judged(&record).1 {
            if finding.severity < Severity::Warning {
                continue;
            }
            for place in finding.evidence["places"].as_array().unwrap() {
                prop_assert!(is_shown(&record, &finding, place), "{finding:?}");
            }
        }
    }

    #[test]
    fn a_name_survives_exactly_where_every_state_has_its_file_whole(
        steps in prop::collection::vec(step(), 1..30)
    ) {
        let record = recorded(&steps);
        let is_prepared = steps.iter().any(|step| matches!(step, Step::Prepare(_)));
        let (disk, _) = judged(&record);
        let replay = after(&record, record.calls.len());
        let (whole, left) = (replay.tree(Cut::NO), cuts(&replay));
        let mut count = 0;
        for (_, known) in disk.files() {
            for (path, named) in disk.names_of(known) {
                let path = path.strip_prefix("/data").unwrap();
                let told = entry(&whole, path);
                prop_assert!(told.is_some(), "{} is not there", path.display());
                let is_safe = disk.survives_as(known, named, Promise::Seen) == Survives::PowerLoss;
                let is_whole = left.iter().all(|left| entry(left, path) == told);
                // Holes also read as zeros.
                if is_prepared {
                    prop_assert!(!is_safe || is_whole, "{}", path.display());
                } else {
                    prop_assert_eq!(is_safe, is_whole, "{}", path.display());
                }
                count += 1;
            }
        }
        // A folder that no call has named has no name.
        prop_assert!(count == whole.0.len() || count + 1 == whole.0.len());
        for (path, _) in disk.removals() {
            let path = path.strip_prefix("/data").unwrap();
            prop_assert!(entry(&whole, path).is_none(), "{} is there", path.display());
            // The name may return only if its folder survives.
            let is_folder = |(id, _): &(FileId, _)| {
                disk.path(*id).strip_prefix("/data").ok() == path.parent()
            };
            let may_return = path.parent() == Some(Path::new(""))
                || disk.files().any(|of| is_folder(&of) && disk.has_durable(of.0));
            let returns = !may_return || left.iter().any(|left| entry(left, path).is_some());
            prop_assert!(returns, "{} does not come back", path.display());
        }
    }
}

fn all(record: &Record, most: u64) -> Vec<State> {
    let mut all = Vec::new();
    let take = &mut |state| {
        all.push(state);
        Ok::<_, Infallible>(true)
    };
    let Ok((count, crashes)) = states(record, most, take);
    assert_eq!(count, all.len() as u64);
    assert!(crashes >= count);
    all
}

#[test]
fn the_worst_state_of_a_rename_without_a_flush_is_an_empty_file() {
    let record = recorded(&[Step::Make(4), Step::Rename(4, 0), Step::FlushFolder(0)]);
    let states = all(&record, 100);
    let empty = |state: &&State| state.shown.losses == ["a is empty"];
    let losses: Vec<_> =
        states.iter().map(|state| (&state.shown.moment, &state.shown.losses)).collect();
    let first = states.iter().find(empty).unwrap_or_else(|| panic!("{losses:?}"));
    assert!(first.shown.moment.starts_with("after the rename to a at "), "{}", first.shown.moment);
    assert!(
        first.shown.moment.ends_with("; all name changes reached the disk, no unflushed data did"),
        "{}",
        first.shown.moment
    );
    assert!(first.shown.number < 10, "{}", first.shown.number);
    let flushed = recorded(&[Step::Make(4), Step::Flush(4, false), Step::Rename(4, 0)]);
    let states = all(&flushed, 100);
    for state in &states {
        assert!(state.tree.file(Path::new("a")).is_some_and(|bytes| bytes.len() == 5000));
    }
}

#[test]
fn a_plain_write_may_be_torn_and_an_atomic_one_is_whole_or_not_done() {
    let steps =
        [Step::Make(0), Step::Append(0, true), Step::FlushFolder(0), Step::Append(0, false)];
    for is_atomic in [false, true] {
        let mut record = recorded(&steps);
        for call in &mut record.calls {
            if let Act::Write { how, .. } = &mut call.act {
                how.is_atomic = is_atomic;
            }
        }
        // The state contains the end of the second write without its beginning, or the reverse.
        let is_torn = |state: &State| {
            let end = state.tree.file(Path::new("a")).and_then(|bytes| bytes.get(SIZE as usize..));
            end.is_some_and(|end| {
                !end.is_empty() && (end.len() < SIZE as usize || end.contains(&0))
            })
        };
        assert_eq!(all(&record, 100).iter().any(is_torn), !is_atomic);
    }
}

#[test]
fn a_state_names_the_calls_that_it_lost_and_kept_and_the_flush_that_was_missing() {
    let mut record = recorded(&[
        Step::Make(4),
        Step::Append(4, false),
        Step::Rename(4, 0),
        Step::FlushFolder(0),
    ]);
    let writes = record.calls.iter_mut().filter(|call| matches!(call.act, Act::Write { .. }));
    writes.for_each(|call| call.place = Some(1));
    let states = all(&record, 100);
    let is_torn = |state: &&State| state.told > 0 && state.shown.losses == ["a is truncated"];
    let torn = states.iter().filter(is_torn).min_by_key(|state| state.shown.lost_changes).unwrap();
    let [lost] = &torn.shown.lost[..] else { panic!("{torn:?}") };
    assert_eq!(
        (lost.call.as_str(), lost.place.as_deref()),
        ("a write of 5000 bytes to a", Some("a.py:7"))
    );
    assert_eq!(torn.shown.kept.iter().map(|call| &*call.call).collect::<Vec<_>>(), [&lost.call]);
    assert_eq!(
        torn.shown.fix,
        "flush the file (fsync) after a write of 5000 bytes to a, before a rename or reporting \
         success"
    );
    let renamed = recorded(&[Step::Make(4), Step::Flush(4, false), Step::Rename(4, 0)]);
    let states = all(&renamed, 100);
    let undone =
        states.iter().find(|state| state.told > 0 && state.shown.lost_changes == 1).unwrap();
    assert_eq!(undone.shown.lost[0].call, "the rename to a");
    assert_eq!(
        undone.shown.fix,
        "flush the folder (fsync) after the rename to a, before reporting success"
    );
}

#[test]
fn zeros_and_shifts_have_the_content_that_the_kernel_makes() {
    let at = |what, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        Change { at: 1, ended_ns: 0, what, is_durable: false, is_lost: false }.apply(&mut bytes);
        bytes
    };
    assert_eq!(at(Bytes::Erase(1, 3), b"abcd"), b"a\0\0d");
    assert_eq!(at(Bytes::Erase(3, 5), b"abcd"), b"abc\0\0");
    assert_eq!(at(Bytes::Shift { at: 1, from: 4, to: 2 }, b"abcd"), b"ad");
    assert_eq!(at(Bytes::Shift { at: 1, from: 4, to: 6 }, b"abcd"), b"a\0\0bcd");
}

#[test]
fn states_have_the_same_numbers_each_time_and_differ() {
    let steps = [Step::Make(4), Step::Append(0, false), Step::Flush(4, false), Step::Rename(4, 1)];
    let record = recorded(&steps);
    let (one, other) = (all(&record, 60), all(&record, 60));
    assert!(one.len() > 10, "{}", one.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!((&one.tree, &one.shown.moment), (&other.tree, &other.shown.moment));
    }
    for (number, state) in one.iter().enumerate() {
        let again = one[..number].iter().find(|other| other.tree == state.tree);
        assert!(again.is_none_or(|other| other.told != state.told), "{}", state.shown.number);
    }
    assert!(one.last().is_some_and(|state| state.shown.number <= 60));
}

#[test]
fn a_moment_is_told_by_its_call() {
    let steps = [
        Step::MakeFolder(2),
        Step::Make(3),
        Step::Rewrite(0),
        Step::Rewrite(1),
        Step::Erase(1),
        Step::Collapse(0),
        Step::Grow(0),
        Step::Flush(0, false),
        Step::Rename(3, 4),
        Step::Exchange(0, 1),
        Step::Link(0, 3),
        Step::Unlink(4),
        Step::Tell,
        Step::FlushAll,
    ];
    let mut script = Script::new();
    steps.iter().for_each(|step| script.step(step));
    let link = Act::MadeLink { file: file(90), name: script.name("l").unwrap(), to: "a".into() };
    script.call(link);
    script.call(Act::Made { file: file(91), name: None });
    let record = script.record();
    let told = |number| after(&record, number + 1).moment(&record, number as u64).call;
    let told: Vec<_> = (4..record.calls.len()).map(told).collect();
    let expected = [
        "creating the folder e",
        "creating new",
        "a write of 5000 bytes to new",
        "a truncation of a to 0 bytes",
        "a write of 5000 bytes to a",
        "zeros over 5000 bytes of b",
        "a write of 5000 bytes to b",
        "zeros over 4096 bytes of b",
        "a resize of a to 904 bytes",
        "a resize of a to 5000 bytes",
        "a flush",
        "the rename to t",
        "the exchange of a",
        "the link new",
        "the removal of t",
        "an answer",
        "a flush",
        "creating the link l",
        "creating an unnamed file",
    ];
    assert_eq!(told, expected);
    // Reports of files that existed before are not moments. Of two consecutive writes, only the
    // last is one.
    assert_eq!(moments(&record.calls, 1000), (5..=record.calls.len() as u64).collect::<Vec<_>>());
    let thin = moments(&record.calls, 10);
    assert_eq!((thin.len(), thin.last()), (5, Some(&(record.calls.len() as u64))));
    let all = all(&record, 7);
    assert_eq!((all.len(), all.last().unwrap().shown.number), (7, 7));
    assert_eq!(all.iter().map(|state| state.told).max(), Some(2));
}

#[test]
fn links_that_were_there_before_keep_their_targets_and_other_file_systems_their_changes() {
    let mut script = Script::new();
    let [from, to] = ["l", "m"].map(|path| script.name(path).unwrap());
    let rename = Act::Rename { file: file(80), from: from.clone(), to, replaced: None };
    script.step(&Step::Append(0, false));
    script.call(rename);
    script.call(Act::FlushAll { device: Some(2) });
    let mut record = script.record();
    record.before.push(Before { name: from, mode: 0, what: What::Link("a".into()) });
    let replay = after(&record, record.calls.len());
    let seen = replay.tree(Cut::NO);
    assert_eq!(entry(&seen, Path::new("m")), Some(&Entry::Link("a".into())));
    assert_eq!(entry(&seen, Path::new("l")), None);
    let flushed = replay.tree(Cut { until: 0, bytes: Left::None });
    assert_eq!(entry(&flushed, Path::new("l")), Some(&Entry::Link("a".into())));
    assert_eq!(flushed.file(Path::new("a")).map(<[u8]>::len), Some(SIZE as usize));
    assert_eq!(seen.file(Path::new("a")).map(<[u8]>::len), Some(2 * SIZE as usize));
}

#[test]
fn new_files_links_and_truncations_are_seen_before_any_write() {
    let mut script = Script::new();
    let [new, link] = ["new", "l"].map(|path| script.name(path).unwrap());
    script.call(Act::Made { file: file(90), name: Some(new) });
    script.call(Act::MadeLink { file: file(91), name: link, to: "a".into() });
    script.call(Act::Empty { file: file(10), size_bytes: SIZE });
    let record = script.record();
    let seen = after(&record, record.calls.len()).tree(Cut::NO);
    assert_eq!(["new", "a"].map(|path| seen.file(Path::new(path))), [Some(&[][..]); 2]);
    assert_eq!(entry(&seen, Path::new("l")), Some(&Entry::Link("a".into())));
}

#[test]
fn a_flush_of_a_file_system_keeps_the_bytes_of_its_files() {
    let mut script = Script::new();
    let (other, name) = (FileId { device: 2, inode: 90 }, script.name("new"));
    script.call(Act::Made { file: other, name });
    let how = How::default();
    script.call(Act::Write {
        file: other,
        bytes: 0..1,
        asked_bytes: 1,
        how,
        is_race: false,
        is_zeros: false,
    });
    script.calls.last_mut().unwrap().data = vec![1];
    script.step(&Step::Append(0, false));
    script.call(Act::FlushAll { device: Some(1) });
    let record = script.record();
    let left = after(&record, record.calls.len()).tree(Cut { until: u64::MAX, bytes: Left::None });
    let lens = ["a", "new"].map(|path| left.file(Path::new(path)).map(<[u8]>::len));
    assert_eq!(lens, [Some(2 * SIZE as usize), Some(0)]);
}

#[test]
fn a_folder_that_is_found_below_itself_is_walked_once() {
    let mut script = Script::new();
    let name = Name { folder: file(2), path: "/data/d/d".into() };
    script.call(Act::Link { file: file(2), name });
    let record = script.record();
    let seen = after(&record, record.calls.len()).tree(Cut::NO);
    assert_eq!(entry(&seen, Path::new("d")), Some(&Entry::Folder));
    assert_eq!(entry(&seen, Path::new("d/d")), None);
}

/// Returns what a cut leaves of `abcd`. Each change belongs to the next call.
fn left(changes: &[(Bytes<'static>, bool)], until: u64, bytes: Left) -> String {
    let change = |(at, (what, is_durable)): (u64, &(Bytes<'static>, bool))| Change {
        at,
        ended_ns: 0,
        what: what.clone(),
        is_durable: *is_durable,
        is_lost: false,
    };
    let changes = (1..).zip(changes).map(change).collect();
    let left =
        Versions { bytes: b"abcd".into(), changes }.left(Cut { until, bytes }, &mut Fates::new());
    String::from_utf8(left.to_vec()).unwrap()
}

fn put_at(from: usize, data: &'static str) -> (Bytes<'static>, bool) {
    (Bytes::Write { from, data: data.as_bytes(), is_atomic: false }, false)
}

#[test]
fn the_first_half_is_of_the_writes_that_no_flush_has_kept() {
    let kept = (put_at(4, "e").0, true);
    let changes = [kept, put_at(0, "1"), put_at(1, "2"), put_at(2, "3"), put_at(3, "4")];
    assert_eq!(left(&changes, u64::MAX, Left::First), "12cde");
    assert_eq!(left(&changes, u64::MAX, Left::All), "1234e");
    assert_eq!(left(&changes, u64::MAX, Left::None), "abcde");
}

#[test]
fn zeros_and_sizes_are_those_of_the_calls_up_to_the_cut() {
    assert_eq!(left(&[put_at(2, "xyz")], 1, Left::Zeros), "abcd\0");
    assert_eq!(left(&[put_at(2, "xyz")], 0, Left::Zeros), "abcd");
    assert_eq!(left(&[put_at(2, "xyz")], 0, Left::All), "abxy");
    let [cut, erased] = [(Bytes::Resize(2), false), (Bytes::Erase(0, 1), false)];
    assert_eq!(left(&[cut.clone(), erased], 1, Left::None), "ab");
    let rewritten = [cut, put_at(0, "xyz")];
    assert_eq!(left(&rewritten, 1, Left::All), "xy");
    assert_eq!(left(&rewritten, 1, Left::Zeros), "ab");
}

#[test]
fn a_durable_write_keeps_sizes_and_a_failed_flush_loses_bytes_for_all_but_the_program() {
    let open = |what| Change { at: 1, ended_ns: 0, what, is_durable: false, is_lost: false };
    let changes = [open(Bytes::Resize(2)), open(put_at(0, "x").0)].into();
    let mut versions = Versions { bytes: b"abcd".into(), changes };
    let left =
        |versions: &Versions, bytes| versions.left(Cut { until: 0, bytes }, &mut Fates::new());
    versions.keep_sizes(0);
    assert_eq!(*left(&versions, Left::None), *b"ab");
    assert_eq!(*left(&versions, Left::All), *b"xb");
    versions.lose();
    assert_eq!(*left(&versions, Left::All), *b"ab");
    assert_eq!(*left(&versions, Left::Seen), *b"xb");
}

#[test]
fn each_page_of_each_write_survives_on_its_own() {
    let (data, at) = (vec![1; 4 * PAGE_BYTES], 1);
    let write = |pages: std::ops::Range<usize>| {
        let [from, to] = [pages.start, pages.end].map(|page| page * PAGE_BYTES);
        let what = Bytes::Write { from, data: &data[from..to], is_atomic: false };
        Change { at, ended_ns: 0, what, is_durable: false, is_lost: false }
    };
    let versions =
        Versions { bytes: tree::Bytes::default(), changes: vec![write(0..3), write(3..4)] };
    let pages = |seed| {
        let left = versions.left(Cut { until: at, bytes: Left::Mixed(seed) }, &mut Fates::new());
        [0, 1, 2, 3].map(|page| left.get(page * PAGE_BYTES) == Some(&1))
    };
    let ways: HashSet<_> = (0..200).map(pages).collect();
    assert_eq!(ways.len(), 16);
}

#[test]
fn the_cuts_fall_behind_every_change_of_a_name() {
    let record = recorded(&[Step::Make(3), Step::Make(4), Step::Rename(3, 0), Step::Unlink(1)]);
    let replay = after(&record, record.calls.len());
    let first = Cut::FIRST.len() as u64 + 1;
    let cuts = (first..first + 200).map(|round| Cut::of(round, 1, &replay.disk).until);
    let cuts: HashSet<u64> = cuts.collect();
    assert_eq!(cuts, replay.disk.names.open_calls().chain([0, u64::MAX]).collect());
    let shown = |until| Cut { until, bytes: Left::None }.shown(5);
    assert_eq!(shown(0), "only flushed name changes reached the disk, no unflushed data did");
    assert_eq!(shown(4), "only the first name changes reached the disk, no unflushed data did");
    assert_eq!(shown(5), "all name changes reached the disk, no unflushed data did");
}

#[test]
fn the_moments_are_after_changes_and_of_writes_in_a_row_after_the_last() {
    let steps =
        [Step::Make(4), Step::Change(4, false), Step::Tell, Step::Flush(4, false), Step::Unlink(4)];
    let record = recorded(&steps);
    assert_eq!(moments(&record.calls, 100), [5, 7, 8, 9, 10]);
    let told: BTreeSet<u64> = all(&record, 100).iter().map(|state| state.told).collect();
    assert_eq!(told.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}
