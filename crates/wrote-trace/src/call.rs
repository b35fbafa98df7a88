//! The calls of a program as the model takes them: what happened to which file, and when.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;

/// A file or folder: its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// The device, as `stat(2)` numbers it.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The folder.
    pub folder: FileId,
    /// The whole path.
    pub path: PathBuf,
}

/// A call that has returned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Nanoseconds from the start of the program until the call began.
    pub at_ns: u64,
    /// Its effect.
    pub act: Act,
    /// The bytes of a write, where a record is made.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// The effect of a call on files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// A file system was met; before any call about a file there.
    Storage {
        /// Its device.
        device: u64,
        /// Its kind.
        storage: Storage,
    },
    /// A file was there before a call about it was seen.
    Found {
        /// The file.
        file: FileId,
        /// Its name; `None` of a file without one.
        name: Option<Name>,
        /// Its size, in bytes.
        size_bytes: u64,
    },
    /// A file was made; without a name by `O_TMPFILE`.
    Made {
        /// The file.
        file: FileId,
        /// Its name, if it has one.
        name: Option<Name>,
    },
    /// A folder was made.
    MadeFolder {
        /// The folder that was made.
        file: FileId,
        /// Its name.
        name: Name,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: FileId,
        /// The bytes of the file that were written.
        bytes: Range<u64>,
        /// The bytes that the call was asked to write.
        asked_bytes: u64,
        /// How they were written.
        how: How,
        /// Whether they went over bytes that another descriptor had just written there.
        is_race: bool,
    },
    /// Bytes were read.
    Read {
        /// The file.
        file: FileId,
        /// The bytes of the file that were read.
        bytes: Range<u64>,
    },
    /// A file was opened so that its content went (`O_TRUNC`).
    Empty {
        /// The file.
        file: FileId,
        /// Its size before, in bytes.
        size_bytes: u64,
    },
    /// The file's size was changed, or room was allocated.
    Resize {
        /// The file.
        file: FileId,
        /// Its size before, in bytes.
        from_bytes: u64,
        /// Its size after, in bytes.
        to_bytes: u64,
    },
    /// A shared mapping through which the file can be written.
    Map {
        /// The file.
        file: FileId,
    },
    /// A file or folder was flushed, or a flush of it failed.
    Flush {
        /// The file or folder.
        file: FileId,
        /// The error number of a flush that failed.
        failed: Option<i32>,
    },
    /// Every file was flushed, or every file of a device.
    FlushAll {
        /// The device; `None` for all.
        device: Option<u64>,
    },
    /// A file or folder got another name.
    Rename {
        /// The file.
        file: FileId,
        /// Its name before.
        from: Name,
        /// Its name after.
        to: Name,
        /// The file that had the new name, and has none now.
        replaced: Option<FileId>,
    },
    /// Two files exchanged their names.
    Exchange {
        /// One file and its name before.
        one: (FileId, Name),
        /// The other file and its name before.
        other: (FileId, Name),
    },
    /// A file got one more name.
    Link {
        /// The file.
        file: FileId,
        /// The new name.
        name: Name,
    },
    /// A name was removed.
    Unlink {
        /// The file that had it.
        file: FileId,
        /// The name.
        name: Name,
    },
    /// The program told the outside something: by its output, by a socket, or by its end.
    Tell,
}

/// How bytes were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Past the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// On stable storage when the call returned (`O_SYNC`, `O_DSYNC`, `RWF_DSYNC`).
    pub is_durable: bool,
}

/// The storage that a device number stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Whether all of it is lost with the power: tmpfs.
    pub is_in_memory: bool,
    /// Whether a direct write into flushed blocks goes to their place.
    pub writes_in_place: bool,
    /// Whether a flush reaches the device's own cache.
    pub flushes_reach_device: bool,
}
