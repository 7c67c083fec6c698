//! Subscribers by HTTP push: one thread, a listener for each, and the answers that their manner gives.
//!
//! A prompt subscriber answers 200 at once, a slow one after its pause, a dead one takes the request and never answers.
//! While [`PushReceiver::refuse`] holds, everyone answers 400: what a subscriber says that will never take this event.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use super::manner::Manner;
use super::payload::{PAYLOAD_BYTES, PREFIX, monotonic_ns};
use super::tally::{Sent, SubscriberReport, Tally};
use crate::client::READ_BYTES;

/// Longest request that is taken.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Time between two looks at whether the publishers are done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const HEADERS_MAX: usize = 64;
const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

/// What a push side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PushOrder {
    /// How each subscriber behaves.
    pub manners: Vec<Manner>,
    /// How many publishers there will be.
    pub publishers: usize,
}

/// Subscribers that listen.
pub struct PushReceiver {
    listeners: Vec<mio::net::TcpListener>,
    ports: Vec<u16>,
    manners: Vec<Manner>,
    connections: Vec<Option<Inbound>>,
    poll: Poll,
    tally: Tally,
    /// Answer everything with a refusal.
    pub refuse: Arc<AtomicBool>,
}

struct Inbound {
    subscriber: usize,
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Answers that a slow subscriber owes, and when the next is due: pushes may come several at a time.
    owed: u32,
    due: Option<Instant>,
}

impl PushReceiver {
    /// Listens on a free port of 127.0.0.1 for each subscriber.
    ///
    /// # Errors
    /// No port is free.
    pub fn listen(order: &PushOrder) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let (mut listeners, mut ports) = (Vec::new(), Vec::new());
        for index in 0..order.manners.len() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a subscriber cannot listen")?;
            ports.push(listener.local_addr()?.port());
            listener.set_nonblocking(true)?;
            let mut listener = mio::net::TcpListener::from_std(listener);
            poll.registry().register(&mut listener, Token(index), Interest::READABLE)?;
            listeners.push(listener);
        }
        let tally = Tally::new(Manner::measured(&order.manners), order.publishers);
        let refuse = Arc::new(AtomicBool::new(false));
        Ok(Self { listeners, ports, manners: order.manners.clone(), connections: Vec::new(), poll, tally, refuse })
    }

    /// Where each listens.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Takes what is pushed until everything that `sent` names has come, or nothing more comes.
    ///
    /// # Errors
    /// Somebody pushes what is no HTTP request.
    pub fn receive(mut self, sent: &OnceLock<Sent>) -> anyhow::Result<SubscriberReport> {
        let mut events = Events::with_capacity(256);
        let mut piece = vec![0; READ_BYTES];
        while !self.tally.is_done(sent) {
            match self.poll.poll(&mut events, Some(self.next_due())) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token().0.checked_sub(self.listeners.len()) {
                    None => self.accept(event.token().0)?,
                    Some(connection) => self.read(connection, &mut piece)?,
                }
            }
            self.answer_due();
        }
        Ok(self.tally.report(&sent.wait().0))
    }

    fn next_due(&self) -> Duration {
        let now = Instant::now();
        let waits = self.connections.iter().flatten().filter_map(|inbound| inbound.due).map(|due| due.saturating_duration_since(now));
        waits.min().unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
    }

    fn accept(&mut self, subscriber: usize) -> anyhow::Result<()> {
        loop {
            match self.listeners[subscriber].accept() {
                Ok((mut stream, _)) => {
                    stream.set_nodelay(true)?;
                    let token = Token(self.listeners.len() + self.connections.len());
                    self.poll.registry().register(&mut stream, token, Interest::READABLE)?;
                    self.connections.push(Some(Inbound { subscriber, stream, bytes: Vec::new(), owed: 0, due: None }));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("a subscriber cannot accept"),
            }
        }
    }

    fn read(&mut self, connection: usize, piece: &mut [u8]) -> anyhow::Result<()> {
        loop {
            let Some(inbound) = &mut self.connections[connection] else { return Ok(()) };
            match inbound.stream.read(piece) {
                Ok(length) if length > 0 => {
                    inbound.bytes.extend_from_slice(&piece[..length]);
                    self.take_requests(connection)?;
                    if length < piece.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // An end, or a pusher that lost its patience: what it has to say it says on a new connection.
                Ok(_) | Err(_) => {
                    self.connections[connection] = None;
                    return Ok(());
                }
            }
        }
    }

    fn take_requests(&mut self, connection: usize) -> anyhow::Result<()> {
        let now_ns = monotonic_ns();
        let Some(inbound) = &mut self.connections[connection] else { return Ok(()) };
        let (mut taken, mut answers) = (0, Vec::new());
        while let Some(length) = request_length(&inbound.bytes[taken..])? {
            let request = &inbound.bytes[taken..taken + length];
            taken += length;
            let manner = self.manners[inbound.subscriber];
            if self.refuse.load(Ordering::Relaxed) {
                answers.extend_from_slice(REFUSED);
                continue;
            }
            if manner != Manner::Dead {
                self.tally.take(inbound.subscriber, payload(request).unwrap_or_default(), now_ns);
            }
            match manner {
                Manner::Prompt => answers.extend_from_slice(ACCEPTED),
                Manner::Slow(pause_ms) => {
                    inbound.owed += 1;
                    inbound.due.get_or_insert(Instant::now() + pause(pause_ms));
                }
                Manner::Dead => {}
            }
        }
        inbound.bytes.drain(..taken);
        inbound.answer(&answers);
        if inbound.bytes.len() > REQUEST_BYTES_MAX {
            bail!("a push is longer than {REQUEST_BYTES_MAX} bytes");
        }
        Ok(())
    }

    fn answer_due(&mut self) {
        let now = Instant::now();
        for inbound in self.connections.iter_mut().flatten().filter(|inbound| inbound.due.is_some_and(|due| due <= now)) {
            inbound.answer(ACCEPTED);
            inbound.owed -= 1;
            inbound.due = match self.manners[inbound.subscriber] {
                Manner::Slow(pause_ms) if inbound.owed > 0 => Some(now + pause(pause_ms)),
                _ => None,
            };
        }
    }
}

fn pause(pause_ms: u32) -> Duration {
    Duration::from_millis(u64::from(pause_ms))
}

impl Inbound {
    /// Answers are far smaller than a send buffer; a pusher that is gone needs none.
    fn answer(&mut self, answers: &[u8]) {
        if !answers.is_empty() {
            let _ = self.stream.write_all(answers);
        }
    }
}

/// Length of the first request, once it is whole.
fn request_length(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).context("a push is no HTTP request")? else { return Ok(None) };
    let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse::<usize>().ok());
    let end = head + length.context("a push without Content-Length")?;
    Ok((bytes.len() >= end).then_some(end))
}

/// The payload of the bench somewhere in the request's JSON, in which it needs no escape.
fn payload(request: &[u8]) -> Option<&[u8]> {
    let at = request.windows(PREFIX.len()).position(|window| window == PREFIX)?;
    request.get(at..at + PAYLOAD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::payload::Payload;
    use std::thread;

    fn push(sequence: u64) -> Vec<u8> {
        let mut bytes = [0; PAYLOAD_BYTES];
        Payload { publisher: 0, sequence, sent_ns: monotonic_ns() }.write(&mut bytes);
        let body = format!(r#"{{"eventType":"T","payload":"{}"}}"#, std::str::from_utf8(&bytes).unwrap());
        format!("POST /bench HTTP/1.1\r\nHost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn answer(stream: &mut std::net::TcpStream) -> String {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).unwrap();
        String::from_utf8_lossy(&piece[..length]).lines().next().unwrap_or_default().to_string()
    }

    #[test]
    fn pushes_are_counted_and_answered_by_their_manner() {
        let order = PushOrder { manners: vec![Manner::Prompt, Manner::Slow(30), Manner::Dead], publishers: 1 };
        let receiver = PushReceiver::listen(&order).unwrap();
        let (ports, refuse) = (receiver.ports().to_vec(), Arc::clone(&receiver.refuse));
        let sent = Arc::new(OnceLock::new());
        let heard = Arc::clone(&sent);
        let receiving = thread::spawn(move || receiver.receive(&heard));
        let mut streams: Vec<_> = ports.iter().map(|port| std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).unwrap()).collect();
        let whole = push(0);
        for stream in &mut streams {
            stream.write_all(&whole[..20]).unwrap();
        }
        let started = Instant::now();
        for stream in &mut streams {
            stream.write_all(&whole[20..]).unwrap();
        }
        assert_eq!(answer(&mut streams[0]), "HTTP/1.1 200 OK");
        assert_eq!(answer(&mut streams[1]), "HTTP/1.1 200 OK");
        assert!(started.elapsed() >= Duration::from_millis(30));
        refuse.store(true, Ordering::Relaxed);
        streams[0].write_all(&push(1)).unwrap();
        assert_eq!(answer(&mut streams[0]), "HTTP/1.1 400 Bad Request");
        refuse.store(false, Ordering::Relaxed);
        streams[0].write_all(&push(1)).unwrap();
        assert_eq!(answer(&mut streams[0]), "HTTP/1.1 200 OK");
        streams[1].write_all(&[push(1), push(2)].concat()).unwrap();
        assert_eq!(answer(&mut streams[1]), "HTTP/1.1 200 OK");
        assert_eq!(answer(&mut streams[1]), "HTTP/1.1 200 OK", "each of several pushes is answered after its pause");
        sent.set(Sent(vec![2])).unwrap();
        let report = receiving.join().unwrap().unwrap();
        assert_eq!((report.deliveries, report.others, report.lost, report.foreign), (2, 3, 0, 0));
    }
}
