//! Counts open connections by client address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A /64 usually belongs to one host or site (RFC 6177), which can use all its addresses.
const IPV6_NETWORK_BITS: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Addresses {
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// Counts a connection until dropped.
#[derive(Debug)]
pub(crate) struct Place {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    /// Counts one more connection from `address`; `None` if it already has `max`.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, max: usize) -> Option<Place> {
        let address = network(address);
        let mut open = self.lock();
        if open.get(&address).is_some_and(|&count| count >= max) {
            return None;
        }
        *open.entry(address).or_default() += 1;
        drop(open);
        Some(Place { addresses: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.addresses.lock();
        let Some(count) = open.get_mut(&self.address) else { return };
        *count -= 1;
        if *count == 0 {
            open.remove(&self.address);
            if open.len() < open.capacity() / 4 {
                let len = open.len();
                open.shrink_to(2 * len);
            }
        }
    }
}

/// Returns the key under which an address is counted: the network for IPv6, the IPv4 address for
/// IPv4 and IPv4-mapped IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
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
    fn an_address_is_forgotten_with_its_last_connection() {
        let addresses = Arc::new(Addresses::default());
        let admit = |address: &str, max| addresses.admit(address.parse().unwrap(), max);
        let one = admit("192.0.2.1", 2).unwrap();
        let two = admit("::ffff:192.0.2.1", 2).unwrap();
        assert!(admit("192.0.2.1", 2).is_none());
        let three = admit("2001:db8::1", 1).unwrap();
        assert!(admit("2001:db8::2", 1).is_none());
        assert!(admit("2001:db8:0:1::1", 1).is_some());
        drop(one);
        assert!(admit("192.0.2.1", 2).is_some());
        drop((two, three));
        assert!(addresses.lock().is_empty());
        let many: Vec<_> =
            (0..10_000).map(|n: u32| addresses.admit(IpAddr::V4(n.into()), 1)).collect();
        assert!(many.iter().all(Option::is_some));
        drop(many);
        assert!(addresses.lock().capacity() < 100);
    }
}
