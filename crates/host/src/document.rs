//! What each port says of itself: an OpenAPI document, upstream's Swagger document, and a page that shows them.
//!
//! A document is made of the table of routes and of a description of each ([`mod@description`]), when it is asked for: that
//! takes a millisecond or two, and nothing at the start or in memory.

pub mod async_api;
mod authorization;
mod description;
mod event_handler;
mod form;
mod gatekeeper;
mod gateway;
mod monitor;
mod open_api;
mod orchestrator;
pub mod query;
mod service_registry;

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use bodkin_arrowhead::{access::Access, core_service::CoreSystem};
use bodkin_trust::base64;
use serde_json::json;

use self::{
    description::{Credential, Description, ON_EVERY_SYSTEM},
    open_api::{Subject, open_api, swagger},
};
use crate::{
    answer::Answer,
    monitor::access,
    request::{Method, Request},
    route,
    server::Port,
};

/// The page; everything it needs is in it.
const PAGE: &str = include_str!("document/page.html");
/// The page may load nothing and call nobody but the port it came from. Its own script and style are named by their hashes (Content Security Policy Level 3, section 2.3.1): nothing that came into it in another way runs.
static PAGE_POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash_of(PAGE, "script"),
        hash_of(PAGE, "style")
    )
});

const PAGE_PATH: &str = "/swagger-ui.html";
const SWAGGER_PATH: &str = "/v2/api-docs";

/// Returns the hash by which a policy names the only element of this kind in a page.
pub fn hash_of(page: &str, element: &str) -> String {
    let text = page.split_once(&format!("<{element}>")).and_then(|(_, rest)| rest.split_once(&format!("</{element}>")));
    let (text, _) = text.expect("the page has one of each");
    format!("'sha256-{}'", base64::encode(digest(&SHA256, text.as_bytes()).as_ref()))
}

/// The answer, if the path is one of the documents'.
pub fn answer(port: Port, request: &Request) -> Option<Answer> {
    let answer = match request.path.as_str() {
        "/" => Answer { header: Some(("Location", PAGE_PATH.into())), ..Answer::empty(302) },
        PAGE_PATH => Answer {
            content_type: Some("text/html;charset=UTF-8"),
            header: Some(("Content-Security-Policy", PAGE_POLICY.clone())),
            ..Answer::text(200, PAGE)
        },
        "/openapi.json" => Answer::json(200, &open_api(&subject(port, &operations(port)))),
        SWAGGER_PATH => Answer::json(200, &swagger(&subject(port, &operations(port)))),
        "/swagger-resources" => {
            Answer::json(200, &json!([{"name": "default", "url": SWAGGER_PATH, "swaggerVersion": "2.0", "location": SWAGGER_PATH}]))
        }
        "/swagger-resources/configuration/ui" | "/swagger-resources/configuration/security" => Answer::json(200, &json!({})),
        _ => return None,
    };
    Some(read_only(request.method, answer))
}

/// The answer to a request for what can only be read.
pub fn read_only(method: Method, answer: Answer) -> Answer {
    match method {
        Method::Get | Method::Head => answer,
        Method::Options => Answer { header: Some(("Allow", "GET, HEAD, OPTIONS".into())), ..Answer::empty(200) },
        _ => Answer { header: Some(("Allow", "GET".into())), ..Answer::empty(405) },
    }
}

/// Methods that Bodkin's own port takes at a path. Its descriptions are its routes: what is not described is not served.
pub fn methods_at(path: &str) -> Vec<Method> {
    monitor::OPERATIONS.iter().filter(|row| fits(row.path, path)).map(|row| row.method).collect()
}

/// The described path that a path of Bodkin's own port is of, with names in place of what differs; `None`: it is of none.
pub fn route_at(path: &str) -> Option<String> {
    monitor::OPERATIONS.iter().find(|row| fits(row.path, path)).map(|row| format!("/{}", row.path))
}

/// Whether a path is of this pattern, which has no slash in front.
fn fits(pattern: &str, path: &str) -> bool {
    let parts = || path.split('/').skip(1);
    pattern.split('/').count() == parts().count()
        && pattern.split('/').zip(parts()).all(|(expected, part)| expected == part || (expected.starts_with('{') && !part.is_empty()))
}

/// The paths of Bodkin's own port.
#[cfg(test)]
pub fn monitor_paths() -> impl Iterator<Item = String> {
    monitor::OPERATIONS.iter().map(|row| format!("/{}", row.path))
}

fn subject(port: Port, operations: &[Description]) -> Subject<'_> {
    let (name, base) = match port {
        Port::System(CoreSystem::ServiceRegistry) => ("Service Registry Core System", "/serviceregistry/"),
        Port::System(CoreSystem::Authorization) => ("Authorization Core System", "/authorization/"),
        Port::System(CoreSystem::Orchestrator) => ("Orchestrator Core System", "/orchestrator/"),
        Port::System(CoreSystem::EventHandler) => ("Event Handler Core System", "/eventhandler/"),
        Port::System(CoreSystem::Gatekeeper) => ("Gatekeeper Core System", "/gatekeeper/"),
        Port::System(CoreSystem::Gateway) => ("Gateway Core System", "/gateway/"),
        Port::Monitor => return Subject { title: "Bodkin API".into(), base: "/".into(), operations },
    };
    Subject { title: format!("Arrowhead {name} API"), base: base.into(), operations }
}

/// The descriptions of what is served on a port.
fn operations(port: Port) -> Vec<Description> {
    match port {
        Port::System(system) => {
            let own = route::of_system(system).filter_map(|(method, path)| description(system, method, path));
            let cloud_events: &[Description] = if system == CoreSystem::EventHandler { event_handler::CLOUD_EVENTS } else { &[] };
            own.chain(cloud_events.iter().copied()).collect()
        }
        Port::Monitor => monitor::OPERATIONS.iter().map(|row| row.shown(credential(row))).collect(),
    }
}

/// What is asked of who uses an operation of Bodkin's own port.
fn credential(row: &Description) -> Credential {
    match access(&format!("/{}", row.path)) {
        Access::Anyone if row.path == "dashboard/enter" => Credential::Link,
        Access::Anyone if row.needs_keys => Credential::Grant,
        Access::Anyone => Credential::None,
        Access::Operator => Credential::Operator,
        _ => Credential::System,
    }
}

fn description(system: CoreSystem, method: Method, path: &str) -> Option<Description> {
    descriptions(system).iter().chain(ON_EVERY_SYSTEM).find(|row| row.method == method && row.path == path).copied()
}

/// The descriptions of a core system's own operations.
fn descriptions(system: CoreSystem) -> &'static [Description] {
    match system {
        CoreSystem::ServiceRegistry => service_registry::OPERATIONS,
        CoreSystem::Authorization => authorization::OPERATIONS,
        CoreSystem::Orchestrator => orchestrator::OPERATIONS,
        CoreSystem::EventHandler => event_handler::OPERATIONS,
        CoreSystem::Gatekeeper => gatekeeper::OPERATIONS,
        CoreSystem::Gateway => gateway::OPERATIONS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listening::CLOUD_EVENTS;

    #[test]
    fn every_route_is_described() {
        for system in CoreSystem::ALL {
            for (method, path) in route::of_system(system) {
                assert!(description(system, method, path).is_some(), "{method:?} /{}/{path} has no row in document", system.name());
            }
        }
    }

    #[test]
    fn events_in_the_form_of_cloud_events_are_described() {
        let rows = operations(Port::System(CoreSystem::EventHandler));
        let methods: Vec<Method> = rows.iter().filter(|row| format!("/{}", row.path) == CLOUD_EVENTS).map(|row| row.method).collect();
        assert_eq!(methods, [Method::Post, Method::Get], "the shard serves both");
    }

    #[test]
    fn what_may_be_denied_says_so_and_with_what_it_would_not_be() {
        for port in Port::ALL {
            let operations = operations(port);
            let document = open_api(&subject(port, &operations));
            for row in &operations {
                let operation = &document["paths"][subject(port, &operations).path(row)][row.method.word().to_ascii_lowercase()];
                let denials = ["401", "403"].map(|status| !operation["responses"][status].is_null());
                let expected = match row.credential {
                    Credential::None => [false, false],
                    Credential::System => [true, false],
                    Credential::Operator | Credential::Grant | Credential::Link => [true, true],
                };
                assert_eq!(denials, expected, "{port:?} {:?} {}", row.method, row.path);
                for scheme in operation["security"].as_array().unwrap().iter().flat_map(|schemes| schemes.as_object().unwrap().keys()) {
                    assert!(document["components"]["securitySchemes"][scheme].is_object(), "{scheme} is not declared");
                }
            }
        }
    }

    #[test]
    fn documents_refer_only_to_what_they_have() {
        for port in Port::ALL {
            let operations = operations(port);
            let document = open_api(&subject(port, &operations));
            let swagger = swagger(&subject(port, &operations));
            for (document, place) in [(&document, "#/components/schemas/"), (&swagger, "#/definitions/")] {
                let text = document.to_string();
                assert!(text.split("\"$ref\":\"").skip(1).all(|rest| {
                    let reference = rest.split('"').next().unwrap();
                    reference.starts_with(place) && document.pointer(&reference[1..]).is_some()
                }));
            }
            assert!(!swagger.to_string().contains("anyOf"), "Swagger 2.0 knows no anyOf");
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        for port in Port::ALL {
            let document = open_api(&subject(port, &operations(port)));
            let paths = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
            let mut ids: Vec<&str> = paths.map(|operation| operation["operationId"].as_str().unwrap()).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), count, "{ids:?}");
        }
    }
}
