//! What a session hears: one task for each, which takes messages and connections until the session is over, and then tells the other gateway.

use std::{sync::Arc, time::Duration};

use bodkin_relay::tunnel::{CONNECTIONS_MAX, Connection, Control, Event, Frame, Look, Reason, Side};
use bodkin_trust::{RelayMessage, TunnelSecret};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    door::{Door, Entrance},
    ends::End,
    lane::{Inbound, Lane, LaneOver},
    secrecy::{Ear, Form, Mouth, NotOpened, Opened, session_keys},
    speech::{Said, Speech},
    tunnel::Tunnel,
};
use crate::{
    gatekeeper::STRAY_MESSAGES_MAX,
    relay::{Heard, Message, Messages, RelayError},
};

/// For what has come to be written when a session is over, and for the other gateway to be told; each.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);
/// A word on the control queue may overtake bytes: behind it so much silence ends the session.
const LAST_CALL: Duration = Duration::from_millis(500);
/// Before queues are removed whose last message the other gateway may still be reading.
const LINGER: Duration = Duration::from_secs(1);
/// Longest wait of a session that has nothing to wait for.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// The session's task.
pub(super) struct Hearing {
    tunnel: Arc<Tunnel>,
    data: Messages,
    control: Messages,
    /// The consumer's port, on its side.
    entrance: Option<Entrance>,
    ear: Ear,
    /// Until it is known how the other gateway is spoken to.
    speech: Option<Speech>,
    speaking: Option<JoinHandle<()>>,
    connections: JoinSet<()>,
    /// When the session ends that the other gateway has closed, if nothing more comes.
    last_call: Option<Instant>,
    /// Messages without a use since the last one that had one.
    strays: usize,
    /// Until when an unused session waits for connections that are arriving.
    grace: Option<Instant>,
}

/// What there was to wait for.
enum Turn {
    Heard(Result<Heard, RelayError>),
    Word(Result<Heard, RelayError>),
    Consumer(End),
    Nothing,
}

impl Hearing {
    pub(super) fn new(tunnel: Arc<Tunnel>, data: Messages, control: Messages, speech: Speech, entrance: Option<Entrance>) -> Self {
        let ear = Ear::new(tunnel.peer_keys.clone(), tunnel.queue_id.clone(), (tunnel.peer_cloud(), tunnel.side));
        if let Some(door) = entrance.as_ref().and_then(|entrance| entrance.door.as_ref()) {
            door.leads_to(&tunnel);
        }
        let (speech, connections) = (Some(speech), JoinSet::new());
        Self { tunnel, data, control, entrance, ear, speech, speaking: None, connections, last_call: None, strays: 0, grace: None }
    }

    pub(super) async fn run(mut self) {
        if self.tunnel.side == Side::Consumer {
            self.open();
        }
        loop {
            let successor = self.tunnel.successor().take();
            if successor.is_some_and(|successor| self.give_entrance(successor)) {
                break;
            }
            let look = self.tunnel.session().look(self.tunnel.gateway.time());
            let until = match look {
                Look::Over(Reason::Unused(_) | Reason::Idle(_)) if self.is_in_grace() => self.grace.unwrap_or_else(Instant::now),
                Look::Over(reason) => {
                    self.tunnel.session().close(reason);
                    break;
                }
                Look::KeepAlive => {
                    self.tunnel.session().said(self.tunnel.gateway.time());
                    self.tunnel.word(Frame::KeepAlive);
                    continue;
                }
                Look::Wait(until) => self.tunnel.gateway.started + until.min(self.tunnel.gateway.time() + WAIT_MAX),
            };
            if self.last_call.is_some_and(|last_call| last_call <= Instant::now()) {
                self.tunnel.session().close(Reason::Peer(Control::Close.to_string()));
                break;
            }
            let turn = self.wait(until).await;
            let taken = match turn {
                Turn::Heard(heard) => self.take(heard).await,
                Turn::Word(heard) => self.heed(heard),
                Turn::Consumer(end) => {
                    self.grace = None;
                    self.serve(end);
                    Ok(())
                }
                Turn::Nothing => Ok(()),
            };
            if let Err(reason) = taken {
                self.tunnel.session().close(reason);
                break;
            }
        }
        self.end().await;
    }

    async fn wait(&mut self, until: Instant) -> Turn {
        let has_room = self.connections.len() < CONNECTIONS_MAX && self.tunnel.session().has_room();
        if !has_room && !self.tunnel.is_numbered() {
            // There is one connection only: nobody is left to wait for another.
            self.entrance.as_mut().map(|entrance| entrance.door.take());
        }
        let until = self.last_call.map_or(until, |last_call| last_call.min(until));
        let door = self.entrance.as_mut().and_then(|entrance| entrance.door.as_mut()).filter(|_| has_room);
        tokio::select! {
            heard = self.data.next() => Turn::Heard(heard),
            heard = self.control.next() => Turn::Word(heard),
            end = arrival(door) => Turn::Consumer(end),
            Some(_) = self.connections.join_next() => Turn::Nothing,
            () = self.tunnel.changed.notified() => Turn::Nothing,
            () = sleep_until(until) => Turn::Nothing,
        }
    }

    /// Gives the port to a newer session, unless a consumer is connected; gives whether it did.
    fn give_entrance(&mut self, successor: oneshot::Sender<Entrance>) -> bool {
        let is_open = self.entrance.as_ref().is_some_and(|entrance| entrance.door.is_some());
        if !is_open || self.tunnel.session().connections() > 0 {
            return false;
        }
        let Some(entrance) = self.entrance.take() else { return false };
        // Nobody waits for it any more.
        self.entrance = successor.send(entrance).err();
        if self.entrance.is_none() {
            self.tunnel.session().close(Reason::Replaced);
        }
        self.entrance.is_none()
    }

    /// Whether an unused session waits for a connection that is arriving: once, and no longer than a handshake may take.
    fn is_in_grace(&mut self) -> bool {
        let has_arrivals = self.entrance.as_ref().and_then(|entrance| entrance.door.as_ref()).is_some_and(Door::has_arrivals);
        let until = *self.grace.get_or_insert_with(|| Instant::now() + self.tunnel.gateway.config.patience);
        has_arrivals && Instant::now() < until
    }

    /// Carries what the consumer's connection says.
    fn serve(&mut self, end: End) {
        let Some(number) = self.tunnel.session().accept(self.tunnel.gateway.time()) else { return };
        let (tunnel, lane) = (self.tunnel.clone(), self.tunnel.open_lane(number));
        self.connections.spawn(async move {
            if tunnel.is_numbered() && tunnel.say.send(Said::Frame(Frame::Connect(number))).await.is_err() {
                return;
            }
            carry(&tunnel, lane, end).await;
        });
    }

    /// Tells the provider's gateway of the session, if it can be told by number.
    fn open(&mut self) {
        if !self.tunnel.is_numbered() {
            self.speak(Mouth::Plain, None);
            return;
        }
        let secret = TunnelSecret::draw();
        let (sealing, opening) = session_keys(&secret, &self.tunnel.queue_id, Side::Consumer);
        self.ear.number(opening);
        let first = RelayMessage::Tunnel {
            session: self.tunnel.queue_id.clone(),
            bytes: secret.opening(self.tunnel.gateway.config.terms.silent_ms()),
        };
        self.speak(Mouth::Numbered { key: sealing, next: 0 }, Some(first));
    }

    fn speak(&mut self, mouth: Mouth, first: Option<RelayMessage>) {
        if let Some(speech) = self.speech.take() {
            self.speaking = Some(tokio::spawn(speech.speak(self.tunnel.clone(), mouth, first)));
        }
    }

    /// Takes a message.
    async fn take(&mut self, heard: Result<Heard, RelayError>) -> Result<(), Reason> {
        let message = match heard {
            Ok(Heard::Message(text)) => Message::Text(text),
            Ok(Heard::Bytes(bytes)) => Message::Bytes(bytes),
            Ok(Heard::Interrupted) => return self.go_on(),
            Err(error) => return Err(Reason::Relay(error.to_string())),
        };
        if let Some(last_call) = &mut self.last_call {
            *last_call = Instant::now() + LAST_CALL;
        }
        let opened = match self.ear.open(&self.tunnel.gateway, message).await {
            Ok(opened) => opened,
            Err(NotOpened::Over(reason)) => return Err(reason),
            Err(NotOpened::Stray(why)) => return self.stray(&why),
            Err(NotOpened::Duplicate) => {
                self.tunnel.stray("a message of a tunnel was passed over: it has come before");
                return Ok(());
            }
        };
        self.strays = 0;
        let (done, events) = match opened {
            Opened::Session(secret, silent_ms) => {
                let (sealing, opening) = session_keys(&secret, &self.tunnel.queue_id, Side::Provider);
                self.ear.number(opening);
                self.speak(Mouth::Numbered { key: sealing, next: 0 }, None);
                let ((), events) = self.tunnel.with_session(|session, now, events| session.opened(silent_ms, now, events));
                (Ok(()), events)
            }
            Opened::Plain(bytes) => {
                self.speak(Mouth::Plain, None);
                self.tunnel.with_session(|session, now, events| session.receive_plain(bytes, now, events))
            }
            Opened::Frame(frame, form) => {
                if form == Form::Bytes {
                    self.tunnel.peer_takes_bytes();
                }
                self.tunnel.with_session(|session, now, events| session.receive(frame, now, events))
            }
        };
        for event in events {
            self.act(event).await?;
        }
        done
    }

    /// The connection to the relay was made again.
    fn go_on(&mut self) -> Result<(), Reason> {
        self.tunnel.interrupted();
        if self.tunnel.is_numbered() {
            // By its number the other gateway finds out whether it has missed any.
            self.tunnel.word(Frame::KeepAlive);
            return Ok(());
        }
        match self.tunnel.session().connections() {
            0 => Ok(()),
            _ => Err(Reason::Relay("the connection to the relay broke, and bytes may be missing".to_owned())),
        }
    }

    async fn act(&mut self, event: Event) -> Result<(), Reason> {
        match event {
            Event::Connect(number) => {
                let lane = self.tunnel.open_lane(number);
                self.connections.spawn(reach(self.tunnel.clone(), lane));
            }
            Event::Bytes(number, piece) => {
                self.tunnel.count_from_peer(piece.len());
                self.hand_on(number, Inbound::Bytes(piece)).await?;
            }
            Event::End(number) => self.hand_on(number, Inbound::End).await?,
            Event::Reset(number, words) => {
                self.tunnel.trouble(&format!("the other end of a connection broke: {words}"));
                self.hand_on(number, Inbound::Reset).await?;
                // Who still waits for the provider need not.
                self.tunnel.ring(number);
                self.tunnel.close_lane(number);
            }
            Event::Credit(number) => self.tunnel.ring(number),
            Event::Retire(number) => self.tunnel.close_lane(number),
            Event::Say(frame) => self.tunnel.word(frame),
        }
        Ok(())
    }

    /// Hands a connection what came for it. With numbers there is always room, or else the relay's queue holds up who sends.
    async fn hand_on(&self, number: Connection, inbound: Inbound) -> Result<(), Reason> {
        // Of a connection that has ended here nothing more is written.
        let Some(lane) = self.tunnel.inbound(number) else { return Ok(()) };
        let idle = self.tunnel.gateway.config.terms.idle;
        match timeout(idle, lane.send(inbound)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Reason::Idle(idle)),
        }
    }

    /// Counts a message without a use.
    ///
    /// # Errors
    /// Too many came in a row: each costs processor time, and the queues may be anybody's who knows their names.
    fn stray(&mut self, why: &str) -> Result<(), Reason> {
        self.tunnel.stray(why);
        self.strays += 1;
        if self.strays < STRAY_MESSAGES_MAX { Ok(()) } else { Err(Reason::Strays(STRAY_MESSAGES_MAX)) }
    }

    /// Heeds a word of the control queue.
    fn heed(&mut self, heard: Result<Heard, RelayError>) -> Result<(), Reason> {
        match heard {
            Ok(Heard::Message(text)) => match Control::parse(&text, self.tunnel.queue_id.as_str()) {
                Some(Control::Close) => self.last_call = Some(Instant::now() + LAST_CALL),
                Some(Control::Switch) => self.stray("a tunnel was told to switch, which only tests of relays do")?,
                None => self.stray("a word on a tunnel's control queue was passed over: CLOSE with its queue id is expected")?,
            },
            Ok(Heard::Bytes(_)) => self.stray("bytes on a tunnel's control queue were passed over: CLOSE with its queue id is expected")?,
            Ok(Heard::Interrupted) => {}
            Err(error) => return Err(Reason::Relay(error.to_string())),
        }
        Ok(())
    }

    /// Writes what has come, tells the other gateway, and leaves nothing behind.
    async fn end(self) {
        let Self { tunnel, data, control, mut entrance, speaking, mut connections, .. } = self;
        entrance.as_mut().map(|entrance| entrance.door.take());
        tunnel.successor().take();
        tunnel.close_lanes();
        let written = async { while connections.join_next().await.is_some() {} };
        if timeout(LAST_WORDS_MAX, written).await.is_err() {
            connections.abort_all();
        }
        let reason = tunnel.session().reason().cloned();
        let is_told = matches!(reason, Some(Reason::Peer(_)));
        if let Some(mut speaking) = speaking {
            let words = reason.filter(|_| !is_told).map(|reason| Frame::Close(reason.to_string()));
            let last = async {
                // A task that has ended has said why.
                let _ = tunnel.say.send(Said::Last(words)).await;
                let _ = (&mut speaking).await;
            };
            if timeout(LAST_WORDS_MAX, last).await.is_err() {
                speaking.abort();
            }
            if !tunnel.is_numbered() {
                sleep(LAST_CALL).await;
            }
        }
        if !is_told {
            let close = tunnel.relay.send(&tunnel.queues.out_control, Control::Close.of(tunnel.queue_id.as_str()));
            if !matches!(timeout(LAST_WORDS_MAX, close).await, Ok(Ok(()))) {
                tracing::debug!(system = "gateway", relay = %tunnel.relay.place(), "the other gateway was not told that a session is over");
            }
        }
        drop(entrance);
        tunnel.forget();
        sleep(LINGER).await;
        drop((data, control));
        for queue in [&tunnel.queues.into, &tunnel.queues.into_control] {
            // What cannot be removed is the relay's to settle, by its idle time.
            let _ = timeout(LAST_WORDS_MAX, tunnel.relay.remove(queue)).await;
        }
    }
}

async fn arrival(door: Option<&mut Door>) -> End {
    match door {
        Some(door) => door.next().await,
        None => std::future::pending().await,
    }
}

/// Connects to the provider, and carries what it says.
async fn reach(tunnel: Arc<Tunnel>, lane: Lane) {
    let patience = tunnel.gateway.config.patience;
    let (number, bell) = (lane.number, lane.bell.clone());
    let (provider, name) = (&tunnel.form.provider, &tunnel.form.provider_name);
    let reached = tokio::select! {
        reached = timeout(patience, tunnel.gateway.ends.reach(provider, name, patience)) => Some(reached),
        // Nothing is sent of a connection that there is not: what it is rung for is its end.
        () = bell.notified() => None,
    };
    match reached {
        Some(Ok(Ok(end))) => carry(&tunnel, lane, end).await,
        Some(Ok(Err(error))) => broken(&tunnel, number, &error.0).await,
        Some(Err(_)) => broken(&tunnel, number, &format!("the provider {provider} has not answered within {patience:?}")).await,
        None => drop(lane),
    }
    tunnel.session().gone(number);
}

async fn carry(tunnel: &Tunnel, lane: Lane, end: End) {
    let number = lane.number;
    match lane.carry(tunnel, end).await {
        LaneOver::Broken(why) => broken(tunnel, number, &format!("the {}'s connection broke: {why}", tunnel.side)).await,
        LaneOver::Ended | LaneOver::Reset => {
            tunnel.close_lane(number);
            let goes_on = tunnel.session().goes_on_without(number, tunnel.gateway.time());
            if !tunnel.is_numbered() && !goes_on {
                tunnel.close(Reason::Ended(None));
            }
        }
    }
    // There is room for another one.
    tunnel.changed.notify_one();
}

/// A connection is given up here: the other end is told.
async fn broken(tunnel: &Tunnel, number: Connection, why: &str) {
    tunnel.close_lane(number);
    let goes_on = tunnel.session().goes_on_without(number, tunnel.gateway.time());
    if goes_on {
        return tunnel.trouble(why);
    }
    let told = tunnel.session().reset(number, why, tunnel.gateway.time());
    if let Some(frame) = told {
        tunnel.trouble(why);
        if !tunnel.is_numbered() {
            tunnel.close(Reason::Ended(Some(why.to_owned())));
        } else if tunnel.is_open() {
            // The session's end says it too.
            let _ = tunnel.say.send(Said::Frame(frame)).await;
        }
    }
}
