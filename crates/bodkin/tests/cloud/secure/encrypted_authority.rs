//! A cloud whose authority's key is encrypted: with the passphrase all works; without it what does not is said.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use super::wait_for_log;
use crate::support::certificates::Certificates;
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;

const PASSPHRASE: &str = "correct horse";

/// A folder with an authority whose key is encrypted, and the files `passphrase` and `wrong`.
fn place() -> Certificates {
    let place = Certificates::empty();
    place.write_secret("passphrase", format!("{PASSPHRASE}\n"));
    place.write_secret("wrong", "battery staple\n");
    place.done("cert init --passphrase-file passphrase");
    place
}

fn launch(place: &Certificates) -> Launch {
    Launch::new().secure().data(&place.path(".bodkin"))
}

/// `bodkin` in the folder, as the operator.
fn bodkin(place: &Certificates, cloud: &Cloud, line: &str) -> Output {
    let monitor = cloud.address(System::Monitor).to_string();
    place.bodkin(line).env("BODKIN_MONITOR", monitor).output().expect("the binary starts")
}

/// A new system comes in by a secret of its own; gives the exit code and what was said.
fn join(place: &Certificates, cloud: &Cloud, system: &str) -> (Option<i32>, String) {
    let added = bodkin(place, cloud, &format!("onboard secret add --system {system} --out {system}.secret"));
    assert!(added.status.success(), "{added:?}");
    let monitor = cloud.address(System::Monitor);
    let joined = bodkin(place, cloud, &format!("onboard join https://{monitor} --secret-file {system}.secret --out own"));
    (joined.status.code(), String::from_utf8_lossy(&joined.stderr).into_owned())
}

#[test]
fn with_the_passphrase_new_systems_come_in_and_own_certificates_are_renewed() {
    let place = place();
    let file = place.path("passphrase");
    let by_file = launch(&place).flags(["--passphrase-file", file.to_str().expect("text")]);
    let by_environment = launch(&place).env("BODKIN_CA_PASSPHRASE", PASSPHRASE);
    for (launch, system) in [(by_file, "one"), (by_environment, "two")] {
        let cloud = launch.start();
        assert_eq!(join(&place, &cloud, system), (Some(0), String::new()), "{}", cloud.stderr());
        assert!(place.path(&format!("own/{system}.crt")).exists());
        // What is missing is made as what is due.
        let own = place.trust("systems/orchestrator.crt");
        fs::remove_file(&own).expect("it is there");
        assert!(eventually(|| own.exists()), "{}", cloud.stderr());
        assert!(!cloud.stderr().contains("the key of the cloud's authority"), "{}", cloud.stderr());
        assert!(cloud.stop().success());
    }
}

#[test]
fn a_passphrase_may_be_a_credential_of_systemds() {
    let place = place();
    // As systemd 257 puts it: readable to the group, which is the mask of an access control list.
    let file = place.path("passphrase");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).expect("its rights");
    let launch = || launch(&place).env("BODKIN_CA_PASSPHRASE_FILE", file.to_str().expect("text"));
    match launch().try_start() {
        Ok(_) => panic!("others may read it, and it starts"),
        Err(refusal) => assert!(refusal.stderr.contains("chmod 600"), "{}", refusal.stderr),
    }
    let credentials = file.parent().expect("a folder").to_str().expect("text");
    let cloud = launch().env("CREDENTIALS_DIRECTORY", credentials).start();
    assert_eq!(join(&place, &cloud, "newcomer"), (Some(0), String::new()), "{}", cloud.stderr());
}

#[test]
fn without_it_the_cloud_runs_and_says_what_will_not_work() {
    let place = place();
    let cloud = launch(&place).start();
    wait_for_log(&cloud, &["no new system comes to a certificate", "are not renewed", "cloud.key", "--passphrase-file"]);
    let (code, said) = join(&place, &cloud, "newcomer");
    assert!(code == Some(1) && said.contains("could not issue"), "{said}");
    wait_for_log(&cloud, &["a new system was granted a certificate that could not be issued", "cloud.key"]);
    let listed = bodkin(&place, &cloud, "onboard secret list --output json");
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("one JSON document");
    assert_eq!(listed["data"][0]["usesLeft"], 1, "what was spent for nothing is given back");
}

#[test]
fn a_passphrase_that_opens_nothing_starts_nothing() {
    let place = place();
    let refused = |launch: Launch, code: i32, parts: &[&str]| match launch.try_start() {
        Ok(_) => panic!("it starts"),
        Err(refusal) => {
            assert_eq!(refusal.code, Some(code), "{}", refusal.stderr);
            assert!(parts.iter().all(|part| refusal.stderr.contains(part)), "{parts:?}: {}", refusal.stderr);
        }
    };
    let wrong = place.path("wrong");
    refused(launch(&place).flags(["--passphrase-file", wrong.to_str().expect("text")]), 1, &["cloud.key", "passphrase does not open"]);
    refused(launch(&place).flags(["--passphrase-file", "nowhere"]), 2, &["nowhere"]);
    let new = Launch::new().secure().data(&place.path("new")).env("BODKIN_CA_PASSPHRASE", "1234567");
    refused(new, 2, &["7 characters", "8 at least"]);
    let new = || Launch::new().secure().data(&place.path("new")).env("BODKIN_CA_PASSPHRASE", PASSPHRASE);
    assert!(new().start().stop().success());
    let key = fs::read_to_string(place.path("new/trust/cloud.key")).expect("an authority was made");
    assert!(key.contains("ENCRYPTED"), "a new authority's key is encrypted with it");
}
