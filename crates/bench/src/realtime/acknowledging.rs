//! A subscriber that acknowledges: the machine of `broker::subscriber` behind a DEALER, with a session to each broker.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use bodkin_broker::publisher::Session;
use bodkin_broker::subscriber::{Beginning, Input, Output, Received, Subscriber, SubscriberConfig, TopicKey};
use bodkin_broker::wire::{ClientFrame, EventHeader, Flags, Watermark, Watermarks};
use bodkin_broker::{Incarnation, Instant};
use mio::{Registry, Token};

use super::listener::Hearing;
use super::payload::Payload;
use super::retaining::topic_number;
use super::session::{News, Sessions, clock_reply, utc_at_zero_ns};
use super::workload::Workload;
use crate::event::payload::monotonic_ns;

/// How long the broker waits for a subscriber that is away.
const WAITED_FOR: Duration = Duration::from_secs(10);
/// Places of a stream that are remembered.
const WINDOW_PLACES: u32 = 128;

/// What one subscriber hears and acknowledges.
pub struct AcknowledgingListener {
    machine: Subscriber,
    sessions: Sessions,
    name: String,
    incarnation: Incarnation,
    /// Of each group that it hears: number of its first topic, its name, key of its first topic.
    groups: Vec<(u32, String, usize)>,
    /// By key: number of the topic, its name.
    topics: Vec<(u32, String)>,
    keys: Vec<TopicKey>,
    /// Topics that the leader has not subscribed it to yet.
    missing: usize,
    hearing: Hearing,
    outputs: Vec<Output>,
    refusals: Vec<String>,
}

impl AcknowledgingListener {
    /// Begins its sessions; [`Self::is_subscribed`] says when it hears.
    ///
    /// # Errors
    /// The system gives no socket, or the name is no identity.
    pub fn connect(
        brokers: &[SocketAddr],
        system: &str,
        subscriber: usize,
        hearing: Hearing,
        workload: &Workload,
        registry: &Registry,
        tokens: [Token; 2],
    ) -> anyhow::Result<Self> {
        let (mut groups, mut topics, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let heard = workload.groups.iter().zip(workload.first_topics()).filter(|(group, _)| group.heard_by.contains(&(subscriber as u16)));
        let heard: Vec<_> = heard.collect();
        let streams_max = heard.iter().map(|(group, _)| group.topics as usize).sum();
        let config =
            SubscriberConfig { acknowledge_every: 1, acknowledge_after: Duration::from_millis(1), window: WINDOW_PLACES, streams_max };
        let mut machine = Subscriber::new(config);
        for (group, first_topic) in heard {
            groups.push((first_topic, group.name.clone(), keys.len()));
            for n in 0..group.topics {
                keys.push(machine.subscribe(group.loss_tolerance, Beginning::First));
                topics.push((first_topic + n, group.topic_name(n)));
            }
        }
        Ok(Self {
            machine,
            sessions: Sessions::begin(brokers, system, registry, tokens)?,
            name: format!("{system}-{subscriber}"),
            incarnation: Incarnation(utc_at_zero_ns() + monotonic_ns()),
            groups,
            missing: keys.len(),
            topics,
            keys,
            hearing,
            outputs: Vec::new(),
            refusals: Vec::new(),
        })
    }

    /// Whether it hears every topic.
    ///
    /// # Errors
    /// The broker has refused one.
    pub fn is_subscribed(&self) -> anyhow::Result<bool> {
        if let Some(refusal) = self.refusals.first() {
            bail!("{} subscriptions were refused, the first one: {refusal}", self.refusals.len());
        }
        Ok(self.missing == 0)
    }

    /// Takes what a broker says; `taken` gets the payload of each event, and whether it is new.
    ///
    /// # Errors
    /// It does not keep to the protocol.
    pub fn serve(
        &mut self,
        link: usize,
        event: &mio::event::Event,
        piece: &mut [u8],
        taken: &mut dyn FnMut(&[u8], bool),
    ) -> anyhow::Result<()> {
        let Self { machine, sessions, outputs, groups, topics, keys, missing, refusals, .. } = self;
        let (mut hellos, mut replies) = (Vec::new(), Vec::new());
        let heard = |machine: &mut Subscriber, outputs: &mut Vec<Output>, session, key: TopicKey, header: &EventHeader| {
            machine.receive(now(), session, key, header, outputs)
        };
        sessions.read(link, event, piece, &mut |session, news| {
            match news {
                News::Ready => {
                    hellos.push(session);
                    machine.step(now(), Input::Connected(session), outputs);
                }
                News::Ended { .. } => machine.step(now(), Input::Closed(session), outputs),
                News::Event { payload, header } => {
                    let topic = Payload::read(payload).context("an event without a payload of the bench")?.topic;
                    let at = topics.binary_search_by_key(&topic, |(number, _)| *number).ok().context("an event that was not asked for")?;
                    match heard(machine, outputs, session, keys[at], &header) {
                        Received::New(_) | Received::Late(_) => taken(payload, true),
                        Received::Duplicate => taken(payload, false),
                        Received::Old | Received::OldIncarnation | Received::Last | Received::StaleEpoch | Received::TooManyStreams => {}
                    }
                }
                News::Command(ClientFrame::Leader { epoch, is_leader }) => {
                    machine.step(now(), Input::Leader { session, epoch, is_leader }, outputs);
                }
                // Who follows has noted it.
                News::Command(ClientFrame::Subscribed { .. }) if machine.leader() != Some(session) => {}
                News::Command(ClientFrame::Subscribed { .. }) => *missing = missing.saturating_sub(1),
                News::Command(ClientFrame::SubscribeRefused { topic, text, .. }) => refusals.push(format!("{topic}: {text}")),
                News::Command(ClientFrame::Last { epoch, publisher, incarnation, sequence, topic }) => {
                    let (first, _) = topic.rsplit_once('-').unwrap_or((topic, ""));
                    let group = groups.iter().find(|(_, name, _)| name == first).context("the last event of what was not asked for")?;
                    let flags = Flags { last: true, ..Flags::default() };
                    let header = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: 0, epoch };
                    let key = *keys.get(group.2 + topic_number(topic)? as usize).context("the last event of what was not asked for")?;
                    heard(machine, outputs, session, key, &header);
                }
                News::Command(ClientFrame::Lost { .. }) => {}
                News::Command(command) => match clock_reply(&command, machine.epoch(), utc_at_zero_ns() + monotonic_ns()) {
                    Some(reply) => replies.push((session, reply)),
                    None => bail!("a broker told a subscriber {command:?}"),
                },
            }
            Ok(())
        })?;
        for session in hellos {
            self.sessions
                .command(session, &ClientFrame::Hello { epoch: self.machine.epoch(), incarnation: self.incarnation, name: &self.name });
        }
        for (session, reply) in replies {
            self.sessions.command(session, &reply);
        }
        self.carry_out();
        Ok(())
    }

    /// Does what is due by timers of its own.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn look(&mut self, registry: &Registry) -> anyhow::Result<()> {
        self.sessions.begin_again(registry, self.machine.leader().is_some())?;
        self.machine.step(now(), Input::Tick, &mut self.outputs);
        self.carry_out();
        Ok(())
    }

    fn carry_out(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Attach { session } => self.attach(session),
                Output::Acknowledge { session, topic, publisher, incarnation, through } => {
                    let delivered = ClientFrame::Delivered {
                        epoch: self.machine.epoch(),
                        publisher,
                        incarnation,
                        through,
                        topic: &self.topics[topic.index()].1,
                    };
                    self.sessions.command(session, &delivered);
                }
                // What is missing shows in the tally.
                Output::Lost { .. } | Output::Leaderless | Output::StaleEpoch { .. } | Output::TwoLeaders { .. } => {}
            }
        }
        self.outputs = outputs;
        self.sessions.flush();
    }

    fn attach(&mut self, session: Session) {
        for (key, (_, topic)) in self.keys.iter().zip(&self.topics) {
            let watermarks: Vec<Watermark> = self.machine.watermarks(*key).filter(|_| !self.hearing.begins_anew).collect();
            let subscribe = ClientFrame::Subscribe {
                epoch: self.machine.epoch(),
                loss_tolerance: None,
                deadline_ns: None,
                required: self.hearing.is_required,
                wait_ns: if self.hearing.is_required { WAITED_FOR.as_nanos() as u64 } else { 0 },
                topic,
                watermarks: Watermarks::Own(&watermarks),
            };
            self.sessions.command(session, &subscribe);
        }
    }
}

fn now() -> Instant {
    Instant::from_nanos(monotonic_ns())
}
