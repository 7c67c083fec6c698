//! `/api/v1/streams`: who hears events on a connection of its own, by an event stream or by ZMTP; what waits for each, and what it has lost.

use std::net::SocketAddr;

use serde::Serialize;
use tokio::sync::oneshot;

use super::{Api, list};
use crate::{answer::Answer, inbox::Message};

/// Streams that are told; of more there is the count.
pub const STREAMS_TOLD_MAX: usize = 1_000;

/// How events go out to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamForm {
    /// An event stream of payloads.
    Payload,
    /// An event stream of events in JSON.
    Event,
    /// An event stream of CloudEvents.
    CloudEvent,
    /// A SUB or XSUB of ZMTP.
    Sub,
    /// A DEALER of ZMTP, which acknowledges.
    Dealer,
}

/// What a listener is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamPhase {
    /// It hears events as they come.
    Live,
    /// It is sent what it has missed, from the event log.
    CatchingUp,
    /// Its queue was full: it hears nothing until it has read half of that.
    Losing,
}

/// A listener as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// Names it while it lasts.
    pub id: String,
    /// How events go out to it.
    pub form: StreamForm,
    /// Event types that it hears.
    pub event_types: usize,
    /// The one, where it hears one only.
    pub event_type: Option<String>,
    /// As which system it hears; `None`: it has named none (insecure mode only).
    pub consumer: Option<String>,
    /// Where it is; `None`: on a path of this machine.
    pub address: Option<SocketAddr>,
    /// What it is doing.
    pub state: StreamPhase,
    /// Bytes that wait for it.
    pub waiting_bytes: u64,
    /// How many may.
    pub room_bytes: u64,
    /// Events that full queues have cost it since its begin.
    pub lost: u64,
}

/// The listeners of a shard.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// How many there are.
    pub count: u64,
    /// The first [`STREAMS_TOLD_MAX`].
    pub told: Vec<StreamState>,
}

impl Streams {
    /// One more; it is made only where it is told.
    pub fn push(&mut self, state: impl FnOnce() -> StreamState) {
        self.count += 1;
        if self.told.len() < STREAMS_TOLD_MAX {
            self.told.push(state());
        }
    }
}

impl Api {
    /// Answers `GET` of it.
    pub(super) async fn streams(&self) -> Answer {
        let (ask, told) = oneshot::channel();
        self.inbox.post(Message::Streams(ask));
        match told.await {
            Ok(streams) => list(&streams.told, streams.count),
            Err(_) => Answer::problem(503, "The local cloud is shutting down."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_listeners_are_counted_only() {
        let mut streams = Streams::default();
        let mut made = 0;
        for at in 0..STREAMS_TOLD_MAX + 5 {
            streams.push(|| {
                made += 1;
                StreamState {
                    id: at.to_string(),
                    form: StreamForm::Event,
                    event_types: 1,
                    event_type: None,
                    consumer: None,
                    address: None,
                    state: StreamPhase::Live,
                    waiting_bytes: 0,
                    room_bytes: 1,
                    lost: 0,
                }
            });
        }
        assert_eq!((streams.count, streams.told.len(), made), (STREAMS_TOLD_MAX as u64 + 5, STREAMS_TOLD_MAX, STREAMS_TOLD_MAX));
    }
}
