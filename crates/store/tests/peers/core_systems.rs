//! Core systems, which every node serves, and which have one row of each.

use bodkin_arrowhead::{
    form::ServiceRegistryRequest,
    record::{Entry, EntryId, System, SystemId},
    service_registry::Registration,
    system::{SystemKey, SystemPatch},
};

use super::*;

/// A service of the Event Handler at a node.
pub(super) fn service(definition: &str, port: u16) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(definition.into()),
        provider_system: Some(at(port)),
        service_uri: Some("/eventhandler/publish".into()),
        interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..ServiceRegistryRequest::default()
    };
    Registration::parse(form, CoreSystemNames::Allowed, &NamingRules::default(), "/test").unwrap()
}

/// Registers `event-publish` at a node, as it does when it starts.
fn serve(node: &Node, port: u16) {
    let services = vec![service("event-publish", port)];
    node.runtime.block_on(node.store().write(move |draft| draft.register_core_services(services), |_, ()| ())).unwrap();
}

fn at(port: u16) -> SystemRequest {
    let (name, address) = (Some("eventhandler".into()), Some("127.0.0.1".into()));
    SystemRequest { system_name: name, address, port: Some(port.into()), ..SystemRequest::default() }
}

/// The one entry of `event-publish` that a node shows, and its provider.
fn shown(node: &Node) -> (Arc<Entry>, Arc<System>) {
    let snapshot = node.snapshot();
    let definition = snapshot.definition_by_name("event-publish").expect("it is registered").id;
    let entries: Vec<_> = snapshot.entries_of(definition).cloned().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let provider = snapshot.system(entries[0].provider).expect("it is there").clone();
    assert_eq!(snapshot.system_by_key(SystemKey::of(&provider).as_str()).map(|found| found.id), Some(provider.id));
    (entries[0].clone(), provider)
}

fn ids(node: &Node) -> (EntryId, SystemId) {
    let (entry, system) = shown(node);
    (entry.id, system.id)
}

fn port(node: &Node) -> u16 {
    shown(node).1.port
}

/// Waits until a node has taken in all that was committed.
fn reaches_all(node: &Node, server: &Server) {
    let committed: i64 = server.sql("cloud", "SELECT number FROM bodkin.shared").parse().expect("a number");
    let shown = || node.store().standing().expect("it is shared").number;
    eventually(|| shown() >= committed, || format!("{:?} instead of {committed}", node.store().standing()));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn each_node_shows_the_core_systems_at_its_own_place() {
    let Some(server) = Server::start() else { return skip("each_node_shows_the_core_systems_at_its_own_place") };
    let (first, second) = (Node::start(&server), Node::start(&server));
    serve(&first, 8001);
    let made = ids(&first);
    serve(&second, 8002);
    reaches_all(&first, &server);
    assert_eq!((port(&first), port(&second)), (8001, 8002));
    assert_eq!((ids(&first), ids(&second)), (made, made), "system and service keep their rows");

    // A registration that names the core system is of its row, wherever the database says that is.
    for (node, own) in [(&first, 8001), (&second, 8002)] {
        let more = service(&format!("more-{own}"), own);
        let provider = |snapshot: &Snapshot, id| snapshot.entry(id).expect("it was made").provider;
        let written = node.runtime.block_on(node.store().write(move |draft| draft.register(more), provider));
        assert_eq!(written.unwrap(), made.1);
    }
    reaches_all(&first, &server);
    assert_eq!((port(&first), port(&second)), (8001, 8002));

    // Who reads everything again shows its own place too, and what an operator changes here counts here.
    server.sql("cloud", "DELETE FROM bodkin.change");
    second.carry_out(Operation::OwnCloud).unwrap();
    reaches_all(&first, &server);
    assert_eq!(port(&first), 8001);
    let patch =
        SystemPatch::parse(SystemRequest { port: Some(8009), ..SystemRequest::default() }, &NamingRules::default(), "/test").unwrap();
    first.runtime.block_on(first.store().write(move |draft| draft.patch_system(made.1, patch), |_, _| ())).unwrap();
    reaches_all(&second, &server);
    assert_eq!((port(&first), port(&second)), (8009, 8002));

    // A node that has registered none shows the database's row.
    assert_eq!(port(&Node::start(&server)), 8009);
    let key = SystemKey::new("eventhandler", "127.0.0.1", 8002);
    second.runtime.block_on(second.store().write(move |draft| draft.unregister_system(&key), |_, ()| ())).unwrap();
    reaches_all(&first, &server);
    assert_eq!(first.snapshot().systems().len(), 0);
}
