//! HTTP push: one task, one queue and one kept connection for each subscription, so that a dead or slow subscriber delays
//! nobody. What cannot be delivered now stays in the event log, and what cannot be delivered at all becomes a dead letter.

pub mod backlog;
pub mod checkpoint;
pub mod dead_letters;
pub mod delivery;
pub mod link;
pub mod lookup;
pub mod neighbor;
pub mod posted;
pub mod replay;
pub mod response;
pub mod task;
pub mod traced;
pub mod webhook;

use std::{
    sync::{Arc, atomic::Ordering::Release},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    common_name::CloudCommonName,
    record::{Subscription, SubscriptionId, System},
};
use bodkin_broker::DeliveryPolicy;
use bodkin_store::{Store, event_log::LogId};
use tokio::sync::mpsc;

use self::{
    backlog::BacklogSource,
    delivery::Deliveries,
    link::{PushEvent, Target},
    neighbor::Neighbor,
    task::Queued,
    webhook::Webhook,
};
use crate::{
    destination::Destinations, gatekeeper::Gatekeeper, inbox::Inbox, monitor::EventCounts, pair::Leadership, replay::source,
    security::Security, trace::Traces,
};

/// Events on their way to the subscription's task. The broker accounts for their bytes and offers no more than the
/// queue may hold, so the channel itself needs no limit.
pub type PushQueue = mpsc::UnboundedSender<Queued>;

/// Why the oldest dead letters went, as it is told.
pub const TOO_MANY_DEAD_LETTERS: &str = "the oldest dead letters had to go; raise dead_letters_max to keep more";

/// What every push task shares.
#[derive(Clone)]
pub struct PushContext {
    /// Where subscribers are looked up, and dead letters are kept.
    pub store: Store,
    /// Where deliveries are reported.
    pub inbox: Arc<Inbox>,
    /// What is counted.
    pub counts: Arc<EventCounts>,
    /// For a subscriber to take an event.
    pub timeout: Duration,
    /// How patient delivery is.
    pub policy: DeliveryPolicy,
    /// Rows of dead letters that are kept; beyond them the oldest go.
    pub dead_letters_max: usize,
    /// Where subscribers may be connected to.
    pub destinations: Destinations,
    /// What https is spoken with; `None` in insecure mode.
    pub security: Option<Arc<Security>>,
    /// Speaks with other clouds, to which events may go; `None` of a cloud that has no Gatekeeper.
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    /// Where who is behind reads; `None` where there is no event log.
    pub backlog: Option<BacklogSource>,
    /// This node's event log, as it is named in what the nodes of a pair share; `None` of a cloud by itself.
    pub log_of_pair: Option<LogId>,
    /// What is known of every delivery.
    pub deliveries: Arc<Deliveries>,
    /// When attempts' time began.
    pub started: Instant,
    /// Where spans of traces go; `None`: nowhere.
    pub traces: Option<Arc<Traces>>,
    /// Whether this node of a pair leads; `None` of a cloud by itself. Once its lease is over, another node may deliver the same events.
    pub leadership: Option<Arc<Leadership>>,
}

impl PushContext {
    /// Whether a subscriber may still be sent an event that was found for it: rules may have changed while it waited. What
    /// else a subscription asks for cannot, for a changed one has another task.
    pub fn may_be_sent(&self, subscription: &Subscription, event: &PushEvent) -> bool {
        source(event.id).is_some_and(|source| subscription.may_hear(&self.store.snapshot(), source))
    }

    /// Where a subscription's events go.
    pub fn target<'t>(&'t self, subscriber: &'t System, subscription: &'t Subscription) -> Target<'t> {
        let (notify_uri, security) = (&subscription.notify_uri, self.security.as_deref());
        let neighbor =
            subscription.share.as_ref().map(|share| Neighbor { share, store: &self.store, gatekeeper: self.gatekeeper.as_ref() });
        let webhook = subscription.content_mode().and_then(|mode| {
            let snapshot = self.store.snapshot();
            let own = snapshot.clouds().find(|cloud| cloud.own_cloud)?;
            Some(Webhook { mode, origin: CloudCommonName { cloud: own.name.clone(), operator: own.operator.clone() } })
        });
        Target {
            subscriber,
            notify_uri,
            destinations: &self.destinations,
            security,
            timeout: self.timeout,
            neighbor,
            webhook,
            traces: self.traces.as_deref(),
        }
    }

    /// Counts dead letters that are not kept any more; `told` says why in the log.
    pub fn forget_dead_letters(&self, gone: &[(SubscriptionId, u64)], told: &str) {
        let deliveries = self.deliveries.all();
        for (id, events) in gone {
            if let Some(delivery) = deliveries.get(id) {
                delivery.count_dead_letters(-i64::try_from(*events).unwrap_or(i64::MAX));
                delivery.removals.fetch_add(1, Release);
            }
        }
        if !gone.is_empty() {
            let events: u64 = gone.iter().map(|(_, events)| events).sum();
            tracing::warn!(events, "{told}");
        }
    }
}
