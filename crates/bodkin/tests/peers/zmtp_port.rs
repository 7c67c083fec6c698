//! The ZMTP port and libzmq, by pyzmq: who publishes and subscribes in two frames, and who reads and writes the header.

use std::process::Command;

use serde_json::{Value, json};

use crate::program::python;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Launch, System};
use crate::support::sse::EventStream;

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
    let child =
        Command::new(python).args([script, &format!("{transport}://{address}"), "sensor"]).stdout(std::process::Stdio::piped()).spawn();
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
