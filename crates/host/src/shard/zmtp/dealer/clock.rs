//! Asking the hosts of DEALERs what their clocks show: deadlines count from the time that a publisher stamps, and were admitted with a largest difference. Where nobody
//! has stated one, nobody is asked. The clock of the pair's other host counts with them.

use bodkin_broker::wire::ClientFrame;

use super::super::{super::Shard, link::Role};
use crate::pair::primary::Primary;

impl Shard {
    /// Asks those whose turn it is, and tells the watch what is known; once a second.
    pub(in crate::shard) fn ask_clocks(&mut self) {
        if !self.context.stalls.asks_for_clocks() {
            return;
        }
        let (now, epoch) = (self.clock.now, self.epoch());
        let of_pair = self.primary.as_ref().and_then(Primary::clock_difference_ns);
        let (mut due, mut known, mut difference_ns) = (Vec::new(), u64::from(of_pair.is_some()), of_pair.unwrap_or(0));
        for (slot, link) in &self.endpoint.links {
            let Role::Dealer(dealer) = &link.role else { continue };
            if dealer.hello.is_some() && dealer.clock.is_due(now) {
                due.push(slot);
            }
            if let Some(this_ns) = dealer.clock.difference_ns() {
                known += 1;
                difference_ns = difference_ns.max(this_ns);
            }
        }
        self.context.stalls.clocks_differ(known, difference_ns);
        for slot in due {
            let sent_utc_ns = self.endpoint.dealer(slot).clock.ask(now);
            self.endpoint.tell(slot, &ClientFrame::ClockRequest { epoch, sent_utc_ns });
        }
    }

    /// A client has told what its clock shows.
    pub(super) fn clock_told(&mut self, slot: usize, sent_utc_ns: u64, received_utc_ns: u64, replied_utc_ns: u64) {
        self.endpoint.dealer(slot).clock.answered(sent_utc_ns, received_utc_ns, replied_utc_ns);
    }
}
