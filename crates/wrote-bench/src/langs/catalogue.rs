//! The languages there are: those that are embedded, and those that the user adds.

use super::Request;
use super::manifest::{Manifest, Variant};
use super::result::Language;
use super::toolchain::Tools;
use super::workload::Task;
use crate::Error;
use std::path::PathBuf;

/// Every language, embedded or added.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) entries: Vec<Entry>,
}

/// One language: its folder's name, its manifest, its program's text.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The folder's name: `go`.
    pub id: String,
    pub manifest: Manifest,
    /// The program's files, by their paths within the folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// What [`Catalogue::find`] tells of one language or variant, for `wrote langs --list`.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is told of it in results.
    pub language: Language,
}

/// One program that is called for and whose toolchain is there, to be built and run.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub entry: Entry,
    pub variant: Variant,
    pub tools: Tools,
}

/// Every language that is embedded, and those of the folders in `add`.
///
/// # Errors
///
/// [`Error::Usage`], one line, where a folder of `add` holds no language, or one whose id is taken.
pub fn catalogue(_add: &[PathBuf]) -> Result<Catalogue, Error> {
    todo!()
}

impl Catalogue {
    /// The ids of all languages and variants, in the order of the catalogue.
    pub fn ids(&self) -> Vec<String> {
        todo!()
    }

    /// Looks for every language's toolchain: nothing is built.
    pub fn find(&self, _wrote: Option<&std::path::Path>) -> Vec<Found> {
        todo!()
    }

    /// What `request` calls for: the programs whose toolchains are there, and everything that is told of
    /// all of them (also of those that are missing), in the order of the catalogue.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where a name of `only` is no id, with the ids there are.
    pub(super) fn choose(&self, _request: &Request) -> Result<(Vec<Chosen>, Vec<Language>), Error> {
        todo!()
    }
}

impl Chosen {
    /// Whether the program does this.
    pub(super) fn does(&self, _task: Task) -> bool {
        todo!()
    }
}
