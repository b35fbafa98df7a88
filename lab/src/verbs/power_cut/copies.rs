//! A subject that copies a few files to new names.

use crate::fixtures::names;
use crate::verbs::power_cut::content::{content, describe, read};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, remove, sync_folder};
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wrote::{CopyOptions, Error};

/// The lengths of the sources. The last source contains a hole.
const SOURCES: [usize; 4] = [100, 65_536, 300_001, 1_200_007];
const HOLE: Range<usize> = 262_144..786_432;
/// The number of copies to keep. The oldest is removed before a new one is created.
const KEPT: u64 = 24;

/// Copies with the numbers 0, 1, 2, ..
#[derive(Debug)]
pub struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// Creates a subject whose copies are put into a new folder.
    pub fn new(folder: &Path) -> Copies {
        Copies { folder: folder.to_owned() }
    }

    fn source(&self, number: usize) -> PathBuf {
        self.folder.join(format!("source-{number}"))
    }

    fn copy(&self, number: u64) -> PathBuf {
        self.folder.join(format!("copy-{number}"))
    }

    /// Compares copy `number` with its source; `None` if there is no such copy.
    fn compare(&self, number: u64, faults: &mut Vec<String>) -> Option<()> {
        let bytes = read(&self.copy(number), faults)?;
        let expected = bytes_of(source_of(number));
        if bytes != expected {
            faults.push(format!("copy-{number}: {}", describe(&bytes, &expected)));
        }
        Some(())
    }
}

/// Returns the number of a copy's source.
fn source_of(copy: u64) -> usize {
    usize::try_from(copy % SOURCES.len() as u64).unwrap_or(0)
}

fn bytes_of(source: usize) -> Vec<u8> {
    let length = SOURCES[source];
    let mut bytes = content(source as u64, length..=length);
    bytes[hole(length)].fill(0);
    bytes
}

/// Returns the hole of a source with this length; empty if the source is too short to have one.
fn hole(length: usize) -> Range<usize> {
    if length < HOLE.end { 0..0 } else { HOLE }
}

/// Returns the options for copy `number`, which combine each source with each method in turn.
fn options(number: u64) -> CopyOptions<'static> {
    let sources = SOURCES.len() as u64;
    let may_share = (number / sources).is_multiple_of(2).then_some(false);
    let verify = number % (sources + 1) == sources;
    CopyOptions::new().reflink(may_share).verify(verify).bs_bytes(64 << 10).iodepth(4)
}

impl Subject for Copies {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        for (number, length) in SOURCES.into_iter().enumerate() {
            let bytes = bytes_of(number);
            let file = File::create_new(self.source(number))?;
            let hole = hole(length);
            file.write_all_at(&bytes[..hole.start], 0)?;
            file.write_all_at(&bytes[hole.end..], hole.end as u64)?;
            file.sync_all()?;
        }
        sync_folder(&self.folder)
    }

    fn write(&mut self, _seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let mut number = 0_u64;
        loop {
            if let Some(old) = number.checked_sub(KEPT) {
                remove(&self.copy(old))?;
            }
            let (source, copy) = (self.source(source_of(number)), self.copy(number));
            options(number).copy(&source, &copy)?;
            say(&Line::Copied(number))?;
            number += 1;
        }
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        let mut faults = Vec::new();
        let (promised, current) = (made(said.sure()), made(said.all()));
        // Older copies may have been removed, and the current one may be missing.
        for number in (current + 1).saturating_sub(KEPT)..=current {
            if self.compare(number, &mut faults).is_none() && number < promised {
                faults.push(format!("copy-{number} was promised and is missing"));
            }
        }
        let is_known = |name: &String| {
            let number = name.strip_prefix("copy-").and_then(|number| number.parse().ok());
            let is_temporary = name.starts_with('.') && name.contains(".wrote-");
            let is_copy = number.is_some_and(|number: u64| number <= current);
            is_temporary || name.starts_with("source-") || is_copy
        };
        let unknown = names(&self.folder).into_iter().filter(|name| !is_known(name));
        faults.extend(unknown.map(|name| format!("{name}: an unknown name")));
        Ok(faults)
    }
}

/// Returns the number of promised copies.
fn made(said: &[Line]) -> u64 {
    let last = said.iter().rev().find_map(|line| match line {
        Line::Copied(number) => Some(number + 1),
        _ => None,
    });
    last.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn prepared() -> (tempfile::TempDir, Copies) {
        let folder = tempfile::tempdir().expect("a folder");
        let copies = Copies::new(&folder.path().join("copy"));
        copies.prepare().expect("prepared");
        (folder, copies)
    }

    #[test]
    fn sources_hold_what_copies_are_compared_with() {
        let (_folder, copies) = prepared();
        for number in 0..SOURCES.len() {
            let bytes = fs::read(copies.source(number)).expect("there");
            assert!(bytes == bytes_of(number), "{}", describe(&bytes, &bytes_of(number)));
        }
    }

    #[test]
    fn the_copy_that_was_being_made_may_be_absent_or_whole_but_not_in_part() {
        let (_folder, copies) = prepared();
        let check = || copies.check(&Report::default()).expect("checked");
        assert_eq!(check(), Vec::<String>::new());
        fs::write(copies.copy(0), bytes_of(0)).expect("written");
        assert_eq!(check(), Vec::<String>::new());
        fs::write(copies.copy(0), &bytes_of(0)[..50]).expect("written");
        assert_eq!(check(), ["copy-0: 50 bytes, where 100 belong"]);
    }

    #[test]
    fn a_promised_copy_must_be_there() {
        let (_folder, copies) = prepared();
        let found = copies.check(&Report::of(&[Line::Copied(0)], &[])).expect("checked");
        assert_eq!(found, ["copy-0 was promised and is missing"]);
    }

    #[test]
    fn a_name_that_nobody_gave_is_a_fault_and_a_temporary_one_is_not() {
        let (_folder, copies) = prepared();
        fs::write(copies.folder.join(".copy-0.wrote-1-0"), "").expect("written");
        fs::write(copies.folder.join("copy-0~"), "").expect("written");
        let found = copies.check(&Report::default()).expect("checked");
        assert_eq!(found, ["copy-0~: an unknown name"]);
    }
}
