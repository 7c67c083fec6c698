//! `/api/v1/subscriptions`: how the delivery to each pushed subscription goes; pause and resume.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bodkin_arrowhead::{
    record::{Subscription, SubscriptionId},
    snapshot::Snapshot,
    utc::UtcTime,
};
use serde::Serialize;

use super::{Api, BASE, list, not_stored};
use crate::{answer::Answer, push::delivery::Delivery, request::Request};

/// A delivery as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryView {
    id: SubscriptionId,
    event_type: String,
    subscriber: Option<SubscriberView>,
    notify_uri: Arc<str>,
    state: &'static str,
    delivered: u64,
    attempts: u64,
    failures: u64,
    lost: u64,
    late: u64,
    dead_letters: u64,
    behind: Option<u64>,
    consecutive_failures: u32,
    last_success_at: Option<UtcTime>,
    last_failure_at: Option<UtcTime>,
    last_error: Option<String>,
    next_attempt_at: Option<UtcTime>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriberView {
    id: i64,
    system_name: String,
    address: String,
    port: u16,
}

impl Api {
    /// Answers a request at or below `subscriptions`; that method and path fit was seen before.
    pub(super) async fn subscriptions(&self, request: &Request) -> Answer {
        let mut parts = request.path.strip_prefix(BASE).unwrap_or_default().split('/').skip(1);
        let Some(id) = parts.next() else { return self.list_deliveries() };
        let Ok(id) = id.parse().map(SubscriptionId) else {
            return Answer::problem(400, &format!("Expected the number of a subscription, and got '{id}'."));
        };
        match parts.next() {
            Some("pause") => self.pause(id, true).await,
            Some(_) => self.pause(id, false).await,
            None => self.show_delivery(id),
        }
    }

    fn list_deliveries(&self) -> Answer {
        let snapshot = self.store.snapshot();
        let data: Vec<DeliveryView> = snapshot.subscriptions().values().map(|row| self.view(&snapshot, row)).collect();
        list(&data, data.len() as u64)
    }

    fn show_delivery(&self, id: SubscriptionId) -> Answer {
        let snapshot = self.store.snapshot();
        match snapshot.subscriptions().get(&id) {
            Some(subscription) => Answer::json(200, &self.view(&snapshot, subscription)),
            None => no_subscription(id),
        }
    }

    async fn pause(&self, id: SubscriptionId, paused: bool) -> Answer {
        match self.push.deliveries.pause(id, paused, &self.store).await {
            Ok(true) => self.show_delivery(id),
            Ok(false) => no_subscription(id),
            Err(error) => not_stored(&error),
        }
    }

    fn view(&self, snapshot: &Snapshot, subscription: &Subscription) -> DeliveryView {
        // A subscription that was just made may have none yet.
        let delivery: Arc<Delivery> = self.push.deliveries.get(subscription.id).unwrap_or_default();
        let trouble = delivery.last_trouble();
        let subscriber = snapshot.system(subscription.subscriber).map(|system| SubscriberView {
            id: system.id.0,
            system_name: system.system_name.as_str().into(),
            address: system.address.as_str().into(),
            port: system.port,
        });
        let event_type = snapshot.event_type(subscription.event_type);
        DeliveryView {
            id: subscription.id,
            event_type: event_type.map(|row| row.event_type_name.as_str().to_owned()).unwrap_or_default(),
            subscriber,
            notify_uri: subscription.notify_uri.clone(),
            state: delivery.state().name(),
            delivered: delivery.delivered.load(Relaxed),
            attempts: delivery.attempts.load(Relaxed),
            failures: delivery.failures.load(Relaxed),
            lost: delivery.lost.load(Relaxed),
            late: delivery.late.load(Relaxed),
            dead_letters: delivery.dead_letters(),
            behind: delivery.behind(self.log.as_ref().map(|log| log.end())),
            consecutive_failures: delivery.consecutive_failures(),
            last_success_at: delivery.last_success(),
            last_failure_at: trouble.at,
            last_error: trouble.error,
            next_attempt_at: trouble.next_attempt,
        }
    }
}

/// 404 for a subscription that is not there.
pub(super) fn no_subscription(id: SubscriptionId) -> Answer {
    Answer::problem(404, &format!("Subscription {id} does not exist."))
}
