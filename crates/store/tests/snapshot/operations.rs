//! Operations of every kind at random, and how they are carried out.

use std::{collections::BTreeMap, time::Duration};

use bodkin_arrowhead::{
    access::Access,
    authorization::RuleInsertion,
    caller::Caller,
    cloud::OwnCloud,
    event_handler::SubscriptionPut,
    form::{CloudRequest, ServiceRegistryRequest, StoreRequest, SubscriptionRequest, SystemRequest},
    gatekeeper::{CloudPut, RelayAssignment, RelayPut},
    metadata::Metadata,
    name::{CloudName, EventType, InterfaceName, NamingRules, ServiceDefinition, SystemName},
    orchestrator::{
        flexible_store::FlexibleRuleInsertion,
        reservation::{Confirmation, Offer, TemporaryLock},
        store::{Reordering, StoreInsertion},
    },
    record::*,
    service_registry::{EntryPatch, Registration, Unregistration},
    snapshot::Snapshot,
    system::{CoreSystemNames, SystemKey, SystemPatch, SystemRegistration},
    utc::UtcTime,
};
use bodkin_store::{Store, StoreError, UnreachableEntry};
use proptest::prelude::*;

/// One operation; small numbers, so that operations meet the same rows.
#[derive(Clone, Debug)]
pub enum Operation {
    Register(Service),
    Unregister { definition: u8, system: u8, uri: Option<u8> },
    ReplaceEntry { id: i64, service: Service },
    PatchEntry { id: i64, definition: Option<u8>, system: Option<u8>, uri: Option<u8>, interfaces: Option<Vec<u8>> },
    ReplaceSystem { id: i64, system: u8 },
    PatchSystem { id: i64, port: u8 },
    AddName { kind: u8, name: u8 },
    Rename { kind: u8, id: i64, name: u8 },
    RemoveExpired { grace_s: u64 },
    RemoveUnreachable { entries: Vec<i64>, system: u8 },
    RemoveEndedSubscriptions,
    RegisterSystem { system: u8 },
    UnregisterSystem { system: u8 },
    InsertRules { consumer: i64, providers: Vec<i64>, interfaces: Vec<i64>, definition: i64 },
    Subscribe { event_type: u8, system: u8, sources: Option<Vec<u8>>, filter: bool },
    UpdateSubscription { id: i64, event_type: u8, system: u8 },
    Unsubscribe { event_type: u8, system: u8 },
    DeclareTopic { event_type: u8, version: u8 },
    ForgetTopic { event_type: u8 },
    Remove { kind: u8, id: i64 },
    CoreServices { port: u16 },
    OwnCloud,
    PutCloud { id: Option<i64>, cloud: u8, neighbor: bool, relays: [Vec<i64>; 2] },
    AssignRelays { cloud: i64, relays: [Vec<i64>; 2] },
    AcceptEvents { cloud: i64, event_type: u8 },
    RefuseEvents { cloud: i64, event_type: u8 },
    PutRelay { id: Option<i64>, port: u16, key: Option<u8>, kind: u8, exclusive: bool },
    InsertInterCloudRules { cloud: i64, providers: Vec<i64>, interfaces: Vec<i64>, definition: i64 },
    InsertStoreEntries { entries: Vec<(i64, u8, u8, u8, i64, Option<u8>)> },
    Reorder { ids: Vec<i64> },
    InsertFlexibleRule { consumer: u8, definition: u8, metadata: Option<u8>, interface: Option<u8> },
    ClearFlexibleStore,
    Lock { consumer: u8, offers: Vec<(i64, i64)>, seconds: u64 },
    Confirm { consumer: u8, offers: Vec<(i64, i64)>, seconds: u64 },
    Expire,
}

/// What is registered, and what an entry is replaced by.
#[derive(Clone, Debug)]
pub struct Service {
    pub definition: u8,
    pub system: u8,
    pub uri: u8,
    pub interfaces: Vec<u8>,
    pub metadata: Option<u8>,
    pub is_expired: bool,
}

fn service() -> impl Strategy<Value = Service> {
    let small = 0u8..4;
    (small.clone(), small.clone(), 0u8..2, prop::collection::vec(0u8..3, 1..3), prop::option::of(small), any::<bool>()).prop_map(
        |(definition, system, uri, interfaces, metadata, is_expired)| Service { definition, system, uri, interfaces, metadata, is_expired },
    )
}

pub fn operation() -> impl Strategy<Value = Operation> {
    let small = 0u8..4;
    let id = 1i64..6;
    prop_oneof![
        4 => service().prop_map(Operation::Register),
        1 => (small.clone(), small.clone(), prop::option::of(0u8..2))
            .prop_map(|(definition, system, uri)| Operation::Unregister { definition, system, uri }),
        2 => (id.clone(), service()).prop_map(|(id, service)| Operation::ReplaceEntry { id, service }),
        2 => (id.clone(), prop::option::of(small.clone()), prop::option::of(small.clone()), prop::option::of(0u8..2),
            prop::option::of(prop::collection::vec(0u8..3, 1..3)))
            .prop_map(|(id, definition, system, uri, interfaces)| Operation::PatchEntry { id, definition, system, uri, interfaces }),
        1 => (id.clone(), small.clone()).prop_map(|(id, system)| Operation::ReplaceSystem { id, system }),
        1 => (id.clone(), small.clone()).prop_map(|(id, port)| Operation::PatchSystem { id, port }),
        1 => (0u8..2, small.clone()).prop_map(|(kind, name)| Operation::AddName { kind, name }),
        1 => (0u8..2, id.clone(), small.clone()).prop_map(|(kind, id, name)| Operation::Rename { kind, id, name }),
        1 => prop_oneof![Just(0u64), Just(u64::MAX)].prop_map(|grace_s| Operation::RemoveExpired { grace_s }),
        1 => (prop::collection::vec(id.clone(), 0..4), small.clone())
            .prop_map(|(entries, system)| Operation::RemoveUnreachable { entries, system }),
        1 => Just(Operation::RemoveEndedSubscriptions),
        1 => small.clone().prop_map(|system| Operation::RegisterSystem { system }),
        1 => small.clone().prop_map(|system| Operation::UnregisterSystem { system }),
        2 => (id.clone(), prop::collection::vec(id.clone(), 1..3), prop::collection::vec(id.clone(), 1..3), id.clone())
            .prop_map(|(consumer, providers, interfaces, definition)| Operation::InsertRules { consumer, providers, interfaces, definition }),
        2 => (small.clone(), small.clone(), prop::option::of(prop::collection::vec(small.clone(), 1..3)), any::<bool>())
            .prop_map(|(event_type, system, sources, filter)| Operation::Subscribe { event_type, system, sources, filter }),
        1 => (id.clone(), small.clone(), small.clone())
            .prop_map(|(id, event_type, system)| Operation::UpdateSubscription { id, event_type, system }),
        1 => (small.clone(), small.clone()).prop_map(|(event_type, system)| Operation::Unsubscribe { event_type, system }),
        1 => (small.clone(), small.clone()).prop_map(|(event_type, version)| Operation::DeclareTopic { event_type, version }),
        1 => small.prop_map(|event_type| Operation::ForgetTopic { event_type }),
        2 => (0u8..11, id).prop_map(|(kind, id)| Operation::Remove { kind, id }),
        1 => (8000u16..8002).prop_map(|port| Operation::CoreServices { port }),
        5 => orchestration(),
    ]
}

/// What the other clouds, the Orchestrator's stores and the reservations know.
fn orchestration() -> impl Strategy<Value = Operation> {
    let small = 0u8..4;
    let id = 1i64..6;
    let entry = (id.clone(), small.clone(), small.clone(), 0u8..3, 1i64..5, prop::option::of(0u8..3));
    let offers = prop::collection::vec((id.clone(), id.clone()), 1..4);
    prop_oneof![
        1 => Just(Operation::OwnCloud),
        2 => (prop::option::of(id.clone()), 0u8..2, any::<bool>(), relays())
            .prop_map(|(id, cloud, neighbor, relays)| Operation::PutCloud { id, cloud, neighbor, relays }),
        1 => (id.clone(), relays()).prop_map(|(cloud, relays)| Operation::AssignRelays { cloud, relays }),
        2 => (id.clone(), small.clone()).prop_map(|(cloud, event_type)| Operation::AcceptEvents { cloud, event_type }),
        1 => (id.clone(), small.clone()).prop_map(|(cloud, event_type)| Operation::RefuseEvents { cloud, event_type }),
        2 => (prop::option::of(id.clone()), 1u16..4, prop::option::of(0u8..3), 0u8..3, any::<bool>())
            .prop_map(|(id, port, key, kind, exclusive)| Operation::PutRelay { id, port, key, kind, exclusive }),
        2 => (id.clone(), prop::collection::vec(id.clone(), 1..3), prop::collection::vec(id.clone(), 1..3), id.clone()).prop_map(
            |(cloud, providers, interfaces, definition)| Operation::InsertInterCloudRules { cloud, providers, interfaces, definition }
        ),
        4 => prop::collection::vec(entry, 1..4).prop_map(|entries| Operation::InsertStoreEntries { entries }),
        1 => prop::collection::btree_set(id, 1..3).prop_map(|ids| Operation::Reorder { ids: ids.into_iter().rev().collect() }),
        1 => (small.clone(), small.clone(), prop::option::of(small.clone()), prop::option::of(small.clone())).prop_map(
            |(consumer, definition, metadata, interface)| Operation::InsertFlexibleRule { consumer, definition, metadata, interface }
        ),
        1 => Just(Operation::ClearFlexibleStore),
        1 => (small.clone(), offers.clone(), 0u64..2).prop_map(|(consumer, offers, seconds)| Operation::Lock { consumer, offers, seconds }),
        1 => (small, offers, 0u64..2).prop_map(|(consumer, offers, seconds)| Operation::Confirm { consumer, offers, seconds }),
        1 => Just(Operation::Expire),
    ]
}

/// For a gatekeeper, and for a gateway.
fn relays() -> impl Strategy<Value = [Vec<i64>; 2]> {
    let ids = || prop::collection::vec(1i64..4, 0..3);
    (ids(), ids()).prop_map(|(gatekeeper, gateway)| [gatekeeper, gateway])
}

fn assignment(relays: [Vec<i64>; 2]) -> RelayAssignment {
    let [gatekeeper, gateway] = relays.map(|ids| ids.into_iter().map(RelayId).collect());
    RelayAssignment { gatekeeper, gateway }
}

fn system_form(system: u8) -> SystemRequest {
    SystemRequest {
        system_name: Some(format!("system-{system}")),
        address: Some("127.0.0.1".into()),
        port: Some(i64::from(system)),
        ..Default::default()
    }
}

fn registration(definition: String, provider: SystemRequest, service: Service) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(definition),
        provider_system: Some(SystemRequest {
            metadata: service.metadata.map(|m| BTreeMap::from([("m".into(), Some(m.to_string()))])),
            ..provider
        }),
        service_uri: Some(service.uri.to_string()),
        end_of_validity: service.is_expired.then(|| "2001-01-01T00:00:00Z".into()),
        interfaces: Some(interfaces(service.interfaces)),
        ..Default::default()
    };
    Registration::parse(form, CoreSystemNames::Allowed, &NamingRules::default(), "/test").unwrap()
}

fn interfaces(numbers: Vec<u8>) -> Vec<Option<String>> {
    numbers.into_iter().map(|number| Some(format!("P{number}-INSECURE-JSON"))).collect()
}

fn system_registration(system: u8) -> Result<SystemRegistration, StoreError> {
    Ok(SystemRegistration::parse(system_form(system), CoreSystemNames::Refused, &NamingRules::default(), "/test")?)
}

fn key(system: u8) -> SystemKey {
    SystemKey::new(&format!("system-{system}"), "127.0.0.1", system.into())
}

/// A service definition or an interface.
fn names(kind: u8, name: u8) -> Result<ServiceDefinition, InterfaceName> {
    if kind == 0 {
        return Ok(ServiceDefinition::from_stored(&format!("service-{name}")));
    }
    Err(InterfaceName::from_stored(&format!("P{name}-INSECURE-JSON")))
}

pub async fn carry_out(store: &Store, operation: Operation) -> Result<(), StoreError> {
    let done = |_: &Snapshot, ()| ();
    match operation {
        Operation::Register(service) => {
            let registration = registration(format!("service-{}", service.definition), system_form(service.system), service);
            store.write(move |draft| draft.register(registration).map(drop), done).await
        }
        Operation::Unregister { definition, system, uri } => {
            let service_uri = uri.map(|uri| uri.to_string());
            let gone = Unregistration { definition: format!("service-{definition}"), provider: key(system), service_uri };
            store.write(move |draft| draft.unregister(&gone), done).await
        }
        Operation::ReplaceEntry { id, service } => {
            let registration = registration(format!("service-{}", service.definition), system_form(service.system), service);
            store.write(move |draft| draft.replace_entry(EntryId(id), registration).map(drop), done).await
        }
        Operation::PatchEntry { id, definition, system, uri, interfaces: numbers } => {
            let form = ServiceRegistryRequest {
                service_definition: definition.map(|definition| format!("service-{definition}")),
                provider_system: system.map(system_form),
                service_uri: uri.map(|uri| uri.to_string()),
                interfaces: numbers.map(interfaces),
                ..Default::default()
            };
            let patch = EntryPatch::parse(form, &NamingRules::default(), "/test")?;
            store.write(move |draft| draft.patch_entry(EntryId(id), patch).map(drop), done).await
        }
        Operation::ReplaceSystem { id, system } => {
            let system = system_registration(system)?;
            store.write(move |draft| draft.replace_system(SystemId(id), &system).map(drop), done).await
        }
        Operation::PatchSystem { id, port } => {
            let form = SystemRequest { port: Some(port.into()), ..Default::default() };
            let patch = SystemPatch::parse(form, &NamingRules::default(), "/test")?;
            store.write(move |draft| draft.patch_system(SystemId(id), patch).map(drop), done).await
        }
        Operation::AddName { kind, name } => match names(kind, name) {
            Ok(definition) => store.write(move |draft| draft.add_definition(&definition).map(drop), done).await,
            Err(interface) => store.write(move |draft| draft.add_interface(&interface).map(drop), done).await,
        },
        Operation::Rename { kind, id, name } => match names(kind, name) {
            Ok(definition) => store.write(move |draft| draft.rename_definition(DefinitionId(id), &definition).map(drop), done).await,
            Err(interface) => store.write(move |draft| draft.rename_interface(InterfaceId(id), &interface).map(drop), done).await,
        },
        Operation::RemoveExpired { grace_s } => {
            store.write(move |draft| draft.remove_expired_entries(Duration::from_secs(grace_s)).map(drop), done).await
        }
        Operation::RemoveUnreachable { entries, system } => {
            let at = |id| UnreachableEntry { id: EntryId(id), address: "127.0.0.1".into(), port: system.into() };
            let entries: Vec<_> = entries.into_iter().map(at).collect();
            store.write(move |draft| draft.remove_unreachable_entries(&entries).map(drop), done).await
        }
        Operation::RemoveEndedSubscriptions => store.write(|draft| draft.remove_ended_subscriptions().map(drop), done).await,
        Operation::RegisterSystem { system } => {
            let system = system_registration(system)?;
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
            let put = subscription(event_type, system, sources, filter)?;
            store.write(move |draft| draft.put_subscription(put, 1000).map(drop), done).await
        }
        Operation::UpdateSubscription { id, event_type, system } => {
            let put = subscription(event_type, system, None, false)?;
            store.write(move |draft| draft.update_subscription(SubscriptionId(id), put).map(drop), done).await
        }
        Operation::DeclareTopic { event_type, version } => {
            let event_type = self::event_type(event_type);
            let declaration = format!("{{\"event_type\": \"{event_type}\", \"version\": {version}}}");
            store.write(move |draft| draft.declare_topic(&event_type, &declaration), done).await
        }
        Operation::ForgetTopic { event_type } => {
            let event_type = self::event_type(event_type);
            store.write(move |draft| draft.forget_topic(&event_type).map(drop), done).await
        }
        Operation::Unsubscribe { event_type, system } => {
            let event_type = self::event_type(event_type);
            store.write(move |draft| draft.unsubscribe(&event_type, &key(system)), done).await
        }
        Operation::Remove { kind, id } => {
            let remove = move |draft: &mut bodkin_store::Draft<'_>| match kind {
                0 => draft.remove_system(SystemId(id)),
                1 => draft.remove_definition(DefinitionId(id)),
                2 => draft.remove_interface(InterfaceId(id)),
                3 => draft.remove_entry(EntryId(id)),
                4 => draft.remove_rule(RuleId(id)),
                5 => draft.remove_subscription(SubscriptionId(id)),
                6 => draft.remove_cloud(CloudId(id)),
                7 => draft.remove_inter_cloud_rule(InterCloudRuleId(id)),
                8 => draft.remove_store_entry(StoreEntryId(id)),
                9 => draft.remove_flexible_rule(FlexibleRuleId(id)),
                _ => draft.remove_relay(RelayId(id)),
            };
            store.write(remove, done).await
        }
        Operation::CoreServices { port } => {
            let provider = SystemRequest { system_name: Some("authorization".into()), port: Some(port.into()), ..system_form(0) };
            let service = Service { definition: 0, system: 0, uri: 0, interfaces: vec![0], metadata: None, is_expired: false };
            let services = vec![registration("service-0".into(), provider, service)];
            store.write(move |draft| draft.register_core_services(services), done).await
        }
        other => carry_out_orchestration(store, other).await,
    }
}

async fn carry_out_orchestration(store: &Store, operation: Operation) -> Result<(), StoreError> {
    let done = |_: &Snapshot, ()| ();
    match operation {
        Operation::OwnCloud => store.write(|draft| draft.ensure_own_cloud(&OwnCloud::insecure()), done).await,
        Operation::PutCloud { id, cloud, neighbor, relays } => {
            let (operator, name, relays) = (cloud_name(cloud), cloud_name(cloud), assignment(relays));
            let put = CloudPut { operator, name, secure: true, neighbor, authentication_info: None, relays };
            let put = move |draft: &mut bodkin_store::Draft<'_>| match id {
                None => draft.insert_clouds(&[put]).map(drop),
                Some(id) => draft.update_cloud(CloudId(id), &put),
            };
            store.write(put, done).await
        }
        Operation::AssignRelays { cloud, relays } => {
            let further = assignment(relays);
            store.write(move |draft| draft.assign_relays(CloudId(cloud), &further), done).await
        }
        Operation::AcceptEvents { cloud, event_type } => {
            let event_type = self::event_type(event_type);
            store.write(move |draft| draft.accept_events(CloudId(cloud), event_type), done).await
        }
        Operation::RefuseEvents { cloud, event_type } => {
            let event_type = self::event_type(event_type);
            store.write(move |draft| draft.refuse_events(CloudId(cloud), &event_type).map(drop), done).await
        }
        Operation::PutRelay { id, port, key, kind, exclusive } => {
            let relay_type = [None, Some(RelayType::GatewayRelay), Some(RelayType::GatekeeperRelay)][usize::from(kind)];
            let authentication_info = key.map(|key| key.to_string().into());
            let put = RelayPut { address: "relay".into(), port, authentication_info, secure: true, exclusive, relay_type };
            let put = move |draft: &mut bodkin_store::Draft<'_>| match id {
                None => draft.insert_relays(&[put]).map(drop),
                Some(id) => draft.update_relay(RelayId(id), &put),
            };
            store.write(put, done).await
        }
        Operation::InsertInterCloudRules { cloud, providers, interfaces, definition } => {
            let insertion = RuleInsertion {
                consumer: CloudId(cloud),
                providers: providers.into_iter().map(SystemId).collect(),
                definitions: [DefinitionId(definition)].into(),
                interfaces: interfaces.into_iter().map(InterfaceId).collect(),
            };
            store.write(move |draft| draft.insert_inter_cloud_rules(&insertion).map(drop), done).await
        }
        Operation::InsertStoreEntries { entries } => {
            let forms = entries.into_iter().map(|(consumer, provider, definition, interface, priority, cloud)| {
                let cloud = cloud.map(cloud_name).map(|name| name.to_string());
                Some(StoreRequest {
                    consumer_system_id: Some(consumer),
                    provider_system: Some(system_form(provider)),
                    service_definition_name: Some(format!("service-{definition}")),
                    service_interface_name: Some(format!("P{interface}-INSECURE-JSON")),
                    priority: Some(priority),
                    cloud: cloud.map(|name| CloudRequest { operator: Some(name.clone()), name: Some(name), ..CloudRequest::default() }),
                    attribute: (priority == 1).then(|| BTreeMap::from([("a".into(), Some("b".into()))])),
                })
            });
            let insertions = StoreInsertion::parse_list(forms.collect(), &NamingRules::default(), "/test")?;
            store.write(move |draft| draft.insert_store_entries(&insertions).map(drop), done).await
        }
        Operation::Reorder { ids } => {
            let reordering = Reordering(ids.into_iter().map(StoreEntryId).collect());
            store.write(move |draft| draft.reorder_store_entries(&reordering), done).await
        }
        Operation::InsertFlexibleRule { consumer, definition, metadata, interface } => {
            let pairs = metadata.map(|m| Metadata::from(BTreeMap::from([("m".to_owned(), m.to_string())])));
            let insertion = FlexibleRuleInsertion {
                consumer: SystemDescriber { system_name: SystemName::parse(&format!("system-{consumer}")).ok(), metadata: None },
                provider: SystemDescriber { system_name: None, metadata: pairs.clone() },
                definition: ServiceDefinition::from_stored(&format!("service-{definition}")),
                interface: interface.map(|i| InterfaceName::from_stored(&format!("P{i}-INSECURE-JSON"))),
                metadata: pairs,
                priority: consumer.into(),
            };
            store.write(move |draft| draft.insert_flexible_rules(vec![insertion.clone(), insertion]).map(drop), done).await
        }
        Operation::ClearFlexibleStore => store.write(|draft| draft.clear_flexible_store(), done).await,
        Operation::Lock { consumer, offers, seconds } => {
            let results = offers.into_iter().map(|offer| (self::offer(offer), serde_json::Value::Null)).collect();
            let lock = TemporaryLock { consumer: key(consumer), results, duration: Duration::from_secs(seconds) };
            store.write(move |draft| draft.lock_temporarily(lock).map(drop), done).await
        }
        Operation::Confirm { consumer, offers, seconds } => {
            let mut others: Vec<Offer> = offers.into_iter().map(offer).collect();
            let selected = others.remove(0);
            let confirmation = Confirmation { consumer: key(consumer), selected, others, duration: Duration::from_secs(seconds) };
            store.write(move |draft| draft.confirm_reservation(&confirmation), done).await
        }
        Operation::Expire => store.write(|draft| draft.remove_expired_reservations(), done).await,
        other => panic!("{other:?} is carried out above"),
    }
}

fn cloud_name(cloud: u8) -> CloudName {
    CloudName::from_stored(&format!("cloud-{cloud}"))
}

fn offer((provider, definition): (i64, i64)) -> Offer {
    Offer { provider: SystemId(provider), definition: DefinitionId(definition) }
}

fn event_type(event_type: u8) -> EventType {
    EventType::parse(&format!("event-{event_type}")).unwrap()
}

fn subscription(event_type: u8, system: u8, sources: Option<Vec<u8>>, filter: bool) -> Result<SubscriptionPut, StoreError> {
    let form = SubscriptionRequest {
        event_type: Some(format!("event-{event_type}")),
        subscriber_system: Some(SystemRequest { port: Some(i64::from(system.max(1))), ..system_form(system) }),
        notify_uri: Some("/notify".into()),
        filter_meta_data: filter.then(|| BTreeMap::from([("k".into(), Some("v".into()))])),
        match_meta_data: Some(filter),
        end_date: filter.then(|| "2001-01-01T00:00:00Z".into()),
        min_severity: filter.then(|| "error".into()),
        payload_filter: filter.then(|| BTreeMap::from([("a/b".into(), Some(">1".into()))])),
        deadline_us: filter.then_some(1_500),
        loss_tolerance: filter.then_some(0),
        sources: sources.map(|sources| sources.into_iter().map(|source| Some(system_form(source))).collect()),
        ..Default::default()
    };
    let form = Access::Own.admit(&Caller::Anonymous).unwrap().permit(form).unwrap();
    Ok(SubscriptionPut::parse(form, UtcTime::from_unix_seconds(0))?)
}
