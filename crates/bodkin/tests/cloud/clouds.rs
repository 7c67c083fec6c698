//! Two clouds with roots of their own on one host, made known to each other by their operators' commands: a service of one is used by a consumer of the other.

mod tunnels;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use bodkin_arrowhead::{common_name::SystemCommonName, name::SystemName};
use bodkin_trust::{Identity, TokenVerifier, TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::secure::Client;

const DAY: Duration = Duration::from_secs(86_400);

/// A cloud, and where its operator works.
struct Side {
    cloud: Cloud,
    data: PathBuf,
}

impl Side {
    fn start<const N: usize>(place: &Path, name: &str, flags: [&str; N]) -> Self {
        let data = place.join(name);
        let cloud = Launch::new().secure().data(&data).flags(["--cloud", name, "--operator", "test"]).flags(flags).start();
        Self { cloud, data }
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(BINARY);
        command.args(line.split_whitespace()).current_dir(&self.data).arg("--data").arg(&self.data).arg("--output=json");
        command.env("BODKIN_MONITOR", self.cloud.address(System::Monitor).to_string());
        command.env("BODKIN_SERVICE_REGISTRY", self.cloud.address(System::ServiceRegistry).to_string());
        command.output().expect("the binary starts")
    }

    /// What a command prints, which must do what it is asked.
    #[track_caller]
    fn done(&self, line: &str) -> Value {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}; the cloud said: {}", self.cloud.stderr());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {output:?}"))
    }

    /// Introduces this cloud to another one, as two operators do.
    #[track_caller]
    fn introduce_to(&self, other: &Self) {
        let written = self.done("cloud introduce --out introduction.toml");
        let fingerprint = written["fingerprint"].as_str().expect("a fingerprint");
        let file = self.data.join("introduction.toml");
        other.done(&format!("cloud add {} --fingerprint {fingerprint}", file.display()));
    }

    /// The identity of a system of this cloud.
    fn system(&self, name: &str) -> Identity {
        let directory = TrustDirectory::new(self.data.join("trust"));
        directory.ensure_identity(&SystemName::parse(name).expect("a name"), &[], tls::now(), DAY).expect("an identity")
    }
}

/// Two clouds that know each other; the relay is inside the first.
fn neighbours(place: &Path) -> (Side, Side) {
    let one = Side::start(place, "one", ["--relay-listen", "127.0.0.1:0", "--neighbor-timeout-ms", "2000"]);
    let two = Side::start(place, "two", ["--neighbor-timeout-ms", "2000"]);
    let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    one.done(&format!("relay add {relay} --own"));
    one.introduce_to(&two);
    two.introduce_to(&one);
    // A call is lost that is made before the other one listens.
    let is_there = |from: &Side, to: &str| eventually(|| from.run(&format!("cloud ping {to}")).status.success());
    assert!(is_there(&two, "one") && is_there(&one, "two"), "one said: {}\ntwo said: {}", one.cloud.stderr(), two.cloud.stderr());
    (one, two)
}

#[test]
fn a_consumer_of_one_cloud_uses_a_service_of_the_other() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let sensor = one.system("sensor");
    let key = base64::encode(&sensor.key().public_key_info());
    one.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --secure TOKEN --authentication-info {key}"
    ));
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    let ask = |flags: Value| {
        let form = json!({
            "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
            "requestedService": {"serviceDefinitionRequirement": "heat"}, "orchestrationFlags": flags,
        });
        let operator = two.system("sysop");
        let anchor = TrustDirectory::new(two.data.join("trust")).anchor().expect("an authority");
        Client::believing(&operator, anchor).expect(&two.cloud, "POST", "/orchestrator/orchestration", Some(&form), 200).json()
    };
    // Without a rule it is as if it was not there.
    let nothing = ask(json!({"overrideStore": true, "enableInterCloud": true}));
    assert_eq!(nothing, json!({"response": []}));
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let granted = ask(json!({"overrideStore": true, "enableInterCloud": true, "matchmaking": true}));
    let result = &granted["response"][0];
    assert_eq!((&result["provider"]["systemName"], &result["serviceUri"]), (&json!("sensor"), &json!("/heat")), "{granted}");
    assert!(result["warnings"].as_array().is_some_and(|warnings| warnings.contains(&json!("FROM_OTHER_CLOUD"))), "{granted}");
    // The provider takes the token of the consumer of the other cloud, and of nobody else.
    let token = result["authorizationTokens"].as_object().and_then(|tokens| tokens.values().next()?.as_str()).expect("a token");
    let authorization = base64::encode(&one.system("authorization").key().public_key_info());
    let verifier = TokenVerifier::new(sensor.key(), &authorization).expect("keys");
    let caller = |name: &str| SystemCommonName::parse(&format!("{name}.test.arrowhead.eu")).expect("a name");
    assert!(verifier.verify(token, &caller("sysop.two"), tls::now()).is_ok());
    assert!(verifier.verify(token, &caller("sysop.one"), tls::now()).is_err());
    // The audit log of the cloud that has granted it says to whom.
    let is_told = || {
        let entries = one.run("audit tail --count 100 --kind orchestration");
        String::from_utf8_lossy(&entries.stdout).contains("gatekeeper.two.test.arrowhead.eu")
    };
    assert!(eventually(is_told), "{:?}", one.run("audit tail --count 100"));
}

#[test]
fn a_neighbour_that_is_gone_is_told_by_its_name_and_is_there_again_when_it_is_back() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let Side { cloud, data } = one;
    let relay = cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    cloud.kill();
    let gone = two.run("cloud ping one");
    let told = String::from_utf8_lossy(&gone.stdout).into_owned();
    assert!(gone.status.code() == Some(1) && told.contains("one.test"), "{gone:?}");
    let cloud = Launch::new().secure().data(&data).flags(["--relay-listen", &relay]).start();
    let is_back = || two.run("cloud ping one").status.success();
    assert!(eventually(is_back), "two said: {}\none said: {}", two.cloud.stderr(), cloud.stderr());
}
