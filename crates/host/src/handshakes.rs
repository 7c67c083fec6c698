//! Slots for connections in their TLS handshake.
//!
//! A connection has a slot of [`Handshakes`] until its certificate is verified. When all slots are taken, a new handshake replaces the
//! oldest one of the source address that has the most. Clients without a certificate therefore never keep another address waiting.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::sync::Notify;

use crate::quotas::network;

/// The handshakes in progress at a group of ports.
#[derive(Debug)]
pub struct Handshakes {
    /// Maximum number of handshakes in progress.
    pub max: usize,
    slots: Mutex<Slots>,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    count: usize,
    /// By the number of the slot, oldest first.
    by_source: BTreeMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
}

impl Handshakes {
    /// No handshakes, of which at most `max` are in progress.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, slots: Mutex::default(), evicted: AtomicU64::new(0) })
    }

    /// Returns a slot for a handshake with `address`. Evicts another handshake if all slots are taken.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> HandshakeSlot {
        let source = network(address);
        let mut slots = self.lock();
        if slots.count >= self.max {
            slots.evict();
            self.evicted.fetch_add(1, Relaxed);
        }
        let (number, evicted) = (slots.next, Arc::<Notify>::default());
        slots.next += 1;
        slots.count += 1;
        slots.by_source.entry(source).or_default().insert(number, evicted.clone());
        HandshakeSlot { all: self.clone(), source, number, evicted }
    }

    /// Handshakes in progress.
    pub fn count(&self) -> usize {
        self.lock().count
    }

    /// Handshakes that newer ones have replaced since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Frees the slot of the oldest handshake of the source that has the most.
    fn evict(&mut self) {
        let Some((source, slots)) = self.by_source.iter().max_by_key(|(_, slots)| slots.len()) else { return };
        if let Some((number, evicted)) = slots.first_key_value() {
            evicted.notify_one();
            let (source, number) = (*source, *number);
            self.remove(source, number);
        }
    }

    fn remove(&mut self, source: IpAddr, number: u64) {
        let Some(slots) = self.by_source.get_mut(&source) else { return };
        self.count -= usize::from(slots.remove(&number).is_some());
        if slots.is_empty() {
            self.by_source.remove(&source);
        }
    }
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub struct HandshakeSlot {
    all: Arc<Handshakes>,
    source: IpAddr,
    number: u64,
    evicted: Arc<Notify>,
}

impl HandshakeSlot {
    /// Completes when another handshake has replaced this one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.all.lock().remove(self.source, self.number);
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

    #[test]
    fn full_slots_evict_the_oldest_of_the_largest_source() {
        let all = Handshakes::new(4);
        let consumer = all.admit("10.0.0.1".parse().unwrap());
        let strangers: Vec<_> = (0..100).map(|_| all.admit("10.0.0.2".parse().unwrap())).collect();
        assert_eq!((all.count(), all.evicted()), (4, 97));
        assert!(!is_evicted(&consumer), "it is the oldest, and the only one of its address");
        assert_eq!(strangers.iter().filter(|slot| is_evicted(slot)).count(), 97);
        assert!(strangers[97..].iter().all(|slot| all.lock().by_source[&slot.source].contains_key(&slot.number)));
        drop((consumer, strangers));
        assert_eq!((all.count(), all.lock().by_source.len()), (0, 0));
    }
}
