//! The Backup's side of the replica channel, on a thread of its own: what the leader keeps is kept here too, for the day on which this node leads.
//!
//! Events stay in memory, changes of the database go to the store, which has a disk to wait for. The leader is told what is where. When
//! this node is to lead, what the connection still holds is taken, the store writes from then on, and all of it is given away as it is.

mod frames;
mod saved;
mod standing;
#[cfg(test)]
mod tests;
mod topics;

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use bodkin_broker::{
    Backup, Epoch, Output,
    timing::Wish,
    wire::{LinkFrame, Position, Replication},
};
use bodkin_store::{
    event_log::RecordName,
    following::{Report, TopicChange},
};
use mio::{Events, Interest, Poll, Token};

use self::saved::Saved;
use super::{
    Follows, Leadership, Message, News, Preparation, Promoted, Trouble, boot_time,
    link::{Fault, Left, Link},
    utc_ahead_ns,
};
use crate::{
    inbox::{self, Inbox},
    realtime::{Rank, Realtime},
    seldom::SeldomOf,
    shard::Kept,
    topics::wish::Asker,
};

const WAKER: Token = Token(usize::MAX);
const CHANNEL: Token = Token(0);
const TURN_EVENTS_MAX: usize = 4;
/// For how long it is reported that the leader's frames could not be kept.
const REPORTED: Duration = Duration::from_secs(10);

/// What the keeper is told.
pub enum KeeperMessage {
    /// A local cloud begins to follow.
    Attached(Box<Follows>),
    /// It ends.
    Detached,
    /// A connection to the leader of an epoch; the one before is over.
    Follow {
        /// The connection.
        link: Box<Link>,
        /// Which one it is of all that were made.
        serial: u64,
        /// Whose.
        epoch: Epoch,
    },
    /// What the leader has proved itself by does not count any more.
    LeaderRefused,
    /// This node leads: everything is to be given away.
    Give,
    /// What became of the leader's changes.
    Report(Report),
    /// What became of the leader's events of durable event types.
    Recorded {
        /// Which of them.
        ticket: Ticket,
        /// They are on the disk, or why they are not.
        result: Result<(), String>,
    },
    /// What the event log of this node has.
    Logged {
        /// For the leader on which connection.
        serial: u64,
        /// Its newest records of durable event types, the newest first.
        newest: Vec<RecordName>,
    },
    /// The process ends.
    End,
}

/// Which operation of the leader's something is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    session: u64,
    position: Position,
}

/// The thread, as the node sees it. It ends when this is dropped.
pub struct Keeper {
    inbox: Arc<Inbox<KeeperMessage>>,
}

impl Keeper {
    /// Starts it, with nothing. It is scheduled as a shard is: how soon it acknowledges is part of every bound.
    pub fn start(node: Arc<Inbox<Message>>, leadership: Arc<Leadership>, realtime: Arc<Realtime>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), WAKER)?));
        let work = Work::new(poll, inbox.clone(), node, leadership);
        let run = move || {
            let _membership = realtime.enlist(Rank::Shard);
            work.run();
        };
        std::thread::Builder::new().name("pair-keeper".into()).spawn(run)?;
        Ok(Self { inbox })
    }

    /// How it is spoken to.
    pub fn inbox(&self) -> &Arc<Inbox<KeeperMessage>> {
        &self.inbox
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
    /// The local cloud that follows; `None`: there is none, or it leads.
    follows: Option<Box<Follows>>,
    poll: Poll,
    inbox: Arc<Inbox<KeeperMessage>>,
    messages: Vec<KeeperMessage>,
    node: Arc<Inbox<Message>>,
    leadership: Arc<Leadership>,
    /// How often what cannot be followed is logged.
    seldom: SeldomOf,
    link: Option<Link>,
    serial: u64,
    epoch: Epoch,
    /// That both ends of the connection speak.
    protocol: u16,
    /// The last operation of the leader's that was ordered, if it tells their numbers.
    number: Option<u64>,
    /// Whether what the database has could not be gone on from: a tail would be sent for ever.
    needs_copy: bool,
    /// Counts copies: what is reported of an earlier one is not believed.
    session: u64,
    copy: Copy,
    saved: Saved,
    backup: Backup,
    kept: Vec<Kept>,
    /// What the shard is to be told of the leader's topics and subscribers.
    preparations: Vec<Preparation>,
    /// The newest checkpoint of each graph of the leader's.
    graphs: BTreeMap<Box<str>, Vec<u8>>,
    /// What the leader's subscribers ask of topics, and under which names it is admitted here; of a topic that is not declared here yet, with its declaration.
    asked: BTreeMap<Box<str>, (Asker, Wish)>,
    /// Declarations in the database that are in force here, by event type.
    declared: BTreeMap<Box<str>, String>,
    outputs: Vec<Output>,
    /// By how much UTC is ahead of the clock of this host that counts pauses, as of the last read.
    utc_ahead_ns: i128,
    /// More can be read at once.
    is_unread: bool,
    /// The next frame waits for the disk.
    waits: bool,
    gives: bool,
    /// What the node knows of what is here.
    told: Epoch,
    is_ending: bool,
}

impl Work {
    fn new(poll: Poll, inbox: Arc<Inbox<KeeperMessage>>, node: Arc<Inbox<Message>>, leadership: Arc<Leadership>) -> Self {
        Self {
            follows: None,
            poll,
            inbox,
            messages: Vec::new(),
            node,
            leadership,
            seldom: SeldomOf::default(),
            link: None,
            serial: 0,
            epoch: Epoch::NONE,
            protocol: 0,
            number: None,
            needs_copy: false,
            session: 0,
            copy: Copy::Missing,
            saved: Saved::default(),
            backup: Backup::new(),
            kept: Vec::new(),
            preparations: Vec::new(),
            graphs: BTreeMap::new(),
            asked: BTreeMap::new(),
            declared: BTreeMap::new(),
            outputs: Vec::new(),
            utc_ahead_ns: 0,
            is_unread: false,
            waits: false,
            gives: false,
            told: Epoch::NONE,
            is_ending: false,
        }
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
            for readiness in events.iter().filter(|readiness| readiness.token() == CHANNEL) {
                self.is_unread = true;
                self.link.iter_mut().for_each(|link| link.is_ready(readiness));
            }
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.take_messages();
        self.read();
        self.prepare_shard();
        self.acknowledge();
        self.give();
        self.tell_warm();
    }

    fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                KeeperMessage::Attached(follows) => {
                    self.follows = Some(follows);
                    self.preparations.clear();
                    self.declared.clear();
                    // What was asked was asked of the topics of the local cloud before.
                    self.asked.clear();
                    self.forget();
                }
                KeeperMessage::Detached => {
                    self.close("the local cloud ends");
                    self.follows = None;
                }
                KeeperMessage::Follow { link, serial, epoch } => self.follow(*link, serial, epoch),
                KeeperMessage::LeaderRefused => self.close("the leader's certificate does not count any more"),
                KeeperMessage::Give => {
                    self.gives = true;
                    self.is_unread = self.link.is_some();
                }
                KeeperMessage::Report(report) => self.reported(report),
                KeeperMessage::Recorded { ticket, result } => self.recorded(ticket, result),
                KeeperMessage::Logged { serial, newest } => self.say_what_is_logged(serial, &newest),
                KeeperMessage::End => self.is_ending = true,
            }
        }
        self.messages = messages;
    }

    fn follow(&mut self, mut link: Link, serial: u64, epoch: Epoch) {
        self.close("the leader has come anew");
        if let Err(error) = self.poll.registry().register(link.socket(), CHANNEL, Interest::READABLE | Interest::WRITABLE) {
            tracing::warn!(%error, "the replica channel cannot be read");
            return self.node.post(Message::ChannelEnded { serial });
        }
        self.protocol = link.protocol;
        (self.link, self.serial, self.epoch) = (Some(link), serial, epoch);
        (self.copy, self.waits, self.number) = (Copy::Missing, false, None);
        self.begin_to_say();
        // What came with the connection raises no event.
        self.is_unread = true;
    }

    /// Ends the session; what is kept stays what it is.
    fn close(&mut self, why: &'static str) {
        if self.link.is_some()
            && let Some(times) = self.seldom.due(why)
        {
            tracing::info!(why, times, "the replica channel has ended");
        }
        self.end_session();
    }

    fn end_session(&mut self) {
        (self.is_unread, self.waits) = (false, false);
        let Some(mut link) = self.link.take() else { return };
        // It is closed anyway.
        let _ = self.poll.registry().deregister(link.socket());
        self.node.post(Message::ChannelEnded { serial: self.serial });
    }

    /// Reads and takes what is there, a turn's share of it.
    fn read(&mut self) {
        if !std::mem::take(&mut self.is_unread) && !self.waits {
            return;
        }
        let Some(mut link) = self.link.take() else { return };
        self.utc_ahead_ns = utc_ahead_ns();
        // What is behind a frame that waits is left to the socket.
        let left = if self.waits { Left::More } else { link.read(boot_time()).unwrap_or(Left::End) };
        let taken = link.take_frames(|frame| self.take(frame));
        self.link = Some(link);
        match taken {
            Err(fault) => self.refuse(&fault),
            Ok(true) => self.waits = true,
            Ok(false) if left == Left::End => self.close("the leader has closed it"),
            Ok(false) => (self.waits, self.is_unread) = (false, left == Left::More),
        }
    }

    /// Closes a connection whose frames cannot be kept: the leader begins anew.
    fn refuse(&mut self, why: &Fault) {
        if let Some(times) = self.seldom.due(why.kind) {
            tracing::error!(why = why.to_string(), times, "this standby cannot keep what the leader sends, and begins anew");
        }
        let text = format!(
            "this standby cannot keep what the leader sends, and does not take over: {why}. Make room if its disk is full, else look at its log"
        );
        self.leadership.troubles().set(Trouble::Follow, text, Some(REPORTED));
        self.end_session();
    }

    /// Tells the shard what is new, before the leader is told that it is here.
    fn prepare_shard(&mut self) {
        let preparations = std::mem::take(&mut self.preparations);
        if let Some(follows) = self.follows.as_ref().filter(|_| !preparations.is_empty()) {
            follows.shard.post(inbox::Message::Pair(News::Prepare(preparations)));
        }
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Copied { session, topics, .. } if session == self.session => {
                self.declare_all(topics);
                self.copy = Copy::Saved;
            }
            Report::Repeated { session, position, topics, .. } if session == self.session => {
                topics.into_iter().for_each(|TopicChange { event_type, declaration }| self.declare(event_type, declaration));
                self.saved.changed(position);
                self.backup.saved(self.saved.through());
            }
            Report::Failed { session, why } if session == self.session => {
                // The replicas stay valid, and this node may lead with them: only the change is missing, and it was not acknowledged.
                self.needs_copy = true;
                self.refuse(&Fault::new("a change cannot be repeated", why));
            }
            // Of a copy that was replaced by another.
            Report::Copied { .. } | Report::Repeated { .. } | Report::Failed { .. } => {}
        }
    }

    fn recorded(&mut self, Ticket { session, position }: Ticket, result: Result<(), String>) {
        if session != self.session {
            return;
        }
        match result {
            Ok(()) => {
                self.saved.recorded(position);
                self.backup.saved(self.saved.through());
            }
            Err(why) => {
                let detail = format_args!("events of a durable event type are not on the disk here: {why}");
                self.refuse(&Fault::new("records are not on the disk", detail));
            }
        }
    }

    /// Acknowledges what is new, at the end of a turn.
    fn acknowledge(&mut self) {
        let epoch = self.epoch;
        let Some(link) = &mut self.link else { return };
        // A node that is about to lead acknowledges nothing. Replicas of an earlier connection do not count on this one.
        if !self.gives
            && self.copy != Copy::Missing
            && let Some(position) = self.backup.acknowledgement()
        {
            link.push(LinkFrame::Replication(Replication::Ack { epoch, position }));
        }
        if link.flush().is_err() && !self.gives {
            return self.close("the connection broke");
        }
        link.acknowledge_segments();
    }

    /// Tells the node when it has begun or ceased to have everything.
    fn tell_warm(&mut self) {
        let epoch = if self.backup.is_in_sync() { self.epoch } else { Epoch::NONE };
        if !self.gives && std::mem::replace(&mut self.told, epoch) != epoch {
            self.node.post(Message::Warm(epoch));
        }
    }

    /// Once what the connection still holds is taken: the store writes from now on, and everything goes to the node.
    fn give(&mut self) {
        if !self.gives || self.is_unread || self.waits {
            return;
        }
        self.gives = false;
        self.close("this node leads");
        let Some(follows) = self.follows.take() else { return };
        let Follows { following, shard, .. } = *follows;
        following.promote(Box::new(move |committed| shard.post(inbox::Message::Pair(News::Committed(committed)))));
        let promoted = self.backup.is_in_sync().then(|| {
            let (backup, kept) = (std::mem::take(&mut self.backup), std::mem::take(&mut self.kept));
            let asked = std::mem::take(&mut self.asked).into_iter().map(|(topic, (asker, _))| (topic, asker)).collect();
            Box::new(Promoted { backup, kept, asked, graphs: std::mem::take(&mut self.graphs) })
        });
        self.node.post(Message::Given(promoted));
        self.forget();
        // The node leads, and knows what it has.
        self.told = Epoch::NONE;
    }

    /// Keeps nothing, and knows the topics that there are.
    fn forget(&mut self) {
        self.forget_asked();
        (self.backup, self.copy, self.kept) = (Backup::new(), Copy::Missing, Vec::new());
        self.graphs.clear();
        self.preparations.push(Preparation::NobodyRequired);
        let topics = self.follows.as_ref().map(|follows| follows.topics.with_terms());
        topics.into_iter().flatten().for_each(|(topic, terms)| self.admit(topic, terms));
    }
}
