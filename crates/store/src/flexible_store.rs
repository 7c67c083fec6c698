//! Operations of the flexible store.

use std::sync::Arc;

use bodkin_arrowhead::{
    name::{InterfaceName, ServiceDefinition, SystemName},
    orchestrator::flexible_store::FlexibleRuleInsertion,
    record::*,
    snapshot::Change,
};

use crate::{
    database::{DatabaseResult, Row, params},
    draft::{Draft, OperationError, timestamps},
    load::{metadata, text},
    service_registry::metadata_text,
    table::Table,
};

/// The table.
pub(crate) const MIGRATION: &str = "
CREATE TABLE orchestrator_store_flexible (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_system_name TEXT,
    consumer_system_metadata TEXT,
    provider_system_name TEXT,
    provider_system_metadata TEXT,
    service_definition_name TEXT NOT NULL,
    service_interface_name TEXT,
    service_metadata TEXT,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
";

impl Draft<'_> {
    /// Makes rules and gives their ids; equal ones may stand side by side.
    pub fn insert_flexible_rules(&mut self, insertions: Vec<FlexibleRuleInsertion>) -> Result<Vec<FlexibleRuleId>, OperationError> {
        insertions.into_iter().map(|insertion| self.insert_flexible_rule(insertion)).collect()
    }

    fn insert_flexible_rule(&mut self, insertion: FlexibleRuleInsertion) -> Result<FlexibleRuleId, OperationError> {
        let (consumer, provider) = (insertion.consumer, insertion.provider);
        let id = self.id(
            "INSERT INTO orchestrator_store_flexible (consumer_system_name, consumer_system_metadata, provider_system_name,
                 provider_system_metadata, service_definition_name, service_interface_name, service_metadata, priority, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9) RETURNING id",
            params![
                consumer.system_name.as_ref().map(SystemName::as_str),
                metadata_text(consumer.metadata.as_ref()),
                provider.system_name.as_ref().map(SystemName::as_str),
                metadata_text(provider.metadata.as_ref()),
                insertion.definition.as_str(),
                insertion.interface.as_ref().map(InterfaceName::as_str),
                metadata_text(insertion.metadata.as_ref()),
                insertion.priority,
                self.now_seconds()
            ],
        )?;
        let id = FlexibleRuleId(id.expect("an insertion without conflicts gives its row"));
        self.changed(Change::FlexibleRule(Arc::new(FlexibleRule {
            id,
            consumer_system: consumer,
            provider_system: provider,
            service_definition: insertion.definition,
            service_interface: insertion.interface,
            service_metadata: insertion.metadata,
            priority: insertion.priority,
            timestamps: self.timestamps(),
        })));
        Ok(id)
    }

    /// Removes a rule by id; nothing to remove is no error.
    pub fn remove_flexible_rule(&mut self, id: FlexibleRuleId) -> Result<(), OperationError> {
        if self.run("DELETE FROM orchestrator_store_flexible WHERE id = ?1", [id.0])? > 0 {
            self.changed(Change::FlexibleRuleRemoved(id));
        }
        Ok(())
    }

    /// Removes all rules.
    pub fn clear_flexible_store(&mut self) -> Result<(), OperationError> {
        let removed = self.ids("DELETE FROM orchestrator_store_flexible RETURNING id", ())?;
        removed.into_iter().for_each(|id| self.changed(Change::FlexibleRuleRemoved(FlexibleRuleId(id))));
        Ok(())
    }
}

pub(crate) const RULES: Table = Table {
    name: "orchestrator_store_flexible",
    columns: "id, consumer_system_name, consumer_system_metadata, provider_system_name, provider_system_metadata,
        service_definition_name, service_interface_name, service_metadata, priority, created_at, updated_at",
    members: None,
    read: rule,
};

fn rule(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    let name = |column| row.get::<Option<String>>(column);
    Ok(Change::FlexibleRule(Arc::new(FlexibleRule {
        id: FlexibleRuleId(row.get(0)?),
        consumer_system: SystemDescriber { system_name: name(1)?.as_deref().map(SystemName::from_stored), metadata: metadata(row, 2)? },
        provider_system: SystemDescriber { system_name: name(3)?.as_deref().map(SystemName::from_stored), metadata: metadata(row, 4)? },
        service_definition: ServiceDefinition::from_stored(&text(row, 5)?),
        service_interface: name(6)?.as_deref().map(InterfaceName::from_stored),
        service_metadata: metadata(row, 7)?,
        priority: row.get(8)?,
        timestamps: timestamps(row, 9)?,
    })))
}
