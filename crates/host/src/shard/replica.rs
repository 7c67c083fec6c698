//! The leader's end of the replica channel: replicas and changes go out in the order of the broker's positions, acknowledgements come back, and nobody
//! else's thread is woken on the way.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::error::ArrowheadError;
use bodkin_broker::{
    BackupStanding, Epoch, EventId, Input, Instant, LeaderPermit, Output, Promotion, Refusal, Sequence, SlotId, StreamId,
    wire::{Position, Replication, StreamNumber, replica_frame},
};
use bodkin_store::{
    event_log::{self, EventLog},
    replication::Committed,
};
use mio::{Interest, Token, event::Event as Readiness};

use super::{Shard, Waiting, failover::Failover, not_taken::NotTaken, zmtp::Turn};
use crate::pair::{
    Fault, News, Promoted, RequiredSubscriber, boot_time,
    primary::{NOT_KNOWN, Primary, SessionEnd, TooFar},
};
use crate::topics::RealTimeTopic;

/// What subscribers asked of the leader before holds for so long behind a promotion, and for as long as any of them is waited for.
const ASKED_MIN: Duration = Duration::from_secs(10);

/// Publishers that had nobody to publish to send what has waited in so long: its way says nothing.
const BACKLOG_SENT: Duration = Duration::from_secs(2);

/// The connection to the Backup.
pub(super) const REPLICA_CHANNEL: Token = Token(usize::MAX - 3);

/// A publisher without a session that hears how far it is covered: it is answered when its event has gone out and is covered.
pub(super) struct Uncovered {
    publisher: Waiting,
    /// Where the event is in the log, if it has to be on the disk, too.
    position: Option<event_log::Position>,
}

/// Behind the last record of the event log.
fn end_of(log: Option<&EventLog>) -> event_log::Position {
    log.map_or(event_log::Position(0), EventLog::next_position)
}

impl Shard {
    /// Takes what the node of the pair, the store or the network says.
    pub(super) fn pair_tells(&mut self, news: News) {
        let now = self.clock.broker();
        let Some(primary) = &mut self.primary else { unreachable!("a cloud by itself has no pair") };
        match news {
            News::Given(Some(promoted)) => self.go_on_with(*promoted),
            News::Given(None) => {
                self.broker.take_over_nothing();
                self.await_nobody();
            }
            News::Leads { epoch } => {
                let begun = std::time::Instant::now();
                let standing = primary.begin(epoch);
                self.real_time.ways_count_from = self.clock.now + BACKLOG_SENT;
                self.renew_authority();
                self.stand(standing);
                self.open_for_requests();
                self.failover_is_told();
                self.tell_leadership();
                // Publishers turn to this node meanwhile.
                self.write_links(Turn::All);
                self.end_following();
                self.hear_inherited_publishers();
                tracing::info!(%epoch, took_us = begun.elapsed().as_micros(), "clients are told that this node leads");
            }
            News::Fenced => {
                primary.fenced();
                self.renew_authority();
                self.lose_publishers();
            }
            News::HandOver => self.prepare_hand_over(),
            News::HandOverEnds => self.hand_over_ends(),
            News::Protection(protection) => {
                let standing = primary.protected(protection);
                standing.into_iter().for_each(|standing| self.stand(standing));
            }
            News::Channel { link, serial } => {
                let standing = primary.connected(*link, serial);
                standing.into_iter().for_each(|standing| self.stand(standing));
                self.watch_channel();
            }
            News::Records { batch, ticket } => self.take_records(&batch, ticket),
            News::Prepare(preparations) => self.prepare_for(preparations),
            News::NameRecords { serial } => self.name_records(serial),
            News::Searched { serial, first } => primary.searched(serial, first),
            News::Lacking { serial, piece } => self.give_lacking(serial, piece),
            News::LogUnread { serial, why } => {
                let standing = primary.log_unread(serial, &why);
                standing.into_iter().for_each(|standing| self.stand(standing));
            }
            News::BackupGone => self.lose_backup(SessionEnd::Ordinary("the Backup is not connected any more")),
            News::Committed(Committed::Group(group)) => {
                let queued = primary.committed(group);
                self.send_queued(queued);
            }
            News::Committed(Committed::Copy(Ok(path))) => {
                // What the log has until now is given to the Backup from there, once.
                self.copy_records();
                let Some(primary) = &mut self.primary else { return };
                let (position, log_end) = (self.broker.position(), end_of(self.log.as_ref()));
                match primary.copied(&path, position, log_end, now) {
                    Ok(standing) => standing.into_iter().for_each(|standing| self.stand(standing)),
                    Err(TooFar(why)) => self.lose_backup(why),
                }
            }
            News::Committed(Committed::Copy(Err(why))) => {
                tracing::error!(why, "the Backup gets no copy");
                self.lose_backup("no copy of the database could be made");
            }
        }
    }

    /// Goes on with what this node has kept as a Backup, as it is. Topics and subscribers are here already. The streams wait for their publishers a while, and
    /// what is kept for required subscribers for them.
    fn go_on_with(&mut self, promoted: Promoted) {
        let Promoted { backup, kept, asked, graphs } = promoted;
        let (events, subscriptions, begun) = (backup.kept(), self.broker.subscription_count(), std::time::Instant::now());
        let primary = self.primary.as_mut().expect("who was a Backup is a node of a pair");
        let promotion = Promotion { authority: primary.authority(), redirect: primary.terms.redirect };
        self.failover = primary.granted_at().map(Failover::new);
        let outlived = backup.promote(boot_time(), promotion, &mut self.broker);
        // Not on this thread: publishers wait.
        self.context.runtime.spawn_blocking(move || drop(outlived));
        self.real_time.take_over(kept);
        self.await_graphs(graphs);
        if !asked.is_empty() {
            self.real_time.inherited = asked;
            self.real_time.inherited_until = self.clock.now + self.longest_wait().max(ASKED_MIN);
        }
        let took_us = begun.elapsed().as_micros();
        tracing::info!(events, subscriptions, took_us, "this node goes on with what it has kept");
    }

    /// Tells the Backup that a subscriber is required from now on, or not any more.
    pub(super) fn backup_knows_required(&mut self, topic: &str, subscriber: &str, wait: Option<Duration>) {
        let Some(primary) = self.primary.as_mut().filter(|primary| primary.is_giving()) else { return };
        let epoch = primary.epoch();
        primary.send(match wait {
            Some(wait) => Replication::Required { epoch, wait_ns: u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), topic, subscriber },
            None => Replication::NotRequired { epoch, topic, subscriber },
        });
    }

    /// Names all required subscribers to a Backup that joins.
    fn name_required(&mut self) {
        let all: Vec<RequiredSubscriber> = self.required().collect();
        all.iter().for_each(|required| self.backup_knows_required(&required.topic, &required.name, Some(required.wait)));
    }

    /// Tells the Backup what subscribers ask of a topic beyond its declaration.
    pub(super) fn backup_knows_asked(&mut self, topic: &RealTimeTopic) {
        let Some(primary) = self.primary.as_mut().filter(|primary| primary.is_giving() && primary.knows_asked()) else { return };
        let (loss_tolerance, deadline_ns) = topic.asked.to_wire();
        primary.send(Replication::Asked { epoch: primary.epoch(), loss_tolerance, deadline_ns, topic: &topic.event_type });
    }

    /// Tells a Backup that joins what is asked of all topics.
    fn name_asked(&mut self) {
        let asked: Vec<Arc<RealTimeTopic>> = self.real_time.asked().cloned().collect();
        asked.iter().for_each(|topic| self.backup_knows_asked(topic));
    }

    /// What the leader before was asked holds until its subscribers have come back and asked it here, or are not waited for any more.
    pub(super) fn forget_inherited(&mut self) {
        if self.clock.now >= self.real_time.inherited_until {
            let inherited = std::mem::take(&mut self.real_time.inherited);
            inherited.iter().for_each(|(topic, asker)| self.context.asking.forget(topic, *asker));
        }
    }

    /// A node of a pair begins without the right to lead, and with a Backup of which nothing is known.
    pub(super) fn begin_with_pair(&mut self) {
        let Some(primary) = &mut self.primary else { return };
        self.endpoint.follows = true;
        let standing = primary.standing();
        self.broker.set_replication(primary.terms.replication);
        self.renew_authority();
        self.stand(standing);
    }

    /// Begins to read a connection to the Backup.
    fn watch_channel(&mut self) {
        let Some(link) = self.primary.as_mut().and_then(Primary::link) else { return };
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(link.socket(), REPLICA_CHANNEL, both) {
            tracing::warn!(%error, "the replica channel cannot be read");
            return self.lose_backup("its connection cannot be read");
        }
        // What came with it raises no event.
        self.read_channel();
    }

    /// The lease grows without a word: every turn asks how long it is.
    pub(super) fn renew_authority(&mut self) {
        let Some(primary) = &mut self.primary else { return };
        let authority = primary.authority();
        self.broker.step(self.clock.broker(), Input::Authority(authority), &mut self.outputs);
    }

    /// Whether this node may act at this instant. In a turn that lasts longer than the lease that it has begun with, that is asked for anew.
    pub(super) fn leads(&mut self) -> bool {
        let leads = |primary: &Option<Primary>| primary.as_ref().is_none_or(|primary| primary.leads(boot_time()));
        leads(&self.primary) || {
            self.renew_authority();
            leads(&self.primary)
        }
    }

    fn open_for_requests(&self) {
        self.primary.iter().for_each(Primary::complete_takeover);
    }

    /// Returns the permit to accept one event.
    ///
    /// # Errors
    /// Returns [`Refusal::NotLeading`] until this node's takeover is complete, and from the end of its lease on.
    pub(super) fn leader_permit(&mut self) -> Result<LeaderPermit, NotTaken> {
        if !self.leads() {
            return Err(NotTaken::Broker(Refusal::NotLeading));
        }
        self.broker.permit().map_err(NotTaken::Broker)
    }

    /// The epoch that it acts in; none without a pair.
    pub(super) fn epoch(&self) -> Epoch {
        self.primary.as_ref().map_or(Epoch::NONE, Primary::epoch)
    }

    fn stand(&mut self, standing: BackupStanding) {
        // Replicas wait for changes no more when the Backup is in sync, and changes may declare their topics.
        self.send_changes();
        self.broker.step(self.clock.broker(), Input::Backup(standing), &mut self.outputs);
        self.carry_out_now();
        self.graphs_stand(standing);
        self.backup_stands(standing);
    }

    pub(super) fn lose_backup(&mut self, end: impl Into<SessionEnd>) {
        let Some(primary) = &mut self.primary else { return };
        let standing = primary.lose_session(end);
        self.stand(standing);
    }

    /// Sends changes of the database behind everything that was sent before, as far as there is room for them.
    fn send_changes(&mut self) {
        let (now, broker) = (self.clock.broker(), &mut self.broker);
        if let Some(primary) = &mut self.primary {
            primary.send_changes(now, |number| broker.control(number));
        }
        self.pace_replicas();
    }

    /// Has replicas wait as long as the connection to the Backup has no room for them.
    fn pace_replicas(&mut self) {
        let is_held = self.primary.as_ref().is_some_and(Primary::holds_replicas);
        self.broker.hold_replicas(is_held);
    }

    /// Sends what was queued, or gives the Backup up.
    pub(super) fn send_queued(&mut self, queued: Result<(), TooFar>) {
        match queued {
            Ok(()) => self.send_changes(),
            Err(TooFar(why)) => self.lose_backup(why),
        }
    }

    /// The Backup may have acknowledged something.
    pub(super) fn channel_is_ready(&mut self, readiness: &Readiness) {
        if let Some(link) = self.primary.as_mut().and_then(Primary::link) {
            link.is_ready(readiness);
        }
        self.read_channel();
    }

    pub(super) fn read_channel(&mut self) {
        let now = boot_time();
        loop {
            let Some(primary) = &mut self.primary else { return };
            let (last, is_more) = match primary.read(now) {
                Ok(read) => read,
                Err(end) => return self.lose_backup(end),
            };
            if let Some(position) = last {
                if let Err(error) = self.broker.acknowledged(position, &mut self.outputs) {
                    return self.lose_backup(Fault::new("it acknowledges what was not sent", error));
                }
                if let Some(round_trip_ns) = primary.acknowledged(position, self.broker.position(), now) {
                    self.context.stalls.backup_has_answered(round_trip_ns);
                }
                self.carry_out_now();
                // In front of replicas: a stream may be of a topic that a change declares.
                self.send_changes();
            }
            if !is_more {
                return;
            }
        }
    }

    /// Brings the Backup what it has not got, and looks whether it still takes it. What it may forget waits for [`Self::send_to_backup`].
    pub(super) fn serve_backup(&mut self) {
        let now = self.clock.broker();
        self.copy_records();
        self.answer_durable();
        self.search_parting();
        self.send_checkpoints();
        let Some(primary) = &mut self.primary else { return };
        let standing = primary.resume(self.broker.position(), end_of(self.log.as_ref()), now);
        standing.into_iter().for_each(|standing| self.stand(standing));
        let Some(primary) = &mut self.primary else { return };
        if let Some(path) = primary.wants_copy(now)
            && let Err(error) = self.context.store.copy_to(path)
        {
            tracing::warn!(%error, "no copy for the Backup can be made now");
            return self.lose_backup("no copy of the database could be made");
        }
        if let Err(TooFar(why)) = primary.pump(now) {
            return self.lose_backup(why);
        }
        self.send_changes();
        if self.primary.as_mut().is_some_and(Primary::has_sent_changes) {
            self.give();
        }
        let Some(primary) = &mut self.primary else { return };
        if primary.gives_up_at().is_some_and(|at| at <= now) {
            return self.lose_backup("it acknowledges nothing");
        }
        if primary.has_given_lacking() {
            let standing = primary.caught_up();
            self.stand(standing);
        }
        self.read_lacking();
        if self.primary.as_ref().is_some_and(Primary::is_awaited) {
            self.send_to_backup();
        }
    }

    /// Writes to the Backup what there is for it.
    pub(super) fn send_to_backup(&mut self) {
        let Some(primary) = &mut self.primary else { return };
        if let Err(end) = primary.flush() {
            self.lose_backup(end);
        }
        self.pace_replicas();
    }

    /// Ends a turn with what nobody waits for: to write it wakes the Backup, which may take the processor that a publisher's thread is to be woken on.
    pub(super) fn tell_backup_the_rest(&mut self) {
        self.send_to_backup();
        // Without its Backup a node may have told publishers something.
        if !self.is_written() {
            self.flush();
        }
    }

    /// Gives a Backup that was sent what it lacks of the database what this shard keeps, behind the changes that declare the topics.
    fn give(&mut self) {
        self.stand(BackupStanding::Joining);
        // In front of everything that is kept for them.
        self.name_required();
        self.name_asked();
        self.give_checkpoints();
    }

    /// Sends an event to the Backup.
    pub(super) fn replicate(&mut self, slot: SlotId, position: Position, number: StreamNumber, event: EventId, created: Instant) {
        let created_utc_ns = self.clock.utc_ns_of(created);
        let now = self.clock.broker();
        let primary = self.primary.as_mut().expect("who replicates has a Backup");
        primary.owe(now);
        primary.time(position, now);
        let epoch = primary.epoch();
        let Some(link) = primary.link() else { return };
        let kept = self.real_time.kept(slot);
        replica_frame(epoch, position, number, event.sequence, created_utc_ns, |out| kept.payload(out), link.out());
        self.pace_replicas();
    }

    /// Sends the end of what a joining Backup was to be given.
    pub(super) fn end_snapshot(&mut self, position: Position) {
        let now = self.clock.broker();
        let primary = self.primary.as_mut().expect("who gives a snapshot has a Backup");
        primary.send(Replication::SnapshotEnd { epoch: primary.epoch(), position });
        primary.owe(now);
    }

    /// Carries out what the broker says to the Backup.
    pub(super) fn tell_backup(&mut self, output: &Output) {
        let Some(primary) = &mut self.primary else { unreachable!("a cloud by itself has no use for {output:?}") };
        let epoch = primary.epoch();
        match *output {
            Output::Declare { stream, number } => {
                let identity = self.broker.identity(stream).expect("a declared stream is open");
                let topic = self.real_time.name(identity.topic);
                let (publisher, incarnation) = (identity.publisher, identity.incarnation);
                primary.send(Replication::StreamOpen { epoch, stream: number, publisher, incarnation, topic });
            }
            Output::Discard { number, through } => primary.send(Replication::Discard { epoch, stream: number, through }),
            Output::Closed { number: Some(number), .. } => primary.send(Replication::StreamClose { epoch, stream: number }),
            Output::Replicated { operation } => primary.replicated(operation),
            ref other => unreachable!("{other:?} is not for the Backup"),
        }
    }

    /// The Backup has everything that is kept: once it lacks nothing of the event log either and the witness knows, it may lead.
    pub(super) fn backup_has_caught_up(&mut self) {
        let primary = self.primary.as_mut().expect("who catches up is a Backup");
        if primary.is_complete() {
            let standing = primary.caught_up();
            self.stand(standing);
        }
    }

    /// Whether a publisher has to wait behind the dispatch of its event, because only this node has it: then it is answered when it is covered.
    pub(super) fn awaits_cover(
        &mut self,
        slot: SlotId,
        (stream, sequence): (StreamId, Sequence),
        publisher: Waiting,
        position: Option<event_log::Position>,
    ) -> Option<Waiting> {
        if self.primary.is_none() || self.broker.is_answerable(slot, stream, sequence) {
            return Some(publisher);
        }
        self.uncovered.insert((stream, sequence), Uncovered { publisher, position });
        None
    }

    /// Everything of a stream up to here is covered: who waits for that is answered, of a durable topic behind the disk.
    pub(super) fn answer_covered(&mut self, stream: StreamId, through: Sequence) {
        let covered = self.uncovered.extract_if((stream, Sequence(0))..=(stream, through), |_, _| true);
        for (_, Uncovered { publisher, position }) in covered.collect::<Vec<_>>() {
            match position {
                Some(position) => self.unsynced.publishers.push_back((position, publisher)),
                None => self.answer_publisher(publisher, Ok(())),
            }
        }
    }

    /// Tells publishers that wait for an answer that it is not known: this node does not lead any more.
    fn lose_publishers(&mut self) {
        let error = ArrowheadError::unavailable(NOT_KNOWN);
        let uncovered = std::mem::take(&mut self.uncovered).into_values().map(|waiting| waiting.publisher);
        let publishers: Vec<Waiting> = uncovered.chain(self.real_time.take_publishers()).collect();
        let publishers = publishers.into_iter().chain(self.take_durable_publishers());
        publishers.collect::<Vec<_>>().into_iter().for_each(|publisher| self.answer_publisher(publisher, Err(&error)));
    }
}
