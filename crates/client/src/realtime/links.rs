//! The sessions to both brokers: kept warm, begun again when they end, served by one poll.

use std::{io, os::fd::AsFd, sync::Arc, time::Duration};

use bodkin_broker::{Instant, publisher::Session};
use bodkin_zmtp::{ClientSettings, Metadata, PropertyError, SocketType};
use mio::{Events, Poll, Token};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    broker_address::BrokerAddress,
    brokers::{Brokers, SessionLimits},
    clock::Clock,
    link::{Heard, Link},
    session_end::SessionEnd,
};

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Tells a broker that events' metadata are wanted.
const METADATA_PROPERTY: &str = "X-Bodkin-Metadata";

/// Links there are at most.
const LINKS_MAX: usize = 2;

pub(super) struct Links {
    poll: Poll,
    events: Events,
    clock: Clock,
    limits: SessionLimits,
    settings: Arc<ClientSettings>,
    input: Box<[u8]>,
    places: Vec<Place>,
}

/// The way to one broker.
struct Place {
    session: Session,
    address: BrokerAddress,
    state: State,
    /// Waited for in front of the next attempt.
    pause: Duration,
}

enum State {
    Away {
        until: Instant,
    },
    Open(Box<Link>),
    /// A write has failed outside of a turn, which will tell it.
    Broken(SessionEnd),
}

impl Links {
    pub fn new(brokers: &Brokers) -> io::Result<Self> {
        let clock = Clock::start();
        let identity = |error: PropertyError| io::Error::new(io::ErrorKind::InvalidInput, format!("the client's name: {error}"));
        let metadata = Metadata::of(SocketType::Dealer).with("Identity", brokers.name.as_bytes()).map_err(identity)?;
        let metadata = metadata.with(METADATA_PROPERTY, b"yes").map_err(io::Error::other)?;
        let (limits, now) = (brokers.limits, clock.now());
        let place = |(session, address)| Place { session, address, state: State::Away { until: now }, pause: limits.reconnect_min };
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(LINKS_MAX),
            clock,
            limits,
            settings: Arc::new(ClientSettings { limits: limits.zmtp, metadata, security: brokers.security.clone() }),
            input: vec![0; READ_BYTES].into(),
            places: brokers.sessions().map(place).collect(),
        })
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether this session's handshake is over.
    pub fn is_ready(&self, session: Session) -> bool {
        self.link(session).is_some_and(Link::is_ready)
    }

    /// Whether more may be sent on this session now.
    pub fn has_room(&self, session: Session) -> bool {
        self.link(session).is_some_and(Link::has_room)
    }

    /// Puts a message behind what this session sends; nothing if it is not ready.
    pub fn push(&mut self, session: Session, frames: &[&[u8]]) {
        let place = self.places.iter_mut().find(|place| place.session == session);
        if let Some(Place { state: State::Open(link), .. }) = place {
            link.push(frames);
        }
    }

    /// Writes what the sockets take.
    pub fn flush(&mut self) {
        for place in &mut self.places {
            let State::Open(link) = &mut place.state else { continue };
            if let Err(end) = link.flush() {
                place.state = State::Broken(end);
            }
        }
    }

    /// Waits for at most `wait`, and not beyond `timer`, until something comes, and tells it. What is told goes out by the next [`Self::flush`]; an error of
    /// `heard` ends the session.
    pub fn turn(
        &mut self,
        wait: Duration,
        timer: Option<Instant>,
        heard: &mut impl FnMut(Instant, Session, Heard<'_>) -> Result<(), SessionEnd>,
    ) -> io::Result<()> {
        let wait = self.open_due(wait, timer);
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.events.clear(),
            polled => polled?,
        }
        for event in &self.events {
            if let State::Open(link) = &mut self.places[event.token().0].state {
                link.woken(event);
            }
        }
        let now = self.clock.now();
        for place in &mut self.places {
            place.serve(now, self.limits, &mut self.input, heard);
        }
        Ok(())
    }

    /// Waits for what [`Self::turn`] would wait for, without holding up the thread.
    pub async fn ready(&mut self, wait: Duration, timer: Option<Instant>) -> io::Result<()> {
        let wait = self.open_due(wait, timer);
        if wait.is_zero() {
            return Ok(());
        }
        // Made anew each time: what the poll has found already counts.
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that may be closed too early; this one is borrowed from the poll"
        )]
        let poll = AsyncFd::with_interest(self.poll.registry().as_fd(), Interest::READABLE)?;
        match tokio::time::timeout(wait, poll.readable()).await {
            Ok(readable) => readable.map(drop),
            Err(_elapsed) => Ok(()),
        }
    }

    /// Begins what is to be begun, and gives how long there is nothing else to do unless something comes.
    fn open_due(&mut self, wait: Duration, timer: Option<Instant>) -> Duration {
        let now = self.clock.now();
        for (index, place) in self.places.iter_mut().enumerate() {
            place.open_if_due(self.poll.registry(), Token(index), &self.settings, self.limits, now);
        }
        let until = self.places.iter().map(|place| place.next_timer(now)).chain(timer).fold(now.plus(wait), Instant::min);
        until.since(now)
    }

    fn link(&self, session: Session) -> Option<&Link> {
        self.places.iter().find(|place| place.session == session).and_then(|place| match &place.state {
            State::Open(link) => Some(&**link),
            State::Away { .. } | State::Broken(_) => None,
        })
    }
}

impl Place {
    fn open_if_due(&mut self, registry: &mio::Registry, token: Token, settings: &Arc<ClientSettings>, limits: SessionLimits, now: Instant) {
        if matches!(self.state, State::Away { until } if until <= now) {
            self.state = match Link::open(registry, token, &self.address, settings.clone(), limits, now) {
                Ok(link) => State::Open(Box::new(link)),
                Err(error) => State::Broken(error.into()),
            };
        }
    }

    fn next_timer(&self, now: Instant) -> Instant {
        match &self.state {
            State::Away { until } => *until,
            State::Open(link) if link.is_unfinished() => now,
            State::Open(link) => link.next_timer(now),
            State::Broken(_) => now,
        }
    }

    fn serve(
        &mut self,
        now: Instant,
        limits: SessionLimits,
        input: &mut [u8],
        heard: &mut impl FnMut(Instant, Session, Heard<'_>) -> Result<(), SessionEnd>,
    ) {
        let session = self.session;
        let away = State::Away { until: now.plus(self.pause) };
        let end = match &mut self.state {
            State::Away { .. } => return,
            State::Open(link) => match link.serve(now, input, &mut |what| heard(now, session, what)) {
                Ok(()) if link.is_ready() => return self.pause = limits.reconnect_min,
                Ok(()) => return,
                Err(end) => {
                    self.state = away;
                    end
                }
            },
            State::Broken(_) => match std::mem::replace(&mut self.state, away) {
                State::Broken(end) => end,
                State::Away { .. } | State::Open(_) => unreachable!("it was looked at"),
            },
        };
        self.pause = (self.pause * 2).min(limits.reconnect_max);
        // The session is over already: that it could not be told changes nothing.
        let _ = heard(now, session, Heard::Ended(end));
    }
}
