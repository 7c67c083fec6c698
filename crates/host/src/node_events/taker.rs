//! Takes what other nodes have handed on: from the stream into the shard, which delivers it and writes it into the event log; then it is acknowledged.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_broker::Incarnation;
use bodkin_nats::{intake::Delivery, jetstream::StreamInfo, lane::Identity, servers::Pause};
use tokio::sync::oneshot;

use super::{CrossingCounts, FromNode, NodeStream, lanes::Lanes, recall::Recall};
use crate::{
    fleet::{Brought, FleetState, Taking, Turn},
    inbox::{Inbox, Message},
    nats::{Line, LineThread, Stop},
};

/// Events that the shard is given at a time, so that its turns are short beside a backlog.
const EVENTS_OF_TURN: usize = 256;
/// How long is waited before a shard that could not take them is asked again.
const REST: Duration = Duration::from_millis(200);
/// What the log is told where nothing comes.
const HELD_UP: &str = "events of other nodes do not come here, and wait in the stream";

/// The thread that takes.
#[derive(Debug)]
pub(super) struct Taker(LineThread<()>);

impl Taker {
    /// Begins to take.
    ///
    /// # Errors
    /// The system has no thread or no poll for it.
    pub fn start(
        stream: &NodeStream,
        (recall, lanes): (Recall, Lanes),
        shard: Arc<Inbox>,
        state: Arc<FleetState>,
        counts: Arc<CrossingCounts>,
    ) -> io::Result<Self> {
        let line = Line::new(format!("bodkin node {} takes", stream.lane.edge), stream.lane.place.clone(), Pause::default())?;
        let woken = Arc::new(Inbox::new(line.waker()?));
        let back = state.back.clone().expect("who takes has its state");
        let (stream, taking) = (stream.clone(), Taking::new(line, stream.intake(), back, HELD_UP));
        let run = move |stop| Thread { stream, recall, lanes, taking, shard, state, counts, stop }.run();
        Ok(Self(LineThread::start("node-log", woken, run)?))
    }

    /// Takes nothing more; what was not acknowledged comes again, and is known. Waits for the thread, so it is not for one that serves others.
    pub fn stop(self) {
        self.0.stop();
    }
}

struct Thread {
    stream: NodeStream,
    recall: Recall,
    lanes: Lanes,
    taking: Taking,
    shard: Arc<Inbox>,
    state: Arc<FleetState>,
    counts: Arc<CrossingCounts>,
    stop: Stop,
}

impl Thread {
    fn run(mut self) {
        while !self.stop.is_told() {
            let Turn { brought, next, is_cut } = self.taking.turn();
            self.counts.losses.fetch_add(u64::from(is_cut), Relaxed);
            let mut taken = Vec::new();
            for brought in brought {
                self.hear(brought, &mut taken);
            }
            if !self.hand_over(taken) {
                break;
            }
            self.tell_numbers();
            self.note(false);
            self.taking.wait(next);
        }
        self.note(true);
    }

    fn hear(&mut self, brought: Brought, taken: &mut Vec<(u64, Vec<FromNode>)>) {
        match brought {
            Brought::Stream(info) => self.remember(&info),
            Brought::Ready(waiting) => {
                // Who is killed now begins here again, not with a later present.
                self.note(true);
                tracing::info!(stream = self.stream.lane.stream, waiting, "events of other nodes come here");
            }
            Brought::Message(delivery) => taken.push((delivery.sequence, self.take(&delivery))),
            Brought::Lost(messages) => tracing::warn!(
                messages,
                "stream {} has let go of messages that this node has not had: so many at the most; which events are missing is told by the next ones",
                self.stream.lane.stream
            ),
        }
    }

    /// What was taken of this stream.
    fn remember(&mut self, info: &StreamInfo) {
        match UtcTime::parse(&info.created).map(UtcTime::unix_nanos) {
            Ok(made) => {
                let memory = self.recall.memory(Incarnation(made));
                // Losses are told by the lanes of nodes, exactly.
                self.taking.intake().remembers(memory, 0);
            }
            Err(_) => self.taking.state.fails(format!("the stream does not say when it was made: {:?}", info.created)),
        }
    }

    /// What of a message is new here; nothing of the own ones.
    fn take(&mut self, delivery: &Delivery) -> Vec<FromNode> {
        let message = &delivery.message;
        let node = self.stream.node_of(&message.subject);
        if node == Some(self.stream.own()) {
            self.lanes.own(self.stream.own(), &message.payload);
            return Vec::new();
        }
        let identity = message
            .headers
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|headers| Identity::read(headers).map_err(|error| error.to_string()));
        let taken = match (node, identity) {
            (Some(node), Ok(identity)) => self.lanes.take(node, identity, &message.payload).map_err(|error| error.to_string()),
            (None, _) => Err(format!("its subject is {}", message.subject)),
            (_, Err(error)) => Err(error),
        };
        taken.unwrap_or_else(|why| {
            let sequence = delivery.sequence;
            self.counts.refused.fetch_add(1, Relaxed);
            if let Some(times) = self.taking.refused(sequence, &why) {
                tracing::error!(sequence, times, "a message between nodes is none of theirs, and is passed over: {why}");
            }
            Vec::new()
        })
    }

    /// Has the shard deliver and write them, then acknowledges; false: the node ends.
    fn hand_over(&mut self, taken: Vec<(u64, Vec<FromNode>)>) -> bool {
        let (mut events, mut messages) = (Vec::new(), Vec::new());
        for (sequence, new) in taken {
            messages.push(sequence);
            events.extend(new);
            if events.len() >= EVENTS_OF_TURN {
                if !self.hand_events(&mut events) {
                    return false;
                }
                self.done(&mut messages);
            }
        }
        if !self.hand_events(&mut events) {
            return false;
        }
        self.done(&mut messages);
        true
    }

    fn done(&mut self, messages: &mut Vec<u64>) {
        messages.drain(..).for_each(|sequence| self.taking.intake().done(sequence));
    }

    fn hand_events(&self, events: &mut Vec<FromNode>) -> bool {
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(EVENTS_OF_TURN));
            let part: Arc<[FromNode]> = std::mem::replace(events, rest).into();
            if !self.hand_part(&part) {
                return false;
            }
            for event in part.iter() {
                match event {
                    FromNode::Event(_) => {
                        self.taking.state.taken.fetch_add(1, Relaxed);
                        self.counts.heard.fetch_add(1, Relaxed)
                    }
                    FromNode::Lost(loss) => {
                        tracing::warn!(
                            node = format!("{:016x}", loss.origin.node),
                            event_type = &*loss.event_type,
                            events = loss.events,
                            "events of another node are missing: stream {} or that node's event log has not kept them",
                            self.stream.lane.stream
                        );
                        self.counts.missing.fetch_add(loss.events, Relaxed)
                    }
                };
            }
        }
        true
    }

    /// As long as the shard cannot take them, what comes waits in the stream.
    fn hand_part(&self, part: &Arc<[FromNode]>) -> bool {
        while !self.stop.is_told() {
            let (done, written) = oneshot::channel();
            self.shard.post(Message::FromNodes { events: part.clone(), done });
            match written.blocking_recv() {
                Ok(Ok(())) => return true,
                Ok(Err(why)) => self.taking.warn("later", &why),
                // The shard has ended.
                Err(_) => return false,
            }
            std::thread::sleep(REST);
        }
        false
    }

    fn tell_numbers(&self) {
        let (state, counts) = (&self.state, &self.counts);
        let lane = &state.lanes[0];
        counts.is_connected.store(state.is_whole(), Relaxed);
        counts.sent.store(lane.stored.load(Relaxed), Relaxed);
        counts.unsent.store(lane.lost.load(Relaxed), Relaxed);
        counts.waiting_events.store(usize::try_from(lane.waiting.load(Relaxed)).unwrap_or(usize::MAX), Relaxed);
    }

    /// Notes on disk how far they have come.
    fn note(&mut self, at_once: bool) {
        let (recall, lanes) = (&mut self.recall, &self.lanes);
        self.taking.note(at_once, |_, floor| recall.note(floor, lanes));
    }
}
