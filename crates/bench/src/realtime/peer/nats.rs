//! NATS from the client's end, core and JetStream (docs.nats.io: "Client Protocol", "JetStream wire API Reference").
//!
//! A topic `NAME-7` is the subject `bench.NAME.7`, so that many are one wildcard. JetStream's events lie in one stream in memory; a subscriber gets them from a
//! consumer of its own that pushes without acknowledgements, a publisher gets an acknowledgement for each.

use std::collections::VecDeque;
use std::io::Write;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::realtime::dialect::{Dialect, End, Heard};

/// Name of the stream.
const STREAM: &str = "BENCH";
/// Longest line of the protocol.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Subscription of answers and acknowledgements.
const INBOX_SID: &str = "1";
/// The first subscription of events.
const EVENTS_SID_FIRST: u32 = 2;
/// Calls of the API that a subscription needs.
const CALLS_OF_SUBSCRIPTION: usize = 2;
/// Events that the stream keeps.
const KEPT_MAX: u32 = 100_000;

/// One connection.
pub struct Nats {
    /// `None` of core.
    jet_stream: Option<JetStream>,
    /// Pongs so far: the first one ends the handshake.
    pongs: u32,
    /// Subscriptions of events so far; their numbers follow that of the inbox.
    subscriptions: u32,
    subject: String,
}

struct JetStream {
    end: End,
    replicas: u8,
    /// Where answers and acknowledgements come.
    inbox: String,
    /// Calls of the API, of which the first one is under way: each needs what the one before it made.
    calls: VecDeque<String>,
    /// A pong has come before the last answer.
    settles: bool,
}

impl Nats {
    /// Without storage.
    pub fn core() -> Self {
        Self { jet_stream: None, pongs: 0, subscriptions: 0, subject: String::new() }
    }

    /// With a stream of so many replicas.
    pub fn jet_stream(end: End, name: &str, replicas: u8) -> Self {
        let inbox = format!("_INBOX.{name}");
        Self { jet_stream: Some(JetStream { end, replicas, inbox, calls: VecDeque::new(), settles: false }), ..Self::core() }
    }

    /// A line came that no payload follows.
    fn line(&mut self, line: &str, out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<()> {
        match line.split(' ').next().unwrap_or_default() {
            "INFO" => {
                out.extend_from_slice(
                    b"CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"bodkin-bench\",\"version\":\"1\",\"headers\":true}\r\n",
                );
                if let Some(jet_stream) = &self.jet_stream {
                    say(out, &format!("SUB {}.* {INBOX_SID}\r\n", jet_stream.inbox));
                }
                out.extend_from_slice(b"PING\r\n");
            }
            "PING" => out.extend_from_slice(b"PONG\r\n"),
            "PONG" => {
                self.pongs += 1;
                if self.pongs == 1 { heard(Heard::Ready) } else { self.settled(heard) }
            }
            "+OK" => {}
            "-ERR" => bail!("the server says {line}"),
            _ => bail!("the server sends what is not understood: {line}"),
        }
        Ok(())
    }

    /// A pong or an answer came: the last of them that was waited for means that everything is served.
    fn settled(&mut self, heard: &mut dyn FnMut(Heard<'_>)) {
        match &mut self.jet_stream {
            Some(jet_stream) if !jet_stream.calls.is_empty() => jet_stream.settles = true,
            _ => heard(Heard::Settled),
        }
    }

    fn message(&mut self, sid: &str, payload: &[u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<()> {
        let Some(jet_stream) = self.jet_stream.as_mut().filter(|_| sid == INBOX_SID) else {
            heard(Heard::Event(payload));
            return Ok(());
        };
        let refused = || format!("JetStream answers {}", String::from_utf8_lossy(payload));
        if jet_stream.end == End::Publisher {
            // {"stream":..,"seq":..}; looked at only as far as it has to be told from an error.
            if payload.windows(7).any(|window| window == b"\"error\"") {
                bail!(refused());
            }
            heard(Heard::Acknowledged(1));
            return Ok(());
        }
        let answer: Value = serde_json::from_slice(payload).with_context(refused)?;
        if answer.get("error").is_some() {
            bail!(refused());
        }
        jet_stream.calls.pop_front();
        match jet_stream.calls.front() {
            Some(call) => say(out, call),
            None if jet_stream.settles => heard(Heard::Settled),
            None => {}
        }
        Ok(())
    }
}

impl Dialect for Nats {
    fn open(&mut self, _: &mut Vec<u8>) {
        // The server speaks first.
    }

    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>) {
        self.subscriptions += 1;
        let sid = EVENTS_SID_FIRST + self.subscriptions - 1;
        let Some(jet_stream) = &mut self.jet_stream else {
            subject(topic, &mut self.subject);
            return say(out, &format!("SUB {} {sid}\r\n", self.subject));
        };
        // Here a topic is a whole group.
        let events = format!("{}-{topic}", jet_stream.inbox.replacen("_INBOX", "events", 1));
        say(out, &format!("SUB {events} {sid}\r\n"));
        let stream = json!({
            "name": STREAM, "subjects": ["bench.>"], "storage": "memory", "retention": "limits", "max_msgs": KEPT_MAX, "discard": "old",
            "num_replicas": jet_stream.replicas,
        });
        let consumer = json!({
            "stream_name": STREAM,
            "config": { "deliver_subject": events, "deliver_policy": "new", "ack_policy": "none", "filter_subject": format!("bench.{topic}.>"), "mem_storage": true },
        });
        let calls: [_; CALLS_OF_SUBSCRIPTION] = [("STREAM.CREATE", stream), ("CONSUMER.CREATE", consumer)];
        for (call, body) in calls {
            let body = body.to_string();
            jet_stream.calls.push_back(format!("PUB $JS.API.{call}.{STREAM} {}.a {}\r\n{body}\r\n", jet_stream.inbox, body.len()));
        }
        if jet_stream.calls.len() == CALLS_OF_SUBSCRIPTION {
            say(out, &jet_stream.calls[0]);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"PING\r\n");
    }

    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>) {
        subject(topic, &mut self.subject);
        let written = match &self.jet_stream {
            None => write!(out, "PUB {} {}\r\n", self.subject, payload.len()),
            Some(jet_stream) => write!(out, "PUB {} {}.a {}\r\n", self.subject, jet_stream.inbox, payload.len()),
        };
        written.expect("a vector takes everything");
        out.extend_from_slice(payload);
        out.extend_from_slice(b"\r\n");
    }

    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
                if rest.len() > LINE_BYTES_MAX {
                    bail!("the server sends a line of more than {LINE_BYTES_MAX} bytes");
                }
                return Ok(taken);
            };
            let line = std::str::from_utf8(&rest[..end]).context("the server sends no text")?;
            let Some(arguments) = line.strip_prefix("MSG ") else {
                self.line(line, out, heard)?;
                taken += end + 2;
                continue;
            };
            let words = || arguments.split(' ');
            let length: usize = words().next_back().and_then(|length| length.parse().ok()).with_context(|| line.to_string())?;
            let Some(payload) = rest.get(end + 2..end + 2 + length).filter(|_| rest.len() >= end + 2 + length + 2) else {
                return Ok(taken);
            };
            self.message(words().nth(1).unwrap_or_default(), payload, out, heard)?;
            taken += end + 2 + length + 2;
        }
    }
}

/// `NAME-7` is `bench.NAME.7`; what has no number is the first of its name.
fn subject(topic: &str, subject: &mut String) {
    let (name, number) = topic.rsplit_once('-').unwrap_or((topic, "1"));
    subject.clear();
    for part in ["bench.", name, ".", number] {
        subject.push_str(part);
    }
}

fn say(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the server's words to a client, cut at every place, and what it hears and says.
    fn heard(make: impl Fn() -> Nats, words: &[u8]) -> (Vec<String>, String) {
        let mut results = Vec::new();
        for cut in 0..words.len() {
            let (mut client, mut out, mut told) = (make(), Vec::new(), Vec::new());
            let mut note = |heard: Heard<'_>| told.push(format!("{heard:?}"));
            let mut first = words[..cut].to_vec();
            let taken = client.receive(&mut first, &mut out, &mut note).unwrap();
            let mut rest = words[taken..].to_vec();
            assert_eq!(client.receive(&mut rest, &mut out, &mut note).unwrap(), rest.len());
            results.push((told, String::from_utf8(out).unwrap()));
        }
        results.dedup();
        assert_eq!(results.len(), 1, "however it is cut the same comes out");
        results.remove(0)
    }

    #[test]
    fn core_hears_events_and_answers_pings() {
        let (told, said) = heard(Nats::core, b"INFO {}\r\nPONG\r\nPING\r\nMSG bench.A.1 2 3\r\na\rb\r\nPONG\r\n");
        assert_eq!(told, ["Ready", "Event([97, 13, 98])", "Settled"]);
        assert!(said.starts_with("CONNECT {") && said.ends_with("PING\r\nPONG\r\n"), "{said}");
        let mut out = Vec::new();
        Nats::core().publish("A-12", b"xyz", &mut out);
        Nats::core().subscribe("ALONE", &mut out);
        assert_eq!(out, b"PUB bench.A.12 3\r\nxyz\r\nSUB bench.ALONE.1 2\r\n");
    }

    #[test]
    fn jet_stream_acknowledges_and_is_settled_when_all_is_answered() {
        let (told, _) = heard(|| Nats::jet_stream(End::Publisher, "p", 1), b"INFO {}\r\nPONG\r\nMSG _INBOX.p.a 1 11\r\n{\"seq\": 12}\r\n");
        assert_eq!(told, ["Ready", "Acknowledged(1)"]);
        let subscriber = || {
            let mut client = Nats::jet_stream(End::Subscriber, "s", 3);
            client.pongs = 1;
            client.subscribe("A", &mut Vec::new());
            client
        };
        let (told, _) = heard(subscriber, b"MSG _INBOX.s.a 1 2\r\n{}\r\nPONG\r\nMSG _INBOX.s.a 1 2\r\n{}\r\nMSG events.s-A 2 1\r\nx\r\n");
        assert_eq!(told, ["Settled", "Event([120])"]);
    }

    #[test]
    fn what_is_refused_is_told() {
        for words in [&b"-ERR 'no'\r\n"[..], b"WHAT\r\n", b"MSG _INBOX.p.a 1 20\r\n{\"error\":{\"code\":503}\r\n"] {
            let mut client = Nats::jet_stream(End::Publisher, "p", 1);
            assert!(client.receive(&mut words.to_vec(), &mut Vec::new(), &mut |_| {}).is_err());
        }
    }
}
