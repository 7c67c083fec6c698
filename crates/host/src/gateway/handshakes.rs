//! Slots for TLS handshakes at the ports of tunnels.
//!
//! A connection has a slot of [`Handshakes`] from accept until the consumer's certificate is verified. When all slots are taken, a new handshake replaces the
//! oldest one of the source address that has the most. A client without a certificate therefore never keeps the consumer waiting.

use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Maximum number of handshakes in progress, at the ports of all tunnels together.
pub const HANDSHAKES_MAX: usize = 512;

/// The handshakes in progress.
#[derive(Debug)]
pub(super) struct Handshakes {
    max: usize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    count: usize,
    /// Oldest first.
    by_source: BTreeMap<IpAddr, VecDeque<(u64, Arc<Notify>)>>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { max: HANDSHAKES_MAX, slots: Mutex::default() }
    }
}

impl Handshakes {
    /// Returns a slot for a handshake with `address`. Evicts another handshake if all slots are taken.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> HandshakeSlot {
        let source = source(address);
        let mut slots = self.lock();
        if slots.count >= self.max {
            slots.evict();
        }
        let (number, evicted) = (slots.next, Arc::<Notify>::default());
        slots.next += 1;
        slots.count += 1;
        slots.by_source.entry(source).or_default().push_back((number, evicted.clone()));
        HandshakeSlot { all: self.clone(), source, number, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().count
    }
}

impl Slots {
    /// Frees the slot of the oldest handshake of the source that has the most.
    fn evict(&mut self) {
        let Some(source) = self.by_source.iter().max_by_key(|(_, slots)| slots.len()).map(|(source, _)| *source) else { return };
        let oldest = self.by_source.get(&source).and_then(VecDeque::front).cloned();
        if let Some((number, evicted)) = oldest {
            evicted.notify_one();
            self.remove(source, number);
        }
    }

    fn remove(&mut self, source: IpAddr, number: u64) {
        let Some(slots) = self.by_source.get_mut(&source) else { return };
        let before = slots.len();
        slots.retain(|(each, _)| *each != number);
        self.count -= before - slots.len();
        if slots.is_empty() {
            self.by_source.remove(&source);
        }
    }
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub(super) struct HandshakeSlot {
    all: Arc<Handshakes>,
    source: IpAddr,
    number: u64,
    evicted: Arc<Notify>,
}

impl HandshakeSlot {
    /// Completes when another handshake has replaced this one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.all.lock().remove(self.source, self.number);
    }
}

/// The address by which sources are told apart: of IPv6 the network of 64 bits, of which one host may have every address.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn is_evicted(slot: &HandshakeSlot) -> bool {
        pin!(slot.evicted()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn full_slots_evict_the_oldest_of_the_largest_source() {
        let all = Arc::new(Handshakes { max: 4, slots: Mutex::default() });
        let consumer = all.admit(address("10.0.0.1"));
        let strangers: Vec<_> = (0..100).map(|_| all.admit(address("10.0.0.2"))).collect();
        assert_eq!(all.count(), 4);
        assert!(!is_evicted(&consumer), "it is the oldest, and the only one of its address");
        assert_eq!(strangers.iter().filter(|slot| is_evicted(slot)).count(), 97);
        assert!(strangers[97..].iter().all(|slot| all.lock().by_source[&slot.source].iter().any(|(number, _)| *number == slot.number)));
        drop((consumer, strangers));
        assert_eq!((all.count(), all.lock().by_source.len()), (0, 0));
    }

    #[test]
    fn addresses_of_one_network_are_one_source() {
        assert_eq!(source(address("2001:db8::1")), source(address("2001:db8::ffff:1")));
        assert_ne!(source(address("2001:db8::1")), source(address("2001:db8:0:1::1")));
        assert_eq!(source(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_ne!(source(address("10.0.0.1")), source(address("10.0.0.2")));
    }
}
