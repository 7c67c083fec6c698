//! The stream between nodes: what it is set up as, and what this node hands on to it and takes from it.

use std::{sync::Arc, time::Duration};

use bodkin_nats::{intake::IntakeSetup, lane::BATCH_BYTES_MIN, protocol::is_token};

use crate::{
    fleet::{FleetConfig, FleetForm, FleetLane, FleetLook, LOOK_EVERY, TAKEN_MAX},
    nats::{NatsPlace, NatsServer},
};

/// Bytes of a batch: what a server takes is 1 MiB as it comes, and a batch is as much as has come while the one before was stored.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long an answer is waited for: a change of leaders takes 4 to 10 s.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);
/// Events a second by which what waits becomes smaller while live events come: as to a fleet by default.
const DRAIN_EVENTS_PER_S: u64 = 30_000;
/// How long the servers wait for a node's acknowledgement before they bring a message again: it acknowledges as soon as its event log has it.
const ACK_WAIT: Duration = Duration::from_secs(2);
/// The one lane of a node.
const LANE: &str = "log";

/// How the stream is made where it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStreamLimits {
    /// Servers that have it: 1 to 5.
    pub replicas: u8,
    /// Bytes that it may have; its oldest messages go first.
    pub bytes_max: u64,
    /// How long it keeps a message.
    pub age_max: Duration,
}

/// What the configuration says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStreamTerms {
    /// Its name.
    pub stream: String,
    /// How it is made where it is not there; `None`: somebody else makes it.
    pub create: Option<NodeStreamLimits>,
}

/// A name that is no stream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeStreamError {
    /// No token.
    #[error("{0:?} is no name of a stream: no dots, spaces, * and > are expected, and at least one letter")]
    Name(String),
    /// Outside its bounds.
    #[error("the stream is on 1 to 5 servers, and not on {0}")]
    Replicas(u8),
    /// It would keep nothing.
    #[error("the stream keeps at least {BATCH_BYTES_MIN} bytes for at least a second")]
    Limits,
}

impl NodeStreamTerms {
    /// Looks whether they can be meant.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), NodeStreamError> {
        if !is_token(&self.stream) {
            return Err(NodeStreamError::Name(self.stream.clone()));
        }
        match self.create {
            Some(NodeStreamLimits { replicas, .. }) if !(1..=5).contains(&replicas) => Err(NodeStreamError::Replicas(replicas)),
            Some(limits) if limits.bytes_max < BATCH_BYTES_MIN as u64 || limits.age_max < Duration::from_secs(1) => {
                Err(NodeStreamError::Limits)
            }
            _ => Ok(()),
        }
    }
}

/// The same of one node.
#[derive(Clone, Debug)]
pub struct NodeStream {
    /// What is handed on.
    pub lane: Arc<FleetConfig>,
}

impl NodeStream {
    /// Of a node in its cloud; both names are tokens of a subject. The terms were checked.
    pub fn new(place: NatsPlace, terms: &NodeStreamTerms, cloud: &str, node: &str) -> Self {
        let lane = FleetConfig {
            place,
            from: None,
            prefix: format!("bodkin.{cloud}.nodes"),
            edge: node.to_owned(),
            stream: terms.stream.clone(),
            domain: None,
            create: terms.create.map(|limits| (limits.replicas, Some(limits.bytes_max))),
            keeps_for: terms.create.map(|limits| limits.age_max),
            lanes: vec![FleetLane { name: LANE.to_owned(), event_types: Vec::new() }],
            form: FleetForm::Placed,
            batch_bytes_max: BATCH_BYTES_MAX,
            // What comes while a batch is under way goes with the next one.
            batch_wait_max: Duration::ZERO,
            answer_wait_max: ANSWER_WAIT_MAX,
            drain_events_per_s: DRAIN_EVENTS_PER_S,
        };
        Self { lane: Arc::new(lane) }
    }

    /// Where the nodes' names are in subjects: `None` for one that is not below the prefix, or another lane's.
    pub fn node_of(&self, subject: &str) -> Option<u64> {
        let rest = subject.strip_prefix(&*self.lane.prefix)?.strip_prefix('.')?;
        let (node, lane) = rest.split_once('.')?;
        (lane == LANE && node.len() == 16).then(|| u64::from_str_radix(node, 16).ok())?
    }

    /// This node, by its name's number.
    pub fn own(&self) -> u64 {
        u64::from_str_radix(&self.lane.edge, 16).expect("a node's name is 16 hexadecimal digits")
    }

    /// What is taken: everything, for a consumer cannot leave one subject out.
    pub fn intake(&self) -> IntakeSetup {
        let mut consumer = IntakeSetup::consumer(&self.lane.edge, vec![format!("{}.*.{LANE}", self.lane.prefix)]);
        consumer.ack_wait = u64::try_from(ACK_WAIT.as_nanos()).expect("seconds");
        IntakeSetup {
            api: self.lane.api(),
            stream: self.lane.stream.clone(),
            consumer,
            creates: true,
            rewinds: true,
            process: None,
            taken_max: TAKEN_MAX,
            look_every: LOOK_EVERY,
        }
    }

    /// Looks at one of the servers, as [`FleetConfig::look`] does.
    ///
    /// # Errors
    /// It is not reached, or does not take who we are.
    pub fn look(&self, server: &NatsServer) -> Result<FleetLook, String> {
        self.lane.look_for(server, Some(&self.intake()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_subject_has_its_name_and_nothing_else_does() {
        let terms = NodeStreamTerms { stream: "NODES".to_owned(), create: None };
        let stream = NodeStream::new(NatsPlace::parse("nats://h", None).expect("a place"), &terms, "c0", "00000000000000b2");
        let subject = stream.lane.terms(0).subject.to_string();
        assert_eq!(subject, "bodkin.c0.nodes.00000000000000b2.log");
        assert_eq!((stream.node_of(&subject), stream.own()), (Some(0xb2), 0xb2));
        for other in ["bodkin.c0.nodes.b2.log", "bodkin.c0.nodes.00000000000000b2.x", "bodkin.c1.nodes.00000000000000b2.log", "x"] {
            assert_eq!(stream.node_of(other), None, "{other}");
        }
        assert_eq!(stream.intake().consumer.filters(), ["bodkin.c0.nodes.*.log"]);
    }

    #[test]
    fn terms_that_cannot_be_meant_are_refused() {
        let limits = NodeStreamLimits { replicas: 3, bytes_max: 1 << 30, age_max: Duration::from_secs(60) };
        let check = |stream: &str, limits| NodeStreamTerms { stream: stream.to_owned(), create: Some(limits) }.check();
        assert_eq!(check("NODES", limits), Ok(()));
        assert_eq!(check("a.b", limits), Err(NodeStreamError::Name("a.b".to_owned())));
        assert_eq!(check("N", NodeStreamLimits { replicas: 6, ..limits }), Err(NodeStreamError::Replicas(6)));
        assert_eq!(check("N", NodeStreamLimits { age_max: Duration::ZERO, ..limits }), Err(NodeStreamError::Limits));
        assert_eq!(check("N", NodeStreamLimits { bytes_max: 9, ..limits }), Err(NodeStreamError::Limits));
    }
}
