//! Relays and the clouds they are assigned to: what the database lets be.

use std::sync::Arc;

use bodkin_arrowhead::{
    gatekeeper::{CloudPut, CloudView, RelayAssignment, RelayPut},
    name::{CloudName, EventType},
    record::*,
    shared_event::{ACCEPTED_EVENTS_MAX, Share},
    snapshot::Snapshot,
};
use bodkin_store::{Draft, Opened, OperationError, Store};

struct World {
    _directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    opened: Opened,
}

impl World {
    /// Relays 1 and 2 are for everything, 3 is an exclusive one for tunnels, 4 a public one for tunnels.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let opened = Store::open(directory.path()).unwrap();
        let world = Self { _directory: directory, runtime, opened };
        let exclusive = RelayPut { exclusive: true, ..relay(3, Some(RelayType::GatewayRelay)) };
        let relays = [relay(1, None), relay(2, Some(RelayType::GeneralRelay)), exclusive, relay(4, Some(RelayType::GatewayRelay))];
        world.write(move |draft| draft.insert_relays(&relays).map(drop)).unwrap();
        world
    }

    /// Carries an operation out; gives the words of its refusal.
    fn write(&self, operation: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static) -> Result<(), String> {
        self.runtime.block_on(self.opened.store.write(operation, |_, ()| ())).map_err(|error| error.to_string())
    }

    fn refused(&self, operation: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static, why: &str) {
        let before = self.snapshot();
        let told = self.write(operation).unwrap_err();
        assert!(told.contains(why), "{told}");
        assert_eq!(self.snapshot(), before, "what is refused changes nothing");
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.opened.store.snapshot().clone()
    }

    /// Ids of a cloud's relays: its gatekeeper's and its gateway's.
    fn relays_of(&self, cloud: i64) -> [Vec<i64>; 2] {
        let snapshot = self.snapshot();
        let view = serde_json::to_value(CloudView::new(&snapshot, snapshot.cloud(CloudId(cloud)).unwrap())).unwrap();
        ["gatekeeperRelays", "gatewayRelays"]
            .map(|list| view[list].as_array().unwrap().iter().map(|relay| relay["id"].as_i64().unwrap()).collect())
    }
}

fn relay(port: u16, relay_type: Option<RelayType>) -> RelayPut {
    let authentication_info = Some(format!("key-{port}").into());
    RelayPut { address: "relay.local".into(), port, authentication_info, secure: true, exclusive: false, relay_type }
}

fn relays(gatekeeper: &[i64], gateway: &[i64]) -> RelayAssignment {
    let ids = |ids: &[i64]| ids.iter().copied().map(RelayId).collect();
    RelayAssignment { gatekeeper: ids(gatekeeper), gateway: ids(gateway) }
}

fn cloud(name: &str, relays: RelayAssignment) -> CloudPut {
    let operator = CloudName::from_stored("operator");
    CloudPut { operator, name: CloudName::from_stored(name), secure: true, neighbor: true, authentication_info: Some("key".into()), relays }
}

#[test]
fn a_cloud_is_made_known_with_relays_that_are_there_and_of_the_right_type() {
    let world = World::new();
    world.write(|draft| draft.insert_clouds(&[cloud("near", relays(&[1, 2], &[3]))]).map(drop)).unwrap();
    assert_eq!(world.relays_of(1), [vec![1, 2], vec![3]]);
    for (assigned, why) in [
        (relays(&[9], &[]), "Relay with id '9' does not exist"),
        (relays(&[3], &[]), "GATEKEEPER_RELAY or GENERAL_RELAY is expected"),
        (relays(&[1], &[4]), "exclusive GATEWAY_RELAY is expected"),
        (relays(&[1], &[2]), "exclusive GATEWAY_RELAY is expected"),
    ] {
        world.refused(move |draft| draft.insert_clouds(&[cloud("far", assigned)]).map(drop), why);
    }
    // Of a list all or none.
    world.refused(
        |draft| draft.insert_clouds(&[cloud("far", relays(&[1], &[])), cloud("near", relays(&[1], &[]))]).map(drop),
        "already exists",
    );
}

#[test]
fn relays_are_assigned_once_and_replaced_by_an_update() {
    let world = World::new();
    world.write(|draft| draft.insert_clouds(&[cloud("near", relays(&[1], &[])), cloud("far", relays(&[1], &[]))]).map(drop)).unwrap();
    world.write(|draft| draft.assign_relays(CloudId(1), &relays(&[2], &[3]))).unwrap();
    assert_eq!(world.relays_of(1), [vec![1, 2], vec![3]]);
    world.refused(|draft| draft.assign_relays(CloudId(1), &relays(&[2], &[])), "assigned to the cloud already");
    world.refused(|draft| draft.assign_relays(CloudId(9), &relays(&[2], &[])), "Cloud with id '9' does not exist");
    world.write(|draft| draft.update_cloud(CloudId(1), &cloud("nearer", relays(&[2], &[])))).unwrap();
    assert_eq!(world.relays_of(1), [vec![2], vec![]]);
    assert!(world.snapshot().cloud_by_name("operator", "near").is_none());
    world.refused(|draft| draft.update_cloud(CloudId(1), &cloud("far", relays(&[2], &[]))), "already exists");
}

#[test]
fn a_relay_keeps_its_type_its_place_and_its_key_to_itself() {
    let world = World::new();
    world.refused(
        |draft| draft.insert_relays(&[relay(9, None), RelayPut { authentication_info: None, ..relay(1, None) }]).map(drop),
        "relay.local:1",
    );
    world.refused(|draft| draft.insert_relays(&[RelayPut { port: 9, ..relay(1, None) }]).map(drop), "authenticationInfo");
    world.refused(|draft| draft.update_relay(RelayId(1), &relay(2, None)), "already exists");
    world.refused(|draft| draft.update_relay(RelayId(1), &relay(1, Some(RelayType::GatewayRelay))), "cannot be changed");
    world.refused(|draft| draft.update_relay(RelayId(9), &relay(9, None)), "Relay with id '9' does not exist");
    world.write(|draft| draft.update_relay(RelayId(1), &relay(9, None))).unwrap();
    let snapshot = world.snapshot();
    assert_eq!((snapshot.relay_at("RELAY.local", 9).map(|relay| relay.id), snapshot.relay_at("relay.local", 1)), (Some(RelayId(1)), None));
    world.write(|draft| draft.insert_clouds(&[cloud("near", relays(&[1], &[3]))]).map(drop)).unwrap();
    world.refused(|draft| draft.update_relay(RelayId(3), &relay(3, None)), "has to stay exclusive");
}

#[test]
fn the_last_relay_of_a_clouds_gatekeeper_stays() {
    let world = World::new();
    world.write(|draft| draft.insert_clouds(&[cloud("near", relays(&[1, 2], &[3])), cloud("far", relays(&[2], &[]))]).map(drop)).unwrap();
    world.write(|draft| draft.remove_relay(RelayId(1))).unwrap();
    assert_eq!(world.relays_of(1), [vec![2], vec![3]]);
    world.refused(|draft| draft.remove_relay(RelayId(2)), "is reached by this relay only");
    world.write(|draft| draft.remove_relay(RelayId(3))).unwrap();
    world.write(|draft| draft.remove_relay(RelayId(9))).unwrap();
    // Without the clouds it may go.
    world.write(|draft| draft.remove_cloud(CloudId(1)).and_then(|()| draft.remove_cloud(CloudId(2)))).unwrap();
    world.write(|draft| draft.remove_cloud(CloudId(9))).unwrap();
    world.write(|draft| draft.remove_relay(RelayId(2))).unwrap();
    assert_eq!(world.snapshot().relays().len(), 1);
}

#[test]
fn event_types_are_accepted_of_one_cloud_and_stay_when_it_is_replaced() {
    let world = World::new();
    world.write(|draft| draft.insert_clouds(&[cloud("near", relays(&[1], &[])), cloud("far", relays(&[1], &[]))]).map(drop)).unwrap();
    let named = |name: &str| EventType::parse(name).unwrap();
    for name in ["heat", "noise", "HEAT"] {
        world.write(move |draft| draft.accept_events(CloudId(1), named(name))).unwrap();
    }
    let accepted = |id| -> Vec<String> {
        world.snapshot().cloud(CloudId(id)).unwrap().accepted_events.iter().map(|name| name.as_str().to_owned()).collect()
    };
    assert_eq!((accepted(1).join(" "), accepted(2).len()), ("HEAT NOISE".to_owned(), 0));
    world.write(|draft| draft.update_cloud(CloudId(1), &cloud("near", relays(&[2], &[])))).unwrap();
    world.write(move |draft| draft.refuse_events(CloudId(1), &named("noise")).map(|was| assert!(was))).unwrap();
    world.write(move |draft| draft.refuse_events(CloudId(1), &named("noise")).map(|was| assert!(!was))).unwrap();
    assert_eq!(accepted(1), ["HEAT"]);
    world.refused(move |draft| draft.accept_events(CloudId(9), named("heat")), "Cloud with id '9' does not exist");
    world.refused(move |draft| draft.refuse_events(CloudId(9), &named("heat")).map(drop), "Cloud with id '9' does not exist");
    let fill = move |draft: &mut Draft<'_>| {
        (1..ACCEPTED_EVENTS_MAX).try_for_each(|number| draft.accept_events(CloudId(1), named(&format!("type-{number}"))))
    };
    world.write(fill).unwrap();
    world.write(move |draft| draft.accept_events(CloudId(1), named("heat"))).unwrap();
    world.refused(move |draft| draft.accept_events(CloudId(1), named("one more")), "which is the limit");
}

#[test]
fn what_is_shared_with_a_cloud_goes_with_it() {
    let world = World::new();
    let clouds = [cloud("near", relays(&[1], &[])), cloud("far", relays(&[1], &[]))];
    world.write(move |draft| draft.insert_clouds(&clouds).map(drop)).unwrap();
    let share = |cloud: i64, event_type: &'static str| {
        let share = Share::new(world.snapshot().cloud(CloudId(cloud)).unwrap(), 250).unwrap();
        let event_type = EventType::parse(event_type).unwrap();
        world.write(move |draft| draft.share_event(event_type, &share, 10).map(drop)).unwrap();
    };
    share(1, "heat");
    share(1, "noise");
    share(2, "heat");
    let systems = |snapshot: &Snapshot| snapshot.systems().map(|system| system.system_name.to_string()).collect::<Vec<_>>();
    assert_eq!((world.snapshot().subscriptions().len(), systems(&world.snapshot()).len()), (3, 2));
    world.write(|draft| draft.remove_cloud(CloudId(1))).unwrap();
    let snapshot = world.snapshot();
    let left: Vec<_> = snapshot.subscriptions().values().map(|left| left.notify_uri.to_string()).collect();
    assert_eq!(left, ["relay:far.operator?deadline_ms=250"]);
    assert_eq!(systems(&snapshot), ["far-operator"]);
}
