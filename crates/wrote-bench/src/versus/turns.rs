//! The progress of many benchmarks, reported as one.

use crate::progress::{Announcement, Observer, Progress};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The turns of both sides, as one observer sees them.
pub(super) struct Turns<'a> {
    observer: &'a mut dyn Observer,
    /// Of each side: what one round of it will do.
    outlooks: [Announcement; 2],
    rounds: u32,
    began: Instant,
    runs: u32,
    /// Runs of the turns that are over.
    runs_before: u32,
    announced: bool,
    told: BTreeSet<String>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(
        observer: &'a mut dyn Observer,
        outlooks: [Announcement; 2],
        rounds: u32,
    ) -> Turns<'a> {
        let runs = rounds * (outlooks[0].runs + outlooks[1].runs);
        Turns {
            observer,
            outlooks,
            rounds,
            began: Instant::now(),
            runs,
            runs_before: 0,
            announced: false,
            told: BTreeSet::new(),
        }
    }

    /// The benchmark of a side is over: the next one counts on, as if nothing had been left out.
    pub(super) fn is_over(&mut self, side: usize) {
        self.runs_before += self.outlooks[side].runs;
    }

    /// All that both sides will do, of which one round's folder is the first.
    fn all(&self, first: &Announcement) -> Announcement {
        let [a, b] = &self.outlooks;
        let rounds = u64::from(self.rounds);
        Announcement {
            folder: first.folder.clone(),
            space_bytes_max: a.space_bytes_max.max(b.space_bytes_max),
            written_bytes_max: rounds * (a.written_bytes_max + b.written_bytes_max),
            runs: self.runs,
            estimated: self.rounds * (a.estimated + b.estimated),
        }
    }

    fn left(&self, runs_done: u32) -> Duration {
        let [a, b] = &self.outlooks;
        match runs_done {
            0 => self.rounds * (a.estimated + b.estimated),
            _ => self.began.elapsed() / runs_done * self.runs.saturating_sub(runs_done),
        }
    }
}

impl Observer for Turns<'_> {
    /// Once, before the first byte of all.
    fn announce(&mut self, announcement: &Announcement) {
        if !std::mem::replace(&mut self.announced, true) {
            let all = self.all(announcement);
            self.observer.announce(&all);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let (runs, runs_done) = (self.runs, self.runs_before + progress.runs_done);
        let left = self.left(runs_done);
        let progress = Progress { runs_done, runs, left, ..progress.clone() };
        // At the end of each turn there is no row; only at the end of all is that worth a word.
        if !progress.row.is_empty() || runs_done >= runs {
            self.observer.progress(&progress);
        }
    }

    /// Reports a remark once, though every round makes it.
    fn note(&mut self, text: &str) {
        if self.told.insert(text.to_owned()) {
            self.observer.note(text);
        }
    }
}
