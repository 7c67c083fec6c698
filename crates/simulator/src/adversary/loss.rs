//! Losses: the Primary's host dies, and what neither the Backup nor the publisher nor the subscriber has is gone.

use std::{collections::VecDeque, time::Duration};

use bodkin_broker::{
    Attachment, Authority, Backup, BackupStanding, Epoch, Incarnation, Input, Instant, Output, Overflow, Promotion, Publication,
    PublisherId, ReplicationPolicy, Sequence, Shard, ShardLimits, StreamId, StreamIdentity, SubscriptionKey, Terms, TopicId, Wanted, Work,
    publisher::{self, Publisher, Retention, Send, Session, TopicKey, WhenFull},
    wire::{Position, StreamNumber},
};

use super::{Bound, Breach, Found, Nature, Script};

/// When the first period begins, in units: nothing is stamped before time begins.
const START: u32 = 64;
const TOPIC: &str = "A";
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 4, topics_max: 4, queue_bytes_max: 1 << 20 };
const STREAM: StreamIdentity = StreamIdentity { topic: TopicId(0), publisher: PublisherId(1), incarnation: Incarnation(1) };
/// Longer than any script.
const LONG: Duration = Duration::from_secs(1);

/// Tries every script, those first in which everything comes as late as it may.
pub(super) fn search(bound: &Bound, nature: &Nature) -> Found {
    let mut tried = 0;
    // So many events until everything repeats: what the publisher keeps, what may be lost, and two marks.
    let repeats = bound.retention + bound.tolerance + 2 * bound.mark_every;
    let events = repeats + nature.failover / nature.period + 4;
    let crashes = START..=START + (repeats + 1) * bound.period + nature.jitter + nature.publisher_broker;
    let late = if nature.jitter > 0 { repeats } else { 0 };
    for (clock_ahead, publisher_broker) in nature.extremes() {
        for (late_through, heard) in (0..=late).rev().flat_map(|late| (0..=bound.mark_every).map(move |heard| (late, heard))) {
            for at in crashes.clone().rev() {
                let script = Script { late_through, clock_ahead, publisher_broker, heard, at };
                tried += 1;
                let run = Trial::new(bound, nature, script).longest_run(events);
                if run > nature.tolerance {
                    return Found::Breach(script, Breach::Run(run));
                }
            }
        }
    }
    Found::Nothing(tried)
}

/// A frame on the replica channel.
enum Replicated {
    Opened(StreamNumber),
    Replica(Position, StreamNumber, Sequence, Instant),
    Discard(StreamNumber, Sequence),
}

/// One script, played.
struct Trial<'a> {
    nature: &'a Nature,
    script: Script,
    now: u32,
    publisher: Publisher,
    topic: TopicKey,
    /// On their way to who leads, with the time of their arrival.
    coming: VecDeque<(u32, Send)>,
    primary: Option<Shard<()>>,
    backup: Option<Backup>,
    /// On their way to the Backup.
    channel: VecDeque<(u32, Replicated)>,
    stream: StreamId,
    subscription: SubscriptionKey,
    terms: Terms,
    /// By sequence.
    got: Vec<bool>,
    outputs: Vec<Output>,
}

impl<'a> Trial<'a> {
    fn new(bound: &Bound, nature: &'a Nature, script: Script) -> Self {
        let terms = bound.terms(nature);
        let mut backup = Backup::new();
        backup.admit(TOPIC, terms, LIMITS.topics_max).expect("there is room for a topic");
        let mut primary = Shard::new(STREAM.incarnation, LIMITS);
        primary.admit(TOPIC, terms).expect("there is room for a topic");
        primary.set_replication(ReplicationPolicy::default());
        let subscription = primary.subscribe(TOPIC, (), Overflow::Loses).expect("there is room for a subscription");
        primary.require(Instant::default(), subscription, LONG, Attachment::New);
        let stream = primary.open_stream(&primary.permit().expect("it leads"), STREAM).expect("there is room for a stream");
        let mut publisher = Publisher::new(STREAM.incarnation, LONG);
        let topic = publisher.add_topic(Retention::new(nature.retention, nature.retention, WhenFull::DropOldest));
        let mut trial = Self {
            nature,
            script,
            now: 0,
            publisher,
            topic,
            coming: VecDeque::new(),
            primary: Some(primary),
            backup: Some(backup),
            channel: VecDeque::new(),
            stream,
            subscription,
            terms,
            got: vec![true],
            outputs: Vec::new(),
        };
        trial.begin();
        trial
    }

    /// The Backup joins before anything happens.
    fn begin(&mut self) {
        self.step(Input::Authority(Authority { epoch: Epoch(1), until: Instant::NEVER }));
        self.step(Input::Backup(BackupStanding::Joining));
        let primary = self.primary.as_mut().expect("the Primary is there");
        let position = primary.position();
        let backup = self.backup.as_mut().expect("the Backup is there");
        backup.begin_snapshot(position, &mut self.outputs);
        let work = primary.next(Instant::default(), &mut |(), _| Wanted::Bytes(1), &mut self.outputs);
        let Some(Work::EndSnapshot { position }) = work else { panic!("an empty Primary gives its Backup nothing: {work:?}") };
        backup.end_snapshot(position).expect("the snapshot's end follows its beginning");
        primary.acknowledged(position, &mut self.outputs).expect("the end was sent");
        self.outputs.clear();
        self.step(Input::Backup(BackupStanding::Settling));
        self.step(Input::Backup(BackupStanding::InSync));
        self.lead(Session::One, Epoch(1));
    }

    fn reading(&self) -> Instant {
        Instant::from_nanos(self.now.into())
    }

    fn step(&mut self, input: Input) {
        let reading = self.reading();
        if let Some(primary) = &mut self.primary {
            primary.step(reading, input, &mut self.outputs);
        }
        self.carry_out();
    }

    fn lead(&mut self, session: Session, epoch: Epoch) {
        let reading = self.reading();
        self.publisher.step(reading, publisher::Input::Leader { session, epoch, is_leader: true }, &mut Vec::new());
    }

    /// Plays the script; gives the longest run of losses. At the same instant arrivals come in front of the crash, creations behind it, and
    /// the redirection last: an event that is created at that very instant still goes to the dead Primary.
    fn longest_run(mut self, events: u32) -> u32 {
        let creations: Vec<u32> = (1..=events).map(|index| START + self.nature.created(&self.script, index)).collect();
        self.got.resize(events as usize + 1, false);
        let redirected_at = self.script.at + self.nature.failover;
        let end = creations[events as usize - 1].max(redirected_at) + 4 * self.nature.publisher_broker + 4;
        for instant in START..=end {
            self.now = instant;
            self.arrive();
            self.work();
            self.replicate();
            if instant == self.script.at {
                (self.primary, self.coming) = (None, VecDeque::new());
                self.channel.clear();
            }
            for _ in creations.iter().filter(|created| **created == instant) {
                let stamp = instant.checked_add_signed(self.script.clock_ahead).expect("clocks are ahead by less than the start");
                self.publisher.publish(self.topic, stamp.into()).expect("who drops the oldest is never full");
            }
            self.send();
            if instant == redirected_at {
                self.redirect();
            }
        }
        let lost = self.got.split(|got| *got).map(<[bool]>::len).max().unwrap_or_default();
        u32::try_from(lost).expect("there are few events")
    }

    /// What the publisher has sent goes to who leads, or nowhere.
    fn send(&mut self) {
        let reading = self.reading();
        while let Some(send) = self.publisher.next_send(reading) {
            if self.primary.is_some() {
                self.coming.push_back((self.now + self.script.publisher_broker, send));
            }
        }
    }

    fn arrive(&mut self) {
        let reading = self.reading();
        while let Some((_, send)) = self.coming.pop_front_if(|(at, _)| *at <= self.now) {
            match send {
                Send::Event { sequence, created_utc_ns, is_resent, .. } => {
                    let publication = Publication {
                        epoch: Epoch::NONE,
                        sequence,
                        created: Instant::from_nanos(created_utc_ns),
                        is_resent,
                        has_wrong_clock: false,
                    };
                    let primary = self.primary.as_mut().expect("what comes to nobody is dropped");
                    primary
                        .accept(reading, primary.permit().expect("it leads"), self.stream, publication)
                        .expect("one stream is not too much");
                }
                Send::Resume { from, to, .. } => self.step(Input::Resumed { stream: self.stream, from, to }),
                Send::Last { .. } => {}
            }
        }
    }

    /// Does what is due, at once: a dispatch reaches the subscriber while it is heard, and is lost with the Primary's host behind that.
    fn work(&mut self) {
        let reading = self.reading();
        while let Some(primary) = &mut self.primary {
            let work = primary.next(reading, &mut |(), _| Wanted::Bytes(1), &mut self.outputs);
            self.carry_out();
            match work {
                None => break,
                Some(Work::Dispatch { event, .. }) => self.dispatched(event.sequence),
                Some(Work::Replicate { position, number, event, created, .. }) => {
                    let replica = Replicated::Replica(position, number, event.sequence, created);
                    self.channel.push_back((self.now + self.nature.broker_backup, replica));
                }
                Some(Work::EndSnapshot { .. }) => unreachable!("the Backup has joined"),
            }
        }
        if let Some(primary) = &mut self.primary {
            primary.end_turn(reading, &mut self.outputs);
        }
        self.carry_out();
    }

    fn dispatched(&mut self, sequence: Sequence) {
        let is_promoted = self.backup.is_none();
        if is_promoted || sequence.0 <= self.script.heard.into() {
            self.got[sequence.0 as usize] = true;
            self.step(Input::Delivered { subscription: self.subscription, stream: self.stream, through: sequence });
        }
    }

    fn carry_out(&mut self) {
        let arrives_at = self.now + self.nature.broker_backup;
        for output in self.outputs.drain(..) {
            match output {
                Output::Declare { number, .. } => self.channel.push_back((arrives_at, Replicated::Opened(number))),
                Output::Discard { number, through } => self.channel.push_back((arrives_at, Replicated::Discard(number, through))),
                _ => {}
            }
        }
    }

    /// What has reached the Backup is kept, and acknowledged at once.
    fn replicate(&mut self) {
        let Some(backup) = &mut self.backup else { return };
        while let Some((_, replicated)) = self.channel.pop_front_if(|(at, _)| *at <= self.now) {
            match replicated {
                Replicated::Opened(number) => {
                    backup.open_stream(number, TOPIC, STREAM.publisher, STREAM.incarnation).expect("it is new");
                }
                Replicated::Replica(position, number, sequence, created) => {
                    backup.keep(position, number, sequence, created).expect("the channel is in order");
                    let primary = self.primary.as_mut().expect("the channel ends with the Primary");
                    primary.acknowledged(position, &mut Vec::new()).expect("it was sent");
                }
                Replicated::Discard(number, through) => {
                    backup.discard(number, through, &mut Vec::new()).expect("the stream is open");
                }
            }
        }
    }

    /// The Backup leads, the subscriber is there, and the publisher sends it what it keeps.
    fn redirect(&mut self) {
        let reading = self.reading();
        let backup = self.backup.take().expect("it is promoted once");
        let authority = Authority { epoch: Epoch(2), until: Instant::NEVER };
        let mut primary = Shard::follower(LIMITS);
        primary.admit(TOPIC, self.terms).expect("there is room for a topic");
        self.subscription = primary.subscribe(TOPIC, (), Overflow::Loses).expect("there is room for a subscription");
        primary.require(reading, self.subscription, LONG, Attachment::Awaited);
        backup.promote(reading, Promotion { authority, redirect: LONG }, &mut primary);
        primary.attach(reading, self.subscription, (), [], &mut self.outputs);
        self.stream = primary.open_stream(&primary.permit().expect("it leads"), STREAM).expect("there is room for a stream");
        self.primary = Some(primary);
        self.lead(Session::Two, Epoch(2));
        self.send();
    }
}
