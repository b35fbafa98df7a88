//! The arguments of `wrote serve`.

use super::log::record_max;
use clap::{Args, ValueHint};
use log::LevelFilter;
use std::path::PathBuf;
use std::time::Duration;
use wrote_result::units;
use wrote_serve::Listen;

/// Linux opens no more files in all by default.
const CONNECTIONS_MAX: u32 = 1 << 20;

/// The arguments of `wrote serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// The folder of the log; made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "config",
        conflicts_with = "config")]
    pub folder: Option<PathBuf>,

    /// Where to listen and what to speak: tcp://127.0.0.1:5140, unix:///run/events.sock, relp://,
    /// http://, resp://; may be given several times
    #[arg(long, value_name = "URL", required_unless_present = "config", conflicts_with = "config")]
    pub listen: Vec<Listen>,

    /// Where operators ask: http://ADDRESS/metrics for Prometheus, /livez, /readyz; on this machine
    /// only, as 127.0.0.1:9600
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    pub metrics: Option<String>,

    /// Read logs, listeners and limits from a file (TOML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Write lines of this kind and of worse ones: off, error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log_level,
        conflicts_with = "config")]
    pub log_level: LevelFilter,

    /// Say whether everything can be served, and end
    #[arg(long)]
    pub check: bool,

    /// The certificate of tls, relps, https and resps, and its signers' (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key_file",
        conflicts_with = "config")]
    pub cert_file: Option<PathBuf>,

    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert_file",
        conflicts_with = "config")]
    pub key_file: Option<PathBuf>,

    /// Take only clients with a certificate that one of FILE signs (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert_file",
        conflicts_with = "config")]
    pub client_ca_file: Option<PathBuf>,

    /// Take HTTP and RESP only with one of the tokens in FILE, a line each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub token_file: Option<PathBuf>,

    /// Let other hosts send without a certificate or a token
    #[arg(long, conflicts_with = "config")]
    pub insecure: bool,

    /// Remove the oldest segments beyond SIZE
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, allow_hyphen_values = true,
        conflicts_with = "config")]
    pub retain_bytes: Option<u64>,

    /// Remove segments whose records are all older than TIME
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
        allow_hyphen_values = true, conflicts_with = "config")]
    pub retain_age: Option<Duration>,

    /// Put sealed segments into an object store: s3://bucket/prefix, file:///path; segments are
    /// removed only once they are there
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub store: Option<String>,

    /// Connections at a time (65536)
    #[arg(long, value_name = "N", value_parser = units::parse_count::<CONNECTIONS_MAX>,
        allow_hyphen_values = true, conflicts_with = "config")]
    pub max_connections: Option<u32>,

    /// The longest message (1MiB); a longer one is cut (?oversize=truncate, split, skip or refuse)
    #[arg(long, value_name = "SIZE", value_parser = record_max, allow_hyphen_values = true,
        conflicts_with = "config")]
    pub max_message_bytes: Option<usize>,
}

fn log_level(word: &str) -> Result<LevelFilter, &'static str> {
    word.parse().map_err(|_| "must be off, error, warn, info or debug")
}
