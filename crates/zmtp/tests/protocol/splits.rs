//! However a stream is cut, the same comes out of it.

use std::sync::Arc;

use bodkin_zmtp::{ClientSecurity, PlainCredentials, ServerSecurity, SocketType};
use proptest::prelude::*;

use crate::party::{Party, converse, pair};

/// Something that a client sends.
#[derive(Clone, Debug)]
enum Said {
    Message(Vec<Vec<u8>>),
    Subscribe(Vec<u8>),
    Cancel(Vec<u8>),
    Ping(Vec<u8>),
}

fn said() -> impl Strategy<Value = Said> {
    let octets = |length| prop::collection::vec(any::<u8>(), length);
    let frame = prop_oneof![4 => octets(0..20), 1 => octets(250..260), 1 => octets(3000..3001)];
    prop_oneof![
        4 => prop::collection::vec(frame, 1..5).prop_map(Said::Message),
        1 => octets(0..9).prop_map(Said::Subscribe),
        1 => octets(0..9).prop_map(Said::Cancel),
        1 => octets(0..17).prop_map(Said::Ping),
    ]
}

fn say(client: &mut Party, said: &Said) {
    let mut sender = client.connection.sender().expect("the handshake is over");
    match said {
        Said::Message(frames) => sender.message(&frames.iter().map(|frame| &frame[..]).collect::<Vec<_>>(), &mut client.out),
        Said::Subscribe(prefix) => sender.subscribe(prefix, &mut client.out),
        Said::Cancel(prefix) => sender.cancel(prefix, &mut client.out),
        Said::Ping(context) => sender.ping(std::time::Duration::from_secs(1), context, &mut client.out),
    }
}

/// A client and a server of each mechanism; each time the same ones.
fn ends(mechanism: u8, socket_type: SocketType) -> (Party, Party) {
    let (client, server) = match mechanism {
        0 => (ClientSecurity::Null, ServerSecurity::Null),
        1 => (ClientSecurity::Plain(PlainCredentials::new(b"admin", b"secret").expect("short ones")), ServerSecurity::Plain),
        _ => (ClientSecurity::Curve { own: pair(1), server: pair(2).public().clone() }, ServerSecurity::Curve(Arc::clone(&pair(2)))),
    };
    (Party::client(socket_type, client), Party::server(server))
}

/// All that the client sends while it talks to its server, and then says; all that the server is told.
fn whole(mechanism: u8, socket_type: SocketType, script: &[Said]) -> (Vec<u8>, Vec<String>) {
    let (mut client, mut server) = ends(mechanism, socket_type);
    let (mut stream, mut told) = (Vec::new(), Vec::new());
    while !client.out.is_empty() {
        let sent = client.sent();
        told.extend(server.hear(&sent));
        stream.extend(sent);
        let answer = server.sent();
        client.hear(&answer);
    }
    script.iter().for_each(|said| say(&mut client, said));
    let sent = client.sent();
    told.extend(server.hear(&sent));
    (stream.into_iter().chain(sent).collect(), told)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_cut_stream_says_the_same(
        mechanism in 0u8..3,
        is_sub in any::<bool>(),
        script in prop::collection::vec(said(), 0..8),
        cuts in prop::collection::vec(1usize..70, 1..20),
    ) {
        let socket_type = if is_sub { SocketType::Xsub } else { SocketType::Dealer };
        let (stream, expected) = whole(mechanism, socket_type, &script);
        for cuts in [&cuts[..], &[1], &[64], &[usize::MAX]] {
            let (_, mut server) = ends(mechanism, socket_type);
            let (mut rest, mut told) = (&stream[..], Vec::new());
            for length in cuts.iter().cycle() {
                let (piece, behind) = rest.split_at(rest.len().min(*length));
                told.extend(server.hear(piece));
                server.connection.shrink();
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(&told, &expected);
        }
    }
}

/// libzmq sends a PING when its time comes, also amid a message.
#[test]
fn a_command_amid_a_message_is_told_at_once() {
    let (mut client, mut server) = ends(0, SocketType::Dealer);
    converse(&mut client, &mut server);
    let stream = b"\x01\x01a\x04\x07\x04PING\0\0\x01\x01b\x04\x05\x04PONG\x04\x04\x03FOO\0\x01c";
    let expected = ["ping 0 s", "pong ", "message 61 62 63"];
    assert_eq!(server.hear(stream), expected);
    assert_eq!(server.sent(), b"\x04\x05\x04PONG");
    for cut in 1..stream.len() {
        let mut told = server.hear(&stream[..cut]);
        told.extend(server.hear(&stream[cut..]));
        assert_eq!(told, expected, "cut at {cut}");
    }
    let bytewise: Vec<String> = stream.iter().flat_map(|octet| server.hear(&[*octet])).collect();
    assert_eq!(bytewise, expected);
}
