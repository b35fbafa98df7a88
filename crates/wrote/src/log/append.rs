//! Appending: claims a place for records, fills it, and publishes it.

use super::claim::{Claim, GROUP_MAX, Place};
use super::driver::LogDriver;
use super::record;
use super::ticket::Ticket;
use crate::{Action, Error};
use std::sync::Arc;

/// The option that limits the length of a record, as named in errors.
const BUFFER_BYTES: &str = "LogOptions::buffer_bytes";

/// The ticket of an append; `None` if the append would have to wait for room.
type TicketResult<'log> = Result<Option<Ticket<'log>>, Error>;

/// Appends a record and returns its ticket. If there is no room, waits for it if `waits` is set,
/// and otherwise returns `None`.
pub(super) fn append<'log>(
    driver: &'log Arc<LogDriver>,
    bytes: &[u8],
    waits: bool,
) -> TicketResult<'log> {
    driver.state.check()?;
    let frame_bytes = frame_bytes(driver, bytes.len())?;
    let Some(mut place) = place(driver, waits, || driver.state.claims.claim(frame_bytes))? else {
        return Ok(None);
    };
    let ticket = Ticket::new(driver, place.sequence, place.slot);
    let (seed, sequence) = (place.seed, place.sequence);
    fill(bytes_of(driver, &mut place), bytes, seed, sequence);
    publish(driver, place);
    Ok(Some(ticket))
}

/// Appends records atomically (a crash keeps all or none of them), and returns the ticket of the
/// last one. If there is no room, waits for it if `waits` is set, and otherwise returns `None`.
pub(super) fn append_group<'log>(
    driver: &'log Arc<LogDriver>,
    records: &[impl AsRef<[u8]>],
    waits: bool,
) -> TicketResult<'log> {
    if let [record] = records {
        // A single record is already atomic because of its checksum.
        return append(driver, record.as_ref(), waits);
    }
    // This is checked first, so that a group that can never be appended is not reported as an error
    // of the disk.
    let bytes = group_bytes(driver, records)?;
    driver.state.check()?;
    let claim = || driver.state.claims.claim_group(bytes, records.len());
    let Some(mut place) = place(driver, waits, claim)? else { return Ok(None) };
    let (seed, first_sequence) = (place.seed, place.sequence);
    let last = first_sequence + records.len() as u64 - 1;
    let ticket = Ticket::new(driver, last, place.slot);
    let mut rest = bytes_of(driver, &mut place);
    for (sequence, record) in (first_sequence..).zip(records) {
        let record = record.as_ref();
        let frame;
        (frame, rest) = rest.split_at_mut(record::frame_bytes(record.len()));
        fill(frame, record, seed, sequence);
    }
    publish(driver, place);
    Ok(Some(ticket))
}

/// Claims a place. If there is no room, waits for it if `waits` is set, and otherwise returns
/// `None`.
fn place(
    driver: &LogDriver,
    waits: bool,
    claim: impl Fn() -> Claim,
) -> Result<Option<Place>, Error> {
    loop {
        let claim = claim();
        driver.notify_of(claim.ready);
        if claim.place.is_some() {
            return Ok(claim.place);
        }
        if driver.state.claims.has_ended() {
            driver.state.check()?;
            return Err(driver.state.refusal_of_closed());
        }
        if !waits {
            return Ok(None);
        }
        driver.wait_for_room()?;
    }
}

/// Returns the total length of a group's frames in bytes. Fails if the group is empty, or too long
/// to be appended atomically.
fn group_bytes(driver: &LogDriver, records: &[impl AsRef<[u8]>]) -> Result<usize, Error> {
    if records.is_empty() {
        return Err(refusal(driver, "a group has one record at least"));
    }
    let bytes_max = driver.state.claims.frame_bytes_max();
    let mut bytes = 0;
    for record in records {
        bytes += frame_bytes(driver, record.as_ref().len())?;
    }
    if records.len() > GROUP_MAX {
        let because = format!("{} records, but a group has {GROUP_MAX} at most", records.len());
        return Err(refusal(driver, &because));
    }
    if bytes > bytes_max {
        // The limit includes the header of each record.
        return Err(too_long(driver, bytes, bytes_max));
    }
    Ok(bytes)
}

fn bytes_of<'a>(_: &'a LogDriver, place: &'a mut Place) -> &'a mut [u8] {
    let Place { address, offset, len, .. } = *place;
    let address = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: from its claim to its publication, a place belongs to a single owner, who lends it to
    // this function. The place is within its slot's buffer. The flusher neither touches that buffer
    // nor returns it to the pool before every place in it is published. The pool lives as long as
    // the flusher, which the driver holds.
    unsafe { std::slice::from_raw_parts_mut(address.add(offset), len) }
}

/// Writes a record with its header into `frame`.
fn fill(frame: &mut [u8], record: &[u8], seed: u32, sequence: u64) {
    frame[record::HEADER_BYTES..].copy_from_slice(record);
    record::seal(frame, seed, sequence);
}

fn publish(driver: &LogDriver, place: Place) {
    driver.notify_of(driver.state.claims.publish(place));
    driver.wake_sleeper();
}

/// Returns the length of a record's frame in bytes. Fails if no batch has room for it.
fn frame_bytes(driver: &LogDriver, len: usize) -> Result<usize, Error> {
    let frame_bytes = record::frame_bytes(len);
    if frame_bytes > driver.state.claims.frame_bytes_max() || len > record::LEN_MAX {
        let bytes_max = driver.state.claims.frame_bytes_max() - record::frame_bytes(0);
        return Err(too_long(driver, len, bytes_max.min(record::LEN_MAX)));
    }
    Ok(frame_bytes)
}

#[cold]
fn too_long(driver: &LogDriver, len: usize, len_max: usize) -> Error {
    let path = driver.state.terms.folder.path().to_owned();
    let (action, len_max, limit) = (Action::Append, len_max as u64, BUFFER_BYTES);
    Error::TooLong { path, action, offset: None, len, len_max, limit }
}

fn refusal(driver: &LogDriver, because: &str) -> Error {
    Error::refused(driver.state.terms.folder.path(), because)
}
