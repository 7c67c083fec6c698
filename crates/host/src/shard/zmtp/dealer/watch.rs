//! DEALERs that want to know what is guaranteed: they are told when they ask, and whenever it changes, by the broker that leads.

use bodkin_broker::wire::ClientFrame;

use super::super::{Role, Shard};
use crate::{shard::guarantee::Guarantees, stall::Assumed};

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
        let stalls = &self.context.stalls;
        let Assumed { blocking_ns, clock_error_ns, broker_backup_ns: broker_backup_stated_ns } = stalls.assumed();
        // To the nanosecond, for the causes are what exceeds what was stated.
        let told = ClientFrame::Guaranteed {
            epoch: self.epoch(),
            deadlines: deadlines.guarantee.into(),
            losses: losses.into(),
            worst_stall_ns: stalls.worst_ns(),
            blocking_ns,
            clock_difference_ns: stalls.clock_difference_ns(),
            clock_error_ns,
            publisher_excess_ns: stalls.publisher_excess_ns(),
            broker_backup_ns: stalls.backup_way_ns(),
            broker_backup_stated_ns,
        };
        self.endpoint.tell(slot, &told);
    }
}
