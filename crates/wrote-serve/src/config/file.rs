//! The configuration file: TOML with `[logs.NAME]`, `[limits]`, `[tls]` and `[access]`.

mod table;

use super::{Config, Listen, LogConfig, OwnSettings, Socket, options};
use crate::access::AccessConfig;
use crate::error::Error;
use crate::input;
use crate::limits::Limits;
use crate::settings::{self, Fault, Place};
use crate::shipping;
use crate::tls::TlsFiles;
use std::path::{Path, PathBuf};
use table::{Faults, Table, boolean, bytes, count, duration, string};
use toml::de::{DeTable, DeValue};
use wrote::{Format, LogOptions, SyncPolicy};

const WORKERS_MAX: usize = 4096;

/// Offsets in the file for faults that are found only in the whole configuration.
#[derive(Default)]
struct Offsets {
    tls: usize,
    access: usize,
    metrics: usize,
    logs: Vec<usize>,
    buffers: Vec<usize>,
    listeners: Vec<usize>,
}

impl Config {
    /// Reads a configuration file and the files it names. Relative paths start at its folder.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], one line per fault, with its line number.
    pub fn from_file(path: &Path) -> Result<Config, Error> {
        let shown = path.display();
        let bytes = input::read(path).map_err(Error::Config)?;
        let text =
            String::from_utf8(bytes).map_err(|error| Error::Config(format!("{shown}: {error}")))?;
        parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(|faults| {
            let lines: Vec<_> = faults.iter().map(|fault| format!("{shown}: {fault}")).collect();
            Error::Config(lines.join("\n"))
        })
    }
}

fn parse(text: &str, folder: &Path) -> Result<Config, Vec<String>> {
    let mut faults = Faults::of(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        faults.add(error.span().map_or(0, |span| span.start), error.message());
    }
    // Further faults would only be consequences.
    if let Some(lines) = faults.lines() {
        return Err(lines);
    }
    let mut root = Table::new("the file".into(), 0, root.into_inner());
    let mut offsets = Offsets::default();
    let mut config = Config::of_logs(Vec::new());
    if let Some((offset, address)) = root.take_at("metrics", &mut faults, string) {
        (offsets.metrics, config.metrics) = (offset, Some(address));
    }
    let level = |value| {
        let word = string(value)?;
        word.parse().map_err(|_| "is none of off, error, warn, info, debug".to_owned())
    };
    if let Some(level) = root.take("log_level", &mut faults, level) {
        config.log_level = level;
    }
    if let Some(workers) = root.take("workers", &mut faults, workers) {
        config.workers = workers;
    }
    if let Some(mut limits) = root.take_table("limits", &mut faults) {
        if let Some(grace) = limits.take("grace", &mut faults, duration) {
            config.grace = grace;
        }
        config.limits = read_limits(limits, &mut faults);
    }
    match root.take_table("logs", &mut faults) {
        None => faults.add(0, "it has no log: [logs.NAME] with folder and listen"),
        Some(mut logs) => {
            for (name, value) in logs.take_all() {
                let offset = name.span().start;
                let name = name.into_inner();
                match table::table(value.into_inner()) {
                    Ok(entries) => {
                        let table = Table::new(format!("[logs.{name}]"), offset, entries);
                        let log = read_log(name, table, folder, &config, &mut offsets, &mut faults);
                        if log.is_some() {
                            offsets.logs.push(offset);
                        }
                        config.logs.extend(log);
                    }
                    Err(fault) => faults.add(offset, format_args!("{name} in [logs] {fault}")),
                }
            }
        }
    }
    if let Some(mut table) = root.take_table("tls", &mut faults) {
        offsets.tls = table.offset;
        config.tls = read_tls(&mut table, folder, &mut faults);
        table.finish(&mut faults);
    }
    if let Some(mut table) = root.take_table("access", &mut faults) {
        offsets.access = table.offset;
        config.access = AccessConfig {
            token_file: table.take("token_file", &mut faults, |value| path(value, folder)),
            is_insecure: table.take("insecure", &mut faults, boolean).unwrap_or(false),
        };
        table.finish(&mut faults);
    }
    root.finish(&mut faults);
    find_doubles(&config, &offsets, &mut faults);
    for Fault { place, text } in settings::load(&config).err().into_iter().flatten() {
        let offset = match place {
            Place::Tls => offsets.tls,
            Place::Access => offsets.access,
            Place::Metrics => offsets.metrics,
            Place::Log(index) => offsets.logs[index],
            Place::Buffers(index) => offsets.buffers[index],
            Place::Listener(index) => offsets.listeners[index],
        };
        faults.add(offset, text);
    }
    faults.lines().map_or(Ok(config), Err)
}

fn read_limits(mut table: Table<'_>, faults: &mut Faults<'_>) -> Limits {
    let mut limits = Limits::default();
    macro_rules! read {
        ($($key:ident: $read:ident),*) => {
            $(if let Some(value) = table.take(stringify!($key), faults, $read) {
                limits.$key = value;
            })*
        };
    }
    read!(connections: count, connections_per_address: count, message_bytes: bytes);
    read!(in_flight_bytes: bytes, unsent_bytes: bytes, readers: count);
    read!(first_byte: duration, handshake: duration);
    read!(message_time: duration, unread_time: duration, free_bytes: bytes);
    table.finish(faults);
    limits
}

fn read_log(
    name: String,
    mut table: Table<'_>,
    folder: &Path,
    config: &Config,
    offsets: &mut Offsets,
    faults: &mut Faults<'_>,
) -> Option<LogConfig> {
    let log_offset = table.offset;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        faults
            .add(table.offset, format_args!("'{name}': names of logs are letters, digits, - _ ."));
    }
    table.must_have("folder", faults);
    table.must_have("listen", faults);
    let log_folder = table.take("folder", faults, |value| path(value, folder));
    let entries = table.take("listen", faults, |value| match value {
        DeValue::Array(urls) if !urls.is_empty() => Ok(urls.into_iter().collect()),
        _ => Err("is a list: listen = [\"tcp://127.0.0.1:5140\"]".into()),
    });
    let entries: Vec<_> = entries.unwrap_or_default();
    let mut listeners = Vec::new();
    for entry in entries {
        let offset = entry.span().start;
        if let Some(listen) = read_listen(entry.into_inner(), offset, folder, faults) {
            offsets.listeners.push(offset);
            listeners.push(listen);
        }
    }
    let store = table.take("store", faults, |value| {
        let url = string(value)?;
        shipping::check_url(&url).map(|()| url)
    });
    let is_framed = store.is_none() || !table.has("format", "lines");
    if !is_framed {
        faults.add(table.offset, format_args!("{}: store takes no log of lines", table.name()));
    }
    let options = read_options(&mut table, &listeners, faults);
    let buffer_bytes = table.take_at("buffer_bytes", faults, bytes::<usize>);
    let segment_bytes = table.take_at("segment_bytes", faults, bytes::<u64>);
    table.finish(faults);
    offsets.buffers.push(buffer_bytes.map_or(log_offset, |(at, _)| at));
    let (folder, buffer_bytes) = (log_folder.unwrap_or_default(), buffer_bytes.map(|(_, n)| n));
    let mut log = LogConfig { name, folder, options, buffer_bytes, store, listeners };
    if let Some((at, bytes)) = segment_bytes {
        if bytes < 2 * log.buffer_bytes(&config.limits) as u64 {
            faults.add(at, "segment_bytes must be twice buffer_bytes or more");
        }
        log.options = log.options.segment_bytes(bytes);
    }
    Some(log)
}

fn read_options(
    table: &mut Table<'_>,
    listeners: &[Listen],
    faults: &mut Faults<'_>,
) -> LogOptions {
    let mut options = options(listeners);
    macro_rules! read {
        ($($key:ident: $read:expr),*) => {
            $(if let Some(value) = table.take(stringify!($key), faults, $read) {
                options = options.$key(value);
            })*
        };
    }
    read!(sync: sync, format: format, segment_age: duration);
    read!(retain_bytes: bytes, retain_age: duration, buffers: buffers);
    options
}

fn workers(value: DeValue<'_>) -> Result<usize, String> {
    let workers = count(value)?;
    if workers > WORKERS_MAX {
        return Err(format!("must be {WORKERS_MAX} at most"));
    }
    Ok(workers)
}

fn sync(value: DeValue<'_>) -> Result<SyncPolicy, String> {
    match string(value)?.as_str() {
        "always" => Ok(SyncPolicy::Always),
        "everysec" => Ok(SyncPolicy::EverySec),
        "no" => Ok(SyncPolicy::No),
        text => wrote_result::units::parse_duration(text)
            .map(SyncPolicy::Interval)
            .map_err(|_| "is none of always, everysec, no, nor a time such as 100ms".into()),
    }
}

fn format(value: DeValue<'_>) -> Result<Format, String> {
    match string(value)?.as_str() {
        "framed" => Ok(Format::Framed),
        "lines" => Ok(Format::Lines),
        _ => Err("is none of framed, lines".to_owned()),
    }
}

fn buffers(value: DeValue<'_>) -> Result<u32, String> {
    match count(value)? {
        1 => Err("must be 2 or more".to_owned()),
        buffers => Ok(buffers),
    }
}

/// Reads a listener: a URL, or a table with a URL, a certificate and settings.
fn read_listen(
    value: DeValue<'_>,
    offset: usize,
    folder: &Path,
    faults: &mut Faults<'_>,
) -> Option<Listen> {
    let url = |value| string(value)?.parse::<Listen>();
    match value {
        DeValue::Table(entries) => {
            let mut table = Table::new("the listener".into(), offset, entries);
            let listen = table.take("url", faults, url);
            let tls = read_tls(&mut table, folder, faults);
            let own = OwnSettings {
                message_bytes: table.take("message_bytes", faults, bytes),
                connections: table.take("connections", faults, count),
                token_file: table.take("token_file", faults, |value| path(value, folder)),
            };
            table.finish(faults);
            Some(Listen { tls, own, ..listen? })
        }
        value => match url(value) {
            Ok(listen) => Some(listen),
            Err(fault) => {
                faults.add(offset, fault);
                None
            }
        },
    }
}

fn read_tls(table: &mut Table<'_>, folder: &Path, faults: &mut Faults<'_>) -> Option<TlsFiles> {
    let mut take = |key| table.take(key, faults, |value| path(value, folder));
    let (cert_file, key_file) = (take("cert_file"), take("key_file"));
    let client_ca_file = take("client_ca_file");
    match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Some(TlsFiles { cert_file, key_file, client_ca_file }),
        (None, None) if client_ca_file.is_none() => None,
        _ => {
            faults.add(table.offset, "cert_file and key_file go together");
            None
        }
    }
}

fn path(value: DeValue<'_>, folder: &Path) -> Result<PathBuf, String> {
    string(value).map(|path| folder.join(path))
}

/// Reports duplicate logs and listeners.
fn find_doubles(config: &Config, offsets: &Offsets, faults: &mut Faults<'_>) {
    let listeners: Vec<_> = config.listeners().collect();
    for (index, listen) in listeners.iter().enumerate() {
        let is_any = matches!(&listen.socket,
            Socket::Tcp(address) | Socket::Udp(address) if address.ends_with(":0"));
        if !is_any && listeners[..index].iter().any(|other| other.socket == listen.socket) {
            let offset = offsets.listeners[index];
            faults.add(offset, format_args!("{listen}: another listener has this address"));
        }
    }
    let mut first = 0;
    for (index, log) in config.logs.iter().enumerate() {
        if log.folder != Path::new("")
            && config.logs[..index].iter().any(|other| other.folder == log.folder)
        {
            let offset = offsets.listeners.get(first).copied().unwrap_or(0);
            let folder = log.folder.display();
            faults.add(offset, format_args!("[logs.{}]: another log has {folder}", log.name));
        }
        first += log.listeners.len();
    }
}
