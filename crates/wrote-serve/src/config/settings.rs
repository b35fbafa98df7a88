//! The settings that can change while a server runs: limits, certificates and tokens.

use super::access::{self, Access, AccessConfig};
use super::{Config, Door, Limits, Listen};
use crate::stream::Sessions;
use crate::{Error, files};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub limits: Arc<Limits>,
    pub access: Arc<Access>,
    /// `None` if no stream is encrypted.
    pub tls: Option<Sessions>,
    /// The time at which the certificate expires, in seconds since 1970.
    pub expires_s: Option<u64>,
    pub rule: AccessConfig,
    pub has_client_ca: bool,
}

impl Settings {
    /// Refuses a listener that other hosts can reach without a certificate or a token. Returns a
    /// warning if the settings allow such a listener anyway.
    pub(crate) fn check(&self, listen: &Listen) -> Result<Option<String>, String> {
        let addresses = access::addresses(listen)?;
        access::check(listen, &addresses, self.has_client_ca, &self.rule)
    }
}

/// Reads the files that a configuration names. Returns the settings and warnings, or all faults.
pub(crate) fn load(config: &Config) -> Result<(Settings, Vec<String>), Vec<String>> {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let mut take = |checked: Result<Option<String>, String>| match checked {
        Ok(warning) => warnings.extend(warning),
        Err(fault) => faults.push(fault),
    };
    let access = Access::load(&config.access).unwrap_or_else(|fault| {
        take(Err(fault));
        Access::default()
    });
    let mut settings = Settings {
        limits: Arc::new(config.limits.clone()),
        access: Arc::new(access),
        tls: None,
        expires_s: None,
        rule: config.access.clone(),
        has_client_ca: config.tls.as_ref().is_some_and(|files| files.client_ca_file.is_some()),
    };
    let is_tls = config.listeners().any(|listen| listen.is_tls);
    match config.tls.as_ref().filter(|_| is_tls).map(|files| files.load()) {
        Some(Ok(loaded)) => {
            (settings.tls, settings.expires_s) = (Some(loaded.sessions), loaded.expires_s);
            take(Ok(loaded.warning));
        }
        Some(Err(fault)) => take(Err(fault)),
        None => {}
    }
    for listen in config.listeners() {
        if listen.is_tls && config.tls.is_none() {
            take(Err(format!("{listen}: has no cert_file")));
        }
        take(settings.check(listen));
        if let Some(path) = listen.socket.path() {
            let folder = files::check_folder(path.parent().unwrap_or(Path::new("")));
            take(folder.map_err(|fault| format!("{listen}: {fault}")));
        }
    }
    for log in &config.logs {
        let named = |fault| format!("[logs.{}]: {fault}", log.name);
        let folder = if log.is_file { log.folder.parent() } else { Some(&*log.folder) };
        take(files::check_folder(folder.unwrap_or(Path::new(""))).and_then(|warning| {
            let place = if log.is_file { Ok(()) } else { wrote::log::check_place(&log.folder) };
            place.map(|()| warning).map_err(|error| error.to_string())
        }));
        take(log.check_lengths(&config.limits).map(|()| None).map_err(named));
        let reads = |listen: &&Listen| matches!(listen.door, Door::Http | Door::Resp);
        if let Some(listen) = log.listeners.iter().find(reads).filter(|_| log.is_file) {
            let because =
                "reads records, which a file of lines does not have: use tcp, unix, udp or relp";
            take(Err(format!("{listen}: {because}")));
        }
        if let Some(url) = &log.store {
            take(super::check_store(url).map(|()| None).map_err(named));
        }
    }
    if let Some(address) = &config.metrics {
        take(access::operators_addresses(address, &config.access).map(|_| None));
    }
    if faults.is_empty() { Ok((settings, warnings)) } else { Err(faults) }
}

/// Joins all faults into an error, one per line.
pub(crate) fn error(faults: Vec<String>) -> Error {
    Error::Config(faults.join("\n"))
}
