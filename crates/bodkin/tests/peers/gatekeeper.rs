//! Dialogues between a cloud of ours and one that is not written in Rust: a gatekeeper in Java that calls and answers by JMS through ActiveMQ, or Artemis, and whose
//! messages are sealed by jose4j, as those of Arrowhead's Java clouds are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_trust::{TokenVerifier, TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::jms::{self, Peer, put_anchors, put_identity};
use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::secure::{Client, anchor, authority, issue};
use crate::support::side::Side;
use crate::support::skip;

/// The Java cloud's gatekeeper, and its gateway.
const JAVA: &str = "gatekeeper.testcloud1.aitia.arrowhead.eu";
pub const JAVA_GATEWAY: &str = "gateway.testcloud1.aitia.arrowhead.eu";
/// And its QoS Monitor.
pub const JAVA_MONITOR: &str = "qosmonitor.testcloud1.aitia.arrowhead.eu";
/// Ours.
const OURS: &str = "gatekeeper.one.test.arrowhead.eu";
const DAY: Duration = Duration::from_secs(86_400);
/// Who must not answer has had so long, which is longer than an answer has ever taken.
const SILENCE_MS: u64 = 3_000;
/// Who has to answer may take so long.
pub const ANSWER_MS: u64 = 20_000;
/// What the broker asks for beside the certificate.
const PASSCODE: &str = "pass:code";

/// A cloud of ours and a Java one that know each other, with the Java one's broker between them.
pub struct Neighbours {
    pub ours: Side,
    pub java: Peer,
    /// Where the broker speaks STOMP, and its key.
    pub broker: (u16, String),
    /// Key of the Java cloud's gateway.
    pub java_gateway: String,
    /// Key of its QoS Monitor.
    pub java_monitor: String,
}

fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("rights are set");
}

impl Neighbours {
    /// Ours has these flags besides.
    pub fn start<const N: usize>(class_path: &str, place: &TempDir, flags: [&str; N]) -> Self {
        // Our cloud makes its authority at the first start: the broker has to know it.
        let ours = Side::start(place.path(), "one", &[]);
        let own_anchor = TrustDirectory::new(ours.data.join("trust")).anchor().expect("an authority");
        let identity = |name: &str| issue(&authority(), name, &["localhost", "127.0.0.1"], tls::now(), DAY);
        let [broker, gatekeeper, gateway, monitor] =
            ["relay.testcloud1.aitia.arrowhead.eu", JAVA, JAVA_GATEWAY, JAVA_MONITOR].map(identity);
        for (name, identity) in [("broker", &broker), ("gatekeeper", &gatekeeper), ("gateway", &gateway), ("monitor", &monitor)] {
            put_identity(place.path(), name, identity);
        }
        put_anchors(place.path(), &[anchor(), own_anchor]);
        let mut java = Peer::start(class_path, place.path());
        assert_eq!(java.ask(&format!("login bodkin {PASSCODE}")), "asking");
        let port = java.port();
        let key = base64::encode(broker.certificate().public_key_info());
        let relay = ours.done(&format!("relay add 127.0.0.1:{port} --authentication-info {key}"));
        let [java_gateway, java_monitor] = [&gateway, &monitor].map(|system| base64::encode(system.certificate().public_key_info()));
        let mut both = Self { ours, java, broker: (port, key), java_gateway, java_monitor };
        let form = json!([{
            "operator": "aitia", "name": "testcloud1", "secure": true, "neighbor": true, "gatekeeperRelayIds": [relay["id"]],
            "authenticationInfo": base64::encode(gatekeeper.certificate().public_key_info()),
        }]);
        both.call("sysop", "POST", "/gatekeeper/mgmt/clouds", &form, 201);
        // By its certificate alone the broker does not let it in.
        let state = || both.ours.done("relay list")["data"][0]["state"].as_str().unwrap_or_default().to_owned();
        assert!(eventually(|| state().starts_with("down")), "{}", state());
        let Side { cloud, data } = both.ours;
        assert!(cloud.stop().success());
        let logins = place.path().join("logins");
        write_secret(&logins, &format!("# the Java clouds' broker\n127.0.0.1:{port} bodkin {PASSCODE}\n"));
        let logins = logins.to_str().expect("text");
        let cloud =
            Launch::new().secure().data(&data).flags(["--relay-logins", logins, "--neighbor-timeout-ms", "10000"]).flags(flags).start();
        both.ours = Side { cloud, data };
        let state = || both.ours.done("relay list")["data"][0]["state"].as_str().unwrap_or_default().to_owned();
        assert!(eventually(|| state() == "open (STOMP 1.2)"), "{}", state());
        both
    }

    pub fn own_key(&self) -> String {
        base64::encode(&self.ours.system("gatekeeper").key().public_key_info())
    }

    pub fn call(&self, system: &str, method: &str, target: &str, body: &Value, status: u16) -> Value {
        let anchor = TrustDirectory::new(self.ours.data.join("trust")).anchor().expect("an authority");
        Client::believing(&self.ours.system(system), anchor).expect(&self.ours.cloud, method, target, Some(body), status).json()
    }

    /// The Java gatekeeper begins to listen.
    pub fn serve(&mut self) {
        assert_eq!(self.java.ask(&format!("gatekeeper {JAVA}")), "there");
        assert_eq!(self.java.ask(&format!("serve {}", self.own_key())), "serving");
    }

    pub fn answers(&mut self, about: &str, answer: &Value) {
        assert_eq!(self.java.ask(&format!("answer {about} {answer}")), "answering");
    }

    /// What the Java gatekeeper was asked last.
    pub fn asked(&self, about: &str) -> Value {
        let line = self.java.line();
        let json = line.strip_prefix(&format!("asked {about} ")).unwrap_or_else(|| panic!("{line}"));
        serde_json::from_str(json).expect("questions are JSON")
    }

    /// What ours answers the Java gatekeeper; `None`: nothing.
    pub fn told(&mut self, within_ms: u64, about: &str, question: &Value) -> Option<Value> {
        let line = self.java.ask(&format!("ask {OURS} {} {within_ms} {about} {question}", self.own_key()));
        if line == "silence" {
            return None;
        }
        let json = line.strip_prefix("answer ").unwrap_or_else(|| panic!("{line}"));
        Some(serde_json::from_str(json).expect("answers are JSON"))
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_gatekeeper_and_ours_ask_and_answer_each_other() {
    ask_and_answer_each_other("a_java_gatekeeper_and_ours_ask_and_answer_each_other", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_gatekeeper_and_ours_ask_and_answer_each_other_at_artemis() {
    ask_and_answer_each_other("a_java_gatekeeper_and_ours_ask_and_answer_each_other_at_artemis", "artemis");
}

fn ask_and_answer_each_other(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match jms::build(project, place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note(test, &reason),
    };
    let mut both = Neighbours::start(&class_path, &place, []);
    both.serve();
    we_ask(&mut both);
    they_ask(&mut both);
    strangers_hear_nothing(&mut both);
    the_broker_goes_and_comes_back(&mut both);
}

/// By their own gatekeeper's certificate, as core systems ask it.
fn we_ask(both: &mut Neighbours) {
    let heat = json!({"serviceDefinitionRequirement": "heat"});
    let found = json!({
        "providerCloud": {"operator": "aitia", "name": "testcloud1", "secure": true, "neighbor": false, "authenticationInfo": "another's word"},
        "requiredServiceDefinition": "heat", "availableInterfaces": ["HTTP-SECURE-JSON"], "numOfProviders": 1, "qosMeasurements": null,
        "serviceMetadata": null, "gatewayIsMandatory": false, "verifiedRelays": [],
    });
    both.answers("gsd_poll", &found);
    let result = json!({
        "provider": {"systemName": "stove", "address": "192.0.2.7", "port": 9000, "authenticationInfo": "key"},
        "service": {"id": 1, "serviceDefinition": "heat"}, "serviceUri": "/heat", "secure": "TOKEN", "metadata": {},
        "interfaces": [{"id": 1, "interfaceName": "HTTP-SECURE-JSON"}], "version": 1,
        "authorizationTokens": {"HTTP-SECURE-JSON": "eyJ.token"}, "warnings": [],
    });
    both.answers("icn_proposal", &json!({"response": [result], "useGateway": false, "relay": null, "connectionInfo": null}));
    let form = json!({
        "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000}, "requestedService": heat,
        "orchestrationFlags": {"overrideStore": true, "triggerInterCloud": true},
    });
    let granted = both.call("sysop", "POST", "/orchestrator/orchestration", &form, 200);
    let asked = both.asked("gsd_poll");
    let cloud = (&asked["requesterCloud"]["operator"], &asked["requesterCloud"]["name"]);
    assert_eq!((cloud, &asked["requestedService"]["serviceDefinitionRequirement"]), ((&json!("test"), &json!("one")), &json!("heat")));
    let proposed = both.asked("icn_proposal");
    assert_eq!((&proposed["requesterSystem"]["systemName"], &proposed["requesterCloud"]["name"]), (&json!("sysop"), &json!("one")));
    let result = &granted["response"][0];
    let provider = &result["provider"];
    assert_eq!((&provider["systemName"], &provider["address"]), (&json!("stove"), &json!("192.0.2.7")), "{granted}");
    assert_eq!(result["authorizationTokens"], json!({"HTTP-SECURE-JSON": "eyJ.token"}), "{granted}");
    assert!(result["warnings"].as_array().is_some_and(|warnings| warnings.contains(&json!("FROM_OTHER_CLOUD"))), "{granted}");

    // Its refusal is told as it came.
    both.answers("gsd_poll", &json!({"errorMessage": "no, thank you", "errorCode": 401, "exceptionType": "AUTH", "origin": "java"}));
    let refused = both.call("orchestrator", "POST", "/gatekeeper/init_gsd", &json!({"requestedService": heat}), 401);
    both.asked("gsd_poll");
    assert_eq!((&refused["errorMessage"], &refused["exceptionType"]), (&json!("no, thank you"), &json!("AUTH")));
    // What is no answer is told as that, with the cloud's name.
    both.answers("gsd_poll", &json!("garbage"));
    let garbage = both.call("orchestrator", "POST", "/gatekeeper/init_gsd", &json!({"requestedService": heat}), 500);
    both.asked("gsd_poll");
    assert!(garbage["errorMessage"].as_str().is_some_and(|told| told.contains("gatekeeper has sent what is no answer")), "{garbage}");
}

fn they_ask(both: &mut Neighbours) {
    let sensor = both.ours.system("sensor");
    let key = base64::encode(&sensor.key().public_key_info());
    both.ours.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --secure TOKEN --authentication-info {key}"
    ));
    let question = json!({
        "requestedService": {"serviceDefinitionRequirement": "heat", "interfaceRequirements": null, "securityRequirements": null,
            "metadataRequirements": null, "versionRequirement": null, "pingProviders": false},
        "requesterCloud": {"operator": "aitia", "name": "testcloud1", "secure": true, "neighbor": false, "authenticationInfo": "key"},
        "gatewayIsPresent": false, "needQoSMeasurements": false,
    });
    // Without a rule it is as if it was not there.
    let nothing = both.told(ANSWER_MS, "gsd_poll", &question).expect("an answer");
    assert_eq!((&nothing["providerCloud"], nothing.get("errorCode")), (&Value::Null, None), "{nothing}");
    let clouds = both.ours.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "testcloud1").expect("it is known")["id"].clone();
    both.ours.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let found = both.told(ANSWER_MS, "gsd_poll", &question).expect("an answer");
    assert_eq!((&found["providerCloud"]["name"], &found["numOfProviders"]), (&json!("one"), &json!(1)), "{found}");
    let proposal = json!({
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "requesterCloud": {"operator": "aitia", "name": "testcloud1", "authenticationInfo": "key"},
        "requesterSystem": {"systemName": "display", "address": "10.0.0.1", "port": 8000},
        "preferredSystems": [], "preferredGatewayRelays": [], "knownGatewayRelays": [],
        "negotiationFlags": {"matchmaking": true}, "gatewayIsPresent": false, "consumerGatewayPublicKey": null,
    });
    let granted = both.told(ANSWER_MS, "icn_proposal", &proposal).expect("an answer");
    let result = &granted["response"][0];
    assert_eq!((&result["provider"]["systemName"], &granted["useGateway"]), (&json!("sensor"), &json!(false)), "{granted}");
    let token = result["authorizationTokens"].as_object().and_then(|tokens| tokens.values().next()?.as_str()).expect("a token");
    let authorization = base64::encode(&both.ours.system("authorization").key().public_key_info());
    let verifier = TokenVerifier::new(sensor.key(), &authorization).expect("keys");
    let consumer = SystemCommonName::parse("display.testcloud1.aitia.arrowhead.eu").expect("a name");
    assert!(verifier.verify(token, &consumer, tls::now()).is_ok(), "{granted}");
    // One of a later version may ask what is not known here, and say more than is.
    let unknown = both.told(ANSWER_MS, "future_poll", &question).expect("an answer");
    assert_eq!(unknown["errorCode"], json!(400), "{unknown}");
    assert!(unknown["errorMessage"].as_str().is_some_and(|told| told.contains("future_poll")), "{unknown}");
    let mut later = question.clone();
    later["futureMember"] = json!({"of": "a later version"});
    let found = both.told(ANSWER_MS, "gsd_poll", &later).expect("an answer");
    assert_eq!(found["numOfProviders"], json!(1), "{found}");
    // Who says to be another cloud than the one whose key has signed is refused, by an error that a Java cloud reads as one.
    let mut lie = question.clone();
    lie["requesterCloud"]["name"] = json!("testcloud2");
    let refused = both.told(ANSWER_MS, "gsd_poll", &lie).expect("an answer");
    assert_eq!((&refused["errorCode"], &refused["exceptionType"]), (&json!(401), &json!("AUTH")), "{refused}");
    let malformed = both.told(ANSWER_MS, "gsd_poll", &json!([1, 2])).expect("an answer");
    assert_eq!(malformed["errorCode"], json!(400), "{malformed}");
}

fn strangers_hear_nothing(both: &mut Neighbours) {
    // The call that was answered last, once more.
    assert_eq!(both.java.ask(&format!("again {OURS} {SILENCE_MS}")), "silence");
    assert_eq!(both.java.ask("forge"), "forged");
    assert_eq!(both.told(SILENCE_MS, "access_type", &json!({})), None, "another key has signed it");
    let told = both.ours.cloud.stderr();
    assert!(told.contains("the call is not taken"), "the own log says why: {told}");
}

fn the_broker_goes_and_comes_back(both: &mut Neighbours) {
    assert_eq!(both.java.ask("stop"), "stopped");
    let gone = both.ours.run("cloud ping testcloud1");
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    // As it was, and its gatekeeper has its own key again.
    both.java.port();
    both.serve();
    both.answers("access_type", &json!({"directAccess": true}));
    let is_back = || both.ours.run("cloud ping testcloud1").status.success();
    assert!(eventually(is_back), "ours said: {}", both.ours.cloud.stderr());
}
