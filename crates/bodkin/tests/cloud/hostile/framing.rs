//! Where one request ends and the next begins: pipelines, chunks, floods, two readings of one head, nonsense.

use std::io;
use std::net::SocketAddr;

use serde_json::json;

use super::{ALL, REFUSAL_PATIENCE, assert_all_live, exchange, living, posting, two_readings_fault};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, System};
use crate::support::sse::EventStream;

#[test]
fn pipelined_requests_are_answered_in_order() {
    let cloud = Cloud::shared();
    for system in ALL {
        let mut bytes = String::new();
        for path in
            [living(system), format!("/{}/first-unknown", system.name()), living(system), format!("/{}/second-unknown", system.name())]
        {
            bytes.push_str(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        }
        let mut connection = cloud.connect(system);
        connection.send(bytes.as_bytes()).expect("sent");
        let statuses: Vec<u16> = (0..4).map(|_| connection.read_answer().expect("an answer").status).collect();
        assert_eq!(statuses, [200, 404, 200, 404], "{}", system.name());
    }
}

#[test]
fn pipelined_publishes_mix_with_other_requests_in_order() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-pipe", 1);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hostile-pipe", &[]);
    let mut bytes = String::new();
    for number in 0..50 {
        let body = event("hostile-pipe", system("hostile-pipe", 1), &number.to_string()).to_string();
        bytes.push_str(&format!(
            "POST /eventhandler/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        bytes.push_str("GET /eventhandler/unknown HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let mut connection = cloud.connect(System::EventHandler);
    connection.send(bytes.as_bytes()).expect("sent");
    for _ in 0..50 {
        assert_eq!(connection.read_answer().expect("an answer").status, 200);
        assert_eq!(connection.read_answer().expect("an answer").status, 404);
    }
    let numbers: Vec<String> = stream.wait_for(50).into_iter().map(|event| event.data).collect();
    assert_eq!(numbers, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_request_may_come_byte_by_byte_or_in_chunks() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-chunks", 1);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hostile-chunks", &[]);
    let query = json!({"serviceDefinitionRequirement": "hostile-chunks"}).to_string();
    let publish = event("hostile-chunks", system("hostile-chunks", 1), "in pieces").to_string();
    for (system, body) in [(System::ServiceRegistry, query), (System::EventHandler, publish)] {
        let head = format!("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", posting(system));
        let (front, back) = body.split_at(body.len() / 2);
        let chunked = format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x};name=value\r\n{front}\r\n{:X}\r\n{back}\r\n0\r\nTrailer: x\r\n\r\n",
            front.len(),
            back.len()
        );
        let counted = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let mut connection = cloud.connect(system);
        for request in [&chunked, &counted, &chunked] {
            for byte in request.as_bytes() {
                connection.send(&[*byte]).expect("sent");
            }
            assert_eq!(connection.read_answer().expect("an answer").status, 200, "{request}");
        }
    }
    assert!(stream.wait_for(3).iter().all(|event| event.data == "in pieces"));
}

#[test]
fn an_expectation_is_met_before_the_body_is_sent() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-expect", 1);
    let query = json!({"serviceDefinitionRequirement": "hostile-expect"});
    let publish = event("hostile-expect", system("hostile-expect", 1), "expected");
    for (system, body) in [(System::ServiceRegistry, query), (System::EventHandler, publish)] {
        let body = body.to_string();
        let mut connection = cloud.connect(system);
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            posting(system),
            body.len()
        );
        connection.send(head.as_bytes()).expect("sent");
        assert_eq!(connection.read_head().expect("an interim answer").status, 100, "{}", system.name());
        connection.send(body.as_bytes()).expect("sent");
        assert_eq!(connection.read_answer().expect("an answer").status, 200, "{}", system.name());
    }
}

#[test]
fn a_flood_of_headers_is_refused() {
    let cloud = Cloud::shared();
    for system in ALL {
        let many: String = (0..1_000).map(|number| format!("X-{number}: x\r\n")).collect();
        let long = format!("X-Long: {}\r\n", "x".repeat(512 * 1024));
        for (what, flood) in [("many headers", many), ("a long header", long)] {
            let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n{flood}\r\n", living(system));
            match exchange(cloud.address(system), request.as_bytes()) {
                Ok((answer, _)) => assert!(matches!(answer.status, 400 | 431), "{} {what}: {}", system.name(), answer.status),
                // The refusal is lost when the server closes on bytes it has not read.
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{} {what}", system.name()),
            }
        }
        let long_target = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(512 * 1024));
        match exchange(cloud.address(system), long_target.as_bytes()) {
            Ok((answer, _)) => assert!(matches!(answer.status, 400 | 414 | 431), "{}: {}", system.name(), answer.status),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{}", system.name()),
        }
    }
    assert_all_live(&cloud);
}

/// Heads of a POST whose body's end two readers could see in different places.
const AMBIGUOUS: [(&str, &str); 12] = [
    ("length and chunks", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n"),
    ("chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n"),
    ("two lengths", "Content-Length: 2\r\nContent-Length: 6\r\n"),
    ("one length twice", "Content-Length: 2\r\nContent-Length: 2\r\n"),
    ("a list of lengths", "Content-Length: 2, 6\r\n"),
    ("a signed length", "Content-Length: +2\r\n"),
    ("a negative length", "Content-Length: -2\r\n"),
    ("a length that is no number", "Content-Length: 2x\r\n"),
    ("a length beyond all numbers", "Content-Length: 99999999999999999999999\r\n"),
    ("chunks not last", "Transfer-Encoding: chunked, identity\r\n"),
    ("an unknown coding", "Transfer-Encoding: xchunked\r\n"),
    ("a blank before the colon", "Transfer-Encoding : chunked\r\n"),
];

#[test]
fn a_request_with_two_readings_is_400_and_the_connection_is_closed() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in ALL {
        for (what, framing) in AMBIGUOUS {
            let smuggled = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", living(system));
            let request = format!(
                "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{framing}\r\n0\r\n\r\n{smuggled}",
                posting(system)
            );
            wrong.extend(
                two_readings_fault(cloud.address(system), request.as_bytes()).map(|fault| format!("{} {what}: {fault}", system.name())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

/// What is no HTTP request at all.
fn nonsense() -> Vec<(&'static str, Vec<u8>)> {
    let head = |line: &str| format!("{line}\r\nHost: localhost\r\n\r\n").into_bytes();
    vec![
        ("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaa\r\n\r\n".to_vec()),
        ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("zeros", vec![0; 512]),
        ("no version", head("GET /")),
        ("an unknown version", head("GET / HTTP/9.9")),
        ("a blank in the target", head("GET /a b HTTP/1.1")),
        ("a control character in the target", head("GET /a\x01b HTTP/1.1")),
        ("a header without a colon", b"GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n".to_vec()),
        ("a header without a name", b"GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n".to_vec()),
        ("a zero in a header", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n".to_vec()),
        ("a chunk size that is none", b"POST /eventhandler/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec()),
        ("a chunk size beyond all numbers", b"POST /eventhandler/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_vec()),
        ("a chunk longer than its size", b"POST /eventhandler/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n".to_vec()),
    ]
}

#[test]
fn nonsense_is_refused_and_closed() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in ALL {
        for (what, bytes) in nonsense() {
            wrong.extend(nonsense_fault(cloud.address(system), &bytes).map(|fault| format!("{} {what}: {fault}", system.name())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

/// What is wrong with the answer to nonsense: accepted, or neither answered nor closed.
fn nonsense_fault(address: SocketAddr, bytes: &[u8]) -> Option<String> {
    match exchange(address, bytes) {
        Ok((answer, _)) if !(400..=505).contains(&answer.status) => Some(format!("answered {}", answer.status)),
        Ok((_, mut connection)) => (!connection.is_closed_by_server()).then(|| "stays open".to_string()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some("neither answered nor closed".into()),
        // Closed without a word.
        Err(_) => None,
    }
}

#[test]
fn an_old_client_is_answered_and_closed() {
    let cloud = Cloud::shared();
    for system in ALL {
        let request = format!("GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n", living(system));
        let mut connection = cloud.connect(system);
        connection.send(request.as_bytes()).expect("sent");
        let answer = connection.read_answer().expect("an answer");
        assert_eq!(answer.status, 200, "{}", system.name());
        assert!(connection.is_closed_by_server(), "{} stays open", system.name());
    }
}

#[test]
fn a_client_that_has_said_everything_is_answered_and_closed() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-finished", 1);
    let publish = event("hostile-finished", system("hostile-finished", 1), "x").to_string();
    let mut wrong = Vec::new();
    let mut finish = |system: System, method: &str, target: &str, body: Option<&[u8]>| {
        let mut connection = cloud.connect(system);
        connection.wait_at_most(REFUSAL_PATIENCE).expect("a limit");
        connection.send_request(method, target, &[("Content-Type", "application/json")], body).expect("sent");
        connection.finish_sending().expect("half closed");
        assert_eq!(connection.read_answer().expect("an answer").status, 200, "{target}");
        if !connection.is_closed_by_server() {
            wrong.push(target.to_string());
        }
    };
    ALL.into_iter().for_each(|system| finish(system, "GET", &living(system), None));
    finish(System::EventHandler, "POST", "/eventhandler/publish", Some(publish.as_bytes()));
    assert!(wrong.is_empty(), "these hold a connection whose client has ended: {wrong:?}");
}

#[test]
fn a_client_that_ends_within_a_request_is_let_go_at_once() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in ALL {
        for bytes in ["", "GET /x HT", "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"] {
            let mut connection = cloud.connect(system);
            connection.wait_at_most(REFUSAL_PATIENCE).expect("a limit");
            connection.send(bytes.as_bytes()).expect("sent");
            connection.finish_sending().expect("half closed");
            if !connection.is_closed_by_server() {
                wrong.push(format!("{} after {bytes:?}", system.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "these hold a connection whose client has ended: {wrong:#?}");
}

#[test]
fn a_client_that_asks_for_it_is_closed_after_its_answer() {
    let cloud = Cloud::shared();
    for system in ALL {
        let mut connection = cloud.connect(system);
        let answer = connection.request("GET", &living(system), &[("Connection", "close")], None).expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(connection.is_closed_by_server(), "{} stays open", system.name());
    }
}

#[test]
fn http10_keep_alive_is_confirmed_and_kept() {
    let cloud = Cloud::shared();
    for of in ALL {
        let mut connection = cloud.connect(of);
        for (header, confirmed) in
            [("Connection: keep-alive\r\n", "keep-alive"), ("Connection: Keep-Alive\r\n", "keep-alive"), ("", "close")]
        {
            let request = format!("GET {} HTTP/1.0\r\nHost: localhost\r\n{header}\r\n", living(of));
            connection.send(request.as_bytes()).expect("the connection is open");
            let answer = connection.read_answer().expect("an answer").expect_status(200);
            assert_eq!(answer.header("Connection"), Some(confirmed), "{}", of.name());
        }
        assert!(connection.is_closed_by_server(), "{}", of.name());
    }
}

#[test]
fn host_of_an_absolute_target_counts_and_not_the_header() {
    let cloud = Cloud::shared();
    for of in ALL {
        let status = |authority: &str, host: &str| {
            let request = format!("GET http://{authority}{} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", living(of));
            exchange(cloud.address(of), request.as_bytes()).expect("an answer").0.status
        };
        let own = cloud.address(of).to_string();
        assert_eq!((status(&own, "proxy.example"), status("evil.example", "localhost")), (200, 421), "{}", of.name());
        assert_eq!((status("user@localhost", "localhost"), status("", "localhost")), (400, 400), "{}", of.name());
    }
}

#[test]
fn client_that_ends_in_a_request_gets_a_status() {
    let cloud = Cloud::shared();
    for of in ALL {
        let head =
            format!("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n", posting(of));
        for part in [&head[..head.len() / 2], &head, &format!("{head}{{\"a\"")] {
            let mut connection = cloud.connect(of);
            connection.send(part.as_bytes()).expect("sent");
            connection.finish_sending().expect("half closed");
            assert_eq!(connection.read_answer().expect("an answer").status, 400, "{} {part}", of.name());
            assert!(connection.is_closed_by_server(), "{}", of.name());
        }
        // A whole request is answered as ever, and an end without a request has no answer.
        let mut connection = cloud.connect(of);
        connection.send(format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", living(of)).as_bytes()).expect("sent");
        connection.finish_sending().expect("half closed");
        assert_eq!(connection.read_answer().expect("an answer").status, 200, "{}", of.name());
        assert!(connection.is_closed_by_server(), "{}", of.name());
    }
}
