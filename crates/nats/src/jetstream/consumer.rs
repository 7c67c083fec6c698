//! A durable consumer: a place in a stream that the servers keep for somebody, what is brought from there, and what is said to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer::{AnswerError, COUNT_MAX, answer, count};
use crate::protocol::Message;

/// Where a consumer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverPolicy {
    /// With the oldest message.
    All,
    /// With what is published from now on.
    New,
    /// With a sequence.
    ByStartSequence,
    /// With what was published from a time on.
    ByStartTime,
    /// Anything else that servers know.
    #[serde(other)]
    Other,
}

/// What counts as taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// What was acknowledged, one by one.
    Explicit,
    /// Everything up to what was acknowledged.
    All,
    /// What was sent.
    None,
    /// Anything else that servers know.
    #[serde(other)]
    Other,
}

/// What a consumer is set up as; everything else is as the server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerConfig {
    /// Its name.
    #[serde(default)]
    pub durable_name: String,
    /// Where it begins.
    pub deliver_policy: DeliverPolicy,
    /// The sequence that it begins with, where it begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_start_seq: Option<u64>,
    /// The time that it begins with, in RFC 3339, where it begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<String>,
    /// What counts as taken.
    pub ack_policy: AckPolicy,
    /// Nanoseconds behind which a message that was not acknowledged is brought again.
    #[serde(default)]
    pub ack_wait: u64,
    /// How often a message is brought at the most; -1: until it is acknowledged.
    #[serde(default)]
    pub max_deliver: i64,
    /// Messages that may be brought and not acknowledged; -1: any number.
    #[serde(default)]
    pub max_ack_pending: i64,
    /// Subjects that it brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// The one that it brings, where it is made for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_subject: Option<String>,
    /// Where it sends messages without being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_subject: Option<String>,
    /// What its users have noted at it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Everything else, which an update leaves as it is.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

impl ConsumerConfig {
    /// Subjects that it brings, in order.
    pub fn filters(&self) -> Vec<&str> {
        let mut filters: Vec<&str> = self.filter_subjects.iter().chain(&self.filter_subject).map(String::as_str).collect();
        filters.sort_unstable();
        filters
    }
}

/// A place by two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Sequences {
    /// How often the consumer has brought a message until there.
    #[serde(deserialize_with = "count")]
    pub consumer_seq: u64,
    /// The message's sequence in the stream.
    #[serde(deserialize_with = "count")]
    pub stream_seq: u64,
}

/// A consumer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConsumerInfo {
    /// What it is set up as.
    pub config: ConsumerConfig,
    /// What it has brought last.
    pub delivered: Sequences,
    /// Everything up to here was acknowledged.
    pub ack_floor: Sequences,
    /// Messages that were brought and not acknowledged.
    #[serde(default, deserialize_with = "count")]
    pub num_ack_pending: u64,
    /// Messages that it has not brought yet.
    #[serde(default, deserialize_with = "count")]
    pub num_pending: u64,
}

/// Reads the answer to a question for a consumer, and to one that makes it.
///
/// # Errors
/// It is a refusal, or not understood.
pub fn consumer_info(payload: &[u8]) -> Result<ConsumerInfo, AnswerError> {
    answer(payload)
}

/// How many messages are to be brought, and how long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pull {
    /// Messages at the most.
    pub batch: u64,
    /// Their bytes at the most; what is longer alone is not brought at all.
    pub max_bytes: u64,
    /// Nanoseconds behind which it is over.
    pub expires: u64,
    /// Nanoseconds without a message behind which the server says that it is there.
    pub idle_heartbeat: u64,
}

/// Which message of a stream was brought: said by where its acknowledgement goes, `$JS.ACK.[DOMAIN.ACCOUNT.]STREAM.CONSUMER.TIMES.SEQUENCE.CONSUMER_SEQUENCE.TIME.PENDING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How often, this time included.
    pub times: u64,
    /// Where it is, in the stream and among what the consumer has brought.
    pub at: Sequences,
    /// Messages that the consumer has not brought yet.
    pub pending: u64,
}

impl Delivered {
    /// Reads it; `None`: it is no message of a consumer.
    pub fn of(message: &Message) -> Option<Self> {
        let rest = message.reply.as_deref()?.strip_prefix("$JS.ACK.")?;
        let tokens: Vec<&str> = rest.split('.').collect();
        // With a domain there are two more in front, and perhaps a random one behind.
        let begin = match tokens.len() {
            7 => 2,
            9.. => 4,
            _ => return None,
        };
        let number = |place: usize| tokens.get(begin + place)?.parse().ok().filter(|number| *number <= COUNT_MAX);
        let sequence = |place: usize| number(place).filter(|number| *number > 0);
        Some(Self { times: number(0)?, at: Sequences { stream_seq: sequence(1)?, consumer_seq: sequence(2)? }, pending: number(4)? })
    }
}

/// What is said to a consumer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// It is taken.
    Taken,
    /// It is not to come again.
    Never,
    /// It is to come again at once, and not only behind the consumer's wait.
    Again,
}

impl Ack {
    /// As it is said.
    pub fn words(self) -> &'static [u8] {
        match self {
            Self::Taken => b"+ACK",
            Self::Never => b"+TERM",
            Self::Again => b"-NAK",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Headers;

    fn message(reply: &str) -> Message {
        Message {
            subject: "commands.e.HEAT".to_owned(),
            subscription: 2,
            reply: Some(reply.to_owned()),
            headers: Ok(Headers::default()),
            payload: Vec::new(),
        }
    }

    #[test]
    fn where_a_message_is_says_where_its_acknowledgement_goes() {
        let here = Delivered { times: 2, at: Sequences { stream_seq: 40, consumer_seq: 9 }, pending: 3 };
        assert_eq!(Delivered::of(&message("$JS.ACK.COMMANDS.edge-7.2.40.9.1700000000000000000.3")), Some(here));
        assert_eq!(Delivered::of(&message("$JS.ACK.hub.ACCHASH.COMMANDS.edge-7.2.40.9.1700000000000000000.3")), Some(here));
        assert_eq!(Delivered::of(&message("$JS.ACK.hub.ACCHASH.COMMANDS.edge-7.2.40.9.1700000000000000000.3.random")), Some(here));
        let (none, beyond) = ("$JS.ACK.C.e.1.0.1.1.0", "$JS.ACK.C.e.1.9223372036854775808.1.1.0");
        for reply in ["", "_INBOX.x.1", "$JS.ACK.C.e.2.x.9.1.3", "$JS.ACK.C.e.2.40.9.1", none, beyond] {
            assert_eq!(Delivered::of(&message(reply)), None, "{reply}");
        }
    }

    #[test]
    fn a_consumer_is_read_whatever_it_is_set_up_as() {
        let told = br#"{"type":"io.nats.jetstream.api.v1.consumer_info_response","stream_name":"C","name":"e","created":"2026-11-24T18:00:00Z",
            "config":{"durable_name":"e","name":"e","deliver_policy":"last_per_subject","ack_policy":"explicit","ack_wait":5000000000,"max_deliver":-1,"max_ack_pending":256,
            "filter_subjects":["c.e.*","c.all.*"],"replay_policy":"instant","num_replicas":0},
            "delivered":{"consumer_seq":7,"stream_seq":12,"last_active":"2026-11-24T18:00:00Z"},"ack_floor":{"consumer_seq":5,"stream_seq":9},"num_ack_pending":2,"num_redelivered":0,"num_waiting":1,"num_pending":4}"#;
        let info = consumer_info(told).expect("a consumer");
        assert_eq!((info.delivered.stream_seq, info.ack_floor.stream_seq, info.num_ack_pending, info.num_pending), (12, 9, 2, 4));
        assert_eq!((info.config.deliver_policy, info.config.filters()), (DeliverPolicy::Other, vec!["c.all.*", "c.e.*"]));
        let beyond = String::from_utf8_lossy(told).replace("\"stream_seq\":12", "\"stream_seq\":18446744073709551615");
        assert!(matches!(consumer_info(beyond.as_bytes()), Err(AnswerError::Form(why)) if why.contains("counts nothing")));
        let none = br#"{"error":{"code":404,"err_code":10014,"description":"consumer not found"}}"#;
        assert!(matches!(consumer_info(none), Err(AnswerError::Refused(error)) if error.kind() == super::super::ErrorKind::NoConsumer));
    }
}
