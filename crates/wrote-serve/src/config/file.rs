//! The configuration file: TOML with `[logs.NAME]`, `[limits]`, `[tls]` and `[access]`.
//!
//! The table of keys (`keys`) reads the values. This module knows the TOML tables, and finds the
//! line of each fault. Faults that only the whole configuration reveals name their log or listener
//! instead of a line.

use super::keys::{Key, Target, Written};
use super::{Config, Listen, LogConfig, settings};
use crate::{Error, files};
use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Value<'t> = Spanned<DeValue<'t>>;

/// A file being read, and its faults by line; faults without a line have number 0.
struct File<'t> {
    text: &'t str,
    folder: &'t Path,
    faults: Vec<(usize, String)>,
}

/// Reads and checks a configuration. The error has one line per fault.
pub(super) fn read(path: &Path) -> Result<Config, Error> {
    let shown = path.display();
    let bytes = files::read(path).map_err(Error::Config)?;
    let text =
        String::from_utf8(bytes).map_err(|error| Error::Config(format!("{shown}: {error}")))?;
    parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(|faults| {
        let told = |(line, fault): &(usize, String)| match line {
            0 => format!("{shown}: {fault}"),
            line => format!("{shown}: line {line}: {fault}"),
        };
        settings::error(faults.iter().map(told).collect())
    })
}

fn parse(text: &str, folder: &Path) -> Result<Config, Vec<(usize, String)>> {
    let mut file = File { text, folder, faults: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        file.add(error.span().map_or(0, |span| span.start), error.message());
    }
    if !file.faults.is_empty() {
        // Further faults would only be consequences of these.
        return Err(file.sorted());
    }
    let mut config = Config::of_logs(Vec::new());
    let mut logs = None;
    for (name, value) in root.into_inner() {
        let (start, name) = (name.span().start, name.into_inner());
        match (&*name, value.get_ref()) {
            ("limits" | "tls" | "access", DeValue::Table(entries)) => {
                let shown = format!("[{name}]");
                for (key, value) in entries.clone() {
                    file.set((&name, &shown), &[], Target::Server(&mut config), key, value);
                }
            }
            ("logs", DeValue::Table(entries)) => logs = Some(entries.clone()),
            ("limits" | "tls" | "access" | "logs", _) => {
                file.add(start, format_args!("{name} in the file: is not a table"));
            }
            _ => {
                let (others, to) =
                    (["logs", "limits", "tls", "access"], Target::Server(&mut config));
                let name = Spanned::new(start..start, name);
                file.set(("file", "the file"), &others, to, name, value);
            }
        }
    }
    match logs {
        None => file.add(0, "no log: add [logs.NAME] with folder and listen"),
        Some(logs) => config.logs = logs.into_iter().filter_map(|log| file.log(log)).collect(),
    }
    let faults = settings::load(&config).err().unwrap_or_default();
    file.faults.extend(faults.into_iter().map(|fault| (0, fault)));
    if file.faults.is_empty() { Ok(config) } else { Err(file.sorted()) }
}

impl<'t> File<'t> {
    /// Adds a fault at a byte offset.
    fn add(&mut self, offset: usize, fault: impl Display) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        // The parser's messages may span several lines.
        let words: Vec<_> = fault.to_string().split_whitespace().map(str::to_owned).collect();
        self.faults.push((line, words.join(" ")));
    }

    fn sorted(mut self) -> Vec<(usize, String)> {
        self.faults.sort();
        self.faults.dedup();
        self.faults
    }

    /// Sets a key of a section, which messages call `shown`. `others` are the section's other
    /// names.
    fn set(
        &mut self,
        (section, shown): (&str, &str),
        others: &[&'static str],
        target: Target<'_>,
        name: Spanned<Cow<'t, str>>,
        value: Value<'t>,
    ) {
        let (start, at, name) = (name.span().start, value.span().start, name.get_ref());
        match Key::find(section, name, others) {
            Ok(key) => {
                if let Err(fault) = key.set(target, written(value.into_inner()), self.folder) {
                    self.add(at, format_args!("{name} in {shown}: {fault}"));
                }
            }
            Err(hint) => self.add(start, format_args!("unknown key '{name}' in {shown}; {hint}")),
        }
    }

    fn log(&mut self, (name, value): (Spanned<Cow<'t, str>>, Value<'t>)) -> Option<LogConfig> {
        let (start, name) = (name.span().start, name.into_inner().into_owned());
        let shown = format!("[logs.{name}]");
        let DeValue::Table(mut entries) = value.into_inner() else {
            self.add(start, format_args!("{name} in [logs]: is not a table"));
            return None;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            self.add(start, format_args!("'{name}': a log's name may have letters, digits, - _ ."));
        }
        for key in ["folder", "listen"] {
            if !entries.contains_key(key) {
                self.add(start, format_args!("{shown} has no {key}"));
            }
        }
        let listeners = entries.remove("listen").map(|listeners| self.listeners(&shown, listeners));
        let mut log = LogConfig::new(name, Path::new(""), listeners.unwrap_or_default());
        for (key, value) in entries {
            self.set(("log", &shown), &["listen"], Target::Log(&mut log), key, value);
        }
        Some(log)
    }

    fn listeners(&mut self, shown: &str, listeners: Value<'t>) -> Vec<Listen> {
        let at = listeners.span().start;
        let DeValue::Array(urls) = listeners.into_inner() else {
            let example = "is a list: listen = [\"tcp://127.0.0.1:5140\"]";
            self.add(at, format_args!("listen in {shown}: {example}"));
            return Vec::new();
        };
        let mut listen = |url: Value<'t>| {
            let parsed = match url.get_ref() {
                DeValue::String(text) => text.parse(),
                _ => Err("a listener is a URL in quotes".to_owned()),
            };
            parsed.map_err(|fault| self.add(url.span().start, fault)).ok()
        };
        urls.into_iter().filter_map(&mut listen).collect()
    }
}

fn written(value: DeValue<'_>) -> Written<'_> {
    match value {
        DeValue::String(text) => Written::Word(text),
        DeValue::Boolean(is_on) => Written::Switch(is_on),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map_or(Written::Other, Written::Number),
        _ => Written::Other,
    }
}
