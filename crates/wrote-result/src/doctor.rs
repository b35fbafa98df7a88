//! The document of `wrote doctor`: one JSON document, `wrote.doctor/1`.

use crate::document::{Host, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.doctor/1";

/// An examination of a path, its disks and the machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Examination {
    /// `wrote.doctor/1`.
    pub schema: String,
    /// The time of the examination, in UTC, to the second: `2026-01-02T03:04:05Z`.
    pub examined_at: String,
    /// The machine.
    pub host: Host,
    /// The folder, the file system and the device of the path.
    pub target: Target,
    /// The checks that apply: first `risk`, then `advice`, `unknown` and `fine`, each in the order
    /// of `docs/doctor.md`. A check of a disk occurs once for each disk.
    pub checks: Vec<Check>,
}

/// The outcome of a check, from the best to the worst.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing needs to be changed.
    #[default]
    Fine,
    /// The check could not read its evidence.
    Unknown,
    /// The setting may cost speed.
    Advice,
    /// Data may be lost or read wrongly, or nothing can be written.
    Risk,
}

crate::words::word!(State);

/// One check and its outcome.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A stable name, such as `scheduler`. Each name is explained in `docs/doctor.md`.
    pub id: String,
    /// The outcome.
    pub state: State,
    /// The disk or layer that the check is about, if there is one: `nvme0n1`.
    pub device: Option<String>,
    /// The finding in plain words.
    pub text: String,
    /// The figures on which the finding is based, with their sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The reason for `unknown`.
    pub because: Option<String>,
    /// The cost and its source, or how to measure the cost on this machine.
    pub costs: Option<String>,
    /// How to change the setting, if it can be changed.
    pub change: Option<Change>,
    /// The sources of the check's statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// A figure as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The file or the system call that the figure comes from.
    pub from: String,
    /// The content of the file, or the result of the system call.
    pub value: String,
}

/// A change that the user can make. `wrote doctor` makes no change itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The change in words, if a command is not enough.
    pub how: Option<String>,
    /// Shell commands for this device. Most of them need root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// How to make the change permanent, so that it survives a restart of the machine.
    pub lasting: Option<String>,
    /// The risk of the change.
    pub risk: String,
}

impl Check {
    /// Sets the disk or layer that the check is about.
    pub fn of(mut self, device: &str) -> Check {
        self.device = Some(device.into());
        self
    }

    /// Adds evidence.
    pub fn found(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Check {
        self.evidence.extend(evidence);
        self
    }
}

impl Evidence {
    /// Returns a figure with its source.
    pub fn new(from: impl Into<String>, value: impl Into<String>) -> Evidence {
        Evidence { from: from.into(), value: value.into() }
    }

    /// Returns the value as a number; `None` if it is not one.
    pub fn number(&self) -> Option<i64> {
        self.value.parse().ok()
    }

    /// Returns the value as an unsigned number; `None` if it is not one.
    pub fn unsigned(&self) -> Option<u64> {
        self.value.parse().ok()
    }

    /// Returns the word in brackets, as in `none [mq-deadline] kyber`, or the whole value if there
    /// are no brackets.
    pub fn chosen(&self) -> &str {
        let bracketed = self.value.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        bracketed.map_or(&self.value, |(chosen, _)| chosen)
    }
}
