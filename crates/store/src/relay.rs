//! Relays, and the clouds that are made known with them.

use std::sync::Arc;

use bodkin_arrowhead::{
    gatekeeper::{CloudPut, RelayAssignment, RelayPut},
    record::*,
    snapshot::Change,
};

use crate::{
    cloud,
    database::{DatabaseError, DatabaseResult, Row, params},
    draft::{Draft, OperationError, timestamps},
    load::text,
    table::Table,
};

/// The tables. What a relay is assigned for is said by its type, which never changes: one table of assignments is enough.
pub(crate) const MIGRATION: &str = "
CREATE TABLE relay (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    port INTEGER NOT NULL,
    authentication_info TEXT UNIQUE,
    secure INTEGER NOT NULL,
    exclusive INTEGER NOT NULL,
    type TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (address, port)
) STRICT;
CREATE TABLE cloud_relay (
    cloud_id INTEGER NOT NULL REFERENCES cloud (id) ON DELETE CASCADE,
    relay_id INTEGER NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
    PRIMARY KEY (cloud_id, relay_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX cloud_relay_relay ON cloud_relay (relay_id);
";

pub(crate) const RELAYS: Table = Table {
    name: "relay",
    columns: "id, address, port, authentication_info, secure, exclusive, type, created_at, updated_at",
    members: None,
    read: relay,
};

fn relay_type(row: &Row<'_>, column: usize) -> DatabaseResult<RelayType> {
    let text = text(row, column)?;
    RelayType::parse(&text).ok_or_else(|| row.unexpected(column, &text))
}

fn relay(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::Relay(Arc::new(Relay {
        id: RelayId(row.get(0)?),
        address: text(row, 1)?.into(),
        port: row.get(2)?,
        authentication_info: row.get::<Option<String>>(3)?.map(Arc::from),
        secure: row.get(4)?,
        exclusive: row.get(5)?,
        relay_type: relay_type(row, 6)?,
        timestamps: timestamps(row, 7)?,
    })))
}

impl Draft<'_> {
    /// Makes relays; all of them or, if one is there already, none.
    pub fn insert_relays(&mut self, relays: &[RelayPut]) -> Result<Vec<RelayId>, OperationError> {
        relays.iter().map(|put| self.insert_relay(put)).collect()
    }

    fn insert_relay(&mut self, put: &RelayPut) -> Result<RelayId, OperationError> {
        let relay_type = put.type_for(None)?;
        let made = self.id(
            "INSERT INTO relay (address, port, authentication_info, secure, exclusive, type, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT DO NOTHING RETURNING id",
            params![
                &*put.address,
                put.port,
                put.authentication_info.as_deref(),
                put.secure,
                put.exclusive,
                relay_type.as_str(),
                self.now_seconds()
            ],
        )?;
        let id = made.map(RelayId).ok_or_else(|| relay_exists(put))?;
        let timestamps = self.timestamps();
        self.put_relay(id, put, relay_type, timestamps);
        Ok(id)
    }

    /// Replaces a relay; its type stays. One that is assigned stays of use for what it is assigned for.
    pub fn update_relay(&mut self, id: RelayId, put: &RelayPut) -> Result<(), OperationError> {
        let former = self.row("SELECT type FROM relay WHERE id = ?1", [id.0], |row| relay_type(row, 0))?;
        let former = former.ok_or_else(|| missing("Relay", id.0))?;
        let relay_type = put.type_for(Some(former))?;
        let is_assigned = self.id("SELECT cloud_id FROM cloud_relay WHERE relay_id = ?1 LIMIT 1", [id.0])?.is_some();
        if is_assigned && relay_type == RelayType::GatewayRelay && !put.exclusive {
            return Err(OperationError::invalid("The relay is assigned to a cloud's gateway, and has to stay exclusive."));
        }
        let row = self.row(
            "UPDATE relay SET address = ?2, port = ?3, authentication_info = ?4, secure = ?5, exclusive = ?6, updated_at = ?7
             WHERE id = ?1 AND NOT EXISTS (
                 SELECT 1 FROM relay AS other
                 WHERE ((other.address = ?2 AND other.port = ?3) OR other.authentication_info = ?4) AND other.id <> ?1)
             RETURNING created_at, updated_at",
            params![id.0, &*put.address, put.port, put.authentication_info.as_deref(), put.secure, put.exclusive, self.now_seconds()],
            |row| timestamps(row, 0),
        )?;
        let timestamps = row.ok_or_else(|| relay_exists(put))?;
        self.put_relay(id, put, relay_type, timestamps);
        Ok(())
    }

    fn put_relay(&mut self, id: RelayId, put: &RelayPut, relay_type: RelayType, timestamps: Timestamps) {
        self.changed(Change::Relay(Arc::new(Relay {
            id,
            address: put.address.clone(),
            port: put.port,
            authentication_info: put.authentication_info.clone(),
            secure: put.secure,
            exclusive: put.exclusive,
            relay_type,
            timestamps,
        })));
    }

    /// Removes a relay from every cloud; one that is not there is removed already. The last relay that a cloud's gatekeeper is reached by stays.
    pub fn remove_relay(&mut self, id: RelayId) -> Result<(), OperationError> {
        let stranded = self.row(
            "SELECT cloud.name, cloud.operator FROM cloud JOIN cloud_relay ON cloud_relay.cloud_id = cloud.id
             JOIN relay ON relay.id = cloud_relay.relay_id
             WHERE relay.id = ?1 AND relay.type <> 'GATEWAY_RELAY' AND NOT EXISTS (
                 SELECT 1 FROM cloud_relay AS another JOIN relay AS further ON further.id = another.relay_id
                 WHERE another.cloud_id = cloud.id AND further.type <> 'GATEWAY_RELAY' AND further.id <> ?1) LIMIT 1",
            [id.0],
            |row| Ok(format!("{}.{}", text(row, 0)?, text(row, 1)?)),
        )?;
        if let Some(cloud) = stranded {
            return Err(OperationError::invalid(format!(
                "The gatekeeper of cloud {cloud} is reached by this relay only: assign another one first."
            )));
        }
        if self.run("DELETE FROM relay WHERE id = ?1", [id.0])? > 0 {
            self.changed(Change::RelayRemoved(id));
        }
        Ok(())
    }

    /// Makes other clouds known; all of them or, if one is known already, none.
    pub fn insert_clouds(&mut self, clouds: &[CloudPut]) -> Result<Vec<CloudId>, OperationError> {
        clouds.iter().map(|put| self.insert_cloud(put)).collect()
    }

    fn insert_cloud(&mut self, put: &CloudPut) -> Result<CloudId, OperationError> {
        let made = self.id(
            "INSERT INTO cloud (operator, name, secure, neighbor, own_cloud, authentication_info, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, FALSE, ?5, ?6, ?6) ON CONFLICT DO NOTHING RETURNING id",
            params![
                put.operator.as_str(),
                put.name.as_str(),
                put.secure,
                put.neighbor,
                put.authentication_info.as_deref(),
                self.now_seconds()
            ],
        )?;
        let id = made.map(CloudId).ok_or_else(|| cloud_exists(put))?;
        self.assign(id, &put.relays)?;
        self.note_cloud(id)?;
        Ok(id)
    }

    /// Replaces what is known of another cloud, its relays too.
    pub fn update_cloud(&mut self, id: CloudId, put: &CloudPut) -> Result<(), OperationError> {
        self.must_be_another_cloud(id)?;
        let changed = self.run(
            "UPDATE cloud SET operator = ?2, name = ?3, secure = ?4, neighbor = ?5, authentication_info = ?6, updated_at = ?7
             WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM cloud AS other WHERE other.operator = ?2 AND other.name = ?3 AND other.id <> ?1)",
            params![
                id.0,
                put.operator.as_str(),
                put.name.as_str(),
                put.secure,
                put.neighbor,
                put.authentication_info.as_deref(),
                self.now_seconds()
            ],
        )?;
        if changed == 0 {
            return Err(cloud_exists(put));
        }
        self.run("DELETE FROM cloud_relay WHERE cloud_id = ?1", [id.0])?;
        self.assign(id, &put.relays)?;
        self.note_cloud(id)
    }

    /// Assigns further relays to another cloud; one that is assigned already is refused.
    pub fn assign_relays(&mut self, id: CloudId, further: &RelayAssignment) -> Result<(), OperationError> {
        self.must_be_another_cloud(id)?;
        self.assign(id, further)?;
        self.note_cloud(id)
    }

    /// Removes another cloud with its rules, its systems and what is shared with it; one that is not there is removed already. Entries of the orchestration store that name it stay.
    pub fn remove_cloud(&mut self, id: CloudId) -> Result<(), OperationError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<String>(1)?, row.get::<String>(2)?));
        match self.row("SELECT own_cloud, operator, name FROM cloud WHERE id = ?1", [id.0], read)? {
            None => Ok(()),
            Some((true, ..)) => Err(own_cloud()),
            Some((false, operator, name)) => {
                self.unshare_all(&operator, &name)?;
                self.run("DELETE FROM cloud WHERE id = ?1", [id.0])?;
                self.changed(Change::CloudRemoved(id));
                Ok(())
            }
        }
    }

    pub(crate) fn must_be_another_cloud(&self, id: CloudId) -> Result<(), OperationError> {
        match self.row("SELECT own_cloud FROM cloud WHERE id = ?1", [id.0], |row| row.get(0))? {
            None => Err(missing("Cloud", id.0)),
            Some(true) => Err(own_cloud()),
            Some(false) => Ok(()),
        }
    }

    /// Assigns relays that have to be there, of the right type, and not assigned yet.
    fn assign(&mut self, cloud: CloudId, relays: &RelayAssignment) -> Result<(), OperationError> {
        for relay in relays.all() {
            let found =
                self.row("SELECT type, exclusive FROM relay WHERE id = ?1", [relay.0], |row| Ok((relay_type(row, 0)?, row.get(1)?)))?;
            let (relay_type, exclusive) = found.ok_or_else(|| missing("Relay", relay.0))?;
            relays.check(relay, relay_type, exclusive)?;
            let sql = "INSERT INTO cloud_relay (cloud_id, relay_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            if self.run(sql, [cloud.0, relay.0])? == 0 {
                return Err(OperationError::invalid(format!("Relay with id {relay} is assigned to the cloud already.")));
            }
        }
        Ok(())
    }

    /// Notes what a cloud has become.
    pub(crate) fn note_cloud(&mut self, id: CloudId) -> Result<(), OperationError> {
        let relays = self.ids("SELECT relay_id FROM cloud_relay WHERE cloud_id = ?1 ORDER BY 1", [id.0])?;
        let sql = format!("SELECT {} FROM cloud WHERE id = ?1", cloud::CLOUDS.columns);
        let change = self.row(&sql, [id.0], |row| cloud::cloud(row, relays))?;
        self.changed(change.ok_or(DatabaseError::NoRow)?);
        Ok(())
    }
}

fn relay_exists(put: &RelayPut) -> OperationError {
    OperationError::invalid(format!("A relay at {}:{}, or with its authenticationInfo, already exists.", put.address, put.port))
}

fn cloud_exists(put: &CloudPut) -> OperationError {
    OperationError::invalid(format!("Cloud with the following operator and name already exists: {}, {}", put.operator, put.name))
}

fn own_cloud() -> OperationError {
    OperationError::invalid("It is this cloud itself: only other clouds are changed and removed.")
}

fn missing(what: &str, id: i64) -> OperationError {
    OperationError::invalid(format!("{what} with id '{id}' does not exist."))
}
