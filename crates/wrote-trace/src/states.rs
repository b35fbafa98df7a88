//! Derives the possible states of a folder after power loss from a record's calls.
//!
//! The rules are those observed on ext4, XFS and Btrfs in this project's crash tests
//! (`docs/durability.md`). Name changes persist in call order: a prefix survives, plus those
//! covered by a flush. Any unflushed bytes may be missing, together with size changes.

use crate::call::{Act, Call, FileId, Name};
use crate::record::{Record, What, leaf};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Data reaches the disk in whole pages.
const PAGE_BYTES: usize = 4096;
/// How many pseudo-random states are tried per moment.
const MIXED_ROUNDS: u64 = 24;

/// Identifies a file, folder or link on a [`Disk`]; inodes are reused.
type Id = usize;

/// The current files, and which of their changes are durable.
#[derive(Debug)]
pub struct Disk<'a> {
    root: Id,
    nodes: Vec<Node<'a>>,
    ids: HashMap<FileId, Id>,
    names: BTreeMap<(Id, OsString), Id>,
    /// Name changes since, without the durable prefix.
    changes: Vec<Renaming>,
    /// Counts calls.
    now: u64,
    /// How often the program has communicated with the outside.
    pub told: u64,
}

#[derive(Debug)]
struct Node<'a> {
    device: u64,
    mode: Option<u32>,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Folder,
    Link(PathBuf),
    File {
        /// The durable content.
        bytes: Vec<u8>,
        /// Changes since.
        changes: Vec<Change<'a>>,
    },
}

/// A change of a file's data.
#[derive(Clone, Debug)]
struct Change<'a> {
    at: u64,
    what: Bytes<'a>,
    is_durable: bool,
    /// Whether its flush failed; no later flush saves it.
    is_lost: bool,
}

#[derive(Clone, Debug)]
enum Bytes<'a> {
    Write {
        from: usize,
        data: &'a [u8],
    },
    Resize(usize),
    /// These become zeros.
    Erase(usize, usize),
    /// Some are cut out or inserted, so that the file's size changes.
    Shift {
        at: usize,
        from: usize,
        to: usize,
    },
}

/// A change of names.
#[derive(Debug)]
struct Renaming {
    at: u64,
    file: Id,
    folder: Id,
    /// Whether it created the file, whose own flush then makes it durable.
    is_made: bool,
    is_durable: bool,
    names: Vec<((Id, OsString), Option<Id>)>,
}

/// Selects the unflushed changes that survive power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Changes of names and sizes survive up to this call.
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
    /// A random choice of pages.
    Mixed(u64),
    /// All, including bytes lost by a failed flush: the view of running programs.
    Seen,
}

impl Cut {
    /// The cuts tried first at each moment, worst first.
    const FIRST: [Cut; 5] = [
        Cut { until: u64::MAX, bytes: Left::None },
        Cut { until: 0, bytes: Left::None },
        Cut { until: u64::MAX, bytes: Left::Zeros },
        Cut { until: u64::MAX, bytes: Left::First },
        Cut { until: u64::MAX, bytes: Left::All },
    ];
    /// No power loss: the view of running programs.
    const NO: Cut = Cut { until: u64::MAX, bytes: Left::Seen };

    fn of(round: u64, moment: u64, disk: &Disk) -> Cut {
        match Cut::FIRST.get(round as usize) {
            Some(cut) => *cut,
            None => {
                let mut chance = SplitMix64::seed_from_u64(round << 32 | moment);
                let changes = disk.changes.len() as u64 + 1;
                let until = match chance.next_u64() % changes {
                    0 => 0,
                    number => disk.changes[number as usize - 1].at,
                };
                // The most interesting cuts fall between two changes; the others keep all names.
                let until = if chance.next_u64().is_multiple_of(3) { u64::MAX } else { until };
                Cut { until, bytes: Left::Mixed(chance.next_u64()) }
            }
        }
    }

    /// Describes the cut.
    fn shown(self, moment: u64) -> String {
        let names = match self.until {
            0 => "names as flushed",
            until if until >= moment => "all names changed",
            _ => "the first names changed",
        };
        let bytes = match self.bytes {
            Left::None => "no unflushed bytes",
            Left::Zeros => "zeros for unflushed bytes",
            Left::All | Left::Seen => "all bytes",
            Left::First => "the first half of the unflushed writes",
            Left::Mixed(_) => "some of the unflushed bytes",
        };
        format!("{names}, {bytes}")
    }
}

impl<'a> Disk<'a> {
    /// Returns the disk before the program ran.
    pub fn before(record: &'a Record) -> Disk<'a> {
        let mut disk = Disk {
            root: 0,
            nodes: Vec::new(),
            ids: HashMap::new(),
            names: BTreeMap::new(),
            changes: Vec::new(),
            now: 0,
            told: 0,
        };
        disk.root = disk.make(record.root, Kind::Folder);
        for before in &record.before {
            let id = match &before.what {
                What::Folder(file) => disk.make(*file, Kind::Folder),
                What::Link(to) => disk.add(before.name.folder.device, Kind::Link(to.clone())),
                What::File(file, bytes) => match disk.ids.get(file) {
                    Some(known) => *known,
                    None => {
                        let kind = Kind::File { bytes: bytes.clone(), changes: Vec::new() };
                        disk.make(*file, kind)
                    }
                },
            };
            disk.nodes[id].mode = Some(before.mode);
            let place = disk.place(&before.name);
            disk.names.insert(place, id);
        }
        disk
    }

    fn add(&mut self, device: u64, kind: Kind<'a>) -> Id {
        self.nodes.push(Node { device, mode: None, kind });
        self.nodes.len() - 1
    }

    fn make(&mut self, file: FileId, kind: Kind<'a>) -> Id {
        let id = self.add(file.device, kind);
        self.ids.insert(file, id);
        id
    }

    fn id(&mut self, file: FileId) -> Id {
        match self.ids.get(&file) {
            Some(id) => *id,
            None => self.make(file, Kind::File { bytes: Vec::new(), changes: Vec::new() }),
        }
    }

    fn place(&mut self, name: &Name) -> (Id, OsString) {
        let folder = match self.ids.get(&name.folder) {
            Some(id) => *id,
            None => self.make(name.folder, Kind::Folder),
        };
        (folder, leaf(name))
    }

    fn rename(&mut self, file: Id, is_made: bool, names: Vec<(&Name, Option<Id>)>) {
        let names: Vec<_> =
            names.into_iter().map(|(name, file)| (self.place(name), file)).collect();
        let Some(((folder, _), _)) = names.last() else { return };
        let (folder, at) = (*folder, self.now);
        self.changes.push(Renaming { at, file, folder, is_made, is_durable: false, names });
    }

    fn change(&mut self, file: FileId, what: Bytes<'a>, is_durable: bool) {
        let (id, at) = (self.id(file), self.now);
        if let Kind::File { changes, .. } = &mut self.nodes[id].kind {
            changes.push(Change { at, what, is_durable, is_lost: false });
        }
        if is_durable {
            self.keep_name(id);
        }
    }

    /// Handles the flush of a file: the name of a new file becomes durable, with its folders.
    fn keep_name(&mut self, file: Id) {
        let mut kept = Some(file);
        while let Some(id) = kept {
            let made = self.changes.iter_mut().filter(|change| change.file == id && change.is_made);
            kept = None;
            for change in made {
                kept = Some(change.folder).filter(|_| !change.is_durable);
                change.is_durable = true;
            }
        }
        self.settle_names();
    }

    fn settle_names(&mut self) {
        let count = self.changes.iter().take_while(|change| change.is_durable).count();
        for change in self.changes.drain(..count) {
            apply(&mut self.names, &change);
        }
    }

    fn settle(&mut self, id: Id) {
        if let Kind::File { bytes, changes } = &mut self.nodes[id].kind {
            // Lost changes and those after them stay in the list, because programs still see them.
            let count = changes.iter().take_while(|change| !change.is_lost).count();
            for change in changes.drain(..count) {
                change.apply(bytes);
            }
            for change in changes.iter_mut().filter(|change| !change.is_lost) {
                change.is_durable = true;
            }
        }
    }

    /// Applies a call.
    pub fn see(&mut self, call: &'a Call) {
        self.now += 1;
        match &call.act {
            Act::Made { file, name } => {
                let id = self.make(*file, Kind::File { bytes: Vec::new(), changes: Vec::new() });
                if let Some(name) = name {
                    self.rename(id, true, vec![(name, Some(id))]);
                }
            }
            Act::MadeLink { file, name, to } => {
                let id = self.make(*file, Kind::Link(to.clone()));
                self.rename(id, true, vec![(name, Some(id))]);
            }
            Act::MadeFolder { file, name } => {
                let id = self.make(*file, Kind::Folder);
                self.rename(id, true, vec![(name, Some(id))]);
            }
            Act::Write { file, bytes, how, .. } => {
                let what = Bytes::Write { from: bytes.start as usize, data: &call.data };
                self.change(*file, what, how.is_durable);
            }
            Act::Empty { file, .. } => self.change(*file, Bytes::Resize(0), false),
            Act::Resize { file, to_bytes, .. } => {
                self.change(*file, Bytes::Resize(*to_bytes as usize), false);
            }
            Act::Flush { file, failed: None } => {
                let id = self.id(*file);
                self.settle(id);
                for change in self.changes.iter_mut().filter(|change| change.folder == id) {
                    change.is_durable = true;
                }
                self.keep_name(id);
            }
            Act::Flush { file, failed: Some(_) } => {
                let id = self.id(*file);
                if let Kind::File { changes, .. } = &mut self.nodes[id].kind {
                    for change in changes.iter_mut().filter(|change| !change.is_durable) {
                        change.is_lost = matches!(change.what, Bytes::Write { .. });
                    }
                }
            }
            Act::FlushAll { device } => {
                for id in 0..self.nodes.len() {
                    if device.is_none_or(|device| device == self.nodes[id].device) {
                        self.settle(id);
                    }
                }
                for change in &mut self.changes {
                    let of = self.nodes[change.folder].device;
                    change.is_durable |= device.is_none_or(|device| device == of);
                }
                self.settle_names();
            }
            // Both names are the same file: the kernel does nothing (`rename(2)`).
            Act::Rename { file, replaced, .. } if *replaced == Some(*file) => {}
            Act::Rename { file, from, to, .. } => {
                let id = self.id(*file);
                self.rename(id, false, vec![(from, None), (to, Some(id))]);
            }
            Act::Exchange { one: (one, of_one), other: (other, of_other) } => {
                let [one, other] = [one, other].map(|file| self.id(*file));
                self.rename(one, false, vec![(of_one, Some(other)), (of_other, Some(one))]);
            }
            Act::Link { file, name } => {
                let id = self.id(*file);
                self.rename(id, true, vec![(name, Some(id))]);
            }
            Act::Erase { file, bytes, .. } => {
                let [from, to] = [bytes.start, bytes.end].map(|byte| byte as usize);
                self.change(*file, Bytes::Erase(from, to), false);
            }
            Act::Shift { file, at_byte, from_bytes, to_bytes } => {
                let [from, to] = [*from_bytes, *to_bytes].map(|size| size as usize);
                self.change(*file, Bytes::Shift { at: *at_byte as usize, from, to }, false);
            }
            Act::Unlink { file, name } => {
                let id = self.id(*file);
                self.rename(id, false, vec![(name, None)]);
            }
            Act::Tell => self.told += 1,
            seen => debug_assert!(!seen.is_change()),
        }
    }

    /// Returns the folder after a power loss.
    pub fn tree(&self, cut: Cut) -> Tree {
        let mut names = self.names.clone();
        for change in
            self.changes.iter().filter(|change| change.is_durable || change.at <= cut.until)
        {
            apply(&mut names, change);
        }
        let mut tree = Tree::default();
        let mut folders = vec![(self.root, PathBuf::new())];
        let mut walked = HashSet::from([self.root]);
        while let Some((folder, path)) = folders.pop() {
            let below = names.range((folder, OsString::new())..);
            for ((_, name), id) in below.take_while(|((of, _), _)| *of == folder) {
                let path = path.join(name);
                let node = &self.nodes[*id];
                let entry = match &node.kind {
                    Kind::Folder if walked.insert(*id) => {
                        folders.push((*id, path.clone()));
                        Entry::Folder
                    }
                    Kind::Folder => continue,
                    Kind::Link(to) => Entry::Link(to.clone()),
                    Kind::File { bytes, changes } => Entry::File(left(bytes, changes, cut)),
                };
                tree.0.insert(path, (entry, node.mode));
            }
        }
        tree
    }
}

fn apply(names: &mut BTreeMap<(Id, OsString), Id>, change: &Renaming) {
    for (place, file) in &change.names {
        match file {
            Some(file) => names.insert(place.clone(), *file),
            None => names.remove(place),
        };
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
            Bytes::Write { from, data } => put(bytes, from, data),
        }
    }
}

fn put(bytes: &mut Vec<u8>, from: usize, data: &[u8]) {
    let end = from + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[from..end].copy_from_slice(data);
}

/// Returns a file's content after a power loss.
fn left(durable: &[u8], changes: &[Change], cut: Cut) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    let open = changes.iter().filter(|change| !change.is_durable).count();
    let mut seen = 0;
    for (number, change) in changes.iter().enumerate() {
        if change.is_durable {
            change.apply(&mut bytes);
            continue;
        }
        seen += 1;
        let Bytes::Write { from, data } = change.what else {
            if change.at <= cut.until {
                change.apply(&mut bytes);
            }
            continue;
        };
        if change.is_lost && cut.bytes != Left::Seen {
            continue;
        }
        // If earlier name changes are lost, only existing blocks can hold data.
        let room =
            if change.at <= cut.until { data.len() } else { durable.len().saturating_sub(from) };
        let data = &data[..data.len().min(room)];
        match cut.bytes {
            Left::None => {}
            Left::Zeros if change.at <= cut.until => {
                let size = bytes.len().max(from + data.len());
                bytes.resize(size, 0);
            }
            Left::Zeros => {}
            Left::First if seen > open / 2 => {}
            Left::First | Left::All | Left::Seen => put(&mut bytes, from, data),
            Left::Mixed(seed) => {
                let mut chance = SplitMix64::seed_from_u64(seed ^ (number as u64) << 40);
                let end = from + data.len();
                let mut at = from;
                while at < end {
                    let next = (at / PAGE_BYTES + 1) * PAGE_BYTES;
                    let next = next.min(end);
                    if chance.next_u64() & 1 == 1 {
                        put(&mut bytes, at, &data[at - from..next - from]);
                    }
                    at = next;
                }
            }
        }
    }
    bytes
}

/// The content of a folder by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<PathBuf, (Entry, Option<u32>)>);

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder,
    /// A symbolic link and its target.
    Link(PathBuf),
    /// A file's content.
    File(Vec<u8>),
}

impl Tree {
    /// Returns a file's content.
    pub fn file(&self, path: &Path) -> Option<&[u8]> {
        match self.0.get(path) {
            Some((Entry::File(bytes), _)) => Some(bytes),
            _ => None,
        }
    }

    /// Creates this content in an empty folder.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn make(&self, folder: &Path) -> io::Result<()> {
        for (path, (entry, mode)) in &self.0 {
            let path = folder.join(path);
            match entry {
                Entry::Folder => fs::create_dir(&path)?,
                Entry::Link(to) => std::os::unix::fs::symlink(to, &path)?,
                Entry::File(bytes) => fs::write(&path, bytes)?,
            }
            if let (Some(mode), Entry::File(_)) = (mode, entry) {
                fs::set_permissions(&path, Permissions::from_mode(*mode))?;
            }
        }
        // Modes are set last, inner entries first, because they may prevent creating entries.
        for (path, (entry, mode)) in self.0.iter().rev() {
            if let (Some(mode), Entry::Folder) = (mode, entry) {
                fs::set_permissions(folder.join(path), Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    fn signature(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for (path, (entry, _)) in &self.0 {
            hash.update(path.as_os_str().as_encoded_bytes());
            match entry {
                Entry::Folder => hash.update(&[0]),
                Entry::Link(to) => hash.update(to.as_os_str().as_encoded_bytes()),
                Entry::File(bytes) => hash.update(&xxh3_64(bytes).to_le_bytes()),
            }
        }
        hash.digest()
    }

    /// Describes the files that differ from `whole`.
    pub fn losses(&self, whole: &Tree) -> Vec<String> {
        let paths: HashSet<&PathBuf> = self.0.keys().chain(whole.0.keys()).collect();
        let mut losses: Vec<String> = paths
            .into_iter()
            .filter(|path| self.0.get(*path).map(|of| &of.0) != whole.0.get(*path).map(|of| &of.0))
            .map(|path| format!("{} {}", path.display(), self.loss(whole, path)))
            .collect();
        losses.sort();
        losses
    }

    fn loss(&self, whole: &Tree, path: &Path) -> &'static str {
        match (self.file(path), whole.file(path)) {
            _ if !self.0.contains_key(path) => "is missing",
            _ if !whole.0.contains_key(path) => "is still there",
            (Some([]), _) => "is empty",
            (Some(bytes), Some(_)) if bytes.iter().all(|byte| *byte == 0) => "has zeros",
            (Some(bytes), Some(all)) if all.starts_with(bytes) => "is cut short",
            _ => "differs",
        }
    }
}

/// A possible state after power loss.
#[derive(Debug)]
pub struct State {
    /// Its number, counted from 1.
    pub number: u64,
    /// The folder's content.
    pub tree: Tree,
    /// The files that differ from what the program saw.
    pub losses: Vec<String>,
    /// The last call before the power loss, and what survived, in words.
    pub moment: String,
    /// How often the program had communicated with the outside, including its exit.
    pub told: u64,
}

/// Produces distinct states, worst first, until there are `most` or `take` ends the loop. The same
/// record always gives the same states and numbers. Returns their count.
pub fn states<E>(
    record: &Record,
    most: u64,
    take: &mut dyn FnMut(State) -> Result<bool, E>,
) -> Result<u64, E> {
    let moments = moments(&record.calls, most);
    let mut met = HashSet::new();
    let mut count = 0;
    let rounds = Cut::FIRST.len() as u64 + MIXED_ROUNDS;
    for round in 0..rounds {
        let mut disk = Disk::before(record);
        let mut calls = record.calls.iter();
        for moment in &moments {
            // Moment 0 precedes all calls.
            while disk.now < *moment {
                let Some(call) = calls.next() else { break };
                disk.see(call);
            }
            let is_end = *moment == record.calls.len() as u64;
            let cut = Cut::of(round, *moment, &disk);
            let tree = disk.tree(cut);
            if !met.insert((tree.signature(), disk.told + u64::from(is_end))) {
                continue;
            }
            count += 1;
            let losses = tree.losses(&disk.tree(Cut::NO));
            let after = match (is_end, moment.checked_sub(1)) {
                (true, _) => "after its end".into(),
                (false, None) => "before its first call".into(),
                (false, Some(last)) => shown(&record.calls[last as usize], &record.path),
            };
            let moment = format!("{after}: {}", cut.shown(*moment));
            let told = disk.told + u64::from(is_end);
            if !take(State { number: count, tree, losses, moment, told })? || count == most {
                return Ok(count);
            }
        }
    }
    Ok(count)
}

/// Returns the moments to try: after each call except a write followed by another, since until a
/// flush the possible states of writes stay the same. Evenly thinned out if there are too many.
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
    // Always includes the end.
    let first = (all.len() - 1) % step;
    all.into_iter().skip(first).step_by(step).collect()
}

/// Describes a call: `after rename to a.json, at 1.2 ms`.
fn shown(call: &Call, root: &Path) -> String {
    let path =
        |name: &Name| name.path.strip_prefix(root).unwrap_or(&name.path).display().to_string();
    let what = match &call.act {
        Act::Made { name: Some(name), .. } => format!("making {}", path(name)),
        Act::Made { name: None, .. } => "making a file without a name".into(),
        Act::MadeLink { name, .. } => format!("making the link {}", path(name)),
        Act::MadeFolder { name, .. } => format!("making the folder {}", path(name)),
        Act::Write { bytes, .. } => format!("a write of {} bytes", bytes.end - bytes.start),
        Act::Empty { .. } => "a truncation to 0 bytes".into(),
        Act::Resize { to_bytes, .. } => format!("a resize to {to_bytes} bytes"),
        Act::Erase { bytes, .. } => format!("zeros over {} bytes", bytes.end - bytes.start),
        Act::Shift { to_bytes, .. } => format!("a shift to {to_bytes} bytes"),
        Act::Flush { .. } | Act::FlushAll { .. } => "a flush".into(),
        Act::Rename { to, .. } => format!("the rename to {}", path(to)),
        Act::Exchange { one, .. } => format!("the exchange of {}", path(&one.1)),
        Act::Link { name, .. } => format!("the link {}", path(name)),
        Act::Unlink { name, .. } => format!("the removal of {}", path(name)),
        Act::Tell => "an answer".into(),
        _ => "a call".into(),
    };
    let at = wrote_result::units::nanoseconds(call.at_ns);
    format!("after {what} at {at}")
}

#[cfg(test)]
mod tests;
