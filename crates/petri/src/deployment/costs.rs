//! What an event costs on its way, and the runs from which that is estimated.

use serde::{Deserialize, Serialize};

use super::durations::Durations;
use crate::distribution::{Distribution, DistributionError, Erlang, Mixture};

/// One load on a running cloud and what was seen of it; times in us.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRun {
    /// Processors that broker, publishers and subscribers share.
    pub cores: u32,
    /// Publishers, all in one thread.
    pub publishers: u32,
    /// Subscribers, all in one thread, each of which hears everything.
    pub subscribers: u32,
    /// Events a second of each publisher; none: the next goes when the last is answered.
    pub rate_per_s: Option<f64>,
    /// Events that were answered.
    pub events: u64,
    /// How long that took.
    pub elapsed_us: f64,
    /// From each send to each delivery.
    pub latency: Durations,
    /// From each send to its answer.
    pub answered: Durations,
    /// Reading all requests of a turn of the broker.
    pub receive: Durations,
    /// Parsing an event.
    pub parse: Durations,
    /// Authorising an event.
    pub authorise: Durations,
    /// Putting an event into the subscribers' queues.
    pub execute: Durations,
    /// Writing all that a turn of the broker has for subscribers and publishers.
    pub send: Durations,
    /// Processor time of all publishers.
    pub publisher_us: f64,
    /// Times that the publishers' thread slept.
    pub publisher_sleeps: u64,
    /// Processor time of all subscribers.
    pub subscriber_us: f64,
    /// Times that the subscribers' thread slept.
    pub subscriber_sleeps: u64,
    /// How long it was ready while others had the processors, where that is known.
    pub subscriber_queued_us: Option<f64>,
    /// Reads of streams that brought something.
    pub stream_reads: u64,
    /// Processor time of the broker, where it is known.
    pub broker_us: Option<f64>,
}

impl EventRun {
    /// Events of a turn, on average.
    pub fn batch(&self) -> f64 {
        self.events as f64 / self.send.count().max(1) as f64
    }

    /// How long the subscribers' thread stood in front of a processor for each time that it had slept, in us, where that is known.
    pub fn queued_us(&self) -> Option<f64> {
        Some(self.subscriber_queued_us? / self.subscriber_sleeps.max(1) as f64)
    }

    /// Whether it is another run of the same load.
    pub fn is_like(&self, other: &Self) -> bool {
        let load = |run: &Self| (run.cores, run.publishers, run.subscribers, run.rate_per_s);
        load(self) == load(other)
    }

    /// Adds another run of the same load.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.elapsed_us += other.elapsed_us;
        self.latency.add(&other.latency);
        self.answered.add(&other.answered);
        self.receive.add(&other.receive);
        self.parse.add(&other.parse);
        self.authorise.add(&other.authorise);
        self.execute.add(&other.execute);
        self.send.add(&other.send);
        self.publisher_us += other.publisher_us;
        self.publisher_sleeps += other.publisher_sleeps;
        self.subscriber_us += other.subscriber_us;
        self.subscriber_sleeps += other.subscriber_sleeps;
        self.subscriber_queued_us = self.subscriber_queued_us.zip(other.subscriber_queued_us).map(|(ours, theirs)| ours + theirs);
        self.stream_reads += other.stream_reads;
        self.broker_us = self.broker_us.zip(other.broker_us).map(|(ours, theirs)| ours + theirs);
    }
}

/// A time of work: its mean, and how much it varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Mean in us.
    pub mean_us: f64,
    /// Variance over squared mean.
    pub squared_variation: f64,
}

impl Work {
    /// Least mean that a transition is given: what takes nothing at all takes a nanosecond.
    const MEAN_MIN_US: f64 = 1e-3;
    /// Below this it does not vary: a recorder knows durations to 1/16.
    const SQUARED_VARIATION_MIN: f64 = 1e-6;

    /// A law of this mean and variance.
    ///
    /// # Errors
    /// They are no numbers from 0.
    pub fn law(self) -> Result<Distribution, DistributionError> {
        let squared_variation = if self.squared_variation < Self::SQUARED_VARIATION_MIN { 0.0 } else { self.squared_variation };
        crate::fit::match_moments(self.mean_us.max(Self::MEAN_MIN_US), squared_variation)
    }
}

/// What each step of an event's way takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The publishers' thread comes to run.
    pub publisher_switch: Work,
    /// A publisher takes an answer and makes its next event ready.
    pub take: Work,
    /// A publisher writes an event to its socket; its latency begins here.
    pub publish: Work,
    /// A turn of the broker, whatever it brings.
    pub turn: Work,
    /// The broker reads a request.
    pub receive: Work,
    /// It parses and authorises the event and decides who gets it.
    pub execute: Work,
    /// For each subscriber that does.
    pub execute_each_us: f64,
    /// It writes to a subscriber.
    pub write: Work,
    /// It writes the event log, once a turn.
    pub log: Work,
    /// It answers a publisher.
    pub answer: Work,
    /// The subscribers' thread comes to run.
    pub subscriber_switch: Work,
    /// A subscriber reads what has come on its stream; a latency ends here.
    pub read: Work,
    /// It takes an event out of what it has read.
    pub note: Work,
    /// From the end of a write until the thread of the broker or of the publishers, which sleeps for it, has an idle processor.
    pub wake: Wake,
    /// The same of the subscribers' thread: the one who wakes it goes on working, and may be in its way.
    pub subscriber_wake: Wake,
}

/// How long it takes until an idle processor has a thread that was woken: usually about the same time, and now and then the thread is held up, because
/// it was put behind another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// Mean of the usual ones in us.
    pub usual_us: f64,
    /// Probability of being held up, 0 to 1.
    pub held_up: f64,
    /// Mean of those that are in us.
    pub held_up_us: f64,
    /// Probability of being held up where no processor is idle: the other work of the machine then has none to itself, either. 0 to 1.
    #[serde(default)]
    pub held_up_busy: f64,
}

impl Wake {
    /// Stages of a usual wake-up: it varies by a quarter of itself.
    const USUAL_SHAPE: u32 = 16;
    /// Stages of being held up: a time slice is neither fixed nor without memory.
    const HELD_UP_SHAPE: u32 = 2;

    /// Mean in us.
    pub fn mean_us(self) -> f64 {
        (1.0 - self.held_up) * self.usual_us + self.held_up * self.held_up_us
    }

    /// The law where a processor is idle.
    ///
    /// # Errors
    /// Numbers that are no times or no probability.
    pub fn law(self) -> Result<Distribution, DistributionError> {
        let branches = [(1.0 - self.held_up, erlang(Self::USUAL_SHAPE, self.usual_us)?), (self.held_up, self.held_up_law()?)];
        let branches = branches.into_iter().filter(|(probability, _)| *probability > 0.0);
        Ok(Distribution::HyperErlang(Mixture::new(branches.collect())?))
    }

    /// The law of being held up.
    ///
    /// # Errors
    /// No time.
    pub fn held_up_law(self) -> Result<Erlang, DistributionError> {
        erlang(Self::HELD_UP_SHAPE, self.held_up_us)
    }
}

fn erlang(shape: u32, mean_us: f64) -> Result<Erlang, DistributionError> {
    Erlang::new(shape, f64::from(shape) / mean_us.max(Work::MEAN_MIN_US))
}
