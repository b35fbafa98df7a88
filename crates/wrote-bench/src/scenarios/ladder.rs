//! The scenario `ladder`: one sequential write, at every level of safety, in every usual way.

mod advice;
mod code;
pub(crate) mod job;
pub(crate) mod plan;
mod rounds;
pub(crate) mod run;

pub(crate) use rounds::measure;

use crate::scenario::{Call, Listed, Measurement, Scenario};
use job::Job;
use plan::Plan;
use wrote::device::Target;
use wrote::{Acknowledged, Ioengine, Survives};
use wrote_jobs::rate::Rate;
use wrote_jobs::findings::Evidence;
use wrote_result::Error;
use wrote_result::document::{Advice, Blocks, Flush, Settings};

/// The scenario's name.
pub(crate) const NAME: &str = "ladder";

/// What the scenario answers.
pub(crate) const QUESTION: &str =
    "How fast does this disk take sequential writes, and what does each way survive?";

/// The scenario `ladder`. It has no settings of its own.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Ladder {}

impl Scenario for Ladder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |way: &Way| Listed {
            scenario: NAME,
            row: way.name,
            way: way.words,
            survives: Some(way.survives_at_best()),
        };
        WAYS.iter().map(listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Box<dyn Measurement>>, Error> {
        let plan = Plan::new(call)?;
        Ok(if plan.ways.is_empty() { Vec::new() } else { vec![Box::new(plan)] })
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).collect()
    }
}

/// The two groups in which ways are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Workload {
    /// Large writes, as fast as possible.
    Stream,
    /// Small writes, as log records and saves are.
    Small,
}

impl Workload {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Workload::Stream => "stream",
            Workload::Small => "small",
        }
    }
}

/// One way of writing, before sizes are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub name: &'static str,
    pub workload: Workload,
    /// In words, at most 25 columns: the table shows it on one line.
    pub words: &'static str,
    ioengine: Ioengine,
    pub direct: bool,
    flush: Flush,
    pub blocks: Blocks,
}

use Blocks::{Allocated, New, Written};
use Flush::{ODsyncEach, FdatasyncAtEnd, FdatasyncEach};
use Ioengine::{IoUring, Psync};
use Workload::{Small, Stream};

/// Builds a row of the table below.
macro_rules! way {
    ($name:literal, $workload:ident, $words:literal, $ioengine:ident, $direct:literal, $flush:expr, $blocks:ident) => {
        Way {
            name: $name,
            workload: $workload,
            words: $words,
            ioengine: $ioengine,
            direct: $direct,
            flush: $flush,
            blocks: $blocks,
        }
    };
}

/// Every row, from the least safe to the safest. Direct rows write into allocated blocks, as fio's
/// do by default; the others into a new file that grows, as programs do. "In place" writes over
/// blocks that were written and flushed before.
#[rustfmt::skip]
pub(crate) const WAYS: &[Way] = &[
    way!("stream/cached",                             Stream, "write",                        Psync,   false, Flush::None,    New),
    way!("stream/direct-psync",                       Stream, "direct",                       Psync,   true,  Flush::None,    Allocated),
    way!("stream/direct-io_uring",                    Stream, "direct io_uring",             IoUring, true,  Flush::None,    Allocated),
    way!("stream/direct-io_uring-overwrite",          Stream, "direct io_uring, in place", IoUring, true,  Flush::None,    Written),
    way!("stream/cached-fdatasync-at-end",            Stream, "write, fdatasync at end",      Psync,   false, FdatasyncAtEnd, New),
    way!("stream/direct-io_uring-fdatasync-at-end",   Stream, "direct io_uring+fdatasync", IoUring, true, FdatasyncAtEnd, Allocated),
    way!("stream/o_dsync-each",                       Stream, "O_DSYNC each write",           Psync,   false, ODsyncEach,      New),
    way!("stream/fdatasync-each",                     Stream, "fdatasync each write",         Psync,   false, FdatasyncEach,  New),
    way!("small/cached",                              Small,  "write",                        Psync,   false, Flush::None,    New),
    way!("small/direct-psync",                        Small,  "direct",                       Psync,   true,  Flush::None,    Allocated),
    way!("small/direct-io_uring",                     Small,  "direct io_uring",             IoUring, true,  Flush::None,    Allocated),
    way!("small/direct-io_uring-overwrite",           Small,  "direct io_uring, in place", IoUring, true,  Flush::None,    Written),
    way!("small/cached-fdatasync-at-end",             Small,  "write, fdatasync at end",      Psync,   false, FdatasyncAtEnd, New),
    way!("small/direct-io_uring-fdatasync-at-end",    Small,  "direct io_uring+fdatasync", IoUring, true, FdatasyncAtEnd, Allocated),
    way!("small/o_dsync-each",                        Small,  "O_DSYNC each write",           Psync,   false, ODsyncEach,      New),
    way!("small/fdatasync-each",                      Small,  "fdatasync each write",         Psync,   false, FdatasyncEach,  New),
    way!("small/direct-o_dsync-each-overwrite",       Small,  "direct O_DSYNC, in place",  Psync,   true,  ODsyncEach,      Written),
];

/// Sizes that a row needs to become a job.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub bs_bytes: u64,
    pub size_bytes: u64,
    pub iodepth: u32,
    pub numjobs: u32,
    /// What all threads of a run together are held to.
    pub rate: Option<Rate>,
}

impl Way {
    pub(crate) fn job(&self, sizes: &Sizes) -> Job {
        Job {
            ioengine: self.ioengine,
            direct: self.direct,
            bs_bytes: sizes.bs_bytes,
            size_bytes: sizes.size_bytes,
            iodepth: if self.ioengine == Psync { 1 } else { sizes.iodepth },
            numjobs: sizes.numjobs,
            flush: self.flush,
            blocks: self.blocks,
            rate: sizes.rate,
        }
    }

    /// What a write survives on a disk where nothing falls back.
    pub(crate) fn survives_at_best(&self) -> Survives {
        Acknowledged {
            flushed: self.flush != Flush::None,
            flush_reaches_device: true,
            direct: self.direct,
            settled_blocks: self.blocks == Written,
            in_memory: false,
        }
        .survives()
    }

    /// What a write survives with what was really in effect (M3).
    pub(crate) fn survives(&self, effective: &Settings, target: &Target) -> Survives {
        Acknowledged {
            flushed: self.flush != Flush::None,
            flush_reaches_device: target.flushes_reach_device(),
            direct: effective.direct,
            settled_blocks: self.blocks == Written && target.writes_in_place(),
            in_memory: target.in_memory,
        }
        .survives()
    }

}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_has_a_name_of_its_own_in_its_workload() {
        let names: HashSet<_> = WAYS.iter().map(|way| way.name).collect();
        assert_eq!(names.len(), WAYS.len());
        for way in WAYS {
            assert!(way.name.starts_with(&format!("{}/", way.workload.as_str())), "{}", way.name);
        }
    }

    #[test]
    fn the_rows_climb_from_the_least_safe_to_the_safest() {
        // M3
        for workload in [Stream, Small] {
            let levels: Vec<_> = WAYS
                .iter()
                .filter(|way| way.workload == workload)
                .map(Way::survives_at_best)
                .collect();
            assert!(levels.is_sorted(), "{levels:?}");
            assert!(levels.contains(&Survives::OsCrash) && levels.contains(&Survives::PowerLoss));
        }
    }

    #[test]
    fn a_row_survives_less_where_direct_io_fell_back_or_blocks_are_copied() {
        let way = WAYS.iter().find(|way| way.name == "stream/direct-io_uring-overwrite").unwrap();
        let target = |filesystem: &str| Target {
            path: "/m".into(),
            mount_point: "/m".into(),
            filesystem: filesystem.into(),
            mount_options: Vec::new(),
            capacity_bytes: 1,
            free_bytes: 1,
            read_only: false,
            in_memory: false,
            backing: wrote::device::Backing::None { because: String::new() },
        };
        let direct = Settings { direct: true, ..Settings::default() };
        let cached = Settings { direct: false, ..direct.clone() };
        assert_eq!(way.survives(&direct, &target("ext4")), Survives::OsCrash);
        assert_eq!(way.survives(&cached, &target("ext4")), Survives::ProcessCrash);
        assert_eq!(way.survives(&direct, &target("btrfs")), Survives::ProcessCrash);
    }
}
