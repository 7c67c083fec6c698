//! Every service is registered at two nodes at the same time: one of them may, and the other one says that it is there.

use std::collections::{BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use super::{ADDRESS, LANES, registered};
use crate::cloud::Cloud;
use crate::data::Data;
use crate::lanes::drive;
use crate::load::Measured;
use crate::report::Outcome;
use crate::request::{self, Identified};
use crate::statistics::{Figure, Unit};

/// Longest wait until all nodes list what all have registered.
const SEEN_WITHIN_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What became of a race.
pub struct Raced {
    figures: Vec<Figure>,
    measured: Measured,
}

impl Raced {
    pub fn labelled(self, label: String) -> Outcome {
        let mut outcome = Outcome::new(label);
        outcome.push(self.figures, self.measured);
        outcome
    }
}

/// What one node has answered.
#[derive(Default)]
struct Answers {
    /// The id of each service that it has registered, by its number.
    made: HashMap<u32, i64>,
    refused: u64,
    measured: Measured,
}

/// Registers the first `services` of the data, each at two neighbouring nodes.
///
/// # Errors
/// A node takes no connection, or does not answer.
pub fn run(nodes: &[Cloud], data: Data, services: u32) -> anyhow::Result<Raced> {
    let before = registered(&nodes[0])?;
    let began = Instant::now();
    let answers = thread::scope(|scope| {
        let racers: Vec<_> = (0..nodes.len()).map(|own| scope.spawn(move || register(nodes, own, data, services))).collect();
        racers.into_iter().map(|racer| racer.join().expect("a racer does not panic")).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let took_s = began.elapsed().as_secs_f64();
    let mut ids: HashMap<u32, BTreeSet<i64>> = HashMap::new();
    let (mut made, mut refused, mut measured) = (0, 0, Measured::default());
    for node in answers {
        made += node.made.len() as u64;
        refused += node.refused;
        for (number, id) in node.made {
            ids.entry(number).or_default().insert(id);
        }
        measured.latencies.add(&node.measured.latencies);
        measured.faults.append(node.measured.faults);
    }
    let doubled = made - ids.len() as u64;
    let all: BTreeSet<i64> = ids.values().flatten().copied().collect();
    let differ = differing(nodes, before + all.len() as u64)?;
    let mut figures = vec![
        Figure::median("registrations_per_s", 2.0 * f64::from(services) / took_s),
        Figure::sum("registered", made),
        Figure::sum("already_there", refused),
        Figure::sum("lost", u64::from(services) - ids.len() as u64),
        Figure::sum("doubled", doubled),
        Figure::sum("strange", measured.faults.count),
        Figure::sum("differ", differ),
    ];
    figures.extend(measured.latencies.figures("", Unit::Ms, &[50.0, 99.0]));
    Ok(Raced { figures, measured })
}

/// One node's part of the race.
fn register(nodes: &[Cloud], own: usize, data: Data, services: u32) -> anyhow::Result<Answers> {
    let registry = &nodes[own].service_registry;
    let is_mine = |number: &u32| [*number as usize, *number as usize + 1].iter().any(|place| place % nodes.len() == own);
    let numbers: Vec<u32> = (0..services).filter(is_mine).collect();
    let request = |number: &u32| request::post(registry, "/serviceregistry/register", &data.service(*number).registration(ADDRESS, None));
    let requests: Vec<_> = numbers.iter().map(request).collect();
    let mut answers = Answers::default();
    drive(registry, &requests, None, LANES, &mut |exchange| {
        let number = numbers[exchange.index];
        answers.measured.latencies.record(exchange.finished - exchange.sent);
        match exchange.answer {
            Err(fault) => answers.measured.faults.add(fault),
            Ok(answer) => match (answer.status(), serde_json::from_slice::<Identified>(answer.body())) {
                (201, Ok(Identified { id })) => {
                    answers.made.insert(number, id);
                }
                (400, _) if is_there(answer.body()) => answers.refused += 1,
                (status, _) => answers.measured.faults.add(format!("{status}: {}", String::from_utf8_lossy(answer.body()))),
            },
        }
    })?;
    Ok(answers)
}

/// Whether a refusal says that somebody else has registered it.
fn is_there(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("already exists")
}

/// How many nodes do not come to list so many services.
fn differing(nodes: &[Cloud], expected: u64) -> anyhow::Result<u64> {
    let deadline = Instant::now() + SEEN_WITHIN_MAX;
    let mut differ = 0;
    for node in nodes {
        while registered(node)? != expected {
            if Instant::now() > deadline {
                differ += 1;
                break;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
    Ok(differ)
}
