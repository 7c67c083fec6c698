//! The core systems are found like any other service (reference section 10).

use serde_json::json;
use tempfile::TempDir;

use crate::support::arrowhead::{list, texts};
use crate::support::cloud::{Cloud, Launch, System};

/// Service definition and service URI of every core service that is registered.
const CORE_SERVICES: [(System, &[(&str, &str)]); 4] = [
    (
        System::ServiceRegistry,
        &[
            ("service-register", "/serviceregistry/register"),
            ("service-unregister", "/serviceregistry/unregister"),
            ("register-system", "/serviceregistry/register-system"),
            ("unregister-system", "/serviceregistry/unregister-system"),
            ("pull-systems", "/serviceregistry/pull-systems"),
        ],
    ),
    (
        System::Authorization,
        &[
            ("authorization-control-intra", "/authorization/intracloud/check"),
            ("authorization-control-inter", "/authorization/intercloud/check"),
            ("token-generation", "/authorization/token"),
            ("auth-public-key", "/authorization/publickey"),
            ("authorization-control-subscription", "/authorization/subscription/check"),
        ],
    ),
    (
        System::Orchestrator,
        &[
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
    ),
    (
        System::EventHandler,
        &[
            ("event-publish", "/eventhandler/publish"),
            ("event-subscribe", "/eventhandler/subscribe"),
            ("event-unsubscribe", "/eventhandler/unsubscribe"),
            ("event-publish-auth-update", "/eventhandler/publish/authupdate"),
        ],
    ),
];

#[track_caller]
fn core_services_are_registered_once(cloud: &Cloud) {
    for (system, services) in CORE_SERVICES {
        for (definition, uri) in services {
            let found = cloud.query(&json!({"serviceDefinitionRequirement": definition}));
            let entries = list(&found, "/serviceQueryData");
            assert_eq!(entries.len(), 1, "{definition}: {found}");
            let entry = &entries[0];
            assert_eq!(entry["serviceUri"], *uri);
            assert_eq!(entry["provider"]["systemName"], system.name());
            assert_eq!(entry["provider"]["address"], cloud.address(system).ip().to_string());
            assert_eq!(entry["provider"]["port"], cloud.address(system).port(), "{definition}");
            assert_eq!(entry["secure"], "NOT_SECURE");
            assert_eq!(texts(list(entry, "/interfaces"), "/interfaceName"), ["HTTP-INSECURE-JSON"]);
        }
    }
}

#[test]
fn every_core_service_is_registered_where_its_system_listens() {
    let cloud = Cloud::shared();
    core_services_are_registered_once(&cloud);
    let reserved = cloud.query(&json!({"serviceDefinitionRequirement": "token-generation-multi-service"}));
    assert_eq!(reserved["unfilteredHits"], 0, "reserved but not registered");
}

#[test]
fn a_start_on_other_ports_replaces_the_entries_of_the_last_one() {
    let data = TempDir::new().expect("a temporary directory");
    let first = Launch::new().data(data.path()).start();
    core_services_are_registered_once(&first);
    assert!(first.stop().success());
    let second = Launch::new().data(data.path()).start();
    core_services_are_registered_once(&second);
    second.kill();
    core_services_are_registered_once(&Launch::new().data(data.path()).start());
}
