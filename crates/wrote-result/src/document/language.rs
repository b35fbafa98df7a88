//! The languages of `wrote langs`: whether each could be run, and what failed. A file of its own,
//! since rows do not refer to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// A language with one of its programs. A language that has two usual ways occurs twice.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Language {
    /// Unique, and the last part of its rows' names: `cpp`, `cpp-get-put`.
    pub id: String,
    /// The displayed name: `C++ get/put`.
    pub name: String,
    /// How its program writes bytes: `BufWriter, 8 KiB`. A row has the way of its own workload.
    pub way: String,
    /// Whether it was run.
    pub state: State,
    /// The version line of its compiler or interpreter: `go version go1.26 linux/amd64`.
    pub version: Option<String>,
    /// Why it was not run: the missing programs, or its compiler's message.
    pub because: Option<String>,
    /// How it is installed, where it is missing: `apt install ruby`.
    pub install: Option<String>,
    /// The rows in which its program failed, each with the reason in one line: `the file's byte
    /// 12345 is 7, not 57`, `took longer than 15 min`. The result has none of these rows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, String>,
}

/// Whether a language can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its toolchain is installed, and its program was built or needs no build.
    Ready,
    /// Its toolchain is not installed.
    Missing,
    /// Its toolchain is installed, and could not build the program.
    BuildFailed,
}
