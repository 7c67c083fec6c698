//! Tokens as the core systems of a secure cloud hand them out, from the request to the provider that verifies them.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bodkin_arrowhead::{
    audit::{AuditQuery, Kind},
    authorization::token::{TokenFault, TokenLifetimes},
    caller::Caller,
    common_name::{CloudCommonName, SystemCommonName},
    core_service::CoreSystem,
    name::NamingRules,
    utc::UtcTime,
};
use bodkin_broker::topic::Platform;
use bodkin_host::{
    AUDIT_LIMITS, Limits, TokenIssuer,
    audit::{Audit, start_event},
    control::{Control, Pings, now},
    destination::Destinations,
    quotas::OwnerQuota,
    request::{Method, Request},
    shard::Shard,
    topics::{RealTimeTopics, pushed::PushedWishes},
};
use bodkin_store::{
    Opened, Store,
    audit::{AuditLog, AuditReader, AuditThread},
};
use bodkin_trust::{Authority, Identity, KeySize, PrivateKey, Profile, TokenVerifier, base64};
use serde_json::{Value, json};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);
const LIFETIMES: TokenLifetimes = TokenLifetimes { default: Duration::from_secs(600), maximum: Duration::from_secs(3600) };
const JSON: &str = "HTTP-SECURE-JSON";
const XML: &str = "HTTP-SECURE-XML";

static AUTHORIZATION: LazyLock<Identity> = LazyLock::new(|| {
    let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
    let root = Authority::root(now(), DAY).unwrap();
    let authority = root.issue_cloud(&cloud, now(), DAY).unwrap();
    authority.issue(&Profile::system(&system("authorization"), &[], now(), DAY)).unwrap()
});

static PROVIDER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());

fn system(name: &str) -> SystemCommonName {
    SystemCommonName::parse(&format!("{name}.cloud.operator.arrowhead.eu")).unwrap()
}

/// The control plane of a cloud, without its listeners.
struct Cloud {
    control: Control,
    _opened: Opened,
    _audit: AuditThread,
    _data: TempDir,
}

impl Cloud {
    fn new(tokens: Option<TokenIssuer>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let opened = Store::open(data.path()).unwrap();
        let (log, audit_thread) = AuditLog::open(&data.path().join("audit"), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        let control = Control {
            gatekeeper: None,
            gateway: None,
            gateway_is_mandatory: false,
            unsubscribe_by_any: false,
            malformed: Default::default(),
            store: opened.store.clone(),
            stages: Arc::default(),
            naming: NamingRules { secure_services: tokens.is_some(), ..NamingRules::default() },
            address_detection: None,
            pings: Pings::new(Duration::from_secs(1), Destinations::new(&[])),
            log_book: Arc::default(),
            subscriptions_max: 1,
            owner_quota: Arc::new(OwnerQuota::new(&Limits::default())),
            inbox: Shard::inbox().unwrap().1,
            wishes: PushedWishes::new(
                Arc::new(RealTimeTopics::new(Platform::default(), Default::default()).unwrap()),
                Shard::inbox().unwrap().1,
            ),
            audit: Audit::new(log),
            orchestrator: Default::default(),
            qualities: Default::default(),
            traces: None,
            tokens: tokens.map(Arc::new),
        };
        Self { control, _opened: opened, _audit: audit_thread, _data: data }
    }

    fn secure() -> Self {
        Self::new(Some(TokenIssuer::start(&AUTHORIZATION, LIFETIMES).unwrap()))
    }

    async fn ask(&self, system: CoreSystem, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = Request {
            caller: Caller::Anonymous,
            sender: None,
            method,
            path: path.to_owned(),
            query: Vec::new(),
            url: format!("https://cloud{path}"),
            content_type: "application/json".to_owned(),
            bearer: None,
            trace: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            says_empty: false,
            body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
        };
        let answer = self.control.answer(system, &request).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    async fn post(&self, system: CoreSystem, path: &str, body: &Value) -> (u16, Value) {
        self.ask(system, Method::Post, path, Some(body)).await
    }

    /// Registers a service and lets the consumer use it over both interfaces; gives what was registered.
    async fn offer(&self, definition: &str, provider: &str, secure: &str, key: &str) -> Value {
        let form = json!({"serviceDefinition": definition, "serviceUri": "/", "secure": secure, "interfaces": [JSON, XML],
            "providerSystem": {"systemName": provider, "address": "10.0.0.2", "port": 8080, "authenticationInfo": key}});
        let (status, entry) = self.post(CoreSystem::ServiceRegistry, "/serviceregistry/register", &form).await;
        assert_eq!(status, 201, "{entry}");
        let consumer = json!({"systemName": "display", "address": "10.0.0.1", "port": 80});
        let (_, consumer) = self.post(CoreSystem::ServiceRegistry, "/serviceregistry/query/system", &consumer).await;
        let interfaces: Vec<&Value> = entry["interfaces"].as_array().unwrap().iter().map(|interface| &interface["id"]).collect();
        let rule = json!({"consumerId": consumer["id"], "providerIds": [entry["provider"]["id"]], "interfaceIds": interfaces,
            "serviceDefinitionIds": [entry["serviceDefinition"]["id"]]});
        let (status, answer) = self.post(CoreSystem::Authorization, "/authorization/mgmt/intracloud", &rule).await;
        assert_eq!(status, 201, "{answer}");
        entry
    }

    async fn register_consumer(&self) {
        let consumer = json!({"systemName": "display", "address": "10.0.0.1", "port": 80});
        let (status, answer) = self.post(CoreSystem::ServiceRegistry, "/serviceregistry/register-system", &consumer).await;
        assert_eq!(status, 201, "{answer}");
    }

    async fn orchestrate(&self, definition: &str) -> (u16, Value) {
        let form = json!({"requesterSystem": {"systemName": "Display", "address": "10.0.0.1", "port": 80},
            "requestedService": {"serviceDefinitionRequirement": definition}, "orchestrationFlags": {"overrideStore": true}});
        self.post(CoreSystem::Orchestrator, "/orchestrator/orchestration", &form).await
    }

    /// Verifies with the key that the cloud answers, as its provider would.
    async fn fault(&self, token: &Value, interface: &str, now: UtcTime) -> Option<TokenFault> {
        let (status, key) = self.ask(CoreSystem::Authorization, Method::Get, "/authorization/publickey", None).await;
        assert_eq!(status, 200);
        let verifier = TokenVerifier::new(&PROVIDER, key.as_str().unwrap()).unwrap().for_service("temperature").over_interface(interface);
        verifier.verify(token.as_str().unwrap(), &system("display"), now).err().map(|refused| refused.fault())
    }
}

fn key() -> String {
    base64::encode(&PROVIDER.public_key_info())
}

fn token_request(key: &str, duration: i64) -> Value {
    json!({"consumer": {"systemName": "Display", "address": "10.0.0.1", "port": 80}, "consumerCloud": null, "service": "Temperature",
        "providers": [{"provider": {"systemName": "sensor", "address": "10.0.0.2", "port": 8080, "authenticationInfo": key},
            "serviceInterfaces": [JSON], "tokenDuration": duration}]})
}

#[tokio::test]
async fn an_orchestration_comes_with_a_token_for_each_interface_that_the_provider_takes() {
    let cloud = Cloud::secure();
    cloud.register_consumer().await;
    cloud.offer("temperature", "sensor", "TOKEN", &key()).await;
    let (status, answer) = cloud.orchestrate("temperature").await;
    assert_eq!(status, 200, "{answer}");
    let tokens = &answer["response"][0]["authorizationTokens"];
    assert_eq!(tokens.as_object().unwrap().len(), 2);
    for interface in [JSON, XML] {
        assert_eq!(cloud.fault(&tokens[interface], interface, now()).await, None, "{interface}");
    }
    assert_eq!(cloud.fault(&tokens[XML], JSON, now()).await, Some(TokenFault::Interface));
    assert_eq!(cloud.fault(&tokens[JSON], JSON, now().plus(Duration::from_secs(660))).await, Some(TokenFault::Expired));
    let (_, again) = cloud.orchestrate("temperature").await;
    assert_eq!(again, answer, "the same tokens are given while they are good");
}

#[tokio::test]
async fn only_services_that_are_secured_by_token_come_with_some() {
    let cloud = Cloud::secure();
    cloud.register_consumer().await;
    for secure in ["NOT_SECURE", "CERTIFICATE"] {
        cloud.offer(&secure.replace('_', "-"), "sensor", secure, &key()).await;
        let (status, answer) = cloud.orchestrate(&secure.replace('_', "-")).await;
        assert_eq!((status, &answer["response"][0]["secure"]), (200, &json!(secure)));
        assert_eq!(answer["response"][0]["authorizationTokens"], Value::Null, "{secure}");
    }
}

#[tokio::test]
async fn a_provider_without_a_usable_key_is_told() {
    let cloud = Cloud::secure();
    cloud.register_consumer().await;
    cloud.offer("temperature", "broken", "TOKEN", "nonsense").await;
    let (status, error) = cloud.orchestrate("temperature").await;
    assert_eq!((status, &error["exceptionType"]), (400, &json!("INVALID_PARAMETER")));
    let told = error["errorMessage"].as_str().unwrap();
    assert!(told.starts_with("No token could be made for service temperature: the authenticationInfo of broken is not"), "{told}");

    cloud.offer("temperature", "sensor", "TOKEN", &key()).await;
    let (status, answer) = cloud.orchestrate("temperature").await;
    assert_eq!(status, 200, "another provider's key is right: {answer}");
    for result in answer["response"].as_array().unwrap() {
        assert_eq!(result["authorizationTokens"].is_null(), result["provider"]["systemName"] == "broken", "{result}");
    }
}

#[tokio::test]
async fn a_service_without_a_key_cannot_be_secured() {
    let cloud = Cloud::secure();
    let form = json!({"serviceDefinition": "temperature", "secure": "TOKEN", "interfaces": [JSON],
        "providerSystem": {"systemName": "sensor", "address": "10.0.0.2", "port": 8080}});
    let (status, error) = cloud.post(CoreSystem::ServiceRegistry, "/serviceregistry/register", &form).await;
    assert_eq!((status, &error["exceptionType"]), (400, &json!("BAD_PAYLOAD")));
}

#[tokio::test]
async fn tokens_are_made_on_request_for_as_long_as_asked() {
    let cloud = Cloud::secure();
    for (asked_s, given_s) in [(0, 600), (-1, 600), (60, 60), (1_000_000, 3600)] {
        let (status, answer) = cloud.post(CoreSystem::Authorization, "/authorization/token", &token_request(&key(), asked_s)).await;
        assert_eq!(status, 200, "{answer}");
        let provider = &answer["tokenData"][0];
        assert_eq!((&provider["providerName"], &provider["providerPort"]), (&json!("sensor"), &json!(8080)));
        let token = &provider["tokens"][JSON];
        let later = |seconds: u64| now().plus(Duration::from_secs(seconds));
        assert_eq!(cloud.fault(token, JSON, later(given_s)).await, None, "within the clocks' tolerance of {given_s} s");
        assert_eq!(cloud.fault(token, JSON, later(given_s + 60)).await, Some(TokenFault::Expired), "{asked_s}");
    }
}

#[tokio::test]
async fn tokens_for_several_services_are_made_at_once() {
    let cloud = Cloud::secure();
    let requests = json!([token_request("nonsense", 60), token_request(&key(), 60)]);
    let (status, answer) = cloud.post(CoreSystem::Authorization, "/authorization/token/multi", &requests).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"][0]["tokenData"], json!([]));
    let second = &answer["data"][1];
    assert_eq!(
        (&second["service"], &second["consumerName"], &second["consumerAdress"]),
        (&json!("temperature"), &json!("Display"), &json!("10.0.0.1"))
    );
    assert_eq!(cloud.fault(&second["tokenData"][0]["tokens"][JSON], JSON, now()).await, None);
    for wrong in [json!([]), json!([null]), json!([token_request(&key(), 60), {}])] {
        let (status, error) = cloud.post(CoreSystem::Authorization, "/authorization/token/multi", &wrong).await;
        assert_eq!((status, &error["origin"]), (400, &json!("/authorization/token/multi")), "{wrong}");
    }
}

#[tokio::test]
async fn a_token_request_without_any_usable_key_is_refused() {
    let cloud = Cloud::secure();
    for key in ["nonsense", "AAAA"] {
        let (status, error) = cloud.post(CoreSystem::Authorization, "/authorization/token", &token_request(key, 60)).await;
        assert_eq!((status, &error["exceptionType"]), (400, &json!("INVALID_PARAMETER")), "{error}");
    }
    let (status, error) = cloud.post(CoreSystem::Authorization, "/authorization/token", &token_request(" ", 60)).await;
    assert_eq!((status, &error["exceptionType"]), (400, &json!("BAD_PAYLOAD")), "{error}");
}

#[tokio::test]
async fn an_insecure_cloud_has_neither_keys_nor_tokens() {
    let cloud = Cloud::new(None);
    let requests = [
        cloud.ask(CoreSystem::Authorization, Method::Get, "/authorization/publickey", None).await,
        cloud.post(CoreSystem::Authorization, "/authorization/token", &token_request(&key(), 60)).await,
        cloud.post(CoreSystem::Authorization, "/authorization/token/multi", &json!([token_request(&key(), 60)])).await,
    ];
    for (status, error) in requests {
        assert_eq!((status, &error["exceptionType"]), (500, &json!("ARROWHEAD")), "{error}");
    }
}

#[tokio::test]
async fn provider_in_the_list_gets_tokens_without_expiry() {
    let endless_for = BTreeSet::from(["kalix".to_owned()]);
    let cloud = Cloud::new(Some(TokenIssuer::start_with(&AUTHORIZATION, LIFETIMES, endless_for).unwrap()));
    cloud.register_consumer().await;
    for (definition, provider) in [("pressure", "kalix"), ("temperature", "sensor")] {
        cloud.offer(definition, provider, "TOKEN", &key()).await;
    }
    let authorization = base64::encode(&AUTHORIZATION.key().public_key_info());
    for (definition, is_endless) in [("pressure", true), ("temperature", false)] {
        let (status, answer) = cloud.orchestrate(definition).await;
        assert_eq!(status, 200, "{answer}");
        let token = answer["response"][0]["authorizationTokens"][JSON].as_str().expect("a token");
        let verifier = TokenVerifier::new(&PROVIDER, &authorization).unwrap();
        let verified = verifier.verify(token, &system("display"), now());
        assert_eq!(verified.err().map(|refused| refused.fault()), is_endless.then_some(TokenFault::Endless), "{definition}");
    }
}

#[tokio::test]
async fn tokens_that_are_given_out_are_told_to_the_audit_log_without_the_tokens() {
    let cloud = Cloud::secure();
    let (_, answer) = cloud.post(CoreSystem::Authorization, "/authorization/token", &token_request(&key(), 60)).await;
    cloud.register_consumer().await;
    cloud.offer("temperature", "sensor", "TOKEN", &key()).await;
    assert_eq!(cloud.orchestrate("temperature").await.0, 200);
    let Cloud { _audit, _data, .. } = cloud;
    drop(_audit);
    let read = AuditReader::new(&_data.path().join("audit")).first(&AuditQuery::default(), 100).unwrap();
    let event = |kind: Kind| &read.iter().find(|read| read.entry.event.kind == kind).expect("it is told").entry.event;
    let told = &event(Kind::Token).detail["given"][0];
    assert_eq!((&told["service"], &told["seconds"]), (&json!("temperature"), &json!(60)), "{told}");
    assert!(told["consumer"].as_str().unwrap().ends_with(".cloud.operator.arrowhead.eu"), "{told}");
    assert_eq!(event(Kind::Orchestration).detail["given"][0]["tokens"], json!([JSON, XML]));
    let token = answer["tokenData"][0]["tokens"][JSON].as_str().expect("a token");
    assert!(read.iter().all(|read| !String::from_utf8_lossy(&read.line).contains(&token[..40])));
}
