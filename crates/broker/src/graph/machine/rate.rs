//! The rate at which a supplier's events arrive, against its declared period.

use super::super::spec::Supplier;

/// Checks one supplier's arrivals by the generic cell rate algorithm (ITU-T I.371).
///
/// One event is due in each period. An event may be early by one period and the supplier's jitter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalRate {
    /// When the next event is due, in nanoseconds of UTC.
    due_ns: u64,
}

impl ArrivalRate {
    /// Takes an arrival; returns whether it is excess, that is, faster than the declared period.
    pub fn is_excess(&mut self, now_ns: u64, supplier: &Supplier) -> bool {
        let (period_ns, jitter_ns) = (supplier.period.get().unsigned_abs(), supplier.jitter.get().unsigned_abs());
        let is_excess = now_ns.saturating_add(period_ns).saturating_add(jitter_ns) < self.due_ns;
        if !is_excess {
            self.due_ns = self.due_ns.max(now_ns).saturating_add(period_ns);
        }
        is_excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{Shape, testing::supplier},
        timing::Nanos,
    };

    const MS: u64 = 1_000_000;

    fn excess(supplier: &Supplier, arrivals_ms: impl Iterator<Item = u64>) -> usize {
        let mut rate = ArrivalRate::default();
        arrivals_ms.filter(|now_ms| rate.is_excess(now_ms * MS, supplier)).count()
    }

    #[test]
    fn arrivals_faster_than_period_are_excess() {
        let supplier = supplier("S", Shape::NUMBER, 10);
        assert_eq!(excess(&supplier, (0..100).map(|event| event * 10)), 0);
        assert_eq!(excess(&supplier, (0..100).map(|event| event * 10 + if event % 2 == 1 { 9 } else { 0 })), 0, "late and then early");
        assert_eq!(excess(&supplier, [1_000; 5].into_iter()), 3);
        let twice_as_fast = excess(&supplier, (0..1_000).map(|event| event * 5));
        assert!((498..=500).contains(&twice_as_fast), "{twice_as_fast}");
        let bunched = Supplier { jitter: Nanos::from_millis(40), ..supplier };
        assert_eq!(excess(&bunched, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000].into_iter()), 1);
    }
}
