//! From a DEALER's event to the subscriber that acknowledges it, and back to the publisher that is told so, nothing is allocated.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::PoisonError,
    time::SystemTime,
};

use bodkin_arrowhead::name::{EventType, SystemName};
use bodkin_broker::{
    Epoch, Incarnation, PublisherId, Sequence,
    timing::Nanos,
    topic::{LossTolerance, Period, TopicSpec},
    wire::{ClientFrame, EventHeader, Flags, HEADER_BYTES, Watermarks},
};
use bodkin_host::{DeclaredTopic, HostConfig, Server, ZmtpConfig};
use bodkin_zmtp::SocketType;

use super::{
    COUNTED_EVENTS, Connector, PERIOD, SOURCE, WARM_UP_EVENTS, config,
    counting::{ONE_AT_A_TIME, allocations, shard_thread},
    post,
    zmtp::{connect, message},
};

const PAYLOAD: &[u8] = b"21.5";
const RUN: Incarnation = Incarnation(7);

fn command(command: &ClientFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    message(&[&bytes])
}

/// Reads what was expected, and nothing else.
#[track_caller]
fn expect(socket: &mut TcpStream, expected: &[u8]) {
    let mut came = vec![0; expected.len()];
    socket.read_exact(&mut came).unwrap();
    assert_eq!(came, expected);
}

fn header(sequence: u64) -> EventHeader {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    EventHeader {
        flags: Flags::default(),
        publisher: PublisherId(0),
        incarnation: RUN,
        sequence: Sequence(sequence),
        created_utc_ns: since_1970.as_nanos() as u64,
        epoch: Epoch::NONE,
    }
}

/// What the shard allocates for the counted events of a topic: published, heard, acknowledged and covered. Both clients spell it as `spelled`.
fn allocations_of(topic: &str, spelled: &str, is_required: bool) -> u64 {
    let data = tempfile::tempdir().unwrap();
    let zmtp = Some(ZmtpConfig { port: 0, system: Some(SystemName::parse("sensor").unwrap()), ipc: None });
    let spec = TopicSpec {
        deadline: Nanos::from_millis(100).into(),
        loss_tolerance: LossTolerance::AtMost(0),
        retention: 2_000,
        jitter: Nanos::from_millis(10),
        ..TopicSpec::best_effort(Period::Every(Nanos::from_micros(PERIOD.as_micros() as i64)))
    };
    let topics = std::sync::Arc::new([DeclaredTopic {
        event_type: EventType::parse("hot").unwrap(),
        spec: spec.into(),
        permitted: Default::default(),
    }]);
    let config = HostConfig { zmtp, topics, ..config(data.path(), None) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start(&config)).unwrap();
    post(&mut Connector(None).connect(server.addresses[0]), "/serviceregistry/register-system", SOURCE, 201);

    let epoch = Epoch::NONE;
    let dealer = |name| {
        let mut socket = connect(server.zmtp.unwrap(), SocketType::Dealer);
        socket.write_all(&command(&ClientFrame::Hello { epoch, incarnation: RUN, name })).unwrap();
        expect(&mut socket, &command(&ClientFrame::Leader { epoch, is_leader: true }));
        socket
    };
    let (mut publisher, mut subscriber) = (dealer("sensor"), dealer("display"));
    let (loss_tolerance, deadline_ns, watermarks) = (None, None, Watermarks::Own(&[]));
    let subscribe =
        ClientFrame::Subscribe { epoch, loss_tolerance, deadline_ns, required: is_required, wait_ns: 60_000_000_000, topic, watermarks };
    subscriber.write_all(&command(&subscribe)).unwrap();
    expect(&mut subscriber, &command(&ClientFrame::Subscribed { epoch, topic }));

    let mut sequence = 0;
    let mut publish = |times: u32| {
        for _ in 0..times {
            sequence += 1;
            let mut bytes = Vec::new();
            header(sequence).encode(&mut bytes);
            publisher.write_all(&message(&[spelled.as_bytes(), PAYLOAD, &bytes])).unwrap();
            let mut came = message(&[topic.as_bytes(), PAYLOAD, &[0; HEADER_BYTES]]);
            subscriber.read_exact(&mut came).unwrap();
            let EventHeader { publisher: source, incarnation, sequence: through, .. } =
                EventHeader::decode(&came[came.len() - HEADER_BYTES..]).unwrap();
            if is_required {
                let delivered = ClientFrame::Delivered { epoch, publisher: source, incarnation, through, topic: spelled };
                subscriber.write_all(&command(&delivered)).unwrap();
            }
            let covered = ClientFrame::Covered { epoch, incarnation: RUN, through: Sequence(sequence), topic };
            expect(&mut publisher, &command(&covered));
            // The way there and back may be shorter than the topic's period, and what comes faster is excess.
            std::thread::sleep(PERIOD);
        }
    };
    publish(WARM_UP_EVENTS);
    let counted = allocations(shard_thread(), || publish(COUNTED_EVENTS));
    runtime.block_on(server.stop());
    counted
}

#[test]
fn covering_an_event_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for (topic, spelled, is_required) in [("HOT", "HOT", true), ("HOT", "HOT", false), ("HOT", "hot", true), ("ANY", "ANY", false)] {
        let counted = allocations_of(topic, spelled, is_required);
        assert_eq!(counted, 0, "allocations for {COUNTED_EVENTS} events of {topic}, spelled {spelled}, required: {is_required}");
    }
}
