//! Per-file counts of writes, flushes and sizes.

use crate::call::{Act, Call, FileId, Point, Stores};
use crate::disk::Disk;
use std::collections::HashMap;
use wrote_result::trace::How;

/// The maximum number of distinct sizes counted per file. Beyond it, similar sizes are counted
/// together.
const SIZES_MAX: usize = 128;
/// The number of leading bits of a size that are kept while a file has few sizes; sizes below 4096
/// remain exact.
const KEPT_BITS: u32 = 12;

#[derive(Debug, Default)]
pub struct Accounts {
    /// Boxed, because a map reserves room for up to twice as many entries.
    files: HashMap<FileId, Box<Account>>,
    /// The number of files that were created or written, and then removed.
    pub removed: u64,
}

#[derive(Debug, Default)]
pub struct Account {
    pub writes: u64,
    pub bytes: u64,
    /// The number of flushes, including failed ones.
    pub flushes: u64,
    /// The number of writes that were durable when they returned.
    pub durable_writes: u64,
    /// The number of writes that bypassed the page cache.
    pub direct_writes: u64,
    pub last_write: Point,
    /// The last call on the file or its name, of any kind.
    pub last_call: Point,
    pub last_flush: Point,
    /// The total duration of flushes and durable writes.
    pub flush_ns: u64,
    /// The time from the first write to the end of the last write or flush.
    pub span_ns: u64,
    /// The total duration of writes and flushes.
    pub busy_ns: u64,
    /// The number of writes that began where the previous write had ended.
    pub sequential_writes: u64,
    /// The end of the last write, and the highest end of any write, in bytes.
    pub last_end: u64,
    pub size_bytes: u64,
    pub first_write_ns: Option<u64>,
    /// The sizes of writes, rounded down, each with its count, in ascending order.
    pub sizes: Vec<(u64, u64)>,
    /// The number of low bits dropped from sizes, to limit the number of distinct sizes.
    pub dropped_bits: u32,
    /// The size before the first write.
    pub size_before: u64,
    pub is_new: bool,
    pub is_emptied: bool,
    /// Whether a write changed existing bytes.
    pub is_changed: bool,
    /// Whether the size changed without a write.
    pub is_resized: bool,
    /// Whether the file was open for writing before the trace began.
    pub was_open: bool,
    /// The last thread that changed the file or its name.
    pub changed_by: u32,
    /// After a rename of the file, whether the rename replaced another file.
    pub renamed: Option<bool>,
}

impl Account {
    /// Returns the number of flushes, counting durable writes as flushes.
    pub fn flushes_in_all(&self) -> u64 {
        self.flushes + self.durable_writes
    }

    fn count_size(&mut self, size_bytes: u64) {
        let size_bytes = rounded(size_bytes, KEPT_BITS - self.dropped_bits);
        match self.sizes.binary_search_by_key(&size_bytes, |(size, _)| *size) {
            Ok(at) => self.sizes[at].1 += 1,
            Err(at) => {
                // Most files have a single size, and there may be many files.
                self.sizes.reserve_exact(usize::from(self.sizes.is_empty()));
                self.sizes.insert(at, (size_bytes, 1));
            }
        }
        while self.sizes.len() > SIZES_MAX {
            self.dropped_bits += 1;
            let kept_bits = KEPT_BITS - self.dropped_bits;
            self.sizes.iter_mut().for_each(|(size, _)| *size = rounded(*size, kept_bits));
            self.sizes.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        }
    }

    fn spend(&mut self, call: &Call) {
        self.busy_ns += call.took_ns;
        if let Some(first_ns) = self.first_write_ns {
            self.span_ns = call.at_ns + call.took_ns - first_ns;
        }
    }

    /// Returns the median write size, or 0 if there were no writes.
    pub fn write_p50_bytes(&self) -> u64 {
        let mut below = 0;
        let reaches_half = |(_, count): &&(u64, u64)| {
            below += *count;
            below * 2 >= self.writes
        };
        self.sizes.iter().find(reaches_half).map_or(0, |(size, _)| *size)
    }

    /// Returns how the file was written; `None` if it was only flushed or linked.
    pub fn how(&self) -> Option<How> {
        match self {
            Account { renamed: Some(true), .. } => Some(How::Replaced),
            Account { renamed: Some(false), .. } => Some(How::Renamed),
            Account { is_new: true, .. } => Some(How::Made),
            Account { is_emptied: true, .. } => Some(How::Rewritten),
            Account { is_changed: true, .. } => Some(How::Changed),
            Account { writes: 1.., .. } | Account { is_resized: true, .. } => Some(How::Appended),
            Account { was_open: true, .. } => Some(How::Changed),
            _ => None,
        }
    }
}

impl Accounts {
    /// Returns the account of a file; `None` if no counted call has referred to it.
    pub fn of(&self, file: FileId) -> Option<&Account> {
        Some(self.files.get(&file)?)
    }

    /// Counts a call. `disk` must not have processed it yet.
    pub fn see(&mut self, disk: &Disk, call: &Call) {
        match &call.act {
            Act::Found { file, size_bytes, .. } => {
                let (size_before, is_new) = (*size_bytes, disk.was_new(*file));
                let account = Account { size_before, is_new, ..Account::default() };
                self.files.entry(*file).or_insert_with(|| Box::new(account));
            }
            Act::Made { file, .. } => {
                self.files.remove(file);
                self.account(*file, call).is_new = true;
            }
            // The inode may have belonged to a removed file.
            Act::MadeFolder { file, .. } => drop(self.files.remove(file)),
            Act::MadeLink { file, .. } => {
                self.files.remove(file);
                self.account(*file, call);
            }
            Act::Link { file, .. } => _ = self.account(*file, call),
            Act::Empty { file, .. } => self.account(*file, call).is_emptied = true,
            Act::Erase { file, bytes, empties } => {
                let account = self.account(*file, call);
                account.is_emptied |= empties;
                account.is_changed |= bytes.start < account.size_before;
            }
            Act::Shift { file, at_byte, .. } => {
                let account = self.account(*file, call);
                account.is_changed |= *at_byte < account.size_before;
            }
            Act::Write { file, bytes, how, .. } => {
                let account = self.account(*file, call);
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
                account.count_size(count);
            }
            Act::Resize { file, to_bytes, .. } => {
                let account = self.account(*file, call);
                account.is_changed |= *to_bytes < account.size_before;
                account.is_resized = true;
            }
            Act::Map { file, stores } => {
                self.account(*file, call).is_changed |= *stores != Stores::Seen;
            }
            Act::Before { file } => self.account(*file, call).was_open = true,
            Act::Flush { file, .. } | Act::FlushRange { file, .. } => {
                let account = self.account(*file, call);
                account.flushes += 1;
                account.last_flush = call.point();
                account.flush_ns += call.took_ns;
                account.spend(call);
            }
            Act::Rename { file, replaced, .. } => {
                let replaces = replaced.is_some_and(|replaced| replaced != *file);
                self.account(*file, call).renamed = Some(replaces);
            }
            Act::Exchange { one: (one, _), other: (other, _) } => {
                self.account(*one, call).renamed = Some(true);
                self.account(*other, call).renamed = Some(true);
            }
            Act::Unlink { file, name } => {
                let is_last = disk.is_last_name(*file, name);
                let is_own = |account: &Account| account.is_new || account.writes > 0;
                self.removed += u64::from(is_last && self.of(*file).is_some_and(is_own));
            }
            _ => {}
        }
    }

    /// Forgets a removed file.
    pub fn forget(&mut self, file: FileId) {
        self.files.remove(&file);
    }

    fn account(&mut self, file: FileId, call: &Call) -> &mut Account {
        let account = self.files.entry(file).or_default();
        account.last_call = call.point();
        // A flush does not change the file.
        if !matches!(call.act, Act::Flush { .. } | Act::FlushRange { .. }) && call.act.is_change() {
            account.changed_by = call.task;
        }
        account
    }
}

/// Rounds a size down to its leading `kept_bits` bits.
fn rounded(size_bytes: u64, kept_bits: u32) -> u64 {
    let shift = (u64::BITS - size_bytes.leading_zeros()).saturating_sub(kept_bits);
    size_bytes >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_sizes(sizes: impl Iterator<Item = u64>) -> Account {
        let mut account = Account::default();
        for size in sizes {
            account.count_size(size);
            account.writes += 1;
        }
        account
    }

    #[test]
    fn few_sizes_are_kept_to_their_third_digit() {
        let account = of_sizes((1..=100).map(|number| number * 9_999));
        assert_eq!(account.sizes.len(), 100);
        assert!(
            account.sizes.iter().zip(1..).all(|((size, _), number)| number * 9_999 - size < 256)
        );
    }

    #[test]
    fn many_sizes_share_one_where_they_are_near_each_other() {
        for step in [1, 997, 1 << 40] {
            let account = of_sizes((1..=10_000).map(|number| number * step));
            assert!(account.sizes.len() <= SIZES_MAX, "{}", account.sizes.len());
            assert_eq!(account.sizes.iter().map(|(_, count)| count).sum::<u64>(), 10_000);
            let (median, real) = (account.write_p50_bytes(), 5000 * step);
            assert!(median <= real && real - median <= real / 8, "{median} {real}");
        }
    }

    #[test]
    fn half_of_the_writes_are_of_the_median_or_less() {
        let mut account = Account::default();
        for (size, count) in [(10, 2), (100, 3), (1000, 1)] {
            account.sizes.push((size, count));
            account.writes += count;
        }
        assert_eq!(account.write_p50_bytes(), 100);
        assert_eq!(Account::default().write_p50_bytes(), 0);
    }
}
