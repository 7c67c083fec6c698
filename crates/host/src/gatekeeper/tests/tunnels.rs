//! Tunnels that are granted: entered, or closed where they were opened.

use std::{collections::BTreeMap, net::TcpListener, sync::atomic::Ordering::Relaxed};

use bodkin_arrowhead::{metadata::Metadata, name::NamingRules, record::EntryId, service_registry::Registration, system::CoreSystemNames};
use bodkin_relay::tunnel::{Control as Word, PortRange};

use super::*;
use crate::gateway::{
    Gateway,
    tests::side::{Cloud as GatewayOf, Side as GatewaySide},
};

/// Of a dialogue whose answer is late: long enough for the others on a busy machine.
const LATE: Duration = Duration::from_secs(10);
/// The queue id of tunnels that are said to be opened and are not.
const QUEUE_ID: &str = "aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3";

fn gateway(cloud: GatewayOf, relay: &MemoryRelay) -> Arc<Gateway> {
    GatewaySide::patient(cloud, relay).gateway
}

fn fixed(answer: &Value) -> FixedAnswers {
    FixedAnswers::parse(&json!({"icn_proposal": answer}).to_string()).unwrap()
}

/// Two clouds with gateways, which know each other; the first one asks with this patience, and the second one offers heat through its gateway.
async fn with_gateways(patience: Duration, of_one: impl FnOnce(&MemoryRelay) -> Arc<Gateway>) -> (MemoryRelay, Side, Side) {
    let relay = MemoryRelay::new("relay.example");
    let none = FixedAnswers::default;
    let one = Side::start_with(Cloud::One, &relay, patience, (Some(of_one(&relay)), none())).await;
    let two = Side::start_with(Cloud::Two, &relay, PATIENCE, (Some(gateway(GatewayOf::Two, &relay)), none())).await;
    one.knows(Cloud::Two, &relay).await;
    two.knows(Cloud::One, &relay).await;
    heard_by(&relay, 2).await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    (relay, one, two)
}

fn of(side: &Side) -> Arc<Gateway> {
    side.control.gateway.clone().unwrap()
}

async fn icn(one: &Side) -> (u16, Value) {
    let proposal = json!({"requestedService": heat(), "targetCloudId": one.id_of(Cloud::Two).await, "requesterSystem": display()});
    one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_icn", proposal).await
}

/// Waits until a gateway has no session, long before one ends by itself, and has had so many.
async fn closed(relay: &MemoryRelay, gateway: &Gateway, opened: u64) {
    until(relay, "the tunnel is closed where it was opened", |_| gateway.count() == 0).await;
    assert_eq!(gateway.counts.opened.load(Relaxed), opened);
}

#[tokio::test]
async fn a_tunnel_that_is_granted_is_entered_once() {
    let (_relay, one, two) = with_gateways(PATIENCE, |relay| gateway(GatewayOf::One, relay)).await;
    let (status, answer) = one.orchestrate(&["triggerInterCloud", "matchmaking"], heat()).await;
    let result = &answer["response"][0];
    assert_eq!((status, &result["provider"]["systemName"]), (200, &json!("gateway")), "{answer}");
    assert!(result["warnings"].as_array().unwrap().contains(&json!("VIA_GATEWAY")), "{answer}");
    assert_eq!((of(&one).count(), of(&two).count()), (1, 1));
}

/// A grant of a gateway that has opened nothing, with one thing changed in it.
fn grant(change: impl FnOnce(&mut Value)) -> Value {
    let mut answer = json!({
        "response": [{"provider": sensor(), "service": {"id": 1, "serviceDefinition": "heat"}, "warnings": []}], "useGateway": true,
        "relay": {"address": "relay.example", "port": 5571, "secure": true, "exclusive": false, "type": "GENERAL_RELAY"},
        "connectionInfo": {"queueId": QUEUE_ID, "peerName": GatewayOf::Two.name().to_string(), "providerGWPublicKey": GatewayOf::Two.key()},
    });
    change(&mut answer);
    answer
}

/// A cloud that asks, and a neighbour that grants this, whatever it is asked.
async fn granted_by_force(answer: &Value) -> (MemoryRelay, Side, Side) {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start_with(Cloud::One, &relay, PATIENCE, (Some(gateway(GatewayOf::One, &relay)), FixedAnswers::default())).await;
    let two = Side::start_with(Cloud::Two, &relay, PATIENCE, (None, fixed(answer))).await;
    one.knows(Cloud::Two, &relay).await;
    two.knows(Cloud::One, &relay).await;
    heard_by(&relay, 2).await;
    (relay, one, two)
}

/// How often the provider's gateway was told that nobody comes.
fn refused(relay: &MemoryRelay) -> usize {
    let queue = format!("REQ-{}-{QUEUE_ID}-CONTROL", GatewayOf::Two.name());
    relay.sent().iter().filter(|(to, word)| to.name() == queue && word.contains(&Word::Close.of(QUEUE_ID))).count()
}

#[tokio::test]
async fn a_grant_that_is_of_no_use_is_refused_where_the_tunnel_was_opened() {
    type Change = fn(&mut Value);
    let useless: [(&str, Change, u16); 6] = [
        ("it cannot be read", |answer| answer["response"] = json!("none"), 500),
        ("it is for two results", |answer| answer["response"] = json!([{}, {}]), 500),
        ("it does not say what is reached", |answer| answer["response"][0]["service"] = Value::Null, 500),
        ("its gateway's key is none", |answer| answer["connectionInfo"]["providerGWPublicKey"] = json!("key"), 400),
        ("no tunnel goes by its relay", |answer| answer["relay"]["port"] = json!(5572), 401),
        ("it says that there is none", |answer| answer["useGateway"] = json!(false), 200),
    ];
    for (what, change, expected) in useless {
        let (relay, one, _two) = granted_by_force(&grant(change)).await;
        let gatekeepers_only = json!([{"address": "relay.example", "port": 5572, "secure": true, "type": "GATEKEEPER_RELAY"}]);
        one.ask(CoreSystem::Gatekeeper, Method::Post, "mgmt/relays", gatekeepers_only).await;
        let (status, answer) = icn(&one).await;
        assert_eq!(status, expected, "{what}: {answer}");
        until(&relay, "the grant is refused", |relay| refused(relay) == 1).await;
        assert_eq!(of(&one).count(), 0, "{what}");
    }
}

#[tokio::test]
async fn a_tunnel_to_another_provider_than_the_one_that_is_wanted_is_refused() {
    let (relay, one, _two) = granted_by_force(&grant(|_| ())).await;
    let other = json!({"systemName": "other", "address": "10.0.2.9", "port": 9000});
    let proposal = json!({
        "requestedService": heat(), "targetCloudId": one.id_of(Cloud::Two).await, "requesterSystem": display(),
        "preferredSystems": [other], "negotiationFlags": {"onlyPreferred": true},
    });
    let (status, answer) = one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_icn", proposal).await;
    assert!(status == 401 && answer["errorMessage"].as_str().unwrap().contains("sensor at 10.0.2.1:9000"), "{answer}");
    until(&relay, "the grant is refused", |relay| refused(relay) == 1).await;
}

#[tokio::test]
async fn a_relay_that_is_not_known_is_not_gone_to_for_a_refusal() {
    let (relay, one, _two) = granted_by_force(&grant(|answer| answer["relay"]["address"] = json!("inner.example"))).await;
    assert_eq!(icn(&one).await.0, 401);
    // What is refused behind it shows that this one would have been.
    let (second, other, _third) = granted_by_force(&grant(|answer| answer["response"] = json!([]))).await;
    assert_eq!(icn(&other).await.0, 500);
    until(&second, "the second grant is refused", |relay| refused(relay) == 1).await;
    assert_eq!(refused(&relay), 0);
}

#[tokio::test]
async fn of_two_grants_with_the_same_queue_id_one_is_entered() {
    let (relay, one, _two) = granted_by_force(&grant(|_| ())).await;
    let ((first, first_answer), (second, second_answer)) = tokio::join!(icn(&one), icn(&one));
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400], "{first_answer} {second_answer}");
    assert_eq!((of(&one).count(), of(&one).counts.refused.load(Relaxed)), (1, 1));
    assert_eq!(refused(&relay), 0, "the session that there is stays");
}

#[tokio::test]
async fn a_grant_that_comes_too_late_is_refused() {
    let (relay, one, two) = with_gateways(LATE, |relay| gateway(GatewayOf::One, relay)).await;
    // Behind the acknowledgement and the question comes the answer.
    relay.hold_behind(2);
    let (status, answer) = icn(&one).await;
    assert_eq!(status, 504, "{answer}");
    until(&relay, "the answer is on its way", MemoryRelay::holds).await;
    assert_eq!(of(&two).count(), 1);
    relay.release();
    closed(&relay, &of(&two), 1).await;
    until(&relay, "nothing is left of the dialogue", |relay| relay.queues().iter().all(|queue| !queue.name().contains("gatekeeper"))).await;
    // It goes on.
    assert_eq!(icn(&one).await.0, 200);
}

#[tokio::test]
async fn a_grant_for_which_nobody_waits_any_more_is_refused() {
    let (relay, one, two) = with_gateways(PATIENCE, |relay| gateway(GatewayOf::One, relay)).await;
    relay.hold_behind(2);
    let proposal = json!({"requestedService": heat(), "targetCloudId": one.id_of(Cloud::Two).await, "requesterSystem": display()});
    let asked = tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_icn", proposal));
    until(&relay, "the answer is on its way", MemoryRelay::holds).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    assert_eq!(of(&two).count(), 1);
    relay.release();
    closed(&relay, &of(&two), 1).await;
}

#[tokio::test]
async fn a_tunnel_whose_grant_is_not_sent_is_closed() {
    let (relay, one, two) = with_gateways(PATIENCE, |relay| gateway(GatewayOf::One, relay)).await;
    relay.refuse_behind(2);
    let (status, answer) = icn(&one).await;
    assert_eq!(status, 504, "{answer}");
    closed(&relay, &of(&two), 1).await;
    let reason = of(&two).views().pop().and_then(|view| view.reason);
    assert!(reason.as_ref().is_some_and(|reason| reason.contains("whose answer could not be sent")), "{reason:?}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_told_to_be_and_its_tunnel_closed() {
    let (relay, one, two) = with_gateways(PATIENCE, |relay| gateway(GatewayOf::One, relay)).await;
    let form = json!({
        "serviceDefinition": "heat", "providerSystem": sensor(), "serviceUri": "/it", "secure": "TOKEN", "interfaces": ["HTTP-SECURE-JSON"],
    });
    let form = serde_json::from_value(form).unwrap();
    let rules = NamingRules { secure_services: true, ..NamingRules::default() };
    let registration = Registration::parse(form, CoreSystemNames::Allowed, &rules, "").unwrap();
    // No request has so much metadata: it is from an import.
    let long = Metadata::from(BTreeMap::from([("long".to_owned(), "x".repeat(4 * 1024 * 1024))]));
    let registration = Registration { metadata: Some(long), ..registration };
    let entries = two.ask(CoreSystem::ServiceRegistry, Method::Post, "query", heat()).await;
    let entry = EntryId(entries["serviceQueryData"][0]["id"].as_i64().unwrap());
    two.control.store.write(move |draft| draft.replace_entry(entry, registration), |_, _| ()).await.unwrap();
    let (status, answer) = icn(&one).await;
    assert!(status == 500 && answer["errorMessage"].as_str().unwrap().ends_with("Ask for less."), "{answer}");
    closed(&relay, &of(&two), 1).await;
}

#[tokio::test]
async fn an_orchestration_that_finds_no_free_port_is_told_and_its_tunnel_closed() {
    // A port that is somebody else's for as long as the test lasts.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let range = PortRange::Ports { first: port, last: port };
    let (relay, one, two) = with_gateways(PATIENCE, |relay| GatewaySide::with_ports(GatewayOf::One, relay, range).gateway).await;
    let (status, answer) = one.orchestrate(&["triggerInterCloud", "matchmaking"], heat()).await;
    let told = answer["errorMessage"].as_str().unwrap();
    assert!(status == 504 && told.contains("gateway_max_port") && told.contains(&port.to_string()), "{answer}");
    closed(&relay, &of(&two), 1).await;
}
