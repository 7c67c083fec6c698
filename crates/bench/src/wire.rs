//! A connection's bytes, plain or over TLS, on a socket that blocks or one that does not.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, Stream};

/// As whom a connection is made.
#[derive(Clone, Default)]
pub enum Caller {
    /// As nobody, without TLS.
    #[default]
    Nobody,
    /// As the system of a certificate.
    Certified(Arc<ClientConfig>),
}

/// A socket and the TLS on it. The handshake begins with the first bytes that are written, and is never done again.
pub struct Wire<S> {
    socket: S,
    tls: Tls,
}

enum Tls {
    None,
    Due(Arc<ClientConfig>, ServerName<'static>),
    On(Box<ClientConnection>),
}

impl<S> Wire<S> {
    /// A connection to the server at this address.
    pub fn new(socket: S, caller: &Caller, server: IpAddr) -> Self {
        Self::named(socket, caller, ServerName::IpAddress(server.into()))
    }

    /// Returns a connection to a server whose certificate has to name `server`.
    pub fn named(socket: S, caller: &Caller, server: ServerName<'static>) -> Self {
        let tls = match caller {
            Caller::Nobody => Tls::None,
            Caller::Certified(config) => Tls::Due(Arc::clone(config), server),
        };
        Self { socket, tls }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, to be watched.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The same connection on the same socket as another type.
    pub fn map<T>(self, into: impl FnOnce(S) -> T) -> Wire<T> {
        Wire { socket: into(self.socket), tls: self.tls }
    }

    /// Whether a handshake is under way or over.
    pub fn has_begun(&self) -> bool {
        matches!(self.tls, Tls::On(_))
    }

    /// How its handshake went, once it is over.
    pub fn handshake_kind(&self) -> Option<HandshakeKind> {
        match &self.tls {
            Tls::On(connection) => connection.handshake_kind(),
            Tls::None | Tls::Due(..) => None,
        }
    }

    /// Whether a read of `length` bytes into a piece of `room` has left nothing in the socket. TLS gives a record at a time.
    pub fn has_emptied(&self, length: usize, room: usize) -> bool {
        matches!(self.tls, Tls::None) && length < room
    }

    fn begin(&mut self) -> io::Result<()> {
        if let Tls::Due(config, server) = &self.tls {
            let connection = ClientConnection::new(Arc::clone(config), server.clone());
            self.tls = Tls::On(Box::new(connection.map_err(io::Error::other)?));
        }
        Ok(())
    }
}

impl<S: Read + Write> Wire<S> {
    /// Does the handshake now, on a socket that blocks.
    ///
    /// # Errors
    /// It fails, or the socket does.
    pub fn handshake(&mut self) -> io::Result<()> {
        self.begin()?;
        match &mut self.tls {
            Tls::On(connection) if connection.is_handshaking() => connection.complete_io(&mut self.socket).map(drop),
            _ => Ok(()),
        }
    }
}

impl<S: Read + Write> Read for Wire<S> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Tls::None => self.socket.read(piece),
            // Nothing comes before the first bytes that are written.
            Tls::Due(..) => Err(ErrorKind::WouldBlock.into()),
            Tls::On(connection) => Stream::new(connection.as_mut(), &mut self.socket).read(piece),
        }
    }
}

impl<S: Read + Write> Write for Wire<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        match &mut self.tls {
            Tls::None | Tls::Due(..) => self.socket.write(bytes),
            Tls::On(connection) => Stream::new(connection.as_mut(), &mut self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Tls::None | Tls::Due(..) => self.socket.flush(),
            Tls::On(connection) => Stream::new(connection.as_mut(), &mut self.socket).flush(),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Certified(_) => "Certified",
        })
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nobody, Self::Nobody) => true,
            (Self::Certified(one), Self::Certified(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Caller {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::client::Client;
    use crate::expectation::Expectation;
    use crate::{lanes, peer, request, simultaneous};

    #[test]
    fn every_way_of_sending_goes_over_tls() {
        let endpoint = peer::serve_securely(|_, body| (200, body.repeat(3000)));
        let requests: Vec<_> = (0..40).map(|n| request::post(&endpoint, "/x", &json!({ "n": n }))).collect();
        let whole = |n: usize| json!({ "n": n }).to_string().repeat(3000);

        let mut client = Client::connect(&endpoint).unwrap();
        for (n, request) in requests.iter().enumerate() {
            assert_eq!(client.exchange(request).unwrap().body(), whole(n).as_bytes());
        }

        let mut answered = 0;
        lanes::drive(&endpoint, &requests, None, 3, &mut |exchange| {
            assert_eq!(exchange.answer.unwrap().body(), whole(exchange.index).as_bytes());
            answered += 1;
        })
        .unwrap();
        assert_eq!(answered, 40);

        let released = simultaneous::release(&endpoint, &requests, &[], Expectation::status(200)).unwrap();
        assert_eq!((released.request.count(), released.measured.faults.first.join("; ")), (40, String::new()));
    }

    #[test]
    fn a_server_that_refuses_the_certificate_is_a_fault() {
        let endpoint = peer::serve_securely(|_, _| (200, String::new()));
        let stranger = peer::serve_securely(|_, _| (200, String::new())).caller;
        let requests = [request::post(&endpoint, "/x", &json!({}))];
        let released = simultaneous::release(&endpoint, &requests, &[stranger], Expectation::status(200)).unwrap();
        assert_eq!((released.request.count(), released.measured.faults.count), (0, 1));
        assert!(released.measured.faults.first[0].contains("certificate"), "{}", released.measured.faults.first[0]);
    }
}
