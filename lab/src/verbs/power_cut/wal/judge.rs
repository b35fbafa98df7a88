//! The check that groups are whole, and that trims and cuts did exactly what was promised.

use super::{Place, size};
use crate::verbs::power_cut::said::{Line, Report};

/// A possible state of the log.
#[derive(Clone, Debug, Default)]
struct World {
    /// All records that may exist, from sequence 0 on.
    records: Vec<Place>,
    /// Records before this sequence must exist, or be trimmed.
    durable: usize,
}

impl World {
    fn append(&mut self, group: u64) {
        self.records.extend((0..size(group)).map(|index| Place { group, index }));
    }

    /// Returns the state after a cut, which is made when everything before it is durable.
    fn cut(&self, at: usize) -> World {
        let mut records = self.records.clone();
        records.truncate(at);
        World { durable: at, records }
    }

    /// Compares the records of a log that ends before `end`.
    fn compare(&self, places: &[(u64, Place)], end: usize) -> Result<(), String> {
        if end < self.durable {
            let lost = self.durable - 1;
            return Err(format!("record {lost} was promised, and the log ends before {end}"));
        }
        if end > self.records.len() {
            let most = self.records.len();
            return Err(format!("the log ends before {end}, where {most} records may be"));
        }
        if let Some(torn) = self.records.get(end).filter(|place| place.index > 0) {
            return Err(format!("the log ends before {end}, and lacks {torn:?} of a group"));
        }
        let is_wrong = |(sequence, place): &&(u64, Place)| {
            self.records.get(*sequence as usize).is_none_or(|expected| expected != place)
        };
        match places.iter().find(is_wrong) {
            Some((sequence, place)) => Err(format!("{place:?} is there as record {sequence}")),
            None => Ok(()),
        }
    }
}

/// The states and limits of a log that the lines allow.
#[derive(Debug)]
struct Told {
    /// The possible states. The last one is the expected one.
    worlds: Vec<World>,
    /// The number of the next group.
    group: u64,
    /// No record from here on may be trimmed.
    trimmed_max: u64,
    /// Records before this sequence are trimmed.
    trimmed: u64,
    /// The end of the log when it was reopened.
    reopened: Option<u64>,
}

impl Told {
    /// Processes one line. A promise of a line that is not `sure` need not hold.
    fn take(&mut self, line: &Line, sure: bool) -> Result<(), String> {
        let last = self.worlds.last_mut().expect("at least one");
        match *line {
            Line::Grouping(end) => {
                (self.group..end).for_each(|group| last.append(group));
                self.group = end;
            }
            Line::Grouped { group, sequence } => {
                let begin = usize::try_from(sequence).unwrap_or(usize::MAX);
                if last.records.get(begin) != Some(&Place { group, index: 0 }) {
                    return Err(format!("group {group} was given sequence {sequence}"));
                }
                if sure {
                    last.durable = last.durable.max(begin + size(group) as usize);
                }
            }
            Line::Cutting(at) => {
                let cut = last.cut(at as usize);
                self.worlds.push(cut);
            }
            Line::Cut(_) if sure => {
                self.worlds.drain(..self.worlds.len() - 1);
            }
            Line::Trimming(before) => self.trimmed_max = self.trimmed_max.max(before),
            Line::Trimmed { before, first } => {
                // A trim that removes nothing returns the first record left by an earlier one.
                if first > self.trimmed_max {
                    return Err(format!("a trim before {before} left records from {first} on"));
                }
                if sure {
                    self.trimmed = self.trimmed.max(first);
                }
            }
            Line::Reopened(end) if sure => self.reopened = Some(end),
            _ => {}
        }
        Ok(())
    }
}

/// Compares the records of a log, in order, and its next sequence with the lines. Returns the state
/// of the unfinished action in one word.
pub fn judge(places: &[(u64, Place)], next: u64, said: &Report) -> Result<&'static str, String> {
    let mut told = Told {
        worlds: vec![World::default()],
        group: 0,
        trimmed_max: 0,
        trimmed: 0,
        reopened: None,
    };
    for (line, number) in said.all().iter().zip(0..) {
        told.take(line, number < said.sure().len())?;
    }
    let first = places.first().map_or(next, |(sequence, _)| *sequence);
    in_order(places, first, next)?;
    if first < told.trimmed {
        return Err(format!("records before {} were trimmed, and {first} is there", told.trimmed));
    }
    // An empty log shows no trim.
    if first > told.trimmed_max && first < next {
        let most = told.trimmed_max;
        return Err(format!("the log begins at {first}, and was to be trimmed before {most}"));
    }
    if let Some((_, place)) = places.first().filter(|(_, place)| place.index > 0) {
        return Err(format!("the log begins with {place:?}, and lacks the group's begin"));
    }
    if let Some(end) = told.reopened.filter(|end| *end != next) {
        return Err(format!(
            "the log ended before {end} when it was opened, and now before {next}"
        ));
    }
    let end = usize::try_from(next).unwrap_or(usize::MAX);
    let compared: Vec<_> = told.worlds.iter().map(|world| world.compare(places, end)).collect();
    let Some(place) = compared.iter().rposition(Result::is_ok) else {
        return compared.into_iter().next_back().expect("at least one").map(|()| "");
    };
    Ok(match told.worlds.len() {
        1 if end == told.worlds[0].durable => "promised",
        1 => "more",
        worlds if place + 1 == worlds => "cut",
        _ => "uncut",
    })
}

/// Checks that the log has no gap.
fn in_order(places: &[(u64, Place)], first: u64, next: u64) -> Result<(), String> {
    if let Some(((sequence, place), expected)) =
        places.iter().zip(first..).find(|((sequence, _), expected)| sequence != expected)
    {
        return Err(format!("{place:?} stands at {sequence}, where record {expected} belongs"));
    }
    let end = first + places.len() as u64;
    if end == next { Ok(()) } else { Err(format!("the log goes on at {next}, behind {end}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::power_cut::said::parse;

    /// Judges the records `first..next` of a log of the groups 0, 1, 2 ...
    fn judged(first: u64, next: u64, said: &str) -> Result<&'static str, String> {
        let mut world = World::default();
        (0..20).for_each(|group| world.append(group));
        let place = |sequence| (sequence, world.records[sequence as usize]);
        let places: Vec<_> = (first..next).map(place).collect();
        judge(&places, next, &parse(said).expect("lines"))
    }

    /// Returns the sequence at which a group begins.
    fn begin(group: u64) -> u64 {
        (0..group).map(size).sum()
    }

    /// Returns a group of more than one record, with a group before and after it.
    fn several() -> u64 {
        (2..10).find(|group| size(*group) > 1).expect("most have several")
    }

    #[test]
    fn a_group_is_there_as_a_whole_or_not_at_all() {
        let several = several();
        let said = "grouping 20\ngrouped 0 0\n";
        assert_eq!(judged(0, begin(1), said), Ok("promised"));
        assert_eq!(judged(0, begin(several), said), Ok("more"));
        assert_eq!(judged(0, begin(several + 1), said), Ok("more"));
        let torn = judged(0, begin(several) + 1, said).unwrap_err();
        assert!(torn.contains("of a group"), "{torn}");
    }

    #[test]
    fn a_promised_group_must_be_there_and_one_never_begun_must_not() {
        let said = format!("grouping 3\ngrouped 0 0\ngrouped 1 {}\n", begin(1));
        assert!(judged(0, begin(1), &said).unwrap_err().contains("was promised"));
        assert_eq!(judged(0, begin(2), &said), Ok("promised"));
        assert!(judged(0, begin(4), &said).unwrap_err().contains("may be"));
        let late = format!("grouping 3\ngrouped 0 0\npower-going\ngrouped 1 {}\n", begin(1));
        assert_eq!(judged(0, begin(1), &late), Ok("promised"));
    }

    #[test]
    fn a_group_at_another_sequence_than_its_own_is_found() {
        let wrong = judged(0, begin(2), "grouping 2\ngrouped 1 0\n").unwrap_err();
        assert_eq!(wrong, "group 1 was given sequence 0");
    }

    #[test]
    fn a_cut_that_was_promised_is_made_and_one_under_way_is_made_or_not() {
        let at = begin(several()) + 1;
        let all = begin(20);
        let cutting = format!("grouping 20\ngrouped 19 {}\ncutting {at}\n", begin(19));
        assert_eq!(judged(0, at, &cutting), Ok("cut"));
        assert_eq!(judged(0, all, &cutting), Ok("uncut"));
        assert!(judged(0, at + 1, &cutting).is_err());
        assert!(judged(0, begin(19), &cutting).is_err());
        let cut = format!("{cutting}cut {at}\n");
        assert_eq!(judged(0, at, &cut), Ok("promised"));
        assert!(judged(0, all, &cut).unwrap_err().contains("may be"));
        let late = format!("{cutting}power-going\ncut {at}\ngrouping 21\n");
        assert_eq!(judged(0, at, &late), Ok("cut"));
        assert_eq!(judged(0, all, &late), Ok("uncut"));
    }

    #[test]
    fn a_record_that_was_cut_does_not_stand_behind_the_cut() {
        let at = begin(5);
        let said = format!("grouping 19\ncutting {at}\ncut {at}\ngrouping 20\n");
        assert_eq!(judged(0, at, &said), Ok("promised"));
        // Groups 5 and later are unchanged, where only group 19 may be.
        let end = begin(6);
        assert!(end - at <= size(19) || judged(0, end, &said).is_err());
        assert!(judged(0, begin(19), &said).is_err());
    }

    #[test]
    fn a_trim_removes_what_was_promised_and_nothing_from_its_sequence_on() {
        let (first, before, end) = (begin(4), begin(4) + 1, begin(20));
        let said = format!("grouping 20\ntrimming {before}\n");
        assert_eq!(judged(0, end, &said), Ok("more"));
        assert_eq!(judged(first, end, &said), Ok("more"));
        let much = judged(begin(6), end, &said).unwrap_err();
        assert!(much.contains("was to be trimmed"), "{much}");
        let trimmed = format!("{said}trimmed {before} {first}\n");
        assert_eq!(judged(first, end, &trimmed), Ok("more"));
        assert!(judged(0, end, &trimmed).unwrap_err().contains("were trimmed"));
        let past = format!("{said}trimmed {before} {}\n", begin(6));
        assert!(judged(begin(6), end, &past).unwrap_err().contains("left records"));
    }

    #[test]
    fn a_log_that_begins_in_the_middle_of_a_group_is_found() {
        let middle = begin(several()) + 1;
        let said = format!("grouping 20\ntrimming {}\n", begin(12));
        assert!(judged(middle, begin(20), &said).unwrap_err().contains("lacks the group's begin"));
    }

    #[test]
    fn records_found_by_an_opening_stay_and_none_comes_back() {
        let said = format!("grouping 20\nreopened {}\n", begin(4));
        assert_eq!(judged(0, begin(4), &said), Ok("more"));
        assert!(judged(0, begin(3), &said).is_err());
        assert!(judged(0, begin(5), &said).is_err());
    }
}
