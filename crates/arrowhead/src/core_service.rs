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
}

impl CoreSystem {
    /// All of them, in the order they are listed and registered.
    pub const ALL: [Self; 4] = [Self::ServiceRegistry, Self::Authorization, Self::Orchestrator, Self::EventHandler];

    /// The system's name, which is also the first segment of its paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServiceRegistry => "serviceregistry",
            Self::Authorization => "authorization",
            Self::Orchestrator => "orchestrator",
            Self::EventHandler => "eventhandler",
        }
    }

    /// The standard port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::ServiceRegistry => 8443,
            Self::Authorization => 8445,
            Self::Orchestrator => 8441,
            Self::EventHandler => 8455,
        }
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

/// Service definitions of core systems that upstream reserves and nobody registers here (reference section 10).
const OTHER_RESERVED_DEFINITIONS: [&str; 13] = [
    "token-generation-multi-service",
    "global-service-discovery",
    "multi-global-service-discovery",
    "inter-cloud-negotiations",
    "pull-clouds",
    "collect-system-addresses",
    "collect-access-types",
    "gatekeeper-relay-test",
    "gatekeeper-get-cloud",
    "gw-public-key",
    "gw-connect-provider",
    "gw-connect-consumer",
    "gw-close-sessions",
];

/// Whether `definition` is reserved for a core system's service, in any case.
pub fn is_core_service(definition: &str) -> bool {
    let own = CoreSystem::ALL.into_iter().flat_map(CoreSystem::services).map(|(definition, _)| *definition);
    own.chain(OTHER_RESERVED_DEFINITIONS).any(|reserved| reserved.eq_ignore_ascii_case(definition.trim()))
}

/// Whether `name` is reserved for a core system, in any case.
pub fn is_core_system(name: &str) -> bool {
    RESERVED_SYSTEM_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name.trim()))
}
