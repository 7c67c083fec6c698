//! Request bodies of the Gatekeeper, and what two gatekeepers say to each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ServiceQueryForm, SystemRequest};
use crate::{json, metadata::MetadataForm};

form! {
    /// A cloud, as requests name one, and as the Gatekeeper's management makes one.
    CloudRequest {
        /// Name part rule.
        #[serde(deserialize_with = "json::text")]
        operator: Option<String>,
        /// Name part rule.
        #[serde(deserialize_with = "json::text")]
        name: Option<String>,
        /// Whether it works with certificates; absent is not.
        #[serde(deserialize_with = "json::flag")]
        secure: Option<bool>,
        /// Whether it is asked when this cloud has no provider; absent is not.
        #[serde(deserialize_with = "json::flag")]
        neighbor: Option<bool>,
        /// Base64 of its gatekeeper's public key.
        #[serde(deserialize_with = "json::text")]
        authentication_info: Option<String>,
        /// Ids of the relays its gatekeeper is reached by.
        #[serde(deserialize_with = "json::integers")]
        gatekeeper_relay_ids: Option<Vec<Option<i64>>>,
        /// Ids of the relays that are for tunnels to it only.
        #[serde(deserialize_with = "json::integers")]
        gateway_relay_ids: Option<Vec<Option<i64>>>,
    }
}

form! {
    /// An element of `POST /gatekeeper/mgmt/relays`, and a relay that two clouds talk about.
    RelayRequest {
        /// Host name or IP address.
        #[serde(deserialize_with = "json::text")]
        address: Option<String>,
        /// 0 to 65535.
        #[serde(deserialize_with = "json::integer")]
        port: Option<i64>,
        /// Base64 of its public key.
        #[serde(deserialize_with = "json::text")]
        authentication_info: Option<String>,
        /// Whether it is reached by TLS; absent is not.
        #[serde(deserialize_with = "json::flag")]
        secure: Option<bool>,
        /// Whether it is for tunnels to the clouds only that it is assigned to; absent is not.
        #[serde(deserialize_with = "json::flag")]
        exclusive: Option<bool>,
        /// `GATEKEEPER_RELAY`, `GATEWAY_RELAY` or `GENERAL_RELAY`; blank is the last one.
        #[serde(rename = "type", deserialize_with = "json::text")]
        relay_type: Option<String>,
    }
}

form! {
    /// `POST /gatekeeper/mgmt/clouds/assign`.
    RelayAssignmentRequest {
        /// Id of the cloud.
        #[serde(deserialize_with = "json::integer")]
        cloud_id: Option<i64>,
        /// Ids of further relays its gatekeeper is reached by.
        #[serde(deserialize_with = "json::integers")]
        gatekeeper_relay_ids: Option<Vec<Option<i64>>>,
        /// Ids of further relays for tunnels to it.
        #[serde(deserialize_with = "json::integers")]
        gateway_relay_ids: Option<Vec<Option<i64>>>,
    }
}

form! {
    /// `POST /gatekeeper/init_gsd`.
    GsdQueryForm {
        /// What is wanted.
        #[serde(deserialize_with = "json::object")]
        requested_service: Option<ServiceQueryForm>,
        /// Clouds to ask, if any of them is known; otherwise the neighbours are asked.
        #[serde(deserialize_with = "json::objects")]
        preferred_clouds: Option<Vec<Option<CloudRequest>>>,
        /// Whether measurements of the providers' quality are wanted too.
        #[serde(rename = "needQoSMeasurements", deserialize_with = "json::flag")]
        need_qos_measurements: Option<bool>,
    }
}

form! {
    /// `POST /gatekeeper/init_multi_gsd`.
    GsdMultiQueryForm {
        /// What is wanted.
        #[serde(deserialize_with = "json::objects")]
        requested_services: Option<Vec<Option<ServiceQueryForm>>>,
        /// Clouds to ask, if any of them is known; otherwise the neighbours are asked.
        #[serde(deserialize_with = "json::objects")]
        preferred_clouds: Option<Vec<Option<CloudRequest>>>,
    }
}

form! {
    /// `POST /gatekeeper/init_icn`.
    IcnRequestForm {
        /// What is wanted.
        #[serde(deserialize_with = "json::object")]
        requested_service: Option<ServiceQueryForm>,
        /// Id of the cloud that is asked.
        #[serde(deserialize_with = "json::integer")]
        target_cloud_id: Option<i64>,
        /// Who wants to consume.
        #[serde(deserialize_with = "json::object")]
        requester_system: Option<SystemRequest>,
        /// Providers of that cloud to prefer.
        #[serde(deserialize_with = "json::objects")]
        preferred_systems: Option<Vec<Option<SystemRequest>>>,
        /// Relays to prefer for a tunnel.
        #[serde(deserialize_with = "json::objects")]
        preferred_gateway_relays: Option<Vec<Option<RelayRequest>>>,
        /// Flags of the orchestration by name.
        #[serde(deserialize_with = "json::flag_map")]
        negotiation_flags: Option<BTreeMap<String, Option<bool>>>,
        /// Commands by name.
        #[serde(deserialize_with = "json::text_map")]
        commands: Option<MetadataForm>,
    }
}

form! {
    /// What a gatekeeper calls another one with, on the topic that all hear.
    Advertisement {
        /// Common name of the gatekeeper that calls.
        #[serde(rename = "senderCN", deserialize_with = "json::text")]
        sender_cn: Option<String>,
        /// Base64 of its public key.
        #[serde(deserialize_with = "json::text")]
        sender_public_key: Option<String>,
        /// Common name of the gatekeeper that is called.
        #[serde(rename = "recipientCN", deserialize_with = "json::text")]
        recipient_cn: Option<String>,
        /// The session id, sealed for the gatekeeper that is called.
        #[serde(deserialize_with = "json::text")]
        session_id: Option<String>,
    }
}

form! {
    /// Asks another cloud who offers a service (`gsd_poll`).
    GsdPollRequest {
        /// What is wanted.
        #[serde(deserialize_with = "json::object")]
        requested_service: Option<ServiceQueryForm>,
        /// Who asks.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
        /// Whether the asker has a gateway.
        #[serde(deserialize_with = "json::flag")]
        gateway_is_present: Option<bool>,
        /// Whether measurements of the providers' quality are wanted too.
        #[serde(rename = "needQoSMeasurements", deserialize_with = "json::flag")]
        need_qos_measurements: Option<bool>,
    }
}

form! {
    /// Its answer, as it is read. Without a cloud nothing is offered.
    GsdPollResponse {
        /// Whose answer it is.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
        /// The service definition that was asked about.
        #[serde(deserialize_with = "json::text")]
        required_service_definition: Option<String>,
        /// Over what it is offered.
        #[serde(deserialize_with = "json::texts")]
        available_interfaces: Option<Vec<Option<String>>>,
        /// By how many.
        #[serde(deserialize_with = "json::integer")]
        num_of_providers: Option<i64>,
        /// How good they are, as the QoS Monitor says.
        qos_measurements: Option<Vec<Value>>,
        /// Pairs that the request had asked for.
        #[serde(deserialize_with = "json::text_map")]
        service_metadata: Option<MetadataForm>,
        /// Whether the service is reached through a gateway only.
        #[serde(deserialize_with = "json::flag")]
        gateway_is_mandatory: Option<bool>,
    }
}

form! {
    /// Asks another cloud which of several services it offers (`multi_gsd_poll`).
    GsdMultiPollRequest {
        /// What is wanted.
        #[serde(deserialize_with = "json::objects")]
        requested_services: Option<Vec<Option<ServiceQueryForm>>>,
        /// Who asks.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
        /// Whether the asker has a gateway.
        #[serde(deserialize_with = "json::flag")]
        gateway_is_present: Option<bool>,
    }
}

form! {
    /// Its answer, as it is read.
    GsdMultiPollResponse {
        /// Whose answer it is; without one nothing is offered.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
        /// What it offers.
        #[serde(deserialize_with = "json::texts")]
        provided_service_definitions: Option<Vec<Option<String>>>,
    }
}

form! {
    /// Asks another cloud to let a consumer use a service (`icn_proposal`).
    IcnProposalRequest {
        /// What is wanted.
        #[serde(deserialize_with = "json::object")]
        requested_service: Option<ServiceQueryForm>,
        /// Who asks.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
        /// Who wants to consume.
        #[serde(deserialize_with = "json::object")]
        requester_system: Option<SystemRequest>,
        /// Providers to prefer.
        #[serde(deserialize_with = "json::objects")]
        preferred_systems: Option<Vec<Option<SystemRequest>>>,
        /// The asker's relays for tunnels to this cloud only.
        #[serde(deserialize_with = "json::objects")]
        preferred_gateway_relays: Option<Vec<Option<RelayRequest>>>,
        /// The asker's relays for tunnels to any cloud.
        #[serde(deserialize_with = "json::objects")]
        known_gateway_relays: Option<Vec<Option<RelayRequest>>>,
        /// Flags of the orchestration by name.
        #[serde(deserialize_with = "json::flag_map")]
        negotiation_flags: Option<BTreeMap<String, Option<bool>>>,
        /// Commands by name.
        #[serde(deserialize_with = "json::text_map")]
        commands: Option<MetadataForm>,
        /// Whether the asker has a gateway.
        #[serde(deserialize_with = "json::flag")]
        gateway_is_present: Option<bool>,
        /// Base64 of its gateway's public key.
        #[serde(deserialize_with = "json::text")]
        consumer_gateway_public_key: Option<String>,
    }
}

form! {
    /// Its answer, as it is read. Results are kept as they came: they are the consumer's to read.
    IcnProposalResponse {
        /// What the consumer may use; of a tunnel exactly one.
        response: Option<Vec<Value>>,
        /// Whether there is a tunnel.
        #[serde(deserialize_with = "json::flag")]
        use_gateway: Option<bool>,
        /// The relay of the tunnel.
        #[serde(deserialize_with = "json::object")]
        relay: Option<RelayRequest>,
        /// The tunnel's end at the provider.
        #[serde(deserialize_with = "json::object")]
        connection_info: Option<ProviderConnectionResponse>,
    }
}

form! {
    /// What the provider's gateway says of a tunnel that it has opened.
    ProviderConnectionResponse {
        /// What the tunnel's queues are known by.
        #[serde(deserialize_with = "json::text")]
        queue_id: Option<String>,
        /// Common name of the provider's gateway.
        #[serde(deserialize_with = "json::text")]
        peer_name: Option<String>,
        /// Base64 of its public key.
        #[serde(rename = "providerGWPublicKey", deserialize_with = "json::text")]
        provider_gw_public_key: Option<String>,
    }
}

form! {
    /// Asks another cloud where its systems are, or whether it is reached without a gateway (`system_address_list`, `access_type`).
    RequesterCloudForm {
        /// Who asks.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
    }
}

form! {
    /// Where the systems of a cloud are.
    SystemAddresses {
        /// Host names and IP addresses.
        #[serde(deserialize_with = "json::texts")]
        addresses: Option<Vec<Option<String>>>,
    }
}

form! {
    /// Whether a cloud is reached without a gateway.
    AccessType {
        /// Absent is not.
        #[serde(deserialize_with = "json::flag")]
        direct_access: Option<bool>,
    }
}

form! {
    /// `POST /gatekeeper/init_relay_test`, and what the other cloud is sent (`qos_relay_test`).
    RelayTestProposal {
        /// Who asks; the Gatekeeper writes it.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
        /// Who is asked.
        #[serde(deserialize_with = "json::object")]
        target_cloud: Option<CloudRequest>,
        /// The relay that is tested.
        #[serde(deserialize_with = "json::object")]
        relay: Option<RelayRequest>,
        /// Base64 of the public key of the asking cloud's QoS Monitor.
        #[serde(rename = "senderQoSMonitorPublicKey", deserialize_with = "json::text")]
        sender_qos_monitor_public_key: Option<String>,
    }
}

form! {
    /// What the cloud answers that joins a test of a relay.
    RelayTestAnswer {
        /// By what the queues of the test are known.
        #[serde(deserialize_with = "json::text")]
        queue_id: Option<String>,
        /// By whose name they are called.
        #[serde(deserialize_with = "json::text")]
        peer_name: Option<String>,
        /// Base64 of the public key of whoever takes part there.
        #[serde(rename = "receiverQoSMonitorPublicKey", deserialize_with = "json::text")]
        receiver_qos_monitor_public_key: Option<String>,
    }
}
