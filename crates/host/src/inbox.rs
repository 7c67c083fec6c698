//! What other threads have to say to one that waits for its poll: the shard, the pair's node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bodkin_arrowhead::{error::ArrowheadError, record::SystemId, utc::UtcTime};
use bodkin_broker::{ShardError, SubscriptionKey, Terms, graph::handover::Handover};
use bodkin_store::event_log::Position;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    answer::Answer,
    api::{TopicState, streams::Streams},
    channel::Channel,
    fleet::FromFleet,
    graph::{CarriedEvent, Deployment, EdgeLink},
    node_events::FromNode,
    pair::News,
    replay::Chunk,
    security::Peer,
    topics::{RealTimeTopic, asking::Answered},
};

/// Names a connection of the shard; a closed one's name is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionKey {
    /// Where it is kept.
    pub slot: usize,
    /// Which one it is of all there were.
    pub serial: u64,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct Arrival {
    /// Its socket, its TLS session, and the bytes that came behind the handshake.
    pub channel: Channel<std::net::TcpStream>,
    /// Who is at the other end.
    pub peer: Peer,
}

/// An event that another cloud has shared.
#[derive(Debug)]
pub struct RelayedEvent {
    /// Its JSON, as its own cloud's subscribers get it.
    pub event: String,
    /// The metadata that it has here: a JSON object.
    pub metadata: String,
    /// As whose it is published here.
    pub source: SystemId,
    /// When it was made.
    pub time: UtcTime,
}

/// One message to the shard.
#[derive(Debug)]
pub enum Message {
    /// A connection to take over, in secure mode.
    Connected(Box<Arrival>),
    /// The control plane's answer to a request that came in on the shard's port.
    Answer {
        /// Whose answer.
        connection: ConnectionKey,
        /// What to write.
        answer: Answer,
    },
    /// A pushed event has left its queue.
    Sent {
        /// Whose queue.
        subscription: SubscriptionKey,
        /// The event's bytes.
        bytes: u64,
    },
    /// A push task cannot take events now: they are to stay in the event log.
    FallBehind {
        /// Whose.
        subscription: SubscriptionKey,
    },
    /// A push task has worked the event log off, and waits for what follows.
    CaughtUp {
        /// Whose.
        subscription: SubscriptionKey,
        /// Everything in front of it is done with.
        from: Position,
    },
    /// A part of what a listener has missed.
    Replayed {
        /// Whose stream.
        connection: ConnectionKey,
        /// What to send.
        chunk: Chunk,
    },
    /// A replay cannot go on.
    ReplayFailed {
        /// Whose stream.
        connection: ConnectionKey,
    },
    /// What the event log holds in front of this place is synced, or cannot be.
    Synced {
        /// Behind the last event that is meant.
        end: Position,
        /// Why it is not on the disk.
        result: Result<(), String>,
    },
    /// An event that another cloud has shared.
    Relayed {
        /// The event.
        event: Box<RelayedEvent>,
        /// Why it was not taken.
        done: oneshot::Sender<Result<(), ArrowheadError>>,
    },
    /// Events of the other nodes of this cloud.
    FromNodes {
        /// In their order.
        events: Arc<[FromNode]>,
        /// Told when they are delivered, and those that come by a stream are in the event log; or why they can be neither now.
        done: oneshot::Sender<Result<(), String>>,
    },
    /// Events of the fleet.
    FromFleet(Box<FromFleet>),
    /// An event type is a real-time topic from now on, or one with other terms.
    Admit {
        /// What is counted, and where.
        topic: Arc<RealTimeTopic>,
        /// Its terms, which the admission test has found feasible.
        terms: Terms,
        /// Whether the shard has room for it.
        done: oneshot::Sender<Result<(), ShardError>>,
    },
    /// A graph is to run from now on, in the place of the one of its name.
    Deploy {
        /// The graph.
        deployment: Box<Deployment>,
        /// The version in front of it, of which the leader before may have left a checkpoint.
        before: Option<Box<Deployment>>,
        /// Whether the shard has room for its topics.
        done: oneshot::Sender<Result<(), ShardError>>,
    },
    /// A graph without an operator is to run in the place of the one of its name, as soon as it is certain that another host takes the operator.
    Give {
        /// The graph.
        deployment: Box<Deployment>,
        /// Which operator goes.
        operator: String,
        /// What goes with it, when the graph before has nothing more to do; dropped if that is replaced otherwise.
        given: oneshot::Sender<Handover>,
        /// Whether the shard has room for its topics.
        done: oneshot::Sender<Result<(), ShardError>>,
    },
    /// Whether what was given is kept.
    Given {
        /// Of which graph.
        graph: String,
        /// If it is not, the graph before goes on.
        is_kept: bool,
        /// Told when that is so.
        done: oneshot::Sender<()>,
    },
    /// A graph is to take nothing in, or to go on.
    HoldUp {
        /// Which graph; one that is not there has nothing to hold.
        graph: String,
        /// Told when all that it has taken is processed and what other edges need of that is there; without it, the graph goes on.
        held: Option<oneshot::Sender<()>>,
    },
    /// An event that a graph has fetched from another edge.
    Carried {
        /// On which link.
        link: Arc<EdgeLink>,
        /// The event.
        event: Box<CarriedEvent>,
    },
    /// A graph is to run no more.
    Withdraw {
        /// Its name.
        graph: String,
        /// Whoever waits for that.
        done: oneshot::Sender<()>,
    },
    /// Deadlines or bounds on losses are guaranteed from now on, or no more: listeners are to be told.
    GuaranteesChanged,
    /// The admission test has said what becomes of what a subscriber asks.
    Asked(Box<Answered>),
    /// Somebody asks whether the shard takes its turns.
    Beat(oneshot::Sender<()>),
    /// Somebody asks for the topics.
    Topics(oneshot::Sender<Vec<TopicState>>),
    /// Somebody asks who listens.
    Streams(oneshot::Sender<Streams>),
    /// What the reliable pair says.
    Pair(News),
    /// The local cloud leads, or has no pair: the registered subscriptions are to be served.
    Serve,
    /// Close the listeners, and write out what is queued.
    Stop {
        /// Who waits for that, and for the push tasks, which end with what they are posting.
        drained: oneshot::Sender<Vec<JoinHandle<()>>>,
    },
    /// End. Nothing is written to the database any more.
    End,
}

/// An inbox, the shard's by default: a list under a lock that is held for a push or a swap, and a wake-up when it was empty.
///
/// Its length is bounded by what may be under way; the shard's: a request per connection, the events of the push queues,
/// the handshakes.
pub struct Inbox<M = Message> {
    messages: Mutex<Vec<M>>,
    waker: mio::Waker,
}

impl<M> std::fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl<M> Inbox<M> {
    /// An inbox that wakes a poll.
    pub fn new(waker: mio::Waker) -> Self {
        Self { messages: Mutex::new(Vec::new()), waker }
    }

    /// Puts a message in and wakes the thread.
    pub fn post(&self, message: M) {
        let was_empty = {
            let mut messages = self.lock();
            messages.push(message);
            messages.len() == 1
        };
        if was_empty {
            self.wake();
        }
    }

    /// Wakes the thread, which finds what there is elsewhere.
    pub fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            // It wakes by itself, the shard once a second, the node every heartbeat.
            tracing::warn!(error = %error, "a thread could not be woken");
        }
    }

    /// Swaps the waiting messages with an empty list.
    pub fn take(&self, into: &mut Vec<M>) {
        into.clear();
        std::mem::swap(&mut *self.lock(), into);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<M>> {
        // A push or a swap leaves the list whole wherever it is interrupted.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
