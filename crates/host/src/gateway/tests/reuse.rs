//! Requests for a tunnel that get the port of a former one, and the share of a consumer.

use super::*;

#[tokio::test]
async fn repeated_requests_get_one_port() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = mirror().await;
    let port = one.tunnel_to(&two, provider).await;
    for _ in 0..20 {
        assert_eq!(one.tunnel_to(&two, provider).await, port);
    }
    assert_eq!(one.gateway.ports_held_by_one(), 1);
    until("former sessions are over at both sides", || one.gateway.count() == 1 && two.gateway.count() == 1).await;
    assert_eq!(mirrored(port, b"heat").await, b"taeh");
    let is_replaced = |view: &SessionView| view.reason.as_ref().is_some_and(|reason| reason.contains("a newer session"));
    assert_eq!(one.gateway.views().iter().filter(|view| is_replaced(view)).count(), 20);
    until("nobody is connected", || told(&one).connections == 0).await;
    assert_eq!(one.tunnel_to(&two, provider).await, port, "after its use");
    assert_eq!(mirrored(port, b"cold").await, b"dloc");
}

#[tokio::test]
async fn session_in_use_serves_the_next_request() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = provider.local_addr().unwrap().port();
    let port = one.tunnel_to(&two, address).await;
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    assert_eq!(one.tunnel_to(&two, address).await, port);
    assert_eq!((one.gateway.counts.shared.load(Relaxed), one.gateway.count()), (1, 1));
    until("the other gateway learns that nobody comes by the new tunnel", || two.gateway.count() == 1).await;
    // The connection goes on, and there may be another.
    let mut other = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut other_at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    for (from, to) in [(&mut at_provider, &mut consumer), (&mut other_at_provider, &mut other)] {
        from.write_all(b"heat").await.unwrap();
        let mut heat = [0; 4];
        timeout(SOON, to.read_exact(&mut heat)).await.expect("soon").unwrap();
        assert_eq!(&heat, b"heat");
    }
}

#[tokio::test]
async fn requests_at_the_same_time_get_one_port() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = mirror().await;
    let request = || one.tunnel_to(&two, provider);
    let (first, second, third, fourth) = tokio::join!(request(), request(), request(), request());
    assert_eq!([first; 3], [second, third, fourth]);
    until("one session is left at both sides", || one.gateway.count() == 1 && two.gateway.count() == 1).await;
    assert_eq!(mirrored(first, b"heat").await, b"taeh");
}

#[tokio::test]
async fn requests_that_differ_get_ports_of_their_own() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let (provider, other) = (mirror().await, mirror().await);
    let port = one.tunnel_to(&two, provider).await;
    let of_other_provider = one.tunnel_to(&two, other).await;
    let opened = two.open(&one, provider).await;
    let of_other_consumer = one.gateway.connect_consumer(request::consumer_named("panel", &opened, provider)).await.unwrap();
    assert!(port != of_other_provider && port != of_other_consumer && of_other_provider != of_other_consumer);
    assert_eq!(one.gateway.count(), 3);
}

#[tokio::test]
async fn consumer_with_its_share_is_refused_and_others_are_not() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::sharing(Cloud::One, &relay, 2), Side::patient(Cloud::Two, &relay));
    let providers = [mirror().await, mirror().await, mirror().await];
    let first = one.tunnel_to(&two, providers[0]).await;
    one.tunnel_to(&two, providers[1]).await;
    let opened = two.open(&one, providers[2]).await;
    let refused = one.enter(&two, &opened, providers[2]).await.unwrap_err();
    assert_eq!(refused.error_code, 503);
    assert!(refused.error_message.contains("display has tunnels at 2 ports"), "{refused}");
    assert!(refused.error_message.contains("gateway_ports_per_consumer"), "{refused}");
    assert_eq!((one.gateway.ports_held_by_one(), one.gateway.counts.refused.load(Relaxed)), (2, 1));
    assert_eq!(one.tunnel_to(&two, providers[0]).await, first, "a repeated request needs no further port");
    let opened = two.open(&one, providers[2]).await;
    one.gateway.connect_consumer(request::consumer_named("panel", &opened, providers[2])).await.expect("another consumer has its share");
    assert!(one.gateway.close_port(first, "the operator"));
    until("the port is given back", || one.gateway.count() == 2).await;
    one.tunnel_to(&two, providers[2]).await;
}
