//! A node that follows: what the host does around the Backup.

use bodkin_broker::{
    Backup, Epoch, Instant, Node, Output,
    wire::{LinkFrame, Position, Replication},
};

use super::{leader::Here, link_packet};
use crate::{
    aside::Aside,
    effects::{Effects, Fact},
    network::ProcessId,
};

/// Topics that the Primary may have.
const TOPICS_MAX: usize = 100;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Follower {
    pub backup: Backup,
    pub leader: Node,
    pub epoch: Epoch,
    /// By slot.
    pub payloads: Vec<u64>,
    outputs: Aside<Vec<Output>>,
    /// Control operations that are on their way to the disk: their place in the channel.
    unsaved: Vec<u64>,
}

impl Follower {
    /// A follower that has nothing of this leader's.
    pub fn new(here: Here<'_>, leader: Node, epoch: Epoch) -> Self {
        let mut backup = Backup::new();
        for (number, topic) in (0..).zip(&here.workload.topics) {
            backup.admit(&topic.name, here.workload.terms(number), TOPICS_MAX).expect("there are fewer topics than the limit");
        }
        Self { backup, leader, epoch, payloads: Vec::new(), outputs: Aside::default(), unsaved: Vec::new() }
    }

    /// A frame of the leader's. Gives whether the Backup has begun or ceased to be complete.
    pub fn replicated(&mut self, here: Here<'_>, frame: Replication<'_>, control: &mut Vec<u64>, effects: &mut Effects) -> Option<bool> {
        if frame.epoch() != self.epoch {
            return None;
        }
        let was_in_sync = self.backup.is_in_sync();
        let taken = match frame {
            Replication::SnapshotBegin { position, .. } => {
                self.backup.begin_snapshot(position, &mut self.outputs);
                Ok(())
            }
            Replication::SnapshotPart { part, .. } => {
                *control = part.chunks_exact(8).map(|digest| u64::from_be_bytes(digest.try_into().expect("eight bytes"))).collect();
                Ok(())
            }
            Replication::SnapshotEnd { position, .. } => self.backup.end_snapshot(position),
            Replication::StreamOpen { stream, publisher, incarnation, topic, .. } => {
                self.backup.open_stream(stream, topic, publisher, incarnation)
            }
            Replication::StreamClose { stream, .. } => self.backup.close_stream(stream, &mut self.outputs),
            Replication::Discard { stream, through, .. } => self.backup.discard(stream, through, &mut self.outputs),
            Replication::Control { position, operation, .. } => {
                control.push(u64::from_be_bytes(operation.try_into().expect("an operation is its digest")));
                effects.sync = Some(position.0);
                self.unsaved.push(position.0);
                self.backup.control(position)
            }
            Replication::Replica { position, stream, sequence, created_utc_ns, payload, .. } => {
                let created = i128::from(created_utc_ns) - here.clock.utc_minus_local_ns(here.now);
                let created = Instant::from_nanos(u64::try_from(created).unwrap_or(0));
                let payload = u64::from_be_bytes(payload.try_into().expect("a payload is its digest"));
                self.backup.keep(position, stream, sequence, created).map(|slot| {
                    if let Some(slot) = slot {
                        if self.payloads.len() <= slot.index() {
                            self.payloads.resize(slot.index() + 1, 0);
                        }
                        self.payloads[slot.index()] = payload;
                    }
                })
            }
            // What nodes say to each other apart from the channel.
            _ => Ok(()),
        };
        if let Err(error) = taken {
            effects.facts.push(Fact::ChannelBroken { process: here.process, error });
        }
        self.outputs.clear();
        let is_in_sync = self.backup.is_in_sync();
        (is_in_sync != was_in_sync).then_some(is_in_sync)
    }

    /// Control operations are on the disk.
    pub fn synced(&mut self, position: u64) {
        self.unsaved.retain(|unsaved| *unsaved > position);
        self.backup.saved(Position(position));
    }

    /// Acknowledges to the leader's process what is new, at the end of a turn.
    pub fn acknowledge(&mut self, leader: Option<ProcessId>, effects: &mut Effects) {
        if let Some(position) = self.backup.acknowledgement() {
            let frame = Replication::Ack { epoch: self.epoch, position };
            effects.sends.extend(leader.map(|leader| (leader, link_packet(&LinkFrame::Replication(frame)))));
        }
    }
}
