//! When the next fault comes: when the cloud is whole again, which it has to be in time.

use super::{Cloud, Event};
use crate::{
    clock::{MILLISECOND_NS, Time},
    fault::{FAULT_KINDS, Fault, FaultKind},
    ledger::Ledger,
    network::Ending,
    publisher::PublisherProcess,
    requester::RequesterProcess,
    violation::{Broken, Violation},
};

/// Between two looks at the cloud, in nanoseconds.
const LOOK_NS: u64 = MILLISECOND_NS;
/// How long behind the end of a fault's causes the cloud may take to be whole again: a few leases for the right to lead, the rest for reconnecting and
/// bringing everybody what was missed.
const WHOLE_WITHIN_NS: u64 = 400 * MILLISECOND_NS;
/// How long it has to be whole until that is believed, in nanoseconds.
const CALM_NS: u64 = 3 * MILLISECOND_NS;
/// How long a cloud goes on in peace at its end, so that everything has arrived or is told to be lost.
const PEACE_NS: u64 = 200 * MILLISECOND_NS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The cloud is to be whole, at the latest `by`, and has been since; a fault may still last `until`.
    Mending { until: Time, by: Time, since: Option<Time> },
    /// The cloud is whole, and left alone until then.
    Pause { until: Time },
    /// Nobody publishes any more.
    Peace { until: Time },
    /// Everything has been looked at.
    Over,
}

/// See the module.
#[derive(Debug)]
pub struct Scenario {
    phase: Phase,
    faults_left: u32,
    /// By [`FAULT_KINDS`].
    counts: [u64; FAULT_KINDS.len()],
    /// Deaths of nodes, and how many of these were their hosts'.
    crashes: u64,
    host_crashes: u64,
    /// The present fault.
    fault: Option<FaultKind>,
    /// It silences the node that has the messages for so long that the other one may lead without them.
    silences_memories: bool,
    /// When the first leader took over.
    first_led_at: Option<Time>,
    /// The Primary died, once and alone, and nobody has taken its place yet.
    primary_died_at: Option<Time>,
}

impl Scenario {
    pub(super) fn new(faults: u32) -> Self {
        Self {
            phase: Phase::Mending { until: Time::default(), by: Time(WHOLE_WITHIN_NS), since: None },
            faults_left: faults,
            counts: [0; FAULT_KINDS.len()],
            crashes: 0,
            host_crashes: 0,
            fault: None,
            silences_memories: false,
            first_led_at: None,
            primary_died_at: None,
        }
    }

    /// Leaves the first fault out until then.
    pub(super) fn begins_after(&mut self, until: Time) {
        self.phase = Phase::Mending { until, by: until.plus(WHOLE_WITHIN_NS), since: None };
    }

    /// Whether the cloud is whole after its last fault.
    #[cfg(test)]
    pub(super) fn is_at_peace(&self) -> bool {
        matches!(self.phase, Phase::Peace { .. })
    }

    /// Names the present fault.
    #[cfg(test)]
    pub(super) fn begins(&mut self, fault: FaultKind) {
        self.fault = Some(fault);
    }

    /// How many faults of each of [`FAULT_KINDS`] there were.
    pub fn counts(&self) -> [u64; FAULT_KINDS.len()] {
        self.counts
    }

    /// How often a node died, and how often its host did with it.
    pub fn crashes(&self) -> (u64, u64) {
        (self.crashes, self.host_crashes)
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether publishers publish.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.phase, Phase::Peace { .. } | Phase::Over)
    }

    /// A node dies.
    pub(super) fn crashed(&mut self, at: Time, leads: bool, ending: Ending) {
        self.host_crashes += u64::from(ending == Ending::Vanish);
        self.crashes += 1;
        let is_alone = matches!(self.fault, Some(FaultKind::ProcessCrash | FaultKind::HostCrash | FaultKind::ClonedNodeCrash));
        self.primary_died_at = (leads && is_alone).then_some(at);
    }

    /// A node leads; gives how long nobody did, if the Primary had died.
    pub(super) fn took_over(&mut self, at: Time) -> Option<u64> {
        self.primary_died_at.take().map(|died_at| at.since(died_at))
    }

    /// Whether what publishers drop now may be missing: the present fault is another one than those that the bound is made for, the death of the
    /// Primary or its host. A harmless fault must not cost a drop. Until the first leader, and `redirect_ns` after that, publishers know of no
    /// leader.
    pub(super) fn excuses_drops(&self, at: Time, redirect_ns: u64) -> bool {
        let is_bounded = self.is_harmless() || matches!(self.fault, None | Some(FaultKind::ProcessCrash | FaultKind::HostCrash));
        !is_bounded || self.first_led_at.is_none_or(|first| at < first.plus(redirect_ns))
    }

    /// Whether the present fault must not change who leads: only a clone of a node that lives, a clock that is set, or a slow disk of a node that does
    /// not lead.
    pub(super) fn keeps_leader(&self) -> bool {
        self.is_harmless() || self.fault == Some(FaultKind::CloneAndReset)
    }

    /// Whether the present fault must not make an event late or cost a drop either. The ledger knows the events that a wrong clock itself excuses.
    fn is_harmless(&self) -> bool {
        matches!(self.fault, Some(FaultKind::Clone | FaultKind::ClockSet | FaultKind::SlowDisk))
    }

    /// All clocks are right. If a node died meanwhile, events that were stamped before are sent again until the cloud is whole.
    pub(super) fn has_right_clocks(&self, at: Time, ledger: &mut Ledger) {
        if self.fault != Some(FaultKind::CrashWithWrongClock) {
            ledger.resumes(at);
        }
    }

    /// Whether a leader may begin without the messages of the one before it: the first one ever, when both hosts of the pair had died, or when the one that was in sync had or
    /// was silent for too long.
    pub(super) fn may_begin_cold(&mut self, at: Time) -> bool {
        let may_begin_cold = |fault| loses_memories(fault) || fault == FaultKind::CrashInPartition;
        self.silences_memories
            || self.fault.is_some_and(may_begin_cold)
            || self.first_led_at.replace(self.first_led_at.unwrap_or(at)).is_none()
    }

    /// Whether what was covered by memories is lost with a leader that begins without them. Where nodes die, that was excused when the fault began.
    pub(super) fn silences_memories(&self) -> bool {
        self.silences_memories
    }
}

/// Whether both nodes of the pair die, one before the other has its messages again.
fn loses_memories(fault: FaultKind) -> bool {
    matches!(fault, FaultKind::CrashAtPromotion | FaultKind::PrimaryCrashAtRejoin | FaultKind::LeaseJump)
}

impl Cloud {
    /// Looks at the cloud, and goes on in the scenario.
    pub(super) fn look(&mut self) -> Result<(), Violation> {
        self.agenda.push(self.now.plus(LOOK_NS), Event::Look);
        match self.scenario.phase {
            Phase::Mending { until, by, since } => {
                if self.now >= until {
                    self.stop_stalling();
                }
                let is_whole = self.now >= until.max(self.moves_at()) && self.is_whole();
                let since = is_whole.then(|| since.unwrap_or(self.now));
                self.scenario.phase = Phase::Mending { until, by, since };
                if since.is_some_and(|since| self.now >= since.plus(CALM_NS)) {
                    self.calm_down();
                } else if self.now > by {
                    let what = self.what_is_missing().unwrap_or_else(|| "a cloud that stays whole for 3 ms".to_owned());
                    return Err(Violation { at: self.now, broken: Broken::Stuck { what, within_ns: WHOLE_WITHIN_NS } });
                }
            }
            Phase::Pause { until } if self.now >= until => {
                let fault = self.plan.draw();
                self.begin_fault(fault)?;
            }
            Phase::Pause { .. } => {}
            Phase::Peace { until } if self.now >= until => self.scenario.phase = Phase::Over,
            Phase::Peace { .. } | Phase::Over => {}
        }
        Ok(())
    }

    /// The cloud is whole: whatever was disturbed is over.
    fn calm_down(&mut self) {
        self.ledger.calms(self.now);
        self.ledger.resumes(self.now);
        (self.scenario.fault, self.scenario.silences_memories) = (None, false);
        self.scenario.primary_died_at = None;
        self.scenario.phase = match self.scenario.faults_left {
            0 => Phase::Peace { until: self.now.plus(PEACE_NS) },
            _ => Phase::Pause { until: self.now.plus(self.plan.pause_ns()) },
        };
    }

    fn begin_fault(&mut self, fault: Fault) -> Result<(), Violation> {
        let kind = fault.kind();
        let place = FAULT_KINDS.iter().position(|counted| *counted == kind).expect("every kind is counted");
        self.scenario.counts[place] += 1;
        self.scenario.faults_left -= 1;
        self.scenario.fault = Some(kind);
        if !self.scenario.is_harmless() {
            self.ledger.disturbs(self.now);
        }
        self.scenario.silences_memories = self.plan.silences_memories(&fault);
        if loses_memories(kind) {
            // What was covered by memories of both hosts goes with them; what comes from now on is covered without the one that is dead.
            self.ledger.excuse();
        }
        let until = self.inflict(fault)?;
        self.scenario.phase = Phase::Mending { until, by: until.plus(WHOLE_WITHIN_NS), since: None };
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.what_is_missing().is_none()
    }

    /// What keeps the cloud from being whole; nothing does.
    fn what_is_missing(&self) -> Option<String> {
        let primary = &self.nodes[self.primary() as usize];
        let missing = match () {
            () if !self.is_moving() => "not every process runs",
            () if !self.is_connected() => "not every connection is there",
            () if !self.is_established() => "a node does not count as itself at another one",
            () if !primary.leads(self.now) => "nobody leads",
            () if !primary.is_whole(self.now) => "the Backup is not in sync",
            () => {
                let requesters = self.requesters.iter().find_map(RequesterProcess::unsettled);
                return requesters.or_else(|| self.publishers.iter().find_map(PublisherProcess::unsettled));
            }
        };
        Some(missing.to_owned())
    }
}
