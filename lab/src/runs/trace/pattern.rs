//! The methods that programs use to save a file, step by step.

use super::steps::{Opened, WRITE_BYTES};
use std::fs;
use std::io;
use std::path::Path;

/// A method of saving a file.
#[derive(Debug)]
pub struct Pattern {
    /// The name of the method.
    pub name: &'static str,
    /// The steps, separated by commas. Each is a verb and its files.
    pub steps: &'static str,
    /// Whether the file exists before the first step.
    pub has_old: bool,
    /// Whether a reader expects either the old or the new content at each moment.
    pub is_whole: bool,
}

/// The file that is saved. Some patterns write another file first.
pub const FILE: &str = "file";
/// A copy of the old file, which a reader uses if the file is empty.
const BACKUP: &str = "file~";
const OLD: [u8; WRITE_BYTES] = [b'O'; WRITE_BYTES];

const fn made(name: &'static str, steps: &'static str) -> Pattern {
    Pattern { name, steps, has_old: false, is_whole: false }
}

const fn changed(name: &'static str, steps: &'static str) -> Pattern {
    Pattern { name, steps, has_old: true, is_whole: false }
}

const fn saved(name: &'static str, steps: &'static str) -> Pattern {
    Pattern { name, steps, has_old: true, is_whole: true }
}

/// All patterns.
pub const PATTERNS: [Pattern; 23] = [
    saved("rewrite", "empty file, write file"),
    saved("rewrite, fsync", "empty file, write file, fsync file"),
    saved("cut to 0, fsync", "open file, clear file, write file, fsync file"),
    // The steps of vim, without the flush of the backup.
    saved(
        "backup, cut to 0, fsync",
        "backup file file~, open file, clear file, write file, fsync file, unlink file~",
    ),
    saved("rename", "create t, write t, close t, rename t file"),
    saved("rename, fsync before", "create t, write t, fsync t, close t, rename t file"),
    saved("rename, fsync after", "create t, write t, rename t file, fsync t"),
    saved("rename, fsync, folder", "create t, write t, fsync t, close t, rename t file, folder"),
    saved("rename, folder", "create t, write t, close t, rename t file, folder"),
    saved("rename, sync", "create t, write t, close t, rename t file, sync"),
    saved("unlink, rename", "create t, write t, fsync t, unlink file, rename t file, folder"),
    made("new name, fsync", "create t, write t, fsync t, close t, rename t file"),
    made("link, fsync", "create t, write t, fsync t, close t, link t file"),
    made("create", "create file, write file"),
    made("create, fsync", "create file, write file, fsync file"),
    made("create, fsync, folder", "create file, write file, fsync file, folder"),
    made("create, O_DIRECT", "direct file, write file, folder"),
    changed("append", "append file, write file"),
    changed("append, fdatasync", "append file, write file, fdatasync file"),
    changed("append, O_DSYNC", "dsync file, write file"),
    changed("in place, O_DIRECT", "over file, write file"),
    changed("cut", "open file, cut file"),
    changed("unlink", "unlink file"),
];

impl Pattern {
    /// Creates a new folder, with the old file if the pattern has one.
    pub fn prepare(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)?;
        if self.has_old { fs::write(folder.join(FILE), OLD) } else { Ok(()) }
    }

    /// Returns the steps as separate words.
    pub fn steps(&self) -> Vec<&'static str> {
        self.steps.split(", ").collect()
    }

    /// Performs the first `steps` steps in a folder. The files that they opened stay open in the
    /// returned value.
    pub fn run(&self, folder: &Path, steps: usize) -> io::Result<Opened> {
        let mut opened = Opened::default();
        let steps = &self.steps()[..steps];
        steps.iter().try_for_each(|step| opened.take(step, folder)).map(|()| opened)
    }
}

/// Returns the file's content, or the backup's if the file is empty; `None` if there is no file.
pub fn content(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = |name| match fs::read(folder.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    };
    match read(FILE)? {
        Some(bytes) if bytes.is_empty() => Ok(read(BACKUP)?.or(Some(bytes))),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_ends_with_other_content_than_it_began() {
        // The folder is on a disk, because memory may refuse direct writes.
        let place = crate::fixtures::folder();
        for pattern in &PATTERNS {
            let folder = place.path().join(pattern.name);
            pattern.prepare(&folder).unwrap();
            let before = content(&folder).unwrap();
            let steps = pattern.steps().len();
            pattern.run(&folder, steps).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
            assert_ne!(content(&folder).unwrap(), before, "{}", pattern.name);
        }
    }
}
