//! Each wrong combination of both tables is refused by the name of its setting.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_host::NatsPlace;
use bodkin_trust::{Authority, Identity, authority::Profile, file::write_private, tls::now};
use tempfile::TempDir;

use super::super::Settings;

const DAY: Duration = Duration::from_secs(86_400);

/// A place with `ca.pem`, and the files of identities as `NAME.pem` and `NAME.key`.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a directory"));
        let name = CloudCommonName::parse("one.test.arrowhead.eu").expect("a name");
        let (begin, lifetime) = (now().minus(9 * DAY), 99 * DAY);
        let authority = Authority::root(begin, lifetime).and_then(|root| root.issue_cloud(&name, begin, lifetime)).expect("a CA");
        place.put("ca.pem", authority.certificate().to_pem().as_bytes());
        for (name, from) in [("edge", now()), ("other", now()), ("old", now().minus(3 * DAY))] {
            let profile = Profile { name: name.to_owned(), alternative_names: Vec::new(), now: from, lifetime: DAY };
            let identity: Identity = authority.issue(&profile).expect("a certificate");
            place.put(&format!("{name}.pem"), identity.chain_to_pem().as_bytes());
            place.put(&format!("{name}.key"), identity.key().to_pem().as_bytes());
        }
        place
    }

    fn put(&self, name: &str, content: &[u8]) {
        write_private(&self.0.path().join(name), content).expect("written");
    }

    /// What both tables make of servers and of files of this place; an empty name is left out.
    fn read(&self, server: &str, files: [&str; 3]) -> [Result<NatsPlace, String>; 2] {
        let line = |key: &str, name: &str| match name {
            "" => String::new(),
            name => format!("{key} = {:?}\n", self.0.path().join(name)),
        };
        let [trust, certificate, key] = files;
        let lines = |prefix: &str| {
            [("trust_file", trust), ("certificate_file", certificate), ("certificate_key_file", key)]
                .map(|(setting, name)| line(&format!("{prefix}{setting}"), name))
                .concat()
        };
        let settings = |text: &str| toml::from_str::<Settings>(text).expect("settings").or(Settings::defaults());
        let fleet = settings(&format!("[fleet]\nservers = ['{server}']\nedge = 'e'\n{}", lines("")));
        let nodes = settings(&format!("database = 'postgres://b@db/c'\nnode_events = '{server}'\n{}", lines("node_events_")));
        let fleet = fleet.fleet().map(|config| config.expect("a fleet").place.clone());
        [fleet, nodes.node_events().map(|place| place.expect("servers"))].map(|read| read.map_err(|error| format!("{error:#}")))
    }
}

#[test]
fn wrong_combination_is_refused_by_its_setting() {
    let place = Place::new();
    place.put("garbage", b"nothing");
    place.put("open.key", &fs::read(place.0.path().join("edge.key")).expect("it is there"));
    fs::set_permissions(place.0.path().join("open.key"), fs::Permissions::from_mode(0o644)).expect("set");
    let (plain, tls) = ("nats://hub", "tls://hub");
    for (server, files, setting, words) in [
        (tls, ["ca.pem", "edge.pem", ""], "certificate-key-file", "go together: set both, or neither"),
        (tls, ["ca.pem", "", "edge.key"], "certificate-file", "go together: set both, or neither"),
        (plain, ["ca.pem", "edge.pem", "edge.key"], "certificate-file", "needs a server in TLS: write tls://HOST:PORT in"),
        (plain, ["", "edge.pem", "edge.key"], "certificate-file", "needs a server in TLS"),
        (tls, ["", "edge.pem", "edge.key"], "trust-file", "is missing"),
        (tls, ["ca.pem", "none.pem", "edge.key"], "certificate-file", "none.pem: No such file"),
        (tls, ["ca.pem", "edge.pem", "none.key"], "certificate-key-file", "none.key: No such file"),
        (tls, ["ca.pem", "garbage", "edge.key"], "certificate-file", "garbage: "),
        (tls, ["ca.pem", "edge.pem", "garbage"], "certificate-key-file", "garbage: "),
        (tls, ["ca.pem", "edge.pem", "other.key"], "certificate-key-file", "does not belong to the certificate of edge"),
        (tls, ["ca.pem", "edge.pem", "open.key"], "certificate-key-file", "chmod 600"),
        (tls, ["garbage", "edge.pem", "edge.key"], "trust-file", "garbage: "),
    ] {
        let [fleet, nodes] = place.read(server, files).map(|read| read.expect_err(words));
        for (error, setting) in [(fleet, setting.replace('-', "_")), (nodes, format!("--node-events-{setting}"))] {
            assert!(error.contains(words) && error.contains(&setting), "{setting}: {error}");
        }
    }
}

#[test]
fn certificate_is_read_with_and_without_other_credentials() {
    let place = Place::new();
    for read in place.read("tls://hub", ["ca.pem", "edge.pem", "edge.key"]) {
        let (file, certificate) = read.expect("files").tls.expect("TLS").certificate().expect("it is read").expect("it is configured");
        assert_eq!((file.file_name(), certificate.told_name()), (Path::new("edge.pem").file_name(), "edge"));
    }
    let [fleet, nodes] = place.read("tls://hub", ["ca.pem", "old.pem", "old.key"]);
    assert!(fleet.is_ok() && nodes.is_ok(), "a certificate that has expired is refused by the server, not at start");
    let [fleet, nodes] = place.read("tls://hub", ["ca.pem", "", ""]);
    assert!([fleet, nodes].iter().all(|read| read.as_ref().is_ok_and(|place| place.tls.is_some())), "servers are verified without");
}
