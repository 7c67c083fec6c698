//! What one client may use of the relay, and what is left for others.

use super::*;

/// Names and counts of what was refused.
fn refusals(hub: &Hub) -> Vec<(String, &'static str, u64)> {
    hub.refusals().into_iter().map(|(client, limit, count)| (client.to_string(), limit.name(), count)).collect()
}

/// What a client was told when a channel was refused.
fn words(net: &mut Net, at: usize) -> Vec<String> {
    let words = |event| match event {
        Event::Over { refusal, .. } | Event::NotSent { refusal, .. } => Some(refusal.words),
        _ => None,
    };
    net.told(at).into_iter().filter_map(words).collect()
}

#[test]
fn client_beyond_connection_quota_leaves_connections_to_others() {
    let mut net = Net::new(HubLimits { connections_max: 4, client_connections_max: 2, ..HubLimits::default() }, 0);
    (0..6).for_each(|_| {
        net.join_as(7);
    });
    let told = |joined: &Joined| matches!(&joined.ended, Some(SessionFault::Refused(words)) if words.starts_with("client_connections_max"));
    assert_eq!(net.clients.iter().filter(|joined| told(joined)).count(), 4);
    assert_eq!(refusals(&net.hub), [("client 7".to_owned(), "client_connections_max", 4)]);
    let other = net.join_as(8);
    assert_eq!(net.clients[other].ended, None);
    let first = net.clients[0].id;
    net.hub.disconnect(first, net.now);
    let again = net.join_as(7);
    assert_eq!(net.clients[again].ended, None, "a closed connection frees its slot");
    assert_eq!((net.hub.counts().connections, net.hub.counts().clients), (3, 2));
}

#[test]
fn refused_connections_that_stay_take_no_slots() {
    let mut hub = Hub::new(HubLimits { connections_max: 4, client_connections_max: 2, ..HubLimits::default() });
    let greedy = || (ClientId([1; 32]), "greedy");
    let connected = (0..200).filter(|_| hub.connect(greedy().0, greedy().1, Duration::ZERO).is_some()).count();
    assert_eq!(connected, 2 + REFUSED_CONNECTIONS_MAX, "further ones are closed without being told why");
    let other = hub.connect(ClientId([2; 32]), "other", Duration::ZERO).expect("it has a slot");
    hub.receive(other, Frame::Greeting { newest: 1, oldest: 1 }, Duration::ZERO);
    assert_eq!(hub.take_out(other, &mut Vec::new()), Standing::Open);
    assert_consistent(&hub);
}

#[test]
fn client_beyond_destination_quota_leaves_names_to_others() {
    let limits = HubLimits { destinations_max: 8, client_destinations_max: 2, ..HubLimits::default() };
    let mut net = Net::new(limits, 2);
    for listener in 0..5 {
        net.listen(0, listener, &topic(&format!("t{listener}")));
    }
    let told = words(&mut net, 0);
    assert!(told.len() == 3 && told[0].starts_with("client_destinations_max: the key of your certificate"), "{told:?}");
    assert_eq!(refusals(&net.hub), [("client 0".to_owned(), "client_destinations_max", 3)]);
    net.listen(0, 9, &topic("t0"));
    assert!(net.told(0).contains(&Event::Listening(9)), "a name that it uses already costs no further one");
    net.listen(1, 1, &topic("t0"));
    net.listen(1, 2, &topic("own"));
    assert_eq!(words(&mut net, 1), Vec::<String>::new());
    assert_consistent(&net.hub);
}

#[test]
fn pending_message_keeps_its_name_in_the_quota() {
    let limits = HubLimits { client_destinations_max: 2, ..HubLimits::default() };
    let mut net = Net::new(limits, 2);
    for number in 0..3 {
        net.send(0, number, &queue(&format!("q{number}")), "x");
        // The channel is closed when it was idle for long; the message stays.
        net.now += Duration::from_secs(11);
        let _ = net.clients[0].client.beat(net.now);
        net.run();
    }
    assert_eq!((net.hub.counts().destinations, net.hub.counts().channels), (2, 0));
    assert_eq!(refusals(&net.hub), [("client 0".to_owned(), "client_destinations_max", 1)]);
    net.listen(1, 1, &queue("q0"));
    assert_eq!(net.take(1, 9), [(1, "x".to_owned())]);
    net.send(0, 9, &queue("q9"), "x");
    assert!(net.told(0).contains(&Event::Sent(9)), "a message that was received frees its name");
}

#[test]
fn client_beyond_channel_quota_is_refused_on_any_connection() {
    let mut net = Net::new(HubLimits { client_channels_max: 3, ..HubLimits::default() }, 0);
    let [first, second] = [net.join_as(0), net.join_as(0)];
    let other = net.join_as(1);
    for listener in 0..2 {
        net.listen(first, listener, &queue("a"));
        net.listen(second, listener, &queue("b"));
    }
    let told = words(&mut net, second);
    assert!(told.len() == 1 && told[0].starts_with("client_channels_max"), "{told:?}");
    net.listen(other, 1, &queue("a"));
    assert_eq!(words(&mut net, other), Vec::<String>::new());
}

#[test]
fn topic_listeners_have_a_quota_per_client() {
    let mut net = Net::new(HubLimits { client_topic_listeners_max: 2, ..HubLimits::default() }, 2);
    (0..3).for_each(|listener| net.listen(0, listener, &topic("t")));
    (3..6).for_each(|listener| net.listen(0, listener, &queue("q")));
    let told = words(&mut net, 0);
    assert!(told.len() == 1 && told[0].starts_with("client_topic_listeners_max"), "{told:?}");
    net.listen(1, 1, &topic("t"));
    net.send(1, 1, &topic("t"), "x");
    assert_eq!((net.take(0, 9).len(), net.take(1, 9).len()), (2, 1));
}

#[test]
fn client_with_its_pending_bytes_holds_up_nobody_else() {
    let piece = "x".repeat(60 * 1024);
    let limits = HubLimits { bytes_max: 4 * 1024 * 1024, client_bytes_max: 512 * 1024, ..HubLimits::default() };
    let mut net = Net::new(limits, 3);
    for number in 0..20 {
        net.send(0, number, &queue(&format!("unread{number}")), &piece);
    }
    let pending = net.hub.counts().waiting_bytes;
    assert!(pending <= 512 * 1024 && pending > 400 * 1024, "{pending}");
    // A refusal of a message that was sent is told at the next one to the same destination.
    for number in 20..40 {
        net.send(0, number, &queue(&format!("unread{}", number - 20)), "x");
    }
    let told = words(&mut net, 0);
    assert!(told.iter().any(|words| words.starts_with("client_bytes_max")), "{told:?}");
    assert_eq!(refusals(&net.hub)[0].1, "client_bytes_max");
    net.listen(2, 1, &queue("read"));
    for number in 0..30 {
        net.send(1, number, &queue("read"), &piece);
        assert_eq!(net.take(2, 9).len(), 1, "message {number} of another client");
    }
    assert_consistent(&net.hub);
}

#[test]
fn client_over_half_quota_waits_at_unread_queues() {
    let piece = "x".repeat(60 * 1024);
    let limits = HubLimits { client_bytes_max: 1024 * 1024, ..HubLimits::default() };
    let mut net = Net::new(limits, 3);
    for (number, name) in (0..).zip(["a", "b", "c"].iter().cycle().take(30)) {
        net.send(0, number, &queue(name), &piece);
    }
    let sent = net.told(0).iter().filter(|event| matches!(event, Event::Sent(_))).count();
    assert!((10..18).contains(&sent), "each queue has one window: {sent}");
    assert_eq!(refusals(&net.hub), []);
    net.listen(1, 1, &queue("read"));
    for number in 100..120 {
        net.send(0, number, &queue("read"), &piece);
        assert_eq!(net.take(1, 9).len(), 1, "a queue that is read continues: message {number}");
    }
    net.listen(2, 1, &queue("a"));
    net.listen(2, 2, &queue("b"));
    net.listen(2, 3, &queue("c"));
    assert_eq!(net.take(2, 99).len(), 30, "everything arrives once it is read");
    assert_eq!((net.hub.counts().waiting_bytes, net.hub.counts().clients_suspended), (0, 0));
    assert_consistent(&net.hub);
}

#[test]
fn suspended_client_is_counted_until_it_continues() {
    let piece = "x".repeat(60 * 1024);
    let mut net = Net::new(HubLimits { client_bytes_max: 400 * 1024, ..HubLimits::default() }, 2);
    net.listen(1, 1, &queue("q"));
    (0..20).for_each(|number| net.send(0, number, &queue("q"), &piece));
    let mut most = 0;
    for _ in 0..20 {
        assert_eq!(net.take(1, 1).len(), 1);
        most = most.max(net.hub.counts().clients_suspended);
    }
    assert_eq!((most, net.hub.counts().clients_suspended), (1, 0));
}

#[test]
fn empty_messages_count_as_pending_bytes() {
    let mut net = Net::new(HubLimits { client_bytes_max: 64 * 100, ..HubLimits::default() }, 2);
    net.listen(1, 1, &topic("t"));
    net.clients[1].client.leave(1);
    (0..200).for_each(|number| net.send(0, number, &queue("q"), ""));
    assert_eq!((net.hub.counts().waiting_bytes, net.hub.counts().messages_in), (64 * 100, 101));
    assert_consistent(&net.hub);
}

#[test]
fn backlog_counts_for_the_listener_that_is_slow() {
    let limits = HubLimits { client_bytes_max: 100 * 1024, ..HubLimits::default() };
    let mut hub = Hub::new(limits);
    let [sender, slow] = [0, 1].map(|number| connect(&mut hub, number, Duration::ZERO));
    for id in [sender, slow] {
        hub.receive(id, Frame::Greeting { newest: 1, oldest: 1 }, Duration::ZERO);
    }
    for channel in 1..=4 {
        hub.receive(slow, Frame::Open { channel: Channel(channel), role: Role::Listen, destination: topic("t") }, Duration::ZERO);
    }
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: topic("t") }, Duration::ZERO);
    for _ in 0..3 {
        hub.receive(sender, Frame::Message { channel: Channel(1), bytes: &[0; 20 * 1024] }, Duration::ZERO);
    }
    assert_eq!((hub.counts().backlog_lost, refusals(&hub)), (8, vec![("client 1".to_owned(), "client_bytes_max", 8)]));
    assert!(hub.counts().waiting_bytes <= 100 * 1024);
    assert_consistent(&hub);
}

#[test]
fn message_that_waits_for_listeners_counts_for_its_sender() {
    const NOW: Duration = Duration::ZERO;
    let mut hub = Hub::new(HubLimits { client_bytes_max: 2 * 1064, client_topic_listeners_max: 100, ..HubLimits::default() });
    let [sender, listening] = [0, 1].map(|number| connect(&mut hub, number, NOW));
    for id in [sender, listening] {
        hub.receive(id, Frame::Greeting { newest: 1, oldest: 1 }, NOW);
    }
    for (channel, destination) in (1..=101).map(|channel| (channel, topic(if channel <= 100 { "wide" } else { "small" }))) {
        hub.receive(listening, Frame::Open { channel: Channel(channel), role: Role::Listen, destination }, NOW);
        hub.receive(listening, Frame::Credit { channel: Channel(channel), bytes: u32::MAX }, NOW);
    }
    for (channel, name) in [(1, "wide"), (2, "small")] {
        hub.receive(sender, Frame::Open { channel: Channel(channel), role: Role::Send, destination: topic(name) }, NOW);
    }
    // The first call gives a message to 64 listeners.
    for _ in 0..4 {
        hub.receive(sender, Frame::Message { channel: Channel(1), bytes: &[0; 1000] }, NOW);
        assert_consistent(&hub);
    }
    assert_eq!(refusals(&hub), [("client 0".to_owned(), "client_bytes_max", 1)]);
    let before = hub.counts().messages_out;
    hub.receive(sender, Frame::Message { channel: Channel(2), bytes: &[0; 1000] }, NOW);
    assert_eq!(hub.counts().messages_out, before + 1, "a message to few listeners does not wait");
    while hub.work(NOW) {}
    assert_eq!((hub.counts().messages_out, hub.counts().waiting_bytes), (3 * 100 + 1, 0));
    assert_consistent(&hub);
}
