//! What a lane has still to forward: places of the event log, and the next records in the form that they have in a batch.
//!
//! ```text
//! follower ── offer ──> waiting: a place and a topic each ── refill, from the log ──> window ── read ──> batch
//!                └────────────── while nothing waits ───────────────────────────────────^
//! ```
//!
//! The events themselves are in the event log alone, whose limits bound them. Where retention takes one that still waits, its place says of which topic it was: losses are counted for each topic, and told
//! where they are in the order.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, VecDeque},
    io,
};

use bodkin_nats::lane::{Backlog, Batch, Held, Identity, Place, Put, Record, Stop};
use bodkin_store::event_log::{Cursor, EventLogReader, Position, Record as Logged, RecordName};

use self::window::Window;
use super::{
    checkpoint::Checkpoint,
    source::{Source, Stamp},
    writer::{EarlierStart, Writer, Writers},
};
use crate::replay::publication;

/// Places of a lane that wait. What comes behind so many is looked at again when half of them are gone, and what retention takes of it meanwhile is counted without topics. Eight bytes each.
pub const WAITING_MAX: usize = 4_000_000;
/// Topics of a lane whose losses are told apart.
const TOPICS_MAX: usize = 1 << TOPIC_BITS;
const TOPIC_BITS: u32 = 12;
/// Instead of a topic: a gap of the log, and what is of further topics. Their losses are told under the empty name.
const GAP: u64 = TOPICS_MAX as u64 - 1;
const OTHERS: u64 = TOPICS_MAX as u64 - 2;

/// What goes into a record as its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetForm {
    /// The event's payload.
    Payload,
    /// The event as JSON, as it is pushed, with its metadata.
    Event,
    /// The same, behind its position in the event log (8 bytes, the highest first): what nodes of one cloud hand on to each other.
    Placed,
}

/// What was read of what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refilled {
    /// Bytes that the window has grown by.
    pub bytes: usize,
    /// Places that do not wait any more.
    pub places: usize,
}

/// One lane's.
#[derive(Debug)]
pub struct LaneBacklog {
    log: EventLogReader,
    form: FleetForm,
    window_bytes_max: usize,
    writers: Writers,
    earlier: EarlierStart,
    /// Another process's batch that the operator has this lane continue behind.
    adopted: Option<(Writer, Identity)>,
    /// The operator has the lane continue behind the last batch of this process.
    adopts: Option<Writer>,
    /// The process whose batch the lane stopped at last.
    stopped_by: Option<Writer>,
    epoch: u64,
    /// The position of the window's first record.
    first: u64,
    window: Window,
    /// Of what was put into the window last.
    source: Option<Source>,
    /// A place of the log and a topic each, ascending.
    waiting: VecDeque<u64>,
    /// How many records each gap among them stands for, at the most.
    gaps: VecDeque<u64>,
    cursor: Option<Cursor>,
    /// How many of them at the most.
    waiting_max: usize,
    /// Where offers are taken from.
    offers_from: Position,
    /// Whether something that was offered from there on had no room.
    is_cut: bool,
    topics: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u64>,
    /// What the stream had last when the place was found; `None`: it has not been asked yet.
    placed: Option<Option<(u64, u64)>>,
    /// Has the stream taken anything since?
    is_settled: bool,
    /// Where it begins while the stream does not say anything else; later where it stands.
    pub checkpoint: Checkpoint,
    /// Where the records begin that no other process has forwarded: a node accepts events before its lanes begin.
    accepted_from: Position,
    /// Gaps of the log in front of this position are no losses: the epoch is new, and which of these positions had records nobody knows.
    gaps_count_from: Position,
    /// The follower has to go back to here.
    wants: Option<Position>,
    /// When those were accepted that the stream has acknowledged since this was asked last, in nanoseconds since 1970.
    pub acknowledged_ns: Vec<u64>,
    /// Events that were lost since this was asked last.
    pub lost: u64,
    /// The first place that waits, and when its record was accepted.
    oldest: Option<(u64, Option<u64>)>,
    /// Why the log could not be read.
    pub error: Option<io::Error>,
}

impl LaneBacklog {
    /// Begins where it had come to.
    pub fn new(log: EventLogReader, form: FleetForm, window_bytes_max: usize, checkpoint: Checkpoint, writers: Writers) -> Self {
        Self {
            accepted_from: log.accepted_from(),
            log,
            form,
            window_bytes_max,
            writers,
            earlier: EarlierStart::default(),
            adopted: None,
            adopts: None,
            stopped_by: None,
            epoch: checkpoint.epoch,
            first: checkpoint.position + 1,
            window: Window::default(),
            source: None,
            waiting: VecDeque::new(),
            gaps: VecDeque::new(),
            cursor: None,
            waiting_max: WAITING_MAX,
            offers_from: checkpoint.from,
            is_cut: false,
            topics: Vec::new(),
            numbers: HashMap::new(),
            placed: None,
            is_settled: false,
            checkpoint,
            gaps_count_from: Position(0),
            wants: None,
            acknowledged_ns: Vec::new(),
            lost: 0,
            oldest: None,
            error: None,
        }
    }

    /// Has the lane continue behind the last batch of the process that it stopped at, once. Asked again, it changes nothing.
    pub fn adopt(&mut self) {
        self.adopts = self.stopped_by.take();
    }

    /// Whether what the follower finds next may be offered. What cannot be is taken when there is room: other lanes do not wait for that.
    pub fn takes_offers(&self) -> bool {
        !self.is_cut && self.waiting.len() < self.waiting_max
    }

    /// Where the follower is to go back to, if it is.
    pub fn take_wanted(&mut self) -> Option<Position> {
        if self.has_room_again() {
            self.is_cut = false;
            return Some(self.wants.take().map_or(self.offers_from, |wants| wants.min(self.offers_from)));
        }
        self.wants.take()
    }

    fn has_room_again(&self) -> bool {
        self.is_cut && self.waiting.len() <= self.waiting_max / 2
    }

    /// Events and losses that are not in the stream yet, as far as is known.
    pub fn len(&self) -> usize {
        self.window.len() + self.waiting.len()
    }

    /// Whether it is to be brought on before anything else can be forwarded.
    pub fn wants_log(&self) -> bool {
        self.wants.is_some() || self.has_room_again() || self.is_behind() && self.window.len() == 0
    }

    /// In which count of positions it is.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns when the oldest record that is not in the stream was accepted, in nanoseconds since 1970; `None` if there is none, or the log cannot be read.
    pub fn oldest_ns(&mut self) -> Option<u64> {
        if let Some(kept) = self.window.first() {
            return kept.source.map(|source| source.name.time_ns);
        }
        let place = self.waiting.front()? >> TOPIC_BITS;
        if self.oldest.is_none_or(|(at, _)| at != place) {
            // Once for each place: while the stream is not reached, the first place stays.
            let time_ns = self.log.cursor(Position(place)).read().ok().flatten().map(|record| record.time_ns);
            self.oldest = Some((place, time_ns));
        }
        self.oldest?.1
    }

    /// A record of one of the lane's topics; gives by how many bytes the window has grown.
    pub fn offer(&mut self, record: &Logged<'_>) -> usize {
        if record.position < self.offers_from {
            return 0;
        }
        if !self.takes_offers() {
            self.is_cut = true;
            return 0;
        }
        self.offers_from = Position(record.position.0 + 1);
        if self.placed.is_some() && self.waiting.is_empty() && self.window.bytes() < self.window_bytes_max {
            return self.keep_event(record);
        }
        let topic = self.number_of(record.topic);
        self.waiting.push_back(record.position.0 << TOPIC_BITS | topic);
        0
    }

    /// The log does not have what is between these places (any more).
    pub fn offer_gap(&mut self, from: Position, until: Position) {
        if until <= self.offers_from {
            return;
        }
        if !self.takes_offers() {
            self.is_cut = true;
            return;
        }
        let missing = until.0.saturating_sub(from.max(self.offers_from).max(self.gaps_count_from).0);
        self.offers_from = until;
        if missing == 0 {
            return;
        }
        self.waiting.push_back((until.0 - 1) << TOPIC_BITS | GAP);
        self.gaps.push_back(missing);
    }

    fn number_of(&mut self, topic: &str) -> u64 {
        if let Some(number) = self.numbers.get(topic) {
            return *number;
        }
        if self.topics.len() as u64 == OTHERS {
            return OTHERS;
        }
        let number = self.topics.len() as u64;
        self.topics.push(topic.into());
        self.numbers.insert(topic.into(), number);
        number
    }

    /// Whether events wait that are not in the window, and may go there.
    pub fn is_behind(&self) -> bool {
        self.placed.is_some() && !self.waiting.is_empty()
    }

    /// Reads what waits into the window, as far as there is room, and so many places of it at the most but for those that are gone.
    pub fn refill(&mut self, places_max: usize) -> io::Result<Refilled> {
        if !self.is_behind() {
            return Ok(Refilled::default());
        }
        let (bytes_before, places_before) = (self.window.bytes(), self.waiting.len());
        let mut lost = BTreeMap::new();
        while self.window.bytes() < self.window_bytes_max && places_before - self.waiting.len() < places_max {
            let Some(next) = self.waiting.front().copied() else { break };
            let place = Position(next >> TOPIC_BITS);
            if next & (GAP) == GAP {
                self.waiting.pop_front();
                *lost.entry(GAP).or_default() += self.gaps.pop_front().expect("a gap has its count");
                continue;
            }
            let mut cursor = self.cursor.take().unwrap_or_else(|| self.log.cursor(place));
            let read = self.read_place(&mut cursor, place, &mut lost);
            self.cursor = Some(cursor);
            read?;
        }
        self.keep_losses(&mut lost);
        if self.waiting.is_empty() {
            // It reads ahead, and what follows comes by offers.
            self.cursor = None;
        }
        Ok(Refilled { bytes: self.window.bytes() - bytes_before, places: places_before - self.waiting.len() })
    }

    /// Takes the record at a place that waits, and forgets those that are gone.
    fn read_place(&mut self, cursor: &mut Cursor, place: Position, lost: &mut BTreeMap<u64, u64>) -> io::Result<()> {
        let record = cursor.read()?;
        let at = record.map(|record| record.position);
        if at.is_some_and(|at| at < place) {
            return Ok(());
        }
        if let Some(record) = record.filter(|_| at == Some(place)) {
            self.waiting.pop_front();
            self.keep_losses(lost);
            self.keep_event(&record);
            return Ok(());
        }
        // The record behind those that are gone may be one that waits too: it is read again.
        let until = at.unwrap_or(cursor.position());
        *cursor = self.log.cursor(until);
        while let Some(next) = self.waiting.front().copied().filter(|next| next >> TOPIC_BITS < until.0 && next & GAP != GAP) {
            self.waiting.pop_front();
            *lost.entry(next & GAP).or_default() += 1;
        }
        Ok(())
    }

    fn keep_losses(&mut self, lost: &mut BTreeMap<u64, u64>) {
        for (number, count) in std::mem::take(lost) {
            let topic = usize::try_from(number).ok().and_then(|at| self.topics.get(at)).cloned().unwrap_or_default();
            self.lose(&topic, count);
        }
    }

    fn lose(&mut self, topic: &str, count: u64) {
        self.lost += count;
        self.keep(Record::Lost { topic, count });
    }

    fn keep_event(&mut self, record: &Logged<'_>) -> usize {
        let before = self.window.bytes();
        self.source = Some(Source { position: record.position, name: RecordName::of(record) });
        let event;
        let payload: Cow<'_, [u8]> = match self.form {
            FleetForm::Event => record.event.as_bytes().into(),
            FleetForm::Placed => [&record.position.0.to_be_bytes()[..], record.event.as_bytes()].concat().into(),
            FleetForm::Payload => {
                event = publication(record);
                match event.as_ref().map(|event| event.payload().text()) {
                    Some(Cow::Borrowed(text)) => text.as_bytes().into(),
                    Some(Cow::Owned(text)) => text.into_bytes().into(),
                    None => {
                        self.lose(record.topic, 1);
                        return self.window.bytes() - before;
                    }
                }
            }
        };
        self.keep(Record::Event {
            topic: record.topic,
            publisher: record.id.publisher.0,
            incarnation: record.id.incarnation.0,
            sequence: record.id.sequence.0,
            created_ns: record.time_ns,
            payload: &payload,
        });
        self.window.bytes() - before
    }

    fn keep(&mut self, record: Record<'_>) {
        self.window.push(record, self.source);
    }

    /// Goes on in the log here, with this position.
    fn begin(&mut self, epoch: u64, first: u64, from: Position) {
        let was_asked = self.placed.is_some();
        (self.epoch, self.first, self.source) = (epoch, first, None);
        self.window = Window::default();
        self.cursor = None;
        if !was_asked && from >= self.checkpoint.from {
            // What was seen of the log while the stream could not be asked counts, behind what the stream has.
            while let Some(next) = self.waiting.front().copied().filter(|next| next >> TOPIC_BITS < from.0) {
                self.waiting.pop_front();
                if next & GAP == GAP {
                    self.gaps.pop_front();
                }
            }
            self.offers_from = self.offers_from.max(from);
        } else {
            self.waiting.clear();
            self.gaps.clear();
            (self.offers_from, self.is_cut) = (from, false);
            self.wants = Some(from);
        }
        self.checkpoint = Checkpoint { epoch, position: first - 1, from };
    }

    /// Forgets gaps in front of the first record that this node has accepted itself: the new epoch reports that what was there is not known.
    fn forget_former_gaps(&mut self) {
        self.gaps_count_from = self.accepted_from;
        let mut missing = std::mem::take(&mut self.gaps).into_iter();
        let mut counted = VecDeque::new();
        self.waiting.retain(|next| {
            if next & GAP != GAP {
                return true;
            }
            let until = (next >> TOPIC_BITS) + 1;
            let left = missing.next().expect("a gap has its count").min(until.saturating_sub(self.gaps_count_from.0));
            counted.extend(Some(left).filter(|left| *left > 0));
            left > 0
        });
        self.gaps = counted;
    }

    /// Where the log goes on behind what the stream has last, if that is in it.
    fn behind(&self, source: Option<Source>) -> io::Result<Option<Position>> {
        let Some(source) = source else { return Ok(None) };
        self.log.behind_record(source.position, source.name)
    }

    /// Whether what the stream has last is of a batch that was given here. The number is not enough: a pair's nodes count the same epochs, and the former leader's last batch may be
    /// stored when the next one has asked.
    fn has_given(&self, Identity { epoch, last, .. }: Identity, source: Option<Source>) -> bool {
        epoch == self.epoch && last.checked_sub(self.first).is_none_or(|at| self.window.get(at).is_some_and(|kept| kept.source == source))
    }

    fn find(&mut self, last: Option<Held<'_>>) -> io::Result<Place> {
        let Some(held) = last else {
            if self.placed.is_none() {
                let Checkpoint { epoch, position, from } = self.checkpoint;
                self.begin(epoch, position + 1, from);
                self.placed = Some(None);
                return Ok(Place::Moved(epoch));
            }
            return Ok(Place::Kept);
        };
        let Stamp { writer, source } = Stamp::read(held.source);
        let Identity { epoch, last, .. } = held.identity;
        let foreign = writer.filter(|writer| self.adopted != Some((*writer, held.identity))).filter(|writer| {
            let is_running = self.writers.is_earlier_start(*writer) && self.earlier.still_publishes(*writer, held.identity);
            is_running || !self.writers.continues(*writer, self.is_settled)
        });
        if let Some(writer) = foreign {
            if self.adopts.take() != Some(writer) {
                self.stopped_by = Some(writer);
                return Ok(Place::Stop(Stop::OtherWriter(self.writers.told(writer))));
            }
            self.adopted = Some((writer, held.identity));
            self.earlier = EarlierStart::default();
            let from = self.checkpoint.from;
            self.begin(epoch + 1, 1, from);
            self.placed = Some(Some((epoch, last)));
            return Ok(Place::Moved(epoch + 1));
        }
        let is_older = self.is_settled && epoch < self.epoch;
        if self.placed.is_some_and(|placed| placed == Some((epoch, last)) || is_older || self.has_given(held.identity, source)) {
            return Ok(Place::Kept);
        }
        let place = match self.behind(source)? {
            Some(from) => (epoch, last + 1, from),
            // What this process has given is in the stream: only another one of this name can be behind it.
            None if self.is_settled && epoch == self.epoch => return Ok(Place::Stop(Stop::Ahead(last))),
            None if self.is_settled => return Ok(Place::Stop(Stop::NewerEpoch(epoch))),
            None => {
                if writer.is_some_and(|writer| self.writers.is_own_or_earlier(writer)) {
                    tracing::error!(
                        stored = last,
                        "the stream has events of this edge or node that its event log lacks: the log has lost its end, or the data directory was put back to an \
                         earlier state; other events of that time may be lost"
                    );
                }
                // Others may have been accepted at the same instant, and not be in the stream.
                let from = source.map_or(Ok(self.checkpoint.from), |source| self.log.since(source.name.time_ns))?;
                (epoch + 1, 1, from.min(self.accepted_from))
            }
        };
        let (next_epoch, first, from) = place;
        self.begin(next_epoch, first, from);
        if next_epoch != epoch {
            self.forget_former_gaps();
        }
        self.placed = Some(Some((epoch, last)));
        Ok(Place::Moved(next_epoch))
    }
}

impl Backlog for LaneBacklog {
    fn first(&self) -> u64 {
        self.first
    }

    fn end(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    fn read(&mut self, from: u64, batch: &mut Batch) {
        let skipped = usize::try_from(from - self.first).expect("a place in memory");
        let mut source = None;
        for (kept, bytes) in self.window.behind(skipped) {
            if batch.put_written(bytes) == Put::Full {
                break;
            }
            source = kept.source;
        }
        batch.set_source(Stamp { writer: Some(self.writers.own()), source }.to_string());
    }

    fn place(&mut self, last: Option<Held<'_>>) -> Place {
        self.find(last).unwrap_or_else(|error| {
            let told = error.to_string();
            self.error = Some(error);
            Place::Stop(Stop::Unplaced(told))
        })
    }

    fn release(&mut self, through: u64) {
        while self.first <= through {
            let Some(kept) = self.window.pop() else { return };
            if let Some(source) = kept.source {
                self.acknowledged_ns.push(source.name.time_ns);
                self.checkpoint = Checkpoint { epoch: self.epoch, position: self.first, from: Position(source.position.0 + 1) };
            }
            self.first += 1;
            self.is_settled = true;
        }
    }
}

mod window;

#[cfg(test)]
mod tests;
