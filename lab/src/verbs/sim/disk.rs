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
    /// The faults planned after the disk was last turned on, by the number of the operation.
    planned: RefCell<Vec<PlannedFault>>,
    /// Whether the free space is limited.
    limited: Cell<bool>,
    /// The operation at which the current reading, opening or step began.
    begun: Cell<u64>,
    /// The first operation after which a flush that lied may have left bytes unstable.
    unstable_from: Cell<u64>,
    /// The number of bits that rotted before the disk was last turned on and were not repaired.
    rotten: Cell<u64>,
    /// Whether a flush lied, bytes were then lost, and the rest of the log has not been examined.
    has_holes: Cell<bool>,
    /// The length of the longest segment in all lives so far, according to their options.
    pub segment_bytes_max: Cell<u64>,
}

/// The offset of the version in a segment's header, and the version of a recycled segment.
const VERSION_OFFSET: usize = 8;
const RECYCLED: u8 = 3;

/// The error numbers EINTR and EAGAIN.
const AGAIN: [i32; 2] = [4, 11];
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Disk {
    /// Creates an empty disk.
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

    /// Plans faults. If there are several for the same operation, the last one applies.
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

    /// Records that a reading, an opening or a step begins. Returns the number of its first
    /// operation.
    pub fn begin(&self) -> u64 {
        self.begin_at(self.sim.operations())
    }

    /// Records that the current reading began with this operation, and returns its number.
    pub fn begin_at(&self, operation: u64) -> u64 {
        self.begun.set(operation);
        operation
    }

    /// Returns the maximum number of reads after [`Disk::begin`] that have returned the bytes of
    /// another offset.
    pub fn misreads(&self) -> u64 {
        let begun = self.begun.get();
        self.came(|planned| planned.fault == Fault::Misdirected && planned.operation >= begun)
    }

    /// Returns whether a read after [`Disk::begin`] may have returned the bytes of another offset.
    pub fn has_misread(&self) -> bool {
        self.misreads() > 0
    }

    /// Returns whether a read after [`Disk::begin`] may have returned bytes other than those
    /// written.
    fn is_disturbed(&self) -> bool {
        let begun = self.begun.get();
        let has_rotted = |planned: &PlannedFault| planned.fault == Fault::Rot;
        self.has_misread()
            || self.came(|planned| has_rotted(planned) && planned.operation >= begun) > 0
    }

    /// Returns whether a flush may have lied about bytes that are still unstable.
    pub fn has_lied(&self) -> bool {
        let from = self.unstable_from.get();
        self.came(|planned| planned.fault == Fault::Lie && planned.operation >= from) > 0
    }

    /// Returns the maximum number of bits that have rotted since the last repair of the log.
    pub fn rotten(&self) -> u64 {
        self.rotten.get() + self.came(|planned| planned.fault == Fault::Rot)
    }

    /// Records whether bytes were lost that a flush had reported as stable.
    pub fn set_holes(&self, has_holes: bool) {
        self.has_holes.set(has_holes);
    }

    /// Records that the log has been repaired.
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

    /// Lifts the limit on the free space.
    pub fn make_room(&self) {
        self.sim.set_capacity(u64::MAX);
        self.limited.set(false);
    }

    /// Returns the faults that have occurred since the disk was last turned on.
    fn faults(&self) -> Vec<PlannedFault> {
        let over = self.sim.operations();
        let planned = self.planned.borrow();
        planned.iter().filter(|planned| planned.operation < over).copied().collect()
    }

    /// Accepts an error that has a reason. Any other error is a broken promise.
    pub fn excuse(&self, error: &Error) -> Result<(), Trouble> {
        let mut errnos = self.faults().into_iter().filter_map(|planned| match planned.fault {
            Fault::Once(errno) if AGAIN.contains(&errno) => None,
            Fault::Once(errno) | Fault::Forever(errno) => Some(errno),
            Fault::PowerLoss => Some(EIO),
            // Short transfers, lies, rot and misdirected reads do not make a call fail.
            _ => None,
        });
        let is_damage = matches!(error, Error::Damaged { .. } | Error::Foreign { .. });
        if is_damage && (self.has_misread() || self.has_holes.get() || self.rotten() > 0) {
            return Ok(());
        }
        // The log may have been cut while its file still has the earlier length, or a reader has
        // misread the record of the cut.
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

    /// Returns `None` in place of an error that has a reason.
    pub fn unless_excused<T>(&self, result: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match result {
            Err(Trouble::Error(error)) => self.excuse(&error).map(|()| None),
            Err(Trouble::Ended(_)) if self.is_disturbed() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Calls `read`, and repeats the call as long as it fails and one of its reads may have
    /// returned wrong bytes: after a misdirected read, everything is still there, and the next
    /// reading takes rotten bits into account. Returns `None` in place of any other error that has
    /// a reason.
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

    /// Returns whether a fault has cut the power.
    pub fn is_off(&self) -> bool {
        self.came(|planned| planned.fault == Fault::PowerLoss) > 0
    }

    /// Returns whether an operation has failed since the disk was last turned on. It may have been
    /// a flush, which loses pages of the cache.
    pub fn has_lost_pages(&self) -> bool {
        let is_error = |planned: &PlannedFault| match planned.fault {
            Fault::Once(errno) | Fault::Forever(errno) => !AGAIN.contains(&errno),
            _ => false,
        };
        self.came(is_error) > 0
    }

    /// Returns whether the free space is limited, or a fault that the log notices has occurred
    /// since the disk was last turned on.
    pub fn is_troubled(&self) -> bool {
        let is_hidden = |planned: &PlannedFault| {
            matches!(planned.fault, Fault::Lie | Fault::Rot | Fault::Misdirected)
        };
        self.limited.get() || self.came(|planned| !is_hidden(planned)) > 0
    }

    /// Turns the disk off and on again, without the planned faults.
    pub fn restart(&self) {
        self.rotten.set(self.rotten());
        self.sim.restart();
        self.planned.borrow_mut().clear();
    }

    /// Opens a reader that shares nothing with the writer.
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        LogReader::open_on(&self.sim.disk(), FOLDER, from)
    }

    /// Returns the paths of the log's segments, in order.
    pub fn segments(&self) -> Vec<PathBuf> {
        let all = self.sim.names().into_iter();
        all.filter(|path| path.extension() == Some(OsStr::new("segment"))).collect()
    }

    /// Returns the content of the last segment; `None` if there are no segments.
    pub fn last_segment(&self) -> Option<Vec<u8>> {
        self.segments().last().and_then(|path| self.sim.contents(path))
    }

    /// Returns whether the last segment uses the file of a removed segment.
    pub fn ends_in_recycled(&self) -> bool {
        self.last_segment().is_some_and(|segment| segment.get(VERSION_OFFSET) == Some(&RECYCLED))
    }

    /// Returns the total size of all segments in bytes.
    pub fn segment_bytes(&self) -> u64 {
        let all = self.segments().into_iter().filter_map(|path| self.sim.contents(&path));
        all.map(|contents| contents.len() as u64).sum()
    }
}
