//! Events that nodes number: each answered event reaches every required subscriber once, in the order of its requester.

use std::collections::{BTreeMap, BTreeSet};

use crate::violation::Broken;

/// The events of one requester.
#[derive(Clone, Debug, Default)]
struct Requester {
    answered: BTreeSet<u64>,
    /// By subscriber.
    delivered: BTreeMap<u16, BTreeSet<u64>>,
}

/// The account of all requesters.
#[derive(Clone, Debug, Default)]
pub struct RequestAccount {
    requesters: BTreeMap<u16, Requester>,
}

impl RequestAccount {
    /// An event was answered. `is_owed`: its topic tolerates no loss.
    pub fn answered(&mut self, requester: u16, request: u64, is_owed: bool) {
        let requester = self.requesters.entry(requester).or_default();
        if is_owed {
            requester.answered.insert(request);
        }
    }

    /// A subscriber received an event.
    pub fn delivered(&mut self, requester: u16, subscriber: u16, request: u64) -> Result<(), Broken> {
        let delivered = self.requesters.entry(requester).or_default().delivered.entry(subscriber).or_default();
        match delivered.last() {
            Some(&last) if last >= request => Err(Broken::RequestOrder { requester, subscriber, request, last }),
            _ => {
                delivered.insert(request);
                Ok(())
            }
        }
    }

    /// What was answered until now may be lost: more failed than is promised for.
    pub fn excuse(&mut self) {
        self.requesters.values_mut().for_each(|requester| requester.answered.clear());
    }

    /// Checks at the end that required subscribers have received every answered event.
    pub fn settle(&self, required: impl Fn(u16) -> Vec<u16>) -> Result<(), Broken> {
        for (&requester, Requester { answered, delivered }) in &self.requesters {
            for subscriber in required(requester) {
                let none = BTreeSet::new();
                let delivered = delivered.get(&subscriber).unwrap_or(&none);
                if let Some(&request) = answered.difference(delivered).next() {
                    return Err(Broken::AnsweredLost { requester, subscriber, request });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answered_event_must_reach_required_subscribers() {
        let mut account = RequestAccount::default();
        account.answered(0, 1, true);
        account.answered(0, 2, false);
        let lost = Broken::AnsweredLost { requester: 0, subscriber: 1, request: 1 };
        assert_eq!(account.settle(|_| vec![1]), Err(lost));
        assert_eq!(account.settle(|_| Vec::new()), Ok(()), "nobody is required");
        account.delivered(0, 1, 1).unwrap();
        assert_eq!(account.settle(|_| vec![1]), Ok(()));
        account.answered(0, 3, true);
        account.excuse();
        assert_eq!(account.settle(|_| vec![1]), Ok(()));
    }

    #[test]
    fn duplicate_or_late_event_breaks_the_order() {
        let mut account = RequestAccount::default();
        account.delivered(0, 1, 2).unwrap();
        for request in [1, 2] {
            let broken = Broken::RequestOrder { requester: 0, subscriber: 1, request, last: 2 };
            assert_eq!(account.delivered(0, 1, request), Err(broken));
        }
    }
}
