//! The thread above the shards: reads the other nodes' frames, asks the member's machine, carries out what it wants.
//!
//! It never waits for a disk: records, the follower's database and the local cloud's have threads of their own.

mod channel;
mod clocks;
mod disks;
mod greetings;
mod hand_over;
mod no_leader;

use std::{
    collections::VecDeque,
    fmt::{self, Write},
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, SystemTime},
};

use bodkin_broker::{
    Epoch, Incarnation, Instant, Node, PairId,
    member::{Input, Member, MemberConfig, Mode, Output, Peer, Protection},
    wire::{Ballot, LinkFrame, Record, Replication, Role},
};
use mio::{Events, Poll, Token};
use tokio::sync::mpsc::UnboundedSender;

pub use self::hand_over::{HandOverError, HandedOver};
use self::{
    channel::{Channel, ChannelPause},
    disks::Disks,
    greetings::Notices,
    hand_over::HandOver,
    no_leader::LeaderWatch,
};
use super::{
    COPY_FILE, Duty, Leadership, Message, News, PairConfig, PairError, Promoted,
    beat::Beat,
    boot_time,
    identity::PairTerms,
    keeper::{Keeper, KeeperMessage},
    link::{Fault, Left, Taken, take_frames},
    links::{self, CLOCKS_SINCE, DISK_SINCE, Introduction, Links, OwnName},
    record::{RecordFiles, RecordThread},
    troubles::{Trouble, name},
    trust::SharedTrust,
};
use crate::{
    inbox::{self, Inbox},
    peer_clock::PeerClock,
    realtime::Rank,
    seldom::SeldomOf,
};

/// Wakes the thread for its inbox.
pub const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// Readiness events taken in one turn.
const TURN_EVENTS_MAX: usize = 64;

/// The kind of a frame that is none of its connection's, or comes out of turn.
pub(super) const MISPLACED: &str = "a frame is out of place";

/// What the local cloud of this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cloud {
    /// There is none at present.
    Away,
    /// It follows: the keeper has its store.
    Follows,
    /// It is about to lead: the keeper was asked to give.
    Waits,
    /// It leads, or has led and nobody else does.
    Leads,
    /// Another node leads: it was told to end.
    Ends,
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
    /// The epoch that this node leads in, and what it may count on.
    leads: Option<Epoch>,
    protection: Protection,
    /// The shard of the local cloud that runs on the database.
    shard: Option<Arc<Inbox>>,
    cloud: Cloud,
    /// Whether another node is known to lead.
    follows: bool,
    /// A witness has none.
    keeper: Option<Keeper>,
    channel: Channel,
    channel_pause: ChannelPause,
    channels: u64,
    /// The connection that the frame at hand has made the replica channel.
    is_channel: bool,
    /// The epoch that the other candidate has shown on its present connection: the replica channel is of one that both know.
    partner_epoch: Option<Epoch>,
    /// What the other candidate's host shows, on its present connection.
    partner_clock: PeerClock,
    beat: Beat,
    beats: u64,
    /// Whether connections wait to be accepted.
    may_accept: bool,
    /// What happens often, for the log.
    seldom: SeldomOf,
    notices: Notices,
    leader_watch: LeaderWatch,
    /// The lead is being handed over.
    hand_over: Option<HandOver>,
    disks: Disks,
    is_ending: bool,
}

impl PairThread {
    pub fn new(
        config: PairConfig,
        trust: Option<SharedTrust>,
        keeper: Option<Keeper>,
        poll: Poll,
        inbox: Arc<Inbox<Message>>,
        leadership: Arc<Leadership>,
        duties: UnboundedSender<Duty>,
    ) -> Result<Self, PairError> {
        let now = boot_time();
        let member =
            MemberConfig::new(config.node, config.mode, config.lease, config.heartbeat, config.drift_ppm)?.with_new_pair(new_pair()?);
        let beat = Beat::new(config.heartbeat);
        let listen = |address| mio::net::TcpListener::bind(address).map_err(|error| PairError::Listen { address, error });
        let listener = config.listen.map(listen).transpose()?;
        let (files, record) = RecordFiles::open(&config.data)?;
        remove_copies(&config.data)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let incarnation = Incarnation(since_1970.as_nanos() as u64);
        let own = OwnName { node: config.node, incarnation, protocol: config.protocol, trust, terms: terms(&config) };
        let registry = poll.registry().try_clone()?;
        let links = Links::new(own, links::silence(config.lease), registry, listener, LISTENER, &config.others, now)?;
        Ok(Self {
            records: RecordThread {
                files,
                record,
                directory: config.data.clone(),
                keeps_data: config.node.partner().is_some(),
                leadership: leadership.clone(),
                inbox: inbox.clone(),
            }
            .start()?,
            keeper,
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
            leads: None,
            protection: Protection::Unsettled,
            shard: None,
            cloud: Cloud::Away,
            follows: false,
            channel: Channel::None(now),
            channel_pause: ChannelPause::default(),
            channels: 0,
            is_channel: false,
            partner_epoch: None,
            partner_clock: PeerClock::new(std::time::Instant::now()),
            beat,
            beats: 0,
            may_accept: false,
            seldom: SeldomOf::default(),
            notices: Notices::default(),
            leader_watch: LeaderWatch::new(now),
            hand_over: None,
            disks: Disks::default(),
            is_ending: false,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.links.listens_at()
    }

    /// Runs until it is told to end.
    pub fn run(mut self) -> io::Result<()> {
        let _membership = self.config.realtime.clone().enlist(Rank::Detector);
        let mut events = Events::with_capacity(TURN_EVENTS_MAX);
        self.tell_reached();
        if self.config.is_forced {
            self.step(Input::Force);
        }
        while !self.is_ending {
            let beat = self.beat.alone_at();
            let wake = self.member.next_timer().map_or(beat, |timer| timer.min(beat));
            let patience = if self.unread.is_empty() && !self.may_accept { wake.since(boot_time()) } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            self.turn(&events);
        }
        self.leadership.fence();
        self.tell_shard(News::Fenced);
        Ok(())
    }

    fn turn(&mut self, events: &Events) {
        let now = boot_time();
        // A lease that has run out in a pause counts before anything that waited meanwhile.
        self.step(Input::Tick);
        std::mem::take(&mut self.unread).into_iter().for_each(|slot| self.read(slot));
        self.may_accept |= events.iter().any(|event| event.token() == LISTENER);
        if self.may_accept {
            self.accept(now);
        }
        for event in events {
            match event.token() {
                LISTENER => {}
                WAKER => {}
                Token(slot) => {
                    self.links.is_ready(slot, event);
                    if event.is_readable() || event.is_error() || event.is_read_closed() {
                        self.read(slot);
                    }
                }
            }
        }
        self.take_messages();
        if self.beat.is_due(now) {
            self.beat(now);
        }
        self.watch_hand_over(now);
        self.change_over();
        self.make_channel(now);
        let lost = self.links.flush(boot_time());
        lost.into_iter().for_each(|node| self.lost(node));
    }

    fn beat(&mut self, now: Instant) {
        // A node that cannot write its record sends the same progress again: a witness has no status and no metrics of its own.
        self.beats += u64::from(!self.leadership.troubles().has(Trouble::Record));
        self.refuse_again(now);
        self.ask_clock();
        self.watch_disks(now);
        self.watch_leader(now);
        self.step(Input::Beat);
        self.links.begin_handshakes().into_iter().for_each(|slot| self.read(slot));
        let lost = self.links.beat(now, self.beats, self.introduction());
        lost.into_iter().for_each(|node| self.lost(node));
    }

    fn role(&self) -> Role {
        match self.config.node {
            Node::Witness => Role::Witness,
            _ if self.member.leading().is_some() => Role::Leader,
            _ => Role::Follower,
        }
    }

    fn introduction(&self) -> Introduction {
        Introduction { role: self.role(), epoch: self.member.epoch(), pair: self.member.pair() }
    }

    fn accept(&mut self, now: Instant) {
        let (accepted, may_accept) = self.links.accept(now, self.introduction());
        self.may_accept = may_accept;
        // A node of the pair greets at once, so that its first bytes may be here.
        accepted.into_iter().for_each(|slot| self.read(slot));
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
            Output::Send { to, ballot } => {
                self.beat.with_ballot();
                if matches!(ballot, Ballot::Grant { .. }) {
                    let now = boot_time();
                    self.leadership.grants(now);
                    self.leader_watch.found(now);
                }
                self.links.send(to, LinkFrame::Ballot(ballot));
            }
            Output::Persist(record) => self.records.send(record).expect("the record's thread lives as long as this one"),
            Output::Lead { epoch, until } => self.lead(epoch, until),
            Output::Fenced { epoch } => self.fenced(epoch),
            Output::Follow { leader, epoch } => {
                tracing::info!(?leader, %epoch, "another node of the pair leads");
                self.follows = true;
                self.end_other_channel(epoch);
                self.handed_over_to(leader, epoch);
            }
            Output::Protection(protection) => {
                tracing::info!(?protection, "what the leader of the pair may count on");
                if std::mem::replace(&mut self.protection, protection) == Protection::Protected {
                    tracing::warn!(
                        "this node leads, and its Backup is not in sync any more: another crash would lose what only memory holds"
                    );
                }
                self.leadership.protect(protection == Protection::Protected);
                self.tell_shard(News::Protection(protection));
            }
            Output::Disconnect { node, refusal } => self.disconnect(node, refusal),
            Output::Tell(tell) => self.tell(tell),
        }
    }

    fn lead(&mut self, epoch: Epoch, until: Instant) {
        let is_failover = self.follows || self.leadership.epoch() != Epoch::NONE;
        self.leadership.lead(epoch, until);
        self.leader_watch.found(boot_time());
        if self.leads == Some(epoch) {
            return;
        }
        self.leadership.protect(false);
        if is_failover {
            tracing::warn!(%epoch, node = ?self.config.node, "this node of the pair leads now");
        } else {
            tracing::info!(%epoch, node = ?self.config.node, "this node of the pair leads");
        }
        (self.leads, self.follows, self.protection) = (Some(epoch), false, Protection::Unsettled);
        self.end_other_channel(epoch);
        self.leads_in_hand_over();
        if self.cloud == Cloud::Leads {
            self.tell_shard(News::Leads { epoch });
        }
    }

    fn fenced(&mut self, epoch: Epoch) {
        self.leadership.fence();
        tracing::warn!(%epoch, "this node of the pair leads no more: it refuses what it is asked");
        self.leads = None;
        self.tell_shard(News::Fenced);
        self.fenced_in_hand_over();
    }

    /// Tells the shard, if there is one; one that begins later is told what counts then.
    fn tell_shard(&self, news: News) {
        if let Some(shard) = &self.shard {
            shard.post(inbox::Message::Pair(news));
        }
    }

    /// A local cloud has begun to follow.
    fn attached(&mut self, shard: Arc<Inbox>) {
        (self.shard, self.cloud) = (Some(shard), Cloud::Follows);
    }

    /// The local cloud's database is its own to write: its shard goes on with what was kept, and leads if this node still does.
    fn given(&mut self, given: Option<Box<Promoted>>) {
        self.cloud = Cloud::Leads;
        self.tell_shard(News::Given(given));
        if let Some(epoch) = self.leads {
            self.tell_shard(News::Leads { epoch });
            self.tell_shard(News::Protection(self.protection));
        }
        self.tell_duty(Duty::Lead);
    }

    /// The local cloud does what this node's part is: it leads, or ends, to follow anew.
    fn change_over(&mut self) {
        match self.cloud {
            Cloud::Follows if self.leads.is_some() => {
                self.cloud = Cloud::Waits;
                self.tell_keeper(KeeperMessage::Give);
            }
            Cloud::Leads if self.follows => {
                self.cloud = Cloud::Ends;
                self.tell_duty(Duty::Follow);
            }
            Cloud::Away | Cloud::Follows | Cloud::Waits | Cloud::Leads | Cloud::Ends => {}
        }
    }

    fn tell_keeper(&self, message: KeeperMessage) {
        self.keeper.as_ref().expect("a candidate has a keeper").tell(message);
    }

    fn tell_duty(&self, duty: Duty) {
        // Who does not listen any more is ending.
        let _ = self.duties.send(duty);
    }

    fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Persisted => self.step(Input::Persisted),
                Message::Attached(shard) => self.attached(shard),
                Message::Detached => (self.shard, self.cloud) = (None, Cloud::Away),
                Message::Given(given) => self.given(given),
                Message::Warm(epoch) => self.step(Input::Warm { epoch }),
                Message::BackupOut => self.step(Input::BackupOut),
                Message::BackupInSync(epoch) if self.leads == Some(epoch) => self.step(Input::BackupInSync),
                Message::BackupInSync(_) => {}
                Message::ChannelEnded { serial } => self.channel_ended(serial),
                Message::HandOver(told) => self.hand_over(told),
                Message::Drained => self.drained(),
                Message::TrustChanged => self.refuse_again(boot_time()),
                Message::Lines(lines) => self.offer_lines(&lines),
                Message::End => self.tell_duty(Duty::End),
                Message::Stop => self.is_ending = true,
            }
        }
        self.messages = messages;
    }

    fn read(&mut self, slot: usize) {
        let Some(left) = self.links.read(slot, boot_time()) else { return };
        let mut received = std::mem::take(self.links.received(slot));
        let taken = take_frames(&mut received, |frame| self.take(slot, frame));
        if let Err(fault) = taken {
            self.closed_for(slot, &fault);
            return self.close(slot);
        }
        if !self.links.is_open(slot) {
            return;
        }
        *self.links.received(slot) = received;
        match left {
            _ if std::mem::take(&mut self.is_channel) => self.hand_channel_over(slot),
            Left::Nothing => {}
            Left::More => self.unread.push(slot),
            Left::End => self.close(slot),
        }
    }

    /// Takes one frame; an error is the reason why the connection has to be closed.
    fn take(&mut self, slot: usize, frame: LinkFrame<'_>) -> Result<Taken, Fault> {
        match (self.links.peer(slot), frame) {
            (None, LinkFrame::Replication(frame @ Replication::Greeting { .. })) if self.links.claims(slot).is_none() => {
                return Ok(self.greeted(slot, &frame));
            }
            (None, LinkFrame::Replication(frame @ Replication::Identity { .. })) => return self.identified(slot, &frame),
            (_, LinkFrame::Replication(Replication::Rejected { reason, text, .. })) => return self.rejected(slot, reason, text),
            (Some(from), LinkFrame::Replication(Replication::Duplicate { node, address, .. })) => {
                self.step(Input::Heard(from));
                self.duplicate_reported(from, node, address);
            }
            (peer, LinkFrame::Replication(Replication::Channel { epoch, protocol, protocol_min, node, incarnation })) => {
                return self.take_channel(slot, peer, epoch, (Peer { node, incarnation }, protocol, protocol_min));
            }
            (None, _) => return Err("a greeting was expected first".into()),
            (Some(from), LinkFrame::Ballot(ballot)) => {
                self.note_leader(from, &ballot);
                self.step(Input::Received { from, ballot });
            }
            (Some(from), LinkFrame::Replication(Replication::Heartbeat { epoch, progress })) => {
                self.step(Input::Heard(from));
                self.progressed(from, progress);
                if Some(from) == self.partner() {
                    self.partner_epoch = Some(epoch);
                }
            }
            (Some(from), LinkFrame::Replication(Replication::Disk { has_room, .. })) if self.links.speaks(from, DISK_SINCE) => {
                self.disk_reported(from, has_room);
            }
            (Some(from), LinkFrame::Replication(Replication::ClockRequest { sent_utc_ns, .. }))
                if self.links.speaks(from, CLOCKS_SINCE) =>
            {
                self.tell_clock(from, sent_utc_ns);
            }
            (Some(from), LinkFrame::Replication(Replication::ClockReply { sent_utc_ns, received_utc_ns, replied_utc_ns, .. }))
                if Some(from) == self.partner() =>
            {
                self.partner_clock.answered(sent_utc_ns, received_utc_ns, replied_utc_ns);
                self.leadership.clock_differs(self.partner_clock.difference_ns());
            }
            (Some(from), LinkFrame::Replication(Replication::LedgerLines { lines, .. })) if Some(from) == self.partner() => {
                self.step(Input::Heard(from));
                self.leadership.lines_offered(lines);
            }
            (Some(_), LinkFrame::Replication(frame)) => {
                return Err(Fault::new(MISPLACED, format_args!("{} does not belong on this connection", kind(&frame))));
            }
        }
        Ok(Taken::Done)
    }

    fn close(&mut self, slot: usize) {
        if let Some(node) = self.links.close(slot, boot_time()) {
            self.lost(node);
        }
    }

    fn tell_reached(&self) {
        let is_majority = self.config.mode == Mode::Majority;
        let witness = (is_majority && self.config.node != Node::Witness).then(|| self.links.has(Node::Witness));
        self.leadership.reaches(self.links.connected(), if is_majority { 2 } else { 1 }, witness);
    }

    /// A node's connection has ended.
    fn lost(&mut self, node: Node) {
        self.step(Input::Gone(node));
        self.not_connected(node);
    }

    /// A node is not connected any more, which the member knows.
    fn not_connected(&mut self, node: Node) {
        if self.is_told(node) {
            tracing::info!(?node, "a node of the pair is not connected any more");
        }
        self.tell_reached();
        self.forget_progress(node);
        if Some(node) != self.partner() {
            return;
        }
        self.partner_epoch = None;
        self.disks.forget_partner();
        self.partner_clock = PeerClock::new(std::time::Instant::now());
        self.leadership.clock_differs(None);
        self.tell_shard(News::BackupGone);
    }
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

/// A frame's name, for people. Its fields, of up to a megabyte, are not written out.
pub fn kind(frame: &Replication<'_>) -> String {
    struct FirstWord(String);

    impl Write for FirstWord {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let end = text.find([' ', '{']);
            self.0.push_str(&text[..end.unwrap_or(text.len())]);
            if end.is_some() { Err(fmt::Error) } else { Ok(()) }
        }
    }

    let mut name = FirstWord(String::new());
    // It ends behind the first word.
    let _ = write!(name, "{frame:?}");
    name.0
}

/// What the other nodes have to have alike.
fn terms(config: &PairConfig) -> PairTerms {
    let PairConfig { lease, heartbeat, detect_jitter, redirect, drift_ppm, topics, .. } = *config;
    PairTerms { lease, heartbeat, detect_jitter, redirect, drift_ppm, topics }
}

/// A name for the pair, should this node be its first leader.
fn new_pair() -> io::Result<PairId> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(PairId(u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use bodkin_broker::wire::Position;

    use super::*;

    #[test]
    fn kind_of_a_frame_is_its_name_alone() {
        let frame = Replication::Control { epoch: Epoch(1), position: Position(2), operation: b"INSERT" };
        assert_eq!(kind(&frame), "Control");
    }
}
