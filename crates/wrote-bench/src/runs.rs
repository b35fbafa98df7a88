//! What the runs of a row add up to.

use crate::result::{Direction, Fallback, Row, Run, Settings, SettingsPair};
use crate::run::Measured;
use crate::stats;
use crate::worker::histogram;
use hdrhistogram::Histogram;
use wrote::Survives;

/// What is known of a row before its runs.
pub(crate) struct Named<'a> {
    pub name: &'a str,
    pub workload: &'a str,
    pub words: &'a str,
    pub survives: Survives,
    pub asked: Settings,
}

/// What a row's runs gave so far.
pub(crate) struct RowSoFar {
    runs: Vec<Run>,
    latencies: Histogram<u64>,
    effective: Option<Settings>,
    fallbacks: Vec<Fallback>,
}

impl RowSoFar {
    pub(crate) fn new() -> RowSoFar {
        RowSoFar {
            runs: Vec::new(),
            latencies: histogram(),
            effective: None,
            fallbacks: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        let timed = !measured.latencies.is_empty();
        let latency_ns = timed.then(|| stats::latency(&measured.latencies));
        self.runs.push(Run { latency_ns, ..measured.run });
        self.latencies.add(&measured.latencies).expect("all histograms have the same bounds");
        self.fallbacks.extend(measured.fallbacks);
        match &mut self.effective {
            Some(effective) => effective.weaken(&measured.effective),
            None => self.effective = Some(measured.effective),
        }
    }

    /// What was in effect in all runs.
    pub(crate) fn effective(&self) -> Settings {
        self.effective.clone().unwrap_or_default()
    }

    /// The row that the runs add up to.
    pub(crate) fn row(self, named: Named<'_>) -> Row {
        let values = |value: fn(&Run) -> f64| self.runs.iter().map(value).collect::<Vec<f64>>();
        let effective = self.effective();
        let mut fallbacks = self.fallbacks.clone();
        fallbacks.sort();
        fallbacks.dedup();
        let timed = !self.latencies.is_empty();
        Row {
            name: named.name.into(),
            workload: named.workload.into(),
            way: named.words.into(),
            direction: Direction::Write,
            survives: Some(named.survives.as_str().into()),
            crash_leaves: None,
            bytes_per_run: stats::median(&values(|run| run.bytes as f64)) as u64,
            settings: SettingsPair { asked: named.asked, effective, fallbacks },
            throughput_bytes_per_s: stats::interval(&values(|run| run.throughput_bytes_per_s)),
            latency_ns: timed.then(|| stats::latency(&self.latencies)),
            runs: self.runs,
            sustained: None,
        }
    }
}
