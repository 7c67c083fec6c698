//! What each port says of itself: the page, OpenAPI and Swagger.

use serde_json::{Value, json};

use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;

const PORTS: [(System, &str); 5] = [
    (System::ServiceRegistry, "Arrowhead Service Registry Core System API"),
    (System::Authorization, "Arrowhead Authorization Core System API"),
    (System::Orchestrator, "Arrowhead Orchestrator Core System API"),
    (System::EventHandler, "Arrowhead Event Handler Core System API"),
    (System::Monitor, "Bodkin API"),
];

fn get(cloud: &Cloud, system: System, target: &str) -> Answer {
    cloud.connect(system).request("GET", target, &[], None).expect("an answer")
}

/// Method and path of every operation of a document.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, item)| {
        let (path, item): (&String, &Value) = (path, item);
        item.as_object().expect("a path").iter().map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    };
    paths.iter().flat_map(of_path).collect()
}

#[test]
fn the_root_of_a_core_system_leads_to_a_page_that_needs_nothing_else() {
    let cloud = Cloud::shared();
    for (system, _) in PORTS {
        if system != System::Monitor {
            let moved = get(&cloud, system, "/").expect_status(302);
            assert_eq!(moved.header("location"), Some("/swagger-ui.html"));
        }
        let page = get(&cloud, system, "/swagger-ui.html").expect_status(200);
        assert_eq!(page.header("content-type"), Some("text/html;charset=UTF-8"));
        let policy = page.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        let text = page.text();
        assert!(text.contains("/openapi.json") && text.ends_with("</html>\n"), "{text}");
        for external in ["http://", "https://", "src=", "<link", "@import"] {
            assert!(!text.contains(external), "the page refers to {external}");
        }
    }
}

#[test]
fn every_port_has_both_documents() {
    let cloud = Cloud::shared();
    for (system, title) in PORTS {
        let open_api = get(&cloud, system, "/openapi.json").expect_status(200).json();
        assert_eq!((&open_api["openapi"], &open_api["info"]["title"]), (&"3.1.0".into(), &title.into()));
        let swagger = get(&cloud, system, "/v2/api-docs").expect_status(200).json();
        assert_eq!((&swagger["swagger"], &swagger["info"]["title"]), (&"2.0".into(), &title.into()));
        let tags: Vec<&str> = swagger["tags"].as_array().expect("tags").iter().filter_map(|tag| tag["name"].as_str()).collect();
        assert_eq!(tags, ["All", "Client", "Management", "Private"]);
        let names =
            |document: &Value| operations(document).into_iter().map(|(method, path, _)| format!("{method} {path}")).collect::<Vec<_>>();
        assert_eq!(names(&open_api), names(&swagger));
        for (method, path, operation) in operations(&swagger) {
            assert_eq!(operation["tags"][0], "All", "{method} {path}");
        }
        let resources = get(&cloud, system, "/swagger-resources").expect_status(200).json();
        assert_eq!((&resources[0]["location"], &resources[0]["swaggerVersion"]), (&"/v2/api-docs".into(), &"2.0".into()));
    }
}

#[test]
fn what_is_documented_is_served() {
    let cloud = Cloud::shared();
    for (system, _) in PORTS {
        let document = get(&cloud, system, "/openapi.json").expect_status(200).json();
        let described = operations(&document);
        assert!(described.len() >= 3, "{described:?}");
        for (method, path, _) in described {
            // Numbers stand for ids and are texts as well.
            let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
            let answer = cloud.connect(system).request("OPTIONS", &parts.join("/"), &[], None).expect("an answer");
            let allow = answer.expect_status(200).header("allow").expect("Allow").to_owned();
            assert!(allow.split(", ").any(|allowed| allowed.eq_ignore_ascii_case(method)), "{method} {path}: {allow}");
        }
    }
}

#[test]
fn upstreams_paths_carry_their_tags() {
    let cloud = Cloud::shared();
    let document = get(&cloud, System::ServiceRegistry, "/openapi.json").json();
    let tag = |method: &str, path: &str| document["paths"][path][method]["tags"][0].as_str().unwrap_or_default().to_owned();
    assert_eq!(tag("post", "/serviceregistry/register"), "Client");
    assert_eq!(tag("get", "/serviceregistry/mgmt"), "Management");
    assert_eq!(document["paths"]["/serviceregistry/register"]["post"]["responses"]["201"]["description"], "Done.");
}

#[test]
fn events_are_described_with_the_topics_as_they_are() {
    let cloud = Launch::new().start();
    let document = || get(&cloud, System::Monitor, "/asyncapi.json").expect_status(200).json();
    let before = document();
    assert_eq!((&before["asyncapi"], before["channels"]["topic1"].is_null()), (&"3.0.0".into(), true));
    let http = before["servers"]["eventHandler"]["host"].as_str().expect("a host");
    assert_eq!(http, cloud.address(System::EventHandler).to_string());
    let topic = json!({"event_type": "press", "period_ms": 100, "deadline_ms": 50, "loss_tolerance": 2});
    cloud.post("/api/v1/topics", &topic).expect_status(201);
    let described = document();
    let channel = &described["channels"]["topic1"];
    let promise = &channel["x-bodkin-topic"];
    assert_eq!((&channel["address"], &promise["deadlineUs"], &promise["lossTolerance"]), (&"PRESS".into(), &50_000.into(), &2.into()));
    let stream = described["operations"]["streamEvents"]["bindings"]["http"]["query"]["required"].clone();
    assert_eq!(stream, json!(["event_type"]), "and that is how it is asked for");
}
