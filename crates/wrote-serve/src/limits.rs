//! The server's limits with their defaults, and the reasons for refusals.

use std::time::Duration;
use wrote_result::words;

/// The server's limits. Each refusal is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most open connections.
    pub connections: usize,
    /// The most open connections from one address.
    pub connections_per_address: usize,
    /// The maximum length of a message.
    pub message_bytes: usize,
    /// The most bytes of unfinished messages, over all connections. Clients that still have to give
    /// a token share an additional sixteenth.
    pub in_flight_bytes: usize,
    /// The most bytes of unsent answers, over all connections.
    pub unsent_bytes: usize,
    /// The most HTTP answers that read from logs concurrently, fixed when the server starts. Each
    /// takes up to 6.5 MiB of buffers.
    pub readers: usize,
    /// The time from accepting a connection to its first byte.
    pub first_byte: Duration,
    /// The time for a TLS handshake.
    pub handshake: Duration,
    /// The time from a message's first byte to its last.
    pub message_time: Duration,
    /// The time for which a client may leave answers unread.
    pub unread_time: Duration,
    /// The disk space to keep free.
    pub free_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 65_536,
            connections_per_address: 65_536,
            message_bytes: 1 << 20,
            in_flight_bytes: 64 << 20,
            unsent_bytes: 32 << 20,
            readers: 24,
            first_byte: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            message_time: Duration::from_secs(30),
            unread_time: Duration::from_secs(30),
            free_bytes: 256 << 20,
        }
    }
}

/// Why a message or connection is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A message is longer than [`Limits::message_bytes`].
    #[error("a message is too long")]
    TooLong,
    /// The log can't hold the message, because of its format or buffers.
    #[error("{0}")]
    Unfit(String),
    /// The bytes violate the protocol.
    #[error("{0}")]
    Malformed(&'static str),
    /// No byte arrived within [`Limits::first_byte`].
    #[error("nothing came")]
    Silent,
    /// A message took longer than [`Limits::message_time`].
    #[error("a message took too long")]
    Slow,
    /// Answers were not read within [`Limits::unread_time`].
    #[error("answers were not read")]
    Unread,
    /// [`Limits::in_flight_bytes`] or [`Limits::unsent_bytes`] is used up, mostly by this client.
    #[error("too many bytes are in flight")]
    Memory,
    /// The log has failed, or its disk is full.
    #[error("{0}")]
    Log(wrote::Error),
    /// The token was revoked.
    #[error("the token is not accepted any more")]
    Revoked,
    /// The channel accepts no messages now.
    #[error("the log takes no messages now")]
    Closed,
}

impl Refusal {
    /// Converts an error of the log. If the log is well, the error concerns the record, which would
    /// never fit.
    pub(crate) fn by_log(error: wrote::Error, is_well: bool) -> Refusal {
        match error {
            wrote::Error::Refused { because, .. } if is_well => Refusal::Unfit(because),
            error => Refusal::Log(error),
        }
    }

    /// Returns the value of the label `reason` in the metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Refusal::TooLong => Reason::TooLong,
            Refusal::Malformed(_) | Refusal::Unfit(_) => Reason::Malformed,
            Refusal::Silent => Reason::Silent,
            Refusal::Slow => Reason::Slow,
            Refusal::Unread => Reason::Unread,
            Refusal::Memory => Reason::Memory,
            Refusal::Log(_) | Refusal::Closed => Reason::Log,
            Refusal::Revoked => Reason::Unauthorized,
        }
    }
}

words! {
    /// Reasons of refusals, for counting.
    pub(crate) enum Reason {
        Connections = "connections",
        /// The remaining descriptors are reserved for logs.
        Descriptors = "open_files",
        Address = "connections_per_address",
        TooLong = "too_long",
        Malformed = "malformed",
        /// A partial message on a stream that ended abnormally.
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
            Reason::Unauthorized => "a wrong token, or none",
            _ => "a message was refused",
        }
    }
}
