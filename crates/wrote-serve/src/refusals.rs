//! Counts refusals, and logs which client met which limit, throttled by kind.

use crate::limits::{Limits, Reason};
use crate::port::Port;
use crate::throttle::Throttle;
use std::fmt::{self, Display};
use std::net::IpAddr;

/// The throttled log lines of one listener, by reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Throttle; Reason::ALL.len()]);

/// A client as named in log lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub Option<IpAddr>);

impl Port {
    /// Counts a refused connection or request.
    pub(crate) fn refuse(&self, client: Client, reason: Reason, because: impl Display) {
        self.metrics.refuse(reason);
        self.say(client, reason, because);
    }

    /// Counts a refused message.
    pub(crate) fn reject(&self, client: Client, reason: Reason, because: impl Display) {
        self.metrics.reject(reason);
        self.say(client, reason, because);
    }

    /// Logs a line of this kind, unless there was one a moment ago.
    pub(crate) fn say(&self, client: Client, reason: Reason, because: impl Display) {
        // The log has reported its reason itself.
        if reason != Reason::Log {
            let limit = Limit { reason, limits: &self.settings.borrow().limits };
            let line = format_args!("{}: {client}: {because}{limit}", self.listen);
            self.refusals.0[reason as usize].warn(line);
        }
    }
}

impl Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.to_canonical().fmt(f),
            None => f.write_str("a local client"),
        }
    }
}

/// A limit that was exceeded, by its key.
struct Limit<'a> {
    reason: Reason,
    limits: &'a Limits,
}

impl Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { connections, connections_per_address, message_bytes, .. } = *self.limits;
        let Limits { first_byte, handshake, message_time, unread_time, .. } = *self.limits;
        let key = self.reason.as_str();
        match self.reason {
            Reason::Connections => write!(f, " ({key}: {connections})"),
            Reason::Address => write!(f, " ({key}: {connections_per_address})"),
            Reason::TooLong => write!(f, " (message_bytes: {message_bytes})"),
            Reason::Silent => write!(f, " ({key}: {first_byte:?})"),
            Reason::Slow => write!(f, " ({key}: {message_time:?})"),
            Reason::Unread => write!(f, " ({key}: {unread_time:?})"),
            Reason::Memory => {
                let (messages, answers) = (self.limits.in_flight_bytes, self.limits.unsent_bytes);
                write!(f, " ({key}: {messages}, unsent_bytes: {answers})")
            }
            Reason::Handshake => write!(f, " ({key}: {handshake:?})"),
            _ => Ok(()),
        }
    }
}
