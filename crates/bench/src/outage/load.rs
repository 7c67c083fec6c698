//! Clients of a campaign: publishers and registrars at every member, listeners that move, a push subscriber, and commands.
//!
//! Each client is a thread that never ends by itself and records into the [`Scene`]'s ledger.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bodkin_client::{EventParser, Part};
use bodkin_nats::jetstream::publish_ack;
use bodkin_nats::protocol::{Headers, Subject};
use serde_json::{Value, json};

use super::ledger::{Ledger, Promise};
use super::member::{EVENT_HANDLER_PORT, REGISTRY_PORT};
use super::plan::{EDGES, NODES};
use super::stand::{COMMAND_TYPE, EVENT_TYPE, PUBLISHER, PUBLISHER_PORT, Stand, service};
use crate::crash::clients::callback;
use crate::draws::Draws;
use crate::http::Http;
use crate::realtime::fleet::bare::Bare;
use crate::request;
use crate::wire::Caller;

/// Listeners that move between the nodes.
const LISTENERS: usize = 3;
/// Name of the push subscriber in the ledger.
const PUSH: &str = "push subscriber";
/// Name of the fleet's stream in the ledger.
pub const STREAM: &str = "fleet stream";
/// Longest wait for the answer to a publication or registration.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest wait for an event stream to open.
const OPEN_MAX: Duration = Duration::from_secs(2);
/// Longest wait until every listener has its first stream.
const ALL_OPEN_MAX: Duration = Duration::from_secs(60);
/// Longest wait of one read.
const TURN_MAX: Duration = Duration::from_millis(100);
/// Longest stay of a listener at a node.
const STAY_MAX_MS: u64 = 5_000;
/// Between two attempts of a client that was refused.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// Between two registrations at one node.
const REGISTER_EVERY: Duration = Duration::from_millis(250);
/// Longest line or event that is accepted.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Event by which a stream reports losses.
const LOST: &str = "bodkin-lost";

/// Identities of received events, by line and sequence.
type Identities = HashMap<(usize, u64), String>;

/// An answered registration.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its service definition.
    pub definition: String,
    /// Id of the entry in the answer.
    pub id: i64,
}

/// State that all clients share.
pub struct Scene {
    ledger: Mutex<Ledger>,
    registrations: Mutex<Vec<Registration>>,
    /// Commands that an edge published again under the same identity.
    pub same_identity: AtomicU64,
    /// Listeners that have opened their first stream.
    opened: AtomicU64,
    ends: AtomicBool,
    period: Duration,
    /// Registries and Event Handlers of the members.
    registries: Vec<SocketAddr>,
    handlers: Vec<SocketAddr>,
    nats: Vec<SocketAddr>,
    caller: Caller,
    names: Vec<String>,
    /// Where the stream has the commands that it acknowledged, by line and number.
    stored: Mutex<BTreeMap<(usize, u64), u64>>,
}

impl Scene {
    /// Returns a scene with the lines and paths of this stand.
    pub fn new(stand: &Stand, period: Duration) -> Self {
        let mut ledger = Ledger::default();
        let names: Vec<String> = stand.members.iter().map(|member| member.name.clone()).collect();
        for (line, name) in names.iter().enumerate() {
            ledger.add_line(&format!("events of {name}"));
            if line < NODES {
                (0..LISTENERS).for_each(|listener| ledger.add_path(line, &listener_name(listener), Promise::OnceInOrder));
                ledger.add_path(line, PUSH, Promise::Arrives);
            } else {
                ledger.add_path(line, STREAM, Promise::OnceInOrder);
            }
        }
        for name in &names[NODES..] {
            let line = ledger.add_line(&format!("commands to {name}"));
            ledger.add_path(line, name, Promise::OnceInOrder);
        }
        let addresses = |port| stand.members.iter().map(|member| member.address(port)).collect();
        Self {
            ledger: Mutex::new(ledger),
            registrations: Mutex::default(),
            same_identity: AtomicU64::default(),
            opened: AtomicU64::default(),
            ends: AtomicBool::default(),
            period,
            registries: addresses(REGISTRY_PORT),
            handlers: addresses(EVENT_HANDLER_PORT),
            nats: stand.nats.addresses(),
            caller: stand.caller().clone(),
            names,
            stored: Mutex::default(),
        }
    }

    /// Returns the stream's sequences of acknowledged commands.
    pub fn stored(&self) -> MutexGuard<'_, BTreeMap<(usize, u64), u64>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answered registrations from this one on.
    pub fn registrations(&self, from: usize) -> Vec<Registration> {
        let all = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        all[from.min(all.len())..].to_vec()
    }

    fn runs(&self) -> bool {
        !self.ends.load(Relaxed)
    }
}

/// Header of a command with its line and number.
pub const NUMBER_HEADER: &str = "Bodkin-Outage";

/// The line of the commands to an edge, by its number from 0.
pub fn command_line(edge: usize) -> usize {
    NODES + EDGES + edge
}

fn listener_name(listener: usize) -> String {
    format!("listener {}", listener + 1)
}

/// Reads the line and the sequence of a payload.
pub fn numbered(payload: &str) -> Option<(usize, u64)> {
    let (line, sequence) = payload.split_once(' ')?;
    Some((line.parse().ok()?, sequence.parse().ok()?))
}

/// The running clients; ended when dropped.
pub struct Load {
    scene: Arc<Scene>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts all clients.
    ///
    /// # Errors
    /// Returns an error if the system gives no thread, port or file.
    pub fn start(scene: &Arc<Scene>, stand: &Stand, seed: u64) -> anyhow::Result<Self> {
        let mut load = Self { scene: Arc::clone(scene), threads: Vec::new() };
        let push = TcpListener::bind(("127.0.0.1", stand.push_port)).context("the push subscriber's port")?;
        load.spawn(move |scene| receive_pushes(scene, &push))?;
        for listener in 0..LISTENERS {
            let trace = Trace::new(stand.path(), &format!("listener-{}", listener + 1))?;
            let draws = Draws::new(seed.wrapping_add(listener as u64).rotate_left(17));
            let places = (0..NODES).collect();
            load.spawn(move |scene| Listener { name: listener_name(listener), places, draws, trace, may_repeat: false }.run(scene))?;
        }
        for edge in 0..EDGES {
            let member = NODES + edge;
            let (name, trace) = (scene.names[member].clone(), Trace::new(stand.path(), &format!("commands-{}", edge + 1))?);
            let draws = Draws::new(seed.wrapping_add(member as u64).rotate_left(17));
            load.spawn(move |scene| Listener { name, places: vec![member], draws, trace, may_repeat: true }.run(scene))?;
        }
        // Listeners are there before the first event.
        let begin = Instant::now();
        while scene.opened.load(Relaxed) < (LISTENERS + EDGES) as u64 {
            ensure!(begin.elapsed() < ALL_OPEN_MAX, "not every listener has a stream within {} s", ALL_OPEN_MAX.as_secs());
            thread::sleep(RETRY_AFTER);
        }
        for edge in 0..EDGES {
            load.spawn(move |scene| command(scene, edge))?;
        }
        for member in 0..NODES + EDGES {
            load.spawn(move |scene| publish(scene, member))?;
        }
        for node in 0..NODES {
            load.spawn(move |scene| register(scene, node))?;
        }
        Ok(load)
    }

    fn spawn(&mut self, run: impl FnOnce(&Arc<Scene>) + Send + 'static) -> anyhow::Result<()> {
        let scene = Arc::clone(&self.scene);
        self.threads.push(thread::Builder::new().name("outage".into()).spawn(move || run(&scene))?);
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.scene.ends.store(true, Relaxed);
        // A client that panicked has printed why.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Publishes numbered events at one member.
fn publish(scene: &Scene, member: usize) {
    let mut kept: Option<Http> = None;
    while scene.runs() {
        thread::sleep(scene.period);
        let Some(mut http) = kept.take().or_else(|| Http::plain(scene.handlers[member], ANSWER_MAX).ok()) else {
            thread::sleep(RETRY_AFTER);
            continue;
        };
        let sequence = scene.ledger().publish(member);
        let source = request::system(PUBLISHER, "127.0.0.1", PUBLISHER_PORT);
        let event = json!({"eventType": EVENT_TYPE, "source": source, "payload": format!("{member} {sequence}")}).to_string();
        match http.exchange("POST", "/eventhandler/publish", "", &event) {
            Ok(answer) if answer.status == 200 => {
                scene.ledger().accept(member, sequence, Instant::now());
                kept = Some(http);
            }
            Ok(answer) => {
                scene.ledger().refuse(member, &answer.reason());
                kept = Some(http);
                thread::sleep(RETRY_AFTER);
            }
            Err(_) => {}
        }
    }
}

/// Registers one service after the other at a node.
fn register(scene: &Scene, node: usize) {
    let mut number = 0u64;
    while scene.runs() {
        thread::sleep(REGISTER_EVERY);
        number += 1;
        let definition = format!("outage-{node}-{number}");
        let Ok(mut http) = Http::plain(scene.registries[node], 5 * ANSWER_MAX) else { continue };
        let Ok(answer) = http.exchange("POST", "/serviceregistry/register", "", &service(&definition).to_string()) else { continue };
        let entry: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let (201, Some(id)) = (answer.status, entry["id"].as_i64()) {
            scene.registrations.lock().unwrap_or_else(PoisonError::into_inner).push(Registration { definition, id });
        }
    }
}

/// Publishes numbered commands to an edge into the stream.
fn command(scene: &Scene, edge: usize) {
    let (line, mut kept, mut server) = (command_line(edge), None, 0);
    let subject = format!("commands.{}.{COMMAND_TYPE}", scene.names[NODES + edge]);
    let subject = Subject::new(&subject).expect("an edge's name is a token");
    while scene.runs() {
        thread::sleep(4 * scene.period);
        server = (server + 1) % scene.nats.len();
        let Some(mut bare) = kept.take().or_else(|| Bare::connect_as(scene.nats[server], &scene.caller).ok()) else { continue };
        let sequence = scene.ledger().publish(line);
        let data = format!("{line} {sequence}");
        let command = json!({"specversion": "1.0", "id": data, "source": "/outage", "type": COMMAND_TYPE, "data": data}).to_string();
        let stored = bare.ask(&subject, &Headers::default().with(NUMBER_HEADER, &data), command.as_bytes());
        if let Some(ack) = stored.ok().and_then(|answer| publish_ack(&answer.payload).ok()) {
            scene.ledger().accept(line, sequence, Instant::now());
            scene.stored().insert((line, sequence), ack.seq);
            kept = Some(bare);
        }
    }
}

/// What a listener has seen, line by line, for whoever looks for the cause of a breach.
struct Trace {
    file: File,
    begin: Instant,
}

impl Trace {
    fn new(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let path = directory.join(name).with_extension("trace");
        Ok(Self { file: File::create(&path).with_context(|| format!("cannot write {}", path.display()))?, begin: Instant::now() })
    }

    fn write(&mut self, text: &str) {
        // A trace that cannot be written changes no result.
        let _ = writeln!(self.file, "{:.3} {text}", self.begin.elapsed().as_secs_f64());
    }
}

/// A listener by event streams, which returns with its last id.
struct Listener {
    name: String,
    /// Members at which it listens.
    places: Vec<usize>,
    draws: Draws,
    trace: Trace,
    /// True if an event may come again under the identity that it had: before it was in the log, its member was killed.
    may_repeat: bool,
}

impl Listener {
    fn run(mut self, scene: &Scene) {
        let mut last_id = String::new();
        let event_type = if self.may_repeat { COMMAND_TYPE } else { EVENT_TYPE };
        let target = format!("/eventhandler/subscription?eventtype={event_type}");
        let (mut identities, mut was_open) = (Identities::new(), false);
        while scene.runs() {
            let place = self.places[self.draws.below(self.places.len() as u64) as usize];
            let stay = Duration::from_millis(self.draws.below(STAY_MAX_MS));
            let headers = if last_id.is_empty() { String::new() } else { format!("Last-Event-ID: {last_id}\r\n") };
            let opened = Http::plain(scene.handlers[place], OPEN_MAX).and_then(|mut http| {
                let status = http.open_stream(&target, &headers)?;
                http.set_wait(TURN_MAX)?;
                Ok((http, status))
            });
            match opened {
                Ok((mut http, 200)) => {
                    self.trace.write(&format!("at {} after {last_id}", scene.names[place]));
                    if !std::mem::replace(&mut was_open, true) {
                        scene.opened.fetch_add(1, Relaxed);
                    }
                    self.receive(scene, &mut http, &mut last_id, &mut identities, stay);
                }
                Ok((_, status)) => self.trace.write(&format!("{} answers {status} after {last_id}", scene.names[place])),
                Err(_) => {}
            }
            thread::sleep(RETRY_AFTER);
        }
    }

    fn receive(&mut self, scene: &Scene, http: &mut Http, last_id: &mut String, identities: &mut Identities, stay: Duration) {
        let (mut parser, begin) = (EventParser::after(last_id, EVENT_BYTES_MAX), Instant::now());
        // Without an id a listener cannot return to where it was.
        while scene.runs() && (begin.elapsed() < stay || last_id.is_empty()) {
            let bytes = match http.read() {
                Ok(bytes) if bytes.is_empty() => return,
                Ok(bytes) => bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(_) => return,
            };
            if parser.push(&bytes).is_err() {
                return;
            }
            while let Some(part) = parser.pop() {
                let Part::Event(event) = part else { continue };
                if event.event == LOST {
                    self.trace.write(&format!("{LOST} {} after {last_id}", event.data));
                    scene.ledger().report_loss(&self.name);
                } else if let Some((line, sequence)) = numbered(event.data.trim_matches('"')) {
                    self.take(scene, line, sequence, &event.id, identities);
                }
                *last_id = event.id;
            }
        }
    }

    fn take(&mut self, scene: &Scene, line: usize, sequence: u64, id: &str, identities: &mut Identities) {
        let identity = identity(id);
        self.trace.write(&format!("{line} {sequence} {id}"));
        if self.may_repeat && identities.get(&(line, sequence)).is_some_and(|known| *known == identity) {
            scene.same_identity.fetch_add(1, Relaxed);
            return;
        }
        if !scene.ledger().receive(&self.name, line, sequence) {
            self.trace.write(&format!("AGAIN {line} {sequence} {id}"));
        }
        if self.may_repeat {
            identities.insert((line, sequence), identity);
        }
    }
}

/// Returns the identity of an event without its third number, by which a log names the topic.
fn identity(id: &str) -> String {
    let numbers: Vec<&str> = id.split('@').next().unwrap_or_default().split('-').collect();
    match numbers[..] {
        [publisher, incarnation, _, sequence] => format!("{publisher}-{incarnation}-{sequence}"),
        _ => id.to_owned(),
    }
}

/// Answers each push with 200.
fn receive_pushes(scene: &Arc<Scene>, listener: &TcpListener) {
    listener.set_nonblocking(true).expect("a listener that does not block");
    let mut connections = Vec::new();
    while scene.runs() {
        match listener.accept() {
            Ok((stream, _)) => {
                let scene = Arc::clone(scene);
                connections.push(thread::spawn(move || drop(answer(&scene, stream))));
            }
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
        connections.retain(|connection| !connection.is_finished());
    }
    connections.into_iter().for_each(|connection| drop(connection.join()));
}

fn answer(scene: &Scene, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TURN_MAX))?;
    let (mut kept, mut piece) = (Vec::new(), [0; 16 * 1024]);
    while scene.runs() {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => kept.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error),
        }
        while let Some((body, taken)) = callback::request(&kept)? {
            let event: Value = serde_json::from_slice(&body).unwrap_or_default();
            if let Some((line, sequence)) = event["payload"].as_str().and_then(numbered) {
                scene.ledger().receive(PUSH, line, sequence);
            }
            kept.drain(..taken);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_without_topic_and_token() {
        assert_eq!(identity("14-18ec-1-8b9@660ab4f2:1a.18~1a.4b2.18"), "14-18ec-8b9");
        assert_eq!(identity("14-18ec-0-8b9"), identity("14-18ec-1-8b9"));
        assert_eq!(identity("other"), "other");
    }

    #[test]
    fn payload_has_line_and_sequence() {
        assert_eq!(numbered("3 17"), Some((3, 17)));
        assert_eq!([numbered("3"), numbered("x 1"), numbered("")], [None, None, None]);
    }
}
