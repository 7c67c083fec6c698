//! Operations of the Service Registry.

mod expiry;
mod names;
mod update;

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{
    metadata::Metadata,
    name::SystemName,
    record::*,
    service_registry::{Registration, Unregistration},
    snapshot::Change,
    system::{SystemKey, SystemRegistration},
};

pub use self::expiry::{REMOVAL_ROWS_MAX, UnreachableEntry};

use crate::{
    database::{DatabaseError, DatabaseResult, Value, params},
    draft::{Draft, OperationError, seconds, timestamps},
};

impl Draft<'_> {
    /// Registers a service; definition, system and interfaces are made where they are missing. A duplicate is refused.
    pub fn register(&mut self, registration: Registration) -> Result<EntryId, OperationError> {
        let (definition, provider) = self.find_or_make_parts(&registration)?;
        let id = self.id(
            "INSERT INTO service_registry
                 (service_id, system_id, service_uri, end_of_validity, secure, metadata, version, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT DO NOTHING RETURNING id",
            entry_columns(definition, provider, &registration, self.now_seconds()),
        )?;
        let id = EntryId(id.ok_or_else(|| already_exists(&registration))?);
        self.entry_is(id, definition, provider, registration, self.timestamps())?;
        Ok(id)
    }

    /// Removes a service; definition and system stay. Every miss is refused in its own words.
    pub fn unregister(&mut self, unregistration: &Unregistration) -> Result<(), OperationError> {
        let definition = self.id("SELECT id FROM service_definition WHERE service_definition = ?1", [&unregistration.definition])?;
        let definition = definition.ok_or_else(|| {
            OperationError::invalid(format!("No entry for provider: service definition '{}' is unknown.", unregistration.definition))
        })?;
        let provider = self.find_system(&unregistration.provider)?;
        let provider = provider.ok_or_else(|| OperationError::invalid("No entry for provider: the system is unknown."))?;
        let entry = self.offered(definition, provider, unregistration.service_uri.as_deref())?;
        let entry = entry.ok_or_else(|| {
            let uri = unregistration.service_uri.as_deref().unwrap_or_default();
            OperationError::invalid(format!(
                "No entry for provider: it does not offer '{}' at service URI '{uri}'.",
                unregistration.definition
            ))
        })?;
        self.remove_entry(entry)
    }

    /// The entry of a provider at a service URI; without one at the empty URI, or else the only one there is.
    fn offered(&self, definition: i64, provider: SystemId, service_uri: Option<&str>) -> DatabaseResult<Option<EntryId>> {
        let at = "SELECT id FROM service_registry WHERE service_id = ?1 AND system_id = ?2 AND service_uri = ?3";
        let found = self.id(at, params![definition, provider.0, service_uri.unwrap_or_default()])?;
        if found.is_some() || service_uri.is_some() {
            return Ok(found.map(EntryId));
        }
        let all = self.ids("SELECT id FROM service_registry WHERE service_id = ?1 AND system_id = ?2 LIMIT 2", [definition, provider.0])?;
        Ok(if let [only] = all[..] { Some(EntryId(only)) } else { None })
    }

    /// Makes a system; one that is there is refused.
    pub fn register_system(&mut self, system: &SystemRegistration) -> Result<SystemId, OperationError> {
        let now = self.now_seconds();
        let id = self.id(
            "INSERT INTO system_ (system_name, address, port, authentication_info, metadata, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT DO NOTHING RETURNING id",
            params![
                system.name.as_str(),
                system.address.as_str(),
                system.port,
                system.authentication_info.as_deref(),
                metadata_text(system.metadata.as_ref()),
                now
            ],
        )?;
        let id = id.ok_or_else(|| system_already_exists(system))?;
        Ok(self.system_is(SystemId(id), system, self.timestamps()))
    }

    /// Removes a system with all that depends on it.
    pub fn unregister_system(&mut self, key: &SystemKey) -> Result<(), OperationError> {
        let id = self
            .find_system(key)?
            .ok_or_else(|| OperationError::invalid("System with the given name, address and port does not exist."))?;
        self.remove_system(id)
    }

    /// Removes a system by id with all that depends on it.
    pub fn remove_system(&mut self, id: SystemId) -> Result<(), OperationError> {
        self.remove("DELETE FROM system_ WHERE id = ?1", id.0, "System", Change::SystemRemoved(id))
    }

    /// Removes a service definition by id with its entries and rules.
    pub fn remove_definition(&mut self, id: DefinitionId) -> Result<(), OperationError> {
        self.remove("DELETE FROM service_definition WHERE id = ?1", id.0, "Service definition", Change::DefinitionRemoved(id))
    }

    /// Removes an interface by id, from every entry and rule.
    pub fn remove_interface(&mut self, id: InterfaceId) -> Result<(), OperationError> {
        self.remove("DELETE FROM service_interface WHERE id = ?1", id.0, "Service interface", Change::InterfaceRemoved(id))
    }

    /// Removes a registry entry by id.
    pub fn remove_entry(&mut self, id: EntryId) -> Result<(), OperationError> {
        self.remove("DELETE FROM service_registry WHERE id = ?1", id.0, "Service Registry entry", Change::EntryRemoved(id))
    }

    pub(crate) fn remove(&mut self, sql: &str, id: i64, what: &str, change: Change) -> Result<(), OperationError> {
        if self.run(sql, [id])? == 0 {
            return Err(absent(what, id));
        }
        self.changed(change);
        Ok(())
    }

    /// Registers the services of the core systems, in place of what was there of them.
    ///
    /// A core system keeps its row wherever it listens, so that rules about it, and its subscriptions, stay. A service that is there as it is to be keeps its own.
    /// On a shared database this node shows them where it has registered them from then on, wherever other nodes register them (decision 166).
    pub fn register_core_services(&mut self, services: Vec<Registration>) -> Result<(), OperationError> {
        let mut missing = Vec::new();
        for service in services {
            self.move_core_system(&service.provider)?;
            if self.is_offered_as(&service) {
                continue;
            }
            let old = self.ids(
                "DELETE FROM service_registry WHERE service_id = (SELECT id FROM service_definition WHERE service_definition = ?1) RETURNING id",
                [service.definition.as_str()],
            )?;
            old.into_iter().for_each(|id| self.changed(Change::EntryRemoved(EntryId(id))));
            missing.push(service);
        }
        missing.into_iter().try_for_each(|service| self.register(service).map(drop))
    }

    /// Whether the finished operations have left a service as this registration has it, at this system's row, and offered by nobody else.
    fn is_offered_as(&self, service: &Registration) -> bool {
        let snapshot = self.snapshot();
        let Some(definition) = snapshot.definition_by_name(service.definition.as_str()) else { return false };
        let mut entries = snapshot.entries_of(definition.id);
        let (Some(entry), None) = (entries.next(), entries.next()) else { return false };
        let interfaces = snapshot.named_interfaces(&entry.interfaces);
        snapshot.system(entry.provider).is_some_and(|provider| provider.system_name == service.provider.name)
            && snapshot.systems_with(&service.provider.name).count() == 1
            && (&entry.service_uri, entry.end_of_validity, entry.secure) == (&service.service_uri, service.end_of_validity, service.secure)
            && (&entry.metadata, entry.version) == (&service.metadata, service.version)
            && interfaces.iter().map(|interface| &interface.interface_name).eq(&service.interfaces)
    }

    /// Has the systems of a name offer a service at these places and at no others; what is there already keeps its rows.
    pub fn offer_at(&mut self, name: &SystemName, places: Vec<Registration>) -> Result<(), OperationError> {
        let keys: BTreeSet<_> = places.iter().map(|place| place.provider.key()).collect();
        let there = self.rows("SELECT id, address, port FROM system_ WHERE system_name = ?1 ORDER BY id", [name.as_str()], |row| {
            Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<u16>(2)?))
        })?;
        for (id, address, port) in there {
            if !keys.contains(&SystemKey::new(name.as_str(), &address, port)) {
                self.run("DELETE FROM system_ WHERE id = ?1", [id])?;
                self.changed(Change::SystemRemoved(SystemId(id)));
            }
        }
        for place in places {
            let offered = match self.find_system(&place.provider.key())? {
                Some(system) => self.id(
                    "SELECT service_registry.id FROM service_registry JOIN service_definition ON service_definition.id = service_id
                     WHERE service_definition = ?1 AND system_id = ?2 AND service_uri = ?3",
                    params![place.definition.as_str(), system.0, &*place.service_uri],
                )?,
                None => None,
            };
            if offered.is_none() {
                self.register(place)?;
            }
        }
        Ok(())
    }

    /// Has the row of a core system that listened elsewhere before, or listens elsewhere too, be its row here; it is made where there is none. Of several rows of
    /// its name, which a takeover of another database may leave, one stays.
    fn move_core_system(&mut self, system: &SystemRegistration) -> Result<(), OperationError> {
        let name = system.name.as_str();
        let here = self.stored_system(&system.key())?.map(|here| here.0);
        let elsewhere = || self.id("SELECT id FROM system_ WHERE system_name = ?1 ORDER BY id LIMIT 1", [name]);
        let Some(kept) = here.map_or_else(elsewhere, |here| Ok(Some(here)))? else {
            let made = self.put_system(system)?;
            self.own_core().iter().for_each(|own| own.note(made, system));
            return Ok(());
        };
        let others = self.ids("DELETE FROM system_ WHERE system_name = ?1 AND id <> ?2 RETURNING id", params![name, kept])?;
        others.into_iter().for_each(|id| self.changed(Change::SystemRemoved(SystemId(id))));
        match here {
            Some(_) => _ = self.put_system(system)?,
            None => _ = self.replace_system(SystemId(kept), system)?,
        }
        self.own_core().iter().for_each(|own| own.note(SystemId(kept), system));
        Ok(())
    }

    /// The system of this name, address and port. A core system is at this node's place, whichever place its row has.
    pub(crate) fn find_system(&self, key: &SystemKey) -> DatabaseResult<Option<SystemId>> {
        match self.own_core().and_then(|own| own.row_of(key)) {
            Some(own) => {
                Ok(self.id("SELECT id FROM system_ WHERE id = ?1 AND system_name = ?2", params![own.0, key.parts().0])?.map(SystemId))
            }
            None => self.stored_system(key),
        }
    }

    /// The system whose row has this name, address and port.
    fn stored_system(&self, key: &SystemKey) -> DatabaseResult<Option<SystemId>> {
        let (name, address, port) = key.parts();
        let id = self.id("SELECT id FROM system_ WHERE system_name = ?1 AND address = ?2 AND port = ?3", params![name, address, port])?;
        Ok(id.map(SystemId))
    }

    /// Makes a system, or gives the one that is there the new public key and metadata.
    fn put_system(&mut self, system: &SystemRegistration) -> Result<SystemId, OperationError> {
        let now = self.now_seconds();
        if let Some(own) = self.own_core().and_then(|own| own.row_of(&system.key())) {
            // Another node may have had its row be elsewhere.
            let moved = self.run(
                "UPDATE system_ SET address = ?3, port = ?4 WHERE id = ?1 AND system_name = ?2 AND NOT EXISTS (
                     SELECT 1 FROM system_ AS here WHERE here.system_name = ?2 AND here.address = ?3 AND here.port = ?4)",
                params![own.0, system.name.as_str(), system.address.as_str(), system.port],
            )?;
            // The snapshot shows it there already; the other nodes' copies of the row do not.
            if moved > 0
                && let Some(shown) = self.snapshot().system(own).cloned()
            {
                self.changed(Change::System(shown));
            }
        }
        let put = self.row(
            "INSERT INTO system_ (system_name, address, port, authentication_info, metadata, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
             ON CONFLICT (system_name, address, port) DO UPDATE SET authentication_info = excluded.authentication_info, metadata = excluded.metadata,
                 updated_at = excluded.updated_at
             WHERE system_.authentication_info IS DISTINCT FROM excluded.authentication_info OR system_.metadata IS DISTINCT FROM excluded.metadata
             RETURNING id, created_at, updated_at",
            params![system.name.as_str(), system.address.as_str(), system.port, system.authentication_info.as_deref(), metadata_text(system.metadata.as_ref()), now],
            |row| Ok((SystemId(row.get(0)?), timestamps(row, 1)?)),
        )?;
        if let Some((id, timestamps)) = put {
            return Ok(self.system_is(id, system, timestamps));
        }
        let unchanged = self.stored_system(&system.key())?;
        Ok(unchanged.expect("a conflicting system is there"))
    }

    /// Definition and provider of a registration, made where they are missing.
    fn find_or_make_parts(&mut self, registration: &Registration) -> Result<(DefinitionId, SystemId), OperationError> {
        Ok((self.find_or_make_definition(&registration.definition)?, self.put_system(&registration.provider)?))
    }

    /// Writes an entry's interfaces, made where they are missing, and notes what it has become.
    fn entry_is(
        &mut self,
        id: EntryId,
        definition: DefinitionId,
        provider: SystemId,
        registration: Registration,
        timestamps: Timestamps,
    ) -> Result<(), OperationError> {
        let mut interfaces = Vec::with_capacity(registration.interfaces.len());
        for interface in &registration.interfaces {
            interfaces.push(self.find_or_make_interface(interface)?);
        }
        interfaces.sort_unstable();
        for interface in &interfaces {
            self.run(
                "INSERT INTO service_registry_interface_connection (service_registry_id, interface_id) VALUES (?1, ?2)",
                [id.0, interface.0],
            )?;
        }
        self.changed(Change::Entry(Arc::new(Entry {
            id,
            definition,
            provider,
            service_uri: registration.service_uri,
            end_of_validity: registration.end_of_validity,
            secure: registration.secure,
            metadata: registration.metadata,
            version: registration.version,
            interfaces,
            timestamps,
        })));
        Ok(())
    }

    fn system_is(&mut self, id: SystemId, system: &SystemRegistration, timestamps: Timestamps) -> SystemId {
        self.changed(Change::System(Arc::new(System {
            id,
            system_name: system.name.clone(),
            address: system.address.clone(),
            port: system.port,
            authentication_info: system.authentication_info.clone(),
            metadata: system.metadata.clone(),
            timestamps,
        })));
        id
    }

    /// The id of a named row, and whether it was made just now. Another writer may make it between the two statements,
    /// so the last word is a second look.
    pub(crate) fn find_or_make(&self, find: &str, make: &str, name: &str) -> DatabaseResult<(i64, bool)> {
        if let Some(id) = self.id(find, [name])? {
            return Ok((id, false));
        }
        if let Some(id) = self.id(make, params![name, self.now_seconds()])? {
            return Ok((id, true));
        }
        self.id(find, [name])?.map(|id| (id, false)).ok_or(DatabaseError::NoRow)
    }
}

/// What is written of an entry, in the order of the parameters `?1` to `?8`.
fn entry_columns<'r>(definition: DefinitionId, provider: SystemId, registration: &'r Registration, now_seconds: i64) -> [Value<'r>; 8] {
    params![
        definition.0,
        provider.0,
        &*registration.service_uri,
        registration.end_of_validity.map(seconds),
        registration.secure.as_str(),
        metadata_text(registration.metadata.as_ref()),
        registration.version,
        now_seconds,
    ]
}

fn absent(what: &str, id: i64) -> OperationError {
    OperationError::invalid(format!("{what} with id '{id}' does not exist."))
}

fn system_already_exists(system: &SystemRegistration) -> OperationError {
    let (name, address, port) = (&system.name, system.address.as_str(), system.port);
    OperationError::invalid(format!("System with name: {name}, address: {address}, port: {port} already exists."))
}

fn already_exists(registration: &Registration) -> OperationError {
    OperationError::invalid(format!(
        "Service Registry entry with provider: {} and service definition: {} already exists.",
        registration.provider.name, registration.definition
    ))
}

/// A metadata column: a JSON object of texts, or null.
pub(crate) fn metadata_text(metadata: Option<&Metadata>) -> Option<String> {
    metadata.map(|metadata| serde_json::to_string(metadata).expect("a map of texts is JSON"))
}
