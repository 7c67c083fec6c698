//! No cloud has all places: others are asked, answered and heard while one has its share.

use super::*;
use crate::{
    gatekeeper::relay_test::{TESTS_MAX, TESTS_OF_ONE_MAX},
    shares::Place,
};

/// So many places of a cloud.
fn have(shares: &Shares, cloud: &str, places: usize) -> Vec<Place> {
    (0..places).map(|_| shares.try_take(cloud).unwrap()).collect()
}

async fn gsd(one: &Side) -> (u16, Value) {
    one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})).await
}

#[tokio::test]
async fn a_silent_cloud_that_is_asked_by_many_keeps_nobody_from_asking_others() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let gatekeeper = one.control.gatekeeper.clone().unwrap();
    let _silent = [&gatekeeper.searching, &gatekeeper.negotiating].map(|places| have(places, "silent.aitia", DIALOGUES_OF_ONE_MAX));
    assert!(gatekeeper.searching.try_take("silent.aitia").is_err());
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!((status, &answer["response"][0]["provider"]["systemName"]), (200, &json!("sensor")), "{answer}");
}

#[tokio::test]
async fn who_is_not_asked_for_want_of_a_place_is_told_not_to_be_silent() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start(Cloud::One, &relay, SHORT).await;
    one.knows(Cloud::Two, &relay).await;
    let gatekeeper = one.control.gatekeeper.clone().unwrap();
    let places = have(&gatekeeper.searching, "two.aitia", DIALOGUES_OF_ONE_MAX);
    let (status, answer) = gsd(&one).await;
    let told = answer["errorMessage"].as_str().unwrap();
    assert!(status == 503 && told.contains("two.aitia was not asked") && told.contains("40 of one cloud's"), "{answer}");
    drop(places);
    let _others: Vec<_> = ["a", "b"].iter().map(|cloud| have(&gatekeeper.searching, cloud, DIALOGUES_MAX / 2)).collect();
    let (status, answer) = gsd(&one).await;
    assert!(status == 503 && answer["errorMessage"].as_str().unwrap().contains("under way, 50,"), "{answer}");
    assert!(relay.sent().is_empty(), "nobody was called");
}

#[tokio::test]
async fn a_cloud_is_answered_while_another_has_its_share_of_answers() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let gatekeeper = two.control.gatekeeper.clone().unwrap();
    let _greedy = have(&gatekeeper.answered, "greedy.aitia", ANSWERS_OF_ONE_MAX);
    let _calls = have(&gatekeeper.calls, "greedy.aitia", CALLS_OF_ONE_MAX);
    assert!(gatekeeper.answered.try_take("greedy.aitia").is_err() && gatekeeper.calls.try_take("greedy.aitia").is_err());
    assert_eq!(gsd(&one).await.0, 200);
}

#[tokio::test]
async fn a_call_beyond_the_limit_is_dropped_and_counted() {
    use std::sync::atomic::Ordering::Relaxed;
    let (relay, one, two) = neighbours().await;
    let gatekeeper = two.control.gatekeeper.clone().unwrap();
    let of_one = have(&gatekeeper.calls, "one.aitia", CALLS_OF_ONE_MAX);
    let lost = call(&relay, Cloud::One, Cloud::One, Cloud::Two).await;
    until(&relay, "the call is dropped", |_| gatekeeper.counts.not_answered.load(Relaxed) == 1).await;
    drop(of_one);
    let _others = [have(&gatekeeper.calls, "a", CALLS_OF_ONE_MAX), have(&gatekeeper.calls, "b", CALLS_MAX - CALLS_OF_ONE_MAX)];
    let also_lost = call(&relay, Cloud::One, Cloud::One, Cloud::Two).await;
    until(&relay, "that call is dropped too", |_| gatekeeper.counts.not_answered.load(Relaxed) == 2).await;
    drop(_others);
    assert_eq!(gsd(&one).await.0, 200, "it goes on");
    assert!(!is_answered(&relay, &lost) && !is_answered(&relay, &also_lost));
}

#[tokio::test]
async fn tests_of_relays_beyond_their_limit_are_refused() {
    let (_relay, one, _two) = neighbours().await;
    let gatekeeper = one.control.gatekeeper.clone().unwrap();
    let test = json!({"targetCloud": {"operator": "aitia", "name": "two"}, "relay": {"address": "relay.example", "port": 5571}});
    let begin = || one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", test.clone());
    let of_one = have(&gatekeeper.tests, "two.aitia", TESTS_OF_ONE_MAX);
    let (status, answer) = begin().await;
    assert!(status == 503 && answer["errorMessage"].as_str().unwrap().contains("3 of one cloud's"), "{answer}");
    drop(of_one);
    let of_others =
        [have(&gatekeeper.tests, "other.aitia", TESTS_OF_ONE_MAX), have(&gatekeeper.tests, "third.aitia", TESTS_MAX - TESTS_OF_ONE_MAX)];
    let (status, answer) = begin().await;
    assert!(status == 503 && answer["errorMessage"].as_str().unwrap().contains("under way, 4,"), "{answer}");
    drop(of_others);
    // The other cloud was not asked to join before there was a place here.
    assert_eq!(begin().await.0, 200);
}
