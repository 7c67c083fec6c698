//! When publishers publish, and when the operator commits.

use bodkin_broker::Node;

use super::{Cloud, Event};
use crate::{
    clock::{MILLISECOND_NS, Time},
    packet::Packet,
    random::Random,
    roster::{self, OPERATOR, Process},
    violation::Violation,
    workload::PUBLISHERS,
};

/// Mean time between two control commits, in nanoseconds.
const COMMIT_EVERY_NS: u64 = 7 * MILLISECOND_NS;

/// The next event of each stream, as the application has it in mind.
#[derive(Debug)]
pub(super) struct Arrivals {
    random: Random,
    /// Of each publisher and topic: creations would be here without jitter.
    nominal: Vec<Vec<Time>>,
    requests: u64,
}

impl Arrivals {
    pub fn new(random: Random) -> Self {
        Self { random, nominal: vec![Vec::new(); usize::from(PUBLISHERS)], requests: 0 }
    }

    /// A gap that the topic allows: T and a little, for clocks may differ, and often more.
    fn gap_ns(&mut self, period_ns: u64) -> u64 {
        let least = period_ns + period_ns / 1_000 + 1;
        match self.random.below(4) {
            0..2 => least,
            2 => self.random.between(least, 2 * least),
            _ => self.random.between(least, 5 * least),
        }
    }
}

impl Cloud {
    /// A publisher begins with all its topics.
    pub(super) fn begin_publishing(&mut self, publisher: u16, run: u32) {
        let workload = self.workload.clone();
        self.arrivals.nominal[usize::from(publisher)] = vec![self.now; workload.topics.len()];
        for (topic, _) in workload.topics.iter().enumerate().filter(|(_, topic)| topic.publishers.contains(&publisher)) {
            self.arrange(publisher, run, topic as u16);
        }
        if self.arrivals.requests == 0 {
            self.arrivals.requests = 1;
            self.agenda.push(self.now.plus(COMMIT_EVERY_NS), Event::Commit);
        }
    }

    /// Enters the next creation of a stream.
    fn arrange(&mut self, publisher: u16, run: u32, topic: u16) {
        let spec = &self.workload.topics[usize::from(topic)].spec;
        let period_ns = spec.period.gap().get().unsigned_abs();
        let jitter_ns = spec.jitter.get().unsigned_abs();
        let gap_ns = self.arrivals.gap_ns(period_ns);
        let nominal = &mut self.arrivals.nominal[usize::from(publisher)][usize::from(topic)];
        *nominal = nominal.plus(gap_ns);
        let at = nominal.plus(self.arrivals.random.between(0, jitter_ns)).max(self.now);
        self.agenda.push(at, Event::Create { publisher, run, topic });
    }

    /// A publisher's application has an event.
    pub(super) fn create(&mut self, publisher: u16, run: u32, topic: u16) -> Result<(), Violation> {
        if !self.scenario.is_busy() {
            return Ok(());
        }
        self.arrange(publisher, run, topic);
        self.act(Process::Publisher(publisher).id(), |cloud| {
            cloud.publishers[usize::from(publisher)].publish(cloud.now, topic, &mut cloud.effects);
            None
        })
    }

    /// The operator commits something at whoever leads.
    pub(super) fn commit(&mut self) -> Result<(), Violation> {
        if !self.scenario.is_busy() {
            return Ok(());
        }
        let pause_ns = self.arrivals.random.between(1, 2 * COMMIT_EVERY_NS);
        self.agenda.push(self.now.plus(pause_ns), Event::Commit);
        let request = self.arrivals.requests;
        self.arrivals.requests += 1;
        for node in [Node::First, Node::Second].map(roster::node) {
            if let Some((at, arrival)) = self.network.send(self.now, OPERATOR, node, Packet::Commit { request }) {
                self.agenda.push(at, Event::Arrival(arrival));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bodkin_broker::topic::Period;

    use super::*;
    use crate::violation::Broken;

    /// A cloud whose publishers create two events of each topic in the time of one, which its brokers know nothing of.
    fn hurried(seed: u64) -> Cloud {
        let mut cloud = Cloud::new(seed, 5);
        for topic in &mut Arc::make_mut(&mut cloud.workload).topics {
            let half = topic.spec.period.gap().get() / 2;
            topic.spec.period = Period::Every(bodkin_broker::timing::Nanos::new(half));
        }
        cloud
    }

    #[test]
    fn an_event_that_is_called_excess_is_no_event_that_may_be_lost_in_silence() {
        for seed in 0..4 {
            let violation = hurried(seed).run().expect_err("no publisher keeps its period");
            assert!(matches!(violation.broken, Broken::Excess { .. }), "{violation}");
        }
    }
}
