//! A gateway that gives up connections sooner than their provider is reached: what it leaves is bounded, and ends.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bodkin_arrowhead::{name::SystemName, system::SystemReference};
use bodkin_relay::tunnel::{CONNECTIONS_HELD_MAX, Frame};
use bodkin_trust::{Direction, TunnelSecret};

use super::*;
use crate::gateway::{End, EndError, Ends, ends::Waited};

/// Connections that are begun and given up.
const GIVEN_UP: u32 = 100;

/// Whoever is to be reached never answers.
#[derive(Clone, Default)]
struct Silent {
    waiting: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// One that waits for its provider.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Ends for Silent {
    fn welcome<'a>(&'a self, _: TcpStream, _: SocketAddr, _: &'a SystemName) -> Waited<'a, Result<End, EndError>> {
        Box::pin(std::future::pending())
    }

    fn reach<'a>(&'a self, _: &'a SystemReference, _: &'a SystemName, _: Duration) -> Waited<'a, Result<End, EndError>> {
        let waiting = self.waiting.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(waiting, SeqCst);
        let waits = Waiting(self.waiting.clone());
        Box::pin(async move {
            let _waits = waits;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn connections_that_are_given_up_before_their_provider_is_reached_leave_nothing() {
    let (relay, silent) = (MemoryRelay::new("relay.example"), Silent::default());
    let two = Side::with_ends(Cloud::Two, &relay, SOON, Box::new(silent.clone()));
    let opened = two.open_for(Cloud::One, 9000).await;
    let asked = Destination::queue(&opened.queue_id.request_queue(&opened.peer_name)).unwrap();
    let secret = TunnelSecret::draw();
    let sealing = secret.key(&opened.queue_id, Direction::ToProvider);
    let sealer = MessageSealer::new(Cloud::One.gateway().key()).unwrap();
    let first = RelayMessage::Tunnel { session: opened.queue_id.clone(), bytes: secret.opening(600_000) };
    relay.send(&asked, sealer.seal(&first, &Cloud::Two.sealing(), now()).unwrap()).await.unwrap();
    let given_up = |connection| {
        let piece = vec![7; 10_000];
        [Frame::Connect(connection), Frame::Bytes(connection, piece), Frame::Reset(connection, "the consumer is gone".into())]
    };
    let mut numbers = 0..;
    let mut say = async |frames: Vec<Frame>| {
        for (frame, number) in frames.into_iter().zip(&mut numbers) {
            relay.send(&asked, sealing.seal(number, &frame.write())).await.unwrap();
        }
    };
    say(given_up(1).into()).await;
    let (waiting, most) = (|| silent.waiting.load(SeqCst), || silent.most.load(SeqCst));
    until("nobody waits for a provider that nobody wants any more", || most() == 1 && waiting() == 0).await;
    say((2..=GIVEN_UP).flat_map(given_up).chain([Frame::Close("it was enough".into())]).collect()).await;
    until("everything was heard", || told(&two).state == "closed" && waiting() == 0).await;
    assert!(most() <= CONNECTIONS_HELD_MAX, "{} were waited for at the same time", most());
}
