//! What the demo's processes tell it: JSON, one line a report, on their stdout.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The local cloud's first line.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// Process id.
    pub pid: u32,
    /// `host:port` by name of the system.
    pub listeners: BTreeMap<String, String>,
}

/// A report of a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// The provider's services are registered and published.
    Serving {
        /// Where it listens, `host:port`.
        address: String,
        /// Its service definitions.
        services: Vec<String>,
        /// What this machine does not measure, and why.
        absent: Vec<String>,
        /// How long registering took.
        took_ms: f64,
    },
    /// A step of the consumer is done and was as it should be.
    Step {
        /// Which step.
        step: Step,
        /// What happened.
        text: String,
        /// How long it took.
        took_ms: f64,
    },
    /// An event arrived.
    Arrived {
        /// Over which way.
        way: Way,
        /// What it carried.
        sample: Sample,
        /// From publishing to arrival.
        latency_ms: f64,
    },
    /// A step failed, or the participant cannot go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// The consumer's steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is a registered system.
    Registered,
    /// The Orchestrator offered nothing.
    Denied,
    /// The Orchestrator offered the provider.
    Allowed,
    /// The service was read where the Orchestrator said.
    Read,
    /// Events came by SSE.
    Streamed,
    /// Events came by HTTP push.
    Pushed,
    /// Results of the graph came.
    Processed,
}

/// How an event reached the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Way {
    /// Server-sent events.
    #[serde(rename = "SSE")]
    ServerSentEvents,
    /// Posted to the consumer's listener.
    #[serde(rename = "HTTP push")]
    HttpPush,
}

/// A measured value on its way: what the provider's services answer, and the payload of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Service definition.
    pub service: String,
    /// Counts the provider's samples of this service from 1.
    pub sequence: u64,
    /// The value.
    pub value: f64,
    /// Unit of value and parts.
    pub unit: String,
    /// When it was measured (UTC).
    pub time: String,
    /// The same instant in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Parts or companions of the value by name.
    pub parts: BTreeMap<String, f64>,
}

/// Milliseconds as a report carries them.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Tells the demo.
pub fn tell(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
