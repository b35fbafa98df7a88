//! The salvage of a log, which finds every intact record in order, and every gap between them.
//!
//! A segment is read in order as far as possible. If the log continues after that position, the
//! whole file is scanned, and what is found is put in order.

use super::Damage;
use super::scan::{self, Found, Run};
use crate::Error;
use crate::log::batch;
use crate::log::chain::{self, SegmentHead};
use crate::log::input::{Input, LogFiles};
use crate::log::names;
use crate::log::record::{self, Frame};
use crate::log::segment::{self, SegmentHeader};
use crate::log::walk::{Identity, Walk, WalkStep, valid_frame};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The block size assumed for a segment if no header states it, in bytes.
const BLOCK_BYTES: u32 = 4096;

const NOT_AS_WRITTEN: &str = "a record here differs from what was written";

/// A finding of a salvage. The findings are reported in the order of the log.
pub(super) enum Event<'a> {
    /// The beginning of a segment, with the header that it has or should have. Its file may be
    /// missing.
    Begin {
        path: &'a Path,
        header: &'a SegmentHeader,
        file_bytes: u64,
    },
    Frame {
        sequence: u64,
        offset: u64,
        frame: Frame<'a>,
    },
    Lost(&'a Damage),
    /// Bytes after the last record of a segment, although the log continues in the next segment.
    Garbage(PathBuf, Range<u64>),
    /// The end of the segment, after its last valid part.
    End {
        used_bytes: u64,
    },
}

/// The receiver of a salvage's findings.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Event) -> Result<(), Error>;

#[derive(Debug, Default)]
pub(super) struct Tail {
    pub next_sequence: u64,
    pub closed: bool,
    /// The number of bytes after the end, up to the last one that is not zero.
    pub torn_bytes: u64,
}

/// Reads the whole log and reports every finding to `sink`.
pub(super) fn salvage(files: &LogFiles, sink: Sink) -> Result<Tail, Error> {
    let segments = chain::segments(files)?;
    let known = segments.iter().find_map(|segment| segment.header);
    let firsts = segments.iter().filter_map(|segment| segment.first_batch);
    let mut salvage = Salvage {
        files,
        log_id: known.map_or(0, |header| header.log_id),
        sequence: 0,
        durable: firsts.map(|batch| batch.durable_sequence).max().unwrap_or(0),
        scanned: 0,
        is_damaged: false,
        segments,
        sink,
    };
    salvage.run()
}

struct Salvage<'a> {
    files: &'a LogFiles,
    segments: Vec<SegmentHead>,
    /// The log's random number; 0 while no header is known.
    log_id: u64,
    /// The sequence of the next expected record.
    sequence: u64,
    /// The sequence before which all records are known to have been durable.
    durable: u64,
    /// The number of segments that have been scanned for that sequence.
    scanned: usize,
    /// Whether damage in the current segment has been reported.
    is_damaged: bool,
    sink: Sink<'a>,
}

impl Salvage<'_> {
    fn run(&mut self) -> Result<Tail, Error> {
        let Some(first) = self.segments.first() else { return Ok(Tail::default()) };
        self.sequence = match first.header {
            Some(header) => header.first_sequence,
            None if first.number == 1 => 0,
            None => self.scan(0)?.first_sequence(0).unwrap_or(0),
        };
        for index in 0..self.segments.len() {
            let before = self.segments[index.saturating_sub(1)].number;
            if index > 0 && !self.segments[index].continues(before) {
                if !self.is_part(index)? {
                    return self.end_before(index);
                }
                self.missing(before + 1, index)?;
            }
            if let Some(tail) = self.segment(index)? {
                return Ok(tail);
            }
        }
        Ok(Tail { next_sequence: self.sequence, ..Tail::default() })
    }

    /// Ends the log before this segment. Any bytes from there on belong to a torn write.
    fn end_before(&mut self, index: usize) -> Result<Tail, Error> {
        let mut tail = Tail { next_sequence: self.sequence, ..Tail::default() };
        for index in index..self.segments.len() {
            tail.torn_bytes += self.scan(index)?.end;
        }
        Ok(tail)
    }

    /// Scans a whole file for batches of this log.
    fn scan(&self, index: usize) -> Result<Found, Error> {
        let identity = chain::identity(&self.segments, index);
        match scan::of_file(self.files, &self.segments[index].path, identity) {
            Err(error) if self.was_removed(index, &error)? => Ok(Found::default()),
            result => result,
        }
    }

    /// Returns whether the error means that retention has removed the segment in the meantime.
    fn was_removed(&self, index: usize, error: &Error) -> Result<bool, Error> {
        let number = self.segments[index].number;
        names::was_removed(self.files, number, error)
    }

    /// Returns the header that a segment has or should have.
    fn header(&self, index: usize) -> SegmentHeader {
        let segment = &self.segments[index];
        let other = self.segments.iter().find_map(|segment| segment.header);
        segment.header.unwrap_or(SegmentHeader {
            log_id: self.log_id,
            segment_id: segment.number,
            first_sequence: self.sequence,
            block_bytes: other.map_or(BLOCK_BYTES, |header| header.block_bytes),
            ..SegmentHeader::default()
        })
    }

    /// Scans the segments from this one on until some batch states that all records before `until`
    /// were durable.
    fn prove(&mut self, index: usize, until: u64) -> Result<(), Error> {
        for index in index.max(self.scanned)..self.segments.len() {
            if self.durable >= until {
                break;
            }
            self.durable = self.durable.max(self.scan(index)?.durable_sequence(self.sequence));
            self.scanned = index + 1;
        }
        Ok(())
    }

    /// Returns whether the log continues from this segment on. It does if the next record was
    /// durable, or all records before some later segment were. In that case, every earlier segment
    /// is part of the log, however damaged it is.
    fn is_part(&mut self, index: usize) -> Result<bool, Error> {
        self.prove(index, self.sequence + 1)?;
        let rest = self.segments.get(index..).unwrap_or_default();
        let mut headers = rest.iter().filter_map(|segment| segment.header);
        Ok(self.durable > self.sequence
            || headers.any(|header| header.first_sequence <= self.durable))
    }

    /// Returns the sequence of the first record of the log that is found in this segment or a later
    /// one; `None` if none is found.
    fn next_found(&self, index: usize) -> Result<Option<u64>, Error> {
        for index in index..self.segments.len() {
            let header = self.segments[index].header;
            if let Some(header) = header.filter(|header| header.first_sequence >= self.sequence) {
                return Ok(Some(header.first_sequence));
            }
            if let Some(first_sequence) = self.scan(index)?.first_sequence(self.sequence) {
                return Ok(Some(first_sequence));
            }
        }
        Ok(None)
    }

    /// Reports the missing segments from `number` up to the one before the segment at `index`.
    fn missing(&mut self, number: u64, index: usize) -> Result<(), Error> {
        let next_sequence = self.next_found(index)?.unwrap_or(self.sequence);
        for number in number..self.segments[index].number {
            let path = segment::path(self.files.path(), number);
            let first_sequence = self.sequence;
            let header = SegmentHeader { segment_id: number, first_sequence, ..self.header(index) };
            (self.sink)(Event::Begin { path: &path, header: &header, file_bytes: 0 })?;
            self.lost(&path, 0, Some(next_sequence), "the segment is missing")?;
            (self.sink)(Event::End { used_bytes: 0 })?;
        }
        Ok(())
    }

    /// Reports damage, and continues with record `next_sequence` if known.
    fn lost(
        &mut self,
        path: &Path,
        offset: u64,
        next_sequence: Option<u64>,
        because: &str,
    ) -> Result<(), Error> {
        self.is_damaged = true;
        let records = next_sequence.map(|next| next - self.sequence);
        let (path, because) = (path.to_owned(), because.to_owned());
        let damage =
            Damage { path, offset_bytes: offset, sequence: self.sequence, records, because };
        (self.sink)(Event::Lost(&damage))?;
        self.sequence = next_sequence.unwrap_or(self.sequence);
        Ok(())
    }

    /// Reports a segment. Returns the log's end if it is in or before this segment.
    fn segment(&mut self, index: usize) -> Result<Option<Tail>, Error> {
        let SegmentHead { path, header: own, file_bytes, number, limit, .. } =
            &self.segments[index];
        let (path, own, file_bytes, limit) = (path.clone(), *own, *file_bytes, *limit);
        // If segments before the first one have been removed, its start was durable.
        let is_left = index == 0 && *number > 1;
        if own.is_none() && !is_left && !self.is_part(index)? {
            return self.end_before(index).map(Some);
        }
        let input = match Input::open(self.files, &path, true, false) {
            Err(error) if self.was_removed(index, &error)? => return Ok(None),
            input => input?,
        };
        self.is_damaged = false;
        let header = self.header(index);
        let (first, end) = (header.first_sequence, self.sequence);
        self.sequence = first.max(end);
        let stated = SegmentHeader { first_sequence: self.sequence, ..header };
        (self.sink)(Event::Begin { path: &path, header: &stated, file_bytes })?;
        if first < end {
            self.lost(&path, 0, Some(end), &chain::overlap(first, end))?;
        }
        let mut walk = Walk::new(input, &header);
        walk.limit = limit;
        if own.is_some() {
            if let Some(end) = self.in_order(index, &mut walk)? {
                return Ok(end);
            }
        } else {
            self.lost(&path, 0, Some(self.sequence), segment::NOT_BEGUN)?;
        }
        self.scattered(index, &mut walk)
    }

    /// Reports a segment from its beginning on, as a reader reads it. Returns `None` if the segment
    /// is damaged after that part; otherwise the log's end, if it is in this segment.
    fn in_order(&mut self, index: usize, walk: &mut Walk) -> Result<Option<Option<Tail>>, Error> {
        loop {
            loop {
                match walk.next()? {
                    WalkStep::Frame { sequence, offset, frame } if sequence >= self.sequence => {
                        (self.sink)(Event::Frame { sequence, offset, frame })?;
                        self.sequence = sequence + 1;
                    }
                    WalkStep::Batch | WalkStep::Frame { .. } => {}
                    WalkStep::End => break,
                }
            }
            let used_bytes = walk.end;
            let is_whole = self.next_first(index).is_some_and(|next| next <= self.sequence);
            if walk.sequence >= walk.limit {
                // The rest of the segment is not part of the log. The writer that made the cut has
                // not removed it yet.
                (self.sink)(Event::End { used_bytes })?;
                return Ok(Some(None));
            }
            let rest = scan::after(walk)?;
            let more_bytes = rest.end.saturating_sub(used_bytes);
            if is_whole {
                if more_bytes > 0 && !self.is_damaged {
                    let path = walk.input.path.clone();
                    (self.sink)(Event::Garbage(path, used_bytes..rest.end))?;
                }
                (self.sink)(Event::End { used_bytes })?;
                return Ok(Some(None));
            }
            self.durable = self.durable.max(rest.durable_sequence(self.sequence));
            let is_part = self.is_part(index + 1)?;
            // A writer may have continued before the proof that the next record was durable was
            // read.
            if (is_part || more_bytes > 0) && walk.has_come()? {
                continue;
            }
            if is_part {
                return Ok(None);
            }
            let mut tail = self.end_before(index + 1)?;
            tail.torn_bytes += more_bytes;
            tail.closed = walk.is_closed() && tail.torn_bytes == 0;
            (self.sink)(Event::End { used_bytes })?;
            return Ok(Some(Some(tail)));
        }
    }

    /// Reports the intact records in a damaged segment after the end of a walk, wherever they are.
    /// Returns the log's end, if it is in this segment.
    fn scattered(&mut self, index: usize, walk: &mut Walk) -> Result<Option<Tail>, Error> {
        let path = walk.input.path.clone();
        let next_first = self.next_first(index);
        let found = match self.log_id {
            // No header identifies the log, but a batch may. If none does, nothing in the file is
            // part of the log: it may hold the batches of a removed segment whose file was reused.
            0 => match scan::of_file(self.files, &path, Identity::Lost)? {
                found if found.runs.is_empty() => found,
                found => scan::thorough(walk, found.identity(), self.sequence)?,
            },
            _ => scan::thorough(walk, walk.identity(), self.sequence)?,
        };
        self.durable = self.durable.max(found.durable_sequence(self.sequence));
        self.prove(index + 1, next_first.unwrap_or(u64::MAX))?;
        let later = self.segments[index + 1..].iter().find_map(|later| later.header);
        let limit = walk.limit.min(later.map_or(u64::MAX, |later| later.first_sequence));
        let mut runs = found.runs;
        runs.retain(|run| run.sequence < limit && run.counts(self.durable));
        runs.sort_by_key(|run| (run.sequence, run.batch.is_none(), run.place));
        let before = self.sequence;
        let (mut place, mut used_bytes, mut is_closed) = (walk.place, walk.end, false);
        for (number, run) in runs.iter().enumerate() {
            // If headers and loose records contradict each other, the headers are believed.
            let mut later = runs[number + 1..].iter().filter(|later| later.batch.is_some());
            let until = match run.batch {
                Some(_) => limit,
                None => later.next().map_or(self.durable, |later| later.sequence).min(limit),
            };
            let end = run.end_sequence().min(until);
            if end < self.sequence || (run.count > 0 && end == self.sequence) {
                continue;
            }
            if run.sequence > self.sequence && self.sequence >= self.durable {
                // The rest is a torn write.
                break;
            }
            let is_here = run.place == place + batch::HEADER_BYTES as u64;
            let is_elsewhere = run.count > 0 && !is_here && !self.is_damaged;
            if run.sequence > self.sequence || is_elsewhere {
                let next = run.sequence.max(self.sequence);
                self.lost(&path, place, Some(next), NOT_AS_WRITTEN)?;
            }
            self.frames(&mut walk.input, run, end)?;
            is_closed = run.batch.is_some_and(|batch| batch.closed);
            place =
                if run.ends_batch() { run.end.next_multiple_of(walk.block_bytes) } else { run.end };
            used_bytes = used_bytes.max(run.end);
        }
        walk.input.pause()?;
        if self.sequence > before && !self.is_damaged {
            // Readers ignore an incomplete group as a whole, so the records found here count as
            // lost, even if none of the group's missing records was stated to be durable.
            self.lost(&path, walk.place, Some(self.sequence), NOT_AS_WRITTEN)?;
        }
        let more_bytes = found.end.saturating_sub(used_bytes);
        let ended = match next_first {
            Some(next) if next > self.sequence => {
                self.lost(&path, place, Some(next), NOT_AS_WRITTEN)?;
                None
            }
            Some(_) => None,
            None if self.is_part(index + 1)? => {
                let next = self.next_found(index + 1)?;
                // Lost records after a clean end are attributed to the next segment, if that
                // segment is damaged.
                let is_clean = more_bytes == 0 && place.is_multiple_of(walk.block_bytes);
                let is_next_ones = index + 1 < self.segments.len() || next == Some(self.sequence);
                if !(is_clean && is_next_ones) {
                    self.lost(&path, place, next, NOT_AS_WRITTEN)?;
                }
                None
            }
            None => {
                let mut tail = self.end_before(index + 1)?;
                tail.torn_bytes += more_bytes;
                tail.closed = is_closed && tail.torn_bytes == 0;
                Some(tail)
            }
        };
        (self.sink)(Event::End { used_bytes })?;
        Ok(ended)
    }

    /// Reports the frames of a run from the next expected record up to record `end`.
    fn frames(&mut self, input: &mut Input, run: &Run, end: u64) -> Result<(), Error> {
        let mut offset = run.place;
        for sequence in run.sequence..end {
            let found = valid_frame(input, run.seed, u64::MAX, offset, sequence)?;
            let Some((len, is_data)) = found else { break };
            if sequence >= self.sequence {
                let own = &input.held(offset, len)[record::HEADER_BYTES..];
                let frame = if is_data { Frame::Data(own) } else { Frame::Skipped(own.len()) };
                (self.sink)(Event::Frame { sequence, offset, frame })?;
                self.sequence = sequence + 1;
            }
            offset += len as u64;
        }
        Ok(())
    }

    /// Returns the first sequence of the next segment, as its header states it.
    fn next_first(&self, index: usize) -> Option<u64> {
        let number = self.segments[index].number;
        let next = self.segments.get(index + 1).filter(|next| next.continues(number));
        next.and_then(|next| next.header).map(|header| header.first_sequence)
    }
}
