//! What ends a session and what does not: providers that end their connections before anybody has asked them to, and without numbers a relay that breaks off.

use bodkin_relay::tunnel::Control;

use super::*;
use crate::relay::Messages;

const GET: &[u8] = b"GET /heat HTTP/1.1\r\nHost: h\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n23.5";
const LAST_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n23.5";
const ANSWER_OF_NO_LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n23.5";

/// A provider that says this to the first request of each connection, and then ends it; and the connections that it has had.
async fn impatient(answer: &'static [u8]) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(0)));
    let counted = connections.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Relaxed);
            if stream.read_exact(&mut vec![0; GET.len()]).await.is_ok() {
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        }
    });
    (port, connections)
}

/// A consumer's gateway of upstream's.
struct Upstream {
    relay: MemoryRelay,
    opened: OpenedTunnel,
    heard: Messages,
    control: Messages,
}

impl Upstream {
    async fn enter(relay: &MemoryRelay, provider: &Side, port: u16) -> Self {
        let opened = provider.open_for(Cloud::One, port).await;
        let queue = |name: String| Destination::queue(&name).unwrap();
        let answers = opened.queue_id.response_queue(&opened.peer_name);
        let control = relay.listen(&queue(format!("{answers}-CONTROL"))).await.unwrap();
        Self { relay: relay.clone(), heard: relay.listen(&queue(answers)).await.unwrap(), control, opened }
    }

    async fn ask(&self) {
        let sealer = MessageSealer::new(Cloud::One.gateway().key()).unwrap();
        let asked = Destination::queue(&self.opened.queue_id.request_queue(&self.opened.peer_name)).unwrap();
        let message = sealer.seal(&RelayMessage::Raw(GET.to_vec()), &Cloud::Two.sealing(), now()).unwrap();
        self.relay.send(&asked, message).await.unwrap();
    }

    async fn hears(&mut self, expected: &[u8]) {
        let opener = MessageOpener::new(Cloud::One.gateway().key()).unwrap();
        let mut answer = Vec::new();
        while answer.len() < expected.len() {
            let Ok(Heard::Message(message)) = timeout(SOON, self.heard.next()).await.expect("soon") else { panic!("a message") };
            let Ok(RelayMessage::Raw(bytes)) = opener.open(&message, ("neighbor", &Cloud::Two.verifying()), now()) else { panic!("bytes") };
            answer.extend(bytes);
        }
        assert_eq!(answer, expected);
    }

    async fn is_told_of_the_end(&mut self) {
        let word = loop {
            match timeout(SOON, self.control.next()).await.expect("soon") {
                Ok(Heard::Message(word)) => break word,
                Ok(Heard::Interrupted) => {}
                other => panic!("a word expected, {other:?} heard"),
            }
        };
        assert_eq!(word, Control::Close.of(self.opened.queue_id.as_str()));
    }
}

#[tokio::test]
async fn without_numbers_a_silence_is_held_while_the_connection_is_there() {
    let relay = MemoryRelay::new("relay.example");
    let two = Side::new(Cloud::Two, &relay);
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut one = Upstream::enter(&relay, &two, provider.local_addr().unwrap().port()).await;
    one.ask().await;
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    until("longer than a session waits that nobody uses", || told(&two).started_at < now().minus(IDLE * 2)).await;
    assert_eq!((told(&two).state.as_str(), told(&two).connections), ("open", 1));
    at_provider.write_all(ANSWER).await.unwrap();
    one.hears(ANSWER).await;
}

#[tokio::test]
async fn without_numbers_a_session_outlives_the_connections_that_its_provider_ends_behind_an_answer() {
    for (answer, is_announced) in [(ANSWER, false), (LAST_ANSWER, true)] {
        let relay = MemoryRelay::new("relay.example");
        let two = Side::patient(Cloud::Two, &relay);
        let (port, connections) = impatient(answer).await;
        let mut upstream = Upstream::enter(&relay, &two, port).await;
        for asked in 1..=5 {
            upstream.ask().await;
            upstream.hears(answer).await;
            assert_eq!(connections.load(Relaxed), asked);
            if !is_announced {
                // Whoever asks while the connection is ending asks nobody.
                until("the connection has ended", || told(&two).connections == 0).await;
            }
            assert_eq!((told(&two).state.as_str(), told(&two).numbered), ("open", Some(false)));
        }
    }
}

#[tokio::test]
async fn without_numbers_the_end_of_a_connection_that_owes_an_answer_or_ends_one_is_the_sessions() {
    for answer in [&b""[..], &ANSWER[..ANSWER.len() - 1], ANSWER_OF_NO_LENGTH] {
        let relay = MemoryRelay::new("relay.example");
        let two = Side::patient(Cloud::Two, &relay);
        let (port, _) = impatient(answer).await;
        let mut upstream = Upstream::enter(&relay, &two, port).await;
        upstream.ask().await;
        upstream.hears(answer).await;
        upstream.is_told_of_the_end().await;
        until("the session is over", || two.gateway.count() == 0).await;
        assert!(told(&two).reason.is_some_and(|reason| reason.contains("the connection has ended")), "{:?}", told(&two));
    }
}

#[tokio::test]
async fn with_numbers_a_connection_that_its_provider_ends_is_the_consumers_and_the_session_goes_on() {
    for (relay, answer) in [(MemoryRelay::new("relay.example"), ANSWER), (MemoryRelay::of_texts("broker.example"), ANSWER_OF_NO_LENGTH)] {
        let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
        let (provider, connections) = impatient(answer).await;
        let port = one.tunnel_to(&two, provider).await;
        for asked in 1..=3 {
            let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            consumer.write_all(GET).await.unwrap();
            let mut heard = Vec::new();
            timeout(SOON, consumer.read_to_end(&mut heard)).await.expect("the provider's end comes soon").unwrap();
            assert_eq!((heard.as_slice(), connections.load(Relaxed)), (answer, asked));
            drop(consumer);
            until("the connection has ended", || told(&one).connections == 0 && told(&two).connections == 0).await;
            assert_eq!((told(&one).state.as_str(), told(&one).numbered), ("open", Some(true)));
        }
        assert_eq!((one.gateway.count(), two.gateway.count()), (1, 1));
    }
}

#[tokio::test]
async fn without_numbers_a_relay_that_breaks_off_ends_the_session_that_is_in_use_and_no_other() {
    let relay = MemoryRelay::new("relay.example");
    let two = Side::patient(Cloud::Two, &relay);
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut upstream = Upstream::enter(&relay, &two, provider.local_addr().unwrap().port()).await;
    let break_off = || {
        relay.set_down(true);
        relay.set_down(false);
    };
    break_off();
    until("the unused session knows", || told(&two).interruptions == 1).await;
    upstream.ask().await;
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    timeout(SOON, at_provider.read_exact(&mut vec![0; GET.len()])).await.expect("soon").unwrap();
    assert_eq!((told(&two).state.as_str(), told(&two).connections), ("open", 1));
    break_off();
    // What was on its way is lost, and nobody can tell how much.
    assert!(ends(&mut at_provider).await, "the provider is told");
    upstream.is_told_of_the_end().await;
    until("the session is over", || two.gateway.count() == 0).await;
    assert!(told(&two).reason.is_some_and(|reason| reason.contains("bytes may be missing")), "{:?}", told(&two));
}
