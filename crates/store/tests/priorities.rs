//! Priorities of the orchestration store are 1 to the number of a group's entries, in the order that was asked for.

use std::collections::BTreeMap;

use bodkin_arrowhead::{
    form::SystemRequest,
    gatekeeper::{CloudPut, RelayAssignment},
    name::{CloudName, InterfaceName, NamingRules, ServiceDefinition},
    orchestrator::store::{Reordering, StoreInsertion},
    record::*,
    service_registry::Registration,
    snapshot::Snapshot,
    system::{CoreSystemNames, SystemKey},
};
use bodkin_store::{Draft, Opened, OperationError, Store, StoreError};
use proptest::prelude::*;

const CONSUMERS: u8 = 2;
const PROVIDERS: u8 = 5;

/// One operation; providers from [`PROVIDERS`] on are those of another cloud.
#[derive(Clone, Debug)]
enum Operation {
    Insert(Vec<(u8, u8, u32)>),
    Remove(usize),
    /// Gives a consumer's entries a new order: entry by entry, the one at the index is taken out of those left.
    Reorder(u8, Vec<usize>),
    ReorderPart(u8),
}

fn operation() -> impl Strategy<Value = Operation> {
    let entry = (0..CONSUMERS, 0..PROVIDERS * 2, prop_oneof![Just(1u32), 1u32..12, Just(u32::MAX)]);
    prop_oneof![
        4 => prop::collection::vec(entry, 1..6).prop_map(Operation::Insert),
        2 => any::<prop::sample::Index>().prop_map(|index| Operation::Remove(index.index(1000))),
        1 => (0..CONSUMERS, prop::collection::vec(0usize..1000, 20)).prop_map(|(consumer, taken)| Operation::Reorder(consumer, taken)),
        1 => (0..CONSUMERS).prop_map(Operation::ReorderPart),
    ]
}

/// A store with what the entries refer to, and what its orders must be: providers by consumer.
struct World {
    runtime: tokio::runtime::Runtime,
    opened: Opened,
    model: BTreeMap<u8, Vec<u8>>,
}

fn key(kind: &str, number: u8) -> SystemKey {
    SystemKey::new(&format!("{kind}-{number}"), "127.0.0.1", number.into())
}

impl World {
    fn new(directory: &std::path::Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let world = Self { runtime, opened: Store::open(directory).unwrap(), model: BTreeMap::new() };
        for (kind, count) in [("consumer", CONSUMERS), ("provider", PROVIDERS)] {
            for number in 0..count {
                world.write(move |draft| draft.register(registration(kind, number)).map(drop)).unwrap();
            }
        }
        let name = || CloudName::from_stored("elsewhere");
        let put = CloudPut {
            operator: name(),
            name: name(),
            secure: false,
            neighbor: false,
            authentication_info: None,
            relays: RelayAssignment::default(),
        };
        world.write(move |draft| draft.insert_clouds(&[put]).map(drop)).unwrap();
        world
    }

    fn write(&self, operation: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static) -> Result<(), StoreError> {
        self.runtime.block_on(self.opened.store.write(operation, |_, ()| ()))
    }

    fn insertion(&self, consumer: u8, provider: u8, priority: u32) -> StoreInsertion {
        let snapshot = self.opened.store.snapshot();
        let elsewhere = || CloudName::from_stored("elsewhere");
        StoreInsertion {
            consumer: snapshot.system_by_key(key("consumer", consumer).as_str()).unwrap().id,
            definition: ServiceDefinition::from_stored("service"),
            interface: InterfaceName::from_stored("HTTP-INSECURE-JSON"),
            provider: key("provider", provider),
            cloud: (provider >= PROVIDERS).then(|| (elsewhere(), elsewhere())),
            authentication_info: None,
            metadata: None,
            priority,
            attribute: None,
        }
    }

    fn carry_out(&mut self, operation: Operation) {
        match operation {
            Operation::Insert(entries) => {
                let insertions: Vec<_> = entries.iter().map(|entry| self.insertion(entry.0, entry.1, entry.2)).collect();
                self.write(move |draft| draft.insert_store_entries(&insertions).map(drop)).unwrap();
                for (consumer, provider, priority) in entries {
                    let order = self.model.entry(consumer).or_default();
                    if !order.contains(&provider) {
                        let place = (priority - 1) as usize;
                        order.insert(if place < order.len() { place } else { order.len() }, provider);
                    }
                }
            }
            Operation::Remove(index) => {
                let ids: Vec<StoreEntryId> = self.opened.store.snapshot().store_entries().map(|entry| entry.id).collect();
                if ids.is_empty() {
                    return;
                }
                let id = ids[index % ids.len()];
                let (consumer, provider) = self.names(self.opened.store.snapshot().store_entry(id).unwrap());
                self.write(move |draft| draft.remove_store_entry(id)).unwrap();
                self.model.get_mut(&consumer).unwrap().retain(|other| *other != provider);
            }
            Operation::Reorder(consumer, taken) => {
                let mut left = self.ids(consumer);
                let mut ids = Vec::new();
                for index in taken.into_iter().cycle() {
                    if left.is_empty() {
                        break;
                    }
                    ids.push(left.remove(index % left.len()));
                }
                if ids.is_empty() {
                    return;
                }
                let named = ids.iter().map(|id| self.names(self.opened.store.snapshot().store_entry(*id).unwrap()).1).collect();
                self.write(move |draft| draft.reorder_store_entries(&Reordering(ids))).unwrap();
                self.model.insert(consumer, named);
            }
            Operation::ReorderPart(consumer) => {
                let mut ids = self.ids(consumer);
                if ids.pop().is_some() && !ids.is_empty() {
                    let refused = self.write(move |draft| draft.reorder_store_entries(&Reordering(ids)));
                    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
                }
            }
        }
    }

    /// A consumer's entries in their order.
    fn ids(&self, consumer: u8) -> Vec<StoreEntryId> {
        let snapshot = self.opened.store.snapshot();
        let consumer = snapshot.system_by_key(key("consumer", consumer).as_str()).unwrap().id;
        snapshot.store_entries_of_consumer(consumer).map(|entry| entry.id).collect()
    }

    /// Consumer and provider of an entry.
    fn names(&self, entry: &StoreEntry) -> (u8, u8) {
        let snapshot = self.opened.store.snapshot();
        let provider = match entry.provider {
            StoreProvider::Local(id) => snapshot.system(id).unwrap().port,
            StoreProvider::Foreign(id) => snapshot.foreign_system(id).unwrap().port,
        };
        (snapshot.system(entry.group.consumer).unwrap().port as u8, provider as u8)
    }

    fn check(&self) {
        let snapshot = self.opened.store.snapshot();
        for consumer in 0..CONSUMERS {
            let entries: Vec<_> = self.ids(consumer).into_iter().map(|id| snapshot.store_entry(id).unwrap()).collect();
            let priorities: Vec<u32> = entries.iter().map(|entry| entry.priority).collect();
            assert_eq!(priorities, (1..=entries.len() as u32).collect::<Vec<_>>());
            let providers: Vec<u8> = entries.iter().map(|entry| self.names(entry).1).collect();
            assert_eq!(&providers, self.model.get(&consumer).unwrap_or(&Vec::new()));
        }
    }
}

fn registration(kind: &str, number: u8) -> Registration {
    let provider = SystemRequest {
        system_name: Some(format!("{kind}-{number}")),
        address: Some("127.0.0.1".into()),
        port: Some(number.into()),
        ..SystemRequest::default()
    };
    let form = bodkin_arrowhead::form::ServiceRegistryRequest {
        service_definition: Some("service".into()),
        provider_system: Some(provider),
        interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..Default::default()
    };
    Registration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/test").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn priorities_stay_dense_and_as_asked(operations in prop::collection::vec(operation(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let mut world = World::new(directory.path());
        for operation in operations {
            world.carry_out(operation);
            world.check();
        }
        let published = Snapshot::clone(&world.opened.store.snapshot());
        world.opened.close();
        let reopened = Store::open(directory.path()).unwrap();
        prop_assert_eq!(&published, &**reopened.store.snapshot());
    }
}

#[test]
fn entries_outlive_their_provider_and_go_with_their_consumer() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path());
    world.carry_out(Operation::Insert(vec![(0, 0, 1), (0, 1, 2), (1, 0, 1)]));
    let system = |world: &World, kind: &str| world.opened.store.snapshot().system_by_key(key(kind, 0).as_str()).unwrap().id;
    let (provider, consumer) = (system(&world, "provider"), system(&world, "consumer"));
    world.write(move |draft| draft.remove_system(provider)).unwrap();
    let named = world.opened.store.snapshot().store_entries().filter(|entry| entry.provider == StoreProvider::Local(provider)).count();
    assert_eq!(named, 2);
    world.write(move |draft| draft.remove_system(consumer)).unwrap();
    assert_eq!(world.opened.store.snapshot().store_entries().len(), 1);
}
