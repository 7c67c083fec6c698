//! Where Bodkin connects to by itself. Registered addresses are self-asserted: it connects to nothing that is many machines, of the
//! link's own range, or itself.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use nix::ifaddrs::getifaddrs;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use crate::push::lookup::Lookups;

/// Addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// Every address of the name is one that is not connected to.
    #[error("no address of {0} may be connected to")]
    Forbidden(String),
    /// The name has an address that is one of our own listeners', and no other.
    #[error("{0} is a port of this cloud itself")]
    Own(SocketAddr),
    /// Nobody has accepted in time.
    #[error("nobody has accepted a connection within {0:?}")]
    Late(Duration),
    /// Nobody accepts.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connects to registered addresses.
#[derive(Clone, Debug)]
pub struct Destinations {
    /// Our listeners, which are not connected to.
    own: Arc<[SocketAddr]>,
    lookups: Lookups,
}

impl Destinations {
    /// All but our `own` listeners.
    pub fn new(own: &[SocketAddr]) -> Self {
        Self { own: own.into(), lookups: Lookups::default() }
    }

    /// Connects to a host name or IP address. Its addresses are looked at behind the resolution, so that no name leads around the rule.
    pub async fn connect(&self, host: &str, port: u16, patience: Duration) -> Result<TcpStream, DestinationError> {
        let until = Instant::now() + patience;
        let looked_up = timeout_at(until, self.lookups.addresses(host, port)).await;
        let found = looked_up.map_err(|_| DestinationError::Late(patience))??;
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| is_own(address, &self.own));
        let allowed: Vec<_> = others.into_iter().filter(|address| !is_forbidden(address.ip())).take(ADDRESSES_MAX).collect();
        match (allowed.as_slice(), own.first()) {
            ([], Some(own)) => Err(DestinationError::Own(*own)),
            ([], None) => Err(DestinationError::Forbidden(host.to_owned())),
            (allowed, _) => connect_to_one(allowed, patience, until).await,
        }
    }
}

/// Connects to the first of the addresses that accepts. One that says nothing has its share of the time that is left, and those
/// behind it have theirs. `patience` is what the whole time was, to be told.
async fn connect_to_one(addresses: &[SocketAddr], patience: Duration, until: Instant) -> Result<TcpStream, DestinationError> {
    let mut refused = DestinationError::Late(patience);
    for (index, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - index).expect("they are few");
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => refused = error.into(),
            Err(_) => refused = DestinationError::Late(patience),
        }
    }
    Err(refused)
}

fn is_forbidden(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_unspecified()
        || ip.is_multicast()
        || match ip {
            IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        }
}

fn is_own(address: &SocketAddr, own: &[SocketAddr]) -> bool {
    let ip = address.ip().to_canonical();
    let is_at = |listener: IpAddr| listener == ip || ip.is_loopback() || (listener.is_unspecified() && is_of_this_machine(ip));
    own.iter().any(|listener| listener.port() == address.port() && is_at(listener.ip()))
}

/// Whether one of our interfaces has the address now. One that cannot be known is taken for ours.
fn is_of_this_machine(ip: IpAddr) -> bool {
    let Ok(interfaces) = getifaddrs() else { return true };
    interfaces.filter_map(|interface| interface.address).any(|address| {
        let (v4, v6) = (address.as_sockaddr_in().map(|v4| v4.ip().into()), address.as_sockaddr_in6().map(|v6| v6.ip().into()));
        v4.or(v6) == Some(ip)
    })
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, SockAddr, Socket, Type};

    use super::*;

    /// A listener whose queue is full, so that who connects gets no answer; the connections that fill it.
    fn black_hole() -> (SocketAddr, Socket, Vec<Socket>) {
        let socket = |_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket(0);
        listener.bind(&SockAddr::from("127.0.0.1:0".parse::<SocketAddr>().unwrap())).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let filling: Vec<Socket> = (0..4).map(socket).collect();
        for one in &filling {
            one.set_nonblocking(true).unwrap();
            // The last ones are on their way for ever.
            let _ = one.connect(&address);
        }
        (address.as_socket().unwrap(), listener, filling)
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// A port that refuses, and is nobody else's while the socket lives: it does not listen.
    fn held_port() -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, address)
    }

    #[test]
    fn an_address_that_says_nothing_leaves_time_for_the_next() {
        let runtime = runtime();
        let good = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent, _listener, _filling) = black_hole();
        let patience = Duration::from_millis(600);
        let connect = |addresses: &[SocketAddr]| {
            runtime.block_on(async {
                connect_to_one(addresses, patience, Instant::now() + patience).await.map(|stream| stream.peer_addr().unwrap())
            })
        };
        let good = good.local_addr().unwrap();
        assert_eq!(connect(&[silent, silent, good]).unwrap(), good);
        let begun = std::time::Instant::now();
        assert!(matches!(connect(&[silent, silent]), Err(DestinationError::Late(_))));
        assert!(begun.elapsed() >= patience, "{:?}", begun.elapsed());
        let (_held, refused) = held_port();
        assert!(matches!(connect(&[silent, refused]), Err(DestinationError::Io(_))));
    }

    #[test]
    fn nothing_is_connected_to_that_is_many_of_the_link_or_ourselves() {
        let own = ["127.0.0.1:8455".parse().unwrap(), "0.0.0.0:8443".parse().unwrap()];
        let check = |address: &str, expected: (bool, bool)| {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!((is_forbidden(address.ip()), is_own(&address, &own)), expected, "{address}");
        };
        for forbidden in [
            "0.0.0.0:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "169.254.1.1:80",
            "[fe80::1]:80",
            "[ff02::1]:80",
            "[::]:80",
            "[::ffff:169.254.1.1]:80",
        ] {
            check(forbidden, (true, false));
        }
        for own in ["127.0.0.1:8455", "127.9.9.9:8455", "[::1]:8443"] {
            check(own, (false, true));
        }
        for interface in getifaddrs().unwrap().filter_map(|interface| interface.address) {
            let Some(ip) = interface.as_sockaddr_in().map(|address| address.ip()).filter(|ip| !ip.is_link_local()) else { continue };
            check(&format!("{ip}:8443"), (false, true));
        }
        for allowed in ["127.0.0.1:80", "192.0.2.7:8455", "192.0.2.7:8443", "[2001:db8::1]:80", "[2001:db8::1]:8443"] {
            check(allowed, (false, false));
        }
        let connect = |host: &str, port: u16| runtime().block_on(Destinations::new(&own).connect(host, port, Duration::from_secs(1)));
        assert!(matches!(connect("169.254.1.1", 80), Err(DestinationError::Forbidden(_))));
        assert!(matches!(connect("localhost", 8455), Err(DestinationError::Own(_))));
    }
}
