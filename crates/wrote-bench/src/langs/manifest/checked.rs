//! Validates a manifest's values while it is parsed, so that errors state the lines. The functions
//! are in a separate file because serde calls them by name; without them, the manifest is plain
//! data.

use super::{Variant, is_id};
use crate::langs::workload::Task;
use itertools::Itertools;
use serde::de::{Deserialize, Deserializer, Error};

/// Accepts a single line that is not blank.
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
    Err(D::Error::custom("must be small letters, digits and hyphens, such as my-language"))
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
