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
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use uring::Change;
use wrote::Survives;

/// The largest write whose data is read. A call writes at most 2 GiB, but a clone may copy more.
const DATA_BYTES_MAX: u64 = 1 << 31;
/// The note on a program that uses a ring that is not followed.
pub const IO_URING_UNSEEN: &str = "writes by io_uring are not seen";
const AIO_UNSEEN: &str = "writes by io_submit (kernel AIO) are not seen";

/// A call in progress, with the information needed when it returns. A call that is sure to have an
/// effect if it succeeds contains that effect. A flush contains the files whose unobserved changes
/// it covers, each with the moment up to which it covers them.
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
        /// The data; empty if not needed or not yet known.
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
    /// A change to a ring of io_uring.
    Ring(Change),
    /// A new context of kernel AIO, whose address is stored at this address.
    Context(u64),
}

impl Begun {
    /// Returns the descriptor of the file that this call changes, if any.
    pub fn descriptor(&self) -> Option<i32> {
        match self {
            Begun::Write { descriptor, .. }
            | Begun::Clone { descriptor }
            | Begun::Allocate { descriptor, .. } => Some(*descriptor),
            _ => None,
        }
    }

    /// Removes and returns the data of a write.
    pub fn take_data(&mut self) -> Vec<u8> {
        match self {
            Begun::Write { data, .. } => std::mem::take(data),
            _ => Vec::new(),
        }
    }

    /// Discards the data of an operation that waits for others. The data was read too early,
    /// because the others may still fill that memory.
    fn doubt_data(&mut self) {
        if let Begun::Write { is_zeros, data, .. } = self {
            *is_zeros = false;
            data.clear();
        }
    }

    /// Discards what cannot be known of a call that is examined after its end.
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
    /// The file's end, regardless of any offset.
    End,
}

/// How to handle a call at its start.
#[derive(Debug)]
pub enum Begin {
    /// Ignore the call.
    Pass,
    /// Let the call run, and examine it again when it returns.
    Await(Begun),
    /// Make the call fail with this error, and note the reason.
    Refuse(i32, &'static str),
    /// Let the call run. It submits these operations, each with its key, to this queue.
    Queued(QueueId, Vec<(u64, Operation)>),
    /// Let the call run, and note that its effect is not observed.
    Unseen(&'static str),
}

/// Decodes calls.
#[derive(Debug)]
pub struct Reader {
    wanted: Wanted,
    descriptors: Descriptors,
    /// The files that have been reported.
    met: HashSet<FileId>,
    /// The paths at which pending calls may create a file: the number of these calls, and the file
    /// once one of them has been reported to have created it.
    making: HashMap<PathBuf, (u32, Option<FileId>)>,
    devices: HashSet<u64>,
    mapped: Mapped,
    queues: Queues,
    areas: Areas,
    /// Files and devices first seen in the current call, which are reported before it.
    news: Vec<Act>,
}

impl Reader {
    /// Creates a reader. The program has the standard streams of the process `streams_of`; the
    /// calling process may have up to `files_max` open files.
    pub fn new(wanted: Wanted, streams_of: pid_t, files_max: usize) -> Reader {
        Reader {
            wanted,
            descriptors: Descriptors::new(streams_of, files_max),
            met: HashSet::new(),
            making: HashMap::new(),
            devices: HashSet::new(),
            mapped: Mapped::default(),
            queues: Queues::default(),
            areas: Areas::default(),
            news: Vec::new(),
        }
    }

    /// Examines what a process may have written before it was watched: its files that are open for
    /// writing, and its mappings. Returns notes on the methods that it may use to write unobserved.
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

    /// Returns and clears the outputs that were written to and are not judged.
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

    /// Follows the mappings that a new process has inherited.
    pub fn born(&mut self, process: pid_t) {
        let mut unseen = self.areas.born(process);
        // Devices may be mapped, too.
        unseen.retain(|act| matches!(act, Act::Map { file, .. } if self.met.contains(file)));
        self.add_stored(unseen);
    }

    /// Examines what a process that is about to end has stored.
    pub fn end(&mut self, process: pid_t) {
        let stored = self.areas.end(process);
        self.add_stored(stored);
    }

    /// Examines what was stored through the mappings for which `is_meant` holds.
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

    /// Returns the files, devices and stores found since the previous call of this function.
    pub fn news(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.news)
    }

    /// Returns the next queued operation that has ended; `None` if there is none.
    pub fn next_ended(&mut self) -> Option<Ended> {
        self.queues.next_ended()
    }

    /// Returns why operations were missed since the previous call of this function; `None` if none
    /// were.
    pub fn take_doubt(&mut self) -> Option<&'static str> {
        self.queues.doubt.take()
    }

    /// Returns the data of a write that was found by examining a mapping; empty if not needed or
    /// unreadable.
    pub fn stored_data(&self, act: &Act) -> Vec<u8> {
        match act {
            Act::Write { file, bytes, .. } if self.wanted.data => {
                self.areas.data(*file, bytes).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the data of a write, either as read from the program's memory or read back from the
    /// file. It is empty if not needed or unreadable.
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
        // The program's data is preferred, because another call may have changed the file.
        if known.len() as u64 >= count {
            known.truncate(count as usize);
            return known;
        }
        let open = self.descriptors.get(process, descriptor);
        let path = open.and_then(|open| open.path.clone());
        let read = || {
            let mut data = vec![0; count as usize];
            // The file is opened again, because the program's descriptor may be write-only.
            let file = File::open(format!("/proc/{process}/fd/{descriptor}"));
            // A process that has ended has no descriptors, so the path is used.
            let path = path.filter(|_| file.is_err());
            let file = path.map_or(file, File::open)?;
            file.read_exact_at(&mut data, bytes.start).map(|()| data)
        };
        read().unwrap_or_default()
    }

    /// Reports an existing file that a call refers to.
    fn meet(&mut self, path: Option<&Path>, file: FileId, size_bytes: u64) {
        self.meet_device(path, file.device);
        if self.met.insert(file) {
            let name = path.and_then(name_of);
            let making = path.and_then(|path| self.making.get_mut(path));
            self.news.push(match making {
                // The call that created the file has not been seen to end.
                Some((_, made)) => {
                    *made = Some(file);
                    Act::Made { file, name }
                }
                None => Act::Found { file, name, size_bytes },
            });
        }
    }

    /// Notes the end of a call that may have created a file. Returns whether the file is reported
    /// already, because several calls created it at once.
    fn is_made_already(&mut self, process: pid_t, begun: &Begun, result: Result<u64, i32>) -> bool {
        let Begun::Open { path: Some(path), size_before: None, .. } = begun else { return false };
        let Some((calls, made)) = self.making.get_mut(path) else { return false };
        let file = result.ok().and_then(|descriptor| {
            self.descriptors.forget(process, descriptor as i32);
            Some(self.descriptors.get(process, descriptor as i32)?.file)
        });
        let is_repeated = file.is_some() && file == *made;
        (*calls, *made) = (*calls - 1, file.or(*made));
        self.making.retain(|_, (calls, _)| *calls > 0);
        is_repeated
    }

    /// Forgets files, so that they are reported again before their next call.
    pub fn forget_files(&mut self, files: &[FileId]) {
        for file in files {
            self.met.remove(file);
            self.mapped.forget(*file);
        }
    }

    fn meet_device(&mut self, path: Option<&Path>, device: u64) {
        let Some(path) = path.filter(|_| !self.devices.contains(&device)) else { return };
        // In another mount namespace, the path leads to another file.
        let is_here = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.dev() == device);
        let here = [Some(path), path.parent()].into_iter().flatten().find(is_here);
        let target = here.and_then(|path| wrote::device::examine(path).ok());
        if target.is_some() {
            self.devices.insert(device);
        }
        let target = target.unwrap_or_default();
        // Shared memory (`/dev/shm`) is never on a disk.
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

/// Returns the pages that contain this memory.
fn pages(start: u64, count: u64) -> Range<u64> {
    let end = start.saturating_add(count).div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    start / PAGE_BYTES * PAGE_BYTES..end
}

/// Returns the effect of a size change; `None` if the size is the same. If `whole`, a truncation to
/// 0 bytes is an [`Act::Empty`].
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
