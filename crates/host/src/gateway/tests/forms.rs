//! In which form numbered messages go: bytes where the relay carries them and the other gateway takes them, texts to everybody else.

use bodkin_relay::tunnel::Frame;
use bodkin_trust::{Direction, TunnelKey, TunnelSecret};

use super::*;
use crate::relay::{Message, Messages};

fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

async fn text(messages: &mut Messages) -> String {
    match timeout(SOON, messages.next()).await.expect("soon") {
        Ok(Heard::Message(text)) => text,
        other => panic!("a text expected, {other:?} heard"),
    }
}

/// The next frame, which has to come as a text.
async fn frame(messages: &mut Messages, key: &TunnelKey) -> Frame {
    let (_, frame) = key.open(&text(messages).await).expect("it is of this session");
    Frame::read(&frame).expect("a frame")
}

#[tokio::test]
async fn a_tunnel_speaks_in_bytes_where_the_relay_carries_them_and_in_texts_at_a_broker() {
    for (relay, in_bytes) in [(MemoryRelay::new("relay.example"), true), (MemoryRelay::of_texts("broker.example"), false)] {
        let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
        let port = one.tunnel_to(&two, mirror().await).await;
        let said: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let expected: Vec<u8> = said.iter().rev().copied().collect();
        assert!(mirrored(port, &said).await == expected);
        for direction in ["REQ-", "RESP-"] {
            let sent = relay.sent();
            let of_it = sent.iter().filter(|(to, _)| to.name().starts_with(direction) && !to.name().ends_with("-CONTROL"));
            let (bytes, texts): (Vec<_>, Vec<_>) = of_it.partition(|(_, message)| matches!(message, Message::Bytes(_)));
            assert_eq!(!bytes.is_empty(), in_bytes, "{direction}: {} and {}", bytes.len(), texts.len());
            // The opening one way; the other way what may be said before anything is heard in bytes.
            assert!(!in_bytes || texts.len() <= 1, "{direction}: {} texts", texts.len());
        }
    }
}

/// A provider's gateway that has drawn an id of a numbered tunnel, as those did that knew texts only.
#[tokio::test]
async fn a_providers_gateway_that_knows_texts_only_is_sent_texts() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::patient(Cloud::One, &relay);
    let (peer_name, queue_id) = (Cloud::Two.name(), SessionId::of_numbered_tunnel([7; 48]));
    let mut asked = relay.listen(&queue(&queue_id.request_queue(&peer_name))).await.unwrap();
    let opened = OpenedTunnel { queue_id: queue_id.clone(), peer_name, key: Cloud::Two.key() };
    let port = one.gateway.connect_consumer(request::consumer(&opened, 9000)).await.unwrap();
    let mut consumer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    consumer.write_all(b"question").await.unwrap();
    let opener = MessageOpener::new(Cloud::Two.gateway().key()).unwrap();
    let opening = opener.open(&text(&mut asked).await, ("neighbor", &Cloud::One.verifying()), now()).unwrap();
    let RelayMessage::Tunnel { bytes, .. } = opening else { panic!("{opening:?}") };
    let (secret, _) = TunnelSecret::read(&bytes).unwrap();
    let key = secret.key(&queue_id, Direction::ToProvider);
    assert_eq!(frame(&mut asked, &key).await, Frame::Connect(1));
    assert_eq!(frame(&mut asked, &key).await, Frame::Bytes(1, b"question".to_vec()));
}

/// A consumer's gateway that says texts only.
#[tokio::test]
async fn a_consumers_gateway_that_knows_texts_only_is_answered_in_texts() {
    let relay = MemoryRelay::new("relay.example");
    let two = Side::patient(Cloud::Two, &relay);
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let opened = two.open_for(Cloud::One, provider.local_addr().unwrap().port()).await;
    let asked = queue(&opened.queue_id.request_queue(&opened.peer_name));
    let mut answers = relay.listen(&queue(&opened.queue_id.response_queue(&opened.peer_name))).await.unwrap();
    let secret = TunnelSecret::draw();
    let [sealing, opening] = [Direction::ToProvider, Direction::ToConsumer].map(|direction| secret.key(&opened.queue_id, direction));
    let sealer = MessageSealer::new(Cloud::One.gateway().key()).unwrap();
    let first = RelayMessage::Tunnel { session: opened.queue_id.clone(), bytes: secret.opening(60_000) };
    relay.send(&asked, sealer.seal(&first, &Cloud::Two.sealing(), now()).unwrap()).await.unwrap();
    for (number, said) in [(0, Frame::Connect(1)), (1, Frame::Bytes(1, b"question".to_vec()))] {
        relay.send(&asked, sealing.seal(number, &said.write())).await.unwrap();
    }
    assert!(matches!(frame(&mut answers, &opening).await, Frame::Ready(_)));
    let (mut at_provider, _) = timeout(SOON, provider.accept()).await.expect("soon").unwrap();
    let mut question = [0; 8];
    timeout(SOON, at_provider.read_exact(&mut question)).await.expect("soon").unwrap();
    at_provider.write_all(b"answer").await.unwrap();
    let answer = timeout(SOON, async {
        loop {
            if let Frame::Bytes(1, answer) = frame(&mut answers, &opening).await {
                return answer;
            }
        }
    });
    assert_eq!(answer.await.expect("soon"), b"answer");
}
