//! One check: what was found, what it costs, and how to change it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a check came to, from the least to the worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing to change.
    Fine,
    /// It could not be found out.
    Unknown,
    /// It may cost speed.
    Advice,
    /// Data may be lost or read wrongly, or nothing can be written.
    Risk,
}

/// What one check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A stable name: `scheduler`. Each is explained in `docs/doctor.md`.
    pub id: String,
    /// What it came to.
    pub state: State,
    /// The disk or layer that it is about, where it is about one: `nvme0n1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What was found, in plain words.
    pub text: String,
    /// The figures that it rests on, and where they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Of `unknown`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What it costs, and who says so; or how to find out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// How to change it, where it can be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Where the meaning of all this comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// A figure, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The file or the system call that says so.
    pub from: String,
    /// What it says.
    pub value: String,
}

/// How something is changed. Nothing of it is ever run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// In words, where no command does it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Commands for a shell, ready for this very device. Most need root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What makes it last over the next start of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// What may go wrong then.
    pub risk: String,
}

impl Check {
    fn new(id: &str, state: State, text: impl Into<String>) -> Check {
        Check {
            id: id.into(),
            state,
            device: None,
            text: text.into(),
            evidence: Vec::new(),
            because: None,
            costs: None,
            change: None,
            sources: Vec::new(),
        }
    }

    /// Nothing to change.
    pub(super) fn fine(id: &str, text: impl Into<String>) -> Check {
        Check::new(id, State::Fine, text)
    }

    /// It may cost speed.
    pub(super) fn advice(id: &str, text: impl Into<String>) -> Check {
        Check::new(id, State::Advice, text)
    }

    /// Data is in danger, or nothing can be written.
    pub(super) fn risk(id: &str, text: impl Into<String>) -> Check {
        Check::new(id, State::Risk, text)
    }

    /// It could not be found out.
    pub(super) fn unknown(id: &str, text: impl Into<String>, because: impl Into<String>) -> Check {
        Check { because: Some(because.into()), ..Check::new(id, State::Unknown, text) }
    }

    pub(super) fn of(mut self, device: &str) -> Check {
        self.device = Some(device.into());
        self
    }

    pub(super) fn found(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Check {
        self.evidence.extend(evidence);
        self
    }

    pub(super) fn costs(mut self, costs: impl Into<String>) -> Check {
        self.costs = Some(costs.into());
        self
    }

    pub(super) fn change(mut self, change: Change) -> Check {
        self.change = Some(change);
        self
    }

    pub(super) fn source(mut self, source: impl Into<String>) -> Check {
        self.sources.push(source.into());
        self
    }
}

impl Change {
    /// By a command.
    pub(super) fn run(command: impl Into<String>) -> Change {
        Change { commands: vec![command.into()], ..Change::default() }
    }

    /// In words.
    pub(super) fn how(how: impl Into<String>) -> Change {
        Change { how: Some(how.into()), ..Change::default() }
    }

    pub(super) fn lasting(mut self, lasting: impl Into<String>) -> Change {
        self.lasting = Some(lasting.into());
        self
    }

    pub(super) fn risk(mut self, risk: impl Into<String>) -> Change {
        self.risk = risk.into();
        self
    }
}

impl Evidence {
    pub(super) fn new(from: impl Into<String>, value: impl Into<String>) -> Evidence {
        Evidence { from: from.into(), value: value.into() }
    }

    /// The value as a number, where it is one.
    pub(super) fn number(&self) -> Option<i64> {
        self.value.parse().ok()
    }

    /// The word in brackets: `none [mq-deadline] kyber`; all of it where there are none.
    pub(super) fn chosen(&self) -> &str {
        let bracketed = self.value.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        bracketed.map_or(&self.value, |(chosen, _)| chosen)
    }
}
