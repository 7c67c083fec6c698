//! Request bodies of the Orchestrator.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CloudRequest, ServiceQueryForm, SystemRequest};
use crate::{json, metadata::MetadataForm};

form! {
    /// A provider the requester would rather have; with a cloud it is one of another cloud.
    PreferredProvider {
        /// The system.
        #[serde(deserialize_with = "json::object")]
        provider_system: Option<SystemRequest>,
        /// Its cloud; absent is the own one.
        #[serde(deserialize_with = "json::object")]
        provider_cloud: Option<CloudRequest>,
    }
}

form! {
    /// `POST /orchestrator/orchestration`.
    OrchestrationForm {
        /// Who asks.
        #[serde(deserialize_with = "json::object")]
        requester_system: Option<SystemRequest>,
        /// The cloud the requester is of, in external requests.
        #[serde(deserialize_with = "json::object")]
        requester_cloud: Option<CloudRequest>,
        /// What is wanted.
        #[serde(deserialize_with = "json::object")]
        requested_service: Option<ServiceQueryForm>,
        /// Flags by name; unknown names are ignored.
        #[serde(deserialize_with = "json::flag_map")]
        orchestration_flags: Option<BTreeMap<String, Option<bool>>>,
        /// Providers to prefer.
        #[serde(deserialize_with = "json::objects")]
        preferred_providers: Option<Vec<Option<PreferredProvider>>>,
        /// Commands by name.
        #[serde(deserialize_with = "json::text_map")]
        commands: Option<MetadataForm>,
        /// Requirements on the quality of service.
        #[serde(deserialize_with = "json::text_map")]
        qos_requirements: Option<MetadataForm>,
    }
}

form! {
    /// An element of `POST /orchestrator/mgmt/store`.
    StoreRequest {
        /// What is to be consumed.
        #[serde(deserialize_with = "json::text")]
        service_definition_name: Option<String>,
        /// System id of the consumer.
        #[serde(deserialize_with = "json::integer")]
        consumer_system_id: Option<i64>,
        /// From whom.
        #[serde(deserialize_with = "json::object")]
        provider_system: Option<SystemRequest>,
        /// The provider's cloud; absent is the own one.
        #[serde(deserialize_with = "json::object")]
        cloud: Option<CloudRequest>,
        /// Over what.
        #[serde(deserialize_with = "json::text")]
        service_interface_name: Option<String>,
        /// Place in the group, from 1.
        #[serde(deserialize_with = "json::integer")]
        priority: Option<i64>,
        /// Free pairs.
        #[serde(deserialize_with = "json::text_map")]
        attribute: Option<MetadataForm>,
    }
}

form! {
    /// `POST /orchestrator/mgmt/store/all_by_consumer`.
    StoreSearchRequest {
        /// System id of the consumer.
        #[serde(deserialize_with = "json::integer")]
        consumer_system_id: Option<i64>,
        /// Which service definition.
        #[serde(deserialize_with = "json::text")]
        service_definition_name: Option<String>,
        /// Which interface; absent is any.
        #[serde(deserialize_with = "json::text")]
        service_interface_name: Option<String>,
    }
}

form! {
    /// `POST /orchestrator/mgmt/store/modify_priorities`.
    PriorityRequest {
        /// New priorities by entry id.
        #[serde(deserialize_with = "json::integer_map")]
        priority_map: Option<BTreeMap<i64, Option<i64>>>,
    }
}

form! {
    /// Systems by name, metadata or both.
    SystemDescriberRequest {
        /// Name part rule.
        #[serde(deserialize_with = "json::text")]
        system_name: Option<String>,
        /// Pairs the systems have.
        #[serde(deserialize_with = "json::text_map")]
        metadata: Option<MetadataForm>,
    }
}

form! {
    /// An element of `POST /orchestrator/store/flexible`.
    FlexibleRuleRequest {
        /// Which consumers.
        #[serde(deserialize_with = "json::object")]
        consumer_system: Option<SystemDescriberRequest>,
        /// Which providers.
        #[serde(deserialize_with = "json::object")]
        provider_system: Option<SystemDescriberRequest>,
        /// What.
        #[serde(deserialize_with = "json::text")]
        service_definition_name: Option<String>,
        /// Over what; absent is anything.
        #[serde(deserialize_with = "json::text")]
        service_interface_name: Option<String>,
        /// Pairs the service must have.
        #[serde(deserialize_with = "json::text_map")]
        service_metadata: Option<MetadataForm>,
        /// Rules of smaller numbers come first; absent is last.
        #[serde(deserialize_with = "json::integer")]
        priority: Option<i64>,
    }
}

form! {
    /// `POST /orchestrator/qos_temporary_lock` and `POST /orchestrator/qos_reservations`. Results are kept as they came, because
    /// those that could be locked are answered.
    ReservationRequest {
        /// For whom.
        #[serde(deserialize_with = "json::object")]
        requester: Option<SystemRequest>,
        /// The orchestration's results.
        or_list: Option<Vec<serde_json::Value>>,
        /// The one that was chosen; only of a reservation.
        selected: Option<serde_json::Value>,
    }
}
