//! A stand-in for the core systems and Bodkin's own port that answers what a table says and keeps what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The services by which clients find the core systems.
const DISCOVERED: [&str; 3] = ["auth-public-key", "orchestration-service", "event-publish"];

/// What it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// `METHOD /path?query`.
    pub line: String,
    /// The body; null when there was none.
    pub body: Value,
}

/// `METHOD /path?query`, the status and the body of the answer to it.
pub type Row = (&'static str, u16, Value);

/// The stand-in; it listens until the test's process ends.
pub struct Double {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Double {
    /// Answers as the table says; whatever is not in it with 404.
    pub fn start(table: Vec<Row>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (table, kept) = (Arc::new(table), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (table, kept) = (Arc::clone(&table), Arc::clone(&kept));
                thread::spawn(move || serve(&stream, address, &table, &kept));
            }
        });
        Self { address, asked }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything it was asked since the last look, but for discovery.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no holder panics"))
    }
}

/// Answers until the client closes the connection.
fn serve(stream: &TcpStream, address: SocketAddr, table: &[Row], kept: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        let definition = asked.body["serviceDefinitionRequirement"].as_str().unwrap_or_default();
        let (status, body) = if DISCOVERED.contains(&definition) {
            (200, json!({"serviceQueryData": [offered_at(address)], "unfilteredHits": 1}))
        } else {
            let found = table.iter().find(|row| row.0 == asked.line).map(|row| (row.1, row.2.clone()));
            kept.lock().expect("no holder panics").push(asked.clone());
            found.unwrap_or_else(|| (404, json!({"type": "about:blank", "title": "Not found", "status": 404, "detail": asked.line})))
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if (&mut &*stream).write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn offered_at(address: SocketAddr) -> Value {
    let provider = json!({"id": 1, "systemName": "double", "address": address.ip().to_string(), "port": address.port()});
    json!({"id": 1, "serviceDefinition": {"id": 1, "serviceDefinition": "any"}, "provider": provider, "serviceUri": "", "secure": "NOT_SECURE",
        "version": 1, "interfaces": []})
}

/// A whole request; `None` at the connection's end.
fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Asked { line, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}
