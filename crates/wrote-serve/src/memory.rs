//! Accounts for the memory that clients use: partial messages and unread answers.
//!
//! There are three pools, so that clients that only read can't displace writers, and
//! unauthenticated clients can't displace others. When a pool is full, the largest holder at the
//! address with the largest total is closed, so that one address can't lock out the others.

use crate::config::Limits;
use crate::lock;
use crate::refusals::{Client as Peer, Refusal};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};
use wrote_result::words;

/// A /64 usually belongs to one host or site (RFC 6177), which can use all its addresses.
const IPV6_NETWORK_BITS: u32 = 64;

/// The divisor of [`Limits::in_flight_bytes`]: unauthenticated clients may use the quotient in
/// addition.
const STRANGERS_SHARE: usize = 16;
/// The divisor of the free memory of a pool; the quotient limits a single read.
const READ_SHARE: u64 = 512;
/// The minimum size of a read.
const READ_BYTES_MIN: u64 = 4 << 10;

words! {
    /// A pool of memory; the word is the value of the label `pool` in the metrics.
    pub(crate) enum Pool {
        /// Unfinished messages, and messages waiting for room in a log.
        Messages = "messages",
        /// Unsent answers.
        Answers = "answers",
        /// Unfinished messages and unsent answers of unauthenticated clients.
        Strangers = "strangers",
    }
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: [AtomicU64; Pool::ALL.len()],
    /// The clients that have held memory, by the address of their state.
    clients: Mutex<HashMap<usize, Arc<Client>>>,
    /// The number of times that a client began to hold memory.
    begins: AtomicU64,
}

#[derive(Debug, Default)]
struct Client {
    address: Option<IpAddr>,
    held: [Held; Pool::ALL.len()],
    /// Whether the client waits for its log, as opposed to the log waiting for the client.
    is_paused: AtomicBool,
    is_evicted: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: AtomicUsize,
    /// The value of [`Memory::begins`] when this client began to hold memory.
    since: AtomicU64,
}

/// The memory of one client. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Account {
    pub memory: Arc<Memory>,
    pub peer: Peer,
    /// The client's state, created when the client first holds memory, because idle clients should
    /// be cheap.
    client: OnceLock<Arc<Client>>,
}

impl Pool {
    fn bytes_max(self, limits: &Limits) -> u64 {
        let bytes = match self {
            Pool::Messages => limits.in_flight_bytes,
            Pool::Answers => limits.unsent_bytes,
            Pool::Strangers => limits.in_flight_bytes / STRANGERS_SHARE,
        };
        bytes as u64
    }
}

impl Memory {
    pub(crate) fn held(&self, pool: Pool) -> u64 {
        self.held[pool as usize].load(Ordering::Relaxed)
    }

    /// Returns how many bytes a client may read at once, at most `most`. The number decreases with
    /// the free memory, because while a log has no room, each of many clients keeps what it has
    /// read.
    pub(crate) fn read_bytes(&self, most: usize, limits: &Limits) -> usize {
        let pool = Pool::Messages;
        let left = pool.bytes_max(limits).saturating_sub(self.held(pool));
        let share = (left / READ_SHARE).max(READ_BYTES_MIN);
        most.min(usize::try_from(share).unwrap_or(most))
    }

    /// Creates the state of a client that is about to hold memory.
    fn begin(&self, peer: Peer) -> Arc<Client> {
        let client = Client { address: peer.0.map(network), ..Client::default() };
        let client = Arc::new(client);
        lock(&self.clients).insert(key(&client), client.clone());
        client
    }

    /// Closes clients until a pool is below its limit.
    fn make_room(&self, pool: Pool, bytes_max: u64) {
        let clients = lock(&self.clients);
        while self.held(pool) > bytes_max {
            let Some(client) = largest(clients.values(), pool, bytes_max) else { return };
            client.is_evicted.store(true, Ordering::Relaxed);
            // The client frees these bytes when it wakes up.
            let bytes = client.held[pool as usize].bytes.swap(0, Ordering::Relaxed);
            self.held[pool as usize].fetch_sub(bytes as u64, Ordering::Relaxed);
            let waker = lock(&client.waker).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

/// Finds the client to close at the address with the largest total. Among the clients with at least
/// half as many bytes as the largest one, it is the one that has held memory longest. Clients that
/// wait for their log are spared, unless all other clients hold less than half of the pool.
fn largest<'a>(
    clients: impl Iterator<Item = &'a Arc<Client>>,
    pool: Pool,
    bytes_max: u64,
) -> Option<&'a Arc<Client>> {
    let holders =
        clients.map(|client| (client, client.bytes(pool))).filter(|(_, bytes)| *bytes > 0);
    let (mut waited_for, paused): (Vec<_>, Vec<_>) =
        holders.partition(|(client, _)| !client.is_paused.load(Ordering::Relaxed));
    let bytes: usize = waited_for.iter().map(|(_, bytes)| bytes).sum();
    if (bytes as u64) < bytes_max / 2 {
        waited_for.extend(paused);
    }
    let mut addresses: HashMap<_, usize> = HashMap::new();
    for (client, bytes) in &waited_for {
        *addresses.entry(client.address).or_default() += bytes;
    }
    let (address, _) = addresses.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let of_address = || waited_for.iter().filter(|(client, _)| client.address == address);
    let most = of_address().map(|(_, bytes)| *bytes).max()?;
    let large = of_address().filter(|(_, bytes)| *bytes >= most / 2);
    let since = |client: &Client| client.held[pool as usize].since.load(Ordering::Relaxed);
    large.map(|(client, _)| *client).min_by_key(|client| since(client))
}

impl Client {
    fn bytes(&self, pool: Pool) -> usize {
        self.held[pool as usize].bytes.load(Ordering::Relaxed)
    }
}

impl Account {
    pub(crate) fn new(memory: Arc<Memory>, peer: Peer) -> Account {
        Account { memory, peer, client: OnceLock::new() }
    }

    /// Sets the number of bytes that this client holds in a pool. If the pool is full, closes the
    /// largest holder, and fails if this client is closed.
    pub(crate) fn hold(&self, pool: Pool, bytes: usize, limits: &Limits) -> Result<(), Refusal> {
        if bytes == 0 && self.client.get().is_none() {
            return Ok(());
        }
        let client = self.client.get_or_init(|| self.memory.begin(self.peer));
        let (held, all) = (&client.held[pool as usize], &self.memory.held[pool as usize]);
        let before = held.bytes.swap(bytes, Ordering::Relaxed);
        if bytes <= before {
            if bytes < before {
                all.fetch_sub((before - bytes) as u64, Ordering::Relaxed);
            }
            return Ok(());
        }
        if before == 0 {
            held.since.store(self.memory.begins.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
        let more = (bytes - before) as u64;
        let all = all.fetch_add(more, Ordering::Relaxed) + more;
        let bytes_max = pool.bytes_max(limits);
        if all > bytes_max {
            self.memory.make_room(pool, bytes_max);
        }
        self.check()
    }

    /// Fails if this client was closed because a pool was full.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let is_evicted = |client: &Arc<Client>| client.is_evicted.load(Ordering::Relaxed);
        if self.client.get().is_some_and(is_evicted) { Err(Refusal::Memory) } else { Ok(()) }
    }

    /// Wakes this task when the client is closed, if the client holds memory. Each client has a
    /// single task.
    pub(crate) fn watch(&self, context: &Context<'_>) {
        if let Some(client) = self.client.get() {
            let mut waker = lock(&client.waker);
            waker.get_or_insert_with(|| context.waker().clone());
        }
    }

    /// Records whether a client that holds memory is waiting for its log.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        if let Some(client) = self.client.get() {
            client.is_paused.store(is_paused, Ordering::Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        lock(&self.memory.clients).remove(&key(&client));
        for (held, all) in client.held.iter().zip(&self.memory.held) {
            let bytes = held.bytes.swap(0, Ordering::Relaxed);
            all.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }
}

fn key(client: &Arc<Client>) -> usize {
    Arc::as_ptr(client).addr()
}

/// Returns the key under which an address is counted: for IPv6 its network, for IPv4 and
/// IPv4-mapped IPv6 the IPv4 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (u128::BITS - IPV6_NETWORK_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_as_its_network() {
        let network = |address: &str| network(address.parse().unwrap()).to_string();
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("2001:db8::1"), network("2001:db8::2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }

    fn limits() -> Limits {
        Limits { in_flight_bytes: 1600, unsent_bytes: 1000, ..Limits::default() }
    }

    /// Returns the account of a client at an address.
    fn client(memory: &Arc<Memory>, address: [u8; 4]) -> Account {
        Account::new(memory.clone(), Peer(Some(address.into())))
    }

    #[test]
    fn the_oldest_large_client_of_the_address_that_holds_most_is_closed() {
        let memory = Arc::new(Memory::default());
        let hold = |client: &Account, bytes| client.hold(Pool::Messages, bytes, &limits());
        let many: Vec<_> = (0..5).map(|_| client(&memory, [127, 0, 0, 2])).collect();
        for (client, bytes) in many.iter().zip([100, 250, 300, 300, 300]) {
            hold(client, bytes).unwrap();
        }
        let (small, large) = (client(&memory, [127, 0, 0, 1]), client(&memory, [127, 0, 0, 1]));
        hold(&small, 10).unwrap();
        hold(&large, 350).unwrap();
        assert!(many[1].check().is_err(), "the first of the large ones");
        hold(&large, 600).unwrap();
        let open: Vec<_> = many.iter().map(|client| client.check().is_ok()).collect();
        assert_eq!(open, [true, false, false, true, true]);
        assert_eq!(memory.held(Pool::Messages), 100 + 300 + 300 + 10 + 600);
        // This client is the largest holder at the address with the largest total.
        assert!(hold(&large, 1500).is_err());
        assert!(small.check().is_ok() && many[0].check().is_ok());
        drop((many, small, large));
        assert_eq!(memory.held(Pool::Messages), 0);
        assert!(lock(&memory.clients).is_empty());
    }

    #[test]
    fn pools_are_separate_and_clients_that_wait_for_the_log_are_spared() {
        let memory = Arc::new(Memory::default());
        let clients: [_; 4] = std::array::from_fn(|_| client(&memory, [127, 0, 0, 1]));
        let [waits, writes, reads, stranger] = &clients;
        waits.hold(Pool::Messages, 700, &limits()).unwrap();
        waits.set_paused(true);
        writes.hold(Pool::Messages, 850, &limits()).unwrap();
        reads.hold(Pool::Answers, 1000, &limits()).unwrap();
        stranger.hold(Pool::Strangers, 100, &limits()).unwrap();
        assert!(stranger.hold(Pool::Strangers, 101, &limits()).is_err());
        assert!(reads.hold(Pool::Answers, 1001, &limits()).is_err());
        assert!(waits.check().is_ok() && writes.check().is_ok());
        writes.hold(Pool::Messages, 901, &limits()).unwrap_err();
        waits.check().unwrap();
        assert_eq!(memory.held(Pool::Messages), 700);
        assert!(waits.hold(Pool::Messages, 1601, &limits()).is_err(), "all bytes are its own");
    }

    #[test]
    fn each_reads_a_small_part_of_what_is_left() {
        let memory = Arc::new(Memory::default());
        let limits = Limits { in_flight_bytes: 64 << 20, ..Limits::default() };
        let one = client(&memory, [127, 0, 0, 1]);
        assert_eq!(memory.read_bytes(1 << 20, &limits), 128 << 10);
        assert_eq!(memory.read_bytes(1000, &limits), 1000);
        one.hold(Pool::Messages, 32 << 20, &limits).unwrap();
        assert_eq!(memory.read_bytes(1 << 20, &limits), 64 << 10);
        one.hold(Pool::Messages, 64 << 20, &limits).unwrap();
        assert_eq!(memory.read_bytes(1 << 20, &limits), 4 << 10);
    }
}
