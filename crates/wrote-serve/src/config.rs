//! The server's configuration: logs, listeners, limits.

mod file;

use crate::access::AccessConfig;
use crate::doors::{Door, Frame, Oversize};
use crate::error::Error;
use crate::intake::Level;
use crate::limits::Limits;
use crate::settings;
use crate::shipping;
use crate::stamp::Stamp;
use crate::tls::TlsFiles;
use crate::workers;
use log::LevelFilter;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use wrote::{Log, LogOptions, SyncPolicy};

/// The default time to drain before connections are cut.
const GRACE: Duration = Duration::from_secs(10);

/// Bytes that a buffer needs in addition to a message.
const HEADER_BYTES_MAX: usize = 200;
/// Default buffer sizes are a multiple of this.
const BUFFER_UNIT_BYTES: usize = 64 << 10;
const BUFFER_BYTES_MIN: usize = 1 << 20;
const BUFFER_BYTES: RangeInclusive<usize> = 4 << 10..=64 << 20;

/// The mode of log files before the umask. They may hold data that only the group may read.
const LOG_MODE: u32 = 0o640;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The logs and their listeners.
    pub logs: Vec<LogConfig>,
    /// The number of threads that serve connections, at least 1. A connection stays on one thread.
    pub workers: usize,
    /// The limits on clients.
    pub limits: Limits,
    /// The time to drain before connections are cut.
    pub grace: Duration,
    /// The host and port of the operators' listener, which serves `/metrics`, `/livez` and
    /// `/readyz`.
    pub metrics: Option<String>,
    /// The default certificate of encrypted listeners.
    pub tls: Option<TlsFiles>,
    /// Access rules.
    pub access: AccessConfig,
    /// The most detailed level that is logged.
    pub log_level: LevelFilter,
}

impl Config {
    /// Returns a configuration of one log in `folder` with these listeners and all defaults.
    pub fn of_log(folder: &Path, listeners: Vec<Listen>) -> Config {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let (folder, options) = (folder.to_owned(), options(&listeners));
        let (buffer_bytes, store) = (None, None);
        let log = LogConfig { name, folder, options, buffer_bytes, store, listeners };
        Config::of_logs(vec![log])
    }

    /// Returns a configuration of these logs with all defaults.
    pub(crate) fn of_logs(logs: Vec<LogConfig>) -> Config {
        let (limits, access) = (Limits::default(), AccessConfig::default());
        let workers = workers::usual();
        let log_level = LevelFilter::Warn;
        Config { logs, workers, limits, grace: GRACE, metrics: None, tls: None, access, log_level }
    }

    /// Checks everything that needs no bound listener or open log, including the files it names.
    /// Returns warnings, one per line.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], one line per fault.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        self.logs.iter().try_for_each(shipping::check)?;
        settings::load(self).map(|loaded| loaded.warnings).map_err(settings::error)
    }

    /// Returns all listeners, in order.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listen> {
        self.logs.iter().flat_map(|log| &log.listeners)
    }
}

/// Returns the default options of a log with these listeners.
fn options(listeners: &[Listen]) -> LogOptions {
    Log::options().sync(default_sync(listeners)).mode(LOG_MODE)
}

/// Returns the default sync policy of a log with these listeners.
fn default_sync(listeners: &[Listen]) -> SyncPolicy {
    let answers_durable = |listen: &Listen| listen.answers() == Some(Level::Durable);
    if listeners.iter().any(answers_durable) { SyncPolicy::Always } else { SyncPolicy::EverySec }
}

/// A log and the listeners that feed it.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The log's name in metrics.
    pub name: String,
    /// The log's folder, created if missing.
    pub folder: PathBuf,
    /// How the log is opened, except for its buffers.
    pub options: LogOptions,
    /// The length of each buffer. By default it holds the longest record of the log's listeners,
    /// and at least 1 MiB.
    pub buffer_bytes: Option<usize>,
    /// The URL of the object store for sealed segments. If set, retention removes only segments
    /// that are in the store.
    pub store: Option<String>,
    /// The listeners.
    pub listeners: Vec<Listen>,
}

impl LogConfig {
    pub(crate) fn buffer_bytes(&self, limits: &Limits) -> usize {
        self.buffer_bytes.unwrap_or_else(|| {
            let whole = self.record_bytes_max(limits).saturating_add(HEADER_BYTES_MAX);
            let units = whole.div_ceil(BUFFER_UNIT_BYTES);
            let bytes = units.saturating_mul(BUFFER_UNIT_BYTES);
            bytes.clamp(BUFFER_BYTES_MIN, *BUFFER_BYTES.end())
        })
    }

    /// Refuses buffers that cannot hold the longest record of a listener.
    pub(crate) fn check_buffers(&self, limits: &Limits) -> Result<(), String> {
        let (record, buffer) = (self.record_bytes_max(limits), self.buffer_bytes(limits));
        if self.buffer_bytes.is_some() && !BUFFER_BYTES.contains(&buffer) {
            return Err("buffer_bytes must be from 4KiB to 64MiB".to_owned());
        }
        if holds(buffer, record) {
            return Ok(());
        }
        let stamp = self.listeners.iter().map(|listen| listen.stamp).max().unwrap_or_default();
        let is_of = match stamp {
            Stamp::None => String::new(),
            stamp => format!(" (a message with stamp={})", stamp.as_str()),
        };
        Err(match self.buffer_bytes {
            Some(_) => format!("buffer_bytes must hold a record of {record} bytes{is_of}"),
            None => {
                format!("no buffer holds a record of {record} bytes{is_of}: lower message_bytes")
            }
        })
    }

    fn record_bytes_max(&self, limits: &Limits) -> usize {
        let of = |listen: &Listen| {
            listen.record_bytes_max(listen.own.message_bytes.unwrap_or(limits.message_bytes))
        };
        self.listeners.iter().map(of).max().unwrap_or_default()
    }
}

/// Returns whether a record fits into a buffer.
pub(crate) fn holds(buffer_bytes: usize, record_bytes: usize) -> bool {
    record_bytes.saturating_add(HEADER_BYTES_MAX) <= buffer_bytes
}

/// Settings of one listener that override the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnSettings {
    /// Like [`Limits::message_bytes`].
    pub message_bytes: Option<usize>,
    /// Like [`Limits::connections`], only for this listener. The server's limit still applies to
    /// all listeners together.
    pub connections: Option<usize>,
    /// Like [`AccessConfig::token_file`].
    pub token_file: Option<PathBuf>,
}

/// A listener: `tcp://127.0.0.1:5140?frame=octets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The socket.
    pub socket: Socket,
    /// Whether streams are encrypted.
    pub is_tls: bool,
    /// The protocol.
    pub door: Door,
    /// The durability that its acknowledgements promise.
    pub ack: Level,
    /// The handling of messages over the limit, for frames and RELP.
    pub oversize: Oversize,
    /// A certificate that overrides the server's.
    pub tls: Option<TlsFiles>,
    /// The origin information added to each record.
    pub stamp: Stamp,
    /// Whether HTTP serves `/livez` and `/readyz`, without a token too.
    pub has_probes: bool,
    /// The mode of the file of a Unix socket; by default 0777 less the umask.
    pub mode: Option<u32>,
    /// Settings that override the server's.
    pub own: OwnSettings,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A host and port for streams.
    Tcp(String),
    /// A path for streams.
    Unix(PathBuf),
    /// A host and port for datagrams.
    Udp(String),
    /// A path for datagrams.
    UnixDatagram(PathBuf),
}

struct Scheme {
    word: &'static str,
    socket: fn(&str) -> Socket,
    is_tls: bool,
    door: Door,
}

const fn tcp(word: &'static str, is_tls: bool, door: Door) -> Scheme {
    Scheme { word, socket: |address| Socket::Tcp(address.to_owned()), is_tls, door }
}

const FRAMES: Door = Door::Frames(Frame::Auto);

/// All schemes, in the order of the help. The first of each pair is the one printed.
const SCHEMES: [Scheme; 13] = [
    tcp("tcp", false, FRAMES),
    tcp("tls", true, FRAMES),
    Scheme { word: "unix", socket: |path| Socket::Unix(path.into()), is_tls: false, door: FRAMES },
    Scheme {
        word: "udp",
        socket: |address| Socket::Udp(address.to_owned()),
        is_tls: false,
        door: Door::Datagrams,
    },
    Scheme {
        word: "unixgram",
        socket: |path| Socket::UnixDatagram(path.into()),
        is_tls: false,
        door: Door::Datagrams,
    },
    tcp("relp", false, Door::Relp),
    tcp("relps", true, Door::Relp),
    tcp("http", false, Door::Http),
    tcp("https", true, Door::Http),
    tcp("resp", false, Door::Resp),
    tcp("resps", true, Door::Resp),
    tcp("redis", false, Door::Resp),
    tcp("rediss", true, Door::Resp),
];

/// Reads the mode of a file.
fn file_mode(word: &str) -> Result<u32, String> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit()).then_some(word);
    let mode = digits.and_then(|word| u32::from_str_radix(word, 8).ok());
    let mode = mode.filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("mode={word} is not an octal mode from 0 to 777"))
}

/// Guesses the URL that was meant: an address with a port lacks its scheme.
fn meant(url: &str) -> String {
    let is_address = url.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match is_address {
        true => format!("; did you mean tcp://{url}?"),
        false => ", such as tcp://127.0.0.1:5140".into(),
    }
}

/// Reads the word of a key.
fn read<T: FromStr<Err = String>>(key: &str, word: &str) -> Result<T, String> {
    word.parse().map_err(|because| format!("{key}={word} {because}"))
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(url: &str) -> Result<Listen, String> {
        let example = "such as tcp://127.0.0.1:5140";
        let (word, rest) =
            url.split_once("://").ok_or_else(|| format!("'{url}' is not a URL{}", meant(url)))?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        if address.is_empty() {
            return Err(format!("'{url}' names no address, {example}"));
        }
        let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.word == word) else {
            let words: Vec<_> = SCHEMES.iter().map(|scheme| scheme.word).collect();
            return Err(format!("'{url}': '{word}' is none of {}", words.join(", ")));
        };
        let (mut door, mut ack, mut oversize) =
            (scheme.door, Level::default(), Oversize::default());
        let (mut stamp, mut has_probes, mut mode) = (Stamp::default(), false, None);
        let socket = (scheme.socket)(address);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match (pair.split_once('='), &mut door) {
                (Some((key @ "frame", word)), Door::Frames(frame)) => *frame = read(key, word)?,
                (Some(("frame", _)), _) => {
                    return Err(format!("'{url}': '{word}' has its own frames"));
                }
                (Some(("ack", _)), Door::Frames(_) | Door::Datagrams) => {
                    return Err(format!("'{url}': '{word}' has no acknowledgements"));
                }
                (Some(("ack", word)), _) => {
                    let because = |_| format!("ack={word}: use received, written or durable");
                    ack = word.parse().map_err(because)?;
                }
                (Some(("stamp", _)), Door::Datagrams) => {
                    return Err(format!("'{url}': '{word}' has no stamps"));
                }
                (Some((key @ "stamp", word)), _) => stamp = read(key, word)?,
                (Some(("probes", word)), Door::Http) => {
                    has_probes = match word {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(format!("probes={word} is none of yes, no")),
                    };
                }
                (Some(("probes", _)), _) => {
                    return Err(format!("'{url}': '{word}' has no probes"));
                }
                (Some(("mode", word)), _) => match socket {
                    Socket::Unix(_) | Socket::UnixDatagram(_) => mode = Some(file_mode(word)?),
                    _ => return Err(format!("'{url}': '{}' has no file", scheme.word)),
                },
                (Some((key @ "oversize", word)), Door::Frames(_) | Door::Relp) => {
                    oversize = read(key, word)?;
                }
                (Some(("oversize", _)), _) => {
                    return Err(format!(
                        "'{url}': '{word}' has its own treatment of long messages"
                    ));
                }
                _ => {
                    return Err(format!(
                        "'{url}': '{pair}' is none of frame=, ack=, oversize=, stamp=, probes=, \
                         mode="
                    ));
                }
            }
        }
        let is_tls = scheme.is_tls;
        let own = OwnSettings::default();
        let tls = None;
        Ok(Listen { socket, is_tls, door, ack, oversize, stamp, has_probes, mode, tls, own })
    }
}

impl Listen {
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
            Door::Frames(Frame::U32) => "lengths of four bytes",
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
        self.stamp.record_bytes_max(self, message_bytes)
    }

    /// Returns whether both are equal except for certificates and settings.
    pub(crate) fn is_same_place(&self, other: &Listen) -> bool {
        let place =
            |listen: &Listen| Listen { tls: None, own: OwnSettings::default(), ..listen.clone() };
        place(self) == place(other)
    }

    pub(crate) fn scheme(&self) -> &'static str {
        let is_it = |scheme: &&Scheme| {
            let is_door = match (scheme.door, self.door) {
                (Door::Frames(_), Door::Frames(_)) => true,
                (one, other) => one == other,
            };
            let socket = std::mem::discriminant(&(scheme.socket)(""));
            is_door
                && scheme.is_tls == self.is_tls
                && socket == std::mem::discriminant(&self.socket)
        };
        SCHEMES.iter().find(is_it).map_or("unix", |scheme| scheme.word)
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
            Door::Frames(frame) if frame != Frame::default() => Some(frame.as_str()),
            _ => None,
        };
        let ack = self.answers().filter(|ack| *ack != Level::default()).map(Level::as_str);
        let oversize = (self.oversize != Oversize::default()).then(|| self.oversize.as_str());
        let stamp = (self.stamp != Stamp::default()).then(|| self.stamp.as_str());
        let probes = self.has_probes.then_some("yes");
        let mode = self.mode.map(|mode| format!("{mode:03o}"));
        let pairs = [
            ("frame", frame),
            ("ack", ack),
            ("oversize", oversize),
            ("stamp", stamp),
            ("probes", probes),
            ("mode", mode.as_deref()),
        ];
        let set = pairs.iter().filter_map(|(key, word)| Some((key, (*word)?)));
        for (separator, (key, word)) in std::iter::once('?').chain(std::iter::repeat('&')).zip(set)
        {
            write!(f, "{separator}{key}={word}")?;
        }
        Ok(())
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
            "https://127.0.0.1:8080?probes=yes",
            "resp://127.0.0.1:6379?ack=received",
            "tcp://127.0.0.1:5140?frame=u32&oversize=split",
            "relp://localhost:2514?ack=written&oversize=refuse&stamp=json",
        ] {
            assert_eq!(url.parse::<Listen>().unwrap().to_string(), url);
        }
        let alias: Listen = "rediss://127.0.0.1:6379".parse().unwrap();
        assert_eq!(alias.to_string(), "resps://127.0.0.1:6379");
    }

    #[test]
    fn a_wrong_url_says_in_one_line_what_is_wrong() {
        for (url, part) in [
            ("127.0.0.1:5140", "is not a URL; did you mean tcp://127.0.0.1:5140?"),
            ("events", "is not a URL, such as tcp://127.0.0.1:5140"),
            ("tcp://", "names no address"),
            ("ftp://a:1", "'ftp' is none of tcp, tls"),
            ("tcp://a:1?frame=words", "frame=words is none of auto"),
            ("relp://a:1?frame=nul", "has its own frames"),
            ("tcp://a:1?ack=durable", "has no acknowledgements"),
            ("http://a:1?ack=safe", "ack=safe: use received, written or durable"),
            ("udp://a:1?stamp=json", "has no stamps"),
            ("resp://a:1?probes=yes", "'resp' has no probes"),
            ("http://a:1?probes=on", "probes=on is none of yes, no"),
            ("http://a:1?level=1", "'level=1' is none of"),
            ("udp://a:1?mode=666", "'udp' has no file"),
            ("unix:///a?mode=1777", "mode=1777 is not an octal mode from 0 to 777"),
            ("unix:///a?mode=+6", "mode=+6 is not an octal mode from 0 to 777"),
            ("unix:///a?mode=8", "mode=8 is not an octal mode from 0 to 777"),
        ] {
            let error = url.parse::<Listen>().unwrap_err();
            assert!(error.contains(part) && error.lines().count() == 1, "{error}");
        }
    }
}
