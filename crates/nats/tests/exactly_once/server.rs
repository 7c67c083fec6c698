//! A JetStream server with one stream, as nats-server does it: names first, then the condition on the subject's last sequence.

use std::collections::BTreeMap;

use bodkin_nats::protocol::Headers;
use serde_json::{Value, json};

use crate::{Random, edge::STREAM};

/// Connections that have ended for the edge and not yet for the server.
const LATE_MAX: usize = 4;

/// A message of the stream.
#[derive(Clone)]
pub struct Stored {
    pub subject: String,
    pub sequence: u64,
    pub headers: Headers,
    pub payload: Vec<u8>,
}

#[derive(Default)]
pub struct Server {
    pub stored: Vec<Stored>,
    /// Messages that are on disk for good.
    synced: usize,
    /// Names of messages within the duplicate window.
    pub names: BTreeMap<String, u64>,
    has_stream: bool,
    /// 0: nothing; 1: publications, for it is full; 2: to answer publications; 3: everything, for nobody listens.
    pub refuses: u64,
    /// What has come of operations that are not whole.
    input: Vec<u8>,
    pub to_edge: Vec<u8>,
    late: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A publication: subject, where its answer goes, headers, payload.
struct Publication {
    subject: String,
    reply: Option<String>,
    headers: Headers,
    payload: Vec<u8>,
}

impl Server {
    pub fn new() -> Self {
        Self::default()
    }

    /// A new connection: the server speaks first.
    pub fn accept(&mut self) {
        self.input.clear();
        self.to_edge =
            b"INFO {\"server_name\":\"n1\",\"version\":\"2.15.2\",\"headers\":true,\"max_payload\":1048576,\"jetstream\":true}\r\n"
                .to_vec();
    }

    /// The connection is at its end for the edge; these bytes are on their way.
    pub fn cut(&mut self, on_its_way: Vec<u8>) {
        let input = std::mem::take(&mut self.input);
        if self.late.len() < LATE_MAX && !on_its_way.is_empty() {
            self.late.push((input, on_its_way));
        }
        self.to_edge.clear();
    }

    /// Bytes of an ended connection come; nobody hears what is answered.
    pub fn hear_late(&mut self, random: &mut Random) {
        if self.late.is_empty() {
            return;
        }
        let late = random.below(self.late.len() as u64) as usize;
        let (mut input, bytes) = self.late.swap_remove(late);
        input.extend_from_slice(&bytes);
        let (current, to_edge) = (std::mem::replace(&mut self.input, input), std::mem::take(&mut self.to_edge));
        self.work();
        (self.input, self.to_edge) = (current, to_edge);
    }

    /// Everything up to here is on disk for good.
    pub fn sync(&mut self) {
        self.synced = self.stored.len();
    }

    /// Killed and started again: names are those of the stream's messages.
    pub fn kill(&mut self, loses_unsynced: bool, random: &mut Random) {
        self.late.clear();
        self.input.clear();
        self.to_edge.clear();
        if loses_unsynced {
            let kept = self.synced + random.below((self.stored.len() - self.synced) as u64 + 1) as usize;
            self.stored.truncate(kept);
        }
        self.sync();
        let name = |stored: &Stored| Some((stored.headers.get("Nats-Msg-Id")?.to_owned(), stored.sequence));
        self.names = self.stored.iter().filter_map(name).collect();
    }

    /// A piece of what the edge has written comes.
    pub fn receive(&mut self, from_edge: &mut Vec<u8>, piece: usize) {
        self.input.extend(from_edge.drain(..piece.min(from_edge.len())));
        self.work();
    }

    fn work(&mut self) {
        while let Some(end) = self.input.windows(2).position(|two| two == b"\r\n") {
            let line = String::from_utf8(self.input[..end].to_vec()).expect("lines are text");
            let fields: Vec<&str> = line.split(' ').collect();
            let mut body = 0;
            match fields[0] {
                "CONNECT" | "SUB" | "PONG" => {}
                "PING" => self.to_edge.extend_from_slice(b"PONG\r\n"),
                "PUB" | "HPUB" => {
                    body = fields.last().expect("a length").parse::<usize>().expect("a length") + 2;
                    let Some(bytes) = self.input.get(end + 2..end + 2 + body) else { return };
                    let publication = publication(&fields, bytes);
                    self.publish(publication);
                }
                _ => panic!("an edge says {line}"),
            }
            self.input.drain(..end + 2 + body);
        }
    }

    fn publish(&mut self, publication: Publication) {
        let reply = publication.reply.clone().expect("everything is a request");
        if self.refuses == 3 {
            let none = format!("HMSG {reply} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
            self.to_edge.extend_from_slice(none.as_bytes());
            return;
        }
        let answer = match publication.subject.strip_prefix("$JS.API.") {
            Some(call) => Some(self.call(call, &publication.payload)),
            None => self.store(publication),
        };
        if let Some(answer) = answer.map(|answer| answer.to_string()) {
            self.to_edge.extend_from_slice(format!("MSG {reply} 1 {}\r\n{answer}\r\n", answer.len()).as_bytes());
        }
    }

    fn call(&mut self, call: &str, payload: &[u8]) -> Value {
        match call.strip_suffix(STREAM).expect("the stream's name") {
            "STREAM.INFO." if !self.has_stream => error(404, 10_059, "stream not found"),
            "STREAM.CREATE." | "STREAM.INFO." => {
                self.has_stream = true;
                json!({
                    "config": { "name": STREAM, "subjects": ["fleet.>"], "storage": "file", "discard": "new", "num_replicas": 1, "max_bytes": -1, "max_age": 0 },
                    "state": { "messages": self.stored.len(), "bytes": 0, "first_seq": 1, "last_seq": self.stored.len() },
                })
            }
            "STREAM.MSG.GET." => {
                let asked: Value = serde_json::from_slice(payload).expect("JSON");
                let subject = asked["last_by_subj"].as_str().expect("a subject");
                let Some(last) = self.last(subject) else { return error(404, 10_037, "no message found") };
                let mut headers = Vec::new();
                last.headers.write(&mut headers);
                json!({ "message": { "subject": subject, "seq": last.sequence, "hdrs": base64(&headers), "data": base64(&last.payload) } })
            }
            other => panic!("an edge asks {other}"),
        }
    }

    fn last(&self, subject: &str) -> Option<&Stored> {
        self.stored.iter().rev().find(|stored| stored.subject == subject)
    }

    fn store(&mut self, publication: Publication) -> Option<Value> {
        let Publication { subject, headers, payload, .. } = publication;
        let name = headers.get("Nats-Msg-Id").expect("a name").to_owned();
        if self.refuses == 1 {
            return Some(error(503, 10_077, "maximum bytes exceeded"));
        }
        if let Some(sequence) = self.names.get(&name) {
            return Some(json!({ "stream": STREAM, "seq": sequence, "duplicate": true }));
        }
        let expected: u64 = headers.get("Nats-Expected-Last-Subject-Sequence").expect("a condition").parse().expect("a number");
        let last = self.last(&subject).map_or(0, |last| last.sequence);
        if expected != last {
            return Some(error(400, 10_071, &format!("wrong last sequence: {last}")));
        }
        let sequence = self.stored.last().map_or(1, |last| last.sequence + 1);
        self.stored.push(Stored { subject, sequence, headers, payload });
        self.names.insert(name, sequence);
        (self.refuses != 2).then(|| json!({ "stream": STREAM, "seq": sequence }))
    }
}

fn error(code: u16, number: u32, words: &str) -> Value {
    json!({ "error": { "code": code, "err_code": number, "description": words } })
}

fn publication(fields: &[&str], bytes: &[u8]) -> Publication {
    let mut fields: Vec<&str> = fields[1..fields.len() - 1].to_vec();
    let body = &bytes[..bytes.len() - 2];
    let header_bytes = if body.starts_with(b"NATS/1.0") { fields.pop().expect("a length").parse().expect("a length") } else { 0 };
    let headers = if header_bytes == 0 { Headers::default() } else { Headers::read(&body[..header_bytes]).expect("headers") };
    let (subject, reply) = (fields[0].to_owned(), fields.get(1).map(|reply| (*reply).to_owned()));
    Publication { subject, reply, headers, payload: body[header_bytes..].to_vec() }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
