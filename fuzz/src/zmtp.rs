//! One end of a ZMTP connection: what its peer sends, and what a peer of ours seals for it.

use std::sync::Arc;

use bodkin_zmtp::{
    ClientSecurity, ClientSettings, Connection, Event, KeyPair, Limits, Metadata, PlainCredentials, Random, SecretKey, ServerSecurity,
    ServerSettings, SocketType,
};

/// Small, so that each is met.
const LIMITS: Limits =
    Limits { frame_bytes_max: 64, message_bytes_max: 100, frames_max: 4, command_bytes_max: 48, metadata_bytes_max: 96, properties_max: 4 };
/// Most that one call may add to what is to be sent: the longest command of a handshake.
const ANSWER_BYTES_MAX: usize = 600;

/// The keys of `vectors/zmtp`: seeds go through whole handshakes.
fn keys(first: u8) -> Arc<KeyPair> {
    Arc::new(KeyPair::new(SecretKey::from_bytes(&mut counting(first))))
}

fn counting<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|at| first.wrapping_add(at as u8))
}

fn server(security: ServerSecurity, out: &mut Vec<u8>) -> Connection {
    let takes = vec![SocketType::Dealer, SocketType::Sub, SocketType::Req];
    Connection::server(Arc::new(ServerSettings { limits: LIMITS, takes, security }), Random::new(&mut counting(97)), out)
}

fn client(security: ClientSecurity, out: &mut Vec<u8>) -> Connection {
    let settings = ClientSettings { limits: LIMITS, metadata: Metadata::of(SocketType::Dealer), security };
    Connection::client(Arc::new(settings), Random::new(&mut counting(65)), out)
}

/// The end of this number, and what it has to send.
fn end(number: u8) -> (Connection, Vec<u8>) {
    let mut out = Vec::new();
    let connection = match number % 6 {
        0 => server(ServerSecurity::Null, &mut out),
        1 => server(ServerSecurity::Plain, &mut out),
        2 => server(ServerSecurity::Curve(keys(1)), &mut out),
        3 => client(ClientSecurity::Null, &mut out),
        4 => client(ClientSecurity::Plain(PlainCredentials::new(b"admin", b"secret").expect("short ones")), &mut out),
        _ => client(ClientSecurity::Curve { own: keys(33), server: keys(1).public().clone() }, &mut out),
    };
    (connection, out)
}

/// What became of a connection, a line for each event, and all that it had to send.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    lines: Vec<String>,
    out: Vec<u8>,
}

impl Heard {
    /// Gives the connection these bytes; false when it has ended.
    fn take(&mut self, connection: &mut Connection, bytes: &[u8]) -> bool {
        let (mut bytes, mut taken) = (bytes.to_vec(), 0);
        loop {
            let before = self.out.len();
            let received = match connection.receive(&mut bytes[taken..], &mut self.out) {
                Ok(received) => received,
                Err(error) => {
                    self.lines.push(format!("{error}"));
                    return false;
                }
            };
            assert!(self.out.len() - before <= ANSWER_BYTES_MAX, "a long answer");
            taken += received.taken;
            let Some(event) = received.event else {
                assert_eq!(taken, bytes.len(), "bytes are left");
                return true;
            };
            self.lines.push(format!("{event:?}"));
            match event {
                Event::Authenticate(_) => connection.allow(&mut self.out),
                Event::Message(message) => {
                    let bytes: usize = message.frames().map(<[u8]>::len).sum();
                    assert!(message.frame_count() <= LIMITS.frames_max && bytes <= LIMITS.message_bytes_max, "a message beyond its limits");
                    assert_eq!(message.frames().count(), message.frame_count());
                    message.envelope();
                }
                _ => {}
            }
        }
    }
}

fn in_pieces(number: u8, bytes: &[u8], piece: usize) -> Heard {
    let (mut connection, out) = end(number);
    let mut heard = Heard { lines: Vec::new(), out };
    for part in bytes.chunks(piece) {
        if !heard.take(&mut connection, part) {
            assert!(!heard.take(&mut connection, b"\0\0"), "nothing is taken behind a fault");
            heard.lines.pop();
            break;
        }
    }
    heard
}

/// Messages, their frames as long as the bytes in front of them say, through boxes of CURVE: the same come out.
fn through_boxes(bytes: &[u8]) {
    let ((mut client, mut to_server), (mut server, mut to_client)) = (end(5), end(2));
    let (mut at_client, mut at_server) = (Heard::default(), Heard::default());
    for _ in 0..4 {
        assert!(
            at_server.take(&mut server, &std::mem::take(&mut to_server)) && at_client.take(&mut client, &std::mem::take(&mut to_client))
        );
        (to_server, to_client) = (std::mem::take(&mut at_client.out), std::mem::take(&mut at_server.out));
    }
    let mut rest = bytes;
    let mut sender = client.sender().expect("the handshake is over");
    while let Some((&length, behind)) = rest.split_first() {
        let frame = &behind[..behind.len().min(usize::from(length) % (LIMITS.frame_bytes_max + 1))];
        rest = &behind[frame.len()..];
        let mut sealed = Vec::new();
        sender.message(&[frame], &mut sealed);
        let received = server.receive(&mut sealed, &mut to_client).expect("a good message");
        let Some(Event::Message(message)) = received.event else { panic!("{received:?}") };
        assert_eq!(message.split(), Some([frame]));
    }
}

/// The end that is meant, a piece's length, then what the peer sends: however it is cut, the same comes out of it, within the limits.
pub fn zmtp(bytes: &[u8]) {
    let [number, piece, stream @ ..] = bytes else { return };
    if *number == u8::MAX {
        return through_boxes(stream);
    }
    let whole = in_pieces(*number, stream, stream.len().max(1));
    for piece in [1, usize::from(*piece).max(1)] {
        assert_eq!(in_pieces(*number, stream, piece), whole, "in pieces of {piece}");
    }
}
