//! All clouds that one request asks have the time of one dialogue together, and a silent one keeps nobody from being asked.

use super::*;

/// Each is silent for its part of a request.
const SILENT: usize = 24;
/// Of a request that asks them.
const SHARED: Duration = Duration::from_millis(500);
/// Of a request that asks a silent cloud first: the other one answers in this time on a busy machine.
const HALF: Duration = Duration::from_secs(10);

fn silent(number: usize) -> String {
    format!("silent-{number}")
}

/// Has the orchestration store name the provider of these clouds, in this order.
async fn store_names(one: &Side, clouds: &[String]) {
    let consumer = one.ask(CoreSystem::ServiceRegistry, Method::Post, "register-system", display()).await;
    let provider = json!({"systemName": "sensor", "address": "10.0.2.1", "port": 9000});
    let entry = |(at, cloud): (usize, &String)| {
        json!({
            "serviceDefinitionName": "heat", "consumerSystemId": consumer["id"], "providerSystem": provider,
            "cloud": {"operator": "aitia", "name": cloud}, "serviceInterfaceName": "HTTP-SECURE-JSON", "priority": at + 1,
        })
    };
    let entries: Vec<Value> = clouds.iter().enumerate().map(entry).collect();
    one.ask(CoreSystem::Orchestrator, Method::Post, "mgmt/store", json!(entries)).await;
}

fn of_store() -> Value {
    json!({"serviceDefinitionRequirement": "heat", "interfaceRequirements": ["HTTP-SECURE-JSON"]})
}

#[tokio::test]
async fn silent_clouds_that_the_store_names_have_the_time_of_one_together() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start(Cloud::One, &relay, SHARED).await;
    let clouds: Vec<String> = (0..SILENT).map(silent).collect();
    for cloud in &clouds {
        one.knows_silent(cloud, &relay).await;
    }
    store_names(&one, &clouds).await;
    let (status, answer) = one.orchestrate(&[], of_store()).await;
    assert_eq!((status, &answer["exceptionType"]), (504, &json!("TIMEOUT")), "{answer}");
    let told = answer["errorMessage"].as_str().unwrap();
    let (_, behind) = told.split_once("which one request asks (1.0 s): ").unwrap_or_else(|| panic!("{told}"));
    let not_asked: usize = behind.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{told}"));
    // Sixteen parts of the time there are, and whoever comes behind them is not asked, nor called silent.
    assert!((SILENT - 16..=SILENT).contains(&not_asked), "{told}");
    assert_eq!(told.contains("silent-0.aitia"), not_asked < SILENT, "{told}");
    assert!(relay.sent().len() <= SILENT - not_asked, "{told}");
    assert!(!told.contains(&format!("silent-{}.", SILENT - 1)), "{told}");
    until(&relay, "all queues are removed", |relay| relay.queues().is_empty()).await;
}

#[tokio::test]
async fn a_silent_cloud_keeps_nobody_from_asking_the_next_one() {
    let relay = MemoryRelay::new("relay.example");
    let (one, two) = (Side::start(Cloud::One, &relay, HALF).await, Side::start(Cloud::Two, &relay, PATIENCE).await);
    one.knows_silent("silent", &relay).await;
    one.knows(Cloud::Two, &relay).await;
    two.knows(Cloud::One, &relay).await;
    heard_by(&relay, 2).await;
    two.offers("heat", &sensor(), Some(Cloud::One)).await;
    store_names(&one, &["silent".to_owned(), "two".to_owned()]).await;
    let found_by_store = one.orchestrate(&[], of_store());
    // It is discovered in half of the time, so that the other half is left to be granted something.
    let found_among_all = one.orchestrate(&["triggerInterCloud"], heat());
    for (status, answer) in <[_; 2]>::from(tokio::join!(found_by_store, found_among_all)) {
        assert_eq!((status, &answer["response"][0]["provider"]["systemName"]), (200, &json!("sensor")), "{answer}");
    }
}

#[tokio::test]
async fn of_neighbours_that_are_all_silent_each_is_named() {
    let relay = MemoryRelay::new("relay.example");
    let one = Side::start(Cloud::One, &relay, SHORT).await;
    for cloud in ["first", "second"] {
        one.knows_silent(cloud, &relay).await;
    }
    let (status, answer) = one.orchestrate(&["triggerInterCloud"], heat()).await;
    assert_eq!(status, 504, "{answer}");
    assert!(["first.aitia", "second.aitia"].iter().all(|name| answer["errorMessage"].as_str().unwrap().contains(name)), "{answer}");
}
