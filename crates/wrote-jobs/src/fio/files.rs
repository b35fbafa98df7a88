//! The files of a job, which either the job names or fio's rules name.

use super::draft::Draft;
use super::value::Value;
use crate::spec::NRFILES_MAX;
use std::path::PathBuf;

/// fio's default format of a file name (fio(1), `filename_format`).
const FORMAT: &str = "$jobname.$jobnum.$filenum";

/// Parses `filename` and `directory`: a list of names separated by `:`. In a name, `\:` means `:`.
pub(super) fn list(value: &Value<'_>) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = value.text()?.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.next_if_eq(&':').is_some() => {
                names.last_mut().expect("there is one").push(':');
            }
            ':' => names.push(String::new()),
            c => names.last_mut().expect("there is one").push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return Err("names nothing".into());
    }
    Ok(names)
}

/// Parses `filename`. Accepts only files that can be reopened, and that can be read and written at
/// any offset.
pub(super) fn filenames(value: &Value<'_>) -> Result<Vec<String>, String> {
    const STREAMS: [&str; 4] = ["-", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
    const DESCRIPTORS: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];
    let names = list(value)?;
    let stream = |name: &&String| {
        STREAMS.contains(&name.as_str()) || DESCRIPTORS.iter().any(|start| name.starts_with(start))
    };
    if let Some(name) = names.iter().find(stream) {
        return Err(format!("{name} is a stream, which has no offsets; name a file"));
    }
    if names.len() > NRFILES_MAX as usize {
        return Err(format!("are more than {NRFILES_MAX} files"));
    }
    Ok(names)
}

pub(super) fn format(value: &Value<'_>) -> Result<String, String> {
    let format = value.text()?;
    if format.contains("$clientuid") {
        return Err("$clientuid is for fio's clients and servers: not supported".into());
    }
    Ok(format.to_string())
}

/// Returns the number of files that each clone uses. `nrfiles` applies only if the job names no
/// files.
pub(super) fn count(draft: &Draft) -> usize {
    match draft.filenames.len() {
        0 => draft.nrfiles as usize,
        named => named,
    }
}

pub(super) fn directory(draft: &Draft, clone: u32) -> Option<&String> {
    let turn = clone as usize % draft.directories.len().max(1);
    draft.directories.get(if draft.filenames.is_empty() { turn } else { 0 })
}

/// Returns the files of a clone, in order. As in fio, clones with generated names take the
/// directories in turn, named files are all in the first directory, and even a name that begins
/// with `/` is relative to its directory.
pub(super) fn paths(draft: &Draft, clone: u32) -> Vec<PathBuf> {
    let directory = directory(draft, clone);
    if !draft.filenames.is_empty() {
        return draft.filenames.iter().map(|name| within(directory, name)).collect();
    }
    let format = draft.filename_format.as_deref().unwrap_or(FORMAT);
    let path = |number| within(directory, &named(format, &draft.section, clone, number));
    (0..draft.nrfiles).map(path).collect()
}

fn within(directory: Option<&String>, name: &str) -> PathBuf {
    match directory {
        None => PathBuf::from(name),
        // With `join`, a name that begins with `/` would replace the directory.
        Some(directory) => PathBuf::from(format!("{}/{}", directory.trim_end_matches('/'), name)),
    }
}

/// Replaces all variables in one pass, so that a job called `$filenum` keeps its name.
fn named(format: &str, job: &str, clone: u32, number: u32) -> String {
    let (clone, number) = (clone.to_string(), number.to_string());
    let words = [("$jobname", job), ("$jobnum", clone.as_str()), ("$filenum", number.as_str())];
    let mut name = String::new();
    let mut rest = format;
    while let Some(start) = rest.find('$') {
        name.push_str(&rest[..start]);
        rest = &rest[start..];
        let word = words.iter().find(|(word, _)| rest.starts_with(word));
        let (taken, meant) = word.copied().unwrap_or(("$", "$"));
        name.push_str(meant);
        rest = &rest[taken.len()..];
    }
    name + rest
}
