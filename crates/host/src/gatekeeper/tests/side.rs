//! A cloud of these tests: its control plane and Gatekeeper, without ports.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bodkin_arrowhead::{
    authorization::token::TokenLifetimes,
    caller::Caller,
    cloud::OwnCloud,
    common_name::{CloudCommonName, SystemCommonName},
    core_service::CoreSystem,
    dialogue::FixedAnswers,
    name::{CloudName, NamingRules},
};
use bodkin_broker::topic::Platform;
use bodkin_store::{
    Opened, Store,
    audit::{AuditLog, AuditThread},
};
use bodkin_trust::{Authority, Identity, Profile};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{
    audit::{AUDIT_LIMITS, Audit, start_event},
    control::{Control, Pings, now},
    destination::Destinations,
    gatekeeper::{Gatekeeper, Links, answer_calls},
    gateway::Gateway,
    limits::Limits,
    quotas::OwnerQuota,
    relay::{Relay, RelayPlace, memory::MemoryRelay},
    request::{Method, Request, split_target},
    shard::Shard,
    token::TokenIssuer,
    topics::{RealTimeTopics, pushed::PushedWishes},
};

const DAY: Duration = Duration::from_secs(86_400);
/// The operator of all clouds of these tests.
const OPERATOR: &str = "aitia";

/// Identities of a cloud, of a root of its own.
struct Identities {
    gatekeeper: Identity,
    authorization: Identity,
}

impl Identities {
    fn new(cloud: &str) -> Self {
        let name = CloudCommonName::parse(&format!("{cloud}.{OPERATOR}.arrowhead.eu")).unwrap();
        let authority = Authority::root(now(), DAY).unwrap().issue_cloud(&name, now(), DAY).unwrap();
        let issue = |system: &str| {
            let name = SystemCommonName::parse(&format!("{system}.{name}")).unwrap();
            authority.issue(&Profile::system(&name, &[], now(), DAY)).unwrap()
        };
        Self { gatekeeper: issue("gatekeeper"), authorization: issue("authorization") }
    }
}

static ONE: LazyLock<Identities> = LazyLock::new(|| Identities::new("one"));
static TWO: LazyLock<Identities> = LazyLock::new(|| Identities::new("two"));
/// Of the same name as the first, and with other keys.
static FALSE_ONE: LazyLock<Identities> = LazyLock::new(|| Identities::new("one"));

/// Which cloud a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    One,
    Two,
    /// Says to be the first, and has not its key.
    FalseOne,
}

impl Cloud {
    fn identities(self) -> &'static Identities {
        match self {
            Self::One => &ONE,
            Self::Two => &TWO,
            Self::FalseOne => &FALSE_ONE,
        }
    }

    pub fn name(self) -> &'static str {
        if self == Self::Two { "two" } else { "one" }
    }

    pub fn gatekeeper(self) -> &'static Identity {
        &self.identities().gatekeeper
    }
}

/// Whatever place is named, it is this relay.
impl Links for MemoryRelay {
    fn link(&self, _: &RelayPlace) -> Arc<dyn Relay> {
        Arc::new(self.clone())
    }

    fn keep(&self, _: &BTreeSet<RelayPlace>) {}

    fn all(&self) -> Vec<Arc<dyn Relay>> {
        vec![Arc::new(self.clone())]
    }
}

pub struct Side {
    pub control: Arc<Control>,
    listening: JoinHandle<()>,
    _opened: Opened,
    _audit: AuditThread,
    _data: TempDir,
}

impl Drop for Side {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Side {
    /// A cloud at a relay, which knows no other one. Each step of its dialogues may take `patience`.
    pub async fn start(cloud: Cloud, relay: &MemoryRelay, patience: Duration) -> Self {
        Self::start_with(cloud, relay, patience, (None, FixedAnswers::default())).await
    }

    /// The same with a Gateway, by which alone its providers are reached, and with answers that are fixed.
    pub async fn start_with(
        cloud: Cloud,
        relay: &MemoryRelay,
        patience: Duration,
        (gateway, fixed): (Option<Arc<Gateway>>, FixedAnswers),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let opened = Store::open(data.path()).unwrap();
        let own = OwnCloud { operator: CloudName::parse(OPERATOR).unwrap(), name: CloudName::parse(cloud.name()).unwrap(), secure: true };
        opened.store.write(move |draft| draft.ensure_own_cloud(&own), |_, ()| ()).await.unwrap();
        let (log, audit) = AuditLog::open(&data.path().join("audit"), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        let identities = cloud.identities();
        let gatekeeper = Gatekeeper::new(&identities.gatekeeper, patience, Box::new(relay.clone())).unwrap();
        let gatekeeper = Arc::new(gatekeeper.answering(fixed));
        let control = Arc::new(Control {
            audit: Audit::new(log),
            traces: None,
            tokens: Some(Arc::new(TokenIssuer::start(&identities.authorization, TokenLifetimes::default()).unwrap())),
            gatekeeper: Some(gatekeeper),
            gateway_is_mandatory: gateway.is_some(),
            unsubscribe_by_any: false,
            malformed: Default::default(),
            gateway,
            store: opened.store.clone(),
            stages: Arc::default(),
            naming: NamingRules { secure_services: true, ..NamingRules::default() },
            address_detection: None,
            pings: Pings::new(Duration::from_secs(1), Destinations::new(&[])),
            log_book: Arc::default(),
            subscriptions_max: 10,
            owner_quota: Arc::new(OwnerQuota::new(&Limits::default())),
            inbox: Shard::inbox().unwrap().1,
            wishes: PushedWishes::new(
                Arc::new(RealTimeTopics::new(Platform::default(), Default::default()).unwrap()),
                Shard::inbox().unwrap().1,
            ),
            orchestrator: Default::default(),
            qualities: Arc::default(),
        });
        let listening = tokio::spawn(answer_calls(control.clone()));
        Self { control, listening, _opened: opened, _audit: audit, _data: data }
    }

    /// Makes another cloud known here, with its key and the relay.
    pub async fn knows(&self, other: Cloud, relay: &MemoryRelay) {
        self.knows_as(other.name(), other, relay).await;
    }

    /// The same of a cloud that nobody is, by this name: whoever asks it is not answered.
    pub async fn knows_silent(&self, name: &str, relay: &MemoryRelay) {
        self.knows_as(name, Cloud::FalseOne, relay).await;
    }

    async fn knows_as(&self, name: &str, key: Cloud, relay: &MemoryRelay) {
        let relays = json!([{"address": &*relay.place().address, "port": relay.place().port, "secure": true}]);
        let found = self.ask(CoreSystem::Gatekeeper, Method::Get, "mgmt/relays", Value::Null).await;
        let id = match found["data"][0]["id"].as_i64() {
            Some(id) => id,
            None => self.ask(CoreSystem::Gatekeeper, Method::Post, "mgmt/relays", relays).await["data"][0]["id"].as_i64().unwrap(),
        };
        let key = bodkin_trust::base64::encode(key.gatekeeper().certificate().public_key_info());
        let form = json!([{
            "operator": OPERATOR, "name": name, "secure": true, "neighbor": true, "authenticationInfo": key, "gatekeeperRelayIds": [id],
        }]);
        self.ask(CoreSystem::Gatekeeper, Method::Post, "mgmt/clouds", form).await;
    }

    /// Offers a service here, and grants it to another cloud.
    pub async fn offers(&self, service: &str, provider: &Value, to: Option<Cloud>) {
        let form = json!({
            "serviceDefinition": service, "providerSystem": provider, "serviceUri": "/it", "secure": "TOKEN", "interfaces": ["HTTP-SECURE-JSON"],
        });
        let made = self.ask(CoreSystem::ServiceRegistry, Method::Post, "register", form).await;
        let Some(cloud) = to else { return };
        let rule = json!({
            "cloudId": self.id_of(cloud).await,
            "providerIdList": [made["provider"]["id"]],
            "serviceDefinitionIdList": [made["serviceDefinition"]["id"]],
            "interfaceIdList": [made["interfaces"][0]["id"]],
        });
        self.ask(CoreSystem::Authorization, Method::Post, "mgmt/intercloud", rule).await;
    }

    /// The row of another cloud.
    pub async fn id_of(&self, other: Cloud) -> i64 {
        let clouds = self.ask(CoreSystem::Gatekeeper, Method::Get, "mgmt/clouds", Value::Null).await;
        let rows = clouds["data"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == other.name()).unwrap()["id"].as_i64().unwrap()
    }

    /// Asks a core system; it has to answer with success.
    pub fn ask(&self, system: CoreSystem, method: Method, target: &str, body: Value) -> impl Future<Output = Value> + use<> {
        let (asked, target) = (self.try_ask(system, method, target, body), target.to_owned());
        async move {
            let (status, answer) = asked.await;
            assert!((200..300).contains(&status), "{target}: {status} {answer}");
            answer
        }
    }

    /// Asks a core system; gives the status and the answer.
    pub fn try_ask(&self, system: CoreSystem, method: Method, target: &str, body: Value) -> impl Future<Output = (u16, Value)> + use<> {
        let target = format!("/{}/{target}", system.name());
        let (path, query) = split_target(&target);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request {
            caller: Caller::Anonymous,
            sender: None,
            method,
            path: path.into_owned(),
            query,
            url: format!("https://h:1{target}"),
            content_type: if body.is_empty() { "" } else { "application/json" }.into(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body,
        };
        let control = self.control.clone();
        async move {
            let answer = control.answer(system, &request).await;
            (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
        }
    }

    /// Asks the Orchestrator for a consumer.
    pub async fn orchestrate(&self, flags: &[&str], service: Value) -> (u16, Value) {
        let flags: serde_json::Map<String, Value> = flags.iter().map(|flag| ((*flag).to_owned(), true.into())).collect();
        let form = json!({"requesterSystem": display(), "requestedService": service, "orchestrationFlags": flags});
        self.try_ask(CoreSystem::Orchestrator, Method::Post, "orchestration", form).await
    }
}

/// The consumer.
pub fn display() -> Value {
    json!({"systemName": "display", "address": "10.0.1.1", "port": 8000})
}
