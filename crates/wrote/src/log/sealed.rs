//! Sealed segments, the files of a log that no writer will change, for programs that store them
//! elsewhere.

use super::batch::BatchHeader;
use super::chain::{self, SegmentHead};
use super::input::{Input, LogFiles};
use super::names::{self, SegmentNames};
use super::record::Frame;
use super::segment::{self, HEADER_BYTES, SegmentHeader};
use super::walk::{Walk, WalkStep};
use crate::engine::{Folder, folder_of, open_within};
use crate::error::Tried;
use crate::{Action, Error};
use rustix::fs::OFlags;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A segment of a log, which is a file, as described by its header and its end.
///
/// A sealed segment, as listed by [`Segment::sealed`], is full and durable, and never changes
/// again, with two exceptions: [`repair`](fn@super::repair) rewrites the file if the disk has
/// damaged it, and a cut ([`Log::truncate_from`](super::Log::truncate_from)) shortens or removes
/// it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// The path of the file; empty if only the beginning of the segment was read.
    pub path: PathBuf,
    /// The log's random number, which is the same in all of its segments.
    pub log_id: u64,
    /// The number of the segment, which is also in its name.
    pub number: u64,
    /// The sequence of the first record.
    pub first_sequence: u64,
    /// The length in bytes of the previous segment up to the end of its last batch; 0 if there was
    /// none.
    pub previous_bytes: u64,
    /// The time when the segment was started, by the writer's clock. It is not later than the write
    /// of the first record.
    pub created_at: SystemTime,
    /// The sequence after the last record; if only the beginning of the segment was read, the
    /// sequence of the first record.
    pub end_sequence: u64,
    /// The length in bytes up to the end of the last batch. The file may be longer, because other
    /// bytes, such as zeros, may follow.
    pub bytes: u64,
    /// The length of the file in bytes; 0 if only the beginning of the segment was read.
    pub file_bytes: u64,
    /// The number of records if all of the segment was read ([`Segment::examine`],
    /// [`verify`](fn@super::verify)), not counting the places that producers or a repair left
    /// empty, which [`summary`](fn@super::summary) does count. 0 in a list of sealed segments.
    pub records: u64,
    /// The number of bytes in these records, if all of the segment was read.
    pub record_bytes: u64,
    /// The folder in which the segment was listed.
    pub(super) folder: Option<Folder>,
}

impl Segment {
    /// The number of bytes at the beginning of a segment that [`Segment::beginning`] requires.
    pub const BEGINNING_BYTES: usize = HEADER_BYTES;

    /// Returns the name of a segment's file, which consists of twenty digits and `.segment`.
    pub fn name(number: u64) -> String {
        format!("{number:020}.{}", segment::EXTENSION)
    }

    /// Returns the number in a name built by [`Segment::name`]; `None` for any other name.
    pub fn number_in(name: &str) -> Option<u64> {
        segment::number(Path::new(name)).filter(|_| !name.contains('/'))
    }

    /// Decodes the beginning of a segment from its first [`Segment::BEGINNING_BYTES`] bytes; `None`
    /// if they are not a valid header.
    pub fn beginning(bytes: &[u8]) -> Option<Segment> {
        SegmentHeader::decode(bytes).ok().map(|header| Segment::of(&header))
    }

    /// Reads a single segment, in any folder, and checks every record up to the first invalid one.
    /// Fails with [`Error::Damaged`] if the file does not start as the segment that its name
    /// states.
    pub fn examine(path: impl AsRef<Path>) -> Result<Segment, Error> {
        let path = path.as_ref();
        Segment::read(&LogFiles::open_in(None, &Folder::named(folder_of(path)))?, path)
    }

    /// Returns the sealed segments of the log in `folder` from number `from` on, in order. Takes no
    /// lock and writes nothing, so a process may be writing the log. All records before
    /// `durable_sequence` must be known to be durable, for example from
    /// [`Log::durable_sequence`](super::Log::durable_sequence); pass 0 if this is unknown.
    ///
    /// A segment is sealed once no crash can change it: all its records are durable, and so is a
    /// record of the next segment. Otherwise, a power loss could remove the next segment, and the
    /// log would continue in this one. The proof is `durable_sequence`, or a durable sequence
    /// stated by a later batch.
    ///
    /// Reads the first bytes of each segment and, in the last one, batch headers until one of them
    /// states the proof. Fails with [`Error::Refused`] if the folder has no log. Fails with
    /// [`Error::Damaged`] if a segment is missing between two others, or a file does not start as a
    /// segment.
    pub fn sealed(
        folder: impl AsRef<Path>,
        from: u64,
        durable_sequence: u64,
    ) -> Result<Vec<Segment>, Error> {
        let folder = Folder::open(folder.as_ref())?;
        let files = LogFiles::open_in(None, &folder)?;
        names::check_log(&files)?;
        names::unless_removed(|| {
            let mut names = names::all(&files)?;
            names.retain(|(number, _)| *number >= from);
            sealed(&files, &names, durable_sequence).map(Some)
        })
    }

    /// Opens the file for reading, in the folder in which the segment was found, even if that
    /// folder has been renamed.
    pub fn open(&self) -> Result<File, Error> {
        let file = open_within(self.folder.as_ref(), &self.path, OFlags::empty());
        file.tried(&self.path, Action::Open)
    }

    /// Reads the whole sealed segment and checks every record. Fails with [`Error::Damaged`] if a
    /// record is missing before the end of the segment.
    pub fn check(&self) -> Result<(), Error> {
        let named = || Folder::named(folder_of(&self.path));
        let folder = self.folder.clone().unwrap_or_else(named);
        let found = Segment::read(&LogFiles::open_in(None, &folder)?, &self.path)?;
        // If recovery cut the segment, there may be zeros between its last record and its end.
        if found.end_sequence == self.end_sequence && found.bytes <= self.bytes {
            return Ok(());
        }
        let sequence = found.end_sequence.min(self.end_sequence);
        Err(segment::lost(&self.path, found.bytes, sequence))
    }

    pub(super) fn of(header: &SegmentHeader) -> Segment {
        Segment {
            path: PathBuf::new(),
            log_id: header.log_id,
            number: header.segment_id,
            first_sequence: header.first_sequence,
            previous_bytes: header.previous_bytes,
            created_at: UNIX_EPOCH + Duration::from_nanos(header.created_at_ns),
            end_sequence: header.first_sequence,
            bytes: 0,
            file_bytes: 0,
            records: 0,
            record_bytes: 0,
            folder: None,
        }
    }

    fn read(files: &LogFiles, path: &Path) -> Result<Segment, Error> {
        let mut input = Input::open(files, path, true, false)?;
        let number = segment::number(path);
        let header = match number {
            Some(number) => chain::read_header(&mut input, number)?,
            None => None,
        };
        let Some(header) = header else {
            return Err(segment::not_begun(path));
        };
        let mut found = Segment { path: path.to_owned(), ..Segment::of(&header) };
        let mut walk = Walk::new(input, &header);
        loop {
            match walk.next()? {
                WalkStep::Frame { frame: Frame::Data(bytes), .. } => {
                    found.records += 1;
                    found.record_bytes += bytes.len() as u64;
                }
                WalkStep::Batch | WalkStep::Frame { .. } => {}
                WalkStep::End => break,
            }
        }
        // If recovery cut the last batch, its header still counts the records after the cut.
        (found.end_sequence, found.bytes) = (walk.sequence, walk.end);
        Ok(found)
    }
}

fn sealed(
    files: &LogFiles,
    names: &SegmentNames,
    mut durable_sequence: u64,
) -> Result<Vec<Segment>, Error> {
    let mut heads = chain::read_headers(files, names)?;
    // The last files may only be prepared for later batches.
    let begun = heads.iter().rposition(|head| head.header.is_some()).map_or(0, |last| last + 1);
    heads.truncate(begun);
    let stated =
        heads.iter().filter_map(|head| head.first_batch).map(|first| first.durable_sequence);
    durable_sequence = stated.max().unwrap_or(0).max(durable_sequence);
    if let [.., last] = &heads[..]
        && let Some(header) = &last.header
        && heads.len() > 1
        && durable_sequence <= header.first_sequence
    {
        durable_sequence = stated_in(files, &last.path, header)?.max(durable_sequence);
    }
    let mut sealed = Vec::new();
    for pair in heads.windows(2) {
        let [head, next] = pair else { unreachable!("a window of two") };
        let (Some(header), Some(next_header)) = (&head.header, &next.header) else {
            let path = if head.header.is_none() { &head.path } else { &next.path };
            return Err(segment::not_begun(path));
        };
        if !next.continues(head.number) {
            return Err(segment::missing(&next.path, head.number + 1));
        }
        let end_sequence = next_header.first_sequence;
        if durable_sequence <= end_sequence {
            break;
        }
        let bytes = used_bytes(files, head, header, next_header)?;
        let (path, folder) = (head.path.clone(), Some(files.folder.clone()));
        let file_bytes = head.file_bytes;
        sealed.push(Segment {
            path,
            end_sequence,
            bytes,
            file_bytes,
            folder,
            ..Segment::of(header)
        });
    }
    Ok(sealed)
}

/// Returns the length in bytes of a segment up to the end of its last batch. The next segment
/// states this length, unless a repair has rewritten this segment in the meantime.
fn used_bytes(
    files: &LogFiles,
    head: &SegmentHead,
    header: &SegmentHeader,
    next: &SegmentHeader,
) -> Result<u64, Error> {
    let is_by_repair = head.first_batch.as_ref().is_none_or(BatchHeader::is_by_repair);
    if !is_by_repair && next.previous_bytes <= head.file_bytes {
        return Ok(next.previous_bytes);
    }
    let mut walk = Walk::new(Input::open(files, &head.path, true, false)?, header);
    while !matches!(walk.next()?, WalkStep::End) {}
    Ok(walk.end)
}

/// Reads batch headers of the last segment up to the first one that states that a record of this
/// segment was durable. Returns the highest durable sequence stated.
fn stated_in(files: &LogFiles, path: &Path, header: &SegmentHeader) -> Result<u64, Error> {
    let mut walk = Walk::new(Input::open(files, path, true, false)?, header);
    let mut durable_sequence = 0;
    loop {
        match walk.next()? {
            WalkStep::Batch => {
                let stated = walk.last.map_or(0, |(batch, _)| batch.durable_sequence);
                durable_sequence = stated.max(durable_sequence);
                if durable_sequence > header.first_sequence {
                    return Ok(durable_sequence);
                }
                walk.skip_batch(u64::MAX)?;
            }
            WalkStep::Frame { .. } => {}
            WalkStep::End => return Ok(durable_sequence),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::batch::BatchHeader;
    use crate::log::testing::{SampleLog, disk, files_of, folder};

    /// Returns the numbers of the sealed segments of a log, given a durable sequence.
    fn sealed_of(built: &SampleLog, durable_sequence: u64) -> Vec<u64> {
        let sim = disk(1, &built.files(folder()));
        let files = files_of(&sim);
        let names = names::all(&files).unwrap();
        let sealed = sealed(&files, &names, durable_sequence).unwrap();
        sealed.iter().map(|segment| segment.number).collect()
    }

    fn segments(count: u64) -> SampleLog {
        (0..count).fold(SampleLog::default(), |built, _| built.segment().batch(0, &[b"a record"]))
    }

    #[test]
    fn a_segment_is_sealed_once_a_record_of_the_next_is_durable() {
        // W1
        let built = segments(2);
        assert_eq!(sealed_of(&built, 0), [0_u64; 0]);
        assert_eq!(sealed_of(&built, 1), [0_u64; 0], "a power loss may take the next segment away");
        assert_eq!(sealed_of(&built, 2), [1]);
        let stated = segments(2).batch(2, &[b"a later record"]);
        assert_eq!(sealed_of(&stated, 0), [1], "a later batch states it");
        let closed = BatchHeader { durable_sequence: 2, closed: true, ..BatchHeader::default() };
        assert_eq!(sealed_of(&segments(2).batch_of(closed, &[]), 0), [1]);
    }

    #[test]
    fn without_a_statement_no_segment_is_sealed_however_many_follow() {
        // W1: a writer continues while earlier segments wait for a slow disk.
        assert_eq!(sealed_of(&segments(70), 0), [0_u64; 0]);
        assert_eq!(sealed_of(&segments(6), 5), [1, 2, 3, 4]);
    }

    #[test]
    fn a_segment_that_lacks_a_record_is_damaged_and_a_gap_between_segments_is() {
        let folder = tempfile::tempdir().unwrap();
        let built = segments(4);
        for (path, bytes) in built.files(folder.path()) {
            std::fs::write(path, bytes).unwrap();
        }
        let list = |from| Segment::sealed(folder.path(), from, 4);
        let listed = list(1).unwrap();
        assert_eq!(listed.len(), 3);
        listed.iter().for_each(|segment| segment.check().unwrap());
        let mut bytes = std::fs::read(&listed[1].path).unwrap();
        bytes[125] ^= 1;
        std::fs::write(&listed[1].path, bytes).unwrap();
        assert!(listed[0].check().is_ok());
        assert!(matches!(listed[1].check(), Err(Error::Damaged { .. })));
        std::fs::remove_file(&listed[1].path).unwrap();
        assert!(matches!(list(1), Err(Error::Damaged { .. })));
        assert_eq!(list(3).unwrap().len(), 1);
    }

    #[test]
    fn names_and_beginnings_of_segments_are_read_as_they_are_written() {
        assert_eq!(Segment::number_in(&Segment::name(7)), Some(7));
        for other in ["7.segment", "a/00000000000000000007.segment", "lock"] {
            assert_eq!(Segment::number_in(other), None, "{other}");
        }
        let files = segments(2).files(folder());
        let start = Segment::beginning(&files[1].1).unwrap();
        assert_eq!((start.number, start.first_sequence), (2, 1));
        assert!(Segment::beginning(&files[1].1[..Segment::BEGINNING_BYTES - 1]).is_none());
    }
}
