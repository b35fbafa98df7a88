//! A reader's place in a log of lines.

use super::super::Format;
use super::super::input::Input;
use super::super::names::{self, Next};
use super::super::recovery::damaged;
use crate::{Engine, Error};
use std::io::BufRead;
use std::path::Path;

/// How much is looked through for the end of a line at first, and at most: more than any line has.
const LINE_BYTES: usize = 64 << 10;
const LINE_BYTES_MAX: usize = 128 << 20;

/// A file and the place in it.
pub(super) struct Cursor {
    number: u64,
    input: Input,
    /// Where the next line begins.
    place: u64,
    /// Its sequence.
    sequence: u64,
}

impl Cursor {
    /// Finds the file that has the line `from`, or the first one behind it.
    pub(super) fn find(
        engine: &mut Engine,
        folder: &Path,
        from: u64,
    ) -> Result<Option<Cursor>, Error> {
        let names = names::all(engine, folder, Format::Lines)?;
        let behind = names.partition_point(|(number, _)| *number <= from);
        match names.get(behind.saturating_sub(1)) {
            Some((number, path)) => Cursor::open(engine, *number, path).map(Some),
            None => Ok(None),
        }
    }

    fn open(engine: &mut Engine, number: u64, path: &Path) -> Result<Cursor, Error> {
        let input = Input::open(engine, path, false, false)?;
        Ok(Cursor { number, input, place: 0, sequence: number })
    }

    /// Appends the next line to `bytes`, `from` or one behind it, without what ends it. `None` where the
    /// whole lines end, as far as they were read.
    pub(super) fn next(
        &mut self,
        engine: &mut Engine,
        from: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        let kept = bytes.len();
        while self.append_line(engine, bytes)? {
            let sequence = self.sequence;
            self.sequence += 1;
            if sequence >= from {
                return Ok(Some(sequence));
            }
            bytes.truncate(kept);
        }
        Ok(None)
    }

    /// Appends the line at `place`, if there is a whole one.
    fn append_line(&mut self, engine: &mut Engine, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        let kept = bytes.len();
        let mut look_at = LINE_BYTES;
        loop {
            let mut there = self.input.bytes(engine, self.place, look_at)?;
            let is_all = there.len() < look_at;
            let len = there.read_until(b'\n', bytes).expect("memory is read without errors");
            let is_line = bytes[kept..].last() == Some(&b'\n');
            if is_line && !bytes[kept..].contains(&0) {
                bytes.pop();
                self.place += len as u64;
                return Ok(true);
            }
            bytes.truncate(kept);
            if is_line || is_all || look_at >= LINE_BYTES_MAX {
                return Ok(false);
            }
            look_at *= 2;
        }
    }

    /// Goes on to the next file, if the log goes on there.
    pub(super) fn turn(&mut self, engine: &mut Engine, folder: &Path) -> Result<bool, Error> {
        self.input.pause(engine)?;
        let next = names::unless_removed(|| {
            let names = names::all(engine, folder, Format::Lines)?;
            let (number, path) = match names::next(names, self.number, self.sequence) {
                // An empty file is the one that is written to.
                Next::Follows(number, _) if number == self.number => return Ok(Some(None)),
                Next::Follows(number, path) | Next::IsLeft(number, path) => (number, path),
                Next::Nothing => return Ok(Some(None)),
            };
            Cursor::open(engine, number, &path).map(|cursor| Some(Some(cursor)))
        })?;
        let Some(cursor) = next else { return Ok(false) };
        std::mem::replace(self, cursor).input.close(engine)?;
        Ok(true)
    }

    /// Forgets what was read of what comes next: somebody may have written it.
    pub(super) fn look_again(&mut self, engine: &mut Engine) -> Result<(), Error> {
        self.input.look_again(engine)
    }

    /// The error to tell of where the next line was durable once and can't be read: a file is flushed
    /// before the one after the next is begun.
    pub(super) fn lost(
        &mut self,
        engine: &mut Engine,
        folder: &Path,
    ) -> Result<Option<Error>, Error> {
        self.input.pause(engine)?;
        let names = names::all(engine, folder, Format::Lines)?;
        if names.iter().filter(|(number, _)| *number > self.number).count() < 2 {
            return Ok(None);
        }
        let what = format!("line {} can't be read, and was durable once", self.sequence);
        Ok(Some(damaged(folder, &self.input.path, self.place, &what)))
    }
}
