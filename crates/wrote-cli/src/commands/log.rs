//! `wrote log`: what it can do with a log, and what it says of one.

mod append;
mod print;
mod records;
mod repair;
mod stat;
mod verify;

use crate::args::{LogArgs, LogVerb};
use crate::stdio::End;
use serde::Serialize;
use std::io::{self, Write};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &LogArgs, stop: &Stop) -> Result<(), Error> {
    match &arguments.verb {
        LogVerb::Cat(arguments) => End::outcome(records::cat(arguments, stop)),
        LogVerb::Tail(arguments) => End::outcome(records::tail(arguments, stop)),
        LogVerb::Stat(arguments) => stat::run(arguments),
        LogVerb::Verify(arguments) => verify::run(arguments, stop),
        LogVerb::Repair(arguments) => repair::run(arguments, stop),
        LogVerb::Append(arguments) => append::run(arguments, stop),
    }
}

/// `1 record`, `3 records`.
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Pretty-printed, as the other results are.
fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
