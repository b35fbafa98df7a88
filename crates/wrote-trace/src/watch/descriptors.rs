//! Open files of the watched processes, read from `/proc`.
//!
//! Descriptors are cached until a call changes them, because most calls are writes to a few
//! descriptors.

use crate::call::{FileId, How, Name};
use libc::{c_int, c_long, pid_t};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

/// The maximum number of descriptors per file whose writes are compared.
const WRITERS_MAX: usize = 16;
/// The maximum number of open `fdinfo` files: each takes a page of kernel memory.
const INFOS_MAX: usize = 1 << 14;
/// The number of open files that this process needs in addition to the `fdinfo` files.
const OTHER_FILES: usize = 64;

/// A descriptor and its file.
#[derive(Debug)]
pub struct Descriptor {
    /// The file.
    pub file: FileId,
    /// The file's kind.
    pub kind: Kind,
    /// How the file is written.
    pub how: How,
    /// Whether the descriptor is open for writing.
    pub is_writable: bool,
    /// Whether each write goes to the file's end (`O_APPEND`).
    pub appends: bool,
    /// Whether the descriptor has been used to write.
    pub is_written: bool,
    /// The path when the descriptor was looked up; `None` for a file without a name.
    pub path: Option<PathBuf>,
    /// The output to be reported at the first write, if the file is not judged.
    output: Option<Box<Output>>,
    /// The `fdinfo` file, kept open if possible because each write needs the position.
    info: Option<File>,
}

/// A file or device that is not judged: the standard stream that it serves as, if any, and its
/// path.
pub type Output = (Option<&'static str>, PathBuf);

/// The type of a file, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file that has or had a name on a file system.
    Regular,
    Folder,
    Socket,
    /// A block device.
    Disk,
    /// The target of the program's standard output or error, but not a pipe between its children.
    Stream,
    /// Anything else, such as a pipe, a device or an in-memory file.
    Other,
}

impl Descriptor {
    /// Returns the current position, given the process and number of the descriptor.
    pub fn position(&self, process: pid_t, descriptor: i32) -> io::Result<u64> {
        match &self.info {
            Some(info) => field(info, "pos:", 10),
            None => field(&info_of(process, descriptor)?, "pos:", 10),
        }
    }
}

/// The descriptors of all processes.
#[derive(Debug)]
pub struct Descriptors {
    known: HashMap<(pid_t, i32), Descriptor>,
    /// The number of open `fdinfo` files, and their maximum.
    infos: usize,
    infos_max: usize,
    /// The files that were the standard output and error at the start, which are treated as
    /// streams.
    streams: [Option<FileId>; 2],
    /// Files and devices that were written to and are not judged.
    pub outputs: BTreeSet<Output>,
    /// The descriptors that write at their positions, by file, each with the range that it has
    /// written without a gap.
    writers: HashMap<FileId, Vec<(pid_t, i32, Range<u64>)>>,
}

impl Descriptors {
    /// Creates the cache. The watched processes have the standard output and error of `process`;
    /// this process may have up to `files_max` open files.
    pub fn new(process: pid_t, files_max: usize) -> Descriptors {
        let stream = |descriptor| fs::metadata(format!("/proc/{process}/fd/{descriptor}")).ok();
        let streams = [1, 2].map(|number| stream(number).map(|found| FileId::of(&found)));
        let infos_max = files_max.saturating_sub(OTHER_FILES).min(INFOS_MAX);
        let (known, writers) = (HashMap::new(), HashMap::new());
        let outputs = BTreeSet::new();
        Descriptors { known, infos: 0, infos_max, streams, outputs, writers }
    }

    /// Returns a descriptor of a process; `None` if it is not open.
    pub fn get(&mut self, process: pid_t, descriptor: i32) -> Option<&mut Descriptor> {
        match self.known.entry((process, descriptor)) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => {
                let mut found = look_up(process, descriptor).ok()?;
                let stream = self.streams.iter().position(|of| *of == Some(found.file));
                if let (Kind::Regular | Kind::Disk, Some(path)) = (found.kind, &found.path) {
                    let as_stream = stream.map(|at| ["standard output", "standard error"][at]);
                    let is_aside = as_stream.is_some() || found.kind == Kind::Disk;
                    found.output = is_aside.then(|| Box::new((as_stream, path.clone())));
                }
                if stream.is_some() {
                    found.kind = Kind::Stream;
                }
                // The descriptors opened first keep their `fdinfo` files. If descriptors took
                // turns, each write would have to reopen a file.
                found.info.take_if(|_| self.infos >= self.infos_max);
                self.infos += usize::from(found.info.is_some());
                Some(place.insert(found))
            }
        }
    }

    /// Notes a write to a descriptor whose file is not judged; does nothing for other files.
    pub fn note_output(&mut self, process: pid_t, descriptor: i32) {
        let known = self.known.get_mut(&(process, descriptor));
        self.outputs.extend(known.and_then(|known| known.output.take()).map(|output| *output));
    }

    /// Forgets a descriptor that was closed or replaced.
    pub fn forget(&mut self, process: pid_t, descriptor: i32) {
        let Some(gone) = self.known.remove(&(process, descriptor)) else { return };
        self.infos -= usize::from(gone.info.is_some());
        if let Some(writers) = self.writers.get_mut(&gone.file) {
            writers.retain(|(of, number, _)| (*of, *number) != (process, descriptor));
            if writers.is_empty() {
                self.writers.remove(&gone.file);
            }
        }
    }

    /// Returns whether a write overwrites bytes that another descriptor has just written, although
    /// it continues this descriptor's own earlier write. In that case, neither writer has seen the
    /// other's bytes.
    pub fn has_overwritten(
        &mut self,
        process: pid_t,
        descriptor: i32,
        file: FileId,
        bytes: &Range<u64>,
    ) -> bool {
        let writers = self.writers.entry(file).or_default();
        let is_own = |of: &(pid_t, i32, Range<u64>)| (of.0, of.1) == (process, descriptor);
        // The writers are ordered by their last writes.
        let own = writers.iter().position(is_own);
        let before = own.map(|at| writers.remove(at).2).filter(|run| run.end == bytes.start);
        let since = &writers[own.unwrap_or(writers.len())..];
        let is_race = before.is_some()
            && since.iter().any(|(other, number, run)| {
                run.start < bytes.end
                    && bytes.start < run.end
                    && is_same((process, descriptor), (*other, *number)) == Some(false)
            });
        if writers.len() == WRITERS_MAX {
            writers.remove(0);
        }
        let start = before.map_or(bytes.start, |run| run.start);
        writers.push((process, descriptor, start..bytes.end));
        is_race
    }

    /// Forgets all descriptors of a process that has ended or replaced them.
    pub fn forget_all(&mut self, process: pid_t) {
        self.writers.retain(|_, writers| {
            writers.retain(|(of, ..)| *of != process);
            !writers.is_empty()
        });
        self.retain(|(known, _)| known != process);
    }

    /// Forgets a range of closed descriptors.
    pub fn forget_range(&mut self, process: pid_t, first: u32, last: u32) {
        let is_in = |descriptor: i32| (first..=last).contains(&(descriptor as u32));
        self.retain(|(known, descriptor)| known != process || !is_in(descriptor));
    }

    fn retain(&mut self, is_kept: impl Fn((pid_t, i32)) -> bool) {
        self.known.retain(|place, known| {
            let is_kept = is_kept(*place);
            self.infos -= usize::from(!is_kept && known.info.is_some());
            is_kept
        });
    }
}

/// Returns whether two descriptors share a position (`kcmp(2)`); `None` if one is no longer open,
/// or the kernel does not report it.
pub fn is_same(one: (pid_t, i32), other: (pid_t, i32)) -> Option<bool> {
    const KCMP_FILE: c_int = 0;
    // SAFETY: the call reads no memory of this process.
    let order = unsafe {
        libc::syscall(libc::SYS_kcmp, one.0, other.0, KCMP_FILE, one.1 as c_long, other.1 as c_long)
    };
    (order >= 0).then_some(order == 0)
}

fn look_up(process: pid_t, descriptor: i32) -> io::Result<Descriptor> {
    let link = link_of(process, descriptor);
    let found = fs::metadata(&link)?;
    let path = fs::read_link(&link)?;
    let kind = kind(&found, &path);
    let info = match kind {
        Kind::Regular => Some(info_of(process, descriptor)?),
        _ => None,
    };
    let flags = info.as_ref().map_or(Ok(0), |info| field(info, "flags:", 8))? as i32;
    Ok(Descriptor {
        file: FileId::of(&found),
        kind,
        is_writable: flags & libc::O_ACCMODE != libc::O_RDONLY,
        // O_SYNC includes O_DSYNC.
        appends: flags & libc::O_APPEND != 0,
        how: How {
            is_direct: flags & libc::O_DIRECT != 0,
            is_durable: flags & libc::O_DSYNC != 0,
            is_atomic: false,
        },
        is_written: false,
        output: None,
        path: Some(path).filter(|path| is_named(path)),
        info,
    })
}

fn link_of(process: pid_t, descriptor: i32) -> String {
    format!("/proc/{process}/fd/{descriptor}")
}

/// Returns the current path of an open file; `None` for a file without a name.
pub fn path(process: pid_t, descriptor: i32) -> Option<PathBuf> {
    fs::read_link(link_of(process, descriptor)).ok().filter(|path| is_named(path))
}

/// Returns whether a path from `/proc` is the name of a file.
pub fn is_named(path: &Path) -> bool {
    // /proc appends this to the name of a removed file.
    path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)")
}

fn info_of(process: pid_t, descriptor: i32) -> io::Result<File> {
    File::open(format!("/proc/{process}/fdinfo/{descriptor}"))
}

/// Reads a field near the start of an `fdinfo`.
fn field(info: &File, name: &str, radix: u32) -> io::Result<u64> {
    const BEGINNING_BYTES: usize = 128;
    let mut bytes = [0; BEGINNING_BYTES];
    let count = info.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| u64::from_str_radix(value.trim(), radix).ok());
    value.ok_or_else(|| io::Error::other(format!("fdinfo has no {name}")))
}

/// Classifies a file by its metadata and the path of its descriptor.
fn kind(found: &Metadata, path: &Path) -> Kind {
    let file_type = found.file_type();
    let is_memory = path.as_os_str().as_bytes().starts_with(b"/memfd:");
    // Files of these kernel interfaces store nothing.
    let is_of_kernel = path.starts_with("/proc") || path.starts_with("/sys");
    if file_type.is_file() && !is_memory && !is_of_kernel {
        Kind::Regular
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_socket() {
        Kind::Socket
    } else if file_type.is_block_device() {
        Kind::Disk
    } else {
        Kind::Other
    }
}

/// Returns the name that a path refers to: its folder's identity, and the path. Returns `None` if
/// the folder can't be examined.
pub fn name_of(path: &Path) -> Option<Name> {
    let folder = fs::metadata(path.parent()?).ok()?;
    Some(Name { folder: FileId::of(&folder), path: path.to_owned() })
}

/// Returns a copy of a process's descriptor.
///
/// # Errors
///
/// The errors of `pidfd_getfd(2)`.
pub fn copied(process: pid_t, descriptor: i32) -> rustix::io::Result<File> {
    let process = Pid::from_raw(process).ok_or(Errno::SRCH)?;
    if descriptor < 0 {
        return Err(Errno::BADF);
    }
    let process = pidfd_open(process, PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsRawFd;

    #[test]
    fn files_written_in_turn_keep_their_infos_as_far_as_the_limit_permits() {
        const FILES: usize = 200;
        let own = std::process::id() as pid_t;
        let files: Vec<File> = (0..FILES).map(|_| tempfile::tempfile().unwrap()).collect();
        for (files_max, kept) in [(OTHER_FILES + FILES, FILES), (OTHER_FILES + 50, 50), (0, 0)] {
            let mut descriptors = Descriptors::new(own, files_max);
            for turn in 1..=2 {
                for (index, file) in files.iter().enumerate() {
                    let position = (turn * index) as u64;
                    (&*file).seek(SeekFrom::Start(position)).unwrap();
                    let number = file.as_raw_fd();
                    let known = descriptors.get(own, number).unwrap();
                    assert_eq!(known.position(own, number).unwrap(), position);
                }
                assert_eq!(descriptors.infos, kept);
                let open = descriptors.known.values().filter(|known| known.info.is_some());
                assert_eq!(open.count(), kept);
            }
            descriptors.forget(own, files[0].as_raw_fd());
            assert_eq!(descriptors.infos, kept.saturating_sub(1));
        }
    }
}
