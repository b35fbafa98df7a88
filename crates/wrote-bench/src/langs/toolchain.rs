//! A language's compiler or interpreter: whether it is there, and what it says of itself.

use super::manifest::Manifest;
use std::path::Path;

/// A toolchain that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tools {
    /// What it says of itself, one line.
    pub version: String,
    /// The command that builds, its program as a path; still with `{source}` and `{build}`. Empty where
    /// nothing is built.
    pub build: Vec<String>,
    /// The command that runs.
    pub run: Vec<String>,
}

/// The first toolchain of the manifest that is there, else why none is, one line. Programs are looked for
/// in `PATH` and then in `~/.local/bin`, which many shells leave out.
pub(super) fn find(_manifest: &Manifest, _wrote: Option<&Path>) -> Result<Tools, String> {
    todo!()
}
