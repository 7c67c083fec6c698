//! What the pair of brokers and its machines are assumed to hold: an input to every bound.

use std::num::NonZeroU32;

use super::spec::{Problem, REQUIRED_FOR_MAX, SpecFault, out_of_range, required_for_fault};
use crate::timing::Nanos;

/// The parts of a fail-over of which the right to lead is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a leader may lead without a new grant.
    pub lease: Nanos,
    /// Between two heartbeats.
    pub heartbeat: Nanos,
    /// How much faster or slower a clock may run than it should, in millionths.
    pub drift_ppm: u32,
    /// How late the detector may look.
    pub detect_jitter: Nanos,
    /// From the promotion until a publisher sends to the new Primary.
    pub redirect: Nanos,
}

impl LeaseTimes {
    /// Those that Bodkin is shipped with: for stalls of 30 ms, as machines have that are shared and busy. They imply 95.01 ms.
    pub const SHIPPED: Self = Self::for_stall(Nanos::from_millis(30));

    /// Those of a pair whose nodes stall for `stall` at the most. A renewal is due a heartbeat after the last one, may be held up for `stall`, and has as long as another
    /// heartbeat to be asked and granted; a heartbeat is a third of `stall`. With stalls of 6 ms they imply 23.002 ms.
    pub const fn for_stall(stall: Nanos) -> Self {
        let heartbeat = Nanos::new(stall.get() / 3);
        Self {
            lease: Nanos::new(stall.get() + 2 * heartbeat.get()),
            heartbeat,
            drift_ppm: 200,
            detect_jitter: stall,
            redirect: Nanos::from_millis(5),
        }
    }

    /// The longest stall of a leader that its lease outlasts.
    pub fn stall_max(self) -> Nanos {
        self.lease - self.heartbeat - self.heartbeat
    }

    /// The x that they imply: `lease * (1 + rho) + heartbeat + detect_jitter + redirect`, rounded up to a nanosecond.
    ///
    /// A Primary that is cut off stops when its lease has run out, and the lease may be counted by a clock that runs slowly: so fencing is the
    /// crash instant, and the wait for it is part of the fail-over.
    pub fn failover(self) -> Nanos {
        let drift = (i128::from(self.lease.get()) * i128::from(self.drift_ppm)).div_euclid(1_000_000);
        let is_exact = (i128::from(self.lease.get()) * i128::from(self.drift_ppm)).rem_euclid(1_000_000) == 0;
        self.lease + Nanos::saturating(drift + i128::from(!is_exact)) + self.heartbeat + self.detect_jitter + self.redirect
    }
}

/// Assumptions about machines, clocks and network that all topics share. Times are not negative and at most
/// [`TIME_MAX`](super::TIME_MAX); [`Self::fault`] says what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// x: from the instant the Primary stops (crash or fencing) until the publisher sends to the Backup, at the most. `None`: what the lease implies.
    pub failover: Option<Nanos>,
    /// What the fail-over is made of.
    pub lease: LeaseTimes,
    /// BB: longest time from Primary to Backup.
    pub broker_backup: Nanos,
    /// eps: largest difference between the clocks of a publisher and the broker.
    pub clock_error: Nanos,
    /// PB: shortest time from a publisher to the broker.
    pub publisher_broker_min: Nanos,
    /// How long a replica may wait for others that go into the same write.
    pub batch_window: Nanos,
    /// Processor time of a batch of replicas, apart from what it carries.
    pub batch_cost: Nanos,
    /// Longest section that nothing preempts, in front of any job: the machine's worst stall.
    pub blocking: Nanos,
    /// Shards: each has a core of its own, and each topic one shard.
    pub cores: NonZeroU32,
    /// Per cent of a core that admitted jobs may ask for. Linux stops real-time threads for 50 ms of each second in which they have used 95 %.
    pub load_max_percent: u32,
    /// From the decision to lead until the new Primary dispatches.
    pub promote: Nanos,
    /// Longest time for which required subscribers may be waited for, of topics that state none themselves. At most [`REQUIRED_FOR_MAX`].
    pub required_for_max: Nanos,
}

impl Default for Platform {
    /// One core, no latencies, no costs: every figure that counts has to be stated.
    fn default() -> Self {
        Self {
            failover: None,
            lease: LeaseTimes::default(),
            broker_backup: Nanos::ZERO,
            clock_error: Nanos::ZERO,
            publisher_broker_min: Nanos::ZERO,
            batch_window: Nanos::ZERO,
            batch_cost: Nanos::ZERO,
            blocking: Nanos::ZERO,
            cores: NonZeroU32::MIN,
            load_max_percent: 95,
            promote: Nanos::ZERO,
            required_for_max: REQUIRED_FOR_MAX,
        }
    }
}

impl Platform {
    /// Cores that may be stated.
    pub const CORES_MAX: u32 = 1_024;
    /// Load that may be stated: a core that has nothing left catches up with nothing.
    pub const LOAD_MAX_PERCENT: u32 = 99;
    /// Drift that may be stated: a clock that is wrong by a tenth is broken.
    pub const DRIFT_PPM_MAX: u32 = 100_000;

    /// The x that the bounds count with: what is stated, but never less than the lease implies.
    pub fn failover(&self) -> Nanos {
        self.failover.unwrap_or_default().max(self.lease.failover())
    }

    /// The implied x, if less is stated: a promise that the lease does not keep.
    pub fn failover_shortfall(&self) -> Option<Nanos> {
        let implied = self.lease.failover();
        self.failover.is_some_and(|stated| stated < implied).then_some(implied)
    }

    /// The first member that does not fit, if there is one.
    pub fn fault(&self) -> Option<SpecFault> {
        let times = [
            ("failover", self.failover.unwrap_or_default()),
            ("lease", self.lease.lease),
            ("heartbeat", self.lease.heartbeat),
            ("detect_jitter", self.lease.detect_jitter),
            ("redirect", self.lease.redirect),
            ("broker_backup", self.broker_backup),
            ("clock_error", self.clock_error),
            ("publisher_broker_min", self.publisher_broker_min),
            ("batch_window", self.batch_window),
            ("batch_cost", self.batch_cost),
            ("blocking", self.blocking),
            ("promote", self.promote),
            ("required_for_max", self.required_for_max),
        ];
        let numbers = [
            ("drift_ppm", self.lease.drift_ppm, 0, Self::DRIFT_PPM_MAX),
            ("cores", self.cores.get(), 1, Self::CORES_MAX),
            ("load_max_percent", self.load_max_percent, 1, Self::LOAD_MAX_PERCENT),
        ];
        out_of_range(&times).or_else(|| required_for_fault(self.required_for_max)).or_else(|| {
            let outside = numbers.iter().find(|(_, number, from, to)| !(from..=to).contains(&number));
            outside.map(|(key, _, from, to)| SpecFault { key, problem: Problem::Outside { from: *from, to: *to } })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_implies_the_fail_over_and_is_rounded_up() {
        let ms = Nanos::from_millis;
        let lease = LeaseTimes { lease: ms(20), heartbeat: ms(5), drift_ppm: 200, detect_jitter: ms(6), redirect: ms(4) };
        assert_eq!(lease.failover(), Nanos::from_micros(35_004));
        assert_eq!(LeaseTimes::SHIPPED.failover(), Nanos::from_micros(95_010));
        let short = LeaseTimes::for_stall(ms(6));
        assert_eq!((short.lease, short.heartbeat, short.failover(), short.stall_max()), (ms(10), ms(2), Nanos::from_micros(23_002), ms(6)));
        assert_eq!(LeaseTimes { lease: Nanos::new(1), drift_ppm: 1, ..LeaseTimes::default() }.failover(), Nanos::new(2));
        let stated = |failover| Platform { failover, lease, ..Platform::default() };
        let at_least = Nanos::from_micros(35_004);
        assert_eq!(stated(None).failover(), at_least);
        assert_eq!((stated(Some(ms(50))).failover(), stated(Some(ms(50))).failover_shortfall()), (ms(50), None));
        assert_eq!(stated(Some(at_least)).failover_shortfall(), None);
        assert_eq!((stated(Some(ms(35))).failover(), stated(Some(ms(35))).failover_shortfall()), (at_least, Some(at_least)));
    }

    #[test]
    fn a_platform_that_cannot_be_meant_is_told_by_its_key() {
        let good = Platform::default();
        let negative = LeaseTimes { redirect: Nanos::new(-1), ..LeaseTimes::default() };
        let cases = [
            (good, None),
            (Platform { blocking: Nanos::new(-1), ..good }, Some("blocking must not be negative")),
            (Platform { lease: negative, ..good }, Some("redirect must not be negative")),
            (Platform { load_max_percent: 0, ..good }, Some("load_max_percent must be 1 to 99")),
            (Platform { cores: NonZeroU32::MAX, ..good }, Some("cores must be 1 to 1024")),
        ];
        for (platform, fault) in cases {
            assert_eq!(platform.fault().map(|fault| fault.to_string()).as_deref(), fault, "{platform:?}");
        }
    }
}
