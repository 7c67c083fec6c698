//! Messages that have no use in a session.

use super::*;
use crate::gatekeeper::STRAY_MESSAGES_MAX;

/// A tunnel that a neighbor's gateway has asked for and not entered, with what seals messages for it.
struct Unentered {
    asked: Destination,
    sealer: MessageSealer,
}

impl Unentered {
    async fn open(provider: &Side) -> Self {
        let opened = provider.open_for(Cloud::One, mirror().await).await;
        let asked = Destination::queue(&opened.queue_id.request_queue(&opened.peer_name)).unwrap();
        Self { asked, sealer: MessageSealer::new(Cloud::One.gateway().key()).unwrap() }
    }

    /// Sends a message that the neighbor has signed, and that has no use in a tunnel.
    async fn send_useless(&self, relay: &MemoryRelay) {
        let session = SessionId::parse(&"aB3".repeat(16)).unwrap();
        let useless = RelayMessage::Unknown { subject: "x".into(), session, json: "{}".into() };
        relay.send(&self.asked, self.sealer.seal(&useless, &Cloud::Two.sealing(), now()).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn session_ends_after_sixteen_strays() {
    let relay = MemoryRelay::new("relay.example");
    let two = Side::patient(Cloud::Two, &relay);
    let tunnel = Unentered::open(&two).await;
    for _ in 1..STRAY_MESSAGES_MAX {
        tunnel.send_useless(&relay).await;
    }
    until("the strays are counted", || two.gateway.counts.strays.load(Relaxed) == STRAY_MESSAGES_MAX as u64 - 1).await;
    assert_eq!(two.gateway.count(), 1);
    tunnel.send_useless(&relay).await;
    until("the session is over", || two.gateway.count() == 0).await;
    assert_eq!(told(&two).reason.as_deref(), Some("16 messages in a row were forged, of another session, or without use"));
}

#[tokio::test]
async fn redelivered_messages_do_not_end_a_session() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::patient(Cloud::One, &relay), Side::patient(Cloud::Two, &relay));
    let port = one.tunnel_to(&two, mirror().await).await;
    assert_eq!(mirrored(port, b"abc").await, b"cba");
    let numbered: Vec<_> = relay.sent().into_iter().filter(|(queue, _)| queue.name().starts_with("RESP-")).collect();
    let redelivered = 4 * STRAY_MESSAGES_MAX;
    for (queue, message) in numbered.iter().cycle().take(redelivered) {
        relay.repeat(queue, message.clone());
    }
    until("the duplicates are counted", || one.gateway.counts.strays.load(Relaxed) >= redelivered as u64).await;
    assert_eq!(mirrored(port, b"def").await, b"fed");
}
