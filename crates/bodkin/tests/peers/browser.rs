//! A browser's own `EventSource` hears events in both forms.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Launch, System};
use crate::support::push::{Manner, PushSubscriber};
use crate::support::skip;

/// Names under which the browser is installed.
pub const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Any user may run it, it fetches nothing of its own, and a page of a file may read from another origin.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-web-security",
    "--disable-features=LocalNetworkAccessChecks",
    // Keeps the browser there after the page is loaded.
    "--remote-debugging-port=0",
];

/// Listens to both forms and reports what it hears, numbered, because reports may overtake each other.
const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><title>EventSource</title><script>
let number = 0;
const report = (stream, heard) =>
    fetch("REPORT", {method: "POST", mode: "no-cors", body: JSON.stringify({number: number++, stream, ...heard})});
const listen = (stream, url) => {
    const source = new EventSource(url);
    const hear = event => report(stream, {type: event.type, data: event.data, id: event.lastEventId});
    source.onopen = () => report(stream, {type: "open"});
    source.addEventListener("message", hear);
    source.addEventListener("BROWSER", hear);
};
listen("payloads", "BASE/eventhandler/subscription?eventtype=BROWSER");
listen("events", "BASE/eventhandler/events?event_type=BROWSER");
</script>"#;

/// Killed when dropped.
struct Browser(Child);

impl Browser {
    /// Opens `page` and keeps its profile and all that it writes in `place`; `None` when no browser is installed.
    fn open(page: &Path, place: &Path) -> Option<Self> {
        BROWSERS.into_iter().find_map(|name| {
            let mut command = Command::new(name);
            command
                .args(FLAGS)
                .arg(format!("--user-data-dir={}", place.join("profile").display()))
                .arg(format!("file://{}", page.display()));
            command.env("TMPDIR", place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().ok().map(Self)
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_browsers_event_source_hears_both_forms() {
    let cloud = Launch::new().start();
    cloud.register_system("browser", 1);
    let place = TempDir::new().expect("a temporary directory");
    let reports = PushSubscriber::listen(Manner::Answers);
    let page = place.path().join("page.html");
    let content = PAGE
        .replace("REPORT", &format!("http://127.0.0.1:{}/", reports.port()))
        .replace("BASE", &format!("http://{}", cloud.address(System::EventHandler)));
    fs::write(&page, content).expect("the page is written");
    let Some(_browser) = Browser::open(&page, place.path()) else {
        return skip::note("a_browsers_event_source_hears_both_forms", "no Chromium is installed");
    };

    let heard = |count: usize, what: &str| {
        let notifications = reports.wait_until(|all| all.len() >= count, what);
        let mut heard: Vec<Value> = notifications.iter().map(|notification| notification.json()).collect();
        heard.sort_by_key(|report| report["number"].as_u64());
        heard
    };
    let opened = heard(2, "both streams opened");
    assert!(opened.iter().all(|report| report["type"] == "open"), "{opened:?}");

    let payloads = ["first", "two\nlines", "värme 温度 😀"];
    for payload in payloads {
        cloud.publish(&event("BROWSER", system("browser", 1), payload));
    }
    let all = heard(2 + 2 * payloads.len(), "every event on both streams");
    let of = |stream: &str| -> Vec<&Value> { all.iter().filter(|report| report["stream"] == stream && report["type"] != "open").collect() };
    for (index, payload) in payloads.into_iter().enumerate() {
        let (bare, whole) = (of("payloads")[index], of("events")[index]);
        assert_eq!((&bare["type"], &bare["data"]), (&json!("BROWSER"), &json!(payload)));
        let event: Value = serde_json::from_str(whole["data"].as_str().expect("text")).expect("the data is JSON");
        assert_eq!((&event["eventType"], &event["payload"]), (&json!("BROWSER"), &json!(payload)));
        assert_eq!(bare["id"], whole["id"], "one event, one identity");
        assert!(bare["id"].as_str().is_some_and(|id| !id.is_empty()), "{bare}");
    }
}
