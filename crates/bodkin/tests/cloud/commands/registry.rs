//! `bodkin service` and `bodkin system` on a real cloud.

use serde_json::{Value, json};

use super::{bodkin, done, ended, has_row, json, started, text};
use crate::support::arrowhead::{list, service, system, texts, with};
use crate::support::cloud::Launch;
use crate::support::double::Double;
use crate::support::patience::eventually;

#[test]
fn a_service_is_added_listed_shown_found_and_removed() {
    let cloud = Launch::new().start();
    let line = "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --metadata unit=celsius --valid-until 2099-01-01T00:00:00Z";
    let added = json(&cloud, line);
    assert_eq!((&added["serviceUri"], &added["endOfValidity"]), (&json!("/heat"), &json!("2099-01-01T00:00:00Z")));
    let id = &added["id"];
    has_row(&done(&cloud, "service list"), &["heat", "sensor", "127.0.0.1:9000", "/heat", "HTTP-INSECURE-JSON"]);
    let shown = done(&cloud, &format!("service show {id}"));
    for line in [&["service", "heat"], &["valid until", "2099"], &["metadata", "unit=celsius"], &["created", "Z"]] {
        has_row(&shown, line);
    }
    assert_eq!(json(&cloud, &format!("service show {id}"))["metadata"]["unit"], "celsius");
    assert_eq!(json(&cloud, "service query heat --metadata unit=celsius --min-version 1")["unfilteredHits"], 1);
    assert_eq!(json(&cloud, "service query heat --secure TOKEN")["serviceQueryData"], json!([]));
    assert!(done(&cloud, "service query heat --metadata unit=kelvin").contains("none of the 1 registered heat services"));
    assert_eq!(json(&cloud, &format!("service remove {id}"))["removed"]["id"], *id);
    assert_eq!(bodkin(&cloud, &format!("service show {id}")).status.code(), Some(1));
}

#[test]
fn lists_are_printed_by_page_and_in_the_order_asked_for() {
    let cloud = Launch::new().start();
    for name in ["beta", "alpha", "gamma"] {
        cloud.register_system(name, 9000);
    }
    let names = |line: &str| texts(list(&json(&cloud, line), "/data"), "/systemName");
    assert_eq!(names("system list --sort systemName --page 0 --rows 1"), ["alpha"]);
    assert_eq!(names("system list --sort id --descending --page 0 --rows 2"), ["gamma", "alpha"]);
    assert_eq!(names("system list --page 7"), Vec::<String>::new());
    assert_eq!(json(&cloud, "system list --page 0 --rows 1")["count"], 7, "four core systems and three");
    assert!(text(&bodkin(&cloud, "system list --sort nonsense").stderr).contains("nonsense"));
    assert_eq!(bodkin(&cloud, "system list --rows 2").status.code(), Some(2), "rows of which page?");
}

#[test]
fn a_system_is_shown_by_name_and_id() {
    let cloud = Launch::new().start();
    let added = json(&cloud, "system add display --address 127.0.0.1 --port 9001 --metadata room=7 --authentication-info KEY");
    for name in ["display".to_owned(), added["id"].to_string()] {
        let shown = done(&cloud, &format!("system show {name}"));
        has_row(&shown, &["address", "127.0.0.1:9001"]);
        has_row(&shown, &["authentication info", "KEY"]);
    }
    assert!(done(&cloud, "system remove display --yes").contains("removed: display"));
    assert!(json(&cloud, "system list")["data"].as_array().expect("a list").iter().all(|row| row["systemName"] != "display"));
}

#[test]
fn system_remove_lists_what_goes_and_needs_yes() {
    let cloud = Launch::new().start();
    done(&cloud, "service add heat --system sensor --address 127.0.0.1 --port 9000");
    done(&cloud, "system add display --address 127.0.0.1 --port 9001");
    done(&cloud, "auth add --consumer display --provider sensor --service heat");
    let output = bodkin(&cloud, "system remove sensor");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for line in ["system sensor at 127.0.0.1:9000", "service heat, id", "display may use heat of sensor", "give --yes"] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    done(&cloud, "system show sensor");
    done(&cloud, "system remove sensor --yes");
    ended(&cloud, "system show sensor", 1);
}

#[test]
fn names_of_definitions_and_interfaces_are_looked_up() {
    let cloud = Launch::new().start();
    cloud.register(&service("heat", system("sensor", 9000)));
    has_row(&done(&cloud, "service definition list --page 0 --rows 100"), &["heat"]);
    let definition = json(&cloud, "service definition show HEAT");
    assert_eq!(json(&cloud, &format!("service definition show {}", definition["id"])), definition);
    assert_eq!(json(&cloud, "service interface list")["count"], 2);
    assert_eq!(json(&cloud, "service interface show http-insecure-json")["id"], 2);
    assert!(done(&cloud, "service definition remove heat").contains("with all that depended on it"));
    assert_eq!(json(&cloud, "service query heat")["unfilteredHits"], 0);
}

#[test]
fn a_provider_is_tested_by_a_connection_and_a_get() {
    let cloud = Launch::new().start();
    let provider = Double::start(vec![("GET /heat", 418, Value::Null)]);
    let there = with(service("heat", system("sensor", provider.address().port())), "/serviceUri", "heat");
    let id = cloud.register(&there)["id"].clone();
    let found = json(&cloud, &format!("service test {id}"));
    assert_eq!((&found["found"]["http"]["status"], &found["found"]["connectError"]), (&json!(418), &Value::Null));
    assert!(done(&cloud, &format!("service test {id}")).contains("GET /heat is answered 418"));
    assert!(done(&cloud, "system test sensor").contains("accepts connections"));

    let id = cloud.register(&service("cold", system("gone", 1)))["id"].clone();
    assert!(ended(&cloud, &format!("service test {id}"), 1).contains("cannot be reached"));
    assert!(ended(&cloud, "system test gone", 1).contains("cannot be reached"));
}

#[test]
fn a_command_that_fails_says_what_to_do() {
    let cloud = Launch::new().start();
    for (line, code, says) in [
        ("system remove nobody", 1, "bodkin system list"),
        ("system show 4711", 1, "bodkin system list"),
        ("service show 4711", 1, "bodkin service list"),
        ("service remove 4711", 1, "bodkin service list"),
        ("service update 1", 2, "required"),
        ("service definition show nothing", 1, "bodkin service definition list"),
        ("service interface show nothing", 1, "bodkin service interface list"),
        ("auth show 4711", 1, "bodkin auth list"),
        ("auth remove 4711", 1, "bodkin auth list"),
        ("auth add --consumer serviceregistry --provider authorization --service nothing", 1, "bodkin service definition list"),
        ("event publish hot 1 --system nobody", 1, "nobody"),
        ("event show 4711", 1, "bodkin event list"),
        ("event replay hot", 2, "--since"),
        ("event dead remove", 2, "--all"),
        ("service add bad_name --system sensor --address 127.0.0.1 --port 9000", 1, "BAD_PAYLOAD"),
        ("service add", 2, "Usage"),
        ("nonsense", 2, "unrecognized"),
        ("service list --service-registry 127.0.0.1:1", 1, "cannot be reached"),
        ("event log --monitor 127.0.0.1:1", 1, "cannot be reached"),
    ] {
        let output = bodkin(&cloud, line);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        assert!(told.contains(says), "{line}: {told}");
        assert!(!told.contains('\u{1b}'), "colours without a terminal: {told}");
    }
}

#[test]
fn what_a_core_system_logged_is_printed() {
    let cloud = Launch::new().start();
    let entries = || json(&cloud, "log serviceregistry --level info --page 0 --rows 2");
    assert!(eventually(|| entries()["data"].as_array().is_some_and(|entries| entries.len() == 2)), "{}", entries());
    has_row(&done(&cloud, "log eventhandler"), &["INFO", "Z"]);
    assert!(done(&cloud, "log orchestrator --level OFF").contains("nothing of that kind"));
    assert!(done(&cloud, "log orchestrator --from 2099-01-01T00:00:00Z").contains("nothing of that kind"));
    assert_eq!(bodkin(&cloud, "log orchestrator --from yesterday").status.code(), Some(1));
    assert_eq!(bodkin(&cloud, "log nobody").status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let cloud = Launch::new().start();
    let mut child = started(&cloud, "service list").stdout(std::process::Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
