//! `GET /api/v1/clouds/introduction`, `POST /api/v1/clouds/{id}/ping` and `GET /api/v1/clouds/relays`: getting to know another cloud, and reaching it.

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{form::AccessType, record::CloudId};
use serde_json::json;

use super::{Api, BASE};
use crate::{answer::Answer, request::Request};

impl Api {
    pub(super) async fn clouds(&self, request: &Request) -> Answer {
        if self.control.gatekeeper.is_none() {
            let told = "This cloud has no Gatekeeper: there is none in insecure mode, and beside key stores only with gatekeeper.p12.";
            return Answer::problem(409, "No Gatekeeper", told);
        }
        if let Some(gatekeeper) = &self.control.gatekeeper
            && request.path.ends_with("/relays")
        {
            let relays = gatekeeper.relays();
            let rows: Vec<_> = relays.iter().map(|(relay, state)| json!({"relay": relay, "state": state})).collect();
            return super::list(&rows, rows.len() as u64);
        }
        let below = request.path.strip_prefix(BASE).and_then(|path| path.strip_prefix("clouds/")).unwrap_or_default();
        match below.strip_suffix("/ping") {
            Some(id) => self.ping_cloud(id).await,
            None => self.introduce(),
        }
    }

    fn introduce(&self) -> Answer {
        let (own, key) = (self.own_cloud().0, self.control.gatekeeper.as_ref().map(|gatekeeper| gatekeeper.authentication_info()));
        Answer::json(200, &json!({"operator": own.operator.as_str(), "name": own.cloud.as_str(), "gatekeeperKey": key}))
    }

    async fn ping_cloud(&self, id: &str) -> Answer {
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = id.parse().ok().and_then(|id| snapshot.cloud(CloudId(id)).cloned());
        let Some(cloud) = cloud.filter(|cloud| !cloud.own_cloud) else {
            return Answer::problem(404, "No such cloud", &format!("No other cloud has the id {id}."));
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
}
