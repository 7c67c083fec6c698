//! Two processes of one node of a pair: the second one is refused, and all nodes say so. Settings that differ are reported.

use std::{
    fs,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::nodes::{LEASE, Node, Pair};
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;

/// What `status` says of a node's pair.
fn troubles(node: &Node) -> String {
    // A node that follows answers 503, with the same sentences.
    node.call(System::Monitor, "GET", "/api/v1/overview", None).expect("an answer").text()
}

/// Holds for a while that only `leader` leads, in its epoch.
fn leads_undisturbed(leader: &Node, other: &Node) {
    let epoch = leader.gauge("bodkin_pair_epoch");
    for _ in 0..20 {
        assert_eq!((leader.gauge("bodkin_pair_leads"), other.gauge("bodkin_pair_leads")), (1, 0));
        thread::sleep(LEASE / 4);
    }
    assert_eq!(leader.gauge("bodkin_pair_epoch"), epoch, "the second process disturbs the first one");
    assert_eq!(leader.gauge("bodkin_pair_unreached"), 0);
}

/// The log of the process that is refused, of the node that refuses, and of a node that is told.
const REJECTED: &str = "this process is refused by a node of the pair, and neither leads nor votes";
const REFUSED: &str = "a process that claims to be a node of the pair was refused";
const REPORTED: &str = "a second process of a node of the pair was refused at another node";

/// Holds that a node logs this, so many times a minute at most.
pub fn logs(node: &Node, begun: Instant, line: &str, per_minute: usize) {
    assert!(eventually(|| node.said().contains(line)), "{line}: {}", node.said());
    let minutes = 1 + begun.elapsed().as_secs() as usize / 60;
    assert!(node.said().matches(line).count() <= per_minute * minutes, "{line}: {}", node.said());
}

/// A second process of the Primary is refused, whatever `prepare` has given it in the data directory `second`.
pub fn second_primary_is_refused(pair: Pair, prepare: impl FnOnce(&Pair)) {
    let (pair, witness, backup, primary) = pair.begin();
    prepare(&pair);
    let begun = Instant::now();
    let second = pair.second(&["up", "--role", "primary", "--peer", &pair.peer()], "second");
    assert!(eventually(|| second.gauge("bodkin_pair_rejected") == 2), "{}", second.said());
    leads_undisturbed(&primary, &second);
    assert!(troubles(&second).contains("is refused by the witness"), "{}", troubles(&second));
    assert!(second.said().contains("another process of the same node is running: stop one of the two"), "{}", second.said());
    for node in [&primary, &backup] {
        assert!(eventually(|| node.gauge("bodkin_pair_duplicates") == 1), "{}", node.said());
        assert!(troubles(node).contains("127.0.0.1:"), "{}", troubles(node));
    }
    logs(&second, begun, REJECTED, 2);
    logs(&witness, begun, REFUSED, 1);
    logs(&backup, begun, REFUSED, 1);
    logs(&primary, begun, REPORTED, 1);
    // The first one ends: the second one may be the node from then on, and has what was answered before it leads.
    primary.signal(Signal::SIGKILL);
    assert!(eventually(|| second.gauge("bodkin_pair_rejected") == 0 && second.gauge("bodkin_pair_unreached") == 0), "{}", second.said());
    backup.protected(true);
    assert_eq!(second.gauge("bodkin_pair_leads"), 0);
}

#[test]
fn second_primary_with_own_data_is_refused() {
    second_primary_is_refused(Pair::new(), |_| ());
}

#[test]
fn cloned_primary_is_refused() {
    second_primary_is_refused(Pair::new(), |pair| pair.clone_record("primary", "second"));
}

#[test]
fn second_standby_is_refused() {
    let (pair, witness, backup, primary) = Pair::protected();
    let begun = Instant::now();
    let second = pair.second(&["backup", "--pair-listen", "127.0.0.1:0"], "second");
    assert!(eventually(|| second.gauge("bodkin_pair_rejected") == 1), "{}", second.said());
    leads_undisturbed(&primary, &second);
    for node in [&primary, &backup] {
        assert!(eventually(|| node.gauge("bodkin_pair_duplicates") == 1), "{}", node.said());
        logs(node, begun, REPORTED, 1);
    }
    assert_shown(primary.address(System::Monitor), "BodkinPairDuplicate");
    assert_shown(second.address(System::Monitor), "BodkinPairRejected");
    logs(&second, begun, REJECTED, 1);
    logs(&witness, begun, REFUSED, 1);
}

#[test]
fn stopped_primary_that_continues_is_refused() {
    let (pair, witness, backup, primary) = Pair::protected();
    let begun = Instant::now();
    primary.signal(Signal::SIGSTOP);
    assert!(eventually(|| backup.gauge("bodkin_pair_leads") == 1), "{}", backup.said());
    let second = pair.second(&["up", "--role", "primary", "--peer", &pair.peer()], "second");
    backup.protected(true);
    primary.signal(Signal::SIGCONT);
    assert!(eventually(|| primary.gauge("bodkin_pair_rejected") == 2), "{}", primary.said());
    leads_undisturbed(&backup, &primary);
    assert_eq!(second.gauge("bodkin_pair_rejected"), 0);
    logs(&primary, begun, REJECTED, 2);
    logs(&witness, begun, REFUSED, 1);
    logs(&backup, begun, REFUSED, 1);
}

/// The nodes of `other` name the witness of a pair that runs.
fn second_pair_is_refused(mut other: Pair, reason: &str) {
    let (_pair, witness, backup, primary) = Pair::protected();
    other.borrow_witness(&witness);
    let (follower, leader) = (other.backup(), other.primary());
    for node in [&follower, &leader] {
        assert!(eventually(|| node.gauge("bodkin_pair_rejected") == 1), "{}", node.said());
        let told = troubles(node);
        assert!(told.contains("is refused by the witness") && told.contains(reason), "{told}");
    }
    leads_undisturbed(&primary, &leader);
    assert_eq!(backup.gauge("bodkin_pair_unreached"), 0, "{}", backup.said());
    // A line a minute for each of the two.
    let refused = witness.said().lines().filter(|line| line.contains("a process that claims to be a node of the pair was refused")).count();
    assert_eq!(refused, 2, "{}", witness.said());
}

#[test]
fn witness_refuses_a_second_pair_that_is_new() {
    second_pair_is_refused(Pair::new(), "another process of the same node is running");
}

#[test]
fn witness_refuses_a_second_pair_that_has_led() {
    let (other, witness, backup, primary) = Pair::protected();
    drop((witness, backup, primary));
    second_pair_is_refused(other, "it belongs to another pair");
}

#[test]
fn killed_primary_is_back_without_alarm() {
    let (pair, _witness, backup, primary) = Pair::protected();
    primary.signal(Signal::SIGKILL);
    drop(primary);
    let primary = pair.primary();
    backup.protected(true);
    assert_eq!((primary.gauge("bodkin_pair_rejected"), backup.gauge("bodkin_pair_duplicates")), (0, 0), "{}", primary.said());
}

#[test]
fn differing_settings_are_reported_by_all_nodes() {
    let mut pair = Pair::new();
    pair.configure("[platform]\nlease_ms = 50\nheartbeat_ms = 10\ndrift_ppm = 200\ndetect_jitter_ms = 100\nredirect_ms = 50\n");
    let witness = pair.witness();
    pair.configure(&format!(
        "{}[[topic]]\nevent_type = \"HEAT\"\nperiod_ms = 10\ndeadline_ms = 1000\nloss_tolerance = 0\nretention = 200\n",
        super::nodes::PLATFORM
    ));
    let backup = pair.backup();
    pair.configure(super::nodes::PLATFORM);
    let primary = pair.primary();
    assert!(eventually(|| primary.gauge("bodkin_pair_settings_differ") == 2), "{}", primary.said());
    assert!(eventually(|| backup.gauge("bodkin_pair_settings_differ") == 2), "{}", backup.said());
    for node in [&primary, &backup] {
        // The leader says so once it serves.
        let told = ["lease is 400ms here and 50ms there", "[[topic]] tables differ", "NOBODY TAKES OVER"];
        assert!(eventually(|| told.iter().all(|told| troubles(node).contains(told))), "{}", troubles(node));
    }
    assert!(witness.said().contains("lease is 50ms here and 400ms there"), "{}", witness.said());
    for alert in ["BodkinPairSettingsDiffer", "BodkinPairLeaseRefused"] {
        assert_shown(primary.address(System::Monitor), alert);
    }
}

#[test]
fn flood_of_connections_keeps_no_node_out() {
    let (mut pair, witness, backup, primary) = Pair::protected();
    let address = witness.pair_address();
    drop(witness);
    let witness = pair.witness();
    let (flood, stop) = (std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true)), std::sync::atomic::Ordering::SeqCst);
    let goes_on = flood.clone();
    let flooding = thread::spawn(move || {
        let mut open = std::collections::VecDeque::new();
        while goes_on.load(stop) {
            open.extend(TcpStream::connect(address));
            if open.len() > 200 {
                open.pop_front();
            }
        }
    });
    let reaches = |node: &Node| node.gauge("bodkin_pair_witness_connected") == 1;
    assert!(eventually(|| reaches(&primary) && reaches(&backup)), "{}", witness.said());
    flood.store(false, stop);
    flooding.join().expect("it ends");
    let lines = witness.said().lines().count();
    assert!(lines < 60, "{lines} lines:\n{}", witness.said());
}

/// The frames of the vectors, and those that are refused.
fn vectors() -> [Vec<Vec<u8>>; 2] {
    let frames = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/link.json")).expect("vectors");
    let vectors: serde_json::Value = serde_json::from_str(&frames).expect("JSON");
    let unhex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let of = |kind: &str| {
        vectors[kind].as_array().expect("entries").iter().map(|entry| unhex(entry["hex"].as_str().unwrap())).collect::<Vec<_>>()
    };
    [of("frames"), of("refused")]
}

/// The frames of the vectors.
pub fn valid_frames() -> Vec<Vec<u8>> {
    let [valid, _] = vectors();
    valid
}

/// Every frame of the vectors, those that are refused too, alone and behind the greeting and the identity of the first candidate.
pub fn hostile_frames() -> Vec<Vec<u8>> {
    let [valid, refused] = vectors();
    let (epoch, protocol) = ([0; 8], [0, 4, 0, 4]);
    let greeting = [&[0, 0, 0, 24, 1, 16][..], &epoch, &protocol, &[1, 2], &[0xff; 8]].concat();
    let identity = valid.iter().find(|frame| frame[5] == 38).expect("an identity").clone();
    let greetings = [greeting, identity].concat();
    valid.iter().chain(&refused).flat_map(|frame| [frame.clone(), [&greetings[..], frame].concat()]).collect()
}

#[test]
fn hostile_bytes_end_no_node() {
    use std::io::Write;
    let (pair, witness, backup, primary) = Pair::new().patient().begin();
    for address in [witness.pair_address(), pair.peer().parse().expect("an address")] {
        for frames in hostile_frames() {
            let mut socket = TcpStream::connect(address).expect("it listens");
            // It may close in the middle.
            let _ = socket.write_all(&frames);
        }
    }
    outlives_hostile_bytes(witness, &backup, &primary);
    drop(pair);
}

#[test]
fn garbage_of_a_stranger_is_logged_once_a_minute() {
    use std::io::{Read, Write};
    let (pair, witness, backup, primary) = Pair::new().patient().begin();
    let begun = Instant::now();
    let frame = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    for address in [witness.pair_address(), pair.peer().parse().expect("an address")] {
        for varied in 0..30_u8 {
            let epoch = (1_000 + u64::from(varied)).to_be_bytes();
            let greeting = [&[1, 16][..], &epoch, &[0, 50 + varied, 0, 50], &[1, 2], &[0xff; 8]].concat();
            let rejected = [&[1, 39][..], &epoch, &[4, 0, 1, b'a' + varied % 26]].concat();
            for bytes in [vec![varied; 64], frame(&[1, 100 + varied]), frame(&[100 + varied, 1]), frame(&greeting), frame(&rejected)] {
                let mut socket = TcpStream::connect(address).expect("it listens");
                // It may close in the middle.
                let _ = socket.write_all(&bytes).and_then(|()| socket.shutdown(std::net::Shutdown::Write));
                let _ = socket.read_to_end(&mut Vec::new());
            }
        }
    }
    for node in [&witness, &backup] {
        // One for each of its kinds: no frame, another protocol, a refusal.
        logs(node, begun, "a connection of the pair was closed", 3);
        logs(node, begun, "who is no member of the pair has shown a higher epoch", 1);
    }
    outlives_hostile_bytes(witness, &backup, &primary);
}

/// Holds that nobody minds what came.
pub fn outlives_hostile_bytes(witness: Node, backup: &Node, primary: &Node) {
    thread::sleep(Duration::from_millis(200));
    assert!(eventually(|| primary.gauge("bodkin_pair_unreached") + backup.gauge("bodkin_pair_unreached") == 0), "{}", primary.said());
    primary.protected(true);
    let (epoch, lines) = (primary.gauge("bodkin_pair_epoch"), witness.said().lines().count() + backup.said().lines().count());
    assert_eq!(epoch, 1, "{}", primary.said());
    assert!(lines < 150, "{lines} lines:\n{}", witness.said());
    assert_eq!(witness.stop(), Some(0), "it runs until it is stopped");
}
