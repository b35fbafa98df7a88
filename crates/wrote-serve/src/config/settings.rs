//! Settings that can change while a server runs: limits, certificates, tokens.

use super::access::{self, Access, AccessConfig};
use super::{Config, Door, Limits, Listen, Socket};
use crate::stream::{Sessions, TlsFiles};
use crate::{Error, files};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub limits: Arc<Limits>,
    /// The most connections of all listeners together.
    pub connections_max: usize,
    pub access: Arc<Access>,
    /// `None` if streams are not encrypted.
    pub tls: Option<Sessions>,
    /// When the certificate expires, in seconds since 1970.
    pub expires_s: Option<u64>,
    pub rule: AccessConfig,
    pub has_client_ca: bool,
}

impl Settings {
    /// Refuses a listener that strangers can reach at these addresses.
    pub(crate) fn check(
        &self,
        listen: &Listen,
        addresses: &[IpAddr],
    ) -> Result<Option<String>, String> {
        access::check(listen, addresses, self.has_client_ca, &self.rule)
    }
}

#[derive(Debug)]
pub(crate) struct Loaded {
    /// Each listener's settings, in the order of [`Config::listeners`].
    pub listeners: Vec<(Listen, Settings)>,
    /// The tokens of the whole server.
    pub access: Arc<Access>,
    /// Warnings, one per line.
    pub warnings: Vec<String>,
}

/// A fault in a configuration.
#[derive(Debug)]
pub(crate) struct Fault {
    pub part: Part,
    pub text: String,
}

/// The faulty part of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An entry at the top of the file.
    Top(&'static str),
    /// An index into [`Config::logs`], and a key.
    Log(usize, &'static str),
    /// An index into [`Config::listeners`].
    Listener(usize),
}

/// Reads the files that a configuration names. Returns its settings, or all faults.
pub(crate) fn load(config: &Config) -> Result<Loaded, Vec<Fault>> {
    let (mut faults, mut warnings, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
    let access = Access::load(&config.access).unwrap_or_else(|text| {
        faults.push(Fault { part: Part::Top("access"), text });
        Access::default()
    });
    if let Some(Err(text)) = config.tls.as_ref().map(TlsFiles::check) {
        faults.push(Fault { part: Part::Top("tls"), text });
    }
    let (access, limits) = (Arc::new(access), Arc::new(config.limits.clone()));
    for (index, listen) in config.listeners().enumerate() {
        let files = listen.tls.as_ref().or(config.tls.as_ref()).filter(|_| listen.is_tls);
        let mut rule = config.access.clone();
        let mut own_access = None;
        if let Some(path) = &listen.own.token_file {
            rule.token_file = Some(path.clone());
            match Access::load(&rule) {
                Ok(access) => own_access = Some(Arc::new(access)),
                Err(text) => faults.push(Fault { part: Part::Listener(index), text }),
            }
        }
        let own = &listen.own;
        let own_limits = (own.message_bytes.is_some() || own.connections.is_some()).then(|| {
            let mut limits = config.limits.clone();
            limits.message_bytes = own.message_bytes.unwrap_or(limits.message_bytes);
            limits.connections = own.connections.unwrap_or(limits.connections);
            Arc::new(limits)
        });
        let mut settings = Settings {
            limits: own_limits.unwrap_or_else(|| limits.clone()),
            connections_max: config.limits.connections,
            access: own_access.unwrap_or_else(|| access.clone()),
            tls: None,
            expires_s: None,
            rule,
            has_client_ca: files.is_some_and(|files| files.client_ca_file.is_some()),
        };
        let part = Part::Listener(index);
        let mut fault = |part, text| {
            // Listeners share the server's files, so a fault may come up repeatedly.
            if !faults.iter().any(|known: &Fault| known.text == text) {
                faults.push(Fault { part, text });
            }
        };
        if let Some(Err(text)) = listen.tls.as_ref().map(TlsFiles::check) {
            fault(part, text);
        }
        match files.map(|files: &TlsFiles| files.load(listen.door == Door::Http)) {
            None if listen.is_tls => fault(part, format!("{listen}: has no cert_file")),
            None => {}
            Some(Ok(loaded)) => {
                (settings.tls, settings.expires_s) = (Some(loaded.sessions), loaded.expires_s);
                warnings.extend(loaded.warning.filter(|text| !warnings.contains(text)));
            }
            Some(Err(text)) if listen.tls.is_none() => fault(Part::Top("tls"), text),
            Some(Err(text)) => fault(part, text),
        }
        match access::addresses(listen).and_then(|addresses| settings.check(listen, &addresses)) {
            Ok(warning) => warnings.extend(warning),
            Err(text) => fault(part, text),
        }
        if let Socket::Unix(path) | Socket::UnixDatagram(path) = &listen.socket {
            match files::check_folder(path.parent().unwrap_or(Path::new(""))) {
                Ok(warning) => warnings.extend(warning),
                Err(text) => fault(part, format!("{listen}: {text}")),
            }
        }
        listeners.push((listen.clone(), settings));
    }
    for (index, log) in config.logs.iter().enumerate() {
        let folder = if log.is_file { log.folder.parent() } else { Some(&*log.folder) };
        match files::check_folder(folder.unwrap_or(Path::new(""))) {
            Ok(warning) => warnings.extend(warning),
            Err(text) => faults.push(Fault { part: Part::Log(index, "folder"), text }),
        }
        if let Err((key, fault)) = log.check_lengths(&config.limits) {
            let text = format!("[logs.{}]: {fault}", log.name);
            faults.push(Fault { part: Part::Log(index, key), text });
        }
        let reads = |listen: &&Listen| matches!(listen.door, Door::Http | Door::Resp);
        if let Some(listen) = log.listeners.iter().find(reads).filter(|_| log.is_file) {
            let because =
                "reads records, which a file of lines has not: use tcp, unix, udp or relp";
            let text = format!("{listen}: {because}");
            faults.push(Fault { part: Part::Log(index, "folder"), text });
        }
        if let Some(url) = &log.store
            && let Err(text) = super::check_store(url)
        {
            let text = format!("[logs.{}]: {text}", log.name);
            faults.push(Fault { part: Part::Log(index, "store"), text });
        }
    }
    if let Some(address) = &config.metrics
        && let Err(text) = access::operators_addresses(address, &config.access)
    {
        faults.push(Fault { part: Part::Top("metrics"), text });
    }
    find_doubles(config, &mut faults);
    if faults.is_empty() { Ok(Loaded { listeners, access, warnings }) } else { Err(faults) }
}

/// Finds logs with one folder and listeners with one address.
fn find_doubles(config: &Config, faults: &mut Vec<Fault>) {
    let listeners: Vec<_> = config.listeners().collect();
    for (index, listen) in listeners.iter().enumerate() {
        let is_any = matches!(&listen.socket,
            Socket::Tcp(address) | Socket::Udp(address) if address.ends_with(":0"));
        if !is_any && listeners[..index].iter().any(|other| other.socket == listen.socket) {
            let text = format!("{listen}: another listener has this address");
            faults.push(Fault { part: Part::Listener(index), text });
        }
    }
    for (index, log) in config.logs.iter().enumerate() {
        let is_named = !log.folder.as_os_str().is_empty();
        if is_named && config.logs[..index].iter().any(|other| other.folder == log.folder) {
            let text = format!("[logs.{}]: another log has {}", log.name, log.folder.display());
            faults.push(Fault { part: Part::Log(index, "folder"), text });
        }
    }
}

/// Joins all faults, one per line.
pub(crate) fn error(faults: Vec<Fault>) -> Error {
    let lines: Vec<_> = faults.into_iter().map(|fault| fault.text).collect();
    Error::Config(lines.join("\n"))
}
