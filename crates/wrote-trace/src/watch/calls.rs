//! Translates system calls that change files into their effects.

mod aio;
mod begin;
mod done;
mod queue;
mod queued;
mod uring;

use super::descriptors::{self, Descriptors, Output, name_of};
use super::mapped::{Area, Areas};
use super::maps::{self, Mapped};
use super::pages::PAGE_BYTES;
use crate::call::{Act, FileId, How, Storage, Stores};
use crate::wanted::Wanted;
use libc::pid_t;
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
}

/// Returns the pages that have these bytes of memory.
fn pages(start: u64, count: u64) -> Range<u64> {
    let end = start.saturating_add(count).div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    start / PAGE_BYTES * PAGE_BYTES..end
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
