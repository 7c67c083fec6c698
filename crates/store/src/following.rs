//! A store that follows: another node leads, and this one repeats its commits until it leads itself.
//!
//! ```text
//! what the leader sends ──> Following ── queue ──> thread "database": Replica ──> snapshot, Report
//!                               └─ promote ──────> the same thread goes on as the Writer
//! ```

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, Release},
    },
    mpsc::{Receiver, Sender, channel},
};

use bodkin_broker::wire::Position;
use rusqlite::Connection;

pub use crate::replica::TopicChange;
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
    /// The copy is on the disk.
    Copied {
        /// In which attempt.
        session: u64,
        /// Where the copy ends.
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
    End(Position),
    Operation(Position, Vec<u8>),
    Lead(Outlet),
}

impl Order {
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Part(bytes) | Self::Operation(_, bytes) => bytes.len(),
            Self::Begin { .. } | Self::End(_) | Self::Lead(_) => 0,
        };
        own + size_of::<Self>()
    }
}

/// The end that takes what the leader sends; nothing here waits. Drop it in front of [`crate::Opened::close`], which waits for it.
pub struct Following {
    orders: Sender<Order>,
    queued_bytes: Arc<AtomicUsize>,
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

    /// The copy is whole.
    pub fn end(&mut self, position: Position) -> Result<(), QueueFull> {
        self.order(Order::End(position))
    }

    /// An operation behind it, as [`crate::replication::Group::operations`] has it.
    pub fn operation(&mut self, position: Position, operation: Vec<u8>) -> Result<(), QueueFull> {
        self.order(Order::Operation(position, operation))
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
    report: Reporter,
    session: u64,
    /// What comes is dropped until the next copy begins.
    is_failed: bool,
}

/// Both ends; `leads` is set by the promotion.
pub(crate) fn ends(replica: Replica, report: Reporter, leads: Arc<AtomicBool>) -> (Following, Follower) {
    let (sender, orders) = channel();
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    let following = Following { orders: sender, queued_bytes: queued_bytes.clone(), leads, is_behind: false };
    (following, Follower { replica, orders, queued_bytes, report, session: 0, is_failed: true })
}

impl Follower {
    /// Runs until this node leads, and gives what a writer works with; `None` when it is closed before.
    pub fn run(mut self) -> Option<(Connection, Outlet)> {
        let mut next = self.taken(self.orders.recv().ok());
        while let Some(order) = next.take() {
            let done = match order {
                Order::Lead(outlet) => return Some((self.replica.into_connection(), outlet)),
                Order::Operation(position, operation) => self.repeat(position, operation, &mut next),
                Order::Begin { session } => {
                    (self.session, self.is_failed) = (session, false);
                    self.replica.begin_copy()
                }
                _ if self.is_failed => Ok(()),
                Order::Part(part) => self.replica.part(&part),
                Order::End(position) => self.end(position),
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

    fn end(&mut self, position: Position) -> Result<(), ReplicaError> {
        self.replica.end_copy()?;
        let topics = self.replica.declarations()?;
        (self.report)(Report::Copied { session: self.session, position, topics });
        Ok(())
    }

    /// Repeats an operation, in one commit with those that have come meanwhile. `next` becomes the order that is none of them.
    fn repeat(&mut self, mut position: Position, operation: Vec<u8>, next: &mut Option<Order>) -> Result<(), ReplicaError> {
        let mut operations = vec![operation];
        while operations.len() < GROUP_OPERATIONS_MAX {
            match self.taken(self.orders.try_recv().ok()) {
                Some(Order::Operation(at, operation)) => {
                    position = at;
                    operations.push(operation);
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
        let topics = self.replica.apply(operations.iter().map(Vec::as_slice))?;
        (self.report)(Report::Repeated { session: self.session, position, topics });
        Ok(())
    }
}
