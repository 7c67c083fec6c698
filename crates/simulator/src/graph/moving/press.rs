//! The edge that has the events.

use std::{collections::VecDeque, time::Duration};

use bodkin_broker::{
    Accepted, Attachment, Authority, Epoch, Incarnation, Input, Instant, Output, Overflow, Publication, PublisherId, Refusal, Sequence,
    Shard, ShardLimits, StreamId, StreamIdentity, SubscriptionKey, TopicId, Wanted, Work,
    graph::Operator,
    wire::{EventHeader, Flags, Watermark},
};

use super::{MoveFlaw, World, database::Database, operator, operator_with};
use crate::graph::{
    Broken,
    leader::{TOPICS, terms},
};
use bodkin_broker::graph::handover::Handover;

pub(super) const EPOCH: Epoch = Epoch(1);
pub(super) const PUBLISHER: PublisherId = PublisherId(7);
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 4, topics_max: 4, queue_bytes_max: 1 << 20 };
const FOR_EVER: Duration = Duration::from_secs(1_000);

/// What the office says.
pub(super) enum Said {
    Attach(Vec<Watermark>),
    Delivered(Incarnation, Sequence),
    Unsubscribe,
}

/// Its process, and its database.
pub(super) struct Press {
    pub database: Database,
    pub operator: Option<Box<dyn Operator>>,
    /// Up to where the operator has taken the run, here.
    pub taken: Sequence,
    /// Published while it takes nothing in.
    pub held: VecDeque<Sequence>,
    pub is_held_up: bool,
    pub shard: Shard<()>,
    pub topic: TopicId,
    pub stream: StreamId,
    pub run: Incarnation,
    pub last: Sequence,
    pub subscription: Option<SubscriptionKey>,
}

pub(super) fn at(now: u64) -> Instant {
    Instant::from_nanos(now)
}

fn shard(run: Incarnation) -> (Shard<()>, TopicId, StreamId) {
    let mut shard = Shard::new(run, LIMITS);
    let topic = shard.admit(TOPICS[0], terms(TOPICS[0])).expect("there is room");
    shard.step(at(1), Input::Authority(Authority { epoch: EPOCH, until: Instant::NEVER }), &mut Vec::new());
    let stream = shard
        .open_stream(&shard.permit().expect("it leads"), StreamIdentity { topic, publisher: PUBLISHER, incarnation: run })
        .expect("there is room");
    (shard, topic, stream)
}

impl Press {
    pub fn new() -> Self {
        let run = Incarnation(1);
        let (shard, topic, stream) = shard(run);
        Self {
            database: Database::new(),
            operator: Some(operator()),
            taken: Sequence(0),
            held: VecDeque::new(),
            is_held_up: false,
            shard,
            topic,
            stream,
            run,
            last: Sequence(0),
            subscription: None,
        }
    }

    /// Whether something is kept for the office.
    pub fn is_owed(&self) -> bool {
        self.shard.is_owed(self.topic)
    }
}

impl World {
    /// An event is published; where nothing more can be kept its publisher waits. While nobody would have it, because an edge is not back yet, nothing is published.
    pub(super) fn publish(&mut self) -> Result<(), Broken> {
        let press = &mut self.press;
        if press.operator.is_none() && press.subscription.is_none() {
            return Ok(());
        }
        let sequence = Sequence(press.last.0 + 1);
        let event = Publication { epoch: Epoch::NONE, sequence, created: at(self.now), is_resent: false, has_wrong_clock: false };
        match press.shard.accept(at(self.now), press.shard.permit().expect("it leads"), press.stream, event) {
            Ok(Accepted::Kept { .. }) => {}
            Err(Refusal::Full { .. }) => return Ok(()),
            other => return Err(format!("an event is {other:?}")),
        }
        press.last = sequence;
        self.tally.published += 1;
        let number = self.tally.published;
        self.numbers.insert((press.run, sequence.0), number);
        if press.is_held_up {
            press.held.push_back(sequence);
        } else if let Some(operator) = &mut press.operator {
            press.taken = sequence;
            self.results.process(&mut **operator, number)?;
        }
        Ok(())
    }

    /// Events are handed to the connection.
    pub(super) fn work(&mut self, most: u64) {
        let mut outputs = Vec::new();
        for _ in 0..most {
            let Some(work) = self.press.shard.next(at(self.now), &mut |(), _| Wanted::Bytes(0), &mut outputs) else { break };
            let is_for_office = outputs.iter().any(|output| matches!(output, Output::Deliver { .. }));
            if let (Work::Dispatch { event, .. }, true) = (work, is_for_office && self.office.is_connected) {
                let (publisher, incarnation, sequence) = (event.publisher, event.incarnation, event.sequence);
                let flags = Flags::default();
                let header = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: self.now, epoch: EPOCH };
                self.office.arriving.push_back(header);
            }
            outputs.clear();
        }
        self.press.shard.end_turn(at(self.now), &mut outputs);
    }

    /// What the office says is heard.
    pub(super) fn hear(&mut self) {
        let mut outputs = Vec::new();
        let press = &mut self.press;
        for said in std::mem::take(&mut self.office.says) {
            match (said, press.subscription) {
                (Said::Attach(watermarks), Some(key)) => press.shard.attach(at(self.now), key, (), watermarks, &mut outputs),
                (Said::Attach(_), None) => {
                    let key = press.shard.subscribe(TOPICS[0], (), Overflow::Loses).expect("there is room");
                    press.shard.require(at(self.now), key, FOR_EVER, Attachment::New);
                    press.subscription = Some(key);
                }
                (Said::Delivered(incarnation, through), Some(subscription)) if incarnation == press.run => {
                    let delivered = Input::Delivered { subscription, stream: press.stream, through };
                    press.shard.step(at(self.now), delivered, &mut outputs);
                }
                (Said::Unsubscribe, Some(subscription)) => {
                    press.shard.step(at(self.now), Input::Unsubscribe { subscription }, &mut outputs);
                    press.subscription = None;
                }
                (Said::Delivered(..) | Said::Unsubscribe, _) => {}
            }
            outputs.clear();
        }
    }

    /// The press is killed, if it holds nothing that its database has not.
    pub(super) fn kill_press(&mut self) -> Result<(), Broken> {
        let is_empty = self.press.operator.is_none() && self.press.held.is_empty() && !self.press.is_owed() && !self.press.is_held_up;
        // What waits in the office was acknowledged or comes again, which it cannot from a press that was killed.
        if !is_empty || self.press.database.taken.is_some() || !self.office.has_all_of(self.press.last) {
            return Ok(());
        }
        self.cut();
        self.tally.kills += 1;
        self.tally.kills_with_handover += u64::from(self.press.database.given.is_some());
        let run = Incarnation(self.press.run.0 + 1);
        let (shard, topic, stream) = shard(run);
        let database = self.press.database.clone();
        self.press = Press { database, operator: None, shard, topic, stream, run, ..Press::new() };
        Ok(())
    }

    /// The press takes the operator, with what has come with it.
    pub(super) fn press_takes(&mut self, handover: &Handover) -> Result<(), Broken> {
        self.press.database = Database::new();
        let mut operator = operator_with(&handover.state);
        let taken = handover.taken.iter().filter(|taken| taken.incarnation == self.press.run && taken.publisher == PUBLISHER);
        let through = taken.map(|taken| taken.through).max().unwrap_or(Sequence(0));
        for sequence in std::mem::take(&mut self.press.held) {
            if sequence <= through && self.flaw != Some(MoveFlaw::ForgetsTaken) {
                self.tally.passed_over += 1;
                continue;
            }
            self.results.process(&mut *operator, self.numbers[&(self.press.run, sequence.0)])?;
        }
        (self.press.taken, self.press.is_held_up, self.press.operator) = (self.press.last, false, Some(operator));
        Ok(())
    }
}
