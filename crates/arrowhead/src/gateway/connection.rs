//! Requests for tunnels, checked.

use crate::{
    common_name::SystemCommonName,
    dialogue::SessionId,
    error::ArrowheadError,
    form::{ActiveSession, CloudRequest, ConsumerConnectionRequest, ProviderConnectionRequest, RelayRequest, SystemRequest},
    gatekeeper::RelayPut,
    name::SystemName,
    record::RelayType,
    system::SystemReference,
    utc::UtcTime,
};

/// Who is connected by a tunnel, and for what.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionForm {
    /// Where the gateways meet.
    pub relay: RelayPut,
    /// Who consumes.
    pub consumer: SystemName,
    /// Who is reached.
    pub provider: SystemReference,
    /// Its name.
    pub provider_name: SystemName,
    /// What is told of it, as it came.
    told: ActiveSession,
}

/// What the members of both requests are.
struct Members<'f> {
    relay: &'f Option<RelayRequest>,
    consumer: &'f Option<SystemRequest>,
    provider: &'f Option<SystemRequest>,
    consumer_cloud: &'f Option<CloudRequest>,
    provider_cloud: &'f Option<CloudRequest>,
    service_definition: &'f Option<String>,
}

impl SessionForm {
    /// The consumer's cloud, `name.operator`.
    pub fn consumer_cloud(&self) -> String {
        named(&self.told.consumer_cloud)
    }

    /// The provider's.
    pub fn provider_cloud(&self) -> String {
        named(&self.told.provider_cloud)
    }

    /// The service, in lower case: definitions are alike however they are written.
    pub fn service(&self) -> String {
        self.told.service_definition.as_deref().unwrap_or_default().to_lowercase()
    }

    fn parse(members: &Members<'_>, origin: &str) -> Result<Self, ArrowheadError> {
        let relay = members.relay.clone().ok_or_else(|| ArrowheadError::bad_payload("Relay is null.", origin))?;
        let relay = RelayPut::parse(relay, origin)?;
        if relay.relay_type.is_none_or(|relay_type| relay_type == RelayType::GatekeeperRelay) {
            let what = "Relay type must be GATEWAY_RELAY or GENERAL_RELAY: no tunnel goes by another one.";
            return Err(ArrowheadError::bad_payload(what, origin));
        }
        let name = |reference: &SystemReference, what: &str| {
            SystemName::parse(&reference.name).map_err(|error| ArrowheadError::bad_payload(format!("{what}: system name {error}"), origin))
        };
        let consumer = name(&SystemReference::parse(members.consumer.as_ref(), "Consumer", origin)?, "Consumer")?;
        let provider = SystemReference::parse(members.provider.as_ref(), "Provider", origin)?;
        let provider_name = name(&provider, "Provider")?;
        for (cloud, what) in [(members.consumer_cloud, "Consumer cloud"), (members.provider_cloud, "Provider cloud")] {
            check_cloud(cloud.as_ref(), what, origin)?;
        }
        let service = text(members.service_definition, "Service definition", origin)?;
        let told = ActiveSession {
            consumer: members.consumer.clone(),
            consumer_cloud: members.consumer_cloud.clone(),
            provider: members.provider.clone(),
            provider_cloud: members.provider_cloud.clone(),
            service_definition: Some(service),
            relay: members.relay.clone(),
            ..ActiveSession::default()
        };
        Ok(Self { relay, consumer, provider, provider_name, told })
    }

    /// What is told of its session. `port` is the consumer's, on its side.
    pub fn told(&self, queue_id: &SessionId, peer: &SystemCommonName, started: UtcTime, port: Option<u16>) -> ActiveSession {
        let (request, response) = (queue_id.request_queue(peer), queue_id.response_queue(peer));
        ActiveSession {
            queue_id: Some(queue_id.as_str().to_owned()),
            peer_name: Some(peer.to_string()),
            request_control_queue: Some(control_queue(&request)),
            response_control_queue: Some(control_queue(&response)),
            request_queue: Some(request),
            response_queue: Some(response),
            session_started_at: Some(started.to_string()),
            consumer_server_socket_port: port.map(i64::from),
            ..self.told.clone()
        }
    }
}

/// A cloud by its names, which are alike however they are written.
fn named(cloud: &Option<CloudRequest>) -> String {
    let text = |text: Option<&String>| text.map(|text| text.trim().to_lowercase()).unwrap_or_default();
    let (name, operator) = cloud.as_ref().map(|cloud| (cloud.name.as_ref(), cloud.operator.as_ref())).unwrap_or_default();
    format!("{}.{}", text(name), text(operator))
}

/// The queue of control words beside one of bytes.
pub fn control_queue(queue: &str) -> String {
    format!("{queue}-CONTROL")
}

fn text(text: &Option<String>, what: &str, origin: &str) -> Result<String, ArrowheadError> {
    let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| ArrowheadError::bad_payload(format!("{what} is null or blank."), origin))
}

fn check_cloud(cloud: Option<&CloudRequest>, what: &str, origin: &str) -> Result<(), ArrowheadError> {
    let cloud = cloud.ok_or_else(|| ArrowheadError::bad_payload(format!("{what} is null."), origin))?;
    text(&cloud.operator, &format!("{what}: operator"), origin)?;
    text(&cloud.name, &format!("{what}: name"), origin).map(drop)
}

/// A tunnel to a provider of this cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderConnection {
    /// Who and what.
    pub form: SessionForm,
    /// Base64 of the public key of the consumer's gateway.
    pub peer_key: String,
}

impl ProviderConnection {
    /// Checks a request.
    pub fn parse(request: &ProviderConnectionRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let ProviderConnectionRequest {
            relay,
            consumer,
            provider,
            consumer_cloud,
            provider_cloud,
            service_definition,
            consumer_gw_public_key,
        } = request;
        let members = Members { relay, consumer, provider, consumer_cloud, provider_cloud, service_definition };
        let form = SessionForm::parse(&members, origin)?;
        Ok(Self { form, peer_key: text(consumer_gw_public_key, "Consumer gateway public key", origin)? })
    }
}

/// A tunnel for a consumer of this cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerConnection {
    /// Who and what.
    pub form: SessionForm,
    /// What the tunnel's queues are known by.
    pub queue_id: SessionId,
    /// The provider's gateway.
    pub peer: SystemCommonName,
    /// Base64 of its public key.
    pub peer_key: String,
}

impl ConsumerConnection {
    /// Checks a request.
    pub fn parse(request: &ConsumerConnectionRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let ConsumerConnectionRequest { relay, consumer, provider, consumer_cloud, provider_cloud, service_definition, .. } = request;
        let members = Members { relay, consumer, provider, consumer_cloud, provider_cloud, service_definition };
        let form = SessionForm::parse(&members, origin)?;
        let peer_key = text(&request.provider_gw_public_key, "Provider gateway public key", origin)?;
        let queue_id = text(&request.queue_id, "Queue id", origin)?;
        let queue_id = SessionId::parse(&queue_id).map_err(|error| ArrowheadError::bad_payload(format!("Queue id: {error}."), origin))?;
        let peer = text(&request.peer_name, "Peer name", origin)?;
        let peer = SystemCommonName::parse(&peer).map_err(|error| ArrowheadError::bad_payload(format!("Peer name: {error}."), origin))?;
        Ok(Self { form, queue_id, peer, peer_key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    /// As a Java gatekeeper asks.
    const REQUEST: &str = r#"{"relay":{"address":"relay","port":5573,"secure":true,"exclusive":false,"type":"GENERAL_RELAY"},
        "consumer":{"systemName":"Display","address":"10.0.0.1","port":8000},"provider":{"systemName":"sensor","address":"10.0.1.1","port":9000},
        "consumerCloud":{"operator":"o","name":"one"},"providerCloud":{"operator":"o","name":"two"},"serviceDefinition":"heat",
        "queueId":"QUEUEID","peerName":"gateway.two.o.arrowhead.eu","providerGWPublicKey":"key","consumerGWPublicKey":"key"}"#;

    fn request(part: &str, instead: &str) -> String {
        let good = REQUEST.replace("QUEUEID", &"aB3".repeat(16));
        let text = good.replace(part, instead);
        assert!(part.is_empty() || text != good, "{part}");
        text
    }

    fn consumer(text: &str) -> Result<ConsumerConnection, ArrowheadError> {
        ConsumerConnection::parse(&json::parse_object(text).unwrap(), "/x")
    }

    #[test]
    fn what_a_tunnel_needs_is_asked_for() {
        let connection = consumer(&request("", "")).unwrap();
        assert_eq!((connection.form.consumer.as_str(), connection.form.provider.port), ("display", 9000));
        assert_eq!((connection.form.consumer_cloud().as_str(), connection.form.provider_cloud().as_str()), ("one.o", "two.o"));
        assert!(ProviderConnection::parse(&json::parse_object(&request("", "")).unwrap(), "/x").is_ok());
        for (part, instead, told) in [
            (r#""relay":{"#, r#""x":{"#, "Relay is null"),
            ("GENERAL_RELAY", "GATEKEEPER_RELAY", "no tunnel goes by another"),
            (r#","type":"GENERAL_RELAY""#, "", "no tunnel goes by another"),
            (r#""consumer":"#, r#""x":"#, "Consumer is null"),
            ("Display", "dis_play", "Consumer: system name"),
            (r#""provider":"#, r#""x":"#, "Provider is null"),
            (r#""consumerCloud":{"operator":"o""#, r#""consumerCloud":{"operator":" ""#, "Consumer cloud: operator"),
            (r#""providerCloud":"#, r#""x":"#, "Provider cloud is null"),
            (r#""heat""#, r#""""#, "Service definition"),
            ("aB3aB3", "aB3", "Queue id"),
            ("gateway.two.o.", "two.o.", "Peer name"),
            (r#""providerGWPublicKey":"key""#, r#""providerGWPublicKey":" ""#, "Provider gateway public key"),
        ] {
            let error = consumer(&request(part, instead)).unwrap_err();
            assert!(error.error_code == 400 && error.error_message.contains(told), "{told}: {error}");
        }
        let no_key = request(r#""consumerGWPublicKey":"key""#, r#""x":"key""#);
        let error = ProviderConnection::parse(&json::parse_object(&no_key).unwrap(), "/x").unwrap_err();
        assert!(error.error_message.contains("Consumer gateway public key"), "{error}");
    }

    #[test]
    fn a_session_is_told_with_its_queues() {
        let connection = consumer(&request("", "")).unwrap();
        let told = connection.form.told(&connection.queue_id, &connection.peer, UtcTime::from_unix_seconds(0), Some(8000));
        let queue = format!("-gateway.two.o.arrowhead.eu-{}", "aB3".repeat(16));
        assert_eq!(told.request_queue.unwrap(), format!("REQ{queue}"));
        assert_eq!(told.response_control_queue.unwrap(), format!("RESP{queue}-CONTROL"));
        assert_eq!((told.session_started_at.as_deref(), told.consumer_server_socket_port), (Some("1970-01-01T00:00:00Z"), Some(8000)));
        assert_eq!(told.consumer.unwrap().system_name.as_deref(), Some("Display"), "as it came");
    }
}
