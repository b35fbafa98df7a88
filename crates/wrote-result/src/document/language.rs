//! The languages of `wrote langs`: whether each could be run, and what failed. They are in a
//! separate file because rows do not refer to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// A language with one of its programs. A language with two usual methods occurs twice.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Language {
    /// A unique name, which is also the last part of the rows' names: `cpp`, `cpp-get-put`.
    pub id: String,
    /// The name to display: `C++ get/put`.
    pub name: String,
    /// How the program writes bytes: `BufWriter, 8 KiB`. A row states the method of its workload.
    pub way: String,
    /// Whether the language can be run.
    pub state: State,
    /// The version line of the compiler or interpreter: `go version go1.26 linux/amd64`.
    pub version: Option<String>,
    /// The reason why the language was not run: the missing programs, or the message of its
    /// compiler.
    pub because: Option<String>,
    /// How to install the language, if it is missing: `apt install ruby`.
    pub install: Option<String>,
    /// The rows in which the program failed, each with the reason in one line:
    /// `the file's byte 12345 is 7, not 57`, `took longer than 15 min`. The result contains none of
    /// these rows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, String>,
}

/// Whether a language can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The toolchain is installed, and the program was built or needs no build.
    Ready,
    /// The toolchain is not installed.
    Missing,
    /// The toolchain is installed, but could not build the program.
    BuildFailed,
}
