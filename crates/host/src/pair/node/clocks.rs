//! Clocks of the candidates' hosts: each asks the other one now and then what its clock shows.

use bodkin_broker::{
    Node,
    wire::{LinkFrame, Replication},
};

use super::PairThread;
use crate::{control, pair::links::CLOCKS_SINCE};

impl PairThread {
    /// Asks the other candidate's host now and then what its clock shows: events that were stamped by one are due by the other's.
    pub(super) fn ask_clock(&mut self) {
        let (Some(partner), now, epoch) = (self.partner(), std::time::Instant::now(), self.member.epoch()) else { return };
        if self.links.speaks(partner, CLOCKS_SINCE) && self.partner_clock.is_due(now) {
            let sent_utc_ns = self.partner_clock.ask(now);
            self.links.send(partner, LinkFrame::Replication(Replication::ClockRequest { epoch, sent_utc_ns }));
        }
    }

    /// Answers the other candidate with what this host's clock shows.
    pub(super) fn tell_clock(&mut self, to: Node, sent_utc_ns: u64) {
        let (epoch, now_utc_ns) = (self.member.epoch(), control::now().unix_nanos());
        let reply = Replication::ClockReply { epoch, sent_utc_ns, received_utc_ns: now_utc_ns, replied_utc_ns: now_utc_ns };
        self.links.send(to, LinkFrame::Replication(reply));
    }
}
