//! How long after a node has answered a change another one shows it, and whether the first one does at once.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::ADDRESS;
use crate::client::Client;
use crate::cloud::Cloud;
use crate::data::Data;
use crate::lanes::drive;
use crate::load::Measured;
use crate::options::NodesOptions;
use crate::report::Outcome;
use crate::request::{self, Registered};
use crate::statistics::{Figure, Unit};

/// Longest wait for a change.
const SEEN_WITHIN_MAX: Duration = Duration::from_secs(30);
/// Registrations that are prepared together for the load beside.
const BESIDE_AT_ONCE: u32 = 100;
const BESIDE_LANES: usize = 4;

/// Changes with nobody else there, and changes beside registrations at all other nodes; the services are those behind the first `next` of the data.
///
/// # Errors
/// A node does not answer, or does not show a change within [`SEEN_WITHIN_MAX`].
pub fn run(nodes: &[Cloud], data: Data, next: u32, options: &NodesOptions) -> anyhow::Result<[Outcome; 2]> {
    let label = |what: &str| format!("{} nodes, changes seen by another{what}", nodes.len());
    let mut alone = Outcome::new(label(""));
    let (figures, measured) = changes(nodes, data, next, options.changes)?;
    alone.push(figures, measured);
    let mut beside = Outcome::new(label(&format!(" beside {} registrations a second", options.beside_per_s)));
    let is_over = AtomicBool::new(false);
    let (figures, measured) = thread::scope(|scope| {
        let load = scope.spawn(|| register(&nodes[nodes.len() - 1], data, next + 2 * options.changes, options.beside_per_s, &is_over));
        let seen = changes(nodes, data, next + options.changes, options.changes);
        is_over.store(true, Relaxed);
        load.join().expect("the load does not panic")?;
        seen
    })?;
    beside.push(figures, measured);
    Ok([alone, beside])
}

/// Each change is made at a node and looked for at the next one.
fn changes(nodes: &[Cloud], data: Data, from: u32, count: u32) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let mut clients = nodes.iter().map(|node| Client::connect(&node.service_registry)).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut measured, mut not_read_back) = (Measured::default(), 0);
    for change in 0..count {
        let (writer, reader) = (change as usize % nodes.len(), (change as usize + 1) % nodes.len());
        let service = data.service(from + change);
        let registration =
            request::post(&nodes[writer].service_registry, "/serviceregistry/register", &service.registration(ADDRESS, None));
        let _: Registered = clients[writer].ask(&registration, 201)?;
        let answered = Instant::now();
        loop {
            if shows(&mut clients[reader], &nodes[reader], &service.definition)? {
                break;
            }
            ensure!(answered.elapsed() < SEEN_WITHIN_MAX, "a node has not shown another's change after {} s", SEEN_WITHIN_MAX.as_secs());
        }
        measured.latencies.record(answered.elapsed());
        not_read_back += u64::from(!shows(&mut clients[writer], &nodes[writer], &service.definition)?);
    }
    let mut figures = measured.latencies.figures("seen_", Unit::Ms, &[50.0, 99.0, 99.9]);
    figures.push(Figure::sum("not_read_back", not_read_back));
    Ok((figures, measured))
}

/// Whether a node shows a service.
pub fn shows(client: &mut Client, node: &Cloud, definition: &str) -> anyhow::Result<bool> {
    let query = request::post(&node.service_registry, "/serviceregistry/query", &request::query(definition));
    Ok(Registered::read_query(client.exchange(&query)?.body()).is_some())
}

/// Registers at a node at a rate until it is over.
fn register(node: &Cloud, data: Data, from: u32, per_s: u32, is_over: &AtomicBool) -> anyhow::Result<()> {
    let registry = &node.service_registry;
    let mut next = from;
    while !is_over.load(Relaxed) {
        let request = |number| request::post(registry, "/serviceregistry/register", &data.service(number).registration(ADDRESS, None));
        let requests: Vec<_> = (next..next + BESIDE_AT_ONCE).map(request).collect();
        drive(registry, &requests, Some(f64::from(per_s)), BESIDE_LANES, &mut |_| {})?;
        next += BESIDE_AT_ONCE;
    }
    Ok(())
}
