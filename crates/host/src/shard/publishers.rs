//! Publishers whose real-time events are numbered here, over HTTP and by sockets without numbers of their own: nothing says when one has gone. Who has been silent for
//! long counts as gone, and its stream ends, so that another one may have its place. One that comes back goes on with its numbers.

use std::time::{Duration, Instant};

use bodkin_broker::StreamId;

use super::Shard;

/// A publisher that has published nothing on a topic for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Between two looks for such publishers.
const LOOK_PERIOD: Duration = Duration::from_secs(60);

/// When each of them was heard last.
#[derive(Default)]
pub struct Publishers {
    /// By the stream's index.
    heard: Vec<Option<(StreamId, Instant)>>,
    looked: Option<Instant>,
}

impl Publishers {
    /// One has published on its stream.
    pub fn heard(&mut self, stream: StreamId, now: Instant) {
        let index = stream.index() as usize;
        if index >= self.heard.len() {
            self.heard.resize(index + 1, None);
        }
        self.heard[index] = Some((stream, now));
    }

    /// The streams of those that are gone, each once; looks now and then.
    fn gone(&mut self, now: Instant) -> Vec<StreamId> {
        if self.looked.is_some_and(|looked| now - looked < LOOK_PERIOD) {
            return Vec::new();
        }
        self.looked = Some(now);
        let is_gone = |(_, heard): &mut (StreamId, Instant)| now - *heard > SILENCE_MAX;
        self.heard.iter_mut().filter_map(|heard| heard.take_if(is_gone).map(|(stream, _)| stream)).collect()
    }
}

impl Shard {
    /// Counts the silence of publishers whose streams this node has taken over from now on: one that does not come back releases its slot.
    pub(super) fn hear_inherited_publishers(&mut self) {
        for stream in self.broker.unnumbered_streams() {
            self.publishers.heard(stream, self.clock.now);
        }
    }

    /// Ends the streams of publishers that are gone, when nothing of them is left.
    pub(super) fn end_silent_streams(&mut self) {
        for stream in self.publishers.gone(self.clock.now) {
            self.broker.end_stream(stream);
        }
        self.end_turn();
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{
        Incarnation, PublisherId, ShardLimits, StreamIdentity, Terms,
        timing::Nanos,
        topic::{Period, Platform, TopicSpec},
    };

    use super::*;

    #[test]
    fn who_is_silent_for_long_is_gone_once() {
        let mut broker =
            bodkin_broker::Shard::<()>::new(Incarnation(1), ShardLimits { subscriptions_max: 1, topics_max: 1, queue_bytes_max: 1 });
        let spec = TopicSpec::best_effort(Period::Every(Nanos::from_millis(1)));
        let topic = broker.admit("A", Terms::of(&spec, &Platform::default())).unwrap();
        let identity = |publisher| StreamIdentity { topic, publisher: PublisherId(publisher), incarnation: Incarnation(1) };
        let [first, second] = [1, 2].map(|publisher| broker.open_stream(&broker.permit().unwrap(), identity(publisher)).unwrap());
        let (mut publishers, start) = (Publishers::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        publishers.heard(first, at(0));
        publishers.heard(second, at(0));
        publishers.heard(first, at(30));
        assert_eq!(publishers.gone(at(600)), []);
        assert_eq!(publishers.gone(at(601)), [], "it has just looked");
        assert_eq!(publishers.gone(at(661)), [first, second]);
        publishers.heard(second, at(662));
        assert_eq!((publishers.gone(at(1_262)), publishers.gone(at(1_323))), (vec![], vec![second]));
    }
}
