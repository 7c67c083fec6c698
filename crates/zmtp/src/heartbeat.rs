//! Whether the peer is alive: when to ask, and when to stop waiting (RFC 37, Connection Heartbeating).

use std::time::Duration;

/// How closely a peer is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatPolicy {
    /// Silence after which a PING is sent.
    pub interval: Duration,
    /// Silence behind a PING after which the peer is dead.
    pub timeout: Duration,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing until then.
    Wait {
        /// When to ask again.
        until: Duration,
    },
    /// Send a PING, and ask again.
    Ping,
    /// Drop the connection.
    Dead,
}

/// Watches one peer. Every time is one since the host's start.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    policy: HeartbeatPolicy,
    heard: Duration,
    /// When a PING was sent behind which nothing came. There is at most one.
    asked: Option<Duration>,
    /// After so long a silence the peer wants to be taken for dead.
    ttl: Option<Duration>,
}

impl Heartbeat {
    /// Of a peer that is ready now.
    pub fn new(policy: HeartbeatPolicy, now: Duration) -> Self {
        Self { policy, heard: now, asked: None, ttl: None }
    }

    /// Bytes came, whatever they say.
    pub fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.asked = None;
    }

    /// A PING said this of its sender; zero says nothing. The last one counts.
    pub fn told(&mut self, ttl: Duration) {
        self.ttl = (!ttl.is_zero()).then_some(ttl);
    }

    /// What to do now.
    pub fn poll(&mut self, now: Duration) -> Beat {
        let dead_at = self.asked.map(|asked| asked.saturating_add(self.policy.timeout));
        let silent_at = self.ttl.map(|ttl| self.heard.saturating_add(ttl));
        if [dead_at, silent_at].into_iter().flatten().any(|end| end <= now) {
            return Beat::Dead;
        }
        let ask_at = self.heard.saturating_add(self.policy.interval);
        if self.asked.is_none() && ask_at <= now {
            self.asked = Some(now);
            return Beat::Ping;
        }
        let next = dead_at.unwrap_or(ask_at);
        Beat::Wait { until: silent_at.map_or(next, |silent_at| silent_at.min(next)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wait(seconds: u64) -> Beat {
        Beat::Wait { until: at(seconds) }
    }

    fn heartbeat() -> Heartbeat {
        Heartbeat::new(HeartbeatPolicy { interval: at(10), timeout: at(3) }, at(100))
    }

    #[test]
    fn a_silent_peer_is_asked_once_and_dropped() {
        let mut heartbeat = heartbeat();
        let beats = [100, 109, 110, 111, 112, 113].map(|now| heartbeat.poll(at(now)));
        assert_eq!(beats, [wait(110), wait(110), Beat::Ping, wait(113), wait(113), Beat::Dead]);
    }

    #[test]
    fn any_bytes_are_a_sign_of_life() {
        let mut heartbeat = heartbeat();
        heartbeat.heard(at(105));
        assert_eq!([heartbeat.poll(at(110)), heartbeat.poll(at(115))], [wait(115), Beat::Ping]);
        heartbeat.heard(at(117));
        assert_eq!([heartbeat.poll(at(118)), heartbeat.poll(at(127))], [wait(127), Beat::Ping]);
    }

    #[test]
    fn a_peer_is_dead_when_it_wanted_to_be() {
        let mut heartbeat = heartbeat();
        heartbeat.told(at(4));
        assert_eq!([heartbeat.poll(at(103)), heartbeat.poll(at(104))], [wait(104), Beat::Dead]);
        heartbeat.heard(at(104));
        assert_eq!(heartbeat.poll(at(105)), wait(108));
        heartbeat.told(at(0));
        assert_eq!(heartbeat.poll(at(108)), wait(114));
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let policy = HeartbeatPolicy { interval: Duration::MAX, timeout: Duration::MAX };
        assert_eq!(Heartbeat::new(policy, at(1)).poll(at(2)), Beat::Wait { until: Duration::MAX });
    }
}
