//! The last event of a stream: whoever was not sent it sees that by the next one, and is told where none comes.
//!
//! An event that is dropped in front of its dispatch is missed by every subscriber alike. As long as nothing follows it, the number of the stream's last event is all that
//! shows the loss, so that number is told, once a silence.

use std::time::Duration;

use super::{Output, Shard};
use crate::{event::Sequence, slot::NONE, stream::Stream, subscription::SubscriptionKey, terms::Terms, time::Instant};

/// The shortest silence behind an event that was dropped, in which the next one may show that: subscribers of faster topics are told after so long.
pub const LAST_AFTER_MIN: Duration = Duration::from_millis(5);
/// The longest: those of rare topics do not wait for a whole period.
pub const LAST_AFTER_MAX: Duration = Duration::from_secs(1);

impl Terms {
    /// How long nothing follows an event that was dropped until its number is told: the topic's period, within [`LAST_AFTER_MIN`] and [`LAST_AFTER_MAX`].
    pub(crate) fn last_after(&self) -> Duration {
        Duration::from_nanos(self.period_ns).clamp(LAST_AFTER_MIN, LAST_AFTER_MAX)
    }
}

impl<R> Shard<R> {
    /// An event was dropped in front of its dispatch. The silence of a stream that goes on dropping begins with the first one: its subscribers do not wait longer for it.
    pub(super) fn begin_silence(&mut self, now: Instant, index: u32, sequence: Sequence) {
        let stream = self.streams.at_mut(index);
        stream.unseen = stream.unseen.max(sequence);
        let after = self.topics.at(stream.identity.topic).terms().last_after();
        if self.silences.place(index).is_none() {
            self.silences.insert(0, index, now.plus(after));
        }
    }

    /// The right to lead is another one: what was told in the epoch before is told again at once.
    pub(super) fn renew_silence(&mut self, now: Instant, index: u32) {
        if self.streams.at(index).unseen > Sequence(0) {
            self.silences.insert(0, index, now);
        }
    }

    /// An event goes out, which shows what was dropped in front of it.
    pub(super) fn seen(&mut self, index: u32, sequence: Sequence) {
        let stream = self.streams.at_mut(index);
        if stream.unseen > Sequence(0) && stream.unseen < sequence {
            stream.unseen = Sequence(0);
            self.silences.remove(index);
        }
    }

    /// Tells subscribers of what nothing has shown for long enough. What waits for its dispatch will show it, or be dropped and begin a silence of its own.
    pub(super) fn end_silences(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        while let Some((_, _, index)) = self.silences.first().filter(|(_, at, _)| *at <= now) {
            self.silences.remove(index);
            if self.streams.at(index).cursor == NONE {
                self.tell_last(index, outputs);
            }
        }
    }

    /// Tells every subscriber of a stream that is to be told.
    pub(super) fn tell_last(&self, index: u32, outputs: &mut Vec<Output>) {
        let stream = self.streams.at(index);
        if stream.unseen == Sequence(0) {
            return;
        }
        let event = stream.event(stream.unseen);
        let told = self.topics.at(event.topic).subscriptions.iter().copied().filter(|key| self.may_be_told(stream, *key));
        outputs.extend(told.map(|subscription| Output::TellLast { subscription, event }));
    }

    /// Tells one that has just come, or has been brought what it missed, unless all are still to be told.
    pub(super) fn tell_last_to(&self, index: u32, key: SubscriptionKey, outputs: &mut Vec<Output>) {
        let stream = self.streams.at(index);
        let is_told = stream.unseen > Sequence(0) && stream.cursor == NONE && self.silences.place(index).is_none();
        if is_told && self.may_be_told(stream, key) {
            outputs.push(Output::TellLast { subscription: key, event: stream.event(stream.unseen) });
        }
    }

    /// Whether a subscription has a session, and nothing in front of the stream's last event is still to be brought to it.
    fn may_be_told(&self, stream: &Stream, key: SubscriptionKey) -> bool {
        let is_behind = stream.readers.iter().any(|reader| reader.subscription == key && reader.is_behind);
        let required = self.subscriptions.get(key).and_then(|subscription| subscription.required);
        !is_behind && required.is_none_or(|required| required.is_there)
    }
}
