//! The check of a job with `verify`: reads back the blocks that the job wrote, and compares each
//! with what was written.

use crate::worker::DirectionReport;
use crate::worker::header::{self, Header};
use crate::worker::sequence::{Next, Sequence};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote::engine::{Engine, FileId, Op};
use wrote_result::{Error, Stop};

/// The number of units of a file whose last writers are kept at a time, in 8 MiB of memory (W8).
const WINDOW_UNITS: u64 = 1 << 20;

/// Reads back what the first `issued` operations of a sequence wrote. Returns the report on the
/// reads; fails if a block is wrong.
///
/// The last writer of a block is found by repeating the sequence, once for each window of the file.
/// As in fio, a block is left out if a block of another size or at another offset has overwritten
/// part of it.
pub fn read_back(
    engine: &mut Engine,
    files: &[(PathBuf, FileId)],
    sequence: &Sequence,
    issued: u64,
    stop: &Stop,
) -> Result<DirectionReport, Error> {
    let sizes = &sequence.outline().spec.order.write_bs;
    let unit = sizes.unit_bytes().max(1);
    let mut reads = DirectionReport::new();
    for (number, (path, file)) in files.iter().enumerate() {
        engine.flush(*file)?;
        drop_cache(path);
        let region = &sequence.outline().regions[number];
        let units = (region.end - region.start) / unit;
        let mut back = Back {
            engine: &mut *engine,
            path,
            file: *file,
            seed: sequence.outline().spec.seed,
            unit_bytes: header::unit_bytes(sizes),
            began: Instant::now(),
            batch: Vec::new(),
            reads: &mut reads,
        };
        let mut window = Window {
            last: vec![0; (WINDOW_UNITS.min(units) + sizes.most_bytes() / unit) as usize],
            start_unit: 0,
            region_start: region.start,
            unit,
        };
        while window.start_unit < units {
            let writes = || {
                let issued = (0..issued).zip(sequence.clone());
                issued.filter(|(_, next)| next.write && next.file == number)
            };
            window.last.fill(0);
            writes().for_each(|(operation, next)| window.mark(operation, &next));
            for (operation, next) in writes() {
                if window.is_whole(operation, &next) {
                    back.add(operation, next, stop)?;
                }
            }
            window.start_unit += WINDOW_UNITS;
        }
        back.check()?;
    }
    Ok(reads)
}

/// Drops the file's pages from the page cache if possible, so that the bytes on the device are
/// checked.
fn drop_cache(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

/// The last writer of each unit in a part of a file: the operation's number plus one, or 0 if there
/// is none.
struct Window {
    last: Vec<u64>,
    start_unit: u64,
    region_start: u64,
    unit: u64,
}

impl Window {
    fn units(&self, next: &Next) -> std::ops::Range<usize> {
        let first = (next.offset - self.region_start) / self.unit;
        let end = first + next.len as u64 / self.unit;
        let place =
            |unit: u64| (unit.saturating_sub(self.start_unit)).min(self.last.len() as u64) as usize;
        place(first)..place(end)
    }

    fn mark(&mut self, operation: u64, next: &Next) {
        let units = self.units(next);
        self.last[units].fill(operation + 1);
    }

    /// Returns whether a block begins in the window and holds only what this operation wrote.
    fn is_whole(&self, operation: u64, next: &Next) -> bool {
        let first = (next.offset - self.region_start) / self.unit;
        (self.start_unit..self.start_unit + WINDOW_UNITS).contains(&first)
            && self.last[self.units(next)].iter().all(|last| *last == operation + 1)
    }
}

/// The blocks of a file that are being read back.
struct Back<'a> {
    engine: &'a mut Engine,
    path: &'a Path,
    file: FileId,
    seed: u64,
    unit_bytes: Option<usize>,
    /// When the batch began.
    began: Instant,
    batch: Vec<(u64, Next)>,
    reads: &'a mut DirectionReport,
}

impl Back<'_> {
    fn add(&mut self, operation: u64, next: Next, stop: &Stop) -> Result<(), Error> {
        if self.engine.is_full() {
            self.check()?;
            stop.check()?;
        }
        if self.batch.is_empty() {
            self.began = Instant::now();
        }
        let mut buffer = self.engine.lease()?;
        buffer.set_len(next.len);
        let op = Op::Read { file: self.file, offset: next.offset, buffer };
        self.engine.queue(self.batch.len() as u64, op);
        self.batch.push((operation, next));
        Ok(())
    }

    /// Waits for the reads in flight, and checks the blocks that they return.
    fn check(&mut self) -> Result<(), Error> {
        let mut completions = Vec::new();
        self.engine.reap(usize::MAX, &mut completions)?;
        let latency_ns = self.began.elapsed().as_nanos() as u64;
        for completion in completions {
            let (sequence, next) = self.batch[completion.user_data as usize];
            let read = completion.result?;
            let block = completion.buffer.as_deref().and_then(|block| block.get(..read));
            let (offset, seed, len) = (next.offset, self.seed, next.len as u32);
            let header = Header { offset, seed, sequence, len };
            let block = block.unwrap_or_default();
            header.check_parts(self.unit_bytes, block).map_err(|what| {
                let path = self.path.display();
                Error::Failed(format!("{path}: verify at byte {offset}: {what}"))
            })?;
            self.reads.bytes += read as u64;
            self.reads.operations += 1;
            self.reads.latency_ns.saturating_record(latency_ns);
        }
        self.batch.clear();
        Ok(())
    }
}
