//! A session without frames: bytes as they come, of one connection after the other.

use std::time::Duration;

use super::{Event, Manner, Session, Side};
use crate::tunnel::{Connection, Reason, exchanges::Exchanges, whole_requests::is_request};

impl Session {
    /// Bytes have come that are in no frame: of the one connection that there is then. A provider is connected to anew behind
    /// [`PLAIN_REQUESTS_MAX`](crate::tunnel::PLAIN_REQUESTS_MAX) whole requests, and when it has ended its connection, or said so, behind the answer to every one.
    pub fn receive_plain(&mut self, bytes: Vec<u8>, now: Duration, events: &mut Vec<Event>) -> Result<(), Reason> {
        if self.manner == Manner::Numbered {
            return Err(Reason::fault("bytes come in no frame"));
        }
        self.manner = Manner::Plain;
        self.heard = Some(now);
        if self.side == Side::Provider && self.is_connection_due(&bytes) {
            if self.is_full() {
                return Err(Reason::fault("it wants further connections before those that it had have ended"));
            }
            self.connect_anew(now, events);
        }
        if self.connections.contains_key(&self.last) && !bytes.is_empty() {
            events.push(Event::Bytes(self.last, bytes));
        }
        Ok(())
    }

    /// Takes note of a message; whether it is for a new connection.
    fn is_connection_due(&mut self, message: &[u8]) -> bool {
        let Self { last, connections, exchanges, .. } = self;
        let is_first = *last == 0;
        if is_first {
            // As upstream does: what comes first says whether each message is a request.
            *exchanges = is_request(message).then(Exchanges::new);
        }
        let Some(exchanges) = exchanges else { return is_first };
        let has_ended = connections.get(last).is_none_or(|directions| directions.has_ended);
        let is_due = is_first || exchanges.is_full() || exchanges.is_last() || (has_ended && exchanges.is_settled());
        if is_due {
            *exchanges = Exchanges::new();
        }
        exchanges.ask(message);
        is_due
    }

    /// Bytes of the connection are sent that are in no frame.
    pub fn sent_plain(&mut self, connection: Connection, bytes: &[u8]) {
        if let Some(exchanges) = self.exchanges.as_mut().filter(|_| connection == self.last) {
            exchanges.answer(bytes);
        }
    }

    /// What is said from now on is for a new connection. The one before may still answer what it was asked; the one before that has had its time.
    fn connect_anew(&mut self, now: Duration, events: &mut Vec<Event>) {
        let retired = self.last.checked_sub(1).filter(|before| self.connections.remove(before).is_some());
        self.leaving.extend(retired);
        events.extend(retired.map(Event::Retire));
        self.last += 1;
        self.begin(self.last, now);
        events.push(Event::Connect(self.last));
    }

    /// A connection has ended: whether the session goes on without frames, because another one has come in its place, or will with the next request: the provider has
    /// answered whatever it was asked.
    pub fn goes_on_without(&mut self, connection: Connection, now: Duration) -> bool {
        let is_replaced = connection < self.last;
        let is_settled = self.exchanges.as_ref().is_some_and(Exchanges::is_settled);
        let goes_on = self.manner == Manner::Plain && (is_replaced || is_settled);
        if goes_on {
            self.forget(connection, now);
        }
        goes_on
    }
}
