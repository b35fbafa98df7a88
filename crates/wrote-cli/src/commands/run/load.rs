//! Reads the named job files, and selects the jobs to run.

use crate::args::{RunArgs, of_rank};
use crate::{stdio, terminal};
use itertools::Itertools;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wrote_jobs::machine::host;
use wrote_jobs::peers::Peers;
use wrote_jobs::spec::JobSpec;
use wrote_jobs::{data, fio};
use wrote_result::units::some_of;
use wrote_result::{Error, Stop};

const JOB_FILE: stdio::Kind = stdio::Kind { name: "job file", bytes_max: 16 << 20 };

#[derive(Debug, Default)]
pub(in crate::commands) struct JobFile {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's content. The groups of its jobs follow the previous file's groups.
    pub parsed: fio::Parsed,
}

impl JobFile {
    fn of(name: String, mut parsed: fio::Parsed) -> JobFile {
        let job_file: Arc<str> = name.as_str().into();
        parsed.jobs.iter_mut().for_each(|job| job.job_file = job_file.clone());
        JobFile { name, parsed }
    }

    pub(super) fn groups(&self) -> usize {
        self.parsed.jobs.iter().map(|job| job.group).unique().count()
    }
}

/// Reads and parses all files, and selects the requested jobs.
pub(super) fn files(arguments: &RunArgs, peers: Peers, stop: &Stop) -> Result<Vec<JobFile>, Error> {
    let options = options(arguments);
    // Options before the first job apply to the jobs in files, too.
    let first = options.iter().position(|(key, _)| key == "name");
    let overrides = &options[..first.unwrap_or(options.len())];
    let is_beside = first.is_some() && !arguments.jobs.is_empty() && !arguments.as_fio;
    if let Some((_, name)) = first.map(|at| &options[at]).filter(|_| is_beside) {
        let name = name.as_deref().unwrap_or_default();
        let because = "jobs come from files or from the command line: run one after the other";
        return Err(Error::Usage(format!("--name={name}: {because}")));
    }
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    for path in &arguments.jobs {
        let name = shown_name(path);
        let text = read(path, &name, stop)?;
        let include = |included: &str| {
            // Like fio, this searches the current folder first, and then the folder of the
            // including file.
            let here = PathBuf::from(included);
            let beside = path.parent().map(|folder| folder.join(included));
            let path = if here.exists() { here } else { beside.unwrap_or(here) };
            read(&path, included, stop).map_err(|error| error.to_string())
        };
        let parse = |surroundings: &fio::Surroundings| fio::parse(&text, surroundings);
        match parsed(overrides, arguments, &include, parse) {
            Ok(parsed) => files.push(JobFile::of(name, parsed)),
            Err(errors) => refused.extend(errors.iter().map(|error| format!("{name}: {error}"))),
        }
    }
    if arguments.jobs.is_empty() || first.is_some() {
        let parse = |surroundings: &fio::Surroundings| fio::parse_options(&options, surroundings);
        match parsed(&[], arguments, &no_file, parse) {
            Ok(parsed) => files.push(JobFile::of("the command line".into(), parsed)),
            Err(errors) => refused.extend(errors.iter().map(ToString::to_string)),
        }
    }
    check_refused(&refused, peers)?;
    check_sections(&files, &arguments.section)?;
    number_groups(&mut files);
    if let Some(directory) = &arguments.directory {
        let directory = of_rank(directory, peers);
        files.iter_mut().for_each(|file| put_into(&directory, &mut file.parsed.jobs));
    }
    Ok(files)
}

/// The maximum number of errors in job files that are shown.
const REFUSED_MAX: usize = 20;

/// Prints all errors but the last, each on a line. Returns the last one as the error of the
/// program.
fn check_refused(refused: &[String], peers: Peers) -> Result<(), Error> {
    let Some((last, others)) = refused.split_last() else { return Ok(()) };
    let said = others.iter().take(REFUSED_MAX - 1).filter(|_| peers.is_first());
    said.for_each(|error| terminal::complain(error));
    let last = match others.len().checked_sub(REFUSED_MAX - 1) {
        Some(more @ 1..) => format!("and {} more errors in job files", more + 1),
        _ => last.clone(),
    };
    Err(Error::Usage(last))
}

/// Returns the options of jobs on the command line, which are keys with values.
fn options(arguments: &RunArgs) -> Vec<(String, Option<String>)> {
    let option = |text: &String| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.clone(), None),
    };
    arguments.options.iter().map(option).collect()
}

fn read(path: &Path, name: &str, stop: &Stop) -> Result<String, Error> {
    let bytes = stdio::read_file(path, name, JOB_FILE, stop)?;
    let is_no_text = |_| format!("{name}: is not a text file: it is not UTF-8");
    String::from_utf8(bytes).map_err(is_no_text).map_err(Error::Usage)
}

fn no_file(_: &str) -> Result<String, String> {
    Err("is only for job files".into())
}

/// Returns the jobs that `parse` finds, or all errors. `overrides` apply to each job, and only the
/// requested sections are parsed.
fn parsed(
    overrides: &[(String, Option<String>)],
    arguments: &RunArgs,
    include: &dyn Fn(&str) -> Result<String, String>,
    parse: impl FnOnce(&fio::Surroundings) -> Result<fio::Parsed, Vec<fio::ParseError>>,
) -> Result<fio::Parsed, Vec<fio::ParseError>> {
    let surroundings = fio::Surroundings {
        environment: &|name| std::env::var(name).ok(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        page_bytes: rustix::param::page_size() as u32,
        memory_mib: host::memory_bytes() >> 20,
        seed: data::seed(),
        overrides,
        sections: &arguments.section,
        include,
        as_fio: arguments.as_fio,
    };
    parse(&surroundings)
}

fn shown_name(path: &Path) -> String {
    match path.file_name() {
        _ if stdio::is_stdin(path) => "standard input".into(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    }
}

/// Refuses the name of a section that is in none of the files.
fn check_sections(files: &[JobFile], wanted: &[String]) -> Result<(), Error> {
    let names: Vec<&String> = files.iter().flat_map(|file| &file.parsed.sections).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        let known: Vec<&str> = names.into_iter().map(String::as_str).sorted().dedup().collect();
        return Err(Error::Usage(format!(
            "--section {unknown:?}: no such job; the jobs are {}",
            some_of(&known, 10)
        )));
    }
    Ok(())
}

/// Numbers the groups across all files, starting at 0. The jobs of a file begin when the previous
/// file's jobs have finished.
fn number_groups(files: &mut [JobFile]) {
    let mut next = 0;
    for file in files {
        file.parsed.jobs.iter_mut().for_each(|job| job.group += next);
        next = file.parsed.jobs.last().map_or(next, |job| job.group + 1);
    }
}

fn put_into(directory: &Path, jobs: &mut [JobSpec]) {
    for file in jobs.iter_mut().flat_map(|job| &mut job.files.paths) {
        // An absolute path remains unchanged.
        *file = directory.join(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::samples::reports::spec;
    use std::path::PathBuf;

    fn file(jobs: &[(&str, u32)]) -> JobFile {
        let job = |(name, group): &(&str, u32)| {
            spec(name, "write", 4096, 1 << 20).with(|job| job.group = *group)
        };
        let parsed = fio::Parsed { jobs: jobs.iter().map(job).collect(), ..Default::default() };
        JobFile { parsed, ..JobFile::default() }
    }

    fn groups(files: &[JobFile]) -> Vec<u32> {
        files.iter().flat_map(|file| &file.parsed.jobs).map(|job| job.group).collect()
    }

    #[test]
    fn the_groups_of_a_file_follow_those_of_the_file_before() {
        let mut files =
            [file(&[("a", 0), ("b", 1), ("c", 1)]), file(&[]), file(&[("d", 0), ("e", 1)])];
        number_groups(&mut files);
        assert_eq!(groups(&files), [0, 1, 1, 2, 3]);
        assert_eq!(files.each_ref().map(JobFile::groups), [2, 0, 2]);
    }

    #[test]
    fn a_section_that_no_file_has_is_refused() {
        let file = |sections: &[&str]| {
            let sections = sections.iter().map(|name| (*name).to_owned()).collect();
            let parsed = fio::Parsed { sections, ..Default::default() };
            JobFile { parsed, ..JobFile::default() }
        };
        let files = [file(&["a", "b"]), file(&["c", "a"])];
        assert!(check_sections(&files, &["c".into(), "a".into()]).is_ok());
        let refused = check_sections(&files, &["z".into()]).expect_err("there is none");
        assert_eq!(refused.to_string(), "--section \"z\": no such job; the jobs are a, b, c");
    }

    #[test]
    fn relative_files_lie_where_it_was_said_and_absolute_ones_where_they_are() {
        let mut jobs = file(&[("a", 0)]).parsed.jobs;
        jobs[0].files.paths = vec!["job.0".into(), "/mnt/x".into()];
        put_into(Path::new("/data"), &mut jobs);
        assert_eq!(jobs[0].files.paths, [PathBuf::from("/data/job.0"), PathBuf::from("/mnt/x")]);
    }
}
