//! The limits of a server with their defaults, and the reasons under which refusals are counted.

use std::time::Duration;

/// The limits of a server. Each is counted when it bites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address.
    pub connections_per_address: usize,
    /// The most bytes of a message.
    pub message_bytes: usize,
    /// Bytes of unfinished messages, of all connections together. Those that have not given the
    /// token that is asked for have a sixteenth as much for themselves.
    pub in_flight_bytes: usize,
    /// Bytes of unsent answers, of all connections together.
    pub unsent_bytes: usize,
    /// Answers of HTTP that are read from logs at a time, as the server was started: the buffers of
    /// each take 6.5 MiB at most.
    pub readers: usize,
    /// How long a connection may take to its first byte.
    pub first_byte: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a message may take from its first byte to its last.
    pub message_time: Duration,
    /// How long a client may read nothing while answers wait.
    pub unread_time: Duration,
    /// The space that stays free on the disk.
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

/// Why a message or a connection is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A message longer than [`Limits::message_bytes`].
    #[error("a message is too long")]
    TooLong,
    /// A message that the log does not take, because of its format or its buffers.
    #[error("{0}")]
    Unfit(String),
    /// Bytes that are not of the door's protocol.
    #[error("{0}")]
    Malformed(&'static str),
    /// Nothing came within [`Limits::first_byte`].
    #[error("nothing came")]
    Silent,
    /// A message took longer than [`Limits::message_time`].
    #[error("a message took too long")]
    Slow,
    /// Answers were not read within [`Limits::unread_time`].
    #[error("answers were not read")]
    Unread,
    /// [`Limits::in_flight_bytes`] or [`Limits::unsent_bytes`] is used up, by this client most.
    #[error("too many bytes are in flight")]
    Memory,
    /// The log has failed, or its disk is full.
    #[error("{0}")]
    Log(wrote::Error),
    /// The token was taken back.
    #[error("the token is not accepted any more")]
    Revoked,
    /// The key of a message stands in the log with other messages.
    #[error("the idempotency key was used for other messages")]
    Reused,
    /// The channel takes no messages now.
    #[error("the log takes no messages now")]
    Closed,
}

impl Refusal {
    /// Returns why the log took no message. A log that is well refuses only the record itself:
    /// another time it would not fit either.
    pub(crate) fn by_log(error: wrote::Error, is_well: bool) -> Refusal {
        match error {
            wrote::Error::Refused { because, .. } if is_well => Refusal::Unfit(because),
            error => Refusal::Log(error),
        }
    }

    /// The value of the label `reason` in the metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Refusal::TooLong => Reason::TooLong,
            Refusal::Malformed(_) | Refusal::Unfit(_) | Refusal::Reused => Reason::Malformed,
            Refusal::Silent => Reason::Silent,
            Refusal::Slow => Reason::Slow,
            Refusal::Unread => Reason::Unread,
            Refusal::Memory => Reason::Memory,
            Refusal::Log(_) | Refusal::Closed => Reason::Log,
            Refusal::Revoked => Reason::Unauthorized,
        }
    }
}

/// The reasons under which refusals are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Connections,
    /// The descriptors that are left are those of the logs.
    Descriptors,
    Address,
    TooLong,
    Malformed,
    /// A part of a message, without the client's end of the stream.
    Unfinished,
    Silent,
    Slow,
    Unread,
    Memory,
    Log,
    Handshake,
    Unauthorized,
}

impl Reason {
    pub(crate) const ALL: [Reason; 13] = [
        Reason::Connections,
        Reason::Descriptors,
        Reason::Address,
        Reason::TooLong,
        Reason::Malformed,
        Reason::Unfinished,
        Reason::Silent,
        Reason::Slow,
        Reason::Unread,
        Reason::Memory,
        Reason::Log,
        Reason::Handshake,
        Reason::Unauthorized,
    ];

    /// Says in a few words what a message was refused for.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Reason::TooLong => "a message was too long",
            Reason::Malformed => "the log cannot hold a message",
            Reason::Unfinished => "a part of a message was dropped",
            Reason::Unauthorized => "a wrong token, or none",
            _ => "a message was refused",
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reason::Connections => "connections",
            Reason::Descriptors => "open_files",
            Reason::Address => "connections_per_address",
            Reason::TooLong => "too_long",
            Reason::Malformed => "malformed",
            Reason::Unfinished => "unfinished",
            Reason::Silent => "first_byte",
            Reason::Slow => "message_time",
            Reason::Unread => "unread_time",
            Reason::Memory => "in_flight_bytes",
            Reason::Log => "log",
            Reason::Handshake => "handshake",
            Reason::Unauthorized => "unauthorized",
        }
    }
}
