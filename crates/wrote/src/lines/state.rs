//! The state that the callers of a file of lines share under its lock: the lines that wait, how far
//! the file is written and durable, and the outcome for each goal.

use super::plain::Trouble;
use crate::Error;
use crate::log::{Aim, Gathering, Goal};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The state under the lock. Lines count from the opening.
#[derive(Default)]
pub(super) struct State {
    /// Whether a thread has the turn, the number of batches begun, and the lines up to and with the
    /// last of them.
    pub is_taken: bool,
    pub batches: usize,
    pub begun: u64,
    /// Lines that are not written yet, each with its line feed.
    pub buffer: Vec<u8>,
    /// An empty buffer with room, used in turn with the other one.
    pub spare: Vec<u8>,
    /// The lines that a full disk did not take, and the number of lines up to and with them. They
    /// are written before the buffer, which stays as it is until then: so no attempt makes room,
    /// and memory is bounded by two buffers (W8).
    pub again: Option<(Vec<u8>, u64)>,
    pub appended: u64,
    /// Lines that the kernel has, and that are in the file at the path.
    pub written: u64,
    pub durable: u64,
    /// Lines that another program cut off after they were written, and before they were durable.
    pub lost: Vec<Lost>,
    /// A full disk: the error of the last attempt, its time, and the number of such attempts.
    pub lack: Option<(Error, Instant)>,
    pub lacks: u64,
    pub gathering: Gathering,
    /// Since when the background thread flushes, concurrently with the turns.
    pub flushes_since: Option<Instant>,
    pub reopens: bool,
    pub ends: bool,
    pub is_closed: bool,
    pub failed: Option<Error>,
    /// Tasks that wait, by a number of their own.
    pub tasks: BTreeMap<u64, Task>,
    pub next_task: u64,
    /// Whether the background thread waits without a time.
    pub is_asleep: bool,
    /// The file in which the last opening that found a torn end kept it.
    pub torn: Option<PathBuf>,
}

pub(super) struct Lost {
    pub lines: Range<u64>,
    /// Whether a caller that waited for them has had the error.
    pub is_told: bool,
}

pub(super) struct Task {
    pub goal: LineGoal,
    pub waker: Waker,
}

/// The goal of a caller that waits: the first `end` lines written, or durable.
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

/// The lines that a turn stored, or tried to.
pub(super) struct Batch {
    pub lines: Vec<u8>,
    /// The number of lines up to and with its last one.
    pub end: u64,
    /// The time of a turn that flushed.
    pub flushed_in: Option<Duration>,
}

impl State {
    /// Takes note of a turn's outcome.
    pub(super) fn finish(&mut self, stored: Result<bool, Trouble>, batch: Batch) {
        let Batch { mut lines, end, flushed_in } = batch;
        match stored {
            // Another flush has failed in the meantime (W2).
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

    /// Returns the error of an append to a file that takes no more lines.
    pub(super) fn refusal(&self, path: &Path) -> Option<Error> {
        let closed = || Error::refused(path, "it was closed, and takes no more lines");
        self.failed.clone().or_else(|| (self.is_closed || self.ends).then(closed))
    }

    /// Returns the error that an append has now, or the error of a full disk.
    pub(super) fn check(&self, path: &Path) -> Option<Error> {
        let lacked = || self.lack.as_ref().map(|(error, _)| error.clone().not_yet());
        self.refusal(path).or_else(lacked)
    }

    /// Like [`State::outcome`], but an error once the last line of the goal is lost.
    pub(super) fn outcome_unless_lost(
        &mut self,
        path: &Path,
        goal: LineGoal,
        lacks: u64,
    ) -> Option<Result<(), Error>> {
        self.tell(path, goal).or_else(|| self.outcome(goal, lacks))
    }

    /// Returns the error of a wait for a line that is lost.
    fn tell(&mut self, path: &Path, goal: LineGoal) -> Option<Result<(), Error>> {
        let of = |lost: &&mut Lost| goal.is_durable && lost.lines.contains(&goal.end);
        let lost = self.lost.iter_mut().find(of)?;
        lost.is_told = true;
        Some(Err(lost_lines(path)))
    }

    /// Fails if lines are lost that no caller was told of.
    pub(super) fn tell_all(&mut self, path: &Path) -> Result<(), Error> {
        let untold = self.lost.iter_mut().filter(|lost| !lost.is_told);
        match untold.map(|lost| lost.is_told = true).count() {
            0 => Ok(()),
            _ => Err(lost_lines(path)),
        }
    }

    /// Returns the outcome for a goal; `None` while it is unknown. `lacks` is the number of
    /// attempts that had found the disk full when the caller began to wait.
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
    let because = "another program removed or shortened the file before its last lines were \
                   flushed; these lines are lost";
    Error::refused(path, because)
}
