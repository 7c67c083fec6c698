//! Operations of the Event Handler.

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{
    address::Address,
    error::ArrowheadError,
    event_handler::SubscriptionPut,
    name::{EventType, SystemName},
    record::*,
    shared_event::Share,
    snapshot::Change,
    system::{SystemKey, SystemRegistration},
};

use crate::{
    database::{Value, params},
    draft::{Draft, OperationError, seconds, timestamps},
    service_registry::metadata_text,
};

/// Port of the systems that stand for other clouds: that of their Gatekeepers, which nobody connects to.
const STAND_IN_PORT: u16 = 8449;

/// Whom a subscription names.
struct Parties {
    event_type: EventTypeId,
    subscriber: SystemId,
    sources: BTreeSet<SystemId>,
}

impl Draft<'_> {
    /// Makes a subscription, in place of the subscriber's former one to the same event type. More than
    /// `subscriptions_max` are refused.
    pub fn put_subscription(&mut self, put: SubscriptionPut, subscriptions_max: usize) -> Result<SubscriptionId, OperationError> {
        let parties = self.parties(&put)?;
        let row = self.row(
            "INSERT INTO subscription (event_type_id, system_id, notify_uri, filter_meta_data, match_meta_data, start_date, end_date,
                 only_predefined_publishers, updated_at, min_severity, payload_filter, deadline_us, loss_tolerance, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?9)
             ON CONFLICT (event_type_id, system_id) DO UPDATE SET notify_uri = excluded.notify_uri, filter_meta_data = excluded.filter_meta_data,
                 match_meta_data = excluded.match_meta_data, start_date = excluded.start_date, end_date = excluded.end_date,
                 only_predefined_publishers = excluded.only_predefined_publishers, updated_at = excluded.updated_at,
                 min_severity = excluded.min_severity, payload_filter = excluded.payload_filter,
                 deadline_us = excluded.deadline_us, loss_tolerance = excluded.loss_tolerance
             RETURNING id, created_at, updated_at",
            self.columns(&put, &parties),
            |row| Ok((SubscriptionId(row.get(0)?), timestamps(row, 1)?)),
        )?;
        let (id, timestamps) = row.expect("an upsert gives its row");
        let subscriptions = self.snapshot().subscriptions();
        if subscriptions.len() >= subscriptions_max && !subscriptions.contains_key(&id) {
            let told = format!("There are {subscriptions_max} subscriptions, which is the limit.");
            return Err(OperationError::Refused(ArrowheadError::unavailable(told)));
        }
        self.subscribed(id, put, parties, timestamps)?;
        Ok(id)
    }

    /// Shares an event type with another cloud, in place of a former share of it: a subscription of the system that stands for the cloud, which is made if it is not there. More than
    /// `subscriptions_max` subscriptions are refused.
    pub fn share_event(
        &mut self,
        event_type: EventType,
        share: &Share,
        subscriptions_max: usize,
    ) -> Result<SubscriptionId, OperationError> {
        let system = stand_in(share);
        let key = system.key();
        if self.find_system(&key)?.is_none() {
            self.register_system(&system)?;
        }
        self.put_subscription(SubscriptionPut::shared(event_type, key, share), subscriptions_max)
    }

    /// Shares nothing any more with a cloud that is forgotten: its subscriptions go, and the system that stood for it.
    pub(crate) fn unshare_all(&mut self, operator: &str, name: &str) -> Result<(), OperationError> {
        let is_of_it =
            |share: &Share| share.operator.as_str().eq_ignore_ascii_case(operator) && share.name.as_str().eq_ignore_ascii_case(name);
        let uris = self.rows("SELECT id, notify_uri FROM subscription WHERE notify_uri LIKE 'relay:%' ORDER BY id", (), |row| {
            Ok((row.get(0)?, row.get::<String>(1)?))
        })?;
        for (id, uri) in uris {
            let Some(share) = Share::of_notify_uri(&uri).filter(is_of_it) else { continue };
            self.remove_subscription(SubscriptionId(id))?;
            if let Some(system) = self.find_system(&stand_in(&share).key())? {
                self.remove_system(system)?;
            }
        }
        Ok(())
    }

    /// Makes a subscription another one. Its id and the operator's pause stay, and what is known of its delivery while it is to the
    /// same event type for the same subscriber.
    pub fn update_subscription(&mut self, id: SubscriptionId, put: SubscriptionPut) -> Result<SubscriptionId, OperationError> {
        let parties = self.parties(&put)?;
        let same = "SELECT id FROM subscription WHERE event_type_id = ?1 AND system_id = ?2 AND id <> ?3";
        if let Some(other) = self.id(same, [parties.event_type.0, parties.subscriber.0, id.0])? {
            return Err(OperationError::invalid(format!("Subscription with id '{other}' has this event type and subscriber already.")));
        }
        let before = self.snapshot().subscriptions().get(&id).map(|before| (before.event_type, before.subscriber));
        if before.is_some_and(|before| before != (parties.event_type, parties.subscriber)) {
            self.begin_delivery_anew(id)?;
        }
        let timestamps = self.row(
            "UPDATE subscription SET event_type_id = ?1, system_id = ?2, notify_uri = ?3, filter_meta_data = ?4, match_meta_data = ?5,
                 start_date = ?6, end_date = ?7, only_predefined_publishers = ?8, updated_at = ?9, min_severity = ?10, payload_filter = ?11,
                 deadline_us = ?12, loss_tolerance = ?13
             WHERE id = ?14 RETURNING created_at, updated_at",
            self.columns(&put, &parties).into_iter().chain([id.0.into()]).collect::<Vec<_>>(),
            |row| timestamps(row, 0),
        )?;
        let missing = || OperationError::invalid(format!("Subscription with id '{}' does not exist.", id.0));
        self.subscribed(id, put, parties, timestamps.ok_or_else(missing)?)?;
        Ok(id)
    }

    /// Looks up whom a subscription names; its event type is made if it is new.
    fn parties(&mut self, put: &SubscriptionPut) -> Result<Parties, OperationError> {
        let subscriber = self.registered(&put.subscriber, "Subscriber")?;
        let mut sources = BTreeSet::new();
        for source in put.sources.iter().flatten() {
            sources.insert(self.registered(source, "Source")?);
        }
        Ok(Parties { event_type: self.find_or_make_event_type(&put.event_type)?, subscriber, sources })
    }

    /// The row's values: event type, subscriber, URI, filter, whether it is matched, dates, whether sources are named, the
    /// time, severity, payload filter, what it asks of a real-time topic.
    fn columns(&self, put: &SubscriptionPut, parties: &Parties) -> [Value<'static>; 13] {
        [
            parties.event_type.0.into(),
            parties.subscriber.0.into(),
            put.notify_uri.to_string().into(),
            metadata_text(put.filter.as_ref()).into(),
            put.match_metadata.into(),
            put.start_date.map(seconds).into(),
            put.end_date.map(seconds).into(),
            put.sources.is_some().into(),
            self.now_seconds().into(),
            put.min_severity.map(|severity| severity.as_str().to_owned()).into(),
            metadata_text(put.payload_filter.as_ref()).into(),
            put.bounds.deadline_us.into(),
            put.bounds.loss_tolerance.map(i64::from).into(),
        ]
    }

    /// Notes the sources of a subscription whose row is written, and the change.
    fn subscribed(
        &mut self,
        id: SubscriptionId,
        put: SubscriptionPut,
        parties: Parties,
        timestamps: Timestamps,
    ) -> Result<(), OperationError> {
        let Parties { event_type, subscriber, sources } = parties;
        self.run("DELETE FROM subscription_publisher_connection WHERE subscription_id = ?1", [id.0])?;
        for source in &sources {
            self.run("INSERT INTO subscription_publisher_connection (subscription_id, system_id) VALUES (?1, ?2)", [id.0, source.0])?;
        }
        self.changed(Change::Subscription(Arc::new(Subscription {
            id,
            event_type,
            subscriber,
            share: Share::of_notify_uri(&put.notify_uri),
            notify_uri: put.notify_uri,
            filter: put.filter,
            match_metadata: put.match_metadata,
            min_severity: put.min_severity,
            payload_filter: put.payload_filter,
            matched: put.matched,
            bounds: put.bounds,
            start_date: put.start_date,
            end_date: put.end_date,
            sources: put.sources.map(|_| sources),
            timestamps,
        })));
        Ok(())
    }

    fn registered(&self, key: &SystemKey, what: &str) -> Result<SystemId, OperationError> {
        let (name, address, port) = key.parts();
        let missing =
            || OperationError::invalid(format!("{what} system with name: {name}, address: {address}, port: {port} is not registered."));
        self.find_system(key)?.ok_or_else(missing)
    }

    fn find_or_make_event_type(&mut self, name: &EventType) -> Result<EventTypeId, OperationError> {
        let (id, made) = self.find_or_make(
            "SELECT id FROM event_type WHERE event_type_name = ?1",
            "INSERT INTO event_type (event_type_name, created_at, updated_at) VALUES (?1, ?2, ?2) ON CONFLICT DO NOTHING RETURNING id",
            name.as_str(),
        )?;
        let id = EventTypeId(id);
        if made {
            self.changed(Change::EventType(Arc::new(EventTypeRow { id, event_type_name: name.clone(), timestamps: self.timestamps() })));
        }
        Ok(id)
    }

    /// Removes a subscriber's subscription to an event type; nothing to remove is no error.
    pub fn unsubscribe(&mut self, event_type: &EventType, subscriber: &SystemKey) -> Result<(), OperationError> {
        let (name, address, port) = subscriber.parts();
        let removed = self.ids(
            "DELETE FROM subscription WHERE event_type_id = (SELECT id FROM event_type WHERE event_type_name = ?1)
             AND system_id = (SELECT id FROM system_ WHERE system_name = ?2 AND address = ?3 AND port = ?4) RETURNING id",
            params![event_type.as_str(), name, address, port],
        )?;
        removed.into_iter().for_each(|id| self.changed(Change::SubscriptionRemoved(SubscriptionId(id))));
        Ok(())
    }

    /// Removes a subscription by id; nothing to remove is no error.
    pub fn remove_subscription(&mut self, id: SubscriptionId) -> Result<(), OperationError> {
        if self.run("DELETE FROM subscription WHERE id = ?1", [id.0])? > 0 {
            self.changed(Change::SubscriptionRemoved(id));
        }
        Ok(())
    }
}

/// The system that stands for the cloud of a share among the subscribers.
fn stand_in(share: &Share) -> SystemRegistration {
    SystemRegistration {
        name: SystemName::from_stored(&share.system_name()),
        address: Address::from_stored(&format!("{}.{}.arrowhead.eu", share.name, share.operator)),
        port: STAND_IN_PORT,
        authentication_info: None,
        metadata: None,
    }
}
