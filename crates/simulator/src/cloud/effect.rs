//! What becomes of what a process wants done, and what the ledger is told of it.

use super::{Cloud, Event, node_index};
use crate::{
    clock::{MICROSECOND_NS, MILLISECOND_NS, Time},
    effects::Fact,
    fault::Disk,
    ledger::{GivenUp, StreamIndex, StreamTerms},
    network::ProcessId,
    roster::Process,
    violation::{Broken, StreamName, Violation},
};

/// How long a disk takes until something is on it, in nanoseconds.
const DISK_NS: (u64, u64) = (50 * MICROSECOND_NS, 400 * MICROSECOND_NS);

/// Longest pause before a write is tried again that a full disk has refused, in nanoseconds.
const DISK_RETRY_NS: u64 = 10 * MILLISECOND_NS;

/// Longest time from the vote until a node has taken over: what its Backup still receives is taken first, and its store is opened.
const TAKEOVER_MAX_NS: u64 = 700 * MICROSECOND_NS;

impl Cloud {
    /// Lets a process make a step, and carries out what it wants.
    pub(super) fn act(&mut self, process: ProcessId, act: impl FnOnce(&mut Self) -> Option<u64>) -> Result<(), Violation> {
        let work_ns = act(self);
        let host = &mut self.hosts[process.index()];
        let run = host.run;
        // Some processes stop between what they have decided and what they then send.
        let sent_at = match host.stalls_in_step_ns.take() {
            Some(stall_ns) => {
                host.stalled_until = self.now.plus(stall_ns);
                host.stalled_until
            }
            None => self.now,
        };
        if let Some(work_ns) = work_ns {
            self.agenda.push(sent_at.plus(work_ns), Event::Done { process, run });
        }
        for (to, packet) in self.effects.sends.drain(..) {
            if let Some((at, arrival)) = self.network.send(sent_at, process, to, packet) {
                self.agenda.push(at, Event::Arrival(arrival));
            }
        }
        if let Some(record) = self.effects.persist.take() {
            let at = self.written_at(process, sent_at);
            self.agenda.push(at, Event::Persisted { process, run, record });
        }
        if let Some(position) = self.effects.sync.take() {
            let at = self.written_at(process, sent_at);
            self.agenda.push(at, Event::Synced { process, run, position });
        }
        if std::mem::take(&mut self.effects.takes_over) {
            let at = sent_at.plus(self.random.between(0, TAKEOVER_MAX_NS));
            self.agenda.push(at, Event::TakenOver { process, run });
        }
        for peer in std::mem::take(&mut self.effects.resets) {
            self.reset(process, peer);
        }
        for peer in std::mem::take(&mut self.effects.closes) {
            self.close(sent_at, process, peer);
        }
        self.note_facts()?;
        self.arm(process);
        Ok(())
    }

    /// When something that is written now is on a process's disk. A write that fails is tried again, as the host does.
    fn written_at(&mut self, process: ProcessId, begun: Time) -> Time {
        let written = begun.plus(self.random.between(DISK_NS.0, DISK_NS.1));
        match self.hosts[process.index()].disk {
            Some((Disk::Slow { most_ns }, until)) if begun < until => written.plus(self.random.between(0, most_ns)),
            Some((Disk::Full, until)) if begun < until => until.plus(self.random.between(DISK_NS.0, DISK_RETRY_NS)),
            _ => written,
        }
    }

    /// Enters the process's next wake, unless an earlier one is entered.
    fn arm(&mut self, process: ProcessId) {
        let Some(at) = self.next_wake(process) else { return };
        let at = at.max(self.now);
        let host = &mut self.hosts[process.index()];
        if at < host.wakes_at {
            host.wakes_at = at;
            self.agenda.push(at, Event::Wake { process, run: host.run });
        }
    }

    fn note_facts(&mut self) -> Result<(), Violation> {
        let facts = std::mem::take(&mut self.effects.facts);
        let noted = facts.iter().try_for_each(|fact| self.note(*fact));
        self.effects.facts = facts;
        self.effects.facts.clear();
        noted
    }

    fn note(&mut self, fact: Fact) -> Result<(), Violation> {
        self.trace.note(self.now, fact);
        let at = self.now;
        match fact {
            Fact::Created { stream, sequence } => {
                let index = self.stream(stream);
                let counted = self.ledger.created(index, at);
                assert_eq!(counted, sequence, "publishers number their messages from 1 on, without a gap");
            }
            Fact::Covered { stream, through } => {
                let index = self.stream(stream);
                self.ledger.covered(at, index, through);
            }
            // Every publisher keeps T and J: nothing that it publishes may be taken out of the promise while clocks are right.
            Fact::Excess { stream, sequence } => {
                let index = self.stream(stream);
                self.ledger.excess(at, index, sequence)?;
            }
            Fact::NotTaken { stream, sequence, reason } => {
                return Err(Violation { at, broken: Broken::NotTaken { stream, sequence, reason } });
            }
            Fact::Dropped { stream, sequence } => {
                if self.scenario.excuses_drops(at, self.workload.redirect_ns()) {
                    let index = self.stream(stream);
                    self.ledger.given_up(at, index, sequence, GivenUp::ByPublisher);
                }
            }
            Fact::Shed { stream, sequence } => {
                let index = self.stream(stream);
                self.ledger.given_up(at, index, sequence, GivenUp::ByBroker);
            }
            Fact::RequestAnswered { requester, request } => {
                let is_owed = self.workload.request_topic(requester).1.tolerance() == Some(0);
                self.ledger.request_answered(requester, request, is_owed);
            }
            Fact::RequestDelivered { subscriber, requester, request, .. } => {
                self.ledger.request_delivered(at, requester, subscriber, request)?;
            }
            Fact::Delivered { subscriber, stream, sequence, is_whole } => {
                if !is_whole {
                    return Err(Violation { at, broken: Broken::Forged { stream, subscriber, sequence } });
                }
                let index = self.stream(stream);
                self.ledger.delivered(at, index, subscriber, sequence)?;
            }
            Fact::Told { subscriber, stream, from, losses } => {
                let index = self.stream(stream);
                self.ledger.told(at, index, subscriber, from, losses)?;
            }
            Fact::Leads { process, run, epoch, until } => {
                let until = self.nodes[node_index(process)].clock.time_of(until);
                self.ledger.leads(at, process.0, run, epoch.0, until)?;
            }
            // A shard may hear of it late: nobody else leads before the lease is over.
            Fact::Fenced { .. } => {}
            Fact::Acts { process, action } => {
                self.ledger.acts(at, process.0, action)?;
            }
            Fact::TookClone { process } => {
                if self.scenario.keeps_leader() {
                    return Err(Violation { at, broken: Broken::CloneTaken { clone: process.0 } });
                }
                self.ledger.took_clone();
            }
            Fact::ChannelBroken { process, error } => {
                return Err(Violation { at, broken: Broken::Channel { node: process.0, error } });
            }
            Fact::Contradiction { what } => return Err(Violation { at, broken: Broken::Contradiction { what } }),
            Fact::Answered { position, digest } => self.ledger.control_answered(position, digest),
            Fact::TookOver { process, is_warm } => {
                if self.scenario.keeps_leader() {
                    return Err(Violation { at, broken: Broken::Displaced { node: process.0 } });
                }
                if let Some(gap_ns) = self.scenario.took_over(at) {
                    self.ledger.took_over(at, gap_ns, self.workload.gap_max_ns())?;
                }
                if !is_warm && !self.scenario.may_begin_cold(at) {
                    return Err(Violation { at, broken: Broken::Cold { node: process.0 } });
                }
                if !is_warm && self.scenario.silences_memories() {
                    self.ledger.excuse();
                }
                self.ledger.control_state(at, process.0, self.nodes[node_index(process)].control())?;
            }
        }
        Ok(())
    }

    /// The stream's account; it is opened with the first that is heard of it.
    pub(super) fn stream(&mut self, name: StreamName) -> StreamIndex {
        if let Some(index) = self.streams.get(&name) {
            return *index;
        }
        let topic = &self.workload.topics[usize::from(name.topic)];
        let terms = StreamTerms {
            tolerance: topic.tolerance(),
            deadline_ns: topic.deadline_ns(),
            retention: topic.spec.retention.into(),
            refill_ns: self.workload.refill_ns(name.topic),
        };
        let index = self.ledger.open(name, terms);
        for &(subscriber, is_required) in &topic.subscribers {
            if is_required {
                self.ledger.subscribe(index, subscriber);
            } else {
                self.ledger.listen(index, subscriber);
            }
        }
        self.streams.insert(name, index);
        index
    }

    /// Begins a stall of a process.
    pub(super) fn stall(&mut self, process: ProcessId, for_ns: u64, in_mid_step: bool) {
        let host = &mut self.hosts[process.index()];
        if in_mid_step {
            host.stalls_in_step_ns = Some(for_ns);
        } else {
            host.stalled_until = self.now.plus(for_ns);
        }
    }

    /// A process that was to stand still behind its next step, and has made none, does not any more.
    pub(super) fn stop_stalling(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.stalls_in_step_ns = None);
    }

    /// Starts a process, in a new run.
    pub(super) fn start(&mut self, process: ProcessId) -> Result<(), Violation> {
        let host = &mut self.hosts[process.index()];
        if host.is_running {
            return Ok(());
        }
        host.run += 1;
        host.is_running = true;
        host.stalled_until = Time::default();
        host.stalls_in_step_ns = None;
        host.wakes_at = Time::NEVER;
        let run = host.run;
        self.trace.started(self.now, process);
        self.act(process, |cloud| {
            let Self { now, nodes, publishers, effects, .. } = cloud;
            match Process::of(process) {
                Process::Node(_) | Process::Clone(_) => nodes[node_index(process)].start(*now, effects),
                Process::Publisher(publisher) => publishers[usize::from(publisher)].start(),
                Process::Subscriber(_) | Process::Operator | Process::Requester(_) => {}
            }
            None
        })?;
        if let Process::Publisher(publisher) = Process::of(process) {
            self.begin_publishing(publisher, run);
        }
        self.connect_all(process);
        Ok(())
    }
}
