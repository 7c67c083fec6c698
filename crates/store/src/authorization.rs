//! Operations of Authorization.

use std::sync::Arc;

use bodkin_arrowhead::{authorization::RuleInsertion, record::*, snapshot::Change};

use crate::draft::{Draft, OperationError};

impl Draft<'_> {
    /// Makes the rules that are not there yet and gives their ids; a rule that is there stays as it is.
    pub fn insert_rules(&mut self, insertion: &RuleInsertion) -> Result<Vec<RuleId>, OperationError> {
        self.must_exist("SELECT id FROM system_ WHERE id = ?1", insertion.consumer.0, "Consumer system")?;
        for provider in &insertion.providers {
            self.must_exist("SELECT id FROM system_ WHERE id = ?1", provider.0, "Provider system")?;
        }
        for definition in &insertion.definitions {
            self.must_exist("SELECT id FROM service_definition WHERE id = ?1", definition.0, "Service definition")?;
        }
        let interfaces = self.known_interfaces(insertion)?;
        let mut made = Vec::new();
        for provider in &insertion.providers {
            for definition in &insertion.definitions {
                made.extend(self.insert_rule(insertion.consumer, *provider, *definition, &interfaces)?);
            }
        }
        Ok(made)
    }

    fn must_exist(&self, sql: &str, id: i64, what: &str) -> Result<(), OperationError> {
        match self.id(sql, [id])? {
            Some(_) => Ok(()),
            None => Err(OperationError::invalid(format!("{what} with id '{id}' does not exist."))),
        }
    }

    /// The interfaces that exist. Unknown ones are left out, unless none would be left.
    fn known_interfaces(&self, insertion: &RuleInsertion) -> Result<Vec<InterfaceId>, OperationError> {
        let mut known = Vec::with_capacity(insertion.interfaces.len());
        for interface in &insertion.interfaces {
            known.extend(self.id("SELECT id FROM service_interface WHERE id = ?1", [interface.0])?.map(InterfaceId));
        }
        if known.is_empty() {
            return Err(OperationError::invalid("None of the interface ids exists."));
        }
        Ok(known)
    }

    fn insert_rule(
        &mut self,
        consumer: SystemId,
        provider: SystemId,
        definition: DefinitionId,
        interfaces: &[InterfaceId],
    ) -> Result<Option<RuleId>, OperationError> {
        let id = self.id(
            "INSERT INTO authorization_intra_cloud (consumer_system_id, provider_system_id, service_id, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING RETURNING id",
            [consumer.0, provider.0, definition.0, self.now_seconds()],
        )?;
        let Some(id) = id.map(RuleId) else { return Ok(None) };
        for interface in interfaces {
            self.run(
                "INSERT INTO authorization_intra_cloud_interface_connection (authorization_intra_cloud_id, interface_id) VALUES (?1, ?2)",
                [id.0, interface.0],
            )?;
        }
        let rule = Rule { id, consumer, provider, definition, interfaces: interfaces.to_vec(), timestamps: self.timestamps() };
        self.changed(Change::Rule(Arc::new(rule)));
        Ok(Some(id))
    }

    /// Removes a rule by id.
    pub fn remove_rule(&mut self, id: RuleId) -> Result<(), OperationError> {
        self.remove("DELETE FROM authorization_intra_cloud WHERE id = ?1", id.0, "Intracloud authorization rule", Change::RuleRemoved(id))
    }
}
