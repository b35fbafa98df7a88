//! The shared mappings whose stores are observed. Before each call that may make stores durable,
//! remove a mapping or end a process, this module finds out which pages of the file were stored to.

use super::maps::{self, Mapping};
use super::pages::{Compared, Noted};
use crate::call::{Act, FileId, How, Stores};
use libc::{c_int, pid_t};
use rangemap::RangeSet;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The maximum total size of the mappings that are observed. Where the kernel notes stores, their
/// page tables need up to 32 MiB, and examining each GB took 0.4 ms.
const NOTED_BYTES_MAX: u64 = 16 << 30;
/// The maximum total size of the mappings that are compared. Each comparison reads all of them.
const COMPARED_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of mappings that are followed. Each needs a descriptor.
const AREAS_MAX: usize = 1 << 10;

/// A shared mapping through which a process may store.
#[derive(Debug)]
pub struct Area {
    process: pid_t,
    mapping: Mapping,
    /// A handle of the file. It does not count as an open file, and keeps the path in `mapping`
    /// valid.
    handle: Rc<File>,
    /// Whether stores are found by comparison.
    is_compared: bool,
    /// Whether the process is known to be ending, and stores no more.
    is_ended: bool,
    /// The number of the mapping, in order of creation.
    number: u64,
}

impl Area {
    /// Returns the mapped file.
    pub fn file(&self) -> FileId {
        self.mapping.file
    }

    /// Returns all memory of the mapping.
    pub fn all(&self) -> Range<u64> {
        self.mapping.memory.clone()
    }

    /// Returns the part of the mapping that is within this memory of a process.
    pub fn within(&self, process: pid_t, memory: &Range<u64>) -> Range<u64> {
        let Range { start, end } = self.mapping.memory;
        match process == self.process {
            true => start.max(memory.start)..end.min(memory.end),
            false => 0..0,
        }
    }

    fn size(&self) -> u64 {
        self.mapping.memory.end - self.mapping.memory.start
    }

    /// Returns the bytes of the file that were stored to through this memory since the last
    /// examination.
    fn stored(
        &self,
        noted: Option<&Noted>,
        sums: &mut HashMap<FileId, Compared>,
        memory: &Range<u64>,
    ) -> io::Result<RangeSet<u64>> {
        let pages = if self.is_compared {
            let opened = File::open(&self.mapping.path)?;
            let sums = sums.entry(self.file()).or_default();
            sums.changed(&opened, &self.mapping.bytes(memory))?
        } else {
            let stored = noted.ok_or(io::ErrorKind::NotFound)?.stored(memory)?;
            stored.iter().map(|memory| self.mapping.bytes(memory)).collect()
        };
        let mut stored: RangeSet<u64> = pages.into_iter().collect();
        stored.remove(self.handle.metadata()?.len()..u64::MAX);
        Ok(stored)
    }

    fn part(&self, memory: Range<u64>) -> Area {
        let before = memory.start - self.mapping.memory.start;
        let at_byte = self.mapping.at_byte + before;
        let path = self.mapping.path.clone();
        let mapping = Mapping { memory, at_byte, path, ..self.mapping };
        Area { mapping, handle: Rc::clone(&self.handle), ..*self }
    }
}

/// All mappings whose stores are observed.
#[derive(Debug, Default)]
pub struct Areas {
    areas: Vec<Area>,
    /// The processes with a mapping; `None` if the kernel does not note their stores.
    noted: HashMap<pid_t, Option<Noted>>,
    /// The checksums of each file's pages, for all mappings together: a store through one mapping
    /// is visible in the others.
    sums: HashMap<FileId, Compared>,
    /// The number of the latest mapping.
    pub last: u64,
    /// Whether stores can only be found by comparison, because `wrote` can't make calls in a
    /// process that it joined.
    pub compares: bool,
}

impl Areas {
    /// Follows a new mapping of a process whose `task` is stopped. `path` leads to the file.
    pub fn add(
        &mut self,
        (process, task): (pid_t, pid_t),
        (memory, at_byte): (Range<u64>, u64),
        file: FileId,
        path: &Path,
    ) -> Stores {
        let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
        let is_it = |handle: &File| {
            handle.metadata().is_ok_and(|of| of.is_file() && FileId::of(&of) == file)
        };
        let Some(handle) = handle.ok().filter(is_it) else { return Stores::Unseen };
        let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let mapping = Mapping { memory, file, path, at_byte, inode: file.inode };
        let handle = Rc::new(handle);
        self.last += 1;
        let (number, is_compared, is_ended) = (self.last, false, false);
        let mut new = Area { process, mapping, handle, is_compared, is_ended, number };
        let bytes: u64 = self.areas.iter().map(Area::size).sum();
        if bytes + new.size() > NOTED_BYTES_MAX || self.areas.len() == AREAS_MAX {
            return Stores::Beyond;
        }
        let compares = self.compares;
        let begun = || if compares { None } else { Noted::begin(process, task).ok() };
        let noted = self.noted.entry(process).or_insert_with(begun);
        let is_noted = noted.as_mut().is_some_and(|noted| noted.add(&new.mapping.memory).is_ok());
        if !is_noted {
            let compared = || self.areas.iter().filter(|area| area.is_compared);
            if compared().map(Area::size).sum::<u64>() + new.size() > COMPARED_BYTES_MAX {
                return Stores::Beyond;
            }
            let areas = &self.areas;
            self.sums.retain(|of, _| areas.iter().any(|area| area.file() == *of));
            new.is_compared = true;
            let of_file = compared().filter(|area| area.file() == file);
            let known: RangeSet<u64> = of_file.map(|of| of.mapping.bytes(&of.all())).collect();
            for bytes in known.gaps(&new.mapping.bytes(&new.all())) {
                let memory = new.mapping.memory_of(&bytes);
                if new.stored(None, &mut self.sums, &memory).is_err() {
                    return Stores::Unseen;
                }
            }
        }
        self.areas.push(new);
        Stores::Seen
    }

    /// Follows the mappings that a new process has inherited. Returns the mappings that cannot be
    /// followed.
    pub fn born(&mut self, process: pid_t) -> Vec<Act> {
        let is_known = |of: &pid_t| *of == process || shares_memory(*of, process);
        if self.last == 0 || self.noted.keys().any(is_known) {
            return Vec::new();
        }
        let mut unseen = Vec::new();
        // The parent may have removed its own mappings before the child is first seen.
        for own in maps::writable(process).0 {
            let parents = self.areas.iter().find(|area| own.may_be_of(area.file()));
            // The path of a followed mapping leads to its file even if the file has no name.
            let (file, path) = match parents {
                Some(area) => (area.file(), area.mapping.path.clone()),
                None => (own.file, own.path),
            };
            match self.add((process, process), (own.memory, own.at_byte), file, &path) {
                Stores::Seen => {}
                stores => unseen.push(Act::Map { file, stores }),
            }
        }
        unseen
    }

    /// Returns the bytes that were stored to since the last examination, in the memory that `meant`
    /// selects, and the mappings that can no longer be followed.
    pub fn look(&mut self, meant: impl Fn(&Area) -> Range<u64>) -> Vec<Act> {
        let (mut acts, noted, sums) = (Vec::new(), &self.noted, &mut self.sums);
        self.areas.retain_mut(|area| {
            let (file, memory) = (area.file(), meant(area));
            if memory.is_empty() {
                return true;
            }
            let noted = noted.get(&area.process).and_then(Option::as_ref);
            let Ok(stored) = area.stored(noted, sums, &memory) else {
                acts.push(Act::Map { file, stores: Stores::Unseen });
                return false;
            };
            acts.extend(stored.into_iter().map(|bytes| {
                let (asked_bytes, how) = (bytes.end - bytes.start, How::default());
                Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: false }
            }));
            true
        });
        acts
    }

    /// Returns whether a followed mapping of a process overlaps this memory.
    pub fn overlaps(&self, process: pid_t, memory: &Range<u64>) -> bool {
        self.areas.iter().any(|area| !area.within(process, memory).is_empty())
    }

    /// Returns the mapping that contains all of this memory; `None` if there is none.
    pub fn with(&self, process: pid_t, memory: &Range<u64>) -> Option<&Mapping> {
        let is_it = |area: &&Area| area.within(process, memory) == *memory;
        self.areas.iter().find(is_it).map(|area| &area.mapping)
    }

    /// Forgets the mappings, and the parts of mappings, that lie in this memory of a process.
    /// Mappings with a number above `last` are kept, because another thread may have created them
    /// there.
    pub fn remove(&mut self, process: pid_t, memory: &Range<u64>, last: u64) {
        for area in std::mem::take(&mut self.areas) {
            let Range { start, end } = area.within(process, memory);
            if start >= end || area.number > last {
                self.areas.push(area);
                continue;
            }
            for rest in [area.mapping.memory.start..start, end..area.mapping.memory.end] {
                self.areas.extend((!rest.is_empty()).then(|| area.part(rest)));
            }
        }
    }

    /// Examines the stores of a process that is about to end or to execute another program.
    pub fn end(&mut self, process: pid_t) -> Vec<Act> {
        let of_process = self.areas.iter_mut().filter(|area| area.process == process);
        of_process.for_each(|area| area.is_ended = true);
        self.look(|area| if area.process == process { area.all() } else { 0..0 })
    }

    /// Forgets a process. Returns its files that may have changed since the last examination.
    pub fn forget(&mut self, process: pid_t) -> Vec<Act> {
        self.noted.remove(&process);
        let gone = self.areas.extract_if(.., |area| area.process == process);
        let unseen = gone.filter(|area| !area.is_ended);
        unseen.map(|area| Act::Map { file: area.file(), stores: Stores::Unseen }).collect()
    }

    /// Returns the effect of `msync` with `MS_SYNC` on this memory; `None` if no followed mapping
    /// contains its start.
    pub fn flushed(&self, process: pid_t, memory: &Range<u64>) -> Option<Act> {
        let own = self.areas.iter().filter(|area| area.process == process);
        let mut own: Vec<_> = own.map(|area| &area.mapping).collect();
        own.sort_by_key(|mapping| mapping.memory.start);
        maps::flushed(&own, memory)
    }

    /// Returns the path and size of a mapped file; `None` if no mapping of it is followed.
    pub fn found(&self, file: FileId) -> Option<(PathBuf, u64)> {
        let area = self.areas.iter().find(|area| area.file() == file)?;
        Some((fs::read_link(&area.mapping.path).ok()?, area.handle.metadata().ok()?.len()))
    }

    /// Reads bytes that were stored to a mapped file; `None` if they can't be read.
    pub fn data(&self, file: FileId, bytes: &Range<u64>) -> Option<Vec<u8>> {
        let area = self.areas.iter().find(|area| area.file() == file)?;
        let mut data = vec![0; (bytes.end - bytes.start) as usize];
        let opened = File::open(&area.mapping.path).ok()?;
        opened.read_exact_at(&mut data, bytes.start).ok().map(|()| data)
    }
}

/// Returns whether two processes share their memory, as after `vfork(2)`.
fn shares_memory(one: pid_t, other: pid_t) -> bool {
    const KCMP_VM: c_int = 1;
    // SAFETY: the call reads no memory of this process.
    (unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) }) == 0
}
