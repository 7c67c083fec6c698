//! The sockets on which ZMTP is spoken: those of the port, and that of a path of this machine (`ipc://`). What is said on them is the same.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr},
    os::fd::AsFd as _,
};

use mio::{
    event::Source,
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};

use super::send_queue::queued_bytes;
use crate::shard::connection;

/// A socket that listens.
pub enum LinkListener {
    /// On the port.
    Tcp(TcpListener),
    /// On the path.
    Ipc(UnixListener),
}

impl LinkListener {
    /// What the poll watches.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Ipc(listener) => listener,
        }
    }

    /// Takes in one who waits.
    pub fn accept(&self) -> io::Result<LinkSocket> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(socket, peer)| LinkSocket::Tcp(socket, peer)),
            Self::Ipc(listener) => listener.accept().map(|(socket, _)| LinkSocket::Ipc(socket)),
        }
    }
}

/// A link's socket.
pub enum LinkSocket {
    /// Of the port, and where the peer is.
    Tcp(TcpStream, SocketAddr),
    /// Of the path.
    Ipc(UnixStream),
}

impl LinkSocket {
    /// What the poll watches.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(socket, _) => socket,
            Self::Ipc(socket) => socket,
        }
    }

    /// Where the peer is; `None`: on the path.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(_, peer) => Some(*peer),
            Self::Ipc(_) => None,
        }
    }

    /// Has what is written go out at once, as it does on a path.
    pub fn send_at_once(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket, _) => socket.set_nodelay(true),
            Self::Ipc(_) => Ok(()),
        }
    }

    /// Has a host that vanishes noticed; this one does not.
    pub fn probe(&self) {
        match self {
            Self::Tcp(socket, _) => connection::probe(socket),
            Self::Ipc(_) => {}
        }
    }

    /// Bytes that it was given and that have not arrived.
    pub fn queued_bytes(&self) -> io::Result<u64> {
        match self {
            Self::Tcp(socket, _) => queued_bytes(socket.as_fd()),
            Self::Ipc(socket) => queued_bytes(socket.as_fd()),
        }
    }

    pub fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket, _) => socket.read(space),
            Self::Ipc(socket) => socket.read(space),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket, _) => socket.write(bytes),
            Self::Ipc(socket) => socket.write(bytes),
        }
    }

    /// Says that nothing more comes.
    pub fn shut_down(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket, _) => socket.shutdown(Shutdown::Write),
            Self::Ipc(socket) => socket.shutdown(Shutdown::Write),
        }
    }
}
