//! The rows of the requested methods, the maximum number of messages of a run, and the space for
//! them.

use super::message::{Append, Sizes};
use super::{Kind, NAME, Promise, STRATEGIES, Strategy, Way};
use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, PART, Plan, RUNS, RowSpec, Within};
use crate::settings::STREAM_BS_BYTES;
use crate::stream;
use std::time::Duration;
use wrote::SyncPolicy;
use wrote::device::Target;
use wrote_jobs::findings::Burst;
use wrote_jobs::machine::target;
use wrote_jobs::rate::{self, Rate};
use wrote_result::Error;

const QUESTION: &str = "How fast does one file take short messages from many producers, and does \
    it get them all?";
/// The row of a default run: durable records of many writers.
const WRITERS_STRATEGY: &str = "append/log-always";
pub(super) const WRITERS: u32 = 64;
/// The slice of a run. When it has passed, the producers of a log stop.
const RUN: Duration = Duration::from_millis(300);
/// The expected time of a run with a usual method, and the time to check the file of any method.
const USUAL_RUN: Duration = Duration::from_millis(100);
const CHECK: Duration = Duration::from_millis(50);
/// The time to open a new log, as a multiple of the time of a flush.
const OPENING_FLUSHES: u32 = 8;
/// The number of messages of a run with a usual method. Such a run does not stop before all
/// messages in its queue are written.
const USUAL_MESSAGES: u64 = 10_000;
/// The maximum number of messages of a run with a log: if producers wait for each message, and if
/// they don't.
const LOG_MESSAGES_MAX: [u64; 2] = [100_000, 400_000];
/// The minimum number of messages for meaningful percentiles.
const MESSAGES_MIN: u64 = 1000;
/// An upper bound of the memory that a task requires in addition to its message.
const TASK_BYTES: u64 = 1024;
/// The maximum overhead of a record, including its share of the batch's overhead.
const FRAME_BYTES: u64 = 64;
/// The unit to which durable records are padded.
const BLOCK_BYTES: u64 = 4096;
/// The number of bytes that a log preallocates: the rest of a segment, and the next segments.
const SEGMENTS_BYTES: u64 = 4 * (64 << 20);
/// A log that flushes each batch writes zeros ahead of its records: first a chunk of this size,
/// then this multiple of the bytes that it has written.
const ZEROS_FIRST_BYTES: u64 = 2 << 20;
const ZEROS_TIMES: u64 = 2;

/// A validated request, with the bounds of its runs.
#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub sizes: Sizes,
    /// The time limit of a default run, counted from the start of `wrote`.
    within: Option<Duration>,
    /// The total rate of all producers of a run.
    pub rate: Option<Rate>,
    /// The requested rows that can't be measured, with the reasons.
    pub left_out: Vec<(String, String)>,
    time: Duration,
    messages: Option<u64>,
    /// The maximum size of the files of one run.
    budget_bytes: u64,
    /// The maximum number of bytes that one run writes.
    share_bytes: u64,
    /// The burst to use up before each run with a log, if the disk has one.
    pub(super) burst: Option<Burst>,
}

impl Amounts {
    /// Plans the requested rows, or the one row of a default run; `None` if there are no rows.
    pub(crate) fn new(
        asked: &Append,
        call: &Call,
        memory_bytes: u64,
    ) -> Result<Option<Amounts>, Error> {
        let producers = asked.checked_producers()?;
        let ways = ways(call, &producers);
        if ways.is_empty() {
            return Ok(None);
        }
        let most = producers.iter().copied().max().unwrap_or(1);
        call.common.rate.map_or(Ok(()), |rate| rate.check(most, "producers"))?;
        let mut amounts = Amounts {
            ways,
            runs: call.common.runs.unwrap_or(RUNS),
            sizes: asked.checked_sizes()?,
            within: call.within.filter(|_| call.is_default()),
            rate: call.common.rate,
            time: call.common.time.unwrap_or(rate::RUN_TIME),
            left_out: Vec::new(),
            messages: asked.checked_messages()?,
            budget_bytes: target::room_bytes(call.target),
            share_bytes: u64::MAX,
            burst: call.speed.and_then(|speed| speed.burst),
        };
        // Logs prepare segments, however few messages they receive.
        let least = amounts.messages.unwrap_or(MESSAGES_MIN);
        let files = amounts.ways.iter().map(|way| amounts.file_bytes(way, least));
        target::check_room(files.max().unwrap_or(0), 0, call.target)?;
        amounts.keep_memory(memory_bytes);
        let (part, bytes) = match call.is_default() {
            true => (PART, call.written_bytes_max()),
            false => (1, call.common.written_bytes_max(call.target)),
        };
        amounts.share(bytes / u64::from(part));
        Ok(Some(amounts))
    }

    /// Leaves out methods whose messages might take more than half of the machine's memory (W8).
    fn keep_memory(&mut self, memory_bytes: u64) {
        let message_bytes = u64::from(self.sizes.max_bytes) + TASK_BYTES;
        let fits = |way: &Way| {
            let bytes = self.messages_of(way).saturating_mul(message_bytes);
            !way.strategy.kind.has_task_a_message() || bytes <= memory_bytes / 2
        };
        let (kept, left): (Vec<Way>, Vec<Way>) = self.ways.iter().cloned().partition(fits);
        let because = "its queue could take more than half of the machine's memory";
        self.left_out = left.iter().map(|way| (way.name(), because.into())).collect();
        self.ways = kept;
    }

    /// Divides the bytes among the runs, after reserving the bytes that use up a burst before runs
    /// with a log. If too many bytes would have to be reserved, the burst remains in the figures.
    fn share(&mut self, wear_bytes: u64) {
        let runs = u64::from(self.runs);
        let drained: u64 = self.ways.iter().map(|way| self.drained_bytes(way)).sum();
        let left = stream::reserve(&mut self.burst, drained * runs, wear_bytes);
        self.share_bytes = left / (runs * self.ways.len().max(1) as u64);
    }

    /// Returns the plan of the rows.
    pub(super) fn plan(self, target: &Target, speed: Option<&Calibration>) -> Plan<'static> {
        let spec = |way: &Way| {
            let (first_bytes, message_bytes) = self.written(way);
            let bytes = self.messages_of(way).saturating_mul(message_bytes);
            RowSpec {
                row: way.composed(target),
                time: self.time_of(way, speed),
                beside: CHECK + speed.map_or(Duration::ZERO, |speed| self.beside(way, speed)),
                bytes_max: bytes.saturating_add(first_bytes) + self.drained_bytes(way),
                makes_files: true,
                ..RowSpec::default()
            }
        };
        let space =
            |way: &Way| self.file_bytes(way, self.messages_of(way)) + self.drained_bytes(way);
        let has_slices =
            self.slice().is_some() && self.ways.iter().any(|way| way.promise().is_some());
        Plan {
            runs: self.runs,
            left_out: self.left_out.clone(),
            within: self.within.map(|within| Within::new(within, Duration::ZERO, true)),
            is_whole: self.messages.is_some(),
            space_bytes: self.ways.iter().map(space).max().unwrap_or(0),
            wants: if has_slices { Wanted::Stream } else { Wanted::Flush },
            ..Plan::new(NAME, QUESTION, self.ways.iter().map(spec).collect(), self)
        }
    }

    /// Returns the time of a run: its slice, or less if all its messages are written sooner.
    fn time_of(&self, way: &Way, speed: Option<&Calibration>) -> Duration {
        match (way.promise(), speed) {
            (_, _) if self.rate.is_some() && self.messages.is_none() => self.time,
            (None, _) => USUAL_RUN,
            (Some(Promise { sync: SyncPolicy::Always, .. }), _) | (_, None) => RUN,
            (Some(_), Some(speed)) => {
                let bytes = self.messages_of(way).saturating_mul(self.message_bytes_max(way));
                RUN.min(speed.time_of(bytes))
            }
        }
    }

    /// Returns the additional time of a run with a log: to open the log, to use up the burst, and,
    /// if no producer waits, to write what the log has accepted.
    fn beside(&self, way: &Way, speed: &Calibration) -> Duration {
        let Some(promise) = way.promise() else { return Duration::ZERO };
        let after = if promise.waits { 0 } else { self.messages_of(way) };
        let bytes = after.saturating_mul(self.message_bytes_max(way)) + self.drained_bytes(way);
        speed.flush * OPENING_FLUSHES + speed.time_of(bytes)
    }

    /// Returns the time after which the producers of a log stop; `None` if the request sets a
    /// number of messages or a rate.
    pub(super) fn slice(&self) -> Option<Duration> {
        (self.messages.is_none() && self.rate.is_none()).then_some(RUN)
    }

    /// Returns the stream that uses up the burst before a run with this method; `None` for methods
    /// without a log, which write to the page cache.
    pub(super) fn drain(&self, way: &Way) -> Option<stream::Sizes> {
        way.promise().and_then(|_| stream::drain(self.burst, STREAM_BS_BYTES))
    }

    fn drained_bytes(&self, way: &Way) -> u64 {
        self.drain(way).map_or(0, |sizes| sizes.size_bytes)
    }

    /// Returns the number of messages of a run: the requested number, the number due at a rate, or
    /// else the maximum.
    pub(super) fn messages_of(&self, way: &Way) -> u64 {
        if let Some(messages) = self.messages {
            return messages;
        }
        let most = match (self.rate, way.promise()) {
            (Some(rate), _) => {
                let mean_bytes =
                    u64::from(self.sizes.min_bytes).midpoint(self.sizes.max_bytes.into());
                let distance_s = rate.mean_distance(mean_bytes).as_secs_f64().max(1e-12);
                ((self.time.as_secs_f64() / distance_s) as u64).max(1)
            }
            (None, Some(promise)) => LOG_MESSAGES_MAX[usize::from(!promise.waits)],
            (None, None) => USUAL_MESSAGES,
        };
        let (first_bytes, message_bytes) = self.written(way);
        let share = self.share_bytes.saturating_sub(first_bytes) / message_bytes;
        most.min(share.max(MESSAGES_MIN)).min(self.messages_that_fit(way))
    }

    /// Returns the maximum number of bytes that a run writes at its start, and with each message,
    /// including zeros.
    fn written(&self, way: &Way) -> (u64, u64) {
        let bytes = self.message_bytes_max(way);
        match way.promise() {
            Some(Promise { sync: SyncPolicy::Always, .. }) => {
                (ZEROS_FIRST_BYTES, bytes * (1 + ZEROS_TIMES))
            }
            _ => (0, bytes),
        }
    }

    fn messages_that_fit(&self, way: &Way) -> u64 {
        self.budget_bytes.saturating_sub(SEGMENTS_BYTES) / self.message_bytes_max(way)
    }

    /// Returns the maximum space that a message occupies in the files of a method.
    fn message_bytes_max(&self, way: &Way) -> u64 {
        let bytes = u64::from(self.sizes.max_bytes);
        match way.promise() {
            Some(promise) if promise.waits => (bytes + FRAME_BYTES).next_multiple_of(BLOCK_BYTES),
            Some(_) => bytes + FRAME_BYTES,
            None => bytes,
        }
    }

    fn file_bytes(&self, way: &Way, messages: u64) -> u64 {
        let ready = if way.promise().is_some() { SEGMENTS_BYTES } else { 0 };
        messages.saturating_mul(self.message_bytes_max(way)).saturating_add(ready)
    }
}

/// Returns the requested rows. A request may name the scenario, the method, or the method with the
/// number of producers.
fn ways(call: &Call, producers: &[u32]) -> Vec<Way> {
    let (is_default, many) = (call.is_default(), [WRITERS]);
    let producers = if is_default { &many } else { producers };
    let is_called = |strategy: &&Strategy| match is_default {
        true => strategy.name == WRITERS_STRATEGY,
        false => call.names(NAME, strategy.name),
    };
    let rows = |strategy: &Strategy| {
        let strategy = *strategy;
        match strategy.kind {
            Kind::Log(_) => producers
                .iter()
                .map(|producers| Way { strategy, producers: Some(*producers) })
                .collect(),
            _ => vec![Way { strategy, producers: None }],
        }
    };
    STRATEGIES.iter().filter(is_called).flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Asked, asked, place as target};
    use crate::scenarios::Scenarios;
    use crate::scenarios::append::message::{BYTES_MAX, PRODUCERS_MAX};
    use crate::{Calibration, Wear};

    const GIB: u64 = 1 << 30;

    fn amounts(request: &Asked) -> Amounts {
        request
            .plan(&target(1 << 40, 1 << 39), |of, call| Amounts::new(&of.append, call, 16 * GIB))
            .unwrap()
            .unwrap()
    }

    fn planned(amounts: Amounts) -> Plan<'static> {
        amounts.plan(&target(1 << 40, 1 << 39), None)
    }

    fn names(amounts: &Amounts) -> Vec<String> {
        amounts.ways.iter().map(Way::name).collect()
    }

    #[test]
    fn a_default_run_has_the_row_of_many_writers_and_one_of_other_rows_or_amounts_none() {
        let none = |request: Asked| {
            request
                .plan(&target(1 << 40, 1 << 39), |of, call| {
                    Amounts::new(&of.append, call, 16 * GIB)
                })
                .unwrap()
                .is_none()
        };
        assert!(none(asked(&["ladder"])) && none(Asked { runs: Some(3), ..asked(&[]) }));
        let usual = amounts(&asked(&[]));
        assert_eq!(names(&usual), ["append/log-always/64"]);
        let usual = planned(usual);
        assert!(usual.written_bytes_max() <= 1_000_000_000, "{}", usual.written_bytes_max());
        assert_eq!(amounts(&asked(&["append"])).ways.len(), 7 + 2 * 4);
        let two = amounts(&asked(&["append/mutex", "append/log-no"]));
        assert_eq!(names(&two), ["append/mutex", "append/log-no/4", "append/log-no/64"]);
    }

    #[test]
    fn a_log_has_a_row_for_each_number_of_producers_that_was_asked_for() {
        let request = Asked { producers: vec![16, 1, 16], ..asked(&["append/log-always"]) };
        assert_eq!(names(&amounts(&request)), ["append/log-always/1", "append/log-always/16"]);
    }

    #[test]
    fn a_log_ends_after_its_slice_and_a_number_that_was_asked_for_is_the_number() {
        // A requested number of runs is an amount, which removes the default limit on bytes.
        let usual = amounts(&Asked { runs: Some(5), ..asked(&["append"]) });
        let of = |name: &str| {
            let way = usual.ways.iter().find(|way| way.name() == name).unwrap();
            usual.messages_of(way)
        };
        assert_eq!(of("append/mutex"), USUAL_MESSAGES);
        assert_eq!(["append/log-always/4", "append/log-no/4"].map(of), LOG_MESSAGES_MAX);
        assert_eq!(usual.slice(), Some(RUN));
        for messages in [7, 5_000_000] {
            let request = Asked { messages: Some(messages), ..asked(&["append/log-no"]) };
            let exact = amounts(&request);
            assert_eq!(exact.messages_of(&exact.ways[0]), u64::from(messages));
            assert_eq!(exact.slice(), None);
        }
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let sizes = |sizes| Asked { message_size: Some(sizes), ..asked(&["append"]) };
        for request in [
            sizes((31, 100)),
            sizes((100, 99)),
            sizes((100, BYTES_MAX + 1)),
            Asked { messages: Some(0), ..asked(&["append"]) },
            Asked { producers: vec![4, 0], ..asked(&["append"]) },
            Asked { producers: vec![PRODUCERS_MAX + 1], ..asked(&["append"]) },
        ] {
            match request.plan(&target(1 << 40, 1 << 39), |of, call| {
                Amounts::new(&of.append, call, 16 * GIB)
            }) {
                Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(amounts(&sizes((64, 64))).sizes, Sizes { min_bytes: 64, max_bytes: 64 });
    }

    #[test]
    fn a_full_disk_gets_fewer_messages_or_none() {
        let within = |request: &Asked, free| {
            request.plan(&target(10 * GIB, free), |of, call| Amounts::new(&of.append, call, GIB))
        };
        let little = planned(within(&asked(&["append"]), GIB + GIB / 2).unwrap().unwrap());
        assert!(little.space_bytes <= GIB / 2, "{}", little.space_bytes);
        let full = within(&asked(&["append"]), GIB).unwrap_err();
        assert!(full.to_string().ends_with("Free some space first"), "{full}");
        let many = Asked { messages: Some(1_000_000), ..asked(&["append"]) };
        let error = within(&many, 2 * GIB).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    #[test]
    fn ways_whose_queue_would_take_the_memory_are_left_out_and_named() {
        // W8
        let many = Asked { messages: Some(10_000_000), ..asked(&["append"]) };
        let plan = amounts(&many);
        let left: Vec<&str> = plan.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left.len(), 6, "{left:?}");
        assert!(left.contains(&"append/mutex") && !left.contains(&"append/loop"));
        assert!(plan.ways.iter().all(|way| !way.strategy.kind.has_task_a_message()));
    }

    #[test]
    fn all_runs_keep_to_the_limit_of_bytes() {
        let most =
            |wear| planned(amounts(&Asked { wear, ..asked(&["append"]) })).written_bytes_max();
        assert!((2_000_000_000..=10_000_000_000).contains(&most(None)), "{}", most(None));
        assert!(most(Some(Wear::Low)) <= 1_000_000_000, "{}", most(Some(Wear::Low)));
    }

    #[test]
    fn on_a_disk_with_a_burst_runs_of_logs_begin_when_it_is_used_up() {
        let of = |bytes| {
            let burst = Some(Burst { bytes, bytes_per_s: 125e6, is_left_out: bytes < 60_000_000 });
            let flush = Duration::from_millis(1);
            let speed = Calibration { bytes_per_s: 125e6, flush, burst, ..Calibration::default() };
            let plan = |of: &Scenarios, call: &Call| Amounts::new(&of.append, call, 16 * GIB);
            let disk = target(1 << 40, 1 << 39);
            asked(&["append"]).plan_at(Some(&speed), &disk, plan).unwrap().unwrap()
        };
        let small = of(25_000_000);
        assert!(small.drain(&small.ways[7]).unwrap().size_bytes >= 25_000_000);
        assert!(small.drain(&small.ways[0]).is_none(), "a cached way");
        assert!(planned(small).written_bytes_max() <= 10_000_000_000);
        // The burst is too large to be used up before each run.
        let large = of(100_000_000);
        assert!(large.drain(&large.ways[7]).is_none() && !large.burst.unwrap().is_left_out);
    }
}
