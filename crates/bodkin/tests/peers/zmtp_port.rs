//! The ZMTP port and libzmq, by pyzmq: who publishes and subscribes in two frames, and who reads and writes the header.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bodkin_arrowhead::name::SystemName;
use bodkin_client::realtime::KeyPair;
use bodkin_trust::{TrustDirectory, curve, tls::now};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::program::python;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Launch, System};
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud, allow, register, register_publisher};
use crate::support::sse::EventStream;

/// A real-time topic of which no event may be lost.
const TOPIC: &str =
    "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 100\njitter_ms = 1000\ndeadline_ms = 500\nloss_tolerance = 0\nretention = 20\n";

/// Names the Python that `./x test --all` has installed pyzmq for.
const PYTHON_VARIABLE: &str = "BODKIN_PYZMQ";
const SYSTEM: &str = "plain-peer";

#[test]
#[ignore = "peer: ./x test --all"]
fn pyzmq_publishes_and_subscribes_in_two_frames_and_with_the_header() {
    check("zmtp", "tcp");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn pyzmq_does_so_on_a_path_of_the_machine() {
    check("zmtp-ipc", "ipc");
}

/// With the listener of this name.
fn check(listener: &str, transport: &str) {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "libzmq on the ZMTP port") else { return };
    let cloud = Launch::new().flags(["--zmtp-system", SYSTEM]).start();
    cloud.register_system(SYSTEM, 4000);
    cloud.register_system("sensor", 4001);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=temperature", &[]);
    let address = cloud.ready()["listeners"][listener].as_str().expect("ZMTP is spoken").to_owned();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/zmtp_port/port.py");
    let child = Command::new(python).args([script, &format!("{transport}://{address}"), "sensor"]).stdout(Stdio::piped()).spawn();
    let child = child.expect("Python starts");
    // It ends with an event that is published by HTTP, for which it waits.
    let data: Vec<String> = stream.wait_for(5).iter().map(|event| event.data.clone()).collect();
    assert_eq!(data, ["by PUB", "by PUSH", "by REQ", "by REQ, named", "with a header"]);
    cloud.publish(&event("temperature", system(SYSTEM, 4000), "by HTTP"));
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success());
    let said: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let payloads = ["by PUB", "by PUSH", "by REQ", "by REQ, named", "with a header", "by HTTP"];
    assert_eq!(said["heard"], json!(payloads.map(|payload| json!(["temperature", payload]))));
    // The sequence of two publishers: the first three and the last are of one of them.
    assert_eq!(said["sequences"], json!([1, 2, 3, 1, 2, 4]));
    assert_eq!(said["created"], json!(true), "the time of the header is the publisher's");
    assert_eq!(said["replies"], json!([["200", ""], ["200", ""], ["200", ""]]));
    assert!(said["refused"].as_str().is_some_and(|reason| reason.contains("Payload is null or blank")), "{said}");
    assert_eq!(said["unheard"], json!(0));
}

/// A file with [`TOPIC`].
fn config(place: &Path) -> String {
    let file = place.join("bodkin.toml");
    fs::write(&file, TOPIC).expect("written");
    file.to_str().expect("text").to_owned()
}

/// Where ZMTP is spoken, as libzmq names it.
fn address(ready: &Value) -> String {
    format!("tcp://{}", ready["listeners"]["zmtp"].as_str().expect("a ZMTP port"))
}

/// A script beside this file.
fn script(python: &str, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/zmtp_port").join(name));
    command
}

/// What two DEALERs of pyzmq say that has become of three events.
#[track_caller]
fn covered(mut dealers: Command) {
    let output = dealers.output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let events = json!([["hot", "one", 1], ["hot", "two", 2], ["hot", "three", 3]]);
    assert_eq!((&said["heard"], &said["covered before"], &said["covered"]), (&events, &json!(0), &json!(3)), "{said}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_dealer_of_pyzmq_is_covered_when_the_required_one_has_acknowledged() {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "a DEALER of libzmq on the ZMTP port") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let cloud = Launch::new().flags(["--config", &config(place.path())]).start();
    cloud.register_system("sensor", 4001);
    let mut dealers = script(&python, "dealer.py");
    dealers.args([&address(cloud.ready()), "sensor"]);
    covered(dealers);
}

/// The public and the secret key.
fn texts(pair: &KeyPair) -> Value {
    json!([pair.public().to_string(), pair.secret().to_z85().as_str()])
}

#[test]
#[ignore = "peer: ./x test --all"]
fn pyzmq_publishes_and_hears_by_curve_once_its_key_is_bound_and_not_before() {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "CURVE of libzmq on the ZMTP port") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let secure = SecureCloud::start(["--config", &config(place.path()), "--log", "info"]);
    let source = register_publisher(&secure.cloud, &Client::system("sensor"), "sensor");
    let display = register(&secure.cloud, &Client::system("display"), &system("display", 2));
    allow(&secure.cloud, display, source);
    let directory = TrustDirectory::new(secure.trust(""));
    let server = curve::read_pair(&directory.server_pair()).expect("the cloud has a pair").public().to_string();
    let [sensor_pair, display_pair] = [(); 2].map(|()| curve::generate().expect("a pair"));
    let bind = |name: &str, pair: &KeyPair| {
        let readings = || secure.cloud.stderr().matches("were read again").count();
        let before = readings();
        directory.bind_curve_key(&SystemName::from_stored(name), Some(pair.public()), now()).expect("it is bound");
        secure.cloud.signal(Signal::SIGHUP);
        assert!(eventually(|| readings() > before), "{}", secure.cloud.stderr());
    };
    bind("display", &display_pair);
    let keys = json!({"server": server, "stranger": texts(&sensor_pair), "display": texts(&display_pair)});
    let mut peer = script(&python, "curve.py");
    peer.args([&address(secure.cloud.ready()), &keys.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut peer = peer.spawn().expect("Python starts");
    let mut lines = BufReader::new(peer.stdout.take().expect("piped")).lines();
    let mut said = || serde_json::from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert_eq!(said(), json!({"stranger": "refused"}));
    assert!(eventually(|| secure.cloud.stderr().contains("its key is bound to no system")), "{}", secure.cloud.stderr());
    bind("sensor", &sensor_pair);
    writeln!(peer.stdin.take().expect("piped"), "it is bound").expect("it listens");
    assert_eq!(said(), json!({"heard": ["note", "in a box", 42]}));
    assert!(peer.wait().expect("it ends").success());

    // DEALERs, whatever they call themselves.
    let keys = json!({"server": server, "publisher": texts(&sensor_pair), "subscriber": texts(&display_pair)});
    let mut dealers = script(&python, "dealer.py");
    dealers.args([&address(secure.cloud.ready()), "whoever", &keys.to_string()]);
    covered(dealers);
}
