//! The scenario `meta`: operations on names and small files, in private folders and in a shared
//! one.

mod findings;
mod plan;
mod rounds;
#[cfg(test)]
mod tests;

use crate::choice::best;
use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use plan::Files;
use wrote::Survives;
use wrote_jobs::findings::Evidence;
use wrote_result::document::{
    Answer, Blocks, Direction, Finding, Flush, Ioengine, Row, Settings, SourceCache, View,
};
use wrote_result::{Error, words};

pub(crate) const NAME: &str = "meta";
/// The size of a file in IO500's mdtest.
pub(crate) const FILE_BYTES: u64 = 3901;

/// The settings of the scenario `meta`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Meta {
    /// Files of one run of meta, from 1 to 1000000 [default: as many as fit into a third
    /// of a second, up to 2000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N",
        value_parser = wrote_result::units::parse_count::<FILES_MAX>, allow_hyphen_values = true))]
    pub meta_files: Option<u32>,
}

/// The maximum number of files of a run.
#[cfg(feature = "cli")]
const FILES_MAX: u32 = 1_000_000;

words! {
    /// An operation on one file. Its word appears in the settings of a row.
    pub(crate) enum Kind {
        Create = "create",
        Stat = "stat",
        Open = "open",
        Read = "read",
        Rename = "rename",
        Unlink = "unlink",
    }
}

use Kind::{Create, Open, Read, Rename, Stat, Unlink};

/// A row: an operation, in one folder that all ranks share or in private ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The name of the row: `meta/own/create`.
    pub name: &'static str,
    pub workload: &'static str,
    pub kind: Kind,
    /// Whether all ranks share one folder.
    pub is_shared: bool,
    pub words: &'static str,
}

const fn own(name: &'static str, kind: Kind, words: &'static str) -> Way {
    Way { name, workload: "meta/own", kind, is_shared: false, words }
}

const fn shared(name: &'static str, kind: Kind, words: &'static str) -> Way {
    Way { name, workload: "meta/shared", kind, is_shared: true, words }
}

const WAYS: [Way; 12] = [
    own("meta/own/create", Create, "create, close"),
    own("meta/own/stat", Stat, "stat"),
    own("meta/own/open", Open, "open, close"),
    own("meta/own/read", Read, "open, read, close"),
    own("meta/own/rename", Rename, "rename"),
    own("meta/own/unlink", Unlink, "unlink"),
    shared("meta/shared/create", Create, "create, close"),
    shared("meta/shared/stat", Stat, "stat"),
    shared("meta/shared/open", Open, "open, close"),
    shared("meta/shared/read", Read, "open, read, close"),
    shared("meta/shared/rename", Rename, "rename"),
    shared("meta/shared/unlink", Unlink, "unlink"),
];

impl Kind {
    /// Returns whether the operation changes nothing.
    fn is_read(self) -> bool {
        matches!(self, Stat | Open | Read)
    }

    fn direction(self) -> Direction {
        if self.is_read() { Direction::Read } else { Direction::Write }
    }

    /// Returns the worst event that a change survives; `None` for reads. The folder is not flushed,
    /// so the change is only in the memory of the kernel or of a server.
    fn survives(self) -> Option<Survives> {
        (!self.is_read()).then_some(Survives::ProcessCrash)
    }

    /// Returns the number of file bytes that one operation reads.
    fn bytes(self) -> u64 {
        if self == Read { FILE_BYTES } else { 0 }
    }
}

impl Way {
    /// Returns the row.
    fn composed(&self) -> Row {
        Row {
            name: self.name.into(),
            workload: self.workload.into(),
            way: self.words.into(),
            view: Some(View::Metadata),
            direction: self.kind.direction(),
            survives: self.kind.survives(),
            ..Row::default()
        }
    }

    /// Returns the settings of a run with this many files.
    fn settings(&self, files: u32, cache: Option<SourceCache>) -> Settings {
        Settings {
            rw: self.kind.as_str().into(),
            ioengine: Ioengine::Psync,
            bs_bytes: self.kind.bytes(),
            size_bytes: self.kind.bytes() * u64::from(files),
            iodepth: 1,
            numjobs: 1,
            sync: Flush::None,
            blocks: if self.kind == Create { Blocks::New } else { Blocks::Written },
            nrfiles: Some(files),
            source_cache: cache.filter(|_| self.kind == Read),
            ..Settings::default()
        }
    }
}

impl Scenario for Meta {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |way: &Way| Listed {
            scenario: NAME,
            row: way.name,
            way: way.words,
            survives: way.kind.survives(),
        };
        WAYS.iter().map(listed).collect()
    }

    fn takes_rate(&self) -> bool {
        false
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        Ok(Files::new(self, call).map(|files| files.plan(call.speed)).into_iter().collect())
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        findings::slower_each_round(evidence).into_iter().collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        let asked = [
            ("Files created", "meta/own/create"),
            ("Files read", "meta/own/read"),
            ("Files removed", "meta/own/unlink"),
        ];
        best(evidence, &asked)
    }
}
