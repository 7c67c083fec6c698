//! A provider for tunnels and for what they are compared with: it takes bytes, or gives them, as it is asked to. One thread, however many connections.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustls::{ServerConfig, ServerConnection};

use super::secured::Secured;

/// What is asked: a letter, and a number of bytes.
const QUESTION_BYTES: usize = 9;
const TAKE: u8 = b'T';
const GIVE: u8 = b'G';
/// Bytes that are written or read at once.
pub const PIECE_BYTES: usize = 64 * 1024;
const EVENTS_PER_TURN: usize = 256;
const LISTENER: Token = Token(usize::MAX);

/// What a consumer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To send so many bytes, at least one, and to be answered with one when they are there.
    Take(u64),
    /// To be sent so many bytes, at least one.
    Give(u64),
}

impl Wish {
    fn write(self) -> [u8; QUESTION_BYTES] {
        let (letter, count) = match self {
            Self::Take(count) => (TAKE, count),
            Self::Give(count) => (GIVE, count),
        };
        let mut question = [letter; QUESTION_BYTES];
        question[1..].copy_from_slice(&count.to_be_bytes());
        question
    }

    fn read(question: [u8; QUESTION_BYTES]) -> io::Result<Self> {
        let [letter, count @ ..] = question;
        match (letter, u64::from_be_bytes(count)) {
            (TAKE, count @ 1..) => Ok(Self::Take(count)),
            (GIVE, count @ 1..) => Ok(Self::Give(count)),
            (letter, count) => {
                Err(io::Error::other(format!("asked for {letter} and {count} bytes: T or G is known, and at least one byte")))
            }
        }
    }

    /// Asks for it on a connection that blocks, and waits until it is done.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn ask(self, connection: &mut (impl Read + Write)) -> io::Result<()> {
        let mut piece = vec![b'x'; PIECE_BYTES];
        connection.write_all(&self.write())?;
        let mut left = match self {
            Self::Take(mut count) => {
                while count > 0 {
                    let length = count.min(PIECE_BYTES as u64);
                    connection.write_all(&piece[..as_length(length)])?;
                    count -= length;
                }
                1
            }
            Self::Give(count) => count,
        };
        connection.flush()?;
        while left > 0 {
            let space = as_length(left.min(PIECE_BYTES as u64));
            match connection.read(&mut piece[..space])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                length => left -= length as u64,
            }
        }
        Ok(())
    }
}

fn as_length(count: u64) -> usize {
    usize::try_from(count).expect("no longer than a piece")
}

/// The provider; its thread ends with the process.
pub struct Provider {
    /// Where it is.
    pub address: SocketAddr,
}

impl Provider {
    /// Begins to serve.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn start(config: Arc<ServerConfig>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the provider cannot listen")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut listener = mio::net::TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        thread::Builder::new().name("provider".into()).spawn(move || serve(poll, &listener, &config))?;
        Ok(Self { address })
    }
}

fn serve(mut poll: Poll, listener: &mio::net::TcpListener, config: &Arc<ServerConfig>) -> io::Result<()> {
    let (mut connections, mut next) = (BTreeMap::new(), 0);
    let (mut events, mut piece) = (Events::with_capacity(EVENTS_PER_TURN), vec![b'x'; PIECE_BYTES]);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    poll.registry().register(&mut socket, Token(next), Interest::READABLE | Interest::WRITABLE)?;
                    let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                    connections.insert(next, Connection { stream: Secured::new(socket, session), phase: Phase::Question([0; 9], 0) });
                    next += 1;
                }
                continue;
            }
            let Some(connection) = connections.get_mut(&event.token().0) else { continue };
            // Whoever asks sees that a connection broke.
            if !connection.advance(&mut piece).unwrap_or(false) {
                connections.remove(&event.token().0);
            }
        }
    }
}

struct Connection {
    stream: Secured<TcpStream>,
    phase: Phase,
}

enum Phase {
    /// So much of a question is there.
    Question([u8; QUESTION_BYTES], usize),
    Taking(u64),
    Giving(u64),
}

impl Connection {
    /// Goes on as far as the socket lets it; false: the consumer has ended.
    fn advance(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        loop {
            let moved = match &mut self.phase {
                Phase::Question(question, filled) => self.stream.read(&mut question[*filled..]).inspect(|length| *filled += length),
                Phase::Taking(left) => {
                    let space = as_length((*left).min(PIECE_BYTES as u64));
                    self.stream.read(&mut piece[..space]).inspect(|length| *left -= *length as u64)
                }
                Phase::Giving(left) => {
                    let length = as_length((*left).min(PIECE_BYTES as u64));
                    self.stream.write(&piece[..length]).inspect(|length| *left -= *length as u64)
                }
            };
            match moved {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
            self.phase = match self.phase {
                Phase::Question(question, QUESTION_BYTES) => match Wish::read(question)? {
                    Wish::Take(count) => Phase::Taking(count),
                    Wish::Give(count) => Phase::Giving(count),
                },
                Phase::Taking(0) => Phase::Giving(1),
                Phase::Giving(0) => Phase::Question([0; QUESTION_BYTES], 0),
                _ => continue,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::intercloud::chain::Chain;
    use crate::peer;

    #[test]
    fn bytes_go_both_ways_directly_and_by_forwarders() {
        let tls = peer::mutual();
        let provider = Provider::start(tls.serving.clone()).unwrap();
        for forwarders in [0, 3] {
            let chain = Chain::start(forwarders, provider.address, &tls.serving, &tls.calling).unwrap();
            let socket = TcpStream::connect(chain.address()).unwrap();
            let session = rustls::ClientConnection::new(tls.calling.clone(), "127.0.0.1".try_into().unwrap()).unwrap();
            let mut consumer = Secured::new(socket, session);
            consumer.handshake().unwrap();
            // More comes than is kept while the forwarders do their handshakes.
            for wish in [Wish::Take(1_000_000), Wish::Give(1), Wish::Take(1), Wish::Take(3_000_000), Wish::Give(3_000_000), Wish::Give(100)]
            {
                wish.ask(&mut consumer).unwrap();
            }
            assert!(Wish::Take(0).ask(&mut consumer).is_err(), "nothing is no wish");
            drop(consumer);
            chain.end().unwrap();
        }
    }
}
