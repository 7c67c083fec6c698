//! A client library from outside, arrowhead-client (Python), in secure mode: its provider registers a service, its consumer is
//! orchestrated and calls it with the token.

use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::program::{good, python};
use crate::support::certificates::Certificates;
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::{eventually, eventually_some};
use crate::support::ports::held_port;

const TEST: &str = "a_python_library_offers_a_service_and_calls_it_with_a_token";
/// Names the Python that `./x test --all` has installed the library for.
const PYTHON_VARIABLE: &str = "BODKIN_ARROWHEAD_CLIENT";
const PROVIDER: &str = "pythonprovider";
const CONSUMER: &str = "pythonconsumer";
const SERVICE: &str = "reverse";
/// What the provider's process prints.
const PROVIDER_LOG: &str = "provider.log";

/// A cloud in secure mode and the library's two systems, with certificates of `bodkin cert`.
struct Scene {
    python: String,
    place: Certificates,
    cloud: Cloud,
}

impl Scene {
    fn new(python: String) -> Self {
        let place = Certificates::init();
        for system in [PROVIDER, CONSUMER] {
            place.done(&format!("cert issue --system {system} --san 127.0.0.1 --out ."));
        }
        // OpenSSL, which Python uses, wants a chain that ends in a root.
        place.done("cert export --truststore authorities.pem --format pem --with-root");
        let cloud = Launch::new().secure().data(&place.path(".bodkin")).start();
        Self { python, place, cloud }
    }

    /// A script of the library as this system, which listens on `port`, if it does.
    fn script(&self, name: &str, system: &str, port: u16) -> Command {
        let core = |of| self.cloud.address(of).port();
        let settings = json!({
            "name": system, "port": port, "certificate": format!("{system}.crt"), "key": format!("{system}.key"),
            "authorities": "authorities.pem",
            "core": {
                "service_registry": core(System::ServiceRegistry),
                "authorization": core(System::Authorization),
                "orchestrator": core(System::Orchestrator),
            },
        });
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/arrowhead_client").join(name);
        let mut command = self.place.program(&self.python, "");
        command.arg(source).arg(settings.to_string());
        // The library keeps its logs in the user's folder.
        command.env("HOME", self.place.path("")).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
        command
    }

    /// `bodkin` with the words of `line` on the cloud: as its operator, or as `--cert` says.
    #[track_caller]
    fn bodkin(&self, line: &str) -> Value {
        self.place.json(&format!("{line} --service-registry {}", self.cloud.address(System::ServiceRegistry)))
    }

    fn is_registered(&self) -> bool {
        self.bodkin("service list").to_string().contains(&format!("\"{SERVICE}\""))
    }

    /// What the consumer found and was answered.
    #[track_caller]
    fn consume(&self) -> Value {
        let output = self.script("consumer.py", CONSUMER, 1).output().expect("Python starts");
        good(&output);
        serde_json::from_slice(&output.stdout).expect("one JSON document")
    }
}

/// The provider's process, with its service registered.
struct Provider(Child);

impl Provider {
    #[track_caller]
    fn start(scene: &Scene) -> Self {
        let port = held_port();
        let log = || File::create(scene.place.path(PROVIDER_LOG)).expect("a file is made");
        let child = scene.script("provider.py", PROVIDER, port).stdout(Stdio::null()).stderr(log()).spawn().expect("Python starts");
        let provider = Self(child);
        // It registers, then it listens.
        let listens = eventually(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        assert!(listens, "{}", provider_log(scene));
        provider
    }

    /// Asks it to end, which it does in good order.
    #[track_caller]
    fn stop(mut self, scene: &Scene) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"));
        signal::kill(pid, Signal::SIGTERM).expect("the provider is there to be signalled");
        let ended = eventually_some(|| self.0.try_wait().expect("a child can be waited for"));
        assert!(ended.is_some_and(|status| status.success()), "{}", provider_log(scene));
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn provider_log(scene: &Scene) -> String {
    std::fs::read_to_string(scene.place.path(PROVIDER_LOG)).unwrap_or_default()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_python_library_offers_a_service_and_calls_it_with_a_token() {
    let Some(python) = python(PYTHON_VARIABLE, "arrowhead_client", TEST) else { return };
    let scene = Scene::new(python);
    let provider = Provider::start(&scene);
    assert!(scene.is_registered());
    scene.bodkin(&format!("system add {CONSUMER} --address 127.0.0.1 --port 1 --cert {CONSUMER}.crt"));
    assert_eq!(scene.consume(), json!({"found": false}), "nobody allows it yet");

    scene.bodkin(&format!("auth add --consumer {CONSUMER} --provider {PROVIDER} --service {SERVICE}"));
    let consumed = scene.consume();
    assert_eq!(consumed["calls"][0], json!({"status": 200, "body": {"reversed": [3, 2, 1]}}), "{}", provider_log(&scene));
    // What the library makes of a token that it cannot open is an error of its own, 500.
    for (call, status) in [(1, 500), (2, 403)] {
        assert_eq!(consumed["calls"][call]["status"], status, "{consumed}");
        assert!(consumed["calls"][call]["body"]["reversed"].is_null(), "{consumed}");
    }

    provider.stop(&scene);
    assert!(!scene.is_registered(), "it takes its service back: {}", provider_log(&scene));
}
