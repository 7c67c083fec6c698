//! curl reaches a reliable pair at its two addresses, and goes on at the other one when the Primary is killed; so does the command line.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::nodes::Pair;
use crate::support::arrowhead::{INSECURE_JSON_ID, event, number, service, subscription, system};
use crate::support::cloud::BINARY;
use crate::support::patience::{eventually, eventually_some};
use crate::support::push::{Manner, PushSubscriber};
use crate::support::skip;

const ZMTP_PORT: u16 = 5570;
const MONITOR_PORT: u16 = 8440;
const SERVICE_REGISTRY_PORT: u16 = 8443;
const AUTHORIZATION_PORT: u16 = 8445;
const EVENT_HANDLER_PORT: u16 = 8455;

/// Where both nodes have one of the standard ports.
fn at(pair: &Pair, standard_port: u16) -> [SocketAddr; 2] {
    let (first, second) = pair.zmtp_addresses();
    [first, second].map(|zmtp| SocketAddr::from((zmtp.ip(), zmtp.port() - ZMTP_PORT + standard_port)))
}

/// What curl gets from one address; nothing if that is not reached or answers with an error.
fn curl(address: SocketAddr, path: &str, body: Option<&Value>) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "5"]).arg(format!("http://{address}{path}"));
    if let Some(body) = body {
        curl.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
    }
    let output = curl.output().expect("curl is installed");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What curl gets from whichever of the two answers, asked in turns as a shell script would.
#[track_caller]
fn either(addresses: [SocketAddr; 2], path: &str, body: Option<&Value>) -> String {
    let answer = eventually_some(|| addresses.iter().find_map(|address| curl(*address, path, body)));
    answer.unwrap_or_else(|| panic!("neither of {addresses:?} answers {path}"))
}

/// A process whose lines are read; killed when dropped.
struct Lines {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Lines {
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// curl on an event stream behind an event, if one is named.
    fn stream(event_handler: SocketAddr, last: Option<&str>) -> Self {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", &format!("http://{event_handler}/eventhandler/subscription?eventtype=hot")]);
        curl.args(last.into_iter().flat_map(|id| ["--header".to_owned(), format!("Last-Event-ID: {id}")]));
        Self::of(&mut curl)
    }

    /// The rest of the next line that begins so.
    #[track_caller]
    fn next(&mut self, begin: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(begin).map(str::to_owned)).unwrap_or_else(|| panic!("no line begins with {begin:?}"))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn curl_and_the_command_line_go_on_at_the_node_that_leads() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip::note("curl_and_the_command_line_go_on_at_the_node_that_leads", "no curl is installed");
    }
    let (pair, _witness, _backup, primary) = Pair::known("", "");
    let [registry, authorization] = [SERVICE_REGISTRY_PORT, AUTHORIZATION_PORT].map(|port| at(&pair, port));
    let [events, monitor] = [EVENT_HANDLER_PORT, MONITOR_PORT].map(|port| at(&pair, port));
    let register = |name: &str| either(registry, "/serviceregistry/register", Some(&service(name, system("sensor", 9000))));
    let publish = |payload: &str| either(events, "/eventhandler/publish", Some(&event("hot", system("sensor", 9000), payload)));
    let is_ready = |node: usize| curl(monitor[node], "/readyz", None).is_some();
    assert!(is_ready(0) && !is_ready(1), "the probe of a floating address");

    let heat: Value = serde_json::from_str(&register("heat")).expect("JSON");
    let pushed = PushSubscriber::listen(Manner::Answers);
    let form = system("display", pushed.port());
    let display: Value = serde_json::from_str(&either(registry, "/serviceregistry/register-system", Some(&form))).expect("JSON");
    let rule = json!({"consumerId": number(&display, "/id"), "providerIds": [number(&heat, "/provider/id")], "interfaceIds": [INSECURE_JSON_ID],
        "serviceDefinitionIds": [number(&heat, "/serviceDefinition/id")]});
    either(authorization, "/authorization/mgmt/intracloud", Some(&rule));
    either(events, "/eventhandler/subscribe", Some(&subscription("hot", form, "/notify")));
    let mut stream = Lines::stream(events[0], None);
    stream.next(": subscribed");
    let registries = registry.map(|address| address.to_string()).join(",");
    let command = |words: &str| {
        let mut command = Command::new(BINARY);
        command.args(words.split(' ')).args(["--insecure", "--service-registry", &registries]);
        command
    };
    let mut tail = Lines::of(&mut command("event tail hot --since 0"));
    publish("before");
    let id = stream.next("id: ");
    assert_eq!((stream.next("data: "), tail.next("")), ("before".to_owned(), "before".to_owned()));

    primary.signal(Signal::SIGKILL);
    register("cold");
    let query = json!({"serviceDefinitionRequirement": "heat"});
    assert!(either(registry, "/serviceregistry/query", Some(&query)).contains("sensor"), "what was answered is there");
    assert!(eventually(|| is_ready(1)) && !is_ready(0));
    assert!(stream.lines.next().is_none_or(|line| line.is_ok_and(|line| line.is_empty())), "its stream has ended");
    let mut stream = Lines::stream(events[1], Some(&id));
    assert_eq!(stream.next("event: "), "bodkin-lost", "the other node's log has not what this one was told");
    publish("behind");
    assert!(eventually(|| pushed.payloads().contains(&"behind".to_owned())), "{:?}", pushed.payloads());
    stream.next("event: hot");
    assert_eq!((stream.next("data: "), tail.next("")), ("behind".to_owned(), "behind".to_owned()));
    let listed = command("service list").output().expect("it runs");
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("cold"), "{listed:?}");
}
