//! The state that the callers of a line file share under its lock: the pending lines, how far the
//! file is written and durable, and the outcome for each goal.

use super::plain::Trouble;
use crate::Error;
use crate::log::{Aim, Gathering, Goal};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The state under the lock. Lines are counted from the opening of the file.
#[derive(Default)]
pub(super) struct State {
    /// Whether a thread has the turn, the number of batches begun, and the number of lines up to
    /// the end of the last of them.
    pub is_taken: bool,
    pub batches: usize,
    pub begun: u64,
    /// The lines not yet written, each with its line feed.
    pub buffer: Vec<u8>,
    /// An empty buffer with allocated capacity, which is swapped with `buffer`.
    pub spare: Vec<u8>,
    /// The lines that did not fit on the full disk, and the number of lines up to their end. They
    /// are written before the buffer, whose lines stay in it until then. So a failed attempt frees
    /// no room in the buffer, and memory is bounded by two buffers (W8).
    pub again: Option<(Vec<u8>, u64)>,
    pub appended: u64,
    /// The number of lines that have been written to the file at the path.
    pub written: u64,
    pub durable: u64,
    /// The lines that another program cut off after they were written and before they were durable.
    pub lost: Vec<Lost>,
    /// The error and the time of the last attempt that found the disk full. `lacks` is the number
    /// of such attempts.
    pub lack: Option<(Error, Instant)>,
    pub lacks: u64,
    pub gathering: Gathering,
    /// The time at which the background thread began its current flush, if it is flushing. Other
    /// threads can take turns in the meantime.
    pub flushes_since: Option<Instant>,
    pub reopens: bool,
    pub ends: bool,
    pub is_closed: bool,
    pub failed: Option<Error>,
    /// The waiting tasks, by a number assigned to each.
    pub tasks: BTreeMap<u64, Task>,
    pub next_task: u64,
    /// Whether the background thread waits without a time limit.
    pub is_asleep: bool,
    /// The file to which the most recently found torn end was moved.
    pub torn: Option<PathBuf>,
}

pub(super) struct Lost {
    pub lines: Range<u64>,
    /// Whether a caller that waited for these lines has received the error.
    pub is_told: bool,
}

pub(super) struct Task {
    pub goal: LineGoal,
    pub waker: Waker,
}

/// The goal of a waiting caller: that the first `end` lines are written, or durable.
#[derive(Clone, Copy)]
pub(super) struct LineGoal {
    pub end: u64,
    pub is_durable: bool,
}

impl LineGoal {
    pub(super) fn of(aim: &Aim) -> LineGoal {
        LineGoal { end: aim.end, is_durable: aim.goal == Goal::Durable }
    }
}

/// The lines that a turn has stored, or tried to store.
pub(super) struct Batch {
    pub lines: Vec<u8>,
    /// The number of lines up to the batch's end.
    pub end: u64,
    /// The duration of the turn, if it flushed.
    pub flushed_in: Option<Duration>,
}

impl State {
    /// Records a turn's outcome.
    pub(super) fn finish(&mut self, stored: Result<bool, Trouble>, batch: Batch) {
        let Batch { mut lines, end, flushed_in } = batch;
        match stored {
            // Another flush failed while this turn ran (W2).
            _ if self.failed.is_some() => {}
            Ok(has_lost) => {
                if has_lost && self.durable < self.written {
                    let lines = self.durable + 1..self.written + 1;
                    self.lost.push(Lost { lines, is_told: false });
                }
                self.written = end;
                if let Some(time) = flushed_in {
                    let lines = end - self.durable;
                    self.durable = end;
                    let waiting = self.appended - end;
                    self.gathering.note_flush(time, lines, waiting, Instant::now());
                }
                self.lack = None;
                lines.clear();
                self.spare = lines;
            }
            Err(Trouble::Lacks(error)) => {
                self.again = Some((lines, end));
                self.lack = Some((error, Instant::now()));
                self.lacks += 1;
            }
            Err(Trouble::Fails(error)) => self.failed = Some(error),
        }
    }

    /// Returns the error for an append to a file that does not accept lines any more.
    pub(super) fn refusal(&self, path: &Path) -> Option<Error> {
        let closed = || Error::refused(path, "it was closed, and accepts no more lines");
        self.failed.clone().or_else(|| (self.is_closed || self.ends).then(closed))
    }

    /// Returns the error that an append would return now, or the error of a full disk; `None` if
    /// there is neither.
    pub(super) fn check(&self, path: &Path) -> Option<Error> {
        let lacked = || self.lack.as_ref().map(|(error, _)| error.clone().not_yet());
        self.refusal(path).or_else(lacked)
    }

    /// Like [`State::outcome`], but returns an error if the last line of the goal is lost.
    pub(super) fn outcome_unless_lost(
        &mut self,
        path: &Path,
        goal: LineGoal,
        lacks: u64,
    ) -> Option<Result<(), Error>> {
        self.tell(path, goal).or_else(|| self.outcome(goal, lacks))
    }

    /// Returns the error of a wait for a line that is lost, and marks the error as reported.
    fn tell(&mut self, path: &Path, goal: LineGoal) -> Option<Result<(), Error>> {
        let of = |lost: &&mut Lost| goal.is_durable && lost.lines.contains(&goal.end);
        let lost = self.lost.iter_mut().find(of)?;
        lost.is_told = true;
        Some(Err(lost_lines(path)))
    }

    /// Fails if lines are lost and no caller has received an error about them.
    pub(super) fn tell_all(&mut self, path: &Path) -> Result<(), Error> {
        let untold = self.lost.iter_mut().filter(|lost| !lost.is_told);
        match untold.map(|lost| lost.is_told = true).count() {
            0 => Ok(()),
            _ => Err(lost_lines(path)),
        }
    }

    /// Returns the outcome for a goal; `None` while it is unknown. `lacks` is the number of
    /// attempts that had already found the disk full when the caller began to wait.
    pub(super) fn outcome(&self, goal: LineGoal, lacks: u64) -> Option<Result<(), Error>> {
        let done = if goal.is_durable { self.durable } else { self.written };
        if done >= goal.end {
            return Some(Ok(()));
        }
        let lacked = self.lack.as_ref().filter(|_| lacks != self.lacks);
        let lacked = || lacked.map(|(error, _)| error.clone().not_yet());
        self.failed.clone().or_else(lacked).map(Err)
    }
}

fn lost_lines(path: &Path) -> Error {
    let because = "another program removed or truncated the file before its last lines were \
                   flushed; these lines are lost";
    Error::refused(path, because)
}
