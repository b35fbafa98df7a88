//! What there is of a log of lines, and what of it can be saved.

use super::super::input::Input;
use super::super::lock::Lock;
use super::super::recovery::aside;
use super::super::recovery::lines::{Lines, UNSURE_FILES, read};
use super::super::{Format, names};
use super::progress::Progress;
use super::{Damage, LogSummary, Repaired, SegmentSummary, Verified};
use crate::engine::folder_of;
use crate::staged::Staged;
use crate::{Engine, Error, FileOptions, Op};
use std::path::{Path, PathBuf};

pub(super) fn summary(engine: &mut Engine, folder: &Path) -> Result<LogSummary, Error> {
    names::unless_removed(|| look(engine, folder).map(Some))
}

fn look(engine: &mut Engine, folder: &Path) -> Result<LogSummary, Error> {
    let names = names::all(engine, folder, Format::Lines)?;
    let mut summary = LogSummary {
        format: Format::Lines,
        segments: Vec::new(),
        first_sequence: names.first().map_or(0, |(number, _)| *number),
        next_sequence: 0,
        closed: false,
        writer: Lock::holder(folder),
    };
    for (index, (number, path)) in names.iter().enumerate() {
        let mut input = Input::open(engine, path, false, false)?;
        let (records, used_bytes) = match names.get(index + 1) {
            Some((next, _)) => (next - number, input.len_bytes),
            None => {
                let lines = read(engine, &mut input)?;
                (lines.count, lines.end)
            }
        };
        let file_bytes = input.len_bytes;
        input.close(engine)?;
        summary.next_sequence = number + records;
        let (path, first_sequence) = (path.clone(), *number);
        let segment = SegmentSummary { path, file_bytes, used_bytes, first_sequence, records };
        summary.segments.push(segment);
    }
    Ok(summary)
}

/// What there is in a file, with the lines behind a damaged one.
#[derive(Default)]
struct Survey {
    /// Lines without a NUL in them, and their bytes.
    clean: u64,
    clean_bytes: u64,
    /// All lines.
    lines: u64,
    /// The first byte of the first line with a NUL in it, or of what no line feed ends; how many lines are
    /// before it.
    bad: Option<(u64, u64)>,
}

pub(super) fn verify(
    engine: &mut Engine,
    folder: &Path,
    watch: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Verified, Error> {
    let mut summary = summary(engine, folder)?;
    let all_bytes = summary.segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = Progress::new(all_bytes, watch);
    let (mut records, mut record_bytes) = (0, 0);
    let mut damage = Vec::new();
    // The last ones may end as a crash left them.
    let sure = summary.segments.len().saturating_sub(UNSURE_FILES);
    for index in 0..sure {
        let next = summary.segments[index + 1].first_sequence;
        let segment = &mut summary.segments[index];
        let Some(mut input) = open(engine, folder, segment)? else { continue };
        let found = survey(engine, &mut input)?;
        input.close(engine)?;
        progress.finished(segment.file_bytes)?;
        damage.extend(damage_of(segment, &found, next));
        segment.records = found.clean;
        records += found.clean;
        record_bytes += found.clean_bytes;
    }
    let mut torn_bytes = 0;
    let mut is_torn = false;
    for index in sure..summary.segments.len() {
        let next = summary.segments.get(index + 1).map(|next| next.first_sequence);
        let segment = &mut summary.segments[index];
        if is_torn {
            torn_bytes += segment.file_bytes;
            continue;
        }
        let Some(mut input) = open(engine, folder, segment)? else { continue };
        let Lines { count, end } = read(engine, &mut input)?;
        // It may have grown since.
        segment.file_bytes = input.len_bytes;
        input.close(engine)?;
        progress.finished(segment.file_bytes)?;
        records += count;
        record_bytes += end - count;
        torn_bytes += segment.file_bytes - end;
        (segment.records, segment.used_bytes) = (count, end);
        let sequence = segment.first_sequence + count;
        summary.next_sequence = sequence;
        match next {
            Some(next) if next < sequence => damage.push(too_many(segment, sequence, next)),
            next => is_torn = next.is_some_and(|next| next > sequence),
        }
    }
    Ok(Verified { summary, records, record_bytes, torn_bytes, damage })
}

/// Opens a file; `None` where retention has removed it meanwhile: then nothing of it counts.
fn open(
    engine: &mut Engine,
    folder: &Path,
    segment: &mut SegmentSummary,
) -> Result<Option<Input>, Error> {
    let number = segment.first_sequence;
    match Input::open(engine, &segment.path, false, false) {
        Err(error) if names::was_removed(engine, folder, Format::Lines, number, &error)? => {
            (segment.records, segment.used_bytes) = (0, 0);
            Ok(None)
        }
        input => input.map(Some),
    }
}

fn survey(engine: &mut Engine, input: &mut Input) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let piece_bytes = engine.pool().buffer_bytes();
    let (mut place, mut line_start, mut is_bad) = (0, 0, false);
    while place < input.len_bytes {
        let piece = input.bytes(engine, place, piece_bytes)?;
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

/// What is wrong with a file before the one that begins with the line `next`.
fn damage_of(segment: &SegmentSummary, found: &Survey, next: u64) -> Option<Damage> {
    let expected = next - segment.first_sequence;
    if found.lines > expected {
        return Some(too_many(segment, segment.first_sequence + found.lines, next));
    }
    let end = (segment.file_bytes, found.lines);
    let (offset_bytes, before) = match found.bad {
        None if found.lines == expected => return None,
        bad => bad.unwrap_or(end),
    };
    let records = expected - found.clean;
    let because =
        if records == 0 { "what stands here is no line" } else { "lines are lost from here on" };
    Some(Damage {
        path: segment.path.clone(),
        offset_bytes,
        sequence: segment.first_sequence + before,
        records: Some(records),
        because: because.to_owned(),
    })
}

fn too_many(segment: &SegmentSummary, sequence: u64, next: u64) -> Damage {
    Damage {
        path: segment.path.clone(),
        offset_bytes: segment.file_bytes,
        sequence,
        records: None,
        because: format!("it ends before line {sequence}, the file after it begins with {next}"),
    }
}

pub(super) fn repair(engine: &mut Engine, folder: &Path) -> Result<Repaired, Error> {
    let Verified { damage, summary, records, .. } = verify(engine, folder, &mut |_, _| true)?;
    if let Some(damage) = damage.iter().find(|damage| damage.records.is_none()) {
        let because = format!("{}: which lines are the log's can't be told", damage.because);
        return Err(Error::Refused { path: damage.path.clone(), because });
    }
    let mut repaired = Repaired { damage, kept_aside: Vec::new(), records };
    for pair in summary.segments.windows(2) {
        let expected = pair[1].first_sequence - pair[0].first_sequence;
        if repaired.damage.iter().any(|damage| damage.path == pair[0].path) {
            repaired.kept_aside.push(rebuild(engine, &pair[0].path, expected)?);
            repaired.records += expected - pair[0].records;
        }
    }
    Ok(repaired)
}

/// Writes a file anew, with so many lines: those that are whole, and empty ones for those that are lost.
fn rebuild(engine: &mut Engine, path: &Path, expected: u64) -> Result<PathBuf, Error> {
    let mut old = Input::open(engine, path, false, false)?;
    let missing = expected - survey(engine, &mut old)?.lines;
    let mut new = Rebuilt {
        staged: Staged::new(engine, path, true, &FileOptions::default())?,
        base: 0,
        bytes: Vec::new(),
        line_start: 0,
        is_bad: false,
        missing,
    };
    let piece_bytes = engine.pool().buffer_bytes();
    let mut place = 0;
    while place < old.len_bytes {
        let piece = old.bytes(engine, place, piece_bytes)?;
        place += piece.len() as u64;
        new.take(piece);
        old.pause(engine)?;
        new.write(engine)?;
    }
    let staged = new.end(engine)?;
    let len_bytes = old.len_bytes;
    let kept = aside::copy(engine, &mut old, 0, len_bytes, "damaged")?;
    old.close(engine)?;
    // The copy must be found before what it was copied from is gone.
    engine.sync_folder(folder_of(path))?;
    staged.put(engine, true)?;
    Ok(kept)
}

/// A file that is written anew.
struct Rebuilt {
    staged: Staged,
    /// Where in the file `bytes` go.
    base: u64,
    bytes: Vec<u8>,
    /// Where in the file the line begins that is taken.
    line_start: u64,
    /// There is a NUL in it.
    is_bad: bool,
    /// Lines that are not there and stand at the first bad one.
    missing: u64,
}

impl Rebuilt {
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

    /// Drops what was taken of the line.
    fn take_back(&mut self) {
        self.bytes.truncate(self.line_start.saturating_sub(self.base) as usize);
        self.base = self.base.min(self.line_start);
    }

    fn write(&mut self, engine: &mut Engine) -> Result<(), Error> {
        for piece in self.bytes.chunks(engine.pool().buffer_bytes()) {
            let mut buffer = engine.lease()?;
            buffer.set_len(piece.len());
            buffer.copy_from_slice(piece);
            let (file, offset) = (self.staged.file, self.base);
            engine.queue(0, Op::Write { file, offset, buffer, durable: false });
            self.base += piece.len() as u64;
        }
        self.bytes.clear();
        engine.drain()
    }

    fn end(mut self, engine: &mut Engine) -> Result<Staged, Error> {
        self.take_back();
        self.bytes.resize(std::mem::take(&mut self.missing) as usize, b'\n');
        self.write(engine)?;
        engine.truncate(self.staged.file, self.base)?;
        engine.flush(self.staged.file)?;
        Ok(self.staged)
    }
}
