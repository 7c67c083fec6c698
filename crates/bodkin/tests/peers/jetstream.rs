//! Events into a real JetStream, over connections that are cut anywhere and a server that is killed: each event is in its stream once, in its order.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bodkin_nats::{
    client::Options,
    forwarder::{Forwarder, Setup, Told, lane_subject},
    jetstream::{Api, StreamConfig},
    lane::{self, Backlog, Identity, MemoryBacklog, Record, Records, Terms},
    protocol::{Credentials, Decoder, Headers, Limits, Operation, Subject, decode_base64},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::patience::{PATIENCE, eventually_some};
use crate::support::random::Random;
use crate::support::skip;

const STREAM: &str = "FLEET";
const TOKEN: &str = "of the fleet";
const LANES: usize = 2;
const EVENTS: u64 = 20_000;
/// Events that come in a turn of the edge.
const EVENTS_OF_TURN: u64 = 25;
/// How many events are in the stream when the server is killed.
const KILLED_AT: [u64; 3] = [3_000, 9_000, 15_000];
/// A connection is cut after so many turns at the most.
const TURNS_MAX: u64 = 60;
/// The whole of it: reached by a failing test only.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// A server with JetStream that syncs everything; killed when dropped.
struct Server {
    program: PathBuf,
    place: TempDir,
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &Path) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let config = format!(
            "listen: \"127.0.0.1:-1\"\nports_file_dir: \"{0}\"\nauthorization {{ token: \"{TOKEN}\", timeout: 60 }}\njetstream {{ store_dir: \"{0}/store\", sync_interval: always }}\n",
            place.path().display()
        );
        fs::write(place.path().join("nats.conf"), config).expect("the configuration is written");
        let (child, port) = Self::begin(program, place.path());
        Self { program: program.to_owned(), place, child, port }
    }

    fn begin(program: &Path, place: &Path) -> (Child, u16) {
        let mut command = Command::new(program);
        command.arg("-c").arg(place.join("nats.conf")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("nats-server starts");
        // It listens where it likes, and says where.
        let ports = place.join(format!("nats-server_{}.ports", child.id()));
        let port = eventually_some(|| {
            let told: Value = serde_json::from_slice(&fs::read(&ports).ok()?).ok()?;
            told["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
        });
        (child, port.expect("nats-server says where it listens"))
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
        (self.child, self.port) = Self::begin(&self.program, self.place.path());
    }

    fn connect(&self) -> TcpStream {
        let connection = eventually_some(|| TcpStream::connect(("127.0.0.1", self.port)).ok()).expect("nats-server listens");
        connection.set_nodelay(true).expect("a connection");
        connection
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Edge {
    forwarder: Forwarder,
    backlogs: Vec<MemoryBacklog>,
    made: u64,
    begun: Instant,
    connections: u64,
    told: Vec<Told>,
}

fn subject(lane: usize) -> Subject {
    lane_subject("fleet", "edge-7", &format!("lane-{lane}")).expect("a subject")
}

impl Edge {
    fn new() -> Self {
        let config = StreamConfig { duplicate_window: 100_000_000, ..StreamConfig::new(STREAM, &["fleet.>"]) };
        let setup = Setup {
            api: Api::new(None).expect("no domain"),
            stream: STREAM.to_owned(),
            create: Some(config),
            answer_wait_max: PATIENCE,
            look_every: Duration::from_millis(50),
        };
        let terms = |lane| Terms {
            stream: STREAM.to_owned(),
            subject: subject(lane),
            epoch: 1,
            batch_bytes_max: 8192,
            batch_wait_max: Duration::from_millis(10),
            rest_least: Duration::from_millis(10),
            rest_most: Duration::from_millis(100),
        };
        let forwarder = Forwarder::new(setup, (0..LANES).map(terms).collect()).expect("subjects");
        let backlogs = vec![MemoryBacklog::new(1, 1 << 30); LANES];
        Self { forwarder, backlogs, made: 0, begun: Instant::now(), connections: 0, told: Vec::new() }
    }

    fn connect(&mut self) {
        self.connections += 1;
        let options = Options {
            name: "edge-7".to_owned(),
            credentials: Credentials::Token(TOKEN.to_owned()),
            inbox: Subject::new(&format!("_INBOX.edge.{}", self.connections)).expect("a subject"),
            is_encrypted: false,
            greeting_wait_max: PATIENCE,
            silence_max: PATIENCE,
        };
        self.forwarder.connected(options, self.begun.elapsed());
    }

    fn publish(&mut self) {
        let end = EVENTS.min(self.made + EVENTS_OF_TURN);
        for sequence in self.made..end {
            let lane = sequence as usize % LANES;
            let record = Record::Event { topic: "t", publisher: 1, incarnation: 1, sequence, created_ns: 0, payload: &[7; 100] };
            let bytes = self.backlogs[lane].put(record).expect("there is room");
            self.forwarder.grown(lane, bytes, self.begun.elapsed());
        }
        self.made = end;
    }

    /// Events in the stream, as far as the edge knows.
    fn stored(&self) -> u64 {
        self.backlogs.iter().map(|backlog| backlog.first() - 1).sum()
    }

    /// What is written now.
    fn writes(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        // The second time is for what the first one has changed.
        for _ in 0..2 {
            self.forwarder.step(self.begun.elapsed(), &mut self.backlogs, &mut self.told).expect("the server is understood");
            self.forwarder.take_out(&mut out);
        }
        out
    }

    /// One connection, cut after so many turns within what is written last; or until everything is stored, or `until` events are.
    fn converse(&mut self, mut connection: TcpStream, turns: u64, random: &mut Random, until: u64) {
        connection.set_read_timeout(Some(Duration::from_millis(2))).expect("a connection");
        self.connect();
        let mut bytes = vec![0; 65_536];
        for turn in 0.. {
            assert!(self.begun.elapsed() < WAIT_MAX, "{} events are in the stream: {:?}", self.stored(), self.told.last());
            self.publish();
            let out = self.writes();
            let is_last = turn >= turns && !out.is_empty();
            let written = if is_last { random.between(0, out.len() as u64 + 1) as usize } else { out.len() };
            // A server that ends the connection has cut it, too.
            if connection.write_all(&out[..written]).is_err() || is_last || self.stored() >= until.min(EVENTS) {
                break;
            }
            match connection.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => {
                    let now = self.begun.elapsed();
                    self.forwarder.receive(&bytes[..length], now, &mut self.backlogs, &mut self.told).expect("the server is understood");
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        self.forwarder.disconnected();
    }
}

/// Sequences of a lane's events in the order of the stream; their positions are without gaps.
fn in_stream(server: &Server, lane: usize) -> Vec<u64> {
    let mut events = Vec::new();
    let connection = server.connect();
    connection.set_read_timeout(Some(PATIENCE)).expect("a connection");
    read_lane(connection, &format!("\"auth_token\":\"{TOKEN}\""), STREAM, &subject(lane), |record| {
        let Record::Event { sequence, .. } = record else { panic!("{record:?}") };
        events.push(sequence);
    })
    .expect("the server answers");
    events
}

/// Reads a lane from its stream, batch by batch; within an epoch positions are without gaps. `None`: the server does not answer, as while the stream has no leader.
pub fn read_lane(
    mut connection: TcpStream,
    credentials: &str,
    stream: &str,
    subject: &Subject,
    mut take: impl FnMut(Record<'_>),
) -> Option<()> {
    let greeting = format!("CONNECT {{\"verbose\":false,\"headers\":true,{credentials}}}\r\nSUB answers 1\r\n");
    connection.write_all(greeting.as_bytes()).ok()?;
    let (mut decoder, mut epoch, mut position, mut from) = (Decoder::new(Limits::default()), 0, 1, 1);
    loop {
        let question = json!({ "seq": from, "next_by_subj": subject.as_str() }).to_string();
        let call = format!("PUB $JS.API.STREAM.MSG.GET.{stream} answers {}\r\n{question}\r\n", question.len());
        connection.write_all(call.as_bytes()).ok()?;
        let answer = answer(&mut connection, &mut decoder)?;
        let Some(message) = answer.get("message") else { return Some(()) };
        let text = |name: &str| decode_base64(message[name].as_str().expect("base64")).expect("base64");
        let identity = Identity::read(&Headers::read(&text("hdrs")).expect("headers")).expect("a batch");
        if identity.epoch != epoch {
            assert!(identity.epoch > epoch, "epochs ascend");
            (epoch, position) = (identity.epoch, if from == 1 { identity.first } else { 1 });
        }
        assert_eq!(identity.first, position, "a batch follows the one before it");
        for record in Records::new(&text("data")) {
            take(record.expect("a record"));
            position += 1;
        }
        assert_eq!(identity.last + 1, position);
        from = message["seq"].as_u64().expect("a number") + 1;
    }
}

fn answer(connection: &mut TcpStream, decoder: &mut Decoder) -> Option<Value> {
    let mut bytes = vec![0; 65_536];
    loop {
        let length = connection.read(&mut bytes).ok().filter(|length| *length > 0)?;
        let mut rest = &bytes[..length];
        while let Some(operation) = decoder.receive(&mut rest).expect("the server is understood") {
            if let Operation::Message(message) = operation {
                return Some(serde_json::from_slice(&message.payload).expect("JSON"));
            }
        }
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn events_are_in_a_stream_once_over_connections_that_are_cut_and_a_server_that_is_killed() {
    let Some(program) = std::env::var_os("BODKIN_NATS_SERVER").map(PathBuf::from).filter(|program| program.is_file()) else {
        let name = "events_are_in_a_stream_once_over_connections_that_are_cut_and_a_server_that_is_killed";
        return skip::note(name, "there is no nats-server (BODKIN_NATS_SERVER)");
    };
    let mut random = Random::from_environment("cuts");
    let mut server = Server::start(&program);
    let mut edge = Edge::new();
    for until in KILLED_AT.into_iter().chain([EVENTS]) {
        while edge.stored() < until {
            let turns = random.between(1, TURNS_MAX);
            edge.converse(server.connect(), turns, &mut random, until);
        }
        if until < EVENTS {
            server.kill();
        }
    }
    println!("{} connections", edge.connections);
    for lane in 0..LANES {
        let expected: Vec<u64> = (0..EVENTS).filter(|event| *event as usize % LANES == lane).collect();
        assert_eq!(in_stream(&server, lane), expected, "each once, in order");
    }
    let lost = edge
        .told
        .iter()
        .find(|told| matches!(told, Told::Lane(_, lane::Told::StreamLost(..) | lane::Told::Emptied(_) | lane::Told::Stopped(_))));
    assert_eq!(lost, None, "the server has what it has acknowledged");
}
