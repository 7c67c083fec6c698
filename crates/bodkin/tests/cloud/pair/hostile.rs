//! A process that is accepted as a node of a pair, and then sends what no node sends.
//!
//! What an accepted node may say is believed, so none of it is sent here: that it leads, that it refuses another node, or that another process
//! is the third node.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use bodkin_broker::{
    Epoch, Incarnation, Node as Name, PairId, PublisherId, Sequence, TopicId,
    wire::{
        Ballot, BallotRefusal, Claim, LINK_FRAME_BYTES_MAX, LinkFrame, Position, Replication, Role, Standing, StreamNumber, link_frame,
    },
};
use bodkin_store::event_log::NAMES_MAX;
use nix::sys::signal::Signal;

use super::duplicates::{logs, valid_frames};
use super::nodes::{Node, PATIENT_MS, Pair};
use crate::support::cloud::System;
use crate::support::patience::{PATIENCE, eventually_some};

const INCARNATION: Incarnation = Incarnation(u64::MAX);
const MAX: u64 = u64::MAX;
/// The protocol of the link.
const PROTOCOL: u16 = 4;

fn encode(frame: LinkFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

fn of(frame: Replication<'_>) -> Vec<u8> {
    encode(LinkFrame::Replication(frame))
}

/// A connection to a node of the pair.
struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    fn new(socket: TcpStream) -> Self {
        socket.set_nonblocking(false).expect("it blocks");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket, received: Vec::new() }
    }

    /// The next whole frame; `None` if the node has closed the connection.
    fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((frame, rest)) = link_frame(&self.received).expect("a frame of a node") {
                let (frame, rest) = (frame.to_vec(), rest.to_vec());
                self.received = rest;
                return Some(frame);
            }
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the node says nothing and does not close the connection"),
                Err(_) => return None,
            }
        }
    }

    /// Sends this, which breaks the protocol in the end: the node closes the connection.
    fn attack(mut self, bytes: &[u8]) {
        // It may close in the middle.
        let _ = self.socket.write_all(bytes);
        while self.frame().is_some() {}
    }
}

/// The process that is accepted.
struct Impostor {
    name: Name,
    /// Where the other nodes expect it.
    listener: TcpListener,
    pair: Option<PairId>,
    /// The leader's epoch.
    epoch: Epoch,
}

impl Impostor {
    fn at(address: SocketAddr, name: Name) -> Self {
        let listener = eventually_some(|| TcpListener::bind(address).ok()).expect("the node has ended");
        listener.set_nonblocking(true).expect("it does not block");
        Self { name, listener, pair: None, epoch: Epoch::NONE }
    }

    /// The next connection of another node.
    fn dialled(&self) -> io::Result<TcpStream> {
        eventually_some(|| self.listener.accept().ok()).map(|(socket, _)| socket).ok_or(ErrorKind::TimedOut.into())
    }

    /// Greets until it is accepted: the former process is waited for.
    fn accepted(&mut self, connect: impl Fn(&Self) -> io::Result<TcpStream>) -> Connection {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let Ok(socket) = connect(self) else { continue };
            if let Some(connection) = self.greet(Connection::new(socket)) {
                return connection;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it is not accepted")
    }

    fn greet(&mut self, mut connection: Connection) -> Option<Connection> {
        let (epoch, pair) = (self.epoch, self.pair);
        let role = if self.name == Name::Witness { Role::Witness } else { Role::Follower };
        let greeting =
            Replication::Greeting { epoch, protocol: PROTOCOL, protocol_min: PROTOCOL, node: self.name, role, incarnation: INCARNATION };
        let ns = |milliseconds: u64| milliseconds * 1_000_000;
        let [lease_ns, heartbeat_ns, detect_jitter_ns, redirect_ns] = PATIENT_MS.map(ns);
        let identity =
            Replication::Identity { epoch, pair, lease_ns, heartbeat_ns, detect_jitter_ns, redirect_ns, drift_ppm: 200, topics: None };
        connection.socket.write_all(&[of(greeting), of(identity)].concat()).ok()?;
        loop {
            match LinkFrame::decode(&connection.frame()?).expect("a frame of a node") {
                LinkFrame::Replication(Replication::Greeting { .. }) => {}
                LinkFrame::Replication(Replication::Identity { epoch, pair, .. }) => {
                    (self.pair, self.epoch) = (self.pair.or(pair), self.epoch.max(epoch));
                }
                LinkFrame::Replication(Replication::Rejected { .. } | Replication::Channel { .. }) => return None,
                _ => return Some(connection),
            }
        }
    }

    /// The replica channel that the leader makes while the ballots' connection lives.
    fn channel(&self) -> Connection {
        loop {
            let mut connection = Connection::new(self.dialled().expect("the leader makes a channel"));
            let Some(frame) = connection.frame() else { continue };
            if let LinkFrame::Replication(Replication::Channel { epoch, .. }) = LinkFrame::decode(&frame).expect("a frame of a node") {
                let (protocol, protocol_min) = (PROTOCOL, PROTOCOL);
                let agreed = Replication::Channel { epoch, protocol, protocol_min, node: self.name, incarnation: INCARNATION };
                connection.socket.write_all(&of(agreed)).expect("it listens");
                return connection;
            }
        }
    }
}

/// What does not belong on a connection for ballots.
fn misplaced() -> Vec<u8> {
    of(Replication::Ack { epoch: Epoch(1), position: Position(MAX) })
}

/// Ballots that no node sends: each is refused, and the connection stays until something breaks the protocol.
fn impossible_ballots(name: Name, current: Epoch) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let foreign = current.next_of(if name == Name::Second { Name::First } else { Name::Second });
    for epoch in [Epoch(MAX), Epoch(MAX - 1), Epoch::MAX, foreign, Epoch::NONE] {
        for (number, lease_ns, out) in [(0, 0, None), (MAX, MAX, Some(Name::First)), (MAX, MAX, Some(Name::Second))] {
            let standing = Standing { epoch, number, out };
            let sent_at_ns = number;
            frames.push(Ballot::RenewRequest { epoch, sent_at_ns, lease_ns, standing });
            frames.push(Ballot::Grant { epoch, sent_at_ns, standing });
            frames.push(Ballot::VoteRequest { epoch, sent_at_ns, lease_ns, standing, warm: true, forced: true });
            frames.push(Ballot::Vote { epoch, sent_at_ns });
            frames.push(Ballot::Refused { epoch, asked: Epoch(MAX), reason: BallotRefusal::Stale, retry_after_ns: lease_ns });
        }
        let (claim, node) = (Claim::Promised, name);
        frames.push(Ballot::Sighting { epoch, pair: None, node, incarnation: Some(INCARNATION), claim, number: MAX, answers: MAX });
    }
    // Of an epoch that counts: a statement that its leader has not made, and a grant of what was not asked for yet.
    let standing = Standing { epoch: current, number: MAX, out: None };
    frames.push(Ballot::Grant { epoch: current, sent_at_ns: MAX, standing });
    frames.into_iter().map(|ballot| encode(LinkFrame::Ballot(ballot))).collect()
}

/// Frames of the replica channel, with the largest numbers.
fn replication(epoch: Epoch) -> Vec<Vec<u8>> {
    let (position, stream, payload) = (Position(MAX), StreamNumber(u32::MAX), &vec![0xff; LINK_FRAME_BYTES_MAX - 64][..]);
    let frames = [
        Replication::Replica { epoch, position, stream, sequence: Sequence(MAX), created_utc_ns: MAX, payload },
        Replication::Control { epoch, position, operation: payload },
        Replication::Graph { epoch, position, graph: "graph", checkpoint: payload },
        Replication::SnapshotBegin { epoch, position },
        Replication::SnapshotPart { epoch, part: payload },
        Replication::SnapshotEnd { epoch, position },
        Replication::Tail { epoch, position },
        Replication::Numbered { epoch, number: MAX },
        Replication::Required { epoch, wait_ns: MAX, topic: "", subscriber: "" },
        Replication::Heartbeat { epoch: Epoch(MAX), progress: MAX },
        Replication::ClockReply { epoch, sent_utc_ns: MAX, received_utc_ns: 0, replied_utc_ns: MAX },
        Replication::Duplicate { epoch, node: Name::Witness, address: "\u{1b}[2J" },
    ];
    frames.into_iter().map(of).collect()
}

/// Bytes of a seed (xorshift), as frames and as they are.
fn drawn(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::new();
    for _ in 0..8 {
        let length = 2 + (draw() % 80) as u32;
        bytes.extend_from_slice(&length.to_be_bytes());
        // Of a known kind, but none that is believed of an accepted node.
        let kind = [2, 3, 4, 5, 18, 19, 20, 21, 25, 27, 28, 30, 36, 40][(draw() % 14) as usize];
        bytes.extend([1, kind]);
        bytes.extend((2..length).map(|_| draw() as u8));
    }
    bytes.extend((0..64).map(|_| draw() as u8));
    // Too long to be a frame, should the bytes before be some.
    bytes.extend([0xff; LINK_FRAME_BYTES_MAX / 64]);
    bytes
}

/// Attacks a node over connections that it accepts.
fn attack(impostor: &mut Impostor, connect: impl Fn(&Impostor) -> io::Result<TcpStream>) {
    impostor.accepted(&connect).attack(&misplaced());
    let ballots = [impossible_ballots(impostor.name, impostor.epoch).concat(), misplaced()].concat();
    impostor.accepted(&connect).attack(&ballots);
    for frame in replication(impostor.epoch) {
        impostor.accepted(&connect).attack(&[frame, misplaced()].concat());
    }
    for frame in valid_frames() {
        let is_believed = matches!(
            LinkFrame::decode(&frame[4..]),
            Ok(LinkFrame::Ballot(Ballot::RenewRequest { .. } | Ballot::VoteRequest { .. } | Ballot::Sighting { .. })
                | LinkFrame::Replication(Replication::Rejected { .. } | Replication::Channel { .. }))
        );
        if !is_believed {
            impostor.accepted(&connect).attack(&[&frame, &misplaced()[..]].concat());
        }
        // In the middle of a frame it is the other side that ends.
        let mut cut = impostor.accepted(&connect);
        cut.socket.write_all(&frame[..frame.len() - 1]).expect("it listens");
    }
    for seed in 1..20 {
        impostor.accepted(&connect).attack(&drawn(seed));
    }
}

/// Attacks the leader over replica channels, with the connection for ballots open.
fn attack_channel(impostor: &mut Impostor) {
    let ballots = impostor.accepted(Impostor::dialled);
    let epoch = impostor.epoch;
    let mut beating = ballots.socket.try_clone().expect("a socket");
    let beats = thread::spawn(move || {
        while beating.write_all(&of(Replication::Heartbeat { epoch, progress: 1 })).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let ack = |position| of(Replication::Ack { epoch, position: Position(position) });
    let have = of(Replication::Have { epoch, number: Some(MAX) });
    let named = |number: u64| {
        let (publisher, incarnation, topic) = (PublisherId(MAX), Incarnation(MAX), TopicId(MAX));
        of(Replication::Logged { epoch, time_utc_ns: number, publisher, incarnation, topic, sequence: Sequence(MAX) })
    };
    let graph = Replication::Graph { epoch, position: Position(1), graph: "graph", checkpoint: &vec![0; LINK_FRAME_BYTES_MAX - 64] };
    let scripts = [
        [have.clone(), ack(MAX)].concat(),
        [have.clone(), ack(0), ack(1 << 40)].concat(),
        [have.clone(), have].concat(),
        (0..=NAMES_MAX as u64).flat_map(named).collect(),
        of(graph),
        drawn(99),
    ];
    for script in scripts {
        impostor.channel().attack(&script);
    }
    ballots.socket.shutdown(std::net::Shutdown::Both).expect("it is open");
    beats.join().expect("it ends");
}

/// Holds that a node leads and answers, and that its log says why connections were closed, in few and short lines.
fn outlives(leader: &Node, begun: Instant) {
    assert_eq!(leader.gauge("bodkin_pair_leads"), 1, "{}", leader.said());
    let echo = leader.call(System::ServiceRegistry, "GET", "/serviceregistry/echo", None).expect("an answer");
    assert_eq!(echo.status, 200);
    logs(leader, begun, "a connection of the pair was closed", 8);
    let said = leader.said();
    assert!(said.lines().all(|line| line.len() < 2_000), "a line is as long as a frame");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn accepted_standby_that_sends_impossible_frames_ends_no_node() {
    let (pair, witness, backup, primary) = Pair::new().patient().begin();
    let begun = Instant::now();
    backup.signal(Signal::SIGKILL);
    drop(backup);
    let mut impostor = Impostor::at(pair.peer().parse().expect("an address"), Name::Second);
    attack(&mut impostor, Impostor::dialled);
    attack_channel(&mut impostor);
    outlives(&primary, begun);
    let address = witness.pair_address();
    attack(&mut impostor, |_| TcpStream::connect(address));
    outlives(&primary, begun);
    logs(&witness, begun, "a connection of the pair was closed", 8);
    assert_eq!(witness.stop(), Some(0), "it runs until it is stopped");
}

#[test]
fn accepted_witness_that_sends_impossible_frames_ends_no_node() {
    let (_pair, witness, backup, primary) = Pair::new().patient().begin();
    let (begun, address) = (Instant::now(), witness.pair_address());
    witness.signal(Signal::SIGKILL);
    drop(witness);
    // Both candidates connect to it.
    attack(&mut Impostor::at(address, Name::Witness), Impostor::dialled);
    outlives(&primary, begun);
    logs(&backup, begun, "a connection of the pair was closed", 8);
    primary.protected(true);
}
