//! Compares two settings by interleaved runs (ABBAAB).

use crate::bench::Bench;
use crate::plan::RUNS;
use crate::progress::{Announcement, Observer, Progress};
use crate::request::Request;
use crate::scenarios::Scenarios;
use crate::settings::{Common, Wear};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wrote_jobs::peers::Peers;
use wrote_jobs::report;
use wrote_result::compare::{Allowed, Comparison, compare_allowing};
use wrote_result::document::{Document, Latency, Row, Run};
use wrote_result::{Error, Stop, stats};

/// Measures `old` and `new` in turn, and compares the results.
///
/// Each round is a whole benchmark with one run of each row. The rounds alternate A B, B A, A B, so
/// that a steady drift affects both alike (M8). There are as many as `old` requests runs, five by
/// default. All runs of a side use the sizes of its first calibration. The comparison contains both
/// results.
///
/// # Errors
///
/// [`Error::Usage`] if either request is invalid, before anything is measured; else as
/// [`Bench::run`], and [`Error::Failed`] if the two have no row in common.
pub fn versus(
    old: &Request,
    new: &Request,
    peers: &dyn Peers,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Comparison, Error> {
    let rounds = old.common.runs.unwrap_or(RUNS);
    let sides = [one_run(old, rounds), one_run(new, rounds)];
    let speeds = [OnceLock::new(), OnceLock::new()];
    let bench = |side: usize| Bench::new(&sides[side]).ranks(peers).speed(&speeds[side]);
    let outlooks = [bench(0).outlook()?, bench(1).outlook()?];
    let mut turns = Turns::new(observer, outlooks, rounds);
    let mut documents = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let document = bench(side).run(stop, &mut turns)?;
            // An incomplete side can't be compared.
            stop.check()?;
            documents[side].push(document);
            turns.is_over(side);
        }
    }
    let [first, second] = documents.map(merged);
    let mut comparison = compare_allowing(&first, &second, &Allowed::Everything)?;
    comparison.results = vec![first, second];
    Ok(comparison)
}

/// Returns the request of one round of a side: one run of each row.
fn one_run(request: &Request, rounds: u32) -> Request {
    let latency = request.scenarios.latency.divided(rounds);
    // Two sides of five rounds are ten benchmarks, each with a tenth of the usual bytes.
    let usual = Common { runs: None, ..request.common.clone() };
    let wear = request.common.wear.or((!usual.has_amount()).then_some(Wear::Low));
    Request {
        common: Common { runs: Some(1), wear, ..request.common.clone() },
        scenarios: Scenarios { latency, ..request.scenarios.clone() },
        ..request.clone()
    }
}

/// Merges the results of all rounds; there is at least one. Findings of all rounds are kept,
/// without duplicates. There is no advice, because one round is too little for it.
fn merged(documents: Vec<Document>) -> Document {
    let mut documents = documents.into_iter();
    let mut all = documents.next().expect("there is a round");
    all.advice.clear();
    all.answers = None;
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
                known.latency_histogram_ns = together_as_text(
                    known.latency_histogram_ns.as_deref(),
                    row.latency_histogram_ns.as_deref(),
                );
                known.durable_histogram_ns = together_as_text(
                    known.durable_histogram_ns.as_deref(),
                    row.durable_histogram_ns.as_deref(),
                );
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
    let of_runs = |figure: fn(&Run) -> Option<Latency>| {
        let latencies: Vec<Latency> = row.runs.iter().filter_map(figure).collect();
        (!latencies.is_empty()).then(|| Latency::combined(&latencies, median))
    };
    let [own, flush, durable] = [
        of_runs(|run| run.latency_ns),
        of_runs(|run| run.flush_latency_ns),
        of_runs(|run| run.durable_latency_ns),
    ];
    row.latency_ns = own.filter(|_| row.latency_ns.is_some()).or(row.latency_ns);
    row.flush_latency_ns = flush.or(row.flush_latency_ns);
    row.durable_latency_ns = durable.or(row.durable_latency_ns);
}

/// Returns the median of the percentiles of several runs without histograms.
fn median(percentiles: Vec<u64>) -> u64 {
    let percentiles: Vec<f64> = percentiles.into_iter().map(|ns| ns as f64).collect();
    stats::median(&percentiles).round() as u64
}

fn together_as_text(one: Option<&str>, other: Option<&str>) -> Option<String> {
    stats::together(one?, other?)
}

/// Presents the turns of both sides to one observer.
struct Turns<'a> {
    observer: &'a mut dyn Observer,
    /// The announcement of one round of each side.
    outlooks: [Announcement; 2],
    rounds: u32,
    began: Instant,
    runs: u32,
    /// Runs of completed turns.
    runs_before: u32,
    announced: bool,
    told: BTreeSet<String>,
}

impl<'a> Turns<'a> {
    fn new(observer: &'a mut dyn Observer, outlooks: [Announcement; 2], rounds: u32) -> Turns<'a> {
        let runs = rounds * (outlooks[0].runs + outlooks[1].runs);
        Turns {
            observer,
            outlooks,
            rounds,
            began: Instant::now(),
            runs,
            runs_before: 0,
            announced: false,
            told: BTreeSet::new(),
        }
    }

    /// Handles the end of a side's benchmark: the next one continues the count as if nothing had
    /// been left out.
    fn is_over(&mut self, side: usize) {
        self.runs_before += self.outlooks[side].runs;
    }

    /// Returns the announcement for both sides; the folder is the first round's.
    fn all(&self, first: &Announcement) -> Announcement {
        let [a, b] = &self.outlooks;
        let rounds = u64::from(self.rounds);
        let written_bytes_max = rounds * (a.written_bytes_max + b.written_bytes_max);
        Announcement {
            folder: first.folder.clone(),
            space_bytes_max: a.space_bytes_max.max(b.space_bytes_max),
            written_bytes_max,
            runs: self.runs,
            estimated: self.rounds * (a.estimated + b.estimated),
            is_limited: false,
            estimated_slowed: self.rounds * (a.estimated_slowed + b.estimated_slowed),
        }
    }

    fn left(&self, runs_done: u32) -> Duration {
        let [a, b] = &self.outlooks;
        match runs_done {
            0 => self.rounds * (a.estimated + b.estimated),
            _ => self.began.elapsed() / runs_done * self.runs.saturating_sub(runs_done),
        }
    }
}

impl Observer for Turns<'_> {
    /// Called once, before the first byte.
    fn announce(&mut self, announcement: &Announcement) {
        if !std::mem::replace(&mut self.announced, true) {
            let all = self.all(announcement);
            self.observer.announce(&all);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let (runs, runs_done) = (self.runs, self.runs_before + progress.runs_done);
        let left = self.left(runs_done);
        let progress = Progress { runs_done, runs, left, ..progress.clone() };
        // At the end of each turn there is no row; that is reported only after the last.
        if !progress.row.is_empty() || runs_done >= runs {
            self.observer.progress(&progress);
        }
    }

    /// Reports a remark only once, though every round makes it.
    fn note(&mut self, text: &str) {
        if self.told.insert(text.to_owned()) {
            self.observer.note(text);
        }
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
    fn the_whole_has_the_least_that_any_round_had() {
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
