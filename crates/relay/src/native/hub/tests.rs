//! The relay with clients that are our own, and with one that says what it likes.

use std::collections::VecDeque as Line;

use proptest::prelude::*;

use super::*;
use crate::{
    native::{Assembly, Client, MESSAGE_BYTES_MAX, Role, WINDOW_BYTES, cost},
    session::{Event, OUT_BYTES_MAX, Receipt, Session, SessionFault},
};

mod quota;
mod work;

/// Messages that a listener has not taken.
type Untaken = Line<(u64, String, Receipt)>;

/// A hub and the clients that are connected to it, without a network.
struct Net {
    hub: Hub,
    clients: Vec<Joined>,
    now: Duration,
}

struct Joined {
    id: ConnectionId,
    client: Client,
    told: Vec<Event>,
    untaken: Untaken,
    ended: Option<SessionFault>,
}

fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

fn topic(name: &str) -> Destination {
    Destination::topic(name).unwrap()
}

/// Connects with the key of the client of this number.
fn connect(hub: &mut Hub, number: usize, now: Duration) -> ConnectionId {
    let key = [u8::try_from(number).expect("tests have few clients"); 32];
    hub.connect(ClientId(key), &format!("client {number}"), now).expect("it is told why it is refused")
}

impl Net {
    fn new(limits: HubLimits, clients: usize) -> Self {
        let mut net = Self { hub: Hub::new(limits), clients: Vec::new(), now: Duration::from_secs(1000) };
        for _ in 0..clients {
            net.join();
        }
        net
    }

    fn join(&mut self) -> usize {
        self.join_as(self.clients.len())
    }

    /// Joins with the key of the client of this number.
    fn join_as(&mut self, number: usize) -> usize {
        let id = connect(&mut self.hub, number, self.now);
        let client = Client::new(self.now);
        self.clients.push(Joined { id, client, told: Vec::new(), untaken: Line::new(), ended: None });
        self.run();
        self.clients.len() - 1
    }

    /// Carries bytes until there are none.
    fn run(&mut self) {
        loop {
            let mut is_quiet = true;
            for joined in &mut self.clients {
                if joined.ended.is_some() {
                    continue;
                }
                let (mut out, mut assembly) = (Vec::new(), Assembly::default());
                let mut told = Vec::new();
                joined.client.take_out(self.now, &mut out, &mut told);
                is_quiet &= out.is_empty();
                if !out.is_empty() {
                    self.hub.heard(joined.id, self.now);
                }
                assembly.put(&out);
                while let Some(frame) = assembly.next_frame().unwrap() {
                    self.hub.receive(joined.id, frame, self.now);
                }
                let mut back = Vec::new();
                let standing = self.hub.take_out(joined.id, &mut back);
                is_quiet &= back.is_empty();
                if !back.is_empty() {
                    joined.ended = joined.client.receive(&back, self.now, &mut told).err();
                }
                if standing != Standing::Open {
                    self.hub.disconnect(joined.id, self.now);
                    joined.ended.get_or_insert(SessionFault::Silent);
                }
                for event in told {
                    match event {
                        Event::Message { listener, text, receipt } => joined.untaken.push_back((listener, text, receipt)),
                        event => joined.told.push(event),
                    }
                }
            }
            while self.hub.work(self.now) {}
            if is_quiet {
                return;
            }
        }
    }

    fn listen(&mut self, at: usize, listener: u64, destination: &Destination) {
        self.clients[at].client.listen(listener, destination);
        self.run();
    }

    fn send(&mut self, at: usize, sending: u64, destination: &Destination, text: &str) {
        let joined = &mut self.clients[at];
        joined.client.send(sending, destination, text.to_owned(), self.now, &mut joined.told);
        self.run();
    }

    /// What a client takes of what has come, oldest first.
    fn take(&mut self, at: usize, most: usize) -> Vec<(u64, String)> {
        let mut taken = Vec::new();
        for _ in 0..most {
            let Some((listener, text, receipt)) = self.clients[at].untaken.pop_front() else { break };
            self.clients[at].client.taken(listener, receipt);
            taken.push((listener, text));
            self.run();
        }
        taken
    }

    fn told(&mut self, at: usize) -> Vec<Event> {
        std::mem::take(&mut self.clients[at].told)
    }

    fn refused(&mut self, at: usize) -> Vec<Option<Reason>> {
        let told = self.told(at);
        let refusal = |event| match event {
            Event::Over { refusal, .. } | Event::NotSent { refusal, .. } => Some(refusal.reason),
            _ => None,
        };
        told.into_iter().filter_map(refusal).collect()
    }
}

#[test]
fn a_queue_waits_for_its_listener_and_a_topic_does_not() {
    let mut net = Net::new(HubLimits::default(), 3);
    net.send(0, 1, &queue("q"), "early");
    net.send(0, 2, &topic("t"), "early");
    assert_eq!(net.told(0), [Event::Open, Event::Sent(1), Event::Sent(2)]);
    for at in [1, 2] {
        net.listen(at, 7, &topic("t"));
        assert_eq!(net.told(at), [Event::Open, Event::Listening(7)]);
    }
    net.listen(1, 8, &queue("q"));
    net.send(2, 3, &topic("t"), "late");
    assert_eq!(net.take(1, 9), [(8, "early".to_owned()), (7, "late".to_owned())]);
    assert_eq!(net.take(2, 9), [(7, "late".to_owned())], "who sends hears it too if it listens");
}

#[test]
fn listeners_of_a_queue_take_turns() {
    let mut net = Net::new(HubLimits::default(), 3);
    net.listen(1, 1, &queue("q"));
    net.listen(2, 2, &queue("q"));
    for number in 0..6 {
        net.send(0, number, &queue("q"), &number.to_string());
    }
    assert_eq!((net.take(1, 9).len(), net.take(2, 9).len()), (3, 3));
}

#[test]
fn a_slow_reader_holds_up_its_own_sender_and_nobody_else() {
    let mut net = Net::new(HubLimits { queue_bytes_max: u64::from(WINDOW_BYTES), ..HubLimits::default() }, 2);
    net.listen(1, 1, &queue("slow"));
    net.listen(1, 2, &queue("fast"));
    let piece = "x".repeat(32 * 1024);
    for number in 0..64 {
        net.send(0, number, &queue("slow"), &piece);
    }
    let went = net.told(0).iter().filter(|event| matches!(event, Event::Sent(_))).count();
    // The listener's window, the queue's, and a message beyond each.
    assert!((8..=20).contains(&went), "{went}");
    assert!(net.hub.counts().waiting_bytes <= u64::from(WINDOW_BYTES) + piece.len() as u64);
    net.send(0, 100, &queue("fast"), "through");
    assert!(net.told(0).contains(&Event::Sent(100)));
    let slow = net.take(1, 1000);
    assert!(slow.contains(&(2, "through".to_owned())));
    assert_eq!(slow.len(), 65, "when it is read everything comes");
    assert_eq!(net.hub.counts().waiting_bytes, 0);
}

#[test]
fn a_removed_queue_is_told_to_all_who_use_it() {
    let mut net = Net::new(HubLimits::default(), 3);
    net.listen(1, 1, &queue("q"));
    net.send(2, 1, &queue("q"), "a");
    net.clients[0].client.remove(&queue("q"), &mut Vec::new());
    net.run();
    assert_eq!(net.refused(1), [Some(Reason::Removed)]);
    assert_eq!(net.hub.counts().destinations, 0);
    net.listen(1, 2, &queue("q"));
    net.send(2, 2, &queue("q"), "b");
    assert_eq!(net.refused(2), [Some(Reason::Removed)], "who has sent to it is told at the next message");
    net.send(2, 3, &queue("q"), "c");
    assert_eq!(net.take(1, 9), [(1, "a".to_owned()), (2, "c".to_owned())], "the name may be used again");
    assert!(net.clients.iter().all(|joined| joined.ended.is_none()));
}

#[test]
fn whoever_leaves_makes_room_and_what_it_had_not_got_goes_to_another() {
    let mut net = Net::new(HubLimits::default(), 3);
    net.listen(1, 1, &queue("q"));
    net.clients[1].client.leave(1);
    net.run();
    net.send(0, 1, &queue("q"), "a");
    net.listen(2, 2, &queue("q"));
    assert_eq!((net.take(1, 9), net.take(2, 9)), (vec![], vec![(2, "a".to_owned())]));
    let gone = net.clients[2].id;
    net.hub.disconnect(gone, net.now);
    net.clients[2].ended = Some(SessionFault::Silent);
    net.send(0, 2, &queue("q"), "b");
    net.listen(1, 3, &queue("q"));
    assert_eq!(net.take(1, 9), [(3, "b".to_owned())]);
}

#[test]
fn each_limit_is_told() {
    let limits = HubLimits { connections_max: 2, channels_max: 2, destinations_max: 3, ..HubLimits::default() };
    let mut net = Net::new(limits, 3);
    assert!(
        matches!(&net.clients[2].ended, Some(SessionFault::Refused(words)) if words.contains("connections")),
        "{:?}",
        net.clients[2].ended
    );
    for (listener, name) in [(1, "a"), (2, "b"), (3, "c")] {
        net.listen(0, listener, &queue(name));
    }
    assert_eq!(net.refused(0), [Some(Reason::Full)], "the third channel");
    net.listen(1, 1, &queue("d"));
    net.send(1, 1, &queue("e"), "x");
    assert_eq!(net.refused(1), [Some(Reason::Full)], "the fourth destination");
    assert_eq!(net.hub.counts().refused_full, 3);
    net.clients[0].client.leave(1);
    net.run();
    net.listen(0, 4, &queue("c"));
    assert!(net.told(0).contains(&Event::Listening(4)), "there is room again");
    assert!(net.clients[..2].iter().all(|joined| joined.ended.is_none()));
}

#[test]
fn a_full_relay_gives_no_credit_and_refuses_what_comes_all_the_same() {
    let piece = "x".repeat(60 * 1024);
    let bytes_max = 4 * 64 * 1024;
    let mut net = Net::new(HubLimits { bytes_max, ..HubLimits::default() }, 2);
    for number in 0..5 {
        net.send(0, number, &queue("q"), &piece);
    }
    net.send(0, 5, &queue("q"), "next");
    assert_eq!(net.refused(0), [Some(Reason::Full)], "the fifth was too much, which is told at the next one");
    assert_eq!(net.hub.counts().waiting_bytes, 4 * u64::from(cost(piece.len())));
    net.send(0, 10, &queue("other"), "small");
    assert!(!net.told(0).contains(&Event::Sent(10)), "from half of it on nobody gets credit");
    net.listen(1, 1, &queue("q"));
    assert_eq!(net.take(1, 9).len(), 4);
    assert!(net.told(0).contains(&Event::Sent(10)), "and then it goes on");
}

#[test]
fn a_topics_listener_that_is_too_slow_loses_and_holds_up_nobody() {
    let mut net = Net::new(HubLimits { backlog_bytes_max: 64 * 1024, ..HubLimits::default() }, 3);
    net.listen(1, 1, &topic("t"));
    net.listen(2, 1, &topic("t"));
    let piece = "x".repeat(16 * 1024);
    let mut quick = 0;
    for number in 0..64 {
        net.send(0, number, &topic("t"), &piece);
        quick += net.take(2, 9).len();
    }
    assert_eq!(quick, 64);
    let slow = net.take(1, 1000).len();
    let counts = net.hub.counts();
    assert_eq!(slow as u64 + counts.backlog_lost, 64);
    assert!(counts.backlog_lost > 30 && counts.waiting_bytes == 0, "{counts:?}");
}

#[test]
fn a_queue_that_nobody_uses_goes_and_a_silent_client_too() {
    let mut net = Net::new(HubLimits::default(), 1);
    net.send(0, 1, &queue("q"), "forgotten");
    net.now += Duration::from_secs(59);
    net.hub.heard(net.clients[0].id, net.now);
    net.hub.look(net.now);
    assert_eq!(net.hub.counts().destinations, 1);
    net.now += Duration::from_secs(1);
    net.hub.look(net.now);
    net.run();
    let counts = net.hub.counts();
    assert_eq!((counts.destinations, counts.queues_expired, counts.messages_removed, counts.waiting_bytes), (0, 1, 1, 0));
    net.now += Duration::from_secs(60);
    net.hub.look(net.now);
    net.run();
    assert!(matches!(&net.clients[0].ended, Some(SessionFault::Refused(words)) if words.contains("heard")), "{:?}", net.clients[0].ended);
    assert_eq!(net.hub.counts().connections, 0);
}

#[test]
fn a_client_that_pings_is_not_silent_and_one_whose_relay_says_nothing_gives_up() {
    let mut net = Net::new(HubLimits::default(), 1);
    for _ in 0..40 {
        net.now += Duration::from_secs(5);
        net.clients[0].client.beat(net.now).unwrap();
        net.run();
        net.hub.look(net.now);
    }
    assert_eq!(net.clients[0].ended, None);
    assert_eq!(net.clients[0].client.beat(net.now + Duration::from_secs(50)), Err(SessionFault::Silent));
}

#[test]
fn a_stopping_relay_says_so() {
    let mut net = Net::new(HubLimits::default(), 2);
    net.hub.stop();
    net.run();
    for joined in &net.clients {
        assert_eq!(joined.ended, Some(SessionFault::Refused("the relay is stopping".into())));
    }
}

/// What a client that is not ours is told, by frames in their order.
fn answers(frames: &[Frame<'_>]) -> (Vec<String>, Standing) {
    let mut hub = Hub::new(HubLimits::default());
    let id = connect(&mut hub, 0, Duration::ZERO);
    for frame in frames {
        hub.receive(id, frame.clone(), Duration::ZERO);
    }
    let (mut out, mut assembly, mut said) = (Vec::new(), Assembly::default(), Vec::new());
    let standing = hub.take_out(id, &mut out);
    assembly.put(&out);
    while let Some(frame) = assembly.next_frame().unwrap() {
        said.push(match frame {
            Frame::Refused { channel, reason, .. } => format!("refused {} {reason:?}", channel.0),
            Frame::Credit { channel, .. } => format!("credit {}", channel.0),
            other => format!("{other:?}").split(' ').next().unwrap_or_default().to_lowercase(),
        });
    }
    (said, standing)
}

#[test]
fn a_client_that_breaks_the_rules_is_told_and_ended() {
    const HELLO: Frame<'static> = Frame::Greeting { newest: 1, oldest: 1 };
    let open = |number, role| Frame::Open { channel: Channel(number), role, destination: queue("q") };
    let message = |number| Frame::Message { channel: Channel(number), bytes: b"x" };
    let credit = |number| Frame::Credit { channel: Channel(number), bytes: 1 };
    let long = vec![0; WINDOW_BYTES as usize];
    let overdraft = Frame::Message { channel: Channel(1), bytes: &long };
    for (frames, expected) in [
        (vec![open(1, Role::Send)], vec!["refused 0 Version"]),
        (vec![Frame::Greeting { newest: 3, oldest: 2 }], vec!["refused 0 Version"]),
        (vec![Frame::Greeting { newest: 1, oldest: 2 }], vec!["refused 0 Version"]),
        (vec![HELLO, HELLO], vec!["greeting", "refused 0 NotAllowed"]),
        (vec![HELLO, message(1)], vec!["greeting", "refused 0 Channel"]),
        (vec![HELLO, credit(1)], vec!["greeting", "refused 0 Channel"]),
        (vec![HELLO, Frame::Close { channel: Channel(1) }], vec!["greeting", "refused 0 Channel"]),
        (vec![HELLO, open(1, Role::Send), open(1, Role::Send)], vec!["greeting", "credit 1", "refused 0 Channel"]),
        (vec![HELLO, open(1, Role::Listen), message(1)], vec!["greeting", "refused 0 Channel"]),
        (vec![HELLO, open(1, Role::Send), credit(1)], vec!["greeting", "credit 1", "refused 0 Channel"]),
        (vec![HELLO, Frame::Remove { destination: topic("t") }], vec!["greeting", "refused 0 NotAllowed"]),
        (vec![HELLO, open(1, Role::Send), overdraft, message(1)], vec!["greeting", "credit 1", "refused 0 NoCredit"]),
    ] {
        assert_eq!(answers(&frames), (expected.into_iter().map(str::to_owned).collect(), Standing::Ending), "of {} frames", frames.len());
    }
    let fine =
        [HELLO, open(1, Role::Send), message(1), Frame::Close { channel: Channel(1) }, open(1, Role::Send), Frame::Ping { token: 1 }];
    let expected = ["greeting", "credit 1", "close", "credit 1", "pong"].map(str::to_owned).to_vec();
    assert_eq!(answers(&fine), (expected, Standing::Open));
}

#[test]
fn who_makes_the_relay_answer_and_does_not_read_is_ended() {
    let mut hub = Hub::new(HubLimits::default());
    let id = connect(&mut hub, 0, Duration::ZERO);
    hub.receive(id, Frame::Greeting { newest: 1, oldest: 1 }, Duration::ZERO);
    let mut pings = 0u64;
    while hub.counts().ended == 0 {
        hub.receive(id, Frame::Ping { token: pings }, Duration::ZERO);
        pings += 1;
        assert!(pings < 10_000_000);
    }
    let mut out = Vec::new();
    assert_eq!(hub.take_out(id, &mut out), Standing::Ending);
    assert!(out.len() <= OUT_BYTES_STUCK + 1024, "{}", out.len());
}

#[test]
fn a_listener_whose_connection_is_not_read_leaves_messages_in_the_queue() {
    let mut hub = Hub::new(HubLimits::default());
    let greeting = Frame::Greeting { newest: 1, oldest: 1 };
    let (sender, listener) = (connect(&mut hub, 0, Duration::ZERO), connect(&mut hub, 1, Duration::ZERO));
    for id in [sender, listener] {
        hub.receive(id, greeting.clone(), Duration::ZERO);
    }
    let open = |role| Frame::Open { channel: Channel(1), role, destination: queue("q") };
    hub.receive(sender, open(Role::Send), Duration::ZERO);
    hub.receive(listener, open(Role::Listen), Duration::ZERO);
    hub.receive(listener, Frame::Credit { channel: Channel(1), bytes: u32::MAX }, Duration::ZERO);
    let long = vec![0; MESSAGE_BYTES_MAX];
    for _ in 0..3 {
        hub.receive(sender, Frame::Message { channel: Channel(1), bytes: &long }, Duration::ZERO);
    }
    assert_eq!(hub.counts().messages_out, 1);
    let mut out = Vec::new();
    hub.take_out(listener, &mut out);
    assert!(out.len() < OUT_BYTES_MAX + MESSAGE_BYTES_MAX + 1024);
    assert_eq!(hub.counts().messages_out, 2, "there is room for the next one");
    out.clear();
    hub.take_out(listener, &mut out);
    assert_eq!(hub.counts().messages_out, 2, "the sender had no credit for a third");
}

/// Compares what the hub counts of each client and place with what is there.
fn assert_consistent(hub: &Hub) {
    let mut uses: BTreeMap<(PlaceId, ClientId), place::Use> = BTreeMap::new();
    let mut pending: BTreeMap<ClientId, u64> = BTreeMap::new();
    for end in hub.ends.values() {
        let uses = uses.entry((end.place, end.client)).or_default();
        match &end.kind {
            place::Kind::Sender { .. } => uses.senders += 1,
            place::Kind::Listener { backlog, backlog_bytes, .. } => {
                uses.listeners += 1;
                assert_eq!(backlog.iter().map(|bytes| u64::from(cost(bytes.len()))).sum::<u64>(), *backlog_bytes);
                *pending.entry(end.client).or_default() += backlog_bytes;
            }
        }
    }
    for (client, backlog) in &hub.unreceived {
        *pending.entry(*client).or_default() += backlog.iter().map(|bytes| u64::from(cost(bytes.len()))).sum::<u64>();
    }
    for (id, place) in &hub.places {
        assert_eq!(place.messages.iter().map(place::Held::cost).sum::<u64>(), place.bytes);
        assert_eq!(place.removed.is_none(), hub.names.get(&place.destination) == Some(id));
        assert!(place.ready.values().all(|listener| place.listeners.contains(listener)));
        assert!(place.hungry.union(&place.suspended).all(|sender| place.senders.contains(sender)));
        for held in &place.messages {
            uses.entry((*id, held.client)).or_default().messages += 1;
            *pending.entry(held.client).or_default() += held.cost();
        }
        for (client, of_client) in &place.users {
            assert_eq!(uses.get(&(*id, *client)), Some(of_client));
        }
    }
    assert_eq!(hub.places.values().map(|place| place.users.len()).sum::<usize>(), uses.len());
    assert_eq!(hub.counts.waiting_bytes, pending.values().sum::<u64>());
    for (id, client) in &hub.clients {
        assert_eq!(client.ends, hub.ends.values().filter(|end| end.client == *id).count());
        assert_eq!(client.destinations, uses.keys().filter(|(_, client)| client == id).count());
        assert_eq!(client.pending_bytes, pending.get(id).copied().unwrap_or_default());
        let connections = hub.connections.values().filter(|connection| connection.client == *id && !connection.is_refused).count();
        assert_eq!(client.connections, connections);
        assert_eq!(client.suspended.is_empty(), !hub.suspended_clients.contains(id));
    }
    assert!(uses.keys().all(|(_, client)| hub.clients.contains_key(client)));
}

#[derive(Clone, Debug)]
enum Step {
    Send { at: usize, to: usize, length: usize },
    Take { at: usize, most: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2usize, 0..3usize, 0..200_000usize).prop_map(|(at, to, length)| Step::Send { at, to, length }),
        2 => (2..4usize, 1..4usize).prop_map(|(at, most)| Step::Take { at, most }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is sent by whom and read when: each message of a queue reaches one listener, those of one sender in their order, and what waits keeps within its limit.
    #[test]
    fn every_message_of_a_queue_arrives_once(steps in prop::collection::vec(step(), 1..60)) {
        let limits = HubLimits { queue_bytes_max: 300_000, ..HubLimits::default() };
        let mut net = Net::new(limits, 4);
        for (listener, (at, name)) in [(2, "a"), (3, "b"), (2, "c")].into_iter().enumerate() {
            net.listen(at, listener as u64, &queue(name));
        }
        let (mut sent, mut heard) = (Vec::new(), Vec::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { at, to, length } => {
                    let text = format!("{at} {number} {}", "x".repeat(length));
                    net.send(at, number as u64, &queue(["a", "b", "c"][to]), &text);
                    sent.push((to as u64, text));
                }
                Step::Take { at, most } => heard.extend(net.take(at, most)),
            }
            assert_consistent(&net.hub);
            // Three queues, each with a message of either sender beyond its limit.
            prop_assert!(net.hub.counts().waiting_bytes <= 3 * (300_000 + 2 * 200_064));
        }
        for at in [2, 3] {
            heard.extend(net.take(at, usize::MAX));
        }
        for (listener, of_sender) in (0..3u64).flat_map(|listener| ["0", "1"].map(|sender| (listener, sender))) {
            let of = |all: &[(u64, String)]| {
                let own = all.iter().filter(|(to, text)| *to == listener && text.starts_with(of_sender));
                own.map(|(_, text)| text.clone()).collect::<Vec<_>>()
            };
            prop_assert!(of(&sent) == of(&heard), "listener {listener}, sender {of_sender}: {} and {}", of(&sent).len(), of(&heard).len());
        }
        prop_assert_eq!(net.hub.counts().waiting_bytes, 0);
        prop_assert!(net.clients.iter().all(|joined| joined.ended.is_none()));
    }

    /// Bytes that nobody has thought of end in a fault or in frames, and the relay goes on.
    #[test]
    fn any_frames_leave_the_relay_standing(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut hub = Hub::new(HubLimits::default());
        let id = connect(&mut hub, 0, Duration::ZERO);
        hub.receive(id, Frame::Greeting { newest: 1, oldest: 1 }, Duration::ZERO);
        let mut at = 0;
        while let [kind, channel, rest @ ..] = &bytes[at..] {
            let (channel, destination) = (Channel(u32::from(*channel) % 4 + 1), queue(["a", "b"][usize::from(*channel) % 2]));
            let frame = match kind % 7 {
                0 => Frame::Open { channel, role: Role::Send, destination },
                1 => Frame::Open { channel, role: Role::Listen, destination },
                2 => Frame::Close { channel },
                3 => Frame::Credit { channel, bytes: u32::from(*kind) + 1 },
                4 => Frame::Message { channel, bytes: rest },
                5 => Frame::Remove { destination },
                _ => Frame::Ping { token: 0 },
            };
            hub.receive(id, frame, Duration::from_secs(at as u64));
            hub.look(Duration::from_secs(at as u64));
            assert_consistent(&hub);
            hub.work(Duration::from_secs(at as u64));
            assert_consistent(&hub);
            at += 2;
        }
        hub.disconnect(id, Duration::from_secs(at as u64));
        while hub.work(Duration::from_secs(at as u64)) {}
        assert_consistent(&hub);
        let counts = hub.counts();
        prop_assert_eq!((counts.connections, counts.channels), (0, 0));
    }
}
