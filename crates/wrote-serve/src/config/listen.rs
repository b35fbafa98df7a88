//! Listeners: their URLs, protocols and promised durability.

use crate::target::Level;
use std::fmt;
use std::path::{Path, PathBuf};
use wrote_result::words;

/// The listener that error messages show as an example.
pub(super) const EXAMPLE: &str = "tcp://127.0.0.1:5140";
/// The prefix of a host that refers to a socket by name: `tcp://fd:NAME`.
const BY_NAME: &str = "fd:";
/// The maximum length of a stamp without the listener: time, address, certificate name (RFC 1035:
/// 255 bytes), and an address chosen by the kernel.
const STAMP_BYTES_MAX: usize = 1024;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Door {
    /// Messages framed on a stream, without answers.
    Frames(Frame),
    /// One message per datagram, without answers.
    Datagrams,
    /// RELP as spoken by rsyslog's `omrelp`.
    Relp,
    /// RESP2 and RESP3 as spoken by Redis clients.
    Resp,
    /// HTTP/1.1.
    Http,
}

words! {
    /// The framing of messages on a stream. Messages are never acknowledged.
    #[derive(Default)]
    pub enum Frame {
        /// The framing is detected for each message (RFC 6587, section 3.4). A message is either an
        /// octet count followed by `<`, as in every syslog message, or a line, which may also end
        /// with NUL.
        #[default]
        Auto = "auto",
        /// Each message ends with LF or CRLF.
        Lines = "lines",
        /// Each message follows its length in decimal digits and a space (RFC 6587, RFC 5425). One
        /// LF, CRLF or NUL at the end of a message is removed, because some senders count it.
        Octets = "octets",
        /// Each message ends with NUL, as from Python's `SysLogHandler`.
        Nul = "nul",
    }
}

words! {
    /// The treatment of a message over the size limit. Each such message is counted.
    #[derive(Default)]
    pub enum Oversize {
        /// The start of the message is kept, as rsyslog does by default.
        #[default]
        Truncate = "truncate",
        /// The connection is closed.
        Refuse = "refuse",
    }
}

words! {
    /// The information about a message's origin that is added to its record.
    #[derive(Default)]
    pub enum Stamp {
        /// No information: the record is the message, byte for byte.
        #[default]
        None = "none",
        /// A prefix of words, each followed by a space: the time, the client's address, the
        /// listener, and the name in the client's certificate or `-`.
        Prefix = "prefix",
    }
}

/// A listener, such as `tcp://127.0.0.1:5140?frame=octets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The socket.
    pub socket: Socket,
    /// Whether streams are encrypted.
    pub is_tls: bool,
    /// The protocol.
    pub door: Door,
    /// The durability that acknowledgements promise.
    pub ack: Level,
    /// The handling of messages over the size limit, for frames and RELP.
    pub oversize: Oversize,
    /// The information about a message's origin that is added to its record.
    pub stamp: Stamp,
    /// The mode of a Unix socket's file; by default 0777 minus the umask.
    pub mode: Option<u32>,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A host and port that accept streams.
    Tcp(String),
    /// A path that accepts streams.
    Unix(PathBuf),
    /// A host and port that receive datagrams.
    Udp(String),
    /// A path that receives datagrams.
    UnixDatagram(PathBuf),
}

impl Socket {
    /// Returns the name of a socket passed by a service manager, if the URL contains one. In
    /// `fd:NUMBER`, the number is an ordinary port of a host called `fd`.
    pub(crate) fn passed_name(&self) -> Option<&str> {
        let address = match self {
            Socket::Tcp(address) | Socket::Udp(address) => address.as_str(),
            Socket::Unix(path) | Socket::UnixDatagram(path) => path.to_str()?,
        };
        address.strip_prefix(BY_NAME).filter(|name| name.parse::<u16>().is_err())
    }

    /// Returns the path of a Unix socket; `None` for other sockets.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Socket::Unix(path) | Socket::UnixDatagram(path) => Some(path),
            Socket::Tcp(_) | Socket::Udp(_) => None,
        }
    }
}

/// A URL scheme: its name, socket, encryption and protocol.
pub(super) struct Scheme(
    pub(super) &'static str,
    pub(super) fn(&str) -> Socket,
    pub(super) bool,
    pub(super) Door,
);

const TCP: fn(&str) -> Socket = |address| Socket::Tcp(address.to_owned());
const FRAMES: Door = Door::Frames(Frame::Auto);

/// All schemes, in the order of the help. Of schemes with the same meaning, the first is printed.
const SCHEMES: [Scheme; 13] = [
    Scheme("tcp", TCP, false, FRAMES),
    Scheme("tls", TCP, true, FRAMES),
    Scheme("unix", |path| Socket::Unix(path.into()), false, FRAMES),
    Scheme("udp", |address| Socket::Udp(address.to_owned()), false, Door::Datagrams),
    Scheme("unixgram", |path| Socket::UnixDatagram(path.into()), false, Door::Datagrams),
    Scheme("relp", TCP, false, Door::Relp),
    Scheme("relps", TCP, true, Door::Relp),
    Scheme("http", TCP, false, Door::Http),
    Scheme("https", TCP, true, Door::Http),
    Scheme("resp", TCP, false, Door::Resp),
    Scheme("resps", TCP, true, Door::Resp),
    Scheme("redis", TCP, false, Door::Resp),
    Scheme("rediss", TCP, true, Door::Resp),
];

impl Scheme {
    pub(super) fn of(word: &str) -> Option<&'static Scheme> {
        SCHEMES.iter().find(|scheme| scheme.0 == word)
    }

    pub(super) fn words() -> String {
        SCHEMES.each_ref().map(|scheme| scheme.0).join(", ")
    }
}

impl Listen {
    /// Returns a listener with defaults for everything else.
    pub(super) fn new(socket: Socket, is_tls: bool, door: Door) -> Listen {
        let (ack, oversize, stamp) = (Level::default(), Oversize::default(), Stamp::default());
        Listen { socket, is_tls, door, ack, oversize, stamp, mode: None }
    }

    /// Returns the durability that acknowledgements promise; `None` for protocols without
    /// acknowledgements.
    pub fn answers(&self) -> Option<Level> {
        match self.door {
            Door::Frames(_) | Door::Datagrams => None,
            Door::Relp | Door::Http | Door::Resp => Some(self.ack),
        }
    }

    /// Describes the protocol and its acknowledgements in a few words.
    pub fn promise(&self) -> String {
        let protocol = match self.door {
            Door::Frames(Frame::Auto) => "newline-delimited or octet-counted",
            Door::Frames(Frame::Lines) => "newline-delimited",
            Door::Frames(Frame::Octets) => "octet-counted",
            Door::Frames(Frame::Nul) => "NUL-terminated",
            Door::Datagrams => "one message per datagram",
            Door::Relp => "RELP",
            Door::Http => "HTTP, POST /append",
            Door::Resp => "RESP: XADD, RPUSH",
        };
        let means = match self.answers() {
            None => "no acknowledgements",
            Some(Level::Received) => "acknowledges messages on arrival; they survive nothing yet",
            Some(Level::Written) => "acknowledges messages once they survive a crash of the server",
            Some(Level::Durable) => "acknowledges messages once durable",
        };
        format!("listening ({protocol}); {means}")
    }

    /// Returns the maximum length of a record for messages of up to `message_bytes`.
    pub(crate) fn record_bytes_max(&self, message_bytes: usize) -> usize {
        match self.stamp {
            Stamp::None => message_bytes,
            Stamp::Prefix => message_bytes.saturating_add(STAMP_BYTES_MAX + self.to_string().len()),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        let kind = std::mem::discriminant(&self.socket);
        let is_it = |Scheme(_, socket, is_tls, door): &&Scheme| {
            std::mem::discriminant(door) == std::mem::discriminant(&self.door)
                && *is_tls == self.is_tls
                && std::mem::discriminant(&socket("")) == kind
        };
        SCHEMES.iter().find(is_it).map_or("unix", |Scheme(word, ..)| word)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        match &self.socket {
            Socket::Tcp(address) | Socket::Udp(address) => f.write_str(address)?,
            Socket::Unix(path) | Socket::UnixDatagram(path) => write!(f, "{}", path.display())?,
        }
        let frame = match self.door {
            Door::Frames(frame) => frame,
            _ => Frame::default(),
        };
        let word = |is_set: bool, key: &str, word: &str| is_set.then(|| format!("{key}={word}"));
        let ack = self.answers().unwrap_or_default();
        let pairs = [
            word(frame != Frame::default(), "frame", frame.as_str()),
            word(ack != Level::default(), "ack", ack.as_str()),
            word(self.oversize != Oversize::default(), "oversize", self.oversize.as_str()),
            word(self.stamp != Stamp::default(), "stamp", self.stamp.as_str()),
            self.mode.map(|mode| format!("mode={mode:03o}")),
        ];
        let pairs: Vec<String> = pairs.into_iter().flatten().collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        write!(f, "{mark}{}", pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_read_as_it_is_written() {
        for url in [
            "tcp://127.0.0.1:5140",
            "tls://0.0.0.0:6514?frame=octets",
            "unix:///run/log.sock?frame=nul",
            "udp://[::1]:514",
            "unixgram:///dev/log?mode=666",
            "relps://localhost:2514",
            "http://127.0.0.1:8080?ack=written",
            "https://127.0.0.1:8080",
            "resp://127.0.0.1:6379?ack=received",
            "tcp://127.0.0.1:5140?frame=nul&oversize=refuse",
            "relp://localhost:2514?ack=written&oversize=refuse&stamp=prefix",
        ] {
            assert_eq!(url.parse::<Listen>().unwrap().to_string(), url);
        }
        let alias: Listen = "rediss://127.0.0.1:6379".parse().unwrap();
        assert_eq!(alias.to_string(), "resps://127.0.0.1:6379");
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line_that_names_the_fault() {
        for (url, part) in [
            ("127.0.0.1:5140", "is not a URL; did you mean tcp://127.0.0.1:5140?"),
            ("events", "is not a URL, such as tcp://127.0.0.1:5140"),
            ("tcp://", "names no address"),
            ("ftp://a:1", "'ftp' must be one of tcp, tls"),
            ("tcp://a:1?frame=words", "frame=words is none of auto"),
            ("relp://a:1?frame=nul", "is not allowed for relp, which has no frame"),
            ("tcp://a:1?ack=durable", "is not allowed for tcp, which has no ack"),
            ("http://a:1?ack=safe", "ack=safe is none of received, written, durable"),
            ("udp://a:1?stamp=prefix", "is not allowed for udp, which has no stamp"),
            ("http://a:1?level=1", "unknown option 'level'; the options are frame, ack"),
            ("udp://a:1?mode=666", "is not allowed for udp, which has no mode"),
            ("unix:///a?mode=1777", "mode=1777 must be an octal mode from 0 to 777"),
            ("unix:///a?mode=+6", "mode=+6 must be an octal mode from 0 to 777"),
            ("unix:///a?mode=8", "mode=8 must be an octal mode from 0 to 777"),
        ] {
            let error = url.parse::<Listen>().unwrap_err();
            assert!(error.contains(part) && error.lines().count() == 1, "{error}");
        }
    }
}
