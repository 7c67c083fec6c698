//! Whom a client speaks to, as whom, and how long it waits.

use std::time::Duration;

use bodkin_broker::{Incarnation, publisher::Session};
use bodkin_zmtp::{ClientSecurity, HeartbeatPolicy, Limits};

use super::{broker_address::BrokerAddress, clock};

/// The brokers of a client: both nodes of a pair, or one that has none.
#[derive(Clone, Debug)]
pub struct Brokers {
    /// Where the first broker speaks ZMTP, and the second one.
    pub addresses: (BrokerAddress, Option<BrokerAddress>),
    /// The client's system name, as its `Identity` and in its first command; with CURVE it is the key that counts.
    pub name: String,
    /// How the client proves who it is, and whom it believes. No security by default, which only an insecure cloud takes.
    pub security: ClientSecurity,
    /// Which run of the client this is: greater than that of every earlier one. By default the time (UTC) in nanoseconds.
    pub incarnation: Incarnation,
    /// How long it waits and how much it takes.
    pub limits: SessionLimits,
}

impl Brokers {
    /// Both nodes of a pair.
    pub fn pair(name: &str, first: impl Into<BrokerAddress>, second: impl Into<BrokerAddress>) -> Self {
        let one = Self::one(name, first);
        Self { addresses: (one.addresses.0, Some(second.into())), ..one }
    }

    /// A node without a pair.
    pub fn one(name: &str, address: impl Into<BrokerAddress>) -> Self {
        Self {
            addresses: (address.into(), None),
            name: name.to_owned(),
            security: ClientSecurity::Null,
            incarnation: Incarnation(clock::utc_ns()),
            limits: SessionLimits::default(),
        }
    }

    /// The same of a client that begins now: another run of it.
    pub fn again(other: &Self) -> Self {
        Self { incarnation: Incarnation(clock::utc_ns()), ..other.clone() }
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = (Session, BrokerAddress)> + use<> {
        let (first, second) = self.addresses.clone();
        [(Session::One, first)].into_iter().chain(second.map(|second| (Session::Two, second)))
    }
}

/// Limits of each session. [`SessionLimits::default`] suits a local network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Longest time for the connection and the handshake; 2 s by default.
    pub connect_timeout: Duration,
    /// Wait in front of the second attempt to connect, doubled with each further one; 10 ms by default.
    pub reconnect_min: Duration,
    /// Longest wait in front of an attempt to connect; 1 s by default.
    pub reconnect_max: Duration,
    /// When a silent broker is asked for a sign of life (1 s by default), and how long it is waited for (1 s). Fail-over does not depend on it: the broker
    /// that leads next says so itself.
    pub heartbeat: HeartbeatPolicy,
    /// Bytes that may wait for a broker's socket; 256 KiB by default. What is more stays in the publisher's ring. As much again may be answers: nothing is
    /// read from who does not take them.
    pub send_bytes_max: usize,
    /// What a broker may send; an event of 64 KiB by default. Longer ones are not published either.
    pub zmtp: Limits,
}

impl Default for SessionLimits {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            connect_timeout: 2 * second,
            reconnect_min: Duration::from_millis(10),
            reconnect_max: second,
            heartbeat: HeartbeatPolicy { interval: second, timeout: second },
            send_bytes_max: 256 * 1024,
            zmtp: Limits::default(),
        }
    }
}
