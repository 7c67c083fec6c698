//! An event each millisecond, through a reliable pair: publisher and subscriber are what any application would have of `bodkin-client`, each on a thread of its
//! own, with a session to both brokers.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bodkin_client::realtime::{
    Brokers, PublisherReport, RealtimePublisher, RealtimeSubscriber, Retention, Session, SessionReport, StreamCounters, SubscriberConfig,
    SubscriberReport, Subscription, WhenFull,
};
use tokio::task::{JoinHandle, spawn_blocking};

use super::pair::{PERIOD, TOPIC, WAIT_MAX, retention};

/// Events that the publisher keeps until they are safe: four seconds of them.
const KEPT_MAX: u32 = 4096;
/// Longest wait in a turn of the publisher or subscriber.
const TURN_MAX: Duration = Duration::from_millis(10);

/// What publisher and subscriber have noticed since it was taken last; counts are since the beginning.
#[derive(Default)]
pub struct Noted {
    pub published: u64,
    /// Who leads, and since when.
    pub led: Vec<(Instant, Session)>,
    /// Events that came faster than a period allows: nothing is promised for them.
    pub excess: u64,
    /// When events were safe.
    pub covered: Vec<Instant>,
    /// What the subscriber has counted.
    pub counters: StreamCounters,
    /// When each event came, and how long after its creation, in nanoseconds.
    pub arrivals: Vec<(Instant, u64)>,
}

impl Noted {
    /// Of events that came at such a time, how long after their creation, in milliseconds; sorted.
    pub fn latencies_ms(&self, of: impl Fn(Instant) -> bool) -> Vec<f64> {
        let mut latencies: Vec<f64> = self.arrivals.iter().filter(|(at, _)| of(*at)).map(|(_, ns)| *ns as f64 / 1e6).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}

/// Of sorted numbers the one that this share of them does not exceed.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// The publisher and the subscriber, each on a thread.
pub struct Pulse {
    flags: Arc<Flags>,
    publisher: JoinHandle<anyhow::Result<()>>,
    subscriber: JoinHandle<anyhow::Result<()>>,
}

/// What the two threads tell each other and the demo.
#[derive(Default)]
struct Flags {
    /// Nothing more is to be published.
    is_over: AtomicBool,
    /// Nothing more will be.
    is_published: AtomicBool,
    /// The subscriber is there.
    is_heard: AtomicBool,
    noted: Mutex<Noted>,
}

impl Flags {
    /// A thread that has panicked has left whole numbers.
    fn note(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pulse {
    /// Threads cannot be ended from outside: they look at this.
    fn drop(&mut self) {
        self.flags.is_over.store(true, Relaxed);
        self.flags.is_published.store(true, Relaxed);
    }
}

impl Pulse {
    pub fn start(of_publisher: Brokers, of_subscriber: Brokers) -> Self {
        let flags = Arc::new(Flags::default());
        let (published, heard) = (flags.clone(), flags.clone());
        Self {
            flags,
            publisher: spawn_blocking(move || publish(of_publisher, &published)),
            subscriber: spawn_blocking(move || subscribe(of_subscriber, &heard)),
        }
    }

    /// Whether both threads run; where one does not, [`Self::end`] says why.
    pub fn runs(&self) -> bool {
        !self.publisher.is_finished() && !self.subscriber.is_finished()
    }

    /// What was noticed since the last time.
    pub fn take(&self) -> Noted {
        let mut noted = self.flags.note();
        let kept = Noted { published: noted.published, excess: noted.excess, counters: noted.counters, ..Noted::default() };
        std::mem::replace(&mut *noted, kept)
    }

    pub async fn end(mut self) -> anyhow::Result<Noted> {
        self.flags.is_over.store(true, Relaxed);
        (&mut self.publisher).await.expect("the publisher does not panic")?;
        self.flags.is_published.store(true, Relaxed);
        (&mut self.subscriber).await.expect("the subscriber does not panic")?;
        Ok(self.take())
    }
}

/// Publishes once the subscriber is there, until it is over and everything is safe.
fn publish(brokers: Brokers, flags: &Flags) -> anyhow::Result<()> {
    let mut publisher = RealtimePublisher::connect(brokers)?;
    let topic = publisher.add_topic(TOPIC, Retention::new(retention(), KEPT_MAX, WhenFull::Block));
    let (mut published, mut through) = (0, 0);
    let mut refused = None;
    let mut next = Instant::now();
    let mut until = None;
    while until.is_none_or(|until| Instant::now() < until && through < published) {
        publisher.turn_for(next.saturating_duration_since(Instant::now()), |report| match report {
            PublisherReport::Covered { through: last, .. } => {
                through = last.0;
                flags.note().covered.push(Instant::now());
            }
            PublisherReport::Session(SessionReport::Leads(session, _)) => flags.note().led.push((Instant::now(), session)),
            PublisherReport::Excess { .. } => flags.note().excess += 1,
            PublisherReport::NotTaken { text, .. } => refused = Some(text.to_owned()),
            _ => {}
        })?;
        if let Some(why) = refused {
            anyhow::bail!("an event was not taken: {why}");
        }
        if flags.is_over.load(Relaxed) {
            until.get_or_insert_with(|| Instant::now() + WAIT_MAX);
        } else if flags.is_heard.load(Relaxed) {
            publisher.publish(topic, format!("{}", published + 1).as_bytes())?;
            published += 1;
            flags.note().published = published;
        }
        // Who is late does not make up for it: no two events may be created closer than a period. So it begins behind the creation, where nothing that holds this
        // thread up can shorten it, and has room for clocks that do not run alike.
        next = Instant::now() + PERIOD + PERIOD / 100;
    }
    Ok(())
}

/// Takes what comes, until everything is published and nothing comes any more.
fn subscribe(brokers: Brokers, flags: &Flags) -> anyhow::Result<()> {
    let config = SubscriberConfig { acknowledge_every: 1, acknowledge_after: PERIOD, window: KEPT_MAX, streams_max: 4 };
    let mut subscriber = RealtimeSubscriber::connect(brokers, config)?;
    let subscription = Subscription { loss_tolerance: Some(0), required_for: Some(WAIT_MAX), ..Subscription::default() };
    let topic = subscriber.subscribe(TOPIC, subscription);
    let mut subscribed = Vec::new();
    let mut refused = None;
    let mut is_quiet = false;
    while !(flags.is_published.load(Relaxed) && is_quiet) {
        is_quiet = true;
        subscriber.turn(TURN_MAX, |report| match report {
            SubscriberReport::Event(event) => {
                is_quiet = false;
                let utc_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
                flags.note().arrivals.push((Instant::now(), utc_ns.saturating_sub(event.header.created_utc_ns)));
            }
            SubscriberReport::Subscribed(_, session) => subscribed.push(session),
            SubscriberReport::Refused { text, .. } => refused = Some(text.to_owned()),
            _ => {}
        })?;
        if let Some(why) = refused {
            anyhow::bail!("the subscription was refused: {why}");
        }
        if let Some((_, counters)) = subscriber.counters(topic).next() {
            flags.note().counters = counters;
        }
        // The node that follows has the subscription too: what it does not hear is the leader's to bring.
        if subscriber.leader().is_some_and(|leader| subscribed.contains(&leader)) {
            flags.is_heard.store(true, Relaxed);
        }
    }
    Ok(())
}
