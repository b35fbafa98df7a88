//! Programs as data: how each program writes, and what its makers and operators require of a disk.

use crate::names;
use include_dir::{Dir, File, include_dir};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use wrote_jobs::steps::Steps;
use wrote_result::document::{FitRule, Torn};
use wrote_result::{Error, quoted};

/// The embedded folder with a file for each program. To add a program, add its file, and its row in
/// `docs/fit-programs.md`.
static FILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/programs");

/// Returns the text of each program's file, by the program's name.
fn files() -> BTreeMap<&'static str, &'static str> {
    let named =
        |file: &'static File| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?));
    FILES.files().filter_map(named).collect()
}

/// A program, with its write patterns and the rules for its disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program's name on the command line: lower-case letters, digits and hyphens.
    pub name: String,
    /// The version that the patterns are based on.
    pub version: String,
    /// A short description.
    pub about: String,
    /// The client program, if rates include its CPU time.
    pub client: Option<String>,
    /// The patterns in which the program writes.
    #[serde(rename = "pattern")]
    pub patterns: Vec<Pattern>,
    /// The rules for the program's disk.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// The text of the program's file.
    #[serde(skip)]
    pub text: String,
}

/// One of a program's write patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The pattern's name in rows: lower-case letters, digits and hyphens.
    pub name: String,
    /// The pattern's name in tables: `WAL commit`.
    pub label: String,
    /// The sources of the parts of the pattern: files and functions of the program, or traces.
    pub source: Vec<String>,
    /// Whether a power loss may tear a page. Only for patterns that write pages.
    pub torn: Option<Torn>,
    /// The system calls of the pattern.
    pub job: Steps,
}

/// A published rule for a disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name of the pattern to judge.
    pub pattern: String,
    /// A short description: `WAL fdatasync P99 < 10 ms`.
    pub name: String,
    /// The figure to judge ([`FitRule::FIGURES`]).
    pub of: String,
    /// The upper limit.
    pub most: Option<f64>,
    /// The lower limit.
    pub least: Option<f64>,
    /// Whether to multiply the limit by the number of CPUs.
    #[serde(default)]
    pub per_cpu: bool,
    /// The publisher of the rule, with a version.
    pub says: String,
    /// The address of the source.
    pub source: String,
    /// `official` if the program's makers publish the rule, or `operator`.
    pub kind: Option<String>,
    /// The month in which the source was read: `2026-11`.
    pub date: Option<String>,
    /// The load that the rule is for, unless it is the normal one: `heavy load`.
    pub load: Option<String>,
}

impl Rule {
    /// Returns the rule, with the limit for this machine's CPUs, for a disk that is yet to be
    /// judged.
    pub(super) fn asked(&self) -> FitRule {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let (times, name) = match self.per_cpu {
            true => (cpus as f64, format!("{} (of {cpus})", self.name)),
            false => (1.0, self.name.clone()),
        };
        FitRule {
            name,
            of: self.of.clone(),
            most: self.most.map(|most| most * times),
            least: self.least.map(|least| least * times),
            says: Some(self.says.clone()),
            source: Some(self.source.clone()),
            kind: self.kind.clone(),
            date: self.date.clone(),
            load: self.load.clone(),
            ..FitRule::default()
        }
    }
}

/// Returns all built-in programs.
pub fn all() -> Vec<Program> {
    let parsed = |(name, text): (&str, &str)| {
        parse(text).unwrap_or_else(|fault| panic!("programs/{name}.toml: {fault}"))
    };
    files().into_iter().map(parsed).collect()
}

/// Returns the program with this name, or reads it from a file if the name contains `/` or ends in
/// `.toml`.
///
/// # Errors
///
/// [`Error::Usage`] with the most similar name, or with the fault in the file.
pub fn find(name: &str) -> Result<Program, Error> {
    let known = files();
    if let Some(text) = known.get(name) {
        return parse(text).map_err(Error::Failed);
    }
    if Path::new(name).is_dir() {
        let instead = quoted(&["wrote", "fit", "etcd", name]);
        let because = "is a folder; name a program before it";
        return Err(Error::Usage(format!("{name}: {because}; did you mean: {instead}")));
    }
    if name.contains('/') || name.ends_with(".toml") {
        return read(Path::new(name));
    }
    let hint = match names::nearest(name, known.into_keys()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "'wrote fit --list' lists what there is".into(),
    };
    Err(Error::Usage(format!("{name:?}: no such program; {hint}")))
}

/// Reads a program from a user's file.
///
/// # Errors
///
/// [`Error::Usage`], which names the file and what is wrong with it.
fn read(path: &Path) -> Result<Program, Error> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
    parse(&text).map_err(|fault| Error::Usage(format!("{shown}: {fault}")))
}

fn parse(text: &str) -> Result<Program, String> {
    let mut program: Program = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let line = line.map_or(String::new(), |line| format!("line {line}: "));
        format!("{line}{}", error.message().replace('\n', " "))
    })?;
    program.text = text.into();
    check(&program)?;
    Ok(program)
}

fn check(program: &Program) -> Result<(), String> {
    let is_plain = |name: &str| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty() && name.bytes().all(allowed)
    };
    let names = program.patterns.iter().map(|pattern| &pattern.name).chain([&program.name]);
    if let Some(name) = names.into_iter().find(|name| !is_plain(name)) {
        return Err(format!("name {name:?}: use lower-case letters, digits and hyphens"));
    }
    if program.patterns.is_empty() {
        return Err("no pattern: add one under [[pattern]]".into());
    }
    for (number, pattern) in program.patterns.iter().enumerate() {
        let name = &pattern.name;
        if program.patterns[..number].iter().any(|other| other.name == *name) {
            return Err(format!("pattern {name:?} appears twice"));
        }
        pattern.job.check().map_err(|fault| format!("pattern {name:?}: {fault}"))?;
    }
    for rule in &program.rules {
        let name = &rule.name;
        let pattern = program.patterns.iter().find(|pattern| pattern.name == rule.pattern);
        let Some(pattern) = pattern else {
            return Err(format!("rule {name:?}: there is no pattern {:?}", rule.pattern));
        };
        if rule.of.starts_with("flush_") && !pattern.job.has_flushes() {
            return Err(format!("rule {name:?}: pattern {:?} never flushes", rule.pattern));
        }
        if !FitRule::FIGURES.contains(&rule.of.as_str()) {
            let known = FitRule::FIGURES.join(", ");
            return Err(format!("rule {name:?}: of = {:?} must be one of {known}", rule.of));
        }
        if rule.most.is_none() == rule.least.is_none() {
            return Err(format!("rule {name:?}: give a limit, most or least"));
        }
    }
    Ok(())
}
