//! The issuer with its threads.

use std::{sync::LazyLock, time::Duration};

use bodkin_arrowhead::{
    authorization::token::Grant,
    common_name::SystemCommonName,
    name::{InterfaceName, ServiceDefinition},
    system::SystemKey,
    utc::UtcTime,
};
use bodkin_trust::{Authority, KeySize, PrivateKey, Profile, TokenVerifier, base64};

use super::*;

const LIFETIME: Duration = Duration::from_secs(600);

static CLOUD: LazyLock<Authority> = LazyLock::new(|| {
    let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
    let root = Authority::root(now(), Duration::from_secs(86_400)).unwrap();
    root.issue_cloud(&cloud, now(), Duration::from_secs(86_400)).unwrap()
});

static PROVIDER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());

fn authorization() -> Identity {
    CLOUD.issue(&Profile::system(&consumer("authorization"), &[], now(), Duration::from_secs(86_400))).unwrap()
}

fn consumer(name: &str) -> SystemCommonName {
    SystemCommonName::parse(&format!("{name}.cloud.operator.arrowhead.eu")).unwrap()
}

fn order(consumer_name: &str, provider_key: &str) -> TokenOrder {
    TokenOrder {
        grant: Grant {
            consumer: consumer(consumer_name),
            service: ServiceDefinition::from_stored("temperature"),
            interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
        },
        provider: SystemKey::new("sensor", "10.0.0.1", 8080),
        provider_key: provider_key.into(),
        lifetime: LIFETIME,
    }
}

fn key() -> String {
    base64::encode(&PROVIDER.public_key_info())
}

fn counts(issuer: &TokenIssuer, token: &str, consumer_name: &str, now: UtcTime) -> bool {
    TokenVerifier::new(&PROVIDER, &issuer.authentication_info()).unwrap().verify(token, &consumer(consumer_name), now).is_ok()
}

#[tokio::test]
async fn tokens_come_in_the_order_they_were_asked_for_and_the_same_ones_again() {
    let issuer = TokenIssuer::start(&authorization(), TokenLifetimes::default()).unwrap();
    assert_eq!(issuer.own_cloud().to_string(), "cloud.operator.arrowhead.eu");
    let names: Vec<String> = (0..3 * QUEUED_OF_REQUEST_MAX).map(|number| format!("consumer-{number}")).collect();
    let orders: Vec<TokenOrder> = names.iter().map(|name| order(name, &key())).collect();
    let orders: Vec<&TokenOrder> = orders.iter().collect();
    let first = issuer.issue(&orders).await.unwrap();
    for (name, token) in names.iter().zip(&first) {
        assert!(counts(&issuer, token.as_deref().unwrap(), name, now()), "{name}");
    }
    assert_eq!(issuer.issue(&orders).await.unwrap(), first);
}

#[tokio::test]
async fn a_provider_without_a_usable_key_has_no_token() {
    let issuer = TokenIssuer::start(&authorization(), TokenLifetimes::default()).unwrap();
    let orders = [order("a", ""), order("a", "nonsense"), order("a", &key()), order("a", &key()[4..])];
    let tokens = issuer.issue(&orders.iter().collect::<Vec<_>>()).await.unwrap();
    assert_eq!(tokens.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
}

#[tokio::test]
async fn another_identity_makes_other_tokens_at_once() {
    let issuer = TokenIssuer::start(&authorization(), TokenLifetimes::default()).unwrap();
    let order = order("a", &key());
    let former = issuer.issue(&[&order]).await.unwrap().remove(0).unwrap();
    issuer.replace_identity(&authorization()).unwrap();
    let token = issuer.issue(&[&order]).await.unwrap().remove(0).unwrap();
    assert_ne!(former, token);
    assert!(counts(&issuer, &token, "a", now()) && !counts(&issuer, &former, "a", now()));
}

#[tokio::test]
async fn a_request_for_too_many_tokens_is_refused() {
    let issuer = TokenIssuer::start(&authorization(), TokenLifetimes::default()).unwrap();
    let order = order("a", &key());
    let error = issuer.issue(&vec![&order; TOKENS_OF_REQUEST_MAX + 1]).await.unwrap_err();
    assert_eq!(error.error_code, 400);
    assert!(error.error_message.starts_with("16385 tokens would be needed, and at most 16384"), "{error}");
}

/// An issuer without threads: what it queues stays where it is.
fn idle_issuer(queue_max: usize) -> (TokenIssuer, mpsc::Receiver<Job>) {
    let (queue, jobs) = mpsc::sync_channel(queue_max);
    let signing = ArcSwap::from_pointee(Signing::new(&authorization(), Arc::default()).unwrap());
    (TokenIssuer { signing, queue, lifetimes: TokenLifetimes::default(), endless_for: Arc::default() }, jobs)
}

#[tokio::test]
async fn a_full_queue_is_told() {
    let (issuer, jobs) = idle_issuer(1);
    let signing = issuer.signing.load_full();
    let order = order("a", &key());
    assert!(issuer.begin(&signing, &order).is_ok());
    let error = issuer.issue(&[&order]).await.unwrap_err();
    assert_eq!(error.error_code, 503);
    // Whoever asked first has gone away: nothing is made for it, and the threads end with the issuer.
    drop(issuer);
    sign_for_ever(&std::sync::Mutex::new(jobs));
    assert_eq!(signing.kept(&order, now()), None);
}

#[tokio::test]
async fn a_large_request_takes_few_places_in_the_queue_at_a_time() {
    let (issuer, jobs) = idle_issuer(QUEUE_MAX);
    let orders: Vec<TokenOrder> = (0..100).map(|number| order(&format!("consumer-{number}"), &key())).collect();
    let orders: Vec<&TokenOrder> = orders.iter().collect();
    tokio::select! {
        biased;
        _ = issuer.issue(&orders) => panic!("nobody makes tokens here"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(jobs.try_iter().count(), QUEUED_OF_REQUEST_MAX);
}

#[test]
fn an_identity_that_is_no_systems_is_refused() {
    let refused = TokenIssuer::start(CLOUD.identity(), TokenLifetimes::default()).err();
    assert!(matches!(refused, Some(IssuerError::Name(_))), "{refused:?}");
}
