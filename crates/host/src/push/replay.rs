//! A replay of dead letters: they are posted in their order, until the subscriber fails or nothing is left.

use std::{
    io,
    sync::{Arc, atomic::Ordering::*},
};

use bodkin_arrowhead::record::{Subscription, SubscriptionId};
use bodkin_store::{StoreError, delivery::DeadLetters};
use serde::Serialize;

use super::{
    PushContext,
    backlog::BacklogSource,
    dead_letters::{DeadLetterReader, read_chunk},
    delivery::Delivery,
    link::{Link, PushError, PushEvent, Target},
    response::Response,
};

/// Rows of dead letters read from the database at once.
const ROWS: u64 = 1000;
/// Events in flight on a connection that has proved able.
const IN_FLIGHT_MAX: usize = 64;
/// Bytes of events in flight.
const IN_FLIGHT_BYTES_MAX: usize = 256 * 1024;

/// What became of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Events that were taken, and are no dead letters any more.
    pub replayed: u64,
    /// Events that were not taken once more.
    pub failed: u64,
    /// Dead letters that are left.
    pub remaining: u64,
}

/// Why a replay was not begun, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The operator holds the subscription's events back.
    #[error("subscription {0} is paused; resume it first")]
    Paused(SubscriptionId),
    /// Somebody else does it.
    #[error("the dead letters of subscription {0} are being replayed already")]
    Busy(SubscriptionId),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event log.
    #[error("the event log cannot be read: {0}")]
    Log(#[from] io::Error),
}

/// Replays a subscription's dead letters in their order, until the subscriber fails or nothing is left.
pub async fn replay(subscription: Arc<Subscription>, context: PushContext, source: BacklogSource) -> Result<Replayed, ReplayError> {
    let id = subscription.id;
    let delivery = context.deliveries.of(id);
    if *delivery.paused.borrow() {
        return Err(ReplayError::Paused(id));
    }
    if delivery.is_replaying.swap(true, AcqRel) {
        return Err(ReplayError::Busy(id));
    }
    let (link, reader, done) = (Link::default(), DeadLetterReader::default(), Replayed::default());
    let mut replay = Replay { subscription, context, source, delivery, link, reader, done };
    let ended = replay.run().await;
    replay.delivery.is_replaying.store(false, Release);
    ended?;
    let left = replay.context.store.write(move |draft| draft.dead_letter_count(Some(id)), |_, count| count).await?;
    replay.delivery.dead_letters.store(left, Relaxed);
    Ok(Replayed { remaining: left, ..replay.done })
}

struct Replay {
    subscription: Arc<Subscription>,
    context: PushContext,
    source: BacklogSource,
    delivery: Arc<Delivery>,
    link: Link,
    done: Replayed,
    reader: DeadLetterReader,
}

impl Replay {
    async fn run(&mut self) -> Result<(), ReplayError> {
        let id = self.subscription.id;
        // What fails once more is younger, and not tried for ever.
        let newest = self.context.store.write(move |draft| draft.newest_dead_letters(id), |_, newest| newest).await?;
        let Some(newest) = newest else { return Ok(()) };
        loop {
            let read = move |draft: &mut bodkin_store::Draft<'_>| draft.first_dead_letters(id, newest, ROWS);
            let rows = self.context.store.write(read, |_, rows| rows).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let mut rows = Arc::new(rows);
            while !rows.is_empty() {
                let (left, goes_on) = self.stretch(&rows).await?;
                if !goes_on || *self.delivery.paused.borrow() {
                    return Ok(());
                }
                rows = Arc::new(left);
            }
        }
    }

    /// Replays as much of the rows as is read at once, and notes it; gives what is left of them, and whether the subscriber
    /// still takes events.
    async fn stretch(&mut self, rows: &Arc<Vec<DeadLetters>>) -> Result<(Vec<DeadLetters>, bool), ReplayError> {
        let (subscription, wanted) = (self.subscription.clone(), rows.clone());
        let mut reader = std::mem::take(&mut self.reader);
        let read = move |source: &BacklogSource| {
            let chunk = read_chunk(&mut reader, &subscription, &wanted, source)?;
            Ok((reader, chunk))
        };
        let (reader, chunk) = self.source.read(read).await?;
        self.reader = reader;
        let (sent, failed, error) = self.post(&chunk.events).await;
        let (mut left, mut noted) = (Vec::new(), Vec::new());
        for (index, next) in chunk.next.iter().enumerate() {
            let row = &rows[index];
            let mine = || chunk.rows.iter().zip(&chunk.events).enumerate().filter(|(_, (of, _))| **of == index);
            // An event that was not sent is where the row goes on.
            let unsent = mine().find(|(at, _)| *at >= sent).and_then(|(_, (_, event))| event.position);
            let next = unsent.unwrap_or(*next);
            let is_left = next.0 <= row.last.0;
            let done = mine().filter(|(at, _)| *at < sent).count() as u64;
            // What a row promised and the log does not keep any more goes with the row.
            let gone = if is_left { done } else { row.events };
            self.delivery.lost.fetch_add(gone.saturating_sub(done), Relaxed);
            noted.push((row.id, next, gone));
            if is_left {
                left.push(DeadLetters { first: next, events: row.events.saturating_sub(gone).max(1), ..row.clone() });
            }
        }
        let letters: Vec<DeadLetters> = failed
            .iter()
            .map(|(at, reason)| {
                let (row, event) = (&rows[chunk.rows[*at]], &chunk.events[*at]);
                let position = event.position.expect("a dead letter is in the log");
                let attempts = row.attempts.saturating_add(1);
                DeadLetters { first: position, last: position, is_range: false, events: 1, attempts, reason: reason.clone(), ..row.clone() }
            })
            .collect();
        self.done.replayed += (sent - failed.len()) as u64;
        self.done.failed += failed.len() as u64 + u64::from(error.is_some() && sent < chunk.events.len());
        self.context.store.write(move |draft| draft.note_replayed(&noted, &letters), |_, ()| ()).await?;
        left.extend_from_slice(&rows[chunk.next.len()..]);
        Ok((left, error.is_none()))
    }

    /// Posts events in their order, several in flight where the connection has proved able. Gives how many were answered,
    /// those of them that were not taken, and why it does not go on.
    async fn post(&mut self, events: &[PushEvent]) -> (usize, Vec<(usize, String)>, Option<PushError>) {
        let (mut sent, mut failed, mut answers) = (0, Vec::new(), Vec::new());
        while sent < events.len() {
            let subscriber = self.context.store.snapshot().system(self.subscription.subscriber).cloned();
            let Some(subscriber) = subscriber else { return (sent, failed, Some(PushError::Gone)) };
            let (own, timeout) = (&self.context.own, self.context.timeout);
            let target = Target { subscriber: &subscriber, notify_uri: &self.subscription.notify_uri, own, timeout };
            let in_flight = if self.link.is_proved() { in_flight(&events[sent..]) } else { 1 };
            answers.clear();
            let posted = self.link.post_all(&target, &events[sent..sent + in_flight], &mut answers).await;
            let trouble = self.take_answers(&answers, sent, &mut failed);
            sent += answers.len();
            if let Some(error) = posted.err().or(trouble) {
                return (sent, failed, Some(error));
            }
            if *self.delivery.paused.borrow() {
                break;
            }
        }
        (sent, failed, None)
    }

    /// Counts answers; gives the last that says that the subscriber cannot take any event.
    fn take_answers(&self, answers: &[Response], first: usize, failed: &mut Vec<(usize, String)>) -> Option<PushError> {
        let mut trouble = None;
        for (index, response) in answers.iter().enumerate() {
            self.delivery.attempts.fetch_add(1, Relaxed);
            self.context.counts.push_attempts.fetch_add(1, Relaxed);
            if matches!(response.status, 200..300) {
                self.delivery.delivered.fetch_add(1, Relaxed);
                self.context.counts.push_delivered.fetch_add(1, Relaxed);
                continue;
            }
            self.delivery.failures.fetch_add(1, Relaxed);
            self.context.counts.push_failures.fetch_add(1, Relaxed);
            let error = PushError::Status(*response);
            failed.push((first + index, error.to_string()));
            if error.outcome() != bodkin_broker::Outcome::Refused {
                trouble = Some(error);
            }
        }
        trouble
    }
}

/// How many of the events may be in flight together.
fn in_flight(events: &[PushEvent]) -> usize {
    let mut bytes = 0;
    let fits = |event: &&PushEvent| {
        bytes += event.json.len();
        bytes <= IN_FLIGHT_BYTES_MAX
    };
    events.iter().take(IN_FLIGHT_MAX).take_while(fits).count().max(1)
}
