//! Spans of events that go to subscribers on connections of their own: from an event's dispatch until the socket has taken its bytes. What is replayed has none.

use std::{collections::VecDeque, sync::atomic::Ordering::Relaxed};

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::EventId;

use super::{LinkKey, Shard};
use crate::{
    inbox::ConnectionKey,
    trace::{Kind, Span, Value},
};

/// Events on their way that are told of at the same time; the spans of further ones are dropped and counted.
const DELIVERIES_MAX: usize = 1_024;

/// Where an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// An event stream.
    Stream(ConnectionKey),
    /// A subscriber of the ZMTP port.
    Link(LinkKey),
}

/// How far a subscriber's bytes have gone, from the connection's begin on.
struct Bytes {
    taken: u64,
    end: u64,
}

struct OnItsWay {
    way: Way,
    /// Where its connection's bytes end behind it; `None` until the end of the turn.
    end: Option<u64>,
    event: EventId,
    subscriber: String,
    span: Span,
}

/// What is on its way to subscribers and is told of.
#[derive(Default)]
pub(super) struct Deliveries {
    /// What has caused the event that is handed over now, if that is told.
    handing: Option<Cause>,
    on_their_way: VecDeque<OnItsWay>,
}

impl Shard {
    /// What is handed over from now on is caused by this.
    pub(super) fn begin_deliveries(&mut self, cause: Option<Cause>) {
        self.deliveries.handing = cause;
    }

    /// Nothing is handed over any more.
    pub(super) fn end_deliveries(&mut self) {
        self.deliveries.handing = None;
    }

    /// Notes that an event was put into a subscriber's queue.
    pub(super) fn note_delivery(&mut self, way: Way, event: EventId) {
        let Some(cause) = &self.deliveries.handing else { return };
        let Some(traces) = self.context.push.traces.as_deref() else { return };
        if self.deliveries.on_their_way.len() >= DELIVERIES_MAX {
            traces.counts.dropped.fetch_add(1, Relaxed);
            return;
        }
        let Some(span) = traces.begin_in(Some(cause), Kind::Producer) else { return };
        let subscriber = self.subscriber_on(way).unwrap_or_default();
        self.deliveries.on_their_way.push_back(OnItsWay { way, end: None, event, subscriber, span });
    }

    /// Tells of what has gone, and of what goes no more; called when a turn has written.
    pub(super) fn tell_deliveries(&mut self) {
        if self.deliveries.on_their_way.is_empty() {
            return;
        }
        let Some(traces) = self.context.push.traces.clone() else { return };
        let mut on_their_way = std::mem::take(&mut self.deliveries.on_their_way);
        on_their_way.retain_mut(|delivery| {
            let failure = match self.bytes_on(delivery.way) {
                None => Some("the connection has ended".to_owned()),
                Some(Bytes { taken, end }) if taken >= *delivery.end.get_or_insert(end) => None,
                Some(_) => return true,
            };
            let text = |text: &str| Value::Text(text.to_owned());
            let protocol = if matches!(delivery.way, Way::Stream(_)) { "http" } else { "zmtp" };
            let attributes = vec![
                ("messaging.operation.type", text("send")),
                ("messaging.message.id", text(&delivery.event.to_string())),
                ("network.protocol.name", text(protocol)),
                ("bodkin.subscriber", text(&delivery.subscriber)),
            ];
            traces.end(delivery.span.clone(), "deliver".to_owned(), attributes, failure);
            false
        });
        self.deliveries.on_their_way = on_their_way;
    }

    /// `None`: the connection has ended.
    fn bytes_on(&self, way: Way) -> Option<Bytes> {
        match way {
            Way::Stream(ConnectionKey { slot, serial }) => {
                let connection = self.connections.get(slot).filter(|connection| connection.serial == serial)?;
                let taken = connection.taken_bytes();
                Some(Bytes { taken, end: taken + connection.unsent_bytes() as u64 })
            }
            Way::Link(key) => self.endpoint.bytes_on(key).map(|(taken, end)| Bytes { taken, end }),
        }
    }

    /// The system that hears, or where it is.
    fn subscriber_on(&self, way: Way) -> Option<String> {
        match way {
            Way::Stream(ConnectionKey { slot, .. }) => {
                let connection = self.connections.get(slot)?;
                let system = connection.client.peer.caller.system().map(|system| system.as_str().to_owned());
                system.or_else(|| connection.client.address.map(|client| client.to_string()))
            }
            Way::Link(key) => self.endpoint.subscriber_on(key),
        }
    }
}
