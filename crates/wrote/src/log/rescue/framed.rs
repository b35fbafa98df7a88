//! Verification of a framed log.

use super::super::chain;
use super::super::format::Format;
use super::super::input::LogFiles;
use super::super::record::Frame;
use super::progress::VerifyProgress;
use super::salvage::{Event, Tail, salvage};
use super::summary::{LogSummary, SegmentSummary};
use crate::Error;
use crate::progress::Watch;
use std::path::Path;

pub(super) fn verify(files: &LogFiles, folder: &Path, watch: Watch) -> Result<LogSummary, Error> {
    let segments = chain::segments(files, folder)?;
    let all_bytes = segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = VerifyProgress::new(all_bytes, watch);
    let mut found = LogSummary::empty(files, Format::Framed);
    let tail = salvage(files, folder, &mut |event| found.take(event, &mut progress))?;
    let Tail { next_sequence, closed, torn_bytes } = tail;
    found.first_sequence =
        found.segments.first().map_or(next_sequence, |segment| segment.first_sequence);
    (found.next_sequence, found.closed, found.torn_bytes) = (next_sequence, closed, torn_bytes);
    progress.finish_file(0)?;
    found.count();
    Ok(found)
}

impl LogSummary {
    fn take(&mut self, event: Event, progress: &mut VerifyProgress) -> Result<(), Error> {
        match event {
            Event::Begin { path, header, file_bytes } => {
                self.segments.push(SegmentSummary {
                    path: path.to_owned(),
                    file_bytes,
                    used_bytes: 0,
                    first_sequence: header.first_sequence,
                    records: 0,
                });
            }
            Event::Frame { sequence, offset, frame } => {
                progress.at(offset)?;
                match frame {
                    Frame::Data(bytes) => {
                        self.record_bytes += bytes.len() as u64;
                        self.segment().records += 1;
                    }
                    Frame::Skipped(_) => self.note_gap(sequence),
                }
            }
            Event::Lost(damage) => self.damage.push(damage.clone()),
            Event::Garbage(path, place) => self.garbage.push((path, place)),
            Event::End { used_bytes } => {
                let segment = self.segment();
                segment.used_bytes = used_bytes;
                progress.finish_file(segment.file_bytes)?;
            }
        }
        Ok(())
    }

    fn segment(&mut self) -> &mut SegmentSummary {
        self.segments.last_mut().expect("a segment was begun")
    }
}
