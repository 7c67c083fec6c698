//! A forwarder and its stream: one that is not there, one that cannot be used, one that goes.

use super::*;
use crate::{
    lane::{MemoryBacklog, Record},
    protocol::Credentials,
};

const SECOND: Duration = Duration::from_secs(1);
const GREETING: &str = "INFO {\"server_name\":\"n1\",\"headers\":true,\"max_payload\":1048576}\r\nPONG\r\n";
const NO_STREAM: &str = r#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;

struct Edge {
    forwarder: Forwarder,
    backlogs: [MemoryBacklog; 1],
    told: Vec<Told>,
}

impl Edge {
    fn new(create: Option<StreamConfig>) -> Self {
        let api = Api::new(None).expect("no domain");
        let setup = Setup { api, stream: "FLEET".to_owned(), create, answer_wait_max: 5 * SECOND, look_every: SECOND };
        let terms = Terms {
            stream: "FLEET".to_owned(),
            subject: lane_subject("fleet", "edge-7", "alarms").expect("a subject"),
            epoch: 1,
            batch_bytes_max: 4096,
            batch_wait_max: Duration::ZERO,
            rest_least: SECOND,
            rest_most: 8 * SECOND,
        };
        let forwarder = Forwarder::new(setup, vec![terms]).expect("subjects");
        let mut edge = Self { forwarder, backlogs: [MemoryBacklog::new(1, 1 << 20)], told: Vec::new() };
        let options = Options {
            name: "edge-7".to_owned(),
            credentials: Credentials::None,
            inbox: Subject::new("_INBOX.r").expect("a subject"),
            is_encrypted: false,
            greeting_wait_max: SECOND,
            silence_max: 600 * SECOND,
        };
        edge.forwarder.connected(options, Duration::ZERO);
        edge.hears(GREETING, Duration::ZERO);
        edge.says(Duration::ZERO);
        edge
    }

    fn hears(&mut self, bytes: &str, now: Duration) {
        self.forwarder.receive(bytes.as_bytes(), now, &mut self.backlogs, &mut self.told).expect("it goes on");
    }

    fn answered(&mut self, request: u64, answer: &str, now: Duration) {
        self.hears(&format!("MSG _INBOX.r.{request} 1 {}\r\n{answer}\r\n", answer.len()), now);
    }

    /// What is written now, without the greeting.
    fn says(&mut self, now: Duration) -> String {
        self.forwarder.step(now, &mut self.backlogs, &mut self.told).expect("it goes on");
        let mut out = Vec::new();
        self.forwarder.take_out(&mut out);
        let text = String::from_utf8(out).expect("text");
        text.rsplit_once("PING\r\n").map(|(_, rest)| rest.to_owned()).unwrap_or(text)
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }
}

fn config() -> StreamConfig {
    StreamConfig { num_replicas: 3, ..StreamConfig::new("FLEET", &["fleet.>"]) }
}

fn stream(config: &StreamConfig) -> String {
    let config = serde_json::to_value(config).expect("JSON");
    serde_json::json!({ "config": config, "state": { "messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0 } }).to_string()
}

#[test]
fn a_stream_that_is_not_there_is_made_if_it_may_be_and_looked_for_otherwise() {
    let mut edge = Edge::new(Some(config()));
    edge.answered(1, NO_STREAM, Duration::ZERO);
    let said = edge.says(Duration::ZERO);
    assert!(said.starts_with("PUB $JS.API.STREAM.CREATE.FLEET _INBOX.r.2 "), "{said}");
    edge.answered(2, &stream(&config()), Duration::ZERO);
    assert!(matches!(&edge.told()[..], [Told::Open(server), Told::Stream(info)] if server == "n1" && info.config.num_replicas == 3));
    assert!(edge.says(Duration::ZERO).starts_with("PUB $JS.API.STREAM.MSG.GET.FLEET _INBOX.r.3 "));

    let mut edge = Edge::new(None);
    edge.answered(1, NO_STREAM, Duration::ZERO);
    assert!(matches!(&edge.told()[..], [Told::Open(_), Told::NoStream(NoStream::Refused(Refusal::Answer(_)))]));
    assert_eq!(edge.says(Duration::from_millis(999)), "");
    assert_eq!(edge.says(SECOND), "PUB $JS.API.STREAM.INFO.FLEET _INBOX.r.2 0\r\n\r\n");
    // Nobody answers, then nobody is there.
    assert_eq!(edge.says(3 * SECOND), "");
    assert_eq!(edge.told(), [Told::NoStream(NoStream::Refused(Refusal::NoAnswer))]);
    assert_eq!(edge.says(4 * SECOND), "PUB $JS.API.STREAM.INFO.FLEET _INBOX.r.3 0\r\n\r\n");
    edge.hears("HMSG _INBOX.r.3 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", 4 * SECOND);
    assert_eq!(edge.told(), [Told::NoStream(NoStream::Refused(Refusal::NobodyListens))]);
}

#[test]
fn a_stream_that_acknowledges_nothing_or_takes_nothing_is_not_used() {
    for (config, why) in
        [(StreamConfig { no_ack: true, ..config() }, NoStream::NoAck), (StreamConfig { sealed: true, ..config() }, NoStream::Sealed)]
    {
        let mut edge = Edge::new(None);
        edge.answered(1, &stream(&config), Duration::ZERO);
        assert_eq!(edge.told()[1], Told::NoStream(why));
        assert_eq!(edge.says(Duration::ZERO), "");
        assert!(edge.says(SECOND).contains("STREAM.INFO"));
    }
}

#[test]
fn a_stream_that_is_deleted_is_made_anew_and_the_lane_goes_on_where_it_was() {
    let mut edge = Edge::new(Some(config()));
    edge.answered(1, &stream(&config()), Duration::ZERO);
    edge.says(Duration::ZERO);
    let none = r#"{"error":{"code":404,"err_code":10037,"description":"no message found"}}"#;
    edge.answered(2, none, Duration::ZERO);
    for (request, sequence) in [(3, 1), (4, 2)] {
        let event = Record::Event { topic: "t", publisher: 1, incarnation: 1, sequence, created_ns: 0, payload: b"" };
        let bytes = edge.backlogs[0].put(event).expect("there is room");
        edge.forwarder.grown(0, bytes, Duration::ZERO);
        assert!(edge.says(Duration::ZERO).starts_with(&format!("HPUB fleet.edge-7.alarms _INBOX.r.{request} ")));
        if sequence == 1 {
            edge.answered(request, r#"{"stream":"FLEET","seq":1}"#, Duration::ZERO);
        }
    }
    edge.hears("HMSG _INBOX.r.4 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", Duration::ZERO);
    assert!(edge.says(Duration::ZERO).starts_with("PUB $JS.API.STREAM.INFO.FLEET _INBOX.r.5 "));
    edge.answered(5, NO_STREAM, Duration::ZERO);
    assert!(edge.says(Duration::ZERO).starts_with("PUB $JS.API.STREAM.CREATE.FLEET _INBOX.r.6 "));
    edge.answered(6, &stream(&config()), Duration::ZERO);
    assert_eq!(edge.says(Duration::ZERO), "", "it rests");
    assert!(edge.says(SECOND).starts_with("PUB $JS.API.STREAM.MSG.GET.FLEET _INBOX.r.7 "));
    edge.answered(7, none, SECOND);
    let said = edge.says(SECOND);
    assert!(said.contains("Bodkin-First: 2\r\n") && said.contains("Nats-Expected-Last-Subject-Sequence: 0\r\n"), "{said}");
    edge.told();
    edge.answered(8, r#"{"stream":"FLEET","seq":1}"#, SECOND);
    let stored = lane::Told::Stored { through: 2, records: 1, is_duplicate: false };
    assert_eq!(edge.told(), [Told::Lane(0, lane::Told::Emptied(1)), Told::Lane(0, stored)]);
}

#[test]
fn what_has_no_answer_within_two_seconds_is_asked_again() {
    let mut edge = Edge::new(None);
    edge.answered(1, &stream(&config()), Duration::ZERO);
    assert!(edge.says(Duration::ZERO).starts_with("PUB $JS.API.STREAM.MSG.GET.FLEET _INBOX.r.2 "));
    assert_eq!(edge.says(Duration::from_millis(1_999)), "");
    assert_eq!(edge.says(2 * SECOND), "", "it rests");
    assert!(edge.says(3 * SECOND).starts_with("PUB $JS.API.STREAM.MSG.GET.FLEET _INBOX.r.3 "));
}

#[test]
fn names_that_would_be_other_subjects_are_refused() {
    for (edge, lane) in [("a.b", "c"), ("a", "*"), ("", "c"), ("a", "c d")] {
        assert!(lane_subject("fleet", edge, lane).is_err());
    }
    assert_eq!(lane_subject("site.fleet", "a", "b").expect("a subject").as_str(), "site.fleet.a.b");
}
