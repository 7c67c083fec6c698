//! Java with nothing but its own library as a client over mutual TLS: the key stores that `bodkin cert` writes, every core system,
//! both versions of TLS.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use bodkin_trust::{Identity, base64};
use serde_json::{Value, json};

use crate::program::{good, told};
use crate::support::certificates::{Certificates, PASSWORD};
use crate::support::cloud::{Cloud, Launch, System, system_of};
use crate::support::secure::CLOUD;
use crate::support::skip;

/// The system that the certificates are of.
const SYSTEM: &str = "javaclient";
const VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

/// A cloud in secure mode, and a folder with key and trust stores for it.
struct Scene {
    place: Certificates,
    cloud: Cloud,
}

impl Scene {
    /// Nothing where Java is not installed, which is noted.
    fn new(test: &str) -> Option<Self> {
        let place = Certificates::init();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/java_client/Client.java");
        let Ok(compiled) = place.program("javac", "-d .").arg(source).output() else {
            skip::note(test, "no Java compiler is installed");
            return None;
        };
        good(&compiled);
        issue(&place);
        place.done("cert export --truststore trust.p12 --password-file password");
        let cloud = Launch::new().secure().data(&place.path(".bodkin")).start();
        Some(Self { place, cloud })
    }

    /// A request of the client: method, target, body.
    fn request(&self, method: &str, target: &str, body: Option<&Value>) -> String {
        let body = body.map(|body| format!(" {body}")).unwrap_or_default();
        format!("{method} https://{}{target}{body}\n", self.cloud.address(system_of(target)))
    }

    fn echoes(&self) -> String {
        System::CORE.iter().map(|of| self.request("GET", &format!("/{}/echo", of.name()), None)).collect()
    }

    /// What it is answered that makes these requests with this key store (and with further arguments), a line each.
    #[track_caller]
    fn answers(&self, version: &str, key_store: &Path, further: &[&str], requests: &str) -> Vec<String> {
        let mut command = self.place.program("java", &format!("-Djdk.tls.client.protocols={version} -cp . Client"));
        command.arg(key_store).args(["trust.p12", "password"]).args(further);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("Java starts");
        // Fewer bytes than a pipe holds, so that nobody waits for anybody. Its end is told by what it prints.
        let _ = client.stdin.take().expect("standard input is piped").write_all(requests.as_bytes());
        let output = client.wait_with_output().expect("the client ends");
        good(&output);
        let answers: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        assert_eq!(answers.len(), requests.lines().count(), "{}", told(&output));
        answers
    }
}

fn issue(place: &Certificates) {
    place.done(&format!("cert issue --system {SYSTEM} --p12 {SYSTEM}.p12 --password-file password"));
}

fn own_store(scene: &Scene) -> std::path::PathBuf {
    scene.place.path(&format!("{SYSTEM}.p12"))
}

/// The key store's system under this name.
fn registration(provider: &str, key_store: &Path) -> Value {
    let identity = Identity::read(key_store, Some(PASSWORD)).expect("an identity");
    json!({
        "serviceDefinition": "java-service", "serviceUri": "/java", "interfaces": ["HTTP-SECURE-JSON"], "secure": "CERTIFICATE",
        "providerSystem": {"systemName": provider, "address": "127.0.0.1", "port": 4711,
            "authenticationInfo": base64::encode(&identity.key().public_key_info())},
    })
}

#[test]
#[ignore = "peer: ./x test --all"]
fn java_registers_and_queries_with_a_key_store() {
    let Some(scene) = Scene::new("java_registers_and_queries_with_a_key_store") else { return };
    for version in VERSIONS {
        let query = |service: &str| json!({"serviceDefinitionRequirement": service});
        let requests = scene.echoes()
            + &scene.request("POST", "/serviceregistry/register", Some(&registration(SYSTEM, &own_store(&scene))))
            + &scene.request("POST", "/serviceregistry/register", Some(&registration("somebody", &own_store(&scene))))
            + &scene.request("POST", "/serviceregistry/query", Some(&query("orchestration-service")))
            + &scene.request("POST", "/serviceregistry/query", Some(&query("java-service")))
            + &scene.request("DELETE", &unregistration(), None);
        let answers = scene.answers(version, &own_store(&scene), &[], &requests);
        for answer in &answers[..4] {
            assert_eq!(*answer, format!("200 {version} Got it!"));
        }
        let body = |answer: usize, status: u16| -> Value {
            let body = answers[answer].strip_prefix(&format!("{status} {version} ")).unwrap_or_else(|| panic!("{answers:?}"));
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
        };
        assert_eq!(body(4, 201)["provider"]["systemName"], SYSTEM);
        let unauthorized = format!("{SYSTEM}.{CLOUD} is unauthorized to access https://");
        // Neither another's name nor what only the Orchestrator may look up.
        for refused in [5, 7] {
            assert!(body(refused, 401)["errorMessage"].as_str().is_some_and(|message| message.starts_with(&unauthorized)), "{answers:?}");
        }
        assert_eq!(body(6, 200)["serviceQueryData"][0]["provider"]["systemName"], "orchestrator");
        assert_eq!(answers[8], format!("200 {version} "));
    }
}

fn unregistration() -> String {
    let name = format!("service_definition=java-service&system_name={SYSTEM}&address=127.0.0.1&port=4711");
    format!("/serviceregistry/unregister?{name}&service_uri=/java")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn java_with_another_clouds_key_store_is_refused() {
    let Some(scene) = Scene::new("java_with_another_clouds_key_store_is_refused") else { return };
    let other = Certificates::empty();
    other.done("cert init --cloud testcloud2 --operator aitia");
    issue(&other);
    let store = other.path(&format!("{SYSTEM}.p12"));
    for version in VERSIONS {
        for how in [&[][..], &["insist"]] {
            for answer in scene.answers(version, &store, how, &scene.echoes()) {
                assert!(answer.starts_with("refused javax.net.ssl.SSL"), "{version}: {answer}");
            }
        }
    }
    let log = scene.cloud.stderr();
    for of in System::CORE {
        for certificate in ["none".to_owned(), format!("{SYSTEM}.testcloud2.aitia.arrowhead.eu")] {
            let told = format!("certificate=\"{certificate}\"");
            let is_told = log.lines().any(|line| line.contains(&format!("system=\"{}\"", of.name())) && line.contains(&told));
            assert!(is_told, "{} {certificate}: {log}", of.name());
        }
    }
    let served = scene.answers("TLSv1.3", &own_store(&scene), &[], &scene.echoes());
    assert!(served.iter().all(|answer| answer == "200 TLSv1.3 Got it!"), "{served:?}");
}
