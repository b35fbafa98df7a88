//! Validates manifest values while parsing, so that errors refer to their line.

use super::{Variant, is_id};
use crate::langs::workload::Task;
use itertools::Itertools;
use serde::de::{Deserialize, Deserializer, Error};
use std::path::Path;

const PLACEHOLDERS: [&str; 3] = ["source", "build", "wrote"];

/// Accepts one line that is not blank.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("must not be empty"));
    }
    if text.contains(char::is_control) {
        return Err(D::Error::custom("must be one line, without control characters"));
    }
    Ok(text)
}

/// Accepts a list that is not empty.
pub(super) fn some<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let values = Vec::deserialize(from)?;
    if values.is_empty() { Err(D::Error::custom("must not be empty")) } else { Ok(values) }
}

pub(super) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let id = String::deserialize(from)?;
    if is_id(&id) {
        return Ok(id);
    }
    Err(D::Error::custom("must be of small letters, digits and hyphens: my-language"))
}

pub(super) fn variants<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Variant>, D::Error> {
    let variants: Vec<Variant> = Vec::deserialize(from)?;
    match variants.iter().map(|variant| &variant.id).duplicates().next() {
        Some(id) => Err(D::Error::custom(format!("two variants have the id {id:?}"))),
        None => Ok(variants),
    }
}

pub(super) fn tasks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let tasks: Vec<String> = Vec::deserialize(from)?;
    let known = Task::ALL.map(Task::as_str);
    match tasks.iter().find(|task| !known.contains(&task.as_str())) {
        None => Ok(tasks),
        Some(task) => {
            let known = known.join(", ");
            Err(D::Error::custom(format!("{task:?} is not a task: there are {known}")))
        }
    }
}

/// Accepts a command that uses neither build nor source.
pub(super) fn version_command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let words = run_command(from)?;
    for early in ["{source}", "{build}"] {
        if words.iter().any(|word| word.contains(early)) {
            let because = format!("there is no {early} yet when the version is asked for");
            return Err(D::Error::custom(because));
        }
    }
    Ok(words)
}

pub(super) fn build_command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    check_command(Vec::deserialize(from)?)
}

pub(super) fn run_command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    check_command(some(from)?)
}

pub(super) fn programs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = Vec::deserialize(from)?;
    for name in &names {
        check_program(name)?;
    }
    Ok(names)
}

fn check_command<E: Error>(words: Vec<String>) -> Result<Vec<String>, E> {
    if let Some(program) = words.first() {
        check_program(program)?;
    }
    let mut names = words.iter().flat_map(|word| placeholders(word));
    let unknown = names.find(|name| !PLACEHOLDERS.contains(name)).map(|name| {
        format!("there is no {{{name}}}; there are {{source}}, {{build}} and {{wrote}}")
    });
    drop(names);
    unknown.map_or(Ok(words), |because| Err(E::custom(because)))
}

/// Refuses a path relative to an unknown working folder.
fn check_program<E: Error>(name: &str) -> Result<(), E> {
    let begins = |folder: &str| name.starts_with(&format!("{{{folder}}}"));
    let is_found = !name.is_empty() && !name.contains('/');
    if is_found || Path::new(name).is_absolute() || PLACEHOLDERS.iter().any(|folder| begins(folder))
    {
        return Ok(());
    }
    Err(E::custom(format!(
        "{name:?} is not a program: give a name, an absolute path, or one below {{source}} or \
         {{build}}"
    )))
}

/// Returns the names in braces: `source` of `{source}/main.go`. Other braces (`{}`, `{ print }`)
/// are ignored.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    let is_name =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    word.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name)
        .filter(is_name)
}
