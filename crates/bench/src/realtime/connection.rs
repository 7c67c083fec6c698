//! One connection to a broker: a socket, what it speaks, what waits to be sent.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use mio::{Interest, Registry, Token};

use super::dialect::{Dialect, Heard};
use crate::client::ANSWER_WAIT_MAX;

/// Bytes that may wait to be sent; an event that comes then is not sent, and counted.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Bytes of one read while a connection is opened.
const PIECE_BYTES: usize = 16 * 1024;

/// A connection whose handshake is over.
pub struct Connection<D> {
    stream: mio::net::TcpStream,
    dialect: D,
    /// What came and is no whole message yet.
    kept: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    may_write: bool,
    is_open: bool,
}

impl Dialect for Box<dyn Dialect> {
    fn open(&mut self, out: &mut Vec<u8>) {
        (**self).open(out);
    }

    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>) {
        (**self).subscribe(topic, out);
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        (**self).settle(out);
    }

    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>) {
        (**self).publish(topic, payload, out);
    }

    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        (**self).receive(input, out, heard)
    }
}

impl<D: Dialect> Connection<D> {
    /// Connects, shakes hands, and subscribes to these topics, so that nothing of them is missed from now on.
    ///
    /// # Errors
    /// No connection, no answer within [`ANSWER_WAIT_MAX`], or a refusal.
    pub fn open<'t>(address: SocketAddr, mut dialect: D, topics: impl Iterator<Item = &'t str>) -> anyhow::Result<Self> {
        let stream =
            std::net::TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX).with_context(|| format!("no connection to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        let mut opening = Opening { stream, out: Vec::new(), kept: Vec::new() };
        dialect.open(&mut opening.out);
        opening.wait(&mut dialect, &|heard| matches!(heard, Heard::Ready)).context("the handshake")?;
        let mut asked = false;
        for topic in topics {
            dialect.subscribe(topic, &mut opening.out);
            asked = true;
        }
        if asked {
            dialect.settle(&mut opening.out);
            opening.wait(&mut dialect, &|heard| matches!(heard, Heard::Settled)).context("the subscriptions")?;
        }
        let Opening { stream, out, kept } = opening;
        stream.set_nonblocking(true)?;
        let stream = mio::net::TcpStream::from_std(stream);
        Ok(Self { stream, dialect, kept, out, written: 0, may_write: true, is_open: true })
    }

    /// One that somebody else has opened, and that needs no handshake.
    ///
    /// # Errors
    /// The system refuses.
    pub fn over(stream: std::net::TcpStream, dialect: D) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let stream = mio::net::TcpStream::from_std(stream);
        Ok(Self { stream, dialect, kept: Vec::new(), out: Vec::new(), written: 0, may_write: true, is_open: true })
    }

    /// Begins to connect and to shake hands; [`Heard::Ready`] says when that is done.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn begin(address: SocketAddr, mut dialect: D) -> anyhow::Result<Self> {
        let stream = mio::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut out = Vec::new();
        dialect.open(&mut out);
        Ok(Self { stream, dialect, kept: Vec::new(), out, written: 0, may_write: false, is_open: true })
    }

    /// Has this poll watch it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn watch(&mut self, registry: &Registry, token: Token) -> anyhow::Result<()> {
        registry.register(&mut self.stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(())
    }

    /// Whether the broker still has its end open.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Puts an event behind what waits; gives whether there was room.
    pub fn publish(&mut self, topic: &str, payload: &[u8]) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.dialect.publish(topic, payload, &mut self.out);
        }
        has_room
    }

    /// Whether more may be put behind what waits to be sent.
    pub fn has_room(&self) -> bool {
        self.is_open && self.out.len() - self.written < WAITING_BYTES_MAX
    }

    /// Lets what is spoken write what it wants behind what waits.
    pub fn say(&mut self, what: impl FnOnce(&mut D, &mut Vec<u8>)) {
        what(&mut self.dialect, &mut self.out);
    }

    /// The socket may take more.
    pub fn may_write(&mut self) {
        self.may_write = true;
    }

    /// Writes what the socket takes. A broker that is gone is no error: [`Self::is_open`] tells.
    pub fn flush(&mut self) {
        while self.is_open && self.may_write && self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_open = false,
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    /// Reads until the socket is empty, and tells what came.
    ///
    /// # Errors
    /// What came is not the protocol.
    pub fn read(&mut self, piece: &mut [u8], heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<()> {
        while self.is_open {
            match self.stream.read(piece) {
                Ok(0) => self.is_open = false,
                Ok(length) => {
                    take(&mut self.dialect, &mut self.kept, &mut piece[..length], &mut self.out, heard)?;
                    // A short read has emptied the socket; what comes later makes a new event.
                    if length < piece.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_open = false,
            }
        }
        Ok(())
    }
}

/// Gives what came to the dialect, behind what is kept of before, and keeps what it does not take yet.
fn take(
    dialect: &mut impl Dialect,
    kept: &mut Vec<u8>,
    piece: &mut [u8],
    out: &mut Vec<u8>,
    heard: &mut dyn FnMut(Heard<'_>),
) -> anyhow::Result<()> {
    if kept.is_empty() {
        let taken = dialect.receive(piece, out, heard)?;
        kept.extend_from_slice(&piece[taken..]);
        return Ok(());
    }
    kept.extend_from_slice(piece);
    let taken = dialect.receive(kept, out, heard)?;
    kept.drain(..taken);
    Ok(())
}

/// A connection that is not ready yet: its thread waits in the read.
struct Opening {
    stream: std::net::TcpStream,
    out: Vec<u8>,
    kept: Vec<u8>,
}

impl Opening {
    fn wait(&mut self, dialect: &mut impl Dialect, wanted: &dyn Fn(&Heard<'_>) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + ANSWER_WAIT_MAX;
        let mut piece = vec![0; PIECE_BYTES];
        let mut found = false;
        while !found {
            self.stream.write_all(&self.out)?;
            self.out.clear();
            ensure!(Instant::now() < deadline, "it is not answered");
            let length = self.stream.read(&mut piece).context("it is not answered")?;
            if length == 0 {
                bail!("the broker has closed the connection");
            }
            take(dialect, &mut self.kept, &mut piece[..length], &mut self.out, &mut |heard| found |= wanted(&heard))?;
        }
        Ok(())
    }
}
