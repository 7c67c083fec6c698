//! An HTTP/1.1 client over one socket: kept or new connections, raw bytes for bad input, a time limit on every read.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

use super::patience::PATIENCE;
use super::transport::Transport;

/// Longest head of an answer that the client accepts, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names as sent, with their values.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics with the whole answer when it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {:?} {}", self.status, self.headers, self.text()))
    }

    /// Itself when the status is `status`; panics with the whole answer otherwise.
    #[track_caller]
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.text());
        self
    }
}

/// Status line and headers of an answer.
#[derive(Debug)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Header names as sent, with their values.
    pub headers: Vec<(String, String)>,
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// One connection to a server.
pub struct Connection {
    stream: Transport,
    unread: Vec<u8>,
    address: SocketAddr,
}

impl Connection {
    /// Connects; every later read and write fails after `PATIENCE`.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: Transport::Plain(open_socket(address)?), unread: Vec::new(), address })
    }

    /// The same in TLS: `begin` does the handshake.
    pub fn open_with(
        address: SocketAddr,
        begin: impl FnOnce(TcpStream) -> io::Result<StreamOwned<ClientConnection, TcpStream>>,
    ) -> io::Result<Self> {
        let stream = begin(open_socket(address)?)?;
        Ok(Self { stream: Transport::Tls(Box::new(stream)), unread: Vec::new(), address })
    }

    /// The TLS session; panics when there is none.
    pub fn session(&self) -> &ClientConnection {
        self.stream.session().expect("a connection in TLS")
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The bytes themselves.
    pub fn transport(&mut self) -> &mut Transport {
        &mut self.stream
    }

    /// Lets every later read fail after `patience` instead.
    pub fn wait_at_most(&mut self, patience: Duration) -> io::Result<()> {
        self.stream.socket().set_read_timeout(Some(patience))
    }

    /// Closes the sending side only.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.socket().shutdown(Shutdown::Write)
    }

    /// A second handle on the socket, to shut it down from another thread.
    pub fn handle(&self) -> io::Result<TcpStream> {
        self.stream.socket().try_clone()
    }

    /// Sends one request and reads its answer. `Host` is added, and `Content-Length` with a body.
    pub fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> io::Result<Answer> {
        self.send_request(method, target, headers, body)?;
        self.read_answer()
    }

    /// Sends one request without waiting for the answer.
    pub fn send_request(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> io::Result<()> {
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address).into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = body {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.unwrap_or_default());
        self.send(&bytes)
    }

    /// Reads one answer, passing over interim ones.
    pub fn read_answer(&mut self) -> io::Result<Answer> {
        let head = loop {
            let head = self.read_head()?;
            if head.status >= 200 {
                break head;
            }
        };
        let mut body = Vec::new();
        let mut pieces = Pieces::of(&head)?;
        while let Some(piece) = pieces.next(self)? {
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Reads a status line and headers only.
    pub fn read_head(&mut self) -> io::Result<Head> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at;
            }
            if self.unread.len() > HEAD_LIMIT {
                return Err(invalid("head too long"));
            }
            self.fill()?;
        };
        let text = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        self.unread.drain(..end + 4);
        parse_head(&text)
    }

    /// True when the server has closed the connection, after passing over what it still sent.
    pub fn is_closed_by_server(&mut self) -> bool {
        loop {
            self.unread.clear();
            match self.fill() {
                Ok(()) => {}
                Err(error) => return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
        }
    }

    /// Reads at least one more byte; an error at the end of the stream.
    fn fill(&mut self) -> io::Result<()> {
        let mut block = [0; 16 * 1024];
        let count = self.stream.read(&mut block)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&block[..count]);
        Ok(())
    }

    /// Takes what is there, at most `limit` bytes, reading when nothing is.
    fn take_some(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        if self.unread.is_empty() {
            self.fill()?;
        }
        let count = limit.min(self.unread.len());
        Ok(self.unread.drain(..count).collect())
    }

    /// Takes a line without its CR LF.
    fn take_line(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                break at;
            }
            self.fill()?;
        };
        let line = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        self.unread.drain(..end + 2);
        Ok(line)
    }
}

fn open_socket(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// A body read piece by piece as it arrives.
pub struct Pieces {
    framing: Framing,
    left_bytes: usize,
    ended: bool,
}

impl Pieces {
    /// The body that follows `head`.
    pub fn of(head: &Head) -> io::Result<Self> {
        let framing = framing(head)?;
        let left_bytes = if let Framing::Length(length) = framing { length } else { 0 };
        Ok(Self { framing, left_bytes, ended: false })
    }

    /// The next piece, `None` at the end of the body.
    pub fn next(&mut self, connection: &mut Connection) -> io::Result<Option<Vec<u8>>> {
        if self.ended {
            return Ok(None);
        }
        let piece = match self.framing {
            Framing::Length(_) => self.counted(connection)?,
            Framing::Chunked => self.chunked(connection)?,
            Framing::UntilClose => match connection.take_some(usize::MAX) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
                other => Some(other?),
            },
        };
        self.ended = piece.is_none();
        Ok(piece)
    }

    fn counted(&mut self, connection: &mut Connection) -> io::Result<Option<Vec<u8>>> {
        if self.left_bytes == 0 {
            return Ok(None);
        }
        let piece = connection.take_some(self.left_bytes)?;
        self.left_bytes -= piece.len();
        Ok(Some(piece))
    }

    fn chunked(&mut self, connection: &mut Connection) -> io::Result<Option<Vec<u8>>> {
        if self.left_bytes == 0 {
            let line = connection.take_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            self.left_bytes = usize::from_str_radix(size, 16).map_err(|_| invalid("chunk size"))?;
            if self.left_bytes == 0 {
                while !connection.take_line()?.is_empty() {}
                return Ok(None);
            }
        }
        let piece = connection.take_some(self.left_bytes)?;
        self.left_bytes -= piece.len();
        if self.left_bytes == 0 && !connection.take_line()?.is_empty() {
            return Err(invalid("chunk longer than its size"));
        }
        Ok(Some(piece))
    }
}

/// The first header of that name, in any case.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Where `needle` starts in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn parse_head(text: &str) -> io::Result<Head> {
    let mut lines = text.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .strip_prefix("HTTP/1.1 ")
        // A server may answer an old client in the client's own version.
        .or_else(|| status_line.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| invalid(status_line))?;
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| invalid(line))?;
            Ok((name.to_string(), value.trim().to_string()))
        })
        .collect::<io::Result<_>>()?;
    Ok(Head { status, headers })
}

fn framing(head: &Head) -> io::Result<Framing> {
    if head.status < 200 || head.status == 204 || head.status == 304 {
        return Ok(Framing::Length(0));
    }
    if header(&head.headers, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::Chunked);
    }
    match header(&head.headers, "content-length") {
        Some(value) => value.parse().map(Framing::Length).map_err(|_| invalid("content length")),
        None => Ok(Framing::UntilClose),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_string())
}
