//! A store that follows: another node leads, and this one repeats its commits until it leads itself.
//!
//! ```text
//! what the leader sends ──> Following ── queue ──> thread "database": Replica ──> snapshot, Report
//!                               └─ promote ──────> the same thread goes on as the Writer
//! ```

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, Release},
    },
    mpsc::{Receiver, Sender, channel},
};

use bodkin_broker::wire::Position;
use rusqlite::Connection;

pub use crate::{followed::Followed, replica::TopicChange};
use crate::{
    open,
    replica::{Replica, ReplicaError},
    replication::Outlet,
    writer::GROUP_OPERATIONS_MAX,
};

/// Bytes that may wait for the disk, the orders around them counted; more are refused.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// What becomes of what the leader has sent. Called on the store's thread, so it must not wait.
pub type Reporter = Box<dyn FnMut(Report) + Send>;

/// What has become of what the leader has sent. The snapshot shows it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The copy is on the disk, or what is there counts as one.
    Copied {
        /// In which attempt.
        session: u64,
        /// Where it ends.
        position: Position,
        /// The declarations of all topics, in JSON.
        topics: Vec<String>,
    },
    /// Operations are on the disk.
    Repeated {
        /// In which attempt.
        session: u64,
        /// The last one.
        position: Position,
        /// The topics that they have declared or forgotten, in order.
        topics: Vec<TopicChange>,
        /// True if the operations have added lines of certificate ledgers.
        has_lines: bool,
    },
    /// It cannot go on; what comes is dropped until the next copy begins.
    Failed {
        /// In which attempt.
        session: u64,
        /// Why.
        why: String,
    },
}

/// More than [`QUEUE_BYTES_MAX`] wait for the disk. What comes is refused until the next copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {QUEUE_BYTES_MAX} bytes of the other node's changes wait for the disk. A new copy is needed.")]
pub struct QueueFull;

enum Order {
    Begin { session: u64 },
    Part(Vec<u8>),
    End(Position, Option<Followed>),
    Resume { session: u64, position: Position },
    Operation(Position, Option<Followed>, Vec<u8>),
    Lead(Outlet),
}

impl Order {
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Part(bytes) | Self::Operation(_, _, bytes) => bytes.len(),
            Self::Begin { .. } | Self::End(..) | Self::Resume { .. } | Self::Lead(_) => 0,
        };
        own + size_of::<Self>()
    }
}

/// The end that takes what the leader sends; nothing here waits. Drop it in front of [`crate::Opened::close`], which waits for it.
pub struct Following {
    orders: Sender<Order>,
    queued_bytes: Arc<AtomicUsize>,
    followed: Arc<Mutex<Option<Followed>>>,
    /// What every handle of the store asks in front of a write.
    leads: Arc<AtomicBool>,
    /// Whether an order was refused, so that those behind it belong to nothing.
    is_behind: bool,
}

impl Following {
    /// A copy begins: `session` names the attempt, and what came in others is over.
    pub fn begin(&mut self, session: u64) {
        self.is_behind = false;
        self.send(Order::Begin { session });
    }

    /// The next piece of the copy.
    pub fn part(&mut self, part: Vec<u8>) -> Result<(), QueueFull> {
        self.order(Order::Part(part))
    }

    /// The copy is whole; it has the leader's operations up to this one, if their numbers are known.
    pub fn end(&mut self, position: Position, followed: Option<Followed>) -> Result<(), QueueFull> {
        self.order(Order::End(position, followed))
    }

    /// No copy comes: what the database has counts, and operations follow behind what [`Self::followed`] says, or further in front.
    pub fn resume(&mut self, session: u64, position: Position) {
        self.is_behind = false;
        self.send(Order::Resume { session, position });
    }

    /// How far the database has what its leader has committed, if it knows.
    pub fn followed(&self) -> Option<Followed> {
        *lock(&self.followed)
    }

    /// An operation behind it, as [`crate::replication::Group::operations`] has it, and which one of its leader's it is. One that was repeated before is passed over.
    pub fn operation(&mut self, position: Position, followed: Option<Followed>, operation: Vec<u8>) -> Result<(), QueueFull> {
        self.order(Order::Operation(position, followed, operation))
    }

    /// This node leads: what was ordered is repeated, then the same thread writes, and `outlet` takes its commits. Writes are taken when this
    /// returns; nothing is opened or read for it. A copy that was under way is dropped.
    pub fn promote(self, outlet: Outlet) {
        self.send(Order::Lead(outlet));
        self.leads.store(true, Release);
    }

    fn order(&mut self, order: Order) -> Result<(), QueueFull> {
        self.is_behind |= self.queued_bytes.load(Relaxed) + order.bytes() > QUEUE_BYTES_MAX;
        if self.is_behind {
            return Err(QueueFull);
        }
        self.send(order);
        Ok(())
    }

    fn send(&self, order: Order) {
        self.queued_bytes.fetch_add(order.bytes(), Relaxed);
        self.orders.send(order).expect("the store's thread lives as long as who gives it orders");
    }
}

/// The end that repeats, on the store's thread.
pub(crate) struct Follower {
    replica: Replica,
    orders: Receiver<Order>,
    queued_bytes: Arc<AtomicUsize>,
    followed: Arc<Mutex<Option<Followed>>>,
    report: Reporter,
    session: u64,
    /// What comes is dropped until the next copy begins.
    is_failed: bool,
}

/// Both ends; `leads` is set by the promotion.
pub(crate) fn ends(replica: Replica, report: Reporter, leads: Arc<AtomicBool>) -> (Following, Follower) {
    let (sender, orders) = channel();
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    let followed = Arc::new(Mutex::new(replica.followed()));
    let following = Following { orders: sender, queued_bytes: queued_bytes.clone(), followed: followed.clone(), leads, is_behind: false };
    (following, Follower { replica, orders, queued_bytes, followed, report, session: 0, is_failed: true })
}

impl Follower {
    /// Runs until this node leads, and gives what a writer works with; `None` when it is closed before.
    pub fn run(mut self) -> Option<(Connection, Outlet)> {
        let mut next = self.taken(self.orders.recv().ok());
        while let Some(order) = next.take() {
            let done = match order {
                Order::Lead(outlet) => return Some((self.replica.into_connection(), outlet)),
                Order::Operation(position, followed, operation) => self.repeat(position, (followed, operation), &mut next),
                Order::Resume { session, position } => {
                    (self.session, self.is_failed) = (session, false);
                    self.replica.resume();
                    self.copied(position)
                }
                Order::Begin { session } => {
                    (self.session, self.is_failed) = (session, false);
                    self.replica.begin_copy()
                }
                _ if self.is_failed => Ok(()),
                Order::Part(part) => self.replica.part(&part),
                Order::End(position, followed) => self.replica.end_copy(followed).and_then(|()| self.copied(position)),
            };
            if let Err(error) = done {
                self.is_failed = true;
                (self.report)(Report::Failed { session: self.session, why: error.to_string() });
            }
            next = next.or_else(|| self.taken(self.orders.recv().ok()));
        }
        open::fold(&self.replica.into_connection());
        None
    }

    /// An order that is out of the queue.
    fn taken(&self, order: Option<Order>) -> Option<Order> {
        if let Some(order) = &order {
            self.queued_bytes.fetch_sub(order.bytes(), Relaxed);
        }
        order
    }

    /// In front of the report, for who hears it may ask.
    fn note_followed(&self) {
        *lock(&self.followed) = self.replica.followed();
    }

    fn copied(&mut self, position: Position) -> Result<(), ReplicaError> {
        let topics = self.replica.declarations()?;
        self.note_followed();
        (self.report)(Report::Copied { session: self.session, position, topics });
        Ok(())
    }

    /// Repeats an operation, in one commit with those that have come meanwhile. `next` becomes the order that is none of them.
    fn repeat(
        &mut self,
        mut position: Position,
        operation: (Option<Followed>, Vec<u8>),
        next: &mut Option<Order>,
    ) -> Result<(), ReplicaError> {
        let mut operations = vec![operation];
        while operations.len() < GROUP_OPERATIONS_MAX {
            match self.taken(self.orders.try_recv().ok()) {
                Some(Order::Operation(at, followed, operation)) => {
                    position = at;
                    operations.push((followed, operation));
                }
                other => {
                    *next = other;
                    break;
                }
            }
        }
        if self.is_failed {
            return Ok(());
        }
        let topics = self.replica.apply(operations.iter().map(|(followed, operation)| (*followed, operation.as_slice())))?;
        self.note_followed();
        let has_lines = self.replica.has_new_lines()?;
        (self.report)(Report::Repeated { session: self.session, position, topics, has_lines });
        Ok(())
    }
}

fn lock(followed: &Mutex<Option<Followed>>) -> MutexGuard<'_, Option<Followed>> {
    // An assignment leaves it whole wherever it is interrupted.
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}
