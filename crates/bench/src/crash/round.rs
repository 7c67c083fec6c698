//! One round: a pair with its clients, the faults that strike it, and the check after each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::access::Access;
use super::clients::{Clients, Scene};
use super::fault::Fault;
use super::ledger::{Breach, longest_silence};
use super::nodes::Nodes;
use super::plan::{Round, Transport};
use super::plant::{Plant, Site};
use super::state::{FaultResult, Gaps, Saved};
use super::strike::{Strike, strike};
use super::table;
use super::watch::{Watch, two_leaders};
use crate::options::CrashOptions;
use crate::statistics::Figure;

/// Longest wait until every publisher is answered again, after the pair is whole.
const BACK_MAX: Duration = Duration::from_secs(15);
/// Longest wait for events that were answered before.
const SETTLE_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Hosts of processes that may lead.
const WATCHED: [Site; 3] = [Site::First, Site::Second, Site::Clone];

/// Runs the faults of a round after the first `done` ones, until one breaks a promise. Each result is saved at once.
///
/// # Errors
/// Returns an error if the state file or the logs cannot be written.
pub fn run(
    plant: &Arc<Plant>,
    access: &Access,
    options: &CrashOptions,
    round: &Round,
    done: usize,
    saved: &mut Saved,
) -> anyhow::Result<()> {
    let faults = &round.faults[done..];
    let scene = Arc::new(Scene::new(plant, &round.settings, access.clone(), options.dealer_only));
    let started = Nodes::start(plant, options, &round.settings, access);
    let mut nodes = match started {
        Ok(nodes) => nodes,
        Err(error) => return save_failure(saved, faults[0], "the pair starts", &error, None),
    };
    let started = Watch::start(plant, &WATCHED, &access.operator()?).and_then(|watch| Ok((watch, Clients::start(&scene)?)));
    let (watch, clients) = match started {
        Ok(started) => started,
        Err(error) => return save_failure(saved, faults[0], "every client receives and is answered", &error, Some((&nodes, options))),
    };
    let first = saved.results.len();
    for fault in faults {
        thread::sleep(Duration::from_secs_f64(options.seconds));
        let mut result = FaultResult { number: saved.results.len() + 1, fault: fault.name(), ..FaultResult::default() };
        fill(&mut result, &scene, &mut nodes, &watch, *fault, options);
        if !result.breaches.is_empty() {
            result.logs = Some(keep_logs(&nodes, options, saved.seed, result.number)?);
        }
        result.print(saved.seed);
        let is_broken = !result.breaches.is_empty();
        saved.results.push(result);
        saved.write()?;
        if is_broken {
            break;
        }
    }
    end(saved, first, &scene, clients, &nodes, options)?;
    let totals = table::totals(round, &scene);
    saved.totals.push(totals);
    saved.write()
}

/// Ends the clients and checks all events once more. A breach now belongs to the last fault, unless that one has ended the round.
fn end(saved: &mut Saved, first: usize, scene: &Scene, clients: Clients, nodes: &Nodes<'_>, options: &CrashOptions) -> anyhow::Result<()> {
    let ended = clients.end();
    let seed = saved.seed;
    let Some(last) = saved.results[first..].last_mut().filter(|last| last.breaches.is_empty()) else { return Ok(()) };
    last.breaches = match ended {
        Ok(()) => {
            let published = scene.ledger_published();
            scene.ledger().breaches(&published)
        }
        Err(error) => vec![Breach { expected: "every client runs until the end".into(), came: format!("{error:#}") }],
    };
    if !last.breaches.is_empty() {
        last.logs = Some(keep_logs(nodes, options, seed, last.number)?);
        last.print(seed);
    }
    Ok(())
}

/// Saves a fault that could not strike, because the pair or the clients did not start.
fn save_failure(
    saved: &mut Saved,
    fault: Fault,
    expected: &str,
    error: &anyhow::Error,
    nodes: Option<(&Nodes<'_>, &CrashOptions)>,
) -> anyhow::Result<()> {
    let number = saved.results.len() + 1;
    let breaches = vec![Breach { expected: expected.to_owned(), came: format!("{error:#}") }];
    let logs = nodes.map(|(nodes, options)| keep_logs(nodes, options, saved.seed, number)).transpose()?;
    let result = FaultResult { number, fault: fault.name(), breaches, logs, ..FaultResult::default() };
    result.print(saved.seed);
    saved.results.push(result);
    saved.write()
}

fn keep_logs(nodes: &Nodes<'_>, options: &CrashOptions, seed: u64, number: usize) -> anyhow::Result<PathBuf> {
    let parent = options.logs.clone().unwrap_or_else(|| format!("bodkin-crash-{seed}").into());
    let directory = parent.join(format!("fault-{number}"));
    nodes.keep_logs(&directory)?;
    Ok(directory)
}

/// Lets a fault strike, and fills its result.
fn fill(result: &mut FaultResult, scene: &Scene, nodes: &mut Nodes<'_>, watch: &Watch, fault: Fault, options: &CrashOptions) {
    drop(watch.take());
    match strike(&scene.plant, nodes, fault, options) {
        Ok(strike) => {
            result.breaches.extend(check(scene, nodes));
            measure(result, scene, &strike, fault, nodes);
        }
        // Without a pair that serves, missing events follow from this breach.
        Err(error) => {
            result.breaches.push(Breach { expected: "the fault passes, and the pair serves again".into(), came: format!("{error:#}") })
        }
    }
    if let Some(came) = two_leaders(&watch.take()) {
        result.breaches.push(Breach { expected: "at most one broker leads at any time".into(), came });
    }
    if scene.two_leaders.swap(0, Relaxed) > 0 {
        result.breaches.push(Breach {
            expected: "a client knows one leader of each epoch".into(),
            came: "two brokers said that they lead in one epoch".into(),
        });
    }
}

/// Checks what must hold when the pair is whole again.
fn check(scene: &Scene, nodes: &mut Nodes<'_>) -> Vec<Breach> {
    let whole = Instant::now();
    let mut breaches = scene.ledger().without_answer(whole);
    while !breaches.is_empty() && whole.elapsed() < BACK_MAX {
        thread::sleep(LOOK_EVERY);
        breaches = scene.ledger().without_answer(whole);
    }
    breaches.extend(settle(scene));
    let ended = nodes.ended().into_iter();
    breaches.extend(ended.map(|came| Breach { expected: "no node ends by itself".into(), came }));
    breaches
}

/// Waits until what was answered has arrived; returns what has not.
fn settle(scene: &Scene) -> Vec<Breach> {
    let published = scene.ledger_published();
    let begin = Instant::now();
    loop {
        let breaches = scene.ledger().breaches(&published);
        if breaches.is_empty() || begin.elapsed() > SETTLE_MAX {
            return breaches;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Adds the figures of a fault, and the gaps by transport.
fn measure(result: &mut FaultResult, scene: &Scene, strike: &Strike, fault: Fault, nodes: &Nodes<'_>) {
    let led = scene.observed().led.clone();
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let mut beyond = false;
    // Where nothing struck there is no instant to count from.
    if let Some(gap) = strike.gap(&led).filter(|_| strike.is_replaced && fault != Fault::None) {
        beyond = fault.is_bounded_by_failover() && gap > scene.settings.failover();
        result.figures.push(Figure::median("gap_ms", ms(gap)));
    }
    // The leader at the end may have lost the lead and regained it. Without a fault no node begins to lead.
    let is_unexpected = !strike.is_as_expected(fault) || fault == Fault::None && strike.turns(&led) > 0;
    if !strike.is_as_expected(fault) {
        // Whether the leader had lost its Backup just before is in its log alone.
        eprintln!("{}: another leader: {}, which is unexpected{}", fault.name(), strike.is_replaced, nodes.last_words());
    }
    let cover_gap = longest_silence(&scene.ledger().covers(), strike.from, strike.until);
    result.figures.extend([
        Figure::median("cover_gap_ms", ms(cover_gap)),
        Figure::sum("replaced", strike.is_replaced.into()),
        Figure::sum(table::BEYOND, beyond.into()),
        Figure::sum(table::UNEXPECTED, is_unexpected.into()),
        Figure::sum("waits_for_backup", strike.has_waited.into()),
    ]);
    let subscribers = scene.subscribers.iter().copied();
    for transport in Transport::PUBLISHERS.into_iter().chain(subscribers) {
        let silences = scene.ledger().silences(transport, strike.from, strike.until);
        if let (Some(first), Some(last)) = (silences.iter().min(), silences.iter().max()) {
            result.gaps.push(Gaps { transport, first_ms: ms(*first), last_ms: ms(*last) });
        }
    }
}
