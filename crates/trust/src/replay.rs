//! Which messages were taken already: a relay that keeps messages and sends them again is found out.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bodkin_arrowhead::utc::UtcTime;

/// How far apart two clouds' clocks, and a message's sending and arrival, may be: what was sealed longer ago, or so far ahead, is refused.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Maximum number of messages that the guard remembers, of all senders together: about 60 MiB.
pub const REMEMBERED_MAX: usize = 1 << 20;
/// Maximum number of messages that the guard remembers of one sender: about 8 MiB.
pub const REMEMBERED_OF_ONE_MAX: usize = 1 << 17;

/// Maximum number of old messages of a sender that one new message removes: more than one, so that old messages decrease, and few, so that no message waits.
const FORGOTTEN_AT_ONCE: usize = 16;

/// What a message is known by: half of its SHA-256.
pub type MessageIdentity = [u8; 16];

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayFault {
    /// It was sealed too long ago, or ahead of now.
    #[error("it was sealed {0} s from now: are the clocks of both clouds right?")]
    Clock(u64),
    /// It was taken before.
    #[error("it has come before")]
    Again,
    /// The guard has forgotten messages of this sender that were sealed as early as this one.
    #[error("too many messages of this sender are remembered: one that was sealed {0} s from now may be a duplicate")]
    Forgotten(u64),
}

/// Remembers accepted messages until their seal time is refused by [`CLOCK_TOLERANCE`].
///
/// Each sender has a share of the memory. When a share is full, the guard forgets the sender's oldest messages, and from then on refuses every message of this
/// sender that was sealed no later than a forgotten one. A sender that floods the guard, or seals ahead of now, therefore delays its own messages only.
/// When the memory of all senders is full, the sender with the most messages loses its oldest ones.
#[derive(Debug)]
pub struct ReplayGuard {
    remembered_max: usize,
    of_one_max: usize,
    /// Messages of all senders, so that a message is a duplicate under any sender's name.
    known: BTreeSet<MessageIdentity>,
    senders: BTreeMap<Box<str>, Share>,
}

/// Messages of one sender.
#[derive(Debug, Default)]
struct Share {
    /// By seal time, in seconds since 1970.
    sealed: BTreeSet<(u64, MessageIdentity)>,
    /// Newest seal time of a message that was forgotten before its time was over.
    forgotten_s: Option<u64>,
}

impl Share {
    /// Forgets the message with the oldest seal time, and remembers that time.
    fn forget_oldest(&mut self, known: &mut BTreeSet<MessageIdentity>) {
        if let Some((oldest_s, message)) = self.sealed.pop_first() {
            known.remove(&message);
            self.forgotten_s = self.forgotten_s.max(Some(oldest_s));
        }
    }

    /// Forgets at most [`FORGOTTEN_AT_ONCE`] messages that were sealed before a time.
    fn forget_before(&mut self, sealed_s: u64, known: &mut BTreeSet<MessageIdentity>) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            match self.sealed.first().copied() {
                Some((oldest_s, message)) if oldest_s < sealed_s => {
                    self.sealed.pop_first();
                    known.remove(&message);
                }
                _ => break,
            }
        }
    }
}

impl Default for ReplayGuard {
    fn default() -> Self {
        Self::remembering(REMEMBERED_MAX, REMEMBERED_OF_ONE_MAX)
    }
}

impl ReplayGuard {
    /// Creates a guard that remembers at most `remembered_max` messages, and `of_one_max` of one sender. Both are at least 1.
    pub fn remembering(remembered_max: usize, of_one_max: usize) -> Self {
        assert!(remembered_max > 0 && of_one_max > 0, "a guard that remembers nothing accepts every duplicate");
        Self { remembered_max, of_one_max, known: BTreeSet::new(), senders: BTreeMap::new() }
    }

    /// Accepts a message of `sender` that was sealed at `sealed_s`, in seconds since 1970, if it is new.
    ///
    /// # Errors
    /// Returns `Clock` or `Forgotten` if the guard cannot know whether the message is new, and `Again` if it is a duplicate.
    pub fn take(&mut self, sender: &str, message: MessageIdentity, sealed_s: u64, now: UtcTime) -> Result<(), ReplayFault> {
        let now_s = now.unix_seconds();
        let away_s = now_s.abs_diff(sealed_s);
        if away_s > CLOCK_TOLERANCE.as_secs() {
            return Err(ReplayFault::Clock(away_s));
        }
        self.forget_before(now_s.saturating_sub(CLOCK_TOLERANCE.as_secs()));
        if self.known.contains(&message) {
            return Err(ReplayFault::Again);
        }
        if self.is_forgotten(sender, sealed_s) {
            return Err(ReplayFault::Forgotten(away_s));
        }
        self.make_room(sender);
        // Making room may have forgotten messages that were sealed as early as this one.
        if self.is_forgotten(sender, sealed_s) {
            return Err(ReplayFault::Forgotten(away_s));
        }
        self.known.insert(message);
        self.senders.entry(sender.into()).or_default().sealed.insert((sealed_s, message));
        Ok(())
    }

    fn is_forgotten(&self, sender: &str, sealed_s: u64) -> bool {
        self.senders.get(sender).and_then(|share| share.forgotten_s).is_some_and(|forgotten_s| sealed_s <= forgotten_s)
    }

    /// Forgets messages, if necessary, until one more of `sender` fits into both limits.
    fn make_room(&mut self, sender: &str) {
        if let Some(share) = self.senders.get_mut(sender).filter(|share| share.sealed.len() >= self.of_one_max) {
            share.forget_oldest(&mut self.known);
        }
        if self.known.len() >= self.remembered_max
            && let Some(largest) = self.senders.values_mut().max_by_key(|share| share.sealed.len())
        {
            largest.forget_oldest(&mut self.known);
        }
    }

    fn forget_before(&mut self, sealed_s: u64) {
        let known = &mut self.known;
        self.senders.retain(|_, share| {
            share.forget_before(sealed_s, known);
            share.forgotten_s = share.forgotten_s.filter(|forgotten_s| *forgotten_s >= sealed_s);
            !share.sealed.is_empty() || share.forgotten_s.is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_900_000_000;

    fn at(seconds: u64) -> UtcTime {
        UtcTime::from_unix_seconds(seconds)
    }

    fn identity(number: u32) -> MessageIdentity {
        let mut identity = [0; 16];
        identity[..4].copy_from_slice(&number.to_be_bytes());
        identity
    }

    #[test]
    fn a_message_is_taken_once_in_its_time() {
        let mut guard = ReplayGuard::default();
        assert_eq!(guard.take("a", identity(1), NOW, at(NOW)), Ok(()));
        assert_eq!(guard.take("a", identity(1), NOW, at(NOW)), Err(ReplayFault::Again));
        assert_eq!(guard.take("b", identity(1), NOW, at(NOW)), Err(ReplayFault::Again), "under another sender's name");
        assert_eq!(guard.take("a", identity(2), NOW, at(NOW)), Ok(()));
        // As long as its time is near it is remembered, and then its time is refused.
        assert_eq!(guard.take("a", identity(1), NOW, at(NOW + 300)), Err(ReplayFault::Again));
        assert_eq!(guard.take("a", identity(1), NOW, at(NOW + 301)), Err(ReplayFault::Clock(301)));
        assert_eq!(guard.take("a", identity(3), NOW + 301, at(NOW)), Err(ReplayFault::Clock(301)));
        assert_eq!(guard.take("a", identity(3), u64::MAX, at(NOW)), Err(ReplayFault::Clock(u64::MAX - NOW)));
    }

    #[test]
    fn full_share_delays_only_its_own_sender() {
        let mut guard = ReplayGuard::remembering(100, 50);
        let ahead_s = NOW + 285;
        for number in 0..50 {
            assert_eq!(guard.take("flood", identity(number), ahead_s, at(NOW)), Ok(()));
        }
        for number in 50..1000 {
            assert_eq!(guard.take("flood", identity(number), ahead_s, at(NOW)), Err(ReplayFault::Forgotten(285)));
        }
        let duplicate = guard.take("flood", identity(0), ahead_s, at(NOW));
        assert!(matches!(duplicate, Err(ReplayFault::Forgotten(285) | ReplayFault::Again)), "{duplicate:?}");
        assert_eq!(guard.take("flood", identity(u32::MAX), NOW, at(NOW)), Err(ReplayFault::Forgotten(0)));
        assert_eq!(guard.take("honest", identity(u32::MAX), NOW, at(NOW)), Ok(()));
        assert_eq!(guard.take("flood", identity(999), NOW + 301, at(NOW + 301)), Ok(()), "its wait is over");
        for number in 1000..1010 {
            assert_eq!(guard.take("flood", identity(number), NOW + 600, at(NOW + 600)), Ok(()));
        }
        assert_eq!((guard.known.len(), guard.senders.len()), (11, 1), "what is older than the tolerance is forgotten");
    }

    #[test]
    fn sender_beyond_its_share_in_order_is_not_refused() {
        let mut guard = ReplayGuard::remembering(1000, 60);
        for number in 0..3000 {
            let sealed_s = NOW + u64::from(number / 10);
            assert_eq!(guard.take("busy", identity(number), sealed_s, at(sealed_s)), Ok(()), "{number}");
            assert!(guard.known.len() <= 60);
        }
        assert_eq!(guard.take("busy", identity(0), NOW, at(NOW + 299)), Err(ReplayFault::Forgotten(299)));
        assert_eq!(guard.take("busy", identity(2999), NOW + 299, at(NOW + 299)), Err(ReplayFault::Again));
    }

    #[test]
    fn full_memory_takes_from_the_largest_share() {
        let mut guard = ReplayGuard::remembering(10, 6);
        for (sender, count) in [("a", 6_u32), ("b", 4)] {
            for number in 0..count {
                let message = identity(u32::from(sender.as_bytes()[0]) * 100 + number);
                assert_eq!(guard.take(sender, message, NOW + u64::from(number), at(NOW)), Ok(()));
            }
        }
        assert_eq!(guard.take("c", identity(1), NOW, at(NOW)), Ok(()));
        let counts = ["a", "b", "c"].map(|sender| guard.senders[sender].sealed.len());
        assert_eq!((counts, guard.known.len()), ([5, 4, 1], 10));
    }

    proptest! {
        #[test]
        fn no_message_is_ever_taken_twice(messages in proptest::collection::vec((0..6_u32, 0..3_usize, 0..700_u64), 0..60), of_one_max in 1..5_usize) {
            let (mut guard, mut taken) = (ReplayGuard::remembering(6, of_one_max), BTreeSet::new());
            let mut now = NOW;
            for (number, sender, step) in messages {
                now += step / 10;
                // The same message always says the same time.
                let sender = ["a", "b", "c"][sender];
                let was_taken = guard.take(sender, identity(number), NOW + u64::from(number), at(now)).is_ok();
                // One key signs a message, and one neighbor has that key.
                let who = (number, sender);
                prop_assert!(!was_taken || taken.insert(who), "{} was taken twice", number);
                prop_assert!(guard.known.len() <= 6 && guard.senders.values().all(|share| share.sealed.len() <= of_one_max));
                prop_assert_eq!(guard.known.len(), guard.senders.values().map(|share| share.sealed.len()).sum::<usize>());
            }
        }
    }
}
