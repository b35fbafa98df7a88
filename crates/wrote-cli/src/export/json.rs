//! The whole result, `wrote.result/1`, for a program to read.

use super::Export;
use std::io::{self, Write};
use wrote_result::document::Document;

/// Pretty-printed JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Export for Json {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)
    }
}
