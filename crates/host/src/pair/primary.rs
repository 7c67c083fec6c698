//! What a leader owes its Backup, and to its own clients an answer at the right time.
//!
//! It belongs to the shard's thread, which owns the order of the replica channel: the database's changes and the replicas of events go down one connection.
//! A change is answered when the Backup has it on its disk, or when it is recorded on two disks that the Backup is out of sync
//! (`docs/design/pair.md`, "Why nothing answered is lost"). How the Backup stands comes back as a value, for the broker's machine.

mod lack;
mod records;
mod tail;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bodkin_broker::{
    Authority, BackupStanding, Epoch, EventId, Instant, ReplicationPolicy,
    member::Protection,
    wire::{LINK_FRAME_BYTES_MAX, LinkFrame, Position, Replication},
};
use bodkin_store::{
    event_log::{self, RecordName},
    replication::Group,
};

pub use self::lack::Piece;
use self::{lack::Lack, records::Parting, tail::Tail};
use super::{
    COPY_FILE, PairHandle,
    link::{Left, Link, OUT_BYTES_MAX, Taken},
    links::{ASKED_SINCE, GRAPHS_SINCE, TAIL_SINCE},
};
use crate::config::HostConfig;

/// Bytes of a piece of the copy, of which a turn sends one.
const PART_BYTES: usize = 64 * 1024;
/// The copy is read on while less than this waits for the socket.
const COPY_AHEAD_BYTES: usize = 1 << 20;
/// Changes that wait for the end of a copy; beyond, the Backup is to begin anew.
const TAIL_BYTES_MAX: usize = 64 << 20;
/// Largest operation that fits a frame beside its fields.
const OPERATION_BYTES_MAX: usize = LINK_FRAME_BYTES_MAX - 64;
/// The Backup may owe an acknowledgement for so many leases, and at least [`WAIT_MIN`], before it is given up.
const WAIT_LEASES: u32 = 4;
const WAIT_MIN: Duration = Duration::from_millis(200);
/// The same as long as it is given what it lacks: it writes a whole database.
const JOIN_MAX: Duration = Duration::from_secs(30);
/// What whoever waits for an answer is told when this node stops leading.
pub const NOT_KNOWN: &str = "This node of the pair does not lead any more; it is not known whether the change counts. Ask the other one.";

/// How far the session of the replica channel is.
enum Session {
    /// There is none.
    None,
    /// The connection is there; the Backup is not recorded as out of sync yet.
    Wanted,
    /// A copy of the database is being made.
    Asked,
    /// The copy is on its way; what is committed meanwhile waits behind it.
    Copying { file: File, tail: Vec<Change>, tail_bytes: usize },
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

/// A commit that is not answered.
struct Commit {
    /// The last operation of it, or in front of it.
    number: u64,
    group: Group,
}

/// The Backup cannot follow on this connection: the reason. A new one begins with a new copy.
#[derive(Debug)]
pub struct TooFar(pub &'static str);

/// What a leader counts on.
#[derive(Clone, Copy, Debug)]
pub struct PairTerms {
    /// x: how long publishers may be without a broker that takes their events, when the leader has stopped.
    pub failover: Duration,
    /// How long publishers may take to come back behind a promotion.
    pub redirect: Duration,
    /// When replicas go out.
    pub replication: ReplicationPolicy,
}

impl PairTerms {
    /// As the configuration has them.
    pub fn of(config: &HostConfig) -> Self {
        let [failover, redirect] =
            [config.platform.failover(), config.platform.lease.redirect].map(|time| Duration::from_nanos(time.get().unsigned_abs()));
        let (pace, backup_keeps) = (config.replication_pace, config.backup_keeps);
        Self { failover, redirect, replication: ReplicationPolicy { pace, backup_keeps, ..ReplicationPolicy::of(&config.platform) } }
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
    /// Since when the Backup owes an acknowledgement.
    owed_since: Option<Instant>,
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
            have: None,
            parting: Parting::Known,
            next_number: None,
            replicated: 0,
            given: 0,
            answered_alone: None,
            copies: 0,
            owed_since: None,
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
        self.lose_session("a new epoch begins")
    }

    /// This node does not lead any more: what was not answered may count or not.
    pub fn fenced(&mut self) {
        self.until = Instant::default();
        self.is_fenced = true;
        self.commits.drain(..).for_each(|commit| commit.group.lose(NOT_KNOWN));
        self.records.clear();
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
        let lost = self.link.is_some().then(|| self.lose_session("the Backup has come anew"));
        self.parting = Parting::with(&link);
        (self.link, self.serial, self.have, self.next_number) = (Some(link), serial, None, None);
        self.session = if self.protection == Protection::Alone { Session::Asked } else { Session::Wanted };
        lost
    }

    /// The connection to the Backup is gone, or counts for nothing any more.
    pub fn lose_session(&mut self, why: &str) -> BackupStanding {
        if self.link.take().is_some() {
            tracing::info!(why, "the replica channel has ended");
            self.pair.channel_ended(self.serial);
        }
        (self.session, self.answered_alone) = (Session::None, None);
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

    /// Where the database is to be copied to, if a copy has to be made now.
    pub fn wants_copy(&mut self, now: Instant) -> Option<PathBuf> {
        if !matches!(self.session, Session::Asked) || self.owed_since.is_some() || self.awaits_word() {
            return None;
        }
        self.copies += 1;
        self.owed_since = Some(now);
        Some(self.data.join(format!("{COPY_FILE}{}", self.copies)))
    }

    /// Whether the Backup has still to say what it has, or that has still to be looked for.
    fn awaits_word(&self) -> bool {
        let awaits_number = self.have.is_none() && self.link.as_ref().is_some_and(|link| link.protocol >= TAIL_SINCE);
        awaits_number || !matches!(self.parting, Parting::Known)
    }

    /// What the Backup lacks, if it has all but the last changes: they go out at once, and it stands as [`BackupStanding::Joining`]. `position` is the last one of
    /// the channel, `log_end` behind the last record of the event log.
    pub fn resume(&mut self, position: Position, log_end: event_log::Position, now: Instant) -> Option<Vec<Change>> {
        if !matches!(self.session, Session::Asked) || self.owed_since.is_some() || self.awaits_word() {
            return None;
        }
        let number = self.have??;
        let changes = self.tail.behind(number, self.committed)?;
        tracing::info!(changes = changes.len(), "the Backup is sent the changes that it lacks, and no copy");
        (self.session, self.given, self.owed_since) = (Session::Joining, number, Some(now));
        self.lack.begin_session(log_end);
        self.tell_number(number);
        self.send(Replication::Tail { epoch: self.epoch, position });
        Some(changes)
    }

    /// Tells the Backup that the next operation is the one behind this one, unless it does not ask for numbers.
    fn tell_number(&mut self, number: u64) {
        if self.link.as_ref().is_some_and(|link| link.protocol >= TAIL_SINCE) {
            self.send(Replication::Numbered { epoch: self.epoch, number });
            self.next_number = Some(number + 1);
        }
    }

    /// Sends a change, which is the next one of the channel.
    pub fn send_change(&mut self, change: &Change, position: Position, now: Instant) {
        if self.next_number.is_some_and(|next| next != change.number) {
            self.tell_number(change.number - 1);
        }
        self.next_number = self.next_number.map(|next| next + 1);
        self.changed = position;
        self.send(Replication::Control { epoch: self.epoch, position, operation: &change.operation });
        self.owe(now);
    }

    /// The copy is made: everything that was committed until now is in it. `position` is the last one of the channel, `log_end` behind the last record of the event
    /// log.
    pub fn copied(&mut self, path: &Path, position: Position, log_end: event_log::Position, now: Instant) -> Result<(), TooFar> {
        let opened = File::open(path);
        // Open or useless.
        let _ = fs::remove_file(path);
        if !matches!(self.session, Session::Asked) {
            return Ok(());
        }
        let file = opened.map_err(|_| TooFar("the copy of the database cannot be read"))?;
        self.given = self.committed;
        self.lack.begin_session(log_end);
        self.session = Session::Copying { file, tail: Vec::new(), tail_bytes: 0 };
        self.owed_since = Some(now);
        self.tell_number(self.given);
        self.send(Replication::SnapshotBegin { epoch: self.epoch, position });
        Ok(())
    }

    /// Sends the next piece of the copy. When all of it is sent: what has been committed meanwhile, which goes out behind it, when the Backup
    /// stands as [`BackupStanding::Joining`].
    pub fn pump(&mut self, now: Instant) -> Result<Option<Vec<Change>>, TooFar> {
        let (Session::Copying { file, tail, .. }, Some(link)) = (&mut self.session, &mut self.link) else { return Ok(None) };
        if link.queued() >= COPY_AHEAD_BYTES {
            return Ok(None);
        }
        self.owed_since = Some(now);
        let mut part = vec![0; PART_BYTES];
        let bytes = file.read(&mut part).map_err(|_| TooFar("the copy of the database cannot be read"))?;
        if bytes > 0 {
            link.push(LinkFrame::Replication(Replication::SnapshotPart { epoch: self.epoch, part: &part[..bytes] }));
            self.is_awaited = true;
            return Ok(None);
        }
        let tail = std::mem::take(tail);
        self.session = Session::Joining;
        Ok(Some(tail))
    }

    /// Whether the next piece of a copy can be sent at once.
    pub fn is_pumping(&self) -> bool {
        matches!((&self.session, &self.link), (Session::Copying { .. }, Some(link)) if link.queued() < COPY_AHEAD_BYTES)
    }

    /// Takes a commit into the row of those that wait for their answers; gives what has to go to the Backup now.
    pub fn committed(&mut self, mut group: Group) -> Result<Vec<Change>, TooFar> {
        let operations = std::mem::take(&mut group.operations);
        let first = self.committed + 1;
        self.committed += operations.len() as u64;
        self.commits.push_back(Commit { number: self.committed, group });
        let change = |(number, operation): (u64, Vec<u8>)| Change { number, operation: operation.into() };
        let changes: Vec<Change> = (first..).zip(operations).map(change).collect();
        changes.iter().for_each(|change| self.tail.push(change));
        let sent = self.in_order(changes)?;
        if self.is_fenced {
            self.fenced();
        }
        self.settle();
        Ok(sent)
    }

    /// What of these goes to the Backup now; behind a copy under way they wait, and without a session nobody needs them.
    fn in_order(&mut self, changes: Vec<Change>) -> Result<Vec<Change>, TooFar> {
        let is_long = changes.iter().any(|change| change.operation.len() > OPERATION_BYTES_MAX);
        Ok(match &mut self.session {
            Session::None | Session::Wanted | Session::Asked => Vec::new(),
            _ if is_long => return Err(TooFar("a change is larger than a frame")),
            Session::Copying { tail, tail_bytes, .. } => {
                *tail_bytes += changes.iter().map(|change| change.operation.len()).sum::<usize>();
                tail.extend(changes);
                if *tail_bytes > TAIL_BYTES_MAX {
                    return Err(TooFar("too many changes wait for the end of the copy"));
                }
                Vec::new()
            }
            Session::Joining | Session::Settling | Session::InSync => changes,
        })
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
        let (_, since) = self.timed.take_if(|(timed, _)| *timed <= position)?;
        Some(u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The Backup has the operation of this number on its disk.
    pub fn replicated(&mut self, number: u64) {
        self.replicated = self.replicated.max(number);
        self.settle();
        self.tell_in_sync();
    }

    /// Whether a change waits to be answered.
    pub fn owes_answers(&self) -> bool {
        !self.commits.is_empty()
    }

    /// The Backup has everything: from now on nothing is answered without it.
    pub fn caught_up(&mut self) -> BackupStanding {
        self.session = Session::Settling;
        // The member says so too, when it is asked: until then nothing may be answered that the Backup has not.
        self.protection = Protection::Unsettled;
        self.replicated = self.replicated.max(self.given);
        self.answered_alone = Some(self.committed);
        self.tell_in_sync();
        BackupStanding::Settling
    }

    /// The member hears that the Backup has everything when it has what was answered while it was given the rest, too.
    fn tell_in_sync(&mut self) {
        if self.answered_alone.take_if(|answered| *answered <= self.replicated).is_some() {
            self.pair.backup_in_sync(self.epoch);
        }
    }

    /// The replica channel's connection.
    pub fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// Reads the Backup's acknowledgements: the last one that came, and whether there is more to be read.
    pub fn read(&mut self, now: Instant) -> Result<(Option<Position>, bool), String> {
        let Some(link) = &mut self.link else { return Ok((None, false)) };
        let left = link.read(now).map_err(|error| error.to_string())?;
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
            LinkFrame::Replication(other) => Err(format!("{other:?} is not what a Backup says on its channel in epoch {own}")),
            LinkFrame::Ballot(_) => Err("a ballot has come on the replica channel".into()),
        })?;
        if left == Left::End && last.is_none() {
            return Err("the Backup has closed it".into());
        }
        Ok((last, left != Left::Nothing))
    }

    /// Whether something that somebody waits for is to be written.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Writes what the socket takes; the Backup must not be too far behind.
    pub fn flush(&mut self) -> Result<(), TooFar> {
        self.is_awaited = false;
        let Some(link) = &mut self.link else { return Ok(()) };
        link.flush().map_err(|_| TooFar("the connection broke"))?;
        if link.queued() > OUT_BYTES_MAX { Err(TooFar("it takes changes and replicas too slowly")) } else { Ok(()) }
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

    /// Whether answers wait for no Backup.
    fn is_alone(&self) -> bool {
        self.protection == Protection::Alone && !matches!(self.session, Session::Settling | Session::InSync)
    }

    /// Answers the commits that are safe.
    fn settle(&mut self) {
        let is_alone = self.is_alone();
        let replicated = if matches!(self.session, Session::InSync) { self.replicated } else { 0 };
        if !self.leads(super::boot_time()) {
            return;
        }
        while let Some(commit) = self.commits.pop_front_if(|commit| is_alone || commit.number <= replicated) {
            commit.group.release();
        }
        let acknowledged = self.replicated;
        while self.records.pop_front_if(|(number, _)| *number <= acknowledged).is_some() {}
        // What nobody has been sent is answered all the same.
        if is_alone
            && matches!(self.session, Session::None | Session::Wanted | Session::Asked)
            && let Some((_, first)) = self.records.front()
        {
            self.lack.note(*first);
            self.records.clear();
        }
    }
}
