//! Clouds with roots of their own on one host, made known to each other by their operators' commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{Identity, TrustDirectory, tls};
use serde_json::Value;

use super::cloud::{BINARY, Cloud, Launch, System};
use super::patience::eventually;
use super::ports::held_port;
use super::secure::DAY;

/// A cloud, and where its operator works.
pub struct Side {
    /// The cloud.
    pub cloud: Cloud,
    /// Its data directory.
    pub data: PathBuf,
}

impl Side {
    /// In secure mode, as `NAME.test`.
    pub fn start(place: &Path, name: &str, flags: &[&str]) -> Self {
        let data = place.join(name);
        let launch = Launch::new().secure().data(&data).flags(["--cloud", name, "--operator", "test"]);
        let cloud = flags.iter().fold(launch, |launch, flag| launch.flags([flag])).start();
        Self { cloud, data }
    }

    /// What `bodkin` with these words has come to.
    pub fn run(&self, line: &str) -> Output {
        let mut command = Command::new(BINARY);
        command.args(line.split_whitespace()).current_dir(&self.data).arg("--data").arg(&self.data).arg("--output=json");
        command.env("BODKIN_MONITOR", self.cloud.address(System::Monitor).to_string());
        command.env("BODKIN_SERVICE_REGISTRY", self.cloud.address(System::ServiceRegistry).to_string());
        command.output().expect("the binary starts")
    }

    /// What a command prints, which must do what it is asked.
    #[track_caller]
    pub fn done(&self, line: &str) -> Value {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}; the cloud said: {}", self.cloud.stderr());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {output:?}"))
    }

    /// Introduces this cloud to another one, as two operators do.
    #[track_caller]
    pub fn introduce_to(&self, other: &Self) {
        let written = self.done("cloud introduce --out introduction.toml");
        let fingerprint = written["fingerprint"].as_str().expect("a fingerprint");
        let file = self.data.join("introduction.toml");
        other.done(&format!("cloud add {} --fingerprint {fingerprint}", file.display()));
    }

    /// The identity of a system of this cloud.
    pub fn system(&self, name: &str) -> Identity {
        let directory = TrustDirectory::new(self.data.join("trust"));
        directory.ensure_identity(&SystemName::parse(name).expect("a name"), &[], tls::now(), DAY).expect("an identity")
    }
}

/// Two clouds that know each other; the relay is inside the first.
pub fn neighbours(place: &Path) -> (Side, Side) {
    neighbours_with(place, &[])
}

/// The same, both with more arguments.
pub fn neighbours_with(place: &Path, flags: &[&str]) -> (Side, Side) {
    let common = [flags, &["--neighbor-timeout-ms", "2000"]].concat();
    // Known before, for the cloud that has it may come back.
    let relay = format!("127.0.0.1:{}", held_port());
    let one = Side::start(place, "one", &[&common[..], &["--relay-listen", &relay]].concat());
    let two = Side::start(place, "two", &common);
    let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    one.done(&format!("relay add {relay} --own"));
    one.introduce_to(&two);
    two.introduce_to(&one);
    // A call is lost that is made before the other one listens.
    let is_there = |from: &Side, to: &str| eventually(|| from.run(&format!("cloud ping {to}")).status.success());
    assert!(is_there(&two, "one") && is_there(&one, "two"), "one said: {}\ntwo said: {}", one.cloud.stderr(), two.cloud.stderr());
    (one, two)
}
