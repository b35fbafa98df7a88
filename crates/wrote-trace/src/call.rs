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
    /// Returns the identity of a file that was found.
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
    /// When the call began, in nanoseconds since the program's start.
    pub at_ns: u64,
    /// Its duration from the end of its first stop to its second, in nanoseconds.
    #[serde(default)]
    pub took_ns: u64,
    /// Its place in the program's source, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceId>,
    /// The thread that made the call.
    #[serde(skip)]
    pub task: u32,
    /// Its effect.
    pub act: Act,
    /// The ends of the operations that a queue of the kernel completed before this one began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u64>,
    /// The bytes of a write; empty unless a record is made.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// Identifies a place in a program's source.
pub type PlaceId = u32;

/// The language of a program, by the names in `docs/safe-writes.md`; empty for others.
pub type Language = &'static str;

/// When and where a call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Nanoseconds since the program's start.
    pub at_ns: u64,
    /// Its place, if that is known.
    pub place: Option<PlaceId>,
}

impl Act {
    /// Returns whether it changes a file, a name or what of them is durable, or communicates with
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
    /// Makes a call without a duration, a place and data.
    pub fn new(at_ns: u64, act: Act) -> Call {
        Call { at_ns, took_ns: 0, place: None, task: 0, act, after: Vec::new(), data: Vec::new() }
    }

    /// Returns when it had ended, in nanoseconds since the program's start.
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
        /// Its device.
        device: u64,
        /// Its kind.
        storage: Storage,
    },
    /// A file existed before a call about it was seen.
    Found {
        /// A file existed before its first observed call.
        file: FileId,
        /// Its name, if it has one.
        name: Option<Name>,
        /// Its size in bytes.
        size_bytes: u64,
    },
    /// A file was created; with `O_TMPFILE`, without a name.
    Made {
        /// The file.
        file: FileId,
        /// Its name, if it has one.
        name: Option<Name>,
    },
    /// A folder was created.
    MadeFolder {
        /// The new folder.
        file: FileId,
        /// Its name.
        name: Name,
    },
    /// A symbolic link was created.
    MadeLink {
        /// The link.
        file: FileId,
        /// Its name.
        name: Name,
        /// Its target.
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
        /// Whether they went over bytes that another descriptor had just written there.
        is_race: bool,
        /// Whether they are zeros, as far as that was examined: many in one piece.
        #[serde(default)]
        is_zeros: bool,
    },
    /// A file was truncated to 0 bytes to be written anew: by an open (`O_TRUNC`), or by a
    /// descriptor that had not written.
    Empty {
        /// The file.
        file: FileId,
        /// Its previous size in bytes.
        size_bytes: u64,
    },
    /// The file size changed, or space was allocated.
    Resize {
        /// The file.
        file: FileId,
        /// Its previous size in bytes.
        from_bytes: u64,
        /// Its new size in bytes.
        to_bytes: u64,
    },
    /// Bytes became zeros: a hole was punched, or a range zeroed.
    Erase {
        /// The file.
        file: FileId,
        /// The bytes.
        bytes: Range<u64>,
        /// Whether that was all of a file to be written anew, as with `Empty`.
        empties: bool,
    },
    /// A range was cut out of a file or inserted: what follows has another place.
    Shift {
        /// The file.
        file: FileId,
        /// Where the range is.
        at_byte: u64,
        /// The file's size before, in bytes.
        from_bytes: u64,
        /// Its size after that.
        to_bytes: u64,
    },
    /// A shared mapping got write permission, or the stores through one are not seen any more.
    Map {
        /// The file.
        file: FileId,
        /// Whether stores are seen, each page as a write.
        #[serde(default)]
        stores: Stores,
    },
    /// A file was open to be written when the program was joined.
    Before {
        /// The file.
        file: FileId,
    },
    /// A flush covers all unseen changes of a file, and no mapping is left.
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
        /// Whether only data had to be flushed, with what reads need to find it (`fdatasync`).
        #[serde(default)]
        is_data: bool,
    },
    /// Some bytes of a file were flushed.
    FlushRange {
        /// The file.
        file: FileId,
        /// The bytes.
        bytes: Range<u64>,
    },
    /// All files were flushed, or all of one device.
    FlushAll {
        /// The device, or `None` for all.
        device: Option<u64>,
    },
    /// A file or folder was renamed.
    Rename {
        /// The file.
        file: FileId,
        /// Its old name.
        from: Name,
        /// Its new name.
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

/// Whether the stores through a shared mapping are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stores {
    Seen,
    /// There are more mappings than are followed.
    Beyond,
    /// They cannot be seen.
    #[default]
    Unseen,
}

/// The kind of write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Bypasses the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Durable when the call returns (`O_SYNC`, `O_DSYNC`, `RWF_DSYNC`).
    pub is_durable: bool,
    /// Whole or not done after a power loss (`RWF_ATOMIC`).
    #[serde(default)]
    pub is_atomic: bool,
}

/// The storage of a device number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Flushes do nothing (tmpfs).
    pub is_in_memory: bool,
    /// Direct writes over flushed blocks go to the same place on the device.
    pub writes_in_place: bool,
    /// Flushes reach the device's volatile cache.
    pub flushes_reach_device: bool,
    /// Why flushed bytes do not survive a power loss here.
    #[serde(default)]
    pub because: Option<String>,
    /// Why it is not known what flushed bytes survive here.
    #[serde(default)]
    pub doubt: Option<String>,
}
