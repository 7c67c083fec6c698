//! The keeper against a leader that is a script of frames, over real sockets.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Instant,
};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    EventId, Incarnation, PublisherId, Sequence, TopicId,
    timing::{Nanos, Span},
    topic::{LossTolerance, Period, TopicSpec},
    wire::{StreamNumber, link_frame},
};
use bodkin_store::{Opened, Store, event_log::batch, replication::Committed};

use super::*;
use crate::{
    config::HostConfig,
    pair::{PROTOCOL, RequiredSubscriber},
    topics,
};

const EPOCH: Epoch = Epoch(1);
const PATIENCE: Duration = Duration::from_secs(20);
/// Declared in the database only, by a change behind the copy.
const DECLARATION: &str = r#"{"event_type":"cold","period_ms":10,"deadline_s":60,"loss_tolerance":0,"retention":100,"publisher":"sensor"}"#;

struct Scene {
    keeper: Keeper,
    node: Arc<Inbox<Message>>,
    leadership: Arc<Leadership>,
    shard: Arc<Inbox>,
    _polls: [Poll; 2],
    leader: TcpStream,
    opened: Opened,
    _directory: tempfile::TempDir,
}

/// A database, and a change of it behind its copy.
fn database() -> (Vec<u8>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let (sender, committed) = mpsc::channel();
    let opened = Store::open_replicated(directory.path(), Box::new(move |what| sender.send(what).expect("the test listens"))).unwrap();
    opened.store.copy_to(directory.path().join("copy")).unwrap();
    let Committed::Copy(path) = committed.recv().unwrap() else { panic!("nothing was written") };
    let copy = std::fs::read(path.unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (store, cold) = (opened.store.clone(), EventType::parse("cold").unwrap());
    runtime.spawn(async move { store.write(move |draft| draft.declare_topic(&cold, DECLARATION), |_, ()| ()).await });
    let Committed::Group(mut group) = committed.recv().unwrap() else { panic!("it was written") };
    (copy, group.operations.remove(0))
}

/// The leader's end and the keeper's.
fn connection(protocol: u16) -> (TcpStream, Box<Link>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let leader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    leader.set_read_timeout(Some(PATIENCE)).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut link = Box::new(Link::plain(mio::net::TcpStream::from_std(socket), None, boot_time()));
    link.protocol = protocol;
    (leader, link)
}

impl Scene {
    fn new() -> Self {
        Self::speaking(PROTOCOL)
    }

    fn speaking(protocol: u16) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let hot = TopicSpec {
            loss_tolerance: LossTolerance::AtMost(0),
            retention: 100,
            ..TopicSpec::best_effort(Period::Every(Nanos::from_millis(10)))
        };
        let declared =
            topics::DeclaredTopic { event_type: EventType::parse("hot").unwrap(), spec: hot.into(), permitted: Default::default() };
        let config = HostConfig { topics: [declared].into(), ..HostConfig::on_loopback(directory.path()) };
        let (topics, _) = topics::admit_configured(&config).unwrap();
        let poll = Poll::new().unwrap();
        let node = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), Token(0)).unwrap()));
        let nobody = Poll::new().unwrap();
        let shard = Arc::new(Inbox::new(mio::Waker::new(nobody.registry(), Token(0)).unwrap()));
        let leadership = Arc::new(Leadership::default());
        let keeper = Keeper::start(node.clone(), leadership.clone(), Realtime::ordinary()).unwrap();
        let reports = keeper.inbox().clone();
        let reporter = Box::new(move |report| reports.post(KeeperMessage::Report(report)));
        let (opened, following) = Store::follow(directory.path(), reporter).unwrap();
        keeper.tell(KeeperMessage::Attached(Box::new(Follows { following, topics, topics_max: 10, shard: shard.clone() })));
        let (leader, link) = connection(protocol);
        keeper.tell(KeeperMessage::Follow { link, serial: 1, epoch: EPOCH });
        keeper.tell(KeeperMessage::Logged { serial: 1, newest: Vec::new() });
        Self { keeper, node, leadership, shard, _polls: [poll, nobody], leader, opened, _directory: directory }
    }

    /// The leader connects anew; the event log is empty.
    fn connect(&mut self, serial: u64) {
        self.follow(serial);
        self.keeper.tell(KeeperMessage::Logged { serial, newest: Vec::new() });
    }

    fn follow(&mut self, serial: u64) {
        let (leader, link) = connection(PROTOCOL);
        self.leader = leader;
        self.keeper.tell(KeeperMessage::Follow { link, serial, epoch: EPOCH });
    }

    /// What it says that it has, on a connection that has just begun: which of these records, and up to which operation.
    fn has_of(&mut self, records: &[RecordName]) -> Option<u64> {
        let mut received = Vec::new();
        let mut logged = records.iter();
        loop {
            let mut bytes = [0; 64];
            let count = self.leader.read(&mut bytes).unwrap();
            assert!(count > 0, "it has closed the connection");
            received.extend_from_slice(&bytes[..count]);
            while let Some((frame, rest)) = link_frame(&received).unwrap() {
                match LinkFrame::decode(frame).unwrap() {
                    LinkFrame::Replication(Replication::Logged { epoch: EPOCH, time_utc_ns, publisher, incarnation, topic, sequence }) => {
                        let id = EventId { publisher, incarnation, topic, sequence };
                        assert_eq!(Some(&RecordName { time_ns: time_utc_ns, id }), logged.next());
                    }
                    LinkFrame::Replication(Replication::Have { epoch: EPOCH, number }) => {
                        assert_eq!((rest.len(), logged.len()), (0, 0), "it is the last word of all that are there");
                        return number;
                    }
                    other => panic!("{other:?}"),
                }
                received = rest.to_vec();
            }
        }
    }

    fn has(&mut self) -> Option<u64> {
        self.has_of(&[])
    }

    fn ended(&self, serial: u64) {
        self.told(|message| matches!(message, Message::ChannelEnded { serial: ended } if ended == serial).then_some(()));
    }

    fn say(&mut self, frames: &[Replication<'_>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| LinkFrame::Replication(*frame).encode(&mut bytes));
        self.leader.write_all(&bytes).unwrap();
    }

    /// Reads acknowledgements until everything up to a position has one.
    fn acknowledged(&mut self, through: u64) {
        let mut received = Vec::new();
        loop {
            let mut bytes = [0; 64];
            let count = self.leader.read(&mut bytes).unwrap();
            assert!(count > 0, "it has closed the connection");
            received.extend_from_slice(&bytes[..count]);
            while let Some((frame, rest)) = link_frame(&received).unwrap() {
                match LinkFrame::decode(frame).unwrap() {
                    LinkFrame::Replication(Replication::Have { epoch: EPOCH, .. }) => {}
                    LinkFrame::Replication(Replication::Ack { epoch: EPOCH, position }) if position.0 == through => return,
                    LinkFrame::Replication(Replication::Ack { epoch: EPOCH, position }) if position.0 < through => {}
                    other => panic!("{other:?}"),
                }
                received = rest.to_vec();
            }
        }
    }

    /// Waits until the shard was asked what the event log has for the leader on so many connections: on which.
    fn asked_for_records(&self, count: usize) -> Vec<u64> {
        let (begun, mut messages, mut asked) = (Instant::now(), Vec::new(), Vec::new());
        while asked.len() < count && begun.elapsed() < PATIENCE {
            self.shard.take(&mut messages);
            asked.extend(messages.drain(..).filter_map(|message| match message {
                inbox::Message::Pair(News::NameRecords { serial }) => Some(serial),
                _ => None,
            }));
            thread::sleep(Duration::from_millis(2));
        }
        asked
    }

    /// What the shard was told so that it is ready to lead.
    fn prepared(&self) -> Vec<Preparation> {
        let mut messages = Vec::new();
        self.shard.take(&mut messages);
        let preparations = messages.into_iter().filter_map(|message| match message {
            inbox::Message::Pair(News::Prepare(preparations)) => Some(preparations),
            _ => None,
        });
        preparations.flatten().collect()
    }

    /// Waits until the node is told something that fits.
    fn told<T>(&self, fits: impl Fn(Message) -> Option<T>) -> T {
        let (begun, mut messages) = (Instant::now(), Vec::new());
        while begun.elapsed() < PATIENCE {
            self.node.take(&mut messages);
            if let Some(found) = messages.drain(..).find_map(&fits) {
                return found;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("the node is not told")
    }
}

/// A preparation, in short.
fn words(preparation: &Preparation) -> String {
    match preparation {
        Preparation::Topic { topic, .. } => {
            let deadline = match topic.spec.deadline {
                Span::Finite(deadline) => format!("{}ms", deadline.get() / 1_000_000),
                Span::Infinite => "none".to_owned(),
            };
            let by = topic.permitted.names().map(|name| format!(" by {name}")).collect::<String>();
            format!("{} within {deadline}{by}", topic.event_type)
        }
        Preparation::Required(RequiredSubscriber { topic, name, .. }) => format!("{topic} waits for {name}"),
        Preparation::NotRequired { topic, name } => format!("{topic} does not wait for {name}"),
        Preparation::NobodyRequired => "nobody is required".to_owned(),
    }
}

fn payload(number: u32) -> Vec<u8> {
    let json = format!(r#"{{"eventType":"HOT","metaData":null,"payload":"{number}","timeStamp":"2026-01-01T00:00:00Z"}}"#);
    [&7_u64.to_be_bytes()[..], &1_800_000_000_000_000_000_u64.to_be_bytes(), json.as_bytes()].concat()
}

fn open<'a>(stream: u32, topic: &'a str) -> Replication<'a> {
    Replication::StreamOpen { epoch: EPOCH, stream: StreamNumber(stream), publisher: PublisherId(7), incarnation: Incarnation(9), topic }
}

fn replica(position: u64, stream: u32, sequence: u64, payload: &[u8]) -> Replication<'_> {
    let (position, stream, sequence) = (Position(position), StreamNumber(stream), Sequence(sequence));
    Replication::Replica { epoch: EPOCH, position, stream, sequence, created_utc_ns: 1_800_000_000_000_000_000, payload }
}

#[test]
fn what_a_leader_gives_is_acknowledged_when_it_is_safe_and_given_away_as_it_is() {
    let (copy, operation) = database();
    let mut scene = Scene::new();
    let epoch = EPOCH;
    let events: Vec<Vec<u8>> = (1..=4).map(payload).collect();
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(3) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    // All at once: the copy is to be saved in front of the change, and that one in front of the stream of the topic that it declares.
    scene.say(&[
        Replication::Required { epoch, wait_ns: 7, topic: "COLD", subscriber: "early" },
        Replication::Control { epoch, position: Position(4), operation: &operation },
        open(1, "HOT"),
        Replication::Required { epoch, wait_ns: 1_000_000_000, topic: "HOT", subscriber: "alarm" },
        Replication::Required { epoch, wait_ns: 1, topic: "HOT", subscriber: "gone" },
        Replication::NotRequired { epoch, topic: "HOT", subscriber: "gone" },
        replica(5, 1, 1, &events[0]),
        Replication::Asked { epoch, loss_tolerance: Some(0), deadline_ns: Some(40_000_000), topic: "HOT" },
        Replication::Asked { epoch, loss_tolerance: None, deadline_ns: Some(1_000_000), topic: "COLD" },
        Replication::Asked { epoch, loss_tolerance: None, deadline_ns: None, topic: "COLD" },
        open(2, "COLD"),
        replica(6, 2, 1, &events[1]),
        Replication::SnapshotEnd { epoch, position: Position(7) },
        replica(8, 1, 2, &events[2]),
        Replication::Discard { epoch, stream: StreamNumber(1), through: Sequence(1) },
        Replication::Graph { epoch, position: Position(9), graph: "press", checkpoint: b"older" },
        Replication::Graph { epoch, position: Position(10), graph: "press", checkpoint: b"newest" },
        Replication::Graph { epoch, position: Position(11), graph: "removed", checkpoint: b"it was there" },
        Replication::Graph { epoch, position: Position(12), graph: "removed", checkpoint: b"" },
    ]);
    scene.acknowledged(12);
    assert_eq!(scene.told(|message| if let Message::Warm(epoch) = message { Some(epoch) } else { None }), EPOCH);
    // What the connection still holds counts, although nobody will acknowledge it.
    scene.say(&[replica(13, 1, 3, &events[3])]);
    scene.keeper.tell(KeeperMessage::Give);
    let given = scene.told(|message| if let Message::Given(given) = message { Some(given) } else { None });
    let Promoted { backup, kept, asked, graphs } = *given.expect("it has everything");
    assert_eq!(backup.kept(), 3);
    assert_eq!(graphs, [("press".into(), b"newest".to_vec())].into());
    assert_eq!(asked.iter().map(|(topic, _)| &**topic).collect::<Vec<_>>(), ["HOT"]);
    let told: Vec<String> = scene.prepared().iter().map(words).collect();
    let expected = [
        "nobody is required",
        "COLD waits for early",
        "HOT waits for alarm",
        "HOT waits for gone",
        "HOT does not wait for gone",
        "HOT within 40ms",
        "COLD within 60000ms by sensor",
    ];
    for line in expected {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
    }
    let texts = kept.iter().filter(|kept| !kept.is_empty()).map(|kept| kept.publication().payload().text().into_owned());
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    assert_eq!(texts, ["2", "3", "4"]);

    // The database has the change.
    assert_eq!(scene.opened.store.read_now(|draft| draft.declared_topics()).unwrap(), [DECLARATION]);
}

#[test]
fn what_cannot_be_meant_ends_the_channel_and_nothing_is_given() {
    let epoch = EPOCH;
    let event = payload(1);
    let begin = Replication::SnapshotBegin { epoch, position: Position(0) };
    let cases: [&[Replication<'_>]; 4] = [
        &[open(1, "HOT")],
        &[begin, replica(1, 1, 1, &event)],
        &[Replication::Ack { epoch, position: Position(1) }],
        &[Replication::SnapshotBegin { epoch: Epoch(3), position: Position(0) }],
    ];
    for frames in cases {
        let mut scene = Scene::new();
        scene.say(frames);
        assert_eq!(scene.told(|message| if let Message::ChannelEnded { serial } = message { Some(serial) } else { None }), 1, "{frames:?}");
        scene.keeper.tell(KeeperMessage::Give);
        let given = scene.told(|message| if let Message::Given(given) = message { Some(given) } else { None });
        assert!(given.is_none(), "{frames:?}");
        let told = scene.leadership.troubles().texts();
        assert!(told.len() == 1 && told[0].contains("does not take over"), "{frames:?}: {told:?}");
    }
}

#[test]
fn impossible_frames_of_a_leader_end_the_channel_alone() {
    let (copy, operation) = database();
    let epoch = EPOCH;
    let mut scene = Scene::new();
    let (event, last) = (payload(1), u64::MAX);
    let control = |position| Replication::Control { epoch, position: Position(position), operation: &operation };
    let close = |stream| Replication::StreamClose { epoch, stream: StreamNumber(stream) };
    let discard = Replication::Discard { epoch, stream: StreamNumber(1), through: Sequence(last) };
    let numbered = Replication::Numbered { epoch, number: last };
    // After a copy that ends at a position. The second number of a stream, and positions that do not follow, end the channel.
    let cases: [(u64, &[Replication<'_>]); 8] = [
        (0, &[open(1, "HOT"), open(2, "HOT"), close(1), close(2)]),
        (last, &[control(0)]),
        (last - 1, &[control(last), control(0)]),
        (0, &[control(last)]),
        (0, &[open(1, "HOT"), discard, replica(1, 1, last, &event), replica(2, 2, 1, &event)]),
        (0, &[Replication::Control { epoch, position: Position(1), operation: &[] }]),
        (0, &[numbered, control(1), control(3)]),
        (0, &[open(1, "HOT"), Replication::SnapshotEnd { epoch, position: Position(1) }, replica(2, 1, 1, b"unreadable")]),
    ];
    for (serial, (position, frames)) in (1..).zip(cases) {
        if serial > 1 {
            scene.connect(serial);
        }
        scene.say(&[Replication::SnapshotBegin { epoch, position: Position(position) }]);
        copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
        scene.say(frames);
        scene.ended(serial);
    }
    // It is in sync, so that it may lead, and keeps nothing that cannot be read.
    scene.keeper.tell(KeeperMessage::Give);
    let given = scene.told(|message| if let Message::Given(given) = message { Some(given) } else { None });
    assert_eq!(given.expect("it has everything").backup.kept(), 0);
}

#[test]
fn events_of_durable_types_are_acknowledged_when_the_event_log_has_them() {
    let (copy, _) = database();
    let mut scene = Scene::new();
    let epoch = EPOCH;
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(0) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[Replication::SnapshotEnd { epoch, position: Position(1) }]);
    scene.acknowledged(1);
    let (records, event) = (vec![batch::FORM, 1, 2, 3], payload(1));
    scene.say(&[Replication::Control { epoch, position: Position(2), operation: &records }, open(1, "HOT"), replica(3, 1, 1, &event)]);
    let (begun, mut messages) = (Instant::now(), Vec::new());
    let ticket = loop {
        assert!(begun.elapsed() < PATIENCE, "the shard is given nothing");
        scene.shard.take(&mut messages);
        let found = messages.drain(..).find_map(|message| match message {
            inbox::Message::Pair(News::Records { batch, ticket }) => Some((batch, ticket)),
            _ => None,
        });
        if let Some((batch, ticket)) = found {
            assert_eq!(*batch, *records);
            break ticket;
        }
        thread::sleep(Duration::from_millis(2));
    };
    scene.keeper.tell(KeeperMessage::Recorded { ticket, result: Ok(()) });
    scene.acknowledged(3);
    scene.say(&[Replication::Control { epoch, position: Position(4), operation: &records }]);
    scene
        .keeper
        .tell(KeeperMessage::Recorded { ticket: Ticket { position: Position(4), ..ticket }, result: Err("the disk is full".into()) });
    scene.told(|message| if let Message::ChannelEnded { serial } = message { Some(serial) } else { None });
}

#[test]
fn wish_before_its_topics_declaration_holds_once_declared() {
    let (copy, operation) = database();
    let epoch = EPOCH;
    let mut scene = Scene::new();
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(0) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[
        Replication::Asked { epoch, loss_tolerance: None, deadline_ns: Some(40_000_000), topic: "COLD" },
        Replication::Control { epoch, position: Position(1), operation: &operation },
        Replication::SnapshotEnd { epoch, position: Position(2) },
    ]);
    scene.acknowledged(2);
    let told: Vec<String> = scene.prepared().iter().map(words).collect();
    assert_eq!(told.last().map(String::as_str), Some("COLD within 40ms by sensor"), "{told:?}");
}

#[test]
fn a_frame_that_the_protocol_does_not_have_ends_the_channel() {
    let (copy, _) = database();
    let epoch = EPOCH;
    let mut scene = Scene::speaking(1);
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(0) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[Replication::SnapshotEnd { epoch, position: Position(1) }]);
    scene.acknowledged(1);
    scene.say(&[Replication::Asked { epoch, loss_tolerance: Some(0), deadline_ns: None, topic: "HOT" }]);
    scene.told(|message| if let Message::ChannelEnded { serial } = message { Some(serial) } else { None });
}

#[test]
fn what_the_event_log_has_is_said_first_on_the_connection_that_it_was_asked_for() {
    let mut scene = Scene::new();
    let record = |sequence| RecordName {
        time_ns: 1_800_000_000_000_000_000,
        id: EventId { publisher: PublisherId(7), incarnation: Incarnation(9), topic: TopicId(2), sequence: Sequence(sequence) },
    };
    let newest = vec![record(5), record(4)];
    assert_eq!(scene.has(), None);
    scene.follow(2);
    scene.ended(1);
    assert_eq!(scene.asked_for_records(2), [1, 2]);
    scene.keeper.tell(KeeperMessage::Logged { serial: 1, newest: vec![record(1)] });
    scene.keeper.tell(KeeperMessage::Logged { serial: 2, newest: newest.clone() });
    assert_eq!(scene.has_of(&newest), None);
}

#[test]
fn who_has_followed_says_what_it_has_and_goes_on_behind_it_unless_that_cannot_be_gone_on_from() {
    let (copy, operation) = database();
    let epoch = EPOCH;
    let mut scene = Scene::new();
    assert_eq!(scene.has(), None);
    scene.say(&[Replication::Numbered { epoch, number: 5 }, Replication::SnapshotBegin { epoch, position: Position(0) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[
        Replication::Control { epoch, position: Position(1), operation: &operation },
        Replication::SnapshotEnd { epoch, position: Position(2) },
    ]);
    scene.acknowledged(2);

    scene.connect(2);
    assert_eq!(scene.has(), Some(6));
    let wrong = b"\x01\0\0\0\0DELETE FROM nothing;";
    // The sixth was repeated; the eighth cannot be.
    scene.say(&[
        Replication::Numbered { epoch, number: 5 },
        Replication::Tail { epoch, position: Position(10) },
        Replication::Control { epoch, position: Position(11), operation: wrong },
        open(1, "COLD"),
        Replication::SnapshotEnd { epoch, position: Position(12) },
    ]);
    scene.acknowledged(12);
    scene.say(&[Replication::Numbered { epoch, number: 7 }, Replication::Control { epoch, position: Position(13), operation: wrong }]);
    scene.ended(2);
    scene.connect(3);
    assert_eq!(scene.has(), None, "it would be sent the same for ever");
    // The leader dies before it has said that this one is out: nobody was told that the change is here, and events are.
    scene.keeper.tell(KeeperMessage::Give);
    let given = scene.told(|message| if let Message::Given(given) = message { Some(given) } else { None });
    assert!(given.is_some(), "the node has said that it has everything");
}

#[test]
fn acknowledgement_of_an_earlier_connection_is_not_sent_on_a_new_one() {
    let (copy, _) = database();
    let epoch = EPOCH;
    let mut scene = Scene::new();
    let event = payload(1);
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(0) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[open(1, "HOT"), Replication::SnapshotEnd { epoch, position: Position(1) }]);
    scene.acknowledged(1);
    // What comes with the end of the connection is taken, and nobody is there to hear of it.
    scene.say(&[replica(2, 1, 1, &event)]);
    scene.leader.shutdown(std::net::Shutdown::Both).unwrap();
    scene.ended(1);
    scene.connect(2);
    assert_eq!(scene.has(), None, "it is the first word");
    scene.say(&[Replication::SnapshotBegin { epoch, position: Position(7) }]);
    copy.chunks(50_000).for_each(|part| scene.say(&[Replication::SnapshotPart { epoch, part }]));
    scene.say(&[Replication::SnapshotEnd { epoch, position: Position(8) }]);
    scene.acknowledged(8);
}
