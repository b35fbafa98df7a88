//! Opening a log: what is there made whole, a segment made ready, everything put together.

use super::Format;
use super::claim::{CAPACITY_MAX, Claims, Layout, SLOTS_MAX, Start};
use super::commit::{Beginning, Flusher, Segment};
use super::options::{LogOptions, Prepare};
use super::prepare::{self, BLOCK_BYTES, Preparing};
use super::recovery::{Active, Found, recover};
use super::segment;
use super::shared::{Parts, Promise, Shared};
use crate::engine::Callers;
use crate::file::calibrate;
use crate::{
    Acknowledged, Disk, Durable, Engine, Error, FileOptions, Ioengine, Options, Sim, Sync, device,
};
use std::path::Path;

/// The least of a buffer.
const BUFFER_BYTES_MIN: usize = 4096;
/// The most of a segment: more than any file system has, and no sum of it and a buffer overflows.
const SEGMENT_BYTES_MAX: u64 = 1 << 62;
/// Operations beside those of the batches: flushes of segments, and what prepares the next.
const OTHER_OPERATIONS: u32 = 6;
/// Writes of each way that are tried to choose how records are made durable.
const CALIBRATION_ROUNDS: u32 = 8;

/// What the disk under a log promises, and how it is used.
struct Terms {
    promise: Promise,
    durable: Durable,
}

pub(super) fn open(options: &LogOptions, folder: &Path) -> Result<Shared, Error> {
    let options = within_bounds(options);
    let engine_options = engine_options(&options);
    let engine = Engine::open_for(&engine_options, Callers::Any)?;
    let folder = std::path::absolute(folder)
        .map_err(|error| Error::file(folder, crate::Action::Examine, None, &error))?;
    assemble(engine, &options, &folder, |prepare, direct| {
        let target = device::examine(&folder)?;
        let promise = Promise::of(Acknowledged {
            flushed: false,
            flush_reaches_device: target.flushes_reach_device(),
            direct,
            settled_blocks: prepare == Prepare::Write && target.writes_in_place(),
            in_memory: target.in_memory,
        });
        let durable = match options.durable {
            Some(durable) => durable,
            None if options.sync == Sync::Always && options.format == Format::Framed => {
                let disk = Disk::open(&Options::new(Ioengine::IoUring, 1, BLOCK_BYTES as usize))?;
                calibrate(&disk, &folder, BLOCK_BYTES as usize, CALIBRATION_ROUNDS)?.choice
            }
            None => Durable::default(),
        };
        Ok(Terms { promise, durable })
    })
}

pub(super) fn open_simulated(
    options: &LogOptions,
    sim: &Sim,
    folder: &Path,
) -> Result<Shared, Error> {
    let options = within_bounds(options);
    let engine = Engine::simulated(sim, &engine_options(&options))?;
    assemble(engine, &options, folder, |_, direct| {
        let promise = Promise::of(Acknowledged {
            flushed: false,
            flush_reaches_device: true,
            direct,
            settled_blocks: false,
            in_memory: false,
        });
        Ok(Terms { promise, durable: options.durable.unwrap_or_default() })
    })
}

/// The options, with what can't be had made what comes next to it.
fn within_bounds(options: &LogOptions) -> LogOptions {
    let mut options = options.clone();
    options.buffers = options.buffers.clamp(2, SLOTS_MAX);
    let most = CAPACITY_MAX;
    let blocks = options.buffer_bytes.min(most).next_multiple_of(BLOCK_BYTES as usize);
    options.buffer_bytes = blocks.clamp(BUFFER_BYTES_MIN, most);
    let least = 2 * options.buffer_bytes as u64;
    let segment_bytes = options.segment_bytes.clamp(least, SEGMENT_BYTES_MAX);
    options.segment_bytes = segment_bytes.next_multiple_of(BLOCK_BYTES);
    options
}

fn engine_options(options: &LogOptions) -> Options {
    let depth = options.buffers + OTHER_OPERATIONS;
    Options {
        // One for zeros, one for the end of the log.
        buffers: options.buffers + 2,
        ..Options::new(Ioengine::IoUring, depth, options.buffer_bytes)
    }
}

fn assemble(
    mut engine: Engine,
    options: &LogOptions,
    folder: &Path,
    terms: impl FnOnce(Prepare, bool) -> Result<Terms, Error>,
) -> Result<Shared, Error> {
    let found = recover(&mut engine, folder, options.format)?;
    let by_sync = if options.sync == Sync::Always { Prepare::Write } else { Prepare::Allocate };
    let prepare = options.prepare.unwrap_or(by_sync);
    let block_bytes = match (&found.active, options.format) {
        (_, Format::Lines) => 1,
        (Some(active), _) => u64::from(active.block_bytes),
        (None, _) => BLOCK_BYTES,
    };
    if !(options.buffer_bytes as u64).is_multiple_of(block_bytes) {
        let because = format!(
            "the log's blocks have {block_bytes} bytes; open it with LogOptions::buffer_bytes a multiple of that"
        );
        return Err(Error::Refused { path: folder.to_owned(), because });
    }
    let layout = Layout {
        format: options.format,
        capacity: options.buffer_bytes as u64,
        block_bytes,
        segment_bytes: options.segment_bytes,
        log_id: found.log_id,
    };
    let start = start(&found, &layout);
    let (segment, preparing) = match &found.active {
        Some(active) => (Some(go_on(&mut engine, active, &layout, &start, prepare)?), None),
        None if options.format == Format::Framed => {
            (None, Some(begin(&mut engine, folder, &layout, prepare)?))
        }
        None => (None, None),
    };
    let file = segment.as_ref().map(|segment| segment.file);
    let file = file.or(preparing.as_ref().map(|preparing| preparing.file));
    let Terms { promise, durable } =
        terms(prepare, file.is_some_and(|file| engine.is_direct(file)))?;
    let beginning = Beginning {
        folder: folder.to_owned(),
        log_id: found.log_id,
        block_bytes,
        durable,
        prepare,
        after_cut: found.active.as_ref().is_some_and(|active| active.after_cut),
        sealed: found.sealed,
        segment,
        preparing,
        next_sequence: found.next_sequence,
    };
    let parts = Parts {
        claims: Claims::new(layout, options.buffers, start),
        slots: options.buffers,
        next_sequence: found.next_sequence,
        first_sequence: found.first_sequence,
        folder: folder.to_owned(),
        format: options.format,
        sync: options.sync,
        recovered: found.recovered,
        promise,
        effective: engine.effective().clone(),
        ways: (durable, (options.format == Format::Framed).then_some(prepare)),
    };
    let shared = Shared::new(parts, Flusher::new(engine, options, beginning));
    shared.flusher().open_slots(&shared)?;
    Ok(shared)
}

/// Where the next record goes.
fn start(found: &Found, layout: &Layout) -> Start {
    let first_sequence = found.next_sequence;
    let Some(active) = &found.active else {
        let segment = if layout.format == Format::Framed { 1 } else { first_sequence };
        return Start { first_sequence, segment, offset: 0 };
    };
    let offset = active.bytes.next_multiple_of(layout.block_bytes);
    if offset + layout.capacity <= layout.segment_bytes {
        return Start { first_sequence, segment: active.number, offset };
    }
    let segment = if layout.format == Format::Framed { active.number + 1 } else { first_sequence };
    Start { first_sequence, segment, offset: 0 }
}

/// Opens the segment in which a log goes on, and makes the rest of it ready again.
fn go_on(
    engine: &mut Engine,
    active: &Active,
    layout: &Layout,
    start: &Start,
    prepare: Prepare,
) -> Result<Segment, Error> {
    let is_framed = layout.format == Format::Framed;
    let options = FileOptions { write: true, direct: is_framed, ..Default::default() };
    let file = prepare::open(engine, &active.path, &options)?;
    if is_framed && start.segment == active.number {
        let (from, end) = (start.offset, layout.segment_bytes);
        Preparing::rest_of(file, &active.path, active.number, prepare, from, end).finish(engine)?;
    }
    let mut segment = Segment::new(file, active.path.clone(), active.number, active.created_at_ns);
    segment.end = active.bytes;
    segment.last_checksum = active.last_checksum;
    segment.end_sequence = start.first_sequence;
    Ok(segment)
}

/// Makes the first segment of a new log.
fn begin(
    engine: &mut Engine,
    folder: &Path,
    layout: &Layout,
    prepare: Prepare,
) -> Result<Preparing, Error> {
    let path = segment::path(folder, layout.format, 1);
    let mut preparing = Preparing::new(engine, &path, 1, prepare, layout.segment_bytes)?;
    if let Err(error) = preparing.finish(engine) {
        preparing.abandon(engine);
        return Err(error);
    }
    Ok(preparing)
}

#[cfg(test)]
mod tests {
    use super::super::Log;
    use super::super::segment::SegmentHeader;
    use super::super::testing::{LOG_ID, disk, folder, read};
    use super::*;

    /// A disk with a log in which nothing was written behind the header of its first segment.
    fn log_of_blocks(block_bytes: u32) -> Sim {
        let header =
            SegmentHeader { log_id: LOG_ID, segment_id: 1, block_bytes, ..Default::default() };
        let mut bytes = vec![0; segment::HEADER_BYTES];
        header.encode(&mut bytes);
        disk(1, &[(segment::path(folder(), Format::Framed, 1), bytes)])
    }

    #[test]
    fn a_log_of_larger_blocks_is_written_in_them_or_refused_where_buffers_do_not_hold_any() {
        for (block_bytes, buffer_bytes) in
            [(512, 4096), (16384, 32768), (16384, 4096), (1 << 31, 8192)]
        {
            let sim = log_of_blocks(block_bytes);
            let options = Log::options().sync(Sync::No).buffers(2).buffer_bytes(buffer_bytes);
            let opened = options.segment_bytes(1 << 20).open_simulated(&sim, folder());
            if buffer_bytes < block_bytes as usize {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("LogOptions::buffer_bytes"), "{error}");
                continue;
            }
            let log = opened.unwrap();
            log.append(b"hello").unwrap().wait().unwrap();
            log.close().unwrap();
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert_eq!((records.len(), &records[0].bytes[..]), (1, &b"hello"[..]));
        }
    }
}
