//! The server's configuration: logs, listeners and limits.

pub(crate) mod access;
mod file;
mod keys;
mod listen;
pub(crate) mod settings;

use crate::Error;
use crate::stream::TlsFiles;
use crate::target::Level;
use access::AccessConfig;
pub use keys::Key;
use keys::{Target, Written};
pub use listen::{Door, Frame, Listen, Oversize, Socket, Stamp};
use listen::{EXAMPLE, Scheme};
use log::LevelFilter;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;
use wrote::{Log, LogOptions, SyncPolicy};

/// The default time for draining before connections are cut.
const GRACE: Duration = Duration::from_secs(10);

/// The number of bytes that a buffer needs in addition to a record.
const HEADER_BYTES_MAX: usize = 200;
/// The unit of default buffer sizes.
const BUFFER_UNIT_BYTES: usize = 64 << 10;
pub(crate) const BUFFER_BYTES_MIN: usize = 1 << 20;
const BUFFER_BYTES_MAX: usize = 64 << 20;

/// The mode of log files before the umask is applied. They may hold data that only the group may
/// read.
pub(crate) const LOG_MODE: u32 = 0o640;

/// The maximum size of a segment that is shipped, because each is put into the store in one
/// request.
const SHIPPED_BYTES_MAX: u64 = 128 << 20;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The logs and their listeners.
    pub logs: Vec<LogConfig>,
    /// The number of threads that serve connections, at least 1. A connection stays on its thread.
    pub workers: usize,
    /// The limits on clients.
    pub limits: Limits,
    /// The time for draining before connections are cut.
    pub grace: Duration,
    /// The host and port of the operators' listener, which serves `/metrics`, `/livez` and
    /// `/readyz`.
    pub metrics: Option<String>,
    /// The certificate of encrypted listeners.
    pub tls: Option<TlsFiles>,
    /// Access rules.
    pub access: AccessConfig,
    /// The most verbose level that is logged.
    pub log_level: LevelFilter,
}

impl Config {
    /// Returns the configuration of a single log in `folder` with these listeners and defaults for
    /// everything else.
    pub fn of_log(folder: &Path, listeners: Vec<Listen>) -> Config {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Config::of_logs(vec![LogConfig::new(name, folder, listeners)])
    }

    /// Returns the configuration of a single line file with these listeners and defaults for
    /// everything else.
    pub fn of_file(path: &Path, listeners: Vec<Listen>) -> Config {
        let mut config = Config::of_log(path, listeners);
        config.logs[0].is_file = true;
        config
    }

    /// Returns the configuration of these logs with defaults for everything else.
    pub(crate) fn of_logs(logs: Vec<LogConfig>) -> Config {
        let (limits, access) = (Limits::default(), AccessConfig::default());
        // One processor is left for the log's thread and the kernel. On two processors, two workers
        // used a third more CPU time per message than one.
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers = workers.saturating_sub(1).max(1);
        let log_level = LevelFilter::Warn;
        Config { logs, workers, limits, grace: GRACE, metrics: None, tls: None, access, log_level }
    }

    /// Reads a configuration file and the files that it names. Relative paths start at the folder
    /// of the configuration file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Config`], with one line per fault. A line begins with the fault's line
    /// number, unless the fault concerns the configuration as a whole.
    pub fn from_file(path: &Path) -> Result<Config, Error> {
        file::read(path)
    }

    /// Checks everything that needs no bound listener or open log, including the files that the
    /// configuration names. Returns warnings, one per line.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Config`], with one line per fault.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        settings::load(self).map(|(_, warnings)| warnings).map_err(settings::error)
    }

    /// Returns the listeners of all logs, in order.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listen> {
        self.logs.iter().flat_map(|log| &log.listeners)
    }
}

/// A log and the listeners that feed it.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The log's name in metrics.
    pub name: String,
    /// The log's folder, which is created if missing, or the path of a line file.
    pub folder: PathBuf,
    /// Whether messages become lines of a line file.
    pub is_file: bool,
    /// When messages become durable.
    pub sync: SyncPolicy,
    /// The options for opening the log, except for the lengths of its buffers and segments.
    pub options: LogOptions,
    /// The maximum total size of the segments. If they exceed it, the oldest are removed. In a log
    /// with a store, the server removes them, and only once they are in the store.
    pub retain_bytes: Option<u64>,
    /// The maximum age of segments. Older segments are removed like those beyond
    /// [`LogConfig::retain_bytes`].
    pub retain_age: Option<Duration>,
    /// The length of each buffer. By default, a buffer has room for the longest record of the log's
    /// listeners, and for at least 1 MiB.
    pub buffer_bytes: Option<usize>,
    /// The length of a segment; by default the library's.
    pub segment_bytes: Option<u64>,
    /// The URL of the object store to which sealed segments are shipped.
    pub store: Option<String>,
    /// The listeners.
    pub listeners: Vec<Listen>,
}

impl LogConfig {
    /// Returns a log with the default options for these listeners.
    fn new(name: String, folder: &Path, listeners: Vec<Listen>) -> LogConfig {
        let answers_durable = |listen: &Listen| listen.answers() == Some(Level::Durable);
        let sync = match listeners.iter().any(answers_durable) {
            true => SyncPolicy::Always,
            false => SyncPolicy::EverySec,
        };
        LogConfig {
            name,
            folder: folder.to_owned(),
            is_file: false,
            sync,
            options: Log::options().mode(LOG_MODE),
            retain_bytes: None,
            retain_age: None,
            buffer_bytes: None,
            segment_bytes: None,
            store: None,
            listeners,
        }
    }

    /// Returns the log's options, including the lengths of buffers and segments. They include
    /// retention, unless the log has a store.
    pub(crate) fn options(&self, limits: &Limits) -> LogOptions {
        let mut options = self.options.clone().sync(self.sync);
        options = options.buffer_bytes(self.buffer_bytes(limits));
        if let Some(bytes) = self.segment_bytes {
            options = options.segment_bytes(bytes);
        }
        if let Some(bytes) = self.retain_bytes.filter(|_| self.store.is_none()) {
            options = options.retain_bytes(bytes);
        }
        if let Some(age) = self.retain_age.filter(|_| self.store.is_none()) {
            options = options.retain_age(age);
        }
        options
    }

    pub(crate) fn buffer_bytes(&self, limits: &Limits) -> usize {
        self.buffer_bytes.unwrap_or_else(|| {
            let whole = self.record_bytes_max(limits).saturating_add(HEADER_BYTES_MAX);
            let units = whole.div_ceil(BUFFER_UNIT_BYTES);
            let bytes = units.saturating_mul(BUFFER_UNIT_BYTES);
            bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
        })
    }

    /// Refuses buffers that are too small for the longest record of a listener, and segments that
    /// are too short.
    fn check_lengths(&self, limits: &Limits) -> Result<(), String> {
        let (record, buffer) = (self.record_bytes_max(limits), self.buffer_bytes(limits));
        if self.segment_bytes.is_some_and(|bytes| bytes < 2 * buffer as u64) {
            return Err("segment_bytes must be at least twice buffer_bytes".to_owned());
        }
        let is_long = self.segment_bytes.is_some_and(|bytes| bytes > SHIPPED_BYTES_MAX);
        if self.store.is_some() && is_long {
            return Err("segment_bytes must be at most 128MiB in a log with a store".to_owned());
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
        let of = |listen: &Listen| listen.record_bytes_max(limits.message_bytes);
        self.listeners.iter().map(of).max().unwrap_or_default()
    }
}

/// Returns whether a record fits into a buffer, given both lengths.
pub(crate) fn holds(buffer_bytes: usize, record_bytes: usize) -> bool {
    record_bytes.saturating_add(HEADER_BYTES_MAX) <= buffer_bytes
}

/// Suggests a URL with a scheme if an address with a port was given, or else shows an example.
fn meant(url: &str) -> String {
    let is_address = url.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match is_address {
        true => format!("; did you mean tcp://{url}?"),
        false => format!(", such as {EXAMPLE}"),
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(url: &str) -> Result<Listen, String> {
        let (word, rest) =
            url.split_once("://").ok_or_else(|| format!("'{url}' is not a URL{}", meant(url)))?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        if address.is_empty() {
            return Err(format!("'{url}' names no address, such as {EXAMPLE}"));
        }
        let Scheme(_, socket, is_tls, door) = Scheme::of(word)
            .ok_or_else(|| format!("'{url}': '{word}' must be one of {}", Scheme::words()))?;
        let mut listen = Listen::new(socket(address), *is_tls, *door);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, word) = pair.split_once('=').unwrap_or((pair, ""));
            let key = Key::find("url", name, &[])
                .map_err(|hint| format!("'{url}': unknown option '{name}'; {hint}"))?;
            let target = Target::Listener(&mut listen);
            key.set(target, Written::Word(word.into()), Path::new(""))
                .map_err(|fault| format!("'{url}': {name}={word} {fault}"))?;
        }
        Ok(listen)
    }
}

/// The limits on clients. Each refusal is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of open connections.
    pub connections: usize,
    /// The maximum length of a message.
    pub message_bytes: usize,
    /// The maximum number of bytes of unfinished messages, over all connections. Clients that have
    /// not authenticated yet share an additional sixteenth.
    pub in_flight_bytes: usize,
    /// The maximum number of bytes of unsent answers, over all connections.
    pub unsent_bytes: usize,
    /// The maximum number of HTTP answers that read from logs concurrently, fixed when the server
    /// starts. Each uses up to 6.5 MiB of buffers.
    pub readers: usize,
    /// The time limit from accepting a connection to its first byte. It applies only while seven
    /// eighths of the maximum number of connections are open.
    pub first_byte: Duration,
    /// The time limit for a TLS handshake.
    pub handshake: Duration,
    /// The time limit from a message's first byte to its last.
    pub message_time: Duration,
    /// The time limit for a client to read its answers.
    pub unread_time: Duration,
    /// The disk space that must stay free, in bytes.
    pub free_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 65_536,
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

#[cfg(feature = "store")]
fn check_store(url: &str) -> Result<(), String> {
    wrote_store::SegmentStore::check(url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "store"))]
fn check_store(_: &str) -> Result<(), String> {
    Err("this program was built without object stores (the feature store)".to_owned())
}
