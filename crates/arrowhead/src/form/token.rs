//! Request bodies of Authorization that ask for tokens.

use serde::{Deserialize, Serialize};

use super::{CloudRequest, SystemRequest};
use crate::json;

form! {
    /// `POST /authorization/token`.
    TokenGenerationRequest {
        /// Who is to use the service.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// The consumer's cloud; absent is the own one.
        #[serde(deserialize_with = "json::object")]
        consumer_cloud: Option<CloudRequest>,
        /// At whom.
        #[serde(deserialize_with = "json::objects")]
        providers: Option<Vec<Option<TokenProviderRequest>>>,
        /// The service definition.
        #[serde(deserialize_with = "json::text")]
        service: Option<String>,
    }
}

form! {
    /// A provider that tokens are to be made for.
    TokenProviderRequest {
        /// The system, with its public key.
        #[serde(deserialize_with = "json::object")]
        provider: Option<SystemRequest>,
        /// A token for each of these interfaces.
        #[serde(deserialize_with = "json::texts")]
        service_interfaces: Option<Vec<Option<String>>>,
        /// Seconds they count; 0 and less is the default.
        #[serde(deserialize_with = "json::integer")]
        token_duration: Option<i64>,
    }
}
