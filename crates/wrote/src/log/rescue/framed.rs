//! Verification of a framed log.

use super::super::chain;
use super::super::format::Format;
use super::super::input::LogFiles;
use super::super::record::Frame;
use super::report::{Verified, VerifyProgress};
use super::salvage::{Event, Tail, salvage};
use super::summary::{LogSummary, SegmentSummary};
use crate::{Error, Watch};
use std::path::Path;

pub(super) fn verify(files: &LogFiles, folder: &Path, watch: Watch) -> Result<Verified, Error> {
    let segments = chain::segments(files, folder)?;
    let all_bytes = segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = VerifyProgress::new(all_bytes, watch);
    let mut verified = Verified {
        summary: LogSummary::empty(files, Format::Framed),
        records: 0,
        record_bytes: 0,
        torn_bytes: 0,
        damage: Vec::new(),
        garbage: Vec::new(),
    };
    let tail = salvage(files, folder, &mut |event| verified.take(event, &mut progress))?;
    let Tail { next_sequence, closed, torn_bytes } = tail;
    let summary = &mut verified.summary;
    summary.first_sequence =
        summary.segments.first().map_or(next_sequence, |segment| segment.first_sequence);
    (summary.next_sequence, summary.closed, verified.torn_bytes) =
        (next_sequence, closed, torn_bytes);
    progress.finish_file(0)?;
    Ok(verified)
}

impl Verified {
    fn take(&mut self, event: Event, progress: &mut VerifyProgress) -> Result<(), Error> {
        match event {
            Event::Begin { path, header, file_bytes } => {
                self.summary.segments.push(SegmentSummary {
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
                        self.records += 1;
                        self.record_bytes += bytes.len() as u64;
                        self.segment().records += 1;
                    }
                    Frame::Skipped(_) => self.summary.note_gap(sequence),
                }
            }
            Event::Lost(damage) => self.damage.push(damage.clone()),
            Event::Garbage(garbage) => self.garbage.push(garbage),
            Event::End { used_bytes } => {
                let segment = self.segment();
                segment.used_bytes = used_bytes;
                progress.finish_file(segment.file_bytes)?;
            }
        }
        Ok(())
    }

    fn segment(&mut self) -> &mut SegmentSummary {
        self.summary.segments.last_mut().expect("a segment was begun")
    }
}
