//! A sensor node's publisher in C (`zmtp-c/examples/bodkin_publisher.c`): what it has published is heard, in order and once, whatever becomes of the Primary, in
//! insecure mode and in secure mode; and so it is by a display in C (`bodkin_subscriber.c`).

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bodkin_client::realtime::{Brokers, ClientSecurity, KeyPair, PublicKey};
use bodkin_trust::curve;
use nix::sys::signal::Signal;

use super::nodes::{Node, Pair};
use super::secure::{bind, let_display_use_sensor};
use crate::real_time_client::{Hears, required, until};
use crate::support::arrowhead::system;
use crate::support::c_program::{BY_CURVE, built, has_sodium};
use crate::support::cloud::System;

/// No event may be missed, and each is there within half a second but for those that the fail-over holds up: what may be lost in it the node keeps.
const TOPIC: &str =
    "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 5\njitter_ms = 50\ndeadline_ms = 500\nloss_tolerance = 0\nretention = 200\n";
const PERIOD_MS: usize = 5;
const RETENTION: usize = 200;
/// Which trace the events are of.
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// They last longer than the fail-over.
const EVENTS: usize = 800;

/// Lets the node publish to both brokers while a display hears it, and kills the Primary among the events: all of them are heard and covered.
fn outlives_the_primary(pair: &Pair, primary: &Node, backup: &mut Node, mut node: Command, display: Brokers) {
    let (first, second) = pair.zmtp_addresses();
    let mut display = Hears::by(display, "hot", required());
    until("it is subscribed", || {
        display.turn();
        display.subscribed > 0
    });
    let numbers = [PERIOD_MS, RETENTION, EVENTS].map(|number| number.to_string());
    let addresses = [first, second].map(|address| address.to_string());
    let child = node.args(["sensor", "HOT"]).args(numbers).args(addresses).stdout(Stdio::piped()).spawn().expect("the example starts");
    until("a third is heard", || {
        display.turn();
        display.events.len() >= EVENTS / 3
    });
    primary.signal(Signal::SIGKILL);
    let killed = Instant::now();
    let before = display.events.len();
    let mut gap = Duration::ZERO;
    until("all are heard", || {
        display.turn();
        if gap.is_zero() && display.events.len() > before + 10 {
            gap = killed.elapsed();
        }
        display.events.len() >= EVENTS
    });
    backup.served();
    let told = child.wait_with_output().expect("it ends");
    println!("ten more were heard {gap:?} after the kill; the node: {}", String::from_utf8_lossy(&told.stdout).lines().count());
    assert!(told.status.success(), "not all were covered: {}", String::from_utf8_lossy(&told.stdout));
    let numbers: Vec<String> = (1..=EVENTS).map(|number| number.to_string()).collect();
    assert_eq!(display.events, numbers);
}

/// What a node that publishes to one broker says first.
fn first_word_of(mut node: Command, broker: SocketAddr) -> String {
    let mut child =
        node.args(["sensor", "HOT", "5", "200", "1"]).arg(broker.to_string()).stdout(Stdio::piped()).spawn().expect("the example starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says a line");
    child.kill().and_then(|()| child.wait()).expect("it is ended");
    line.trim_end().to_owned()
}

/// A pair in insecure mode that knows the sensor and the display.
fn begin() -> (Pair, Node, Node, Node) {
    let (pair, witness, backup, primary) = Pair::known("", TOPIC);
    for (name, port) in [("sensor", 1), ("display", 2)] {
        let answer = primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, port))).unwrap();
        answer.expect_status(201);
    }
    (pair, witness, backup, primary)
}

#[test]
fn what_a_display_in_c_hears_of_a_node_in_c_outlives_the_primary() {
    let programs =
        ["bodkin_publisher", "bodkin_subscriber"].map(|name| built(&format!("examples/{name}.c"), &format!("{name}_of_two"), &[]));
    let (pair, _witness, mut backup, primary) = begin();
    let (first, second) = pair.zmtp_addresses();
    let apart = [first, second].map(|address| [address.ip().to_string(), address.port().to_string()]).concat();
    let mut display = Command::new(&programs[1]);
    let mut display = display.args(["display", "HOT", &EVENTS.to_string()]).args(apart).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(display.stdout.take().expect("it is piped")).lines().map(|line| line.expect("text"));
    // Either broker says so.
    let subscribed = [lines.next(), lines.next()].map(Option::unwrap_or_default);
    assert!(subscribed.iter().all(|line| line.starts_with("subscribed")), "{subscribed:?}");

    let numbers = [PERIOD_MS, RETENTION, EVENTS].map(|number| number.to_string());
    let addresses = [first, second].map(|address| address.to_string());
    let mut sensor = Command::new(&programs[0]);
    let sensor = sensor.args(["sensor", "HOT"]).args(numbers).args(addresses).env("TRACEPARENT", TRACE);
    let mut sensor = sensor.stdout(Stdio::null()).spawn().expect("it starts");
    let mut heard: Vec<String> = lines.by_ref().take(EVENTS / 3).collect();
    primary.signal(Signal::SIGKILL);
    heard.extend(lines.filter(|line| !line.starts_with("subscribed")));
    backup.served();
    assert!(sensor.wait().expect("it ends").success() && display.wait().expect("it ends").success());
    let expected: Vec<String> = (1..=EVENTS).map(|number| format!("heard {number} {number} {TRACE}")).collect();
    assert_eq!(heard, expected);
}

#[test]
fn what_a_node_in_c_publishes_with_deadline_and_bound_outlives_the_primary() {
    let program = built("examples/bodkin_publisher.c", "bodkin_publisher", &[]);
    let (pair, _witness, mut backup, primary) = begin();
    let (first, second) = pair.zmtp_addresses();
    outlives_the_primary(&pair, &primary, &mut backup, Command::new(program), Brokers::pair("display", first, second));
}

#[test]
fn what_a_node_in_c_publishes_by_curve_outlives_the_primary() {
    if !has_sodium("what_a_node_in_c_publishes_by_curve_outlives_the_primary") {
        return;
    }
    let program = built("examples/bodkin_publisher.c", "bodkin_publisher_by_curve", &BY_CURVE);
    let pair = Pair::secure(TOPIC);
    let (sensor, display) = (bind(&pair, "sensor"), bind(&pair, "display"));
    let (pair, _witness, mut backup, primary) = pair.begin();
    let_display_use_sensor(&primary);
    let ClientSecurity::Curve { own, server } = sensor else { panic!("the keys are those of another mechanism") };
    let by = |own: &KeyPair, server: &PublicKey| {
        let mut node = Command::new(&program);
        node.env("BODKIN_SERVER_KEY", server.to_string()).env("BODKIN_SECRET_KEY", own.secret().to_z85().as_str());
        node
    };
    let (first, second) = pair.zmtp_addresses();
    let stranger = curve::generate().expect("a pair");
    assert_eq!(first_word_of(by(&stranger, &server), first), "ended 0 the peer told an error");
    // What it cannot open a server does not answer: whoever asks for another one sees its connection end.
    assert_eq!(first_word_of(by(&own, stranger.public()), first), "ended 0 the connection is gone");
    assert_eq!(first_word_of(Command::new(&program), first), "ended 0 another security mechanism was expected");
    let node = by(&own, &server);
    outlives_the_primary(&pair, &primary, &mut backup, node, Brokers { security: display, ..Brokers::pair("display", first, second) });
}
