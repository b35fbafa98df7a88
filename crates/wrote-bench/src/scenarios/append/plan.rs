//! The requested ways, the messages per run, and the space for them.

use super::message::Sizes;
use super::message::{Append, AppendAs};
use super::{Kind, NAME, Promise, STRATEGIES, Strategy, Way};
use crate::plan::{Call, Plan, RUNS, RowSpec, Within};
use crate::scenarios::ladder::plan as ladder_plan;
use crate::settings::STREAM_BS_BYTES;
use crate::stream;
use std::time::Duration;
use wrote::SyncPolicy;
use wrote::device::Target;
use wrote_jobs::findings::Burst;
use wrote_jobs::machine::{host, target};
use wrote_jobs::rate::{self, Rate};
use wrote_result::{Error, units};

const QUESTION: &str = "How fast does one file take short messages from many producers, and does \
    it get them all?";
/// The row of a default run: durable records of many writers.
const WRITERS_STRATEGY: &str = "append/log-always";
pub(super) const WRITERS: u32 = 64;
/// The slice of a run. It has as many messages as fit into it at the speed of a trial run.
const RUN_S: f64 = 0.3;
/// The messages of the first trial, which is not recorded.
const FIRST_MESSAGES: u64 = 2000;
/// A shorter trial is repeated with `LOOK_GROWTH` times the messages, because work done once per
/// run (a sync at the end) would dominate.
const LOOK_S_MIN: f64 = 0.05;
const LOOK_GROWTH: u64 = 8;
/// The most messages of a run that keeps each in memory until written.
const TASKS_MESSAGES_MAX: u64 = 100_000;
/// The most messages of any other run.
const OTHER_MESSAGES_MAX: u64 = 400_000;
/// The fewest messages for meaningful percentiles.
const MESSAGES_MIN: u64 = 1000;
/// An upper bound of a task's memory besides its message.
const TASK_BYTES: u64 = 1024;
/// The maximum overhead of a record and its share of a batch.
const FRAME_BYTES: u64 = 64;
/// The unit to which durable records are padded.
const BLOCK_BYTES: u64 = 4096;
/// Bytes that a log preallocates: the rest of a segment, and the next segments.
const SEGMENTS_BYTES: u64 = 4 * (64 << 20);
/// A log that flushes each batch writes zeros ahead of its records: a first chunk, then as many
/// bytes as it has written.
const ZEROS_FIRST_BYTES: u64 = 2 << 20;
const ZEROS_TIMES: u64 = 2;
/// Runs on a disk with a burst are longer by this factor.
const BURST_TIMES: f64 = 3.0;
/// All trials of a way are together shorter than this many runs.
const LOOKS: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub sizes: Sizes,
    pub append_as: AppendAs,
    /// The time limit, counted from the program's start, of a default run.
    pub(super) within: Option<Within>,
    /// The combined rate of all producers of a run.
    pub rate: Option<Rate>,
    /// Requested rows that can't be measured, with reasons.
    pub left_out: Vec<(String, String)>,
    pub(super) time: Duration,
    pub(super) messages: Option<u64>,
    /// The maximum size of one run's files.
    budget_bytes: u64,
    /// The most bytes that all runs write together.
    wear_bytes: u64,
    /// The share of one run in that limit.
    share_bytes: u64,
    /// The burst to use up before runs of logs, if the disk has one.
    pub(super) burst: Option<Burst>,
    /// The messages of each way's runs, known after the trial.
    pub(super) counts: Vec<u64>,
}

impl Amounts {
    /// Plans the requested rows, and one row of a default run; `None` if there are none.
    pub(crate) fn new(asked: &Append, call: &Call) -> Result<Option<Amounts>, Error> {
        Amounts::within(asked, call, host::memory().bytes)
    }

    fn within(asked: &Append, call: &Call, memory_bytes: u64) -> Result<Option<Amounts>, Error> {
        let producers = asked.checked_producers()?;
        let ways = ways(call, &producers);
        if ways.is_empty() {
            return Ok(None);
        }
        let most = producers.iter().copied().max().unwrap_or(1);
        call.common.rate.map_or(Ok(()), |rate| rate.check(most, "producers"))?;
        let mut plan = Amounts {
            ways,
            runs: call.common.runs.unwrap_or(RUNS),
            sizes: asked.checked_sizes()?,
            append_as: asked.append_as,
            within: call.is_default().then(|| {
                let within = call.within.unwrap_or(ladder_plan::WITHIN);
                Within::new(within, Duration::ZERO, true)
            }),
            rate: call.common.rate,
            time: call.common.time.unwrap_or(rate::RUN_TIME),
            left_out: Vec::new(),
            messages: asked.checked_messages()?,
            budget_bytes: target::room_bytes(call.target),
            wear_bytes: u64::MAX,
            share_bytes: u64::MAX,
            burst: None,
            counts: Vec::new(),
        };
        plan.check_space(call.target)?;
        plan.keep_memory(memory_bytes);
        if plan.messages.is_none() {
            plan.wear_bytes = call.common.written_bytes_max(call.target);
            if call.is_default() {
                plan.wear_bytes /= u64::from(ladder_plan::LOG_PART);
            }
            plan.share(plan.wear_bytes, plan.ways.len());
        }
        plan.leave_out(call.speed.and_then(|speed| speed.burst));
        Ok(Some(plan))
    }

    /// Returns the plan of the rows.
    pub(super) fn plan(self, target: &Target) -> Plan<'static> {
        let most = self.written_bytes_most();
        let time = self.slice();
        let spec = |way: &Way| RowSpec {
            row: way.composed(target),
            time,
            bytes_max: most / u64::from(self.runs) / self.ways.len().max(1) as u64,
            makes_files: true,
            ..RowSpec::default()
        };
        let rows: Vec<RowSpec> = self.ways.iter().map(spec).collect();
        let round: u64 = rows.iter().map(|spec| spec.bytes_max).sum();
        let of = |way: &Way| self.file_bytes(way, self.messages_at_most(way));
        let drained = self.ways.iter().map(|way| self.drained_bytes(way)).max().unwrap_or(0);
        Plan {
            runs: self.runs,
            left_out: self.left_out.clone(),
            within: self.within,
            space_bytes: self.ways.iter().map(of).max().unwrap_or(0) + drained,
            prepared_bytes: most - round * u64::from(self.runs),
            wants_speed: self.needs_trial(),
            ..Plan::new(NAME, QUESTION, rows, self)
        }
    }

    /// Divides bytes among the runs and trials of this many ways.
    fn share(&mut self, bytes: u64, ways: usize) {
        if bytes < u64::MAX {
            self.share_bytes = bytes / (ways.max(1) as u64 * u64::from(self.runs + LOOKS));
        }
    }

    /// Chooses the messages per run of the next way, given its speed. Later ways may use what it
    /// leaves of its share.
    pub(super) fn count(&mut self, messages_per_s: f64) {
        let way = self.ways[self.counts.len()].clone();
        let messages = self.messages(&way, messages_per_s);
        self.counts.push(messages);
        let looks = u64::from(LOOKS) * self.written_by(&way, self.messages_max(&way));
        let runs = u64::from(self.runs) * self.written_by(&way, messages);
        let ways_left = self.ways.len() - self.counts.len();
        let shared = self.share_bytes.saturating_mul(u64::from(self.runs + LOOKS));
        let left = shared.saturating_mul(ways_left as u64 + 1).saturating_sub(looks + runs);
        self.share(left, ways_left);
    }

    /// Returns whether sizes depend on the disk's speed.
    pub(super) fn needs_trial(&self) -> bool {
        let is_log = |way: &Way| way.is_log();
        self.messages.is_none() && self.rate.is_none() && self.ways.iter().any(is_log)
    }

    /// Reserves the bytes that use up a burst before runs of logs. If they would be too many, the
    /// burst remains in the figures.
    pub(super) fn leave_out(&mut self, burst: Option<Burst>) {
        self.burst = burst;
        let left;
        (self.burst, left) = stream::reserve(burst, self.drained_bytes_max(), self.wear_bytes);
        if let Some(left) = left {
            self.share(left, self.ways.len());
        }
    }

    /// Returns the stream that uses up the burst before a run of this way. Other ways write to the
    /// page cache.
    pub(super) fn drain(&self, way: &Way) -> Option<stream::Sizes> {
        stream::drain(self.burst, STREAM_BS_BYTES).filter(|_| way.is_log())
    }

    pub(super) fn drained_bytes(&self, way: &Way) -> u64 {
        self.drain(way).map_or(0, |sizes| sizes.size_bytes)
    }

    pub(super) fn drained_bytes_max(&self) -> u64 {
        self.ways.iter().map(|way| self.drained_bytes(way)).sum::<u64>() * u64::from(self.runs)
    }

    /// Returns how many times longer runs are, so that a burst is only a small part of them.
    fn longer(&self) -> f64 {
        if self.burst.is_some() { BURST_TIMES } else { 1.0 }
    }

    /// Refuses files that would leave too little free space.
    fn check_space(&self, target: &Target) -> Result<(), Error> {
        let least = self.messages.unwrap_or(MESSAGES_MIN);
        let fit = self.ways.iter().map(|way| self.messages_that_fit(way)).min().unwrap_or(u64::MAX);
        if least <= fit {
            return Ok(());
        }
        let way_out = match fit {
            0..MESSAGES_MIN => "Free some space first".into(),
            fit => format!("Use --messages {fit} or less"),
        };
        Err(Error::Failed(format!(
            "{}: {least} messages take up to {}, and {} of files may be made there, so that 10 % \
             of the file system or 5 GiB stay free. {way_out}",
            target.path.display(),
            units::bytes(
                self.ways.iter().map(|way| self.file_bytes(way, least)).max().unwrap_or(0)
            ),
            units::bytes(self.budget_bytes),
        )))
    }

    /// Leaves out ways whose messages would need more than half of the machine's memory (W8).
    fn keep_memory(&mut self, memory_bytes: u64) {
        let message_bytes = u64::from(self.sizes.max_bytes) + TASK_BYTES;
        let fits = |way: &Way| {
            let bytes = self.messages_max(way).saturating_mul(message_bytes);
            !way.strategy.kind.has_task_a_message() || bytes <= memory_bytes / 2
        };
        let (kept, left): (Vec<Way>, Vec<Way>) = self.ways.iter().cloned().partition(fits);
        let because = "its queue could take more than half of the machine's memory";
        self.left_out = left.iter().map(|way| (way.name(), because.into())).collect();
        self.ways = kept;
    }

    /// Returns the messages of a way's first trial; `None` if the request specifies a number.
    pub(super) fn first_messages(&self, way: &Way) -> Option<u64> {
        (self.messages.is_none() && self.rate.is_none())
            .then(|| FIRST_MESSAGES.min(self.messages_max(way)))
    }

    /// Returns the messages of the next trial after one of this length; `None` if that was long
    /// enough.
    pub(super) fn longer_look(&self, way: &Way, messages: u64, elapsed_s: f64) -> Option<u64> {
        let most = self.messages_max(way);
        (elapsed_s < LOOK_S_MIN * self.longer() && messages < most)
            .then(|| (messages * LOOK_GROWTH).min(most))
    }

    /// Returns the messages of a run, given the way's speed.
    pub(super) fn messages(&self, way: &Way, messages_per_s: f64) -> u64 {
        if let Some(due) = self.messages_due() {
            return self.messages.unwrap_or(due).min(self.messages_max(way));
        }
        let wanted = self.messages.unwrap_or((messages_per_s * RUN_S * self.longer()) as u64);
        wanted.max(MESSAGES_MIN).min(self.messages_max(way))
    }

    /// Returns the messages due within a run; `None` without a rate.
    fn messages_due(&self) -> Option<u64> {
        let distance = self.rate?.mean_distance(self.mean_bytes());
        Some(((self.time.as_secs_f64() / distance.as_secs_f64().max(1e-12)) as u64).max(1))
    }

    /// Returns the time of a run.
    pub(super) fn slice(&self) -> Duration {
        match self.rate {
            Some(_) if self.messages.is_none() => self.time,
            _ => Duration::from_secs_f64(RUN_S * self.longer()),
        }
    }

    fn mean_bytes(&self) -> u64 {
        u64::from(self.sizes.min_bytes).midpoint(self.sizes.max_bytes.into())
    }

    pub(super) fn messages_max(&self, way: &Way) -> u64 {
        self.messages_within(way, self.share_bytes)
    }

    /// Returns the most messages of a run that writes at most `bytes`, but at least the minimum.
    fn messages_within(&self, way: &Way, bytes: u64) -> u64 {
        let usual = match way.strategy.kind {
            Kind::Log(Promise { waits: true, .. }) => TASKS_MESSAGES_MAX,
            kind if kind.has_task_a_message() => TASKS_MESSAGES_MAX,
            _ => OTHER_MESSAGES_MAX,
        };
        let each = self.written_by(way, 1) - self.written_by(way, 0);
        let share = bytes.saturating_sub(self.written_by(way, 0)) / each;
        let share = share.max(MESSAGES_MIN);
        self.messages.unwrap_or(usual.min(share).min(self.messages_that_fit(way)))
    }

    /// Returns the most messages of a run if the other ways leave it their whole share.
    pub(super) fn messages_at_most(&self, way: &Way) -> u64 {
        self.messages_within(way, self.wear_bytes / u64::from(self.runs + LOOKS))
    }

    /// Returns the most bytes that a run of this many messages writes, including zeros.
    fn written_by(&self, way: &Way, messages: u64) -> u64 {
        let bytes = messages.saturating_mul(self.message_bytes_max(way));
        match way.strategy.kind {
            Kind::Log(Promise { sync: SyncPolicy::Always, .. }) => {
                bytes.saturating_mul(1 + ZEROS_TIMES).saturating_add(ZEROS_FIRST_BYTES)
            }
            _ => bytes,
        }
    }

    /// Returns the most bytes that all runs write: the request's limit, or what the fewest messages
    /// need.
    pub(super) fn written_bytes_most(&self) -> u64 {
        // Growing trials are together less than twice the longest.
        let looks = if self.messages.is_none() { LOOKS } else { 0 };
        let all = |messages: &dyn Fn(&Way) -> u64| {
            let of = |way| self.written_by(way, messages(way));
            let of = |way| of(way).saturating_mul(u64::from(self.runs + looks));
            self.ways.iter().map(of).fold(0, u64::saturating_add)
        };
        let least = all(&|way| self.messages_within(way, 0)) + self.drained_bytes_max();
        let most = all(&|way| self.messages_at_most(way)).saturating_add(self.drained_bytes_max());
        most.min(self.wear_bytes.max(least))
    }

    fn messages_that_fit(&self, way: &Way) -> u64 {
        self.budget_bytes.saturating_sub(SEGMENTS_BYTES) / self.message_bytes_max(way)
    }

    /// Returns the maximum space of a message in a way's files.
    fn message_bytes_max(&self, way: &Way) -> u64 {
        let bytes = u64::from(self.sizes.max_bytes);
        match way.strategy.kind {
            Kind::Log(Promise { waits: true, .. }) => {
                (bytes + FRAME_BYTES).next_multiple_of(BLOCK_BYTES)
            }
            Kind::Log(_) => bytes + FRAME_BYTES,
            _ => bytes,
        }
    }

    pub(super) fn file_bytes(&self, way: &Way, messages: u64) -> u64 {
        let ready = if matches!(way.strategy.kind, Kind::Log(_)) { SEGMENTS_BYTES } else { 0 };
        messages.saturating_mul(self.message_bytes_max(way)).saturating_add(ready)
    }
}

impl Way {
    /// Returns whether its bytes go to the disk while the clock runs.
    fn is_log(&self) -> bool {
        matches!(self.strategy.kind, Kind::Log(_))
    }
}

/// Returns the rows requested by scenario, way, or name with the number of producers.
fn ways(call: &Call, producers: &[u32]) -> Vec<Way> {
    let of = |strategy: &Strategy| -> Vec<Way> {
        let way = |producers| Way { strategy: *strategy, producers };
        match strategy.kind {
            Kind::Log(_) => producers.iter().map(|producers| way(Some(*producers))).collect(),
            _ => vec![way(None)],
        }
    };
    if call.is_default() {
        let strategy = STRATEGIES.iter().find(|strategy| strategy.name == WRITERS_STRATEGY);
        let way = |strategy: &Strategy| Way { strategy: *strategy, producers: Some(WRITERS) };
        return strategy.map(way).into_iter().collect();
    }
    let called = |strategy: &&Strategy| call.names(NAME, strategy.name);
    STRATEGIES.iter().filter(called).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::message::{BYTES_MAX, PRODUCERS_MAX};
    use super::*;
    use crate::Wear;
    use crate::sample::{Asked, asked, place as target};

    const GIB: u64 = 1 << 30;

    fn plan(request: &Asked) -> Amounts {
        request
            .plan(&target(1 << 40, 1 << 39), |of, call| Amounts::within(&of.append, call, 16 * GIB))
            .unwrap()
            .unwrap()
    }

    fn space_bytes(amounts: &Amounts) -> u64 {
        amounts.clone().plan(&target(1 << 40, 1 << 39)).space_bytes
    }

    fn names(plan: &Amounts) -> Vec<String> {
        plan.ways.iter().map(Way::name).collect()
    }

    #[test]
    fn a_default_run_has_the_row_of_many_writers_and_one_of_other_rows_or_amounts_none() {
        let none = |request: Asked| {
            request
                .plan(&target(1 << 40, 1 << 39), |of, call| Amounts::new(&of.append, call))
                .unwrap()
                .is_none()
        };
        assert!(none(asked(&["ladder"])) && none(Asked { runs: Some(3), ..asked(&[]) }));
        let usual = plan(&asked(&[]));
        assert_eq!(names(&usual), ["append/log-always/64"]);
        assert!(usual.written_bytes_most() <= 1_000_000_000, "{}", usual.written_bytes_most());
        assert_eq!(plan(&asked(&["append"])).ways.len(), 7 + 2 * 5);
        let two = plan(&asked(&["append/mutex", "append/log-no"]));
        assert_eq!(names(&two), ["append/mutex", "append/log-no/4", "append/log-no/64"]);
    }

    #[test]
    fn a_log_has_a_row_for_each_number_of_producers_that_was_asked_for() {
        let request = Asked { producers: vec![16, 1, 16], ..asked(&["append/log-always"]) };
        assert_eq!(names(&plan(&request)), ["append/log-always/1", "append/log-always/16"]);
    }

    #[test]
    fn a_slow_way_gets_fewer_messages_and_a_number_that_was_asked_for_is_the_number() {
        // A number of runs is an amount, which lifts the default byte limit.
        let usual = plan(&Asked { runs: Some(5), ..asked(&["append"]) });
        let (tasks, log) = (&usual.ways[1], &usual.ways[7]);
        assert_eq!(usual.messages(tasks, 10_000.0), 3000);
        assert_eq!(usual.messages(tasks, 1e7), TASKS_MESSAGES_MAX);
        assert_eq!(usual.messages(log, 1e7), OTHER_MESSAGES_MAX);
        assert_eq!(usual.messages(tasks, 1.0), MESSAGES_MIN);
        let exact = plan(&Asked { messages: Some(5_000_000), ..asked(&["append/log-no"]) });
        assert_eq!(exact.messages(&exact.ways[0], 1.0), 5_000_000);
        assert_eq!(exact.first_messages(&exact.ways[0]), None);
        assert_eq!(usual.first_messages(log), Some(FIRST_MESSAGES));
        assert_eq!(usual.longer_look(log, 2000, 0.01), Some(16_000));
        assert_eq!(usual.longer_look(log, 2000, 0.06), None);
        assert_eq!(usual.longer_look(tasks, 99_000, 0.01), Some(TASKS_MESSAGES_MAX));
        assert_eq!(usual.longer_look(tasks, TASKS_MESSAGES_MAX, 0.01), None);
        let few = plan(&Asked { messages: Some(7), ..asked(&["append/log-no"]) });
        assert_eq!(few.messages(&few.ways[0], 1e9), 7);
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
            match request.plan(&target(1 << 40, 1 << 39), |of, call| Amounts::new(&of.append, call))
            {
                Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(plan(&sizes((64, 64))).sizes, Sizes { min_bytes: 64, max_bytes: 64 });
    }

    #[test]
    fn a_full_disk_gets_fewer_messages_or_none() {
        let within = |request: &Asked, free| {
            request.plan(&target(10 * GIB, free), |of, call| Amounts::within(&of.append, call, GIB))
        };
        let little = within(&asked(&["append"]), GIB + GIB / 2).unwrap().unwrap();
        assert!(space_bytes(&little) <= GIB / 2, "{}", space_bytes(&little));
        let full = within(&asked(&["append"]), GIB).unwrap_err();
        assert!(full.to_string().ends_with("Free some space first"), "{full}");
        let many = Asked { messages: Some(1_000_000), ..asked(&["append"]) };
        let error = within(&many, 2 * GIB).unwrap_err().to_string();
        let fits = error.split("--messages ").nth(1).unwrap().split(' ').next().unwrap();
        let fits = Asked { messages: Some(fits.parse().unwrap()), ..many };
        assert!(within(&fits, 2 * GIB).is_ok(), "{error}");
    }

    #[test]
    fn ways_whose_queue_would_take_the_memory_are_left_out_and_named() {
        // W8
        let many = Asked { messages: Some(10_000_000), ..asked(&["append"]) };
        let plan = plan(&many);
        let left: Vec<&str> = plan.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left.len(), 6, "{left:?}");
        assert!(left.contains(&"append/mutex") && !left.contains(&"append/loop"));
        assert!(plan.ways.iter().all(|way| !way.strategy.kind.has_task_a_message()));
    }

    #[test]
    fn messages_of_all_runs_keep_to_the_limit_of_bytes_and_leave_little_of_it() {
        let written = |wear, messages_per_s: f64| {
            let mut plan = plan(&Asked { wear, ..asked(&["append"]) });
            let most = plan.written_bytes_most();
            (0..plan.ways.len()).for_each(|_| plan.count(messages_per_s));
            let of = |(way, count): (&Way, &u64)| plan.written_by(way, *count);
            let runs: u64 = plan.ways.iter().zip(&plan.counts).map(of).sum();
            (runs * u64::from(plan.runs), most)
        };
        let (bytes, most) = written(None, f64::MAX);
        assert!(most <= 10_000_000_000, "{most}");
        assert!((5_000_000_000..=most).contains(&bytes), "{bytes}");
        let (bytes, most) = written(Some(Wear::Low), f64::MAX);
        assert!(bytes <= most && most <= 1_000_000_000, "{bytes} of {most}");
        // A single way gets everything, up to the maximum messages of a run.
        let mut one = plan(&asked(&["append/log-no"]));
        one.ways.truncate(1);
        one.leave_out(None);
        one.count(f64::MAX);
        assert_eq!(one.counts, [OTHER_MESSAGES_MAX]);
    }

    #[test]
    fn slow_ways_leave_their_bytes_to_those_behind_them() {
        let mut plan = plan(&asked(&["append"]));
        let last = plan.ways.last().unwrap().clone();
        let alike = plan.messages_max(&last);
        let (ways, most) = (plan.ways.len(), plan.written_bytes_most());
        (1..ways).for_each(|_| plan.count(1.0));
        plan.count(f64::MAX);
        assert!(plan.counts[ways - 1] > 2 * alike, "{} of {alike}", plan.counts[ways - 1]);
        assert!(plan.file_bytes(&last, plan.counts[ways - 1]) <= space_bytes(&plan));
        let of = |(way, count): (&Way, &u64)| plan.written_by(way, *count);
        let runs: u64 = plan.ways.iter().zip(&plan.counts).map(of).sum();
        assert!(runs * u64::from(plan.runs) <= most);
    }

    #[test]
    fn on_a_disk_with_a_burst_runs_of_logs_are_longer_and_begin_when_it_is_used_up() {
        let burst = |bytes| Burst { bytes, bytes_per_s: 125e6, is_left_out: true };
        let mut plan = plan(&asked(&["append"]));
        let before = plan.written_bytes_most();
        let log = plan.ways[7].clone();
        assert!(plan.needs_trial() && plan.drain(&log).is_none());
        let messages = plan.messages(&log, 10_000.0);
        plan.leave_out(Some(burst(25_000_000)));
        assert_eq!(plan.messages(&log, 10_000.0), 3 * messages);
        assert!(plan.drain(&log).unwrap().size_bytes >= 25_000_000);
        assert!(plan.drain(&plan.ways[0]).is_none(), "a cached way");
        assert_eq!(plan.written_bytes_most(), before);
        // A burst too large to use up before each run.
        plan.leave_out(Some(burst(100_000_000)));
        assert!(plan.drain(&log).is_none() && !plan.burst.unwrap().is_left_out);
    }

    #[test]
    fn the_announced_bytes_bound_those_written_at_any_speed() {
        for messages_per_s in [1.0, 1e5, 1e9] {
            let mut plan = plan(&asked(&["append"]));
            let most = plan.written_bytes_most();
            (0..plan.ways.len()).for_each(|_| plan.count(messages_per_s));
            let bytes = |(way, count): (&Way, &u64)| plan.written_by(way, *count);
            let round: u64 = plan.ways.iter().zip(&plan.counts).map(bytes).sum();
            assert!(round * u64::from(plan.runs) <= most);
            let files = plan.ways.iter().zip(&plan.counts);
            let file = |(way, count): (&Way, &u64)| plan.file_bytes(way, *count);
            assert!(files.map(file).all(|bytes| bytes <= space_bytes(&plan)));
        }
    }
}
