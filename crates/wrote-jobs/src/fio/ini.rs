//! A parser that splits a job file into sections, each with a name, and with keys, their lines, and
//! their uninterpreted values.

use super::note::quoted;
use super::{Notes, ParseError, Surroundings};

#[derive(Debug)]
pub(super) struct Section {
    /// The line of the section's header; `None` on a command line.
    pub line: Option<usize>,
    pub name: String,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The line of the key; `None` for an override, and on a command line.
    pub line: Option<usize>,
    pub key: String,
    /// The value; `None` for a bare key.
    pub value: Option<String>,
}

impl Section {
    pub fn is_global(&self) -> bool {
        self.name == GLOBAL
    }
}

const GLOBAL: &str = "global";

/// Splits a job file into sections. Lines with errors are left out and reported in `errors`. As in
/// fio, `;` or `#` begins a comment anywhere in a line. Lines end with LF or CR LF, and a byte
/// order mark is ignored.
pub(super) fn sections(
    text: &str,
    surroundings: &Surroundings<'_>,
    notes: &mut Notes,
    errors: &mut Vec<ParseError>,
) -> Vec<Section> {
    let mut sections = Vec::new();
    add_sections(text, surroundings, notes, errors, &mut sections, &mut Vec::new());
    sections
}

/// The maximum depth of nested includes, as in fio.
const INCLUDES_MAX: usize = 16;

/// Adds the sections of a text to `sections`; `above` lists the files that include the text.
fn add_sections(
    text: &str,
    surroundings: &Surroundings<'_>,
    notes: &mut Notes,
    errors: &mut Vec<ParseError>,
    sections: &mut Vec<Section>,
    above: &mut Vec<String>,
) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        if raw.contains('\0') {
            let problem = "has a zero byte, so it is not a job file";
            *errors = vec![ParseError::new(Some(number), problem)];
            return sections.clear();
        }
        let line = without_comment(raw, number, notes).trim();
        let taken = match sections.last_mut() {
            _ if line.is_empty() => Ok(()),
            _ if line.starts_with('[') => {
                let found = name(line);
                // The keys of a section with a wrong name are checked, too.
                let name = found.clone().unwrap_or_default();
                sections.push(Section { line: Some(number), name, entries: Vec::new() });
                found.map(drop)
            }
            _ if line == "include" || line.starts_with("include ") => {
                let file = line["include".len()..].trim().to_owned();
                let found = match &*file {
                    "" => Err("names no file".into()),
                    _ if above.contains(&file) => Err("includes itself".into()),
                    _ if above.len() == INCLUDES_MAX => Err("is nested too deeply".into()),
                    _ => (surroundings.include)(&file),
                };
                let included = found.map(|text| {
                    above.push(file);
                    add_sections(&text, surroundings, notes, errors, sections, above);
                    above.pop();
                });
                included.map_err(|problem| format!("{}: {problem}", quoted(line, None)))
            }
            None => Err(format!(
                "{}: stands before the first section; a job begins with its name: [job]",
                quoted(line, None)
            )),
            Some(section) => {
                entry(line, number, surroundings).map(|entry| section.entries.push(entry))
            }
        };
        errors.extend(taken.err().map(|problem| ParseError::new(Some(number), problem)));
    }
}

/// Builds sections from the options of a command line. Options before the first `name` apply to all
/// jobs, and each `name` begins a job.
pub(super) fn of_options(options: &[(String, Option<String>)]) -> Result<Vec<Section>, ParseError> {
    let section = |name: &str| Section { line: None, name: name.to_owned(), entries: Vec::new() };
    let mut sections = vec![section(GLOBAL)];
    for (key, value) in options {
        if key == "name" {
            let Some(name) = value.as_deref().filter(|name| !name.is_empty()) else {
                return Err(ParseError::new(None, "name: has no value"));
            };
            sections.push(section(name));
        }
        let entry = Entry { line: None, key: key.clone(), value: value.clone() };
        sections.last_mut().expect("the first is there").entries.push(entry);
    }
    Ok(sections)
}

/// Removes the comment from a line, and adds a note if the comment begins within a word, as in
/// `filename=a#b`.
fn without_comment<'a>(line: &'a str, number: usize, notes: &mut Notes) -> &'a str {
    let Some(start) = line.find([';', '#']) else { return line };
    let kept = &line[..start];
    if kept.ends_with(|c: char| !c.is_whitespace()) && !kept.ends_with(']') {
        let comment = &line[start..];
        notes.add(Some(number), format!("{}: is a comment, as in fio", quoted(comment, None)));
    }
    kept
}

fn name(line: &str) -> Result<String, String> {
    let told = quoted(line, None);
    let Some(name) = line[1..].strip_suffix(']') else {
        return Err(format!("{told}: a section's line ends with ], and nothing may follow it"));
    };
    if name.trim().is_empty() {
        return Err(format!("{told}: the section has no name"));
    }
    // fio treats every name that begins with `global` as [global], but `[Global]` as a job.
    let begins = name.get(..GLOBAL.len()).is_some_and(|start| start.eq_ignore_ascii_case(GLOBAL));
    if name != GLOBAL && begins {
        return Err(format!("{told}: write [global], or name the job otherwise"));
    }
    Ok(name.to_string())
}

fn entry(line: &str, number: usize, surroundings: &Surroundings<'_>) -> Result<Entry, String> {
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (line, None),
    };
    let wrong = |problem: String| format!("{}: {problem}", quoted(key, value));
    if key.is_empty() {
        return Err(wrong("there is no key before the =".into()));
    }
    let value = match value {
        Some(value) => Some(substitute(value, surroundings).map_err(wrong)?),
        None => None,
    };
    Ok(Entry { line: Some(number), key: key.to_string(), value })
}

/// Replaces the variables in `value`. An unset variable is an error. fio would treat it as empty,
/// which turns `filename=${DISK}/file` into `/file`.
fn substitute(value: &str, surroundings: &Surroundings<'_>) -> Result<String, String> {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        result.push_str(&facts(before, surroundings));
        let Some(end) = from.find('}') else {
            return Err("the } of ${ is missing".into());
        };
        let name = &from[2..end];
        match (surroundings.environment)(name) {
            Some(found) => result.push_str(&found),
            None if surroundings.as_fio => {}
            None => return Err(format!("the environment variable {name} is not set")),
        }
        rest = &from[end + 1..];
    }
    result.push_str(&facts(rest, surroundings));
    Ok(result)
}

fn facts(text: &str, surroundings: &Surroundings<'_>) -> String {
    if !text.contains('$') {
        return text.to_string();
    }
    text.replace("$pagesize", &surroundings.page_bytes.to_string())
        .replace("$mb_memory", &surroundings.memory_mib.to_string())
        .replace("$ncpus", &surroundings.cpus.to_string())
}
