//! A connection's bytes on tokio: [`Channel`]'s calls, and waiting until they have something to do.

use std::{
    io::{self, IoSlice, Read, Write},
    mem::MaybeUninit,
    time::Duration,
};

use socket2::SockRef;
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::channel::Channel;

/// How long a peer is waited for that should read our last words and close.
const LINGER: Duration = Duration::from_millis(500);
/// Reads of what it still sends meanwhile.
const LINGER_READS_MAX: usize = 64;

/// A tokio socket that is read and written without waiting.
#[derive(Debug)]
pub struct Socket(pub TcpStream);

impl Read for Socket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(space)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection of the control plane's, or to a subscriber.
pub type AsyncChannel = Channel<Socket>;

impl AsyncChannel {
    /// Waits until a read has something to give.
    pub async fn readable(&mut self) -> io::Result<()> {
        if self.holds_bytes()? { Ok(()) } else { self.socket().0.readable().await }
    }

    /// Whether the system has something to read, or the peer's end, of which the runtime may not know yet.
    pub fn has_come(&self) -> io::Result<bool> {
        match SockRef::from(&self.socket().0).peek(&mut [MaybeUninit::uninit()]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes all bytes.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() || !self.is_flushed() {
            let written = if bytes.is_empty() { self.flush().map(|()| 0) } else { self.write(bytes) };
            match written {
                Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket().0.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Carries the TLS handshake to its end. May be given up and gone on with.
    pub async fn handshake(&mut self) -> io::Result<()> {
        while !self.step_handshake()? {
            if self.is_flushed() { self.socket().0.readable().await? } else { self.socket().0.writable().await? }
        }
        Ok(())
    }

    /// Says that nothing more comes.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        self.close();
        self.socket_mut().0.shutdown().await
    }

    /// Closes so that the peer can read what was written last: what it still sends is read for a moment, or the system would answer
    /// it with a reset that takes our words back.
    pub async fn linger(&mut self) -> io::Result<()> {
        self.shut_down().await?;
        let stream = &self.socket().0;
        let mut dropped = [0; 4096];
        let drain = async {
            for _ in 0..LINGER_READS_MAX {
                stream.readable().await?;
                match stream.try_read(&mut dropped) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        timeout(LINGER, drain).await.unwrap_or(Ok(()))
    }
}
