//! Required subscribers: known by their name and topic, whether they are there or waited for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{Attachment, Incarnation, SubscriptionKey, wire::Watermark};

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

    /// A subscription that is away.
    pub(super) fn of(&mut self, key: SubscriptionKey) -> Option<&mut Row> {
        let name = self.by_key.get(&key)?;
        self.rows.get_mut(name)
    }
}

impl Shard {
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
