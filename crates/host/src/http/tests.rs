use super::*;

const BODY_MAX: usize = 32;

type Taken = Vec<(String, String, bool, Vec<u8>)>;

impl RequestReader {
    fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space().expect("no quota is used up");
            let length = space.len().min(bytes.len());
            space[..length].copy_from_slice(&bytes[..length]);
            bytes = &bytes[length..];
            self.fill(length);
        }
    }
}

/// Feeds bytes in pieces and gives the requests, or the error behind them.
fn read(bytes: &[u8], piece: usize) -> (Taken, Option<HttpError>) {
    let mut reader = RequestReader::new(BODY_MAX);
    let mut taken = Vec::new();
    for part in bytes.chunks(piece) {
        reader.extend(part);
        loop {
            match reader.next() {
                Ok(Some(r)) => taken.push((r.method.to_owned(), r.target.to_owned(), r.keep_alive.keeps(), r.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (taken, Some(error)),
            }
        }
    }
    (taken, None)
}

fn check(text: &str, expected: &[(&str, &str, bool, &str)], error: Option<HttpError>) {
    for piece in [1, 2, 3, 7, text.len()] {
        let (taken, found) = read(text.as_bytes(), piece);
        let taken: Vec<_> = taken.iter().map(|(m, t, k, b)| (m.as_str(), t.as_str(), *k, std::str::from_utf8(b).unwrap())).collect();
        assert_eq!((taken.as_slice(), found), (expected, error), "{text:?} in pieces of {piece}");
    }
}

#[test]
fn requests_are_whole_however_the_stream_is_cut() {
    check("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", &[("GET", "/a?b=c", true, "")], None);
    check("GET /a HTTP/1.0\r\n\r\n", &[("GET", "/a", false, "")], None);
    check("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", &[("GET", "/a", true, "")], None);
    check("GET http://h:1/a HTTP/1.1\r\nHost: x\r\nconnection: foo, close\r\n\r\n", &[("GET", "/a", false, "")], None);
    check(
        "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcPOST /q HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /r HTTP/1.1\r\nHost: x\r\n\r\n",
        &[("POST", "/p", true, "abc"), ("POST", "/q", true, ""), ("GET", "/r", true, "")],
        None,
    );
}

#[test]
fn head_in_single_bytes_is_parsed_per_line() {
    let head = format!("GET /{} HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(7_000), "b".repeat(7_000));
    let mut reader = RequestReader::new(BODY_MAX);
    let mut requests = 0;
    for byte in head.bytes() {
        reader.extend(&[byte]);
        requests += usize::from(reader.next().expect("a request").is_some());
    }
    assert_eq!(requests, 1);
    assert!(reader.heads_parsed <= FIRST_BYTES_MAX + 4, "{} parses of a head with 4 lines", reader.heads_parsed);
}

#[test]
fn bytes_of_another_protocol_are_refused_at_once() {
    let client_hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03";
    for piece in [1, client_hello.len()] {
        let (taken, error) = read(client_hello, piece);
        assert!(taken.is_empty() && error == Some(HttpError::Malformed("This is not an HTTP/1.1 request.")), "{error:?}");
    }
}

#[test]
fn chunks_are_joined_and_trailers_passed_over() {
    let chunked = "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\nGET /r HTTP/1.1\r\nHost: x\r\n\r\n";
    check(chunked, &[("POST", "/p", true, "abcde"), ("GET", "/r", true, "")], None);
}

#[test]
fn ambiguous_and_oversized_requests_are_refused() {
    let malformed = |why| Some(HttpError::Malformed(why));
    check(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        &[],
        malformed("Content-Length was given twice."),
    );
    check("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", &[], malformed("Content-Length is not a length."));
    check(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        &[],
        malformed("Content-Length is not a length."),
    );
    let both = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(both, &[], malformed("Both Content-Length and Transfer-Encoding were given."));
    check("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", &[], Some(HttpError::UnknownCoding));
    check("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", &[], malformed("A chunk of the body is malformed."));
    check(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        &[],
        malformed("A chunk of the body is malformed."),
    );
    check("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n", &[], Some(HttpError::BodyTooLong));
    let wrapping = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nfffffffffffffffe\r\n";
    check(wrapping, &[], Some(HttpError::BodyTooLong));
    check("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 33\r\n\r\n", &[], Some(HttpError::BodyTooLong));
    check("GET / HTTP/1.1\r\n\r\n", &[], malformed("Host is missing."));
    check("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", &[], malformed("Host was given twice."));
    let twice = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n";
    check(twice, &[], malformed("Authorization was given twice."));
    for pathless in ["GET http://h HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://h?x HTTP/1.1\r\nHost: x\r\n\r\n"] {
        check(pathless, &[], malformed("The request's target has no path."));
    }
    for bare in ["GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\n"] {
        check(bare, &[], malformed("A line of the head ends without a carriage return."));
    }
    for bare in ["2;x=\ny\r\nab\r\n0\r\n\r\n", "2\r\nab\r\n0\r\nT: v\n\r\n"] {
        let chunked = format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{bare}");
        check(&chunked, &[], malformed("A chunk of the body is malformed."));
    }
    check("GET / HTTP/2.0\r\n\r\n", &[], Some(HttpError::UnknownVersion));
    check("\u{16}\u{3}\u{1}", &[], malformed("This is not an HTTP/1.1 request."));
    let flood = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
    check(&flood, &[], Some(HttpError::HeadTooLong));
    let endless = format!("GET /{} HTTP/1.1\r\nHost: x\r\n", "a".repeat(HEAD_BYTES_MAX));
    check(&endless, &[], Some(HttpError::HeadTooLong));
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_once() {
    let mut reader = RequestReader::new(BODY_MAX);
    reader.extend(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert!(reader.next().unwrap().is_none());
    assert!(reader.take_expects_continue());
    assert!(!reader.take_expects_continue());
    reader.extend(b"ab");
    assert_eq!(reader.next().unwrap().unwrap().body, b"ab");
}

#[test]
fn attributes_of_a_cloud_event_are_headers_without_their_prefix() {
    let mut reader = RequestReader::new(BODY_MAX);
    reader.extend(b"POST / HTTP/1.1\r\nHost: h\r\nce-id: a 1\r\nCE-Type:  hot\r\nce-: \r\nContent-Length: 1\r\nCexy: no\r\n\r\nx");
    let request = reader.next().unwrap().unwrap();
    assert_eq!(request.cloud_event, [("id", "a 1"), ("Type", "hot")]);
    assert_eq!(request.body, b"x");
    reader.extend(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(reader.next().unwrap().unwrap().cloud_event.is_empty(), "they are of one request");
    reader.extend(b"GET / HTTP/1.1\r\nHost: h\r\nce-id: \xff\r\n\r\n");
    assert!(reader.next().is_err(), "a header that matters is UTF-8");
}
