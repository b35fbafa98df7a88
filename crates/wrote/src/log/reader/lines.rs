//! A reader's position in a log of lines.

use super::super::format::Format;
use super::super::input::{Input, LogFiles};
use super::super::lines;
use super::super::names::{self, Next};
use super::cursor::{AnyCursor, Cursor, Place};
use crate::Error;
use std::io::BufRead;
use std::path::Path;

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
        match lines::check_sealed(&mut self.input, self.number, *next, true) {
            Err(lost @ Error::Damaged { .. }) => Ok(Some(lost)),
            result => result.map(|()| None),
        }
    }
}
