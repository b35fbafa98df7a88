//! Logs before they are damaged, with all facts that their bytes prove, and the numbers and
//! checksums in these bytes.

use super::{Files, files, put};
use lab::log_reader::{long, word};
use std::path::Path;
use wrote::{Log, SyncPolicy};

/// The reason why a log cannot be written.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

const BATCH_HEADER: usize = 48;

/// A log before it is damaged.
#[derive(Default)]
pub struct Original {
    pub(super) files: Files,
    /// The files when half of the records had been written.
    pub(super) earlier: Files,
    /// The appended records, in order of their sequences.
    pub(super) records: Vec<Vec<u8>>,
    /// The files and the records of an unrelated log.
    pub(super) other: (Files, Vec<Vec<u8>>),
    /// The batches in `files`, in order, followed by those in `earlier`.
    pub(super) batches: Vec<Batch>,
    /// The segments in `files`, followed by those in `earlier`.
    pub(super) segments: Vec<Segment>,
}

/// The header of a segment.
pub struct Segment {
    pub file: String,
    pub first_sequence: u64,
    /// The bytes of the header.
    pub header: Vec<u8>,
}

/// The header of a batch.
#[derive(Clone)]
pub struct Batch {
    pub file: String,
    pub offset: usize,
    pub durable_sequence: u64,
    /// The bytes of the header.
    pub header: Vec<u8>,
}

impl Original {
    /// Finds the segments and the batches in these files.
    pub fn new(files: Files, earlier: Files, records: Vec<Vec<u8>>) -> Original {
        let mut original = Original { records, ..Original::default() };
        for (file, bytes) in files.iter().chain(&earlier) {
            original.find(file, bytes);
        }
        Original { files, earlier, ..original }
    }

    fn find(&mut self, file: &str, bytes: &[u8]) {
        let Some(header) = bytes.get(..64).filter(|header| header.starts_with(b"wrotelog")) else {
            return;
        };
        let (seed, block) = (seed(long(header, 16), number(file)), word(header, 52) as usize);
        let first_sequence = long(header, 32);
        self.segments.push(Segment { file: file.into(), first_sequence, header: header.into() });
        for offset in [64].into_iter().chain((block..bytes.len()).step_by(block)) {
            let header = bytes.get(offset..offset + BATCH_HEADER);
            let is_valid = |header: &&[u8]| {
                header.starts_with(b"WB1\xf0") && word(header, 4) == batch_checksum(header, seed)
            };
            let Some(header) = header.filter(is_valid) else { continue };
            let (durable_sequence, header) = (long(header, 24), header.into());
            self.batches.push(Batch { file: file.into(), offset, durable_sequence, header });
        }
    }
}

/// The method of writing a log.
#[derive(Clone, Copy)]
struct Way {
    records: u64,
    /// The number of records that are appended together as a group.
    group: usize,
    /// Whether none of the first half of the records is waited for, so that batches are long.
    is_hasty: bool,
    /// Whether the last record of the first half is torn, and the log then reopened and continued.
    is_torn: bool,
    is_closed: bool,
    /// The size of the log above which old segments are removed.
    retain_bytes: u64,
}

const WAY: Way = Way {
    records: 40,
    group: 1,
    is_hasty: false,
    is_torn: false,
    is_closed: false,
    retain_bytes: u64::MAX,
};
/// A log whose old segments are removed and whose files are reused.
const RECYCLED: Way = Way { records: 200, retain_bytes: 24 << 10, ..WAY };

/// Writes logs with the library in `folder`. They are closed or killed, and have few or many
/// records, in batches of one, of many or of a group. Some have had a torn end that was cut off, or
/// use recycled files. Each has an unrelated log of the same kind.
///
/// # Errors
///
/// If a log cannot be written, or a log that should have recycled files has none.
pub fn written(folder: &Path) -> Result<Vec<Original>, Trouble> {
    let ways = [
        WAY,
        Way { records: 90, ..WAY },
        Way { group: 2, ..WAY },
        Way { is_hasty: true, ..WAY },
        Way { is_torn: true, ..WAY },
        Way { is_torn: true, is_hasty: true, group: 2, ..WAY },
        RECYCLED,
        Way { is_hasty: true, group: 2, ..RECYCLED },
    ];
    let closed = |way| Way { is_closed: true, ..way };
    let few = Way { records: 3, is_closed: true, ..WAY };
    let mut logs = Vec::new();
    for way in ways.into_iter().chain(ways.map(closed)).chain([few]) {
        let mut one = write(folder, 1, way)?;
        let mut other = write(folder, 2, way)?;
        other.other = (one.files.clone(), one.records.clone());
        one.other = (other.files.clone(), other.records.clone());
        logs.extend([one, other]);
    }
    Ok(logs)
}

fn write(folder: &Path, id: u64, way: Way) -> Result<Original, Trouble> {
    let made = tempfile::tempdir_in(folder)?;
    let folder = made.path();
    let options = Log::options().sync(SyncPolicy::Always).buffers(3).buffer_bytes(4096);
    let options = options.segment_bytes(12 << 10).retain_bytes(way.retain_bytes);
    let records: Vec<_> = (0..way.records).map(|sequence| record(id, sequence)).collect();
    let append = |log: &Log, some: &[Vec<u8>], waits: bool| {
        some.chunks(way.group).try_for_each(|group| match group {
            [one] if waits => log.append(one)?.wait(),
            [one] => log.append(one).map(drop),
            group if waits => log.append_all(group)?.1.wait(),
            group => log.append_all(group).map(drop),
        })
    };
    let mut log = options.clone().open(folder)?;
    let half = records.len() / 2;
    append(&log, &records[..half], !way.is_hasty)?;
    log.sync()?;
    let earlier = files(folder)?;
    if way.is_torn {
        drop(log);
        let mut torn = earlier.clone();
        tear(&mut torn);
        put(folder, &torn)?;
        log = options.open(folder)?;
        if log.stats().torn_bytes == 0 {
            return Err("no record is torn".into());
        }
    }
    let next = log.stats().next_sequence as usize;
    append(&log, &records[next..], true)?;
    if way.is_closed {
        log.close()?;
    }
    let mut now = files(folder)?;
    // The torn bytes are kept in other files.
    now.retain(|name, _| name.ends_with(".segment"));
    if way.retain_bytes < u64::MAX && log.stats().recycled == 0 {
        return Err("no segment got the file of another".into());
    }
    Ok(Original::new(now, earlier, records))
}

/// Alters the first record in the last batch, as if it and the bytes after it had not been written.
fn tear(files: &mut Files) {
    let found = Original::new(files.clone(), Files::new(), Vec::new());
    let last = found.batches.last().expect("it has batches");
    let bytes = files.get_mut(&last.file).expect("it was found there");
    bytes[last.offset + BATCH_HEADER + 8] ^= 1;
}

/// Returns the bytes of a record in a log.
fn record(id: u64, sequence: u64) -> Vec<u8> {
    let mut bytes = format!("{id}:{sequence}:").into_bytes();
    let len = sequence * 7919 % 1500;
    bytes.extend((0..len).map(|place| b'a' + ((sequence * 3 + place) % 26) as u8));
    bytes
}

/// Returns the name of a segment.
pub fn name(number: u64) -> String {
    format!("{number:020}.segment")
}

/// Returns the number in the name of a segment.
pub fn number(name: &str) -> u64 {
    name.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Returns the seed of the checksums in a segment.
pub fn seed(log_id: u64, segment_id: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&log_id.to_le_bytes()), &segment_id.to_le_bytes())
}

fn batch_checksum(header: &[u8], seed: u32) -> u32 {
    crc32c::crc32c_append(seed, &header[8..BATCH_HEADER])
}

/// Recomputes the checksum of a batch's header.
pub fn seal_batch(header: &mut [u8], seed: u32) {
    let checksum = batch_checksum(header, seed);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Recomputes the checksum of a segment's header.
pub fn seal_segment(header: &mut [u8]) {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..64]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
}
