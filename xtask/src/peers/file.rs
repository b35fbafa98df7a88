//! The file that a peer writes, in the state in which wrote's own file is when the clock starts.

use crate::failure::{Failure, Tried};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What the file's blocks are when the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// There is no file yet.
    New,
    /// Allocated, not written.
    Allocated,
    /// Written before: the same file is overwritten.
    Written,
}

impl Blocks {
    /// Reads the word of `settings.effective.blocks`.
    pub fn parse(word: &str) -> Option<Blocks> {
        [Blocks::New, Blocks::Allocated, Blocks::Written]
            .into_iter()
            .find(|blocks| blocks.word() == word)
    }

    /// The word of `settings.effective.blocks`.
    pub fn word(self) -> &'static str {
        match self {
            Blocks::New => "new",
            Blocks::Allocated => "allocated",
            Blocks::Written => "written",
        }
    }
}

/// The file that a peer writes.
#[derive(Debug)]
pub struct PeerFile {
    path: PathBuf,
    blocks: Blocks,
    size_bytes: u64,
}

impl PeerFile {
    /// A file of `size_bytes` that will be at `path`.
    pub fn new(path: PathBuf, blocks: Blocks, size_bytes: u64) -> PeerFile {
        PeerFile { path, blocks, size_bytes }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long it becomes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether a run that is not counted has to write it first.
    pub fn is_overwritten(&self) -> bool {
        self.blocks == Blocks::Written
    }

    /// Puts it into its state before a run.
    pub fn prepare(&self) -> Result<(), Failure> {
        match self.blocks {
            Blocks::Written => Ok(()),
            Blocks::New => {
                self.remove();
                Ok(())
            }
            Blocks::Allocated => {
                self.remove();
                let path = self.path.display();
                let file = File::create_new(&self.path).tried(&path)?;
                fallocate(&file, FallocateFlags::empty(), 0, self.size_bytes).tried(&path)?;
                file.sync_all().tried(path)
            }
        }
    }

    /// Removes it, where it is there.
    pub fn remove(&self) {
        // It need not be there; what is in the way shows when it is written.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_new_allocated_or_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |blocks| PeerFile::new(folder.path().join("peer"), blocks, 8192);
        file(Blocks::Allocated).prepare().expect("room");
        assert_eq!(std::fs::metadata(folder.path().join("peer")).expect("there").len(), 8192);
        std::fs::write(folder.path().join("peer"), "written").expect("room");
        file(Blocks::Written).prepare().expect("nothing to do");
        assert_eq!(std::fs::read(folder.path().join("peer")).expect("there"), b"written");
        file(Blocks::New).prepare().expect("removed");
        assert!(!folder.path().join("peer").exists());
    }

    #[test]
    fn the_words_of_the_result_are_known() {
        assert_eq!(Blocks::parse("new"), Some(Blocks::New));
        assert_eq!(Blocks::parse("allocated"), Some(Blocks::Allocated));
        assert_eq!(Blocks::parse("written"), Some(Blocks::Written));
        assert_eq!(Blocks::parse("other"), None);
    }
}
