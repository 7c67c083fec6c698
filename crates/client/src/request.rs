//! Request bodies that only clients write (reference sections 4 and 5). All others are [`bodkin_arrowhead::form`]'s.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::answer::SystemDescriber;

macro_rules! request {
    ($(#[$documentation:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$member])* pub $field: $type,)*
        }
    };
}

request! {
    /// New intercloud rules.
    IntercloudRuleRequest {
        /// Row id of the cloud that may consume.
        cloud_id: i64,
        /// Row ids of the providers.
        provider_id_list: Vec<i64>,
        /// Row ids of the service definitions.
        service_definition_id_list: Vec<i64>,
        /// Row ids of the interfaces.
        interface_id_list: Vec<i64>,
    }
}

request! {
    /// A system by its name and place.
    Provider {
        /// Its name.
        system_name: String,
        /// Host name or IP address.
        address: String,
        /// Where it listens.
        port: u16,
    }
}

request! {
    /// Another local cloud by its name.
    CloudName {
        /// Who runs it.
        operator: String,
        /// Its name.
        name: String,
    }
}

request! {
    /// A new entry of the orchestration store.
    StoreRequest {
        /// What is wanted.
        service_definition_name: String,
        /// By whom: the row id of a system.
        consumer_system_id: i64,
        /// From whom.
        provider_system: Provider,
        /// Of which cloud; absent is the own one.
        cloud: Option<CloudName>,
        /// Over what.
        service_interface_name: String,
        /// 1 is asked first; entries there and behind move down.
        priority: i64,
        /// Free pairs.
        attribute: Option<BTreeMap<String, String>>,
    }
}

request! {
    /// A new rule of the flexible orchestration store.
    FlexibleRuleRequest {
        /// Who asks: a name, metadata, or both.
        consumer_system: SystemDescriber,
        /// Who is offered: a name, metadata, or both.
        provider_system: SystemDescriber,
        /// What.
        service_definition_name: String,
        /// Over what; absent is any.
        service_interface_name: Option<String>,
        /// Pairs the service must have.
        service_metadata: Option<BTreeMap<String, String>>,
        /// The lowest is asked first; absent is last.
        priority: Option<i64>,
    }
}

request! {
    /// What a new system asks for.
    OnboardingRequest {
        /// What it was given.
        secret: String,
        /// Which of the systems of the grant it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        system_name: Option<String>,
        /// A certificate signing request in PEM.
        csr: String,
    }
}
