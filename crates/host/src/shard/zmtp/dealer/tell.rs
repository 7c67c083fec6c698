//! What DEALERs are told.

use bodkin_arrowhead::{error::ArrowheadError, record::SystemId};
use bodkin_broker::{
    Epoch, EventId, Incarnation, PublisherId, Sequence, StreamId, StreamIdentity, SubscriptionKey, Wanted,
    wire::{ClientFrame, EventHeader, Flags, RefusalReason, TEXT_BYTES_MAX},
};
use bodkin_zmtp::FrameHead;

use super::{
    super::{Endpoint, LinkKey, Role, Shard},
    runs::Cover,
};
use crate::{frames::EventMessage, shard::Receiver};

/// As much of a text as a command holds.
pub(super) fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

impl Endpoint {
    /// Puts a command behind what a link is sent.
    pub(super) fn tell(&mut self, slot: usize, command: &ClientFrame<'_>) {
        self.command.clear();
        command.encode(&mut self.command);
        let out = self.links[slot].frames(&mut self.spare);
        out.extend_from_slice(FrameHead::message(self.command.len(), false).as_bytes());
        out.extend_from_slice(&self.command);
        self.is_dirty(slot);
    }

    /// What a DEALER wants of an event. Its topics have one account, the link's.
    pub fn offer_dealer(&mut self, slot: usize, topic: &str, message: &EventMessage) -> Wanted {
        let bytes = message.behind_event_type().len() + FrameHead::message(topic.len(), true).as_bytes().len() + topic.len();
        let queue_bytes_max = self.queue_bytes_max;
        let link = &mut self.links[slot];
        if link.takes(bytes, queue_bytes_max) {
            return Wanted::Bytes(0);
        }
        if let Role::Dealer(dealer) = &mut link.role {
            dealer.is_full = true;
        }
        Wanted::Full
    }

    /// Puts an event into a DEALER's queue; true if so much waits there that it should be written at once.
    pub fn hand_to_dealer(&mut self, slot: usize, topic: &str, message: &EventMessage) -> bool {
        let link = &mut self.links[slot];
        let out = link.frames(&mut self.spare);
        out.extend_from_slice(FrameHead::message(topic.len(), true).as_bytes());
        out.extend_from_slice(topic.as_bytes());
        out.extend_from_slice(message.behind_event_type());
        let is_much = link.unsent_bytes() as u64 > self.queue_bytes_max / 4;
        self.is_dirty(slot);
        is_much
    }
}

impl Shard {
    /// Tells every DEALER whether this node leads, if that has changed.
    pub(in crate::shard) fn tell_leadership(&mut self) {
        // In a turn that takes long, as a promotion's may, the lease goes on: nobody is to be told of an end that there is not.
        self.renew_authority();
        // Of a pair what the shard itself has taken up: nobody is told of an epoch in which it does nothing yet.
        let (epoch, leads) = (self.epoch(), self.leads());
        if self.endpoint.leadership != (epoch, leads) {
            self.leadership_changed(epoch, leads);
        }
    }

    /// This node leads from now on, or not any more.
    pub(in crate::shard) fn leadership_changed(&mut self, epoch: Epoch, is_leader: bool) {
        self.endpoint.leadership = (epoch, is_leader);
        self.frames.lead_in(epoch);
        let greeted = |role: &Role| matches!(role, Role::Dealer(dealer) if dealer.hello.is_some());
        let dealers: Vec<usize> = self.endpoint.links.iter().filter(|(_, link)| greeted(&link.role)).map(|(slot, _)| slot).collect();
        for slot in dealers {
            self.endpoint.tell(slot, &ClientFrame::Leader { epoch, is_leader });
        }
        self.tell_watching_dealers();
    }

    /// Tells publishers how far they are covered, behind the log in which that stands.
    pub(in crate::shard) fn tell_covered(&mut self) {
        let epoch = self.epoch();
        while let Some(Cover { stream, through, link }) = self.endpoint.runs.next_untold() {
            if self.endpoint.dealer_at(link).is_none() {
                continue;
            }
            let StreamIdentity { topic, incarnation, .. } = stream;
            let topic = self.broker.topic_name(topic);
            self.endpoint.tell(link.slot, &ClientFrame::Covered { epoch, incarnation, through, topic });
        }
    }

    /// Tells a stream's publisher that nobody gets an event.
    pub(in crate::shard) fn tell_shed(&mut self, stream: StreamId, sequence: Sequence) {
        let Some(stream) = self.broker.identity(stream) else { return };
        if self.is_durable_topic(stream.topic) {
            self.promise_logged(stream, sequence);
        }
        let epoch = self.epoch();
        if let Some(link) = self.publishing_link(stream) {
            let StreamIdentity { topic, publisher, incarnation } = stream;
            let topic = self.broker.topic_name(topic);
            self.endpoint.tell(link.slot, &ClientFrame::Lost { epoch, publisher, incarnation, events: 1, topic });
        }
    }

    /// Tells a stream's publisher that the disk has not taken what was delivered.
    pub(in crate::shard) fn tell_not_kept(&mut self, stream: StreamIdentity, sequence: Sequence, error: &ArrowheadError) {
        let (epoch, reason) = (self.epoch(), RefusalReason::NotKept);
        self.endpoint.runs.note_refusal(stream, sequence, reason);
        if let Some(link) = self.publishing_link(stream) {
            let topic = self.broker.topic_name(stream.topic);
            let text = short(&error.error_message);
            self.endpoint.tell(link.slot, &ClientFrame::Refused { epoch, sequence, reason, retry_after_ns: 0, topic, text });
        }
    }

    /// Tells a subscriber how many events of a topic its full queue has cost it, whosever they were.
    pub(in crate::shard) fn tell_dealer_loss(&mut self, slot: usize, subscription: SubscriptionKey, events: u64) {
        if self.is_missed(subscription, events) {
            return;
        }
        let Some(Receiver::Dealer { topic, .. }) = self.broker.receiver(subscription) else { return };
        let topic = topic.clone();
        self.tell_dealer_lost(slot, &topic, events);
    }

    /// Tells a DEALER that events of a topic, as it spells it, are lost for it.
    pub(super) fn tell_dealer_lost(&mut self, slot: usize, topic: &str, events: u64) {
        let epoch = self.epoch();
        let (publisher, incarnation) = (PublisherId(0), Incarnation(0));
        if let Some(link) = self.endpoint.links.get_mut(slot) {
            link.lost = link.lost.saturating_add(events);
        }
        self.endpoint.tell(slot, &ClientFrame::Lost { epoch, publisher, incarnation, events, topic });
    }

    /// Tells a subscriber the number of the last event of a stream, which nobody was sent. Event streams and pushed subscriptions have no numbers to compare it with, and of
    /// what a graph has made, numbers that are passed over say nothing.
    pub(in crate::shard) fn tell_last(&mut self, subscription: SubscriptionKey, event: EventId) {
        let slot = match self.broker.receiver(subscription) {
            Some(Receiver::Dealer { slot, .. } | Receiver::Link { slot, .. }) => *slot,
            Some(Receiver::Stream { .. } | Receiver::Push { .. } | Receiver::Graph) | None => return,
        };
        let EventId { publisher, incarnation, topic, sequence } = event;
        let snapshot = self.context.store.snapshot();
        let may_hear = self.endpoint.may_hear(slot, &snapshot, SystemId(publisher.0.cast_signed()));
        if !may_hear || self.graphs.makes(topic) {
            return;
        }
        let epoch = self.epoch();
        match self.broker.receiver(subscription) {
            Some(Receiver::Dealer { topic, .. }) => {
                self.endpoint.tell(slot, &ClientFrame::Last { epoch, publisher, incarnation, sequence, topic });
            }
            Some(Receiver::Link { prefix, .. }) => {
                let flags = Flags { last: true, ..Flags::default() };
                let last = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: 0, epoch };
                self.endpoint.tell_last(slot, prefix, self.broker.topic_name(topic), &last);
            }
            _ => {}
        }
    }

    pub(super) fn refuse_subscription(&mut self, slot: usize, topic: &str, reason: RefusalReason, text: &str) {
        let epoch = self.epoch();
        self.endpoint.tell(slot, &ClientFrame::SubscribeRefused { epoch, reason, topic: short(topic), text: short(text) });
    }

    /// The link of a stream's publisher, if it is there.
    fn publishing_link(&mut self, stream: StreamIdentity) -> Option<LinkKey> {
        let link = self.endpoint.runs.link(stream)?;
        self.endpoint.dealer_at(link).map(|_| link)
    }
}
