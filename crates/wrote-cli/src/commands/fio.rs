//! `wrote fio`, or `wrote` called under the name `fio`. It has fio's command line, defaults, output
//! formats and exit codes, so that scripts which call fio run unchanged.

mod device;
mod options;

use super::run as jobs_of;
use crate::output::to_stdout;
use crate::terminal;
use options::Asked;
use rustix::thread::disable_transparent_huge_pages;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use wrote_jobs::fio_report::{self, About, Form};
use wrote_jobs::jobs::Watcher;
use wrote_jobs::machine::watch::cpu::CpuTimes;
use wrote_jobs::peers::Peers;
use wrote_jobs::report;
use wrote_result::{Error, Stop};

/// The averaging interval of the aggregated rates (`--bandwidth-log`).
const AGGREGATED_OVER: Duration = Duration::from_millis(500);

/// Runs jobs as fio does. Like fio, ends every failure with exit code 1.
///
/// # Errors
///
/// The reason why there is no result, on one line.
pub(super) fn run(words: &[OsString], stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    let done = options::parse(words).and_then(|asked| obey(&asked, stop, command));
    done.map_err(|error| match error {
        Error::Usage(text) => Error::Failed(text),
        other => other,
    })
}

fn obey(asked: &Asked, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    if let Some(text) = &asked.answer {
        return to_stdout(|out| out.write_all(text.as_bytes()));
    }
    let arguments = &asked.run;
    let mut plan = jobs_of::plan(arguments, Peers::ALONE, stop)?;
    if asked.parse_only {
        return Ok(());
    }
    if let Some(path) = arguments.to.output.as_deref().filter(|path| *path != Path::new("-")) {
        // The output file is opened before the measurement, so that a minute's work does not end
        // with an error about the file.
        let opened = File::options().write(true).create(true).truncate(false).open(path);
        opened.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    }
    let mut permissions = arguments.permissions();
    permissions.devices = device::check(&plan.specs, &asked.devices)?;
    if asked.bandwidth_log {
        for spec in &mut plan.specs {
            spec.log.get_or_insert(AGGREGATED_OVER);
        }
    }
    let wants_text = asked.forms.contains(&Form::Normal);
    let mut text = Vec::new();
    if wants_text {
        fio_report::write_head(&plan.specs, &mut text).expect("memory takes everything");
    }
    if arguments.to.output.is_none() && !text.is_empty() {
        // Like fio, this prints the text before the jobs run.
        to_stdout(|out| out.write_all(&text))?;
        text.clear();
    }
    // fio's buffers are in small pages, which slow down large transfers.
    let _ = disable_transparent_huge_pages(true);
    let cpus = asked.idle_prof.then(CpuTimes::now);
    let done =
        jobs_of::measure(arguments, &plan, permissions, Peers::ALONE, stop, command, &mut Quiet)?;
    let idleness = cpus.map(|before| before.idle_until_now());
    let of_files = jobs_of::with_groups(&plan.files, &done.groups);
    let result = report::document(&of_files, &done.before, &done.about, Peers::ALONE, None)?;
    let (bins, terse_version) = (asked.bins, asked.terse_version);
    let about = About { result: Some(&result), idleness, bins, terse_version, ..About::default() };
    done.fios(&plan.files, about).write(&asked.forms, &mut text).expect("memory takes everything");
    match arguments.to.output.as_deref() {
        Some(path) => replace(path, &text)?,
        None => to_stdout(|out| out.write_all(&text))?,
    }
    for (name, text) in fio_report::logs(&done.groups, asked.bandwidth_log) {
        let path = asked.aux_path.as_ref().map_or(name.clone().into(), |folder| folder.join(name));
        replace(&path, text.as_bytes())?;
    }
    if asked.findings {
        result.findings.iter().for_each(|finding| terminal::complain(&finding.text));
    }
    Ok(())
}

/// A watcher that prints nothing. As in fio, jobs that a signal stops report what they have done so
/// far.
struct Quiet;

impl Watcher for Quiet {
    fn keeps_a_part(&self) -> bool {
        true
    }
}

/// Writes to standard output for `-`, or else writes a file. Replaces an existing file, as fio
/// does.
fn replace(path: &Path, text: &[u8]) -> Result<(), Error> {
    if path == Path::new("-") {
        return to_stdout(|out| out.write_all(text));
    }
    let written = File::create(path).and_then(|mut file| file.write_all(text));
    written.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}
