//! The Primary's side of the replica link: postponed replicas, what a joining Backup is given, acknowledgements, control operations.

use super::{Output, Shard, Work};
use crate::{
    edf::BACKGROUND,
    event::{Sequence, TopicId},
    replication::{AckAhead, BackupStanding, InFlight},
    slot::{Message, NONE},
    stream::Linked,
    terms::Terms,
    time::Instant,
    wire::{Position, StreamNumber},
};

/// Streams that are looked at for a joining Backup in one step.
const GIVEN_PER_STEP: u32 = 256;

impl<R> Shard<R> {
    /// Whether a Backup that may lead was sent every mark that is not covered.
    pub fn has_sent_replicas(&self) -> bool {
        self.replication.standing == BackupStanding::InSync && self.replication.pending.is_empty()
    }

    /// Puts a mark into the row of replicas, to be sent as late as its deadline allows.
    pub(super) fn postpone_replica(&mut self, slot: u32, terms: &Terms) {
        let Some(within_ns) = terms.replicate_within_ns else { return };
        let &Message { stream: index, sequence, .. } = self.streams.slots.at(slot);
        let session = self.replication.session;
        let next_position = self.replication.next_position();
        let linked = self.streams.at_mut(index).linked;
        if linked.session == session && sequence < linked.sent {
            // Filled in behind what was sent: all from here on is sent once more, in order, and only then is it acknowledged.
            let rewound = Sequence(sequence.0 - 1);
            let replicated = linked.replicated.min(rewound);
            self.streams.at_mut(index).linked = Linked { sent: rewound, replicated, counts_from: next_position, ..linked };
        }
        // Of a mark that is filled in, those behind it follow, whether they have been sent or wait.
        let mut slot = slot;
        while slot != NONE {
            let &Message { is_mark, created, next, .. } = self.streams.slots.at(slot);
            if is_mark {
                self.replication.postpone(terms.level.get(), slot, created.plus_nanos(within_ns), terms.replica_cost_ns);
                self.put_replicas_in_order(slot, terms);
            }
            slot = next;
        }
    }

    /// The replicas of a stream go out in its order, for what is acknowledged is a watermark: those in front of one that is due earlier are due
    /// as early.
    fn put_replicas_in_order(&mut self, slot: u32, terms: &Terms) {
        let pending = &mut self.replication.pending;
        let place = pending.place(slot).expect("the mark is pending");
        let (mut first, mut ahead) = (slot, self.streams.slots.at(slot).previous);
        while ahead != NONE {
            let message = self.streams.slots.at(ahead);
            if message.is_mark {
                if pending.place(ahead).is_none_or(|found| found <= place) {
                    break;
                }
                first = ahead;
            }
            ahead = message.previous;
        }
        // Of equal deadlines the one that was queued first goes first.
        while first != slot {
            let &Message { is_mark, next, .. } = self.streams.slots.at(first);
            if is_mark {
                pending.insert(place.0, first, place.1, terms.replica_cost_ns);
            }
            first = next;
            if first == slot {
                pending.insert(place.0, slot, place.1, terms.replica_cost_ns);
            }
        }
    }

    /// Sends a mark.
    pub(super) fn replicate(&mut self, now: Instant, due: Instant, slot: u32, outputs: &mut Vec<Output>) -> Work {
        self.replication.take(now, slot);
        self.counters.replicated += 1;
        self.counters.replicated_late += u64::from(now > due);
        let &Message { stream: index, sequence, created, .. } = self.streams.slots.at(slot);
        self.declare(index, outputs);
        // A discard that waits for the end of the turn makes room that this replica may need.
        self.discard(index, outputs);
        let id = self.streams.id(index);
        let position = self.replication.send(InFlight::Replica { stream: id, sequence });
        let stream = self.streams.at_mut(index);
        stream.linked.sent = sequence;
        let (number, event) = (StreamNumber(stream.linked.number), stream.event(sequence));
        Work::Replicate { slot: self.streams.slots.id(slot), position, number, event, created }
    }

    /// Gives a stream its number in this session of the link.
    fn declare(&mut self, index: u32, outputs: &mut Vec<Output>) {
        let session = self.replication.session;
        if self.streams.at(index).linked.session == session {
            return;
        }
        let number = self.replication.declare();
        let stream = self.streams.id(index);
        self.streams.at_mut(index).linked = Linked { session, number, ..Linked::default() };
        outputs.push(Output::Declare { stream, number: StreamNumber(number) });
    }

    /// Takes the Backup's acknowledgement of everything on the channel up to `through`.
    pub fn acknowledged(&mut self, through: Position, outputs: &mut Vec<Output>) -> Result<(), AckAhead> {
        self.replication.check(through)?;
        while let Some((position, what)) = self.replication.acknowledged(through) {
            match what {
                InFlight::Replica { stream, sequence } => {
                    let Some(index) = self.streams.index(stream) else { continue };
                    let linked = &mut self.streams.at_mut(index).linked;
                    if position >= linked.counts_from {
                        linked.replicated = linked.replicated.max(sequence);
                    }
                    self.touch(index);
                    self.release(index, outputs);
                }
                InFlight::Control(operation) => outputs.push(Output::Replicated { operation }),
                InFlight::Checkpoint(checkpoint) => outputs.push(Output::Arrived { checkpoint }),
                InFlight::SnapshotEnd => outputs.push(Output::CaughtUp),
            }
        }
        Ok(())
    }

    /// The last position of the channel that was used; a session of the link says it to begin with.
    pub fn position(&self) -> Position {
        Position(self.replication.next_position() - 1)
    }

    /// Gives a control operation its place in the channel, in front of which all that was sent is, and behind which all that will be. `None`: the
    /// channel is full, or there is no session of the link.
    pub fn control(&mut self, operation: u64) -> Option<Position> {
        (self.replication.standing.has_link() && self.replication.has_room()).then(|| self.replication.send(InFlight::Control(operation)))
    }

    /// Gives a checkpoint of a graph its place in the channel, behind the graph's results ([`Self::replicate_next`]). `None`: the channel is full, or there is no session of the link.
    pub fn checkpoint(&mut self, checkpoint: u64) -> Option<Position> {
        (self.replication.standing.has_link() && self.replication.takes_replicas())
            .then(|| self.replication.send(InFlight::Checkpoint(checkpoint)))
    }

    /// Sends the next mark of a topic that waits to be replicated, before it is due: a checkpoint of the graph that has made it must not be at the Backup without it. `None`: none waits, or the
    /// channel is full.
    pub fn replicate_next(&mut self, now: Instant, topic: TopicId, outputs: &mut Vec<Output>) -> Option<Work> {
        if !self.replication.takes_replicas() {
            return None;
        }
        for at in 0..self.streams.of(topic).len() {
            let mut slot = self.streams.at(self.streams.of(topic)[at]).head;
            while slot != NONE {
                if let Some((_, due)) = self.replication.pending.place(slot) {
                    return Some(self.replicate(now, due, slot, outputs));
                }
                slot = self.streams.slots.at(slot).next;
            }
        }
        None
    }

    /// Holds replicas and checkpoints back, or lets them go on: the host's connection to a Backup that is not in sync has no room for them.
    pub fn hold_replicas(&mut self, is_held: bool) {
        self.replication.is_held = is_held;
    }

    /// The Backup stands differently.
    pub(super) fn backup_stands(&mut self, standing: BackupStanding, outputs: &mut Vec<Output>) {
        match standing {
            // The session that has begun with control operations goes on.
            BackupStanding::Joining if self.replication.standing == BackupStanding::CatchingUp => {}
            BackupStanding::CatchingUp | BackupStanding::Joining => self.replication.begin_session(),
            BackupStanding::Settling | BackupStanding::InSync => {
                let is_given = self.replication.standing.has_link() && self.replication.is_given;
                assert!(is_given, "a Backup is in sync when it has been given everything");
            }
            BackupStanding::Absent | BackupStanding::Out | BackupStanding::Lost => self.replication.end_session(),
        }
        self.replication.standing = standing;
        for at in (0..self.streams.occupied().len()).rev() {
            let index = self.streams.occupied()[at];
            self.touch(index);
            self.release(index, outputs);
        }
    }

    /// Whether a joining Backup is still to be given something.
    pub(super) fn is_giving(&self) -> bool {
        self.replication.standing == BackupStanding::Joining && !self.replication.is_given && self.replication.takes_replicas()
    }

    /// Gives a joining Backup the marks that are kept, a stream at a time, and the end of them when all are sent.
    pub(super) fn next_given(&mut self, now: Instant, outputs: &mut Vec<Output>) -> Option<Work> {
        if !self.is_giving() {
            return None;
        }
        let end = (self.replication.given + GIVEN_PER_STEP).min(self.streams.count() as u32);
        for index in self.replication.given..end {
            self.replication.given = index + 1;
            if self.streams.is_open(index) && self.give(index) {
                break;
            }
        }
        if let Some((by, slot)) = self.replication.due(now, BACKGROUND, 0) {
            return Some(self.replicate(now, by, slot, outputs));
        }
        // What is pending was due at once, and went out before it came to this.
        let is_all = self.replication.given as usize == self.streams.count();
        is_all.then(|| {
            self.replication.is_given = true;
            Work::EndSnapshot { position: self.replication.send(InFlight::SnapshotEnd) }
        })
    }

    /// Puts the marks of a stream into the background's row; false if there are none.
    fn give(&mut self, index: u32) -> bool {
        let cost_ns = self.topics.at(self.streams.at(index).identity.topic).terms().replica_cost_ns;
        let received = self.received(index);
        let mut slot = self.streams.at(index).head;
        let mut gives = false;
        while slot != NONE {
            let &Message { sequence, is_mark, is_shed, next, .. } = self.streams.slots.at(slot);
            let is_received = received.is_some_and(|received| received.since < sequence && sequence <= received.through);
            if is_mark && !is_shed && !is_received {
                self.replication.pending.insert(BACKGROUND, slot, Instant::default(), cost_ns);
                gives = true;
            }
            slot = next;
        }
        gives
    }
}
