//! The scenario `ladder`: sequential writes at every level of durability, by every common method.

mod advice;
mod answers;
pub(crate) mod plan;
mod rounds;
#[cfg(test)]
mod tests;

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use crate::site::Site;
use crate::stream::Sizes;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use wrote::{Ioengine, Survives};
use wrote_jobs::findings::Evidence;
use wrote_jobs::spec::{Fallocate, JobSpec, SyncEach};
use wrote_result::Error;
use wrote_result::document::{Advice, Answer, Blocks, Flush, Settings, SettingsPair};
use wrote_result::words;

pub(crate) const NAME: &str = "ladder";

/// The settings of the scenario `ladder`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Ladder {
    /// Time from the start to the end of the ladder: 20s, 2m [default: a dozen seconds, at most
    /// 60s; no limit with --size, --time, --runs or --rate]
    ///
    /// Every run gets the same slice of it. Where a disk is too slow for all, there are fewer
    /// rounds, down to 3, then fewer rows. Findings name them.
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME",
        value_parser = wrote_result::units::parse_duration, allow_hyphen_values = true))]
    pub within: Option<Duration>,
}

impl Scenario for Ladder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |way: &Way| {
            let survives = Some(way.survives_at_best());
            Listed { scenario: NAME, row: way.name, way: way.words, survives }
        };
        WAYS.iter().map(listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        Ok(plan::plan(call)?.into_iter().collect())
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        answers::answers(evidence)
    }
}

words! {
    /// A group of methods that are compared with each other.
    pub(crate) enum Workload {
        /// Large writes, as fast as possible.
        Stream = "stream",
        /// Small writes, such as log records and saves.
        Small = "small",
    }
}

/// A method of writing, without its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The rank of the method; 0 is the most important. If time is short, the least important
    /// methods are left out first. The first half contains a choice for each piece of advice.
    importance: usize,
    pub name: &'static str,
    pub workload: Workload,
    /// A description of at most 25 columns, which fits on one line of the table.
    pub words: &'static str,
    ioengine: Ioengine,
    pub direct: bool,
    flush: Flush,
    pub blocks: Blocks,
}

use Blocks::{Allocated, New, Written};
use Flush::{FdatasyncAtEnd, FdatasyncEach, ODsyncEach};
use Ioengine::{IoUring, Psync};
use Workload::{Small, Stream};

const CACHED: (Ioengine, bool) = (Psync, false);
const DIRECT: (Ioengine, bool) = (Psync, true);
const URING: (Ioengine, bool) = (IoUring, true);

const fn way(
    importance: usize,
    name: &'static str,
    workload: Workload,
    words: &'static str,
    (ioengine, direct): (Ioengine, bool),
    flush: Flush,
    blocks: Blocks,
) -> Way {
    Way { importance, name, workload, words, ioengine, direct, flush, blocks }
}

/// All rows, from the least to the most durable. Direct rows write into preallocated blocks, as fio
/// does by default. Cached rows write to a new file that grows, as programs do. Rows "in place"
/// overwrite blocks that were written and flushed beforehand.
#[rustfmt::skip]
pub(crate) const WAYS: &[Way] = &[
    way( 4, "stream/cached",
        Stream, "write",                     CACHED, Flush::None,    New),
    way(14, "stream/direct-psync",
        Stream, "direct",                    DIRECT, Flush::None,    Allocated),
    way(13, "stream/direct-io_uring",
        Stream, "direct io_uring",           URING,  Flush::None,    Allocated),
    way( 8, "stream/direct-io_uring-overwrite",
        Stream, "direct io_uring, in place", URING,  Flush::None,    Written),
    way( 3, "stream/cached-fdatasync-at-end",
        Stream, "write, fdatasync at end",   CACHED, FdatasyncAtEnd, New),
    way( 1, "stream/direct-io_uring-fdatasync-at-end",
        Stream, "direct io_uring+fdatasync", URING,  FdatasyncAtEnd, Allocated),
    way(10, "stream/o_dsync-each",
        Stream, "O_DSYNC each write",        CACHED, ODsyncEach,     New),
    way( 9, "stream/fdatasync-each",
        Stream, "fdatasync each write",      CACHED, FdatasyncEach,  New),
    way( 7, "small/cached",
        Small,  "write",                     CACHED, Flush::None,    New),
    way(15, "small/direct-psync",
        Small,  "direct",                    DIRECT, Flush::None,    Allocated),
    way(16, "small/direct-io_uring",
        Small,  "direct io_uring",           URING,  Flush::None,    Allocated),
    way(12, "small/direct-io_uring-overwrite",
        Small,  "direct io_uring, in place", URING,  Flush::None,    Written),
    way( 6, "small/cached-fdatasync-at-end",
        Small,  "write, fdatasync at end",   CACHED, FdatasyncAtEnd, New),
    way(11, "small/direct-io_uring-fdatasync-at-end",
        Small,  "direct io_uring+fdatasync", URING,  FdatasyncAtEnd, Allocated),
    way( 5, "small/o_dsync-each",
        Small,  "O_DSYNC each write",        CACHED, ODsyncEach,     New),
    way( 0, "small/fdatasync-each",
        Small,  "fdatasync each write",      CACHED, FdatasyncEach,  New),
    way( 2, "small/direct-o_dsync-each-overwrite",
        Small,  "direct O_DSYNC, in place",  DIRECT, ODsyncEach,     Written),
];

impl Way {
    /// Returns whether each small write is flushed before the next one. Such a method is far slower
    /// than a stream, and limits on bytes don't affect it.
    fn is_of_flushes(&self) -> bool {
        self.workload == Small && matches!(self.flush, FdatasyncEach | ODsyncEach)
    }

    /// Returns whether each small write waits for the device before the next one.
    fn waits_each(&self) -> bool {
        self.is_of_flushes() || self.workload == Small && self.direct && self.ioengine == Psync
    }

    /// Returns the job of each thread of a run. The job stops after `time`.
    pub(crate) fn job(&self, sizes: &Sizes, time: Duration) -> JobSpec {
        let each = self.flush == FdatasyncEach;
        sizes.job(self.name).with(|job| {
            (job.io.ioengine, job.io.direct) = (self.ioengine, self.direct);
            job.io.iodepth = if self.ioengine == Psync { 1 } else { sizes.iodepth };
            job.files.fallocate = match self.blocks {
                Allocated => Fallocate::Native,
                _ => Fallocate::None,
            };
            job.writes.sync = if self.flush == ODsyncEach { SyncEach::Dsync } else { SyncEach::No };
            job.writes.fdatasync = each.then_some(1);
            job.writes.latency_with_flush = each;
            job.writes.end_fdatasync = self.flush == FdatasyncAtEnd;
            job.pace.runtime = Some(time);
        })
    }

    /// Returns the settings as the row states them: without the time, which is only a limit, and
    /// without polling, which no row requests.
    pub(crate) fn stated(&self, settings: SettingsPair) -> SettingsPair {
        settings.each(|of| Settings {
            runtime_s: None,
            time_based: None,
            sqpoll: None,
            iopoll: None,
            ..of
        })
    }

    /// Returns the worst event that a write survives if there are no fallbacks.
    pub(crate) fn survives_at_best(&self) -> Survives {
        Survives::of_write(self.flush != Flush::None, self.direct && self.blocks == Written)
    }
}

/// Removes the files of a run. If the files `stay`, flushes them instead, because unwritten pages
/// would slow down later runs.
pub(crate) fn clear(files: &[PathBuf], stay: bool, site: &Site) -> Result<(), Error> {
    if !stay {
        return site.clear(files);
    }
    files.iter().try_for_each(|file| {
        let flushed = File::open(file).and_then(|file| file.sync_data());
        flushed.map_err(Error::at(file, "fdatasync"))
    })
}
