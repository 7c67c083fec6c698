//! What required subscribers miss while they are away: results that have found no room, and, once they are not waited for any more, all that comes. They cannot know it from numbers, for a graph passes
//! over some, and one that was started anew knows none; so they are told when they are back.

use std::{collections::BTreeMap, sync::Arc};

use bodkin_broker::SubscriptionKey;

use super::{super::Shard, required::RequiredName};

/// Subscribers and topics of which it is known; of one more it is not.
const MISSED_MAX: usize = 1_024;

/// By topic and name of the subscriber.
#[derive(Default)]
pub struct Missed(BTreeMap<RequiredName, Missing>);

#[derive(Clone, Copy, Debug, Default)]
struct Missing {
    /// So many at the most: what it had when its session ended, and has not acknowledged, is among them.
    events: u64,
    /// Not waited for since the topic had taken so many.
    since: Option<u64>,
}

impl Missed {
    fn of(&mut self, name: RequiredName) -> Option<&mut Missing> {
        if self.0.len() >= MISSED_MAX && !self.0.contains_key(&name) {
            return None;
        }
        Some(self.0.entry(name).or_default())
    }

    /// Events were lost for a subscriber that is waited for.
    pub(super) fn lose(&mut self, name: RequiredName, events: u64) {
        if let Some(missing) = self.of(name) {
            missing.events = missing.events.saturating_add(events);
        }
    }

    /// A subscriber is not waited for any more, for which so many events were kept of a topic that has taken so many.
    pub(super) fn give_up(&mut self, name: RequiredName, owed: u64, accepted: u64) {
        if let Some(missing) = self.of(name) {
            *missing = Missing { events: missing.events.saturating_add(owed), since: Some(accepted) };
        }
    }

    /// A subscriber is back: what it has missed of a topic that has taken so many.
    pub(super) fn take(&mut self, name: &RequiredName, accepted: u64) -> u64 {
        let Some(Missing { events, since }) = self.0.remove(name) else { return 0 };
        events.saturating_add(since.map_or(0, |since| accepted.saturating_sub(since)))
    }
}

impl Shard {
    /// Notes what a required subscriber loses that is away; false if it is there.
    pub(super) fn is_missed(&mut self, subscription: SubscriptionKey, events: u64) -> bool {
        let Some(row) = self.endpoint.required.of(subscription).filter(|row| row.link.is_none()) else { return false };
        let name = (row.topic(), row.name.clone());
        self.endpoint.missed.lose(name, events);
        true
    }

    /// Tells a required subscriber that is back what it has missed, in front of what it is brought.
    pub(super) fn tell_missed(&mut self, slot: usize, name: &RequiredName, spelled: &Arc<str>) {
        let events = self.endpoint.missed.take(name, self.broker.accepted(name.0));
        if events > 0 {
            tracing::warn!(name = %name.1, topic = %spelled, events, "a required subscriber is back that was away for too long: events are lost for it");
            self.tell_dealer_lost(slot, spelled, events);
        }
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::TopicId;

    use super::*;

    fn name(number: u64) -> RequiredName {
        (TopicId(number), "office".into())
    }

    #[test]
    fn what_is_missed_is_told_once() {
        let mut missed = Missed::default();
        missed.lose(name(1), 2);
        missed.give_up(name(1), 3, 100);
        assert_eq!((missed.take(&name(2), 200), missed.take(&name(1), 104), missed.take(&name(1), 110)), (0, 9, 0));
        missed.lose(name(1), 2);
        assert_eq!(missed.take(&name(1), 200), 2, "it was waited for");
    }

    #[test]
    fn there_is_an_end_to_what_is_noted() {
        let mut missed = Missed::default();
        (0..MISSED_MAX as u64 + 1).for_each(|number| missed.lose(name(number), 1));
        missed.lose(name(0), 1);
        assert_eq!([0, MISSED_MAX as u64 - 1, MISSED_MAX as u64].map(|number| missed.take(&name(number), 0)), [2, 1, 0]);
    }
}
