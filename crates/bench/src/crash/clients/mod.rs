//! Publishers and subscribers of every transport, and the scene that they share.
//!
//! Each client is a thread in the network namespace of its host. Clients record into the scene's ledger and
//! never end by themselves: a client whose node fails tries the other node a millisecond later.

pub mod callback;
mod dealer;
mod either_node;
mod jetstream;
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
/// More events than a line has in a round. Two payloads add up to a number that a double holds.
const LINE: u64 = 1_000_000_000;

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
        let mut subscribers = if is_dealer_only { vec![Transport::Required] } else { Transport::SUBSCRIBERS.to_vec() };
        subscribers.retain(|subscriber| match subscriber {
            Transport::JetStream => settings.edge.is_some(),
            _ => settings.lines.iter().any(|line| line.reaches(*subscriber)),
        });
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

    /// Returns the payload of an event: a number that says the line and the sequence, for a graph reads numbers.
    fn payload(line: usize, sequence: u64) -> String {
        (line as u64 * LINE + sequence).to_string()
    }

    /// Records an arrival by its payload. Payloads of others are ignored.
    fn receive(&self, subscriber: Transport, payload: &[u8], is_late: bool) {
        let number = std::str::from_utf8(payload).ok().and_then(|text| text.parse::<u64>().ok());
        if let Some(number) = number {
            self.ledger().receive(subscriber, (number / LINE) as usize, number % LINE, is_late, Instant::now());
        }
    }

    /// Records a report that forwarded events were lost, which names no publisher.
    fn receive_forwarded_loss(&self, events: u64) {
        *self.observed().refused.entry("lost before JetStream".to_owned()).or_default() += events;
    }

    /// Records a result of the graph: the mean of an event and of the one before it.
    fn receive_result(&self, payload: &[u8], is_late: bool) {
        let line = self.settings.graph_input().expect("only a graph has results");
        let mean = std::str::from_utf8(payload).ok().and_then(|text| text.parse::<f64>().ok());
        match mean.and_then(|mean| second_of_mean(line, mean)) {
            Some(sequence) => self.ledger().receive(Transport::Graph, line, sequence, is_late, Instant::now()),
            None => self.ledger().receive_wrong_result(line),
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
        if let Some(edge) = self.scene.settings.edge.clone() {
            self.subscriber("jetstream", move |scene| jetstream::subscribe(scene, &edge))?;
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

/// Returns the sequence of the second event of a line that this is the mean of; of the first event of all it is its own, as no event is before it.
fn second_of_mean(line: usize, mean: f64) -> Option<u64> {
    let base = (line as u64 * LINE) as f64;
    let doubled = 2.0 * (mean - base);
    if doubled == 2.0 {
        return Some(1);
    }
    let is_of_neighbors = doubled.fract() == 0.0 && doubled >= 3.0 && doubled % 2.0 == 1.0;
    is_of_neighbors.then_some((doubled as u64).div_ceil(2))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_names_second_of_two_neighbors() {
        let base = (3 * LINE) as f64;
        let second = |mean: f64| second_of_mean(3, base + mean);
        assert_eq!([1.0, 1.5, 2.5, 99_999.5].map(second), [Some(1), Some(2), Some(3), Some(100_000)]);
        assert_eq!([0.5, 2.0, 7.0, -3.0, f64::NAN].map(second), [None; 5], "of one event, of others, of another line");
    }
}
