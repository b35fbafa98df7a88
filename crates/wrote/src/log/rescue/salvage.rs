//! Salvages a framed log: finds every intact record, and every gap between them.
//!
//! A process may write the log concurrently. The proof that a record was durable may be read after
//! the record's place, and both may have arrived in between. So the salvage reads a place again
//! before calling anything lost: a record that was durable before its proof was read is found then,
//! or is lost.

use super::super::chain::{self, SegmentHead};
use super::super::damage::Damage;
use super::super::format::Format;
use super::super::input::{Input, LogFiles};
use super::super::names;
use super::super::record::{Frame, u32_at};
use super::super::segment::{self, SegmentHeader};
use super::super::walk::{Identity, Walk, WalkStep};
use super::pass_over::pass_over;
use super::rest::{self, Rest};
use crate::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The assumed block of an unknown segment, and the largest accepted from a damaged header.
const BLOCK_BYTES: u32 = 4096;
const BLOCK_BYTES_MAX: u32 = 1 << 20;

const NOT_AS_WRITTEN: &str = "a record here is not as it was written";

/// A finding of a salvage, in the order of the log.
pub(super) enum Event<'a> {
    /// A segment, with the header that it has or should have; its file may be missing.
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
    /// Bytes after the last record of a segment, although the log continues in the next.
    Garbage(PathBuf, Range<u64>),
    /// The end of the segment, at the end of its last valid part.
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
    /// Bytes after the end that are not zero.
    pub torn_bytes: u64,
}

/// Reads the whole log and reports every finding to `sink`.
pub(super) fn salvage(files: &LogFiles, folder: &Path, sink: Sink) -> Result<Tail, Error> {
    let segments = chain::segments(files, folder)?;
    let mut salvage = Salvage {
        files,
        folder,
        segments,
        log_id: 0,
        sequence: 0,
        durable: 0,
        is_astray: false,
        is_damaged: false,
        partly_read: None,
        read_end: 0,
        sink,
    };
    salvage.identify()?;
    salvage.run()
}

struct Salvage<'a> {
    files: &'a LogFiles,
    folder: &'a Path,
    segments: Vec<SegmentHead>,
    /// The log's number; 0 while no header is known.
    log_id: u64,
    /// The next expected record.
    sequence: u64,
    /// All records before this one are known to have been durable.
    durable: u64,
    /// The salvage is in a misplaced batch, and damage there has been reported.
    is_astray: bool,
    /// Damage of this segment has been reported.
    is_damaged: bool,
    /// The position of a batch of this segment that counts only as a whole, and was read partly.
    partly_read: Option<u64>,
    /// The farthest end of a batch of this segment before the last jump.
    read_end: u64,
    sink: Sink<'a>,
}

/// The outcome of reading a segment.
enum SegmentEnd {
    LogContinues,
    LogEnds(Tail),
}

impl Salvage<'_> {
    /// Finds the log's number and its first record.
    fn identify(&mut self) -> Result<(), Error> {
        let known = self.segments.iter().find_map(|segment| segment.header);
        self.log_id = known.map_or(0, |header| header.log_id);
        let firsts = self.segments.iter().filter_map(|segment| segment.first_batch);
        self.durable = firsts.map(|batch| batch.durable_sequence).max().unwrap_or(0);
        let Some(first) = self.segments.first() else { return Ok(()) };
        self.sequence = match first.header {
            Some(header) => header.first_sequence,
            None if first.number == 1 => 0,
            None => {
                let found = rest::scan_file(self.files, &first.path, 0, Identity::Lost)?.next;
                found.map_or(0, |(_, batch)| batch.first_sequence)
            }
        };
        Ok(())
    }

    fn run(&mut self) -> Result<Tail, Error> {
        let mut index = 0;
        while index < self.segments.len() {
            if index > 0 {
                let before = self.segments[index - 1].number;
                if !self.segments[index].continues(before) && !self.missing(before + 1, index)? {
                    return self.end_before(index);
                }
            }
            match self.segment(index)? {
                SegmentEnd::LogContinues => index += 1,
                SegmentEnd::LogEnds(tail) => return Ok(tail),
            }
        }
        Ok(Tail { next_sequence: self.sequence, ..Tail::default() })
    }

    /// Ends the log before this segment: any bytes from there on are a torn write.
    fn end_before(&mut self, index: usize) -> Result<Tail, Error> {
        let mut tail = Tail { next_sequence: self.sequence, ..Tail::default() };
        for index in index..self.segments.len() {
            tail.torn_bytes += self.scan(index)?.end;
        }
        Ok(tail)
    }

    /// Scans a whole file for batches that continue the log.
    fn scan(&self, index: usize) -> Result<Rest, Error> {
        let SegmentHead { path, header, .. } = &self.segments[index];
        let identity = match (header, self.log_id) {
            (Some(header), _) => Identity::of(header),
            (None, 0) => Identity::Lost,
            (None, _) => Identity::of(&self.header(index)),
        };
        match rest::scan_file(self.files, path, self.sequence, identity) {
            Err(error) if self.was_removed(index, &error)? => Ok(Rest::default()),
            result => result,
        }
    }

    /// Returns whether the error means that retention has removed the segment since.
    fn was_removed(&self, index: usize, error: &Error) -> Result<bool, Error> {
        let number = self.segments[index].number;
        names::was_removed(self.files, self.folder, Format::Framed, number, error)
    }

    /// Reads the unreadable header of a segment again. Returns whether it is valid now.
    fn look_again(&mut self, index: usize) -> Result<bool, Error> {
        let SegmentHead { number, path, .. } = &self.segments[index];
        let found = match chain::read_headers(self.files, &[(*number, path.clone())]) {
            Err(error) if self.was_removed(index, &error)? => return Ok(false),
            found => found?.pop().expect("one name was given"),
        };
        let Some(header) = found.header else { return Ok(false) };
        let known = self.segments.iter().find(|segment| segment.header.is_some());
        if let Some(known) = known {
            chain::check_log((&found.path, header.log_id), (&known.path, self.log_id))?;
        }
        self.log_id = header.log_id;
        self.segments[index] = found;
        Ok(true)
    }

    /// Returns the header that a segment has, or should have.
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

    /// Returns whether the next record was durable, by the batches from this segment on.
    fn was_durable(&mut self, index: usize) -> Result<bool, Error> {
        for index in index..self.segments.len() {
            if self.durable > self.sequence {
                break;
            }
            self.durable = self.durable.max(self.scan(index)?.durable_sequence);
        }
        Ok(self.durable > self.sequence)
    }

    /// Returns whether all records before some segment from this one on were durable. Then all
    /// earlier segments are part of the log, however damaged.
    fn is_followed(&self, index: usize) -> bool {
        let headers = self.segments[index..].iter().filter_map(|segment| segment.header);
        headers.into_iter().any(|header| header.first_sequence <= self.durable)
    }

    /// Returns the first record of the log from this segment on.
    fn next_found(&self, index: usize) -> Result<Option<u64>, Error> {
        for index in index..self.segments.len() {
            let header = self.segments[index].header;
            if let Some(header) = header.filter(|header| header.first_sequence >= self.sequence) {
                return Ok(Some(header.first_sequence));
            }
            if let Some((_, batch)) = self.scan(index)?.next {
                return Ok(Some(batch.first_sequence));
            }
        }
        Ok(None)
    }

    /// Reports the missing segments from `number` to the one at `index`, if they were durable.
    /// Returns whether they were.
    fn missing(&mut self, number: u64, index: usize) -> Result<bool, Error> {
        if !self.was_durable(index)? && !self.is_followed(index) {
            return Ok(false);
        }
        let next_sequence = self.next_found(index)?.unwrap_or(self.sequence);
        for number in number..self.segments[index].number {
            let path = segment::path(self.folder, Format::Framed, number);
            let first_sequence = self.sequence;
            let header = SegmentHeader { segment_id: number, first_sequence, ..self.header(index) };
            (self.sink)(Event::Begin { path: &path, header: &header, file_bytes: 0 })?;
            self.lost(&path, 0, Some(next_sequence), "the segment is not there")?;
            (self.sink)(Event::End { used_bytes: 0 })?;
        }
        Ok(true)
    }

    /// Reports damage, and continues with record `next_sequence` if it is known.
    fn lost(
        &mut self,
        path: &Path,
        offset: u64,
        next_sequence: Option<u64>,
        because: &str,
    ) -> Result<(), Error> {
        self.is_damaged = true;
        let records = next_sequence.map(|next| next - self.sequence);
        (self.sink)(Event::Lost(&Damage::new(path, offset, self.sequence, records, because)))?;
        self.sequence = next_sequence.unwrap_or(self.sequence);
        Ok(())
    }

    fn segment(&mut self, index: usize) -> Result<SegmentEnd, Error> {
        if self.segments[index].header.is_none() {
            // If segments before the first one were removed, its start was durable.
            let is_left = index == 0 && self.segments[index].number > 1;
            let was_durable = is_left || self.was_durable(index)? || self.is_followed(index + 1);
            if !self.look_again(index)? && !was_durable {
                return self.end_before(index).map(SegmentEnd::LogEnds);
            }
        }
        let SegmentHead { path, header: own, file_bytes, .. } = &self.segments[index];
        let (path, file_bytes, is_headless) = (path.clone(), *file_bytes, own.is_none());
        let input = match Input::open(self.files, &path, true, false) {
            Err(error) if self.was_removed(index, &error)? => {
                return Ok(SegmentEnd::LogContinues);
            }
            input => input?,
        };
        let mut header = self.header(index);
        let (first, end) = (header.first_sequence, self.sequence);
        header.first_sequence = first.max(end);
        (self.is_astray, self.is_damaged, self.read_end) = (false, false, 0);
        self.partly_read = None;
        (self.sink)(Event::Begin { path: &path, header: &header, file_bytes })?;
        if first < end {
            self.lost(&path, 0, Some(end), &chain::overlap(first, end))?;
            header.first_sequence = first;
        }
        if !is_headless {
            let mut walk = Walk::new(input, &header);
            walk.limit = self.segments[index].limit;
            while walk.sequence < end {
                if let WalkStep::End = walk.next()? {
                    return self.without_more(index, &path);
                }
            }
            return self.records(index, walk);
        }
        self.lost(&path, 0, Some(self.sequence), "this is not how a segment begins")?;
        let (seed, block_bytes) = if self.log_id == 0 {
            // No header identifies the log, but a batch does.
            let block_bytes = believable_block(self.files, &path)?;
            (self.scan(index)?.seed, block_bytes)
        } else {
            (header.seed(), header.block_bytes)
        };
        let mut walk = Walk::of(input, seed, u64::from(block_bytes), self.sequence);
        walk.limit = self.segments[index].limit;
        self.records(index, walk)
    }

    /// Skips a segment whose records were all found before.
    fn without_more(&mut self, index: usize, path: &Path) -> Result<SegmentEnd, Error> {
        let next_found = self.next_found(index + 1)?;
        if next_found.is_some_and(|next| next > self.sequence) {
            self.lost(path, 0, next_found, NOT_AS_WRITTEN)?;
        }
        (self.sink)(Event::End { used_bytes: 0 })?;
        Ok(SegmentEnd::LogContinues)
    }

    fn records(&mut self, index: usize, mut walk: Walk) -> Result<SegmentEnd, Error> {
        let end = loop {
            match walk.next()? {
                WalkStep::Batch => {}
                WalkStep::Frame { sequence, offset, frame } => {
                    (self.sink)(Event::Frame { sequence, offset, frame })?;
                }
                WalkStep::End => {
                    self.sequence = walk.sequence;
                    if let Some(end) = self.behind(index, &mut walk)? {
                        break end;
                    }
                }
            }
        };
        // A reader does not enter that batch, even if no record that it lacks is missed.
        if let Some(place) = self.partly_read.filter(|_| !self.is_damaged) {
            let path = walk.input.path.clone();
            self.lost(&path, place, Some(self.sequence), NOT_AS_WRITTEN)?;
        }
        (self.sink)(Event::End { used_bytes: walk.end.max(self.read_end) })?;
        Ok(end)
    }

    /// Enters a partly intact durable batch, if one follows. Returns whether it does.
    fn enters_partly(&mut self, walk: &mut Walk) -> Result<bool, Error> {
        let enters = walk.enters_partly(self.durable)?;
        if enters {
            self.partly_read = Some(walk.place);
        }
        Ok(enters)
    }

    /// Handles the end of a walk. Returns `None` if the log continues in the same segment: after
    /// lost records, or because the next record has arrived in the meantime.
    fn behind(&mut self, index: usize, walk: &mut Walk) -> Result<Option<SegmentEnd>, Error> {
        let is_whole = self.is_whole_before(index, walk.sequence);
        let is_known = !is_whole && self.durable > walk.sequence;
        // So the rest of the segment is not scanned again for each lost record.
        if is_known && (self.enters_partly(walk)? || self.continues_inside(index, walk)?) {
            return Ok(None);
        }
        let is_cut_off = walk.sequence >= walk.limit;
        if is_cut_off {
            // The rest of the segment is not part of the log, and its writer was about to remove
            // it.
            return Ok(Some(SegmentEnd::LogContinues));
        }
        let path = walk.input.path.clone();
        let rest = rest::after(walk)?;
        self.durable = self.durable.max(rest.durable_sequence);
        let end = walk.end.max(self.read_end);
        let is_clean = rest.end <= end && walk.is_between_batches();
        if is_whole {
            let is_more = rest.end > end;
            if is_more && self.came_meanwhile(index, walk)? {
                return Ok(None);
            }
            // In a damaged segment it may be the mark of a closed log, and a repair drops it.
            if is_more && !self.is_damaged {
                (self.sink)(Event::Garbage(path, end..rest.end))?;
            }
            return Ok(Some(SegmentEnd::LogContinues));
        }
        if !self.was_durable(index + 1)? && !self.is_followed(index + 1) {
            let mut tail = self.end_before(index + 1)?;
            tail.closed = walk.is_closed() && is_clean && tail.torn_bytes == 0;
            tail.torn_bytes += rest.end.saturating_sub(end);
            if tail.torn_bytes > 0 && self.came_meanwhile(index, walk)? {
                return Ok(None);
            }
            // The end of a damaged segment may lie elsewhere too.
            if self.is_damaged
                && let Some((at, sequence)) = elsewhere(walk, &rest)?
                && sequence == walk.sequence
            {
                self.jump(walk, at, sequence)?;
                return Ok(None);
            }
            return Ok(Some(SegmentEnd::LogEnds(tail)));
        }
        if !is_known && (self.enters_partly(walk)? || self.continues_inside(index, walk)?) {
            return Ok(None);
        }
        let place = walk.place;
        if let Some((at, sequence)) = elsewhere(walk, &rest)? {
            self.jump(walk, at, sequence)?;
            return Ok(None);
        }
        walk.input.pause()?;
        let next_found = self.next_found(index + 1)?;
        let is_next_ones = self.is_next_missing(index) || next_found == Some(self.sequence);
        if !(is_clean && is_next_ones) {
            self.lost(&path, place, next_found, NOT_AS_WRITTEN)?;
        }
        Ok(Some(SegmentEnd::LogContinues))
    }

    /// Continues with a batch elsewhere in the segment.
    fn jump(&mut self, walk: &mut Walk, at: u64, sequence: u64) -> Result<(), Error> {
        let is_next = sequence == walk.sequence;
        // Returning from a misplaced batch is not further damage.
        let is_back = is_next && self.is_astray;
        if !is_back {
            let path = walk.input.path.clone();
            self.lost(&path, walk.place, Some(sequence), NOT_AS_WRITTEN)?;
        }
        self.is_astray = is_next && !is_back;
        self.read_end = self.read_end.max(walk.end);
        walk.enter_partly(at);
        walk.jump_to(at, sequence);
        Ok(())
    }

    /// Returns whether the next segment states that this one ends before this record.
    fn is_whole_before(&self, index: usize, sequence: u64) -> bool {
        let number = self.segments[index].number;
        let next = self.segments.get(index + 1).filter(|next| next.continues(number));
        next.and_then(|next| next.header).is_some_and(|header| header.first_sequence <= sequence)
    }

    /// Returns whether the segment after this one is missing or has no header, so that lost records
    /// belong to it if this one ends between two batches.
    fn is_next_missing(&self, index: usize) -> bool {
        let number = self.segments[index].number;
        let is_missing = |next: &SegmentHead| !next.continues(number) || next.header.is_none();
        self.segments.get(index + 1).is_some_and(is_missing)
    }

    /// Continues in the same batch, if the next record, which was durable, has arrived in the
    /// meantime, or a later one is intact. Returns whether it does.
    fn continues_inside(&mut self, index: usize, walk: &mut Walk) -> Result<bool, Error> {
        if self.came_meanwhile(index, walk)? {
            return Ok(true);
        }
        let place = walk.place;
        let continues = pass_over(walk)?;
        if continues {
            let path = walk.input.path.clone();
            self.lost(&path, place, Some(walk.sequence), NOT_AS_WRITTEN)?;
        }
        Ok(continues)
    }

    /// Returns whether, since the last read, the next record arrived here or the next segment was
    /// started.
    fn came_meanwhile(&mut self, index: usize, walk: &mut Walk) -> Result<bool, Error> {
        let has_come = walk.has_come()?;
        let next_was_empty = self.segments.get(index + 1).is_some_and(|next| next.header.is_none());
        Ok(has_come || (next_was_empty && self.look_again(index + 1)?))
    }
}

/// Finds the next batch of a segment, at any position: returns that position and its first
/// sequence. `rest` follows the walk. A batch removed by a cut is not part of the log.
fn elsewhere(walk: &mut Walk, rest: &Rest) -> Result<Option<(u64, u64)>, Error> {
    let found = [rest.next, rest::before(walk)?].into_iter().flatten();
    let found = found.map(|(at, batch)| (at, batch.first_sequence));
    let found = found.filter(|(_, sequence)| *sequence < walk.limit);
    Ok(found.min_by_key(|(_, sequence)| *sequence))
}

/// Returns the block that a damaged header states, if it can be true.
fn believable_block(files: &LogFiles, path: &Path) -> Result<u32, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let header = input.bytes(0, segment::HEADER_BYTES)?;
    let stated = if header.len() >= 56 { u32_at(header, 52) } else { 0 };
    let may_be = stated.is_power_of_two() && (512..=BLOCK_BYTES_MAX).contains(&stated);
    Ok(if may_be { stated } else { BLOCK_BYTES })
}
