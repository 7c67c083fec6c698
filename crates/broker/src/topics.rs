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
}

impl Topic {
    /// The terms of a topic that has streams.
    pub fn terms(&self) -> &Terms {
        self.terms.as_ref().expect("only a real-time topic has streams")
    }
}

/// A topic lasts as long as its shard: its number is part of every event's identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Topics {
    /// By number.
    topics: Vec<Topic>,
    by_name: BTreeMap<Arc<str>, TopicId>,
    names: Names,
    /// What was last admitted: topics of one category come one after the other, and share their terms.
    admitted: Option<Arc<Terms>>,
}

impl Topics {
    /// The topic of this name, which is made where there is none; `None`: there are `topics_max` already.
    pub fn find_or_make(&mut self, name: &str, topics_max: usize) -> Option<TopicId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        if self.topics.len() >= topics_max {
            return None;
        }
        let id = TopicId(self.topics.len() as u64);
        let name = Arc::<str>::from(name);
        self.topics.push(Topic { name: name.clone(), ..Topic::default() });
        if self.names.is_too_small(self.topics.len()) {
            self.names = Names::of(self.topics.iter().map(|topic| &*topic.name));
        } else {
            self.names.insert(&name, id.0 as u32);
        }
        self.by_name.insert(name, id);
        Some(id)
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

    /// Forgets the numbers that the node has given events: its next events are numbered in another incarnation.
    pub fn forget_numbers(&mut self) {
        for topic in &mut self.topics {
            // The count of events goes on.
            topic.accepted += topic.numbered.values().map(|sequence| sequence.0).sum::<u64>();
            topic.numbered.clear();
            topic.ended.clear();
        }
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
