//! How new systems come to their certificates: the handler with a real authority, asked as the network would ask it.

use std::{
    net::IpAddr,
    sync::{Arc, LazyLock},
};

use bodkin_arrowhead::{
    audit::{AuditQuery, Kind},
    caller::Caller,
    common_name::CloudCommonName,
    service_registry::Sender,
};
use bodkin_host::{
    AUDIT_LIMITS,
    answer::Answer,
    api::OnboardingApi,
    audit::{Act, Audit, start_event},
    control::now,
    onboarding::Onboarding,
    request::{Method, Request},
};
use bodkin_store::{
    Opened, Store,
    audit::{AuditLog, AuditReader, AuditThread},
};
use bodkin_trust::{Certificate, KeySize, PrivateKey, TrustDirectory, onboarding::OnboardingSecret, request::SigningRequest};
use serde_json::{Value, json};
use tempfile::TempDir;

const GRANTS: &str = "/api/v1/onboarding/grants";
const ONBOARDING: &str = "/api/v1/onboarding";

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());

struct World {
    api: OnboardingApi,
    audit: Audit,
    thread: AuditThread,
    trust: TrustDirectory,
    data: TempDir,
    _opened: Opened,
}

impl World {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let trust = TrustDirectory::new(data.path().join("trust"));
        trust.init(&CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap(), now()).unwrap();
        let opened = Store::open(data.path()).unwrap();
        let (log, thread) = AuditLog::open(&data.path().join("audit"), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        let onboarding = Some(Arc::new(Onboarding::new(trust.clone(), None)));
        let api = OnboardingApi { store: opened.store.clone(), onboarding };
        Self { api, audit: Audit::new(log), thread, trust, data, _opened: opened }
    }

    async fn ask(&self, method: Method, path: &str, body: &Value, caller: Caller, from: &str) -> Answer {
        self.send(request(method, path, body, caller, from)).await
    }

    async fn send(&self, request: Request) -> Answer {
        let act = Act::of_own(request.path.strip_prefix("/api/v1/").unwrap(), request.method);
        self.audit.carry_out(act, &request, |why| Answer::problem(503, &why), self.api.answer(&request)).await
    }

    /// Makes a grant; gives its secret.
    async fn grant(&self, form: Value) -> String {
        let answer = self.ask(Method::Post, GRANTS, &form, Caller::Anonymous, "127.0.0.1").await;
        assert_eq!(answer.status, 201, "{:?}", String::from_utf8_lossy(&answer.body));
        json_of(&answer)["secret"].as_str().unwrap_or_default().to_owned()
    }

    async fn onboard(&self, body: Value) -> Answer {
        self.ask(Method::Post, ONBOARDING, &body, Caller::unidentified(), "10.0.0.7").await
    }
}

fn request(method: Method, path: &str, body: &Value, caller: Caller, from: &str) -> Request {
    let peer: IpAddr = from.parse().unwrap();
    Request {
        caller,
        sender: Some(Sender { peer, local: peer, forwarded: Vec::new(), forwarded_for: Vec::new() }),
        method,
        path: path.into(),
        query: Vec::new(),
        url: String::new(),
        content_type: "application/json".into(),
        bearer: None,
        if_none_match: None,
        accepts_html: false,
        is_forged: false,
        trace: None,
        says_empty: false,
        body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
    }
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// A request that asks to be the operator.
fn csr() -> String {
    SigningRequest::make(&KEY, "sysop.cloud.operator.arrowhead.eu").unwrap()
}

#[tokio::test]
async fn a_secret_is_good_for_one_certificate_whose_names_the_grant_decides() {
    let world = World::new();
    let secret = world.grant(json!({"systemName": "sensor-7", "alternativeNames": ["10.0.0.7", "sensor-7.local"]})).await;
    assert_eq!(OnboardingSecret::parse(&secret).unwrap().anchor, world.trust.anchor().unwrap().fingerprint());
    let answer = world.onboard(json!({"secret": secret, "csr": csr()})).await;
    assert_eq!(answer.status, 201, "{:?}", String::from_utf8_lossy(&answer.body));
    let chain = Certificate::from_pem(json_of(&answer)["certificate"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!((chain.len(), chain[0].common_name()), (3, Some("sensor-7.cloud.operator.arrowhead.eu")));
    assert_eq!(chain[0].alternative_names(), ["sensor-7.cloud.operator.arrowhead.eu", "10.0.0.7", "sensor-7.local"]);
    assert_eq!((chain[0].public_key_info(), chain[0].is_authority()), (KEY.public_key_info().as_slice(), false));
    assert!(chain[1] == world.trust.anchor().unwrap() && chain[0].is_issued_by(&chain[1]));
    assert!(world.trust.ledger().unwrap().find(&chain[0].serial_text()).is_some());
    let again = world.onboard(json!({"secret": secret, "csr": csr()})).await;
    assert_eq!(again.status, 401);
}

#[tokio::test]
async fn a_secret_may_come_as_a_bearer_s_token_and_only_once() {
    let world = World::new();
    let show = |bearer: &str, body: Value| {
        let request = request(Method::Post, ONBOARDING, &body, Caller::unidentified(), "10.0.0.7");
        world.send(Request { bearer: Some(bearer.to_owned()), ..request })
    };
    let secret = world.grant(json!({"systemName": "sensor-7"})).await;
    let twice = show(&secret, json!({"secret": secret, "csr": csr()})).await;
    assert_eq!((twice.status, json_of(&twice)["detail"].as_str().is_some_and(|detail| detail.contains("once"))), (400, true));
    let other = show("bodkin1-1-00", json!({"csr": csr()})).await;
    assert_eq!((other.status, other.header), (401, Some(("WWW-Authenticate", "Bearer realm=\"onboarding\"".to_owned()))));
    assert_eq!(show(&secret, json!({"csr": csr()})).await.status, 201, "what was refused costs nothing");
    assert_eq!(show(&secret, json!({"csr": csr()})).await.status, 401, "its use is spent");
}

#[tokio::test]
async fn two_at_the_same_time_do_not_share_one_use() {
    let world = World::new();
    let secret = world.grant(json!({"systemName": "sensor-7"})).await;
    let body = || json!({"secret": secret, "csr": csr()});
    let (one, two, three) = tokio::join!(world.onboard(body()), world.onboard(body()), world.onboard(body()));
    let mut statuses = [one.status, two.status, three.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 401, 401]);
}

#[tokio::test]
async fn a_grant_for_many_names_gives_none_that_is_somebodys() {
    let world = World::new();
    let many = world.grant(json!({"systemName": "sensor-*", "uses": 3})).await;
    let asked = |name: &str| json!({"secret": many, "systemName": name, "csr": csr()});
    assert_eq!(world.onboard(asked("Sensor-1")).await.status, 201);
    let taken = world.onboard(asked("sensor-1")).await;
    assert!(taken.status == 409 && json_of(&taken)["detail"].as_str().unwrap().contains("sensor-1"), "{taken:?}");
    for name in ["display", "sysop", "serviceregistry"] {
        assert_eq!(world.onboard(asked(name)).await.status, 403, "{name}");
    }
    assert_eq!(world.onboard(json!({"secret": many, "csr": csr()})).await.status, 403, "which one?");
    assert_eq!(world.onboard(asked("-")).await.status, 400);
    let left = json_of(&world.ask(Method::Get, GRANTS, &Value::Null, Caller::Anonymous, "127.0.0.1").await);
    assert_eq!((&left["data"][0]["usesLeft"], &left["data"][0]["secret"]), (&json!(2), &Value::Null), "what was refused costs nothing");
    let alone = world.grant(json!({"systemName": "sensor-1"})).await;
    assert_eq!(world.onboard(json!({"secret": alone, "csr": csr()})).await.status, 201, "a grant for it alone renews it");
}

#[tokio::test]
async fn what_is_no_request_or_no_strong_key_costs_no_use() {
    let world = World::new();
    let secret = world.grant(json!({"systemName": "sensor-7"})).await;
    let mut changed = csr();
    let middle = changed.len() / 2;
    changed.replace_range(middle..=middle, if &changed[middle..=middle] == "A" { "B" } else { "A" });
    for (csr, word) in [(String::new(), "csr"), ("nonsense".to_owned(), "csr"), (changed, "csr")] {
        let answer = world.onboard(json!({"secret": secret, "csr": csr})).await;
        assert!(answer.status == 400 && json_of(&answer)["detail"].as_str().unwrap().contains(word), "{answer:?}");
    }
    assert_eq!(world.onboard(json!({"secret": secret})).await.status, 400);
    assert_eq!(world.onboard(json!({"secret": secret, "csr": csr()})).await.status, 201);
}

#[tokio::test]
async fn who_is_wrong_too_often_is_refused_even_if_right_and_others_are_not() {
    let world = World::new();
    let secret = world.grant(json!({"systemName": "sensor-7", "uses": 2})).await;
    let wrong = secret.replace("bodkin1-1-", "bodkin1-2-");
    for _ in 0..10 {
        assert_eq!(world.onboard(json!({"secret": wrong, "csr": csr()})).await.status, 401);
    }
    let right = json!({"secret": secret, "csr": csr()});
    let late = world.onboard(right.clone()).await;
    assert_eq!((late.status, late.header.as_ref().map(|header| header.0)), (429, Some("Retry-After")));
    assert_eq!(world.ask(Method::Post, ONBOARDING, &right, Caller::unidentified(), "10.0.0.8").await.status, 201);
}

#[tokio::test]
async fn wrong_secrets_that_come_at_once_share_the_limit() {
    let world = Arc::new(World::new());
    let secret = world.grant(json!({"systemName": "sensor-7"})).await;
    let wrong = json!({"secret": secret.replace("bodkin1-1-", "bodkin1-2-"), "csr": csr()});
    let attempts: Vec<_> = (0..64)
        .map(|_| {
            let (world, wrong) = (Arc::clone(&world), wrong.clone());
            tokio::spawn(async move { world.onboard(wrong).await.status })
        })
        .collect();
    let mut refused = 0;
    for attempt in attempts {
        refused += u32::from(attempt.await.expect("it ends") == 401);
    }
    assert_eq!(refused, 10, "the others were not looked at");
}

#[tokio::test]
async fn a_device_comes_with_its_certificate_in_place_of_a_secret() {
    let world = World::new();
    world.grant(json!({"systemName": "sensor-7", "device": "serial-4711.devices.example"})).await;
    let ask = |caller: Caller| world.ask(Method::Post, ONBOARDING, &BODY, caller, "10.0.0.7");
    static BODY: LazyLock<Value> = LazyLock::new(|| json!({"csr": csr()}));
    let own_cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
    for caller in [
        Caller::unidentified(),
        Caller::device("serial-4712.devices.example"),
        Caller::certified("serial-4711.devices.example", &own_cloud),
        Caller::certified("sensor-7.cloud.operator.arrowhead.eu", &own_cloud),
    ] {
        assert_eq!(ask(caller.clone()).await.status, 401, "{caller:?}");
    }
    assert_eq!(ask(Caller::device("serial-4711.devices.example")).await.status, 201);
}

#[tokio::test]
async fn everything_is_told_to_the_audit_log_and_no_secret_is() {
    let world = World::new();
    let secret = world.grant(json!({"systemName": "sensor-7"})).await;
    world.onboard(json!({"secret": "bodkin1-nonsense", "csr": csr()})).await;
    let answer = world.onboard(json!({"secret": secret, "csr": csr()})).await;
    assert_eq!(answer.status, 201);
    let removed = world.ask(Method::Delete, &format!("{GRANTS}/1"), &Value::Null, Caller::Anonymous, "127.0.0.1").await;
    assert_eq!(removed.status, 200);
    let World { thread, data, trust, .. } = world;
    drop(thread);
    let read = AuditReader::new(&data.path().join("audit")).first(&AuditQuery::default(), 100).unwrap();
    let told: Vec<(Kind, Option<u16>)> = read.iter().map(|read| (read.entry.event.kind, read.entry.event.status)).collect();
    let expected = [
        (Kind::Start, None),
        (Kind::Change, Some(201)),
        (Kind::Denial, Some(401)),
        (Kind::Certificate, Some(201)),
        (Kind::Change, Some(200)),
    ];
    assert_eq!(told, expected);
    assert_eq!(read[2].entry.event.detail["why"], "no such grant, or another secret");
    let issued = &read[3].entry.event;
    assert_eq!((&issued.detail["system"], &issued.detail["grant"]), (&json!("sensor-7"), &json!(1)));
    assert!(trust.ledger().unwrap().find(issued.detail["serial"].as_str().unwrap()).is_some());
    let value = secret.split('-').nth(2).unwrap();
    let everything: String = read.iter().map(|read| String::from_utf8_lossy(&read.line).into_owned()).collect();
    assert!(!everything.contains(value) && !everything.contains("CERTIFICATE REQUEST"), "{everything}");
    let database = std::fs::read(data.path().join("bodkin.sqlite-wal")).unwrap();
    assert!(!database.windows(value.len()).any(|bytes| bytes == value.as_bytes()));
}

#[tokio::test]
async fn what_is_no_grant_is_told_and_insecure_mode_has_none() {
    let world = World::new();
    for (form, word) in [
        (json!({}), "systemName"),
        (json!({"systemName": "sysop"}), "operator"),
        (json!({"systemName": "7"}), "name"),
        (json!({"systemName": "a", "uses": 0}), "times"),
        (json!({"systemName": "a", "expiresInSeconds": 0}), "seconds"),
        (json!({"systemName": "a", "user": 1}), "user"),
    ] {
        let answer = world.ask(Method::Post, GRANTS, &form, Caller::Anonymous, "127.0.0.1").await;
        let told = json_of(&answer)["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 400 && told.contains(word), "{form}: {told}");
    }
    let missing = world.ask(Method::Delete, &format!("{GRANTS}/7"), &Value::Null, Caller::Anonymous, "127.0.0.1").await;
    assert_eq!(missing.status, 404);
    let insecure = World { api: OnboardingApi { store: world.api.store.clone(), onboarding: None }, ..world };
    assert_eq!(insecure.onboard(json!({"csr": csr()})).await.status, 409);
}
