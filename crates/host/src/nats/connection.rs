//! A connection to a NATS server: bytes as they are, or in TLS, which begins behind the server's first line.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_nats::protocol::INFO_BYTES_MAX;
use mio::{Interest, Registry, Token};
use rustls::{ClientConfig, ClientConnection};

use super::NatsServer;
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
    /// The last address' words.
    pub fn open(server: &NatsServer, tls: Option<&Arc<ClientConfig>>, registry: &Registry) -> io::Result<Self> {
        let socket = connect(server)?;
        socket.set_nodelay(true)?;
        let (greeting, session) = match tls.filter(|_| server.is_tls) {
            None => (Vec::new(), None),
            Some(config) => {
                let host = host_name(&server.host).ok_or_else(|| io::Error::other("no certificate can be made out for such a host"))?;
                let session = ClientConnection::new(config.clone(), host).map_err(io::Error::other)?;
                (first_line(&socket)?, Some(session))
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
        let mut connection = Self { channel, greeting, out: Vec::new(), written: 0, space };
        connection.shake_hands()?;
        Ok(connection)
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

/// The server's INFO, in front of TLS; not a byte behind it is read.
fn first_line(mut socket: &TcpStream) -> io::Result<Vec<u8>> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    let mut byte = [0];
    let until = Instant::now() + PATIENCE;
    while line.last() != Some(&b'\n') {
        if line.len() == INFO_BYTES_MAX.min(READ_BYTES) || Instant::now() > until {
            return Err(io::Error::new(ErrorKind::InvalidData, "the server does not begin with INFO"));
        }
        match socket.read(&mut byte)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ => line.push(byte[0]),
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
