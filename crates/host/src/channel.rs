//! The bytes of a connection, as they are or in TLS: the one place that reads and writes either. No call waits.

use std::{
    cell::RefCell,
    io::{self, Read, Write},
};

use bodkin_trust::tls;
use rustls::Connection;

/// Into so much space, or more, TLS is read as long as that; by itself a session reads 4 KiB at a time.
const LONG_READ_BYTES: usize = 16 * 1024;
/// Longest read.
const READ_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// What is between a socket and its session during a long read.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into_boxed_slice());
}

/// A socket that does not block, and the TLS session on it if there is one.
///
/// A session takes at most 64 KiB (rustls' limit) that the socket has not taken yet; they count as written, and
/// [`Self::is_flushed`] tells when they are gone.
#[derive(Debug)]
pub struct Channel<S> {
    socket: S,
    session: Option<Box<Connection>>,
    ahead: Ahead,
}

/// What a long read has left.
#[derive(Debug, Default)]
struct Ahead {
    /// What the session has not had yet, because the space was full: a record and a half at the most.
    bytes: Vec<u8>,
    /// What is wrong behind the bytes that were given.
    refusal: Option<io::Error>,
}

impl Ahead {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.refusal.is_none()
    }
}

impl<S> Channel<S> {
    /// Bytes as they are.
    pub fn plain(socket: S) -> Self {
        Self { socket, session: None, ahead: Ahead::default() }
    }

    /// Bytes in TLS.
    pub fn tls(socket: S, session: Box<Connection>) -> Self {
        Self { socket, session: Some(session), ahead: Ahead::default() }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, to be registered with a poll.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The TLS session.
    pub fn session(&self) -> Option<&Connection> {
        self.session.as_deref()
    }

    /// Whether there is one.
    pub fn is_tls(&self) -> bool {
        self.session.is_some()
    }

    /// Whether a read that fills less than it was offered has emptied the socket: TLS gives bytes record by record.
    pub fn is_drained_by(&self, bytes: usize, offered: usize) -> bool {
        bytes < offered && !self.is_tls()
    }

    /// Whether the socket has taken everything that was written.
    pub fn is_flushed(&self) -> bool {
        self.session.as_ref().is_none_or(|session| !session.wants_write())
    }

    /// The same connection on another kind of socket.
    pub fn map_socket<T>(self, map: impl FnOnce(S) -> io::Result<T>) -> io::Result<Channel<T>> {
        Ok(Channel { socket: map(self.socket)?, session: self.session, ahead: self.ahead })
    }
}

impl<S: Read + Write> Channel<S> {
    /// Reads what is there; 0 is the end. A peer that ends without saying so in TLS is taken at its word: lengths tell whether what it
    /// sent is whole.
    pub fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(space) };
        if space.len() >= LONG_READ_BYTES || !self.ahead.is_empty() {
            let (socket, ahead) = (&mut self.socket, &mut self.ahead);
            return SCRATCH.with_borrow_mut(|scratch| read_long(session, socket, ahead, scratch, space));
        }
        loop {
            match session.reader().read(space) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            receive(session, &mut self.socket)?;
        }
    }

    /// Whether bytes can be read although the socket may have none.
    pub fn holds_bytes(&mut self) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(false) };
        let state = tls::process(session).map_err(invalid)?;
        Ok(!self.ahead.is_empty() || state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Writes as much as is taken, all that fits in as few writes to the socket as it allows.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.write(bytes) };
        // What the session holds goes first, so that it never holds more than its limit.
        send(session, &mut self.socket)?;
        let taken = session.writer().write(bytes)?;
        match send(session, &mut self.socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Writes what the session holds; [`io::ErrorKind::WouldBlock`] if the socket does not take all of it.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            Some(session) => send(session, &mut self.socket),
            None => Ok(()),
        }
    }

    /// Says in TLS that nothing more comes, as far as the socket takes it now.
    pub fn close(&mut self) {
        if let Some(session) = &mut self.session {
            session.send_close_notify();
            // Whoever does not get it sees the socket closed, which says the same.
            let _ = send(session, &mut self.socket);
        }
    }

    /// Carries the handshake as far as it comes without waiting; true when it is done and everything is sent.
    pub fn step_handshake(&mut self) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(true) };
        // What was read in front of the session may be all that is needed.
        tls::process(session).map_err(invalid)?;
        loop {
            match send(session, &mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                sent => sent?,
            }
            if !session.is_handshaking() {
                return Ok(true);
            }
            match receive(session, &mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                received => received?,
            };
        }
    }
}

/// Reads once from the socket, as much as there is space, and gives what the session makes of it.
fn read_long(
    session: &mut Connection,
    socket: &mut (impl Read + Write),
    ahead: &mut Ahead,
    scratch: &mut [u8],
    space: &mut [u8],
) -> io::Result<usize> {
    let held = std::mem::take(&mut ahead.bytes);
    let (mut fetched, mut filled) = (held.as_slice(), 0);
    let done = loop {
        match session.reader().read(&mut space[filled..]) {
            Ok(bytes @ 1..) => {
                filled += bytes;
                if filled == space.len() {
                    break Ok(());
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Some(refusal) = ahead.refusal.take() {
                    break Err(refusal);
                }
            }
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => break Err(error),
            // The end, which is told when nothing is in front of it.
            Ok(0) | Err(_) => break Ok(()),
        }
        if fetched.is_empty() {
            if filled > 0 {
                break Ok(());
            }
            fetched = &[];
            let length = scratch.len().min(space.len().max(LONG_READ_BYTES));
            match socket.read(&mut scratch[..length]) {
                Ok(bytes) => fetched = &scratch[..bytes],
                Err(error) => break Err(error),
            }
        }
        // What came in front of a refusal is given first.
        ahead.refusal = session.read_tls(&mut fetched).and_then(|_| digest(session, socket)).err();
    };
    ahead.bytes = fetched.to_vec();
    match done {
        Err(error) if filled > 0 => {
            ahead.refusal = Some(error);
            Ok(filled)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(filled),
    }
}

/// Reads once from the socket and looks at it; gives how many bytes came. What the session itself has to say, an alert
/// or a key update, is sent as far as that goes.
fn receive(session: &mut Connection, socket: &mut (impl Read + Write)) -> io::Result<usize> {
    let bytes = session.read_tls(socket)?;
    digest(session, socket).map(|()| bytes)
}

/// Looks at what was read; see [`receive`].
fn digest(session: &mut Connection, socket: &mut impl Write) -> io::Result<()> {
    let processed = tls::process(session);
    if session.wants_write() {
        // Before a refusal is told, and whatever becomes of it.
        let _ = send(session, socket);
    }
    processed.map(drop).map_err(invalid)
}

fn send(session: &mut Connection, socket: &mut impl Write) -> io::Result<()> {
    while session.wants_write() {
        match session.write_tls(socket) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => drop(sent?),
        }
    }
    Ok(())
}

/// A refusal as an I/O error that carries it.
fn invalid(refusal: tls::Refusal) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, refusal)
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::VecDeque, rc::Rc, sync::LazyLock, time::Duration};

    use bodkin_arrowhead::common_name::CloudCommonName;
    use bodkin_trust::{
        Authority, Profile,
        tls::{ClientCertificate, PeerCheck, ServerCheck},
    };
    use rustls::{ClientConnection, ServerConnection};

    use super::*;

    type Bytes = Rc<RefCell<VecDeque<u8>>>;

    /// A socket that gives so many bytes at once at the most, and nothing behind them yet.
    struct Pipe {
        into: Bytes,
        out: Bytes,
        at_once: usize,
    }

    impl Read for Pipe {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            let mut into = self.into.borrow_mut();
            let length = space.len().min(self.at_once).min(into.len());
            if length == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            space.iter_mut().zip(into.drain(..length)).for_each(|(place, byte)| *place = byte);
            Ok(length)
        }
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.out.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Both ends of a connection whose handshake is done; the first one's socket gives so many bytes at once.
    fn connected(at_once: usize) -> [Channel<Pipe>; 2] {
        static IDENTITY: LazyLock<(Authority, bodkin_trust::Identity)> = LazyLock::new(|| {
            let (day, now) = (Duration::from_secs(86_400), tls::now());
            let name = CloudCommonName::parse("one.test.arrowhead.eu").unwrap();
            let cloud = Authority::root(now, day).and_then(|root| root.issue_cloud(&name, now, day)).unwrap();
            let alternative_names = vec!["localhost".to_owned()];
            let profile = Profile { name: "a.one.test.arrowhead.eu".into(), alternative_names, now, lifetime: day };
            let identity = cloud.issue(&profile).unwrap();
            (cloud, identity)
        });
        let anchors = [IDENTITY.0.certificate().clone()];
        let server = tls::server(&IDENTITY.1, &anchors, ClientCertificate::Required, PeerCheck::default()).unwrap();
        let client = tls::client(Some(&IDENTITY.1), &anchors, ServerCheck::HostName).unwrap();
        let (there, back) = (Bytes::default(), Bytes::default());
        let pipe = |into: &Bytes, out: &Bytes, at_once| Pipe { into: into.clone(), out: out.clone(), at_once };
        let client = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
        let mut ends = [
            Channel::tls(pipe(&back, &there, at_once), Box::new(client.into())),
            Channel::tls(pipe(&there, &back, usize::MAX), Box::new(ServerConnection::new(server).unwrap().into())),
        ];
        while !ends.iter_mut().map(|end| end.step_handshake().unwrap()).fold(true, |all, one| all & one) {}
        ends
    }

    fn sent(bytes: &[u8], by: &mut Channel<Pipe>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[by.write(rest).unwrap()..];
        }
    }

    /// Reads into spaces of these lengths in turn until there is nothing more.
    fn heard(channel: &mut Channel<Pipe>, spaces: &[usize]) -> (Vec<u8>, io::Result<usize>) {
        let mut heard = Vec::new();
        for length in spaces.iter().cycle() {
            let mut space = vec![0; *length];
            match channel.read(&mut space) {
                Ok(bytes @ 1..) => heard.extend_from_slice(&space[..bytes]),
                over => return (heard, over),
            }
        }
        unreachable!("there are spaces")
    }

    #[test]
    fn however_much_is_read_at_once_the_same_bytes_come_and_the_end_behind_them() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        for at_once in [1, 1_000, 20_000, usize::MAX] {
            for spaces in [&[1_000][..], &[16_384], &[65_536], &[20_000, 10], &[100_000, 3, 17_000, 5]] {
                let [mut client, mut server] = connected(at_once);
                sent(&bytes, &mut server);
                let (came, over) = heard(&mut client, spaces);
                assert!(came == bytes, "{at_once} {spaces:?}: {} bytes", came.len());
                assert_eq!(over.unwrap_err().kind(), io::ErrorKind::WouldBlock);
                assert!(!client.holds_bytes().unwrap());
                server.close();
                assert_eq!(heard(&mut client, spaces).1.unwrap(), 0, "{at_once} {spaces:?}");
            }
        }
    }

    #[test]
    fn bytes_that_wait_for_space_are_known_of() {
        let [mut client, mut server] = connected(usize::MAX);
        sent(&[7; 60_000], &mut server);
        let mut space = [0; 16_384];
        for left in [60_000 - 16_384, 60_000 - 2 * 16_384] {
            assert_eq!(client.read(&mut space).unwrap(), 16_384);
            assert!(client.holds_bytes().unwrap() || client.socket.into.borrow().len() >= left, "{left}");
        }
        while !client.socket.into.borrow().is_empty() {
            client.read(&mut space).unwrap();
        }
        while client.holds_bytes().unwrap() {
            client.read(&mut space).unwrap();
        }
        assert_eq!(client.read(&mut space).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_is_no_tls_is_told_behind_the_bytes_in_front_of_it() {
        for spaces in [65_536, 20_000, 16_384].map(|length| [length]) {
            let [mut client, mut server] = connected(usize::MAX);
            sent(&[7; 30_000], &mut server);
            client.socket.into.borrow_mut().extend([0xff; 100]);
            let (came, over) = heard(&mut client, &spaces);
            assert_eq!((came.len(), over.unwrap_err().kind()), (30_000, io::ErrorKind::InvalidData), "{spaces:?}");
        }
    }
}
