//! A Primary under load, with the least that has to be around it: a required subscriber for each topic, and a Backup.

use std::{num::NonZeroU32, time::Duration};

use bodkin_broker::{
    Attachment, Backup, BackupStanding, Epoch, Incarnation, Input, Instant, Output, Overflow, Publication, PublisherId, ReplicationPace,
    ReplicationPolicy, Sequence, Shard, ShardLimits, StreamId, StreamIdentity, SubscriptionKey, Terms, Wanted, Work, topic::Level,
};

/// T of all topics, in nanoseconds.
const PERIOD_NS: u64 = 100_000_000;

/// The shards of a pair.
pub struct Workload {
    primary: Shard<()>,
    backup: Backup,
    streams: Vec<(StreamId, SubscriptionKey)>,
    sequence: u64,
    now: Instant,
    outputs: Vec<Output>,
    /// Streams of the events that a turn has dispatched, to be acknowledged in the next.
    dispatched: Vec<u32>,
}

impl Workload {
    /// A pair with so many topics of one publisher and one required subscriber each. `is_eager`: every event is replicated; otherwise every one is
    /// acknowledged before it has to be.
    pub fn new(topics: usize, is_eager: bool) -> Self {
        let terms = Terms {
            level: Level::default(),
            period_ns: PERIOD_NS,
            jitter_ns: PERIOD_NS / 10,
            dispatch_within_ns: Some(PERIOD_NS),
            replicate_within_ns: Some(PERIOD_NS / 2),
            mark_every: NonZeroU32::MIN,
            dispatch_cost_ns: 1_000,
            replica_cost_ns: 1_000,
            broker_subscriber_max_ns: 1_000_000,
            created_before_ns: 1_000_000,
            created_behind_ns: 50_000,
            backlog_max: NonZeroU32::new(4).expect("not 0"),
            streams_max: 1,
            shed_max: None,
            emptied_covers: false,
        };
        let limits = ShardLimits { subscriptions_max: topics, topics_max: topics, queue_bytes_max: 1 << 16 };
        let now = Instant::from_nanos(1_000_000_000);
        let (mut primary, mut backup) = (Shard::new(Incarnation(1), limits), Backup::new());
        let mut streams = Vec::new();
        for topic in 0..topics {
            let name = format!("TOPIC-{topic}");
            let id = primary.admit(&name, terms).expect("within the limits");
            backup.admit(&name, terms, topics).expect("within the limits");
            let identity = StreamIdentity { topic: id, publisher: PublisherId(1), incarnation: Incarnation(1) };
            let subscription = primary.subscribe(&name, (), Overflow::Loses).expect("within the limits");
            primary.require(now, subscription, Duration::from_secs(10), Attachment::New);
            streams.push((primary.open_stream(&primary.permit().expect("it leads"), identity).expect("within the limits"), subscription));
        }
        let pace = if is_eager { ReplicationPace::Eager } else { ReplicationPace::Lazy };
        primary.set_replication(ReplicationPolicy { batch_cost_ns: 5_000, blocking_ns: 50_000, pace, ..ReplicationPolicy::default() });
        let mut workload = Self { primary, backup, streams, sequence: 0, now, outputs: Vec::new(), dispatched: Vec::new() };
        workload.backup.begin_snapshot(workload.primary.position(), &mut workload.outputs);
        for standing in [BackupStanding::Joining, BackupStanding::Settling, BackupStanding::InSync] {
            workload.primary.step(now, Input::Backup(standing), &mut workload.outputs);
            workload.turn();
            // A joining Backup is given some hundred streams a turn.
            while workload.primary.next_timer().is_some() {
                workload.turn();
            }
        }
        workload
    }

    /// Every topic has an event, `burst` of them in a turn.
    pub fn round(&mut self, burst: usize) {
        self.sequence += 1;
        let began = self.now;
        for first in (0..self.streams.len()).step_by(burst) {
            self.now = self.now.plus(Duration::from_micros(1));
            for &(stream, _) in &self.streams[first..(first + burst).min(self.streams.len())] {
                let publication = Publication {
                    epoch: Epoch::NONE,
                    sequence: Sequence(self.sequence),
                    created: self.now,
                    is_resent: false,
                    has_wrong_clock: false,
                };
                self.primary
                    .accept(self.now, self.primary.permit().expect("it leads"), stream, publication)
                    .expect("the last event is covered");
            }
            self.turn();
        }
        self.turn();
        self.now = began.plus(Duration::from_nanos(PERIOD_NS));
    }

    /// What the last turn has dispatched is acknowledged, what is to be done is done, and the Backup takes what is for it.
    fn turn(&mut self) {
        for stream in self.dispatched.drain(..) {
            let (stream, subscription) = self.streams[stream as usize];
            self.primary.step(self.now, Input::Sent { subscription, bytes: 100 }, &mut self.outputs);
            let through = Sequence(self.sequence);
            self.primary.step(self.now, Input::Delivered { subscription, stream, through }, &mut self.outputs);
        }
        while let Some(work) = self.primary.next(self.now, &mut |(), _| Wanted::Bytes(100), &mut self.outputs) {
            // The Backup hears of what is in front of the work first.
            self.carry_out();
            match work {
                Work::Dispatch { stream, .. } => self.dispatched.push(stream.index()),
                Work::Replicate { position, number, event, created, .. } => {
                    let kept = self.backup.keep(position, number, event.sequence, created).expect("the channel is in order");
                    assert!(kept.is_some(), "every replica is new");
                }
                Work::EndSnapshot { position } => self.backup.end_snapshot(position).expect("the channel is in order"),
            }
        }
        if let Some(position) = self.backup.acknowledgement() {
            self.primary.acknowledged(position, &mut self.outputs).expect("nothing is acknowledged that was not sent");
        }
        self.primary.end_turn(self.now, &mut self.outputs);
        self.carry_out();
    }

    /// Brings to the Backup what is for it.
    fn carry_out(&mut self) {
        for at in 0..self.outputs.len() {
            match self.outputs[at] {
                Output::Declare { stream, number } => {
                    let topic = format!("TOPIC-{}", stream.index());
                    self.backup.open_stream(number, &topic, PublisherId(1), Incarnation(1)).expect("the topic is known");
                }
                Output::Discard { number, through } => {
                    self.backup.discard(number, through, &mut self.outputs).expect("the stream is open");
                }
                _ => {}
            }
        }
        self.outputs.clear();
    }

    /// Checks that every event was dispatched in time and replicated or not, as the workload wants it, and that nothing is left.
    pub fn check(&mut self, is_eager: bool) {
        self.turn();
        let counters = self.primary.counters();
        assert_eq!(counters.accepted, self.sequence * self.streams.len() as u64);
        assert_eq!((counters.dispatched, counters.late, counters.excess), (counters.accepted, 0, 0));
        assert_eq!(counters.replicated, if is_eager { counters.accepted } else { 0 });
        assert_eq!((self.primary.kept(), self.backup.kept()), (0, 0));
    }
}
