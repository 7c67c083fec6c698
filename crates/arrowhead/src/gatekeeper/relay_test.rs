//! The test of a relay by two clouds (reference section 9.2): what is sent, what comes back, and how long that takes.
//!
//! ```text
//! asking                                   asked
//! message 0 ── REQ ──────────────────────>
//!          <────────────────────── RESP ── the same
//! ..
//! SWITCH  ── REQ-CONTROL ────────────────>
//!          <────────────────────── RESP ── message 0
//! the same ── REQ ───────────────────────>
//!          <────────────── RESP-CONTROL ── CLOSE
//! ```

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use super::RelayPut;
use crate::{error::ArrowheadError, record::Relay, snapshot::Snapshot};

/// Messages of each side, one after the other; the first byte of each is its number.
pub const TEST_MESSAGES: u8 = 10;
/// Length of each, as upstream's QoS Monitor has it.
pub const TEST_MESSAGE_BYTES: usize = 2_048;
/// A message that has not come back by then is lost.
pub const ECHO_MAX: Duration = Duration::from_secs(5);
/// For all that the other side does in its turn.
pub const TURN_MAX: Duration = Duration::from_secs(60);

/// The relay of this cloud that a test names; no other is connected to.
pub fn tested_relay<'s>(snapshot: &'s Snapshot, named: &RelayPut) -> Result<&'s Arc<Relay>, ArrowheadError> {
    let unknown = || {
        let (address, port) = (&named.address, named.port);
        ArrowheadError::invalid_parameter(format!("The relay {address}:{port} is not known to this cloud, and is not tested with it."))
    };
    snapshot.relays().find(|relay| named.is(relay)).ok_or_else(unknown)
}

/// What came of the messages of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    sent: u32,
    lost: u32,
    shortest: Option<Duration>,
    longest: Duration,
    sum: Duration,
}

impl RoundTrips {
    /// Adds a message; `None`: it has not come back in time.
    pub fn take(&mut self, took: Option<Duration>) {
        self.sent += 1;
        match took {
            None => self.lost += 1,
            Some(took) => {
                self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
                self.longest = self.longest.max(took);
                self.sum += took;
            }
        }
    }

    /// The same in figures.
    pub fn report(&self, cloud: String, relay: String) -> RelayTestReport {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let back = self.sent - self.lost;
        RelayTestReport {
            cloud,
            relay,
            sent: self.sent,
            lost: self.lost,
            min_ms: self.shortest.map(ms),
            mean_ms: (back > 0).then(|| ms(self.sum) / f64::from(back)),
            max_ms: (back > 0).then(|| ms(self.longest)),
        }
    }
}

/// What a test has shown, of the messages of this cloud.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelayTestReport {
    /// With which cloud, `NAME.OPERATOR`.
    pub cloud: String,
    /// The relay's place.
    pub relay: String,
    /// Messages that were sent.
    pub sent: u32,
    /// Of these, those that have not come back within [`ECHO_MAX`].
    pub lost: u32,
    /// Quickest there and back, sealed and opened at both sides, in ms.
    pub min_ms: Option<f64>,
    /// Arithmetic mean of those that came back, in ms.
    pub mean_ms: Option<f64>,
    /// Slowest of those that came back, in ms.
    pub max_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_told_apart_from_what_does_not() {
        let mut trips = RoundTrips::default();
        let report = |trips: &RoundTrips| trips.report("two.aitia".into(), "relay:1".into());
        trips.take(None);
        let lost = report(&trips);
        assert_eq!((lost.sent, lost.lost, lost.min_ms, lost.mean_ms, lost.max_ms), (1, 1, None, None, None));
        for ms in [4, 2, 6] {
            trips.take(Some(Duration::from_millis(ms)));
        }
        let all = report(&trips);
        assert_eq!((all.sent, all.lost, all.min_ms, all.mean_ms, all.max_ms), (4, 1, Some(2.0), Some(4.0), Some(6.0)));
    }
}
