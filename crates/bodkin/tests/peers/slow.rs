//! Tunnels over each kind of relay whose consumer takes nothing for a while: what is under way stays bounded, nobody else waits, and every byte comes. And brokers that die
//! in mid-transfer: everybody is told, and behind their start it goes on.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use tempfile::TempDir;

use crate::between::{Between, patiently, session};
use crate::clouds::{begin_to_read, read_on};
use crate::support::cloud::Cloud;
use crate::support::heat::{BODY, Heat, RECORD_BYTES};
use crate::support::http::Connection;

/// A session outlives a consumer that takes nothing, and a broker that is away.
const PATIENT: [&str; 2] = ["--gateway-idle-timeout-ms", "120000"];
/// The next bytes come within this, or a gateway has said why they do not.
const READ_MAX: Duration = Duration::from_secs(90);
/// Looks at a counter that has not moved, behind which it is taken for held up.
const STILL_LOOKS: usize = 20;
/// What a process may have more of memory while it holds up who sends: half of what there is to send.
const GROWTH_BYTES_MAX: usize = RECORD_BYTES / 2;

#[test]
#[ignore = "peer: ./x test --all"]
fn who_reads_slowly_holds_up_who_sends_by_the_own_relay() {
    reads_slowly("who_reads_slowly_holds_up_who_sends_by_the_own_relay", None);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn who_reads_slowly_holds_up_who_sends_by_activemq() {
    reads_slowly("who_reads_slowly_holds_up_who_sends_by_activemq", Some("activemq"));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn who_reads_slowly_holds_up_who_sends_by_artemis() {
    reads_slowly("who_reads_slowly_holds_up_who_sends_by_artemis", Some("artemis"));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn activemq_dies_in_mid_transfer_and_is_back() {
    dies_in_mid_transfer("activemq_dies_in_mid_transfer_and_is_back", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn artemis_dies_in_mid_transfer_and_is_back() {
    dies_in_mid_transfer("artemis_dies_in_mid_transfer_and_is_back", "artemis");
}

#[track_caller]
fn asks(connection: &mut Connection, between: &Between) {
    let answer = connection.request("GET", "/heat", &[], None).unwrap_or_else(|error| panic!("{error}: {}", between.said()));
    assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
}

/// What a cloud's process has of memory besides its program, in bytes.
fn resident(cloud: &Cloud) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", cloud.pid())).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

fn reads_slowly(test: &str, project: Option<&str>) {
    let place = TempDir::new().expect("a temporary directory");
    let Some(between) = Between::start(test, project, &place, &PATIENT) else { return };
    let heat = Heat::start(&between.one, Ipv4Addr::LOCALHOST.into(), &[]);
    heat.offer(&between.one, "two");
    let tunnel = between.open();
    let mut connection = between.enter(tunnel);
    connection.wait_at_most(READ_MAX).expect("a time limit");
    asks(&mut connection, &between);
    let clouds = [&between.one.cloud, &between.two.cloud];
    let before = clouds.map(resident);
    let (mut pieces, had) = begin_to_read(&mut connection);

    // Nothing is read until nothing is sent any more.
    let sent = || session(&between.one)["bytesToPeer"].as_u64().expect("a number");
    let (mut last, mut still) = (sent(), 0);
    let is_held_up = || {
        let now = sent();
        still = if now == last { still + 1 } else { 0 };
        last = now;
        still >= STILL_LOOKS
    };
    assert!(patiently(is_held_up), "{}", session(&between.one));
    assert!(usize::try_from(sent()).expect("a number") < RECORD_BYTES, "all of it was sent to who reads nothing");
    for (before, now) in before.into_iter().zip(clouds.map(resident)) {
        assert!(now < before + GROWTH_BYTES_MAX, "{before} bytes became {now}");
    }
    // Nobody else of the session waits for that.
    let mut other = between.enter(tunnel);
    asks(&mut other, &between);

    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    assert!(is_whole, "{read} of {RECORD_BYTES} bytes came: {}", between.said());
    asks(&mut connection, &between);
    asks(&mut other, &between);
}

fn dies_in_mid_transfer(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let Some(mut between) = Between::start(test, Some(project), &place, &PATIENT) else { return };
    let heat = Heat::start(&between.one, Ipv4Addr::LOCALHOST.into(), &[]);
    heat.offer(&between.one, "two");
    let mut connection = between.enter(between.open());
    connection.wait_at_most(READ_MAX).expect("a time limit");
    asks(&mut connection, &between);
    let (mut pieces, had) = begin_to_read(&mut connection);
    between.stop_broker();
    between.is_told_why_nobody_answers();
    between.start_broker();
    // It goes on, if the broker held nothing of it; or else both clouds say what was lost. Nobody takes a part for the whole.
    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    assert_eq!(is_whole, read == RECORD_BYTES);
    for side in [&between.one, &between.two] {
        let is_told = || {
            let row = session(side);
            is_whole || row["reason"].is_string() || row["trouble"].is_string()
        };
        assert!(patiently(is_told), "{}: {}", session(side), between.said());
    }
    let mut connection = between.enter(between.open());
    connection.wait_at_most(READ_MAX).expect("a time limit");
    asks(&mut connection, &between);
    let (mut pieces, had) = begin_to_read(&mut connection);
    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    assert!(is_whole, "{read} of {RECORD_BYTES} bytes came: {}", between.said());
}
