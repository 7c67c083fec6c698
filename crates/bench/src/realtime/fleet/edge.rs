//! A node that forwards to the servers over links of its own, and what it tells of that.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::STREAM;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::link::Link;
use crate::options::FleetOptions;
use crate::realtime::dialect::Speech;
use crate::realtime::listener::Hearing;
use crate::realtime::run::{Moment, Plan, Sides, run as run_sides};
use crate::realtime::stand::Stand;
use crate::realtime::system::SYSTEM;
use crate::realtime::workload::Workload;
use crate::request;
use crate::statistics::{Counts, Latencies};

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Without an event more in the stream for so long it is given up.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);
/// Without an event more, while nothing waits, for so long what is not there is missing.
const SETTLED: Duration = Duration::from_secs(2);
/// Behind the last event a node has looked at all after so long.
const LOOKED: Duration = Duration::from_millis(500);
/// The longest that a backlog may take.
const DRAIN_MAX: Duration = Duration::from_secs(600);

/// What a node tells of forwarding, as far as it is needed.
#[derive(Deserialize)]
struct Told {
    connected: bool,
    lanes: Vec<Lane>,
}

#[derive(Deserialize)]
struct Lane {
    stored: u64,
    waiting: u64,
    lost: u64,
    age: Option<Age>,
}

#[derive(Deserialize)]
struct Age {
    #[serde(rename = "bucketsUs")]
    buckets_us: Vec<(u64, u64)>,
}

/// What became of the events of each type.
#[derive(Deserialize)]
struct Types {
    data: Vec<Type>,
}

#[derive(Deserialize)]
struct Type {
    published: u64,
}

/// One node that forwards over a link to each server.
pub struct Edge {
    stand: Stand,
    /// Its ways to the servers.
    pub links: Vec<Link>,
    /// Where its events are in the stream.
    pub subject: String,
}

impl Edge {
    /// With room for so many events of a workload, and this pace beside live ones.
    ///
    /// # Errors
    /// A port or a node is not to be had.
    pub fn start(
        options: &FleetOptions,
        workload: &Workload,
        name: &str,
        servers: &[SocketAddr],
        [events, drain_per_s]: [u64; 2],
    ) -> anyhow::Result<Self> {
        let links = servers.iter().map(|server| Link::to(*server)).collect::<Result<Vec<_>, _>>()?;
        let urls: Vec<String> = links.iter().map(|link| format!("nats://{}", link.address)).collect();
        let keys = format!(
            "event_log_bytes_max = {}\n[fleet]\nservers = {urls:?}\nedge = \"{name}\"\nprefix = \"bench\"\nstream = \"{STREAM}\"\nbatch_bytes_max = {}\ndrain_events_per_s = {drain_per_s}\nlanes.events = {:?}\n",
            events * (u64::from(options.payload_bytes) + 400) * 2,
            options.batch_bytes,
            workload.names(),
        );
        Ok(Self { stand: Stand::alone(workload, &keys, options.data.as_deref())?, links, subject: format!("bench.{name}.events") })
    }

    /// Cuts every way to the servers.
    pub fn cut(&self) {
        self.links.iter().for_each(Link::cut);
    }

    /// Lets connections through.
    pub fn mend(&self) {
        self.links.iter().for_each(Link::mend);
    }

    /// Its own port.
    ///
    /// # Errors
    /// It is no node by itself.
    pub fn monitor(&self) -> anyhow::Result<&Endpoint> {
        let Stand::Alone(cloud) = &self.stand else { bail!("it is a node by itself") };
        cloud.monitor.as_ref().context("a node has its own port")
    }

    fn told(&self, client: &mut Client) -> anyhow::Result<Told> {
        told(self.monitor()?, client)
    }

    /// Events that were published here.
    ///
    /// # Errors
    /// It does not answer.
    pub fn published(&self) -> anyhow::Result<u64> {
        let monitor = self.monitor()?;
        let types: Types = Client::connect(monitor)?.ask(&request::get(monitor, "/api/v1/event-types", "application/json"), 200)?;
        Ok(types.data.iter().map(|event_type| event_type.published).sum())
    }

    /// How old events were when the stream acknowledged them, since the start.
    ///
    /// # Errors
    /// It does not answer.
    pub fn ages(&self) -> anyhow::Result<Counts> {
        let told = self.told(&mut Client::connect(self.monitor()?)?)?;
        let ages = told.lanes.into_iter().filter_map(|lane| lane.age).flat_map(|age| age.buckets_us);
        Ok(Counts(ages.map(|(us, count)| (us * 1_000, count)).collect()))
    }

    /// Events that wait; the node has to have looked at all that was published.
    ///
    /// # Errors
    /// It does not answer, or looks at nothing more.
    pub fn waiting(&self) -> anyhow::Result<u64> {
        let mut client = Client::connect(self.monitor()?)?;
        let (mut moved, mut before) = (Instant::now(), 0);
        // What nobody has looked at is not counted yet.
        while moved.elapsed() < LOOKED {
            let waiting = self.told(&mut client)?.lanes.iter().map(|lane| lane.waiting).sum();
            if waiting != before {
                (moved, before) = (Instant::now(), waiting);
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(before)
    }

    /// Waits until it reaches the stream.
    ///
    /// # Errors
    /// It does not, or does not answer.
    pub fn reached(&self) -> anyhow::Result<()> {
        let (mut client, begun) = (Client::connect(self.monitor()?)?, Instant::now());
        while !self.told(&mut client)?.connected {
            if begun.elapsed() > STANDSTILL_MAX {
                bail!("the node does not reach the stream within {} s of the mending of its links", STANDSTILL_MAX.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until nothing waits any more that was published so far; gives how many events are told to be lost.
    ///
    /// # Errors
    /// Nothing goes on.
    pub fn drained(&self) -> anyhow::Result<u64> {
        let (mut client, published) = (Client::connect(self.monitor()?)?, self.published()?);
        let (mut moved, mut before) = (Instant::now(), 0);
        loop {
            let Told { connected, lanes } = self.told(&mut client)?;
            let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum::<u64>();
            let (stored, waiting, lost) = (sum(|lane| lane.stored), sum(|lane| lane.waiting), sum(|lane| lane.lost));
            if stored > before {
                (moved, before) = (Instant::now(), stored);
            }
            if waiting == 0 && connected && (stored + lost >= published || moved.elapsed() > SETTLED) {
                return Ok(lost);
            }
            if moved.elapsed() > STANDSTILL_MAX {
                bail!("{stored} of {published} events are in the stream, {waiting} wait, connected: {connected}");
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Publishes live for so long; `at` is told when that begins.
    ///
    /// # Errors
    /// The publishers fail.
    pub fn live(&self, workload: Workload, seconds: f64, mut at: impl FnMut()) -> anyhow::Result<Sides> {
        let plan = Plan {
            speech: Speech::ZmtpDealer,
            brokers: self.stand.addresses()?,
            system: SYSTEM.into(),
            hearing: Hearing::default(),
            in_cloud: None,
            workload,
            warm_up: Duration::ZERO,
            measured: Duration::from_secs_f64(seconds),
            crash_after: None,
            awaits_all: true,
        };
        run_sides(plan, &mut |moment| {
            if moment == Moment::Measured {
                at();
            }
            Ok(())
        })
    }
}

fn told(monitor: &Endpoint, client: &mut Client) -> anyhow::Result<Told> {
    client.ask(&request::get(monitor, "/api/v1/fleet", "application/json"), 200)
}

/// When a node reaches the stream, and when no more than so many events wait.
///
/// # Errors
/// That takes too long.
pub fn caught_up(monitor: &Endpoint, at_most: u64) -> anyhow::Result<[Instant; 2]> {
    let mut client = Client::connect(monitor)?;
    let (begun, mut reached) = (Instant::now(), None);
    while begun.elapsed() < DRAIN_MAX {
        let Told { connected, lanes } = told(monitor, &mut client)?;
        if connected {
            let reached = *reached.get_or_insert_with(Instant::now);
            if lanes.iter().map(|lane| lane.waiting).sum::<u64>() <= at_most {
                return Ok([reached, Instant::now()]);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    bail!("the backlog is not drained after {} s", DRAIN_MAX.as_secs())
}

/// What came to a distribution since it was an earlier one.
pub fn since(now: &Counts, before: &Counts) -> Latencies {
    let seen = |ns: u64| before.0.iter().find(|(at, _)| *at == ns).map_or(0, |(_, count)| *count);
    Latencies::from_counts(&Counts(now.0.iter().map(|(ns, count)| (*ns, count - seen(*ns))).collect()))
}
