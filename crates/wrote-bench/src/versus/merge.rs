//! The results of several rounds as one: each round's run of a row is one of its runs.

use wrote_jobs::report;
use wrote_result::document::{Document, Latency, Row};
use wrote_result::stats;

/// One result of all rounds, which are never none. The findings are those of the rounds, each told
/// once; there is no advice, since one round's alone would be a guess.
pub(super) fn merged(documents: Vec<Document>) -> Document {
    let mut documents = documents.into_iter();
    let mut all = documents.next().expect("there is a round");
    all.advice.clear();
    for document in documents {
        all.elapsed_s += document.elapsed_s;
        for finding in document.findings {
            if !all.findings.iter().any(|known| known.id == finding.id) {
                all.findings.push(finding);
            }
        }
        let known = all.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows);
        let mut known: Vec<&mut Row> = known.collect();
        for row in document.scenarios.into_iter().flat_map(|scenario| scenario.rows) {
            if let Some(known) = known.iter_mut().find(|known| known.name == row.name) {
                report::join(known, row);
            }
        }
    }
    wrote_result::finding::sort(&mut all.findings);
    all.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows).for_each(sum_up);
    all
}

fn sum_up(row: &mut Row) {
    report::sum_up(row);
    let latencies: Vec<Latency> = row.runs.iter().filter_map(|run| run.latency_ns).collect();
    if row.latency_ns.is_some() && !latencies.is_empty() {
        row.latency_ns = Some(together(&latencies));
    }
}

/// Of latencies whose histograms are gone: the least, the greatest, the mean, the sum and the count
/// are those of all operations; a percentile is the median of the runs' own.
fn together(runs: &[Latency]) -> Latency {
    let median = |figure: fn(&Latency) -> u64| {
        let figures: Vec<f64> = runs.iter().map(|run| figure(run) as f64).collect();
        stats::median(&figures).round() as u64
    };
    let (total, count) =
        runs.iter().fold((0, 0), |(total, count), run| (total + run.total, count + run.count));
    Latency {
        min: runs.iter().map(|run| run.min).min().unwrap_or(0),
        mean: total as f64 / (count as f64).max(1.0),
        p50: median(|run| run.p50),
        p90: median(|run| run.p90),
        p95: median(|run| run.p95),
        p99: median(|run| run.p99),
        p99_9: median(|run| run.p99_9),
        max: runs.iter().map(|run| run.max).max().unwrap_or(0),
        total,
        count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use wrote_result::document::{Fallback, Survives};

    fn document(rows: Vec<Row>) -> Document {
        sample::document(rows)
    }

    fn round(throughput_bytes_per_s: f64, p99: u64) -> Document {
        let mut row = sample::row("stream/cached", "power-loss", &[throughput_bytes_per_s]);
        let latency =
            Latency { min: p99 / 2, p99, max: 2 * p99, total: p99, count: 1, ..Latency::default() };
        row.runs[0].latency_ns = Some(latency);
        row.latency_ns = Some(latency);
        document(vec![row])
    }

    #[test]
    fn each_rounds_run_is_a_run_of_the_row() {
        let all = merged(vec![round(1e9, 100), round(3e9, 300), round(2e9, 200)]);
        let row = &all.scenarios[0].rows[0];
        let rates: Vec<f64> = row.runs.iter().map(|run| run.throughput_bytes_per_s).collect();
        assert_eq!(rates, [1e9, 3e9, 2e9]);
        assert_eq!(row.throughput_bytes_per_s, stats::interval(&rates));
        let latency = row.latency_ns.unwrap();
        assert_eq!((latency.min, latency.p99, latency.max), (50, 200, 600));
        assert_eq!((latency.total, latency.count, latency.mean), (600, 3, 200.0));
    }

    #[test]
    fn what_a_later_round_had_less_of_the_whole_has_less_of() {
        let mut later = round(1e9, 100);
        let row = &mut later.scenarios[0].rows[0];
        row.survives = Some(Survives::ProcessCrash);
        row.settings.fallbacks.push(Fallback {
            wanted: "O_DIRECT".into(),
            got: "cached".into(),
            because: "refused".into(),
        });
        let all = merged(vec![round(1e9, 100), later]);
        let row = &all.scenarios[0].rows[0];
        assert_eq!(row.survives, Some(Survives::ProcessCrash));
        assert_eq!(row.settings.fallbacks.len(), 1);
    }
}
