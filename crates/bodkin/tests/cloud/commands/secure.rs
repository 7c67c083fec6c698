//! The client commands against a cloud in secure mode: as its operator, as another system, and as nobody.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{DENIED, text};
use crate::support::cloud::{BINARY, Cloud, Launch, System};

/// A secure cloud on a data directory of its own.
struct Secure {
    place: TempDir,
    cloud: Cloud,
}

impl Secure {
    fn start() -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let cloud = Launch::new().secure().data(&place.path().join("data")).start();
        Self { place, cloud }
    }

    fn path(&self, name: &str) -> String {
        self.place.path().join(name).to_str().expect("text").to_owned()
    }

    /// Runs `bodkin` with these words where no data directory is; `PLACE/` is this cloud's place.
    fn run(&self, line: &str) -> Output {
        let words = line.split_whitespace().map(|word| word.replace("PLACE", self.place.path().to_str().expect("text")));
        let mut command = Command::new(BINARY);
        command.args(words).current_dir(self.place.path());
        command.env("BODKIN_SERVICE_REGISTRY", self.cloud.address(System::ServiceRegistry).to_string());
        command.env("BODKIN_MONITOR", self.cloud.address(System::Monitor).to_string());
        command.output().expect("the binary starts")
    }

    #[track_caller]
    fn ends(&self, line: &str, code: i32, said: &str) {
        let output = self.run(line);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        assert!(told.contains(said), "{line}: {said} is missing in {told}");
    }
}

fn private(path: &str, content: &str) {
    std::fs::write(path, content).expect("written");
    std::fs::set_permissions(Path::new(path), std::fs::Permissions::from_mode(0o600)).expect("its owner changes its rights");
}

#[test]
fn the_operator_of_the_data_directory_acts_where_nothing_else_is_said() {
    let secure = Secure::start();
    secure.ends("service list --data PLACE/data", 0, "service-register");
    secure.ends("system list --trust PLACE/data/trust", 0, "serviceregistry");
    secure.ends("event list --data PLACE/data", 0, "no event types");
    secure.ends("service list", 1, "where no certificate is found name one: --data, --trust or --cert");
    secure.ends("service list --data PLACE/data --insecure", 1, "as a cloud in secure mode does: leave out --insecure");
}

#[test]
fn another_system_acts_with_its_certificate_or_key_store_and_is_denied_management() {
    let secure = Secure::start();
    private(&secure.path("password"), "correct horse\n");
    secure.ends("cert issue --system display --data PLACE/data --out PLACE/out", 0, "display");
    secure.ends("cert issue --system gauge --data PLACE/data --p12 PLACE/gauge.p12 --password-file PLACE/password", 0, "gauge");
    for who in [
        "--cert PLACE/out/display.crt",
        "--cert PLACE/out/display.crt --key PLACE/out/display.key --ca PLACE/data/trust/cloud.crt",
        "--p12 PLACE/gauge.p12 --password-file PLACE/password",
    ] {
        secure.ends(&format!("service query orchestration-service {who}"), 0, "orchestration-service");
        secure.ends(&format!("system list {who}"), DENIED, "is unauthorized to access");
    }
    secure.ends("system list --p12 PLACE/gauge.p12", 1, "it is a key store: give its password");
}

#[test]
fn whom_the_cloud_or_the_command_does_not_believe_is_told() {
    let secure = Secure::start();
    secure.ends("cert init --data PLACE/other --cloud elsewhere", 0, "elsewhere");
    secure.ends("service list --data PLACE/other", 1, "leads to no authority that is trusted here");
    let ca = "--ca PLACE/data/trust/cloud.crt";
    secure.ends(
        &format!("service list --cert PLACE/other/trust/systems/sysop.crt {ca}"),
        1,
        "of another cloud than elsewhere.bodkin.arrowhead.eu",
    );
    std::fs::set_permissions(secure.path("data/trust/systems/sysop.key"), std::fs::Permissions::from_mode(0o644)).expect("changed");
    secure.ends("service list --data PLACE/data", 1, "chmod 600");
}

#[test]
fn an_insecure_cloud_says_that_it_needs_no_certificate() {
    let place = TempDir::new().expect("a temporary directory");
    let secure = Secure { cloud: Launch::new().data(&place.path().join("data")).start(), place };
    secure.ends("cert init --data PLACE/other", 0, "local");
    secure.ends("service list --data PLACE/other", 1, "It may be a cloud in insecure mode");
    secure.ends("service list --data PLACE/other --insecure", 0, "service-register");
}

#[test]
fn the_doctor_asks_a_secure_cloud_whether_it_is_ready() {
    let place = TempDir::new().expect("a temporary directory");
    let data = place.path().join("data");
    let offset = crate::support::ports::held_offset();
    let _cloud = Launch::new().secure().data(&data).port_offset(offset.get()).start();
    let told = doctor(&data, offset.get(), &[]);
    assert!(told.contains("Bodkin is ready"), "{told}");
}

#[test]
fn the_doctor_says_how_it_asks_a_cloud_without_certificates() {
    let place = TempDir::new().expect("a temporary directory");
    let data = place.path().join("data");
    let offset = crate::support::ports::held_offset();
    let _cloud = Launch::new().data(&data).port_offset(offset.get()).start();
    let told = doctor(&data, offset.get(), &[]);
    assert!(told.contains("--insecure") && !told.contains("Bodkin is ready ("), "{told}");
    let told = doctor(&data, offset.get(), &["--insecure"]);
    assert!(told.contains("Bodkin is ready ("), "{told}");
}

fn doctor(data: &Path, offset: u16, further: &[&str]) -> String {
    let mut doctor = Command::new(BINARY);
    doctor.args(["doctor", "--stall-s", "1", "--port-offset", &offset.to_string(), "--data"]).arg(data).args(further);
    text(&doctor.output().expect("the binary starts").stdout)
}
