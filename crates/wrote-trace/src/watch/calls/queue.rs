//! The operations that a process has submitted to a kernel queue, until they have ended.
//!
//! An operation begins when it is submitted, and has ended once its completion is visible. If an
//! operation waits for others, for example as a link of io_uring, they end before it begins.

use super::Begun;
use crate::call::PlaceId;
use crate::watch::ring::Entry;
use libc::pid_t;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

/// The effect of an operation.
#[derive(Debug)]
pub enum Work {
    /// The operation changes no file.
    Nothing,
    /// The operation changes no file, and its success is not reported.
    Silent,
    /// The operation has the effect of this call.
    Call(Begun),
    /// The operation's file is opened by another operation that it waits for.
    Later(Entry),
    /// The operation may change a file, but was not understood.
    Unknown,
    /// The operation closes a descriptor.
    Close(i32),
    /// The operation removes a registered file.
    Release(u32),
    /// The operation opens a file and registers it at this index, or at a free one.
    Register { at: u32, path: PathBuf, flags: i32, begun: Begun },
    /// The operation registers or removes files, starting at this index.
    Replace(u32, Vec<Option<File>>),
}

impl Work {
    /// Returns whether the operation changes no file.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Work::Nothing | Work::Silent)
    }
}

/// An operation in flight.
#[derive(Debug)]
pub struct Operation {
    pub work: Work,
    /// The process whose descriptors the operation names.
    pub owner: pid_t,
    /// The number of operations, among those submitted directly before this one, that it waits for.
    pub waits: u64,
    /// The end times of the completed operations that it waited for.
    pub after: Vec<u64>,
    /// The time, location and thread of the submission.
    pub at_ns: u64,
    pub place: Option<PlaceId>,
    pub task: pid_t,
}

/// The operations in flight in a queue, by key and number.
#[derive(Debug, Default)]
pub struct InFlight {
    operations: BTreeMap<(u64, u64), Operation>,
    /// The number of operations submitted so far.
    count: u64,
    /// The number of operations in flight that wait for others.
    waiting: usize,
}

impl InFlight {
    /// Adds an operation.
    pub fn add(&mut self, key: u64, operation: Operation) {
        if !matches!(operation.work, Work::Silent) {
            self.waiting += usize::from(operation.waits > 0);
            self.operations.insert((key, self.count), operation);
        }
        self.count += 1;
    }

    /// Removes and returns the operation that has ended, with its number. Returns `None` if it is
    /// unknown, and an error if several operations have this key and may end in any order.
    pub fn take(&mut self, key: u64) -> Result<Option<(u64, Operation)>, ()> {
        let mut same = self.operations.range((key, 0)..=(key, u64::MAX));
        let Some(((_, first), operation)) = same.next() else { return Ok(None) };
        let is_nothing = |of: &Operation| of.work.is_nothing();
        let is_after = |number: u64, of: &Operation| number - first <= of.waits;
        let is_one = same.clone().all(|((_, number), of)| is_after(*number, of));
        let is_idle = is_nothing(operation) && same.all(|(_, of)| is_nothing(of));
        if !(is_one || is_idle) {
            return Err(());
        }
        let number = *first;
        let operation = self.operations.remove(&(key, number)).expect("it was found");
        self.waiting -= usize::from(operation.waits > 0);
        Ok(Some((number, operation)))
    }

    /// Notes when an operation ended, for the operations that wait for it.
    pub fn ended(&mut self, number: u64, ended_ns: u64) {
        if self.waiting > 0 {
            let waiting = self
                .operations
                .iter_mut()
                .filter(|((_, waiting), of)| *waiting > number && *waiting - number <= of.waits);
            waiting.for_each(|(_, of)| of.after.push(ended_ns));
        }
    }

    /// Removes the last operations, which were not submitted.
    pub fn drop_last(&mut self, count: u64) {
        let kept = self.count.saturating_sub(count);
        self.operations.retain(|(_, number), _| *number < kept);
    }

    /// Removes the operations with this key, which were not submitted after all.
    pub fn withdraw(&mut self, key: u64) {
        while let Some((same, _)) = self.operations.range((key, 0)..=(key, u64::MAX)).next() {
            let same = *same;
            self.operations.remove(&same);
        }
    }

    /// Returns the number of operations submitted so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns whether any operation may change a file.
    pub fn may_change(&self) -> bool {
        self.operations
            .values()
            .any(|of| !of.work.is_nothing() && !matches!(of.work, Work::Close(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Act;

    fn operation(work: Work, waits: u64) -> Operation {
        let (owner, after) = (1, Vec::new());
        Operation { work, owner, waits, after, at_ns: 0, place: None, task: 1 }
    }

    fn tell() -> Work {
        Work::Call(Begun::Sure(Act::Tell))
    }

    #[test]
    fn an_operation_knows_when_the_ones_had_ended_that_it_waits_for() {
        let mut queue = InFlight::default();
        for (key, waits) in [(10, 0), (11, 0), (12, 1), (13, 3)] {
            queue.add(key, operation(tell(), waits));
        }
        for (key, ended_ns) in [(11, 5), (10, 6)] {
            let (number, _) = queue.take(key).unwrap().unwrap();
            queue.ended(number, ended_ns);
        }
        assert_eq!(queue.take(12).unwrap().unwrap().1.after, [5]);
        queue.ended(2, 7);
        assert_eq!(queue.take(13).unwrap().unwrap().1.after, [5, 6, 7]);
        assert!(queue.is_empty() && queue.take(13).unwrap().is_none());
    }

    #[test]
    fn operations_of_one_key_are_told_apart_only_where_they_end_in_order() {
        let mut queue = InFlight::default();
        queue.add(0, operation(tell(), 0));
        queue.add(0, operation(Work::Nothing, 0));
        assert!(queue.take(0).is_err());
        let mut queue = InFlight::default();
        queue.add(0, operation(tell(), 0));
        queue.add(0, operation(tell(), 1));
        assert_eq!(queue.take(0).unwrap().unwrap().0, 0);
        assert_eq!(queue.take(0).unwrap().unwrap().0, 1);
        queue.add(7, operation(Work::Nothing, 0));
        queue.add(7, operation(Work::Nothing, 0));
        assert!(queue.take(7).unwrap().is_some() && !queue.may_change());
        queue.add(8, operation(tell(), 0));
        queue.drop_last(1);
        assert!(!queue.may_change() && !queue.is_empty());
    }
}
