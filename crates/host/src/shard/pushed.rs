//! The subscriptions that are served by push: kept as the snapshot has them, each with a task of its own.

use std::sync::Arc;

use bodkin_arrowhead::{
    record::{Subscription, SubscriptionId},
    snapshot::Snapshot,
};
use bodkin_broker::{Input, SubscriptionKey};
use imbl::ordmap::DiffItem;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Receiver, Shard};
use crate::push;

/// A subscription that is served.
pub struct Pushed {
    key: SubscriptionKey,
    task: JoinHandle<()>,
}

impl Shard {
    /// Brings the pushed subscriptions up to the snapshot's; costs what has changed.
    pub(super) fn sync(&mut self, snapshot: &Snapshot) {
        if self.known.ptr_eq(snapshot.subscriptions()) {
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
            let former = self.pushed.remove(&id).map(|pushed| {
                self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription: pushed.key }, &mut self.outputs);
                pushed.task
            });
            if let Some(subscription) = new {
                self.start_push(snapshot, subscription, former);
            }
        }
        self.count_subscriptions();
    }

    /// Starts a task for a subscription. It begins when the former one has ended, so that events stay in order.
    fn start_push(&mut self, snapshot: &Snapshot, subscription: Arc<Subscription>, former: Option<JoinHandle<()>>) {
        let id = subscription.id;
        let topic = snapshot.event_type(subscription.event_type).expect("a subscription's event type is there");
        let (queue, events) = mpsc::unbounded_channel();
        let receiver = Receiver::Push { subscription: subscription.clone(), queue };
        match self.broker.subscribe(topic.event_type_name.as_str(), receiver) {
            Ok(key) => {
                let task = self.context.runtime.spawn(push::deliver(key, subscription, events, former, self.context.push.clone()));
                self.pushed.insert(id, Pushed { key, task });
            }
            // More than the limit are there only if it was lowered below what the database holds.
            Err(error) => {
                tracing::error!(?error, subscription = %id, "a subscription is not served: raise subscriptions_max and start again")
            }
        }
    }
}
