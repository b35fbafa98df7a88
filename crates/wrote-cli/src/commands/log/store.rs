//! Logs in an object store: ships, reads, summarises and verifies them.

use super::source::{Ends, Head, Records, Source};
use super::stat::write_rows;
use super::verify::{lost, read_whole};
use crate::args::{LogShipArgs, LogStatArgs, LogVerifyArgs};
use crate::output;
use crate::progress::CopyReporter;
use crate::stdio::{End, of_library};
use crate::terminal::{complain, is_quiet, say};
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};
use wrote::Record;
use wrote_report::{plain, write_json};
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};
use wrote_store::{
    SegmentStore, ShipProgress, Shipped, Shipper, StoreDamage, StoreError, StoreReader,
    StoreSummary, StoreVerified, runtime, summary, until,
};

/// The interval between checks of the folder.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The maximum pause after a failure. Each pause is twice as long as the previous one.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Opens a log's store for reading.
fn open(url: &str) -> Result<SegmentStore, Error> {
    SegmentStore::open(url).map_err(of_store)
}

/// Converts an error of the store into one with the right exit code.
fn of_store(error: StoreError) -> Error {
    match error {
        StoreError::Interrupted => Error::Interrupted,
        StoreError::Log(error) => of_library(&error),
        StoreError::Url { .. } | StoreError::Empty { .. } => Error::Usage(error.to_string()),
        other => Error::Failed(other.to_string()),
    }
}

/// Runs `wrote log ship`: copies sealed segments to the store, and prints a line for each problem.
pub(super) fn ship(arguments: &LogShipArgs, stop: &Stop) -> Result<(), Error> {
    let LogShipArgs { folder, url, follow } = arguments;
    // A mistyped local folder must not create a folder in the store.
    wrote::log::Segment::sealed(folder, u64::MAX, 0).map_err(|error| of_library(&error))?;
    let store = SegmentStore::open_or_make(url).map_err(of_store)?;
    let mut shipper = Shipper::new(store, folder).map_err(of_store)?;
    let runtime = runtime().map_err(of_store)?;
    let shipped = match follow {
        true => runtime.block_on(follow_log(&mut shipper, stop)),
        false => runtime.block_on(pass(&mut shipper, stop)),
    };
    // Pending requests are abandoned. The next run finds out whether they succeeded.
    runtime.shutdown_background();
    match shipped {
        Err(StoreError::Interrupted) if *follow => {}
        shipped => shipped.map_err(of_store)?,
    }
    say(&done(&shipper.shipped(), url));
    Ok(())
}

/// Ships the sealed segments while showing a bar.
async fn pass(shipper: &mut Shipper, stop: &Stop) -> Result<(), StoreError> {
    let mut reporter = CopyReporter::default();
    let mut show = |progress: ShipProgress| {
        let ShipProgress { bytes_done, bytes_total, .. } = progress;
        reporter.progress(bytes_done, Some(bytes_total));
    };
    until(stop.flag(), shipper.pass(0, &mut show)).await
}

/// Ships sealed segments repeatedly. Of several temporary failures in a row, only the first is
/// reported, and later the recovery. Comparing their texts would not suffice, because they differ
/// from one attempt to the next (a name, a number).
async fn follow_log(shipper: &mut Shipper, stop: &Stop) -> Result<(), StoreError> {
    let (mut is_failing, mut pause) = (false, LOOK_PAUSE);
    loop {
        match pass(shipper, stop).await {
            Ok(()) => {
                if std::mem::take(&mut is_failing) {
                    say("wrote: shipping again");
                }
                pause = LOOK_PAUSE;
            }
            Err(error) if error.is_passing() => {
                if !std::mem::replace(&mut is_failing, true) {
                    complain(&format!("{error}; trying again"));
                }
                pause = (pause * 2).min(FAILURE_PAUSE_MAX);
            }
            Err(error) => return Err(error),
        }
        let sleep = async {
            tokio::time::sleep(pause).await;
            Ok(())
        };
        until(stop.flag(), sleep).await?;
    }
}

/// Returns text such as
/// `shipped 3 segments, 192 MB; records before 12345 are in s3://bucket/events`.
fn done(shipped: &Shipped, url: &str) -> String {
    let Shipped { segments, bytes, end_sequence, .. } = *shipped;
    let url = plain(url);
    let shipped = match segments {
        0 => "nothing new to ship".to_owned(),
        _ => format!("shipped {}, {}", counted(segments, "segment"), units::bytes(bytes)),
    };
    match end_sequence {
        0 => format!("{shipped}; no segment is sealed yet"),
        _ => format!("{shipped}; all records before {end_sequence} are in {url}"),
    }
}

/// A store as a source of records.
struct Stored {
    runtime: tokio::runtime::Runtime,
    store: SegmentStore,
    stop: Stop,
}

pub(super) fn source(url: &str, stop: &Stop) -> Result<Box<dyn Source>, Error> {
    let (store, runtime) = (open(url)?, runtime().map_err(of_store)?);
    Ok(Box::new(Stored { runtime, store, stop: stop.clone() }))
}

impl Source for Stored {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        let (handle, stop) = (self.runtime.handle().clone(), self.stop.flag().clone());
        let reader = StoreReader::open(handle, self.store.clone(), from, stop);
        Ok(Box::new(reader.map_err(of_store)?))
    }

    fn check_times(&self) -> Result<(), End> {
        // Only framed logs are shipped, and these record times.
        Ok(())
    }

    fn ends(&self) -> Result<Ends, End> {
        let summed = until(self.stop.flag(), summary(&self.store));
        let summed = self.runtime.block_on(summed).map_err(of_store)?;
        Ok(Ends { first: summed.first_sequence, next: summed.end_sequence })
    }
}

impl Records for StoreReader {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        let record = self.next().transpose().map_err(of_store)?;
        Ok(record.map(|Record { sequence, bytes: own, written_at, .. }| {
            bytes.extend_from_slice(&own);
            Head { sequence, written_at }
        }))
    }

    fn seek_time(&mut self, time: SystemTime) -> Result<(), End> {
        Ok(StoreReader::seek_time(self, time).map_err(of_store)?)
    }
}

/// Runs `wrote log stat` on a store: prints its segments and their sequences.
pub(super) fn stat(url: &str, arguments: &LogStatArgs, stop: &Stop) -> Result<(), Error> {
    let (store, runtime) = (open(url)?, runtime().map_err(of_store)?);
    let summed = runtime.block_on(until(stop.flag(), summary(&store))).map_err(of_store)?;
    output::to_stdout(|out| match arguments.json {
        true => write_json(&summed, out),
        false => write_table(&summed, out),
    })
}

fn write_table(summed: &StoreSummary, out: &mut dyn Write) -> io::Result<()> {
    let StoreSummary { url, end_sequence, records, bytes, segments, .. } = summed;
    let (records, bytes) = (counted(*records, "record"), units::bytes(*bytes));
    let count = counted(segments.len() as u64, "segment");
    writeln!(out, "{}: {records} in {count}, {bytes}", plain(url))?;
    writeln!(out, "the next record that the store gets is {end_sequence}\n")?;
    let mut rows = vec![["SEGMENT", "FIRST", "RECORDS", "BYTES"].map(str::to_owned)];
    rows.extend(segments.iter().map(|segment| {
        let (first, records) = (segment.first_sequence.to_string(), segment.records.to_string());
        [segment.name.clone(), first, records, units::bytes(segment.bytes)]
    }));
    write_rows(&rows, out)
}

/// Runs `wrote log verify` on a store: reads every byte of it.
pub(super) fn verify(url: &str, arguments: &LogVerifyArgs, stop: &Stop) -> Result<(), Error> {
    let (store, runtime) = (open(url)?, runtime().map_err(of_store)?);
    let mut reporter = CopyReporter::default();
    let mut show = |bytes_done, bytes_total| {
        reporter.progress(bytes_done, Some(bytes_total));
    };
    let reading = wrote_store::verify(&store, &mut show);
    let verified = runtime.block_on(until(stop.flag(), reading)).map_err(of_store)?;
    drop(reporter);
    output::to_stdout(|out| match arguments.json {
        true => {
            let whole = verified.damage.is_empty();
            write_json(&JsonVerified { url, whole, verified: &verified }, out)
        }
        false => write_verified(&verified, out),
    })?;
    match verified.damage.len() as u64 {
        0 => Ok(()),
        places => Err(Error::Failed(format!("{url}: damaged in {}", counted(places, "place")))),
    }
}

#[derive(Serialize)]
struct JsonVerified<'a> {
    url: &'a str,
    /// Whether the store is undamaged.
    whole: bool,
    #[serde(flatten)]
    verified: &'a StoreVerified,
}

fn write_verified(verified: &StoreVerified, out: &mut dyn Write) -> io::Result<()> {
    for StoreDamage { object, sequence, records, because, .. } in &verified.damage {
        let lost = lost(*sequence, *records);
        writeln!(out, "{}: {because}; {lost}", plain(object))?;
    }
    if is_quiet() {
        return Ok(());
    }
    let StoreVerified { records, segments, record_bytes, .. } = *verified;
    let is_whole = verified.damage.is_empty();
    writeln!(out, "{}", read_whole(is_whole, records, segments, record_bytes))?;
    match verified.segments - verified.checksums {
        0 => Ok(()),
        unknown => writeln!(
            out,
            "{} without a checksum of the whole segment; each record's own was checked",
            counted(unknown, "segment")
        ),
    }
}
