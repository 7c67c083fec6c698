//! Java's keytool lists and takes what `bodkin cert` writes, and we read what keytool writes.

use std::process::Output;

use bodkin_trust::{Identity, file::read_anchors};

use crate::program::{good, run};
use crate::support::certificates::{Certificates, PASSWORD};

fn keytool(place: &Certificates, test: &str, line: &str) -> Option<Output> {
    run("keytool", place, test, line)
}

fn with_sensor() -> Certificates {
    let place = Certificates::init();
    place.done("cert issue --system sensor --san localhost --p12 sensor.p12 --password-file password");
    place.done("cert export --truststore trust.p12 --password-file password");
    place
}

#[test]
#[ignore = "peer: ./x test --all"]
fn keytool_lists_our_key_store_and_trust_store() {
    let test = "keytool_lists_our_key_store_and_trust_store";
    let place = with_sensor();
    let list = |store: &str| format!("-J-Duser.language=en -list -v -keystore {store} -storetype PKCS12 -storepass:file password");
    let Some(listed) = keytool(&place, test, &list("sensor.p12")) else { return };
    let listed = good(&listed);
    for told in
        ["Alias name: sensor", "Entry type: PrivateKeyEntry", "Certificate chain length: 3", "CN=sensor.testcloud1.aitia.arrowhead.eu"]
    {
        assert!(listed.contains(told), "{told} is missing: {listed}");
    }
    let listed = good(&keytool(&place, test, &list("trust.p12")).expect("it is installed"));
    for told in ["Entry type: trustedCertEntry", "Your keystore contains 1 entry", "CN=testcloud1.aitia.arrowhead.eu"] {
        assert!(listed.contains(told), "{told} is missing: {listed}");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn key_stores_of_keytool_are_read() {
    let test = "key_stores_of_keytool_are_read";
    let place = with_sensor();
    let own = Identity::read(&place.path("sensor.p12"), Some(PASSWORD)).expect("an identity");
    for (name, option) in [("modern", ""), ("legacy", "-J-Dkeystore.pkcs12.legacy")] {
        let line = format!(
            "{option} -importkeystore -srckeystore sensor.p12 -srcstorepass:file password -destkeystore {name}.p12 -deststoretype PKCS12 -deststorepass:file password"
        );
        let Some(made) = keytool(&place, test, line.trim()) else { return };
        good(&made);
        place.write_secret(&format!("{name}.p12"), std::fs::read(place.path(&format!("{name}.p12"))).expect("readable"));
        let read = Identity::read(&place.path(&format!("{name}.p12")), Some(PASSWORD)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.chain(), read.key().pkcs8()), (own.chain(), own.key().pkcs8()), "{name}");

        place.done("cert export --truststore cloud.pem --format pem");
        let line = format!(
            "{option} -importcert -noprompt -alias cloud -file cloud.pem -keystore trust-{name}.p12 -storetype PKCS12 -storepass:file password"
        );
        good(&keytool(&place, test, line.trim()).expect("it is installed"));
        let anchors =
            read_anchors(&place.path(&format!("trust-{name}.p12")), Some(PASSWORD)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(anchors.iter().map(|anchor| anchor.told_name()).collect::<Vec<_>>(), ["testcloud1.aitia.arrowhead.eu"], "{name}");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_request_of_keytool_comes_back_as_its_chain() {
    let test = "a_request_of_keytool_comes_back_as_its_chain";
    let place = with_sensor();
    let store = "-keystore own.p12 -storetype PKCS12 -storepass:file password -alias own";
    let made = format!("-genkeypair -keyalg RSA -keysize 2048 -dname CN=whoever {store}");
    let Some(made) = keytool(&place, test, &made) else { return };
    good(&made);
    good(&keytool(&place, test, &format!("-certreq -file own.csr {store}")).expect("it is installed"));
    place.done("cert sign own.csr --system display --out own.crt");
    good(&keytool(&place, test, &format!("-importcert -noprompt -file own.crt {store}")).expect("it is installed"));
    place.write_secret("own.p12", std::fs::read(place.path("own.p12")).expect("readable"));
    let read = Identity::read(&place.path("own.p12"), Some(PASSWORD)).expect("an identity");
    assert_eq!(read.certificate().common_name(), Some("display.testcloud1.aitia.arrowhead.eu"));
    assert_eq!(read.chain().len(), 3);
}
