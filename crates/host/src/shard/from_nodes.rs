//! Events of the other nodes that serve this cloud: they go to who listens here live.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_arrowhead::{error::ArrowheadError, publication};
use bodkin_broker::{EventId, OfferedEvent, Output, PublisherId, TopicId, Wanted};

use super::{Receiver, Shard};
use crate::node_events::NodeEvent;

impl Shard {
    /// Delivers events of other nodes. They are in no event log here: who is pushed to is served by the node that has accepted them.
    pub(super) fn take_from_nodes(&mut self, events: &[NodeEvent]) {
        for event in events {
            if let Err(error) = self.take_from_node(event) {
                tracing::warn!(%error, "another node has sent what is no event");
            }
        }
    }

    fn take_from_node(&mut self, event: &NodeEvent) -> Result<(), ArrowheadError> {
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let publication = publication::of_node(&event.event, event.source, event.time, &mut self.scratch)?;
        if self.is_new_to_links(&self.scratch.event_type) {
            let topic = self.scratch.event_type.clone();
            self.open_to_links(&topic);
        }
        // A topic that is not there has no listener.
        let Some(topic) = self.broker.topic_id(&self.scratch.event_type) else { return Ok(()) };
        if event.missing > 0 {
            self.tell_missing(topic, event.missing);
        }
        // Topics are numbered by each node.
        let publisher = PublisherId(event.source.0.unsigned_abs());
        let id = EventId { publisher, incarnation: event.incarnation, topic, sequence: event.sequence };
        self.frames.clear();
        let (frames, filter_text, endpoint) = (&mut self.frames, &mut self.filter_text, &mut self.endpoint);
        let mut offer = |receiver: &Receiver, event: OfferedEvent| match receiver {
            Receiver::Push { .. } | Receiver::Graph => Wanted::No,
            _ => receiver.frame_bytes(frames, endpoint, event.id, &snapshot, &publication, filter_text),
        };
        let lost_before = self.broker.lost_events();
        self.broker.publish_named(self.clock.broker(), id, &mut offer, &mut self.outputs);
        self.context.counts.lost.fetch_add(self.broker.lost_events() - lost_before + self.endpoint.take_lost(), Relaxed);
        self.carry_out(None);
        Ok(())
    }

    /// Tells live listeners of a topic that so many of its events will never be there.
    fn tell_missing(&mut self, topic: TopicId, events: u64) {
        self.broker.tell_lost(topic, events, &mut self.outputs);
        let broker = &self.broker;
        self.outputs.retain(|output| match output {
            Output::TellLoss { subscription, .. } => !matches!(broker.receiver(*subscription), Some(Receiver::Push { .. })),
            _ => true,
        });
        self.carry_out_now();
    }
}
