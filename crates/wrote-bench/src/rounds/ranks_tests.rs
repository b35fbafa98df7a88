//! The loop with ranks that are threads: made-up runs, clocks and disks, and totals that are known.

use super::*;
use crate::budget::Clock;
use crate::sample;
use crate::scratch::Scratch;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;
use wrote_jobs::peers::threads::ThreadPost;
use wrote_jobs::peers::{Peers, Ranks};
use wrote_result::Stop;
use wrote_result::document::Run;

/// A second of 2026, by rank 0's clock.
const BEGAN_S: f64 = 1_790_000_000.0;
const RANKS_PER_NODE: u32 = 40;
/// Far beyond any skew: a test that waits so long hangs.
const HUNG: Duration = Duration::from_secs(300);

/// How far a node's clock is ahead: up to some hours.
fn ahead_s(node: u32) -> f64 {
    f64::from(node % 7) * 1000.0 - 3000.0
}

/// A rank's own time, which its runs move on.
#[derive(Debug, Default)]
struct Passing(Cell<Duration>);

impl Clock for Passing {
    fn elapsed(&self) -> Duration {
        self.0.get()
    }
}

/// A plan whose runs take a made-up time on each rank.
struct MadeUp {
    rank: u32,
    clock: Rc<Passing>,
    /// The start and the end of a run, by rank 0's clock, and its bytes.
    run: fn(u32, Turn) -> (f64, f64, u64),
    within: Option<Duration>,
    fails: Option<(u32, u32)>,
}

impl Plan for MadeUp {
    fn scope(&self) -> Scope {
        Scope { name: "made-up", question: "Is it right?".into(), runs: 3 }
    }

    fn rows(&self) -> Vec<String> {
        vec!["made-up/a".into()]
    }

    fn space_bytes_max(&self) -> u64 {
        0
    }

    fn written_bytes_max(&self) -> u64 {
        0
    }

    fn estimate(&self) -> Duration {
        Duration::ZERO
    }

    fn within(&self) -> Option<Duration> {
        self.within
    }

    fn foreseen(&self, _: usize) -> Duration {
        Duration::from_secs(1)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        if self.fails == Some((self.rank, turn.round)) {
            return Err(Error::Failed("the disk is full".into()));
        }
        let together = site.together.expect("ranks begin together");
        together.begin()?;
        let (began_s, ended_s, bytes) = (self.run)(self.rank, turn);
        let ahead_s = site.peers.places().offset_s(self.rank);
        together.is_over((began_s + ahead_s, ended_s + ahead_s));
        let took = Duration::from_secs_f64(ended_s - began_s);
        self.clock.0.set(self.clock.0.get() + took);
        let elapsed_s = ended_s - began_s;
        let mut row = sample::row(&self.rows()[turn.row], "power-loss", &[1.0]);
        row.runs = vec![Run {
            bytes,
            elapsed_s,
            throughput_bytes_per_s: bytes as f64 / elapsed_s,
            iops: (bytes / 4096) as f64 / elapsed_s,
            device_written_bytes: Some(1000 + u64::from(self.rank % 3)),
            ..Run::default()
        }];
        let mut latencies = wrote_jobs::histogram();
        latencies.record(u64::from(self.rank) + 1).unwrap();
        Ok(Repeated::one(row, latencies))
    }
}

/// Runs the plan by so many threads, and returns the outcome of each rank.
fn measured(
    ranks: u32,
    run: fn(u32, Turn) -> (f64, f64, u64),
    within: Option<Duration>,
    fails: Option<(u32, u32)>,
) -> Vec<Result<Measured, Error>> {
    let folder = fixtures::folder();
    let scratch = &Scratch::make(folder.path()).unwrap();
    let target = &sample::place(1 << 40, 1 << 39);
    let place = |rank| {
        let node = rank / RANKS_PER_NODE;
        (format!("node{node}"), ahead_s(node) - ahead_s(0))
    };
    std::thread::scope(|scope| {
        let rank_of = |post: ThreadPost| {
            let rank = move || {
                let stop = &Stop::new();
                let peers = &Ranks::join(post, stop.clone(), HUNG).unwrap();
                let clock = Rc::new(Passing::default());
                let rank = peers.rank();
                let mut plan = MadeUp { rank, clock: clock.clone(), run, within, fails };
                let clock = &*clock;
                let (mut observer, speed) = ((), &OnceLock::new());
                let mut ticker = Ticker::new(&mut observer, 6, Duration::ZERO);
                let (scenario, keep, together) = ("made-up", false, None);
                let settings = Default::default();
                let site = Site {
                    scenario,
                    target,
                    scratch,
                    stop,
                    clock,
                    keep,
                    speed,
                    peers,
                    together,
                    ranks: settings,
                };
                let done = (&mut plan as &mut dyn Plan).measure(&site, &mut ticker);
                done.map_err(|error| peers.fail(error))
            };
            std::thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, rank).unwrap()
        };
        let threads: Vec<_> = ThreadPost::many(ranks, place).into_iter().map(rank_of).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Starts within a tenth of a second, takes about two; one straggles, and one stalls now and then.
fn usual(rank: u32, turn: Turn) -> (f64, f64, u64) {
    let began_s = BEGAN_S + f64::from(turn.round) * 100.0 + f64::from(rank % 10) / 100.0;
    let straggles = if rank == 777 { 3.0 } else { 0.0 };
    let stalls = if rank == 5 && turn.round == 1 { 10.0 } else { 0.0 };
    let ended_s = began_s + 2.0 + f64::from(rank % 4) / 10.0 + straggles + stalls;
    (began_s, ended_s, u64::from(rank + 1) * 4096)
}

#[test]
fn the_totals_of_a_thousand_ranks_are_those_that_were_put_in() {
    const RANKS: u32 = 1000;
    let mut all = measured(RANKS, usual, None, None);
    let first = all.swap_remove(0).unwrap();
    let bytes: u64 = (1..=u64::from(RANKS)).map(|rank| rank * 4096).sum();
    for row in &first.scenario.rows {
        assert_eq!(row.runs.len(), 3);
        for (round, run) in (0..).zip(&row.runs) {
            let turn = Turn { row: 0, round };
            let spans = || (0..RANKS).map(|rank| usual(rank, turn));
            let began_s = spans().map(|span| span.0).fold(f64::MAX, f64::min);
            let ended_s = spans().map(|span| span.1).fold(f64::MIN, f64::max);
            assert_eq!(run.bytes, bytes);
            // A round trip between threads is the most that a clock can be wrong.
            assert!(
                (run.elapsed_s - (ended_s - began_s)).abs() < 0.05,
                "{round}: {}",
                run.elapsed_s
            );
            let spread = run.ranks.as_ref().unwrap();
            assert!((spread.started_within_s - 0.09).abs() < 0.05, "{}", spread.started_within_s);
            let rate = |rank: &u32| {
                let (began_s, ended_s, bytes) = usual(*rank, turn);
                bytes as f64 / (ended_s - began_s)
            };
            let slowest = (0..RANKS).min_by(|a, b| rate(a).total_cmp(&rate(b)));
            assert_eq!(Some(spread.slowest.rank), slowest);
            // 25 nodes, each with a device of which the most of its ranks' readings counts.
            assert_eq!(run.device_written_bytes, Some(25 * 1002));
            assert!(spread.stonewalled_bytes_per_s > run.throughput_bytes_per_s);
        }
        assert_eq!(row.latency_ns.unwrap().count, 3 * u64::from(RANKS));
        assert_eq!(row.latency_ns.unwrap().max, u64::from(RANKS));
    }
}

#[test]
fn all_ranks_end_a_limited_time_with_the_same_runs() {
    // Each rank's own time passes at another pace: alone they would decide differently.
    fn paced(rank: u32, turn: Turn) -> (f64, f64, u64) {
        let began_s = BEGAN_S + f64::from(turn.round);
        (began_s, began_s + 1.0 + f64::from(rank), 4096)
    }
    for within_s in [5, 20, 40, 200] {
        let all = measured(8, paced, Some(Duration::from_secs(within_s)), None);
        let runs = |measured: &Result<Measured, Error>| {
            let measured = measured.as_ref().ok()?;
            let rows = measured.scenario.rows.iter();
            Some(rows.map(|row| (row.name.clone(), row.runs.len())).collect::<Vec<_>>())
        };
        let first = runs(&all[0]);
        assert!(all.iter().all(|of| runs(of) == first), "{within_s}: {all:?}");
    }
}

#[test]
fn a_rank_that_fails_ends_all_and_rank_0_names_it() {
    let all = measured(30, usual, None, Some((17, 1)));
    let errors: Vec<String> = all.into_iter().map(|of| of.unwrap_err().to_string()).collect();
    assert_eq!(errors[0], "rank 17 on node0: the disk is full");
    assert!(errors[1..].iter().all(|error| error.contains("the disk is full")), "{errors:?}");
}
