//! Request bodies of the Gateway (reference section 8).

use serde::{Deserialize, Serialize};

use super::{CloudRequest, RelayRequest, SystemRequest};
use crate::json;

form! {
    /// `POST /gateway/connect_provider`.
    ProviderConnectionRequest {
        /// Where the gateways meet.
        #[serde(deserialize_with = "json::object")]
        relay: Option<RelayRequest>,
        /// Who consumes.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// Who is connected to.
        #[serde(deserialize_with = "json::object")]
        provider: Option<SystemRequest>,
        /// The consumer's cloud.
        #[serde(deserialize_with = "json::object")]
        consumer_cloud: Option<CloudRequest>,
        /// The provider's cloud.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
        /// What is consumed.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
        /// Base64 of the public key of the consumer's gateway.
        #[serde(rename = "consumerGWPublicKey", deserialize_with = "json::text")]
        consumer_gw_public_key: Option<String>,
    }
}

form! {
    /// `POST /gateway/connect_consumer`.
    ConsumerConnectionRequest {
        /// Where the gateways meet.
        #[serde(deserialize_with = "json::object")]
        relay: Option<RelayRequest>,
        /// What the tunnel's queues are known by.
        #[serde(deserialize_with = "json::text")]
        queue_id: Option<String>,
        /// Common name of the provider's gateway.
        #[serde(deserialize_with = "json::text")]
        peer_name: Option<String>,
        /// Base64 of its public key.
        #[serde(rename = "providerGWPublicKey", deserialize_with = "json::text")]
        provider_gw_public_key: Option<String>,
        /// Who consumes.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// Who is reached.
        #[serde(deserialize_with = "json::object")]
        provider: Option<SystemRequest>,
        /// The consumer's cloud.
        #[serde(deserialize_with = "json::object")]
        consumer_cloud: Option<CloudRequest>,
        /// The provider's cloud.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
        /// What is consumed.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
    }
}

form! {
    /// A session of the Gateway, as it lists them and as it is asked to close one.
    ActiveSession {
        /// What its queues are known by.
        #[serde(deserialize_with = "json::text")]
        queue_id: Option<String>,
        /// Common name of the provider's gateway.
        #[serde(deserialize_with = "json::text")]
        peer_name: Option<String>,
        /// Who consumes.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// The consumer's cloud.
        #[serde(deserialize_with = "json::object")]
        consumer_cloud: Option<CloudRequest>,
        /// Who is reached.
        #[serde(deserialize_with = "json::object")]
        provider: Option<SystemRequest>,
        /// The provider's cloud.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
        /// What is consumed.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
        /// Where the gateways meet.
        #[serde(deserialize_with = "json::object")]
        relay: Option<RelayRequest>,
        /// The queue to the provider's gateway.
        #[serde(deserialize_with = "json::text")]
        request_queue: Option<String>,
        /// Its queue of control words.
        #[serde(deserialize_with = "json::text")]
        request_control_queue: Option<String>,
        /// The queue to the consumer's gateway.
        #[serde(deserialize_with = "json::text")]
        response_queue: Option<String>,
        /// Its queue of control words.
        #[serde(deserialize_with = "json::text")]
        response_control_queue: Option<String>,
        /// When it was begun.
        #[serde(deserialize_with = "json::text")]
        session_started_at: Option<String>,
        /// The consumer's port; of the provider's side there is none.
        #[serde(deserialize_with = "json::integer")]
        consumer_server_socket_port: Option<i64>,
    }
}
