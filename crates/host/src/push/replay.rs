//! A replay of dead letters: they are posted in their order, until the subscriber fails or nothing is left.

use std::{
    io,
    sync::{Arc, atomic::Ordering::*},
    time::{Duration, Instant},
};

use bodkin_arrowhead::record::{Subscription, SubscriptionId};
use bodkin_broker::Outcome;
use bodkin_store::{
    Draft, StoreError,
    delivery::{DeadLetters, RowReplayed},
};
use serde::Serialize;

use super::{
    PushContext, TOO_MANY_DEAD_LETTERS,
    backlog::BacklogSource,
    dead_letters::{Chunk, DeadLetterReader, read_chunk},
    delivery::Delivery,
    link::{Link, PushError, PushEvent, Target, refused},
    posted::{Posted, Streak},
    response::Response,
};

/// Rows of dead letters read from the database at once.
const ROWS: u64 = 1000;
/// How often at least the database is told what was replayed: that much comes again after a kill.
const NOTE_PERIOD: Duration = Duration::from_secs(1);
/// Events in flight on a connection that has proved able and quick.
const IN_FLIGHT_MAX: usize = 64;
/// Time for the answers to what is in flight in which a subscriber is quick: more may be in flight then, else less.
const QUICK: Duration = Duration::from_millis(100);
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
    /// Those of them whose events are in the event log of the other node of a pair, which delivers them again when it leads.
    pub elsewhere: u64,
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
    // One that has just begun, or just ended, has no letters.
    let Some(delivery) = context.deliveries.get(id) else { return Ok(Replayed::default()) };
    if *delivery.paused.borrow() {
        return Err(ReplayError::Paused(id));
    }
    if delivery.is_replaying.swap(true, AcqRel) {
        return Err(ReplayError::Busy(id));
    }
    let (link, reader, done) = (Link::default(), DeadLetterReader::default(), Replayed::default());
    let mut replay = Replay { subscription, context, source, delivery, link, reader, in_flight_max: 1, removals: 0, streak: None, done };
    let ended = replay.run().await;
    replay.delivery.is_replaying.store(false, Release);
    ended?;
    let log = replay.source.log.identity();
    let count = move |draft: &mut Draft<'_>| Ok((draft.dead_letter_count(Some(id))?, draft.dead_letters_elsewhere(id, log)?));
    let (remaining, elsewhere) = replay.context.store.write(count, |_, counted| counted).await?;
    Ok(Replayed { remaining, elsewhere, ..replay.done })
}

struct Replay {
    subscription: Arc<Subscription>,
    context: PushContext,
    source: BacklogSource,
    delivery: Arc<Delivery>,
    link: Link,
    reader: DeadLetterReader,
    /// Events that may be in flight, as the subscriber's last answers say.
    in_flight_max: usize,
    /// How often letters had been removed when the rows were read.
    removals: u64,
    /// Refusals in front of what is posted next.
    streak: Option<Streak>,
    done: Replayed,
}

impl Replay {
    async fn run(&mut self) -> Result<(), ReplayError> {
        let id = self.subscription.id;
        // What fails once more is younger, and not tried for ever.
        let newest = self.context.store.write(move |draft| draft.newest_dead_letters(id), |_, newest| newest).await?;
        let Some(newest) = newest else { return Ok(()) };
        while self.take_subscription() {
            // In front of the rows: letters that are removed from now on are noticed.
            self.removals = self.delivery.removals.load(Acquire);
            let log = self.source.log.identity();
            let read = move |draft: &mut Draft<'_>| draft.first_dead_letters(id, log, newest, ROWS);
            let rows = self.context.store.write(read, |_, rows| rows).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let mut rows = Arc::new(rows);
            while !rows.is_empty() && self.holds() {
                let (left, is_taken) = self.stretch(&rows).await?;
                if !is_taken {
                    return Ok(());
                }
                rows = Arc::new(left);
            }
        }
        Ok(())
    }

    /// Takes the subscription as it is now; false if there is nothing to be sent for it any more, or not now.
    fn take_subscription(&mut self) -> bool {
        let now = self.context.store.snapshot().subscriptions().get(&self.subscription.id).cloned();
        match now {
            Some(now) if self.subscription.is_continued_by(&now) => {
                self.subscription = now;
                !self.is_held_back()
            }
            _ => false,
        }
    }

    /// Whether what was read may still be sent as it was read: the subscription is the same, none of its letters was removed, and
    /// the operator does not hold it back. Asked in front of everything that is sent, for a range may have millions of letters.
    fn holds(&self) -> bool {
        let snapshot = self.context.store.snapshot();
        let now = snapshot.subscriptions().get(&self.subscription.id);
        now.is_some_and(|now| Arc::ptr_eq(now, &self.subscription))
            && self.delivery.removals.load(Acquire) == self.removals
            && !self.is_held_back()
    }

    /// Whether nothing is to be sent now: by the operator's word, or because Bodkin stops.
    fn is_held_back(&self) -> bool {
        *self.delivery.paused.borrow() || self.context.deliveries.is_ending()
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
        let posted = self.post(&chunk.events).await;
        let left = self.note(rows, &chunk, &posted).await?;
        Ok((left, posted.trouble.is_none()))
    }

    /// Notes what was posted; gives what is left of the rows.
    async fn note(&mut self, rows: &[DeadLetters], chunk: &Chunk, posted: &Posted) -> Result<Vec<DeadLetters>, ReplayError> {
        let (mut left, mut done, mut lost) = (Vec::new(), Vec::new(), posted.passed_over);
        for (index, (row, next)) in rows.iter().zip(&chunk.next).enumerate() {
            let mine = chunk.of_row(index);
            let sent = mine.len().min(posted.done.saturating_sub(mine.start));
            // An event that was not sent is where the row goes on.
            let unsent = chunk.events[mine].get(sent).and_then(|event| event.position);
            let next = unsent.unwrap_or(*next);
            let is_left = next <= row.last;
            // What a row promised and the log does not keep any more goes with the row.
            let events = if is_left { sent as u64 } else { row.events };
            lost += events.saturating_sub(sent as u64);
            done.push(RowReplayed { id: row.id, next, events });
            if is_left {
                left.push(DeadLetters { first: next, events: row.events.saturating_sub(events).max(1), ..row.clone() });
            }
        }
        left.extend_from_slice(&rows[chunk.next.len()..]);
        let refused = posted.refused_again(rows, chunk, self.streak.as_ref());
        let (id, rows_max) = (self.subscription.id, self.context.dead_letters_max);
        let note = move |draft: &mut Draft<'_>| draft.note_replayed(id, &done, &refused, rows_max);
        let noted = self.context.store.write(note, |_, noted| noted).await?;
        self.streak = noted.refused_to.and_then(|row| posted.streak(rows, chunk, row));
        self.delivery.count_dead_letters(-noted.fewer);
        self.context.forget_dead_letters(&noted.surplus, TOO_MANY_DEAD_LETTERS);
        self.delivery.lost.fetch_add(lost, Relaxed);
        self.context.counts.lost.fetch_add(lost, Relaxed);
        self.done.replayed += posted.taken();
        self.done.failed += posted.refused.len() as u64 + u64::from(posted.trouble.is_some() && posted.done < chunk.events.len());
        Ok(left)
    }

    /// Posts events in their order until something ends it or it is time to note them, several in flight where the connection has
    /// proved able and quick.
    async fn post(&mut self, events: &[PushEvent]) -> Posted {
        let (mut posted, mut answers, begun) = (Posted::default(), Vec::new(), Instant::now());
        while posted.done < events.len() && posted.trouble.is_none() && begun.elapsed() < NOTE_PERIOD && self.holds() {
            let rest = &events[posted.done..];
            let sent = rest.iter().take(self.in_flight_max).take_while(|event| self.context.may_be_sent(&self.subscription, event)).count();
            if sent == 0 {
                posted.done += 1;
                posted.passed_over += 1;
                continue;
            }
            let Some(subscriber) = self.context.store.snapshot().system(self.subscription.subscriber).cloned() else {
                posted.trouble = Some(PushError::Gone);
                break;
            };
            let target = self.context.target(&subscriber, &self.subscription);
            let sent = if self.link.is_proved() { in_flight(&rest[..sent]) } else { 1 };
            answers.clear();
            tokio::time::sleep(self.link.pause()).await;
            let sent_at = Instant::now();
            let ended = self.link.post_all(&target, &rest[..sent], &mut answers).await;
            let fitting = if sent_at.elapsed() < QUICK { self.in_flight_max * 2 } else { self.in_flight_max / 2 };
            self.in_flight_max = fitting.clamp(1, IN_FLIGHT_MAX);
            self.take_answers(&target, &answers, &mut posted);
            posted.trouble = ended.err().or(posted.trouble);
        }
        posted
    }

    /// Counts answers; the last that says that the subscriber cannot take any event is the trouble.
    fn take_answers(&self, target: &Target<'_>, answers: &[Response], posted: &mut Posted) {
        for response in answers {
            self.delivery.attempts.fetch_add(1, Relaxed);
            self.context.counts.push_attempts.fetch_add(1, Relaxed);
            if matches!(response.status, 200..300) {
                self.delivery.delivered.fetch_add(1, Relaxed);
                self.context.counts.push_delivered.fetch_add(1, Relaxed);
            } else {
                self.delivery.failures.fetch_add(1, Relaxed);
                self.context.counts.push_failures.fetch_add(1, Relaxed);
                let error = refused(*response, target);
                posted.refused.push((posted.done, error.to_string()));
                if error.outcome() != Outcome::Refused {
                    posted.trouble = Some(error);
                }
            }
            posted.done += 1;
        }
    }
}

/// How many of the events may be in flight together.
fn in_flight(events: &[PushEvent]) -> usize {
    let mut bytes = 0;
    let fits = |event: &&PushEvent| {
        bytes += event.json.len();
        bytes <= IN_FLIGHT_BYTES_MAX
    };
    events.iter().take_while(fits).count().max(1)
}
