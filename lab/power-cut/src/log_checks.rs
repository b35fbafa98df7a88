//! The check of a log after a power cut, and its openings until the next one, for every subject
//! that has a log.

use crate::found::{CheckResult, names};
use crate::said::{Line, Report};
use crate::subject::{Reporter, unsaid};
use std::io;
use std::path::Path;
use wrote::log::Recovered;
use wrote::{Error, Log};

/// Counts temporary files in the log's folder, and has `examine` find the state of the records
/// without a promise, or the broken promise in words.
pub fn check(
    folder: &Path,
    said: &Report,
    examine: impl FnOnce() -> Result<&'static str, String>,
) -> io::Result<CheckResult> {
    let temporary_files = if folder.exists() { names(folder)?.1 } else { 0 };
    let mut found = CheckResult { temporary_files, ..CheckResult::default() };
    match examine() {
        Ok(in_flight) => found.in_flight = in_flight,
        Err(fault) => found.faults.push(fault),
    }
    if said.all().contains(&Line::Unpoisoned) {
        found.faults.push("after the first error the log took more".to_owned());
    }
    Ok(found)
}

/// Returns the findings of an opening; an error in words for a file that it kept aside and that is
/// not there.
pub fn recovered(log: &Log) -> Result<Recovered, String> {
    let recovered = log.recovered().clone();
    match recovered.kept_aside.iter().find(|path| !path.exists()) {
        Some(lost) => Err(format!("{} was to be kept aside, and is not there", lost.display())),
        None => Ok(recovered),
    }
}

/// Opens and closes the log until that fails, and reports its end each time.
pub fn reopen(open: impl Fn() -> Result<Log, Error>, say: Reporter) -> Error {
    loop {
        let opened = open().and_then(|log| {
            let line = Line::Reopened(log.stats().next_sequence);
            say(&line).map_err(|trouble| unsaid(&trouble))?;
            log.close()
        });
        if let Err(error) = opened {
            return error;
        }
    }
}
