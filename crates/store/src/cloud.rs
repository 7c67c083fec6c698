//! Clouds, and the systems of other clouds.

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{cloud::OwnCloud, metadata::Metadata, name::CloudName, record::*, snapshot::Change, system::SystemKey};

use crate::{
    accepted_event::accepted_events,
    database::{DatabaseError, DatabaseResult, Row, params},
    draft::{Draft, OperationError, timestamps},
    load::{metadata, text},
    service_registry::metadata_text,
    table::{Members, Table},
};

/// The tables. Two clouds may have systems of the same name, address and port: private addresses are used more than once.
pub(crate) const MIGRATION: &str = "
CREATE TABLE cloud (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    operator TEXT NOT NULL,
    name TEXT NOT NULL,
    secure INTEGER NOT NULL,
    neighbor INTEGER NOT NULL,
    own_cloud INTEGER NOT NULL,
    authentication_info TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (operator, name)
) STRICT;
CREATE TABLE foreign_system (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider_cloud_id INTEGER NOT NULL REFERENCES cloud (id) ON DELETE CASCADE,
    system_name TEXT NOT NULL,
    address TEXT NOT NULL,
    port INTEGER NOT NULL,
    authentication_info TEXT,
    metadata TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (provider_cloud_id, system_name, address, port)
) STRICT;
CREATE TABLE authorization_inter_cloud (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_cloud_id INTEGER NOT NULL REFERENCES cloud (id) ON DELETE CASCADE,
    provider_system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    service_id INTEGER NOT NULL REFERENCES service_definition (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (consumer_cloud_id, provider_system_id, service_id)
) STRICT;
CREATE INDEX authorization_inter_cloud_provider ON authorization_inter_cloud (provider_system_id);
CREATE INDEX authorization_inter_cloud_service ON authorization_inter_cloud (service_id);
CREATE TABLE authorization_inter_cloud_interface_connection (
    authorization_inter_cloud_id INTEGER NOT NULL REFERENCES authorization_inter_cloud (id) ON DELETE CASCADE,
    interface_id INTEGER NOT NULL REFERENCES service_interface (id) ON DELETE CASCADE,
    PRIMARY KEY (authorization_inter_cloud_id, interface_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX authorization_inter_cloud_interface_interface ON authorization_inter_cloud_interface_connection (interface_id);
";

/// What a cloud is to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundCloud {
    /// This one itself.
    Own,
    /// Another one.
    Foreign(CloudId),
}

impl Draft<'_> {
    /// Makes the own cloud, in place of one of another name or mode.
    pub fn ensure_own_cloud(&mut self, own: &OwnCloud) -> Result<(), OperationError> {
        let former = self.ids(
            "DELETE FROM cloud WHERE own_cloud AND NOT (operator = ?1 AND name = ?2 AND secure = ?3) RETURNING id",
            params![own.operator.as_str(), own.name.as_str(), own.secure],
        )?;
        former.into_iter().for_each(|id| self.changed(Change::CloudRemoved(CloudId(id))));
        let made = self.id(
            "INSERT INTO cloud (operator, name, secure, neighbor, own_cloud, created_at, updated_at)
             SELECT ?1, ?2, ?3, FALSE, TRUE, ?4, ?4 WHERE NOT EXISTS (SELECT 1 FROM cloud WHERE own_cloud)
             ON CONFLICT DO NOTHING RETURNING id",
            params![own.operator.as_str(), own.name.as_str(), own.secure, self.now_seconds()],
        )?;
        if let Some(id) = made {
            self.changed(Change::Cloud(Arc::new(Cloud {
                id: CloudId(id),
                operator: own.operator.clone(),
                name: own.name.clone(),
                secure: own.secure,
                neighbor: false,
                own_cloud: true,
                authentication_info: None,
                relays: Vec::new(),
                accepted_events: BTreeSet::new(),
                timestamps: self.timestamps(),
            })));
        }
        Ok(())
    }

    /// The cloud of this operator and name.
    pub(crate) fn find_cloud(&self, operator: &CloudName, name: &CloudName) -> DatabaseResult<Option<FoundCloud>> {
        self.row("SELECT id, own_cloud FROM cloud WHERE operator = ?1 AND name = ?2", [operator.as_str(), name.as_str()], |row| {
            Ok(if row.get(1)? { FoundCloud::Own } else { FoundCloud::Foreign(CloudId(row.get(0)?)) })
        })
    }

    /// The system of another cloud, made where it is missing; one that is there stays as it is.
    pub(crate) fn find_or_make_foreign_system(
        &mut self,
        cloud: CloudId,
        system: &SystemKey,
        authentication_info: Option<&Arc<str>>,
        metadata: Option<&Metadata>,
    ) -> Result<ForeignSystemId, OperationError> {
        let (name, address, port) = system.parts();
        let made = self.id(
            "INSERT INTO foreign_system (provider_cloud_id, system_name, address, port, authentication_info, metadata, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT DO NOTHING RETURNING id",
            params![cloud.0, name, address, port, authentication_info.map(|info| &**info), metadata_text(metadata), self.now_seconds()],
        )?;
        if let Some(id) = made.map(ForeignSystemId) {
            self.changed(Change::ForeignSystem(Arc::new(ForeignSystem {
                id,
                cloud,
                system_name: name.into(),
                address: address.into(),
                port,
                authentication_info: authentication_info.cloned(),
                metadata: metadata.cloned(),
                timestamps: self.timestamps(),
            })));
            return Ok(id);
        }
        let found = self.id(
            "SELECT id FROM foreign_system WHERE provider_cloud_id = ?1 AND system_name = ?2 AND address = ?3 AND port = ?4",
            params![cloud.0, name, address, port],
        )?;
        Ok(ForeignSystemId(found.ok_or(DatabaseError::NoRow)?))
    }
}

pub(crate) const CLOUDS: Table = Table {
    name: "cloud",
    columns: "id, operator, name, secure, neighbor, own_cloud, authentication_info, created_at, updated_at, accepted_events",
    members: Some(Members { table: "cloud_relay", row: "cloud_id", member: "relay_id" }),
    read: cloud,
};

pub(crate) const FOREIGN_SYSTEMS: Table = Table {
    name: "foreign_system",
    columns: "id, provider_cloud_id, system_name, address, port, authentication_info, metadata, created_at, updated_at",
    members: None,
    read: foreign_system,
};

pub(crate) const RULES: Table = Table {
    name: "authorization_inter_cloud",
    columns: "id, consumer_cloud_id, provider_system_id, service_id, created_at, updated_at",
    members: Some(Members {
        table: "authorization_inter_cloud_interface_connection",
        row: "authorization_inter_cloud_id",
        member: "interface_id",
    }),
    read: rule,
};

/// A cloud of a row of [`CLOUDS`], and its relays.
pub(crate) fn cloud(row: &Row<'_>, relays: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::Cloud(Arc::new(Cloud {
        id: CloudId(row.get(0)?),
        operator: CloudName::from_stored(&text(row, 1)?),
        name: CloudName::from_stored(&text(row, 2)?),
        secure: row.get(3)?,
        neighbor: row.get(4)?,
        own_cloud: row.get(5)?,
        authentication_info: row.get::<Option<String>>(6)?.map(Arc::from),
        relays: relays.into_iter().map(RelayId).collect(),
        accepted_events: accepted_events(row, 9)?,
        timestamps: timestamps(row, 7)?,
    })))
}

fn foreign_system(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::ForeignSystem(Arc::new(ForeignSystem {
        id: ForeignSystemId(row.get(0)?),
        cloud: CloudId(row.get(1)?),
        system_name: text(row, 2)?.into(),
        address: text(row, 3)?.into(),
        port: row.get(4)?,
        authentication_info: row.get::<Option<String>>(5)?.map(Arc::from),
        metadata: metadata(row, 6)?,
        timestamps: timestamps(row, 7)?,
    })))
}

fn rule(row: &Row<'_>, interfaces: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::InterCloudRule(Arc::new(InterCloudRule {
        id: InterCloudRuleId(row.get(0)?),
        cloud: CloudId(row.get(1)?),
        provider: SystemId(row.get(2)?),
        definition: DefinitionId(row.get(3)?),
        interfaces: interfaces.into_iter().map(InterfaceId).collect(),
        timestamps: timestamps(row, 4)?,
    })))
}
