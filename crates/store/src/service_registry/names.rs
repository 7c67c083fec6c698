//! Service definitions and interfaces: rows that are a name.

use std::sync::Arc;

use bodkin_arrowhead::{
    name::{InterfaceName, ServiceDefinition},
    record::{Definition, DefinitionId, Interface, InterfaceId, Timestamps},
    snapshot::Change,
};

use super::absent;
use crate::{
    database::params,
    draft::{Draft, OperationError, timestamps},
};

/// The statements on a table whose rows are a name, and what a row is called.
struct NameTable {
    what: &'static str,
    find: &'static str,
    make: &'static str,
    show: &'static str,
    rename: &'static str,
}

const DEFINITIONS: NameTable = NameTable {
    what: "Service definition",
    find: "SELECT id FROM service_definition WHERE service_definition = ?1",
    make: "INSERT INTO service_definition (service_definition, created_at, updated_at) VALUES (?1, ?2, ?2) ON CONFLICT DO NOTHING RETURNING id",
    show: "SELECT id FROM service_definition WHERE id = ?1",
    rename: "UPDATE service_definition SET service_definition = ?2, updated_at = ?3
        WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM service_definition AS other WHERE other.service_definition = ?2 AND other.id <> ?1)
        RETURNING created_at, updated_at",
};

const INTERFACES: NameTable = NameTable {
    what: "Service interface",
    find: "SELECT id FROM service_interface WHERE interface_name = ?1",
    make: "INSERT INTO service_interface (interface_name, created_at, updated_at) VALUES (?1, ?2, ?2) ON CONFLICT DO NOTHING RETURNING id",
    show: "SELECT id FROM service_interface WHERE id = ?1",
    rename: "UPDATE service_interface SET interface_name = ?2, updated_at = ?3
        WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM service_interface AS other WHERE other.interface_name = ?2 AND other.id <> ?1)
        RETURNING created_at, updated_at",
};

impl Draft<'_> {
    /// Makes a service definition; one that is there is refused.
    pub fn add_definition(&mut self, name: &ServiceDefinition) -> Result<DefinitionId, OperationError> {
        let id = DefinitionId(self.add_name(&DEFINITIONS, name.as_str())?);
        self.definition_is(id, name, self.timestamps());
        Ok(id)
    }

    /// Renames a service definition; the name of another one is refused.
    pub fn rename_definition(&mut self, id: DefinitionId, name: &ServiceDefinition) -> Result<DefinitionId, OperationError> {
        let timestamps = self.rename(&DEFINITIONS, id.0, name.as_str())?;
        self.definition_is(id, name, timestamps);
        Ok(id)
    }

    /// Makes an interface; one that is there is refused.
    pub fn add_interface(&mut self, name: &InterfaceName) -> Result<InterfaceId, OperationError> {
        let id = InterfaceId(self.add_name(&INTERFACES, name.as_str())?);
        self.interface_is(id, name, self.timestamps());
        Ok(id)
    }

    /// Renames an interface; the name of another one is refused.
    pub fn rename_interface(&mut self, id: InterfaceId, name: &InterfaceName) -> Result<InterfaceId, OperationError> {
        let timestamps = self.rename(&INTERFACES, id.0, name.as_str())?;
        self.interface_is(id, name, timestamps);
        Ok(id)
    }

    pub(crate) fn find_or_make_definition(&mut self, name: &ServiceDefinition) -> Result<DefinitionId, OperationError> {
        let (id, made) = self.find_or_make(DEFINITIONS.find, DEFINITIONS.make, name.as_str())?;
        let id = DefinitionId(id);
        if made {
            self.definition_is(id, name, self.timestamps());
        }
        Ok(id)
    }

    pub(crate) fn find_or_make_interface(&mut self, name: &InterfaceName) -> Result<InterfaceId, OperationError> {
        let (id, made) = self.find_or_make(INTERFACES.find, INTERFACES.make, name.as_str())?;
        let id = InterfaceId(id);
        if made {
            self.interface_is(id, name, self.timestamps());
        }
        Ok(id)
    }

    fn definition_is(&mut self, id: DefinitionId, name: &ServiceDefinition, timestamps: Timestamps) {
        self.changed(Change::Definition(Arc::new(Definition { id, service_definition: name.clone(), timestamps })));
    }

    fn interface_is(&mut self, id: InterfaceId, name: &InterfaceName, timestamps: Timestamps) {
        self.changed(Change::Interface(Arc::new(Interface { id, interface_name: name.clone(), timestamps })));
    }

    fn add_name(&self, table: &NameTable, name: &str) -> Result<i64, OperationError> {
        self.id(table.make, params![name, self.now_seconds()])?.ok_or_else(|| taken(table, name))
    }

    fn rename(&self, table: &NameTable, id: i64, name: &str) -> Result<Timestamps, OperationError> {
        self.id(table.show, [id])?.ok_or_else(|| absent(table.what, id))?;
        let renamed = self.row(table.rename, params![id, name, self.now_seconds()], |row| timestamps(row, 0))?;
        renamed.ok_or_else(|| taken(table, name))
    }
}

fn taken(table: &NameTable, name: &str) -> OperationError {
    OperationError::invalid(format!("{} with name '{name}' already exists.", table.what))
}
