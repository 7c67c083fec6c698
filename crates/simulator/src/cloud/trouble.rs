//! How faults are carried out and mended.

use bodkin_broker::Node;

use super::{Cloud, Event, draw_clock, member_config, node_index};
use crate::{
    clock::Time,
    fault::{ClockHost, Cut, Direction, Disk, Fault, Target},
    ledger::Suspended,
    network::{Ending, ProcessId},
    roster::{self, Process},
    violation::Violation,
    workload::{PUBLISHERS, SUBSCRIBERS},
};

impl Cloud {
    /// Carries a fault out. Gives when its causes are over.
    pub(super) fn inflict(&mut self, fault: Fault) -> Result<Time, Violation> {
        self.trace.inflicted(self.now, fault);
        match fault {
            Fault::Crash { target, ending, down_ns, again_after_ns, other_after_ns } => {
                let node = self.target(target);
                let mut over = self.crash(node, ending, down_ns)?;
                if let Some(after_ns) = again_after_ns {
                    let again = over.plus(after_ns);
                    self.agenda.push(again, Event::Die { node, ending: Ending::Vanish, down_ns });
                    over = again.plus(down_ns);
                }
                if let Some((after_ns, other)) = other_after_ns.zip(node.partner()) {
                    self.agenda.push(self.now.plus(after_ns), Event::Die { node: other, ending: Ending::Vanish, down_ns });
                    over = over.max(self.now.plus(after_ns + down_ns));
                }
                Ok(self.voting_again(over))
            }
            Fault::Stall { target, for_ns, in_mid_step } => {
                let process = match target {
                    Some(target) => roster::node(self.target(target)),
                    None => Process::Subscriber(self.random.below(SUBSCRIBERS.into()) as u16).id(),
                };
                self.stall(process, for_ns, in_mid_step);
                Ok(self.now.plus(for_ns))
            }
            Fault::Partition { cut, direction, for_ns, resets, crash } => {
                let mut over = self.now.plus(for_ns);
                if let Some((target, after_ns, down_ns)) = crash {
                    let node = self.target(target);
                    self.agenda.push(self.now.plus(after_ns), Event::Die { node, ending: Ending::Vanish, down_ns });
                    over = over.max(self.voting_again(self.now.plus(after_ns + down_ns)));
                }
                for (one, other) in self.links(cut) {
                    self.cut(one, other, direction, self.now.plus(for_ns));
                    if resets {
                        self.reset(one, other);
                    }
                }
                Ok(over)
            }
            Fault::Reset { cut } => {
                for (one, other) in self.links(cut) {
                    self.reset(one, other);
                }
                Ok(self.now)
            }
            Fault::Switchover => {
                let node = self.target(Target::Primary);
                self.act(roster::node(node), |cloud| cloud.nodes[node as usize].hand_over(cloud.now, &mut cloud.effects))?;
                Ok(self.now)
            }
            Fault::Clone { target, starts_after_ns, lives_ns, ending, reset_after_ns, crash } => {
                let node = self.target(target);
                let clone = Process::Clone(node).id();
                self.copy_to(clone);
                self.agenda.push(self.now.plus(starts_after_ns), Event::Start { process: clone });
                let mut over = self.now.plus(starts_after_ns + lives_ns);
                self.agenda.push(over, Event::End { clone, ending });
                if let Some(after_ns) = reset_after_ns {
                    self.agenda.push(self.now.plus(after_ns), Event::ResetNode { node });
                }
                if let Some((after_ns, ending, down_ns)) = crash {
                    self.agenda.push(self.now.plus(after_ns), Event::Die { node, ending, down_ns });
                    over = over.max(self.voting_again(self.now.plus(after_ns + down_ns)));
                }
                Ok(over)
            }
            Fault::ClockSet { host, step_ns, for_ns, crash } => Ok(self.set_clock(host, step_ns, for_ns, crash)),
            Fault::SlowDisk { target, disk, for_ns, crash } => {
                let (primary, process) = (self.primary(), roster::node(self.target(target)));
                let until = self.now.plus(for_ns);
                self.hosts[process.index()].disk = Some((disk, until));
                // What is written last.
                let until = until.plus(if let Disk::Slow { most_ns } = disk { most_ns } else { 0 });
                Ok(self.crash_later(primary, crash).map_or(until, |over| over.max(until)))
            }
            Fault::LeaseChange { lease_ns, there, nodes, back, pause_ns, .. } => {
                let lease_before_ns = self.workload.platform.lease.lease.get().unsigned_abs();
                let there = there.into_iter().take(nodes).map(|node| (node, lease_ns));
                let restarts = there.chain(back.into_iter().map(|node| (node, lease_before_ns)));
                let mut at = self.now;
                for (node, lease_ns) in restarts {
                    self.agenda.push(at, Event::Restart { node, lease_ns });
                    at = at.plus(pause_ns);
                }
                Ok(at)
            }
            Fault::SlowWays { target, by_ns, primary_cut_ns, cut_after_ns, cut_for_ns } => {
                let node = self.target(target);
                self.slow_ways_to(node, by_ns);
                if target == Target::Backup {
                    self.cut_off(self.primary(), Direction::Both, self.now.plus(primary_cut_ns));
                }
                let over = self.now.plus(cut_after_ns + cut_for_ns);
                self.agenda.push(self.now.plus(cut_after_ns), Event::Mute { node, until: over });
                self.agenda.push(over, Event::Hasten { node });
                Ok(over.max(self.now.plus(primary_cut_ns)))
            }
            Fault::PublisherCrash => {
                let publisher = self.random.below(PUBLISHERS.into()) as u16;
                self.kill(Process::Publisher(publisher).id(), Ending::Flush)?;
                self.agenda.push(self.now.plus(1), Event::Start { process: Process::Publisher(publisher).id() });
                Ok(self.now)
            }
        }
    }

    /// When a node that has restarted votes again: until then, a second node that restarts is a second fault.
    pub(super) fn voting_again(&self, restarted: Time) -> Time {
        let lease_max_ns = 2 * self.workload.platform.lease.lease.get().unsigned_abs();
        restarted.plus(lease_max_ns + lease_max_ns / 1_000)
    }

    fn crash(&mut self, node: Node, ending: Ending, down_ns: u64) -> Result<Time, Violation> {
        let leads = self.nodes[node as usize].leads(self.now);
        self.scenario.crashed(self.now, leads, ending);
        self.kill(roster::node(node), ending)?;
        let back = self.now.plus(down_ns);
        self.agenda.push(back, Event::Start { process: roster::node(node) });
        Ok(back)
    }

    /// An operator stops a node, and starts it at once with another lease.
    pub(super) fn restart(&mut self, node: Node, lease_ns: u64) -> Result<(), Violation> {
        self.nodes[node as usize].set_config(member_config(&self.workload, node, lease_ns));
        self.crash(node, Ending::Flush, 1).map(drop)
    }

    /// A further crash of the same fault.
    pub(super) fn die(&mut self, node: Node, ending: Ending, down_ns: u64) -> Result<(), Violation> {
        if self.hosts[roster::node(node).index()].is_running {
            self.crash(node, ending, down_ns)?;
        }
        Ok(())
    }

    /// Sets a clock wrong, and has it set right later. Gives when the causes are over.
    fn set_clock(&mut self, host: ClockHost, step_ns: i64, for_ns: u64, crash: Option<(u64, u64)>) -> Time {
        let primary = self.primary();
        let process = match host {
            ClockHost::Node(target) => roster::node(self.target(target)),
            ClockHost::Publisher => Process::Publisher(self.random.below(PUBLISHERS.into()) as u16).id(),
            ClockHost::Subscriber => Process::Subscriber(self.random.below(SUBSCRIBERS.into()) as u16).id(),
        };
        // A node judges what it accepts by its own clock.
        let suspended = match (Process::of(process), crash) {
            (Process::Node(node), _) if node == primary => Some(Suspended::All),
            (Process::Node(Node::First | Node::Second), Some(_)) => Some(Suspended::All),
            (Process::Publisher(publisher), _) => Some(Suspended::Publisher(publisher)),
            _ => None,
        };
        if let Some(suspended) = suspended {
            self.ledger.suspends(suspended);
        }
        self.set_utc(process, step_ns);
        let right_at = self.now.plus(for_ns);
        self.agenda.push(right_at, Event::SetUtc { process, step_ns: -step_ns });
        self.crash_later(primary, crash).map_or(right_at, |over| over.max(right_at))
    }

    /// Has a node's host die as a part of a fault: how long after its beginning, and for how long. Gives when it votes again.
    fn crash_later(&mut self, node: Node, crash: Option<(u64, u64)>) -> Option<Time> {
        let (after_ns, down_ns) = crash?;
        self.agenda.push(self.now.plus(after_ns), Event::Die { node, ending: Ending::Vanish, down_ns });
        Some(self.voting_again(self.now.plus(after_ns + down_ns)))
    }

    /// Sets the UTC of a process's host ahead by so much.
    pub(super) fn set_utc(&mut self, process: ProcessId, step_ns: i64) {
        match Process::of(process) {
            Process::Node(_) | Process::Clone(_) => self.nodes[node_index(process)].clock.set_utc(step_ns),
            Process::Publisher(publisher) => self.publishers[usize::from(publisher)].set_utc(step_ns),
            Process::Subscriber(subscriber) => self.subscribers[usize::from(subscriber)].set_utc(step_ns),
            Process::Operator | Process::Requester(_) => unreachable!("they have no clock"),
        }
    }

    /// Copies a node's disk to the host of its clone, which has a clock of its own.
    fn copy_to(&mut self, clone: ProcessId) {
        let clock = draw_clock(&self.workload, &mut self.random);
        let (nodes, clones) = self.nodes.split_at_mut(Node::ALL.len());
        let node = Process::of(clone).node().expect("a clone has a node's name") as usize;
        nodes[node].copy_to(&mut clones[node], clock);
    }

    /// A clone dies. Whatever the others took it for, it does not come back.
    pub(super) fn end_clone(&mut self, clone: ProcessId, ending: Ending) -> Result<(), Violation> {
        if self.hosts[clone.index()].is_running { self.kill(clone, ending) } else { Ok(()) }
    }

    /// Ends a process.
    fn kill(&mut self, process: ProcessId, ending: Ending) -> Result<(), Violation> {
        self.trace.killed(self.now, process);
        self.hosts[process.index()].is_running = false;
        match Process::of(process) {
            Process::Node(_) | Process::Clone(_) => {
                self.nodes[node_index(process)].kill();
                self.ledger.ends(self.now, process.0);
            }
            Process::Publisher(publisher) => {
                for stream in self.publishers[usize::from(publisher)].kill() {
                    let index = self.stream(stream);
                    self.ledger.publisher_died(index);
                }
            }
            Process::Subscriber(_) | Process::Operator | Process::Requester(_) => unreachable!("they do not die"),
        }
        let mut coming = std::mem::take(&mut self.coming);
        self.network.end(self.now, process, ending, &mut coming);
        self.post(coming);
        Ok(())
    }

    /// Who leads by its own clock; if nobody does, the first candidate.
    pub(super) fn primary(&self) -> Node {
        let leads = |node: &Node| self.nodes[*node as usize].leads(self.now);
        [Node::First, Node::Second].into_iter().find(leads).unwrap_or(Node::First)
    }

    fn target(&self, target: Target) -> Node {
        match target {
            Target::Primary => self.primary(),
            Target::Backup => self.primary().partner().expect("who leads is a candidate"),
            Target::Witness => Node::Witness,
        }
    }

    fn links(&mut self, cut: Cut) -> Vec<(ProcessId, ProcessId)> {
        let primary = roster::node(self.primary());
        let backup = roster::node(self.target(Target::Backup));
        let witness = roster::node(Node::Witness);
        let around = |center: ProcessId| roster::all().filter(|other| *other != center).map(|other| (center, other)).collect();
        match cut {
            Cut::Pair => vec![(primary, backup)],
            Cut::PrimaryWitness => vec![(primary, witness)],
            Cut::BackupWitness => vec![(backup, witness)],
            Cut::PublisherPrimary => vec![(Process::Publisher(self.random.below(PUBLISHERS.into()) as u16).id(), primary)],
            Cut::PrimarySubscriber => vec![(primary, Process::Subscriber(self.random.below(SUBSCRIBERS.into()) as u16).id())],
            Cut::AroundPrimary => around(primary),
            Cut::AroundBackup => around(backup),
            Cut::AroundWitness => around(witness),
        }
    }

    /// What the other nodes send to a node takes so much longer from now on.
    pub(super) fn slow_ways_to(&mut self, node: Node, by_ns: u64) {
        for other in Node::ALL.into_iter().filter(|other| *other != node) {
            self.network.slow(roster::node(other), roster::node(node), by_ns);
        }
    }

    /// Cuts a node off from the other two.
    pub(super) fn cut_off(&mut self, node: Node, direction: Direction, until: Time) {
        for other in Node::ALL.into_iter().filter(|other| *other != node) {
            self.cut(roster::node(node), roster::node(other), direction, until);
        }
    }

    fn cut(&mut self, one: ProcessId, other: ProcessId, direction: Direction, until: Time) {
        let ways: &[(ProcessId, ProcessId)] = match direction {
            Direction::Both => &[(one, other), (other, one)],
            Direction::Out => &[(one, other)],
            Direction::In => &[(other, one)],
        };
        for &(from, to) in ways {
            self.network.cut(from, to);
            self.agenda.push(until, Event::Heal { from, to });
        }
    }

    /// Makes a link whole.
    pub(super) fn heal(&mut self, from: ProcessId, to: ProcessId) {
        let mut coming = std::mem::take(&mut self.coming);
        self.network.heal(self.now, from, to, &mut coming);
        self.post(coming);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::MILLISECOND_NS, fault::FaultKind};

    /// A cloud that is whole, and will have no faults of its own.
    fn whole(seed: u64) -> Cloud {
        let mut cloud = Cloud::new(seed, 0);
        while !cloud.scenario.is_at_peace() {
            run_for(&mut cloud, MILLISECOND_NS);
        }
        cloud
    }

    fn run_for(cloud: &mut Cloud, ns: u64) {
        let end = cloud.now.plus(ns);
        while cloud.now < end {
            let (at, event) = cloud.agenda.pop().expect("the scenario looks again");
            cloud.now = at;
            cloud.happen(event).expect("every promise is kept");
        }
    }

    #[test]
    fn node_with_full_disk_votes_when_the_disk_has_room() {
        for seed in 1..6 {
            let mut cloud = whole(seed);
            cloud.scenario.begins(FaultKind::CrashWithSlowDisk);
            let crash = Some((MILLISECOND_NS, 150 * MILLISECOND_NS));
            cloud.inflict(Fault::SlowDisk { target: Target::Witness, disk: Disk::Full, for_ns: 80 * MILLISECOND_NS, crash }).unwrap();
            let leads = |cloud: &Cloud| cloud.nodes.iter().any(|node| node.leads(cloud.now));
            run_for(&mut cloud, 40 * MILLISECOND_NS);
            assert!(!leads(&cloud), "seed {seed}: the only vote is not on the disk");
            assert!(cloud.hosts.iter().take(3).filter(|host| host.is_running).count() == 2, "seed {seed}: only the Primary has ended");
            run_for(&mut cloud, 80 * MILLISECOND_NS);
            assert!(leads(&cloud), "seed {seed}: the disk has room again");
        }
    }
}
