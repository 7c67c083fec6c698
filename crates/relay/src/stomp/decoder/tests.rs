//! What is read, however it is cut, and that nothing beyond the limits is kept.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { head_bytes_max: 64, headers_max: 3, body_bytes_max: 16 };

/// All frames of a stream that comes in pieces of so many bytes, and the fault that ended it.
fn in_pieces(stream: &[u8], piece: usize) -> (Vec<Frame>, Option<StompError>) {
    let (mut decoder, mut frames) = (Decoder::new(LIMITS), Vec::new());
    for mut part in stream.chunks(piece.max(1)) {
        loop {
            match decoder.receive(&mut part) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(decoder.receive(&mut &b"RECEIPT\n\n\0"[..]), Err(fault.clone()), "nothing is taken behind a fault");
                    return (frames, Some(fault));
                }
            }
        }
        assert_eq!(part, b"", "bytes are left");
    }
    (frames, None)
}

fn read(stream: &[u8]) -> Result<Vec<Frame>, StompError> {
    let (frames, fault) = in_pieces(stream, stream.len());
    fault.map_or(Ok(frames), Err)
}

fn frame(command: Command, headers: &[(&str, &str)], body: &[u8]) -> Frame {
    let mut frame = headers.iter().fold(Frame::new(command), |frame, (name, value)| frame.with(name, value));
    frame.body = body.to_vec();
    frame
}

#[test]
fn frames_are_read_with_either_line_end_and_with_heart_beats_between_them() {
    let expected = [frame(Command::Message, &[("a", "b")], b"text"), frame(Command::Receipt, &[("receipt-id", "1")], b"")];
    for stream in [
        "MESSAGE\na:b\n\ntext\0RECEIPT\nreceipt-id:1\n\n\0",
        "\n\n\nMESSAGE\na:b\n\ntext\0\n\n\r\nRECEIPT\nreceipt-id:1\n\n\0\n\n",
        "\r\nMESSAGE\r\na:b\r\n\r\ntext\0\r\nRECEIPT\r\nreceipt-id:1\r\ncontent-length:0\r\n\r\n\0",
        "MESSAGE\ncontent-length:4\na:b\n\ntext\0RECEIPT\nreceipt-id:1\n\n\0",
    ] {
        for piece in 1..=stream.len() {
            assert_eq!(in_pieces(stream.as_bytes(), piece), (expected.to_vec(), None), "{stream:?} in pieces of {piece}");
        }
    }
}

#[test]
fn the_first_of_two_headers_of_a_name_counts() {
    assert_eq!(read(b"MESSAGE\na:1\na:2\n\n\0").unwrap()[0].header("a"), Some("1"));
    // Of lengths too: a second one must not move the end of the body.
    assert_eq!(read(b"MESSAGE\ncontent-length:1\ncontent-length:9\n\nx\0").unwrap()[0].body, b"x");
}

#[test]
fn only_the_first_two_frames_have_no_escapes() {
    assert_eq!(read(b"CONNECTED\nserver:a\\cb\n\n\0").unwrap()[0].header("server"), Some(r"a\cb"));
    assert_eq!(read(b"MESSAGE\nack:a\\cb\n\n\0").unwrap()[0].header("ack"), Some("a:b"));
}

#[test]
fn what_is_no_stomp_is_refused() {
    let header = |found: &str| StompError::Header(found.into());
    for (stream, expected) in [
        (&b"HTTP/1.1 400 Bad Request\n"[..], StompError::Command("HTTP/1.1 400 Bad Request".into())),
        (b"message\n\n\0", StompError::Command("message".into())),
        (b"\rMESSAGE\n\n\0", StompError::Command("\rMESSAGE".into())),
        (b"\0\n", StompError::Command("\0".into())),
        (b"MESSAGE\nnothing\n\n\0", header("nothing")),
        (b"MESSAGE\n:value\n\n\0", header(":value")),
        (b"MESSAGE\na:\\t\n\n\0", header("a:\\t")),
        (b"MESSAGE\na:\rb\n\n\0", header("a:\rb")),
        (b"MESSAGE\na:\0\n\n\0", header("a:\0")),
        (b"MESSAGE\na:\xff\n\n\0", header("a:\u{fffd}")),
        (b"MESSAGE\ncontent-length:\n\n\0", StompError::ContentLength(String::new())),
        (b"MESSAGE\ncontent-length:+1\n\na\0", StompError::ContentLength("+1".into())),
        (b"MESSAGE\ncontent-length:1\n\nab\0", StompError::NoEnd { length: 1, found: b'b' }),
        (b"RECEIPT\n\nbody\0", StompError::Body("RECEIPT")),
    ] {
        assert_eq!(read(stream), Err(expected), "{}", String::from_utf8_lossy(stream));
    }
}

#[test]
fn nothing_beyond_a_limit_is_kept() {
    let of_bytes = |head: usize| format!("MESSAGE\na:{}\n\n\0", "b".repeat(head - "MESSAGE\na:\n\n".len()));
    assert!(read(of_bytes(64).as_bytes()).is_ok());
    assert_eq!(read(of_bytes(65).as_bytes()), Err(StompError::HeadBytes { limit: 64 }));
    assert_eq!(read(&[b'A'; 65]), Err(StompError::HeadBytes { limit: 64 }), "a line that does not end");
    assert!(read(b"MESSAGE\na:1\nb:2\nc:3\n\n\0").is_ok());
    assert_eq!(read(b"MESSAGE\na:1\na:2\na:3\na:4\n"), Err(StompError::Headers { limit: 3 }));
    let long = StompError::BodyBytes { limit: 16 };
    assert!(read(b"MESSAGE\n\n0123456789abcdef\0").is_ok());
    assert_eq!(read(b"MESSAGE\n\n0123456789abcdefg"), Err(long.clone()));
    assert_eq!(read(b"MESSAGE\ncontent-length:17\n\n"), Err(long.clone()), "before any of it has come");
    assert_eq!(read(b"MESSAGE\ncontent-length:99999999999999999999999\n\n"), Err(long));
}

fn text() -> impl Strategy<Value = String> {
    "[a-z:\\\\\r\n ]{0,6}"
}

prop_compose! {
    fn any_frame()(
        command in prop_oneof![Just(Command::Send), Just(Command::Message), Just(Command::Error)],
        headers in proptest::collection::vec(("[a-z:\n]{1,4}", text()), 0..3), body in proptest::collection::vec(any::<u8>(), 0..16),
    ) -> Frame {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        frame(command, &headers, &body)
    }
}

proptest! {
    #[test]
    fn frames_come_back_however_they_are_cut(frames in proptest::collection::vec(any_frame(), 0..4), piece in 1..40_usize) {
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut stream));
        let roomy = Limits { head_bytes_max: 256, headers_max: 8, body_bytes_max: 64 };
        let (mut decoder, mut read) = (Decoder::new(roomy), Vec::new());
        for mut part in stream.chunks(piece) {
            while let Some(frame) = decoder.receive(&mut part).unwrap() {
                read.push(frame);
            }
        }
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn any_bytes_give_the_same_however_they_are_cut(
        stream in "(MESSAGE|RECEIPT|X)?\n([a-c]:[a-c\\\\]{0,3}\r?\n|content-length:[0-9]{1,2}\n){0,5}\n?[\0a\n]{0,30}(RECEIPT\n\n\0)?", piece in 1..9_usize,
    ) {
        let stream = stream.as_bytes();
        prop_assert_eq!(in_pieces(stream, piece), in_pieces(stream, stream.len()));
    }
}
