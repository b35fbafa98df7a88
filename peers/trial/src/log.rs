//! Creates, reads and opens logs.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote::{Log, LogReader, SyncPolicy};

const SEED: u64 = 0x006c_6f67;

/// A log to make.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Shape {
    /// Records of the log.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub records: u64,
    /// Bytes of each record.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub record_bytes: u32,
    /// Bytes of a segment.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40)]
    pub segment_bytes: u64,
    /// Bytes of a buffer of the log.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub buffer_bytes: usize,
    /// Leave the log as a kill does: durable, and not closed.
    #[arg(long)]
    pub killed: bool,
    /// Have the page cache hold the log's files.
    #[arg(long)]
    pub cached: bool,
}

/// Creates a log at `place`, which is not removed.
pub fn make(shape: &Shape, place: &Path) -> Result<Outcome> {
    let clock = Clock::start()?;
    let options = Log::options().sync(SyncPolicy::No).segment_bytes(shape.segment_bytes);
    let log = options.buffer_bytes(shape.buffer_bytes).open(place)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut record = vec![0; shape.record_bytes as usize];
    for _ in 0..shape.records {
        random.fill_bytes(&mut record);
        drop(log.append(&record)?);
    }
    log.sync()?;
    if shape.killed {
        // The destructor is not run, because it would write the rest, and a killed process runs no
        // destructors.
        std::mem::forget(log);
    } else {
        log.close()?;
    }
    if shape.cached {
        for path in files(place)? {
            std::io::copy(&mut File::open(path)?, &mut std::io::sink())?;
        }
    }
    clock.stop(shape.records * u64::from(shape.record_bytes), shape.records)
}

/// Reads every record of the log at `place` once, without copying it.
pub fn read(place: &Path) -> Result<Outcome> {
    let (mut records, mut bytes) = (0_u64, 0_u64);
    let clock = Clock::start()?;
    let mut reader = LogReader::open(place, 0)?;
    while let Some(record) = reader.next_lent()? {
        records += 1;
        bytes += record.bytes.len() as u64;
    }
    clock.stop(bytes, records)
}

/// Opens and closes the log at `place`, `times` times. The elapsed time and the latencies cover
/// only the openings.
pub fn open(times: u32, place: &Path) -> Result<Outcome> {
    let mut opened = Histogram::<u64>::new(3)?;
    let clock = Clock::start()?;
    let mut elapsed_s = 0.0;
    for _ in 0..times {
        let begin = Instant::now();
        let log = Log::options().sync(SyncPolicy::No).open(place)?;
        let took = begin.elapsed();
        elapsed_s += took.as_secs_f64();
        opened.record(took.as_nanos() as u64)?;
        log.close()?;
    }
    let outcome = clock.stop(0, u64::from(times))?;
    Ok(Outcome { elapsed_s, latency_ns: Percentiles::of(&opened), ..outcome })
}

/// Returns the paths of a log's segments, in order.
fn files(place: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(place)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    paths.sort_unstable();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(killed: bool) -> Shape {
        let (segment_bytes, buffer_bytes) = (1 << 20, 16 << 10);
        Shape {
            records: 3000,
            record_bytes: 500,
            segment_bytes,
            buffer_bytes,
            killed,
            cached: true,
        }
    }

    #[test]
    fn all_records_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = folder.path().join("log");
        let made = make(&shape(false), &place).expect("room");
        for _ in 0..2 {
            let read = read(&place).expect("a log");
            assert_eq!((read.operations, read.bytes), (made.operations, made.bytes));
            assert_eq!(open(3, &place).expect("a log").operations, 3);
        }
    }
}
