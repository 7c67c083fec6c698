//! Which event types of another cloud are taken here.

use std::collections::BTreeSet;

use bodkin_arrowhead::{name::EventType, record::CloudId, shared_event::ACCEPTED_EVENTS_MAX};

use crate::{
    database::{DatabaseError, DatabaseResult, Row, params},
    draft::{Draft, OperationError},
};

/// The column: event types as stored, in a JSON array. They are read with their cloud and go with it.
pub(crate) const MIGRATION: &str = "ALTER TABLE cloud ADD COLUMN accepted_events TEXT NOT NULL DEFAULT '[]';";

/// Reads the column.
pub(crate) fn accepted_events(row: &Row<'_>, column: usize) -> DatabaseResult<BTreeSet<EventType>> {
    let names: Vec<String> = serde_json::from_str(row.text(column)?).map_err(|error| DatabaseError::column(column, error))?;
    Ok(names.iter().map(|name| EventType::from_stored(name)).collect())
}

impl Draft<'_> {
    /// Takes events of a type from another cloud; one that is accepted already stays. More than [`ACCEPTED_EVENTS_MAX`] are refused.
    pub fn accept_events(&mut self, id: CloudId, event_type: EventType) -> Result<(), OperationError> {
        let mut accepted = self.accepted_events(id)?;
        accepted.insert(event_type);
        if accepted.len() > ACCEPTED_EVENTS_MAX {
            return Err(OperationError::invalid(format!(
                "{ACCEPTED_EVENTS_MAX} event types of this cloud are accepted, which is the limit: take one back first."
            )));
        }
        self.put_accepted_events(id, &accepted)
    }

    /// Takes events of a type from another cloud no more; gives whether it did.
    pub fn refuse_events(&mut self, id: CloudId, event_type: &EventType) -> Result<bool, OperationError> {
        let mut accepted = self.accepted_events(id)?;
        let was_accepted = accepted.remove(event_type);
        if was_accepted {
            self.put_accepted_events(id, &accepted)?;
        }
        Ok(was_accepted)
    }

    fn accepted_events(&self, id: CloudId) -> Result<BTreeSet<EventType>, OperationError> {
        self.must_be_another_cloud(id)?;
        let found = self.row("SELECT accepted_events FROM cloud WHERE id = ?1", [id.0], |row| accepted_events(row, 0))?;
        Ok(found.ok_or(DatabaseError::NoRow)?)
    }

    fn put_accepted_events(&mut self, id: CloudId, accepted: &BTreeSet<EventType>) -> Result<(), OperationError> {
        let names: Vec<&str> = accepted.iter().map(EventType::as_str).collect();
        let json = serde_json::to_string(&names).expect("texts are JSON");
        self.run("UPDATE cloud SET accepted_events = ?2, updated_at = ?3 WHERE id = ?1", params![id.0, json, self.now_seconds()])?;
        self.note_cloud(id)
    }
}
