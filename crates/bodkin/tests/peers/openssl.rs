//! OpenSSL verifies and opens what `bodkin cert` writes, and we read what OpenSSL writes.

use std::fs;
use std::process::Output;

use bodkin_trust::{Certificate, Identity, PrivateKey, file::read_anchors};

use crate::program::{good, run, told};
use crate::support::certificates::{Certificates, PASSWORD};

fn openssl(place: &Certificates, test: &str, line: &str) -> Option<Output> {
    run("openssl", place, test, line)
}

/// A cloud with the system `sensor` in `own/` and in `sensor.p12`.
fn with_sensor() -> Certificates {
    let place = Certificates::init();
    place.done("cert issue --system sensor --san localhost --out own --p12 sensor.p12 --password-file password");
    for file in ["root.crt", "cloud.crt", "cloud.key"] {
        fs::copy(place.trust(file), place.path(file)).expect("a file is copied");
    }
    place
}

#[test]
#[ignore = "peer: ./x test --all"]
fn openssl_verifies_the_chain_and_the_revocation() {
    let test = "openssl_verifies_the_chain_and_the_revocation";
    let place = with_sensor();
    for purpose in ["sslserver", "sslclient"] {
        let line = format!(
            "verify -x509_strict -purpose {purpose} -verify_hostname localhost -CAfile root.crt -untrusted cloud.crt own/sensor.crt"
        );
        let Some(verified) = openssl(&place, test, &line) else { return };
        assert!(good(&verified).contains("own/sensor.crt: OK"));
    }
    let with_list = |place: &Certificates| {
        fs::copy(place.trust("revoked.crl"), place.path("revoked.crl")).expect("a file is copied");
        let line = "verify -x509_strict -crl_check -partial_chain -trusted cloud.crt -CRLfile revoked.crl own/sensor.crt";
        openssl(place, test, line).expect("it is installed")
    };
    assert!(good(&with_list(&place)).contains("OK"), "a list that revokes nothing");
    place.done("cert revoke own/sensor.crt");
    let refused = with_list(&place);
    assert!(!refused.status.success() && told(&refused).contains("certificate revoked"), "{}", told(&refused));
    let list = openssl(&place, test, "crl -in revoked.crl -CAfile cloud.crt -noout -text").expect("it is installed");
    let serial = Identity::read(&place.path("own/sensor.crt"), None).expect("an identity").certificate().serial_text().to_uppercase();
    assert!(good(&list).contains("verify OK") && told(&list).contains(&serial), "{}", told(&list));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn openssl_opens_our_key_stores() {
    let test = "openssl_opens_our_key_stores";
    let place = with_sensor();
    let Some(info) = openssl(&place, test, "pkcs12 -info -in sensor.p12 -passin file:password -nokeys") else { return };
    let info = good(&info);
    assert_eq!(Certificate::from_pem(info.as_bytes()).expect("certificates").len(), 3, "{info}");
    assert!(info.contains("MAC: sha256") && info.contains("PBES2") && info.contains("AES-256-CBC"), "{info}");
    let keys = good(&openssl(&place, test, "pkcs12 -in sensor.p12 -passin file:password -nocerts -nodes").expect("it is installed"));
    let own = Identity::read(&place.path("own/sensor.crt"), None).expect("an identity");
    assert_eq!(PrivateKey::from_pem(keys.as_bytes()).expect("a key").pkcs8(), own.key().pkcs8());
    assert!(keys.contains("friendlyName: sensor"), "{keys}");
    place.done("cert export --truststore trust.p12 --password-file password");
    let anchors = good(&openssl(&place, test, "pkcs12 -in trust.p12 -passin file:password -nokeys").expect("it is installed"));
    let anchors = Certificate::from_pem(anchors.as_bytes()).expect("certificates");
    assert_eq!(anchors, Certificate::from_pem(&fs::read(place.path("cloud.crt")).expect("readable")).expect("certificates")[..1]);
}

/// Options of `openssl pkcs12 -export` by what they protect with: today's default, Arrowhead's legacy form, and others.
const PROTECTIONS: [(&str, &str); 5] = [
    ("modern", ""),
    ("legacy", "-legacy"),
    ("3des", "-legacy -certpbe PBE-SHA1-3DES -keypbe PBE-SHA1-3DES -macalg sha1"),
    ("aes128", "-certpbe AES-128-CBC -keypbe AES-128-CBC -macalg sha512"),
    ("open", "-certpbe NONE -keypbe AES-256-CBC"),
];

#[test]
#[ignore = "peer: ./x test --all"]
fn key_stores_of_openssl_are_read() {
    let test = "key_stores_of_openssl_are_read";
    let place = with_sensor();
    let own = Identity::read(&place.path("own/sensor.crt"), None).expect("an identity");
    for (name, protection) in PROTECTIONS {
        let line = format!(
            "pkcs12 -export -out {name}.p12 -inkey own/sensor.key -in own/sensor.crt -name alias -passout file:password {protection}"
        );
        let Some(made) = openssl(&place, test, &line) else { return };
        good(&made);
        let read = Identity::read(&place.path(&format!("{name}.p12")), Some(PASSWORD)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.chain(), read.key().pkcs8()), (own.chain(), own.key().pkcs8()), "{name}");
        let wrong = Identity::read(&place.path(&format!("{name}.p12")), Some("another password")).expect_err("another password");
        assert!(wrong.to_string().contains("password does not open"), "{name}: {wrong}");
    }
    for (name, protection) in PROTECTIONS {
        let line = format!("pkcs12 -export -nokeys -out trust-{name}.p12 -in cloud.crt -passout file:password {protection}");
        good(&openssl(&place, test, &line).expect("it is installed"));
        let anchors =
            read_anchors(&place.path(&format!("trust-{name}.p12")), Some(PASSWORD)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(anchors.len(), 2, "{name}");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn requests_of_openssl_are_granted_if_they_are_strong_and_signed() {
    let test = "requests_of_openssl_are_granted_if_they_are_strong_and_signed";
    let place = with_sensor();
    let request = |name: &str, options: &str| {
        let subject = "/CN=sysop.testcloud1.aitia.arrowhead.eu";
        openssl(&place, test, &format!("req -new -nodes -keyout {name}.key -out {name}.csr -subj {subject} {options}"))
    };
    for (name, options) in [
        ("rsa", "-newkey rsa:3072 -addext subjectAltName=DNS:sysop.testcloud1.aitia.arrowhead.eu"),
        ("pss", "-newkey rsa:2048 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest"),
        ("curve", "-newkey ec -pkeyopt ec_paramgen_curve:P-384"),
    ] {
        let Some(made) = request(name, options) else { return };
        good(&made);
        place.done(&format!("cert sign {name}.csr --system display --out {name}.crt"));
        let verified = openssl(&place, test, &format!("verify -x509_strict -CAfile root.crt -untrusted {name}.crt {name}.crt"));
        assert!(good(&verified.expect("it is installed")).contains("OK"), "{name}");
        let own = Identity::read(&place.path(&format!("{name}.crt")), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(own.certificate().common_name(), Some("display.testcloud1.aitia.arrowhead.eu"));
        assert!(!own.certificate().alternative_names().iter().any(|name| name.starts_with("sysop")));
    }
    for (name, options, why) in [
        ("weak", "-newkey rsa:1024", "RSA 1024"),
        ("sha1", "-newkey rsa:2048 -sha1", "not signed"),
        ("edwards", "-newkey ed25519", "other"),
    ] {
        good(&request(name, options).expect("it is installed"));
        let refused = place.refused(&format!("cert sign {name}.csr --system display"));
        assert!(refused.contains(why), "{name}: {refused}");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn encrypted_keys_go_both_ways() {
    let test = "encrypted_keys_go_both_ways";
    let place = with_sensor();
    let own = Identity::read(&place.path("own/sensor.crt"), None).expect("an identity");
    let sealed = own.key().to_encrypted_pem(PASSWORD).expect("a key is encrypted");
    place.write_secret("ours.key", sealed.as_bytes());
    let Some(opened) = openssl(&place, test, "pkey -in ours.key -passin file:password") else { return };
    assert_eq!(PrivateKey::from_pem(good(&opened).as_bytes()).expect("a key").pkcs8(), own.key().pkcs8());
    for options in ["", "-v2 aes-128-cbc -v2prf hmacWithSHA1", "-v2 aes256 -v2prf hmacWithSHA512 -iter 100000"] {
        let line = format!("pkcs8 -topk8 -in own/sensor.key -out theirs.key -passout file:password {options}");
        good(&openssl(&place, test, &line).expect("it is installed"));
        let text = fs::read(place.path("theirs.key")).expect("readable");
        assert_eq!(PrivateKey::from_pem_with(&text, Some(PASSWORD)).expect("a key").pkcs8(), own.key().pkcs8(), "{options}");
    }
    for (options, why) in [("-v2 des3", "1.2.840.113549.3.7"), ("-scrypt", "1.3.6.1.4.1.11591.4.11")] {
        let line = format!("pkcs8 -topk8 -in own/sensor.key -out theirs.key -passout file:password {options}");
        good(&openssl(&place, test, &line).expect("it is installed"));
        let text = fs::read(place.path("theirs.key")).expect("readable");
        let refused = PrivateKey::from_pem_with(&text, Some(PASSWORD)).expect_err("another cipher").to_string();
        assert!(refused.contains(why) && refused.contains("PBES2"), "{refused}");
    }
    for (form, label) in [("-traditional", "RSA PRIVATE KEY"), ("", "PRIVATE KEY")] {
        let line = format!("pkey -in own/sensor.key {form}");
        let text = good(&openssl(&place, test, &line).expect("it is installed"));
        assert!(text.contains(&format!("BEGIN {label}")));
        assert_eq!(PrivateKey::from_pem(text.as_bytes()).expect("a key").pkcs8(), own.key().pkcs8());
    }
}
