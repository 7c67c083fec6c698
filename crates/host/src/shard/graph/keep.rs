//! Graphs of a pair: each is a required subscriber of its real-time suppliers, which acknowledges what the Backup has in a checkpoint (`docs/design/graphs.md`, "Through a fail-over").
//!
//! A checkpoint goes down the replica channel behind the results that the graph has published before it. A node that is promoted keeps the suppliers' events for the graphs whose checkpoints it has, until they
//! are deployed there and go on from them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{
    Attachment, BackupStanding, EventId, Input, Overflow, StreamIdentity, SubscriptionKey, TopicId, Work,
    graph::{Cover, SupplierId, Taken, checkpoint::Checkpoint, placement::KEPT_MAX},
    wire::{LINK_FRAME_BYTES_MAX, Replication, TEXT_BYTES_MAX, Watermark},
};

use super::{Deployed, Graphs};
use crate::{
    graph::{Deployment, GraphCounts},
    shard::{Receiver, Shard},
};

/// A checkpoint is due so long behind the first event that is in none, and where a supplier's events have to be replicated earlier in half of that time: so most of them need not be.
const CHECKPOINT_WITHIN_NS: u64 = 100_000_000;
/// One is due with this part of what may be kept of a publisher.
const BACKLOG_SHARE: u32 = 4;
/// Longest checkpoint: one frame, less its other fields.
const CHECKPOINT_BYTES_MAX: usize = LINK_FRAME_BYTES_MAX - TEXT_BYTES_MAX - 64;
/// One is due with so many events of a publisher that came over a link: the edge that has made them keeps them meanwhile.
const LINK_BACKLOG: u64 = 8;
/// When a checkpoint is tried again for which the channel had no room.
const RETRY_AFTER_NS: u64 = 1_000_000;

/// What is kept for a graph that runs.
pub(super) struct Keeping {
    cover: Cover,
    /// Its subscriptions, by supplier; `None`: nothing of that one is kept.
    keys: Vec<Option<SubscriptionKey>>,
    /// The number of the last checkpoint.
    checkpoint: u64,
    /// Its checkpoints do not fit a frame: it begins anew at a fail-over.
    is_too_large: bool,
}

/// What is kept for a graph that the leader before had.
pub(super) struct Awaited {
    checkpoint: Vec<u8>,
    keys: Vec<(TopicId, SubscriptionKey)>,
}

/// Checkpoints on their way, and those that were inherited.
#[derive(Default)]
pub(super) struct Checkpoints {
    awaited: BTreeMap<Box<str>, Awaited>,
    /// Subscriptions of graphs that the event at work was handed to.
    handed: Vec<SubscriptionKey>,
    /// How many were sent.
    count: u64,
    buffer: Vec<u8>,
    told: Vec<Taken>,
}

impl Keeping {
    /// Whether the events of a supplier come by a subscription.
    pub fn subscribes(&self, supplier: usize) -> bool {
        self.keys[supplier].is_some()
    }

    /// How far what was taken is at the Backup.
    pub fn cover(&mut self) -> &mut Cover {
        &mut self.cover
    }

    /// Notes an event that was held; whether it is acknowledged later.
    pub fn take(&mut self, now: bodkin_broker::Instant, event: Taken) -> bool {
        self.cover.take(now, event)
    }

    /// Notes an event of a supplier of which nothing is kept: the next checkpoint has what came of it.
    pub fn note(&mut self, now: bodkin_broker::Instant, supplier: SupplierId, EventId { publisher, incarnation, sequence, .. }: EventId) {
        self.cover.take(now, Taken { supplier, publisher, incarnation, through: sequence });
    }
}

impl Checkpoints {
    /// Notes that the broker has handed an event to a graph.
    pub fn hand(&mut self, subscription: SubscriptionKey) {
        self.handed.push(subscription);
    }
}

impl Deployed {
    /// Of which supplier a subscription is.
    fn supplier_of(&self, key: SubscriptionKey) -> Option<SupplierId> {
        let keys = &self.keeping.as_ref()?.keys;
        keys.iter().position(|own| *own == Some(key)).map(SupplierId::of)
    }
}

impl Graphs {
    /// When the next checkpoint is due.
    pub fn next_checkpoint(&self) -> Option<bodkin_broker::Instant> {
        self.deployed.iter().filter_map(|deployed| deployed.keeping.as_ref()?.cover.due_at()).min()
    }

    fn all_keeping(&mut self) -> impl Iterator<Item = &mut Keeping> {
        self.deployed.iter_mut().filter_map(|deployed| deployed.keeping.as_mut())
    }
}

impl Shard {
    /// Goes on with the checkpoints that this node has kept as a Backup: what their graphs need is kept until they are deployed.
    pub(in crate::shard) fn await_graphs(&mut self, checkpoints: impl IntoIterator<Item = (Box<str>, Vec<u8>)>) {
        for (graph, bytes) in checkpoints {
            let topics: Vec<Box<str>> = match Checkpoint::read(&bytes) {
                Ok(checkpoint) => checkpoint.topics().iter().map(|topic| Box::from(*topic)).collect(),
                Err(error) => {
                    tracing::error!(%graph, %error, "the checkpoint of a graph is of no use: the graph begins anew");
                    continue;
                }
            };
            let mut keys = Vec::new();
            for topic in topics {
                if self.broker.terms(&topic).is_none() {
                    continue;
                }
                match self.subscribe_graph(&topic, Attachment::Awaited) {
                    Ok(key) => keys.push(key),
                    Err(error) => tracing::error!(%graph, %topic, %error, "events are not kept for a graph"),
                }
            }
            self.graphs.checkpoints.awaited.insert(graph, Awaited { checkpoint: bytes, keys });
        }
        self.count_subscriptions();
    }

    /// Returns the graph that a subscription is kept for, and how long it is waited for.
    pub(in crate::shard) fn graph_subscriber(&self, subscription: SubscriptionKey) -> (Arc<str>, Duration) {
        let deployed = self.graphs.deployed.iter().find(|deployed| deployed.supplier_of(subscription).is_some());
        let awaited =
            || self.graphs.checkpoints.awaited.iter().find(|(_, awaited)| awaited.keys.iter().any(|(_, key)| *key == subscription));
        let name = deployed.map(|deployed| &*deployed.deployment.graph().name).or_else(|| awaited().map(|(name, _)| &**name));
        (format!("graph {}", name.unwrap_or_default()).into(), KEPT_MAX)
    }

    fn subscribe_graph(&mut self, topic: &str, attachment: Attachment) -> Result<(TopicId, SubscriptionKey), bodkin_broker::ShardError> {
        let id = self.broker.topic(topic)?;
        let key = self.broker.subscribe(topic, Receiver::Graph, Overflow::Loses)?;
        self.broker.keep_for(self.clock.broker(), key, KEPT_MAX, attachment);
        Ok((id, key))
    }

    /// What is to be kept for a graph, by the terms of its suppliers' topics.
    fn cover_of(&self, at: usize) -> Cover {
        let Deployed { deployment, suppliers, .. } = &self.graphs.deployed[at];
        let terms: Vec<_> =
            suppliers.iter().map(|topic| self.broker.terms_of(*topic).filter(|terms| terms.replicate_within_ns.is_some())).collect();
        let is_fetched = |supplier: usize| deployment.link_of(SupplierId::of(supplier)).is_some();
        let held_max = terms.iter().enumerate().map(|(supplier, terms)| match terms {
            _ if is_fetched(supplier) => LINK_BACKLOG,
            terms => terms.map_or(0, |terms| u64::from((terms.backlog_max.get() / BACKLOG_SHARE).max(1))),
        });
        let within_ns = terms.iter().flatten().filter_map(|terms| terms.replicate_within_ns).min();
        Cover::new(held_max, within_ns.map_or(CHECKPOINT_WITHIN_NS, |within_ns| (within_ns / 2).min(CHECKPOINT_WITHIN_NS)))
    }

    /// Has a graph be covered that has taken the place of another one: what was taken and is in no checkpoint is acknowledged by the next one, which has what came of it. `taken` was taken where an operator
    /// has come from; whoever leads next has to pass it over, too.
    pub(super) fn succeed_keeping(&mut self, at: usize, before: Deployed, taken: &[Taken]) {
        let Some(Keeping { cover: had, keys, .. }) = before.keeping else { return };
        let topics = self.graphs.deployed[at].suppliers.clone();
        let place = |supplier: SupplierId| topics.iter().position(|topic| *topic == before.suppliers[supplier.index()]).map(SupplierId::of);
        let mut cover = self.cover_of(at);
        cover.succeed(&had, place);
        cover.inherit(taken);
        let known: Vec<_> = before.suppliers.iter().copied().zip(keys).filter_map(|(topic, key)| Some((topic, key?))).collect();
        self.graphs.deployed[at].deployment.protect();
        let keys = self.keys_of(at, &cover, known);
        cover.hasten();
        self.graphs.deployed[at].keeping = Some(Keeping { cover, keys, checkpoint: 0, is_too_large: false });
        self.let_graphs_go();
        self.carry_out_now();
        self.count_subscriptions();
    }

    /// The subscriptions of a graph to those suppliers of which events are kept for it: those that are known go on, others are made, and those that are not needed any more end.
    fn keys_of(&mut self, at: usize, cover: &Cover, mut known: Vec<(TopicId, SubscriptionKey)>) -> Vec<Option<SubscriptionKey>> {
        let mut keys = Vec::new();
        for supplier in 0..self.graphs.deployed[at].suppliers.len() {
            let (id, topic) = (SupplierId::of(supplier), self.graphs.deployed[at].suppliers[supplier]);
            let is_subscribed = cover.keeps(id) && self.graphs.deployed[at].deployment.link_of(id).is_none();
            let found = known.iter().position(|(of, _)| *of == topic && is_subscribed);
            keys.push(match found {
                Some(found) => Some(known.swap_remove(found).1),
                None if is_subscribed => self.subscribe_new(at, topic),
                None => None,
            });
        }
        let now = self.clock.broker();
        known.into_iter().for_each(|(_, subscription)| self.broker.step(now, Input::Unsubscribe { subscription }, &mut self.outputs));
        keys
    }

    /// Has events of a topic be kept for a graph from now on.
    fn subscribe_new(&mut self, at: usize, topic: TopicId) -> Option<SubscriptionKey> {
        let name = self.broker.topic_name(topic).clone();
        let made = self.subscribe_graph(&name, Attachment::New).inspect_err(|error| {
            tracing::error!(graph = self.graphs.deployed[at].deployment.graph().name, topic = &*name, %error, "events are not kept for a graph");
        });
        made.ok().map(|(_, key)| key)
    }

    /// Whether the leader before has left a checkpoint of this graph, from the same file.
    pub(super) fn awaits(&self, deployment: &Deployment) -> bool {
        let awaited = self.graphs.checkpoints.awaited.get(&*deployment.graph().name);
        let checkpoint = awaited.and_then(|awaited| Checkpoint::read(&awaited.checkpoint).ok());
        checkpoint.is_some_and(|checkpoint| checkpoint.digest() == deployment.digest())
    }

    /// Has a graph that was just deployed be covered, if this is a node of a pair; goes on from the checkpoint that is there of it, and says whether it does.
    pub(super) fn begin_keeping(&mut self, at: usize) -> bool {
        if self.primary.is_none() {
            return false;
        }
        let mut has_gone_on = false;
        let name = self.graphs.deployed[at].deployment.graph().name.clone();
        let mut cover = self.cover_of(at);
        let awaited = self.graphs.checkpoints.awaited.remove(&*name);
        let now_ns = self.clock.utc_ns_of(self.clock.broker());
        let deployment = &mut self.graphs.deployed[at].deployment;
        deployment.protect();
        if let Some(Awaited { checkpoint, .. }) = &awaited {
            let gone_on = Checkpoint::read(checkpoint)
                .map_err(Into::into)
                .and_then(|checkpoint| deployment.go_on_from(now_ns, &checkpoint, &mut cover));
            match gone_on {
                Ok(()) => {
                    has_gone_on = true;
                    // An operator that goes to another host later takes along how far it had come at the leader before, too.
                    cover.taken().for_each(|taken| deployment.carried().take(&taken));
                    tracing::info!(graph = name, bytes = checkpoint.len(), "a graph goes on where the leader before had it");
                }
                Err(error) => tracing::error!(graph = name, %error, "a graph begins anew: its checkpoint is of no use"),
            }
        }
        let keys = self.hear_suppliers(at, &cover, awaited.map_or(Vec::new(), |awaited| awaited.keys));
        cover.hasten();
        self.graphs.deployed[at].keeping = Some(Keeping { cover, keys, checkpoint: 0, is_too_large: false });
        self.graphs.list_readers();
        self.let_graphs_go();
        self.carry_out_now();
        self.count_subscriptions();
        has_gone_on
    }

    /// A graph that begins has taken over an operator of another edge, and this was taken there: checkpoints have its state, and whoever leads next passes that over, too.
    pub(super) fn keep_brought(&mut self, at: usize, taken: &[Taken]) {
        let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
        if let Some(keeping) = keeping {
            keeping.cover.inherit(taken);
            deployment.protect();
        }
    }

    /// Subscribes a graph to those suppliers of which events are kept for it. Where they have been kept for it already it is brought what it has not had.
    fn hear_suppliers(&mut self, at: usize, cover: &Cover, mut awaited: Vec<(TopicId, SubscriptionKey)>) -> Vec<Option<SubscriptionKey>> {
        awaited.retain(|(_, key)| self.broker.receiver(*key).is_some());
        let now = self.clock.broker();
        let mut keys = Vec::new();
        for supplier in 0..self.graphs.deployed[at].suppliers.len() {
            let (id, topic) = (SupplierId::of(supplier), self.graphs.deployed[at].suppliers[supplier]);
            if !cover.keeps(id) || self.graphs.deployed[at].deployment.link_of(id).is_some() {
                keys.push(None);
                continue;
            }
            if let Some(known) = awaited.iter().position(|(of, _)| *of == topic) {
                let (_, key) = awaited.swap_remove(known);
                let watermarks = cover.taken().filter(|taken| taken.supplier == id);
                let watermarks =
                    watermarks.map(|Taken { publisher, incarnation, through, .. }| Watermark { publisher, incarnation, through });
                self.broker.keep_for(now, key, KEPT_MAX, Attachment::New);
                self.broker.attach(now, key, Receiver::Graph, watermarks, &mut self.outputs);
                keys.push(Some(key));
                continue;
            }
            keys.push(self.subscribe_new(at, topic));
        }
        awaited.into_iter().for_each(|(_, subscription)| self.broker.step(now, Input::Unsubscribe { subscription }, &mut self.outputs));
        keys
    }

    /// Keeps nothing any more for a graph that was not deployed here again.
    pub(super) fn await_graph_no_more(&mut self, graph: &str) {
        let now = self.clock.broker();
        let awaited = self.graphs.checkpoints.awaited.remove(graph);
        for (_, subscription) in awaited.into_iter().flat_map(|awaited| awaited.keys) {
            self.broker.step(now, Input::Unsubscribe { subscription }, &mut self.outputs);
        }
    }

    /// Keeps nothing for a graph any more that is removed or replaced.
    pub(super) fn end_keeping(&mut self, graph: &str, keeping: Option<Keeping>) {
        let now = self.clock.broker();
        for subscription in keeping.into_iter().flat_map(|keeping| keeping.keys).flatten() {
            self.broker.step(now, Input::Unsubscribe { subscription }, &mut self.outputs);
        }
        if self.has_checkpoints()
            && let Some(position) = self.next_checkpoint_position()
        {
            let primary = self.primary.as_mut().expect("who has checkpoints has a Backup");
            primary.send(Replication::Graph { epoch: primary.epoch(), position, graph, checkpoint: &[] });
            primary.owe(now);
        }
        self.carry_out_now();
        self.count_subscriptions();
    }

    fn next_checkpoint_position(&mut self) -> Option<bodkin_broker::wire::Position> {
        self.graphs.checkpoints.count += 1;
        self.broker.checkpoint(self.graphs.checkpoints.count)
    }

    /// Whether the Backup takes checkpoints.
    pub(in crate::shard) fn has_checkpoints(&self) -> bool {
        self.primary.as_ref().is_some_and(|primary| primary.is_giving() && primary.knows_graphs())
    }

    /// Whether there is no Backup that could have a checkpoint, and none that might lead all the same.
    fn nothing_will_arrive(&self) -> bool {
        let Some(primary) = &self.primary else { return true };
        !self.has_checkpoints() && (primary.is_giving() || primary.standing() == BackupStanding::Out)
    }

    /// Hands the event at work to the graphs that the broker has offered it to, as subscribers.
    pub(in crate::shard) fn supply_subscribed(&mut self, slot: bodkin_broker::SlotId, event: EventId, created: bodkin_broker::Instant) {
        if self.graphs.checkpoints.handed.is_empty() {
            return;
        }
        let EventId { publisher, incarnation, sequence, .. } = event;
        let now = self.clock.broker();
        let (now_ns, created_ns) = (self.clock.utc_ns_of(now), self.clock.utc_ns_of(created));
        let publication = self.real_time.kept(slot).publication();
        let Graphs { deployed, checkpoints, .. } = &mut self.graphs;
        let mut handed = std::mem::take(&mut checkpoints.handed);
        let mut untracked = Vec::new();
        for key in handed.drain(..) {
            let supplied = deployed.iter().enumerate().find_map(|(at, deployed)| Some((at, deployed.supplier_of(key)?)));
            let Some((at, supplier)) = supplied else { continue };
            // An event with a bound on losses replaces none that waits: a burst, as publishers send it after a failover, is processed one by one.
            let is_held = deployed[at].holds() || !deployed[at].deployment.has_room(supplier);
            let Deployed { deployment, keeping: Some(keeping), .. } = &mut deployed[at] else { continue };
            let taken = Taken { supplier, publisher, incarnation, through: sequence };
            let is_had = keeping.cover.has(supplier, publisher, incarnation, sequence);
            if !is_had {
                if is_held {
                    deployed[at].hold((event, created_ns), &publication, true);
                    continue;
                }
                deployment.take_in(now_ns, supplier, (event, created_ns), publication.payload(), publication.cause().as_ref());
            }
            // What came of an event that the checkpoint has is here; no later checkpoint acknowledges it again.
            if !keeping.cover.take(now, taken) || is_had {
                untracked.push((at, taken));
            }
        }
        checkpoints.handed = handed;
        for (at, taken) in untracked {
            self.acknowledge_suppliers(at, &mut vec![taken]);
        }
        self.let_graphs_go();
    }

    /// Acknowledges what graphs have taken of which no checkpoint will arrive.
    pub(super) fn let_graphs_go(&mut self) {
        let is_out = self.nothing_will_arrive();
        let mut told = std::mem::take(&mut self.graphs.checkpoints.told);
        for at in 0..self.graphs.deployed.len() {
            let Some(keeping) = &mut self.graphs.deployed[at].keeping else { continue };
            if keeping.is_too_large || is_out {
                keeping.cover.let_go(&mut told);
                self.graphs.deployed[at].deployment.is_at_work();
                self.acknowledge_suppliers(at, &mut told);
            }
        }
        self.graphs.checkpoints.told = told;
    }

    pub(super) fn acknowledge_suppliers(&mut self, at: usize, told: &mut Vec<Taken>) {
        let now = self.clock.broker();
        for Taken { supplier, publisher, incarnation, through } in told.drain(..) {
            let Deployed { deployment, suppliers, keeping, .. } = &self.graphs.deployed[at];
            if let Some(link) = deployment.link_of(supplier) {
                link.acknowledge(supplier, publisher, incarnation, through);
                continue;
            }
            let subscription = keeping.as_ref().and_then(|keeping| keeping.keys[supplier.index()]);
            let stream = self.broker.stream(&StreamIdentity { topic: suppliers[supplier.index()], publisher, incarnation });
            if let (Some(subscription), Some(stream)) = (subscription, stream) {
                self.broker.step(now, Input::Delivered { subscription, stream, through }, &mut self.outputs);
            }
        }
    }

    /// Sends the checkpoints that are due.
    pub(in crate::shard) fn send_checkpoints(&mut self) {
        if !self.has_checkpoints() || !self.leads() {
            return;
        }
        let now = self.clock.broker();
        for at in 0..self.graphs.deployed.len() {
            let keeping = self.graphs.deployed[at].keeping.as_ref();
            if keeping.is_some_and(|keeping| !keeping.is_too_large && keeping.cover.due_at().is_some_and(|due_at| due_at <= now)) {
                self.send_checkpoint(at);
            }
        }
    }

    fn send_checkpoint(&mut self, at: usize) {
        let now = self.clock.broker();
        for output in 0..self.graphs.deployed[at].outputs.len() {
            let topic = self.graphs.deployed[at].outputs[output];
            while let Some(work) = self.broker.replicate_next(now, topic, &mut self.outputs) {
                self.carry_out_now();
                let Work::Replicate { slot, position, number, event, created } = work else { unreachable!("a replica was asked for") };
                self.replicate(slot, position, number, event, created);
            }
        }
        let mut buffer = std::mem::take(&mut self.graphs.checkpoints.buffer);
        buffer.clear();
        let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
        let keeping = keeping.as_mut().expect("its checkpoint is due");
        deployment.checkpoint(&keeping.cover, &mut buffer);
        if buffer.len() > CHECKPOINT_BYTES_MAX {
            keeping.is_too_large = true;
            let (graph, bytes) = (&deployment.graph().name, buffer.len());
            tracing::warn!(
                graph,
                bytes,
                bytes_max = CHECKPOINT_BYTES_MAX,
                "a graph is too large for the Backup: it begins anew at a fail-over"
            );
            self.let_graphs_go();
        } else if let Some(position) = self.next_checkpoint_position() {
            let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
            let keeping = keeping.as_mut().expect("its checkpoint is due");
            let primary = self.primary.as_mut().expect("who has checkpoints has a Backup");
            primary.send(Replication::Graph { epoch: primary.epoch(), position, graph: &deployment.graph().name, checkpoint: &buffer });
            primary.owe(now);
            keeping.cover.sent();
            keeping.checkpoint = self.graphs.checkpoints.count;
        } else {
            // The channel is full.
            let keeping = self.graphs.deployed[at].keeping.as_mut().expect("its checkpoint is due");
            keeping.cover.postpone(now.plus_nanos(RETRY_AFTER_NS));
        }
        self.graphs.checkpoints.buffer = buffer;
    }

    /// The Backup has a checkpoint.
    pub(in crate::shard) fn checkpoint_arrived(&mut self, checkpoint: u64) {
        let is_it = |deployed: &Deployed| deployed.keeping.as_ref().is_some_and(|keeping| keeping.checkpoint == checkpoint);
        // One of a graph that was removed meanwhile acknowledges nothing.
        let Some(at) = self.graphs.deployed.iter().position(is_it) else { return };
        let mut told = std::mem::take(&mut self.graphs.checkpoints.told);
        let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
        GraphCounts::one(&deployment.counts().checkpoints);
        keeping.as_mut().expect("it was just found").cover.arrived(&mut told);
        deployment.is_at_work();
        self.acknowledge_suppliers(at, &mut told);
        self.graphs.checkpoints.told = told;
    }

    /// The Backup stands differently: what was under way to it counts for nothing, and where none will lead nothing is kept for it.
    pub(in crate::shard) fn graphs_stand(&mut self, standing: BackupStanding) {
        match standing {
            BackupStanding::Settling | BackupStanding::InSync => {}
            BackupStanding::Joining | BackupStanding::Lost => self.graphs.all_keeping().for_each(|keeping| keeping.cover.lost()),
            BackupStanding::Absent | BackupStanding::Out | BackupStanding::CatchingUp => {
                self.let_graphs_go();
                self.carry_out_now();
            }
        }
    }

    /// Gives a Backup that joins the checkpoints of all graphs.
    pub(in crate::shard) fn give_checkpoints(&mut self) {
        let now = self.clock.broker();
        for keeping in self.graphs.deployed.iter_mut().filter_map(|deployed| deployed.keeping.as_mut()) {
            keeping.cover.hasten();
            // Those that were not waited for any more are from now on.
            keeping.keys.iter().flatten().for_each(|key| self.broker.keep_for(now, *key, KEPT_MAX, Attachment::New));
        }
        self.send_checkpoints();
    }
}
