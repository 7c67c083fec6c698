//! Which provider is the consumer of which service.

use super::{GOLDEN, scramble};

/// For each of `services` entries the entry whose provider may use it: a random order in which every provider is a consumer
/// once, and none of its own service where there is another.
///
/// Sattolo's algorithm: it makes one cycle of all entries, so that no entry stays in its place.
pub fn consumers(seed: u64, services: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..services).collect();
    let mut state = scramble(!seed);
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(GOLDEN);
        let other = usize::try_from(scramble(state) % last as u64).expect("below a 32-bit count");
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_consumes_once_and_never_its_own_service() {
        for services in [2, 3, 100, 10_000] {
            let order = consumers(5, services);
            assert!(order.iter().zip(0..).all(|(consumer, service)| *consumer != service));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..services));
        }
        assert_eq!((consumers(5, 1), consumers(5, 0)), (vec![0], vec![]));
        assert_eq!(consumers(5, 100), consumers(5, 100));
        assert_ne!(consumers(5, 100), consumers(6, 100));
    }
}
