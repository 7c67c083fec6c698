//! Every endpoint of the four core systems in Arrowhead 4.6 (reference sections 1.1 and 3 to 6), as the tests that hold for all of
//! them need it. Transcribed from the interface, not from the router.

use serde_json::{Value, json};

use crate::support::arrowhead::{event, service, subscription, system};
use crate::support::cloud::{System, system_of};

/// What an absent row of the path's id is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentRow {
    /// 400 INVALID_PARAMETER.
    Refused,
    /// 200, as if it had been there.
    Void,
}

/// What stands in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// GET and DELETE.
    Nothing,
    /// A JSON object.
    Object,
    /// A JSON list.
    List,
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// The method.
    pub method: &'static str,
    /// The path with its `{id}` or other parameter in braces; without the query.
    pub path: &'static str,
    /// What stands in its body.
    pub takes: Takes,
    /// Of a path with `{id}`.
    pub absent: AbsentRow,
    /// The fields that a list may be sorted by; empty where nothing is paged.
    pub sortable: &'static [&'static str],
    /// Its query with every required parameter, empty if it has none.
    pub query: &'static str,
    /// Refused with 400 BAD_PAYLOAD while `use_flexible_store` is false.
    pub is_flexible_store: bool,
}

const IDS: &[&str] = &["id", "updatedAt", "createdAt"];
const SYSTEMS: &[&str] = &["id", "updatedAt", "createdAt", "systemName", "address", "port"];
const INTERFACES: &[&str] = &["id", "updatedAt", "createdAt", "interfaceName"];
const STORE: &[&str] = &["id", "updatedAt", "createdAt", "priority"];
const LOGS: &[&str] = &["logId", "entryDate", "logger", "system", "logLevel"];

const UNREGISTER: &str = "service_definition=absent&system_name=absent&address=127.0.0.1&port=1&service_uri=";
const UNREGISTER_SYSTEM: &str = "system_name=absent&address=127.0.0.1&port=1";
const UNSUBSCRIBE: &str = "event_type=absent&system_name=absent&address=127.0.0.1&port=1";

const fn nothing(method: &'static str, path: &'static str) -> Endpoint {
    let takes = Takes::Nothing;
    Endpoint { method, path, takes, absent: AbsentRow::Refused, sortable: &[], query: "", is_flexible_store: false }
}

const fn get(path: &'static str) -> Endpoint {
    nothing("GET", path)
}

const fn delete(path: &'static str) -> Endpoint {
    nothing("DELETE", path)
}

const fn object(method: &'static str, path: &'static str) -> Endpoint {
    Endpoint { takes: Takes::Object, ..nothing(method, path) }
}

const fn post(path: &'static str) -> Endpoint {
    object("POST", path)
}

const fn list_of(path: &'static str) -> Endpoint {
    Endpoint { takes: Takes::List, ..nothing("POST", path) }
}

impl Endpoint {
    const fn paged(self, sortable: &'static [&'static str]) -> Self {
        Self { sortable, ..self }
    }

    const fn with_query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    const fn flexible(self) -> Self {
        Self { is_flexible_store: true, ..self }
    }

    const fn void_when_absent(self) -> Self {
        Self { absent: AbsentRow::Void, ..self }
    }

    /// Where it is served.
    pub fn system(&self) -> System {
        system_of(self.path)
    }

    /// Whether the path names a row.
    pub fn has_id(&self) -> bool {
        self.path.ends_with("{id}")
    }

    /// Its path and required query, with `id` in the place of the parameter.
    pub fn target(&self, id: &str) -> String {
        let path = match self.path.find('{') {
            Some(at) => format!("{}{id}", &self.path[..at]),
            None => self.path.to_string(),
        };
        if self.query.is_empty() { path } else { format!("{path}?{}", self.query) }
    }

    /// A body that no check of its form refuses; what it names does not exist.
    pub fn body(&self) -> Option<Value> {
        let body = match (self.takes, self.path) {
            (Takes::Nothing, _) => return None,
            (_, path) if path.ends_with("/register-system") || path.contains("/systems") || path.ends_with("/query/system") => {
                system("absent", 1)
            }
            (_, path) if path.contains("/mgmt/services") => json!({"serviceDefinition": "absent"}),
            (_, path) if path.contains("/mgmt/interfaces") => json!({"interfaceName": "ABSENT-INSECURE-JSON"}),
            (_, "/serviceregistry/query") => json!({"serviceDefinitionRequirement": "absent"}),
            (_, "/serviceregistry/query/multi") => json!({"forms": [{"serviceDefinitionRequirement": "absent"}]}),
            (_, "/serviceregistry/query/definition") => json!(["absent"]),
            (_, path) if path.starts_with("/serviceregistry") => service("absent", system("absent", 1)),
            (_, "/eventhandler/publish") => event("absent", system("absent", 1), "x"),
            (_, path) if path.starts_with("/eventhandler/mgmt") || path.ends_with("/subscribe") => {
                subscription("absent", system("absent", 1), "/absent")
            }
            (Takes::Object, _) => json!({}),
            (Takes::List, _) => json!([]),
        };
        Some(body)
    }
}

/// In the order of the reference.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/serviceregistry/echo"),
    get("/serviceregistry/mgmt/logs").paged(LOGS),
    post("/serviceregistry/register"),
    delete("/serviceregistry/unregister").with_query(UNREGISTER),
    post("/serviceregistry/query"),
    post("/serviceregistry/register-system"),
    delete("/serviceregistry/unregister-system").with_query(UNREGISTER_SYSTEM),
    post("/serviceregistry/query/multi"),
    get("/serviceregistry/query/system/{id}"),
    post("/serviceregistry/query/system"),
    get("/serviceregistry/query/all"),
    get("/serviceregistry/query/provider/{id}"),
    list_of("/serviceregistry/query/definition"),
    get("/serviceregistry/pull-systems").paged(SYSTEMS),
    get("/serviceregistry/pull-config"),
    get("/serviceregistry/mgmt/systems").paged(SYSTEMS),
    get("/serviceregistry/mgmt/systems/{id}"),
    post("/serviceregistry/mgmt/systems"),
    object("PUT", "/serviceregistry/mgmt/systems/{id}"),
    object("PATCH", "/serviceregistry/mgmt/systems/{id}"),
    delete("/serviceregistry/mgmt/systems/{id}"),
    get("/serviceregistry/mgmt/services").paged(IDS),
    get("/serviceregistry/mgmt/services/{id}"),
    post("/serviceregistry/mgmt/services"),
    object("PUT", "/serviceregistry/mgmt/services/{id}"),
    object("PATCH", "/serviceregistry/mgmt/services/{id}"),
    delete("/serviceregistry/mgmt/services/{id}"),
    get("/serviceregistry/mgmt/interfaces").paged(INTERFACES),
    get("/serviceregistry/mgmt/interfaces/{id}"),
    post("/serviceregistry/mgmt/interfaces"),
    object("PUT", "/serviceregistry/mgmt/interfaces/{id}"),
    object("PATCH", "/serviceregistry/mgmt/interfaces/{id}"),
    delete("/serviceregistry/mgmt/interfaces/{id}"),
    get("/serviceregistry/mgmt").paged(IDS),
    get("/serviceregistry/mgmt/{id}"),
    post("/serviceregistry/mgmt"),
    object("PUT", "/serviceregistry/mgmt/{id}"),
    object("PATCH", "/serviceregistry/mgmt/{id}"),
    delete("/serviceregistry/mgmt/{id}"),
    get("/serviceregistry/mgmt/servicedef/{serviceDefinition}").paged(IDS),
    get("/serviceregistry/mgmt/grouped"),
    get("/authorization/echo"),
    get("/authorization/mgmt/logs").paged(LOGS),
    get("/authorization/publickey"),
    get("/authorization/mgmt/intracloud").paged(IDS),
    get("/authorization/mgmt/intracloud/{id}"),
    post("/authorization/mgmt/intracloud"),
    delete("/authorization/mgmt/intracloud/{id}"),
    get("/authorization/mgmt/intercloud").paged(IDS),
    get("/authorization/mgmt/intercloud/{id}"),
    post("/authorization/mgmt/intercloud"),
    delete("/authorization/mgmt/intercloud/{id}"),
    post("/authorization/intracloud/check"),
    post("/authorization/intercloud/check"),
    post("/authorization/subscription/check"),
    post("/authorization/token"),
    list_of("/authorization/token/multi"),
    get("/orchestrator/echo"),
    get("/orchestrator/mgmt/logs").paged(LOGS),
    post("/orchestrator/orchestration"),
    get("/orchestrator/orchestration/{id}"),
    post("/orchestrator/orchestration-by-proxy"),
    list_of("/orchestrator/store/flexible").flexible(),
    delete("/orchestrator/store/flexible/{id}").flexible(),
    delete("/orchestrator/store/flexible/all").flexible(),
    get("/orchestrator/qos_enabled"),
    get("/orchestrator/qos_reservations"),
    post("/orchestrator/qos_reservations"),
    post("/orchestrator/qos_temporary_lock"),
    get("/orchestrator/mgmt/store").paged(STORE),
    get("/orchestrator/mgmt/store/{id}"),
    get("/orchestrator/mgmt/store/all_top_priority").paged(STORE),
    post("/orchestrator/mgmt/store/all_by_consumer").paged(STORE),
    list_of("/orchestrator/mgmt/store"),
    post("/orchestrator/mgmt/store/modify_priorities"),
    delete("/orchestrator/mgmt/store/{id}"),
    get("/orchestrator/mgmt/store/flexible").paged(STORE).flexible(),
    list_of("/orchestrator/mgmt/store/flexible").flexible(),
    delete("/orchestrator/mgmt/store/flexible/{id}").flexible(),
    get("/eventhandler/echo"),
    get("/eventhandler/mgmt/logs").paged(LOGS),
    post("/eventhandler/publish"),
    post("/eventhandler/subscribe"),
    delete("/eventhandler/unsubscribe").with_query(UNSUBSCRIBE),
    post("/eventhandler/publish/authupdate"),
    get("/eventhandler/mgmt/subscriptions").paged(IDS),
    get("/eventhandler/mgmt/subscriptions/{id}"),
    object("PUT", "/eventhandler/mgmt/subscriptions/{id}"),
    delete("/eventhandler/mgmt/subscriptions/{id}").void_when_absent(),
];

/// The endpoint that a request asks for, a fixed path before one with a parameter.
pub fn endpoint_of(method: &str, target: &str) -> Option<&'static Endpoint> {
    let path = target.split('?').next().unwrap_or_default();
    let of_method = || ENDPOINTS.iter().filter(|endpoint| endpoint.method == method);
    let fits = |pattern: &str| {
        let (parent, _) = pattern.split_once('{')?;
        path.strip_prefix(parent).filter(|parameter| !parameter.is_empty() && !parameter.contains('/'))
    };
    of_method().find(|endpoint| endpoint.path == path).or_else(|| of_method().find(|endpoint| fits(endpoint.path).is_some()))
}

#[test]
fn a_request_is_of_the_endpoint_with_the_fixed_path_first() {
    let path = |method, target| endpoint_of(method, target).map(|endpoint| endpoint.path);
    assert_eq!(path("GET", "/serviceregistry/mgmt/systems?page=1"), Some("/serviceregistry/mgmt/systems"));
    assert_eq!(path("GET", "/serviceregistry/mgmt/12"), Some("/serviceregistry/mgmt/{id}"));
    assert_eq!(path("DELETE", "/serviceregistry/mgmt/systems/12"), Some("/serviceregistry/mgmt/systems/{id}"));
    assert_eq!(path("POST", "/serviceregistry/mgmt/12"), None);
}
