//! Listening sockets of a port.

use std::{io, net::SocketAddr};

/// Sockets of a port. The system lets at most `net.core.somaxconn` (mostly 4096) connections wait at one socket and
/// drops more, which then try again after a second.
const SOCKETS: usize = 4;

/// Connections that wait to be accepted at a socket; the system cuts it to its own limit.
pub const BACKLOG: i32 = 65_535;

/// Binds a port for several sockets, among which the system spreads the connections, so that thousands may come at once.
pub fn bind(address: SocketAddr) -> io::Result<Vec<std::net::TcpListener>> {
    if address.port() != 0 {
        // Sockets that share a port share it with any other process of this user's that does the same; this one would not.
        listen(address, false)?;
    }
    let first = listen(address, true)?;
    let address = first.local_addr()?;
    let others = (1..SOCKETS).map(|_| listen(address, true));
    std::iter::once(Ok(first)).chain(others).collect()
}

fn listen(address: SocketAddr, shares_port: bool) -> io::Result<std::net::TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shares_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
