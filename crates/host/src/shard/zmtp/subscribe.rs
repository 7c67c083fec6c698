//! Hearing by ZMTP: prefixes become subscriptions of the broker, one for each topic that begins so.
//!
//! Topics are named in upper case and event types are published in any, so prefixes are compared without regard to case. A subscriber's library drops what does
//! not begin with the prefix as it was given: an event type goes out in the subscriber's own spelling as far as its prefix goes.

use std::sync::Arc;

use bodkin_broker::{
    Input, Overflow,
    wire::{EventHeader, HEADER_BYTES},
};
use bodkin_zmtp::FrameHead;

use super::{Endpoint, Role, Shard};
use crate::{frames::EventMessage, shard::Receiver};

/// A prefix as topics are named.
fn folded(prefix: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(prefix).map_err(|_| "a prefix is UTF-8, as event types are".to_owned())?;
    Ok(text.to_uppercase())
}

/// Whether a topic begins as a subscriber's prefix says.
fn leads_to(prefix: &[u8], topic: &str) -> bool {
    folded(prefix).is_ok_and(|folded| topic.starts_with(&folded))
}

impl Endpoint {
    /// The bytes that an event takes of a link's account with the broker: none, for the link keeps one account for all its topics. `None` if the
    /// event is not for it or the link is full, which is counted.
    pub fn offer(&mut self, slot: usize, prefix: &[u8], message: &EventMessage) -> Option<u64> {
        let begins_so = message.event_type().get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
        if !begins_so {
            return None;
        }
        let has_room = self.links[slot].has_room(message.bytes().len(), self.queue_bytes_max);
        self.lost += u64::from(!has_room);
        has_room.then_some(0)
    }

    /// Puts an event into a link's queue; true if so much waits there that it should be written at once.
    pub fn hand_over(&mut self, slot: usize, prefix: &[u8], message: &EventMessage) -> bool {
        let link = &mut self.links[slot];
        let out = link.frames(&mut self.spare);
        let event_type = out.len() + message.event_type_at();
        out.extend_from_slice(message.bytes());
        out[event_type..][..prefix.len()].copy_from_slice(prefix);
        let is_much = link.unsent_bytes() as u64 > self.queue_bytes_max / 4;
        self.is_dirty(slot);
        is_much
    }

    /// Says behind what waits for a link that there is no later event of a stream than this one, which it was not sent. A link that is full, or has not read half of what
    /// has filled it, hears nothing: what that costs it is counted.
    pub fn tell_last(&mut self, slot: usize, prefix: &[u8], topic: &str, last: &EventHeader) {
        let Some(behind) = topic.as_bytes().get(prefix.len()..) else { return };
        let mut header = Vec::with_capacity(HEADER_BYTES);
        last.encode(&mut header);
        let frames = [(topic.len(), true), (0, true), (header.len(), false)].map(|(bytes, more)| FrameHead::message(bytes, more));
        let bytes = frames.iter().map(|head| head.as_bytes().len()).sum::<usize>() + topic.len() + header.len();
        let link = &mut self.links[slot];
        if !link.hears_word(bytes, self.queue_bytes_max) {
            return;
        }
        let [event_type, payload, own] = &frames;
        let out = link.frames(&mut self.spare);
        for part in [event_type.as_bytes(), prefix, behind, payload.as_bytes(), own.as_bytes(), &header] {
            out.extend_from_slice(part);
        }
        self.is_dirty(slot);
    }
}

impl Shard {
    /// Lets a link hear all topics that begin so, those to come as well.
    pub(super) fn subscribe_link(&mut self, slot: usize, prefix: &[u8]) -> Result<(), String> {
        let Role::Subscriber(subscriber) = &mut self.endpoint.links[slot].role else {
            return Err("only SUB and XSUB subscribe".to_owned());
        };
        if let Some(times) = subscriber.prefixes.get_mut(prefix) {
            *times += 1;
            return Ok(());
        }
        let (prefix, folded) = (Arc::<[u8]>::from(prefix), folded(prefix)?);
        self.endpoint.wanted.subscribe(slot, folded.as_bytes()).map_err(|error| error.to_string())?;
        subscriber.prefixes.insert(prefix.clone(), 1);
        self.hear_all(slot, prefix)
    }

    /// Makes a link's subscriptions to all topics that there are and begin so.
    fn hear_all(&mut self, slot: usize, prefix: Arc<[u8]>) -> Result<(), String> {
        let folded = folded(&prefix)?;
        let Role::Subscriber(subscriber) = &self.endpoint.links[slot].role else { return Ok(()) };
        let unheard = |topic: &&str| !subscriber.heard.contains_key(*topic);
        let topics: Vec<Box<str>> = self.broker.topics_with(&folded).filter(unheard).map(Box::from).collect();
        topics.into_iter().try_for_each(|topic| self.hear(slot, &topic, prefix.clone()))
    }

    /// Takes one subscription back; what was never asked for is left alone, as libzmq does.
    pub(super) fn cancel_of_link(&mut self, slot: usize, prefix: &[u8]) {
        let Role::Subscriber(subscriber) = &mut self.endpoint.links[slot].role else { return };
        match subscriber.prefixes.get_mut(prefix) {
            None => return,
            Some(times @ 2..) => return *times -= 1,
            Some(_) => drop(subscriber.prefixes.remove(prefix)),
        }
        if let Ok(folded) = folded(prefix) {
            self.endpoint.wanted.cancel(slot, folded.as_bytes());
        }
        let silent: Vec<_> = subscriber.heard.extract_if(.., |_, (_, by)| **by == *prefix).collect();
        // Another prefix may lead to the same topic, in another spelling.
        let others: Vec<_> = subscriber.prefixes.keys().cloned().collect();
        for (topic, (subscription, _)) in silent {
            self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription }, &mut self.outputs);
            if let Some(other) = others.iter().find(|other| leads_to(other, &topic)) {
                // There was room for it.
                let _ = self.hear(slot, &topic, other.clone());
            }
        }
        self.count_subscriptions();
    }

    /// Makes a link's subscription to a topic.
    fn hear(&mut self, slot: usize, topic: &str, prefix: Arc<[u8]>) -> Result<(), String> {
        let subscriptions_max = self.context.limits.subscriptions_max;
        if self.stream_count() >= subscriptions_max {
            return Err(format!("there are {subscriptions_max} event streams and topics of ZMTP subscribers, which is the limit"));
        }
        let receiver = Receiver::Link { slot, prefix: prefix.clone() };
        let subscription = self.broker.subscribe(topic, receiver, Overflow::Loses).map_err(|error| error.to_string())?;
        if let Role::Subscriber(subscriber) = &mut self.endpoint.links[slot].role {
            subscriber.heard.insert(topic.into(), (subscription, prefix));
        }
        self.count_subscriptions();
        Ok(())
    }

    /// Whether a topic would be new, and a link may have asked for it. Whatever makes a topic asks this, and opens it first.
    pub(in crate::shard) fn is_new_to_links(&self, topic: &str) -> bool {
        self.endpoint.subscribers > 0 && !self.broker.has_topic(topic)
    }

    /// Lets those hear a new topic who have asked for it before it is there.
    pub(in crate::shard) fn open_to_links(&mut self, topic: &str) {
        let mut found = std::mem::take(&mut self.endpoint.found);
        self.endpoint.wanted.find(topic.as_bytes(), &mut found);
        for slot in found.drain(..) {
            let Role::Subscriber(subscriber) = &self.endpoint.links[slot].role else { continue };
            let Some(prefix) = subscriber.prefixes.keys().find(|prefix| leads_to(prefix, topic)).cloned() else { continue };
            if let Err(reason) = self.hear(slot, topic, prefix) {
                self.refuse_link(slot, &reason);
            }
        }
        self.endpoint.found = found;
    }

    /// A link hears nothing any more.
    pub(super) fn forget_subscriptions(&mut self, slot: usize) {
        self.forget_dealer(slot);
        let Role::Subscriber(subscriber) = &mut self.endpoint.links[slot].role else { return };
        let heard = std::mem::take(&mut subscriber.heard);
        for (subscription, _) in heard.into_values() {
            self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription }, &mut self.outputs);
        }
        self.endpoint.wanted.remove(slot);
        self.endpoint.subscribers -= 1;
        self.endpoint.links[slot].role = Role::Closing;
        self.count_subscriptions();
    }
}
