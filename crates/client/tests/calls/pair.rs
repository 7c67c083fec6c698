//! Calls to the two nodes of a reliable pair.

use std::time::{Duration, Instant};

use bodkin_client::{CallError, Connection, CoreSystems, EventForm, Limits};
use http::{Method, StatusCode};

use crate::server::{Server, answer, limits, nobody, provider_at};

/// What a node answers that does not lead.
fn not_leading() -> String {
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno".to_owned()
}

/// A call to a pair whose nodes play these scripts: its outcome, and what each node was asked.
async fn call(method: Method, first: Vec<Vec<String>>, second: Vec<Vec<String>>) -> (Result<StatusCode, CallError>, [Vec<String>; 2]) {
    let (first, second) = (Server::play(first).await, Server::play(second).await);
    let connection = Connection::new(format!("{}, {}", first.address, second.address), limits());
    let outcome = connection.send(method, "/x", Some("{}".into())).await.map(|answer| answer.status);
    (outcome, [first.requests().await, second.requests().await])
}

#[tokio::test]
async fn the_other_node_is_asked_where_nothing_was_done() {
    let done = || vec![vec![answer("201 Created", "1")]];
    let asked = vec!["POST /x HTTP/1.1".to_owned()];
    let (outcome, requests) = call(Method::POST, Vec::new(), done()).await;
    assert_eq!((outcome, requests), (Ok(StatusCode::CREATED), [vec![], asked.clone()]), "nobody listens at the first address");
    let (outcome, requests) = call(Method::POST, vec![vec![not_leading()]], done()).await;
    assert_eq!((outcome, requests), (Ok(StatusCode::CREATED), [asked.clone(), asked.clone()]), "the first node does not lead");
    let (outcome, requests) = call(Method::POST, vec![vec![answer("503 Service Unavailable", "{}")]], Vec::new()).await;
    assert_eq!((outcome, requests), (Ok(StatusCode::SERVICE_UNAVAILABLE), [asked, vec![]]), "the node that leads cannot do it");
}

#[tokio::test]
async fn what_may_have_been_done_is_not_repeated_but_for_a_question() {
    let silent = || vec![vec![String::new()]];
    let (outcome, [first, second]) = call(Method::POST, silent(), Vec::new()).await;
    assert!(matches!(outcome, Err(CallError::Interrupted { .. })), "{outcome:?}");
    assert_eq!((first.len(), second.len()), (1, 0));
    let (outcome, [first, second]) = call(Method::GET, silent(), vec![vec![answer("200 OK", "1")]]).await;
    assert_eq!((outcome, first.len(), second.len()), (Ok(StatusCode::OK), 1, 1));
}

#[tokio::test]
async fn that_nobody_leads_is_told_after_a_limit() {
    let (_held, unused) = nobody();
    let limits = Limits { failover_timeout: Duration::from_millis(200), ..limits() };
    let refused = Server::play(vec![vec![not_leading(); 1]; 100]).await;
    let begun = Instant::now();
    let connection = Connection::new(format!("{},{unused}", refused.address), limits);
    let error = connection.send(Method::POST, "/x", None).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, CallError::NobodyLeads { .. }), "{told}");
    assert!([refused.address, unused].iter().all(|address| told.contains(&address.to_string())), "{told}");
    assert!(begun.elapsed() >= limits.failover_timeout);
}

#[tokio::test]
async fn the_other_nodes_core_systems_are_found_anew() {
    let found = |server: &Server| answer("200 OK", &provider_at(&server.address.to_string()));
    let key = || vec![vec![answer("200 OK", r#""key""#)]];
    let (before, after) = (Server::play(key()).await, Server::play(key()).await);
    let first = Server::play(vec![vec![found(&before); 3]]).await;
    let second = Server::play(vec![vec![not_leading()], vec![found(&after)]]).await;
    let cloud = CoreSystems::discover_within(format!("{},{}", first.address, second.address), limits()).await.unwrap();
    for server in [before, after] {
        assert_eq!(cloud.authorization_key().await.unwrap(), "key");
        assert_eq!(server.requests().await, ["GET /authorization/publickey HTTP/1.1"]);
    }
    assert_eq!(second.requests().await.len(), 2, "asked again when it leads");
}

#[tokio::test]
async fn a_stream_is_opened_at_the_node_that_leads() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\nevent: LOAD\ndata: 12\n\n";
    let found = |server: &Server| answer("200 OK", &provider_at(&server.address.to_string()));
    let (before, after) = (Server::play(vec![vec![not_leading()]]).await, Server::play(vec![vec![stream.to_owned()]]).await);
    let first = Server::play(vec![vec![found(&before); 3]]).await;
    let second = Server::play(vec![vec![found(&after)]]).await;
    let cloud = CoreSystems::discover_within(format!("{},{}", first.address, second.address), limits()).await.unwrap();
    let mut events = cloud.events("LOAD", EventForm::Payload, None).await.unwrap();
    assert_eq!(events.next().await.map(|event| event.data), Some("12".to_owned()));
    assert_eq!(before.requests().await, after.requests().await);
}
