//! TLS on a socket that blocks or one that does not, in long reads: what a tunnel is compared with shall not be slow by itself.

use std::io::{self, ErrorKind, Read, Write};

use rustls::Connection;

/// Read at once from a socket: several records of TLS.
const READ_BYTES: usize = 64 * 1024;

/// A connection in TLS.
pub struct Secured<S> {
    socket: S,
    tls: Connection,
    /// What was read from the socket; from `taken` to `filled` TLS has not had it.
    input: Box<[u8]>,
    taken: usize,
    filled: usize,
}

impl<S: Read + Write> Secured<S> {
    /// A session that begins on a socket.
    pub fn new(socket: S, tls: impl Into<Connection>) -> Self {
        Self { socket, tls: tls.into(), input: vec![0; READ_BYTES].into_boxed_slice(), taken: 0, filled: 0 }
    }

    /// Does the handshake, on a socket that blocks.
    ///
    /// # Errors
    /// It fails, or the socket does.
    pub fn handshake(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            self.flush()?;
            if self.tls.is_handshaking() && self.fetch()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush()
    }

    /// Says that nothing more is written.
    ///
    /// # Errors
    /// The socket does not take it.
    pub fn end(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        self.flush()
    }

    /// Takes bytes from the socket; 0: it has ended.
    fn fetch(&mut self) -> io::Result<usize> {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
            self.filled = self.socket.read(&mut self.input)?;
        }
        let fed = self.tls.read_tls(&mut &self.input[self.taken..self.filled])?;
        self.taken += fed;
        self.tls.process_new_packets().map_err(io::Error::other)?;
        Ok(fed)
    }

    /// Writes what TLS has to say by itself, as far as it is taken now.
    fn answer(&mut self) -> io::Result<()> {
        match self.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            flushed => flushed,
        }
    }
}

impl<S: Read + Write> Read for Secured<S> {
    /// 0 is the end, whether it was announced or not.
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            self.answer()?;
            match self.tls.reader().read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.fetch()?;
        }
    }
}

impl<S: Read + Write> Write for Secured<S> {
    /// Takes bytes only if those before have gone.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.tls.writer().write(bytes)?;
        self.answer()?;
        // In front of the handshake's end only so much is kept.
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => drop(written?),
            }
        }
        Ok(())
    }
}
