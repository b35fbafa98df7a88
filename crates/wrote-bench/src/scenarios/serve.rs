//! The scenario `serve`: many connections send short messages to a server that logs them.

mod clients;
mod drive;
mod findings;
mod message;
mod plan;
mod rounds;
mod server;
mod settings;

pub use settings::{Serve, ServerUrl};

use crate::scenario::{self, Call, Listed, Scenario};
use clients::{Frame, Protocol};
use plan::Plan;
use wrote::Survives;
use wrote_jobs::findings::Evidence;
use wrote_result::Error;
use wrote_result::document::Finding;

pub(crate) const NAME: &str = "serve";

/// A named protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Door {
    /// `serve/lines`. Connections and window follow in a row's name: `serve/relp/64/128`.
    pub name: &'static str,
    /// A description.
    pub words: &'static str,
    pub protocol: Protocol,
    /// The URL that our server listens on.
    pub listen: &'static str,
    /// Whether `--only serve` measures it.
    pub is_usual: bool,
    /// The default connections, and windows if the server answers.
    pub connections: &'static [u32],
    pub windows: &'static [u32],
}

const fn frames(
    name: &'static str,
    words: &'static str,
    frame: Frame,
    listen: &'static str,
) -> Door {
    let is_usual = matches!(frame, Frame::Lines);
    let protocol = Protocol::Frames(frame);
    Door { name, words, protocol, listen, is_usual, connections: &[1, 64, 1000], windows: &[] }
}

const fn answered(
    name: &'static str,
    words: &'static str,
    protocol: Protocol,
    listen: &'static str,
) -> Door {
    let is_usual = true;
    Door { name, words, protocol, listen, is_usual, connections: &[1, 64], windows: &[1, 128] }
}

/// All protocols, in the order of measurement.
pub(crate) const DOORS: &[Door] = &[
    frames("serve/lines", "lines", Frame::Lines, "tcp://127.0.0.1:0"),
    frames("serve/octets", "octet counts", Frame::Octets, "tcp://127.0.0.1:0?frame=octets"),
    frames("serve/nul", "NUL", Frame::Nul, "tcp://127.0.0.1:0?frame=nul"),
    frames("serve/u32", "u32 lengths", Frame::U32, "tcp://127.0.0.1:0?frame=u32"),
    answered("serve/relp", "RELP", Protocol::Relp, "relp://127.0.0.1:0"),
    answered("serve/resp", "XADD", Protocol::Resp, "resp://127.0.0.1:0"),
    Door {
        connections: &[64],
        windows: &[100],
        ..answered("serve/http", "POST", Protocol::Http, "http://127.0.0.1:0")
    },
];

/// One row: a protocol, its connections, and its window if the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub door: Door,
    pub connections: u32,
    pub window: Option<u32>,
}

impl Scenario for Serve {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |door: &Door| Listed {
            scenario: NAME,
            row: door.name,
            way: door.words,
            survives: Some(door.acknowledged()),
        };
        DOORS.iter().map(listed).collect()
    }

    /// Clients and server share the machine's processors, so more ranks would not measure the disk.
    fn takes_ranks(&self) -> bool {
        false
    }

    fn plan(&self, call: &Call) -> Result<Vec<Box<dyn scenario::Plan>>, Error> {
        Ok(scenario::boxed(Plan::new(self, call)?))
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        findings::client_limited(evidence).into_iter().collect()
    }
}

impl Door {
    /// Returns what an acknowledged message survives with our server (M3). A message without an
    /// answer counts as acknowledged once the kernel has it.
    fn acknowledged(&self) -> Survives {
        if self.protocol.answers() { Survives::PowerLoss } else { Survives::Nothing }
    }
}

impl Way {
    /// `serve/lines/64`, `serve/relp/64/128`.
    pub(crate) fn name(&self) -> String {
        let Way { door, connections, window } = self;
        match window {
            Some(window) => format!("{}/{connections}/{window}", door.name),
            None => format!("{}/{connections}", door.name),
        }
    }

    /// A description: `RELP, 64, window 128`.
    fn words(&self) -> String {
        let Way { door, connections, window } = self;
        match (window, door.protocol) {
            (Some(window), Protocol::Http) => {
                format!("{}, {connections}, {window} each", door.words)
            }
            (Some(window), _) => format!("{}, {connections}, window {window}", door.words),
            (None, _) => format!("{}, {connections}", door.words),
        }
    }
}

#[cfg(test)]
mod tests;
