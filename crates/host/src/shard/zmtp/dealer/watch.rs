//! DEALERs that want to know what is guaranteed: they are told when they ask, and whenever it changes, by the broker that leads.

use bodkin_broker::wire::ClientFrame;

use super::super::{Role, Shard};
use crate::shard::guarantee::Guarantees;

impl Shard {
    /// A client wants to know from now on.
    pub(super) fn watch_guarantee(&mut self, slot: usize) {
        self.endpoint.dealer(slot).watches = true;
        if self.leads() {
            self.tell_guaranteed(slot);
        }
    }

    /// Tells all who want to know, unless another node is to say it.
    pub(in crate::shard) fn tell_watching_dealers(&mut self) {
        if !self.leads() {
            return;
        }
        let watches = |role: &Role| matches!(role, Role::Dealer(dealer) if dealer.watches);
        let slots: Vec<usize> = self.endpoint.links.iter().filter(|(_, link)| watches(&link.role)).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.tell_guaranteed(slot));
    }

    fn tell_guaranteed(&mut self, slot: usize) {
        let Guarantees { deadlines, losses } = self.guarantees();
        let nanos = |micros: u64| micros.saturating_mul(1_000);
        let told = ClientFrame::Guaranteed {
            epoch: self.epoch(),
            deadlines: deadlines.guarantee.into(),
            losses: losses.into(),
            worst_stall_ns: nanos(deadlines.worst_us),
            blocking_ns: nanos(deadlines.blocking_us),
            clock_difference_ns: nanos(deadlines.clock_difference_us),
            clock_error_ns: nanos(deadlines.clock_error_us),
            publisher_excess_ns: nanos(deadlines.publisher_excess_us),
            broker_backup_ns: nanos(deadlines.broker_backup_us),
            broker_backup_stated_ns: nanos(deadlines.broker_backup_stated_us),
        };
        self.endpoint.tell(slot, &told);
    }
}
