//! Clients at a tunnel's port that are not its consumer.

use std::collections::VecDeque;

use bodkin_arrowhead::{name::SystemName, system::SystemReference};
use tokio::sync::Semaphore;

use super::{side::plain, *};
use crate::gateway::{HANDSHAKES_MAX, ends::Waited};

/// Bound for one exchange of the consumer: far less than a handshake may take here, and enough for a machine under load.
const SERVED: Duration = Duration::from_secs(20);

/// Ends that know the consumer by its first byte, `c`. A client that begins with `x` is refused; a handshake with any other client never ends.
struct FirstByteEnds {
    /// A permit for each handshake of the consumer that may end.
    permits: Arc<Semaphore>,
}

impl FirstByteEnds {
    fn that_end(permits: usize) -> (Arc<Semaphore>, Box<dyn Ends>) {
        let permits = Arc::new(Semaphore::new(permits));
        (permits.clone(), Box::new(Self { permits }))
    }
}

impl Ends for FirstByteEnds {
    fn welcome<'a>(&'a self, stream: TcpStream, address: SocketAddr, _: &'a SystemName) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move {
            let mut first = [0];
            match stream.peek(&mut first).await {
                Ok(1) if first == *b"c" => {
                    self.permits.acquire().await.unwrap().forget();
                    Ok(plain(stream))
                }
                Ok(1) if first == *b"x" => Err(EndError(format!("{address} was not let in: it is not the consumer"))),
                _ => std::future::pending().await,
            }
        })
    }

    fn reach<'a>(&'a self, provider: &'a SystemReference, _: &'a SystemName, _: Duration) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move { Ok(plain(TcpStream::connect((provider.address.as_str(), provider.port)).await.unwrap())) })
    }
}

async fn stranger(port: u16, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

async fn is_served(port: u16) {
    let answer = timeout(SERVED, mirrored(port, b"consumer")).await.expect("the consumer is served within its bound");
    assert_eq!(answer, b"remusnoc");
}

#[tokio::test]
async fn half_open_handshakes_do_not_delay_the_consumer() {
    let relay = MemoryRelay::new("relay.example");
    let (_, ends) = FirstByteEnds::that_end(Semaphore::MAX_PERMITS);
    let one = Side::with_ends(Cloud::One, &relay, SOON, ends);
    let two = Side::patient(Cloud::Two, &relay);
    let port = one.tunnel_to(&two, mirror().await).await;
    let mut held = VecDeque::new();
    for _ in 0..108 {
        held.push_back(stranger(port, b"\x16\x03\x01").await);
    }
    for _ in 0..10 {
        is_served(port).await;
    }
    assert_eq!(told(&one).state, "open");
    // Many more than slots and than the port's backlog.
    for number in 0..3_000 {
        held.push_back(stranger(port, b"\x16").await);
        if held.len() > 200 {
            held.pop_front();
        }
        if number % 300 == 0 {
            is_served(port).await;
        }
    }
    is_served(port).await;
    assert!(one.gateway.handshakes.count() <= HANDSHAKES_MAX);
    let evicted = || one.gateway.counts.handshakes_evicted.load(Relaxed);
    until("replaced handshakes are counted", || evicted() >= 3_108 - HANDSHAKES_MAX as u64).await;
    assert_eq!(told(&one).state, "open");
    drop(held);
}

#[tokio::test]
async fn refused_clients_are_counted_and_shown() {
    let relay = MemoryRelay::new("relay.example");
    let (_, ends) = FirstByteEnds::that_end(Semaphore::MAX_PERMITS);
    let one = Side::with_ends(Cloud::One, &relay, SOON, ends);
    let two = Side::patient(Cloud::Two, &relay);
    let port = one.tunnel_to(&two, mirror().await).await;
    for _ in 0..20 {
        let mut client = stranger(port, b"x").await;
        assert!(super::ends(&mut client).await);
    }
    until("refusals are counted", || one.gateway.counts.handshakes_failed.load(Relaxed) == 20).await;
    assert!(told(&one).trouble.is_some_and(|why| why.contains("was not let in")), "{:?}", told(&one));
    assert_eq!(told(&one).connections, 0);
    is_served(port).await;
}

#[tokio::test]
async fn arriving_consumer_keeps_an_unused_session() {
    const SHORT: Duration = Duration::from_millis(600);
    let relay = MemoryRelay::new("relay.example");
    let (permits, ends) = FirstByteEnds::that_end(0);
    let one = Side::made_of(Cloud::One, &relay, (PortRange::Any, SHORT, SOON), ends);
    let two = Side::patient(Cloud::Two, &relay);
    let port = one.tunnel_to(&two, mirror().await).await;
    let begun = Instant::now();
    let served = tokio::spawn(async move { mirrored(port, b"consumer").await });
    // A session that nobody uses ends after twice its idle time.
    until("the session would be over", || begun.elapsed() > SHORT * 4).await;
    assert_eq!(one.gateway.count(), 1);
    permits.add_permits(1);
    assert_eq!(timeout(SERVED, served).await.expect("it is served").unwrap(), b"remusnoc");
}

#[tokio::test]
async fn strangers_do_not_keep_an_unused_session() {
    const SHORT: Duration = Duration::from_millis(600);
    let relay = MemoryRelay::new("relay.example");
    let (_, ends) = FirstByteEnds::that_end(0);
    let one = Side::made_of(Cloud::One, &relay, (PortRange::Any, SHORT, SHORT), ends);
    let two = Side::patient(Cloud::Two, &relay);
    let port = one.tunnel_to(&two, mirror().await).await;
    let knocking = tokio::spawn(async move {
        // Until the port is closed.
        while let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await {
            let _ = stream.write_all(b"\x16").await;
            let _ = timeout(SHORT / 4, stream.read(&mut [0])).await;
        }
    });
    until("the session is over", || one.gateway.count() == 0).await;
    assert!(told(&one).reason.is_some_and(|reason| reason.contains("nobody has connected")), "{:?}", told(&one));
    timeout(SOON, knocking).await.expect("the port is closed").unwrap();
}
