//! A port: what all connections of one listener share.

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

/// The state that all connections of one listener share.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub listen: Arc<Listen>,
    /// The name or address of its configuration.
    pub host: Arc<str>,
    pub channel: Arc<Channel>,
    /// The limits, tokens and certificates as [`Port::renew`] last found them.
    pub limits: Arc<Limits>,
    pub access: Arc<Access>,
    /// `None` where streams are not encrypted.
    pub tls: Option<Sessions>,
    pub settings: watch::Receiver<Settings>,
    /// The connections of each address, of all listeners.
    pub addresses: Arc<Addresses>,
    /// The counters of this listener, and what all listeners share.
    pub metrics: Arc<Metrics>,
    pub totals: Arc<Totals>,
    /// The workers of the server, and what each has for this listener.
    pub workers: Arc<[Arc<Worker>]>,
    pub acks: Arc<[Arc<Acks>]>,
    /// Connections for which there are descriptors.
    pub descriptors: Arc<AtomicUsize>,
    /// A request that reads a log over HTTP holds one: readers have buffers of their own (W8).
    pub readers: Arc<Semaphore>,
    /// Becomes true when the server drains.
    pub draining: watch::Receiver<bool>,
    /// Lines about clients that were refused.
    pub refusals: Arc<Refusals>,
}

impl Port {
    /// Takes settings that have changed, and tells whether any have. Costs one load where none has.
    pub(crate) fn renew(&mut self) -> bool {
        let has_changed = self.settings.has_changed().unwrap_or(false);
        if has_changed {
            let Settings { limits, access, tls, .. } = self.settings.borrow_and_update().clone();
            (self.limits, self.access, self.tls) = (limits, access, tls);
        }
        has_changed
    }
}
