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
use crate::support::heat::{BODY, Heat, RECORD, RECORD_BYTES, record};
use crate::support::http::{Answer, Connection, Pieces};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::relay::Serving;
use crate::support::secure::{Client, DAY, authority, issue};
use crate::support::side::Side;
use crate::support::skip;

/// Each step of a dialogue may take so long; a session is held much longer.
const WAITS: [&str; 4] = ["--neighbor-timeout-ms", "5000", "--gateway-idle-timeout-ms", "30000"];
/// The same, and a session is given up sooner.
const SHORT_WAITS: [&str; 4] = ["--neighbor-timeout-ms", "5000", "--gateway-idle-timeout-ms", "10000"];
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

    /// A cloud's row of the session of this id.
    fn session_of(&self, host: Host, id: &Value) -> Value {
        let rows = self.at(host, "cloud sessions");
        rows["data"].as_array().and_then(|rows| rows.iter().find(|row| row["queueId"] == *id)).cloned().unwrap_or_default()
    }

    /// The last session's id, which both clouds know.
    fn open_session(&self) -> Value {
        let [id, other] = [Host::One, Host::Two].map(|host| self.session(host)["queueId"].clone());
        assert_eq!(id, other);
        id
    }

    /// What both clouds' lists say of a session behind a fault, which has to fit to what its consumer has seen.
    #[track_caller]
    fn ask_the_lists(&self, id: &Value, is_answered: bool) -> Outcome {
        let rows = || [Host::One, Host::Two].map(|host| self.session_of(host, id));
        let is_told = |row: &Value| row["reason"].is_string() || row["trouble"].is_string();
        if is_answered {
            let rows = rows();
            assert!(rows.iter().all(|row| row["state"] == "open" && !is_told(row)), "it was answered: {rows:?}");
            let interruptions = rows.each_ref().map(|row| row["interruptions"].as_u64().expect("a number"));
            eprintln!("goes on, interruptions {interruptions:?}");
            return Outcome::GoesOn { interruptions };
        }
        assert!(eventually(|| rows().iter().all(is_told)), "nothing was answered: {:?}\n{}", rows(), self.said());
        let rows = rows();
        eprintln!("is told: {}; {}", rows[0], rows[1]);
        Outcome::IsTold { rows }
    }

    /// A tunnel to go on with: the one that has gone on, or another one.
    #[track_caller]
    fn goes_on_with(&self, outcome: &Outcome, connection: Connection) -> Connection {
        self.find_each_other();
        let mut connection = match outcome {
            Outcome::GoesOn { .. } => connection,
            Outcome::IsTold { .. } => self.enter(),
        };
        self.asks(&mut connection);
        connection
    }

    #[track_caller]
    fn asks(&self, connection: &mut Connection) {
        let answer = connection.request("GET", "/heat", &[], None).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
    }
}

/// What has become of a tunnel behind a fault.
#[derive(Debug)]
enum Outcome {
    /// It goes on where it was; so often each cloud has come to the relay again.
    GoesOn { interruptions: [u64; 2] },
    /// It is over, or its connection is, and both clouds' lists say why.
    IsTold { rows: [Value; 2] },
}

/// Reads what is recorded; gives how much of it has come, which has to be the same bytes, and whether it is all of it.
#[track_caller]
pub fn read_on(connection: &mut Connection, pieces: &mut Pieces, had: usize, until: usize) -> (usize, bool) {
    let record = record();
    let mut at = had;
    while at < until {
        let Ok(Some(piece)) = pieces.next(connection) else { return (at, false) };
        assert!(record[at..].starts_with(&piece), "behind {at} bytes something else comes");
        at += piece.len();
    }
    (at, at == RECORD_BYTES)
}

/// Begins to read what is recorded, until it is well under way.
#[track_caller]
pub fn begin_to_read(connection: &mut Connection) -> (Pieces, usize) {
    connection.send_request("GET", RECORD, &[], None).expect("the own gateway takes it");
    let head = connection.read_head().expect("it is begun");
    let mut pieces = Pieces::of(&head).expect("a length");
    let (had, _) = read_on(connection, &mut pieces, 0, RECORD_BYTES / 16);
    assert!((RECORD_BYTES / 16..RECORD_BYTES).contains(&had), "{had}");
    (pieces, had)
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
    let connection = while_the_relay_dies_under_load(&mut world, connection);
    to_its_end(&world, connection);
    gateways_die(world);
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
    let id = world.open_session();
    world.network.cut(Host::Two, true).expect("it can");
    connection.send_request("GET", "/heat", &[], None).expect("the own gateway takes it");
    world.is_told_why_nobody_answers();
    world.network.cut(Host::Two, false).expect("it can");
    // Whether the connection to the relay outlives that is TCP's to say; if it does not, what was on its way is lost.
    let is_answered = connection.read_answer().is_ok_and(|answer| answer.status == 200);
    let outcome = world.ask_the_lists(&id, is_answered);
    world.goes_on_with(&outcome, connection)
}

/// With nothing under way while the relay dies, the tunnel goes on; and a request that is made while it is away waits for it.
fn while_the_relay_dies(world: &mut World, mut connection: Connection) -> Connection {
    let id = world.open_session();
    world.between.go();
    for host in [Host::One, Host::Two] {
        let knows = || world.at(host, "relay list")["data"][0]["state"].as_str().is_some_and(|state| !state.starts_with("open"));
        assert!(eventually(knows), "{host:?}: {}", world.at(host, "relay list"));
    }
    connection.send_request("GET", "/heat", &[], None).expect("the own gateway takes it");
    world.is_told_why_nobody_answers();
    world.between.come(&world.network, world.place.path());
    let is_answered = connection.read_answer().is_ok_and(|answer| answer.status == 200);
    let outcome = world.ask_the_lists(&id, is_answered);
    match &outcome {
        Outcome::GoesOn { interruptions } => assert!(interruptions.iter().all(|times| *times > 0), "{interruptions:?}"),
        // One of the signs of life, of which there is one each 5 s, was on its way when the relay died.
        Outcome::IsTold { rows } => {
            assert!(rows.iter().any(|row| row["reason"].as_str().is_some_and(|why| why.contains("lost"))), "{rows:?}")
        }
    }
    world.goes_on_with(&outcome, connection)
}

/// With bytes under way it may go on, if the relay held none of them; or else both clouds say that some are lost. Nobody takes a part of an answer for the whole.
fn while_the_relay_dies_under_load(world: &mut World, mut connection: Connection) -> Connection {
    let id = world.open_session();
    let (mut pieces, had) = begin_to_read(&mut connection);
    world.between.go();
    world.between.come(&world.network, world.place.path());
    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    let outcome = world.ask_the_lists(&id, is_whole);
    assert!(is_whole || read < RECORD_BYTES, "{outcome:?}");
    world.goes_on_with(&outcome, connection)
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

/// With bytes under way the consumer's gateway is killed, and behind a start of it the provider's: the other side is told, and is left with nothing.
fn gateways_die(world: World) {
    let mut connection = world.enter();
    let (mut pieces, had) = begin_to_read(&mut connection);
    let World { one, two: Side { cloud, data }, between, network, place } = world;
    cloud.kill();
    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    assert!(!is_whole && read < RECORD_BYTES, "{read}");
    let names = ["--cloud", "two", "--operator", "test"];
    let cloud = network.within(Host::Two, || Launch::new().secure().data(&data).flags(names).flags(SHORT_WAITS).start());
    let world = World { one, two: Side { cloud, data }, between, network, place };
    let is_over = || world.session(Host::One)["state"] == "closed";
    // Half of the idle time, and a patience for it.
    assert!(eventually(is_over) || eventually(is_over), "{}", world.session(Host::One));
    let told = world.session(Host::One);
    assert!(told["reason"].as_str().is_some_and(|reason| reason.contains("nothing was heard")), "{told}");
    assert_eq!(told["connections"], 0, "{told}");

    world.find_each_other();
    let mut connection = world.enter();
    let (mut pieces, had) = begin_to_read(&mut connection);
    let World { one, two, between: _between, network, place: _place } = world;
    one.cloud.kill();
    let (read, is_whole) = read_on(&mut connection, &mut pieces, had, RECORD_BYTES);
    assert!(!is_whole && read < RECORD_BYTES, "{read}");
    assert!(connection.is_closed_by_server());
    let rows = || network.within(Host::Two, || two.done("cloud sessions"))["data"].clone();
    let told = || rows().as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default();
    assert!(eventually(|| told()["state"] == "closed"), "{}", told());
    let told = told();
    assert!(told["reason"].as_str().is_some_and(|reason| reason.contains("nothing was heard")), "{told}");
    assert_eq!(told["connections"], 0, "{told}");
}
