//! What a topic asks of the machine: the fruit of its admission, in nanoseconds from a message's creation.

use std::num::NonZeroU32;

use crate::{
    time::Instant,
    timing::{Deadlines, Nanos, Span},
    topic::{Coverage, Level, Platform, TopicSpec},
};

/// Messages that a stream may keep where no deadline bounds the backlog: subscribers of such a topic are waited for.
const UNBOUNDED_BACKLOG: u32 = 1_024;
/// Shortest wait in front of another try.
const RETRY_MIN_NS: u64 = 50_000;
/// Most messages that a stream may keep, whatever its specification implies.
const BACKLOG_MAX: u32 = 1 << 16;

/// A real-time topic's terms. Every limit and deadline here has been found feasible by the admission test; the machine only keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// What is served first.
    pub level: Level,
    /// T: least time between two creations of one stream; more is excess.
    pub period_ns: u64,
    /// How far a row of creations may run ahead of the period, as they are stamped: J, and `2 * eps` by which two stamps may be wrong apart.
    pub jitter_ns: u64,
    /// From the creation to the latest start of the dispatch, `D - BS_max - eps` (C). `None`: any time will do.
    pub dispatch_within_ns: Option<u64>,
    /// From the creation until the replica's last byte has left, `(N + L + 1 - M) * T - J - x - BB_max - eps` (B). `None`: any number of
    /// losses is tolerated, so that nothing is replicated and everything counts as covered.
    pub replicate_within_ns: Option<u64>,
    /// M: one message of so many is a mark, which is replicated.
    pub mark_every: NonZeroU32,
    /// Processor time of one dispatch.
    pub dispatch_cost_ns: u32,
    /// Processor time of one replica.
    pub replica_cost_ns: u32,
    /// BS: after so long a dispatched message counts as received where no subscriber says so.
    pub broker_subscriber_max_ns: u64,
    /// `PB_max + eps`: a creation is at most so long before the arrival.
    pub created_before_ns: u64,
    /// `eps - PB_min`: a creation is at most so long behind the arrival; may be negative.
    pub created_behind_ns: i64,
    /// Messages that a stream may keep; one more is refused, so that its publisher waits.
    pub backlog_max: NonZeroU32,
    /// Streams at the same time: two for each publisher, and as many of former publishers and runs as long as something of them is kept.
    pub streams_max: u32,
    /// Messages in a row that may be dropped because their deadline has passed: `L_shed` of `L_shed + L_crash <= L`, of which the replication
    /// deadline was given `L_crash`. `None`: late messages are delivered.
    pub shed_max: Option<u32>,
    /// Where nobody is required, what has left the send queues to all subscribers is safe too: [`Coverage::Host`].
    pub emptied_covers: bool,
}

impl Terms {
    /// The terms of a topic whose admission test has succeeded on `platform`. The backlog is what the Backup needs, the `N` messages that
    /// the publisher sends again, what has piled up during a fail-over, and two to work on.
    pub fn of(topic: &TopicSpec, platform: &Platform) -> Self {
        let deadlines = Deadlines::of(topic, platform);
        let within = |span: Span| span.finite().map(nanos);
        let needed = deadlines.backup_entries.map_or(UNBOUNDED_BACKLOG, |entries| u32::try_from(entries).unwrap_or(BACKLOG_MAX));
        let piled_up = u32::try_from((platform.failover() + topic.jitter).steps_of(topic.period.gap())).unwrap_or(BACKLOG_MAX);
        let messages = [topic.retention, piled_up, 2].into_iter().fold(needed.saturating_mul(topic.mark_every.get()), u32::saturating_add);
        Self {
            level: topic.level,
            period_ns: nanos(topic.period.gap()),
            jitter_ns: nanos(topic.jitter + platform.clock_error + platform.clock_error),
            dispatch_within_ns: within(deadlines.dispatch_from_creation),
            replicate_within_ns: within(deadlines.replicate_from_creation),
            mark_every: topic.mark_every,
            dispatch_cost_ns: cost(topic.dispatch_cost),
            replica_cost_ns: cost(topic.replica_cost),
            broker_subscriber_max_ns: nanos(topic.broker_subscriber_max),
            created_before_ns: nanos(topic.publisher_broker + platform.clock_error),
            created_behind_ns: (platform.clock_error - platform.publisher_broker_min).get(),
            backlog_max: NonZeroU32::new(messages.min(BACKLOG_MAX)).expect("at least two"),
            streams_max: topic.publishers.get().saturating_mul(4),
            shed_max: Some(topic.shed_max).filter(|shed_max| *shed_max > 0),
            emptied_covers: topic.coverage == Coverage::Host,
        }
    }

    /// A creation time as deadlines are counted from: a wrong clock buys no laxity, and costs nobody else any.
    pub(crate) fn created(&self, arrival: Instant, stamped: Instant, is_resent: bool) -> Instant {
        // A message that is sent again is older than its way.
        let earliest = if is_resent { Instant::default() } else { self.created_at_the_earliest(arrival) };
        self.policed(arrival, stamped).max(earliest)
    }

    /// When a message that comes now was created at the earliest: what deadlines are counted from where its publisher's clock says nothing.
    pub(crate) fn created_at_the_earliest(&self, arrival: Instant) -> Instant {
        arrival.minus_nanos(self.created_before_ns)
    }

    /// A creation time as the period is policed by: events that a link has held back come together and were not created together. Who stamps what is new
    /// with old times gains a row once, as long as its pause, and no more than the backlog at a time.
    pub(crate) fn policed(&self, arrival: Instant, stamped: Instant) -> Instant {
        let behind = self.created_behind_ns.unsigned_abs();
        stamped.min(if self.created_behind_ns < 0 { arrival.minus_nanos(behind) } else { arrival.plus_nanos(behind) })
    }

    /// When a refused message is worth another try: as soon as an acknowledgement of what is kept can have come, and at the latest after a period.
    pub(crate) fn retry_after_ns(&self) -> u64 {
        let acknowledged_ns = self.broker_subscriber_max_ns.saturating_mul(2).saturating_add(self.created_before_ns);
        acknowledged_ns.max(RETRY_MIN_NS).min(self.period_ns.max(1))
    }

    /// How much earlier than its period says a result may come: results come together where the events that they are made of did, and
    /// after a failover these are as many as a stream keeps.
    pub(crate) fn result_burst_ns(&self) -> u64 {
        self.period_ns.saturating_mul(self.backlog_max.get().into())
    }

    pub(crate) fn dispatch_by(&self, created: Instant) -> Instant {
        self.dispatch_within_ns.map_or(Instant::NEVER, |within| created.plus_nanos(within))
    }
}

/// A length that the admission test has found not to be negative.
fn nanos(length: Nanos) -> u64 {
    u64::try_from(length.get()).unwrap_or(0)
}

/// A cost, of which more than four seconds are refused by any deadline there is.
fn cost(length: Nanos) -> u32 {
    u32::try_from(nanos(length)).unwrap_or(u32::MAX)
}

/// A token bucket of one stream: a message each period, and a row of `1 + J / T` at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    /// Creation at which the next message would be right on time.
    due: Instant,
}

impl Bucket {
    /// Takes a token; false if there is none: the message comes faster than its topic may. `burst_ns`: how much earlier than by the
    /// period and the jitter it may come.
    pub fn take(&mut self, created: Instant, terms: &Terms, burst_ns: u64) -> bool {
        if created.plus_nanos(terms.jitter_ns).plus_nanos(burst_ns) < self.due {
            return false;
        }
        self.due = self.due.max(created).plus_nanos(terms.period_ns);
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Terms with round figures: T 100, dispatched within 40, replicated within 60.
    pub(crate) const TERMS: Terms = Terms {
        level: Level::new(0).unwrap(),
        period_ns: 100,
        jitter_ns: 0,
        dispatch_within_ns: Some(40),
        replicate_within_ns: Some(60),
        mark_every: NonZeroU32::MIN,
        dispatch_cost_ns: 0,
        replica_cost_ns: 1,
        broker_subscriber_max_ns: 5,
        created_before_ns: 10,
        created_behind_ns: -2,
        backlog_max: NonZeroU32::new(4).unwrap(),
        streams_max: 4,
        shed_max: None,
        emptied_covers: false,
    };

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn an_admitted_topic_has_its_terms() {
        use crate::topic::{LossTolerance, Period};
        let (ms, us) = (Nanos::from_millis, Nanos::from_micros);
        let platform = Platform {
            failover: Some(ms(50)),
            broker_backup: us(50),
            clock_error: us(20),
            publisher_broker_min: us(30),
            ..Platform::default()
        };
        let topic = TopicSpec {
            deadline: ms(100).into(),
            loss_tolerance: LossTolerance::AtMost(0),
            retention: 1,
            publisher_broker: us(200),
            broker_subscriber_max: ms(1),
            replica_cost: us(7),
            ..TopicSpec::best_effort(Period::Every(ms(100)))
        };
        let terms = Terms::of(&topic, &platform);
        assert_eq!(terms.dispatch_within_ns, Some(98_980_000), "D - BS - eps");
        assert_eq!(terms.replicate_within_ns, Some(49_930_000), "(N + L + 1 - M) * T - x - BB - eps");
        assert_eq!((terms.created_before_ns, terms.created_behind_ns), (220_000, -10_000));
        assert_eq!(terms.jitter_ns, 40_000, "an honest publisher is not punished for its clock");
        assert_eq!(terms.backlog_max.get(), 6, "2 that wait for their discard, 1 sent again, 1 that comes in a fail-over, 2");
        assert_eq!((terms.replica_cost_ns, terms.retry_after_ns()), (7_000, 2_220_000));
        assert_eq!(Terms { period_ns: 1_000_000, ..terms }.retry_after_ns(), 1_000_000);
        let tolerant = Terms::of(&TopicSpec { loss_tolerance: LossTolerance::Any, deadline: Span::Infinite, ..topic }, &platform);
        assert_eq!((tolerant.replicate_within_ns, tolerant.dispatch_within_ns), (None, None));
    }

    #[test]
    fn a_creation_lies_within_what_the_way_allows() {
        let clamped = |stamped, is_resent| TERMS.created(at(100), at(stamped), is_resent).nanos();
        let fresh = [(95, 95), (90, 90), (89, 90), (0, 90), (98, 98), (99, 98), (u64::MAX, 98)];
        fresh.iter().for_each(|&(stamped, expect)| assert_eq!(clamped(stamped, false), expect, "{stamped}"));
        assert_eq!((clamped(7, true), clamped(99, true)), (7, 98), "what is sent again is old");
        let ahead = Terms { created_behind_ns: 3, ..TERMS };
        assert_eq!(ahead.created(at(100), at(200), false), at(103));
        assert_eq!([7, 99].map(|stamped| TERMS.policed(at(100), at(stamped))), [at(7), at(98)]);
    }

    #[test]
    fn a_bucket_lets_the_period_and_its_jitter_pass() {
        let rows: &[(u64, &[(u64, bool)])] = &[
            (0, &[(0, true), (99, false), (100, true), (250, true), (349, false), (350, true)]),
            (100, &[(0, true), (0, true), (0, false), (99, false), (100, true), (200, true), (299, false), (300, true)]),
            (30, &[(0, true), (70, true), (170, true), (269, false), (270, true), (1000, true), (1069, false), (1070, true)]),
        ];
        for (jitter_ns, script) in rows {
            let mut bucket = Bucket::default();
            let terms = Terms { jitter_ns: *jitter_ns, ..TERMS };
            for &(created, expect) in *script {
                assert_eq!(bucket.take(at(created), &terms, 0), expect, "jitter {jitter_ns}, created {created}");
            }
        }
    }
}
