//! The spare file of a log: the file of a removed segment, to be reused by a later one.
//!
//! A durable record goes into previously written blocks, for which the file system need not record
//! anything. In a new file these blocks are zeros, which doubles the bytes written. In the file of
//! a removed segment they are its records. Nothing in it is valid in a segment of another number.

use super::super::prepare::{self, Preparation};
use super::super::retention::RetainedSegment;
use super::super::state::LogState;
use super::Flusher;
use crate::engine::Found;
use crate::staged::beside;
use crate::{Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// A file under a temporary name.
pub(super) struct Spare {
    path: PathBuf,
    /// The length of its segment.
    bytes: u64,
    /// The removal of its segment is durable.
    pub is_removed_durably: bool,
}

impl Flusher {
    /// Removes the file of a segment, or keeps it as the spare one if there is none or a shorter
    /// one.
    pub(super) fn remove_segment(
        &mut self,
        state: &LogState,
        segment: &RetainedSegment,
    ) -> Result<(), Error> {
        let RetainedSegment { path, bytes, is_written, .. } = segment;
        let is_wanted = *is_written
            && !self.knows_no_sharing
            && !state.lacks_room()
            && *bytes <= state.terms.layout.segment_bytes
            && self.spare.as_ref().is_none_or(|spare| spare.bytes < *bytes)
            && self.is_ordinary(path);
        if is_wanted && let Ok((spare, ())) = beside(path, |to| self.engine.rename(path, to, false))
        {
            self.discard_spare();
            self.spare = Some(Spare { path: spare, bytes: *bytes, is_removed_durably: false });
            return Ok(());
        }
        self.engine.remove(path)
    }

    /// Returns whether the name refers to a file itself, not to a link.
    fn is_ordinary(&mut self, path: &Path) -> bool {
        let located = self.engine.locate(path);
        located.is_ok_and(|located| located.found == Found::File && located.path == path)
    }

    /// Starts to prepare segment `number`, up to `end`, in the spare file. Returns `None` if there
    /// is none, if it is longer, or if a reader or backup still uses it.
    pub(super) fn recycle(
        &mut self,
        state: &LogState,
        place: &Path,
        number: u64,
        end: u64,
    ) -> Result<Option<Preparation>, Error> {
        if self.spare.is_some() && self.engine.locate(place)?.found != Found::Nothing {
            // A failed attempt's file could not be removed.
            return Ok(None);
        }
        let Some(spare) = self.spare.take_if(|spare| spare.bytes <= end) else { return Ok(None) };
        // A power loss must not restore the file's name as a segment.
        if !spare.is_removed_durably {
            self.engine.sync_folder(&state.terms.folder)?;
        }
        let Some((file, len_bytes)) = self.open_unshared(&spare.path) else {
            // A new file serves as well.
            let _ = self.engine.remove(&spare.path);
            return Ok(None);
        };
        let from = len_bytes - len_bytes % state.terms.layout.block_bytes;
        let rest = Preparation::rest_of(file, &spare.path, number, state.terms.prepare, from, end);
        Ok(Some(rest.in_spare_for(place)))
    }

    /// Opens the file, unless it is shared, and returns its length too.
    fn open_unshared(&mut self, path: &Path) -> Option<(FileId, u64)> {
        let options = FileOptions::new().write(true).direct(true);
        let file = prepare::open(&mut self.engine, path, &options).ok()?;
        let is_shared = self.engine.is_shared(file).unwrap_or_else(|error| {
            log::info!("segments are not recycled here: {error}");
            self.knows_no_sharing = true;
            true
        });
        let len_bytes = self.engine.file_len(file).ok().filter(|_| !is_shared);
        if len_bytes.is_none() {
            let _ = self.engine.close_file(file);
        }
        len_bytes.map(|len_bytes| (file, len_bytes))
    }

    /// Removes the spare file, if no segment will use it. Returns whether there was one.
    pub(super) fn discard_spare(&mut self) -> bool {
        let Some(spare) = self.spare.take() else { return false };
        // If it stays, the next open removes it.
        let _ = self.engine.remove(&spare.path);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{folder, used_bytes};
    use crate::log::{LogOptions, Prepare};
    use crate::{Log, Sim};

    fn options() -> LogOptions {
        let options = Log::options().prepare(Prepare::Write).segment_bytes(64 << 10);
        options.buffers(2).buffer_bytes(4096)
    }

    fn append(log: &Log, records: u64) {
        for _ in 0..records {
            log.append(&[b'r'; 3000]).unwrap().wait().unwrap();
        }
    }

    fn hidden(sim: &Sim) -> usize {
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_owned();
        sim.names().iter().filter(|path| name(path).as_encoded_bytes()[0] == b'.').count()
    }

    #[test]
    fn a_trim_of_a_full_disk_makes_room_for_the_records_that_wait() {
        let sim = Sim::new(1);
        let log = options().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        sim.set_capacity(used_bytes(&sim));
        let waiting =
            (0..100).find(|_| log.append(&[b'w'; 3000]).and_then(|it| it.wait()).is_err());
        assert!(waiting.is_some(), "the disk is not full");
        log.trim_before(60).unwrap();
        append(&log, 10);
        log.close().unwrap();
        assert_eq!(hidden(&sim), 0);
    }

    #[test]
    fn a_spare_file_makes_room_for_a_record_on_a_disk_that_is_full() {
        let sim = Sim::new(1);
        let log = options().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        log.trim_before(60).unwrap();
        assert_eq!(hidden(&sim), 1, "one file is kept");
        sim.set_capacity(used_bytes(&sim));
        let took = |_: &u32| log.append(&[b'w'; 3000]).and_then(|it| it.wait()).is_ok();
        // Each takes a block of 4096 bytes.
        assert!((0..100).take_while(took).count() >= 16 && hidden(&sim) == 0);
    }

    #[test]
    fn a_file_that_is_longer_than_segments_are_or_was_not_written_here_is_not_kept() {
        let sim = Sim::new(1);
        let log = options().prepare(Prepare::Allocate).on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        log.close().unwrap();
        let log = options().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 1);
        log.trim_before(60).unwrap();
        assert_eq!((hidden(&sim), log.stats().removed > 0), (0, true), "its blocks are allocated");
        append(&log, 100);
        log.trim_before(150).unwrap();
        assert_eq!(hidden(&sim), 1);
        append(&log, 100);
        assert!(log.stats().recycled > 0);
        log.close().unwrap();
        let small = options().segment_bytes(16 << 10).retain_bytes(32 << 10);
        let log = small.on(&sim.disk()).open(folder()).unwrap();
        append(&log, 100);
        assert!(log.stats().recycled > 5, "{:?}", log.stats());
    }
}
