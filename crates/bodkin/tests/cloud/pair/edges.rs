//! A graph over two edges, of which the one that fetches is a pair: its next leader finds the other edge, and goes on where the graph's checkpoint is.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use bodkin_broker::{EventId, Sequence};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::nodes::{Node, Pair, Relay};
use crate::commands::edges::TWO;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::sse::EventStream;
use crate::zmtp::address;

/// No mean may be missed.
pub const MEANS: &str = "[[topic]]\nevent_type = \"line-mean\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\nbroker_subscriber_max_s = 2\n";
const EVENTS: u64 = 40;

fn means(node: &Node) -> EventStream {
    EventStream::open_on(
        node.connect(System::EventHandler).expect("a connection"),
        "/eventhandler/subscription?eventtype=line-mean&since=0",
        &[],
    )
}

/// What has been heard, by its number; one number has one mean.
fn heard(streams: &[&EventStream]) -> BTreeMap<Sequence, f64> {
    let mut heard = BTreeMap::new();
    for event in streams.iter().flat_map(|stream| stream.wait_for(stream.count())) {
        let (Ok(id), Ok(mean)) = (event.id.parse::<EventId>(), event.data.parse::<f64>()) else { continue };
        let other = heard.insert(id.sequence, mean).unwrap_or(mean);
        assert!((other - mean).abs() < 1e-9, "{id} is {other} and {mean}");
    }
    heard
}

/// A press by itself, and an office that is a pair and fetches from it.
struct Line {
    press: Cloud,
    backup: Node,
    primary: Node,
    /// Between the nodes of the pair.
    channel: Relay,
    _place: TempDir,
    _pair: Pair,
    _witness: Node,
}

impl Line {
    fn start() -> Self {
        let place = TempDir::new().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).expect("written");
            path.to_str().expect("text").to_owned()
        };
        let (file, config) = (write("line.toml", TWO), write("press.toml", &topic("over-smooth", "")));
        let press = Launch::new().flags(["--config", &config, "--graphs", &file, "--edge", "press"]).start();
        press.register_system("sensor", 1);
        let keys = format!("graphs = [\"{file}\"]\nedge = \"office\"\nedges = [\"press={}\"]\n", address(&press));
        let mut pair = Pair::with(&keys, MEANS);
        let (witness, backup) = (pair.witness(), pair.backup());
        let channel = Relay::to(backup.pair_address());
        let mut primary = pair.primary_by(channel.address);
        primary.served();
        primary.protected(true);
        let is_up = || primary.gauge("bodkin_graph_link_up{graph=\"line\",edge=\"press\",topic=\"OVER-SMOOTH\"}") == 1;
        assert!(eventually(is_up), "{}", primary.said());
        Self { press, backup, primary, channel, _place: place, _pair: pair, _witness: witness }
    }

    fn publish(&self, value: u64, pause: Duration) {
        self.press.post("/eventhandler/publish", &event("speed", system("sensor", 1), &value.to_string())).expect_status(200);
        thread::sleep(pause);
    }
}

/// Waits until all means are there; each is that of a value and the one in front of it, by a filter that never stopped.
#[track_caller]
fn all_are_there(streams: &[&EventStream], said: impl Fn() -> String) {
    assert!(eventually(|| heard(streams).len() as u64 == EVENTS), "{:?} {}", heard(streams), said());
    for (number, mean) in (1..=EVENTS).zip(heard(streams).into_values()) {
        let expected = if number == 1 { 1.0 } else { number as f64 - 0.5 };
        assert!((mean - expected).abs() < 1e-9, "{number}: {mean}, and not {expected}");
    }
}

#[test]
fn the_next_leader_of_a_pair_fetches_what_the_one_before_had_not_safe() {
    let mut line = Line::start();
    let pause = Duration::from_millis(25);
    let before = means(&line.primary);
    (1..=EVENTS / 2).for_each(|value| line.publish(value, pause));
    before.wait_for(2);
    line.primary.signal(Signal::SIGKILL);
    (EVENTS / 2 + 1..=EVENTS).for_each(|value| line.publish(value, pause));
    line.backup.served();
    let behind = means(&line.backup);
    all_are_there(&[&before, &behind], || line.backup.said());
}

#[test]
fn what_is_in_no_checkpoint_is_not_acknowledged_so_that_a_killed_leader_loses_nothing_of_it() {
    const SAFE: u64 = 10;
    let mut line = Line::start();
    let before = means(&line.primary);
    (1..=SAFE).for_each(|value| line.publish(value, Duration::from_millis(25)));
    before.wait_for(SAFE as usize);
    // From here on no checkpoint arrives: what the leader takes is nowhere else when it is killed. The nodes notice by the silence, which is longer than this takes.
    line.channel.cut(true);
    (SAFE + 1..=SAFE + 5).for_each(|value| line.publish(value, Duration::from_millis(10)));
    let taken = || line.primary.gauge("bodkin_graph_taken_total{graph=\"line\"}");
    assert!(eventually(|| taken() == SAFE + 5), "{} are taken", taken());
    // Longer than an acknowledgement that did not wait would take.
    thread::sleep(Duration::from_millis(120));
    assert!(line.primary.gauge("bodkin_pair_protected") == 1, "the Backup may still lead");
    line.primary.signal(Signal::SIGKILL);
    (SAFE + 6..=EVENTS).for_each(|value| line.publish(value, Duration::from_millis(10)));
    line.backup.served();
    let behind = means(&line.backup);
    all_are_there(&[&before, &behind], || line.backup.said());
}
