//! Ports for processes that are told where to listen, or that come back where they were.
//!
//! Looking for a port that is free and letting it go again gives it to whoever is next: another test, or the system, which takes
//! ports of its choice for connections, too (one to a port on which nobody listens may even reach itself). So a port is *held*: a
//! socket is bound to it and does not listen. While it lives, nobody else is given the port; whoever connects is refused; and who
//! is told the port binds and listens there as often as need be, for both have `SO_REUSEADDR` (as every server has).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use anyhow::Context as _;
use socket2::{Domain, Socket, Type};

/// The standard ports, and those beside them that pages and tests give to the nodes of a pair, to a relay and to a provider.
pub const STANDARD: [u16; 12] = [5570, 5571, 5572, 5573, 8440, 8441, 8443, 8445, 8449, 8450, 8453, 8455];
/// Offsets that keep every port below those that the system chooses from (32768 on).
const OFFSETS: std::ops::Range<u16> = 12_000..24_000;
/// Farther apart than the standard ports are.
const STEP: u16 = 20;
/// Ports that one process holds by [`held_port`], at most: a file each.
const HELD_MAX: usize = 500;

/// The standard ports at an offset, held until it is dropped.
#[derive(Debug)]
pub struct HeldOffset {
    offset: u16,
    _sockets: Vec<Socket>,
}

impl HeldOffset {
    /// An offset at which every standard port is held now. Processes begin at different places, and go around.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> anyhow::Result<Self> {
        let places = (OFFSETS.end - OFFSETS.start) / STEP;
        let begin = (std::process::id() % u32::from(places)) as u16;
        let mut offsets = (begin..places).chain(0..begin).map(|place| OFFSETS.start + place * STEP);
        let found = offsets.find_map(|offset| {
            let sockets = STANDARD.iter().map(|port| hold(port + offset).ok()).collect::<Option<Vec<_>>>()?;
            Some(Self { offset, _sockets: sockets })
        });
        found.with_context(|| format!("no offset of {OFFSETS:?} has all standard ports free"))
    }

    /// What is added to the standard ports.
    pub fn get(&self) -> u16 {
        self.offset
    }
}

/// A port of the system's choice at 127.0.0.1, held until this process ends.
///
/// # Errors
/// There is none, or this process holds its most.
pub fn held_port() -> anyhow::Result<u16> {
    static HELD: Mutex<Vec<Socket>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    anyhow::ensure!(held.len() < HELD_MAX, "this process holds {HELD_MAX} ports already");
    let socket = hold(0).context("no port is free")?;
    let port = socket.local_addr()?.as_socket().context("a socket of IPv4 has an address")?.port();
    held.push(socket);
    Ok(port)
}

/// Holds a port that nobody has; 0 is one of the system's choice.
fn hold(port: u16) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    // Behind the binding: in front of it, two would hold the same port.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_held_port_refuses_until_somebody_listens_and_again_behind_that() {
        let port = held_port().unwrap();
        let refused = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err().kind();
        for _ in 0..2 {
            assert_eq!(refused(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            drop(listener.accept().unwrap());
        }
        assert_eq!(hold(port).unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn an_offset_is_nobody_elses_until_it_is_dropped() {
        let [one, other] = [HeldOffset::find().unwrap(), HeldOffset::find().unwrap()];
        assert_ne!(one.get(), other.get());
        let _cloud = STANDARD.map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port + one.get())).unwrap());
        let port = STANDARD[0] + other.get();
        assert_eq!(hold(port).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
