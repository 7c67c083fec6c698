//! Two clouds of ours on this host, and what is between them: the own relay, or a broker of the Java world.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bodkin_trust::{TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::jms::{self, Peer, put_anchors, put_identity};
use crate::support::http::{Answer, Connection};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::secure::{Client, DAY, authority, issue};
use crate::support::side::Side;
use crate::support::skip;

/// A step of a dialogue may take so long.
const NEIGHBOR_TIMEOUT_MS: &str = "5000";
/// Looks of [`eventually`] for what a Java program does, too, where others build.
const LOOKS: usize = 3;

/// The two clouds. `one` offers, `two` uses.
pub struct Between {
    pub one: Side,
    pub two: Side,
    /// The broker; without one the relay is inside `one`.
    pub broker: Option<Peer>,
}

impl Between {
    /// Both with these flags besides, and with the broker of this project; nothing, which is noted, where it cannot be had.
    pub fn start(test: &str, project: Option<&str>, place: &TempDir, flags: &[&str]) -> Option<Self> {
        let place = place.path();
        let class_path = match project.map(|project| jms::build(project, place)).transpose() {
            Ok(class_path) => class_path,
            Err(reason) => {
                skip::note(test, &reason);
                return None;
            }
        };
        let common = [flags, &["--neighbor-timeout-ms", NEIGHBOR_TIMEOUT_MS]].concat();
        let listens: &[&str] = if project.is_some() { &[] } else { &["--relay-listen", "127.0.0.1:0"] };
        let one = Side::start(place, "one", &[&common[..], &["--gateway-is-mandatory", "true"], listens].concat());
        let two = Side::start(place, "two", &common);
        let broker = class_path.map(|class_path| {
            let broker = issue(&authority(), "relay.testcloud1.aitia.arrowhead.eu", &["localhost", "127.0.0.1"], tls::now(), DAY);
            put_identity(place, "broker", &broker);
            let anchor = |side: &Side| TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority");
            put_anchors(place, &[anchor(&one), anchor(&two)]);
            let mut peer = Peer::start(&class_path, place);
            let (port, key) = (peer.port(), base64::encode(broker.certificate().public_key_info()));
            for side in [&one, &two] {
                side.done(&format!("relay add 127.0.0.1:{port} --authentication-info {key}"));
            }
            peer
        });
        if broker.is_none() {
            let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is");
            one.done(&format!("relay add {relay} --own"));
        }
        one.introduce_to(&two);
        two.introduce_to(&one);
        let between = Self { one, two, broker };
        between.find_each_other();
        Some(between)
    }

    /// What both have said, for whoever looks for a fault.
    pub fn said(&self) -> String {
        format!("one said: {}\ntwo said: {}", self.one.cloud.stderr(), self.two.cloud.stderr())
    }

    /// Waits until each reaches the other, which makes both come to the relay again.
    #[track_caller]
    pub fn find_each_other(&self) {
        for (side, other) in [(&self.one, "two"), (&self.two, "one")] {
            assert!(patiently(|| side.run(&format!("cloud ping {other}")).status.success()), "{}", self.said());
        }
    }

    /// The broker dies; both clouds know it.
    #[track_caller]
    pub fn stop_broker(&mut self) {
        assert_eq!(self.broker.as_mut().expect("a broker").ask("stop"), "stopped");
        for side in [&self.one, &self.two] {
            let state = || side.done("relay list")["data"][0]["state"].clone();
            assert!(patiently(|| state().as_str().is_some_and(|state| !state.starts_with("open"))), "{}", state());
        }
    }

    /// It comes back where it was, and knows nothing of before.
    #[track_caller]
    pub fn start_broker(&mut self) {
        self.broker.as_mut().expect("a broker").port();
        self.find_each_other();
    }

    /// What becomes of the second cloud's orchestration for what the first one offers.
    pub fn orchestrate(&self) -> io::Result<Answer> {
        let form = json!({
            "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
            "requestedService": {"serviceDefinitionRequirement": "heat"},
            "orchestrationFlags": {"overrideStore": true, "enableInterCloud": true, "matchmaking": true},
        });
        self.operator().call(&self.two.cloud, "POST", "/orchestrator/orchestration", Some(&form))
    }

    /// It fails within the time-out, and says which cloud and why.
    #[track_caller]
    pub fn is_told_why_nobody_answers(&self) {
        let begun = Instant::now();
        let answer = self.orchestrate().unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        let told = answer.text();
        assert!([503, 504].contains(&answer.status) && told.contains("one.test") && told.contains("relay"), "{} {told}", answer.status);
        let limit = Duration::from_millis(NEIGHBOR_TIMEOUT_MS.parse().expect("a number")) + PATIENCE;
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    }

    fn operator(&self) -> Client {
        let anchor = TrustDirectory::new(self.two.data.join("trust")).anchor().expect("an authority");
        Client::believing(&self.two.system("sysop"), anchor)
    }

    /// The port of a tunnel that is opened.
    #[track_caller]
    pub fn open(&self) -> SocketAddr {
        let answer = self.orchestrate().unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        assert_eq!(answer.status, 200, "{}: {}", answer.text(), self.said());
        let result = answer.json()["response"][0].clone();
        assert_eq!(result["provider"]["systemName"], "gateway", "{result}");
        let port = result["provider"]["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// The consumer, connected to a tunnel's port.
    #[track_caller]
    pub fn enter(&self, tunnel: SocketAddr) -> Connection {
        self.operator().connect(tunnel).unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }
}

/// What a cloud tells of its last session.
pub fn session(side: &Side) -> Value {
    side.done("cloud sessions")["data"].as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default()
}

/// As [`eventually`], where a Java program takes part.
pub fn patiently(mut happened: impl FnMut() -> bool) -> bool {
    (0..LOOKS).any(|_| eventually(&mut happened))
}
