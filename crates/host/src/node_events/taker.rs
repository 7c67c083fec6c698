//! Takes what other nodes have handed on: from the stream into the shard, which delivers it and writes it into the event log; then it is acknowledged.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_broker::Incarnation;
use bodkin_nats::{intake::Delivery, jetstream::StreamInfo, lane::Identity, protocol::words, servers::Pause};
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
        let thread = Thread::new(stream, (recall, lanes), shard, state, counts)?;
        let woken = Arc::new(Inbox::new(thread.taking.waker()?));
        Ok(Self(LineThread::start("node-log", woken, |stop| thread.run(&stop))?))
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
}

impl Thread {
    fn new(
        stream: &NodeStream,
        (recall, lanes): (Recall, Lanes),
        shard: Arc<Inbox>,
        state: Arc<FleetState>,
        counts: Arc<CrossingCounts>,
    ) -> io::Result<Self> {
        let line = Line::new(format!("bodkin node {} takes", stream.lane.edge), stream.lane.place.clone(), Pause::default())?;
        let back = state.back.clone().expect("who takes has its state");
        let (stream, taking) = (stream.clone(), Taking::new(line, stream.intake(), back, HELD_UP));
        Ok(Self { stream, recall, lanes, taking, shard, state, counts })
    }

    fn run(mut self, stop: &Stop) {
        while !stop.is_told() {
            let Turn { brought, next, is_cut } = self.taking.turn();
            self.counts.losses.fetch_add(u64::from(is_cut), Relaxed);
            let mut taken = Vec::new();
            for brought in brought {
                self.hear(brought, &mut taken);
            }
            if !self.hand_over(taken, stop) {
                // The lanes have what the log does not. It comes again, and is new: the log says how far they have come behind the last note.
                return;
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
            Err(_) => self.taking.does_not_remember(format!("the stream does not say when it was made: {:?}", words(&info.created))),
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
    fn hand_over(&mut self, taken: Vec<(u64, Vec<FromNode>)>, stop: &Stop) -> bool {
        let (mut events, mut messages) = (Vec::new(), Vec::new());
        for (sequence, new) in taken {
            messages.push(sequence);
            events.extend(new);
            if events.len() >= EVENTS_OF_TURN {
                if !self.hand_events(&mut events, stop) {
                    return false;
                }
                self.done(&mut messages);
            }
        }
        if !self.hand_events(&mut events, stop) {
            return false;
        }
        self.done(&mut messages);
        true
    }

    fn done(&mut self, messages: &mut Vec<u64>) {
        messages.drain(..).for_each(|sequence| self.taking.intake().done(sequence));
    }

    fn hand_events(&self, events: &mut Vec<FromNode>, stop: &Stop) -> bool {
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(EVENTS_OF_TURN));
            let part: Arc<[FromNode]> = std::mem::replace(events, rest).into();
            if !self.hand_part(&part, stop) {
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
    fn hand_part(&self, part: &Arc<[FromNode]>, stop: &Stop) -> bool {
        while !stop.is_told() {
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
        let is_whole = state.is_whole();
        counts.is_connected.store(is_whole, Relaxed);
        if is_whole {
            counts.connecting.connected();
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::*};

    use bodkin_nats::{
        intake::{Memory, Told},
        lane::Record,
        protocol::Message as NatsMessage,
    };
    use bodkin_store::event_log::{EventLog, EventLogLimits, Position};

    use super::*;
    use crate::{
        fleet::{BackState, LaneState},
        nats::NatsPlace,
        node_events::NodeStreamTerms,
    };

    /// An event of node b2, the first of its lane.
    fn delivery() -> Delivery {
        let payload = [&4u64.to_be_bytes()[..], br#"{"eventType":"HEAT"}"#].concat();
        let mut batch = Vec::new();
        Record::Event { topic: "HEAT", publisher: 7, incarnation: 5, sequence: 1, created_ns: 9, payload: &payload }.write(&mut batch);
        let message = NatsMessage {
            subject: "bodkin.c0.nodes.00000000000000b2.log".into(),
            subscription: 2,
            reply: None,
            headers: Ok(Identity { epoch: 1, first: 1, last: 1 }.headers()),
            payload: batch,
        };
        Delivery { sequence: 4, message }
    }

    #[test]
    fn what_the_shard_has_not_taken_at_the_end_is_new_at_the_next_start() {
        let place = tempfile::tempdir().unwrap();
        let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
        let (_log, reader) = EventLog::open(&place.path().join("events"), limits, Position(0), 1, Box::new(|_, _| {})).unwrap();
        let terms = NodeStreamTerms { stream: "NODES".to_owned(), create: None };
        let stream = NodeStream::new(NatsPlace::parse("nats://127.0.0.1:1", None).unwrap(), &terms, "c0", "00000000000000a1");
        let back = Arc::new(BackState::new("NODES".to_owned(), "a1".to_owned()));
        let state = FleetState::new("a1".to_owned(), "NODES".to_owned(), vec![LaneState::default()], Some(back));
        let recall = || Recall::open(place.path(), stream.own(), reader.clone(), 9).unwrap();
        let poll = mio::Poll::new().unwrap();
        let shard = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap()));
        let mut thread = Thread::new(&stream, recall(), shard.clone(), Arc::new(state), Arc::default()).unwrap();
        let memory = thread.recall.memory(Incarnation(5));
        thread.taking.intake().remembers(Memory::new(memory.floor().or(Some(3)), []), 0);
        thread.note(true);
        thread.taking.hears(Told::Take(delivery()));
        // A shard that ends answers nobody.
        let has_ended = Arc::new(AtomicBool::new(false));
        let seen = has_ended.clone();
        let ending = std::thread::spawn(move || {
            while !seen.load(Acquire) {
                shard.take(&mut Vec::new());
                std::thread::yield_now();
            }
        });
        thread.run(&Stop::default());
        has_ended.store(true, Release);
        ending.join().unwrap();
        let (_, mut lanes) = recall();
        assert_eq!(lanes, Lanes::default(), "the log does not have it");
        let delivery = delivery();
        let identity = Identity::read(delivery.message.headers.as_ref().unwrap()).unwrap();
        assert_eq!(lanes.take(0xb2, identity, &delivery.message.payload).unwrap().len(), 1, "it comes again, and is taken");
    }
}
