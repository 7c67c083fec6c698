//! Messages through ActiveMQ 5.15.16, the broker of Arrowhead's Java clouds, to and from a JMS client beside it: what a relay of a Java cloud is to Bodkin.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_host::SecurityConfig;
use bodkin_host::destination::Destinations;
use bodkin_host::relay::{Destination, Dialer, Heard, LinkState, Messages, Protocol, Relay, RelayPlace, Relays};
use bodkin_host::security::Security;
use bodkin_trust::{TrustDirectory, base64, keystore};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::maven;
use crate::support::patience::PATIENCE;
use crate::support::secure::{anchor, authority, issue, put_trust};
use crate::support::skip;

const PASSWORD: &str = "123456";
/// A Java program starts slowly where others build.
const START_MAX: Duration = Duration::from_secs(60);
/// Messages that a broker sends before one is taken.
const PREFETCH: usize = 8;
const MESSAGES: usize = 100;

/// The Java program.
struct Peer {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Peer {
    fn start(class_path: &str, folder: &Path) -> Self {
        let mut command = Command::new("java");
        command.args(["-cp", class_path, "Peer"]).arg(folder).arg(PASSWORD);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Java starts");
        let (input, output) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        let (line, lines) = mpsc::channel();
        thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|said| line.send(said)));
        Self { child, input, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(START_MAX).expect("the peer says something")
    }

    /// Has it do something; gives its answer.
    fn ask(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").expect("the peer reads");
        self.line()
    }

    fn port(&mut self) -> u16 {
        let started = self.ask("start");
        started.strip_prefix("started ").and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{started}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn heard(messages: &mut Messages) -> Heard {
    timeout(PATIENCE, messages.next()).await.expect("something is heard soon").expect("it goes on")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn java_and_bodkin_hear_each_other_at_activemq() {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match maven::build("activemq", place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note("java_and_bodkin_hear_each_other_at_activemq", &reason),
    };
    let day = Duration::from_secs(86_400);
    let broker = issue(&authority(), "relay.testcloud1.aitia.arrowhead.eu", &["localhost", "127.0.0.1"], bodkin_trust::tls::now(), day);
    let identity = keystore::write_identity(&broker, "relay", PASSWORD).expect("a key store");
    fs::write(place.path().join("broker.p12"), &*identity).expect("written");
    let anchors = keystore::write_anchors(&[anchor()], PASSWORD).expect("a key store");
    fs::write(place.path().join("anchors.p12"), anchors).expect("written");
    put_trust(&place.path().join("trust"));
    let config = SecurityConfig {
        directory: TrustDirectory::new(place.path().join("trust")),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    };
    let security = Security::open(config).expect("certificates");
    let peer = Peer::start(&class_path, place.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let key = base64::encode(broker.certificate().public_key_info());
    runtime.block_on(meet(peer, security, key.into()));
}

async fn meet(mut peer: Peer, security: Arc<Security>, key: Arc<str>) {
    let relays = Relays::new(Dialer::new(Destinations::new(&[]), security, CoreSystem::Authorization));
    let place = RelayPlace { address: "127.0.0.1".into(), port: peer.port(), secure: true, authentication_info: Some(key) };
    let relay: Arc<dyn Relay> = relays.link(&place);
    let queue = |name: &str| Destination::queue(name).expect("a name");
    let topic = Destination::topic("General-M5QTZXM9G9AnpPHWT6WennWu").expect("a name");

    // Java's call, by a topic, and our answer, by a queue.
    let mut calls = relay.listen(&topic).await.expect("it listens");
    assert_eq!(relay.state(), LinkState::Open(Protocol::Stomp), "a broker does not choose our protocol");
    let call = r#"{"senderCN":"gatekeeper.c.o.arrowhead.eu","sessionId":"eyJ.é:\n"}"#;
    assert_eq!(peer.ask(&format!("send topic {} {call}", topic.name())), "sent");
    assert_eq!(heard(&mut calls).await, Heard::Message(call.to_owned()));
    assert_eq!(peer.ask("listen queue RESP-a"), "listening");
    relay.send(&queue("RESP-a"), call.to_owned()).await.expect("it goes");
    assert_eq!(peer.line(), format!("heard RESP-a text {call}"), "it is a TextMessage");

    // Our call, and Java's answer, which was there before we listened.
    assert_eq!(peer.ask(&format!("listen topic {}", topic.name())), "listening");
    relay.send(&topic, "call".to_owned()).await.expect("it goes");
    assert_eq!(peer.line(), format!("heard {} text call", topic.name()));
    assert_eq!(peer.ask("send queue RESP-b answer"), "sent");
    let mut answers = relay.listen(&queue("RESP-b")).await.expect("it listens");
    assert_eq!(heard(&mut answers).await, Heard::Message("answer".to_owned()));

    // Who takes nothing gets no more than was agreed: the rest is for others.
    let mut slow = relay.listen(&queue("REQ-slow")).await.expect("it listens");
    for number in 0..MESSAGES {
        assert_eq!(peer.ask(&format!("send queue REQ-slow {number}")), "sent");
    }
    writeln!(peer.input, "listen queue REQ-slow").expect("the peer reads");
    let others = (0..=MESSAGES - PREFETCH).map(|_| peer.line()).filter(|line| line.starts_with("heard REQ-slow text ")).count();
    assert_eq!(others, MESSAGES - PREFETCH);
    for number in 0..PREFETCH {
        assert_eq!(heard(&mut slow).await, Heard::Message(number.to_string()));
    }

    // The broker goes and comes back.
    assert_eq!(peer.ask("stop"), "stopped");
    assert_eq!(peer.port(), place.port);
    assert_eq!(heard(&mut answers).await, Heard::Interrupted);
    // Behind it the relay knows of the listener.
    let _confirmed = relay.listen(&queue("RESP-c")).await.expect("it listens");
    assert_eq!(peer.ask("send queue RESP-b again"), "sent");
    assert_eq!(heard(&mut answers).await, Heard::Message("again".to_owned()));
}
