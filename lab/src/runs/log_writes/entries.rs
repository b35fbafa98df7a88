//! The log of a `log-writes` device: all writes, in the order in which they became stable.
//!
//! The kernel's `drivers/md/dm-log-writes.c` defines the format: a first sector that describes the
//! log, followed by entries of one sector each with their data. All numbers are little-endian.

use crate::tools::failure::{Failure, Tried};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
/// The size of `struct log_write_entry`: sector, number of sectors, flags, and length of a mark's
/// text.
const ENTRY_BYTES: usize = 32;

pub const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
pub const MARK: u64 = 8;
/// The sector size of the logs that this program creates.
#[cfg(any(test, feature = "verbs"))]
pub const SECTOR_BYTES: usize = 512;

/// Returns the first sector of a log with this number of entries.
#[cfg(any(test, feature = "verbs"))]
pub fn head(entries: u64) -> Vec<u8> {
    sector(&[MAGIC, VERSION, entries, SECTOR_BYTES as u64], b"")
}

/// Returns an entry without its data, given a sector, the number of sectors, flags, and a mark's
/// text.
#[cfg(any(test, feature = "verbs"))]
pub fn entry(at: u64, sectors: u64, flags: u64, text: &[u8]) -> Vec<u8> {
    sector(&[at, sectors, flags, text.len() as u64], text)
}

#[cfg(any(test, feature = "verbs"))]
fn sector(numbers: &[u64], text: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(text);
    bytes.resize(SECTOR_BYTES, 0);
    bytes
}

/// A change to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    /// The content of a range is lost.
    Discard {
        offset: u64,
        len: u64,
    },
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change that a later flush has made stable.
    Volatile(Change),
    /// A completed flush, or a write with FUA: that write and everything before it are stable.
    Stable(Option<Change>),
    /// A mark, with its text.
    Mark(String),
}

/// A log that is read from the beginning.
pub struct Entries<R> {
    log: R,
    sector_bytes: u64,
    left: u64,
}

impl Entries<BufReader<File>> {
    /// Opens the image of a log device.
    pub fn open(image: &Path) -> Result<Self, Failure> {
        let log = File::open(image).tried(image.display())?;
        Entries::read(BufReader::with_capacity(1 << 20, log))
    }
}

impl<R: Read> Entries<R> {
    /// Opens a log by reading its first sector.
    pub fn read(mut log: R) -> Result<Self, Failure> {
        let mut head = [0; 32];
        log.read_exact(&mut head).tried("the log's first sector")?;
        let ([magic, version, left], sector_bytes) = (numbers(&head), number(&head[24..28]));
        let is_known = (magic, version) == (MAGIC, VERSION);
        if !is_known || sector_bytes < 512 || !sector_bytes.is_power_of_two() {
            return Err(Failure::Failed(format!("not a log of writes: {head:x?}")));
        }
        let mut entries = Entries { log, sector_bytes, left };
        entries.bytes(sector_bytes - head.len() as u64)?;
        Ok(entries)
    }

    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; usize::try_from(count).tried("an entry")?];
        self.log.read_exact(&mut bytes).tried("an entry of the log")?;
        Ok(bytes)
    }

    fn entry(&mut self) -> Result<Entry, Failure> {
        let head = self.bytes(self.sector_bytes)?;
        let [sector, sectors, flags, text_bytes] = numbers(&head);
        if flags & MARK != 0 {
            let text = usize::try_from(text_bytes).ok();
            let text =
                text.and_then(|bytes| head.get(ENTRY_BYTES..ENTRY_BYTES.checked_add(bytes)?));
            let text = text.ok_or_else(|| Failure::Failed("a mark is too long".to_owned()))?;
            // The text may end with a NUL.
            let text = String::from_utf8_lossy(text);
            return Ok(Entry::Mark(text.trim_end_matches('\0').to_owned()));
        }
        let scaled = |sectors: u64| sectors.checked_mul(self.sector_bytes);
        let place = scaled(sector).zip(scaled(sectors));
        let (offset, len) =
            place.ok_or_else(|| Failure::Failed("an impossible entry".to_owned()))?;
        let change = match (flags & DISCARD != 0, len) {
            (_, 0) => None,
            (true, _) => Some(Change::Discard { offset, len }),
            (false, _) => Some(Change::Write { offset, bytes: self.bytes(len)? }),
        };
        Ok(match change {
            Some(change) if flags & (FLUSH | FUA) == 0 => Entry::Volatile(change),
            change => Entry::Stable(change),
        })
    }
}

impl<R: Read> Iterator for Entries<R> {
    type Item = Result<Entry, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.entry())
    }
}

/// Reads consecutive eight-byte numbers.
fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    std::array::from_fn(|index| number(&bytes[8 * index..8 * index + 8]))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns the bytes of a log with sectors of 512 bytes.
    pub fn log(entries: &[(u64, u64, u64, &[u8])]) -> Vec<u8> {
        let mut log = head(entries.len() as u64);
        for &(at, sectors, flags, data) in entries {
            let is_mark = flags & MARK != 0;
            let (text, data) = if is_mark { (data, &b""[..]) } else { (&b""[..], data) };
            log.extend(entry(at, sectors, flags, text));
            log.extend(data);
        }
        log
    }

    #[test]
    fn each_kind_of_entry_is_read_as_the_kernel_writes_it() {
        let (one, two) = ([1; 512], [2; 1024]);
        let bytes = log(&[
            (3, 2, 0, &two),
            (0, 0, FLUSH, b""),
            (0, 0, MARK, b"save,saved,1"),
            (9, 1, FUA | 16, &one),
            (4, 8, DISCARD, b""),
        ]);
        let read: Result<Vec<_>, _> = Entries::read(&bytes[..]).expect("a log").collect();
        let expected = [
            Entry::Volatile(Change::Write { offset: 1536, bytes: two.into() }),
            Entry::Stable(None),
            Entry::Mark("save,saved,1".into()),
            Entry::Stable(Some(Change::Write { offset: 4608, bytes: one.into() })),
            Entry::Volatile(Change::Discard { offset: 2048, len: 4096 }),
        ];
        assert_eq!(read.expect("entries"), expected);
    }

    #[test]
    fn a_log_that_ends_early_and_what_is_no_log_are_failures() {
        let mut bytes = log(&[(0, 1, 0, &[7; 512])]);
        bytes.pop();
        assert!(Entries::read(&bytes[..]).expect("a log").any(|entry| entry.is_err()));
        assert!(Entries::read(&[0; 512][..]).is_err());
        assert!(Entries::read(&b""[..]).is_err());
    }
}
