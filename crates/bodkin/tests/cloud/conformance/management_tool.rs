//! The calls of the management web tool in the order of its pages (reference section 16, end), as the page of a browser makes them.

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System, system_of};

/// Where the tool is served from.
const ORIGIN: &str = "http://localhost:3000";

/// The ids that the tool reads out of the grouped view, as its forms do.
struct Grouped {
    view: Value,
}

impl Grouped {
    fn read(cloud: &Cloud) -> Self {
        Self { view: cloud.get("/serviceregistry/mgmt/grouped").expect_status(200).json() }
    }

    fn completion(&self, kind: &str, member: &str, value: &str) -> i64 {
        let candidates = list(&self.view, &format!("/autoCompleteData/{kind}"));
        let found = candidates.iter().find(|candidate| candidate[member] == value);
        number(found.unwrap_or_else(|| panic!("no {value} in {kind}: {candidates:?}")), "/id")
    }

    fn system(&self, name: &str) -> i64 {
        self.completion("systemList", "systemName", name)
    }
}

#[test]
fn the_management_tool_works_through_its_pages() {
    let cloud = Launch::new().flags(["--management-tool-origin", ORIGIN]).start();
    registry_page(&cloud);
    let (rules, store) = ("/authorization/mgmt/intracloud", "/orchestrator/mgmt/store");
    let grouped = Grouped::read(&cloud);
    let (provider, consumer) = (grouped.system("tool-provider"), grouped.system("tool-consumer"));
    let definition = grouped.completion("serviceList", "value", "tool-service");
    let interface = grouped.completion("interfaceList", "value", "HTTP-INSECURE-JSON");
    assert_eq!(interface, INSECURE_JSON_ID);
    let rule =
        json!({"consumerId": consumer, "providerIds": [provider], "serviceDefinitionIds": [definition], "interfaceIds": [interface]});
    check(
        &cloud,
        &[
            Row::post("allow", rules, &rule).created().is("/count", 1),
            Row::get("rules", format!("{rules}?page=0&item_per_page=10&direction=ASC")).is("/count", 1),
            Row::get("inter-cloud rules", "/authorization/mgmt/intercloud?page=0&item_per_page=10").is("/count", 0),
        ],
    );
    let element = |port: u16, priority: i64| {
        json!({"serviceDefinitionName": "tool-service", "consumerSystemId": consumer, "providerSystem": system("tool-provider", port),
            "cloud": null, "serviceInterfaceName": "HTTP-INSECURE-JSON", "priority": priority, "attribute": null})
    };
    check(
        &cloud,
        &[
            Row::post("two store entries", store, &json!([element(7101, 1), element(7102, 2)])).is("/count", 2),
            Row::get("store", format!("{store}?page=0&item_per_page=10&sort_field=priority")).is("/data/1/priority", 2),
        ],
    );
    let entries = cloud.get(store).json();
    let (first, second) = (number(&entries, "/data/0/id"), number(&entries, "/data/1/id"));
    let turned = json!({"priorityMap": {first.to_string(): 2, second.to_string(): 1}});
    check(
        &cloud,
        &[
            Row::post("turn the priorities", format!("{store}/modify_priorities"), &turned).void(),
            Row::get("they are turned", format!("{store}/{first}")).is("/priority", 2),
            Row::delete("remove an entry", format!("{store}/{second}")).void(),
            Row::get("the gap is closed", format!("{store}/{first}")).is("/priority", 1),
        ],
    );
    event_page(&cloud);
    clean_up(&cloud, rules, consumer, definition);
}

fn registry_page(cloud: &Cloud) {
    let provider = |port| system("tool-provider", port);
    check(
        cloud,
        &[
            Row::post("a provider", "/serviceregistry/mgmt/systems", &provider(7101)).created(),
            Row::post("a consumer", "/serviceregistry/mgmt/systems", &system("tool-consumer", 7103)).created(),
            Row::get("systems", "/serviceregistry/mgmt/systems?page=0&item_per_page=10&sort_field=systemName&direction=DESC"),
            Row::post("an entry", "/serviceregistry/mgmt", &service("tool-service", provider(7101))).created(),
            Row::post("another", "/serviceregistry/mgmt", &service("tool-service", provider(7102))).created(),
            Row::get("definitions", "/serviceregistry/mgmt/services?page=0&item_per_page=10"),
            Row::get("entries", "/serviceregistry/mgmt?page=0&item_per_page=10&direction=DESC")
                .is("/data/0/provider/port", 7102)
                .is("/data/1/provider/port", 7101),
        ],
    );
    let newest = number(&cloud.get("/serviceregistry/mgmt?page=0&item_per_page=1&direction=DESC").json(), "/data/0/id");
    let edited = with(service("tool-service", provider(7102)), "/metadata", json!({"edited": "yes"}));
    check(
        cloud,
        &[Row::new("edit it", "PUT", format!("/serviceregistry/mgmt/{newest}"))
            .sending("application/json", edited.to_string())
            .is("/metadata", json!({"edited": "yes"}))],
    );
}

fn event_page(cloud: &Cloud) {
    let form = subscription("tool-event", system("tool-consumer", 7103), "/notify");
    check(cloud, &[Row::post("subscribe", "/eventhandler/subscribe", &form).void()]);
    let subscriptions = "/eventhandler/mgmt/subscriptions";
    let id = number(&cloud.get(&format!("{subscriptions}?page=0&item_per_page=10")).json(), "/data/0/id");
    let edited = with(form, "/notifyUri", "/edited").to_string();
    check(
        cloud,
        &[
            Row::new("edit", "PUT", format!("{subscriptions}/{id}")).sending("application/json", edited).is("/notifyUri", "/edited"),
            Row::get("show", format!("{subscriptions}/{id}")).is("/notifyUri", "/edited"),
            Row::delete("remove", format!("{subscriptions}/{id}")).void(),
        ],
    );
}

fn clean_up(cloud: &Cloud, rules: &str, consumer: i64, definition: i64) {
    let rule = number(&cloud.get(rules).json(), "/data/0/id");
    let newest = number(&cloud.get("/serviceregistry/mgmt?direction=DESC").json(), "/data/0/id");
    check(
        cloud,
        &[
            Row::delete("remove the rule", format!("{rules}/{rule}")).void(),
            Row::delete("remove an entry", format!("/serviceregistry/mgmt/{newest}")).void(),
            Row::delete("remove the definition with what hangs on it", format!("/serviceregistry/mgmt/services/{definition}")).void(),
            Row::delete("remove the consumer", format!("/serviceregistry/mgmt/systems/{consumer}")).void(),
            Row::get("the store is empty", "/orchestrator/mgmt/store").is("/count", 0),
        ],
    );
    // It tries these too; they are not there in Arrowhead 4.6 either.
    for (method, target) in [("GET", "/serviceregistry/mgmt/id/1"), ("PUT", "/orchestrator/mgmt/store/update/1")] {
        let status = cloud.call(method, target, None).status;
        assert_eq!(status, 404, "{method} {target}");
    }
}

#[test]
fn the_browser_lets_the_tool_read_every_answer() {
    let cloud = Launch::new().flags(["--management-tool-origin", ORIGIN]).start();
    let targets = [
        "/serviceregistry/mgmt/systems",
        "/serviceregistry/mgmt/grouped",
        "/authorization/mgmt/intracloud",
        "/orchestrator/mgmt/store",
        "/eventhandler/mgmt/subscriptions",
        // Refusals are shown to the operator too.
        "/serviceregistry/mgmt/systems/0",
        "/eventhandler/mgmt/subscriptions/0",
    ];
    for target in targets {
        let asking = [("Origin", ORIGIN), ("Access-Control-Request-Method", "DELETE"), ("Access-Control-Request-Headers", "content-type")];
        let preflight = cloud.connect(system_of(target)).request("OPTIONS", target, &asking, None).expect("an answer").expect_status(200);
        assert_eq!(preflight.header("access-control-allow-origin"), Some(ORIGIN), "{target}: {preflight:?}");
        assert_eq!(preflight.header("access-control-allow-credentials"), Some("true"), "{target}");
        assert!(
            preflight.header("access-control-allow-methods").is_some_and(|methods| methods.contains("DELETE")),
            "{target}: {preflight:?}"
        );
        let allowed = preflight.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
        assert!(allowed.contains("content-type"), "{target}: {preflight:?}");
        let answer = cloud.connect(system_of(target)).request("GET", target, &[("Origin", ORIGIN)], None).expect("an answer");
        assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN), "{target}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{target}");
    }
    let answer = cloud
        .connect(System::ServiceRegistry)
        .request("GET", targets[0], &[("Origin", "http://evil.example")], None)
        .expect("an answer")
        .expect_status(200);
    assert_eq!(answer.header("access-control-allow-origin"), None, "no other origin is let in");
}
