//! The bytes of a connection, as they are or in TLS: the one place that reads and writes either. No call waits.

use std::io::{self, Read, Write};

use bodkin_trust::tls;
use rustls::Connection;

/// A socket that does not block, and the TLS session on it if there is one.
///
/// A session takes at most 64 KiB (rustls' limit) that the socket has not taken yet; they count as written, and
/// [`Self::is_flushed`] tells when they are gone.
#[derive(Debug)]
pub struct Channel<S> {
    socket: S,
    session: Option<Box<Connection>>,
}

impl<S> Channel<S> {
    /// Bytes as they are.
    pub fn plain(socket: S) -> Self {
        Self { socket, session: None }
    }

    /// Bytes in TLS.
    pub fn tls(socket: S, session: Box<Connection>) -> Self {
        Self { socket, session: Some(session) }
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
        Ok(Channel { socket: map(self.socket)?, session: self.session })
    }
}

impl<S: Read + Write> Channel<S> {
    /// Reads what is there; 0 is the end. A peer that ends without saying so in TLS is taken at its word: lengths tell whether what it
    /// sent is whole.
    pub fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(space) };
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
        Ok(state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
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

/// Reads once from the socket and looks at it; gives how many bytes came. What the session itself has to say, an alert
/// or a key update, is sent as far as that goes.
fn receive(session: &mut Connection, socket: &mut (impl Read + Write)) -> io::Result<usize> {
    let bytes = session.read_tls(socket)?;
    let processed = tls::process(session);
    if session.wants_write() {
        // Before a refusal is told, and whatever becomes of it.
        let _ = send(session, socket);
    }
    processed.map(|_| bytes).map_err(invalid)
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
