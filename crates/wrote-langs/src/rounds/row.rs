//! The row of one language, from its runs, and the order of rows.

use super::super::answer::Answer;
use hdrhistogram::Histogram;
use wrote_jobs::histogram;
use wrote_result::langs::{Row, Run};
use wrote_result::stats;

pub(super) struct RowBuilder {
    runs: Vec<Run>,
    /// Latencies of all timings that count.
    latencies_ns: Histogram<u64>,
}

impl RowBuilder {
    pub(super) fn new() -> RowBuilder {
        RowBuilder { runs: Vec::new(), latencies_ns: histogram() }
    }

    pub(super) fn add(&mut self, run: Run, answer: &Answer) {
        if !run.dropped {
            for elapsed_ns in &answer.elapsed_ns {
                self.latencies_ns.saturating_record(*elapsed_ns);
            }
        }
        self.runs.push(run);
    }

    /// Builds the row of a language; `None` without a run that counts. Only saves have latencies.
    pub(super) fn row(self, language: &str, is_save: bool) -> Option<Row> {
        let counts = || self.runs.iter().filter(|run| !run.dropped);
        counts().next()?;
        let values = |value: fn(&Run) -> f64| counts().map(value).collect::<Vec<f64>>();
        let sum = |value: fn(&Run) -> f64| counts().map(value).sum::<f64>();
        let cpu_s_per_gb =
            |run: &Run| (run.cpu_user_s + run.cpu_system_s) / (run.bytes as f64 / 1e9);
        Some(Row {
            language: language.into(),
            throughput_bytes_per_s: stats::interval(&values(|run| {
                run.bytes as f64 / run.elapsed_s
            })),
            throughput_mean_bytes_per_s: sum(|run| run.bytes as f64) / sum(|run| run.elapsed_s),
            cpu_s_per_gb: stats::median(&values(cpu_s_per_gb)),
            max_rss_bytes: self.runs.iter().filter_map(|run| run.max_rss_bytes).max(),
            latency_ns: is_save.then(|| stats::latency(&self.latencies_ns)),
            runs: self.runs,
        })
    }
}

/// Sorts the fastest first: by throughput, or by the median save where each save was timed.
pub(super) fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| match (&a.latency_ns, &b.latency_ns) {
        (Some(a), Some(b)) => a.p50.cmp(&b.p50),
        _ => b.throughput_bytes_per_s.median.total_cmp(&a.throughput_bytes_per_s.median),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(elapsed_s: f64, dropped: bool) -> Run {
        Run {
            bytes: 1_000_000_000,
            elapsed_s,
            cpu_user_s: elapsed_s / 2.0,
            cpu_system_s: elapsed_s / 4.0,
            max_rss_bytes: Some((elapsed_s * 1e6) as u64),
            dropped,
            ..Run::default()
        }
    }

    fn row(runs: &[Run], elapsed_ns: &[u64], is_save: bool) -> Option<Row> {
        let mut so_far = RowBuilder::new();
        let answer = Answer { elapsed_ns: elapsed_ns.to_vec(), bytes: 1, sum: None };
        runs.iter().for_each(|run| so_far.add(run.clone(), &answer));
        so_far.row("go", is_save)
    }

    #[test]
    fn a_run_that_is_dropped_is_shown_and_counts_for_nothing_but_memory() {
        let runs = [run(10.0, true), run(1.0, false), run(2.0, false), run(4.0, false)];
        let row = row(&runs, &[1000], false).unwrap();
        assert_eq!(row.runs.len(), 4);
        assert_eq!(row.throughput_bytes_per_s.median, 0.5e9);
        let mean = row.throughput_mean_bytes_per_s;
        assert!((mean - 3e9 / 7.0).abs() < 1.0, "{mean}");
        assert_eq!(row.cpu_s_per_gb, 1.5);
        assert_eq!(row.max_rss_bytes, Some(10_000_000));
        assert_eq!(row.latency_ns, None);
    }

    #[test]
    fn of_saves_every_timing_is_told_and_none_of_a_run_that_is_dropped() {
        let runs = [run(1.0, true), run(1.0, false)];
        let latency = row(&runs, &[100, 200, 300], true).unwrap().latency_ns.unwrap();
        assert_eq!((latency.count, latency.min, latency.p50, latency.max), (3, 100, 200, 300));
    }

    #[test]
    fn a_language_without_a_run_that_counts_has_no_row() {
        assert!(row(&[], &[1], false).is_none());
        assert!(row(&[run(1.0, true)], &[1], false).is_none());
    }

    #[test]
    fn the_fastest_is_first_and_among_saves_the_one_with_the_shortest_median() {
        let named = |name: &str, elapsed_s, elapsed_ns: &[u64], is_save| {
            let row = row(&[run(elapsed_s, false)], elapsed_ns, is_save).unwrap();
            Row { language: name.into(), ..row }
        };
        let mut rows = [named("slow", 2.0, &[1], false), named("fast", 1.0, &[1], false)];
        sort(&mut rows);
        assert_eq!(rows[0].language, "fast");
        // One very slow save slows the whole, not the median save.
        let mut rows = [
            named("usually-slow", 1.0, &[50, 50, 50], true),
            named("usually-fast", 2.0, &[10, 10, 900], true),
        ];
        sort(&mut rows);
        assert_eq!(rows[0].language, "usually-fast");
    }
}
