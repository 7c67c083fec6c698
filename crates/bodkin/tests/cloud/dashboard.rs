//! The dashboard's files, and what its pages ask of port 8440.

use std::time::Instant;

use bodkin_host::live::PARTS;
use bodkin_trust::tls;
use serde_json::{Value, json};

use crate::support::arrowhead::{event, service, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud};
use crate::support::sse::{EventStream, UnreadStream};
use crate::support::stream::Told;
use crate::zmtp::subscriber;

fn get(cloud: &Cloud, target: &str, headers: &[(&str, &str)]) -> Answer {
    cloud.connect(System::Monitor).request("GET", target, headers, None).expect("an answer")
}

/// No other origin has a handle of the window, loads the file, or learns an address from it.
#[track_caller]
fn assert_isolated(answer: &Answer, target: &str) {
    let headers = ["referrer-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"].map(|name| answer.header(name));
    assert_eq!(headers, [Some("no-referrer"), Some("same-origin"), Some("same-origin")], "{target}");
}

#[test]
fn documents_are_isolated_from_other_origins() {
    let cloud = Cloud::shared();
    for system in [System::Monitor, System::ServiceRegistry] {
        let page = cloud.connect(system).request("GET", "/swagger-ui.html", &[], None).expect("an answer").expect_status(200);
        assert_isolated(&page, "/swagger-ui.html");
    }
}

#[test]
fn files_are_sent_once() {
    let cloud = Cloud::shared();
    for (target, content_type) in [
        ("/", "text/html;charset=UTF-8"),
        ("/dashboard.js", "text/javascript;charset=UTF-8"),
        ("/dashboard.css", "text/css;charset=UTF-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/licences.txt", "text/plain;charset=UTF-8"),
    ] {
        let whole = get(&cloud, target, &[]).expect_status(200);
        assert_eq!(whole.header("content-type"), Some(content_type));
        assert_eq!(whole.header("cache-control"), Some("no-cache"), "it may be kept, and is asked for each time");
        assert_isolated(&whole, target);
        let tag = whole.header("etag").expect("an entity tag").to_owned();
        let mut connection = cloud.connect(System::Monitor);
        let again = connection.request("GET", target, &[("If-None-Match", &tag)], None).expect("an answer").expect_status(304);
        assert_eq!((again.header("etag"), again.header("content-length"), again.body.len()), (Some(tag.as_str()), None, 0), "{target}");
        // Nothing stands between this answer and the next.
        connection.request("GET", target, &[("If-None-Match", "\"another\"")], None).expect("an answer").expect_status(200);
    }
    let policy = get(&cloud, "/", &[]).header("content-security-policy").expect("a policy").to_owned();
    let event_handler = cloud.address(System::EventHandler).port();
    assert!(policy.contains(&format!("connect-src 'self' 127.0.0.1:{event_handler};")), "{policy}");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
}

#[test]
fn management_is_the_same_on_both_ports() {
    let cloud = Launch::new().start();
    cloud.register_system("dashboard", 1);
    for (own, target) in [
        (System::ServiceRegistry, "/serviceregistry/mgmt/systems?sort_field=systemName&direction=DESC"),
        (System::ServiceRegistry, "/serviceregistry/mgmt"),
        (System::ServiceRegistry, "/serviceregistry/mgmt/nothing/here"),
        (System::Authorization, "/authorization/mgmt/intracloud"),
        (System::Orchestrator, "/orchestrator/mgmt/store/0"),
        (System::EventHandler, "/eventhandler/mgmt/subscriptions"),
    ] {
        let there = cloud.connect(own).request("GET", target, &[], None).expect("an answer");
        let here = get(&cloud, target, &[]);
        let body = |answer: &Answer| {
            (answer.status, answer.json().as_object().map(|body| (body.get("data").cloned(), body.get("errorMessage").cloned())))
        };
        assert_eq!(body(&here), body(&there), "{target}");
    }
    let made = json!({"serviceDefinition": "made-here"}).to_string();
    let headers = [("Content-Type", "application/json")];
    let mut monitor = cloud.connect(System::Monitor);
    monitor.request("POST", "/serviceregistry/mgmt/services", &headers, Some(made.as_bytes())).expect("an answer").expect_status(201);
    let audit = get(&cloud, "/api/v1/audit?kind=change", &[]).expect_status(200).json();
    assert_eq!(audit["data"][0]["what"], "POST /serviceregistry/mgmt/services");
    // What is not management is not there.
    for target in ["/serviceregistry/echo", "/serviceregistry/mgmtx", "/eventhandler/publish", "/mgmt"] {
        get(&cloud, target, &[]).expect_status(404);
    }
}

#[test]
fn the_overview_has_the_numbers_of_the_metrics() {
    let cloud = Launch::new().start();
    cloud.register_system("overview", 1);
    cloud.publish(&event("OVERVIEW", system("overview", 1), "x"));
    let overview = get(&cloud, "/api/v1/overview", &[]).expect_status(200).json();
    let numbers = overview["numbers"].as_object().expect("numbers");
    assert_eq!(numbers["bodkin_events_published_total"], 1);
    assert_eq!(numbers["bodkin_systems"], 5, "the core systems and one more");
    assert_eq!(numbers["bodkin_topic_late_total"], 0);
    let metrics = get(&cloud, "/metrics", &[]).expect_status(200).text().to_owned();
    for name in numbers.keys().filter(|name| !name.starts_with("bodkin_topic_")) {
        assert!(metrics.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is no metric");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#') && !line.contains('{')) {
        let name = line.split(' ').next().expect("a name");
        assert!(numbers.contains_key(name) || name.starts_with("bodkin_stage"), "{name} is not in the overview");
    }
    for (name, system) in
        [("serviceregistry", System::ServiceRegistry), ("eventhandler", System::EventHandler), ("monitor", System::Monitor)]
    {
        assert_eq!(overview["ports"][name], cloud.address(system).port(), "{name}");
    }
    assert_eq!((&overview["secure"], &overview["version"]), (&json!(false), &json!(env!("CARGO_PKG_VERSION"))));
}

/// The parts of a live stream that were told until now.
fn parts(told: &[Told]) -> Vec<Value> {
    let part = |told: &Told| match told {
        Told::Event(event) if event.event_type == "part" => Some(serde_json::from_str(&event.data).expect("a part is JSON")),
        _ => None,
    };
    told.iter().filter_map(part).collect()
}

#[test]
fn a_live_stream_has_each_part_as_its_path_answers_it_and_again_when_it_has_changed() {
    let cloud = Launch::new().start();
    let asked = "/api/v1/event-log,/api/v1/onboarding/grants,/serviceregistry/mgmt/systems";
    let stream = EventStream::open(cloud.address(System::Monitor), &format!("/api/v1/live?of={asked}"), &[]);
    let first = parts(&stream.wait_until(|told| parts(told).len() == 3, "three parts"));
    for (part, path) in first.iter().zip(asked.split(',')) {
        let alone = get(&cloud, path, &[]);
        assert_eq!((&part["path"], &part["status"]), (&json!(path), &json!(alone.status)), "{part}");
        // Positions of the log move by themselves.
        if path != "/api/v1/event-log" {
            assert_eq!(part["body"], alone.json(), "{path}");
        }
    }
    assert_eq!(first[1]["status"], 409, "insecure mode has no grants, and its part says so");
    cloud.register_system("newcomer", 1);
    let has_newcomer = |told: &[Told]| parts(told)[3..].iter().any(|part| part["body"].to_string().contains("newcomer"));
    let told = parts(&stream.wait_until(has_newcomer, "part with the new system"));
    assert_eq!(told.iter().filter(|part| part["path"] == "/api/v1/onboarding/grants").count(), 1, "what has not changed is not told again");
}

#[test]
fn who_listens_is_told_with_what_waits_and_what_was_lost() {
    let cloud = Launch::new().flags(["--subscriber-queue-bytes-max", "65536", "--stream-stall-timeout-ms", "600000"]).start();
    cloud.register_system("heard", 1);
    let address = cloud.address(System::EventHandler);
    let _unread = UnreadStream::open(address, "/eventhandler/subscription?eventtype=heard", &[]);
    let reading = EventStream::open(address, "/api/v1/events?type=heard", &[]);
    let _socket = subscriber(&cloud, "hea");
    let rows = || get(&cloud, "/api/v1/streams", &[]).expect_status(200).json();
    let row = |form: &str| rows()["data"].as_array().expect("rows").iter().find(|row| row["form"] == form).cloned().unwrap_or_default();
    let filling = "x".repeat(60 * 1024);
    // What the kernel holds for a client that reads nothing is 12 MB at the most; behind it is the queue.
    const EVENTS_MAX: usize = 400;
    let mut published = 0;
    while row("payload")["state"] != "losing" {
        assert!(published < EVENTS_MAX, "{}", rows());
        cloud.publish(&event("heard", system("heard", 1), &filling));
        published += 1;
        reading.wait_for(published);
    }
    let (unread, read, socket) = (row("payload"), row("cloudEvent"), row("sub"));
    assert_eq!(rows()["count"], 3);
    assert!(unread["lost"].as_u64() > Some(0) && unread["waitingBytes"].as_u64() > Some(0), "{unread}");
    assert_eq!((&unread["eventType"], &unread["roomBytes"], &unread["consumer"]), (&"HEARD".into(), &65536.into(), &Value::Null));
    assert!(unread["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")), "{unread}");
    assert_eq!((&read["state"], &read["lost"], &read["eventTypes"]), (&"live".into(), &0.into(), &1.into()));
    assert_eq!((&socket["eventType"], &socket["eventTypes"]), (&"HEARD".into(), &1.into()), "{socket}");
    drop(reading);
    assert!(eventually(|| row("cloudEvent").is_null()), "who has gone is told no more");
}

/// A part that told how old something is, or how long it still lasts, would be another answer each second, and be sent whole to everybody who listens.
#[test]
fn time_alone_makes_no_part_another() {
    /// What is measured all the time: of the machine, and of requests as these.
    const MEASURED: [&str; 4] = ["/api/v1/overview", "/api/v1/platform", "/api/v1/stages", "/api/v1/event-log"];
    let secure = SecureCloud::start([]);
    let operator = Client::system("sysop");
    let lasting = with(service("lasting", system("sensor", 9001)), "/endOfValidity", "2099-01-01T00:00:00Z");
    operator.expect(&secure.cloud, "POST", "/serviceregistry/mgmt", Some(&lasting), 201);
    let grant = json!({"systemName": "newcomer", "expiresInSeconds": 3600});
    operator.expect(&secure.cloud, "POST", "/api/v1/onboarding/grants", Some(&grant), 201);

    let answer = |path: &str| {
        let answer = operator.call(&secure.cloud, "GET", path, None).expect("an answer");
        (answer.status, answer.text().to_owned())
    };
    let answers = || -> Vec<(&str, (u16, String))> {
        PARTS.iter().filter(|part| !MEASURED.contains(&part.path)).map(|part| (part.path, answer(part.path))).collect()
    };
    for (path, tells) in
        [("/api/v1/services", "2099-01-01"), ("/api/v1/certificates", "notAfter"), ("/api/v1/onboarding/grants", "newcomer")]
    {
        let (status, told) = answer(path);
        assert!(status == 200 && told.contains(tells), "{path}: {status} {told}");
    }
    // A cloud that has just begun may still do something; what changes by time alone never comes to rest.
    let mut moved = Vec::new();
    let rests = || {
        let (second, before) = (tls::now().unix_seconds(), answers());
        assert!(eventually(|| tls::now().unix_seconds() > second), "the clock stands still");
        moved = before.into_iter().zip(answers()).filter(|(before, after)| before != after).map(|((path, _), _)| path).collect();
        moved.is_empty()
    };
    let rests = eventually(rests);
    assert!(rests, "{moved:?} change without a change");
}

/// Ten dashboards cost the shard and the control plane what one does.
#[test]
fn ten_live_streams_have_each_part_made_once_a_period() {
    let cloud = Launch::new().start();
    let target = "/api/v1/live?of=/api/v1/overview,/api/v1/event-types";
    let begun = Instant::now();
    let streams: Vec<EventStream> = (0..10).map(|_| EventStream::open(cloud.address(System::Monitor), target, &[])).collect();
    for stream in &streams {
        let overviews = |told: &[Told]| parts(told).iter().filter(|part| part["path"] == "/api/v1/overview").count();
        stream.wait_until(|told| overviews(told) >= 5, "five overviews");
    }
    let overview = get(&cloud, "/api/v1/overview", &[]).expect_status(200).json();
    let number = |name: &str| overview["numbers"][name].as_u64().expect("a number");
    // Both parts at the most once in every second, and the first and last second are begun ones. Each by itself would have asked 50 times for overviews alone.
    let most = 2 * (begun.elapsed().as_secs() + 2);
    assert!(number("bodkin_live_parts_total") <= most, "{} in {:?}", number("bodkin_live_parts_total"), begun.elapsed());
    assert_eq!(number("bodkin_live_streams"), 10);
}

#[test]
fn live_streams_are_limited_and_leave_room_for_others() {
    let cloud = Launch::new().start();
    let target = "/api/v1/live?of=/api/v1/overview";
    let mut streams: Vec<EventStream> = (0..32).map(|_| EventStream::open(cloud.address(System::Monitor), target, &[])).collect();
    let problem = get(&cloud, target, &[]).expect_status(503).json();
    assert_eq!(problem["title"], "Service Unavailable");
    get(&cloud, "/api/v1/overview", &[]).expect_status(200);
    streams.pop();
    let has_place = || {
        let mut connection = cloud.connect(System::Monitor);
        connection.send_request("GET", target, &[], None).expect("it is sent");
        connection.read_head().expect("a head").status == 200
    };
    assert!(eventually(has_place), "the place of one that has gone stays taken");
    get(&cloud, "/api/v1/live?of=/metrics", &[]).expect_status(400);
    get(&cloud, "/api/v1/live", &[]).expect_status(400);
}

#[test]
fn reports_and_nets_are_read_from_the_data_directory_and_laws_are_fitted_to_stages() {
    let place = tempfile::TempDir::new().expect("a temporary directory");
    let folder = |name: &str| place.path().join(name);
    std::fs::create_dir_all(folder("reports")).expect("a folder");
    std::fs::write(folder("reports/one.json"), "{\"experiment\": \"query\"}\n").expect("a report");
    let cloud = Launch::new().data(place.path()).start();
    assert_eq!(get(&cloud, "/api/v1/models", &[]).expect_status(200).json(), json!({"data": [], "count": 0}), "a folder need not be there");
    let listed = get(&cloud, "/api/v1/reports", &[]).expect_status(200).json();
    assert_eq!((&listed["count"], &listed["data"][0]["name"], &listed["data"][0]["bytes"]), (&json!(1), &json!("one.json"), &json!(24)));
    assert_eq!(get(&cloud, "/api/v1/reports/one.json", &[]).expect_status(200).json(), json!({"experiment": "query"}));
    for (name, status) in [("two.json", 404), ("one.txt", 400), ("%2e%2e%2fbodkin.sqlite", 400)] {
        get(&cloud, &format!("/api/v1/reports/{name}"), &[]).expect_status(status);
    }

    std::fs::create_dir_all(folder("models")).expect("a folder");
    std::fs::write(folder("models/no-net.json"), "{}").expect("a file");
    let problem = get(&cloud, "/api/v1/models/no-net.json/drawing", &[]).expect_status(409).json();
    assert!(problem["detail"].as_str().is_some_and(|told| told.starts_with("no-net.json is no net: ")), "{problem}");
    std::fs::write(folder("models/net.json"), include_str!("../../../../fuzz/seeds/net/event-handler.json")).expect("a net");
    let drawing = get(&cloud, "/api/v1/models/net.json/drawing", &[]).expect_status(200);
    assert_eq!(drawing.header("content-type"), Some("image/svg+xml"));
    assert!(drawing.text().starts_with("<svg") && !drawing.text().contains("<script"), "{}", drawing.text());

    (0..20).for_each(|_| drop(cloud.get("/serviceregistry/mgmt/systems").expect_status(200)));
    let fits = get(&cloud, "/api/v1/stages/fits?system=serviceregistry&stage=receive", &[]).expect_status(200).json();
    let laws = fits["fits"]["laws"].as_array().expect("laws");
    assert!(laws.iter().any(|law| law["family"] == "gamma" && law["meanUs"].as_f64().is_some_and(|mean| mean > 0.0)), "{fits}");
    assert!(fits["fits"]["count"].as_u64().is_some_and(|count| count >= 20), "{fits}");
    get(&cloud, "/api/v1/stages/fits?system=serviceregistry&stage=idle", &[]).expect_status(400);
    get(&cloud, "/api/v1/stages/fits?system=authorization&stage=database", &[]).expect_status(409);
}
