//! A service is asked as a consumer would ask it, and whatever it answers is taken for what it is.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
};

use bodkin_arrowhead::{address::Address, name::SystemName, orchestrator::ProbeMethod};

use super::*;

/// Far above what an answer takes here, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of tests that wait for it to be over.
const SHORT: Duration = Duration::from_millis(200);

/// What a stand-in does with a request: it answers these bytes, and keeps the connection or not. Without bytes it says nothing, and keeps it.
type Answers = fn(usize) -> (&'static str, bool);

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NOT_ALLOWED: &str = "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n";

/// A service that answers its requests, which are counted from 0; each request's lines come out, and an empty text for each connection.
fn serve(answers: Answers) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, hear) = channel();
    thread::spawn(move || {
        let mut count = 0;
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            let _ = heard.send(String::new());
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while let Some(request) = read_request(&mut reader) {
                let (bytes, keeps) = answers(count);
                count += 1;
                let _ = heard.send(request);
                if (&stream).write_all(bytes.as_bytes()).is_err() || !keeps {
                    break;
                }
                if bytes.is_empty() {
                    open.push(stream.try_clone().unwrap());
                    break;
                }
            }
        }
    });
    (address, hear)
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut request = String::new();
    loop {
        let before = request.len();
        if reader.read_line(&mut request).ok()? == 0 {
            return None;
        }
        if &request[before..] == "\r\n" {
            return Some(request);
        }
    }
}

fn probe(at: SocketAddr) -> ServiceProbe {
    ServiceProbe {
        provider: SystemName::parse("sensor").unwrap(),
        address: Address::from_stored(&at.ip().to_string()),
        port: at.port(),
        is_secure: false,
        method: ProbeMethod::Options,
        path: "/heat".to_owned(),
    }
}

fn asking(patience: Duration) -> Asking {
    Asking { patience, destinations: Destinations::new(&[]), security: None }
}

async fn measured(answers: Answers, patience: Duration) -> (Measurement, Vec<String>) {
    let (at, hear) = serve(answers);
    let (_, measurement) = measure(probe(at), asking(patience)).await;
    (measurement, hear.try_iter().collect())
}

fn answered(measurement: &Measurement) -> usize {
    measurement.attempts.iter().flatten().count()
}

#[tokio::test]
async fn a_service_is_asked_what_may_be_done_with_it_on_one_connection_and_without_a_body() {
    let (measurement, heard) = measured(|_| (OK, true), PATIENCE).await;
    assert_eq!((measurement.attempts.len(), answered(&measurement)), (ATTEMPTS, ATTEMPTS), "{measurement:?}");
    assert_eq!(measurement.trouble, None);
    let (connections, requests): (Vec<_>, Vec<_>) = heard.into_iter().partition(String::is_empty);
    assert_eq!((connections.len(), requests.len()), (1, ATTEMPTS));
    assert!(requests[0].starts_with("OPTIONS /heat HTTP/1.1\r\nHost: 127.0.0.1:"), "{requests:?}");
    let carries = |request: &String| ["content-length", "transfer-encoding"].iter().any(|name| request.to_ascii_lowercase().contains(name));
    assert!(!requests.iter().any(carries), "{requests:?}");
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let (measurement, _) = measured(|_| (NOT_ALLOWED, true), PATIENCE).await;
    assert_eq!((answered(&measurement), measurement.trouble), (ATTEMPTS, None));
}

#[tokio::test]
async fn a_service_that_ends_each_connection_is_asked_on_others() {
    // Told, and without a word.
    for answers in [(|_| ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false)) as Answers, |_| {
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false)
    }] {
        let (measurement, heard) = measured(answers, PATIENCE).await;
        assert_eq!((answered(&measurement), &measurement.trouble), (ATTEMPTS, &None));
        assert_eq!(heard.iter().filter(|line| line.is_empty()).count(), ATTEMPTS);
    }
}

#[tokio::test]
async fn what_is_not_answered_in_time_is_lost_and_what_follows_is_not() {
    let (measurement, _) = measured(|count| if count == 3 { ("", true) } else { (OK, true) }, Duration::from_secs(5)).await;
    assert_eq!((measurement.attempts.len(), measurement.attempts[3]), (ATTEMPTS, None), "{measurement:?}");
    assert!(measurement.trouble.as_deref().is_some_and(|told| told.contains("no answer within 5s")), "{measurement:?}");
    assert_eq!(answered(&measurement), ATTEMPTS - 1, "{measurement:?}");
}

#[tokio::test]
async fn what_speaks_no_http_is_lost() {
    let (measurement, _) = measured(|_| ("SSH-2.0-x\r\n\r\n", true), PATIENCE).await;
    assert_eq!((measurement.attempts.len(), answered(&measurement)), (ATTEMPTS, 0));
    assert!(measurement.trouble.as_deref().is_some_and(|told| told.contains("expected an HTTP/1.1 answer")), "{measurement:?}");
}

#[tokio::test]
async fn a_body_without_an_end_is_given_up_and_is_an_answer_all_the_same() {
    // The head says that far more comes than is read.
    let (measurement, _) = measured(
        |_| {
            static LONG: std::sync::LazyLock<String> =
                std::sync::LazyLock::new(|| format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", "x".repeat(128 * 1024)));
            (LONG.as_str(), false)
        },
        PATIENCE,
    )
    .await;
    assert_eq!(answered(&measurement), ATTEMPTS, "{measurement:?}");
}

#[tokio::test]
async fn who_is_not_there_is_tried_once_and_all_is_lost() {
    // Bound, so that it is nobody else's, and not listening.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (_, measurement) = measure(probe(held.local_addr().unwrap()), asking(SHORT)).await;
    assert_eq!((measurement.attempts.len(), answered(&measurement)), (ATTEMPTS, 0));
    assert!(measurement.trouble.is_some());
}

#[tokio::test]
async fn our_own_listeners_are_not_asked_and_https_not_without_certificates() {
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let asking_own = Asking { destinations: Destinations::new(&[own]), ..asking(SHORT) };
    let (_, measurement) = measure(probe(own), asking_own).await;
    assert_eq!(measurement.attempts, [Some(Duration::ZERO); ATTEMPTS]);
    let (at, _hear) = serve(|_| (OK, true));
    let (_, measurement) = measure(ServiceProbe { is_secure: true, ..probe(at) }, asking(PATIENCE)).await;
    assert_eq!((answered(&measurement), measurement.trouble.as_deref()), (0, Some("it speaks HTTPS, which insecure mode does not")));
}
