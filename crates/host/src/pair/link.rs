//! One connection to another node: bytes in, frames out, and the other way round.

use std::{fmt, io};

use bodkin_broker::{
    Instant, Node,
    member::Peer,
    wire::{LINK_FRAME_BYTES_MAX, LinkFrame, WireError, link_frame},
};
use mio::{event::Event as Readiness, net::TcpStream};
use rustls::Connection;
use socket2::SockRef;

use super::trust::Proof;
use crate::channel::Channel;

/// Bytes that wait for the socket. Beyond, heartbeats and ballots are dropped, which the machine allows for; a Backup so far behind is given up.
pub const OUT_BYTES_MAX: usize = 8 * LINK_FRAME_BYTES_MAX;
/// Bytes that are read in a turn.
const READ_TURN_BYTES_MAX: usize = 4 * LINK_FRAME_BYTES_MAX;
const READ_BYTES: usize = 64 * 1024;

/// What may be sent before a protocol is agreed.
const PROTOCOL_OF_GREETINGS: u16 = 1;

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
    /// Which process it says it is, from its greeting on.
    pub claims: Option<Peer>,
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
    /// Whether the system says that the other side has ended; its last bytes may still be unread.
    end_is_announced: bool,
    /// Bytes were read since the last write, so that the system owes an acknowledgement of its own.
    owes_segment: bool,
    out: Vec<u8>,
    written: usize,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Why a connection has to be closed.
#[derive(Debug)]
pub struct Fault {
    /// The kind of reason, of which there are few: a peer that sends something else each time must not fill the log.
    pub kind: &'static str,
    detail: String,
}

impl Fault {
    /// A reason of this kind. The peer may have chosen words of the detail.
    pub fn new(kind: &'static str, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }
}

impl From<&'static str> for Fault {
    fn from(kind: &'static str) -> Self {
        Self::new(kind, kind)
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self::new("a frame cannot be read", error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
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
        Self {
            channel,
            peer: None,
            claims: None,
            proof: None,
            dialled,
            protocol: PROTOCOL_OF_GREETINGS,
            heard_at: now,
            received: Vec::new(),
            buffer: Box::default(),
            end_is_announced: false,
            owes_segment: false,
            out: Vec::new(),
            written: 0,
        }
    }

    /// The socket, to be registered with a poll.
    pub fn socket(&mut self) -> &mut TcpStream {
        self.channel.socket_mut()
    }

    /// Whether this node has begun to connect it and the other host has not answered.
    pub fn is_being_dialled(&mut self) -> bool {
        self.peer.is_none() && self.dialled.is_some() && self.socket().peer_addr().is_err()
    }

    /// The TLS session, in secure mode.
    pub fn session(&self) -> Option<&Connection> {
        self.channel.session()
    }

    /// Takes note of what the system says of the socket: in front of each [`Self::read`] that follows from it.
    pub fn is_ready(&mut self, readiness: &Readiness) {
        self.end_is_announced |= readiness.is_read_closed() || readiness.is_error();
    }

    /// Reads what is there. A read that fills less than its room has emptied the socket, and what comes later raises a readiness of its own; an end that
    /// was announced with these bytes raises none.
    pub fn read(&mut self, now: Instant) -> io::Result<Left> {
        let mut total = 0;
        if self.buffer.is_empty() {
            // A connection that says nothing costs no buffer.
            self.buffer = vec![0; READ_BYTES].into_boxed_slice();
        }
        while total < READ_TURN_BYTES_MAX {
            match self.channel.read(&mut self.buffer) {
                Ok(0) => return Ok(Left::End),
                Ok(count) => {
                    if self.peer.is_some() {
                        self.heard_at = now;
                    }
                    self.received.extend_from_slice(&self.buffer[..count]);
                    self.owes_segment = true;
                    total += count;
                    if self.channel.is_drained_by(count, self.buffer.len()) && !self.end_is_announced {
                        return Ok(Left::Nothing);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Left::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Left::More)
    }

    /// Takes the frames that were read, as [`take_frames`] does.
    pub fn take_frames(&mut self, take: impl FnMut(LinkFrame<'_>) -> Result<Taken, Fault>) -> Result<bool, Fault> {
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
                Ok(count) => {
                    self.written += count;
                    self.owes_segment = false;
                }
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

    /// Has the system acknowledge what was read, if nothing that was written behind it has: of two small segments in a row it acknowledges the second within the
    /// read, and that one may be a replica that a publisher waits for. The next one it leaves to our own answer again.
    pub fn acknowledge_segments(&mut self) {
        if std::mem::take(&mut self.owes_segment) {
            let socket = SockRef::from(self.channel.socket());
            // It saves time, and is right without.
            let _ = socket.set_tcp_quickack(true).and_then(|()| socket.set_tcp_quickack(false));
        }
    }
}

/// Takes the whole frames of what was received, in their order, until one has to wait; true if one has. An error is the reason why the connection
/// has to be closed.
pub fn take_frames(received: &mut Vec<u8>, mut take: impl FnMut(LinkFrame<'_>) -> Result<Taken, Fault>) -> Result<bool, Fault> {
    let mut taken = 0;
    let waits = loop {
        let Some((bytes, rest)) = link_frame(&received[taken..])? else { break false };
        let frame = LinkFrame::decode(bytes)?;
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

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener, time::Duration};

    use mio::{Events, Interest, Poll, Token};

    use super::*;

    /// What a link is left with by the readiness that follows from what its peer does.
    fn left_by(peer_does: impl FnOnce(std::net::TcpStream)) -> (Left, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut link = Link::plain(TcpStream::from_std(socket), None, Instant::default());
        peer_does(listener.accept().unwrap().0);
        let (mut poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        poll.registry().register(link.socket(), Token(0), Interest::READABLE).unwrap();
        poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
        events.iter().for_each(|readiness| link.is_ready(readiness));
        (link.read(Instant::default()).unwrap(), link.received)
    }

    #[test]
    fn an_end_behind_the_last_bytes_is_read_with_them() {
        let says = |mut peer: std::net::TcpStream| {
            peer.write_all(b"last").unwrap();
            peer
        };
        assert_eq!(left_by(|peer| drop(says(peer))), (Left::End, b"last".to_vec()));
        assert_eq!(left_by(|peer| says(peer).shutdown(std::net::Shutdown::Write).unwrap()), (Left::End, b"last".to_vec()));
        let mut kept = None;
        assert_eq!(left_by(|peer| kept = Some(says(peer))), (Left::Nothing, b"last".to_vec()));
    }

    #[test]
    fn the_system_acknowledges_at_once_what_nothing_is_said_to_and_leaves_the_next_to_our_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut link = Link::plain(TcpStream::from_std(socket), None, Instant::default());
        let answers_at_once = |link: &mut Link| SockRef::from(&*link.socket()).tcp_quickack().unwrap();
        let mut hear = |link: &mut Link| {
            peer.write_all(b"a frame").unwrap();
            assert_eq!(link.read(Instant::default()).unwrap(), Left::Nothing);
        };
        hear(&mut link);
        assert!(answers_at_once(&mut link), "as connections begin");
        link.acknowledge_segments();
        assert!(!answers_at_once(&mut link));
        SockRef::from(&*link.socket()).set_tcp_quickack(true).unwrap();
        link.acknowledge_segments();
        assert!(answers_at_once(&mut link), "nothing has come since");
        hear(&mut link);
        link.out().extend_from_slice(b"the answer");
        link.flush().unwrap();
        SockRef::from(&*link.socket()).set_tcp_quickack(true).unwrap();
        link.acknowledge_segments();
        assert!(answers_at_once(&mut link), "the answer has said so");
    }
}
