//! `bodkin cert`: a chain, what it issues, renews and revokes, and what it refuses.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use bodkin_trust::{Certificate, FileError, Identity, file::read_anchors};
use serde_json::json;

use crate::support::certificates::{Certificates, PASSWORD};

fn rights(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

fn identity(path: &Path) -> Identity {
    Identity::read(path, Some(PASSWORD)).unwrap_or_else(|error| panic!("{error}"))
}

fn names(chain: &[Certificate]) -> Vec<&str> {
    chain.iter().map(Certificate::told_name).collect()
}

#[test]
fn init_makes_the_chain_and_who_needs_it_first() {
    let place = Certificates::empty();
    let told = place.done("cert init --cloud TestCloud1 --operator aitia --san cloud.example");
    assert!(told.contains("testcloud1.aitia.arrowhead.eu") && told.contains(".bodkin/trust/systems"), "{told}");
    for system in ["serviceregistry", "authorization", "orchestrator", "eventhandler", "gatekeeper", "gateway", "sysop"] {
        let own = identity(&place.trust(&format!("systems/{system}.crt")));
        let full = format!("{system}.testcloud1.aitia.arrowhead.eu");
        assert_eq!(names(own.chain()), [full.as_str(), "testcloud1.aitia.arrowhead.eu", "arrowhead.eu"]);
        let served = own.certificate().alternative_names().contains(&"cloud.example".to_owned());
        assert_eq!(served, system != "sysop", "{system}");
    }
    for key in ["root.key", "cloud.key", "systems/sysop.key"] {
        assert_eq!(rights(&place.trust(key)), 0o600, "{key}");
    }
    assert!(place.refused("cert init").contains("already"));
    assert_eq!(place.json("cert list")["certificates"].as_array().map(Vec::len), Some(7));
}

#[test]
fn a_cloud_that_nobody_names_has_a_name() {
    let place = Certificates::empty();
    assert_eq!(place.json("cert init")["cloud"], json!("local.bodkin.arrowhead.eu"));
    assert!(place.refused("cert list --trust elsewhere").contains("bodkin cert init"));
    assert_eq!(place.ended("cert init --cloud 1st --trust other", 2).stdout, b"");
}

#[test]
fn a_system_gets_files_and_a_key_store() {
    let place = Certificates::init();
    let line =
        "cert issue --system Sensor --san sensor.example --san 10.0.0.7 --days 30 --out own --p12 sensor.p12 --password-file password";
    let told = place.json(line);
    assert_eq!(told["name"], json!("sensor.testcloud1.aitia.arrowhead.eu"));
    let from_files = identity(&place.path("own/sensor.crt"));
    let from_store = identity(&place.path("sensor.p12"));
    assert_eq!((from_store.chain(), from_store.key().pkcs8()), (from_files.chain(), from_files.key().pkcs8()));
    let own = from_files.certificate();
    assert_eq!(told["serial"], json!(own.serial_text()));
    assert_eq!(own.alternative_names(), ["sensor.testcloud1.aitia.arrowhead.eu", "sensor.example", "10.0.0.7"]);
    assert_eq!(own.not_after().since(own.not_before()).as_secs(), 30 * 86_400 + 300);
    assert_eq!((rights(&place.path("own/sensor.key")), rights(&place.path("sensor.p12"))), (0o600, 0o600));
    assert!(place.refused(line).contains("is there already"));
    place.write_secret("short", "12345");
    assert!(place.refused("cert issue --system other --p12 other.p12 --password-file short").contains("5 characters"));
    assert_eq!(place.json("cert list --system other")["certificates"], json!([]), "nothing is issued that is not written");
}

#[test]
fn what_is_there_and_good_is_kept() {
    let place = Certificates::init();
    let serial = |line: &str| place.json(line)["serial"].as_str().expect("a text").to_owned();
    let first = serial("cert issue --system sensor");
    assert_eq!(serial("cert issue --system sensor"), first);
    let key = fs::read(place.trust("systems/sensor.key")).expect("readable");
    let second = serial("cert issue --system sensor --san sensor.example");
    assert_ne!(second, first);
    assert_eq!(fs::read(place.trust("systems/sensor.key")).expect("readable"), key, "its key stays");
    assert_ne!(serial("cert issue --system sensor --new-key"), second);
    assert_ne!(fs::read(place.trust("systems/sensor.key")).expect("readable"), key);
}

#[test]
fn many_are_issued_at_once_and_once() {
    let place = Certificates::init();
    let lines: Vec<String> = (0..100).map(|number| format!("load-{number} host-{number}.example")).collect();
    fs::write(place.path("systems.txt"), lines.join("\n")).expect("written");
    let told = place.json("cert issue --from systems.txt --out load --shared-key");
    assert_eq!((&told["issued"], &told["kept"]), (&json!(100), &json!(0)));
    fs::remove_file(place.path("load/load-7.crt")).expect("removed");
    let told = place.json("cert issue --from systems.txt --out load --shared-key");
    assert_eq!((&told["issued"], &told["kept"]), (&json!(1), &json!(99)));
    let (one, other) = (identity(&place.path("load/load-7.crt")), identity(&place.path("load/load-99.crt")));
    assert_eq!(one.key().pkcs8(), other.key().pkcs8());
    assert_eq!(other.certificate().alternative_names(), ["load-99.testcloud1.aitia.arrowhead.eu", "host-99.example"]);
    fs::write(place.path("wrong.txt"), "load-1\nload 2\nload-1\n").expect("written");
    assert!(place.refused("cert issue --from wrong.txt --out load").contains("line 3"));
}

#[test]
fn a_request_says_nothing_but_its_key() {
    let place = Certificates::init();
    let key = bodkin_trust::PrivateKey::generate(bodkin_trust::KeySize::Bits2048).expect("a key");
    let request = bodkin_trust::SigningRequest::make(&key, "sysop.testcloud1.aitia.arrowhead.eu").expect("a request");
    fs::write(place.path("own.csr"), request).expect("written");
    assert!(place.done("cert inspect own.csr").contains("signing request of  sysop.testcloud1.aitia.arrowhead.eu"));
    let chain = Certificate::from_pem(place.done("cert sign own.csr --system sensor --san sensor.example").as_bytes()).expect("a chain");
    assert_eq!(names(&chain), ["sensor.testcloud1.aitia.arrowhead.eu", "testcloud1.aitia.arrowhead.eu", "arrowhead.eu"]);
    assert_eq!(chain[0].public_key_info(), key.public_key_info());
    assert_eq!(place.json("cert list --system sensor")["certificates"][0]["serial"], json!(chain[0].serial_text()));
    place.done("cert sign own.csr --system sensor --out sensor.crt");
    assert_eq!(Certificate::from_pem(&fs::read(place.path("sensor.crt")).expect("readable")).expect("a chain").len(), 3);
    fs::write(place.path("no.csr"), "nothing").expect("written");
    assert!(place.refused("cert sign no.csr --system sensor").contains("no.csr: there is no certificate signing request"));
    assert_eq!(place.ended("cert sign own.csr", 2).status.code(), Some(2), "without a name nobody decides");
}

#[test]
fn what_is_renewed_keeps_names_and_key_in_every_form() {
    let place = Certificates::init();
    place.done("cert issue --system sensor --san sensor.example --out own --p12 sensor.p12 --password-file password");
    let old = identity(&place.path("sensor.p12"));
    assert!(place.done("cert renew").contains("nothing is due"));
    for file in ["own/sensor.crt", "sensor.p12"] {
        let told = place.json(&format!("cert renew {file} --password-file password --days 200"));
        let renewed = identity(&place.path(file));
        assert_eq!(told["renewed"][0]["serial"], json!(renewed.certificate().serial_text()), "{file}");
        assert_eq!(renewed.key().pkcs8(), old.key().pkcs8(), "{file}");
        assert_eq!(renewed.certificate().alternative_names(), old.certificate().alternative_names(), "{file}");
        assert!(renewed.certificate().not_after() > old.certificate().not_after(), "{file}");
    }
    place.done("cert renew own/sensor.crt --new-key");
    assert_ne!(identity(&place.path("own/sensor.crt")).key().pkcs8(), old.key().pkcs8());
    let before = identity(&place.trust("systems/sysop.crt")).certificate().serial_text();
    place.done("cert renew sysop");
    assert_ne!(identity(&place.trust("systems/sysop.crt")).certificate().serial_text(), before);
}

#[test]
fn what_is_revoked_is_listed_and_not_renewed() {
    let place = Certificates::init();
    for system in ["one", "two", "three", "four"] {
        place.done(&format!("cert issue --system {system} --out own"));
    }
    let serial = |system: &str| identity(&place.path(&format!("own/{system}.crt"))).certificate().serial_text();
    for target in [serial("one").to_uppercase(), "own/two.crt".to_owned(), "Three".to_owned()] {
        let told = place.json(&format!("cert revoke {target}"));
        assert_eq!(told["revoked"].as_array().map(Vec::len), Some(1), "{target}: {told}");
    }
    let revoked = place.json("cert list --state revoked");
    let mut listed: Vec<_> = revoked["certificates"].as_array().expect("a list").iter().map(|row| row["serial"].clone()).collect();
    assert_eq!(listed.len(), 3);
    let list = place.json("cert inspect .bodkin/trust/revoked.crl");
    let mut in_list: Vec<_> = list["items"][0]["revoked"].as_array().expect("a list").iter().map(|row| row["serial"].clone()).collect();
    listed.sort_by_key(|serial| serial.to_string());
    in_list.sort_by_key(|serial| serial.to_string());
    assert_eq!(in_list, listed);
    assert!(place.refused("cert renew own/one.crt").contains("revoked"));
    assert!(place.refused("cert revoke nobody").contains("bodkin cert list"));
    assert!(place.refused("cert revoke .bodkin/trust/cloud.crt").contains("issued by arrowhead.eu"));
    assert_eq!(place.json("cert list --system four")["certificates"][0]["state"], json!("valid"));
    // Its key may be in other hands: what is issued in its place has another one.
    let key = fs::read(place.path("own/one.key")).expect("readable");
    place.done("cert issue --system one --out own");
    assert_ne!(fs::read(place.path("own/one.key")).expect("readable"), key);
    place.done("cert revoke --refresh");
}

#[test]
fn an_encrypted_authority_issues_by_its_passphrase_only() {
    let place = Certificates::empty();
    place.write_secret("passphrase", "correct horse\n");
    place.done("cert init --passphrase-file passphrase");
    assert!(fs::read_to_string(place.trust("cloud.key")).expect("readable").contains("ENCRYPTED"));
    assert!(place.refused("cert issue --system sensor").contains("passphrase"));
    place.done("cert issue --system sensor --passphrase-file passphrase");
    let by_environment = |passphrase: &str| {
        let mut command = place.bodkin("cert issue --system display");
        command.env("BODKIN_CA_PASSPHRASE", passphrase).output().expect("the binary starts").status.code()
    };
    assert_eq!((by_environment("battery staple"), by_environment("correct horse")), (Some(1), Some(0)));
    place.done("cert list");
    place.done("cert export --truststore trust.pem --format pem");
    place.write_secret("short", "1234567");
    assert!(place.refused("cert init --trust other --passphrase-file short").contains("8 at least"));
}

#[test]
fn the_trust_store_holds_the_cloud_and_nothing_else() {
    let place = Certificates::init();
    place.done("cert export --truststore trust.p12 --password-file password");
    place.done("cert export --truststore trust.pem --format pem");
    place.done("cert export --truststore both.pem --format pem --with-root");
    for (file, expected) in [("trust.p12", 1), ("trust.pem", 1), ("both.pem", 2)] {
        let anchors = read_anchors(&place.path(file), Some(PASSWORD)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((anchors.len(), anchors[0].told_name()), (expected, "testcloud1.aitia.arrowhead.eu"), "{file}");
    }
    assert!(place.refused("cert export --truststore trust.p12").contains("--password-file"));
}

#[test]
fn a_file_with_a_secret_that_others_may_read_is_refused() {
    let place = Certificates::init();
    for (file, line) in [
        (place.trust("cloud.key"), "cert issue --system sensor"),
        (place.path("password"), "cert issue --system sensor --p12 sensor.p12 --password-file password"),
    ] {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("rights are set");
        let told = place.refused(line);
        assert!(told.contains("chmod 600") && told.contains(file.file_name().and_then(|name| name.to_str()).expect("text")), "{told}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("rights are set");
    }
    place.done("cert issue --system sensor --p12 sensor.p12 --password-file password");
    fs::set_permissions(place.path("sensor.p12"), fs::Permissions::from_mode(0o640)).expect("rights are set");
    assert!(matches!(Identity::read(&place.path("sensor.p12"), Some(PASSWORD)), Err(FileError::Rights { mode: 0o640, .. })));
}

#[test]
fn a_bad_key_store_is_told_from_a_bad_password() {
    let place = Certificates::init();
    place.done("cert issue --system sensor --p12 sensor.p12 --password-file password");
    place.write_secret("wrong", "another password");
    let whole = fs::read(place.path("sensor.p12")).expect("readable");
    place.write_secret("cut.p12", &whole[..whole.len() / 2]);
    place.write_secret("foreign.p12", b"PK\x03\x04 a zip archive");
    for (line, told) in [
        ("sensor.p12 --password-file wrong", "password does not open the key store"),
        ("sensor.p12", "give its password"),
        ("cut.p12 --password-file password", "damaged: it says that it has"),
        ("foreign.p12 --password-file password", "neither PEM"),
    ] {
        let refused = place.refused(&format!("cert inspect {line}"));
        assert!(refused.contains(told) && refused.contains(".p12"), "{line}: {refused}");
    }
    let items = place.json("cert inspect sensor.p12 --password-file password");
    assert_eq!((&items["form"], items["items"].as_array().map(Vec::len)), (&json!("PKCS#12"), Some(4)));
    assert_eq!(items["items"][1]["role"], json!("system sensor of the cloud testcloud1.aitia.arrowhead.eu"));
}

#[test]
fn two_processes_do_not_mix_what_they_write() {
    let place = Certificates::init();
    let children: Vec<_> = (0..4)
        .map(|_| place.bodkin("cert issue --system sensor --new-key").stdout(Stdio::null()).spawn().expect("the binary starts"))
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    identity(&place.trust("systems/sensor.crt"));
    assert_eq!(place.json("cert list --system sensor")["certificates"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_curve_key_is_bound_to_a_system() {
    let place = Certificates::init();
    let made = place.json("cert curve --system sensor")["publicKey"].as_str().expect("a text").to_owned();
    let file = fs::read_to_string(place.path("sensor.curve")).expect("readable");
    assert!(file.contains(&format!("public-key = \"{made}\"")) && file.contains("secret-key = "), "{file}");
    assert_eq!(rights(&place.path("sensor.curve")), 0o600);
    let own = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    place.done(&format!("cert curve --system display --public-key {own}"));
    assert!(place.refused(&format!("cert curve --system sensor --public-key {own}")).contains("bound to display"));
    assert_eq!(place.ended("cert curve --system sensor --public-key short", 2).stdout, b"");
    let keys = |place: &Certificates| place.json("cert curve")["keys"].as_array().map(Vec::len);
    assert_eq!(keys(&place), Some(2));
    place.done("cert curve --system sensor --remove");
    assert_eq!(keys(&place), Some(1));
    // One key in 85 begins with a hyphen.
    place.done("cert curve --system sensor --public-key -LY?}eBkHDcI{nKgPvY+/GCP/kSs8WO<Q2bYA]VT");
    assert_eq!(keys(&place), Some(2));
}
