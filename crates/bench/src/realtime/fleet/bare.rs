//! A bare client: batches of the same bytes into the same kind of stream, one message name each, one under way at a time, and nothing else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bodkin_nats::{
    client::{Client, Event, Options},
    jetstream::{Api, MESSAGE_ID, StreamConfig, publish_ack, stream_info},
    lane::{Batch, Put, Record},
    protocol::{Credentials, Headers, Message, Subject},
};

use crate::statistics::Latencies;

/// For an answer: a stream on several servers has to find its leader first.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A connection with one request under way.
pub struct Bare {
    client: Client,
    socket: TcpStream,
    begun: Instant,
}

impl Bare {
    /// Connects, and is greeted.
    ///
    /// # Errors
    /// Nobody is there, or it is no NATS server.
    pub fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).context("no nats-server is there")?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let options = Options {
            name: "bare".to_owned(),
            credentials: Credentials::None,
            inbox: Subject::new("_INBOX.bare").expect("a subject"),
            is_encrypted: false,
            greeting_wait_max: ANSWER_MAX,
            silence_max: ANSWER_MAX,
        };
        let mut bare = Self { client: Client::new(options, Duration::ZERO), socket, begun: Instant::now() };
        while !bare.client.is_open() {
            bare.exchange()?;
        }
        Ok(bare)
    }

    /// Writes what there is, and reads once.
    fn exchange(&mut self) -> anyhow::Result<Vec<Event>> {
        let (mut out, mut bytes, mut events) = (Vec::new(), [0; 65_536], Vec::new());
        self.client.take_out(&mut out);
        self.socket.write_all(&out)?;
        let length = self.socket.read(&mut bytes)?;
        if length == 0 {
            bail!("nats-server has ended the connection");
        }
        self.client.receive(&bytes[..length], self.begun.elapsed(), &mut events)?;
        out.clear();
        self.client.take_out(&mut out);
        self.socket.write_all(&out)?;
        Ok(events)
    }

    fn ask(&mut self, subject: &Subject, headers: &Headers, body: &[u8]) -> anyhow::Result<Message> {
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
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(200)),
                Err(error) => return Err(anyhow!(error).context("the stream is not made")),
            }
        }
    }

    /// Publishes so many events of so many bytes, in batches of so many; gives how long each batch took.
    ///
    /// # Errors
    /// One is refused.
    pub fn publish(&mut self, subject: &str, events: u64, payload_bytes: usize, batch_bytes: usize) -> anyhow::Result<Latencies> {
        let (subject, payload) = (Subject::new(subject)?, vec![b'x'; payload_bytes]);
        let (mut latencies, mut sequence) = (Latencies::default(), 0);
        while sequence < events {
            let (first, mut batch) = (sequence, Batch::new(batch_bytes));
            while sequence < events {
                let record = Record::Event { topic: "BARE", publisher: 1, incarnation: 1, sequence, created_ns: 0, payload: &payload };
                if batch.put(record) == Put::Full {
                    break;
                }
                sequence += 1;
            }
            let headers = Headers::default().with(MESSAGE_ID, format_args!("{subject}/{first}-{}", sequence - 1));
            let sent = Instant::now();
            let answer = self.ask(&subject, &headers, batch.bytes())?;
            publish_ack(&answer.payload)?;
            latencies.record(sent.elapsed());
        }
        Ok(latencies)
    }
}
