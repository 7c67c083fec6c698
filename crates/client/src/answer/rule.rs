//! Rows of Authorization and of the Orchestrator's stores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Interface, NameOrRow, ServiceDefinition, System};

row! {
    /// An intracloud authorization rule.
    Rule {
        /// Who may consume.
        consumer_system: System,
        /// From whom.
        provider_system: System,
        /// What.
        service_definition: ServiceDefinition,
        /// Over what.
        interfaces: Vec<Interface>,
    }
}

row! {
    /// Another local cloud.
    Cloud {
        /// Who runs it.
        operator: String,
        /// Its name.
        name: String,
    }
}

impl Cloud {
    /// `name.operator`, as certificates write it.
    pub fn told(&self) -> String {
        format!("{}.{}", self.name, self.operator)
    }
}

row! {
    /// An intercloud authorization rule.
    IntercloudRule {
        /// Which cloud may consume.
        cloud: Cloud,
        /// From whom.
        provider: System,
        /// What.
        service_definition: ServiceDefinition,
        /// Over what.
        interfaces: Vec<Interface>,
    }
}

answer! {
    /// A provider with the ids of its interfaces.
    AuthorizedProvider {
        /// Row id of the provider.
        id: i64,
        /// Row ids of the interfaces it may be used over.
        id_list: Vec<i64>,
    }
}

answer! {
    /// What an authorization check lets through.
    AuthorizationCheck {
        /// Providers that may be used, with the interfaces they may be used over.
        authorized_provider_ids_with_interface_ids: Vec<AuthorizedProvider>,
    }
}

answer! {
    /// A provider as an entry of the orchestration store names it.
    StoredProvider {
        /// Its name; `unknown-<id>` when it is gone.
        system_name: String,
        /// Host name or IP address.
        address: String,
        /// Where it listens; absent when it is gone.
        #[serde(default)]
        port: Option<i64>,
    }
}

row! {
    /// An entry of the orchestration store.
    StoreEntry {
        /// What is wanted.
        service_definition: ServiceDefinition,
        /// By whom.
        consumer_system: System,
        /// Whether the provider is of another cloud.
        foreign: bool,
        /// From whom.
        provider_system: StoredProvider,
        /// Of which cloud; absent for the own one.
        #[serde(default)]
        provider_cloud: Option<Cloud>,
        /// Over what.
        service_interface: Interface,
        /// 1 is asked first.
        priority: i64,
        /// Free pairs.
        #[serde(default)]
        attribute: Option<BTreeMap<String, String>>,
    }
}

answer! {
    /// Systems by name, by metadata, or by both.
    SystemDescriber {
        /// Its name.
        #[serde(default)]
        system_name: Option<String>,
        /// Pairs it must have.
        #[serde(default)]
        metadata: Option<BTreeMap<String, String>>,
    }
}

row! {
    /// A rule of the flexible orchestration store.
    FlexibleRule {
        /// Who asks.
        consumer_system: SystemDescriber,
        /// Who is offered.
        provider_system: SystemDescriber,
        /// What.
        service_definition: NameOrRow<ServiceDefinition>,
        /// Over what; absent is any.
        #[serde(default)]
        service_interface: Option<NameOrRow<Interface>>,
        /// Pairs the service must have.
        #[serde(default)]
        service_metadata: Option<BTreeMap<String, String>>,
        /// The lowest is asked first.
        priority: i64,
    }
}
