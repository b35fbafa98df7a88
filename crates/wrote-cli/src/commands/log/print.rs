//! Records as they are printed: a line each, their bytes alone, or JSON.

use crate::args::LogShape;
use crate::stdio::{End, Output};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::io::{self, BufWriter, Write};
use wrote_result::Stop;

/// Few enough for a person to see them come, many enough for a write to cost little.
const BUFFER_BYTES: usize = 64 << 10;

#[skip_serializing_none]
#[derive(Serialize)]
struct JsonRecord<'a> {
    sequence: u64,
    /// The record, where it is UTF-8.
    text: Option<&'a str>,
    /// The record in base64, where it is not UTF-8 (RFC 4648, section 4).
    bytes_base64: Option<String>,
}

/// Prints records to standard output.
pub(super) struct Printer<'a> {
    out: BufWriter<Output<'a>>,
    shape: LogShape,
}

impl<'a> Printer<'a> {
    pub(super) fn new(shape: LogShape, stop: &'a Stop) -> Printer<'a> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, Output::new(stop));
        Printer { out, shape }
    }

    pub(super) fn print(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), End> {
        write(&mut self.out, self.shape, sequence, bytes).map_err(|error| End::of_output(&error))
    }

    pub(super) fn flush(&mut self) -> Result<(), End> {
        self.out.flush().map_err(|error| End::of_output(&error))
    }

    /// Whether anybody reads what is printed.
    pub(super) fn has_reader(&self) -> bool {
        self.out.get_ref().has_reader()
    }
}

fn write(out: &mut impl Write, shape: LogShape, sequence: u64, bytes: &[u8]) -> io::Result<()> {
    if shape.json {
        let text = std::str::from_utf8(bytes).ok();
        let bytes_base64 = text.is_none().then(|| STANDARD.encode(bytes));
        serde_json::to_writer(&mut *out, &JsonRecord { sequence, text, bytes_base64 })?;
        return out.write_all(b"\n");
    }
    if shape.sequence {
        write!(out, "{sequence}\t")?;
    }
    out.write_all(bytes)?;
    if shape.raw { Ok(()) } else { out.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: LogShape = LogShape { sequence: false, raw: false, json: false };

    fn printed(shape: LogShape) -> String {
        let mut out = Vec::new();
        for (sequence, bytes) in
            [&b"one"[..], b"", b"\"a\"\n\xc3\xa9", b"\xff\0"].iter().enumerate()
        {
            write(&mut out, shape, sequence as u64 + 7, bytes).unwrap();
        }
        out.escape_ascii().to_string()
    }

    #[test]
    fn a_record_is_a_line() {
        assert_eq!(printed(LINES), r#"one\n\n\"a\"\n\xc3\xa9\n\xff\x00\n"#);
        let with_sequence = LogShape { sequence: true, ..LINES };
        assert!(printed(with_sequence).starts_with(r"7\tone\n8\t\n9\t"));
    }

    #[test]
    fn raw_records_have_nothing_between_them() {
        assert_eq!(printed(LogShape { raw: true, ..LINES }), r#"one\"a\"\n\xc3\xa9\xff\x00"#);
    }

    #[test]
    fn json_is_a_line_whatever_the_record_holds() {
        let mut out = Vec::new();
        let shape = LogShape { json: true, ..LINES };
        write(&mut out, shape, 7, "a\n\u{e9}".as_bytes()).unwrap();
        write(&mut out, shape, 8, b"\xff\0").unwrap();
        let expected = "{\"sequence\":7,\"text\":\"a\\n\u{e9}\"}\n{\"sequence\":8,\"bytes_base64\":\"/wA=\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
