//! What becomes of events that a subscriber does not take: dead letters, which the operator may have delivered again.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_store::{delivery::DeadLetters, event_log::Position};

use super::{Head, Place, Pusher, REPAIR_WAIT};
use crate::push::{
    TOO_MANY_DEAD_LETTERS,
    backlog::{Backlog, Found},
    link::PushEvent,
};

impl Pusher {
    /// Makes an event a dead letter. Without a log there is nothing to keep it in, and it is lost.
    pub(super) async fn bury(&mut self, event: &PushEvent, attempts: u32, reason: String) -> Option<()> {
        let Some(position) = event.position else {
            self.seat.delivery.lost.fetch_add(1, Relaxed);
            self.context.counts.lost.fetch_add(1, Relaxed);
            tracing::warn!(subscription = %self.seat.subscription.id, reason, "a pushed event is lost: there is no event log to keep it in");
            return Some(());
        };
        self.add_dead_letters(DeadLetters {
            id: 0,
            subscription: self.seat.subscription.id,
            log: self.context.log_of_pair,
            first: position,
            last: position,
            is_range: false,
            events: 1,
            attempts,
            reason,
            died_at: 0,
        })
        .await
    }

    /// Makes everything that waits a dead letter but the newest event, which becomes the head.
    pub(super) async fn give_up(&mut self, head: &mut Head, reason: String) -> Option<()> {
        let (Some(source), Some(first)) = (self.context.backlog.clone(), head.event.position) else { return Some(()) };
        self.leave_present(Some(head)).await?;
        let (mut backlog, mut missing) = (Backlog::at(first), 0);
        let (mut oldest, mut events, mut newest) = (None, 0, None);
        loop {
            match backlog.next(&self.seat.subscription, &source).await {
                Ok(Found::Event(event)) => {
                    // The log may not keep even the event at the head any more.
                    missing += backlog.take_missing();
                    events += u64::from(newest.is_some());
                    oldest = oldest.or(event.position);
                    newest = Some(event);
                }
                Ok(Found::Nothing(_)) if self.seat.queue.is_closed() => return None,
                Ok(Found::Nothing(_)) => {}
                Ok(Found::End(_)) => break,
                Err(error) => {
                    tracing::error!(%error, subscription = %self.seat.subscription.id, "the event log cannot be read; a backlog is kept");
                    return Some(());
                }
            }
        }
        let last = newest.as_ref().and_then(|event: &PushEvent| event.position);
        let (Some(first), Some(last), Some(event), 1..) = (oldest, last, newest, events) else { return Some(()) };
        tracing::warn!(subscription = %self.seat.subscription.id, events, reason, "a subscriber failed too long; what waited for it is dead letters");
        self.add_dead_letters(DeadLetters {
            id: 0,
            subscription: self.seat.subscription.id,
            log: self.context.log_of_pair,
            first,
            last: Position(last.0 - 1),
            is_range: true,
            events,
            attempts: self.attempts.failures(),
            reason,
            died_at: 0,
        })
        .await?;
        self.count_missing(missing);
        self.seat.delivery.move_to(last);
        self.place = Place::Behind(None);
        *head = Head { event, is_queued: false };
        Some(())
    }

    /// Adds dead letters, as often as it takes: a database that is full must not cost an event.
    async fn add_dead_letters(&mut self, letters: DeadLetters) -> Option<()> {
        let (events, rows_max) = (letters.events, self.context.dead_letters_max);
        loop {
            let (whose, added) = (self.seat.subscription.clone(), letters.clone());
            match self.context.store.write(move |draft| draft.add_dead_letters(&whose, &added, rows_max), |_, gone| gone).await {
                Ok(gone) => {
                    self.seat.delivery.count_dead_letters(i64::try_from(events).unwrap_or(i64::MAX));
                    self.context.counts.dead_letters.fetch_add(events, Relaxed);
                    self.context.forget_dead_letters(&gone, TOO_MANY_DEAD_LETTERS);
                    return Some(());
                }
                Err(error) => {
                    tracing::error!(%error, "a dead letter could not be kept; it is tried again");
                    self.wait(Some(REPAIR_WAIT)).await?;
                }
            }
        }
    }
}
