//! Clouds that share no authority meet at a relay on this machine, over TLS.

use std::time::Duration;

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_relay::{
    Destination,
    native::{Frame, WINDOW_BYTES, write},
};
use bodkin_trust::{Authority, Profile, base64, tls};
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};
use tokio::time::timeout;

use super::{
    super::{
        Heard, LinkState, Protocol, RelayError, RelayPlace,
        lab::{Cloud, Lab, SOON, heard, message, until},
    },
    *,
};
use crate::{async_channel::AsyncChannel, relay::Guests};

mod quota;

fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clouds_meet_at_a_relay_that_is_neithers() {
    let mut lab = Lab::new(HubLimits::default());
    let relays = lab.clouds.each_ref().map(Cloud::relays);
    let [one, two] = relays.each_ref().map(|relays| relays.link(&lab.place()));
    let (topic, question, answer) = (Destination::topic("General").unwrap(), queue("REQ-two-1"), queue("RESP-two-1"));
    let mut calls = two.listen(&topic).await.unwrap();
    let mut answers = one.listen(&answer).await.unwrap();
    one.send(&topic, "call".into()).await.unwrap();
    assert_eq!(message(&mut calls).await, "call");
    let mut questions = two.listen(&question).await.unwrap();
    two.send(&answer, "ack".into()).await.unwrap();
    assert_eq!(message(&mut answers).await, "ack");
    one.send(&question, "question".into()).await.unwrap();
    assert_eq!(message(&mut questions).await, "question");
    two.send(&answer, "answer".into()).await.unwrap();
    assert_eq!(message(&mut answers).await, "answer");
    one.remove(&question).await.unwrap();
    assert_eq!(heard(&mut questions).await, Err(RelayError::Removed(question.clone())));
    assert_eq!(heard(&mut questions).await, Err(RelayError::Removed(question)), "and again");
    assert_eq!(one.state(), LinkState::Open(Protocol::Native));
    let counts = lab.server().counts();
    assert_eq!((counts.hub.connections, counts.hub.messages_in, counts.hub.messages_out, counts.hub.waiting_bytes), (2, 4, 4, 0));

    relays[0].keep(|_| false);
    until("the link ends", || one.state() == LinkState::Ended).await;
    assert!(matches!(one.send(&topic, "late".into()).await, Err(RelayError::Ended(_))));
    assert!(matches!(heard(&mut answers).await, Err(RelayError::Ended(_))));
    until("the relay notices", || lab.server().counts().hub.connections == 1).await;
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_stops_holds_up_its_own_sender_only() {
    let lab = Lab::new(HubLimits { queue_bytes_max: u64::from(WINDOW_BYTES), ..HubLimits::default() });
    let relays = lab.clouds.each_ref().map(Cloud::relays);
    let [one, two] = relays.each_ref().map(|relays| relays.link(&lab.place()));
    let (slow, fast) = (queue("slow"), queue("fast"));
    let (mut of_slow, mut of_fast) = (two.listen(&slow).await.unwrap(), two.listen(&fast).await.unwrap());
    let piece = "x".repeat(100_000);
    let mut sent = 0;
    // The listener's window, the queue's, and what the last message of each may be longer: then nothing more goes.
    while timeout(Duration::from_millis(500), one.send(&slow, piece.clone())).await.is_ok_and(|sent| sent.is_ok()) {
        sent += 1;
        assert!(sent < 20, "nobody holds it up");
    }
    assert!(sent >= 5, "{sent}");
    for number in 0..50 {
        one.send(&fast, number.to_string()).await.unwrap();
        assert_eq!(message(&mut of_fast).await, number.to_string());
    }
    for _ in 0..sent {
        assert_eq!(message(&mut of_slow).await.len(), piece.len());
    }
    one.send(&slow, "end".into()).await.unwrap();
    assert_eq!(message(&mut of_slow).await, "end", "what was given up has not gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_comes_back_is_connected_to_and_listened_at_again() {
    let mut lab = Lab::new(HubLimits::default());
    let relays = lab.clouds.each_ref().map(Cloud::relays);
    let [one, two] = relays.each_ref().map(|relays| relays.link(&lab.place()));
    let topic = Destination::topic("General").unwrap();
    let mut calls = two.listen(&topic).await.unwrap();
    one.send(&topic, "before".into()).await.unwrap();
    assert_eq!(message(&mut calls).await, "before");
    lab.stop().await;
    until("both notice", || [&one, &two].iter().all(|relay| matches!(relay.state(), LinkState::Down(_)))).await;
    let refused = timeout(SOON, one.send(&topic, "nowhere".into())).await.expect("it fails soon");
    assert!(matches!(&refused, Err(RelayError::Down { .. })), "{refused:?}");
    lab.come_back();
    // Whoever listens is heard again within a pause, and whoever sends does not wait for it.
    assert_eq!(heard(&mut calls).await, Ok(Heard::Interrupted));
    let mut number = 0;
    let came = loop {
        // The relay knows of the listener some time behind its connection.
        timeout(SOON, one.send(&topic, number.to_string())).await.expect("it goes soon").unwrap();
        match timeout(Duration::from_millis(50), calls.next()).await {
            Ok(came) => break came,
            Err(_) => number += 1,
        }
        assert!(number < 200, "nothing is heard any more");
    };
    assert!(matches!(came, Ok(Heard::Message(_))), "{came:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_no_guest_is_refused_and_who_is_none_any_more_is_closed() {
    let lab = Lab::new(HubLimits::default());
    let strangers = Cloud::new("three").relays();
    let stranger = strangers.link(&lab.place());
    let refused = timeout(SOON, stranger.listen(&queue("q"))).await.expect("it is told soon");
    assert!(matches!(&refused, Err(RelayError::Down { .. })), "{:?}", refused.err());
    until("it is counted", || lab.server().counts().refused >= 1).await;

    let relays = lab.clouds[0].relays();
    let other_key = RelayPlace { authentication_info: Some(base64::encode(&lab.clouds[1].key()).into()), ..lab.place() };
    let refused = timeout(SOON, relays.link(&other_key).listen(&queue("q"))).await.expect("it is told soon");
    let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("another system"), "a relay with another key is not spoken to: {told}");

    let guest = relays.link(&lab.place());
    let _listens = guest.listen(&queue("q")).await.unwrap();
    let left = Guests { authorities: vec![lab.clouds[1].authority.clone()], ..Guests::default() };
    lab.admission.replace(&lab.relay.gatekeeper, left).unwrap();
    until("it is closed", || matches!(guest.state(), LinkState::Down(_))).await;
    let relays = lab.clouds[1].relays();
    assert!(relays.link(&lab.place()).listen(&queue("q")).await.is_ok(), "by its authority");
}

/// A connection that says what it likes behind the handshake.
async fn raw(lab: &Lab, config: Arc<ClientConfig>) -> AsyncChannel {
    let stream = TcpStream::connect(lab.address).await.unwrap();
    let session = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut channel = Channel::tls(Socket(stream), Box::new(session.into()));
    channel.handshake().await.unwrap();
    channel
}

/// Everything that is said until the relay closes, which is soon.
async fn last_words(channel: &mut AsyncChannel) -> Vec<u8> {
    let mut said = Vec::new();
    let reading = async {
        let mut space = [0; 4096];
        loop {
            match channel.read(&mut space) {
                Ok(0) => return,
                Ok(bytes) => said.extend_from_slice(&space[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => channel.readable().await.unwrap(),
                Err(_) => return,
            }
        }
    };
    timeout(SOON, reading).await.expect("it closes soon");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_frames_end_their_connection_and_no_other() {
    let lab = Lab::new(HubLimits::default());
    let relays = lab.clouds[1].relays();
    let other = relays.link(&lab.place());
    let mut messages = other.listen(&queue("q")).await.unwrap();
    let greeting = |version| {
        let mut bytes = Vec::new();
        write(&Frame::Greeting { newest: version, oldest: version }, &mut bytes);
        bytes
    };
    let hello = greeting(1);
    let oversized = [hello.clone(), vec![0xff; 4]].concat();
    let cut = [hello.clone(), vec![0, 0, 0, 4, 4, 0, 0, 0]].concat();
    for (bytes, expected) in [
        (b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n".to_vec(), "a frame of at most"),
        (oversized, "a frame of at most"),
        (cut, "the frame ends within"),
        (greeting(3), "the relay speaks version 1"),
    ] {
        let mut channel = raw(&lab, lab.clouds[0].tls(&lab.relay.key())).await;
        channel.write_all(&bytes).await.unwrap();
        let said = last_words(&mut channel).await;
        assert!(String::from_utf8_lossy(&said).contains(expected), "{:?}", String::from_utf8_lossy(&said));
    }
    // Whoever goes in the middle of a message leaves nothing behind.
    let mut channel = raw(&lab, lab.clouds[0].tls(&lab.relay.key())).await;
    channel.write_all(&[hello, vec![0, 0x10, 0, 0, 4, 0]].concat()).await.unwrap();
    drop(channel);
    other.send(&queue("q"), "still here".into()).await.unwrap();
    assert_eq!(message(&mut messages).await, "still here");
    until("only the other one is left", || lab.server().counts().hub.connections == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_say_what_it_speaks_is_closed() {
    let lab = Lab::new(HubLimits::default());
    let mut config = Arc::unwrap_or_clone(lab.clouds[0].tls(&lab.relay.key()));
    config.alpn_protocols.clear();
    let mut channel = raw(&lab, Arc::new(config)).await;
    assert_eq!(last_words(&mut channel).await, b"");
    until("it is counted", || lab.server().counts().refused == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_as_long_as_may_be_passes_and_a_longer_one_is_not_sent() {
    let lab = Lab::new(HubLimits::default());
    let relays = lab.clouds.each_ref().map(Cloud::relays);
    let [one, two] = relays.each_ref().map(|relays| relays.link(&lab.place()));
    let mut messages = two.listen(&queue("q")).await.unwrap();
    let longest = "é".repeat(super::super::MESSAGE_BYTES_MAX / 2);
    for _ in 0..3 {
        one.send(&queue("q"), longest.clone()).await.unwrap();
        assert!(message(&mut messages).await == longest);
    }
    assert_eq!(one.send(&queue("q"), longest + "x").await, Err(RelayError::TooLong(super::super::MESSAGE_BYTES_MAX + 1)));
    assert_eq!(one.send(&queue("q"), "a\0b".into()).await, Err(RelayError::ZeroByte));
}
