//! Which messages were taken already: a relay that keeps messages and sends them again is found out.

use std::{collections::BTreeSet, time::Duration};

use bodkin_arrowhead::utc::UtcTime;

/// How far apart two clouds' clocks, and a message's sending and arrival, may be: what was sealed longer ago, or so far ahead, is refused.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Messages that are remembered; while there are so many of the last [`CLOCK_TOLERANCE`], the next one is refused. They are 3,495 a second for all that time,
/// which is more than two cores open, and have about 60 MiB.
pub const REMEMBERED_MAX: usize = 1 << 20;

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
    /// Too many messages are remembered.
    #[error("{0} messages have come in the last minutes, and no more can be remembered")]
    TooMany(usize),
}

/// Remembers messages until their time is so far away that they are refused for that.
#[derive(Debug)]
pub struct ReplayGuard {
    remembered_max: usize,
    known: BTreeSet<MessageIdentity>,
    /// The same by time: until when (seconds since 1970), and what.
    until: BTreeSet<(u64, MessageIdentity)>,
}

impl Default for ReplayGuard {
    fn default() -> Self {
        Self::remembering(REMEMBERED_MAX)
    }
}

impl ReplayGuard {
    /// One that remembers so many messages.
    pub fn remembering(remembered_max: usize) -> Self {
        Self { remembered_max, known: BTreeSet::new(), until: BTreeSet::new() }
    }

    /// Takes a message that was sealed at `sealed_s`, in seconds since 1970, if it is new.
    pub fn take(&mut self, message: MessageIdentity, sealed_s: u64, now: UtcTime) -> Result<(), ReplayFault> {
        let now_s = now.unix_seconds();
        let away_s = now_s.abs_diff(sealed_s);
        if away_s > CLOCK_TOLERANCE.as_secs() {
            return Err(ReplayFault::Clock(away_s));
        }
        self.forget_before(now_s);
        if self.known.contains(&message) {
            return Err(ReplayFault::Again);
        }
        if self.known.len() >= self.remembered_max {
            return Err(ReplayFault::TooMany(self.remembered_max));
        }
        self.known.insert(message);
        self.until.insert((sealed_s + CLOCK_TOLERANCE.as_secs(), message));
        Ok(())
    }

    fn forget_before(&mut self, now_s: u64) {
        while let Some((until_s, message)) = self.until.first().copied()
            && until_s < now_s
        {
            self.until.pop_first();
            self.known.remove(&message);
        }
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
        assert_eq!(guard.take(identity(1), NOW, at(NOW)), Ok(()));
        assert_eq!(guard.take(identity(1), NOW, at(NOW)), Err(ReplayFault::Again));
        assert_eq!(guard.take(identity(2), NOW, at(NOW)), Ok(()));
        // As long as its time is near it is remembered, and then its time is refused.
        assert_eq!(guard.take(identity(1), NOW, at(NOW + 300)), Err(ReplayFault::Again));
        assert_eq!(guard.take(identity(1), NOW, at(NOW + 301)), Err(ReplayFault::Clock(301)));
        assert_eq!(guard.take(identity(3), NOW + 301, at(NOW)), Err(ReplayFault::Clock(301)));
        assert_eq!(guard.take(identity(3), u64::MAX, at(NOW)), Err(ReplayFault::Clock(u64::MAX - NOW)));
    }

    #[test]
    fn a_full_memory_refuses_until_time_has_passed() {
        let mut guard = ReplayGuard::remembering(3);
        for number in 0..3 {
            assert_eq!(guard.take(identity(number), NOW, at(NOW)), Ok(()));
        }
        assert_eq!(guard.take(identity(u32::MAX), NOW, at(NOW)), Err(ReplayFault::TooMany(3)));
        assert_eq!(guard.take(identity(u32::MAX), NOW + 301, at(NOW + 301)), Ok(()));
        assert_eq!((guard.known.len(), guard.until.len()), (1, 1));
    }

    proptest! {
        #[test]
        fn no_message_is_ever_taken_twice(messages in proptest::collection::vec((0..6_u32, 0..700_u64), 0..60)) {
            let (mut guard, mut taken) = (ReplayGuard::default(), BTreeSet::new());
            let mut now = NOW;
            for (number, step) in messages {
                now += step / 10;
                // The same message always says the same time.
                let was_taken = guard.take(identity(number), NOW + u64::from(number), at(now)).is_ok();
                prop_assert!(!was_taken || taken.insert(number), "{} was taken twice", number);
            }
        }
    }
}
