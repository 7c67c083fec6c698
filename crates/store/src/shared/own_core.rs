//! The core systems as this node serves them. Every node serves all of them, and the database has one row of each: at the place of the node that has registered it
//! last. A node shows its own place in that row, so that what it answers leads to nobody who may be gone (decision 166).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bodkin_arrowhead::{
    record::{System, SystemId},
    snapshot::{Change, Snapshot},
    system::{SystemKey, SystemRegistration},
};

/// The rows of the core systems, and what this node has registered in each.
#[derive(Debug, Default)]
pub(crate) struct OwnCore(Mutex<BTreeMap<SystemId, SystemRegistration>>);

impl OwnCore {
    /// This node serves a core system there. The transaction that says so need not have ended: who reads the row behind it has to know.
    pub fn note(&self, id: SystemId, system: &SystemRegistration) {
        self.lock().insert(id, system.clone());
    }

    /// Follows what an operation of this node has done: an operator may have changed a core system here.
    pub fn follow(&self, change: &Change) {
        let mut known = self.lock();
        match change {
            Change::System(system) => match known.get_mut(&system.id) {
                Some(own) if own.name == system.system_name => *own = registration(system),
                Some(_) => _ = known.remove(&system.id),
                None => {}
            },
            Change::SystemRemoved(id) => _ = known.remove(id),
            _ => {}
        }
    }

    /// The row of the core system that is at this place here, whatever the database says of its place.
    pub fn row_of(&self, key: &SystemKey) -> Option<SystemId> {
        self.lock().iter().find(|(_, own)| own.key() == *key).map(|(id, _)| *id)
    }

    /// What is there here, of a row as the database has it.
    pub fn shown_of(&self, id: SystemId, found: SystemRegistration) -> SystemRegistration {
        self.lock().get(&id).filter(|own| own.name == found.name).cloned().unwrap_or(found)
    }

    /// The same of a change that another node has made.
    pub fn shown_in(&self, change: Change) -> Change {
        match change {
            Change::System(found) => Change::System(self.shown(&found).map_or(found, Arc::new)),
            other => other,
        }
    }

    /// The same of everything.
    pub fn show_in(&self, snapshot: &mut Snapshot) {
        let ids: Vec<SystemId> = self.lock().keys().copied().collect();
        for id in ids {
            if let Some(shown) = snapshot.system(id).and_then(|found| self.shown(found)) {
                snapshot.apply(Change::System(Arc::new(shown)));
            }
        }
    }

    fn shown(&self, found: &System) -> Option<System> {
        let known = self.lock();
        let own = known.get(&found.id).filter(|own| own.name == found.system_name)?;
        Some(System {
            id: found.id,
            system_name: found.system_name.clone(),
            address: own.address.clone(),
            port: own.port,
            authentication_info: own.authentication_info.clone(),
            metadata: own.metadata.clone(),
            timestamps: found.timestamps,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SystemId, SystemRegistration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn registration(system: &System) -> SystemRegistration {
    SystemRegistration {
        name: system.system_name.clone(),
        address: system.address.clone(),
        port: system.port,
        authentication_info: system.authentication_info.clone(),
        metadata: system.metadata.clone(),
    }
}
