//! What the runs of a row add up to.

use hdrhistogram::Histogram;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use wrote::Survives;
use wrote_jobs::worker::histogram;
use wrote_result::Error;
use wrote_result::document::{Direction, Fallback, Row, Run, Settings, SettingsPair};
use wrote_result::stats;

/// What one run gave.
pub struct Measured {
    pub run: Run,
    pub latencies: Histogram<u64>,
    /// What was in effect, with the depth that was reached.
    pub effective: Settings,
    pub fallbacks: Vec<Fallback>,
}

/// What is known of a row before its runs.
pub struct Named<'a> {
    pub name: &'a str,
    pub workload: &'a str,
    pub words: &'a str,
    pub survives: Survives,
    pub asked: Settings,
}

/// What a row's runs gave so far.
pub struct RowSoFar {
    runs: Vec<Run>,
    latencies: Histogram<u64>,
    effective: Option<Settings>,
    fallbacks: Vec<Fallback>,
}

impl RowSoFar {
    pub fn new() -> RowSoFar {
        RowSoFar {
            runs: Vec::new(),
            latencies: histogram(),
            effective: None,
            fallbacks: Vec::new(),
        }
    }

    pub fn add(&mut self, measured: Measured) {
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
    pub fn effective(&self) -> Settings {
        self.effective.clone().unwrap_or_default()
    }

    /// The row that the runs add up to.
    pub fn row(self, named: Named<'_>) -> Row {
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

/// Removes the files, and waits until the file system has let go of them: what the next run measures
/// is its own writes alone.
pub fn clear(files: &[PathBuf], folder: &Path) -> Result<(), Error> {
    for file in files {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Failed(format!("{}: unlink: {error}", file.display())));
            }
            _ => {}
        }
    }
    // A folder that can't be flushed (some FUSE) has nothing to let go of.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// A step down of the engine's, for the result.
pub fn fallback(step: &wrote::Fallback) -> Fallback {
    Fallback { wanted: step.wanted.into(), got: step.got.into(), because: step.because.clone() }
}
