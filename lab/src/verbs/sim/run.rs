//! The run of a program: its lives, one after the other on one disk, and the checks between them.

use crate::verbs::sim::disk::Disk;
use crate::verbs::sim::life::{self, OpenLog};
use crate::verbs::sim::model::Model;
use crate::verbs::sim::program::{End, Flavour, How, Life, Opening, Program, Step};
use crate::verbs::sim::reading::CheckedReader;
use crate::verbs::sim::repairing::{RecordsBySequence, readable, repair};
use crate::verbs::sim::{Trouble, holds};
use std::time::Duration;
use wrote::engine::Fault;
use wrote::{Error, Log, SyncPolicy};

/// Defines a struct of counts that can be added up.
macro_rules! counts {
    ($(#[$of:meta])* pub struct $name:ident { $($(#[$of_count:meta])* $count:ident,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$of_count])* pub $count: u64,)+ }

        impl $name {
            /// Adds the counts of another program.
            pub fn add(&mut self, other: &$name) {
                $(self.$count += other.$count;)+
            }
        }
    };
}

counts! {
    /// The counts of a run.
    pub struct Tally {
        /// The number of operations of the disk.
        operations,
        /// The number of operations in the last of the program's lives.
        last_life_operations,
        /// The number of openings that ended with an error.
        failed_openings,
        /// The number of records appended.
        appended,
        /// The number of records that were waited for successfully.
        acknowledged,
        /// The number of errors, not counting repetitions of a log's first error.
        errors,
        /// The number of openings that cut off an end.
        torn,
        /// The number of times that the log was closed.
        closed,
        /// The number of segments that were begun.
        segments,
        /// The number of segments that were removed.
        removed,
        /// The number of segments that were begun in a recycled file.
        recycled,
        /// The number of batches that had to wait because earlier records became durable late.
        late_batches,
        /// The number of groups that were appended atomically.
        groups,
        /// The number of times that the beginning of the log was removed.
        trims,
        /// The number of times that the end of the log was cut off.
        truncations,
        /// The number of repairs.
        repaired,
        /// The number of openings that found less than was promised, because of a hidden fault.
        shortened,
        /// The number of contents that were generated.
        numbers,
    }
}

/// The state shared by all lives of a program.
struct Run {
    disk: Disk,
    model: Model,
    tally: Tally,
    /// Whether the log ever had to remove records.
    removes: bool,
    /// Whether an opening may have written through the page cache.
    is_cached: bool,
    /// The records that were readable before a repair, until the log is opened again.
    saved: Option<RecordsBySequence>,
    /// Whether an opening has failed since the last successful one. The failed opening may have cut
    /// off an end.
    has_failed: bool,
    /// Whether a failed opening has performed a misdirected read.
    has_misread: bool,
    /// Whether to repair a log that can be opened but not read.
    mends: bool,
}

/// The result of opening the log.
enum Opened {
    /// The log is open, and its content is allowed.
    Log(Log),
    /// The opening ended with an error that has a reason.
    Failed,
    /// The log is damaged by a fault that the disk has hidden.
    Damaged,
}

/// Runs the program on a disk with this seed. Returns its counts, or the promise that was broken.
/// At the end, the power is cut, and the log is opened once more and read, without faults.
pub fn carry_out(program: &Program, seed: u64) -> Result<Tally, String> {
    let disk = Disk::new(seed);
    let mut planned = program.lives.iter().flat_map(|life| &life.planned);
    let expects_lies = planned.any(|planned| planned.fault == Fault::Lie);
    let model = Model::new(expects_lies);
    let mut run = Run {
        disk,
        model,
        tally: Tally::default(),
        removes: false,
        is_cached: false,
        saved: None,
        has_failed: false,
        has_misread: false,
        mends: false,
    };
    for (number, life) in program.lives.iter().enumerate() {
        let before = run.disk.sim.operations();
        run.live(life).map_err(|trouble| describe(number, trouble))?;
        run.tally.last_life_operations = run.disk.sim.operations() - before;
    }
    let last = program.lives.last().map(|life| life.opening);
    if let Some(opening) = last {
        let number = program.lives.len();
        run.last_life(opening).map_err(|trouble| describe(number, trouble))?;
    }
    run.tally.operations = run.disk.sim.operations();
    Ok(run.tally)
}
fn describe(life: usize, trouble: Trouble) -> String {
    match trouble {
        Trouble::Broken(because) | Trouble::Ended(because) => format!("life {life}: {because}"),
        Trouble::Error(error) => format!("life {life}: an unexpected error: {error}"),
    }
}

impl Run {
    fn live(&mut self, life: &Life) -> Result<(), Trouble> {
        self.disk.plan(&life.planned);
        let Some(log) = self.open(life.opening)? else { return Ok(()) };
        let mut living = self.living(&log, life.opening);
        for &step in &life.steps {
            living.step(step)?;
        }
        living.end(life.end)?;
        let stats = log.stats();
        self.tally.segments += stats.segments;
        self.tally.recycled += stats.recycled;
        self.tally.late_batches += stats.late_batches;
        self.tally.removed += stats.removed;
        self.end(log, life.end);
        Ok(())
    }

    /// Checks that everything promised exists, and that the log can be continued.
    fn last_life(&mut self, opening: Opening) -> Result<(), Trouble> {
        self.cut();
        self.mends = true;
        for end in [End::Drop, End::CloseAndCut, End::Close] {
            let Some(log) = self.open(opening)? else {
                return Err(Trouble::Broken("the log can't be opened".to_owned()));
            };
            let mut living = self.living(&log, opening);
            living.step(LAST)?;
            living.end(end)?;
            self.end(log, end);
        }
        self.see().map(drop)
    }

    fn living<'a>(&'a mut self, log: &'a Log, opening: Opening) -> OpenLog<'a> {
        let Run { disk, model, tally, .. } = self;
        OpenLog {
            disk,
            model,
            tally,
            log,
            opening,
            follower: None,
            follower_begun: 0,
            poison: None,
            was_full: false,
        }
    }

    /// Opens the log. If that fails with an error that has a reason, opens the log again without
    /// the fault, and repairs it if it is damaged. Returns `None` if the log still cannot be
    /// opened.
    fn open(&mut self, opening: Opening) -> Result<Option<Log>, Trouble> {
        if let Opened::Log(log) = self.try_to_open(opening)? {
            return Ok(Some(log));
        }
        self.tally.failed_openings += 1;
        // After the error, either the power is lost or the disk keeps everything. Both cases are
        // tried.
        if !self.disk.is_off() && self.tally.failed_openings.is_multiple_of(2) {
            self.sync();
        }
        self.disk.make_room();
        self.cut();
        match self.try_to_open(opening)? {
            Opened::Log(log) => return Ok(Some(log)),
            Opened::Failed => return Ok(None),
            Opened::Damaged => {}
        }
        self.cut();
        self.repair()?;
        match self.try_to_open(opening)? {
            Opened::Log(log) => Ok(Some(log)),
            _ => Err(Trouble::Broken("a log that was repaired can't be opened".to_owned())),
        }
    }

    fn try_to_open(&mut self, opening: Opening) -> Result<Opened, Trouble> {
        self.model.lied |= self.disk.has_lied();
        if self.is_cached && self.disk.has_lost_pages() {
            self.model.lose_pages();
        }
        self.is_cached |= opening.sync != SyncPolicy::Always;
        self.disk.set_holes(self.model.is_uncertain());
        if self.saved.is_none() {
            self.see()?;
        }
        self.removes |= opening.removes() || self.model.trimmed;
        let longest = &self.disk.segment_bytes_max;
        longest.set(longest.get().max(opening.segment_buffers * opening.buffer_bytes as u64));
        self.disk.begin();
        let log = match life::open(&self.disk, opening) {
            Ok(log) => log,
            Err(error) => {
                self.disk.excuse(&error)?;
                self.has_failed = true;
                if self.disk.has_misread() {
                    self.has_misread = true;
                    self.model.has_changed();
                }
                let is_damaged = matches!(error, Error::Damaged { .. } | Error::Foreign { .. });
                return Ok(if is_damaged { Opened::Damaged } else { Opened::Failed });
            }
        };
        // Reading the same bytes again would reveal a single misdirected read.
        let has_misread = self.disk.misreads() > 1 || std::mem::take(&mut self.has_misread);
        let has_failed = std::mem::take(&mut self.has_failed);
        self.model.lied |= self.disk.has_lied();
        let stats = log.stats();
        let (first, next) = (stats.first_sequence, stats.next_sequence);
        // After a repair, the log may begin later, because the first records are lost.
        self.removes |= self.saved.is_some() && first > 0;
        holds(self.removes || first == 0, || {
            format!("the first record is {first}, and nothing is removed")
        })?;
        let promised = self.model.least();
        if self.saved.is_none() && next < promised {
            // Rotten bytes are kept aside, unless the file may contain batches of a removed segment
            // after them. An opening that misreads zeros keeps nothing aside.
            let is_not_seen = self.disk.ends_in_recycled() || self.disk.has_misread();
            let is_hidden = self.model.is_uncertain()
                || has_misread
                || has_failed
                || self.disk.rotten() > 0 && is_not_seen;
            holds(is_hidden || log.stats().torn_bytes > 0, || {
                format!("the log continues at {next}, {promised} were promised, nothing is torn")
            })?;
            self.tally.shortened += 1;
        }
        if has_misread || self.disk.rotten() > 0 {
            self.model.has_changed();
        }
        // If a read was misdirected, the opening treats the bytes after it as torn.
        let least = if has_misread { 0 } else { self.model.proven(promised, self.disk.rotten()) };
        if self.saved.is_some() || self.model.is_uncertain() {
            let Some(found) = self.all(&log, first, next)? else { return Ok(Opened::Damaged) };
            let saved = self.saved.take();
            self.model.adopt(first, next, &found, least, saved.is_some())?;
            self.disk.set_holes(false);
            let mut saved = saved.into_iter().flatten();
            let lost = saved.find(|(sequence, bytes)| found.get(sequence) != Some(bytes));
            holds(lost.is_none(), || {
                let lost = lost.map(|(sequence, _)| sequence);
                format!("record {lost:?} was there before the repair, and is lost by the opening")
            })?;
            self.look_at_what_was_cut_off(&log)?;
            return Ok(Opened::Log(log));
        }
        self.model.open(first, next, least)?;
        self.look_at_what_was_cut_off(&log)?;
        let is_read = self.read(&log)?;
        Ok(if is_read || !self.mends { Opened::Log(log) } else { Opened::Damaged })
    }

    /// Returns all records of the open log; `None` in place of an error that has a reason.
    fn all(
        &mut self,
        log: &Log,
        first: u64,
        next: u64,
    ) -> Result<Option<RecordsBySequence>, Trouble> {
        let (disk, model) = (&self.disk, &self.model);
        let is_repaired = self.saved.is_some();
        let read = disk.read(|| {
            let (mut all, mut behind) = (RecordsBySequence::new(), first);
            let mut reader = log.reader(0)?;
            while let Some(record) = reader.next_within(Duration::ZERO)? {
                holds(record.sequence >= behind, || {
                    format!("record {} came where {behind} was to come", record.sequence)
                })?;
                behind = record.sequence + 1;
                all.insert(record.sequence, record.bytes);
            }
            let lost = (behind..next).find(|&lost| !is_repaired && !model.may_be(lost, None));
            lost.map_or(Ok(all), |lost| {
                Err(Trouble::Ended(format!("record {lost} is not there, and {next} is next")))
            })
        });
        match read {
            Err(Trouble::Ended(_)) if disk.rotten() > 0 => Ok(None),
            read => read,
        }
    }

    /// Repairs the log. Everything that was readable before must still be readable, except for a
    /// torn end.
    fn repair(&mut self) -> Result<(), Trouble> {
        let mut before = readable(&self.disk, self.model.end());
        for (&sequence, bytes) in &before {
            holds(self.model.may_be(sequence, Some(bytes)), || {
                format!("record {sequence} has bytes that were never sent there")
            })?;
        }
        repair(&self.disk)?;
        self.tally.repaired += 1;
        let after = readable(&self.disk, 0);
        before.split_off(&self.model.kept_end(&before));
        let lost = before.iter().find(|(sequence, bytes)| after.get(sequence) != Some(bytes));
        holds(lost.is_none(), || {
            let lost = lost.map(|(sequence, _)| sequence);
            format!("record {lost:?} was there before the repair, and is not there now")
        })?;
        self.disk.is_mended();
        self.saved = Some(before);
        Ok(())
    }

    fn look_at_what_was_cut_off(&mut self, log: &Log) -> Result<(), Trouble> {
        let recovered = log.stats();
        self.tally.torn += u64::from(recovered.torn_bytes > 0);
        holds(recovered.torn_bytes > 0 || recovered.kept_aside.is_empty(), || {
            format!("nothing was torn, and {:?} were kept", recovered.kept_aside)
        })?;
        holds(recovered.torn_bytes == 0 || !recovered.found_closed, || {
            "a log that was closed is torn".to_owned()
        })?;
        for (path, kept) in &self.model.kept_aside {
            let same = self.disk.sim.contents(path).as_ref() == Some(kept);
            holds(same, || format!("{}: it was kept aside, and is another", path.display()))?;
        }
        for path in &recovered.kept_aside {
            let Some(kept) = self.disk.sim.contents(path) else {
                let path = path.display();
                return Err(Trouble::Broken(format!("{path}: it was not kept aside")));
            };
            holds(self.model.kept_aside.insert(path.clone(), kept).is_none(), || {
                format!("{}: kept aside a second time", path.display())
            })?;
        }
        Ok(())
    }

    /// Reads everything with the open log. Returns whether that was possible.
    fn read(&mut self, log: &Log) -> Result<bool, Trouble> {
        let (first, end) = (self.model.first(), self.model.end());
        let read = self.disk.read(|| {
            let rotten = if self.mends { 0 } else { self.disk.rotten() };
            let least = self.model.proven(end, rotten);
            CheckedReader::new(log.reader(0)?, 0).go_on(&self.model, first, least)
        });
        read.map(|last| last.is_some())
    }

    /// Reads everything as another process would, and records the last record found.
    fn see(&mut self) -> Result<(), Trouble> {
        if self.disk.segments().is_empty() {
            return Ok(());
        }
        // This reader cannot know which records have been removed since the log last reported its
        // first record.
        let removes = self.removes || self.model.trimmed;
        let removed = if removes { self.model.end() } else { 0 };
        let read = self.disk.read(|| {
            let promised = if self.has_misread { 0 } else { self.model.least() };
            let least = self.model.proven(promised, self.disk.rotten());
            let reader = self.disk.reader(0)?;
            CheckedReader::new(reader, 0).go_on(&self.model, removed, least)
        })?;
        if self.disk.rotten() > 0 || self.model.is_uncertain() {
            self.model.has_changed();
            return Ok(());
        }
        match read {
            // A misdirected read may have ended the reading early, if later records were never
            // promised.
            Some(last) if !self.disk.is_off() && !self.disk.has_misread() => self.model.saw(last),
            _ => Ok(()),
        }
    }

    fn end(&mut self, log: Log, end: End) {
        let is_off = self.disk.is_off();
        match end {
            End::Close | End::Drop => self.drop(log),
            End::CloseAndCut | End::DropAndCut => {
                self.drop(log);
                self.cut();
            }
            End::Cut => {
                self.cut();
                drop(log);
            }
            End::Kill => {
                if is_off {
                    self.cut();
                } else {
                    self.sync();
                    self.disk.restart();
                }
                drop(log);
            }
        }
        if self.disk.is_off() {
            self.cut();
        }
        self.disk.make_room();
    }

    /// Drops the log, which reports no error. If there was no fault, dropping it also closes it.
    fn drop(&mut self, log: Log) {
        drop(log);
        if !self.disk.is_troubled() {
            self.model.lied |= self.disk.has_lied();
            self.model.promise_durable(self.model.end());
        }
    }

    /// Makes everything stable.
    fn sync(&mut self) {
        self.disk.sync();
        self.model.lied = false;
    }

    fn cut(&mut self) {
        self.model.lied |= self.disk.has_lied();
        self.disk.restart();
        self.model.lose_power();
    }
}

/// A step in the last life.
const LAST: Step = Step::Append { len: 100, how: How::AndWait, flavour: Flavour::Random };
