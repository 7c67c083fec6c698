//! A connection to a NATS server: bytes as they are, or in TLS, which begins behind the server's first line.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use bodkin_nats::{client::Fault, protocol::INFO_BYTES_MAX};
use bodkin_trust::tls::Refusal;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;

use super::{NatsServer, NatsTls, tls::Presented};
use crate::{channel::Channel, security::host_name};

/// For a server to accept a connection, and to do its part of a handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Read at once.
const READ_BYTES: usize = 64 * 1024;
/// Between looks at a handshake.
const HANDSHAKE_LOOK: Duration = Duration::from_millis(5);
/// The socket.
const SOCKET: Token = Token(0);

/// A connection that does not block.
#[derive(Debug)]
pub struct Connection {
    channel: Channel<mio::net::TcpStream>,
    /// `None` without TLS.
    presented: Option<Presented>,
    /// Came in front of TLS.
    greeting: Vec<u8>,
    out: Vec<u8>,
    /// How far `out` is written.
    written: usize,
    space: Box<[u8]>,
}

impl Connection {
    /// Connects, which waits for [`PATIENCE`] at the most for each address of the server, and as long for a handshake. Its socket raises the poll's events.
    ///
    /// # Errors
    /// The last address' words; a file of the client certificate cannot be used; or the TLS handshake fails.
    pub fn open(server: &NatsServer, tls: Option<&NatsTls>, registry: &Registry) -> io::Result<Self> {
        // Before the server is connected to, so that it is not left with half a handshake.
        let setup = tls.filter(|_| server.is_tls).map(NatsTls::load).transpose().map_err(io::Error::other)?;
        let socket = connect(server)?;
        socket.set_nodelay(true)?;
        let (greeting, session, presented) = match setup {
            None => (Vec::new(), None, None),
            Some((config, presented)) => {
                let host = host_name(&server.host).ok_or_else(|| io::Error::other("no certificate can be made out for such a host"))?;
                let session = ClientConnection::new(config, host).map_err(io::Error::other)?;
                (first_line(&socket, PATIENCE)?, Some(session), Some(presented))
            }
        };
        socket.set_nonblocking(true)?;
        let mut socket = mio::net::TcpStream::from_std(socket);
        registry.register(&mut socket, SOCKET, Interest::READABLE | Interest::WRITABLE)?;
        let channel = match session {
            None => Channel::plain(socket),
            Some(session) => Channel::tls(socket, Box::new(session.into())),
        };
        let space = vec![0; READ_BYTES].into_boxed_slice();
        let mut connection = Self { channel, presented, greeting, out: Vec::new(), written: 0, space };
        connection.shake_hands().map_err(|error| connection.explain(error))?;
        Ok(connection)
    }

    /// Returns an error of this connection with the reason and the remedy, if the client certificate is the reason.
    pub fn explain(&self, error: io::Error) -> io::Error {
        match &self.presented {
            Some(presented) => presented.explain(error),
            None => error,
        }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while !self.channel.step_handshake()? {
            if Instant::now() >= until {
                return Err(io::Error::new(ErrorKind::TimedOut, "the server has not done its part of the TLS handshake in time"));
            }
            std::thread::sleep(HANDSHAKE_LOOK);
        }
        Ok(())
    }

    /// Where bytes for the server go; [`Self::write`] writes them.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes that the socket has not taken yet.
    pub fn unsent_bytes(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes as much as the socket takes.
    ///
    /// # Errors
    /// The connection is at its end.
    pub fn write(&mut self) -> io::Result<()> {
        self.write_out().map_err(|error| self.alert().unwrap_or(error))
    }

    /// Returns the TLS alert by which the server ended the connection. A write that follows it fails with less.
    fn alert(&mut self) -> Option<io::Error> {
        self.presented.as_ref()?;
        self.channel.read(&mut self.space).err().filter(|error| error.get_ref().is_some_and(|inner| inner.is::<Refusal>()))
    }

    fn write_out(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.channel.write(&self.out[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // So what is written takes no room for ever beside what always comes behind it.
        if self.written > self.out.len() / 2 {
            self.out.drain(..std::mem::take(&mut self.written));
        }
        if self.out.is_empty() {
            match self.channel.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What has come; `None`: nothing just now.
    ///
    /// # Errors
    /// The connection is at its end: [`ErrorKind::UnexpectedEof`] where the server has ended it.
    pub fn read(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.greeting.is_empty() {
            let bytes = std::mem::take(&mut self.greeting);
            self.space[..bytes.len()].copy_from_slice(&bytes);
            return Ok(Some(&self.space[..bytes.len()]));
        }
        loop {
            match self.channel.read(&mut self.space) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has ended the connection")),
                Ok(bytes) => return Ok(Some(&self.space[..bytes])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn connect(server: &NatsServer) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (server.host.as_str(), server.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads the server's INFO, which precedes TLS, and no byte after it; waits at most `wait_max`.
fn first_line(mut socket: &TcpStream, wait_max: Duration) -> io::Result<Vec<u8>> {
    let late = || io::Error::new(ErrorKind::TimedOut, Fault::NoInfo(wait_max));
    let (mut line, mut byte) = (Vec::new(), [0]);
    let until = Instant::now() + wait_max;
    while line.last() != Some(&b'\n') {
        if line.len() == INFO_BYTES_MAX.min(READ_BYTES) {
            return Err(io::Error::new(ErrorKind::InvalidData, Fault::NoGreeting));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut byte) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection before INFO")),
            Ok(_) => line.push(byte[0]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(late()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.channel.close();
        // Whoever does not get it sees the connection closed.
        let _ = self.channel.socket_mut().flush();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn server_without_info_is_reported_as_such() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (mut server, _) = listener.accept().expect("a connection");
        for sent in ["", "HTTP/1.1 400"] {
            server.write_all(sent.as_bytes()).expect("it is read");
            let error = first_line(&socket, Duration::from_millis(20)).expect_err("no line comes");
            assert!(error.to_string().starts_with("expected INFO of a NATS server within 20ms"), "{sent:?}: {error}");
        }
        drop(server);
        let error = first_line(&socket, PATIENCE).expect_err("the connection is closed");
        assert_eq!(error.to_string(), "the server closed the connection before INFO");
    }
}
