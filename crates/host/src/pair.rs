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
mod keeper;
mod leadership;
mod link;
mod links;
mod node;
pub(crate) mod primary;
mod record;
mod trust;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use bodkin_broker::{
    Backup, Epoch, Instant, Node, Terms, TopicId,
    member::{MemberConfigError, Mode, Protection},
};
use bodkin_store::{
    Store,
    event_log::{Position, RecordName},
    following::{Following, Reporter},
    replication::Committed,
};
use mio::Poll;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::{mpsc, oneshot};

pub use self::record::RecordError;
pub use self::{
    keeper::Ticket,
    leadership::Leadership,
    links::PROTOCOL,
    node::{HandOverError, HandedOver},
};
use self::{
    keeper::{Keeper, KeeperMessage},
    link::Link,
    node::{PairThread, WAKER},
    primary::Piece,
    trust::SharedTrust,
};
use crate::{
    inbox::Inbox,
    realtime::Realtime,
    security::{SecurityConfig, SecurityError},
    shard::{Kept, boot_and_system_time},
    topics::{RealTimeTopic, RealTimeTopics, wish::Asker},
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
    Given(Box<Given>),
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
    /// The process is to end: whoever serves is to stop, and is answered meanwhile.
    End,
    /// Nothing is served any more.
    Stop,
}

/// What the pair has to say to the shard.
pub enum News {
    /// What this node has kept as a Backup: it is about to lead, and goes on with that.
    Given(Box<Given>),
    /// This node leads from now on, in this epoch; until when is in [`Leadership`].
    Leads {
        /// Which one.
        epoch: Epoch,
    },
    /// It leads no more.
    Fenced,
    /// It is about to hand the lead over: who waits is to be answered, and nobody more.
    HandOver,
    /// That is over, or given up.
    HandOverEnds,
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
    /// This node follows: what its leader has.
    Prepare(Vec<Preparation>),
    /// This node follows: records of the leader's for the event log.
    Records {
        /// As [`bodkin_store::event_log::batch`] has them.
        batch: Box<[u8]>,
        /// By which the keeper is told when they are on the disk.
        ticket: Ticket,
    },
    /// This node follows: the leader is to be told what the event log has.
    NameRecords {
        /// On which connection.
        serial: u64,
    },
    /// This node leads: where its event log parts from the Backup's.
    Searched {
        /// Of which connection.
        serial: u64,
        /// The first record that the Backup lacks.
        first: Option<Position>,
    },
    /// This node leads: a piece of its event log that the Backup lacks.
    Lacking {
        /// On which connection it is to be sent.
        serial: u64,
        /// What was read.
        piece: Piece,
    },
}

impl std::fmt::Debug for News {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Given",
            Self::Leads { .. } => "Leads",
            Self::Fenced => "Fenced",
            Self::HandOver => "HandOver",
            Self::HandOverEnds => "HandOverEnds",
            Self::Protection(_) => "Protection",
            Self::Channel { .. } => "Channel",
            Self::BackupGone => "BackupGone",
            Self::Committed(_) => "Committed",
            Self::Prepare(_) => "Prepare",
            Self::Records { .. } => "Records",
            Self::NameRecords { .. } => "NameRecords",
            Self::Searched { .. } => "Searched",
            Self::Lacking { .. } => "Lacking",
        })
    }
}

/// What a shard that follows is told of its leader's topics and subscribers, so that it has them when it leads.
#[derive(Clone, Debug)]
pub enum Preparation {
    /// A real-time topic, or what it promises from now on.
    Topic {
        /// The topic.
        topic: Arc<RealTimeTopic>,
        /// Its terms.
        terms: Terms,
        /// Its number in the Backup's machine.
        in_backup: TopicId,
    },
    /// The leader waits for a subscriber. One of a topic that is not here yet is told again behind it.
    Required(RequiredSubscriber),
    /// It does not any more.
    NotRequired {
        /// Of which topic.
        topic: Box<str>,
        /// Who.
        name: Box<str>,
    },
    /// For whom it waits is told anew, or not known.
    NobodyRequired,
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
    /// Topics of which subscribers asked more than was declared, and under which name that is in force here.
    pub asked: Vec<(Box<str>, Asker)>,
    /// The checkpoints of graphs, by name.
    pub graphs: BTreeMap<Box<str>, Vec<u8>>,
}

/// What the keeper gives away.
#[derive(Debug)]
pub struct Given {
    /// `None`: it has not all of what the leader before had, and so nothing.
    pub promoted: Option<Promoted>,
    /// Where the event log has to go on: the database names places in that of the leader before.
    pub log_from: Position,
}

/// What a local cloud that follows has for the keeper.
pub(crate) struct Follows {
    /// Repeats the leader's changes.
    pub following: Following,
    /// What they make.
    pub store: Store,
    /// The topics of which events are kept.
    pub topics: Arc<RealTimeTopics>,
    /// How many there may be.
    pub topics_max: usize,
    /// Where commits go once this node leads.
    pub shard: Arc<Inbox>,
}

/// The node's side that the local cloud holds while it serves.
#[derive(Clone)]
pub struct PairHandle {
    inbox: Arc<Inbox<Message>>,
    leadership: Arc<Leadership>,
    /// A witness has none.
    keeper: Option<Arc<Inbox<KeeperMessage>>>,
    /// In secure mode.
    trust: Option<SharedTrust>,
    /// How long the right to lead lasts.
    pub lease: Duration,
}

impl std::fmt::Debug for PairHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairHandle").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl PairHandle {
    /// Of a node that hears nothing.
    #[cfg(test)]
    pub(crate) fn without_node(leadership: Arc<Leadership>, lease: Duration) -> Self {
        let waker = mio::Waker::new(Poll::new().expect("a poll").registry(), WAKER).expect("a waker");
        Self { inbox: Arc::new(Inbox::new(waker)), leadership, keeper: None, trust: None, lease }
    }

    /// Whether this node leads.
    pub fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// Who tells the keeper what became of the leader's changes.
    pub(crate) fn reporter(&self) -> Reporter {
        let keeper = self.keeper.clone().expect("a candidate has a keeper");
        Box::new(move |report| keeper.post(KeeperMessage::Report(report)))
    }

    /// A local cloud runs, and follows until this node leads.
    pub(crate) fn attach(&self, follows: Follows) {
        let shard = follows.shard.clone();
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Attached(Box::new(follows)));
        self.inbox.post(Message::Attached(shard));
    }

    /// The leader's records are on the disk, or why they are not.
    pub(crate) fn recorded(&self, ticket: Ticket, result: Result<(), String>) {
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Recorded { ticket, result });
    }

    /// What the event log has, for the leader at the other end of a connection.
    pub(crate) fn logged(&self, serial: u64, newest: Vec<RecordName>) {
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Logged { serial, newest });
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

    /// The local cloud ends, and its database is about to be closed.
    pub fn detach(&self) {
        self.inbox.post(Message::Detached);
        self.keeper.iter().for_each(|keeper| keeper.post(KeeperMessage::Detached));
    }

    /// Whether the nodes prove who they are.
    pub fn is_secure(&self) -> bool {
        self.trust.is_some()
    }

    /// Certificates and revocations of the pair's nodes are read again, on a thread of their own. Insecure mode has none.
    pub fn reload(&self) {
        if let Some(Err(error)) = self.trust.as_ref().map(SharedTrust::reload) {
            tracing::error!(%error, "the certificates of the pair's nodes are not read any more");
        }
    }

    /// Has the other candidate lead in place of this node. It is told when that one leads, or why it does not; meanwhile requests are refused.
    pub async fn hand_over(&self) -> Result<HandedOver, HandOverError> {
        let (told, done) = oneshot::channel();
        self.inbox.post(Message::HandOver(told));
        // A node that ends answers nobody.
        done.await.unwrap_or(Err(HandOverError::Overtaken))
    }

    /// The shard has answered everything that waited, and the Backup has it.
    pub(crate) fn drained(&self) {
        self.inbox.post(Message::Drained);
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
        let trust = config.security.clone().map(|security| SharedTrust::open(config.node, security)).transpose()?;
        let (poll, lease) = (Poll::new()?, config.lease);
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let leadership = Arc::new(Leadership::default());
        let (duty, duties) = mpsc::unbounded_channel();
        let keeper = config.node.partner().map(|_| Keeper::start(inbox.clone(), config.realtime.clone())).transpose()?;
        let keeper_inbox = keeper.as_ref().map(|keeper| keeper.inbox().clone());
        let thread = PairThread::new(config, trust.clone(), keeper, poll, inbox.clone(), leadership.clone(), duty)?;
        let address = thread.address();
        let thread = std::thread::Builder::new().name("pair".into()).spawn(|| thread.run())?;
        Ok(Self { handle: PairHandle { inbox, leadership, keeper: keeper_inbox, trust, lease }, duties, thread, address })
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
