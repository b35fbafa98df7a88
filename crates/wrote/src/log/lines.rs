//! The format of lines: read, recovered, verified and repaired.

use super::aside;
use super::format::Format;
use super::input::{Input, LogFiles};
use super::names::{self, Next};
use super::reader::{AnyCursor, Cursor, Place};
use super::recovery::{ActiveSegment, Recovery, cut_off};
use super::rescue::repair::keep_damaged;
use super::rescue::verify::VerifyProgress;
use super::rescue::{Damage, LogSummary, SegmentSummary};
use super::retention::RetainedSegment;
use super::segment::damaged;
use super::state::Recovered;
use crate::metadata::{self, Metadata, mode_at_first};
use crate::progress::{Watch, unwatched};
use crate::staged::{StagedFile, complete};
use crate::{Engine, Error, FileId, FileOptions};
use rustix::fs::fstat;
use std::io::BufRead;
use std::path::{Path, PathBuf};

pub(super) struct LineCount {
    pub count: u64,
    pub end: u64,
}

/// Refuses a file before the last that has lost lines: its writer flushed it before starting the
/// next one, whose first line is `next`.
///
/// Length and last byte reveal most damage. With `all`, every line is counted.
pub(super) fn check_sealed(
    input: &mut Input,
    number: u64,
    next: u64,
    all: bool,
) -> Result<(), Error> {
    let expected = next - number;
    let len_bytes = input.len_bytes;
    let ends_whole = input.bytes(len_bytes.saturating_sub(1), 1)? == b"\n";
    if !all && ends_whole && len_bytes >= expected {
        return Ok(());
    }
    let LineCount { count, end } = read(input)?;
    let sequence = number + count;
    let what = match count {
        _ if count == expected => return Ok(()),
        _ if count < expected => format!("line {sequence} can't be read, and was durable once"),
        _ => format!("it ends before line {sequence}, the file after it begins with {next}"),
    };
    Err(damaged(&input.path, end, &what))
}

pub(super) fn read(input: &mut Input) -> Result<LineCount, Error> {
    let piece_bytes = input.files.engine().pool().buffer_bytes();
    let mut lines = LineCount { count: 0, end: 0 };
    let mut place = 0;
    while place < input.len_bytes {
        let bytes = input.bytes(place, piece_bytes)?;
        let clean = bytes.iter().position(|&byte| byte == 0);
        let bytes = &bytes[..clean.unwrap_or(bytes.len())];
        lines.count += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        if let Some(last) = bytes.iter().rposition(|&byte| byte == b'\n') {
            lines.end = place + last as u64 + 1;
        }
        if clean.is_some() || bytes.is_empty() {
            break;
        }
        place += bytes.len() as u64;
    }
    input.pause()?;
    Ok(lines)
}

/// First and largest piece searched for the end of a line. No line is longer.
const LINE_BYTES: usize = 64 << 10;
const LINE_BYTES_MAX: usize = 128 << 20;

struct LineCursor {
    number: u64,
    input: Input,
    /// The offset of the next line.
    place: u64,
    sequence: u64,
    /// The offset and the length of the last line, without its line feed.
    line: (u64, usize),
}

/// Finds the file with the line `from`, or with the first later one.
pub(super) fn find(files: &LogFiles, folder: &Path, from: u64) -> Result<Option<AnyCursor>, Error> {
    let names = names::all(files, folder, Format::Lines)?;
    let behind = names.partition_point(|(number, _)| *number <= from);
    match names.get(behind.saturating_sub(1)) {
        Some((number, path)) => Ok(Some(Box::new(LineCursor::open(files, *number, path)?))),
        None => Ok(None),
    }
}

impl LineCursor {
    fn open(files: &LogFiles, number: u64, path: &Path) -> Result<LineCursor, Error> {
        let input = Input::open(files, path, false, false)?;
        Ok(LineCursor { number, input, place: 0, sequence: number, line: (0, 0) })
    }

    /// Skips the line at `place`, if it is complete.
    fn pass_line(&mut self) -> Result<bool, Error> {
        let mut searched_bytes = LINE_BYTES;
        loop {
            let there = self.input.bytes(self.place, searched_bytes)?;
            let is_all = there.len() < searched_bytes;
            let len = (&mut &*there).skip_until(b'\n').expect("memory is read without errors");
            let is_line = there[..len].ends_with(b"\n");
            let is_torn = there[..len].contains(&0);
            if is_line && !is_torn {
                self.line = (self.place, len - 1);
                self.place += len as u64;
                return Ok(true);
            }
            if is_torn || is_all || searched_bytes >= LINE_BYTES_MAX {
                return Ok(false);
            }
            searched_bytes *= 2;
        }
    }
}

impl Cursor for LineCursor {
    fn next(&mut self, from: u64) -> Result<Option<u64>, Error> {
        while self.pass_line()? {
            let sequence = self.sequence;
            self.sequence += 1;
            if sequence >= from {
                return Ok(Some(sequence));
            }
        }
        Ok(None)
    }

    fn record(&self) -> &[u8] {
        let (offset, len) = self.line;
        self.input.held(offset, len)
    }

    fn written_at_ns(&self) -> u64 {
        0
    }

    fn find_time(&mut self, folder: &Path, _: u64) -> Result<u64, Error> {
        let because = "a log of lines does not say when a line was written";
        Err(Error::refused(folder, because))
    }

    /// Only the lines before it give a line's place.
    fn seek(&mut self, _: &Path, _: u64) -> Result<bool, Error> {
        self.input.pause()?;
        Ok(false)
    }

    fn turn(&mut self, folder: &Path) -> Result<bool, Error> {
        self.input.pause()?;
        let next = names::unless_removed(|| {
            let names = names::all(&self.input.files, folder, Format::Lines)?;
            let (number, path) = match names::next(names, self.number, self.sequence) {
                // The file being written is empty.
                Next::Follows(number, _) if number == self.number => return Ok(Some(None)),
                Next::Follows(number, path) | Next::IsLeft(number, path) => (number, path),
                Next::Nothing => return Ok(Some(None)),
            };
            LineCursor::open(&self.input.files, number, &path).map(|cursor| Some(Some(cursor)))
        })?;
        let Some(cursor) = next else { return Ok(false) };
        *self = cursor;
        Ok(true)
    }

    fn place(&self) -> Place<'_> {
        Place { sequence: self.sequence, path: &self.input.path, offset: self.place }
    }

    fn look_again(&mut self) -> Result<(), Error> {
        self.input.look_again()
    }

    /// The flusher flushes a file before it starts the next one, so a later file proves that all
    /// lines before it were durable.
    fn lost(&mut self, folder: &Path) -> Result<Option<Error>, Error> {
        self.input.pause()?;
        let names = names::all(&self.input.files, folder, Format::Lines)?;
        let mut from_here = names.iter().skip_while(|(number, _)| *number != self.number);
        // If its name is gone, retention has removed the file.
        let Some((next, _)) = from_here.next().and_then(|_| from_here.next()) else {
            return Ok(None);
        };
        // It may have grown before the next file began.
        self.input.look_again()?;
        match check_sealed(&mut self.input, self.number, *next, true) {
            Err(lost @ Error::Damaged { .. }) => Ok(Some(lost)),
            result => result.map(|()| None),
        }
    }
}

pub(super) fn recover(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Recovery, Error> {
    let Some(((number, path), earlier)) = names.split_last() else {
        return Ok(Recovery::nothing(0, Recovered::default()));
    };
    let sealed = sealed_files(files, names)?;
    let mut input = Input::open(files, path, false, true)?;
    input.flush()?;
    let lines = read(&mut input)?;
    let next_sequence = number + lines.count;
    let first_sequence = earlier.first().map_or(*number, |(first, _)| *first);
    let active = ActiveSegment {
        path: path.clone(),
        number: *number,
        bytes: lines.end,
        block_bytes: 1,
        // A file does not record its beginning: the last write to the file before is the earliest
        // time.
        created_at_ns: sealed
            .last()
            .map_or_else(|| modified_at_ns(&input), |before| before.written_at_ns),
        last_checksum: 0,
        after_cut: false,
        longest_bytes: 0,
    };
    let records = next_sequence - first_sequence;
    let mut recovered = Recovered { records, ..Recovered::default() };
    let torn_end = input.len_bytes;
    cut_off(&mut input, lines.end, torn_end, &[], &mut recovered)?;
    let active = Some(active);
    Ok(Recovery { recovered, log_id: 0, sealed, active, first_sequence, next_sequence })
}

/// Examines the files before the last, and counts the lines of the last of them.
fn sealed_files(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Vec<RetainedSegment>, Error> {
    let mut sealed = Vec::with_capacity(names.len());
    for (index, pair) in names.windows(2).enumerate() {
        let [(number, path), (next, _)] = pair else { unreachable!("windows of two") };
        let mut input = Input::open(files, path, false, false)?;
        check_sealed(&mut input, *number, *next, index + 2 == names.len())?;
        sealed.push(RetainedSegment {
            path: path.clone(),
            bytes: input.len_bytes,
            end_sequence: *next,
            written_at_ns: modified_at_ns(&input),
            is_written: false,
        });
    }
    Ok(sealed)
}

/// Returns the time of the last write, in nanoseconds since 1970; 0 on a simulated disk without a
/// clock.
fn modified_at_ns(input: &Input) -> u64 {
    let engine = input.files.engine();
    let stat = engine.descriptor(input.file).and_then(|descriptor| fstat(descriptor).ok());
    let modified = stat.map(|stat| metadata::times(&stat).last_modification);
    modified.map_or(0, |at| at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// Summarizes a log of lines, and checks its sealed files.
pub(super) fn summary(files: &LogFiles, folder: &Path) -> Result<LogSummary, Error> {
    summary_with(files, folder, check_sealed)
}

/// Summarizes a log of lines from the lengths of its sealed files.
fn unchecked_summary(files: &LogFiles, folder: &Path) -> Result<LogSummary, Error> {
    summary_with(files, folder, |_, _, _, _| Ok(()))
}

/// Summarizes a log of lines. Calls `check` with each sealed file, its number, the next file's
/// number, and whether it is the last sealed one.
fn summary_with(
    files: &LogFiles,
    folder: &Path,
    check: fn(&mut Input, u64, u64, bool) -> Result<(), Error>,
) -> Result<LogSummary, Error> {
    names::unless_removed(|| {
        let names = names::all(files, folder, Format::Lines)?;
        let mut summary = LogSummary::empty(files, Format::Lines);
        summary.first_sequence = names.first().map_or(0, |(number, _)| *number);
        for (index, (number, path)) in names.iter().enumerate() {
            let mut input = Input::open(files, path, false, false)?;
            let (records, used_bytes) = match names.get(index + 1) {
                Some((next, _)) => {
                    check(&mut input, *number, *next, index + 2 == names.len())?;
                    (next - number, input.len_bytes)
                }
                None => {
                    let lines = read(&mut input)?;
                    (lines.count, lines.end)
                }
            };
            let file_bytes = input.len_bytes;
            summary.next_sequence = number + records;
            let (path, first_sequence) = (path.clone(), *number);
            let segment = SegmentSummary { path, file_bytes, used_bytes, first_sequence, records };
            summary.segments.push(segment);
        }
        summary.count();
        Ok(Some(summary))
    })
}

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
    let mut summary = unchecked_summary(files, folder)?;
    let all_bytes = summary.segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = VerifyProgress::new(all_bytes, watch);
    for index in 0..summary.segments.len() {
        let next = summary.segments.get(index + 1).map(|next| next.first_sequence);
        let segment = &mut summary.segments[index];
        let Some(mut input) = open_left(files, folder, segment)? else { continue };
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
            let LineCount { count, end } = read(&mut input)?;
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
fn open_left(
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
