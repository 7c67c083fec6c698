//! Operations of Authorization.

use std::sync::Arc;

use bodkin_arrowhead::{authorization::RuleInsertion, record::*, snapshot::Change};

use crate::draft::{Draft, OperationError};

/// The statements that make a rule of one kind.
struct RuleTable {
    insert: &'static str,
    connect: &'static str,
}

const INTRACLOUD: RuleTable = RuleTable {
    insert: "INSERT INTO authorization_intra_cloud (consumer_system_id, provider_system_id, service_id, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING RETURNING id",
    connect: "INSERT INTO authorization_intra_cloud_interface_connection (authorization_intra_cloud_id, interface_id) VALUES (?1, ?2)",
};

const INTERCLOUD: RuleTable = RuleTable {
    insert: "INSERT INTO authorization_inter_cloud (consumer_cloud_id, provider_system_id, service_id, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING RETURNING id",
    connect: "INSERT INTO authorization_inter_cloud_interface_connection (authorization_inter_cloud_id, interface_id) VALUES (?1, ?2)",
};

/// A rule just made: its row id and what it joins.
struct Made {
    id: i64,
    provider: SystemId,
    definition: DefinitionId,
}

impl Draft<'_> {
    /// Makes the intracloud rules that are not there yet and gives their ids; a rule that is there stays as it is.
    pub fn insert_rules(&mut self, insertion: &RuleInsertion) -> Result<Vec<RuleId>, OperationError> {
        let consumer = insertion.consumer;
        self.must_exist("SELECT id FROM system_ WHERE id = ?1", consumer.0, "Consumer system")?;
        let (made, interfaces) = self.insert_into(&INTRACLOUD, consumer.0, insertion)?;
        let timestamps = self.timestamps();
        let rules = made.into_iter().map(|Made { id, provider, definition }| {
            let id = RuleId(id);
            self.changed(Change::Rule(Arc::new(Rule { id, consumer, provider, definition, interfaces: interfaces.clone(), timestamps })));
            id
        });
        Ok(rules.collect())
    }

    /// Makes the intercloud rules that are not there yet and gives their ids; a rule that is there stays as it is.
    pub fn insert_inter_cloud_rules(&mut self, insertion: &RuleInsertion<CloudId>) -> Result<Vec<InterCloudRuleId>, OperationError> {
        let cloud = insertion.consumer;
        self.must_exist("SELECT id FROM cloud WHERE id = ?1", cloud.0, "Cloud")?;
        let (made, interfaces) = self.insert_into(&INTERCLOUD, cloud.0, insertion)?;
        let timestamps = self.timestamps();
        let rules = made.into_iter().map(|Made { id, provider, definition }| {
            let id = InterCloudRuleId(id);
            let rule = InterCloudRule { id, cloud, provider, definition, interfaces: interfaces.clone(), timestamps };
            self.changed(Change::InterCloudRule(Arc::new(rule)));
            id
        });
        Ok(rules.collect())
    }

    /// Makes the missing rows, each with the interfaces that exist; gives both.
    fn insert_into<C>(
        &mut self,
        table: &RuleTable,
        consumer: i64,
        insertion: &RuleInsertion<C>,
    ) -> Result<(Vec<Made>, Vec<InterfaceId>), OperationError> {
        for provider in &insertion.providers {
            self.must_exist("SELECT id FROM system_ WHERE id = ?1", provider.0, "Provider system")?;
        }
        for definition in &insertion.definitions {
            self.must_exist("SELECT id FROM service_definition WHERE id = ?1", definition.0, "Service definition")?;
        }
        let interfaces = self.known_interfaces(insertion.interfaces.iter().copied())?;
        let mut made = Vec::new();
        for provider in insertion.providers.iter().copied() {
            for definition in insertion.definitions.iter().copied() {
                let id = self.id(table.insert, [consumer, provider.0, definition.0, self.now_seconds()])?;
                let Some(id) = id else { continue };
                for interface in &interfaces {
                    self.run(table.connect, [id, interface.0])?;
                }
                made.push(Made { id, provider, definition });
            }
        }
        Ok((made, interfaces))
    }

    fn must_exist(&self, sql: &str, id: i64, what: &str) -> Result<(), OperationError> {
        match self.id(sql, [id])? {
            Some(_) => Ok(()),
            None => Err(OperationError::invalid(format!("{what} with id '{id}' does not exist."))),
        }
    }

    /// The interfaces that exist. Unknown ones are left out, unless none would be left.
    fn known_interfaces(&self, asked: impl Iterator<Item = InterfaceId>) -> Result<Vec<InterfaceId>, OperationError> {
        let mut known = Vec::new();
        for interface in asked {
            known.extend(self.id("SELECT id FROM service_interface WHERE id = ?1", [interface.0])?.map(InterfaceId));
        }
        if known.is_empty() {
            return Err(OperationError::invalid("None of the interface ids exists."));
        }
        Ok(known)
    }

    /// Removes an intracloud rule by id.
    pub fn remove_rule(&mut self, id: RuleId) -> Result<(), OperationError> {
        self.remove("DELETE FROM authorization_intra_cloud WHERE id = ?1", id.0, "Intracloud authorization rule", Change::RuleRemoved(id))
    }

    /// Removes an intercloud rule by id.
    pub fn remove_inter_cloud_rule(&mut self, id: InterCloudRuleId) -> Result<(), OperationError> {
        let sql = "DELETE FROM authorization_inter_cloud WHERE id = ?1";
        self.remove(sql, id.0, "Intercloud authorization rule", Change::InterCloudRuleRemoved(id))
    }
}
