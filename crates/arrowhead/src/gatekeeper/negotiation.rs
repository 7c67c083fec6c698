//! Inter-cloud negotiation (ICN): what a consumer of one cloud is granted by another, and how it reaches it.

use serde_json::{Value, json};

use super::{
    RelayPut, TunnelRelays,
    discovery::{check_asker, no_gateway},
};
use crate::{
    access::EXTERNAL_SERVICE_REQUEST,
    error::ArrowheadError,
    form::{CloudRequest, IcnProposalRequest, IcnProposalResponse, OrchestrationForm, PreferredProvider, RelayRequest, SystemRequest},
    record::Cloud,
    system::{SystemKey, SystemReference},
};

/// What refusals of another cloud's questions name as their origin: they come by a relay and not on a path.
pub(super) const ORIGIN: &str = "gatekeeper relay";
/// The warning of a result that is reached through a tunnel.
pub(crate) const VIA_GATEWAY: &str = "VIA_GATEWAY";
/// The warning of a result that another cloud has given.
pub(crate) const FROM_OTHER_CLOUD: &str = "FROM_OTHER_CLOUD";

/// What another cloud proposes, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Who would consume.
    pub requester: SystemReference,
    /// The providers that it would rather have.
    pub preferred: Vec<SystemKey>,
    /// Where a tunnel could go.
    pub relays: TunnelRelays,
    /// Base64 of its gateway's public key; there is one where a gateway is mandatory here.
    pub consumer_gateway_key: Option<String>,
}

impl Proposal {
    /// Checks what `asker` proposes, whose key has signed it.
    pub fn parse(form: &IcnProposalRequest, asker: &Cloud, gateway_is_mandatory: bool) -> Result<Self, ArrowheadError> {
        check_asker(form.requester_cloud.as_ref(), asker)?;
        let consumer_gateway_key =
            form.consumer_gateway_public_key.as_deref().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        if gateway_is_mandatory && !(form.gateway_is_present.unwrap_or_default() && consumer_gateway_key.is_some()) {
            return Err(no_gateway());
        }
        if form.requested_service.is_none() {
            return Err(ArrowheadError::invalid_parameter("Requested service is null."));
        }
        let preferred = form.preferred_systems.iter().flatten().flatten();
        let preferred = preferred.map(|system| SystemReference::parse(Some(system), "Preferred system", ORIGIN).map(|system| system.key));
        Ok(Self {
            requester: SystemReference::parse(form.requester_system.as_ref(), "Requester system", ORIGIN)?,
            preferred: preferred.collect::<Result<_, _>>()?,
            relays: TunnelRelays { preferred: relays(&form.preferred_gateway_relays)?, known: relays(&form.known_gateway_relays)? },
            consumer_gateway_key,
        })
    }
}

impl Proposal {
    /// What the own Orchestrator is asked for it, on behalf of `asker`.
    pub fn orchestration(form: IcnProposalRequest, asker: &Cloud) -> OrchestrationForm {
        let qos_requirements = Self::requirements(&form);
        let mut flags = form.negotiation_flags.unwrap_or_default();
        // It is asked here and now, whatever the consumer has let its own Orchestrator do.
        flags.retain(|flag, _| !["triggerInterCloud", "enableInterCloud"].contains(&flag.as_str()));
        flags.extend([EXTERNAL_SERVICE_REQUEST, "overrideStore"].map(|flag| (flag.to_owned(), Some(true))));
        let preferred = form.preferred_systems.unwrap_or_default().into_iter().flatten();
        OrchestrationForm {
            requester_system: form.requester_system,
            requester_cloud: Some(CloudRequest {
                operator: Some(asker.operator.as_str().to_owned()),
                name: Some(asker.name.as_str().to_owned()),
                ..CloudRequest::default()
            }),
            requested_service: form.requested_service,
            orchestration_flags: Some(flags),
            preferred_providers: Some(
                preferred.map(|system| Some(PreferredProvider { provider_system: Some(system), provider_cloud: None })).collect(),
            ),
            commands: form.commands,
            qos_requirements,
        }
    }
}

fn relays(forms: &Option<Vec<Option<RelayRequest>>>) -> Result<Vec<RelayPut>, ArrowheadError> {
    forms.iter().flatten().flatten().map(|form| RelayPut::parse(form.clone(), ORIGIN)).collect()
}

/// Which of the providers a tunnel goes to: the first preferred one, or any. `choose` gives any index below the count that it is given.
pub fn chosen_provider(providers: &[SystemKey], preferred: &[SystemKey], choose: impl FnOnce(usize) -> usize) -> Option<usize> {
    let first = preferred.iter().find_map(|preferred| providers.iter().position(|provider| provider == preferred));
    first.or_else(|| (!providers.is_empty()).then(|| choose(providers.len()) % providers.len()))
}

/// Takes out of another cloud's result the warnings that only this cloud gives: what it says of the way to a provider is not believed.
pub(super) fn without_own_warnings(mut result: Value) -> Value {
    if let Some(warnings) = result.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.retain(|warning| warning != VIA_GATEWAY && warning != FROM_OTHER_CLOUD);
    }
    result
}

/// The one result of a proposal that was answered with a tunnel, as the consumer gets it: its provider is the own gateway, at the tunnel's port.
pub fn through_tunnel(answer: IcnProposalResponse, gateway: &SystemRequest) -> Result<Value, ArrowheadError> {
    let not_one =
        |count: usize| ArrowheadError::arrowhead(format!("The other cloud has opened a tunnel for {count} results: one expected."));
    let mut results = answer.response.unwrap_or_default();
    let (Some(mut result), true) = (results.pop(), results.is_empty()) else { return Err(not_one(results.len())) };
    result = without_own_warnings(result);
    let Some(members) = result.as_object_mut() else { return Err(not_one(0)) };
    let SystemRequest { system_name, address, port, authentication_info, .. } = gateway;
    let provider = json!({"systemName": system_name, "address": address, "port": port, "authenticationInfo": authentication_info});
    members.insert("provider".into(), provider);
    match members.get_mut("warnings").and_then(Value::as_array_mut) {
        Some(warnings) => warnings.push(VIA_GATEWAY.into()),
        None => drop(members.insert("warnings".into(), json!([VIA_GATEWAY]))),
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn asker() -> Cloud {
        Cloud { authentication_info: Some("key".into()), ..Cloud::neighbor(2, "o", "c") }
    }

    /// As a Java gatekeeper writes it.
    const PROPOSAL: &str = r#"{"requestedService":{"serviceDefinitionRequirement":"temperature"},
        "requesterCloud":{"operator":"O","name":"c","secure":null,"neighbor":null,"authenticationInfo":"key"},
        "requesterSystem":{"systemName":"display","address":"10.0.0.1","port":8000},
        "preferredSystems":[{"systemName":"Sensor","address":"10.0.1.1","port":9000}],
        "knownGatewayRelays":[{"address":"relay","port":61617,"secure":true,"exclusive":false,"type":"GENERAL_RELAY"}],
        "preferredGatewayRelays":[],"negotiationFlags":{"matchmaking":true},"gatewayIsPresent":true,"consumerGatewayPublicKey":"gateway"}"#;

    fn check(change: (&str, &str), mandatory: bool, expected: Result<(), &str>) {
        let text = PROPOSAL.replace(change.0, change.1);
        assert!(change.0.is_empty() || text != PROPOSAL, "{change:?} changes nothing");
        let form: IcnProposalRequest = json::parse_object(&text).unwrap();
        match (Proposal::parse(&form, &asker(), mandatory), expected) {
            (Ok(proposal), Ok(())) => {
                assert_eq!(proposal.requester.name, "display");
                assert_eq!(proposal.preferred, [SystemKey::new("sensor", "10.0.1.1", 9000)]);
                assert_eq!((proposal.relays.known.len(), proposal.relays.preferred.len()), (1, 0));
            }
            (Err(error), Err(part)) => assert!(error.error_message.contains(part), "{error}"),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_proposal_is_its_senders() {
        check(("", ""), true, Ok(()));
        check((r#""name":"c""#, r#""name":"d""#), true, Err("requesterCloud is another one"));
        check((r#""requesterCloud""#, r#""other""#), true, Err("requesterCloud is another one"));
        check((r#""requesterSystem""#, r#""other""#), true, Err("Requester system is null"));
        check((r#""requestedService""#, r#""other""#), true, Err("Requested service is null"));
        check((r#""port":61617"#, r#""port":-1"#), true, Err("Relay port"));
        check((r#""gatewayIsPresent":true"#, r#""gatewayIsPresent":false"#), false, Ok(()));
        check((r#""gatewayIsPresent":true"#, r#""gatewayIsPresent":false"#), true, Err("gateways only"));
        check((r#""consumerGatewayPublicKey":"gateway""#, r#""consumerGatewayPublicKey":" ""#), true, Err("gateways only"));
    }

    #[test]
    fn the_own_orchestrator_is_asked_here_and_in_the_name_of_who_has_signed() {
        let text = PROPOSAL.replace(r#""matchmaking":true"#, r#""matchmaking":true,"triggerInterCloud":true,"enableInterCloud":true"#);
        let form = Proposal::orchestration(json::parse_object(&text).unwrap(), &asker());
        let flags: Vec<&str> = form.orchestration_flags.iter().flatten().map(|(flag, _)| flag.as_str()).collect();
        assert_eq!(flags, ["externalServiceRequest", "matchmaking", "overrideStore"]);
        let cloud = form.requester_cloud.unwrap();
        assert_eq!((cloud.operator.as_deref(), cloud.name.as_deref()), (Some("o"), Some("c")));
        let preferred = form.preferred_providers.unwrap();
        let preferred = preferred[0].as_ref().unwrap();
        assert_eq!(preferred.provider_system.as_ref().unwrap().system_name.as_deref(), Some("Sensor"));
        assert!(preferred.provider_cloud.is_none(), "to the other cloud it is one of its own");
    }

    #[test]
    fn the_first_preferred_provider_is_chosen_or_any() {
        let keys = |names: &[&str]| names.iter().map(|name| SystemKey::new(name, "a", 1)).collect::<Vec<_>>();
        for (providers, preferred, expected) in [
            (&["a", "b", "c"][..], &["x", "c", "b"][..], Some(2)),
            (&["a", "b"], &["x"], Some(1)),
            (&["a"], &[], Some(0)),
            (&[], &["a"], None),
        ] {
            assert_eq!(chosen_provider(&keys(providers), &keys(preferred), |_| 7), expected, "{providers:?} {preferred:?}");
        }
    }

    #[test]
    fn a_tunnels_result_names_the_own_gateway() {
        let gateway = SystemRequest {
            system_name: Some("gateway".into()),
            address: Some("10.0.0.9".into()),
            port: Some(8001),
            authentication_info: Some("key".into()),
            metadata: None,
        };
        let answer = |text: &str| json::parse_object::<IcnProposalResponse>(text).unwrap();
        let one =
            r#"{"response":[{"provider":{"id":7,"systemName":"sensor"},"serviceUri":"/t","warnings":["TTL_UNKNOWN"]}],"useGateway":true}"#;
        let provider = json!({"systemName": "gateway", "address": "10.0.0.9", "port": 8001, "authenticationInfo": "key"});
        let expected = json!({"provider": provider, "serviceUri": "/t", "warnings": ["TTL_UNKNOWN", "VIA_GATEWAY"]});
        assert_eq!(through_tunnel(answer(one), &gateway), Ok(expected.clone()));
        let again = one.replace(r#""TTL_UNKNOWN""#, r#""VIA_GATEWAY","TTL_UNKNOWN","FROM_OTHER_CLOUD""#);
        assert_eq!(through_tunnel(answer(&again), &gateway), Ok(expected), "own warnings are given once, and here");
        for text in [r#"{"response":[]}"#, "{}", r#"{"response":[{},{}]}"#, r#"{"response":["text"]}"#] {
            assert_eq!(through_tunnel(answer(text), &gateway).unwrap_err().error_code, 500, "{text}");
        }
    }
}
