//! One connection to another node: bytes in, frames out, and the other way round.

use std::io::{self, Read, Write};

use bodkin_broker::{
    Instant, Node,
    wire::{LINK_FRAME_BYTES_MAX, LinkFrame},
};
use mio::net::TcpStream;

/// Bytes that wait for the socket. Beyond, heartbeats and ballots are dropped, which the machine allows for; a Backup so far behind is given up.
pub const OUT_BYTES_MAX: usize = 8 * LINK_FRAME_BYTES_MAX;
/// Bytes that are read in a turn.
const READ_TURN_BYTES_MAX: usize = 4 * LINK_FRAME_BYTES_MAX;
const READ_BYTES: usize = 64 * 1024;

/// A connection.
pub struct Link {
    pub socket: TcpStream,
    /// Who it is, once it has said so.
    pub peer: Option<Node>,
    /// Who it was connected to; `None` of one that came in.
    pub dialled: Option<Node>,
    /// When something came last.
    pub heard_at: Instant,
    /// Read and not taken yet: the beginning of a frame at the most.
    pub received: Vec<u8>,
    out: Vec<u8>,
    written: usize,
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

impl Link {
    pub fn new(socket: TcpStream, dialled: Option<Node>, now: Instant) -> Self {
        Self { socket, peer: None, dialled, heard_at: now, received: Vec::new(), out: Vec::new(), written: 0 }
    }

    /// Reads what is there.
    pub fn read(&mut self, now: Instant) -> io::Result<Left> {
        let mut buffer = [0; READ_BYTES];
        let mut total = 0;
        while total < READ_TURN_BYTES_MAX {
            match self.socket.read(&mut buffer) {
                Ok(0) => return Ok(Left::End),
                Ok(count) => {
                    self.heard_at = now;
                    self.received.extend_from_slice(&buffer[..count]);
                    total += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Left::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Left::More)
    }

    /// Queues a frame.
    pub fn push(&mut self, frame: LinkFrame<'_>) {
        frame.encode(&mut self.out);
    }

    /// Queues frames that are bytes already.
    pub fn push_bytes(&mut self, frames: &[u8]) {
        self.out.extend_from_slice(frames);
    }

    /// Bytes that wait for the socket.
    pub fn queued(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
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
        Ok(())
    }
}
