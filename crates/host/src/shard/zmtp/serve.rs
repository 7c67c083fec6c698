//! What links say is read and served.

use std::time::Instant;

use bodkin_zmtp::{Connection, Event, SocketType};

use super::{
    Shard,
    dealer::Dealer,
    link::{Read, Role},
    publish,
};
use crate::http::FIRST_BUFFER_BYTES;

/// The property by which a subscriber asks for a fourth frame, the metadata of events that have some; its value is one of these.
const METADATA_PROPERTY: &str = "X-Bodkin-Metadata";
const METADATA_WANTED: &[u8] = b"yes";
const METADATA_UNWANTED: &[u8] = b"no";
/// Bytes of an incomplete message that no quota counts; the limit of links bounds them.
const UNCOUNTED_BYTES: usize = FIRST_BUFFER_BYTES;

impl Shard {
    /// Reads links on that had more than their turn's share, or came too late in a turn.
    pub(in crate::shard) fn read_links_again(&mut self, read_until: Instant) {
        for _ in 0..self.endpoint.unread.len() {
            if Instant::now() >= read_until {
                break;
            }
            let slot = self.endpoint.unread.pop().expect("it was counted");
            if let Some(link) = self.endpoint.links.get_mut(slot) {
                link.is_to_be_read = false;
                self.read_link(slot);
            }
        }
    }

    pub(super) fn read_link(&mut self, slot: usize) {
        let mut received = std::mem::take(&mut self.endpoint.received);
        let queue_bytes_max = self.endpoint.queue_bytes_max;
        while self.endpoint.links.get_mut(slot).is_some_and(|link| !link.postpones(queue_bytes_max)) {
            match self.endpoint.links[slot].read(&mut received) {
                Ok(Read::Nothing) => break,
                Ok(Read::End) | Err(_) => {
                    self.close_link(slot);
                    break;
                }
                Ok(Read::Bytes { count, is_all }) => {
                    // An event that waited in the turn for those of others was not created earlier for it: its period is policed.
                    self.clock.advance();
                    self.serve_link(slot, &mut received[..count]);
                    if !is_all {
                        self.endpoint.read_next_turn(slot);
                        break;
                    }
                    // An end that was announced with these bytes raises no readiness of its own.
                    if !self.endpoint.links.get(slot).is_some_and(|link| link.end_is_announced) {
                        break;
                    }
                }
            }
        }
        self.endpoint.received = received;
    }

    /// Serves what a link has sent.
    fn serve_link(&mut self, slot: usize, mut bytes: &mut [u8]) {
        // What a closing link still sends is dropped.
        let Some(mut protocol) = self.endpoint.links.get_mut(slot).and_then(|link| link.protocol.take()) else { return };
        let refusal = loop {
            let Some(link) = self.endpoint.links.get_mut(slot) else { return };
            let unsent = link.unsent_bytes();
            let received = protocol.receive(bytes, link.outbox.bytes());
            if link.unsent_bytes() > unsent {
                self.endpoint.is_dirty(slot);
            }
            let taken = match received {
                Ok(received) => {
                    let Some(event) = received.event else { break None };
                    let taken = received.taken;
                    if let Event::Authenticate(credentials) = &event {
                        match self.identify(slot, credentials) {
                            Ok(()) => protocol.allow(self.endpoint.links[slot].outbox.bytes()),
                            Err(reason) => break Some(reason),
                        }
                        self.endpoint.is_dirty(slot);
                    } else if matches!(event, Event::Ready) {
                        if let Err(reason) = self.begin(slot, &mut protocol) {
                            break Some(reason);
                        }
                    } else if let Err(reason) = self.serve_event(slot, &event) {
                        break Some(reason);
                    }
                    taken
                }
                Err(error) => {
                    // What may be told of it is told already.
                    tracing::debug!(%error, "a ZMTP link is closed");
                    return self.end_link(slot);
                }
            };
            bytes = &mut bytes[taken..];
        };
        let Some(link) = self.endpoint.links.get_mut(slot) else { return };
        let exceeded = link.buffer.resize(protocol.kept_bytes().saturating_sub(UNCOUNTED_BYTES)).err();
        link.protocol = Some(protocol);
        if let Some(reason) = refusal.or_else(|| exceeded.map(|exceeded| exceeded.to_string())) {
            self.refuse_link(slot, &reason);
        }
    }

    /// What a peer of its socket type does here, once its handshake is over.
    fn begin(&mut self, slot: usize, protocol: &mut Connection) -> Result<(), String> {
        let endpoint = &mut self.endpoint;
        let is_sealed = protocol.sender().expect("the handshake is over").is_sealed();
        let peer = protocol.peer().expect("the handshake is over");
        let (socket_type, identity) = (peer.metadata.socket_type(), peer.metadata.identity());
        let wants_metadata = match peer.metadata.get(METADATA_PROPERTY) {
            None => false,
            Some(value) if value.eq_ignore_ascii_case(METADATA_UNWANTED) => false,
            Some(value) if value.eq_ignore_ascii_case(METADATA_WANTED) => true,
            Some(_) => return Err(format!("the property {METADATA_PROPERTY} is yes or no")),
        };
        // Whoever has shown a key is its system, whatever it calls itself.
        let certified = endpoint.links[slot].caller.system().cloned();
        let named = |identity: &[u8]| certified.map_or_else(|| publish::named(identity, endpoint.system.as_ref()), Ok);
        let role = match socket_type {
            SocketType::Sub | SocketType::Xsub => {
                endpoint.subscribers += 1;
                Role::subscriber()
            }
            SocketType::Req => Role::Requester { system: named(identity)?, awaits: false },
            SocketType::Pub | SocketType::Push => Role::Publisher { system: named(&[])? },
            SocketType::Dealer => Role::Dealer(Box::new(Dealer::new(named(identity), self.clock.now))),
            other => unreachable!("{other} is not taken"),
        };
        let link = &mut endpoint.links[slot];
        link.role = role;
        link.wants_metadata = wants_metadata;
        if is_sealed {
            link.begin_sealing();
        }
        link.probe();
        if socket_type == SocketType::Pub {
            // A PUB sends nothing that is not asked for.
            protocol.sender().expect("the handshake is over").subscribe(b"", link.outbox.bytes());
            endpoint.is_dirty(slot);
        }
        Ok(())
    }

    fn serve_event(&mut self, slot: usize, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Message(message) => self.take_message(slot, message),
            Event::Subscribe(prefix) => self.subscribe_link(slot, prefix),
            Event::Cancel(prefix) => {
                self.cancel_of_link(slot, prefix);
                Ok(())
            }
            // The answer to a ping is written already, and we send none.
            Event::Ping { .. } | Event::Pong { .. } => Ok(()),
            Event::Ready | Event::Authenticate(_) => unreachable!("they are served before"),
        }
    }
}
