//! As much of HTTP as the measurements need.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

/// Ports of a Bodkin.
#[derive(Clone, Copy)]
pub struct Ports {
    pub registry: u16,
    pub authorization: u16,
    pub event_handler: u16,
    pub monitor: u16,
}

/// A SystemRequest.
pub fn system(name: &str, port: u16) -> Value {
    json!({"systemName": name, "address": "127.0.0.1", "port": port})
}

impl Ports {
    /// The standard ones, moved.
    pub fn at(offset: u16) -> Self {
        let [registry, authorization, event_handler, monitor] = [8443, 8445, 8455, 8440].map(|port| port + offset);
        Self { registry, authorization, event_handler, monitor }
    }

    /// Has the publisher's events pushed to a port; the publisher is made if it is new.
    pub fn subscribe(self, entry: &Value, port: u16) -> io::Result<()> {
        let subscriber = call(self.registry, "POST", "/serviceregistry/register-system", &system("subscriber", port))?;
        let rule = json!({"consumerId": subscriber["id"], "providerIds": [entry["provider"]["id"]],
            "serviceDefinitionIds": [entry["serviceDefinition"]["id"]], "interfaceIds": [2]});
        call(self.authorization, "POST", "/authorization/mgmt/intracloud", &rule)?;
        let subscription = json!({"eventType": "measured", "subscriberSystem": system("subscriber", port), "notifyUri": "/notify"});
        call(self.event_handler, "POST", "/eventhandler/subscribe", &subscription).map(drop)
    }

    /// Registers the publisher with a service that rules can name.
    pub fn publisher(self) -> io::Result<Value> {
        let service =
            json!({"serviceDefinition": "measured", "providerSystem": system("publisher", 1), "interfaces": ["HTTP-INSECURE-JSON"]});
        call(self.registry, "POST", "/serviceregistry/register", &service)
    }
}

/// An event of the publisher's.
pub fn event(payload: &str) -> Value {
    json!({"eventType": "measured", "source": system("publisher", 1), "payload": payload, "metaData": {"unit": "C"}})
}

/// Answers every request, with what `visit` makes of its bytes in front of it; what has come together is answered together.
pub fn answer(mut stream: TcpStream, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut buffer, mut answers) = (Vec::new(), Vec::new());
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&piece[..length]);
        answers.clear();
        let mut at = 0;
        while let Some(bytes) = request_bytes(&buffer[at..]) {
            visit(&buffer[at..at + bytes]);
            at += bytes;
            answers.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        buffer.drain(..at);
        stream.write_all(&answers)?;
    }
}

/// Length of the first request, if it is whole.
fn request_bytes(bytes: &[u8]) -> Option<usize> {
    const LENGTH: &[u8] = b"Content-Length: ";
    let at = bytes.windows(LENGTH.len()).position(|window| window == LENGTH)? + LENGTH.len();
    let digits = bytes[at..].iter().position(|byte| *byte == b'\r')?;
    let length: usize = std::str::from_utf8(&bytes[at..at + digits]).ok()?.parse().ok()?;
    Some(at + digits + 4 + length).filter(|whole| *whole <= bytes.len())
}

/// The bytes of a request; no body if it is null.
pub fn request(method: &str, path: &str, body: &Value) -> Vec<u8> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n");
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{head}{length}\r\n{body}").into_bytes()
}

/// One request on a connection of its own; the answer's JSON, null if there is none.
pub fn call(port: u16, method: &str, path: &str, body: &Value) -> io::Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(&request(method, path, body))?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let length = stream.read(&mut piece)?;
        answer.extend_from_slice(&piece[..length]);
        let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&answer[..head]).into_owned();
        let wanted = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse::<usize>().ok()).unwrap_or(0);
        if answer.len() >= head + 4 + wanted {
            assert!(text.starts_with("HTTP/1.1 2"), "{method} {path}: {}", String::from_utf8_lossy(&answer));
            return Ok(serde_json::from_slice(&answer[head + 4..]).unwrap_or_default());
        }
    }
}
