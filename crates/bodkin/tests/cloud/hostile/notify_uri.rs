//! Where a pushed event goes: to the subscriber's own address and nowhere else, whatever its notify URI or its answer says.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use super::{assert_all_live, metric};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::sse::EventStream;

/// A subscriber that sends every event on to `elsewhere`; gives its port. It ends with the test's process.
fn redirecting(status: u16, elsewhere: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let answer = format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // A pusher that is gone already needs no answer.
            let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(answer.as_bytes()));
        }
    });
    port
}

#[test]
fn a_redirect_is_a_failure_and_is_not_followed() {
    let cloud = Launch::new().flags(["--push-backoff-min-ms", "1", "--push-backoff-max-ms", "20"]).start();
    let elsewhere = PushSubscriber::listen(Manner::Answers);
    let (publisher, definition) = cloud.register_publisher("redirect-source", 1);
    let location = format!("http://127.0.0.1:{}/stolen", elsewhere.port());
    let statuses = [301, 302, 303, 307, 308];
    for status in statuses {
        let (name, port) = (format!("redirect-{status}"), redirecting(status, &location));
        let id = cloud.register_system(&name, port);
        cloud.allow(id, publisher, definition, &[INSECURE_JSON_ID]);
        cloud.subscribe(&subscription("redirect", system(&name, port), "/notify"));
    }
    cloud.publish(&event("redirect", system("redirect-source", 1), "x"));
    // Each is tried again before it is given up, so every one has had its chance to be followed.
    let failures = || metric(&cloud, "bodkin_push_failures_total");
    assert!(eventually(|| failures() >= statuses.len() as f64), "{} failures", failures());
    let states = cloud.get("/api/v1/subscriptions").expect_status(200).json();
    let none_delivered = states["data"].as_array().expect("a list").iter().all(|row| row["delivered"] == 0);
    assert!(none_delivered, "{states}");
    assert_eq!(elsewhere.count(), 0, "a redirect was followed");
    assert_all_live(&cloud);
}

#[test]
fn a_notify_uri_names_no_other_place_and_ends_no_line() {
    let cloud = Cloud::shared();
    cloud.register_system("uri-tricks", 1);
    let refused = [
        "http://evil.example/x",
        "https://127.0.0.1:1/x",
        "//evil.example/x",
        "ftp://evil.example",
        "HTTP://EVIL.EXAMPLE/",
        "/x\r\nX-Injected: yes",
        "/x\nHost: evil.example",
        "/x HTTP/1.1",
        "/x\0",
        "/x\ty",
        "\\\\evil.example\\x",
        "/värme",
        "/x#part<script>",
        "/\u{202e}x",
        "",
        " ",
    ];
    for uri in refused {
        let answer = cloud.post("/eventhandler/subscribe", &subscription("uri-tricks", system("uri-tricks", 1), uri));
        assert_eq!(answer.status, 400, "{uri:?}: {}", answer.text());
        assert_eq!(answer.json()["exceptionType"], "BAD_PAYLOAD", "{uri:?}");
    }
}

#[test]
fn an_odd_but_allowed_notify_uri_goes_to_the_subscriber_as_it_is() {
    let cloud = Cloud::shared();
    let (publisher, definition) = cloud.register_publisher("uri-source", 1);
    let kept = ["/x%0d%0aX-Injected:%20yes", "/@evil.example/", "/a/../../b", "/:80/", "/?a=b&c=%00", "/.", "relative", "/a//b"];
    for (index, uri) in kept.into_iter().enumerate() {
        let listener = PushSubscriber::listen(Manner::Answers);
        let name = format!("uri-kept-{index}");
        let id = cloud.register_system(&name, listener.port());
        cloud.allow(id, publisher, definition, &[INSECURE_JSON_ID]);
        cloud.subscribe(&subscription("uri-kept", system(&name, listener.port()), uri));
        cloud.publish(&event("uri-kept", system("uri-source", 1), uri));
        let notification = listener.wait_for_payload(uri);
        let expected = if uri.starts_with('/') { uri.to_string() } else { format!("/{uri}") };
        assert_eq!(notification.target, expected);
        assert_eq!(notification.header("x-injected"), None, "{uri}");
        assert_eq!(notification.header("host"), Some(format!("127.0.0.1:{}", listener.port()).as_str()), "{uri}");
        cloud.delete(&format!(
            "/eventhandler/unsubscribe?event_type=uri-kept&system_name={name}&address=127.0.0.1&port={}",
            listener.port()
        ));
    }
}

#[test]
fn nothing_is_pushed_to_own_listeners_or_to_addresses_of_the_link() {
    let cloud = Launch::new().flags(["--push-timeout-ms", "2000"]).start();
    let (publisher, definition) = cloud.register_publisher("own-source", 1);
    // The event's JSON is a publish that would be accepted, so a push that got through would be heard.
    let echo = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=own-echo", &[]);
    let ports: Vec<u16> = System::CORE.into_iter().chain([System::Monitor]).map(|system| cloud.address(system).port()).collect();
    let mut targets: Vec<(String, u16)> = ports.iter().map(|port| ("127.0.0.1".to_string(), *port)).collect();
    targets.extend(["127.0.0.2", "localhost", "::1", "::ffff:127.0.0.1"].map(|address| (address.to_string(), ports[3])));
    targets.extend(["169.254.169.254", "fe80::1"].map(|address| (address.to_string(), 80)));
    for (index, (address, port)) in targets.iter().enumerate() {
        let name = format!("own-{index}");
        let own = with(system(&name, *port), "/address", address.as_str());
        let id = cloud.post("/serviceregistry/register-system", &own).expect_status(201).json()["id"].as_i64().expect("an id");
        cloud.allow(id, publisher, definition, &[INSECURE_JSON_ID]);
        cloud.subscribe(&subscription("own", own, "/eventhandler/publish"));
    }
    let payload = json!({"eventType": "own-echo", "source": system("own-source", 1), "payload": "x"}).to_string();
    cloud.publish(&event("own", system("own-source", 1), &payload));
    let failures = || metric(&cloud, "bodkin_push_failures_total");
    assert!(eventually(|| failures() >= targets.len() as f64), "only {} of {} pushes were refused", failures(), targets.len());
    assert_eq!(echo.count(), 0, "an event came back");
    assert_all_live(&cloud);
}
