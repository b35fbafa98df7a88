//! What there is of a framed log, and whether all of it is whole.

use super::super::chain::{self, End, Segment};
use super::super::lock::Lock;
use super::super::record::Frame;
use super::super::recovery::damaged;
use super::super::rest::{self, Behind};
use super::super::walk::Step;
use super::super::{Format, names};
use super::progress::Progress;
use super::salvage::{Event, Tail, salvage};
use super::{Damage, LogSummary, SegmentSummary, Verified};
use crate::{Engine, Error};
use std::path::Path;

pub(super) fn summary(engine: &mut Engine, folder: &Path) -> Result<LogSummary, Error> {
    let mut before = None;
    names::unless_removed(|| match look(engine, folder) {
        // A segment may have been begun after its beginning was read, and before what proves that it was.
        Err(Error::Damaged { path, offset, because }) => {
            let is_again = before.replace((path.clone(), offset)) == Some((path.clone(), offset));
            if is_again { Err(Error::Damaged { path, offset, because }) } else { Ok(None) }
        }
        result => result.map(Some),
    })
}

fn look(engine: &mut Engine, folder: &Path) -> Result<LogSummary, Error> {
    let segments = chain::segments(engine, folder)?;
    let mut summary = empty(folder);
    let Some(mut end) = chain::end(engine, folder, &segments, false)? else {
        return Ok(summary);
    };
    check_end(engine, folder, &segments, &mut end)?;
    let End { last, walk, input } = end;
    input.close(engine)?;
    summary.next_sequence = walk.sequence;
    summary.closed = walk.is_closed() && last + 1 == segments.len();
    for (index, segment) in segments[..=last].iter().enumerate() {
        let header = segment.header.expect("its order was checked");
        let next = segments[..=last].get(index + 1).and_then(|next| next.header);
        let end_sequence = next.map_or(walk.sequence, |next| next.first_sequence);
        summary.segments.push(SegmentSummary {
            path: segment.path.clone(),
            file_bytes: segment.file_bytes,
            used_bytes: next.map_or(walk.end, |next| next.previous_bytes),
            first_sequence: header.first_sequence,
            records: end_sequence.saturating_sub(header.first_sequence),
        });
    }
    summary.first_sequence = summary.segments[0].first_sequence;
    Ok(summary)
}

/// The end is no end where what stands behind it proves that the next record was durable; unless that
/// came meanwhile.
fn check_end(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    end: &mut End,
) -> Result<(), Error> {
    let End { last, walk, input } = end;
    let log_id = segments[*last].header.expect("it was walked through").log_id;
    let later = segments[*last + 1..].iter().map(|later| (later.number, later.path.clone()));
    let later: Vec<_> = later.collect();
    let Behind { lost, .. } = rest::behind(engine, input, walk, log_id, &later)?;
    let Some((path, offset)) = lost else { return Ok(()) };
    input.look_again(engine)?;
    if !matches!(walk.clone().next(engine, input)?, Step::End) {
        return input.pause(engine);
    }
    input.pause(engine)?;
    let what = format!("record {} can't be read, and was durable once", walk.sequence);
    Err(damaged(folder, &path, offset, &what))
}

/// A log in which nothing was written yet.
fn empty(folder: &Path) -> LogSummary {
    LogSummary {
        format: Format::Framed,
        segments: Vec::new(),
        first_sequence: 0,
        next_sequence: 0,
        closed: false,
        writer: Lock::holder(folder),
    }
}

pub(super) fn verify(
    engine: &mut Engine,
    folder: &Path,
    watch: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Verified, Error> {
    let segments = chain::segments(engine, folder)?;
    let all_bytes = segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = Progress::new(all_bytes, watch);
    let mut verified = Verified {
        summary: empty(folder),
        records: 0,
        record_bytes: 0,
        torn_bytes: 0,
        damage: Vec::new(),
    };
    let tail = salvage(engine, folder, &mut |event| verified.take(event, &mut progress))?;
    let Tail { next_sequence, closed, torn_bytes } = tail;
    let summary = &mut verified.summary;
    summary.first_sequence =
        summary.segments.first().map_or(next_sequence, |segment| segment.first_sequence);
    (summary.next_sequence, summary.closed, verified.torn_bytes) =
        (next_sequence, closed, torn_bytes);
    progress.finished(0)?;
    Ok(verified)
}

impl Verified {
    fn take(&mut self, event: Event, progress: &mut Progress) -> Result<(), Error> {
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
            Event::Frame { offset, frame, .. } => {
                progress.at(offset)?;
                if let Frame::Data(bytes) = frame {
                    self.records += 1;
                    self.record_bytes += bytes.len() as u64;
                    self.segment().records += 1;
                }
            }
            Event::Lost(damage) => self.damage.push(Damage::clone(damage)),
            Event::End { used_bytes } => {
                self.segment().used_bytes = used_bytes;
                let file_bytes = self.segment().file_bytes;
                progress.finished(file_bytes)?;
            }
        }
        Ok(())
    }

    fn segment(&mut self) -> &mut SegmentSummary {
        self.summary.segments.last_mut().expect("a segment was begun")
    }
}
