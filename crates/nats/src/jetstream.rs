//! JetStream (docs.nats.io, "JetStream wire API Reference"): streams are asked for by JSON on subjects of their own, and what is published into one is acknowledged.

mod answer;
mod consumer;
mod error;
mod stream;

pub use self::{
    answer::{AnswerError, Last, PublishAck, last_message, publish_ack},
    consumer::{Ack, AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, Delivered, Pull, Sequences, consumer_info},
    error::{ApiError, ErrorKind},
    stream::{Discard, Storage, StreamCluster, StreamConfig, StreamInfo, StreamState, stream_info},
};

use crate::protocol::{Subject, SubjectError, is_token};

/// A name that is published once within a stream's duplicate window.
pub const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The stream that a message is for; another one refuses it.
pub const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// The sequence of the subject's last message, 0 of none: behind any other one the message is refused.
pub const EXPECTED_LAST_SUBJECT_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";

/// Where JetStream is asked: of the servers themselves, or of a domain behind a leaf node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    prefix: String,
}

/// A question: what it is sent to, and what it says.
pub type Question = (Subject, Vec<u8>);

impl Api {
    /// That of the servers, or of a domain.
    ///
    /// # Errors
    /// The domain is no token.
    pub fn new(domain: Option<&str>) -> Result<Self, SubjectError> {
        match domain {
            None => Ok(Self { prefix: "$JS.API".to_owned() }),
            Some(domain) if is_token(domain) => Ok(Self { prefix: format!("$JS.{domain}.API") }),
            Some(domain) => Err(SubjectError::Token(domain.to_owned())),
        }
    }

    /// How is this stream?
    ///
    /// # Errors
    /// The name makes no subject.
    pub fn stream_info(&self, stream: &str) -> Result<Question, SubjectError> {
        Ok((self.subject("STREAM.INFO", stream)?, Vec::new()))
    }

    /// Make this stream; one that is the same already counts as made.
    ///
    /// # Errors
    /// The name makes no subject.
    pub fn create_stream(&self, config: &StreamConfig) -> Result<Question, SubjectError> {
        Ok((self.subject("STREAM.CREATE", &config.name)?, serde_json::to_vec(config).expect("texts and numbers are JSON")))
    }

    /// What was published to this subject last? Its leader answers.
    ///
    /// # Errors
    /// The name makes no subject.
    pub fn last_message(&self, stream: &str, subject: &Subject) -> Result<Question, SubjectError> {
        let body = serde_json::json!({ "last_by_subj": subject.as_str() });
        Ok((self.subject("STREAM.MSG.GET", stream)?, body.to_string().into_bytes()))
    }

    /// How is this consumer?
    ///
    /// # Errors
    /// The names make no subject.
    pub fn consumer_info(&self, stream: &str, consumer: &str) -> Result<Question, SubjectError> {
        Ok((self.subject("CONSUMER.INFO", &format!("{stream}.{consumer}"))?, Vec::new()))
    }

    /// Make this consumer; one that is the same already counts as made.
    ///
    /// # Errors
    /// The names make no subject.
    pub fn create_consumer(&self, stream: &str, config: &ConsumerConfig) -> Result<Question, SubjectError> {
        let body = serde_json::json!({ "stream_name": stream, "config": config });
        Ok((self.subject("CONSUMER.CREATE", &format!("{stream}.{}", config.durable_name))?, body.to_string().into_bytes()))
    }

    /// Delete this consumer.
    ///
    /// # Errors
    /// Returns an error if the names make no subject.
    pub fn delete_consumer(&self, stream: &str, consumer: &str) -> Result<Question, SubjectError> {
        Ok((self.subject("CONSUMER.DELETE", &format!("{stream}.{consumer}"))?, Vec::new()))
    }

    /// Bring the next messages of a consumer to where this is answered.
    ///
    /// # Errors
    /// The names make no subject.
    pub fn next_messages(&self, stream: &str, consumer: &str, pull: &Pull) -> Result<Question, SubjectError> {
        Ok((self.subject("CONSUMER.MSG.NEXT", &format!("{stream}.{consumer}"))?, serde_json::to_vec(pull).expect("numbers are JSON")))
    }

    /// What a question for messages is sent below.
    pub fn next_prefix(&self) -> String {
        format!("{}.CONSUMER.MSG.NEXT", self.prefix)
    }

    fn subject(&self, call: &str, stream: &str) -> Result<Subject, SubjectError> {
        Subject::new(&format!("{}.{call}.{stream}", self.prefix))
    }
}

#[cfg(test)]
mod tests;
