//! Recovery, which finds the end of a log opened for writing and cuts off the torn end that a crash
//! has left.

#[cfg(test)]
mod tests;

use super::batch::{self, BatchHeader};
use super::chain::{self, SegmentHead};
use super::input::{Input, LogFiles};
use super::names::{self, SegmentNames};
use super::rescue::end::{LogEnd, end};
use super::rescue::scan::{self, EndScan};
use super::retention::RetainedSegment;
use super::segment::{self, Layout, OpenSegment, Start, clock_is_back, new_log_id, unix_ns};
use super::state::LogStats;
use super::walk::{Identity, Walk};
use super::{aside, cut, prepare};
use crate::engine::folder_of;
use crate::{Engine, Error, FileOptions};
use std::path::PathBuf;

/// A recovered log. Its end is intact, and all records in it are durable.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The findings of the recovery, and the log's first record.
    pub recovered: LogStats,
    /// The log's random number. Recovery chooses it for a new log.
    pub log_id: u64,
    /// The segments before the last one, in order.
    pub sealed: Vec<RetainedSegment>,
    /// The last segment, in which the log continues; `None` in a new log.
    pub active: Option<ActiveSegment>,
    /// The sequence that the next record will get.
    pub next_sequence: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ActiveSegment {
    pub path: PathBuf,
    pub number: u64,
    /// The length of the file, which recovery has cut off after the last record.
    pub bytes: u64,
    pub block_bytes: u32,
    /// The time when the segment was begun, in nanoseconds since 1970.
    pub created_at_ns: u64,
    /// The checksum in the header of the segment's last batch.
    pub last_checksum: u32,
    /// Whether recovery has removed bytes at the end, which the next batch states.
    pub after_cut: bool,
    /// The sequence after the segment's last record, and the time of its last batch.
    pub end_sequence: u64,
    pub written_at_ns: u64,
    /// The maximum length of a batch in the segment, in bytes; 0 if there is no limit.
    pub longest_bytes: u32,
}

/// A file after the end of the log, and the offset at which its content ends.
pub(crate) type LaterFile = (PathBuf, u64);

/// Recovers the log in the folder of `files`: cuts off a torn end and keeps it aside, and flushes
/// the rest before relying on it.
///
/// If power is lost at any moment, the next recovery finds the same records.
///
/// Fails with [`Error::Damaged`] if durable records cannot be read.
pub(super) fn recover(files: &LogFiles) -> Result<Recovery, Error> {
    let folder = files.path();
    let paths = files.engine().list(folder)?;
    names::check_format(folder, &paths)?;
    // The lock is held, so no other process is still writing these temporary files.
    for path in paths.iter().filter(|path| cut::is_left_over(path)) {
        files.engine().remove(path)?;
    }
    recover_named(files, &names::among(paths), 0)
}

/// Ends the log at byte `end` of a file. Keeps aside the bytes from there to `torn_end`, and the
/// later files.
fn cut_off(
    input: &mut Input,
    end: u64,
    torn_end: u64,
    later: &[LaterFile],
    recovered: &mut LogStats,
) -> Result<(), Error> {
    recovered.torn_bytes = torn_end - end;
    if torn_end > end {
        recovered.kept_aside.push(aside::copy(input, end, torn_end, "torn")?);
        // The copy must be durable before its source is removed.
        input.files.engine().sync_folder(folder_of(&input.path))?;
    }
    let mut engine = input.files.engine();
    put_aside(&mut engine, later, recovered)?;
    if input.len_bytes != end {
        engine.truncate(input.file, end)?;
        engine.flush(input.file)?;
    }
    engine.sync_folder(folder_of(&input.path))
}

/// Removes files from the log: renames files that have content, and deletes empty ones. Starts with
/// the newest, so that there is never a gap.
fn put_aside(engine: &mut Engine, later: &[LaterFile], found: &mut LogStats) -> Result<(), Error> {
    for (path, end) in later.iter().rev() {
        found.torn_bytes += end;
        if *end == 0 {
            engine.remove(path)?;
        } else {
            found.kept_aside.push(aside::rename(engine, path)?);
        }
    }
    Ok(())
}

impl ActiveSegment {
    /// Opens the segment so that the log can continue in it.
    pub(super) fn open(
        &self,
        engine: &mut Engine,
        layout: &Layout,
        is_direct: bool,
    ) -> Result<OpenSegment, Error> {
        let options = FileOptions::new().write(true).direct(is_direct);
        let file = prepare::open(engine, &self.path, &options)?;
        let path = self.path.clone();
        let mut segment = OpenSegment::new(file, path, self.number, self.created_at_ns);
        segment.end = self.bytes;
        segment.prepared = self.bytes.next_multiple_of(layout.block_bytes);
        segment.written = segment.prepared;
        segment.last_checksum = self.last_checksum;
        segment.end_sequence = self.end_sequence;
        Ok(segment)
    }
}

impl Recovery {
    /// Returns the position at which the next batch begins.
    pub(super) fn start(&self, layout: &Layout) -> Start {
        let first_sequence = self.next_sequence;
        let Some(active) = &self.active else {
            return Start { first_sequence, segment: 1, offset: 0 };
        };
        let offset = active.bytes.next_multiple_of(layout.block_bytes);
        // A batch longer than the segment's stated maximum must start the next segment.
        let longest_bytes = u64::from(active.longest_bytes);
        let is_too_long = longest_bytes > 0 && layout.capacity > longest_bytes;
        let rotates = is_too_long || clock_is_back(unix_ns(), active.written_at_ns);
        layout.start(Start { first_sequence, segment: active.number, offset }, rotates, 0)
    }
}

/// Recovers the log that consists of the segments with these names. All records before `durable`
/// are known to be durable, whatever the log's batches state. If one of these records can't be
/// read, fails without cutting anything off.
pub(super) fn recover_named(
    files: &LogFiles,
    names: &SegmentNames,
    durable: u64,
) -> Result<Recovery, Error> {
    let mut segments = chain::read_headers(files, names)?;
    let Some(LogEnd { last, mut walk }) = end(files, &mut segments, true)? else {
        return begin_anew(files, &segments);
    };
    let named = |segment: &SegmentHead| (segment.number, segment.path.clone());
    let later: SegmentNames = segments[last + 1..].iter().map(named).collect();
    let log_id = segments[last].header.map_or(0, |header| header.log_id);
    // Everything after this position may be cut off, so read it twice.
    scan::behind(&mut walk, log_id, &later)?.lost.map_or(Ok(()), Err)?;
    walk.input.look_again()?;
    let EndScan { rest, later: rests, lost } = scan::behind(&mut walk, log_id, &later)?;
    lost.map_or(Ok(()), Err)?;
    if walk.sequence < durable {
        return Err(segment::lost(&walk.input.path, walk.place, walk.sequence));
    }
    let ends = rests.iter().map(|rest| rest.end);
    let first_sequence = segments[0].header.map_or(0, |header| header.first_sequence);
    let mut recovered = LogStats {
        first_sequence,
        found_records: walk.sequence.saturating_sub(first_sequence),
        found_closed: walk.is_closed() && rest.end == walk.end && ends.clone().all(|end| end == 0),
        ..LogStats::default()
    };
    let later: Vec<_> = later.iter().map(|(_, path)| path.clone()).zip(ends).collect();
    complete_cuts(files, names, &segments)?;
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

/// Writes and flushes an empty batch after the last one of a walk. The new batch states that all
/// earlier records are durable, as the removed batches did. Otherwise, a record lost later would be
/// mistaken for a torn write.
fn state_durable(walk: &mut Walk) -> Result<(), Error> {
    let place = walk.end.next_multiple_of(walk.block_bytes);
    let batch = BatchHeader {
        bytes: batch::HEADER_BYTES as u32,
        first_sequence: walk.sequence,
        durable_sequence: walk.sequence,
        written_at_ns: unix_ns().max(walk.last.map_or(0, |(batch, _)| batch.written_at_ns)),
        after_cut: !walk.is_between_batches(),
        ..BatchHeader::default()
    };
    let mut bytes = [0; batch::HEADER_BYTES];
    let checksum = batch.encode(&mut bytes, walk.seed);
    let mut engine = walk.input.files.engine();
    // The write is not direct, because it does not fill a whole block.
    let file = engine.open_file(&walk.input.path, &FileOptions::new().write(true))?;
    engine.write(file, place, &bytes)?;
    engine.flush(file)?;
    engine.close_file(file)?;
    drop(engine);
    walk.end_behind(place, batch, checksum);
    Ok(())
}

/// Starts a new log, because no part of the old one was ever intact. Keeps the old files aside.
fn begin_anew(files: &LogFiles, segments: &[SegmentHead]) -> Result<Recovery, Error> {
    let mut later = Vec::with_capacity(segments.len());
    for SegmentHead { path, .. } in segments {
        later.push((path.clone(), scan::of_file(files, path, Identity::Lost)?.end));
    }
    let mut recovered = LogStats::default();
    put_aside(&mut files.engine(), &later, &mut recovered)?;
    files.engine().sync_folder(files.path())?;
    let (log_id, sealed) = (new_log_id(), Vec::new());
    Ok(Recovery { recovered, log_id, sealed, active: None, next_sequence: 0 })
}

/// Completes a cut that a crash has interrupted: deletes the files that the cut removed from the
/// log, and the removed end of the continued segment.
fn complete_cuts(
    files: &LogFiles,
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
            // The flush of the shortened file may have failed.
            Input::open(files, &before.path, true, false)?.flush()?;
        }
    }
    if dead.is_empty() && left.is_empty() {
        return Ok(());
    }
    let mut engine = files.engine();
    // The name of the segment that states the cut must be durable before any record is deleted.
    engine.sync_folder(files.path())?;
    // The newest file is removed first.
    dead.iter().rev().try_for_each(|path| engine.remove(path))?;
    for (path, end) in left {
        let file = engine.open_file(&path, &FileOptions::new().write(true))?;
        // Truncation writes no block that remains in the log.
        engine.truncate(file, end)?;
        engine.flush(file)?;
        engine.close_file(file)?;
    }
    Ok(())
}

fn recovery(segments: &[SegmentHead], walk: &Walk, recovered: LogStats) -> Recovery {
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
            end_sequence: walk.sequence,
            written_at_ns: walk.last.map_or(0, |(batch, _)| batch.written_at_ns),
            longest_bytes: active.longest_bytes().unwrap_or(0),
        }),
        next_sequence: walk.sequence,
    }
}
