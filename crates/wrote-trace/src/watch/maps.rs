//! The shared mappings through which processes may write, read from `/proc`, and the files that may
//! have changed unobserved.

use crate::call::{Act, FileId};
use libc::pid_t;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A shared mapping of a file with write permission.
#[derive(Debug)]
pub struct Mapping {
    /// The memory addresses.
    pub memory: Range<u64>,
    /// The mapped file.
    pub file: FileId,
    /// A path that leads to the file.
    pub path: PathBuf,
    /// The offset in the file at which the mapping begins.
    pub at_byte: u64,
    /// The inode as the kernel lists it in `/proc`. Btrfs and old overlays list a different device
    /// there than in `stat(2)`.
    pub inode: u64,
}

impl Mapping {
    /// Returns whether the mapping may be of this file.
    pub fn may_be_of(&self, file: FileId) -> bool {
        self.file == file || self.inode == file.inode
    }

    /// Returns the path without the prefix that leads to the process's root.
    pub fn seen_here(&self, process: pid_t) -> PathBuf {
        let below = self.path.strip_prefix(format!("/proc/{process}/root"));
        Path::new("/").join(below.unwrap_or(&self.path))
    }

    /// Returns the bytes of the file that are mapped at these addresses; empty if none are.
    pub fn bytes(&self, memory: &Range<u64>) -> Range<u64> {
        let place = |address: u64| {
            address.clamp(self.memory.start, self.memory.end) - self.memory.start + self.at_byte
        };
        place(memory.start)..place(memory.end)
    }

    /// Returns the addresses at which these bytes of the file are mapped.
    pub fn memory_of(&self, bytes: &Range<u64>) -> Range<u64> {
        let place = |byte: u64| byte - self.at_byte + self.memory.start;
        place(bytes.start)..place(bytes.end)
    }
}

/// Returns all tasks, each with its process.
pub type Tasks<'a> = &'a dyn Fn() -> Vec<(pid_t, pid_t)>;

/// The files that may have changed unobserved since their last flush.
#[derive(Debug, Default)]
pub struct Mapped {
    /// The files, each with the moment at which it was last mapped.
    unseen: HashMap<FileId, u64>,
    moment: u64,
    /// Whether a mapping may become writable later.
    pub may_protect: bool,
}

impl Mapped {
    /// Notes that a file may change unobserved from now on.
    pub fn loosen(&mut self, file: FileId) {
        self.moment += 1;
        self.unseen.insert(file, self.moment);
    }

    /// Forgets a file. Its changes remain unobserved.
    pub fn forget(&mut self, file: FileId) {
        self.unseen.remove(&file);
    }

    /// Returns the files whose unobserved changes so far are covered by a flush of the files for
    /// which `is_meant` holds. Files to which a process can still write are left out, because it
    /// may do so after the flush.
    pub fn covered(&self, is_meant: impl Fn(FileId) -> bool, tasks: Tasks) -> Vec<(FileId, u64)> {
        let mut covers: Vec<_> = self.unseen.iter().map(|(file, at)| (*file, *at)).collect();
        covers.retain(|(file, _)| is_meant(*file));
        let mut examined = HashSet::new();
        for (task, process) in if covers.is_empty() { Vec::new() } else { tasks() } {
            if !examined.contains(&process) {
                let (mappings, has_memory) = writable(task);
                let is_mapped = |file| mappings.iter().any(|mapping| mapping.may_be_of(file));
                covers.retain(|(file, _)| !is_mapped(*file));
                examined.extend(has_memory.then_some(process));
            }
        }
        covers
    }

    /// Handles the end of a flush of a file that [`Mapped::covered`] returned. Returns whether the
    /// flush covers all unobserved changes.
    pub fn cover(&mut self, (file, at): (FileId, u64)) -> bool {
        let is_all = self.unseen.get(&file) == Some(&at);
        if is_all {
            self.unseen.remove(&file);
        }
        is_all
    }
}

/// Returns the effect of `msync` with `MS_SYNC` on these addresses; `None` if no mapping contains
/// the first address. Mappings without write permission are left out, because the kernel skips a
/// mapping if its file was opened for reading.
pub fn flushed(mappings: &[&Mapping], memory: &Range<u64>) -> Option<Act> {
    let first = mappings.iter().find(|of| of.memory.contains(&memory.start))?;
    let mut bytes = first.bytes(memory);
    for next in mappings.iter().filter(|next| next.file == first.file) {
        let more = next.bytes(memory);
        bytes.end = if more.start == bytes.end { more.end } else { bytes.end };
    }
    let (file, found) = (first.file, fs::metadata(&first.path).ok()?);
    Some(match bytes.start == 0 && bytes.end >= found.len() {
        true => Act::Flush { file, failed: None, is_data: true },
        false => Act::FlushRange { file, bytes },
    })
}

/// Returns whether a process has a queue of kernel AIO.
pub fn has_aio(process: pid_t) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.contains("/[aio]"))
}

/// Returns the writable shared mappings of a process or thread, and whether it has any memory: a
/// thread that has ended before its process has none.
pub fn writable(task: pid_t) -> (Vec<Mapping>, bool) {
    let maps = fs::read(format!("/proc/{task}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    (maps.lines().filter_map(|line| mapping(task, line)).collect(), !maps.is_empty())
}

/// Parses a line such as `7f00-7f10 rw-s 00000000 08:01 12  /a`; `None` for other mappings.
fn mapping(task: pid_t, line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_meant = matches!(fields.next()?.as_bytes(), [_, b'w', _, b's', ..]);
    let (at_byte, device) = is_meant.then_some((fields.next()?, fields.next()?))?;
    let (major, minor) = device.split_once(':')?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let path = line.find('/').map_or("", |at| &line[at..]);
    let path = PathBuf::from(format!("/proc/{task}/root{path}"));
    let device = libc::makedev(hexadecimal(major)? as u32, hexadecimal(minor)? as u32);
    // A removed file is no longer at its path, even if it has other names.
    let file = fs::metadata(&path).map_or(FileId { device, inode }, |found| FileId::of(&found));
    let memory = hexadecimal(start)?..hexadecimal(end)?;
    Some(Mapping { memory, file, path, at_byte: hexadecimal(at_byte)?, inode })
}
