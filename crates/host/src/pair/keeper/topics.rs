//! The topics of which a Backup keeps events: those of the configuration, those that the leader has declared, and what its subscribers ask of them.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use bodkin_broker::{
    ShardError, Terms,
    timing::{AdmissionError, Wish},
};

use super::Work;
use crate::{
    pair::Preparation,
    topics::{Declarer, RealTimeTopic, TopicError, declaration},
};

/// How much more of a stream may be kept than its topic's declaration asks for.
const BACKLOG_FACTOR: NonZeroU32 = NonZeroU32::new(4).unwrap();

impl Work {
    /// Keeps events of a topic, and tells the shard of it.
    pub(super) fn admit(&mut self, topic: Arc<RealTimeTopic>, terms: Terms) {
        // A subscriber may ask more of a topic than its declaration does, which only the leader knows: then it keeps more.
        let kept = Terms { backlog_max: terms.backlog_max.saturating_mul(BACKLOG_FACTOR), ..terms };
        let Some(follows) = &self.follows else { return };
        let in_backup = match self.backup.admit(&topic.event_type, kept, follows.topics_max) {
            Ok(in_backup) => in_backup,
            Err(error) => return tracing::error!(%error, topic = &*topic.event_type, "a topic cannot be kept here"),
        };
        self.preparations.push(Preparation::Topic { topic, terms, in_backup });
    }

    /// Has a topic be as strict as the leader's subscribers ask, so that it is from the first instant on in which this node leads. A wish may come before the change
    /// that declares its topic: the leader sends it at once, and changes when the channel has room.
    pub(super) fn ask(&mut self, topic: &str, wish: Wish) {
        let Some(follows) = &self.follows else { return };
        let (topics, mut told) = (follows.topics.clone(), None);
        if wish == Wish::default() {
            let asked = self.asked.remove(topic);
            asked.into_iter().for_each(|(asker, _)| topics.forget(topic, asker, |now| told = Some(Ok(now))));
        } else if self.asked.len() >= follows.topics_max && !self.asked.contains_key(topic) {
            told = Some(Err(ShardError::Topics(follows.topics_max).into()));
        } else {
            let (asker, asked) = self.asked.entry(topic.into()).or_insert_with(|| (topics.asker(), wish));
            *asked = wish;
            topics.ask(topic, *asker, wish, |now| told = Some(now));
        }
        match told {
            Some(Ok((topic, terms))) => self.admit(topic, terms),
            Some(Err(TopicError::Refused { error, .. })) if *error == AdmissionError::NotDeclared => {
                tracing::info!(topic, "what the leader's subscribers ask of a topic holds once the topic is declared here");
            }
            Some(Err(error)) => tracing::warn!(topic, %error, "what the leader's subscribers ask of a topic does not fit here"),
            None => {}
        }
    }

    pub(super) fn forget_asked(&mut self) {
        let topics: Vec<Box<str>> = self.asked.keys().cloned().collect();
        topics.iter().for_each(|topic| self.ask(topic, Wish::default()));
    }

    /// Takes the topics that are declared in the database, and no others.
    pub(super) fn declare_all(&mut self, declarations: Vec<String>) {
        let Some(follows) = &self.follows else { return };
        let platform = *follows.topics.platform();
        let event_type = |text: &String| declaration::parse(text, &platform).ok().map(|declared| Box::from(declared.event_type.as_str()));
        let named: BTreeMap<Box<str>, String> = declarations.into_iter().filter_map(|text| Some((event_type(&text)?, text))).collect();
        let gone: Vec<Box<str>> = self.declared.keys().filter(|declared| !named.contains_key(*declared)).cloned().collect();
        gone.into_iter().for_each(|event_type| self.declare(event_type, None));
        named.into_iter().for_each(|(event_type, text)| self.declare(event_type, Some(text)));
    }

    /// Takes one declaration, or takes it back.
    pub(super) fn declare(&mut self, event_type: Box<str>, declaration: Option<String>) {
        let Some(follows) = &self.follows else { return };
        if self.declared.get(&event_type) == declaration.as_ref() {
            return;
        }
        let topics = follows.topics.clone();
        if self.declared.remove(&event_type).is_some()
            && let Some((topic, terms)) = topics.withdraw(&event_type)
        {
            self.admit(topic, terms);
        }
        let Some(text) = declaration else { return };
        let declared = declaration::parse(&text, topics.platform());
        match declared.and_then(|declared| topics.admit(&declared, Declarer::Operator).map_err(|error| error.to_string())) {
            Ok((topic, terms)) => {
                self.admit(topic, terms);
                if let Some((_, wish)) = self.asked.get(&event_type).copied() {
                    self.ask(&event_type, wish);
                }
            }
            Err(error) => tracing::error!(error, "a topic that the leader has declared cannot be kept here"),
        }
        self.declared.insert(event_type, text);
    }
}
