//! What this cloud asks others: the questions that the Gatekeeper is given, and what is sent of them.

use std::sync::Arc;

use serde_json::Value;

use super::{GrantedTunnel, kept::requires_quality, negotiation::without_own_warnings};
use crate::{
    error::ArrowheadError,
    form::{
        CloudRequest, GsdMultiPollRequest, GsdMultiQueryForm, GsdPollRequest, GsdQueryForm, IcnProposalRequest, IcnProposalResponse,
        IcnRequestForm, RelayRequest, ServiceQueryForm,
    },
    record::*,
    snapshot::Snapshot,
    system::SystemReference,
};

/// This cloud as others know it; `key` is Base64 of its gatekeeper's public key.
pub fn asking_cloud(snapshot: &Snapshot, key: &str) -> CloudRequest {
    let own = snapshot.clouds().find(|cloud| cloud.own_cloud);
    CloudRequest {
        operator: own.map(|own| own.operator.as_str().to_owned()),
        name: own.map(|own| own.name.as_str().to_owned()),
        secure: Some(true),
        neighbor: Some(false),
        authentication_info: Some(key.to_owned()),
        ..CloudRequest::default()
    }
}

/// The other cloud that a request names by operator and name.
pub fn target_cloud(snapshot: &Snapshot, named: Option<&CloudRequest>, origin: &str) -> Result<Arc<Cloud>, ArrowheadError> {
    let text = |text: Option<&String>, what: &str| {
        let text = text.map(|text| text.trim()).filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| ArrowheadError::bad_payload(format!("Cloud {what} is null or blank."), origin))
    };
    let operator = text(named.and_then(|named| named.operator.as_ref()), "operator")?;
    let name = text(named.and_then(|named| named.name.as_ref()), "name")?;
    let unknown =
        || ArrowheadError::invalid_parameter(format!("Cloud with the following operator and name does not exist: {operator}, {name}"));
    let cloud = snapshot.cloud_by_name(&operator, &name).ok_or_else(unknown)?;
    another(cloud)
}

fn another(cloud: &Arc<Cloud>) -> Result<Arc<Cloud>, ArrowheadError> {
    if cloud.own_cloud {
        return Err(ArrowheadError::invalid_parameter("It is this cloud itself: only other clouds are asked."));
    }
    Ok(cloud.clone())
}

/// Who offers a service?
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoveryRequest {
    service: ServiceQueryForm,
    /// The clouds that are asked, if any of them is known.
    pub preferred: Vec<Option<CloudRequest>>,
    needs_quality: bool,
}

impl DiscoveryRequest {
    /// Checks a form.
    pub fn parse(form: GsdQueryForm, origin: &str) -> Result<Self, ArrowheadError> {
        let service = named_service(form.requested_service, origin)?;
        Ok(Self {
            service,
            preferred: form.preferred_clouds.unwrap_or_default(),
            needs_quality: form.need_qos_measurements.unwrap_or_default(),
        })
    }

    /// What each cloud is asked by `asker`.
    pub fn question(&self, asker: CloudRequest, gateway_is_present: bool) -> GsdPollRequest {
        GsdPollRequest {
            requested_service: Some(self.service.clone()),
            requester_cloud: Some(asker),
            gateway_is_present: Some(gateway_is_present),
            need_qos_measurements: Some(self.needs_quality),
        }
    }
}

fn named_service(service: Option<ServiceQueryForm>, origin: &str) -> Result<ServiceQueryForm, ArrowheadError> {
    let service = service.ok_or_else(|| ArrowheadError::bad_payload("Requested service is null.", origin))?;
    let is_named = service.service_definition_requirement.as_deref().is_some_and(|name| !name.trim().is_empty());
    if is_named { Ok(service) } else { Err(ArrowheadError::bad_payload("Service definition requirement is null or blank.", origin)) }
}

/// Who offers which of several services?
#[derive(Clone, Debug, PartialEq)]
pub struct SeveralRequest {
    services: Vec<ServiceQueryForm>,
    /// The clouds that are asked, if any of them is known.
    pub preferred: Vec<Option<CloudRequest>>,
}

impl SeveralRequest {
    /// Checks a form.
    pub fn parse(form: GsdMultiQueryForm, origin: &str) -> Result<Self, ArrowheadError> {
        let services = form.requested_services.filter(|services| !services.is_empty());
        let services = services.ok_or_else(|| ArrowheadError::bad_payload("Requested services are null or empty.", origin))?;
        let services = services.into_iter().map(|service| named_service(service, origin)).collect::<Result<_, _>>()?;
        Ok(Self { services, preferred: form.preferred_clouds.unwrap_or_default() })
    }

    /// What each cloud is asked by `asker`.
    pub fn question(&self, asker: CloudRequest, gateway_is_present: bool) -> GsdMultiPollRequest {
        GsdMultiPollRequest {
            requested_services: Some(self.services.iter().cloned().map(Some).collect()),
            requester_cloud: Some(asker),
            gateway_is_present: Some(gateway_is_present),
        }
    }
}

/// What does another cloud grant a consumer of this one?
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiationRequest {
    form: IcnRequestForm,
    target: CloudId,
}

impl NegotiationRequest {
    /// Checks a form.
    pub fn parse(form: IcnRequestForm, origin: &str) -> Result<Self, ArrowheadError> {
        named_service(form.requested_service.clone(), origin)?;
        let id = form.target_cloud_id.filter(|id| *id > 0);
        let id = id.ok_or_else(|| ArrowheadError::bad_payload("Target cloud id must be given and greater than 0.", origin))?;
        SystemReference::parse(form.requester_system.as_ref(), "Requester system", origin)?;
        for preferred in form.preferred_systems.iter().flatten().flatten() {
            SystemReference::parse(Some(preferred), "Preferred system", origin)?;
        }
        Ok(Self { form, target: CloudId(id) })
    }

    /// The cloud that is asked.
    pub fn target(&self, snapshot: &Snapshot) -> Result<Arc<Cloud>, ArrowheadError> {
        let unknown = || ArrowheadError::invalid_parameter(format!("Cloud with id '{}' does not exist.", self.target));
        another(snapshot.cloud(self.target).ok_or_else(unknown)?)
    }

    /// Whether only providers are wanted that keep a quality of service.
    pub fn requires_quality(&self) -> bool {
        requires_quality(&self.form)
    }

    /// What `target` is asked by `asker`. `gateway_key` is Base64 of the own gateway's public key, where there is one.
    pub fn proposal(self, snapshot: &Snapshot, target: &Cloud, asker: CloudRequest, gateway_key: Option<String>) -> IcnProposalRequest {
        let form = |relay: &Arc<Relay>| Some(relay_request(relay));
        let dedicated = snapshot.relays_of(target).filter(|relay| relay.is_dedicated()).map(form);
        let preferred = self.form.preferred_gateway_relays.filter(|relays| !relays.is_empty()).unwrap_or_else(|| dedicated.collect());
        IcnProposalRequest {
            requested_service: self.form.requested_service,
            requester_cloud: Some(asker),
            requester_system: self.form.requester_system,
            preferred_systems: Some(self.form.preferred_systems.unwrap_or_default()),
            preferred_gateway_relays: Some(preferred),
            known_gateway_relays: Some(snapshot.relays().filter(|relay| relay.is_public_for_tunnels()).map(form).collect()),
            negotiation_flags: Some(self.form.negotiation_flags.unwrap_or_default()),
            commands: self.form.commands,
            gateway_is_present: Some(gateway_key.is_some()),
            consumer_gateway_public_key: gateway_key,
        }
    }
}

/// A relay as two clouds talk about it.
pub fn relay_request(relay: &Relay) -> RelayRequest {
    RelayRequest {
        address: Some(relay.address.to_string()),
        port: Some(relay.port.into()),
        authentication_info: relay.authentication_info.as_deref().map(str::to_owned),
        secure: Some(relay.secure),
        exclusive: Some(relay.exclusive),
        relay_type: Some(relay.relay_type.as_str().to_owned()),
    }
}

/// What another cloud has answered to a proposal.
#[derive(Debug)]
pub enum Negotiated {
    /// Results that the consumer reaches itself.
    Direct(Vec<Value>),
    /// A tunnel to one.
    Tunnel(Box<GrantedTunnel>),
}

impl Negotiated {
    /// Reads an answer. `has_gateway` is what the other cloud was told of this one.
    pub fn read(answer: IcnProposalResponse, target: &Cloud, has_gateway: bool) -> Result<Self, ArrowheadError> {
        if !answer.use_gateway.unwrap_or_default() {
            return Ok(Self::Direct(answer.response.unwrap_or_default().into_iter().map(without_own_warnings).collect()));
        }
        if !has_gateway {
            let message =
                format!("Cloud {}.{} has opened a tunnel, and this cloud has said that it has no gateway.", target.name, target.operator);
            return Err(ArrowheadError::arrowhead(message));
        }
        Ok(Self::Tunnel(Box::new(GrantedTunnel::read(answer, target)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn check<T: std::fmt::Debug>(parsed: Result<T, ArrowheadError>, expected: &str) {
        let error = parsed.unwrap_err();
        assert!(error.error_message.contains(expected), "{error}");
        assert_eq!((error.error_code, error.origin.as_deref()), (400, Some("/x")));
    }

    #[test]
    fn what_is_not_said_is_refused() {
        let discovery = |text: &str| DiscoveryRequest::parse(json::parse_object(text).unwrap(), "/x");
        check(discovery("{}"), "Requested service is null");
        check(discovery(r#"{"requestedService":{"serviceDefinitionRequirement":" "}}"#), "requirement is null or blank");
        let several = |text: &str| SeveralRequest::parse(json::parse_object(text).unwrap(), "/x");
        check(several(r#"{"requestedServices":[]}"#), "null or empty");
        check(several(r#"{"requestedServices":[null]}"#), "Requested service is null");
        let negotiation = |text: &str| NegotiationRequest::parse(json::parse_object(text).unwrap(), "/x");
        let service = r#""requestedService":{"serviceDefinitionRequirement":"heat"}"#;
        check(negotiation("{}"), "Requested service is null");
        check(negotiation(&format!("{{{service},\"targetCloudId\":0}}")), "Target cloud id");
        check(negotiation(&format!("{{{service},\"targetCloudId\":2}}")), "Requester system is null");
    }

    #[test]
    fn a_tunnel_that_nobody_asked_for_is_an_error_of_the_other_cloud() {
        let cloud = Cloud::neighbor(2, "o", "c");
        let answer = |text: &str| {
            Negotiated::read(json::parse_object(text).unwrap(), &cloud, false).map(|negotiated| match negotiated {
                Negotiated::Direct(results) => results,
                Negotiated::Tunnel(tunnel) => panic!("{tunnel:?}"),
            })
        };
        assert_eq!(answer(r#"{"response":[{"a":1}],"useGateway":false}"#).unwrap(), [serde_json::json!({"a": 1})]);
        assert_eq!(answer("{}").unwrap(), Vec::<Value>::new());
        // That it goes by the own gateway is not the other cloud's to say.
        let said = r#"{"response":[{"warnings":["VIA_GATEWAY","TTL_UNKNOWN","FROM_OTHER_CLOUD"]}]}"#;
        assert_eq!(answer(said).unwrap(), [serde_json::json!({"warnings": ["TTL_UNKNOWN"]})]);
        let error = answer(r#"{"response":[{}],"useGateway":true}"#).unwrap_err();
        assert!(error.error_code == 500 && error.error_message.contains("c.o"), "{error}");
    }
}
