//! What another gateway says in a tunnel.

use std::{collections::BTreeMap, time::Duration};

use bodkin_arrowhead::dialogue::SessionId;
use bodkin_relay::tunnel::{
    CONNECTIONS_HELD_MAX, CONNECTIONS_MAX, Control, Event, Frame, Look, PIECE_BYTES_MAX, Session, SessionState, Side, Terms, WINDOW_BYTES,
    WORDS_BYTES_MAX, WholeRequests,
};
use bodkin_trust::{Direction, TunnelSecret};

const TERMS: Terms = Terms { idle: Duration::from_secs(60), opening: Duration::from_secs(30) };
const QUEUE_ID: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCDabcdefgh";

/// What it is, how a stream is cut, then the bytes: frames with their length in front for a session of either side, what a consumer says where nothing is numbered, or a
/// message, an opening and a word of the control queue.
pub fn tunnel(bytes: &[u8]) {
    let [kind, piece, rest @ ..] = bytes else { return };
    match kind % 4 {
        0 => session(Side::Consumer, rest, false),
        // What is given up is gone at once, or never.
        1 => session(Side::Provider, rest, kind & 4 != 0),
        2 => requests(rest, usize::from(*piece).max(1)),
        _ => message(rest),
    }
}

/// However the other gateway behaves: a session has no more connections than it may, nor with those that are over and not gone, hands on no more of one than it has given
/// credit for, names none that there is not, and ends when nothing is heard any more.
fn session(side: Side, mut stream: &[u8], ends_at_once: bool) {
    let (now, mut events, mut open, mut left) = (Duration::from_secs(1), Vec::new(), BTreeMap::new(), 0);
    let mut session = Session::new(side, TERMS, true, Duration::ZERO);
    match side {
        Side::Provider => session.opened(1_000, now, &mut events),
        Side::Consumer => {
            let number = session.accept(now).expect("there is room");
            open.insert(number, 0);
            // A gateway sends the opening before it waits for the other gateway.
            session.asked(now);
        }
    }
    events.clear();
    while let Some((length, behind)) = stream.split_first_chunk() {
        let (frame, next) = behind.split_at(usize::from(u16::from_be_bytes(*length)).min(behind.len()));
        stream = next;
        let Ok(frame) = Frame::read(frame).inspect(|read| is_written_so(read, frame)) else { return };
        let over = session.receive(frame, now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Connect(number) => assert!(side == Side::Provider && open.insert(number, 0).is_none(), "{number} connects twice"),
                Event::Bytes(number, piece) => {
                    let handed: &mut usize = open.get_mut(&number).expect("a connection that is open");
                    *handed += piece.len();
                    assert!(*handed <= WINDOW_BYTES as usize + PIECE_BYTES_MAX, "{handed} bytes came of {number}, and none was taken");
                }
                Event::End(number) | Event::Credit(number) => assert!(open.contains_key(&number), "{number} is not open"),
                Event::Reset(number, words) => {
                    assert!(open.remove(&number).is_some() && words.len() <= WORDS_BYTES_MAX);
                    if ends_at_once {
                        session.gone(number);
                    } else {
                        left += 1;
                    }
                }
                Event::Retire(number) => panic!("connection {number} of a session with frames is replaced"),
                Event::Say(frame) => is_written_so(&frame, &frame.write()),
            }
        }
        assert!(session.connections() <= CONNECTIONS_MAX && session.connections() <= open.len());
        assert!(open.len() + left <= CONNECTIONS_HELD_MAX, "{} connections are open, and {left} that are over hold what came", open.len());
        assert!(open.keys().all(|number| session.credit(*number) <= PIECE_BYTES_MAX));
        if let Err(reason) = over {
            session.close(reason.clone());
            assert_eq!(session.look(now), Look::Over(reason));
            session.closed();
            assert_eq!((session.state(), session.connections()), (SessionState::Closed, 0));
            return;
        }
    }
    assert!(matches!(session.look(Duration::from_secs(3_600)), Look::Over(_)), "a silent session lasts");
}

fn is_written_so(frame: &Frame, bytes: &[u8]) {
    assert_eq!(frame.write(), bytes, "{frame:?} has another form");
}

/// Nothing of what a consumer says is lost, and nothing comes in another order, however it is cut.
fn requests(stream: &[u8], piece: usize) {
    for piece in [piece, 1, stream.len().max(1)] {
        let mut requests = WholeRequests::default();
        let mut said: Vec<u8> = stream.chunks(piece).flat_map(|part| requests.take(part)).flatten().collect();
        said.extend(requests.end());
        assert!(said == stream, "in pieces of {piece}");
    }
}

/// Nobody without the secret says anything, an opening has one form, and so has a word of the control queue.
fn message(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let id = SessionId::parse(QUEUE_ID).expect("an id");
    let key = TunnelSecret::draw().key(&id, Direction::ToProvider);
    assert!(key.open(&text).is_err(), "a message is opened that nobody has sealed");
    assert_eq!(key.open(&key.seal(7, bytes)).expect("it is sealed"), (7, bytes.to_vec()));
    if let Some((secret, silent_ms)) = TunnelSecret::read(bytes) {
        assert_eq!(secret.opening(silent_ms), bytes);
    }
    if let Some(control) = Control::parse(&text, QUEUE_ID) {
        assert_eq!(control.of(QUEUE_ID), text.trim());
    }
}
