//! The whole lines of a file: lines that a line feed ends, before the first NUL.

use super::input::Input;
use crate::Error;

/// The last files, which may not be on stable storage. The flusher flushes every file before it
/// begins the second one after it.
pub(super) const UNSURE_FILES: usize = 2;

pub(super) struct LineCount {
    pub count: u64,
    pub end: u64,
}

pub(super) fn read(input: &mut Input) -> Result<LineCount, Error> {
    let piece_bytes = input.files.engine().pool().buffer_bytes();
    let mut lines = LineCount { count: 0, end: 0 };
    let mut place = 0;
    while place < input.len_bytes {
        let bytes = input.bytes(place, piece_bytes)?;
        let clean = bytes.iter().position(|&byte| byte == 0);
        let bytes = &bytes[..clean.unwrap_or(bytes.len())];
        lines.count += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        if let Some(last) = bytes.iter().rposition(|&byte| byte == b'\n') {
            lines.end = place + last as u64 + 1;
        }
        if clean.is_some() || bytes.is_empty() {
            break;
        }
        place += bytes.len() as u64;
    }
    input.pause()?;
    Ok(lines)
}
