//! The task that keeps one relay's connection: it makes it, makes it again, and carries what is asked of it.
//!
//! ```text
//! Link ── Ask ──> Task ── Session (pure: the protocol) ── Flow (bytes) ══ relay
//! Messages ── Notice ──>  └── Delivered ──> Messages
//! ```

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    io,
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::Duration,
};

use bodkin_relay::{
    native::{self, Reason},
    session::{Event, Listener, Receipt, Refusal, Sending, Session, SessionFault},
    stomp,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    CONNECT_PATIENCE, Delivered, Destination, DialError, Dialer, LISTENERS_MAX, LinkState, Message, Notice, Protocol, RETRY_MAX, RETRY_MIN,
    RelayError, RelayPlace, Taken,
    flow::{Flow, PIECE_BYTES, READS_MAX},
};
use crate::seldom::Seldom;

/// Asks, or notices, that are carried out in a row before the connection has its turn.
const TURN_MAX: usize = 256;
/// Before the log is told again that a relay is away for the same reason.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// A connection that has lasted so long was a good one: the next attempt is not put off any longer than after the first failure.
const GOOD_AFTER: Duration = Duration::from_secs(30);

/// What the users of a relay ask for.
pub(super) enum Ask {
    Send { sending: Sending, destination: Destination, message: Message, done: Done },
    GiveUp(Sending),
    Listen { listener: Listener, destination: Destination, deliver: mpsc::UnboundedSender<Delivered>, done: Done },
    Remove { destination: Destination, done: Done },
    End,
}

type Done = oneshot::Sender<Result<(), RelayError>>;

/// Somebody who listens.
struct Hearer {
    destination: Destination,
    deliver: mpsc::UnboundedSender<Delivered>,
    /// Until the relay has confirmed it for the first time.
    done: Option<Done>,
}

/// Why there is no connection any more.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("{0}")]
    Fault(#[from] SessionFault),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it has ended the connection")]
    Closed,
    #[error("it has not answered within {0:?}")]
    Late(Duration),
    #[error("it has taken nothing of what was sent for {0:?}")]
    Stalled(Duration),
    /// Nobody wants it.
    #[error("it is not used any more")]
    Ended,
}

/// An open connection.
struct Open {
    session: Box<dyn Session>,
    flow: Flow,
}

pub(super) struct Task {
    place: RelayPlace,
    dialer: Dialer,
    asks: mpsc::UnboundedReceiver<Ask>,
    notices: mpsc::UnboundedReceiver<Notice>,
    state: watch::Sender<LinkState>,
    /// Times of sessions count from here.
    started: Instant,
    /// The number of the present connection, or of the last one.
    connection: u64,
    hearers: BTreeMap<Listener, Hearer>,
    /// Who waits for a message to go that the session has.
    senders: BTreeMap<Sending, Done>,
    /// What was asked while there is no connection.
    held: Vec<Ask>,
    no_text: Seldom,
    /// Why there is no connection, as the log was told last, and when.
    told_down: Option<(Arc<str>, Instant)>,
}

impl Task {
    pub(super) fn new(
        place: RelayPlace,
        dialer: Dialer,
        asks: mpsc::UnboundedReceiver<Ask>,
        notices: mpsc::UnboundedReceiver<Notice>,
        state: watch::Sender<LinkState>,
    ) -> Self {
        Self {
            place,
            dialer,
            asks,
            notices,
            state,
            started: Instant::now(),
            connection: 0,
            hearers: BTreeMap::new(),
            senders: BTreeMap::new(),
            held: Vec::new(),
            no_text: Seldom::default(),
            told_down: None,
        }
    }

    /// Tells the log that there is no connection: of the same reason seldom, for who has something to send has it tried each second.
    fn tell_down(&mut self, reason: &Arc<str>, pause: Duration) {
        let is_known = self.told_down.as_ref().is_some_and(|(told, at)| told == reason && at.elapsed() < TELL_AGAIN);
        if !is_known {
            tracing::warn!(system = self.dialer.user(), relay = %self.place, %reason, again_within = ?pause, "there is no connection to a relay");
            self.told_down = Some((reason.clone(), Instant::now()));
        }
    }

    /// Until nobody wants the relay.
    pub(super) async fn run(mut self) {
        let mut pause = RETRY_MIN;
        loop {
            let attempted = Instant::now();
            self.state.send_replace(LinkState::Connecting);
            let mut has_broken = false;
            let failure = match self.connect().await {
                Ok((open, protocol)) => {
                    tracing::info!(system = self.dialer.user(), relay = %self.place, ?protocol, "connected to a relay");
                    self.state.send_replace(LinkState::Open(protocol));
                    let failure = self.converse(open).await;
                    has_broken = true;
                    if attempted.elapsed() >= GOOD_AFTER {
                        pause = RETRY_MIN;
                        self.told_down = None;
                    }
                    failure
                }
                Err(failure) => failure,
            };
            if matches!(failure, Failure::Ended) {
                break;
            }
            let reason: Arc<str> = failure.to_string().into();
            self.tell_down(&reason, pause);
            self.fail(&reason);
            // Who has asked since a connection broke gets the next one, which is tried at once.
            if !has_broken {
                self.refuse_held(&reason);
            }
            self.state.send_replace(LinkState::Down(reason));
            if self.wait(attempted, pause).await.is_break() {
                break;
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
        self.end();
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Connects, and greets.
    async fn connect(&mut self) -> Result<(Open, Protocol), Failure> {
        let patience = CONNECT_PATIENCE;
        timeout(patience, self.greet()).await.unwrap_or(Err(Failure::Late(patience)))
    }

    async fn greet(&mut self) -> Result<(Open, Protocol), Failure> {
        let (channel, protocol) = self.dialer.dial(&self.place).await?;
        let session: Box<dyn Session> = match protocol {
            Protocol::Native => Box::new(native::Client::new(self.now())),
            Protocol::Stomp => {
                let client_id = RandomState::new().hash_one(self.connection);
                Box::new(stomp::Client::new(client_id, self.dialer.login(&self.place)))
            }
        };
        let (mut open, mut events) = (Open { session, flow: Flow::new(channel) }, Vec::new());
        let mut space = vec![0; PIECE_BYTES];
        loop {
            open.write(self.now(), &mut events)?;
            open.flow.ready().await?;
            open.read(self.now(), &mut space, &mut events)?;
            if events.contains(&Event::Open) {
                self.connection += 1;
                return Ok((open, protocol));
            }
        }
    }

    /// Carries what is asked, until the connection is over.
    async fn converse(&mut self, mut open: Open) -> Failure {
        let (mut events, mut space) = (Vec::new(), vec![0; PIECE_BYTES]);
        let mut look = Instant::now();
        for (listener, hearer) in &self.hearers {
            // One that is gone is about to say so.
            let _ = hearer.deliver.send(Delivered::Interrupted);
            open.session.listen(*listener, &hearer.destination);
        }
        for ask in std::mem::take(&mut self.held) {
            if self.carry_out(ask, &mut open, &mut events).is_break() {
                return Failure::Ended;
            }
        }
        loop {
            let turned = self.turn(&mut open, &mut events, &mut space, &mut look).await;
            self.tell(&mut events);
            match turned {
                Ok(()) => {}
                Err(Failure::Ended) => {
                    open.session.end();
                    // Words that do not get out are not needed.
                    let _ = open.write(self.now(), &mut events);
                    open.flow.close().await;
                    return Failure::Ended;
                }
                Err(failure) => return failure,
            }
        }
    }

    /// Writes, waits for something to do, and does it.
    async fn turn(&mut self, open: &mut Open, events: &mut Vec<Event>, space: &mut [u8], look: &mut Instant) -> Result<(), Failure> {
        open.write(self.now(), events)?;
        self.tell(events);
        let stalled_from = open.flow.stalled_from();
        let wake = stalled_from.map_or(*look, |stalled| stalled.min(*look));
        tokio::select! {
            ask = self.asks.recv() => {
                let mut next = Some(ask.unwrap_or(Ask::End));
                for _ in 0..TURN_MAX {
                    let Some(ask) = next else { break };
                    if self.carry_out(ask, open, events).is_break() {
                        return Err(Failure::Ended);
                    }
                    next = self.asks.try_recv().ok();
                }
            }
            Some(notice) = self.notices.recv() => {
                let mut next = Some(notice);
                for _ in 0..TURN_MAX {
                    let Some(notice) = next else { break };
                    self.heed(notice, Some(open));
                    next = self.notices.try_recv().ok();
                }
            }
            ready = open.flow.ready() => {
                ready?;
                open.read(self.now(), space, events)?;
            }
            () = sleep_until(wake) => {
                if stalled_from.is_some_and(|stalled| stalled <= Instant::now()) {
                    return Err(Failure::Stalled(super::flow::STALL_MAX));
                }
                let until = open.session.beat(self.now())?;
                *look = self.started + until;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, ask: Ask, open: &mut Open, events: &mut Vec<Event>) -> ControlFlow<()> {
        match ask {
            Ask::Send { sending, destination, message, done } => {
                self.senders.insert(sending, done);
                let now = self.now();
                match message {
                    Message::Text(text) => open.session.send(sending, &destination, text, now, events),
                    Message::Bytes(bytes) => open.session.send_bytes(sending, &destination, bytes, now, events),
                }
            }
            Ask::GiveUp(sending) => {
                self.senders.remove(&sending);
                open.session.give_up(sending);
            }
            Ask::Listen { done, .. } if done.is_closed() => {}
            Ask::Listen { done, .. } if self.hearers.len() >= LISTENERS_MAX => drop(done.send(Err(RelayError::Listeners))),
            Ask::Listen { listener, destination, deliver, done } => {
                open.session.listen(listener, &destination);
                self.hearers.insert(listener, Hearer { destination, deliver, done: Some(done) });
            }
            Ask::Remove { destination, done } => {
                open.session.remove(&destination, events);
                // Whoever has given up does not want to know.
                let _ = done.send(Ok(()));
            }
            Ask::End => return Break(()),
        }
        Continue(())
    }

    fn heed(&mut self, notice: Notice, open: Option<&mut Open>) {
        match (notice, open) {
            (Notice::Taken(listener, Taken { connection, receipt }), Some(open)) if connection == self.connection => {
                open.session.taken(listener, receipt);
            }
            (Notice::Taken(..), _) => {}
            (Notice::Left(listener), open) => {
                self.hearers.remove(&listener);
                if let Some(open) = open {
                    open.session.leave(listener);
                }
            }
        }
    }

    /// Tells those whom it concerns. Whoever is gone is about to say so, or does not want to know.
    fn tell(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event {
                Event::Open => {}
                Event::Listening(listener) => {
                    if let Some(done) = self.hearers.get_mut(&listener).and_then(|hearer| hearer.done.take()) {
                        let _ = done.send(Ok(()));
                    }
                }
                Event::Message { listener, text, receipt } => self.deliver(listener, Message::Text(text), receipt),
                Event::Bytes { listener, bytes, receipt } => self.deliver(listener, Message::Bytes(bytes), receipt),
                Event::NoText(_) => {
                    if let Some(times) = self.no_text.due() {
                        tracing::warn!(relay = %self.place, times, "a message from a relay is no text, and was passed over");
                    }
                }
                Event::Over { listener, refusal } => {
                    if let Some(Hearer { destination, deliver, done }) = self.hearers.remove(&listener) {
                        let error = if refusal.reason == Some(Reason::Removed) {
                            RelayError::Removed(destination)
                        } else {
                            refused(&self.place, refusal)
                        };
                        match done {
                            Some(done) => drop(done.send(Err(error))),
                            None => drop(deliver.send(Delivered::Over(error))),
                        }
                    }
                }
                Event::Sent(sending) => {
                    if let Some(done) = self.senders.remove(&sending) {
                        let _ = done.send(Ok(()));
                    }
                }
                Event::NotSent { sending, refusal } => {
                    if let Some(done) = self.senders.remove(&sending) {
                        let _ = done.send(Err(refused(&self.place, refusal)));
                    }
                }
            }
        }
    }

    fn deliver(&self, listener: Listener, message: Message, receipt: Receipt) {
        if let Some(hearer) = self.hearers.get(&listener) {
            let taken = Taken { connection: self.connection, receipt };
            let _ = hearer.deliver.send(Delivered::Message(message, taken));
        }
    }

    /// Tells all who wait for something that it does not come. Who listens goes on doing so at the next connection.
    fn fail(&mut self, reason: &Arc<str>) {
        let place = self.place.to_string();
        for (_, done) in std::mem::take(&mut self.senders) {
            let _ = done.send(Err(RelayError::Lost { place: place.clone(), reason: reason.clone() }));
        }
        self.hearers.retain(|_, hearer| match hearer.done.take() {
            None => true,
            Some(done) => {
                let _ = done.send(Err(RelayError::Down { place: place.clone(), reason: reason.clone() }));
                false
            }
        });
    }

    /// Tells those who have asked for something meanwhile.
    fn refuse_held(&mut self, reason: &Arc<str>) {
        let place = self.place.to_string();
        while let Ok(ask) = self.asks.try_recv() {
            self.held.push(ask);
        }
        let mut is_over = false;
        for ask in std::mem::take(&mut self.held) {
            let down = RelayError::Down { place: place.clone(), reason: reason.clone() };
            match ask {
                Ask::Send { done, .. } | Ask::Listen { done, .. } | Ask::Remove { done, .. } => drop(done.send(Err(down))),
                Ask::GiveUp(_) => {}
                Ask::End => is_over = true,
            }
        }
        if is_over {
            self.held.push(Ask::End);
        }
    }

    /// Waits for the next attempt, which is sooner if somebody asks for something.
    async fn wait(&mut self, attempted: Instant, pause: Duration) -> ControlFlow<()> {
        let now = Instant::now();
        let (mut until, at_once) = (now + pause, now.max(attempted + RETRY_MIN));
        if self.held.iter().any(|ask| matches!(ask, Ask::End)) {
            return Break(());
        }
        loop {
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    None | Some(Ask::End) => return Break(()),
                    Some(Ask::GiveUp(sending)) => {
                        self.held.retain(|ask| !matches!(ask, Ask::Send { sending: held, .. } if *held == sending));
                    }
                    Some(ask) => {
                        self.held.push(ask);
                        until = until.min(at_once);
                    }
                },
                Some(notice) = self.notices.recv() => self.heed(notice, None),
                () = sleep_until(until) => return Continue(()),
            }
        }
    }

    /// Tells everybody that it is over.
    fn end(mut self) {
        self.state.send_replace(LinkState::Ended);
        let ended = || RelayError::Ended(self.place.to_string());
        for (_, done) in std::mem::take(&mut self.senders) {
            let _ = done.send(Err(ended()));
        }
        for (_, Hearer { deliver, done, .. }) in std::mem::take(&mut self.hearers) {
            match done {
                Some(done) => drop(done.send(Err(ended()))),
                None => drop(deliver.send(Delivered::Over(ended()))),
            }
        }
        // Who has asked and was not answered sees the answer's sender go, which says the same.
    }
}

impl Open {
    /// Writes as much as is taken, and puts behind it what may go then.
    fn write(&mut self, now: Duration, events: &mut Vec<Event>) -> Result<(), Failure> {
        loop {
            self.flow.write()?;
            let Some(room) = self.flow.room() else { return Ok(()) };
            self.session.take_out(now, room, events);
            if room.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads what is there, up to its turn's end.
    fn read(&mut self, now: Duration, space: &mut [u8], events: &mut Vec<Event>) -> Result<(), Failure> {
        for _ in 0..READS_MAX {
            match self.flow.read(space)? {
                None => return Ok(()),
                Some(0) => return Err(Failure::Closed),
                Some(bytes) => self.session.receive(&space[..bytes], now, events)?,
            }
        }
        Ok(())
    }
}

fn refused(place: &RelayPlace, Refusal { reason, words }: Refusal) -> RelayError {
    RelayError::Refused { place: place.to_string(), reason, words: words.into() }
}

#[cfg(test)]
mod tests;
