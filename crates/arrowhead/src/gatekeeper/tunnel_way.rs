//! Where another cloud has opened a tunnel, as far as its answer says.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{RelayPut, negotiation::ORIGIN};
use crate::{
    common_name::SystemCommonName,
    dialogue::SessionId,
    form::{ProviderConnectionResponse, RelayRequest},
    json,
    record::{Cloud, Relay},
    snapshot::Snapshot,
};

/// What has to be known of a tunnel to tell the gateway that has opened it that nobody comes. An answer that is of no use otherwise may say it all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelWay {
    relay: RelayPut,
    /// What the tunnel's queues are known by.
    pub queue_id: SessionId,
    /// The gateway that has opened it, which is one of the cloud that has answered.
    pub peer: SystemCommonName,
}

impl TunnelWay {
    /// Of an answer of `target`, whatever else is in it; `None`: it names no tunnel of that cloud.
    pub fn read(answer: &str, target: &Cloud) -> Option<Self> {
        let mut members: Map<String, Value> = json::parse_object(answer).ok()?;
        let relay: RelayRequest = serde_json::from_value(members.remove("relay")?).ok()?;
        let connection: ProviderConnectionResponse = serde_json::from_value(members.remove("connectionInfo")?).ok()?;
        let peer = SystemCommonName::parse(connection.peer_name?.trim()).ok()?;
        let way = Self { relay: RelayPut::parse(relay, ORIGIN).ok()?, queue_id: SessionId::parse(connection.queue_id?.trim()).ok()?, peer };
        is_of(&way.peer, target).then_some(way)
    }

    /// This cloud's own record of the relay, of whichever kind; `None`: it is not known here, and not connected to.
    pub fn relay<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Arc<Relay>> {
        snapshot.relays().find(|relay| self.relay.is(relay))
    }
}

/// Whether a gateway is one of a cloud.
pub(super) fn is_of(peer: &SystemCommonName, cloud: &Cloud) -> bool {
    (peer.cloud.operator.as_str(), peer.cloud.cloud.as_str()) == (cloud.operator.as_str(), cloud.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is of no use to a consumer, and says where the tunnel is.
    fn answer() -> String {
        let id = "aB3".repeat(16);
        format!(
            r#"{{"response":"none","useGateway":"perhaps","relay":{{"address":"Relay.Example","port":5573}},
            "connectionInfo":{{"queueId":"{id}","peerName":"gateway.c.o.arrowhead.eu"}}}}"#
        )
    }

    #[test]
    fn an_answer_that_is_of_no_use_says_where_its_tunnel_is() {
        let target = Cloud::neighbor(2, "o", "c");
        let way = TunnelWay::read(&answer(), &target).unwrap();
        assert_eq!((&*way.relay.address, way.relay.port), ("relay.example", 5573));
        assert_eq!((way.queue_id.as_str(), way.peer.to_string().as_str()), (&*"aB3".repeat(16), "gateway.c.o.arrowhead.eu"));
        for (part, instead) in [
            ("gateway.c.o.", "gateway.d.o."),
            ("gateway.c.o.", "c.o."),
            ("aB3aB3", "aB3"),
            (r#""relay""#, r#""x""#),
            (r#""connectionInfo""#, r#""x""#),
            ("5573", "-1"),
            (r#"{"response""#, r#"["response""#),
        ] {
            let text = answer().replacen(part, instead, 1);
            assert_ne!(text, answer(), "{part}");
            assert_eq!(TunnelWay::read(&text, &target), None, "{part}");
        }
    }

    #[test]
    fn only_a_relay_that_is_known_here_is_gone_to() {
        let way = TunnelWay::read(&answer(), &Cloud::neighbor(2, "o", "c")).unwrap();
        assert!(way.relay(&Snapshot::default()).is_none());
    }
}
