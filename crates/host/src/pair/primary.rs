//! What a leader owes its Backup, and to its own clients an answer at the right time.
//!
//! It belongs to the shard's thread, which owns the order of the replica channel: the database's changes and the replicas of events go down one connection.
//! A change is answered when the Backup has it on its disk, or when it is recorded on two disks that the Backup is out of sync
//! (`docs/design/pair.md`, "Why nothing answered is lost"). How the Backup stands comes back as a value, for the broker's machine.

mod answers;
mod change_queue;
mod joining;
mod lack;
mod records;
mod tail;
mod terms;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, ErrorKind},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bodkin_broker::{
    Authority, BackupStanding, Epoch, EventId, Instant,
    member::Protection,
    wire::{LinkFrame, Position, Replication},
};
use bodkin_store::event_log::{self, RecordName};

use self::{answers::Commit, change_queue::ChangeQueue, lack::Lack, records::Parting, tail::Tail};
pub use self::{lack::Piece, terms::PairTerms};
use super::{
    COPY_FILE, PairHandle,
    link::{Fault, Left, Link, OUT_BYTES_MAX, Taken},
    links::{ASKED_SINCE, GRAPHS_SINCE, TAIL_SINCE},
    node::{MISPLACED, kind},
};
use crate::seldom::SeldomOf;

/// A Backup that is not in sync is sent more while less than this waits for the socket.
const COPY_AHEAD_BYTES: usize = 1 << 20;
/// The Backup may owe an acknowledgement for so many leases, and at least [`WAIT_MIN`], before it is given up.
const WAIT_LEASES: u32 = 4;
const WAIT_MIN: Duration = Duration::from_millis(200);
/// The same as long as it is given what it lacks: it writes a whole database.
const JOIN_MAX: Duration = Duration::from_secs(30);
/// Answer to clients that wait when this node stops leading. A REQ client has only the text to distinguish this from the refusal of a node that
/// "does not lead".
pub const NOT_KNOWN: &str = "It is not known whether the change counts: this node of the pair has stopped leading. Ask the other one.";

/// How far the session of the replica channel is.
enum Session {
    /// There is none.
    None,
    /// The connection is there; the Backup is not recorded as out of sync yet.
    Wanted,
    /// A copy of the database is being made.
    Asked,
    /// It is sent what it lacks of the database: the rest of a copy, if it needs one, and the changes behind that.
    CatchingUp { copy: Option<File> },
    /// It is being given what the shard keeps.
    Joining,
    /// It has everything, and the witness does not know yet.
    Settling,
    /// It may lead.
    InSync,
}

/// A committed operation on its way to the Backup.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its number among this leader's.
    pub number: u64,
    /// What it does.
    pub operation: Arc<[u8]>,
}

impl Change {
    /// Whether it goes to the Backup as it is, and not in a copy.
    pub fn fits_a_frame(&self) -> bool {
        self.operation.len() <= answers::OPERATION_BYTES_MAX
    }
}

/// The Backup cannot follow on this connection: the reason. A new one begins with a new copy.
#[derive(Debug)]
pub struct TooFar(pub &'static str);

/// Why a session of the replica channel ends.
#[derive(Debug)]
pub enum SessionEnd {
    /// The Backup has stopped or has connected again, or this node begins another epoch.
    Ordinary(&'static str),
    /// Something is wrong with this node, with the Backup, or between them.
    Fault(Fault),
}

impl From<&'static str> for SessionEnd {
    fn from(why: &'static str) -> Self {
        Self::Fault(why.into())
    }
}

impl From<Fault> for SessionEnd {
    fn from(why: Fault) -> Self {
        Self::Fault(why)
    }
}

impl From<io::Error> for SessionEnd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A process that ends with unread bytes leaves these.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => Self::Ordinary("the connection broke"),
            _ => Fault::new("the connection failed", error).into(),
        }
    }
}

/// See the module.
pub struct Primary {
    /// What it counts on.
    pub terms: PairTerms,
    pair: PairHandle,
    data: PathBuf,
    wait: Duration,
    epoch: Epoch,
    until: Instant,
    protection: Protection,
    session: Session,
    link: Option<Link>,
    /// Whether something is to be written to it that somebody waits for: all but what the Backup may forget.
    is_awaited: bool,
    /// Which connection it is of all that the node has handed over.
    serial: u64,
    /// Whether this node has stopped leading, and no epoch has begun since.
    is_fenced: bool,
    commits: VecDeque<Commit>,
    /// Batches of the event log that the Backup has not acknowledged: their number among the operations, and their first record.
    records: VecDeque<(u64, event_log::Position)>,
    /// What was answered without it.
    lack: Lack,
    /// Whether the Backup of this session has acknowledged everything that is kept.
    is_given: bool,
    /// Operations that were committed, and the last of them, for a Backup that was away.
    committed: u64,
    tail: Tail,
    /// Changes for this session that have no place in the channel yet.
    queue: ChangeQueue,
    /// Whether some of them wait for the socket.
    waits_for_socket: bool,
    /// What the Backup has said that it has: nothing yet, or up to which operation.
    have: Option<Option<u64>>,
    /// Where its event log parts from this node's.
    parting: Parting,
    /// The number that the Backup expects of the next operation; `None`: it is told no numbers.
    next_number: Option<u64>,
    /// Those that the Backup has, and those that it has when its copy is whole.
    replicated: u64,
    given: u64,
    /// The last operation that may have been answered without a Backup that has joined: it may not lead before it has that one, too.
    answered_alone: Option<u64>,
    copies: u64,
    /// What happens often, for the log.
    seldom: SeldomOf,
    /// Since when the Backup owes an acknowledgement.
    owed_since: Option<Instant>,
    /// When the Backup first acknowledged something while joining.
    joining_since: Option<Instant>,
    /// A replica whose acknowledgement is timed, and since when; one at a time.
    timed: Option<(Position, Instant)>,
    /// The last position that was acknowledged, and the last one of a change, whose acknowledgement waits for a disk.
    acknowledged: Position,
    changed: Position,
}

impl Primary {
    /// Of a node that keeps its database in `data`.
    pub fn new(pair: PairHandle, data: PathBuf, terms: PairTerms) -> Self {
        Self {
            terms,
            wait: (pair.lease * WAIT_LEASES).max(WAIT_MIN),
            pair,
            data,
            epoch: Epoch::NONE,
            until: Instant::default(),
            protection: Protection::Unsettled,
            session: Session::None,
            link: None,
            is_awaited: false,
            serial: 0,
            is_fenced: false,
            commits: VecDeque::new(),
            records: VecDeque::new(),
            lack: Lack::default(),
            is_given: false,
            committed: 0,
            tail: Tail::default(),
            queue: ChangeQueue::default(),
            waits_for_socket: false,
            have: None,
            parting: Parting::Known,
            next_number: None,
            replicated: 0,
            given: 0,
            answered_alone: None,
            copies: 0,
            seldom: SeldomOf::default(),
            owed_since: None,
            joining_since: None,
            timed: None,
            acknowledged: Position(0),
            changed: Position(0),
        }
    }

    /// The right to lead as it stands. It is asked at every turn: the lease grows without a word.
    pub fn authority(&mut self) -> Authority {
        let (epoch, until) = self.pair.leadership().read();
        // A new epoch begins with a message; until that is here this node does nothing in it.
        self.until = if epoch == self.epoch { until } else { Instant::default() };
        Authority { epoch: self.epoch, until: self.until }
    }

    /// Whether it may act at this instant.
    pub fn leads(&self, now: Instant) -> bool {
        now < self.until
    }

    /// When this node granted the leader before it its lease for the last time.
    pub fn granted_at(&self) -> Option<Instant> {
        self.pair.leadership().granted_at()
    }

    /// The epoch that it leads in, or has led in last.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// An epoch begins, in which nothing is known of the Backup.
    pub fn begin(&mut self, epoch: Epoch) -> BackupStanding {
        self.epoch = epoch;
        (self.protection, self.is_fenced) = (Protection::Unsettled, false);
        self.authority();
        self.lose_session(SessionEnd::Ordinary("a new epoch begins"))
    }

    /// Opens this node for requests: the shard has taken over in this epoch.
    pub fn complete_takeover(&self) {
        self.pair.leadership().takeover_completed(self.epoch);
    }

    /// This node does not lead any more: what was not answered may count or not.
    pub fn fenced(&mut self) {
        self.until = Instant::default();
        self.is_fenced = true;
        // Batches stay: the Backup may lack them when this node leads again.
        self.commits.drain(..).for_each(|commit| commit.group.lose(NOT_KNOWN));
    }

    /// The member has settled what may be counted on.
    pub fn protected(&mut self, protection: Protection) -> Option<BackupStanding> {
        self.protection = protection;
        let standing = match (protection, &self.session) {
            (Protection::Alone, Session::None) => Some(BackupStanding::Out),
            (Protection::Alone, Session::Wanted) => {
                self.session = Session::Asked;
                Some(BackupStanding::Out)
            }
            (Protection::Protected, Session::Settling) => {
                self.session = Session::InSync;
                Some(BackupStanding::InSync)
            }
            _ => None,
        };
        self.settle();
        standing
    }

    /// How the Backup stands as long as it has no session.
    pub fn standing(&self) -> BackupStanding {
        if self.protection == Protection::Alone { BackupStanding::Out } else { BackupStanding::Lost }
    }

    /// The Backup is there, with nothing that counts.
    pub fn connected(&mut self, link: Link, serial: u64) -> Option<BackupStanding> {
        let lost = self.link.is_some().then(|| self.lose_session(SessionEnd::Ordinary("the Backup has come anew")));
        self.parting = Parting::with(&link);
        (self.link, self.serial, self.have, self.next_number) = (Some(link), serial, None, None);
        self.session = if self.protection == Protection::Alone { Session::Asked } else { Session::Wanted };
        lost
    }

    /// The connection to the Backup is gone, or counts for nothing any more.
    pub fn lose_session(&mut self, end: impl Into<SessionEnd>) -> BackupStanding {
        if self.link.take().is_some() {
            match end.into() {
                SessionEnd::Ordinary(why) => {
                    self.seldom.due(why).into_iter().for_each(|times| tracing::info!(why, times, "the replica channel has ended"));
                }
                SessionEnd::Fault(why) => {
                    let due = self.seldom.due(why.kind);
                    due.into_iter().for_each(|times| tracing::warn!(why = why.to_string(), times, "the replica channel has ended"));
                }
            }
            self.pair.channel_ended(self.serial);
        }
        (self.session, self.answered_alone, self.queue) = (Session::None, None, ChangeQueue::default());
        if let Some((_, first)) = self.records.front() {
            self.lack.note(*first);
        }
        self.is_given = false;
        (self.owed_since, self.timed) = (None, None);
        (self.acknowledged, self.changed) = (Position(0), Position(0));
        self.pair.backup_out();
        if self.protection == Protection::Protected {
            self.protection = Protection::Unsettled;
        }
        self.standing()
    }

    /// Sends the changes that there is room for. `position` gives each its place in the channel, if that has one; the others wait for an acknowledgement.
    pub fn send_changes(&mut self, now: Instant, mut position: impl FnMut(u64) -> Option<Position>) {
        while self.takes_changes()
            && let Some(position) = self.queue.next().and_then(&mut position)
            && let Some(change) = self.queue.pop()
        {
            self.send_change(&change, position, now);
        }
        self.waits_for_socket = !self.queue.is_empty() && !self.takes_changes();
    }

    /// Sends a change, which is the next one of the channel.
    fn send_change(&mut self, change: &Change, position: Position, now: Instant) {
        if self.next_number.is_some_and(|next| next != change.number) {
            self.tell_number(change.number - 1);
        }
        self.next_number = self.next_number.map(|next| next + 1);
        self.changed = position;
        self.send(Replication::Control { epoch: self.epoch, position, operation: &change.operation });
        self.owe(now);
    }

    /// Whether the Backup is told what the broker keeps.
    pub fn is_giving(&self) -> bool {
        matches!(self.session, Session::Joining | Session::Settling | Session::InSync)
    }

    /// By how much the clock of the other candidate's host differs from ours at the least, in nanoseconds; `None`: it is not known.
    pub fn clock_difference_ns(&self) -> Option<u64> {
        self.pair.leadership().clock_difference_ns()
    }

    /// Whether the Backup takes what is asked of topics.
    pub fn knows_asked(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.protocol >= ASKED_SINCE)
    }

    /// Whether the Backup takes checkpoints of graphs.
    pub fn knows_graphs(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.protocol >= GRAPHS_SINCE)
    }

    /// Sends a frame to the Backup.
    pub fn send(&mut self, frame: Replication<'_>) {
        if let Some(link) = &mut self.link {
            self.is_awaited |= !matches!(frame, Replication::Discard { .. } | Replication::StreamClose { .. });
            link.push(LinkFrame::Replication(frame));
        }
    }

    /// The node, to which a shard that follows answers.
    pub fn pair(&self) -> &PairHandle {
        &self.pair
    }

    /// Something has been sent that the Backup owes an acknowledgement for.
    pub fn owe(&mut self, now: Instant) {
        self.is_awaited = true;
        self.owed_since.get_or_insert(now);
    }

    /// A replica has this position. Its way is timed, unless that of another one is, or its acknowledgement waits for the Backup's disk.
    pub fn time(&mut self, position: Position, now: Instant) {
        let is_timely = matches!(self.session, Session::InSync) && self.acknowledged >= self.changed;
        if self.timed.is_none() && is_timely {
            self.timed = Some((position, now));
        }
    }

    /// The Backup has acknowledged everything up to a position, of those that were sent. Gives how long the replica that was timed took there and back, in nanoseconds.
    pub fn acknowledged(&mut self, position: Position, sent: Position, now: Instant) -> Option<u64> {
        self.owed_since = (position < sent).then_some(now);
        self.acknowledged = position;
        if matches!(self.session, Session::Joining) {
            let since = *self.joining_since.get_or_insert(now);
            let is_slow = now > since.plus(JOIN_MAX);
            if let Some(times) = is_slow.then(|| self.seldom.due("slow")).flatten() {
                let reason = "it takes changes and replicas only as fast as new ones come, and cannot take over until it is in sync";
                tracing::warn!(reason, joining_for = ?now.since(since), times, "the standby has been joining for more than 30 s, and is not in sync");
            }
        }
        let (_, since) = self.timed.take_if(|(timed, _)| *timed <= position)?;
        Some(u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The Backup has everything: from now on nothing is answered without it.
    pub fn caught_up(&mut self) -> BackupStanding {
        self.session = Session::Settling;
        self.replicated = self.replicated.max(self.given);
        self.answered_alone = Some(self.queue.last_queued());
        self.tell_in_sync();
        BackupStanding::Settling
    }

    /// The member hears that the Backup has everything when it has what was answered while it was given the rest, too.
    fn tell_in_sync(&mut self) {
        if self.answered_alone.take_if(|answered| *answered <= self.replicated).is_some() {
            // It says so too, when it is asked. A Backup that is lost before it has heard of it leaves the leader as it was.
            self.protection = Protection::Unsettled;
            self.pair.backup_in_sync(self.epoch);
        }
    }

    /// The replica channel's connection.
    pub fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// Reads the Backup's acknowledgements: the last one that came, and whether there is more to be read.
    pub fn read(&mut self, now: Instant) -> Result<(Option<Position>, bool), SessionEnd> {
        let Some(link) = &mut self.link else { return Ok((None, false)) };
        let left = link.read(now)?;
        let (mut last, own) = (None, self.epoch);
        let (have, parting) = (&mut self.have, &mut self.parting);
        link.take_frames(|frame| match frame {
            LinkFrame::Replication(Replication::Ack { epoch, position }) if epoch == own => {
                last = Some(position);
                Ok(Taken::Done)
            }
            LinkFrame::Replication(Replication::Have { epoch, number }) if epoch == own && have.is_none() => {
                *have = Some(number);
                Ok(Taken::Done)
            }
            LinkFrame::Replication(Replication::Logged { epoch, time_utc_ns, publisher, incarnation, topic, sequence })
                if epoch == own && have.is_none() =>
            {
                let id = EventId { publisher, incarnation, topic, sequence };
                parting.name(RecordName { time_ns: time_utc_ns, id }).map(|()| Taken::Done)
            }
            LinkFrame::Replication(other) => {
                let (kind, epoch) = (kind(&other), other.epoch());
                let detail = format_args!("{kind} of epoch {epoch} is not what a Backup says on its channel in epoch {own}");
                Err(Fault::new(MISPLACED, detail))
            }
            LinkFrame::Ballot(_) => Err("a ballot has come on the replica channel".into()),
        })?;
        if left == Left::End && last.is_none() {
            return Err(SessionEnd::Ordinary("the Backup has closed it"));
        }
        Ok((last, left != Left::Nothing))
    }

    /// Whether something that somebody waits for is to be written.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Writes what the socket takes; the Backup must not be too far behind.
    pub fn flush(&mut self) -> Result<(), SessionEnd> {
        self.is_awaited = false;
        let Some(link) = &mut self.link else { return Ok(()) };
        link.flush()?;
        if link.queued() > OUT_BYTES_MAX { Err("it takes changes and replicas too slowly".into()) } else { Ok(()) }
    }

    /// When the Backup is given up unless something comes from it.
    pub fn gives_up_at(&self) -> Option<Instant> {
        let wait = match self.session {
            Session::Settling | Session::InSync => self.wait,
            _ => JOIN_MAX,
        };
        self.owed_since.map(|since| since.plus(wait))
    }

    /// Tells everybody who waits that it is not known whether what they changed counts: nothing is left that could know.
    pub fn end(&mut self) {
        self.fenced();
    }
}
