//! Request bodies as they come: every member optional, scalars lenient ([`crate::json`]), unknown members ignored.
//!
//! A form decides nothing; the modules of the core systems turn it into an operation or say what is wrong with it. The
//! member names are the wire's (reference section 2). Forms are written with their nulls, as upstream's are.

use serde::{Deserialize, Serialize};

use crate::{json, metadata::MetadataForm};

macro_rules! form {
    ($(#[$documentation:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$member])* pub $field: $type,)*
        }
    };
}

mod gatekeeper;
mod gateway;
mod orchestrator;
mod token;

pub use self::{gatekeeper::*, gateway::*, orchestrator::*, token::*};

form! {
    /// A system, as requests name one.
    SystemRequest {
        /// Name part rule.
        #[serde(deserialize_with = "json::text")]
        system_name: Option<String>,
        /// Host name or IP address.
        #[serde(deserialize_with = "json::text")]
        address: Option<String>,
        /// 0 to 65535.
        #[serde(deserialize_with = "json::integer")]
        port: Option<i64>,
        /// Base64 of the public key's SubjectPublicKeyInfo.
        #[serde(deserialize_with = "json::text")]
        authentication_info: Option<String>,
        /// Free pairs.
        #[serde(deserialize_with = "json::text_map")]
        metadata: Option<MetadataForm>,
    }
}

form! {
    /// `POST /serviceregistry/register`.
    ServiceRegistryRequest {
        /// What is offered.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
        /// Who offers it.
        #[serde(deserialize_with = "json::object")]
        provider_system: Option<SystemRequest>,
        /// Where at the provider; absent is empty.
        #[serde(deserialize_with = "json::text")]
        service_uri: Option<String>,
        /// Until when; absent is for ever.
        #[serde(deserialize_with = "json::text")]
        end_of_validity: Option<String>,
        /// `NOT_SECURE`, `CERTIFICATE` or `TOKEN`.
        #[serde(deserialize_with = "json::text")]
        secure: Option<String>,
        /// Free pairs.
        #[serde(deserialize_with = "json::text_map")]
        metadata: Option<MetadataForm>,
        /// Absent is 1.
        #[serde(deserialize_with = "json::integer")]
        version: Option<i64>,
        /// At least one.
        #[serde(deserialize_with = "json::texts")]
        interfaces: Option<Vec<Option<String>>>,
    }
}

form! {
    /// `POST /serviceregistry/query`, and what an orchestration asks for.
    ServiceQueryForm {
        /// What is wanted.
        #[serde(deserialize_with = "json::text")]
        service_definition_requirement: Option<String>,
        /// At least one of them, if any is given.
        #[serde(deserialize_with = "json::texts")]
        interface_requirements: Option<Vec<Option<String>>>,
        /// One of `NOT_SECURE`, `CERTIFICATE`, `TOKEN`, if any is given.
        security_requirements: Option<Vec<Option<crate::record::Security>>>,
        /// Pairs the service's metadata must contain.
        #[serde(deserialize_with = "json::text_map")]
        metadata_requirements: Option<MetadataForm>,
        /// Exactly this version.
        #[serde(deserialize_with = "json::integer")]
        version_requirement: Option<i64>,
        /// At least this version.
        #[serde(deserialize_with = "json::integer")]
        min_version_requirement: Option<i64>,
        /// At most this version.
        #[serde(deserialize_with = "json::integer")]
        max_version_requirement: Option<i64>,
        /// One of `HOSTNAME`, `IPV4`, `IPV6`, if any is given.
        provider_address_type_requirements: Option<Vec<Option<crate::address::AddressKind>>>,
        /// Only providers that accept a TCP connection now.
        #[serde(deserialize_with = "json::flag")]
        ping_providers: Option<bool>,
    }
}

form! {
    /// `POST /serviceregistry/query/multi`.
    ServiceQueryFormList {
        /// Answered in this order.
        #[serde(deserialize_with = "json::objects")]
        forms: Option<Vec<Option<ServiceQueryForm>>>,
    }
}

form! {
    /// `POST /serviceregistry/mgmt/services`.
    ServiceDefinitionRequest {
        /// Its name.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
    }
}

form! {
    /// `POST /serviceregistry/mgmt/interfaces`.
    ServiceInterfaceRequest {
        /// Its name.
        #[serde(deserialize_with = "json::text")]
        interface_name: Option<String>,
    }
}

form! {
    /// `POST /authorization/mgmt/intracloud`.
    IntracloudRuleRequest {
        /// System id of the consumer.
        #[serde(deserialize_with = "json::integer")]
        consumer_id: Option<i64>,
        /// System ids of the providers.
        #[serde(deserialize_with = "json::integers")]
        provider_ids: Option<Vec<Option<i64>>>,
        /// Ids of the service definitions.
        #[serde(deserialize_with = "json::integers")]
        service_definition_ids: Option<Vec<Option<i64>>>,
        /// Ids of the interfaces.
        #[serde(deserialize_with = "json::integers")]
        interface_ids: Option<Vec<Option<i64>>>,
    }
}

form! {
    /// An id with a list of ids.
    IdIdList {
        /// For instance a provider.
        #[serde(deserialize_with = "json::integer")]
        id: Option<i64>,
        /// For instance its interfaces.
        #[serde(deserialize_with = "json::integers")]
        id_list: Option<Vec<Option<i64>>>,
    }
}

form! {
    /// `POST /authorization/intracloud/check`.
    IntracloudCheckRequest {
        /// Who wants to consume.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// Which service definition.
        #[serde(deserialize_with = "json::integer")]
        service_definition_id: Option<i64>,
        /// From whom, over what.
        #[serde(deserialize_with = "json::objects")]
        provider_ids_with_interface_ids: Option<Vec<Option<IdIdList>>>,
    }
}

form! {
    /// `POST /authorization/subscription/check`.
    SubscriptionCheckRequest {
        /// The subscriber.
        #[serde(deserialize_with = "json::object")]
        consumer: Option<SystemRequest>,
        /// The publishers in question; absent means all.
        #[serde(deserialize_with = "json::objects")]
        publishers: Option<Vec<Option<SystemRequest>>>,
    }
}

form! {
    /// `POST /authorization/mgmt/intercloud`.
    InterCloudRuleRequest {
        /// Id of the cloud that may consume.
        #[serde(deserialize_with = "json::integer")]
        cloud_id: Option<i64>,
        /// System ids of the providers.
        #[serde(deserialize_with = "json::integers")]
        provider_id_list: Option<Vec<Option<i64>>>,
        /// Ids of the service definitions.
        #[serde(deserialize_with = "json::integers")]
        service_definition_id_list: Option<Vec<Option<i64>>>,
        /// Ids of the interfaces.
        #[serde(deserialize_with = "json::integers")]
        interface_id_list: Option<Vec<Option<i64>>>,
    }
}

form! {
    /// `POST /authorization/intercloud/check`.
    InterCloudCheckRequest {
        /// Which cloud wants to consume.
        #[serde(deserialize_with = "json::object")]
        cloud: Option<CloudRequest>,
        /// Which service definition, by name.
        #[serde(deserialize_with = "json::text")]
        service_definition: Option<String>,
        /// From whom, over what.
        #[serde(deserialize_with = "json::objects")]
        provider_ids_with_interface_ids: Option<Vec<Option<IdIdList>>>,
    }
}

form! {
    /// `POST /eventhandler/subscribe`.
    SubscriptionRequest {
        /// Which events.
        #[serde(deserialize_with = "json::text")]
        event_type: Option<String>,
        /// Who subscribes.
        #[serde(deserialize_with = "json::object")]
        subscriber_system: Option<SystemRequest>,
        /// Pairs an event's metadata must contain.
        #[serde(deserialize_with = "json::text_map")]
        filter_meta_data: Option<MetadataForm>,
        /// Path at the subscriber that events are posted to.
        #[serde(deserialize_with = "json::text")]
        notify_uri: Option<String>,
        /// Whether the filter is used.
        #[serde(deserialize_with = "json::flag")]
        match_meta_data: Option<bool>,
        /// Only events whose metadata says this severity or a graver one; Bodkin's own.
        #[serde(deserialize_with = "json::text", skip_serializing_if = "Option::is_none")]
        min_severity: Option<String>,
        /// Conditions on fields of a JSON payload, by their place; Bodkin's own.
        #[serde(deserialize_with = "json::text_map", skip_serializing_if = "Option::is_none")]
        payload_filter: Option<MetadataForm>,
        /// From creation to arrival, in microseconds, that is asked of a real-time topic; Bodkin's own.
        #[serde(deserialize_with = "json::integer", skip_serializing_if = "Option::is_none")]
        deadline_us: Option<i64>,
        /// Events in a row that this subscriber may miss, likewise.
        #[serde(deserialize_with = "json::integer", skip_serializing_if = "Option::is_none")]
        loss_tolerance: Option<i64>,
        /// Whether events are to wait for this subscriber, likewise.
        #[serde(deserialize_with = "json::flag", skip_serializing_if = "Option::is_none")]
        required: Option<bool>,
        /// No events earlier than this.
        #[serde(deserialize_with = "json::text")]
        start_date: Option<String>,
        /// No events later than this.
        #[serde(deserialize_with = "json::text")]
        end_date: Option<String>,
        /// Only these publishers.
        #[serde(deserialize_with = "json::objects")]
        sources: Option<Vec<Option<SystemRequest>>>,
    }
}

form! {
    /// `POST /eventhandler/publish`, as a client writes it; the server reads it as [`crate::publication::PublishForm`].
    EventPublishRequest {
        /// Which events.
        #[serde(deserialize_with = "json::text")]
        event_type: Option<String>,
        /// Who publishes.
        #[serde(deserialize_with = "json::object")]
        source: Option<SystemRequest>,
        /// Free pairs that subscriptions may filter by.
        #[serde(deserialize_with = "json::text_map")]
        meta_data: Option<MetadataForm>,
        /// What happened.
        #[serde(deserialize_with = "json::text")]
        payload: Option<String>,
        /// When; absent is now.
        #[serde(deserialize_with = "json::text")]
        time_stamp: Option<String>,
    }
}
