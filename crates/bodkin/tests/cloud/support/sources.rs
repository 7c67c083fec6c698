//! Connections from an address of the loopback network, so that clients of one machine are different clients to the server.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use super::patience::PATIENCE;

/// Connects to `server` from `source`. Reads and writes fail after [`PATIENCE`].
pub fn connect_from(source: &str, server: SocketAddr) -> TcpStream {
    let source: IpAddr = source.parse().expect("an address");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::new(source, 0).into()).expect("the loopback network has the address");
    socket.connect(&server.into()).expect("a connection");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a stream has a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a stream has a timeout");
    stream
}

/// Sends one request, and returns the status of the answer. 0: the server closed the connection.
pub fn status_of(mut stream: impl Read + Write, request: &str) -> u16 {
    // A server that rejects the connection may have closed it already.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let mut piece = [0; 512];
    while !answer.windows(2).any(|pair| pair == b"\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return 0,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
        }
    }
    let line = String::from_utf8_lossy(&answer);
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("a status line: {line}"))
}
