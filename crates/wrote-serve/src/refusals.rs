//! Refusals: why messages or connections are refused, and the throttled log lines about them.

use crate::config::Limits;
use crate::lock;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wrote_result::words;

/// The minimum time between two warnings of the same kind.
const PAUSE: Duration = Duration::from_secs(5);

/// The reason why a message or connection is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The message is longer than [`Limits::message_bytes`].
    #[error("a message is too long")]
    TooLong,
    /// The log can't hold the message because of the log's format or buffers.
    #[error("{0}")]
    Unfit(String),
    /// The bytes violate the protocol.
    #[error("{0}")]
    Malformed(&'static str),
    /// The head of a request is longer than the server accepts.
    #[error("a request's head has over 16 KiB or 100 fields")]
    LongHead,
    /// The head of a request took longer than [`Limits::message_time`].
    #[error("a request's head took too long")]
    SlowHead,
    /// No byte arrived within [`Limits::first_byte`].
    #[error("nothing came")]
    Silent,
    /// The message took longer than [`Limits::message_time`].
    #[error("a message took too long")]
    Slow,
    /// Answers were not read within [`Limits::unread_time`].
    #[error("answers were not read")]
    Unread,
    /// [`Limits::in_flight_bytes`] or [`Limits::unsent_bytes`] is exhausted, mostly by this client.
    #[error("too many bytes are in flight")]
    Memory,
    /// The log has failed, or its disk is full.
    #[error("{0}")]
    Log(wrote::Error),
    /// The token was revoked.
    #[error("the token is not accepted any more")]
    Revoked,
    /// The channel currently accepts no messages.
    #[error("the log accepts no messages now")]
    Closed,
}

impl Refusal {
    /// Converts an error of the log. If the log has not failed, the error concerns the record,
    /// which would never fit.
    pub(crate) fn by_log(error: wrote::Error, is_well: bool) -> Refusal {
        match error {
            wrote::Error::Refused { .. } | wrote::Error::TooLong { .. } if is_well => {
                Refusal::Unfit(error.reason().to_string())
            }
            error => Refusal::Log(error),
        }
    }

    /// Returns the value of the label `reason` in the metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Refusal::TooLong => Reason::TooLong,
            Refusal::Malformed(_) | Refusal::Unfit(_) | Refusal::LongHead => Reason::Malformed,
            Refusal::Silent => Reason::Silent,
            Refusal::Slow | Refusal::SlowHead => Reason::Slow,
            Refusal::Unread => Reason::Unread,
            Refusal::Memory => Reason::Memory,
            Refusal::Log(_) | Refusal::Closed => Reason::Log,
            Refusal::Revoked => Reason::Unauthorized,
        }
    }
}

words! {
    /// The reasons of refusals. Each is counted separately.
    pub(crate) enum Reason {
        Connections = "connections",
        /// The remaining descriptors are reserved for logs and readers.
        Descriptors = "open_files",
        TooLong = "too_long",
        Malformed = "malformed",
        /// A partial message was received on a stream that ended abnormally.
        Unfinished = "unfinished",
        Silent = "first_byte",
        Slow = "message_time",
        Unread = "unread_time",
        Memory = "in_flight_bytes",
        Log = "log",
        Handshake = "handshake",
        Unauthorized = "unauthorized",
    }
}

impl Reason {
    /// Describes the reason in a few words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Reason::TooLong => "a message was too long",
            Reason::Malformed => "the log cannot hold a message",
            Reason::Unfinished => "a part of a message was dropped",
            Reason::Unauthorized => "refused: no valid token",
            _ => "a message was refused",
        }
    }
}

/// The throttled log lines of one listener, by reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Throttle; Reason::ALL.len()]);

impl Refusals {
    /// Logs a line with this reason, unless one was logged a moment ago.
    pub(crate) fn say(&self, reason: Reason, limits: &Limits, line: impl Display) {
        let limit = Limit { reason, limits };
        self.0[reason as usize].warn(format_args!("{line}{limit}"));
    }
}

/// A client as it is named in log lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub Option<IpAddr>);

impl Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.to_canonical().fmt(f),
            None => f.write_str("a local client"),
        }
    }
}

/// The limit that was exceeded, shown with its key.
struct Limit<'a> {
    reason: Reason,
    limits: &'a Limits,
}

impl Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { connections, message_bytes, in_flight_bytes, .. } = self.limits;
        let key = self.reason.as_str();
        let time = match self.reason {
            Reason::Connections => return write!(f, " ({key}: {connections})"),
            Reason::TooLong => return write!(f, " (message_bytes: {message_bytes})"),
            Reason::Memory => {
                let answers = self.limits.unsent_bytes;
                return write!(f, " ({key}: {in_flight_bytes}, unsent_bytes: {answers})");
            }
            Reason::Silent => self.limits.first_byte,
            Reason::Slow => self.limits.message_time,
            Reason::Unread => self.limits.unread_time,
            Reason::Handshake => self.limits.handshake,
            _ => return Ok(()),
        };
        write!(f, " ({key}: {time:?})")
    }
}

/// Warnings of one kind. At most one is logged every five seconds, so that no client can fill a
/// disk.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When the last warning was logged, and how many have been suppressed since then.
    last: Mutex<(Option<Instant>, u64)>,
}

impl Throttle {
    /// Logs the warning, or counts it for the next one.
    pub(crate) fn warn(&self, text: impl Display) {
        let mut last = lock(&self.last);
        let (before, left_out) = *last;
        if before.is_some_and(|before| before.elapsed() < PAUSE) {
            last.1 += 1;
            return;
        }
        *last = (Some(Instant::now()), 0);
        drop(last);
        match left_out {
            0 => log::warn!("{text}"),
            _ => log::warn!("{text} (and {left_out} more before)"),
        }
    }
}
