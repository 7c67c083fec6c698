//! One end of a connection, and what happens to it as text.

use std::fmt::Write;
use std::sync::Arc;

use bodkin_zmtp::{
    ClientSecurity, ClientSettings, Connection, Credentials, Event, KeyPair, Limits, Metadata, Random, SecretKey, ServerSecurity,
    ServerSettings, SocketType,
};

pub struct Party {
    pub connection: Connection,
    /// What is to be sent.
    pub out: Vec<u8>,
}

impl Party {
    pub fn server(security: ServerSecurity) -> Self {
        Self::server_with(ServerSettings { limits: Limits::default(), takes: SocketType::ALL.to_vec(), security }, &[7; Random::OCTETS])
    }

    pub fn server_with(settings: ServerSettings, random: &[u8]) -> Self {
        let mut out = Vec::new();
        let connection = Connection::server(Arc::new(settings), filled(random), &mut out);
        Self { connection, out }
    }

    pub fn client(socket_type: SocketType, security: ClientSecurity) -> Self {
        let metadata = Metadata::of(socket_type);
        Self::client_with(ClientSettings { limits: Limits::default(), metadata, security }, &[9; Random::OCTETS])
    }

    pub fn client_with(settings: ClientSettings, random: &[u8]) -> Self {
        let mut out = Vec::new();
        let connection = Connection::client(Arc::new(settings), filled(random), &mut out);
        Self { connection, out }
    }

    /// What it makes of these bytes, a line each; a fault is the last one. Whoever asks to come in may.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<String> {
        let (mut bytes, mut taken, mut lines) = (bytes.to_vec(), 0, Vec::new());
        loop {
            let received = match self.connection.receive(&mut bytes[taken..], &mut self.out) {
                Ok(received) => received,
                Err(error) => {
                    lines.push(format!("error {error}"));
                    return lines;
                }
            };
            taken += received.taken;
            let Some(event) = received.event else {
                assert_eq!(taken, bytes.len(), "without an event every byte is taken");
                return lines;
            };
            let (line, asks) = (told(event), matches!(event, Event::Authenticate(_)));
            if asks {
                self.connection.allow(&mut self.out);
            }
            let ready = (line == "ready").then(|| self.connection.peer().expect("it is ready").metadata.socket_type().name());
            lines.push(ready.map_or(line, |socket_type| format!("ready {socket_type}")));
        }
    }

    /// Sends a message.
    pub fn say(&mut self, frames: &[&[u8]]) {
        self.connection.sender().expect("the handshake is over").message(frames, &mut self.out);
    }

    /// What is to be sent, which counts as sent then.
    pub fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// Octets for a connection, the given ones first.
pub fn filled(octets: &[u8]) -> Random {
    let mut all = [0; Random::OCTETS];
    all[..octets.len()].copy_from_slice(octets);
    Random::new(&mut all)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

pub fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("two digits")).collect()
}

fn told(event: Event<'_>) -> String {
    match event {
        Event::Authenticate(Credentials::Plain(credentials)) => {
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            format!("authenticate {} {}", text(credentials.username()), text(credentials.password()))
        }
        Event::Authenticate(Credentials::Curve(key)) => format!("authenticate {}", hex(key.as_bytes())),
        Event::Ready => "ready".into(),
        Event::Message(message) => {
            let frames: Vec<String> = message.frames().map(hex).collect();
            assert_eq!(frames.len(), message.frame_count());
            format!("message {}", frames.join(" "))
        }
        Event::Subscribe(prefix) => format!("subscribe {}", hex(prefix)),
        Event::Cancel(prefix) => format!("cancel {}", hex(prefix)),
        Event::Ping { ttl } => format!("ping {} s", ttl.as_secs_f64()),
        Event::Pong { context } => format!("pong {}", hex(context)),
    }
}

pub fn pair(secret: u8) -> Arc<KeyPair> {
    Arc::new(KeyPair::new(SecretKey::from_bytes(&mut [secret; 32])))
}

/// Lets both talk until neither has anything to send; what each was told.
pub fn converse(client: &mut Party, server: &mut Party) -> [Vec<String>; 2] {
    let mut told = [Vec::new(), Vec::new()];
    while !(client.out.is_empty() && server.out.is_empty()) {
        let (to_server, to_client) = (client.sent(), server.sent());
        told[0].extend(client.hear(&to_client));
        told[1].extend(server.hear(&to_server));
    }
    told
}
