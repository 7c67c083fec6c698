//! What is read, what is not, and that it does not matter how the bytes are cut.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { message_bytes_max: 64 };

/// Every operation, and the fault behind them.
fn read(stream: &[u8], piece: usize) -> (Vec<Operation>, Option<ProtocolError>) {
    let (mut decoder, mut operations) = (Decoder::new(LIMITS), Vec::new());
    for mut part in stream.chunks(piece.max(1)) {
        loop {
            match decoder.receive(&mut part) {
                Ok(Some(operation)) => operations.push(operation),
                Ok(None) => break,
                Err(fault) => return (operations, Some(fault)),
            }
        }
        assert!(part.is_empty(), "bytes are left");
    }
    (operations, None)
}

fn message(subject: &str, reply: Option<&str>, headers: Result<Headers, HeadersError>, payload: &str) -> Operation {
    let (subject, reply, payload) = (subject.to_owned(), reply.map(str::to_owned), payload.as_bytes().to_vec());
    Operation::Message(Message { subject, subscription: 9, reply, headers, payload })
}

#[test]
fn operations_of_the_documentation_are_read_however_they_are_cut() {
    let stream = b"INFO {\"server_id\":\"Zk0\",\"server_name\":\"n1\",\"version\":\"2.15.2\",\"headers\":true,\"max_payload\":1048576,\"jetstream\":true} \r\n\
        +OK\r\nPING\r\nPONG\r\nping\r\n-ERR 'Unknown Protocol Operation'\r\n\
        MSG FOO.BAR 9 11\r\nHello World\r\nMSG FOO.BAR 9 GREETING.34 2\r\n\r\n\r\n\
        HMSG FOO 9 23 30\r\nNATS/1.0\r\nA: b\r\nC:d\r\n\r\npayload\r\n\
        HMSG _INBOX.1 9 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\n\
        HMSG FOO 9 5 6\r\nabcdef\r\nMSG\tX \t 9\t0\r\n\r\n";
    let (operations, fault) = read(stream, stream.len());
    assert_eq!(fault, None);
    let Operation::Info(info) = &operations[0] else { panic!("{:?}", operations[0]) };
    assert_eq!((info.server.as_str(), info.max_payload, info.jetstream, info.auth_required), ("n1", 1_048_576, true, false));
    let status = Headers::read(b"NATS/1.0 503\r\n\r\n").expect("a status");
    let expected = [
        Operation::Ok,
        Operation::Ping,
        Operation::Pong,
        Operation::Ping,
        Operation::Refused("Unknown Protocol Operation".to_owned()),
        message("FOO.BAR", None, Ok(Headers::default()), "Hello World"),
        message("FOO.BAR", Some("GREETING.34"), Ok(Headers::default()), "\r\n"),
        message("FOO", None, Ok(Headers::default().with("A", "b").with("C", "d")), "payload"),
        message("_INBOX.1", Some("r"), Ok(status), ""),
        message("FOO", None, Err(HeadersError::End), "f"),
        message("X", None, Ok(Headers::default()), ""),
    ];
    assert_eq!(operations[1..], expected);
    for piece in 1..40 {
        assert_eq!(read(stream, piece).0, operations, "in pieces of {piece}");
    }
}

#[test]
fn what_no_server_sends_is_a_fault_and_nothing_is_read_behind_it() {
    let unknown = |line: &str| ProtocolError::Operation(line.to_owned());
    for (stream, fault) in [
        (&b"GET / HTTP/1.1\r\n"[..], unknown("GET / HTTP/1.1")),
        (b"\r\n", unknown("")),
        (b"PING now\r\n", unknown("PING now")),
        (b"MSG a 1\r\n", unknown("MSG a 1")),
        (b"MSG a 1 b c 2\r\n", unknown("MSG a 1 b c 2")),
        (b"MSG a -1 2\r\n", unknown("MSG a -1 2")),
        (b"MSG a 1 +2\r\n", unknown("MSG a 1 +2")),
        (b"MSG a 99999999999999999999 2\r\n", unknown("MSG a 99999999999999999999 2")),
        (b"HMSG a 1 3 2\r\n", unknown("HMSG a 1 3 2")),
        (b"HMSG a 1 2\r\n", unknown("HMSG a 1 2")),
        (b"MSG a 1 65\r\n", ProtocolError::MessageBytes { limit: 64, length: 65 }),
        (b"MSG a 1 99999999999999999999999\r\n", ProtocolError::MessageBytes { limit: 64, length: usize::MAX }),
        (b"MSG a 1 2\r\nabc", ProtocolError::End),
        (b"MSG a 1 2\r\nab\rc", ProtocolError::End),
        (b"MSG a 1 2\r\nab\n", ProtocolError::End),
    ] {
        for piece in [1, 3, stream.len()] {
            assert_eq!(read(stream, piece), (Vec::new(), Some(fault.clone())), "{}", String::from_utf8_lossy(stream));
        }
        let mut decoder = Decoder::new(LIMITS);
        assert_eq!(decoder.receive(&mut &*stream), Err(fault.clone()));
        assert_eq!(decoder.receive(&mut &b"PING\r\n"[..]), Err(fault));
    }
    assert!(matches!(read(b"INFO {}\r\n", 3).1, Some(ProtocolError::Info(_))), "max_payload has to be told");
}

#[test]
fn lines_that_do_not_end_are_given_up_at_their_limit() {
    let long = |word: &str, bytes: usize| [word.as_bytes(), &vec![b'x'; bytes]].concat();
    for piece in [1, 1000, usize::MAX] {
        assert_eq!(read(&long("-ERR ", 4092), piece).1, Some(ProtocolError::LineBytes { limit: CONTROL_LINE_BYTES_MAX }));
        assert_eq!(read(&long("-ERR ", 4091), piece).1, None);
        assert_eq!(read(&long("info ", INFO_BYTES_MAX - 5), piece).1, None);
        assert_eq!(read(&long("info ", INFO_BYTES_MAX - 4), piece).1, Some(ProtocolError::LineBytes { limit: INFO_BYTES_MAX }));
    }
}

/// Lines that are nearly right, and bytes that are not.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"PING\r\n".to_vec()),
        Just(b"MSG a 1 3\r\nabc\r\n".to_vec()),
        Just(b"HMSG a 1 r 12 13\r\nNATS/1.0\r\n\r\nx\r\n".to_vec()),
        Just(b"INFO {\"max_payload\":10}\r\n".to_vec()),
        Just(b"-ERR 'no'\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn anything_is_read_the_same_however_it_is_cut(stream in stream(), piece in 1_usize..20) {
        prop_assert_eq!(read(&stream, piece), read(&stream, stream.len()));
    }
}
