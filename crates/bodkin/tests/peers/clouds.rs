//! Two clouds on hosts of their own (network namespaces), with nothing between them but the relay's host: the whole dialogue, directly and by tunnels, over a relay of
//! each kind, while wires are bad or cut and the relay dies and comes back.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bodkin_trust::{Certificate, TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::jms::{self, Peer, put_anchors, put_identity};
use crate::network::{Host, Network};
use crate::support::cloud::Launch;
use crate::support::heat::{BODY, Heat};
use crate::support::http::{Answer, Connection};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::relay::Serving;
use crate::support::secure::{Client, DAY, authority, issue};
use crate::support::side::Side;
use crate::support::skip;

/// Each step of a dialogue may take so long; a session is held much longer.
const WAITS: [&str; 4] = ["--neighbor-timeout-ms", "5000", "--gateway-idle-timeout-ms", "30000"];
/// For who cannot be reached to be found not to be.
const GLANCE: Duration = Duration::from_secs(1);

/// The relay between them.
enum Between {
    Own { serving: Option<Serving>, listen: String, guests: Vec<String> },
    Broker(Peer),
}

impl Between {
    /// Gives its port and its key too.
    fn start(network: &Network, place: &Path, class_path: Option<&str>) -> (Self, u16, String) {
        let Some(class_path) = class_path else {
            let guests: Vec<String> = ["one", "two"]
                .iter()
                .flat_map(|name| ["--admit".to_owned(), place.join(name).join("trust/cloud.crt").display().to_string()])
                .collect();
            let mut own = Self::Own { serving: None, listen: "0.0.0.0:0".to_owned(), guests };
            own.come(network, place);
            let Self::Own { serving: Some(serving), listen, .. } = &mut own else { unreachable!("it was just made") };
            let key = serving.said("authenticationInfo").to_owned();
            // It comes back where it was.
            *listen = serving.said("relay").to_owned();
            let port = listen.parse::<SocketAddr>().expect("an address").port();
            return (own, port, key);
        };
        let broker = issue(&authority(), "relay.testcloud1.aitia.arrowhead.eu", &["localhost"], tls::now(), DAY);
        put_identity(place, "broker", &broker);
        put_anchors(place, &[anchor(place, "one"), anchor(place, "two")]);
        let mut peer = network.within(Host::Relay, || Peer::start_at(class_path, place, "0.0.0.0"));
        let port = peer.port();
        (Self::Broker(peer), port, base64::encode(broker.certificate().public_key_info()))
    }

    /// Dies.
    fn go(&mut self) {
        match self {
            // Dropped, it is killed.
            Self::Own { serving, .. } => *serving = None,
            Self::Broker(peer) => assert_eq!(peer.ask("stop"), "stopped"),
        }
    }

    /// Comes back, and knows nothing of before.
    fn come(&mut self, network: &Network, place: &Path) {
        match self {
            Self::Own { serving, listen, guests } => {
                let guests: Vec<&str> = guests.iter().map(String::as_str).collect();
                *serving = Some(network.within(Host::Relay, || Serving::start(&place.join("relay"), listen, &guests)));
            }
            Self::Broker(peer) => _ = peer.port(),
        }
    }
}

fn anchor(place: &Path, cloud: &str) -> Certificate {
    TrustDirectory::new(place.join(cloud).join("trust")).anchor().expect("an authority")
}

/// The two clouds, the relay, and what is offered in the first. The hosts go last.
struct World {
    one: Side,
    two: Side,
    between: Between,
    network: Network,
    place: TempDir,
}

impl World {
    fn begin(network: Network, place: TempDir, class_path: Option<&str>) -> Self {
        let start = |host, name| network.within(host, || Side::start(place.path(), name, &WAITS));
        let (one, two) = (start(Host::One, "one"), start(Host::Two, "two"));
        let (between, port, key) = Between::start(&network, place.path(), class_path);
        let world = Self { one, two, between, network, place };
        for host in [Host::One, Host::Two] {
            world.at(host, &format!("relay add {}:{port} --authentication-info {key}", host.relay()));
        }
        for (from, to) in [(Host::One, Host::Two), (Host::Two, Host::One)] {
            let written = world.at(from, "cloud introduce --out introduction.toml");
            let (fingerprint, file) = (&written["fingerprint"], world.side(from).data.join("introduction.toml"));
            world.at(to, &format!("cloud add {} --fingerprint {}", file.display(), fingerprint.as_str().expect("a fingerprint")));
        }
        world.find_each_other();
        world
    }

    fn side(&self, host: Host) -> &Side {
        if host == Host::One { &self.one } else { &self.two }
    }

    /// What a command of a cloud's operator prints.
    #[track_caller]
    fn at(&self, host: Host, line: &str) -> Value {
        let side = self.side(host);
        self.network.within(host, || side.done(line))
    }

    fn said(&self) -> String {
        format!("one said: {}\ntwo said: {}", self.one.cloud.stderr(), self.two.cloud.stderr())
    }

    #[track_caller]
    fn find_each_other(&self) {
        for (host, other) in [(Host::One, "two"), (Host::Two, "one")] {
            let side = self.side(host);
            let is_there = || side.run(&format!("cloud ping {other}")).status.success();
            assert!(self.network.within(host, || eventually(is_there)), "{host:?}: {}", self.said());
        }
    }

    /// What becomes of the second cloud's orchestration for what the first one offers.
    fn orchestrate(&self) -> io::Result<Answer> {
        let form = json!({
            "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
            "requestedService": {"serviceDefinitionRequirement": "heat"},
            "orchestrationFlags": {"overrideStore": true, "enableInterCloud": true, "matchmaking": true},
        });
        let client = Client::believing(&self.two.system("sysop"), anchor(self.place.path(), "two"));
        self.network.within(Host::Two, || client.call(&self.two.cloud, "POST", "/orchestrator/orchestration", Some(&form)))
    }

    /// Its one result, which there must be.
    #[track_caller]
    fn granted(&self) -> Value {
        let answer = self.orchestrate().unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        assert_eq!(answer.status, 200, "{}: {}", answer.text(), self.said());
        answer.json()["response"][0].clone()
    }

    /// It fails within the time-out, and says which cloud and why.
    #[track_caller]
    fn is_told_why_nobody_answers(&self) {
        let begun = Instant::now();
        let answer = self.orchestrate().unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        let told = answer.text();
        assert!([503, 504].contains(&answer.status) && told.contains("one.test") && told.contains("relay"), "{} {told}", answer.status);
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }

    /// The consumer of the second cloud, connected to a port of a tunnel.
    #[track_caller]
    fn enter(&self) -> Connection {
        let result = self.granted();
        let port = result["provider"]["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_else(|| panic!("{result}"));
        assert_eq!(result["provider"]["systemName"], "gateway", "{result}");
        let client = Client::believing(&self.two.system("sysop"), anchor(self.place.path(), "two"));
        let connected = self.network.within(Host::Two, || client.connect(SocketAddr::from(([127, 0, 0, 1], port))));
        connected.unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// What a cloud tells of its last session.
    fn session(&self, host: Host) -> Value {
        self.at(host, "cloud sessions")["data"].as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default()
    }

    /// Behind a fault either the request that was made in it is answered, or both ends of the tunnel are told why not, and another tunnel is there.
    #[track_caller]
    fn goes_on_or_is_told(&self, mut connection: Connection) -> Connection {
        if connection.read_answer().is_ok_and(|answer| answer.status == 200) {
            return connection;
        }
        let is_told = |host| {
            let session = self.session(host);
            session["reason"].is_string() || session["trouble"].is_string()
        };
        assert!(eventually(|| is_told(Host::One) && is_told(Host::Two)), "{}\n{}", self.session(Host::One), self.session(Host::Two));
        self.find_each_other();
        let mut another = self.enter();
        self.asks(&mut another);
        another
    }

    #[track_caller]
    fn asks(&self, connection: &mut Connection) {
        let answer = connection.request("GET", "/heat", &[], None).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn clouds_on_hosts_of_their_own_meet_at_the_own_relay() {
    match Network::lay() {
        Ok(network) => meet(network, TempDir::new().expect("a temporary directory"), None),
        Err(reason) => skip::note("clouds_on_hosts_of_their_own_meet_at_the_own_relay", &reason),
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn clouds_on_hosts_of_their_own_meet_at_activemq() {
    meet_at_broker("clouds_on_hosts_of_their_own_meet_at_activemq", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn clouds_on_hosts_of_their_own_meet_at_artemis() {
    meet_at_broker("clouds_on_hosts_of_their_own_meet_at_artemis", "artemis");
}

fn meet_at_broker(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = jms::build(project, place.path());
    match class_path.and_then(|class_path| Ok((class_path, Network::lay()?))) {
        Ok((class_path, network)) => meet(network, place, Some(&class_path)),
        Err(reason) => skip::note(test, &reason),
    }
}

fn meet(network: Network, place: TempDir, class_path: Option<&str>) {
    let world = World::begin(network, place, class_path);
    let heat = directly(&world);
    let (mut world, mut connection) = by_a_tunnel(world, &heat);
    over_bad_wires(&world, &mut connection);
    let connection = over_a_wire_that_was_cut(&world, connection);
    let connection = while_the_relay_dies(&mut world, connection);
    to_its_end(&world, connection);
    a_gateway_dies(world);
}

/// Where the hosts reach each other the consumer calls the provider itself.
fn directly(world: &World) -> Heat {
    let guest = [anchor(world.place.path(), "two")];
    let heat = world.network.within(Host::One, || Heat::start(&world.one, Host::One.address().into(), &guest));
    world.network.within(Host::One, || heat.offer(&world.one, "two"));
    let result = world.granted();
    let provider = (&result["provider"]["systemName"], &result["provider"]["address"], &result["provider"]["port"]);
    assert_eq!(provider, (&json!("sensor"), &json!(heat.address.ip().to_string()), &json!(heat.address.port())), "{result}");
    assert!(result["authorizationTokens"].as_object().is_some_and(|tokens| !tokens.is_empty()), "{result}");
    let reaches = || world.network.within(Host::Two, || TcpStream::connect_timeout(&heat.address, GLANCE).is_ok());
    assert!(!reaches(), "the relay's host is no way from one to the other");
    world.network.forward(true).expect("it can");
    let client = Client::believing(&world.two.system("sysop"), anchor(world.place.path(), "one"));
    let answer = world.network.within(Host::Two, || client.connect(heat.address)?.request("GET", "/heat", &[], None)).expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
    assert_eq!(heat.callers(), ["sysop.two.test.arrowhead.eu"]);
    world.network.forward(false).expect("it can");
    heat
}

/// Where they do not, it does through both gateways. Services and rules outlive the start that makes them mandatory.
fn by_a_tunnel(world: World, heat: &Heat) -> (World, Connection) {
    let World { one: Side { cloud, data }, two, between, network, place } = world;
    assert!(cloud.stop().success());
    let names = ["--cloud", "one", "--operator", "test", "--gateway-is-mandatory", "true"];
    let cloud = network.within(Host::One, || Launch::new().secure().data(&data).flags(names).flags(WAITS).start());
    let world = World { one: Side { cloud, data }, two, between, network, place };
    world.find_each_other();
    let mut connection = world.enter();
    world.asks(&mut connection);
    world.asks(&mut connection);
    assert_eq!(heat.callers().last().map(String::as_str), Some("gateway.one.test.arrowhead.eu"));
    for host in [Host::One, Host::Two] {
        let session = world.session(host);
        assert_eq!((&session["state"], &session["numbered"]), (&json!("open"), &json!(true)), "{session}");
    }
    (world, connection)
}

/// A wire that loses packets and holds others up costs time, and nothing else.
fn over_bad_wires(world: &World, connection: &mut Connection) {
    world.network.spoil(Host::Two).expect("wires can be bad here");
    for _ in 0..5 {
        world.asks(connection);
    }
    world.find_each_other();
    world.network.mend(Host::Two).expect("it can");
}

fn over_a_wire_that_was_cut(world: &World, mut connection: Connection) -> Connection {
    world.network.cut(Host::Two, true).expect("it can");
    connection.send_request("GET", "/heat", &[], None).expect("the own gateway takes it");
    world.is_told_why_nobody_answers();
    world.network.cut(Host::Two, false).expect("it can");
    let connection = world.goes_on_or_is_told(connection);
    world.find_each_other();
    connection
}

fn while_the_relay_dies(world: &mut World, mut connection: Connection) -> Connection {
    world.between.go();
    connection.send_request("GET", "/heat", &[], None).expect("the own gateway takes it");
    world.is_told_why_nobody_answers();
    world.between.come(&world.network, world.place.path());
    let connection = world.goes_on_or_is_told(connection);
    world.find_each_other();
    connection
}

/// The provider's operator ends it, and everybody is told.
fn to_its_end(world: &World, mut connection: Connection) {
    let session = world.session(Host::One);
    assert_eq!((&session["state"], &session["service"]), (&json!("open"), &json!("heat")), "{session}");
    let id = session["queueId"].as_str().expect("an id").trim_end_matches('.').to_owned();
    world.at(Host::One, &format!("cloud sessions --close {id}"));
    let is_told = || world.session(Host::Two)["reason"].as_str().is_some_and(|reason| reason.contains("the operator"));
    assert!(eventually(is_told), "{}", world.session(Host::Two));
    assert!(connection.is_closed_by_server());
}

/// With a connection open one of the gateways is killed: the other side is told, and is left with nothing.
fn a_gateway_dies(world: World) {
    let mut connection = world.enter();
    world.asks(&mut connection);
    let World { one, two, between: _between, network, place: _place } = world;
    two.cloud.kill();
    let session = || network.within(Host::One, || one.done("cloud sessions"))["data"].as_array().and_then(|rows| rows.last()).cloned();
    let is_told = || session().is_some_and(|session| session["state"] == "closed");
    // Half of the idle time, and a patience for it.
    assert!(eventually(is_told) || eventually(is_told), "{:?}", session());
    let told = session().unwrap_or_default();
    assert!(told["reason"].as_str().is_some_and(|reason| reason.contains("nothing was heard")), "{told}");
    assert_eq!(told["connections"], 0, "{told}");
    assert!(connection.is_closed_by_server());
}
