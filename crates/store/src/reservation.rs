//! Operations on reservations.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::{
    orchestrator::reservation::{Confirmation, Offer, TemporaryLock},
    record::*,
    snapshot::Change,
    system::SystemKey,
};
use serde_json::Value;

use crate::{
    database::{DatabaseResult, Row, params},
    draft::{Draft, OperationError, time, timestamps},
    load::text,
    table::Table,
};

/// The table. Provider and service are bare ids: a reservation ends by itself.
pub(crate) const MIGRATION: &str = "
CREATE TABLE qos_reservation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reserved_provider_id INTEGER NOT NULL,
    reserved_service_id INTEGER NOT NULL,
    consumer_system_name TEXT NOT NULL,
    consumer_address TEXT NOT NULL,
    consumer_port INTEGER NOT NULL,
    reserved_to INTEGER NOT NULL,
    temporary_lock INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (reserved_provider_id, reserved_service_id)
) STRICT;
CREATE INDEX qos_reservation_end ON qos_reservation (reserved_to);
";

const COLUMNS: &str = "id, reserved_provider_id, reserved_service_id, consumer_system_name, consumer_address, consumer_port, reserved_to,
    temporary_lock, created_at, updated_at";

impl Draft<'_> {
    /// Holds the results that nobody holds, and gives them back as they came. A result whose provider or service is
    /// unknown cannot be held.
    pub fn lock_temporarily(&mut self, lock: TemporaryLock) -> Result<Vec<Value>, OperationError> {
        let mut held = Vec::with_capacity(lock.results.len());
        for (offer, result) in lock.results {
            if self.is_known(offer)? && self.reserve(offer, &lock.consumer, lock.duration, Held::Temporarily)? {
                held.push(result);
            }
        }
        Ok(held)
    }

    /// Keeps the chosen result and lets the consumer's temporary locks of the others go. What somebody else keeps is refused.
    pub fn confirm_reservation(&mut self, confirmation: &Confirmation) -> Result<(), OperationError> {
        let (selected, consumer) = (confirmation.selected, &confirmation.consumer);
        let what = || format!("provider with id '{}' for the service definition with id '{}'", selected.provider, selected.definition);
        if !self.is_known(selected)? {
            return Err(OperationError::invalid(format!("There is no {}.", what())));
        }
        if !self.reserve(selected, consumer, confirmation.duration, Held::Confirmed)? {
            return Err(OperationError::invalid(format!("Another system has reserved the {}.", what())));
        }
        let (name, address, port) = consumer.parts();
        for other in &confirmation.others {
            let freed = self.id(
                "DELETE FROM qos_reservation WHERE reserved_provider_id = ?1 AND reserved_service_id = ?2 AND temporary_lock
                 AND consumer_system_name = ?3 AND consumer_address = ?4 AND consumer_port = ?5 RETURNING id",
                params![other.provider.0, other.definition.0, name, address, port],
            )?;
            freed.into_iter().for_each(|id| self.changed(Change::ReservationRemoved(ReservationId(id))));
        }
        Ok(())
    }

    /// Keeps the chosen result, as [`Self::confirm_reservation`]; gives whether it is there and nobody else keeps it.
    pub fn reserve_exclusively(&mut self, confirmation: &Confirmation) -> Result<bool, OperationError> {
        let Confirmation { selected, consumer, duration, .. } = confirmation;
        Ok(self.is_known(*selected)? && self.reserve(*selected, consumer, *duration, Held::Confirmed)?)
    }

    /// Removes the reservations whose time is over.
    pub fn remove_expired_reservations(&mut self) -> Result<(), OperationError> {
        let expired = self.ids("DELETE FROM qos_reservation WHERE reserved_to <= ?1 RETURNING id", [self.now_seconds()])?;
        expired.into_iter().for_each(|id| self.changed(Change::ReservationRemoved(ReservationId(id))));
        Ok(())
    }

    fn is_known(&self, offer: Offer) -> DatabaseResult<bool> {
        let known = self.id(
            "SELECT 1 FROM system_, service_definition WHERE system_.id = ?1 AND service_definition.id = ?2",
            [offer.provider.0, offer.definition.0],
        )?;
        Ok(known.is_some())
    }

    /// Makes a reservation, also in place of one whose time is over; a confirmed one in place of the consumer's own, too.
    fn reserve(&mut self, offer: Offer, consumer: &SystemKey, duration: Duration, held: Held) -> Result<bool, OperationError> {
        let (name, address, port) = consumer.parts();
        let now = self.now_seconds();
        let row = self.row(
            &format!(
                "INSERT INTO qos_reservation (reserved_provider_id, reserved_service_id, consumer_system_name, consumer_address, consumer_port,
                     reserved_to, temporary_lock, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
                 ON CONFLICT (reserved_provider_id, reserved_service_id) DO UPDATE SET consumer_system_name = excluded.consumer_system_name, consumer_address = excluded.consumer_address,
                     consumer_port = excluded.consumer_port, reserved_to = excluded.reserved_to, temporary_lock = excluded.temporary_lock,
                     updated_at = excluded.updated_at
                 WHERE qos_reservation.reserved_to <= ?8 OR (NOT excluded.temporary_lock
                     AND qos_reservation.consumer_system_name = excluded.consumer_system_name
                     AND qos_reservation.consumer_address = excluded.consumer_address
                     AND qos_reservation.consumer_port = excluded.consumer_port)
                 RETURNING {COLUMNS}"
            ),
            params![
                offer.provider.0,
                offer.definition.0,
                name,
                address,
                port,
                now.saturating_add_unsigned(duration.as_secs()),
                held == Held::Temporarily,
                now
            ],
            reservation,
        )?;
        let reserved = row.is_some();
        row.into_iter().for_each(|change| self.changed(change));
        Ok(reserved)
    }
}

/// How a reservation is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Until one of several is chosen.
    Temporarily,
    /// For use.
    Confirmed,
}

pub(crate) const RESERVATIONS: Table = Table { name: "qos_reservation", columns: COLUMNS, members: None, read: |row, _| reservation(row) };

fn reservation(row: &Row<'_>) -> DatabaseResult<Change> {
    Ok(Change::Reservation(Arc::new(Reservation {
        id: ReservationId(row.get(0)?),
        provider: SystemId(row.get(1)?),
        definition: DefinitionId(row.get(2)?),
        consumer: SystemKey::new(&text(row, 3)?, &text(row, 4)?, row.get(5)?),
        reserved_to: time(row.get(6)?),
        temporary_lock: row.get(7)?,
        timestamps: timestamps(row, 8)?,
    })))
}
