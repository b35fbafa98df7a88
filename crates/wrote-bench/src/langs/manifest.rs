//! A language's `manifest.toml`: what it is called, how it is found, built and run.

use crate::Error;
use serde::Deserialize;

/// A manifest, as `langs/README.md` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// As it is shown: `Go`.
    pub name: String,
    /// What its program writes and reads bytes by, where it has no variants: `bufio, 4 KiB`.
    #[serde(default)]
    pub way: String,
    /// How it is installed, one line.
    pub install: String,
    /// Ways to run it, the best first; the first of which all programs are there is taken.
    #[serde(rename = "toolchain")]
    pub toolchains: Vec<Toolchain>,
    /// Programs of this language that do the same in different ways; where there are none, the language is
    /// its own only one.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
}

/// A compiler or interpreter, as commands with placeholders: `{source}`, the folder of the program's text;
/// `{build}`, the folder that it is built into; `{wrote}`, the program `wrote` itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// Prints the version; ends with 0 where the toolchain is there.
    pub version: Vec<String>,
    /// Programs that must be there besides: `java` beside `javac`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Builds the program; nothing where it needs no building.
    #[serde(default)]
    pub build: Vec<String>,
    /// Runs it; the workload's arguments come after.
    pub run: Vec<String>,
}

/// One of several programs of a language.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// Unique among all languages: `cpp-get-put`.
    pub id: String,
    /// As it is shown: `C++ get/put`.
    pub name: String,
    /// What it writes and reads bytes by.
    pub way: String,
    /// What comes after the workload's arguments, for the program to know which one it is.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The tasks that it does, by their first arguments; all where empty.
    #[serde(default)]
    pub tasks: Vec<String>,
}

impl Manifest {
    /// Reads a manifest; `origin` is named in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`], one line: what is wrong, and in which line of the file.
    pub(crate) fn parse(_text: &str, _origin: &str) -> Result<Manifest, Error> {
        todo!()
    }
}
