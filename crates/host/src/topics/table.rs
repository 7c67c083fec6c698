//! Real-time topics by their number in the broker, which is at hand wherever an event is.

use std::sync::Arc;

use bodkin_broker::TopicId;

use super::RealTimeTopic;

/// The real-time topics of a shard or a keeper. Best-effort topics are numbered alike, and leave gaps.
#[derive(Debug, Default)]
pub struct TopicTable {
    topics: Vec<Option<Arc<RealTimeTopic>>>,
}

impl TopicTable {
    /// Gives a number its topic.
    pub fn insert(&mut self, id: TopicId, topic: Arc<RealTimeTopic>) {
        let at = id.0 as usize;
        if at >= self.topics.len() {
            self.topics.resize(at + 1, None);
        }
        self.topics[at] = Some(topic);
    }

    /// The topic of a number; `None`: it is a best-effort one.
    pub fn get(&self, id: TopicId) -> Option<&RealTimeTopic> {
        self.topics.get(id.0 as usize)?.as_deref()
    }

    /// The topic of an event that is kept.
    ///
    /// # Panics
    /// The number is that of a best-effort topic, of which nothing is kept.
    pub fn of_kept(&self, id: TopicId) -> &RealTimeTopic {
        self.get(id).expect("what is kept is of a real-time topic")
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RealTimeTopic>> {
        self.topics.iter().flatten()
    }
}
