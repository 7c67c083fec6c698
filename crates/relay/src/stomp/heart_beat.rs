//! Heart-beats: how often either end lets the other hear from it.

use std::time::Duration;

use super::error::StompError;

/// A peer may be late by this part of the agreed time, or longer by [`GRACE_MIN`], before it is taken for gone: networks and clocks are not exact.
const GRACE: u32 = 1;
/// Least time that a peer may be late.
const GRACE_MIN: Duration = Duration::from_millis(500);
/// Longest time between beats that can be agreed on; the header of a peer that says more is refused.
const PERIOD_MAX_MS: u64 = 24 * 3600 * 1000;

/// What one end says in `heart-beat`, in milliseconds; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartBeat {
    /// It can send something at least so often.
    pub sends_ms: u64,
    /// It would hear something at least so often.
    pub wants_ms: u64,
}

impl HeartBeat {
    /// The header's value.
    pub fn value(self) -> String {
        format!("{},{}", self.sends_ms, self.wants_ms)
    }

    /// Reads the header's value; without one there are no heart-beats.
    pub fn read(value: Option<&str>) -> Result<Self, StompError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let period = |text: &str| text.parse().ok().filter(|ms| *ms <= PERIOD_MAX_MS);
        let periods = value.split_once(',').and_then(|(sends, wants)| Some(Self { sends_ms: period(sends)?, wants_ms: period(wants)? }));
        let expected = "two numbers of milliseconds, as 10000,10000,";
        periods.ok_or_else(|| StompError::Value { header: "heart-beat", expected, found: value.chars().take(80).collect() })
    }

    /// How often this end sends and hears, when the other one says `peer`: as often as the slower of each two can or wants, if both do.
    pub fn agree(self, peer: Self) -> Pulse {
        let period = |can: u64, wants: u64| (can > 0 && wants > 0).then(|| Duration::from_millis(can.max(wants)));
        Pulse {
            send_within: period(self.sends_ms, peer.wants_ms),
            hear_within: period(peer.sends_ms, self.wants_ms),
            sent: Duration::ZERO,
            heard: Duration::ZERO,
        }
    }
}

/// What is to be done for the heart-beats now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing before this time; `None`: never.
    Wait(Option<Duration>),
    /// A line end (`\n`) is to be sent, and [`Pulse::sent`] to be called.
    Send,
    /// Nothing was heard for too long: the connection is to be closed.
    Silent,
}

/// Heart-beats of a session. Times are since any one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    send_within: Option<Duration>,
    hear_within: Option<Duration>,
    sent: Duration,
    heard: Duration,
}

impl Pulse {
    /// Something was sent, whatever it was.
    pub fn sent(&mut self, now: Duration) {
        self.sent = now;
    }

    /// Something has come, whatever it is.
    pub fn heard(&mut self, now: Duration) {
        self.heard = now;
    }

    /// What is to be done.
    pub fn beat(&self, now: Duration) -> Beat {
        let silent_from = self.hear_within.map(|period| self.heard + period + (period * GRACE).max(GRACE_MIN));
        // Half the time early: it has to be there in time.
        let send_from = self.send_within.map(|period| self.sent + period / 2);
        if silent_from.is_some_and(|from| from <= now) {
            Beat::Silent
        } else if send_from.is_some_and(|from| from <= now) {
            Beat::Send
        } else {
            Beat::Wait(silent_from.into_iter().chain(send_from).min())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_slower_of_two_counts_and_either_may_say_never() {
        for (ours, peers, send_within, hear_within) in [
            ((1000, 2000), (3000, 4000), Some(4000), Some(3000)),
            ((5000, 5000), (3000, 4000), Some(5000), Some(5000)),
            ((0, 2000), (3000, 4000), None, Some(3000)),
            ((1000, 2000), (0, 0), None, None),
        ] {
            let of = |(sends_ms, wants_ms)| HeartBeat { sends_ms, wants_ms };
            let pulse = of(ours).agree(of(peers));
            assert_eq!((pulse.send_within, pulse.hear_within), (send_within.map(MS), hear_within.map(MS)), "{ours:?} {peers:?}");
        }
    }

    #[test]
    fn a_header_has_two_numbers() {
        assert_eq!(HeartBeat::read(Some("10000,0")), Ok(HeartBeat { sends_ms: 10_000, wants_ms: 0 }));
        assert_eq!(HeartBeat::read(None), Ok(HeartBeat::default()));
        let both = HeartBeat { sends_ms: 7, wants_ms: 9 };
        assert_eq!(HeartBeat::read(Some(&both.value())), Ok(both));
        for value in ["", "1", "1,", ",1", "1,2,3", "-1,0", "1, 2", "a,b", "99999999999999999999,0", "86400001,0"] {
            assert!(HeartBeat::read(Some(value)).is_err(), "{value}");
        }
    }

    #[test]
    fn a_beat_is_sent_before_its_time_and_a_silent_peer_is_noticed() {
        let mut pulse = HeartBeat { sends_ms: 1000, wants_ms: 2000 }.agree(HeartBeat { sends_ms: 2000, wants_ms: 1000 });
        assert_eq!(pulse.beat(MS(0)), Beat::Wait(Some(MS(500))));
        assert_eq!(pulse.beat(MS(500)), Beat::Send);
        pulse.sent(MS(500));
        assert_eq!(pulse.beat(MS(501)), Beat::Wait(Some(MS(1000))));
        pulse.sent(MS(3999));
        assert_eq!(pulse.beat(MS(3999)), Beat::Wait(Some(MS(4000))));
        assert_eq!(pulse.beat(MS(4000)), Beat::Silent, "twice its time");
        pulse.heard(MS(3999));
        assert_eq!(pulse.beat(MS(4000)), Beat::Wait(Some(MS(4499))));
        assert_eq!(HeartBeat::default().agree(HeartBeat::default()).beat(MS(1 << 40)), Beat::Wait(None));
    }
}
