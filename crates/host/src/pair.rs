//! One node of the reliable pair: Primary, Backup or witness.
//!
//! A thread above the shards ([`node`]) owns the connections to the other nodes and the machine that decides who leads
//! ([`bodkin_broker::member`]). While this node leads, every commit of its database goes through it before it is answered; while another one
//! leads, it repeats that one's commits. What holds and why: `docs/design/pair.md`.
//!
//! ```text
//! links ──> node: Member ──┬─> record      the vote and the epoch, synced, on a thread of its own
//!                          ├─> Leadership  read by every request (host::gate)
//! store's writer ──────────┼─> leader      copies and commits to the Backup, answers behind its acknowledgement
//!                          └─> follower    repeats the leader's, on a thread of its own
//! ```

mod follower;
mod leader;
mod link;
mod links;
mod node;
mod record;

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::JoinHandle,
    time::Duration,
};

use bodkin_broker::{
    Epoch, Instant, Node,
    member::{MemberConfig, MemberConfigError, Mode},
};
use bodkin_store::{
    Store,
    replication::{Committed, Outlet},
};
use mio::Poll;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc;

use self::node::{PairThread, WAKER};
pub use self::record::RecordError;
use crate::{inbox::Inbox, realtime::Realtime};

/// What a node of the pair is told.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// Which one it is.
    pub node: Node,
    /// Where it keeps its record, and its database.
    pub data: PathBuf,
    /// Where it listens for nodes in front of it in the order first, second, witness.
    pub listen: Option<SocketAddr>,
    /// Where the nodes behind it in that order listen: it connects to them.
    pub others: Vec<(Node, SocketAddr)>,
    /// Who decides who leads.
    pub mode: Mode,
    /// How long the right to lead lasts.
    pub lease: Duration,
    /// Between two renewals of it.
    pub heartbeat: Duration,
    /// How wrong clocks may run, in millionths.
    pub drift_ppm: u32,
    /// Whether an operator wants it to lead although it may lack what was answered.
    pub is_forced: bool,
    /// How its thread is scheduled.
    pub realtime: Arc<Realtime>,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The times make no pair.
    #[error(transparent)]
    Times(#[from] MemberConfigError),
    /// What it has promised is not known.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The other nodes cannot come in.
    #[error("cannot listen on {address} for the pair's other nodes: {error}. Stop what uses the port, or name another one.")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// A thread or poll could not be made.
    #[error("the system refuses what the pair's node needs: {0}")]
    System(#[from] io::Error),
}

/// What the process has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Serve nothing: another node leads, or nobody knows yet.
    Follow,
    /// Serve the local cloud.
    Lead,
    /// End.
    End,
}

/// Whether this node leads, for everybody who has to ask.
#[derive(Debug, Default)]
pub struct Leadership {
    until_ns: AtomicU64,
    epoch: AtomicU64,
    is_protected: AtomicBool,
}

impl Leadership {
    /// Whether it may accept, dispatch and acknowledge at this instant.
    pub fn leads(&self) -> bool {
        boot_time().nanos() < self.until_ns.load(SeqCst)
    }

    /// The epoch that it leads in, or has led in last.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(SeqCst))
    }

    /// Whether the Backup has everything that was answered, and will.
    pub fn is_protected(&self) -> bool {
        self.leads() && self.is_protected.load(SeqCst)
    }

    fn protect(&self, is_protected: bool) {
        self.is_protected.store(is_protected, SeqCst);
    }

    fn lead(&self, epoch: Epoch, until: Instant) {
        self.epoch.store(epoch.0, SeqCst);
        self.until_ns.store(until.nanos(), SeqCst);
    }

    fn fence(&self) {
        self.until_ns.store(0, SeqCst);
        self.protect(false);
    }
}

/// The host's clock that counts pauses: a machine that was stopped does not believe its lease.
pub fn boot_time() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the system has a clock that counts pauses");
    Instant::from_nanos(Duration::from(time).as_nanos() as u64)
}

/// What other threads have to say to the node's.
enum Message {
    /// The last record is on the disk.
    Persisted,
    /// The database has changed.
    Committed(Committed),
    /// The local cloud runs on the database.
    Attached(Store),
    /// It is about to close it.
    Detached,
    /// It has closed it.
    Released,
    /// The follower has something to say.
    Follower(follower::Report),
    /// The process is to end: whoever serves is to stop, and is answered meanwhile.
    End,
    /// Nothing is served any more.
    Stop,
}

/// The node's side that the local cloud holds while it serves.
#[derive(Clone)]
pub struct PairHandle {
    inbox: Arc<Inbox<Message>>,
    leadership: Arc<Leadership>,
}

impl std::fmt::Debug for PairHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairHandle").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl PairHandle {
    /// Where commits go before they are answered.
    pub fn outlet(&self) -> Outlet {
        let inbox = self.inbox.clone();
        Box::new(move |committed| inbox.post(Message::Committed(committed)))
    }

    /// Whether this node leads.
    pub fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// The database is open: what is committed is the Backup's to repeat.
    pub fn attach(&self, store: Store) {
        self.inbox.post(Message::Attached(store));
    }

    /// The database is about to be closed.
    pub fn detach(&self) {
        self.inbox.post(Message::Detached);
    }

    /// The database is closed: the follower may have it.
    pub fn release(&self) {
        self.inbox.post(Message::Released);
    }

    /// The process is to end.
    pub fn end(&self) {
        self.inbox.post(Message::End);
    }
}

/// A running node.
pub struct PairNode {
    handle: PairHandle,
    duties: mpsc::UnboundedReceiver<Duty>,
    thread: JoinHandle<io::Result<()>>,
    /// Where it listens.
    pub address: Option<SocketAddr>,
}

impl PairNode {
    /// Starts the node; it votes, follows or leads from now on.
    pub fn start(config: PairConfig) -> Result<Self, PairError> {
        let member = MemberConfig::new(config.node, config.mode, config.lease, config.heartbeat, config.drift_ppm)?;
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let leadership = Arc::new(Leadership::default());
        let (duty, duties) = mpsc::unbounded_channel();
        let thread = PairThread::new(config, member, poll, inbox.clone(), leadership.clone(), duty)?;
        let address = thread.address();
        let thread = std::thread::Builder::new().name("pair".into()).spawn(|| thread.run())?;
        Ok(Self { handle: PairHandle { inbox, leadership }, duties, thread, address })
    }

    /// For the local cloud.
    pub fn handle(&self) -> &PairHandle {
        &self.handle
    }

    /// What the process has to do next. Each [`Duty::Lead`] is followed by one [`PairHandle::release`].
    pub async fn next_duty(&mut self) -> Duty {
        self.duties.recv().await.unwrap_or(Duty::End)
    }

    /// Ends it: other nodes hear nothing of it any more.
    pub fn stop(self) {
        self.handle.inbox.post(Message::Stop);
        match self.thread.join() {
            Ok(Ok(())) => {}
            ended => tracing::error!(?ended, "the pair's node ended badly"),
        }
    }
}
