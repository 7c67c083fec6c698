//! A client's two sessions: which of its brokers leads.
//!
//! Both are kept warm. Epochs only grow: whoever leads in a lower one than is known is refused, so that a Primary which does not know yet that it was
//! replaced is not believed. A broker without a pair leads in epoch 0.

use crate::epoch::Epoch;

/// One of the two brokers that a client is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Session {
    /// The first of its addresses.
    One,
    /// The second.
    Two,
}

/// What a broker's word about its leading means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Nothing new.
    Known,
    /// This session leads from now on.
    Leads,
    /// It led, and does not any more.
    Resigns,
    /// It leads in a lower epoch than is known.
    Stale,
    /// The other broker leads in the same epoch, which cannot be.
    Contradicts,
}

/// Both sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sessions {
    epoch: Epoch,
    /// Who has shown that epoch.
    raised_by: Option<Session>,
    leader: Option<Session>,
}

impl Sessions {
    /// The highest epoch that a broker has led in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Who leads, and is connected.
    pub fn leader(&self) -> Option<Session> {
        self.leader
    }

    /// A connection has ended; true if it was the leader's.
    pub fn closed(&mut self, session: Session) -> bool {
        self.leader.take_if(|leader| *leader == session).is_some()
    }

    /// A broker says whether it leads.
    pub fn told(&mut self, session: Session, epoch: Epoch, is_leader: bool) -> Word {
        if !is_leader {
            return if self.closed(session) { Word::Resigns } else { Word::Known };
        }
        if epoch < self.epoch {
            return Word::Stale;
        }
        let raised_by_other = self.raised_by.is_some_and(|by| by != session);
        if epoch == self.epoch && raised_by_other && epoch != Epoch::NONE {
            return Word::Contradicts;
        }
        if epoch == self.epoch && self.leader == Some(session) {
            return Word::Known;
        }
        *self = Self { epoch, raised_by: Some(session), leader: Some(session) };
        Word::Leads
    }
}

#[cfg(test)]
mod tests {
    use super::{Session::*, Word::*, *};

    #[test]
    fn the_higher_epoch_is_believed() {
        let mut sessions = Sessions::default();
        // Who says in which epoch that it leads, or not; what it means, and who leads then.
        let rows = [
            (One, 1, true, Leads, Some(One)),
            (One, 1, true, Known, Some(One)),
            (Two, 1, false, Known, Some(One)),
            (Two, 9, false, Known, Some(One)),
            (Two, 1, true, Contradicts, Some(One)),
            (Two, 2, true, Leads, Some(Two)),
            (One, 1, true, Stale, Some(Two)),
            (Two, 4, true, Leads, Some(Two)),
            (Two, 4, false, Resigns, None),
            (Two, 2, true, Stale, None),
            (Two, 4, true, Leads, Some(Two)),
        ];
        for (row, (session, epoch, is_leader, word, leader)) in rows.into_iter().enumerate() {
            assert_eq!((sessions.told(session, Epoch(epoch), is_leader), sessions.leader()), (word, leader), "row {row}");
        }
        assert_eq!((sessions.closed(One), sessions.leader(), sessions.epoch()), (false, Some(Two), Epoch(4)));
        assert_eq!((sessions.closed(Two), sessions.leader(), sessions.epoch()), (true, None, Epoch(4)));
    }

    #[test]
    fn a_broker_without_a_pair_leads_in_epoch_0() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.told(One, Epoch::NONE, true), Leads);
        assert!(sessions.closed(One));
        assert_eq!(sessions.told(Two, Epoch::NONE, true), Leads, "such brokers know nothing of each other");
    }
}
