//! A subject that replaces one file repeatedly.

use crate::verbs::power_cut::content::{content, describe, length, read};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use wrote::{Action, Error, Writer};

const LENGTHS: RangeInclusive<usize> = 1..=200_000;
/// The pause after a save without a flush, which leaves the disk to other subjects.
const PAUSE: Duration = Duration::from_millis(4);

/// The method of replacing the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `wrote::write`.
    Wrote,
    /// `wrote::Writer::replace` with pieces of varying length, and `finish`.
    Replace,
    /// A write, an fsync, a rename, and an fsync of the folder.
    ByHand,
    /// A write, an fsync and a rename, without the fsync of the folder.
    UnsyncedFolder,
    /// `std::fs::write`.
    Unsynced,
}

/// A subject that replaces one file with content 1, 2, 3, ..
#[derive(Debug)]
pub struct Saves {
    folder: PathBuf,
    way: Way,
}

impl Saves {
    /// Creates a subject whose file is put into a new folder.
    pub fn new(folder: &Path, way: Way) -> Saves {
        Saves { folder: folder.to_owned(), way }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    fn save(&self, bytes: &[u8]) -> Result<(), Error> {
        let path = self.file();
        match self.way {
            Way::Wrote => wrote::write(&path, bytes),
            Way::Replace => replace(&path, bytes),
            Way::ByHand => {
                rename_into_place(&path, bytes)?;
                sync_folder(&self.folder).map_err(refused(&self.folder, Action::SyncFolder))
            }
            Way::UnsyncedFolder => rename_into_place(&path, bytes),
            Way::Unsynced => fs::write(&path, bytes).map_err(refused(&path, Action::Write)),
        }
    }
}

/// Replaces the file in pieces, with varying options, and syncs in between.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let options = match bytes.len() % 3 {
        0 => Writer::options(),
        1 => Writer::options().bs(16 << 10).iodepth(2),
        _ => Writer::options().direct(false),
    };
    let mut writer = options.replace(true).open(path)?;
    for (number, piece) in bytes.chunks(33_333).enumerate() {
        writer.write_all(piece).map_err(refused(path, Action::Write))?;
        if number == 2 {
            writer.sync_data()?;
        }
    }
    writer.finish().map(drop)
}

fn rename_into_place(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary).map_err(refused(&temporary, Action::Open))?;
    file.write_all(bytes).map_err(refused(&temporary, Action::Write))?;
    file.sync_all().map_err(refused(&temporary, Action::Fsync))?;
    fs::rename(&temporary, path).map_err(refused(path, Action::Rename))
}

fn refused(path: &Path, action: Action) -> impl Fn(io::Error) -> Error {
    move |error| Error::file(path, action, None, &error)
}

impl Subject for Saves {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        let mut file = File::create_new(self.file())?;
        file.write_all(&content(0, LENGTHS))?;
        file.sync_all()?;
        sync_folder(&self.folder)
    }

    fn write(&mut self, _seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let mut number = 0;
        loop {
            number += 1;
            self.save(&content(number, LENGTHS))?;
            say(&Line::Saved(number))?;
            if self.way == Way::Unsynced {
                thread::sleep(PAUSE);
            }
        }
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        let mut faults = Vec::new();
        let (saved, begun) = (last(said.sure()), last(said.all()) + 1);
        match read(&self.file(), &mut faults) {
            Some(bytes) if !(saved..=begun).any(|number| is(number, &bytes)) => {
                faults.push(wrong(saved, begun, &bytes));
            }
            None if faults.is_empty() => faults.push("the file is missing".to_owned()),
            _ => {}
        }
        Ok(faults)
    }
}

/// Returns the number of the last content that was promised.
fn last(said: &[Line]) -> u64 {
    let saved = said.iter().rev().find_map(|line| match line {
        Line::Saved(number) => Some(*number),
        _ => None,
    });
    saved.unwrap_or(0)
}

/// Returns whether `bytes` are the content with this number.
fn is(number: u64, bytes: &[u8]) -> bool {
    length(number, LENGTHS) == bytes.len() && content(number, LENGTHS) == bytes
}

/// Describes what is wrong with a file that should have one of the contents from `saved` to
/// `begun`.
fn wrong(saved: u64, begun: u64, bytes: &[u8]) -> String {
    let holds = match (0..saved).rev().find(|number| is(*number, bytes)) {
        Some(older) => format!("content {older}"),
        None => describe(bytes, &content(saved, LENGTHS)),
    };
    format!("one of the contents {saved} to {begun} belongs here, and the file holds {holds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a file with the content `there` after content `said` was promised.
    fn found(there: &[u8], said: u64) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let saves = Saves::new(&folder.path().join("save"), Way::ByHand);
        saves.prepare().expect("prepared");
        fs::write(saves.file(), there).expect("written");
        saves.check(&Report::of(&[Line::Ready, Line::Saved(said)], &[])).expect("checked")
    }

    #[test]
    fn the_promised_content_and_the_one_after_it_are_right() {
        for right in [3, 4] {
            assert_eq!(found(&content(right, LENGTHS), 3), Vec::<String>::new());
        }
    }

    #[test]
    fn an_older_a_later_a_short_and_a_mixed_content_are_faults() {
        let older = found(&content(2, LENGTHS), 3);
        assert_eq!(
            older,
            ["one of the contents 3 to 4 belongs here, and the file holds content 2"]
        );
        assert_eq!(found(&content(5, LENGTHS), 3).len(), 1);
        assert_eq!(found(&content(3, LENGTHS)[1..], 3).len(), 1);
        let mut mixed = content(3, LENGTHS);
        mixed[..512].copy_from_slice(&content(4, LENGTHS)[..512]);
        assert_eq!(found(&mixed, 3).len(), 1);
        assert_eq!(found(&[], 3).len(), 1);
    }

    #[test]
    fn a_promise_made_while_the_power_went_need_not_hold_but_may() {
        let folder = tempfile::tempdir().expect("a folder");
        let saves = Saves::new(&folder.path().join("save"), Way::ByHand);
        saves.prepare().expect("prepared");
        let said = Report::of(&[Line::Saved(1)], &[Line::Saved(2)]);
        for (there, faults) in [(0, 1), (1, 0), (2, 0), (3, 0), (4, 1)] {
            fs::write(saves.file(), content(there, LENGTHS)).expect("written");
            let found = saves.check(&said).expect("checked");
            assert_eq!(found.len(), faults, "{found:?}");
        }
    }

    #[test]
    fn a_missing_file_is_a_fault() {
        let folder = tempfile::tempdir().expect("a folder");
        let saves = Saves::new(&folder.path().join("save"), Way::ByHand);
        saves.prepare().expect("prepared");
        fs::remove_file(saves.file()).expect("removed");
        assert_eq!(saves.check(&Report::default()).expect("checked"), ["the file is missing"]);
    }
}
