//! The published snapshot is what the database holds, whatever was done to it.

use std::collections::BTreeMap;

use bodkin_arrowhead::{
    authorization::RuleInsertion,
    caller::Caller,
    event_handler::SubscriptionPut,
    form::{ServiceRegistryRequest, SubscriptionRequest, SystemRequest},
    name::{EventType, NamingRules},
    record::*,
    service_registry::{Registration, Unregistration},
    snapshot::Snapshot,
    system::{CoreSystemNames, SystemKey, SystemRegistration},
    utc::UtcTime,
};
use bodkin_store::{Store, StoreError};
use proptest::prelude::*;

/// One operation; small numbers, so that operations meet the same rows.
#[derive(Clone, Debug)]
enum Operation {
    Register { definition: u8, system: u8, uri: u8, interfaces: Vec<u8>, metadata: Option<u8> },
    Unregister { definition: u8, system: u8, uri: u8 },
    RegisterSystem { system: u8 },
    UnregisterSystem { system: u8 },
    InsertRules { consumer: i64, providers: Vec<i64>, interfaces: Vec<i64>, definition: i64 },
    Subscribe { event_type: u8, system: u8, sources: Option<Vec<u8>>, filter: bool },
    Unsubscribe { event_type: u8, system: u8 },
    Remove { kind: u8, id: i64 },
    CoreServices { port: u16 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let small = 0u8..4;
    let id = 1i64..6;
    prop_oneof![
        4 => (small.clone(), small.clone(), 0u8..2, prop::collection::vec(0u8..3, 1..3), prop::option::of(small.clone()))
            .prop_map(|(definition, system, uri, interfaces, metadata)| Operation::Register { definition, system, uri, interfaces, metadata }),
        1 => (small.clone(), small.clone(), 0u8..2).prop_map(|(definition, system, uri)| Operation::Unregister { definition, system, uri }),
        1 => small.clone().prop_map(|system| Operation::RegisterSystem { system }),
        1 => small.clone().prop_map(|system| Operation::UnregisterSystem { system }),
        2 => (id.clone(), prop::collection::vec(id.clone(), 1..3), prop::collection::vec(id.clone(), 1..3), id.clone())
            .prop_map(|(consumer, providers, interfaces, definition)| Operation::InsertRules { consumer, providers, interfaces, definition }),
        2 => (small.clone(), small.clone(), prop::option::of(prop::collection::vec(small.clone(), 1..3)), any::<bool>())
            .prop_map(|(event_type, system, sources, filter)| Operation::Subscribe { event_type, system, sources, filter }),
        1 => (small.clone(), small).prop_map(|(event_type, system)| Operation::Unsubscribe { event_type, system }),
        2 => (0u8..6, id).prop_map(|(kind, id)| Operation::Remove { kind, id }),
        1 => (8000u16..8002).prop_map(|port| Operation::CoreServices { port }),
    ]
}

fn system_form(system: u8) -> SystemRequest {
    SystemRequest {
        system_name: Some(format!("system-{system}")),
        address: Some("127.0.0.1".into()),
        port: Some(i64::from(system)),
        ..Default::default()
    }
}

fn registration(definition: String, provider: SystemRequest, uri: u8, interfaces: Vec<u8>, metadata: Option<u8>) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(definition),
        provider_system: Some(SystemRequest {
            metadata: metadata.map(|m| BTreeMap::from([("m".into(), Some(m.to_string()))])),
            ..provider
        }),
        service_uri: Some(uri.to_string()),
        interfaces: Some(interfaces.into_iter().map(|i| Some(format!("P{i}-INSECURE-JSON"))).collect()),
        ..Default::default()
    };
    Registration::parse(form, CoreSystemNames::Allowed, &NamingRules::default(), "/test").unwrap()
}

fn key(system: u8) -> SystemKey {
    SystemKey::new(&format!("system-{system}"), "127.0.0.1", system.into())
}

async fn carry_out(store: &Store, operation: Operation) -> Result<(), StoreError> {
    let done = |_: &Snapshot, ()| ();
    match operation {
        Operation::Register { definition, system, uri, interfaces, metadata } => {
            let registration = registration(format!("service-{definition}"), system_form(system), uri, interfaces, metadata);
            store.write(move |draft| draft.register(registration).map(drop), done).await
        }
        Operation::Unregister { definition, system, uri } => {
            let gone = Unregistration { definition: format!("service-{definition}"), provider: key(system), service_uri: uri.to_string() };
            store.write(move |draft| draft.unregister(&gone), done).await
        }
        Operation::RegisterSystem { system } => {
            let system = SystemRegistration::parse(system_form(system), CoreSystemNames::Refused, &NamingRules::default(), "/test")?;
            store.write(move |draft| draft.register_system(&system).map(drop), done).await
        }
        Operation::UnregisterSystem { system } => store.write(move |draft| draft.unregister_system(&key(system)), done).await,
        Operation::InsertRules { consumer, providers, interfaces, definition } => {
            let insertion = RuleInsertion {
                consumer: SystemId(consumer),
                providers: providers.into_iter().map(SystemId).collect(),
                definitions: [DefinitionId(definition)].into(),
                interfaces: interfaces.into_iter().map(InterfaceId).collect(),
            };
            store.write(move |draft| draft.insert_rules(&insertion).map(drop), done).await
        }
        Operation::Subscribe { event_type, system, sources, filter } => {
            let form = SubscriptionRequest {
                event_type: Some(format!("event-{event_type}")),
                subscriber_system: Some(SystemRequest { port: Some(i64::from(system.max(1))), ..system_form(system) }),
                notify_uri: Some("/notify".into()),
                filter_meta_data: filter.then(|| BTreeMap::from([("k".into(), Some("v".into()))])),
                match_meta_data: Some(filter),
                min_severity: filter.then(|| "error".into()),
                payload_filter: filter.then(|| BTreeMap::from([("a/b".into(), Some(">1".into()))])),
                sources: sources.map(|sources| sources.into_iter().map(|source| Some(system_form(source))).collect()),
                ..Default::default()
            };
            let put = SubscriptionPut::parse(form, Caller::Anonymous, UtcTime::from_unix_seconds(0))?;
            store.write(move |draft| draft.put_subscription(put, 1000).map(drop), done).await
        }
        Operation::Unsubscribe { event_type, system } => {
            let event_type = EventType::parse(&format!("event-{event_type}")).unwrap();
            store.write(move |draft| draft.unsubscribe(&event_type, &key(system)), done).await
        }
        Operation::Remove { kind, id } => {
            let remove = move |draft: &mut bodkin_store::Draft<'_>| match kind {
                0 => draft.remove_system(SystemId(id)),
                1 => draft.remove_definition(DefinitionId(id)),
                2 => draft.remove_interface(InterfaceId(id)),
                3 => draft.remove_entry(EntryId(id)),
                4 => draft.remove_rule(RuleId(id)),
                _ => draft.remove_subscription(SubscriptionId(id)),
            };
            store.write(remove, done).await
        }
        Operation::CoreServices { port } => {
            let provider = SystemRequest { system_name: Some("authorization".into()), port: Some(port.into()), ..system_form(0) };
            let services = vec![registration("service-0".into(), provider, 0, vec![0], None)];
            store.write(move |draft| draft.register_core_services(services), done).await
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_store_holds_what_was_published(operations in prop::collection::vec(operation(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        let opened = Store::open(directory.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for operation in operations {
            let told = format!("{operation:?}");
            if let Err(error @ StoreError::Unavailable(_)) = runtime.block_on(carry_out(&opened.store, operation)) {
                panic!("{told}: {error}");
            }
        }
        let published = Snapshot::clone(&opened.store.snapshot());
        opened.close();
        let reopened = Store::open(directory.path()).unwrap();
        prop_assert_eq!(&published, &**reopened.store.snapshot());
    }
}

#[test]
fn a_directory_serves_one_store_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Store::open(directory.path()).unwrap();
    let second = Store::open(directory.path()).err().expect("the directory is locked").to_string();
    assert!(second.contains("in use") && second.contains(&std::process::id().to_string()) && second.contains("--data"), "{second}");
    first.close();
    Store::open(directory.path()).unwrap();
}
