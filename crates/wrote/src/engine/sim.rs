//! A simulated disk that truncates transfers, fails and reorders on request, and loses power.
//!
//! Files are in memory, in two layers: stable bytes, and bytes written since the last flush. A
//! power loss keeps or loses each unflushed 512-byte sector independently, like a drive's volatile
//! cache: that reorders writes, and tears writes longer than a sector. A failed flush through the
//! page cache loses sectors, too, and a later successful flush does not restore them, because Linux
//! has marked their pages clean (`fsync(2)`; Rebello et al.: Can Applications Recover from fsync
//! Failures?, 2020). Names are separate from files, as in a real file system: a file's name is
//! stable once its folder, not the file, has been synced. A power loss keeps a prefix of the name
//! changes since then, as a journal does. All randomness comes from the seed, so a failed run can
//! be repeated.

mod file;
mod names;

use super::backend::{Backend, Files, Queue};
use super::names::{Folder, Found, Located, NameChange};
use super::op::{OpKind, Reply, Request};
use super::open_file::FileAccess;
use super::slots::Requests;
use super::{Fallback, FileOptions};
use file::{SECTOR_BYTES, SimFile};
use names::Names;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that passes between two readings of the clock. It is long enough for records to become
/// overdue after a few readings.
const LOOK: Duration = Duration::from_millis(250);

/// The fault of a single operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The transfer moves at most this number of bytes; other operations are not affected. A read
    /// before the end of the file moves at least one, because 0 bytes would mean the end
    /// (`read(2)`).
    Short(u64),
    /// The operation fails with this error number and changes nothing.
    Once(i32),
    /// This and every later operation fail with this error number.
    Forever(i32),
    /// The power fails before the operation: this and every later operation fail with `EIO`, and
    /// each unflushed sector is kept or lost at random.
    PowerLoss,
    /// A flush reports success without making anything stable, like a drive that ignores it; other
    /// operations are not affected.
    Lie,
    /// A read returns data with one flipped bit, which also stays flipped on the disk; other
    /// operations are not affected.
    Rot,
    /// A read returns bytes from elsewhere in the file; other operations are not affected.
    Misdirected,
}

/// A handle of a simulated disk. Clones share the disk, which outlives all its engines.
#[derive(Clone)]
pub struct Sim(Arc<Mutex<SimDisk>>);

impl Sim {
    /// Creates an empty disk. The same seed, faults and operations always give the same results.
    pub fn new(seed: u64) -> Sim {
        let (chance, capacity_bytes) = (Chance(seed), u64::MAX);
        Sim(Arc::new(Mutex::new(SimDisk { chance, capacity_bytes, ..SimDisk::default() })))
    }

    /// Sets the fault of operation number `operation`. The first operation has the number 0, and
    /// every attempt is counted.
    pub fn fault(&self, operation: u64, fault: Fault) {
        self.locked().faults.insert(operation, fault);
    }

    /// Limits the sum of the files' lengths. An operation that would exceed it moves what still
    /// fits, and fails with `ENOSPC`.
    pub fn set_capacity(&self, bytes: u64) {
        self.locked().capacity_bytes = bytes;
    }

    /// Makes every later open with `O_DIRECT` fail with `EINVAL`.
    pub fn refuse_direct_at_open(&self) {
        self.locked().refuse_direct_at_open = true;
    }

    /// Accepts `O_DIRECT` when a file is opened, and makes its first direct transfer fail with
    /// `EINVAL`.
    pub fn refuse_direct_at_transfer(&self) {
        self.locked().refuse_direct_at_transfer = true;
    }

    /// Returns the number of operations so far, in which every attempt is counted.
    pub fn operations(&self) -> u64 {
        self.locked().operations
    }

    /// Makes everything stable: names, and even bytes that a failed flush lost. The call is not
    /// counted as an operation, because it is meant for setting up a test.
    pub fn sync(&self) {
        let mut disk = self.locked();
        for file in &mut disk.files {
            file.lost.clear();
            file.flush();
        }
        disk.names.sync();
    }

    /// Cuts the power, if it is still on, and turns it on again. Only stable bytes and names are
    /// left, and no faults. Engines lose their open files.
    pub fn restart(&self) {
        let mut disk = self.locked();
        disk.lose_power();
        disk.off = false;
        disk.forever = None;
        disk.faults.clear();
        disk.boot += 1;
        for file in &mut disk.files {
            file.cached.clone_from(&file.stable);
            file.lost.clear();
        }
        disk.names.restart();
    }

    /// Returns a file's content as the running system sees it.
    pub fn contents(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let path = path.as_ref();
        let disk = self.locked();
        disk.names.file(path).map(|file| disk.files[file].cached.clone())
    }

    /// Returns the names as the running system sees them, sorted.
    pub fn names(&self) -> Vec<PathBuf> {
        self.locked().names.all()
    }

    /// Cuts the power, if it is still on, and returns the content that the file then has. `None` if
    /// the file's name was never synced and has been lost.
    pub fn after_power_loss(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let path = path.as_ref();
        let mut disk = self.locked();
        disk.lose_power();
        disk.names.stable_file(path).map(|file| disk.files[file].stable.clone())
    }

    pub(super) fn backend(&self) -> Backend {
        let mut disk = self.locked();
        disk.engines += 1;
        let view = View { sim: self.clone(), boot: disk.boot, engine: disk.engines };
        let queue = Box::new(SimQueue { view: view.clone(), pending: Vec::new() });
        Backend { queue, files: Box::new(SimFiles(view)) }
    }

    fn locked(&self) -> MutexGuard<'_, SimDisk> {
        // A test that failed while it held the lock has already reported its failure.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sequence of pseudorandom numbers from a seed: splitmix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014), which is good enough for a disk.
#[derive(Default)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The permission to perform an operation, with a fault that the operation does not report.
struct Permit {
    bytes_max: u64,
    hidden: Option<Fault>,
}

#[derive(Default)]
struct SimDisk {
    chance: Chance,
    /// The files by number. A file without a name is kept, because an engine may have it open.
    files: Vec<SimFile>,
    names: Names,
    faults: HashMap<u64, Fault>,
    forever: Option<Errno>,
    operations: u64,
    capacity_bytes: u64,
    refuse_direct_at_open: bool,
    refuse_direct_at_transfer: bool,
    off: bool,
    /// The number of times that the disk has been turned on.
    boot: u64,
    /// The number of the disk's engines, and their open files by engine and slot.
    engines: u64,
    slots: HashMap<(u64, u32), SimSlot>,
    /// The time of the first reading of the clock, and the number of readings so far.
    began_at: Option<Instant>,
    looks: u32,
}

impl SimDisk {
    fn lose_power(&mut self) {
        if std::mem::replace(&mut self.off, true) {
            return;
        }
        let SimDisk { files, names, chance, .. } = self;
        names.lose_power(chance);
        for file in files {
            file.harden_some(chance);
            // A truncation may also be lost.
            if file.stable.len() > file.cached.len() && chance.below(2) == 0 {
                file.stable.truncate(file.cached.len());
            }
        }
    }

    fn make(&mut self, path: &Path) -> usize {
        self.files.push(SimFile::default());
        let file = self.files.len() - 1;
        self.names.add(path, file);
        file
    }

    /// Counts the operation, and returns its permit.
    fn admit(&mut self) -> Result<Permit, Errno> {
        let fault = self.faults.get(&self.operations).copied();
        self.operations += 1;
        if self.off {
            return Err(Errno::IO);
        }
        if let Some(errno) = self.forever {
            return Err(errno);
        }
        match fault {
            None => Ok(Permit { bytes_max: u64::MAX, hidden: None }),
            Some(Fault::Short(bytes_max)) => Ok(Permit { bytes_max, hidden: None }),
            Some(hidden @ (Fault::Lie | Fault::Rot | Fault::Misdirected)) => {
                Ok(Permit { bytes_max: u64::MAX, hidden: Some(hidden) })
            }
            Some(Fault::Once(errno)) => Err(Errno::from_raw_os_error(errno)),
            Some(Fault::Forever(errno)) => {
                let errno = Errno::from_raw_os_error(errno);
                self.forever = Some(errno);
                Err(errno)
            }
            Some(Fault::PowerLoss) => {
                self.lose_power();
                Err(Errno::IO)
            }
        }
    }

    /// Like [`SimDisk::admit`], for an engine that may belong to an earlier boot.
    fn admit_of(&mut self, boot: u64) -> Result<Permit, Errno> {
        if boot == self.boot { self.admit() } else { Err(Errno::IO) }
    }

    /// Returns whether a flush that fails with this error may lose the unflushed bytes.
    fn loses(&self, errno: Errno) -> bool {
        !self.off && !matches!(errno, Errno::INTR | Errno::AGAIN)
    }

    /// Returns how many more bytes the files can hold in total.
    fn room(&self) -> u64 {
        let named = self.names.files();
        let used: u64 = named.map(|file| self.files[file].cached.len() as u64).sum();
        self.capacity_bytes.saturating_sub(used)
    }

    fn perform(&mut self, request: &Request, slot: SimSlot) -> Result<usize, Errno> {
        let admitted = self.admit();
        let is_flush = matches!(request.kind, OpKind::Fdatasync | OpKind::Fsync);
        if let Err(errno) = admitted
            && is_flush
            && !slot.direct
            && self.loses(errno)
        {
            self.files[slot.file].lose_some(&mut self.chance);
        }
        let Permit { bytes_max, hidden } = admitted?;
        if slot.direct && request.kind.transfers() && self.refuse_direct_at_transfer {
            return Err(Errno::INVAL);
        }
        let room = self.room();
        let file = &mut self.files[slot.file];
        let growth = |end: u64| end.saturating_sub(file.cached.len() as u64);
        match request.kind {
            OpKind::Read => {
                let end = (request.offset + request.len).min(file.cached.len() as u64);
                if hidden == Some(Fault::Rot) && request.offset < end {
                    let at = self.chance.below((end - request.offset) as usize);
                    file.rot(request.offset as usize + at, 1 << self.chance.below(8));
                }
                let sectors = file.cached.len() / SECTOR_BYTES;
                let mut offset = request.offset;
                if hidden == Some(Fault::Misdirected) && sectors > 1 {
                    let by = 1 + self.chance.below(sectors - 1);
                    offset =
                        (offset + (by * SECTOR_BYTES) as u64) % (sectors * SECTOR_BYTES) as u64;
                }
                Ok(file.read(request, offset, bytes_max))
            }
            OpKind::Write | OpKind::DurableWrite => {
                let over = growth(request.offset + request.len).saturating_sub(room);
                let mut fits = request.len.saturating_sub(over);
                if slot.direct {
                    fits -= fits % SECTOR_BYTES as u64;
                }
                let len = fits.min(bytes_max) as usize;
                if len == 0 && over > 0 {
                    return Err(Errno::NOSPC);
                }
                file.write(request, len);
                if request.kind == OpKind::DurableWrite {
                    file.harden(request.offset as usize, len);
                }
                Ok(len)
            }
            OpKind::Fdatasync | OpKind::Fsync => {
                if hidden != Some(Fault::Lie) {
                    file.flush();
                }
                Ok(0)
            }
            OpKind::Fallocate if growth(request.offset + request.len) > room => {
                // The part that fits is allocated and extends the file, as on ext4.
                let end = (file.cached.len() as u64 + room) as usize;
                file.cached.resize(end, 0);
                Err(Errno::NOSPC)
            }
            OpKind::Reserve => {
                // On this disk, reservations use no space.
                let has_room = growth(request.offset + request.len) <= room;
                has_room.then_some(0).ok_or(Errno::NOSPC)
            }
            OpKind::Fallocate => {
                let end = (request.offset + request.len) as usize;
                file.cached.resize(file.cached.len().max(end), 0);
                Ok(0)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct SimSlot {
    file: usize,
    direct: bool,
}

/// One engine's view of the disk.
#[derive(Clone)]
struct View {
    sim: Sim,
    /// The boot to which the engine belongs. The engines of an earlier boot no longer work.
    boot: u64,
    engine: u64,
}

/// Requests in flight, executed one by one in random order.
struct SimQueue {
    view: View,
    pending: Vec<Request>,
}

impl SimQueue {
    fn carry_out_one(&mut self, done: &mut Vec<Reply>) {
        let mut disk = self.view.sim.locked();
        if disk.boot != self.view.boot {
            let gone = |request: Request| Reply::new(request.token, Err(Errno::IO));
            return done.extend(self.pending.drain(..).map(gone));
        }
        let next = disk.chance.below(self.pending.len());
        let request = self.pending.swap_remove(next);
        let slot = disk.slots[&(self.view.engine, request.slot)];
        let moved = disk.perform(&request, slot);
        done.push(Reply::new(request.token, moved));
    }
}

impl Queue for SimQueue {
    /// Returns the time, which advances only with each reading of the clock, so that a seed
    /// reproduces a run exactly.
    fn now(&mut self) -> Instant {
        let mut disk = self.view.sim.locked();
        disk.looks += 1;
        let passed = LOOK * disk.looks;
        *disk.began_at.get_or_insert_with(Instant::now) + passed
    }

    fn push(&mut self, requests: Requests) {
        self.pending.extend(requests);
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        let until = self.pending.len().saturating_sub(min);
        while self.pending.len() > until {
            self.carry_out_one(done);
        }
        // A disk makes progress even if no caller waits, so a caller that only polls eventually
        // finds something done.
        if min == 0 && !self.pending.is_empty() && self.view.sim.locked().chance.below(2) == 0 {
            self.carry_out_one(done);
        }
        Ok(())
    }
}

struct SimFiles(View);

impl SimFiles {
    fn disk(&self) -> MutexGuard<'_, SimDisk> {
        self.0.sim.locked()
    }

    /// Returns the number of the file that is open in `slot`.
    fn file(&self, disk: &SimDisk, slot: u32) -> usize {
        disk.slots[&(self.0.engine, slot)].file
    }
}

impl Drop for SimFiles {
    fn drop(&mut self) {
        let mut disk = self.disk();
        let SimDisk { slots, files, .. } = &mut *disk;
        slots.retain(|&(engine, _), slot| {
            let is_own = engine == self.0.engine;
            files[slot.file].opened -= usize::from(is_own);
            !is_own
        });
    }
}

impl Files for SimFiles {
    fn open(&mut self, slot: u32, path: &Path, options: &FileOptions) -> io::Result<FileAccess> {
        let mut disk = self.disk();
        if disk.boot != self.0.boot {
            return Err(Errno::IO.into());
        }
        let file = match disk.names.file(path) {
            Some(_) if options.create_new => return Err(Errno::EXIST.into()),
            Some(file) => file,
            None if options.create || options.create_new => disk.make(path),
            None => return Err(Errno::NOENT.into()),
        };
        if options.truncate {
            disk.files[file].cached.clear();
        }
        disk.files[file].opened += 1;
        let direct = options.direct && !disk.refuse_direct_at_open;
        disk.slots.insert((self.0.engine, slot), SimSlot { file, direct });
        let refused = (options.direct && !direct).then_some(libc::EINVAL);
        let align_bytes = if direct { SECTOR_BYTES as u32 } else { 1 };
        Ok(FileAccess { raw: -1, direct, refused, align_bytes })
    }

    fn close(&mut self, slot: u32) {
        let mut disk = self.disk();
        let closed = disk.slots.remove(&(self.0.engine, slot));
        disk.files[closed.expect("the engine closes a file once").file].opened -= 1;
    }

    /// Does nothing, because a simulated disk has no folders that could be renamed.
    fn enter(&mut self, _folder: Folder) {}

    fn len_at(&self, slot: u32, path: &Path) -> io::Result<Option<u64>> {
        let disk = self.disk();
        let found = disk.names.file(path).filter(|found| *found == self.file(&disk, slot));
        Ok(found.map(|file| disk.files[file].cached.len() as u64))
    }

    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        self.disk().slots.get_mut(&(self.0.engine, slot)).expect("open").direct = direct;
        Ok(())
    }

    fn sync_file_system(&mut self, _slot: u32) -> io::Result<()> {
        let mut disk = self.disk();
        let admitted = disk.admit_of(self.0.boot);
        let is_lost = admitted.as_ref().is_err_and(|errno| disk.loses(*errno));
        let SimDisk { files, names, chance, .. } = &mut *disk;
        if is_lost {
            files.iter_mut().for_each(|file| file.lose_some(chance));
        }
        admitted?;
        files.iter_mut().for_each(SimFile::flush);
        names.sync();
        Ok(())
    }

    fn len(&self, slot: u32) -> io::Result<u64> {
        let disk = self.disk();
        Ok(disk.files[self.file(&disk, slot)].cached.len() as u64)
    }

    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.admit_of(self.0.boot)?;
        let (room, number) = (disk.room(), self.file(&disk, slot));
        let file = &mut disk.files[number];
        if len_bytes.saturating_sub(file.cached.len() as u64) > room {
            return Err(Errno::NOSPC.into());
        }
        file.cached.resize(len_bytes as usize, 0);
        Ok(())
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.disk();
        if disk.boot != self.0.boot {
            return Err(Errno::IO.into());
        }
        let request = Request {
            token: 0,
            kind: OpKind::Write,
            in_pool: false,
            rw_flags: 0,
            slot,
            offset,
            // The operation only reads from this address.
            address: bytes.as_ptr().cast_mut(),
            len: bytes.len() as u64,
        };
        let slot = disk.slots[&(self.0.engine, slot)];
        Ok(disk.perform(&request, slot)?)
    }

    fn drop_clean_pages(&mut self, slot: u32) {
        let mut disk = self.disk();
        let number = self.file(&disk, slot);
        disk.files[number].forget_lost();
    }

    fn is_shared(&self, slot: u32) -> io::Result<bool> {
        let disk = self.disk();
        Ok(disk.files[self.file(&disk, slot)].opened > 1)
    }

    fn descriptor(&self, _slot: u32) -> Option<BorrowedFd<'_>> {
        None
    }

    fn locate(&mut self, path: &Path) -> io::Result<Located> {
        let found = match self.disk().names.file(path) {
            Some(_) => Found::File,
            None => Found::Nothing,
        };
        Ok(Located { path: path.to_owned(), found })
    }

    /// Counts as an operation, but does nothing. Folders are not stored: a folder exists if it
    /// contains a name.
    fn make_folder(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(self.disk().admit_of(self.0.boot).map(drop)?)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let all = self.0.sim.names();
        Ok(all.into_iter().filter(|path| path.parent() == Some(folder)).collect())
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>> {
        let mut disk = self.disk();
        disk.admit_of(self.0.boot)?;
        disk.names.change(change)?;
        Ok(None)
    }
}
