//! Content keys that are used for more than one message, so that not each costs the recipient an operation with its private key.
//!
//! A sender keeps the one that it has drawn for a recipient for a minute; a recipient keeps those that it has unwrapped of messages that it took. Neither has to know of the
//! other: to who keeps none each message is one like any. A kept key opens, and nothing else: who has made a message is said by its signature.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bodkin_arrowhead::utc::UtcTime;

use crate::jose::{ContentKey, KeyIdentity, SealingKey, UnusableKey};

/// For how long a content key seals, from when it was drawn.
pub const CONTENT_KEY_S: u64 = 60;
/// Messages that one seals: random initialization vectors of AES-CBC are good for many more.
pub const CONTENT_KEY_MESSAGES_MAX: u32 = 1 << 16;
/// Recipients for which a sender keeps one; beside so many, the one that was drawn first is given up.
pub const DRAWN_MAX: usize = 1_024;
/// Those that a recipient keeps, some 500 KiB; beside so many, the one that was taken first is given up, and unwrapped again if it comes.
pub const TAKEN_MAX: usize = 1_024;
/// For how long a recipient keeps one: as long as it seals, and a message may be on its way.
const TAKEN_S: u64 = 2 * CONTENT_KEY_S;

/// What a sender has drawn.
#[derive(Debug, Default)]
pub(super) struct DrawnKeys(BTreeMap<KeyIdentity, Drawn>);

#[derive(Debug)]
struct Drawn {
    key: Arc<ContentKey>,
    /// Seconds since 1970.
    at_s: u64,
    messages: u32,
}

impl DrawnKeys {
    /// The key for the next message to a recipient.
    pub(super) fn next(&mut self, recipient: &SealingKey, now: UtcTime) -> Result<Arc<ContentKey>, UnusableKey> {
        let now_s = now.unix_seconds();
        if let Some(drawn) = self.0.get_mut(&recipient.identity())
            && drawn.messages < CONTENT_KEY_MESSAGES_MAX
            // A clock that was set back leaves none for ever.
            && now_s.abs_diff(drawn.at_s) < CONTENT_KEY_S
        {
            drawn.messages += 1;
            return Ok(drawn.key.clone());
        }
        let key = Arc::new(ContentKey::draw(recipient)?);
        self.0.insert(recipient.identity(), Drawn { key: key.clone(), at_s: now_s, messages: 1 });
        if self.0.len() > DRAWN_MAX {
            let oldest = self.0.iter().min_by_key(|(_, drawn)| drawn.at_s).map(|(recipient, _)| *recipient);
            oldest.map(|recipient| self.0.remove(&recipient));
        }
        Ok(key)
    }
}

/// What a recipient has unwrapped.
#[derive(Debug, Default)]
pub(super) struct TakenKeys {
    keys: BTreeMap<String, Arc<ContentKey>>,
    /// The same by time, with seconds since 1970.
    taken: VecDeque<(u64, String)>,
}

impl TakenKeys {
    /// The one that is wrapped like this, if it is kept.
    pub(super) fn get(&self, wrapped: &str) -> Option<Arc<ContentKey>> {
        self.keys.get(wrapped).cloned()
    }

    /// Keeps the one of a message that was taken; those are given up whose time is over.
    pub(super) fn keep(&mut self, key: &Arc<ContentKey>, now: UtcTime) {
        let now_s = now.unix_seconds();
        while self.taken.front().is_some_and(|(at_s, _)| now_s.abs_diff(*at_s) > TAKEN_S) {
            self.give_up_first();
        }
        if self.keys.contains_key(key.wrapped()) {
            return;
        }
        if self.keys.len() == TAKEN_MAX {
            self.give_up_first();
        }
        self.taken.push_back((now_s, key.wrapped().to_owned()));
        self.keys.insert(key.wrapped().to_owned(), key.clone());
    }

    fn give_up_first(&mut self) {
        if let Some((_, wrapped)) = self.taken.pop_front() {
            self.keys.remove(&wrapped);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::key::{KeySize, PrivateKey};

    static RECIPIENTS: LazyLock<[SealingKey; 2]> =
        LazyLock::new(|| [(); 2].map(|()| SealingKey::new(&PrivateKey::generate(KeySize::Bits2048).unwrap().public_key_info()).unwrap()));

    fn at(seconds: u64) -> UtcTime {
        UtcTime::from_unix_seconds(1_900_000_000 + seconds)
    }

    fn next(drawn: &mut DrawnKeys, recipient: usize, seconds: u64) -> String {
        drawn.next(&RECIPIENTS[recipient], at(seconds)).unwrap().wrapped().to_owned()
    }

    #[test]
    fn a_recipient_has_a_key_of_its_own_for_a_minute() {
        let mut drawn = DrawnKeys::default();
        let first = next(&mut drawn, 0, 100);
        assert_ne!(next(&mut drawn, 1, 100), first);
        assert_eq!(next(&mut drawn, 0, 100 + CONTENT_KEY_S - 1), first);
        let second = next(&mut drawn, 0, 100 + CONTENT_KEY_S);
        assert_ne!(second, first);
        assert_ne!(next(&mut drawn, 0, 100), second, "a clock that was set back");
    }

    #[test]
    fn a_key_seals_no_more_messages_than_its_limit() {
        let mut drawn = DrawnKeys::default();
        let first = next(&mut drawn, 0, 0);
        for _ in 1..CONTENT_KEY_MESSAGES_MAX {
            assert_eq!(drawn.next(&RECIPIENTS[0], at(0)).unwrap().wrapped(), first);
        }
        assert_ne!(next(&mut drawn, 0, 0), first);
    }

    #[test]
    fn what_was_taken_is_kept_for_its_time_and_no_more_than_the_limit() {
        let key = || Arc::new(ContentKey::draw(&RECIPIENTS[0]).unwrap());
        let (mut taken, first) = (TakenKeys::default(), key());
        taken.keep(&first, at(0));
        taken.keep(&first, at(TAKEN_S));
        assert!(taken.get(first.wrapped()).is_some());
        taken.keep(&key(), at(TAKEN_S + 1));
        assert!(taken.get(first.wrapped()).is_none(), "its time is over");
        let others: Vec<_> = (0..TAKEN_MAX).map(|_| key()).collect();
        others.iter().for_each(|other| taken.keep(other, at(TAKEN_S + 2)));
        assert_eq!((taken.keys.len(), taken.taken.len()), (TAKEN_MAX, TAKEN_MAX));
        assert!(others.iter().all(|other| taken.get(other.wrapped()).is_some()), "the oldest was given up");
    }
}
