//! Admits a connection, or refuses it, and counts it while it is open.

use crate::addresses::Place;
use crate::limits::Reason;
use crate::memory::Account;
use crate::metrics::{Metrics, Totals, add, sub};
use crate::port::Port;
use crate::refusals::Client;
use crate::workers::Seat;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An admitted connection, counted until dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    metrics: Arc<Metrics>,
    totals: Arc<Totals>,
    pub seat: Seat,
    pub account: Account,
    /// `None` for a connection without an address.
    _place: Option<Place>,
}

impl Admission {
    /// Admits a connection from `address`, or counts the refusal.
    pub(crate) fn of(port: &Port, address: Option<IpAddr>) -> Option<Admission> {
        let Port { metrics, totals, limits, addresses, workers, .. } = port;
        let client = Client(address);
        let open = totals.connections.load(Ordering::Relaxed);
        let own = metrics.connections.load(Ordering::Relaxed);
        let connections_max = port.settings.borrow().connections_max;
        if open >= connections_max as u64 || own >= limits.connections as u64 {
            port.refuse(client, Reason::Connections, "too many connections");
            return None;
        }
        if open >= port.descriptors.load(Ordering::Relaxed) as u64 {
            port.refuse(client, Reason::Descriptors, "the logs need the open files that are left");
            return None;
        }
        let limit = limits.connections_per_address;
        let place = address.map(|address| addresses.admit(address, limit));
        if let Some(None) = place {
            port.refuse(client, Reason::Address, "too many connections of one address");
            return None;
        }
        add(&totals.connections, 1);
        add(&metrics.connections, 1);
        add(&metrics.connections_total, 1);
        let (seat, account) = (Seat::of(workers), Account::new(totals.memory.clone(), client));
        let (metrics, totals) = (metrics.clone(), totals.clone());
        Some(Admission { metrics, totals, seat, account, _place: place.flatten() })
    }
}

impl Admission {
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
