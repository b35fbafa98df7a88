//! Models the files that a program uses, and what each crash would leave of them. A report's levels
//! and the names in the states of `wrote trace crash` are both derived from this model; the states
//! add the bytes.
//!
//! Data (`content`) and names (`names`) are separate, as in file systems: `fdatasync` of a file
//! makes its data durable, and a flush of its folder makes its name durable. The rules follow the
//! behaviour of ext4, XFS and Btrfs in this project's crash tests (`docs/durability.md`): flushing
//! a new file makes its names durable, too, whereas flushing a renamed file does not make its new
//! name durable. POSIX promises less; see [`Promise`].

mod folded;

use crate::call::{Act, Call, FileId, Name, Point, Storage, Stores};
use crate::content::{BEFORE, BEYOND, Content, SIZE, STORES};
use crate::names::{Id, Names, Place};
use folded::Folded;
pub use folded::Mark;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use wrote::Survives;

/// The guarantees that a level relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// POSIX: a name is durable once its folder has been flushed.
    Posix,
    /// The behaviour observed on ext4, XFS and Btrfs.
    Seen,
}

/// The storage assumed for an unknown device.
const DISK: Storage = Storage {
    is_in_memory: false,
    writes_in_place: false,
    flushes_reach_device: true,
    because: None,
    doubt: None,
};
/// The minimum number of removed files that are remembered, because they may still be open or be
/// given a name again.
const REMOVED_MIN: usize = 1 << 12;
/// The maximum number of folders above a file: a path has at most 4 KiB. The limit ends loops,
/// which can appear if threads rename folders concurrently and the calls are seen in the wrong
/// order.
const DEPTH_MAX: usize = 2048;

/// The files of a program, and which of their changes are durable.
#[derive(Debug, Default)]
pub struct Disk {
    storages: HashMap<u64, Storage>,
    /// Boxed, because a map reserves room for up to twice as many entries.
    nodes: HashMap<Id, Box<Node>>,
    ids: HashMap<FileId, Id>,
    /// The entries of all folders.
    pub names: Names,
    /// The changes that gave names to files and that become durable with a flush of the file: the
    /// file, the number of the change, and whether the name is a link.
    made: BTreeSet<(Id, u64, bool)>,
    /// Files with a name whose content a crash may undo.
    dirty: HashSet<Id>,
    /// Files that lost their last name, in order of removal. Some may have been given a name since.
    removed: Vec<Id>,
    folded: Folded,
    /// The number of calls processed.
    now: u64,
    /// When the latest call began and ended.
    began_ns: u64,
    ended_ns: u64,
    next_id: Id,
}

/// A file, folder or link.
#[derive(Debug)]
pub struct Node {
    file: FileId,
    kind: Kind,
    /// The file's content.
    pub content: Content,
    /// The file's names, the latest last.
    names: Vec<Named>,
    /// The path while no name is known, relative to a folder or to the root.
    was: (Option<Id>, PathBuf),
    /// Whether the file has no name, because the last one was removed or it never had one.
    pub is_removed: bool,
    /// Whether earlier calls on the file were forgotten, so that it is only counted, not listed.
    pub is_partial: bool,
    /// The number of the batch of folded files at the time of the folder's last flush.
    flushed: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A folder or symbolic link that no call has referred to.
    Unknown,
    Folder,
    File,
}

/// A name of a file.
#[derive(Clone, Debug)]
pub struct Named {
    place: Place,
    /// How the file got the name.
    pub by: By,
}

/// How a file got a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The file had the name before the program started.
    Found,
    Made,
    Linked,
    Renamed,
}

impl Node {
    /// Returns the folder that holds or held the file, if it is known, and the file's path from
    /// there.
    fn above(&self) -> (Option<Id>, &Path) {
        let named = self
            .names
            .last()
            .map(|Named { place: (folder, name), .. }| (Some(*folder), Path::new(name)));
        named.unwrap_or((self.was.0, &self.was.1))
    }

    /// Returns whether the file has several names.
    pub fn has_other_names(&self) -> bool {
        self.names.len() > 1
    }
}

impl Disk {
    /// Returns a device's storage. If the device is unknown, returns a disk without special
    /// guarantees.
    pub fn storage(&self, device: u64) -> &Storage {
        self.storages.get(&device).unwrap_or(&DISK)
    }

    /// Returns a file; `None` if no call has referred to it.
    pub fn file(&self, file: FileId) -> Option<&Node> {
        Some(self.nodes.get(self.ids.get(&file)?)?)
    }

    /// Returns all files in arbitrary order.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &Node)> {
        self.ids.iter().filter_map(|(file, id)| Some((*file, &**self.nodes.get(id)?)))
    }

    /// Returns a file's paths, each with its [`Named`], the latest last.
    pub fn names_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (PathBuf, &'a Named)> {
        node.names.iter().map(|named| (self.path_at(&named.place), named))
    }

    /// Returns a file's latest path, empty if it never had a name.
    pub fn path(&self, file: FileId) -> PathBuf {
        self.ids.get(&file).map_or(PathBuf::new(), |id| self.path_of(*id))
    }

    fn path_of(&self, id: Id) -> PathBuf {
        let (mut parts, mut next) = (Vec::new(), Some(id));
        while let Some(node) = next.and_then(|id| self.nodes.get(&id))
            && parts.len() < DEPTH_MAX
        {
            let above = node.above();
            parts.push(above.1);
            next = above.0;
        }
        parts.into_iter().rev().collect()
    }

    fn path_at(&self, (folder, name): &Place) -> PathBuf {
        self.path_of(*folder).join(&**name)
    }

    /// Returns whether a file has no name other than `name`.
    pub fn is_last_name(&self, file: FileId, name: &Name) -> bool {
        self.file(file).is_none_or(|node| self.names_of(node).all(|(path, _)| path == name.path))
    }

    /// Returns whether one of a file's names is a link.
    pub fn is_linked(&self, file: FileId) -> bool {
        self.file(file).is_some_and(|node| node.names.iter().any(|named| named.by == By::Linked))
    }

    /// Returns the files whose content or names a crash may revert.
    pub fn unsafe_files(&self) -> impl Iterator<Item = FileId> {
        let ids: BTreeSet<Id> = self.names.open_files().chain(self.dirty.iter().copied()).collect();
        ids.into_iter().filter_map(|id| self.nodes.get(&id)).map(|node| node.file)
    }

    /// Returns the files whose names a flush of this folder makes durable.
    pub fn unflushed_names(&self, folder: FileId) -> impl Iterator<Item = FileId> {
        let named = self.id(folder).into_iter().flat_map(|id| self.names.unflushed(id));
        named.filter_map(|id| Some(self.nodes.get(&id)?.file))
    }

    /// Returns the removed names of complete files that a crash may restore, each with the point of
    /// its removal. Names in a removed folder are left out, because they return only with the
    /// folder.
    pub fn removals(&self) -> impl Iterator<Item = (PathBuf, Point)> {
        let is_in_folder =
            |place: &Place| self.nodes.get(&place.0).is_some_and(|of| !of.is_removed);
        let removals = self.names.removals().filter(move |(place, _)| is_in_folder(place));
        removals.map(|(place, at)| (self.path_at(place), at))
    }

    /// Returns the worst event that a file's bytes and all of its names survive.
    pub fn survives(&self, file: FileId, promise: Promise) -> Survives {
        let Some(node) = self.file(file) else { return Survives::PowerLoss };
        let names = node.names.iter().map(|named| self.survives_as(node, named, promise));
        names.min().unwrap_or(Survives::ProcessCrash)
    }

    /// Returns whether a power loss leaves a file intact under at least one of its names.
    pub fn has_durable(&self, file: FileId) -> bool {
        let Some(node) = self.file(file) else { return true };
        let most = self.most(file.device);
        let mut levels =
            node.names.iter().map(|named| self.survives_as(node, named, Promise::Seen));
        most > Survives::ProcessCrash && levels.any(|level| level == most)
    }

    /// Returns why the bytes of a file do not survive a power loss under `named`.
    pub fn because(&self, node: &Node, named: &Named) -> String {
        let (storage, content) = (self.storage(node.file.device), &node.content);
        let of_place = storage.because.as_deref();
        let because = match () {
            () if storage.is_in_memory => of_place.unwrap_or("memory"),
            () if content.has_lost() => "its flush failed",
            () if content.dirty_bytes() > 0 => "not flushed",
            () if content.is_cut() => "cut, not flushed",
            () if content.is_dirty() => "size not flushed",
            () if self.is_durable(named, Promise::Seen) => of_place.unwrap_or("not flushed"),
            () => "name not flushed",
        };
        because.to_owned()
    }

    /// Returns the worst event that a file's bytes survive under `named`.
    pub fn survives_as(&self, node: &Node, named: &Named, promise: Promise) -> Survives {
        let storage = self.storage(node.file.device);
        let bytes = match &node.content {
            content if !content.is_dirty() => Survives::PowerLoss,
            content if storage.writes_in_place && content.is_in_place() => Survives::OsCrash,
            _ => Survives::ProcessCrash,
        };
        let name = match self.is_durable(named, promise) {
            true => Survives::PowerLoss,
            false => Survives::ProcessCrash,
        };
        bytes.min(name).min(self.most(node.file.device))
    }

    /// Returns the worst event that flushed bytes survive on a device.
    pub fn most(&self, device: u64) -> Survives {
        match self.storage(device) {
            Storage { is_in_memory: true, .. } => Survives::ProcessCrash,
            Storage { flushes_reach_device: false, .. } => Survives::OsCrash,
            _ => Survives::PowerLoss,
        }
    }

    /// Returns whether a crash may undo the rename or link that created this name.
    pub fn may_lose(&self, named: &Named) -> bool {
        matches!(named.by, By::Renamed | By::Linked)
            && !self.is_settled(&named.place, Promise::Seen)
    }

    /// Returns whether a name and the names of all folders above it survive any crash.
    pub fn is_durable(&self, named: &Named, promise: Promise) -> bool {
        self.places_to(&named.place).all(|place| self.is_settled(place, promise))
    }

    /// Returns the folders that must be flushed according to POSIX to make a name durable, the
    /// nearest first.
    pub fn unflushed_folders(&self, named: &Named) -> Vec<PathBuf> {
        let unflushed = |place: &&Place| !self.is_settled(place, Promise::Posix);
        let places = self.places_to(&named.place).filter(unflushed);
        places.map(|place| self.path_of(place.0)).collect()
    }

    /// Returns a name and the known names of all folders above it.
    fn places_to<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Place> {
        let above = |id: &Id| self.nodes.get(id)?.above().0;
        let folders = std::iter::successors(Some(place.0), above).take(DEPTH_MAX);
        let named = folders.filter_map(|id| self.nodes.get(&id)?.names.last());
        std::iter::once(place).chain(named.map(|named| &named.place))
    }

    /// Returns a file's latest name; `None` if it has none.
    pub fn latest_name(&self, file: FileId) -> Option<Name> {
        let place = &self.file(file)?.names.last()?.place;
        Some(Name { folder: self.nodes.get(&place.0)?.file, path: self.path_at(place) })
    }

    /// Returns the file that currently has a name; `None` if no known file does.
    pub fn named(&self, name: &Name) -> Option<FileId> {
        let id = self.names.now(&self.known_place(name)?)?;
        self.nodes.get(&id).map(|node| node.file)
    }

    /// Returns whether a crash may restore a removed name.
    pub fn may_return(&self, name: &Name) -> bool {
        self.known_place(name).is_some_and(|place| self.names.may_return(&place))
    }

    /// Returns whether a crash may leave content under a name that a call is about to replace.
    pub fn may_have_content(&self, name: &Name) -> bool {
        let place = self.known_place(name).filter(|place| self.names.knows(place));
        let Some(place) = place else { return true };
        let node = self.names.durable(&place).map(|id| self.nodes.get(&id));
        node.is_some_and(|node| {
            node.is_none_or(|node| node.kind == Kind::Unknown || node.content.was_durable())
        })
    }

    fn known_place(&self, name: &Name) -> Option<Place> {
        Some((*self.ids.get(&name.folder)?, name.path.file_name()?.into()))
    }

    fn is_settled(&self, place: &Place, promise: Promise) -> bool {
        match promise {
            Promise::Seen => self.names.is_durable(place),
            Promise::Posix => self.names.is_flushed(place),
        }
    }

    /// Returns the number that identifies a file in the model; `None` if the file is unknown.
    pub fn id(&self, file: FileId) -> Option<Id> {
        self.ids.get(&file).copied()
    }

    /// Returns the device of a file; `None` if the file is unknown.
    pub fn device(&self, id: Id) -> Option<u64> {
        self.nodes.get(&id).map(|node| node.file.device)
    }

    /// Processes a call.
    pub fn see(&mut self, call: &Call) {
        self.now += 1;
        let (began_ns, ended_ns) = (call.at_ns, call.ended_ns());
        (self.began_ns, self.ended_ns) = (began_ns, ended_ns);
        self.names.after.clone_from(&call.after);
        match &call.act {
            Act::Storage { device, storage } => {
                self.storages.insert(*device, storage.clone());
            }
            Act::Found { file, name, size_bytes } => {
                if !self.ids.contains_key(file) {
                    self.found(*file, name.as_ref(), *size_bytes);
                }
            }
            Act::Made { file, name } => self.make(*file, name.as_ref(), Kind::File),
            Act::MadeLink { file, name, .. } => self.make(*file, Some(name), Kind::File),
            Act::MadeFolder { file, name } => self.make(*file, Some(name), Kind::Folder),
            Act::Write { file, bytes, how, is_zeros, .. } => {
                self.alter(*file, |content| {
                    content.write(bytes.clone(), *how, *is_zeros, began_ns);
                    if !how.is_durable {
                        content.note(ended_ns, bytes.clone());
                    }
                });
                if how.is_durable {
                    let id = self.known(*file);
                    self.keep_names(id, true);
                }
            }
            Act::Empty { file, .. } => self.resize(*file, |content| content.resize(0)),
            Act::Resize { file, to_bytes, .. } => {
                self.resize(*file, |content| content.resize(*to_bytes));
            }
            Act::Erase { file, bytes, .. } => {
                self.resize(*file, |content| content.erase(bytes.clone()));
            }
            Act::Shift { file, at_byte, from_bytes, to_bytes } => {
                self.resize(*file, |content| content.shift(*at_byte, *from_bytes, *to_bytes));
            }
            Act::Map { file, stores } => self.alter(*file, |content| {
                content.is_mapped = true;
                match stores {
                    Stores::Seen => {}
                    Stores::Beyond => content.unseen = Some(BEYOND),
                    Stores::Unseen => content.unseen = Some(STORES),
                }
            }),
            Act::Before { file } => self.alter(*file, |content| content.unseen = Some(BEFORE)),
            Act::Cover { file } => self.alter(*file, |content| content.unseen = None),
            // For these bytes the kernel calls the same function as for a durable write.
            Act::FlushRange { file, bytes } => {
                let id = self.known(*file);
                self.alter(*file, |content| {
                    content.flush_range(bytes, began_ns);
                    content.flush_size(began_ns);
                });
                self.keep_names(id, true);
            }
            Act::Flush { file, failed: None, is_data } => {
                let id = self.known(*file);
                self.alter(*file, |content| {
                    content.precede(&call.after);
                    content.flush(began_ns);
                });
                self.node(id).flushed = self.folded.batch_before(began_ns);
                self.names.flush(id, began_ns);
                self.keep_names(id, *is_data);
            }
            Act::Flush { file, failed: Some(_), .. } => self.alter(*file, Content::lose),
            Act::FlushAll { device } => self.flush_all(*device),
            // If both names refer to the same file, the kernel does nothing (`rename(2)`).
            Act::Rename { file, replaced, .. } if *replaced == Some(*file) => {}
            Act::Rename { file, from, to, replaced } => {
                let id = self.learn(*file, from);
                if let Some(replaced) = replaced {
                    self.learn(*replaced, to);
                }
                self.change(vec![(from, None), (to, Some(id))], By::Renamed, None);
                self.move_folders(id, &from.path);
            }
            Act::Exchange { one: (one, of_one), other: (other, of_other) } => {
                let [one, other] = [self.learn(*one, of_one), self.learn(*other, of_other)];
                let names = vec![(of_one, Some(other)), (of_other, Some(one))];
                self.change(names, By::Renamed, None);
                self.move_folders(one, &of_one.path);
                self.move_folders(other, &of_other.path);
            }
            Act::Link { file, name } => {
                let id = self.known(*file);
                self.change(vec![(name, Some(id))], By::Linked, None);
            }
            Act::Unlink { file, name } => {
                let id = self.learn(*file, name);
                // While a file is still being written, a program must expect it in any state after
                // a crash. Its return is therefore not reported.
                let is_whole = !self.node(id).content.is_dirty();
                self.change(vec![(name, None)], By::Found, is_whole.then(|| call.point()));
            }
            Act::Tell => {}
        }
    }

    /// Adds a file that existed before its first call. Its name is durable.
    pub fn found(&mut self, file: FileId, name: Option<&Name>, size_bytes: u64) -> Id {
        let rest = self.folded.take(file);
        if let Some(rest) = rest {
            return self.restore(file, rest, name, size_bytes);
        }
        let id = self.known(file);
        let node = self.node(id);
        node.kind = Kind::File;
        node.content = Content::found(size_bytes);
        node.is_removed = name.is_none();
        name.into_iter().for_each(|name| self.find(id, name));
        id
    }

    /// Adds a folder that existed before its first call. Without a name, `path` leads to a folder
    /// above all known names.
    pub fn found_folder(&mut self, file: FileId, name: Option<&Name>, path: &Path) -> Id {
        let id = self.known(file);
        let node = self.node(id);
        node.kind = Kind::Folder;
        node.was = (None, path.to_owned());
        name.into_iter().for_each(|name| self.find(id, name));
        id
    }

    /// Adds a symbolic link that existed before its first call.
    pub fn found_link(&mut self, name: &Name) -> Id {
        let id = self.node_of(name.folder, Kind::File);
        self.find(id, name);
        id
    }

    fn find(&mut self, id: Id, name: &Name) {
        let place = self.place(name);
        self.names.find(place.clone(), id);
        self.node(id).names.push(Named { place, by: By::Found });
    }

    /// Returns the file that a call renames or removes, adding the file and its old name if
    /// unknown.
    fn learn(&mut self, file: FileId, name: &Name) -> Id {
        if let Some(rest) = self.folded.take(file) {
            return self.restore(file, rest, Some(name), 0);
        }
        let place = self.place(name);
        let there = self.names.now(&place);
        match (self.ids.get(&file), there) {
            // A symbolic link is known by its name alone.
            (None, Some(there)) => {
                self.ids.insert(file, there);
                there
            }
            (_, Some(_)) => self.known(file),
            (_, None) => {
                let id = self.known(file);
                if !self.names.knows(&place) {
                    self.find(id, name);
                }
                id
            }
        }
    }

    fn node(&mut self, id: Id) -> &mut Node {
        self.nodes.get_mut(&id).expect("a known file")
    }

    fn node_of(&mut self, file: FileId, kind: Kind) -> Id {
        self.next_id += 1;
        let node = Node {
            file,
            kind,
            content: Content::default(),
            names: Vec::new(),
            was: (None, PathBuf::new()),
            is_removed: false,
            is_partial: false,
            flushed: 0,
        };
        self.nodes.insert(self.next_id, Box::new(node));
        self.next_id
    }

    /// Adds a new file. An earlier file with this inode no longer exists.
    fn make(&mut self, file: FileId, name: Option<&Name>, kind: Kind) {
        self.folded.take(file);
        let id = self.node_of(file, kind);
        self.node(id).is_removed = true;
        self.ids.insert(file, id);
        self.change(name.into_iter().map(|name| (name, Some(id))).collect(), By::Made, None);
    }

    fn known(&mut self, file: FileId) -> Id {
        if let Some(id) = self.ids.get(&file) {
            return *id;
        }
        if let Some(rest) = self.folded.take(file) {
            return self.restore(file, rest, None, 0);
        }
        let id = self.node_of(file, Kind::Unknown);
        self.ids.insert(file, id);
        id
    }

    fn place(&mut self, name: &Name) -> Place {
        let id = self.known(name.folder);
        let folder = self.node(id);
        if folder.kind == Kind::Unknown {
            folder.kind = Kind::Folder;
            if folder.names.is_empty() {
                folder.was.1 = name.path.parent().unwrap_or(Path::new("/")).to_owned();
            }
        }
        (id, name.path.file_name().unwrap_or_default().into())
    }

    /// Changes a file's content. An unknown file must have been removed and forgotten, because all
    /// other files have been reported or created before.
    fn alter(&mut self, file: FileId, how: impl FnOnce(&mut Content)) {
        let id = match self.ids.get(&file) {
            Some(id) => *id,
            None => {
                let id = self.known(file);
                let node = self.node(id);
                node.is_removed = node.names.is_empty();
                id
            }
        };
        let node = self.node(id);
        how(&mut node.content);
        match node.content.is_dirty() && !node.is_removed {
            true => self.dirty.insert(id),
            false => self.dirty.remove(&id),
        };
    }

    /// Changes a file's content in a way that also changes its size.
    fn resize(&mut self, file: FileId, how: impl FnOnce(&mut Content)) {
        let ended_ns = self.ended_ns;
        self.alter(file, |content| {
            how(content);
            content.note(ended_ns, SIZE);
        });
    }

    /// Adds names to files, or removes names.
    fn change(&mut self, names: Vec<(&Name, Option<Id>)>, by: By, removal: Option<Point>) {
        let names: Vec<(Place, Option<Id>)> =
            names.into_iter().map(|(name, file)| (self.place(name), file)).collect();
        let holder = |(place, _): &(Place, _)| Some((self.names.now(place)?, place.clone()));
        let taken: Vec<(Id, Place)> = names.iter().filter_map(holder).collect();
        for (id, place) in &taken {
            if let Some(node) = self.nodes.get_mut(id) {
                node.names.retain(|named| named.place != *place);
            }
        }
        for (place, file) in &names {
            let Some(id) = *file else { continue };
            let (place, now) = (place.clone(), self.now);
            if matches!(by, By::Made | By::Linked) {
                self.made.insert((id, now, by == By::Linked));
            }
            let node = self.node(id);
            // Most files have one name, and there may be many files.
            node.names.reserve_exact(1);
            node.names.push(Named { place, by });
            node.is_removed = false;
            if node.content.is_dirty() {
                self.dirty.insert(id);
            }
        }
        taken.into_iter().for_each(|(id, place)| self.leave(id, place));
        self.names.change(self.now, self.ended_ns, &names, removal);
    }

    /// Handles a file that has lost a name, which may have been its last one.
    fn leave(&mut self, id: Id, (folder, name): Place) {
        let node = self.nodes.get_mut(&id).filter(|node| node.names.is_empty());
        if let Some(node) = node {
            node.was = (Some(folder), Path::new(&name).to_owned());
            node.is_removed = true;
            self.dirty.remove(&id);
            self.removed.push(id);
        }
    }

    /// Attaches folders that are known only by their paths to a renamed folder above them.
    fn move_folders(&mut self, moved: Id, from: &Path) {
        if self.node(moved).kind == Kind::File {
            return;
        }
        for (id, node) in &mut self.nodes {
            if let (None, path) = &node.was
                && *id != moved
                && node.names.is_empty()
                && let Ok(below) = path.strip_prefix(from)
            {
                node.was = (Some(moved), below.to_owned());
            }
        }
    }

    /// Handles the flush of a file: makes durable the names under which the file was created or
    /// linked, and the new folders above them. On ext4, `fdatasync` does nothing if only a link is
    /// unflushed.
    fn keep_names(&mut self, file: Id, is_data: bool) {
        let mut kept = vec![file];
        while let Some(id) = kept.pop() {
            for at in self.take_made(id, is_data, self.began_ns) {
                kept.extend(self.names.keep(at));
            }
        }
    }

    fn take_made(&mut self, file: Id, is_data: bool, began_ns: u64) -> Vec<u64> {
        let of = (file, 0, false)..=(file, u64::MAX, true);
        let made = self.made.range(of).filter(|(_, at, is_link)| {
            !(is_data && *is_link) && self.names.has_ended(*at, began_ns)
        });
        let made: Vec<_> = made.copied().collect();
        for change in &made {
            self.made.remove(change);
        }
        made.into_iter().map(|change| change.1).collect()
    }

    fn flush_all(&mut self, device: Option<u64>) {
        let is_meant = |file: FileId| device.is_none_or(|device| device == file.device);
        for node in self.nodes.values_mut().filter(|node| is_meant(node.file)) {
            node.content.flush(self.began_ns);
        }
        if self.folded.batch_before(self.began_ns) == self.folded.batch {
            self.folded.flush_all(|of| device.is_none_or(|device| device == of));
        }
        let nodes = &self.nodes;
        self.dirty.retain(|id| nodes.get(id).is_some_and(|node| node.content.is_dirty()));
        self.names.flush_all(self.began_ns, |folder| {
            nodes.get(&folder).is_some_and(|node| is_meant(node.file))
        });
    }

    /// If much data has accumulated, forgets what a report no longer needs: changes of names, and
    /// the files that were removed first. Returns the forgotten files.
    pub fn forget(&mut self) -> Vec<FileId> {
        if self.names.forget() {
            self.made.retain(|(_, at, _)| self.names.is_open(*at));
        }
        if self.removed.len() < 2 * REMOVED_MIN {
            return Vec::new();
        }
        let oldest: Vec<Id> = self.removed.drain(..REMOVED_MIN).collect();
        let mut gone = Vec::new();
        for id in oldest {
            let Some(node) = self.nodes.get(&id).filter(|node| node.is_removed) else { continue };
            if self.ids.get(&node.file) == Some(&id) {
                self.ids.remove(&node.file);
                gone.push(node.file);
            }
            self.nodes.remove(&id);
        }
        self.made.retain(|(id, ..)| self.nodes.contains_key(id));
        gone
    }
}

#[cfg(test)]
mod tests;
