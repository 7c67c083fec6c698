//! The Backup's side of the replica channel, on a thread of its own: what the leader keeps is kept here too, for the day on which this node leads.
//!
//! Events stay in memory, changes of the database go to the [`Follower`], which has a disk to wait for. The leader is told what is where. When
//! this node is to lead, what the connection still holds is taken, and all of it is given away as it is.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    num::NonZeroU32,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bodkin_broker::{
    Backup, BackupError, Epoch, Output, Terms,
    wire::{LinkFrame, Position, Replication},
};
use mio::{Events, Interest, Poll, Token};

use super::{
    Message, Promoted, RequiredSubscriber, boot_time,
    follower::{Follower, Order, Report},
    link::{Left, Link, Taken},
    local_of_utc_ns,
    node::kind,
};
use crate::{
    inbox::Inbox,
    shard::Kept,
    topics::{Declarer, RealTimeTopics, declaration},
};

const WAKER: Token = Token(usize::MAX);
const CHANNEL: Token = Token(0);
const TURN_EVENTS_MAX: usize = 4;
/// How much more of a stream may be kept than its topic's declaration asks for.
const BACKLOG_FACTOR: NonZeroU32 = NonZeroU32::new(4).unwrap();
/// Required subscribers that a leader may name; it has as many subscriptions at the most.
const REQUIRED_MAX: usize = 1 << 20;

/// What the keeper is told.
pub enum KeeperMessage {
    /// A connection to the leader of an epoch; the one before is over.
    Follow {
        /// The connection.
        link: Box<Link>,
        /// Which one it is of all that were made.
        serial: u64,
        /// Whose.
        epoch: Epoch,
    },
    /// This node leads: everything is to be given away.
    Give,
    /// What became of the leader's changes.
    Report(Report),
    /// The process ends.
    End,
}

/// The thread, as the node sees it. It ends when this is dropped.
pub struct Keeper {
    inbox: Arc<Inbox<KeeperMessage>>,
}

/// What the thread is started with.
pub struct KeeperConfig {
    /// Where the database is.
    pub data: PathBuf,
    /// The topics that the configuration declares; the leader has the same ones.
    pub topics: Arc<RealTimeTopics>,
    /// How many topics there may be.
    pub topics_max: usize,
}

impl Keeper {
    /// Starts it, with nothing.
    pub fn start(config: KeeperConfig, node: Arc<Inbox<Message>>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let follower = Follower::start(config.data.clone(), inbox.clone())?;
        let work = Work::new(config, poll, inbox.clone(), node, follower);
        std::thread::Builder::new().name("pair-keeper".into()).spawn(|| work.run())?;
        Ok(Self { inbox })
    }

    /// Tells it something.
    pub fn tell(&self, message: KeeperMessage) {
        self.inbox.post(message);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.inbox.post(KeeperMessage::End);
    }
}

/// How far the copy of the database is, with which every session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    /// None has come on this connection.
    Missing,
    /// It is coming, behind this position.
    Coming(Position),
    /// It is on its way to the disk: nothing that depends on it can be read.
    Saving,
    /// It is there.
    Saved,
}

struct Work {
    config: KeeperConfig,
    poll: Poll,
    inbox: Arc<Inbox<KeeperMessage>>,
    messages: Vec<KeeperMessage>,
    node: Arc<Inbox<Message>>,
    follower: Follower,
    link: Option<Link>,
    serial: u64,
    epoch: Epoch,
    /// Counts copies: what is reported of an earlier one is not believed.
    session: u64,
    copy: Copy,
    /// Changes that are on their way to the disk.
    unsaved: u64,
    backup: Backup,
    kept: Vec<Kept>,
    required: BTreeMap<(Box<str>, Box<str>), Duration>,
    /// Declarations in the database that are in force here.
    declared: BTreeSet<String>,
    outputs: Vec<Output>,
    /// More can be read at once.
    is_unread: bool,
    /// The next frame waits for the disk.
    waits: bool,
    gives: bool,
    is_closing: bool,
    /// What the node knows of what is here.
    told: Epoch,
    is_ending: bool,
}

impl Work {
    fn new(config: KeeperConfig, poll: Poll, inbox: Arc<Inbox<KeeperMessage>>, node: Arc<Inbox<Message>>, follower: Follower) -> Self {
        let mut work = Self {
            config,
            poll,
            inbox,
            messages: Vec::new(),
            node,
            follower,
            link: None,
            serial: 0,
            epoch: Epoch::NONE,
            session: 0,
            copy: Copy::Missing,
            unsaved: 0,
            backup: Backup::new(),
            kept: Vec::new(),
            required: BTreeMap::new(),
            declared: BTreeSet::new(),
            outputs: Vec::new(),
            is_unread: false,
            waits: false,
            gives: false,
            is_closing: false,
            told: Epoch::NONE,
            is_ending: false,
        };
        work.forget();
        work
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(TURN_EVENTS_MAX);
        while !self.is_ending {
            let patience = self.is_unread.then_some(Duration::ZERO);
            match self.poll.poll(&mut events, patience) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the replica channel's poll does not work: {error}"),
            }
            self.is_unread |= events.iter().any(|event| event.token() == CHANNEL);
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.take_messages();
        self.read();
        self.acknowledge();
        self.give();
        self.tell_warm();
    }

    fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                KeeperMessage::Follow { link, serial, epoch } => self.follow(*link, serial, epoch),
                KeeperMessage::Give => {
                    self.gives = true;
                    self.is_unread = self.link.is_some();
                }
                KeeperMessage::Report(report) => self.reported(report),
                KeeperMessage::End => self.is_ending = true,
            }
        }
        self.messages = messages;
    }

    fn follow(&mut self, mut link: Link, serial: u64, epoch: Epoch) {
        self.close("the leader has come anew");
        if let Err(error) = self.poll.registry().register(&mut link.socket, CHANNEL, Interest::READABLE | Interest::WRITABLE) {
            tracing::warn!(%error, "the replica channel cannot be read");
            return self.node.post(Message::ChannelEnded { serial });
        }
        (self.link, self.serial, self.epoch) = (Some(link), serial, epoch);
        (self.copy, self.waits, self.gives, self.is_closing) = (Copy::Missing, false, false, false);
        // What came with the connection raises no event.
        self.is_unread = true;
    }

    /// Ends the session; what is kept stays what it is.
    fn close(&mut self, why: &str) {
        (self.is_unread, self.waits) = (false, false);
        let Some(mut link) = self.link.take() else { return };
        tracing::info!(why, "the replica channel has ended");
        // It is closed anyway.
        let _ = self.poll.registry().deregister(&mut link.socket);
        self.node.post(Message::ChannelEnded { serial: self.serial });
    }

    /// Reads and takes what is there, a turn's share of it.
    fn read(&mut self) {
        if !std::mem::take(&mut self.is_unread) && !self.waits {
            return;
        }
        let Some(mut link) = self.link.take() else { return };
        // What is behind a frame that waits is left to the socket.
        let left = if self.waits { Left::More } else { link.read(boot_time()).unwrap_or(Left::End) };
        let taken = link.take_frames(|frame| self.take(frame));
        self.link = Some(link);
        match taken {
            Err(why) => self.refuse(&why),
            Ok(true) => self.waits = true,
            Ok(false) if left == Left::End => self.close("the leader has closed it"),
            Ok(false) => (self.waits, self.is_unread) = (false, left == Left::More),
        }
    }

    /// Closes a connection that says what cannot be.
    fn refuse(&mut self, why: &str) {
        tracing::warn!(why, "what the leader sends cannot be followed: it is to begin anew");
        self.close(why);
    }

    /// Takes a frame of the leader's; an error is the reason why the connection has to be closed.
    fn take(&mut self, frame: LinkFrame<'_>) -> Result<Taken, String> {
        let LinkFrame::Replication(frame) = frame else { return Err("a ballot has come on the replica channel".into()) };
        if frame.epoch() != self.epoch {
            return Err(format!("a frame of epoch {} has come on the replica channel of epoch {}", frame.epoch(), self.epoch));
        }
        match (self.copy, &frame) {
            (Copy::Saving, _) => return Ok(Taken::Later),
            (Copy::Missing, Replication::SnapshotBegin { .. }) | (Copy::Coming(_), Replication::SnapshotPart { .. }) | (Copy::Saved, _) => {
            }
            (Copy::Missing, _) => return Err(format!("{} came without a copy in front of it", kind(&frame))),
            (Copy::Coming(position), _) => {
                self.copy = Copy::Saving;
                self.order(Order::End(position))?;
                return Ok(Taken::Later);
            }
        }
        let taken = self.replicated(frame);
        self.free();
        taken
    }

    fn replicated(&mut self, frame: Replication<'_>) -> Result<Taken, String> {
        let told = |error: BackupError| error.to_string();
        match frame {
            Replication::SnapshotBegin { position, .. } => {
                self.backup.begin_snapshot(position, &mut self.outputs);
                self.required.clear();
                self.session += 1;
                self.unsaved = 0;
                self.copy = Copy::Coming(position);
                self.order(Order::Begin { session: self.session })?;
            }
            Replication::SnapshotPart { part, .. } => self.order(Order::Part(part.to_vec()))?,
            Replication::SnapshotEnd { position, .. } => self.backup.end_snapshot(position).map_err(told)?,
            Replication::Control { position, operation, .. } => {
                self.backup.control(position).map_err(told)?;
                self.unsaved += 1;
                self.order(Order::Operation(position, operation.to_vec()))?;
            }
            Replication::StreamOpen { stream, publisher, incarnation, topic, .. } => {
                match self.backup.open_stream(stream, topic, publisher, incarnation) {
                    // One of the changes that are under way may declare the topic.
                    Err(BackupError::Topic) if self.unsaved > 0 => return Ok(Taken::Later),
                    Err(BackupError::Topic) => {
                        tracing::warn!(
                            topic,
                            "the leader keeps events of a topic that is not declared here: are the configurations the same?"
                        );
                        let (_, terms) = self.config.topics.undeclared(topic);
                        self.admit(topic, terms);
                        self.backup.open_stream(stream, topic, publisher, incarnation).map_err(told)?;
                    }
                    opened => opened.map_err(told)?,
                }
            }
            Replication::StreamClose { stream, .. } => self.backup.close_stream(stream, &mut self.outputs).map_err(told)?,
            Replication::Discard { stream, through, .. } => self.backup.discard(stream, through, &mut self.outputs).map_err(told)?,
            Replication::Replica { position, stream, sequence, created_utc_ns, payload, .. } => {
                let created = local_of_utc_ns(created_utc_ns);
                if let Some(slot) = self.backup.keep(position, stream, sequence, created).map_err(told)? {
                    Kept::at(&mut self.kept, slot).fill_from(payload)?;
                }
            }
            Replication::Required { wait_ns, topic, subscriber, .. } => {
                if self.required.len() >= REQUIRED_MAX {
                    return Err(format!("the leader names more than {REQUIRED_MAX} required subscribers"));
                }
                self.required.insert((topic.into(), subscriber.into()), Duration::from_nanos(wait_ns));
            }
            Replication::NotRequired { topic, subscriber, .. } => drop(self.required.remove(&(topic.into(), subscriber.into()))),
            other => return Err(format!("{} does not belong on the replica channel", kind(&other))),
        }
        Ok(Taken::Done)
    }

    fn order(&self, order: Order) -> Result<(), String> {
        if self.follower.order(order) { Ok(()) } else { Err("changes come faster than the disk takes them".into()) }
    }

    /// Lets the bytes of pruned replicas go.
    fn free(&mut self) {
        for output in self.outputs.drain(..) {
            match output {
                Output::Freed { slot } => self.kept[slot.index()].clear(),
                other => unreachable!("a Backup keeps and prunes: {other:?}"),
            }
        }
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Closed => self.hand_over(),
            Report::Repeated { session, position, operations, declarations } if session == self.session => {
                self.declare(declarations);
                if self.copy == Copy::Saving {
                    self.copy = Copy::Saved;
                } else {
                    self.unsaved -= operations;
                    self.backup.saved(position);
                }
            }
            Report::Failed { session, why } if session == self.session => {
                self.forget();
                self.refuse(&why);
            }
            // Of a copy that was replaced by another.
            Report::Repeated { .. } | Report::Failed { .. } => {}
        }
    }

    /// Acknowledges what is new, at the end of a turn.
    fn acknowledge(&mut self) {
        let epoch = self.epoch;
        let Some(link) = &mut self.link else { return };
        // Who is about to lead acknowledges nothing any more.
        if !self.gives
            && let Some(position) = self.backup.acknowledgement()
        {
            link.push(LinkFrame::Replication(Replication::Ack { epoch, position }));
        }
        if link.flush().is_err() && !self.gives {
            self.close("the connection broke");
        }
    }

    /// Tells the node when it has begun or ceased to have everything.
    fn tell_warm(&mut self) {
        let epoch = if self.backup.is_in_sync() { self.epoch } else { Epoch::NONE };
        if !self.gives && std::mem::replace(&mut self.told, epoch) != epoch {
            self.node.post(Message::Warm(epoch));
        }
    }

    /// Once what the connection still holds is taken: has the database closed, behind every change.
    fn give(&mut self) {
        if !self.gives || self.is_closing || self.is_unread || self.waits {
            return;
        }
        self.close("this node leads");
        self.is_closing = true;
        self.follower.order(Order::Close);
    }

    /// The database is closed: everything goes to the node, and nothing is left.
    fn hand_over(&mut self) {
        let is_whole = self.backup.is_in_sync();
        let kept = std::mem::take(&mut self.kept);
        let required = std::mem::take(&mut self.required);
        let backup = std::mem::take(&mut self.backup);
        let named = |((topic, name), wait)| RequiredSubscriber { topic, name, wait };
        let required = required.into_iter().map(named).collect();
        let promoted = is_whole.then(|| Box::new(Promoted { backup, kept, required }));
        self.node.post(Message::Given(promoted));
        self.forget();
    }

    /// Keeps nothing, and knows the topics of the configuration.
    fn forget(&mut self) {
        (self.backup, self.copy, self.told) = (Backup::new(), Copy::Missing, Epoch::NONE);
        (self.kept, self.required, self.unsaved) = (Vec::new(), BTreeMap::new(), 0);
        self.config.topics.terms().into_iter().for_each(|(topic, terms)| self.admit(&topic, terms));
    }

    fn admit(&mut self, topic: &str, terms: Terms) {
        // A subscriber may ask more of a topic than its declaration does, which only the leader knows: then it keeps more.
        let terms = Terms { backlog_max: terms.backlog_max.saturating_mul(BACKLOG_FACTOR), ..terms };
        if let Err(error) = self.backup.admit(topic, terms, self.config.topics_max) {
            tracing::error!(%error, topic, "a topic cannot be kept here");
        }
    }

    /// Takes the topics that are declared in the database; `None`: they are as they were.
    fn declare(&mut self, declarations: Option<Vec<String>>) {
        let Some(declarations) = declarations else { return };
        let topics = self.config.topics.clone();
        let gone = self.declared.extract_if(.., |declared| !declarations.contains(declared)).collect::<Vec<_>>();
        let parse = |text: &str| declaration::parse(text, topics.platform());
        let withdrawn = gone.iter().filter_map(|text| {
            let declared = parse(text).ok()?;
            let (_, terms) = topics.withdraw(declared.event_type.as_str())?;
            Some((declared.event_type.as_str().to_owned(), terms))
        });
        let mut changed: Vec<_> = withdrawn.collect();
        for text in declarations {
            if self.declared.contains(&text) {
                continue;
            }
            let admitted = parse(&text).and_then(|declared| topics.admit(&declared, Declarer::Operator).map_err(|error| error.to_string()));
            match admitted {
                Ok((topic, terms)) => changed.push((topic.event_type.to_string(), terms)),
                Err(error) => tracing::error!(error, "a topic that the leader has declared cannot be kept here"),
            }
            self.declared.insert(text);
        }
        changed.into_iter().for_each(|(topic, terms)| self.admit(&topic, terms));
    }
}
