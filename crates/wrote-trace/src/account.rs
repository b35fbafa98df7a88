//! Per-file counts of writes, flushes and sizes.

use crate::call::{Act, Call, FileId, Point};
use crate::model::Model;
use std::collections::{BTreeMap, HashMap};
use wrote_result::trace::How;

/// Write sizes are counted exactly up to this size, and by their leading bits above it.
const EXACT_BYTES: u64 = 1 << 12;
/// Leading bits kept for larger sizes, which are then at most 1/64 too small.
const KEPT_BITS: u32 = 6;

#[derive(Debug, Default)]
pub struct Accounts {
    files: HashMap<FileId, Account>,
    /// Files that were created and removed again.
    pub removed: u64,
}

#[derive(Debug, Default)]
pub struct Account {
    pub writes: u64,
    pub bytes: u64,
    /// Flushes, including failed ones.
    pub flushes: u64,
    /// Writes that were durable when they returned.
    pub durable_writes: u64,
    /// Writes that bypassed the page cache.
    pub direct_writes: u64,
    pub last_write: Point,
    pub last_flush: Point,
    /// The time within flushes and durable writes.
    pub flush_ns: u64,
    /// The time from the first write to the end of the last write or flush.
    pub span_ns: u64,
    /// The time within writes and flushes.
    pub busy_ns: u64,
    /// Writes that continued where the one before had ended.
    pub sequential_writes: u64,
    /// The ends of the last write and of the furthest, in bytes.
    pub last_end: u64,
    pub size_bytes: u64,
    pub first_write_ns: Option<u64>,
    /// The number of writes of each size.
    pub sizes: BTreeMap<u64, u64>,
    /// The size before the first write.
    pub size_before: u64,
    pub is_new: bool,
    pub is_emptied: bool,
    /// Whether a write changed existing bytes.
    pub is_changed: bool,
    /// Set if a rename gave the file its name: whether it replaced another file.
    pub renamed: Option<bool>,
}

impl Account {
    /// Returns the number of flushes, counting durable writes as flushes.
    pub fn flushes_in_all(&self) -> u64 {
        self.flushes + self.durable_writes
    }

    fn spend(&mut self, call: &Call) {
        self.busy_ns += call.took_ns;
        if let Some(first_ns) = self.first_write_ns {
            self.span_ns = call.at_ns + call.took_ns - first_ns;
        }
    }

    /// Returns the median write size, 0 without writes.
    pub fn write_p50_bytes(&self) -> u64 {
        let mut below = 0;
        let reaches_half = |(_, count): &(&u64, &u64)| {
            below += **count;
            below * 2 >= self.writes
        };
        self.sizes.iter().find(reaches_half).map_or(0, |(size, _)| *size)
    }

    /// Returns how the file was written; `None` if it was only flushed.
    pub fn how(&self) -> Option<How> {
        match self {
            Account { renamed: Some(true), .. } => Some(How::Replaced),
            Account { renamed: Some(false), .. } => Some(How::Renamed),
            Account { is_new: true, .. } => Some(How::Made),
            Account { is_emptied: true, .. } => Some(How::Rewritten),
            Account { is_changed: true, .. } => Some(How::Changed),
            Account { writes: 1.., .. } => Some(How::Appended),
            _ => None,
        }
    }
}

impl Accounts {
    /// Returns the account of a file that appeared in any call.
    pub fn of(&self, file: FileId) -> Option<&Account> {
        self.files.get(&file)
    }

    /// Counts a call. `model` must not have processed it yet.
    pub fn see(&mut self, model: &Model, call: &Call) {
        match &call.act {
            Act::Found { file, size_bytes, .. } => {
                let account = Account { size_before: *size_bytes, ..Account::default() };
                self.files.entry(*file).or_insert(account);
            }
            Act::Made { file, .. } => {
                self.files.insert(*file, Account { is_new: true, ..Account::default() });
            }
            // The inode may have belonged to a file.
            Act::MadeFolder { file, .. } => drop(self.files.remove(file)),
            Act::Empty { file, .. } => self.account(*file).is_emptied = true,
            Act::Write { file, bytes, how, .. } => {
                let account = self.account(*file);
                let count = bytes.end - bytes.start;
                account.writes += 1;
                account.bytes += count;
                account.durable_writes += u64::from(how.is_durable);
                account.direct_writes += u64::from(how.is_direct);
                account.last_write = call.point();
                if how.is_durable {
                    account.last_flush = call.point();
                }
                account.sequential_writes += u64::from(bytes.start == account.last_end);
                account.last_end = bytes.end;
                account.size_bytes = account.size_bytes.max(bytes.end);
                account.first_write_ns.get_or_insert(call.at_ns);
                account.flush_ns += if how.is_durable { call.took_ns } else { 0 };
                account.spend(call);
                account.is_changed |= bytes.start < account.size_before;
                *account.sizes.entry(rounded(count)).or_default() += 1;
            }
            Act::Resize { file, to_bytes, .. } => {
                let account = self.account(*file);
                account.is_changed |= *to_bytes < account.size_before;
            }
            Act::Map { file } => self.account(*file).is_changed = true,
            Act::Flush { file, .. } => {
                let account = self.account(*file);
                account.flushes += 1;
                account.last_flush = call.point();
                account.flush_ns += call.took_ns;
                account.spend(call);
            }
            Act::Rename { file, replaced, .. } => {
                let replaces = replaced.is_some_and(|replaced| replaced != *file);
                self.account(*file).renamed = Some(replaces);
            }
            Act::Exchange { one: (one, _), other: (other, _) } => {
                self.account(*one).renamed = Some(true);
                self.account(*other).renamed = Some(true);
            }
            Act::Unlink { file, name } => {
                let is_last = model.file(*file).is_none_or(|known| known.path() == name.path);
                let is_new = self.of(*file).is_some_and(|account| account.is_new);
                self.removed += u64::from(is_last && is_new);
            }
            _ => {}
        }
    }

    fn account(&mut self, file: FileId) -> &mut Account {
        self.files.entry(file).or_default()
    }
}

/// Drops low bits that don't matter to readers, to limit the number of distinct sizes.
fn rounded(size_bytes: u64) -> u64 {
    match size_bytes {
        ..EXACT_BYTES => size_bytes,
        _ => {
            let shift = u64::BITS - size_bytes.leading_zeros() - KEPT_BITS;
            size_bytes >> shift << shift
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_rounded_by_less_than_its_third_digit() {
        assert_eq!(rounded(4095), 4095);
        assert_eq!(rounded(1 << 20), 1 << 20);
        for size_bytes in [4097, 65_000, 999_999, u64::MAX] {
            let off = size_bytes - rounded(size_bytes);
            assert!(off * 32 < size_bytes, "{size_bytes}");
        }
    }

    #[test]
    fn half_of_the_writes_are_of_the_median_or_less() {
        let mut account = Account::default();
        for (size, count) in [(10, 2), (100, 3), (1000, 1)] {
            account.sizes.insert(size, count);
            account.writes += count;
        }
        assert_eq!(account.write_p50_bytes(), 100);
        assert_eq!(Account::default().write_p50_bytes(), 0);
    }
}
