//! What a lane does next: asks the stream what it has, publishes a batch, waits for its answer.
//!
//! ```text
//! away ──opened──> asking ──found──> ready ──> sent ──acknowledged──> ready
//!                    ^                          │ refused, no answer
//!                    └──────── resting <────────┘
//! ```
//!
//! One batch is under way at a time. More would have to be published before it is known what the stream's last message is: then the condition could not be set, and with an answer lost it would be up to
//! the stream's duplicate window whether something is in it twice, and up to its leaders whether the order is kept. A longer way is made good by longer batches, and by more lanes.

use std::{collections::VecDeque, time::Duration};

use super::{
    backlog::{Backlog, Held, Place},
    batch::Batch,
    identity::{Identity, IdentityError, SOURCE_BYTES_MAX, SOURCE_HEADER},
};
use crate::{
    jetstream::{AnswerError, EXPECTED_LAST_SUBJECT_SEQUENCE, EXPECTED_STREAM, ErrorKind, Last, MESSAGE_ID, PublishAck},
    protocol::{Headers, SUBJECT_BYTES_MAX, Subject},
};

/// What a lane is set up as.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The stream that its events go into.
    pub stream: String,
    /// Its subject there, which nobody else publishes to.
    pub subject: Subject,
    /// Its count of positions: higher than all before it that began anew.
    pub epoch: u64,
    /// Bytes of a batch.
    pub batch_bytes_max: usize,
    /// The longest time that an event waits for its batch to become full.
    pub batch_wait_max: Duration,
    /// How long is waited behind a refusal; doubled with each further one.
    pub rest_least: Duration,
    /// As long at the most.
    pub rest_most: Duration,
}

/// Why a lane does not go on, until the stream looks otherwise: it looks again each [`Terms::rest_most`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The subject's last message is not a lane's.
    #[error("somebody else publishes to this lane's subject: {0}")]
    Foreign(IdentityError),
    /// Another process of this name has begun anew since.
    #[error(
        "the stream has epoch {0} of this lane, which is higher than its own: another edge has its name, or this one was put back to an earlier state"
    )]
    NewerEpoch(u64),
    /// The stream has positions that this lane has not given yet.
    #[error(
        "the stream has this lane's positions up to {0}, which it has not given yet: another edge has its name, or this one was put back to an earlier state"
    )]
    Ahead(u64),
    /// Another process has published the subject's last batch; the text names both, and says what to do.
    #[error("{0}")]
    OtherWriter(String),
    /// The edge cannot find its own place.
    #[error("this edge cannot read where its lane goes on: {0}")]
    Unplaced(String),
}

/// Why something has to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// JetStream's no, or an answer that is none.
    #[error(transparent)]
    Answer(AnswerError),
    /// There is no such stream, or no JetStream.
    #[error("nobody takes what is published for this stream: there is none, or JetStream is not there")]
    NobodyListens,
    /// It is not known what has become of it.
    #[error("no answer has come in time")]
    NoAnswer,
    /// The server takes no messages of a batch's length.
    #[error("the server takes messages of {0} bytes, which no batch has room in")]
    TooLong(usize),
    /// It went into another stream.
    #[error("the stream {0:?} has taken it")]
    OtherStream(String),
}

/// What a lane tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The stream was asked: it goes on with this position.
    Resumed(u64),
    /// The stream has everything up to this position.
    Stored {
        /// This one.
        through: u64,
        /// Records of the batch.
        records: u64,
        /// The stream had it already.
        is_duplicate: bool,
    },
    /// The stream has lost what it had acknowledged: these positions, from the first to the second one, are not held here any more.
    StreamLost(u64, u64),
    /// The subject is empty, which had everything up to this position: its messages were purged or too old, or the stream has lost them.
    Emptied(u64),
    /// Events that are longer than a batch can be: a loss is reported in their place.
    TooLong {
        /// How many.
        events: u64,
        /// Bytes of a batch.
        bytes_max: usize,
        /// True if the server's `max_payload` is the reason, false if it is `batch_bytes_max`.
        is_servers: bool,
    },
    /// Something is tried again later.
    Refused(Refusal),
    /// It does not go on.
    Stopped(Stop),
}

/// What is to be done for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing until this time, or until something comes.
    Wait(Option<Duration>),
    /// Ask for the last message of its subject.
    Ask,
    /// Publish [`Lane::publication`].
    Publish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Away,
    /// Ask once this time has come.
    Resting(Duration),
    /// The last message is waited for.
    Asked,
    /// The stream's last message is known, nothing is under way.
    Ready,
    /// An acknowledgement is waited for.
    Sent,
}

/// One lane.
#[derive(Debug)]
pub struct Lane {
    terms: Terms,
    state: State,
    /// The sequence of the subject's last message.
    expected: u64,
    /// The first position that the stream does not have; `None`: it has not been asked yet.
    next: Option<u64>,
    /// What is published next or is under way. It is kept until it is known to be stored, so that it is published again as the same.
    batch: Option<(Identity, Batch)>,
    /// What is not in the stream any more, told once a batch behind it is stored: only then it is the truth, and not what a leader of yesterday says.
    gap: Option<Told>,
    /// Bytes of a message that the server takes.
    message_bytes_max: usize,
    /// Since when how many bytes wait that are in no batch, as far as it was said.
    waiting: VecDeque<(Duration, usize)>,
    /// Refusals since the last acknowledgement.
    refusals: u32,
}

/// Times that are told apart of what waits; what comes behind them counts as come with the last one.
const GROWTHS_MAX: usize = 64;

/// Bytes of a message beside its batch: its line and its headers, with three subjects, the stream's name, and the source twice.
const ENVELOPE_BYTES_MAX: usize = 4 * SUBJECT_BYTES_MAX + 2 * SOURCE_BYTES_MAX + 512;

impl Lane {
    /// A lane without a connection.
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            state: State::Away,
            expected: 0,
            next: None,
            batch: None,
            gap: None,
            message_bytes_max: usize::MAX,
            waiting: VecDeque::new(),
            refusals: 0,
        }
    }

    /// What it is set up as.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// There is a connection, to a server that takes messages of so many bytes. A lane that had one already rests as long as it would, or waits for its answer.
    pub fn opened(&mut self, message_bytes_max: usize, now: Duration) {
        self.message_bytes_max = message_bytes_max;
        if self.state == State::Away {
            self.state = State::Resting(now);
        }
    }

    /// There is none any more: it is not known what has become of what was under way.
    pub fn closed(&mut self) {
        self.state = State::Away;
    }

    /// The backlog has grown by so many bytes, which have come since this time. Times ascend.
    pub fn grown(&mut self, bytes: usize, since: Duration) {
        let is_full = self.waiting.len() == GROWTHS_MAX;
        match self.waiting.back_mut() {
            Some((at, waiting)) if is_full || *at == since => *waiting = waiting.saturating_add(bytes),
            _ => self.waiting.push_back((since, bytes)),
        }
    }

    /// So many bytes of what waits are in a batch.
    fn taken(&mut self, mut bytes: usize) {
        while let Some((_, waiting)) = self.waiting.front_mut() {
            if *waiting > bytes {
                *waiting -= bytes;
                return;
            }
            bytes -= *waiting;
            self.waiting.pop_front();
        }
    }

    /// What is to be done now. Ask and Publish count as done.
    pub fn step(&mut self, now: Duration, backlog: &mut impl Backlog, told: &mut Vec<Told>) -> Step {
        match self.state {
            State::Away | State::Asked | State::Sent => Step::Wait(None),
            State::Resting(until) if until > now => Step::Wait(Some(until)),
            State::Resting(_) => {
                self.state = State::Asked;
                Step::Ask
            }
            State::Ready => self.cut(now, backlog, told),
        }
    }

    /// Takes a batch off the backlog, if it is time.
    fn cut(&mut self, now: Duration, backlog: &mut impl Backlog, told: &mut Vec<Told>) -> Step {
        if self.batch.is_none() {
            let next = self.next.expect("the stream was asked");
            if next >= backlog.end() {
                self.waiting.clear();
                return Step::Wait(None);
            }
            // What nobody has spoken of has waited: it was there before this lane, or its batch was refused.
            let due = self.waiting.front().map_or(now, |(since, _)| *since + self.terms.batch_wait_max);
            let waiting_bytes = || self.waiting.iter().map(|(_, bytes)| bytes).sum::<usize>();
            if due > now && waiting_bytes() < self.batch_bytes_max() {
                return Step::Wait(Some(due));
            }
            let mut batch = Batch::new(self.batch_bytes_max());
            backlog.read(next, &mut batch);
            assert!(batch.records() > 0, "the backlog does not have what it says");
            if batch.too_long() > 0 {
                let bytes_max = self.batch_bytes_max();
                let is_servers = bytes_max < self.terms.batch_bytes_max;
                told.push(Told::TooLong { events: batch.too_long(), bytes_max, is_servers });
            }
            let identity = Identity { epoch: self.terms.epoch, first: next, last: next + batch.records() - 1 };
            self.taken(batch.bytes().len());
            self.batch = Some((identity, batch));
        }
        self.state = State::Sent;
        Step::Publish
    }

    fn batch_bytes_max(&self) -> usize {
        self.terms.batch_bytes_max.min(self.message_bytes_max.saturating_sub(ENVELOPE_BYTES_MAX))
    }

    /// What is published: its subject, headers and payload.
    ///
    /// # Panics
    /// Nothing is to be published.
    pub fn publication(&self) -> (&Subject, Headers, &[u8]) {
        let (identity, batch) = self.batch.as_ref().expect("there is a batch");
        let Identity { epoch, first, last } = identity;
        let subject = &self.terms.subject;
        let headers = identity.headers();
        // Two edges of one name give the same positions. Without the source both batches would have one ID, and within its
        // duplicate window JetStream acknowledges the second one without storing it.
        let headers = match batch.source() {
            Some(source) => headers.with(MESSAGE_ID, format_args!("{subject}/{epoch}/{first}-{last}/{source}")).with(SOURCE_HEADER, source),
            None => headers.with(MESSAGE_ID, format_args!("{subject}/{epoch}/{first}-{last}")),
        };
        let headers = headers.with(EXPECTED_STREAM, &self.terms.stream).with(EXPECTED_LAST_SUBJECT_SEQUENCE, self.expected);
        (&self.terms.subject, headers, batch.bytes())
    }

    /// What was to be done could not be: the connection is at its end, or full.
    pub fn not_sent(&mut self, now: Duration) {
        self.state = State::Resting(now + self.terms.rest_least);
    }

    /// The last message of its subject.
    pub fn found(&mut self, answer: Result<Option<Last>, AnswerError>, now: Duration, backlog: &mut impl Backlog, told: &mut Vec<Told>) {
        assert_eq!(self.state, State::Asked, "nothing was asked");
        let last = match answer {
            Ok(last) => last,
            Err(error) => return self.refused(Refusal::Answer(error), now, told),
        };
        match self.stored(last.as_ref(), backlog) {
            Ok(stored) => {
                // A batch whose answer was lost is stored: what was missing in front of it is so for good.
                if self.next.zip(stored).is_some_and(|(next, stored)| next <= stored) {
                    told.extend(self.gap.take());
                }
                self.resume(stored, last.is_none(), backlog);
                self.expected = last.map_or(0, |last| last.sequence);
                told.extend(self.next.map(Told::Resumed));
            }
            Err(stop) => {
                self.state = State::Resting(now + self.terms.rest_most);
                told.push(Told::Stopped(stop));
            }
        }
    }

    /// Up to which position of this epoch the stream has everything; `None`: it has nothing of it.
    fn stored(&mut self, last: Option<&Last>, backlog: &mut impl Backlog) -> Result<Option<u64>, Stop> {
        let identity = last.map(|last| Identity::read(&last.headers).map_err(Stop::Foreign)).transpose()?;
        let held = identity.zip(last).map(|(identity, last)| Held { identity, source: last.headers.get(SOURCE_HEADER) });
        match backlog.place(held) {
            Place::Kept => {}
            Place::Moved(epoch) => {
                self.terms.epoch = epoch;
                (self.next, self.batch, self.gap) = (None, None, None);
            }
            Place::Stop(stop) => return Err(stop),
        }
        let Some(identity) = identity else { return Ok(None) };
        if identity.epoch > self.terms.epoch {
            return Err(Stop::NewerEpoch(identity.epoch));
        }
        if identity.epoch < self.terms.epoch {
            return Ok(None);
        }
        if identity.last >= backlog.end() { Err(Stop::Ahead(identity.last)) } else { Ok(Some(identity.last)) }
    }

    /// Goes on behind what is stored.
    fn resume(&mut self, stored: Option<u64>, is_empty: bool, backlog: &mut impl Backlog) {
        let first = backlog.first();
        // Of a subject that has nothing (it was purged, or its messages were too old) nothing is sent again.
        let wanted = stored.map_or_else(|| self.next.unwrap_or(first), |stored| stored + 1);
        let next = wanted.max(first);
        self.gap = if is_empty {
            (next > 1).then_some(Told::Emptied(next - 1))
        } else {
            (wanted < next).then_some(Told::StreamLost(wanted, next - 1))
        };
        if let Some(stored) = stored {
            backlog.release(stored);
        }
        let bytes_max = self.batch_bytes_max().max(super::BATCH_BYTES_MIN);
        self.batch.take_if(|(identity, batch)| identity.first != next || batch.bytes().len() > bytes_max);
        (self.next, self.state) = (Some(next), State::Ready);
    }

    /// What has become of the publication.
    pub fn acknowledged(
        &mut self,
        answer: Result<PublishAck, AnswerError>,
        now: Duration,
        backlog: &mut impl Backlog,
        told: &mut Vec<Told>,
    ) {
        assert_eq!(self.state, State::Sent, "nothing was published");
        let ack = match answer {
            Ok(ack) if ack.stream == self.terms.stream => ack,
            Ok(ack) => return self.refused(Refusal::OtherStream(ack.stream), now, told),
            // The first time it is but asked what the stream has: a batch that had no answer may be in it.
            Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::WrongLastSequence && self.refusals == 0 => {
                self.refusals = 1;
                self.state = State::Resting(now);
                return;
            }
            Err(error) => return self.refused(Refusal::Answer(error), now, told),
        };
        let (identity, batch) = self.batch.take().expect("a batch was published");
        told.extend(self.gap.take());
        (self.expected, self.next, self.state, self.refusals) = (ack.seq, Some(identity.last + 1), State::Ready, 0);
        backlog.release(identity.last);
        told.push(Told::Stored { through: identity.last, records: batch.records(), is_duplicate: ack.duplicate });
    }

    /// What was asked or published has no answer.
    pub fn unanswered(&mut self, refusal: Refusal, now: Duration, told: &mut Vec<Told>) {
        assert!(matches!(self.state, State::Asked | State::Sent), "nothing is under way");
        // It may take less than it has said at the begin of its connection.
        if let Refusal::TooLong(bytes_max) = refusal {
            self.message_bytes_max = bytes_max;
        }
        self.refused(refusal, now, told);
    }

    fn refused(&mut self, refusal: Refusal, now: Duration, told: &mut Vec<Told>) {
        let rest = self.terms.rest_least.saturating_mul(1 << self.refusals.min(20)).min(self.terms.rest_most);
        self.refusals = self.refusals.saturating_add(1);
        self.state = State::Resting(now + rest);
        told.push(Told::Refused(refusal));
    }
}

#[cfg(test)]
mod tests;
