//! A parser of fio's job files. It returns jobs, or all errors of the file, one line each.
//!
//! `docs/fio.md` lists every accepted key, and the differences from fio with their reasons. Where
//! fio's manual and program differ, the parser follows the program, version 3.33. `tests/it/fio.rs`
//! compares the parser with it.

mod draft;
mod files;
mod ini;
mod job;
mod keys;
mod note;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

pub use note::{Note, ParseError};

use crate::spec::JobSpec;
use draft::Draft;
use ini::Entry;
use note::{Notes, quoted};
use std::collections::BTreeMap;
use value::Value;

/// The environment to which a job file can refer.
pub struct Surroundings<'a> {
    /// A function that returns the value of an environment variable (`${NAME}`); `None` if it is
    /// not set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// `$ncpus`: the number of online CPUs.
    pub cpus: u32,
    /// `$pagesize`: the bytes of a memory page.
    pub page_bytes: u32,
    /// `$mb_memory`: the machine's memory in units of 2^20 bytes.
    pub memory_mib: u64,
    /// The seed of jobs that differ in each run (`randrepeat=0`).
    pub seed: u64,
    /// Keys and values that are appended to each job's own, as `--runtime=10` on fio's command line
    /// applies to all jobs. A bare key has no value.
    pub overrides: &'a [(String, Option<String>)],
    /// The sections to parse, as with fio's `--section`; all sections if empty. A job's seed
    /// depends on its position among the parsed jobs.
    pub sections: &'a [String],
    /// A function that returns the text of a file named by `include`.
    pub include: &'a dyn Fn(&str) -> Result<String, String>,
    /// Whether to accept every job that fio accepts, even with contradictory keys, such as
    /// `iodepth=8` with `psync`.
    pub as_fio: bool,
}

/// A parsed job file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The jobs in the order of the file, `numjobs` of each. There is at least one job, unless the
    /// file has none of the requested sections.
    pub jobs: Vec<JobSpec>,
    /// The names of all sections except `[global]`, in order.
    pub sections: Vec<String>,
    /// Differences from what the file says, or from what fio does.
    pub notes: Vec<Note>,
    /// The keys and values of all `[global]` sections, under their canonical names, for reports.
    pub global: Vec<(String, String)>,
}

/// Parses a job file.
///
/// Reads nothing but `text` and `surroundings`, and does not check whether files or folders exist.
///
/// # Errors
///
/// All errors in the text, one line each, with their line numbers. The caller adds the file's name.
pub fn parse(text: &str, surroundings: &Surroundings<'_>) -> Result<Parsed, Vec<ParseError>> {
    let (mut notes, mut errors) = (Notes::default(), Vec::new());
    let sections = ini::sections(text, surroundings, &mut notes, &mut errors);
    let none = "no job in this file; a job begins with its name: [job]";
    some(jobs_of(&sections, surroundings, notes, errors)?, none)
}

/// Parses the options of a command line, which are keys with values: `--name=a --rw=write`.
///
/// # Errors
///
/// All errors in the options, one line each.
pub fn parse_options(
    options: &[(String, Option<String>)],
    surroundings: &Surroundings<'_>,
) -> Result<Parsed, Vec<ParseError>> {
    let sections = ini::of_options(options).map_err(|error| vec![error])?;
    let parsed = jobs_of(&sections, surroundings, Notes::default(), Vec::new())?;
    some(parsed, "no job given; a job begins with its name: put --name=job before its options")
}

fn some(parsed: Parsed, otherwise: &str) -> Result<Parsed, Vec<ParseError>> {
    let none = || Err(vec![ParseError::new(None, otherwise)]);
    if parsed.sections.is_empty() { none() } else { Ok(parsed) }
}

/// Returns whether fio has a key with this name, whether it is accepted here or not.
pub fn is_key(name: &str) -> bool {
    keys::find(name).is_ok() || note::why_not_taken(name).is_some()
}

/// Returns the only key that begins with `start`, as `getopt_long(3)` completes an option; `None`
/// if there is no such key, or more than one.
pub fn completed(start: &str) -> Option<&'static str> {
    let mut keys = keys::all_names().filter(|name| name.starts_with(start));
    keys.next().filter(|_| keys.next().is_none())
}

/// Returns whether an option of fio's command line is accepted without effect.
pub fn has_no_effect(option: &str) -> bool {
    note::TEXTS.without_effect.split_whitespace().any(|known| known == option)
}

/// Returns fio's names of the accepted engines.
pub fn engines() -> impl Iterator<Item = &'static str> {
    draft::ENGINES.iter().map(|(name, _)| *name)
}

/// Returns whether the key may be given without a value, as in `--direct`.
pub fn is_switch(name: &str) -> bool {
    let bare = [(name.to_owned(), None)];
    let mut notes = Notes::default();
    ini::of_options(&bare)
        .is_ok_and(|sections| apply(&mut Draft::new(), &sections[0].entries, &mut notes).is_empty())
}

fn jobs_of(
    sections: &[ini::Section],
    surroundings: &Surroundings<'_>,
    mut notes: Notes,
    mut errors: Vec<ParseError>,
) -> Result<Parsed, Vec<ParseError>> {
    let overrides = overrides(surroundings);
    // A line with an error may have been meant to set what a job lacks. Checking the job would then
    // report a second error with the same cause.
    let mut is_whole = errors.is_empty();
    let mut globals = Draft::new();
    globals.as_fio = surroundings.as_fio;
    // The options of fio's command line are defaults for what the job file omits. Ours override
    // what the file sets.
    let (defaults, overrides) = match surroundings.as_fio {
        true => (overrides, Vec::new()),
        false => (Vec::new(), overrides),
    };
    errors.extend(apply(&mut globals, &defaults, &mut notes));
    let (mut jobs, mut names, mut last_group) = (Vec::new(), Vec::new(), None);
    for section in sections {
        if section.is_global() {
            let wrong = apply(&mut globals, &section.entries, &mut notes);
            is_whole &= wrong.is_empty();
            errors.extend(wrong);
            continue;
        }
        names.push(section.name.clone());
        let wanted = surroundings.sections;
        if !wanted.is_empty() && !wanted.contains(&section.name) {
            continue;
        }
        let mut draft = globals.of_job(section);
        let mut wrong = apply(&mut draft, &section.entries, &mut notes);
        wrong.extend(apply(&mut draft, &overrides, &mut notes));
        // A job that waits for the previous jobs begins a new group.
        let group = last_group.map_or(0, |last: u32| last + u32::from(draft.stonewall));
        last_group = Some(group);
        if is_whole && wrong.is_empty() {
            wrong = job::add(&draft, group, surroundings.seed, &mut jobs, &mut notes);
        }
        errors.extend(wrong);
    }
    if errors.is_empty() {
        return Ok(Parsed {
            jobs,
            sections: names,
            notes: notes.into_vec(),
            global: globals.pairs(),
        });
    }
    errors.sort_by_key(|error| error.line);
    // A wrong override causes the same error in every job.
    errors.dedup();
    Err(errors)
}

/// Parses a number of bytes, or another whole number, in fio's notation: `4k` is 4096. Returns
/// `None` for any other text.
pub fn bytes(text: &str) -> Option<u64> {
    let (notes, kb_base) = (&mut Notes::default(), value::KbBase::default());
    Value { text: Some(text), line: None, kb_base, notes }.number().ok()
}

/// Returns the job that the options in fio's JSON describe: first the global options, then the
/// job's own. Ignores options that are not supported.
pub fn described(sections: [&BTreeMap<String, serde_json::Value>; 2]) -> JobSpec {
    let mut draft = Draft::new();
    draft.as_fio = true;
    for options in sections {
        let entry = |(key, value): (&String, &serde_json::Value)| Entry {
            line: None,
            key: key.clone(),
            value: value.as_str().filter(|value| !value.is_empty()).map(str::to_owned),
        };
        let entries: Vec<Entry> = options.iter().map(entry).collect();
        apply(&mut draft, &entries, &mut Notes::default());
    }
    job::described(&draft)
}

fn overrides(surroundings: &Surroundings<'_>) -> Vec<Entry> {
    let entry = |(key, value): &(String, Option<String>)| Entry {
        line: None,
        key: key.clone(),
        value: value.clone(),
    };
    surroundings.overrides.iter().map(entry).collect()
}

/// Applies the entries of a section to `draft`, and returns their errors. If a key is repeated, its
/// last line applies. `kb_base` is applied first, because the values of the other keys depend on
/// it.
fn apply(draft: &mut Draft, entries: &[Entry], notes: &mut Notes) -> Vec<ParseError> {
    let kb_base = |entry: &&Entry| entry.key == "kb_base";
    let (first, rest): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(kb_base);
    draft.begin_section();
    let wrong = |entry: &Entry| {
        let problem = apply_entry(draft, entry, notes).err()?;
        let quoted = quoted(&entry.key, entry.value.as_deref());
        Some(ParseError::new(entry.line, format!("{quoted}: {problem}")))
    };
    first.into_iter().chain(rest).filter_map(wrong).collect()
}

fn apply_entry(draft: &mut Draft, entry: &Entry, notes: &mut Notes) -> Result<(), String> {
    if draft.as_fio
        && let Some(name) = note::taken_silently(&entry.key)
    {
        draft.record(name, entry);
        return Ok(());
    }
    let (key, name) = keys::find(&entry.key)?;
    let (text, line, kb_base) = (entry.value.as_deref(), entry.line, draft.kb_base);
    let taken = key.take(name, draft, &mut Value { text, line, kb_base, notes });
    draft.record(name, entry);
    taken
}
