//! The thread above the shards: reads the other nodes' frames, asks the member's machine, carries out what it wants.
//!
//! It never waits for a disk: records, the follower's database and the local cloud's have threads of their own.

use std::{
    collections::VecDeque,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::{Duration, SystemTime},
};

use bodkin_broker::{
    Epoch, Incarnation, Instant, Node,
    member::{Input, Member, MemberConfig, Output, Protection, Tell},
    wire::{LinkFrame, Record, Replication, Role, link_frame},
};
use bodkin_store::{Store, replication::Committed};
use mio::{Events, Poll, Token};
use tokio::sync::mpsc::UnboundedSender;

use super::{
    Duty, Leadership, Message, PairConfig, PairError, boot_time,
    follower::{Follower, Order, Report},
    leader::{Leader, TooFar},
    link::Left,
    links::{self, Links, OwnName},
    record,
};
use crate::{inbox::Inbox, realtime::Rank};

/// Wakes the thread for its inbox.
pub const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// Readiness events taken in one turn.
const TURN_EVENTS_MAX: usize = 64;
/// What whoever waits for an answer is told when this node stops leading.
const NOT_KNOWN: &str = "This node of the pair does not lead any more; it is not known whether the change counts. Ask the other one.";

/// Who has the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    /// Nobody.
    Free,
    /// The follower.
    Follower,
    /// The follower, which has been asked for it.
    Closing,
    /// The local cloud of this process, which was told to lead.
    Served,
    /// The same, which was told to follow.
    Leaving,
}

/// What is being repeated.
struct Following {
    slot: usize,
    session: u64,
    epoch: Epoch,
}

/// The thread's state.
pub struct PairThread {
    config: PairConfig,
    poll: Poll,
    inbox: Arc<Inbox<Message>>,
    messages: Vec<Message>,
    links: Links,
    /// Connections that have more to read than a turn takes.
    unread: Vec<usize>,
    member: Member,
    inputs: VecDeque<Input>,
    records: mpsc::Sender<Record>,
    leadership: Arc<Leadership>,
    duties: UnboundedSender<Duty>,
    leader: Option<Leader>,
    store: Option<Store>,
    copies: u64,
    data: Data,
    /// Whether another node is known to lead.
    follows: bool,
    follower: Follower,
    following: Option<Following>,
    /// The epoch that the other candidate has shown on its present connection. It takes a copy from nobody but the leader of that one.
    backup_epoch: Option<Epoch>,
    sessions: u64,
    next_beat: Instant,
    beats: u64,
    is_ending: bool,
}

impl PairThread {
    pub fn new(
        config: PairConfig,
        member: MemberConfig,
        poll: Poll,
        inbox: Arc<Inbox<Message>>,
        leadership: Arc<Leadership>,
        duties: UnboundedSender<Duty>,
    ) -> Result<Self, PairError> {
        let now = boot_time();
        let listen = |address| mio::net::TcpListener::bind(address).map_err(|error| PairError::Listen { address, error });
        let listener = config.listen.map(listen).transpose()?;
        let record = record::read(&config.data)?;
        remove_copies(&config.data)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let own = OwnName { node: config.node, incarnation: Incarnation(since_1970.as_nanos() as u64) };
        let registry = poll.registry().try_clone()?;
        let links = Links::new(own, links::silence(config.lease), registry, listener, LISTENER, &config.others, now)?;
        Ok(Self {
            records: record::start(config.data.clone(), inbox.clone())?,
            follower: Follower::start(config.data.clone(), inbox.clone())?,
            config,
            poll,
            inbox,
            messages: Vec::new(),
            links,
            unread: Vec::new(),
            member: Member::new(member, record, now),
            inputs: VecDeque::new(),
            leadership,
            duties,
            leader: None,
            store: None,
            copies: 0,
            data: Data::Free,
            follows: false,
            following: None,
            backup_epoch: None,
            sessions: 0,
            next_beat: now,
            beats: 0,
            is_ending: false,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.links.address()
    }

    /// Runs until it is told to end.
    pub fn run(mut self) -> io::Result<()> {
        let _membership = self.config.realtime.clone().enlist(Rank::Detector);
        let mut events = Events::with_capacity(TURN_EVENTS_MAX);
        if self.config.is_forced {
            self.step(Input::Force);
        }
        while !self.is_ending {
            let wake = self.member.next_timer().map_or(self.next_beat, |timer| timer.min(self.next_beat));
            let patience = if self.unread.is_empty() { wake.since(boot_time()) } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            self.turn(&events);
        }
        self.leadership.fence();
        if let Some(leader) = self.leader.take() {
            leader.lose(NOT_KNOWN);
        }
        Ok(())
    }

    fn turn(&mut self, events: &Events) {
        let now = boot_time();
        // A lease that has run out in a pause counts before anything that waited meanwhile.
        self.step(Input::Tick);
        std::mem::take(&mut self.unread).into_iter().for_each(|slot| self.read(slot));
        for event in events {
            match event.token() {
                LISTENER => self.links.accept(now, self.role(), self.member.epoch()),
                WAKER => {}
                Token(slot) => {
                    if event.is_writable() {
                        self.links.writable(slot);
                    }
                    if event.is_readable() || event.is_error() || event.is_read_closed() {
                        self.read(slot);
                    }
                }
            }
        }
        self.take_messages();
        if now >= self.next_beat {
            self.beat(now);
        }
        self.hand_data_over();
        self.serve_backup();
        let lost = self.links.flush(boot_time());
        lost.into_iter().for_each(|node| self.lost(node));
    }

    fn beat(&mut self, now: Instant) {
        self.next_beat = now.plus(self.config.heartbeat);
        self.beats += 1;
        let lost = self.links.beat(now, self.beats, self.role(), self.member.epoch());
        lost.into_iter().for_each(|node| self.lost(node));
        if self.leader.as_ref().is_some_and(|leader| leader.is_overdue(now)) {
            self.step(Input::BackupOut);
        }
    }

    fn role(&self) -> Role {
        match self.config.node {
            Node::Witness => Role::Witness,
            _ if self.member.leading().is_some() => Role::Leader,
            _ => Role::Follower,
        }
    }

    fn partner(&self) -> Option<Node> {
        self.config.node.partner()
    }

    fn step(&mut self, input: Input) {
        self.inputs.push_back(input);
        let mut outputs = Vec::new();
        while let Some(input) = self.inputs.pop_front() {
            self.member.step(boot_time(), input, &mut outputs);
            outputs.drain(..).for_each(|output| self.carry_out(output));
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send { to, ballot } => self.links.send(to, LinkFrame::Ballot(ballot)),
            Output::Persist(record) => self.records.send(record).expect("the record's thread lives as long as this one"),
            Output::Lead { epoch, until } => self.lead(epoch, until),
            Output::Fenced { epoch } => self.fenced(epoch),
            Output::Follow { leader, epoch } => {
                tracing::info!(?leader, %epoch, "another node of the pair leads");
                self.follows = true;
            }
            Output::Protection(protection) => {
                tracing::info!(?protection, "what the leader of the pair may count on");
                if let Some(leader) = &mut self.leader {
                    self.leadership.protect(protection == Protection::Protected);
                    leader.protected(protection);
                }
            }
            Output::Tell(tell) => tell_log(tell),
        }
    }

    fn lead(&mut self, epoch: Epoch, until: Instant) {
        self.leadership.lead(epoch, until);
        if self.leader.as_ref().map(Leader::epoch) == Some(epoch) {
            return;
        }
        self.leadership.protect(false);
        tracing::info!(%epoch, node = ?self.config.node, "this node of the pair leads");
        self.follows = false;
        self.following = None;
        let backup = self.partner().expect("a witness does not lead");
        if let Some(before) = self.leader.replace(Leader::new(epoch, backup, self.config.lease)) {
            before.lose(NOT_KNOWN);
        }
        if !self.links.has(backup) {
            self.inputs.push_back(Input::BackupOut);
        }
    }

    fn fenced(&mut self, epoch: Epoch) {
        self.leadership.fence();
        tracing::warn!(%epoch, "this node of the pair leads no more: it refuses what it is asked");
        if let Some(leader) = self.leader.take() {
            leader.lose(NOT_KNOWN);
        }
    }

    /// The database goes to whom it belongs: the local cloud of a leader, the follower of another node's.
    fn hand_data_over(&mut self) {
        let leads = self.leader.is_some();
        match self.data {
            Data::Free if leads => {
                self.data = Data::Served;
                self.tell_duty(Duty::Lead);
            }
            Data::Follower if leads => {
                self.data = Data::Closing;
                self.follower.order(Order::Close);
            }
            Data::Served if self.follows => {
                self.data = Data::Leaving;
                self.tell_duty(Duty::Follow);
            }
            Data::Free | Data::Follower | Data::Closing | Data::Served | Data::Leaving => {}
        }
    }

    fn tell_duty(&self, duty: Duty) {
        // Who does not listen any more is ending.
        let _ = self.duties.send(duty);
    }

    /// Brings the Backup what it has not got.
    fn serve_backup(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        if let (Some(store), Some(backup)) = (&self.store, self.config.node.partner())
            && self.links.has(backup)
            && self.backup_epoch == Some(leader.epoch())
            && leader.wants_copy()
        {
            self.copies += 1;
            if let Err(error) = store.copy_to(copy_path(&self.config.data, self.copies)) {
                tracing::warn!(%error, "no copy for the Backup can be made now");
                leader.not_copied();
            }
        }
        let pumped = leader.pump(&mut self.links);
        self.check_backup(pumped);
    }

    fn check_backup(&mut self, result: Result<(), TooFar>) {
        if let (Err(TooFar(why)), Some(backup)) = (result, self.partner()) {
            tracing::warn!(why, "the Backup cannot follow; it is to begin anew");
            if let Some(slot) = self.links.slot_of(backup) {
                self.close(slot);
            }
        }
    }

    fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Persisted => self.step(Input::Persisted),
                Message::Committed(committed) => self.committed(committed),
                Message::Attached(store) => self.store = Some(store),
                Message::Detached => self.store = None,
                Message::Released => self.data = Data::Free,
                Message::Follower(report) => self.followed(report),
                Message::End => self.tell_duty(Duty::End),
                Message::Stop => self.is_ending = true,
            }
        }
        self.messages = messages;
    }

    fn committed(&mut self, committed: Committed) {
        match (committed, &mut self.leader) {
            (Committed::Group(group), Some(leader)) => {
                let taken = leader.committed(group, boot_time(), &mut self.links);
                self.check_backup(taken);
            }
            (Committed::Group(group), None) => group.lose(NOT_KNOWN),
            (Committed::Copy(Ok(path)), Some(leader)) => leader.copied(&path, &mut self.links),
            (Committed::Copy(Ok(path)), None) => drop(fs::remove_file(path)),
            (Committed::Copy(Err(why)), leader) => {
                tracing::error!(why, "the Backup gets no copy");
                leader.iter_mut().for_each(|leader| leader.not_copied());
            }
        }
    }

    fn followed(&mut self, report: Report) {
        match report {
            Report::Closed => self.data = Data::Free,
            Report::Repeated { session, position } => {
                let Some(following) = self.following.as_ref().filter(|following| following.session == session) else { return };
                let epoch = following.epoch;
                if let Some(partner) = self.partner() {
                    self.links.send(partner, LinkFrame::Replication(Replication::Ack { epoch, position }));
                }
                self.step(Input::Warm { epoch });
            }
            Report::Failed { session, why } => {
                tracing::error!(why, "the leader's changes cannot be repeated");
                if let Some(following) = self.following.take_if(|following| following.session == session) {
                    self.close(following.slot);
                }
            }
        }
    }

    fn read(&mut self, slot: usize) {
        let Some(left) = self.links.read(slot, boot_time()) else { return };
        let received = std::mem::take(self.links.received(slot));
        let mut rest = received.as_slice();
        loop {
            let taken = match link_frame(rest) {
                Ok(Some((bytes, behind))) => {
                    rest = behind;
                    LinkFrame::decode(bytes).map_err(|error| error.to_string()).and_then(|frame| self.take(slot, frame))
                }
                Ok(None) => break,
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = taken {
                tracing::warn!(why, peer = ?self.links.peer(slot), "a connection of the pair was closed");
                return self.close(slot);
            }
            if !self.links.is_open(slot) {
                return;
            }
        }
        *self.links.received(slot) = rest.to_vec();
        match left {
            Left::Nothing => {}
            Left::More => self.unread.push(slot),
            Left::End => self.close(slot),
        }
    }

    /// Takes one frame; an error is the reason why the connection has to be closed.
    fn take(&mut self, slot: usize, frame: LinkFrame<'_>) -> Result<(), String> {
        match (self.links.peer(slot), frame) {
            (None, LinkFrame::Replication(Replication::Greeting { epoch, protocol, protocol_min, node, .. })) => {
                if let Err(why) = self.links.greet(slot, node, protocol, protocol_min) {
                    self.step(Input::Stranger { epoch });
                    return Err(why);
                }
                if let Some(replaced) = self.links.establish(slot) {
                    self.lost(node);
                    self.links.close(replaced, boot_time());
                }
                tracing::info!(?node, "a node of the pair is connected");
                Ok(())
            }
            (None, _) => Err("a greeting was expected first".into()),
            (Some(from), LinkFrame::Ballot(ballot)) => {
                self.step(Input::Received { from, ballot });
                Ok(())
            }
            (Some(from), LinkFrame::Replication(Replication::Heartbeat { epoch, .. })) => {
                if Some(from) == self.partner() {
                    self.backup_epoch = Some(epoch);
                }
                Ok(())
            }
            (Some(from), LinkFrame::Replication(frame)) if Some(from) == self.partner() => self.replicated(slot, frame),
            (Some(_), LinkFrame::Replication(frame)) => Err(format!("{} is no frame of a witness", kind(&frame))),
        }
    }

    fn replicated(&mut self, slot: usize, frame: Replication<'_>) -> Result<(), String> {
        if let Replication::Ack { epoch, position } = frame {
            // Of an epoch that is over.
            let Some(leader) = self.leader.as_mut().filter(|leader| leader.epoch() == epoch) else { return Ok(()) };
            if leader.acknowledged(position).map_err(|TooFar(why)| why.to_owned())? {
                self.step(Input::BackupInSync);
            }
            return Ok(());
        }
        if let Replication::SnapshotBegin { epoch, .. } = frame {
            return self.begin_to_follow(slot, epoch);
        }
        let is_followed = |following: &&Following| following.slot == slot && following.epoch == frame.epoch();
        if self.following.as_ref().filter(is_followed).is_none() {
            return Err(format!("{} came without a copy in front of it", kind(&frame)));
        }
        let order = match frame {
            Replication::SnapshotPart { part, .. } => Order::Part(part.to_vec()),
            Replication::SnapshotEnd { position, .. } => Order::End(position),
            Replication::Control { position, operation, .. } => Order::Operation(position, operation.to_vec()),
            other => return Err(format!("{} is not understood by this version", kind(&other))),
        };
        if self.follower.order(order) { Ok(()) } else { Err("changes come faster than the disk takes them".into()) }
    }

    fn begin_to_follow(&mut self, slot: usize, epoch: Epoch) -> Result<(), String> {
        let is_leaders = epoch == self.member.epoch() && epoch.owner() == self.partner() && self.leader.is_none();
        if !is_leaders {
            return Err(format!("a copy came from who does not lead in epoch {}", self.member.epoch()));
        }
        if !matches!(self.data, Data::Free | Data::Follower) {
            return Err("the database is still in use here".into());
        }
        self.data = Data::Follower;
        self.sessions += 1;
        self.following = Some(Following { slot, session: self.sessions, epoch });
        self.follower.order(Order::Begin { session: self.sessions });
        Ok(())
    }

    fn close(&mut self, slot: usize) {
        if let Some(node) = self.links.close(slot, boot_time()) {
            self.lost(node);
        }
    }

    /// A node is not connected any more.
    fn lost(&mut self, node: Node) {
        tracing::info!(?node, "a node of the pair is not connected any more");
        if Some(node) != self.partner() {
            return;
        }
        self.following = None;
        self.backup_epoch = None;
        if let Some(leader) = &mut self.leader {
            leader.lost_backup();
            self.step(Input::BackupOut);
        }
    }
}

/// What the file of each copy begins with.
const COPY_FILE: &str = "bodkin.sqlite.copy-";

fn copy_path(data: &Path, number: u64) -> PathBuf {
    data.join(format!("{COPY_FILE}{number}"))
}

/// Removes what a killed process has left of its copies.
fn remove_copies(data: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(COPY_FILE) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A frame's name, for people.
fn kind(frame: &Replication<'_>) -> String {
    let text = format!("{frame:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn tell_log(tell: Tell) {
    match tell {
        Tell::NoMajority => tracing::warn!("THERE IS NO WITNESS: if the two nodes cannot reach each other, both may lead"),
        Tell::Forced(epoch) => tracing::warn!(%epoch, "this node leads because an operator wanted it: what was answered may be lost"),
        Tell::Cold(epoch) => tracing::warn!(%epoch, "this node leads without the messages that only memories held"),
        Tell::StrangerEpoch(epoch) => tracing::warn!(%epoch, "who is no member of the pair has shown a higher epoch; it changes nothing"),
        Tell::NotAMember(node) => tracing::warn!(?node, "a frame from a node that is no member of the pair was refused"),
        Tell::ForeignEpoch { from, epoch } => tracing::warn!(?from, %epoch, "a frame with an epoch that is not its sender's was refused"),
        Tell::Refused { by, reason } => tracing::info!(?by, ?reason, "another node of the pair neither grants nor votes"),
    }
}
