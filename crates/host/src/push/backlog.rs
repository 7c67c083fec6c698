//! What a pushed subscription has not got yet, read from the event log on tokio's blocking threads in chunks.

use std::{collections::VecDeque, io, sync::Arc};

use bodkin_arrowhead::{event_handler, record::Subscription};
use bodkin_store::{
    Store,
    event_log::{Cursor, EventLogReader, Position, Record},
};
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::link::PushEvent;
use crate::replay::publication;

/// Bytes of events read at once for a subscription.
const CHUNK_BYTES: usize = 64 * 1024;
/// Records looked at at once, so that a subscription of a rare event type leaves its place to others now and then.
const CHUNK_RECORDS: usize = 100_000;
/// Subscriptions that read at the same time; the others wait, so that a thousand that come back leave the disk and the
/// processors to live events.
pub const READERS_MAX: usize = 2;

/// What reading takes.
#[derive(Clone)]
pub struct BacklogSource {
    /// Who may hear whom.
    pub store: Store,
    /// The event log.
    pub log: EventLogReader,
    /// Places of those who read.
    pub readers: Arc<Semaphore>,
}

impl BacklogSource {
    /// A source for deliveries.
    pub fn new(store: Store, log: EventLogReader) -> Self {
        Self { store, log, readers: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Runs a piece of reading on a blocking thread, when there is a place.
    pub async fn read<T: Send + 'static>(&self, piece: impl FnOnce(&Self) -> io::Result<T> + Send + 'static) -> io::Result<T> {
        let place = self.readers.clone().acquire_owned().await.expect("the semaphore is never closed");
        let source = self.clone();
        let read = tokio::task::spawn_blocking(move || piece(&source)).await;
        drop(place);
        read.unwrap_or_else(|_| Err(io::Error::other("the local cloud is shutting down")))
    }
}

/// Who hears a record as things are now.
pub struct Hearing<'h> {
    subscription: &'h Subscription,
    snapshot: Arc<bodkin_arrowhead::snapshot::Snapshot>,
    text: String,
}

impl<'h> Hearing<'h> {
    /// The rule of a subscription.
    pub fn new(subscription: &'h Subscription, store: &Store) -> Self {
        Self { subscription, snapshot: Arc::clone(&store.snapshot()), text: String::new() }
    }

    /// Whether the subscription is to get the event. What another node has accepted is pushed by that node.
    pub fn hears(&mut self, record: &Record<'_>) -> bool {
        if record.origin.is_some() {
            return false;
        }
        let topic = self.snapshot.event_type(self.subscription.event_type);
        topic.is_some_and(|topic| topic.event_type_name.as_str() == record.topic)
            && publication(record).is_some_and(|event| event_handler::hears(&self.snapshot, self.subscription, &event, &mut self.text))
    }
}

/// The event of a record as it is pushed.
pub fn push_event(record: &Record<'_>) -> PushEvent {
    PushEvent {
        position: Some(record.position),
        id: record.id,
        accepted_ns: record.time_ns,
        json: Bytes::copy_from_slice(record.event.as_bytes()),
    }
}

/// What was found behind a place in the log.
#[derive(Debug)]
pub enum Found {
    /// The next event for the subscription.
    Event(PushEvent),
    /// Nothing yet; everything in front of this place was looked at.
    Nothing(Position),
    /// There is nothing more at present; this is the end.
    End(Position),
}

/// A place in the log that moves on as events are taken.
#[derive(Debug)]
pub struct Backlog {
    next: Position,
    cursor: Option<Cursor>,
    /// Events that were read ahead, and how many records were gone between the former one and each.
    ready: VecDeque<(u64, PushEvent)>,
    /// Records that were gone behind them.
    missing_behind: u64,
    is_end: bool,
    /// Records that were gone in front of what was given out.
    missing: u64,
}

impl Backlog {
    /// Begins at a position.
    pub fn at(next: Position) -> Self {
        Self { next, cursor: None, ready: VecDeque::new(), missing_behind: 0, is_end: false, missing: 0 }
    }

    /// Records of any type that were gone before they could be looked at and lie in front of what was given out, since the last
    /// time this was asked.
    pub fn take_missing(&mut self) -> u64 {
        std::mem::take(&mut self.missing)
    }

    /// Looks for the next event.
    pub async fn next(&mut self, subscription: &Arc<Subscription>, source: &BacklogSource) -> io::Result<Found> {
        if self.ready.is_empty() && !self.is_end {
            self.read_ahead(subscription, source).await?;
        }
        if let Some((missing, event)) = self.ready.pop_front() {
            self.missing += missing;
            return Ok(Found::Event(event));
        }
        self.missing += std::mem::take(&mut self.missing_behind);
        let is_end = std::mem::take(&mut self.is_end);
        Ok(if is_end { Found::End(self.next) } else { Found::Nothing(self.next) })
    }

    async fn read_ahead(&mut self, subscription: &Arc<Subscription>, source: &BacklogSource) -> io::Result<()> {
        let mut chunk = std::mem::replace(self, Self::at(self.next));
        let subscription = subscription.clone();
        *self = source
            .read(move |source| {
                chunk.fill(&subscription, source)?;
                Ok(chunk)
            })
            .await?;
        Ok(())
    }

    fn fill(&mut self, subscription: &Subscription, source: &BacklogSource) -> io::Result<()> {
        let mut hearing = Hearing::new(subscription, &source.store);
        let mut expected = self.next;
        let cursor = self.cursor.get_or_insert_with(|| source.log.cursor(expected));
        let (mut bytes, mut missing) = (0, std::mem::take(&mut self.missing_behind));
        for _ in 0..CHUNK_RECORDS {
            let Some(record) = cursor.read()? else {
                self.is_end = true;
                break;
            };
            missing += record.position.0 - expected.0;
            expected = Position(record.position.0 + 1);
            if hearing.hears(&record) {
                bytes += record.event.len();
                self.ready.push_back((std::mem::take(&mut missing), push_event(&record)));
                if bytes >= CHUNK_BYTES {
                    break;
                }
            }
        }
        self.next = cursor.position();
        self.missing_behind = missing + (self.next.0 - expected.0);
        cursor.rest();
        Ok(())
    }
}
