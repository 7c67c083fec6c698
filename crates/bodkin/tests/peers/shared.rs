//! Events that one cloud shares with another by a broker of the Java world: they come in order, what is missing is counted, and what waits for the broker comes once.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::between::{Between, patiently};
use crate::support::sharing::{account_of, listen, payloads, publish, share, shared};

/// What was not taken is tried again soon.
const SOON: [&str; 4] = ["--push-backoff-min-ms", "50", "--push-backoff-max-ms", "500"];

#[test]
#[ignore = "peer: ./x test --all"]
fn shared_events_come_once_and_in_order_by_activemq() {
    shared_events_come_by("shared_events_come_once_and_in_order_by_activemq", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn shared_events_come_once_and_in_order_by_artemis() {
    shared_events_come_by("shared_events_come_once_and_in_order_by_artemis", "artemis");
}

fn shared_events_come_by(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let Some(mut between) = Between::start(test, Some(project), &place, &SOON) else { return };
    between.two.done("cloud accept-event heat one");
    let id = share(&between.one, "two", 20_000);
    let allow = format!("auth intercloud add --cloud {id} --provider sensor --service heat");
    between.one.done(&allow);
    let stream = listen(&between.two);
    let publish_all = |between: &Between, numbers: std::ops::RangeInclusive<u32>| {
        numbers.for_each(|number| publish(&between.one, &number.to_string()));
    };
    publish_all(&between, 1..=5);
    payloads(&stream, 5);
    let told = |between: &Between| {
        let account = account_of(&between.two);
        (account["taken"].clone(), account["lost"].clone())
    };
    // It is heard a moment before it is counted.
    let is_told = |between: &Between, taken: u32, lost: u32| {
        assert!(patiently(|| told(between) == (json!(taken), json!(lost))), "{}", account_of(&between.two));
    };
    is_told(&between, 5, 0);
    // What no rule lets out is missing there, and counted when the next one comes.
    let rules = between.one.done("auth intercloud list");
    between.one.done(&format!("auth intercloud remove {}", rules["data"][0]["id"]));
    publish(&between.one, "unheard");
    between.one.done(&allow);
    publish_all(&between, 6..=6);
    payloads(&stream, 6);
    is_told(&between, 6, 1);
    // An event whose answer is lost with the broker comes once more, and is passed over.
    assert!(patiently(|| shared(&between.one)["delivery"]["delivered"] == 6), "{}", shared(&between.one));

    between.stop_broker();
    publish_all(&between, 7..=16);
    let waits = || shared(&between.one)["delivery"]["consecutiveFailures"].as_u64() > Some(0);
    assert!(patiently(waits), "{}", shared(&between.one));
    between.start_broker();
    assert!(patiently(|| told(&between).0 == 16), "{}\n{}\n{}", account_of(&between.two), shared(&between.one), between.said());
    assert_eq!(told(&between).1, 1, "{}", account_of(&between.two));
    assert!(patiently(|| shared(&between.one)["delivery"]["delivered"] == 16), "{}", shared(&between.one));
    let heard: Vec<Value> = payloads(&stream, 16).iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(heard, (1..=16).map(|number| json!(number.to_string())).collect::<Vec<_>>());
    assert_eq!(stream.count(), 16);
}
