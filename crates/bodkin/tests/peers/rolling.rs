//! A rolling restart of nodes that share a database, under load: clients that try another node where one does not answer see no error.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{list, number, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::{Answer, Connection};
use crate::support::ports::held_offset;
use crate::support::skip;

const NODES: usize = 3;

fn node(server: &Server, data: &Path, offset: u16) -> Cloud {
    Launch::new().data(data).port_offset(offset).env("BODKIN_DATABASE", &server.url()).start()
}

/// What a client that goes from node to node has seen.
#[derive(Default)]
struct Seen {
    /// Names of services that were answered as registered, or as there already behind a try that had no answer.
    registered: Vec<String>,
    /// Tries that were refused (503) or not connected, and went on at the next node.
    elsewhere: usize,
    /// Tries that were sent, and had no answer.
    unanswered: usize,
    /// Requests that no node has answered well.
    errors: Vec<String>,
}

/// A client that registers one service behind the other, and asks for it at whichever node answers.
struct Client {
    name: &'static str,
    nodes: [SocketAddr; NODES],
    at: usize,
    seen: Seen,
}

impl Client {
    /// Asks one node after the other, each once; gives the first answer that is none of a node that ends.
    fn ask(&mut self, target: &str, body: &Value) -> Option<Answer> {
        let body = body.to_string();
        for _ in 0..NODES {
            let Ok(mut connection) = Connection::open(self.nodes[self.at]) else {
                self.goes_on();
                continue;
            };
            match connection.request("POST", target, &[("Content-Type", "application/json")], Some(body.as_bytes())) {
                Ok(answer) if answer.status != 503 => return Some(answer),
                Ok(_) => self.goes_on(),
                Err(_) => {
                    self.seen.unanswered += 1;
                    self.goes_on();
                }
            }
        }
        None
    }

    fn goes_on(&mut self) {
        self.seen.elsewhere += 1;
        self.at = (self.at + 1) % NODES;
    }

    fn round(&mut self, count: usize) {
        let name = format!("{}-{count}", self.name);
        let unanswered = self.seen.unanswered;
        match self.ask("/serviceregistry/register", &service(&name, system(self.name, 7001))) {
            Some(answer) if answer.status == 201 || (answer.status == 400 && self.seen.unanswered > unanswered) => {
                self.seen.registered.push(name);
            }
            other => self.seen.errors.push(format!("{name}: {:?}", other.map(|answer| answer.text()))),
        }
        match self.ask("/serviceregistry/query", &json!({"serviceDefinitionRequirement": format!("{}-0", self.name)})) {
            Some(answer) if answer.status == 200 => {}
            other => self.seen.errors.push(format!("query: {:?}", other.map(|answer| answer.text()))),
        }
    }
}

fn start(client: Client, is_over: &Arc<AtomicBool>, rounds: &Arc<AtomicUsize>) -> JoinHandle<Seen> {
    let (mut client, is_over, rounds) = (client, is_over.clone(), rounds.clone());
    thread::spawn(move || {
        for count in 0.. {
            if is_over.load(SeqCst) {
                break;
            }
            client.round(count);
            rounds.fetch_add(1, SeqCst);
        }
        client.seen
    })
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_rolling_restart_under_load_loses_nothing_and_shows_no_error_to_who_tries_another_node() {
    let test = "a_rolling_restart_under_load_loses_nothing_and_shows_no_error_to_who_tries_another_node";
    let Some(server) = Server::start() else { return skip::note(test, "no PostgreSQL server") };
    let places = [(); NODES].map(|()| TempDir::new().expect("a temporary directory"));
    let offsets = [(); NODES].map(|()| held_offset());
    let begin = |at: usize| node(&server, places[at].path(), offsets[at].get());
    let mut nodes: Vec<Option<Cloud>> = (0..NODES).map(|at| Some(begin(at))).collect();
    let addresses = [0, 1, 2].map(|at: usize| nodes[at].as_ref().expect("it runs").address(System::ServiceRegistry));
    let (is_over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let names = ["press", "oven", "gauge"];
    let clients =
        [0, 1, 2].map(|at: usize| start(Client { name: names[at], nodes: addresses, at, seen: Seen::default() }, &is_over, &rounds));
    let goes_on = || {
        let before = rounds.load(SeqCst);
        eventually(|| rounds.load(SeqCst) > before + 30, || "clients stand still".to_owned());
    };
    goes_on();
    for (at, node) in nodes.iter_mut().enumerate() {
        let ending = node.take().expect("it runs");
        assert!(ending.stop().success());
        goes_on();
        *node = Some(begin(at));
        goes_on();
    }
    is_over.store(true, SeqCst);
    let seen = clients.map(|client| client.join().expect("it ends"));
    let all: Vec<&String> = seen.iter().flat_map(|seen| &seen.registered).collect();
    for one in &seen {
        println!("{} registered, {} tries went on elsewhere, {} without an answer", one.registered.len(), one.elsewhere, one.unanswered);
        assert_eq!(one.errors, Vec::<String>::new());
    }
    assert!(seen.iter().map(|one| one.elsewhere).sum::<usize>() >= NODES, "every client has lost its node once");
    for node in nodes.iter().flatten() {
        let offered = |name: &str| list(&node.query(&json!({"serviceDefinitionRequirement": name})), "/serviceQueryData").len();
        eventually(|| offered(all[all.len() - 1]) == 1, || node.stderr());
        for name in &all {
            assert_eq!(offered(name), 1, "{name} was answered");
        }
        let shown = node.get("/serviceregistry/mgmt?page=0&item_per_page=1").expect_status(200).json();
        assert!(number(&shown, "/count") >= i64::try_from(all.len()).expect("few"), "{shown}");
    }
}
