//! The ways that a request names, the messages of a run, and the space for them.

use super::message::Sizes;
use super::message::{Append, AppendAs};
use super::{Kind, NAME, Promise, STRATEGIES, Strategy, Way};
use crate::rounds::RUNS;
use crate::scenario::Call;
use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::rate::{self, Rate};
use wrote_machine::{host, space};
use wrote_result::{Error, units};

/// How long a run takes at the speed that the first look found.
pub(super) const RUN_S: f64 = 0.3;
/// Messages of that first look, which is not recorded.
const FIRST_MESSAGES: u64 = 2000;
/// A shorter look is repeated with `LOOK_GROWTH` times the messages: the work that a way does once,
/// a sync at the end, would be most of it.
const LOOK_S_MIN: f64 = 0.05;
const LOOK_GROWTH: u64 = 8;
/// The most messages of a run, where each is in memory until it is written.
const TASKS_MESSAGES_MAX: u64 = 100_000;
/// The most messages of another run.
const OTHER_MESSAGES_MAX: u64 = 400_000;
/// The fewest messages: percentiles of less say nothing.
const MESSAGES_MIN: u64 = 1000;
/// An upper bound of a task's memory beside its message.
const TASK_BYTES: u64 = 1024;
/// The most that a record and its part of a batch take beside the message.
const FRAME_BYTES: u64 = 64;
/// The unit that durable records are padded to.
const BLOCK_BYTES: u64 = 4096;
/// Bytes that a log prepares ahead: the rest of a segment, and the next segments.
const SEGMENTS_BYTES: u64 = 4 * (64 << 20);
/// First looks at a way are together shorter than this number of runs.
pub(super) const LOOKS: u32 = 2;
/// The time of a run outside its clock: preparation, reading back, removal.
pub(super) const BESIDE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub sizes: Sizes,
    pub append_as: AppendAs,
    /// The rate of all producers of a run together.
    pub rate: Option<Rate>,
    /// Rows that were called for and can't be measured, with the reason.
    pub left_out: Vec<(String, String)>,
    pub(super) time: Duration,
    pub(super) messages: Option<u64>,
    /// The bytes that the files of one run may take.
    budget_bytes: u64,
    /// The bytes of messages that one run may write, so that all keep to the limit of a request.
    share_bytes: u64,
    /// Messages of a run of each way, once the first look has told its speed.
    pub(super) counts: Vec<u64>,
}

impl Plan {
    /// The plan of the named rows; `None` where the request names none. It is measured only when
    /// asked for: the ladder alone takes a minute.
    pub(crate) fn new(asked: &Append, call: &Call) -> Result<Option<Plan>, Error> {
        Plan::within(asked, call, host::memory_bytes())
    }

    fn within(asked: &Append, call: &Call, memory_bytes: u64) -> Result<Option<Plan>, Error> {
        let producers = asked.checked_producers()?;
        let ways = ways(call, &producers);
        if ways.is_empty() {
            return Ok(None);
        }
        let most = producers.iter().copied().max().unwrap_or(1);
        call.common.rate.map_or(Ok(()), |rate| rate.check(most, "producers"))?;
        let mut plan = Plan {
            ways,
            runs: call.common.runs.unwrap_or(RUNS),
            sizes: asked.checked_sizes()?,
            append_as: asked.append_as,
            rate: call.common.rate,
            time: call.common.time.unwrap_or(rate::RUN_TIME),
            left_out: Vec::new(),
            messages: asked.checked_messages()?,
            budget_bytes: space::room_bytes(call.target),
            share_bytes: u64::MAX,
            counts: Vec::new(),
        };
        if plan.messages.is_none() {
            let files = plan.ways.len() as u64 * u64::from(plan.runs + LOOKS);
            plan.share_bytes = call.common.written_bytes_max(call.target) / files.max(1);
        }
        plan.check_space(call.target)?;
        plan.keep_memory(memory_bytes);
        Ok(Some(plan))
    }

    /// Refuses files that would leave too little of the disk free.
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

    /// Leaves out ways whose messages would take more than half of the machine's memory (W8).
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

    /// Messages of the first look at a way; none where a number was asked for.
    pub(super) fn first_messages(&self, way: &Way) -> Option<u64> {
        (self.messages.is_none() && self.rate.is_none())
            .then(|| FIRST_MESSAGES.min(self.messages_max(way)))
    }

    /// Messages of the look after one of so many that took so long; none where that was enough.
    pub(super) fn longer_look(&self, way: &Way, messages: u64, elapsed_s: f64) -> Option<u64> {
        let most = self.messages_max(way);
        (elapsed_s < LOOK_S_MIN && messages < most).then(|| (messages * LOOK_GROWTH).min(most))
    }

    /// Messages of a run of a way that takes so many a second.
    pub(super) fn messages(&self, way: &Way, messages_per_s: f64) -> u64 {
        if let Some(due) = self.messages_due() {
            return self.messages.unwrap_or(due).min(self.messages_max(way));
        }
        let wanted = self.messages.unwrap_or((messages_per_s * RUN_S) as u64);
        wanted.max(MESSAGES_MIN).min(self.messages_max(way))
    }

    /// Messages that are due in the time of a run; none without a rate.
    fn messages_due(&self) -> Option<u64> {
        let mean_bytes = u64::from(self.sizes.min_bytes).midpoint(self.sizes.max_bytes.into());
        let distance = self.rate?.mean_distance(mean_bytes);
        Some(((self.time.as_secs_f64() / distance.as_secs_f64().max(1e-12)) as u64).max(1))
    }

    pub(super) fn messages_max(&self, way: &Way) -> u64 {
        let usual = match way.strategy.kind {
            Kind::Log(Promise { waits: true, .. }) => TASKS_MESSAGES_MAX,
            kind if kind.has_task_a_message() => TASKS_MESSAGES_MAX,
            _ => OTHER_MESSAGES_MAX,
        };
        let share = (self.share_bytes / self.message_bytes_max(way)).max(MESSAGES_MIN);
        self.messages.unwrap_or(usual.min(share).min(self.messages_that_fit(way)))
    }

    fn messages_that_fit(&self, way: &Way) -> u64 {
        self.budget_bytes.saturating_sub(SEGMENTS_BYTES) / self.message_bytes_max(way)
    }

    /// The most that a message takes of a way's files.
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

/// The rows that are called for, by scenario, way, or name with the number of producers.
fn ways(call: &Call, producers: &[u32]) -> Vec<Way> {
    let of = |strategy: &Strategy| -> Vec<Way> {
        let way = |producers| Way { strategy: *strategy, producers };
        match strategy.kind {
            Kind::Log(_) => producers.iter().map(|producers| way(Some(*producers))).collect(),
            _ => vec![way(None)],
        }
    };
    let called = |strategy: &&Strategy| call.names(NAME, strategy.name);
    STRATEGIES.iter().filter(called).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::message::{BYTES_MAX, PRODUCERS_MAX};
    use super::*;
    use crate::Wear;
    use crate::sample::{Asked, asked, place as target};
    use crate::scenario::Plan as _;

    const GIB: u64 = 1 << 30;

    fn plan(request: &Asked) -> Plan {
        request
            .plan(&target(1 << 40, 1 << 39), |of, call| Plan::within(&of.append, call, 16 * GIB))
            .unwrap()
            .unwrap()
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.ways.iter().map(Way::name).collect()
    }

    #[test]
    fn the_scenario_is_measured_only_when_it_is_asked_for() {
        let none = asked(&[])
            .plan(&target(1 << 40, 1 << 39), |of, call| Plan::within(&of.append, call, 16 * GIB))
            .unwrap();
        assert!(none.is_none());
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
        // A number of runs is an amount, so that no limit of bytes is the smaller one.
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
    fn what_makes_no_sense_is_refused_in_one_line() {
        let sizes = |sizes| Asked { message_size: Some(sizes), ..asked(&["append"]) };
        for request in [
            sizes((31, 100)),
            sizes((100, 99)),
            sizes((100, BYTES_MAX + 1)),
            Asked { messages: Some(0), ..asked(&["append"]) },
            Asked { producers: vec![4, 0], ..asked(&["append"]) },
            Asked { producers: vec![PRODUCERS_MAX + 1], ..asked(&["append"]) },
        ] {
            match request.plan(&target(1 << 40, 1 << 39), |of, call| Plan::new(&of.append, call)) {
                Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(plan(&sizes((64, 64))).sizes, Sizes { min_bytes: 64, max_bytes: 64 });
    }

    #[test]
    fn a_full_disk_gets_fewer_messages_or_none() {
        let within = |request: &Asked, free| {
            request.plan(&target(10 * GIB, free), |of, call| Plan::within(&of.append, call, GIB))
        };
        let little = within(&asked(&["append"]), GIB + GIB / 2).unwrap().unwrap();
        assert!(little.space_bytes_max() <= GIB / 2, "{}", little.space_bytes_max());
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
    fn messages_of_all_runs_keep_to_the_limit_of_bytes() {
        let bytes = |wear| {
            let plan = plan(&Asked { wear, ..asked(&["append"]) });
            let of = |way: &Way| plan.messages_max(way) * plan.message_bytes_max(way);
            plan.ways.iter().map(of).sum::<u64>() * u64::from(plan.runs + LOOKS)
        };
        assert!((5_000_000_000..=10_000_000_000).contains(&bytes(None)), "{}", bytes(None));
        assert!(bytes(Some(Wear::Low)) <= 1_000_000_000, "{}", bytes(Some(Wear::Low)));
    }

    #[test]
    fn what_is_announced_bounds_what_is_written_at_any_speed() {
        let plan = plan(&asked(&["append"]));
        for messages_per_s in [1.0, 1e5, 1e9] {
            let messages = |way: &Way| plan.messages(way, messages_per_s);
            let bytes = |way: &Way| messages(way) * u64::from(plan.sizes.max_bytes);
            let round: u64 = plan.ways.iter().map(bytes).sum();
            assert!(round * u64::from(plan.runs) <= plan.written_bytes_max());
            assert!(plan.ways.iter().all(|way| bytes(way) <= plan.space_bytes_max()));
        }
    }
}
