//! Merges one run of all ranks: the bytes of all ranks, from the first start to the last end.

use super::{Repeated, join, sum_up};
use crate::peers::{Part, Peers};
use std::collections::BTreeMap;
use wrote_result::document::{Latency, RankRun, Row, Run, Sample, Spread, Sustained};
use wrote_result::{Error, stats};

/// A run as one rank sees it: its rows, its timed parts, which all ranks begin together, and the
/// name of the block device whose counters its rows contain. The name is empty if there is no
/// device.
type Facts = (Repeated, Vec<Part>, String);

/// Returns the rows of one run of all ranks on rank 0, and this rank's rows on any other.
///
/// # Errors
///
/// The errors of [`Peers::agree`]; also an error if the ranks measured different rows.
pub fn of_all_ranks(run: Repeated, device: Option<&str>, peers: Peers) -> Result<Repeated, Error> {
    if !peers.are_many() {
        return Ok(run);
    }
    let (parts, mut together) = (peers.parts(), run.clone());
    let names: Vec<&str> = run.rows.iter().map(|row| row.name.as_str()).collect();
    let step = format!("the end of {} in {} parts", names.join(", "), parts.len());
    peers.agree(
        &step,
        (run, parts, device.unwrap_or_default().to_owned()),
        |all: Vec<Facts>| {
            all[1..].iter().for_each(|(run, ..)| together.add_times(run));
            for (number, row) in together.rows.iter_mut().enumerate() {
                merge(row, number, &all, peers);
            }
            together.describe_ones();
            Ok(())
        },
    )?;
    Ok(together)
}

/// Returns the total time of all parts. Each part lasts from the start of the first rank to the end
/// of the last.
fn elapsed_s(all: &[Facts]) -> f64 {
    let of_part = |part: usize| {
        let parts = || all.iter().map(|(_, parts, _)| parts[part]);
        let began_s = parts().map(|part| part.0).fold(f64::MAX, f64::min);
        parts().map(|part| part.1).fold(f64::MIN, f64::max) - began_s
    };
    (0..all[0].1.len()).map(of_part).sum::<f64>().max(1e-9)
}

/// Merges row `number` of all ranks into rank 0's row.
fn merge(together: &mut Row, number: usize, all: &[Facts], peers: Peers) {
    let rows: Vec<&Row> = all.iter().map(|(run, ..)| &run.rows[number]).collect();
    for row in &rows[1..] {
        join(together, (*row).clone());
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
    together.runs = vec![run(all, &together.runs, peers)];
    sum_up(together);
}

/// Returns the run that combines these runs, one from each rank.
fn run(all: &[Facts], runs: &[Run], peers: Peers) -> Run {
    let elapsed_s = elapsed_s(all);
    let bytes = runs.iter().map(|run| run.bytes).sum::<u64>();
    let sum = |figure: fn(&Run) -> f64| runs.iter().map(figure).sum::<f64>();
    let some = |figure: fn(&Run) -> Option<u64>| runs.iter().map(figure).sum::<Option<u64>>();
    // Each rank reads its device's counters, which include all ranks that use the device.
    let device = |figure: fn(&Run) -> Option<u64>| {
        let mut devices: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ((rank, (.., device)), run) in (0..).zip(all).zip(runs) {
            let most = devices.entry((node(peers, rank), device)).or_default();
            *most = (*most).max(figure(run)?);
        }
        Some(devices.into_values().sum())
    };
    let latency = |figure: fn(&Run) -> Option<Latency>| {
        let all: Vec<Latency> = runs.iter().map(figure).collect::<Option<_>>()?;
        // These are replaced if there are histograms. Otherwise, each percentile is the worst among
        // the ranks.
        Some(Latency::combined(&all, |own| own.into_iter().max().unwrap_or(0)))
    };
    let busiest = runs.iter().filter_map(|run| run.cpu_busiest);
    Run {
        bytes,
        elapsed_s,
        throughput_bytes_per_s: bytes as f64 / elapsed_s,
        iops: sum(|run| run.iops * run.elapsed_s) / elapsed_s,
        cpu_user_s: sum(|run| run.cpu_user_s),
        cpu_system_s: sum(|run| run.cpu_system_s),
        context_switches: runs.iter().map(|run| run.context_switches).sum(),
        device_written_bytes: device(|run| run.device_written_bytes),
        device_writes: device(|run| run.device_writes),
        device_read_bytes: device(|run| run.device_read_bytes),
        foreign_share: runs.iter().filter_map(|run| run.foreign_share).max_by(f64::total_cmp),
        max_rss_bytes: runs.iter().filter_map(|run| run.max_rss_bytes).max(),
        iodepth_reached: runs.iter().map(|run| run.iodepth_reached).max().unwrap_or(0),
        records: runs.iter().map(|run| run.records).reduce(|a, b| Some(a? + b?)).flatten(),
        issue_delay_ns: latency(|run| run.issue_delay_ns),
        cpu_busiest: busiest.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share)),
        cpu_waited_s: runs.iter().map(|run| run.cpu_waited_s).sum(),
        page_cache_bytes: some(|run| run.page_cache_bytes),
        unwritten_bytes: some(|run| run.unwritten_bytes),
        cached_before_bytes: some(|run| run.cached_before_bytes),
        latency_ns: latency(|run| run.latency_ns),
        flush_latency_ns: latency(|run| run.flush_latency_ns),
        durable_latency_ns: latency(|run| run.durable_latency_ns),
        ranks: spread(all, runs, peers),
    }
}

/// Returns the bytes of all ranks over time, at the times of rank 0's samples and at the last end;
/// `None` if no row was sampled.
fn sustained(rows: &[&Row]) -> Option<Sustained> {
    let all: Vec<&Sustained> = rows.iter().filter_map(|row| row.sustained.as_ref()).collect();
    let first = *all.first()?;
    let end_s = |of: &Sustained| of.samples.last().map_or(0.0, |sample| sample.end_s);
    let last_s = all.iter().map(|of| end_s(of)).fold(0.0, f64::max);
    let times = first.samples.iter().map(|sample| sample.end_s);
    let (mut samples, mut before) = (Vec::new(), (0.0, 0.0));
    for end_s in times.chain(Some(last_s).filter(|last_s| *last_s > end_s(first))) {
        let bytes: f64 = all.iter().map(|of| Sample::bytes_at(&of.samples, end_s)).sum();
        let throughput_bytes_per_s = (bytes - before.0) / (end_s - before.1).max(1e-9);
        samples.push(Sample { end_bytes: bytes as u64, end_s, throughput_bytes_per_s });
        before = (bytes, end_s);
    }
    let file_bytes = all.iter().map(|of| of.file_bytes).sum();
    Some(Sustained { file_bytes, samples, ..first.clone() })
}

fn node(peers: Peers<'_>, rank: u32) -> &str {
    peers.node(rank).map_or("", |node| &node.name)
}

fn spread(all: &[Facts], runs: &[Run], peers: Peers) -> Option<Spread> {
    let of_rank = |(rank, run): (u32, &Run)| RankRun {
        rank,
        node: node(peers, rank).into(),
        bytes: run.bytes,
        elapsed_s: run.elapsed_s,
        iops: run.iops,
    };
    let mut ranks: Vec<RankRun> = (0..).zip(runs).map(of_rank).collect();
    ranks.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    let rates: Vec<f64> = ranks.iter().map(|rank| rank.iops).collect();
    let starts_s = || all.iter().filter_map(|(_, parts, _)| Some(parts.first()?.0));
    Some(Spread {
        slowest: ranks.first()?.clone(),
        fastest: ranks.last()?.clone(),
        median_iops: stats::median(&rates),
        started_within_s: starts_s().fold(f64::MIN, f64::max) - starts_s().fold(f64::MAX, f64::min),
        // All ranks begin together, and until the first one has finished, each writes at its own
        // rate.
        stonewalled_bytes_per_s: ranks.iter().map(|of| of.bytes as f64 / of.elapsed_s).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::{LONG, ranks};
    use crate::sample;

    /// Returns a run of rank 0 to 3. It has two parts, and the duration of the second grows with
    /// the rank.
    fn measured(peers: Peers) -> Repeated {
        let rank = f64::from(peers.rank());
        let mut row = sample::row("stream/direct-psync", "power-loss", &[1.0]);
        let bytes = 1000 * (u64::from(peers.rank()) + 1);
        let elapsed_s = 2.0 + rank;
        row.runs[0] = Run {
            bytes,
            elapsed_s,
            throughput_bytes_per_s: bytes as f64 / elapsed_s,
            iops: 10.0 / elapsed_s,
            device_written_bytes: Some(5000 + u64::from(peers.rank() % 2)),
            ..Run::default()
        };
        let mut latencies = crate::histogram();
        latencies.record(u64::from(peers.rank()) + 1).unwrap();
        row.latency_ns = Some(stats::latency(&latencies));
        row.runs[0].latency_ns = row.latency_ns;
        let parts = [(100.0 + rank / 10.0, 101.0 + rank / 10.0), (200.0, 201.0 + rank)];
        // These times are by this rank's clock.
        let ahead_s = peers.node(peers.rank()).map_or(0.0, |node| node.clock_offset_s);
        parts.into_iter().for_each(|(from, to)| peers.is_over((from + ahead_s, to + ahead_s)));
        Repeated::one(row, latencies)
    }

    #[test]
    fn the_totals_are_those_of_all_ranks_from_the_first_start_of_each_part_to_its_last_end() {
        let all = ranks(4, LONG, |peers| {
            of_all_ranks(measured(peers), Some("sda"), peers).unwrap().rows()
        });
        assert_eq!(all[1][0].runs[0].bytes, 2000, "rank 1 keeps its own");
        let row = &all[0][0];
        let (run, spread) = (&row.runs[0], row.runs[0].ranks.as_ref().unwrap());
        assert_eq!((run.bytes, row.bytes_per_run), (10_000, 10_000));
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected;
        assert!(near(run.elapsed_s, 1.3 + 4.0), "{run:?}");
        assert!(near(run.throughput_bytes_per_s, 10_000.0 / 5.3), "{run:?}");
        assert!(near(run.iops, 40.0 / 5.3), "{run:?}");
        // There are two nodes, each with two ranks and one device. The higher reading of each
        // device is used.
        assert_eq!(run.device_written_bytes, Some(2 * 5001));
        assert_eq!((row.latency_ns.unwrap().count, row.latency_ns.unwrap().max), (4, 4));
        let own = measured(Peers::ALONE).rows.remove(0);
        assert_eq!(row.settings.asked.numjobs, 4 * own.settings.asked.numjobs);
        assert_eq!((spread.slowest.rank, &*spread.slowest.node), (3, "node1"));
        assert_eq!((spread.fastest.rank, spread.fastest.bytes), (0, 1000));
        assert!(near(spread.started_within_s, 0.3), "{spread:?}");
        let rates = 1000.0 / 2.0 + 2000.0 / 3.0 + 3000.0 / 4.0 + 4000.0 / 5.0;
        assert!(near(spread.stonewalled_bytes_per_s, rates), "{spread:?}");
    }

    #[test]
    fn ranks_that_measured_other_rows_are_refused() {
        let errors = ranks(2, LONG, |peers| {
            let mut run = measured(peers);
            run.rows[0].name += if peers.is_first() { "" } else { "-else" };
            of_all_ranks(run, None, peers).map(drop).unwrap_err().to_string()
        });
        let of_it = "rank 1 on node0: is at the end of stream/direct-psync-else in 2 parts";
        assert!(errors.iter().all(|error| error.starts_with(of_it)), "{errors:?}");
    }
}
