//! A publisher with sockets.

use std::{
    collections::HashMap,
    io,
    time::{Duration, Instant as Reading},
};

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::{
    PublisherId, Sequence,
    publisher::{Full, Input, Output, Published, Publisher, Retention, Send, Session, TopicKey},
    wire::{ClientFrame, EventHeader, Flags, RefusalReason},
};

use super::{
    answer::Answer,
    brokers::Brokers,
    clock,
    guaranteed::Guaranteed,
    link::Heard,
    links::Links,
    message::Incoming,
    session_end::{SessionEnd, SessionReport},
};

/// Silence of a topic after which its last uncovered event is named to the broker, so that its loss does not stay unseen.
const LAST_AFTER: Duration = Duration::from_millis(100);

/// Publishes events, keeps what is not covered, and sends it again to whoever leads next.
pub struct RealtimePublisher {
    machine: Publisher,
    links: Links,
    name: String,
    event_bytes_max: usize,
    topics: Vec<Topic>,
    by_name: HashMap<String, TopicKey>,
    outputs: Vec<Output>,
    /// What goes out in front of the next events.
    answers: Vec<Answer>,
    /// Where frames are made.
    frame: Vec<u8>,
}

struct Topic {
    name: String,
    /// What is kept, by its places.
    events: Vec<Kept>,
}

#[derive(Clone, Default)]
struct Kept {
    payload: Vec<u8>,
    /// Which trace it is of; empty: of none.
    metadata: String,
}

/// An event that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Everything that is kept is uncovered, and the topic's retention says [`WhenFull::Block`](super::WhenFull::Block): take some turns first.
    #[error(transparent)]
    Full(#[from] Full),
    /// It is longer than [`SessionLimits::zmtp`](super::SessionLimits::zmtp) allows.
    #[error("the event has {bytes} bytes, at most {max} are taken: publish less at once")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

/// What a publisher is told in its turns.
#[derive(Debug)]
pub enum PublisherReport<'r> {
    /// Of the sessions.
    Session(SessionReport),
    /// Every event up to here is safe, or needs not be.
    Covered {
        /// Of which topic.
        topic: TopicKey,
        /// The last one.
        through: Sequence,
    },
    /// The broker will not take an event; it is lost. With [`RefusalReason::OldIncarnation`] it may have been taken: a later run of this name publishes now, and
    /// nothing is told about the events of this one.
    NotTaken {
        /// Of which topic.
        topic: TopicKey,
        /// Which event.
        sequence: Sequence,
        /// Why.
        reason: RefusalReason,
        /// The broker's words: what was expected, what came, what to do.
        text: &'r str,
    },
    /// An event came faster than its topic's period allows: it goes out if there is time, and is never covered.
    Excess {
        /// Of which topic.
        topic: TopicKey,
        /// Which event.
        sequence: Sequence,
    },
    /// The broker has dropped events that nobody will get.
    Lost {
        /// Of which topic.
        topic: TopicKey,
        /// How many more.
        events: u64,
    },
    /// The broker covers what was not published, and is not believed.
    CoveredUnpublished {
        /// Of which topic.
        topic: TopicKey,
        /// What it covers.
        through: Sequence,
    },
}

impl RealtimePublisher {
    /// A publisher without topics. The sessions begin with the first turn.
    ///
    /// # Errors
    /// The system gives no poll, or the client's name cannot be a ZMTP identity.
    pub fn connect(brokers: Brokers) -> io::Result<Self> {
        Ok(Self {
            machine: Publisher::new(brokers.incarnation, LAST_AFTER),
            links: Links::new(&brokers)?,
            event_bytes_max: brokers.limits.zmtp.frame_bytes_max,
            name: brokers.name,
            topics: Vec::new(),
            by_name: HashMap::new(),
            outputs: Vec::new(),
            answers: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Adds a topic, or gives the one of this name, whose retention stays.
    pub fn add_topic(&mut self, name: &str, retention: Retention) -> TopicKey {
        let name = name.trim().to_uppercase();
        if let Some(key) = self.by_name.get(&name) {
            return *key;
        }
        let key = self.machine.add_topic(retention);
        self.topics.push(Topic { name: name.clone(), events: vec![Kept::default(); retention.capacity() as usize] });
        self.by_name.insert(name, key);
        key
    }

    /// Takes an event, created now, and sends it at once if somebody leads and there is room. It never waits.
    pub fn publish(&mut self, topic: TopicKey, payload: &[u8]) -> Result<Published, PublishError> {
        self.take(topic, payload, None)
    }

    /// The same of an event that is of a trace, and is caused by this: it says so whenever it is sent, and Bodkin hands it on to whoever hears the event and asks
    /// for metadata, as [`RealtimeSubscriber`](super::RealtimeSubscriber) does.
    pub fn publish_traced(&mut self, topic: TopicKey, payload: &[u8], cause: &Cause) -> Result<Published, PublishError> {
        self.take(topic, payload, Some(cause))
    }

    fn take(&mut self, topic: TopicKey, payload: &[u8], cause: Option<&Cause>) -> Result<Published, PublishError> {
        let (bytes, max) = (payload.len(), self.event_bytes_max);
        if bytes > max {
            return Err(PublishError::TooLarge { bytes, max });
        }
        let published = self.machine.publish(topic, clock::utc_ns())?;
        let kept = &mut self.topics[topic.index()].events[published.place as usize];
        kept.payload.clear();
        kept.payload.extend_from_slice(payload);
        kept.metadata.clear();
        if let Some(cause) = cause {
            cause.write_metadata(&mut kept.metadata);
        }
        self.send();
        Ok(published)
    }

    /// Who leads.
    pub fn leader(&self) -> Option<Session> {
        self.machine.leader()
    }

    /// Waits until something happens, for at most `wait`; carries it out, and tells it.
    ///
    /// # Errors
    /// The system's poll does not work. What befalls a session is a report.
    pub fn turn(&mut self, wait: Duration, mut told: impl FnMut(PublisherReport<'_>)) -> io::Result<()> {
        let Self { machine, links, outputs, answers, by_name, .. } = self;
        links.turn(wait, machine.next_timer(), &mut |now, session, heard| {
            let mut text = "";
            let input = match heard {
                Heard::Ready => {
                    answers.extend(Answer::first(session));
                    told(PublisherReport::Session(SessionReport::Ready(session)));
                    return Ok(());
                }
                Heard::Ended(end) => {
                    answers.retain(|answer| answer.session() != session);
                    told(PublisherReport::Session(SessionReport::Ended(session, end)));
                    Some(Input::Closed(session))
                }
                Heard::Message(message) => match Incoming::read(&message)? {
                    Incoming::Event { .. } => return Err(SessionEnd::Unexpected("an event")),
                    Incoming::Command(command) => {
                        if let Some(answer) = Answer::to(session, &command) {
                            answers.push(answer);
                            return Ok(());
                        }
                        if let Some(guaranteed) = Guaranteed::of(&command) {
                            told(PublisherReport::Session(SessionReport::Guaranteed(session, guaranteed)));
                            return Ok(());
                        }
                        if let ClientFrame::Refused { text: words, .. } = command {
                            text = words;
                        }
                        input_of(session, &command, by_name, &mut told)?
                    }
                },
            };
            if let Some(input) = input {
                machine.step(now, input, outputs);
                outputs.drain(..).for_each(|output| told(report(output, text)));
            }
            Ok(())
        })?;
        self.machine.step(self.links.now(), Input::Tick, &mut self.outputs);
        self.outputs.drain(..).for_each(|output| told(report(output, "")));
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

    /// Takes turns for so long: between two events of a publisher that has nothing else to do.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub fn turn_for(&mut self, time: Duration, mut told: impl FnMut(PublisherReport<'_>)) -> io::Result<()> {
        let end = Reading::now() + time;
        loop {
            let left = end.saturating_duration_since(Reading::now());
            self.turn(left, &mut told)?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Gives the sockets what they take: who we are, and then events.
    fn send(&mut self) {
        for answer in self.answers.drain(..) {
            self.frame.clear();
            answer.command(self.machine.epoch(), self.machine.incarnation(), &self.name).encode(&mut self.frame);
            self.links.push(answer.session(), &[&self.frame]);
        }
        let now = self.links.now();
        while let Some(leader) = self.machine.leader().filter(|leader| self.links.has_room(*leader)) {
            let Some(send) = self.machine.next_send(now) else { break };
            self.push(leader, send);
        }
        self.links.flush();
    }

    fn push(&mut self, leader: Session, send: Send) {
        let (epoch, incarnation, publisher) = (self.machine.epoch(), self.machine.incarnation(), PublisherId(0));
        let name = |topic: TopicKey| &*self.topics[topic.index()].name;
        self.frame.clear();
        match send {
            Send::Event { topic, sequence, place, created_utc_ns, is_resent } => {
                let flags = Flags { resend: is_resent, ..Flags::default() };
                EventHeader { flags, publisher, incarnation, sequence, created_utc_ns, epoch }.encode(&mut self.frame);
                let Kept { payload, metadata } = &self.topics[topic.index()].events[place as usize];
                let frames = [name(topic).as_bytes(), payload, &self.frame, metadata.as_bytes()];
                return self.links.push(leader, &frames[..if metadata.is_empty() { 3 } else { 4 }]);
            }
            Send::Resume { topic, from, to } => {
                ClientFrame::Resume { epoch, incarnation, from, to, topic: name(topic) }.encode(&mut self.frame)
            }
            Send::Last { topic, sequence } => {
                ClientFrame::Last { epoch, publisher, incarnation, sequence, topic: name(topic) }.encode(&mut self.frame)
            }
        }
        self.links.push(leader, &[&self.frame]);
    }
}

/// What a broker's command is to the machine; what concerns only the application is told.
fn input_of(
    session: Session,
    command: &ClientFrame<'_>,
    by_name: &HashMap<String, TopicKey>,
    told: &mut impl FnMut(PublisherReport<'_>),
) -> Result<Option<Input>, SessionEnd> {
    let key = |name: &str| by_name.get(name).copied().ok_or(SessionEnd::Unexpected("the name of a topic that is not published"));
    Ok(Some(match *command {
        ClientFrame::Leader { epoch, is_leader } => Input::Leader { session, epoch, is_leader },
        ClientFrame::Covered { epoch, incarnation, through, topic } => {
            Input::Covered { session, epoch, topic: key(topic)?, incarnation, through }
        }
        ClientFrame::Refused { sequence, reason, retry_after_ns, topic, .. } => {
            Input::Refused { session, topic: key(topic)?, sequence, reason, retry_after: Duration::from_nanos(retry_after_ns) }
        }
        ClientFrame::Excess { sequence, topic, .. } => {
            told(PublisherReport::Excess { topic: key(topic)?, sequence });
            return Ok(None);
        }
        ClientFrame::Lost { events, topic, .. } => {
            told(PublisherReport::Lost { topic: key(topic)?, events });
            return Ok(None);
        }
        _ => return Err(SessionEnd::Unexpected("a command for subscribers or brokers")),
    }))
}

fn report(output: Output, text: &str) -> PublisherReport<'_> {
    match output {
        Output::Covered { topic, through } => PublisherReport::Covered { topic, through },
        Output::NotTaken { topic, sequence, reason } => PublisherReport::NotTaken { topic, sequence, reason, text },
        Output::CoveredUnpublished { topic, through } => PublisherReport::CoveredUnpublished { topic, through },
        Output::Redirected { session, epoch } => PublisherReport::Session(SessionReport::Leads(session, epoch)),
        Output::Leaderless => PublisherReport::Session(SessionReport::Leaderless),
        Output::StaleEpoch { session, epoch } => PublisherReport::Session(SessionReport::StaleEpoch(session, epoch)),
        Output::TwoLeaders { epoch } => PublisherReport::Session(SessionReport::TwoLeaders(epoch)),
    }
}
