//! Settings that can change while a server runs: limits, certificates, tokens.

use crate::access::{self, Access, AccessConfig};
use crate::config::{Config, Listen, Socket};
use crate::error::Error;
use crate::folders;
use crate::limits::Limits;
use crate::operators;
use crate::tls::{Sessions, TlsFiles};
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
    pub place: Place,
    pub text: String,
}

/// The faulty part of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tls,
    Access,
    Metrics,
    /// An index into [`Config::logs`].
    Log(usize),
    /// The buffers of a log, by its index in [`Config::logs`].
    Buffers(usize),
    /// An index into [`Config::listeners`].
    Listener(usize),
}

/// Reads the files that a configuration names. Returns its settings, or all faults.
pub(crate) fn load(config: &Config) -> Result<Loaded, Vec<Fault>> {
    let (mut faults, mut warnings, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
    let access = Access::load(&config.access).unwrap_or_else(|text| {
        faults.push(Fault { place: Place::Access, text });
        Access::default()
    });
    let (access, limits) = (Arc::new(access), Arc::new(config.limits.clone()));
    for (index, listen) in config.listeners().enumerate() {
        let files = listen.tls.as_ref().or(config.tls.as_ref()).filter(|_| listen.is_tls);
        let mut rule = config.access.clone();
        let mut own_access = None;
        if let Some(path) = &listen.own.token_file {
            rule.token_file = Some(path.clone());
            match Access::load(&rule) {
                Ok(access) => own_access = Some(Arc::new(access)),
                Err(text) => faults.push(Fault { place: Place::Listener(index), text }),
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
        let place = Place::Listener(index);
        let mut fault = |place, text| {
            // Listeners share the server's files, so a fault may come up repeatedly.
            if !faults.iter().any(|known: &Fault| known.text == text) {
                faults.push(Fault { place, text });
            }
        };
        match files.map(|files: &TlsFiles| files.load(listen.door)) {
            None if listen.is_tls => fault(place, format!("{listen}: has no cert_file")),
            None => {}
            Some(Ok(loaded)) => {
                (settings.tls, settings.expires_s) = (Some(loaded.sessions), loaded.expires_s);
                warnings.extend(loaded.warning.filter(|text| !warnings.contains(text)));
            }
            Some(Err(text)) if listen.tls.is_none() => fault(Place::Tls, text),
            Some(Err(text)) => fault(place, text),
        }
        match access::addresses(listen).and_then(|addresses| settings.check(listen, &addresses)) {
            Ok(warning) => warnings.extend(warning),
            Err(text) => fault(place, text),
        }
        if let Socket::Unix(path) | Socket::UnixDatagram(path) = &listen.socket {
            match folders::check(path.parent().unwrap_or(Path::new(""))) {
                Ok(warning) => warnings.extend(warning),
                Err(text) => fault(place, format!("{listen}: {text}")),
            }
        }
        listeners.push((listen.clone(), settings));
    }
    for (index, log) in config.logs.iter().enumerate() {
        match folders::check(&log.folder) {
            Ok(warning) => warnings.extend(warning),
            Err(text) => faults.push(Fault { place: Place::Log(index), text }),
        }
        if let Err(fault) = log.check_buffers(&config.limits) {
            let text = format!("[logs.{}]: {fault}", log.name);
            faults.push(Fault { place: Place::Buffers(index), text });
        }
    }
    if let Some(address) = &config.metrics
        && let Err(text) = operators::addresses(address, &config.access)
    {
        faults.push(Fault { place: Place::Metrics, text });
    }
    if faults.is_empty() { Ok(Loaded { listeners, access, warnings }) } else { Err(faults) }
}

/// Joins all faults, one per line.
pub(crate) fn error(faults: Vec<Fault>) -> Error {
    let lines: Vec<_> = faults.into_iter().map(|fault| fault.text).collect();
    Error::Config(lines.join("\n"))
}
