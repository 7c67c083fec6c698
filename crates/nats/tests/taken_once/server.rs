//! A JetStream server with one stream and one durable consumer that is pulled from, as nats-server does it: what was brought again has the consumer's next number, and goes in front of what is new.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

/// What the consumer waits for an acknowledgement.
const ACK_WAIT: Duration = Duration::from_secs(5);
const ACK_PENDING_MAX: usize = 30;

/// The consumer's place.
#[derive(Clone, Default)]
pub struct Consumer {
    config: Value,
    /// How often it has brought something, and which sequence it has brought first.
    brought: u64,
    through: u64,
    /// Brought and not acknowledged, with when each comes again.
    pending: BTreeMap<u64, Duration>,
    again: VecDeque<u64>,
    /// Where pulls are answered, what each may bring still, and when it is over.
    pulls: VecDeque<(String, u64, Duration)>,
    floor: u64,
}

#[derive(Default)]
pub struct Server {
    /// Messages for the taker, those that were purged among them.
    pub ours: BTreeSet<u64>,
    /// Those that are in the stream.
    pub kept: BTreeSet<u64>,
    last: u64,
    /// Everything up to here was purged.
    pub purged: u64,
    pub consumer: Option<Consumer>,
    /// As it was some time ago, which another leader may go on from.
    earlier: Option<Consumer>,
    /// Newest messages that the server which leads the consumer has not got yet.
    pub behind: u64,
    /// Messages that may be brought and not acknowledged, if others than usual.
    pub ack_pending_max: Option<usize>,
    /// How many streams had its name before.
    made: u64,
    /// How long it takes until an acknowledgement that has come counts.
    pub acknowledged_behind: Duration,
    /// Acknowledged, and from when on it counts.
    acknowledged: VecDeque<(Duration, u64)>,
    /// What is brought and said about messages is lost.
    pub loses: bool,
    input: Vec<u8>,
    pub to_taker: Vec<u8>,
    pulled: String,
    is_connected: bool,
}

impl Server {
    pub fn accept(&mut self, pulled: &str) {
        (self.pulled, self.is_connected) = (pulled.to_owned(), true);
        self.input.clear();
        self.to_taker =
            b"INFO {\"server_name\":\"n1\",\"version\":\"2.15.2\",\"headers\":true,\"max_payload\":1048576,\"jetstream\":true}\r\n"
                .to_vec();
    }

    /// The connection is at its end; pulls that stand find nobody.
    pub fn cut(&mut self) {
        self.to_taker.clear();
        self.is_connected = false;
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    /// A message comes into the stream, perhaps for somebody else.
    pub fn publish(&mut self, for_us: bool) {
        self.last += 1;
        if for_us {
            self.ours.insert(self.last);
            self.kept.insert(self.last);
        }
    }

    pub fn purge(&mut self, through: u64) {
        self.purged = self.purged.max(through);
        self.kept = self.kept.split_off(&(through + 1));
        if let Some(consumer) = &mut self.consumer {
            consumer.pending = consumer.pending.split_off(&(through + 1));
            consumer.again.retain(|sequence| *sequence > through);
            consumer.settle();
        }
    }

    /// The next leader of the consumer goes on from what it has heard of, which is not the newest. What is asked for is forgotten.
    pub fn lead_from_earlier(&mut self) {
        if let Some(earlier) = &self.earlier {
            let mut consumer = earlier.clone();
            consumer.pulls.clear();
            consumer.pending = consumer.pending.split_off(&(self.purged + 1));
            consumer.again.retain(|sequence| *sequence > self.purged);
            consumer.settle();
            self.consumer = Some(consumer);
            self.acknowledged.clear();
        }
    }

    /// So many messages are on their way when the connection is cut.
    pub fn bring_to_nobody(&mut self, messages: usize, now: Duration) {
        let consumer = self.consumer.as_mut().expect("it was made");
        for sequence in self.kept.range(consumer.through + 1..).take(messages) {
            (consumer.brought, consumer.through) = (consumer.brought + 1, *sequence);
            consumer.pending.insert(*sequence, now + ACK_WAIT);
        }
    }

    /// The stream is deleted with its consumer, and another one of its name made.
    pub fn remake(&mut self) {
        *self = Self { made: self.made + 1, ..Self::default() };
    }

    pub fn is_idle(&self) -> bool {
        self.consumer
            .as_ref()
            .is_some_and(|consumer| consumer.pending.is_empty() && self.kept.range(consumer.through + 1..).next().is_none())
    }

    /// Time has passed: what was not acknowledged comes again.
    pub fn advance(&mut self, now: Duration) {
        while let Some((_, sequence)) = self.acknowledged.pop_front_if(|(from, _)| *from <= now) {
            self.acknowledge(sequence);
        }
        let Some(consumer) = &mut self.consumer else { return };
        // About every other second.
        if now.as_millis().is_multiple_of(2_000) {
            self.earlier = Some(consumer.clone());
        }
        let over: Vec<u64> = consumer.pending.iter().filter(|(_, until)| **until <= now).map(|(sequence, _)| *sequence).collect();
        for sequence in over {
            if !consumer.again.contains(&sequence) {
                consumer.again.push_back(sequence);
            }
        }
        consumer.pulls.retain(|(_, _, until)| *until > now);
        self.bring(now);
    }

    pub fn receive(&mut self, from_taker: &mut Vec<u8>, piece: usize, now: Duration) {
        self.input.extend(from_taker.drain(..piece.min(from_taker.len())));
        while let Some(end) = self.input.windows(2).position(|two| two == b"\r\n") {
            let line = String::from_utf8(self.input[..end].to_vec()).expect("lines are text");
            let fields: Vec<&str> = line.split(' ').collect();
            let mut body = 0;
            match fields[0] {
                "CONNECT" | "SUB" | "PONG" => {}
                "PING" => self.to_taker.extend_from_slice(b"PONG\r\n"),
                "PUB" => {
                    body = fields.last().expect("a length").parse::<usize>().expect("a length") + 2;
                    let Some(bytes) = self.input.get(end + 2..end + 2 + body).map(<[u8]>::to_vec) else { return };
                    self.hear(fields[1], fields.get(2).filter(|_| fields.len() == 4), &bytes[..body - 2], now);
                }
                _ => panic!("a taker says {line}"),
            }
            self.input.drain(..end + 2 + body);
        }
        self.bring(now);
    }

    fn hear(&mut self, subject: &str, reply: Option<&&str>, body: &[u8], now: Duration) {
        if let Some(acknowledged) = subject.strip_prefix("$JS.ACK.COMMANDS.e.") {
            let sequence: u64 = acknowledged.split('.').nth(1).expect("a sequence").parse().expect("a number");
            if body == b"-NAK" {
                return self.bring_again(sequence);
            }
            assert!(matches!(body, b"+ACK" | b"+TERM"));
            match self.acknowledged_behind {
                _ if self.loses => {}
                Duration::ZERO => self.acknowledge(sequence),
                behind => self.acknowledged.push_back((now + behind, sequence)),
            }
            return;
        }
        let reply = reply.expect("everything else is a request");
        match subject.strip_prefix("$JS.API.").expect("JetStream is asked") {
            "STREAM.INFO.COMMANDS" => {
                let told = json!({
                    "created": (1 + self.made).to_string(),
                    "config": { "name": "COMMANDS", "subjects": ["c.*.*"], "storage": "file", "discard": "old", "num_replicas": 1, "max_bytes": -1, "max_age": 0, "retention": "limits" },
                    "state": { "messages": 0, "bytes": 0, "first_seq": self.purged + 1, "last_seq": self.last },
                });
                self.answer(reply, &told);
            }
            "CONSUMER.INFO.COMMANDS.e" => self.tell(reply),
            "CONSUMER.CREATE.COMMANDS.e" => {
                let asked: Value = serde_json::from_slice(body).expect("JSON");
                let through = asked["config"]["opt_start_seq"].as_u64().map_or(self.last, |start| start - 1);
                self.consumer = Some(Consumer { config: asked["config"].clone(), through, floor: through, ..Consumer::default() });
                self.tell(reply);
            }
            "CONSUMER.DELETE.COMMANDS.e" => {
                self.consumer = None;
                self.acknowledged.clear();
                self.answer(reply, &json!({ "success": true }));
            }
            "CONSUMER.MSG.NEXT.COMMANDS.e" => {
                let asked: Value = serde_json::from_slice(body).expect("JSON");
                let until = now + Duration::from_nanos(asked["expires"].as_u64().expect("a time"));
                let batch = asked["batch"].as_u64().expect("a number");
                self.consumer.as_mut().expect("it was looked for").pulls.push_back(((*reply).to_owned(), batch, until));
            }
            other => panic!("a taker asks {other}"),
        }
    }

    fn acknowledge(&mut self, sequence: u64) {
        // A stream that was made anew has no consumer yet.
        let Some(consumer) = &mut self.consumer else { return };
        consumer.pending.remove(&sequence);
        consumer.again.retain(|again| *again != sequence);
        consumer.settle();
    }

    /// A message that is under way comes again at once.
    fn bring_again(&mut self, sequence: u64) {
        let Some(consumer) = self.consumer.as_mut().filter(|_| !self.loses) else { return };
        if consumer.pending.contains_key(&sequence) && !consumer.again.contains(&sequence) {
            consumer.again.push_back(sequence);
        }
    }

    fn answer(&mut self, reply: &str, told: &Value) {
        let told = told.to_string();
        self.to_taker.extend_from_slice(format!("MSG {reply} 1 {}\r\n{told}\r\n", told.len()).as_bytes());
    }

    fn tell(&mut self, reply: &str) {
        let told = match &self.consumer {
            None => json!({ "error": { "code": 404, "err_code": 10_014, "description": "consumer not found" } }),
            Some(consumer) => json!({
                "config": consumer.config,
                "delivered": { "consumer_seq": consumer.brought, "stream_seq": consumer.through },
                "ack_floor": { "consumer_seq": 0, "stream_seq": consumer.floor },
                "num_ack_pending": consumer.pending.len(),
                "num_pending": self.kept.range(consumer.through + 1..).filter(|sequence| **sequence + self.behind <= self.last).count(),
            }),
        };
        self.answer(reply, &told);
    }

    /// Brings what there is for the pulls that stand.
    fn bring(&mut self, now: Duration) {
        let Some(consumer) = &mut self.consumer else { return };
        while let Some((reply, left, _)) = consumer.pulls.front_mut() {
            // Whoever has pulled over a connection that is gone is not there: the pull goes with what it would bring.
            let is_heard = self.is_connected && reply.starts_with(&self.pulled);
            if !is_heard && !self.loses {
                consumer.pulls.pop_front();
                continue;
            }
            let new = || self.kept.range(consumer.through + 1..).next().copied().filter(|sequence| *sequence + self.behind <= self.last);
            let next = match consumer.again.pop_front() {
                Some(again) => again,
                None if consumer.pending.len() >= self.ack_pending_max.unwrap_or(ACK_PENDING_MAX) => return,
                None => match new() {
                    Some(sequence) => {
                        consumer.through = sequence;
                        sequence
                    }
                    None => return,
                },
            };
            consumer.brought += 1;
            consumer.pending.insert(next, now + ACK_WAIT);
            *left -= 1;
            if *left == 0 {
                consumer.pulls.pop_front();
            }
            if is_heard && !self.loses {
                let acknowledge = format!("$JS.ACK.COMMANDS.e.1.{next}.{}.1700000000000000000.0", consumer.brought);
                self.to_taker.extend_from_slice(format!("MSG c.e.T 2 {acknowledge} 1\r\nx\r\n").as_bytes());
            }
        }
    }
}

impl Consumer {
    fn settle(&mut self) {
        self.floor = self.pending.first_key_value().map_or(self.through, |(first, _)| first - 1);
    }
}
