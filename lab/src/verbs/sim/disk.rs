//! The simulated disk of a run: its planned faults, and the errors that they explain.

use crate::verbs::sim::program::PlannedFault;
use crate::verbs::sim::{Trouble, holds};
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::path::PathBuf;
use wrote::engine::Fault;
use wrote::{Error, LogReader, Sim};

/// The log's folder on the simulated disk.
pub const FOLDER: &str = "/sim/events";

/// The simulated disk, with its faults.
pub struct Disk {
    pub sim: Sim,
    /// The faults planned since the disk was last turned on, by the number of the operation.
    planned: RefCell<Vec<PlannedFault>>,
    /// Whether the free space is limited.
    limited: Cell<bool>,
    /// The operation at which the current reading, opening or step began.
    begun: Cell<u64>,
    /// Flushes may have lied from this operation on, and left bytes unstable.
    unstable_from: Cell<u64>,
    /// The bits that rotted before the disk was last turned on, and were not mended since.
    rotten: Cell<u64>,
    /// A flush lied, and then bytes were lost. The rest of the log was not examined yet.
    has_holes: Cell<bool>,
    /// The longest segment of any life so far, by its options.
    pub segment_bytes_max: Cell<u64>,
}

/// The place of the version in a segment's header, and its byte in a recycled segment.
const VERSION_OFFSET: usize = 8;
const RECYCLED: u8 = 3;

/// The error numbers EINTR and EAGAIN.
const AGAIN: [i32; 2] = [4, 11];
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Disk {
    /// Makes an empty disk.
    pub fn new(seed: u64) -> Disk {
        Disk {
            sim: Sim::new(seed),
            planned: RefCell::default(),
            limited: Cell::new(false),
            begun: Cell::new(0),
            unstable_from: Cell::new(0),
            rotten: Cell::new(0),
            has_holes: Cell::new(false),
            segment_bytes_max: Cell::new(0),
        }
    }

    /// Plans faults. The last one at an operation counts.
    pub fn plan(&self, planned: &[PlannedFault]) {
        let now = self.sim.operations();
        for PlannedFault { operation, fault } in planned {
            let operation = now + operation;
            self.sim.fault(operation, *fault);
            let mut all = self.planned.borrow_mut();
            all.retain(|earlier| earlier.operation != operation);
            all.push(PlannedFault { operation, fault: *fault });
        }
    }

    /// Records that a reading, an opening or a step begins, and returns the number of its first
    /// operation.
    pub fn begin(&self) -> u64 {
        self.begin_at(self.sim.operations())
    }

    /// Records that the current reading began with this operation.
    pub fn begin_at(&self, operation: u64) -> u64 {
        self.begun.set(operation);
        operation
    }

    /// Returns the maximum number of reads since [`Disk::begin`] that have found the bytes of
    /// another place.
    pub fn misreads(&self) -> u64 {
        let begun = self.begun.get();
        self.came(|planned| planned.fault == Fault::Misdirected && planned.operation >= begun)
    }

    /// Returns whether a read since [`Disk::begin`] may have found the bytes of another place.
    pub fn has_misread(&self) -> bool {
        self.misreads() > 0
    }

    /// Returns whether a read since [`Disk::begin`] may have found other bytes than were written.
    fn is_disturbed(&self) -> bool {
        let begun = self.begun.get();
        let has_rotted = |planned: &PlannedFault| planned.fault == Fault::Rot;
        self.has_misread()
            || self.came(|planned| has_rotted(planned) && planned.operation >= begun) > 0
    }

    /// Returns whether a flush may have lied about bytes that are not stable yet.
    pub fn has_lied(&self) -> bool {
        let from = self.unstable_from.get();
        self.came(|planned| planned.fault == Fault::Lie && planned.operation >= from) > 0
    }

    /// Returns the greatest number of bits that have rotted since the log was last mended.
    pub fn rotten(&self) -> u64 {
        self.rotten.get() + self.came(|planned| planned.fault == Fault::Rot)
    }

    /// Records whether bytes were lost that a flush had called stable.
    pub fn set_holes(&self, has_holes: bool) {
        self.has_holes.set(has_holes);
    }

    /// Records that the log was repaired.
    pub fn is_mended(&self) {
        self.has_holes.set(false);
        self.rotten.set(0);
    }

    /// Makes everything stable, including bytes about which a flush lied.
    pub fn sync(&self) {
        self.sim.sync();
        self.unstable_from.set(self.sim.operations());
    }

    fn came(&self, is_one: impl Fn(&PlannedFault) -> bool) -> u64 {
        self.faults().iter().filter(|planned| is_one(planned)).count() as u64
    }

    /// Limits the free space to `bytes`.
    pub fn limit_room(&self, bytes: u64) {
        let lens = self.sim.names().into_iter().filter_map(|path| self.sim.contents(&path));
        let used: usize = lens.map(|contents| contents.len()).sum();
        self.sim.set_capacity(used as u64 + bytes);
        self.limited.set(true);
    }

    /// Lifts the limit of the free space.
    pub fn make_room(&self) {
        self.sim.set_capacity(u64::MAX);
        self.limited.set(false);
    }

    /// Returns the faults since the disk was last turned on.
    fn faults(&self) -> Vec<PlannedFault> {
        let over = self.sim.operations();
        let planned = self.planned.borrow();
        planned.iter().filter(|planned| planned.operation < over).copied().collect()
    }

    /// Accepts an error with a reason; any other is a broken promise.
    pub fn excuse(&self, error: &Error) -> Result<(), Trouble> {
        let mut errnos = self.faults().into_iter().filter_map(|planned| match planned.fault {
            Fault::Once(errno) if AGAIN.contains(&errno) => None,
            Fault::Once(errno) | Fault::Forever(errno) => Some(errno),
            Fault::PowerLoss => Some(EIO),
            // Short transfers, lies, rot, misdirected reads: none makes a call fail.
            _ => None,
        });
        let is_damage = matches!(error, Error::Damaged { .. } | Error::Foreign { .. });
        if is_damage && (self.has_misread() || self.has_holes.get() || self.rotten() > 0) {
            return Ok(());
        }
        // A cut was made but its file is as long as before, or a reader has misread the record of
        // the cut.
        let is_cut = matches!(error, Error::Truncated { .. });
        if is_cut && (self.has_holes.get() || self.has_misread()) {
            return Ok(());
        }
        let full = self.limited.get() && error.errno() == ENOSPC;
        let of_disk =
            matches!(error, Error::File { .. } | Error::NotYet { .. } | Error::Poisoned { .. });
        holds(of_disk && (full || errnos.any(|errno| errno == error.errno())), || {
            format!("an error without a reason: {error}")
        })
    }

    /// Returns `None` for an error that has a reason.
    pub fn unless_excused<T>(&self, result: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match result {
            Err(Trouble::Error(error)) => self.excuse(&error).map(|()| None),
            Err(Trouble::Ended(_)) if self.is_disturbed() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads by `read`, and once more if a fault may have ended it: after a misdirected read
    /// everything is still there, and the next reading expects rotten bits. Returns `None` for an
    /// error that has a reason.
    pub fn read<T>(
        &self,
        mut read: impl FnMut() -> Result<T, Trouble>,
    ) -> Result<Option<T>, Trouble> {
        loop {
            self.begin();
            let result = self.unless_excused(read())?;
            if result.is_some() || !self.is_disturbed() {
                return Ok(result);
            }
        }
    }

    /// Returns whether a fault cut the power.
    pub fn is_off(&self) -> bool {
        self.came(|planned| planned.fault == Fault::PowerLoss) > 0
    }

    /// Returns whether an operation failed since the disk was last turned on: it may have been a
    /// flush, which loses pages of the cache.
    pub fn has_lost_pages(&self) -> bool {
        let is_error = |planned: &PlannedFault| match planned.fault {
            Fault::Once(errno) | Fault::Forever(errno) => !AGAIN.contains(&errno),
            _ => false,
        };
        self.came(is_error) > 0
    }

    /// Returns whether a fault that the log notices happened since the disk was last turned on, or
    /// the free space is limited.
    pub fn is_troubled(&self) -> bool {
        let is_hidden = |planned: &PlannedFault| {
            matches!(planned.fault, Fault::Lie | Fault::Rot | Fault::Misdirected)
        };
        self.limited.get() || self.came(|planned| !is_hidden(planned)) > 0
    }

    /// Turns the disk off and on, without the faults.
    pub fn restart(&self) {
        self.rotten.set(self.rotten());
        self.sim.restart();
        self.planned.borrow_mut().clear();
    }

    /// Opens a reader that shares nothing with the writer.
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        LogReader::open_on(&self.sim.disk(), FOLDER, from)
    }

    /// Returns the files of the log, in order.
    pub fn segments(&self) -> Vec<PathBuf> {
        let all = self.sim.names().into_iter();
        all.filter(|path| path.extension() == Some(OsStr::new("segment"))).collect()
    }

    /// Returns the content of the last segment.
    pub fn last_segment(&self) -> Option<Vec<u8>> {
        self.segments().last().and_then(|path| self.sim.contents(path))
    }

    /// Returns whether the log continues in the file of a removed segment.
    pub fn ends_in_recycled(&self) -> bool {
        self.last_segment().is_some_and(|segment| segment.get(VERSION_OFFSET) == Some(&RECYCLED))
    }

    /// Returns the bytes of all segments.
    pub fn segment_bytes(&self) -> u64 {
        let all = self.segments().into_iter().filter_map(|path| self.sim.contents(&path));
        all.map(|contents| contents.len() as u64).sum()
    }
}
