//! Schemathesis calls every documented operation with what its document allows and with what it does not, and holds the
//! answers against the document.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::cloud::{Launch, System};
use crate::support::skip;

/// Names the program that `./x test --all` has installed.
const PROGRAM_VARIABLE: &str = "BODKIN_SCHEMATHESIS";
/// For all runs together; what takes longer hangs.
const TIME_MAX: Duration = Duration::from_secs(300);
/// Calls of one operation in a run's second phase; the first covers every limit of the document.
const EXAMPLES_MAX: &str = "60";
/// The same calls every time.
const SEED: &str = "1";

/// Streams, which never end, and what needs keys, which insecure mode refuses with upstream's 500.
const LEFT_OUT: &str = "^/(api/v1/(live|events)|eventhandler/(events|subscription)|authorization/(publickey|token.*))$";

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

#[test]
#[ignore = "peer: ./x test --all"]
fn answers_conform_to_the_documents() {
    let program = std::env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| "schemathesis".into());
    let place = TempDir::new().expect("a temporary directory");
    let deadline = Instant::now() + TIME_MAX;
    std::fs::write(place.path().join("hooks.py"), HOOKS).expect("the hooks are written");
    let cloud = Launch::new().start();
    for system in System::CORE.into_iter().chain([System::Monitor]) {
        for (mode, checks) in RUNS {
            let report = place.path().join(format!("{}-{mode}.txt", system.name()));
            let output = File::create(&report).expect("the report is made");
            let mut command = Command::new(&program);
            command.arg("run").arg(format!("http://{}/openapi.json", cloud.address(system)));
            command.args(["--phases", "coverage,fuzzing", "--mode", mode, "--checks", checks, "--exclude-path-regex", LEFT_OUT]);
            command.args(["--max-examples", EXAMPLES_MAX, "--seed", SEED, "--generation-database", "none", "--no-color"]);
            command
                .env("SCHEMATHESIS_HOOKS", "hooks.py")
                .current_dir(place.path())
                .stdin(Stdio::null())
                .stderr(output.try_clone().expect("a second handle"))
                .stdout(output);
            let Ok(mut run) = command.spawn() else {
                return skip::note("answers_conform_to_the_documents", "no Schemathesis is installed");
            };
            let status = wait(&mut run, deadline);
            let said = std::fs::read_to_string(&report).expect("the report is text");
            assert!(status.is_some_and(|status| status.success()), "{} with {mode} data, {status:?}:\n{said}", system.name());
            assert!(said.contains(" passed") && said.contains("generated"), "nothing was tested:\n{said}");
        }
    }
}
