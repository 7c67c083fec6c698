//! A publisher that sends and forgets: PUB, NATS, MQTT.

use std::collections::VecDeque;
use std::net::SocketAddr;

use mio::{Registry, Token};

use super::connection::Connection;
use super::dialect::{Dialect, Heard};
use super::payload::{Payload, blank};
use super::publisher::{Account, Readiness, Shared};
use super::workload::{Proxy, Stamp};
use crate::event::payload::monotonic_ns;

/// Events whose acknowledgement is waited for, for its time to be known; those beyond are not timed.
const AWAITED_MAX: usize = 1 << 16;

/// One proxy and its connection.
pub struct PlainProxy {
    proxy: Proxy,
    connection: Connection<Box<dyn Dialect>>,
    acknowledges: bool,
    payload: Vec<u8>,
    /// Stamps of events that were sent and not acknowledged, in their order.
    awaited: VecDeque<u64>,
}

impl PlainProxy {
    /// Connects it.
    ///
    /// # Errors
    /// The broker does not answer.
    pub fn connect(
        address: SocketAddr,
        dialect: Box<dyn Dialect>,
        acknowledges: bool,
        proxy: Proxy,
        registry: &Registry,
        token: Token,
    ) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address, dialect, std::iter::empty())?;
        connection.watch(registry, token)?;
        Ok(Self { proxy, connection, acknowledges, payload: Vec::new(), awaited: VecDeque::new() })
    }

    /// Sends one event of each topic.
    pub fn burst(&mut self, sequence: u32, due_ns: u64, shared: &Shared, account: &mut Account) {
        if self.payload.is_empty() {
            self.payload = blank(shared.workload.payload_bytes);
        }
        let is_measured = due_ns >= shared.window.measured_from_ns;
        for topic in self.proxy.first_topic..self.proxy.first_topic + self.proxy.topics {
            let stamp_ns = if shared.workload.stamp == Stamp::Due { due_ns } else { monotonic_ns() };
            Payload { topic, sequence, stamp_ns }.write(&mut self.payload);
            let sent = self.connection.publish(&shared.names[topic as usize], &self.payload);
            if sent && self.acknowledges && self.awaited.len() < AWAITED_MAX {
                self.awaited.push_back(stamp_ns);
            }
            account.sent += u64::from(sent && is_measured);
            account.not_sent += u64::from(!sent && is_measured);
        }
        self.connection.flush();
    }

    /// Takes what the broker says.
    ///
    /// # Errors
    /// It does not keep to the protocol, or refuses.
    pub fn serve(&mut self, ready: Readiness<'_>, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        if ready.event.is_writable() {
            self.connection.may_write();
        }
        let awaited = &mut self.awaited;
        self.connection.read(ready.piece, &mut |heard| {
            if let Heard::Acknowledged(events) = heard {
                let now_ns = monotonic_ns();
                for stamp_ns in awaited.drain(..(events as usize).min(awaited.len())) {
                    if stamp_ns >= shared.window.measured_from_ns {
                        account.cover(&shared.window, now_ns, stamp_ns);
                    }
                }
            }
        })?;
        self.connection.flush();
        Ok(())
    }
}
