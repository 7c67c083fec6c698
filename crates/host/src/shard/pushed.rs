//! The subscriptions that are served by push: kept as the snapshot has them, each with a task of its own that is live or behind.

use std::sync::Arc;

use bodkin_arrowhead::{
    event_handler,
    record::{Subscription, SubscriptionId},
    snapshot::Snapshot,
};
use bodkin_broker::{Input, Overflow, SubscriptionKey};
use bodkin_store::event_log::{EventLog, Position, Record};
use imbl::ordmap::DiffItem;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{Receiver, Shard, publish::push};
use crate::{
    push::{
        backlog::push_event,
        delivery::Delivery,
        task::{self, Queued, Seat},
    },
    replay::publication,
};

/// Records that a subscription may lack to be taken into the present; if it lacks more, it reads on. They are looked at
/// between two turns, so they are few.
const RECENT_RECORDS_MAX: u64 = 512;

/// A subscription that is served.
pub struct Pushed {
    key: SubscriptionKey,
    subscription: Arc<Subscription>,
    task: JoinHandle<()>,
    /// The task ends when it is dropped.
    _ends: oneshot::Sender<()>,
}

impl Pushed {
    /// Tells the task to end.
    pub fn end(self) -> JoinHandle<()> {
        self.task
    }
}

impl Shard {
    /// Serves the registered subscriptions from now on.
    pub(super) fn serve_pushed(&mut self) {
        self.is_serving = true;
        let snapshot = Arc::clone(&self.context.store.snapshot());
        self.sync(&snapshot);
    }

    /// Serves them no more; gives their tasks, which end with what they are posting.
    pub(super) fn end_pushed(&mut self) -> Vec<JoinHandle<()>> {
        if self.pushing_bytes > 0 {
            tracing::warn!(bytes = self.pushing_bytes, "the time to stop was over before these pushed events were taken");
        }
        self.is_serving = false;
        self.pushed.values().for_each(|pushed| self.leave_present(pushed.key));
        let end = |pushed: Pushed| {
            // Its queue is the broker's.
            self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription: pushed.key }, &mut self.outputs);
            pushed.end()
        };
        let tasks = std::mem::take(&mut self.pushed).into_values().map(end).collect();
        self.carry_out_now();
        tasks
    }

    /// Has the next start read the log from here on: what is accepted while the rest of the cloud stops is handed to nobody.
    fn leave_present(&self, subscription: SubscriptionKey) {
        let (Some(log), Some(Receiver::Push { delivery, .. })) = (&self.log, self.broker.receiver(subscription)) else { return };
        if delivery.is_at_present() {
            delivery.move_to(log.next_position());
        }
        delivery.set_live(false);
    }

    /// Brings the pushed subscriptions up to the snapshot's; costs what has changed.
    pub(super) fn sync(&mut self, snapshot: &Snapshot) {
        if !self.is_serving || self.known.ptr_eq(snapshot.subscriptions()) {
            return;
        }
        let before = std::mem::replace(&mut self.known, snapshot.subscriptions().clone());
        let changed: Vec<(SubscriptionId, Option<Arc<Subscription>>)> = before
            .diff(snapshot.subscriptions())
            .map(|change| match change {
                DiffItem::Add(id, new) | DiffItem::Update { new: (id, new), .. } => (*id, Some(new.clone())),
                DiffItem::Remove(id, _) => (*id, None),
            })
            .collect();
        for (id, new) in changed {
            let former = self.pushed.remove(&id);
            self.ask_for_pushed(snapshot, former.as_ref().map(|former| &*former.subscription), new.as_deref());
            if let Some(former) = &former {
                self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription: former.key }, &mut self.outputs);
            }
            match new {
                Some(subscription) => self.start_push(snapshot, subscription, former),
                None => self.context.push.deliveries.remove(id),
            }
        }
        self.context.push.deliveries.forget_ended(&self.context.store);
        self.count_subscriptions();
    }

    /// Starts a task for a subscription. It begins when the former one has ended, so that events stay in order, and goes on
    /// where that one was; to another subscriber or event type it begins at once, with the present.
    fn start_push(&mut self, snapshot: &Snapshot, subscription: Arc<Subscription>, former: Option<Pushed>) {
        let id = subscription.id;
        let topic = snapshot.event_type(subscription.event_type).expect("a subscription's event type is there");
        if self.is_new_to_links(topic.event_type_name.as_str()) {
            self.open_to_links(topic.event_type_name.as_str());
        }
        let deliveries = &self.context.push.deliveries;
        let goes_on = former.as_ref().is_none_or(|former| former.subscription.is_continued_by(&subscription));
        let delivery = if goes_on { deliveries.of(id) } else { deliveries.begin_anew(id) };
        let is_live = self.begin_place(&delivery);
        delivery.set_live(is_live);
        let (queue, events) = mpsc::unbounded_channel();
        let receiver = Receiver::Push { subscription: subscription.clone(), queue, delivery: delivery.clone() };
        let overflow = if self.log.is_some() { Overflow::FallsBehind } else { Overflow::Loses };
        match self.broker.subscribe(topic.event_type_name.as_str(), receiver, overflow) {
            Ok(key) => {
                if !is_live {
                    // The task knows it, so it is not told.
                    self.broker.step(self.clock.broker(), Input::FallBehind { subscription: key }, &mut Vec::new());
                }
                let (ends, ended) = oneshot::channel();
                let seat = Seat { key, subscription: subscription.clone(), delivery, queue: events, ended, is_live };
                let former = former.filter(|_| goes_on).map(|former| former.task);
                let task = self.context.runtime.spawn(task::deliver(seat, former, self.context.push.clone()));
                self.pushed.insert(id, Pushed { key, subscription, task, _ends: ends });
            }
            // More than the limit are there only if it was lowered below what the database holds.
            Err(error) => {
                tracing::error!(?error, subscription = %id, "a subscription is not served: raise subscriptions_max and start again")
            }
        }
    }

    /// Decides whether a delivery begins live: if it is new, or was at the present.
    fn begin_place(&self, delivery: &Delivery) -> bool {
        let Some(end) = self.log.as_ref().map(EventLog::next_position) else { return true };
        let is_behind = !delivery.is_at_present() && delivery.cursor().is_some_and(|cursor| cursor < end);
        if !is_behind {
            delivery.move_to(end);
        }
        !is_behind
    }

    /// Tells a task, behind what it was handed, to read the log from here on.
    pub(super) fn tell_behind(&mut self, subscription: SubscriptionKey, from: Position) {
        if let Some(Receiver::Push { queue, delivery, .. }) = self.broker.receiver(subscription) {
            delivery.set_live(false);
            // A task that has ended reads nothing.
            let _ = queue.send(Queued::Behind(from));
        }
    }

    /// Hands over what was accepted since a task has read the log, and all that follows; or lets it read on if that is too much.
    pub(super) fn caught_up(&mut self, key: SubscriptionKey, from: Position) {
        let Some(Receiver::Push { subscription, queue, delivery }) = self.broker.receiver(key) else { return };
        let log = self.log.as_ref().expect("who is behind has a log to read");
        let is_near = log.next_position().0.saturating_sub(from.0) <= RECENT_RECORDS_MAX;
        let Some(recent) = log.recent(from).filter(|_| is_near) else {
            // A task that has ended reads nothing.
            let _ = queue.send(Queued::ReadOn);
            return;
        };
        let _ = queue.send(Queued::Live);
        let snapshot = self.context.store.snapshot();
        let topic = snapshot.event_type(subscription.event_type).map(|topic| topic.event_type_name.clone());
        let mut bytes = 0;
        let is_pushed = |record: &Record<'_>| record.origin.is_none() && topic.as_ref().is_some_and(|topic| topic.as_str() == record.topic);
        for record in recent.filter(is_pushed) {
            let Some(event) = publication(&record) else { continue };
            if event_handler::hears(&snapshot, subscription, &event, &mut self.filter_text) {
                bytes += record.event.len() as u64;
                push(queue, delivery, push_event(&record));
            }
        }
        delivery.set_live(true);
        self.pushing_bytes += bytes;
        self.broker.step(self.clock.broker(), Input::CatchUp { subscription: key, bytes }, &mut self.outputs);
    }
}
