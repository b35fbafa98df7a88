//! A program built into the cache folder: once for each version of its text and of its compiler.

use super::catalogue::Chosen;
use crate::{Error, Stop};
use std::path::{Path, PathBuf};

/// A program that is ready to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Built {
    /// The command, with no placeholders left; the workload's arguments come after.
    pub run: Vec<String>,
    /// What comes after those.
    pub arguments: Vec<String>,
    /// The folder that it was built into.
    pub folder: PathBuf,
}

/// Builds the program below `cache`, or finds it there, where an earlier run built the same text by the same
/// toolchain. It comes to its place whole: a build that is killed leaves nothing that is taken for one.
/// `Ok(Err(..))` is why the compiler could not, one line.
pub(super) fn build(
    _chosen: &Chosen,
    _cache: &Path,
    _stop: &Stop,
) -> Result<Result<Built, String>, Error> {
    todo!()
}
