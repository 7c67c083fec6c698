//! Explanations on Bodkin's own port: why a request is or would be denied, or comes back empty.

use serde_json::{Value, json};

use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system, with};
use crate::support::cloud::{Cloud, Launch};

fn explain(cloud: &Cloud, parameters: &str) -> Value {
    cloud.get(&format!("/api/v1/authorization/explain?{parameters}")).expect_status(200).json()
}

fn orchestrate(cloud: &Cloud, form: &Value) -> Value {
    cloud.post("/api/v1/orchestration?explain=true", form).expect_status(200).json()
}

/// A form of a dynamic orchestration with further flags.
fn form(definition: &str, flags: &[&str]) -> Value {
    let flags: serde_json::Map<String, Value> = flags.iter().chain(&["overrideStore"]).map(|flag| ((*flag).into(), true.into())).collect();
    json!({"requesterSystem": system("display", 9001), "requestedService": {"serviceDefinitionRequirement": definition},
        "orchestrationFlags": flags})
}

/// The criterion, the row and the text of what leaves a service out.
fn refusal(service: &Value) -> (&str, &Value, &str) {
    let step = list(service, "/steps").iter().rev().find(|step| step["verdict"] == "refused").expect("a reason");
    (step["criterion"].as_str().expect("a criterion"), &step["row"], step["found"].as_str().expect("a text"))
}

#[test]
fn an_explained_orchestration_is_the_one_that_the_consumer_gets() {
    let cloud = Launch::new().start();
    let display = cloud.register_system("display", 9001);
    let entry = cloud.register(&service("heat", system("sensor", 9000)));
    cloud.register(&with(service("heat", system("probe", 9002)), "/version", 2));
    let (sensor, heat) = (number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"));

    let denied = orchestrate(&cloud, &form("heat", &[]));
    assert_eq!((&denied["response"], &denied["explanation"]["outcome"]), (&json!([]), &json!("denied")));
    for service in list(&denied, "/explanation/services") {
        assert_eq!(refusal(service), ("authorization-rule", &Value::Null, "no rule allows it"));
    }

    let rule = cloud.allow(display, sensor, heat, &[INSECURE_JSON_ID]);
    let both = form("heat", &[]);
    let explained = orchestrate(&cloud, &both);
    let answered = cloud.post("/orchestrator/orchestration", &both).expect_status(200).json();
    assert_eq!(explained["response"], answered["response"]);
    assert_eq!(explained["explanation"]["outcome"], "granted");
    let steps = list(&explained, "/explanation/services/0/steps");
    assert_eq!(
        (&steps[1]["criterion"], &steps[1]["row"], &steps[1]["verdict"]),
        (&json!("authorization-rule"), &json!(rule), &json!("passed"))
    );
    assert_eq!(cloud.post("/api/v1/orchestration", &both).expect_status(200).json(), answered, "without explain=true the answer only");

    let lock = json!({"requester": system("other", 9003), "orList": answered["response"]});
    cloud.post("/orchestrator/qos_temporary_lock", &lock).expect_status(200);
    let kept = orchestrate(&cloud, &both);
    let (criterion, row, found) = refusal(&list(&kept, "/explanation/services")[0]);
    assert_eq!((criterion, row, found.starts_with("other keeps it until 2")), ("reservation", &json!(1), true), "{found}");
    assert!(
        kept["explanation"]["why"].as_str().expect("a sentence").contains("left out for display by authorization-rule, reservation"),
        "{kept}"
    );

    let pinged = orchestrate(&cloud, &form("heat", &["pingProviders"]));
    assert_eq!(refusal(&list(&pinged, "/explanation/services")[0]).0, "ping", "nobody listens there");
    let version = with(form("heat", &[]), "/requestedService/versionRequirement", 3);
    let unfit = orchestrate(&cloud, &version);
    assert_eq!(refusal(&list(&unfit, "/explanation/services")[1]), ("version", &Value::Null, "2"));
    assert_eq!(unfit["explanation"]["why"], "nothing: none of the 2 registered heat services fits the requirements");
}

#[test]
fn a_consumer_or_a_service_that_is_not_there_is_explained_too() {
    let cloud = Launch::new().start();
    assert_eq!(orchestrate(&cloud, &form("heat", &[]))["explanation"]["why"], "nothing: nobody offers heat");
    cloud.register(&service("heat", system("sensor", 9000)));
    let unknown = orchestrate(&cloud, &form("heat", &[]));
    assert!(unknown["explanation"]["why"].as_str().expect("a sentence").contains("is not exist in the database"), "{unknown}");
    let nobody = explain(&cloud, "consumer=display&service=heat");
    assert_eq!((&nobody["outcome"], &nobody["why"]), (&json!("nothing"), &json!("nothing: no system display is registered")));
    cloud.register_system("display", 9001);
    cloud.register_system("display", 9002);
    assert!(explain(&cloud, "consumer=display&service=heat")["why"].as_str().expect("a sentence").contains("name one by its id"));
    let stored = json!({"requesterSystem": system("display", 9001)});
    let empty = orchestrate(&cloud, &stored);
    assert_eq!(empty["explanation"]["why"], "nothing: the orchestration store has no such entry for the consumer");
}

#[test]
fn the_flexible_store_is_explained_by_its_rules() {
    let cloud = Launch::new().flags(["--use-flexible-store", "true"]).start();
    cloud.register_system("display", 9001);
    cloud.register(&service("heat", system("sensor", 9000)));
    cloud.register(&service("heat", system("probe", 9002)));
    let form = json!({"requesterSystem": system("display", 9001), "requestedService": {"serviceDefinitionRequirement": "heat"}});
    let none = orchestrate(&cloud, &form);
    assert_eq!(none["explanation"]["why"], "nothing: no rule of the flexible store is for this consumer and service");
    let rule =
        json!([{"consumerSystem": {"systemName": "display"}, "providerSystem": {"systemName": "probe"}, "serviceDefinitionName": "heat"}]);
    let made = cloud.post("/orchestrator/mgmt/store/flexible", &rule).expect_status(201).json();
    let one = orchestrate(&cloud, &form);
    assert_eq!(one["explanation"]["outcome"], "granted");
    let services = list(&one, "/explanation/services");
    let sensor = services.iter().find(|service| service["service"]["provider"]["systemName"] == "sensor").expect("it was looked at");
    assert_eq!(refusal(sensor), ("flexible-rule", &made["data"][0]["id"], "it is about other providers"));
}

#[test]
fn what_another_cloud_may_use_is_explained_as_it_is_checked() {
    const CHECK: &str = "/authorization/intercloud/check";
    let cloud = Launch::new().start();
    let two = with(service("heat", system("sensor", 9000)), "/interfaces", json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"]));
    let entry = cloud.register(&two);
    let (sensor, heat) = (number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"));
    let own = json!({"operator": "default-operator", "name": "default-insecure-cloud"});
    let ids: Vec<i64> = list(&entry, "/interfaces").iter().map(|interface| number(interface, "/id")).collect();
    let asked = json!({"cloud": own, "serviceDefinition": "heat", "providerIdsWithInterfaceIds": [{"id": sensor, "idList": ids}]});
    let both = || {
        let explained = explain(&cloud, "cloud=default-operator/default-insecure-cloud&service=heat&provider=sensor");
        let interfaces: Vec<i64> = list(&explained, "/services/0/interfaces").iter().map(|interface| number(interface, "/id")).collect();
        let checked = cloud.post(CHECK, &asked).expect_status(200).json();
        (explained, interfaces, checked["authorizedProviderIdsWithInterfaceIds"].clone())
    };
    let (denied, interfaces, checked) = both();
    assert_eq!((&denied["outcome"], interfaces, checked), (&json!("denied"), vec![], json!([])));
    assert_eq!(refusal(&denied["services"][0]), ("authorization-rule", &Value::Null, "no rule allows it"));
    let rule = json!({"cloudId": 1, "providerIdList": [sensor], "serviceDefinitionIdList": [heat], "interfaceIdList": [ids[1]]});
    cloud.post("/authorization/mgmt/intercloud", &rule).expect_status(201);
    let (granted, interfaces, checked) = both();
    assert_eq!((&granted["outcome"], interfaces), (&json!("granted"), vec![ids[1]]));
    assert_eq!(checked, json!([{"id": sensor, "idList": [ids[1]]}]));
    let step = &granted["services"][0]["steps"].as_array().expect("steps").last().expect("a step");
    assert_eq!((&step["row"], &step["found"]), (&json!(1), &json!("rule 1 allows HTTP-INSECURE-XML only")));
}

#[test]
fn the_operator_is_told_what_the_registry_tells_those_who_may_ask_for_any_service() {
    let cloud = Launch::new().start();
    cloud.register(&service("heat", system("sensor", 9000)));
    let query = json!({"serviceDefinitionRequirement": "heat", "interfaceRequirements": ["HTTP-INSECURE-JSON"], "pingProviders": false});
    let told = cloud.post("/api/v1/services/query", &query).expect_status(200).json();
    assert_eq!((&told["unfilteredHits"], &told), (&json!(1), &cloud.post("/serviceregistry/query", &query).expect_status(200).json()));
    for (body, says) in [(json!([]), "Expected a ServiceQueryForm"), (json!({}), "requirement is null or blank")] {
        let problem = cloud.post("/api/v1/services/query", &body).expect_status(400);
        assert!(problem.text().contains(says), "{body}: {}", problem.text());
    }
    cloud.get("/api/v1/services/query").expect_status(405);
}

#[test]
fn what_is_asked_wrongly_is_a_problem_that_says_what_was_expected() {
    let cloud = Cloud::shared();
    for (target, says) in [
        ("/api/v1/authorization/explain?consumer=display", "consumer and service"),
        ("/api/v1/authorization/explain?consumer=display&service=%20", "requirement is null or blank"),
        ("/api/v1/authorization/explain?consumer=display&cloud=a/b&service=heat", "or cloud"),
        ("/api/v1/authorization/explain?cloud=nobody&service=heat", "OPERATOR/NAME"),
        ("/api/v1/access/explain?caller=sensor", "caller and path"),
    ] {
        let problem = cloud.get(target).expect_status(400);
        assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{target}");
        assert!(problem.text().contains(says), "{target}: {}", problem.text());
    }
    let refused = |body: &Value, says: &str| {
        let problem = cloud.post("/api/v1/orchestration?explain=true", body).expect_status(400);
        assert!(problem.text().contains(says), "{body}: {}", problem.text());
    };
    refused(&json!([]), "Expected an OrchestrationForm");
    refused(&json!({}), "Requester system is null");
    refused(&with(form("heat", &["triggerInterCloud"]), "/requesterCloud", Value::Null), "NO GATEKEEPER");
    cloud.get("/api/v1/orchestration").expect_status(405);
}

/// Event streams and subscriptions hear whom the rules let them hear; this asks the same rules.
#[test]
fn an_explanation_changes_nothing() {
    let cloud = Launch::new().start();
    let display = cloud.register_system("display", 9001);
    let (publisher, definition) = cloud.register_publisher("sensor", 9000);
    cloud.allow(display, publisher, definition, &[INSECURE_JSON_ID]);
    cloud.subscribe(&subscription("hot", system("display", 9001), "/hot"));
    let tables = || {
        ["/serviceregistry/mgmt", "/authorization/mgmt/intracloud", "/orchestrator/qos_reservations", "/eventhandler/mgmt/subscriptions"]
            .map(|target| cloud.get(target).expect_status(200).json())
    };
    let before = tables();
    explain(&cloud, "consumer=display&service=sensor-service&provider=sensor&interface=HTTP-INSECURE-JSON");
    orchestrate(&cloud, &form("sensor-service", &["matchmaking"]));
    assert_eq!(tables(), before);
}
