//! Messages of a stream for one taker: the line by which they come, and what is told of that, whoever takes them and wherever they go.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bodkin_nats::{
    client::{Fault, Options},
    intake::{Delivery, Intake, IntakeSetup, Memory, Told},
    jetstream::StreamInfo,
};

use super::BackState;
use crate::{
    nats::{Line, Speaker, inbox},
    seldom::SeldomOf,
    trace::now_ns,
};

/// How often is noted on disk how far they have come.
const NOTE_PERIOD: Duration = Duration::from_secs(5);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What comes over a line, in its order.
pub(crate) enum Brought {
    /// The stream is like this: say what is remembered of it ([`Intake::remembers`]).
    Stream(Box<StreamInfo>),
    /// So many messages that have not come are on their way from now on.
    Ready(u64),
    /// Take this, and say [`Intake::done`] or [`Intake::refused`].
    Message(Delivery),
    /// At the most so many messages that had not come are gone from the stream.
    Lost(u64),
}

/// What a turn has come to.
pub(crate) struct Turn {
    /// What it has brought.
    pub brought: Vec<Brought>,
    /// How long there is nothing to do.
    pub next: Duration,
    /// Whether a connection has ended, or was not made.
    pub is_cut: bool,
}

/// A line and its intake, for one thread.
pub(crate) struct Taking {
    line: Line,
    speech: Speech,
    /// What is told of them.
    pub state: Arc<BackState>,
    seldom: SeldomOf,
    noted: Instant,
    /// That nothing comes and where it waits, for the log.
    held_up: &'static str,
}

impl Taking {
    /// Without a connection. `held_up` says in the log that nothing comes, and where it waits.
    pub fn new(line: Line, setup: IntakeSetup, state: Arc<BackState>, held_up: &'static str) -> Self {
        let intake = Intake::new(setup).expect("the configuration was checked");
        let speech = Speech { intake, told: Vec::new(), is_leaving: false };
        Self { line, speech, state, seldom: SeldomOf::default(), noted: Instant::now(), held_up }
    }

    /// Wakes whoever waits here.
    ///
    /// # Errors
    /// The system has none.
    pub fn waker(&self) -> io::Result<mio::Waker> {
        self.line.waker()
    }

    /// What is taken, and what is done.
    pub fn intake(&mut self) -> &mut Intake {
        &mut self.speech.intake
    }

    /// Does what is due on the line, and tells of it.
    pub fn turn(&mut self) -> Turn {
        let turned = self.line.turn(&mut self.speech);
        let told = std::mem::take(&mut self.speech.told);
        let is_told = !told.is_empty();
        let brought = told.into_iter().filter_map(|told| self.hear(told)).collect();
        self.state.waiting.store(self.speech.intake.waiting(), Relaxed);
        match turned {
            // What was told may have something due.
            Ok(_) if is_told => Turn { brought, next: Duration::ZERO, is_cut: false },
            Ok(next) => Turn { brought, next, is_cut: false },
            Err(end) => {
                self.state.reaches(None);
                self.fails(end.to_string());
                Turn { brought, next: Duration::ZERO, is_cut: true }
            }
        }
    }

    fn hear(&mut self, told: Told) -> Option<Brought> {
        match told {
            Told::Open(server) => self.state.reaches(Some(server)),
            Told::Stream(info) => return Some(Brought::Stream(info)),
            Told::Ready(waiting) => {
                self.line.reached();
                self.state.is_ready();
                return Some(Brought::Ready(waiting));
            }
            Told::None(why) => self.fails(why.to_string()),
            Told::Take(delivery) => {
                self.state.heard_ms.store(now_ns() / 1_000_000, Relaxed);
                return Some(Brought::Message(delivery));
            }
            Told::Lost(messages) => {
                self.state.lost.fetch_add(messages, Relaxed);
                return Some(Brought::Lost(messages));
            }
            Told::Repeated => drop(self.state.repeated.fetch_add(1, Relaxed)),
            Told::Refused(words) => {
                self.warn(&words, &words);
                self.state.refuses(format!("the server refuses: {words}"));
            }
            Told::Leaving => {}
        }
        None
    }

    /// Waits until something comes, somebody wakes the thread, or for so long; for a second at the most.
    pub fn wait(&mut self, longest: Duration) {
        if let Err(error) = self.line.wait(longest.min(WAIT_MAX)) {
            self.warn("poll", &format!("the thread cannot wait for its connection: {error}"));
            std::thread::sleep(WAIT_MAX);
        }
    }

    /// Nothing comes, and why.
    pub fn fails(&self, why: String) {
        self.warn(&why, &why);
        self.state.fails(why);
    }

    /// What is remembered of the stream cannot be said: nothing is taken until it was looked again.
    pub fn does_not_remember(&mut self, why: String) {
        self.warn("memory", &why);
        self.state.fails(why);
        self.speech.intake.does_not_remember(self.line.now());
    }

    /// As if the stream had told this.
    #[cfg(test)]
    pub fn hears(&mut self, told: Told) {
        self.speech.told.push(told);
    }

    /// Tells the log why nothing comes: of the same `thing` now and then.
    pub fn warn(&self, thing: &str, why: &str) {
        if let Some(times) = self.seldom.due(thing) {
            let BackState { stream, consumer, .. } = &*self.state;
            tracing::warn!(stream, consumer, times, "{}: {why}", self.held_up);
        }
    }

    /// Tells that a message can never be taken; gives how often the log was not told of it, this time included, if it is to be now.
    pub fn refused(&self, sequence: u64, why: &str) -> Option<u64> {
        self.state.refused(sequence, why);
        self.seldom.due("refused")
    }

    /// Has `write` note on disk what is remembered, and up to which sequence everything is done: now and then, or `at_once`.
    pub fn note(&mut self, at_once: bool, write: impl FnOnce(&Memory, u64) -> io::Result<()>) {
        if !at_once && self.noted.elapsed() < NOTE_PERIOD {
            return;
        }
        self.noted = Instant::now();
        let Some(memory) = self.speech.intake.memory() else { return };
        let Some(floor) = memory.floor() else { return };
        self.state.position.store(floor, Relaxed);
        if let Err(error) = write(memory, floor) {
            self.warn("note", &format!("how far they have come cannot be noted: {error}"));
        }
    }
}

/// What is said over the line.
struct Speech {
    intake: Intake,
    told: Vec<Told>,
    is_leaving: bool,
}

impl Speaker for Speech {
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
