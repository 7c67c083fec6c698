//! Orchestrator: management of the orchestration store (reference section 5.4).

use std::thread;

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, with, without};
use crate::support::cloud::{Cloud, Launch};

const STORE: &str = "/orchestrator/mgmt/store";
const MODIFY: &str = "/orchestrator/mgmt/store/modify_priorities";
const SEARCH: &str = "/orchestrator/mgmt/store/all_by_consumer";
const TOPS: &str = "/orchestrator/mgmt/store/all_top_priority";

/// A consumer and providers of a service, under names of the test's own.
struct Cast<'a> {
    cloud: &'a Cloud,
    name: &'a str,
    consumer: i64,
}

impl<'a> Cast<'a> {
    fn new(cloud: &'a Cloud, name: &'a str) -> Self {
        for which in ["a", "b", "c"] {
            cloud.register(&service(name, system(&format!("{name}-{which}"), 9851)));
        }
        Self { cloud, name, consumer: cloud.register_system(&format!("{name}-consumer"), 9851) }
    }

    fn request(&self, which: &str, priority: i64) -> Value {
        json!({"serviceDefinitionName": self.name, "consumerSystemId": self.consumer, "priority": priority,
            "providerSystem": system(&format!("{}-{which}", self.name), 9851), "serviceInterfaceName": "HTTP-INSECURE-JSON"})
    }

    /// Makes entries and gives their ids.
    #[track_caller]
    fn insert(&self, requests: &[Value]) -> Vec<i64> {
        let answer = self.cloud.post(STORE, &json!(requests)).expect_status(200).json();
        assert_eq!(number(&answer, "/count"), list(&answer, "/data").len() as i64);
        list(&answer, "/data").iter().map(|entry| number(entry, "/id")).collect()
    }

    /// The consumer's entries as providers in order of priority; their priorities must be dense.
    #[track_caller]
    fn order(&self) -> String {
        let form = json!({"consumerSystemId": self.consumer, "serviceDefinitionName": self.name});
        let answer = self.cloud.post(&format!("{SEARCH}?sort_field=priority"), &form).expect_status(200).json();
        let entries = list(&answer, "/data");
        assert!(entries.iter().zip(1..).all(|(entry, priority)| entry["priority"] == priority), "{answer}");
        let which = |entry: &Value| entry["providerSystem"]["systemName"].as_str().map(|name| name[self.name.len() + 1..].to_owned());
        entries.iter().map(|entry| which(entry).expect("a name")).collect()
    }
}

#[test]
fn an_entry_is_made_read_listed_and_deleted() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-life");
    let request = with(cast.request("a", 7), "/attribute", json!({"k": "v"}));
    let made = cloud.post(STORE, &json!([request, cast.request("b", 1)])).expect_status(200).json();
    assert_eq!(made["count"], 2);
    let id = number(&made, "/data/0/id");
    let read = cloud.get(&format!("{STORE}/{id}")).expect_status(200).json();
    let mut members: Vec<&str> = read.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = [
        "attribute",
        "consumerSystem",
        "createdAt",
        "foreign",
        "id",
        "priority",
        "providerCloud",
        "providerSystem",
        "serviceDefinition",
        "serviceInterface",
        "updatedAt",
    ];
    assert_eq!(members, expected);
    assert!(list(&cloud.get(STORE).json(), "/data").contains(&read), "{read}");
    check(
        &cloud,
        &[
            Row::get("read", format!("{STORE}/{id}"))
                .is("/serviceDefinition/serviceDefinition", "stored-life")
                .is("/consumerSystem/id", cast.consumer)
                .is("/foreign", false)
                .is("/providerSystem/systemName", "stored-life-a")
                .is("/providerCloud", Value::Null)
                .is("/serviceInterface/interfaceName", "HTTP-INSECURE-JSON")
                .is("/priority", 2)
                .is("/attribute", json!({"k": "v"})),
            Row::get("no attribute", format!("{STORE}/{}", number(&made, "/data/1/id"))).is("/attribute", Value::Null).is("/priority", 1),
            Row::delete("delete", format!("{STORE}/{id}")).void(),
            Row::get("it is gone", format!("{STORE}/{id}")).invalid_parameter(),
            Row::delete("delete again", format!("{STORE}/{id}")).invalid_parameter(),
            Row::get("id 0", format!("{STORE}/0")).bad_payload(format!("{STORE}/{{id}}")),
            Row::delete("id 0", format!("{STORE}/0")).bad_payload(format!("{STORE}/{{id}}")),
            Row::get("sorted by a member that is not", format!("{STORE}?sort_field=attribute")).invalid_parameter(),
        ],
    );
}

#[test]
fn priorities_are_dense_and_an_entry_pushes_others_down() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-dense");
    let a = cast.insert(&[cast.request("a", 40)])[0];
    assert_eq!(cast.order(), "a", "the first is always at the top");
    let b = cast.insert(&[cast.request("b", 1)])[0];
    assert_eq!(cast.order(), "ba");
    let c = cast.insert(&[cast.request("c", 2)])[0];
    assert_eq!(cast.order(), "bca");
    let modify = |map: Value| json!({"priorityMap": map});
    let swap = modify(json!({a.to_string(): 1, b.to_string(): 2, c.to_string(): 3}));
    check(&cloud, &[Row::post("all of the group", MODIFY, &swap).void()]);
    assert_eq!(cast.order(), "abc");
    let gaps = modify(json!({a.to_string(): 500, b.to_string(): "20", c.to_string(): 3}));
    check(&cloud, &[Row::post("gaps are closed", MODIFY, &gaps).void()]);
    assert_eq!(cast.order(), "cba");
    check(&cloud, &[Row::delete("the one in the middle", format!("{STORE}/{b}")).void()]);
    assert_eq!(cast.order(), "ca");
    let other = Cast::new(&cloud, "stored-dense-other");
    let d = other.insert(&[other.request("a", 1)])[0];
    check(
        &cloud,
        &[
            Row::post("no map", MODIFY, &json!({})).bad_payload(MODIFY),
            Row::post("an empty map", MODIFY, &modify(json!({}))).bad_payload(MODIFY),
            Row::post("null", MODIFY, &modify(json!({a.to_string(): null, c.to_string(): 1}))).bad_payload(MODIFY),
            Row::post("0", MODIFY, &modify(json!({a.to_string(): 0, c.to_string(): 1}))).bad_payload(MODIFY),
            Row::post("twice the same", MODIFY, &modify(json!({a.to_string(): 1, c.to_string(): 1}))).bad_payload(MODIFY),
            Row::post("a key that is no id", MODIFY, &modify(json!({"x": 1}))).empty(400),
            Row::post("not all of the group", MODIFY, &modify(json!({a.to_string(): 1}))).invalid_parameter(),
            Row::post("one that is not", MODIFY, &modify(json!({a.to_string(): 1, "999999999": 2}))).invalid_parameter(),
            Row::post("one of another group", MODIFY, &modify(json!({a.to_string(): 1, d.to_string(): 2}))).invalid_parameter(),
        ],
    );
    assert_eq!(cast.order(), "ca", "what was refused changed nothing");
}

#[test]
fn priorities_stay_dense_when_everybody_wants_the_top_at_once() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-race");
    let names: Vec<String> = ('d'..='k').map(String::from).collect();
    for which in &names {
        cloud.register(&service(cast.name, system(&format!("{}-{which}", cast.name), 9851)));
    }
    thread::scope(|scope| {
        for (index, which) in names.iter().enumerate() {
            let cast = &cast;
            scope.spawn(move || {
                for _ in 0..10 {
                    let id = cast.insert(&[cast.request(which, 1)])[0];
                    cast.cloud.delete(&format!("{STORE}/{id}")).expect_status(200);
                }
                cast.insert(&[cast.request(which, index as i64 % 3 + 1)]);
            });
        }
    });
    let mut order: Vec<char> = cast.order().chars().collect();
    order.sort_unstable();
    assert_eq!(order.into_iter().collect::<String>(), names.concat());
}

#[test]
fn an_element_that_fails_is_left_out_silently() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-partly");
    let bad = [
        with(cast.request("a", 1), "/consumerSystemId", 999_999_999),
        with(cast.request("a", 1), "/serviceDefinitionName", "stored-no-such"),
        with(cast.request("a", 1), "/serviceDefinitionName", " "),
        with(cast.request("a", 1), "/serviceInterfaceName", "NO_SUCH-INSECURE-STORE"),
        with(cast.request("a", 1), "/serviceInterfaceName", "json"),
        with(cast.request("a", 1), "/providerSystem/systemName", "stored-nobody"),
        with(cast.request("a", 1), "/cloud", json!({"operator": "stored", "name": "no-such"})),
        with(cast.request("a", 1), "/cloud", json!({"operator": "", "name": "x"})),
        with(cast.request("a", 1), "/attribute", json!({"k": null})),
        cast.request("a", 0),
    ];
    assert_eq!(cast.insert(&bad), Vec::<i64>::new());
    let own = with(cast.request("B", 1), "/cloud", json!({"operator": "default-operator", "name": "Default-Insecure-Cloud"}));
    let good_and_bad = [bad[0].clone(), cast.request("a", 1), bad[1].clone(), own, cast.request("a", 1)];
    assert_eq!(cast.insert(&good_and_bad).len(), 2, "the last is there already");
    assert_eq!(cast.order(), "ba");
    assert_eq!(cast.insert(&[cast.request("a", 1)]), Vec::<i64>::new());
}

#[test]
fn a_missing_member_refuses_the_whole_list() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-missing");
    let good = cast.request("a", 1);
    let mut bad = vec![json!([]), json!([good, null])];
    for pointer in ["/serviceDefinitionName", "/consumerSystemId", "/providerSystem", "/serviceInterfaceName", "/priority"] {
        bad.push(json!([good, without(good.clone(), pointer)]));
    }
    for pointer in ["/systemName", "/address", "/port"] {
        bad.push(json!([good, without(good.clone(), &format!("/providerSystem{pointer}"))]));
    }
    bad.push(json!([good, with(good.clone(), "/providerSystem/port", 65_536)]));
    bad.push(json!([good, with(good.clone(), "/serviceInterfaceName", " ")]));
    let rows: Vec<Row> = bad.iter().map(|body| Row::post(body.to_string(), STORE, body).bad_payload(STORE)).collect();
    check(&cloud, &rows);
    check(&cloud, &[Row::post("not a list", STORE, &good).empty(400)]);
    assert_eq!(cast.order(), "");
}

#[test]
fn entries_are_found_by_consumer_and_by_top_priority() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-search");
    let ids = cast.insert(&[cast.request("a", 1), cast.request("b", 2)]);
    let form = json!({"consumerSystemId": cast.consumer, "serviceDefinitionName": "STORED-search"});
    let unused = with(form.clone(), "/serviceInterfaceName", "HTTP-SECURE-JSON");
    check(
        &cloud,
        &[
            Row::post("all", SEARCH, &form).is("/count", 2).is("/data/0/id", ids[0]).is("/data/1/id", ids[1]),
            Row::post("a page", format!("{SEARCH}?page=1&item_per_page=1"), &form).is("/count", 2).is("/data/0/id", ids[1]),
            Row::post("by interface", SEARCH, &with(form.clone(), "/serviceInterfaceName", "http-insecure-json")).is("/count", 2),
            Row::post("by another interface", SEARCH, &unused).is("/count", 0),
            Row::post("no consumer", SEARCH, &without(form.clone(), "/consumerSystemId")).bad_payload(SEARCH),
            Row::post("consumer 0", SEARCH, &with(form.clone(), "/consumerSystemId", 0)).bad_payload(SEARCH),
            Row::post("no definition", SEARCH, &without(form.clone(), "/serviceDefinitionName")).bad_payload(SEARCH),
            Row::post("unknown consumer", SEARCH, &with(form.clone(), "/consumerSystemId", 999_999_999)).invalid_parameter(),
            Row::post("unknown definition", SEARCH, &with(form.clone(), "/serviceDefinitionName", "stored-no-such")).invalid_parameter(),
            Row::post("unknown interface", SEARCH, &with(form, "/serviceInterfaceName", "NO_SUCH-INSECURE-STORE")).invalid_parameter(),
        ],
    );
    let tops = cloud.get(TOPS).expect_status(200).json();
    let of_cast: Vec<i64> =
        list(&tops, "/data").iter().filter(|e| e["consumerSystem"]["id"] == cast.consumer).map(|e| number(e, "/id")).collect();
    assert_eq!(of_cast, [ids[0]]);
    assert!(list(&tops, "/data").iter().all(|entry| entry["priority"] == 1), "{tops}");
}

#[test]
fn a_provider_that_is_gone_is_called_unknown() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "stored-gone");
    let id = cast.insert(&[cast.request("a", 1)])[0];
    let provider = number(&cloud.get(&format!("{STORE}/{id}")).json(), "/providerSystem/id");
    cloud.delete(&format!("/serviceregistry/mgmt/systems/{provider}")).expect_status(200);
    let row = Row::get("the entry stays", format!("{STORE}/{id}"));
    let unknown = json!({"id": provider, "systemName": format!("unknown-{provider}"), "address": "unknown", "port": 0});
    check(&cloud, &[row.is("/providerSystem", unknown)]);
    cloud.delete(&format!("/serviceregistry/mgmt/systems/{}", cast.consumer)).expect_status(200);
    check(&cloud, &[Row::get("it goes with its consumer", format!("{STORE}/{id}")).invalid_parameter()]);
}

#[test]
fn the_flexible_store_is_refused_while_it_is_not_used() {
    let cloud = Cloud::shared();
    let rules = json!([{"consumerSystem": {"systemName": "a"}, "providerSystem": {"systemName": "b"}, "serviceDefinitionName": "c"}]);
    let (private, management) = ("/orchestrator/store/flexible", "/orchestrator/mgmt/store/flexible");
    check(
        &cloud,
        &[
            Row::get("list", management).bad_payload(management),
            Row::post("add", management, &rules).bad_payload(management),
            Row::delete("remove", format!("{management}/1")).bad_payload(format!("{management}/{{id}}")),
            Row::post("create", private, &rules).bad_payload(private),
            Row::delete("delete", format!("{private}/1")).bad_payload(format!("{private}/{{id}}")),
            Row::delete("clear", format!("{private}/all")).bad_payload(format!("{private}/all")),
        ],
    );
}

#[test]
fn entries_and_their_priorities_survive_a_kill() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    let cast = Cast::new(&cloud, "stored-kill");
    cast.insert(&[cast.request("a", 1), cast.request("b", 1), cast.request("c", 2)]);
    let before = cloud.get(STORE).json();
    cloud.kill();
    let cloud = Launch::new().data(data.path()).start();
    assert_eq!(cloud.get(STORE).json(), before);
    assert_eq!(INSECURE_JSON_ID, number(&before, "/data/0/serviceInterface/id"));
}
