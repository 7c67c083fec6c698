//! `bench crash`: a real pair in network namespaces, publishers and subscribers beside it, and what they notice when something goes wrong.
//!
//! A gap is the time from a fault until the publishers turn to the broker that leads next: that is what x bounds. A gap of cover is the longest time in which they
//! are told of nothing that is safe, the time between two events and the way to the subscriber included. Losses, order and duplicates are counted at the
//! subscribers, from sequence numbers.

mod fate;
mod fault;
mod nodes;
mod plant;
mod traffic;

pub use fault::Fault;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::Signal;

use self::fate::Losses;
use self::fault::CUT;
use self::nodes::{Nodes, partner};
use self::plant::{Plant, Site};
use self::traffic::{Promise, Seen, Sent, Streams, Traffic};
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::CrashOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Unit};

/// Longest wait for another leader.
const LEADER_WAIT_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Percentiles of latencies.
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

/// Lets everything go wrong that the options say, and reports it.
///
/// # Errors
/// The system makes no namespaces, a node does not start, or the pair does not recover.
pub fn run(options: &CrashOptions) -> anyhow::Result<Report> {
    let faults = if options.fault.is_empty() { Fault::value_variants() } else { &options.fault };
    let (plant, streams) = (Arc::new(Plant::lay()?), Arc::new(Streams::new(options)));
    let x_ms = options.failover().as_secs_f64() * 1e3;
    let mut report = Report::new(format!("faults of a pair, x = {x_ms:.1} ms"));
    let server = "own pair and witness in network namespaces, started by the bench, insecure".to_string();
    let mut conditions = Conditions::begin("placed by the kernel".into(), server, "until every stream flows".into(), options.times);
    // This thread asks the brokers from where the subscribers are.
    plant.enter(Site::Viewer)?;
    for fault in faults {
        let mut outcome = Outcome::new(fault.name());
        strike_again_and_again(&plant, &streams, *fault, options, &mut outcome)?;
        report.outcomes.push(outcome);
    }
    report.note(
        "gap_ms: from a fault until the publishers turn to the broker that leads next; cover_gap_ms: longest time without an event that is told to be safe, until all is well again".into(),
    );
    report.note(
        "a fault strikes a leader with a Backup in sync; waits_for_backup: how often one had to be waited for, behind a stall that had let the other broker lead alone".into(),
    );
    report.note(format!(
        "{} streams each with an event every {} ms of which none may be lost (l0), three in a row (l3), any (linf); broken_promises counts what must not be",
        options.streams, options.period_ms
    ));
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// One fault, as often as the options say, beside traffic that goes on all the while.
fn strike_again_and_again(
    plant: &Arc<Plant>,
    streams: &Arc<Streams>,
    fault: Fault,
    options: &CrashOptions,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let mut nodes = Nodes::start(plant, options, streams)?;
    let traffic = Traffic::start(plant, streams)?;
    let mut strikes = Vec::new();
    let pause = Duration::from_secs_f64(options.seconds);
    let mut struck = Ok(());
    for _ in 0..options.times {
        thread::sleep(pause);
        match strike(plant, &mut nodes, fault, options) {
            Ok(strike) => {
                if !strike.is_as_expected(fault) {
                    // Whether the leader had lost its Backup just before is in its log alone.
                    eprintln!("{}: another leader: {}, which is unexpected{}", fault.name(), strike.is_replaced, nodes.last_words());
                }
                strikes.push(strike);
            }
            Err(error) => {
                struck = Err(error.context(nodes.last_words()));
                break;
            }
        }
    }
    let ended = traffic.end();
    struck?;
    let (sent, seen) = ended?;
    let failover = options.failover();
    let mut beyond = 0;
    for strike in &strikes {
        let mut figures =
            vec![Figure::median("cover_gap_ms", strike.cover_gap_ms(&sent.covers)), Figure::sum("replaced", strike.is_replaced.into())];
        // Where nothing struck there is no instant to count from.
        if let Some(gap) = strike.gap(&sent.led).filter(|_| strike.is_replaced && fault != Fault::None) {
            beyond += u64::from(fault.is_bounded_by_failover() && gap > failover);
            figures.insert(0, Figure::median("gap_ms", gap.as_secs_f64() * 1e3));
        }
        outcome.push(figures, Measured::default());
    }
    outcome.push(totals(fault, streams, &strikes, &sent, &seen, beyond), Measured { latencies: seen.latencies, ..Measured::default() });
    Ok(())
}

/// One fault and what followed.
struct Strike {
    from: Instant,
    until: Instant,
    /// Whether another broker led behind it.
    is_replaced: bool,
    /// Whether it had to wait, because whoever led had no Backup in sync.
    has_waited: bool,
}

impl Strike {
    /// Until the publishers turned to another broker.
    fn gap(&self, led: &[Instant]) -> Option<Duration> {
        led.iter().find(|at| **at > self.from).map(|at| *at - self.from)
    }

    /// Whether somebody else leads if and only if the fault asks for it.
    fn is_as_expected(&self, fault: Fault) -> bool {
        fault.replaces_leader().is_none_or(|replaces| replaces == self.is_replaced)
    }

    /// How often the publishers turned to a leader meanwhile, the same one or another.
    fn turns(&self, led: &[Instant]) -> usize {
        led.iter().filter(|at| (self.from..=self.until).contains(*at)).count()
    }

    /// The longest time between two events that were told to be safe.
    fn cover_gap_ms(&self, covers: &[Instant]) -> f64 {
        let before = covers.partition_point(|at| *at < self.from).saturating_sub(1);
        let behind = (covers.partition_point(|at| *at < self.until) + 1).min(covers.len());
        let gaps = covers[before..behind].windows(2).map(|pair| pair[1].saturating_duration_since(pair[0].max(self.from)));
        gaps.max().unwrap_or_else(|| self.until - self.from).as_secs_f64() * 1e3
    }
}

/// Lets a fault happen, and makes all well again.
fn strike(plant: &Plant, nodes: &mut Nodes<'_>, fault: Fault, options: &CrashOptions) -> anyhow::Result<Strike> {
    // What only one broker has would die with it, which no pair can outlive.
    let at_once = nodes.protected_leader();
    let leader = at_once.map_or_else(|| nodes.wait_until_protected(), Ok)?;
    let other = partner(leader);
    let from = Instant::now();
    match fault {
        Fault::None => thread::sleep(Duration::from_secs_f64(options.undisturbed_seconds)),
        Fault::Kill => nodes.kill(leader)?,
        Fault::HostLoss => {
            plant.set_wires(leader, false)?;
            nodes.kill(leader)?;
        }
        Fault::Stop1 | Fault::Stop20 | Fault::Stop200 => {
            nodes.signal(leader, Signal::SIGSTOP)?;
            thread::sleep(fault.stop().expect("it is a stop"));
            nodes.signal(leader, Signal::SIGCONT)?;
        }
        Fault::CutPair => cut(plant, leader, other)?,
        Fault::CutPublishers => cut(plant, Site::Machine, leader)?,
        Fault::CutLeader => {
            plant.set_wires(leader, false)?;
            thread::sleep(CUT);
            plant.set_wires(leader, true)?;
        }
        Fault::KillWitness => nodes.kill(Site::Witness)?,
        Fault::KillBackup => nodes.kill(other)?,
    }
    thread::sleep(Duration::from_secs_f64(options.seconds));
    let leader_then = self::leader(nodes)?;
    if fault == Fault::HostLoss {
        plant.set_wires(leader, true)?;
    }
    for site in [Site::Witness, Site::First, Site::Second] {
        nodes.revive(site)?;
    }
    nodes.wait_until_protected()?;
    Ok(Strike { from, until: Instant::now(), is_replaced: leader_then != leader, has_waited: at_once.is_none() })
}

fn cut(plant: &Plant, a: Site, b: Site) -> anyhow::Result<()> {
    plant.set_wire(a, b, false)?;
    thread::sleep(CUT);
    plant.set_wire(a, b, true)
}

/// Who leads, once somebody does.
fn leader(nodes: &Nodes<'_>) -> anyhow::Result<Site> {
    let deadline = Instant::now() + LEADER_WAIT_MAX;
    loop {
        if let Some(leader) = nodes.leader() {
            return Ok(leader);
        }
        anyhow::ensure!(Instant::now() < deadline, "nobody leads after {} s", LEADER_WAIT_MAX.as_secs());
        thread::sleep(LOOK_EVERY);
    }
}

/// What holds over all strikes of a fault.
fn totals(fault: Fault, streams: &Streams, strikes: &[Strike], sent: &Sent, seen: &Seen, beyond: u64) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut broken = 0;
    for promise in Promise::ALL {
        let of_kind = |stream: &usize| streams.promises[*stream] == promise;
        let losses: Vec<Losses> = (0..streams.promises.len())
            .filter(of_kind)
            .map(|stream| seen.fates[stream].losses(sent.published[stream], sent.covered[stream], &sent.excess[stream]))
            .collect();
        let name = promise.name();
        let published = (0..streams.promises.len()).filter(of_kind).map(|stream| sent.published[stream]).sum();
        let longest_run = losses.iter().map(|losses| losses.longest_run).max().unwrap_or_default();
        figures.push(Figure::sum(format!("{name}_published"), published));
        figures.push(Figure::sum(format!("{name}_lost"), losses.iter().map(|losses| losses.events).sum()));
        figures.push(Figure::max(format!("{name}_longest_run"), longest_run as f64));
        if let Some(tolerated) = promise.loss_tolerance() {
            broken += losses.iter().filter(|losses| losses.longest_run > u64::from(tolerated)).count() as u64;
        }
        if promise == Promise::Nothing {
            let covered = losses.iter().map(|losses| losses.covered).sum();
            figures.push(Figure::sum("l0_covered_and_lost", covered));
        }
    }
    let sum = |of: fn(&fate::Fates) -> u64| seen.fates.iter().map(of).sum::<u64>();
    let (duplicates, out_of_order) = (sum(|fates| fates.duplicates), sum(|fates| fates.out_of_order));
    let is_unexpected = |strike: &&Strike| {
        // Who leads at the end may have lost the lead in between: where nothing happens nobody begins to lead.
        !strike.is_as_expected(fault) || fault == Fault::None && strike.turns(&sent.led) > 0
    };
    let unexpected = strikes.iter().filter(is_unexpected).count();
    broken += duplicates + out_of_order + seen.two_leaders + unexpected as u64;
    figures.extend([
        Figure::sum("broken_promises", broken),
        Figure::sum("gaps_beyond_x", beyond),
        Figure::sum("unexpected_leaders", unexpected as u64),
        Figure::sum("waits_for_backup", strikes.iter().filter(|strike| strike.has_waited).count() as u64),
        Figure::sum("two_leaders", seen.two_leaders),
        Figure::sum("duplicates", duplicates),
        Figure::sum("out_of_order", out_of_order),
        Figure::sum("late", sum(|fates| fates.late)),
        Figure::sum("no_room", sent.no_room),
        Figure::sum("not_taken", sent.not_taken.values().sum()),
        Figure::sum("excess", sent.excess.iter().map(|excess| excess.len() as u64).sum()),
        Figure::max("latency_max_ms", seen.all_latencies.max(Unit::Ms)),
    ]);
    figures.extend(seen.latencies.figures("latency_", Unit::Ms, &PERCENTS));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_counted_from_the_fault_to_the_first_cover_behind_it() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let covers: Vec<Instant> = [0, 10, 20, 70, 80, 200].map(at).to_vec();
        let strike = |from, until| Strike { from: at(from), until: at(until), is_replaced: false, has_waited: false };
        assert_eq!(strike(25, 100).cover_gap_ms(&covers), 120.0, "the one that ends behind is seen whole");
        assert_eq!(strike(25, 75).cover_gap_ms(&covers), 45.0);
        assert_eq!(strike(300, 400).cover_gap_ms(&covers), 100.0, "nothing came any more");
        assert_eq!(strike(25, 100).gap(&covers), Some(Duration::from_millis(45)));
        assert_eq!(strike(300, 400).gap(&covers), None);
        assert_eq!((strike(15, 75).turns(&covers), strike(90, 150).turns(&covers)), (2, 0));
        let same = strike(25, 100);
        assert_eq!([Fault::CutLeader, Fault::KillBackup, Fault::Stop20].map(|fault| same.is_as_expected(fault)), [false, true, true]);
    }
}
