//! Cursors of reader groups: how far each has read and acknowledged.
//!
//! A group has one reader at a time. Only its cursor is on stable storage: every record before it
//! was acknowledged. The rest is in memory, so after a crash a record that was delivered or
//! acknowledged out of order may be delivered again, but none is skipped.

use rangemap::RangeSet;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fs, io};
use tokio::task::spawn_blocking;
use wrote::{Action, Error};

/// The file's name in the log's folder.
const FILE: &str = "cursors.json";
/// The file's format.
const SCHEMA: &str = "wrote.cursors/1";
const GROUPS_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 128;
/// The most ranges of acknowledged records after an unacknowledged one, per group (W8).
const STRETCHES_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Cursors {
    path: PathBuf,
    state: Mutex<State>,
    /// The last change on stable storage. Locked while the file is written, so that waiters share
    /// the next write.
    saved: tokio::sync::Mutex<u64>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<Box<str>, Group>,
    /// Counts changes to the file's content.
    changes: u64,
}

#[derive(Debug, Default)]
struct Group {
    /// All records before it are acknowledged.
    cursor: u64,
    /// All records before it were delivered.
    delivered: u64,
    /// Places at or after the cursor that are acknowledged or hold no record.
    acked: RangeSet<u64>,
    /// The reader's name, and whether its connection is alive.
    reader: Option<(Box<[u8]>, Weak<()>)>,
}

/// The state of a group for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub name: Box<str>,
    pub delivered: u64,
    pub reader: Option<Box<[u8]>>,
    /// The first and last delivered but unacknowledged records, and their number.
    pub pending: Option<(u64, u64, u64)>,
}

/// Why a group command fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Unknown,
    /// The group exists already.
    Exists,
    /// Another reader is connected.
    Taken(String),
    /// A limit is reached, or the name can't be stored.
    Refused(&'static str),
}

/// Records delivered to a group and not acknowledged.
#[derive(Debug)]
pub(crate) struct Due {
    pub sequences: Range<u64>,
    /// Records in the range that were acknowledged.
    pub acked: RangeSet<u64>,
}

impl Cursors {
    /// Reads the cursors of a log whose next sequence is `next_sequence`.
    ///
    /// # Errors
    ///
    /// If the file can't be read or has another format.
    pub(crate) fn open(folder: &Path, next_sequence: u64) -> Result<Cursors, Error> {
        let path = folder.join(FILE);
        let unread = |error: &io::Error| Error::file(&path, Action::Read, None, error);
        let groups = match fs::read(&path) {
            Ok(bytes) => groups(&bytes).ok_or_else(|| {
                let text = format!("this is not a {SCHEMA}: move it away to begin without cursors");
                unread(&io::Error::new(io::ErrorKind::InvalidData, text))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(unread(&error)),
        };
        let state = Mutex::new(State { groups, changes: 0 });
        let cursors = Cursors { path, state, saved: tokio::sync::Mutex::new(0) };
        cursors.cut(next_sequence);
        Ok(cursors)
    }

    /// Adjusts all groups to a reopened log whose next record is `next_sequence`. Records lost in a
    /// crash are delivered again once new ones have their sequences.
    pub(crate) fn cut(&self, next_sequence: u64) {
        for group in self.lock().groups.values_mut() {
            group.cursor = group.cursor.min(next_sequence);
            group.start_again();
        }
    }

    /// Creates a group that starts at record `from`.
    pub(crate) fn create(&self, name: &[u8], from: u64) -> Result<(), Fault> {
        let is_plain = name.iter().all(|byte| (b' '..=b'~').contains(byte));
        if !is_plain || name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Fault::Refused("the name of a group has 1 to 128 printable ASCII letters"));
        }
        let name = String::from_utf8_lossy(name);
        let mut state = self.lock();
        if state.groups.contains_key(&*name) {
            return Err(Fault::Exists);
        }
        if state.groups.len() >= GROUPS_MAX {
            return Err(Fault::Refused("a log has 256 groups at most"));
        }
        state
            .groups
            .insert(name.into(), Group { cursor: from, delivered: from, ..Group::default() });
        state.changes += 1;
        Ok(())
    }

    /// Moves a group to record `from`.
    pub(crate) fn set(&self, name: &[u8], from: u64) -> Result<(), Fault> {
        let mut state = self.lock();
        let group = group(&mut state, name)?;
        group.cursor = from;
        group.start_again();
        state.changes += 1;
        Ok(())
    }

    /// Removes a group. Returns whether it existed.
    pub(crate) fn destroy(&self, name: &[u8]) -> bool {
        let mut state = self.lock();
        let was_there = str::from_utf8(name).is_ok_and(|name| state.groups.remove(name).is_some());
        state.changes += u64::from(was_there);
        was_there
    }

    /// Returns the first undelivered record at or after `first`. A reader other than the previous
    /// one gets everything unacknowledged, once the previous reader's connection is gone.
    pub(crate) fn new_ones(
        &self,
        name: &[u8],
        reader: &[u8],
        connection: &Arc<()>,
        first: u64,
    ) -> Result<u64, Fault> {
        let mut state = self.lock();
        let group = group(&mut state, name)?;
        group.take_reader(reader, connection)?;
        group.skip(first);
        Ok(group.delivered)
    }

    /// Returns the delivered, unacknowledged records after `after`.
    pub(crate) fn pending(
        &self,
        name: &[u8],
        reader: &[u8],
        connection: &Arc<()>,
        after: u64,
    ) -> Result<Due, Fault> {
        let mut state = self.lock();
        let group = group(&mut state, name)?;
        group.take_reader(reader, connection)?;
        Ok(Due { sequences: group.cursor.max(after)..group.delivered, acked: group.acked.clone() })
    }

    /// Marks the records of `range` as delivered. Returns `false` if the group's position is no
    /// longer at the range's start. With `acks` they need no acknowledgement.
    pub(crate) fn deliver(
        &self,
        name: &[u8],
        range: Range<u64>,
        given: impl Iterator<Item = u64>,
        acks: bool,
    ) -> Result<bool, Fault> {
        let mut state = self.lock();
        let group = group(&mut state, name)?;
        if group.delivered != range.start {
            return Ok(false);
        }
        group.delivered = range.end;
        // A sequence without a record is never acknowledged by a reader.
        let mut place = range.start;
        for sequence in given.filter(|_| !acks).chain([range.end]) {
            if place < sequence {
                group.acked.insert(place..sequence);
            }
            place = sequence + 1;
        }
        let has_moved = group.move_on();
        state.changes += u64::from(has_moved);
        Ok(true)
    }

    /// Acknowledges records. Returns how many were pending.
    pub(crate) fn acknowledge(&self, name: &[u8], sequences: &[u64]) -> Result<usize, Fault> {
        let mut state = self.lock();
        let group = group(&mut state, name)?;
        let mut count = 0;
        for &sequence in sequences {
            if !(group.cursor..group.delivered).contains(&sequence)
                || group.acked.contains(&sequence)
            {
                continue;
            }
            if sequence > group.cursor && group.acked.len() >= STRETCHES_MAX {
                return Err(Fault::Refused("too many records before it are not acknowledged"));
            }
            group.acked.insert(sequence..sequence + 1);
            count += 1;
        }
        let has_moved = group.move_on();
        state.changes += u64::from(has_moved);
        Ok(count)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().groups.len()
    }

    pub(crate) fn seen(&self, name: &[u8]) -> Result<Seen, Fault> {
        let mut state = self.lock();
        Ok(group(&mut state, name)?.seen(&String::from_utf8_lossy(name)))
    }

    /// Returns all groups, sorted by name.
    pub(crate) fn all(&self) -> Vec<Seen> {
        let state = self.lock();
        state.groups.iter().map(|(name, group)| group.seen(name)).collect()
    }

    /// Waits until all changes so far are on stable storage (W1).
    ///
    /// # Errors
    ///
    /// As [`wrote::write`].
    pub(crate) async fn save(&self) -> Result<(), Error> {
        let awaited = self.lock().changes;
        let mut saved = self.saved.lock().await;
        if *saved >= awaited {
            return Ok(());
        }
        let (changes, text) = {
            let state = self.lock();
            (state.changes, text(&state.groups))
        };
        let path = self.path.clone();
        let written = spawn_blocking(move || wrote::write(path, text)).await;
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        *saved = changes;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    fn start_again(&mut self) {
        self.delivered = self.cursor;
        self.acked.clear();
    }

    fn take_reader(&mut self, reader: &[u8], connection: &Arc<()>) -> Result<(), Fault> {
        let connected = self.reader.as_ref().filter(|(_, weak)| weak.strong_count() > 0);
        match (&self.reader, connected) {
            (Some((name, _)), _) if **name == *reader => {}
            (_, Some((name, _))) => return Err(Fault::Taken(name.escape_ascii().to_string())),
            // The new reader won't ask for its predecessor's records.
            (Some(_), None) => self.start_again(),
            (None, None) => {}
        }
        self.reader = Some((reader.into(), Arc::downgrade(connection)));
        Ok(())
    }

    /// Retention has removed the records before `first`.
    fn skip(&mut self, first: u64) {
        if self.cursor < first {
            self.acked.insert(self.cursor..first);
            self.delivered = self.delivered.max(first);
            self.move_on();
        }
    }

    /// Advances the cursor over acknowledged records. Returns whether it moved.
    fn move_on(&mut self) -> bool {
        let Some(behind) = self.acked.get(&self.cursor).map(|range| range.end) else {
            return false;
        };
        self.acked.remove(self.cursor..behind);
        self.cursor = behind;
        true
    }

    fn seen(&self, name: &str) -> Seen {
        let delivered = self.cursor..self.delivered;
        let mut awaited = self.acked.gaps(&delivered).peekable();
        let first = awaited.peek().map(|range| range.start);
        let (count, last) =
            awaited.fold((0, 0), |(count, _), range| (count + range.end - range.start, range.end));
        Seen {
            name: name.into(),
            delivered: self.delivered,
            reader: self.reader.as_ref().map(|(name, _)| name.clone()),
            pending: first.map(|first| (first, last - 1, count)),
        }
    }
}

fn group<'a>(state: &'a mut State, name: &[u8]) -> Result<&'a mut Group, Fault> {
    let name = str::from_utf8(name).map_err(|_| Fault::Unknown)?;
    state.groups.get_mut(name).ok_or(Fault::Unknown)
}

fn groups(bytes: &[u8]) -> Option<BTreeMap<Box<str>, Group>> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let groups = document.get("groups").filter(|_| document["schema"] == SCHEMA)?.as_object()?;
    let group = |(name, cursor): (&String, &Value)| {
        let cursor = cursor.as_u64()?;
        let group = Group { cursor, delivered: cursor, ..Group::default() };
        Some((name.as_str().into(), group))
    };
    groups.iter().map(group).collect()
}

fn text(groups: &BTreeMap<Box<str>, Group>) -> String {
    let cursors = groups.iter().map(|(name, group)| (name.to_string(), group.cursor.into()));
    let cursors: Map<String, Value> = cursors.collect();
    format!("{:#}\n", json!({ "schema": SCHEMA, "groups": cursors }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const G: &[u8] = b"g";

    fn with_group(folder: &Path) -> Cursors {
        let cursors = Cursors::open(folder, 100).unwrap();
        cursors.create(G, 0).unwrap();
        cursors
    }

    fn pending(cursors: &Cursors) -> Option<(u64, u64, u64)> {
        cursors.all()[0].pending
    }

    #[test]
    fn the_cursor_moves_over_what_is_acknowledged_and_over_places_without_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = with_group(folder.path());
        assert!(cursors.deliver(G, 0..6, [1, 2, 5].into_iter(), false).unwrap());
        assert_eq!(pending(&cursors), Some((1, 5, 3)));
        assert_eq!(cursors.acknowledge(G, &[2, 2, 5, 7]), Ok(2));
        assert_eq!(pending(&cursors), Some((1, 1, 1)));
        assert_eq!(cursors.acknowledge(G, &[1]), Ok(1));
        assert_eq!(pending(&cursors), None);
        assert_eq!(cursors.lock().groups["g"].cursor, 6);
    }

    #[tokio::test]
    async fn a_group_is_where_it_was_when_the_log_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = with_group(folder.path());
        cursors.deliver(G, 0..4, 0..4, false).unwrap();
        cursors.acknowledge(G, &[0, 1, 3]).unwrap();
        cursors.save().await.unwrap();
        let again = Cursors::open(folder.path(), 100).unwrap();
        assert_eq!(again.new_ones(G, b"c", &Arc::new(()), 0), Ok(2));
        // A crash lost records before the cursor.
        let shorter = Cursors::open(folder.path(), 1).unwrap();
        assert_eq!(shorter.new_ones(G, b"c", &Arc::new(()), 0), Ok(1));
        fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Cursors::open(folder.path(), 100).is_err());
    }

    #[test]
    fn a_group_has_one_reader_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = with_group(folder.path());
        let (one, other) = (Arc::new(()), Arc::new(()));
        cursors.new_ones(G, b"one", &one, 0).unwrap();
        cursors.deliver(G, 0..4, 0..4, false).unwrap();
        let taken = cursors.new_ones(G, b"other", &other, 0);
        assert_eq!(taken, Err(Fault::Taken("one".into())));
        // The same reader on a new connection asks for its pending records.
        assert_eq!(cursors.new_ones(G, b"one", &other, 0), Ok(4));
        assert_eq!(cursors.pending(G, b"one", &other, 0).unwrap().sequences, 0..4);
        drop((one, other));
        // Another reader gets all of them.
        assert_eq!(cursors.new_ones(G, b"other", &Arc::new(()), 0), Ok(0));
    }

    #[test]
    fn two_deliveries_at_once_give_a_record_once() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = with_group(folder.path());
        assert_eq!(cursors.deliver(G, 0..4, 0..4, false), Ok(true));
        assert_eq!(cursors.deliver(G, 0..4, 0..4, false), Ok(false));
    }

    #[test]
    fn names_and_numbers_are_bounded() {
        // W8
        let folder = tempfile::tempdir().unwrap();
        let cursors = with_group(folder.path());
        assert_eq!(cursors.create(G, 0), Err(Fault::Exists));
        for name in [&b""[..], b"\n", &[b'x'; 129]] {
            assert!(matches!(cursors.create(name, 0), Err(Fault::Refused(_))));
        }
        for number in 1..GROUPS_MAX {
            cursors.create(format!("{number}").as_bytes(), 0).unwrap();
        }
        assert!(matches!(cursors.create(b"more", 0), Err(Fault::Refused(_))));
        assert!(cursors.destroy(b"1") && !cursors.destroy(b"1"));
        let end = 2 * STRETCHES_MAX as u64 + 4;
        cursors.deliver(G, 0..end, 0..end, false).unwrap();
        let odd: Vec<u64> = (0..end).filter(|number| number % 2 == 1).collect();
        assert!(matches!(cursors.acknowledge(G, &odd), Err(Fault::Refused(_))));
    }

    proptest! {
        #[test]
        fn nothing_is_before_the_cursor_that_was_not_acknowledged(
            steps in prop::collection::vec((0..40_u64, 0..8_u64), 1..60)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let cursors = with_group(folder.path());
            let (mut end, mut awaited) = (0, BTreeSet::new());
            for (place, more) in steps {
                cursors.deliver(G, end..end + more, end..end + more, false).unwrap();
                awaited.extend(end..end + more);
                end += more;
                let expected = usize::from(awaited.remove(&place));
                prop_assert_eq!(cursors.acknowledge(G, &[place]).unwrap(), expected);
                let cursor = cursors.lock().groups["g"].cursor;
                prop_assert_eq!(cursor, awaited.first().copied().unwrap_or(end));
                let count = pending(&cursors).map_or(0, |(_, _, count)| count);
                prop_assert_eq!(count, awaited.len() as u64);
            }
        }
    }
}
