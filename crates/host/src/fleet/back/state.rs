//! What is told of events that come from the fleet.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use serde::Serialize;

use super::super::state::lock;
use crate::connecting::Connecting;

/// What is told of the way back: read by anybody, written by the thread that takes.
#[derive(Debug, Default)]
pub struct BackState {
    /// The stream's name.
    pub stream: String,
    /// The consumer's.
    pub consumer: String,
    /// Do events come?
    pub is_connected: AtomicBool,
    /// Whether the first connection is still being made.
    pub connecting: Connecting,
    /// Connections that a server has greeted.
    pub connections: AtomicU64,
    /// Events that were published here.
    pub taken: AtomicU64,
    /// Messages that came again and were known.
    pub repeated: AtomicU64,
    /// Messages for all edges that were none of this one's.
    pub passed: AtomicU64,
    /// Messages that can never be published here.
    pub refused: AtomicU64,
    /// Messages that the stream has let go of before they came, at the most.
    pub lost: AtomicU64,
    /// Messages that are on their way into the event log.
    pub under_way: AtomicU64,
    /// When the oldest of them came, in milliseconds since 1970; 0: none is on its way.
    pub oldest_ms: AtomicU64,
    /// Messages in the stream that have not come, as was heard last; those for others of a subject for all are among them.
    pub waiting: AtomicU64,
    /// When the last message came, in milliseconds since 1970; 0: none has.
    pub heard_ms: AtomicU64,
    /// Everything up to this sequence of the stream is done.
    pub position: AtomicU64,
    server: Mutex<Option<String>>,
    trouble: Mutex<Option<String>>,
    last_refused: Mutex<Option<String>>,
}

/// The same, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackView {
    stream: String,
    consumer: String,
    connected: bool,
    server: Option<String>,
    connections: u64,
    trouble: Option<String>,
    position: u64,
    taken: u64,
    repeated: u64,
    passed_over: u64,
    refused: u64,
    last_refused: Option<String>,
    lost: u64,
    under_way: u64,
    oldest_ms: Option<u64>,
    waiting: u64,
    heard_ms: Option<u64>,
}

fn instant(ms: &AtomicU64) -> Option<u64> {
    Some(ms.load(Relaxed)).filter(|ms| *ms > 0)
}

impl BackState {
    /// Of an edge that has taken nothing.
    pub fn new(stream: String, consumer: String) -> Self {
        Self { stream, consumer, ..Self::default() }
    }

    /// A connection is there, or is not.
    pub fn reaches(&self, server: Option<String>) {
        if server.is_some() {
            self.connections.fetch_add(1, Relaxed);
        } else {
            self.is_connected.store(false, Relaxed);
        }
        *lock(&self.server) = server;
    }

    /// Events come from now on.
    pub fn is_ready(&self) {
        *lock(&self.trouble) = None;
        self.is_connected.store(true, Relaxed);
        self.connecting.connected();
    }

    /// Why nothing comes.
    pub fn fails(&self, why: String) {
        self.is_connected.store(false, Relaxed);
        *lock(&self.trouble) = Some(why);
    }

    /// Returns why nothing comes, or what a server has refused.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// What a server has refused, while all else goes on.
    pub fn refuses(&self, why: String) {
        *lock(&self.trouble) = Some(why);
    }

    /// A message can never be published here.
    pub fn refused(&self, sequence: u64, why: &str) {
        self.refused.fetch_add(1, Relaxed);
        *lock(&self.last_refused) = Some(format!("message {sequence}: {why}"));
    }

    /// As it is told.
    pub fn view(&self) -> BackView {
        BackView {
            stream: self.stream.clone(),
            consumer: self.consumer.clone(),
            connected: self.is_connected.load(Relaxed),
            server: lock(&self.server).clone(),
            connections: self.connections.load(Relaxed),
            trouble: lock(&self.trouble).clone(),
            position: self.position.load(Relaxed),
            taken: self.taken.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            passed_over: self.passed.load(Relaxed),
            refused: self.refused.load(Relaxed),
            last_refused: lock(&self.last_refused).clone(),
            lost: self.lost.load(Relaxed),
            under_way: self.under_way.load(Relaxed),
            oldest_ms: instant(&self.oldest_ms),
            waiting: self.waiting.load(Relaxed),
            heard_ms: instant(&self.heard_ms),
        }
    }
}
