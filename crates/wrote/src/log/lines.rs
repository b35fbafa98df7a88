//! The complete lines of a file: lines ended by a line feed, before the first NUL.

use super::damage;
use super::input::Input;
use crate::Error;

pub(super) struct LineCount {
    pub count: u64,
    pub end: u64,
}

/// Refuses a file before the last that has lost lines: its writer flushed it before starting the
/// next one, whose first line is `next`.
///
/// Length and last byte reveal most damage. With `all`, every line is counted.
pub(super) fn check_sealed(
    input: &mut Input,
    number: u64,
    next: u64,
    all: bool,
) -> Result<(), Error> {
    let expected = next - number;
    let len_bytes = input.len_bytes;
    let ends_whole = input.bytes(len_bytes.saturating_sub(1), 1)? == b"\n";
    if !all && ends_whole && len_bytes >= expected {
        return Ok(());
    }
    let LineCount { count, end } = read(input)?;
    let sequence = number + count;
    let what = match count {
        _ if count == expected => return Ok(()),
        _ if count < expected => format!("line {sequence} can't be read, and was durable once"),
        _ => format!("it ends before line {sequence}, the file after it begins with {next}"),
    };
    Err(damage::error(&input.path, end, &what))
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
