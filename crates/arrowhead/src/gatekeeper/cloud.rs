//! Clouds to be made or changed, and clouds as they are answered.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use crate::{
    error::ArrowheadError,
    form::{CloudRequest, RelayAssignmentRequest},
    name::CloudName,
    record::*,
    snapshot::Snapshot,
    system::AUTHENTICATION_INFO_LENGTH_MAX,
};

/// A cloud other than this one, as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudPut {
    /// Who runs it.
    pub operator: CloudName,
    /// Its name.
    pub name: CloudName,
    /// Whether it works with certificates.
    pub secure: bool,
    /// Whether it is asked when this cloud has no provider.
    pub neighbor: bool,
    /// Base64 of its gatekeeper's public key.
    pub authentication_info: Option<Arc<str>>,
    /// The relays by which it is reached.
    pub relays: RelayAssignment,
}

/// Relays for a cloud. That they are there and of the right type the store asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayAssignment {
    /// By these its gatekeeper is reached.
    pub gatekeeper: BTreeSet<RelayId>,
    /// These are for tunnels to it only.
    pub gateway: BTreeSet<RelayId>,
}

type Ids = Option<Vec<Option<i64>>>;

impl CloudPut {
    /// Checks a form; a cloud has at least one relay that its gatekeeper is reached by.
    pub fn parse(form: CloudRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let name = |text: Option<String>, what: &str| {
            CloudName::parse(text.as_deref().unwrap_or_default()).map_err(|error| refused(format!("Cloud {what} {error}")))
        };
        let (operator, name) = (name(form.operator, "operator")?, name(form.name, "name")?);
        let authentication_info = form.authentication_info.map(|info| info.trim().to_owned()).filter(|info| !info.is_empty());
        if authentication_info.as_ref().is_some_and(|info| info.chars().count() > AUTHENTICATION_INFO_LENGTH_MAX) {
            return Err(ArrowheadError::database());
        }
        let secure = form.secure.unwrap_or_default();
        if secure && authentication_info.is_none() {
            return Err(refused("A secure cloud needs authenticationInfo: the Base64 of its gatekeeper's public key.".into()));
        }
        let relays = RelayAssignment::parse(&form.gatekeeper_relay_ids, &form.gateway_relay_ids, origin)?;
        if relays.gatekeeper.is_empty() {
            return Err(refused("A cloud needs a relay that its gatekeeper is reached by: gatekeeperRelayIds is null or empty.".into()));
        }
        let authentication_info = authentication_info.map(Arc::from);
        Ok(Self { operator, name, secure, neighbor: form.neighbor.unwrap_or_default(), authentication_info, relays })
    }
}

impl RelayAssignment {
    /// Checks an assignment of further relays to a cloud, and says to which.
    pub fn parse_further(form: &RelayAssignmentRequest, origin: &str) -> Result<(CloudId, Self), ArrowheadError> {
        let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
        let cloud = form.cloud_id.filter(|id| *id > 0).ok_or_else(|| refused("Cloud id must be given and greater than 0."))?;
        let further = Self::parse(&form.gatekeeper_relay_ids, &form.gateway_relay_ids, origin)?;
        if further.all().next().is_none() {
            return Err(refused("Neither gatekeeperRelayIds nor gatewayRelayIds has an id."));
        }
        Ok((CloudId(cloud), further))
    }

    fn parse(gatekeeper: &Ids, gateway: &Ids, origin: &str) -> Result<Self, ArrowheadError> {
        let ids = |ids: &Ids| {
            let ids = ids.iter().flatten().map(|id| id.filter(|id| *id > 0).map(RelayId));
            ids.collect::<Option<BTreeSet<RelayId>>>()
                .ok_or_else(|| ArrowheadError::bad_payload("Relay ids must be greater than 0.", origin))
        };
        Ok(Self { gatekeeper: ids(gatekeeper)?, gateway: ids(gateway)? })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = RelayId> {
        self.gatekeeper.union(&self.gateway).copied()
    }

    /// Refuses a relay that is not of the right type for what it is assigned for.
    pub fn check(&self, relay: RelayId, relay_type: RelayType, exclusive: bool) -> Result<(), ArrowheadError> {
        let told = || format!("{}{} with id {relay}", if exclusive { "an exclusive " } else { "a " }, relay_type.as_str());
        let refused = |expected: &str| Err(ArrowheadError::invalid_parameter(format!("{expected} expected, and not {}.", told())));
        if self.gatekeeper.contains(&relay) && (exclusive || relay_type == RelayType::GatewayRelay) {
            return refused("For a gatekeeper a GATEKEEPER_RELAY or GENERAL_RELAY is");
        }
        if self.gateway.contains(&relay) && (!exclusive || relay_type != RelayType::GatewayRelay) {
            return refused("For a cloud's gateway an exclusive GATEWAY_RELAY is");
        }
        Ok(())
    }
}

/// A cloud with its relays, as the Gatekeeper answers it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudView {
    #[serde(flatten)]
    cloud: Arc<Cloud>,
    gatekeeper_relays: Vec<Arc<Relay>>,
    gateway_relays: Vec<Arc<Relay>>,
}

impl CloudView {
    /// The cloud's view in the snapshot it is of.
    pub fn new(snapshot: &Snapshot, cloud: &Arc<Cloud>) -> Self {
        let (gateway_relays, gatekeeper_relays) =
            snapshot.relays_of(cloud).cloned().partition(|relay| relay.relay_type == RelayType::GatewayRelay);
        Self { cloud: cloud.clone(), gatekeeper_relays, gateway_relays }
    }

    /// As the Orchestrator and the QoS Monitor are answered: with the relays for tunnels to any cloud.
    pub fn with_public_relays(mut self, snapshot: &Snapshot) -> Self {
        self.gateway_relays.extend(public_relays(snapshot));
        self
    }
}

/// A cloud as the QoS Monitor is answered: the relays for tunnels to any cloud apart from its own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicCloudView {
    #[serde(flatten)]
    cloud: CloudView,
    public_relays: Vec<Arc<Relay>>,
}

impl PublicCloudView {
    /// The cloud's view in the snapshot it is of.
    pub fn new(snapshot: &Snapshot, cloud: &Arc<Cloud>) -> Self {
        Self { cloud: CloudView::new(snapshot, cloud), public_relays: public_relays(snapshot).collect() }
    }
}

/// The relays for tunnels to any cloud.
fn public_relays(snapshot: &Snapshot) -> impl Iterator<Item = Arc<Relay>> {
    snapshot.relays().filter(|relay| relay.is_public_for_tunnels()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> CloudRequest {
        CloudRequest {
            operator: Some("Aitia".into()),
            name: Some(" TestCloud2 ".into()),
            secure: Some(true),
            authentication_info: Some("key".into()),
            gatekeeper_relay_ids: Some(vec![Some(2), Some(1), Some(2)]),
            ..CloudRequest::default()
        }
    }

    fn check(form: CloudRequest, expected: &str) {
        let error = CloudPut::parse(form, "/x").unwrap_err();
        assert!(error.error_message.contains(expected), "{error}");
        assert_eq!(error.error_code, 400);
    }

    #[test]
    fn a_cloud_has_names_a_key_and_a_relay() {
        let put = CloudPut::parse(form(), "/x").unwrap();
        assert_eq!((put.operator.as_str(), put.name.as_str(), put.neighbor), ("aitia", "testcloud2", false));
        assert_eq!(put.relays.gatekeeper, [RelayId(1), RelayId(2)].into());
        check(CloudRequest { operator: None, ..form() }, "Cloud operator is null or blank");
        check(CloudRequest { name: Some("test_cloud".into()), ..form() }, "Cloud name has invalid format");
        check(CloudRequest { authentication_info: Some(" ".into()), ..form() }, "needs authenticationInfo");
        check(CloudRequest { gatekeeper_relay_ids: None, ..form() }, "gatekeeperRelayIds is null or empty");
        check(CloudRequest { gatekeeper_relay_ids: Some(vec![]), gateway_relay_ids: Some(vec![Some(1)]), ..form() }, "gatekeeperRelayIds");
        check(CloudRequest { gateway_relay_ids: Some(vec![Some(0)]), ..form() }, "greater than 0");
        check(CloudRequest { gatekeeper_relay_ids: Some(vec![None]), ..form() }, "greater than 0");
        assert!(CloudPut::parse(CloudRequest { secure: None, authentication_info: None, ..form() }, "/x").is_ok());
    }

    #[test]
    fn relays_are_assigned_for_what_their_type_is_for() {
        let id = RelayId(1);
        let gatekeeper = RelayAssignment { gatekeeper: [id].into(), ..RelayAssignment::default() };
        let gateway = RelayAssignment { gateway: [id].into(), ..RelayAssignment::default() };
        for (relay_type, exclusive, for_gatekeeper, for_gateway) in [
            (RelayType::GatekeeperRelay, false, true, false),
            (RelayType::GeneralRelay, false, true, false),
            (RelayType::GatewayRelay, false, false, false),
            (RelayType::GatewayRelay, true, false, true),
        ] {
            assert_eq!(gatekeeper.check(id, relay_type, exclusive).is_ok(), for_gatekeeper, "{relay_type:?} {exclusive}");
            assert_eq!(gateway.check(id, relay_type, exclusive).is_ok(), for_gateway, "{relay_type:?} {exclusive}");
        }
    }

    #[test]
    fn an_assignment_names_a_cloud_and_a_relay() {
        let form = |cloud_id, ids: &[i64]| RelayAssignmentRequest {
            cloud_id,
            gatekeeper_relay_ids: Some(ids.iter().copied().map(Some).collect()),
            gateway_relay_ids: None,
        };
        assert!(RelayAssignment::parse_further(&form(Some(1), &[7]), "/x").is_ok());
        for bad in [form(None, &[7]), form(Some(0), &[7]), form(Some(1), &[]), form(Some(1), &[-1])] {
            assert!(RelayAssignment::parse_further(&bad, "/x").is_err(), "{bad:?}");
        }
    }
}
