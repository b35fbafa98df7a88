//! The run of a program: lives in turn on one disk, and the checks between them.

use crate::life::{self, OpenLog};
use crate::model::Model;
use crate::program::{End, Flavour, How, Life, Opening, PlannedFault, Program, Step};
use crate::reading::{CheckedReader, reading_trouble};
use crate::trouble::{Trouble, holds};
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::path::PathBuf;
use wrote::engine::Fault;
use wrote::{Error, Format, Log, LogReader, Sim};

/// The log's folder on the simulated disk.
pub const FOLDER: &str = "/sim/events";

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of the disk.
    pub operations: u64,
    /// Operations of the last of the program's lives.
    pub last_life_operations: u64,
    /// Openings of the log.
    pub opened: u64,
    /// Openings that an error ended.
    pub failed_openings: u64,
    /// Appended records.
    pub appended: u64,
    /// Records that were waited for with success.
    pub acknowledged: u64,
    /// Errors that were the first of a life.
    pub errors: u64,
    /// Power losses.
    pub cuts: u64,
    /// Openings that cut off an end.
    pub torn: u64,
    /// Closings of the log.
    pub closed: u64,
    /// Segments that were begun.
    pub segments: u64,
    /// Segments that were removed.
    pub removed: u64,
    /// Segments that were begun in the file of a removed one.
    pub recycled: u64,
    /// Groups that were appended as a whole.
    pub groups: u64,
    /// Trims of the log's beginning.
    pub trims: u64,
    /// Cuts of its end.
    pub truncations: u64,
    /// Contents that were made.
    pub(crate) numbers: u64,
}

impl Tally {
    /// Adds the counts of another program.
    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.last_life_operations += other.last_life_operations;
        self.opened += other.opened;
        self.failed_openings += other.failed_openings;
        self.appended += other.appended;
        self.acknowledged += other.acknowledged;
        self.errors += other.errors;
        self.cuts += other.cuts;
        self.torn += other.torn;
        self.closed += other.closed;
        self.segments += other.segments;
        self.removed += other.removed;
        self.recycled += other.recycled;
        self.groups += other.groups;
        self.trims += other.trims;
        self.truncations += other.truncations;
        self.numbers += other.numbers;
    }
}

/// The simulated disk, with its faults.
pub struct Disk {
    pub sim: Sim,
    format: Format,
    /// The faults planned since the disk was last turned on, by the number of the operation.
    planned: RefCell<Vec<PlannedFault>>,
    /// Whether the free space is limited.
    limited: Cell<bool>,
    /// The longest segment of any life so far, by its options.
    pub segment_bytes_max: Cell<u64>,
}

/// The error numbers EINTR and EAGAIN.
const AGAIN: [i32; 2] = [4, 11];
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Disk {
    fn plan(&self, planned: &[PlannedFault]) {
        let now = self.sim.operations();
        for PlannedFault { operation, fault } in planned {
            let operation = now + operation;
            self.sim.fault(operation, *fault);
            self.planned.borrow_mut().push(PlannedFault { operation, fault: *fault });
        }
    }

    /// Limits the free space to `bytes`.
    pub fn limit_room(&self, bytes: u64) {
        let lens = self.sim.names().into_iter().filter_map(|path| self.sim.contents(&path));
        let used: usize = lens.map(|contents| contents.len()).sum();
        self.sim.set_capacity(used as u64 + bytes);
        self.limited.set(true);
    }

    fn make_room(&self) {
        self.sim.set_capacity(u64::MAX);
        self.limited.set(false);
    }

    /// The faults that came since the disk was last turned on.
    fn faults(&self) -> Vec<Fault> {
        let over = self.sim.operations();
        let planned = self.planned.borrow();
        let came = planned.iter().filter(|planned| planned.operation < over);
        came.map(|planned| planned.fault).collect()
    }

    /// Accepts an error that has a reason, and reports a broken promise for any other.
    pub fn excuse(&self, error: &Error) -> Result<(), Trouble> {
        let mut errnos = self.faults().into_iter().filter_map(|fault| match fault {
            Fault::Once(errno) if AGAIN.contains(&errno) => None,
            Fault::Once(errno) | Fault::Forever(errno) => Some(errno),
            Fault::PowerLoss => Some(EIO),
            // Short transfers, lies, rot, misdirected reads: none is an error of a call.
            _ => None,
        });
        let full = self.limited.get() && error.errno() == ENOSPC;
        let of_disk = matches!(error, Error::File { .. } | Error::Poisoned { .. });
        holds(of_disk && (full || errnos.any(|errno| errno == error.errno())), || {
            format!("an error without a reason: {error}")
        })
    }

    /// Returns `None` for an error that has a reason.
    pub fn unless_excused<T>(&self, result: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match result {
            Err(Trouble::Error(error)) => self.excuse(&error).map(|()| None),
            result => result.map(Some),
        }
    }

    /// Whether the power went by itself.
    fn is_off(&self) -> bool {
        self.faults().contains(&Fault::PowerLoss)
    }

    /// Whether an operation on the page cache failed since the disk was last turned on: it may have
    /// been a flush, which loses pages.
    fn has_lost_pages(&self) -> bool {
        let is_error = |fault: &Fault| match fault {
            Fault::Once(errno) | Fault::Forever(errno) => !AGAIN.contains(errno),
            _ => false,
        };
        self.format == Format::Lines && self.faults().iter().any(is_error)
    }

    /// Whether a fault happened since the disk was last turned on, or the free space is limited.
    fn is_troubled(&self) -> bool {
        self.limited.get() || !self.faults().is_empty()
    }

    fn restart(&self) {
        self.sim.restart();
        self.planned.borrow_mut().clear();
    }

    /// Opens a reader that shares nothing with the writer.
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        LogReader::open_simulated(&self.sim, FOLDER, from)
    }

    fn segments(&self) -> Vec<PathBuf> {
        let extension = match self.format {
            Format::Framed => "segment",
            Format::Lines => "log",
        };
        let all = self.sim.names().into_iter();
        all.filter(|path| path.extension() == Some(OsStr::new(extension))).collect()
    }

    /// Returns the content of the last segment.
    pub fn last_segment(&self) -> Option<Vec<u8>> {
        self.segments().last().and_then(|path| self.sim.contents(path))
    }

    /// Returns the bytes of all segments.
    pub fn segment_bytes(&self) -> u64 {
        let all = self.segments().into_iter().filter_map(|path| self.sim.contents(&path));
        all.map(|contents| contents.len() as u64).sum()
    }
}

/// The state that a program's lives share.
struct Run {
    disk: Disk,
    model: Model,
    tally: Tally,
    /// Whether the log was ever told to remove records.
    removes: bool,
}

/// Runs the program on a disk of this seed, and returns its counts, or the promise that was broken.
/// In the end the power is cut, and the log is opened once more and read, without faults.
pub fn carry_out(program: &Program, seed: u64) -> Result<Tally, String> {
    let disk = Disk {
        sim: Sim::new(seed),
        format: program.format,
        planned: RefCell::default(),
        limited: Cell::new(false),
        segment_bytes_max: Cell::new(0),
    };
    let mut run = Run { disk, model: Model::default(), tally: Tally::default(), removes: false };
    for (number, life) in program.lives.iter().enumerate() {
        let before = run.disk.sim.operations();
        run.live(life).map_err(|trouble| describe(number, trouble))?;
        run.tally.last_life_operations = run.disk.sim.operations() - before;
    }
    let last = program.lives.last().map(|life| life.opening);
    if let Some(opening) = last {
        run.last_life(opening).map_err(|trouble| describe(program.lives.len(), trouble))?;
    }
    run.tally.operations = run.disk.sim.operations();
    Ok(run.tally)
}

fn describe(life: usize, trouble: Trouble) -> String {
    match trouble {
        Trouble::Broken(because) => format!("life {life}: {because}"),
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
        self.tally.removed += stats.removed;
        self.end(log, life.end);
        Ok(())
    }

    /// Checks that everything promised is there, and that the log continues.
    fn last_life(&mut self, opening: Opening) -> Result<(), Trouble> {
        self.cut();
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
        let format = disk.format;
        let (follower, poison, was_full) = (None, None, false);
        OpenLog { disk, model, tally, log, format, opening, follower, poison, was_full }
    }

    /// Opens the log. If an error with a reason ends the opening, it opens the log once more
    /// without the fault. Returns `None` if that failed too.
    fn open(&mut self, opening: Opening) -> Result<Option<Log>, Trouble> {
        if let Some(log) = self.try_to_open(opening)? {
            return Ok(Some(log));
        }
        self.tally.failed_openings += 1;
        // The power goes, or the disk stays as it is: both are ways out of an error.
        if !self.disk.is_off() && self.tally.failed_openings.is_multiple_of(2) {
            self.disk.sim.sync();
        }
        self.disk.make_room();
        self.cut();
        self.try_to_open(opening)
    }

    fn try_to_open(&mut self, opening: Opening) -> Result<Option<Log>, Trouble> {
        if self.disk.has_lost_pages() {
            self.model.lose_pages();
        }
        self.see()?;
        self.removes |= opening.removes() || self.model.trimmed;
        let longest = &self.disk.segment_bytes_max;
        longest.set(longest.get().max(opening.segment_buffers * opening.buffer_bytes as u64));
        let opened = life::open(&self.disk, self.disk.format, opening).map_err(reading_trouble);
        let Some(log) = self.disk.unless_excused(opened)? else { return Ok(None) };
        self.tally.opened += 1;
        let stats = log.stats();
        let removes = self.removes;
        holds(removes || stats.first_sequence == 0, || {
            format!("the first record is {}, and nothing is removed", stats.first_sequence)
        })?;
        self.model.open(stats.first_sequence, stats.next_sequence)?;
        self.look_at_what_was_cut_off(&log)?;
        self.read(&log)?;
        Ok(Some(log))
    }

    fn look_at_what_was_cut_off(&mut self, log: &Log) -> Result<(), Trouble> {
        let recovered = log.recovered();
        self.tally.torn += u64::from(recovered.torn_bytes > 0);
        holds(recovered.torn_bytes > 0 || recovered.kept_aside.is_empty(), || {
            format!("nothing was torn, and {:?} were kept", recovered.kept_aside)
        })?;
        holds(recovered.torn_bytes == 0 || !recovered.closed, || {
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

    /// Reads everything by the open log.
    fn read(&mut self, log: &Log) -> Result<(), Trouble> {
        let (first, end) = (self.model.first(), self.model.end());
        let reader = log.reader(0).map_err(reading_trouble);
        let read =
            reader.and_then(|reader| CheckedReader::new(reader, 0).go_on(&self.model, first, end));
        self.disk.unless_excused(read).map(drop)
    }

    /// Reads everything as another process does, and records the last record.
    fn see(&mut self) -> Result<(), Trouble> {
        if self.disk.segments().is_empty() {
            return Ok(());
        }
        let least = self.model.least();
        // This reader cannot know which records were removed since the log last reported its first
        // one.
        let removes = self.removes || self.model.trimmed;
        let removed = if removes { self.model.end() } else { 0 };
        let read =
            self.disk.reader(0).map_err(reading_trouble).and_then(|reader| {
                CheckedReader::new(reader, 0).go_on(&self.model, removed, least)
            });
        match self.disk.unless_excused(read)? {
            Some(last) if !self.disk.is_off() => self.model.saw(last),
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
                    self.disk.sim.sync();
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

    /// Drops the log, which reports no error; without an error it is closed.
    fn drop(&mut self, log: Log) {
        drop(log);
        if !self.disk.is_troubled() {
            self.model.promise_durable(self.model.end());
        }
    }

    fn cut(&mut self) {
        self.disk.restart();
        self.model.lose_power();
        self.tally.cuts += 1;
    }
}

/// A step of the last life.
const LAST: Step = Step::Append { len: 100, how: How::AndWait, flavour: Flavour::Random };
