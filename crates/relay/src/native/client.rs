//! The client's end of a connection to Bodkin's own relay.
//!
//! A channel to send is opened when the first message for its destination comes, and kept for the next ones; a channel to listen is opened with credit and a
//! ping: its answer says that the relay has read both.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{Assembly, Channel, Frame, Reason, Role, VERSIONS, WINDOW_BYTES, agree, cost, write};
use crate::{
    Destination,
    session::{Event, Listener, OUT_BYTES_MAX, OUT_BYTES_STUCK, Receipt, Refusal, Sending, Session, SessionFault},
};

/// Channels to send that are kept; for one more the one is closed that was used longest ago.
pub const SENDERS_MAX: usize = 8_192;
/// Destinations of which is remembered that a message to them may be lost; one more, and another one is forgotten.
const LOST_MAX: usize = 1_024;
/// A channel to send that was not used for so long is closed.
const SENDER_IDLE: Duration = Duration::from_secs(10);
/// Without anything from the relay, or to it, it is pinged.
const PING_PERIOD: Duration = Duration::from_secs(15);
/// Without anything from the relay it is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// What a channel is for.
#[derive(Debug)]
enum End {
    Listen {
        listener: Listener,
        /// What the relay may still send.
        credit: i64,
    },
    Send(Outlet),
    /// We have closed it, and the relay has not answered yet.
    Closing,
}

/// A channel to send.
#[derive(Debug)]
struct Outlet {
    destination: Destination,
    credit: i64,
    waiting: VecDeque<(Sending, Vec<u8>)>,
    used: Duration,
    /// Whether it is in the line of those that may send.
    is_in_line: bool,
}

/// A session with Bodkin's own relay.
#[derive(Debug)]
pub struct Client {
    input: Assembly,
    out: Vec<u8>,
    is_open: bool,
    next_channel: u32,
    channels: BTreeMap<Channel, End>,
    listeners: BTreeMap<Listener, Channel>,
    senders: BTreeMap<Destination, Channel>,
    /// Where the relay has closed a channel behind messages that were sent: it may not have taken them, which is told to who sends the next one.
    lost: BTreeMap<Destination, Refusal>,
    /// Where a message waits.
    waiting: BTreeMap<Sending, Channel>,
    /// Channels with a message and credit, each once; they take turns.
    line: VecDeque<Channel>,
    /// Listeners that the relay has yet to know of, by the token of their ping.
    asked: BTreeMap<u64, Listener>,
    next_token: u64,
    heard: Duration,
    wrote: Duration,
    pinged: Duration,
}

impl Client {
    /// Greets.
    pub fn new(now: Duration) -> Self {
        let mut out = Vec::new();
        write(&Frame::Greeting { newest: *VERSIONS.end(), oldest: *VERSIONS.start() }, &mut out);
        Self {
            input: Assembly::default(),
            out,
            is_open: false,
            next_channel: 0,
            channels: BTreeMap::new(),
            listeners: BTreeMap::new(),
            senders: BTreeMap::new(),
            lost: BTreeMap::new(),
            waiting: BTreeMap::new(),
            line: VecDeque::new(),
            asked: BTreeMap::new(),
            next_token: 0,
            heard: now,
            wrote: now,
            pinged: now,
        }
    }

    fn write(&mut self, frame: &Frame<'_>) {
        write(frame, &mut self.out);
    }

    fn open(&mut self, role: Role, destination: &Destination, end: End) -> Channel {
        let channel = loop {
            self.next_channel = self.next_channel.checked_add(1).unwrap_or(1);
            let channel = Channel(self.next_channel);
            if !self.channels.contains_key(&channel) {
                break channel;
            }
        };
        self.channels.insert(channel, end);
        self.write(&Frame::Open { channel, role, destination: destination.clone() });
        channel
    }

    /// Closes a channel from our side.
    fn close(&mut self, channel: Channel) {
        self.channels.insert(channel, End::Closing);
        self.write(&Frame::Close { channel });
    }

    fn ping(&mut self) -> u64 {
        self.next_token += 1;
        self.write(&Frame::Ping { token: self.next_token });
        self.next_token
    }

    /// What a frame says.
    fn take(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        if !self.is_open {
            return self.greeted(&frame, events);
        }
        match frame {
            Frame::Greeting { .. } => Err(unexpected("a second greeting")),
            Frame::Open { .. } => Err(unexpected("an opened channel")),
            Frame::Remove { .. } => Err(unexpected("a queue's removal")),
            Frame::Close { channel } => self.closed(channel, None, "it has closed the channel", events),
            Frame::Refused { channel: Channel::CONNECTION, words, .. } => Err(SessionFault::Refused(words.to_owned())),
            Frame::Refused { channel, reason, words } => self.closed(channel, Some(reason), words, events),
            Frame::Message { channel, bytes } => self.message(channel, bytes, events),
            Frame::Credit { channel, bytes } => self.credit(channel, bytes),
            Frame::Ping { token } => {
                self.write(&Frame::Pong { token });
                Ok(())
            }
            Frame::Pong { token } => {
                if let Some(listener) = self.asked.remove(&token).filter(|listener| self.listeners.contains_key(listener)) {
                    events.push(Event::Listening(listener));
                }
                Ok(())
            }
        }
    }

    fn greeted(&mut self, frame: &Frame<'_>, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        match frame {
            Frame::Greeting { newest, oldest } => {
                let version = if oldest <= newest { agree(VERSIONS, *oldest..=*newest) } else { None };
                version.ok_or(SessionFault::Version { newest: *newest, oldest: *oldest })?;
                self.is_open = true;
                events.push(Event::Open);
                Ok(())
            }
            Frame::Refused { words, .. } => Err(SessionFault::Refused((*words).to_owned())),
            _ => Err(SessionFault::Unexpected { expected: "a greeting", found: "another frame" }),
        }
    }

    /// The relay has ended a channel.
    fn closed(&mut self, channel: Channel, reason: Option<Reason>, words: &str, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        let end = self.channels.remove(&channel).ok_or_else(|| unknown(channel))?;
        if matches!(end, End::Closing) {
            return Ok(());
        }
        self.write(&Frame::Close { channel });
        let refusal = Refusal { reason, words: words.to_owned() };
        match end {
            End::Closing => {}
            End::Listen { listener, .. } => {
                self.listeners.remove(&listener);
                events.push(Event::Over { listener, refusal });
            }
            End::Send(outlet) => self.not_sent(outlet, &refusal, events),
        }
        Ok(())
    }

    fn not_sent(&mut self, outlet: Outlet, refusal: &Refusal, events: &mut Vec<Event>) {
        self.senders.remove(&outlet.destination);
        if outlet.waiting.is_empty() {
            if self.lost.len() >= LOST_MAX {
                self.lost.pop_first();
            }
            self.lost.insert(outlet.destination, refusal.clone());
            return;
        }
        for (sending, _) in outlet.waiting {
            self.waiting.remove(&sending);
            events.push(Event::NotSent { sending, refusal: refusal.clone() });
        }
    }

    fn message(&mut self, channel: Channel, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), SessionFault> {
        match self.channels.get_mut(&channel) {
            Some(End::Listen { credit, .. }) if *credit <= 0 => Err(SessionFault::NoCredit),
            Some(End::Listen { listener, credit }) => {
                let (listener, cost) = (*listener, cost(bytes.len()));
                *credit -= i64::from(cost);
                let receipt = Receipt::Credit(cost);
                if bytes.first() == Some(&0) {
                    events.push(Event::Bytes { listener, bytes: bytes.to_vec(), receipt });
                    return Ok(());
                }
                match std::str::from_utf8(bytes) {
                    Ok(text) => events.push(Event::Message { listener, text: text.to_owned(), receipt }),
                    Err(_) => {
                        events.push(Event::NoText(listener));
                        self.taken(listener, receipt);
                    }
                }
                Ok(())
            }
            // It was on its way when we closed.
            Some(End::Closing) => Ok(()),
            Some(End::Send(_)) => Err(unexpected("a message on a channel to send")),
            None => Err(unknown(channel)),
        }
    }

    fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), SessionFault> {
        match self.channels.get_mut(&channel) {
            Some(End::Send(outlet)) => {
                outlet.credit = outlet.credit.saturating_add(i64::from(bytes));
                self.line_up(channel);
                Ok(())
            }
            Some(End::Closing) => Ok(()),
            Some(End::Listen { .. }) => Err(unexpected("credit for a listener")),
            None => Err(unknown(channel)),
        }
    }

    fn line_up(&mut self, channel: Channel) {
        let Some(End::Send(outlet)) = self.channels.get_mut(&channel) else { return };
        if outlet.credit > 0 && !outlet.waiting.is_empty() && !outlet.is_in_line {
            outlet.is_in_line = true;
            self.line.push_back(channel);
        }
    }

    /// The channel to send to a destination. `None`: there are too many, and each has a message that waits.
    fn outlet(&mut self, destination: &Destination, now: Duration) -> Option<Channel> {
        if let Some(channel) = self.senders.get(destination) {
            return Some(*channel);
        }
        if self.senders.len() >= SENDERS_MAX {
            let idle = self.idle_senders().min_by_key(|(used, _)| *used)?;
            self.close_sender(idle.1);
        }
        let outlet = Outlet { destination: destination.clone(), credit: 0, waiting: VecDeque::new(), used: now, is_in_line: false };
        let channel = self.open(Role::Send, destination, End::Send(outlet));
        self.senders.insert(destination.clone(), channel);
        Some(channel)
    }

    /// When each channel without a message was last used.
    fn idle_senders(&self) -> impl Iterator<Item = (Duration, Channel)> {
        self.channels.iter().filter_map(|(channel, end)| match end {
            End::Send(outlet) if outlet.waiting.is_empty() => Some((outlet.used, *channel)),
            _ => None,
        })
    }

    fn close_sender(&mut self, channel: Channel) {
        if let Some(End::Send(outlet)) = self.channels.get(&channel) {
            self.senders.remove(&outlet.destination);
            self.close(channel);
        }
    }
}

impl Session for Client {
    fn receive(&mut self, bytes: &[u8], now: Duration, events: &mut Vec<Event>) -> Result<(), SessionFault> {
        self.heard = now;
        // Aside while its frames, which borrow it, change the rest.
        let mut input = std::mem::take(&mut self.input);
        input.put(bytes);
        while let Some(frame) = input.next_frame()? {
            self.take(frame, events)?;
            if self.out.len() > OUT_BYTES_STUCK {
                return Err(SessionFault::Stuck);
            }
        }
        self.input = input;
        Ok(())
    }

    fn listen(&mut self, listener: Listener, destination: &Destination) {
        let channel = self.open(Role::Listen, destination, End::Listen { listener, credit: i64::from(WINDOW_BYTES) });
        self.listeners.insert(listener, channel);
        self.write(&Frame::Credit { channel, bytes: WINDOW_BYTES });
        let token = self.ping();
        self.asked.insert(token, listener);
    }

    fn leave(&mut self, listener: Listener) {
        if let Some(channel) = self.listeners.remove(&listener) {
            self.close(channel);
        }
    }

    fn taken(&mut self, listener: Listener, receipt: Receipt) {
        let (Receipt::Credit(bytes), Some(channel)) = (receipt, self.listeners.get(&listener).copied()) else { return };
        let Some(End::Listen { credit, .. }) = self.channels.get_mut(&channel) else { return };
        *credit += i64::from(bytes);
        if bytes > 0 {
            self.write(&Frame::Credit { channel, bytes });
        }
    }

    fn send(&mut self, sending: Sending, destination: &Destination, text: String, now: Duration, events: &mut Vec<Event>) {
        self.send_bytes(sending, destination, text.into_bytes(), now, events);
    }

    fn send_bytes(&mut self, sending: Sending, destination: &Destination, bytes: Vec<u8>, now: Duration, events: &mut Vec<Event>) {
        if let Some(refusal) = self.lost.remove(destination) {
            events.push(Event::NotSent { sending, refusal });
            return;
        }
        let Some(channel) = self.outlet(destination, now) else {
            let words = format!("{SENDERS_MAX} destinations have messages that wait to be sent");
            events.push(Event::NotSent { sending, refusal: Refusal { reason: Some(Reason::Full), words } });
            return;
        };
        let Some(End::Send(outlet)) = self.channels.get_mut(&channel) else { return };
        outlet.waiting.push_back((sending, bytes));
        self.waiting.insert(sending, channel);
        self.line_up(channel);
    }

    fn give_up(&mut self, sending: Sending) {
        let Some(channel) = self.waiting.remove(&sending) else { return };
        if let Some(End::Send(outlet)) = self.channels.get_mut(&channel) {
            outlet.waiting.retain(|(waiting, _)| *waiting != sending);
        }
    }

    fn remove(&mut self, destination: &Destination, events: &mut Vec<Event>) {
        if matches!(destination, Destination::Topic(_)) {
            return;
        }
        if let Some(channel) = self.senders.get(destination).copied() {
            if let Some(End::Send(outlet)) = self.channels.remove(&channel) {
                let refusal = Refusal { reason: Some(Reason::Removed), words: "the queue was removed from this side".to_owned() };
                self.not_sent(outlet, &refusal, events);
            }
            self.close(channel);
        }
        // Whoever removes it knows.
        self.lost.remove(destination);
        self.write(&Frame::Remove { destination: destination.clone() });
    }

    fn beat(&mut self, now: Duration) -> Result<Duration, SessionFault> {
        if now >= self.heard + SILENCE_MAX {
            return Err(SessionFault::Silent);
        }
        let idle: Vec<Channel> = self.idle_senders().filter(|(used, _)| now >= *used + SENDER_IDLE).map(|(_, channel)| channel).collect();
        idle.into_iter().for_each(|channel| self.close_sender(channel));
        // Pinged once and not again before something has come, or as much time has passed.
        let quiet_since = self.heard.min(self.wrote).max(self.pinged);
        if self.is_open && now >= quiet_since + PING_PERIOD {
            self.pinged = now;
            self.ping();
        }
        Ok(now + PING_PERIOD / 3)
    }

    fn take_out(&mut self, now: Duration, out: &mut Vec<u8>, events: &mut Vec<Event>) {
        while self.out.len() < OUT_BYTES_MAX
            && let Some(channel) = self.line.pop_front()
        {
            let Some(End::Send(outlet)) = self.channels.get_mut(&channel) else { continue };
            outlet.is_in_line = false;
            let Some((sending, bytes)) = outlet.waiting.pop_front_if(|_| outlet.credit > 0) else { continue };
            outlet.credit -= i64::from(cost(bytes.len()));
            outlet.used = now;
            write(&Frame::Message { channel, bytes: &bytes }, &mut self.out);
            self.waiting.remove(&sending);
            events.push(Event::Sent(sending));
            self.line_up(channel);
        }
        if !self.out.is_empty() {
            self.wrote = now;
        }
        debug_assert!(out.is_empty(), "what was taken before is written");
        std::mem::swap(&mut self.out, out);
    }

    /// The end of the connection says it.
    fn end(&mut self) {}
}

fn unexpected(found: &'static str) -> SessionFault {
    SessionFault::Unexpected { expected: "what a relay says", found }
}

fn unknown(channel: Channel) -> SessionFault {
    SessionFault::Unknown { what: "channel", number: channel.0.into() }
}

#[cfg(test)]
mod tests;
