//! The adversary: arrivals, clock errors, latencies and crash instants driven to the bound, on a grid of whole units of time.
//!
//! The machines are the real ones. What they are told to count on is a [`Bound`]; what happens is a [`Nature`], which keeps to the bound or
//! exceeds one of its terms by one unit. Within the bound no [`Script`] may break a promise; one unit beyond it the
//! search has to find one that does, or a term of the bound would be there for nothing. One unit is one nanosecond to the machines: a
//! grid shows what is exact, and no cost hides it.

mod dispatch;
mod loss;

use std::num::NonZeroU32;

use bodkin_broker::{
    Terms,
    timing::{Deadlines, Nanos},
    topic::{LossTolerance, Period, Platform, TopicSpec},
};

/// What the machines are told, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// T.
    pub period: u32,
    /// J.
    pub jitter: u32,
    /// L.
    pub tolerance: u32,
    /// N, at least 1.
    pub retention: u32,
    /// M.
    pub mark_every: u32,
    /// x.
    pub failover: u32,
    /// BB.
    pub broker_backup: u32,
    /// eps.
    pub clock_error: u32,
    /// PB, the shortest.
    pub publisher_broker_min: u32,
    /// PB, the longest.
    pub publisher_broker: u32,
    /// BS, the longest.
    pub broker_subscriber: u32,
    /// D; `None` where only losses are looked at.
    pub deadline: Option<u32>,
}

/// A term of the bounds (A) to (C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// N: the publisher keeps one event less.
    Retention,
    /// L: the subscriber tolerates one loss less.
    Tolerance,
    /// T: events come one unit closer.
    Period,
    /// M: one event more lies between two marks.
    MarkEvery,
    /// J: a row of events may come one unit closer.
    Jitter,
    /// x: the publisher is one unit later at the Backup.
    Failover,
    /// BB: replicas take one unit longer.
    BrokerBackup,
    /// eps: the clocks differ by one unit more.
    ClockError,
    /// PB: events take one unit longer.
    PublisherBroker,
    /// BS: deliveries take one unit longer.
    BrokerSubscriber,
}

/// What happens in truth, in units: as much as the bound says, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    period: u32,
    jitter: u32,
    tolerance: u32,
    retention: u32,
    mark_every: u32,
    failover: u32,
    broker_backup: u32,
    clock_error: u32,
    publisher_broker_min: u32,
    publisher_broker: u32,
    broker_subscriber: u32,
}

impl Nature {
    /// Keeps to the bound.
    pub fn within(bound: &Bound) -> Self {
        Self {
            period: bound.period,
            jitter: bound.jitter,
            tolerance: bound.tolerance,
            retention: bound.retention,
            mark_every: bound.mark_every,
            failover: bound.failover,
            broker_backup: bound.broker_backup,
            clock_error: bound.clock_error,
            publisher_broker_min: bound.publisher_broker_min,
            publisher_broker: bound.publisher_broker,
            broker_subscriber: bound.broker_subscriber,
        }
    }

    /// Keeps to the bound but for one term, which it exceeds by one unit.
    pub fn beyond(bound: &Bound, term: Term) -> Self {
        let mut nature = Self::within(bound);
        match term {
            Term::Retention => nature.retention -= 1,
            Term::Tolerance => nature.tolerance -= 1,
            Term::Period => nature.period -= 1,
            Term::MarkEvery => nature.mark_every += 1,
            Term::Jitter => nature.jitter += 1,
            Term::Failover => nature.failover += 1,
            Term::BrokerBackup => nature.broker_backup += 1,
            Term::ClockError => nature.clock_error += 1,
            Term::PublisherBroker => nature.publisher_broker += 1,
            Term::BrokerSubscriber => nature.broker_subscriber += 1,
        }
        nature
    }
}

/// What the adversary chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// Events up to this one are late by as much as J allows, those behind it are not.
    pub late_through: u32,
    /// By how much the publisher's clock is ahead, in units.
    pub clock_ahead: i32,
    /// How long each event takes to the Primary.
    pub publisher_broker: u32,
    /// The subscriber has got and acknowledged this many events when its link to the Primary is cut.
    pub heard: u32,
    /// When the Primary's host dies, or, where deadlines are looked at, how long its thread leaves an event waiting.
    pub at: u32,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A script that breaks a promise.
    Breach(Script, Breach),
    /// None of so many scripts does.
    Nothing(u64),
}

/// A promise that a script breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Losses in a row.
    Run(u32),
    /// Units behind the deadline, of an event that was dispatched in its time.
    Late(u32),
}

impl Bound {
    /// Whether the admission test takes it.
    pub fn is_admitted(&self) -> bool {
        let deadlines = Deadlines::of(&self.spec(), &self.platform());
        deadlines.dispatch_feasible() && deadlines.replicate_feasible()
    }

    /// Looks for a script that breaks a promise in this nature.
    pub fn search(&self, nature: &Nature) -> Found {
        match self.deadline {
            Some(deadline) => dispatch::search(self, nature, deadline),
            None => loss::search(self, nature),
        }
    }

    fn spec(&self) -> TopicSpec {
        let nanos = |units: u32| Nanos::new(units.into());
        TopicSpec {
            deadline: self.deadline.map_or(bodkin_broker::timing::Span::Infinite, |deadline| nanos(deadline).into()),
            loss_tolerance: LossTolerance::AtMost(self.tolerance),
            retention: self.retention,
            mark_every: NonZeroU32::new(self.mark_every).expect("M is at least 1"),
            jitter: nanos(self.jitter),
            publisher_broker: nanos(self.publisher_broker),
            broker_subscriber_max: nanos(self.broker_subscriber),
            ..TopicSpec::best_effort(Period::Every(nanos(self.period)))
        }
    }

    fn platform(&self) -> Platform {
        let nanos = |units: u32| Nanos::new(units.into());
        Platform {
            failover: Some(nanos(self.failover)),
            broker_backup: nanos(self.broker_backup),
            clock_error: nanos(self.clock_error),
            publisher_broker_min: nanos(self.publisher_broker_min),
            ..Platform::default()
        }
    }

    /// The terms that the machines get: those of the bound, but for M, which is the machine's own doing.
    fn terms(&self, nature: &Nature) -> Terms {
        let mark_every = NonZeroU32::new(nature.mark_every).expect("M is at least 1");
        Terms { mark_every, ..Terms::of(&self.spec(), &self.platform()) }
    }
}

impl Nature {
    /// The clock errors and ways that a script may have: the ends, between which nothing is worse.
    fn extremes(&self) -> impl Iterator<Item = (i32, u32)> + use<> {
        let (error, ways) = (self.clock_error as i32, [self.publisher_broker, self.publisher_broker_min]);
        [error, 0, -error].into_iter().flat_map(move |ahead| ways.into_iter().map(move |way| (ahead, way)))
    }

    /// When the `index`th event (from 1) is created, in units behind the start.
    fn created(&self, script: &Script, index: u32) -> u32 {
        index * self.period + if index <= script.late_through { self.jitter } else { 0 }
    }
}

#[cfg(test)]
mod tests;
