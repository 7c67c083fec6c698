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
//!                          └─> keeper      who follows keeps there what comes on it; changes of the database go on to the follower, which has a disk
//! ```

mod follower;
mod keeper;
mod link;
mod links;
mod node;
pub(crate) mod primary;
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
    time::{Duration, SystemTime},
};

use bodkin_broker::{
    Backup, Epoch, Instant, Node,
    member::{MemberConfig, MemberConfigError, Mode, Protection},
};
use bodkin_store::replication::Committed;
use mio::Poll;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc;

pub use self::record::RecordError;
use self::{
    keeper::KeeperConfig,
    link::Link,
    node::{PairThread, WAKER},
};
use crate::{
    config::HostConfig,
    inbox::Inbox,
    realtime::Realtime,
    shard::Kept,
    topics::{self, TopicError},
};

/// What the file of each copy of the database begins with.
const COPY_FILE: &str = "bodkin.sqlite.copy-";

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
    /// The topics that it is to keep events of do not fit.
    #[error(transparent)]
    Topic(#[from] TopicError),
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

    /// The epoch, and until when it leads in it.
    pub(crate) fn read(&self) -> (Epoch, Instant) {
        // In the order opposite to `lead`, so that no epoch is taken together with the end of one behind it.
        let until = Instant::from_nanos(self.until_ns.load(SeqCst));
        (self.epoch(), until)
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

/// An event's creation time by that clock.
pub(crate) fn local_of_utc_ns(utc_ns: u64) -> Instant {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let utc_minus_local = since_1970.as_nanos() as i128 - i128::from(boot_time().nanos());
    Instant::from_nanos(u64::try_from(i128::from(utc_ns) - utc_minus_local).unwrap_or(0))
}

/// What other threads have to say to the node's.
enum Message {
    /// The last record is on the disk.
    Persisted,
    /// The local cloud runs on the database.
    Attached(Arc<Inbox>),
    /// It is about to close it.
    Detached,
    /// It has closed it.
    Released,
    /// What the keeper had, and nobody needs the database there any more; `None`: not all of what the leader before had.
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
    /// The process is to end: whoever serves is to stop, and is answered meanwhile.
    End,
    /// Nothing is served any more.
    Stop,
}

/// What the pair has to say to the shard.
pub enum News {
    /// This node leads from now on, in this epoch; until when is in [`Leadership`].
    Leads {
        /// Which one.
        epoch: Epoch,
        /// What it has kept as the Backup of the leader before; `None`: it goes on with what the shard has.
        promoted: Option<Box<Promoted>>,
    },
    /// It leads no more.
    Fenced,
    /// What may be counted on has changed.
    Protection(Protection),
    /// A connection to the Backup.
    Channel {
        /// The connection.
        link: Box<Link>,
        /// Which one of all.
        serial: u64,
    },
    /// The Backup is not connected any more.
    BackupGone,
    /// The database has changed.
    Committed(Committed),
}

impl std::fmt::Debug for News {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Leads { .. } => "Leads",
            Self::Fenced => "Fenced",
            Self::Protection(_) => "Protection",
            Self::Channel { .. } => "Channel",
            Self::BackupGone => "BackupGone",
            Self::Committed(_) => "Committed",
        })
    }
}

/// A subscriber whose acknowledgements count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredSubscriber {
    /// Of which topic.
    pub topic: Box<str>,
    /// Who.
    pub name: Box<str>,
    /// How long it is waited for.
    pub wait: Duration,
}

/// What a Backup has when it is promoted.
#[derive(Debug)]
pub struct Promoted {
    /// The machine, with its streams.
    pub backup: Backup,
    /// The events, by slot.
    pub kept: Vec<Kept>,
    /// Who has to be waited for.
    pub required: Vec<RequiredSubscriber>,
}

/// The node's side that the local cloud holds while it serves.
#[derive(Clone)]
pub struct PairHandle {
    inbox: Arc<Inbox<Message>>,
    leadership: Arc<Leadership>,
    /// How long the right to lead lasts.
    pub lease: Duration,
}

impl std::fmt::Debug for PairHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairHandle").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl PairHandle {
    /// Whether this node leads.
    pub fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// The shard runs that owns what is committed from now on, and the replica channel.
    pub fn attach(&self, shard: Arc<Inbox>) {
        self.inbox.post(Message::Attached(shard));
    }

    /// The shard cannot wait for the Backup: it is out of sync from now on.
    pub(crate) fn backup_out(&self) {
        self.inbox.post(Message::BackupOut);
    }

    /// The Backup has everything that the leader of this epoch has.
    pub(crate) fn backup_in_sync(&self, epoch: Epoch) {
        self.inbox.post(Message::BackupInSync(epoch));
    }

    /// The replica channel has ended.
    pub(crate) fn channel_ended(&self, serial: u64) {
        self.inbox.post(Message::ChannelEnded { serial });
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
    /// Starts the node; it votes, follows or leads from now on. `host` has the topics of which a candidate keeps events; a witness has none.
    pub fn start(config: PairConfig, host: Option<&HostConfig>) -> Result<Self, PairError> {
        let keeper = |host: &HostConfig| -> Result<_, TopicError> {
            let (topics, _) = topics::admit_configured(host)?;
            Ok(KeeperConfig { data: config.data.clone(), topics, topics_max: host.limits.event_types_max })
        };
        let keeper = host.map(keeper).transpose()?;
        let member = MemberConfig::new(config.node, config.mode, config.lease, config.heartbeat, config.drift_ppm)?;
        let (poll, lease) = (Poll::new()?, config.lease);
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let leadership = Arc::new(Leadership::default());
        let (duty, duties) = mpsc::unbounded_channel();
        let thread = PairThread::new(config, keeper, member, poll, inbox.clone(), leadership.clone(), duty)?;
        let address = thread.address();
        let thread = std::thread::Builder::new().name("pair".into()).spawn(|| thread.run())?;
        Ok(Self { handle: PairHandle { inbox, leadership, lease }, duties, thread, address })
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
