//! Finds the current line of a script in the memory of its interpreter, CPython 3.11 to 3.13.
//!
//! A thread's state leads to its frames, a frame to its code and its instruction, and the code's
//! table of locations to the line. The fields are private to each version. If a field does not have
//! the expected form, no line is found.

use super::memory;
use libc::pid_t;
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;

/// The section that contains `_PyRuntime`, from which everything is reached.
pub const RUNTIME: &str = ".PyRuntime";

const THREADS_MAX: usize = 256;
const FRAMES_MAX: usize = 64;
/// The offset of `ob_size` in `PyVarObject`, and of `length` in `PyASCIIObject`.
const LENGTH: u64 = 16;
/// The offset of `ob_sval` in `PyBytesObject`.
const BYTES: u64 = 32;
/// The offsets of `co_filename` and `co_linetable` in `PyCodeObject`.
const FILE: u64 = 112;
const TABLE: u64 = 136;

/// The offsets of fields in one version, according to its headers:
///
/// - from the runtime to its first thread: `interpreters.head`, `threads.head`;
/// - in a thread: `native_thread_id` and `next`, and from it to its innermost frame;
/// - in a frame: its code, the frame that called it, and its instruction;
/// - in a string: its characters;
/// - in a code object: `co_firstlineno` and `co_code_adaptive`.
type Layout = (&'static str, [u64; 2], [u64; 2], &'static [u64], [u64; 3], u64, [u64; 2]);

const LAYOUTS: [Layout; 3] = [
    ("3.11", [40, 16], [160, 8], &[56, 8], [32, 48, 56], 48, [72, 184]),
    ("3.12", [40, 72], [144, 8], &[56, 0], [0, 8, 56], 40, [68, 192]),
    ("3.13", [632, 7344], [160, 8], &[72], [0, 8, 56], 40, [68, 200]),
];

/// The interpreter of a process.
#[derive(Debug)]
pub struct Python {
    layout: &'static Layout,
    /// The address of `_PyRuntime`.
    runtime: u64,
}

/// A function or module. It is read again each time, because another one may have taken its memory.
struct Code {
    file: String,
    first: u32,
    table: Vec<u8>,
}

impl Python {
    /// Returns the interpreter whose runtime is in a file; `None` for an unknown version.
    pub fn of(file: &Path, runtime: u64) -> Option<Python> {
        let name = file.file_name()?.to_str()?;
        let layout = LAYOUTS.iter().find(|layout| name.contains(layout.0))?;
        Some(Python { layout, runtime })
    }

    /// Returns the innermost line of a task in a file for which `is_own` holds; `None` if none is
    /// found.
    pub fn line(&self, task: pid_t, is_own: fn(&str) -> bool) -> Option<(Arc<Path>, u64)> {
        let number = |at: u64, offset: &u64| memory::number(task, at.checked_add(*offset)?);
        let (_, to_threads, [id, next], to_frame, fields, _, [_, instructions]) = self.layout;
        let first = to_threads.iter().try_fold(self.runtime, number);
        let mut threads = successors(first, |thread| number(*thread, next)).take(THREADS_MAX);
        let thread = threads.find(|thread| number(*thread, id) == Some(task as u64))?;
        let mut frame = to_frame.iter().try_fold(thread, number)?;
        for _ in 0..FRAMES_MAX {
            let [code, above, instruction] = words(task, frame, fields)?;
            if let Some(found) = self.code(task, code, is_own) {
                let at_byte = instruction.checked_sub(code.checked_add(*instructions)?)?;
                let line = found.line(at_byte)?;
                return Some((Path::new(&found.file).into(), line));
            }
            frame = above;
        }
        None
    }

    /// Returns a code object; `None` if `is_own` does not hold for its file.
    fn code(&self, task: pid_t, code: u64, is_own: fn(&str) -> bool) -> Option<Code> {
        let (.., text, [first, _]) = self.layout;
        let [file, table, first] = words(task, code, &[FILE, TABLE, *first])?;
        let bytes = |object: u64, offset: u64| {
            let length = memory::number(task, object.checked_add(LENGTH)?)?;
            memory::text(task, object.checked_add(offset)?, length)
        };
        let file = bytes(file, *text).and_then(|file| String::from_utf8(file).ok());
        let is_file = |file: &String| file.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let file = file.filter(|file| is_file(file) && !file.starts_with('<') && is_own(file))?;
        Some(Code { file, table: bytes(table, BYTES)?, first: first as u32 })
    }
}

/// Reads words of an object at these offsets; `None` if unreadable.
fn words(task: pid_t, object: u64, offsets: &[u64; 3]) -> Option<[u64; 3]> {
    let addresses = offsets.iter().map(|offset| object.wrapping_add(*offset));
    memory::words(task, addresses)?.try_into().ok()
}

impl Code {
    /// Returns the line of an instruction from the table of locations (`Objects/locations.md` of
    /// CPython 3.11), in which only the first byte of an entry has its highest bit set. Returns
    /// `None` if the instruction has no line.
    fn line(&self, at_byte: u64) -> Option<u64> {
        let (mut line, mut end) = (i64::from(self.first), 0);
        for entry in self.table.chunk_by(|_, next| next & 0x80 == 0) {
            let (head, more) = entry.split_first()?;
            let kind = head >> 3 & 15;
            line = line.wrapping_add(match kind {
                10..=12 => i64::from(kind) - 10,
                13 | 14 => signed(more),
                _ => 0,
            });
            end += (u64::from(head & 7) + 1) * 2;
            if at_byte < end {
                return u64::try_from(line).ok().filter(|_| kind != 15);
            }
        }
        None
    }
}

/// Decodes a number with six bits per byte, the lowest first. The lowest bit of the number is the
/// sign.
fn signed(bytes: &[u8]) -> i64 {
    let mut value = 0;
    for (byte, shift) in bytes.iter().zip((0..60).step_by(6)) {
        value |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            break;
        }
    }
    if value & 1 == 1 { -(value >> 1) } else { value >> 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_line_of_its_entry() {
        // The entries: short; one line on; back by 3, without columns; long, 100 on; no line.
        let table = vec![0x80, 0x12, 0xd9, 1, 2, 0xe8, 7, 0xf0, 0x48, 3, 1, 2, 3, 0xf8];
        let code = Code { file: "a.py".into(), first: 10, table };
        let lines: Vec<_> = (0..7).map(|unit| code.line(unit * 2)).collect();
        let expected = [Some(10), Some(11), Some(11), Some(8), Some(108), None, None];
        assert_eq!(lines, expected);
    }
}
