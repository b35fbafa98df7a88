//! A subject that copies a folder to new names.

use crate::verbs::power_cut::content::content;
use crate::verbs::power_cut::copies::check_copies;
use crate::verbs::power_cut::found::{CheckResult, describe, read};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wrote::{Action, CopyOptions, Error};

/// The files of the source: their paths and lengths.
const FILES: [(&str, usize); 5] = [
    ("empty", 0),
    ("short", 100),
    ("inner/block", 4096),
    ("inner/deep/long", 300_001),
    ("inner/deep/odd", 65_537),
];
/// The number of copies to keep; the oldest is removed before the next is made.
const KEPT: u64 = 6;

/// Copies 0, 1, 2, ..
#[derive(Debug)]
pub struct Trees {
    folder: PathBuf,
}

impl Trees {
    /// Puts the copies into a new folder.
    pub fn new(folder: &Path) -> Trees {
        Trees { folder: folder.to_owned() }
    }

    fn source(&self) -> PathBuf {
        self.folder.join("source")
    }

    fn copy(&self, number: u64) -> PathBuf {
        self.folder.join(format!("copy-{number}"))
    }

    /// Compares copy `number` with the source; `None` where there is no copy.
    fn compare(&self, number: u64, faults: &mut Vec<String>) -> Option<()> {
        let copy = self.copy(number);
        if !copy.exists() {
            return None;
        }
        for (file, (name, _)) in FILES.into_iter().enumerate() {
            let expected = bytes_of(file);
            match read(&copy.join(name), faults) {
                Some(bytes) if bytes == expected => {}
                Some(bytes) => {
                    faults.push(format!("copy-{number}/{name}: {}", describe(&bytes, &expected)));
                }
                None => faults.push(format!("copy-{number}/{name} is missing")),
            }
        }
        Some(())
    }
}

fn bytes_of(file: usize) -> Vec<u8> {
    let length = FILES[file].1;
    content(file as u64, length..=length)
}

impl Subject for Trees {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        let source = self.source();
        fs::create_dir_all(source.join("inner/deep"))?;
        for (file, (name, _)) in FILES.into_iter().enumerate() {
            let path = source.join(name);
            fs::write(&path, bytes_of(file))?;
            fs::File::open(path)?.sync_all()?;
        }
        for folder in ["inner/deep", "inner", "."] {
            sync_folder(&source.join(folder))?;
        }
        sync_folder(&self.folder)
    }

    fn write(&mut self, _seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let options = || CopyOptions::new().bs_bytes(64 << 10).iodepth(4);
        let mut number = 0_u64;
        loop {
            if let Some(old) = number.checked_sub(KEPT) {
                // Renamed first, so that a copy under its own name is whole or absent.
                let (old, gone) = (self.copy(old), self.folder.join(".gone.wrote-"));
                let refused = |error| Error::file(&old, Action::Remove, None, &error);
                fs::rename(&old, &gone)
                    .and_then(|()| fs::remove_dir_all(&gone))
                    .map_err(refused)?;
            }
            options().copy_tree(self.source(), self.copy(number))?;
            say(&Line::Copied(number))?;
            number += 1;
        }
    }

    fn check(&self, said: &Report) -> io::Result<CheckResult> {
        let is_source = |name: &str| name == "source";
        check_copies(&self.folder, KEPT, said, is_source, |copy, faults| self.compare(copy, faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::power_cut::said::parse;

    #[test]
    fn a_copy_is_whole_or_absent_and_a_promised_one_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let trees = Trees::new(&folder.path().join("tree"));
        trees.prepare().expect("prepared");
        let check = |said: &str| trees.check(&parse(said).expect("lines")).expect("checked");
        assert_eq!((check("").in_flight, check("").faults), ("absent", vec![]));
        assert_eq!(check("copied 0").faults, ["copy-0 was promised and is missing"]);

        wrote::copy_tree(trees.source(), trees.copy(0)).expect("copied");
        assert_eq!((check("").in_flight, check("copied 0").faults), ("whole", vec![]));

        fs::remove_file(trees.copy(0).join("short")).expect("removed");
        fs::write(trees.copy(0).join("empty"), "x").expect("written");
        let faults = ["copy-0/empty: 1 bytes, where 0 belong", "copy-0/short is missing"];
        assert_eq!(check("").faults, faults);
    }
}
