//! The edge that fetches as a pair: checkpoints on their way to the Backup, and leaders that die.

use std::collections::VecDeque;

use bodkin_broker::graph::{Carried, Cover, Taken};

use super::{Edges, at};

/// Events behind which a checkpoint is due, and nanoseconds behind the first of them.
const HELD_MAX: u64 = 8;
const WITHIN_NS: u64 = 200;

/// What the office has besides where it is a pair.
pub(super) struct Protection {
    pub cover: Cover,
    /// Counts deployments and leaders: a checkpoint of another one acknowledges nothing.
    begun: u64,
    standing: Standing,
    channel: VecDeque<Checkpoint>,
    /// What the Backup says: whose checkpoint it has.
    answers: VecDeque<u64>,
    backup: Option<Checkpoint>,
}

/// Whether there is a Backup that takes checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is recorded out of sync: what is taken is acknowledged without it, and it may not lead.
    Out,
    /// It joins or has joined; it may lead when it has a checkpoint of this leader.
    There,
}

struct Checkpoint {
    begun: u64,
    taken: Vec<u64>,
    covered: Vec<Taken>,
}

impl Default for Protection {
    fn default() -> Self {
        Self { cover: cover(), begun: 0, standing: Standing::There, channel: VecDeque::new(), answers: VecDeque::new(), backup: None }
    }
}

fn cover() -> Cover {
    Cover::new([HELD_MAX], WITHIN_NS)
}

impl Protection {
    /// Another deployment goes on where this one was.
    pub fn succeed(&mut self) {
        let before = std::mem::replace(&mut self.cover, cover());
        self.cover.succeed(&before, Some);
        self.cover.hasten();
        self.begun += 1;
    }
}

impl Edges {
    /// Acknowledges what was taken of which no checkpoint will arrive.
    pub(super) fn let_go(&mut self) {
        let Some(protection) = self.protection.as_mut().filter(|protection| protection.standing == Standing::Out) else { return };
        let mut told = Vec::new();
        protection.cover.let_go(&mut told);
        self.owed.extend(told.into_iter().map(|taken| taken.through));
    }

    /// Sends a checkpoint, if one is due.
    pub(super) fn send_checkpoint(&mut self) {
        let Some(protection) = self.protection.as_mut().filter(|protection| protection.standing == Standing::There) else { return };
        if protection.cover.due_at().is_some_and(|due_at| due_at <= at(self.now)) {
            let covered = protection.cover.taken().collect();
            protection.channel.push_back(Checkpoint { begun: protection.begun, taken: self.taken.clone(), covered });
            protection.cover.sent();
        }
    }

    /// The Backup has one.
    pub(super) fn bring_checkpoint(&mut self) {
        let Some(protection) = &mut self.protection else { return };
        if let Some(checkpoint) = protection.channel.pop_front() {
            protection.answers.push_back(checkpoint.begun);
            protection.backup = Some(checkpoint);
        }
    }

    /// The leader hears that.
    pub(super) fn hear_backup(&mut self) {
        let Some(protection) = &mut self.protection else { return };
        if protection.answers.pop_front().is_some_and(|begun| begun == protection.begun) {
            let mut told = Vec::new();
            protection.cover.arrived(&mut told);
            self.owed.extend(told.into_iter().map(|taken| taken.through));
        }
    }

    /// The Backup joins where there is none; one that is there may be recorded out of sync.
    pub(super) fn backup_changes(&mut self, may_leave: bool) {
        let Some(protection) = &mut self.protection else { return };
        match protection.standing {
            Standing::There if !may_leave => {}
            Standing::There => {
                (protection.standing, protection.backup) = (Standing::Out, None);
                protection.channel.clear();
                protection.answers.clear();
                protection.cover.lost();
            }
            Standing::Out => {
                protection.standing = Standing::There;
                protection.cover.hasten();
            }
        }
        self.let_go();
    }

    /// The leader dies with everything that is under way, if the Backup may lead: it goes on from its checkpoint, without a Backup of its own.
    pub(super) fn crash(&mut self) {
        let Some(Checkpoint { taken, covered, .. }) = self.protection.as_mut().and_then(|protection| protection.backup.take()) else {
            return;
        };
        self.tally.crashes += 1;
        self.tally.crashes_with_unsafe += u64::from(taken.len() < self.taken.len());
        self.begin_anew();
        self.carried = Carried::default();
        self.taken = taken;
        let begun = self.protection.as_ref().map_or(0, |protection| protection.begun + 1);
        let mut next = Protection { begun, standing: Standing::Out, ..Protection::default() };
        next.cover.inherit(&covered);
        next.cover.hasten();
        self.protection = Some(next);
    }
}
