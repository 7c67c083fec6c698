//! A shard as its host sees it, driven by hand.

mod best_effort;
mod cover;
mod dispatch;
mod hostile;
mod last;
mod leadership;
mod pair;
mod promotion;
mod required;
mod slots;

use std::{num::NonZeroU32, time::Duration};

use crate::{
    BackupStanding, Epoch, EventId, Incarnation, Instant, PublisherId, Sequence, StreamId, StreamIdentity, SubscriptionKey, Terms,
    replication::{ReplicationPace, ReplicationPolicy},
    shard::*,
    subscription::Wanted,
    terms::tests::TERMS,
    wire::{Position, StreamNumber, Watermark},
};

const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 8, topics_max: 8, queue_bytes_max: 4 };
const AT_ONCE: ReplicationPolicy =
    ReplicationPolicy { batch_cost_ns: 0, blocking_ns: 0, batch_window_ns: 0, pace: ReplicationPace::Eager, backup_keeps: 0 };

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// A shard, its clock, and what it has put out since it was last looked at. Every event takes a byte of its receivers' queues.
struct Driven {
    shard: Shard<u8>,
    now: u64,
    outputs: Vec<Output>,
}

impl Driven {
    /// A shard with the topics `A`, `B`, ... of these terms.
    fn new(terms: &[Terms]) -> Self {
        let mut shard = Shard::new(Incarnation(7), LIMITS);
        for (topic, terms) in terms.iter().enumerate() {
            shard.admit(&topic_name(topic as u64), *terms).unwrap();
        }
        Self { shard, now: 1_000, outputs: Vec::new() }
    }

    /// The stream of a publisher on the topic of a number.
    fn stream(&mut self, topic: u64, publisher: u64) -> StreamId {
        self.stream_of(topic, publisher, 1)
    }

    fn stream_of(&mut self, topic: u64, publisher: u64, incarnation: u64) -> StreamId {
        let topic = TopicId(topic);
        let identity = StreamIdentity { topic, publisher: PublisherId(publisher), incarnation: Incarnation(incarnation) };
        self.shard.open_stream(&self.shard.permit().expect("it leads"), identity).unwrap()
    }

    /// Publishes an event that is created when it arrives.
    fn publish(&mut self, stream: StreamId, sequence: u64) -> Result<Accepted, Refusal> {
        let publication = Publication {
            epoch: Epoch::NONE,
            sequence: Sequence(sequence),
            created: at(self.now),
            is_resent: false,
            has_wrong_clock: false,
        };
        self.shard.accept(at(self.now), self.shard.permit().expect("it leads"), stream, publication)
    }

    /// Publishes an event that the shard numbers.
    fn publish_best_effort(&mut self, topic: &str, publisher: u64) -> EventId {
        let permit = self.shard.permit().unwrap();
        self.shard.publish(at(self.now), permit, topic, PublisherId(publisher), &mut |_, _| Wanted::No, &mut Vec::new()).unwrap()
    }

    /// A subscription to the topic of a number, required if `wait` is not 0.
    fn subscribe(&mut self, topic: u64, wait: u64) -> SubscriptionKey {
        let key = self.shard.subscribe(&topic_name(topic), 0, Overflow::Loses).unwrap();
        if wait > 0 {
            self.shard.require(at(self.now), key, Duration::from_nanos(wait), Attachment::New);
        }
        key
    }

    fn step(&mut self, input: Input) {
        self.shard.step(at(self.now), input, &mut self.outputs);
    }

    fn delivered(&mut self, subscription: SubscriptionKey, stream: StreamId, through: u64) {
        self.step(Input::Delivered { subscription, stream, through: Sequence(through) });
    }

    /// This node leads in an epoch, without end.
    fn leads(&mut self, epoch: u64) {
        self.step(Input::Authority(Authority { epoch: Epoch(epoch), until: Instant::NEVER }));
    }

    /// The right to lead that it has is over.
    fn fenced(&mut self, epoch: u64) {
        self.step(Input::Authority(Authority { epoch: Epoch(epoch), until: at(self.now) }));
    }

    /// A required subscription comes, and has everything of publisher 1 up to here.
    fn attach(&mut self, key: SubscriptionKey, through: u64) {
        let watermark = Watermark { publisher: PublisherId(1), incarnation: Incarnation(1), through: Sequence(through) };
        self.shard.attach(at(self.now), key, 0, [watermark], &mut self.outputs);
    }

    fn next(&mut self) -> Option<Work> {
        self.shard.next(at(self.now), &mut |_, _| Wanted::Bytes(1), &mut self.outputs)
    }

    /// All work there is at present, as words: `A1` an event of topic `A` dispatched, `A1!` too late, `(A1)` replicated, `end`.
    fn work(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(work) = self.next() {
            words.push(match work {
                Work::Dispatch { event, is_late, .. } => format!("{}{}", event_name(event), if is_late { "!" } else { "" }),
                Work::Replicate { event, .. } => format!("({})", event_name(event)),
                Work::EndSnapshot { .. } => "end".to_owned(),
            });
        }
        words.join(" ")
    }

    /// Ends the turn, and gives everything put out since the last look, but for deliveries and freed slots.
    fn told(&mut self) -> Vec<Output> {
        self.shard.end_turn(at(self.now), &mut self.outputs);
        self.outputs.drain(..).filter(|output| !matches!(output, Output::Deliver { .. } | Output::Freed { .. })).collect()
    }

    /// Ends the turn, and gives how far a stream is told to be covered, if it is.
    fn covered(&mut self) -> Option<u64> {
        let told = self.told();
        told.iter().rev().find_map(|output| if let Output::Covered { through, .. } = output { Some(through.0) } else { None })
    }

    /// The events that were handed to a subscription since the last look.
    fn handed(&mut self, key: SubscriptionKey) -> Vec<u64> {
        let handed = self.outputs.iter().filter_map(|output| match output {
            Output::Deliver { subscription, event } if *subscription == key => Some(event.sequence.0),
            _ => None,
        });
        let handed = handed.collect();
        self.outputs.retain(|output| !matches!(output, Output::Deliver { subscription, .. } if *subscription == key));
        handed
    }

    /// Has a Backup join that acknowledges everything at once.
    fn join(&mut self) {
        self.step(Input::Backup(BackupStanding::Joining));
        assert!(self.work().ends_with("end"), "a joining Backup is given everything");
        self.acknowledge_all();
        assert!(self.outputs.contains(&Output::CaughtUp));
        self.step(Input::Backup(BackupStanding::InSync));
        self.outputs.clear();
    }

    fn acknowledge_all(&mut self) {
        let position = self.shard.position();
        self.shard.acknowledged(position, &mut self.outputs).unwrap();
    }
}

fn topic_name(topic: u64) -> String {
    char::from(b'A' + topic as u8).to_string()
}

fn event_name(event: EventId) -> String {
    format!("{}{}", topic_name(event.topic.0), event.sequence.0)
}

/// [`TERMS`] with room for many.
fn roomy() -> Terms {
    Terms { backlog_max: NonZeroU32::new(64).unwrap(), ..TERMS }
}
