//! A publisher: what it keeps, what it sends, and what it sends again.
//!
//! An event is kept until the broker says that it is covered, and the newest N are kept in any case. To whoever leads next it says what it keeps, sends
//! that in order, and then goes on with what is new. Bytes stay with the caller, in a ring of its own for each topic: an event's place in it comes with
//! its sequence. The caller asks for the next frame to send whenever its socket takes one ([`Publisher::next_send`]), so nothing queues up here.

mod retained;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use self::retained::Retained;
pub use self::retained::{Retention, WhenFull};
use crate::{
    delivery::RETRY_AFTER_MAX,
    epoch::Epoch,
    event::{Incarnation, Sequence},
    session::{Sessions, Word},
    time::Instant,
    wire::RefusalReason,
};

pub use crate::session::Session;

/// Names a topic of one publisher, from 0 in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicKey(u32);

impl TopicKey {
    /// Its number, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What can happen to a publisher. That an event is published is a call of its own, for it can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The time of [`Publisher::next_timer`] has come.
    Tick,
    /// A connection has ended; what was sent on it may not have arrived.
    Closed(Session),
    /// A broker says whether it leads.
    Leader {
        /// Which one.
        session: Session,
        /// In which epoch.
        epoch: Epoch,
        /// Whether it does.
        is_leader: bool,
    },
    /// A broker covers events.
    Covered {
        /// Which one.
        session: Session,
        /// Its epoch.
        epoch: Epoch,
        /// Of which topic.
        topic: TopicKey,
        /// Of which numbering.
        incarnation: Incarnation,
        /// Everything up to here.
        through: Sequence,
    },
    /// A broker has not taken an event.
    Refused {
        /// Which one.
        session: Session,
        /// Of which topic.
        topic: TopicKey,
        /// Which event.
        sequence: Sequence,
        /// Why.
        reason: RefusalReason,
        /// When to send it again, if the reason passes; at most [`RETRY_AFTER_MAX`] counts.
        retry_after: Duration,
    },
}

/// What a publisher wants done or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The broker covers everything up to here. The caller may forget what [`Publisher::oldest_kept`] does not name any more.
    Covered {
        /// Of which topic.
        topic: TopicKey,
        /// The last one.
        through: Sequence,
    },
    /// Another broker leads, or the same one in another epoch: what is kept will be sent to it.
    Redirected {
        /// Which one.
        session: Session,
        /// In which epoch.
        epoch: Epoch,
    },
    /// Nobody is known to lead: events are kept until somebody does.
    Leaderless,
    /// An event will not be taken; it is lost.
    NotTaken {
        /// Of which topic.
        topic: TopicKey,
        /// Which event.
        sequence: Sequence,
        /// Why.
        reason: RefusalReason,
    },
    /// A broker leads in a lower epoch than is known, and is not believed.
    StaleEpoch {
        /// Which one.
        session: Session,
        /// Its epoch.
        epoch: Epoch,
    },
    /// Both brokers lead in one epoch: they are no pair. The second is not believed.
    TwoLeaders {
        /// The epoch.
        epoch: Epoch,
    },
    /// A broker covers what was not published: it is not believed.
    CoveredUnpublished {
        /// Of which topic.
        topic: TopicKey,
        /// What it covers.
        through: Sequence,
    },
}

/// A frame to be sent to the broker that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send {
    /// An event.
    Event {
        /// Of which topic.
        topic: TopicKey,
        /// Which one.
        sequence: Sequence,
        /// Where the caller has its bytes.
        place: u32,
        /// When it was created, in nanoseconds since 1970 (UTC).
        created_utc_ns: u64,
        /// It may have been sent before.
        is_resent: bool,
    },
    /// What is kept, in front of its being sent again.
    Resume {
        /// Of which topic.
        topic: TopicKey,
        /// The oldest; one behind `to` if nothing is kept.
        from: Sequence,
        /// The newest that is kept.
        to: Sequence,
    },
    /// The last event that was sent, for nothing has followed it for a while and it is not covered.
    Last {
        /// Of which topic.
        topic: TopicKey,
        /// Which one.
        sequence: Sequence,
    },
}

/// An event that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its place in the stream.
    pub sequence: Sequence,
    /// Where the caller keeps its bytes, below the topic's capacity; what was there is needed no more.
    pub place: u32,
    /// The event that was lost to make room for it, by [`WhenFull::DropOldest`].
    pub dropped: Option<Sequence>,
}

/// Everything that is kept of the topic is uncovered, and there is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kept} events from {oldest} on are not covered yet, and no more than {kept} are kept: wait until the broker covers some")]
pub struct Full {
    /// How many.
    pub kept: u32,
    /// The oldest of them.
    pub oldest: u64,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Publisher {
    incarnation: Incarnation,
    /// After this much silence of a topic its last event is named.
    last_after: Duration,
    sessions: Sessions,
    topics: Vec<Retained>,
    /// Topics that have something to send, each once, in turn.
    ready: VecDeque<TopicKey>,
    /// Topics whose silence is watched, each once, by the time to look.
    quiet: VecDeque<(Instant, TopicKey)>,
    /// Topics that were refused for a while.
    paused: Vec<TopicKey>,
}

impl Publisher {
    /// A publisher without topics. `incarnation` must be greater than that of every earlier run. Between `last_after` and twice that time after an
    /// uncovered event its sequence is sent again, if nothing else was.
    pub fn new(incarnation: Incarnation, last_after: Duration) -> Self {
        Self {
            incarnation,
            last_after,
            sessions: Sessions::default(),
            topics: Vec::new(),
            ready: VecDeque::new(),
            quiet: VecDeque::new(),
            paused: Vec::new(),
        }
    }

    /// Adds a topic. All memory that its events will need here is taken now.
    ///
    /// # Panics
    /// If there are 2^32 topics.
    pub fn add_topic(&mut self, retention: Retention) -> TopicKey {
        let key = TopicKey(u32::try_from(self.topics.len()).expect("there are fewer topics than 2^32"));
        self.topics.push(Retained::new(retention));
        let count = self.topics.len();
        self.ready.reserve(count - self.ready.len());
        self.quiet.reserve(count - self.quiet.len());
        self.paused.reserve(count - self.paused.len());
        key
    }

    /// The numbering of this run.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The epoch for the header of what is sent.
    pub fn epoch(&self) -> Epoch {
        self.sessions.epoch()
    }

    /// The broker to send to.
    pub fn leader(&self) -> Option<Session> {
        self.sessions.leader()
    }

    /// The oldest event whose bytes the caller still has to keep; one behind the newest if there is none.
    pub fn oldest_kept(&self, topic: TopicKey) -> Sequence {
        Sequence(self.topic(topic).oldest)
    }

    /// Takes an event, whether anybody leads or not.
    pub fn publish(&mut self, topic: TopicKey, created_utc_ns: u64) -> Result<Published, Full> {
        let published = self.topic_mut(topic).publish(created_utc_ns)?;
        self.make_ready(topic);
        Ok(published)
    }

    /// Takes what happened. `outputs` is appended to.
    pub fn step(&mut self, now: Instant, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Tick => {}
            Input::Closed(session) => {
                if self.sessions.closed(session) {
                    outputs.push(Output::Leaderless);
                }
            }
            Input::Leader { session, epoch, is_leader } => match self.sessions.told(session, epoch, is_leader) {
                Word::Known => {}
                Word::Leads => {
                    outputs.push(Output::Redirected { session, epoch });
                    self.resume();
                }
                Word::Resigns => outputs.push(Output::Leaderless),
                Word::Stale => outputs.push(Output::StaleEpoch { session, epoch }),
                Word::Contradicts => outputs.push(Output::TwoLeaders { epoch }),
            },
            Input::Covered { session, epoch, topic, incarnation, through } => {
                let is_leader = self.sessions.leader() == Some(session) && self.sessions.epoch() == epoch;
                if is_leader && incarnation == self.incarnation {
                    self.covered(topic, through, outputs);
                }
            }
            Input::Refused { session, topic, sequence, reason, retry_after } => {
                if self.sessions.leader() == Some(session) {
                    self.refused(now, topic, sequence, reason, retry_after, outputs);
                }
            }
        }
        self.end_pauses(now);
    }

    /// When to call [`Self::step`] with [`Input::Tick`], and then [`Self::next_send`], if nothing else happens before.
    pub fn next_timer(&self) -> Option<Instant> {
        let pause = self.paused.iter().filter_map(|topic| self.topic(*topic).paused_until).min();
        let quiet = self.quiet.front().map(|(at, _)| *at).filter(|_| self.leader().is_some());
        [pause, quiet].into_iter().flatten().min()
    }

    /// The next frame for the broker that leads. To be asked again until there is none, or the socket takes no more; what is given counts as sent.
    pub fn next_send(&mut self, now: Instant) -> Option<Send> {
        self.sessions.leader()?;
        while let Some(topic) = self.ready.pop_front() {
            let retained = &mut self.topics[topic.index()];
            let send = retained.next_send(topic);
            retained.is_ready = retained.has_more();
            if retained.is_ready {
                self.ready.push_back(topic);
            }
            let Some(send) = send else { continue };
            retained.sent_at = now;
            self.watch(now, topic);
            return Some(send);
        }
        self.last(now)
    }

    /// Names the last event of a topic that has been silent for long.
    fn last(&mut self, now: Instant) -> Option<Send> {
        while let Some((_, topic)) = self.quiet.pop_front_if(|(at, _)| *at <= now) {
            let retained = &mut self.topics[topic.index()];
            retained.is_watched = false;
            if retained.oldest_waiting().is_none() {
                continue;
            }
            let is_silent = now >= retained.sent_at.plus(self.last_after);
            let sequence = retained.last_sent();
            if is_silent {
                retained.sent_at = now;
            }
            self.watch(now, topic);
            if is_silent {
                return Some(Send::Last { topic, sequence });
            }
        }
        None
    }

    fn watch(&mut self, now: Instant, topic: TopicKey) {
        if !std::mem::replace(&mut self.topic_mut(topic).is_watched, true) {
            self.quiet.push_back((now.plus(self.last_after), topic));
        }
    }

    /// Another broker leads, or the connection is another one: everything that is kept may be missing there. Topics that keep nothing but what is covered can wait:
    /// all publishers do this at the same time.
    fn resume(&mut self) {
        self.paused.clear();
        for index in 0..self.topics.len() {
            self.topics[index].resume();
            self.make_ready(TopicKey(index as u32));
        }
    }

    fn covered(&mut self, topic: TopicKey, through: Sequence, outputs: &mut Vec<Output>) {
        let retained = self.topic_mut(topic);
        if through.0 > retained.newest {
            outputs.push(Output::CoveredUnpublished { topic, through });
        } else if retained.cover(through) {
            outputs.push(Output::Covered { topic, through });
        }
    }

    fn refused(
        &mut self,
        now: Instant,
        topic: TopicKey,
        sequence: Sequence,
        reason: RefusalReason,
        retry_after: Duration,
        outputs: &mut Vec<Output>,
    ) {
        let retained = self.topic_mut(topic);
        let is_missed = retained.was_sent(sequence) || reason == RefusalReason::Full && retained.was_dropped(sequence);
        match reason {
            // Whoever leads instead will say so, and everything is sent again.
            RefusalReason::NotLeading | RefusalReason::Epoch => {}
            _ if !is_missed => {}
            RefusalReason::Full => {
                let until = now.plus(retry_after.min(RETRY_AFTER_MAX));
                let was_paused = retained.paused_until.replace(until).is_some();
                retained.rewind(sequence);
                if !was_paused {
                    self.paused.push(topic);
                }
            }
            // The run is over: nothing of it will be covered any more.
            RefusalReason::OldIncarnation => {
                let waiting = retained.give_up_through(sequence).into_iter();
                outputs.extend(waiting.map(|sequence| Output::NotTaken { topic, sequence, reason }));
            }
            _ => {
                retained.give_up(sequence);
                outputs.push(Output::NotTaken { topic, sequence, reason });
            }
        }
    }

    fn end_pauses(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(topic) = self.paused.get(index).copied() {
            let retained = self.topic_mut(topic);
            if retained.paused_until.is_some_and(|until| now < until) {
                index += 1;
                continue;
            }
            retained.paused_until = None;
            self.paused.swap_remove(index);
            self.make_ready(topic);
        }
    }

    fn make_ready(&mut self, topic: TopicKey) {
        let retained = self.topic_mut(topic);
        if retained.has_more() && !std::mem::replace(&mut retained.is_ready, true) {
            self.ready.push_back(topic);
        }
    }

    fn topic(&self, topic: TopicKey) -> &Retained {
        &self.topics[topic.index()]
    }

    fn topic_mut(&mut self, topic: TopicKey) -> &mut Retained {
        &mut self.topics[topic.index()]
    }
}
