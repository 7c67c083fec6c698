//! Disks of the two candidates: which of them take new data, and when a leader that cannot write hands the lead over.
//!
//! Each candidate tests its own disk ([`crate::pair::record`]) and sends the result to the other one. A leader whose database,
//! event log or audit log refuses what it is given starts a switchover, if the standby is in sync and its disk has room. With
//! both disks full it stays: the other node could not do better.

use std::time::Duration;

use bodkin_broker::{
    Instant, Node,
    wire::{LinkFrame, Replication},
};
use tokio::sync::oneshot;

use super::{PairThread, Trouble, name};
use crate::pair::links::DISK_SINCE;

/// Pause between two reports of the same state.
const REPORT_PERIOD: Duration = Duration::from_secs(1);
/// Minimum time for which a leader refuses changes before it hands over: longer than a disk that is full for a moment.
const REFUSING_MIN: Duration = Duration::from_secs(2);
/// Minimum time between the end of a full disk and a switchover: the database and the logs are tried again within 2 s of it.
const ROOM_PAUSE: Duration = Duration::from_secs(5);
/// Minimum time between two switchovers of this node for its disk.
const PAUSE: Duration = Duration::from_secs(60);

/// What is known of the candidates' disks.
#[derive(Debug, Default)]
pub(super) struct Disks {
    /// What the other candidate was sent last on its present connection, and when.
    sent: Option<(Instant, bool)>,
    /// What the other candidate reported last on its present connection.
    partner_has_room: Option<bool>,
    relief: Relief,
}

impl Disks {
    /// Forgets the other candidate's reports: its connection has ended.
    pub fn forget_partner(&mut self) {
        (self.sent, self.partner_has_room) = (None, None);
    }
}

/// Decides when a leader that refuses changes hands over.
#[derive(Debug, Default)]
struct Relief {
    refuses_since: Option<Instant>,
    /// When this node's disk was last found full.
    full_at: Option<Instant>,
    tried_at: Option<Instant>,
}

impl Relief {
    /// Returns true if the leader is to hand over now. `has_room` is the result of the last test of its own disk; `can_hand_over` says whether the standby is in
    /// sync and has room.
    fn is_due(&mut self, now: Instant, refuses: bool, has_room: bool, can_hand_over: bool) -> bool {
        if !has_room {
            self.full_at = Some(now);
        }
        if !refuses {
            self.refuses_since = None;
            return false;
        }
        let since = *self.refuses_since.get_or_insert(now);
        let has_room_again = has_room && self.full_at.is_some_and(|at| now < at.plus(ROOM_PAUSE));
        let is_pausing = has_room_again || self.tried_at.is_some_and(|at| now < at.plus(PAUSE));
        if !can_hand_over || is_pausing || now < since.plus(REFUSING_MIN) {
            return false;
        }
        self.tried_at = Some(now);
        true
    }
}

impl PairThread {
    /// Reports the state of this node's disk to the other candidate, and hands over if this node leads and cannot write.
    pub(super) fn watch_disks(&mut self, now: Instant) {
        let Some(partner) = self.partner() else { return };
        let has_room = !self.leadership.troubles().has(Trouble::Disk);
        let is_known = self.disks.sent.is_some_and(|(at, sent)| sent == has_room && now < at.plus(REPORT_PERIOD));
        if !is_known && self.links.speaks(partner, DISK_SINCE) {
            self.links.send(partner, LinkFrame::Replication(Replication::Disk { epoch: self.member.epoch(), has_room }));
            self.disks.sent = Some((now, has_room));
        }
        let refuses = self.leads.is_some() && self.leadership.refuses_changes();
        let can_hand_over = refuses && self.disks.partner_has_room == Some(true) && self.may_hand_over().is_ok();
        if self.disks.relief.is_due(now, refuses, has_room, can_hand_over) {
            tracing::warn!("this leader cannot write what it is given: it hands over to the standby, which is in sync and has room");
            // The result is logged where the switchover ends.
            let (told, _) = oneshot::channel();
            self.begin_hand_over(told);
        }
    }

    /// The other candidate reports whether its disk takes new data.
    pub(super) fn disk_reported(&mut self, node: Node, has_room: bool) {
        if Some(node) != self.partner() {
            return;
        }
        self.disks.partner_has_room = Some(has_room);
        let troubles = self.leadership.troubles();
        if has_room {
            if troubles.clear(Trouble::DiskOf(node)) {
                tracing::info!(?node, "the disk of the other candidate takes new data again");
            }
        } else if !troubles.has(Trouble::DiskOf(node)) {
            let text = format!("the disk of {} takes no new data: it cannot keep changes and events. Make room on its disk", name(node));
            troubles.set(Trouble::DiskOf(node), text, None);
            if let Some(times) = self.seldom.due(&format!("disk {node:?}")) {
                tracing::error!(?node, times, "the disk of the other candidate takes no new data");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_that_refuses_hands_over_once() {
        let at = |ms: u64| Instant::from_nanos(1).plus(Duration::from_millis(ms));
        let mut relief = Relief::default();
        assert!(!relief.is_due(at(0), true, false, true), "it has refused something just now");
        assert!(!relief.is_due(at(1_000), false, false, true));
        assert!(!relief.is_due(at(2_000), true, false, true), "the time counts from the newest refusal");
        assert!(!relief.is_due(at(4_000), true, false, false), "the standby has no room, or is not in sync");
        assert!(relief.is_due(at(4_100), true, false, true));
        assert!(!relief.is_due(at(4_200), true, false, true), "the switchover has begun");
        assert!(!relief.is_due(at(63_000), true, false, true), "a switchover that failed is not repeated at once");
        assert!(relief.is_due(at(64_100), true, false, true));
    }
    #[test]
    fn leader_with_room_again_stays_while_it_tries() {
        let at = |ms: u64| Instant::from_nanos(1).plus(Duration::from_millis(ms));
        let mut relief = Relief::default();
        assert!(!relief.is_due(at(0), true, false, false), "both disks are full");
        assert!(!relief.is_due(at(10_000), true, false, false));
        assert!(!relief.is_due(at(11_000), true, true, true), "both have room, and the database was not tried again");
        assert!(!relief.is_due(at(14_900), true, true, true));
        assert!(relief.is_due(at(15_100), true, true, true), "it refuses for another reason");
    }
}
