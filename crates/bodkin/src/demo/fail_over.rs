//! The demo's last act: a reliable pair on this machine, an event each millisecond that may not be lost, and a Primary that is killed.
//!
//! Publisher and subscriber are what any application would have of `bodkin-client`: each on a thread of its own, with a session to both brokers.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, ensure};
use bodkin_arrowhead::form::SystemRequest;
use bodkin_broker::topic::LeaseTimes;
use bodkin_client::{
    CoreSystems, Limits, Monitor,
    realtime::{
        Brokers, PublisherReport, RealtimePublisher, RealtimeSubscriber, Retention, SessionReport, StreamCounters, SubscriberConfig,
        SubscriberReport, Subscription, WhenFull,
    },
};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use super::{
    child::Child,
    narrator::{paragraph, step},
    report::{Ready, milliseconds},
};

const TOPIC: &str = "PULSE";
const SYSTEM: &str = "demo-pulse";
const PERIOD: Duration = Duration::from_millis(1);
/// Events that the publisher keeps until they are safe: four seconds of them.
const KEPT_MAX: u32 = 4096;
/// How long events flow in front of the kill, and behind it.
const FLOW: Duration = Duration::from_secs(1);
/// Longest wait for a pair that protects what it answers, and for what is under way at the end.
const WAIT_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait in a turn of the publisher or subscriber.
const TURN_MAX: Duration = Duration::from_millis(10);

/// The three processes, the Primary last.
struct Pair {
    children: Vec<Child>,
    /// The ZMTP ports of the Primary, and of its Backup.
    brokers: [SocketAddr; 2],
    registry: String,
    monitor: String,
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

/// Shows it.
///
/// # Errors
/// The pair does not come together, or an event that may not be lost is.
pub async fn show() -> anyhow::Result<()> {
    paragraph("\nA reliable pair: a Primary, its Backup and a witness; an event each millisecond, of which none may be lost (L = 0).\n")?;
    let place = TempDir::with_prefix("bodkin-demo-pair-").context("no temporary directory for the pair")?;
    let began = Instant::now();
    let mut pair = Pair::start(place.path()).await?;
    pair.wait_until_protected().await?;
    let x = Duration::from_nanos(LeaseTimes::SHIPPED.failover().get().unsigned_abs());
    let killed = pair.children.last().and_then(Child::pid).unwrap_or_default();
    let text = format!(
        "witness, Backup and Primary (process {killed}) are in sync, insecure and on this machine only; a fail-over may take x = {:.1} ms",
        milliseconds(x)
    );
    step(began.elapsed(), "pair", &text)?;

    let operator = CoreSystems::discover(&pair.registry).await?;
    let system = SystemRequest { system_name: Some(SYSTEM.into()), address: Some("127.0.0.1".into()), port: Some(1), ..Default::default() };
    operator.add_system(&system).await?;
    let pulse = Pulse::start(pair.brokers(SYSTEM), pair.brokers("demo-listener"));
    let began = Instant::now();
    sleep(FLOW).await;
    let at = Instant::now();
    let primary = pair.children.pop().expect("it was started last");
    primary.kill().await?;
    sleep(FLOW).await;
    let (sent, seen) = pulse.end().await?;
    for child in pair.children {
        ensure!(child.stop().await?, "a process of the pair did not end in order");
    }
    tell(&sent, &seen, at, began)
}

/// Says what publisher and subscriber noticed.
fn tell(sent: &Sent, seen: &Seen, killed: Instant, began: Instant) -> anyhow::Result<()> {
    let before = seen.latencies_ms(|at| at < killed);
    let around = seen.latencies_ms(|at| at >= killed);
    ensure!(!before.is_empty() && !around.is_empty(), "no events came: published {}, received {}", sent.published, seen.counters.received);
    let of = |latencies: &[f64], share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let text = format!(
        "{} events came, {:.2} ms behind their creation in the median, 99 of 100 within {:.2} ms",
        before.len(),
        of(&before, 0.5),
        of(&before, 0.99)
    );
    step(killed - began, "pulse", &text)?;
    let led = sent.led.iter().find(|at| **at > killed).context("no other broker led")?;
    let safe = sent.covered.iter().find(|at| **at > *led).context("no event was safe any more")?;
    let text = format!(
        "killed the Primary (SIGKILL): its Backup led after {:.1} ms, and after {:.1} ms events were safe again",
        milliseconds(*led - killed),
        milliseconds(*safe - killed)
    );
    step(*safe - killed, "pair", &text)?;
    let StreamCounters { received, lost, duplicates, .. } = seen.counters;
    let text = format!(
        "{} events published, {received} received, {lost} lost, {} twice ({duplicates} that came again were dropped); the latest came \
        {:.1} ms behind its creation",
        sent.published,
        received.saturating_sub(sent.published),
        of(&around, 1.0)
    );
    step(began.elapsed(), "pulse", &text)?;
    ensure!(lost == 0 && received == sent.published, "events that may not be lost were");
    Ok(())
}

impl Pair {
    async fn start(place: &Path) -> anyhow::Result<Self> {
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
            monitor: first.listener("monitor")?.to_owned(),
        })
    }

    async fn wait_until_protected(&mut self) -> anyhow::Result<()> {
        let monitor = Monitor::new(&self.monitor, Limits::default());
        let deadline = Instant::now() + WAIT_MAX;
        while monitor.gauge("bodkin_pair_protected").await? != Some(1.0) {
            ensure!(Instant::now() < deadline, "the Backup is not in sync after {} s", WAIT_MAX.as_secs());
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn brokers(&self, name: &str) -> Brokers {
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
fn retention() -> u32 {
    let events = LeaseTimes::SHIPPED.failover().get() / PERIOD.as_nanos() as i64 + 8;
    u32::try_from(events).expect("a fail-over is short")
}

/// What the publisher noticed.
struct Sent {
    published: u64,
    /// When another broker led.
    led: Vec<Instant>,
    /// When events were safe.
    covered: Vec<Instant>,
}

/// What the subscriber noticed.
struct Seen {
    counters: StreamCounters,
    /// When each event came, and how long after its creation, in nanoseconds.
    arrivals: Vec<(Instant, u64)>,
}

impl Seen {
    /// Sorted.
    fn latencies_ms(&self, of: impl Fn(Instant) -> bool) -> Vec<f64> {
        let mut latencies: Vec<f64> = self.arrivals.iter().filter(|(at, _)| of(*at)).map(|(_, ns)| *ns as f64 / 1e6).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}

/// The publisher and the subscriber, each on a thread.
struct Pulse {
    is_over: Arc<AtomicBool>,
    is_published: Arc<AtomicBool>,
    publisher: JoinHandle<anyhow::Result<Sent>>,
    subscriber: JoinHandle<anyhow::Result<Seen>>,
}

impl Drop for Pulse {
    /// Threads cannot be ended from outside: they look at this.
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.is_published.store(true, Relaxed);
    }
}

impl Pulse {
    fn start(of_publisher: Brokers, of_subscriber: Brokers) -> Self {
        let (is_over, is_published, is_heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)), Arc::default());
        let (over, published, heard) = (is_over.clone(), is_published.clone(), Arc::clone(&is_heard));
        Self {
            is_over,
            is_published,
            publisher: spawn_blocking(move || publish(of_publisher, &is_heard, &over)),
            subscriber: spawn_blocking(move || subscribe(of_subscriber, &heard, &published)),
        }
    }

    async fn end(mut self) -> anyhow::Result<(Sent, Seen)> {
        self.is_over.store(true, Relaxed);
        let sent = (&mut self.publisher).await.expect("the publisher does not panic")?;
        self.is_published.store(true, Relaxed);
        let seen = (&mut self.subscriber).await.expect("the subscriber does not panic")?;
        Ok((sent, seen))
    }
}

/// Publishes once the subscriber is there, until it is over and everything is safe.
fn publish(brokers: Brokers, is_heard: &AtomicBool, is_over: &AtomicBool) -> anyhow::Result<Sent> {
    let mut publisher = RealtimePublisher::connect(brokers)?;
    let topic = publisher.add_topic(TOPIC, Retention::new(retention(), KEPT_MAX, WhenFull::Block));
    let mut sent = Sent { published: 0, led: Vec::new(), covered: Vec::new() };
    let mut through = 0;
    let mut refused = None;
    let mut next = Instant::now();
    let mut until = None;
    while until.is_none_or(|until| Instant::now() < until && through < sent.published) {
        publisher.turn_for(next.saturating_duration_since(Instant::now()), |report| match report {
            PublisherReport::Covered { through: last, .. } => {
                through = last.0;
                sent.covered.push(Instant::now());
            }
            PublisherReport::Session(SessionReport::Leads(..)) => sent.led.push(Instant::now()),
            PublisherReport::NotTaken { text, .. } => refused = Some(text.to_owned()),
            _ => {}
        })?;
        if let Some(why) = refused {
            anyhow::bail!("an event was not taken: {why}");
        }
        // Who is late does not make up for it: no two events may be closer than a period.
        next = Instant::now() + PERIOD;
        if is_over.load(Relaxed) {
            until.get_or_insert_with(|| Instant::now() + WAIT_MAX);
        } else if is_heard.load(Relaxed) {
            publisher.publish(topic, format!("{}", sent.published + 1).as_bytes())?;
            sent.published += 1;
        }
    }
    Ok(sent)
}

/// Takes what comes, until everything is published and nothing comes any more.
fn subscribe(brokers: Brokers, is_heard: &AtomicBool, is_published: &AtomicBool) -> anyhow::Result<Seen> {
    let config = SubscriberConfig { acknowledge_every: 1, acknowledge_after: PERIOD, window: KEPT_MAX, streams_max: 4 };
    let mut subscriber = RealtimeSubscriber::connect(brokers, config)?;
    let subscription = Subscription { loss_tolerance: Some(0), required_for: Some(WAIT_MAX), ..Subscription::default() };
    let topic = subscriber.subscribe(TOPIC, subscription);
    let mut arrivals = Vec::new();
    let mut subscribed = Vec::new();
    let mut refused = None;
    let mut is_quiet = false;
    while !(is_published.load(Relaxed) && is_quiet) {
        is_quiet = true;
        subscriber.turn(TURN_MAX, |report| match report {
            SubscriberReport::Event(event) => {
                is_quiet = false;
                let utc_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
                arrivals.push((Instant::now(), utc_ns.saturating_sub(event.header.created_utc_ns)));
            }
            SubscriberReport::Subscribed(_, session) => subscribed.push(session),
            SubscriberReport::Refused { text, .. } => refused = Some(text.to_owned()),
            _ => {}
        })?;
        if let Some(why) = refused {
            anyhow::bail!("the subscription was refused: {why}");
        }
        // The node that follows has the subscription too: what it does not hear is the leader's to bring.
        if subscriber.leader().is_some_and(|leader| subscribed.contains(&leader)) {
            is_heard.store(true, Relaxed);
        }
    }
    let counters = subscriber.counters(topic).map(|(_, counters)| counters).next().unwrap_or_default();
    Ok(Seen { counters, arrivals })
}
