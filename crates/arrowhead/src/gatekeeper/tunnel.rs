//! A tunnel that another cloud has opened for a consumer of this one.

use std::sync::Arc;

use serde_json::Value;

use super::{RelayPut, negotiation::ORIGIN, relay_request, through_tunnel, tunnel_way::is_of};
use crate::{
    common_name::SystemCommonName,
    error::ArrowheadError,
    form::{CloudRequest, ConsumerConnectionRequest, IcnProposalRequest, IcnProposalResponse, SystemRequest},
    record::{Cloud, Relay},
    snapshot::Snapshot,
    system::SystemReference,
};

/// What the other cloud says of it, checked.
#[derive(Clone, Debug)]
pub struct GrantedTunnel {
    answer: IcnProposalResponse,
    relay: RelayPut,
    queue_id: String,
    peer: SystemCommonName,
    peer_key: String,
    provider: SystemRequest,
    service_definition: String,
}

impl GrantedTunnel {
    /// Reads the answer of `target`, which says that it has opened one.
    pub(super) fn read(answer: IcnProposalResponse, target: &Cloud) -> Result<Self, ArrowheadError> {
        let refused = |what: String| {
            ArrowheadError::arrowhead(format!("Cloud {}.{} has opened a tunnel that cannot be used: {what}.", target.name, target.operator))
        };
        let missing = |what: &str| refused(format!("its answer has no {what}"));
        let relay = answer.relay.clone().ok_or_else(|| missing("relay"))?;
        let relay = RelayPut::parse(relay, ORIGIN).map_err(|error| refused(error.error_message))?;
        let connection = answer.connection_info.as_ref().ok_or_else(|| missing("connectionInfo"))?;
        let text = |text: &Option<String>, what: &str| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| missing(what))
        };
        let peer = SystemCommonName::parse(&text(&connection.peer_name, "peerName")?).map_err(|error| refused(error.to_string()))?;
        if !is_of(&peer, target) {
            return Err(refused(format!("its gateway {peer} is another cloud's")));
        }
        let (queue_id, peer_key) =
            (text(&connection.queue_id, "queueId")?, text(&connection.provider_gw_public_key, "providerGWPublicKey")?);
        let (Some(result), 1) = (answer.response.iter().flatten().next(), answer.response.iter().flatten().count()) else {
            let count = answer.response.iter().flatten().count();
            return Err(refused(format!("it is for {count} results, and one is expected")));
        };
        let provider = &result["provider"];
        let provider = SystemRequest {
            system_name: provider["systemName"].as_str().map(str::to_owned),
            address: provider["address"].as_str().map(str::to_owned),
            port: provider["port"].as_i64(),
            authentication_info: provider["authenticationInfo"].as_str().map(str::to_owned),
            metadata: None,
        };
        SystemReference::parse(Some(&provider), "Provider", ORIGIN).map_err(|error| refused(error.error_message))?;
        let service_definition = result["service"]["serviceDefinition"].as_str().map(str::to_owned).ok_or_else(|| missing("service"))?;
        Ok(Self { relay, queue_id, peer, peer_key, provider, service_definition, answer })
    }

    /// Whoever wants preferred providers only is led to no other one: which one is behind a tunnel is seen here for the last time.
    ///
    /// # Errors
    /// 401: it is none of those that were proposed.
    pub fn check_provider(&self, proposal: &IcnProposalRequest, target: &Cloud) -> Result<(), ArrowheadError> {
        let flags = proposal.negotiation_flags.iter().flatten();
        let only_preferred = flags.into_iter().any(|(flag, set)| flag == "onlyPreferred" && *set == Some(true));
        let key = |system: &SystemRequest| SystemReference::parse(Some(system), "Provider", ORIGIN).ok().map(|system| system.key);
        let mut preferred = proposal.preferred_systems.iter().flatten().flatten();
        if !only_preferred || preferred.any(|system| key(system) == key(&self.provider)) {
            return Ok(());
        }
        let SystemRequest { system_name, address, port, .. } = &self.provider;
        let (name, address, port) =
            (system_name.as_deref().unwrap_or_default(), address.as_deref().unwrap_or_default(), port.unwrap_or_default());
        Err(ArrowheadError::auth(format!(
            "Cloud {}.{} has opened a tunnel to {name} at {address}:{port}, which is none of the providers that are wanted only.",
            target.name, target.operator
        )))
    }

    /// The results that it was opened for: one.
    pub(super) fn results_mut(&mut self) -> &mut Vec<Value> {
        self.answer.response.get_or_insert_default()
    }

    /// This cloud's own record of the relay. Another one than those that it has proposed is not connected to, whatever the other cloud says.
    pub fn relay<'s>(&self, snapshot: &'s Snapshot, target: &'s Cloud) -> Result<&'s Arc<Relay>, ArrowheadError> {
        let dedicated = snapshot.relays_of(target).filter(|relay| relay.is_dedicated());
        let mut known = dedicated.chain(snapshot.relays().filter(|relay| relay.is_public_for_tunnels()));
        known.find(|relay| self.relay.is(relay)).ok_or_else(|| {
            ArrowheadError::auth(format!(
                "Cloud {}.{} has opened a tunnel at the relay {}:{}, which this cloud has not proposed.",
                target.name, target.operator, self.relay.address, self.relay.port
            ))
        })
    }

    /// What the own Gateway is asked for it.
    pub fn connection(&self, relay: &Relay, consumer: SystemRequest, own_cloud: CloudRequest, target: &Cloud) -> ConsumerConnectionRequest {
        ConsumerConnectionRequest {
            relay: Some(relay_request(relay)),
            queue_id: Some(self.queue_id.clone()),
            peer_name: Some(self.peer.to_string()),
            provider_gw_public_key: Some(self.peer_key.clone()),
            consumer: Some(consumer),
            provider: Some(self.provider.clone()),
            consumer_cloud: Some(own_cloud),
            provider_cloud: Some(cloud_request(target)),
            service_definition: Some(self.service_definition.clone()),
        }
    }

    /// The result as the consumer gets it: its provider is the own gateway.
    pub fn result(self, gateway: &SystemRequest) -> Result<Value, ArrowheadError> {
        through_tunnel(self.answer, gateway)
    }
}

/// A cloud, by its names.
pub fn cloud_request(cloud: &Cloud) -> CloudRequest {
    CloudRequest {
        operator: Some(cloud.operator.as_str().to_owned()),
        name: Some(cloud.name.as_str().to_owned()),
        ..CloudRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn target() -> Cloud {
        Cloud { authentication_info: Some("key".into()), ..Cloud::neighbor(2, "o", "c") }
    }

    #[test]
    fn a_tunnel_to_what_does_not_tell_its_quality_is_not_entered() {
        let read = |answer: &str| {
            let answer = json::parse_object(answer).unwrap();
            crate::gatekeeper::Negotiated::read(answer, &target(), true).unwrap()
        };
        let refused = read(ANSWER).check_quality(true, &target()).unwrap_err();
        assert!(refused.error_message.contains("c.o does not tell"), "{refused}");
        assert!(read(ANSWER).check_quality(false, &target()).is_ok());
        let mut told = read(&ANSWER.replace(r#""warnings":[]"#, r#""warnings":["QOS_KEPT"]"#));
        assert!(told.check_quality(true, &target()).is_ok());
        let crate::gatekeeper::Negotiated::Tunnel(mut tunnel) = told else { panic!("{told:?}") };
        assert_eq!(tunnel.results_mut()[0]["warnings"], serde_json::json!([]));
    }

    /// As a Java gatekeeper writes it.
    const ANSWER: &str = r#"{"response":[{"provider":{"id":7,"systemName":"sensor","address":"10.0.1.1","port":9000},"service":{"id":3,
        "serviceDefinition":"heat"},"warnings":[]}],"useGateway":true,"relay":{"id":1,"address":"Relay.Example","port":5573,"secure":true,
        "exclusive":false,"type":"GENERAL_RELAY"},"connectionInfo":{"queueId":"abc","peerName":"gateway.c.o.arrowhead.eu",
        "providerGWPublicKey":"key"}}"#;

    #[test]
    fn a_tunnel_to_another_provider_than_those_that_are_wanted_only_is_refused() {
        let tunnel = GrantedTunnel::read(json::parse_object(ANSWER).unwrap(), &target()).unwrap();
        let check = |only: bool, name: &str| {
            let proposal = format!(
                r#"{{"preferredSystems":[{{"systemName":"{name}","address":"10.0.1.1","port":9000}}],"negotiationFlags":{{"onlyPreferred":{only}}}}}"#
            );
            tunnel.check_provider(&json::parse_object(&proposal).unwrap(), &target())
        };
        assert_eq!((check(true, "Sensor"), check(false, "other")), (Ok(()), Ok(())));
        let refused = check(true, "other").unwrap_err();
        assert!(refused.error_code == 401 && refused.error_message.contains("sensor at 10.0.1.1:9000"), "{refused}");
    }

    #[test]
    fn a_tunnel_is_the_other_clouds_and_whole() {
        let read = |text: &str| GrantedTunnel::read(json::parse_object(text).unwrap(), &target());
        let tunnel = read(ANSWER).unwrap();
        assert_eq!(
            (tunnel.queue_id.as_str(), tunnel.service_definition.as_str(), &*tunnel.relay.address),
            ("abc", "heat", "relay.example")
        );
        for (part, instead, told) in [
            ("gateway.c.o.", "gateway.d.o.", "another cloud's"),
            ("gateway.c.o.", "c.o.", "is not of the form"),
            (r#""queueId":"abc""#, r#""queueId":" ""#, "no queueId"),
            (r#""connectionInfo""#, r#""other""#, "no connectionInfo"),
            (r#""relay""#, r#""other""#, "no relay"),
            (r#""port":5573"#, r#""port":-1"#, "Relay port"),
            (r#""port":9000"#, r#""port":90000"#, "port"),
            (r#""serviceDefinition""#, r#""name""#, "no service"),
            (r#""response":[{"#, r#""response":[{},{"#, "2 results"),
        ] {
            let text = ANSWER.replace(part, instead);
            assert_ne!(text, ANSWER, "{part}");
            let error = read(&text).unwrap_err();
            assert!(error.error_message.contains(told) && error.error_message.contains("c.o"), "{told}: {error}");
        }
    }
}
