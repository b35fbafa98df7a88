//! Decides which space is prepared ahead of the records, when, and whether with zeros or in the
//! file of a removed segment.
//!
//! A durable record goes into blocks that were written before, so that the file system need not
//! update its metadata. In a new file, these blocks contain zeros, which doubles the bytes written.
//! In the file of a removed segment, they contain its records.

use super::prepare::{self, Preparation};
use super::retention::RetainedSegment;
use super::segment::{self, OpenSegment};
use super::state::{LogState, Terms};
use crate::engine::Found;
use crate::staged::beside;
use crate::{Completion, Engine, Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// The minimum length of space that is prepared at once. By default, this much is ready before the
/// first record of a new log, and nothing when an existing log is opened.
pub(super) const AHEAD_BYTES_MIN: u64 = 64 << 10;

/// The maximum mean number of bytes per flush, in the last segment, at which the next segment gets
/// zeros. For shorter flushes, committing the metadata of writes into allocated blocks takes longer
/// than writing the zeros; for longer flushes, the zeros take longer.
const FLUSH_BYTES_WITH_ZEROS: u64 = 64 << 10;

/// The temporary errors: no space on the disk or in a quota, no file descriptor, no memory, and a
/// file size limit, which another process may raise (`prlimit(2)`).
const MAY_PASS: [i32; 6] =
    [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EFBIG];

/// The result of preparing space for a batch.
pub(super) enum Room {
    Ready,
    /// There is no space yet, but an operation in flight or a requested flush will make some.
    Waits,
    /// There is no space because of a temporary error, such as a full disk. Any other error fails
    /// the log.
    Lacks(Error),
}

/// Returns [`Room::Lacks`] for a temporary error, and fails with any other error.
fn lack(error: Error) -> Result<Room, Error> {
    match &error {
        Error::File { errno, .. } if MAY_PASS.contains(errno) => Ok(Room::Lacks(error)),
        _ => Err(error),
    }
}

/// The state of preparing space ahead, for the rest of the current segment or for the next one.
enum Preparing {
    Idle,
    InFlight(Preparation),
    /// No step is in flight; [`Preparation::is_ready`] returns whether all steps are done.
    Waiting(Preparation),
    /// The preparation has failed ahead of time, and is retried when the space is needed.
    Failed(Error),
}

impl Preparing {
    fn take(&mut self) -> Preparing {
        std::mem::replace(self, Preparing::Idle)
    }

    fn preparation(&self) -> Option<&Preparation> {
        match self {
            Preparing::InFlight(next) | Preparing::Waiting(next) => Some(next),
            Preparing::Idle | Preparing::Failed(_) => None,
        }
    }
}

/// The file of a removed segment, kept under a temporary name so that a later segment can reuse it.
/// Nothing in the file is valid in a segment with another number.
struct Spare {
    path: PathBuf,
    /// The length of the removed segment in bytes.
    bytes: u64,
    /// Whether the removal of the segment is durable.
    is_removed_durably: bool,
}

pub(super) struct Ahead {
    preparing: Preparing,
    /// The number of lengths that have been tried for preparing the space of a batch.
    attempts: usize,
    spare: Option<Spare>,
    /// The path of an abandoned preparation whose file could not be removed.
    left_over: Option<PathBuf>,
    /// Whether the file system can't determine if a file is shared, so that no file is reused.
    knows_no_sharing: bool,
    /// The number of bytes of records written since the log was opened. As many bytes of space are
    /// prepared ahead.
    written_bytes: u64,
    /// The number of flushes since the current segment was begun, and the number of bytes that they
    /// covered.
    flushes: u64,
    flushed_bytes: u64,
    /// The mean number of bytes that a flush covered in the previous segment; 0 if there is none.
    mean_flush_bytes: u64,
}

impl Ahead {
    /// Creates the state. For a new log, `first` is the preparation of its first segment.
    pub(super) fn new(first: Option<Preparation>) -> Ahead {
        Ahead {
            preparing: first.map_or(Preparing::Idle, Preparing::Waiting),
            attempts: 0,
            spare: None,
            left_over: None,
            knows_no_sharing: false,
            written_bytes: 0,
            flushes: 0,
            flushed_bytes: 0,
            mean_flush_bytes: 0,
        }
    }

    /// Returns whether a step of a preparation is in flight.
    pub(super) fn is_in_flight(&self) -> bool {
        matches!(self.preparing, Preparing::InFlight(_))
    }

    /// Returns the number of the segment that is being prepared; `None` if there is none.
    pub(super) fn number(&self) -> Option<u64> {
        self.preparing.preparation().map(|next| next.number)
    }

    /// Counts bytes of records that have been written.
    pub(super) fn note_written(&mut self, bytes: u64) {
        self.written_bytes += bytes;
    }

    /// Counts a flush that covered this number of bytes of records.
    pub(super) fn note_flush(&mut self, bytes: u64) {
        self.flushes += u64::from(bytes > 0);
        self.flushed_bytes += bytes;
    }

    /// Records that the names in the folder have become durable.
    pub(super) fn note_synced(&mut self) {
        if let Some(spare) = &mut self.spare {
            spare.is_removed_durably = true;
        }
    }

    /// Takes the preparation of the next segment, which must be ready.
    pub(super) fn take_ready(&mut self) -> Preparation {
        let Preparing::Waiting(next) = self.preparing.take() else {
            unreachable!("a segment was prepared")
        };
        if let Some(mean) = self.flushed_bytes.checked_div(self.flushes) {
            self.mean_flush_bytes = mean;
            (self.flushes, self.flushed_bytes) = (0, 0);
        }
        next
    }

    /// Stops preparing space while no step is in flight. Returns the preparation, if any.
    pub(super) fn take_waiting(&mut self) -> Option<Preparation> {
        self.attempts = 0;
        match self.preparing.take() {
            Preparing::InFlight(_) => unreachable!("no operation is in flight"),
            Preparing::Waiting(next) => Some(next),
            Preparing::Idle | Preparing::Failed(_) => None,
        }
    }

    /// Prepares segment `number`, the current or the next one, up to `end`. If the disk has no room
    /// to prepare space ahead, prepares only the part that is needed.
    pub(super) fn prepare(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        current: &mut Option<OpenSegment>,
        number: u64,
        end: u64,
    ) -> Result<Room, Error> {
        let lengths = [
            self.written_bytes.max(AHEAD_BYTES_MIN),
            AHEAD_BYTES_MIN,
            state.terms.layout.block_bytes,
        ];
        while !self.is_prepared(current.as_ref(), number, end) {
            match self.preparing.take() {
                in_flight @ Preparing::InFlight(_) => {
                    self.preparing = in_flight;
                    return Ok(Room::Waits);
                }
                Preparing::Waiting(other) if other.number != number => {
                    self.left_over = other.abandon(engine).or(self.left_over.take());
                }
                Preparing::Waiting(next) => self.go_on(engine, current, next, u64::MAX)?,
                // After a failure, nothing is prepared ahead until the next record needs the space.
                failed @ (Preparing::Idle | Preparing::Failed(_)) => {
                    let error = match &failed {
                        Preparing::Failed(error) => Some(error.clone()),
                        _ => None,
                    };
                    self.preparing = failed;
                    if let Some(&ahead_bytes) = lengths.get(self.attempts) {
                        self.attempts += 1;
                        self.begin(engine, state, current.as_ref(), number, end, ahead_bytes)?;
                        continue;
                    }
                    self.attempts = 0;
                    // The spare file occupies space that the record needs.
                    if !self.discard_spare(engine) {
                        return lack(error.expect("every preparation is done or has failed"));
                    }
                }
            }
        }
        self.attempts = 0;
        Ok(Room::Ready)
    }

    fn is_prepared(&self, current: Option<&OpenSegment>, number: u64, end: u64) -> bool {
        match (current, &self.preparing) {
            (Some(segment), _) if segment.number == number => segment.prepared >= end,
            (_, Preparing::Waiting(next)) => next.number == number && next.is_ready(),
            _ => false,
        }
    }

    /// Starts to prepare segment `number` up to `end`, or up to a total of `ahead_bytes` if that is
    /// more and the segment is that long. The prepared space grows with the log, so that preparing
    /// it costs no more than the records do. An earlier attempt may have failed.
    fn begin(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        current: Option<&OpenSegment>,
        number: u64,
        end: u64,
        ahead_bytes: u64,
    ) -> Result<(), Error> {
        let Terms { layout, folder, .. } = &state.terms;
        let end_after = |from: u64| {
            let ahead = from.saturating_add(ahead_bytes).min(layout.bytes_of(number));
            ahead.max(end).next_multiple_of(layout.block_bytes)
        };
        let zeros = self.zeros(&state.terms);
        if let Some(segment) = current.filter(|segment| segment.number == number) {
            let OpenSegment { file, path, prepared, .. } = segment;
            let end = end_after(*prepared);
            let rest = Preparation::rest_of(*file, path, number, zeros, *prepared, end);
            self.preparing = Preparing::Waiting(rest);
            return Ok(());
        }
        let path = segment::path(folder.path(), number);
        if let Some(next) = self.recycle(engine, state, &path, number, end_after(0))? {
            self.preparing = Preparing::Waiting(next);
            return Ok(());
        }
        // Removes the file of a failed attempt, which could not be removed earlier.
        if self.left_over.take_if(|left| *left == path).is_some()
            && engine.remove(&path).is_err_and(|error| error.errno() != libc::ENOENT)
        {
            self.left_over = Some(path.clone());
        }
        let is_direct = state.terms.is_direct();
        let next = Preparation::new(engine, &path, number, zeros, end_after(0), is_direct);
        self.preparing = match (next, self.preparing.take()) {
            (Ok(next), _) => Preparing::Waiting(next),
            // The file of a failed attempt is still there. Report the error of that attempt.
            (Err(error), Preparing::Failed(first)) if error.errno() == libc::EEXIST => {
                Preparing::Failed(first)
            }
            (Err(error), _) => Preparing::Failed(error),
        };
        Ok(())
    }

    /// Returns whether zeros should be written into the space of the next records.
    fn zeros(&self, terms: &Terms) -> bool {
        let may_omit = terms.may_omit_zeros && self.mean_flush_bytes > FLUSH_BYTES_WITH_ZEROS;
        terms.zeros && !may_omit
    }

    /// Continues to prepare space: for the current segment once half of its prepared space is used,
    /// and for the next segment at the pace at which the current one fills, or at once while no
    /// record waits for the disk.
    pub(super) fn prepare_ahead(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        current: &mut Option<OpenSegment>,
        is_idle: bool,
    ) -> Result<(), Error> {
        // A log that is opened but never appended to should write nothing.
        let Some(segment) = current.as_ref().filter(|_| self.written_bytes > 0) else {
            return Ok(());
        };
        let (layout, number) = (&state.terms.layout, segment.number);
        let segment_bytes = layout.bytes_of(number);
        let pace = Pace { used: segment.end, segment_bytes };
        if matches!(self.preparing, Preparing::Idle) {
            let ahead_bytes = self.written_bytes.max(AHEAD_BYTES_MIN).min(segment_bytes);
            let is_used = segment.end + ahead_bytes / 2 > segment.prepared;
            if segment.prepared < segment_bytes {
                if is_used {
                    self.begin(engine, state, Some(segment), number, 0, ahead_bytes)?;
                }
            } else if pace.begins() {
                let ahead_bytes = if layout.ramp.is_some() { u64::MAX } else { ahead_bytes };
                self.begin(engine, state, Some(segment), number + 1, 0, ahead_bytes)?;
            }
        }
        match self.preparing.take() {
            Preparing::Waiting(next) => {
                let is_paced = next.number != number && !is_idle;
                let end = if is_paced { pace.end_of(next.end) } else { u64::MAX };
                self.go_on(engine, current, next, end)
            }
            other => {
                self.preparing = other;
                Ok(())
            }
        }
    }

    /// Starts the next step of a preparation, with zeros up to `end` at most.
    fn go_on(
        &mut self,
        engine: &mut Engine,
        current: &mut Option<OpenSegment>,
        next: Preparation,
        end: u64,
    ) -> Result<(), Error> {
        if !next.is_due(end) {
            self.keep(current, next);
            return Ok(());
        }
        next.start(engine, end)?;
        self.preparing = Preparing::InFlight(next);
        Ok(())
    }

    /// Stores a preparation, or, if it is ready and belongs to the current segment, adds its space
    /// to that segment.
    fn keep(&mut self, current: &mut Option<OpenSegment>, next: Preparation) {
        match current {
            Some(segment) if next.is_ready() && segment.number == next.number => {
                if segment.written == segment.prepared {
                    segment.written = next.written;
                }
                segment.prepared = next.end;
            }
            _ => self.preparing = Preparing::Waiting(next),
        }
    }

    /// Processes the completion of the step in flight.
    pub(super) fn settle(
        &mut self,
        engine: &mut Engine,
        current: &mut Option<OpenSegment>,
        completion: Completion,
    ) -> Result<(), Error> {
        let Preparing::InFlight(mut next) = self.preparing.take() else {
            unreachable!("a preparation is in flight")
        };
        match next.complete(engine, completion) {
            // W2
            Err(error) if next.flushes_records() => return Err(error),
            Err(error) => {
                self.left_over = next.abandon(engine).or(self.left_over.take());
                self.preparing = Preparing::Failed(error);
            }
            Ok(()) => self.keep(current, next),
        }
        Ok(())
    }

    /// Removes the file of a segment, or keeps it as the spare file if it can be reused and there
    /// is no spare file yet, or only a shorter one.
    pub(super) fn remove_segment(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        segment: &RetainedSegment,
    ) -> Result<(), Error> {
        let RetainedSegment { path, bytes, is_written, .. } = segment;
        // The path may be a symbolic link.
        let is_ordinary = |engine: &mut Engine| {
            let located = engine.locate(path);
            located.is_ok_and(|located| located.found == Found::File && located.path == *path)
        };
        let is_wanted = *is_written
            && !self.knows_no_sharing
            && !state.lacks_room()
            && *bytes <= state.terms.layout.segment_bytes
            && self.spare.as_ref().is_none_or(|spare| spare.bytes < *bytes)
            && is_ordinary(engine);
        if is_wanted && let Ok((spare, ())) = beside(path, |to| engine.rename(path, to, false)) {
            self.discard_spare(engine);
            self.spare = Some(Spare { path: spare, bytes: *bytes, is_removed_durably: false });
            return Ok(());
        }
        engine.remove(path)
    }

    /// Starts to prepare segment `number`, up to `end`, in the spare file. Returns `None` if there
    /// is no spare file, if it is longer than `end`, if `place` is occupied, or if a reader or a
    /// backup still uses the file.
    fn recycle(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        place: &Path,
        number: u64,
        end: u64,
    ) -> Result<Option<Preparation>, Error> {
        if self.spare.is_some() && engine.locate(place)?.found != Found::Nothing {
            // The path is occupied, because the file of a failed attempt could not be removed.
            return Ok(None);
        }
        let Some(spare) = self.spare.take_if(|spare| spare.bytes <= end) else { return Ok(None) };
        // The removal must be durable first. Otherwise a power loss could bring the file back under
        // its old name.
        if !spare.is_removed_durably {
            engine.sync_folder(state.terms.folder.path())?;
        }
        let Some((file, len_bytes)) = self.open_unshared(engine, state, &spare.path) else {
            // A new file can be used instead.
            let _ = engine.remove(&spare.path);
            return Ok(None);
        };
        let from = len_bytes - len_bytes % state.terms.layout.block_bytes;
        let zeros = self.zeros(&state.terms);
        let rest = Preparation::rest_of(file, &spare.path, number, zeros, from, end);
        Ok(Some(rest.in_spare_for(place)))
    }

    /// Opens the file and returns it with its length, unless it is shared.
    fn open_unshared(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        path: &Path,
    ) -> Option<(FileId, u64)> {
        let options = FileOptions::new().write(true).direct(state.terms.is_direct());
        let file = prepare::open(engine, path, &options).ok()?;
        let is_shared = engine.is_shared(file).unwrap_or_else(|error| {
            log::info!("segments are not recycled here: {error}");
            self.knows_no_sharing = true;
            true
        });
        let len_bytes = engine.file_len(file).ok().filter(|_| !is_shared);
        if len_bytes.is_none() {
            let _ = engine.close_file(file);
        }
        len_bytes.map(|len_bytes| (file, len_bytes))
    }

    /// Removes the spare file, which no segment will use. Returns whether there was one.
    pub(super) fn discard_spare(&mut self, engine: &mut Engine) -> bool {
        let Some(spare) = self.spare.take() else { return false };
        // If the file can't be removed now, the next open removes it.
        let _ = engine.remove(&spare.path);
        true
    }
}

/// The pace at which the next segment is prepared. A flush waits for zeros written before it, so
/// they are written in small steps.
#[derive(Clone, Copy)]
struct Pace {
    used: u64,
    segment_bytes: u64,
}

impl Pace {
    /// Returns whether to begin the next segment. It begins when half of the current one is used,
    /// and is complete when fifteen sixteenths are.
    fn begins(self) -> bool {
        self.used >= self.segment_bytes / 2
    }

    /// Returns the offset up to which the zeros of a next segment of `bytes` should reach now.
    fn end_of(self, bytes: u64) -> u64 {
        let sixteenth = (self.segment_bytes / 16).max(1);
        let used = self.used.saturating_sub(8 * sixteenth);
        let end = u128::from(bytes) * u128::from(used) / u128::from(7 * sixteenth);
        u64::try_from(end).map_or(bytes, |end| end.min(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Fault;
    use crate::log::LogOptions;
    use crate::log::testing::{folder, read, used_bytes};
    use crate::{Log, Sim};

    fn of_zeros() -> LogOptions {
        let options = Log::options().zeros(true).segment_bytes(64 << 10);
        options.buffers(2).buffer_bytes(4096)
    }

    fn append(log: &Log, records: u64) {
        for _ in 0..records {
            log.append(&[b'r'; 3000]).unwrap().wait().unwrap();
        }
    }

    fn hidden(sim: &Sim) -> usize {
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_owned();
        sim.names().iter().filter(|path| name(path).as_encoded_bytes()[0] == b'.').count()
    }

    /// Waits until a record is durable or the log has failed. Returns whether a wait reported that
    /// the record was not durable yet.
    fn wait_until_known(log: &Log, sequence: u64) -> Result<bool, Error> {
        let mut has_waited = false;
        loop {
            match log.ticket(sequence).wait() {
                Err(Error::NotYet { .. }) => has_waited = true,
                known => return known.map(|()| has_waited),
            }
        }
    }

    #[test]
    fn the_next_segment_is_prepared_while_the_second_half_of_this_one_fills() {
        let pace = |used| Pace { used, segment_bytes: 16 << 20 };
        assert!(!pace((8 << 20) - 1).begins() && pace(8 << 20).begins());
        let ends = [0, 8 << 20, 11_534_336, 15 << 20, 16 << 20, u64::MAX / 2]
            .map(|used| pace(used).end_of(32 << 20) >> 20);
        assert_eq!(ends, [0, 0, 13, 32, 32, 32]);
        assert_eq!(Pace { used: 0, segment_bytes: 0 }.end_of(4096), 0);
    }

    #[test]
    fn a_trim_of_a_full_disk_makes_room_for_the_records_that_wait() {
        let sim = Sim::new(1);
        let log = of_zeros().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        sim.set_capacity(used_bytes(&sim));
        let waiting =
            (0..100).find(|_| log.append(&[b'w'; 3000]).and_then(|it| it.wait()).is_err());
        assert!(waiting.is_some(), "the disk is not full");
        log.trim_before(60).unwrap();
        append(&log, 10);
        log.close().unwrap();
        assert_eq!(hidden(&sim), 0);
    }

    #[test]
    fn a_spare_file_makes_room_for_a_record_on_a_disk_that_is_full() {
        let sim = Sim::new(1);
        let log = of_zeros().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        log.trim_before(60).unwrap();
        assert_eq!(hidden(&sim), 1, "one file is kept");
        sim.set_capacity(used_bytes(&sim));
        let took = |_: &u32| log.append(&[b'w'; 3000]).and_then(|it| it.wait()).is_ok();
        // Each record takes up a block of 4096 bytes.
        assert!((0..100).take_while(took).count() >= 16 && hidden(&sim) == 0);
    }

    #[test]
    fn a_file_that_is_longer_than_segments_are_or_was_not_written_here_is_not_kept() {
        let sim = Sim::new(1);
        let log = of_zeros().zeros(false).on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        log.close().unwrap();
        let log = of_zeros().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 1);
        log.trim_before(60).unwrap();
        assert_eq!((hidden(&sim), log.stats().removed > 0), (0, true), "its blocks are allocated");
        append(&log, 100);
        log.trim_before(150).unwrap();
        assert_eq!(hidden(&sim), 1);
        append(&log, 100);
        assert!(log.stats().recycled > 0);
        log.close().unwrap();
        let small = of_zeros().segment_bytes(16 << 10).retain_bytes(32 << 10);
        let log = small.on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        assert!(log.stats().recycled > 5, "{:?}", log.stats());
    }

    #[test]
    fn an_error_that_may_pass_at_a_new_segment_loses_no_record_and_doubles_none() {
        // W1, W2
        let mut waits = 0;
        for errno in MAY_PASS {
            for operation in 0..60 {
                let sim = Sim::new(operation);
                let options = Log::options().segment_bytes(64 << 10).buffers(2);
                let log = options.buffer_bytes(4096).on(&sim.disk()).open(folder()).unwrap();
                // A shorter preparation is tried at once, so several operations must fail.
                let begin = sim.operations() + operation;
                (begin..begin + 8).for_each(|at| sim.fault(at, Fault::Once(errno)));
                let mut durable = 0;
                for number in 0..60_u64 {
                    let appended = log.append(&[number as u8; 3000]).map(|it| it.sequence());
                    let Ok(sequence) = appended else { break };
                    match wait_until_known(&log, sequence) {
                        Ok(has_waited) => waits += u64::from(has_waited),
                        Err(error) => {
                            assert_eq!(error.errno(), errno);
                            break;
                        }
                    }
                    durable = number + 1;
                }
                drop(log);
                sim.restart();
                let (records, end) = read(&sim, 0);
                end.unwrap();
                assert!(records.len() as u64 >= durable, "{errno} at {operation}");
                let in_order = (0..).zip(&records).all(|(number, it)| it.bytes[0] == number);
                assert!(in_order, "{errno} at {operation}");
            }
        }
        assert!(waits > 0, "no attempt found an error that may pass");
    }
}
