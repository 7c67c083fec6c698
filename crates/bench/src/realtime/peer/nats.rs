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
/// Largest message of the protocol: a server accepts no larger `max_payload`.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Status of a message that replaces a reply, because no server responded to the request.
const NO_RESPONDERS: &str = "503";
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
            let Some(message) = Message::parse(line)? else {
                self.line(line, out, heard)?;
                taken += end + 2;
                continue;
            };
            let length = message.length;
            let Some(content) = rest.get(end + 2..end + 2 + length).filter(|_| rest.len() >= end + 2 + length + 2) else {
                return Ok(taken);
            };
            let (headers, payload) = content.split_at(message.header_length);
            check_status(headers, line)?;
            self.message(message.sid, payload, out, heard)?;
            taken += end + 2 + length + 2;
        }
    }
}

/// The line in front of a message: `MSG subject sid [reply] length` or `HMSG subject sid [reply] header-length length`.
struct Message<'a> {
    sid: &'a str,
    /// Bytes of the headers; `length` counts them, too.
    header_length: usize,
    length: usize,
}

impl<'a> Message<'a> {
    /// Returns `None` for a line that begins no message.
    fn parse(line: &'a str) -> anyhow::Result<Option<Self>> {
        let (arguments, has_headers) = match line.split_once(' ') {
            Some(("MSG", arguments)) => (arguments, false),
            Some(("HMSG", arguments)) => (arguments, true),
            _ => return Ok(None),
        };
        let words: Vec<&str> = arguments.split(' ').collect();
        let number = |from_end: usize| words[words.len() - from_end].parse::<usize>().ok();
        // The reply subject is optional.
        let (length, header_length) = match (has_headers, words.len()) {
            (false, 3 | 4) => (number(1), Some(0)),
            (true, 4 | 5) => (number(1), number(2)),
            _ => (None, None),
        };
        let (Some(length), Some(header_length)) = (length, header_length) else {
            bail!("subject, subscription, and lengths of a message expected, found: {line}");
        };
        if length > MESSAGE_BYTES_MAX || header_length > length {
            bail!("headers within a message of at most {MESSAGE_BYTES_MAX} bytes expected, found: {line}");
        }
        Ok(Some(Self { sid: words[1], header_length, length }))
    }
}

/// Checks the status in the first header line, `NATS/1.0 503`, of a message that replaces a reply.
///
/// # Errors
///
/// Returns an error if the message has a status: this client requests nothing that is answered by a status.
fn check_status(headers: &[u8], line: &str) -> anyhow::Result<()> {
    let first = headers.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    match first.split_once(' ').map(|(_, status)| status.trim()) {
        None | Some("") => Ok(()),
        Some(status) if status.starts_with(NO_RESPONDERS) => bail!(
            "no server responds (status {status}, {line}): JetStream must be enabled, and the stream must have a leader; start again when it has"
        ),
        Some(status) => bail!("the server sends the status {status}: {line}"),
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
    fn messages_with_headers_are_received() {
        let words = b"INFO {}\r\nPONG\r\nHMSG bench.A.1 2 18 21\r\nNATS/1.0\r\nA: b\r\n\r\nxyz\r\nHMSG bench.A.1 2 reply 12 13\r\nNATS/1.0\r\n\r\n!\r\n";
        let (told, _) = heard(Nats::core, words);
        assert_eq!(told, ["Ready", "Event([120, 121, 122])", "Event([33])"]);
    }

    #[test]
    fn request_without_responders_names_the_status() {
        for status in ["503", "503 No Responders Available For Request"] {
            let headers = format!("NATS/1.0 {status}\r\n\r\n");
            let words = format!("HMSG _INBOX.p.a 1 {0} {0}\r\n{headers}\r\n", headers.len());
            let mut client = Nats::jet_stream(End::Publisher, "p", 3);
            let error = client.receive(&mut words.into_bytes(), &mut Vec::new(), &mut |_| {}).unwrap_err().to_string();
            assert!(error.contains(status) && error.contains("must have a leader"), "{error}");
        }
    }

    #[test]
    fn lengths_of_messages_are_checked() {
        for words in ["MSG a 1 x", "HMSG a 1 5", "HMSG a 1 6 5", "MSG a 1 18446744073709551615", "MSG a", "MSG 1"] {
            let error = Nats::core().receive(&mut format!("{words}\r\n").into_bytes(), &mut Vec::new(), &mut |_| {});
            assert!(error.as_ref().is_err_and(|error| error.to_string().contains(words)), "{words}: {error:?}");
        }
    }

    #[test]
    fn what_is_refused_is_told() {
        for words in [&b"-ERR 'no'\r\n"[..], b"WHAT\r\n", b"MSG _INBOX.p.a 1 20\r\n{\"error\":{\"code\":503}\r\n"] {
            let mut client = Nats::jet_stream(End::Publisher, "p", 1);
            assert!(client.receive(&mut words.to_vec(), &mut Vec::new(), &mut |_| {}).is_err());
        }
    }
}
