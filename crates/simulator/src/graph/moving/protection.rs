//! The office as a pair: what its leader keeps it tells its Backup, and it dies at any instant at which that may lead.
//!
//! Changes of the database and checkpoints have one order on the channel. A step is answered when the Backup has its change, and the new version begins behind that. The Backup may have any part of what was
//! sent; it goes on from its database and its checkpoint, by the rules of the host (decision 160).

use std::collections::VecDeque;

use bodkin_broker::graph::{Cover, Taken, handover::Handover};

use super::{
    MoveFlaw, Place, World,
    calm::{Calm, LOADS},
    database::Database,
    office::{Office, Waits},
    operator, operator_with,
    press::at,
    state_of,
};
use crate::graph::Broken;

/// Events behind which a checkpoint is due, and nanoseconds behind the first of them.
const HELD_MAX: u64 = 3;
const WITHIN_NS: u64 = 200;

/// What a leader has besides.
pub(super) struct Protection {
    pub cover: Cover,
    /// Counts versions and leaders: a checkpoint of another one acknowledges nothing.
    begun: u64,
    standing: Standing,
    channel: VecDeque<Frame>,
    answers: VecDeque<Answer>,
    backup: Backup,
    /// Changes that were made, those that the Backup has, and those that are answered.
    changes: u64,
    replicated: u64,
    answered: u64,
    /// Versions that are at work, which is not noted yet.
    at_work: VecDeque<Place>,
}

/// What the leader knows of its Backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is recorded out of sync, and may not lead: nothing waits for it.
    Out,
    /// It is given everything, and may not lead yet: nothing waits for it.
    Joining,
    /// It has that, and may lack what was answered without it up to this change: what is new waits for it.
    Settling(u64),
    /// It may lead.
    InSync,
}

enum Frame {
    Change(u64, Database),
    Checkpoint(u64, Checkpoint),
    /// What a Backup that joins was to be given.
    End,
}

enum Answer {
    Change(u64),
    Checkpoint(u64),
    End,
}

struct Backup {
    database: Database,
    checkpoint: Option<Checkpoint>,
    has_joined: bool,
}

#[derive(Clone)]
struct Checkpoint {
    version: Place,
    mean: Option<Vec<u8>>,
    loads: u64,
    covered: Vec<Taken>,
}

fn cover(version: Place) -> Cover {
    // The part without the operator has no supplier on the other edge.
    Cover::new([if version == Place::Office { HELD_MAX } else { 0 }, HELD_MAX], WITHIN_NS)
}

impl Protection {
    /// Of a leader without a Backup.
    pub fn new(version: Place, begun: u64) -> Self {
        let backup = Backup { database: Database::new(), checkpoint: None, has_joined: false };
        Self {
            cover: cover(version),
            begun,
            standing: Standing::Out,
            channel: VecDeque::new(),
            answers: VecDeque::new(),
            backup,
            changes: 0,
            replicated: 0,
            answered: 0,
            at_work: VecDeque::new(),
        }
    }

    /// The Backup is to have a change.
    fn write(&mut self, database: Database) -> u64 {
        self.changes += 1;
        match self.standing {
            Standing::Out => self.answered = self.changes,
            Standing::Joining => {
                self.answered = self.changes;
                self.channel.push_back(Frame::Change(self.changes, database));
            }
            Standing::Settling(_) | Standing::InSync => self.channel.push_back(Frame::Change(self.changes, database)),
        }
        self.changes
    }

    /// Another version begins, which takes over what was taken.
    fn succeed(&mut self, from: Place, to: Place) {
        let before = std::mem::replace(&mut self.cover, cover(to));
        let is_kept =
            |supplier: bodkin_broker::graph::SupplierId| supplier.index() == LOADS || (from, to) == (Place::Office, Place::Office);
        self.cover.succeed(&before, |supplier| is_kept(supplier).then_some(supplier));
        self.cover.hasten();
        self.begun += 1;
    }

    /// A Backup that has everything that was answered may lead.
    fn settle(&mut self) {
        if matches!(self.standing, Standing::Settling(through) if through <= self.replicated) {
            self.standing = Standing::InSync;
        }
    }

    fn is_out(&self) -> bool {
        self.standing == Standing::Out
    }
}

impl Office {
    /// Changes the database; gives the change's number.
    pub fn write(&mut self, database: Database) -> u64 {
        self.database = database.clone();
        self.protection.as_mut().map_or(0, |protection| protection.write(database))
    }

    /// Whether it is on the way from one version to the next.
    pub fn is_changing(&self) -> bool {
        self.waits.is_some() || !self.database.is_settled()
    }

    /// Whether a change is where it is not lost.
    pub fn is_answered(&self, change: u64) -> bool {
        self.protection.as_ref().is_none_or(|protection| change <= protection.answered)
    }
}

impl World {
    /// A change that was made is where it is not lost: what it is about begins.
    pub(super) fn proceed(&mut self) {
        let office = &mut self.office;
        if office.waits.as_ref().is_none_or(|(change, _)| !office.is_answered(*change)) {
            return;
        }
        let (_, what) = office.waits.take().expect("it was just there");
        let from = office.version;
        match what {
            Waits::Gives => self.succeed(from, None),
            Waits::Takes(handover) => self.succeed(from, Some(&handover)),
            Waits::Forgets => {}
        }
        self.command_goes_on();
    }

    /// A version takes the place of the one before, with what has come with the operator.
    pub(super) fn succeed(&mut self, from: Place, brought: Option<&Handover>) {
        let to = self.office.database.runs;
        if let Some(protection) = &mut self.office.protection {
            protection.succeed(from, to);
        }
        match (to, brought) {
            (Place::Office, Some(handover)) => self.office_begins(handover),
            (Place::Office, None) => {}
            (Place::Press, _) => self.office_leaves(),
        }
        (self.office.version, self.office.is_held_up) = (to, false);
        self.let_go();
    }

    /// Where no Backup will lead, what is taken is acknowledged, and the version is at work.
    pub(super) fn let_go(&mut self) {
        let office = &mut self.office;
        let Some(protection) = office.protection.as_mut().filter(|protection| protection.is_out()) else { return };
        let mut told = Vec::new();
        protection.cover.let_go(&mut told);
        protection.at_work.push_back(office.version);
        self.acknowledge(told);
    }

    fn acknowledge(&mut self, told: Vec<Taken>) {
        for Taken { supplier, incarnation, through, .. } in told {
            if supplier.index() == LOADS {
                self.office.calm.acknowledged = self.office.calm.acknowledged.max(through.0);
            } else {
                self.office.acknowledge(incarnation, through);
            }
        }
    }

    /// It is noted that a version is at work.
    pub(super) fn note_at_work(&mut self) {
        let office = &mut self.office;
        let Some(version) = office.protection.as_mut().and_then(|protection| protection.at_work.pop_front()) else { return };
        if !office.database.is_settled() && version == office.database.runs {
            let database = office.database.is_at_work(version);
            office.write(database);
        }
    }

    /// Sends a checkpoint, if one is due.
    pub(super) fn send_checkpoint(&mut self) {
        let office = &mut self.office;
        let Some(protection) = office.protection.as_mut().filter(|protection| !protection.is_out()) else { return };
        if protection.cover.due_at().is_some_and(|due_at| due_at <= at(self.now)) {
            let checkpoint = Checkpoint {
                version: office.version,
                mean: office.operator.as_deref().map(state_of),
                loads: office.calm.taken,
                covered: protection.cover.taken().collect(),
            };
            protection.channel.push_back(Frame::Checkpoint(protection.begun, checkpoint));
            if protection.standing == Standing::Joining && !protection.channel.iter().any(|frame| matches!(frame, Frame::End)) {
                protection.channel.push_back(Frame::End);
            }
            protection.cover.sent();
        }
    }

    /// The Backup takes what was sent.
    pub(super) fn bring_to_backup(&mut self, most: u64) {
        let Some(Protection { channel, answers, backup, .. }) = &mut self.office.protection else { return };
        for frame in channel.drain(..channel.len().min(usize::try_from(most).unwrap_or(usize::MAX))) {
            answers.push_back(match frame {
                Frame::Change(number, database) => {
                    backup.database = database;
                    Answer::Change(number)
                }
                Frame::Checkpoint(begun, checkpoint) => {
                    backup.checkpoint = Some(checkpoint);
                    Answer::Checkpoint(begun)
                }
                Frame::End => {
                    backup.has_joined = true;
                    Answer::End
                }
            });
        }
    }

    /// The leader hears what it has.
    pub(super) fn hear_backup(&mut self, most: u64) {
        for _ in 0..most {
            let office = &mut self.office;
            let Some(protection) = &mut office.protection else { return };
            match protection.answers.pop_front() {
                Some(Answer::Change(number)) => {
                    protection.replicated = number;
                    protection.answered = protection.answered.max(number);
                    protection.settle();
                }
                Some(Answer::Checkpoint(begun)) if begun == protection.begun => {
                    let mut told = Vec::new();
                    protection.cover.arrived(&mut told);
                    protection.at_work.push_back(office.version);
                    self.acknowledge(told);
                }
                Some(Answer::Checkpoint(_)) => {}
                Some(Answer::End) => {
                    let is_early = self.flaw == Some(MoveFlaw::CountsTooEarly);
                    protection.standing = Standing::Settling(if is_early { 0 } else { protection.changes });
                    protection.settle();
                }
                None => return,
            }
        }
    }

    /// The Backup joins where there is none; one that is there may be recorded out of sync.
    pub(super) fn backup_changes(&mut self, may_leave: bool) {
        let office = &mut self.office;
        let Some(protection) = &mut office.protection else { return };
        match protection.standing {
            Standing::InSync | Standing::Settling(_) | Standing::Joining if may_leave => {
                protection.standing = Standing::Out;
                protection.channel.clear();
                protection.answers.clear();
                protection.answered = protection.changes;
                protection.cover.lost();
                self.let_go();
            }
            Standing::Out => {
                (protection.standing, protection.replicated) = (Standing::Joining, protection.changes);
                protection.backup = Backup { database: office.database.clone(), checkpoint: None, has_joined: false };
                protection.cover.lost();
                protection.cover.hasten();
            }
            Standing::InSync | Standing::Settling(_) | Standing::Joining => {}
        }
    }

    /// The leader dies with everything that is under way, if the Backup may lead; that goes on without a Backup of its own.
    pub(super) fn crash(&mut self) -> Result<(), Broken> {
        let Some(protection) = &mut self.office.protection else { return Ok(()) };
        if protection.standing != Standing::InSync || !protection.backup.has_joined {
            return Ok(());
        }
        let (database, checkpoint) = (protection.backup.database.clone(), protection.backup.checkpoint.take());
        let checkpoint = checkpoint.ok_or("the Backup is in sync and has no checkpoint")?;
        let begun = protection.begun + 1;
        self.count_crash(&database, checkpoint.version);
        self.cut();
        self.command_is_interrupted();
        let calm = std::mem::take(&mut self.office.calm);
        self.office = Office::led_next(database, Calm { brought: calm.acknowledged, taken: 0, ..calm });
        self.go_on_from(&checkpoint, begun);
        Ok(())
    }

    fn count_crash(&mut self, database: &Database, version: Place) {
        self.tally.crashes += 1;
        let is_waiting = self.office.waits.is_some();
        self.tally.crashes_before += u64::from(is_waiting && database.runs != self.office.database.runs);
        self.tally.crashes_between += u64::from(version != database.runs);
        self.tally.crashes_behind += u64::from(version == database.runs && !database.is_settled());
    }

    /// The next leader's graph: the version before from its checkpoint, and the present one in its place; or that from its checkpoint.
    fn go_on_from(&mut self, checkpoint: &Checkpoint, begun: u64) {
        let Database { runs, previous, taken, .. } = self.office.database.clone();
        let previous = previous.filter(|_| self.flaw != Some(MoveFlaw::ForgetsTheVersionBefore));
        let brought = taken.as_deref().and_then(|bytes| Handover::decode(bytes).ok());
        let is_known = previous == Some(checkpoint.version) || checkpoint.version == runs;
        self.office.protection = Some(Protection::new(if is_known { checkpoint.version } else { runs }, begun));
        if is_known {
            self.restore(checkpoint);
        } else if runs == Place::Office {
            self.office.operator = Some(operator());
        }
        if !is_known || previous == Some(checkpoint.version) {
            self.succeed(if is_known { checkpoint.version } else { runs }, brought.as_ref());
        }
        // Whoever was waited for by the leader before is waited for: its own link takes the session over.
        if self.office.operator.is_some() && !self.office.is_hearing {
            self.hear_press();
        }
        self.let_go();
    }

    fn restore(&mut self, checkpoint: &Checkpoint) {
        let office = &mut self.office;
        office.operator = checkpoint.mean.as_deref().map(operator_with);
        office.calm.taken = checkpoint.loads;
        let protection = office.protection.as_mut().expect("it is a pair");
        protection.cover.inherit(&checkpoint.covered);
        protection.cover.hasten();
        checkpoint.covered.iter().filter(|taken| taken.supplier.index() != LOADS).for_each(|taken| office.carried.take(taken));
    }

    /// Everything of the pair that is under way comes to its end.
    pub(super) fn settle_pair(&mut self) -> Result<(), Broken> {
        if self.office.protection.is_none() {
            return Ok(());
        }
        self.take_loads(64)?;
        self.send_checkpoint();
        self.bring_to_backup(u64::MAX);
        self.hear_backup(u64::MAX);
        self.note_at_work();
        self.proceed();
        Ok(())
    }
}
