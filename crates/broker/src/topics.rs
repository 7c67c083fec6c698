//! The topics of a shard or Backup, by name and number.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use crate::{
    event::{PublisherId, Sequence, TopicId},
    few::Few,
    names::Names,
    streams::Streams,
    subscription::SubscriptionKey,
    terms::Terms,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Topic {
    pub name: Arc<str>,
    pub subscriptions: Few<SubscriptionKey>,
    /// Of a best-effort topic: the last event of each publisher.
    pub numbered: BTreeMap<PublisherId, Sequence>,
    /// Of a real-time topic: the last event of each publisher whose stream, numbered by the shard's own run, has ended.
    pub ended: BTreeMap<PublisherId, Sequence>,
    /// Of a real-time topic.
    pub terms: Option<Arc<Terms>>,
    /// Events taken on real-time streams.
    pub accepted: u64,
    /// True if the number is kept elsewhere, as by a graph.
    pub is_pinned: bool,
}

impl Topic {
    /// The terms of a topic that has streams.
    pub fn terms(&self) -> &Terms {
        self.terms.as_ref().expect("only a real-time topic has streams")
    }

    /// True if its number can be another topic's: it is best-effort, and nothing but events that were published names it.
    fn is_unused(&self) -> bool {
        self.terms.is_none() && self.subscriptions.is_empty() && self.ended.is_empty() && !self.is_pinned
    }
}

/// Topics that are looked at for an unused one.
const UNUSED_SCAN_MAX: usize = 1024;

/// The topics of a shard. A new topic takes the number of an unused one when there are as many as allowed.
///
/// The events of a publisher stay distinct by name, run and sequence number: the numbers of a topic that is made again continue after the
/// highest one that the publisher has used on a topic that was released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Topics {
    /// By number.
    topics: Vec<Topic>,
    by_name: BTreeMap<Arc<str>, TopicId>,
    names: Names,
    /// Highest sequence number of each publisher on released topics.
    released: BTreeMap<PublisherId, Sequence>,
    /// Where the next unused topic is looked for.
    hand: usize,
    /// Number of pairs of a best-effort topic and its publisher.
    stream_count: usize,
    /// What was last admitted: topics of one category come one after the other, and share their terms.
    admitted: Option<Arc<Terms>>,
}

impl Topics {
    /// The topic of this name, which is made where there is none, in the place of an unused one if there are `topics_max`. Returns `None` if
    /// all of them are in use.
    pub fn find_or_make(&mut self, name: &str, topics_max: usize) -> Option<TopicId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        let name = Arc::<str>::from(name);
        let topic = Topic { name: name.clone(), ..Topic::default() };
        if self.topics.len() >= topics_max {
            let id = self.release_unused()?;
            self.topics[id.index()] = topic;
            self.names.insert(&name, id.0 as u32);
            self.by_name.insert(name, id);
            return Some(id);
        }
        let id = TopicId(self.topics.len() as u64);
        self.topics.push(topic);
        if self.names.is_too_small(self.topics.len()) {
            self.names = Names::of(self.topics.iter().map(|topic| &*topic.name));
        } else {
            self.names.insert(&name, id.0 as u32);
        }
        self.by_name.insert(name, id);
        Some(id)
    }

    /// Releases the next unused topic, and returns its number. Looks at [`UNUSED_SCAN_MAX`] topics.
    fn release_unused(&mut self) -> Option<TopicId> {
        let count = self.topics.len();
        let at = (0..count.min(UNUSED_SCAN_MAX)).map(|step| (self.hand + step) % count).find(|at| self.topics[*at].is_unused());
        self.hand = at.map_or(self.hand + UNUSED_SCAN_MAX, |at| at + 1) % count.max(1);
        let id = TopicId(at? as u64);
        let topic = std::mem::take(&mut self.topics[id.index()]);
        self.stream_count -= topic.numbered.len();
        for (publisher, sequence) in topic.numbered {
            let released = self.released.entry(publisher).or_insert(sequence);
            *released = sequence.max(*released);
        }
        self.by_name.remove(&topic.name);
        self.names.remove(&topic.name, id.0 as u32);
        Some(id)
    }

    /// Numbers the next event of a publisher on a best-effort topic. Returns `None` if `streams_max` publishers of topics are numbered.
    pub fn next_sequence(&mut self, id: TopicId, publisher: PublisherId, streams_max: usize) -> Option<Sequence> {
        let numbered = &mut self.topics[id.index()].numbered;
        if let Some(sequence) = numbered.get_mut(&publisher) {
            sequence.0 += 1;
            return Some(*sequence);
        }
        if self.stream_count >= streams_max {
            return None;
        }
        self.stream_count += 1;
        let sequence = Sequence(self.released.get(&publisher).map_or(1, |released| released.0 + 1));
        numbered.insert(publisher, sequence);
        Some(sequence)
    }

    /// The topic that another table of topics has, which is made where there is none. A topic without terms gets the other's: streams need some.
    pub fn find_or_copy(&mut self, other: &Topic) -> TopicId {
        let id = self.find_or_make(&other.name, usize::MAX).expect("no limit is asked for");
        let terms = &mut self.at_mut(id).terms;
        if terms.is_none() {
            terms.clone_from(&other.terms);
        }
        id
    }

    /// Gives a topic its terms, and its streams the room that these ask for.
    pub fn admit(&mut self, id: TopicId, terms: Terms, streams: &mut Streams) {
        for at in 0..streams.of(id).len() {
            streams.grow(streams.of(id)[at], terms.backlog_max.get());
        }
        if self.admitted.as_deref() != Some(&terms) {
            self.admitted = Some(Arc::new(terms));
        }
        self.topics[id.index()].terms.clone_from(&self.admitted);
    }

    pub fn find(&self, name: &str) -> Option<TopicId> {
        let guessed = self.names.find(name, |topic| *self.topics[topic as usize].name == *name);
        guessed.map(|topic| TopicId(topic.into())).or_else(|| self.by_name.get(name).copied())
    }

    pub fn at(&self, id: TopicId) -> &Topic {
        &self.topics[id.index()]
    }

    pub fn at_mut(&mut self, id: TopicId) -> &mut Topic {
        &mut self.topics[id.index()]
    }

    /// True if events of best-effort topics were numbered.
    pub fn has_numbers(&self) -> bool {
        self.stream_count > 0 || !self.released.is_empty()
    }

    /// Forgets the numbers that the node has given events: its next events are numbered in another incarnation.
    pub fn forget_numbers(&mut self) {
        for topic in &mut self.topics {
            // The count of events goes on.
            topic.accepted += topic.numbered.values().map(|sequence| sequence.0).sum::<u64>();
            topic.numbered.clear();
            topic.ended.clear();
        }
        self.released.clear();
        self.stream_count = 0;
    }

    /// The names that begin so, in order.
    pub fn with_prefix<'t>(&'t self, prefix: &'t str) -> impl Iterator<Item = &'t str> {
        let from = self.by_name.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map(|(name, _)| &**name).take_while(move |name| name.starts_with(prefix))
    }

    /// All topics, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Topic)> {
        self.by_name.iter().map(|(name, id)| (&**name, self.at(*id)))
    }
}
