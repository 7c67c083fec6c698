//! One run: a service, both sides, and the figures.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use nix::unistd::Pid;

use super::consumer::{ConsumeOrder, ConsumeReport};
use super::figures::Figure as Graph;
use super::precedence::InFront;
use super::service::Service;
use super::streams::{LEVELS, Streams};
use super::supplier::{SupplyOrder, SupplyReport};
use super::threads::{Switches, machine_ticks};
use crate::event::payload::monotonic_ns;
use crate::event::role::{RoleOrder, Told};
use crate::event::side::Side;
use crate::realtime::cpu::{self, ByThread};
use crate::realtime::row::{Key, Row};
use crate::realtime::session::utc_at_zero_ns;
use crate::realtime::window::Window;
use crate::realtime::{figures, run::sleep_until};
use crate::resident::Resident;
use crate::statistics::{Figure, Latencies, Unit};
use crate::time_line::TimeLine;

/// Longest wait for a side to be connected.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(150);
/// Longest time that a side may take beyond its window.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Between the word that both sides are there and the start.
const BEFORE_START_NS: u64 = 200_000_000;

/// Starts the service that processes the events; of one that connects to both sides, with where they are: suppliers, consumers.
pub type Start<'s> = dyn Fn(Option<[SocketAddr; 2]>) -> anyhow::Result<Service> + 's;

/// What is run.
pub struct Trial<'s> {
    /// What goes in, what is done, what comes out.
    pub graph: &'s Graph,
    /// Whether the service connects to the sides, and not they to it.
    pub comes_itself: bool,
    /// What processes it.
    pub start: &'s Start<'s>,
    /// Time in front of the measured one.
    pub warm_up: Duration,
    /// Puts suppliers and consumers in front of the service; none: they are beside it.
    pub in_front: Option<&'s InFront>,
}

impl Trial<'_> {
    fn side(&self, name: &'static str, order: &RoleOrder) -> anyhow::Result<Side> {
        match self.in_front {
            Some(in_front) => Side::start_by(name, order, |program| in_front.command(program)),
            None => Side::start(name, order),
        }
    }
}

/// Both sides of a run.
struct Sides {
    suppliers: Side,
    consumers: Side,
}

/// What the kernel counts at one instant.
struct Reading {
    threads: ByThread,
    switches: Switches,
    machine: [u64; 2],
}

impl Reading {
    fn of(pid: Pid) -> anyhow::Result<Self> {
        Ok(Self { threads: cpu::by_thread(pid)?, switches: Switches::of(pid)?, machine: machine_ticks()? })
    }
}

/// Runs it, and gives the row of this key.
///
/// # Errors
/// The service does not start, or a side fails.
pub fn measure(trial: &Trial<'_>, key: Key) -> anyhow::Result<Row> {
    let streams = &trial.graph.streams;
    let (service, mut sides) = if trial.comes_itself { meet(trial)? } else { call(trial)? };
    let (start_ns, measured_ns) = (monotonic_ns() + BEFORE_START_NS, u64::from(key.seconds) * 1_000_000_000);
    let measured_from_ns = start_ns + trial.warm_up.as_nanos() as u64;
    let window = Window { start_ns, measured_from_ns, end_ns: measured_from_ns + measured_ns, crash_ns: None };
    sides.consumers.give(&window)?;
    sides.suppliers.give(&window)?;
    let pid = service.pid()?;
    sleep_until(window.measured_from_ns);
    let (before, counted_before) = (Reading::of(pid)?, service.counters()?);
    sleep_until(window.end_ns);
    let after = Reading::of(pid)?;
    let (counted, memory) = (service.counters()?, Resident::of(pid));
    // A service may end with its suppliers.
    let [rss_mb, vm_size_mb] = [memory.now_mb()?, memory.virtual_mb()?];
    let Told::Supplied(supplied) = sides.suppliers.hear(REPORT_WAIT_MAX)? else {
        bail!("the supplying side told something else than its report")
    };
    let Told::Consumed(consumed) = sides.consumers.hear(REPORT_WAIT_MAX)? else {
        bail!("the consuming side told something else than its report")
    };
    let seconds = f64::from(key.seconds);
    let mut all = of_levels(streams, &consumed, seconds);
    all.extend(of_sides(&supplied, &consumed, seconds));
    all.extend(of_kernel(&before, &after, seconds));
    all.push(Figure::max("rss_mb", rss_mb));
    all.push(Figure::max("vm_size_mb", vm_size_mb));
    for ((name, count), (_, count_before)) in counted.iter().zip(&counted_before) {
        all.push(Figure::median(format!("graph_{name}_per_s"), (count.saturating_sub(*count_before)) as f64 / seconds));
    }
    let mut latency = Latencies::default();
    consumed.levels.iter().for_each(|level| latency.add(&Latencies::from_counts(&level.latency)));
    Ok(Row { key, figures: all, latency: latency.counts(), time_line: TimeLine::default(), refusals: Vec::new(), refused: 0 })
}

/// A service that both sides call.
fn call(trial: &Trial<'_>) -> anyhow::Result<(Service, Sides)> {
    let service = (trial.start)(None)?;
    let [supply, consume] = orders(&trial.graph.streams, service.broker()?);
    let mut consumers = trial.side("consuming side", &consume)?;
    let Told::Subscribed = consumers.hear(CONNECT_WAIT_MAX)? else { bail!("the consuming side told something else than its start") };
    let mut suppliers = trial.side("supplying side", &supply)?;
    let Told::Connected = suppliers.hear(CONNECT_WAIT_MAX)? else { bail!("the supplying side told something else than its start") };
    Ok((service, Sides { suppliers, consumers }))
}

/// A service that comes to both sides.
fn meet(trial: &Trial<'_>) -> anyhow::Result<(Service, Sides)> {
    let [supply, consume] = orders(&trial.graph.streams, None);
    let (mut suppliers, mut consumers) = (trial.side("supplying side", &supply)?, trial.side("consuming side", &consume)?);
    let Told::At { address: supplied_at } = suppliers.hear(CONNECT_WAIT_MAX)? else { bail!("the supplying side did not tell where it is") };
    let Told::At { address: consumed_at } = consumers.hear(CONNECT_WAIT_MAX)? else { bail!("the consuming side did not tell where it is") };
    let service = (trial.start)(Some([supplied_at, consumed_at]))?;
    let Told::Connected = suppliers.hear(CONNECT_WAIT_MAX)? else { bail!("the supplying side told something else than its start") };
    let Told::Subscribed = consumers.hear(CONNECT_WAIT_MAX)? else { bail!("the consuming side told something else than its start") };
    Ok((service, Sides { suppliers, consumers }))
}

fn orders(streams: &Streams, broker: Option<SocketAddr>) -> [RoleOrder; 2] {
    let utc_at_zero_ns = utc_at_zero_ns();
    let supply = SupplyOrder { broker, streams: streams.clone(), utc_at_zero_ns };
    let consume = ConsumeOrder { broker, streams: streams.clone(), utc_at_zero_ns };
    [RoleOrder::Suppliers(supply), RoleOrder::Consumers(consume)]
}

/// What came of each level, and of all together.
fn of_levels(streams: &Streams, consumed: &ConsumeReport, seconds: f64) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (at, report) in consumed.levels.iter().enumerate().filter(|(at, _)| streams.results_per_s(*at) > 0.0) {
        let name = LEVELS[at];
        figures.extend(Latencies::from_counts(&report.latency).figures(&format!("{name}_"), Unit::Ms, &[50.0, 90.0, 99.0, 99.9]));
        let mut add = |what: &str, value: f64| figures.push(Figure::median(format!("{name}_{what}"), value));
        add("expected_per_s", streams.results_per_s(at));
        add("results_per_s", report.received as f64 / seconds);
        add("timely_per_s", report.timely as f64 / seconds);
        add("marked_percent", if report.received == 0 { 0.0 } else { figures::percent(report.marked, report.received) });
    }
    let sum = |of: fn(&super::consumer::LevelReport) -> u64| consumed.levels.iter().map(of).sum::<u64>() as f64 / seconds;
    figures.push(Figure::median("timely_per_s", sum(|level| level.timely)));
    figures.push(Figure::median("timely_mbit_per_s", sum(|level| level.timely_bytes) * 8.0 / 1e6));
    figures
}

fn of_sides(supplied: &SupplyReport, consumed: &ConsumeReport, seconds: f64) -> Vec<Figure> {
    let lateness = Latencies::from_counts(&supplied.lateness);
    vec![
        Figure::median("events_per_s", supplied.sent as f64 / seconds),
        Figure::sum("not_sent", supplied.not_sent),
        Figure::sum("foreign", consumed.foreign),
        Figure::median("push_late_p99_ms", lateness.percentile(99.0, Unit::Ms)),
        Figure::median("suppliers_cpu_percent", supplied.cpu_s / seconds * 100.0),
        Figure::median("consumers_cpu_percent", consumed.cpu_s / seconds * 100.0),
    ]
}

fn of_kernel(before: &Reading, after: &Reading, seconds: f64) -> Vec<Figure> {
    let [worked, all] = [0, 1].map(|at| after.machine[at].saturating_sub(before.machine[at]));
    let mut figures = vec![Figure::median("machine_cpu_percent", if all == 0 { 0.0 } else { figures::percent(worked, all) })];
    figures.extend(figures::of_process("service", &together(cpu::percent(&before.threads, &after.threads, seconds))));
    let Switches { switches, migrations } = after.switches.since(before.switches);
    figures.push(Figure::median("switches_per_ms", switches as f64 / seconds / 1e3));
    figures.extend(migrations.map(|migrations| Figure::median("migrations_per_ms", migrations as f64 / seconds / 1e3)));
    figures
}

/// Threads of one name but for the number at its end as one: a Flink has hundreds.
fn together(threads: ByThread) -> ByThread {
    let mut sums = ByThread::new();
    for (name, percent) in threads {
        let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end_matches('-');
        let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        *sums.entry(name).or_default() += percent;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_are_one() {
        let threads = [("operator-0-0", 1.0), ("operator-0-1", 2.0), ("operator-2-0", 4.0), ("shard-0", 8.0)];
        let sums = together(threads.into_iter().map(|(name, percent)| (name.to_owned(), percent)).collect());
        let found: Vec<(&str, f64)> = sums.iter().map(|(name, percent)| (name.as_str(), *percent)).collect();
        assert_eq!(found, [("operator_0", 3.0), ("operator_2", 4.0), ("shard", 8.0)]);
    }
}
