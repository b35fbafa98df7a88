//! A subject that writes files with a `Writer` in pieces of varying length, and syncs them
//! occasionally.

use crate::verbs::power_cut::content::{content, describe, random, read};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, remove};
use rand::RngExt;
use std::convert::Infallible;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use wrote::{Action, Error, Writer};

const LENGTHS: RangeInclusive<usize> = 1..=2_000_000;
const PIECES: RangeInclusive<usize> = 1..=60_000;
/// The proportion of pieces that are followed by a sync.
const SYNCED: f64 = 0.15;
/// The number of files to keep. The oldest is removed before a new one is created.
const KEPT: u64 = 4;

/// A subject that writes files with the numbers 0, 1, 2, ..
#[derive(Debug)]
pub struct Streams {
    folder: PathBuf,
}

impl Streams {
    /// Creates a subject whose files are put into a new folder.
    pub fn new(folder: &Path) -> Streams {
        Streams { folder: folder.to_owned() }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.join(format!("stream-{number}"))
    }

    /// Opens file `number`, with options that vary from file to file.
    fn open(&self, number: u64) -> Result<Writer, Error> {
        let options = Writer::options().create_new(true);
        let options = match number % 4 {
            0 => options,
            1 => options.bs(16 << 10).iodepth(2),
            2 => options.size_hint(1_000_000),
            _ => options.direct(false),
        };
        options.open(self.file(number))
    }

    /// Writes file `number` completely.
    fn stream(&self, number: u64, seed: u64, say: Reporter) -> Result<(), Error> {
        let mut random = random(seed ^ number);
        let bytes = content(number, LENGTHS);
        let mut writer = self.open(number)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(random.random_range(PIECES).min(rest.len()));
            rest = after;
            let mut done = self.write(&mut writer, number, piece);
            // The last piece is not synced: finishing a synced file needs no system call, and a
            // second promise after the same flush would prove nothing.
            if done.is_ok() && !rest.is_empty() && random.random_bool(SYNCED) {
                done = writer.sync_data();
                let safe = Line::Synced { file: number, bytes: (bytes.len() - rest.len()) as u64 };
                if done.is_ok() {
                    say(&safe)?;
                }
            }
            if let Err(error) = done {
                if writer.sync_data().is_ok() {
                    say(&Line::Unpoisoned)?;
                }
                return Err(error);
            }
        }
        writer.finish()?;
        say(&Line::Finished(number))
    }

    fn write(&self, writer: &mut Writer, number: u64, piece: &[u8]) -> Result<(), Error> {
        writer.write_all(piece).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::file(self.file(number), Action::Write, None, &error),
        })
    }

    /// Compares file `number` with the promise of its first bytes, or of the whole file.
    fn compare(&self, number: u64, promised: Option<usize>, faults: &mut Vec<String>) {
        let bytes = read(&self.file(number), faults);
        let expected = content(number, LENGTHS);
        let wrong = match (&bytes, promised) {
            (Some(bytes), None) => (*bytes != expected).then(|| describe(bytes, &expected)),
            (Some(bytes), Some(length)) => {
                let (there, promised) = (&bytes[..length.min(bytes.len())], &expected[..length]);
                (there != promised).then(|| describe(there, promised))
            }
            (None, Some(0)) => None,
            (None, _) => Some("no file".to_owned()),
        };
        if let Some(wrong) = wrong {
            let promise = promised.map_or("whole".to_owned(), |length| format!("{length} bytes"));
            faults.push(format!("stream-{number} ({promise} promised): {wrong}"));
        }
    }
}

impl Subject for Streams {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let mut number = 0_u64;
        loop {
            if let Some(old) = number.checked_sub(KEPT) {
                remove(&self.file(old))?;
            }
            self.stream(number, seed, say)?;
            number += 1;
        }
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        let mut faults = Vec::new();
        let ((current, promised), (last, _)) = (under_way(said.sure()), under_way(said.all()));
        // Older files may have been removed.
        let first = (last + 1).saturating_sub(KEPT);
        for number in first..current {
            self.compare(number, None, &mut faults);
        }
        if first <= current {
            self.compare(current, Some(promised), &mut faults);
        }
        if said.all().contains(&Line::Unpoisoned) {
            faults.push("after the first error a flush succeeded".to_owned());
        }
        Ok(faults)
    }
}

/// Returns the file that was being written, and the number of its promised bytes.
fn under_way(said: &[Line]) -> (u64, usize) {
    said.iter().fold((0, 0), |before, line| match line {
        Line::Finished(number) => (number + 1, 0),
        Line::Synced { file, bytes } => (*file, usize::try_from(*bytes).unwrap_or(0)),
        _ => before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Checks two files: the first was finished, and the second was synced up to byte 5000.
    fn found(first: &[u8], second: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let streams = Streams::new(&folder.path().join("writer"));
        streams.prepare().expect("prepared");
        fs::write(streams.file(0), first).expect("written");
        fs::write(streams.file(1), second).expect("written");
        let synced = |file, bytes| Line::Synced { file, bytes };
        let sure = [synced(0, 100), Line::Finished(0), synced(1, 5000)];
        streams.check(&Report::of(&sure, &[synced(1, 7000)])).expect("checked")
    }

    #[test]
    fn synced_bytes_must_be_there_and_others_may_be_anything() {
        let (first, second) = (content(0, LENGTHS), content(1, LENGTHS));
        assert_eq!(found(&first, &second[..5000]), Vec::<String>::new());
        let mut more = second[..6000].to_vec();
        more[5000] ^= 1;
        assert_eq!(found(&first, &more), Vec::<String>::new());
        let mut wrong = second[..5000].to_vec();
        wrong[4999] ^= 1;
        assert_eq!(found(&first, &wrong).len(), 1);
        assert_eq!(
            found(&first, &second[..4999]),
            ["stream-1 (5000 bytes promised): 4999 bytes, where 5000 belong"]
        );
    }

    #[test]
    fn a_finished_file_must_be_there_to_its_last_byte_and_no_longer() {
        let (mut first, second) = (content(0, LENGTHS), content(1, LENGTHS));
        first.push(0);
        assert_eq!(found(&first, &second).len(), 1);
    }

    #[test]
    fn a_flush_that_succeeds_after_an_error_is_a_fault() {
        // W2
        let folder = tempfile::tempdir().expect("a folder");
        let streams = Streams::new(&folder.path().join("writer"));
        streams.prepare().expect("prepared");
        let said = Report::of(&[Line::Ready], &[Line::Unpoisoned]);
        let faults = streams.check(&said).expect("checked");
        assert_eq!(faults, ["after the first error a flush succeeded"]);
    }

    #[test]
    fn a_file_that_was_promised_nothing_may_be_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let streams = Streams::new(&folder.path().join("writer"));
        streams.prepare().expect("prepared");
        let nothing = streams.check(&Report::of(&[Line::Ready], &[])).expect("checked");
        assert_eq!(nothing, Vec::<String>::new());
        let said = Report::of(&[Line::Synced { file: 0, bytes: 1 }], &[]);
        let synced = streams.check(&said).expect("checked");
        assert_eq!(synced, ["stream-0 (1 bytes promised): no file"]);
    }
}
