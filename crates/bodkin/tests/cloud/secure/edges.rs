//! A graph over two edges in secure mode: one comes to the other with a key of a system there, and hears by the rules there.

use std::{fs, path::Path, process::Command};

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{TrustDirectory, curve, file, tls::now};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{allow, register, register_publisher};
use crate::commands::edges::TWO;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{BINARY, Launch, System};
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud, put_trust};
use crate::support::sse::EventStream;
use crate::zmtp::address;

/// The links of the only graph of a cloud.
fn links(secure: &SecureCloud) -> Value {
    Client::system("sysop").expect(&secure.cloud, "GET", "/api/v1/graphs", None, 200).json()["data"][0]["links"][0].clone()
}

/// Binds a key to the office at the press; gives where the press is, with its own key, and the file with the office's.
pub fn key_at(press: &SecureCloud, place: &Path) -> (String, String) {
    let directory = TrustDirectory::new(press.trust(""));
    let pair = curve::generate().expect("a pair");
    directory.bind_curve_key(&SystemName::from_stored("office"), Some(pair.public()), now()).expect("it is bound");
    press.cloud.signal(Signal::SIGHUP);
    let own = place.join("office.curve");
    file::write_private(&own, curve::certificate_file(&pair).as_bytes()).expect("written");
    let server = curve::read_pair(&directory.server_pair()).expect("the cloud has a pair").public().to_string();
    (format!("press={} {server}", address(&press.cloud)), own.to_str().expect("text").to_owned())
}

#[test]
fn an_edge_comes_with_a_key_of_the_other_one_and_hears_by_its_rules() {
    let place = TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    };
    // Without a bound on losses: what may not be heard is not waited for.
    let (file, config) = (write("line.toml", TWO), write("press.toml", &topic("over-smooth", "")));
    let press = SecureCloud::start(["--config", &config, "--graphs", &file, "--edge", "press"]);
    let sensor = Client::system("sensor");
    let source = register_publisher(&press.cloud, &sensor, "sensor");
    let edge = register(&press.cloud, &Client::system("office"), &system("office", 2));
    let (at, own) = key_at(&press, place.path());
    let office = SecureCloud::start(["--graphs", &file, "--edge", "office", "--edges", &at, "--edge-curve", &own]);
    assert!(eventually(|| links(&office)["down"].is_null()), "{} {}", links(&office), office.cloud.stderr());

    // The press would know two graphs of the office as one subscriber.
    let second = TWO.replace("name = \"line\"", "name = \"second\"").replace("line-mean", "second-mean");
    let refusal = Client::system("sysop").expect(&office.cloud, "POST", "/api/v1/graphs", Some(&json!({ "file": second })), 409).text();
    assert!(refusal.contains("OVER-SMOOTH of the edge press is fetched with a loss_tolerance by graph line already"), "{refusal}");
    let (beside, graphs) = (TempDir::new().expect("a directory"), format!("{file},{}", write("second.toml", &second)));
    put_trust(&beside.path().join("trust"));
    let flags = ["--graphs", &graphs, "--edge", "office", "--edges", &at, "--edge-curve", &own];
    let refused = Launch::new().secure().data(beside.path()).flags(flags).try_start().err().expect("it does not start");
    assert!(refused.stderr.contains("put both into one graph, or leave loss_tolerance out in one of them"), "{}", refused.stderr);

    // Before anything is started, with the node's configuration.
    let node = format!("graphs = [{file:?}]\nedge = \"office\"\nedges = [{at:?}]\nedge_curve = {own:?}\n");
    let (node, second) = (write("office.toml", &node), place.path().join("second.toml"));
    let check = |config: &[&str], path: &Path| {
        Command::new(BINARY).args(["graph", "check"]).arg(path).args(config).output().expect("the binary starts")
    };
    let checked = check(&["--config", &node], &second);
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(
        checked.status.code() == Some(1) && told.contains("put both into one graph, or leave loss_tolerance out in one of them"),
        "{told}"
    );
    for (config, path) in [(&[][..], second.as_path()), (&["--config", &node], Path::new(&file))] {
        let checked = check(config, path);
        assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stderr));
    }

    // Whoever hears the press's sensors at the office may hear the system that is called as the press.
    let at_office = register_publisher(&office.cloud, &Client::system("press"), "press");
    let display = Client::system("display");
    let display_id = register(&office.cloud, &display, &system("display", 1));
    allow(&office.cloud, display_id, at_office);
    let target = "/eventhandler/subscription?eventtype=line-mean&system_name=display&address=127.0.0.1&port=1";
    let hears = EventStream::open_on(display.connect(office.cloud.address(System::EventHandler)).expect("a connection"), target, &[]);
    let publish = |value: &str| {
        let body = event("speed", system("sensor", 1), value);
        sensor.expect(&press.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    };
    publish("1");
    assert_eq!(links(&office)["received"], json!(0), "there is no rule");
    allow(&press.cloud, edge, source);
    publish("3");
    publish("5");
    let means: Vec<String> = hears.wait_for(2).into_iter().map(|event| event.data).collect();
    assert_eq!(means, ["3.0", "4.0"]);
}
