//! Reads of a job with `verify`, which are checked against the headers that an earlier job wrote
//! (see `header`).

use super::header::{HEADER_BYTES, Header, NO_HEADER};
use crate::written::first_unwritten;
use std::fs::File;
use std::io;
use std::iter;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The unit of the offsets of blocks: the smallest block of a disk.
const SECTOR_BYTES: u64 = 512;
/// The maximum distance that is searched backwards from a read for the start of a block.
const BACK_BYTES_MAX: u64 = 4 << 20;

/// The first bytes of a read that differ from what a job wrote, and how they differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    pub offset: u64,
    pub what: String,
}

/// Checks the blocks that overlap a read starting at `offset`, using the lengths in their headers.
/// Returns the number of bytes of the read that were checked.
///
/// Unwritten bytes contain no block. A block that was partly overwritten later is skipped.
pub fn check(path: &Path, offset: u64, read: &[u8]) -> Result<u64, Damage> {
    let end = offset + read.len() as u64;
    let (mut from, mut checked) = (offset, 0);
    while from < end {
        let block = &read[(from - offset) as usize..];
        // Most reads consist of one or more whole blocks.
        let whole = Header::of(block).and_then(|header| block.get(..header.len as usize));
        let found = match whole {
            Some(whole) if Header::found(whole, from).is_ok() => {
                Found { end: from + whole.len() as u64, is_checked: true }
            }
            _ => {
                let damage = |what: String| Damage { offset: from, what };
                let file = File::open(path).map_err(|error| damage(error.to_string()))?;
                search(&file, from).map_err(|error| damage(error.to_string()))?.map_err(damage)?
            }
        };
        let found_end = found.end.min(end);
        if found.is_checked {
            checked += found_end - from;
        }
        from = found_end;
    }
    Ok(checked)
}

/// A range of bytes up to `end`, which belongs to an intact block or to no block.
struct Found {
    end: u64,
    is_checked: bool,
}

/// Finds, in the file itself, the block that contains the byte at `from`.
fn search(file: &File, from: u64) -> io::Result<Result<Found, String>> {
    if let Some(header) = header_at(file, from)? {
        return whole_or_not(file, from, from, header);
    }
    if file.metadata()?.is_file()
        && let Some(unwritten) = first_unwritten(file, from..from + SECTOR_BYTES)?
        && unwritten.start == from
    {
        return Ok(Ok(Found { end: unwritten.end, is_checked: false }));
    }
    let mut start = from - from % SECTOR_BYTES;
    while start > from.saturating_sub(BACK_BYTES_MAX) {
        start -= SECTOR_BYTES;
        if let Some(header) = header_at(file, start)?
            && start + u64::from(header.len) > from
        {
            return whole_or_not(file, start, from, header);
        }
    }
    Ok(Err(NO_HEADER.into()))
}

/// Checks the block at `start`, which contains the byte at `from`. A damaged block may be one that
/// was partly overwritten.
fn whole_or_not(
    file: &File,
    start: u64,
    from: u64,
    header: Header,
) -> io::Result<Result<Found, String>> {
    let mut block = vec![0; header.len as usize];
    let end = start + u64::from(header.len);
    match file.read_exact_at(&mut block, start) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let Err(what) = Header::found(&block, start) else {
        return Ok(Ok(Found { end, is_checked: true }));
    };
    let sectors = (start + SECTOR_BYTES..end).step_by(SECTOR_BYTES as usize);
    let mut others = sectors.filter_map(|place| {
        Header::of(&block[(place - start) as usize..]).map(|header| (place, header))
    });
    // A later block is torn, rather than overwritten, if it contains an earlier block of the same
    // job.
    let is_written_over = |&(place, ref other): &(u64, Header)| {
        let is_earlier = other.seed == header.seed && other.sequence < header.sequence;
        other.offset == place && !is_earlier
    };
    let Some(other) = others.next().filter(is_written_over) else {
        return Ok(Err(what));
    };
    let mut behind = iter::once(other).chain(others).map(|(place, _)| place);
    let end = behind.find(|&place| place > from).unwrap_or(end);
    Ok(Ok(Found { end, is_checked: false }))
}

/// Returns the header at `start`, if there is one that belongs to this offset.
fn header_at(file: &File, start: u64) -> io::Result<Option<Header>> {
    let mut bytes = [0; HEADER_BYTES];
    match file.read_exact_at(&mut bytes, start) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    Ok(Header::of(&bytes)
        .filter(|header| header.offset == start && header.len as usize >= HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 4096;

    /// Writes a block in the form in which a job writes it.
    fn write(file: &File, seed: u64, sequence: u64, offset: u64, len: u64) {
        let mut block = vec![sequence as u8 + 1; len as usize];
        let header = Header { offset, seed, sequence, len: len as u32 };
        header.stamp_parts(None, &mut block);
        file.write_all_at(&block, offset).unwrap();
    }

    fn checked(file: &tempfile::NamedTempFile, offset: u64, len: u64) -> Result<u64, Damage> {
        let mut read = vec![0; len as usize];
        file.as_file().read_exact_at(&mut read, offset).unwrap();
        check(file.path(), offset, &read)
    }

    #[test]
    fn blocks_are_checked_by_their_own_lengths_wherever_a_read_begins() {
        let file = fixtures::file();
        write(file.as_file(), 1, 0, 0, 2 * UNIT);
        write(file.as_file(), 1, 1, 2 * UNIT, UNIT);
        for (offset, len) in [(0, 3), (0, 1), (1, 1), (1, 2), (2, 1)] {
            let (offset, len) = (offset * UNIT, len * UNIT);
            assert_eq!(checked(&file, offset, len), Ok(len), "{offset} {len}");
        }
        file.as_file().write_all_at(b"x", UNIT + 9).unwrap();
        for (offset, len, place) in [(0, 3, 0), (0, 1, 0), (1, 2, 1)] {
            let damage = checked(&file, offset * UNIT, len * UNIT).unwrap_err();
            assert_eq!(damage.offset, place * UNIT);
            assert!(damage.what.starts_with("CRC32C"), "{damage:?}");
        }
        assert_eq!(checked(&file, 2 * UNIT, UNIT), Ok(UNIT));
    }

    #[test]
    fn unwritten_blocks_are_no_damage_and_zeros_in_written_ones_are() {
        let file = fixtures::file();
        file.as_file().set_len(64 * UNIT).unwrap();
        write(file.as_file(), 1, 0, 0, UNIT);
        file.as_file().write_all_at(&[0; UNIT as usize], 32 * UNIT).unwrap();
        if first_unwritten(file.as_file(), 0..64 * UNIT).unwrap().is_none() {
            return fixtures::skip_here!("the file system does not tell holes");
        }
        assert_eq!(checked(&file, 0, 8 * UNIT), Ok(UNIT));
        let damage = checked(&file, 32 * UNIT, UNIT).unwrap_err();
        assert_eq!((damage.offset, damage.what.as_str()), (32 * UNIT, NO_HEADER));
    }

    #[test]
    fn a_block_that_was_written_over_in_part_is_left_out_and_a_torn_one_is_found() {
        let file = fixtures::file();
        write(file.as_file(), 1, 7, 0, 4 * UNIT);
        // A block of another job, and a later block of the same job.
        for (seed, sequence) in [(2, 0), (1, 8)] {
            write(file.as_file(), seed, sequence, 2 * UNIT, 2 * UNIT);
            assert_eq!(checked(&file, 0, 4 * UNIT), Ok(2 * UNIT));
        }
        write(file.as_file(), 1, 6, 2 * UNIT, 2 * UNIT);
        assert!(checked(&file, 0, 4 * UNIT).unwrap_err().what.starts_with("CRC32C"));
    }

    #[test]
    fn a_read_behind_a_block_that_a_smaller_one_overwrote_ends() {
        let file = fixtures::file();
        write(file.as_file(), 1, 0, 0, 8 * UNIT);
        write(file.as_file(), 1, 1, 2 * UNIT, UNIT);
        assert_eq!(checked(&file, 4 * UNIT, 4 * UNIT), Ok(0));
        write(file.as_file(), 1, 2, 6 * UNIT, UNIT);
        assert_eq!(checked(&file, 4 * UNIT, 4 * UNIT), Ok(UNIT));
        assert_eq!(checked(&file, 0, 8 * UNIT), Ok(2 * UNIT));
    }
}
