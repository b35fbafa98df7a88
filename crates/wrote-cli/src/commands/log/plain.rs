//! A plain file of lines in place of a log's folder: which of the two a path is, and the lines of
//! the file as records, by their numbers.

use super::source::{Ends, Follow, Head, Records, Source};
use crate::stdio::End;
use crate::terminal::say;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use wrote_result::{Error, units};

/// The bytes in which line feeds are searched at once.
const STEP_BYTES: u64 = 256 << 10;
/// The interval between two checks of the end of a file that is followed.
const SOON: Duration = Duration::from_millis(20);

/// Returns whether the path is a plain file of lines, not a log's folder: by what is there, and for
/// a new name by whether it has an extension.
pub(super) fn is_plain(path: &Path) -> bool {
    match path.metadata() {
        Ok(found) => !found.is_dir(),
        Err(_) => path.extension().is_some(),
    }
}

/// A plain file of lines.
pub(super) struct PlainLines(pub PathBuf);

/// The lines of a file in order. A line that lacks its end is not one yet.
pub(super) struct PlainReader {
    path: PathBuf,
    file: BufReader<File>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The bytes read so far.
    offset: u64,
    next: u64,
    from: u64,
    /// Whether the next file at the path follows where this one is renamed or removed.
    awaits: bool,
}

impl Source for PlainLines {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        Ok(Box::new(PlainReader::open(&self.0, from, false)?))
    }

    fn check_times(&self) -> Result<(), End> {
        Err(without_times(&self.0))
    }

    /// Its first line has the number 0.
    fn ends(&self) -> Result<Ends, End> {
        let file = open(&self.0)?;
        let len = file.get_ref().metadata().map_err(|error| failed(&self.0, &error))?.len();
        let next = line_feeds(file.get_ref(), 0, len).map_err(|error| failed(&self.0, &error))?;
        Ok(Ends { first: 0, next })
    }
}

impl PlainReader {
    pub(super) fn open(path: &Path, from: u64, awaits: bool) -> Result<PlainReader, End> {
        let (path, file) = (path.to_owned(), open(path)?);
        Ok(PlainReader { path, file, line: Vec::new(), offset: 0, next: 0, from, awaits })
    }

    /// Reads from the last `count` lines on, which are found from the end of the file. Only their
    /// numbers need the lines before: without `is_numbered` the first of them has the number 0.
    pub(super) fn open_last(
        path: &Path,
        count: u64,
        is_numbered: bool,
        awaits: bool,
    ) -> Result<PlainReader, End> {
        let mut reader = PlainReader::open(path, 0, awaits)?;
        let failed = |error| failed(path, &error);
        let file = reader.file.get_ref();
        let mut before = file.metadata().map_err(failed)?.len();
        let (mut left, mut step) = (count, vec![0; STEP_BYTES as usize]);
        let mut offset = 0;
        'search: while before > 0 {
            let from = before.saturating_sub(STEP_BYTES);
            let step = &mut step[..(before - from) as usize];
            file.read_exact_at(step, from).map_err(failed)?;
            for at in (0..step.len()).rev().filter(|&at| step[at] == b'\n') {
                if left == 0 {
                    offset = from + at as u64 + 1;
                    break 'search;
                }
                left -= 1;
            }
            before = from;
        }
        if is_numbered {
            reader.next = line_feeds(file, 0, offset).map_err(failed)?;
        }
        reader.file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        reader.offset = offset;
        Ok(reader)
    }

    /// Returns the number of the next line that is whole, which `line` then holds with its end.
    fn next_line(&mut self) -> Result<Option<u64>, End> {
        loop {
            let read = self.file.read_until(b'\n', &mut self.line);
            self.offset += read.map_err(|error| failed(&self.path, &error))? as u64;
            if !self.line.ends_with(b"\n") {
                return Ok(None);
            }
            let number = self.next;
            self.next += 1;
            if number >= self.from {
                return Ok(Some(number));
            }
            self.line.clear();
        }
    }

    fn next_record(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        let Some(sequence) = self.next_line()? else { return Ok(None) };
        self.line.pop();
        bytes.append(&mut self.line);
        Ok(Some(Head { sequence, written_at: None }))
    }

    /// Begins anew where another program has shortened the file, or given its path to another one.
    fn look_again(&mut self) -> Result<(), End> {
        let here = self.file.get_ref().metadata().map_err(|error| failed(&self.path, &error))?;
        let is_shorter = here.len() < self.offset;
        let there = self.path.metadata().ok().filter(|_| self.awaits);
        let is_other = |there: std::fs::Metadata| {
            (there.dev(), there.ino()) != (here.dev(), here.ino()) && here.len() == self.offset
        };
        if !is_shorter && !there.is_some_and(is_other) {
            return Ok(());
        }
        let what = if is_shorter { "shortened" } else { "removed or renamed" };
        say(&format!("wrote: note: {}: {what}; it is read from its start", self.path.display()));
        *self = PlainReader { next: self.next, ..PlainReader::open(&self.path, 0, self.awaits)? };
        Ok(())
    }
}

impl Records for PlainReader {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        let found = self.next_record(bytes)?;
        if found.is_none() && !self.line.is_empty() {
            let (path, len) = (self.path.display(), units::bytes(self.line.len() as u64));
            say(&format!(
                "wrote: note: {path}: the last line has no end yet; its {len} are left out"
            ));
        }
        Ok(found)
    }

    fn seek_time(&mut self, _: SystemTime) -> Result<(), End> {
        Err(without_times(&self.path))
    }
}

impl Follow for PlainReader {
    fn next_within(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        let begun = Instant::now();
        loop {
            let found = self.next_record(bytes)?;
            if found.is_some() || begun.elapsed() >= timeout {
                return Ok(found);
            }
            self.look_again()?;
            thread::sleep(SOON.min(timeout));
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, End> {
    check_kind(path)?;
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    Ok(BufReader::with_capacity(256 << 10, file))
}

/// Counts the line feeds of a part of the file.
fn line_feeds(file: &File, from: u64, to: u64) -> io::Result<u64> {
    let (mut step, mut at, mut found) = (vec![0; STEP_BYTES as usize], from, 0);
    while at < to {
        let len = (to - at).min(STEP_BYTES) as usize;
        match file.read_at(&mut step[..len], at)? {
            0 => break,
            read => {
                found += step[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
                at += read as u64;
            }
        }
    }
    Ok(found)
}

/// Refuses a plain file where a log's folder is meant.
pub(super) fn check_folder(path: &Path) -> Result<(), Error> {
    check_kind(path)?;
    if !path.is_file() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{path}: a file of lines, which has no checksums to verify; 'wc' counts its lines, and an \
         opening moves a torn end aside: wrote log append {path} < /dev/null",
        path = path.display()
    )))
}

/// Refuses devices, pipes and sockets.
fn check_kind(path: &Path) -> Result<(), Error> {
    let path_is_other = path.exists() && !path.is_file() && !path.is_dir();
    let text = format!("{}: is neither the folder of a log nor a file of lines", path.display());
    if path_is_other { Err(Error::Usage(text)) } else { Ok(()) }
}

fn failed(path: &Path, error: &io::Error) -> End {
    Error::Failed(format!("{}: {error}", path.display())).into()
}

fn without_times(path: &Path) -> End {
    let because = "a plain file does not say when a line was written";
    Error::Usage(format!("{}: {because}", path.display())).into()
}
