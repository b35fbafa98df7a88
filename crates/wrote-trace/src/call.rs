//! The model's input: each call's effect on files, and its time.

use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Identifies a file or folder by device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// The device number, as in `stat(2)`.
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    /// Returns the identity of a file, given its metadata.
    pub fn of(found: &Metadata) -> FileId {
        FileId { device: found.dev(), inode: found.ino() }
    }
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The folder that contains the name.
    pub folder: FileId,
    /// The full path.
    pub path: PathBuf,
}

/// A completed call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// When the call began, in nanoseconds since the program started.
    pub at_ns: u64,
    /// The duration in nanoseconds, from the end of the stop before the call to the stop after it.
    #[serde(default)]
    pub took_ns: u64,
    /// The location in the program's source, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceId>,
    /// The thread that made the call.
    #[serde(skip)]
    pub task: u32,
    /// The effect.
    pub act: Act,
    /// The end times of the operations that a kernel queue completed before this operation began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u64>,
    /// The bytes of a write; empty unless the trace is being recorded.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// Identifies a location in a program's source.
pub type PlaceId = u32;

/// The language of a program, named as in `docs/safe-writes.md`; empty for other languages.
pub type Language = &'static str;

/// When and where a call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Nanoseconds since the program started.
    pub at_ns: u64,
    /// The location in the program's source, if known.
    pub place: Option<PlaceId>,
}

impl Act {
    /// Returns whether the call changes a file, a name or their durability, or communicates with
    /// the outside.
    pub fn is_change(&self) -> bool {
        !matches!(
            self,
            Act::Found { .. }
                | Act::Storage { .. }
                | Act::Map { .. }
                | Act::Before { .. }
                | Act::Cover { .. }
        )
    }
}

impl Call {
    /// Creates a call without duration, location or data.
    pub fn new(at_ns: u64, act: Act) -> Call {
        Call { at_ns, took_ns: 0, place: None, task: 0, act, after: Vec::new(), data: Vec::new() }
    }

    /// Returns when the call ended, in nanoseconds since the program started.
    pub fn ended_ns(&self) -> u64 {
        self.at_ns.saturating_add(self.took_ns)
    }

    /// Returns when and where the call was made.
    pub fn point(&self) -> Point {
        Point { at_ns: self.at_ns, place: self.place }
    }
}

/// A call's effect on files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// A file system was seen. Precedes all calls on its files.
    Storage {
        /// The device number.
        device: u64,
        /// The kind of storage.
        storage: Storage,
    },
    /// A file existed before its first observed call.
    Found {
        /// The file.
        file: FileId,
        /// The name, if the file has one.
        name: Option<Name>,
        /// The size in bytes.
        size_bytes: u64,
    },
    /// A file was created, without a name if `O_TMPFILE` was used.
    Made {
        /// The file.
        file: FileId,
        /// The name, if the file has one.
        name: Option<Name>,
    },
    /// A folder was created.
    MadeFolder {
        /// The new folder.
        file: FileId,
        /// The name.
        name: Name,
    },
    /// A symbolic link was created.
    MadeLink {
        /// The link.
        file: FileId,
        /// The name.
        name: Name,
        /// The target.
        to: PathBuf,
    },
    /// A file was written.
    Write {
        /// The file.
        file: FileId,
        /// The range written.
        bytes: Range<u64>,
        /// The length that the call requested.
        asked_bytes: u64,
        /// The kind of write.
        how: How,
        /// Whether the write replaced bytes that another descriptor had just written.
        is_race: bool,
        /// Whether the bytes are known to be zeros. Only large contiguous writes are examined.
        #[serde(default)]
        is_zeros: bool,
    },
    /// A file was truncated to 0 bytes before it is rewritten: by an open (`O_TRUNC`), or through a
    /// descriptor that had not written.
    Empty {
        /// The file.
        file: FileId,
        /// The previous size in bytes.
        size_bytes: u64,
    },
    /// The file size changed, or space was allocated.
    Resize {
        /// The file.
        file: FileId,
        /// The previous size in bytes.
        from_bytes: u64,
        /// The new size in bytes.
        to_bytes: u64,
    },
    /// A range became zeros, because a hole was punched or the range was zeroed.
    Erase {
        /// The file.
        file: FileId,
        /// The range.
        bytes: Range<u64>,
        /// Whether the whole file was erased before it is rewritten, as with `Empty`.
        empties: bool,
    },
    /// A range was cut out of a file or inserted into it, so that the following bytes moved.
    Shift {
        /// The file.
        file: FileId,
        /// The offset of the range.
        at_byte: u64,
        /// The previous size in bytes.
        from_bytes: u64,
        /// The new size in bytes.
        to_bytes: u64,
    },
    /// A shared mapping became writable, or stores through one are no longer observed.
    Map {
        /// The file.
        file: FileId,
        /// Whether stores are observed (each stored page is reported as a write).
        #[serde(default)]
        stores: Stores,
    },
    /// A file was open for writing when tracing of the program began.
    Before {
        /// The file.
        file: FileId,
    },
    /// A flush covers all unobserved changes of a file, and no mapping of it remains.
    Cover {
        /// The file.
        file: FileId,
    },
    /// A file or folder was flushed, successfully or not.
    Flush {
        /// The file or folder.
        file: FileId,
        /// The error number of a failed flush.
        failed: Option<i32>,
        /// Whether only data had to be flushed, with the metadata needed to read it (`fdatasync`).
        #[serde(default)]
        is_data: bool,
    },
    /// A range of a file was flushed.
    FlushRange {
        /// The file.
        file: FileId,
        /// The range.
        bytes: Range<u64>,
    },
    /// All files were flushed, or all files of one device.
    FlushAll {
        /// The device, or `None` for all.
        device: Option<u64>,
    },
    /// A file or folder was renamed.
    Rename {
        /// The file.
        file: FileId,
        /// The old name.
        from: Name,
        /// The new name.
        to: Name,
        /// The file that the rename replaced.
        replaced: Option<FileId>,
    },
    /// Two files exchanged names.
    Exchange {
        /// The first file and its old name.
        one: (FileId, Name),
        /// The second file and its old name.
        other: (FileId, Name),
    },
    /// A hard link was created.
    Link {
        /// The file.
        file: FileId,
        /// The new name.
        name: Name,
    },
    /// A name was removed.
    Unlink {
        /// The file to which the name referred.
        file: FileId,
        /// The removed name.
        name: Name,
    },
    /// The program communicated with the outside: on its output, on a socket, or by exiting.
    Tell,
}

/// Whether stores through a shared mapping are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stores {
    Seen,
    /// There are more mappings than can be followed.
    Beyond,
    /// Stores cannot be observed.
    #[default]
    Unseen,
}

/// The kind of write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Whether the write bypasses the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Whether the write is durable when the call returns (`O_SYNC`, `O_DSYNC`, `RWF_DSYNC`).
    pub is_durable: bool,
    /// Whether a power loss leaves either the whole write or nothing of it (`RWF_ATOMIC`).
    #[serde(default)]
    pub is_atomic: bool,
}

/// The storage that a device number identifies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Whether the storage is memory, so that flushes do nothing (tmpfs).
    pub is_in_memory: bool,
    /// Whether direct writes to flushed blocks overwrite the same location on the device.
    pub writes_in_place: bool,
    /// Whether flushes include the device's volatile cache.
    pub flushes_reach_device: bool,
    /// Why flushed bytes do not survive a power loss.
    #[serde(default)]
    pub because: Option<String>,
    /// Why it is unknown what flushed bytes survive.
    #[serde(default)]
    pub doubt: Option<String>,
}
