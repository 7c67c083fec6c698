//! Changes of systems and entries by management (reference 3.5).

use std::sync::Arc;

use bodkin_arrowhead::{
    address::Address,
    name::{InterfaceName, ServiceDefinition, SystemName},
    record::{EntryId, SystemId},
    service_registry::{EntryPatch, Registration},
    system::{SystemPatch, SystemRegistration},
};

use super::{absent, already_exists, entry_columns, metadata_text, system_already_exists};
use crate::{
    database::{DatabaseResult, Row, params},
    draft::{Draft, OperationError, time, timestamps},
    load,
};

const SYSTEM: &str = "SELECT system_name, address, port, authentication_info, metadata FROM system_ WHERE id = ?1";
const ENTRY: &str = "SELECT p.system_name, p.address, p.port, p.authentication_info, p.metadata,
    d.service_definition, e.service_uri, e.end_of_validity, e.secure, e.metadata, e.version, e.system_id
    FROM service_registry e JOIN system_ p ON p.id = e.system_id JOIN service_definition d ON d.id = e.service_id WHERE e.id = ?1";

impl Draft<'_> {
    /// Gives a system the name, address, port, public key and metadata of a registration. Those of another are refused.
    pub fn replace_system(&mut self, id: SystemId, system: &SystemRegistration) -> Result<SystemId, OperationError> {
        self.current_system(id)?;
        let row = self.row(
            "UPDATE system_ SET system_name = ?2, address = ?3, port = ?4, authentication_info = ?5, metadata = ?6, updated_at = ?7
             WHERE id = ?1 AND NOT EXISTS (
                 SELECT 1 FROM system_ AS other WHERE other.system_name = ?2 AND other.address = ?3 AND other.port = ?4 AND other.id <> ?1)
             RETURNING created_at, updated_at",
            params![
                id.0,
                system.name.as_str(),
                system.address.as_str(),
                system.port,
                system.authentication_info.as_deref(),
                metadata_text(system.metadata.as_ref()),
                self.now_seconds()
            ],
            |row| timestamps(row, 0),
        )?;
        let timestamps = row.ok_or_else(|| system_already_exists(system))?;
        Ok(self.system_is(id, system, timestamps))
    }

    /// Changes some members of a system.
    pub fn patch_system(&mut self, id: SystemId, patch: SystemPatch) -> Result<SystemId, OperationError> {
        let patched = patch.apply(self.current_system(id)?);
        self.replace_system(id, &patched)
    }

    /// Makes an entry what a registration says; its system and definition are found or made. The place of another is refused.
    pub fn replace_entry(&mut self, id: EntryId, registration: Registration) -> Result<EntryId, OperationError> {
        self.current_entry(id)?;
        let (definition, provider) = self.find_or_make_parts(&registration)?;
        let row = self.row(
            "UPDATE service_registry SET service_id = ?1, system_id = ?2, service_uri = ?3, end_of_validity = ?4, secure = ?5, metadata = ?6,
                 version = ?7, updated_at = ?8
             WHERE id = ?9 AND NOT EXISTS (
                 SELECT 1 FROM service_registry AS other
                 WHERE other.service_id = ?1 AND other.system_id = ?2 AND other.service_uri = ?3 AND other.id <> ?9)
             RETURNING created_at, updated_at",
            entry_columns(definition, provider, &registration, self.now_seconds()).into_iter().chain([id.0.into()]).collect::<Vec<_>>(),
            |row| timestamps(row, 0),
        )?;
        let timestamps = row.ok_or_else(|| already_exists(&registration))?;
        self.run("DELETE FROM service_registry_interface_connection WHERE service_registry_id = ?1", [id.0])?;
        self.entry_is(id, definition, provider, registration, timestamps)?;
        Ok(id)
    }

    /// Changes some members of an entry.
    pub fn patch_entry(&mut self, id: EntryId, patch: EntryPatch) -> Result<EntryId, OperationError> {
        let patched = patch.apply(self.current_entry(id)?);
        self.replace_entry(id, patched)
    }

    fn current_system(&self, id: SystemId) -> Result<SystemRegistration, OperationError> {
        let stored = self.row(SYSTEM, [id.0], system)?.ok_or_else(|| absent("System", id.0))?;
        Ok(self.shown(id, stored))
    }

    /// A system as this node shows it.
    fn shown(&self, id: SystemId, stored: SystemRegistration) -> SystemRegistration {
        match self.own_core() {
            Some(own) => own.shown_of(id, stored),
            None => stored,
        }
    }

    fn current_entry(&self, id: EntryId) -> Result<Registration, OperationError> {
        let names = self.rows(
            "SELECT i.interface_name FROM service_registry_interface_connection c JOIN service_interface i ON i.id = c.interface_id
             WHERE c.service_registry_id = ?1",
            [id.0],
            |row| Ok(InterfaceName::from_stored(row.text(0)?)),
        )?;
        let entry = self.row(ENTRY, [id.0], |row| {
            Ok(Registration {
                provider: self.shown(SystemId(row.get(11)?), system(row)?),
                definition: ServiceDefinition::from_stored(row.text(5)?),
                service_uri: row.text(6)?.into(),
                end_of_validity: row.get::<Option<i64>>(7)?.map(time),
                secure: load::security(row, 8)?,
                metadata: load::metadata(row, 9)?,
                version: row.get(10)?,
                interfaces: names.into_iter().collect(),
            })
        })?;
        entry.ok_or_else(|| absent("Service Registry entry", id.0))
    }
}

/// The first five columns of [`SYSTEM`] and [`ENTRY`].
fn system(row: &Row<'_>) -> DatabaseResult<SystemRegistration> {
    Ok(SystemRegistration {
        name: SystemName::from_stored(row.text(0)?),
        address: Address::from_stored(row.text(1)?),
        port: row.get(2)?,
        authentication_info: row.get::<Option<String>>(3)?.map(Arc::from),
        metadata: load::metadata(row, 4)?,
    })
}
