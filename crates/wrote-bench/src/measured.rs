//! A run of a row timed by the scenario itself.

use hdrhistogram::Histogram;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Fallback, Row, Run, Settings, SettingsPair};
use wrote_result::stats;

/// The result of one run timed by the scenario.
pub struct OneRun {
    /// The figures of the run.
    pub run: Run,
    /// The latency of each operation; empty if the run is one operation.
    pub latencies: Histogram<u64>,
    /// The settings in effect, with the depth reached.
    pub effective: Settings,
    /// Each setting that was not honoured, with the reason.
    pub fallbacks: Vec<Fallback>,
}

impl OneRun {
    /// Converts the run to a row. `row` provides its name, words, view and level; `asked` are the
    /// requested settings.
    pub fn row(self, row: Row, asked: Settings) -> Repeated {
        let OneRun { run, latencies, effective, mut fallbacks } = self;
        fallbacks.sort();
        fallbacks.dedup();
        let latency_ns = (!latencies.is_empty()).then(|| stats::latency(&latencies));
        let settings = SettingsPair { asked, effective, fallbacks };
        let row = Row { settings, ..row }.with_run(Run { latency_ns, ..run });
        Repeated::one(row, latencies)
    }
}

/// Removes files and flushes their folder.
///
/// Afterwards the file system has released them, and the next run measures only its own writes.
///
/// # Errors
///
/// [`Error::Failed`] names the file that could not be removed.
pub fn clear(files: &[PathBuf], folder: &Path) -> Result<(), Error> {
    for file in files {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Failed(format!("{}: unlink: {error}", file.display())));
            }
            _ => {}
        }
    }
    // A folder that can't be flushed (some FUSE) has nothing to release.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
