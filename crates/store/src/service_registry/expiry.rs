//! Removing what is over, when the operator has chosen that it goes.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::{
    record::{EntryId, SubscriptionId},
    snapshot::Change,
};

use crate::{
    database::params,
    draft::{Draft, OperationError},
};

/// Rows that one operation removes at the most, so that others need not wait long. Whoever removes asks again.
pub const REMOVAL_ROWS_MAX: u32 = 256;

/// An entry whose provider did not accept a connection at this address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableEntry {
    /// The entry.
    pub id: EntryId,
    /// Where it was looked for. Since then it may have moved, and then it stays.
    pub address: Arc<str>,
    /// Where it was looked for.
    pub port: u16,
}

impl Draft<'_> {
    /// Removes entries whose end of validity was longer than `grace` ago: at most [`REMOVAL_ROWS_MAX`]. Gives their ids.
    pub fn remove_expired_entries(&mut self, grace: Duration) -> Result<Vec<EntryId>, OperationError> {
        let latest = self.now_seconds().saturating_sub_unsigned(grace.as_secs());
        let removed = self.ids(
            "DELETE FROM service_registry WHERE id IN (SELECT id FROM service_registry WHERE end_of_validity < ?1 LIMIT ?2) RETURNING id",
            params![latest, REMOVAL_ROWS_MAX],
        )?;
        let removed: Vec<EntryId> = removed.into_iter().map(EntryId).collect();
        removed.iter().for_each(|id| self.changed(Change::EntryRemoved(*id)));
        Ok(removed)
    }

    /// Removes entries that are still where they could not be reached. Gives the ids of those that were.
    pub fn remove_unreachable_entries(&mut self, entries: &[UnreachableEntry]) -> Result<Vec<EntryId>, OperationError> {
        let mut removed = Vec::new();
        for entry in entries {
            let sql =
                "DELETE FROM service_registry WHERE id = ?1 AND system_id IN (SELECT id FROM system_ WHERE address = ?2 AND port = ?3)";
            if self.run(sql, params![entry.id.0, &*entry.address, entry.port])? > 0 {
                self.changed(Change::EntryRemoved(entry.id));
                removed.push(entry.id);
            }
        }
        Ok(removed)
    }

    /// Removes subscriptions past their end date: at most [`REMOVAL_ROWS_MAX`]. Gives their ids.
    pub fn remove_ended_subscriptions(&mut self) -> Result<Vec<SubscriptionId>, OperationError> {
        let removed = self.ids(
            "DELETE FROM subscription WHERE id IN (SELECT id FROM subscription WHERE end_date < ?1 LIMIT ?2) RETURNING id",
            params![self.now_seconds(), REMOVAL_ROWS_MAX],
        )?;
        let removed: Vec<SubscriptionId> = removed.into_iter().map(SubscriptionId).collect();
        removed.iter().for_each(|id| self.changed(Change::SubscriptionRemoved(*id)));
        Ok(removed)
    }
}
