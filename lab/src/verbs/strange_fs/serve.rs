//! Answers the kernel's FUSE requests (`linux/fuse.h`) from the tree, with faults.

use crate::verbs::strange_fs::faults::{Faults, Refuse};
use crate::verbs::strange_fs::pace::Pace;
use crate::verbs::strange_fs::recording::Recording;
use crate::verbs::strange_fs::tree::{Kind, Maker, Node, Tree};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long the kernel may cache attributes. It is zero, so that the kernel always asks.
const TTL: Duration = Duration::ZERO;
const BLOCK_BYTES: u32 = 4096;
const GENERATION: Generation = Generation(0);

/// The mounted file system.
pub struct StrangeFs {
    tree: Mutex<Tree>,
    faults: Faults,
    pace: Mutex<Pace>,
    recording: Option<Mutex<Recording>>,
}

impl StrangeFs {
    /// Creates a file system that serves `tree` with these `faults` at this `pace`, and records its
    /// writes in `recording`.
    pub fn new(tree: Tree, faults: Faults, pace: Pace, recording: Option<Recording>) -> StrangeFs {
        let (tree, pace, recording) =
            (Mutex::new(tree), Mutex::new(pace), recording.map(Mutex::new));
        StrangeFs { tree, faults, pace, recording }
    }

    fn record(&self, note: impl FnOnce(&mut Recording) -> io::Result<()>) -> Result<(), Errno> {
        let Some(recording) = &self.recording else { return Ok(()) };
        note(&mut recording.lock().unwrap_or_else(PoisonError::into_inner)).map_err(|_| Errno::EIO)
    }

    /// Waits until a request is due. A single thread answers all requests, so later requests wait,
    /// too.
    fn wait(&self, due: impl FnOnce(&mut Pace, Instant) -> Instant) {
        let now = Instant::now();
        let due = due(&mut self.pace(), now);
        std::thread::sleep(due.saturating_duration_since(now));
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_flags(&self) -> FopenFlags {
        match self.faults.bypasses_page_cache() {
            true => FopenFlags::FOPEN_DIRECT_IO,
            false => FopenFlags::empty(),
        }
    }

    fn make(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        (mode, umask): (u32, u32),
        kind: fn(&Tree) -> Kind,
    ) -> Result<FileAttr, Errno> {
        let mode = (mode & !umask & 0o7777) as u16;
        let maker = Maker { mode, uid: request.uid(), gid: request.gid() };
        let mut tree = self.tree();
        let kind = kind(&tree);
        let number = tree.make(parent.0, name, kind, maker)?;
        Ok(attributes(number, tree.get(number)?))
    }

    fn open_file(&self, number: u64, flags: i32) -> Result<(), Errno> {
        self.faults.refuse(Refuse::Open, flags)?;
        self.tree().open(number)
    }

    fn take(&self, number: u64, offset: u64, data: &[u8], flags: i32) -> Result<u32, Errno> {
        self.faults.refuse(Refuse::Transfer, flags)?;
        let taken = self.faults.taken(data.len());
        let is_first = self.tree().write(number, offset, &data[..taken])?;
        self.record(|recording| recording.write(offset, &data[..taken]))?;
        let taken_bytes = taken as u64;
        self.wait(|pace, now| match is_first {
            true => pace.write_first(taken_bytes, now),
            false => pace.write(taken_bytes, now),
        });
        self.pace().answered(Instant::now());
        Ok(taken as u32)
    }
}

fn attributes(number: u64, node: &Node) -> FileAttr {
    let size = node.size_bytes();
    let kind = match node.kind {
        Kind::Folder(_) => FileType::Directory,
        Kind::File(_) => FileType::RegularFile,
    };
    FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(512),
        atime: node.modified,
        mtime: node.modified,
        ctime: node.modified,
        crtime: node.modified,
        kind,
        perm: node.maker.mode,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid: node.maker.uid,
        gid: node.maker.gid,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

fn finish(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for StrangeFs {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let tree = self.tree();
        let found = tree.lookup(parent.0, name).and_then(|number| Ok((number, tree.get(number)?)));
        match found {
            Ok((number, node)) => reply.entry(&TTL, &attributes(number, node), GENERATION),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().get(ino.0) {
            Ok(node) => reply.attr(&TTL, &attributes(ino.0, node)),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree();
        let changed = size.map_or(Ok(()), |size| tree.resize(ino.0, size)).and_then(|()| {
            let node = tree.get_mut(ino.0)?;
            let maker = &mut node.maker;
            maker.mode = mode.map_or(maker.mode, |mode| (mode & 0o7777) as u16);
            maker.uid = uid.unwrap_or(maker.uid);
            maker.gid = gid.unwrap_or(maker.gid);
            Ok(attributes(ino.0, node))
        });
        match changed {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let folder = |_: &Tree| Kind::Folder(BTreeMap::new());
        match self.make(request, (parent, name), (mode, umask), folder) {
            Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, (parent, name), (mode, umask), Tree::empty_file);
        // The file is created before its open is refused, as with open(2) on other file systems.
        let opened = made.and_then(|made| self.open_file(made.ino.0, flags).map(|()| made));
        match opened {
            Ok(made) => {
                reply.created(&TTL, &made, GENERATION, FileHandle(0), self.open_flags());
            }
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(ino.0, flags.0) {
            Ok(()) => reply.opened(FileHandle(0), self.open_flags()),
            Err(error) => reply.error(error),
        }
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.tree().release(ino.0);
        reply.ok();
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.wait(|pace, now| pace.read(size.into(), now));
        let tree = self.tree();
        let bytes = self
            .faults
            .refuse(Refuse::Transfer, flags.0)
            .and_then(|()| tree.read(ino.0, offset, size as usize));
        match bytes {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.take(ino.0, offset, data, flags.0) {
            Ok(taken) => reply.written(taken),
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        finish(reply, self.faults.flush().and_then(|()| self.record(Recording::flush)));
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let mut tree = self.tree();
        let end = offset.saturating_add(length);
        let grown = tree.get(ino.0).map(|node| node.size_bytes() < end && mode == 0);
        let result = grown.and_then(|grown| if grown { tree.resize(ino.0, end) } else { Ok(()) });
        finish(reply, result);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.tree().unlink(parent.0, name));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.tree().rmdir(parent.0, name));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        finish(reply, self.tree().rename((parent.0, name), (new_parent.0, new_name)));
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let tree = self.tree();
        let names = match tree.names(ino.0) {
            Ok(names) => names,
            Err(error) => return reply.error(error),
        };
        // The offset of an entry is the entry's number, after which the next call continues.
        // Therefore, an entry that is removed between two calls hides no other entry.
        let mut entries: Vec<_> = names.iter().map(|(name, number)| (*number, name)).collect();
        entries.sort_unstable();
        for (number, name) in entries.into_iter().filter(|(number, _)| *number > offset) {
            let Ok(node) = tree.get(number) else { continue };
            if reply.add(INodeNo(number), number, attributes(number, node).kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let (capacity, free) = self.tree().room_bytes();
        let block = u64::from(BLOCK_BYTES);
        let (blocks, free) = (capacity / block, free / block);
        reply.statfs(blocks, free, free, 1 << 20, 1 << 20, BLOCK_BYTES, 255, BLOCK_BYTES);
    }
}
