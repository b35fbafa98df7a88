//! Folders and files in memory, with a limited size.

use fuser::Errno;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::time::SystemTime;

/// The root folder's number.
pub const ROOT: u64 = 1;

/// The kind of a node.
#[derive(Debug)]
pub enum Kind {
    /// A folder, with its names and their nodes.
    Folder(BTreeMap<OsString, u64>),
    /// A file, with its bytes.
    File(Content),
}

/// The bytes of a file.
#[derive(Debug)]
pub enum Content {
    /// The written bytes.
    Kept(Vec<u8>),
    /// Only the length is kept; all bytes are read as zeros.
    Forgotten(u64),
}

impl Content {
    fn size_bytes(&self) -> u64 {
        match self {
            Content::Kept(bytes) => bytes.len() as u64,
            Content::Forgotten(size_bytes) => *size_bytes,
        }
    }

    fn resize(&mut self, new_bytes: u64) {
        match self {
            Content::Kept(bytes) => bytes.resize(new_bytes as usize, 0),
            Content::Forgotten(size_bytes) => *size_bytes = new_bytes,
        }
    }

    /// Returns bytes that are within the file.
    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        match self {
            Content::Kept(bytes) => bytes[range.start as usize..range.end as usize].into(),
            Content::Forgotten(_) => vec![0; (range.end - range.start) as usize].into(),
        }
    }

    /// Replaces bytes that are within the file.
    fn write(&mut self, offset: u64, data: &[u8]) {
        if let Content::Kept(bytes) = self {
            bytes[offset as usize..][..data.len()].copy_from_slice(data);
        }
    }
}

/// A folder or a file.
#[derive(Debug)]
pub struct Node {
    /// The kind of node, with its content.
    pub kind: Kind,
    /// The owner and the permissions.
    pub maker: Maker,
    /// The time of the last change.
    pub modified: SystemTime,
    /// The offsets at which the file has been written.
    touched: BTreeSet<u64>,
    /// The number of times that the file is currently open.
    open: u32,
    /// Whether a folder contains a name for the node.
    linked: bool,
}

impl Node {
    /// Returns the size of a file; 0 for a folder.
    pub fn size_bytes(&self) -> u64 {
        match &self.kind {
            Kind::File(content) => content.size_bytes(),
            Kind::Folder(_) => 0,
        }
    }
}

/// The owner and the permissions of a node.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// Permission bits.
    pub mode: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// All folders and files.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    used_bytes: u64,
    capacity_bytes: u64,
    forgets: bool,
    /// Whether an open file that is removed keeps a hidden name until it is closed, as on NFS.
    pub keeps_names: bool,
    /// The folder and the name of each file that was removed while it was open.
    hidden: BTreeMap<u64, (u64, OsString)>,
}

impl Tree {
    /// Creates a tree with an empty root folder, and room for `capacity_bytes` bytes of files. If
    /// the tree `forgets`, files keep only their lengths, and read as zeros.
    pub fn new(capacity_bytes: u64, forgets: bool, root: Maker) -> Tree {
        let root = node(Kind::Folder(BTreeMap::new()), root);
        Tree {
            nodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
            capacity_bytes,
            forgets,
            ..Tree::default()
        }
    }

    /// Returns the content of a new file.
    pub fn empty_file(&self) -> Kind {
        Kind::File(if self.forgets { Content::Forgotten(0) } else { Content::Kept(Vec::new()) })
    }

    /// Returns the capacity for files and the free space, in bytes.
    pub fn room_bytes(&self) -> (u64, u64) {
        (self.capacity_bytes, self.capacity_bytes - self.used_bytes)
    }

    /// Returns a node by its number.
    pub fn get(&self, number: u64) -> Result<&Node, Errno> {
        self.nodes.get(&number).ok_or(Errno::ENOENT)
    }

    /// Returns a node by its number, to be changed.
    pub fn get_mut(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    /// Returns the number of `name` in `folder`.
    pub fn lookup(&self, folder: u64, name: &OsStr) -> Result<u64, Errno> {
        self.names(folder)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Returns the names in `folder`, in order.
    pub fn names(&self, folder: u64) -> Result<&BTreeMap<OsString, u64>, Errno> {
        match &self.get(folder)?.kind {
            Kind::Folder(names) => Ok(names),
            Kind::File(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Creates a node called `name` in `folder`, and returns its number.
    pub fn make(
        &mut self,
        folder: u64,
        name: &OsStr,
        kind: Kind,
        maker: Maker,
    ) -> Result<u64, Errno> {
        let number = self.next;
        let names = self.names_mut(folder)?;
        if names.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        names.insert(name.to_owned(), number);
        self.next += 1;
        self.nodes.insert(number, node(kind, maker));
        Ok(number)
    }

    /// Removes the name of a file. Its bytes are removed once it is closed.
    pub fn unlink(&mut self, folder: u64, name: &OsStr) -> Result<(), Errno> {
        let number = self.lookup(folder, name)?;
        let node = self.get_mut(number)?;
        if matches!(node.kind, Kind::Folder(_)) {
            return Err(Errno::EISDIR);
        }
        let hides = node.open > 0;
        node.linked = false;
        self.names_mut(folder)?.remove(name);
        if self.keeps_names && hides {
            let hidden = OsString::from(format!(".nfs{number:016x}"));
            self.names_mut(folder)?.insert(hidden.clone(), number);
            self.hidden.insert(number, (folder, hidden));
        }
        self.drop_unused(number);
        Ok(())
    }

    /// Removes an empty folder.
    pub fn rmdir(&mut self, folder: u64, name: &OsStr) -> Result<(), Errno> {
        let number = self.lookup(folder, name)?;
        if !self.names(number)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.names_mut(folder)?.remove(name);
        self.nodes.remove(&number);
        Ok(())
    }

    /// Moves a file to another name, and removes the file that had that name. Folders cannot be
    /// moved.
    pub fn rename(
        &mut self,
        (from, name): (u64, &OsStr),
        (to, new_name): (u64, &OsStr),
    ) -> Result<(), Errno> {
        let number = self.lookup(from, name)?;
        if matches!(self.get(number)?.kind, Kind::Folder(_)) {
            return Err(Errno::ENOSYS);
        }
        if self.lookup(to, new_name).is_ok_and(|there| there == number) {
            return Ok(());
        }
        if self.lookup(to, new_name).is_ok() {
            self.unlink(to, new_name)?;
        }
        self.names_mut(to)?.insert(new_name.to_owned(), number);
        self.names_mut(from)?.remove(name);
        Ok(())
    }

    /// Counts an open of a file.
    pub fn open(&mut self, number: u64) -> Result<(), Errno> {
        self.get_mut(number)?.open += 1;
        Ok(())
    }

    /// Counts a close of a file.
    pub fn release(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.open = node.open.saturating_sub(1);
            if node.open == 0
                && let Some((folder, name)) = self.hidden.remove(&number)
                && let Ok(names) = self.names_mut(folder)
            {
                names.remove(&name);
            }
        }
        self.drop_unused(number);
    }

    /// Returns up to `length` bytes of a file from `offset`.
    pub fn read(&self, number: u64, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, Errno> {
        let Kind::File(content) = &self.get(number)?.kind else { return Err(Errno::EISDIR) };
        let size_bytes = content.size_bytes();
        let start = offset.min(size_bytes);
        Ok(content.read(start..size_bytes.min(start.saturating_add(length as u64))))
    }

    /// Writes `data` at `offset`. Fills a gap between the file's end and `offset` with zeros.
    /// Returns whether this is the first write at that offset.
    pub fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<bool, Errno> {
        let end = offset.checked_add(data.len() as u64).ok_or(Errno::EFBIG)?;
        if end > self.get(number)?.size_bytes() {
            self.resize(number, end)?;
        }
        let node = self.get_mut(number)?;
        let Kind::File(content) = &mut node.kind else { return Err(Errno::EISDIR) };
        content.write(offset, data);
        node.modified = SystemTime::now();
        Ok(node.touched.insert(offset))
    }

    /// Sets the size of a file. Fails with ENOSPC if there is not enough room.
    pub fn resize(&mut self, number: u64, size_bytes: u64) -> Result<(), Errno> {
        let (_, free) = self.room_bytes();
        let before = self.get(number)?.size_bytes();
        if size_bytes.saturating_sub(before) > free {
            return Err(Errno::ENOSPC);
        }
        let node = self.get_mut(number)?;
        let Kind::File(content) = &mut node.kind else { return Err(Errno::EISDIR) };
        content.resize(size_bytes);
        node.modified = SystemTime::now();
        self.used_bytes = self.used_bytes - before + size_bytes;
        Ok(())
    }

    fn names_mut(&mut self, folder: u64) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        match &mut self.get_mut(folder)?.kind {
            Kind::Folder(names) => Ok(names),
            Kind::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn drop_unused(&mut self, number: u64) {
        if self.nodes.get(&number).is_some_and(|node| !node.linked && node.open == 0)
            && let Some(node) = self.nodes.remove(&number)
        {
            self.used_bytes -= node.size_bytes();
        }
    }
}

fn node(kind: Kind, maker: Maker) -> Node {
    let (modified, touched) = (SystemTime::now(), BTreeSet::new());
    Node { kind, maker, modified, touched, open: 0, linked: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: Maker = Maker { mode: 0o644, uid: 0, gid: 0 };

    fn tree() -> Tree {
        Tree::new(10_000, false, MAKER)
    }

    fn file(tree: &mut Tree, name: &str) -> u64 {
        let empty = tree.empty_file();
        tree.make(ROOT, OsStr::new(name), empty, MAKER).expect("a new name")
    }

    fn number_of(error: Errno) -> i32 {
        error.into()
    }

    #[test]
    fn written_bytes_are_read_back_with_zeros_in_the_gap() {
        let mut tree = tree();
        let file = file(&mut tree, "a");
        tree.write(file, 3, b"xyz").expect("room");
        assert_eq!(*tree.read(file, 0, 100).expect("a file"), *b"\0\0\0xyz");
        assert_eq!(*tree.read(file, 100, 5).expect("a file"), *b"");
    }

    #[test]
    fn a_tree_that_forgets_has_lengths_and_zeros_and_takes_no_memory() {
        let mut tree = Tree::new(1 << 50, true, MAKER);
        let file = file(&mut tree, "a");
        tree.write(file, 1 << 49, b"xyz").expect("room");
        assert_eq!(tree.get(file).expect("there").size_bytes(), (1 << 49) + 3);
        assert_eq!(*tree.read(file, 1 << 49, 100).expect("a file"), [0; 3]);
        assert_eq!(tree.room_bytes(), (1 << 50, (1 << 49) - 3));
    }

    #[test]
    fn a_write_without_room_is_refused_and_changes_nothing() {
        let mut tree = tree();
        let file = file(&mut tree, "a");
        tree.write(file, 0, &[1; 9_999]).expect("room");
        let refused = tree.write(file, 9_999, &[1; 2]).expect_err("no room");
        assert_eq!(number_of(refused), libc::ENOSPC);
        assert_eq!(tree.room_bytes(), (10_000, 1));
    }

    #[test]
    fn an_open_file_keeps_its_bytes_until_it_is_closed() {
        let mut tree = tree();
        let file = file(&mut tree, "a");
        tree.open(file).expect("there");
        tree.write(file, 0, b"data").expect("room");
        tree.unlink(ROOT, OsStr::new("a")).expect("there");
        assert_eq!(*tree.read(file, 0, 4).expect("still open"), *b"data");
        tree.release(file);
        assert!(tree.read(file, 0, 4).is_err());
        assert_eq!(tree.room_bytes(), (10_000, 10_000));
    }

    #[test]
    fn an_open_file_that_is_removed_may_keep_a_name_until_it_is_closed() {
        let mut tree = tree();
        tree.keeps_names = true;
        let file = file(&mut tree, "a");
        tree.open(file).expect("there");
        tree.unlink(ROOT, OsStr::new("a")).expect("there");
        let names: Vec<_> = tree.names(ROOT).expect("the root").keys().cloned().collect();
        assert_eq!(names, [OsStr::new(&format!(".nfs{file:016x}"))]);
        tree.release(file);
        assert!(tree.names(ROOT).expect("the root").is_empty());
    }

    #[test]
    fn a_folder_that_is_not_empty_stays() {
        let mut tree = tree();
        let name = OsStr::new("folder");
        let folder = tree.make(ROOT, name, Kind::Folder(BTreeMap::new()), MAKER).expect("new");
        let empty = tree.empty_file();
        tree.make(folder, OsStr::new("a"), empty, MAKER).expect("new");
        assert_eq!(number_of(tree.rmdir(ROOT, name).expect_err("not empty")), libc::ENOTEMPTY);
        tree.unlink(folder, OsStr::new("a")).expect("there");
        tree.rmdir(ROOT, name).expect("empty");
        assert!(tree.names(ROOT).expect("the root").is_empty());
    }

    #[test]
    fn a_rename_replaces_the_file_that_had_the_name() {
        let mut tree = tree();
        let (old, new) = (file(&mut tree, "old"), file(&mut tree, "new"));
        tree.write(new, 0, b"12345").expect("room");
        tree.rename((ROOT, OsStr::new("old")), (ROOT, OsStr::new("new"))).expect("files");
        assert_eq!(tree.lookup(ROOT, OsStr::new("new")).expect("there"), old);
        assert!(tree.lookup(ROOT, OsStr::new("old")).is_err());
        assert_eq!(tree.room_bytes(), (10_000, 10_000));
    }
}
