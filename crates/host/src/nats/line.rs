//! A line to NATS: one connection after the other to a list of servers, carried by one thread.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    io,
    time::{Duration, Instant},
};

use bodkin_nats::{
    client::{Fault, Options},
    servers::{Pause, Servers},
};
use mio::{Events, Poll, Token, Waker};

use super::{Connection, NatsPlace, NatsServer, inbox};

/// From a connection to the end of the greetings.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// Without a byte for so long a server is asked whether it is there, and after as long again given up.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Reads of a turn, so that other work of the thread goes on beside a server that says much.
const READS_OF_TURN: usize = 16;
/// Steps of a turn, for the same reason.
const STEPS_OF_TURN: usize = 256;
/// Bytes that wait for the server, beyond which there is no room for more.
const UNSENT_BYTES_MAX: usize = 256 * 1024;
/// How long is waited for that at a time.
const ROOM_LOOK: Duration = Duration::from_millis(100);
/// Whoever has something to say wakes the thread by it.
const WAKE_UP: Token = Token(1);

/// What is said over a line: a machine with time since any one instant.
pub(crate) trait Speaker {
    /// A server is connected to.
    fn connected(&mut self, options: Options, now: Duration);
    /// The connection is at its end.
    fn disconnected(&mut self);
    /// Bytes have come.
    fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Fault>;
    /// Does what is due; gives when to come again. Where there is no room, much waits to be written already.
    fn step(&mut self, now: Duration, has_room: bool) -> Result<Duration, Fault>;
    /// Bytes for the server, behind what is in `out`. They are asked for while there is room: how much may wait until then is the speaker's to limit.
    fn take_out(&mut self, out: &mut Vec<u8>);
    /// The server is about to go, or it is over otherwise: connect to another one.
    fn leaves(&mut self) -> bool;
}

/// A connection that has ended, or was not made.
#[derive(Debug)]
pub(crate) struct LineEnd {
    /// To which server.
    pub server: NatsServer,
    /// Why.
    pub error: io::Error,
}

impl fmt::Display for LineEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.server, self.error)
    }
}

/// One connection after the other.
pub(crate) struct Line {
    /// What servers show of us.
    name: String,
    place: NatsPlace,
    servers: Servers,
    poll: Poll,
    events: Events,
    connection: Option<(usize, Connection)>,
    /// The next server, and when it is tried.
    next: usize,
    due: Instant,
    begun: Instant,
    random: RandomState,
    dials: u64,
}

impl Line {
    /// Without a connection.
    ///
    /// # Errors
    /// The system has no poll for it.
    pub fn new(name: String, place: NatsPlace, pause: Pause) -> io::Result<Self> {
        let mut servers = Servers::new(place.servers.len(), pause);
        let (next, _) = servers.next(0);
        let (poll, events, now) = (Poll::new()?, Events::with_capacity(4), Instant::now());
        Ok(Self { name, place, servers, poll, events, connection: None, next, due: now, begun: now, random: RandomState::new(), dials: 0 })
    }

    /// Wakes the thread that waits. There is one for a line.
    ///
    /// # Errors
    /// The system has none.
    pub fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), WAKE_UP)
    }

    /// The time that speakers have.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A connection was of use: pauses begin anew.
    pub fn reached(&mut self) {
        self.servers.reached();
    }

    /// Goes to the server that leads what is spoken of, if another one of the list may be that; `name` is what the one is called that is connected to. True: what was said here is over, and the next turn connects.
    pub fn seek(&mut self, speaker: &mut impl Speaker, name: &str, leader: &str) -> bool {
        let Some((at, _)) = self.connection else { return false };
        if !self.servers.seeks(at, name, leader) {
            return false;
        }
        self.connection = None;
        speaker.disconnected();
        let (next, pause) = self.servers.next(0);
        (self.next, self.due) = (next, Instant::now() + pause);
        true
    }

    /// Waits until something comes, somebody wakes the thread, or for so long.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&mut self, longest: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(longest)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            polled => polled,
        }
    }

    /// Connects, if that is due, which may wait for some seconds; reads, does what is due, and writes. `Ok` has how long there is nothing to do.
    ///
    /// # Errors
    /// A connection is at its end, or could not be made; the next one is tried when it is due.
    pub fn turn(&mut self, speaker: &mut impl Speaker) -> Result<Duration, LineEnd> {
        if self.connection.is_none() {
            let left = self.due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Ok(left);
            }
            self.dial(speaker)?;
        }
        let exchanged = self.exchange(speaker);
        match exchanged {
            Ok(_) if speaker.leaves() => Err(self.ends(speaker, io::Error::other("the server is about to go"))),
            Ok(next) => Ok(next),
            Err(error) => {
                // With TLS 1.3 a refusal of the client certificate arrives after the handshake.
                let error = match &self.connection {
                    Some((_, connection)) => connection.explain(error),
                    None => error,
                };
                Err(self.ends(speaker, error))
            }
        }
    }

    fn dial(&mut self, speaker: &mut impl Speaker) -> Result<(), LineEnd> {
        let at = self.next;
        let server = &self.place.servers[at];
        match Connection::open(server, self.place.tls.as_deref(), self.poll.registry()) {
            Ok(connection) => {
                let options = Options {
                    name: self.name.clone(),
                    credentials: self.place.credentials.clone(),
                    inbox: inbox(),
                    is_encrypted: server.is_tls,
                    greeting_wait_max: GREETING_MAX,
                    silence_max: SILENCE_MAX,
                };
                speaker.connected(options, self.now());
                self.connection = Some((at, connection));
                Ok(())
            }
            Err(error) => Err(self.fails(at, error)),
        }
    }

    fn exchange(&mut self, speaker: &mut impl Speaker) -> io::Result<Duration> {
        let begun = self.begun;
        let Some((_, connection)) = &mut self.connection else { return Ok(Duration::ZERO) };
        let mut is_read = false;
        for _ in 0..READS_OF_TURN {
            let Some(bytes) = connection.read()? else {
                is_read = true;
                break;
            };
            speaker.receive(bytes, begun.elapsed()).map_err(io::Error::other)?;
        }
        for _ in 0..STEPS_OF_TURN {
            let now = begun.elapsed();
            let had_room = connection.unsent_bytes() <= UNSENT_BYTES_MAX;
            let next = speaker.step(now, had_room).map_err(io::Error::other)?;
            // What a server does not read stays with the speaker, which has a limit for it.
            if had_room {
                speaker.take_out(connection.out());
            }
            connection.write()?;
            let has_got_room = !had_room && connection.unsent_bytes() <= UNSENT_BYTES_MAX;
            // What was not read raises no further event; what is not written does once there is room.
            match next.checked_sub(now).filter(|left| !left.is_zero()) {
                _ if has_got_room => {}
                Some(left) => return Ok(if is_read { left } else { Duration::ZERO }),
                None if !had_room => return Ok(if is_read { ROOM_LOOK } else { Duration::ZERO }),
                None => {}
            }
        }
        // There is more to do, and perhaps to read.
        Ok(Duration::ZERO)
    }

    fn ends(&mut self, speaker: &mut impl Speaker, error: io::Error) -> LineEnd {
        let at = self.connection.take().map_or(self.next, |(at, _)| at);
        speaker.disconnected();
        self.fails(at, error)
    }

    /// Which server is next, and when.
    fn fails(&mut self, at: usize, error: io::Error) -> LineEnd {
        self.dials += 1;
        let (next, pause) = self.servers.next(self.random.hash_one(self.dials) as u32);
        (self.next, self.due) = (next, Instant::now() + pause);
        LineEnd { server: self.place.servers[at].clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        thread::JoinHandle,
    };

    use bodkin_nats::client::Client;

    use super::*;

    /// Connects, and says nothing by itself.
    struct Mute(Option<Client>);

    impl Speaker for Mute {
        fn connected(&mut self, options: Options, now: Duration) {
            self.0 = Some(Client::new(options, now));
        }

        fn disconnected(&mut self) {
            self.0 = None;
        }

        fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Fault> {
            self.0.as_mut().map_or(Ok(()), |client| client.receive(bytes, now, &mut Vec::new()))
        }

        fn step(&mut self, now: Duration, _has_room: bool) -> Result<Duration, Fault> {
            self.0.as_mut().map_or(Ok(Duration::MAX), |client| client.beat(now, &mut Vec::new()))
        }

        fn take_out(&mut self, out: &mut Vec<u8>) {
            self.0.iter_mut().for_each(|client| client.take_out(out));
        }

        fn leaves(&mut self) -> bool {
            false
        }
    }

    /// A server of one connection, which goes on like this once it has greeted; with it a line there.
    fn line_to(goes_on: impl FnOnce(TcpStream) + Send + 'static) -> (Line, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("nats://{}", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.write_all(b"INFO {\"server_name\":\"n\",\"headers\":true,\"max_payload\":1048576}\r\n").expect("it is read");
            let (mut said, mut space) = (Vec::new(), [0; 1024]);
            while !said.ends_with(b"PING\r\n") {
                let bytes = socket.read(&mut space).expect("it greets");
                said.extend_from_slice(&space[..bytes]);
            }
            socket.write_all(b"PONG\r\n").expect("it is read");
            goes_on(socket);
        });
        (Line::new("test".to_owned(), NatsPlace::parse(&url, None).expect("a place"), Pause::default()).expect("a poll"), server)
    }

    #[test]
    fn a_server_that_asks_for_answers_and_reads_none_is_given_up_before_they_fill_the_memory() {
        let (mut line, server) = line_to(|mut socket| {
            let pings = b"PING\r\n".repeat(10_000);
            // Until the connection is at its end.
            while socket.write_all(&pings).is_ok() {}
        });
        let (mut speaker, begun, mut most) = (Mute(None), Instant::now(), 0);
        let end = loop {
            match line.turn(&mut speaker) {
                Ok(next) => line.wait(next.min(Duration::from_secs(1))).expect("a poll"),
                Err(end) => break end,
            }
            most = most.max(line.connection.as_ref().map_or(0, |(_, connection)| connection.unsent_bytes()));
            // What answers all that a turn reads is on top.
            assert!(most <= UNSENT_BYTES_MAX + (1 << 20), "{most} bytes wait for the socket");
            assert!(begun.elapsed() < Duration::from_secs(60), "{most} bytes wait, and it goes on");
        };
        assert!(end.to_string().contains("the server does not read them"), "{end}");
        server.join().expect("it ends with the connection");
    }
}
