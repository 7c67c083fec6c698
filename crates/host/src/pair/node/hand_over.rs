//! A planned hand-over: an operator has the Backup lead in place of this node, which can be upgraded or switched off then.
//!
//! 1. This node takes nothing new by requests (HTTP, REQ), and its shard answers what waits and brings the Backup what it has not got ([`News::HandOver`]).
//! 2. The member stops leading, and asks for no votes (`Input::HandOver`).
//! 3. The other candidate leads when the promises of its voters have run out, as behind a fail-over. This node follows it.
//!
//! Nothing that was answered is lost: the member stops only while the Backup is recorded in sync. What comes of it is told to who has asked.

use std::time::Duration;

use bodkin_broker::{
    Epoch, Instant, Node,
    member::{Input, Mode, Protection},
};
use tokio::sync::oneshot;

use super::{Cloud, PairThread};
use crate::pair::News;

/// What waits may take so long to be answered, or four leases if these are longer; then this node goes on leading.
const DRAIN_MIN: Duration = Duration::from_secs(2);
const DRAIN_LEASES: u32 = 4;
/// The other node may take so long to lead, or eight leases: behind four of them this node asks for votes again.
const TAKE_OVER_MIN: Duration = Duration::from_secs(5);
const TAKE_OVER_LEASES: u32 = 8;

/// What came of a planned hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// Who leads.
    pub leader: Node,
    /// In which epoch.
    pub epoch: Epoch,
    /// For how long requests were refused in front of the stop, until everything was answered.
    pub drained: Duration,
    /// From the stop until this node has heard that the other one leads: for so long nobody led, give or take a message's way.
    pub gap: Duration,
}

/// Why nothing is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandOverError {
    /// It is not its to hand over.
    #[error("this node does not lead: ask the one that does")]
    NotLeading,
    /// The other one may lead by force only.
    #[error("there is no witness, so the other node would lead only by force: name a witness to both (--witness)")]
    NoWitness,
    /// The other one lacks something.
    #[error("the Backup is not in sync, and would lack what was answered: start it, and wait until bodkin status says that it is")]
    NotProtected,
    /// This node is still becoming a leader, or was asked before.
    #[error("a change of the lead is under way: wait until it is over")]
    UnderWay,
    /// The shard could not get rid of what waits.
    #[error(
        "the Backup has not acknowledged everything within {0:?}: this node goes on leading. Look at the Backup's log and disk, then try again"
    )]
    NotDrained(Duration),
    /// The lead was lost, or the Backup, before it could be handed over.
    #[error("the Backup was lost, or the lead, while what waits was answered: see who leads, and try again")]
    Overtaken,
    /// The Backup has not got a majority.
    #[error(
        "this node stopped leading, and the other one did not lead within {0:?}: look at its log and the witness's. This node may lead again"
    )]
    NobodyLed(Duration),
}

/// How far it is.
#[derive(Debug)]
enum Step {
    /// The shard answers what waits.
    Draining,
    /// This node has stopped, at this instant.
    Stopped { at: Instant, drained: Duration },
}

/// A hand-over under way.
#[derive(Debug)]
pub(super) struct HandOver {
    begun: Instant,
    step: Step,
    told: oneshot::Sender<Result<HandedOver, HandOverError>>,
}

impl PairThread {
    /// An operator wants the other candidate to lead.
    pub(super) fn hand_over(&mut self, told: oneshot::Sender<Result<HandedOver, HandOverError>>) {
        if let Err(refusal) = self.may_hand_over() {
            // Who does not wait any more needs no answer, here and below.
            let _ = told.send(Err(refusal));
            return;
        }
        tracing::info!("an operator has this node hand the lead over: what waits is answered first");
        self.begin_hand_over(told);
    }

    /// Begins a switchover that is allowed.
    pub(super) fn begin_hand_over(&mut self, told: oneshot::Sender<Result<HandedOver, HandOverError>>) {
        self.leadership.hold(true);
        self.hand_over = Some(HandOver { begun: super::boot_time(), step: Step::Draining, told });
        self.tell_shard(News::HandOver);
    }

    pub(super) fn may_hand_over(&self) -> Result<(), HandOverError> {
        if self.leads.is_none() {
            Err(HandOverError::NotLeading)
        } else if self.config.mode != Mode::Majority {
            Err(HandOverError::NoWitness)
        } else if self.hand_over.is_some() || self.cloud != Cloud::Leads {
            Err(HandOverError::UnderWay)
        } else if self.protection != Protection::Protected {
            Err(HandOverError::NotProtected)
        } else {
            Ok(())
        }
    }

    /// The shard has answered everything that waited, and the Backup has it.
    pub(super) fn drained(&mut self) {
        let Some(HandOver { begun, step: step @ Step::Draining, .. }) = &mut self.hand_over else { return };
        let now = super::boot_time();
        *step = Step::Stopped { at: now, drained: now.since(*begun) };
        self.step(Input::HandOver);
        if self.leads.is_some() {
            self.end_hand_over(Err(HandOverError::Overtaken));
        }
    }

    /// Another node leads.
    pub(super) fn handed_over_to(&mut self, leader: Node, epoch: Epoch) {
        let Some(HandOver { step, .. }) = &self.hand_over else { return };
        let done = match *step {
            Step::Draining => Err(HandOverError::Overtaken),
            Step::Stopped { at, drained } => Ok(HandedOver { leader, epoch, drained, gap: super::boot_time().since(at) }),
        };
        self.end_hand_over(done);
    }

    /// This node has been fenced: while what waits was answered, that is not by its own will.
    pub(super) fn fenced_in_hand_over(&mut self) {
        if matches!(&self.hand_over, Some(HandOver { step: Step::Draining, .. })) {
            self.end_hand_over(Err(HandOverError::Overtaken));
        }
    }

    /// This node leads in a new epoch.
    pub(super) fn leads_in_hand_over(&mut self) {
        let Some(HandOver { step, .. }) = &self.hand_over else { return };
        let error = match step {
            Step::Draining => HandOverError::Overtaken,
            Step::Stopped { at, .. } => HandOverError::NobodyLed(super::boot_time().since(*at)),
        };
        self.end_hand_over(Err(error));
    }

    /// Gives up what takes too long.
    pub(super) fn watch_hand_over(&mut self, now: Instant) {
        let Some(HandOver { begun, step, .. }) = &self.hand_over else { return };
        let lease = self.config.lease;
        let (since, wait) = match step {
            Step::Draining => (*begun, DRAIN_MIN.max(lease * DRAIN_LEASES)),
            Step::Stopped { at, .. } => (*at, TAKE_OVER_MIN.max(lease * TAKE_OVER_LEASES)),
        };
        if now < since.plus(wait) {
            return;
        }
        let error = if matches!(step, Step::Draining) { HandOverError::NotDrained(wait) } else { HandOverError::NobodyLed(wait) };
        self.end_hand_over(Err(error));
    }

    fn end_hand_over(&mut self, done: Result<HandedOver, HandOverError>) {
        let Some(HandOver { told, .. }) = self.hand_over.take() else { return };
        match &done {
            Ok(HandedOver { leader, epoch, gap, .. }) => tracing::info!(?leader, %epoch, ?gap, "the lead was handed over"),
            Err(error) => tracing::warn!(%error, "the lead was not handed over"),
        }
        self.leadership.hold(false);
        self.tell_shard(News::HandOverEnds);
        let _ = told.send(done);
    }
}
