//! The core systems, the services they register (reference section 10) and the names they reserve.

/// A core system that Bodkin serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoreSystem {
    /// Who offers what.
    ServiceRegistry,
    /// Who may use what.
    Authorization,
    /// What a consumer should use.
    Orchestrator,
    /// What happened.
    EventHandler,
    /// What other clouds offer, and what they are granted; in secure mode only.
    Gatekeeper,
    /// Tunnels to other clouds; in secure mode only.
    Gateway,
}

impl CoreSystem {
    /// All of them, in the order they are listed and registered.
    pub const ALL: [Self; 6] =
        [Self::ServiceRegistry, Self::Authorization, Self::Orchestrator, Self::EventHandler, Self::Gatekeeper, Self::Gateway];

    /// The system's name, which is also the first segment of its paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServiceRegistry => "serviceregistry",
            Self::Authorization => "authorization",
            Self::Orchestrator => "orchestrator",
            Self::EventHandler => "eventhandler",
            Self::Gatekeeper => "gatekeeper",
            Self::Gateway => "gateway",
        }
    }

    /// The standard port.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::ServiceRegistry => 8443,
            Self::Authorization => 8445,
            Self::Orchestrator => 8441,
            Self::EventHandler => 8455,
            Self::Gatekeeper => 8449,
            Self::Gateway => 8453,
        }
    }

    /// Whether it is there in secure mode only: without certificates nobody knows who another cloud is.
    pub fn needs_keys(self) -> bool {
        matches!(self, Self::Gatekeeper | Self::Gateway)
    }

    /// Service definition and service URI of every service the system registers at start.
    pub fn services(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ServiceRegistry => &[
                ("service-register", "/serviceregistry/register"),
                ("service-unregister", "/serviceregistry/unregister"),
                ("register-system", "/serviceregistry/register-system"),
                ("unregister-system", "/serviceregistry/unregister-system"),
                ("pull-systems", "/serviceregistry/pull-systems"),
            ],
            Self::Authorization => &[
                ("authorization-control-intra", "/authorization/intracloud/check"),
                ("authorization-control-inter", "/authorization/intercloud/check"),
                ("token-generation", "/authorization/token"),
                ("auth-public-key", "/authorization/publickey"),
                ("authorization-control-subscription", "/authorization/subscription/check"),
            ],
            Self::Orchestrator => &[
                ("orchestration-service", "/orchestrator/orchestration"),
                ("orchestration-service-by-proxy", "/orchestrator/orchestration-by-proxy"),
                ("orchestration-create-flexible-store-rules", "/orchestrator/store/flexible"),
                ("orchestration-remove-flexible-store-rule", "/orchestrator/store/flexible/{id}"),
                ("orchestration-clean-flexible-store", "/orchestrator/store/flexible/all"),
                ("orchestration-qos-enabled", "/orchestrator/qos_enabled"),
                ("orchestration-qos-reservations", "/orchestrator/qos_reservations"),
                ("orchestration-qos-temporary-lock", "/orchestrator/qos_temporary_lock"),
                ("orchestration-qos-confirm-reservation", "/orchestrator/qos_reservations"),
            ],
            Self::EventHandler => &[
                ("event-publish", "/eventhandler/publish"),
                ("event-subscribe", "/eventhandler/subscribe"),
                ("event-unsubscribe", "/eventhandler/unsubscribe"),
                ("event-publish-auth-update", "/eventhandler/publish/authupdate"),
            ],
            Self::Gatekeeper => &[
                ("global-service-discovery", "/gatekeeper/init_gsd"),
                ("multi-global-service-discovery", "/gatekeeper/init_multi_gsd"),
                ("inter-cloud-negotiations", "/gatekeeper/init_icn"),
                ("inter-cloud-events", "/eventhandler/subscription"),
                ("pull-clouds", "/gatekeeper/pull_clouds"),
                ("collect-system-addresses", "/gatekeeper/collect_system_addresses"),
                ("collect-access-types", "/gatekeeper/collect_access_types"),
                ("gatekeeper-relay-test", "/gatekeeper/init_relay_test"),
                ("gatekeeper-get-cloud", "/gatekeeper/cloud/{operator}/{name}"),
            ],
            Self::Gateway => &[
                ("gw-public-key", "/gateway/publickey"),
                ("gw-connect-provider", "/gateway/connect_provider"),
                ("gw-connect-consumer", "/gateway/connect_consumer"),
                ("gw-close-sessions", "/gateway/close_sessions"),
            ],
        }
    }
}

/// Every name upstream reserves for core systems, served here or not (reference 1.1).
const RESERVED_SYSTEM_NAMES: [&str; 20] = [
    "serviceregistry",
    "authorization",
    "orchestrator",
    "eventhandler",
    "gatekeeper",
    "gateway",
    "onboardingcontroller",
    "systemregistry",
    "deviceregistry",
    "hawkbitconfigurationmanager",
    "certificateauthority",
    "qosmonitor",
    "choreographer",
    "configuration",
    "datamanager",
    "translator",
    "timemanager",
    "plantdescriptionengine",
    "mscv",
    "gams",
];

/// Services of core systems that nobody registers here, by the system whose they are: upstream reserves their definitions too.
const OTHER_SERVICES: [(&str, &[&str]); 14] = [
    ("serviceregistry", &["pull-config"]),
    ("authorization", &["token-generation-multi-service"]),
    ("datamanager", &["proxy", "historian"]),
    ("timemanager", &["time"]),
    ("configuration", &["conf", "confraw", "conf-by-proxy", "save-conf-by-proxy"]),
    (
        "choreographer",
        &[
            "choreographer-service",
            "choreographer-start-session",
            "choreographer-abort-session",
            "executor-register",
            "executor-unregister",
        ],
    ),
    ("translator", &["translation-service", "translation-fiware-service", "translation-plugin-service"]),
    ("gams", &["gams-service", "gams-sensor-service"]),
    (
        "certificateauthority",
        &[
            "ca-sign",
            "ca-list-certificates",
            "ca-check-certificate",
            "ca-revoke-certificate",
            "ca-list-trusted-keys",
            "ca-check-trusted-key",
            "ca-add-trusted-key",
            "ca-delete-trusted-key",
        ],
    ),
    (
        "qosmonitor",
        &[
            "qos-monitor-intra-ping-measurement",
            "qos-monitor-intra-ping-median-measurement",
            "qos-monitor-inter-direct-ping-measurement",
            "qos-monitor-inter-relay-echo-measurement",
            "qos-monitor-public-key",
            "qos-monitor-join-relay-test",
            "qos-monitor-init-relay-test",
        ],
    ),
    ("mscv", &["standard-verification", "standard-verification-public-key", "standard-verification-remote-login"]),
    ("systemregistry", &["system-register", "system-unregister", "system-onboarding-with-name", "system-onboarding-with-csr"]),
    ("deviceregistry", &["device-register", "device-unregister", "device-onboarding-with-name", "device-onboarding-with-csr"]),
    (
        "onboardingcontroller",
        &[
            "onboarding-with-certificate-and-name",
            "onboarding-with-certificate-and-csr",
            "onboarding-with-shared-secret-and-name",
            "onboarding-with-shared-secret-and-csr",
        ],
    ),
];

/// Every service definition that is reserved for a core system, with the system whose it is.
fn core_services() -> impl Iterator<Item = (&'static str, &'static str)> {
    let served =
        CoreSystem::ALL.into_iter().flat_map(|system| system.services().iter().map(move |(definition, _)| (system.name(), *definition)));
    served.chain(OTHER_SERVICES.iter().flat_map(|(system, definitions)| definitions.iter().map(move |definition| (*system, *definition))))
}

/// Whether `definition` is reserved for a core system's service, in any case.
pub fn is_core_service(definition: &str) -> bool {
    core_services().any(|(_, reserved)| reserved.eq_ignore_ascii_case(definition.trim()))
}

/// Whether `definition` is a service of the core system of this name, in any case.
pub fn is_service_of(system: &str, definition: &str) -> bool {
    core_services().any(|(owner, reserved)| owner == system && reserved.eq_ignore_ascii_case(definition.trim()))
}

/// Whether `name` is reserved for a core system, in any case.
pub fn is_core_system(name: &str) -> bool {
    RESERVED_SYSTEM_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_is_of_a_core_system_and_of_one_only() {
        let mut definitions: Vec<&str> = core_services().map(|(_, definition)| definition).collect();
        assert!(core_services().all(|(system, _)| is_core_system(system)));
        let count = definitions.len();
        definitions.sort_unstable();
        definitions.dedup();
        assert_eq!(definitions.len(), count);
        assert!(is_service_of("gateway", " GW-Public-Key ") && !is_service_of("gatekeeper", "gw-public-key"));
        assert!(is_core_service("event-publish") && !is_core_service("temperature"));
    }
}
