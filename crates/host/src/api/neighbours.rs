//! `GET /api/v1/clouds`, `GET /api/v1/relays`, `GET /api/v1/gateway-sessions`: other clouds, where they are met, and the tunnels to them. They are changed by the
//! management of the Gatekeeper and the Gateway.

use std::collections::BTreeMap;

use bodkin_arrowhead::{
    record::{Cloud, Relay},
    snapshot::Snapshot,
};
use serde::Serialize;

use super::{Api, list};
use crate::answer::Answer;

/// A cloud as it is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CloudView<'s> {
    id: i64,
    operator: &'s str,
    name: &'s str,
    own: bool,
    secure: bool,
    neighbor: bool,
    /// Whether its gatekeeper's key is known: without it nothing of it is believed.
    has_key: bool,
    relays: Vec<String>,
    /// Services of this cloud that it may use, as intercloud rules have them.
    rules: usize,
}

/// A relay as it is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelayView<'s> {
    id: i64,
    place: String,
    #[serde(rename = "type")]
    relay_type: &'s str,
    secure: bool,
    exclusive: bool,
    /// Whether its key is pinned.
    has_key: bool,
    /// How it is with the Gatekeeper's connection to it; null: there is none.
    state: Option<String>,
    /// Clouds that are met at it, `OPERATOR/NAME`.
    clouds: Vec<String>,
}

impl Api {
    /// Clouds in the order of ids, the own one among them.
    pub(super) fn list_clouds(&self) -> Answer {
        let snapshot = self.store.snapshot();
        let data = cloud_views(&snapshot);
        list(&data, data.len() as u64)
    }

    /// Sessions of the Gateway in the order in which they were begun; of a cloud without one there are none.
    pub(super) fn list_gateway_sessions(&self) -> Answer {
        let data = self.control.gateway.as_ref().map(|gateway| gateway.views()).unwrap_or_default();
        list(&data, data.len() as u64)
    }

    /// Relays in the order of ids.
    pub(super) fn list_relays(&self) -> Answer {
        let snapshot = self.store.snapshot();
        let states: BTreeMap<String, String> = self.control.gatekeeper.iter().flat_map(|gatekeeper| gatekeeper.relays()).collect();
        let data = relay_views(&snapshot, &states);
        list(&data, data.len() as u64)
    }
}

fn cloud_views(snapshot: &Snapshot) -> Vec<CloudView<'_>> {
    snapshot.clouds().map(|cloud| CloudView::new(snapshot, cloud)).collect()
}

fn relay_views<'s>(snapshot: &'s Snapshot, states: &BTreeMap<String, String>) -> Vec<RelayView<'s>> {
    snapshot.relays().map(|relay| RelayView::new(snapshot, relay, states)).collect()
}

impl<'s> CloudView<'s> {
    fn new(snapshot: &Snapshot, cloud: &'s Cloud) -> Self {
        Self {
            id: cloud.id.0,
            operator: cloud.operator.as_str(),
            name: cloud.name.as_str(),
            own: cloud.own_cloud,
            secure: cloud.secure,
            neighbor: cloud.neighbor,
            has_key: cloud.authentication_info.is_some(),
            relays: snapshot.relays_of(cloud).map(|relay| place(relay)).collect(),
            rules: snapshot.inter_cloud_rules().filter(|rule| rule.cloud == cloud.id).count(),
        }
    }
}

impl<'s> RelayView<'s> {
    fn new(snapshot: &Snapshot, relay: &'s Relay, states: &BTreeMap<String, String>) -> Self {
        let clouds = snapshot.clouds().filter(|cloud| cloud.relays.contains(&relay.id));
        Self {
            id: relay.id.0,
            place: place(relay),
            relay_type: relay.relay_type.as_str(),
            secure: relay.secure,
            exclusive: relay.exclusive,
            has_key: relay.authentication_info.is_some(),
            state: states.get(&place(relay)).cloned(),
            clouds: clouds.map(|cloud| format!("{}/{}", cloud.operator, cloud.name)).collect(),
        }
    }
}

/// Where a relay is, as it is written into a URI.
fn place(relay: &Relay) -> String {
    if relay.address.contains(':') { format!("[{}]:{}", relay.address, relay.port) } else { format!("{}:{}", relay.address, relay.port) }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{
        form::{CloudRequest, RelayRequest},
        gatekeeper::{CloudPut, RelayPut},
    };
    use bodkin_store::Store;
    use serde_json::json;

    use super::*;

    fn relay(address: &str, port: i64, relay_type: &str, key: Option<&str>) -> RelayPut {
        let form = RelayRequest {
            address: Some(address.into()),
            port: Some(port),
            relay_type: Some(relay_type.into()),
            authentication_info: key.map(str::to_owned),
            ..RelayRequest::default()
        };
        RelayPut::parse(form, "/x").unwrap()
    }

    #[tokio::test]
    async fn a_cloud_is_told_with_its_relays_and_a_relay_with_its_clouds() {
        let data = tempfile::tempdir().unwrap();
        let opened = Store::open(data.path()).unwrap();
        let relays = [
            relay("Relay.Example", 61617, "GENERAL_RELAY", Some("KEY")),
            relay("2001:db8::1", 1, "GATEKEEPER_RELAY", None),
            relay("unused", 2, "GENERAL_RELAY", None),
        ];
        let ids = opened.store.write(move |draft| draft.insert_relays(&relays), |_, ids| ids).await.unwrap();
        let form = CloudRequest {
            operator: Some("aitia".into()),
            name: Some("two".into()),
            neighbor: Some(true),
            authentication_info: Some("KEY".into()),
            gatekeeper_relay_ids: Some(ids[..2].iter().map(|id| Some(id.0)).collect()),
            ..CloudRequest::default()
        };
        let cloud = CloudPut::parse(form, "/x").unwrap();
        let clouds = opened.store.write(move |draft| draft.insert_clouds(&[cloud]), |_, ids| ids).await.unwrap();
        let snapshot = opened.store.snapshot();
        let told = serde_json::to_value(cloud_views(&snapshot)).unwrap();
        let told = told.as_array().unwrap().iter().find(|told| told["id"] == clouds[0].0).unwrap();
        assert_eq!(told["relays"], json!(["relay.example:61617", "[2001:db8::1]:1"]));
        assert_eq!((&told["operator"], &told["neighbor"], &told["own"]), (&json!("aitia"), &json!(true), &json!(false)));
        assert_eq!((&told["hasKey"], &told["rules"]), (&json!(true), &json!(0)));
        let told =
            serde_json::to_value(relay_views(&snapshot, &BTreeMap::from([("unused:2".to_owned(), "connecting".to_owned())]))).unwrap();
        assert_eq!((&told[0]["clouds"], &told[0]["hasKey"]), (&json!(["aitia/two"]), &json!(true)));
        assert_eq!((&told[1]["type"], &told[1]["hasKey"]), (&json!("GATEKEEPER_RELAY"), &json!(false)));
        assert_eq!((&told[2]["clouds"], &told[2]["state"], &told[1]["state"]), (&json!([]), &json!("connecting"), &json!(null)));
    }
}
