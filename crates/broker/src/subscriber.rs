//! A subscriber: what it has, what it has lost, and what it acknowledges.
//!
//! An event's place in its stream is kept in a window of bits, not as a bare high-water mark: after a fail-over a recovered event may come behind
//! a newer one, and is no duplicate. A session brings each stream in order, so what is passed over is lost: it is told at once, with the length
//! of the run, and acknowledged with what follows it, for nobody waits for it any more.

#[cfg(test)]
mod tests;
mod window;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

pub use crate::session::Session;
use crate::{
    epoch::Epoch,
    event::{Incarnation, Numberer, PublisherId, Sequence},
    session::{Sessions, Word},
    subscriber::window::{Place, Window},
    time::Instant,
    wire::{EventHeader, Watermark},
};

/// Names a topic of one subscriber, from 0 in the order in which they were subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicKey(u32);

impl TopicKey {
    /// Its number, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a stream of one subscriber, as long as the subscriber lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(u32);

/// Where a stream begins for a subscriber that has nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beginning {
    /// With the first event that comes.
    Present,
    /// With sequence 1: what is missing in front of the first event that comes is lost.
    First,
}

/// What a subscriber is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberConfig {
    /// Events of a stream after which they are acknowledged; 1: each one.
    pub acknowledge_every: u32,
    /// Longest time that an event waits for its acknowledgement.
    pub acknowledge_after: Duration,
    /// Places of each stream that are remembered: at least N (kept by the publisher), the Backup's entries and L together; rounded up to 64.
    pub window: u32,
    /// Pairs of publisher and topic; events of further ones are refused and told.
    pub streams_max: usize,
}

/// What can happen to a subscriber. That an event has come is a call of its own ([`Subscriber::receive`]), for it has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The time of [`Subscriber::next_timer`] has come.
    Tick,
    /// A connection to a broker is there.
    Connected(Session),
    /// A connection has ended.
    Closed(Session),
    /// A broker says whether it leads.
    Leader {
        /// Which one.
        session: Session,
        /// In which epoch.
        epoch: Epoch,
        /// Whether it does.
        is_leader: bool,
    },
}

/// What a subscriber wants done or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Subscribe to every topic on this session, with [`Subscriber::watermarks`]: once a connection, when its broker has said whether it leads. One that does
    /// not notes it, and goes on with it when it leads.
    Attach {
        /// Which one.
        session: Session,
    },
    /// Acknowledge a stream.
    Acknowledge {
        /// On the leader's session.
        session: Session,
        /// Of which topic.
        topic: TopicKey,
        /// Whose stream.
        publisher: PublisherId,
        /// Which numbering.
        incarnation: Incarnation,
        /// The last event.
        through: Sequence,
    },
    /// Events were lost in a row.
    Lost {
        /// Of which topic.
        topic: TopicKey,
        /// Whose stream.
        publisher: PublisherId,
        /// Which numbering.
        incarnation: Incarnation,
        /// The first one.
        from: Sequence,
        /// How many.
        run: u64,
        /// They are more than the tolerance L: the promise is broken.
        exceeds: bool,
    },
    /// Nobody is known to lead.
    Leaderless,
    /// A broker leads in a lower epoch than is known, and is not believed.
    StaleEpoch {
        /// Which one.
        session: Session,
        /// Its epoch.
        epoch: Epoch,
    },
    /// Both brokers lead in one epoch: they are no pair. The second is not believed.
    TwoLeaders {
        /// The epoch.
        epoch: Epoch,
    },
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// New, and in order: for the application.
    New(StreamKey),
    /// New, but newer ones came before it: it was told as lost, and is not.
    Late(StreamKey),
    /// The subscriber has it.
    Duplicate,
    /// So old that it is not known whether the subscriber has it.
    Old,
    /// A newer run of the publisher has published so much that this one is forgotten.
    OldIncarnation,
    /// No event: the last sequence of the stream.
    Last,
    /// From a broker that does not lead any more.
    StaleEpoch,
    /// There are as many streams as there may be: it is dropped, and told.
    TooManyStreams,
}

/// Counts of one stream, over all its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamCounters {
    /// New events, late ones included.
    pub received: u64,
    /// Events that are missing.
    pub lost: u64,
    /// Longest row of missing events, as it was told.
    pub longest_run: u64,
    /// Rows that were longer than the tolerance.
    pub exceeded: u64,
    /// Events that had come before.
    pub duplicates: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stream {
    topic: TopicKey,
    publisher: PublisherId,
    current: Window,
    /// The run of the publisher before: its last events may come behind the first of this one.
    previous: Option<Window>,
    counters: StreamCounters,
    unacknowledged: u32,
    /// It stands in the queue of what is due, even if it was acknowledged since.
    is_due: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Topic {
    loss_tolerance: Option<u32>,
    beginning: Beginning,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subscriber {
    config: SubscriberConfig,
    sessions: Sessions,
    /// Sessions whose connection has subscribed.
    attached: [bool; 2],
    topics: Vec<Topic>,
    streams: Vec<Stream>,
    by_name: BTreeMap<(TopicKey, PublisherId, Numberer), StreamKey>,
    /// Streams with something to acknowledge, each once, by the time it is due.
    due: VecDeque<(Instant, StreamKey)>,
}

impl Subscriber {
    /// A subscriber without subscriptions.
    pub fn new(config: SubscriberConfig) -> Self {
        let (topics, streams, due) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { config, sessions: Sessions::default(), attached: [false; 2], topics, streams, by_name: BTreeMap::new(), due }
    }

    /// Adds a topic. Losses of more than `loss_tolerance` in a row break the promise; without one none do.
    ///
    /// # Panics
    /// If there are 2^32 topics.
    pub fn subscribe(&mut self, loss_tolerance: Option<u32>, beginning: Beginning) -> TopicKey {
        let key = TopicKey(u32::try_from(self.topics.len()).expect("there are fewer topics than 2^32"));
        self.topics.push(Topic { loss_tolerance, beginning });
        key
    }

    /// The epoch for what is sent.
    pub fn epoch(&self) -> Epoch {
        self.sessions.epoch()
    }

    /// The broker that leads.
    pub fn leader(&self) -> Option<Session> {
        self.sessions.leader()
    }

    /// How far each stream of a topic has come.
    pub fn watermarks(&self, topic: TopicKey) -> impl Iterator<Item = Watermark> + use<'_> {
        let whole = (topic, PublisherId(0), Numberer::Publisher)..=(topic, PublisherId(u64::MAX), Numberer::Node);
        let keys = self.by_name.range(whole).map(|(_, key)| *key);
        keys.flat_map(|key| {
            let Stream { publisher, current, previous, .. } = &self.streams[key.0 as usize];
            let watermark = |window: &Window| Watermark {
                publisher: *publisher,
                incarnation: window.incarnation(),
                through: Sequence(window.newest()),
            };
            previous.as_ref().map(watermark).into_iter().chain([watermark(current)])
        })
    }

    /// What a stream has come to.
    pub fn counters(&self, stream: StreamKey) -> StreamCounters {
        self.streams[stream.0 as usize].counters
    }

    /// Every stream, with its topic and publisher.
    pub fn streams(&self) -> impl Iterator<Item = (StreamKey, TopicKey, PublisherId)> {
        self.by_name.iter().map(|((topic, publisher, _), key)| (*key, *topic, *publisher))
    }

    /// Takes an event, which the caller has kept for its application when this returns [`Received::New`] or [`Received::Late`].
    pub fn receive(
        &mut self,
        now: Instant,
        session: Session,
        topic: TopicKey,
        header: &EventHeader,
        outputs: &mut Vec<Output>,
    ) -> Received {
        if !self.believes(session, header.epoch, outputs) {
            return Received::StaleEpoch;
        }
        let Some(key) = self.stream(topic, header) else { return Received::TooManyStreams };
        let window_bits = self.config.window;
        let stream = &mut self.streams[key.0 as usize];
        let tolerance = self.topics[topic.index()].loss_tolerance;
        let Some((window, lost)) = stream.take(header, window_bits) else { return Received::OldIncarnation };
        // What a graph has held back was never there; what it has shed its broker tells.
        if let Some((from, run)) = lost.filter(|_| !header.flags.derived) {
            let exceeds = tolerance.is_some_and(|tolerance| run > u64::from(tolerance));
            let counters = &mut stream.counters;
            counters.lost = counters.lost.saturating_add(run);
            counters.longest_run = counters.longest_run.max(run);
            counters.exceeded += u64::from(exceeds);
            let (publisher, incarnation) = (header.publisher, header.incarnation);
            outputs.push(Output::Lost { topic, publisher, incarnation, from: Sequence(from), run, exceeds });
        }
        let received = match window {
            _ if header.flags.last => Received::Last,
            Place::New => Received::New(key),
            Place::Late => Received::Late(key),
            Place::Known => Received::Duplicate,
            Place::Old => Received::Old,
        };
        stream.count(received);
        self.acknowledge_soon(now, key, header.flags.acknowledge, outputs);
        received
    }

    /// Takes what happened. `outputs` is appended to.
    pub fn step(&mut self, now: Instant, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Tick => {}
            Input::Connected(session) => self.attached[session as usize] = false,
            Input::Closed(session) => {
                self.attached[session as usize] = false;
                if self.sessions.closed(session) {
                    outputs.push(Output::Leaderless);
                }
            }
            Input::Leader { session, epoch, is_leader } => self.told(session, epoch, is_leader, outputs),
        }
        // Without a leader there is nobody to tell: what is due waits for the next one.
        while let Some(leader) = self.leader()
            && let Some((_, key)) = self.due.pop_front_if(|(at, _)| *at <= now)
        {
            self.streams[key.0 as usize].is_due = false;
            self.acknowledge(leader, key, outputs);
        }
    }

    /// When to call [`Self::step`] with [`Input::Tick`] if nothing else happens before.
    pub fn next_timer(&self) -> Option<Instant> {
        self.due.front().filter(|_| self.leader().is_some()).map(|(at, _)| *at)
    }

    fn told(&mut self, session: Session, epoch: Epoch, is_leader: bool, outputs: &mut Vec<Output>) {
        match self.sessions.told(session, epoch, is_leader) {
            Word::Known | Word::Leads => {}
            Word::Resigns => outputs.push(Output::Leaderless),
            Word::Stale => return outputs.push(Output::StaleEpoch { session, epoch }),
            Word::Contradicts => return outputs.push(Output::TwoLeaders { epoch }),
        }
        // Who follows has to know the subscriber when it is promoted: thousands of subscriptions would come too late then.
        if !std::mem::replace(&mut self.attached[session as usize], true) {
            outputs.push(Output::Attach { session });
        }
    }

    /// Whether an event of this epoch comes from who leads; the event of a higher one says that its sender does.
    fn believes(&mut self, session: Session, epoch: Epoch, outputs: &mut Vec<Output>) -> bool {
        if epoch > self.sessions.epoch() {
            self.told(session, epoch, true, outputs);
        }
        epoch == self.sessions.epoch()
    }

    fn stream(&mut self, topic: TopicKey, header: &EventHeader) -> Option<StreamKey> {
        let name = (topic, header.publisher, header.incarnation.numberer());
        if let Some(key) = self.by_name.get(&name) {
            return Some(*key);
        }
        if self.streams.len() >= self.config.streams_max {
            return None;
        }
        let key = StreamKey(u32::try_from(self.streams.len()).ok()?);
        // The word about the last event says that everything up to it was published before this subscriber came.
        let behind = if header.flags.last { header.sequence.0 } else { header.sequence.0.saturating_sub(1) };
        let begins_behind = match self.topics[topic.index()].beginning {
            Beginning::First => 0,
            Beginning::Present => behind,
        };
        self.streams.push(Stream {
            topic,
            publisher: header.publisher,
            current: Window::new(header.incarnation, begins_behind, self.config.window),
            previous: None,
            counters: StreamCounters::default(),
            unacknowledged: 0,
            is_due: false,
        });
        self.by_name.insert(name, key);
        self.due.reserve(self.streams.len() - self.due.len());
        Some(key)
    }

    /// Whatever the broker sends again it has no acknowledgement for, so a duplicate is acknowledged too.
    fn acknowledge_soon(&mut self, now: Instant, key: StreamKey, at_once: bool, outputs: &mut Vec<Output>) {
        let leader = self.leader();
        let stream = &mut self.streams[key.0 as usize];
        stream.unacknowledged = stream.unacknowledged.saturating_add(1);
        let is_due = at_once || stream.unacknowledged >= self.config.acknowledge_every;
        if let Some(leader) = leader.filter(|_| is_due) {
            self.acknowledge(leader, key, outputs);
        } else if !std::mem::replace(&mut stream.is_due, true) {
            self.due.push_back((now.plus(self.config.acknowledge_after), key));
        }
    }

    fn acknowledge(&mut self, session: Session, key: StreamKey, outputs: &mut Vec<Output>) {
        let stream = &mut self.streams[key.0 as usize];
        stream.unacknowledged = 0;
        let (topic, publisher) = (stream.topic, stream.publisher);
        for window in stream.previous.iter_mut().chain([&mut stream.current]) {
            if window.take_unacknowledged() {
                let (incarnation, through) = (window.incarnation(), Sequence(window.newest()));
                outputs.push(Output::Acknowledge { session, topic, publisher, incarnation, through });
            }
        }
    }
}

impl Stream {
    /// Puts an event into the window of its incarnation: what it is there, and the first lost one with the number of lost ones in front of it.
    fn take(&mut self, header: &EventHeader, window_bits: u32) -> Option<(Place, Option<(u64, u64)>)> {
        if header.incarnation > self.current.incarnation() {
            let next = Window::new(header.incarnation, 0, window_bits);
            self.previous = Some(std::mem::replace(&mut self.current, next));
        }
        let windows = [Some(&mut self.current), self.previous.as_mut()].into_iter().flatten();
        let window = windows.into_iter().find(|window| window.incarnation() == header.incarnation)?;
        Some(if header.flags.last { (Place::Known, window.pass(header.sequence.0)) } else { window.take(header.sequence.0) })
    }

    fn count(&mut self, received: Received) {
        let counters = &mut self.counters;
        match received {
            Received::New(_) => counters.received += 1,
            Received::Late(_) => {
                counters.received += 1;
                counters.lost -= 1;
            }
            Received::Duplicate | Received::Old => counters.duplicates += 1,
            Received::Last | Received::OldIncarnation | Received::StaleEpoch | Received::TooManyStreams => {}
        }
    }
}
