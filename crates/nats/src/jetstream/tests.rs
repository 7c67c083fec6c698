//! Questions and answers in the form that nats-server 2.15 has.

use std::time::Duration;

use super::*;

fn subject(name: &str) -> Subject {
    Subject::new(name).expect("a subject")
}

#[test]
fn questions_go_to_the_servers_or_to_a_domain() {
    let api = Api::new(None).expect("no domain");
    let (to, body) = api.last_message("FLEET", &subject("fleet.e.l")).expect("a name");
    assert_eq!((to.as_str(), body.as_slice()), ("$JS.API.STREAM.MSG.GET.FLEET", &br#"{"last_by_subj":"fleet.e.l"}"#[..]));
    let domain = Api::new(Some("hub")).expect("a domain");
    assert_eq!(domain.stream_info("FLEET").expect("a name").0.as_str(), "$JS.hub.API.STREAM.INFO.FLEET");
    assert!(Api::new(Some("a.b")).is_err() && api.stream_info("a b").is_err());
}

#[test]
fn acknowledgements_are_read_and_a_refusal_is_not_taken_for_one() {
    let ack = publish_ack(br#"{"stream":"FLEET", "seq":7}"#);
    assert_eq!(ack, Ok(PublishAck { stream: "FLEET".to_owned(), seq: 7, duplicate: false }));
    assert!(publish_ack(br#"{"stream":"FLEET", "seq":7,"duplicate": true}"#).expect("an ack").duplicate);
    let refused = br#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"FLEET","seq":0}"#;
    let Err(AnswerError::Refused(error)) = publish_ack(refused) else { panic!("it is refused") };
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::WrongLastSequence, "wrong last sequence: 3 (10071)"));
    for payload in [&b""[..], b"{}", b"[]", br#"{"stream":"FLEET","seq":-1}"#, br#"{"error":3}"#] {
        assert!(matches!(publish_ack(payload), Err(AnswerError::Form(_))));
    }
}

#[test]
fn the_last_message_of_a_subject_is_known_by_its_headers() {
    // "NATS/1.0\r\nBodkin-Last: 9\r\n\r\n"
    let found = br#"{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{"subject":"fleet.e.l","seq":12,"hdrs":"TkFUUy8xLjANCkJvZGtpbi1MYXN0OiA5DQoNCg==","data":"AA==","time":"2026-11-23T20:00:00Z"}}"#;
    let last = last_message(found).expect("an answer").expect("a message");
    assert_eq!((last.sequence, last.headers.get("Bodkin-Last")), (12, Some("9")));
    let none = br#"{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","error":{"code":404,"err_code":10037,"description":"no message found"}}"#;
    assert_eq!(last_message(none), Ok(None));
    let gone = br#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
    assert!(matches!(last_message(gone), Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::NoStream));
    assert!(matches!(last_message(br#"{"message":{"seq":1,"hdrs":"!"}}"#), Err(AnswerError::Form(_))));
}

#[test]
fn what_a_stream_lets_go_of_is_known_by_its_limits() {
    let stream = StreamConfig::new("FLEET", &["fleet.>"]);
    let day = Some(Duration::from_secs(86_400));
    assert!(!stream.may_let_go(None) && !stream.may_let_go(day), "it has no limits");
    let aged = StreamConfig { max_age: 3_600_000_000_000, ..stream.clone() };
    assert!(aged.may_let_go(day) && aged.may_let_go(None) && !aged.may_let_go(Some(Duration::from_secs(3_599))), "an hour");
    let full = StreamConfig { max_msgs: 10, ..stream.clone() };
    assert!(!full.may_let_go(day), "what is new is refused");
    assert!(StreamConfig { discard: Discard::Old, ..full }.may_let_go(Some(Duration::ZERO)), "what is new takes its place");
    assert!(!StreamConfig { discard: Discard::Old, ..stream.clone() }.may_let_go(day), "there is room");
    let used_up = |retention: &str| StreamConfig { retention: Some(retention.to_owned()), ..stream.clone() }.may_let_go(day);
    assert!(used_up("workqueue") && !used_up("limits"));
}

#[test]
fn a_stream_is_made_as_it_is_set_up() {
    let config =
        StreamConfig { num_replicas: 3, max_bytes: 1 << 30, duplicate_window: 120_000_000_000, ..StreamConfig::new("FLEET", &["fleet.>"]) };
    let (to, body) = Api::new(None).expect("no domain").create_stream(&config).expect("a name");
    assert_eq!(to.as_str(), "$JS.API.STREAM.CREATE.FLEET");
    assert_eq!(serde_json::from_slice::<StreamConfig>(&body).expect("JSON"), config);
    let made = format!(
        r#"{{"type":"io.nats.jetstream.api.v1.stream_create_response","config":{},"created":"2026-11-23T20:00:00Z","state":{{"messages":0,"bytes":0,"first_seq":0,"last_seq":0,"consumer_count":0}}}}"#,
        String::from_utf8(body).expect("text")
    );
    assert_eq!(stream_info(made.as_bytes()).expect("an answer").config, config);
}
