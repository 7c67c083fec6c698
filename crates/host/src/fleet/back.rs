//! The way back: events of the fleet for this edge, from a durable consumer into the shard (`docs/formats/fleet.md`, decision 150).
//!
//! ```text
//! JetStream ══> nats::Line ── nats::intake, each once and in order (Taking) ──> reading: which event it is ──> shard ── on the disk, of a pair on both ──> +ACK
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
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::{Incarnation, Sequence};
use bodkin_nats::{
    intake::{Delivery, IntakeSetup},
    jetstream::StreamInfo,
    protocol::words,
    servers::Pause,
};
use bodkin_store::event_log::EventLogReader;

pub use self::state::{BackState, BackView};
use self::{
    hands::Hands,
    reading::{Read, Reader, telling_lost},
    taken_log::TakenLog,
};
use super::{
    config::FleetConfig,
    taking::{Brought, Taking, Turn},
    writer::Writer,
};
use crate::{
    inbox::Inbox,
    nats::{Line, LineThread, Stop},
    trace::now_ns,
};

/// What the log is told where nothing comes.
const HELD_UP: &str = "events of the fleet do not come here, and wait in its stream";

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
pub struct WayBack(LineThread<FleetTold>);

impl WayBack {
    /// Begins to take events, which are published as `source`'s.
    ///
    /// `process` is noted at the consumer, so that one that starts later under this edge's name is noticed.
    ///
    /// `is_alone`: no other node takes them. The nodes of a pair do not note what the other one has taken, so that their consumer is believed.
    ///
    /// # Errors
    /// What was noted cannot be read, or no thread be made.
    pub fn start(
        config: &FleetConfig,
        data: &Path,
        log: EventLogReader,
        (shard, source): (Arc<Inbox>, SystemId),
        state: Arc<BackState>,
        (is_alone, process): (bool, Writer),
    ) -> io::Result<Self> {
        let setup = config.intake().expect("only who takes anything starts it");
        let setup = IntakeSetup { rewinds: is_alone, process: Some(process.to_string()), ..setup };
        state.connecting.begin();
        let line = Line::new(format!("bodkin {} takes", config.edge), config.place.clone(), Pause::default())?;
        let told = Arc::new(Inbox::new(line.waker()?));
        let thread = Thread {
            reader: Reader::new(config, source),
            taken_log: TakenLog::open(data, log, source, now_ns())?,
            hands: Hands::new(shard, told.clone()),
            taking: Taking::new(line, setup, state, HELD_UP),
            edge: config.edge.clone(),
            lost: 0,
        };
        Ok(Self(LineThread::start("fleet-back", told, |stop| thread.run(&stop))?))
    }

    /// Takes nothing more; what was taken and not acknowledged comes again, and is known. Waits for the thread, so it is not for one that serves others.
    pub fn stop(self) {
        self.0.stop();
    }
}

struct Thread {
    reader: Reader,
    taken_log: TakenLog,
    hands: Hands,
    taking: Taking,
    edge: String,
    /// Messages of this stream that it had let go of before they came, at the most.
    lost: u64,
}

impl Thread {
    fn run(mut self, stop: &Stop) {
        while !stop.is_told() {
            self.hear_shard();
            let Turn { brought, next, .. } = self.taking.turn();
            for brought in brought {
                self.hear(brought);
            }
            self.hands.hand_over();
            self.tell_numbers();
            self.note(false);
            self.taking.wait(self.hands.patience().map_or(next, |retry| next.min(retry)));
        }
        self.note(true);
    }

    /// What the shard says of events that it was handed.
    fn hear_shard(&mut self) {
        for told in self.hands.heard() {
            match told {
                hands::End::Done(sequence) => {
                    self.taking.state.taken.fetch_add(1, Relaxed);
                    self.taking.intake().done(sequence);
                }
                hands::End::Refused(sequence, why) => self.refuse(sequence, &why),
                hands::End::Later(why) => self.taking.warn("later", &format!("an event is not taken yet: {why}")),
            }
        }
    }

    fn tell_numbers(&mut self) {
        let under_way = self.taking.intake().taken() as u64;
        self.taking.state.under_way.store(under_way, Relaxed);
        self.taking.state.oldest_ms.store(self.hands.oldest_ms().unwrap_or_default(), Relaxed);
    }

    /// A message that can never be published here is not to come again.
    fn refuse(&mut self, sequence: u64, why: &str) {
        let why = words(why);
        if let Some(times) = self.taking.refused(sequence, &why) {
            tracing::error!(edge = self.edge, sequence, times, "a message of the fleet is not taken, and does not come again: {why}");
        }
        self.taking.intake().refused(sequence);
    }

    fn hear(&mut self, brought: Brought) {
        match brought {
            Brought::Stream(info) => self.remember(&info),
            Brought::Ready(waiting) => {
                // Who is killed now begins here again, not with a later present.
                self.note(true);
                tracing::info!(edge = self.edge, waiting, "events of the fleet come here");
            }
            Brought::Message(delivery) => self.take(delivery),
            Brought::Lost(messages) => {
                self.lost += messages;
                tracing::error!(
                    edge = self.edge,
                    messages,
                    "the fleet's stream has let go of messages that this edge has not had: so many at the most"
                );
            }
        }
    }

    /// Which messages of this stream were taken, by the event log.
    fn remember(&mut self, info: &StreamInfo) {
        let made = UtcTime::parse(&info.created).map(UtcTime::unix_nanos);
        let Ok(incarnation) = made else {
            return self.taking.does_not_remember(format!("the stream does not say when it was made: {:?}", words(&info.created)));
        };
        self.hands.forget();
        match self.taken_log.memory(Incarnation(incarnation)) {
            Ok((memory, (lost, seen))) => {
                self.lost = lost;
                // Those that were counted by a run before this one, or by the node that led.
                self.taking.state.lost.fetch_max(lost, Relaxed);
                self.taking.intake().remembers(memory, seen);
            }
            Err(error) => self.taking.does_not_remember(format!("the event log cannot be read: {error}")),
        }
    }

    fn take(&mut self, Delivery { sequence, message }: Delivery) {
        let incarnation = self.taken_log.incarnation();
        match self.reader.read(incarnation, sequence, &message) {
            Read::Event(mut event) => {
                if self.lost > 0 {
                    event.metadata = telling_lost(&event.metadata, self.lost);
                }
                self.hands.take(*event, self.taken_log.end());
            }
            Read::NotOurs => {
                self.taking.state.passed.fetch_add(1, Relaxed);
                self.taking.intake().done(sequence);
            }
            Read::Wrong(why) => self.refuse(sequence, &why),
        }
    }

    /// Notes on disk how far it has come.
    fn note(&mut self, at_once: bool) {
        let lost = (self.lost, self.taking.intake().seen_through());
        let (taken_log, oldest) = (&mut self.taken_log, self.hands.oldest());
        self.taking.note(at_once, |memory, _| taken_log.note(memory, lost, oldest));
    }
}
