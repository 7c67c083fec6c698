//! Every operation of the control plane, asked by every kind of caller: who is refused is written from section 11 of the reference.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::{
    audit::{AuditQuery, Kind},
    caller::Caller,
    common_name::CloudCommonName,
    core_service::CoreSystem,
};
use bodkin_broker::topic::Platform;
use bodkin_host::{
    AUDIT_LIMITS, Limits,
    answer::Answer,
    audit::{Audit, start_event},
    control::{Control, Pings, now},
    destination::Destinations,
    quotas::OwnerQuota,
    request::{Method, Request, split_target},
    route,
    shard::Shard,
    topics::{RealTimeTopics, pushed::PushedWishes},
};
use bodkin_store::{
    Opened, Store,
    audit::{AuditLog, AuditReader, AuditThread},
};
use serde_json::{Value, json};

use CoreSystem::{Authorization, EventHandler, Gatekeeper, Gateway, Orchestrator, ServiceRegistry};
use Method::{Delete, Get, Patch, Post, Put};

/// Reference 1.1.
const CORE: &str = "serviceregistry authorization orchestrator eventhandler gatekeeper gateway onboardingcontroller systemregistry \
    deviceregistry hawkbitconfigurationmanager certificateauthority qosmonitor choreographer configuration datamanager translator \
    timemanager plantdescriptionengine mscv gams";
/// Core systems that may query anything.
const PRIVILEGED: &str = "orchestrator gatekeeper certificateauthority eventhandler authorization qosmonitor onboardingcontroller \
    deviceregistry systemregistry plantdescriptionengine choreographer hawkbitconfigurationmanager mscv";
/// Application systems and the operator.
const OTHERS: &str = "sysop sensor other";
const OWN_CLOUD: &str = "cloud.operator.arrowhead.eu";
/// Common names of certificates that name no system of the cloud.
const STRANGERS: [&str; 7] = [
    "",
    "sensor",
    OWN_CLOUD,
    "a.sensor.cloud.operator.arrowhead.eu",
    "sensor.elsewhere.operator.arrowhead.eu",
    "sensor.cloud.somebody.arrowhead.eu",
    "sysop.cloud.somebody.arrowhead.eu",
];

/// A request, and whose it is to make.
struct Row {
    system: CoreSystem,
    method: Method,
    target: &'static str,
    body: Value,
    allowed: String,
}

fn row(system: CoreSystem, method: Method, target: &'static str, body: Value, allowed: &str) -> Row {
    let all = format!("{CORE} {OTHERS}");
    Row { system, method, target, body, allowed: if allowed == "*" { all } else { allowed.to_owned() } }
}

fn registration(definition: &str, name: &str) -> Value {
    json!({"serviceDefinition": definition, "providerSystem": system(name), "interfaces": ["HTTP-INSECURE-JSON"]})
}

fn system(name: &str) -> Value {
    json!({"systemName": name, "address": "10.0.0.1", "port": 1})
}

fn query(definition: &str) -> Value {
    json!({"serviceDefinitionRequirement": definition})
}

/// What applications and core systems ask.
fn rows() -> Vec<Row> {
    let anything = format!("{PRIVILEGED} translator");
    let external = json!({"requesterSystem": system("sensor"), "orchestrationFlags": {"externalServiceRequest": true}});
    let subscription = json!({"eventType": "hot", "subscriberSystem": system("sensor"), "notifyUri": "/n"});
    let event = json!({"eventType": "SUBSCRIBER_AUTH_UPDATE", "source": system("authorization"), "payload": "1"});
    let checked = "orchestrator gatekeeper";
    let tokens = "orchestrator choreographer";
    vec![
        row(ServiceRegistry, Get, "echo", Value::Null, "*"),
        row(ServiceRegistry, Post, "register", registration("heat", "sensor"), "sensor translator"),
        row(ServiceRegistry, Post, "register", registration("heat", "SENSOR"), "sensor translator"),
        row(ServiceRegistry, Post, "register", registration("event-publish", "sensor"), "translator"),
        row(ServiceRegistry, Post, "register", registration("gw-public-key", "gateway"), "gateway translator"),
        row(
            ServiceRegistry,
            Delete,
            "unregister?service_definition=heat&system_name=sensor&address=10.0.0.1&port=1",
            Value::Null,
            "sensor",
        ),
        row(ServiceRegistry, Delete, "unregister?system_name=gateway", Value::Null, "gateway"),
        row(ServiceRegistry, Post, "query", query("heat"), &anything),
        row(ServiceRegistry, Post, "query", json!({}), &anything),
        row(ServiceRegistry, Post, "query", query("Orchestration-Service"), &format!("{anything} {OTHERS}")),
        row(ServiceRegistry, Post, "query", query("historian"), &format!("{anything} {OTHERS} datamanager")),
        row(ServiceRegistry, Post, "query", query("gw-public-key"), &format!("{anything} gateway")),
        row(ServiceRegistry, Post, "query", query("authorization-control-intra"), &anything),
        row(ServiceRegistry, Post, "query/multi", json!({"forms": []}), PRIVILEGED),
        row(ServiceRegistry, Get, "query/system/1", Value::Null, "orchestrator"),
        row(ServiceRegistry, Post, "query/system", system("sensor"), "orchestrator choreographer"),
        row(ServiceRegistry, Get, "query/all", Value::Null, "qosmonitor gatekeeper"),
        row(ServiceRegistry, Get, "query/provider/1", Value::Null, "choreographer"),
        row(ServiceRegistry, Post, "query/definition", json!(["heat"]), "choreographer"),
        row(ServiceRegistry, Get, "pull-systems", Value::Null, "plantdescriptionengine"),
        row(ServiceRegistry, Get, "pull-config", Value::Null, CORE),
        row(ServiceRegistry, Post, "register-system", system("sensor"), "sensor"),
        row(ServiceRegistry, Post, "register-system", system("choreographer"), "choreographer"),
        row(ServiceRegistry, Post, "register-system", system("gateway"), ""),
        row(ServiceRegistry, Delete, "unregister-system?system_name=sensor&address=10.0.0.1&port=1", Value::Null, "sensor"),
        row(ServiceRegistry, Delete, "unregister-system?system_name=plantdescriptionengine", Value::Null, "plantdescriptionengine"),
        row(ServiceRegistry, Delete, "unregister-system?system_name=orchestrator", Value::Null, ""),
        row(Authorization, Get, "echo", Value::Null, "*"),
        row(Authorization, Get, "publickey", Value::Null, "*"),
        row(Authorization, Get, "mgmt/intracloud", Value::Null, "sysop onboardingcontroller mscv"),
        row(Authorization, Post, "mgmt/intracloud", json!({}), "sysop onboardingcontroller mscv"),
        row(Authorization, Post, "intracloud/check", json!({}), checked),
        row(Authorization, Post, "intercloud/check", json!({}), checked),
        row(Authorization, Post, "subscription/check", json!({}), "eventhandler"),
        row(Authorization, Post, "token", json!({}), tokens),
        row(Authorization, Post, "token/multi", json!([]), tokens),
        row(Orchestrator, Get, "echo", Value::Null, "*"),
        row(Orchestrator, Post, "orchestration", json!({"requesterSystem": system("sensor")}), "sensor"),
        row(Orchestrator, Post, "orchestration", json!({"requesterSystem": {"systemName": "sensor"}}), "sensor"),
        row(Orchestrator, Post, "orchestration", external, "gatekeeper"),
        row(Orchestrator, Get, "orchestration/1", Value::Null, "*"),
        row(Orchestrator, Post, "orchestration-by-proxy", json!({"requesterSystem": system("sensor")}), "choreographer"),
        row(Orchestrator, Post, "store/flexible", json!([]), "plantdescriptionengine"),
        row(Orchestrator, Delete, "store/flexible/1", Value::Null, "plantdescriptionengine"),
        row(Orchestrator, Delete, "store/flexible/all", Value::Null, "plantdescriptionengine"),
        row(Orchestrator, Get, "qos_enabled", Value::Null, "gatekeeper"),
        row(Orchestrator, Get, "qos_reservations", Value::Null, "gatekeeper"),
        row(Orchestrator, Post, "qos_reservations", json!({}), "gatekeeper"),
        row(Orchestrator, Post, "qos_temporary_lock", json!({}), "gatekeeper"),
        row(EventHandler, Get, "echo", Value::Null, "*"),
        row(EventHandler, Post, "publish/authupdate", event, "authorization"),
        row(EventHandler, Post, "subscribe", subscription, "sensor"),
        row(EventHandler, Delete, "unsubscribe?event_type=hot&system_name=sensor&address=10.0.0.1&port=1", Value::Null, "sensor sysop"),
        row(Gatekeeper, Get, "echo", Value::Null, "*"),
        row(Gatekeeper, Post, "init_gsd", json!({"requestedService": query("heat")}), "orchestrator"),
        row(Gatekeeper, Post, "init_multi_gsd", json!({"requestedServices": [query("heat")]}), "choreographer"),
        row(Gatekeeper, Post, "init_icn", json!({}), "orchestrator"),
        row(Gatekeeper, Get, "pull_clouds", Value::Null, "qosmonitor"),
        row(Gatekeeper, Post, "collect_system_addresses", json!({}), "qosmonitor"),
        row(Gatekeeper, Post, "collect_access_types", json!([]), "qosmonitor"),
        row(Gatekeeper, Post, "init_relay_test", json!({}), "qosmonitor"),
        row(Gatekeeper, Get, "cloud/{operator}/{name}", Value::Null, "orchestrator qosmonitor"),
        row(Gateway, Get, "echo", Value::Null, "*"),
        row(Gateway, Get, "publickey", Value::Null, "gatekeeper"),
        row(Gateway, Post, "connect_provider", json!({}), "gatekeeper"),
        row(Gateway, Post, "connect_consumer", json!({}), "gatekeeper"),
        row(Gateway, Post, "close_sessions", json!([8000]), "choreographer"),
    ]
}

/// What the shard serves by itself; `shard::publish` and `shard::stream` have its tests.
const OF_THE_SHARD: [&str; 3] = ["publish", "subscription", "events"];

struct World {
    data: tempfile::TempDir,
    audit_thread: AuditThread,
    _opened: Opened,
    control: Control,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let opened = Store::open(data.path()).unwrap();
        let (log, audit_thread) = AuditLog::open(&data.path().join("audit"), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        let control = Control {
            audit: Audit::new(log),
            tokens: None,
            gatekeeper: None,
            gateway: None,
            gateway_is_mandatory: false,
            unsubscribe_by_any: false,
            malformed: Default::default(),
            store: opened.store.clone(),
            stages: Arc::default(),
            naming: Default::default(),
            address_detection: None,
            pings: Pings::new(Duration::from_secs(1), Destinations::new(&[])),
            log_book: Default::default(),
            subscriptions_max: 10,
            owner_quota: Arc::new(OwnerQuota::new(&Limits::default())),
            inbox: Shard::inbox().unwrap().1,
            wishes: PushedWishes::new(
                Arc::new(RealTimeTopics::new(Platform::default(), Default::default()).unwrap()),
                Shard::inbox().unwrap().1,
            ),
            orchestrator: Default::default(),
            qualities: Default::default(),
            traces: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { data, audit_thread, _opened: opened, control, runtime }
    }

    fn ask(&self, system: CoreSystem, method: Method, target: &str, body: &[u8], caller: Caller) -> Answer {
        let target = format!("/{}/{target}", system.name());
        self.ask_at(system, method, &target, body, caller)
    }

    fn ask_at(&self, system: CoreSystem, method: Method, target: &str, body: &[u8], caller: Caller) -> Answer {
        let (path, query) = split_target(target);
        let request = Request {
            caller,
            sender: None,
            method,
            path: path.into_owned(),
            query,
            url: format!("https://h:1{target}"),
            content_type: if body.is_empty() { "" } else { "application/json" }.into(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: body.to_vec(),
        };
        self.runtime.block_on(self.control.answer(system, &request))
    }

    /// Asks as everybody; `allowed` are those who are not refused.
    fn check(&self, row: &Row) {
        let body = if row.body.is_null() { Vec::new() } else { row.body.to_string().into_bytes() };
        let told = |caller: &str| format!("{caller}: {:?} {} {}", row.method, row.target, row.body);
        let ask = |name: &str| self.ask(row.system, row.method, row.target, &body, caller(name));
        for name in CORE.split_whitespace().chain(OTHERS.split_whitespace()) {
            let common_name = format!("{name}.{OWN_CLOUD}");
            let answer = ask(&common_name);
            let is_allowed = row.allowed.split_whitespace().any(|allowed| allowed == name);
            assert_eq!(answer.status != 401, is_allowed, "{}: {} {:?}", told(name), answer.status, String::from_utf8_lossy(&answer.body));
            if !is_allowed {
                check_denial(&answer, &common_name, &url(row), false);
            }
        }
        for name in STRANGERS {
            check_denial(&ask(name), name, &url(row), true);
            // The certificate comes before everything that is wrong with the request.
            let garbage = self.ask(row.system, row.method, row.target, b"{", caller(name));
            check_denial(&garbage, name, &url(row), true);
        }
        assert_ne!(self.ask(row.system, row.method, row.target, &body, Caller::Anonymous).status, 401, "{}", told("insecure mode"));
    }
}

fn caller(common_name: &str) -> Caller {
    Caller::certified(common_name, &CloudCommonName::parse(OWN_CLOUD).unwrap())
}

fn url(row: &Row) -> String {
    format!("https://h:1/{}/{}", row.system.name(), row.target)
}

/// Upstream's form: it names the origin only where the certificate itself is the reason.
fn check_denial(answer: &Answer, common_name: &str, url: &str, names_origin: bool) {
    let mut expected =
        json!({"errorMessage": format!("{common_name} is unauthorized to access {url}"), "errorCode": 401, "exceptionType": "AUTH"});
    if names_origin {
        expected["origin"] = url.into();
    }
    assert_eq!((answer.status, answer.content_type), (401, Some("application/json;charset=ISO-8859-1")), "{expected}");
    assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap(), expected);
}

#[test]
fn everybody_is_let_in_or_refused_as_section_11_says() {
    let world = World::new();
    for row in rows() {
        world.check(&row);
    }
}

#[test]
fn management_is_for_the_operator() {
    let world = World::new();
    let exceptions = ["mgmt/intracloud"];
    let mut operations = 0;
    for system in CoreSystem::ALL {
        for (method, pattern) in route::of_system(system) {
            if !pattern.starts_with("mgmt") || exceptions.contains(&pattern) {
                continue;
            }
            let target: &'static str = pattern.replace("{id}", "1").replace("{serviceDefinition}", "heat").leak();
            let body = if method.has_body() { json!({}) } else { Value::Null };
            world.check(&row(system, method, target, body, "sysop"));
            operations += 1;
        }
    }
    assert!(operations > 40, "{operations}");
}

#[test]
fn every_operation_is_asked() {
    let rows = rows();
    for system in CoreSystem::ALL {
        for (method, pattern) in route::of_system(system) {
            let path = |target: &str| target.split('?').next().unwrap().replace("/1", "/{id}");
            let is_asked = rows.iter().any(|row| row.system == system && row.method == method && path(row.target) == pattern);
            let is_elsewhere = pattern.starts_with("mgmt") || OF_THE_SHARD.contains(&pattern);
            assert!(is_asked || is_elsewhere, "{method:?} /{}/{pattern}", system.name());
        }
    }
}

#[test]
fn what_is_not_there_is_told_to_systems_of_the_cloud_only() {
    let world = World::new();
    world.check(&row(ServiceRegistry, Get, "query/system/x", Value::Null, "orchestrator"));
    for target in ["nothing", "register/nothing", "echo/echo"] {
        world.check(&row(ServiceRegistry, Get, target, Value::Null, "*"));
    }
    world.check(&row(ServiceRegistry, Put, "register", json!({}), "*"));
    for (method, target) in [(Get, "mgmt/nothing/x"), (Get, "mgmt/x"), (Patch, "mgmt/grouped"), (Delete, "mgmt/systems")] {
        let body = if method.has_body() { json!({}) } else { Value::Null };
        world.check(&row(ServiceRegistry, method, target, body, "sysop"));
    }
    for target in ["/", "/swagger-ui.html", "/openapi.json", "/v2/api-docs", "/swagger-resources"] {
        for name in STRANGERS {
            check_denial(&world.ask_at(Authorization, Get, target, b"", caller(name)), name, &format!("https://h:1{target}"), true);
        }
        let answer = world.ask_at(Authorization, Get, target, b"", caller("sensor.cloud.operator.arrowhead.eu"));
        assert!(matches!(answer.status, 200 | 302), "{target} {}", answer.status);
    }
}

#[test]
fn whose_a_request_is_comes_before_what_is_wrong_with_it() {
    let world = World::new();
    let ask = |target: &str, body: Value| {
        let system = if target == "orchestration" { Orchestrator } else { ServiceRegistry };
        let system = if target == "subscribe" { EventHandler } else { system };
        world.ask(system, Post, target, body.to_string().as_bytes(), caller("sensor.cloud.operator.arrowhead.eu")).status
    };
    let other = json!({"systemName": "other"});
    assert_eq!(ask("register", json!({"providerSystem": other})), 401);
    assert_eq!(ask("register-system", other.clone()), 401);
    assert_eq!(ask("orchestration", json!({"requesterSystem": other})), 401);
    assert_eq!(ask("subscribe", json!({"subscriberSystem": other})), 401);
    // A request in nobody's name is refused by the operation itself, whoever sends it.
    for nobody in [json!({}), json!({"providerSystem": {}, "requesterSystem": {}, "subscriberSystem": {"systemName": " "}})] {
        for target in ["register", "register-system", "orchestration", "subscribe"] {
            assert_eq!(ask(target, nobody.clone()), 400, "{target} {nobody}");
        }
    }
    // Of two names in a body neither counts: it is no form.
    let twice = br#"{"systemName":"other","systemName":"sensor","address":"10.0.0.1","port":1}"#;
    let answer = world.ask(ServiceRegistry, Post, "register-system", twice, caller("sensor.cloud.operator.arrowhead.eu"));
    assert_eq!(answer.status, 400);
}

#[test]
fn every_denial_is_told_to_the_audit_log_with_who_what_and_why() {
    let world = World::new();
    let mut denied = Vec::new();
    for row in rows() {
        let body = if row.body.is_null() { Vec::new() } else { row.body.to_string().into_bytes() };
        for name in ["other.cloud.operator.arrowhead.eu", "sysop.cloud.operator.arrowhead.eu"] {
            if world.ask(row.system, row.method, row.target, &body, caller(name)).status == 401 {
                denied.push(name);
            }
        }
    }
    world.runtime.block_on(world.control.audit.tell_rest());
    let World { data, audit_thread, .. } = world;
    drop(audit_thread);
    let query = AuditQuery { kind: Some(Kind::Denial), ..AuditQuery::default() };
    let told = AuditReader::new(&data.path().join("audit")).first(&query, usize::MAX).unwrap();
    // Those that are the same are told once, and then with their number.
    let count = |name: &str| -> u64 {
        let of = told.iter().map(|read| &read.entry.event).filter(|event| event.caller == name);
        of.map(|event| event.detail.get("times").map_or(1, |times| times.as_u64().unwrap())).sum()
    };
    assert!(denied.len() > 50);
    for name in ["other.cloud.operator.arrowhead.eu", "sysop.cloud.operator.arrowhead.eu"] {
        assert_eq!(count(name), denied.iter().filter(|denied| **denied == name).count() as u64, "{name}");
    }
    assert!(told.iter().all(|read| read.entry.event.detail["why"].is_string() && read.entry.event.status == Some(401)));
}
