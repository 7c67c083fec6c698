//! How much work each call of the relay does.

use super::*;

const HELLO: Frame<'static> = Frame::Greeting { newest: 1, oldest: 1 };
const NOW: Duration = Duration::from_secs(1000);

/// Limits under which one client may open many ends at one destination.
fn wide() -> HubLimits {
    let max = usize::MAX;
    HubLimits { client_channels_max: max, client_destinations_max: max, client_topic_listeners_max: max, ..HubLimits::default() }
}

/// A hub with a client that has this many ends, and one that has none.
fn with_ends(count: u32, role: Role, destination: &Destination) -> (Hub, [ConnectionId; 2]) {
    let mut hub = Hub::new(wide());
    let ids = [0, 1].map(|number| connect(&mut hub, number, NOW));
    ids.iter().for_each(|id| hub.receive(*id, HELLO, NOW));
    for channel in 1..=count {
        let destination = destination.clone();
        hub.receive(ids[0], Frame::Open { channel: Channel(channel), role, destination }, NOW);
        // The client reads.
        hub.take_out(ids[0], &mut Vec::new());
    }
    while hub.work(NOW) {}
    (hub, ids)
}

/// Does pending work to its end. Returns the turns, and the steps of the longest.
fn work_through(hub: &mut Hub) -> (u64, u64) {
    let (mut turns, mut longest) = (0, 0);
    while hub.has_work() {
        let before = hub.steps;
        hub.work(NOW);
        (turns, longest) = (turns + 1, longest.max(hub.steps - before));
    }
    (turns, longest)
}

fn kinds_of_ends() -> [(Role, Destination); 4] {
    [(Role::Listen, topic("t")), (Role::Listen, queue("q")), (Role::Send, topic("t")), (Role::Send, queue("q"))]
}

#[test]
fn closing_cost_is_proportional_to_ends() {
    for (role, destination) in kinds_of_ends() {
        let steps = [1_000, 16_000].map(|count| {
            let (mut hub, [closing, _]) = with_ends(count, role, &destination);
            let before = hub.steps;
            hub.disconnect(closing, NOW);
            assert!(hub.steps - before <= 1, "{role:?} {destination}: nothing is released within the call");
            work_through(&mut hub);
            assert_eq!(hub.counts().channels, 0);
            assert_consistent(&hub);
            hub.steps - before
        });
        assert!(steps[0] >= 1_000 && steps[1] <= 17 * steps[0], "{role:?} {destination}: {steps:?}");
    }
}

#[test]
fn other_client_is_served_between_closing_turns() {
    for (role, destination) in kinds_of_ends() {
        let (mut hub, [closing, other]) = with_ends(16_000, role, &destination);
        hub.take_out(other, &mut Vec::new());
        hub.disconnect(closing, NOW);
        hub.work(NOW);
        assert!(hub.has_work(), "{role:?} {destination}: one turn does not release everything");
        hub.receive(other, Frame::Ping { token: 7 }, NOW);
        let mut out = Vec::new();
        hub.take_out(other, &mut out);
        assert!(!out.is_empty(), "{role:?} {destination}: the ping is answered between two turns");
        let (turns, longest) = work_through(&mut hub);
        assert!(turns > 100 && longest <= 2 * TURN_STEPS, "{role:?} {destination}: {turns} turns of at most {longest} steps");
    }
}

#[test]
fn channel_closed_by_client_costs_a_few_steps() {
    for (role, destination) in kinds_of_ends() {
        let (mut hub, [client, _]) = with_ends(16_000, role, &destination);
        let before = hub.steps;
        hub.receive(client, Frame::Close { channel: Channel(8_000) }, NOW);
        assert!(hub.steps - before <= 4, "{role:?} {destination}: {} steps", hub.steps - before);
    }
}

#[test]
fn removed_queue_is_released_in_bounded_turns() {
    let (mut hub, [user, other]) = with_ends(16_000, Role::Send, &queue("q"));
    for channel in 1..=30 {
        // Each of those that have credit.
        (0..64).for_each(|_| hub.receive(user, Frame::Message { channel: Channel(channel), bytes: b"x" }, NOW));
    }
    let before = hub.steps;
    hub.receive(other, Frame::Remove { destination: queue("q") }, NOW);
    assert!(hub.steps - before <= 4, "{} steps", hub.steps - before);
    hub.receive(other, Frame::Open { channel: Channel(1), role: Role::Listen, destination: queue("q") }, NOW);
    let (turns, longest) = work_through(&mut hub);
    assert!(turns > 100 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
    let counts = hub.counts();
    assert_eq!((counts.channels, counts.destinations, counts.messages_removed, counts.waiting_bytes), (1, 1, 30 * 64, 0));
    assert_consistent(&hub);
}

#[test]
fn removed_queue_with_listeners_is_released_in_bounded_turns() {
    let (mut hub, [_, other]) = with_ends(16_000, Role::Listen, &queue("q"));
    let before = hub.steps;
    hub.receive(other, Frame::Remove { destination: queue("q") }, NOW);
    assert!(hub.steps - before <= 4, "{} steps", hub.steps - before);
    let mut listeners = hub.counts().channels;
    while hub.has_work() {
        hub.work(NOW);
        let released = listeners - hub.counts().channels;
        assert!(released <= KIND_STEPS as usize, "one turn released {released} listeners");
        listeners -= released;
    }
    assert_eq!(listeners, 0);
    assert_consistent(&hub);
}

#[test]
fn listeners_without_credit_cost_a_queue_nothing() {
    let (mut hub, [_, sender]) = with_ends(16_000, Role::Listen, &queue("q"));
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: queue("q") }, NOW);
    let before = hub.steps;
    hub.receive(sender, Frame::Message { channel: Channel(1), bytes: b"x" }, NOW);
    assert!(hub.steps - before <= 4, "{} steps", hub.steps - before);
}

#[test]
fn ready_listeners_without_room_cost_bounded_turns() {
    let (mut hub, [listening, sender]) = with_ends(16_000, Role::Listen, &queue("q"));
    for channel in 1..=16_000 {
        hub.receive(listening, Frame::Credit { channel: Channel(channel), bytes: u32::MAX }, NOW);
    }
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: queue("q") }, NOW);
    let long = vec![0; OUT_BYTES_MAX];
    hub.receive(sender, Frame::Message { channel: Channel(1), bytes: &long }, NOW);
    hub.receive(sender, Frame::Open { channel: Channel(2), role: Role::Send, destination: queue("q") }, NOW);
    let before = hub.steps;
    hub.receive(sender, Frame::Message { channel: Channel(2), bytes: b"x" }, NOW);
    assert!(hub.steps - before <= TURN_STEPS, "{} steps", hub.steps - before);
    let (turns, longest) = work_through(&mut hub);
    assert!(turns > 50 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
    // Once the connection has room, one of them receives the message.
    let mut out = Vec::new();
    (0..2).for_each(|_| {
        out.clear();
        let before = hub.steps;
        hub.take_out(listening, &mut out);
        assert!(hub.steps - before <= 2 * TURN_STEPS, "{} steps", hub.steps - before);
    });
    assert_eq!((hub.counts().messages_out, hub.counts().waiting_bytes), (2, 0));
}

#[test]
fn long_queue_is_delivered_in_bounded_turns() {
    let mut hub = Hub::new(wide());
    let [sender, listener] = [0, 1].map(|number| connect(&mut hub, number, NOW));
    [sender, listener].iter().for_each(|id| hub.receive(*id, HELLO, NOW));
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: queue("q") }, NOW);
    for _ in 0..4_000 {
        hub.receive(sender, Frame::Message { channel: Channel(1), bytes: b"" }, NOW);
    }
    hub.receive(listener, Frame::Open { channel: Channel(1), role: Role::Listen, destination: queue("q") }, NOW);
    let before = hub.steps;
    hub.receive(listener, Frame::Credit { channel: Channel(1), bytes: u32::MAX }, NOW);
    assert!(hub.steps - before <= TURN_STEPS, "{} steps", hub.steps - before);
    let (turns, longest) = work_through(&mut hub);
    assert!(turns > 20 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
    assert_eq!(hub.counts().messages_out, 4_000);
    assert_consistent(&hub);
}

#[test]
fn unused_queues_expire_in_bounded_turns() {
    let mut hub = Hub::new(HubLimits { silence_max: Duration::MAX / 2, ..wide() });
    let id = connect(&mut hub, 0, NOW);
    hub.receive(id, HELLO, NOW);
    for channel in 1..=8_000 {
        let destination = queue(&channel.to_string());
        hub.receive(id, Frame::Open { channel: Channel(channel), role: Role::Send, destination }, NOW);
        hub.take_out(id, &mut Vec::new());
    }
    let before = hub.steps;
    hub.look(NOW + Duration::from_secs(60));
    assert!(hub.steps == before && hub.has_work(), "looking costs nothing by itself");
    let (turns, longest) = work_through(&mut hub);
    assert!(turns > 50 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
    assert_eq!((hub.counts().destinations, hub.counts().queues_expired), (0, 8_000));
}

#[test]
fn published_message_is_copied_in_bounded_pieces() {
    const CLIENTS: usize = 40;
    let mut hub = Hub::new(wide());
    let ids: Vec<_> = (0..CLIENTS).map(|number| connect(&mut hub, number, NOW)).collect();
    for id in &ids {
        hub.receive(*id, HELLO, NOW);
        hub.receive(*id, Frame::Open { channel: Channel(1), role: Role::Listen, destination: topic("t") }, NOW);
        hub.receive(*id, Frame::Credit { channel: Channel(1), bytes: u32::MAX }, NOW);
    }
    hub.receive(ids[0], Frame::Open { channel: Channel(2), role: Role::Send, destination: topic("t") }, NOW);
    let long = vec![0; MESSAGE_BYTES_MAX / 2];
    hub.receive(ids[0], Frame::Message { channel: Channel(2), bytes: &long }, NOW);
    assert_eq!(hub.counts().messages_out, 1, "one connection's is as much as may be copied");
    for id in ids {
        let mut out = Vec::new();
        while hub.take_out(id, &mut out) == Standing::Open && out.len() < long.len() {
            out.clear();
            assert!(hub.take_woken().contains(&id), "it is woken as long as something waits");
        }
    }
    assert_eq!((hub.counts().messages_out, hub.counts().waiting_bytes), (CLIENTS as u64, 0));
}

#[test]
fn held_listeners_of_closed_connection_are_released_in_turns() {
    const LISTENERS: usize = 16_000;
    let (mut hub, [listening, sender]) = with_ends(16_000, Role::Listen, &queue("q"));
    (1..=16_000).for_each(|channel| hub.receive(listening, Frame::Credit { channel: Channel(channel), bytes: u32::MAX }, NOW));
    for (channel, bytes) in [(1, &vec![0; OUT_BYTES_MAX][..]), (2, b"x")] {
        hub.receive(sender, Frame::Open { channel: Channel(channel), role: Role::Send, destination: queue("q") }, NOW);
        hub.receive(sender, Frame::Message { channel: Channel(channel), bytes }, NOW);
    }
    while hub.work(NOW) {}
    assert_eq!(hub.connections[&listening].held.len(), LISTENERS, "each waits until the connection has room");
    hub.disconnect(listening, NOW);
    let mut held = LISTENERS;
    while hub.has_work() {
        hub.work(NOW);
        let left = hub.closing.iter().map(|connection| connection.held.len()).sum::<usize>();
        assert!(held - left <= TURN_STEPS as usize, "one turn released {}", held - left);
        held = left;
    }
    assert_eq!((held, hub.counts().channels), (0, 2));
    assert_consistent(&hub);
}

#[test]
fn closed_listener_backlog_is_released_in_bounded_turns() {
    for is_connection_closed in [true, false] {
        let (mut hub, [listener, sender]) = with_ends(1, Role::Listen, &topic("t"));
        hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: topic("t") }, NOW);
        for _ in 0..10_000 {
            hub.receive(sender, Frame::Message { channel: Channel(1), bytes: b"" }, NOW);
            hub.take_out(sender, &mut Vec::new());
        }
        assert_eq!((hub.counts().waiting_bytes, hub.has_work()), (10_000 * u64::from(cost(0)), false));
        let before = hub.steps;
        if is_connection_closed {
            hub.disconnect(listener, NOW);
        } else {
            hub.receive(listener, Frame::Close { channel: Channel(1) }, NOW);
        }
        assert!(hub.steps - before <= 4, "{} steps", hub.steps - before);
        let (turns, longest) = work_through(&mut hub);
        assert!(turns > 50 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
        assert_eq!(hub.counts().waiting_bytes, 0);
        assert_consistent(&hub);
    }
}

#[test]
fn message_of_wide_topic_is_published_in_bounded_turns() {
    const LISTENERS: u32 = 16_000;
    let (mut hub, [listening, sender]) = with_ends(LISTENERS, Role::Listen, &topic("t"));
    (1..=LISTENERS).for_each(|channel| hub.receive(listening, Frame::Credit { channel: Channel(channel), bytes: u32::MAX }, NOW));
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: topic("t") }, NOW);
    for bytes in [b"1", b"2"] {
        let before = hub.steps;
        hub.receive(sender, Frame::Message { channel: Channel(1), bytes }, NOW);
        assert!(hub.steps - before <= TURN_STEPS, "{} steps", hub.steps - before);
    }
    assert_consistent(&hub);
    let late = connect(&mut hub, 2, NOW);
    hub.receive(late, HELLO, NOW);
    hub.receive(late, Frame::Open { channel: Channel(1), role: Role::Listen, destination: topic("t") }, NOW);
    let (turns, longest) = work_through(&mut hub);
    assert!(turns > 100 && longest <= 2 * TURN_STEPS, "{turns} turns of at most {longest} steps");
    let (mut assembly, mut received) = (Assembly::default(), BTreeMap::<_, Vec<u8>>::new());
    let mut out = Vec::new();
    while hub.take_out(listening, &mut out) == Standing::Open && !out.is_empty() {
        assembly.put(&out);
        out.clear();
    }
    while let Some(frame) = assembly.next_frame().unwrap() {
        if let Frame::Message { channel, bytes } = frame {
            received.entry(channel).or_default().extend(bytes);
        }
    }
    assert_eq!(received.len(), LISTENERS as usize, "nobody who listened before misses a message");
    assert!(received.values().all(|messages| messages == b"12"), "each listener receives the messages in their order");
    assert_eq!(
        (hub.counts().messages_out, hub.counts().waiting_bytes),
        (2 * u64::from(LISTENERS), 0),
        "who listens later receives neither"
    );
    assert_consistent(&hub);
}

#[test]
fn listeners_with_backlogs_cost_a_published_message_one_step_each() {
    const LISTENERS: u32 = 60;
    let (mut hub, [listening, sender]) = with_ends(LISTENERS, Role::Listen, &topic("t"));
    (1..=LISTENERS).for_each(|channel| hub.receive(listening, Frame::Credit { channel: Channel(channel), bytes: u32::MAX }, NOW));
    hub.receive(sender, Frame::Open { channel: Channel(1), role: Role::Send, destination: topic("t") }, NOW);
    // A message of a queue fills the connection, so that those of the topic wait in backlogs.
    hub.receive(listening, Frame::Open { channel: Channel(100), role: Role::Listen, destination: queue("q") }, NOW);
    hub.receive(listening, Frame::Credit { channel: Channel(100), bytes: u32::MAX }, NOW);
    hub.receive(sender, Frame::Open { channel: Channel(2), role: Role::Send, destination: queue("q") }, NOW);
    hub.receive(sender, Frame::Message { channel: Channel(2), bytes: &vec![0; OUT_BYTES_MAX] }, NOW);
    (0..100).for_each(|_| hub.receive(sender, Frame::Message { channel: Channel(1), bytes: b"" }, NOW));
    hub.take_out(listening, &mut Vec::new());
    let before = hub.steps;
    hub.receive(sender, Frame::Message { channel: Channel(1), bytes: b"" }, NOW);
    assert!(hub.steps - before <= TURN_STEPS, "{} steps", hub.steps - before);
}

#[test]
fn all_connections_close_with_all_channels_in_bounded_turns() {
    const CONNECTIONS: usize = 64;
    const CLIENTS: usize = 32;
    let limits = HubLimits { connections_max: CONNECTIONS + 1, ..HubLimits::default() };
    let channels = u32::try_from(limits.channels_max).unwrap();
    let mut hub = Hub::new(limits);
    let pinging = connect(&mut hub, CLIENTS, NOW);
    let closing: Vec<_> = (0..CONNECTIONS).map(|number| connect(&mut hub, number % CLIENTS, NOW)).collect();
    for id in closing.iter().chain([&pinging]) {
        hub.receive(*id, HELLO, NOW);
        hub.take_out(*id, &mut Vec::new());
    }
    for id in &closing {
        for channel in 1..=channels {
            hub.receive(*id, Frame::Open { channel: Channel(channel), role: Role::Listen, destination: queue("q") }, NOW);
        }
    }
    assert_eq!((hub.counts().channels, hub.counts().refused_full), (CONNECTIONS * limits.channels_max, 0));
    for id in closing {
        hub.disconnect(id, NOW);
    }
    let (mut turns, mut before) = (0, (hub.steps, hub.counts().channels));
    while hub.has_work() {
        hub.work(NOW);
        hub.receive(pinging, Frame::Ping { token: turns }, NOW);
        let mut out = Vec::new();
        hub.take_out(pinging, &mut out);
        assert!(!out.is_empty(), "the ping is answered after one turn");
        let after = (hub.steps, hub.counts().channels);
        assert!(after.0 - before.0 <= TURN_STEPS, "turn {turns}: {} steps", after.0 - before.0);
        assert!(before.1 - after.1 <= KIND_STEPS as usize, "turn {turns}: {} ends", before.1 - after.1);
        (turns, before) = (turns + 1, after);
    }
    assert_eq!((hub.counts().channels, hub.counts().clients), (0, 1));
    assert_consistent(&hub);
}
