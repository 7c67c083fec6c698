//! A bare client: batches of the same bytes into the same kind of stream, one message name each, one under way at a time, and nothing else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bodkin_nats::{
    client::{Client, Event, Options},
    jetstream::{Api, MESSAGE_ID, StreamConfig, publish_ack, stream_info},
    lane::{Batch, Put, Record},
    protocol::{Credentials, Headers, INFO_BYTES_MAX, Message, Subject},
};

use crate::statistics::Latencies;
use crate::wire::{Caller, Wire};

/// For an answer: a stream on several servers has to find its leader first.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What is published.
pub struct BareLoad<'a> {
    /// Where.
    pub subject: &'a str,
    /// Of which event type each event is said to be.
    pub topic: &'a str,
    /// How many events.
    pub events: u64,
    /// Bytes of each payload.
    pub payload_bytes: usize,
    /// Bytes of a batch.
    pub batch_bytes: usize,
}

impl BareLoad<'_> {
    /// Events from this one on, as many as have room and have come.
    fn batch(&self, payload: &[u8], sequence: &mut u64, come: u64) -> Batch {
        let mut batch = Batch::new(self.batch_bytes);
        while *sequence < come {
            let record = Record::Event { topic: self.topic, publisher: 1, incarnation: 1, sequence: *sequence, created_ns: 0, payload };
            if batch.put(record) == Put::Full {
                break;
            }
            *sequence += 1;
        }
        batch
    }
}

/// A connection with one request under way.
pub struct Bare {
    client: Client,
    wire: Wire<TcpStream>,
    begun: Instant,
}

impl Bare {
    /// Connects, and is greeted.
    ///
    /// # Errors
    /// Nobody is there, or it is no NATS server.
    pub fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        Self::connect_as(address, &Caller::Nobody)
    }

    /// As [`Self::connect`]; a certified caller begins TLS after the server's INFO.
    ///
    /// # Errors
    /// Returns an error if no NATS server is there, or it refuses the certificate.
    pub fn connect_as(address: SocketAddr, caller: &Caller) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).context("no nats-server is there")?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let is_encrypted = matches!(caller, Caller::Certified(_));
        let greeting = if is_encrypted { first_line(&socket)? } else { Vec::new() };
        let options = Options {
            name: "bare".to_owned(),
            credentials: Credentials::None,
            inbox: own_inbox(),
            is_encrypted,
            greeting_wait_max: ANSWER_MAX,
            silence_max: ANSWER_MAX,
        };
        let wire = Wire::new(socket, caller, address.ip());
        let mut bare = Self { client: Client::new(options, Duration::ZERO), wire, begun: Instant::now() };
        bare.client.receive(&greeting, Duration::ZERO, &mut Vec::new())?;
        while !bare.client.is_open() {
            bare.exchange()?;
        }
        Ok(bare)
    }

    /// Writes what there is, and reads once.
    fn exchange(&mut self) -> anyhow::Result<Vec<Event>> {
        let (mut out, mut bytes, mut events) = (Vec::new(), [0; 65_536], Vec::new());
        self.client.take_out(&mut out);
        self.wire.write_all(&out)?;
        let length = self.wire.read(&mut bytes)?;
        if length == 0 {
            bail!("nats-server has ended the connection");
        }
        self.client.receive(&bytes[..length], self.begun.elapsed(), &mut events)?;
        out.clear();
        self.client.take_out(&mut out);
        self.wire.write_all(&out)?;
        Ok(events)
    }

    /// Asks something, and waits for the answer.
    ///
    /// # Errors
    /// It is refused, or nobody answers.
    pub fn ask(&mut self, subject: &Subject, headers: &Headers, body: &[u8]) -> anyhow::Result<Message> {
        let asked = self.client.request(subject, headers, body, self.begun.elapsed(), ANSWER_MAX)?;
        loop {
            for event in self.exchange()? {
                match event {
                    Event::Answer(request, message) if request == asked => return Ok(message),
                    Event::NobodyListens(_) => bail!("there is no such stream"),
                    Event::Refused(words) => bail!(words),
                    _ => {}
                }
            }
        }
    }

    /// Makes a stream of these subjects on so many servers.
    ///
    /// # Errors
    /// It is refused.
    pub fn create(&mut self, stream: &str, subject: &str, replicas: u8) -> anyhow::Result<()> {
        let config = StreamConfig { num_replicas: replicas, ..StreamConfig::new(stream, &[subject]) };
        let (question, body) = Api::new(None)?.create_stream(&config)?;
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let answer = self.ask(&question, &Headers::default(), &body)?;
            match stream_info(&answer.payload) {
                Ok(_) => return Ok(()),
                // The servers have not come together yet.
                Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(200)),
                Err(error) => return Err(anyhow!(error).context("the stream is not made")),
            }
        }
    }

    /// Publishes as fast as it goes; gives how long each batch took.
    ///
    /// # Errors
    /// One is refused.
    pub fn publish(&mut self, load: &BareLoad<'_>) -> anyhow::Result<Latencies> {
        let (subject, payload) = (Subject::new(load.subject)?, vec![b'x'; load.payload_bytes]);
        let (mut latencies, mut sequence) = (Latencies::default(), 0);
        while sequence < load.events {
            let first = sequence;
            let batch = load.batch(&payload, &mut sequence, load.events);
            let sent = Instant::now();
            self.store(&subject, first..sequence, &batch)?;
            latencies.record(sent.elapsed());
        }
        Ok(latencies)
    }

    /// The same with so many events a second: a batch goes when it is full, or its first event has waited for so long. Gives how old each event was when it was acknowledged.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn publish_evenly(&mut self, load: &BareLoad<'_>, events_per_s: f64, wait_max: Duration) -> anyhow::Result<Latencies> {
        let (subject, payload) = (Subject::new(load.subject)?, vec![b'x'; load.payload_bytes]);
        let full = load.batch(&payload, &mut 0, u64::MAX).records();
        let (mut ages, mut sequence, begun) = (Latencies::default(), 0, Instant::now());
        let due = |event: u64| Duration::from_secs_f64(event as f64 / events_per_s);
        while sequence < load.events {
            let first = sequence;
            let goes = due(first + full - 1).min(due(first) + wait_max);
            thread::sleep(goes.saturating_sub(begun.elapsed()));
            let come = (begun.elapsed().as_secs_f64() * events_per_s) as u64 + 1;
            let batch = load.batch(&payload, &mut sequence, come.min(load.events));
            self.store(&subject, first..sequence, &batch)?;
            let acknowledged = begun.elapsed();
            (first..sequence).for_each(|event| ages.record(acknowledged.saturating_sub(due(event))));
        }
        Ok(ages)
    }

    fn store(&mut self, subject: &Subject, events: Range<u64>, batch: &Batch) -> anyhow::Result<()> {
        let headers = Headers::default().with(MESSAGE_ID, format_args!("{subject}/{}-{}", events.start, events.end - 1));
        let answer = self.ask(subject, &headers, batch.bytes())?;
        publish_ack(&answer.payload).map(drop).map_err(Into::into)
    }
}

/// An inbox that no other client of this machine has: a client that shared it would take another one's answers for its own.
fn own_inbox() -> Subject {
    static CLIENTS: AtomicU64 = AtomicU64::new(0);
    let text = format!("_INBOX.bare-{}-{}", process::id(), CLIENTS.fetch_add(1, Relaxed));
    Subject::new(&text).expect("numbers are part of a token")
}

/// The server's INFO, byte by byte: what follows it belongs to the TLS handshake.
fn first_line(mut socket: &TcpStream) -> anyhow::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.last() != Some(&b'\n') {
        if line.len() == INFO_BYTES_MAX || socket.read(&mut byte)? == 0 {
            bail!("the server does not begin with INFO");
        }
        line.push(byte[0]);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_own_inbox() {
        let inboxes: std::collections::BTreeSet<String> = (0..10).map(|_| own_inbox().as_str().to_owned()).collect();
        assert_eq!(inboxes.len(), 10);
    }
}
