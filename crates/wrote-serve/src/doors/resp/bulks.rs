//! Bulk strings of answers that are text.

/// Bytes as RESP has them; of those that are not UTF-8, what can be shown.
pub(super) fn text(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(bytes);
    format!("${}\r\n{shown}\r\n", shown.len())
}

/// The ID of a record; `0-0`, the one before the first, where there is none.
pub(super) fn id_text(sequence: Option<u64>) -> String {
    let id = sequence.map_or("0-0".to_owned(), |sequence| format!("{sequence}-1"));
    text(id.as_bytes())
}
