//! A port: the state shared by all connections of one listener, which admits or refuses them.

use crate::acks::Acks;
use crate::channel::Channel;
use crate::config::access::Access;
use crate::config::settings::Settings;
use crate::config::{Limits, Listen};
use crate::memory::Account;
use crate::metrics::{Metrics, Totals, add, sub};
use crate::refusals::{Client, Reason, Refusals};
use crate::stream::Sessions;
use crate::workers::{Seat, Worker};
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// `None` if this listener's streams are not encrypted.
    pub tls: Option<Sessions>,
    pub settings: watch::Receiver<Settings>,
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
            (self.limits, self.access) = (limits, access);
            self.tls = tls.filter(|_| self.listen.is_tls);
        }
        has_changed
    }

    /// Waits until the server drains. Its end counts as that, too.
    pub(crate) fn drains(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut draining = self.draining.clone();
        async move { _ = draining.wait_for(|&draining| draining).await }
    }

    /// Returns whether few connections are free, so that silent clients take other clients' places.
    pub(crate) fn is_crowded(&self) -> bool {
        let most = self.descriptors.load(Ordering::Relaxed).min(self.limits.connections) as u64;
        self.totals.connections.load(Ordering::Relaxed) >= most - most / 8
    }

    /// Counts a refused connection or request.
    pub(crate) fn refuse(&self, client: Client, reason: Reason, because: impl Display) {
        add(&self.metrics.refused[reason as usize], 1);
        self.say(client, reason, because);
    }

    /// Counts a refused message.
    pub(crate) fn reject(&self, client: Client, reason: Reason, because: impl Display) {
        add(&self.metrics.rejected[reason as usize], 1);
        self.say(client, reason, because);
    }

    /// Logs a line of this kind, unless there was one a moment ago.
    pub(crate) fn say(&self, client: Client, reason: Reason, because: impl Display) {
        // The log has reported its reason itself.
        if reason != Reason::Log {
            let limits = &self.settings.borrow().limits;
            let line = format_args!("{}: {client}: {because}", self.listen);
            self.refusals.say(reason, limits, line);
        }
    }
}

/// An admitted connection, counted until dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    metrics: Arc<Metrics>,
    totals: Arc<Totals>,
    pub seat: Seat,
    pub account: Account,
}

impl Admission {
    /// Admits a connection from `address`, or counts the refusal.
    pub(crate) fn of(port: &Port, address: Option<IpAddr>) -> Option<Admission> {
        let Port { metrics, totals, limits, workers, .. } = port;
        let client = Client(address);
        let open = totals.connections.load(Ordering::Relaxed);
        if open >= limits.connections as u64 {
            port.refuse(client, Reason::Connections, "too many connections");
            return None;
        }
        if open >= port.descriptors.load(Ordering::Relaxed) as u64 {
            port.refuse(client, Reason::Descriptors, "the logs need the open files that are left");
            return None;
        }
        add(&totals.connections, 1);
        add(&metrics.connections, 1);
        add(&metrics.connections_total, 1);
        let (seat, account) = (Seat::of(workers), Account::new(totals.memory.clone(), client));
        let (metrics, totals) = (metrics.clone(), totals.clone());
        Some(Admission { metrics, totals, seat, account })
    }

    pub(crate) fn client(&self) -> Client {
        self.account.peer
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        sub(&self.metrics.connections, 1);
        sub(&self.totals.connections, 1);
    }
}
