//! Where a broker speaks ZMTP, and the socket to it: its port, or a path of this machine.

use std::{
    fmt,
    io::{self, Read, Write},
    net::SocketAddr,
    path::PathBuf,
    str::FromStr,
};

use mio::{
    event::Source,
    net::{TcpStream, UnixStream},
};

/// What names a path.
const IPC: &str = "ipc://";

/// Where a broker speaks ZMTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerAddress {
    /// Its port, of any machine.
    Tcp(SocketAddr),
    /// A Unix socket of this machine: `ipc://PATH`.
    Ipc(PathBuf),
}

/// What is no address of a broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected ADDRESS:PORT in digits, such as 127.0.0.1:5570, or ipc://PATH, not {0:?}")]
pub struct NoBrokerAddress(String);

impl From<SocketAddr> for BrokerAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for BrokerAddress {
    type Err = NoBrokerAddress;

    fn from_str(text: &str) -> Result<Self, NoBrokerAddress> {
        let none = || NoBrokerAddress(text.to_owned());
        match text.strip_prefix(IPC) {
            Some("") => Err(none()),
            Some(path) => Ok(Self::Ipc(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| none()),
        }
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Ipc(path) => write!(f, "{IPC}{}", path.display()),
        }
    }
}

/// A socket that is being connected.
pub(super) trait Socket: Source + Read + Write + Send {
    /// What has become of the connection, taken once.
    fn take_error(&self) -> io::Result<Option<io::Error>>;
    /// Begins to use the connection; [`io::ErrorKind::NotConnected`] as long as it is not there.
    fn begin(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Self::take_error(self)
    }

    fn begin(&self) -> io::Result<()> {
        self.peer_addr()?;
        self.set_nodelay(true)
    }
}

impl Socket for UnixStream {
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Self::take_error(self)
    }

    fn begin(&self) -> io::Result<()> {
        self.peer_addr().map(drop)
    }
}

impl BrokerAddress {
    /// Begins to connect.
    pub(super) fn connect(&self) -> io::Result<Box<dyn Socket>> {
        Ok(match self {
            Self::Tcp(address) => Box::new(TcpStream::connect(*address)?),
            Self::Ipc(path) => Box::new(UnixStream::connect(path)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_a_path_and_is_shown_as_it_is_read() {
        let tcp = BrokerAddress::from(SocketAddr::from(([127, 0, 0, 1], 5570)));
        let ipc = BrokerAddress::Ipc("/run/bodkin/zmtp.ipc".into());
        for (text, address) in [("127.0.0.1:5570", &tcp), ("ipc:///run/bodkin/zmtp.ipc", &ipc)] {
            assert_eq!(text.parse().as_ref(), Ok(address));
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "ipc://", "127.0.0.1", "localhost:5570", "tcp://127.0.0.1:5570", "/run/bodkin/zmtp.ipc"] {
            assert_eq!(text.parse::<BrokerAddress>(), Err(NoBrokerAddress(text.to_owned())));
        }
    }
}
