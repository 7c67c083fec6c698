//! Who wants which messages: prefixes with counted duplicates, found without looking at each (RFC 29, The PUB Socket Type).
//!
//! The prefixes are in order. Every prefix of a topic is at or in front of the topic there, so the search begins at the topic and goes back. The
//! greatest prefix at or in front of it either is one of the topic, or has its first difference from it at some place: then none that
//! is longer than that place can be one of the topic, or it would stand between the two. The search goes on with the topic cut
//! to that place. So it takes a step for each match, and one for each place at which the topic leaves a prefix: never more than the
//! topic has octets, however many prefixes there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Bounds on subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// Bytes of a prefix.
    pub prefix_bytes_max: usize,
    /// Different prefixes of one subscriber.
    pub prefixes_max: usize,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self { prefix_bytes_max: 255, prefixes_max: 10_000 }
    }
}

/// A subscription that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// The prefix is too long.
    #[error("a prefix of {came} bytes came, at most {max} are taken")]
    PrefixTooLong {
        /// Its bytes.
        came: usize,
        /// The limit.
        max: usize,
    },
    /// The subscriber has as many as it may have.
    #[error("a subscriber has at most {max} prefixes")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

/// The subscriptions of all of an endpoint's peers; `S` names a peer.
#[derive(Clone, Debug)]
pub struct Subscriptions<S> {
    limits: SubscriptionLimits,
    /// Of each prefix, who wants it and how many times; nobody is there with none.
    by_prefix: BTreeMap<Box<[u8]>, BTreeMap<S, u64>>,
    /// The same the other way round, so that a peer that leaves costs what it had.
    by_subscriber: BTreeMap<S, BTreeSet<Box<[u8]>>>,
}

impl<S: Copy + Ord> Subscriptions<S> {
    /// Nobody wants anything.
    pub fn new(limits: SubscriptionLimits) -> Self {
        Self { limits, by_prefix: BTreeMap::new(), by_subscriber: BTreeMap::new() }
    }

    /// Counts one more. Returns whether it is the subscriber's first of this prefix.
    ///
    /// # Errors
    /// It is beyond a limit; nothing is changed.
    pub fn subscribe(&mut self, subscriber: S, prefix: &[u8]) -> Result<bool, SubscriptionError> {
        if let Some(count) = self.by_prefix.get_mut(prefix).and_then(|counts| counts.get_mut(&subscriber)) {
            *count = count.checked_add(1).expect("nobody subscribes 2^64 times");
            return Ok(false);
        }
        if prefix.len() > self.limits.prefix_bytes_max {
            return Err(SubscriptionError::PrefixTooLong { came: prefix.len(), max: self.limits.prefix_bytes_max });
        }
        if self.by_subscriber.get(&subscriber).map_or(0, BTreeSet::len) >= self.limits.prefixes_max {
            return Err(SubscriptionError::TooMany { max: self.limits.prefixes_max });
        }
        self.by_subscriber.entry(subscriber).or_default().insert(prefix.into());
        self.by_prefix.entry(prefix.into()).or_default().insert(subscriber, 1);
        Ok(true)
    }

    /// Counts one less; what was never counted is left alone, as libzmq does. Returns whether it was the subscriber's last of this prefix.
    pub fn cancel(&mut self, subscriber: S, prefix: &[u8]) -> bool {
        let Some(count) = self.by_prefix.get_mut(prefix).and_then(|counts| counts.get_mut(&subscriber)) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.forget(subscriber, prefix);
            if let Some(prefixes) = self.by_subscriber.get_mut(&subscriber) {
                prefixes.remove(prefix);
                if prefixes.is_empty() {
                    self.by_subscriber.remove(&subscriber);
                }
            }
        }
        is_last
    }

    /// A subscriber has left.
    pub fn remove(&mut self, subscriber: S) {
        for prefix in self.by_subscriber.remove(&subscriber).unwrap_or_default() {
            self.forget(subscriber, &prefix);
        }
    }

    fn forget(&mut self, subscriber: S, prefix: &[u8]) {
        if let Some(counts) = self.by_prefix.get_mut(prefix) {
            counts.remove(&subscriber);
            if counts.is_empty() {
                self.by_prefix.remove(prefix);
            }
        }
    }

    /// The prefixes of this subscriber, in order.
    pub fn prefixes(&self, subscriber: S) -> impl Iterator<Item = &[u8]> {
        self.by_subscriber.get(&subscriber).into_iter().flatten().map(|prefix| &**prefix)
    }

    /// Replaces what is in `subscribers` by those who want this topic: each once, in order.
    pub fn find(&self, topic: &[u8], subscribers: &mut Vec<S>) {
        subscribers.clear();
        let (mut rest, mut matches) = (topic, 0);
        while let Some((prefix, counts)) = self.last_until(rest) {
            let common = prefix.iter().zip(rest).take_while(|(a, b)| a == b).count();
            rest = &rest[..common];
            if common < prefix.len() {
                continue;
            }
            subscribers.extend(counts.keys());
            matches += 1;
            let Some(shorter) = common.checked_sub(1) else { break };
            rest = &rest[..shorter];
        }
        if matches > 1 {
            subscribers.sort_unstable();
            subscribers.dedup();
        }
    }

    /// The greatest prefix that is not above `topic`.
    fn last_until(&self, topic: &[u8]) -> Option<(&[u8], &BTreeMap<S, u64>)> {
        let until = (Bound::Unbounded, Bound::Included(topic));
        self.by_prefix.range::<[u8], _>(until).next_back().map(|(prefix, counts)| (&**prefix, counts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is said above, said plainly.
    #[derive(Default)]
    struct Naive(Vec<(u8, Vec<u8>)>);

    impl Naive {
        fn cancel(&mut self, subscriber: u8, prefix: &[u8]) {
            if let Some(at) = self.0.iter().position(|(s, p)| *s == subscriber && p == prefix) {
                self.0.remove(at);
            }
        }

        fn find(&self, topic: &[u8]) -> Vec<u8> {
            let wanting = self.0.iter().filter(|(_, prefix)| topic.starts_with(prefix)).map(|(subscriber, _)| *subscriber);
            wanting.collect::<BTreeSet<u8>>().into_iter().collect()
        }
    }

    fn limits() -> SubscriptionLimits {
        SubscriptionLimits { prefix_bytes_max: 8, prefixes_max: 1000 }
    }

    fn prefix() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0, 1, b'a', b'b', 255]), 0..6)
    }

    proptest! {
        #[test]
        fn whoever_wants_a_topic_is_found(
            script in prop::collection::vec((0u8..8, 0u8..4, prefix()), 0..80),
            topics in prop::collection::vec(prefix(), 1..8),
        ) {
            let (mut subscriptions, mut naive, mut found) = (Subscriptions::new(limits()), Naive::default(), vec![99]);
            for (what, subscriber, prefix) in script {
                match what {
                    0..5 => {
                        let first = subscriptions.subscribe(subscriber, &prefix).expect("within the limits");
                        prop_assert_eq!(first, !naive.0.contains(&(subscriber, prefix.clone())));
                        naive.0.push((subscriber, prefix));
                    }
                    5 | 6 => {
                        let before = naive.0.len();
                        naive.cancel(subscriber, &prefix);
                        let last = before > naive.0.len() && !naive.0.contains(&(subscriber, prefix.clone()));
                        prop_assert_eq!(subscriptions.cancel(subscriber, &prefix), last);
                    }
                    _ => {
                        subscriptions.remove(subscriber);
                        naive.0.retain(|(s, _)| *s != subscriber);
                    }
                }
                for topic in &topics {
                    subscriptions.find(topic, &mut found);
                    prop_assert_eq!(&found, &naive.find(topic));
                }
            }
            for subscriber in 0..4 {
                let own: BTreeSet<&[u8]> = naive.0.iter().filter(|(s, _)| *s == subscriber).map(|(_, prefix)| &prefix[..]).collect();
                prop_assert!(subscriptions.prefixes(subscriber).eq(own));
                subscriptions.remove(subscriber);
            }
            prop_assert!(subscriptions.by_prefix.is_empty() && subscriptions.by_subscriber.is_empty());
        }
    }

    #[test]
    fn what_is_beyond_a_limit_changes_nothing() {
        let mut subscriptions = Subscriptions::new(SubscriptionLimits { prefix_bytes_max: 3, prefixes_max: 2 });
        assert_eq!(subscriptions.subscribe('a', b"1234"), Err(SubscriptionError::PrefixTooLong { came: 4, max: 3 }));
        assert_eq!([subscriptions.subscribe('a', b"1"), subscriptions.subscribe('a', b"2")], [Ok(true); 2]);
        assert_eq!(subscriptions.subscribe('a', b"3"), Err(SubscriptionError::TooMany { max: 2 }));
        assert_eq!(subscriptions.subscribe('a', b"2"), Ok(false), "one that is there only counts");
        assert_eq!(subscriptions.subscribe('b', b"3"), Ok(true), "another has its own limit");
        assert!(!subscriptions.cancel('a', b"4") && !subscriptions.cancel('c', b"1"));
        assert!(subscriptions.prefixes('a').eq([b"1", b"2"]));
    }
}
