//! `/api/v1/dead-letters`: pushed events that were given up; list, replay, remove.

use std::{collections::BTreeMap, io, sync::Arc};

use bodkin_arrowhead::{
    record::{Subscription, SubscriptionId},
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_store::delivery::DeadLetters;
use serde::Serialize;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use super::{Api, list, not_stored, subscriptions::no_subscription};
use crate::{
    answer::Answer,
    push::{
        backlog::{BacklogSource, Hearing},
        dead_letters::DeadLetterReader,
        replay::{ReplayError, Replayed, replay},
    },
    request::{Method, Request},
};

/// Dead letters of a page unless the request says otherwise, and at the most.
const PAGE_EVENTS: u64 = 100;
const PAGE_EVENTS_MAX: u64 = 10_000;

/// A dead letter as it is told. What the event log does not keep any more is null, and so is in secure mode the payload of its event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LetterView {
    id: i64,
    subscription: SubscriptionId,
    event_id: Option<String>,
    event_type: Option<String>,
    published_at: Option<UtcTime>,
    attempts: u32,
    reason: String,
    died_at: UtcTime,
    event: Option<Box<RawValue>>,
    payload_withheld_bytes: Option<usize>,
}

impl Api {
    /// Answers a request at or below `dead-letters`; that method and path fit was seen before.
    pub(super) async fn dead_letters(&self, request: &Request) -> Answer {
        let subscription = match request.parameter("subscription").map(str::parse).transpose() {
            Ok(id) => id.map(SubscriptionId),
            Err(_) => return Answer::problem(400, "Expected the number of a subscription."),
        };
        if let Some(id) = subscription.filter(|id| !self.store.snapshot().subscriptions().contains_key(id)) {
            return no_subscription(id);
        }
        match request.method {
            Method::Post => self.replay_dead_letters(subscription).await,
            Method::Delete => self.remove_dead_letters(subscription).await,
            _ => self.list_dead_letters(request, subscription).await,
        }
    }

    async fn list_dead_letters(&self, request: &Request, subscription: Option<SubscriptionId>) -> Answer {
        let number = |name: &str, default: u64| request.parameter(name).map_or(Ok(default), str::parse);
        let (Ok(page), Ok(size)) = (number("page", 0), number("item_per_page", PAGE_EVENTS)) else {
            return Answer::problem(400, "Expected whole numbers as page and item_per_page.");
        };
        let size = size.clamp(1, PAGE_EVENTS_MAX);
        let read = move |draft: &mut bodkin_store::Draft<'_>| {
            let (rows, skipped) = draft.dead_letters(subscription, page.saturating_mul(size), size)?;
            Ok((rows, skipped, draft.dead_letter_count(subscription)?))
        };
        let (rows, skipped, count) = match self.store.write(read, |_, read| read).await {
            Ok(read) => read,
            Err(error) => return not_stored(&error),
        };
        let Some(source) = self.push.backlog.clone() else { return list(&[] as &[LetterView], 0) };
        let snapshot = Arc::clone(&self.store.snapshot());
        let shows_payloads = self.push.security.is_none();
        match source.read(move |source| read_page(&rows, skipped, size, shows_payloads, &snapshot, source)).await {
            Ok(letters) => list(&letters, count),
            Err(error) => Answer::problem(500, &format!("The event log cannot be read: {error}.")),
        }
    }

    async fn remove_dead_letters(&self, subscription: Option<SubscriptionId>) -> Answer {
        match self.store.write(move |draft| draft.remove_dead_letters(subscription), |_, gone| gone).await {
            Ok(gone) => {
                let removed: u64 = gone.iter().map(|(_, events)| events).sum();
                self.push.forget_dead_letters(&gone, "dead letters were removed by the operator");
                Answer::json(200, &json!({"removed": removed}))
            }
            Err(error) => not_stored(&error),
        }
    }

    /// Replays those of one subscription, or of all but the paused ones. It goes on if the client does not wait for it.
    async fn replay_dead_letters(&self, subscription: Option<SubscriptionId>) -> Answer {
        let Some(source) = self.push.backlog.clone() else {
            return Answer::problem(404, "The event log is switched off (event_log = false), so there are no dead letters.");
        };
        let chosen: Vec<Arc<Subscription>> = match subscription {
            Some(id) => self.store.snapshot().subscriptions().get(&id).cloned().into_iter().collect(),
            None => self.store.snapshot().subscriptions().values().cloned().collect(),
        };
        let is_one = subscription.is_some();
        let context = self.push.clone();
        let replaying = tokio::spawn(async move {
            let mut all = Replayed::default();
            for subscription in chosen {
                let letters = context.deliveries.get(subscription.id).map_or(0, |delivery| delivery.dead_letters());
                if letters == 0 && !is_one {
                    continue;
                }
                match replay(subscription, context.clone(), source.clone()).await {
                    Ok(done) => {
                        all.replayed += done.replayed;
                        all.failed += done.failed;
                        all.remaining += done.remaining;
                        all.elsewhere += done.elsewhere;
                    }
                    Err(ReplayError::Paused(_) | ReplayError::Busy(_)) if !is_one => all.remaining += letters,
                    Err(error) => return Err(error),
                }
            }
            Ok(all)
        });
        match replaying.await {
            Ok(Ok(all)) => Answer::json(200, &all),
            Ok(Err(error @ (ReplayError::Paused(_) | ReplayError::Busy(_)))) => Answer::problem(409, &format!("{error}.")),
            Ok(Err(error)) => Answer::problem(503, &error.to_string()),
            Err(_) => Answer::problem(503, "The local cloud is shutting down."),
        }
    }
}

/// Reads a page of dead letters. Blocks.
fn read_page(
    rows: &[DeadLetters],
    mut skipped: u64,
    size: u64,
    shows_payloads: bool,
    snapshot: &Snapshot,
    source: &BacklogSource,
) -> io::Result<Vec<LetterView>> {
    let (mut letters, mut reader) = (Vec::new(), DeadLetterReader::default());
    let own = source.log.identity();
    for row in rows {
        if row.log.is_some_and(|log| log != own) {
            // Other events are at these places of this log.
            let passed = skipped.min(row.events);
            skipped -= passed;
            let shown = (row.events - passed).min(size - letters.len() as u64);
            letters.extend((0..shown).map(|_| gone(row)));
            continue;
        }
        let Some(subscription) = snapshot.subscriptions().get(&row.subscription) else { continue };
        let mut hearing = Hearing::new(subscription, &source.store);
        let (mut rest, before) = (row.clone(), letters.len());
        while rest.first <= rest.last && (letters.len() as u64) < size {
            rest.first = reader.read(&rest, &mut hearing, &source.log, |record, _| {
                if skipped > 0 {
                    skipped -= 1;
                    return true;
                }
                let (event, payload_withheld_bytes) = match shows_payloads {
                    true => (RawValue::from_string(record.event.to_owned()).ok(), None),
                    false => withhold_payload(record.event).ok().unzip(),
                };
                letters.push(LetterView {
                    event_id: Some(record.id.to_string()),
                    event_type: Some(record.topic.to_owned()),
                    published_at: Some(UtcTime::from_unix_nanos(record.time_ns)),
                    event,
                    payload_withheld_bytes,
                    ..gone(row)
                });
                (letters.len() as u64) < size
            })?;
        }
        if !row.is_range && letters.len() == before && (letters.len() as u64) < size {
            match skipped {
                0 => letters.push(gone(row)),
                _ => skipped -= 1,
            }
        }
    }
    Ok(letters)
}

/// A letter of which the row is all that is left.
fn gone(row: &DeadLetters) -> LetterView {
    LetterView {
        id: row.id,
        subscription: row.subscription,
        event_id: None,
        event_type: None,
        published_at: None,
        attempts: row.attempts,
        reason: row.reason.clone(),
        died_at: UtcTime::from_unix_seconds(row.died_at.unsigned_abs()),
        event: None,
        payload_withheld_bytes: None,
    }
}

/// An event with null in place of its payload, and how many bytes that has (decision 135).
fn withhold_payload(event: &str) -> Result<(Box<RawValue>, usize), serde_json::Error> {
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(event)?;
    let payload = members.insert("payload", RawValue::NULL).unwrap_or(RawValue::NULL);
    let bytes = serde_json::from_str::<String>(payload.get())?.len();
    Ok((to_raw_value(&members)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_an_event_but_its_payload_is_told() {
        let event = r#"{"eventType":"HOT","metaData":{"severity":"high"},"payload":"21.5 \"°C\"","timeStamp":"2026-11-21T00:00:00Z"}"#;
        let (told, bytes) = withhold_payload(event).unwrap();
        assert_eq!(told.get(), r#"{"eventType":"HOT","metaData":{"severity":"high"},"payload":null,"timeStamp":"2026-11-21T00:00:00Z"}"#);
        assert_eq!(bytes, "21.5 \"°C\"".len());
        assert!(withhold_payload(r#"{"eventType":"HOT"}"#).is_err(), "what is no event is not told at all");
    }
}
