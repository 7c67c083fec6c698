//! A stop in the middle of what is asked: what had come when the cloud was told to stop is answered.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::secure::{Client, SecureCloud};

/// Connections with each of the requests.
const EACH: usize = 20;
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// What is asked, and the status of its answer.
struct Question {
    system: System,
    target: &'static str,
    body: Option<Value>,
    status: u16,
}

impl Question {
    fn ask(&self, connection: &mut Connection) {
        let method = if self.body.is_some() { "POST" } else { "GET" };
        let body = self.body.as_ref().map(Value::to_string);
        connection.send_request(method, self.target, &JSON, body.as_ref().map(String::as_bytes)).expect("the system takes it");
    }

    fn assert_answered(&self, connection: &mut Connection) {
        let answer = connection.read_answer().unwrap_or_else(|error| panic!("{}: {error}", self.target));
        answer.expect_status(self.status);
    }
}

fn questions() -> Vec<Question> {
    let provider = || system("provider", 4000);
    let question = |system, target, body, status| Question { system, target, body, status };
    vec![
        question(System::ServiceRegistry, "/serviceregistry/echo", None, 200),
        question(
            System::ServiceRegistry,
            "/serviceregistry/query",
            Some(serde_json::json!({"serviceDefinitionRequirement": "first"})),
            200,
        ),
        question(System::EventHandler, "/eventhandler/publish", Some(event("AT_THE_END", provider(), "1")), 200),
        question(System::EventHandler, "/eventhandler/echo", None, 200),
        question(System::Monitor, "/healthz", None, 200),
    ]
}

fn connections<'q>(
    cloud: &Cloud,
    questions: &'q [Question],
    open: impl Fn(&Cloud, System) -> Connection,
) -> Vec<(Connection, &'q Question)> {
    let all = questions.iter().flat_map(|question| (0..EACH).map(move |_| question));
    all.map(|question| (open(cloud, question.system), question)).collect()
}

/// Has the cloud stand still while all is asked, and go on with the order to stop.
fn assert_answered_at_the_end(cloud: &Cloud, asked: &mut [(Connection, &Question)]) {
    asked.iter_mut().for_each(|(connection, question)| question.ask(connection));
    cloud.signal(Signal::SIGTERM);
    cloud.signal(Signal::SIGCONT);
    asked.iter_mut().for_each(|(connection, question)| question.assert_answered(connection));
}

#[test]
fn what_had_come_before_a_stop_is_answered() {
    let (cloud, questions) = (Launch::new().start(), questions());
    cloud.register(&service("first", system("provider", 4000)));
    let mut asked = connections(&cloud, &questions, Cloud::connect);
    for (connection, question) in &mut asked {
        question.ask(connection);
        question.assert_answered(connection);
    }
    cloud.signal(Signal::SIGSTOP);
    // The system connects them to who stands still.
    asked.append(&mut connections(&cloud, &questions, Cloud::connect));
    assert_answered_at_the_end(&cloud, &mut asked);
    assert!(cloud.stop().success());
}

#[test]
fn what_had_come_in_tls_before_a_stop_is_answered() {
    let (secure, client) = (SecureCloud::start([]), Client::system("provider"));
    client.expect(&secure.cloud, "POST", "/serviceregistry/register", Some(&service("first", system("provider", 4000))), 201);
    let questions: Vec<Question> = questions().into_iter().filter(|question| question.target != "/serviceregistry/query").collect();
    let open = |cloud: &Cloud, of| client.connect(cloud.address(of)).expect("a connection");
    let mut asked = connections(&secure.cloud, &questions, open);
    for (connection, question) in &mut asked {
        question.ask(connection);
        question.assert_answered(connection);
    }
    secure.cloud.signal(Signal::SIGSTOP);
    assert_answered_at_the_end(&secure.cloud, &mut asked);
}
