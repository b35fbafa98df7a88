//! A port: the state shared by all connections of one listener. It admits or refuses connections.

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

/// The state shared by all connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub listen: Arc<Listen>,
    /// The configured host name or address.
    pub host: Arc<str>,
    pub channel: Arc<Channel>,
    /// The limits, tokens and certificates as of the last [`Port::renew`].
    pub limits: Arc<Limits>,
    pub access: Arc<Access>,
    /// The TLS sessions; `None` if this listener's streams are not encrypted.
    pub tls: Option<Sessions>,
    pub settings: watch::Receiver<Settings>,
    /// This listener's counters, and those shared by all listeners.
    pub metrics: Arc<Metrics>,
    pub totals: Arc<Totals>,
    /// The server's workers, and the acknowledgements of each for this listener.
    pub workers: Arc<[Arc<Worker>]>,
    pub acks: Arc<[Arc<Acks>]>,
    /// The number of connections for which descriptors are available.
    pub descriptors: Arc<AtomicUsize>,
    /// Permits for HTTP requests that read a log. They are limited because each reader has its own
    /// buffers (W8).
    pub readers: Arc<Semaphore>,
    /// Becomes true when the server drains.
    pub draining: watch::Receiver<bool>,
    /// The throttled log lines about refused clients.
    pub refusals: Arc<Refusals>,
}

impl Port {
    /// Applies changed settings. Returns whether any have changed. If none have, the call costs a
    /// single load.
    pub(crate) fn renew(&mut self) -> bool {
        let has_changed = self.settings.has_changed().unwrap_or(false);
        if has_changed {
            let Settings { limits, access, tls, .. } = self.settings.borrow_and_update().clone();
            (self.limits, self.access) = (limits, access);
            self.tls = tls.filter(|_| self.listen.is_tls);
        }
        has_changed
    }

    /// Waits until the server drains or shuts down.
    pub(crate) fn drains(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut draining = self.draining.clone();
        async move { _ = draining.wait_for(|&draining| draining).await }
    }

    /// Returns whether so few connections are free that silent clients may exclude other clients.
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

    /// Logs a line with this reason, unless one was logged a moment ago.
    pub(crate) fn say(&self, client: Client, reason: Reason, because: impl Display) {
        // The log has already reported the reason itself.
        if reason != Reason::Log {
            let limits = &self.settings.borrow().limits;
            let line = format_args!("{}: {client}: {because}", self.listen);
            self.refusals.say(reason, limits, line);
        }
    }
}

/// An admitted connection, which is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    metrics: Arc<Metrics>,
    totals: Arc<Totals>,
    pub seat: Seat,
    pub account: Account,
}

impl Admission {
    /// Admits a connection from `address`, or counts its refusal and returns `None`.
    pub(crate) fn of(port: &Port, address: Option<IpAddr>) -> Option<Admission> {
        let Port { metrics, totals, limits, workers, .. } = port;
        let client = Client(address);
        let open = totals.connections.load(Ordering::Relaxed);
        if open >= limits.connections as u64 {
            port.refuse(client, Reason::Connections, "too many connections");
            return None;
        }
        if open >= port.descriptors.load(Ordering::Relaxed) as u64 {
            port.refuse(client, Reason::Descriptors, "the logs need the last open files");
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
