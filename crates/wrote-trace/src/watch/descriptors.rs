//! The open files of the watched processes, as `/proc` shows them.
//!
//! What a descriptor leads to is kept until a call changes it, since most calls are writes to few
//! of them.

use crate::call::{FileId, How, Name};
use libc::{c_int, c_long, pid_t};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most descriptors of a file whose writes are compared.
const WRITERS_MAX: usize = 16;

/// The file that a descriptor leads to.
#[derive(Debug)]
pub struct Descriptor {
    /// The file.
    pub file: FileId,
    /// Its kind.
    pub kind: Kind,
    /// How writes through it are done.
    pub how: How,
    /// Whether each write goes to the file's end (`O_APPEND`).
    pub appends: bool,
    /// Its path when it was looked up; `None` of a file without a name.
    pub path: Option<PathBuf>,
    /// Its size when it was looked up, in bytes.
    pub size_bytes: u64,
    /// Its `fdinfo`, of a regular file: kept open, since each write asks for its position.
    info: Option<File>,
}

impl Descriptor {
    /// Where the next byte goes.
    pub fn position(&self) -> io::Result<u64> {
        field(self.info.as_ref().ok_or(ErrorKind::NotFound)?, "pos:", 10)
    }
}

/// Kinds of files, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file with, or once with, a name on a file system.
    Regular,
    /// A folder.
    Folder,
    /// A socket.
    Socket,
    /// A terminal, a pipe, or a file that a standard stream was led to.
    Stream,
    /// Anything else: a device, a file in memory.
    Other,
}

/// The descriptors of all processes.
#[derive(Debug)]
pub struct Descriptors {
    known: HashMap<(pid_t, i32), Descriptor>,
    /// The files that standard streams were led to before the program began: the program takes
    /// them for streams.
    streams: Vec<FileId>,
    /// The descriptors that write at their positions, by file, each with the bytes that it wrote
    /// without a gap.
    writers: HashMap<FileId, Vec<(pid_t, i32, Range<u64>)>>,
}

impl Descriptors {
    /// Makes those of processes that inherit the standard streams of this one.
    pub fn new() -> Descriptors {
        let stream = |descriptor| fs::metadata(format!("/proc/self/fd/{descriptor}")).ok();
        let streams = (0..=2).filter_map(stream).map(|found| id_of(&found)).collect();
        Descriptors { known: HashMap::new(), streams, writers: HashMap::new() }
    }

    /// Returns the file that a descriptor of a process leads to; `None` where it is not open.
    pub fn get(&mut self, process: pid_t, descriptor: i32) -> Option<&Descriptor> {
        match self.known.entry((process, descriptor)) {
            std::collections::hash_map::Entry::Occupied(known) => Some(known.into_mut()),
            std::collections::hash_map::Entry::Vacant(place) => {
                let mut found = look_up(process, descriptor).ok()?;
                if self.streams.contains(&found.file) {
                    found.kind = Kind::Stream;
                }
                Some(place.insert(found))
            }
        }
    }

    /// A descriptor leads elsewhere, or nowhere, from now on.
    pub fn forget(&mut self, process: pid_t, descriptor: i32) {
        if let Some(gone) = self.known.remove(&(process, descriptor))
            && let Some(writers) = self.writers.get_mut(&gone.file)
        {
            writers.retain(|(of, number, _)| (*of, *number) != (process, descriptor));
            if writers.is_empty() {
                self.writers.remove(&gone.file);
            }
        }
    }

    /// Whether a write that continues an earlier one of its descriptor goes over bytes of another
    /// descriptor, which has written since: neither knows of the other.
    pub fn has_overwritten(
        &mut self,
        process: pid_t,
        descriptor: i32,
        file: FileId,
        bytes: &Range<u64>,
    ) -> bool {
        let writers = self.writers.entry(file).or_default();
        let is_own = |of: &(pid_t, i32, Range<u64>)| (of.0, of.1) == (process, descriptor);
        // They are in the order of their last writes.
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

    /// A process has other descriptors, or has ended.
    pub fn forget_all(&mut self, process: pid_t) {
        self.writers.retain(|_, writers| {
            writers.retain(|(of, ..)| *of != process);
            !writers.is_empty()
        });
        self.known.retain(|(known, _), _| *known != process);
    }

    /// The descriptors from one to another are closed.
    pub fn forget_range(&mut self, process: pid_t, first: u32, last: u32) {
        let is_in = |descriptor: i32| (first..=last).contains(&(descriptor as u32));
        self.known.retain(|(known, descriptor), _| *known != process || !is_in(*descriptor));
    }
}

/// Whether two descriptors share a position (`kcmp(2)`); `None` where one is not open any more, or
/// the kernel can't say.
fn is_same(one: (pid_t, i32), other: (pid_t, i32)) -> Option<bool> {
    const KCMP_FILE: c_int = 0;
    // SAFETY: the call reads no memory of this process.
    let order = unsafe {
        libc::syscall(libc::SYS_kcmp, one.0, other.0, KCMP_FILE, one.1 as c_long, other.1 as c_long)
    };
    (order >= 0).then_some(order == 0)
}

fn look_up(process: pid_t, descriptor: i32) -> io::Result<Descriptor> {
    let link = format!("/proc/{process}/fd/{descriptor}");
    let found = fs::metadata(&link)?;
    let path = fs::read_link(&link)?;
    let kind = kind(&found, &path);
    // A removed file has this behind its name.
    let is_named = path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)");
    let info = match kind {
        Kind::Regular => Some(File::open(format!("/proc/{process}/fdinfo/{descriptor}"))?),
        _ => None,
    };
    let flags = info.as_ref().map_or(Ok(0), |info| field(info, "flags:", 8))? as i32;
    Ok(Descriptor {
        file: id_of(&found),
        kind,
        // O_SYNC contains O_DSYNC.
        appends: flags & libc::O_APPEND != 0,
        how: How { is_direct: flags & libc::O_DIRECT != 0, is_durable: flags & libc::O_DSYNC != 0 },
        path: Some(path).filter(|_| is_named),
        size_bytes: found.len(),
        info,
    })
}

/// Reads a field of an `fdinfo`, of those at its beginning.
fn field(info: &File, name: &str, radix: u32) -> io::Result<u64> {
    const BEGINNING_BYTES: usize = 128;
    let mut bytes = [0; BEGINNING_BYTES];
    let count = info.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| u64::from_str_radix(value.trim(), radix).ok());
    value.ok_or_else(|| io::Error::other(format!("fdinfo has no {name}")))
}

/// The id of a file.
pub fn id_of(found: &Metadata) -> FileId {
    FileId { device: found.dev(), inode: found.ino() }
}

/// The kind of a file, from what it is and where its descriptor says that it leads.
fn kind(found: &Metadata, path: &Path) -> Kind {
    let file_type = found.file_type();
    let is_memory = path.as_os_str().as_bytes().starts_with(b"/memfd:");
    // The kernel's own files, which take orders and keep nothing.
    let is_of_kernel = path.starts_with("/proc") || path.starts_with("/sys");
    if file_type.is_file() && !is_memory && !is_of_kernel {
        Kind::Regular
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_socket() {
        Kind::Socket
    } else if file_type.is_fifo() || (file_type.is_char_device() && is_terminal(path)) {
        Kind::Stream
    } else {
        Kind::Other
    }
}

fn is_terminal(path: &Path) -> bool {
    path.starts_with("/dev/pts") || path.file_name().is_some_and(|name| begins(name, b"tty"))
}

fn begins(name: &OsStr, with: &[u8]) -> bool {
    name.as_bytes().starts_with(with)
}

/// The name that a path is: the folder that it is in, and itself.
pub fn name_of(path: &Path) -> Option<Name> {
    let folder = fs::metadata(path.parent()?).ok()?;
    Some(Name { folder: id_of(&folder), path: path.to_owned() })
}
