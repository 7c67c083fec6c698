//! `/api/v1/clouds/...`: getting to know another cloud, reaching it, and the events that go there and come from there.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bodkin_arrowhead::{
    form::AccessType,
    gatekeeper::dialogue_relay,
    json,
    name::EventType,
    record::{Cloud, CloudId, RelayId},
    shared_event::{Account, DEADLINE_MS_DEFAULT, Share},
};
use bodkin_store::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::{Api, BASE, not_stored};
use crate::{
    answer::Answer,
    gatekeeper::choose,
    request::{Method, Request},
};

/// `POST /api/v1/clouds/{id}/shared-events`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShareForm {
    event_type: Option<String>,
    deadline_ms: Option<i64>,
}

/// `POST /api/v1/clouds/{id}/accepted-events`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcceptForm {
    event_type: Option<String>,
}

impl Api {
    pub(super) async fn clouds(&self, request: &Request) -> Answer {
        if self.control.gatekeeper.is_none() {
            let told = "This cloud has no Gatekeeper: there is none in insecure mode, and beside key stores only with gatekeeper.p12.";
            return Answer::problem(409, told);
        }
        if let Some(gatekeeper) = &self.control.gatekeeper
            && request.path.ends_with("/relays")
        {
            let relays = gatekeeper.relays();
            let rows: Vec<_> = relays.iter().map(|(relay, state)| json!({"relay": relay, "state": state})).collect();
            return super::list(&rows, rows.len() as u64);
        }
        if request.path.ends_with("/heard-events") {
            return self.heard_events();
        }
        let below = request.path.strip_prefix(BASE).and_then(|path| path.strip_prefix("clouds/")).unwrap_or_default();
        match below.rsplit_once('/') {
            Some((id, "ping")) => self.ping_cloud(id).await,
            Some((id, "relay-test")) => self.test_relay(id, request).await,
            Some((id, "shared-events")) => self.share_event(id, request).await,
            Some((id, "accepted-events")) if request.method == Method::Delete => self.refuse_events(id, request).await,
            Some((id, "accepted-events")) => self.accept_events(id, request).await,
            _ => self.introduce(),
        }
    }

    fn other_cloud(&self, id: &str) -> Result<Arc<Cloud>, Answer> {
        let cloud = id.parse().ok().and_then(|id| self.store.snapshot().cloud(CloudId(id)).cloned());
        let told = || Answer::problem(404, &format!("No other cloud has the id {id}."));
        cloud.filter(|cloud| !cloud.own_cloud).ok_or_else(told)
    }

    /// Shares an event type with another cloud.
    async fn share_event(&self, id: &str, request: &Request) -> Answer {
        let wrong = |error: &str| Answer::problem(400, error);
        let form: ShareForm =
            match std::str::from_utf8(&request.body).map_err(|_| ()).and_then(|text| json::parse_object(text).map_err(|_| ())) {
                Ok(form) => form,
                Err(()) => return wrong("The body is to be an object with eventType and deadlineMs."),
            };
        let cloud = match self.other_cloud(id) {
            Ok(cloud) => cloud,
            Err(answer) => return answer,
        };
        let event_type = match EventType::parse(form.event_type.as_deref().unwrap_or_default()) {
            Ok(event_type) => event_type,
            Err(error) => return wrong(&format!("eventType {error}.")),
        };
        let share = match Share::new(&cloud, form.deadline_ms.unwrap_or(i64::from(DEADLINE_MS_DEFAULT))) {
            Ok(share) => share,
            Err(error) => return wrong(&error.error_message),
        };
        let (told, subscriptions_max) = (event_type.as_str().to_owned(), self.control.subscriptions_max);
        let (name, deadline_ms) = (format!("{}.{}", cloud.name, cloud.operator), share.deadline_ms);
        let made = self.store.write(move |draft| draft.share_event(event_type, &share, subscriptions_max), |_, id| id).await;
        match made {
            Ok(id) => Answer::json(201, &json!({"id": id, "eventType": told, "cloud": name, "deadlineMs": deadline_ms})),
            Err(StoreError::Refused(error)) => wrong(&error.error_message),
            Err(error) => not_stored(&error),
        }
    }

    /// Takes events of a type from another cloud, from now on.
    async fn accept_events(&self, id: &str, request: &Request) -> Answer {
        let wrong = |error: &str| Answer::problem(400, error);
        let form = std::str::from_utf8(&request.body).ok().and_then(|text| json::parse_object::<AcceptForm>(text).ok());
        let Some(form) = form else { return wrong("The body is to be an object with eventType.") };
        let cloud = match self.other_cloud(id) {
            Ok(cloud) => cloud,
            Err(answer) => return answer,
        };
        let event_type = match EventType::parse(form.event_type.as_deref().unwrap_or_default()) {
            Ok(event_type) => event_type,
            Err(error) => return wrong(&format!("eventType {error}.")),
        };
        let (told, id) = (event_type.as_str().to_owned(), cloud.id);
        match self.store.write(move |draft| draft.accept_events(id, event_type), |_, ()| ()).await {
            Ok(()) => Answer::json(201, &json!({"eventType": told, "cloud": format!("{}.{}", cloud.name, cloud.operator)})),
            Err(StoreError::Refused(error)) => wrong(&error.error_message),
            Err(error) => not_stored(&error),
        }
    }

    /// Takes them no more.
    async fn refuse_events(&self, id: &str, request: &Request) -> Answer {
        let cloud = match self.other_cloud(id) {
            Ok(cloud) => cloud,
            Err(answer) => return answer,
        };
        let event_type = match EventType::parse(request.parameter("event_type").unwrap_or_default()) {
            Ok(event_type) => event_type,
            Err(error) => return Answer::problem(400, &format!("event_type {error}.")),
        };
        let (told, id) = (event_type.as_str().to_owned(), cloud.id);
        match self.store.write(move |draft| draft.refuse_events(id, &event_type), |_, was_accepted| was_accepted).await {
            Ok(true) => Answer::empty(200),
            Ok(false) => {
                let told = format!("Events of type {told} are not accepted of {}.{}.", cloud.name, cloud.operator);
                Answer::problem(404, &told)
            }
            Err(error) => not_stored(&error),
        }
    }

    /// What is accepted of other clouds, and what has come of their events.
    fn heard_events(&self) -> Answer {
        let snapshot = self.store.snapshot();
        let accepted = |cloud: &Arc<Cloud>| {
            let id = cloud.id;
            cloud
                .accepted_events
                .iter()
                .map(move |event_type| ((id, event_type.as_str().to_owned()), Account::default()))
                .collect::<Vec<_>>()
        };
        let mut all: BTreeMap<_, _> = snapshot.clouds().flat_map(accepted).collect();
        let heard = self.control.gatekeeper.iter().flat_map(|gatekeeper| gatekeeper.heard.all());
        all.extend(heard.map(|(cloud, event_type, account)| ((cloud, event_type), account)));
        let row = |((id, event_type), Account { taken, lost, repeated, refused }): ((CloudId, String), Account)| {
            let cloud = snapshot.cloud(id);
            let name = cloud.map(|cloud| format!("{}.{}", cloud.name, cloud.operator));
            let accepted = cloud.is_some_and(|cloud| cloud.accepted_events.contains(&EventType::from_stored(&event_type)));
            json!({
                "cloud": name, "eventType": event_type, "accepted": accepted,
                "taken": taken, "lost": lost, "repeated": repeated, "refused": refused,
            })
        };
        let rows: Vec<_> = all.into_iter().map(row).collect();
        super::list(&rows, rows.len() as u64)
    }

    fn introduce(&self) -> Answer {
        let (own, _) = match self.own_cloud() {
            Ok(own) => own,
            Err(answer) => return answer,
        };
        let key = self.control.gatekeeper.as_ref().map(|gatekeeper| gatekeeper.authentication_info());
        Answer::json(200, &json!({"operator": own.operator.as_str(), "name": own.cloud.as_str(), "gatekeeperKey": key}))
    }

    async fn ping_cloud(&self, id: &str) -> Answer {
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = match self.other_cloud(id) {
            Ok(cloud) => cloud,
            Err(answer) => return answer,
        };
        let begun = Instant::now();
        let found = self.control.access_type(&snapshot, &cloud).await;
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (direct_access, why) = match found {
            Ok(AccessType { direct_access }) => (Some(direct_access.unwrap_or_default()), None),
            Err(error) => (None, Some(error.error_message)),
        };
        let (cloud, answered) = (format!("{}.{}", cloud.name, cloud.operator), why.is_none());
        Answer::json(
            200,
            &json!({"cloud": cloud, "answered": answered, "elapsedUs": elapsed_us, "directAccess": direct_access, "why": why}),
        )
    }

    /// Tests a relay together with another cloud: the named one, or one by which its gatekeeper is called.
    async fn test_relay(&self, id: &str, request: &Request) -> Answer {
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = match self.other_cloud(id) {
            Ok(cloud) => cloud,
            Err(answer) => return answer,
        };
        let relay = match request.parameter("relay") {
            None => match dialogue_relay(&snapshot, &cloud, choose) {
                Ok(relay) => relay,
                Err(error) => return Answer::problem(409, &error.error_message),
            },
            Some(id) => match id.parse().ok().and_then(|id| snapshot.relay(RelayId(id))) {
                Some(relay) => relay,
                None => return Answer::problem(404, &format!("No relay has the id {id}.")),
            },
        };
        match self.control.test_relay_with(&snapshot, &cloud, relay).await {
            Ok(report) => Answer::json(200, &report),
            Err(error) => Answer::problem(error.error_code, &error.error_message),
        }
    }
}
