//! Repeats the leader's commits, on a thread of its own: the disk must not delay votes.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
};

use bodkin_broker::wire::{LINK_FRAME_BYTES_MAX, Position};
use bodkin_store::replica::{Replica, ReplicaError};

use super::keeper::KeeperMessage;
use crate::inbox::Inbox;

/// Bytes that may wait for the disk; a connection that brings more is closed, and the next one begins with a new copy.
pub const QUEUE_BYTES_MAX: usize = 64 * LINK_FRAME_BYTES_MAX;

/// What the leader sends.
pub enum Order {
    /// A copy begins; what has come before in other sessions is over.
    Begin {
        /// Which attempt, so that what is reported of an older one is not believed.
        session: u64,
    },
    /// A piece of the copy.
    Part(Vec<u8>),
    /// The copy is whole.
    End(Position),
    /// An operation behind it.
    Operation(Position, Vec<u8>),
    /// The database is needed by this process.
    Close,
}

impl Order {
    fn bytes(&self) -> usize {
        match self {
            Self::Part(bytes) | Self::Operation(_, bytes) => bytes.len(),
            Self::Begin { .. } | Self::End(_) | Self::Close => 0,
        }
    }
}

/// What became of it.
pub enum Report {
    /// Everything up to here is on the disk.
    Repeated {
        /// In which attempt.
        session: u64,
        /// The last one.
        position: Position,
        /// How many operations that were.
        operations: u64,
        /// The topics that are declared now; `None`: the same as before.
        declarations: Option<Vec<String>>,
    },
    /// It cannot go on; a new copy is needed.
    Failed {
        /// In which attempt.
        session: u64,
        /// Why.
        why: String,
    },
    /// The database is free.
    Closed,
}

/// The thread, as the node sees it. It ends when this is dropped.
pub struct Follower {
    orders: Sender<Order>,
    queued: Arc<AtomicUsize>,
}

impl Follower {
    /// Starts the thread for a data directory, which it takes at the first copy.
    pub fn start(directory: PathBuf, inbox: Arc<Inbox<KeeperMessage>>) -> io::Result<Self> {
        let (orders, received) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let work = Work { directory, inbox, queued: queued.clone(), session: 0, replica: None, declarations: Vec::new(), is_failed: true };
        std::thread::Builder::new().name("pair-follower".into()).spawn(|| work.run(received))?;
        Ok(Self { orders, queued })
    }

    /// Hands an order over; false if too much waits already.
    pub fn order(&self, order: Order) -> bool {
        let bytes = order.bytes();
        let is_room = self.queued.fetch_add(bytes, Relaxed) + bytes <= QUEUE_BYTES_MAX;
        self.orders.send(order).expect("the follower's thread lives as long as this");
        is_room
    }
}

struct Work {
    directory: PathBuf,
    inbox: Arc<Inbox<KeeperMessage>>,
    queued: Arc<AtomicUsize>,
    session: u64,
    replica: Option<Replica>,
    /// The declared topics as they were reported.
    declarations: Vec<String>,
    /// What comes is dropped until the next copy begins.
    is_failed: bool,
}

impl Work {
    fn run(mut self, orders: Receiver<Order>) {
        let mut next = orders.recv().ok();
        while let Some(order) = next.take() {
            let done = match order {
                Order::Operation(position, bytes) => {
                    // What has come meanwhile is committed together.
                    let mut operations = vec![bytes];
                    let mut last = position;
                    loop {
                        match orders.try_recv().ok() {
                            Some(Order::Operation(position, bytes)) => {
                                last = position;
                                operations.push(bytes);
                            }
                            other => {
                                next = other;
                                break;
                            }
                        }
                    }
                    self.queued.fetch_sub(operations.iter().map(Vec::len).sum(), Relaxed);
                    let apply = |replica: &mut Replica| replica.apply(operations.iter().map(Vec::as_slice)).map(drop);
                    self.repeat(apply, Some((last, operations.len() as u64)))
                }
                other => {
                    self.queued.fetch_sub(other.bytes(), Relaxed);
                    self.take(other)
                }
            };
            if let Err(error) = done {
                self.is_failed = true;
                self.report(Report::Failed { session: self.session, why: error.to_string() });
            }
            next = next.or_else(|| orders.recv().ok());
        }
    }

    fn take(&mut self, order: Order) -> Result<(), ReplicaError> {
        match order {
            Order::Begin { session } => {
                self.session = session;
                self.is_failed = false;
                if self.replica.is_none() {
                    self.replica = Some(Replica::open(&self.directory)?);
                }
                self.repeat(Replica::begin_copy, None)
            }
            Order::Part(part) => self.repeat(|replica| replica.part(&part), None),
            Order::End(position) => self.repeat(Replica::end_copy, Some((position, 0))),
            Order::Operation(..) => unreachable!("operations are taken together"),
            Order::Close => {
                self.replica = None;
                self.declarations.clear();
                self.is_failed = true;
                self.report(Report::Closed);
                Ok(())
            }
        }
    }

    fn repeat(
        &mut self,
        work: impl FnOnce(&mut Replica) -> Result<(), ReplicaError>,
        through: Option<(Position, u64)>,
    ) -> Result<(), ReplicaError> {
        let Some(replica) = self.replica.as_mut().filter(|_| !self.is_failed) else { return Ok(()) };
        work(replica)?;
        let Some((position, operations)) = through else { return Ok(()) };
        let declarations = replica.declarations()?;
        let is_changed = declarations != self.declarations;
        self.declarations.clone_from(&declarations);
        let declarations = is_changed.then_some(declarations);
        self.report(Report::Repeated { session: self.session, position, operations, declarations });
        Ok(())
    }

    fn report(&self, report: Report) {
        self.inbox.post(KeeperMessage::Report(report));
    }
}
