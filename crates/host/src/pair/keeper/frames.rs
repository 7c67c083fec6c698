//! What the leader sends on the replica channel, frame by frame.

use std::time::Duration;

use bodkin_broker::{
    BackupError, Output,
    timing::Wish,
    wire::{LinkFrame, Position, Replication},
};
use bodkin_store::{
    event_log::batch,
    following::{Followed, Following, QueueFull},
};

use super::{Copy, Ticket, Work, saved::Saved};
use crate::{
    inbox,
    pair::{
        News, Preparation, RequiredSubscriber,
        link::{Fault, Taken},
        local_of_utc_ns,
        node::{MISPLACED, kind},
    },
    shard::Kept,
};

/// Graphs of which checkpoints are kept.
const GRAPHS_MAX: usize = 1024;
/// Why a change goes nowhere.
const NOBODY: &str = "there is no local cloud here that follows";

impl Work {
    /// Takes a frame of the leader's; an error is the reason why the connection has to be closed.
    pub(super) fn take(&mut self, frame: LinkFrame<'_>) -> Result<Taken, Fault> {
        let LinkFrame::Replication(frame) = frame else { return Err("a ballot has come on the replica channel".into()) };
        let protocol = self.protocol;
        if frame.since_protocol() > protocol {
            return Err(Fault::new(MISPLACED, format_args!("{} has come, which protocol {protocol} does not have", kind(&frame))));
        }
        if frame.epoch() != self.epoch {
            let detail = format_args!("a frame of epoch {} has come on the replica channel of epoch {}", frame.epoch(), self.epoch);
            return Err(Fault::new("a frame is of another epoch", detail));
        }
        match (self.copy, &frame) {
            (Copy::Saving, _) => return Ok(Taken::Later),
            (Copy::Missing, Replication::SnapshotBegin { .. } | Replication::Numbered { .. } | Replication::Tail { .. })
            | (Copy::Coming(_), Replication::SnapshotPart { .. })
            | (Copy::Saved, _) => {}
            (Copy::Missing, _) => return Err(Fault::new(MISPLACED, format_args!("{} came without a copy in front of it", kind(&frame)))),
            (Copy::Coming(position), _) => {
                self.copy = Copy::Saving;
                let followed = self.number.map(|number| Followed { epoch: self.epoch.0, number });
                self.following()?.end(position, followed).map_err(too_fast)?;
                return Ok(Taken::Later);
            }
        }
        let taken = self.replicated(frame);
        self.free();
        taken
    }

    fn replicated(&mut self, frame: Replication<'_>) -> Result<Taken, Fault> {
        let told = |error: BackupError| Fault::new("the Backup refuses a frame", error);
        match frame {
            Replication::SnapshotBegin { position, .. } => {
                let session = self.begin_session(position);
                self.needs_copy = false;
                self.copy = Copy::Coming(position);
                self.following()?.begin(session);
            }
            Replication::Tail { position, .. } => {
                tracing::info!(number = self.number, "what this node has of the leader's changes counts: it is sent those behind them");
                let session = self.begin_session(position);
                // Nothing else is read until the database has told its topics.
                self.copy = Copy::Saving;
                self.following()?.resume(session, position);
            }
            Replication::Numbered { number, .. } => self.number = Some(number),
            Replication::SnapshotPart { part, .. } => self.following()?.part(part.to_vec()).map_err(too_fast)?,
            Replication::SnapshotEnd { position, .. } => self.backup.end_snapshot(position).map_err(told)?,
            Replication::Control { position, operation, .. } => {
                self.backup.control(position).map_err(told)?;
                let followed = self.next_number();
                if batch::is_batch(operation) {
                    self.saved.records(position, operation.len()).map_err(|why| Fault::new("records wait for the disk", why))?;
                    let ticket = Ticket { session: self.session, position };
                    let shard = &self.follows.as_ref().ok_or(NOBODY)?.shard;
                    shard.post(inbox::Message::Pair(News::Records { batch: operation.into(), ticket }));
                } else {
                    self.saved.change(position);
                    self.following()?.operation(position, followed, operation.to_vec()).map_err(too_fast)?;
                }
            }
            Replication::StreamOpen { stream, publisher, incarnation, topic, .. } => {
                match self.backup.open_stream(stream, topic, publisher, incarnation) {
                    // One of the changes that are under way may declare the topic.
                    Err(BackupError::Topic) if self.saved.awaits_changes() => return Ok(Taken::Later),
                    Err(BackupError::Topic) => {
                        tracing::warn!(
                            topic,
                            "the leader keeps events of a topic that is not declared here: are the configurations the same?"
                        );
                        let Some(follows) = &self.follows else { return Err(NOBODY.into()) };
                        let (undeclared, terms) = follows.topics.undeclared(topic);
                        self.admit(undeclared, terms);
                        self.backup.open_stream(stream, topic, publisher, incarnation).map_err(told)?;
                    }
                    opened => opened.map_err(told)?,
                }
            }
            Replication::StreamClose { stream, .. } => self.backup.close_stream(stream, &mut self.outputs).map_err(told)?,
            Replication::Discard { stream, through, .. } => self.backup.discard(stream, through, &mut self.outputs).map_err(told)?,
            Replication::Replica { position, stream, sequence, created_utc_ns, payload, .. } => {
                let created = local_of_utc_ns(created_utc_ns, self.utc_ahead_ns);
                // Before it has a slot, which this node may lead with.
                let event = Kept::read(payload).map_err(|why| Fault::new("a replica cannot be read", why))?;
                if let Some(slot) = self.backup.keep(position, stream, sequence, created).map_err(told)? {
                    Kept::at(&mut self.kept, slot).keep_replica(&event);
                }
            }
            Replication::Graph { position, graph, checkpoint, .. } => {
                self.backup.checkpoint(position).map_err(told)?;
                self.keep_checkpoint(graph, checkpoint)?;
            }
            Replication::Required { wait_ns, topic, subscriber, .. } => {
                let wait = Duration::from_nanos(wait_ns);
                self.preparations.push(Preparation::Required(RequiredSubscriber { topic: topic.into(), name: subscriber.into(), wait }));
            }
            Replication::Asked { loss_tolerance, deadline_ns, topic, .. } => {
                // One of the changes that are under way may declare the topic.
                if self.saved.awaits_changes() {
                    return Ok(Taken::Later);
                }
                self.ask(topic, Wish::of_wire(loss_tolerance, deadline_ns));
            }
            Replication::NotRequired { topic, subscriber, .. } => {
                self.preparations.push(Preparation::NotRequired { topic: topic.into(), name: subscriber.into() });
            }
            other => return Err(Fault::new(MISPLACED, format_args!("{} does not belong on the replica channel", kind(&other)))),
        }
        Ok(Taken::Done)
    }

    /// Keeps a checkpoint in place of the graph's last one; an empty one means that the graph is removed.
    fn keep_checkpoint(&mut self, graph: &str, checkpoint: &[u8]) -> Result<(), Fault> {
        if checkpoint.is_empty() {
            self.graphs.remove(graph);
        } else if let Some(kept) = self.graphs.get_mut(graph) {
            kept.clear();
            kept.extend_from_slice(checkpoint);
        } else if self.graphs.len() < GRAPHS_MAX {
            self.graphs.insert(graph.into(), checkpoint.to_vec());
        } else {
            return Err(Fault::new("too many graphs", format_args!("checkpoints of more than {GRAPHS_MAX} graphs have come")));
        }
        Ok(())
    }

    /// What the leader keeps is told anew, behind this position; gives the session's name.
    fn begin_session(&mut self, position: Position) -> u64 {
        self.backup.begin_snapshot(position, &mut self.outputs);
        self.preparations.push(Preparation::NobodyRequired);
        self.graphs.clear();
        self.forget_asked();
        self.session += 1;
        self.saved = Saved::behind(position);
        self.session
    }

    fn following(&mut self) -> Result<&mut Following, Fault> {
        self.follows.as_mut().map(|follows| &mut follows.following).ok_or_else(|| NOBODY.into())
    }

    /// The next operation's number; of a leader that does not tell numbers there is none.
    fn next_number(&mut self) -> Option<Followed> {
        let number = self.number.as_mut()?;
        *number = number.checked_add(1)?;
        Some(Followed { epoch: self.epoch.0, number: *number })
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
}

fn too_fast(error: QueueFull) -> Fault {
    Fault::new("changes wait for the disk", error)
}
