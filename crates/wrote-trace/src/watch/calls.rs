//! Translates system calls that change files into their effects.

mod aio;
mod queue;
mod queued;
mod uring;

use super::descriptors::{self, Descriptor, Descriptors, Kind, Output, name_of};
use super::filter::newer;
use super::mapped::{Area, Areas};
use super::maps::{self, Mapped, Tasks};
use super::memory;
use super::pages::PAGE_BYTES;
use super::ptrace::Entry;
use crate::call::{Act, FileId, How, Name, Storage, Stores};
use crate::wanted::{Sign, Wanted};
use libc::{c_long, pid_t};
use queue::Operation;
pub use queue::Work;
pub use queued::Ended;
use queued::{QueueId, Queues};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use uring::Change;
use wrote::Survives;

/// The largest write whose data is read: a call writes at most 2 GiB, but a clone any amount.
const DATA_BYTES_MAX: u64 = 1 << 31;
/// The modes of `fallocate(2)` that leave zeros, and the modes that move bytes.
const ERASES: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE | WRITE_ZEROES;
const SHIFTS: i32 = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;
/// `linux/falloc.h`, since Linux 6.17.
const WRITE_ZEROES: i32 = 0x80;
/// The least bytes of a write that may prepare space.
const SPACE_BYTES_MIN: u64 = 512;
/// The notes on programs with queues that are not followed.
/// The note on a program with a ring that is not followed.
pub const IO_URING_UNSEEN: &str = "writes by io_uring are not seen";
const AIO_UNSEEN: &str = "writes by io_submit (kernel AIO) are not seen";

/// A call in progress, with what is needed when it returns. If the call is sure to have an effect
/// when it succeeds, its arguments tell the effect. A flush covers the unseen changes that files
/// got before these moments.
#[derive(Debug)]
pub enum Begun {
    Open {
        path: Option<PathBuf>,
        size_before: Option<u64>,
        empties: bool,
    },
    Write {
        descriptor: i32,
        file: FileId,
        how: How,
        asked_bytes: u64,
        at: At,
        is_zeros: bool,
        /// Empty if not needed or not known yet.
        data: Vec<u8>,
    },
    Read {
        descriptor: i32,
        at: At,
    },
    Clone {
        descriptor: i32,
    },
    Allocate {
        descriptor: i32,
        mode: i32,
        bytes: Range<u64>,
        from_bytes: u64,
        is_new: bool,
    },
    WriteBack {
        file: FileId,
    },
    MakeFolder {
        path: PathBuf,
    },
    MakeLink {
        path: PathBuf,
        to: PathBuf,
    },
    Map {
        file: FileId,
        descriptor: i32,
        count: u64,
        at_byte: u64,
    },
    Protect {
        memory: Range<u64>,
    },
    Unmap {
        memory: Range<u64>,
        last: u64,
    },
    Remap {
        memory: Range<u64>,
        last: u64,
        count: u64,
    },
    Flush {
        act: Act,
        covers: Vec<(FileId, u64)>,
    },
    Sure(Act),
    NewSession,
    /// A change of a ring of io_uring.
    Ring(Change),
    /// A new context of kernel AIO, whose address is stored here.
    Context(u64),
}

impl Begun {
    /// Returns the descriptor whose file it changes.
    pub fn descriptor(&self) -> Option<i32> {
        match self {
            Begun::Write { descriptor, .. }
            | Begun::Clone { descriptor }
            | Begun::Allocate { descriptor, .. } => Some(*descriptor),
            _ => None,
        }
    }

    /// Takes the data of a write.
    pub fn take_data(&mut self) -> Vec<u8> {
        match self {
            Begun::Write { data, .. } => std::mem::take(data),
            _ => Vec::new(),
        }
    }

    /// Takes back what was read too early of an operation that waits for others: they may fill its
    /// memory.
    fn doubt_data(&mut self) {
        if let Begun::Write { is_zeros, data, .. } = self {
            *is_zeros = false;
            data.clear();
        }
    }

    /// Takes back what is not known of a call that is examined after its end.
    fn doubt(&mut self) {
        self.doubt_data();
        if let Begun::Flush { covers, .. } = self {
            covers.clear();
        }
    }
}

/// The position of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An explicit offset.
    Byte(u64),
    /// The descriptor's position.
    Position,
    /// The file's end, without regard to an offset.
    End,
}

/// How to handle the start of a call.
#[derive(Debug)]
pub enum Begin {
    /// Ignore the call.
    Pass,
    /// Examine the call again when it returns.
    Await(Begun),
    /// Make it fail with this error, and note why.
    Refuse(i32, &'static str),
    /// Let it run: it submits operations to a queue, each with its key.
    Queued(QueueId, Vec<(u64, Operation)>),
    /// Let it run, and note that its effect is not observed.
    Unseen(&'static str),
}

/// Decodes calls.
#[derive(Debug)]
pub struct Reader {
    wanted: Wanted,
    descriptors: Descriptors,
    /// The files that were reported.
    met: HashSet<FileId>,
    devices: HashSet<u64>,
    mapped: Mapped,
    queues: Queues,
    areas: Areas,
    /// Files and devices first seen in the current call, to be reported before it.
    news: Vec<Act>,
}

impl Reader {
    /// Makes an empty one. This process may have `files_max` open files.
    pub fn new(wanted: Wanted, streams_of: pid_t, files_max: usize) -> Reader {
        Reader {
            wanted,
            descriptors: Descriptors::new(streams_of, files_max),
            met: HashSet::new(),
            devices: HashSet::new(),
            mapped: Mapped::default(),
            queues: Queues::default(),
            areas: Areas::default(),
            news: Vec::new(),
        }
    }

    /// Learns what a process may have written before it is watched: its files that are open to be
    /// written, and its mappings. Returns how it writes unseen.
    pub fn join(&mut self, process: pid_t) -> Vec<&'static str> {
        let mut unseen = Vec::new();
        let open = fs::read_dir(format!("/proc/{process}/fd"));
        for entry in open.into_iter().flatten().flatten() {
            let is_ring = fs::read_link(entry.path())
                .is_ok_and(|to| to == Path::new("anon_inode:[io_uring]"));
            unseen.extend(is_ring.then_some(IO_URING_UNSEEN));
            let Ok(number) = entry.file_name().to_string_lossy().parse() else { continue };
            let Some(file) = self.regular(process, number) else { continue };
            if self.descriptors.get(process, number as i32).is_some_and(|of| of.is_writable) {
                self.mapped.loosen(file);
                self.news.push(Act::Before { file });
            }
        }
        self.mapped.may_protect = true;
        self.areas.compares = true;
        for mapping in maps::writable(process).0 {
            let Ok(found) = fs::metadata(&mapping.path) else { continue };
            if found.is_file() {
                self.meet(Some(&mapping.seen_here(process)), mapping.file, found.len());
                self.add_stored(vec![Act::Map { file: mapping.file, stores: Stores::Unseen }]);
            }
        }
        unseen.extend(maps::has_aio(process).then_some(AIO_UNSEEN));
        unseen
    }

    /// Returns the outputs that were written to and are not judged.
    pub fn outputs(&mut self) -> BTreeSet<Output> {
        std::mem::take(&mut self.descriptors.outputs)
    }

    /// Forgets a process that has executed another program or ended.
    pub fn forget(&mut self, process: pid_t) {
        self.end_queues(process, |_| true);
        self.queues.registered.retain(|(task, _), _| *task != process);
        self.descriptors.forget_all(process);
        let unseen = self.areas.forget(process);
        self.add_stored(unseen);
    }

    /// Follows the mappings that a new process has of its parent.
    pub fn born(&mut self, process: pid_t) {
        let mut unseen = self.areas.born(process);
        // Devices are mapped, too.
        unseen.retain(|act| matches!(act, Act::Map { file, .. } if self.met.contains(file)));
        self.add_stored(unseen);
    }

    /// Looks at what a process has stored that is about to end.
    pub fn end(&mut self, process: pid_t) {
        let stored = self.areas.end(process);
        self.add_stored(stored);
    }

    /// Looks at what was stored through the mappings that are meant.
    pub fn look(&mut self, is_meant: impl Fn(&Area) -> bool) {
        let stored = self.areas.look(|area| if is_meant(area) { area.all() } else { 0..0 });
        self.add_stored(stored);
    }

    fn look_within(&mut self, process: pid_t, memory: &Range<u64>) {
        let stored = self.areas.look(|area| area.within(process, memory));
        self.add_stored(stored);
    }

    fn add_stored(&mut self, stored: Vec<Act>) {
        for act in stored {
            match &act {
                Act::Map { file, stores: Stores::Beyond | Stores::Unseen } => {
                    self.mapped.loosen(*file);
                }
                Act::Write { file, .. } if !self.met.contains(file) => {
                    let found = self.areas.found(*file);
                    let (path, size_bytes) = found.unzip();
                    let path = path.filter(|path| descriptors::is_named(path));
                    self.meet(path.as_deref(), *file, size_bytes.unwrap_or(0));
                }
                _ => {}
            }
            self.news.push(act);
        }
    }

    /// Returns the files and devices seen since the previous call.
    pub fn news(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.news)
    }

    /// Returns the next operation of a queue that has ended.
    pub fn next_ended(&mut self) -> Option<Ended> {
        self.queues.next_ended()
    }

    /// Returns why not all operations are known since the previous call.
    pub fn take_doubt(&mut self) -> Option<&'static str> {
        self.queues.doubt.take()
    }

    /// Returns the data of a write that a look has found; empty if not needed or unreadable.
    pub fn stored_data(&self, act: &Act) -> Vec<u8> {
        match act {
            Act::Write { file, bytes, .. } if self.wanted.data => {
                self.areas.data(*file, bytes).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the data of a write: as the program had it, or read back from the file. It is empty
    /// if not needed or unreadable.
    pub fn data(
        &mut self,
        process: pid_t,
        act: &Act,
        descriptor: Option<i32>,
        mut known: Vec<u8>,
    ) -> Vec<u8> {
        let (Act::Write { bytes, .. }, Some(descriptor)) = (act, descriptor) else {
            return Vec::new();
        };
        let count = bytes.end - bytes.start;
        if !self.wanted.data || count > DATA_BYTES_MAX {
            return Vec::new();
        }
        // Another call may have changed the file since.
        if known.len() as u64 >= count {
            known.truncate(count as usize);
            return known;
        }
        let open = self.descriptors.get(process, descriptor);
        let path = open.and_then(|open| open.path.clone());
        let read = || {
            let mut data = vec![0; count as usize];
            // Reopened, because the program's descriptor may be write-only.
            let file = File::open(format!("/proc/{process}/fd/{descriptor}"));
            // A process that has ended has none.
            let path = path.filter(|_| file.is_err());
            let file = path.map_or(file, File::open)?;
            file.read_exact_at(&mut data, bytes.start).map(|()| data)
        };
        read().unwrap_or_default()
    }

    /// Records an existing file that a call refers to.
    fn meet(&mut self, path: Option<&Path>, file: FileId, size_bytes: u64) {
        self.meet_device(path, file.device);
        if self.met.insert(file) {
            let name = path.and_then(name_of);
            self.news.push(Act::Found { file, name, size_bytes });
        }
    }

    /// Forgets files, which are reported again before their next call.
    pub fn forget_files(&mut self, files: &[FileId]) {
        for file in files {
            self.met.remove(file);
            self.mapped.forget(*file);
        }
    }

    fn meet_device(&mut self, path: Option<&Path>, device: u64) {
        let Some(path) = path.filter(|_| !self.devices.contains(&device)) else { return };
        // In another mount namespace the path leads elsewhere.
        let is_here = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.dev() == device);
        let here = [Some(path), path.parent()].into_iter().flatten().find(is_here);
        let target = here.and_then(|path| wrote::device::examine(path).ok());
        if target.is_some() {
            self.devices.insert(device);
        }
        let target = target.unwrap_or_default();
        // Shared memory (`/dev/shm`) lies on no disk anywhere.
        let is_asked = !self.wanted.on_disk || target.path.starts_with("/dev");
        let (level, because) = target.limit().filter(|_| is_asked).unzip();
        let storage = Storage {
            is_in_memory: level == Some(Survives::ProcessCrash),
            writes_in_place: target.writes_in_place(),
            flushes_reach_device: level.is_none(),
            because,
            doubt: target.doubt().filter(|_| is_asked),
        };
        self.news.push(Act::Storage { device, storage });
    }

    /// Decodes a call at its start.
    pub fn begin(&mut self, process: pid_t, task: pid_t, entry: Entry, tasks: Tasks) -> Begin {
        self.begun(process, task, entry, tasks).unwrap_or(Begin::Pass)
    }

    /// `None` for a call that is irrelevant or will fail.
    fn begun(&mut self, process: pid_t, task: pid_t, entry: Entry, tasks: Tasks) -> Option<Begin> {
        let (number, arguments) = newer(entry.number, entry.arguments);
        self.effect(process, task, number, arguments, tasks)
    }

    /// Decodes a call of a process, or an operation on a file that this process has.
    fn effect(
        &mut self,
        process: pid_t,
        task: pid_t,
        number: c_long,
        arguments: [u64; 6],
        tasks: Tasks,
    ) -> Option<Begin> {
        let [a, b, c, d, e, f] = arguments;
        let path = |folder: u64, address: u64| path(task, folder as i32, address);
        let begun = match number {
            libc::SYS_dup3 => return self.closed(process, b),
            libc::SYS_openat => self.open(path(a, b), c),
            libc::SYS_openat2 => self.open(path(a, b), memory::number(task, c)?),
            libc::SYS_close => return self.closed(process, a),
            libc::SYS_close_range => {
                self.descriptors.forget_range(process, a as u32, b as u32);
                let closed = a as u32..=b as u32;
                let is_now = c as u32 & libc::CLOSE_RANGE_CLOEXEC == 0;
                self.close_rings(process, |file| is_now && closed.contains(&(file as u32)));
                return None;
            }
            // Its flags may change.
            libc::SYS_fcntl => {
                self.descriptors.forget(process, a as i32);
                return None;
            }
            libc::SYS_read | libc::SYS_readv => self.read(process, a, At::Position)?,
            libc::SYS_pread64 | libc::SYS_preadv => self.read(process, a, At::Byte(d))?,
            libc::SYS_write => self.tell(process, a, || memory::text(task, b, c)).map_or_else(
                || self.write_pieces(process, task, a, &[(b, c)], At::Position, 0),
                Some,
            )?,
            libc::SYS_pwrite64 => self.write_pieces(process, task, a, &[(b, c)], At::Byte(d), 0)?,
            libc::SYS_writev => {
                let pieces = memory::pieces(task, b, c)?;
                self.tell(process, a, || memory::texts(task, &pieces)).map_or_else(
                    || self.write_pieces(process, task, a, &pieces, At::Position, 0),
                    Some,
                )?
            }
            libc::SYS_pwritev | libc::SYS_pwritev2 => {
                let is_newer = number == libc::SYS_pwritev2;
                let at = if is_newer && d == u64::MAX { At::Position } else { At::Byte(d) };
                let flags = if is_newer { f as i32 } else { 0 };
                self.write_pieces(process, task, a, &memory::pieces(task, b, c)?, at, flags)?
            }
            libc::SYS_sendfile => self.write(process, a, d, At::Position, 0)?,
            libc::SYS_splice | libc::SYS_copy_file_range => {
                let at = match d {
                    0 => At::Position,
                    address => At::Byte(memory::number(task, address)?),
                };
                self.write(process, c, e, at, 0)?
            }
            libc::SYS_ioctl => {
                self.regular(process, a)?;
                Begun::Clone { descriptor: a as i32 }
            }
            libc::SYS_truncate => {
                let path = path(libc::AT_FDCWD as u64, a)?;
                let found = fs::metadata(&path).ok()?;
                let (file, from_bytes) = (FileId::of(&found), found.len());
                self.meet(Some(&path), file, from_bytes);
                Begun::Sure(resize(file, from_bytes, b, true)?)
            }
            libc::SYS_ftruncate => {
                let file = self.regular(process, a)?;
                let from_bytes = size(process, a as i32)?;
                let is_new = self.is_new(process, a as i32);
                Begun::Sure(resize(file, from_bytes, b, is_new)?)
            }
            libc::SYS_fallocate => {
                self.regular(process, a)?;
                let descriptor = a as i32;
                let from_bytes = size(process, descriptor)?;
                let is_new = self.is_new(process, descriptor);
                let bytes = c..c.saturating_add(d);
                Begun::Allocate { descriptor, mode: b as i32, bytes, from_bytes, is_new }
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                let flushed = self.descriptors.get(process, a as i32)?;
                let file = match flushed.kind {
                    Kind::Folder => flushed.file,
                    _ => self.regular(process, a)?,
                };
                let is_data = number == libc::SYS_fdatasync;
                self.flush(Act::Flush { file, failed: None, is_data }, |of| of == file, tasks)
            }
            libc::SYS_sync_file_range => Begun::WriteBack { file: self.regular(process, a)? },
            libc::SYS_sync => self.flush(Act::FlushAll { device: None }, |_| true, tasks),
            libc::SYS_syncfs => {
                let device = self.descriptors.get(process, a as i32)?.file.device;
                let act = Act::FlushAll { device: Some(device) };
                self.flush(act, |of| of.device == device, tasks)
            }
            libc::SYS_msync if c as i32 & libc::MS_SYNC != 0 => {
                let memory = pages(a, b);
                self.look_within(process, &memory);
                let flushed = self.areas.flushed(process, &memory);
                let mappings = || maps::writable(task).0;
                let of_maps = || maps::flushed(&mappings().iter().collect::<Vec<_>>(), &memory);
                Begun::Sure(flushed.or_else(of_maps)?)
            }
            libc::SYS_mmap => {
                let is = |flag: i32| d as i32 & flag != 0;
                let over = is(libc::MAP_FIXED).then(|| self.unmap(process, pages(a, b)));
                let file = is(libc::MAP_SHARED).then(|| self.regular(process, e)).flatten();
                match file {
                    Some(file) if c as i32 & libc::PROT_WRITE != 0 => {
                        Begun::Map { file, descriptor: e as i32, count: b, at_byte: f }
                    }
                    _ => {
                        let of = file.and_then(|_| self.descriptors.get(process, e as i32));
                        self.mapped.may_protect |= of.is_some_and(|of| of.is_writable);
                        over.flatten()?
                    }
                }
            }
            libc::SYS_munmap => self.unmap(process, pages(a, b))?,
            libc::SYS_mremap => {
                let is = |flag: i32| d as i32 & flag != 0;
                let over = is(libc::MREMAP_FIXED).then(|| self.unmap(process, pages(e, c)));
                let moved_bytes = if is(libc::MREMAP_DONTUNMAP) { 0 } else { b };
                match self.unmap(process, pages(a, b.max(1))) {
                    Some(Begun::Unmap { last, .. }) => {
                        Begun::Remap { memory: pages(a, moved_bytes), last, count: c }
                    }
                    _ => over.flatten()?,
                }
            }
            libc::SYS_execve | libc::SYS_execveat => {
                self.end(process);
                return None;
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect if self.mapped.may_protect => {
                let memory = pages(a, b);
                if self.areas.with(process, &memory).is_some() {
                    return None;
                }
                self.unmap(process, memory.clone());
                Begun::Protect { memory }
            }
            libc::SYS_renameat => self.rename(path(a, b)?, path(c, d)?, 0)?,
            libc::SYS_renameat2 => self.rename(path(a, b)?, path(c, d)?, e as u32)?,
            libc::SYS_linkat if e as i32 & libc::AT_EMPTY_PATH != 0 => {
                let file = self.descriptors.get(process, a as i32)?.file;
                Begun::Sure(Act::Link { file, name: name_of(&path(c, d)?)? })
            }
            libc::SYS_linkat => self.link(path(a, b)?, path(c, d)?)?,
            libc::SYS_unlinkat => self.unlink(path(a, b)?)?,
            libc::SYS_mkdirat => Begun::MakeFolder { path: path(a, b)? },
            libc::SYS_symlinkat => {
                Begun::MakeLink { path: path(b, c)?, to: memory::path(task, a)? }
            }
            libc::SYS_sendto => self.tell(process, a, || memory::text(task, b, c))?,
            // The first of several messages begins with a header, too.
            libc::SYS_sendmsg | libc::SYS_sendmmsg => {
                self.tell(process, a, || memory::texts(task, &memory::pieces_of_message(task, b)?))?
            }
            libc::SYS_setsid => Begun::NewSession,
            libc::SYS_io_uring_setup => return self.begin_ring(process, task, b),
            libc::SYS_io_uring_register => return self.register(process, task, arguments),
            libc::SYS_io_uring_enter => return Some(self.enter(process, task, arguments, tasks)),
            libc::SYS_io_setup => Begun::Context(b),
            libc::SYS_io_submit => return Some(self.submit(process, task, arguments, tasks)),
            libc::SYS_io_destroy => {
                self.end_queues(process, |kernel| kernel.is_context(a));
                return None;
            }
            _ => return None,
        };
        Some(Begin::Await(begun))
    }

    /// Handles a call that removes mappings or replaces them; `None` if none of them is followed.
    fn unmap(&mut self, process: pid_t, memory: Range<u64>) -> Option<Begun> {
        if !self.areas.overlaps(process, &memory) {
            return None;
        }
        self.look_within(process, &memory);
        Some(Begun::Unmap { memory, last: self.areas.last })
    }

    /// Follows a mapping that a process has got.
    fn map(
        &mut self,
        of: (pid_t, pid_t),
        place: (Range<u64>, u64),
        file: FileId,
        path: &Path,
    ) -> Act {
        self.areas.remove(of.0, &place.0, self.areas.last);
        let stores = self.areas.add(of, place, file, path);
        if stores != Stores::Seen {
            self.mapped.loosen(file);
        }
        Act::Map { file, stores }
    }

    /// Follows the writable mappings in this memory, as `/proc` lists them.
    fn map_again(&mut self, process: pid_t, task: pid_t, memory: &Range<u64>) {
        for mapping in maps::writable(process).0 {
            let start = mapping.memory.start.max(memory.start);
            let part = start..mapping.memory.end.min(memory.end);
            if part.is_empty() {
                continue;
            }
            let at_byte = mapping.bytes(&part).start;
            let act = self.map((process, task), (part, at_byte), mapping.file, &mapping.path);
            self.news.push(act);
        }
    }

    /// Returns a flush of all bytes of the files that are `meant`.
    fn flush(&mut self, act: Act, is_meant: impl Fn(FileId) -> bool, tasks: Tasks) -> Begun {
        self.look(|area| is_meant(area.file()));
        Begun::Flush { act, covers: self.mapped.covered(is_meant, tasks) }
    }

    /// Returns whether a descriptor has not written: if it empties the file, that is as an open
    /// with `O_TRUNC`. After its writes it ends the file's use, as a journal's.
    fn is_new(&mut self, process: pid_t, descriptor: i32) -> bool {
        self.descriptors.get(process, descriptor).is_some_and(|of| !of.is_written)
    }

    fn closed(&mut self, process: pid_t, descriptor: u64) -> Option<Begin> {
        self.close_rings(process, |file| file == descriptor as i32);
        self.descriptors.forget(process, descriptor as i32);
        None
    }

    /// Returns a descriptor's regular file.
    fn regular(&mut self, process: pid_t, descriptor: u64) -> Option<FileId> {
        let found = self.descriptors.get(process, descriptor as i32)?;
        if found.kind != Kind::Regular {
            return None;
        }
        let file = found.file;
        if !self.met.contains(&file) {
            let path = descriptors::path(process, descriptor as i32);
            self.meet(path.as_deref(), file, size(process, descriptor as i32)?);
        }
        Some(file)
    }

    fn open(&mut self, path: Option<PathBuf>, flags: u64) -> Begun {
        let found = path.as_ref().and_then(|path| Some((path, fs::metadata(path).ok()?)));
        if let Some((path, found)) = found.as_ref().filter(|(_, found)| found.is_file()) {
            // A symbolic link, as `/proc/self/fd/N` is one, has another name than its file.
            let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            let own = if is_link { fs::canonicalize(path).ok() } else { Some(path.to_path_buf()) };
            self.meet(own.as_deref(), FileId::of(found), found.len());
        }
        let size_before = found.map(|(_, found)| found.len());
        Begun::Open { path, size_before, empties: flags as i32 & libc::O_TRUNC != 0 }
    }

    fn rename(&mut self, from: PathBuf, to: PathBuf, flags: u32) -> Option<Begun> {
        let [(from, file), (to, replaced)] = [self.place(&from)?, self.place(&to)?];
        let file = file?;
        self.look(|area| area.file() == file);
        Some(Begun::Sure(match flags & libc::RENAME_EXCHANGE {
            0 => Act::Rename { file, from, to, replaced },
            _ => Act::Exchange { one: (file, from), other: (replaced?, to) },
        }))
    }

    fn link(&mut self, from: PathBuf, to: PathBuf) -> Option<Begun> {
        // A file without a name is linked via `/proc/self/fd/N`, which must be followed.
        let file = match from.starts_with("/proc") {
            true => FileId::of(&fs::metadata(&from).ok()?),
            false => self.place(&from)?.1?,
        };
        Some(Begun::Sure(Act::Link { file, name: name_of(&to)? }))
    }

    fn unlink(&mut self, path: PathBuf) -> Option<Begun> {
        let (name, file) = self.place(&path)?;
        Some(Begun::Sure(Act::Unlink { file: file?, name }))
    }

    fn place(&mut self, path: &Path) -> Option<(Name, Option<FileId>)> {
        let found = path.symlink_metadata().ok();
        if let Some(found) = found.as_ref().filter(|found| found.is_file()) {
            self.meet(Some(path), FileId::of(found), found.len());
        }
        Some((name_of(path)?, found.as_ref().map(FileId::of)))
    }

    fn write(
        &mut self,
        process: pid_t,
        descriptor: u64,
        asked_bytes: u64,
        at: At,
        flags: i32,
    ) -> Option<Begun> {
        let descriptor = descriptor as i32;
        let Some(file) = self.regular(process, descriptor as u64) else {
            self.descriptors.note_output(process, descriptor);
            return None;
        };
        let open = self.descriptors.get(process, descriptor)?;
        let at = match at {
            // Linux appends in spite of the offset (BUGS of `pwrite(2)`).
            At::Byte(_) if open.appends || flags & libc::RWF_APPEND != 0 => At::End,
            at => at,
        };
        let is_durable = open.how.is_durable || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let how = How { is_durable, is_atomic: flags & libc::RWF_ATOMIC != 0, ..open.how };
        let (is_zeros, data) = (false, Vec::new());
        Some(Begun::Write { descriptor, file, how, asked_bytes, at, is_zeros, data })
    }

    /// Handles a write of pieces of memory.
    fn write_pieces(
        &mut self,
        process: pid_t,
        task: pid_t,
        descriptor: u64,
        pieces: &[(u64, u64)],
        at: At,
        flags: i32,
    ) -> Option<Begun> {
        let bytes = pieces.iter().map(|(_, count)| count).sum();
        let mut begun = self.write(process, descriptor, bytes, at, flags)?;
        if let Begun::Write { is_zeros, data, .. } = &mut begun {
            let are_zeros = |of: &(u64, u64)| memory::is_zeros(task, of.0, of.1);
            // Space is also prepared by the last byte of each block.
            let ends_block = matches!(at, At::Byte(from) if (from + bytes) % SPACE_BYTES_MIN == 0);
            let may_prepare = bytes >= SPACE_BYTES_MIN || ends_block;
            *is_zeros = may_prepare && pieces.iter().all(are_zeros);
            if self.wanted.data && bytes <= DATA_BYTES_MAX {
                *data = memory::all(task, pieces).unwrap_or_default();
            }
        }
        Some(begun)
    }

    fn read(&mut self, process: pid_t, descriptor: u64, at: At) -> Option<Begun> {
        self.regular(process, descriptor)?;
        Some(Begun::Read { descriptor: descriptor as i32, at })
    }

    /// Returns whether bytes written to a descriptor reach the outside.
    fn tell(
        &mut self,
        process: pid_t,
        descriptor: u64,
        text: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Begun> {
        let descriptor = descriptor as i32;
        if matches!(self.wanted.ack, Sign::Exit) {
            return None;
        }
        let kind = self.descriptors.get(process, descriptor)?.kind;
        let tells = match &self.wanted.ack {
            Sign::Exit => false,
            Sign::Stdout => descriptor == 1 && kind == Kind::Stream,
            Sign::Socket => kind == Kind::Socket,
            Sign::Text(sign) => {
                let is_outside = matches!(kind, Kind::Stream | Kind::Socket);
                is_outside && text().is_some_and(|text| sign.is_match(&text))
            }
        };
        if tells {
            self.look(|_| true);
            self.descriptors.note_output(process, descriptor);
        }
        tells.then_some(Begun::Sure(Act::Tell))
    }

    /// Returns the effect of a call, given its result.
    pub fn act(
        &mut self,
        process: pid_t,
        task: pid_t,
        begun: Begun,
        result: Result<u64, i32>,
    ) -> Option<Act> {
        match (begun, result) {
            (
                Begun::Sure(Act::Flush { file, .. } | Act::FlushRange { file, .. })
                | Begun::Flush { act: Act::Flush { file, .. }, .. },
                Err(number),
            ) => Some(Act::Flush { file, failed: Some(number), is_data: false }),
            // It takes the file's error from the flush after it.
            (
                Begun::WriteBack { file },
                Err(number @ (libc::EIO | libc::ENOSPC | libc::EDQUOT)),
            ) => Some(Act::Flush { file, failed: Some(number), is_data: false }),
            (_, Err(_)) => None,
            (begun, Ok(value)) => self.done(process, task, begun, value),
        }
    }

    fn done(&mut self, process: pid_t, task: pid_t, begun: Begun, value: u64) -> Option<Act> {
        Some(match begun {
            Begun::Open { path, size_before, empties } => {
                let descriptor = value as i32;
                self.descriptors.forget(process, descriptor);
                let opened = self.descriptors.get(process, descriptor)?;
                if opened.kind != Kind::Regular {
                    return None;
                }
                let (file, made_at) = (opened.file, opened.path.clone());
                match (size_before, made_at) {
                    (None, Some(path)) => {
                        self.meet_device(Some(&path), file.device);
                        self.met.insert(file);
                        Act::Made { file, name: name_of(&path) }
                    }
                    // Only `O_TMPFILE` opens a file without a name in a folder.
                    (_, None) if path.as_ref().is_none_or(|path| path.is_dir()) => {
                        self.meet_device(path.as_deref(), file.device);
                        self.met.insert(file);
                        Act::Made { file, name: None }
                    }
                    (Some(size_bytes @ 1..), _) if empties => Act::Empty { file, size_bytes },
                    _ => return None,
                }
            }
            // The end of a copy, not a write.
            Begun::Write { .. } | Begun::Read { .. } if value == 0 => return None,
            Begun::Read { descriptor, at } => {
                let read = self.descriptors.get(process, descriptor)?;
                let file = read.file;
                let start = start(read, process, descriptor, at, value)?;
                Act::Read { file, bytes: start..start.saturating_add(value) }
            }
            Begun::Write { descriptor, file, how, asked_bytes, at, is_zeros, .. } => {
                // A queue writes on after a close. The number may be of another file then.
                let open = self.descriptors.get(process, descriptor).filter(|of| of.file == file);
                let (start, appends) = match (open, at) {
                    (Some(open), at) => {
                        open.is_written = true;
                        (start(open, process, descriptor, at, value)?, open.appends)
                    }
                    (None, At::Byte(start)) => (start, false),
                    (None, _) => return None,
                };
                let bytes = start..start.saturating_add(value);
                let is_race = at == At::Position
                    && !appends
                    && self.descriptors.has_overwritten(process, descriptor, file, &bytes);
                Act::Write { file, bytes, asked_bytes, how, is_race, is_zeros }
            }
            Begun::Clone { descriptor } => {
                let size_bytes = size(process, descriptor)?;
                let file = self.descriptors.get(process, descriptor)?.file;
                let how = How::default();
                let bytes = 0..size_bytes;
                let asked_bytes = size_bytes;
                Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: false }
            }
            Begun::Allocate { descriptor, mode, bytes, from_bytes, is_new } => {
                let to_bytes = size(process, descriptor)?;
                let file = self.descriptors.get(process, descriptor)?.file;
                let bytes = bytes.start..bytes.end.min(to_bytes);
                match mode {
                    _ if mode & ERASES != 0 && !bytes.is_empty() => {
                        let empties = is_new && bytes.start == 0 && bytes.end >= from_bytes;
                        Act::Erase { file, bytes, empties: empties && from_bytes > 0 }
                    }
                    _ if mode & SHIFTS != 0 => {
                        Act::Shift { file, at_byte: bytes.start, from_bytes, to_bytes }
                    }
                    _ => resize(file, from_bytes, to_bytes, false)?,
                }
            }
            Begun::Map { file, descriptor, count, at_byte } => {
                let path = PathBuf::from(format!("/proc/{process}/fd/{descriptor}"));
                self.map((process, task), (pages(value, count), at_byte), file, &path)
            }
            Begun::Unmap { memory, last } => {
                self.areas.remove(process, &memory, last);
                return None;
            }
            // What stays in place stays followed, since other threads may store to it.
            Begun::Remap { memory, last, count } if value == memory.start => {
                let grown = memory.end.max(value)..pages(value, count).end;
                self.areas.remove(process, &(grown.end..memory.end), last);
                self.map_again(process, task, &grown);
                return None;
            }
            Begun::Remap { memory, last, count } => {
                self.areas.remove(process, &memory, last);
                self.map_again(process, task, &pages(value, count));
                return None;
            }
            Begun::Protect { memory } => {
                self.map_again(process, task, &memory);
                return None;
            }
            Begun::Flush { act, covers } => {
                let covers = covers.into_iter().filter(|file| self.mapped.cover(*file));
                self.news.extend(covers.map(|(file, _)| Act::Cover { file }));
                act
            }
            Begun::Sure(act) => act,
            Begun::MakeFolder { path } => {
                let file = FileId::of(&fs::metadata(&path).ok()?);
                Act::MadeFolder { file, name: name_of(&path)? }
            }
            Begun::MakeLink { path, to } => {
                let file = FileId::of(&path.symlink_metadata().ok()?);
                Act::MadeLink { file, name: name_of(&path)?, to }
            }
            // The device's cache may still hold the bytes, and the journal their place.
            Begun::WriteBack { .. } | Begun::NewSession => return None,
            Begun::Ring(change) => {
                self.change_ring(process, change, value);
                return None;
            }
            Begun::Context(place) => {
                self.add_context(process, place);
                return None;
            }
        })
    }
}

/// Returns the pages that have these bytes of memory.
fn pages(start: u64, count: u64) -> Range<u64> {
    let end = start.saturating_add(count).div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    start / PAGE_BYTES * PAGE_BYTES..end
}

/// Returns the position at which a call that has moved `value` bytes started.
fn start(of: &Descriptor, process: pid_t, descriptor: i32, at: At, value: u64) -> Option<u64> {
    match at {
        At::Byte(start) => Some(start),
        At::End => Some(size(process, descriptor)?.saturating_sub(value)),
        At::Position => Some(of.position(process, descriptor).ok()?.saturating_sub(value)),
    }
}

/// Returns a change of a file's size; `None` if there is none. A `whole` file that loses all its
/// bytes is emptied.
fn resize(file: FileId, from_bytes: u64, to_bytes: u64, whole: bool) -> Option<Act> {
    match to_bytes {
        _ if from_bytes == to_bytes => None,
        0 if whole => Some(Act::Empty { file, size_bytes: from_bytes }),
        _ => Some(Act::Resize { file, from_bytes, to_bytes }),
    }
}

fn size(process: pid_t, descriptor: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/fd/{descriptor}")).ok().map(|found| found.len())
}

/// Resolves a path as the task sees it, with symbolic links in its folder resolved.
fn path(task: pid_t, folder: i32, address: u64) -> Option<PathBuf> {
    let given = memory::path(task, address)?;
    let whole = match (given.strip_prefix("/proc/self"), folder) {
        (Ok(below), _) => Path::new(&format!("/proc/{task}")).join(below),
        _ if given.is_absolute() => match fs::read_link(format!("/proc/{task}/root")) {
            Ok(root) if root != Path::new("/") => root.join(given.strip_prefix("/").ok()?),
            _ => given,
        },
        (_, libc::AT_FDCWD) => fs::read_link(format!("/proc/{task}/cwd")).ok()?.join(given),
        _ => fs::read_link(format!("/proc/{task}/fd/{folder}")).ok()?.join(given),
    };
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => Some(parent.canonicalize().ok()?.join(name)),
        _ => whole.canonicalize().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_back_is_a_failed_flush_and_one_that_was_refused_is_not() {
        let wanted = Wanted {
            ack: Sign::Exit,
            reads: false,
            io_uring: false,
            data: false,
            daemons: false,
            on_disk: false,
        };
        let own = std::process::id() as pid_t;
        let mut reader = Reader::new(wanted, own, 0);
        let file = FileId { device: 1, inode: 1 };
        let mut failed = |number| match reader.act(own, own, Begun::WriteBack { file }, Err(number))
        {
            Some(Act::Flush { file: of, failed, .. }) if of == file => failed,
            act => {
                assert!(act.is_none(), "{act:?}");
                None
            }
        };
        assert_eq!(failed(libc::EIO), Some(libc::EIO));
        assert_eq!(failed(libc::EINVAL), None);
        assert!(reader.act(own, own, Begun::WriteBack { file }, Ok(0)).is_none());
    }
}
