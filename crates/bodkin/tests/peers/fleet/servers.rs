//! Three nats-servers that are one cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::patience::{PATIENCE, eventually_some};
use crate::support::ports::held_port;

/// Who the edge is, and who looks.
pub const PASSWORD: &str = "only for the edge";

/// The page that documents an edge's rights.
const PAGE: &str = include_str!("../../../../../docs/how-to/fleet.md");

/// User `exact` has the rights that the page documents for an edge that forwards and receives; `maker` may also create the stream.
fn documented_users() -> String {
    let lists: Vec<&str> = PAGE.split("publish: [").skip(1).map(|rest| rest.split(']').next().expect("a list ends")).collect();
    assert_eq!(lists.len(), 2, "the page lists rights to forward and rights to receive");
    let rights = lists.join(", ");
    let create = r#""$JS.API.STREAM.CREATE.FLEET""#;
    assert!(PAGE.contains(&create.replace('"', "`")), "the page documents the right to create the stream");
    let users = [("exact", rights.clone()), ("maker", format!("{rights}, {create}"))].map(|(user, rights)| {
        format!("{{ user: {user}, password: \"{PASSWORD}\", permissions: {{ publish: [{rights}], subscribe: [\"_INBOX.>\"] }} }}")
    });
    users.join(", ")
}

/// Who only take: `taker` may not make its consumer, `deaf` may not acknowledge either.
fn taking_users() -> String {
    let asks = r#""$JS.API.STREAM.INFO.COMMANDS", "$JS.API.CONSUMER.INFO.COMMANDS.edge-7", "$JS.API.CONSUMER.MSG.NEXT.COMMANDS.edge-7""#;
    let users = [("taker", r#", "$JS.ACK.COMMANDS.edge-7.>""#), ("deaf", "")].map(|(user, more)| {
        format!("{{ user: {user}, password: \"{PASSWORD}\", permissions: {{ publish: [{asks}{more}], subscribe: [\"_INBOX.>\"] }} }}")
    });
    users.join(", ")
}

/// One server of the cluster.
struct Node {
    config: PathBuf,
    port: u16,
    child: Option<Child>,
}

/// Three servers with JetStream that sync everything; killed when dropped.
pub struct Cluster {
    program: PathBuf,
    nodes: Vec<Node>,
    place: TempDir,
}

impl Cluster {
    /// With so many bytes for JetStream on each server.
    pub fn start(program: &Path, store_bytes: u64) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let ports: Vec<(u16, u16)> = (0..3).map(|_| (held_port(), held_port())).collect();
        let routes: Vec<String> = ports.iter().map(|(_, route)| format!("nats://127.0.0.1:{route}")).collect();
        let nodes = ports.iter().enumerate().map(|(at, (port, route))| {
            let config = place.path().join(format!("{at}.conf"));
            let text = format!(
                "server_name: n{at}\nlisten: \"127.0.0.1:{port}\"\n\
                 jetstream {{ store_dir: \"{}/{at}\", max_file_store: {store_bytes}, sync_interval: always }}\n\
                 cluster {{ name: fleet, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n\
                 authorization {{ timeout: 60, users: [ {{ user: edge, password: \"{PASSWORD}\" }}, {{ user: mute, password: \"{PASSWORD}\", permissions: {{ publish: [\"$JS.API.>\"], subscribe: [\"_INBOX.>\"] }} }}, {}, {{ user: blind, password: \"{PASSWORD}\", permissions: {{ publish: [\"$JS.API.STREAM.>\"], subscribe: [\"_INBOX.>\"] }} }}, {} ] }}\nlog_file: \"{}/{at}.log\"\n",
                place.path().display(),
                routes.join(", "),
                taking_users(),
                documented_users(),
                place.path().display(),
            );
            fs::write(&config, text).expect("the configuration is written");
            Node { config, port: *port, child: None }
        });
        let mut cluster = Self { program: program.to_owned(), nodes: nodes.collect(), place };
        (0..3).for_each(|at| cluster.revive(at));
        cluster
    }

    /// Where a server listens.
    pub fn address(&self, at: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.nodes[at].port))
    }

    /// Starts all of them anew with more room for JetStream: one that has found none does nothing more until then.
    pub fn make_room(&mut self, from_bytes: u64, to_bytes: u64) {
        for at in 0..self.nodes.len() {
            self.kill(at);
            let text = fs::read_to_string(&self.nodes[at].config).expect("the configuration is there");
            let [from, to] = [from_bytes, to_bytes].map(|bytes| format!("max_file_store: {bytes},"));
            assert!(text.contains(&from), "{text}");
            fs::write(&self.nodes[at].config, text.replace(&from, &to)).expect("the configuration is written");
            self.revive(at);
        }
    }

    /// Begins a server that does not run.
    pub fn revive(&mut self, at: usize) {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.nodes[at].config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.nodes[at].child = Some(command.spawn().expect("nats-server starts"));
        let address = self.address(at);
        eventually_some(|| TcpStream::connect(address).ok()).expect("nats-server listens");
    }

    /// Kills a server.
    pub fn kill(&mut self, at: usize) {
        let mut child = self.nodes[at].child.take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    /// What the servers logged of rights that a user lacks.
    pub fn violations(&self) -> Vec<String> {
        let logs = (0..self.nodes.len()).map(|at| fs::read_to_string(self.place.path().join(format!("{at}.log"))).unwrap_or_default());
        logs.flat_map(|log| log.lines().filter(|line| line.contains("Violation")).map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// A connection to a server.
    pub fn connect(&self, at: usize) -> TcpStream {
        TcpStream::connect(self.address(at)).expect("nats-server listens")
    }

    /// Has JetStream do something, tried until it does; the answer.
    pub fn ask(&self, call: &str, body: &str) -> serde_json::Value {
        // A deletion whose answer came too late is found done: what it deleted is not there.
        let is_deleted = |error: &serde_json::Value| call.contains(".DELETE.") && error["code"] == 404;
        self.answer(&format!("$JS.API.{call}"), body, |answer| answer.get("error").is_none_or(is_deleted))
    }

    /// Has a stream store a message, tried until it does.
    pub fn publish(&self, subject: &str, payload: &str) {
        self.request(subject, payload);
    }

    /// Whether a stream has room for a message; asked until somebody says so.
    pub fn is_taken(&self, subject: &str, payload: &str) -> bool {
        self.answer(subject, payload, |_| true).get("error").is_none()
    }

    fn request(&self, subject: &str, body: &str) -> serde_json::Value {
        self.answer(subject, body, |answer| answer.get("error").is_none())
    }

    /// What is answered, tried until it is what is meant.
    fn answer(&self, subject: &str, body: &str, is_meant: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let mut number = 0;
        let name = format!("{:x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), (subject, body)));
        eventually_some(|| {
            // One that is killed just now has others beside it. A message that was stored and not answered is stored once: it has a name.
            number += 1;
            self.answer_of(number % 3, &format!("{name}-{number}"), &name, subject, body).filter(&is_meant)
        })
        .unwrap_or_else(|| panic!("JetStream does not answer {subject}"))
    }

    /// What a server answers to a message of this name, at this place below `answers`; nothing if it does not.
    fn answer_of(&self, server: usize, place: &str, name: &str, subject: &str, body: &str) -> Option<serde_json::Value> {
        let mut connection = TcpStream::connect(self.address(server)).ok()?;
        connection.set_read_timeout(Some(PATIENCE / 4)).ok()?;
        let headers = format!("NATS/1.0\r\nNats-Msg-Id: {name}\r\n\r\n");
        let line = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":\"edge\",\"pass\":\"{PASSWORD}\"}}\r\nSUB answers.{place} 1\r\nHPUB {subject} answers.{place} {} {}\r\n{headers}{body}\r\n",
            headers.len(),
            headers.len() + body.len()
        );
        connection.write_all(line.as_bytes()).ok()?;
        let mut decoder = bodkin_nats::protocol::Decoder::new(bodkin_nats::protocol::Limits::default());
        let mut bytes = vec![0; 65_536];
        loop {
            let length = connection.read(&mut bytes).ok().filter(|length| *length > 0)?;
            let mut rest = &bytes[..length];
            while let Some(operation) = decoder.receive(&mut rest).ok()? {
                if let bodkin_nats::protocol::Operation::Message(message) = operation {
                    return serde_json::from_slice(&message.payload).ok();
                }
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().filter_map(|node| node.child.as_mut()) {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
