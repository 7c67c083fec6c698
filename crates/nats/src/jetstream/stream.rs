//! A stream: what it is set up as, and how full it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::{AnswerError, answer, count};
use crate::protocol::takes;

/// Where messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// On disk.
    File,
    /// Gone with the server.
    Memory,
}

/// What becomes of messages when the stream is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// The oldest ones go.
    Old,
    /// New ones are refused.
    New,
}

/// What a stream is set up as; everything else is as the server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamConfig {
    /// Its name.
    pub name: String,
    /// What is published to these is kept.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Where.
    pub storage: Storage,
    /// What becomes of messages when it is full.
    pub discard: Discard,
    /// Servers that have it.
    pub num_replicas: u8,
    /// Bytes that it may have; -1: no limit.
    pub max_bytes: i64,
    /// Messages that it may have; -1: no limit.
    #[serde(default = "no_limit")]
    pub max_msgs: i64,
    /// How long a message is kept in nanoseconds; 0: no limit.
    pub max_age: u64,
    /// Nanoseconds in which a message's name counts once.
    #[serde(default)]
    pub duplicate_window: u64,
    /// It acknowledges nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_ack: bool,
    /// It takes nothing more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
    /// What lets messages go beside its limits: `limits` is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
}

/// The server says it by this number, and by none in the same sense.
fn no_limit() -> i64 {
    -1
}

impl StreamConfig {
    /// On disk, on one server, without limits; everything is acknowledged, and what has no room is refused.
    pub fn new(name: &str, subjects: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
            storage: Storage::File,
            discard: Discard::New,
            num_replicas: 1,
            max_bytes: -1,
            max_msgs: no_limit(),
            max_age: 0,
            duplicate_window: 0,
            no_ack: false,
            sealed: false,
            retention: None,
        }
    }

    /// Whether one of its subjects takes what is published to this one.
    pub fn takes(&self, subject: &str) -> bool {
        self.subjects.iter().any(|pattern| takes(pattern, subject))
    }

    /// Whether what it is set up as may have let go of a message that it has had for so long; `None`: nobody knows for how long.
    pub fn may_let_go(&self, had_for: Option<Duration>) -> bool {
        let is_too_old = self.max_age > 0 && had_for.is_none_or(|had_for| had_for.as_nanos() >= u128::from(self.max_age));
        let makes_room = self.discard == Discard::Old && (self.max_bytes > 0 || self.max_msgs > 0);
        let is_used_up = self.retention.as_ref().is_some_and(|retention| retention != "limits");
        is_too_old || makes_room || is_used_up
    }
}

/// How full a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamState {
    /// Messages in it.
    #[serde(deserialize_with = "count")]
    pub messages: u64,
    /// Their bytes.
    #[serde(deserialize_with = "count")]
    pub bytes: u64,
    /// The sequence of the oldest one.
    #[serde(deserialize_with = "count")]
    pub first_seq: u64,
    /// The sequence of the newest one.
    #[serde(deserialize_with = "count")]
    pub last_seq: u64,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamInfo {
    /// What it is set up as.
    pub config: StreamConfig,
    /// When it was made (RFC 3339): another one of its name counts anew.
    #[serde(default)]
    pub created: String,
    /// How full it is.
    pub state: StreamState,
    /// The servers that have it together; `None`: they do not say.
    #[serde(default)]
    pub cluster: Option<StreamCluster>,
}

/// The servers that have a stream together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StreamCluster {
    /// The name of the one that takes what is published, wherever it comes in; `None`: none does just now.
    #[serde(default)]
    pub leader: Option<String>,
}

/// Reads the answer to a question for a stream's state, and to one that makes it.
///
/// # Errors
/// It is a refusal, or not understood.
pub fn stream_info(payload: &[u8]) -> Result<StreamInfo, AnswerError> {
    answer(payload)
}
