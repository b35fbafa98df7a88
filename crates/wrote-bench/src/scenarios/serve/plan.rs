//! The requested rows, the messages per run, and the space for them.

use super::settings::{Serve, ServerUrl};
use super::{DOORS, Door, NAME, Way};
use crate::rounds::RUNS;
use crate::scenario::Call;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::machine::space;
use wrote_jobs::rate::{self, Rate};
use wrote_result::{Error, units};

/// The upper bound for a run's messages: faster than any server.
const MESSAGES_PER_S_MAX: f64 = 2e6;
/// The fewest messages for meaningful percentiles.
const MESSAGES_MIN: u64 = 100;
/// The time of the trial, which is not recorded.
pub(super) const LOOK: Duration = Duration::from_millis(300);
/// The maximum overhead of a record and its share of a batch.
const FRAME_BYTES: u64 = 64;
/// The unit to which durable records are padded.
const BLOCK_BYTES: u64 = 4096;
/// Bytes that a log preallocates: the rest of a segment, and the next segments.
const SEGMENTS_BYTES: u64 = 4 * (64 << 20);

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub ways: Vec<Way>,
    pub runs: u32,
    pub message_bytes: u32,
    /// The combined rate of all connections of a run.
    pub rate: Option<Rate>,
    pub time: Duration,
    /// Requested rows that can't be measured, with reasons.
    pub left_out: Vec<(String, String)>,
    /// External servers; if empty, our own is measured.
    pub urls: Vec<ServerUrl>,
    pub foreign_log: Option<PathBuf>,
    pub foreign_pid: Option<u32>,
    pub program: Option<PathBuf>,
    /// The maximum size of one run's log.
    budget_bytes: u64,
    /// The messages of each way's runs, known after the trial.
    pub(super) counts: Vec<u64>,
}

impl Plan {
    /// Plans the requested rows; `None` if there are none.
    pub(crate) fn new(asked: &Serve, call: &Call) -> Result<Option<Plan>, Error> {
        asked.check_numbers()?;
        let message_bytes = asked.checked_bytes()?;
        let ways = ways(asked, call);
        if ways.is_empty() {
            return Ok(None);
        }
        let urls = asked.server_url.clone();
        let is_driven =
            |way: &Way| urls.is_empty() || urls.iter().any(|url| url.protocol == way.door.protocol);
        let (ways, left): (Vec<Way>, Vec<Way>) = ways.into_iter().partition(is_driven);
        let because = "no --server-url speaks it";
        let plan = Plan {
            ways,
            runs: call.common.runs.unwrap_or(RUNS),
            message_bytes,
            rate: call.common.rate,
            time: call.common.time.unwrap_or(rate::RUN_TIME),
            left_out: left.iter().map(|way| (way.name(), because.into())).collect(),
            urls,
            foreign_log: asked.server_log.clone(),
            foreign_pid: asked.server_pid,
            program: asked.program.clone(),
            budget_bytes: space::room_bytes(call.target),
            counts: Vec::new(),
        };
        let least = plan.ways.iter().map(|way| plan.messages_max(way)).min();
        if least.is_some_and(|least| least < MESSAGES_MIN) {
            return Err(Error::Failed(format!(
                "{}: {MESSAGES_MIN} messages need more than the {} that may be used there, so that \
                 10 % of the file system or 5 GiB stay free. Free some space first",
                call.target.path.display(),
                units::bytes(plan.budget_bytes),
            )));
        }
        Ok(Some(plan))
    }

    /// Returns the most messages of a run.
    pub(super) fn messages_max(&self, way: &Way) -> u64 {
        let most = (MESSAGES_PER_S_MAX * self.time.max(LOOK).as_secs_f64()) as u64;
        if !self.urls.is_empty() {
            return most;
        }
        let record_bytes = u64::from(self.message_bytes) + FRAME_BYTES;
        let padded_bytes = match way.door.protocol.answers() {
            true => record_bytes.next_multiple_of(BLOCK_BYTES),
            false => record_bytes,
        };
        most.min(self.budget_bytes.saturating_sub(SEGMENTS_BYTES) / padded_bytes)
    }

    /// Returns the messages of a run, given the way's speed; with a rate, the ones that are due.
    pub(super) fn messages(&self, way: &Way, messages_per_s: f64) -> u64 {
        let time_s = self.time.as_secs_f64();
        let wanted = match self.rate {
            Some(rate) => {
                let distance = rate.mean_distance(self.message_bytes.into());
                ((time_s / distance.as_secs_f64().max(1e-12)) as u64).max(1)
            }
            None => ((messages_per_s * time_s) as u64).max(MESSAGES_MIN),
        };
        wanted.min(self.messages_max(way))
    }

    /// Returns the maximum size of a run's log. Padding counts only if there are few flushes for
    /// the maximum messages.
    pub(super) fn log_bytes_max(&self, way: &Way) -> u64 {
        if !self.urls.is_empty() {
            return 0;
        }
        let record_bytes = u64::from(self.message_bytes) + FRAME_BYTES;
        (self.messages_max(way) * record_bytes).saturating_add(SEGMENTS_BYTES)
    }
}

/// Returns the rows requested by scenario, protocol, or name with connections and window.
fn ways(asked: &Serve, call: &Call) -> Vec<Way> {
    let sorted = |asked: &[u32], usual: &[u32]| {
        let mut numbers = if asked.is_empty() { usual } else { asked }.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let of = |door: &Door| -> Vec<Way> {
        let windows: Vec<Option<u32>> = match door.protocol.answers() {
            true => sorted(&asked.window, door.windows).into_iter().map(Some).collect(),
            false => vec![None],
        };
        let connections = sorted(&asked.connections, door.connections);
        let way = |connections, window| Way { door: *door, connections, window };
        let with = |of: u32| windows.iter().map(move |window| way(of, *window));
        connections.iter().flat_map(|of| with(*of)).collect()
    };
    let is_called = |door: &&Door| {
        let names = || call.only.iter().filter(|name| *name != NAME);
        (door.is_usual && call.only.iter().any(|name| name == NAME))
            || names().any(|name| crate::scenario::is_below(door.name, name))
    };
    DOORS.iter().filter(is_called).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{asked, place};
    use crate::scenario::Bounds as _;

    const GIB: u64 = 1 << 30;

    fn planned(serve: &Serve, only: &[&str], free: u64) -> Result<Option<Plan>, Error> {
        asked(only).plan(&place(1 << 40, free), |_, call| Plan::new(serve, call))
    }

    fn names(serve: &Serve, only: &[&str]) -> Vec<String> {
        planned(serve, only, 1 << 39).unwrap().unwrap().ways.iter().map(Way::name).collect()
    }

    #[test]
    fn the_scenario_is_measured_only_when_it_is_asked_for() {
        assert!(planned(&Serve::default(), &[], 1 << 39).unwrap().is_none());
        assert!(planned(&Serve::default(), &["append"], 1 << 39).unwrap().is_none());
    }

    #[test]
    fn usual_rows_are_of_four_protocols_and_others_are_named() {
        let usual = names(&Serve::default(), &["serve"]);
        assert_eq!(usual.len(), 3 + 4 + 4 + 1, "{usual:?}");
        assert_eq!(
            usual[..4],
            ["serve/lines/1", "serve/lines/64", "serve/lines/1000", "serve/relp/1/1"]
        );
        assert_eq!(usual[11], "serve/http/64/100");
        let own = Serve { connections: vec![7, 2, 7], window: vec![16], ..Serve::default() };
        assert_eq!(
            names(&own, &["serve/u32", "serve/resp"]),
            ["serve/u32/2", "serve/u32/7", "serve/resp/2/16", "serve/resp/7/16"]
        );
    }

    #[test]
    fn rows_that_no_url_speaks_are_left_out_and_named() {
        let urls = vec!["redis://127.0.0.1:6379".parse().unwrap()];
        let foreign = Serve { server_url: urls, ..Serve::default() };
        let plan = planned(&foreign, &["serve"], 1 << 39).unwrap().unwrap();
        assert_eq!((plan.ways.len(), plan.left_out.len()), (4, 8));
        assert!(plan.ways.iter().all(|way| way.door.name == "serve/resp"));
        assert_eq!(plan.space_bytes_max(), 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_one_line() {
        for bad in [
            Serve { connections: vec![0], ..Serve::default() },
            Serve { connections: vec![15_001], ..Serve::default() },
            Serve { window: vec![65_537], ..Serve::default() },
            Serve { server_message_size: Some(31), ..Serve::default() },
        ] {
            match planned(&bad, &["serve"], 1 << 39) {
                Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_full_disk_gets_fewer_messages_or_none() {
        let of = |free| planned(&Serve::default(), &["serve"], free);
        let (wide, narrow) = (of(1 << 39).unwrap().unwrap(), of(6 * GIB).unwrap().unwrap());
        let most = |plan: &Plan| plan.messages(&plan.ways[0], 1e9);
        assert!(most(&narrow) < most(&wide), "{} {}", most(&narrow), most(&wide));
        assert!(narrow.space_bytes_max() <= GIB, "{}", narrow.space_bytes_max());
        assert!(of(5 * GIB).unwrap_err().to_string().ends_with("Free some space first"));
    }
}
