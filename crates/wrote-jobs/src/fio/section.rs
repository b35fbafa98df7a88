//! The application of a section's lines to a draft.

use super::draft::Draft;
use super::ini::Entry;
use super::note::quoted;
use super::value::Value;
use super::{Notes, ParseError, keys};

/// Applies the entries of a section to `draft`; the last line of a key counts. `kb_base` comes
/// first, since it gives the others their meaning.
pub(super) fn apply(
    draft: &mut Draft,
    entries: &[Entry],
    notes: &mut Notes,
) -> Result<(), ParseError> {
    let kb_base = |entry: &&Entry| entry.key == "kb_base";
    let (first, rest): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(kb_base);
    draft.begin_section();
    for entry in first.into_iter().chain(rest) {
        apply_entry(draft, entry, notes).map_err(|problem| {
            let quoted = quoted(&entry.key, entry.value.as_deref());
            ParseError::new(entry.line, format!("{quoted}: {problem}"))
        })?;
    }
    Ok(())
}

fn apply_entry(draft: &mut Draft, entry: &Entry, notes: &mut Notes) -> Result<(), String> {
    let key = keys::find(&entry.key)?;
    let (text, line, kb_base) = (entry.value.as_deref(), entry.line, draft.kb_base);
    key.take(draft, &mut Value { text, line, kb_base, notes })?;
    draft.record(key.name, entry);
    Ok(())
}
