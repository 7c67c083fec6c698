//! `vectors/zmtp`: what libzmq was seen to send and take, and what PyNaCl computed, byte for byte.

use std::sync::Arc;

use bodkin_zmtp::{
    ClientSecurity, ClientSettings, KeyPair, Limits, Metadata, PlainCredentials, PublicKey, SecretKey, ServerSecurity, ServerSettings,
    SocketType,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::party::{Party, bytes, hex};

const NULL_GREETING: &str = "ff00000000000000017f03014e554c4c";

#[track_caller]
fn read<T: DeserializeOwned>(json: &str) -> Vec<T> {
    let rows: Vec<T> = serde_json::from_str(json).expect("vectors are JSON of this form");
    assert!(!rows.is_empty());
    rows
}

#[derive(Deserialize)]
struct GreetingRow {
    name: String,
    mechanism: String,
    as_server: bool,
    bytes: String,
}

fn keys(secret: &str) -> Arc<KeyPair> {
    Arc::new(KeyPair::new(SecretKey::from_bytes(&mut bytes(secret).try_into().expect("32 octets"))))
}

#[test]
fn greetings() {
    let own = keys(&"11".repeat(32));
    for row in read::<GreetingRow>(include_str!("../../../../vectors/zmtp/greetings.json")) {
        let (server, client) = match row.mechanism.as_str() {
            "NULL" => (ServerSecurity::Null, ClientSecurity::Null),
            "PLAIN" => (ServerSecurity::Plain, ClientSecurity::Plain(PlainCredentials::new(b"", b"").expect("short ones"))),
            _ => {
                let server = own.public().clone();
                (ServerSecurity::Curve(Arc::clone(&own)), ClientSecurity::Curve { own: Arc::clone(&own), server })
            }
        };
        let mut client = Party::client(SocketType::Pub, client);
        let mut server = Party::server(server);
        let said = if row.as_server { server.sent() } else { client.sent() };
        assert_eq!(hex(&said[..64]), row.bytes, "{}", row.name);
        let hearer = if row.as_server { &mut client } else { &mut server };
        assert!(hearer.hear(&bytes(&row.bytes)).is_empty(), "{}", row.name);
    }
}

/// A peer of NULL that has said its greeting, of this minor version, and READY with this Socket-Type.
fn null_peer(minor: u8, socket_type: &str) -> Vec<u8> {
    let mut greeting = bytes(NULL_GREETING);
    greeting[11] = minor;
    greeting.resize(64, 0);
    let length = u8::try_from(socket_type.len()).expect("a short name");
    let ready = [&[4, 22 + length][..], b"\x05READY\x0bSocket-Type\0\0\0", &[length], socket_type.as_bytes()].concat();
    [greeting, ready].concat()
}

#[derive(Deserialize)]
struct ReadyRow {
    name: String,
    socket_type: String,
    properties: Vec<(String, String)>,
    bytes: String,
}

fn metadata(socket_type: &str, properties: &[(String, String)]) -> Metadata {
    let metadata = Metadata::of(SocketType::parse(socket_type.as_bytes()).expect("a socket type"));
    properties.iter().fold(metadata, |metadata, (name, value)| metadata.with(name, &bytes(value)).expect("a good property"))
}

#[test]
fn ready_of_every_socket_type() {
    for row in read::<ReadyRow>(include_str!("../../../../vectors/zmtp/ready.json")) {
        let metadata = metadata(&row.socket_type, &row.properties);
        let settings = ClientSettings { limits: Limits::default(), metadata: metadata.clone(), security: ClientSecurity::Null };
        let mut client = Party::client_with(settings, &[]);
        assert_eq!(hex(&client.out[64..]), row.bytes, "{}", row.name);
        let mut server = Party::server(ServerSecurity::Null);
        assert_eq!(server.hear(&client.sent()), [format!("ready {}", row.socket_type)]);
        assert_eq!(server.connection.peer().map(|peer| &peer.metadata), Some(&metadata), "{}", row.name);
        let counterpart = metadata.socket_type().counterpart();
        assert_eq!(client.hear(&server.sent()), [format!("ready {counterpart}")], "{}", row.name);
    }
}

#[derive(Deserialize)]
struct MessageRow {
    name: String,
    frames: Vec<String>,
    bytes: String,
}

#[test]
fn messages() {
    for row in read::<MessageRow>(include_str!("../../../../vectors/zmtp/messages.json")) {
        let mut server = Party::server(ServerSecurity::Null);
        assert_eq!(server.hear(&null_peer(1, "DEALER")), ["ready DEALER"]);
        assert_eq!(server.hear(&bytes(&row.bytes)), [format!("message {}", row.frames.join(" "))], "{}", row.name);
        server.out.clear();
        let frames: Vec<Vec<u8>> = row.frames.iter().map(|frame| bytes(frame)).collect();
        server.say(&frames.iter().map(|frame| &frame[..]).collect::<Vec<_>>());
        assert_eq!(hex(&server.out), row.bytes, "{}", row.name);
    }
}

#[derive(Deserialize)]
struct CommandRow {
    name: String,
    event: String,
    bytes: String,
    answer: Option<String>,
    minor: Option<u8>,
}

#[test]
fn commands() {
    for row in read::<CommandRow>(include_str!("../../../../vectors/zmtp/commands.json")) {
        let minor = row.minor.unwrap_or(1);
        let mut server = Party::server(ServerSecurity::Null);
        server.hear(&null_peer(minor, "SUB"));
        server.out.clear();
        assert_eq!(server.hear(&bytes(&row.bytes)), std::slice::from_ref(&row.event), "{}", row.name);
        if let Some(answer) = &row.answer {
            assert_eq!(&hex(&server.out), answer, "{}", row.name);
        }
        // What a SUB sends, ours sends too, to a peer of the same version.
        let mut client = Party::client(SocketType::Sub, ClientSecurity::Null);
        client.hear(&null_peer(minor, "PUB"));
        client.out.clear();
        let mut sender = client.connection.sender().expect("it is ready");
        match row.event.split_once(' ') {
            Some(("subscribe", prefix)) => sender.subscribe(&bytes(prefix), &mut client.out),
            Some(("cancel", prefix)) => sender.cancel(&bytes(prefix), &mut client.out),
            Some(("ping", _)) if row.answer.is_none() => sender.ping(std::time::Duration::from_secs(5), b"", &mut client.out),
            _ => continue,
        }
        assert_eq!(hex(&client.out), row.bytes, "{}", row.name);
    }
}

#[derive(Deserialize)]
struct Conversation {
    name: String,
    end: String,
    mechanism: String,
    #[serde(default)]
    takes: Vec<String>,
    #[serde(default)]
    socket_type: String,
    #[serde(default)]
    properties: Vec<(String, String)>,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    random: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    reads: String,
    #[serde(default)]
    sends: Vec<String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    writes: String,
}

impl Conversation {
    fn party(&self) -> Party {
        let (limits, random) = (Limits::default(), bytes(&self.random));
        if self.end == "client" {
            let security = match self.mechanism.as_str() {
                "NULL" => ClientSecurity::Null,
                "PLAIN" => {
                    let credentials = PlainCredentials::new(self.username.as_bytes(), self.password.as_bytes());
                    ClientSecurity::Plain(credentials.expect("short ones"))
                }
                _ => {
                    let server = PublicKey::from_bytes(bytes(&self.server).try_into().expect("32 octets"));
                    ClientSecurity::Curve { own: keys(&self.secret), server }
                }
            };
            return Party::client_with(
                ClientSettings { limits, metadata: metadata(&self.socket_type, &self.properties), security },
                &random,
            );
        }
        let security = match self.mechanism.as_str() {
            "NULL" => ServerSecurity::Null,
            "PLAIN" => ServerSecurity::Plain,
            _ => ServerSecurity::Curve(keys(&self.secret)),
        };
        let takes = self.takes.iter().map(|name| SocketType::parse(name.as_bytes()).expect("a socket type")).collect();
        Party::server_with(ServerSettings { limits, takes, security }, &random)
    }
}

#[test]
fn conversations() {
    for conversation in read::<Conversation>(include_str!("../../../../vectors/zmtp/conversations.json")) {
        let mut party = conversation.party();
        for (number, step) in conversation.steps.iter().enumerate() {
            let place = format!("{}, step {number}", conversation.name);
            assert_eq!(party.hear(&bytes(&step.reads)), step.events, "{place}");
            let frames: Vec<Vec<u8>> = step.sends.iter().map(|frame| bytes(frame)).collect();
            if !frames.is_empty() {
                party.say(&frames.iter().map(|frame| &frame[..]).collect::<Vec<_>>());
            }
            assert_eq!(hex(&party.sent()), step.writes, "{place}");
        }
    }
}
