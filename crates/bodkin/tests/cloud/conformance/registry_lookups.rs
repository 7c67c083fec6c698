//! Service Registry: what other core systems and the management tool ask (reference section 3.1).

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::ports::held_port;

const MULTI: &str = "/serviceregistry/query/multi";

fn ids(rows: &Value, pointer: &str) -> Vec<i64> {
    list(rows, pointer).iter().map(|row| number(row, "/id")).collect()
}

#[test]
fn several_queries_are_answered_in_their_order() {
    let cloud = Cloud::shared();
    cloud.register(&service("multi-one", system("multi-one", 9601)));
    cloud.register(&service("multi-two", system("multi-two", 9602)));
    let form = |definition: &str| json!({"serviceDefinitionRequirement": definition});
    check(
        &cloud,
        &[
            Row::post("three", MULTI, &json!({"forms": [form("multi-two"), form("no-such"), form("Multi-One")]}))
                .has_length("/results", 3)
                .is("/results/0/serviceQueryData/0/provider/systemName", "multi-two")
                .is("/results/1", json!({"serviceQueryData": [], "unfilteredHits": 0}))
                .is("/results/2/serviceQueryData/0/provider/systemName", "multi-one"),
            Row::post("none", MULTI, &json!({"forms": []})).is("", json!({"results": []})),
            Row::post("no list", MULTI, &json!({})).bad_payload(MULTI),
            Row::post("a null", MULTI, &json!({"forms": [null]})).bad_payload(MULTI),
            Row::post("a blank one", MULTI, &json!({"forms": [form("multi-one"), form(" ")]})).bad_payload(MULTI),
        ],
    );
}

#[test]
fn each_query_pings_or_does_not() {
    let cloud = Cloud::shared();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let open_port = listener.local_addr().expect("an address").port();
    cloud.register(&service("multi-ping", system("multi-open", open_port)));
    cloud.register(&service("multi-ping", system("multi-closed", held_port())));
    let form = |ping: bool| json!({"serviceDefinitionRequirement": "multi-ping", "pingProviders": ping});
    let row = Row::post("both kinds", MULTI, &json!({"forms": [form(true), form(false)]}))
        .has_length("/results/0/serviceQueryData", 1)
        .is("/results/0/serviceQueryData/0/provider/port", open_port)
        .has_length("/results/1/serviceQueryData", 2);
    check(&cloud, &[row]);
}

/// A port that nobody listens on.
/// A port of all loopback addresses on which connections are neither accepted nor refused: the queue of those that wait is full.
struct Deaf {
    listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Deaf {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let listener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("a free port");
            socket.listen(1).expect("it listens").into_std().expect("a socket of the system")
        });
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().expect("an address").port()));
        let waiting = std::iter::from_fn(|| TcpStream::connect_timeout(&own, Duration::from_millis(200)).ok());
        Self { _waiting: waiting.collect(), listener }
    }
}

#[test]
fn a_hundred_dead_providers_take_the_time_of_one() {
    let cloud = Launch::new().flags(["--ping-timeout-ms", "700"]).start();
    let deaf = Deaf::new();
    let port = deaf.listener.local_addr().expect("an address").port();
    for last in 1..=100 {
        cloud.register(&service("deaf", json!({"systemName": format!("deaf-{last}"), "address": format!("127.0.7.{last}"), "port": port})));
    }
    let started = Instant::now();
    let answer = cloud.query(&json!({"serviceDefinitionRequirement": "deaf", "pingProviders": true}));
    let took = started.elapsed();
    assert_eq!((list(&answer, "/serviceQueryData").len(), number(&answer, "/unfilteredHits")), (0, 100));
    assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(7), "{took:?}");
}

#[test]
fn systems_are_found_by_id_and_by_what_they_are() {
    let cloud = Cloud::shared();
    let id = cloud.register_system("query-system", 9603);
    let (by_id, by_triple) = ("/serviceregistry/query/system/{id}", "/serviceregistry/query/system");
    check(
        &cloud,
        &[
            Row::get("by id", format!("/serviceregistry/query/system/{id}")).is("/systemName", "query-system"),
            Row::get("id 0", "/serviceregistry/query/system/0").bad_payload(by_id),
            Row::get("no such id", "/serviceregistry/query/system/999999999").invalid_parameter(),
            Row::post("by triple in any case", by_triple, &system(" Query-SYSTEM ", 9603)).is("/id", id),
            Row::post("another port", by_triple, &system("query-system", 9604)).invalid_parameter(),
            Row::post("no name", by_triple, &with(system("x", 1), "/systemName", "")).bad_payload(by_triple),
            Row::post("no port", by_triple, &json!({"systemName": "x", "address": "127.0.0.1"})).bad_payload(by_triple),
        ],
    );
}

#[test]
fn services_are_listed_for_a_provider_and_for_definitions() {
    let cloud = Cloud::shared();
    let first = cloud.register(&service("lookup-a", system("lookup", 9605)));
    let second = cloud.register(&with(service("lookup-a", system("lookup", 9605)), "/serviceUri", "/2"));
    let third = cloud.register(&service("lookup-b", system("lookup", 9605)));
    let lonely = cloud.register_system("lookup-lonely", 9605);
    let all = [&first, &second, &third].map(|entry| number(entry, "/id"));
    let provider = cloud.get(&format!("/serviceregistry/query/provider/{}", number(&first, "/provider/id"))).expect_status(200).json();
    assert_eq!((ids(&provider, "/data"), &provider["count"]), (all.to_vec(), &json!(3)));
    let definitions = json!([" Lookup-A", "no-such", null, "lookup-b", "lookup-a", ""]);
    let found = cloud.post("/serviceregistry/query/definition", &definitions).expect_status(200).json();
    assert_eq!((ids(&found, "/data"), &found["count"]), (all.to_vec(), &json!(3)));
    let (of_provider, of_definitions) = ("/serviceregistry/query/provider", "/serviceregistry/query/definition");
    check(
        &cloud,
        &[
            Row::get("who offers nothing", format!("{of_provider}/{lonely}")).is("", json!({"data": [], "count": 0})),
            Row::get("id 0", format!("{of_provider}/0")).bad_payload(format!("{of_provider}/{{id}}")),
            Row::get("no such id", format!("{of_provider}/999999999")).invalid_parameter(),
            Row::post("no definition", of_definitions, &json!([])).is("", json!({"data": [], "count": 0})),
            Row::post("an object", of_definitions, &json!({})).empty(400),
        ],
    );
    let everything = cloud.get("/serviceregistry/query/all").expect_status(200).json();
    assert!(all.iter().all(|id| ids(&everything, "/data").contains(id)));
    assert_eq!(number(&everything, "/count"), list(&everything, "/data").len() as i64);
}

#[test]
fn the_services_of_a_definition_are_paged() {
    let cloud = Cloud::shared();
    let entries: Vec<i64> = ["c", "a", "b"]
        .iter()
        .map(|uri| number(&cloud.register(&with(service("servicedef", system("servicedef", 9606)), "/serviceUri", *uri)), "/id"))
        .collect();
    let path = "/serviceregistry/mgmt/servicedef";
    let page = |parameters: &str| cloud.get(&format!("{path}/Servicedef?{parameters}")).expect_status(200).json();
    assert_eq!(ids(&page(""), "/data"), entries);
    assert_eq!(ids(&page("page=0&item_per_page=2&direction=DESC"), "/data"), [entries[2], entries[1]]);
    assert_eq!(page("page=1&item_per_page=2")["count"], 3);
    let origin = format!("{path}/{{serviceDefinition}}");
    check(
        &cloud,
        &[
            Row::get("unknown", format!("{path}/no-such")).invalid_parameter(),
            Row::get("half a page", format!("{path}/servicedef?page=0")).bad_payload(origin),
            Row::get("another's field", format!("{path}/servicedef?sort_field=serviceUri")).invalid_parameter(),
        ],
    );
    let lenient = Launch::new().flags(["--use-strict-service-definition-verifier", "false"]).start();
    lenient.register(&service("any text, 100 %", system("any", 9607)));
    check(&lenient, &[Row::get("an encoded name", format!("{path}/any%20text%2C%20100%20%25")).has_length("/data", 1)]);
}

#[test]
fn systems_and_rules_are_pulled() {
    let cloud = Launch::new().flags(["--allow-self-addressing", "false", "--use-strict-service-definition-verifier", "false"]).start();
    let address = |last: u8| json!({"systemName": format!("pull-{last}"), "address": format!("192.0.2.{last}"), "port": 9608});
    for last in [3, 1, 2] {
        cloud.post("/serviceregistry/register-system", &address(last)).expect_status(201);
    }
    let pulled = cloud.get("/serviceregistry/pull-systems?page=0&item_per_page=3&sort_field=address&direction=DESC").json();
    assert_eq!(texts(list(&pulled, "/data"), "/address"), ["192.0.2.3", "192.0.2.2", "192.0.2.1"]);
    let map = json!({"use_strict_service_definition_verifier": "false", "allow_self_addressing": "false", "allow_non_routable_addressing": "true"});
    check(
        &cloud,
        &[
            Row::get("half a page", "/serviceregistry/pull-systems?page=1").bad_payload("/serviceregistry/pull-systems"),
            Row::get("configuration", "/serviceregistry/pull-config").is("", json!({"map": map})),
        ],
    );
}

#[test]
fn everything_is_grouped_twice_and_named() {
    let cloud = Launch::new().start();
    let provider = with(system("grouped-p", 9609), "/metadata", json!({"a": "b"}));
    let first = cloud.register(&service("grouped-a", provider.clone()));
    let second = cloud.register(&with(service("grouped-a", provider.clone()), "/serviceUri", "/2"));
    let third = cloud.register(&service("grouped-b", provider));
    let consumer = cloud.register_system("grouped-c", 9609);
    let lonely = cloud.post("/serviceregistry/mgmt/services", &json!({"serviceDefinition": "grouped-none"})).expect_status(201).json();
    let view = cloud.get("/serviceregistry/mgmt/grouped").expect_status(200).json();
    let with_id = |pointer: &str, member: &str, id: &Value| {
        let found: Vec<&Value> = list(&view, pointer).iter().filter(|row| row[member] == *id).collect();
        assert!(found.len() <= 1, "no group twice: {found:?}");
        found.first().map(|row| (*row).clone())
    };
    let of_system = with_id("/servicesGroupedBySystems", "systemId", &first["provider"]["id"]).expect("its group");
    assert_eq!(
        without_services(&of_system, "services"),
        json!({"systemId": first["provider"]["id"], "systemName": "grouped-p", "address": "127.0.0.1", "port": 9609, "metadata": {"a": "b"}})
    );
    assert_eq!(of_system["services"], shown(&cloud, &[&first, &second, &third]));
    assert_eq!(with_id("/servicesGroupedBySystems", "systemId", &json!(consumer)), None, "who offers nothing has no group");
    let of_definition =
        with_id("/servicesGroupedByServiceDefinition", "serviceDefinitionId", &first["serviceDefinition"]["id"]).expect("its group");
    assert_eq!(
        without_services(&of_definition, "providerServices"),
        json!({"serviceDefinitionId": first["serviceDefinition"]["id"], "serviceDefinition": "grouped-a"})
    );
    assert_eq!(of_definition["providerServices"], shown(&cloud, &[&first, &second]));
    let complete = |kind: &str, id: &Value| with_id(&format!("/autoCompleteData/{kind}"), "id", id);
    assert_eq!(complete("serviceList", &lonely["id"]), Some(json!({"id": lonely["id"], "value": "grouped-none"})));
    assert_eq!(complete("systemList", &json!(consumer)).expect("it may consume")["systemName"], "grouped-c");
    assert_eq!(complete("interfaceList", &json!(2)), Some(json!({"id": 2, "value": "HTTP-INSECURE-JSON"})));
    let sorted = [("/servicesGroupedBySystems", "/systemId"), ("/servicesGroupedByServiceDefinition", "/serviceDefinitionId")];
    for (pointer, id) in sorted {
        assert!(list(&view, pointer).iter().map(|row| number(row, id)).is_sorted(), "{pointer}");
    }
}

fn without_services(group: &Value, member: &str) -> Value {
    let mut group = group.clone();
    group.as_object_mut().expect("an object").remove(member).expect("it has services");
    group
}

/// Entries as they are shown now.
fn shown(cloud: &Cloud, entries: &[&Value]) -> Value {
    entries.iter().map(|entry| cloud.get(&format!("/serviceregistry/mgmt/{}", number(entry, "/id"))).expect_status(200).json()).collect()
}
