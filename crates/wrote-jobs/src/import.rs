//! Import of other tools' results: fio's JSON.

mod fio;
mod rows;
#[cfg(test)]
mod tests;

use serde_json::Value;
use wrote_result::Error;
use wrote_result::compare;
use wrote_result::document::{Document, SCHEMA, complete};

/// Reads a result, either ours or fio's JSON (`--output-format=json`). Adds findings on costs that
/// fio's numbers omit. Errors refer to the file as `name`.
///
/// Ignores keys that this version does not know, because a later version may have added them. Also
/// ignores fio's messages before its JSON. If there are several fio documents, reads the last one.
///
/// # Errors
///
/// [`Error::Usage`] if the text is neither kind of result. The message is one line, and names the
/// expected formats.
pub fn read(name: &str, text: &str) -> Result<Document, Error> {
    let document = serde_json::from_str::<Document>(text).ok();
    let whole = document.filter(|document| document.schema == SCHEMA);
    let mut document = whole.map_or_else(|| other(name, text), Ok)?;
    complete(&mut document);
    Ok(document)
}

/// Reads a result of another version, or of another tool.
fn other(name: &str, text: &str) -> Result<Document, Error> {
    let value = json(name, text)?;
    match value.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => serde_json::from_value(value)
            .map_err(|error| refused(name, &format!("is not a whole {SCHEMA}: {error}"))),
        Some(compare::SCHEMA) => {
            Err(refused(name, "is a comparison, not a result; compare the two results themselves"))
        }
        Some(other) => {
            let (other, version) = (plain(other), env!("CARGO_PKG_VERSION"));
            let what = format!("has schema {other}; wrote {version} reads {SCHEMA} and fio's JSON");
            Err(refused(name, &what))
        }
        None if value.get("fio version").is_some() => fio::document(name, value),
        None => Err(neither(name)),
    }
}

fn json(name: &str, text: &str) -> Result<Value, Error> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(refused(name, "is empty"));
    }
    let read = "make it with wrote --json, or fio --output-format=json";
    serde_json::from_str(text).or_else(|error| {
        // fio prints warnings into its output file (axboe/fio#731).
        let not_json = || refused(name, &format!("is not JSON ({error}); {read}"));
        last_of_fio(text).ok_or_else(not_json)
    })
}

/// Returns the last of fio's documents, which may follow other lines; `None` if there is none. With
/// `--status-interval`, fio prints a document at each interval, and the whole result at the end.
fn last_of_fio(text: &str) -> Option<Value> {
    let is_first = text.trim_start().starts_with('{');
    let begin = if is_first { 0 } else { text.find("\n{")? };
    let values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    // If fio was killed, the last document is incomplete.
    let last = values.map_while(Result::ok).last()?;
    last.get("fio version").is_some().then_some(last)
}

fn neither(name: &str) -> Error {
    refused(name, "is neither a result of wrote (--json) nor of fio (--output-format=json)")
}

fn refused(name: &str, what: &str) -> Error {
    Error::Usage(format!("{name}: {what}"))
}

/// Returns the first 60 characters of a text, with each control character replaced by a space.
fn plain(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
