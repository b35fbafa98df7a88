//! The loop with threads as ranks, a simulated disk, simulated clocks, and known totals.

use super::*;
use crate::plan::Work;
use crate::sample;
use crate::scratch::Scratch;
use crate::site::Clock;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wrote::engine::{Engine, Op, Options};
use wrote::{FileOptions, Ioengine, Sim};
use wrote_jobs::findings::{Sharing, User, Whole, together};
use wrote_jobs::peers::threads::ThreadPost;
use wrote_jobs::peers::{Peers, Places, Ranks};
use wrote_result::document::{RankFiles, Run};
use wrote_result::{Stop, stats};

/// A time in 2026, by rank 0's clock.
const BEGAN_S: f64 = 1_790_000_000.0;
const RANKS_PER_NODE: u32 = 40;
const BLOCK_BYTES: u64 = 4096;
/// Far beyond any skew: a test that waits this long hangs.
const HUNG: Duration = Duration::from_secs(300);

/// Returns how far a node's clock is ahead: up to some hours.
fn ahead_s(node: u32) -> f64 {
    f64::from(node % 7) * 1000.0 - 3000.0
}

/// A rank's own time, advanced by its runs.
#[derive(Debug, Default)]
struct Passing(Cell<Duration>);

impl Clock for Passing {
    fn elapsed(&self) -> Duration {
        self.0.get()
    }
}

/// A plan whose runs write to a simulated disk, and take a simulated time on each rank.
struct MadeUp {
    rank: u32,
    clock: Rc<Passing>,
    disk: Sim,
    /// Returns the start and end of a run by rank 0's clock, and its bytes.
    run: fn(u32, Turn) -> (f64, f64, u64),
    fails: Option<(u32, u32)>,
}

/// Writes a file of whole blocks and flushes it. Returns the bytes written.
fn write(disk: &Sim, path: &str, bytes: u64) -> u64 {
    let options = Options::new(Ioengine::IoUring, 4, BLOCK_BYTES as usize);
    let mut engine = Engine::simulated(disk, &options).unwrap();
    let options = FileOptions::new().create_new(true).write(true);
    let file = engine.open_file(path, &options).unwrap();
    let mut done = Vec::new();
    for number in 0..bytes / BLOCK_BYTES {
        let buffer = engine.lease().unwrap();
        let offset = number * BLOCK_BYTES;
        engine.queue(number, Op::Write { file, offset, buffer, durable: false });
        engine.reap(0, &mut done).unwrap();
    }
    engine.reap(usize::MAX, &mut done).unwrap();
    let taken = done.iter().map(|done| *done.result.as_ref().unwrap() as u64).sum();
    engine.queue(0, Op::Fdatasync { file });
    engine.reap(1, &mut done).unwrap();
    taken
}

impl Work for MadeUp {
    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        _: &mut Ticker,
    ) -> Result<Repeated, Error> {
        if self.fails == Some((self.rank, turn.round)) {
            return Err(Error::Failed("the disk is full".into()));
        }
        let together = site.together.expect("ranks begin together");
        together.begin()?;
        let (began_s, ended_s, bytes) = (self.run)(self.rank, turn);
        let bytes = write(&self.disk, &format!("/sim/{}-{}", self.rank, turn.round), bytes);
        let ahead_s = site.peers.places().offset_s(self.rank);
        together.is_over((began_s + ahead_s, ended_s + ahead_s));
        let took = Duration::from_secs_f64(ended_s - began_s);
        self.clock.0.set(self.clock.0.get() + took);
        let elapsed_s = ended_s - began_s;
        let mut row = sample::row(&row.name, "power-loss", &[1.0]);
        row.runs = vec![Run {
            bytes,
            elapsed_s,
            throughput_bytes_per_s: bytes as f64 / elapsed_s,
            iops: (bytes / BLOCK_BYTES) as f64 / elapsed_s,
            device_written_bytes: Some(1000 + u64::from(self.rank % 3)),
            ..Run::default()
        }];
        let mut latencies = wrote_jobs::histogram();
        latencies.record(u64::from(self.rank) + 1).unwrap();
        row.latency_ns = Some(stats::latency(&latencies));
        row.runs[0].latency_ns = row.latency_ns;
        Ok(Repeated::one(row, latencies))
    }
}

/// Runs the plan on this many threads, and returns each rank's result.
fn measured(
    ranks: u32,
    run: fn(u32, Turn) -> (f64, f64, u64),
    within: Option<Duration>,
    fails: Option<(u32, u32)>,
) -> Vec<Result<Measured, Error>> {
    let all = measured_on(&Sim::new(1), ranks, run, within, fails);
    all.into_iter().map(|(measured, _)| measured).collect()
}

/// Like [`measured`], on this disk. Also returns each rank's knowledge of nodes and clocks.
fn measured_on(
    disk: &Sim,
    ranks: u32,
    run: fn(u32, Turn) -> (f64, f64, u64),
    within: Option<Duration>,
    fails: Option<(u32, u32)>,
) -> Vec<(Result<Measured, Error>, Places)> {
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
                let peers = &mut Ranks::new(post, stop.clone(), HUNG);
                peers.join().unwrap();
                let peers = &*peers;
                let clock = Rc::new(Passing::default());
                let rank = peers.rank();
                let disk = disk.clone();
                let row = Row { name: "made-up/a".into(), ..Row::default() };
                let time = Duration::from_secs(1);
                let rows = vec![RowSpec { row, time, ..RowSpec::default() }];
                let work = MadeUp { rank, clock: clock.clone(), disk, run, fails };
                let mut plan = Plan {
                    runs: 3,
                    is_whole: within.is_none(),
                    within: within.map(|asked| Within::new(asked, Duration::ZERO, true)),
                    ..Plan::new("made-up", "Is it right?", rows, work)
                };
                let clock = &*clock;
                let mut observer = ();
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
                    peers,
                    together,
                    ranks: settings,
                };
                let done = plan.measure(None, Duration::ZERO, &site, &mut ticker);
                (done.map_err(|error| peers.fail(error)), peers.places().clone())
            };
            std::thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, rank).unwrap()
        };
        let threads: Vec<_> = ThreadPost::many(ranks, place).into_iter().map(rank_of).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The rank that is always slow.
const STRAGGLER: u32 = 777;
/// The rank that stalls in the second round.
const STALLED: u32 = 5;

/// Runs start within a tenth of a second and take about two; one rank straggles, and one stalls at
/// times.
fn usual(rank: u32, turn: Turn) -> (f64, f64, u64) {
    let began_s = BEGAN_S + f64::from(turn.round) * 100.0 + f64::from(rank % 10) / 100.0;
    let straggles = if rank == STRAGGLER { 3.0 } else { 0.0 };
    let stalls = if rank == STALLED && turn.round == 1 { 10.0 } else { 0.0 };
    let ended_s = began_s + 2.0 + f64::from(rank % 4) / 10.0 + straggles + stalls;
    (began_s, ended_s, u64::from(8 + rank % 3) * BLOCK_BYTES)
}

/// A clock is off by at most a round trip between threads.
fn assert_near(found: f64, expected: f64, part: f64) {
    assert!((found - expected).abs() <= part * expected.abs() + 0.05, "{found}, not {expected}");
}

#[test]
fn the_totals_of_a_thousand_ranks_are_those_that_were_put_in() {
    const RANKS: u32 = 1000;
    let disk = &Sim::new(1);
    let mut all = measured_on(disk, RANKS, usual, None, None);
    let (first, places) = all.swap_remove(0);
    let first = first.unwrap();
    assert!(all.iter().all(|(measured, theirs)| measured.is_ok() && *theirs == places));
    assert_eq!(places.nodes.len() as u32, RANKS / RANKS_PER_NODE);
    for (number, node) in (0..).zip(&places.nodes) {
        assert_near(node.clock_offset_s, ahead_s(number) - ahead_s(0), 0.0);
    }
    let rows = &first.scenario.rows;
    for row in rows {
        assert_eq!(row.runs.len(), 3);
        for (round, run) in (0..).zip(&row.runs) {
            let turn = Turn { row: 0, round };
            let spans = || (0..RANKS).map(|rank| usual(rank, turn));
            let began_s = spans().map(|span| span.0).fold(f64::MAX, f64::min);
            let ended_s = spans().map(|span| span.1).fold(f64::MIN, f64::max);
            let first_end_s = spans().map(|span| span.1).fold(f64::MAX, f64::min);
            let bytes: u64 = spans().map(|span| span.2).sum();
            assert_eq!(run.bytes, bytes);
            assert_near(run.elapsed_s, ended_s - began_s, 0.0);
            let slow_s = if round == 1 { 12.0 } else { 5.0 };
            assert!(run.elapsed_s > slow_s, "the straggler or the stall is in it");
            assert_near(run.throughput_bytes_per_s, bytes as f64 / (ended_s - began_s), 0.03);
            assert_near(run.iops, (bytes / BLOCK_BYTES) as f64 / (ended_s - began_s), 0.03);
            let spread = run.ranks.as_ref().unwrap();
            assert_near(spread.started_within_s, 0.09, 0.0);
            let rate = |rank: u32| {
                let (began_s, ended_s, bytes) = usual(rank, turn);
                (bytes / BLOCK_BYTES) as f64 / (ended_s - began_s)
            };
            let slow = if round == 1 { STALLED } else { STRAGGLER };
            let node = format!("node{}", slow / RANKS_PER_NODE);
            assert_eq!((spread.slowest.rank, &spread.slowest.node), (slow, &node));
            assert_near(spread.slowest.iops, rate(slow), 0.01);
            let rates: Vec<f64> = (0..RANKS).map(rate).collect();
            assert_near(spread.fastest.iops, rates.iter().copied().fold(0.0, f64::max), 0.01);
            assert_near(spread.median_iops, stats::median(&rates), 0.01);
            // Until the first rank ends, each rank has written a proportional part of its bytes.
            let done = spans().map(|(began_s, ended_s, bytes)| {
                bytes as f64 * (first_end_s - began_s) / (ended_s - began_s)
            });
            let stonewalled = done.sum::<f64>() / (first_end_s - began_s);
            assert_near(spread.stonewalled_bytes_per_s, stonewalled, 0.05);
            // 25 nodes with one device each, for which the largest reading of its ranks counts.
            assert_eq!(run.device_written_bytes, Some(25 * 1002));
        }
        assert_eq!(row.latency_ns.unwrap().count, 3 * u64::from(RANKS));
        assert_eq!(row.latency_ns.unwrap().max, u64::from(RANKS));
    }
    // The disk contains what the totals report.
    let files = disk.names();
    assert_eq!(files.len() as u32, 3 * RANKS);
    let held = files.iter().filter_map(|path| Some(disk.contents(path)?.len() as u64));
    assert_eq!(held.sum::<u64>(), rows[0].runs.iter().map(|run| run.bytes).sum::<u64>());
    let user = User { path: "/mnt/shared".into(), device: None };
    let users = vec![user; RANKS as usize];
    let ranks = places.shown(RankFiles::PerRank, None);
    let sharing = &Sharing { ranks, users, own_paths: false };
    let target = &sample::document(Vec::new()).target;
    let found = together(vec![Vec::new()], &Whole { target, rows, in_memory: false, sharing });
    let stragglers = found.iter().find(|finding| finding.id == "stragglers").unwrap();
    let named = format!("rank {STRAGGLER} on node19, 2 of 3 times");
    assert!(stragglers.text.contains(&named), "{}", stragglers.text);
}

#[test]
fn all_ranks_end_a_limited_time_with_the_same_runs() {
    // Each rank's time passes at a different pace: on their own they would decide differently.
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
