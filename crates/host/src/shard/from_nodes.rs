//! Events of the other nodes that serve this cloud: they go to who listens here live, and, if a stream has brought them, into the event log.

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use bodkin_arrowhead::{error::ArrowheadError, publication};
use bodkin_broker::{EventId, Incarnation, OfferedEvent, Output, PublisherId, Sequence, TopicId, Wanted};
use bodkin_store::event_log::{EventLog, Origin, Position};
use tokio::sync::oneshot;

use super::{Receiver, Shard, connection::Phase, not_taken::NotTaken};
use crate::{
    listening::Listening,
    node_events::{Crossing, FromNode, NodeEvent, NodeLoss},
    replay,
    resume_token::{LogPlace, ResumeToken, UnkeptEvents},
    seldom::Seldom,
};

/// Of a record that is no event.
const NO_EVENT: EventId = EventId { publisher: PublisherId(0), incarnation: Incarnation(0), topic: TopicId(0), sequence: Sequence(0) };

/// What a shard has to do with the other nodes.
pub(super) struct OtherNodes {
    /// Whether this turn has put events into the log that go to them.
    pub is_to_cross: bool,
    /// How far this node has received events, where nodes send each other events and this one keeps a log.
    pub token: Option<ResumeToken>,
    /// Events of theirs that are in no log here.
    pub unkept: UnkeptEvents,
    /// Events of theirs that are not taken.
    refusals: Seldom,
    /// Told when events of theirs are written into the log.
    pub unwritten: Vec<oneshot::Sender<Result<(), String>>>,
}

impl OtherNodes {
    /// With what had come of them at the start.
    pub fn begin(crossing: Option<&Crossing>) -> Self {
        let token = crossing.and_then(|crossing| crossing.token.clone());
        Self { is_to_cross: false, token, unkept: UnkeptEvents::default(), refusals: Seldom::default(), unwritten: Vec::new() }
    }

    /// Returns how many events of other nodes are in no log here and may be among those that a listener lacks.
    pub fn lacks(&self, listening: &Listening) -> u64 {
        self.unkept.events_after(listening.event_type.as_str(), listening.resume.as_ref())
    }

    /// Returns the token of the current event for a listener that received more at another node than this node says.
    pub fn token_for(&self, listening: &Listening) -> Option<ResumeToken> {
        let (brought, own) = listening.resume.as_ref().zip(self.token.as_ref())?;
        (!brought.is_within(own)).then(|| brought.joined(own))
    }
}

impl Shard {
    /// Delivers events of other nodes. Who is pushed to is served by the node that has accepted them. Those of a stream are taken only while the event log is written.
    pub(super) fn take_from_nodes(&mut self, events: &[FromNode], done: oneshot::Sender<Result<(), String>>) {
        let is_kept = events.iter().any(|event| match event {
            FromNode::Event(event) => event.origin.is_some(),
            FromNode::Lost(_) => true,
        });
        if is_kept && self.log.as_ref().is_none_or(EventLog::is_suspended) {
            // Who has gone asks for no answer.
            let _ = done.send(Err("the event log is suspended".to_owned()));
            return;
        }
        if is_kept && !self.leads() {
            let _ = done.send(Err("this node does not lead".to_owned()));
            return;
        }
        for event in events {
            let taken = match event {
                FromNode::Event(event) => self.take_from_node(event),
                FromNode::Lost(loss) => {
                    self.lose_from_node(loss);
                    Ok(())
                }
            };
            if let Err(refusal) = taken {
                self.refuse_from_node(&refusal);
            }
        }
        if is_kept {
            // It is told when they are written, at the end of the turn.
            self.nodes.unwritten.push(done);
        } else {
            let _ = done.send(Ok(()));
        }
    }

    /// Counts and tells an event that is not taken. It does not come again: as it is, it never could be.
    fn refuse_from_node(&self, refusal: &NotTaken) {
        if let Some(crossing) = &self.context.crossing {
            crossing.counts.refused.fetch_add(1, Relaxed);
        }
        if let Some(times) = self.nodes.refusals.due() {
            tracing::warn!(why = refusal.told(), times, "events of other nodes are not taken: nobody here hears them");
        }
    }

    fn take_from_node(&mut self, event: &NodeEvent) -> Result<(), NotTaken> {
        let permit = self.leader_permit()?;
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let publication = publication::of_node(&event.event, event.source, event.time, &mut self.scratch).map_err(NotTaken::Rules)?;
        if self.is_new_to_links(&self.scratch.event_type) {
            let topic = self.scratch.event_type.clone();
            self.open_to_links(&topic);
        }
        if let (None, Some((node, position))) = (event.origin, event.place) {
            let place = LogPlace::behind(position, event.time.unix_nanos());
            self.nodes.unkept.note(&self.scratch.event_type, node, place);
            if let Some(token) = &mut self.nodes.token {
                token.reach(node, place);
            }
        }
        // Topics are numbered by each node.
        let topic = match event.origin {
            Some(_) => self.broker.topic_of_event(&self.scratch.event_type)?,
            // A topic that is not there has no listener.
            None => match self.broker.topic_id(&self.scratch.event_type) {
                Some(topic) => topic,
                None => return Ok(()),
            },
        };
        if self.broker.terms_of(topic).is_some() {
            let event_type = &self.scratch.event_type;
            return Err(NotTaken::Rules(ArrowheadError::invalid_parameter(format!(
                "{event_type} is a real-time topic at this node and best effort at the node of the event: declare it alike at all nodes."
            ))));
        }
        if event.missing > 0 {
            self.tell_missing(topic, event.missing, event.place.map(|(node, position)| (node, position, event.time.unix_nanos())));
        }
        let publisher = PublisherId(event.source.0.unsigned_abs());
        let id = EventId { publisher, incarnation: event.incarnation, topic, sequence: event.sequence };
        self.frames.clear();
        match (event.origin, event.place) {
            (Some(origin), _) => self.set_token(Some((origin, event.time.unix_nanos()))),
            (None, _) => self.nodes.token.iter().for_each(|token| self.frames.set_token(token)),
        }
        let is_received = |listening: &Listening| {
            event.place.is_some_and(|(node, position)| has_received(listening, (node, position, event.time.unix_nanos())))
        };
        let (frames, filter_text, endpoint) = (&mut self.frames, &mut self.filter_text, &mut self.endpoint);
        let mut offer = |receiver: &Receiver, offered: OfferedEvent| match receiver {
            Receiver::Push { .. } | Receiver::Graph => Wanted::No,
            // It was at another node before, which had this one sooner.
            Receiver::Stream { listening, .. } if is_received(listening) => Wanted::No,
            _ => receiver.frame_bytes(frames, endpoint, offered.id, &snapshot, &publication, filter_text),
        };
        let lost_before = self.broker.lost_events();
        self.broker.publish_named(self.clock.broker(), permit, id, &mut offer, &mut self.outputs)?;
        self.context.counts.lost.fetch_add(self.broker.lost_events() - lost_before + self.endpoint.take_lost(), Relaxed);
        if let Some(origin) = event.origin {
            let topic = self.scratch.event_type.as_str();
            keep(self.log.as_mut(), origin, (event.time.unix_nanos(), id), topic, &event.event, self.clock.now);
        }
        self.carry_out(None);
        Ok(())
    }

    /// Tells live listeners of a loss, and notes it in the event log, for those who come back.
    fn lose_from_node(&mut self, NodeLoss { event_type, events, origin }: &NodeLoss) {
        // With the time of the event before the loss, a listener's token tells whether the loss was reported to it at another node.
        let before_ns = self.nodes.token.as_ref().and_then(|token| token.time_ns_of(origin.node));
        let time_ns = before_ns.unwrap_or_else(|| self.clock.utc.unix_nanos());
        keep(self.log.as_mut(), *origin, (time_ns, NO_EVENT), event_type, &events.to_string(), self.clock.now);
        if !event_type.is_empty() {
            if let Some(topic) = self.broker.topic_id(event_type) {
                self.tell_missing(topic, *events, Some((origin.node, origin.position, time_ns)));
            }
            return;
        }
        // Whose they were, nobody knows.
        let place = (origin.node, origin.position, time_ns);
        let is_untold = |phase| match phase {
            Phase::Stream { subscription } => match self.broker.receiver(subscription) {
                Some(Receiver::Stream { listening, .. }) => !has_received(listening, place),
                _ => true,
            },
            _ => false,
        };
        let connections = self.connections.iter();
        let untold: Vec<usize> = connections.filter(|(_, connection)| is_untold(connection.phase)).map(|(slot, _)| slot).collect();
        for slot in untold {
            self.connections[slot].out().extend_from_slice(replay::LOST);
            self.dirty.push(slot);
        }
    }

    /// Tells live listeners of a topic that so many of its events will never be there, except those that were told at another node: they have received what that
    /// node accepted at `place`, a node, its position and a time.
    fn tell_missing(&mut self, topic: TopicId, events: u64, place: Option<(u64, Position, u64)>) {
        self.broker.tell_lost(topic, events, &mut self.outputs);
        let broker = &self.broker;
        let was_told = |listening: &Listening| place.is_some_and(|place| has_received(listening, place));
        self.outputs.retain(|output| match output {
            Output::TellLoss { subscription, .. } => match broker.receiver(*subscription) {
                Some(Receiver::Push { .. }) => false,
                Some(Receiver::Stream { listening, .. }) => !was_told(listening),
                _ => true,
            },
            _ => true,
        });
        self.carry_out_now();
    }
}

/// Returns true if a listener received, at another node, what `node` accepted at this position and time.
fn has_received(listening: &Listening, (node, position, time_ns): (u64, Position, u64)) -> bool {
    listening.resume.as_ref().is_some_and(|brought| brought.covers(node, position, time_ns))
}

/// Puts a record of another node into the log, which is there: it was looked at before.
fn keep(log: Option<&mut EventLog>, origin: Origin, (time_ns, id): (u64, EventId), topic: &str, event: &str, now: Instant) {
    let log = log.expect("what comes by a stream is taken where there is a log");
    log.append_from(Some(origin), time_ns, id, topic, event, now);
}
