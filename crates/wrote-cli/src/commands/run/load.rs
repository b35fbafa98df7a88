//! Reads the named job files, and selects the jobs to run.

use crate::args::{RunArgs, of_rank};
use crate::stdio;
use itertools::Itertools;
use std::path::Path;
use wrote_jobs::machine::host;
use wrote_jobs::peers::Peers;
use wrote_jobs::spec::JobSpec;
use wrote_jobs::{data, fio};
use wrote_result::units::some_of;
use wrote_result::{Error, Stop};

const JOB_FILE: stdio::Kind = stdio::Kind { name: "job file", bytes_max: 16 << 20 };

#[derive(Debug, Default)]
pub(super) struct JobFile {
    /// Its name, without its folder.
    pub name: String,
    /// Its content. The groups of its jobs follow the previous file's.
    pub parsed: fio::Parsed,
}

impl JobFile {
    pub(super) fn groups(&self) -> usize {
        self.parsed.jobs.iter().map(|job| job.group).unique().count()
    }
}

/// Reads and parses all files, and keeps the jobs asked for.
pub(super) fn files(arguments: &RunArgs, peers: Peers, stop: &Stop) -> Result<Vec<JobFile>, Error> {
    let options = options(arguments);
    if let Some((_, name)) =
        options.iter().find(|(key, _)| key == "name" && !arguments.jobs.is_empty())
    {
        let name = name.as_deref().unwrap_or_default();
        let because = "jobs come from files, or from the command line: run one after the other";
        return Err(Error::Usage(format!("--name={name}: {because}")));
    }
    let read = |path: &std::path::PathBuf| {
        let name = shown_name(path);
        let refused = |error: &str| Error::Usage(format!("{name}: {error}"));
        let bytes = stdio::read_file(path, &name, JOB_FILE, stop)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| refused("is not text: it has bytes that are not UTF-8"))?;
        let parsed =
            parsed(&options, &arguments.section, |surroundings| fio::parse(&text, surroundings));
        let parsed = parsed.map_err(|error| refused(&error))?;
        Ok(JobFile { name, parsed })
    };
    let mut files: Vec<JobFile> = arguments.jobs.iter().map(read).collect::<Result<_, Error>>()?;
    if files.is_empty() {
        let parsed = parsed(&[], &arguments.section, |surroundings| {
            fio::parse_options(&options, surroundings)
        });
        let parsed = parsed.map_err(Error::Usage)?;
        files.push(JobFile { name: "the command line".into(), parsed });
    }
    check_sections(&files, &arguments.section)?;
    number_groups(&mut files);
    if let Some(directory) = &arguments.directory {
        let directory = of_rank(directory, peers);
        files.iter_mut().for_each(|file| put_into(&directory, &mut file.parsed.jobs));
    }
    Ok(files)
}

/// Parses the jobs in a text made by the program itself.
pub(crate) fn parse(text: &str) -> Result<Vec<JobSpec>, Error> {
    let parsed = parsed(&[], &[], |surroundings| fio::parse(text, surroundings));
    parsed.map(|parsed| parsed.jobs).map_err(Error::Failed)
}

/// The options of jobs on the command line, keys with their values.
fn options(arguments: &RunArgs) -> Vec<(String, Option<String>)> {
    let option = |text: &String| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.clone(), None),
    };
    arguments.options.iter().map(option).collect()
}

/// Returns the jobs that `parse` finds, or a line with the fault: `line 7: ..`. `overrides` apply
/// to each of them; only the wanted sections are taken.
fn parsed(
    overrides: &[(String, Option<String>)],
    sections: &[String],
    parse: impl FnOnce(&fio::Surroundings) -> Result<fio::Parsed, fio::ParseError>,
) -> Result<fio::Parsed, String> {
    let surroundings = fio::Surroundings {
        environment: &|name| std::env::var(name).ok(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        page_bytes: rustix::param::page_size() as u32,
        memory_mib: host::memory_bytes() >> 20,
        seed: data::seed(),
        overrides,
        sections,
    };
    parse(&surroundings).map_err(|error| error.to_string())
}

fn shown_name(path: &Path) -> String {
    match path.file_name() {
        _ if stdio::is_stdin(path) => "standard input".into(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    }
}

/// Refuses the name of a section that no file has.
fn check_sections(files: &[JobFile], wanted: &[String]) -> Result<(), Error> {
    let names: Vec<&String> = files.iter().flat_map(|file| &file.parsed.sections).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        let known: Vec<&str> = names.into_iter().map(String::as_str).sorted().dedup().collect();
        return Err(Error::Usage(format!(
            "--section {unknown:?}: there is no such job; there is {}",
            some_of(&known, 10)
        )));
    }
    Ok(())
}

/// Numbers the groups from 0 through all files, without gaps: the jobs of a file begin when the
/// previous file's have ended.
fn number_groups(files: &mut [JobFile]) {
    let mut next = 0;
    for file in files {
        let mut last = None;
        for job in &mut file.parsed.jobs {
            if last.is_some_and(|last| last != job.group) {
                next += 1;
            }
            last = Some(job.group);
            job.group = next;
        }
        next += u32::from(last.is_some());
    }
}

fn put_into(directory: &Path, jobs: &mut [JobSpec]) {
    for file in jobs.iter_mut().flat_map(|job| &mut job.files.paths) {
        // An absolute path stays as it is.
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
        assert_eq!(refused.to_string(), "--section \"z\": there is no such job; there is a, b, c");
    }

    #[test]
    fn relative_files_lie_where_it_was_said_and_absolute_ones_where_they_are() {
        let mut jobs = file(&[("a", 0)]).parsed.jobs;
        jobs[0].files.paths = vec!["job.0".into(), "/mnt/x".into()];
        put_into(Path::new("/data"), &mut jobs);
        assert_eq!(jobs[0].files.paths, [PathBuf::from("/data/job.0"), PathBuf::from("/mnt/x")]);
    }
}
