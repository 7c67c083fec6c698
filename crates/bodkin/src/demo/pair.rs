//! The demo's reliable pair: a witness, a Backup and a Primary, each a process of its own, with one topic of which nothing may be lost.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bodkin_broker::topic::LeaseTimes;
use bodkin_client::{Limits, Monitor, realtime::Brokers};
use serde::Deserialize;
use tokio::time::sleep;

use super::{child::Child, report::Ready};

/// The topic, declared to every node.
pub(super) const TOPIC: &str = "PULSE";
/// Least time between two of its events.
pub(super) const PERIOD: Duration = Duration::from_millis(1);
/// Longest wait for a pair that protects what it answers, and for what is under way at the end.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The three processes, the Primary last.
pub(super) struct Pair {
    pub(super) children: Vec<Child>,
    /// The ZMTP ports of the Primary, and of its Backup.
    brokers: [SocketAddr; 2],
    pub(super) registry: String,
    /// Where the dashboards of the Primary and of its Backup are.
    pub(super) monitors: [String; 2],
}

/// A node's first line: where it listens for the other nodes, and for everybody else.
#[derive(Deserialize)]
struct First {
    pair: Option<String>,
    #[serde(default)]
    listeners: BTreeMap<String, String>,
}

impl First {
    async fn of(node: &mut Child) -> anyhow::Result<Self> {
        node.tells_within(WAIT_MAX).await
    }

    /// Where it listens for the other nodes.
    fn pair(self) -> anyhow::Result<String> {
        self.pair.context("a node of the pair did not say where it listens for the others")
    }

    fn listener(&self, name: &str) -> anyhow::Result<&str> {
        self.listeners.get(name).map(String::as_str).with_context(|| format!("a node of the pair did not say where its {name} is"))
    }
}

impl Pair {
    pub(super) async fn start(place: &Path) -> anyhow::Result<Self> {
        let config = place.join("bodkin.toml");
        fs::write(&config, topic()).with_context(|| format!("cannot write {}", config.display()))?;
        let config = config.to_str().context("the temporary directory's name is not UTF-8")?;
        let data = |name: &str| format!("{}/{name}", place.display());
        let mut children = Vec::new();
        let start = |name: &'static str, arguments: &[&str]| {
            let arguments = [&["--", "--output", "json"], arguments].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
            Child::start(name, "cloud", &arguments)
        };
        let mut witness = start(
            "the witness",
            &["witness", "--insecure", "--witness-listen", "127.0.0.1:0", "--data", &data("witness"), "--config", config],
        )?;
        let witness_at = First::of(&mut witness).await?.pair()?;
        children.push(witness);

        let common = ["--insecure", "--any-port", "--witness", &witness_at, "--config", config];
        let mut backup =
            start("the Backup", &[&["backup", "--pair-listen", "127.0.0.1:0", "--data", &data("backup")][..], &common].concat())?;
        let first = First::of(&mut backup).await?;
        let of_backup = first.listener("zmtp")?.parse()?;
        let monitor_of_backup = first.listener("monitor")?.to_owned();
        let peer = first.pair()?;
        children.push(backup);

        let primary = ["up", "--role", "primary", "--peer", &peer, "--data", &data("primary")];
        let mut primary = start("the Primary", &[&primary[..], &common].concat())?;
        let first = First::of(&mut primary).await?;
        primary.tells_within::<Ready>(WAIT_MAX).await?;
        children.push(primary);
        let brokers = [first.listener("zmtp")?.parse()?, of_backup];
        Ok(Self {
            children,
            brokers,
            registry: first.listener("serviceregistry")?.to_owned(),
            monitors: [first.listener("monitor")?.to_owned(), monitor_of_backup],
        })
    }

    pub(super) async fn wait_until_protected(&mut self) -> anyhow::Result<()> {
        let monitor = Monitor::new(&self.monitors[0], Limits::default());
        let deadline = Instant::now() + WAIT_MAX;
        while monitor.gauge("bodkin_pair_protected").await? != Some(1.0) {
            ensure!(Instant::now() < deadline, "the Backup is not in sync after {} s", WAIT_MAX.as_secs());
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    pub(super) fn brokers(&self, name: &str) -> Brokers {
        let [primary, backup] = self.brokers;
        Brokers::pair(name, primary, backup)
    }
}

/// The topic's declaration.
fn topic() -> String {
    let LeaseTimes { lease, heartbeat, drift_ppm, detect_jitter, redirect } = LeaseTimes::SHIPPED;
    format!(
        "[platform]\nlease_us = {}\nheartbeat_us = {}\ndrift_ppm = {drift_ppm}\ndetect_jitter_us = {}\nredirect_us = {}\nbroker_backup_us = 500\n\
        clock_error_us = 100\n\n[[topic]]\nevent_type = \"{TOPIC}\"\nperiod_us = {}\ndeadline_ms = 500\nloss_tolerance = 0\nretention = {}\n\
        publisher_broker_us = 500\nbroker_subscriber_max_us = 500\ndispatch_cost_us = 10\nreplica_cost_us = 10\n",
        lease.micros(),
        heartbeat.micros(),
        detect_jitter.micros(),
        redirect.micros(),
        PERIOD.as_micros(),
        retention()
    )
}

/// N: so many events that they last for a fail-over.
pub(super) fn retention() -> u32 {
    let events = LeaseTimes::SHIPPED.failover().get() / PERIOD.as_nanos() as i64 + 8;
    u32::try_from(events).expect("a fail-over is short")
}
