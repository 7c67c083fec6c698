//! What a relay, or a client of the own one, sends.

use std::time::Duration;

use bodkin_relay::{
    Destination,
    native::{
        self, Assembly, FRAME_BYTES_MAX, Frame as NativeFrame, HEAD_BYTES, MESSAGE_BYTES_MAX,
        hub::{ClientId, Hub, HubLimits, Standing},
        read, write,
    },
    session::{Event, OUT_BYTES_STUCK, Receipt, Session},
    stomp::{self, Decoder, Frame, HeartBeat, Limits, ServerFrame},
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
        session(Box::new(stomp::Client::new(1, None)), b"CONNECTED\nversion:1.2\nheart-beat:1000,1000\n\n\0", stream);
    } else {
        native(stream);
        session(Box::new(native::Client::new(Duration::ZERO)), &greeting(), stream);
        hub(stream);
    }
}

fn greeting() -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&NativeFrame::Greeting { newest: 1, oldest: 1 }, &mut bytes);
    bytes
}

/// A client that listens and sends goes on or ends, whatever the relay says behind its greeting: it hears what it listens to only, and keeps within its bound what it is made to write.
fn session(mut session: Box<dyn Session>, greeting: &[u8], stream: &[u8]) {
    let (now, queue, mut events) = (Duration::from_secs(1), Destination::queue("q").expect("a name"), Vec::new());
    session.receive(greeting, now, &mut events).expect("a greeting is taken");
    assert_eq!(events, [Event::Open]);
    events.clear();
    session.listen(1, &queue);
    session.send(2, &queue, "text".to_owned(), now, &mut events);
    let received = session.receive(stream, now, &mut events);
    for event in &events {
        match event {
            Event::Listening(listener) | Event::NoText(listener) | Event::Over { listener, .. } => assert_eq!(*listener, 1),
            Event::Message { listener, text, receipt } => {
                assert!(*listener == 1 && text.len() <= MESSAGE_BYTES_MAX);
                assert_ne!(*receipt, Receipt::Credit(0), "an empty message is free");
            }
            Event::Bytes { listener, bytes, receipt } => {
                assert!(*listener == 1 && bytes.len() <= MESSAGE_BYTES_MAX && bytes.first() == Some(&0));
                assert_ne!(*receipt, Receipt::Credit(0), "an empty message is free");
            }
            Event::Sent(sending) | Event::NotSent { sending, .. } => assert_eq!(*sending, 2),
            Event::Open => panic!("it is open already"),
        }
    }
    let mut out = Vec::new();
    session.take_out(now, &mut out, &mut events);
    assert!(out.len() <= OUT_BYTES_STUCK + MESSAGE_BYTES_MAX);
    if received.is_ok() {
        // Without a sign of life it ends by itself.
        let _ = session.beat(now + Duration::from_secs(1));
        session.end();
    }
}

/// A client of the relay says anything behind its greeting: the relay goes on, and forgets it when it is gone.
fn hub(stream: &[u8]) {
    let (mut hub, mut input, now) =
        (Hub::new(HubLimits { channels_max: 4, destinations_max: 4, ..HubLimits::default() }), Assembly::default(), Duration::ZERO);
    let client = hub.connect(ClientId([1; 32]), "client", now).expect("it is the first one");
    input.put(&greeting());
    input.put(stream);
    while let Ok(Some(frame)) = input.next_frame() {
        hub.receive(client, frame, now);
    }
    let mut out = Vec::new();
    assert_ne!(hub.take_out(client, &mut out), Standing::Gone);
    assert!(out.starts_with(&greeting()) && out.len() <= OUT_BYTES_STUCK + MESSAGE_BYTES_MAX);
    hub.look(Duration::from_secs(3600));
    hub.disconnect(client, Duration::from_secs(3600));
    while hub.work(Duration::from_secs(3600)) {}
    let counts = hub.counts();
    assert_eq!((counts.connections, counts.channels), (0, 0));
    assert!(counts.destinations <= 4);
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
