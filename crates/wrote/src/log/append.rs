//! Appending: a record is claimed a place, filled in, and published.

use super::claim::Place;
use super::driver::LogDriver;
use super::format::Format;
use super::record;
use super::ticket::Ticket;
use crate::Error;
use std::sync::Arc;

/// A ticket; `None` if the append would have to wait for room.
type TicketResult<'log> = Result<Option<Ticket<'log>>, Error>;

impl LogDriver {
    /// Appends `bytes`, and waits for room if `waits`.
    pub(super) fn append_bytes(self: &Arc<Self>, bytes: &[u8], waits: bool) -> TicketResult<'_> {
        let is_line = || !bytes.iter().any(|&byte| byte == b'\n' || byte == 0);
        if self.state.format() == Format::Lines && !is_line() {
            return Err(self.refusal("a line has no line feed and no NUL in it"));
        }
        self.append(bytes.len(), waits, |place| place.copy_from_slice(bytes))
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
        // Bytes that are no line must not reach its place.
        let mut line = vec![0; len];
        fill(&mut line);
        self.append_bytes(&line, true)
    }

    fn append(
        self: &Arc<Self>,
        len: usize,
        waits: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> TicketResult<'_> {
        let (state, claims) = (&self.state, &self.state.claims);
        state.check()?;
        let frame_bytes = state.format().frame_bytes(len);
        if frame_bytes > claims.frame_bytes_max() || len > record::LEN_MAX {
            return Err(self.too_long(len));
        }
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
        let (head, tail) = match self.state.format() {
            Format::Framed => (record::HEADER_BYTES, 0),
            Format::Lines => (0, 1),
        };
        let frame = guard.frame();
        let end = frame.len() - tail;
        fill(&mut frame[head..end]);
        guard.is_filled = true;
        ticket
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

/// A place that its producer fills. Dropping it publishes the place, filled or not: so the log
/// never waits for a producer that panicked.
struct PlaceGuard<'a> {
    driver: &'a LogDriver,
    /// Taken by the publication.
    place: Option<Place>,
    is_filled: bool,
}

impl PlaceGuard<'_> {
    fn frame(&mut self) -> &mut [u8] {
        let Place { address, offset, len, .. } = self.place.as_ref().expect("not published yet");
        let address = std::ptr::with_exposed_provenance_mut::<u8>(*address);
        // SAFETY: from the claim to the publication the place belongs to this value alone. It lies
        // in its slot's buffer. The flusher neither touches that buffer nor returns it to the pool
        // before every place in it is published. The pool lives as long as the flusher, which
        // `driver` holds.
        unsafe { std::slice::from_raw_parts_mut(address.add(*offset), *len) }
    }
}

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        let Some(&Place { seed, sequence, .. }) = self.place.as_ref() else { return };
        let (format, is_filled) = (self.driver.state.format(), self.is_filled);
        let frame = self.frame();
        match format {
            Format::Framed if is_filled => record::seal(frame, seed, sequence),
            Format::Framed => record::skip(frame, seed, sequence),
            Format::Lines => *frame.last_mut().expect("a line has its end") = b'\n',
        }
        let place = self.place.take().expect("not published yet");
        self.driver.notify_of(self.driver.state.claims.publish(place));
        self.driver.wake_sleeper();
    }
}
