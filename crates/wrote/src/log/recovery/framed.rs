//! Recovery of a framed log.

use super::super::batch::{self, BatchHeader};
use super::super::chain::{self, SegmentHead};
use super::super::input::{Input, LogFiles};
use super::super::names::SegmentNames;
use super::super::rescue::end::{LogEnd, end};
use super::super::rescue::scan::{self, EndScan};
use super::super::retention::RetainedSegment;
use super::super::segment::{new_log_id, unix_ns};
use super::super::walk::{Identity, Walk};
use super::super::{aside, cut};
use super::{ActiveSegment, Recovered, Recovery, cut_off, put_aside};
use crate::{Error, FileOptions};
use std::path::{Path, PathBuf};

pub(super) fn recover(
    files: &LogFiles,
    folder: &Path,
    names: &SegmentNames,
) -> Result<Recovery, Error> {
    let mut segments = chain::read_headers(files, names)?;
    let Some(LogEnd { last, mut walk }) = end(files, &mut segments, true)? else {
        return begin_anew(files, folder, &segments);
    };
    let named = |segment: &SegmentHead| (segment.number, segment.path.clone());
    let later: SegmentNames = segments[last + 1..].iter().map(named).collect();
    let log_id = segments[last].header.map_or(0, |header| header.log_id);
    let EndScan { rest, later: rests, lost } = scan::behind(&mut walk, log_id, &later)?;
    if let Some(lost) = lost {
        return Err(lost);
    }
    let ends = rests.iter().map(|rest| rest.end);
    let first_sequence = segments[0].header.map_or(0, |header| header.first_sequence);
    let mut recovered = Recovered {
        records: walk.sequence.saturating_sub(first_sequence),
        closed: walk.is_closed() && rest.end == walk.end && ends.clone().all(|end| end == 0),
        ..Recovered::default()
    };
    let later: Vec<_> = later.iter().map(|(_, path)| path.clone()).zip(ends).collect();
    complete_cuts(files, folder, names, &segments)?;
    cut_off(&mut walk.input, walk.end, rest.end, &later, &mut recovered)?;
    if rests.iter().chain([&rest]).any(|rest| rest.durable_sequence(walk.sequence) > stated(&walk))
    {
        state_durable(&mut walk)?;
    }
    Ok(recovery(&segments[..=last], &walk, recovered))
}

/// Returns the durable frontier stated by the last batch of a walk.
fn stated(walk: &Walk) -> u64 {
    walk.last.map_or(0, |(batch, _)| batch.durable_sequence)
}

/// Writes and flushes a batch without records at the end of a walk. It states that all records
/// before it are durable, as removed batches did. Without it, one of the records could be lost
/// later and count as torn.
fn state_durable(walk: &mut Walk) -> Result<(), Error> {
    let place = walk.end.next_multiple_of(walk.block_bytes);
    let batch = BatchHeader {
        bytes: batch::HEADER_BYTES as u32,
        first_sequence: walk.sequence,
        durable_sequence: walk.sequence,
        written_at_ns: unix_ns(),
        after_cut: !walk.is_between_batches(),
        ..BatchHeader::default()
    };
    let mut bytes = [0; batch::HEADER_BYTES];
    let checksum = batch.encode(&mut bytes, walk.seed);
    let mut engine = walk.input.files.engine();
    // Not direct, as it is not a whole block.
    let file = engine.open_file(&walk.input.path, &FileOptions::new().write(true))?;
    aside::write(&mut engine, file, place, &bytes)?;
    engine.flush(file)?;
    engine.close_file(file)?;
    drop(engine);
    walk.end_behind(place, batch, checksum);
    Ok(())
}

/// Starts a new log because nothing was ever intact. Keeps the old files aside.
fn begin_anew(
    files: &LogFiles,
    folder: &Path,
    segments: &[SegmentHead],
) -> Result<Recovery, Error> {
    let mut later = Vec::with_capacity(segments.len());
    for SegmentHead { path, .. } in segments {
        later.push((path.clone(), scan::of_file(files, path, Identity::Lost)?.end));
    }
    let mut recovered = Recovered::default();
    put_aside(&mut files.engine(), &later, &mut recovered)?;
    files.engine().sync_folder(folder)?;
    Ok(Recovery::nothing(new_log_id(), recovered))
}

/// Completes a cut interrupted by a crash: deletes the files that it removed from the log, and the
/// end of the segment that it left.
fn complete_cuts(
    files: &LogFiles,
    folder: &Path,
    names: &SegmentNames,
    segments: &[SegmentHead],
) -> Result<(), Error> {
    let is_live = |number: u64| segments.binary_search_by_key(&number, |one| one.number).is_ok();
    let dead: Vec<PathBuf> =
        names.iter().filter(|(of, _)| !is_live(*of)).map(|(_, path)| path.clone()).collect();
    let mut left = Vec::new();
    for (before, after) in segments.iter().zip(&segments[1..]) {
        let Some(header) = after.header.filter(|header| header.cut_behind.is_some()) else {
            continue;
        };
        if cut::is_left(files, before, &header)? {
            left.push((before.path.clone(), cut::end_before(&header)));
        } else if std::ptr::eq(after, &segments[segments.len() - 1]) {
            // The flush of the shorter file may have failed.
            Input::open(files, &before.path, true, false)?.flush()?;
        }
    }
    let mut engine = files.engine();
    if !dead.is_empty() || !left.is_empty() {
        // The name of the segment that states the cut is durable before any record is gone.
        engine.sync_folder(folder)?;
    }
    cut::remove(&mut engine, &dead)?;
    for (path, end) in left {
        let options = FileOptions { write: true, ..FileOptions::default() };
        let file = engine.open_file(&path, &options)?;
        cut::shorten(&mut engine, file, end)?;
    }
    Ok(())
}

fn recovery(segments: &[SegmentHead], walk: &Walk, recovered: Recovered) -> Recovery {
    let header = |segment: &SegmentHead| segment.header.expect("its order was checked");
    let (active, sealed) = segments.split_last().expect("the walk ended in one");
    let sealed = sealed.iter().zip(&segments[1..]).map(|(segment, next)| RetainedSegment {
        path: segment.path.clone(),
        bytes: segment.file_bytes,
        end_sequence: header(next).first_sequence,
        written_at_ns: header(next).created_at_ns,
        is_written: false,
    });
    Recovery {
        recovered,
        log_id: header(active).log_id,
        sealed: sealed.collect(),
        active: Some(ActiveSegment {
            path: active.path.clone(),
            number: active.number,
            bytes: walk.end,
            block_bytes: header(active).block_bytes,
            created_at_ns: header(active).created_at_ns,
            last_checksum: walk.last.map_or(0, |(_, checksum)| checksum),
            after_cut: !walk.is_between_batches(),
            longest_bytes: active.longest_bytes().unwrap_or(0),
        }),
        first_sequence: header(&segments[0]).first_sequence,
        next_sequence: walk.sequence,
    }
}
