//! Logs before their damage, with everything that their bytes prove.

use super::layout::{BatchHeader, long, number, seed, word};
use super::{Files, files};
use std::path::Path;
use wrote::{Log, SyncPolicy};

/// The length of a written log whose old segments are removed.
const RETAIN_BYTES: u64 = 24 << 10;
/// Why a written log cannot be made.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// A record of a log; `None` for a slot that is passed over.
pub type Record = Option<Vec<u8>>;

/// A log before its damage.
#[derive(Default)]
pub struct Original {
    pub(super) files: Files,
    /// The files with half of the records; empty for a log that was laid out.
    pub(super) earlier: Files,
    /// The appended records by sequence.
    pub(super) records: Vec<Record>,
    /// The files and the records of an unrelated log.
    pub(super) other: (Files, Vec<Record>),
    /// The batches in `files`, in order, and then those in `earlier`.
    pub(super) batches: Vec<Batch>,
    /// The segments in `files`, and then those in `earlier`.
    pub(super) segments: Vec<Segment>,
}

/// The header of a segment.
pub struct Segment {
    pub file: String,
    pub first_sequence: u64,
    /// Its bytes.
    pub header: Vec<u8>,
}

/// The header of a batch.
#[derive(Clone)]
pub struct Batch {
    pub file: String,
    pub offset: usize,
    pub durable_sequence: u64,
    /// Its bytes.
    pub header: Vec<u8>,
}

impl Original {
    /// Finds the segments and the batches in the files.
    pub fn new(files: Files, earlier: Files, records: Vec<Record>) -> Original {
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
            let header = bytes.get(offset..offset + 48);
            let Some(header) = header.filter(|header| BatchHeader::is_valid(header, seed)) else {
                continue;
            };
            let durable_sequence = BatchHeader::get(header).durable_sequence;
            let header = header.into();
            self.batches.push(Batch { file: file.into(), offset, durable_sequence, header });
        }
    }
}

/// Writes logs by the library in `folder`: closed and killed ones, with few and with many records.
/// In some, old segments were removed and their files reused. Each has an unrelated log of its
/// kind.
///
/// # Errors
///
/// If a log cannot be written, or no segment got the file of another where that is wanted.
pub fn written(folder: &Path) -> Result<Vec<Original>, Trouble> {
    let all = u64::MAX;
    let kinds = [(3, true, all), (40, false, all), (40, true, all), (90, false, all)];
    let more = [(90, true, all), (200, false, RETAIN_BYTES), (200, true, RETAIN_BYTES)];
    let mut logs = Vec::new();
    for (records, is_closed, retain_bytes) in kinds.into_iter().chain(more) {
        let mut one = write(folder, 1, records, is_closed, retain_bytes)?;
        let mut other = write(folder, 2, records, is_closed, retain_bytes)?;
        other.other = (one.files.clone(), one.records.clone());
        one.other = (other.files.clone(), other.records.clone());
        logs.extend([one, other]);
    }
    Ok(logs)
}

fn write(
    folder: &Path,
    id: u64,
    records: u64,
    is_closed: bool,
    retain_bytes: u64,
) -> Result<Original, Trouble> {
    let made = tempfile::tempdir_in(folder)?;
    let options = Log::options().sync(SyncPolicy::Always).buffers(3).buffer_bytes(4096);
    let log = options.segment_bytes(12 << 10).retain_bytes(retain_bytes).open(made.path())?;
    let records: Vec<_> = (0..records).map(|sequence| record(id, sequence)).collect();
    let (first, second) = records.split_at(records.len() / 2);
    let append = |half: &[Vec<u8>]| half.iter().try_for_each(|record| log.append(record)?.wait());
    append(first)?;
    let earlier = files(made.path())?;
    append(second)?;
    if is_closed {
        log.close()?;
    }
    let now = files(made.path())?;
    if retain_bytes < u64::MAX && log.stats().recycled == 0 {
        return Err("no segment got the file of another".into());
    }
    Ok(Original::new(now, earlier, records.into_iter().map(Some).collect()))
}

/// Returns the bytes of a log's record.
fn record(id: u64, sequence: u64) -> Vec<u8> {
    let mut bytes = format!("{id}:{sequence}:").into_bytes();
    let len = sequence * 7919 % 1500;
    bytes.extend((0..len).map(|place| b'a' + ((sequence * 3 + place) % 26) as u8));
    bytes
}
