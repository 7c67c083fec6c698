//! Two clouds with roots of their own at one relay: what they come to know of each other, and what others cannot.

mod asking_time;
mod quality;
mod shares;
mod side;
mod tunnels;

use std::{sync::LazyLock, time::Duration};

use bodkin_arrowhead::{common_name::SystemCommonName, core_service::CoreSystem, form::Advertisement};
use bodkin_trust::{PrivateKey, TokenVerifier, draw_session, key::KeySize};
use serde_json::{Value, json};

use self::side::{Cloud, Side, display};
use super::*;
use crate::{relay::memory::MemoryRelay, request::Method};

/// Of dialogues that are answered.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of dialogues in which a message is lost: long enough for all the others on a busy machine.
const LOSSY: Duration = Duration::from_secs(5);
/// Longer than it would take to call again.
const CALLED_ONCE: Duration = Duration::from_millis(2_500);
/// Of dialogues that are not.
const SHORT: Duration = Duration::from_millis(200);

static PROVIDER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());

fn sensor() -> Value {
    json!({"systemName": "sensor", "address": "10.0.2.1", "port": 9000, "authenticationInfo": base64::encode(&PROVIDER.public_key_info())})
}

fn heat() -> Value {
    json!({"serviceDefinitionRequirement": "heat"})
}

/// Waits until something is so at the relay.
#[track_caller]
fn until(relay: &MemoryRelay, what: &'static str, is_so: impl Fn(&MemoryRelay) -> bool) -> impl Future<Output = ()> {
    let relay = relay.clone();
    async move {
        let begun = Instant::now();
        while !is_so(&relay) {
            assert!(begun.elapsed() < PATIENCE, "it was never so that {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits until so many gatekeepers hear calls: at a topic a call that nobody hears is lost.
async fn heard_by(relay: &MemoryRelay, gatekeepers: usize) {
    until(relay, "all gatekeepers listen", |relay| relay.listeners(&topic()) == gatekeepers).await;
}

/// Two clouds that know each other.
async fn neighbours() -> (MemoryRelay, Side, Side) {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::start(Cloud::One, &relay, PATIENCE).await, Side::start(Cloud::Two, &relay, PATIENCE).await);
    one.knows(Cloud::Two, &relay).await;
    two.knows(Cloud::One, &relay).await;
    heard_by(&relay, 2).await;
    (relay, one, two)
}

#[tokio::test]
async fn a_service_of_another_cloud_is_found_granted_and_used_with_its_token() {
    let (relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let found = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})).await;
    assert_eq!((&found["results"][0]["providerCloud"]["name"], &found["unsuccessfulRequests"]), (&json!("two"), &json!(0)), "{found}");
    assert_eq!(found["results"][0]["availableInterfaces"], json!(["HTTP-SECURE-JSON"]));

    let (status, answer) = one.orchestrate(&["triggerInterCloud", "matchmaking"], heat()).await;
    let result = &answer["response"][0];
    assert_eq!((status, &result["provider"]["systemName"], &result["serviceUri"]), (200, &json!("sensor"), &json!("/it")), "{answer}");
    assert_eq!(result["warnings"], json!(["TTL_UNKNOWN", "FROM_OTHER_CLOUD"]));
    // The token is for the consumer as it is called in its own cloud, and good at the provider in the other.
    let token = result["authorizationTokens"]["HTTP-SECURE-JSON"].as_str().unwrap();
    let key = two.control.tokens.as_ref().unwrap().authentication_info();
    let verify = |caller: &str| {
        let caller = SystemCommonName::parse(caller).unwrap();
        TokenVerifier::new(&PROVIDER, &key).unwrap().verify(token, &caller, now()).is_ok()
    };
    assert!(verify("display.one.aitia.arrowhead.eu"));
    assert!(!verify("display.two.aitia.arrowhead.eu") && !verify("other.one.aitia.arrowhead.eu"));
    // The relay has seen none of it.
    let told =
        relay.sent().into_iter().any(|(_, message)| ["heat", "sensor", "display", "10.0.2.1"].iter().any(|word| message.contains(word)));
    assert!(!told, "the relay reads along");
}

#[tokio::test]
async fn what_no_rule_grants_is_as_if_it_was_not_there() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), None).await;
    let found = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})).await;
    assert_eq!(found, json!({"results": [], "unsuccessfulRequests": 0}));
    assert_eq!(one.orchestrate(&["triggerInterCloud"], heat()).await, (200, json!({"response": []})));
    // Nor is it granted to who does not ask for it first.
    let proposal = json!({"requestedService": heat(), "targetCloudId": one.id_of(Cloud::Two).await, "requesterSystem": display()});
    let granted = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_icn", proposal).await;
    assert_eq!(granted, json!({"response": []}));
}

#[tokio::test]
async fn the_own_cloud_comes_first_and_others_if_it_has_nothing() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let names = |(status, answer): (u16, Value)| {
        assert_eq!(status, 200, "{answer}");
        let results = answer["response"].as_array().unwrap().clone();
        results.iter().map(|result| result["provider"]["systemName"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(one.orchestrate(&["overrideStore"], heat()).await), Vec::<String>::new());
    assert_eq!(names(one.orchestrate(&["overrideStore", "enableInterCloud"], heat()).await), ["sensor"]);
    // One of the own cloud, which the consumer may use.
    let own =
        json!({"systemName": "own-sensor", "address": "10.0.1.2", "port": 9000, "authenticationInfo": sensor()["authenticationInfo"]});
    one.offers("heat", &own, None).await;
    let consumer = one.ask(CoreSystem::ServiceRegistry, Method::Post, "register-system", display()).await;
    let entries = one.ask(CoreSystem::ServiceRegistry, Method::Post, "query", heat()).await;
    let entry = &entries["serviceQueryData"][0];
    let rule = json!({
        "consumerId": consumer["id"], "providerIds": [entry["provider"]["id"]], "serviceDefinitionIds": [entry["serviceDefinition"]["id"]],
        "interfaceIds": [entry["interfaces"][0]["id"]],
    });
    one.ask(CoreSystem::Authorization, Method::Post, "mgmt/intracloud", rule).await;
    assert_eq!(names(one.orchestrate(&["overrideStore", "enableInterCloud"], heat()).await), ["own-sensor"]);
    assert_eq!(names(one.orchestrate(&["triggerInterCloud"], heat()).await), ["sensor"]);
}

#[tokio::test]
async fn the_store_leads_to_a_provider_of_another_cloud() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let second = json!({"systemName": "second", "address": "10.0.2.2", "port": 9000, "authenticationInfo": sensor()["authenticationInfo"]});
    two.offers("heat", &second, Some(Cloud::One)).await;
    let consumer = one.ask(CoreSystem::ServiceRegistry, Method::Post, "register-system", display()).await;
    let entry = json!([{
        "serviceDefinitionName": "heat", "consumerSystemId": consumer["id"], "providerSystem": {"systemName": "second", "address": "10.0.2.2", "port": 9000},
        "cloud": {"operator": "aitia", "name": "two"}, "serviceInterfaceName": "HTTP-SECURE-JSON", "priority": 1,
    }]);
    one.ask(CoreSystem::Orchestrator, Method::Post, "mgmt/store", entry).await;
    let service = json!({"serviceDefinitionRequirement": "heat", "interfaceRequirements": ["HTTP-SECURE-JSON"]});
    let (status, answer) = one.orchestrate(&[], service).await;
    let results = answer["response"].as_array().unwrap();
    assert_eq!((status, results.len(), &results[0]["provider"]["systemName"]), (200, 1, &json!("second")), "{answer}");
    assert!(results[0]["warnings"].as_array().unwrap().contains(&json!("FROM_OTHER_CLOUD")), "{answer}");
}

#[tokio::test]
async fn a_silent_neighbour_is_told_by_its_name_in_time() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start(Cloud::One, &relay, SHORT).await;
    one.knows(Cloud::Two, &relay).await;
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!((status, &answer["exceptionType"]), (504, &json!("TIMEOUT")), "{answer}");
    let told = answer["errorMessage"].as_str().unwrap();
    assert!(told.contains("two.aitia") && told.contains("relay.example") && told.contains("acknowledgement"), "{told}");
    // The queues are gone: nothing is left to the relay.
    assert_eq!(relay.queues(), Vec::<Destination>::new());
}

#[tokio::test]
async fn a_relay_that_is_away_is_told() {
    let (relay, one, _two) = neighbours().await;
    relay.set_down(true);
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!((status, &answer["exceptionType"]), (503, &json!("UNAVAILABLE")), "{answer}");
    assert!(answer["errorMessage"].as_str().unwrap().contains("it is away"), "{answer}");
    relay.set_down(false);
    assert_eq!(one.orchestrate(&["triggerInterCloud"], heat()).await.0, 200, "it goes on");
}

/// Whether anything was said in the dialogue of a session.
fn is_answered(relay: &MemoryRelay, session: &str) -> bool {
    relay.sent().iter().any(|(to, _)| to.name().starts_with("RESP-") && to.name().ends_with(session))
}

/// A call on the topic, as `caller` would make it with these keys.
async fn call(relay: &MemoryRelay, keys: Cloud, shown_key: Cloud, sealed_for: Cloud) -> String {
    let session = draw_session();
    let key = base64::encode(sealed_for.gatekeeper().certificate().public_key_info());
    let sealing = SealingKey::from_authentication_info(&key).unwrap();
    let sealer = MessageSealer::new(keys.gatekeeper().key()).unwrap();
    let call = Advertisement {
        sender_cn: Some("gatekeeper.one.aitia.arrowhead.eu".into()),
        sender_public_key: Some(base64::encode(shown_key.gatekeeper().certificate().public_key_info())),
        recipient_cn: Some("Gatekeeper.Two.aitia.arrowhead.eu".into()),
        session_id: Some(sealer.seal(&RelayMessage::Call(session.clone()), &sealing, now()).unwrap()),
    };
    relay.send(&topic(), serde_json::to_string(&call).unwrap()).await.unwrap();
    session.as_str().to_owned()
}

#[tokio::test]
async fn only_the_neighbour_itself_is_answered() {
    let (relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let genuine = call(&relay, Cloud::One, Cloud::One, Cloud::Two).await;
    let refused = [
        ("somebody else's key", call(&relay, Cloud::FalseOne, Cloud::FalseOne, Cloud::Two).await),
        ("the neighbour's key shown, another one's signature", call(&relay, Cloud::FalseOne, Cloud::One, Cloud::Two).await),
        ("sealed for another cloud", call(&relay, Cloud::One, Cloud::One, Cloud::FalseOne).await),
    ];
    relay.send(&topic(), "x".repeat(CALL_BYTES_MAX + 1)).await.unwrap();
    relay.send(&topic(), "{}".into()).await.unwrap();
    // A dialogue behind them is whole when they were looked at.
    assert_eq!(one.orchestrate(&["triggerInterCloud"], heat()).await.0, 200);
    until(&relay, "the genuine call is answered", |relay| is_answered(relay, &genuine)).await;
    for (what, session) in refused {
        assert!(!is_answered(&relay, &session), "{what}");
    }
}

#[tokio::test]
async fn what_is_said_once_more_is_not_heard_again() {
    let (relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    assert_eq!(one.orchestrate(&["triggerInterCloud"], heat()).await.0, 200);
    let said = relay.sent();
    let count = |relay: &MemoryRelay| relay.sent().iter().filter(|(to, _)| to.name().starts_with("RESP-")).count();
    let before = count(&relay);
    // Two dialogues, each with an acknowledgement and an answer.
    assert_eq!(before, 4);
    for (to, message) in said {
        relay.repeat(&to, message);
        relay.send_bytes(&to, vec![0; 40]).await.unwrap();
    }
    // What was sent again to queues is seen there; nothing was answered.
    assert_eq!(one.orchestrate(&["triggerInterCloud"], heat()).await.0, 200);
    assert_eq!(count(&relay), 3 * before + 4, "the repeated answers, bytes behind each, and those of a new orchestration");
}

#[tokio::test]
async fn a_slow_relay_costs_time_and_one_that_is_too_slow_is_told() {
    let (relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    relay.delay(Duration::from_millis(150));
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!((status, answer["response"].as_array().map(Vec::len)), (200, Some(1)), "{answer}");
    let hasty = Side::start(Cloud::One, &relay, SHORT).await;
    hasty.knows(Cloud::Two, &relay).await;
    relay.delay(SHORT * 3);
    let (status, answer) = hasty.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!(status, 504, "{answer}");
    assert!(answer["errorMessage"].as_str().is_some_and(|told| told.contains("two.aitia") && told.contains("waited 0.2 s")), "{answer}");
}

#[tokio::test]
async fn whatever_a_relay_loses_of_a_dialogue_is_told_in_time_and_leaves_nothing() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::start(Cloud::One, &relay, LOSSY).await, Side::start(Cloud::Two, &relay, LOSSY).await);
    one.knows(Cloud::Two, &relay).await;
    two.knows(Cloud::One, &relay).await;
    heard_by(&relay, 2).await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    // An acknowledgement, a question and an answer, in this order.
    for (passed, awaited) in [(0, "an acknowledgement of the call"), (1, "an answer"), (2, "an answer")] {
        relay.lose_behind(passed, 1);
        let (status, answer) = one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})).await;
        assert_eq!(status, 504, "behind {passed}: {answer}");
        // Both wait as long, and the first one to give up removes the queues.
        let is_told = |told: &str| told.contains(awaited) || told.contains("has ended the dialogue");
        assert!(answer["errorMessage"].as_str().is_some_and(is_told), "behind {passed}: {answer}");
        until(&relay, "all queues are removed", |relay| relay.queues().is_empty()).await;
    }
    let found = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})).await;
    assert_eq!(found["results"].as_array().map(Vec::len), Some(1), "{found}");
}

#[tokio::test]
async fn a_question_of_a_later_version_is_told_to_be_unknown() {
    let (relay, _one, _two) = neighbours().await;
    let session = call(&relay, Cloud::One, Cloud::One, Cloud::Two).await;
    until(&relay, "the call is acknowledged", |relay| is_answered(relay, &session)).await;
    let key = |cloud: Cloud| base64::encode(cloud.gatekeeper().certificate().public_key_info());
    let (one, two) = (Cloud::One.gatekeeper(), Cloud::Two.gatekeeper());
    let queue = |kind: &str| Destination::queue(&format!("{kind}-{}-{session}", two.certificate().system().unwrap())).unwrap();
    let asked = RelayMessage::Unknown { subject: "future_poll".into(), session: SessionId::parse(&session).unwrap(), json: "{}".into() };
    let sealing = SealingKey::from_authentication_info(&key(Cloud::Two)).unwrap();
    relay.send(&queue("REQ"), MessageSealer::new(one.key()).unwrap().seal(&asked, &sealing, now()).unwrap()).await.unwrap();
    let mut answers = relay.listen(&queue("RESP")).await.unwrap();
    let (opener, verifying) = (MessageOpener::new(one.key()).unwrap(), VerifyingKey::from_authentication_info(&key(Cloud::Two)).unwrap());
    let mut heard = Vec::new();
    for _ in 0..2 {
        let Ok(Ok(Heard::Message(sealed))) = tokio::time::timeout(PATIENCE, answers.next()).await else { panic!("a message") };
        heard.push(opener.open(&sealed, ("neighbor", &verifying), now()).unwrap());
    }
    let RelayMessage::Unknown { subject, json, .. } = &heard[1] else { panic!("{heard:?}") };
    assert!(subject == "future_poll" && json.contains("INVALID_PARAMETER"), "{json}");
}

#[tokio::test]
async fn garbage_in_a_dialogue_is_passed_over_up_to_a_limit_and_told() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start(Cloud::One, &relay, PATIENCE).await;
    one.knows(Cloud::Two, &relay).await;
    let asked = tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})));
    let of_answers = |relay: &MemoryRelay| relay.queues().into_iter().find(|queue| queue.name().starts_with("RESP-"));
    until(&relay, "the call is made", |relay| of_answers(relay).is_some() && !relay.sent().is_empty()).await;
    let answers = of_answers(&relay).expect("it was there");
    let stranger = MessageSealer::new(Cloud::FalseOne.gatekeeper().key()).unwrap();
    let own = SealingKey::from_authentication_info(&base64::encode(Cloud::One.gatekeeper().certificate().public_key_info())).unwrap();
    for number in 0..STRAY_MESSAGES_MAX {
        let garbage = match number % 3 {
            0 => "no message at all".to_owned(),
            1 => "a.b.c.d.e".to_owned(),
            // Well sealed, and by somebody else.
            _ => stranger.seal(&RelayMessage::Acknowledgement(draw_session()), &own, now()).unwrap(),
        };
        relay.send(&answers, garbage).await.unwrap();
    }
    let (status, answer) = asked.await.unwrap();
    assert_eq!((status, &answer["exceptionType"]), (500, &json!("ARROWHEAD")), "{answer}");
    assert!(answer["errorMessage"].as_str().is_some_and(|told| told.contains("16 messages came")), "{answer}");
    assert!(relay.queues().is_empty());
}

#[tokio::test]
async fn a_cloud_that_is_not_known_there_hears_nothing() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::start(Cloud::One, &relay, SHORT).await, Side::start(Cloud::Two, &relay, PATIENCE).await);
    one.knows(Cloud::Two, &relay).await;
    // It knows somebody of the first one's name, and by another key.
    two.knows(Cloud::FalseOne, &relay).await;
    heard_by(&relay, 2).await;
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!(status, 504, "{answer}");
    assert!(!relay.sent().iter().any(|(to, _)| to.name().starts_with("RESP-")), "a stranger learns nothing");
}

#[tokio::test]
async fn who_asks_whether_a_cloud_is_there_calls_again_and_nobody_else_does() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::start(Cloud::One, &relay, PATIENCE).await, Side::start(Cloud::Two, &relay, PATIENCE).await);
    one.knows(Cloud::Two, &relay).await;
    let calls = |relay: &MemoryRelay| relay.sent().iter().filter(|(to, _)| *to == topic()).count();
    let target = json!([{"operator": "aitia", "name": "two"}]);
    let asked = tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "collect_access_types", target));
    until(&relay, "a call was lost", |relay| calls(relay) == 1).await;
    two.knows(Cloud::One, &relay).await;
    let (status, answer) = asked.await.unwrap();
    assert_eq!((status, &answer["data"][0]["directAccess"]), (200, &json!(true)), "{answer}");
    assert!(calls(&relay) > 1);
    until(&relay, "the queues of lost calls are removed", |relay| relay.queues().is_empty()).await;
    // Who asks for a service has called once.
    let lonely = MemoryRelay::new("lonely.example");
    let patient = Side::start(Cloud::One, &lonely, CALLED_ONCE).await;
    patient.knows(Cloud::Two, &lonely).await;
    assert_eq!(patient.orchestrate(&["triggerInterCloud"], heat()).await.0, 504);
    assert_eq!(calls(&lonely), 1);
}

#[tokio::test]
async fn a_refusal_of_the_other_cloud_is_told_as_it_came() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    for (port, key, refusal) in [(5571, "key", "The public key for a test of a relay"), (5572, "", "is not known to this cloud")] {
        let test = json!({
            "targetCloud": {"operator": "aitia", "name": "two"}, "relay": {"address": "relay.example", "port": port}, "senderQoSMonitorPublicKey": key,
        });
        let (status, answer) = one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", test).await;
        assert_eq!((status, &answer["exceptionType"]), (400, &json!("INVALID_PARAMETER")), "{answer}");
        assert!(answer["errorMessage"].as_str().unwrap().contains(refusal), "{answer}");
    }
}

#[tokio::test]
async fn the_monitor_of_quality_learns_where_granted_systems_are_and_how_the_cloud_is_reached() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    two.offers("secret", &json!({"systemName": "other", "address": "10.0.2.99", "port": 1, "authenticationInfo": "key"}), None).await;
    let target = json!({"operator": "aitia", "name": "two"});
    let addresses = one.ask(CoreSystem::Gatekeeper, Method::Post, "collect_system_addresses", target.clone()).await;
    assert_eq!(addresses, json!({"addresses": ["10.0.2.1"]}));
    let access = one.ask(CoreSystem::Gatekeeper, Method::Post, "collect_access_types", json!([target])).await;
    assert_eq!(access, json!({"data": [{"cloudName": "two", "cloudOperator": "aitia", "directAccess": true}], "count": 1}));
    let several = json!({"requestedServices": [heat(), {"serviceDefinitionRequirement": "secret"}]});
    let found = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_multi_gsd", several).await;
    assert_eq!(found["results"][0]["providedServiceDefinitions"], json!(["heat"]), "{found}");
    let clouds = one.ask(CoreSystem::Gatekeeper, Method::Get, "pull_clouds", Value::Null).await;
    assert_eq!((&clouds["count"], clouds["data"][1]["publicRelays"].as_array().unwrap().len()), (&json!(2), 1), "{clouds}");
}

#[tokio::test]
async fn more_dialogues_than_are_under_way_at_once_all_come_to_their_end() {
    let (relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let asked = (0..DIALOGUES_MAX + 10)
        .map(|_| tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()}))));
    let asked: Vec<_> = asked.collect();
    for answer in asked {
        let (status, answer) = answer.await.unwrap();
        assert_eq!((status, answer["results"].as_array().map(Vec::len)), (200, Some(1)), "{answer}");
    }
    until(&relay, "all queues are removed", |relay| relay.queues().is_empty()).await;
}

#[tokio::test]
async fn who_has_found_a_cloud_does_not_wait_behind_those_who_search() {
    let (_relay, one, two) = neighbours().await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    let gatekeeper = one.control.gatekeeper.clone().unwrap();
    let searching: Vec<_> = (0..DIALOGUES_MAX).map(|number| gatekeeper.searching.try_take(&number.to_string()).unwrap()).collect();
    let proposal = json!({"requestedService": heat(), "targetCloudId": one.id_of(Cloud::Two).await, "requesterSystem": display()});
    let granted = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_icn", proposal).await;
    assert_eq!(granted["response"][0]["provider"]["systemName"], "sensor", "{granted}");
    let mut search = tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_gsd", json!({"requestedService": heat()})));
    assert!(tokio::time::timeout(SHORT, &mut search).await.is_err(), "there is no place for another search");
    drop(searching);
    assert_eq!(search.await.unwrap().0, 200);
}
