//! Schemathesis calls every documented operation with what its document allows and with what it does not, and holds the
//! answers against the document: in insecure mode as anybody, in secure mode as the operator.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::cloud::{Cloud, Launch, System};
use crate::support::secure::SecureCloud;
use crate::support::skip;

/// Names the program that `./x test --all` has installed.
const PROGRAM_VARIABLE: &str = "BODKIN_SCHEMATHESIS";
/// For all runs of a test together; what takes longer hangs.
const TIME_MAX: Duration = Duration::from_secs(900);
/// Calls of one operation in a run's second phase; the first covers every limit of the document. In secure mode, where every connection has its handshake, fewer.
const EXAMPLES_MAX: &str = "60";
const EXAMPLES_MAX_SECURE: &str = "10";
/// The same calls every time.
const SEED: &str = "1";

/// Streams, which never end, and what needs keys, which insecure mode refuses with upstream's 500.
const LEFT_OUT: &str = "^/(api/v1/(live|events)|eventhandler/(events|subscription)|authorization/(publickey|token.*))$";

/// Streams; and what would revoke the certificate that is shown, which takes serials from the list of all.
const LEFT_OUT_SECURE: &str = "^/(api/v1/(live|events|certificates/.*/revoke)|eventhandler/(events|subscription))$";

/// What is held against the document, by what is sent. Malformed requests have upstream's empty 400, which no schema fits.
const RUNS: [(&str, &str); 2] = [
    ("positive", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"),
    ("all", "no_failure_of_ours,status_code_conformance,unsupported_method,allow_header_conformance"),
];

/// A text that is longer than its column is answered with upstream's 500 (reference 1.7); no other 500 is meant.
const HOOKS: &str = r#"import schemathesis

@schemathesis.check
def no_failure_of_ours(ctx, response, case):
    meant = response.status_code == 500 and "Database operation exception" in response.text
    assert response.status_code < 500 or meant, f"{response.status_code}: {response.text}"
"#;

/// How the child ended; `None` when it was killed because its time was over.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("the child is there to be killed");
    child.wait().expect("a killed child ends");
    None
}

/// The runs on a cloud.
struct Runs<'a> {
    cloud: &'a Cloud,
    systems: Vec<System>,
    /// `http://HOST` or `https://HOST`.
    origin: &'a str,
    left_out: &'a str,
    examples_max: &'a str,
    /// Options that say who calls, and whom it believes.
    credentials: Vec<String>,
}

impl Runs<'_> {
    /// Calls everything; false where there is no Schemathesis.
    #[track_caller]
    fn conform(&self, place: &Path) -> bool {
        let program = std::env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| "schemathesis".into());
        let deadline = Instant::now() + TIME_MAX;
        std::fs::write(place.join("hooks.py"), HOOKS).expect("the hooks are written");
        for system in &self.systems {
            for (mode, checks) in RUNS {
                let report = place.join(format!("{}-{mode}.txt", system.name()));
                let output = File::create(&report).expect("the report is made");
                let mut command = Command::new(&program);
                command
                    .arg("run")
                    .arg(format!("{}:{}/openapi.json", self.origin, self.cloud.address(*system).port()))
                    .args(&self.credentials);
                command.args(["--phases", "coverage,fuzzing", "--mode", mode, "--checks", checks, "--exclude-path-regex", self.left_out]);
                command.args(["--max-examples", self.examples_max, "--seed", SEED, "--generation-database", "none", "--no-color"]);
                command
                    .env("SCHEMATHESIS_HOOKS", "hooks.py")
                    .current_dir(place)
                    .stdin(Stdio::null())
                    .stderr(output.try_clone().expect("a second handle"))
                    .stdout(output);
                let Ok(mut run) = command.spawn() else { return false };
                let status = wait(&mut run, deadline);
                let said = std::fs::read_to_string(&report).expect("the report is text");
                assert!(status.is_some_and(|status| status.success()), "{} with {mode} data, {status:?}:\n{said}", system.name());
                assert!(said.contains(" passed") && said.contains("generated"), "nothing was tested:\n{said}");
            }
        }
        true
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn answers_conform_to_the_documents() {
    let (cloud, place) = (Launch::new().start(), TempDir::new().expect("a temporary directory"));
    let systems = System::CORE.into_iter().chain([System::Monitor]).collect();
    let (origin, left_out, examples_max) = ("http://127.0.0.1", LEFT_OUT, EXAMPLES_MAX);
    let runs = Runs { cloud: &cloud, systems, origin, left_out, examples_max, credentials: Vec::new() };
    if !runs.conform(place.path()) {
        skip::note("answers_conform_to_the_documents", "no Schemathesis is installed");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn answers_of_a_secure_cloud_conform_to_the_documents() {
    let (secure, place) = (SecureCloud::start([]), TempDir::new().expect("a temporary directory"));
    let trust = |file: &str| secure.trust(file).to_str().expect("text").to_owned();
    let credentials = [
        ("--tls-verify", trust("cloud.crt")),
        ("--request-cert", trust("systems/sysop.crt")),
        ("--request-cert-key", trust("systems/sysop.key")),
    ];
    let credentials = credentials.into_iter().flat_map(|(option, file)| [option.to_owned(), file]).collect();
    let systems = System::CORE.into_iter().chain([System::Gatekeeper, System::Gateway, System::Monitor]).collect();
    let (origin, left_out, examples_max) = ("https://localhost", LEFT_OUT_SECURE, EXAMPLES_MAX_SECURE);
    let runs = Runs { cloud: &secure.cloud, systems, origin, left_out, examples_max, credentials };
    if !runs.conform(place.path()) {
        skip::note("answers_of_a_secure_cloud_conform_to_the_documents", "no Schemathesis is installed");
    }
}
