//! One connection to another node: bytes in, frames out, and the other way round.

use std::io;

use bodkin_broker::{
    Instant, Node,
    wire::{LINK_FRAME_BYTES_MAX, LinkFrame, link_frame},
};
use mio::net::TcpStream;
use rustls::Connection;

use super::{links::PROTOCOL_MIN, trust::Proof};
use crate::channel::Channel;

/// Bytes that wait for the socket. Beyond, heartbeats and ballots are dropped, which the machine allows for; a Backup so far behind is given up.
pub const OUT_BYTES_MAX: usize = 8 * LINK_FRAME_BYTES_MAX;
/// Bytes that are read in a turn.
const READ_TURN_BYTES_MAX: usize = 4 * LINK_FRAME_BYTES_MAX;
const READ_BYTES: usize = 64 * 1024;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Ballots and signs of life. So is one that came in and has not said yet what it is for.
    Ballots,
    /// The replica channel of an epoch.
    Channel,
}

/// A connection, in secure mode in TLS.
pub struct Link {
    channel: Channel<TcpStream>,
    /// Who it is, once it has said so.
    pub peer: Option<Node>,
    /// What it has proved that by, in secure mode.
    pub proof: Option<Proof>,
    /// Who it was connected to, and what for; `None` of one that came in.
    pub dialled: Option<(Node, Purpose)>,
    /// What both ends speak, once that is known.
    pub protocol: u16,
    /// When something came last; of one that has not said who it is, when it began.
    pub heard_at: Instant,
    /// Read and not taken yet.
    pub received: Vec<u8>,
    /// Where the system puts what it has.
    buffer: Box<[u8]>,
    out: Vec<u8>,
    written: usize,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).field("dialled", &self.dialled).finish_non_exhaustive()
    }
}

/// How much is left behind a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// More than a turn takes.
    More,
    /// Nothing, for ever: the other side has closed.
    End,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is done with.
    Done,
    /// It is done with, and what follows is somebody else's to take.
    Last,
    /// It has to wait, and what is behind it too.
    Later,
}

impl Link {
    /// Bytes as they are.
    pub fn plain(socket: TcpStream, dialled: Option<(Node, Purpose)>, now: Instant) -> Self {
        Self::new(Channel::plain(socket), dialled, now)
    }

    /// In TLS; the handshake is part of the first reads and writes.
    pub fn tls(socket: TcpStream, session: Connection, dialled: Option<(Node, Purpose)>, now: Instant) -> Self {
        Self::new(Channel::tls(socket, Box::new(session)), dialled, now)
    }

    fn new(channel: Channel<TcpStream>, dialled: Option<(Node, Purpose)>, now: Instant) -> Self {
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Self {
            channel,
            peer: None,
            proof: None,
            dialled,
            protocol: PROTOCOL_MIN,
            heard_at: now,
            received: Vec::new(),
            buffer,
            out: Vec::new(),
            written: 0,
        }
    }

    /// The socket, to be registered with a poll.
    pub fn socket(&mut self) -> &mut TcpStream {
        self.channel.socket_mut()
    }

    /// The TLS session, in secure mode.
    pub fn session(&self) -> Option<&Connection> {
        self.channel.session()
    }

    /// Reads what is there.
    pub fn read(&mut self, now: Instant) -> io::Result<Left> {
        let mut total = 0;
        while total < READ_TURN_BYTES_MAX {
            match self.channel.read(&mut self.buffer) {
                Ok(0) => return Ok(Left::End),
                Ok(count) => {
                    if self.peer.is_some() {
                        self.heard_at = now;
                    }
                    self.received.extend_from_slice(&self.buffer[..count]);
                    total += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Left::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Left::More)
    }

    /// Takes the frames that were read, as [`take_frames`] does.
    pub fn take_frames(&mut self, take: impl FnMut(LinkFrame<'_>) -> Result<Taken, String>) -> Result<bool, String> {
        take_frames(&mut self.received, take)
    }

    /// Queues a frame.
    pub fn push(&mut self, frame: LinkFrame<'_>) {
        if let LinkFrame::Replication(frame) = frame {
            assert!(frame.since_protocol() <= self.protocol, "protocol {} does not have {frame:?}", self.protocol);
        }
        frame.encode(&mut self.out);
    }

    /// Where frames are queued that are made piece by piece.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes that wait for the socket.
    pub fn queued(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.channel.write(&self.out[self.written..]) {
                // A session that is shaking hands keeps so much and no more.
                Ok(0) => break,
                Ok(count) => self.written += count,
                // One that is being connected takes nothing yet.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        } else if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        }
        match self.channel.flush() {
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Takes the whole frames of what was received, in their order, until one has to wait; true if one has. An error is the reason why the connection
/// has to be closed.
pub fn take_frames(received: &mut Vec<u8>, mut take: impl FnMut(LinkFrame<'_>) -> Result<Taken, String>) -> Result<bool, String> {
    let mut taken = 0;
    let waits = loop {
        let Some((bytes, rest)) = link_frame(&received[taken..]).map_err(|error| error.to_string())? else { break false };
        let frame = LinkFrame::decode(bytes).map_err(|error| error.to_string())?;
        let behind = received.len() - rest.len();
        match take(frame)? {
            Taken::Done => taken = behind,
            Taken::Last => {
                taken = behind;
                break false;
            }
            Taken::Later => break true,
        }
    };
    received.drain(..taken);
    Ok(waits)
}
