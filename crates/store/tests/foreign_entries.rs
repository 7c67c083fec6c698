//! Store entries of providers in other clouds: what they name is made, and nobody can be sent there yet.

use bodkin_arrowhead::{
    access::Access,
    authorization::RuleInsertion,
    caller::Caller,
    cloud::OwnCloud,
    explanation::Unwatched,
    form::{CloudRequest, OrchestrationForm, ServiceQueryForm, ServiceRegistryRequest, StoreRequest, SystemRequest},
    gatekeeper::{CloudPut, RelayAssignment},
    name::{CloudName, NamingRules},
    orchestrator::{
        Orchestration, OrchestrationResponse, Sender, StoreKind, candidates, orchestrate,
        store::{StoreEntryView, StoreInsertion},
    },
    record::*,
    service_registry::Registration,
    snapshot::Snapshot,
    system::CoreSystemNames,
    utc::UtcTime,
};
use bodkin_store::{Draft, Opened, OperationError, Store, StoreError};

fn system(name: &str) -> SystemRequest {
    SystemRequest { system_name: Some(name.into()), address: Some("10.0.0.1".into()), port: Some(1), ..SystemRequest::default() }
}

struct World {
    _directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    opened: Opened,
}

impl World {
    /// A cloud with a neighbour, a consumer, and a provider that the consumer may use.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let opened = Store::open(directory.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let world = Self { _directory: directory, runtime, opened };
        world.write(|draft| draft.ensure_own_cloud(&OwnCloud::insecure()));
        for name in ["here-consumer", "here-provider"] {
            let form = ServiceRegistryRequest {
                service_definition: Some("service".into()),
                provider_system: Some(system(name)),
                interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
                ..ServiceRegistryRequest::default()
            };
            let registration = Registration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/test").unwrap();
            world.write(move |draft| draft.register(registration).map(drop));
        }
        let insertion = RuleInsertion {
            consumer: SystemId(1),
            providers: [SystemId(2)].into(),
            definitions: [DefinitionId(1)].into(),
            interfaces: [InterfaceId(2)].into(),
        };
        world.write(move |draft| draft.insert_rules(&insertion).map(drop));
        let name = || CloudName::from_stored("neighbour");
        let put = CloudPut {
            operator: name(),
            name: name(),
            secure: true,
            neighbor: true,
            authentication_info: Some("key".into()),
            relays: RelayAssignment::default(),
        };
        world.write(move |draft| draft.insert_clouds(&[put]).map(drop));
        world
    }

    fn write(&self, operation: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static) {
        self.try_write(operation).unwrap();
    }

    fn try_write(&self, operation: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static) -> Result<(), StoreError> {
        self.runtime.block_on(self.opened.store.write(operation, |_, ()| ()))
    }

    fn insert(&self, requests: Vec<StoreRequest>) {
        let insertions = StoreInsertion::parse_list(requests.into_iter().map(Some).collect(), &NamingRules::default(), "/test").unwrap();
        self.write(move |draft| draft.insert_store_entries(&insertions).map(drop));
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::clone(&self.opened.store.snapshot())
    }
}

fn request(provider: &str, cloud: Option<&str>, definition: &str) -> StoreRequest {
    let named = |name: &str| CloudRequest { operator: Some(name.into()), name: Some(name.into()), ..CloudRequest::default() };
    StoreRequest {
        service_definition_name: Some(definition.into()),
        consumer_system_id: Some(1),
        provider_system: Some(system(provider)),
        cloud: cloud.map(named),
        service_interface_name: Some("HTTP-INSECURE-JSON".into()),
        priority: Some(1),
        attribute: None,
    }
}

#[test]
fn system_definition_and_interface_of_a_foreign_provider_are_made() {
    let world = World::new();
    let elsewhere =
        StoreRequest { service_interface_name: Some("COAP-SECURE-CBOR".into()), ..request("There", Some("NEIGHBOUR"), "Strange_Service") };
    world.insert(vec![elsewhere.clone(), elsewhere, request("there", Some("nobody"), "service"), request("there", None, "service")]);
    let snapshot = world.snapshot();
    let entries: Vec<_> = snapshot.store_entries().collect();
    let [entry] = entries[..] else { panic!("{entries:?}") };
    let view = serde_json::to_value(StoreEntryView::new(&snapshot, entry)).unwrap();
    assert_eq!(view["foreign"], true);
    assert_eq!(view["providerSystem"]["systemName"], "there");
    assert_eq!(view["providerSystem"].get("cloud"), None);
    assert_eq!(view["providerCloud"]["name"], "neighbour");
    assert_eq!(view["providerCloud"]["authenticationInfo"], "key");
    assert_eq!(view["serviceDefinition"]["serviceDefinition"], "strange_service");
    assert_eq!(view["serviceInterface"]["interfaceName"], "COAP-SECURE-CBOR");

    let neighbour = snapshot.cloud_by_name("Neighbour", "neighbour").unwrap().id;
    world.write(move |draft| draft.remove_cloud(neighbour));
    let snapshot = world.snapshot();
    let view = serde_json::to_value(StoreEntryView::new(&snapshot, snapshot.store_entries().next().unwrap())).unwrap();
    assert_eq!((&view["foreign"], &view["providerCloud"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(view["providerSystem"]["systemName"], "unknown-1");
}

#[test]
fn a_foreign_entry_is_passed_over_while_there_is_no_gatekeeper() {
    let world = World::new();
    world.insert(vec![request("here-provider", None, "service"), request("there", Some("neighbour"), "service")]);
    let snapshot = world.snapshot();
    let foreign: Vec<bool> =
        snapshot.store_entries_of_consumer(SystemId(1)).map(|e| matches!(e.provider, StoreProvider::Foreign(_))).collect();
    assert_eq!(foreign, [true, false], "the last of a list that wants to be first is first");
    let service = ServiceQueryForm {
        service_definition_requirement: Some("service".into()),
        interface_requirements: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..ServiceQueryForm::default()
    };
    for requested_service in [Some(service), None] {
        let one = requested_service.is_some();
        let form = OrchestrationForm { requester_system: Some(system("here-consumer")), requested_service, ..OrchestrationForm::default() };
        let form = Access::Own.admit(&Caller::Anonymous).unwrap().permit(form).unwrap();
        let orchestration = Orchestration::parse(form, Sender::Requester, StoreKind::Plain, None, false).unwrap();
        let now = UtcTime::from_unix_seconds(0);
        let found = candidates(&snapshot, &orchestration, &mut Unwatched).unwrap();
        let usable = orchestrate(&snapshot, &orchestration, found, now, |_| 0, &mut Unwatched).unwrap();
        let answer = serde_json::to_value(OrchestrationResponse::new(usable, now)).unwrap();
        let expected = if one { Some("here-provider") } else { None };
        assert_eq!(answer["response"][0]["provider"]["systemName"].as_str(), expected, "{answer}");
    }
}

#[test]
fn the_own_cloud_is_made_once_and_can_be_neither_put_nor_removed() {
    let world = World::new();
    world.write(|draft| draft.ensure_own_cloud(&OwnCloud::insecure()));
    let snapshot = world.snapshot();
    let own: Vec<_> = snapshot.clouds().filter(|cloud| cloud.own_cloud).cloned().collect();
    assert_eq!(own.len(), 1);
    let put = CloudPut {
        operator: own[0].operator.clone(),
        name: own[0].name.clone(),
        secure: true,
        neighbor: true,
        authentication_info: None,
        relays: RelayAssignment::default(),
    };
    let (id, again) = (own[0].id, put.clone());
    let refused = |operation: Result<(), StoreError>, why: &str| assert!(operation.unwrap_err().to_string().contains(why));
    refused(world.try_write(move |draft| draft.insert_clouds(&[again]).map(drop)), "already exists");
    refused(world.try_write(move |draft| draft.update_cloud(id, &put)), "this cloud itself");
    refused(world.try_write(move |draft| draft.assign_relays(id, &RelayAssignment::default())), "this cloud itself");
    refused(world.try_write(move |draft| draft.remove_cloud(id)), "this cloud itself");
    assert_eq!(world.snapshot(), snapshot);
}
