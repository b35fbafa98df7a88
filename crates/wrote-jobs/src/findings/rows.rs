//! Findings on how rows were measured: noise, fallbacks, depths not reached, a slow generator.

use super::{Burst, Evidence, Shortened};
use serde_json::json;
use std::collections::BTreeMap;
use wrote_result::document::{Direction, Fallback, Finding, Row, View};
use wrote_result::finding::NAMES_MAX;
use wrote_result::stats::{self, ROUGH_WIDTH, relative_width};
use wrote_result::units::{self, rate};

/// The generator may limit a row that is faster than this share of the generator's rate.
const GENERATOR_SHARE_MAX: f64 = 0.5;

/// Finds that there was not enough time for all rounds.
pub(super) fn shortened(evidence: &Evidence) -> Option<Finding> {
    let Shortened { runs_asked, runs_min, within } = evidence.shortened.clone()?;
    let within_s = within.as_secs_f64();
    let text = format!(
        "Time was short: to end within {}, some rows have only {runs_min} of {runs_asked} runs, so \
         their intervals are wider. Give it more time (--time or --within), or --runs {runs_asked}",
        units::seconds(within_s)
    );
    Some(
        Finding::info("shortened", text)
            .with("runs_asked", runs_asked)
            .with("runs_min", runs_min)
            .with("within_s", within_s),
    )
}

/// Finds that the user ended the run early.
pub(super) fn interrupted(evidence: &Evidence) -> Option<Finding> {
    let runs = || evidence.rows.iter().map(|row| row.runs.len());
    let (least, most) = (runs().min()?, runs().max()?);
    let runs = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let text = format!("Stopped early: rows have {runs} runs each, and some may be missing");
    let finding = Finding::warning("interrupted", text).with("runs_min", least);
    evidence.interrupted.then(|| finding.with("runs_max", most))
}

/// Finds a token bucket: a rate limit that a short run does not reach.
pub(super) fn burst(evidence: &Evidence) -> Option<Finding> {
    let Burst { bytes, bytes_per_s, is_left_out } = evidence.burst?;
    let (what, then) = match is_left_out {
        true => ("The burst is not in the figures", "Each run began after the burst was used up"),
        false => ("The burst is in the figures", "Runs that still had some of it are faster"),
    };
    let text = format!(
        "{what}: the lasting rate is {}, and a short run can be up to {} ahead of it. {then}",
        rate(bytes_per_s),
        units::bytes(bytes),
    );
    Some(
        Finding::warning("burst", text)
            .with("burst_bytes", bytes)
            .with("lasting_bytes_per_s", bytes_per_s)
            .with("is_left_out", is_left_out),
    )
}

/// A rank straggles if the median rank is faster by this factor.
const STRAGGLES_MIN: f64 = 1.25;
/// The shortest run in which ranks are compared. In shorter runs, the scheduling delay of threads
/// dominates.
const RANKS_RUN_MIN_S: f64 = 0.1;

/// Finds a rank that the other ranks wait for.
pub(super) fn stragglers(evidence: &Evidence) -> Option<Finding> {
    // The ratio of the median rank's rate to the slowest rank's, as a median over the runs.
    let slower = |row: &Row| {
        let runs = row.runs.iter().filter(|run| run.elapsed_s > RANKS_RUN_MIN_S);
        let spreads = runs.filter_map(|run| run.ranks.as_ref());
        let factors = spreads.map(|of| of.median_iops / of.slowest.iops.max(1e-9));
        stats::median(&factors.collect::<Vec<f64>>())
    };
    let rows = evidence.rows_where(|row| slower(row) > STRAGGLES_MIN)?;
    let mut slowest: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    for spread in rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.ranks.as_ref()) {
        *slowest.entry((spread.slowest.rank, &spread.slowest.node)).or_default() += 1;
    }
    let runs: usize = slowest.values().sum();
    let ((rank, node), times) = slowest.into_iter().max_by_key(|(_, times)| *times)?;
    let factor = rows.iter().map(|row| slower(row)).fold(0.0, f64::max);
    let text = format!(
        "Stragglers: the slowest rank is up to {factor:.1} times slower than the median one, and \
         the total waits for it. Examine rank {rank} on {node}: it was slowest {times} of {runs} \
         times"
    );
    let finding = Finding::warning("stragglers", text).about(&rows).with("rank", rank);
    Some(finding.with("node", node).with("slower_max", factor))
}

/// The minimum ratio of the rate with many operations in flight to the rate with one, for a
/// finding.
const CONCURRENT_MIN: f64 = 2.0;

/// Finds that many operations in flight reach several times the rate of one at a time.
/// Manufacturers and cloud providers quote the former rate.
pub(super) fn concurrent_iops(evidence: &Evidence) -> Option<Finding> {
    let of = |row: &&Row| row.workload == "rand/write" && !row.is_open_loop();
    let rows: Vec<&Row> = evidence.rows.iter().filter(of).collect();
    let depth = |row: &Row| row.settings.effective.iodepth;
    let single = rows.iter().find(|row| depth(row) == 1)?;
    let deepest = rows.iter().max_by_key(|row| depth(row))?;
    let times = deepest.iops() / single.iops();
    let (of, unit) = units::alike(&[deepest.iops(), single.iops()], &units::COUNTS);
    let text = format!(
        "Operations per second depend on how many are in flight: {} {unit} with {}, {} {unit} with \
         one at a time ({} times). A program that waits for each write gets the lower rate",
        of[0],
        depth(deepest),
        of[1],
        deepest.times(single),
    );
    (times >= CONCURRENT_MIN).then(|| {
        Finding::info("concurrent-iops", text)
            .about(&[*single, *deepest])
            .with("times", times)
            .with("iodepth", depth(deepest))
    })
}

/// The maximum width that is printed, in percent; wider intervals are reported as wider than this.
const WORST_MAX: f64 = 999.0;

pub(super) fn noisy(evidence: &Evidence) -> Option<Finding> {
    // A single run has no interval, so it is never noisy.
    let width = |row: &Row| relative_width(&row.throughput_bytes_per_s);
    let rows: Vec<&Row> = evidence.rows.iter().filter(|row| row.is_rough()).collect();
    let widest = rows.iter().map(|row| width(row)).filter(|w| w.is_finite()).reduce(f64::max)?;
    // Two runs that differ have an interval of millions of percent.
    let most = match widest * 100.0 {
        percent if percent > WORST_MAX => format!("more than \u{b1}{WORST_MAX:.0} %"),
        percent => format!("\u{b1}{percent:.0} %"),
    };
    let text = format!(
        "Unreliable: {} of {} rows have 95 % intervals wider than \u{b1}{:.0} % (the worst: \
         {most}). Stop other disk work, and measure again for longer (--within 60s; fit: --time)",
        rows.len(),
        evidence.rows.len(),
        ROUGH_WIDTH * 100.0,
    );
    Finding::warning("noisy", text).about(&rows).with("relative_width_max", widest).into()
}

/// Returns one finding for each distinct fallback, with its rows.
pub(super) fn fallbacks(evidence: &Evidence) -> Vec<Finding> {
    let mut rows: BTreeMap<&Fallback, Vec<&Row>> = BTreeMap::new();
    for row in evidence.rows {
        for fallback in &row.settings.fallbacks {
            let rows = rows.entry(fallback).or_default();
            if !rows.iter().any(|known| known.name == row.name) {
                rows.push(row);
            }
        }
    }
    let finding = |(Fallback { wanted, got, because }, rows): (&Fallback, Vec<&Row>)| {
        let text = format!("Fallback: {got} was used instead of {wanted}, because {because}");
        let finding = Finding::warning("fallback", text).about(&rows).with("wanted", wanted);
        finding.with("got", got).with("because", because)
    };
    rows.into_iter().map(finding).collect()
}

pub(super) fn depth_not_reached(evidence: &Evidence) -> Option<Finding> {
    let short = |row: &Row| row.settings.effective.iodepth < row.settings.asked.iodepth;
    let mut shown = Vec::new();
    let mut figures = BTreeMap::new();
    for row in evidence.rows_where(short)? {
        let (asked, reached) = (row.settings.asked.iodepth, row.settings.effective.iodepth);
        shown.push(format!("{} (asked {asked}, reached {reached})", row.name));
        figures.insert(&row.name, json!({ "asked": asked, "reached": reached }));
    }
    let shown = units::some_of(&shown, NAMES_MAX);
    let text = format!("Fewer operations were in flight than asked for: {shown}");
    Finding::warning("depth-not-reached", text).with("iodepth", figures).into()
}

pub(super) fn generator_limited(evidence: &Evidence) -> Option<Finding> {
    let limit_bytes_per_s = GENERATOR_SHARE_MAX * evidence.generator_bytes_per_s;
    // The data of whole files and of messages is generated before the clock starts.
    let near = |row: &Row| {
        row.direction == Direction::Write
            && !matches!(row.view(), View::Files | View::Messages)
            && row.throughput_bytes_per_s.median > limit_bytes_per_s
    };
    let rows = evidence.rows_where(near).filter(|_| limit_bytes_per_s > 0.0)?;
    let text = format!(
        "The generator of random data may be the limit: it makes {}, less than twice the throughput. \
         The disk may be faster. Use larger blocks",
        rate(evidence.generator_bytes_per_s),
    );
    Finding::warning("generator-limited", text)
        .about(&rows)
        .with("generator_bytes_per_s", evidence.generator_bytes_per_s)
        .into()
}
