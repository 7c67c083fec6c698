//! Between receive and send nothing is allocated: by any mechanism, for messages, subscriptions looked up, and signs of life.

#[path = "../../broker/tests/counting/mod.rs"]
mod counting;
#[path = "protocol/party.rs"]
#[allow(dead_code)]
mod party;

use std::sync::Arc;
use std::time::Duration;

use bodkin_zmtp::{ClientSecurity, Event, PlainCredentials, ServerSecurity, SocketType, SubscriptionLimits, Subscriptions};

use party::{Party, converse, pair};

/// What is taken from the allocator the second time: what is kept for good is allocated the first time.
fn allocations(mut work: impl FnMut()) -> u64 {
    work();
    counting::allocations(work)
}

/// One message there, cut in two, and a PING behind it; one back.
fn exchange(client: &mut Party, server: &mut Party) {
    let mut sender = client.connection.sender().expect("the handshake is over");
    sender.message(&[b"temperature", &[b'x'; 500]], &mut client.out);
    sender.ping(Duration::from_secs(1), b"ctx!", &mut client.out);
    let mut messages = 0;
    let (first, second) = client.out.split_at_mut(300);
    for input in [first, second] {
        let mut taken = 0;
        loop {
            let received = server.connection.receive(&mut input[taken..], &mut server.out).expect("a peer without fault");
            taken += received.taken;
            match received.event {
                None => break,
                Some(Event::Message(message)) => messages += message.split().map_or(0, |[_, payload]: [&[u8]; 2]| payload.len() / 500),
                Some(event) => assert!(matches!(event, Event::Ping { .. })),
            }
        }
    }
    assert_eq!(messages, 1);
    server.connection.sender().expect("the handshake is over").message(&[b"thanks"], &mut server.out);
    client.out.clear();
    server.out.clear();
}

#[test]
fn an_exchange_allocates_nothing() {
    let curve = || (ClientSecurity::Curve { own: pair(1), server: pair(2).public().clone() }, ServerSecurity::Curve(Arc::clone(&pair(2))));
    let plain = || (ClientSecurity::Plain(PlainCredentials::new(b"a", b"b").expect("short ones")), ServerSecurity::Plain);
    for (client, server) in [(ClientSecurity::Null, ServerSecurity::Null), plain(), curve()] {
        let mechanism = client.mechanism();
        let (mut client, mut server) = (Party::client(SocketType::Dealer, client), Party::server(server));
        converse(&mut client, &mut server);
        // The answer to the PING went out already; what the client was sent is not heard, so that its numbers stay in order.
        assert_eq!(allocations(|| exchange(&mut client, &mut server)), 0, "{mechanism}");
    }
}

#[test]
fn finding_subscribers_allocates_nothing() {
    let mut subscriptions = Subscriptions::new(SubscriptionLimits::default());
    for subscriber in 0..1000_u32 {
        for prefix in ["", "plant", "plant/line-7"] {
            subscriptions.subscribe(subscriber, prefix.as_bytes()).expect("within the limits");
        }
    }
    let mut found = Vec::new();
    assert_eq!(allocations(|| subscriptions.find(b"plant/line-7/temperature", &mut found)), 0);
    assert_eq!(found.len(), 1000);
}

/// The count itself counts.
#[test]
fn an_allocation_is_seen() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1; 10]))) > 0);
}
