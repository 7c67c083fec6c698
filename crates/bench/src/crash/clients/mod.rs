//! Publishers and subscribers of every transport, and the scene that they share.
//!
//! Each client is a thread in the network namespace of its host. Clients record into the scene's ledger and
//! never end by themselves: a client whose node fails tries the other node a millisecond later.

mod callback;
mod dealer;
mod either_node;
pub mod http;
mod one_way;
mod post;
mod request;
mod stream;
mod sub;
pub mod zmtp;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::bail;

use super::access::Access;
use super::ledger::Ledger;
use super::plan::{Line, Settings, Transport};
use super::plant::{Plant, Site};
use crate::statistics::Latencies;

/// Wait of a client before it tries the other node.
const RETRY_AFTER: Duration = Duration::from_millis(1);
/// Longest wait until every subscriber has received an event of each line.
const FLOW_WAIT_MAX: Duration = Duration::from_secs(20);
/// Longest wait at the end for events in flight.
const DRAIN_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// State that all clients of a round share.
pub struct Scene {
    /// Hosts and wires.
    pub plant: Arc<Plant>,
    /// Configuration of the round.
    pub settings: Settings,
    /// As whom the clients call.
    pub access: Access,
    /// Transports of subscribers that run.
    pub subscribers: Vec<Transport>,
    ledger: Mutex<Ledger>,
    publishers_stop: AtomicBool,
    subscribers_stop: AtomicBool,
    observed: Mutex<Observed>,
    /// Events that a DEALER publisher had no room for and did not publish.
    pub no_room: AtomicU64,
    /// Reports of two leaders in one epoch, from sessions.
    pub two_leaders: AtomicU64,
}

/// Observations of the DEALER clients that the ledger does not record.
#[derive(Default)]
pub struct Observed {
    /// When the publisher turned to a broker that leads.
    pub led: Vec<Instant>,
    /// Creation to arrival of events that were not late by a failover.
    pub latencies: Latencies,
    /// Creation to arrival of all events.
    pub all_latencies: Latencies,
    /// Refused events and subscriptions, by their text.
    pub refused: BTreeMap<String, u64>,
    /// Ends of sessions, by their text.
    pub ended: BTreeMap<String, u64>,
}

impl Scene {
    /// Returns a scene without clients.
    pub fn new(plant: &Arc<Plant>, settings: &Settings, access: Access, is_dealer_only: bool) -> Self {
        let subscribers = if is_dealer_only { vec![Transport::Required] } else { Transport::SUBSCRIBERS.to_vec() };
        Self {
            plant: Arc::clone(plant),
            ledger: Mutex::new(Ledger::new(&settings.lines, &subscribers)),
            settings: settings.clone(),
            access,
            subscribers,
            publishers_stop: AtomicBool::new(false),
            subscribers_stop: AtomicBool::new(false),
            observed: Mutex::default(),
            no_room: AtomicU64::new(0),
            two_leaders: AtomicU64::new(0),
        }
    }

    /// Locks the ledger.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // No client panics while it holds the lock, unless the bench itself is wrong.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of published events of each line.
    pub fn ledger_published(&self) -> Vec<u64> {
        self.ledger().published()
    }

    /// Locks what the DEALERs observe.
    pub fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long a publisher waits for an answer before it tries the other node.
    fn answer_max(&self) -> Duration {
        (2 * self.settings.failover()).max(Duration::from_millis(500))
    }

    fn publishers_run(&self) -> bool {
        !self.publishers_stop.load(Relaxed)
    }

    fn subscribers_run(&self) -> bool {
        !self.subscribers_stop.load(Relaxed)
    }

    /// Returns the payload of an event: the line and the sequence.
    fn payload(line: usize, sequence: u64) -> String {
        format!("{line}-{sequence}")
    }

    /// Records an arrival by its payload. Payloads of others are ignored.
    fn receive(&self, subscriber: Transport, payload: &[u8], is_late: bool) {
        let numbers = std::str::from_utf8(payload).ok().and_then(|text| text.split_once('-'));
        let numbers = numbers.and_then(|(line, sequence)| Some((line.parse().ok()?, sequence.parse().ok()?)));
        if let Some((line, sequence)) = numbers {
            self.ledger().receive(subscriber, line, sequence, is_late, Instant::now());
        }
    }
}

/// The running clients of a scene.
pub struct Clients {
    scene: Arc<Scene>,
    publishers: Vec<JoinHandle<anyhow::Result<()>>>,
    subscribers: Vec<JoinHandle<anyhow::Result<()>>>,
}

impl Clients {
    /// Starts all clients, and waits until each subscriber has received an event of each line.
    ///
    /// # Errors
    /// Returns an error if a client cannot start, or if an event does not arrive within [`FLOW_WAIT_MAX`].
    pub fn start(scene: &Arc<Scene>) -> anyhow::Result<Self> {
        let mut clients = Self { scene: Arc::clone(scene), publishers: Vec::new(), subscribers: Vec::new() };
        clients.subscribe()?;
        clients.publish()?;
        let deadline = Instant::now() + FLOW_WAIT_MAX;
        while !scene.ledger().silent().is_empty() {
            let has_ended = clients.subscribers.iter().chain(&clients.publishers).any(JoinHandle::is_finished);
            if has_ended || Instant::now() > deadline {
                let silent = silent(scene);
                let refused = scene.ledger().refusals();
                let ended = scene.observed().ended.clone();
                clients.end()?;
                bail!("events do not arrive: {silent}; refused: {refused:?}; sessions ended: {ended:?}");
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(clients)
    }

    fn subscribe(&mut self) -> anyhow::Result<()> {
        let lines = self.scene.settings.lines.len();
        self.subscriber("required", dealer::subscribe)?;
        if self.scene.subscribers.contains(&Transport::Stream) {
            for index in 0..lines {
                self.subscriber("stream", move |scene| stream::subscribe(scene, index))?;
            }
        }
        if self.scene.subscribers.contains(&Transport::Callback) {
            self.subscriber("callback", callback::subscribe)?;
        }
        if self.scene.subscribers.contains(&Transport::Prefix) {
            for broker in super::nodes::BROKERS {
                self.subscriber("sub", move |scene| sub::subscribe(scene, broker))?;
            }
        }
        Ok(())
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        self.publisher("dealer", dealer::publish)?;
        let lines = self.scene.settings.lines.clone();
        for (index, line) in lines.into_iter().enumerate() {
            match line.transport {
                Transport::Http => self.publisher("post", move |scene| post::publish(scene, index, &line))?,
                Transport::Req => self.publisher("req", move |scene| request::publish(scene, index, &line))?,
                Transport::Push | Transport::Pub => {
                    for broker in super::nodes::BROKERS {
                        let line = line.clone();
                        self.publisher("oneway", move |scene| one_way::publish(scene, index, &line, broker))?;
                    }
                }
                // One thread publishes all lines of DEALER.
                _ => {}
            }
        }
        Ok(())
    }

    fn subscriber(&mut self, name: &str, run: impl FnOnce(&Arc<Scene>) -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
        self.subscribers.push(spawn(&self.scene, name, Site::Viewer, run)?);
        Ok(())
    }

    fn publisher(&mut self, name: &str, run: impl FnOnce(&Arc<Scene>) -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
        self.publishers.push(spawn(&self.scene, name, Site::Machine, run)?);
        Ok(())
    }

    /// Stops the publishers, then the subscribers.
    ///
    /// # Errors
    /// Returns the error of a client that ended by itself.
    pub fn end(self) -> anyhow::Result<()> {
        self.scene.publishers_stop.store(true, Relaxed);
        let join = |client: JoinHandle<anyhow::Result<()>>| client.join().expect("no client panics");
        let mut results: Vec<anyhow::Result<()>> = self.publishers.into_iter().map(join).collect();
        let published = self.scene.ledger().published();
        let deadline = Instant::now() + DRAIN_MAX;
        while !self.scene.ledger().breaches(&published).is_empty() && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        self.scene.subscribers_stop.store(true, Relaxed);
        results.extend(self.subscribers.into_iter().map(join));
        results.into_iter().collect()
    }
}

fn silent(scene: &Scene) -> String {
    let ledger = scene.ledger();
    let silent = ledger.silent();
    let names = silent.iter().map(|(subscriber, line): &(Transport, &Line)| format!("{} of {}", subscriber.name(), line.topic));
    names.collect::<Vec<_>>().join(", ")
}

/// Starts a client on its host.
fn spawn(
    scene: &Arc<Scene>,
    name: &str,
    site: Site,
    run: impl FnOnce(&Arc<Scene>) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
    let scene = Arc::clone(scene);
    Ok(thread::Builder::new().name(name.to_owned()).spawn(move || {
        scene.plant.enter(site)?;
        run(&scene)
    })?)
}
