//! A client and a server in one process, without a socket: what the protocol alone costs.
//!
//! `exchange MECHANISM MESSAGES PAYLOAD_BYTES` sends so many messages of two frames, an event type and a payload, and receives them.
//! `exchange subscriptions FINDS PREFIXES` looks so many topics up among so many prefixes.
//! Counted, in instructions: the difference between two counts of messages, divided by it,
//!
//! ```text
//! cargo build --release -p bodkin-zmtp --example exchange
//! for messages in 1000 2000; do valgrind --tool=callgrind target/release/examples/exchange NULL $messages 16; done
//! ```

#![expect(clippy::disallowed_methods, reason = "an example is a program")]

use std::sync::Arc;

use bodkin_zmtp::{
    ClientSecurity, ClientSettings, Connection, Event, KeyPair, Limits, Metadata, PlainCredentials, Random, SecretKey, ServerSecurity,
    ServerSettings, SocketType, SubscriptionLimits, Subscriptions,
};

/// Messages that are sent together, as a busy publisher's are.
const TOGETHER: usize = 20;

struct End {
    connection: Connection,
    out: Vec<u8>,
}

impl End {
    /// Takes all of `input`; returns the bytes of payload in it.
    fn hear(&mut self, input: &mut [u8]) -> usize {
        let (mut taken, mut payload_bytes) = (0, 0);
        loop {
            let received = self.connection.receive(&mut input[taken..], &mut self.out).expect("a peer without fault");
            taken += received.taken;
            match received.event {
                None => return payload_bytes,
                Some(Event::Authenticate(_)) => self.connection.allow(&mut self.out),
                Some(Event::Message(message)) => payload_bytes += message.frames().map(<[u8]>::len).sum::<usize>(),
                Some(_) => {}
            }
        }
    }
}

fn ends(mechanism: &str) -> (End, End) {
    let keys = |octet| Arc::new(KeyPair::new(SecretKey::from_bytes(&mut [octet; 32])));
    let (own, server) = (keys(1), keys(2));
    let (client_security, server_security) = match mechanism {
        "NULL" => (ClientSecurity::Null, ServerSecurity::Null),
        "PLAIN" => (ClientSecurity::Plain(PlainCredentials::new(b"admin", b"secret").expect("short ones")), ServerSecurity::Plain),
        "CURVE" => (ClientSecurity::Curve { own, server: server.public().clone() }, ServerSecurity::Curve(server)),
        other => panic!("expected NULL, PLAIN, CURVE or subscriptions, came {other}"),
    };
    let limits = Limits::default();
    let metadata = Metadata::of(SocketType::Push);
    let client = Arc::new(ClientSettings { limits, metadata, security: client_security });
    let server = Arc::new(ServerSettings { limits, takes: vec![SocketType::Push], security: server_security });
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let client = Connection::client(client, Random::new(&mut [3; Random::OCTETS]), &mut to_server);
    let server = Connection::server(server, Random::new(&mut [4; Random::OCTETS]), &mut to_client);
    (End { connection: client, out: to_server }, End { connection: server, out: to_client })
}

fn messages(mechanism: &str, count: usize, payload_bytes: usize) {
    let (mut client, mut server) = ends(mechanism);
    while !(client.out.is_empty() && server.out.is_empty()) {
        let (mut to_server, mut to_client) = (std::mem::take(&mut client.out), std::mem::take(&mut server.out));
        client.hear(&mut to_client);
        server.hear(&mut to_server);
    }
    let payload = vec![b'x'; payload_bytes];
    let (mut sent, mut heard, mut wire) = (0, 0, Vec::new());
    while sent < count {
        let mut sender = client.connection.sender().expect("the handshake is over");
        let together = TOGETHER.min(count - sent);
        (0..together).for_each(|_| sender.message(&[b"temperature", &payload], &mut wire));
        sent += together;
        heard += server.hear(&mut wire);
        wire.clear();
    }
    assert_eq!(heard, count * (b"temperature".len() + payload_bytes));
}

fn finds(count: usize, prefixes: usize) {
    let mut subscriptions = Subscriptions::new(SubscriptionLimits::default());
    for number in 0..prefixes {
        subscriptions.subscribe(number, format!("plant/line-{number}/").as_bytes()).expect("within the limits");
    }
    let (mut found, mut total) = (Vec::new(), 0);
    for number in 0..count {
        subscriptions.find(format!("plant/line-{}/temperature", number % prefixes).as_bytes(), &mut found);
        total += found.len();
    }
    assert_eq!(total, count);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, count, size] = &words[..] else { panic!("expected three words: see the head of this file") };
    let number = |text: &str| text.parse().expect("a number");
    match what.as_str() {
        "subscriptions" => finds(number(count), number(size)),
        mechanism => messages(mechanism, number(count), number(size)),
    }
}
