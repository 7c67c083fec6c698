//! The node that leads: its shard, and the graph that runs in it.

use std::collections::BTreeMap;

use bodkin_broker::{
    Accepted, Attachment, Authority, BackupStanding, Epoch, EventId, Incarnation, Input, Instant, Output, Overflow, Publication,
    PublisherId, Sequence, Shard, ShardLimits, SlotId, StreamId, StreamIdentity, SubscriptionKey, Terms, TopicId, Wanted, Work,
    graph::{
        Cover, Event, Inputs, Operator, OperatorId, SupplierId, Taken,
        checkpoint::{self, Checkpoint},
        machine::{Action, Arrival, EventSlot, JobId, Machine, Outcome, Policy, Record},
    },
    topic::Level,
    wire::{Position, StreamNumber, Watermark},
};
use bodkin_operators::{Keys, file::GraphFile};

use super::Broken;

/// The supplier's topic, and those of the filter's and the encrypted results.
pub const TOPICS: [&str; 3] = ["A", "MEAN", "SEALED"];
/// What a stream of the supplier may keep.
pub const BACKLOG: u32 = 12;
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 16, topics_max: 16, queue_bytes_max: 1 << 20 };
const FOR_EVER: std::time::Duration = std::time::Duration::from_secs(1_000);
const CHECKPOINT_WITHIN_NS: u64 = 40;

/// A frame on the replica channel.
#[derive(Clone, Debug)]
pub enum Frame {
    Open { number: StreamNumber, topic: &'static str, publisher: PublisherId, incarnation: Incarnation },
    Replica { position: Position, number: StreamNumber, sequence: Sequence, created: Instant, bytes: Vec<u8> },
    Discard { number: StreamNumber, through: Sequence },
    Close { number: StreamNumber },
    Checkpoint { position: Position, bytes: Vec<u8> },
    End(Position),
}

/// What the leader does to others.
#[derive(Debug)]
pub enum Effect {
    Deliver {
        event: EventId,
        bytes: Vec<u8>,
    },
    Covered(Sequence),
    Send(Frame),
    /// A text was encrypted: the event's head, and what it was made of.
    Sealed {
        head: Vec<u8>,
        text: Vec<u8>,
    },
    CaughtUp,
    CheckpointArrived,
}

/// What a node may do wrong, so that it is seen that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The broker is not told what the checkpoint has, so that it brings all that is kept.
    NoWatermarks,
    /// Its graph takes whatever it is brought.
    NoCover,
    /// Both: its graph takes events again that the checkpoint has.
    TakesAgain,
    /// Results do not go to the Backup in front of the checkpoint that is behind them.
    CheckpointFirst,
    /// A checkpoint acknowledges what was taken behind it, too.
    AcknowledgesMore,
}

/// Who hears a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    Graph,
    Subscriber,
}

pub fn terms(topic: &str) -> Terms {
    Terms {
        level: Level::new(0).expect("there is one"),
        period_ns: 1,
        jitter_ns: u64::MAX / 4,
        dispatch_within_ns: Some(30),
        replicate_within_ns: Some(200),
        mark_every: std::num::NonZeroU32::MIN,
        dispatch_cost_ns: 0,
        replica_cost_ns: 1,
        broker_subscriber_max_ns: 5,
        created_before_ns: 5,
        created_behind_ns: 0,
        backlog_max: std::num::NonZeroU32::new(if topic == TOPICS[0] { BACKLOG } else { 1 << 12 }).expect("it is not 0"),
        streams_max: 4,
        shed_max: None,
        emptied_covers: false,
    }
}

pub struct Leader {
    pub shard: Shard<Listener>,
    pub standing: BackupStanding,
    pub jobs: Vec<JobId>,
    pub effects: Vec<Effect>,
    flaw: Option<Flaw>,
    machine: Machine,
    cover: Cover,
    digest: u64,
    operators: Vec<Box<dyn Operator>>,
    /// By operator, behind its last round.
    states: Vec<Vec<u8>>,
    payloads: BTreeMap<EventSlot, Vec<u8>>,
    kept: BTreeMap<SlotId, Vec<u8>>,
    topics: [TopicId; 3],
    graph: SubscriptionKey,
    subscribers: [SubscriptionKey; 2],
    outputs: Vec<Output>,
    checkpoints: u64,
    under_way: Option<u64>,
}

impl Leader {
    /// One that leads in an epoch, with what a Backup has had if there was one: its machine, the events' bytes, and the graph's checkpoint. Subscribers are those of before, who say what they have.
    pub fn new(
        now: Instant,
        epoch: Epoch,
        (file, keys, flaw): (&GraphFile, &Keys, Option<Flaw>),
        promoted: Option<Promoted>,
        has: impl Fn(&str) -> Vec<Watermark>,
    ) -> Result<Self, Broken> {
        let mut shard = Shard::follower(LIMITS);
        let topics = TOPICS.map(|topic| shard.admit(topic, terms(topic)).expect("there is room"));
        let subscribe = |shard: &mut Shard<Listener>, topic: &str, listener, attachment| {
            let key = shard.subscribe(topic, listener, Overflow::Loses).expect("there is room");
            match listener {
                Listener::Graph => shard.keep_for(now, key, FOR_EVER, attachment),
                Listener::Subscriber => shard.require(now, key, FOR_EVER, attachment),
            }
            key
        };
        let attachment = if promoted.is_some() { Attachment::Awaited } else { Attachment::New };
        let subscribers = [1, 2].map(|at| subscribe(&mut shard, TOPICS[at], Listener::Subscriber, attachment));
        let authority = Authority { epoch, until: Instant::NEVER };
        let (mut kept, mut checkpoint) = (BTreeMap::new(), None);
        if let Some(Promoted { backup, bytes, graph }) = promoted {
            let promotion = bodkin_broker::Promotion { authority, redirect: std::time::Duration::from_nanos(500) };
            drop(backup.promote(now, promotion, &mut shard));
            (kept, checkpoint) = (bytes, graph);
        } else {
            shard.take_over_nothing();
            shard.step(now, Input::Authority(authority), &mut Vec::new());
        }
        // As the host does: what is kept for the graph is kept from the promotion on, until it is deployed.
        let awaited = if checkpoint.is_some() { Attachment::Awaited } else { Attachment::New };
        let graph = subscribe(&mut shard, TOPICS[0], Listener::Graph, awaited);
        let policy = Policy { cores: 1, is_preemptive: false, replaces_queued: false };
        let operators: Vec<_> = file.recipes.iter().map(|recipe| recipe.make(Some(keys)).expect("the keys are there").operator).collect();
        let mut leader = Self {
            shard,
            standing: BackupStanding::Absent,
            jobs: Vec::new(),
            effects: Vec::new(),
            flaw,
            machine: Machine::new(file.graph.clone(), policy),
            cover: Cover::new([u64::from(BACKLOG / 4)], CHECKPOINT_WITHIN_NS),
            digest: file.digest,
            states: vec![Vec::new(); operators.len()],
            operators,
            payloads: BTreeMap::new(),
            kept,
            topics,
            graph,
            subscribers,
            outputs: Vec::new(),
            checkpoints: 0,
            under_way: None,
        };
        if attachment == Attachment::Awaited {
            for (at, key) in subscribers.into_iter().enumerate() {
                leader.shard.require(now, key, FOR_EVER, Attachment::New);
                leader.shard.attach(now, key, Listener::Subscriber, has(TOPICS[at + 1]), &mut leader.outputs);
            }
            leader.carry_out(now, None);
        }
        leader.deploy(now, checkpoint)?;
        Ok(leader)
    }

    fn deploy(&mut self, now: Instant, checkpoint: Option<Vec<u8>>) -> Result<(), Broken> {
        (0..self.operators.len()).for_each(|at| self.note_state(OperatorId::of(at)));
        let Some(bytes) = checkpoint else { return Ok(()) };
        let Self { machine, cover, payloads, operators, digest, .. } = self;
        let mut refused = 0;
        let fill = |slot, payload: &[u8]| drop(payloads.insert(slot, payload.to_vec()));
        let restore = |operator: OperatorId, state: &[u8]| refused += u32::from(operators[operator.index()].restore(state).is_err());
        let checkpoint = Checkpoint::read(&bytes).map_err(|error| error.to_string())?;
        checkpoint.restore(*digest, (machine, cover), fill, restore).map_err(|error| error.to_string())?;
        if refused > 0 {
            return Err(format!("{refused} operators refuse their states"));
        }
        (0..self.operators.len()).for_each(|at| self.note_state(OperatorId::of(at)));
        let mut actions = Vec::new();
        self.machine.resume(now.nanos(), &mut actions);
        self.act(now, &actions)?;
        let taken = self.cover.taken().filter(|_| !matches!(self.flaw, Some(Flaw::NoWatermarks | Flaw::TakesAgain)));
        let watermarks = taken.map(|Taken { publisher, incarnation, through, .. }| Watermark { publisher, incarnation, through });
        self.shard.keep_for(now, self.graph, FOR_EVER, Attachment::New);
        self.shard.attach(now, self.graph, Listener::Graph, watermarks.collect::<Vec<_>>(), &mut self.outputs);
        self.cover.hasten();
        self.carry_out(now, None);
        Ok(())
    }

    fn note_state(&mut self, operator: OperatorId) {
        let state = &mut self.states[operator.index()];
        state.clear();
        self.operators[operator.index()].save(state);
    }

    /// Opens the supplier's stream of a publisher's run.
    pub fn open(&mut self, publisher: PublisherId, incarnation: Incarnation) -> StreamId {
        self.shard
            .open_stream(&self.shard.permit().expect("it leads"), StreamIdentity { topic: self.topics[0], publisher, incarnation })
            .expect("there is room")
    }

    /// Offers an event of the supplier; false if it has to come again.
    pub fn accept(&mut self, now: Instant, stream: StreamId, event: Publication, bytes: &[u8]) -> Result<bool, Broken> {
        let accepted = self.shard.accept(now, self.shard.permit().expect("it leads"), stream, event);
        let taken = match accepted {
            Ok(Accepted::Kept { slot, is_excess: false }) => {
                self.kept.insert(slot, bytes.to_vec());
                true
            }
            Ok(Accepted::Known) => true,
            Err(bodkin_broker::Refusal::Full { .. }) => false,
            other => return Err(format!("an event of the supplier is {other:?}")),
        };
        self.carry_out(now, None);
        Ok(taken)
    }

    /// Does a piece of work; false if there is none.
    pub fn work(&mut self, now: Instant) -> Result<bool, Broken> {
        let Some(work) = self.shard.next(now, &mut |_, _| Wanted::Bytes(0), &mut self.outputs) else {
            self.carry_out(now, None);
            return Ok(false);
        };
        let is_for_graph =
            self.outputs.iter().any(|output| matches!(output, Output::Deliver { subscription, .. } if *subscription == self.graph));
        self.carry_out(now, Some(&work));
        if let Work::Dispatch { slot, event, created, .. } = work
            && is_for_graph
        {
            self.supply(now, slot, event, created)?;
        }
        Ok(true)
    }

    fn supply(
        &mut self,
        now: Instant,
        slot: SlotId,
        EventId { publisher, incarnation, sequence, .. }: EventId,
        created: Instant,
    ) -> Result<(), Broken> {
        let supplier = SupplierId::of(0);
        let is_had = self.cover.has(supplier, publisher, incarnation, sequence);
        if !is_had || matches!(self.flaw, Some(Flaw::NoCover | Flaw::TakesAgain)) {
            let bytes = self.kept[&slot].clone();
            let arrival = Arrival { supplier, publisher, incarnation, sequence, created_ns: created.nanos(), bytes: bytes.len() };
            let mut actions = Vec::new();
            let event_slot = self.machine.arrive(now.nanos(), arrival, &mut actions).map_err(|error| error.to_string())?;
            self.payloads.insert(event_slot, bytes);
            self.act(now, &actions)?;
        }
        let taken = Taken { supplier, publisher, incarnation, through: sequence };
        self.cover.take(now, taken);
        if is_had {
            self.acknowledge(now, &[taken]);
        }
        self.let_go(now);
        Ok(())
    }

    /// Where no Backup will lead, the graph acknowledges what it has taken.
    fn let_go(&mut self, now: Instant) {
        if matches!(self.standing, BackupStanding::Absent | BackupStanding::Out) {
            let mut told = Vec::new();
            self.cover.let_go(&mut told);
            self.acknowledge(now, &told);
        }
    }

    fn acknowledge(&mut self, now: Instant, told: &[Taken]) {
        for Taken { publisher, incarnation, through, .. } in told {
            let identity = StreamIdentity { topic: self.topics[0], publisher: *publisher, incarnation: *incarnation };
            if let Some(stream) = self.shard.stream(&identity) {
                self.shard.step(now, Input::Delivered { subscription: self.graph, stream, through: *through }, &mut self.outputs);
            }
        }
        self.carry_out(now, None);
    }

    /// Ends a round.
    pub fn finish(&mut self, now: Instant, at: usize) -> Result<(), Broken> {
        let job = self.jobs.remove(at);
        let round = self.machine.job(job).ok_or("a round that runs is not known")?;
        let seen: Vec<Event<'_>> = round
            .events
            .iter()
            .map(|slot| {
                let Record { begin_ns, lead, .. } = *self.machine.record(*slot);
                Event { payload: &self.payloads[slot], created_ns: begin_ns, publisher: lead.publisher.0 }
            })
            .collect();
        let mut made = Vec::new();
        let operator = &mut self.operators[job.operator.index()];
        let emission = operator.run(&Inputs::new(&seen, round.counts), &mut made).map_err(|fault| fault.to_string())?;
        if self.machine.graph().operator(job.operator).name == "seal" {
            self.effects.push(Effect::Sealed { head: made[..32].to_vec(), text: seen[0].payload.to_vec() });
        }
        let bytes = made.len();
        let result = round.result;
        self.payloads.insert(result, made);
        self.note_state(job.operator);
        let mut actions = Vec::new();
        self.machine.finish(now.nanos(), job, Outcome::Done(emission, bytes), &mut actions);
        self.act(now, &actions)
    }

    fn act(&mut self, now: Instant, actions: &[Action]) -> Result<(), Broken> {
        for action in actions {
            match *action {
                Action::Run(job) => self.jobs.push(job),
                Action::Deliver { output, slot, record, .. } => {
                    let EventId { topic, publisher, incarnation, sequence } = record.lead.identity(self.topics[output + 1]);
                    let stream = self
                        .shard
                        .open_stream(&self.shard.permit().expect("it leads"), StreamIdentity { topic, publisher, incarnation })
                        .expect("there is room");
                    let event = Publication {
                        epoch: Epoch::NONE,
                        sequence,
                        created: Instant::from_nanos(record.begin_ns),
                        is_resent: false,
                        has_wrong_clock: false,
                    };
                    match self.shard.accept(now, self.shard.permit().expect("it leads"), stream, event) {
                        Ok(Accepted::Kept { slot: kept, .. }) => drop(self.kept.insert(kept, self.payloads[&slot].clone())),
                        Ok(Accepted::Known) => {}
                        Err(refusal) => return Err(format!("result {sequence:?} is refused: {refusal}")),
                    }
                }
                Action::Shed { .. } => return Err("everything is valid for ever, and was shed".to_owned()),
            }
        }
        self.carry_out(now, None);
        Ok(())
    }

    /// Sends a checkpoint if one is due: behind the results that were published before it.
    pub fn checkpoint(&mut self, now: Instant) {
        let has_link = matches!(self.standing, BackupStanding::Joining | BackupStanding::Settling | BackupStanding::InSync);
        if !has_link || self.cover.due_at().is_none_or(|due_at| due_at > now) {
            return;
        }
        let ahead: &[TopicId] = if self.flaw == Some(Flaw::CheckpointFirst) { &[] } else { &[self.topics[1], self.topics[2]] };
        for topic in ahead.iter().copied() {
            while let Some(work) = self.shard.replicate_next(now, topic, &mut self.outputs) {
                self.carry_out(now, Some(&work));
            }
        }
        self.checkpoints += 1;
        let position = self.shard.checkpoint(self.checkpoints).expect("the channel has room");
        let mut bytes = Vec::new();
        let Self { machine, cover, payloads, states, digest, .. } = self;
        let payload = |slot, out: &mut Vec<u8>| out.extend_from_slice(&payloads[&slot]);
        let state = |operator: OperatorId, out: &mut Vec<u8>| out.extend_from_slice(&states[operator.index()]);
        checkpoint::write(*digest, (machine, cover), &mut Vec::new(), payload, state, &mut bytes);
        self.cover.sent();
        self.under_way = Some(self.checkpoints);
        self.effects.push(Effect::Send(Frame::Checkpoint { position, bytes }));
    }

    /// The Backup stands differently.
    pub fn stand(&mut self, now: Instant, standing: BackupStanding) {
        self.standing = standing;
        self.shard.step(now, Input::Backup(standing), &mut self.outputs);
        self.carry_out(now, None);
        match standing {
            BackupStanding::Settling | BackupStanding::InSync => {}
            BackupStanding::Lost => self.cover.lost(),
            BackupStanding::Absent | BackupStanding::Out | BackupStanding::CatchingUp => self.let_go(now),
            BackupStanding::Joining => {
                self.cover.lost();
                self.cover.hasten();
                self.checkpoint(now);
            }
        }
    }

    /// The Backup has everything up to a position.
    pub fn acknowledged(&mut self, now: Instant, position: Position) -> Result<(), Broken> {
        self.shard.acknowledged(position, &mut self.outputs).map_err(|error| error.to_string())?;
        self.carry_out(now, None);
        Ok(())
    }

    /// A subscriber has everything of a stream up to here.
    pub fn delivered(&mut self, now: Instant, topic: usize, publisher: PublisherId, incarnation: Incarnation, through: Sequence) {
        let identity = StreamIdentity { topic: self.topics[topic], publisher, incarnation };
        let subscription = self.subscribers[topic - 1];
        if let Some(stream) = self.shard.stream(&identity) {
            self.shard.step(now, Input::Delivered { subscription, stream, through }, &mut self.outputs);
        }
        self.carry_out(now, None);
    }

    pub fn resumed(&mut self, now: Instant, stream: StreamId, from: Sequence, to: Sequence) {
        self.shard.step(now, Input::Resumed { stream, from, to }, &mut self.outputs);
        self.carry_out(now, None);
    }

    pub fn end_turn(&mut self, now: Instant) {
        self.shard.end_turn(now, &mut self.outputs);
        self.carry_out(now, None);
    }

    /// Which of the topics an identifier names.
    pub fn topic(&self, id: TopicId) -> usize {
        self.topics.iter().position(|topic| *topic == id).expect("there are no others")
    }

    fn carry_out(&mut self, now: Instant, work: Option<&Work>) {
        let mut arrived = false;
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Deliver { subscription, event } if subscription != self.graph => {
                    let Some(Work::Dispatch { slot, .. }) = work else { unreachable!("deliveries come with their work") };
                    self.effects.push(Effect::Deliver { event, bytes: self.kept[slot].clone() });
                }
                Output::Deliver { .. } => {}
                Output::Covered { stream, through } => {
                    let of = self.shard.identity(stream).map(|identity| identity.topic);
                    self.effects.extend((of == Some(self.topics[0])).then_some(Effect::Covered(through)));
                }
                Output::Declare { stream, number } => {
                    let StreamIdentity { topic, publisher, incarnation } = self.shard.identity(stream).expect("a declared stream is open");
                    let topic = TOPICS[self.topic(topic)];
                    self.effects.push(Effect::Send(Frame::Open { number, topic, publisher, incarnation }));
                }
                Output::Discard { number, through } => self.effects.push(Effect::Send(Frame::Discard { number, through })),
                Output::Closed { number: Some(number), .. } => self.effects.push(Effect::Send(Frame::Close { number })),
                Output::Freed { slot } => drop(self.kept.remove(&slot)),
                Output::CaughtUp => self.effects.push(Effect::CaughtUp),
                Output::Arrived { checkpoint } => arrived |= self.under_way == Some(checkpoint),
                other => unreachable!("{other:?} was not to be expected"),
            }
        }
        match work {
            Some(Work::Replicate { slot, position, number, event, created }) => {
                let (bytes, sequence) = (self.kept[slot].clone(), event.sequence);
                self.effects.push(Effect::Send(Frame::Replica {
                    position: *position,
                    number: *number,
                    sequence,
                    created: *created,
                    bytes,
                }));
            }
            Some(Work::EndSnapshot { position }) => self.effects.push(Effect::Send(Frame::End(*position))),
            Some(Work::Dispatch { .. }) | None => {}
        }
        if arrived {
            let mut told = Vec::new();
            match self.flaw {
                Some(Flaw::AcknowledgesMore) => self.cover.let_go(&mut told),
                _ => self.cover.arrived(&mut told),
            }
            self.effects.push(Effect::CheckpointArrived);
            self.acknowledge(now, &told);
        }
    }
}

/// What a node has that was the Backup.
pub struct Promoted {
    pub backup: bodkin_broker::Backup,
    pub bytes: BTreeMap<SlotId, Vec<u8>>,
    pub graph: Option<Vec<u8>>,
}
