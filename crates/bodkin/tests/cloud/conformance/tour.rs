//! One successful call of every endpoint, with the shape of its answer. An endpoint without one fails the test.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::endpoint::{ENDPOINTS, Endpoint, endpoint_of};
use super::shape;
use super::table::{ARROWHEAD, Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, list, number, service, subscription, system, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;

/// Calls endpoints of one cloud and keeps which.
struct Tour {
    cloud: Cloud,
    called: BTreeSet<(&'static str, &'static str)>,
}

impl Tour {
    /// Rows that follow from one another.
    #[track_caller]
    fn check(&mut self, rows: &[Row]) {
        self.called.extend(rows.iter().map(endpoint).map(|endpoint| (endpoint.method, endpoint.path)));
        check(&self.cloud, rows);
    }

    /// Rows that stand for themselves.
    #[track_caller]
    fn check_each<const N: usize>(&mut self, rows: [Row; N]) {
        rows.into_iter().for_each(|row| self.check(&[row]));
    }

    fn ids(&self, target: &str) -> Vec<i64> {
        list(&self.cloud.get(target).expect_status(200).json(), "/data").iter().map(|row| number(row, "/id")).collect()
    }

    fn last_id(&self, target: &str) -> i64 {
        *self.ids(target).last().unwrap_or_else(|| panic!("{target} is empty"))
    }
}

fn endpoint(row: &Row) -> &'static Endpoint {
    let (method, target) = row.request_line();
    endpoint_of(method, target).unwrap_or_else(|| panic!("{method} {target} is no endpoint"))
}

fn put(claim: &str, target: &str, body: &Value) -> Row {
    Row::new(claim, "PUT", target).sending("application/json", body.to_string())
}

fn patch(claim: &str, target: &str, body: &Value) -> Row {
    Row::new(claim, "PATCH", target).sending("application/json", body.to_string())
}

#[test]
fn every_endpoint_answers_a_good_request_in_its_shape() {
    let mut tour = Tour { cloud: Launch::new().start(), called: BTreeSet::new() };
    every_system(&mut tour);
    registry_clients(&mut tour);
    registry_lookups(&mut tour);
    registry_systems(&mut tour);
    registry_names(&mut tour);
    registry_entries(&mut tour);
    authorization(&mut tour);
    orchestration(&mut tour);
    orchestrator_store(&mut tour);
    quality_of_service(&mut tour);
    events(&mut tour);
    tour.cloud = Launch::new().flags(["--use-flexible-store", "true"]).start();
    flexible_store(&mut tour);
    let known: BTreeSet<(&str, &str)> = ENDPOINTS.iter().map(|endpoint| (endpoint.method, endpoint.path)).collect();
    let left_out: Vec<_> = known.difference(&tour.called).collect();
    assert!(left_out.is_empty(), "nothing shows that these work: {left_out:#?}");
}

fn every_system(tour: &mut Tour) {
    for name in ["serviceregistry", "authorization", "orchestrator", "eventhandler"] {
        let logs = format!("/{name}/mgmt/logs");
        // Entries are written behind what they tell of.
        let are_there = || tour.cloud.get(&logs).json()["count"].as_u64().is_some_and(|count| count > 0);
        assert!(eventually(are_there), "{name} logs nothing");
        tour.check_each([
            Row::get("echo", format!("/{name}/echo")).text("Got it!"),
            Row::get("logs", logs).shaped("", &shape::LOGS).has("/data/0/message"),
        ]);
    }
}

fn registry_clients(tour: &mut Tour) {
    let full = json!({"serviceDefinition": "tour", "serviceUri": "/tour", "endOfValidity": "2035-01-01T00:00:00Z", "secure": "not_secure",
        "providerSystem": {"systemName": "Tour-Provider", "address": "127.0.0.1", "port": 7001, "metadata": {"a": "b"}},
        "metadata": {"unit": "celsius"}, "version": 3, "interfaces": ["http-insecure-json", "HTTP-SECURE-JSON"]});
    let query = json!({"serviceDefinitionRequirement": "Tour", "interfaceRequirements": ["HTTP-INSECURE-JSON"],
        "securityRequirements": ["NOT_SECURE"], "metadataRequirements": {"unit": "celsius"}, "minVersionRequirement": 1,
        "maxVersionRequirement": 5, "providerAddressTypeRequirements": ["IPV4"], "pingProviders": false});
    let several = json!({"forms": [{"serviceDefinitionRequirement": "no-such"}, query]});
    tour.check(&[
        Row::post("register", "/serviceregistry/register", &full)
            .created()
            .shaped("", &shape::ENTRY)
            .is("/serviceDefinition/serviceDefinition", "tour")
            .is("/provider/systemName", "tour-provider")
            .is("/secure", "NOT_SECURE")
            .is("/version", 3)
            .is("/endOfValidity", "2035-01-01T00:00:00Z")
            .is("/metadata", json!({"unit": "celsius"}))
            .is("/interfaces/0/interfaceName", "HTTP-INSECURE-JSON"),
        Row::post("query", "/serviceregistry/query", &query)
            .shaped("", &shape::QUERY_RESULT)
            .is("/unfilteredHits", 1)
            .has_length("/serviceQueryData/0/interfaces", 1),
    ]);
    tour.check(&[Row::post("query of several", "/serviceregistry/query/multi", &several)
        .shaped("", &shape::QUERY_RESULTS)
        .is("/results/0", json!({"serviceQueryData": [], "unfilteredHits": 0}))
        .has_length("/results/1/serviceQueryData", 1)]);
    tour.check(&[
        Row::delete(
            "unregister",
            "/serviceregistry/unregister?service_definition=Tour&system_name=TOUR-provider&address=127.0.0.1&port=7001&service_uri=%2Ftour",
        )
        .void(),
        Row::post("it is gone", "/serviceregistry/query", &query).is("/unfilteredHits", 0),
        Row::post("register a system", "/serviceregistry/register-system", &system("tour-system", 7002))
            .created()
            .shaped("", &shape::SYSTEM),
        Row::delete("unregister it", "/serviceregistry/unregister-system?system_name=tour-system&address=127.0.0.1&port=7002").void(),
    ]);
}

fn registry_lookups(tour: &mut Tour) {
    let entry = tour.cloud.register(&service("tour-lookup", system("tour-lookup", 7003)));
    let provider = number(&entry, "/provider/id");
    tour.check_each([
        Row::get("a system", format!("/serviceregistry/query/system/{provider}")).is("", entry["provider"].clone()),
        Row::post("a system by its triple", "/serviceregistry/query/system", &system("Tour-Lookup", 7003))
            .is("", entry["provider"].clone()),
        Row::get("all entries", "/serviceregistry/query/all").shaped("", &shape::ENTRIES).has("/data/0"),
        Row::get("entries of a provider", format!("/serviceregistry/query/provider/{provider}"))
            .shaped("", &shape::ENTRIES)
            .has_length("/data", 1)
            .is("/count", 1),
        Row::post("entries of definitions", "/serviceregistry/query/definition", &json!(["no-such", "tour-lookup"]))
            .shaped("", &shape::ENTRIES)
            .has_length("/data", 1),
        Row::get("systems", "/serviceregistry/pull-systems").shaped("", &shape::SYSTEMS).has("/data/0"),
        Row::get("configuration", "/serviceregistry/pull-config")
            .shaped("", &shape::CONFIG)
            .is("/map/use_strict_service_definition_verifier", "true")
            .is("/map/allow_self_addressing", "true")
            .is("/map/allow_non_routable_addressing", "true"),
        Row::get("grouped", "/serviceregistry/mgmt/grouped")
            .shaped("", &shape::GROUPED)
            .has("/servicesGroupedBySystems/0/services/0")
            .has("/servicesGroupedByServiceDefinition/0/providerServices/0")
            .has("/autoCompleteData/serviceList/0")
            .has("/autoCompleteData/systemList/0")
            .is("/autoCompleteData/interfaceList/0/value", "HTTP-SECURE-JSON"),
    ]);
}

fn registry_systems(tour: &mut Tour) {
    const SYSTEMS: &str = "/serviceregistry/mgmt/systems";
    tour.check(&[
        Row::post("create", SYSTEMS, &with(system("tour-managed", 7004), "/metadata", json!({"a": "b"})))
            .created()
            .shaped("", &shape::SYSTEM)
            .is("/metadata", json!({"a": "b"})),
        Row::get("list", SYSTEMS).shaped("", &shape::SYSTEMS).has("/data/0"),
    ]);
    let target = format!("{SYSTEMS}/{}", tour.last_id(SYSTEMS));
    tour.check(&[Row::get("show", &target).shaped("", &shape::SYSTEM).is("/systemName", "tour-managed")]);
    tour.check(&[
        put("replace", &target, &system("tour-replaced", 7005)).shaped("", &shape::SYSTEM).is("/port", 7005).lacks("/metadata"),
        patch("change", &target, &json!({"systemName": "tour-changed"})).is("/systemName", "tour-changed").is("/port", 7005),
        Row::get("show what it became", &target).is("/systemName", "tour-changed"),
    ]);
    tour.check(&[Row::delete("remove", &target).void(), Row::get("it is gone", &target).invalid_parameter()]);
}

/// Service definitions and interfaces.
fn registry_names(tour: &mut Tour) {
    let kinds = [
        ("services", "serviceDefinition", ["tour-defined", "tour-put", "tour-patched"], &shape::DEFINITION, &shape::DEFINITIONS),
        ("interfaces", "interfaceName", ["T-INSECURE-X", "T-INSECURE-Y", "T-INSECURE-Z"], &shape::INTERFACE, &shape::INTERFACES),
    ];
    let mut entry = service("tour-first", system("tour-names", 7007));
    entry["interfaces"] = json!(["FIRST-INSECURE-TOUR"]);
    tour.cloud.register(&entry);
    for (kind, member, [first, second, third], one, many) in kinds {
        let path = format!("/serviceregistry/mgmt/{kind}");
        let pointer = format!("/{member}");
        tour.check(&[Row::post("create", &path, &json!({member: first})).created().shaped("", one).is(&pointer, first)]);
        tour.check(&[Row::get("list", &path).shaped("", many).has("/data/0")]);
        let target = format!("{path}/{}", tour.last_id(&path));
        tour.check(&[Row::get("show", &target).shaped("", one).has(&pointer)]);
        tour.check(&[
            put("replace", &target, &json!({member: second})).shaped("", one).is(&pointer, second),
            patch("change", &target, &json!({member: third})).shaped("", one).is(&pointer, third),
            Row::get("show what it became", &target).is(&pointer, third),
        ]);
        tour.check(&[Row::delete("remove", &target).void(), Row::get("it is gone", &target).invalid_parameter()]);
    }
}

fn registry_entries(tour: &mut Tour) {
    const ENTRIES: &str = "/serviceregistry/mgmt";
    let request = with(service("tour-entry", system("tour-entry", 7006)), "/version", 4);
    tour.check(&[
        Row::post("create", ENTRIES, &request).created().shaped("", &shape::ENTRY),
        Row::get("list", ENTRIES).shaped("", &shape::ENTRIES).has("/data/0"),
    ]);
    let of_definition = "/serviceregistry/mgmt/servicedef/tour-entry";
    tour.check(&[Row::get("list of a definition", of_definition).shaped("", &shape::ENTRIES).has_length("/data", 1)]);
    let target = format!("{ENTRIES}/{}", tour.last_id(ENTRIES));
    tour.check(&[Row::get("show", &target).shaped("", &shape::ENTRY).is("/version", 4)]);
    tour.check(&[
        put("replace", &target, &with(request, "/serviceUri", "/replaced")).shaped("", &shape::ENTRY).is("/serviceUri", "/replaced"),
        patch("change", &target, &json!({"version": 9})).shaped("", &shape::ENTRY).is("/version", 9).is("/serviceUri", "/replaced"),
    ]);
    tour.check(&[Row::delete("remove", &target).void(), Row::get("it is gone", &target).invalid_parameter()]);
}

fn authorization(tour: &mut Tour) {
    const INTRA: &str = "/authorization/mgmt/intracloud";
    let consumer = tour.cloud.register_system("tour-consumer", 7010);
    let (provider, definition) = tour.cloud.register_publisher("tour-auth", 7011);
    let rule = json!({"consumerId": consumer, "providerIds": [provider], "serviceDefinitionIds": [definition],
        "interfaceIds": [INSECURE_JSON_ID]});
    tour.check(&[
        Row::post("allow", INTRA, &rule).created().shaped("", &shape::RULES).is("/count", 1).is("/data/0/consumerSystem/id", consumer),
        Row::post("allow again", INTRA, &rule).created().is("", json!({"data": [], "count": 0})),
        Row::get("rules", INTRA).shaped("", &shape::RULES).has("/data/0"),
    ]);
    let target = format!("{INTRA}/{}", tour.last_id(INTRA));
    let check = json!({"consumer": system("tour-consumer", 7010), "serviceDefinitionId": definition,
        "providerIdsWithInterfaceIds": [{"id": provider, "idList": [INSECURE_JSON_ID, 1]}]});
    let subscription_check = json!({"consumer": system("tour-consumer", 7010), "publishers": null});
    let token = json!({"consumer": system("tour-consumer", 7010), "consumerCloud": null, "service": "tour-auth-service",
        "providers": [{"provider": system("tour-auth", 7011), "serviceInterfaces": ["HTTP-INSECURE-JSON"], "tokenDuration": 60}]});
    tour.check_each([
        Row::get("rule", &target).shaped("", &shape::RULE),
        Row::post("check", "/authorization/intracloud/check", &check)
            .shaped("", &shape::INTRACLOUD_CHECK)
            .is("/authorizedProviderIdsWithInterfaceIds", json!([{"id": provider, "idList": [INSECURE_JSON_ID]}])),
        Row::post("check a subscription", "/authorization/subscription/check", &subscription_check)
            .shaped("", &shape::SUBSCRIPTION_CHECK)
            .is("/publishers/0/systemName", "tour-auth"),
        // What needs keys is answered so without them.
        Row::get("public key", "/authorization/publickey").refused(500, ARROWHEAD),
        Row::post("token", "/authorization/token", &token).refused(500, ARROWHEAD),
        Row::post("tokens", "/authorization/token/multi", &json!([token])).refused(500, ARROWHEAD),
    ]);
    tour.check(&[Row::delete("remove the rule", &target).void(), Row::get("it is gone", &target).invalid_parameter()]);
    intercloud_rules(tour, provider, definition);
}

/// With the own cloud, which is there from the start.
fn intercloud_rules(tour: &mut Tour, provider: i64, definition: i64) {
    const INTER: &str = "/authorization/mgmt/intercloud";
    let rule = json!({"cloudId": 1, "providerIdList": [provider], "serviceDefinitionIdList": [definition],
        "interfaceIdList": [INSECURE_JSON_ID]});
    tour.check(&[
        Row::post("allow a cloud", INTER, &rule).created().shaped("", &shape::INTERCLOUD_RULES).is("/count", 1),
        Row::get("rules", INTER).shaped("", &shape::INTERCLOUD_RULES).has("/data/0"),
    ]);
    let target = format!("{INTER}/{}", tour.last_id(INTER));
    let check = json!({"cloud": {"operator": "default-operator", "name": "default-insecure-cloud"}, "serviceDefinition": "tour-auth-service",
        "providerIdsWithInterfaceIds": [{"id": provider, "idList": [INSECURE_JSON_ID, 1]}]});
    tour.check(&[
        Row::get("rule", &target).shaped("", &shape::INTERCLOUD_RULE).is("/cloud/name", "default-insecure-cloud"),
        Row::post("check a cloud", "/authorization/intercloud/check", &check)
            .shaped("", &shape::INTERCLOUD_CHECK)
            .is("/authorizedProviderIdsWithInterfaceIds", json!([{"id": provider, "idList": [INSECURE_JSON_ID]}])),
        Row::delete("remove", &target).void(),
        Row::get("it is gone", &target).invalid_parameter(),
    ]);
}

/// A consumer that may use a service, and the form by which it asks for it.
fn allowed_consumer(cloud: &Cloud, name: &str, port: u16) -> (i64, Value) {
    let consumer = cloud.register_system(&format!("{name}-consumer"), port);
    let (provider, definition) = cloud.register_publisher(name, port);
    cloud.allow(consumer, provider, definition, &[INSECURE_JSON_ID]);
    let form = json!({"requesterSystem": system(&format!("{name}-consumer"), port), "orchestrationFlags": {"overrideStore": true},
        "requestedService": {"serviceDefinitionRequirement": format!("{name}-service"), "interfaceRequirements": ["HTTP-INSECURE-JSON"]}});
    (consumer, form)
}

fn orchestration(tour: &mut Tour) {
    let (_, form) = allowed_consumer(&tour.cloud, "tour-orch", 7020);
    let stranger = with(form.clone(), "/requesterSystem/systemName", "tour-auth");
    tour.check_each([
        Row::post("dynamic", "/orchestrator/orchestration", &form)
            .shaped("", &shape::ORCHESTRATION)
            .has_length("/response", 1)
            .is("/response/0/authorizationTokens", Value::Null)
            .is("/response/0/warnings", json!(["TTL_UNKNOWN"]))
            .is("/response/0/metadata", json!({})),
        Row::post("by proxy no rule is asked", "/orchestrator/orchestration-by-proxy", &stranger)
            .shaped("", &shape::ORCHESTRATION)
            .has_length("/response", 1),
        Row::get("quality of service", "/orchestrator/qos_enabled").text("false"),
    ]);
}

fn orchestrator_store(tour: &mut Tour) {
    const STORE: &str = "/orchestrator/mgmt/store";
    let (consumer, form) = allowed_consumer(&tour.cloud, "tour-store", 7030);
    let element = json!({"serviceDefinitionName": "tour-store-service", "consumerSystemId": consumer, "priority": 1,
        "providerSystem": system("tour-store", 7030), "serviceInterfaceName": "HTTP-INSECURE-JSON", "attribute": {"a": "b"}});
    let group = json!({"consumerSystemId": consumer, "serviceDefinitionName": "tour-store-service",
        "serviceInterfaceName": "HTTP-INSECURE-JSON"});
    tour.check(&[
        Row::post("create, and one that is skipped", STORE, &json!([element, element]))
            .shaped("", &shape::STORE_ENTRIES)
            .is("/count", 1)
            .is("/data/0/priority", 1)
            .is("/data/0/foreign", false)
            .is("/data/0/providerCloud", Value::Null)
            .is("/data/0/attribute", json!({"a": "b"})),
        Row::get("list", STORE).shaped("", &shape::STORE_ENTRIES).is("/count", 1),
        Row::get("top priorities", format!("{STORE}/all_top_priority")).shaped("", &shape::STORE_ENTRIES).has_length("/data", 1),
        Row::post("of a consumer", format!("{STORE}/all_by_consumer"), &group).shaped("", &shape::STORE_ENTRIES).has_length("/data", 1),
    ]);
    let id = tour.last_id(STORE);
    let target = format!("{STORE}/{id}");
    tour.check(&[
        Row::get("show", &target).shaped("", &shape::STORE_ENTRY).is("/consumerSystem/id", consumer),
        Row::post("priorities", format!("{STORE}/modify_priorities"), &json!({"priorityMap": {id.to_string(): 1}})).void(),
        Row::get("by the store", format!("/orchestrator/orchestration/{consumer}"))
            .shaped("", &shape::ORCHESTRATION)
            .is("/response/0/provider/systemName", "tour-store"),
        Row::post("by the store", "/orchestrator/orchestration", &with(form, "/orchestrationFlags/overrideStore", false))
            .shaped("", &shape::ORCHESTRATION)
            .has_length("/response", 1),
        Row::delete("remove", &target).void(),
        Row::get("it is gone", &target).invalid_parameter(),
    ]);
}

fn quality_of_service(tour: &mut Tour) {
    let (_, form) = allowed_consumer(&tour.cloud, "tour-qos", 7040);
    let results = tour.cloud.post("/orchestrator/orchestration", &form).expect_status(200).json()["response"].clone();
    let lock = json!({"requester": form["requesterSystem"], "orList": results});
    let reserve = with(lock.clone(), "/selected", results[0].clone());
    tour.check_each([
        Row::get("reservations", "/orchestrator/qos_reservations"),
        Row::post("lock", "/orchestrator/qos_temporary_lock", &lock).shaped("", &shape::ORCHESTRATION).has_length("/response", 1),
        Row::post("reserve", "/orchestrator/qos_reservations", &reserve).void(),
    ]);
}

fn events(tour: &mut Tour) {
    const SUBSCRIPTIONS: &str = "/eventhandler/mgmt/subscriptions";
    let subscriber = tour.cloud.register_system("tour-subscriber", 7050);
    tour.cloud.register_system("tour-publisher", 7051);
    let form = subscription("tour", system("tour-subscriber", 7050), "/notify");
    let changed = with(with(form.clone(), "/notifyUri", "/changed"), "/endDate", "2035-01-01T00:00:00Z");
    let auth_update = event("subscriber_auth_update", system("authorization", 1), &subscriber.to_string());
    let source = list(&tour.cloud.get("/serviceregistry/mgmt/systems").json(), "/data")
        .iter()
        .find(|system| system["systemName"] == "authorization")
        .map(|system| json!({"systemName": "authorization", "address": system["address"], "port": system["port"]}))
        .expect("the Authorization system is registered");
    tour.check_each([
        Row::post("subscribe", "/eventhandler/subscribe", &form).void(),
        Row::post("publish", "/eventhandler/publish", &event("tour", system("tour-publisher", 7051), "x")).void(),
        Row::post("rules have changed", "/eventhandler/publish/authupdate", &with(auth_update, "/source", source)).void(),
        Row::get("list", SUBSCRIPTIONS).shaped("", &shape::SUBSCRIPTIONS).is("/count", 1),
    ]);
    let target = format!("{SUBSCRIPTIONS}/{}", tour.last_id(SUBSCRIPTIONS));
    let unsubscribe = "/eventhandler/unsubscribe?event_type=tour&system_name=tour-subscriber&address=127.0.0.1&port=7050";
    tour.check_each([
        Row::get("show", &target).shaped("", &shape::SUBSCRIPTION).is("/eventType/eventTypeName", "TOUR"),
        put("replace", &target, &changed)
            .shaped("", &shape::SUBSCRIPTION)
            .is("/notifyUri", "/changed")
            .is("/endDate", "2035-01-01T00:00:00Z"),
        Row::delete("unsubscribe", unsubscribe).void(),
        Row::get("it is gone", SUBSCRIPTIONS).is("", json!({"data": [], "count": 0})),
        Row::delete("remove what is gone", &target).void(),
    ]);
}

fn flexible_store(tour: &mut Tour) {
    const MANAGED: &str = "/orchestrator/mgmt/store/flexible";
    const PRIVATE: &str = "/orchestrator/store/flexible";
    let rule = json!({"consumerSystem": {"systemName": "tour-consumer"}, "providerSystem": {"metadata": {"a": "b"}},
        "serviceDefinitionName": "tour"});
    tour.check(&[
        Row::post("create", MANAGED, &json!([rule, rule])).created().shaped("", &shape::FLEXIBLE_RULES).is("/count", 2),
        Row::post("create", PRIVATE, &json!([with(rule, "/priority", 5)]))
            .created()
            .shaped("", &shape::FLEXIBLE_RULES)
            .is("/data/0/priority", 5),
        Row::get("list", MANAGED).shaped("", &shape::FLEXIBLE_RULES).is("/count", 3).is("/data/0/priority", 2_147_483_647),
    ]);
    let ids = tour.ids(MANAGED);
    tour.check(&[
        Row::delete("remove", format!("{MANAGED}/{}", ids[0])).void(),
        Row::delete("remove", format!("{PRIVATE}/{}", ids[1])).void(),
        Row::get("one is left", MANAGED).is("/count", 1),
        Row::delete("remove all", format!("{PRIVATE}/all")).void(),
        Row::get("none is left", MANAGED).is("", json!({"data": [], "count": 0})),
        // With the flexible store on, the plain one is off.
        Row::get("plain store", "/orchestrator/mgmt/store").refused(400, "BAD_PAYLOAD"),
    ]);
}
