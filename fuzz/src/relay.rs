//! What a relay, or a client of the own one, sends.

use bodkin_relay::{
    native::{FRAME_BYTES_MAX, Frame as NativeFrame, HEAD_BYTES, read, write},
    stomp::{Decoder, Frame, HeartBeat, Limits, ServerFrame},
};

/// Small, so that each is met.
const LIMITS: Limits = Limits { head_bytes_max: 96, headers_max: 4, body_bytes_max: 32 };

/// Which protocol, a piece's length, then the stream: however it is cut, the same frames come out of it, within the limits, and are written and read again as
/// the same.
pub fn relay(bytes: &[u8]) {
    let [protocol, piece, stream @ ..] = bytes else { return };
    if protocol % 2 == 0 {
        let whole = frames_of_stomp(stream, stream.len());
        for piece in [1, usize::from(*piece)] {
            assert_eq!(frames_of_stomp(stream, piece), whole, "in pieces of {piece}");
        }
    } else {
        native(stream);
    }
}

/// A line for each frame, and one for the fault.
fn frames_of_stomp(stream: &[u8], piece: usize) -> Vec<String> {
    let (mut decoder, mut lines) = (Decoder::new(LIMITS), Vec::new());
    for mut part in stream.chunks(piece.max(1)) {
        loop {
            match decoder.receive(&mut part) {
                Ok(Some(frame)) => lines.push(seen(frame)),
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(decoder.receive(&mut &b"RECEIPT\n\n\0"[..]).err(), Some(fault.clone()), "something is read behind a fault");
                    lines.push(fault.to_string());
                    return lines;
                }
            }
        }
        assert!(part.is_empty(), "bytes are left");
    }
    lines
}

fn seen(frame: Frame) -> String {
    assert!(frame.body.len() <= LIMITS.body_bytes_max, "a body beyond its limit");
    let mut written = Vec::new();
    frame.write(&mut written);
    let roomy = Limits { head_bytes_max: 4096, ..LIMITS };
    assert_eq!(Decoder::new(roomy).receive(&mut &written[..]), Ok(Some(frame.clone())), "it is written as another one");
    if let Ok(heart_beat) = HeartBeat::read(frame.header("heart-beat")) {
        assert_eq!(HeartBeat::read(Some(&heart_beat.value())), Ok(heart_beat));
    }
    format!("{frame:?} {:?}", ServerFrame::read(frame.clone()))
}

fn native(mut stream: &[u8]) {
    loop {
        match read(stream) {
            Ok(Some((frame, taken))) => {
                let mut written = Vec::new();
                write(&frame, &mut written);
                assert_eq!(written, stream[..taken], "{frame:?} has another form");
                if let NativeFrame::Message { bytes, .. } = frame {
                    assert!(bytes.len() < FRAME_BYTES_MAX);
                }
                assert!((0..taken).all(|cut| read(&stream[..cut]) == Ok(None)), "a part of a frame is taken for more");
                stream = &stream[taken..];
            }
            Ok(None) => {
                assert!(stream.len() < HEAD_BYTES + FRAME_BYTES_MAX, "more is kept than a frame can have");
                return;
            }
            Err(_) => return,
        }
    }
}
