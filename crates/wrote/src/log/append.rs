//! Appending: a record's place is claimed, filled, and published.

use super::claim::{GROUP_MAX, Place, RUN_MAX};
use super::driver::LogDriver;
use super::format::Format;
use super::record;
use super::ticket::Ticket;
use crate::Error;
use std::ops::Range;
use std::sync::Arc;

/// The maximum bytes of a run's frames, unless it is a single record. A run that does not fit
/// closes the open batch, which should be far longer.
const RUN_BYTES_MAX: usize = 64 << 10;

/// A ticket; `None` if the append would have to wait for room.
type TicketResult<'log> = Result<Option<Ticket<'log>>, Error>;

impl LogDriver {
    /// Appends `bytes`, and waits for room if `waits`.
    pub(super) fn append_bytes(self: &Arc<Self>, bytes: &[u8], waits: bool) -> TicketResult<'_> {
        self.check_line(bytes)?;
        self.append(bytes.len(), waits, |place| place.copy_from_slice(bytes))
    }

    fn check_line(&self, bytes: &[u8]) -> Result<(), Error> {
        // Two fast searches; one loop over all bytes took half of a line's time.
        let is_line = || !bytes.contains(&b'\n') && !bytes.contains(&0);
        if self.state.format() == Format::Lines && !is_line() {
            return Err(self.refusal("a line has no line feed and no NUL in it"));
        }
        Ok(())
    }

    /// Appends a record of `len` bytes that `fill` writes in place, and waits for room.
    pub(super) fn append_with(
        self: &Arc<Self>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> TicketResult<'_> {
        if self.state.format() == Format::Framed {
            return self.append(len, true, fill);
        }
        self.frame_bytes(len)?;
        // An invalid line must not reach its place.
        let mut line = vec![0; len];
        fill(&mut line);
        self.append_bytes(&line, true)
    }

    /// Appends records from the start of `records`, as many as one claim covers, and returns their
    /// sequences: none while there is no room.
    pub(super) fn append_run(&self, records: &[&[u8]]) -> Result<Range<u64>, Error> {
        let (state, claims) = (&self.state, &self.state.claims);
        state.check()?;
        let (count, bytes) = self.run(records)?;
        if count == 0 {
            return Ok(0..0);
        }
        let claim = claims.claim_run(bytes, count);
        self.notify_of(claim.ready);
        let Some(mut place) = claim.place else {
            state.check()?;
            return if claims.has_ended() { Err(state.refusal_of_closed()) } else { Ok(0..0) };
        };
        let first_sequence = place.sequence;
        self.fill_frames(&mut place, &records[..count]);
        self.publish(place);
        Ok(first_sequence..first_sequence + count as u64)
    }

    /// Writes the frames of `records` into their claimed place.
    fn fill_frames(&self, place: &mut Place, records: &[impl AsRef<[u8]>]) {
        let (seed, first_sequence) = (place.seed, place.sequence);
        let mut rest = self.bytes_of(place);
        for (sequence, record) in (first_sequence..).zip(records) {
            let (record, frame) = (record.as_ref(), &mut *rest);
            let (frame, behind) = frame.split_at_mut(self.state.format().frame_bytes(record.len()));
            self.within(frame).copy_from_slice(record);
            self.seal(frame, seed, sequence);
            rest = behind;
        }
    }

    /// Appends records atomically (a crash keeps all or none), and waits for room if `waits`.
    /// Returns the ticket of the last.
    pub(super) fn append_group(
        self: &Arc<Self>,
        records: &[impl AsRef<[u8]>],
        waits: bool,
    ) -> TicketResult<'_> {
        let (state, claims) = (&self.state, &self.state.claims);
        // Checked first: a group that can never be appended is not an error of the disk.
        let bytes = self.group_bytes(records)?;
        state.check()?;
        loop {
            // A single record is atomic by its checksum.
            let claim = match records.len() {
                1 => claims.claim(bytes),
                count => claims.claim_group(bytes, count),
            };
            self.notify_of(claim.ready);
            match claim.place {
                Some(mut place) => {
                    let last = place.sequence + records.len() as u64 - 1;
                    let ticket = Ticket::new(self, last, place.slot);
                    self.fill_frames(&mut place, records);
                    self.publish(place);
                    return Ok(Some(ticket));
                }
                None if claims.has_ended() => {
                    state.check()?;
                    return Err(state.refusal_of_closed());
                }
                None if !waits => return Ok(None),
                None => self.wait_for_room()?,
            }
        }
    }

    /// Returns the bytes of a group's frames. Fails if it can't be appended as a whole.
    fn group_bytes(&self, records: &[impl AsRef<[u8]>]) -> Result<usize, Error> {
        if self.state.format() == Format::Lines {
            let because = "a log of lines has no checksums that would show half of a group; append \
                           its records one by one, or use the framed format";
            return Err(self.refusal(because));
        }
        if records.is_empty() {
            return Err(self.refusal("a group has one record at least"));
        }
        let bytes_max = self.state.claims.frame_bytes_max();
        let mut bytes = 0;
        for record in records {
            bytes += self.frame_bytes(record.as_ref().len())?;
        }
        if bytes <= bytes_max && records.len() <= GROUP_MAX {
            return Ok(bytes);
        }
        Err(self.refusal(&format!(
            "{} records, which take {bytes} bytes, do not fit into one buffer: it takes \
             {GROUP_MAX} records and {bytes_max} bytes, of which each record takes {} more than \
             its own (LogOptions::buffer_bytes)",
            records.len(),
            record::HEADER_BYTES
        )))
    }

    /// Returns how many of `records` one claim covers, and the bytes of their frames. Fails if the
    /// first can't be appended.
    fn run(&self, records: &[&[u8]]) -> Result<(usize, usize), Error> {
        let bytes_max = RUN_BYTES_MAX.min(self.state.claims.frame_bytes_max());
        let (mut count, mut bytes) = (0, 0);
        for record in records.iter().take(RUN_MAX) {
            let frame_bytes = self.check_line(record).and_then(|()| self.frame_bytes(record.len()));
            match frame_bytes {
                Ok(more) if count == 0 || bytes + more <= bytes_max => {
                    (count, bytes) = (count + 1, bytes + more);
                }
                Err(error) if count == 0 => return Err(error),
                _ => break,
            }
        }
        Ok((count, bytes))
    }

    fn append(
        self: &Arc<Self>,
        len: usize,
        waits: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> TicketResult<'_> {
        let (state, claims) = (&self.state, &self.state.claims);
        state.check()?;
        let frame_bytes = self.frame_bytes(len)?;
        loop {
            let claim = claims.claim(frame_bytes);
            self.notify_of(claim.ready);
            match claim.place {
                Some(place) => return Ok(Some(self.fill(place, fill))),
                None if claims.has_ended() => {
                    state.check()?;
                    return Err(state.refusal_of_closed());
                }
                None if !waits => return Ok(None),
                None => self.wait_for_room()?,
            }
        }
    }

    fn fill(self: &Arc<Self>, place: Place, fill: impl FnOnce(&mut [u8])) -> Ticket<'_> {
        let ticket = Ticket::new(self, place.sequence, place.slot);
        let mut guard = PlaceGuard { driver: self, place: Some(place), is_filled: false };
        fill(self.within(guard.frame()));
        guard.is_filled = true;
        ticket
    }

    fn bytes_of<'a>(&'a self, place: &'a mut Place) -> &'a mut [u8] {
        let Place { address, offset, len, .. } = *place;
        let address = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: from claim to publication the place belongs to its only owner, who lends it here.
        // It lies in its slot's buffer, which the flusher neither touches nor returns to the pool
        // before every place in it is published. The pool lives as long as the flusher, which
        // `self` holds.
        unsafe { std::slice::from_raw_parts_mut(address.add(offset), len) }
    }

    /// Returns the bytes of the record in a frame.
    fn within<'a>(&self, frame: &'a mut [u8]) -> &'a mut [u8] {
        let (head, tail) = match self.state.format() {
            Format::Framed => (record::HEADER_BYTES, 0),
            Format::Lines => (0, 1),
        };
        let end = frame.len() - tail;
        &mut frame[head..end]
    }

    /// Completes a frame whose record is in place.
    fn seal(&self, frame: &mut [u8], seed: u32, sequence: u64) {
        match self.state.format() {
            Format::Framed => record::seal(frame, seed, sequence),
            Format::Lines => *frame.last_mut().expect("a line has its end") = b'\n',
        }
    }

    fn publish(&self, place: Place) {
        self.notify_of(self.state.claims.publish(place));
        self.wake_sleeper();
    }

    /// Returns the bytes of a record's frame. Fails if no batch has room for it.
    fn frame_bytes(&self, len: usize) -> Result<usize, Error> {
        let frame_bytes = self.state.format().frame_bytes(len);
        if frame_bytes > self.state.claims.frame_bytes_max() || len > record::LEN_MAX {
            return Err(self.too_long(len));
        }
        Ok(frame_bytes)
    }

    #[cold]
    fn too_long(&self, len: usize) -> Error {
        let overhead = self.state.format().frame_bytes(0);
        let len_max = (self.state.claims.frame_bytes_max() - overhead).min(record::LEN_MAX);
        self.refusal(&format!(
            "a record of {len} bytes does not fit into a buffer, which takes {len_max} \
             (LogOptions::buffer_bytes)"
        ))
    }

    fn refusal(&self, because: &str) -> Error {
        Error::refused(&self.state.terms.folder, because)
    }
}

/// A place being filled by its producer. Dropping it publishes the place, filled or not, so that
/// the log never waits for a producer that panicked.
struct PlaceGuard<'a> {
    driver: &'a LogDriver,
    /// Taken by the publication.
    place: Option<Place>,
    is_filled: bool,
}

impl PlaceGuard<'_> {
    fn frame(&mut self) -> &mut [u8] {
        self.driver.bytes_of(self.place.as_mut().expect("not published yet"))
    }
}

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        let Some(&Place { seed, sequence, .. }) = self.place.as_ref() else { return };
        let (driver, is_filled) = (self.driver, self.is_filled);
        let frame = self.frame();
        match driver.state.format() {
            Format::Framed if !is_filled => record::skip(frame, seed, sequence),
            _ => driver.seal(frame, seed, sequence),
        }
        driver.publish(self.place.take().expect("not published yet"));
    }
}
