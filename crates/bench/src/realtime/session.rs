//! The sessions of a DEALER to a broker, or to both brokers of a pair: begun, kept, begun again when they end.

use std::net::SocketAddr;

use anyhow::bail;
use bodkin_broker::publisher::Session;
use bodkin_broker::wire::{ClientFrame, EventHeader};
use bodkin_broker::{Epoch, Incarnation};
use bodkin_zmtp::Message;
use mio::{Registry, Token};

use super::connection::Connection;
use super::dialect::Heard;
use super::zmtp::Zmtp;
use crate::event::payload::monotonic_ns;

/// Time in front of an attempt to reach a broker while another one leads.
const ATTEMPT_EVERY_NS: u64 = 1_000_000_000;
/// The same while another one has a session, and will soon say that it leads; behind a stall it is the broker that has ended the session.
const ATTEMPT_BESIDE_NS: u64 = 100_000_000;
/// The same while there is neither: doubled with each session that ends at once, to the greatest.
const PAUSE_NS: std::ops::RangeInclusive<u64> = 10_000_000..=160_000_000;
/// A session that lasts so long has not ended at once.
const LASTING_NS: u64 = 1_000_000_000;

/// One session to each broker.
pub struct Sessions {
    name: String,
    links: Vec<Link>,
    /// Where frames are made.
    frame: Vec<u8>,
}

struct Link {
    session: Session,
    address: SocketAddr,
    token: Token,
    connection: Option<Connection<Zmtp>>,
    /// The last one, which has ended and is still to be closed. The kernel takes longer for that than a client for turning to the broker that leads next, and where a thread has
    /// thousands of clients, those that are to turn would wait until all of them have closed.
    ended: Option<Connection<Zmtp>>,
    /// When its last session began, or ended.
    attempted_ns: u64,
    pause_ns: u64,
    /// The broker has answered the handshake.
    is_ready: bool,
}

/// What a session brings.
pub enum News<'b> {
    /// It is there: say who is calling.
    Ready,
    /// A command.
    Command(ClientFrame<'b>),
    /// An event.
    Event {
        /// What was published.
        payload: &'b [u8],
        /// Its identity and time.
        header: EventHeader,
    },
    /// It is over.
    Ended {
        /// Why, if the broker has said so or has sent what is not understood.
        why: Option<String>,
        /// Whether it was there: an attempt at a broker that is dead ends no session.
        was_there: bool,
    },
}

impl Sessions {
    /// Begins with each broker.
    ///
    /// # Errors
    /// The name is no identity, or the system gives no socket.
    pub fn begin(brokers: &[SocketAddr], name: &str, registry: &Registry, tokens: [Token; 2]) -> anyhow::Result<Self> {
        let places = [Session::One, Session::Two].into_iter().zip(tokens).zip(brokers);
        let link = |((session, token), address): ((Session, Token), &SocketAddr)| Link {
            session,
            address: *address,
            token,
            connection: None,
            ended: None,
            attempted_ns: 0,
            pause_ns: *PAUSE_NS.start(),
            is_ready: false,
        };
        let mut sessions = Self { name: name.to_string(), links: places.map(link).collect(), frame: Vec::new() };
        sessions.begin_again(registry, true)?;
        Ok(sessions)
    }

    /// Closes what has ended, once somebody leads, and begins with those brokers again with whom it is time to; soon, if there is nobody to publish to and no other session.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn begin_again(&mut self, registry: &Registry, is_led: bool) -> anyhow::Result<()> {
        if is_led {
            self.links.iter_mut().for_each(|link| link.ended = None);
        }
        let now_ns = monotonic_ns();
        let pause_ns = match self.links.iter().any(|link| link.is_ready) {
            _ if is_led => |_: &Link| ATTEMPT_EVERY_NS,
            true => |_: &Link| ATTEMPT_BESIDE_NS,
            false => |link: &Link| link.pause_ns,
        };
        for link in self.links.iter_mut().filter(|link| link.connection.is_none() && link.attempted_ns + pause_ns(link) <= now_ns) {
            let mut connection = Connection::begin(link.address, Zmtp::dealer(&self.name)?)?;
            connection.watch(registry, link.token)?;
            link.connection = Some(connection);
            link.attempted_ns = now_ns;
        }
        Ok(())
    }

    /// Reads what has come to link `at`, and tells it. What is not ZMTP, and ZMTP's own word that it is over, end the session.
    ///
    /// # Errors
    /// Those of `told`.
    pub fn read(
        &mut self,
        at: usize,
        event: &mio::event::Event,
        piece: &mut [u8],
        told: &mut dyn FnMut(Session, News<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        let Some(connection) = &mut link.connection else { return Ok(()) };
        if event.is_writable() {
            connection.may_write();
            connection.flush();
        }
        let (session, is_ready) = (link.session, &mut link.is_ready);
        let mut result = Ok(());
        let read = connection.read(piece, &mut |heard| {
            let news = match heard {
                Heard::Ready => {
                    *is_ready = true;
                    Ok(News::Ready)
                }
                Heard::Message(message) => news(&message),
                _ => return,
            };
            if result.is_ok() {
                result = news.and_then(|news| told(session, news));
            }
        });
        result?;
        if read.is_err() || !connection.is_open() {
            link.ended = link.connection.take();
            let now_ns = monotonic_ns();
            let lasted = now_ns - link.attempted_ns >= LASTING_NS;
            link.pause_ns = if lasted { *PAUSE_NS.start() } else { (link.pause_ns * 2).min(*PAUSE_NS.end()) };
            link.attempted_ns = now_ns;
            let was_there = std::mem::take(&mut link.is_ready);
            told(session, News::Ended { why: read.err().map(|error| format!("{error:#}")), was_there })?;
        }
        Ok(())
    }

    /// Says who is calling.
    pub fn hello(&mut self, session: Session, epoch: Epoch, incarnation: Incarnation) {
        let name = std::mem::take(&mut self.name);
        self.command(session, &ClientFrame::Hello { epoch, incarnation, name: &name });
        self.name = name;
    }

    /// Puts a command behind what waits.
    pub fn command(&mut self, session: Session, command: &ClientFrame<'_>) {
        self.frame.clear();
        command.encode(&mut self.frame);
        let frame = std::mem::take(&mut self.frame);
        self.message(session, &[&frame]);
        self.frame = frame;
    }

    /// Puts a message behind what waits; nothing where there is no session.
    pub fn message(&mut self, session: Session, frames: &[&[u8]]) {
        if let Some(connection) = self.connection(session) {
            connection.say(|zmtp, out| zmtp.message(frames, out));
        }
    }

    /// Whether more may be put behind what waits.
    pub fn has_room(&mut self, session: Session) -> bool {
        self.connection(session).is_some_and(|connection| connection.has_room())
    }

    /// Writes what the sockets take.
    pub fn flush(&mut self) {
        self.links.iter_mut().filter_map(|link| link.connection.as_mut()).for_each(Connection::flush);
    }

    fn connection(&mut self, session: Session) -> Option<&mut Connection<Zmtp>> {
        self.links.iter_mut().find(|link| link.session == session)?.connection.as_mut()
    }
}

/// What a message of a broker is.
fn news<'b>(message: &Message<'b>) -> anyhow::Result<News<'b>> {
    if let Some([command]) = message.split() {
        return Ok(News::Command(ClientFrame::decode(command)?));
    }
    let Some([_, payload, header]) = message.split() else {
        bail!("a broker sends commands of one frame and events of three: {} came", message.frame_count());
    };
    Ok(News::Event { payload, header: EventHeader::decode(header)? })
}

/// Nanoseconds since 1970 (UTC) at the zero of CLOCK_MONOTONIC.
pub fn utc_at_zero_ns() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX).saturating_sub(monotonic_ns())
}

/// The answer to a broker that asks what our clock shows; nothing to any other command.
pub fn clock_reply(command: &ClientFrame<'_>, epoch: Epoch, utc_ns: u64) -> Option<ClientFrame<'static>> {
    match *command {
        ClientFrame::ClockRequest { sent_utc_ns, .. } => {
            Some(ClientFrame::ClockReply { epoch, sent_utc_ns, received_utc_ns: utc_ns, replied_utc_ns: utc_ns })
        }
        _ => None,
    }
}
