//! The way back: events of the fleet for this edge, from a durable consumer into the shard (`docs/formats/fleet.md`, decision 150).
//!
//! ```text
//! JetStream ══> nats::Line ── nats::intake, each once and in order ──> reading: which event it is ──> shard ── on the disk, of a pair on both ──> +ACK
//! ```
//!
//! Which messages were taken says the event log: each event has the stream's number as its own. So one that comes again behind a restart, or at the other node of a pair, is known, and acknowledged.

mod hands;
mod reading;
mod state;
mod taken_log;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::{Incarnation, Sequence};
use bodkin_nats::{
    client::{Fault, Options},
    intake::{Delivery, Intake, Told},
    jetstream::StreamInfo,
    servers::Pause,
};
use bodkin_store::event_log::EventLogReader;

pub use self::state::{BackState, BackView};
use self::{
    hands::Hands,
    reading::{Read, Reader, telling_lost},
    taken_log::TakenLog,
};
use super::config::FleetConfig;
use crate::{
    inbox::Inbox,
    nats::{Line, Speaker, inbox},
    seldom::SeldomOf,
    trace::now_ns,
};

/// How often is noted on disk how far it has come.
const NOTE_PERIOD: Duration = Duration::from_secs(5);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long a cloud that stops waits for the thread, which may be in the middle of connecting.
const END_MAX: Duration = Duration::from_secs(2);

/// An event of the fleet, as it is published here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetEvent {
    /// Which stream it was in: when that was made, in nanoseconds since 1970.
    pub incarnation: Incarnation,
    /// Where it was there.
    pub sequence: Sequence,
    /// As whose it is published.
    pub source: SystemId,
    /// Its JSON.
    pub event: Arc<str>,
    /// Its metadata, a JSON object.
    pub metadata: Arc<str>,
}

/// Events of the fleet on their way to the shard.
#[derive(Debug)]
pub struct FromFleet {
    /// In their order.
    pub events: Vec<FleetEvent>,
    /// Where it is told what became of them.
    pub told: Arc<Inbox<FleetTold>>,
}

/// What became of an event of the fleet, by its stream and sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetTold {
    /// All that were handed over were looked at.
    HandedOver,
    /// It is on the disk, of a pair on both, or was before.
    Covered((Incarnation, Sequence)),
    /// It will never be taken, and why.
    Refused((Incarnation, Sequence), String),
    /// It may be taken in so long, and why not now; without a reason the period of its topic is it, and nothing is wrong.
    Later((Incarnation, Sequence), Option<String>, Duration),
}

/// The thread that takes.
#[derive(Debug)]
pub struct WayBack {
    stops: Arc<AtomicBool>,
    told: Arc<Inbox<FleetTold>>,
    /// Closed when it has ended.
    ended: mpsc::Receiver<()>,
}

impl WayBack {
    /// Begins to take events, which are published as `source`'s.
    ///
    /// # Errors
    /// What was noted cannot be read, or no thread be made.
    pub fn start(
        config: Arc<FleetConfig>,
        data: &Path,
        log: EventLogReader,
        (shard, source): (Arc<Inbox>, SystemId),
        state: Arc<BackState>,
    ) -> io::Result<Self> {
        let setup = config.intake().expect("only who takes anything starts it");
        let intake = Intake::new(setup).expect("the configuration was checked");
        let line = Line::new(format!("bodkin {} takes", config.edge), config.place.clone(), Pause::default())?;
        let told = Arc::new(Inbox::new(line.waker()?));
        let stops = Arc::new(AtomicBool::new(false));
        let thread = Thread {
            reader: Reader::new(&config, source),
            taken_log: TakenLog::open(data, log, source)?,
            hands: Hands::new(shard, told.clone()),
            taking: Taking::new(intake),
            line,
            state,
            stops: stops.clone(),
            edge: config.edge.clone(),
            lost: 0,
            noted: Instant::now(),
            seldom: SeldomOf::default(),
        };
        let (ending, ended) = mpsc::channel::<()>();
        std::thread::Builder::new().name("fleet-back".into()).spawn(move || {
            thread.run();
            drop(ending);
        })?;
        Ok(Self { stops, told, ended })
    }

    /// Takes nothing more; what was taken and not acknowledged comes again, and is known. Waits for the thread, so it is not for one that serves others.
    pub fn stop(self) {
        self.stops.store(true, Release);
        self.told.wake();
        if self.ended.recv_timeout(END_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the thread that takes from the fleet is still connecting, and is left");
        }
    }
}

/// What is said over the line: an intake, and what it has told.
pub(crate) struct Taking {
    pub(crate) intake: Intake,
    pub(crate) told: Vec<Told>,
    is_leaving: bool,
}

impl Taking {
    /// Without a connection.
    pub fn new(intake: Intake) -> Self {
        Self { intake, told: Vec::new(), is_leaving: false }
    }
}

impl Speaker for Taking {
    fn connected(&mut self, options: Options, now: Duration) {
        self.is_leaving = false;
        self.intake.connected(options, inbox(), now);
    }

    fn disconnected(&mut self) {
        self.intake.disconnected();
    }

    fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Fault> {
        self.intake.receive(bytes, now, &mut self.told)
    }

    fn step(&mut self, now: Duration, _has_room: bool) -> Result<Duration, Fault> {
        self.intake.step(now, &mut self.told)
    }

    fn take_out(&mut self, out: &mut Vec<u8>) {
        self.intake.take_out(out);
    }

    fn leaves(&mut self) -> bool {
        self.is_leaving |= self.told.contains(&Told::Leaving);
        self.is_leaving
    }
}

struct Thread {
    reader: Reader,
    taken_log: TakenLog,
    hands: Hands,
    taking: Taking,
    line: Line,
    state: Arc<BackState>,
    stops: Arc<AtomicBool>,
    edge: String,
    /// Messages of this stream that it had let go of before they came, at the most.
    lost: u64,
    noted: Instant,
    seldom: SeldomOf,
}

impl Thread {
    fn run(mut self) {
        while !self.stops.load(Acquire) {
            self.hear_shard();
            let turned = self.line.turn(&mut self.taking);
            let is_told = !self.taking.told.is_empty();
            for told in std::mem::take(&mut self.taking.told) {
                self.tell(told);
            }
            self.hands.hand_over();
            self.tell_numbers();
            let next = match turned {
                // What was told may have something due.
                Ok(_) if is_told => Duration::ZERO,
                Ok(next) => next,
                Err(end) => {
                    self.state.reaches(None);
                    let told = end.to_string();
                    self.warn(&told, &told);
                    self.state.fails(told);
                    Duration::ZERO
                }
            };
            self.note(false);
            let next = self.hands.patience().map_or(next, |retry| next.min(retry)).min(WAIT_MAX);
            if let Err(error) = self.line.wait(next) {
                self.warn("poll", &format!("the thread cannot wait for its connection: {error}"));
                std::thread::sleep(WAIT_MAX);
            }
        }
        self.note(true);
    }

    /// What the shard says of events that it was handed.
    fn hear_shard(&mut self) {
        for told in self.hands.heard() {
            match told {
                hands::End::Done(sequence) => {
                    self.state.taken.fetch_add(1, Relaxed);
                    self.taking.intake.done(sequence);
                }
                hands::End::Refused(sequence, why) => self.refuse(sequence, &why),
                hands::End::Later(why) => self.warn("later", &format!("an event is not taken yet: {why}")),
            }
        }
    }

    fn tell_numbers(&self) {
        let intake = &self.taking.intake;
        self.state.under_way.store(intake.taken() as u64, Relaxed);
        self.state.oldest_ms.store(self.hands.oldest_ms().unwrap_or_default(), Relaxed);
        self.state.waiting.store(intake.waiting(), Relaxed);
    }

    /// A message that can never be published here is not to come again.
    fn refuse(&mut self, sequence: u64, why: &str) {
        self.state.refused(sequence, why);
        if let Some(times) = self.seldom.due("refused") {
            tracing::error!(edge = self.edge, sequence, times, "a message of the fleet is not taken, and does not come again: {why}");
        }
        self.taking.intake.refused(sequence);
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Open(server) => self.state.reaches(Some(server)),
            Told::Stream(info) => self.remember(&info),
            Told::Ready(waiting) => {
                self.line.reached();
                self.state.is_ready();
                // Who is killed now begins here again, not with a later present.
                self.note(true);
                tracing::info!(edge = self.edge, waiting, "events of the fleet come here");
            }
            Told::None(why) => {
                let told = why.to_string();
                self.warn(&told, &told);
                self.state.fails(told);
            }
            Told::Take(delivery) => self.take(delivery),
            Told::Lost(messages) => {
                self.lost += messages;
                self.state.lost.fetch_add(messages, Relaxed);
                tracing::error!(
                    edge = self.edge,
                    messages,
                    "the fleet's stream has let go of messages that this edge has not had: so many at the most"
                );
            }
            Told::Repeated => {
                self.state.repeated.fetch_add(1, Relaxed);
            }
            Told::Refused(words) => {
                self.warn(&words, &words);
                self.state.refuses(format!("the server refuses: {words}"));
            }
            Told::Leaving => {}
        }
    }

    /// Which messages of this stream were taken, by the event log.
    fn remember(&mut self, info: &StreamInfo) {
        let made = UtcTime::parse(&info.created).map(UtcTime::unix_nanos);
        let Ok(incarnation) = made else {
            return self.state.fails(format!("the stream does not say when it was made: {:?}", info.created));
        };
        self.hands.forget();
        match self.taken_log.memory(Incarnation(incarnation)) {
            Ok((memory, (lost, seen))) => {
                self.lost = lost;
                // Those that were counted by a run before this one, or by the node that led.
                self.state.lost.fetch_max(lost, Relaxed);
                self.taking.intake.remembers(memory, seen);
            }
            // It is told again with the next connection.
            Err(error) => {
                let told = format!("the event log cannot be read: {error}");
                self.warn("log", &told);
                self.state.fails(told);
            }
        }
    }

    fn take(&mut self, Delivery { sequence, message }: Delivery) {
        self.state.heard_ms.store(now_ns() / 1_000_000, Relaxed);
        let incarnation = self.taken_log.incarnation();
        match self.reader.read(incarnation, sequence, &message) {
            Read::Event(mut event) => {
                if self.lost > 0 {
                    event.metadata = telling_lost(&event.metadata, self.lost);
                }
                self.hands.take(*event, self.taken_log.end());
            }
            Read::NotOurs => {
                self.state.passed.fetch_add(1, Relaxed);
                self.taking.intake.done(sequence);
            }
            Read::Wrong(why) => self.refuse(sequence, &why),
        }
    }

    fn warn(&self, thing: &str, told: &str) {
        if let Some(times) = self.seldom.due(thing) {
            tracing::warn!(edge = self.edge, times, "events of the fleet do not come here, and wait in its stream: {told}");
        }
    }

    /// Notes on disk how far it has come.
    fn note(&mut self, is_end: bool) {
        if !is_end && self.noted.elapsed() < NOTE_PERIOD {
            return;
        }
        self.noted = Instant::now();
        let Some(memory) = self.taking.intake.memory() else { return };
        let Some(floor) = memory.floor() else { return };
        self.state.position.store(floor, Relaxed);
        if let Err(error) = self.taken_log.note(memory, (self.lost, self.taking.intake.seen_through()), self.hands.oldest()) {
            self.warn("note", &format!("how far they have come cannot be noted: {error}"));
        }
    }
}
