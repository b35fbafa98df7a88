//! Verification and repair of a log of lines.

use super::super::damage::Damage;
use super::super::format::Format;
use super::super::input::{Input, LogFiles};
use super::super::lines::{self, LineCount};
use super::super::{aside, names};
use super::repair::keep_damaged;
use super::summary::{self, LogSummary, SegmentSummary};
use super::verify::VerifyProgress;
use crate::metadata::{Metadata, mode_at_first};
use crate::progress::{Watch, unwatched};
use crate::staged::{StagedFile, complete};
use crate::{Engine, Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// The lines of a whole file, including lines after a damaged one.
#[derive(Default)]
struct Survey {
    /// Lines without a NUL, and their bytes.
    clean: u64,
    clean_bytes: u64,
    lines: u64,
    /// The first line with a NUL, or the bytes after the last line feed: offset, and lines before.
    bad: Option<(u64, u64)>,
}

pub(super) fn verify(files: &LogFiles, folder: &Path, watch: Watch) -> Result<LogSummary, Error> {
    let mut summary = summary::unchecked_lines(files, folder)?;
    let all_bytes = summary.segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = VerifyProgress::new(all_bytes, watch);
    for index in 0..summary.segments.len() {
        let next = summary.segments.get(index + 1).map(|next| next.first_sequence);
        let segment = &mut summary.segments[index];
        let Some(mut input) = open(files, folder, segment)? else { continue };
        if let Some(next) = next {
            let found = survey(&mut input)?;
            let expected = next - segment.first_sequence;
            match found.bad {
                Some((offset_bytes, _)) if (found.clean, found.lines) == (expected, expected) => {
                    let place = offset_bytes..segment.file_bytes;
                    summary.garbage.push((segment.path.clone(), place));
                }
                _ => summary.damage.extend(damage_of(segment, &found, next)),
            }
            segment.records = found.clean;
            summary.record_bytes += found.clean_bytes;
        } else {
            let LineCount { count, end } = lines::read(&mut input)?;
            // The file may have grown since.
            segment.file_bytes = input.len_bytes;
            (segment.records, segment.used_bytes) = (count, end);
            summary.record_bytes += end - count;
            // Only the last file is not flushed, so a crash tears no other.
            summary.torn_bytes = segment.file_bytes - end;
            summary.next_sequence = segment.first_sequence + count;
        }
        progress.finish_file(segment.file_bytes)?;
    }
    summary.count();
    Ok(summary)
}

/// Opens a file; `None` if retention has removed it, so that no line of it counts.
fn open(
    files: &LogFiles,
    folder: &Path,
    segment: &mut SegmentSummary,
) -> Result<Option<Input>, Error> {
    let number = segment.first_sequence;
    match Input::open(files, &segment.path, false, false) {
        Err(error) if names::was_removed(files, folder, Format::Lines, number, &error)? => {
            (segment.records, segment.used_bytes) = (0, 0);
            Ok(None)
        }
        input => input.map(Some),
    }
}

fn survey(input: &mut Input) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let piece_bytes = input.files.engine().pool().buffer_bytes();
    let (mut place, mut line_start, mut is_bad) = (0, 0, false);
    while place < input.len_bytes {
        let data = input.data_from(place)?;
        if data > place {
            // A hole reads as NULs.
            (place, is_bad) = (data, true);
            survey.bad.get_or_insert((line_start, survey.lines));
            continue;
        }
        let piece = input.bytes(place, piece_bytes)?;
        if piece.is_empty() {
            break;
        }
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            place += part.len() as u64;
            is_bad |= part.contains(&0);
            if is_bad {
                survey.bad.get_or_insert((line_start, survey.lines));
            }
            if part.ends_with(b"\n") {
                survey.lines += 1;
                survey.clean += u64::from(!is_bad);
                survey.clean_bytes += if is_bad { 0 } else { place - line_start - 1 };
                (line_start, is_bad) = (place, false);
            }
        }
    }
    if line_start < place {
        survey.bad.get_or_insert((line_start, survey.lines));
    }
    Ok(survey)
}

/// Returns the damage of a file; `next` is the first line of the file after it.
fn damage_of(segment: &SegmentSummary, found: &Survey, next: u64) -> Option<Damage> {
    let expected = next - segment.first_sequence;
    if found.lines > expected {
        return Some(too_many(segment, segment.first_sequence + found.lines, next));
    }
    let (offset_bytes, before) = match found.bad {
        None if found.lines == expected => return None,
        bad => bad.unwrap_or((segment.file_bytes, found.lines)),
    };
    let records = Some(expected - found.clean);
    let sequence = segment.first_sequence + before;
    let because = "lines are lost from here on";
    Some(Damage::new(&segment.path, offset_bytes, sequence, records, because))
}

fn too_many(segment: &SegmentSummary, sequence: u64, next: u64) -> Damage {
    let because = format!("it ends before line {sequence}, the file after it begins with {next}");
    Damage::new(&segment.path, segment.file_bytes, sequence, None, because)
}

pub(super) fn repair(files: &LogFiles, folder: &Path) -> Result<LogSummary, Error> {
    let mut found = verify(files, folder, &mut unwatched)?;
    if let Some(damage) = found.damage.iter().find(|damage| damage.records.is_none()) {
        let because = format!("{}: the log's own lines are unknown", damage.because);
        return Err(Error::Refused { path: damage.path.clone(), because });
    }
    let damaged = found.to_repair();
    for index in 1..found.segments.len() {
        let next = found.segments[index].first_sequence;
        let segment = &mut found.segments[index - 1];
        if damaged.contains(&segment.path) {
            let expected = next - segment.first_sequence;
            found.kept_aside.push(rebuild(files, &segment.path, expected)?);
            segment.records = expected;
        }
    }
    found.count();
    Ok(found)
}

/// Rewrites a file with `expected` lines: the whole ones, and empty ones in place of lost ones.
/// Keeps the old file aside.
fn rebuild(files: &LogFiles, path: &Path, expected: u64) -> Result<PathBuf, Error> {
    let mut old = Input::open(files, path, false, false)?;
    let missing = expected - survey(&mut old)?.lines;
    let metadata = Metadata::of_replaced(path)?;
    let options = FileOptions::new().mode(mode_at_first(metadata.as_ref()));
    let staged = StagedFile::new(&mut files.engine(), path, true, &options)?;
    let rewritten = rewrite(files, &mut old, staged.file, missing)
        .and_then(|()| complete(&mut files.engine(), staged.file, metadata.as_ref(), true));
    match rewritten.and_then(|()| keep_damaged(old)) {
        Ok(kept) => staged.put(&mut files.engine(), true).map(|()| kept),
        Err(error) => {
            staged.abandon(&mut files.engine());
            Err(error)
        }
    }
}

fn rewrite(files: &LogFiles, old: &mut Input, file: FileId, missing: u64) -> Result<(), Error> {
    let mut new =
        LineWriter { file, base: 0, bytes: Vec::new(), line_start: 0, is_bad: false, missing };
    let piece_bytes = files.engine().pool().buffer_bytes();
    let mut place = 0;
    while place < old.len_bytes {
        let data = old.data_from(place)?;
        if data > place {
            new.take(&[0]);
            place = data;
            continue;
        }
        let piece = old.bytes(place, piece_bytes)?;
        place += piece.len() as u64;
        new.take(piece);
        old.pause()?;
        new.write(&mut files.engine())?;
    }
    new.end(&mut files.engine())
}

struct LineWriter {
    file: FileId,
    /// The offset of `bytes` in the file.
    base: u64,
    bytes: Vec<u8>,
    /// The offset of the current line in the file.
    line_start: u64,
    is_bad: bool,
    /// Missing lines. They become empty lines at the first bad one.
    missing: u64,
}

impl LineWriter {
    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            self.is_bad |= part.contains(&0);
            if self.is_bad {
                self.take_back();
            } else {
                self.bytes.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                if std::mem::take(&mut self.is_bad) {
                    let lines = 1 + std::mem::take(&mut self.missing) as usize;
                    self.bytes.resize(self.bytes.len() + lines, b'\n');
                }
                self.line_start = self.base + self.bytes.len() as u64;
            }
        }
    }

    /// Drops the bytes of the current line.
    fn take_back(&mut self) {
        self.bytes.truncate(self.line_start.saturating_sub(self.base) as usize);
        self.base = self.base.min(self.line_start);
    }

    fn write(&mut self, engine: &mut Engine) -> Result<(), Error> {
        aside::write(engine, self.file, self.base, &self.bytes)?;
        self.base += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn end(mut self, engine: &mut Engine) -> Result<(), Error> {
        self.take_back();
        self.bytes.resize(std::mem::take(&mut self.missing) as usize, b'\n');
        self.write(engine)?;
        engine.truncate(self.file, self.base)
    }
}
