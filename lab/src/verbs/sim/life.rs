//! One life of a log, from its opening to its end.

use crate::verbs::sim::disk::{Disk, FOLDER};
use crate::verbs::sim::model::{Model, Slot};
use crate::verbs::sim::program;
use crate::verbs::sim::program::{End, Flavour, How, Opening, Step};
use crate::verbs::sim::reading::CheckedReader;
use crate::verbs::sim::run::Tally;
use crate::verbs::sim::{Trouble, holds};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use wrote::{Error, Log, Survives, SyncPolicy};

/// The number of polls after which a future is considered lost.
const POLLS: usize = 10_000;

/// An open log, with facts about it.
pub struct OpenLog<'a> {
    pub disk: &'a Disk,
    pub model: &'a mut Model,
    pub tally: &'a mut Tally,
    pub log: &'a Log,
    pub opening: Opening,
    /// A reader that continues after the end when there are new records.
    pub follower: Option<CheckedReader>,
    /// The operation at which the current reading of `follower` began.
    pub follower_begun: u64,
    /// The first error of the log, in words. Every later call must return it (W2).
    pub poison: Option<String>,
    /// Whether the disk was ever full. In that case, a log fails only if it has to write a record,
    /// and waits for room if it prepares space.
    pub was_full: bool,
}

const ENOSPC: i32 = 28;
/// The number of bytes that a record needs in addition to its content.
const RECORD_HEADER_BYTES: usize = 8;

impl OpenLog<'_> {
    /// Performs a step.
    pub fn step(&mut self, step: Step) -> Result<(), Trouble> {
        self.disk.begin();
        match step {
            Step::Append { len, how, flavour } => self.append(len, how, flavour),
            Step::All { count, len, tries, flavour } => self.all(count, len, tries, flavour),
            Step::Trim { back } => self.trim(back),
            Step::Cut { back } => self.cut(back),
            Step::TooLong => self.too_long(),
            Step::Wait { back } => self.wait(back, |log, sequence| log.ticket(sequence).wait()),
            Step::Await { back } => self.wait(back, awaited),
            Step::Sync => self.sync(),
            Step::Stats => self.stats(),
            Step::Read { from } => self.read(from),
            Step::Follow => self.follow(),
            Step::Room { bytes } => {
                self.disk.limit_room(bytes);
                Ok(())
            }
        }
    }

    /// Ends the life. Closes the log first if `end` requires it.
    pub fn end(&mut self, end: End) -> Result<(), Trouble> {
        self.follower = None;
        if !matches!(end, End::Close | End::CloseAndCut) {
            return Ok(());
        }
        let closed = self.log.close();
        if self.allowed(closed)?.is_some() {
            self.promise_durable(self.model.end());
            self.tally.closed += 1;
            let refused = self.log.append(b"late");
            holds(matches!(refused, Err(Error::Refused { .. })), || {
                "a log that was closed takes records".to_owned()
            })?;
        }
        Ok(())
    }

    fn promise_durable(&mut self, sequence: u64) {
        self.model.lied |= self.disk.has_lied();
        self.model.promise_durable(sequence);
    }

    /// Returns the value of a successful call, or `None` if the call failed and was allowed to
    /// fail.
    fn allowed<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Trouble> {
        match (result, &self.poison) {
            (Ok(_), Some(first)) => {
                Err(Trouble::Broken(format!("a success after the error {first:?} (W2)")))
            }
            (Err(error), Some(first)) => {
                let same = error.to_string() == *first;
                holds(same, || format!("the error {error} after {first:?} (W2)")).map(|()| None)
            }
            (Ok(value), None) => Ok(Some(value)),
            (Err(error), None) => {
                self.disk.excuse(&error)?;
                if error.errno() == ENOSPC {
                    self.was_full = true;
                } else {
                    self.poison = Some(error.to_string());
                }
                self.tally.errors += 1;
                Ok(None)
            }
        }
    }

    fn append(&mut self, len: usize, how: How, flavour: Flavour) -> Result<(), Trouble> {
        let len = len.min(self.opening.len_max());
        let bytes = self.content(len, flavour);
        let appended = match how {
            How::Append | How::AndWait => {
                self.log.append(&bytes).map(|ticket| Some(ticket.sequence()))
            }
            How::Try => {
                let tried = self.log.try_append(&[&bytes]);
                tried.map(|ticket| ticket.map(|ticket| ticket.sequence()))
            }
        };
        if let Some(Some(sequence)) = self.allowed(appended)? {
            self.tally.appended += 1;
            self.model.append(Slot::Record(bytes), sequence)?;
        }
        if how == How::AndWait && self.poison.is_none() {
            self.wait(0, |log, sequence| log.ticket(sequence).wait())?;
        }
        Ok(())
    }

    fn all(
        &mut self,
        count: usize,
        len: usize,
        tries: bool,
        flavour: Flavour,
    ) -> Result<(), Trouble> {
        let len = len.min(self.opening.len_max() / count - RECORD_HEADER_BYTES);
        let records: Vec<Vec<u8>> = (0..count).map(|_| self.content(len, flavour)).collect();
        let appended = match tries {
            true => self.log.try_append(&records).map(|ticket| {
                let end = ticket?.sequence() + 1;
                Some((end - count as u64..end, end - 1))
            }),
            false => self
                .log
                .append_all(&records)
                .map(|(sequences, ticket)| Some((sequences, ticket.sequence()))),
        };
        let Some(Some((sequences, last))) = self.allowed(appended)? else { return Ok(()) };
        holds(sequences.end == last + 1 && sequences.clone().count() == count, || {
            format!("{count} records have the sequences {sequences:?}, and the last {last}")
        })?;
        self.model.group(sequences.clone());
        for (sequence, bytes) in sequences.zip(records) {
            self.tally.appended += 1;
            self.model.append(Slot::Record(bytes), sequence)?;
        }
        self.tally.groups += 1;
        Ok(())
    }

    fn trim(&mut self, back: u64) -> Result<(), Trouble> {
        let sequence = self.model.end().saturating_sub(back);
        self.model.trimmed = true;
        let trimmed = self.log.trim_before(sequence);
        let was_there = self.log.stats().first_sequence;
        match self.allowed_if_it_lives(trimmed)? {
            Some(first) => {
                // Retention may have removed more records.
                let most = sequence.max(self.model.first());
                let is_asked = first <= most || self.opening.removes();
                holds(is_asked && first == was_there, || {
                    format!("trimmed before {sequence}, and {first} is the first record")
                })?;
                self.model.remove(first)?;
                self.model.promise_removed(first);
                self.tally.trims += 1;
                Ok(())
            }
            // Some records may have been removed.
            None => self.model.remove(was_there),
        }
    }

    fn cut(&mut self, back: u64) -> Result<(), Trouble> {
        let next = self.model.end().saturating_sub(back).max(self.model.first());
        if self.poison.is_some() {
            let cut = self.log.truncate_from(next);
            return self.allowed(cut).map(drop);
        }
        if next.is_multiple_of(2) {
            // The follower is a reader that has read everything.
            self.sync()?;
            self.follow()?;
        } else {
            self.follower = None;
        }
        if self.poison.is_some() {
            return Ok(());
        }
        self.model.begin_cut(next);
        let cut = self.log.truncate_from(next);
        if matches!(&cut, Err(Error::Refused { .. })) && self.opening.removes() {
            // Retention has already removed the records before the cut.
            self.model.end_cut(false);
            return self.stats();
        }
        self.model.lied |= self.disk.has_lied();
        if self.allowed_if_it_lives(cut)?.is_none() {
            self.follower = None;
            if self.poison.is_none() {
                self.model.end_cut(false);
            }
            return Ok(());
        }
        self.model.end_cut(true);
        self.tally.truncations += 1;
        let Some(mut follower) = self.follower.take() else { return Ok(()) };
        self.disk.begin_at(self.follower_begun);
        let first = self.model.first();
        let followed = match follower.has_passed(next) {
            true => follower.is_told_of_cut(next),
            false => follower.go_on(self.model, first, self.written().min(next)).map(drop),
        };
        let followed = match followed {
            // The follower has skipped slots without a record.
            Err(Trouble::Error(Error::Truncated { sequence, .. })) if sequence == next => {
                follower.is_told_of_cut(next)
            }
            followed => followed,
        };
        if self.disk.unless_excused(followed)?.is_some() {
            self.follower = Some(follower);
        }
        Ok(())
    }

    /// Like [`OpenLog::allowed`], but for a call whose failure need not mean that the log has
    /// failed.
    fn allowed_if_it_lives<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Trouble> {
        match result {
            Err(error) if self.poison.is_none() => {
                self.disk.excuse(&error)?;
                self.tally.errors += 1;
                match self.log.check() {
                    Err(failed) if !self.log.is_waiting_for_room() => {
                        self.poison = Some(failed.to_string());
                    }
                    _ => self.was_full |= error.errno() == ENOSPC,
                }
                Ok(None)
            }
            result => self.allowed(result),
        }
    }

    fn content(&mut self, len: usize, flavour: Flavour) -> Vec<u8> {
        self.tally.numbers += 1;
        let number = self.tally.numbers;
        match flavour {
            Flavour::Own => {
                let file = self.disk.last_segment().unwrap_or_default();
                program::with_pieces_of(&file, number, len)
            }
            _ => program::bytes(number, len, flavour),
        }
    }

    fn too_long(&mut self) -> Result<(), Trouble> {
        let bytes = vec![b'l'; self.opening.buffer_bytes + 1];
        match self.log.append(&bytes).map(drop) {
            Err(Error::TooLong { .. }) if self.poison.is_none() => Ok(()),
            Ok(()) => Err(Trouble::Broken("a record too long for a buffer is taken".to_owned())),
            error => self.allowed(error).map(drop),
        }
    }

    fn wait(
        &mut self,
        back: u64,
        wait: impl FnOnce(&Log, u64) -> Result<(), Error>,
    ) -> Result<(), Trouble> {
        let Some(sequence) = self.model.end().checked_sub(1 + back) else { return Ok(()) };
        if sequence < self.model.first() {
            return Ok(());
        }
        let was_durable = sequence < self.model.durable();
        let waited = wait(self.log, sequence);
        if was_durable {
            // A record that was acknowledged stays acknowledged, whatever has failed since then.
            return waited.map_err(|error| {
                Trouble::Broken(format!("record {sequence} was durable, and then: {error}"))
            });
        }
        let knows = self.poison.is_some();
        if knows && waited.is_ok() {
            // If the record became safe before the error, the log still reports it as safe.
            return self.is_as_safe_as_waited_for(sequence);
        }
        if self.allowed(waited)?.is_some() {
            self.is_as_safe_as_waited_for(sequence)?;
        }
        Ok(())
    }

    /// Checks that a record is safe after its ticket was waited for successfully.
    fn is_as_safe_as_waited_for(&mut self, sequence: u64) -> Result<(), Trouble> {
        let always = self.opening.sync == SyncPolicy::Always;
        let least = if always { Survives::PowerLoss } else { Survives::ProcessCrash };
        let survives = self.log.survives(sequence);
        holds(survives >= least, || {
            format!("record {sequence} was waited for and survives {survives}")
        })?;
        self.tally.acknowledged += 1;
        match survives {
            Survives::PowerLoss => self.promise_durable(sequence + 1),
            _ => self.model.promise_written(sequence + 1),
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Trouble> {
        let synced = self.log.sync();
        if self.allowed(synced)?.is_some() {
            self.promise_durable(self.model.end());
        }
        self.stats()
    }

    fn stats(&mut self) -> Result<(), Trouble> {
        let stats = self.log.stats();
        let end = self.model.end();
        let order = [stats.durable_sequence, stats.written_sequence, stats.next_sequence, end];
        holds(order.is_sorted(), || {
            format!("durable, written, appended, sent are {order:?}, each at least the one before")
        })?;
        holds(self.poison.is_some() || self.was_full || stats.next_sequence == end, || {
            format!("{} is said to be next, {end} is", stats.next_sequence)
        })?;
        holds(stats.durable_sequence >= self.model.durable(), || {
            format!("{} are durable now, {} were", stats.durable_sequence, self.model.durable())
        })?;
        self.promise_durable(stats.durable_sequence);
        self.model.promise_written(stats.written_sequence);
        holds(stats.first_sequence == self.model.first() || self.opening.removes(), || {
            format!("the first record is {} now, and nothing is removed", stats.first_sequence)
        })?;
        self.model.remove(stats.first_sequence)?;
        if stats.removed == 0 { Ok(()) } else { self.size() }
    }

    /// Checks that the log does not keep more than its options allow.
    fn size(&self) -> Result<(), Trouble> {
        let Some(retain_bytes) = self.opening.retain_bytes else { return Ok(()) };
        // An earlier life may have left longer segments.
        let segment_bytes = self.disk.segment_bytes_max.get();
        let bytes = self.disk.segment_bytes();
        holds(bytes <= retain_bytes + SEGMENTS_MORE * (segment_bytes + SEGMENT_SLACK), || {
            format!("segments take {bytes} bytes, {retain_bytes} are to be kept")
        })
    }

    fn read(&mut self, from: u8) -> Result<(), Trouble> {
        self.stats()?;
        let from = self.model.end() * u64::from(from) / 256;
        let removed = self.model.first();
        let read = self.disk.read(|| {
            let least = self.written();
            let mut reading = CheckedReader::new(self.log.reader(from)?, from);
            if from.is_multiple_of(2) {
                reading.go_on(self.model, removed, least)?;
            } else {
                reading.read_lent(self.model, removed, least)?;
            }
            reading.has_ended()
        });
        read.map(drop)
    }

    /// Returns the sequence before which a reader must find everything or report an error.
    fn written(&self) -> u64 {
        let written = self.model.unless_cut(self.log.stats().written_sequence);
        self.model.proven(written, self.disk.rotten())
    }

    fn follow(&mut self) -> Result<(), Trouble> {
        self.stats()?;
        let first = self.model.first();
        if self.follower.is_none() {
            self.follower_begun = self.disk.begin();
            let reader = self.log.reader(first).map_err(Trouble::from);
            let follower = reader.map(|reader| CheckedReader::new(reader, first));
            self.follower = self.disk.unless_excused(follower)?;
        }
        self.disk.begin_at(self.follower_begun);
        let Some(mut follower) = self.follower.take() else { return Ok(()) };
        let least = self.written();
        let read = follower.go_on(self.model, first, least);
        if self.disk.unless_excused(read)?.is_some() {
            self.follower = Some(follower);
        }
        Ok(())
    }
}

/// In addition to the retained segments, one is being written, one prepared and one flushed, and
/// one remains until the next one exists.
const SEGMENTS_MORE: u64 = 4;
/// A segment may be longer than its option says, because of headers and because it is rounded up to
/// whole buffers.
const SEGMENT_SLACK: u64 = 16 << 10;

fn awaited(log: &Log, sequence: u64) -> Result<(), Error> {
    let mut ticket = pin!(log.ticket(sequence));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS {
        if let Poll::Ready(result) = ticket.as_mut().poll(&mut context) {
            return result;
        }
    }
    panic!("{POLLS} polls did not bring record {sequence} further");
}

/// Reopens the log, without reading it.
pub fn open(disk: &Disk, opening: Opening) -> Result<Log, Error> {
    opening.options().on(&disk.sim.disk()).open(FOLDER)
}
