//! The bare relay: what two hops over TCP cost on this machine when nothing is decided in between.
//!
//! One thread, one epoll. For each message from a publisher it writes the payload, in as many bytes as the broker's
//! event has, to every subscriber, and then a short acknowledgement to the publisher. Messages have one known length,
//! so that nothing is parsed; to both sides it looks like the Event Handler.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, bail};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::client::ANSWER_WAIT_MAX;
use crate::event::payload::PAYLOAD_BYTES;

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const ACKNOWLEDGEMENT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Longest request that opens a stream.
const OPENING_BYTES_MAX: usize = 16 * 1024;

/// What a relay is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelayOrder {
    /// Length of each publisher's message.
    pub message_bytes: usize,
    /// Where the payload lies in it.
    pub payload_at: usize,
    /// Length of what each subscriber gets for a message; at least [`FRAME_BYTES_MIN`] are sent.
    pub frame_bytes: usize,
    /// Subscribers that come first.
    pub subscribers: usize,
    /// Publishers that come then.
    pub publishers: usize,
}

/// Where a relay listens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RelayAddresses {
    /// For publishers.
    pub publishers: SocketAddr,
    /// For subscribers.
    pub subscribers: SocketAddr,
}

/// A relay that listens.
pub struct Relay {
    order: RelayOrder,
    publishers: TcpListener,
    subscribers: TcpListener,
}

/// `data:`, the payload, and the empty line.
pub const FRAME_BYTES_MIN: usize = b"data:".len() + PAYLOAD_BYTES + b"\n\n".len();

struct Inbound {
    stream: mio::net::TcpStream,
    message: Vec<u8>,
    filled: usize,
}

impl Relay {
    /// Listens on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// No port is free, or the order makes no sense.
    pub fn listen(order: RelayOrder) -> anyhow::Result<Self> {
        if order.payload_at + PAYLOAD_BYTES > order.message_bytes {
            bail!("a message of {} bytes has no room for the payload", order.message_bytes);
        }
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the relay cannot listen");
        Ok(Self { order, publishers: listen()?, subscribers: listen()? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn addresses(&self) -> anyhow::Result<RelayAddresses> {
        Ok(RelayAddresses { publishers: self.publishers.local_addr()?, subscribers: self.subscribers.local_addr()? })
    }

    /// Takes the subscribers, then the publishers, and relays until every publisher has closed its connection.
    ///
    /// # Errors
    /// A connection broke, or a subscriber took nothing for [`ANSWER_WAIT_MAX`].
    pub fn run(self) -> anyhow::Result<()> {
        let mut subscribers = Vec::with_capacity(self.order.subscribers);
        for _ in 0..self.order.subscribers {
            let (mut stream, _) = self.subscribers.accept()?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
            stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
            read_opening(&mut stream)?;
            stream.write_all(STREAM_HEAD)?;
            subscribers.push(stream);
        }
        let poll = Poll::new()?;
        let mut inbound = Vec::with_capacity(self.order.publishers);
        for index in 0..self.order.publishers {
            let (stream, _) = self.publishers.accept()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            inbound.push(Inbound { stream, message: vec![0; self.order.message_bytes], filled: 0 });
        }
        self.relay(poll, &mut inbound, &mut subscribers)
    }

    fn relay(&self, mut poll: Poll, inbound: &mut [Inbound], subscribers: &mut [TcpStream]) -> anyhow::Result<()> {
        let mut frame = frame(self.order.frame_bytes);
        let payload_in_frame = frame.len() - PAYLOAD_BYTES - 2;
        let payload = self.order.payload_at..self.order.payload_at + PAYLOAD_BYTES;
        let mut events = Events::with_capacity(inbound.len().max(1));
        let mut open = inbound.len();
        while open > 0 {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let inbound = &mut inbound[event.token().0];
                match inbound.fill() {
                    Ok(Filled::Message) => {
                        frame[payload_in_frame..payload_in_frame + PAYLOAD_BYTES].copy_from_slice(&inbound.message[payload.clone()]);
                        for subscriber in subscribers.iter_mut() {
                            subscriber.write_all(&frame).context("a subscriber of the relay takes nothing")?;
                        }
                        inbound.stream.write_all(ACKNOWLEDGEMENT).context("a publisher of the relay takes nothing")?;
                    }
                    Ok(Filled::Part) => {}
                    Ok(Filled::Closed) => {
                        // The end of the other direction would be a further event of this socket.
                        poll.registry().deregister(&mut inbound.stream)?;
                        open -= 1;
                    }
                    Err(error) => return Err(error).context("a publisher's connection to the relay broke"),
                }
            }
        }
        Ok(())
    }
}

enum Filled {
    Message,
    Part,
    Closed,
}

impl Inbound {
    /// Reads once: a publisher has one message outstanding, so that nothing is behind it, and a part makes a new event.
    fn fill(&mut self) -> std::io::Result<Filled> {
        match self.stream.read(&mut self.message[self.filled..]) {
            Ok(0) => Ok(Filled::Closed),
            Ok(length) => {
                self.filled += length;
                if self.filled < self.message.len() {
                    return Ok(Filled::Part);
                }
                self.filled = 0;
                Ok(Filled::Message)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Filled::Part),
            Err(error) => Err(error),
        }
    }
}

/// An event of this length, or the shortest, with the payload right before the empty line.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes.max(FRAME_BYTES_MIN));
    if let Some(padding) = bytes.checked_sub(FRAME_BYTES_MIN + b":\n".len()) {
        frame.push(b':');
        frame.resize(frame.len() + padding, b'.');
        frame.push(b'\n');
    }
    frame.extend_from_slice(b"data:");
    frame.resize(frame.len() + PAYLOAD_BYTES, b'.');
    frame.extend_from_slice(b"\n\n");
    frame
}

fn read_opening(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut opening = Vec::new();
    let mut piece = [0; 1024];
    while !opening.ends_with(HEAD_END) {
        let length = stream.read(&mut piece).context("a subscriber of the relay sends no request")?;
        if length == 0 || opening.len() + length > OPENING_BYTES_MAX {
            bail!("a subscriber of the relay sent no whole request");
        }
        opening.extend_from_slice(&piece[..length]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::sse::SseReader;

    #[test]
    fn a_frame_has_the_length_asked_for_and_holds_the_payload() {
        for bytes in [0, FRAME_BYTES_MIN, FRAME_BYTES_MIN + 2, 140, 300] {
            let frame = frame(bytes);
            assert_eq!(frame.len(), bytes.max(FRAME_BYTES_MIN));
            let mut told = Vec::new();
            SseReader::default().take(&frame, |data| told.push(data.len())).unwrap();
            assert_eq!(told, [PAYLOAD_BYTES]);
        }
    }
}
