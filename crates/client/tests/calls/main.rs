//! Calls against servers of these files' own.

mod pair;
mod server;

use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::{
    CallError, Connection, CoreSystems, EventForm, Page,
    answer::{Offer, System},
};
use http::{Method, StatusCode};
use tokio::net::TcpListener;

use crate::server::{Server, answer, cloud_at, limits, nobody};

#[tokio::test]
async fn a_connection_is_kept_and_made_again_once_the_server_has_closed_it() {
    let one = answer("200 OK", "1");
    let server = Server::play(vec![vec![one.clone(), one.clone()], vec![one]]).await;
    let connection = server.connection();
    for path in ["/a", "/b", "/c"] {
        let answered = connection.send(Method::GET, path, None).await.unwrap();
        assert_eq!((answered.status, answered.body.as_ref()), (StatusCode::OK, b"1".as_slice()), "{path}");
    }
    assert_eq!(server.requests().await, ["GET /a HTTP/1.1", "GET /b HTTP/1.1", "GET /c HTTP/1.1"]);
}

#[tokio::test]
async fn a_request_that_may_have_been_done_is_not_repeated() {
    let server = Server::play(vec![vec![String::new()]]).await;
    let error = server.connection().send(Method::POST, "/once", Some("{}".into())).await.unwrap_err();
    assert_eq!(error, CallError::Interrupted { address: server.address.to_string(), request: "POST /once".into() });
    assert_eq!(server.requests().await, ["POST /once HTTP/1.1"]);
}

#[tokio::test]
async fn nobody_there_and_nothing_answered_are_told_with_the_address() {
    let (_held, unused) = nobody();
    let error = Connection::new(unused, limits()).send(Method::GET, "/", None).await.unwrap_err();
    assert!(matches!(&error, CallError::Unreachable { address, .. } if *address == unused.to_string()), "{error}");
    assert!(error.to_string().contains("Check that the core system runs there"), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = Connection::new(silent.local_addr().unwrap(), limits()).send(Method::GET, "/", None).await.unwrap_err();
    assert!(matches!(error, CallError::TooSlow { limit, .. } if limit == limits().answer_timeout), "{error}");
}

#[tokio::test]
async fn an_answer_is_read_no_further_than_its_limit() {
    let server = Server::play(vec![vec![answer("200 OK", &"x".repeat(limits().answer_bytes_max + 1))]]).await;
    let error = server.connection().send(Method::GET, "/", None).await.unwrap_err();
    assert!(matches!(&error, CallError::Unexpected { body, .. } if body.contains("longer than 4096 bytes")), "{error}");
}

#[tokio::test]
async fn refusals_and_foreign_answers_are_told_apart() {
    let refused = r#"{"errorMessage":"System name is blank.","errorCode":400,"exceptionType":"BAD_PAYLOAD","origin":"/x"}"#;
    let denied = r#"{"errorMessage":"no","errorCode":401,"exceptionType":"AUTH"}"#;
    let script = vec![vec![
        answer("400 Bad Request", refused),
        answer("401 Unauthorized", denied),
        answer("404 Not Found", r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"There is no subscription 7."}"#),
        answer("404 Not Found", "<html>"),
        answer("200 OK", "?"),
    ]];
    let server = Server::play(script).await;
    let cloud = cloud_at(server.address).await;

    let error = cloud.rules(&Page::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "refused (BAD_PAYLOAD, /x): System name is blank.");
    assert!(!error.is_denied() && cloud.rules(&Page::default()).await.unwrap_err().is_denied());
    let problem = cloud.rules(&Page::default()).await.unwrap_err();
    assert_eq!(problem.to_string(), "refused (404): There is no subscription 7.");
    for status in [StatusCode::NOT_FOUND, StatusCode::OK] {
        let error = cloud.rules(&Page::default()).await.unwrap_err();
        assert!(matches!(&error, CallError::Unexpected { status: told, .. } if *told == status), "{error}");
    }
}

#[tokio::test]
async fn authorizations_key_is_the_text_without_its_quotes() {
    let server = Server::play(vec![vec![answer("200 OK", r#""MIIBIjAN""#)]]).await;
    let cloud = cloud_at(server.address).await;
    assert_eq!(cloud.authorization_key().await.unwrap(), "MIIBIjAN");
    assert_eq!(server.requests().await, ["GET /authorization/publickey HTTP/1.1"]);
}

#[tokio::test]
async fn a_missing_core_system_is_named() {
    let none = answer("200 OK", r#"{"serviceQueryData":[],"unfilteredHits":0}"#);
    let registry = Server::play(vec![vec![none]]).await;
    let error = CoreSystems::discover_within(registry.address, limits()).await.unwrap_err();
    assert!(error.to_string().contains("auth-public-key"), "{error}");
}

#[tokio::test]
async fn a_stream_gives_its_events_and_says_why_it_ended() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let whole = format!("{head}: hello\n\nid: 1\nevent: LOAD\ndata: 12\n\ndata: unfinished");
    let too_long = format!("{head}data: {}\n\n", "x".repeat(limits().event_bytes_max));
    let refused = r#"{"errorMessage":"no","errorCode":401,"exceptionType":"AUTH"}"#;
    let server = Server::play(vec![vec![whole], vec![too_long], vec![answer("401 Unauthorized", refused)]]).await;
    let cloud = cloud_at(server.address).await;
    let consumer =
        SystemRequest { system_name: Some("me".into()), address: Some("10.0.0.1".into()), port: Some(80), ..SystemRequest::default() };

    let mut events = cloud.events("a b", EventForm::Payload, Some(&consumer)).await.unwrap();
    let event = events.next().await.unwrap();
    assert_eq!((event.id.as_str(), event.event.as_str(), event.data.as_str()), ("1", "LOAD", "12"));
    assert_eq!(events.next().await, None);
    assert!(matches!(events.end(), Some(CallError::StreamEnded { .. })));

    let mut events = cloud.events("t", EventForm::Event, None).await.unwrap();
    assert_eq!(events.next().await, None);
    assert!(matches!(events.end(), Some(CallError::EventTooLong { limit_bytes: 64, .. })));

    assert!(cloud.events("t", EventForm::Event, None).await.unwrap_err().is_denied());
    let first = server.requests().await.remove(0);
    assert_eq!(first, "GET /eventhandler/subscription?eventtype=a%20b&system_name=me&address=10.0.0.1&port=80 HTTP/1.1");
}

#[tokio::test]
async fn a_secured_service_is_not_called_without_a_certificate() {
    let server = Server::play(Vec::new()).await;
    let cloud = cloud_at(server.address).await;
    let provider = System { system_name: "sensor".into(), address: "127.0.0.1".into(), port: 1, ..System::default() };
    let offer = |secure: &str| Offer { provider: provider.clone(), secure: secure.into(), ..Offer::default() };
    assert_eq!(cloud.provider(&offer("NOT_SECURE")).unwrap().scheme(), "http");
    for secure in ["CERTIFICATE", "TOKEN"] {
        let error = cloud.provider(&offer(secure)).unwrap_err();
        assert!(matches!(&error, CallError::Tls { address, .. } if address == "127.0.0.1:1"), "{error}");
    }
}
