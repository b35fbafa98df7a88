//! The check that a log contains all promised records, and only records that were sent.

use crate::fixtures::sender;
use crate::verbs::power_cut::content::describe;
use crate::verbs::power_cut::said::{Line, Report};
use std::collections::BTreeMap;

/// A record's position, both in the log and among its producer's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub sequence: u64,
    pub producer: u32,
    pub number: u64,
}

impl Place {
    /// Returns the position of a record with this sequence and these bytes. The bytes must be the
    /// `content` for their producer and number; otherwise, the error explains what is wrong.
    pub fn of(
        sequence: u64,
        bytes: &[u8],
        content: fn(u32, u64) -> Vec<u8>,
    ) -> Result<Place, String> {
        let own = sender(bytes).and_then(|(of, number)| Some((u32::try_from(of).ok()?, number)));
        let Some((producer, number)) = own else {
            let bytes = bytes.len();
            return Err(format!("record {sequence}: {bytes} bytes that no producer sent"));
        };
        let expected = content(producer, number);
        if bytes == expected {
            return Ok(Place { sequence, producer, number });
        }
        let because = describe(bytes, &expected);
        Err(format!("record {sequence}: number {number} of producer {producer}: {because}"))
    }
}

/// Compares the records of a log, in order, with the lines. A `trimmed` log may lack its oldest
/// records.
pub fn judge(places: &[Place], said: &Report, trimmed: bool) -> Result<(), String> {
    let first = places.first().map_or(0, |place| place.sequence);
    if first > 0 && !trimmed {
        return Err(format!("record 0 was promised to stay, and the log begins at {first}"));
    }
    in_order(places, first)?;
    none_unsent(places, said)?;
    let end = first + places.len() as u64;
    let mut promised = said.sure().iter().filter_map(promise);
    if let Some(promised) = promised.find(|promised| *promised > end) {
        let lost = promised - 1;
        return Err(format!("record {lost} was promised, and the log ends before {end}"));
    }
    // Late promises need not hold, but a record that exists must be the promised one.
    said.all().iter().try_for_each(|line| is_there(places, first, line))
}

/// Returns the sequence before which a line promises that all records are safe; `None` if it
/// promises nothing.
fn promise(line: &Line) -> Option<u64> {
    match line {
        Line::Appended { sequence, .. } => Some(sequence + 1),
        Line::Flushed(end) | Line::Reopened(end) => Some(*end),
        _ => None,
    }
}

/// Checks that the log has no gap, and that each producer's records are complete and in order.
fn in_order(places: &[Place], first: u64) -> Result<(), String> {
    let mut next = BTreeMap::new();
    for (place, sequence) in places.iter().zip(first..) {
        if place.sequence != sequence {
            return Err(format!("{place:?} stands where record {sequence} belongs"));
        }
        // A trimmed log lacks the records before its first one.
        let begin = if first == 0 { 0 } else { place.number };
        let expected = next.entry(place.producer).or_insert(begin);
        if place.number != *expected {
            return Err(format!("{place:?} stands where number {expected} belongs"));
        }
        *expected += 1;
    }
    Ok(())
}

fn none_unsent(places: &[Place], said: &Report) -> Result<(), String> {
    let mut sent = BTreeMap::new();
    for line in said.all() {
        if let Line::Sending { producer, end } = line {
            sent.insert(*producer, *end);
        }
    }
    let was_sent = |place: &&Place| place.number < sent.get(&place.producer).copied().unwrap_or(0);
    match places.iter().find(|place| !was_sent(place)) {
        Some(place) => Err(format!("{place:?} was never sent")),
        None => Ok(()),
    }
}

/// Checks that the record named by a line has the promised sequence.
fn is_there(places: &[Place], first: u64, line: &Line) -> Result<(), String> {
    let Line::Appended { sequence, producer, number } = *line else { return Ok(()) };
    let said = Place { sequence, producer, number };
    let index = sequence.checked_sub(first).and_then(|index| usize::try_from(index).ok());
    match index.and_then(|index| places.get(index)) {
        Some(found) if *found != said => {
            Err(format!("{said:?} was promised, and {found:?} is there"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(producer: u32, end: u64) -> Line {
        Line::Sending { producer, end }
    }

    fn said() -> Report {
        let appended = |sequence, producer, number| Line::Appended { sequence, producer, number };
        let sure = [sending(0, 2), sending(1, 1), appended(0, 0, 0), appended(2, 0, 1)];
        Report::of(&sure, &[appended(1, 1, 0), sending(1, 2), Line::Reopened(2)])
    }

    /// Checks a log that contains records with these producers and numbers.
    fn judged(first: u64, records: &[(u32, u64)], trimmed: bool) -> Result<(), String> {
        let places: Vec<Place> = (first..)
            .zip(records)
            .map(|(sequence, &(producer, number))| Place { sequence, producer, number })
            .collect();
        judge(&places, &said(), trimmed)
    }

    #[test]
    fn a_log_with_all_that_was_promised_may_have_more_that_was_sent() {
        assert_eq!(judged(0, &[(0, 0), (1, 0), (0, 1)], false), Ok(()));
        assert_eq!(judged(0, &[(0, 0), (1, 0), (0, 1), (1, 1)], false), Ok(()));
    }

    #[test]
    fn a_record_that_is_missing_mixed_up_doubled_or_never_sent_is_found() {
        let broken: [&[(u32, u64)]; 6] = [
            &[],
            &[(0, 0), (1, 0)],
            &[(1, 0), (0, 0), (0, 1)],
            &[(0, 0), (0, 1), (1, 0)],
            &[(0, 0), (1, 0), (0, 1), (0, 1)],
            &[(0, 0), (1, 0), (0, 1), (0, 2)],
        ];
        for records in broken {
            assert!(judged(0, records, false).is_err(), "{records:?}");
            assert!(judged(0, records, true).is_err(), "{records:?}");
        }
    }

    #[test]
    fn a_gap_in_the_sequences_is_found() {
        let place = |sequence, number| Place { sequence, producer: 0, number };
        let said = Report::of(&[sending(0, 2)], &[]);
        assert!(judge(&[place(0, 0), place(2, 1)], &said, false).is_err());
        assert!(judge(&[place(0, 0), place(1, 1)], &said, false).is_ok());
    }

    #[test]
    fn only_a_log_that_is_trimmed_may_begin_later() {
        assert_eq!(judged(1, &[(1, 0), (0, 1)], true), Ok(()));
        assert!(judged(1, &[(1, 0), (0, 1)], false).is_err());
    }

    #[test]
    fn records_found_by_an_opening_must_stay() {
        let said = Report::of(&[sending(0, 2), Line::Reopened(2)], &[]);
        let place = |sequence| Place { sequence, producer: 0, number: sequence };
        assert!(judge(&[place(0), place(1)], &said, false).is_ok());
        assert!(judge(&[place(0)], &said, false).is_err());
    }
}
