//! The parts that the articles of all documents share: the document itself, commands, facts.

use super::page::{Article, Saved};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use wrote_result::shell::quoted;
use wrote_result::units;

/// Begins an article: with the document inside, and the command that made it.
pub fn article<'a>(document: &impl Serialize, name: &str, command: &[String]) -> Article<'a> {
    Article { command: quoted(command), saved: saved(document, name), ..Article::default() }
}

/// Returns the document as a file that a browser saves, also without a script.
fn saved(document: &impl Serialize, name: &str) -> Option<Saved> {
    let bytes = serde_json::to_vec(document).ok()?;
    Some(Saved {
        name: file_name(name),
        size: units::bytes(bytes.len() as u64),
        address: format!("data:application/json;base64,{}", STANDARD.encode(&bytes)),
    })
}

/// Returns the name of a JSON file, from a name that may be a path or none.
fn file_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let plain: String =
        last.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    let stem = plain.strip_suffix(".json").unwrap_or(&plain).trim_matches(['-', '.']);
    format!("{}.json", if stem.is_empty() { "result" } else { stem })
}

/// Returns a time of RFC 3339 for people: `2026-03-21 09:30 UTC`.
pub fn moment(started_at: &str) -> String {
    match (started_at.get(..10), started_at.get(11..16)) {
        (Some(date), Some(time)) if started_at.ends_with('Z') => format!("{date} {time} UTC"),
        _ => started_at.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_file_has_a_plain_name() {
        assert_eq!(file_name("/data/a b.json"), "a-b.json");
        assert_eq!(file_name("disk.json"), "disk.json");
        assert_eq!(file_name("../.."), "result.json");
        assert_eq!(file_name("-"), "result.json");
        assert_eq!(file_name("<b>.txt"), "b-.txt.json");
    }

    #[test]
    fn a_moment_is_to_the_minute() {
        assert_eq!(moment("2026-03-21T09:30:00Z"), "2026-03-21 09:30 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }
}
