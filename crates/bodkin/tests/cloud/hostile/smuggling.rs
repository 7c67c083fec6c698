//! Requests that two servers in a row could cut differently, beyond those of `framing`: ends of lines, continuations, signs in chunk
//! sizes, hosts in targets. Each is refused with a status and the connection closed; what is smuggled behind is never answered.

use std::io;

use super::{ALL, assert_all_live, exchange, living, two_readings_fault};
use crate::support::cloud::{Cloud, System};

/// A path that answers GET, on every system.
fn get(system: System, headers: &str) -> String {
    format!("GET {} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n", living(system))
}

/// What of a head could be read in two ways.
const HEADS: [(&str, &str); 22] = [
    ("a length with a blank inside", "Content-Length: 1 0\r\n"),
    ("a length with a tab inside", "Content-Length: 1\t0\r\n"),
    ("a length in hexadecimal", "Content-Length: 0x0\r\n"),
    ("a length with a fraction", "Content-Length: 0.0\r\n"),
    ("a length with an underscore", "Content-Length: 0_0\r\n"),
    ("a length with an exponent", "Content-Length: 0e0\r\n"),
    ("an empty length", "Content-Length: \r\n"),
    ("a length of full-width digits", "Content-Length: \u{ff10}\r\n"),
    ("a length with a quote", "Content-Length: \"0\"\r\n"),
    ("a length with a vertical tab", "Content-Length: \u{b}0\r\n"),
    ("chunked twice", "Transfer-Encoding: chunked, chunked\r\n"),
    ("chunked in two headers", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    ("chunked and identity in two headers", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
    ("identity", "Transfer-Encoding: identity\r\n"),
    ("gzip before chunked", "Transfer-Encoding: gzip, chunked\r\n"),
    ("chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
    ("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n"),
    ("an empty coding", "Transfer-Encoding: \r\n"),
    ("chunked after a vertical tab", "Transfer-Encoding: \u{b}chunked\r\n"),
    ("a folded coding", "Transfer-Encoding:\r\n chunked\r\n"),
    ("a folded header", "X-Folded: a\r\n b\r\n"),
    ("a header that begins with a blank", " Content-Length: 0\r\n"),
];

/// Ends of lines that some servers take and some do not.
fn line_ends(system: System) -> Vec<(&'static str, Vec<u8>)> {
    let path = living(system);
    let text = |text: String| text.into_bytes();
    vec![
        ("line feeds only", text(format!("GET {path} HTTP/1.1\nHost: localhost\n\n"))),
        ("one line feed alone", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n"))),
        ("a line feed before a hidden length", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX: y\nContent-Length: 5\r\n\r\n"))),
        ("a line feed behind the request line", text(format!("GET {path} HTTP/1.1\nHost: localhost\r\n\r\n"))),
        ("a line feed for the last line", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\n"))),
        ("a carriage return alone", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX: y\rContent-Length: 5\r\n\r\n"))),
        ("carriage returns only", text(format!("GET {path} HTTP/1.1\rHost: localhost\r\r"))),
        ("NUL in a name", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX\0: y\r\n\r\n"))),
        ("NUL in the target", text(format!("GET {path}\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"))),
        ("NUL in the method", text(format!("GET\0 {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))),
        ("two blanks", text(format!("GET  {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))),
        ("a blank behind the version", text(format!("GET {path} HTTP/1.1 \r\nHost: localhost\r\n\r\n"))),
        ("a tab in the request line", text(format!("GET\t{path}\tHTTP/1.1\r\nHost: localhost\r\n\r\n"))),
        ("a version in small letters", text(format!("GET {path} http/1.1\r\nHost: localhost\r\n\r\n"))),
        ("a version of two digits", text(format!("GET {path} HTTP/1.01\r\nHost: localhost\r\n\r\n"))),
        ("no host", text(format!("GET {path} HTTP/1.1\r\n\r\n"))),
        ("two hosts", text(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"))),
    ]
}

/// Bodies in chunks whose ends two servers could see in different places.
const CHUNKS: [(&str, &str); 14] = [
    ("a size with a plus", "+2\r\n{}\r\n0\r\n\r\n"),
    ("a size with a minus", "-2\r\n{}\r\n0\r\n\r\n"),
    ("a size with a prefix", "0x2\r\n{}\r\n0\r\n\r\n"),
    ("a size after a blank", " 2\r\n{}\r\n0\r\n\r\n"),
    ("a size with an underscore", "0_2\r\n{}\r\n0\r\n\r\n"),
    ("an empty size", "\r\n{}\r\n0\r\n\r\n"),
    ("a size of 17 digits", "00000000000000002\r\n{}\r\n0\r\n\r\n"),
    ("a size that wraps around", "10000000000000002\r\n{}\r\n0\r\n\r\n"),
    ("a line feed behind the size", "2\n{}\r\n0\r\n\r\n"),
    ("a line feed in an extension", "2;a=\nb\r\n{}\r\n0\r\n\r\n"),
    ("a line feed behind the chunk", "2\r\n{}\n0\r\n\r\n"),
    ("a chunk without an end", "2\r\n{}0\r\n\r\n"),
    ("a trailer that is none", "2\r\n{}\r\n0\r\nnonsense\r\n\r\n"),
    ("a folded trailer", "2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n"),
];

#[test]
fn a_head_with_two_readings_is_refused_and_closed() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in ALL {
        for (what, header) in HEADS {
            let request = get(system, header) + "0\r\n\r\n" + &get(system, "");
            wrong.extend(
                two_readings_fault(cloud.address(system), request.as_bytes()).map(|fault| format!("{} {what}: {fault}", system.name())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

#[test]
fn a_line_that_ends_otherwise_is_refused_and_closed() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in ALL {
        for (what, request) in line_ends(system) {
            wrong.extend(two_readings_fault(cloud.address(system), &request).map(|fault| format!("{} {what}: {fault}", system.name())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

#[test]
fn a_chunk_with_two_readings_is_refused_and_closed() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for system in System::CORE {
        for (what, chunks) in CHUNKS {
            let request = format!(
                "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{}",
                super::posting(system),
                get(system, "")
            );
            wrong.extend(
                two_readings_fault(cloud.address(system), request.as_bytes()).map(|fault| format!("{} {what}: {fault}", system.name())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

#[test]
fn a_host_in_the_target_does_not_change_what_is_served() {
    let cloud = Cloud::shared();
    for system in ALL {
        let (address, path) = (cloud.address(system), living(system));
        let request = |target: &str| {
            let bytes = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            exchange(address, bytes.as_bytes()).expect("an answer").0.status
        };
        assert_eq!(request(&format!("http://{address}{path}")), 200, "{}", system.name());
        // What has no path names nothing.
        for line in ["GET localhost HTTP/1.1", "CONNECT localhost:80 HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://localhost HTTP/1.1"] {
            let (answer, _) = exchange(address, format!("{line}\r\nHost: {address}\r\n\r\n").as_bytes()).expect("an answer");
            assert!((400..=405).contains(&answer.status), "{} {line}: {}", system.name(), answer.status);
        }
        // Slashes and dots name other paths, and nothing is there.
        for target in [format!("//{address}{path}"), format!("/.{path}"), format!("/x/..{path}"), format!("/{path}"), format!("{path}%2f")]
        {
            assert_eq!(request(&target), 404, "{} {target}", system.name());
        }
    }
}

#[test]
fn sixty_four_headers_and_sixteen_kibibytes_are_taken_and_one_more_is_431() {
    let cloud = Cloud::shared();
    for system in ALL {
        let path = living(system);
        let with_headers = |count: usize| {
            let more: String = (1..count).map(|number| format!("X-{number}: x\r\n")).collect();
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
        };
        let with_bytes = |length: usize| {
            let (front, back) = (format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX: "), "\r\n\r\n");
            format!("{front}{}{back}", "x".repeat(length - front.len() - back.len()))
        };
        for (request, status) in
            [(with_headers(64), 200), (with_headers(65), 431), (with_bytes(16 * 1024), 200), (with_bytes(16 * 1024 + 1), 431)]
        {
            let (answer, mut connection) = exchange(cloud.address(system), request.as_bytes()).expect("an answer");
            assert_eq!(answer.status, status, "{} {} bytes", system.name(), request.len());
            assert!(status == 200 || connection.is_closed_by_server(), "{} stays open behind 431", system.name());
        }
    }
}

/// Trailers of a kibibyte each: far beyond what a head may have.
const TRAILERS: usize = 1_000;

#[test]
fn trailers_without_end_are_stopped_at_the_limit() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let mut connection = cloud.connect(system);
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n",
            super::posting(system)
        );
        connection.send(head.as_bytes()).expect("sent");
        let trailer = format!("X: {}\r\n", "x".repeat(1000));
        // Past the limit the server may have closed already.
        let _ = (0..TRAILERS).try_for_each(|_| connection.send(trailer.as_bytes()));
        match connection.read_answer() {
            Ok(answer) => assert!(matches!(answer.status, 400 | 431), "{}: {}", system.name(), answer.status),
            // The refusal is lost when the server closes on bytes it has not read.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{}", system.name()),
        }
        assert!(connection.is_closed_by_server(), "{} stays open", system.name());
    }
    assert_all_live(&cloud);
}
