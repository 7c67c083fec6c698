//! An edge whose server is a leaf node of the fleet's: it speaks with a server beside it, and the stream is at the hub.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::support::patience::eventually_some;
use crate::support::ports::held_port;

/// A server with this configuration; killed when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &Path, place: &Path, name: &str, port: u16, more: &str) -> Self {
        let config = place.join(format!("{name}.conf"));
        let store = place.join(name);
        let text = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?}, domain: {name}, sync_interval: always }}\n{more}\n"
        );
        fs::write(&config, text).expect("the configuration is written");
        let mut command = Command::new(program);
        command.arg("-c").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self { child: command.spawn().expect("nats-server starts"), port };
        eventually_some(|| server.connect()).expect("nats-server listens");
        server
    }

    fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port))).ok()
    }

    /// The numbers of the edge's lane in this server's stream; nothing while it cannot be read.
    fn numbers(&self) -> Option<Vec<u64>> {
        let connection = self.connect()?;
        connection.set_read_timeout(Some(PATIENCE / 10)).ok()?;
        let subject = lane_subject("fleet", "edge-7", "events").expect("a subject");
        let mut numbers = Vec::new();
        read_lane(connection, "\"user\":\"\"", STREAM, &subject, |record| match record {
            Record::Event { payload, .. } => {
                let text = std::str::from_utf8(payload).expect("text");
                numbers.push(text.split(' ').next().expect("a word").parse().expect("a number"));
            }
            Record::Lost { count, .. } => panic!("{count} are told to be lost"),
        })?;
        Some(numbers)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn events_come_by_a_leaf_node_once_while_the_hub_is_away_and_the_leaf_is_killed() {
    let name = "events_come_by_a_leaf_node_once_while_the_hub_is_away_and_the_leaf_is_killed";
    let Some(program) = program(name) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [hub_port, leaf_port, between] = [(); 3].map(|()| held_port());
    let hub = || Server::start(&program, place.path(), "hub", hub_port, &format!("leafnodes {{ listen: \"127.0.0.1:{between}\" }}"));
    let remote = format!("leafnodes {{ reconnect: 1, remotes: [ {{ url: \"nats-leaf://127.0.0.1:{between}\" }} ] }}");
    let leaf = || Server::start(&program, place.path(), "leaf", leaf_port, &remote);
    let (first_hub, first_leaf) = (hub(), leaf());

    let config = place.path().join("bodkin.toml");
    let table = format!(
        "[fleet]\nservers = [\"nats://127.0.0.1:{leaf_port}\"]\nedge = \"edge-7\"\ndomain = \"hub\"\ncreate_replicas = 1\nanswer_wait_ms = 1000\nlanes = {{ events = [\"heat\"] }}\n"
    );
    fs::write(&config, table).expect("written");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    let has_come = |hub: &Server, until: u64| {
        let expected: Vec<u64> = (0..until).collect();
        assert!(eventually(|| hub.numbers().as_ref() == Some(&expected)), "{:?} of {until}: {}", hub.numbers(), told(&cloud));
    };
    publisher.publish_all(20, 10);
    has_come(&first_hub, 20);
    assert_eq!(told(&cloud)["server"], "leaf");

    drop(first_hub);
    publisher.publish_all(20, 10);
    assert!(eventually(|| lane(&cloud, "events")["waiting"] == 20), "they wait at the edge: {}", told(&cloud));
    let second_hub = hub();
    has_come(&second_hub, 40);

    drop(first_leaf);
    publisher.publish_all(20, 10);
    let _second_leaf = leaf();
    has_come(&second_hub, 60);
    assert_eq!(lane(&cloud, "events")["lost"], 0);
}
