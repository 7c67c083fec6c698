//! No cloud has all sessions.

use super::*;
use crate::shares::Place;

fn have(gateway: &Gateway, cloud: &str, places: usize) -> Vec<Place> {
    (0..places).map(|_| gateway.places.try_take(cloud).unwrap()).collect()
}

#[tokio::test]
async fn a_cloud_that_has_its_share_of_sessions_leaves_the_others_theirs() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = mirror().await;
    let of_others = have(&two.gateway, "greedy.aitia", SESSIONS_OF_ONE_MAX);
    assert!(two.gateway.place("greedy.aitia").is_err());
    let port = one.tunnel_to(&two, provider).await;
    assert_eq!(mirrored(port, b"heat").await, b"taeh");
    drop(of_others);
    // Whichever key its gateway says to have.
    let of_one = have(&two.gateway, "one.aitia", SESSIONS_OF_ONE_MAX - 1);
    for key in [Cloud::One.key(), Cloud::Stranger.key()] {
        let refused = two.gateway.connect_provider(request::provider(&key, provider)).await.unwrap_err();
        assert!(refused.error_code == 503 && refused.error_message.contains("1500 of one cloud's sessions"), "{refused}");
    }
    drop(of_one);
    let _all = [have(&two.gateway, "a", SESSIONS_OF_ONE_MAX), have(&two.gateway, "b", SESSIONS_MAX - SESSIONS_OF_ONE_MAX - 1)];
    let refused = two.gateway.connect_provider(request::provider(&Cloud::One.key(), provider)).await.unwrap_err();
    assert!(refused.error_code == 503 && refused.error_message.contains("2000 sessions"), "{refused}");
    assert_eq!(two.gateway.counts.refused.load(Relaxed), 3);
}

#[tokio::test]
async fn a_session_gives_its_place_back() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let _others = [&one, &two].map(|side| have(&side.gateway, "one.aitia", SESSIONS_OF_ONE_MAX - 1));
    let _others_here = have(&one.gateway, "two.aitia", SESSIONS_MAX - SESSIONS_OF_ONE_MAX);
    let provider = mirror().await;
    let port = one.tunnel_to(&two, provider).await;
    assert!(one.gateway.place("two.aitia").is_err() && two.gateway.place("one.aitia").is_err());
    assert!(one.gateway.close_port(port, "the operator"));
    until("both sides have room again", || one.gateway.place("two.aitia").is_ok() && two.gateway.place("one.aitia").is_ok()).await;
}
