//! The counts of each file: writes, flushes, sizes.

use crate::call::{Act, Call, FileId};
use crate::model::Model;
use std::collections::{BTreeMap, HashMap};
use wrote_result::trace::How;

/// Sizes of writes are counted exactly up to this, and by their first bits above it.
const EXACT_BYTES: u64 = 1 << 12;
/// The bits that are kept above it: sizes are at most a 64th too small.
const KEPT_BITS: u32 = 6;

/// The accounts of all files.
#[derive(Debug, Default)]
pub struct Accounts {
    files: HashMap<FileId, Account>,
    /// The files that were made and removed again.
    pub removed: u64,
}

/// The account of a file.
#[derive(Debug, Default)]
pub struct Account {
    /// Write calls.
    pub writes: u64,
    /// The bytes of all writes.
    pub bytes: u64,
    /// Flushes that succeeded or failed.
    pub flushes: u64,
    /// Writes that were durable when they returned.
    pub durable_writes: u64,
    /// Writes past the page cache.
    pub direct_writes: u64,
    /// The moment of the last write.
    pub last_write_ns: u64,
    /// How many writes had each size.
    sizes: BTreeMap<u64, u64>,
    /// The size of the file before its first write, in bytes.
    size_before: u64,
    is_new: bool,
    is_emptied: bool,
    /// Whether a write changed bytes that were there before.
    is_changed: bool,
    /// The rename that gave it its name, and whether another file had the name.
    renamed: Option<bool>,
}

impl Account {
    /// The flushes, and the writes that were durable themselves.
    pub fn flushes_in_all(&self) -> u64 {
        self.flushes + self.durable_writes
    }

    /// The size of the median write, in bytes; 0 without writes.
    pub fn write_p50_bytes(&self) -> u64 {
        let mut below = 0;
        let reaches_half = |(_, count): &(&u64, &u64)| {
            below += **count;
            below * 2 >= self.writes
        };
        self.sizes.iter().find(reaches_half).map_or(0, |(size, _)| *size)
    }

    /// How the file came to what it is; `None` where it was only flushed.
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
    /// The account of a file, if any call was about it.
    pub fn of(&self, file: FileId) -> Option<&Account> {
        self.files.get(&file)
    }

    /// Counts a call. `model` has not taken it yet.
    pub fn see(&mut self, model: &Model, call: &Call) {
        match &call.act {
            Act::Found { file, size_bytes, .. } => {
                let account = Account { size_before: *size_bytes, ..Account::default() };
                self.files.entry(*file).or_insert(account);
            }
            Act::Made { file, .. } => {
                self.files.insert(*file, Account { is_new: true, ..Account::default() });
            }
            // The inode may have been a file's.
            Act::MadeFolder { file, .. } => drop(self.files.remove(file)),
            Act::Empty { file, .. } => self.account(*file).is_emptied = true,
            Act::Write { file, bytes, how, .. } => {
                let account = self.account(*file);
                let count = bytes.end - bytes.start;
                account.writes += 1;
                account.bytes += count;
                account.durable_writes += u64::from(how.is_durable);
                account.direct_writes += u64::from(how.is_direct);
                account.last_write_ns = call.at_ns;
                account.is_changed |= bytes.start < account.size_before;
                *account.sizes.entry(rounded(count)).or_default() += 1;
            }
            Act::Resize { file, to_bytes, .. } => {
                let account = self.account(*file);
                account.is_changed |= *to_bytes < account.size_before;
            }
            Act::Map { file } => self.account(*file).is_changed = true,
            Act::Flush { file, .. } => self.account(*file).flushes += 1,
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

/// A size without the bits that no reader misses, so that there are few sizes.
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
