//! What is told of links that hear events.

use bodkin_broker::Shard as Broker;

use super::{Endpoint, LinkKey, link::Role};
use crate::{
    api::streams::{StreamForm, StreamPhase, StreamState, Streams},
    shard::Receiver,
};

impl Endpoint {
    /// Bytes that a link's socket has taken, and where they end; `None`: it has gone.
    pub(in crate::shard) fn bytes_on(&self, key: LinkKey) -> Option<(u64, u64)> {
        let link = self.links.get(key.slot).filter(|link| link.serial == key.serial)?;
        Some((link.taken_bytes(), link.end()))
    }

    /// The link in a slot.
    pub(in crate::shard) fn key_of(&self, slot: usize) -> LinkKey {
        LinkKey { slot, serial: self.links[slot].serial }
    }

    /// Who hears on a link, or where it is.
    pub(in crate::shard) fn subscriber_on(&self, key: LinkKey) -> Option<String> {
        let link = self.links.get(key.slot)?;
        let named = if let Role::Dealer(dealer) = &link.role { dealer.name() } else { None };
        let system = link.caller.system().map(|system| system.as_str()).or(named).map(str::to_owned);
        system.or_else(|| link.socket.peer().map(|peer| peer.to_string()))
    }

    /// Appends the links that hear events. In secure mode a link hears as the system that its key is bound to, else as whom it has named.
    pub(in crate::shard) fn tell_streams(&self, broker: &Broker<Receiver>, room_bytes: u64, streams: &mut Streams) {
        for (_, link) in &self.links {
            let (form, event_types, only, name, untold) = match &link.role {
                Role::Subscriber(subscriber) => {
                    let only = subscriber.heard.keys().next().map(|name| &**name);
                    (StreamForm::Sub, subscriber.heard.len(), only, None, 0)
                }
                Role::Dealer(dealer) if dealer.hears() => {
                    let only = dealer.heard.keys().next().map(|topic| &**broker.topic_name(*topic));
                    let untold = dealer.heard.values().filter_map(|heard| heard.key).map(|key| broker.untold_loss(key)).sum();
                    (StreamForm::Dealer, dealer.heard.len(), only, dealer.name(), untold)
                }
                _ => continue,
            };
            streams.push(|| StreamState {
                id: format!("zmtp-{}", link.serial),
                form,
                event_types,
                event_type: only.filter(|_| event_types == 1).map(str::to_owned),
                consumer: link.caller.system().map(|system| system.as_str()).or(name).map(str::to_owned),
                address: link.socket.peer(),
                state: if link.is_losing() || untold > 0 { StreamPhase::Losing } else { StreamPhase::Live },
                waiting_bytes: link.unsent_bytes() as u64,
                room_bytes,
                lost: link.lost + untold,
            });
        }
    }
}
