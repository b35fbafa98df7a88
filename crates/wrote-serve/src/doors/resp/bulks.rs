//! Bulk strings of text answers.

/// Encodes bytes as a bulk string, replacing invalid UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(bytes);
    format!("${}\r\n{shown}\r\n", shown.len())
}

/// Returns the ID of a record; `0-0`, which precedes the first, for `None`.
pub(super) fn id_text(sequence: Option<u64>) -> String {
    let id = sequence.map_or("0-0".to_owned(), |sequence| format!("{sequence}-1"));
    text(id.as_bytes())
}
