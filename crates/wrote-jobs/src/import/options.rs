//! A job's options in fio's JSON: its own, else the global ones, else fio's defaults.

use crate::fio;
use crate::spec::Data;
use serde_json::Value;
use std::collections::BTreeMap;
use wrote_result::document::{BlockShare, Direction, Flush};

/// Other names of options. fio's JSON has the name as written.
const ALIASES: [(&str, &str); 6] = [
    ("rw", "readwrite"),
    ("bs", "blocksize"),
    ("blocksize_range", "bsrange"),
    ("io_size", "io_limit"),
    ("verify", "verify_type"),
    ("rwmixread", "rwmixreads"),
];
/// fio's default.
const BS_BYTES: u64 = 4096;

pub(super) struct Options<'a> {
    pub global: &'a BTreeMap<String, Value>,
    pub own: &'a BTreeMap<String, Value>,
}

impl<'a> Options<'a> {
    /// Returns the value of an option, under any of its names.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        let aliases = ALIASES.iter().filter(|(name, _)| *name == key).map(|(_, alias)| *alias);
        let names: Vec<&str> = std::iter::once(key).chain(aliases).collect();
        let of = |options: &'a BTreeMap<String, Value>| {
            names.iter().find_map(|name| options.get(*name)).and_then(Value::as_str)
        };
        of(self.own).or_else(|| of(self.global))
    }

    /// Returns whether a switch is on; it is on without a value.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| text != "0")
    }

    /// Returns a whole number; `None` for another value.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        fio::bytes(self.text(key)?)
    }

    /// Returns the seconds of a time, which is in units of `plain_us` microseconds without a unit.
    pub(super) fn seconds(&self, key: &str, plain_us: u64) -> Option<f64> {
        let time = fio::time(self.text(key)?, plain_us)?;
        Some(time.as_secs_f64()).filter(|time| *time > 0.0)
    }

    /// Returns the part of a value for a direction: `4k`, or one of `4k,64k`.
    pub(super) fn of_direction(&self, key: &str, direction: Direction) -> Option<&'a str> {
        let parts: Vec<&str> = self.text(key)?.split(',').map(str::trim).collect();
        let part = match (direction, parts.as_slice()) {
            (Direction::Write, [_, writes, ..]) => writes,
            (_, [first, ..]) => first,
            (_, []) => return None,
        };
        (!part.is_empty()).then_some(*part)
    }

    /// Returns the least size of operations if they are a range.
    pub(super) fn least_of_range(&self, direction: Direction) -> Option<u64> {
        fio::bytes(self.of_direction("blocksize_range", direction)?.split('-').next()?)
    }

    /// Returns the largest size of operations, and all sizes if there are several.
    pub(super) fn block_sizes(&self, direction: Direction) -> (u64, Option<Vec<BlockShare>>) {
        let split = self.of_direction("bssplit", direction).and_then(split);
        let largest = split.iter().flatten().map(|share| share.bytes).max();
        let range = self.of_direction("blocksize_range", direction);
        let range = range.and_then(|range| fio::bytes(range.rsplit('-').next()?));
        let single = self.of_direction("bs", direction).and_then(fio::bytes);
        (largest.or(range).or(single).unwrap_or(BS_BYTES), split)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.flag("direct") || self.text("buffered") == Some("0")
    }

    /// Returns when writes are flushed within the job's clock. The clock of a job with `end_fsync`
    /// runs until that flush has returned; with `fsync_on_close` it stops before (fio 3.33;
    /// axboe/fio#831).
    pub(super) fn sync(&self) -> Flush {
        let every = |key, flush: fn(u32) -> Flush| {
            let writes = self.number(key).filter(|writes| *writes > 0)?;
            Some(flush(u32::try_from(writes).unwrap_or(u32::MAX)))
        };
        let opened = match self.text("sync") {
            None | Some("0" | "none") => None,
            Some("dsync") => Some(Flush::ODsyncEach),
            Some(_) => Some(Flush::OSyncEach),
        };
        let at_end = self.flag("end_fsync").then_some(Flush::FsyncAtEnd);
        let fsync = every("fsync", Flush::fsync_after);
        let fdatasync = every("fdatasync", Flush::fdatasync_after);
        let each = |flush: &Flush| flush.is_each();
        // A flush at the end covers the last writes; one after every few writes does not.
        let all = [opened, fsync.filter(each), fdatasync.filter(each), at_end, fsync, fdatasync];
        all.into_iter().flatten().next().unwrap_or_default()
    }

    /// Describes the data, if it is not random.
    pub(super) fn data(&self) -> Option<String> {
        if self.text("buffer_pattern").is_some() {
            return Data::Pattern(Vec::new()).words();
        }
        if self.flag("zero_buffers") {
            return Data::Zeros.words();
        }
        let percent = self.number("buffer_compress_percentage").filter(|percent| *percent > 0);
        percent.and_then(|percent| Data::Compressible(percent as u32).words())
    }
}

/// Parses `4k/60:64k/40`; `None` for another form.
fn split(text: &str) -> Option<Vec<BlockShare>> {
    let share = |part: &str| {
        let (bytes, percent) = part.split_once('/')?;
        Some(BlockShare { bytes: fio::bytes(bytes)?, percent: percent.parse().ok()? })
    };
    text.split(':').map(share).collect()
}
