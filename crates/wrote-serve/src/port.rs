//! A port: state shared by all connections of one listener.

use crate::access::Access;
use crate::acks::Acks;
use crate::addresses::Addresses;
use crate::channel::Channel;
use crate::config::Listen;
use crate::limits::Limits;
use crate::metrics::{Metrics, Totals};
use crate::refusals::Refusals;
use crate::settings::Settings;
use crate::tls::Sessions;
use crate::workers::Worker;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::{Semaphore, watch};

/// State shared by all connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub listen: Arc<Listen>,
    /// The configured name or address.
    pub host: Arc<str>,
    pub channel: Arc<Channel>,
    /// Limits, tokens and certificates as of the last [`Port::renew`].
    pub limits: Arc<Limits>,
    pub access: Arc<Access>,
    /// `None` if streams are not encrypted.
    pub tls: Option<Sessions>,
    pub settings: watch::Receiver<Settings>,
    /// Connections by address, over all listeners.
    pub addresses: Arc<Addresses>,
    /// This listener's counters, and those shared by all listeners.
    pub metrics: Arc<Metrics>,
    pub totals: Arc<Totals>,
    /// The server's workers, and each one's acknowledgements for this listener.
    pub workers: Arc<[Arc<Worker>]>,
    pub acks: Arc<[Arc<Acks>]>,
    /// Connections for which descriptors are available.
    pub descriptors: Arc<AtomicUsize>,
    /// Held by each HTTP request that reads a log, as readers have their own buffers (W8).
    pub readers: Arc<Semaphore>,
    /// Becomes true when the server drains.
    pub draining: watch::Receiver<bool>,
    /// Log lines about refused clients.
    pub refusals: Arc<Refusals>,
}

impl Port {
    /// Takes changed settings. Returns whether any changed. Costs one load otherwise.
    pub(crate) fn renew(&mut self) -> bool {
        let has_changed = self.settings.has_changed().unwrap_or(false);
        if has_changed {
            let Settings { limits, access, tls, .. } = self.settings.borrow_and_update().clone();
            (self.limits, self.access, self.tls) = (limits, access, tls);
        }
        has_changed
    }
}
