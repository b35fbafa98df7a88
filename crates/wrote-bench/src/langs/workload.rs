//! The work that every program does: what it is asked, and what must be in the file afterwards.

/// What a user may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes written one at a time, and read one at a time.
    Bytes,
    /// A short text saved again and again, with and without sync.
    Save,
    /// Short lines appended.
    Lines,
}

impl Kind {
    /// All, in the order in which they are run.
    pub const ALL: [Kind; 3] = [Kind::Bytes, Kind::Save, Kind::Lines];

    /// The word by which it is asked for.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Save => "save",
            Kind::Lines => "lines",
        }
    }
}

/// Bytes of one line with its line feed.
pub(crate) const LINE_BYTES: u64 = 64;
/// The texts that are saved, in characters of one byte.
pub(crate) const SAVE_BYTES: [u64; 4] = [500, 1000, 2000, 10_000];

/// One kind of call of a program: the first of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// `bytes-write PATH SIZE COUNT`: SIZE bytes, 0 to 255 again and again, one at a time, into a new file;
    /// all of that COUNT times.
    BytesWrite,
    /// `bytes-read PATH SIZE COUNT`: the same file, one byte at a time; answers the bytes' sum.
    BytesRead,
    /// `save PATH SIZE COUNT`: SIZE characters into the file at PATH, COUNT times.
    Save,
    /// `save-sync PATH SIZE COUNT`: the same, with the language's own sync before the file is closed.
    SaveSync,
    /// `lines PATH SIZE COUNT`: COUNT lines of SIZE bytes behind what is there.
    Lines,
}

impl Task {
    /// The argument.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Task::BytesWrite => "bytes-write",
            Task::BytesRead => "bytes-read",
            Task::Save => "save",
            Task::SaveSync => "save-sync",
            Task::Lines => "lines",
        }
    }
}
