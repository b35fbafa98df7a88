//! Merges one run of all ranks: the bytes of all, from the first start to the last end.

use super::{Repeated, join, sum_up};
use crate::jobs::{GroupReport, span_s};
use crate::peers::{Part, Places};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wrote_result::document::{Interval, Latency, RankRun, Row, Run, Sample, Spread, Sustained};
use wrote_result::{Error, stats};

/// A run as one rank knows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// The rows of the run, only of this rank.
    pub run: Repeated,
    /// The timed parts of the run, one after the other. All ranks begin each part together.
    pub parts: Vec<Part>,
    /// The block device below, whose counters the rows have; empty without one.
    pub device: String,
}

/// The timed part of a group, by this machine's clock.
pub fn span_of(group: &GroupReport) -> Part {
    span_s(&group.jobs)
}

/// Adds up the rows of one run of all ranks, which are in their order.
///
/// # Errors
///
/// [`Error::Failed`] where the ranks measured different rows.
pub fn merged(all: Vec<Facts>, places: &Places) -> Result<Repeated, Error> {
    let elapsed_s = elapsed_s(&all)?;
    let shape = |facts: &Facts| facts.run.rows.iter().map(|row| row.name.clone()).collect();
    let names: Vec<String> = all.first().map(shape).unwrap_or_default();
    if let Some(rank) = all.iter().position(|facts| shape(facts) != names) {
        let node = places.node(rank as u32);
        let theirs = shape(&all[rank]).join(", ");
        let ours = names.join(", ");
        return Err(Error::Failed(format!("rank {rank} on {node} measured {theirs}, not {ours}")));
    }
    let mut together = Repeated::default();
    for number in 0..names.len() {
        let row = row(&all, number, elapsed_s, places);
        together.rows.push(row);
    }
    for facts in all {
        together.add_latencies(facts.run);
    }
    together.summed();
    Ok(together)
}

/// Returns the time of all parts, each from the first rank's start to the last one's end.
fn elapsed_s(all: &[Facts]) -> Result<f64, Error> {
    let parts = all.first().map_or(0, |facts| facts.parts.len());
    if all.iter().any(|facts| facts.parts.len() != parts) {
        return Err(Error::Failed("the ranks did not measure in the same steps".into()));
    }
    let of_part = |part: usize| {
        let (began, ended) = all.iter().fold((f64::MAX, f64::MIN), |(began, ended), facts| {
            (began.min(facts.parts[part].0), ended.max(facts.parts[part].1))
        });
        (ended - began).max(0.0)
    };
    Ok((0..parts).map(of_part).sum())
}

fn row(all: &[Facts], number: usize, elapsed_s: f64, places: &Places) -> Row {
    let rows: Vec<&Row> = all.iter().map(|facts| &facts.run.rows[number]).collect();
    let mut together = Row { runs: Vec::new(), ..rows[0].clone() };
    for row in &rows[1..] {
        join(&mut together, Row { runs: Vec::new(), ..(*row).clone() });
        for (ours, theirs) in [
            (&mut together.settings.asked, &row.settings.asked),
            (&mut together.settings.effective, &row.settings.effective),
        ] {
            ours.numjobs += theirs.numjobs;
            ours.size_bytes += theirs.size_bytes;
            ours.messages = ours.messages.zip(theirs.messages).map(|(a, b)| a + b);
        }
    }
    together.sustained = sustained(&rows);
    let runs: Vec<&Run> = rows.iter().filter_map(|row| row.runs.first()).collect();
    together.runs = vec![run(all, &runs, elapsed_s, places)];
    sum_up(&mut together);
    together
}

fn run(all: &[Facts], runs: &[&Run], elapsed_s: f64, places: &Places) -> Run {
    let elapsed_s = elapsed_s.max(1e-9);
    let bytes = runs.iter().map(|run| run.bytes).sum::<u64>();
    let operations: f64 = runs.iter().map(|run| run.iops * run.elapsed_s).sum();
    let sum = |figure: fn(&Run) -> f64| runs.iter().map(|run| figure(run)).sum::<f64>();
    let some =
        |figure: fn(&Run) -> Option<u64>| runs.iter().map(|run| figure(run)).sum::<Option<u64>>();
    // Each rank reads the counters of its device, which count for all ranks that use it.
    let device = |figure: fn(&Run) -> Option<u64>| {
        let mut devices: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        for ((facts, run), node) in all.iter().zip(runs).zip(&places.of_rank) {
            let most = devices.entry((*node, &facts.device)).or_default();
            *most = (*most).max(figure(run)?);
        }
        Some(devices.into_values().sum())
    };
    let busiest = runs.iter().filter_map(|run| run.cpu_busiest);
    Run {
        bytes,
        elapsed_s,
        throughput_bytes_per_s: bytes as f64 / elapsed_s,
        iops: operations / elapsed_s,
        cpu_user_s: sum(|run| run.cpu_user_s),
        cpu_system_s: sum(|run| run.cpu_system_s),
        context_switches: runs.iter().map(|run| run.context_switches).sum(),
        device_written_bytes: device(|run| run.device_written_bytes),
        device_writes: device(|run| run.device_writes),
        device_read_bytes: device(|run| run.device_read_bytes),
        max_rss_bytes: runs.iter().filter_map(|run| run.max_rss_bytes).max(),
        iodepth_reached: runs.iter().map(|run| run.iodepth_reached).max().unwrap_or(0),
        records: records(runs),
        issue_delay_ns: latencies(runs.iter().map(|run| run.issue_delay_ns)),
        cpu_busiest: busiest.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share)),
        cpu_waited_s: runs.iter().map(|run| run.cpu_waited_s).sum(),
        page_cache_bytes: some(|run| run.page_cache_bytes),
        unwritten_bytes: some(|run| run.unwritten_bytes),
        cached_before_bytes: some(|run| run.cached_before_bytes),
        // Replaced by the figure of all operations once the latencies of all ranks are together.
        latency_ns: latencies(runs.iter().map(|run| run.latency_ns)),
        flush_latency_ns: latencies(runs.iter().map(|run| run.flush_latency_ns)),
        durable_latency_ns: latencies(runs.iter().map(|run| run.durable_latency_ns)),
        ranks: spread(all, runs, places),
    }
}

/// Returns the bytes of all ranks over time, at rank 0's samples and at the last end.
fn sustained(rows: &[&Row]) -> Option<Sustained> {
    let all: Vec<&Sustained> = rows.iter().filter_map(|row| row.sustained.as_ref()).collect();
    let first = *all.first()?;
    let end_s = |of: &&Sustained| of.samples.last().map_or(0.0, |sample| sample.end_s);
    let last_s = all.iter().map(end_s).fold(0.0, f64::max);
    let times = first.samples.iter().map(|sample| sample.end_s);
    let times = times.chain([last_s].into_iter().filter(|last_s| *last_s > end_s(&first)));
    let (mut samples, mut before) = (Vec::new(), (0.0, 0.0));
    for end_s in times {
        let bytes: f64 = all.iter().map(|of| Sample::bytes_at(&of.samples, end_s)).sum();
        let throughput_bytes_per_s = (bytes - before.0) / (end_s - before.1).max(1e-9);
        samples.push(Sample { end_bytes: bytes as u64, end_s, throughput_bytes_per_s });
        before = (bytes, end_s);
    }
    let recovered = all.iter().map(|of| of.recovered_bytes_per_s);
    let recovered = recovered.reduce(|sum, one| {
        let (sum, one) = (sum?, one?);
        Some(Interval {
            median: sum.median + one.median,
            ci95_low: sum.ci95_low + one.ci95_low,
            ci95_high: sum.ci95_high + one.ci95_high,
        })
    });
    let file_bytes = all.iter().map(|of| of.file_bytes).sum();
    let recovered_bytes_per_s = recovered.flatten();
    Some(Sustained { file_bytes, samples, recovered_bytes_per_s, ..first.clone() })
}

fn records(runs: &[&Run]) -> Option<wrote_result::document::Records> {
    let mut all = runs.first()?.records?;
    for run in &runs[1..] {
        let records = run.records?;
        all.sent += records.sent;
        all.whole += records.whole;
        all.lost += records.lost;
        all.torn += records.torn;
        all.doubled += records.doubled;
        all.out_of_order += records.out_of_order;
    }
    Some(all)
}

/// Merges latencies without histograms: a percentile is the worst of the ranks' own.
fn latencies(of_ranks: impl Iterator<Item = Option<Latency>>) -> Option<Latency> {
    let all: Vec<Latency> = of_ranks.collect::<Option<_>>()?;
    let most = |percentiles: Vec<u64>| percentiles.into_iter().max().unwrap_or(0);
    (!all.is_empty()).then(|| Latency::combined(&all, most))
}

fn spread(all: &[Facts], runs: &[&Run], places: &Places) -> Option<Spread> {
    let of_rank = |(rank, run): (u32, &&Run)| RankRun {
        rank,
        node: places.node(rank).into(),
        bytes: run.bytes,
        elapsed_s: run.elapsed_s,
        iops: run.iops,
    };
    let ranks: Vec<RankRun> = (0..).zip(runs).map(of_rank).collect();
    let by_rate = |a: &&RankRun, b: &&RankRun| a.iops.total_cmp(&b.iops);
    let rates: Vec<f64> = ranks.iter().map(|rank| rank.iops).collect();
    let starts = || all.iter().filter_map(|facts| facts.parts.first()).map(|part| part.0);
    let (first_s, last_s) = starts()
        .fold((f64::MAX, f64::MIN), |(first, last), start| (first.min(start), last.max(start)));
    Some(Spread {
        slowest: ranks.iter().min_by(by_rate)?.clone(),
        fastest: ranks.iter().max_by(by_rate)?.clone(),
        median_iops: stats::median(&rates),
        started_within_s: (last_s - first_s).max(0.0),
        stonewalled_bytes_per_s: stonewalled_bytes_per_s(all, runs),
    })
}

/// Returns the throughput until the first rank ends, as if each rank wrote evenly.
fn stonewalled_bytes_per_s(all: &[Facts], runs: &[&Run]) -> f64 {
    let last_part = |facts: &Facts| facts.parts.last().copied().unwrap_or_default();
    let ended_s = all.iter().map(|facts| last_part(facts).1).fold(f64::MAX, f64::min);
    let (mut bytes, mut began_s) = (0.0, f64::MAX);
    let mut longest_s: f64 = 0.0;
    for (facts, run) in all.iter().zip(runs) {
        // In a run of many parts, all but the last one have ended when the first rank ends.
        let whole_s: f64 = facts.parts.iter().map(|(began, ended)| ended - began).sum();
        let (began, ended) = last_part(facts);
        let beyond_s = (ended - ended_s.max(began)).max(0.0);
        let done_s = (whole_s - beyond_s).max(0.0);
        bytes += run.bytes as f64 * done_s / whole_s.max(1e-9);
        began_s = began_s.min(began);
        longest_s = longest_s.max(whole_s - (ended - began));
    }
    bytes / (longest_s + (ended_s - began_s)).max(1e-9)
}
