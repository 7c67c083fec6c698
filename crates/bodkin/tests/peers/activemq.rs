//! Messages through ActiveMQ 5.15.16, the broker of Arrowhead's Java clouds, and through its successor Artemis, to and from a JMS client beside it: what a relay of a Java cloud is to Bodkin.

use std::sync::Arc;
use std::time::Duration;

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_host::SecurityConfig;
use bodkin_host::destination::Destinations;
use bodkin_host::relay::{Destination, Dialer, Heard, LinkState, Messages, Protocol, Relay, RelayPlace, Relays};
use bodkin_host::security::Security;
use bodkin_trust::{TrustDirectory, base64};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::jms::{self, Peer, put_anchors, put_identity};
use crate::support::patience::PATIENCE;
use crate::support::secure::{anchor, authority, issue, put_trust};
use crate::support::skip;

/// Messages that a broker sends before one is taken.
const PREFETCH: usize = 8;
const MESSAGES: usize = 100;

async fn heard(messages: &mut Messages) -> Heard {
    timeout(PATIENCE, messages.next()).await.expect("something is heard soon").expect("it goes on")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn java_and_bodkin_hear_each_other_at_activemq() {
    hear_each_other("java_and_bodkin_hear_each_other_at_activemq", "activemq", Prefetch::Messages);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn java_and_bodkin_hear_each_other_at_artemis() {
    hear_each_other("java_and_bodkin_hear_each_other_at_artemis", "artemis", Prefetch::Bytes);
}

/// What a broker counts of what it sends before any of it is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefetch {
    /// As many messages as the subscription says.
    Messages,
    /// Bytes, of its own choice.
    Bytes,
}

fn hear_each_other(test: &str, project: &str, prefetch: Prefetch) {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match jms::build(project, place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note(test, &reason),
    };
    let day = Duration::from_secs(86_400);
    let broker = issue(&authority(), "relay.testcloud1.aitia.arrowhead.eu", &["localhost", "127.0.0.1"], bodkin_trust::tls::now(), day);
    put_identity(place.path(), "broker", &broker);
    put_anchors(place.path(), &[anchor()]);
    put_trust(&place.path().join("trust"));
    let config = SecurityConfig {
        directory: TrustDirectory::new(place.path().join("trust")),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    };
    let security = Security::open(config).expect("certificates");
    let peer = Peer::start(&class_path, place.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let key = base64::encode(broker.certificate().public_key_info());
    runtime.block_on(meet(peer, security, key.into(), prefetch));
}

async fn meet(mut peer: Peer, security: Arc<Security>, key: Arc<str>, prefetch: Prefetch) {
    let relays = Relays::new(Dialer::new(Destinations::new(&[]), security, CoreSystem::Authorization));
    let place = RelayPlace { address: "127.0.0.1".into(), port: peer.port(), secure: true, authentication_info: Some(key) };
    let relay: Arc<dyn Relay> = relays.link(&place);
    let queue = |name: &str| Destination::queue(name).expect("a name");
    let topic = Destination::topic("General-M5QTZXM9G9AnpPHWT6WennWu").expect("a name");

    // Java's call, by a topic, and our answer, by a queue.
    let mut calls = relay.listen(&topic).await.expect("it listens");
    assert_eq!(relay.state(), LinkState::Open(Protocol::Stomp), "a broker does not choose our protocol");
    let call = r#"{"senderCN":"gatekeeper.c.o.arrowhead.eu","sessionId":"eyJ.é:\n"}"#;
    assert_eq!(peer.ask(&format!("send topic {} {call}", topic.name())), "sent");
    assert_eq!(heard(&mut calls).await, Heard::Message(call.to_owned()));
    assert_eq!(peer.ask("listen queue RESP-a"), "listening");
    relay.send(&queue("RESP-a"), call.to_owned()).await.expect("it goes");
    assert_eq!(peer.line(), format!("heard RESP-a text {call}"), "it is a TextMessage");

    // Our call, and Java's answer, which was there before we listened.
    assert_eq!(peer.ask(&format!("listen topic {}", topic.name())), "listening");
    relay.send(&topic, "call".to_owned()).await.expect("it goes");
    assert_eq!(peer.line(), format!("heard {} text call", topic.name()));
    assert_eq!(peer.ask("send queue RESP-b answer"), "sent");
    let mut answers = relay.listen(&queue("RESP-b")).await.expect("it listens");
    assert_eq!(heard(&mut answers).await, Heard::Message("answer".to_owned()));

    if prefetch == Prefetch::Messages {
        who_takes_nothing_gets_no_more(&*relay, &mut peer).await;
    }

    // The broker goes and comes back.
    assert_eq!(peer.ask("stop"), "stopped");
    assert_eq!(peer.port(), place.port);
    assert_eq!(heard(&mut answers).await, Heard::Interrupted);
    // Behind it the relay knows of the listener.
    let _confirmed = relay.listen(&queue("RESP-c")).await.expect("it listens");
    assert_eq!(peer.ask("send queue RESP-b again"), "sent");
    assert_eq!(heard(&mut answers).await, Heard::Message("again".to_owned()));
}

/// Who takes nothing gets no more than was agreed: the rest is for others.
async fn who_takes_nothing_gets_no_more(relay: &dyn Relay, peer: &mut Peer) {
    let queue = Destination::queue("REQ-slow").expect("a name");
    let mut slow = relay.listen(&queue).await.expect("it listens");
    for number in 0..MESSAGES {
        assert_eq!(peer.ask(&format!("send queue REQ-slow {number}")), "sent");
    }
    peer.tell("listen queue REQ-slow");
    let others = (0..=MESSAGES - PREFETCH).map(|_| peer.line()).filter(|line| line.starts_with("heard REQ-slow text ")).count();
    assert_eq!(others, MESSAGES - PREFETCH);
    for number in 0..PREFETCH {
        assert_eq!(heard(&mut slow).await, Heard::Message(number.to_string()));
    }
}
