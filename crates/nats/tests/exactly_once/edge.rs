//! The edge of a run: a forwarder, its backlogs, and what was published.

use std::time::Duration;

use bodkin_nats::{
    client::Options,
    forwarder::{Forwarder, Setup, Told, lane_subject},
    jetstream::{Api, StreamConfig},
    lane::{Backlog, MemoryBacklog, Record, Terms},
    protocol::{Credentials, Subject},
    servers::{Pause, Servers},
};

/// Lanes of the edge.
pub const LANES: usize = 3;
/// The stream that they go into.
pub const STREAM: &str = "FLEET";
/// Room for everything: what does not fit is another test's.
const BACKLOG_BYTES_MAX: usize = 1 << 30;

pub struct Edge {
    forwarder: Forwarder,
    backlogs: Vec<MemoryBacklog>,
    /// Of each lane the events, in their order.
    pub published: Vec<Vec<u64>>,
    servers: Servers,
    pub is_connected: bool,
    pub to_server: Vec<u8>,
}

pub fn subject(lane: usize) -> Subject {
    lane_subject("fleet", "edge-7", &format!("lane-{lane}")).expect("a subject")
}

fn forwarder() -> Forwarder {
    let config = StreamConfig { duplicate_window: 120_000_000_000, ..StreamConfig::new(STREAM, &["fleet.>"]) };
    let setup = Setup {
        api: Api::new(None).expect("no domain"),
        stream: STREAM.to_owned(),
        create: Some(config),
        answer_wait_max: Duration::from_secs(5),
        look_every: Duration::from_secs(1),
    };
    let terms = |lane| Terms {
        stream: STREAM.to_owned(),
        subject: subject(lane),
        epoch: 1,
        batch_bytes_max: 4096,
        batch_wait_max: Duration::from_millis(10),
        rest_least: Duration::from_millis(50),
        rest_most: Duration::from_secs(2),
    };
    Forwarder::new(setup, (0..LANES).map(terms).collect()).expect("subjects")
}

impl Edge {
    pub fn new() -> Self {
        Self {
            forwarder: forwarder(),
            backlogs: vec![MemoryBacklog::new(1, BACKLOG_BYTES_MAX); LANES],
            published: vec![Vec::new(); LANES],
            servers: Servers::new(1, Pause::default()),
            is_connected: false,
            to_server: Vec::new(),
        }
    }

    /// An event of a topic of this lane.
    pub fn publish_to(&mut self, lane: usize, payload_bytes: usize, now: Duration) {
        let sequence = self.published[lane].len() as u64 * 7 + lane as u64;
        self.published[lane].push(sequence);
        let payload = vec![sequence as u8; payload_bytes];
        let record = Record::Event { topic: "temperature", publisher: 1, incarnation: 1, sequence, created_ns: 0, payload: &payload };
        let bytes = self.backlogs[lane].put(record).expect("there is room");
        self.forwarder.grown(lane, bytes, now);
    }

    pub fn connect(&mut self, now: Duration) {
        let (server, _) = self.servers.next(0);
        assert_eq!(server, 0);
        let options = Options {
            name: "edge-7".to_owned(),
            credentials: Credentials::None,
            inbox: Subject::new("_INBOX.r4nd0m").expect("a subject"),
            is_encrypted: false,
            greeting_wait_max: Duration::from_secs(5),
            silence_max: Duration::from_secs(10),
        };
        self.forwarder.connected(options, now);
        self.is_connected = true;
    }

    pub fn cut(&mut self) {
        self.forwarder.disconnected();
        self.is_connected = false;
        self.to_server.clear();
    }

    /// The process is killed: its backlog is on disk, and nothing else.
    pub fn restart(&mut self) {
        self.forwarder = forwarder();
    }

    pub fn step(&mut self, now: Duration, told: &mut Vec<Told>) {
        match self.forwarder.step(now, &mut self.backlogs, told) {
            Ok(_) => self.forwarder.take_out(&mut self.to_server),
            Err(_) => self.cut(),
        }
    }

    pub fn receive(&mut self, from_server: &mut Vec<u8>, piece: usize, now: Duration, told: &mut Vec<Told>) {
        let piece: Vec<u8> = from_server.drain(..piece.min(from_server.len())).collect();
        if self.forwarder.receive(&piece, now, &mut self.backlogs, told).is_err() {
            self.cut();
        }
    }

    pub fn is_drained(&self) -> bool {
        self.backlogs.iter().all(|backlog| backlog.first() == backlog.end())
    }
}
