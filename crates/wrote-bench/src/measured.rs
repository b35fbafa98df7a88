//! One run of a row, and the row that runs add up to.

use hdrhistogram::Histogram;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use wrote::Survives;
use wrote_jobs::histogram;
use wrote_result::Error;
use wrote_result::document::{Direction, Fallback, Row, Run, Settings, SettingsPair};
use wrote_result::stats;

/// The outcome of one run whose clock is the scenario's own.
pub struct OneRun {
    /// The figures of the run.
    pub run: Run,
    /// The latency of each operation; empty where the run is one operation.
    pub latencies: Histogram<u64>,
    /// The settings in effect, with the depth that was reached.
    pub effective: Settings,
    /// Each setting that was not honoured, with the reason.
    pub fallbacks: Vec<Fallback>,
}

/// The parts of a row that are known before its runs.
pub struct RowLabel<'a> {
    /// Unique in the result: `ways/file/fs-write`.
    pub name: &'a str,
    /// The group in which it is compared.
    pub workload: &'a str,
    /// The way of writing, in words.
    pub words: &'a str,
    /// The level that an acknowledged write survives (M3).
    pub survives: Survives,
    /// The settings that were asked for.
    pub asked: Settings,
}

/// The runs of a row, added up.
pub struct Runs {
    figures: Vec<Run>,
    latencies: Histogram<u64>,
    effective: Option<Settings>,
    fallbacks: Vec<Fallback>,
}

impl Default for Runs {
    fn default() -> Runs {
        let latencies = histogram();
        Runs { figures: Vec::new(), latencies, effective: None, fallbacks: Vec::new() }
    }
}

impl Runs {
    /// Adds a run, and returns the file bytes that it wrote.
    pub fn add(&mut self, OneRun { run, latencies, effective, fallbacks }: OneRun) -> u64 {
        let (bytes, timed) = (run.bytes, !latencies.is_empty());
        let latency_ns = timed.then(|| stats::latency(&latencies));
        self.figures.push(Run { latency_ns, ..run });
        self.latencies.add(&latencies).expect("all histograms have the same bounds");
        self.fallbacks.extend(fallbacks);
        match &mut self.effective {
            Some(weakest) => weakest.weaken(&effective),
            None => self.effective = Some(effective),
        }
        bytes
    }

    /// The settings in effect in all runs: the weakest of each.
    pub fn effective(&self) -> Settings {
        self.effective.clone().unwrap_or_default()
    }

    /// The row that the runs make.
    pub fn row(self, label: RowLabel<'_>) -> Row {
        let effective = self.effective();
        let Runs { figures, latencies, mut fallbacks, .. } = self;
        fallbacks.sort();
        fallbacks.dedup();
        let values = |value: fn(&Run) -> f64| figures.iter().map(value).collect::<Vec<f64>>();
        Row {
            name: label.name.into(),
            workload: label.workload.into(),
            way: label.words.into(),
            direction: Direction::Write,
            survives: Some(label.survives.into()),
            crash_leaves: None,
            bytes_per_run: stats::median(&values(|run| run.bytes as f64)) as u64,
            settings: SettingsPair { asked: label.asked, effective, fallbacks },
            throughput_bytes_per_s: stats::interval(&values(|run| run.throughput_bytes_per_s)),
            latency_ns: (!latencies.is_empty()).then(|| stats::latency(&latencies)),
            runs: figures,
            sustained: None,
        }
    }
}

/// Removes files and flushes their folder.
///
/// The file system then has let go of them: the next run measures its own writes alone.
///
/// # Errors
///
/// [`Error::Failed`] names the file that stays.
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

/// A fallback of the engine, for the result.
pub fn fallback(step: &wrote::Fallback) -> Fallback {
    Fallback { wanted: step.wanted.into(), got: step.got.into(), because: step.because.clone() }
}
