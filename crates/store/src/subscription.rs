//! Operations of the Event Handler.

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{
    error::ArrowheadError, event_filter::Severity, event_handler::SubscriptionPut, name::EventType, record::*, snapshot::Change,
    system::SystemKey,
};
use rusqlite::params;

use crate::{
    draft::{Draft, OperationError, seconds, timestamps},
    service_registry::metadata_text,
};

impl Draft<'_> {
    /// Makes a subscription, in place of the subscriber's former one to the same event type. More than
    /// `subscriptions_max` are refused.
    pub fn put_subscription(&mut self, put: SubscriptionPut, subscriptions_max: usize) -> Result<SubscriptionId, OperationError> {
        let subscriber = self.registered(&put.subscriber, "Subscriber")?;
        let mut sources = BTreeSet::new();
        for source in put.sources.iter().flatten() {
            sources.insert(self.registered(source, "Source")?);
        }
        let event_type = self.find_or_make_event_type(&put.event_type)?;
        let row = self.row(
            "INSERT INTO subscription (event_type_id, system_id, notify_uri, filter_meta_data, match_meta_data, start_date, end_date,
                 only_predefined_publishers, created_at, updated_at, min_severity, payload_filter)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)
             ON CONFLICT DO UPDATE SET notify_uri = excluded.notify_uri, filter_meta_data = excluded.filter_meta_data,
                 match_meta_data = excluded.match_meta_data, start_date = excluded.start_date, end_date = excluded.end_date,
                 only_predefined_publishers = excluded.only_predefined_publishers, updated_at = excluded.updated_at,
                 min_severity = excluded.min_severity, payload_filter = excluded.payload_filter
             RETURNING id, created_at, updated_at",
            params![
                event_type.0,
                subscriber.0,
                &*put.notify_uri,
                metadata_text(put.filter.as_ref()),
                put.match_metadata,
                put.start_date.map(seconds),
                put.end_date.map(seconds),
                put.sources.is_some(),
                self.now_seconds(),
                put.min_severity.map(Severity::as_str),
                metadata_text(put.payload_filter.as_ref()),
            ],
            |row| Ok((SubscriptionId(row.get(0)?), timestamps(row, 1)?)),
        )?;
        let (id, timestamps) = row.expect("an upsert gives its row");
        let count = self.id("SELECT count(*) FROM subscription", [])?.unwrap_or_default();
        if usize::try_from(count).is_ok_and(|count| count > subscriptions_max) {
            let told = format!("There are {subscriptions_max} subscriptions, which is the limit.");
            return Err(OperationError::Refused(ArrowheadError::unavailable(told)));
        }
        self.run("DELETE FROM subscription_publisher_connection WHERE subscription_id = ?1", [id.0])?;
        for source in &sources {
            self.run("INSERT INTO subscription_publisher_connection (subscription_id, system_id) VALUES (?1, ?2)", [id.0, source.0])?;
        }
        self.changed(Change::Subscription(Arc::new(Subscription {
            id,
            event_type,
            subscriber,
            notify_uri: put.notify_uri,
            filter: put.filter,
            match_metadata: put.match_metadata,
            min_severity: put.min_severity,
            payload_filter: put.payload_filter,
            matched: put.matched,
            start_date: put.start_date,
            end_date: put.end_date,
            sources: put.sources.map(|_| sources),
            timestamps,
        })));
        Ok(id)
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
