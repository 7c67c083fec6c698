//! The task of a pushed subscription: it delivers in order, from its queue while it is live, from the event log while it is
//! behind, and waits while the subscriber fails or the operator says so.

mod dead_letters;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use bodkin_arrowhead::record::Subscription;
use bodkin_broker::{Circuit, Delivery as Attempts, Instant, Outcome, SubscriptionKey, Verdict};
use bodkin_store::event_log::{Position, RecordName};
use tokio::{
    select,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{Duration, sleep},
};

use super::{
    PushContext,
    backlog::{Backlog, Found},
    delivery::{Delivery, Trouble},
    link::{Link, PushError, PushEvent},
};
use crate::{control::now, inbox::Message, pair::Leadership};

/// How long an event log that cannot be read, or a database that takes no dead letter, is left alone.
const REPAIR_WAIT: Duration = Duration::from_secs(1);

/// How long a node of a pair whose lease is over waits before it asks again whether it leads.
const LEASE_WAIT: Duration = Duration::from_millis(50);

/// What the shard has for a task.
#[derive(Debug)]
pub enum Queued {
    /// An event.
    Event(PushEvent),
    /// Nothing more comes until the task has caught up: it goes on in the event log, from here at the latest.
    Behind(Position),
    /// The task has caught up: what follows is live.
    Live,
    /// The task has not caught up: too much was accepted meanwhile.
    ReadOn,
}

/// What a task is given.
pub struct Seat {
    /// The subscription's name in the broker.
    pub key: SubscriptionKey,
    /// What is wanted, and where it goes.
    pub subscription: Arc<Subscription>,
    /// What is known of its delivery.
    pub delivery: Arc<Delivery>,
    /// From the shard.
    pub queue: mpsc::UnboundedReceiver<Queued>,
    /// Ends the task.
    pub ended: oneshot::Receiver<()>,
    /// Whether the shard hands events over from the beginning.
    pub is_live: bool,
}

/// Delivers until the subscription is gone; begins when the former task of the subscription has ended.
pub async fn deliver(seat: Seat, former: Option<JoinHandle<()>>, context: PushContext) {
    if let Some(former) = former {
        // It finishes the event it is posting; how it ended does not matter.
        let _ = former.await;
    }
    let mut pusher = Pusher {
        link: Link::default(),
        attempts: Attempts::new(context.policy),
        paused: seat.delivery.paused.subscribe(),
        place: if seat.is_live { Place::Live } else { Place::Behind(None) },
        seat,
        context,
    };
    while let Some(head) = pusher.next().await {
        if pusher.settle(head).await.is_none() {
            break;
        }
    }
    pusher.leave();
}

enum Place {
    /// Events come from the queue.
    Live,
    /// Events come from the log; the backlog is opened when it is needed.
    Behind(Option<Backlog>),
}

/// The event that is being delivered.
struct Head {
    event: PushEvent,
    /// Whether the broker's account of the queue has it.
    is_queued: bool,
}

struct Pusher {
    seat: Seat,
    context: PushContext,
    link: Link,
    attempts: Attempts,
    paused: watch::Receiver<bool>,
    place: Place,
}

impl Pusher {
    /// The next event to deliver, when there is one; `None` when the subscription has ended.
    async fn next(&mut self) -> Option<Head> {
        while !self.seat.queue.is_closed() {
            let (is_paused, is_live) = (*self.paused.borrow_and_update(), matches!(self.place, Place::Live));
            if is_paused || (is_live && self.seat.queue.is_empty()) {
                self.attempts.rest();
            }
            if is_paused && is_live && self.context.backlog.is_some() {
                self.leave_present(None).await?;
            } else if is_paused {
                self.wait(None).await?;
            } else if is_live {
                select! {
                    queued = self.seat.queue.recv() => match queued? {
                        Queued::Event(event) => return Some(self.begin(event)),
                        Queued::Behind(from) => self.fall_behind(from),
                        Queued::Live | Queued::ReadOn => unreachable!("only who is behind asks"),
                    },
                    _ = self.paused.changed() => {}
                }
            } else if self.context.deliveries.is_ending() {
                return None;
            } else if let Some(event) = self.read_on().await? {
                return Some(Head { event, is_queued: false });
            }
        }
        None
    }

    /// Takes an event from the queue: what lies in front of it was not for this subscription, or is done with.
    fn begin(&self, event: PushEvent) -> Head {
        if let Some(position) = event.position {
            self.seat.delivery.move_to(position);
        }
        Head { event, is_queued: true }
    }

    fn fall_behind(&mut self, from: Position) {
        self.seat.delivery.move_to(from);
        self.place = Place::Behind(None);
    }

    /// Asks the shard to hand nothing over, and drops what it has: the log has it. `head` is in hand and not done with. Who is behind
    /// has left it already.
    async fn leave_present(&mut self, head: Option<&mut Head>) -> Option<()> {
        if matches!(self.place, Place::Behind(_)) {
            return Some(());
        }
        self.context.inbox.post(Message::FallBehind { subscription: self.seat.key });
        let mut first = head.as_ref().and_then(|head| head.event.position);
        if let Some(head) = head {
            self.release_head(head);
        }
        loop {
            match self.seat.queue.recv().await? {
                Queued::Event(event) => {
                    first = first.or(event.position);
                    self.release(&event);
                }
                Queued::Behind(from) => {
                    self.fall_behind(first.unwrap_or(from));
                    return Some(());
                }
                Queued::Live | Queued::ReadOn => {}
            }
        }
    }

    /// Looks into the log once; at its end asks the shard to go live.
    async fn read_on(&mut self) -> Option<Option<PushEvent>> {
        let source = self.context.backlog.clone().expect("who is behind has a log to read");
        let (delivery, Place::Behind(backlog)) = (&self.seat.delivery, &mut self.place) else { return Some(None) };
        let cursor = delivery.cursor().unwrap_or_else(|| source.log.end());
        let backlog = backlog.get_or_insert_with(|| Backlog::at(cursor));
        let found = backlog.next(&self.seat.subscription, &source).await;
        let missing = backlog.take_missing();
        self.count_missing(missing);
        match found {
            Ok(Found::Event(event)) => {
                // What is missing in front of it is counted, and not once more if a pause comes before it is settled.
                delivery.move_to(event.position.unwrap_or(cursor));
                return Some(Some(event));
            }
            Ok(Found::Nothing(next)) => delivery.move_to(next),
            Ok(Found::End(next)) => {
                delivery.move_to(next);
                self.context.inbox.post(Message::CaughtUp { subscription: self.seat.key, from: next });
                match self.seat.queue.recv().await? {
                    Queued::Live => self.place = Place::Live,
                    Queued::ReadOn => {}
                    Queued::Event(_) | Queued::Behind(_) => unreachable!("the shard hands nothing to who is behind"),
                }
            }
            Err(error) => {
                tracing::error!(%error, subscription = %self.seat.subscription.id, "the event log cannot be read; a delivery waits");
                self.wait(Some(REPAIR_WAIT)).await?;
            }
        }
        Some(None)
    }

    /// Counts records of all types that the log did not hold any more when this subscription came to them.
    fn count_missing(&self, events: u64) {
        if events > 0 {
            self.seat.delivery.lost.fetch_add(events, Relaxed);
            self.context.counts.lost.fetch_add(events, Relaxed);
            tracing::warn!(subscription = %self.seat.subscription.id, events,
                "events were not in the log any more when a pushed subscription came to them; so many of all types are gone");
        }
    }

    /// Waits for a time, or for the operator's word; `None` when the subscription has ended.
    async fn wait(&mut self, duration: Option<Duration>) -> Option<()> {
        let patience = async {
            match duration {
                Some(duration) => sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        select! {
            () = patience => Some(()),
            _ = self.paused.changed() => Some(()),
            _ = &mut self.seat.ended => None,
        }
    }

    /// Delivers an event, or gives it up, or leaves it to the log because of a pause; `None` when the subscription has ended.
    async fn settle(&mut self, mut head: Head) -> Option<()> {
        self.attempts.begin_event();
        let settled = self.try_settle(&mut head).await;
        self.release_head(&mut head);
        settled
    }

    async fn try_settle(&mut self, head: &mut Head) -> Option<()> {
        loop {
            if !self.heed_pause(head).await? {
                return Some(());
            }
            if !Leadership::may_act(self.context.leadership.as_deref()) {
                self.wait(Some(LEASE_WAIT)).await?;
                continue;
            }
            // Asked in front of every attempt: an event may wait for days.
            if !self.context.may_be_sent(&self.seat.subscription, &head.event) {
                self.seat.delivery.passed_over();
                break;
            }
            let pause = self.link.pause();
            if !pause.is_zero() {
                self.wait(Some(pause)).await?;
                continue;
            }
            let error = self.attempt(&head.event).await.err();
            let outcome = error.as_ref().map_or(Outcome::Taken, PushError::outcome);
            let (failures, attempts, at) = (self.attempts.failures(), self.attempts.attempts() + 1, self.clock());
            let verdict = self.attempts.step(at, outcome, jitter());
            self.tell(error.as_ref(), failures, at, verdict);
            let reason = || error.as_ref().map_or_else(String::new, PushError::to_string);
            match verdict {
                Verdict::Next => break,
                Verdict::Dead { at } => {
                    self.bury(&head.event, attempts, reason()).await?;
                    self.finish(head);
                    return self.leave_alone(at).await;
                }
                Verdict::Retry { at } => self.hold(head, at).await?,
                Verdict::GiveUp { at } => {
                    self.give_up(head, reason()).await?;
                    self.hold(head, at).await?;
                }
            }
        }
        self.finish(head);
        Some(())
    }

    /// Is done with an event.
    fn finish(&mut self, head: &mut Head) {
        if let Some(position) = head.event.position {
            self.seat.delivery.finish(position, RecordName { time_ns: head.event.accepted_ns, id: head.event.id });
        }
        self.release_head(head);
    }

    /// Leaves what waits to the log if the circuit is open, so that it costs no more than the event at the head.
    async fn leave_if_open(&mut self, head: Option<&mut Head>) -> Option<()> {
        if self.context.backlog.is_some() && self.attempts.circuit() == Circuit::Open {
            self.leave_present(head).await?;
            self.place = Place::Behind(None);
        }
        Some(())
    }

    /// Waits until the event behind one that is done with may be tried, or for the operator's word.
    async fn leave_alone(&mut self, until: Instant) -> Option<()> {
        let duration = until.since(self.clock());
        if duration.is_zero() {
            return Some(());
        }
        self.leave_if_open(None).await?;
        self.wait(Some(duration)).await
    }

    /// Waits until an event may be tried again, or for the operator's word.
    async fn hold(&mut self, head: &mut Head, until: Instant) -> Option<()> {
        self.leave_if_open(Some(head)).await?;
        self.wait(Some(until.since(self.clock()))).await
    }

    /// Tries nothing while the operator holds events back; false if the event was left to the log because of that. It may have come
    /// out of the queue, or the log, at the time of the pause.
    async fn heed_pause(&mut self, head: &mut Head) -> Option<bool> {
        while *self.paused.borrow_and_update() {
            if self.context.backlog.is_some() {
                self.leave_present(Some(head)).await?;
                self.place = Place::Behind(None);
                return Some(false);
            }
            self.attempts.rest();
            self.wait(None).await?;
        }
        Some(true)
    }

    async fn attempt(&mut self, event: &PushEvent) -> Result<(), PushError> {
        self.seat.delivery.attempts.fetch_add(1, Relaxed);
        self.context.counts.push_attempts.fetch_add(1, Relaxed);
        // Looked up for each event: a system may have registered anew without its public key.
        let subscriber = self.context.store.snapshot().system(self.seat.subscription.subscriber).cloned();
        let subscriber = subscriber.ok_or(PushError::Gone)?;
        let patience = self.context.timeout;
        let target = self.context.target(&subscriber, &self.seat.subscription);
        match tokio::time::timeout(patience, self.link.post(&target, event)).await {
            Ok(taken) => {
                if taken.is_ok() {
                    self.hold_against_deadline(event);
                }
                taken
            }
            Err(_) => {
                self.link.close();
                Err(PushError::Late(patience))
            }
        }
    }

    /// Counts an event that another cloud has taken later than its share says.
    fn hold_against_deadline(&self, event: &PushEvent) {
        let Some(share) = &self.seat.subscription.share else { return };
        let took = Duration::from_nanos(now().unix_nanos().saturating_sub(event.accepted_ns));
        if took > Duration::from_millis(share.deadline_ms.into()) {
            self.seat.delivery.late.fetch_add(1, Relaxed);
            self.context.counts.shared_late.fetch_add(1, Relaxed);
        }
    }

    /// Counts an attempt's outcome, and logs the first failure of a row and its end.
    fn tell(&self, error: Option<&PushError>, failures_before: u32, at: Instant, verdict: Verdict) {
        let (delivery, subscription) = (&self.seat.delivery, self.seat.subscription.id);
        let Some(error) = error else {
            delivery.succeeded(now());
            self.context.counts.push_delivered.fetch_add(1, Relaxed);
            if failures_before > 0 {
                tracing::info!(%subscription, failures = failures_before, "a subscriber takes pushed events again");
            }
            return;
        };
        self.context.counts.push_failures.fetch_add(1, Relaxed);
        let next_attempt = match verdict {
            Verdict::Retry { at: next } | Verdict::GiveUp { at: next } => Some(now().plus(next.since(at))),
            Verdict::Dead { at: next } => Some(next.since(at)).filter(|wait| !wait.is_zero()).map(|wait| now().plus(wait)),
            Verdict::Next => None,
        };
        let trouble = Trouble { at: Some(now()), error: Some(error.to_string()), next_attempt };
        delivery.failed(self.attempts.failures(), self.attempts.circuit(), trouble);
        if failures_before == 0 {
            tracing::warn!(%subscription, uri = %self.seat.subscription.notify_uri, %error,
                "a pushed event was not taken and is tried again; further failures are only counted");
        }
    }

    /// The event at the head has left the queue, if it was there.
    fn release_head(&self, head: &mut Head) {
        if std::mem::take(&mut head.is_queued) {
            self.release(&head.event);
        }
    }

    /// An event has left the queue.
    fn release(&self, event: &PushEvent) {
        self.seat.delivery.queued.fetch_sub(1, Relaxed);
        let bytes = event.json.len() as u64;
        self.context.inbox.post(Message::Sent { subscription: self.seat.key, bytes });
    }

    /// Gives back what is still queued: the log has it, for who replaces the subscription. Without a log it is lost.
    fn leave(&mut self) {
        let mut lost = 0;
        while let Ok(queued) = self.seat.queue.try_recv() {
            if let Queued::Event(event) = queued {
                self.release(&event);
                lost += u64::from(event.position.is_none());
            }
        }
        self.context.counts.push_failures.fetch_add(lost, Relaxed);
    }

    fn clock(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.context.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Any number, each as likely: the standard library's hashers begin with one.
fn jitter() -> u64 {
    RandomState::new().hash_one(0)
}
