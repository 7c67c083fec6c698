//! Links are taken in.

use std::{io, sync::atomic::Ordering::Relaxed};

use bodkin_zmtp::Connection;
use mio::{Interest, Token};

use super::{LINKS, Shard, link::Link, secure, socket::LinkSocket};
use crate::quotas::ClientKey;

/// Links accepted from one socket in one turn.
const TURN_ACCEPTS_MAX: usize = 16;

impl Shard {
    /// Takes links in, a turn's share of those that wait at each socket.
    pub(in crate::shard) fn accept_links(&mut self) {
        if !std::mem::take(&mut self.endpoint.is_to_accept) {
            return;
        }
        for listener in 0..self.endpoint.listeners.len() {
            for accepted in 1.. {
                match self.endpoint.listeners[listener].accept() {
                    Ok(socket) => self.welcome_link(socket),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted || error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        if let Some(times) = self.not_accepted.due() {
                            tracing::warn!(%error, times, "ZMTP link not accepted: raise the limit on open files if it is reached");
                        }
                        break;
                    }
                }
                if accepted == TURN_ACCEPTS_MAX {
                    self.endpoint.is_to_accept = true;
                    break;
                }
            }
        }
    }

    pub(super) fn count_links(&self) {
        self.context.counts.zmtp_connections.store(self.endpoint.links.len() as u64, Relaxed);
    }

    fn welcome_link(&mut self, mut socket: LinkSocket) {
        let client = socket.peer().map_or(ClientKey::Local, |peer| ClientKey::address(peer.ip()));
        // ZMTP has no message for it before the handshake: the link is closed.
        let Ok(permit) = self.context.quotas.zmtp.admit(client) else { return };
        let random = match secure::random(&self.endpoint.settings.security) {
            Ok(random) => random,
            Err(error) => return tracing::error!(%error, "a ZMTP link was closed"),
        };
        let token = Token(LINKS + self.endpoint.links.vacant_key());
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = socket.send_at_once().and_then(|()| self.poll.registry().register(socket.source(), token, both));
        if let Err(error) = registered {
            return tracing::debug!(%error, "a ZMTP link was gone before it was served");
        }
        let endpoint = &mut self.endpoint;
        let mut greeting = Vec::new();
        let protocol = Connection::server(endpoint.settings.clone(), random, &mut greeting);
        let link = Link::new(socket, permit, protocol, &greeting, endpoint.next_serial, self.clock.now);
        endpoint.next_serial = endpoint.next_serial.saturating_add(1);
        let slot = endpoint.insert(link);
        endpoint.is_dirty(slot);
        self.count_links();
        self.write_link(slot);
    }
}
