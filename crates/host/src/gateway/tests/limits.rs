//! What a session's connections may take, and what becomes of those that want more.

use bodkin_arrowhead::{name::SystemName, system::SystemReference};
use bodkin_relay::tunnel::CONNECTIONS_MAX;

use super::*;
use crate::gateway::ends::Waited;

/// Of a session whose connections stand: twice as long as its gateways may be silent.
const STALL: Duration = Duration::from_secs(8);
/// Long enough for anything that may not happen to happen most of the time.
const A_WHILE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn one_connection_more_than_there_are_waits_at_the_port() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = one.tunnel_to(&two, provider.local_addr().unwrap().port()).await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
        connections.push((consumer, at_provider));
    }
    let mut waiting = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    waiting.write_all(b"heat").await.unwrap();
    assert!(timeout(A_WHILE, provider.accept()).await.is_err());
    assert_eq!((told(&one).connections, told(&two).connections), (CONNECTIONS_MAX, CONNECTIONS_MAX));
    connections.pop();
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("there is room").unwrap();
    let mut heat = [0; 4];
    timeout(SOON, at_provider.read_exact(&mut heat)).await.expect("soon").unwrap();
    assert_eq!(&heat, b"heat");
}

#[tokio::test]
async fn an_end_that_takes_nothing_is_given_up_and_told() {
    let relay = MemoryRelay::new("relay.example");
    let [one, two] = [Cloud::One, Cloud::Two].map(|cloud| Side::with(cloud, &relay, PortRange::Any, STALL));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = one.tunnel_to(&two, provider.local_addr().unwrap().port()).await;
    let _consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut source, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    // More than all buffers on the way hold.
    let writing = tokio::spawn(async move { source.write_all(&vec![7; 64 * 1024 * 1024]).await });
    until("it is given up at the consumer's side", || told(&one).trouble.is_some_and(|why| why.contains("it has taken nothing for 8s")))
        .await;
    assert!(timeout(SOON, writing).await.expect("the provider is told").unwrap().is_err());
    until("the connection is over at both sides", || told(&one).connections == 0 && told(&two).connections == 0).await;
}

/// Ends with whom no handshake comes to its end.
struct SilentEnds;

impl Ends for SilentEnds {
    fn welcome<'a>(&'a self, stream: TcpStream, _: SocketAddr, _: &'a SystemName) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move {
            let _open = stream;
            std::future::pending().await
        })
    }

    fn reach<'a>(&'a self, _: &'a SystemReference, _: &'a SystemName, _: Duration) -> Waited<'a, Result<End, EndError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn ends_that_do_not_do_their_part_of_the_handshake_are_given_up_and_told() {
    let relay = MemoryRelay::new("relay.example");
    for (is_consumer, expected) in
        [(true, "has not done its part of the TLS handshake within 200ms"), (false, "has not answered within 200ms")]
    {
        let silent = |cloud| Side::with_ends(cloud, &relay, A_WHILE, Box::new(SilentEnds));
        let (one, two) = match is_consumer {
            true => (silent(Cloud::One), Side::patient(Cloud::Two, &relay)),
            false => (Side::patient(Cloud::One, &relay), silent(Cloud::Two)),
        };
        let port = one.tunnel_to(&two, mirror().await).await;
        let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert!(ends(&mut consumer).await, "{expected}");
        let side = if is_consumer { &one } else { &two };
        until("the session says why", || told(side).trouble.is_some_and(|why| why.contains(expected))).await;
        assert!(told(side).state != "closed", "the session goes on");
    }
}
