//! What an intake is set up as, and which consumers it does not take from.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    jetstream::{AckPolicy, Api, ConsumerConfig, ConsumerInfo, DeliverPolicy},
    lane::Refusal,
};

/// How long a consumer that is made waits for an acknowledgement before it brings a message again: behind a cut, what was under way is waited for so long.
pub const ACK_WAIT: Duration = Duration::from_secs(5);
/// Messages that may be under way of a consumer that is made.
pub const ACK_PENDING_DEFAULT: u32 = 256;
/// Messages that may be under way at the most: so many are collected behind a cut.
pub const ACK_PENDING_MAX: i64 = 1024;

/// Key of a consumer's metadata: the process that takes from it.
const PROCESS_KEY: &str = "bodkin-process";

/// What is taken from where.
#[derive(Clone, Debug)]
pub struct IntakeSetup {
    /// Where JetStream is asked.
    pub api: Api,
    /// The stream's name.
    pub stream: String,
    /// What the consumer has to be, and is made as.
    pub consumer: ConsumerConfig,
    /// Whether it is made where it is not there.
    pub creates: bool,
    /// Whether a consumer whose acknowledgements go further than the memory of a taker that has just started is made again behind
    /// that memory: the taker was killed before it had noted them, or its directory was restored, and what it has not is brought again.
    pub rewinds: bool,
    /// The process that takes, noted at the consumer: one that starts later under the same name replaces it there, and this one
    /// takes nothing more. `None`: names are unique.
    pub process: Option<String>,
    /// Messages that may be taken and not done.
    pub taken_max: usize,
    /// How long is waited until what is not there is looked for again.
    pub look_every: Duration,
}

impl IntakeSetup {
    /// A consumer of this name, which brings these subjects until they are acknowledged, one by one.
    pub fn consumer(name: &str, subjects: Vec<String>) -> ConsumerConfig {
        ConsumerConfig {
            durable_name: name.to_owned(),
            deliver_policy: DeliverPolicy::New,
            opt_start_seq: None,
            opt_start_time: None,
            ack_policy: AckPolicy::Explicit,
            ack_wait: u64::try_from(ACK_WAIT.as_nanos()).expect("seconds"),
            max_deliver: -1,
            max_ack_pending: ACK_PENDING_DEFAULT.into(),
            filter_subjects: subjects,
            filter_subject: None,
            deliver_subject: None,
            metadata: BTreeMap::new(),
            rest: serde_json::Map::new(),
        }
    }
}

impl IntakeSetup {
    /// `config` with this process noted.
    pub(super) fn claimed(&self, mut config: ConsumerConfig) -> ConsumerConfig {
        if let Some(process) = &self.process {
            config.metadata.insert(PROCESS_KEY.to_owned(), process.clone());
        }
        config
    }

    /// Another process that is noted at the consumer.
    pub(super) fn other_process<'a>(&self, info: &'a ConsumerInfo) -> Option<&'a str> {
        let own = self.process.as_deref()?;
        info.config.metadata.get(PROCESS_KEY).map(String::as_str).filter(|noted| *noted != own)
    }

    /// Whether this process is to be noted and is not.
    pub(super) fn is_unclaimed(&self, info: &ConsumerInfo) -> bool {
        self.process.as_ref().is_some_and(|own| info.config.metadata.get(PROCESS_KEY) != Some(own))
    }

    /// Why nothing is taken from a consumer; `None`: it can be.
    pub fn unusable(&self, info: &ConsumerInfo) -> Option<NoIntake> {
        unusable(&self.consumer, &info.config)
    }
}

/// Why nothing comes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIntake {
    /// The stream or the consumer is not there, or cannot be made.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Somebody else's acknowledgements would remove messages.
    #[error("the stream lets go of what was acknowledged (its retention is not limits), and others of the fleet would miss it")]
    Retention,
    /// The consumer is set up otherwise.
    #[error("the consumer has {key} = {found}, and {expected} is expected: make it anew")]
    Consumer {
        /// What.
        key: &'static str,
        /// As it is.
        found: String,
        /// As it has to be.
        expected: String,
    },
    /// A process that started later takes them.
    #[error(
        "process {0} takes them under the same name: two edges have one name, or a copy of this data directory runs. End the other one, and \
        start this one again; or give this one another name"
    )]
    AnotherProcess(String),
    /// It would have to be kept without a limit.
    #[error("the server brings more messages than its consumer may have under way")]
    TooMany,
    /// The server has ended a pull.
    #[error("the server brings nothing more: {0}")]
    Ended(String),
}

/// Why nothing is taken from a consumer that is set up like this.
fn unusable(wanted: &ConsumerConfig, found: &ConsumerConfig) -> Option<NoIntake> {
    let differs = |key, found: String, expected: &str| Some(NoIntake::Consumer { key, found, expected: expected.to_owned() });
    if found.deliver_subject.is_some() {
        return differs("deliver_subject", format!("{:?}", found.deliver_subject), "none, so that it is pulled from,");
    }
    if found.ack_policy != AckPolicy::Explicit {
        return differs("ack_policy", format!("{:?}", found.ack_policy).to_lowercase(), "explicit");
    }
    if found.max_deliver > 0 {
        return differs("max_deliver", found.max_deliver.to_string(), "-1");
    }
    if !(1..=ACK_PENDING_MAX).contains(&found.max_ack_pending) {
        return differs("max_ack_pending", found.max_ack_pending.to_string(), &format!("1 to {ACK_PENDING_MAX}"));
    }
    if found.filters() != wanted.filters() {
        return differs("filter_subjects", found.filters().join(" "), &wanted.filters().join(" "));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_that_would_lose_or_mix_messages_is_not_used() {
        let wanted = IntakeSetup::consumer("edge-7", vec!["c.edge-7.*".to_owned(), "c.all.*".to_owned()]);
        assert_eq!(unusable(&wanted, &wanted), None);
        let reordered = ConsumerConfig { filter_subjects: vec!["c.all.*".to_owned(), "c.edge-7.*".to_owned()], ..wanted.clone() };
        assert_eq!(unusable(&wanted, &reordered), None);
        for (found, key) in [
            (ConsumerConfig { ack_policy: AckPolicy::All, ..wanted.clone() }, "ack_policy = all"),
            (ConsumerConfig { ack_policy: AckPolicy::None, ..wanted.clone() }, "ack_policy = none"),
            (ConsumerConfig { max_deliver: 3, ..wanted.clone() }, "max_deliver = 3"),
            (ConsumerConfig { max_ack_pending: -1, ..wanted.clone() }, "max_ack_pending = -1"),
            (ConsumerConfig { max_ack_pending: 20_000, ..wanted.clone() }, "1 to 1024 is expected"),
            (ConsumerConfig { deliver_subject: Some("x".to_owned()), ..wanted.clone() }, "so that it is pulled from"),
            (IntakeSetup::consumer("edge-7", vec!["c.>".to_owned()]), "filter_subjects = c.>, and c.all.* c.edge-7.* is expected"),
        ] {
            let told = unusable(&wanted, &found).expect("it is not used").to_string();
            assert!(told.contains(key), "{key}: {told}");
        }
    }
}
