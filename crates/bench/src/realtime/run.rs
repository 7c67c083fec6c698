//! One run: both sides in processes of their own, and what has to happen while they run.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::bail;

use super::detour::DetourOrder;
use super::dialect::Speech;
use super::listener::{Far, Hearing, ListenerOrder};
use super::publisher::{ProxyOrder, ProxyReport};
use super::tally::ListenerReport;
use super::window::Window;
use super::workload::Workload;
use crate::event::payload::monotonic_ns;
use crate::event::role::{RoleOrder, Told};
use crate::event::side::Side;

/// Longest wait for a side to be connected.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(120);
/// Longest time that a side may take beyond its window.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Between the word that both sides are there and the start.
const BEFORE_START_NS: u64 = 200_000_000;

/// What is run against whom.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What both sides speak.
    pub speech: Speech,
    /// The broker, and of a pair the other one.
    pub brokers: Vec<SocketAddr>,
    /// As which system both sides call.
    pub system: String,
    /// How subscribers take events.
    pub hearing: Hearing,
    /// The subscriber in the cloud, the way to which takes its time; with a speech that begins sessions again.
    pub in_cloud: Option<usize>,
    /// What is published and heard.
    pub workload: Workload,
    /// Time in front of the measured one.
    pub warm_up: Duration,
    /// Time that counts.
    pub measured: Duration,
    /// When, in the measured time, the crash comes.
    pub crash_after: Option<Duration>,
    /// Whether every acknowledgement counts, however late.
    pub awaits_all: bool,
}

/// Instants of a run at which the caller has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The measured time begins.
    Measured,
    /// The Primary is to be killed now.
    Crash,
    /// The measured time is over.
    Over,
}

/// What both sides say of a run.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// The publishers.
    pub published: ProxyReport,
    /// The subscribers.
    pub heard: ListenerReport,
}

/// Runs both sides, and calls `at` at each moment.
///
/// # Errors
/// A side fails, or `at` does.
pub fn run(plan: Plan, at: &mut dyn FnMut(Moment) -> anyhow::Result<()>) -> anyhow::Result<Sides> {
    let Plan { speech, brokers, system, hearing, in_cloud, workload, warm_up, measured, crash_after, awaits_all } = plan;
    let listens = workload.subscribers() > 0;
    let (mut listener, mut detour) = (None, None);
    if listens {
        let far = in_cloud.map(|subscriber| detour_for(subscriber, &brokers)).transpose()?;
        let (side, far) = far.unzip();
        detour = side;
        let order = ListenerOrder { speech, brokers: brokers.clone(), system: system.clone(), far, hearing, workload: workload.clone() };
        let mut side = Side::start("subscriber side", &RoleOrder::Listeners(order))?;
        let Told::Subscribed = side.hear(CONNECT_WAIT_MAX)? else { bail!("the subscriber side told something else than its start") };
        listener = Some(side);
    }
    let mut publisher = Side::start("publisher side", &RoleOrder::Proxies(ProxyOrder { speech, brokers, system, workload, awaits_all }))?;
    let Told::Connected = publisher.hear(CONNECT_WAIT_MAX)? else { bail!("the publisher side told something else than its start") };
    let start_ns = monotonic_ns() + BEFORE_START_NS;
    let measured_from_ns = start_ns + nanos(warm_up);
    let window = Window {
        start_ns,
        measured_from_ns,
        end_ns: measured_from_ns + nanos(measured),
        crash_ns: crash_after.map(|after| measured_from_ns + nanos(after)),
    };
    if let Some(listener) = &mut listener {
        listener.give(&window)?;
    }
    publisher.give(&window)?;
    sleep_until(window.measured_from_ns);
    at(Moment::Measured)?;
    if let Some(crash_ns) = window.crash_ns {
        sleep_until(crash_ns);
        at(Moment::Crash)?;
    }
    sleep_until(window.end_ns);
    at(Moment::Over)?;
    let Told::Proxied(published) = publisher.hear(REPORT_WAIT_MAX)? else {
        bail!("the publisher side told something else than its report")
    };
    let heard = match &mut listener {
        None => ListenerReport::default(),
        Some(listener) => match listener.hear(REPORT_WAIT_MAX)? {
            Told::Listened(heard) => heard,
            _ => bail!("the subscriber side told something else than its report"),
        },
    };
    drop(detour);
    Ok(Sides { published, heard })
}

/// Starts a detour to the brokers for a subscriber.
fn detour_for(subscriber: usize, brokers: &[SocketAddr]) -> anyhow::Result<(Side, Far)> {
    let mut side = Side::start("detour", &RoleOrder::Detour(DetourOrder { brokers: brokers.to_vec() }))?;
    let Told::Detours { addresses } = side.hear(CONNECT_WAIT_MAX)? else { bail!("the detour told something else than where it listens") };
    Ok((side, Far { subscriber, brokers: addresses }))
}

/// Waits for an instant on CLOCK_MONOTONIC.
pub fn sleep_until(at_ns: u64) {
    thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
