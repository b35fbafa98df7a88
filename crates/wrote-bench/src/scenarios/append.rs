//! The scenario `append`: many producers append short messages to one file.

mod advice;
mod check;
mod log;
mod message;
mod plan;
mod rounds;
mod usual;

pub use message::{Append, Sizes as MessageSizes};

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use plan::Amounts;
use wrote::device::Target;
use wrote::{Survives, SyncPolicy};
use wrote_jobs::findings::Evidence;
use wrote_jobs::machine::host;
use wrote_result::Error;
use wrote_result::document::{
    Advice, Answer, Blocks, Finding, Flush, Ioengine, Row, Settings, View, fastest,
};

pub(crate) const NAME: &str = "append";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A loop that writes one message after the other to a tokio file.
    Loop,
    /// A task for each message. The tasks share a tokio file behind a lock.
    Mutex,
    /// A task for each message, and a bounded tokio channel to one task that writes.
    Mpsc,
    /// A task for each message, and an unbounded channel to one thread that writes through a
    /// `BufWriter`.
    FlumeBufWriter,
    /// A task for each message, and an unbounded channel to ten threads that write, either through
    /// one shared file, or each through a file that it opened.
    FlumeWriters(Opened),
    /// A task for each message, and a rendezvous channel to one thread that writes and answers.
    Rendezvous,
    Log(Promise),
}

/// How several writers opened the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Opened {
    /// The writers use clones of one handle, which share a file position.
    Once,
    /// Each thread opened the file, and has a separate position, which starts at 0.
    Each,
}

/// The promise of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Promise {
    pub sync: SyncPolicy,
    /// Whether a producer waits for each message's ticket before it sends the next message.
    pub waits: bool,
}

/// A named method of appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// The name: `append/mutex`. For methods with a log, the number of producers follows in the
    /// name of a row: `append/log-no/4`.
    pub name: &'static str,
    /// A description of at most 26 columns.
    pub words: &'static str,
    pub kind: Kind,
    /// The worst event that an acknowledged message survives, on a disk that flushes reach (M3).
    pub survives: Survives,
}

use Kind::{FlumeBufWriter, FlumeWriters, Log, Loop, Mpsc, Mutex, Rendezvous};
use Opened::{Each, Once};
use Survives::{Nothing, PowerLoss, ProcessCrash};
use SyncPolicy::{Always, EverySec, No};

const fn strategy(
    name: &'static str,
    words: &'static str,
    kind: Kind,
    survives: Survives,
) -> Strategy {
    Strategy { name, words, kind, survives }
}

const fn promise(sync: SyncPolicy, waits: bool) -> Kind {
    Log(Promise { sync, waits })
}

/// All methods: first the methods of the load test that the scenario reproduces, in the order of
/// that test, then the methods with a log. A message that a tokio file has acknowledged survives
/// nothing: the file has only buffered the bytes, and the thread that writes them may not even have
/// started (tokio::fs::File, "flush").
#[rustfmt::skip]
pub(crate) const STRATEGIES: &[Strategy] = &[
    strategy("append/loop", "loop, tokio File", Loop, Nothing),
    strategy("append/mutex", "tasks, Arc<Mutex<File>>", Mutex, Nothing),
    strategy("append/mpsc", "tasks, mpsc, one writer", Mpsc, Nothing),
    strategy("append/flume-bufwriter", "tasks, flume, BufWriter", FlumeBufWriter, Nothing),
    strategy("append/flume-10-writers", "tasks, flume, 10 writers",
        FlumeWriters(Once), ProcessCrash),
    strategy("append/flume-10-files", "10 writers, 10 handles", FlumeWriters(Each), ProcessCrash),
    strategy("append/rendezvous", "tasks, flume, answered", Rendezvous, ProcessCrash),
    strategy("append/log-no", "Log, never synced", promise(No, false), Nothing),
    strategy("append/log-everysec", "Log, synced each second", promise(EverySec, false), Nothing),
    strategy("append/log-written", "Log, wait until written", promise(No, true), ProcessCrash),
    strategy("append/log-always", "Log, wait until durable", promise(Always, true), PowerLoss),
];

/// One row: a strategy, and for a log the number of producers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub strategy: Strategy,
    pub producers: Option<u32>,
}

impl Scenario for Append {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |strategy: &Strategy| Listed {
            scenario: NAME,
            row: strategy.name,
            way: strategy.words,
            survives: Some(strategy.survives),
        };
        STRATEGIES.iter().map(listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let amounts = Amounts::new(self, call, host::memory().bytes)?.into_iter();
        Ok(amounts.map(|amounts| amounts.plan(call.target, call.speed)).collect())
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        advice::find(evidence).into_iter().flatten().collect()
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).into_iter().collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        let best = |durable| {
            let rows = evidence.rows.iter().filter(|row| row.workload == NAME);
            let kept = rows.filter(|row| row.has_all_records() && row.is_durable() == durable);
            fastest(kept)
        };
        let durable = best(true).map(|row| {
            let writers = row.settings.effective.producers.unwrap_or(1);
            (format!("{writers} writers, durable"), row, "one wrote::Log for all")
        });
        let lost = best(false).map(|row| ("Messages, may be lost".into(), row, &*row.way));
        let answer = |(question, row, how): (String, &Row, &str)| Answer {
            question,
            row: row.name.clone(),
            how: how.into(),
            ..Answer::default()
        };
        durable.into_iter().chain(lost).map(answer).collect()
    }
}

impl Kind {
    /// Returns whether each message has a task, which holds the message until it is written.
    fn has_task_a_message(self) -> bool {
        !matches!(self, Loop | Log(_))
    }
}

impl Way {
    /// Returns the name of the row, such as `append/mutex` or `append/log-no/64`.
    pub(crate) fn name(&self) -> String {
        match self.producers {
            Some(producers) => format!("{}/{producers}", self.strategy.name),
            None => self.strategy.name.into(),
        }
    }

    /// Returns the row on this disk.
    fn composed(&self, target: &Target) -> Row {
        let producers = self.producers.map(|producers| format!(", {producers}"));
        Row {
            name: self.name(),
            workload: NAME.into(),
            // For example: `Log, never synced, 64`.
            way: self.strategy.words.to_owned() + &producers.unwrap_or_default(),
            view: Some(View::Messages),
            survives: Some(target.survives(self.strategy.survives)),
            ..Row::default()
        }
    }

    /// Returns the promise of a log; `None` for the usual methods, whose bytes don't reach the disk
    /// while the clock runs.
    fn promise(&self) -> Option<Promise> {
        match self.strategy.kind {
            Log(promise) => Some(promise),
            _ => None,
        }
    }

    /// Returns the number of concurrent producers. The messages of each producer stay in order.
    fn producers(&self) -> u32 {
        self.producers.unwrap_or(1)
    }

    /// Returns the settings of a run of `messages` messages with a total of `size_bytes`.
    fn asked(&self, amounts: &Amounts, messages: u64, size_bytes: u64) -> Settings {
        let Amounts { sizes, rate, .. } = amounts;
        let usual = Settings {
            rw: "write".into(),
            ioengine: Ioengine::Psync,
            bs_bytes: sizes.max_bytes.into(),
            size_bytes,
            iodepth: 1,
            numjobs: 1,
            sync: Flush::None,
            blocks: Blocks::New,
            message_bytes_min: Some(sizes.min_bytes.into()),
            messages: Some(messages),
            producers_are: Some("a task a message".into()),
            rate_bytes_per_s: rate.and_then(|rate| rate.bytes_per_s_of(1)),
            rate_iops: rate.and_then(|rate| rate.iops_of(1)),
            rate_process: rate.map(|rate| rate.process),
            ..Settings::default()
        };
        match self.strategy.kind {
            Log(Promise { sync, .. }) => Settings {
                ioengine: Ioengine::IoUring,
                direct: true,
                sync: match sync {
                    Always => Flush::Always,
                    EverySec => Flush::Everysec,
                    _ => Flush::FdatasyncAtEnd,
                },
                blocks: Blocks::Allocated,
                producers: Some(self.producers()),
                producers_are: Some("threads".into()),
                ..usual
            },
            Loop => Settings {
                producers: Some(self.producers()),
                producers_are: Some("one task".into()),
                ..usual
            },
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests;
