//! Plain line files in place of log folders: distinguishes the two by their paths, and reads the
//! lines of a file as numbered records.

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

/// The number of bytes that are searched for line feeds at a time.
const STEP_BYTES: u64 = 256 << 10;
/// The interval between checks for new lines in a file that is followed.
const SOON: Duration = Duration::from_millis(20);

/// Returns whether the path is a plain line file, rather than a log's folder. If the path does not
/// exist, a file is assumed if the name has an extension.
pub(super) fn is_plain(path: &Path) -> bool {
    match path.metadata() {
        Ok(found) => !found.is_dir(),
        Err(_) => path.extension().is_some(),
    }
}

/// A plain line file.
pub(super) struct PlainLines(pub PathBuf);

/// A reader of the lines of a file, in order. A line without its line feed is not returned yet.
pub(super) struct PlainReader {
    path: PathBuf,
    file: BufReader<File>,
    /// The beginning of a line whose line feed has not been read yet.
    line: Vec<u8>,
    /// The number of bytes read so far.
    offset: u64,
    next: u64,
    from: u64,
    /// Whether to continue with the next file at the path if this one is renamed or removed.
    awaits: bool,
}

impl Source for PlainLines {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        Ok(Box::new(PlainReader::open(&self.0, from, false)?))
    }

    fn check_times(&self) -> Result<(), End> {
        Err(without_times(&self.0))
    }

    /// Returns the number of the first line, which is 0, and the number of the next line to be
    /// appended.
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

    /// Opens the file for reading its last `count` lines, which are found from the end of the file.
    /// The lines before them matter only for the numbers: unless `is_numbered`, the first line read
    /// has the number 0.
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

    /// Returns the number of the next complete line, which `line` then contains with its line feed;
    /// `None` if there is no complete line.
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

    /// Starts again from the beginning if another program has shortened the file, or if the path
    /// now leads to another file.
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
        say(&format!("wrote: note: {}: {what}; reading from its start", self.path.display()));
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
                "wrote: note: {path}: the last line is unfinished; its {len} are left out"
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

/// Counts the line feeds in a part of the file.
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

/// Refuses a plain file if the folder of a log is required.
pub(super) fn check_folder(path: &Path) -> Result<(), Error> {
    check_kind(path)?;
    if !path.is_file() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{path}: a plain file of lines, which has no checksums to verify. To set an unfinished \
         last line aside: wrote log append {path} < /dev/null",
        path = path.display()
    )))
}

/// Refuses devices, pipes and sockets.
fn check_kind(path: &Path) -> Result<(), Error> {
    let path_is_other = path.exists() && !path.is_file() && !path.is_dir();
    let text = format!("{}: is neither a log's folder nor a plain file of lines", path.display());
    if path_is_other { Err(Error::Usage(text)) } else { Ok(()) }
}

fn failed(path: &Path, error: &io::Error) -> End {
    Error::Failed(format!("{}: {error}", path.display())).into()
}

fn without_times(path: &Path) -> End {
    let because = "a plain file does not record when a line was written";
    Error::Usage(format!("{}: {because}", path.display())).into()
}
