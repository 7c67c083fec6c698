//! A subscriber with sockets.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    time::Duration,
};

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::{
    Incarnation, Instant, PublisherId, Sequence,
    subscriber::{Beginning, Input, Output, Received, Session, StreamCounters, Subscriber, SubscriberConfig, TopicKey},
    wire::{ClientFrame, EventHeader, Flags, RefusalReason, Watermark, Watermarks},
};

use super::{
    answer::Answer,
    brokers::Brokers,
    guaranteed::Guaranteed,
    link::Heard,
    links::Links,
    message::Incoming,
    session_end::{SessionEnd, SessionReport},
};

/// Hears events once each and in order, knows what it has lost, and acknowledges what its application has taken.
pub struct RealtimeSubscriber {
    machine: Subscriber,
    links: Links,
    name: String,
    incarnation: Incarnation,
    topics: Vec<Topic>,
    by_name: HashMap<String, TopicKey>,
    outputs: Vec<Output>,
    /// What goes out at the end of a turn.
    sends: Vec<Send>,
    /// Where frames are made.
    frame: Vec<u8>,
    /// What its application has acknowledged, where it does so itself.
    application: Option<ApplicationAcks>,
}

/// A publisher's run of a topic.
type Run = (TopicKey, PublisherId, Incarnation);

/// What an application has acknowledged, and what of that the leader has to be told.
#[derive(Default)]
struct ApplicationAcks {
    acknowledged: BTreeMap<Run, Sequence>,
    /// Runs whose acknowledgement goes to the leader at the end of a turn, or when a broker leads.
    pending: BTreeSet<Run>,
}

impl ApplicationAcks {
    fn acknowledge(&mut self, run: Run, through: Sequence) {
        let (topic, publisher, _) = run;
        // Of one run before the present one the last events may still come.
        let mut older = self.acknowledged.range((topic, publisher, Incarnation(0))..run).map(|(older, _)| *older);
        if let (Some(oldest), Some(_)) = (older.next(), older.next()) {
            self.acknowledged.remove(&oldest);
            self.pending.remove(&oldest);
        }
        let known = self.acknowledged.entry(run).or_insert(through);
        *known = through.max(*known);
        self.pending.insert(run);
    }

    /// A broker sends an event again, so it has no acknowledgement for it. What the application has not acknowledged it still has in hand.
    fn duplicate(&mut self, run: Run, sequence: Sequence) {
        if self.acknowledged.get(&run).is_some_and(|through| sequence <= *through) {
            self.pending.insert(run);
        }
    }

    /// What is to be sent to the leader.
    fn take_pending(&mut self) -> impl Iterator<Item = (Run, Sequence)> + use<'_> {
        std::mem::take(&mut self.pending).into_iter().map(|run| (run, self.acknowledged[&run]))
    }

    /// How far the application has the runs of a topic.
    fn watermarks(&self, topic: TopicKey) -> Vec<Watermark> {
        let of_topic = self.acknowledged.iter().filter(|((of, ..), _)| *of == topic);
        let watermark = |((_, publisher, incarnation), through): (&Run, &Sequence)| Watermark {
            publisher: *publisher,
            incarnation: *incarnation,
            through: *through,
        };
        of_topic.map(watermark).collect()
    }
}

struct Topic {
    name: String,
    subscription: Subscription,
}

/// What is asked of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Losses in a row that are tolerated: more break the promise, and the broker is asked for this bound. `None`: the topic's own, and none is counted here.
    pub loss_tolerance: Option<u32>,
    /// Creation to arrival, if a bound of its own is asked for.
    pub deadline: Option<Duration>,
    /// Events are covered only when this subscriber has acknowledged them, and it is waited for so long when it is away.
    pub required_for: Option<Duration>,
    /// Where a stream begins for this subscriber.
    pub beginning: Beginning,
}

impl Default for Subscription {
    /// The topic's own bounds, from the present on, not required.
    fn default() -> Self {
        Self { loss_tolerance: None, deadline: None, required_for: None, beginning: Beginning::Present }
    }
}

/// An event, as it stands in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'r> {
    /// Of which topic.
    pub topic: TopicKey,
    /// What was published.
    pub payload: &'r [u8],
    /// Whose it is, and which one.
    pub header: EventHeader,
    /// What it says of itself besides: a JSON object of scalars, if it has any.
    pub metadata: Option<&'r str>,
    /// Newer ones came before it: it was told as lost, and is not.
    pub is_late: bool,
}

impl Event<'_> {
    /// What it is caused by, if it is of a trace.
    pub fn cause(&self) -> Option<Cause> {
        self.metadata.and_then(Cause::of_metadata)
    }
}

/// What a subscriber is told in its turns.
#[derive(Debug)]
pub enum SubscriberReport<'r> {
    /// A new event. It counts as received when the function that is told returns, and is acknowledged behind that.
    Event(Event<'r>),
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
        /// They are more than [`Subscription::loss_tolerance`].
        exceeds: bool,
    },
    /// The broker says how many events it could not bring, because this subscriber did not read. They are [`Self::Lost`] too, with the next event.
    Overrun {
        /// Of which topic.
        topic: TopicKey,
        /// Whose stream.
        publisher: PublisherId,
        /// How many more.
        events: u64,
    },
    /// The broker has made the subscription; one that follows has noted it, and goes on with it when it leads.
    Subscribed(TopicKey, Session),
    /// The broker has not.
    Refused {
        /// Of which topic.
        topic: TopicKey,
        /// Which one.
        session: Session,
        /// Why.
        reason: RefusalReason,
        /// Its words: what was expected, what came, what to do.
        text: &'r str,
    },
    /// An event was dropped: there are [`SubscriberConfig::streams_max`] streams.
    TooManyStreams {
        /// Of which topic.
        topic: TopicKey,
        /// Whose stream.
        publisher: PublisherId,
    },
    /// Of the sessions.
    Session(SessionReport),
}

enum Send {
    Answer(Answer),
    Attach(Session, Option<TopicKey>),
    Acknowledge { session: Session, topic: TopicKey, publisher: PublisherId, incarnation: Incarnation, through: Sequence },
}

impl RealtimeSubscriber {
    /// A subscriber without subscriptions. The sessions begin with the first turn.
    ///
    /// # Errors
    /// The system gives no poll, or the client's name cannot be a ZMTP identity.
    pub fn connect(brokers: Brokers, config: SubscriberConfig) -> io::Result<Self> {
        Ok(Self {
            machine: Subscriber::new(config),
            links: Links::new(&brokers)?,
            name: brokers.name,
            incarnation: brokers.incarnation,
            topics: Vec::new(),
            by_name: HashMap::new(),
            outputs: Vec::new(),
            sends: Vec::new(),
            frame: Vec::new(),
            application: None,
        })
    }

    /// The same whose application says itself what it has ([`Self::acknowledge`]): what was told is safe with it only then.
    pub fn acknowledged_by_application(self) -> Self {
        Self { application: Some(ApplicationAcks::default()), ..self }
    }

    /// Acknowledges a publisher's run up to an event, where the application does so itself; it goes out in the next turn, or when a broker leads. A leader that sends an
    /// acknowledged event again, as one does behind a failover, is sent the acknowledgement again.
    pub fn acknowledge(&mut self, topic: TopicKey, publisher: PublisherId, incarnation: Incarnation, through: Sequence) {
        let application = self.application.as_mut().expect("its application acknowledges");
        application.acknowledge((topic, publisher, incarnation), through);
    }

    /// Subscribes again to a topic that a broker has refused, with both brokers.
    pub fn subscribe_again(&mut self, topic: TopicKey) {
        let ready = [Session::One, Session::Two].into_iter().filter(|session| self.links.is_ready(*session));
        self.sends.extend(ready.map(|session| Send::Attach(session, Some(topic))));
    }

    /// Subscribes to a topic with both brokers, or gives the subscription of this name, which stays as it is.
    pub fn subscribe(&mut self, name: &str, subscription: Subscription) -> TopicKey {
        let name = name.trim().to_uppercase();
        if let Some(key) = self.by_name.get(&name) {
            return *key;
        }
        let key = self.machine.subscribe(subscription.loss_tolerance, subscription.beginning);
        self.topics.push(Topic { name: name.clone(), subscription });
        self.by_name.insert(name, key);
        let ready = [Session::One, Session::Two].into_iter().filter(|session| self.links.is_ready(*session));
        self.sends.extend(ready.map(|session| Send::Attach(session, Some(key))));
        self.send();
        key
    }

    /// Ends a subscription at both brokers, which keep nothing for it any more; it is made again by [`Self::subscribe_again`] or with the next session.
    pub fn unsubscribe(&mut self, topic: TopicKey) {
        let epoch = self.machine.epoch();
        for session in [Session::One, Session::Two] {
            if !self.links.is_ready(session) {
                continue;
            }
            let unsubscribe = ClientFrame::Unsubscribe { epoch, topic: &self.topics[topic.index()].name };
            push(&mut self.links, &mut self.frame, session, &unsubscribe);
        }
        self.links.flush();
    }

    /// Who leads.
    pub fn leader(&self) -> Option<Session> {
        self.machine.leader()
    }

    /// What has come and what was lost of a topic, for each publisher.
    pub fn counters(&self, topic: TopicKey) -> impl Iterator<Item = (PublisherId, StreamCounters)> {
        let streams = self.machine.streams().filter(move |(_, of, _)| *of == topic);
        streams.map(|(stream, _, publisher)| (publisher, self.machine.counters(stream)))
    }

    /// Waits until something happens, for at most `wait`; carries it out, and tells it. What was told is acknowledged when this returns, or in a later turn.
    ///
    /// # Errors
    /// The system's poll does not work. What befalls a session is a report.
    pub fn turn(&mut self, wait: Duration, mut told: impl FnMut(SubscriberReport<'_>)) -> io::Result<()> {
        let Self { machine, links, outputs, sends, by_name, application, .. } = self;
        let acknowledges = application.is_none();
        links.turn(wait, machine.next_timer(), &mut |now, session, heard| {
            let input = match heard {
                Heard::Ready => {
                    told(SubscriberReport::Session(SessionReport::Ready(session)));
                    sends.extend(Answer::first(session).map(Send::Answer));
                    Some(Input::Connected(session))
                }
                Heard::Ended(end) => {
                    told(SubscriberReport::Session(SessionReport::Ended(session, end)));
                    sends.retain(|send| send.session() != session);
                    Some(Input::Closed(session))
                }
                Heard::Message(message) => match Incoming::read(&message)? {
                    Incoming::Command(command) => match Answer::to(session, &command) {
                        Some(answer) => {
                            sends.push(Send::Answer(answer));
                            None
                        }
                        None => input_of(now, session, &command, machine, by_name, outputs, &mut told)?,
                    },
                    Incoming::Event { topic, payload, header, metadata } => {
                        let topic = key(by_name, topic)?;
                        let received = machine.receive(now, session, topic, &header, outputs);
                        carry(outputs, sends, acknowledges, &mut told);
                        if let (Some(application), Received::Duplicate | Received::Old) = (&mut *application, received) {
                            application.duplicate((topic, header.publisher, header.incarnation), header.sequence);
                        }
                        tell(received, Event { topic, payload, header, metadata, is_late: false }, &mut told);
                        None
                    }
                },
            };
            if let Some(input) = input {
                machine.step(now, input, outputs);
            }
            carry(outputs, sends, acknowledges, &mut told);
            Ok(())
        })?;
        self.machine.step(self.links.now(), Input::Tick, &mut self.outputs);
        carry(&mut self.outputs, &mut self.sends, acknowledges, &mut told);
        self.send();
        Ok(())
    }

    /// Waits without holding up the thread, for at most `wait`, until a [`turn`](Self::turn) of [`Duration::ZERO`] has something to do. Cancel safe.
    ///
    /// # Errors
    /// The system's poll does not work.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time.
    pub async fn ready(&mut self, wait: Duration) -> io::Result<()> {
        self.links.ready(wait, self.machine.next_timer()).await
    }

    /// Gives the sockets what is to be sent.
    fn send(&mut self) {
        let mut sends = std::mem::take(&mut self.sends);
        if let (Some(application), Some(session)) = (&mut self.application, self.machine.leader()) {
            let acknowledge =
                |((topic, publisher, incarnation), through)| Send::Acknowledge { session, topic, publisher, incarnation, through };
            sends.extend(application.take_pending().map(acknowledge));
        }
        for send in sends.drain(..) {
            let epoch = self.machine.epoch();
            match send {
                Send::Answer(answer) => {
                    let command = answer.command(epoch, self.incarnation, &self.name);
                    push(&mut self.links, &mut self.frame, answer.session(), &command);
                }
                Send::Attach(session, Some(topic)) => self.attach(session, topic),
                Send::Attach(session, None) => {
                    let keys: Vec<TopicKey> = self.by_name.values().copied().collect();
                    keys.into_iter().for_each(|topic| self.attach(session, topic));
                }
                Send::Acknowledge { session, topic, publisher, incarnation, through } => {
                    let topic = &self.topics[topic.index()].name;
                    let delivered = ClientFrame::Delivered { epoch, publisher, incarnation, through, topic };
                    push(&mut self.links, &mut self.frame, session, &delivered);
                }
            }
        }
        self.sends = sends;
        self.links.flush();
    }

    fn attach(&mut self, session: Session, topic: TopicKey) {
        let watermarks = match &self.application {
            Some(application) => application.watermarks(topic),
            None => self.machine.watermarks(topic).collect(),
        };
        let Topic { name, subscription } = &self.topics[topic.index()];
        let subscribe = ClientFrame::Subscribe {
            epoch: self.machine.epoch(),
            loss_tolerance: subscription.loss_tolerance,
            deadline_ns: subscription.deadline.map(nanos),
            required: subscription.required_for.is_some(),
            wait_ns: subscription.required_for.map_or(0, nanos),
            topic: name,
            watermarks: Watermarks::Own(&watermarks),
        };
        push(&mut self.links, &mut self.frame, session, &subscribe);
    }
}

impl Send {
    fn session(&self) -> Session {
        match *self {
            Self::Answer(answer) => answer.session(),
            Self::Attach(session, _) | Self::Acknowledge { session, .. } => session,
        }
    }
}

fn push(links: &mut Links, frame: &mut Vec<u8>, session: Session, command: &ClientFrame<'_>) {
    frame.clear();
    command.encode(frame);
    links.push(session, &[frame]);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn key(by_name: &HashMap<String, TopicKey>, name: &str) -> Result<TopicKey, SessionEnd> {
    by_name.get(name).copied().ok_or(SessionEnd::Unexpected("the name of a topic that is not subscribed to"))
}

/// What a broker's command is to the machine; what concerns only the application is told.
fn input_of(
    now: Instant,
    session: Session,
    command: &ClientFrame<'_>,
    machine: &mut Subscriber,
    by_name: &HashMap<String, TopicKey>,
    outputs: &mut Vec<Output>,
    told: &mut impl FnMut(SubscriberReport<'_>),
) -> Result<Option<Input>, SessionEnd> {
    if let Some(guaranteed) = Guaranteed::of(command) {
        told(SubscriberReport::Session(SessionReport::Guaranteed(session, guaranteed)));
        return Ok(None);
    }
    match *command {
        ClientFrame::Leader { epoch, is_leader } => return Ok(Some(Input::Leader { session, epoch, is_leader })),
        ClientFrame::Subscribed { topic, .. } => told(SubscriberReport::Subscribed(key(by_name, topic)?, session)),
        ClientFrame::SubscribeRefused { reason, topic, text, .. } => {
            told(SubscriberReport::Refused { topic: key(by_name, topic)?, session, reason, text });
        }
        ClientFrame::Lost { publisher, events, topic, .. } => {
            told(SubscriberReport::Overrun { topic: key(by_name, topic)?, publisher, events });
        }
        ClientFrame::Last { epoch, publisher, incarnation, sequence, topic } => {
            let flags = Flags { last: true, ..Default::default() };
            let header = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: 0, epoch };
            machine.receive(now, session, key(by_name, topic)?, &header, outputs);
        }
        _ => return Err(SessionEnd::Unexpected("a command for publishers or brokers")),
    }
    Ok(None)
}

/// Tells an event, if it is one for the application.
fn tell(received: Received, event: Event<'_>, told: &mut impl FnMut(SubscriberReport<'_>)) {
    match received {
        Received::New(_) => told(SubscriberReport::Event(event)),
        Received::Late(_) => told(SubscriberReport::Event(Event { is_late: true, ..event })),
        Received::TooManyStreams => told(SubscriberReport::TooManyStreams { topic: event.topic, publisher: event.header.publisher }),
        Received::Duplicate | Received::Old | Received::OldIncarnation | Received::Last | Received::StaleEpoch => {}
    }
}

/// Tells what is told at once, and keeps what is sent until the end of the turn.
fn carry(outputs: &mut Vec<Output>, sends: &mut Vec<Send>, acknowledges: bool, told: &mut impl FnMut(SubscriberReport<'_>)) {
    for output in outputs.drain(..) {
        match output {
            Output::Attach { session } => sends.push(Send::Attach(session, None)),
            // Else its application does.
            Output::Acknowledge { .. } if !acknowledges => {}
            Output::Acknowledge { session, topic, publisher, incarnation, through } => {
                sends.push(Send::Acknowledge { session, topic, publisher, incarnation, through });
            }
            Output::Lost { topic, publisher, incarnation, from, run, exceeds } => {
                told(SubscriberReport::Lost { topic, publisher, incarnation, from, run, exceeds });
            }
            Output::Leaderless => told(SubscriberReport::Session(SessionReport::Leaderless)),
            Output::StaleEpoch { session, epoch } => told(SubscriberReport::Session(SessionReport::StaleEpoch(session, epoch))),
            Output::TwoLeaders { epoch } => told(SubscriberReport::Session(SessionReport::TwoLeaders(epoch))),
        }
    }
}
