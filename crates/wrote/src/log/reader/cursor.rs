//! `Cursor`, a reader's position in a log, and the index and searches that move it.

use crate::Error;
use crate::log::chain::{self, LiveNames, SegmentHead, read_header};
use crate::log::input::{Input, LogFiles, ReadBy};
use crate::log::names;
use crate::log::record::{self, Frame};
use crate::log::rescue::{end, scan};
use crate::log::seek;
use crate::log::segment::{self, SegmentHeader, damaged};
use crate::log::walk::{self, OpenBatch, Walk, WalkStep};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A reader's position in a log.
pub(super) struct Cursor {
    header: SegmentHeader,
    walk: Walk,
    /// The offset and the length of the last record's bytes.
    record: (u64, usize),
    pub(super) written_at_ns: u64,
    /// The positions that a reader remembers once it has been moved.
    index: Option<LogIndex>,
}

/// Returns a cursor for reading from record `from` on, or from the first later one; `None` while no
/// segment has begun.
pub(super) fn find(files: &LogFiles, from: u64, by: ReadBy) -> Result<Option<Cursor>, Error> {
    let live = chain::live(files, names::all(files)?)?;
    let names = &live.names;
    let low = segment_of(files, &live, from, by)?;
    let Some(name @ (_, path)) = names.get(low) else { return Ok(None) };
    let Some(mut cursor) = open_begun(files, &live, name, by)? else { return Ok(None) };
    // The reader itself compares each later segment with the previous one.
    let first @ (_, first_path) = &names[0];
    if low > 0
        && let Some(begin) = open(files, &live, first, by)?
    {
        chain::check_log((path, cursor.header.log_id), (first_path, begin.header.log_id))?;
    }
    let durable = || durable_sequence(files, &live, low);
    let stated = match seek::seek(&mut cursor.walk, from, durable)? {
        None if low > 0 => durable()?,
        stated => stated.unwrap_or(0),
    };
    if stated < cursor.header.first_sequence {
        // A crash may have lost records of earlier segments, and later records are then not part of
        // the log. So the reader starts within the part that is known to be durable.
        let name = &names[segment_of(files, &live, stated, by)?];
        let Some(earlier) = open_begun(files, &live, name, by)? else { return Ok(None) };
        cursor = earlier;
        seek::seek(&mut cursor.walk, stated, || Ok(stated))?;
    }
    cursor.walk.wanted = from;
    Ok(Some(cursor))
}

/// Opens a segment; `None` if it does not start as one and no record of the log was durable.
fn open_begun(
    files: &LogFiles,
    live: &LiveNames,
    name: &(u64, PathBuf),
    by: ReadBy,
) -> Result<Option<Cursor>, Error> {
    let begun = open(files, live, name, by)?;
    if begun.is_some()
        || !end::has_lost_beginning(files, &chain::read_headers(files, &live.names)?)?
    {
        return Ok(begun);
    }
    // A writer may have begun the segment between the two reads. It writes the header first.
    match open(files, live, name, by)? {
        None => Err(segment::not_begun(&name.1)),
        begun => Ok(begun),
    }
}

/// Returns the index of the last segment that starts with record `from` or an earlier one, or else
/// of the first segment. A segment without a header is either only prepared, or damaged; the reader
/// that reaches it detects the damage.
fn segment_of(files: &LogFiles, live: &LiveNames, from: u64, by: ReadBy) -> Result<usize, Error> {
    let (mut low, mut high) = (0, live.names.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let cursor = open(files, live, &live.names[middle], by)?;
        let is_before = cursor.is_some_and(|found| found.header.first_sequence <= from);
        if is_before { low = middle } else { high = middle }
    }
    Ok(low)
}

/// Returns the durable frontier, as stated by segment `low` and later ones.
fn durable_sequence(files: &LogFiles, live: &LiveNames, low: usize) -> Result<u64, Error> {
    let names = &live.names;
    let last = chain::read_headers(files, &names[names.len() - 1..])?;
    if let Some(walk) = end::closed(files, &last, false)? {
        return Ok(walk.sequence);
    }
    // The last segment with a batch states the frontier. Later segments are only prepared, or a
    // crash has lost their batches.
    for name in names[low..].iter().rev() {
        let head = chain::read_headers(files, std::slice::from_ref(name))?;
        if let Some(batch) = head.first().and_then(|head| head.first_batch) {
            return Ok(batch.durable_sequence);
        }
    }
    Ok(0)
}

fn open(
    files: &LogFiles,
    live: &LiveNames,
    (number, path): &(u64, PathBuf),
    by: ReadBy,
) -> Result<Option<Cursor>, Error> {
    let opened = open_any(files, *number, path, by)?;
    Ok(opened.map(|mut cursor| {
        cursor.walk.limit = live.limit_of(*number);
        cursor
    }))
}

/// Opens a segment without regard to cuts.
fn open_any(
    files: &LogFiles,
    number: u64,
    path: &Path,
    by: ReadBy,
) -> Result<Option<Cursor>, Error> {
    let mut input = Input::open_to_read(files, path, by)?;
    let Some(header) = read_header(&mut input, number)? else {
        return Ok(None);
    };
    let walk = Walk::new(input, &header);
    Ok(Some(Cursor { header, walk, record: (0, 0), written_at_ns: 0, index: None }))
}

impl Cursor {
    /// Fails if a reader that has reached record `sequence` has read records removed by the cut
    /// that starts this segment.
    fn check_cut(&mut self, sequence: u64) -> Result<(), Error> {
        // The first batch holds records copied from before the cut.
        let first = self.walk.batch_at(segment::HEADER_BYTES as u64)?;
        let cut = first.map_or(self.header.first_sequence, |(first, _)| walk::end_sequence(&first));
        if sequence <= cut {
            return Ok(());
        }
        let path = self.walk.input.files.path().to_owned();
        Err(Error::Truncated { path, sequence: cut })
    }

    /// Returns whether another segment uses the file now.
    fn has_become_another(&mut self) -> Result<bool, Error> {
        self.walk.input.look_again()?;
        let header = SegmentHeader::decode(self.walk.input.bytes(0, segment::HEADER_BYTES)?);
        self.walk.input.pause()?;
        Ok(header != Ok(self.header))
    }

    /// Moves to a remembered position. Returns whether the log continues there.
    fn jump(&mut self, place: IndexPlace) -> Result<bool, Error> {
        if place.number != self.header.segment_id {
            let path = segment::path(self.walk.input.files.path(), place.number);
            let log_id = self.header.log_id;
            match open_any(&self.walk.input.files, place.number, &path, ReadBy::Place) {
                Ok(Some(cursor)) if cursor.header.log_id == log_id => *self = cursor,
                Ok(_) => return Ok(false),
                Err(error) if error.errno() == libc::ENOENT => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.walk.jump_to(place.offset, place.sequence, place.open);
        let goes_on = !matches!(self.walk.next()?, WalkStep::End);
        self.walk.jump_to(place.offset, place.sequence, place.open);
        Ok(goes_on)
    }

    /// Moves to the next record at or after `from` and returns its sequence; `None` at the end of
    /// the segment as last seen.
    pub(super) fn next(&mut self, from: u64) -> Result<Option<u64>, Error> {
        self.walk.wanted = from;
        loop {
            if let Some(index) = &mut self.index {
                index.note(self.header.segment_id, &self.walk);
            }
            match self.walk.next()? {
                WalkStep::Batch => self.walk.skip_batch(from)?,
                WalkStep::Frame { sequence, offset, frame: Frame::Data(own) }
                    if sequence >= from =>
                {
                    self.record = (offset + record::HEADER_BYTES as u64, own.len());
                    self.written_at_ns = self.walk.open.map_or(0, |open| open.written_at_ns);
                    return Ok(Some(sequence));
                }
                WalkStep::Frame { .. } => {}
                WalkStep::End => return Ok(None),
            }
        }
    }

    /// Returns the number of the current segment, and the sequence of the next record in it.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.header.segment_id, self.walk.sequence)
    }

    /// Returns the bytes of the record that [`Cursor::next`] has just found.
    pub(super) fn record(&self) -> &[u8] {
        let (offset, len) = self.record;
        self.walk.input.held(offset, len)
    }

    /// Returns the sequence of the first record written at or after this time; if there is none,
    /// the next sequence.
    pub(super) fn find_time(&mut self, at_ns: u64) -> Result<u64, Error> {
        let find = |files: &_, segments: &_| find_time(files, segments, at_ns);
        self.with_segments(find).map(|found| found.first.unwrap_or(found.end))
    }

    /// Calls `look` with all segments of the log, and returns its result.
    pub(super) fn with_segments<T>(
        &mut self,
        look: impl Fn(&LogFiles, &[SegmentHead]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.walk.input.pause()?;
        let files = self.walk.input.files.clone();
        names::unless_removed(|| look(&files, &chain::segments(&files)?).map(Some))
    }

    /// Moves to record `from` or to a position before it, and remembers positions for later
    /// searches. Returns whether the log has such a position.
    pub(super) fn seek(&mut self, from: u64) -> Result<bool, Error> {
        self.walk.input.pause()?;
        let mut index = self.index.take().unwrap_or_else(LogIndex::new);
        if self.walk.input.is_shorter()? {
            // A cut, retention, or the writer that closed the log has removed something.
            index = LogIndex::new();
        }
        match index.near(from) {
            Some(place) if self.jump(place)? => {
                self.index = Some(index);
                return Ok(true);
            }
            Some(place) => index.forget(place.number),
            None => {}
        }
        let files = self.walk.input.files.clone();
        let found = names::unless_removed(|| find(&files, from, ReadBy::Place).map(Some))?;
        let Some(cursor) = found else { return Ok(false) };
        *self = Cursor { index: Some(index), ..cursor };
        Ok(true)
    }

    /// Moves to the next segment if the log continues there. Returns whether the cursor has moved.
    pub(super) fn turn(&mut self) -> Result<bool, Error> {
        self.walk.input.pause()?;
        let number = self.header.segment_id;
        let next = names::unless_removed(|| {
            let files = &self.walk.input.files;
            let live = chain::live(files, names::all(files)?)?;
            let Some(next) = live.names.iter().find(|(of, _)| *of > number) else {
                return Ok(Some(None));
            };
            // Retention removes the oldest segments first, so all segments up to the next one are
            // gone, too.
            let is_left = live.names.iter().all(|(of, _)| *of > number);
            let by = if self.index.is_some() { ReadBy::Place } else { ReadBy::Order };
            let cursor = open(files, &live, next, by)?;
            Ok(Some(cursor.map(|cursor| (cursor, is_left))))
        })?;
        let Some((mut cursor, is_left)) = next else { return Ok(false) };
        let log = |cursor: &Cursor| (cursor.walk.input.path.clone(), cursor.header.log_id);
        let ((path, log_id), (own_path, own_id)) = (log(&cursor), log(self));
        chain::check_log((&path, log_id), (&own_path, own_id))?;
        let (first, sequence) = (cursor.header.first_sequence, self.walk.sequence);
        let is_cut = cursor.header.cut_behind.is_some_and(|previous| previous <= number);
        let follows = cursor.header.previous() == number;
        let is_next = match is_cut {
            // The new segment starts with copies of the last records before the cut.
            true if first <= sequence => cursor.check_cut(sequence).map(|()| true)?,
            false if !follows && is_left && first < sequence => {
                let path = self.walk.input.files.path().to_owned();
                return Err(Error::Truncated { path, sequence: first });
            }
            false if !follows => is_left,
            // Retention may have removed this segment, and a later segment may use its file.
            _ if is_left && first > sequence => self.has_become_another()?,
            _ if first < sequence => {
                let path = &cursor.walk.input.path;
                return Err(damaged(path, 0, &chain::overlap(first, sequence)));
            }
            _ => first == sequence,
        };
        if is_next {
            *self = Cursor { index: self.index.take(), ..cursor };
        }
        Ok(is_next)
    }

    /// Drops the bytes that were read ahead, because a writer may have changed them.
    pub(super) fn look_again(&mut self) -> Result<(), Error> {
        self.walk.input.look_again()
    }

    /// Returns the error for a lost record if the next record was durable and can't be read.
    pub(super) fn lost(&mut self) -> Result<Option<Error>, Error> {
        self.walk.input.pause()?;
        let SegmentHeader { segment_id, log_id, .. } = self.header;
        let found = names::unless_removed(|| {
            let files = &self.walk.input.files;
            let names = names::all(files)?;
            let mut later = chain::live(files, names)?.names;
            later.retain(|(number, _)| *number > segment_id);
            scan::behind(&mut self.walk, log_id, &later).map(Some)
        })?;
        Ok(found.lost)
    }
}

/// The minimum distance between two remembered positions, in bytes.
const SPACING_BYTES: u64 = 16 << 10;
/// The maximum number of remembered positions. Beyond this number, every second position is
/// forgotten, and the spacing doubles (W8).
const PLACES_MAX: usize = 1 << 16;
/// The maximum gap, in spacings, between two successive remembered positions if the reader has read
/// everything between them.
const GAP: u64 = 4;

/// A position at which a walk can continue.
#[derive(Clone, Copy, Debug)]
struct IndexPlace {
    pub number: u64,
    pub offset: u64,
    /// The sequence of the next record.
    pub sequence: u64,
    pub open: Option<OpenBatch>,
}

/// An index of positions in a log, by the sequence of their next record.
#[derive(Debug)]
struct LogIndex {
    places: BTreeMap<u64, IndexPlace>,
    spacing_bytes: u64,
    /// The segment and the offset of the last noted position.
    last: (u64, u64),
}

impl LogIndex {
    fn new() -> LogIndex {
        LogIndex { places: BTreeMap::new(), spacing_bytes: SPACING_BYTES, last: (0, 0) }
    }

    /// Remembers the position of a walk in segment `number`, unless it is close to the last one.
    #[inline]
    fn note(&mut self, number: u64, walk: &Walk) {
        let (last_number, last_offset) = self.last;
        if number != last_number || walk.place.abs_diff(last_offset) >= self.spacing_bytes {
            self.insert(number, walk);
        }
    }

    fn insert(&mut self, number: u64, walk: &Walk) {
        let Walk { place: offset, sequence, open, .. } = *walk;
        self.last = (number, offset);
        self.places.insert(sequence, IndexPlace { number, offset, sequence, open });
        if self.places.len() > PLACES_MAX {
            let mut is_kept = false;
            self.places.retain(|_, _| {
                is_kept = !is_kept;
                is_kept
            });
            self.spacing_bytes *= 2;
        }
    }

    /// Returns the last remembered position before the record, if it is within the record's batch,
    /// or if the gap to the next position is at most [`GAP`].
    fn near(&self, sequence: u64) -> Option<IndexPlace> {
        let (_, &before) = self.places.range(..=sequence).next_back()?;
        let is_near = |next: &IndexPlace| {
            let bytes = next.offset.saturating_sub(before.offset);
            next.number == before.number && bytes <= GAP * self.spacing_bytes
        };
        let is_in_batch =
            before.open.is_some_and(|open| sequence - before.sequence < u64::from(open.left));
        let next = || self.places.range(sequence..).find(|(of, _)| **of > before.sequence);
        let is_known = is_in_batch || next().is_some_and(|(_, next)| is_near(next));
        is_known.then_some(before)
    }

    /// Forgets the positions in a removed or replaced segment.
    fn forget(&mut self, number: u64) {
        self.places.retain(|_, place| place.number != number);
        self.last = (0, 0);
    }
}

/// The result of a search for a time.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The first record whose batch was written at or after the searched time.
    first: Option<u64>,
    /// The sequence after the searched records, and the time of the last batch written before the
    /// searched time.
    end: u64,
    last_ns: u64,
}

/// Finds the first record of these segments whose batch was written at or after `at_ns`, in
/// nanoseconds since 1970. A segment has no such record if the next segment began before that time,
/// unless the clock stepped back between the two.
fn find_time(files: &LogFiles, segments: &[SegmentHead], at_ns: u64) -> Result<Found, Error> {
    let mut found = Found::default();
    for (index, segment) in segments.iter().enumerate() {
        let next = segments.get(index + 1).and_then(|next| next.header);
        let latest = next.filter(|next| !next.clock_back && next.created_at_ns > 0);
        if let Some(header) = &segment.header
            && latest.is_none_or(|next| next.created_at_ns >= at_ns)
        {
            found = find_time_in(files, segment, header, at_ns)?;
            if found.first.is_some() {
                break;
            }
        }
    }
    Ok(found)
}

fn find_time_in(
    files: &LogFiles,
    segment: &SegmentHead,
    header: &SegmentHeader,
    at_ns: u64,
) -> Result<Found, Error> {
    let mut walk = Walk::new(Input::open(files, &segment.path, true, false)?, header);
    (walk.limit, walk.wanted) = (segment.limit, u64::MAX);
    seek::seek_time(&mut walk, at_ns)?;
    let mut last_ns = header.created_at_ns;
    loop {
        match walk.next()? {
            WalkStep::End => return Ok(Found { first: None, end: walk.sequence, last_ns }),
            WalkStep::Frame { .. } => {}
            WalkStep::Batch => {
                let (batch, _) = walk.last.expect("a batch has begun");
                // A repair does not preserve the time.
                let is_by_repair = batch.is_by_repair();
                let at = if is_by_repair { header.created_at_ns } else { batch.written_at_ns };
                if at >= at_ns {
                    let (first, end) = (Some(batch.first_sequence), batch.first_sequence);
                    return Ok(Found { first, end, last_ns });
                }
                last_ns = at;
                walk.skip_batch(u64::MAX)?;
            }
        }
    }
}

/// Returns the ranges of records whose times overlap because the clock stepped back between them.
pub(super) fn clock_steps(
    files: &LogFiles,
    segments: &[SegmentHead],
) -> Result<Vec<Range<u64>>, Error> {
    let is_back =
        |(_, segment): &(usize, &SegmentHead)| segment.header.is_some_and(|it| it.clock_back);
    let steps = segments.iter().enumerate().filter(is_back).map(|(index, segment)| {
        let (before, behind) = segments.split_at(index);
        let created_at_ns = segment.header.map_or(0, |header| header.created_at_ns);
        let begin = find_time(files, before, created_at_ns)?;
        let last = find_time(files, &before[index.saturating_sub(1)..], u64::MAX)?;
        let end = find_time(files, behind, last.last_ns.saturating_add(1))?;
        Ok(begin.first.unwrap_or(begin.end)..end.first.unwrap_or(u64::MAX))
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::input::Input;
    use crate::log::segment::{self, SegmentHeader};
    use crate::log::testing::{disk, files_of, folder, two_segments};

    /// Returns a walk whose position and records the tests choose.
    fn walk() -> Walk {
        let sim = disk(1, &two_segments().files(folder()));
        let path = segment::path(folder(), 1);
        let header = SegmentHeader { block_bytes: 512, ..SegmentHeader::default() };
        Walk::new(Input::open(&files_of(&sim), &path, true, false).unwrap(), &header)
    }

    #[test]
    fn places_are_bounded_and_those_that_stay_are_near_each_other() {
        let (mut walk, mut index) = (walk(), LogIndex::new());
        for number in 0..3 * PLACES_MAX as u64 {
            (walk.place, walk.sequence) = (number * SPACING_BYTES, number);
            index.note(1, &walk);
        }
        assert!(index.places.len() <= PLACES_MAX, "{}", index.places.len());
        assert!(index.spacing_bytes >= 2 * SPACING_BYTES);
        for sequence in (0..2 * PLACES_MAX as u64).step_by(999) {
            let place = index.near(sequence).unwrap();
            assert!(place.sequence <= sequence && sequence - place.sequence <= 16, "{place:?}");
        }
        index.forget(1);
        assert!(index.near(5).is_none());
    }

    #[test]
    fn a_place_is_near_a_record_of_its_batch_and_far_from_one_behind_bytes_that_were_not_read() {
        let (mut walk, mut index) = (walk(), LogIndex::new());
        (walk.place, walk.sequence) = (0, 10);
        walk.open = Some(OpenBatch { end: 1 << 30, left: 5, written_at_ns: 0 });
        index.note(1, &walk);
        (walk.place, walk.sequence, walk.open) = (1 << 29, 100, None);
        index.note(1, &walk);
        assert_eq!(index.near(14).map(|place| place.sequence), Some(10));
        assert!(index.near(9).is_none() && index.near(15).is_none() && index.near(100).is_none());
    }
}
