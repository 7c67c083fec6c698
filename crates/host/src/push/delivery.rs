//! What is known of the delivery to a pushed subscription: shared by its task, the shard, and whoever watches.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::*},
    },
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{record::SubscriptionId, snapshot::Snapshot, utc::UtcTime};
use bodkin_broker::Circuit;
use bodkin_store::{
    Store, StoreError,
    delivery::DeliveriesAtStart,
    event_log::{EventLogReader, Position, RecordName},
};
use imbl::OrdMap;
use tokio::sync::watch;

/// A place that is not known yet: the delivery has not begun.
const NOWHERE: u64 = u64::MAX;
/// Records looked through at the start for who has missed nothing; a log that is longer behind the present is left to each.
const MISSED_RECORDS_MAX: usize = 1_000_000;

/// How a delivery goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Events go out as they come.
    Live,
    /// The last attempts failed; the event is tried again.
    Retrying,
    /// The circuit is open: one event is tried now and then.
    Open,
    /// Events go out from the event log.
    Behind,
    /// The operator holds events back.
    Paused,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Live, Self::Retrying, Self::Open, Self::Behind, Self::Paused];

    /// The name it is told by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Retrying => "retrying",
            Self::Open => "open",
            Self::Behind => "behind",
            Self::Paused => "paused",
        }
    }
}

/// One subscription's delivery. It outlives a change of the subscription, unless that is to another subscriber or event type.
#[derive(Debug)]
pub struct Delivery {
    /// Everything in front of it is delivered or dead.
    cursor: AtomicU64,
    /// The last event that is done with, and its place.
    finished: Mutex<Option<(Position, RecordName)>>,
    /// Behind the last event that the shard has handed over.
    handed: AtomicU64,
    /// Whether the shard hands events over.
    is_live: AtomicBool,
    /// Events handed over and not done with.
    pub queued: AtomicU64,
    /// Whether the operator holds events back.
    pub paused: watch::Sender<bool>,
    /// Whether its dead letters are being replayed.
    pub is_replaying: AtomicBool,
    /// Events that were taken.
    pub delivered: AtomicU64,
    /// Attempts.
    pub attempts: AtomicU64,
    /// Attempts that failed.
    pub failures: AtomicU64,
    /// Events that were lost, at the most.
    pub lost: AtomicU64,
    /// Events that another cloud has taken later than their share says.
    pub late: AtomicU64,
    /// Dead letters that are kept. Who adds and who takes away count when they have done it, in either order.
    dead_letters: AtomicI64,
    /// How often some were removed, by the operator or for want of room: a replay must not send them.
    pub removals: AtomicU64,
    consecutive_failures: AtomicU32,
    is_open: AtomicBool,
    last_success_ns: AtomicU64,
    trouble: Mutex<Trouble>,
}

/// The last failure.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// When it was.
    pub at: Option<UtcTime>,
    /// What it was.
    pub error: Option<String>,
    /// When the event is tried again.
    pub next_attempt: Option<UtcTime>,
}

impl Default for Delivery {
    /// One that has not begun.
    fn default() -> Self {
        Self::new(NOWHERE, watch::Sender::new(false))
    }
}

impl Delivery {
    fn new(cursor: u64, paused: watch::Sender<bool>) -> Self {
        Self {
            cursor: AtomicU64::new(cursor),
            finished: Mutex::default(),
            handed: AtomicU64::new(0),
            is_live: AtomicBool::new(false),
            queued: AtomicU64::new(0),
            paused,
            is_replaying: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            late: AtomicU64::new(0),
            dead_letters: AtomicI64::new(0),
            removals: AtomicU64::new(0),
            consecutive_failures: AtomicU32::new(0),
            is_open: AtomicBool::new(false),
            last_success_ns: AtomicU64::new(0),
            trouble: Mutex::default(),
        }
    }

    /// Everything in front of it is delivered or dead; `None` while the delivery has not begun.
    pub fn cursor(&self) -> Option<Position> {
        Some(self.cursor.load(Acquire)).filter(|cursor| *cursor != NOWHERE).map(Position)
    }

    /// Everything in front of `cursor` is done with.
    pub fn move_to(&self, cursor: Position) {
        self.cursor.store(cursor.0, Release);
    }

    /// Everything up to this event is done with.
    pub fn finish(&self, position: Position, name: RecordName) {
        *self.lock_finished() = Some((position, name));
        self.move_to(Position(position.0 + 1));
    }

    /// The last event that is done with, and its place; `None` while none is.
    pub fn finished(&self) -> Option<(Position, RecordName)> {
        *self.lock_finished()
    }

    fn lock_finished(&self) -> std::sync::MutexGuard<'_, Option<(Position, RecordName)>> {
        // An assignment leaves it whole wherever it is interrupted.
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the shard has handed the event at `position` over.
    pub fn handed_over(&self, position: Option<Position>) {
        self.queued.fetch_add(1, Relaxed);
        if let Some(position) = position {
            self.handed.store(position.0 + 1, Release);
        }
    }

    /// Notes whether the shard hands events over from now on.
    pub fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, Release);
    }

    /// Whether everything that was accepted until now is done with, as far as it is for this subscription.
    pub fn is_at_present(&self) -> bool {
        self.is_live.load(Acquire) && self.handed.load(Acquire) <= self.cursor.load(Acquire)
    }

    /// Counts dead letters that were added, or taken away.
    pub fn count_dead_letters(&self, change: i64) {
        self.dead_letters.fetch_add(change, Relaxed);
    }

    /// Dead letters that are kept.
    pub fn dead_letters(&self) -> u64 {
        u64::try_from(self.dead_letters.load(Relaxed)).unwrap_or(0)
    }

    /// Notes a success.
    pub fn succeeded(&self, now: UtcTime) {
        self.delivered.fetch_add(1, Relaxed);
        self.last_success_ns.store(now.unix_nanos(), Relaxed);
        if self.consecutive_failures.swap(0, Relaxed) > 0 {
            self.is_open.store(false, Relaxed);
            self.trouble().next_attempt = None;
        }
    }

    /// Notes a failure, and how the circuit is behind it.
    pub fn failed(&self, failures: u32, circuit: Circuit, trouble: Trouble) {
        self.failures.fetch_add(1, Relaxed);
        self.consecutive_failures.store(failures, Relaxed);
        self.is_open.store(circuit == Circuit::Open, Relaxed);
        *self.trouble() = trouble;
    }

    /// Notes that the event at the head is not tried any more.
    pub fn passed_over(&self) {
        self.trouble().next_attempt = None;
    }

    /// How it goes.
    pub fn state(&self) -> State {
        match self.consecutive_failures.load(Relaxed) {
            _ if *self.paused.borrow() => State::Paused,
            _ if self.is_open.load(Relaxed) => State::Open,
            1.. => State::Retrying,
            0 if self.is_live.load(Acquire) || self.cursor().is_none() => State::Live,
            0 => State::Behind,
        }
    }

    /// Failures since the last success.
    pub fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures.load(Relaxed)
    }

    /// When an event was taken last.
    pub fn last_success(&self) -> Option<UtcTime> {
        Some(self.last_success_ns.load(Relaxed)).filter(|nanos| *nanos > 0).map(UtcTime::from_unix_nanos)
    }

    /// The last failure.
    pub fn last_trouble(&self) -> Trouble {
        self.trouble().clone()
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Trouble> {
        // An assignment leaves it whole wherever it is interrupted.
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events still to be delivered: those that are queued while it is live, else those of any type that the log holds behind
    /// the cursor.
    pub fn behind(&self, end: Option<Position>) -> Option<u64> {
        if self.is_live.load(Acquire) {
            return Some(self.queued.load(Relaxed));
        }
        Some(end?.0.saturating_sub(self.cursor()?.0))
    }
}

/// The deliveries of all pushed subscriptions.
#[derive(Debug, Default)]
pub struct Deliveries {
    all: ArcSwap<OrdMap<SubscriptionId, Arc<Delivery>>>,
    /// Whether nothing more is to be read from the log and sent.
    is_ending: AtomicBool,
    /// Held by who pauses or resumes until it is written down and in force.
    pausing: tokio::sync::Mutex<()>,
}

impl Deliveries {
    /// Those of the subscriptions in the snapshot as the last run left them, by positions of this log. What a machine's fall has taken
    /// of the log is no place to be. Reads the log, and so blocks.
    pub fn restore(start: &DeliveriesAtStart, snapshot: &Snapshot, log: Option<&EventLogReader>) -> io::Result<Self> {
        let end = log.map_or(Position(0), EventLogReader::end);
        let present = start.present.unwrap_or(end).min(end);
        let missed = log.map_or(Ok(None), |log| topics_behind(log, present))?;
        let is_quiet = |topic: &str| missed.as_ref().is_some_and(|missed| !missed.contains(topic));
        let mut all = OrdMap::new();
        for (id, subscription) in snapshot.subscriptions() {
            let topic = snapshot.event_type(subscription.event_type).expect("a subscription's event type is there");
            let cursor = if is_quiet(topic.event_type_name.as_str()) { end } else { present };
            all.insert(*id, Arc::new(Delivery::new(cursor.0, watch::Sender::new(false))));
        }
        for row in &start.rows {
            let cursor = row.cursor.unwrap_or(present).min(end);
            all.insert(row.subscription, Arc::new(Delivery::new(cursor.0, watch::Sender::new(row.paused))));
        }
        for (id, events) in &start.dead_letters {
            if let Some(delivery) = all.get(id) {
                delivery.count_dead_letters(i64::try_from(*events).unwrap_or(i64::MAX));
            }
        }
        Ok(Self { all: ArcSwap::from_pointee(all), ..Self::default() })
    }

    /// Takes over what was [restored](Self::restore): nobody is served yet.
    pub fn take_over(&self, restored: &Self) {
        self.all.store(restored.all.load_full());
    }

    /// That of a subscription, if it is there.
    pub fn get(&self, id: SubscriptionId) -> Option<Arc<Delivery>> {
        self.all.load().get(&id).cloned()
    }

    /// Holds a subscription's events back, or lets them go; false if there is no such subscription. One request after the other, so
    /// that what is in force is what was written down last.
    pub async fn pause(&self, id: SubscriptionId, paused: bool, store: &Store) -> Result<bool, StoreError> {
        let _turn = self.pausing.lock().await;
        let is_found = store.write(move |draft| draft.pause_delivery(id, paused), |_, found| found).await?;
        if is_found {
            // The shard may not have seen the subscription yet; then this is the delivery that it finds.
            self.of(id).paused.send_replace(paused);
            self.forget_ended(store);
        }
        Ok(is_found)
    }

    /// That of a subscription, made if it is new. Only for one that the shard serves, or will: it forgets it at the end.
    pub fn of(&self, id: SubscriptionId) -> Arc<Delivery> {
        if let Some(delivery) = self.get(id) {
            return delivery;
        }
        let made = Arc::new(Delivery::default());
        self.all.rcu(|all| {
            let mut all = OrdMap::clone(all);
            all.entry(id).or_insert_with(|| made.clone());
            all
        });
        self.all.load().get(&id).cloned().unwrap_or(made)
    }

    /// Puts a new delivery in the place of one whose subscription is to another subscriber or event type now. The former one's
    /// task may still be at work, and moves what is its own. What the operator said about the subscription stays.
    pub fn begin_anew(&self, id: SubscriptionId) -> Arc<Delivery> {
        let anew = Arc::new(Delivery::new(NOWHERE, self.of(id).paused.clone()));
        self.all.rcu(|all| all.update(id, anew.clone()));
        anew
    }

    /// Forgets one.
    pub fn remove(&self, id: SubscriptionId) {
        self.all.rcu(|all| all.without(&id));
    }

    /// Forgets those of subscriptions that have ended before the shard has seen them.
    pub fn forget_ended(&self, store: &Store) {
        // In this order: whoever has a delivery had been in a snapshot before.
        let all = self.all.load();
        let snapshot = store.snapshot();
        if all.len() > snapshot.subscriptions().len() {
            all.keys().filter(|id| !snapshot.subscriptions().contains_key(*id)).for_each(|id| self.remove(*id));
        }
    }

    /// What is sent from the event log ends with what is in flight: where each is, is written down then.
    pub fn end(&self) {
        self.is_ending.store(true, Release);
    }

    /// Whether [`Self::end`] was called.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Acquire)
    }

    /// All of them, as they are now.
    pub fn all(&self) -> Arc<OrdMap<SubscriptionId, Arc<Delivery>>> {
        self.all.load_full()
    }
}

/// Translates positions of the former leader's event log into positions of this log, by records that both logs have. Blocks on the disk.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn translate_to(log: &EventLogReader, mut start: DeliveriesAtStart) -> io::Result<DeliveriesAtStart> {
    let end = log.end();
    let names: BTreeSet<RecordName> = start.rows.iter().filter_map(|row| row.after).chain(start.after).collect();
    let places = log.places_after(&names)?;
    let place = |after: Option<RecordName>| after.map_or(end, |name| places[&name]);
    start.present = Some(place(start.after));
    for row in &mut start.rows {
        row.cursor = row.cursor.map(|_| place(row.after.or(start.after)));
    }
    start.log = Some(log.identity());
    Ok(start)
}

/// The topics that have events behind the present that was noted last; `None` if there is too much to look through.
fn topics_behind(log: &EventLogReader, present: Position) -> io::Result<Option<BTreeSet<String>>> {
    let mut topics = BTreeSet::new();
    let mut cursor = log.cursor(present);
    for _ in 0..MISSED_RECORDS_MAX {
        let Some(record) = cursor.read()? else { return Ok(Some(topics)) };
        if record.origin.is_none() && !topics.contains(record.topic) {
            topics.insert(record.topic.to_owned());
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_a_delivery_whose_subscription_is_not_there() {
        const ID: SubscriptionId = SubscriptionId(5);
        let place = tempfile::tempdir().unwrap();
        let opened = Store::open(place.path()).unwrap();
        let deliveries = Deliveries::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(!runtime.block_on(deliveries.pause(ID, true, &opened.store)).unwrap());
        assert!(deliveries.get(ID).is_none());
        deliveries.of(ID);
        deliveries.forget_ended(&opened.store);
        assert!(deliveries.get(ID).is_none());
    }

    #[test]
    fn letters_are_counted_in_any_order() {
        let delivery = Delivery::default();
        for (change, kept) in [(-3, 0), (5, 2), (-2, 0), (1, 1)] {
            delivery.count_dead_letters(change);
            assert_eq!(delivery.dead_letters(), kept);
        }
    }
}
