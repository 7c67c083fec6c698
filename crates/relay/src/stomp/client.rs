//! A session with a broker of Java clouds.
//!
//! Whoever listens gets [`PREFETCH`] messages and no more before one is taken. Whoever sends is held up by the connection: a broker that is full stops reading it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{Beat, Decoder, Frame, HeartBeat, Limits, Pulse, ServerFrame, request};
use crate::{
    Destination,
    session::{Event, Listener, OUT_BYTES_MAX, OUT_BYTES_STUCK, Receipt, Refusal, Sending, Session, SessionFault},
};

/// Messages that a broker sends a listener before one is taken.
pub const PREFETCH: u32 = 8;
/// Bytes of messages that a listener has not taken, beyond which the broker is given up. Artemis counts bytes and not messages, so that there may be more short ones.
const UNTAKEN_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Messages that a listener has not taken, likewise.
const UNTAKEN_MAX: usize = 4_096;
/// What we offer and want, in both directions.
const HEART_BEAT: HeartBeat = HeartBeat { sends_ms: 10_000, wants_ms: 10_000 };
/// Longest time from CONNECT to CONNECTED, and between two looks at the time.
const LOOK_PERIOD: Duration = Duration::from_secs(5);

/// What a listener has not taken.
#[derive(Debug, Default)]
struct Untaken {
    messages: usize,
    bytes: usize,
}

/// A session with a broker.
#[derive(Debug)]
pub struct Client {
    decoder: Decoder,
    out: Vec<u8>,
    /// From CONNECTED on.
    pulse: Option<Pulse>,
    /// By its number, which is the subscription's too.
    listeners: BTreeMap<Listener, Untaken>,
    /// Subscriptions that the broker has yet to confirm, by the number of their receipt.
    asked: BTreeMap<u64, Listener>,
    next_receipt: u64,
    waiting: VecDeque<(Sending, Destination, String)>,
}

impl Client {
    /// Says CONNECT. `client_id` is a number that nobody else has at the broker.
    pub fn new(client_id: u64, login: Option<&request::Login>) -> Self {
        let mut client = Self {
            decoder: Decoder::new(Limits::default()),
            out: Vec::new(),
            pulse: None,
            listeners: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_receipt: 0,
            waiting: VecDeque::new(),
        };
        client.write(&request::connect(client_id, HEART_BEAT, login));
        client
    }

    fn write(&mut self, frame: &Frame) {
        frame.write(&mut self.out);
    }

    fn receipt(&mut self) -> u64 {
        self.next_receipt += 1;
        self.next_receipt
    }

    fn take(&mut self, frame: ServerFrame, now: Duration, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        match (frame, self.pulse.is_some()) {
            (ServerFrame::Error { words, receipt }, _) => {
                // The connection ends with it, and whoever asked for it is not to ask again.
                if let Some(listener) = receipt.and_then(|receipt| self.asked.remove(&receipt)) {
                    self.listeners.remove(&listener);
                    events.push(Event::Over { listener, refusal: Refusal { reason: None, words: words.clone() } });
                }
                Err(SessionFault::Refused(words))
            }
            (ServerFrame::Connected { heart_beat, .. }, false) => {
                let mut pulse = HEART_BEAT.agree(heart_beat);
                pulse.heard(now);
                pulse.sent(now);
                self.pulse = Some(pulse);
                events.push(Event::Open);
                Ok(())
            }
            (_, false) => Err(SessionFault::Unexpected { expected: "CONNECTED", found: "another frame" }),
            (ServerFrame::Connected { .. }, true) => {
                Err(SessionFault::Unexpected { expected: "MESSAGE, RECEIPT or ERROR", found: "CONNECTED" })
            }
            (ServerFrame::Receipt(receipt), true) => {
                if let Some(listener) = self.asked.remove(&receipt).filter(|listener| self.listeners.contains_key(listener)) {
                    events.push(Event::Listening(listener));
                }
                Ok(())
            }
            (ServerFrame::Message { subscription, ack, text, .. }, true) => self.message(subscription, ack, text, events),
        }
    }

    fn message(&mut self, listener: Listener, ack: String, text: String, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        // One that was on its way when the listener left goes to somebody else: it is not acknowledged.
        let Some(untaken) = self.listeners.get_mut(&listener) else { return Ok(()) };
        let bytes = text.len();
        (untaken.messages, untaken.bytes) = (untaken.messages + 1, untaken.bytes + bytes);
        if untaken.messages > UNTAKEN_MAX || untaken.bytes - bytes > UNTAKEN_BYTES_MAX {
            return Err(SessionFault::NoCredit);
        }
        events.push(Event::Message { listener, text, receipt: Receipt::Ack { ack, bytes } });
        Ok(())
    }
}

impl Session for Client {
    fn receive(&mut self, mut bytes: &[u8], now: Duration, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        if let Some(pulse) = &mut self.pulse {
            pulse.heard(now);
        }
        while let Some(frame) = self.decoder.receive(&mut bytes)? {
            self.take(ServerFrame::read(frame)?, now, events)?;
        }
        if self.out.len() > OUT_BYTES_STUCK { Err(SessionFault::Stuck) } else { Ok(()) }
    }

    fn listen(&mut self, listener: Listener, destination: &Destination) {
        let receipt = self.receipt();
        self.listeners.insert(listener, Untaken::default());
        self.asked.insert(receipt, listener);
        self.write(&request::subscribe(listener, destination, PREFETCH, receipt));
    }

    fn leave(&mut self, listener: Listener) {
        if self.listeners.remove(&listener).is_some() {
            self.write(&request::unsubscribe(listener));
        }
    }

    fn taken(&mut self, listener: Listener, receipt: Receipt) {
        let (Receipt::Ack { ack, bytes }, Some(untaken)) = (receipt, self.listeners.get_mut(&listener)) else { return };
        (untaken.messages, untaken.bytes) = (untaken.messages.saturating_sub(1), untaken.bytes.saturating_sub(bytes));
        self.write(&request::ack(&ack));
    }

    fn send(&mut self, sending: Sending, destination: &Destination, text: String, _: Duration, _: &mut Vec<Event>) {
        self.waiting.push_back((sending, destination.clone(), text));
    }

    fn send_bytes(&mut self, sending: Sending, _: &Destination, _: Vec<u8>, _: Duration, events: &mut Vec<Event>) {
        let words = "a broker is sent texts only, and this message is of bytes".to_owned();
        events.push(Event::NotSent { sending, refusal: Refusal { reason: None, words } });
    }

    fn give_up(&mut self, sending: Sending) {
        self.waiting.retain(|(waiting, ..)| *waiting != sending);
    }

    /// A broker removes queues that nobody has used for some time.
    fn remove(&mut self, _: &Destination, _: &mut Vec<Event>) {}

    fn beat(&mut self, now: Duration) -> Result<Duration, SessionFault> {
        match self.pulse.as_ref().map(|pulse| pulse.beat(now)) {
            Some(Beat::Silent) => Err(SessionFault::Silent),
            Some(Beat::Send) => {
                self.out.push(b'\n');
                Ok(now + LOOK_PERIOD)
            }
            Some(Beat::Wait(Some(until))) => Ok(until.min(now + LOOK_PERIOD)),
            Some(Beat::Wait(None)) | None => Ok(now + LOOK_PERIOD),
        }
    }

    fn take_out(&mut self, now: Duration, out: &mut Vec<u8>, events: &mut Vec<Event>) {
        while self.out.len() < OUT_BYTES_MAX
            && self.pulse.is_some()
            && let Some((sending, destination, text)) = self.waiting.pop_front()
        {
            self.write(&request::send_text(&destination, &text, None));
            events.push(Event::Sent(sending));
        }
        if let Some(pulse) = self.pulse.as_mut().filter(|_| !self.out.is_empty()) {
            pulse.sent(now);
        }
        debug_assert!(out.is_empty(), "what was taken before is written");
        std::mem::swap(&mut self.out, out);
    }

    fn end(&mut self) {
        let receipt = self.receipt();
        self.write(&request::disconnect(receipt));
    }
}

#[cfg(test)]
mod tests;
