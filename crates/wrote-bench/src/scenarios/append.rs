//! The scenario `append`: many producers append short messages to one file.

mod advice;
mod check;
mod log;
mod message;
mod plan;
mod rounds;
mod usual;

pub use message::Sizes as MessageSizes;
pub use message::{Append, AppendAs};

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use plan::Amounts;
use wrote::device::Target;
use wrote::{Survives, SyncPolicy};
use wrote_jobs::findings::Evidence;
use wrote_result::Error;
use wrote_result::document::{
    Advice, Answer, Blocks, Finding, Flush, Ioengine, Row, Settings, View,
};

pub(crate) const NAME: &str = "append";
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A loop that writes message after message to a tokio file.
    Loop,
    /// A task per message, sharing a tokio file behind a lock.
    Mutex,
    /// A task per message and a bounded tokio channel; one task writes.
    Mpsc,
    /// A task per message and an unbounded channel; one thread writes through a `BufWriter`.
    FlumeBufWriter,
    /// A task per message and an unbounded channel; ten threads write, through one shared file or
    /// each through its own.
    FlumeWriters {
        opened: Opened,
    },
    /// A task per message and a rendezvous channel; one thread writes and answers.
    Rendezvous,
    Log(Promise),
}

/// How several writers opened the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Opened {
    /// Clones of one handle, which share a file position.
    Once,
    /// Each thread opened the file and has its own position, starting at 0.
    Each,
}

/// The event that a producer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Promise {
    pub sync: SyncPolicy,
    /// Whether a producer waits for each message's ticket before the next.
    pub waits: bool,
}

/// A named way of appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// `append/mutex`. For our own ways, the number of producers follows in a row's name:
    /// `append/log-no/4`.
    pub name: &'static str,
    /// A description of at most 26 columns.
    pub words: &'static str,
    pub kind: Kind,
}

use Kind::{FlumeBufWriter, FlumeWriters, Log, Loop, Mpsc, Mutex, Rendezvous};
use Opened::{Each, Once};
use SyncPolicy::{Always, EverySec, No};

const fn strategy(name: &'static str, words: &'static str, kind: Kind) -> Strategy {
    Strategy { name, words, kind }
}

const fn promise(sync: SyncPolicy, waits: bool) -> Kind {
    Log(Promise { sync, waits })
}

/// Every way: first the ways of the load test that the scenario reproduces, in its order, then
/// ours.
pub(crate) const STRATEGIES: &[Strategy] = &[
    strategy("append/loop", "loop, tokio File", Loop),
    strategy("append/mutex", "tasks, Arc<Mutex<File>>", Mutex),
    strategy("append/mpsc", "tasks, mpsc, one writer", Mpsc),
    strategy("append/flume-bufwriter", "tasks, flume, BufWriter", FlumeBufWriter),
    strategy("append/flume-10-writers", "tasks, flume, 10 writers", FlumeWriters { opened: Once }),
    strategy("append/flume-10-files", "10 writers, 10 handles", FlumeWriters { opened: Each }),
    strategy("append/rendezvous", "tasks, flume, answered", Rendezvous),
    strategy("append/log-no", "Log, never synced", promise(No, false)),
    strategy("append/log-everysec", "Log, synced each second", promise(EverySec, false)),
    strategy("append/log-written", "Log, wait until written", promise(No, true)),
    strategy("append/log-always", "Log, wait until durable", promise(Always, true)),
];

/// One row: a strategy, and for our own the number of producers.
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
            survives: Some(strategy.acknowledged()),
        };
        STRATEGIES.iter().map(listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let amounts = Amounts::new(self, call)?;
        Ok(amounts.map(|amounts| amounts.plan(call.target)).into_iter().collect())
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        advice::find(evidence).into_iter().flatten().collect()
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).into_iter().collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        let of = |row: &&Row| {
            row.workload == NAME
                && row.is_durable()
                && row.has_all_records()
                && row.settings.effective.producers == Some(plan::WRITERS)
        };
        let answer = |row: &Row| Answer {
            question: format!("{} writers, durable", plan::WRITERS),
            row: row.name.clone(),
            how: "one wrote::Log for all".into(),
            bytes_per_s: None,
            faster: None,
        };
        evidence.rows.iter().find(of).map(answer).into_iter().collect()
    }
}

impl Strategy {
    /// The level that an acknowledged message survives on a disk that flushes reach (M3).
    fn acknowledged(&self) -> Survives {
        let flushed = match self.kind {
            // A tokio file has only buffered the bytes; the thread that writes them may not even
            // have started (tokio::fs::File, "flush").
            Loop | Mutex | Mpsc | FlumeBufWriter => return Survives::Nothing,
            Log(Promise { waits: false, .. }) => return Survives::Nothing,
            FlumeWriters { .. } | Rendezvous => false,
            Log(Promise { sync, .. }) => sync == SyncPolicy::Always,
        };
        Survives::of_write(flushed, false)
    }
}

impl Kind {
    /// Returns whether each message has its own task, which holds it until written.
    fn has_task_a_message(self) -> bool {
        !matches!(self, Loop | Log(_))
    }

    fn sync(self) -> Flush {
        match self {
            Log(Promise { sync: SyncPolicy::Always, .. }) => Flush::Always,
            Log(Promise { sync: SyncPolicy::EverySec, .. }) => Flush::Everysec,
            Log(_) => Flush::FdatasyncAtEnd,
            _ => Flush::None,
        }
    }
}

impl Way {
    /// `append/mutex`, `append/log-no/64`.
    pub(crate) fn name(&self) -> String {
        match self.producers {
            Some(producers) => format!("{}/{producers}", self.strategy.name),
            None => self.strategy.name.into(),
        }
    }

    /// A description: `Log, never synced, 64`.
    fn words(&self) -> String {
        match self.producers {
            Some(producers) => format!("{}, {producers}", self.strategy.words),
            None => self.strategy.words.into(),
        }
    }

    /// Composes the row on this disk.
    fn composed(&self, target: &Target) -> Row {
        Row {
            name: self.name(),
            workload: NAME.into(),
            way: self.words(),
            view: Some(View::Messages),
            survives: Some(target.survives(self.strategy.acknowledged())),
            ..Row::default()
        }
    }

    /// Returns the number of concurrent producers, each of which keeps its own order.
    fn producers(&self) -> u32 {
        self.producers.unwrap_or(1)
    }

    /// Returns the settings of a run of `messages` messages with a total of `size_bytes`.
    fn asked(&self, amounts: &Amounts, messages: u64, size_bytes: u64) -> Settings {
        let Amounts { sizes, append_as, rate, .. } = amounts;
        let kind = self.strategy.kind;
        let is_log = matches!(kind, Log(_));
        let producers = if kind.has_task_a_message() { None } else { Some(self.producers()) };
        let producers_are = match kind {
            Log(_) => append_as.as_str(),
            Loop => "one task",
            _ => "a task a message",
        };
        Settings {
            rw: "write".into(),
            ioengine: if is_log { Ioengine::IoUring } else { Ioengine::Psync },
            bs_bytes: sizes.max_bytes.into(),
            size_bytes,
            iodepth: 1,
            numjobs: 1,
            direct: is_log,
            sync: kind.sync(),
            blocks: if is_log { Blocks::Allocated } else { Blocks::New },
            message_bytes_min: Some(sizes.min_bytes.into()),
            messages: Some(messages),
            producers,
            producers_are: Some(producers_are.into()),
            rate_bytes_per_s: rate.and_then(|rate| rate.bytes_per_s_of(1)),
            rate_iops: rate.and_then(|rate| rate.iops_of(1)),
            rate_process: rate.map(|rate| rate.process),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests;
