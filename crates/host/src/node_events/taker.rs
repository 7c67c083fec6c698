//! Takes what other nodes have handed on: from the stream into the shard, which delivers it and writes it into the event log; then it is acknowledged.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_broker::Incarnation;
use bodkin_nats::{
    intake::{Delivery, Intake, Memory, Told},
    jetstream::StreamInfo,
    lane::Identity,
    servers::Pause,
};
use tokio::sync::oneshot;

use super::{CrossingCounts, FromNode, NodeStream, lanes::Lanes, recall::Recall};
use crate::{
    fleet::{BackState, FleetState, Taking},
    inbox::{Inbox, Message},
    nats::Line,
    seldom::SeldomOf,
    trace::now_ns,
};

/// Events that the shard is given at a time, so that its turns are short beside a backlog.
const EVENTS_OF_TURN: usize = 256;
/// How long is waited before a shard that could not take them is asked again.
const REST: Duration = Duration::from_millis(200);
/// How often is noted on disk how far they have come.
const NOTE_PERIOD: Duration = Duration::from_secs(5);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long a node that stops waits for the thread, which may be in the middle of connecting.
const END_MAX: Duration = Duration::from_secs(2);

/// The thread that takes.
#[derive(Debug)]
pub(super) struct Taker {
    stops: Arc<AtomicBool>,
    waker: mio::Waker,
    /// Closed when it has ended.
    ended: mpsc::Receiver<()>,
}

impl Taker {
    /// Begins to take.
    pub fn start(
        stream: &NodeStream,
        (recall, lanes): (Recall, Lanes),
        shard: Arc<Inbox>,
        state: Arc<FleetState>,
        counts: Arc<CrossingCounts>,
    ) -> std::io::Result<Self> {
        let intake = Intake::new(stream.intake()).expect("its names are tokens");
        let line = Line::new(format!("bodkin node {} takes", stream.lane.edge), stream.lane.place.clone(), Pause::default())?;
        let (waker, stops) = (line.waker()?, Arc::new(AtomicBool::new(false)));
        let thread = Thread {
            stream: stream.clone(),
            recall,
            lanes,
            taking: Taking::new(intake),
            line,
            shard,
            state,
            counts,
            stops: stops.clone(),
            noted: Instant::now(),
            seldom: SeldomOf::default(),
        };
        let (ending, ended) = mpsc::channel::<()>();
        std::thread::Builder::new().name("node-log".into()).spawn(move || {
            thread.run();
            drop(ending);
        })?;
        Ok(Self { stops, waker, ended })
    }

    /// Takes nothing more; what was not acknowledged comes again, and is known. Waits for the thread, so it is not for one that serves others.
    pub fn stop(self) {
        self.stops.store(true, Release);
        // One that is not woken looks a second later.
        let _ = self.waker.wake();
        if self.ended.recv_timeout(END_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the thread that takes events of other nodes is still connecting, and is left");
        }
    }
}

struct Thread {
    stream: NodeStream,
    recall: Recall,
    lanes: Lanes,
    taking: Taking,
    line: Line,
    shard: Arc<Inbox>,
    state: Arc<FleetState>,
    counts: Arc<CrossingCounts>,
    stops: Arc<AtomicBool>,
    noted: Instant,
    seldom: SeldomOf,
}

impl Thread {
    fn run(mut self) {
        while !self.stops.load(Acquire) {
            let turned = self.line.turn(&mut self.taking);
            let told = std::mem::take(&mut self.taking.told);
            let is_told = !told.is_empty();
            let mut taken = Vec::new();
            for told in told {
                self.tell(told, &mut taken);
            }
            if !self.hand_over(taken) {
                break;
            }
            let next = match turned {
                // What was told may have something due.
                Ok(_) if is_told => Duration::ZERO,
                Ok(next) => next,
                Err(end) => {
                    self.counts.losses.fetch_add(1, Relaxed);
                    self.fails(end.to_string());
                    Duration::ZERO
                }
            };
            self.tell_numbers();
            self.note(false);
            if let Err(error) = self.line.wait(next.min(WAIT_MAX)) {
                self.warn("poll", &format!("the thread cannot wait for its connection: {error}"));
                std::thread::sleep(WAIT_MAX);
            }
        }
        self.note(true);
    }

    fn back(&self) -> &BackState {
        self.state.back.as_ref().expect("who takes has its state")
    }

    fn fails(&self, why: String) {
        self.warn(&why, &why);
        self.back().reaches(None);
        self.back().fails(why);
    }

    fn warn(&self, thing: &str, told: &str) {
        if let Some(times) = self.seldom.due(thing) {
            tracing::warn!(times, "events of other nodes do not come here, and wait in stream {}: {told}", self.stream.lane.stream);
        }
    }

    fn tell(&mut self, told: Told, taken: &mut Vec<(u64, Vec<FromNode>)>) {
        match told {
            Told::Open(server) => self.back().reaches(Some(server)),
            Told::Stream(info) => self.remember(&info),
            Told::Ready(waiting) => {
                self.line.reached();
                self.back().is_ready();
                // Who is killed now begins here again, not with a later present.
                self.note(true);
                tracing::info!(stream = self.stream.lane.stream, waiting, "events of other nodes come here");
            }
            Told::None(why) => {
                let why = why.to_string();
                self.warn(&why, &why);
                self.back().fails(why);
            }
            Told::Take(delivery) => {
                self.back().heard_ms.store(now_ns() / 1_000_000, Relaxed);
                taken.push((delivery.sequence, self.take(&delivery)));
            }
            Told::Lost(messages) => {
                self.back().lost.fetch_add(messages, Relaxed);
                tracing::warn!(
                    messages,
                    "stream {} has let go of messages that this node has not had: so many at the most; which events are missing is told by the next ones",
                    self.stream.lane.stream
                );
            }
            Told::Repeated => {
                self.back().repeated.fetch_add(1, Relaxed);
            }
            Told::Refused(words) => {
                self.warn(&words, &words);
                self.back().refuses(format!("the server refuses: {words}"));
            }
            Told::Leaving => {}
        }
    }

    /// What was taken of this stream.
    fn remember(&mut self, info: &StreamInfo) {
        match UtcTime::parse(&info.created).map(UtcTime::unix_nanos) {
            Ok(made) => {
                let memory = self.recall.memory(Incarnation(made));
                // Losses are told by the lanes of nodes, exactly.
                self.taking.intake.remembers(memory, 0);
            }
            Err(_) => self.back().fails(format!("the stream does not say when it was made: {:?}", info.created)),
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
            self.counts.refused.fetch_add(1, Relaxed);
            self.back().refused(delivery.sequence, &why);
            if let Some(times) = self.seldom.due("refused") {
                let sequence = delivery.sequence;
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
        messages.drain(..).for_each(|sequence| self.taking.intake.done(sequence));
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
                        self.back().taken.fetch_add(1, Relaxed);
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
        while !self.stops.load(Acquire) {
            let (done, written) = oneshot::channel();
            self.shard.post(Message::FromNodes { events: part.clone(), done });
            match written.blocking_recv() {
                Ok(Ok(())) => return true,
                Ok(Err(why)) => self.warn("later", &why),
                // The shard has ended.
                Err(_) => return false,
            }
            std::thread::sleep(REST);
        }
        false
    }

    fn tell_numbers(&self) {
        let (state, counts) = (&self.state, &self.counts);
        self.back().waiting.store(self.taking.intake.waiting(), Relaxed);
        let lane = &state.lanes[0];
        counts.is_connected.store(state.is_whole(), Relaxed);
        counts.sent.store(lane.stored.load(Relaxed), Relaxed);
        counts.unsent.store(lane.lost.load(Relaxed), Relaxed);
        counts.waiting_events.store(usize::try_from(lane.waiting.load(Relaxed)).unwrap_or(usize::MAX), Relaxed);
    }

    /// Notes on disk how far they have come.
    fn note(&mut self, is_end: bool) {
        if !is_end && self.noted.elapsed() < NOTE_PERIOD {
            return;
        }
        self.noted = Instant::now();
        let Some(floor) = self.taking.intake.memory().and_then(Memory::floor) else { return };
        self.back().position.store(floor, Relaxed);
        if let Err(error) = self.recall.note(floor, &self.lanes) {
            self.warn("note", &format!("how far they have come cannot be noted: {error}"));
        }
    }
}
