//! One open connection to a broker: socket, ZMTP, what waits to be sent.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use bodkin_broker::Instant;
use bodkin_zmtp::{Beat, ClientSettings, Connection, Event, Heartbeat, Message, Random};
use mio::{Interest, Registry, Token};

use super::{
    broker_address::{BrokerAddress, Socket},
    brokers::SessionLimits,
    session_end::SessionEnd,
};

/// Reads of one link in one turn; the rest of what has come waits for the next one.
const READS_PER_TURN: usize = 16;

/// What a link tells.
pub(super) enum Heard<'b> {
    Ready,
    Message(Message<'b>),
    Ended(SessionEnd),
}

pub(super) struct Link {
    socket: Box<dyn Socket>,
    zmtp: Connection,
    limits: SessionLimits,
    opened_at: Instant,
    is_connected: bool,
    /// Watches the broker once the handshake is over.
    heartbeat: Option<Heartbeat>,
    /// The socket may have something; false until the poll says so once it had nothing.
    may_read: bool,
    may_write: bool,
    out: Vec<u8>,
    written: usize,
}

impl Link {
    /// Begins to connect.
    pub fn open(
        registry: &Registry,
        token: Token,
        address: &BrokerAddress,
        settings: Arc<ClientSettings>,
        limits: SessionLimits,
        now: Instant,
    ) -> io::Result<Self> {
        let mut socket = address.connect()?;
        registry.register(&mut *socket, token, Interest::READABLE | Interest::WRITABLE)?;
        let mut octets = [0; Random::OCTETS];
        let drawn = rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut octets);
        drawn.map_err(|_| io::Error::other("the system gives no random octets"))?;
        let mut out = Vec::new();
        let zmtp = Connection::client(settings, Random::new(&mut octets), &mut out);
        Ok(Self {
            socket,
            zmtp,
            limits,
            opened_at: now,
            is_connected: false,
            heartbeat: None,
            may_read: false,
            may_write: false,
            out,
            written: 0,
        })
    }

    /// What the poll has found.
    pub fn woken(&mut self, event: &mio::event::Event) {
        self.may_read |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.may_write |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    pub fn is_ready(&self) -> bool {
        self.heartbeat.is_some()
    }

    /// Whether there is something to do that no poll will tell.
    pub fn is_unfinished(&self) -> bool {
        self.is_connected && self.may_answer() && self.may_read || self.is_connected && self.may_write && self.waiting() > 0
    }

    /// Whether more may be put behind what waits to be sent.
    pub fn has_room(&self) -> bool {
        self.waiting() < self.limits.send_bytes_max
    }

    /// Whether what comes may be answered. That has room behind a full queue of events: a broker that waits for its answers to be read before it
    /// reads on must be read.
    fn may_answer(&self) -> bool {
        self.waiting() < self.limits.send_bytes_max.saturating_mul(2)
    }

    /// Puts a message behind what waits to be sent; nothing before the handshake is over.
    pub fn push(&mut self, frames: &[&[u8]]) {
        if let Some(mut sender) = self.zmtp.sender().filter(|_| self.heartbeat.is_some()) {
            sender.message(frames, &mut self.out);
        }
    }

    /// Reads, watches and writes; `heard` is told what came.
    pub fn serve(
        &mut self,
        now: Instant,
        input: &mut [u8],
        heard: &mut impl FnMut(Heard<'_>) -> Result<(), SessionEnd>,
    ) -> Result<(), SessionEnd> {
        if !self.is_ready() && now.since(self.opened_at) >= self.limits.connect_timeout {
            return Err(SessionEnd::Handshake(self.limits.connect_timeout));
        }
        if !self.is_connected && !self.connected()? {
            return Ok(());
        }
        let read = self.read(now, input, heard);
        // What was written in front of the end may be the reason that the broker is told.
        let written = self.flush();
        read?;
        self.watch(now)?;
        written
    }

    /// Whether the connection is there.
    fn connected(&mut self) -> Result<bool, SessionEnd> {
        if !self.may_write {
            return Ok(false);
        }
        if let Some(error) = self.socket.take_error()? {
            return Err(error.into());
        }
        match self.socket.begin() {
            Ok(()) => self.is_connected = true,
            Err(error) if error.kind() == ErrorKind::NotConnected => self.may_write = false,
            Err(error) => return Err(error.into()),
        }
        Ok(self.is_connected)
    }

    fn read(
        &mut self,
        now: Instant,
        input: &mut [u8],
        heard: &mut impl FnMut(Heard<'_>) -> Result<(), SessionEnd>,
    ) -> Result<(), SessionEnd> {
        for _ in 0..READS_PER_TURN {
            // Who does not take our answers is not asked for more to answer.
            if !self.may_read || !self.may_answer() {
                break;
            }
            match self.socket.read(input) {
                Ok(0) => return Err(SessionEnd::Closed),
                Ok(count) => self.take(now, &mut input[..count], heard)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_read = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        now: Instant,
        input: &mut [u8],
        heard: &mut impl FnMut(Heard<'_>) -> Result<(), SessionEnd>,
    ) -> Result<(), SessionEnd> {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.heard(since_start(now));
        }
        let mut taken = 0;
        loop {
            let received = self.zmtp.receive(&mut input[taken..], &mut self.out)?;
            taken += received.taken;
            match (received.event, &mut self.heartbeat) {
                (None, _) => return Ok(()),
                (Some(Event::Ready), heartbeat) => {
                    *heartbeat = Some(Heartbeat::new(self.limits.heartbeat, since_start(now)));
                    heard(Heard::Ready)?;
                }
                (Some(Event::Message(message)), _) => heard(Heard::Message(message))?,
                (Some(Event::Ping { ttl }), Some(heartbeat)) => heartbeat.told(ttl),
                // Behind the handshake nothing else concerns a DEALER.
                (Some(_), _) => {}
            }
        }
    }

    fn watch(&mut self, now: Instant) -> Result<(), SessionEnd> {
        let Some(heartbeat) = &mut self.heartbeat else { return Ok(()) };
        match heartbeat.poll(since_start(now)) {
            Beat::Wait { .. } => Ok(()),
            Beat::Dead => Err(SessionEnd::Silent),
            Beat::Ping => {
                let mut sender = self.zmtp.sender().expect("the handshake is over");
                sender.ping(Duration::ZERO, b"", &mut self.out);
                self.flush()
            }
        }
    }

    /// When [`Self::serve`] has to be called although nothing has come.
    pub fn next_timer(&self, now: Instant) -> Instant {
        // A copy is asked: who is told to send a PING is told once.
        match self.heartbeat.map(|mut heartbeat| heartbeat.poll(since_start(now))) {
            None => self.opened_at.plus(self.limits.connect_timeout),
            Some(Beat::Wait { until }) => Instant::default().plus(until),
            Some(Beat::Ping | Beat::Dead) => now,
        }
    }

    /// Writes as much as the socket takes.
    pub fn flush(&mut self) -> Result<(), SessionEnd> {
        while self.is_connected && self.may_write && self.waiting() > 0 {
            match self.socket.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.waiting() == 0 {
            self.out.clear();
            self.written = 0;
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.written
    }
}

fn since_start(now: Instant) -> Duration {
    now.since(Instant::default())
}
