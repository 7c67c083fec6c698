//! Required subscribers: known by their name and topic, whether they are there or waited for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{Attachment, Incarnation, Overflow, SubscriptionKey, wire::Watermark};

use super::{
    super::{LinkKey, Shard},
    subscribe::Refused,
};
use crate::{shard::Receiver, topics::wish::Asker};

/// The name of a client, as it says hello, and the topic, as stored.
pub type RequiredName = (Arc<str>, Arc<str>);

/// The required subscriptions: no more than the broker has.
#[derive(Default)]
pub struct Required {
    rows: BTreeMap<RequiredName, Row>,
    by_key: BTreeMap<SubscriptionKey, RequiredName>,
}

/// A required subscription.
pub(super) struct Row {
    pub key: SubscriptionKey,
    /// How long it is waited for.
    pub wait: Duration,
    /// Which run of the client it is of.
    pub incarnation: Incarnation,
    /// Where it is; `None`: it is away.
    pub link: Option<LinkKey>,
    /// Who has asked for what holds while it is away.
    pub asker: Option<Asker>,
}

impl Required {
    pub(super) fn get_mut(&mut self, name: &RequiredName) -> Option<&mut Row> {
        self.rows.get_mut(name)
    }

    fn insert(&mut self, name: RequiredName, row: Row) {
        self.by_key.insert(row.key, name.clone());
        self.rows.insert(name, row);
    }

    pub(super) fn remove(&mut self, key: SubscriptionKey) -> Option<(RequiredName, Row)> {
        let name = self.by_key.remove(&key)?;
        let row = self.rows.remove(&name).expect("both tables have the same rows");
        Some((name, row))
    }

    /// All of them: topic, name, and how long each is waited for.
    fn iter(&self) -> impl Iterator<Item = (&str, &str, Duration)> {
        self.rows.iter().map(|((name, topic), row)| (&**topic, &**name, row.wait))
    }

    /// A subscription that is away.
    pub(super) fn of(&mut self, key: SubscriptionKey) -> Option<&mut Row> {
        let name = self.by_key.get(&key)?;
        self.rows.get_mut(name)
    }
}

impl Shard {
    /// All required subscriptions: topic, name of the client, and how long it is waited for.
    pub(in crate::shard) fn required(&self) -> impl Iterator<Item = (&str, &str, Duration)> {
        self.endpoint.required.iter()
    }

    /// Waits for a subscriber that another node knew, and keeps for it what is kept of a real-time topic, until it comes or its time is over.
    pub(in crate::shard) fn await_required(&mut self, topic: &str, name: &str, wait: Duration) {
        let required_name: RequiredName = (name.into(), topic.into());
        if self.endpoint.required.get_mut(&required_name).is_some() || self.broker.terms(topic).is_none() {
            return;
        }
        // It has no link, so that nothing is offered to it.
        let receiver = Receiver::Dealer { slot: usize::MAX, topic: topic.into() };
        match self.broker.subscribe(topic, receiver, Overflow::Loses) {
            Ok(key) => {
                self.broker.require(self.clock.broker(), key, wait, Attachment::Awaited);
                let row = Row { key, wait, incarnation: Incarnation(0), link: None, asker: None };
                self.endpoint.required.insert(required_name, row);
            }
            Err(error) => tracing::error!(%error, topic, name, "a required subscriber is not waited for"),
        }
        self.count_subscriptions();
    }

    /// Makes a required subscription, or gives one that is known its session and what it has missed.
    pub(super) fn require_for(
        &mut self,
        slot: usize,
        required_name: RequiredName,
        receiver: Receiver,
        wait: Duration,
        watermarks: &[Watermark],
    ) -> Result<SubscriptionKey, Refused> {
        let (link, now) = (self.dealer_key(slot), self.clock.broker());
        let incarnation = self.endpoint.dealer(slot).hello.as_ref().map_or(Incarnation(0), |hello| hello.incarnation);
        let Some(row) = self.endpoint.required.get_mut(&required_name) else {
            let key = self.subscribe_to(&required_name.1, receiver)?;
            self.broker.require(now, key, wait, Attachment::New);
            let row = Row { key, wait, incarnation, link: Some(link), asker: None };
            self.backup_knows_required(&required_name.1, &required_name.0, Some(wait));
            self.endpoint.required.insert(required_name, row);
            return Ok(key);
        };
        let other = row.link.filter(|other| *other != link);
        if other.is_some() && row.incarnation > incarnation {
            let told = format!("{} is subscribed by a later run, incarnation {}: this one is over", required_name.0, row.incarnation.0);
            return Err(Refused::later_run(told));
        }
        (row.link, row.incarnation, row.wait) = (Some(link), incarnation, wait);
        let (key, asker) = (row.key, row.asker.take());
        self.backup_knows_required(&required_name.1, &required_name.0, Some(wait));
        self.broker.require(now, key, wait, Attachment::New);
        self.broker.attach(now, key, receiver, watermarks.iter().copied(), &mut self.outputs);
        self.carry_out_now();
        if let Some(asker) = asker {
            self.context.asking.forget(&required_name.1, asker);
        }
        if let Some(other) = other {
            self.displace(other, &required_name.1);
        }
        Ok(key)
    }
}
