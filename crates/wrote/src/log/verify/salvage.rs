//! A framed log from its first byte to its last: all that is whole, and what is lost in between.
//!
//! It may be written meanwhile. What proves that a record was durable may be read after the place where
//! the record was looked for, and both may have come in between. So before anything is called lost its
//! place is read again: a record that was durable before its proof was read is there then, or is lost.

use super::super::chain::{self, Segment};
use super::super::input::Input;
use super::super::record::Frame;
use super::super::rest::{self, Identity, Rest};
use super::super::segment::{self, SegmentHeader};
use super::super::walk::{Step, Walk};
use super::super::{Format, names};
use super::Damage;
use crate::{Engine, Error};
use std::path::Path;

/// The block of a segment that nothing is known of, and the largest that a damaged header is believed.
const BLOCK_BYTES: u32 = 4096;
const BLOCK_BYTES_MAX: u32 = 1 << 20;

const NOT_AS_WRITTEN: &str = "a record here is not as it was written";

/// What is met on the way, in order.
pub(super) enum Event<'a> {
    /// A segment, with what it begins with or should; its file may not be there.
    Begin { path: &'a Path, header: &'a SegmentHeader, file_bytes: u64 },
    /// A record or a place that was passed over.
    Frame { sequence: u64, offset: u64, frame: Frame<'a> },
    /// A place at which something is damaged.
    Lost(&'a Damage),
    /// The end of the segment, where the last valid thing in it ends.
    End { used_bytes: u64 },
}

/// What stands at the end of the log.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Whether the log was closed.
    pub closed: bool,
    /// Bytes behind the end that are no zeros.
    pub torn_bytes: u64,
}

/// Reads the log and tells `sink` of everything.
pub(super) fn salvage(
    engine: &mut Engine,
    folder: &Path,
    sink: &mut dyn FnMut(Event) -> Result<(), Error>,
) -> Result<Tail, Error> {
    let segments = chain::segments(engine, folder)?;
    let mut salvage = Salvage { folder, segments, log_id: 0, sequence: 0, durable: 0, sink };
    salvage.identify(engine)?;
    salvage.run(engine)
}

struct Salvage<'a> {
    folder: &'a Path,
    segments: Vec<Segment>,
    log_id: u64,
    /// The next record that is wanted.
    sequence: u64,
    /// Records before this one are known to have been durable.
    durable: u64,
    sink: &'a mut dyn FnMut(Event) -> Result<(), Error>,
}

/// How the reading of a segment ended.
enum Ended {
    /// The log goes on in the next one.
    GoesOn,
    /// The log ends here.
    LogEnds(Tail),
}

impl Salvage<'_> {
    /// Finds out which log it is and with which record it begins.
    fn identify(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let known = self.segments.iter().find_map(|segment| segment.header);
        self.log_id = known.map_or(0, |header| header.log_id);
        let firsts = self.segments.iter().filter_map(|segment| segment.first_batch);
        self.durable = firsts.map(|batch| batch.durable_sequence).max().unwrap_or(0);
        let Some(first) = self.segments.first() else { return Ok(()) };
        self.sequence = match first.header {
            Some(header) => header.first_sequence,
            None if first.number == 1 => 0,
            None => {
                let found = rest::scan_file(engine, &first.path, 0, Identity::Lost)?.first;
                found.map_or(0, |(_, batch)| batch.first_sequence)
            }
        };
        Ok(())
    }

    fn run(&mut self, engine: &mut Engine) -> Result<Tail, Error> {
        let mut index = 0;
        while index < self.segments.len() {
            if index > 0 {
                let wanted = self.segments[index - 1].number + 1;
                if wanted < self.segments[index].number && !self.missing(engine, wanted, index)? {
                    return self.end_before(engine, index);
                }
            }
            match self.segment(engine, index)? {
                Ended::GoesOn => index += 1,
                Ended::LogEnds(tail) => return Ok(tail),
            }
        }
        Ok(Tail { next_sequence: self.sequence, ..Tail::default() })
    }

    /// The log ends before this segment: what is there was torn.
    fn end_before(&mut self, engine: &mut Engine, index: usize) -> Result<Tail, Error> {
        let mut tail = Tail { next_sequence: self.sequence, ..Tail::default() };
        for index in index..self.segments.len() {
            tail.torn_bytes += self.scan(engine, index)?.end;
        }
        Ok(tail)
    }

    /// Looks through a whole file for batches that go on with the log.
    fn scan(&self, engine: &mut Engine, index: usize) -> Result<Rest, Error> {
        let Segment { path, header, .. } = &self.segments[index];
        let identity = match (header, self.log_id) {
            (Some(header), _) => identity(header),
            (None, 0) => Identity::Lost,
            (None, _) => identity(&self.header(index)),
        };
        match rest::scan_file(engine, path, self.sequence, identity) {
            Err(error) if self.was_removed(engine, index, &error)? => Ok(Rest::default()),
            result => result,
        }
    }

    /// Whether the error is that retention has removed the segment meanwhile.
    fn was_removed(&self, engine: &mut Engine, index: usize, error: &Error) -> Result<bool, Error> {
        let number = self.segments[index].number;
        names::was_removed(engine, self.folder, Format::Framed, number, error)
    }

    /// Reads again how a segment begins, of which that could not be read. Whether it can be now.
    fn look_again(&mut self, engine: &mut Engine, index: usize) -> Result<bool, Error> {
        let Segment { number, path, .. } = &self.segments[index];
        let found = match chain::look(engine, &[(*number, path.clone())]) {
            Err(error) if self.was_removed(engine, index, &error)? => return Ok(false),
            found => found?.pop().expect("one was looked at"),
        };
        let Some(header) = found.header else { return Ok(false) };
        let is_of_log = self.log_id == 0 || header.log_id == self.log_id;
        if is_of_log {
            self.log_id = header.log_id;
            self.segments[index] = found;
        }
        Ok(is_of_log)
    }

    /// The header that a segment has, or should have.
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

    /// Whether the next record was durable once, as what stands from this segment on says.
    fn was_durable(&mut self, engine: &mut Engine, index: usize) -> Result<bool, Error> {
        for index in index..self.segments.len() {
            if self.durable > self.sequence {
                break;
            }
            self.durable = self.durable.max(self.scan(engine, index)?.durable_sequence);
        }
        Ok(self.durable > self.sequence)
    }

    /// With which record the log goes on at this segment or behind.
    fn goes_on_with(&self, engine: &mut Engine, index: usize) -> Result<Option<u64>, Error> {
        for index in index..self.segments.len() {
            let header = self.segments[index].header;
            if let Some(header) = header.filter(|header| header.first_sequence >= self.sequence) {
                return Ok(Some(header.first_sequence));
            }
            if let Some((_, batch)) = self.scan(engine, index)?.first {
                return Ok(Some(batch.first_sequence));
            }
        }
        Ok(None)
    }

    /// The segments from `number` up to the one at `index` are not there. Whether they were durable.
    fn missing(&mut self, engine: &mut Engine, number: u64, index: usize) -> Result<bool, Error> {
        if !self.was_durable(engine, index)? {
            return Ok(false);
        }
        let next_sequence = self.goes_on_with(engine, index)?.unwrap_or(self.sequence);
        for number in number..self.segments[index].number {
            let path = segment::path(self.folder, Format::Framed, number);
            let header = SegmentHeader { segment_id: number, ..self.header(index) };
            let header = SegmentHeader { first_sequence: self.sequence, ..header };
            (self.sink)(Event::Begin { path: &path, header: &header, file_bytes: 0 })?;
            let because = "the segment is not there".to_owned();
            self.lost(&path, 0, Some(next_sequence), because)?;
            (self.sink)(Event::End { used_bytes: 0 })?;
        }
        Ok(true)
    }

    /// Records from the next one up to this one are lost.
    fn lost(
        &mut self,
        path: &Path,
        offset_bytes: u64,
        next_sequence: Option<u64>,
        because: String,
    ) -> Result<(), Error> {
        let records = next_sequence.map(|next| next - self.sequence);
        let (path, sequence) = (path.to_owned(), self.sequence);
        let damage = Damage { path, offset_bytes, sequence, records, because };
        (self.sink)(Event::Lost(&damage))?;
        self.sequence = next_sequence.unwrap_or(self.sequence);
        Ok(())
    }

    fn segment(&mut self, engine: &mut Engine, index: usize) -> Result<Ended, Error> {
        if self.segments[index].header.is_none() {
            let was_durable = self.was_durable(engine, index)?;
            if !self.look_again(engine, index)? && !was_durable {
                return self.end_before(engine, index).map(Ended::LogEnds);
            }
        }
        let Segment { path, header: own, file_bytes, .. } = &self.segments[index];
        let (path, file_bytes, is_headless) = (path.clone(), *file_bytes, own.is_none());
        let input = match Input::open(engine, &path, true, false) {
            Err(error) if self.was_removed(engine, index, &error)? => return Ok(Ended::GoesOn),
            input => input?,
        };
        let header = self.header(index);
        let begin = Event::Begin { path: &path, header: &header, file_bytes };
        (self.sink)(begin)?;
        if header.first_sequence < self.sequence {
            let because = format!(
                "it begins with record {}, the segment before ends at {}",
                header.first_sequence, self.sequence
            );
            self.lost(&path, 0, None, because)?;
            input.close(engine)?;
            (self.sink)(Event::End { used_bytes: 0 })?;
            return Ok(Ended::GoesOn);
        }
        let walk = if is_headless {
            self.lost(&path, 0, Some(self.sequence), "this is not how a segment begins".into())?;
            let block_bytes = match self.log_id {
                0 => block_that_may_be(engine, &path)?,
                _ => u64::from(header.block_bytes),
            };
            // Where no header tells which log it is, a batch does.
            let seed = match self.log_id {
                0 => self.scan(engine, index)?.seed,
                _ => header.seed(),
            };
            Walk::of(seed, block_bytes, self.sequence)
        } else {
            Walk::new(&header)
        };
        self.records(engine, index, input, walk)
    }

    /// Reads a segment from its first batch on.
    fn records(
        &mut self,
        engine: &mut Engine,
        index: usize,
        mut input: Input,
        mut walk: Walk,
    ) -> Result<Ended, Error> {
        let ended = loop {
            match walk.next(engine, &mut input)? {
                Step::Batch => {}
                Step::Frame { sequence, offset, frame } => {
                    (self.sink)(Event::Frame { sequence, offset, frame })?;
                }
                Step::End => {
                    self.sequence = walk.sequence;
                    if let Some(ended) = self.behind(engine, index, &mut input, &mut walk)? {
                        break ended;
                    }
                }
            }
        };
        input.close(engine)?;
        (self.sink)(Event::End { used_bytes: walk.end })?;
        Ok(ended)
    }

    /// Nothing valid follows in this segment where it should: goes on where something does. `None` is
    /// behind what is lost, in the same segment, or where the next record has come meanwhile.
    fn behind(
        &mut self,
        engine: &mut Engine,
        index: usize,
        input: &mut Input,
        walk: &mut Walk,
    ) -> Result<Option<Ended>, Error> {
        let is_whole = self.is_whole_before(index, walk.sequence);
        let is_known = !is_whole && self.durable > walk.sequence;
        // The rest of the segment is not read again for each record that is lost.
        if is_known && self.goes_on_inside(engine, index, input, walk)? {
            return Ok(None);
        }
        let path = input.path.clone();
        let rest = rest::scan(engine, input, walk.end, walk.sequence, walk.identity())?;
        self.durable = self.durable.max(rest.durable_sequence);
        let is_clean = rest.end == walk.end && walk.is_between_batches();
        if is_whole {
            let is_more = rest.end > walk.end;
            if is_more && self.came_meanwhile(engine, index, input, walk)? {
                return Ok(None);
            }
            if is_more {
                let because = "what stands here is nothing that was appended".to_owned();
                self.lost(&path, walk.place, Some(self.sequence), because)?;
            }
            return Ok(Some(Ended::GoesOn));
        }
        if !self.was_durable(engine, index + 1)? {
            let mut tail = self.end_before(engine, index + 1)?;
            tail.closed = walk.is_closed() && is_clean && tail.torn_bytes == 0;
            tail.torn_bytes += rest.end - walk.end;
            let is_torn = tail.torn_bytes > 0;
            if is_torn && self.came_meanwhile(engine, index, input, walk)? {
                return Ok(None);
            }
            return Ok(Some(Ended::LogEnds(tail)));
        }
        if !is_known && self.goes_on_inside(engine, index, input, walk)? {
            return Ok(None);
        }
        let (place, because) = (walk.place, NOT_AS_WRITTEN.to_owned());
        if let Some((at, batch)) = rest.first {
            self.lost(&path, place, Some(batch.first_sequence), because)?;
            walk.go_on_at(at, batch.first_sequence);
            return Ok(None);
        }
        input.pause(engine)?;
        let goes_on_with = self.goes_on_with(engine, index + 1)?;
        let is_next_ones =
            next_is_missing(&self.segments, index) || goes_on_with == Some(self.sequence);
        if !(is_clean && is_next_ones) {
            self.lost(&path, place, goes_on_with, because)?;
        }
        Ok(Some(Ended::GoesOn))
    }

    /// Whether the next segment says that this one ends before this record.
    fn is_whole_before(&self, index: usize, sequence: u64) -> bool {
        let number = self.segments[index].number;
        let next = self.segments.get(index + 1).filter(|next| next.number == number + 1);
        next.and_then(|next| next.header).is_some_and(|header| header.first_sequence <= sequence)
    }

    /// Whether the next record, which was durable, has come meanwhile, or one behind it is in the same
    /// batch.
    fn goes_on_inside(
        &mut self,
        engine: &mut Engine,
        index: usize,
        input: &mut Input,
        walk: &mut Walk,
    ) -> Result<bool, Error> {
        if self.came_meanwhile(engine, index, input, walk)? {
            return Ok(true);
        }
        let place = walk.place;
        let goes_on = walk.pass_over(engine, input)?;
        if goes_on {
            let path = input.path.clone();
            self.lost(&path, place, Some(walk.sequence), NOT_AS_WRITTEN.to_owned())?;
        }
        Ok(goes_on)
    }

    /// Whether the log goes on here, or the next segment was begun, since that was read.
    fn came_meanwhile(
        &mut self,
        engine: &mut Engine,
        index: usize,
        input: &mut Input,
        walk: &Walk,
    ) -> Result<bool, Error> {
        input.look_again(engine)?;
        let came = !matches!(walk.clone().next(engine, input)?, Step::End);
        input.pause(engine)?;
        let next_was_empty = self.segments.get(index + 1).is_some_and(|next| next.header.is_none());
        Ok(came || (next_was_empty && self.look_again(engine, index + 1)?))
    }
}

/// The block that a damaged header says, if that can be true.
fn block_that_may_be(engine: &mut Engine, path: &Path) -> Result<u64, Error> {
    let mut input = Input::open(engine, path, true, false)?;
    let header = input.bytes(engine, 0, segment::HEADER_BYTES)?;
    let word = header.get(52..).and_then(|rest| rest.first_chunk::<4>());
    let said = word.map_or(0, |word| u32::from_le_bytes(*word));
    input.close(engine)?;
    let may_be = said.is_power_of_two() && (512..=BLOCK_BYTES_MAX).contains(&said);
    Ok(u64::from(if may_be { said } else { BLOCK_BYTES }))
}

/// Whether the segment after this one is not there, but one behind it is.
fn next_is_missing(segments: &[Segment], index: usize) -> bool {
    segments.get(index + 1).is_some_and(|next| next.number > segments[index].number + 1)
}

fn identity(header: &SegmentHeader) -> Identity {
    Identity::Known { seed: header.seed(), block_bytes: u64::from(header.block_bytes) }
}
