//! One node of the reliable pair: Primary, Backup or witness.
//!
//! A thread above the shards ([`node`]) owns the connections to the other nodes and the machine that decides who leads
//! ([`bodkin_broker::member`]). While this node leads, every commit of its database goes through it before it is answered; while another one
//! leads, it repeats that one's commits. What holds and why: `docs/design/pair.md`.
//!
//! ```text
//! links ──> node: Member ──┬─> record      the vote and the epoch, synced, on a thread of its own
//!                          ├─> Leadership  read by every request (host::gate) and by the shard
//!                          ├─> shard       who leads owns the replica channel there ([`primary`]): changes and events to the Backup, answers behind
//!                          │               its acknowledgement
//!                          └─> keeper      who follows keeps there what comes on it; changes of the database go on to the store
//! ```

mod beat;
mod handle;
mod identity;
mod keeper;
mod leadership;
pub(crate) mod link;
mod links;
mod news;
mod node;
pub(crate) mod primary;
mod record;
mod room;
mod troubles;
mod trust;

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use bodkin_arrowhead::pinned::PAIR_NODES;
use bodkin_broker::{
    Epoch, Instant, Node,
    member::{MemberConfigError, Mode},
};
use bodkin_store::following::Following;
use mio::Poll;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::{mpsc, oneshot};

pub use self::{
    handle::PairHandle,
    identity::topics_digest,
    keeper::Ticket,
    leadership::{Leadership, OFFERED_BYTES_MAX},
    link::Fault,
    links::{PROTOCOL, PROTOCOL_MIN},
    news::{News, Preparation, Promoted, RequiredSubscriber},
    node::{HandOverError, HandedOver},
    record::RecordError,
    troubles::{Trouble, Troubles},
};
use self::{
    keeper::Keeper,
    node::{PairThread, WAKER},
    trust::SharedTrust,
};
use crate::{
    inbox::Inbox,
    realtime::Realtime,
    security::{SecurityConfig, SecurityError},
    shard::boot_and_system_time,
    topics::RealTimeTopics,
};

/// What the file of each copy of the database begins with.
const COPY_FILE: &str = "bodkin.sqlite.copy-";

/// Maximum `event_bytes_max` of a node of a pair. As JSON an octet takes up to six, and a frame of the replica channel, 1 MiB, holds the whole event.
pub const EVENT_BYTES_MAX: usize = 128 * 1024;

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
    /// Where its certificate is and whom it believes; `None`: insecure mode, in which the nodes prove nothing.
    pub security: Option<SecurityConfig>,
    /// Who decides who leads.
    pub mode: Mode,
    /// How long the right to lead lasts.
    pub lease: Duration,
    /// Between two renewals of it.
    pub heartbeat: Duration,
    /// How wrong clocks may run, in millionths.
    pub drift_ppm: u32,
    /// What a fail-over may take beyond lease and heartbeat; compared with the other nodes.
    pub detect_jitter: Duration,
    /// What clients take to turn to the other node; compared with the other nodes.
    pub redirect: Duration,
    /// [`topics_digest`] of the configured topics, compared with the other candidate; `None`: a witness.
    pub topics: Option<u64>,
    /// The newest protocol that it speaks with the others: [`PROTOCOL`], of which they may know an older one only.
    pub protocol: u16,
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
    /// Certificates cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// There are none of the Primary's cloud.
    #[error(
        "{place} has no certificates of the Primary's cloud: copy that node's trust directory there without root.key, or for a witness its cloud.crt, \
         revoked.crl and systems/{name}.crt and .key, which bodkin cert issue --system {name} makes"
    )]
    NoCertificates {
        /// Where.
        place: PathBuf,
        /// The system that the node is.
        name: &'static str,
    },
    /// A thread or poll could not be made.
    #[error("the system refuses what the pair's node needs: {0}")]
    System(#[from] io::Error),
}

/// What the process has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Another node leads: the local cloud that has led ends, and one that follows begins.
    Follow,
    /// The local cloud leads.
    Lead,
    /// End.
    End,
}

/// The host's clock that counts pauses: a machine that was stopped does not believe its lease.
pub fn boot_time() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the system has a clock that counts pauses");
    Instant::from_nanos(Duration::from(time).as_nanos() as u64)
}

/// By how much UTC is ahead of that clock, in nanoseconds.
pub(crate) fn utc_ahead_ns() -> i128 {
    let (boot, system) = boot_and_system_time();
    let since_1970 = system.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since_1970.as_nanos() as i128 - i128::from(boot.nanos())
}

/// An event's creation time by that clock.
pub(crate) fn local_of_utc_ns(utc_ns: u64, utc_ahead_ns: i128) -> Instant {
    Instant::from_nanos(u64::try_from(i128::from(utc_ns) - utc_ahead_ns).unwrap_or(0))
}

/// What other threads have to say to the node's.
enum Message {
    /// The last record is on the disk.
    Persisted,
    /// The local cloud has begun to follow: how its shard is spoken to.
    Attached(Arc<Inbox>),
    /// It ends.
    Detached,
    /// The keeper follows no more: its database is the local cloud's to write.
    Given(Option<Box<Promoted>>),
    /// The keeper has everything that the leader of this epoch has, or nothing ([`Epoch::NONE`]).
    Warm(Epoch),
    /// The shard cannot wait for the Backup.
    BackupOut,
    /// The shard says that the Backup has everything, in this epoch.
    BackupInSync(Epoch),
    /// The replica channel is over that was handed over with this number.
    ChannelEnded {
        /// Which one.
        serial: u64,
    },
    /// An operator wants the other candidate to lead; what came of it is told.
    HandOver(oneshot::Sender<Result<HandedOver, HandOverError>>),
    /// The shard has answered everything that waited, and the Backup has it.
    Drained,
    /// Certificates of the nodes may not count any more.
    TrustChanged,
    /// Lines of this standby's certificate ledger, for the leader.
    Lines(Vec<u8>),
    /// The process is to end: whoever serves is to stop, and is answered meanwhile.
    End,
    /// Nothing is served any more.
    Stop,
}

/// What a local cloud that follows has for the keeper.
pub(crate) struct Follows {
    /// Repeats the leader's changes.
    pub following: Following,
    /// The topics of which events are kept.
    pub topics: Arc<RealTimeTopics>,
    /// How many there may be.
    pub topics_max: usize,
    /// Where commits go once this node leads.
    pub shard: Arc<Inbox>,
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
        let leadership = Arc::new(Leadership::default());
        let (poll, lease, name) = (Poll::new()?, config.lease, PAIR_NODES[config.node as usize]);
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let open = |security| SharedTrust::open(config.node, security, leadership.clone(), inbox.clone());
        let trust = config.security.clone().map(open).transpose()?;
        let (duty, duties) = mpsc::unbounded_channel();
        let keeper =
            config.node.partner().map(|_| Keeper::start(inbox.clone(), leadership.clone(), config.realtime.clone())).transpose()?;
        let keeper_inbox = keeper.as_ref().map(|keeper| keeper.inbox().clone());
        let thread = PairThread::new(config, trust.clone(), keeper, poll, inbox.clone(), leadership.clone(), duty)?;
        let address = thread.address();
        let thread = std::thread::Builder::new().name("pair".into()).spawn(|| thread.run())?;
        Ok(Self { handle: PairHandle { inbox, leadership, keeper: keeper_inbox, trust, lease, name }, duties, thread, address })
    }

    /// For the local cloud.
    pub fn handle(&self) -> &PairHandle {
        &self.handle
    }

    /// What the process has to do next. Each local cloud leads once, if at all.
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
