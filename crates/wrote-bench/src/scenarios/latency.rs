//! The scenario `latency`: saves a small text repeatedly by each method, with and without a sync.

mod advice;
mod plan;
mod rounds;
#[cfg(test)]
mod tests;

pub use plan::Latency;

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use plan::Amounts;
use wrote::Survives;
use wrote::device::Target;
use wrote_jobs::findings::Evidence;
use wrote_jobs::rate::Rate;
use wrote_result::document::{
    Advice, Answer, Blocks, CrashLeaves, Flush, Ioengine, Row, Settings, View,
};
use wrote_result::{Error, words};

pub(crate) const NAME: &str = "latency";
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    FsWrite,
    /// The calls of `FsWrite`, and `fsync` before closing. The folder is not flushed.
    FsWriteFsync,
    /// One write over the existing content, without truncating it first, and `fdatasync`.
    WriteFdatasync,
    /// Like `WriteFdatasync`, with `O_DSYNC` instead of `fdatasync`.
    ODsync,
    /// A temporary file that is renamed once it is written.
    Rename,
    /// Like `Rename`, with a flush of the content before the rename and of the name after it.
    RenameFsync,
    WroteWrite,
    /// One write at the end of the file.
    Append,
    /// Like `Append`, with `fdatasync`.
    AppendFdatasync,
}

words! {
    /// The state of the file when a save begins.
    pub(crate) enum State {
        /// The file does not exist. Each save creates a file.
        New = "new",
        /// The file holds a text as long as the new one. Each save overwrites the same file.
        Existing = "existing",
    }
}

/// A named method of saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The last part of a row's name: `fs-write`.
    pub name: &'static str,
    pub kind: Kind,
    /// The names without a size, for a new file and for an existing one.
    listed: [&'static str; 2],
    /// The descriptions, for a new file and for an existing one.
    words: [&'static str; 2],
}

use Kind::{
    Append, AppendFdatasync, FsWrite, FsWriteFsync, ODsync, Rename, RenameFsync, WriteFdatasync,
    WroteWrite,
};

macro_rules! way {
    ($name:literal, $kind:ident, $new:literal, $existing:literal) => {
        Way {
            name: $name,
            kind: $kind,
            listed: [concat!("latency/new/", $name), concat!("latency/existing/", $name)],
            words: [$new, $existing],
        }
    };
}

/// All methods, from the most common to the rarest. If the description ends in `folder`, the folder
/// is flushed, too, so that the name survives.
#[rustfmt::skip]
pub(crate) const WAYS: &[Way] = &[
    way!("fs-write",         FsWrite,         "fs::write",                 "fs::write"),
    way!("fs-write-fsync",   FsWriteFsync,    "fs::write, fsync",          "fs::write, fsync"),
    way!("write-fdatasync",  WriteFdatasync,  "write, fdatasync, folder",  "overwrite, fdatasync"),
    way!("o_dsync",          ODsync,          "O_DSYNC, folder",           "overwrite, O_DSYNC"),
    way!("rename",           Rename,          "rename",                    "rename"),
    way!("rename-fsync",     RenameFsync,     "fsync, rename, folder",     "fsync, rename, folder"),
    way!("wrote-write",      WroteWrite,      "wrote::write",              "wrote::write"),
    way!("append",           Append,          "append",                    "append"),
    way!("append-fdatasync", AppendFdatasync, "append, fdatasync, folder", "append, fdatasync"),
];

impl Scenario for Latency {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let of = |state: State| {
            WAYS.iter().map(move |way| Listed {
                scenario: NAME,
                row: way.listed[state as usize],
                way: way.words[state as usize],
                survives: Some(way.kind.acknowledged(state)),
            })
        };
        State::ALL.into_iter().flat_map(of).collect()
    }

    /// Returns whether `name` refers to a row. Texts may have any size, so names with any size are
    /// known.
    fn knows(&self, name: &str) -> bool {
        let sizes_bytes = [named_size(name).unwrap_or(1)];
        rows(&sizes_bytes).any(|row| row.is_called(name))
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let amounts = Amounts::new(self, call)?;
        Ok(amounts.map(|amounts| amounts.plan(call)).into_iter().collect())
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).into_iter().collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        advice::answers(evidence)
    }
}

/// One row: a method of saving a text of this size to a file in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SaveRow {
    pub way: &'static Way,
    pub state: State,
    pub size_bytes: u64,
}

/// Returns every row for texts of these sizes.
fn rows(sizes_bytes: &[u64]) -> impl Iterator<Item = SaveRow> {
    let files = |size: &u64| State::ALL.map(|state| (*size, state));
    let rows = |(size_bytes, state)| WAYS.iter().map(move |way| SaveRow { way, state, size_bytes });
    sizes_bytes.iter().flat_map(files).flat_map(rows)
}

/// Returns the size in a row's name: 500 in `latency/new-500/fs-write`; `None` if it has none.
fn named_size(name: &str) -> Option<u64> {
    name.split('/').nth(1)?.split_once('-')?.1.parse().ok()
}

impl Kind {
    fn sync(self) -> Flush {
        match self {
            FsWrite | Rename | Append => Flush::None,
            FsWriteFsync | RenameFsync | WroteWrite => Flush::FsyncEach,
            WriteFdatasync | AppendFdatasync => Flush::FdatasyncEach,
            ODsync => Flush::ODsyncEach,
        }
    }

    /// Returns whether the method flushes the folder so that the file's name survives. For an
    /// existing file, such a flush is required only after a rename.
    fn syncs_folder(self, state: State) -> bool {
        match self {
            FsWrite | FsWriteFsync | Rename | Append => false,
            WriteFdatasync | ODsync | AppendFdatasync => state == State::New,
            RenameFsync | WroteWrite => true,
        }
    }

    /// Returns the event that an acknowledged save survives, on a disk that flushes reach. If the
    /// folder of a new file is not flushed, the content may survive without its name (fsync(2)).
    fn acknowledged(self, state: State) -> Survives {
        let name_is_there = state == State::Existing || self.syncs_folder(state);
        Survives::of_write(self.sync() != Flush::None && name_is_there, false)
    }

    /// Returns the worst of the states that a crash during a save may leave and that no manual page
    /// or standard rules out. Some file systems are safer (`docs/methodology.md`).
    pub(crate) fn leaves(self, state: State) -> CrashLeaves {
        match (self, state) {
            // The content is flushed before it gets its name.
            (RenameFsync | WroteWrite, _) => CrashLeaves::OldOrNew,
            // The name may reach the disk before the content.
            (_, State::New) | (FsWrite | FsWriteFsync | Rename, _) => CrashLeaves::Empty,
            (WriteFdatasync | ODsync, State::Existing) => CrashLeaves::Torn,
            (Append | AppendFdatasync, State::Existing) => CrashLeaves::OldAndPart,
        }
    }

    fn grows(self, state: State) -> bool {
        matches!(self, Append | AppendFdatasync) && state == State::Existing
    }

    fn blocks(self, state: State) -> Blocks {
        match (self, state) {
            (WriteFdatasync | ODsync, State::Existing) => Blocks::Written,
            _ => Blocks::New,
        }
    }
}

impl SaveRow {
    /// Returns the name of the workload, such as `latency/new-500`.
    pub(crate) fn workload(&self) -> String {
        format!("{NAME}/{}-{}", self.state, self.size_bytes)
    }

    /// Returns the name of the row, such as `latency/new-500/fs-write`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.workload(), self.way.name)
    }

    pub(crate) fn words(&self) -> &'static str {
        self.way.words[self.state as usize]
    }

    /// Returns whether a requested `name` selects the row: `latency`, `latency/new` or
    /// `latency/new-500`, each alone or followed by `/fs-write`.
    fn is_called(&self, name: &str) -> bool {
        let of = [NAME.to_owned(), format!("{NAME}/{}", self.state), self.workload()];
        of.iter().any(|of| name == of || name == format!("{of}/{}", self.way.name))
    }

    pub(crate) fn asked(&self, saves: u64, rate: Option<Rate>) -> Settings {
        let (kind, state) = (self.way.kind, self.state);
        Settings {
            rw: "write".into(),
            ioengine: Ioengine::Psync,
            bs_bytes: self.size_bytes,
            size_bytes: self.size_bytes * saves,
            iodepth: 1,
            numjobs: 1,
            direct: false,
            sync: kind.sync(),
            blocks: kind.blocks(state),
            rate_bytes_per_s: rate.and_then(|rate| rate.bytes_per_s_of(1)),
            rate_iops: rate.and_then(|rate| rate.iops_of(1)),
            rate_process: rate.map(|rate| rate.process),
            ..Settings::default()
        }
    }

    /// Returns the row on this disk.
    fn composed(&self, target: &Target) -> Row {
        Row {
            name: self.name(),
            workload: self.workload(),
            way: self.words().into(),
            view: Some(View::Saves),
            survives: Some(self.survives(target)),
            crash_leaves: Some(self.way.kind.leaves(self.state)),
            ..Row::default()
        }
    }

    /// Returns the worst event that a saved text survives (M3).
    pub(crate) fn survives(&self, target: &Target) -> Survives {
        target.survives(self.way.kind.acknowledged(self.state))
    }
}

/// Returns the method of a row of this scenario, and the state of the file to which it saves;
/// `None` for a row of another scenario.
pub(crate) fn way_of(row: &Row) -> Option<(State, &'static Way)> {
    let (state, _) = row.workload.strip_prefix(NAME)?.strip_prefix('/')?.split_once('-')?;
    let state = state.parse().ok()?;
    let name = row.name.strip_prefix(&row.workload)?.strip_prefix('/')?;
    Some((state, WAYS.iter().find(|way| way.name == name)?))
}
