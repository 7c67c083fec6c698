//! A Backup that joins and takes what it is given slowly.

use std::io::{Read, Write};

use bodkin_broker::{
    Terms,
    member::Protection,
    topic::{LossTolerance, Platform, TopicSpec},
    wire::{LinkFrame, Replication},
};
use socket2::SockRef;

use super::*;
use crate::pair::{
    PROTOCOL,
    link::{Link as PairLink, Taken, take_frames},
};

/// Events that are kept for a required subscriber that is away: more than may wait for the socket.
const KEPT: usize = 300;
const EVENT_BYTES: usize = 60_000;
/// Bytes that the Backup takes in a turn of the leader: it needs thousands of turns.
const TAKEN_BYTES: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);

/// The Backup's end of the replica channel.
struct SlowBackup {
    socket: std::net::TcpStream,
    received: Vec<u8>,
    replicas: usize,
    is_given: bool,
}

impl SlowBackup {
    /// Takes some of what there is, and acknowledges it.
    fn take(&mut self) {
        let mut bytes = [0; TAKEN_BYTES];
        let count = self.socket.read(&mut bytes).unwrap_or(0);
        self.received.extend_from_slice(&bytes[..count]);
        let (mut last, mut replicas, mut is_given) = (None, 0, false);
        let taken = take_frames(&mut self.received, |frame| {
            match frame {
                LinkFrame::Replication(Replication::Replica { position, .. }) => {
                    last = Some(position);
                    replicas += 1;
                }
                LinkFrame::Replication(Replication::SnapshotEnd { position, .. }) => (last, is_given) = (Some(position), true),
                _ => {}
            }
            Ok(Taken::Done)
        });
        taken.unwrap();
        self.replicas += replicas;
        self.is_given |= is_given;
        if let Some(position) = last {
            self.say(Replication::Ack { epoch: EPOCH, position });
        }
    }

    fn say(&mut self, frame: Replication<'_>) {
        let mut bytes = Vec::new();
        LinkFrame::Replication(frame).encode(&mut bytes);
        self.socket.write_all(&bytes).unwrap();
    }
}

impl Scene {
    /// A topic of the leader's that loses nothing.
    fn declare_lossless(&mut self, topic: &str) {
        let (made, _) = self.topics.undeclared(topic);
        let spec = TopicSpec { loss_tolerance: LossTolerance::AtMost(0), ..*made.spec };
        let terms = Terms::of(&spec, &Platform::default());
        let topic = Arc::new(RealTimeTopic { spec: Arc::new(spec), ..RealTimeTopic::clone(&made) });
        let in_backup = TopicId(self.prepared);
        self.prepared += 1;
        self.shard.prepare_for(vec![Preparation::Topic { topic, terms, in_backup }]);
    }

    /// Connects a Backup that has all changes.
    fn connect_backup(&mut self) -> SlowBackup {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (backup, _) = listener.accept().unwrap();
        SockRef::from(&socket).set_send_buffer_size(TAKEN_BYTES).unwrap();
        SockRef::from(&backup).set_recv_buffer_size(TAKEN_BYTES).unwrap();
        [&socket, &backup].into_iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let mut link = PairLink::plain(mio::net::TcpStream::from_std(socket), None, boot_time());
        link.protocol = PROTOCOL;
        self.shard.pair_tells(News::Channel { link: Box::new(link), serial: 1 });
        let mut backup = SlowBackup { socket: backup, received: Vec::new(), replicas: 0, is_given: false };
        backup.say(Replication::Have { epoch: EPOCH, number: Some(0) });
        backup
    }

    /// A turn of the leader, which finds acknowledgements; returns whether the session goes on.
    fn lead_turn(&mut self) -> bool {
        self.shard.clock.advance();
        self.shard.read_channel();
        self.shard.work(64);
        self.shard.end_turn();
        self.shard.serve_backup();
        self.shard.tell_backup_the_rest();
        self.shard.primary.as_mut().unwrap().link().is_some()
    }
}

#[test]
fn backup_that_takes_events_slowly_joins_in_one_session() {
    let mut scene = Scene::new();
    let (sensor, _sensor) = scene.publisher("sensor");
    for number in 0..KEPT {
        let topic = format!("T-{number}");
        scene.declare_lossless(&topic);
        let required = RequiredSubscriber { topic: topic.as_str().into(), name: "alarm".into(), wait: WAIT };
        scene.shard.prepare_for(vec![Preparation::Required(required)]);
    }
    scene.leads();
    scene.shard.pair_tells(News::Protection(Protection::Alone));
    for number in 0..KEPT {
        scene.publish_payload(sensor, &format!("T-{number}"), 1, &"x".repeat(EVENT_BYTES)).unwrap();
        scene.shard.work(64);
    }
    assert_eq!(scene.shard.broker.kept(), KEPT);
    let mut backup = scene.connect_backup();
    let begun = Instant::now();
    while !backup.is_given && begun.elapsed() < PATIENCE {
        assert!(scene.lead_turn(), "the session has ended with {} of {KEPT} events taken", backup.replicas);
        backup.take();
    }
    assert_eq!((backup.is_given, backup.replicas), (true, KEPT));
}
