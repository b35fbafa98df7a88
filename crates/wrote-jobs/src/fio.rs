//! fio's job files: from text to jobs that can be run, or to one line that says what is wrong.
//!
//! `docs/fio.md` lists every key that is taken, and what differs from fio and why. Where its manual
//! and the program differ, fio 3.33 itself is followed: `tests/fio.rs` holds the two against each
//! other.

mod block;
mod draft;
mod engine;
mod files;
mod group;
mod ini;
mod job;
mod keys;
mod names;
mod note;
#[cfg(test)]
mod tests;
mod value;
mod variable;

pub use note::{Note, ParseError};

use crate::spec::JobSpec;
use draft::Draft;
use group::Groups;
use ini::Entry;
use note::Notes;

/// What a job file is read with, beside its text.
pub struct Surroundings<'a> {
    /// The value of an environment variable (`${NAME}`), or `None` where it is not set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// `$ncpus`: CPUs online.
    pub cpus: u32,
    /// `$pagesize`: bytes of a page of memory.
    pub page_bytes: u32,
    /// `$mb_memory`: the machine's memory in units of 2^20 bytes.
    pub memory_mib: u64,
    /// The seed of jobs that are to be different each time (`randrepeat=0`).
    pub seed: u64,
    /// Keys and values that come after each job's own, as `--runtime=10` on fio's command line does
    /// for all jobs; no value is a bare key.
    pub overrides: &'a [(String, Option<String>)],
}

/// A job file that was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The jobs, in the file's order, `numjobs` of each. There is at least one.
    pub jobs: Vec<JobSpec>,
    /// What is done otherwise than the file says, or than fio would.
    pub notes: Vec<Note>,
    /// The keys and values of all `[global]` sections under their usual names, for reports.
    pub global: Vec<(String, String)>,
}

impl Parsed {
    /// How many groups the jobs are in.
    pub fn groups(&self) -> u32 {
        self.jobs.iter().map(|job| job.group + 1).max().unwrap_or(0)
    }
}

/// Lets the groups of several files follow one another: the jobs of a file begin when those of the
/// file before it have ended (fio(1), "JOB FILE FORMAT").
pub fn renumber(files: &mut [Parsed]) {
    let mut first = 0;
    for file in files {
        let groups = file.groups();
        for job in &mut file.jobs {
            job.group += first;
        }
        first += groups;
    }
}

/// The jobs of a job file.
///
/// Nothing is read but `text` and `surroundings`: whether a file or a folder exists is not looked at.
///
/// # Errors
///
/// The first thing that is wrong, in one line with its number; the caller adds the file's name.
pub fn parse(text: &str, surroundings: &Surroundings<'_>) -> Result<Parsed, ParseError> {
    let mut notes = Notes::default();
    let sections = ini::sections(text, surroundings, &mut notes)?;
    let overrides = overrides(surroundings);
    let mut globals = Draft::default();
    let mut groups = Groups::default();
    let mut jobs = Vec::new();
    for section in &sections {
        if section.is_global() {
            globals.take(&section.entries, &mut notes)?;
            continue;
        }
        let mut draft = globals.of_job(section);
        draft.take(&section.entries, &mut notes)?;
        draft.take(&overrides, &mut notes)?;
        let group = groups.join(&draft);
        job::add(&draft, group, surroundings.seed, &mut jobs, &mut notes)?;
    }
    if jobs.is_empty() {
        return Err(ParseError::whole("there is no job in it; a job begins with its name: [job]"));
    }
    groups.check(&mut notes)?;
    Ok(Parsed { jobs, notes: notes.into_vec(), global: globals.pairs() })
}

/// Bytes, or another whole number, as fio writes it: `4k` is 4096. `None` of what is none.
pub fn bytes(text: &str) -> Option<u64> {
    single(text, &mut Notes::default()).number().ok()
}

/// A time as fio writes it, in seconds where it has no unit. `None` of what is none.
pub fn time(text: &str) -> Option<std::time::Duration> {
    single(text, &mut Notes::default()).time().ok()
}

fn single<'a>(text: &'a str, notes: &'a mut Notes) -> value::Value<'a> {
    value::Value { text: Some(text), line: None, kb_base: value::KbBase::default(), notes }
}

fn overrides(surroundings: &Surroundings<'_>) -> Vec<Entry> {
    let entry = |(key, value): &(String, Option<String>)| Entry {
        line: None,
        key: key.clone(),
        value: value.clone(),
    };
    surroundings.overrides.iter().map(entry).collect()
}
