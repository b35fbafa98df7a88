//! Derives the possible states of a folder after power loss from a record's calls.
//!
//! [`Disk`] determines which names a crash leaves: a crash keeps the changes of names up to some
//! call, and the changes that a flush covers. This module keeps the data. Any unflushed bytes may
//! be missing, and so may size changes.

use crate::call::{Act, Call, FileId, Name};
use crate::disk::Disk;
use crate::names::Id;
use crate::record::{Record, What};
use crate::tree::{self, Entry, Tree};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use wrote_result::trace::{CrashState, Moment};
use wrote_result::units;

/// Data reaches the disk in whole pages of this size.
const PAGE_BYTES: usize = 4096;
/// The number of states tried per moment: [`Cut::FIRST`], one that lacks the last change of a name,
/// then pseudorandom ones.
const ROUNDS: u64 = 31;
/// The maximum number of lost calls, and of kept calls, that are described.
const CALLS_MAX: usize = 3;

/// The advice if a check fails even for a state in which nothing is lost.
const REPLACE: &str = "write a temporary file, flush it (fsync), rename it over the old one, and \
    fsync the folder";

/// Whether a power loss keeps each unflushed change, by the number of its call.
type Fates = BTreeMap<u64, bool>;

/// The replay of a recorded program, call by call.
#[derive(Debug)]
struct Replay<'a> {
    disk: Disk,
    root: Id,
    nodes: HashMap<Id, Node<'a>>,
    /// The number of calls applied.
    now: u64,
    /// The number of times that the program has communicated with the outside.
    told: u64,
}

#[derive(Debug, Default)]
struct Node<'a> {
    mode: Option<u32>,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Folder,
    Link(PathBuf),
    File(Versions<'a>),
}

impl Default for Kind<'_> {
    fn default() -> Self {
        Kind::File(Versions::default())
    }
}

/// The versions of a file's data that a crash may leave.
#[derive(Debug, Default)]
struct Versions<'a> {
    /// The durable content.
    bytes: tree::Bytes,
    /// The changes made after the content became durable.
    changes: Vec<Change<'a>>,
}

/// A change of a file's data.
#[derive(Clone, Debug)]
struct Change<'a> {
    at: u64,
    /// When the call ended. A flush that began earlier may miss the change.
    ended_ns: u64,
    what: Bytes<'a>,
    is_durable: bool,
    /// Whether a flush of the change failed; no later flush saves it.
    is_lost: bool,
}

#[derive(Clone, Debug)]
enum Bytes<'a> {
    Write {
        from: usize,
        data: &'a [u8],
        /// Whether a power loss leaves either the whole write or nothing of it.
        is_atomic: bool,
    },
    Resize(usize),
    /// This range becomes zeros.
    Erase(usize, usize),
    /// A range is cut out or inserted, so that the size changes.
    Shift {
        at: usize,
        from: usize,
        to: usize,
    },
}

/// Selects the unflushed changes that survive power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The last call whose change of names or sizes survives.
    until: u64,
    bytes: Left,
}

/// Selects the unflushed bytes that survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    None,
    Zeros,
    All,
    /// The first half of each file's writes.
    First,
    /// All but the last write to each file.
    ButLast,
    /// A random choice of pages.
    Mixed(u64),
    /// All writes, including those lost by a failed flush, as running programs see them.
    Seen,
}

impl Cut {
    /// The cuts tried first at each moment, worst first.
    const FIRST: [Cut; 6] = [
        Cut { until: u64::MAX, bytes: Left::None },
        Cut { until: 0, bytes: Left::None },
        Cut { until: u64::MAX, bytes: Left::Zeros },
        Cut { until: u64::MAX, bytes: Left::First },
        Cut { until: u64::MAX, bytes: Left::All },
        Cut { until: u64::MAX, bytes: Left::ButLast },
    ];
    /// No power loss: the content that running programs see.
    const NO: Cut = Cut { until: u64::MAX, bytes: Left::Seen };

    fn of(round: u64, moment: u64, disk: &Disk) -> Cut {
        match Cut::FIRST.get(round as usize) {
            Some(cut) => *cut,
            None if round == Cut::FIRST.len() as u64 => {
                let last = disk.names.open_calls().last();
                Cut { until: last.map_or(u64::MAX, |last| last - 1), bytes: Left::All }
            }
            None => {
                let mut chance = SplitMix64::seed_from_u64(round << 32 | moment);
                let mut calls = disk.names.open_calls();
                let until = match chance.next_u64() % (calls.len() as u64 + 1) {
                    0 => 0,
                    number => calls.nth(number as usize - 1).unwrap_or(0),
                };
                // Most useful cuts fall between two changes; the others keep all names.
                let until = if chance.next_u64().is_multiple_of(3) { u64::MAX } else { until };
                Cut { until, bytes: Left::Mixed(chance.next_u64()) }
            }
        }
    }

    /// Describes the cut in words.
    fn shown(self, moment: u64) -> String {
        let names = match self.until {
            0 => "only flushed name changes reached the disk",
            until if until >= moment => "all name changes reached the disk",
            _ => "only the first name changes reached the disk",
        };
        let bytes = match self.bytes {
            Left::None => "no unflushed data did",
            Left::Zeros => "unflushed data reads as zeros",
            Left::All | Left::Seen => "all data did",
            Left::First => "the first half of the unflushed writes did",
            Left::ButLast => "all data but the last write to each file did",
            Left::Mixed(_) => "some of the unflushed data did",
        };
        format!("{names}, {bytes}")
    }
}

impl<'a> Replay<'a> {
    /// Returns the state before the program ran.
    fn before(record: &'a Record) -> Replay<'a> {
        let mut disk = Disk::default();
        let root = disk.found_folder(record.root, None, &record.path);
        let folder = Node { mode: None, kind: Kind::Folder };
        let mut nodes = HashMap::from([(root, folder)]);
        for before in &record.before {
            let name = &before.name;
            let (id, kind) = match &before.what {
                What::Folder(file) => {
                    (disk.found_folder(*file, Some(name), &name.path), Kind::Folder)
                }
                What::Link(to) => (disk.found_link(name), Kind::Link(to.clone())),
                What::File { file, bytes } => {
                    let versions = Versions { bytes: bytes.clone(), changes: Vec::new() };
                    let size_bytes = bytes.len() as u64;
                    (disk.found(*file, Some(name), size_bytes), Kind::File(versions))
                }
            };
            nodes.insert(id, Node { mode: Some(before.mode), kind });
        }
        Replay { disk, root, nodes, now: 0, told: 0 }
    }

    fn change(&mut self, file: FileId, what: Bytes<'a>, is_durable: bool, call: &Call) {
        let Some(id) = self.disk.id(file) else { return };
        if let Kind::File(versions) = &mut self.nodes.entry(id).or_default().kind {
            if is_durable {
                versions.keep_sizes(call.at_ns);
            }
            let (at, ended_ns) = (self.now, call.ended_ns());
            versions.changes.push(Change { at, ended_ns, what, is_durable, is_lost: false });
        }
    }

    fn add(&mut self, file: FileId, kind: Kind<'a>) {
        let id = self.disk.id(file);
        self.nodes.extend(id.map(|id| (id, Node { mode: None, kind })));
    }

    /// Applies a call.
    fn see(&mut self, call: &'a Call) {
        self.now += 1;
        self.disk.see(call);
        match &call.act {
            Act::Made { file, .. } => self.add(*file, Kind::default()),
            Act::MadeLink { file, to, .. } => self.add(*file, Kind::Link(to.clone())),
            Act::MadeFolder { file, .. } => self.add(*file, Kind::Folder),
            Act::Write { file, bytes, how, .. } => {
                let (from, is_atomic) = (bytes.start as usize, how.is_atomic);
                let what = Bytes::Write { from, data: &call.data, is_atomic };
                self.change(*file, what, how.is_durable, call);
            }
            Act::Empty { file, .. } => self.change(*file, Bytes::Resize(0), false, call),
            Act::Resize { file, to_bytes, .. } => {
                self.change(*file, Bytes::Resize(*to_bytes as usize), false, call);
            }
            Act::Erase { file, bytes, .. } => {
                let [from, to] = [bytes.start, bytes.end].map(|byte| byte as usize);
                self.change(*file, Bytes::Erase(from, to), false, call);
            }
            Act::Shift { file, at_byte, from_bytes, to_bytes } => {
                let [from, to] = [*from_bytes, *to_bytes].map(|size| size as usize);
                let what = Bytes::Shift { at: *at_byte as usize, from, to };
                self.change(*file, what, false, call);
            }
            Act::Flush { file, failed, .. } => {
                let node = self.disk.id(*file).and_then(|id| self.nodes.get_mut(&id));
                match node.map(|node| &mut node.kind) {
                    Some(Kind::File(versions)) if failed.is_some() => versions.lose(),
                    Some(Kind::File(versions)) => {
                        versions.precede(&call.after);
                        versions.flush(call.at_ns);
                    }
                    _ => {}
                }
            }
            Act::FlushRange { file, bytes } => {
                let node = self.disk.id(*file).and_then(|id| self.nodes.get_mut(&id));
                if let Some(Kind::File(versions)) = node.map(|node| &mut node.kind) {
                    versions.flush_range(bytes, call.at_ns);
                }
            }
            Act::FlushAll { device } => {
                for (id, node) in &mut self.nodes {
                    let is_meant = device.is_none() || *device == self.disk.device(*id);
                    if let (Kind::File(versions), true) = (&mut node.kind, is_meant) {
                        versions.flush(call.at_ns);
                    }
                }
            }
            Act::Tell => self.told += 1,
            // The other calls change only names, or nothing.
            _ => {}
        }
    }

    /// Returns the folder as a power loss may leave it.
    fn tree(&self, cut: Cut) -> Tree {
        self.crash(cut, &mut Fates::new())
    }

    /// Returns the folder as a power loss may leave it. Adds to `fates` whether that folder
    /// contains each unflushed change.
    fn crash(&self, cut: Cut, fates: &mut Fates) -> Tree {
        fates.extend(self.disk.names.open_calls().map(|at| (at, at <= cut.until)));
        let mut tree = Tree::default();
        let mut folders = vec![(self.root, PathBuf::new())];
        let mut walked = HashSet::from([self.root]);
        while let Some((folder, path)) = folders.pop() {
            for (name, id) in self.disk.names.entries(folder, cut.until) {
                // A file that another program created after the recording began is unknown.
                let Some(node) = self.nodes.get(&id) else { continue };
                let path = path.join(name);
                let entry = match &node.kind {
                    Kind::Folder => {
                        if !walked.insert(id) {
                            continue;
                        }
                        folders.push((id, path.clone()));
                        Entry::Folder
                    }
                    Kind::Link(to) => Entry::Link(to.clone()),
                    Kind::File(versions) => Entry::File(versions.left(cut, fates)),
                };
                tree.0.insert(path, (entry, node.mode));
            }
        }
        tree
    }
}

impl Change<'_> {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self.what {
            Bytes::Resize(size) => bytes.resize(size, 0),
            Bytes::Erase(from, to) => {
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].fill(0);
            }
            Bytes::Shift { at, from, to } => {
                bytes.resize(from, 0);
                let (cut, inserted) = (from.saturating_sub(to), to.saturating_sub(from));
                bytes.splice(at..at + cut, std::iter::repeat_n(0, inserted));
            }
            Bytes::Write { from, data, .. } => put(bytes, from, data),
        }
    }
}

fn put(bytes: &mut Vec<u8>, from: usize, data: &[u8]) {
    let end = from + data.len();
    bytes.resize(bytes.len().max(end), 0);
    bytes[from..end].copy_from_slice(data);
}

impl<'a> Versions<'a> {
    /// Handles the changes that ended at these times: the next flush covers them.
    fn precede(&mut self, ended: &[u64]) {
        let changes = self.changes.iter_mut();
        let meant = changes.filter(|change| ended.contains(&change.ended_ns));
        meant.for_each(|change| change.ended_ns = 0);
    }

    /// Handles a flush that began at `began_ns`.
    fn flush(&mut self, began_ns: u64) {
        // A lost or late change stays in the list with all changes after it, because programs still
        // see it.
        let is_kept = |change: &Change| !change.is_lost && change.ended_ns <= began_ns;
        let count = self.changes.iter().take_while(|change| is_kept(change)).count();
        for change in self.changes.drain(..count) {
            change.apply(self.bytes.to_mut());
        }
        for change in &mut self.changes {
            change.is_durable |= is_kept(change);
        }
    }

    /// Handles a flush of a range that began at `began_ns`. Like a durable write, it also makes
    /// size changes durable.
    fn flush_range(&mut self, range: &Range<u64>, began_ns: u64) {
        self.keep_sizes(began_ns);
        let (start, end) = (range.start as usize, range.end as usize);
        for (change, [start, end]) in self.placed([start, end]) {
            match change.what {
                Bytes::Write { from, data, is_atomic }
                    if !change.is_lost && change.ended_ns <= began_ns =>
                {
                    let to = from + data.len();
                    let ends = [from, start.clamp(from, to), end.clamp(from, to), to];
                    for (part, is_in) in ends.windows(2).zip([false, true, false]) {
                        let data = &data[part[0] - from..part[1] - from];
                        let what = Bytes::Write { from: part[0], data, is_atomic };
                        let is_durable = change.is_durable || is_in;
                        let part = Change { what, is_durable, ..change };
                        self.changes.extend((!data.is_empty()).then_some(part));
                    }
                }
                _ => self.changes.push(change),
            }
        }
        let count = self.changes.iter().take_while(|change| change.is_durable).count();
        for change in self.changes.drain(..count) {
            change.apply(self.bytes.to_mut());
        }
    }

    /// Removes and returns the changes, each with the range as it was before later shifts moved it.
    fn placed(&mut self, mut range: [usize; 2]) -> Vec<(Change<'a>, [usize; 2])> {
        let mut placed = Vec::with_capacity(self.changes.len());
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let earlier = match change.what {
                Bytes::Shift { at, from, to } => range.map(|byte| match byte {
                    _ if byte <= at => byte,
                    _ if from > to => byte + (from - to),
                    _ => byte.saturating_sub(to - from).max(at),
                }),
                _ => range,
            };
            placed.push((change, range));
            range = earlier;
        }
        placed.reverse();
        placed
    }

    /// Makes all changes except writes durable, as a durable write does.
    fn keep_sizes(&mut self, began_ns: u64) {
        for change in self.changes.iter_mut().filter(|change| change.ended_ns <= began_ns) {
            change.is_durable |= !matches!(change.what, Bytes::Write { .. });
        }
    }

    /// Handles a flush that failed.
    fn lose(&mut self) {
        for change in self.changes.iter_mut().filter(|change| !change.is_durable) {
            change.is_lost = matches!(change.what, Bytes::Write { .. });
        }
    }

    /// Returns a file's content after a power loss, and adds the fates of its changes to `fates`.
    fn left(&self, cut: Cut, fates: &mut Fates) -> tree::Bytes {
        let mut left = self.bytes.clone();
        if self.changes.is_empty() {
            return left;
        }
        let bytes = left.to_mut();
        let open = self.changes.iter().filter(|change| !change.is_durable).count();
        // A durable change includes the size changes before it.
        let last_durable = self.changes.iter().rposition(|change| change.is_durable).unwrap_or(0);
        let mut seen = 0;
        for (number, change) in self.changes.iter().enumerate() {
            if change.is_durable {
                change.apply(bytes);
                continue;
            }
            seen += 1;
            let is_kept = change.at <= cut.until;
            let is_whole = match change.what {
                Bytes::Write { from, data, is_atomic }
                    if !change.is_lost || cut.bytes == Left::Seen =>
                {
                    // If earlier name changes are lost, only existing blocks can hold data.
                    let room = match is_kept || number < last_durable {
                        true => data.len(),
                        false => bytes.len().saturating_sub(from),
                    };
                    let some = &data[..data.len().min(room)];
                    let is_part = some.len() < data.len() || cut.bytes == Left::Zeros;
                    let unit = if is_atomic { usize::MAX } else { PAGE_BYTES };
                    !(is_atomic && is_part)
                        && cut.bytes.keep(bytes, from, some, unit, [number, seen, open])
                        && some.len() == data.len()
                }
                Bytes::Write { .. } => false,
                _ => {
                    if is_kept {
                        change.apply(bytes);
                    }
                    is_kept
                }
            };
            *fates.entry(change.at).or_insert(true) &= is_whole;
        }
        left
    }
}

impl Left {
    /// Writes the surviving parts of a write into a file, in units of `unit` bytes. `place`
    /// contains the write's number among all changes, its number among the `open` changes, and the
    /// number of open changes. Returns whether the whole write survives.
    fn keep(
        self,
        bytes: &mut Vec<u8>,
        from: usize,
        data: &[u8],
        unit: usize,
        place: [usize; 3],
    ) -> bool {
        let [number, seen, open] = place;
        let end = from + data.len();
        match self {
            Left::None => return false,
            Left::Zeros => {
                bytes.resize(bytes.len().max(end), 0);
                return false;
            }
            Left::First if seen > open / 2 => return false,
            Left::ButLast if seen == open => return false,
            Left::First | Left::ButLast | Left::All | Left::Seen => put(bytes, from, data),
            Left::Mixed(seed) => {
                let mut chance = SplitMix64::seed_from_u64(seed ^ (number as u64) << 40);
                let mut is_whole = true;
                for part in from / unit..end.div_ceil(unit) {
                    let start = (part * unit).max(from);
                    let end = ((part + 1) * unit).min(end);
                    match chance.next_u64() & 1 {
                        1 => put(bytes, start, &data[start - from..end - from]),
                        _ => is_whole = false,
                    }
                }
                return is_whole;
            }
        }
        true
    }
}

/// A possible state after power loss.
#[derive(Debug)]
pub struct State {
    /// The state's number, counted from 1, and its description. No check has run.
    pub shown: CrashState,
    /// The folder's content.
    pub tree: Tree,
    /// The number of times that the program had communicated with the outside, including its exit.
    pub told: u64,
}

/// Returns the folder as the program left it, without power loss.
pub fn without_loss(record: &Record) -> State {
    let mut replay = Replay::before(record);
    record.calls.iter().for_each(|call| replay.see(call));
    State { shown: CrashState::default(), tree: replay.tree(Cut::NO), told: replay.told + 1 }
}

/// Passes distinct states to `take`, worst first, until there are `most` of them or `take` ends the
/// loop. The same record always yields the same states and numbers. Returns the number of states,
/// and the number of crashes that they represent: crashes that leave the same content under the
/// same names share a state.
pub fn states<E>(
    record: &Record,
    most: u64,
    take: &mut dyn FnMut(State) -> Result<bool, E>,
) -> Result<(u64, u64), E> {
    let moments = moments(&record.calls, most);
    let mut met = HashSet::new();
    let (mut count, mut crashes) = (0, 0);
    for round in 0..ROUNDS {
        let mut replay = Replay::before(record);
        let mut calls = record.calls.iter();
        for moment in &moments {
            // Moment 0 is before the first call.
            while replay.now < *moment {
                let Some(call) = calls.next() else { break };
                replay.see(call);
            }
            let is_end = *moment == record.calls.len() as u64;
            let cut = Cut::of(round, *moment, &replay.disk);
            let mut fates = Fates::new();
            let tree = replay.crash(cut, &mut fates);
            // Changes of names outside the folder are not part of the state.
            fates.retain(|at, _| {
                let names = names(&record.calls[*at as usize - 1].act);
                names.is_empty() || names.iter().any(|name| name.path.starts_with(&record.path))
            });
            let told = replay.told + u64::from(is_end);
            crashes += 1;
            if !met.insert((tree.signature(), told)) {
                continue;
            }
            count += 1;
            let last = moment.checked_sub(1).map(|last| replay.moment(record, last));
            let after = match &last {
                _ if is_end => "after the program ended".into(),
                None => "before the program's first call".into(),
                Some(Moment { call, at_s, .. }) => {
                    format!("after {call} at {}", units::seconds(*at_s))
                }
            };
            let moment = format!("{after}; {}", cut.shown(*moment));
            let calls = |is_kept| -> Vec<u64> {
                fates.iter().filter(|of| *of.1 == is_kept).map(|of| of.0 - 1).collect()
            };
            let words = |calls: &[u64]| -> Vec<Moment> {
                calls.iter().map(|call| replay.moment(record, *call)).collect()
            };
            let (gone, left) = (calls(false), calls(true));
            let lost = words(&gone[..gone.len().min(CALLS_MAX)]);
            let kept = words(&left[left.len().saturating_sub(CALLS_MAX)..]);
            let is_name = |call: &u64| !names(&record.calls[*call as usize].act).is_empty();
            let (what, before) = match gone.first().is_some_and(is_name) {
                true => ("folder", "reporting success"),
                false => ("file", "a rename or reporting success"),
            };
            let flush = |lost: &Moment| {
                format!("flush the {what} (fsync) after {}, before {before}", lost.call)
            };
            let shown = CrashState {
                number: count,
                moment,
                losses: tree.losses(&replay.tree(Cut::NO)),
                lost_changes: gone.len() as u64,
                place: lost.first().or(last.as_ref()).and_then(|call| call.place.clone()),
                fix: lost.first().map_or(REPLACE.into(), flush),
                lost,
                kept,
                problem: None,
                reproduce: String::new(),
            };
            let state = State { shown, tree, told };
            if !take(state)? || count == most {
                return Ok((count, crashes));
            }
        }
    }
    Ok((count, crashes))
}

/// Returns the moments to try: after each call except a write followed by another, because writes
/// before a flush add no new states. If there are too many moments, they are thinned out evenly.
fn moments(calls: &[Call], most: u64) -> Vec<u64> {
    let is_write = |call: Option<&Call>| {
        call.is_some_and(|call| matches!(call.act, Act::Write { how, .. } if !how.is_durable))
    };
    let mut all: Vec<u64> = (0..calls.len())
        .filter(|at| calls[*at].act.is_change())
        .filter(|at| !(is_write(calls.get(*at)) && is_write(calls.get(at + 1))))
        .map(|at| at as u64 + 1)
        .collect();
    if all.last() != Some(&(calls.len() as u64)) {
        all.push(calls.len() as u64);
    }
    let step = (all.len() as u64).div_ceil((most / 2).max(1)) as usize;
    // The end is always included.
    let first = (all.len() - 1) % step;
    all.into_iter().skip(first).step_by(step).collect()
}

impl Replay<'_> {
    /// Returns a description of a call of the record, and its location.
    fn moment(&self, record: &Record, number: u64) -> Moment {
        let call = &record.calls[number as usize];
        let place = call.place.and_then(|place| record.places.get(&place)).cloned();
        Moment { place, ..Moment::new(&self.shown(&call.act, &record.path), call.at_ns) }
    }

    /// Describes a call, such as `the rename to a.json`.
    fn shown(&self, act: &Act, root: &Path) -> String {
        let path = |name: &Name| below(&name.path, root);
        let of = |file: &FileId| below(&self.disk.path(*file), root);
        let bytes = |bytes: &std::ops::Range<u64>| bytes.end - bytes.start;
        match act {
            Act::Made { name: Some(name), .. } => format!("creating {}", path(name)),
            Act::Made { name: None, .. } => "creating an unnamed file".into(),
            Act::MadeLink { name, .. } => format!("creating the link {}", path(name)),
            Act::MadeFolder { name, .. } => format!("creating the folder {}", path(name)),
            Act::Write { file, bytes: of_write, .. } => {
                format!("a write of {} to {}", units::counted(bytes(of_write), "byte"), of(file))
            }
            Act::Empty { file, .. } => format!("a truncation of {} to 0 bytes", of(file)),
            Act::Resize { file, to_bytes, .. } | Act::Shift { file, to_bytes, .. } => {
                format!("a resize of {} to {to_bytes} bytes", of(file))
            }
            Act::Erase { file, bytes: zeros, .. } => {
                format!("zeros over {} bytes of {}", bytes(zeros), of(file))
            }
            Act::Flush { .. } | Act::FlushRange { .. } | Act::FlushAll { .. } => "a flush".into(),
            Act::Rename { to, .. } => format!("the rename to {}", path(to)),
            Act::Exchange { one, .. } => format!("the exchange of {}", path(&one.1)),
            Act::Link { name, .. } => format!("the link {}", path(name)),
            Act::Unlink { name, .. } => format!("the removal of {}", path(name)),
            Act::Tell => "an answer".into(),
            _ => "a call".into(),
        }
    }
}

/// Returns the names that a call changes.
fn names(act: &Act) -> Vec<&Name> {
    match act {
        Act::Made { name, .. } => name.iter().collect(),
        Act::MadeFolder { name, .. }
        | Act::MadeLink { name, .. }
        | Act::Link { name, .. }
        | Act::Unlink { name, .. } => vec![name],
        Act::Rename { from, to, .. } => vec![from, to],
        Act::Exchange { one, other } => vec![&one.1, &other.1],
        _ => Vec::new(),
    }
}

fn below(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests;
