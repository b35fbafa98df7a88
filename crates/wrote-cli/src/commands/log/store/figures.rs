//! `wrote log stat` and `wrote log verify` of a store: its segments, and whether they are whole.

use super::super::stat::{JsonSummary, write_rows};
use super::{of_store, open};
use crate::args::{LogStatArgs, LogVerifyArgs};
use crate::output;
use crate::progress::CopyReporter;
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::io::{self, Write};
use std::path::Path;
use wrote::Progress;
use wrote::log::SegmentSummary;
use wrote_report::{plain, write_json};
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};
use wrote_store::{
    MissingSegments, StoreDamage, StoreSummary, StoreVerified, StoredSummary, Unshipped, runtime,
    summary, until,
};

pub(in super::super) fn stat(url: &str, arguments: &LogStatArgs, stop: &Stop) -> Result<(), Error> {
    let (store, local) = (open(url)?, arguments.behind.local.as_deref());
    let runtime = runtime().map_err(of_store)?;
    let summed = runtime.block_on(until(stop.flag(), summary(&store, local)));
    let summed = summed.map_err(of_store)?;
    output::to_stdout(|out| match arguments.json {
        true => write_json(&JsonStore::of(&summed, local), out),
        false => write_table(&summed, local, out),
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
struct JsonStore<'a> {
    url: &'a str,
    first_sequence: u64,
    /// The sequence after the last record in the store.
    end_sequence: u64,
    /// The sequence after the last record of both.
    next_sequence: u64,
    records: u64,
    bytes: u64,
    segments: &'a [StoredSummary],
    /// The log in the folder, where one is given.
    local: Option<JsonSummary>,
    /// Its sealed segments that the store does not have.
    unshipped: Option<Unshipped>,
}

impl<'a> JsonStore<'a> {
    fn of(summed: &'a StoreSummary, local: Option<&Path>) -> JsonStore<'a> {
        let log = summed.local.as_ref().zip(local);
        JsonStore {
            url: &summed.url,
            first_sequence: summed.first_sequence,
            end_sequence: summed.end_sequence,
            next_sequence: summed.next_sequence(),
            records: summed.segments.iter().map(|segment| segment.records).sum(),
            bytes: summed.segments.iter().map(|segment| segment.bytes).sum(),
            segments: &summed.segments,
            local: log.map(|(log, folder)| JsonSummary::of(folder, log)),
            unshipped: summed.unshipped,
        }
    }
}

fn write_table(summed: &StoreSummary, local: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let records = summed.segments.iter().map(|segment| segment.records).sum();
    let bytes = summed.segments.iter().map(|segment| segment.bytes).sum();
    let (records, bytes) = (counted(records, "record"), units::bytes(bytes));
    let segments = counted(summed.segments.len() as u64, "segment");
    writeln!(out, "{}: {records} in {segments}, {bytes}", plain(&summed.url))?;
    writeln!(out, "the store ends before record {}", summed.end_sequence)?;
    let behind = behind(summed);
    if let Some((log, folder)) = summed.local.as_ref().zip(local) {
        let (folder, next) = (plain(&folder.to_string_lossy()), log.next_sequence);
        writeln!(out, "{folder} continues; the next record is {next}")?;
        let unshipped = summed.unshipped.unwrap_or_default();
        writeln!(out, "{}", waiting(&unshipped))?;
        if let Some(MissingSegments { first, last }) = unshipped.missing {
            writeln!(out, "segments {first} to {last} are neither in the store nor in {folder}")?;
        }
    }
    writeln!(out)?;
    let mut rows = vec![["SEGMENT", "FIRST", "RECORDS", "BYTES", "IN"].map(str::to_owned)];
    rows.extend(summed.segments.iter().map(|segment| {
        let (first, records) = (segment.first_sequence.to_string(), segment.records.to_string());
        [segment.name.clone(), first, records, units::bytes(segment.bytes), "store".into()]
    }));
    rows.extend(behind.iter().map(|segment| {
        let name = segment.path.file_name().unwrap_or_default().to_string_lossy();
        let (first, records) = (segment.first_sequence.to_string(), segment.records.to_string());
        [plain(&name), first, records, units::bytes(segment.used_bytes), "folder".into()]
    }));
    write_rows(&rows, out)
}

/// `2 sealed segments wait to be shipped, 128 MB: the records before 5000`.
fn waiting(unshipped: &Unshipped) -> String {
    let Unshipped { segments, bytes, end_sequence, .. } = *unshipped;
    let wait = match segments {
        0 => return "no sealed segment waits to be shipped".to_owned(),
        1 => "waits",
        _ => "wait",
    };
    let (segments, bytes) = (counted(segments, "sealed segment"), units::bytes(bytes));
    format!("{segments} {wait} to be shipped, {bytes}: the records before {end_sequence}")
}

/// Returns the local segments that the store does not have.
fn behind(summed: &StoreSummary) -> Vec<SegmentSummary> {
    let local = summed.local.iter().flat_map(|log| &log.segments);
    local.filter(|segment| segment.first_sequence >= summed.end_sequence).cloned().collect()
}

/// Reads the whole store, then the local log.
pub(in super::super) fn verify(
    url: &str,
    arguments: &LogVerifyArgs,
    stop: &Stop,
) -> Result<(), Error> {
    let store = open(url)?;
    let runtime = runtime().map_err(of_store)?;
    let mut reporter = CopyReporter::new(arguments.quiet);
    let mut show = |bytes_done, bytes_total| {
        reporter.progress(Progress::new(bytes_done, Some(bytes_total)));
    };
    let reading = wrote_store::verify(&store, &mut show);
    let verified = runtime.block_on(until(stop.flag(), reading)).map_err(of_store)?;
    drop(reporter);
    output::to_stdout(|out| match arguments.json {
        true => {
            let whole = verified.damage.is_empty();
            write_json(&JsonVerified { url, whole, verified: &verified }, out)
        }
        false => write_verified(&verified, arguments.quiet, out),
    })?;
    let own = match verified.damage.len() as u64 {
        0 => Ok(()),
        places => Err(Error::Failed(format!("{url}: damaged in {}", counted(places, "place")))),
    };
    match &arguments.behind.local {
        None => own,
        Some(folder) => {
            let mut behind = arguments.behind.clone();
            behind.local = None;
            let LogVerifyArgs { json, quiet, .. } = *arguments;
            let arguments = LogVerifyArgs { folder: folder.clone(), behind, json, quiet };
            own.and(super::super::verify::run(&arguments, stop))
        }
    }
}

#[derive(Serialize)]
struct JsonVerified<'a> {
    url: &'a str,
    /// Whether nothing is damaged.
    whole: bool,
    #[serde(flatten)]
    verified: &'a StoreVerified,
}

fn write_verified(verified: &StoreVerified, quiet: bool, out: &mut dyn Write) -> io::Result<()> {
    for StoreDamage { object, sequence, records, because, .. } in &verified.damage {
        let lost = match records {
            Some(1) => format!("record {sequence} is lost"),
            Some(count) => format!("{count} records from {sequence} on are lost"),
            None => format!("records from {sequence} on are lost"),
        };
        writeln!(out, "{}: {because}; {lost}", plain(object))?;
    }
    if quiet {
        return Ok(());
    }
    let (records, bytes) = (counted(verified.records, "record"), verified.record_bytes);
    let segments = counted(verified.segments, "segment");
    let bytes = units::bytes(bytes);
    match verified.damage.is_empty() {
        true => writeln!(out, "{records} in {segments}, {bytes}, whole")?,
        false => writeln!(out, "whole besides: {records} in {segments}, {bytes}")?,
    }
    match verified.segments - verified.checksums {
        0 => Ok(()),
        unknown => writeln!(
            out,
            "{} without a checksum beside it; each record has its own",
            counted(unknown, "segment")
        ),
    }
}
