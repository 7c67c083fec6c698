//! Two gateways at a relay without a network, with a consumer and a provider on sockets of this machine.

mod early;
mod forms;
mod given_up;
mod limits;
mod reuse;
mod shares;
pub(crate) mod side;
mod strangers;
mod strays;

use std::{net::SocketAddr, time::Duration};

use bodkin_arrowhead::dialogue::SessionId;
use bodkin_relay::tunnel::PLAIN_REQUESTS_MAX;
use bodkin_trust::{MessageOpener, MessageSealer, RelayMessage};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

use self::side::{Cloud, IDLE, SOON, Side, request, until};
use super::*;
use crate::{
    control::now,
    relay::{Destination, Heard, memory::MemoryRelay},
};

/// Of a port that is nobody's while it lives: it does not listen, and lets who is told the port do so.
fn held_port() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    // Behind the binding, which another's socket with the same option may not share.
    socket.set_reuseaddr(true).unwrap();
    socket
}

/// A provider that answers, at the end of what it hears, with the same backwards, and the listener that it has.
async fn mirror() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                heard.reverse();
                stream.write_all(&heard).await.unwrap();
            });
        }
    });
    port
}

/// What a mirror answers through a tunnel.
async fn mirrored(port: u16, said: &[u8]) -> Vec<u8> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(said).await.unwrap();
        // The other direction stays open behind this one's end.
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        answer
    };
    timeout(SOON, exchange).await.expect("an answer comes soon")
}

/// Whether a connection ends before anything comes.
async fn ends(stream: &mut TcpStream) -> bool {
    let read = timeout(SOON, stream.read(&mut [0; 64])).await.expect("it ends soon");
    !matches!(read, Ok(bytes) if bytes > 0)
}

/// The consumer's session, as it is told.
fn told(side: &Side) -> SessionView {
    side.gateway.views().pop().expect("there is a session, or was one")
}

/// Waits until both sides have no session, and the relay nothing of them.
async fn all_gone(relay: &MemoryRelay, sides: [&Side; 2]) {
    until("both sides have no session", || sides.iter().all(|side| side.gateway.count() == 0)).await;
    until("nothing is left at the relay", || relay.queues().iter().all(|queue| queue.name().ends_with("-CONTROL"))).await;
}

#[tokio::test]
async fn connections_go_one_after_the_other_and_at_once_each_direction_with_its_own_end() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let port = one.tunnel_to(&two, mirror().await).await;
    for said in [&b"heat"[..], b"", b"23.5 degrees"] {
        let expected: Vec<u8> = said.iter().rev().copied().collect();
        assert_eq!(mirrored(port, said).await, expected);
    }
    let long: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let expected: Vec<u8> = long.iter().rev().copied().collect();
    let at_once = [mirrored(port, &long), mirrored(port, b"abc"), mirrored(port, &long)];
    let [first, second, third] = at_once;
    let (first, second, third) = tokio::join!(first, second, third);
    assert!(first == expected && second == b"cba" && third == expected);
    let view = told(&one);
    assert_eq!((view.state.as_str(), view.numbered, view.port), ("open", Some(true), Some(port)), "{view:?}");
    assert!(view.bytes_to_peer > 6_000_000 && view.bytes_from_peer == view.bytes_to_peer, "{view:?}");
    assert_eq!((view.peer.as_str(), told(&two).peer.as_str()), ("gateway.two.aitia.arrowhead.eu", "gateway.one.aitia.arrowhead.eu"));
    until("all connections have ended", || told(&one).connections == 0 && told(&two).connections == 0).await;
    assert!(relay.sent().iter().all(|(_, message)| !message.contains("23.5 degrees")), "the relay reads along");
}

#[tokio::test]
async fn whoever_reads_slowly_holds_up_who_sends_and_no_other_connection() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = one.tunnel_to(&two, provider.local_addr().unwrap().port()).await;
    let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut source, _) = provider.accept().await.unwrap();
    // The provider says more than all buffers on the way hold, and the consumer reads nothing.
    const BYTES: usize = 32 * 1024 * 1024;
    let writing = tokio::spawn(async move { source.write_all(&vec![7; BYTES]).await.map(|()| source) });
    let crossed = || told(&two).bytes_to_peer;
    let (mut before, mut stands) = (0, 0);
    until("the provider is held up", || {
        let now = crossed();
        stands = if now == before && now > 0 { stands + 1 } else { 0 };
        before = now;
        stands > 25
    })
    .await;
    assert!(!writing.is_finished());
    assert!(crossed() < BYTES as u64 / 2, "{} bytes have crossed", crossed());
    // Another connection of the same session has its way.
    let mut quick = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut other, _) = provider.accept().await.unwrap();
    other.write_all(b"quick").await.unwrap();
    let mut answer = [0; 5];
    timeout(SOON, quick.read_exact(&mut answer)).await.expect("soon").unwrap();
    assert_eq!(&answer, b"quick");
    let mut rest = vec![0; BYTES];
    timeout(SOON * 3, slow.read_exact(&mut rest)).await.expect("all comes in the end").unwrap();
    assert!(rest.iter().all(|byte| *byte == 7));
    writing.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_a_relay_loses_ends_the_session_at_both_sides_and_is_told() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = one.tunnel_to(&two, provider.local_addr().unwrap().port()).await;
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut at_provider, _) = provider.accept().await.unwrap();
    relay.lose(1);
    consumer.write_all(b"lost").await.unwrap();
    until("the message is lost", || told(&one).bytes_to_peer == 4).await;
    consumer.write_all(b"behind it").await.unwrap();
    assert!(ends(&mut consumer).await && ends(&mut at_provider).await, "nothing is handed on behind a gap");
    all_gone(&relay, [&one, &two]).await;
    assert!(told(&two).reason.is_some_and(|reason| reason.contains("1 messages")), "{:?}", told(&two));
    assert!(told(&one).reason.is_some_and(|reason| reason.contains("has closed it") && reason.contains("lost")), "{:?}", told(&one));
}

#[tokio::test]
async fn what_is_forged_repeated_or_of_another_session_is_passed_over() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let (port, other) = (one.tunnel_to(&two, mirror().await).await, one.tunnel_to(&two, mirror().await).await);
    assert_eq!(mirrored(port, b"abc").await, b"cba");
    assert_eq!(mirrored(other, b"def").await, b"fed");
    let said = relay.sent();
    let queues: Vec<Destination> =
        said.iter().map(|(queue, _)| queue.clone()).filter(|queue| !queue.name().ends_with("-CONTROL")).collect();
    // Everything that was said, once more where it was said and where it was not; what no gateway has said, too.
    for (queue, message) in said {
        relay.repeat(&queue, message.clone());
        for other in queues.iter().filter(|other| **other != queue).take(4) {
            relay.repeat(other, message.clone());
        }
        relay.send_bytes(&queue, vec![0; 40]).await.unwrap();
        relay.send(&queue, "AAAA".into()).await.unwrap();
        // A session ends after too many in a row.
        assert_eq!((mirrored(port, b"abc").await, mirrored(other, b"def").await), (b"cba".to_vec(), b"fed".to_vec()));
    }
    let queues: BTreeMap<String, Destination> = queues.into_iter().map(|queue| (queue.name().to_owned(), queue)).collect();
    for stranger in [Cloud::Two, Cloud::Stranger] {
        let sealer = MessageSealer::new(stranger.gateway().key()).unwrap();
        for queue in queues.values() {
            let sealed = sealer.seal(&RelayMessage::Raw(b"forged".to_vec()), &Cloud::Two.sealing(), now()).unwrap();
            relay.send(queue, sealed).await.unwrap();
        }
    }
    assert_eq!(mirrored(port, b"uvw").await, b"wvu");
    assert_eq!(mirrored(other, b"xyz").await, b"zyx");
    assert!(one.gateway.counts.strays.load(Relaxed) > 0 && two.gateway.counts.strays.load(Relaxed) > 0);
    assert!([&one, &two].iter().all(|side| side.gateway.views().iter().all(|view| view.state == "open")));
}

#[tokio::test]
async fn a_provider_that_is_gone_is_told_and_the_session_goes_on() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let held = held_port();
    let address = held.local_addr().unwrap();
    let port = one.tunnel_to(&two, address.port()).await;
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    assert!(ends(&mut consumer).await);
    until("both sides say why", || [&one, &two].iter().all(|side| told(side).trouble.is_some_and(|why| why.contains("is not reached"))))
        .await;
    assert_eq!(told(&one).state, "open");
    let provider = TcpListener::bind(address).await.unwrap();
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    // It breaks in the middle.
    at_provider.write_all(b"half").await.unwrap();
    let mut half = [0; 4];
    timeout(SOON, consumer.read_exact(&mut half)).await.expect("soon").unwrap();
    socket2::SockRef::from(&at_provider).set_linger(Some(Duration::ZERO)).unwrap();
    drop(at_provider);
    assert!(ends(&mut consumer).await);
    until("the connection is given up", || told(&one).connections == 0 && told(&two).connections == 0).await;
}

#[tokio::test]
async fn a_relay_that_is_away_for_a_moment_costs_no_session() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let port = one.tunnel_to(&two, mirror().await).await;
    assert_eq!(mirrored(port, b"before").await, b"erofeb");
    relay.set_down(true);
    let meanwhile = tokio::spawn(async move { mirrored(port, b"meanwhile").await });
    until("it is tried again", || one.sent_again() > 0).await;
    relay.set_down(false);
    assert_eq!(meanwhile.await.unwrap(), b"elihwnaem");
    assert_eq!((told(&one).state.as_str(), told(&two).state.as_str()), ("open", "open"));
}

#[test]
fn a_gateway_that_is_killed_is_found_out_and_leaves_nothing() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (ours, theirs) = (runtime(), runtime());
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::new(Cloud::One, &relay), Side::new(Cloud::Two, &relay));
    let provider = ours.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = provider.local_addr().unwrap().port();
    let opened = theirs.block_on(two.open(&one, address));
    let port = ours.block_on(one.enter(&two, &opened, address)).unwrap();
    let mut consumer = ours.block_on(async {
        let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut at_provider, _) = provider.accept().await.unwrap();
        at_provider.write_all(b"begun").await.unwrap();
        let mut begun = [0; 5];
        timeout(SOON, consumer.read_exact(&mut begun)).await.expect("soon").unwrap();
        consumer
    });
    theirs.shutdown_background();
    ours.block_on(async {
        assert!(ends(&mut consumer).await, "whoever is connected is told");
        until("the session is over", || one.gateway.count() == 0).await;
        assert!(told(&one).reason.is_some_and(|reason| reason.contains("nothing was heard")), "{:?}", told(&one));
        until("its queues are removed", || relay.queues().iter().all(|queue| !queue.name().starts_with("RESP-"))).await;
    });
}

#[tokio::test]
async fn ports_are_as_many_as_the_pool_has_and_come_back() {
    let relay = MemoryRelay::new("relay.example");
    let held = held_port();
    let free = held.local_addr().unwrap().port();
    let one = Side::with_ports(Cloud::One, &relay, PortRange::Ports { first: free, last: free });
    let two = Side::patient(Cloud::Two, &relay);
    let provider = mirror().await;
    let port = one.tunnel_to(&two, provider).await;
    assert_eq!((port, one.gateway.free_ports()), (free, Some(0)));
    let another = mirror().await;
    let refused = one.enter(&two, &two.open(&one, another).await, another).await.unwrap_err();
    assert_eq!(refused.error_code, 504);
    assert!(refused.error_message.contains("gateway_max_port"), "{refused}");
    // The provider's gateway is told that nobody comes.
    until("the other end is closed", || two.gateway.count() == 1).await;
    assert!(one.gateway.close_port(port, "the operator") && !one.gateway.close_port(port + 1, "the operator"));
    all_gone(&relay, [&one, &two]).await;
    assert_eq!(told(&one).reason.as_deref(), Some("it was closed by the operator"));
    let is_told = |view: &SessionView| view.reason.as_ref().is_some_and(|reason| reason.contains("closed by the operator"));
    assert!(two.gateway.views().iter().any(is_told), "{:?}", two.gateway.views());
    assert_eq!(mirrored(one.tunnel_to(&two, provider).await, b"again").await, b"niaga");
}

#[tokio::test]
async fn a_queue_id_opens_one_session() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let provider = mirror().await;
    let opened = two.open(&one, provider).await;
    let enter = || one.enter(&two, &opened, provider);
    let both = tokio::join!(enter(), enter());
    let (port, refused) = match both {
        (Ok(port), Err(refused)) | (Err(refused), Ok(port)) => (port, refused),
        other => panic!("one of two is let in: {other:?}"),
    };
    for refused in [refused, enter().await.unwrap_err()] {
        assert!(refused.error_code == 400 && refused.error_message.contains("queue id already"), "{refused}");
    }
    // The session is none the worse for it.
    assert_eq!((one.gateway.count(), mirrored(port, b"still").await), (1, b"llits".to_vec()));
}

#[tokio::test]
async fn a_session_that_nobody_uses_and_a_gateway_that_stops_leave_nothing() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::new(Cloud::One, &relay), Side::new(Cloud::Two, &relay));
    let provider = mirror().await;
    one.tunnel_to(&two, provider).await;
    all_gone(&relay, [&one, &two]).await;
    assert!(told(&one).reason.is_some_and(|reason| reason.contains("nobody has connected")), "{:?}", told(&one));
    let patient = Side::patient(Cloud::One, &relay);
    let port = patient.tunnel_to(&two, provider).await;
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    until("it is connected", || patient.gateway.views().iter().any(|view| view.connections == 1)).await;
    timeout(SOON, patient.gateway.stop()).await.expect("it stops soon");
    assert!(ends(&mut consumer).await && TcpStream::connect(("127.0.0.1", port)).await.is_err());
    all_gone(&relay, [&patient, &two]).await;
    assert!(told(&two).reason.is_some_and(|reason| reason.contains("the gateway stops")), "{:?}", told(&two));
}

#[tokio::test]
async fn a_silent_connection_is_held_by_keep_alives() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::new(Cloud::One, &relay), Side::new(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = one.tunnel_to(&two, provider.local_addr().unwrap().port()).await;
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut at_provider, _) = provider.accept().await.unwrap();
    let before = relay.sent().len();
    until("much longer than a session waits unused", || told(&one).started_at < now().minus(IDLE * 2)).await;
    assert!(relay.sent().len() > before + 8, "both say that they are there");
    at_provider.write_all(b"late").await.unwrap();
    let mut late = [0; 4];
    timeout(SOON, consumer.read_exact(&mut late)).await.expect("soon").unwrap();
    assert_eq!(told(&one).state, "open");
}

/// A gateway of upstream's at the provider's side, as far as a relay sees it.
#[tokio::test]
async fn upstreams_gateway_gets_whole_requests_and_answers_as_it_does() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::patient(Cloud::One, &relay);
    let queue_id = SessionId::parse(&"aB3".repeat(16)).unwrap();
    let peer = &Cloud::Two.name();
    let queue = |name: String| Destination::queue(&name).unwrap();
    let (asked, answered) = (queue(queue_id.request_queue(peer)), queue(queue_id.response_queue(peer)));
    let mut heard = relay.listen(&asked).await.unwrap();
    let control = relay.listen(&queue(format!("{}-CONTROL", queue_id.request_queue(peer)))).await.unwrap();
    let opened = OpenedTunnel { queue_id: queue_id.clone(), peer_name: peer.clone(), key: Cloud::Two.key() };
    let port = one.gateway.connect_consumer(request::consumer(&opened, 9000)).await.unwrap();
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let said = b"POST /heat HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12345";
    for piece in said.chunks(7) {
        consumer.write_all(piece).await.unwrap();
        consumer.flush().await.unwrap();
    }
    let Ok(Heard::Message(message)) = timeout(SOON, heard.next()).await.expect("soon") else { panic!("a message") };
    let opener = MessageOpener::new(Cloud::Two.gateway().key()).unwrap();
    assert_eq!(opener.open(&message, ("neighbor", &Cloud::One.verifying()), now()), Ok(RelayMessage::Raw(said.to_vec())));
    let sealer = MessageSealer::new(Cloud::Two.gateway().key()).unwrap();
    for piece in [&b"HTTP/1.1 200 OK\r\n"[..], b"Content-Length: 0\r\n\r\n"] {
        relay.send(&answered, sealer.seal(&RelayMessage::Raw(piece.to_vec()), &Cloud::One.sealing(), now()).unwrap()).await.unwrap();
    }
    relay.send(&queue(format!("{}-CONTROL", queue_id.response_queue(peer))), format!("CLOSE {queue_id}")).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, consumer.read_to_string(&mut answer)).await.expect("soon").unwrap();
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    until("the session is over", || one.gateway.count() == 0).await;
    assert_eq!((told(&one).numbered, told(&one).state.as_str()), (Some(false), "closed"));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    drop(control);
}

/// A gateway of upstream's at the consumer's side.
#[tokio::test]
async fn upstreams_gateway_reaches_a_provider_here() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Cloud::One, Side::patient(Cloud::Two, &relay));
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let opened = two.open_for(one, provider.local_addr().unwrap().port()).await;
    let queue = |name: String| Destination::queue(&name).unwrap();
    let answered = queue(opened.queue_id.response_queue(&opened.peer_name));
    let (mut heard, mut control) =
        (relay.listen(&answered).await.unwrap(), relay.listen(&queue(format!("{}-CONTROL", answered.name()))).await.unwrap());
    let sealer = MessageSealer::new(one.gateway().key()).unwrap();
    let asked = queue(opened.queue_id.request_queue(&opened.peer_name));
    relay.send(&asked, sealer.seal(&RelayMessage::Raw(b"question".to_vec()), &Cloud::Two.sealing(), now()).unwrap()).await.unwrap();
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    let mut question = [0; 8];
    timeout(SOON, at_provider.read_exact(&mut question)).await.expect("soon").unwrap();
    at_provider.write_all(b"answer").await.unwrap();
    let Ok(Heard::Message(message)) = timeout(SOON, heard.next()).await.expect("soon") else { panic!("a message") };
    let opener = MessageOpener::new(one.gateway().key()).unwrap();
    assert_eq!(opener.open(&message, ("neighbor", &Cloud::Two.verifying()), now()), Ok(RelayMessage::Raw(b"answer".to_vec())));
    drop(at_provider);
    let Ok(Heard::Message(close)) = timeout(SOON, control.next()).await.expect("soon") else { panic!("a word") };
    assert_eq!(close, format!("CLOSE {}", opened.queue_id));
    until("the session is over", || two.gateway.count() == 0).await;
}

/// As many servers do, the provider ends a connection behind so many requests.
#[tokio::test]
async fn upstreams_gateway_reaches_a_provider_that_ends_connections_by_the_next_one() {
    const GET: &[u8] = b"GET /heat HTTP/1.1\r\nHost: h\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Cloud::One, Side::patient(Cloud::Two, &relay));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let opened = two.open_for(one, listener.local_addr().unwrap().port()).await;
    let accepted = Arc::new(AtomicU64::new(0));
    let counted = accepted.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Relaxed);
            tokio::spawn(async move {
                for _ in 0..PLAIN_REQUESTS_MAX {
                    let mut request = vec![0; GET.len()];
                    if stream.read_exact(&mut request).await.is_err() {
                        return;
                    }
                    stream.write_all(ANSWER).await.unwrap();
                }
                // The gateway knows by its own count that nothing more is answered here.
                let _ = stream.read(&mut [0]).await;
            });
        }
    });
    let queue = |name: String| Destination::queue(&name).unwrap();
    let mut heard = relay.listen(&queue(opened.queue_id.response_queue(&opened.peer_name))).await.unwrap();
    let asked = queue(opened.queue_id.request_queue(&opened.peer_name));
    let sealer = MessageSealer::new(one.gateway().key()).unwrap();
    let opener = MessageOpener::new(one.gateway().key()).unwrap();
    for _ in 0..=2 * PLAIN_REQUESTS_MAX {
        relay.send(&asked, sealer.seal(&RelayMessage::Raw(GET.to_vec()), &Cloud::Two.sealing(), now()).unwrap()).await.unwrap();
        let mut answer = Vec::new();
        while answer.len() < ANSWER.len() {
            let Ok(Heard::Message(message)) = timeout(SOON, heard.next()).await.expect("soon") else { panic!("a message") };
            let Ok(RelayMessage::Raw(bytes)) = opener.open(&message, ("neighbor", &Cloud::Two.verifying()), now()) else { panic!("bytes") };
            answer.extend(bytes);
        }
        assert_eq!(answer, ANSWER);
    }
    assert_eq!(accepted.load(Relaxed), 3);
    assert_eq!((told(&two).state.as_str(), told(&two).numbered), ("open", Some(false)));
    serving.abort();
}
